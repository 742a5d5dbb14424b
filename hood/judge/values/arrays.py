"""The row of NumPy's arrays in the table of kinds."""

from __future__ import annotations

import ctypes
import math
import re
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from hood.judge.values.kind import (
    Attribute,
    Composed,
    Grid,
    Kind,
    NotByValue,
    Scalar,
    Unprintable,
    Writer,
    expect,
)

# The dtypes of arrays that can be sent, by name.
WHOLE = "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"
FRACTIONS = "float16", "float32", "float64", "complex64", "complex128"
DTYPES = {name: np.dtype(name) for name in ("bool", *WHOLE, *FRACTIONS)}
WIDE = {"f": np.float64, "c": np.complex128}
# the dtypes that np.array gives to Python's numbers
INFERRED = ("float64", "int64", "bool", "complex128")
LONG = 6  # elements; a longer array of one number is written as `np.full`
MAX_BYTES = 1 << 26  # bytes of an array of texts; NumPy pads each text to the longest
UNIT = r"(datetime64|timedelta64)\[(Y|M|W|D|h|m|s|ms|us|ns)\]"


class ArrayKind(Grid):
    tag, type = "array", np.ndarray
    imports = ("import numpy as np",)

    def row(self, value: np.ndarray) -> Kind:
        if isinstance(value, np.ma.MaskedArray):
            return MASKED
        return OTHERS.get(value.dtype.kind, self)

    def sent(self, value: np.ndarray, encoder: Any) -> list[Any]:
        encoder.fits(value.nbytes)  # before the copy
        if DTYPES.get(value.dtype.name) != value.dtype:
            raise NotByValue("a NumPy array whose elements are not plain numbers or booleans")
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


class TextArray(Composed):
    """An array of texts, of bytes, or of Python's objects."""

    tag, type = "texts", np.ndarray
    imports = ArrayKind.imports
    TYPES = {"U": str, "S": bytes, "O": object}

    def parts(self, value: np.ndarray) -> list[Any]:
        return [value.dtype.kind, list(value.shape), value.ravel().tolist()]

    def made(self, parts: Any) -> np.ndarray:
        form, shape, items = expect(parts, str, list, list)
        of = self.TYPES[form]
        longest = max([len(one) for one in items if isinstance(one, (str, bytes))], default=0)
        other = of is not object and any(type(one) is not of for one in items)
        if other or 4 * longest * len(items) > MAX_BYTES:
            raise NotByValue("a message with an array of something other than short texts")
        made = np.empty(len(items), object)
        for at, item in enumerate(items):  # not at once: an item may be a list
            made[at] = item
        return (made if of is object else made.astype(of)).reshape(shape)

    def items(self, value: np.ndarray) -> list[tuple[Any, Any]]:
        return [(Attribute("shape"), value.shape), *enumerate(value.tolist())]

    def words(self, value: np.ndarray) -> str:
        return f"a NumPy array of {'objects' if value.dtype.kind == 'O' else 'texts'}"

    def literal(self, value: np.ndarray, writer: Writer) -> str:
        dtype = ", dtype=object" if value.dtype.kind == "O" else ""
        if not value.size or (dtype and value.ndim != 1):
            raise Unprintable("an array of objects")
        return f"np.array({writer.text(value.tolist())}{dtype})"


class TimeArray(Composed):
    """An array of dates or of durations."""

    tag, type = "times", np.ndarray
    imports = ArrayKind.imports

    def parts(self, value: np.ndarray) -> list[Any]:
        if not re.fullmatch(UNIT, value.dtype.name):
            raise NotByValue(f"an array of {value.dtype}")
        return [value.dtype.name, np.ascontiguousarray(value).astype(np.int64)]

    def made(self, parts: Any) -> np.ndarray:
        name, numbers = expect(parts, str, np.ndarray)
        if not re.fullmatch(UNIT, name) or numbers.dtype != np.int64:
            raise NotByValue("a message with dates in an unknown unit")
        return numbers.astype(name)

    def items(self, value: np.ndarray) -> list[tuple[Any, Any]]:
        found = [(Attribute("shape"), value.shape), (Attribute("dtype"), value.dtype.name)]
        return [*found, *enumerate(value.astype(str).tolist())]

    def words(self, value: np.ndarray) -> str:
        return f"a NumPy array of {'dates' if value.dtype.kind == 'M' else 'durations'}"

    def literal(self, value: np.ndarray, writer: Writer) -> str:
        if not value.size:
            raise Unprintable("an empty array of dates")
        items = value.astype(str if value.dtype.kind == "M" else np.int64)
        return f"np.array({writer.text(items.tolist())}, dtype={value.dtype.name!r})"


