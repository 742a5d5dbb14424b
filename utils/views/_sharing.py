"""Which tensors lie in the same bytes. No drawing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor

from utils.notebook.expect import storage_key
from utils.views._strides import Geometry, geometry


@dataclass(frozen=True)
class Placed:
    """A named tensor in its storage; first and last: the bytes [first, last) that it spans."""

    name: str
    layout: Geometry
    first: int
    last: int

    def reached(self, start: int, stop: int) -> list[tuple[int, int]]:
        """Return the byte ranges in [start, stop) that the tensor reaches, neighbours joined."""
        size = self.layout.itemsize
        ranges: list[tuple[int, int]] = []
        for k in sorted(self.layout.reached(start // size, -(-stop // size))):
            first = k * size
            if ranges and ranges[-1][1] == first:
                ranges[-1] = (ranges[-1][0], first + size)
            else:
                ranges.append((first, first + size))
        return ranges

    @property
    def dense(self) -> bool:
        """Whether the tensor reaches every byte between its first and its last."""
        shape, stride = self.layout.shape, self.layout.stride
        span = 1
        for step, size in sorted(zip(stride, shape, strict=True)):
            if size > 1 and step:
                if step > span:
                    return False
                span += (size - 1) * step
        return True


@dataclass(frozen=True)
class Storage:
    """One allocation of `nbytes` and the tensors over it, in the order they were given."""

    nbytes: int
    tensors: tuple[Placed, ...]


def storages(tensors: Mapping[str, Tensor]) -> list[Storage]:
    """Return the distinct storages of the named tensors, in the order of their first tensor.

    Which tensors share one, `utils.notebook.expect.storage_key` tells.
    """
    groups: dict[tuple[str, int], list[Placed]] = {}
    sizes: dict[tuple[str, int], int] = {}
    for name, tensor in tensors.items():
        layout = geometry(tensor, name)
        storage = tensor.untyped_storage()
        key = storage_key(tensor)
        first = layout.offset * layout.itemsize
        last = first
        if not layout.empty:
            end = layout.element([size - 1 for size in layout.shape])
            last = (end + 1) * layout.itemsize
        groups.setdefault(key, []).append(Placed(name, layout, first, last))
        sizes[key] = storage.nbytes()
    return [Storage(sizes[key], tuple(group)) for key, group in groups.items()]
