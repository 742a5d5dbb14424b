"""Lab 01, exercise 3: Where is element (i, j, k)?"""

import math

import torch

from hood.judge.checks.exercise import Case, Check, Paste, case

from .shared import DTYPES, OTHERS, beyond

byte_offset = Check(
    "byte_offset",
    parts={"contiguous tensors": 1, "views with an offset": 1, "negative indices": 1},
    reads="The address of one element",
)


@byte_offset.reference
def _(t, index):
    inside = (range(size)[i] for i, size in zip(index, t.shape, strict=True))
    steps = (i * stride for i, stride in zip(inside, t.stride(), strict=True))
    return (t.storage_offset() + sum(steps)) * t.element_size()


@byte_offset.cases
def _(draw):
    def index_into(t):
        return tuple(draw.integer(1, size - 1) for size in t.shape)

    def of_described(part, shape, strides, offset, index, shown=""):
        """A case with a described tensor. Only its sizes, strides and offset can be read."""
        layout = (shape, strides, offset, draw.choice((*DTYPES[:5], *OTHERS)))
        paste = Paste("byte_offset(Described({}, {}, {}, {}), {})", (*layout, index))

        def play(subject):
            return subject.drive("described:asked", layout, index)

        return Case(part, play, shown=shown or "a described tensor", paste=paste)

    for rank in (2, 3):
        shape = tuple(2**62 - draw.integer(1, 99) for _ in range(rank))  # sizes are int64s in torch
        strides = tuple(math.prod(shape[d + 1 :]) for d in range(rank))
        inside = tuple(draw.integer(1, 99) for _ in shape)
        yield of_described("contiguous tensors", shape, strides, 0, inside)
        outside = tuple(-draw.integer(2, 99) for _ in shape)
        words = "a described tensor, and only negative indices"
        yield of_described("negative indices", shape, strides, 0, outside, words)
        shape = draw.shape(rank, low=3)
        strides = tuple(beyond(draw) for _ in shape)
        inside = tuple(draw.integer(1, size - 1) for size in shape)
        yield of_described("views with an offset", shape, strides, beyond(draw), inside)
    for rank in (1, 2, 3):
        t = draw.tensor(draw.shape(rank, low=3), draw.choice(DTYPES[:5]))
        yield case("contiguous tensors", t, index_into(t))
    for dtype in draw.sample(DTYPES[:5], 3):
        t = draw.tensor(draw.shape(3, low=4, high=8), dtype)[1:].permute(2, 0, 1)
        yield case("views with an offset", t, index_into(t))
        t = draw.tensor((3, draw.integer(4, 6)), dtype, layout="sliced")
        yield case("views with an offset", t, index_into(t))
    # at least one of the two dtypes has elements that don't take four bytes
    for rank, dtype in ((1, draw.choice(DTYPES[:5])), (3, draw.choice((torch.float64, torch.uint8)))):
        t = draw.tensor(draw.shape(rank, low=3), dtype)
        inside = index_into(t)
        yield case("negative indices", t, (*inside[:-1], -1), shown="-1 in the last dimension")
        if rank == 3:
            middle = (inside[0], -1, inside[2])
            yield case("negative indices", t, middle, shown="-1 in the middle dimension")
        yield case("negative indices", t, tuple(-i for i in inside), shown="only negative ones")
    # special cases: the first element, the last element, no dimensions, a stride of 0
    t = draw.tensor(draw.shape(3), torch.uint8)
    yield case("contiguous tensors", t, (0, 0, 0))
    yield case("contiguous tensors", t, tuple(size - 1 for size in t.shape))
    yield case("contiguous tensors", draw.tensor(()), ())
    for dtype in OTHERS:
        yield case("contiguous tensors", draw.tensor((5,), dtype), (draw.integer(1, 4),))
    yield case("negative indices", t, tuple(-size for size in t.shape), shown="the first element")
    view = draw.tensor(draw.shape(3, low=3))[1:, :, 1:2].expand(-1, -1, 4)
    yield case("views with an offset", view, (0, view.size(1) - 1, 3))
    yield case("views with an offset", view[1, 2, 0], ())
