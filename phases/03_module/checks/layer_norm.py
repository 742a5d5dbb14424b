"""Lab 03, exercise 4: LayerNorm"""

import torch
from torch import nn

from hood.judge.checks.compare import Tolerance
from hood.judge.checks.exercise import ByHand, Case, Check

from .shared import LAYOUTS, RULE, laid_out, places_of_pull, pull

layer_norm = Check(
    "LayerNorm",
    parts={"normalised": 1, "scale and shift": 1, "small and large inputs": 1},
    reads="Layers are shapes",
    tolerance=Tolerance(1e-3, 3e-4, "float32 rounds a mean of 1,000 to 6e-5"),
    by_hand=ByHand(
        RULE.format("write the norm yourself"),
        forbid_ops=frozenset({"aten.native_layer_norm"}),
        forbid_names=frozenset({"*Norm", "*Norm?d", "*_norm_impl*", "torch.nn.functional.*norm"})
        | frozenset(f"*{kind}_norm*" for kind in ("layer", "group", "batch", "instance", "rms")),
    ),
)


@layer_norm.reference
class _LayerNorm(nn.Module):
    def __init__(self, width, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width))

    def forward(self, x):
        centred = x - x.mean(-1, keepdim=True)
        variance = centred.square().mean(-1, keepdim=True)
        return centred / torch.sqrt(variance + self.eps) * self.weight + self.bias


@layer_norm.cases
def _(draw):
    def fresh(part, x, shown="", **eps):
        def play(subject):
            came = subject(x.shape[-1], **eps).call("__call__", x)
            return {"but for a factor": not but_for_a_factor(came, x, **eps), "output": came}

        words = (
            "each row of the output is the right row times a factor: ε or the variance may be "
            "wrong."
        )
        places = {"['but for a factor']": words, "['output']": "the output"}
        return Case(part, play, shown=shown, places=places)

    def but_for_a_factor(came, x, eps=1e-5):
        """Whether the rows are the right rows times a factor that is clearly not 1."""
        centred = x - x.mean(-1, keepdim=True)
        right = centred / (centred.square().mean(-1, keepdim=True) + eps).sqrt()
        if not isinstance(came, torch.Tensor) or came.shape != x.shape or not (right.abs() > 0.1).any():
            return False
        factor = (came * right).sum(-1, keepdim=True) / right.square().sum(-1, keepdim=True)
        off = ((factor - 1).abs() > 0.01).all() and (factor > 0.01).all()
        return bool(off and torch.allclose(came, factor * right, rtol=1e-3, atol=1e-4))

    def normalised(x):
        upstream = draw.tensor(x.shape)

        def play(subject):
            made = subject(x.shape[-1])
            came = made.call("__call__", x)
            return moments(came, x), came, pull(made, upstream, x, "x")

        places = {
            "[0]['mean']": "the rows of the output don't have a mean of 0.",
            "[0]['variance']": "the rows of the output don't have a variance of 1.",
            "[1]": "the output",
            **places_of_pull("[2]", x="x"),
        }
        return Case("normalised", play, places=places)

    def moments(came, x):
        """Whether each row has a mean near 0, and a variance near 1 if the variance of x is large."""
        if not isinstance(came, torch.Tensor) or came.shape != x.shape:
            return {"mean": True, "variance": True}
        large = x.var(-1, correction=0) > 0.1
        return {
            "mean": bool((came.mean(-1).abs() < 0.02).all()),
            "variance": bool(((came.var(-1, correction=0) - 1).abs() < 0.05)[large].all()),
        }

    def steady(level):
        """The gradient for a constant row must be the same as for a nearly constant row.

        This case does not test whether that gradient is right. Other cases do.
        """
        x = level + torch.stack([torch.zeros(8), 1e-4 * torch.linspace(-1, 1, 8)])
        upstream = draw.tensor((8,)).expand(2, 8)

        def play(subject):
            found = subject(8).gradients(upstream, x)["arguments"][0]
            if not isinstance(found, torch.Tensor):
                return True
            constant, nearly = found
            return bool((constant - nearly).abs().max() <= 0.2 * nearly.abs().max())

        places = {"": "the gradient of x is wrong where a row is constant."}
        return Case("small and large inputs", play, shown="constant rows", places=places)

    def loaded(x, weight, bias):
        upstream = draw.tensor(x.shape)

        def play(subject):
            made = subject(x.shape[-1])
            made.call("load_state_dict", {"weight": weight, "bias": bias})
            return made.call("__call__", x), pull(made, upstream, x, "weight", "bias")

        words = {"weight": "the weight", "bias": "the bias"}
        places = {"[0]": "the output", **places_of_pull("[1]", **words)}
        return Case("scale and shift", play, places=places)

    def spread(x):
        """Spread the numbers of each row: if a row is nearly constant, ε changes its gradient.
        """
        return x.add_(torch.linspace(-2, 2, x.shape[-1]))

    def pair(width):
        return draw.tensor((width,)), draw.tensor((width,))

    for layout in LAYOUTS:
        n, t = draw.sample(range(2, 6), 2)
        width = draw.integer(7, 12)
        flat = laid_out(draw, (n, width), layout)
        flat = flat if layout == "expanded" else spread(flat)
        yield normalised(flat)
    yield loaded(flat, *pair(width))
    deep = spread(laid_out(draw, (n, t, width), "transposed"))
    yield normalised(deep)
    yield loaded(deep, *pair(width))
    for shape in ((9,), (2, 1, 3, 9)):
        yield normalised(spread(draw.tensor(shape)))
    for shape in ((9,), (0, 9)):
        yield loaded(spread(draw.tensor(shape)), *pair(9))
    small, wide = draw.tensor((3, 8)), draw.tensor((4, 64))
    part = "small and large inputs"
    yield fresh(part, small / 500, "rows nearly constant")
    yield fresh(part, small / 10, "another eps", eps=0.01)
    yield fresh(part, torch.zeros(2, 5) + draw.integer(1, 9), "constant rows")
    yield fresh(part, torch.zeros(2, 5), "rows of zeros")
    yield fresh(part, draw.tensor((3, 1)), "rows of one entry")
    yield fresh(part, wide + 1000, "rows with a mean of 1,000")
    yield fresh(part, wide - 1000, "rows with a mean of -1,000")
    yield steady(0.0)
    yield steady(2.0)
