"""What several exercises of lab 01 need."""

import torch

DTYPES = (torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.uint8)
# `finfo` and `iinfo` don't give the element size of the last three dtypes
OTHERS = (torch.int8, torch.int16, torch.int32, torch.complex128, torch.complex64, torch.bool)


def beyond(draw):
    """A number that is too large for an int64, and so for any size, stride or offset in torch.
    """
    return 2**70 + draw.integer(1, 2**20)


def ignore_size_one(strides, shape):
    """Return the strides with 0 for each dimension of size 1, where any stride is right."""
    if not isinstance(strides, (tuple, list)) or len(strides) != len(shape):
        return strides
    return tuple(0 if size == 1 else s for s, size in zip(strides, shape, strict=True))


# Names that ask a tensor or an array where its elements are.
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
