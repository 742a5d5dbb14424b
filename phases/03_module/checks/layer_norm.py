"""Lab 03, exercise 4: LayerNorm"""

import torch
from torch import nn

from utils.checks import ByHand, Case, Check, edited
from utils.compare import Tolerance

from .shared import LAYOUTS, RAW

layer_norm = Check(
    "LayerNorm",
    parts={"normalised": 1, "scale and shift": 1, "small and large inputs": 1},
    reads="Layers are shapes",
    tolerance=Tolerance(1e-3, 3e-4, "a mean of 1,000 in float32 is known to 6e-5"),
    by_hand=ByHand(
        "the exercise is to write the norm", forbid_ops=frozenset({"aten.native_layer_norm"})
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
    def fresh(part, x, **eps):
        return Case(part, lambda subject: subject(x.shape[-1], **eps).call("__call__", x))

    def loaded(x, weight, bias):
        def play(subject):
            made = subject(x.shape[-1])
            made.call("load_state_dict", {"weight": weight, "bias": bias})
            y = made.call("__call__", x)
            return y, y.requires_grad, made.get("weight").requires_grad

        return Case("scale and shift", play)

    for layout in LAYOUTS:
        n, t = draw.sample(range(2, 6), 2)
        width = draw.integer(7, 12)
        flat, deep = draw.tensor((n, width), layout=layout), draw.tensor((n, t, width))
        yield fresh("normalised", flat)
        yield fresh("normalised", deep)
        yield loaded(flat, draw.tensor((width,)), draw.tensor((width,)))
        yield loaded(deep, draw.tensor((width,)), draw.tensor((width,)))
    small, wide = draw.tensor((3, 8)), draw.tensor((4, 64))
    part = "small and large inputs"
    yield fresh(part, small / 500)
    yield fresh(part, small / 10, eps=0.01)
    yield fresh(part, torch.zeros(2, 5) + draw.integer(1, 9))
    yield fresh(part, wide + 1000)


layer_norm.misconception(
    "variance divided by n - 1", "the variance is the sample's, divided by n - 1.", earns=0
)(
    edited(
        _LayerNorm,
        ("centred.square().mean(-1, keepdim=True)", "x.var(-1, keepdim=True)"),
    )
)
layer_norm.misconception(
    "eps outside of the root",
    "ε was added to the deviation. It belongs to the variance, and the two differ where that is "
    "small.",
    earns=2,
)(edited(_LayerNorm, ("torch.sqrt(variance + self.eps)", "(torch.sqrt(variance) + self.eps)")))
layer_norm.misconception(
    "no eps", "nothing keeps a nearly constant row from a division by nearly nothing.", earns=2
)(edited(_LayerNorm, ("variance + self.eps", "variance")))
layer_norm.misconception("eps fixed", "ε is 1e-5 whatever was asked for.", earns=2)(
    edited(_LayerNorm, ("self.eps = eps", "self.eps = 1e-05"))
)
layer_norm.misconception(
    "over the batch", "the mean and the variance were taken over the rows, not within each.",
    earns=0,
)(
    edited(
        _LayerNorm,
        ("x.mean(-1, keepdim=True)", "x.mean(0, keepdim=True)"),
        ("centred.square().mean(-1, keepdim=True)", "centred.square().mean(0, keepdim=True)"),
    )
)  # fmt: skip
layer_norm.misconception(
    "over everything but the batch",
    "each sequence was normalised as a whole; each row has a mean and a variance of its own.",
    earns=1,
)(
    edited(
        _LayerNorm,
        ("x.mean(-1, keepdim=True)", "x.mean(tuple(range(1, x.dim())), keepdim=True)"),
        ("centred.square().mean(-1, keepdim=True)",
         "centred.square().mean(tuple(range(1, x.dim())), keepdim=True)"),
    )
)  # fmt: skip
layer_norm.misconception(
    "a difference of squares",
    "the variance is the mean of squares less the square of the mean: two large numbers, whose "
    "difference is mostly rounding.",
    earns=2,
)(
    edited(
        _LayerNorm,
        ("centred.square().mean(-1, keepdim=True)",
         "(x.square().mean(-1, keepdim=True) - x.mean(-1, keepdim=True) ** 2).clamp(min=0)"),
    )
)  # fmt: skip
layer_norm.misconception("raw tensors", RAW, earns=2)(
    edited(
        _LayerNorm,
        ("nn.Parameter(torch.ones(width))", "torch.ones(width, requires_grad=True)"),
        ("nn.Parameter(torch.zeros(width))", "torch.zeros(width, requires_grad=True)"),
    )
)
layer_norm.misconception(
    "shifted before it is scaled",
    "the bias was added first, and so was scaled with the rest.",
    earns=2,
)(edited(_LayerNorm, ("* self.weight + self.bias", "* self.weight + self.bias * self.weight")))


@layer_norm.alternate("var_mean and rsqrt")
class _VarMeanLayerNorm(nn.Module):
    def __init__(self, width, eps=1e-5):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(width)), nn.Parameter(torch.zeros(width))
        self.small = eps

    def forward(self, x):
        variance, mean = torch.var_mean(x, dim=-1, correction=0, keepdim=True)
        return torch.addcmul(
            self.bias, self.weight, (x - mean) * torch.rsqrt(variance + self.small)
        )
