"""Tensors that are only described: they have sizes, strides and an offset, but no elements.

A described tensor may be larger than any real tensor. So code must calculate with its sizes, and
can't let torch calculate with its elements.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from utils.drivers import WHOLE, driver


class Described:
    """A tensor without elements, with a layout.

    It has ``shape``, ``size``, ``dim``, ``ndim``, ``stride``, ``storage_offset``, ``dtype``,
    ``itemsize`` and ``element_size``. ``as_strided``, as a function of torch or as a method, makes
    another described tensor. A described tensor has no other methods.
    """

    def __init__(
        self,
        shape: Sequence[int],
        stride: Sequence[int],
        storage_offset: int = 0,
        dtype: torch.dtype = torch.float32,
    ):
        self.shape, self.dtype = torch.Size(shape), dtype
        self._stride, self._storage_offset = tuple(stride), storage_offset

    def __repr__(self) -> str:
        numbers = f"{tuple(self.shape)}, {self._stride}, {self._storage_offset}, {self.dtype}"
        return f"Described({numbers})"

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"a described tensor has no `{name}`: it knows its shape, strides, offset and dtype"
        )

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    def dim(self) -> int:
        return len(self.shape)

    def size(self, dim: int | None = None) -> Any:
        return self.shape if dim is None else self.shape[dim]

    def stride(self, dim: int | None = None) -> Any:
        return self._stride if dim is None else self._stride[dim]

    def storage_offset(self) -> int:
        return self._storage_offset

    def element_size(self) -> int:
        return self.dtype.itemsize

    def as_strided(
        self, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
    ) -> Described:
        """Return another view of the storage. By default it has the same storage offset."""
        offset = self._storage_offset if storage_offset is None else storage_offset
        return Described(size, stride, offset, self.dtype)

    @classmethod
    def __torch_function__(
        cls, func: Callable, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        if func is not torch.as_strided:
            raise TypeError(
                f"a described tensor does not support `torch.{func.__name__}`, only as_strided"
            )
        return args[0].as_strided(*args[1:], **(kwargs or {}))


@driver(WHOLE)
def asked(function: Callable, layout: Sequence[Any], *args: Any) -> Any:
    """Return a function's result for a described tensor and other arguments.

    ``layout`` has the sizes, strides, offset and dtype of the described tensor. If the result is a
    described tensor, its sizes, strides and offset are returned.
    """
    came = function(Described(*layout), *args)
    if isinstance(came, Described):
        return tuple(came.shape), came.stride(), came.storage_offset()
    return came
