"""Lab 03, exercise 5: Dropout"""

import math

import torch
from torch import nn

from utils.checks import Case, Check, edited
from utils.compare import Tolerance

from .shared import in_eval

dropout = Check(
    "Dropout",
    parts={"in training": 1, "in eval": 1, "the edges": 1},
    reads="Two modes",
    tolerance=Tolerance(5e-3, 1e-6, "float16 carries 10 bits of fraction, a scale as many"),
)


@dropout.reference
class _Dropout(nn.Module):
    def __init__(self, p=0.5):
        super().__init__()
        if p < 0 or p > 1:
            raise ValueError("p must be a probability")
        self.p = p

    def forward(self, x):
        if self.training and self.p > 0:
            kept = torch.rand_like(x.float()) >= self.p
            scale = 1 / (1 - self.p) if self.p < 1 else 0.0
            return torch.where(kept, x * scale, torch.zeros_like(x))
        return x


@dropout.cases
def _(draw):
    def training(p, x):
        """What can be said of a random mask, in yes and no; each may fail once in a billion."""

        def play(subject):
            made = subject(p)
            y, again = made.call("__call__", x), made.call("__call__", x)
            gone = y == 0
            share = gone.double().mean().item()
            slack = 7 * math.sqrt(p * (1 - p) / x.numel())
            rows, columns = gone.double().mean(1), gone.double().mean(0)
            own = all(bool(((part > 0) & (part < 1)).all()) for part in (rows, columns))
            return {
                **scale(x, y),
                "as many as p says": not own or abs(share - p) < slack,
                "each on its own": own,
                "anew in each call": not torch.equal(y, again),
            }

        return Case("in training", play)

    def scale(x, y):
        """By how much the elements that are left were multiplied."""
        ratio = (y.double() / x.double())[y != 0]
        middle = ratio.median().item() if ratio.numel() else 0.0
        return {
            "shape": tuple(y.shape),
            "dtype": y.dtype,
            "scale": middle,
            "one scale for all": bool((ratio - middle).abs().le(5e-3 * abs(middle)).all()),
        }

    def evaluated(p, x):
        def play(subject):
            y = in_eval(subject(p)).call("__call__", x)
            return {**scale(x, y), "some dropped": bool((y == 0).any()), "same": torch.equal(x, y)}

        return Case("in eval", play)

    def edge(p, x):
        return Case("the edges", lambda subject: subject(p).call("__call__", x))

    for dtype, layout in ((torch.float32, "transposed"), (torch.float16, "contiguous")):
        x = draw.tensor((150, 160), dtype, layout)
        x = torch.where(x.abs() < 0.1, torch.ones_like(x), x)  # a zero would look dropped
        p = draw.choice((0.2, 0.25, 0.3, 0.7, 0.75, 0.8))
        yield training(p, x)
        yield evaluated(p, x)
        yield edge(0.0, x)
        yield edge(1.0, x)
        yield evaluated(1.0, x)
    for p in (-0.25, 1.5):
        yield Case("the edges", lambda subject, p=p: subject(p).get("training"))


dropout.misconception(
    "what stays is not scaled",
    "elements that stay keep their size, so that the mean sinks in training.",
    earns=2,
)(edited(_Dropout, ("1 / (1 - self.p) if self.p < 1 else 0.0", "1.0")))
dropout.misconception(
    "scaled by 1/p", "elements that stay are divided by the probability of going.", earns=2
)(edited(_Dropout, ("1 / (1 - self.p) if self.p < 1 else 0.0", "1 / self.p")))
dropout.misconception(
    "p taken for the share that stays",
    "p was read as the probability of staying; in PyTorch it is that of being dropped.",
    earns=1,
)(
    edited(
        _Dropout,
        ("if self.training and self.p > 0:", "if self.training and self.p < 1:"),
        ("torch.rand_like(x.float()) >= self.p", "torch.rand_like(x.float()) < self.p"),
        ("1 / (1 - self.p) if self.p < 1 else 0.0", "1 / self.p if self.p > 0 else 0.0"),
    )
)
dropout.misconception(
    "dropping in eval, too", "the mode is never asked for: elements are dropped in eval.", earns=2
)(edited(_Dropout, ("self.training and self.p > 0", "self.p > 0")))
dropout.misconception(
    "scaled in eval instead",
    "as in the first paper: nothing is scaled in training, and all is made smaller in eval.",
    earns=1,
)(
    edited(
        _Dropout,
        ("1 / (1 - self.p) if self.p < 1 else 0.0", "1.0"),
        (
            "zeros_like(x))\n        return x",
            "zeros_like(x))\n        return x if self.training else x * (1 - self.p)",
        ),
    )
)
dropout.misconception(
    "one mask for ever", "the mask is drawn once and used again in each call.", earns=2
)(
    edited(
        _Dropout,
        ("kept = torch.rand_like(x.float()) >= self.p",
         "if not hasattr(self, 'kept'):\n                self.kept = torch.rand_like(x.float()) >= self.p\n"
         "            kept = self.kept"),
    )
)  # fmt: skip
dropout.misconception(
    "whole rows dropped",
    "one draw decides for a whole row; each element should have its own.",
    earns=2,
)(edited(_Dropout, ("torch.rand_like(x.float()) >=", "torch.rand(x.shape[0], 1) >=")))
dropout.misconception(
    "0 divided by 0", "at p = 1 nothing is left to be scaled, and the scale is infinite.", earns=2
)(
    edited(
        _Dropout,
        ("1 / (1 - self.p) if self.p < 1 else 0.0",
         "torch.tensor(1.0) / torch.tensor(1 - self.p)"),
        ("torch.where(kept, x * scale, torch.zeros_like(x))", "x * (kept * scale).to(x.dtype)"),
    )
)  # fmt: skip
dropout.misconception(
    "any p goes", "a p that is no probability is let through when the layer is made.", earns=2
)(edited(_Dropout, ("if p < 0 or p > 1:", "if False:")))


@dropout.alternate("torch.bernoulli")
class _BernoulliDropout(nn.Module):
    def __init__(self, p=0.5):
        super().__init__()
        if not 0.0 <= p <= 1.0:
            raise ValueError(p)
        self.keep = 1.0 - p

    def forward(self, x):
        if self.training and self.keep == 0:
            return x * 0
        if self.training:
            return x * torch.bernoulli(torch.full(x.shape, self.keep, dtype=x.dtype)) / self.keep
        return x.clone()


@dropout.alternate("torch's own function")
class _TorchDropout(nn.Module):
    def __init__(self, p=0.5):
        super().__init__()
        if p < 0 or p > 1:
            raise ValueError("expected a probability")
        self.p = p

    def forward(self, x):
        return nn.functional.dropout(x, self.p, self.training)
