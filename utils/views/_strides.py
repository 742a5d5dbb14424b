"""Where a view's elements are in its storage. No drawing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import torch
from torch import Tensor

Number = bool | int | float | complex


@dataclass(frozen=True)
class Geometry:
    """The numbers that turn an index into bytes. All except `itemsize` count elements."""

    shape: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int
    itemsize: int
    length: int  # the number of whole elements in the storage
    row_major: bool  # whether the strides are those of a new tensor of this shape

    @property
    def empty(self) -> bool:
        return 0 in self.shape

    def element(self, index: Sequence[int]) -> int:
        """The storage element that `index` reaches: offset + the sum of i * s over dimensions."""
        return self.offset + sum(i * s for i, s in zip(index, self.stride, strict=True))

    def reached(self, start: int, stop: int) -> set[int]:
        """The storage elements in [start, stop) that at least one index of the view reaches."""
        if self.empty:
            return set()
        dims = [(n, s) for n, s in zip(self.shape, self.stride, strict=True) if n > 1 and s > 0]
        dims.sort(key=lambda dim: -dim[1])
        sums = {self.offset}
        for at, (size, step) in enumerate(dims):
            rest = sum((n - 1) * s for n, s in dims[at + 1 :])
            # Try only each i that can still reach the window, so that a huge view takes no more
            # time.
            sums = {
                total + i * step
                for total in sums
                for i in range(
                    max(0, -((total + rest - start) // step)), min(size, -((total - stop) // step))
                )
            }
        return {total for total in sums if start <= total < stop}

    @property
    def sharing(self) -> int:
        """How many indices of the view reach the same element because of stride 0."""
        return math.prod(n for n, s in zip(self.shape, self.stride, strict=True) if s == 0)

    @property
    def overlaps(self) -> bool:
        """Whether strides other than 0 let two indices reach one element, as in sliding windows."""
        dims = sorted((s, n) for s, n in zip(self.stride, self.shape, strict=True) if s and n > 1)
        spans = accumulate(((n - 1) * s for s, n in dims), initial=0)
        if self.empty or all(step > span for (step, _), span in zip(dims, spans, strict=False)):
            # The view does not overlap if the stride of each dimension is larger than the range
            # that all dimensions with smaller strides reach.
            return False
        return len(self.reached(0, self.length)) < math.prod(size for _, size in dims)


def geometry(tensor: Tensor, name: str = "the first argument") -> Geometry:
    """Return the `Geometry` of a strided tensor on any device.

    name: the tensor's name in errors. Raises TypeError if `tensor` is not a strided tensor.
    """
    require_strided(tensor, name)
    itemsize = tensor.element_size()
    return Geometry(
        tuple(tensor.shape),
        tuple(tensor.stride()),
        tensor.storage_offset(),  # type: ignore[arg-type]  # symbolic only while torch compiles
        itemsize,
        tensor.untyped_storage().nbytes() // itemsize,
        tensor.is_contiguous(),
    )


def require_strided(tensor: object, name: str) -> None:
    """Raise TypeError with advice unless `tensor` is a tensor with strides and a storage."""
    if not isinstance(tensor, Tensor):
        found = type(tensor).__name__
        call = "torch.from_numpy(x)" if type(tensor).__module__ == "numpy" else "torch.tensor(x)"
        raise TypeError(f"{name} must be a torch.Tensor, got {found}: pass {call}")
    if tensor.layout != torch.strided or tensor.is_nested:
        raise TypeError(
            f"{name} must be one strided tensor (a storage and strides), got {tensor.layout}: "
            "pass x.to_dense(), or pass a part of x, such as x.values()"
        )


def full_index(shape: Sequence[int], index: int | Sequence[int] | None) -> tuple[int, ...]:
    """Return `index` with numbers from 0 to size-1, or for None an index that shows the strides.

    Raises IndexError if `index` doesn't fit the shape.
    """
    if index is None:
        return tuple(min(n - 1, 1) for n in shape[:-1]) + tuple(min(n - 1, 2) for n in shape[-1:])
    index = (index,) if isinstance(index, int) else tuple(int(i) for i in index)
    if len(index) != len(shape):
        raise IndexError(
            f"index {index} has {len(index)} numbers, but the tensor has {len(shape)} dimensions "
            f"(shape {tuple(shape)}): give one number for each dimension"
        )
    for dim, (i, n) in enumerate(zip(index, shape, strict=True)):
        if not -n <= i < n:
            raise IndexError(f"index {i} is out of range for dimension {dim}, which has size {n}")
    return tuple(i % n for i, n in zip(index, shape, strict=True))


def window(size: int, at: int, most: int, step: int = 1) -> range:
    """Return at most `most` of the positions 0..size-1, around `at`.

    The first position is a multiple of `step`.
    """
    if size <= most:
        return range(size)
    start = (at - most // 2) // step * step
    start = max(0, min(start, -(-(size - most) // step) * step))
    return range(start, min(size, start + most))


def storage_values(tensor: Tensor, start: int, stop: int) -> list[Number] | None:
    """Return the elements [start, stop) of the whole storage, in the form of `plain`."""
    if tensor.is_meta:
        return None
    flat = torch.empty(0, dtype=tensor.dtype, device=tensor.device)
    return plain(flat.set_(tensor.untyped_storage(), start, (stop - start,), (1,)))


def plain(tensor: Tensor) -> list[Number] | None:
    """Return the flattened values of a tensor, or None if it has no values, as on meta."""
    if tensor.is_meta:
        return None
    try:
        return tensor.detach().resolve_conj().resolve_neg().cpu().reshape(-1).tolist()
    except (RuntimeError, NotImplementedError):  # a dtype without conversions: packed or raw bits
        return None
