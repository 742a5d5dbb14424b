"""Lab 01, exercise 3: Where is element (i, j, k)?"""

import torch

from utils.checks.exercise import ByHand, Check, case

from .shared import BY_WAY_OF_NUMPY, DTYPES

byte_offset = Check(
    "byte_offset",
    parts={"contiguous tensors": 1, "views with an offset": 1, "negative indices": 1},
    reads="The address of one element",
    by_hand=ByHand(
        "the exercise is to compute the place from the strides, not to let indexing find it",
        allow_ops=frozenset(),
        forbid_names=frozenset({"data_ptr", "as_strided"}) | BY_WAY_OF_NUMPY,
    ),
)


@byte_offset.reference
def _(t, index):
    return t[index].storage_offset() * t.element_size()


@byte_offset.cases
def _(draw):
    def index_into(t):
        return tuple(draw.integer(1, size - 1) for size in t.shape)

    for rank in (1, 2, 3):
        t = draw.tensor(draw.shape(rank, low=3), draw.choice(DTYPES[:5]))
        yield case("contiguous tensors", t, index_into(t))
    for dtype in draw.sample(DTYPES[:5], 3):
        t = draw.tensor(draw.shape(3, low=4, high=8), dtype)[1:].permute(2, 0, 1)
        yield case("views with an offset", t, index_into(t))
        t = draw.tensor((3, draw.integer(4, 6)), dtype, layout="sliced")
        yield case("views with an offset", t, index_into(t))
    # not both of four bytes
    for rank, dtype in ((1, draw.choice(DTYPES[:5])), (3, draw.choice((torch.float64, torch.uint8)))):
        t = draw.tensor(draw.shape(rank, low=3), dtype)
        inside = index_into(t)
        yield case("negative indices", t, (*inside[:-1], -1), shown="-1 in the last dimension")
        if rank == 3:
            middle = (inside[0], -1, inside[2])
            yield case("negative indices", t, middle, shown="-1 in the middle dimension")
        yield case("negative indices", t, tuple(-i for i in inside), shown="only negative ones")
    # the corners: the first element and the last, no dimension at all, a step of 0
    t = draw.tensor(draw.shape(3), torch.uint8)
    yield case("contiguous tensors", t, (0, 0, 0))
    yield case("contiguous tensors", t, tuple(size - 1 for size in t.shape))
    yield case("contiguous tensors", draw.tensor(()), ())
    yield case("negative indices", t, tuple(-size for size in t.shape), shown="the first element")
    view = draw.tensor(draw.shape(3, low=3))[1:, :, 1:2].expand(-1, -1, 4)
    yield case("views with an offset", view, (0, view.size(1) - 1, 3))
    yield case("views with an offset", view[1, 2, 0], ())


@byte_offset.misconception(
    "elements for bytes", "the distance is in elements; memory is addressed in bytes.", earns=0
)
def _(t, index):
    place = t.storage_offset()
    for i, size, stride in zip(index, t.shape, t.stride()):
        place += (i % size) * stride
    return place


@byte_offset.misconception(
    "offset forgotten",
    "the count starts at the view's first element; a view may begin further along its storage.",
    earns=2,
)
def _(t, index):
    place = 0
    for i, size, stride in zip(index, t.shape, t.stride()):
        place += (i % size) * stride
    return place * t.element_size()


@byte_offset.misconception(
    "offset taken for bytes",
    "the storage offset was added as it is; it counts elements, as the strides do.",
    earns=2,
)
def _(t, index):
    place = 0
    for i, size, stride in zip(index, t.shape, t.stride()):
        place += (i % size) * stride
    return place * t.element_size() + t.storage_offset()


@byte_offset.misconception(
    "row-major whatever the view",
    "the steps come from the shape, as if every tensor were contiguous; a view has its own.",
    earns=2,
)
def _(t, index):
    place = 0
    for i, size in zip(index, t.shape):
        place = place * size + (i % size)
    return (t.storage_offset() + place) * t.element_size()


@byte_offset.misconception(
    "negative index not wrapped",
    "a negative index walks backwards out of the dimension; Python counts it from the end.",
    earns=2,
)
def _(t, index):
    place = t.storage_offset()
    for i, stride in zip(index, t.stride()):
        place += i * stride
    return place * t.element_size()


@byte_offset.misconception(
    "only -1 wrapped",
    "an index of -1 found the last element; one further from the end did not find its own.",
    earns=2,
)
def _(t, index):
    place = t.storage_offset()
    for i, size, stride in zip(index, t.shape, t.stride()):
        place += (size - 1 if i == -1 else i) * stride
    return place * t.element_size()


@byte_offset.misconception(
    "-1 for the last but one",
    "a negative index came out one element further from the end than Python counts it.",
    earns=2,
)
def _(t, index):
    place = t.storage_offset()
    for i, size, stride in zip(index, t.shape, t.stride()):
        place += (size - 1 + i if i < 0 else i) * stride
    return place * t.element_size()


@byte_offset.misconception(
    "wrapped once, at the end",
    "a place before the view was moved on by the number of all elements; each negative index "
    "counts from the end of its own dimension.",
    earns=2,
)
def _(t, index):
    place = sum(i * stride for i, stride in zip(index, t.stride()))
    place += t.numel() if place < 0 else 0
    return (t.storage_offset() + place) * t.element_size()


@byte_offset.misconception(
    "strides in reverse order",
    "the place is as if the strides stood in reverse order: the first index took the step of the "
    "last dimension.",
    earns=0,
)
def _(t, index):
    place = t.storage_offset()
    for i, size, stride in zip(index, t.shape, reversed(t.stride())):
        place += (i % size) * stride
    return place * t.element_size()


@byte_offset.misconception(
    "four bytes for every dtype",
    "each element was given 4 bytes, whatever its dtype.",
    earns=0,
)
def _(t, index):
    place = t.storage_offset()
    for i, size, stride in zip(index, t.shape, t.stride()):
        place += (i % size) * stride
    return place * 4


@byte_offset.alternate("one dimension at a time")
def _(t, index):
    place = t.storage_offset() * t.element_size()
    for dim in range(t.dim()):
        i = index[dim]
        if i < 0:
            i += t.size(dim)
        place += i * t.stride(dim) * t.element_size()
    return place


@byte_offset.alternate("a dot product of tensors of one's own")
def _(t, index):
    steps, sizes = torch.tensor(t.stride()), torch.tensor(t.shape)
    wrapped = torch.tensor(index)
    wrapped[wrapped < 0] += sizes[wrapped < 0]
    return int(wrapped @ steps + t.storage_offset()) * t.element_size()


byte_offset.equivalent(
    ("wrapped @ steps", "steps @ wrapped"), because="both are vectors: either order is a sum"
)
