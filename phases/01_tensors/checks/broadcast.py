"""Lab 01, exercise 6: Broadcast two shapes"""

import torch

from hood.judge.checks.exercise import ByHand, Case, Check

from .shared import ASKS_WHERE, beyond, ignore_size_one

broadcast = Check(
    "broadcast",
    parts={"equal ranks": 1, "different ranks": 1, "sizes of 0": 1, "clashes": 1},
    reads="Broadcasting: a view with stride 0",
    by_hand=ByHand(
        "the exercise is to compute shape and strides from the numbers, and not to ask torch for them",
        forbid_names=ASKS_WHERE
        | {"*broadcast*", "expand*", "meshgrid", "*empty*", "zeros*", "ones*"}
        | {"numpy.*broadcast*", "numpy.nditer", "numpy.meshgrid"},
        # the other parts need no rule: they ask for strides that no tensor or array can have
        parts=frozenset({"clashes"}),
    ),
)

HUGE, NO_CLASH = "sizes and strides beyond int64", "sizes and strides beyond int64, and no clash"


def _broadcast_case(part, a, b, shown=""):
    told = {"[0]": "the common shape", "[1]": "the strides of a", "[2]": "the strides of b"}

    def play(subject):
        came = subject(*a, *b)
        if shown == NO_CLASH:
            return "no ValueError"  # other parts test the rest of the result
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

    raises = "ValueError" if part == "clashes" and shown != NO_CLASH else ""
    return Case(part, play, shown=shown, places=told, raises=raises)


@broadcast.reference
def _(shape_a, strides_a, shape_b, strides_b):
    rank = max(len(shape_a), len(shape_b))
    a, b = ([1] * (rank - len(shape)) + [*shape] for shape in (shape_a, shape_b))
    if any(m != n and 1 not in (m, n) for m, n in zip(a, b, strict=True)):
        raise ValueError("the shapes do not fit")
    common = tuple(n if m == 1 else m for m, n in zip(a, b, strict=True))

    def read(sizes, strides):
        steps = [0] * (rank - len(strides)) + [*strides]
        together = zip(sizes, common, steps, strict=True)
        return tuple(step if size == whole else 0 for size, whole, step in together)

    return common, read(a, strides_a), read(b, strides_b)


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
    # no tensor or array can have such sizes or strides
    a, b, c = draw.shape(3)
    long, step, other = (beyond(draw) for _ in range(3))
    wide = (long, 1), (step, other)
    yield _broadcast_case("equal ranks", wide, ((1, b), (step, step + 1)), HUGE)
    yield _broadcast_case("different ranks", wide, ((b,), (other + 1,)), HUGE)
    yield _broadcast_case("different ranks", ((c,), (step,)), ((a, long, c), (1, step, other)), HUGE)
    yield _broadcast_case("sizes of 0", ((long, 1), (1, 1)), ((0,), (1,)), HUGE)
    yield _broadcast_case("clashes", wide, ((long, b), (other, step)), NO_CLASH)
    yield _broadcast_case("clashes", wide, ((long + 1, 1), (other, step)), HUGE)
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
