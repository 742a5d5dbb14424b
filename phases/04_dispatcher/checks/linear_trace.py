"""Lab 04, exercise 3: What does a linear layer call?"""

import torch
import torch.nn.functional as F
from torch.utils._python_dispatch import TorchDispatchMode

from hood.judge.checks.exercise import ByHand, Check, case

from .shared import LISTENING

linear_trace = Check(
    "linear_trace",
    parts={"with a bias": 2, "without": 1, "inference mode": 1},
    reads="The LM head seen from above",
    by_hand=ByHand(
        because="the function should apply the rule, and not run a layer to see what it calls",
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
    """The number of dimensions of a shape, and whether some of them have size 1."""
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
