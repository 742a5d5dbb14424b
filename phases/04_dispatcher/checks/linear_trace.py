"""Lab 04, exercise 3: What does a linear layer call?"""

import torch
import torch.nn.functional as F
from torch.utils._python_dispatch import TorchDispatchMode

from utils.checks.exercise import ByHand, Check, case, edited
from utils.checks.lab_solution import lab_solution

from .shared import LISTENING

linear_trace = Check(
    "linear_trace",
    parts={"with a bias": 2, "without": 1, "inference mode": 1},
    reads="The LM head seen from above",
    by_hand=ByHand(
        because="the function should know the rule, and not run a layer to find out",
        allow_names=LISTENING,
        forbid_names=frozenset({"linear", "Linear", "addmm", "mm", "matmul", "TorchDispatchMode"}),
    ),
)


class _Names(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.append(func.overloadpacket.__name__)
        return func(*args, **(kwargs or {}))


@linear_trace.reference
def _(shape, bias, inference):
    weight = torch.ones(3, shape[-1], requires_grad=True)
    offset = torch.ones(3, requires_grad=True) if bias else None
    x = torch.ones(shape)
    with torch.inference_mode(inference), _Names() as log:
        y = F.linear(x, weight, offset)
    return log.names, type(y.grad_fn).__name__ if y.grad_fn is not None else None


PLACES = {
    "[0]": "the list of operators",
    **{f"[0][{number}]": f"operator {number + 1} of the list" for number in range(4)},
    "[1]": "the grad_fn's name",
}


def _described(shape):
    """A shape's number of dimensions, and whether some are of size 1."""
    ones = f", {shape.count(1)} of size 1" if 1 in shape else ""
    return f"{len(shape)} dimension{'s' * (len(shape) > 1)}{ones}"


@linear_trace.cases
def _(draw):
    shapes = [draw.shape(rank) for rank in (1, 2, 3, 4)]
    shapes += [(1,), (1, 1), (draw.integer(2, 6), 1), (1, draw.integer(2, 6)), (1, 1, 1)]
    shapes += [(1, draw.integer(2, 6), 1), (1, 1, draw.integer(2, 6), 1)]
    for shape in shapes:
        for bias in (True, False):
            for inference in (False, True):
                part = "inference mode" if inference else "with a bias" if bias else "without"
                shown = f"{_described(shape)}, {'a' if bias else 'no'} bias"
                shown += ", inference mode" if inference else ""
                yield case(part, shape, bias, inference, shown=shown, places=PLACES)


_solution = lab_solution(__name__, "linear_trace")


linear_trace.misconception(
    "addmm whatever the shape",
    "a bias is taken to mean `t` and `addmm`, whatever the number of dimensions.",
    earns=2,
)(
    edited(
        _solution,
        (
            "if len(shape) == 2:\n            return (['t', 'addmm'], 'AddmmBackward0')\n        return (['view', 't', 'addmm', 'view'], 'ViewBackward0')",
            "return (['t', 'addmm'], 'AddmmBackward0')",
        ),
    )
)
linear_trace.misconception(
    "the product's grad_fn",
    "the grad_fn is that of `addmm` also where a view was called after it.",
    earns=2,
)(edited(_solution, ("'ViewBackward0'", "'AddmmBackward0'")))
linear_trace.misconception(
    "the transpose forgotten",
    "the weight's transpose is missing, which is an operator like any other.",
    earns=1,
)(
    edited(
        _solution,
        ("['t', 'addmm']", "['addmm']"),
        ("['view', 't', 'addmm', 'view']", "['view', 'addmm', 'view']"),
        ("['t', 'unsqueeze', 'mm', 'squeeze_']", "['unsqueeze', 'mm', 'squeeze_']"),
        ("['t', 'mm']", "['mm']"),
        ("['t', 'view', 'mm', '_unsafe_view']", "['view', 'mm', '_unsafe_view']"),
    )
)
linear_trace.misconception(
    "opened under inference mode",
    "under inference mode the composite is opened as elsewhere.",
    earns=3,
)(edited(_solution, ("if inference:\n        return (['linear'], None)\n    ", "")))
linear_trace.misconception(
    "a vector is a batch",
    "without a bias, a vector takes the way of three dimensions.",
    earns=3,
)(
    edited(
        _solution,
        (
            "if len(shape) == 1:\n        return (['t', 'unsqueeze', 'mm', 'squeeze_'], 'SqueezeBackward4')\n    ",
            "",
        ),
    )
)
linear_trace.misconception(
    "a vector by mv",
    "without a bias, a vector is taken to go into `mv`.",
    earns=3,
)(
    edited(
        _solution,
        ("(['t', 'unsqueeze', 'mm', 'squeeze_'], 'SqueezeBackward4')", "(['t', 'mv'], 'MvBackward0')"),
    )
)  # fmt: skip
linear_trace.misconception(
    "every node ends in 0",
    "the number behind `SqueezeBackward` is taken to be 0.",
    earns=3,
)(edited(_solution, ("'SqueezeBackward4'", "'SqueezeBackward0'")))
linear_trace.misconception(
    "squeeze for squeeze_",
    "a vector's last operator is taken to have no underscore at its end.",
    earns=3,
)(edited(_solution, ("'squeeze_']", "'squeeze']")))
linear_trace.misconception(
    "sizes of 1 are no dimensions",
    "dimensions of size 1 are not counted.",
    earns=1,
)(edited(_solution, ("if inference:", "shape = [size for size in shape if size > 1] or [1]\n    if inference:")))
linear_trace.misconception(
    "view at the end",
    "without a bias the last operator is `view`, as with one; it is `_unsafe_view`.",
    earns=3,
)(edited(_solution, ("'_unsafe_view'], 'UnsafeViewBackward0'", "'view'], 'ViewBackward0'")))
linear_trace.misconception(
    "a vector with a bias needs no view",
    "a vector with a bias goes straight into `addmm`, which takes matrices alone.",
    earns=2,
)(
    edited(
        _solution,
        (
            "if len(shape) == 2:\n            return (['t', 'addmm']",
            "if len(shape) <= 2:\n            return (['t', 'addmm']",
        ),
    )
)


@linear_trace.alternate("put together")
def _(shape, bias, inference):
    if inference:
        return (["linear"], None)
    matrix = len(shape) == 2
    product = "addmm" if bias else "mm"
    if matrix:
        names, node = ["t", product], product.capitalize()
    elif bias:
        names, node = ["view", "t", "addmm", "view"], "View"
    elif len(shape) == 1:
        return ["t", "unsqueeze", "mm", "squeeze_"], "SqueezeBackward4"
    else:
        names, node = ["t", "view", "mm", "_unsafe_view"], "UnsafeView"
    return names, node + "Backward0"


@linear_trace.alternate("a table")
def _(shape, bias, inference):
    rank = min(len(shape), 3)
    with_bias = {
        1: ("view t addmm view", "ViewBackward0"),
        2: ("t addmm", "AddmmBackward0"),
        3: ("view t addmm view", "ViewBackward0"),
    }
    without = {
        1: ("t unsqueeze mm squeeze_", "SqueezeBackward4"),
        2: ("t mm", "MmBackward0"),
        3: ("t view mm _unsafe_view", "UnsafeViewBackward0"),
    }
    traces = with_bias if bias else without
    names, node = ("linear", None) if inference else traces[rank]
    return names.split(), node


linear_trace.equivalent(
    ("len(shape) == 1", "len(shape) <= 1"),
    because="x has one dimension or more",
)
