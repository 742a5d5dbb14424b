"""Lab 03, exercise 2: Linear"""

import math

import torch
from torch import nn

from utils.checks import ByHand, Case, Check, edited

from .shared import LAYOUTS, RAW, SUMS, shapes_of

linear = Check(
    "Linear",
    parts={"what is registered": 1, "forward": 1, "fresh weights": 1},
    reads="One line of magic",
    tolerance=SUMS,
    by_hand=ByHand(
        "write the product and the sum yourself",
        forbid_ops=frozenset({"aten.addmm", "aten.linear"}),
    ),
)


@linear.reference
class _Linear(nn.Module):
    def __init__(self, in_features, out_features, bias=True):
        super().__init__()
        bound = 1 / math.sqrt(in_features)
        self.weight = nn.Parameter(torch.empty(out_features, in_features).uniform_(-bound, bound))
        bias = nn.Parameter(torch.empty(out_features).uniform_(-bound, bound)) if bias else None
        self.register_parameter("bias", bias)

    def forward(self, x):
        y = x @ self.weight.T
        return y if self.bias is None else y + self.bias


@linear.cases
def _(draw):
    def registered(*args):
        def play(subject):
            made = subject(*args)
            return shapes_of(made), made.get("weight").requires_grad

        return Case("what is registered", play)

    def forward(x, state, *args):
        def play(subject):
            made = subject(*args)
            made.call("load_state_dict", state)
            y = made.call("__call__", x)
            return y, y.requires_grad

        return Case("forward", play)

    def fresh(into, out):
        def play(subject):
            one, two = subject(into, out), subject(into, out)
            bound = 1 / math.sqrt(into)
            found = {}
            for name in ("weight", "bias"):
                values = one.get(name).detach().abs()
                found[name] = {
                    "in bounds": bool(values.max() <= bound * (1 + 1e-6)),
                    # of 200 uniform draws, the largest is above 0.9 and the mean near 0.5
                    "reaching them": bool(values.max() > 0.9 * bound),
                    "even": bool(0.35 * bound < values.mean() < 0.65 * bound),
                    "new each time": not torch.equal(one.get(name), two.get(name)),
                }
            return found

        return Case("fresh weights", play)

    for layout in LAYOUTS:
        n, t, i, o = draw.shape(4)
        weight, bias = draw.tensor((o, i)), draw.tensor((o,))
        yield registered(i, o)
        yield registered(i, o, False)
        yield forward(draw.tensor((n, i), layout=layout), {"weight": weight, "bias": bias}, i, o)
        yield forward(draw.tensor((n, t, i), layout=layout), {"weight": weight}, i, o, False)
        yield forward(draw.tensor((i,), layout=layout), {"weight": weight, "bias": bias}, i, o)
    yield fresh(draw.integer(20, 60), draw.integer(200, 300))


linear.misconception("raw tensors", RAW, earns=1)(
    edited(
        _Linear,
        ("nn.Parameter(torch.empty(out_features, in_features).uniform_(-bound, bound))",
         "torch.empty(out_features, in_features).uniform_(-bound, bound).requires_grad_()"),
        ("nn.Parameter(torch.empty(out_features).uniform_(-bound, bound)) if",
         "torch.empty(out_features).uniform_(-bound, bound).requires_grad_() if"),
        ("self.register_parameter('bias', bias)", "self.bias = bias"),
    )
)  # fmt: skip
linear.misconception(
    "weight stored as (in, out)",
    "the weight has its dimensions exchanged: no checkpoint of nn.Linear fits it.",
    earns=1,
)(
    edited(
        _Linear,
        ("torch.empty(out_features, in_features)", "torch.empty(in_features, out_features)"),
        ("self.weight.T", "self.weight"),
    )
)
linear.misconception(
    "weight.data in forward",
    "the forward reads the numbers past autograd, so that no gradient reaches the weight.",
    earns=2,
)(edited(_Linear, ("self.weight.T", "self.weight.data.T")))
linear.misconception(
    "the bias can't be left out", "there is a bias also where none was asked for.", earns=1
)(edited(_Linear, (" if bias else None", "")))
linear.misconception(
    "bounds from the outputs",
    "fresh weights lie within 1/√out; it is the number of summands, the inputs, that matters.",
    earns=2,
)(edited(_Linear, ("math.sqrt(in_features)", "math.sqrt(out_features)")))
linear.misconception(
    "fresh zeros", "all fresh weights are 0, and so are the gradients of a network of them.",
    earns=2,
)(
    edited(
        _Linear,
        ("torch.empty(out_features, in_features).uniform_(-bound, bound)",
         "torch.zeros(out_features, in_features)"),
        ("torch.empty(out_features).uniform_(-bound, bound)", "torch.zeros(out_features)"),
    )
)  # fmt: skip
linear.misconception(
    "normal weights", "fresh weights are normal with deviation 1, whatever the number of inputs.",
    earns=2,
)(
    edited(
        _Linear,
        ("torch.empty(out_features, in_features).uniform_(-bound, bound)",
         "torch.randn(out_features, in_features)"),
        ("torch.empty(out_features).uniform_(-bound, bound)", "torch.randn(out_features)"),
    )
)  # fmt: skip


@linear.alternate("einsum, and nn.init")
class _EinsumLinear(nn.Module):
    def __init__(self, in_features, out_features, bias=True):
        super().__init__()
        self.weight = nn.Parameter(torch.empty((out_features, in_features)))
        nn.init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        self.bias = None
        if bias:
            self.bias = nn.Parameter(torch.empty(out_features))
            nn.init.uniform_(self.bias, -(in_features**-0.5), in_features**-0.5)

    def forward(self, x):
        y = torch.einsum("...i,oi->...o", x, self.weight)
        if self.bias is not None:
            y = y + self.bias
        return y
