"""Lab 01, exercise 6: Broadcast two shapes"""

import torch

from utils.checks.exercise import ByHand, Case, Check, edited

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


def _broadcast(shape_a, strides_a, shape_b, strides_b):
    rank = max(len(shape_a), len(shape_b))
    shape_a = (1,) * (rank - len(shape_a)) + tuple(shape_a)
    shape_b = (1,) * (rank - len(shape_b)) + tuple(shape_b)
    strides_a = (0,) * (rank - len(strides_a)) + tuple(strides_a)
    strides_b = (0,) * (rank - len(strides_b)) + tuple(strides_b)
    shape = []
    for a, b in zip(shape_a, shape_b):
        if a != b and 1 not in (a, b):
            raise ValueError("the shapes do not fit")
        shape.append(b if a == 1 else a)
    out_a = tuple(0 if n == 1 else s for s, n in zip(strides_a, shape_a))
    out_b = tuple(0 if n == 1 else s for s, n in zip(strides_b, shape_b))
    return tuple(shape), out_a, out_b


@broadcast.misconception(
    "aligned on the left",
    "the shapes are aligned at their first dimension; broadcasting aligns them at the last.",
    earns=1,
)
def _(shape_a, strides_a, shape_b, strides_b):
    shape, out_a, out_b = [], [], []
    for dim in range(max(len(shape_a), len(shape_b))):
        size_a = shape_a[dim] if dim < len(shape_a) else 1
        size_b = shape_b[dim] if dim < len(shape_b) else 1
        if size_a != size_b and 1 not in (size_a, size_b):
            raise ValueError("the shapes do not fit")
        size = size_b if size_a == 1 else size_a
        shape.append(size)
        out_a.append(strides_a[dim] if size_a == size and dim < len(shape_a) else 0)
        out_b.append(strides_b[dim] if size_b == size and dim < len(shape_b) else 0)
    return tuple(shape), tuple(out_a), tuple(out_b)


@broadcast.misconception(
    "the larger size wins",
    "of two sizes the larger came out, whatever they were; only a size of 1 may be stretched.",
    earns=2,
)
def _(shape_a, strides_a, shape_b, strides_b):
    rank = max(len(shape_a), len(shape_b))
    shape_a = (1,) * (rank - len(shape_a)) + tuple(shape_a)
    shape_b = (1,) * (rank - len(shape_b)) + tuple(shape_b)
    strides_a = (0,) * (rank - len(strides_a)) + tuple(strides_a)
    strides_b = (0,) * (rank - len(strides_b)) + tuple(strides_b)
    shape = tuple(max(a, b) for a, b in zip(shape_a, shape_b))
    out_a = tuple(s if n == size else 0 for s, n, size in zip(strides_a, shape_a, shape))
    out_b = tuple(s if n == size else 0 for s, n, size in zip(strides_b, shape_b, shape))
    return shape, out_a, out_b


broadcast.misconception(
    "a 1 that will not shrink",
    "where 1 meets 0, 1 came out; a size of 1 becomes whatever the other is, also 0.",
    earns=3,
)(edited(_broadcast, ("b if a == 1 else a", "max(a, b)")))
broadcast.misconception(
    "stretched, but still stepping",
    "a stretched dimension kept its stride, so each step along it would leave the tensor.",
    earns=1,
)(
    edited(
        _broadcast,
        ("(0,) * (rank - len(strides_a))", "(1,) * (rank - len(strides_a))"),
        ("(0,) * (rank - len(strides_b))", "(1,) * (rank - len(strides_b))"),
        ("0 if n == 1 else s for s, n in zip(strides_a, shape_a)", "s for s in strides_a"),
        ("0 if n == 1 else s for s, n in zip(strides_b, shape_b)", "s for s in strides_b"),
    )
)  # fmt: skip


@broadcast.misconception(
    "strides of the stretched copy",
    "these are the strides of a tensor that is repeated in memory; broadcasting copies nothing.",
    earns=1,
)
def _(shape_a, strides_a, shape_b, strides_b):
    rank = max(len(shape_a), len(shape_b))
    shape_a = (1,) * (rank - len(shape_a)) + tuple(shape_a)
    shape_b = (1,) * (rank - len(shape_b)) + tuple(shape_b)
    shape = []
    for a, b in zip(shape_a, shape_b):
        if a != b and 1 not in (a, b):
            raise ValueError("the shapes do not fit")
        shape.append(b if a == 1 else a)
    strides, step = [], 1
    for size in reversed(shape):
        strides.insert(0, step)
        step *= size
    return tuple(shape), tuple(strides), tuple(strides)


@broadcast.alternate("from the right, one size at a time")
def _(shape_a, strides_a, shape_b, strides_b):
    shape, out_a, out_b = [], [], []
    for k in range(1, max(len(shape_a), len(shape_b)) + 1):
        a = shape_a[-k] if k <= len(shape_a) else 1
        b = shape_b[-k] if k <= len(shape_b) else 1
        if a == b:
            size = a
        elif a == 1:
            size = b
        elif b == 1:
            size = a
        else:
            raise ValueError(f"size {a} against size {b}")
        shape.insert(0, size)
        out_a.insert(0, 0 if a == 1 else strides_a[-k])
        out_b.insert(0, 0 if b == 1 else strides_b[-k])
    return shape, out_a, out_b


broadcast.equivalent(
    ("zip(shape_a, shape_b", "zip(shape_b, shape_a"),
    because="the common shape is the same whichever operand comes first",
)
broadcast.equivalent(
    ("padded(strides, 0)", "padded(strides, 1)"),
    ("padded(strides, 0)", "padded(strides, -1)"),
    because="a new dimension is stretched, to a step of 0, or its stride does not matter",
)
broadcast.equivalent(
    ("len(shape_a)", "len(strides_a)"),
    ("len(shape_b)", "len(strides_b)"),
    because="an operand has a stride for each size",
)
