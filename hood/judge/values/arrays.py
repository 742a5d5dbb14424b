"""The row of NumPy's arrays in the table of kinds."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from hood.judge.values.kind import Grid, NotByValue, Unprintable, Writer

# The dtypes of arrays that can be sent, by their names.
WHOLE = "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"
FRACTIONS = "float16", "float32", "float64", "complex64", "complex128"
DTYPES = {name: np.dtype(name) for name in ("bool", *WHOLE, *FRACTIONS)}
WIDE = {"f": np.float64, "c": np.complex128}
INFERRED = ("float64", "int64", "bool", "complex128")  # by np.array, from Python's numbers
LONG = 6  # elements; a longer array of one number is written as `np.full`


class ArrayKind(Grid):
    tag, type = "array", np.ndarray
    imports = ("import numpy as np",)

    def sent(self, value: np.ndarray, encoder: Any) -> list[Any]:
        encoder.fits(value.nbytes)  # before it is copied
        if DTYPES.get(value.dtype.name) != value.dtype:
            raise NotByValue("a NumPy array that is not of plain numbers or booleans")
        copy = np.array(value, order="K")  # dense, with no negative strides
        index = encoder.storage(
            0, copy.nbytes, lambda: ctypes.string_at(copy.ctypes.data, copy.nbytes), copy
        )
        strides = [stride // copy.itemsize for stride in copy.strides]
        return [index, copy.nbytes, copy.dtype.name, 0, list(copy.shape), strides, ""]

    def received(self, content: Any, decoder: Any) -> np.ndarray:
        dtype = DTYPES[content[2]]
        data, offset, shape, strides, flags = decoder.view(content, dtype.itemsize)
        if flags:
            raise NotByValue("a message with an array that has flags")
        steps = [dtype.itemsize * stride for stride in strides]
        if not data:
            return np.empty(shape, dtype)
        return np.ndarray(shape, dtype, data, dtype.itemsize * offset, steps)

    def words(self, value: np.ndarray) -> str:
        return "a NumPy array"

    def count(self, value: np.ndarray) -> int:
        return value.size

    def numbers(self, value: np.ndarray) -> np.ndarray:
        return np.asarray(value).astype(WIDE.get(value.dtype.kind, np.int64))

    def equal(self, one: np.ndarray, other: np.ndarray) -> bool:
        return np.array_equal(one, other)

    def unchanged(self, before: np.ndarray, after: np.ndarray) -> bool:
        return before.tobytes() == after.tobytes()

    def plain(self, value: np.ndarray) -> np.ndarray:
        return np.array(value, order="C")

    def with_item(self, value: np.ndarray, key: Any, item: Any) -> np.ndarray:
        copy = np.array(value)
        copy[key] = item
        return copy

    def marked(self, value: np.ndarray) -> np.ndarray:
        if value.dtype.kind == "b":
            return ~value
        return (np.arange(3, value.size + 3) % 251).reshape(value.shape).astype(value.dtype)

    def literal(self, value: np.ndarray, writer: Writer) -> str:
        if DTYPES.get(value.dtype.name) != value.dtype:
            raise Unprintable(f"an array of {value.dtype}")
        if not value.flags.c_contiguous:
            if not value.flags.f_contiguous:
                raise Unprintable("an array of another layout")
            return f"np.asfortranarray({self.literal(np.ascontiguousarray(value), writer)})"
        dtype = "" if value.dtype.name in INFERRED else f", dtype=np.{value.dtype.name}"
        if not value.size:
            return f"np.zeros({value.shape}, dtype=np.{value.dtype.name})"
        flat = value.ravel()
        if value.size > LONG and bool((flat == flat[0]).all()):
            writer.spend(value.ndim + 1)
            return f"np.full({value.shape}, {_numbers(flat[:1].reshape(()), writer)}{dtype})"
        writer.spend(value.size)
        return f"np.array({_numbers(value, writer)}{dtype})"


def _numbers(value: np.ndarray, writer: Writer) -> str:
    if value.ndim:
        return f"[{', '.join(_numbers(one, writer) for one in map(np.asarray, value))}]"
    if value.dtype.kind == "f":
        most = float(np.finfo(value.dtype).max)
        exact = partial(_exact, value.dtype)
        return writer.number(value.item(), most, exact, "np")
    return repr(value.item())


def _exact(dtype: np.dtype, value: float) -> str:
    return str(dtype.type(value))


class ArraySource:
    """Random numbers in arrays; see :class:`hood.judge.values.kind.Source`."""

    def __init__(self, seed: int):
        self._random = np.random.default_rng(seed)

    def dtype(self, dtype: Any) -> np.dtype:
        return np.dtype("float64" if dtype is None else dtype)

    def form(self, dtype: np.dtype) -> tuple[str, int]:
        return dtype.kind, int(np.iinfo(dtype).max) if dtype.kind in "iu" else 0

    def normal(
        self, shape: Sequence[int], dtype: np.dtype, decimals: int | None = None
    ) -> np.ndarray:
        values = self._random.standard_normal(tuple(shape))
        if dtype.kind == "c":
            values = (values + 1j * self._random.standard_normal(tuple(shape))) / np.sqrt(2)
        values = values * 1.3 + 0.3
        return (values if decimals is None else values.round(decimals)).astype(dtype)

    def whole(self, low: int, high: int, shape: Sequence[int], dtype: np.dtype) -> np.ndarray:
        return self._random.integers(low, high, tuple(shape)).astype(dtype)

    def counted(self, start: int, count: int, shape: Sequence[int], dtype: np.dtype) -> np.ndarray:
        return np.arange(start, start + count).astype(dtype).reshape(tuple(shape))

    def reversed(self, values: np.ndarray) -> np.ndarray:
        return values.transpose()


KINDS = (ArrayKind(),)
