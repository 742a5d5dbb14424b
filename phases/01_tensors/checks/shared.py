"""What several exercises of lab 01 need."""

import torch

DTYPES = (torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.uint8)
# `finfo` and `iinfo` know no width of the last three
OTHERS = (torch.int8, torch.int16, torch.int32, torch.complex128, torch.complex64, torch.bool)


def beyond(draw):
    """A number of elements that no tensor of torch has, since no int64 holds it."""
    return 2**70 + draw.integer(1, 2**20)


def ignore_size_one(strides, shape):
    """A dimension of size 1 is never stepped along: any stride is right there."""
    if not isinstance(strides, (tuple, list)) or len(strides) != len(shape):
        return strides
    return tuple(0 if size == 1 else s for s, size in zip(strides, shape, strict=True))


# Where the elements of a tensor or an array lie, asked of itself.
ASKS_WHERE = frozenset(
    {
        "stride",
        "strides",
        "*_strided",
        "*_strides*",
        "storage_offset",
        "*data_ptr",
        "is_contiguous",
        "untyped_storage",
        "ctypes",
        "numpy.lib.*",
    }
)
