"""Lab 01, exercise 5: Can `view` do it?"""

import torch

from utils.checks.exercise import ByHand, Case, Check, Place, edited

from .shared import ASKS_WHERE, ignore_size_one

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
        "the exercise is to decide it from the numbers; torch would decide it for you",
        forbid_names=ASKS_WHERE
        | {"view*", "reshape*", "unflatten", "*empty*", "numpy.reshape", "numpy.*ravel*"},
    ),
)


def _view_case(part, shape, strides, new_shape, refused=""):
    def play(subject):
        return ignore_size_one(subject(shape, strides, new_shape), new_shape)

    exists = {"": Place("a view that exists", returned=False)}  # None is an answer here
    return Case(part, play, shown=refused, places={} if refused else exists)


@view_strides.reference
def _(shape, strides, new_shape):
    try:
        return torch.empty_strided(shape, strides, device="meta").view(new_shape).stride()
    except RuntimeError:
        return None


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
        ("rows with gaps, cut up anew", (a, 2 * b), (4 * b, 1), (2, a, b)),
        ("the first two dimensions exchanged", (b, a, c), (c, b * c, 1), (a * b * c,)),
        ("rows with gaps, cut up anew", (3, 4), (8, 1), (2, 2, 3)),
        ("each element stretched to a row", (a, b), (b, 0), (a * b,)),
    ):
        yield _view_case("views that do not exist", *asked, refused)
    # dims 1 and 2 are one chunk, dim 0 is another
    gap = (2 * b * c, c, 1)
    for new_shape in ((a, b * c), (a, c, b), (a, b, c, 1)):
        yield _view_case("partly contiguous", (a, b, c), gap, new_shape)
    # a transposed matrix of pairs: each half may be merged or split, never joined with the other
    yield _view_case("partly contiguous", (b, 4, a), (1, a * b, b), (b, 2, 2, a))
    yield _view_case("partly contiguous", (c, a, b), (1, b * c, c), (c, a * b))
    yield _view_case("partly contiguous", (a, b), (3 * b, 3), (a * b,))
    yield _view_case("partly contiguous", (a, b), (0, 1), (a, b, 1))
    yield _view_case("partly contiguous", (a, b), (0, 0), (a * b,))
    yield _view_case("sizes of 1", (a, 1, c), (c, 99, 1), (a * c,))
    yield _view_case("sizes of 1", (1, a, 1, b), (7, b, 5, 1), (b, a))
    yield _view_case("sizes of 1", (a, 1, b), (2 * b, 2 * b, 1), (a, b, 1))
    yield _view_case("sizes of 1", (a * b,), (3,), (1, a, 1, b, 1))
    yield _view_case("sizes of 1", (a, b, 1), (b, 1, 1), (a * b,))
    yield _view_case("sizes of 1", (a, b, 1), (b, 1, 99), (a * b,))
    yield _view_case("sizes of 1", (1, 1), (5, 7), (1,))
    yield _view_case("sizes of 1", (1,), (7,), (1, 1, 1))


def _view_strides(shape, strides, new_shape):
    answer, view_dim = [0] * len(new_shape), len(new_shape) - 1
    base, have, want = strides[-1], 1, 1
    for dim in range(len(shape) - 1, -1, -1):
        have *= shape[dim]
        if dim == 0 or (shape[dim - 1] != 1 and strides[dim - 1] != have * base):
            while view_dim >= 0 and (want < have or new_shape[view_dim] == 1):
                answer[view_dim] = want * base
                want *= new_shape[view_dim]
                view_dim -= 1
            if want != have:
                return None
            if dim > 0:
                base, have, want = strides[dim - 1], 1, 1
    return tuple(answer)


@view_strides.misconception(
    "anything can be viewed",
    "the strides are those of a fresh contiguous tensor, whatever the input's were.",
    earns=1,
)
def _(shape, strides, new_shape):
    answer, step = [], 1
    for size in reversed(new_shape):
        answer.insert(0, step)
        step *= size
    return tuple(answer)


@view_strides.misconception(
    "only contiguous tensors can be viewed",
    "every view of a non-contiguous tensor is refused; it is enough that each chunk is kept or "
    "cut up within itself.",
    earns=2,
)
def _(shape, strides, new_shape):
    def contiguous_strides(sizes):
        answer, step = [], 1
        for size in reversed(sizes):
            answer.insert(0, step)
            step *= size
        return tuple(answer)

    if tuple(strides) != contiguous_strides(shape):
        return None
    return contiguous_strides(new_shape)


