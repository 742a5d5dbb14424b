"""Lab 01, exercise 5: Can `view` do it?"""

from itertools import product

from hood.judge.checks.exercise import ByHand, Case, Check, Place

from .shared import ASKS_WHERE, beyond, ignore_size_one

view_strides = Check(
    "view_strides",
    parts={
        "contiguous": 1,
        "views that do not exist": 1,
        "partly contiguous": 2,
        "sizes of 1": 1,
    },
    reads="When view works and when reshape copies",
    by_hand=ByHand(
        "the exercise is to decide from the numbers whether the view exists, and not to ask torch",
        forbid_names=ASKS_WHERE
        | {"view*", "reshape*", "unflatten", "*empty*", "numpy.reshape", "numpy.*ravel*"}
        # torch's own Python version of the rule, which accepts any numbers
        | {"_compute_stride"},
    ),
)


def _view_case(part, shape, strides, new_shape, refused=""):
    def play(subject):
        return ignore_size_one(subject(shape, strides, new_shape), new_shape)

    exists = {"": Place("a view that exists", returned=False)}  # None is an answer here
    return Case(part, play, shown=refused, places={} if refused else exists)


@view_strides.reference
def _(shape, strides, new_shape):
    def places(sizes, steps):
        every = product(*map(range, sizes))
        return [sum(i * step for i, step in zip(index, steps, strict=True)) for index in every]

    old, found, inner = places(shape, strides), [], 1
    for size in reversed(new_shape):
        found.insert(0, old[inner] - old[0] if size > 1 else 0)
        inner *= size
    return tuple(found) if places(new_shape, found) == old else None


@view_strides.cases
def _(draw):
    a, b, c = draw.sample((3, 4, 5, 6), 3)
    plain = (b * c, c, 1)
    for new_shape in ((a * b * c,), (a * b, c), (a, b * c), (c, a * b), (b, a, c)):
        yield _view_case("contiguous", (a, b, c), plain, new_shape)
    for refused, *asked in (
        ("a transposed matrix", (b, a), (1, b), (a * b,)),
        ("rows with gaps between them", (a, b), (2 * b, 1), (a * b,)),
        ("the last two dimensions exchanged", (a, c, b), (b * c, 1, c), (a, b * c)),
        ("rows with gaps, and a new dimension that crosses a gap", (a, 2 * b), (4 * b, 1), (2, a, b)),
        ("the first two dimensions exchanged", (b, a, c), (c, b * c, 1), (a * b * c,)),
        ("rows with gaps, and a new dimension that crosses a gap", (3, 4), (8, 1), (2, 2, 3)),
        ("rows that repeat one element", (a, b), (b, 0), (a * b,)),
    ):
        yield _view_case("views that do not exist", *asked, refused)
    # dims 1 and 2 are one chunk, dim 0 is another
    gap = (2 * b * c, c, 1)
    for new_shape in ((a, b * c), (a, c, b), (a, b, c, 1)):
        yield _view_case("partly contiguous", (a, b, c), gap, new_shape)
    # a transposed matrix of pairs: each chunk may be merged or split, but the two chunks can't be
    # joined
    yield _view_case("partly contiguous", (b, 4, a), (1, a * b, b), (b, 2, 2, a))
    yield _view_case("partly contiguous", (c, a, b), (1, b * c, c), (c, a * b))
    yield _view_case("partly contiguous", (a, b), (3 * b, 3), (a * b,))
    yield _view_case("partly contiguous", (a, b), (0, 1), (a, b, 1))
    yield _view_case("partly contiguous", (a, b), (0, 0), (a * b,))
    # no tensor has such strides, and `step` and `other` have no useful common factor
    step, other = beyond(draw), beyond(draw)
    words = "two dimensions with strides beyond int64"
    yield _view_case("views that do not exist", (a, b), (other, step), (a * b,), words)
    words = "three dimensions with strides beyond int64, the last two exchanged"
    yield _view_case("views that do not exist", (a, b, c), (other, step, b * step), (a, b * c), words)
    yield _view_case("partly contiguous", (a, b, c), (other, c * step, step), (a, b * c))
    yield _view_case("partly contiguous", (a, b * c), (other, step), (a, b, c))
    yield _view_case("sizes of 1", (a, 1, c), (c * step, other, step), (a * c,))
    yield _view_case("sizes of 1", (a, 1, c), (c, 99, 1), (a * c,))
    yield _view_case("sizes of 1", (1, a, 1, b), (7, b, 5, 1), (b, a))
    yield _view_case("sizes of 1", (a, 1, b), (2 * b, 2 * b, 1), (a, b, 1))
    yield _view_case("sizes of 1", (a * b,), (3,), (1, a, 1, b, 1))
    yield _view_case("sizes of 1", (a, b, 1), (b, 1, 1), (a * b,))
    yield _view_case("sizes of 1", (a, b, 1), (b, 1, 99), (a * b,))
    yield _view_case("sizes of 1", (1, 1), (5, 7), (1,))
    yield _view_case("sizes of 1", (1,), (7,), (1, 1, 1))
