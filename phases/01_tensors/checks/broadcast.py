"""Lab 01, exercise 6: Broadcast two shapes"""

import torch

from utils.checks.exercise import ByHand, Case, Check

from .shared import ASKS_WHERE, ignore_size_one

broadcast = Check(
    "broadcast",
    parts={"equal ranks": 1, "different ranks": 1, "sizes of 0": 1, "clashes": 1},
    reads="Broadcasting: a view with stride 0",
    by_hand=ByHand(
        "the exercise is to find shape and strides from the numbers; torch would find them for you",
        forbid_names=ASKS_WHERE
        | {"*broadcast*", "expand*", "meshgrid", "*empty*", "zeros*", "ones*"}
        | {"numpy.*broadcast*", "numpy.nditer", "numpy.meshgrid"},
    ),
)


def _broadcast_case(part, a, b, shown=""):
    told = {"[0]": "the common shape", "[1]": "the strides of a", "[2]": "the strides of b"}

    def play(subject):
        came = subject(*a, *b)
        if not isinstance(came, (tuple, list)) or len(came) != 3:
            return came
        shape, strides_a, strides_b = came
        if not isinstance(shape, (tuple, list)):
            return came
        return (
            shape,
            ignore_size_one(strides_a, shape),
            ignore_size_one(strides_b, shape),
        )

    return Case(part, play, shown=shown, places=told, raises="ValueError" if part == "clashes" else "")


@broadcast.reference
def _(shape_a, strides_a, shape_b, strides_b):
    a = torch.empty_strided(shape_a, strides_a, device="meta")
    b = torch.empty_strided(shape_b, strides_b, device="meta")
    try:
        a, b = torch.broadcast_tensors(a, b)
    except RuntimeError as error:
        raise ValueError("the shapes do not fit") from error
    return tuple(a.shape), a.stride(), b.stride()


@broadcast.cases
def _(draw):
    def operand(*shape, transposed=False):
        t = torch.empty(tuple(reversed(shape)) if transposed else shape, device="meta")
        t = t.permute(*reversed(range(len(shape)))) if transposed else t
        return tuple(t.shape), t.stride()

    for transposed in (False, True):
        a, b, c = draw.shape(3)
        yield _broadcast_case("equal ranks", operand(a, 1), operand(1, b, transposed=transposed))
        yield _broadcast_case(
            "equal ranks", operand(a, b, c, transposed=transposed), operand(a, 1, c)
        )
        yield _broadcast_case("equal ranks", operand(1, b, 1), operand(a, b, c))
        yield _broadcast_case("different ranks", operand(a, b, c), operand(c))
        yield _broadcast_case("different ranks", operand(b, 1), operand(a, 1, c))
        yield _broadcast_case("different ranks", operand(a, a, transposed=transposed), operand(a))
    a, b, c = draw.shape(3)
    for one, other in (((a, b), (a, b + 1)), ((a, b), (a,)), ((2 * a, b), (a, 1)), ((a,), (a, c))):
        if one[-1] != other[-1] or one[0] == 2 * a:
            yield _broadcast_case("clashes", operand(*one), operand(*other))
    stretched = ((a, b), (0, 1))
    yield _broadcast_case("equal ranks", stretched, operand(a, 1))
    yield _broadcast_case("clashes", stretched, operand(a + 1, b))
    yield _broadcast_case("clashes", operand(0, b), operand(a, b))
    yield _broadcast_case("clashes", operand(a, b), operand(b, 1, 0))
    yield _broadcast_case("equal ranks", operand(a, 1, b, 1), operand(1, c, 1, 1))
    yield _broadcast_case("equal ranks", operand(), operand(), "both without dimensions")
    yield _broadcast_case("different ranks", operand(a, b), operand())
    yield _broadcast_case("different ranks", operand(), operand(1, a))
    yield _broadcast_case("sizes of 0", operand(a, 1), operand(0))
    yield _broadcast_case("sizes of 0", operand(0, b), operand(1, b))
