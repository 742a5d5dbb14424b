"""Lab 01, exercise 2: Row-major strides"""


import torch

from hood.judge.checks.exercise import ByHand, Check, case

from .shared import ASKS_WHERE

row_major_strides = Check(
    "row_major_strides",
    parts={"ordinary shapes": 2, "sizes of 0 and 1": 1},
    reads="Strides: how far is one step",
    by_hand=ByHand(
        "the exercise is to find the strides, not to ask a tensor or an array for them",
        forbid_names=ASKS_WHERE
        | {"view", "reshape", "unflatten", "numpy.reshape", "numpy.*ravel*", "numpy.indices"},
    ),
)


@row_major_strides.reference
def _(shape):
    return torch.empty(shape, device="meta").stride()


@row_major_strides.cases
def _(draw):
    for rank in (2, 3, 4, 5, 1):
        yield case("ordinary shapes", draw.shape(rank))
    a, b, c = draw.shape(3)
    yield case("ordinary shapes", ())
    for shape in ((a, 0, c), (a, 1, c), (0, a, b), (a, b, 0, c), (a, b, 0), (1,), (0,)):
        yield case("sizes of 0 and 1", shape)
