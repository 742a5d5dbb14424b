"""Lab 01, exercise 1: What a slice keeps alive"""

import torch

from utils.checks.exercise import Check, case

from .shared import DTYPES

bytes_of = Check(
    "bytes_of",
    parts={"a tensor that fills its storage": 1, "views": 1},
    reads="A tensor is a storage and a view",
)


@bytes_of.reference
def _(t):
    return t.nbytes, t.untyped_storage().nbytes()


@bytes_of.cases
def _(draw):
    for dtype in draw.sample(DTYPES, 4) + [torch.float16]:
        yield case("a tensor that fills its storage", draw.tensor(draw.shape(2), dtype))
    for shape in ((), (draw.integer(2, 9),), draw.shape(3), (3, 0, 2)):
        yield case("a tensor that fills its storage", draw.tensor(shape, torch.uint8))
    for dtype in (torch.complex64, torch.bool):  # `finfo` and `iinfo` know no width of theirs
        yield case("a tensor that fills its storage", draw.tensor(draw.shape(2), dtype))
    wide = draw.tensor((draw.integer(4, 6), 9), torch.bfloat16)
    yield case("views", wide[1, 2])
    yield case("views", wide[1:1])
    seven = draw.tensor((7,), torch.uint8)  # no whole number of the view's elements
    yield case("views", seven[:6].view(torch.float16)[1:])
    yield case("views", wide[1:3])
    yield case("views", wide[:, ::2])
    yield case("views", draw.tensor((draw.integer(3, 7), 1), torch.float64).expand(-1, 50))
    yield case("views", draw.tensor((draw.integer(7, 12),), torch.float32).unfold(0, 3, 1))


@bytes_of.misconception(
    "elements for bytes",
    "the numbers are counts of elements; an element may take several bytes.",
    earns=0,
)
def _(t):
    return t.numel(), t.untyped_storage().nbytes() // t.element_size()


@bytes_of.misconception(
    "elements for the view's bytes",
    "the view was given its count of elements; an element may take several bytes.",
    earns=0,
)
def _(t):
    return t.numel(), t.untyped_storage().nbytes()


@bytes_of.misconception(
    "elements for the storage's bytes",
    "the storage was given its count of elements; an element may take several bytes.",
    earns=0,
)
def _(t):
    return t.numel() * t.element_size(), t.untyped_storage().nbytes() // t.element_size()


@bytes_of.misconception(
    "four bytes for every dtype", "each element was given 4 bytes, whatever its dtype.", earns=0
)
def _(t):
    return t.numel() * 4, t.untyped_storage().nbytes()


@bytes_of.misconception(
    "storage as large as the view",
    "the storage came out as large as the view; a slice keeps the whole of it alive, also where "
    "its `_base` is None.",
    earns=1,
)
def _(t):
    return t.numel() * t.element_size(), t.numel() * t.element_size()


@bytes_of.misconception(
    "view as large as the storage",
    "the view was given the size of its storage, of which it may reach a part, or one part often.",
    earns=1,
)
def _(t):
    return t.untyped_storage().nbytes(), t.untyped_storage().nbytes()


@bytes_of.misconception(
    "each element counted once",
    "elements that a stretched view reaches again were counted once; each time counts.",
    earns=1,
)
def _(t):
    count = 1
    for size, stride in zip(t.shape, t.stride()):
        count *= size if stride else 1
    return count * t.element_size(), t.untyped_storage().nbytes()


@bytes_of.misconception(
    "a size of 0 counted as 1",
    "a tensor with no elements was given the bytes of some; its view addresses none.",
    earns=0,
)
def _(t):
    count = 1
    for size in t.shape:
        count *= max(size, 1)
    return count * t.element_size(), t.untyped_storage().nbytes()


@bytes_of.misconception(
    "the two numbers exchanged", "the storage's bytes came first, and the view's second.", earns=1
)
def _(t):
    return t.untyped_storage().nbytes(), t.numel() * t.element_size()


@bytes_of.misconception(
    "the storage from the view on",
    "of the storage, what lies before the view's first element was left out.",
    earns=1,
)
def _(t):
    before = t.storage_offset() * t.element_size()
    return t.numel() * t.element_size(), t.untyped_storage().nbytes() - before


@bytes_of.misconception(
    "the storage of a copy",
    "the storage is as large as that of a contiguous copy; the view's own may be larger, or "
    "smaller.",
    earns=1,
)
def _(t):
    return t.numel() * t.element_size(), t.contiguous().untyped_storage().nbytes()


@bytes_of.alternate("product of the sizes")
def _(t):
    count = 1
    for size in t.shape:
        count *= size
    return count * t.dtype.itemsize, len(t.untyped_storage())
