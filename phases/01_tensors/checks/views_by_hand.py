"""Lab 01, exercise 4: Four views, by hand"""

import torch

from utils.checks.exercise import ByHand, Check, case

from .shared import BY_WAY_OF_NUMPY

views_by_hand = Check(
    "views_by_hand",
    parts={"transpose": 1, "narrow": 1, "expand": 1, "diagonal": 1},
    reads="Making a view by hand: as_strided",
    strides=True,
    sharing=True,
    by_hand=ByHand(
        "write sizes, strides and offset yourself, and make one call of `torch.as_strided`",
        allow_ops=frozenset({"aten.as_strided"}),
        forbid_names=BY_WAY_OF_NUMPY | {"set_"},
    ),
)


@views_by_hand.reference
class _:
    def transpose_view(x, dim0, dim1):
        sizes, strides = list(x.shape), list(x.stride())
        sizes[dim0], sizes[dim1] = sizes[dim1], sizes[dim0]
        strides[dim0], strides[dim1] = strides[dim1], strides[dim0]
        return torch.as_strided(x, sizes, strides)

    def narrow_view(x, dim, start, length):
        sizes = list(x.shape)
        sizes[dim] = length
        offset = x.storage_offset() + start * x.stride(dim)
        return torch.as_strided(x, sizes, x.stride(), offset)

    def expand_view(x, sizes):
        strides = [
            stride if size == wanted else 0
            for size, stride, wanted in zip(x.shape, x.stride(), sizes)
        ]
        return torch.as_strided(x, sizes, strides)

    def diagonal_view(x):
        return torch.as_strided(x, (min(x.shape),), (sum(x.stride()),))


@views_by_hand.cases
def _(draw):
    def inputs(rank):
        yield draw.tensor(draw.shape(rank, low=3))
        yield draw.tensor(draw.shape(rank, low=3), torch.float64, layout="transposed")
        yield draw.tensor(draw.shape(rank, low=3), torch.int64, layout="sliced")

    for x in inputs(3):
        dim0, dim1 = draw.sample(range(3), 2)
        yield case("transpose", x, dim0, dim1, of="transpose_view")
        dim = draw.integer(0, 1)
        start = draw.integer(1, x.size(dim) - 2)
        yield case("narrow", x, dim, start, x.size(dim) - start, of="narrow_view")
        length = draw.integer(1, x.size(2) - 1)
        yield case("narrow", x, 2, 0, length, of="narrow_view")
    for rank in (2, 4):
        x = draw.tensor(draw.shape(rank), layout="sliced")
        yield case("transpose", x, 0, rank - 1, of="transpose_view")
        yield case("narrow", x, rank - 1, 1, 1, of="narrow_view")
    yield case("narrow", draw.tensor((9,)), 0, 2, draw.integer(1, 5), of="narrow_view")
    for x in inputs(2):
        dim = draw.integer(0, 1)
        column = x.narrow(dim, 1, 1)
        sizes = list(column.shape)
        sizes[dim] = draw.integer(8, 12)
        yield case("expand", column, tuple(sizes), of="expand_view")
    yield case("expand", draw.tensor((3, 4))[1:2, 2], (draw.integer(2, 6),), of="expand_view")
    block = draw.tensor((5, 4, 6))[:, 1:2, 3:4]
    yield case("expand", block, (5, draw.integer(2, 6), 7), of="expand_view")
    corner = draw.tensor((4, 5))[2:3, 1:2]
    yield case("expand", corner, (draw.integer(3, 6), 1), of="expand_view")
    yield case("expand", draw.tensor((3, 1)), (3, 0), of="expand_view")
    yield case("diagonal", draw.tensor((4, 4), layout="sliced"), of="diagonal_view")
    yield case("diagonal", draw.tensor((3, 7)), of="diagonal_view")
    for x in inputs(2):
        yield case("diagonal", x, of="diagonal_view")
        yield case("diagonal", draw.tensor((8, draw.integer(3, 5))), of="diagonal_view")
    yield case("diagonal", draw.tensor((3, 3))[:, :1], of="diagonal_view")


@views_by_hand.misconception(
    "sizes exchanged, strides not",
    "the shape is right, but each dimension still walks with the other one's step.",
    earns=3,
)
class _:
    def transpose_view(x, dim0, dim1):
        sizes = list(x.shape)
        sizes[dim0], sizes[dim1] = sizes[dim1], sizes[dim0]
        return torch.as_strided(x, sizes, x.stride())