view_strides.misconception(
    "a size of 1 breaks the chunk",
    "a dimension of size 1 whose stride does not fit made the view impossible, though no step is "
    "ever taken there.",
    earns=4,
)(edited(_view_strides, ("shape[dim - 1] != 1 and ", "")))
view_strides.misconception(
    "every chunk has step 1",
    "the strides in each chunk are as if its last one were 1; a chunk has a step of its own.",
    earns=2,
)(edited(_view_strides, ("want * base", "want")))


@view_strides.misconception(
    "contiguous but for sizes of 1",
    "every view was refused of what is not contiguous, sizes of 1 apart; it is enough that each "
    "chunk is kept or cut up within itself.",
    earns=2,
)
def _(shape, strides, new_shape):
    step = 1
    for size, stride in zip(reversed(shape), reversed(strides)):
        if size != 1 and stride != step:
            return None
        step *= size
    answer, step = [], 1
    for size in reversed(new_shape):
        answer.insert(0, step)
        step *= size
    return tuple(answer)


@view_strides.misconception(
    "no two dimensions in one chunk",
    "a new size larger than the old one was refused, also where the old one's neighbour continues "
    "it, as if dimensions were never merged.",
    earns=1,
)
def _(shape, strides, new_shape):
    chunks = [[size, stride] for size, stride in zip(shape, strides) if size != 1]
    answer = []
    for size in reversed(new_shape):
        if size == 1:
            answer.insert(0, 0)
            continue
        length, step = chunks[-1]
        if length % size:
            return None
        answer.insert(0, step)
        chunks[-1] = [length // size, step * size]
        if chunks[-1][0] == 1:
            chunks.pop()
    return tuple(answer)


@view_strides.alternate("lay out every offset and look")
def _(shape, strides, new_shape):
    offsets = [0]
    for size, stride in zip(shape, strides):
        offsets = [o + i * stride for o in offsets for i in range(size)]
    answer, inner = [], 1
    for size in reversed(new_shape):
        answer.insert(0, offsets[inner] - offsets[0] if size > 1 else 0)
        inner *= size
    rebuilt = [0]
    for size, stride in zip(new_shape, answer):
        rebuilt = [o + i * stride for o in rebuilt for i in range(size)]
    return tuple(answer) if rebuilt == offsets else None


@view_strides.alternate("merge into chunks, then split the chunks")
def _(shape, strides, new_shape):
    chunks = []
    for size, stride in zip(shape, strides):
        if size == 1:
            continue
        if chunks and chunks[-1][1] == size * stride:
            chunks[-1] = [chunks[-1][0] * size, stride]
        else:
            chunks.append([size, stride])
    answer = []
    for size in reversed(new_shape):
        if size == 1:
            answer.insert(0, 0)
            continue
        length, step = chunks[-1]
        if length % size:
            return None
        answer.insert(0, step)
        chunks[-1] = [length // size, step * size]
        if chunks[-1][0] == 1:
            chunks.pop()
    return tuple(answer)


view_strides.equivalent(
    ("if size == 1", "if size <= 1"),
    ("if size > 1", "if size != 1"),
    ("length % size != 0", "length % size > 0"),
    ("chunks[-1][0] == 1", "chunks[-1][0] <= 1"),
    because="both shapes hold an element, so no size and no length is less than 1",
)
view_strides.equivalent(
    ("result.append(1)", "result.append(2)"),
    ("result.append(1)", "result.append(0)"),
    ("if size > 1 else 0", "if size > 1 else 1"),
    ("if size > 1 else 0", "if size > 1 else -1"),
    ("answer.insert(0, 0)", "answer.insert(0, 1)"),
    ("answer.insert(0, 0)", "answer.insert(0, -1)"),
    because="the stride of a dimension of size 1 does not matter",
)
view_strides.equivalent(
    ("length // size", "length / size"),
    because="the division leaves no rest, and strides are made of the other number",
)
view_strides.equivalent(
    ("offsets[inner] - offsets[0]", "offsets[inner] + offsets[0]"),
    ("offsets[inner] - offsets[0]", "offsets[inner]"),
    because="the first offset is 0",
)
