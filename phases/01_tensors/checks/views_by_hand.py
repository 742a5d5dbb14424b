"""Lab 01, exercise 4: Four views, by hand"""

import torch

from hood.judge.checks.exercise import Case, Check, Paste, case

from .shared import beyond

views_by_hand = Check(
    "views_by_hand",
    parts={"transpose": 1, "narrow": 1, "expand": 1, "diagonal": 1},
    reads="Making a view by hand: as_strided",
    reads_by_part={"expand": "Broadcasting: a view with stride 0"},
    strides=True,
)

PLACES = {
    "[0]": "the shape of the view",
    "[1]": "the strides of the view",
    "[2]": "the storage offset of the view",
}


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

    def of_described(name, shape, *args, strides=None):
        """A case with a tensor that is only described, because its numbers are too large for torch.
        """
        layout = shape, strides or tuple(beyond(draw) for _ in shape), beyond(draw), torch.float32
        of = f"{name}_view"
        shows = {key: "{}" + f".{ask}" for key, ask in (("[0]", "shape"), ("[1]", "stride()"), ("[2]", "storage_offset()"))}
        paste = Paste(f"{of}(Described({{}}, {{}}, {{}}, {{}})" + ", {}" * len(args) + ")", (*layout, *args), shows)

        def play(subject):
            return subject.drive("described:asked", layout, *args, of=of)

        return Case(name, play, of, "a described tensor", PLACES, paste=paste)

    for rank in (2, 3):
        shape = draw.shape(rank, low=3)
        yield of_described("transpose", shape, *draw.sample(range(rank), 2))
        dim = draw.integer(0, rank - 1)
        yield of_described("narrow", shape, dim, 1, draw.integer(1, shape[dim] - 1))
    size, wide = draw.integer(3, 6), draw.integer(7, 9)
    yield of_described("expand", (size, 1, 1), (size, wide, 1))
    yield of_described("diagonal", (size, wide))
    yield of_described("diagonal", (wide, size))
    for x in inputs(3):
        dim0, dim1 = draw.sample(range(3), 2)
        yield case("transpose", x, dim0, dim1, of="transpose_view")
        dim = draw.integer(0, 1)
        start = draw.integer(1, x.size(dim) - 2)
        yield case("narrow", x, dim, start, x.size(dim) - start, of="narrow_view")
        length = draw.integer(1, x.size(2) - 1)
        yield case("narrow", x, 2, 0, length, of="narrow_view")
    for dims in ((0, 1), (2, 1)):
        yield case("transpose", draw.tensor((3, 4, 5)), *dims, of="transpose_view")
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