@views_by_hand.misconception(
    "start counted in elements",
    "the view begins `start` elements further along, whatever the stride of the dimension.",
    earns=3,
)
class _:
    def narrow_view(x, dim, start, length):
        sizes = list(x.shape)
        sizes[dim] = length
        return torch.as_strided(x, sizes, x.stride(), x.storage_offset() + start)


@views_by_hand.misconception(
    "offset of the input lost",
    "the view begins as if the input began at the start of its storage; it may begin further "
    "along.",
    earns=3,
)
class _:
    def narrow_view(x, dim, start, length):
        sizes = list(x.shape)
        sizes[dim] = length
        return torch.as_strided(x, sizes, x.stride(), start * x.stride(dim))


@views_by_hand.misconception(
    "strides of a contiguous tensor",
    "the strides are as if the input were contiguous; it has strides of its own.",
    earns=2,
)
class _:
    def expand_view(x, sizes):
        rows, columns = x.shape
        strides = (0 if rows != sizes[0] else columns, 0 if columns != sizes[1] else 1)
        return torch.as_strided(x, sizes, strides)

    def diagonal_view(x):
        return torch.as_strided(x, (min(x.shape),), (x.shape[1] + 1,))


@views_by_hand.misconception(
    "as long as there are rows",
    "the diagonal was given one element for each row, though a column ends it sooner.",
    earns=3,
)
class _:
    def diagonal_view(x):
        return torch.as_strided(x, (x.shape[0],), (sum(x.stride()),))


@views_by_hand.misconception(
    "a copy in place of a view",
    "the result owns its bytes: writing into it would not reach the input.",
    earns=0,
)
class _:
    def transpose_view(x, dim0, dim1):
        return x.transpose(dim0, dim1).contiguous()

    def narrow_view(x, dim, start, length):
        return x.narrow(dim, start, length).clone()

    def expand_view(x, sizes):
        return x.repeat([wanted // size for size, wanted in zip(x.shape, sizes)])

    def diagonal_view(x):
        return torch.stack([x[i, i] for i in range(min(x.shape))])


@views_by_hand.misconception(
    "narrowed from the beginning",
    "the narrow view begins where the input does, whatever `start` says.",
    earns=3,
)
class _:
    def narrow_view(x, dim, start, length):
        sizes = list(x.shape)
        sizes[dim] = length
        return torch.as_strided(x, sizes, x.stride())


@views_by_hand.misconception(
    "no steps in a stretched view",
    "every dimension of the stretched view has stride 0, so that it holds one element again and "
    "again.",
    earns=3,
)
class _:
    def expand_view(x, sizes):
        return torch.as_strided(x, sizes, [0] * len(sizes))


@views_by_hand.misconception(
    "a contiguous diagonal",
    "the step along the diagonal is the number of columns and one more, as if the input were "
    "contiguous.",
    earns=3,
)
class _:
    def diagonal_view(x):
        return torch.as_strided(x, (min(x.shape),), (x.shape[1] + 1,))


@views_by_hand.alternate("permuted lists and the method")
class _:
    def transpose_view(x, dim0, dim1):
        order = list(range(x.dim()))
        order[dim0], order[dim1] = dim1, dim0
        return x.as_strided([x.size(d) for d in order], [x.stride(d) for d in order])

    def narrow_view(x, dim, start, length):
        sizes = x.shape[:dim] + (length,) + x.shape[dim + 1 :]
        return x.as_strided(sizes, x.stride(), x.storage_offset() + start * x.stride()[dim])

    def expand_view(x, sizes):
        strides = list(x.stride())
        for dim in range(x.dim()):
            if x.size(dim) != sizes[dim]:
                strides[dim] = 0
        return x.as_strided(sizes, strides, x.storage_offset())

    def diagonal_view(x):
        rows, columns = x.shape
        step = x.stride(0) + x.stride(1)
        return x.as_strided([rows if rows < columns else columns], [step], x.storage_offset())


views_by_hand.equivalent(
    because="a size of 1 is stretched, never taken away",
)
views_by_hand.equivalent(
    ("strides, x.storage_offset())", "strides)"),
    ("[step], x.storage_offset())", "[step])"),
    because="without an offset as_strided begins where its input does",
)
views_by_hand.equivalent(
    ("rows < columns", "rows <= columns"), because="in a square matrix they are the same number"
)
