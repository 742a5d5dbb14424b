"""Lab 03, exercise 2: Linear"""

import math

import torch
from torch import nn

from hood.judge.checks.exercise import ByHand, Case, Check

from .shared import LAYOUTS, RULE, SUMS, laid_out, places_of_pull, pull, shapes_of

linear = Check(
    "Linear",
    parts={"what is registered": 1, "forward": 1},
    reads="One line of magic",
    tolerance=SUMS,
    by_hand=ByHand(
        RULE.format("write the product and the sum yourself"),
        forbid_names=frozenset({"*Linear*", "*linear", "Bilinear"}),
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
        wanted = False not in args

        def play(subject):
            made = subject(*args)
            weight, bias = made.get("weight"), made.get("bias")
            trained = bias is None or not wanted or bias.requires_grad
            return shapes_of(made), weight.requires_grad, trained, bias is None

        places = {
            "[0]": "what is saved",
            "[0]['weight']": "the weight",
            "[0]['bias']": "the bias",
            "[1]": "the weight requires no gradient.",
            "[2]": "the bias requires no gradient.",
            "[3]": (
                "the attribute `bias` should be None if the layer is made with `bias=False`, and "
                "only then."
            ),
        }
        return Case("what is registered", play, places=places)

    def forward(x, state, *args):
        upstream = draw.tensor((*x.shape[:-1], args[1]))

        def play(subject):
            made = subject(*args)
            made.call("load_state_dict", state)
            return made.call("__call__", x), pull(made, upstream, x, "x", *state)

        words = {"x": "x", "weight": "the weight", "bias": "the bias"}
        places = {"[0]": "the output", **places_of_pull("[1]", **words)}
        return Case("forward", play, shown=f"x of {x.dim()} dimensions", places=places)

    for layout in LAYOUTS:
        n, t, i, o = draw.shape(4)
        weight, bias = draw.tensor((o, i)), draw.tensor((o,))
        both = {"weight": weight, "bias": bias}
        yield forward(laid_out(draw, (n, i), layout), both, i, o)
        yield forward(laid_out(draw, (n, t, i), layout), {"weight": weight}, i, o, False)
    for shape in ((i,), (2, 1, 3, i), (0, i), (1, i)):
        yield forward(draw.tensor(shape), both, i, o)
    weight, bias = draw.tensor((4, 4)), draw.tensor((4,))
    yield forward(draw.tensor((4, 4)), {"weight": weight, "bias": bias}, 4, 4)
    one = {"weight": weight[:1, :1], "bias": bias[:1]}
    yield forward(draw.tensor((3, 1)), one, 1, 1)
    for sizes in ((i, o), (1, 1)):
        yield registered(*sizes)
        yield registered(*sizes, False)