class Time64(Scalar):
    """One of NumPy's dates or durations."""

    tag = "time64"
    type = np.datetime64, np.timedelta64
    imports = ArrayKind.imports

    def sent(self, value: Any, encoder: Any) -> list[Any]:
        if not re.fullmatch(UNIT, value.dtype.name):
            raise NotByValue(f"a date of dtype {value.dtype}")
        return [value.dtype.name, int(value.astype(np.int64))]

    def received(self, content: Any, decoder: Any) -> Any:
        name, number = expect(content, str, int)
        if not re.fullmatch(UNIT, name):
            raise NotByValue("a message with a date in an unknown unit")
        return np.int64(number).astype(name)

    def literal(self, value: Any, writer: Writer) -> str:
        name, number = self.sent(value, None)
        kind, unit = name.rstrip("]").split("[")
        return f"np.{kind}({repr(str(value)) if kind == 'datetime64' else number}, {unit!r})"


class StructuredArray(Composed):
    """An array with named fields."""

    tag, type = "fields", np.ndarray
    imports = ArrayKind.imports

    def parts(self, value: np.ndarray) -> list[Any]:
        if not value.dtype.names or any(value.dtype[n].shape for n in value.dtype.names):
            raise NotByValue(f"an array of {value.dtype}")
        fields = {name: np.ascontiguousarray(value[name]) for name in value.dtype.names}
        return [list(value.shape), fields]

    def made(self, parts: Any) -> np.ndarray:
        shape, fields = expect(parts, list, dict)
        if not fields or any(
            type(n) is not str or type(a) is not np.ndarray for n, a in fields.items()
        ):
            raise NotByValue("a message with a field that is not an array")
        if any(list(a.shape) != shape for a in fields.values()):
            raise NotByValue("a message with fields of several shapes")
        if math.prod(shape) * sum(a.itemsize for a in fields.values()) > MAX_BYTES:
            raise NotByValue("a message with an array that is too large")
        made = np.empty(shape, [(name, array.dtype) for name, array in fields.items()])
        for name, array in fields.items():
            made[name] = array
        return made

    def items(self, value: np.ndarray) -> list[tuple[Any, Any]]:
        fields = self.parts(value)[1]
        names = (Attribute("dtype.names"), dict.fromkeys(fields))
        return [names, (Attribute("shape"), value.shape), *fields.items()]

    def words(self, value: np.ndarray) -> str:
        return "a structured array"

    def literal(self, value: np.ndarray, writer: Writer) -> str:
        if value.ndim != 1 or not value.size:
            raise Unprintable("a structured array that is not a list of rows")
        return f"np.array({writer.text(value.tolist())}, dtype={value.dtype.descr})"


class MaskedArray(Composed):
    """An array with a mask. The numbers that a mask hides are not sent and not compared."""

    tag, type = "masked", np.ma.MaskedArray
    imports = ArrayKind.imports

    def parts(self, value: Any) -> list[Any]:
        mask = np.ma.getmaskarray(value)
        return [np.where(mask, np.zeros((), value.dtype), value.data).astype(value.dtype), mask]

    def made(self, parts: Any) -> Any:
        data, mask = expect(parts, np.ndarray, np.ndarray)
        if mask.dtype != bool or mask.shape != data.shape or data.dtype.names:
            raise NotByValue("a message with a mask of the wrong shape")
        return np.ma.MaskedArray(data, mask)

    def items(self, value: Any) -> list[tuple[Any, Any]]:
        data, mask = self.parts(value)
        return [(Attribute("mask"), mask), (Attribute("data"), data)]

    def words(self, value: Any) -> str:
        return "a masked array"

    def literal(self, value: Any, writer: Writer) -> str:
        data, mask = map(writer.text, self.parts(value))
        return f"np.ma.MaskedArray({data}, {mask})"


TEXTS, TIMES, FIELDS, MASKED = TextArray(), TimeArray(), StructuredArray(), MaskedArray()
OTHERS: dict[str, Kind] = {
    "U": TEXTS, "S": TEXTS, "O": TEXTS, "M": TIMES, "m": TIMES, "V": FIELDS,
}  # fmt: skip
KINDS = (ArrayKind(), TEXTS, TIMES, FIELDS, MASKED, Time64())
