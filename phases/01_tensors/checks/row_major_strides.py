"""Lab 01, exercise 2: Row-major strides"""

import math

import torch

from utils.checks.exercise import ByHand, Check, case

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


@row_major_strides.misconception(
    "column-major", "the first dimension got stride 1: that is Fortran's order, not C's.", earns=0
)
def _(shape):
    strides, step = [], 1
    for size in shape:
        strides.append(step)
        step *= max(size, 1)
    return tuple(strides)


@row_major_strides.misconception(
    "strides in bytes",
    "the steps are in bytes of a float32. NumPy counts so; torch counts elements.",
    earns=0,
)
def _(shape):
    strides, step = [], 4
    for size in reversed(shape):
        strides.insert(0, step)
        step *= max(size, 1)
    return tuple(strides)


@row_major_strides.misconception(
    "own size included",
    "each stride holds its own dimension's size too, so that the last one is not 1.",
    earns=0,
)
def _(shape):
    strides, step = [], 1
    for size in reversed(shape):
        step *= max(size, 1)
        strides.insert(0, step)
    return tuple(strides)


@row_major_strides.misconception(
    "multiplied by a size of 0",
    "a dimension of size 0 turned all the strides before it into 0.",
    earns=2,
)
def _(shape):
    strides, step = [], 1
    for size in reversed(shape):
        strides.insert(0, step)
        step *= size
    return tuple(strides)


@row_major_strides.misconception(
    "a product of 0 taken for 1",
    "before a size of 0 all strides became 1; the other sizes still count there.",
    earns=2,
)
def _(shape):
    return tuple(max(1, math.prod(shape[dim + 1 :])) for dim in range(len(shape)))


@row_major_strides.misconception(
    "no step where the size is 1",
    "a dimension of size 1 got stride 0; torch gives it the step that it would have.",
    earns=2,
)
def _(shape):
    strides, step = [], 1
    for size in reversed(shape):
        strides.insert(0, 0 if size == 1 else step)
        step *= max(size, 1)
    return tuple(strides)


@row_major_strides.misconception(
    "step 1 where the size is 1",
    "a dimension of size 1 got stride 1; torch gives it the step that it would have.",
    earns=2,
)
def _(shape):
    strides, step = [], 1
    for size in reversed(shape):
        strides.insert(0, 1 if size == 1 else step)
        step *= max(size, 1)
    return tuple(strides)


@row_major_strides.misconception(
    "the neighbour's size alone",
    "each stride is the size of the next dimension, whatever lies further to the right.",
    earns=0,
)
def _(shape):
    return tuple(max(size, 1) for size in (*shape[1:], 1)[: len(shape)])


@row_major_strides.alternate("a product for each dimension")
def _(shape):
    sizes = [max(size, 1) for size in shape]
    return tuple(math.prod(sizes[i + 1 :]) for i in range(len(sizes)))


@row_major_strides.alternate("a helper that is called stride")
def _(shape):
    def stride(dim):
        return math.prod(max(size, 1) for size in shape[dim + 1 :])

    return tuple(stride(dim) for dim in range(len(shape)))


@row_major_strides.alternate("a list instead of a tuple")
def _(shape):
    strides = [1] * len(shape)
    for i in range(len(shape) - 2, -1, -1):
        strides[i] = strides[i + 1] * (shape[i + 1] or 1)
    return strides
