"""Lab 03, exercise 5: Dropout"""

import math

import torch
from torch import nn

from hood.judge.checks.compare import Tolerance
from hood.judge.checks.exercise import ByHand, Case, Check

from .shared import RULE, in_eval

dropout = Check(
    "Dropout",
    parts={"in training": 1, "in eval": 1, "the edges": 1},
    reads="Two modes",
    tolerance=Tolerance(5e-3, 1e-6, "a float16 number has 10 bits of fraction, and so has a float16 scale"),
    by_hand=ByHand(
        RULE.format("draw the mask yourself"),
        forbid_names=frozenset({"*Dropout*", "*dropout*"}),
    ),
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
        """Facts about a random mask, as booleans. By chance, each fact is wrong once in a billion times."""
        upstream = draw.tensor(x.shape, x.dtype)

        def play(subject):
            made = subject(p)
            y, again = made.call("__call__", x), made.call("__call__", x)
            gone = y == 0
            share = gone.double().mean().item()
            slack = 7 * math.sqrt(p * (1 - p) / x.numel())
            rows, columns = (gone.double().mean(d) for d in (1, 0))
            own = [bool(((part > 0) & (part < 1)).all()) for part in (rows, columns)]
            return {
                **scale(x, y),
                "within a row": own[0],
                "within a column": own[1],
                "as many as p says": not all(own) or abs(share - p) < slack,
                "anew in each call": not torch.equal(y, again),
                "backward": backward(made, x, upstream),
            }

        return Case("in training", play, places={**SCALE, **BACKWARD, **MASK})

    def backward(made, x, upstream):
        """Whether the gradient passes where the values passed, with the same factor."""
        found = made.gradients(upstream, x)
        grad = found["arguments"][0]
        if not isinstance(grad, torch.Tensor):
            return {"arrives": False, "as the values": None}
        want = upstream.double() * found["output"].double() / x.double()
        return {
            "arrives": True,
            "as the values": bool((grad.double() - want).abs().max() <= 1e-2 * want.abs().max()),
        }

    def scale(x, y):
        """The factor of the elements that stay, and facts about the output."""
        ratio = (y.double() / x.double())[y != 0]
        middle = ratio.median().item() if ratio.numel() else 0.0
        return {
            "shape": tuple(y.shape),
            "dtype": y.dtype,
            "scale": middle,
            "one scale for all": bool((ratio - middle).abs().le(5e-3 * abs(middle)).all()),
        }

    def evaluated(p, x):
        upstream = draw.tensor(x.shape, x.dtype)

        def play(subject):
            made = in_eval(subject(p))
            y = made.call("__call__", x)
            return {
                "some dropped": bool((y == 0).any()),
                **scale(x, y),
                "same": torch.equal(x, y),
                "backward": backward(made, x, upstream),
            }

        return Case("in eval", play, places={**SCALE, **BACKWARD, **PASSED})

    def often(p, x):
        """By chance, a right answer keeps the same number of elements in 5 calls once in ten billion times."""

        def play(subject):
            made = subject(p)
            masks = [made.call("__call__", x) != 0 for _ in range(5)]
            pairs = [masks[0].unbind(dim)[:2] for dim in range(x.dim())]
            return len({int(m.sum()) for m in masks}) > 1, any(torch.equal(*p) for p in pairs)

        places = {
            "[0]": (
                "each call drops exactly the same number of elements: the dropped elements aren't "
                "drawn independently."
            ),
            "[1]": (
                "elements along a dimension are dropped together: the dropped elements aren't "
                "drawn independently."
            ),
        }
        return Case("in training", play, places=places)

    def any_shape(x):
        def play(subject):
            y = subject(0.5).call("__call__", x)
            return tuple(y.shape), y.dtype

        shown = f"shape {tuple(x.shape)}, {str(x.dtype).removeprefix('torch.')}"
        places = {"[0]": "the output's shape", "[1]": "the output"}
        return Case("in training", play, shown=shown, places=places)

    def to_and_fro(p, x):
        """Eval, training and eval again: has anything been dropped?"""

        def play(subject):
            made, dropped = in_eval(subject(p)), []
            for mode in (False, True, False):
                made.call("train", mode)
                dropped.append(bool((made.call("__call__", x) == 0).any()))
            return dropped

        places = {
            "[0]": "elements were dropped.",
            "[1]": "back in training, nothing was dropped.",
            "[2]": "back in eval, elements were dropped.",
        }
        return Case("in eval", play, places=places)

    def edge(p, x):
        play = lambda subject: subject(p).call("__call__", x)  # noqa: E731
        return Case("the edges", play, shown=f"p = {p:g}")

    for dtype, layout in ((torch.float32, "transposed"), (torch.float16, "contiguous")):
        x = draw.tensor((150, 160), dtype, layout)
        x = torch.where(x.abs() < 0.1, torch.ones_like(x), x)  # a zero would look like a dropped element
        p = draw.choice((0.2, 0.25, 0.3, 0.7, 0.75, 0.8))
        yield training(p, x)
        yield evaluated(p, x)
        yield edge(0.0, x)
        yield edge(1.0, x)
        yield evaluated(1.0, x)
    yield edge(0, draw.tensor((3, 4)))
    yield edge(1, draw.tensor((3, 4)))
    yield often(0.5, torch.ones(20, 5, 10, 10))
    yield to_and_fro(0.5, torch.ones(40, 5))
    for shape in ((), (0, 3), (2, 3, 4, 5)):
        yield any_shape(draw.tensor(shape, torch.float64 if shape else torch.bfloat16))
    for p in (-0.25, -0.001, 1.001, 1.5, 2):
        shown = "p above 1" if p > 1 else "p below 0"
        play = lambda subject, p=p: subject(p).get("training")  # noqa: E731
        yield Case("the edges", play, shown=shown, raises="ValueError")


SCALE = {
    "['dtype']": "the output",
    "['shape']": "the output's shape",
    "['scale']": "the factor of the elements that stay",
    "['one scale for all']": "the elements that stay are not all multiplied by the same factor.",
}
BACKWARD = {
    "['backward']['arrives']": "no gradient reaches the input.",
    "['backward']['as the values']": (
        "the gradient should pass where the values passed, and be multiplied by the same factor."
    ),
}
MASK = {
    "['within a row']": "whole rows are dropped or kept together.",
    "['within a column']": "whole columns are dropped or kept together.",
    "['as many as p says']": "the share of dropped elements isn't p.",
    "['anew in each call']": "two calls gave the same output.",
}
PASSED = {
    "['some dropped']": "elements were dropped.",
    "['same']": "the input didn't pass unchanged.",
}
