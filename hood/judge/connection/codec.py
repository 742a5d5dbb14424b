"""Encode values as bytes and decode them, in a format that cannot carry code.

A message is JSON followed by the storages of its tensors and arrays. Each storage is sent once and
as a whole, so tensors that share a storage still share one after decoding. Every tensor keeps its
shape, strides, offset and dtype. Floats stay exact, and may be ``Infinity`` or ``NaN``.

The decoder treats every message as hostile. Before it makes an object, it checks size, depth,
number of values and every index. So the time and memory of decoding are proportional to the
message's bytes.

==========================  ===========================================
JSON                        value
==========================  ===========================================
null, true, 3, 3.0, "text"  itself
[…]                         list
{"complex": [3.0, 0.0]}     complex
{"bytes": base64}           bytes
{"tuple": […]}              tuple
{"dict": [[k, …], [v, …]]}  dict: its keys, its values
{"slice": [a, b, c]}        slice
{"set": […]}                set; {"frozenset": […]} likewise
{"dtype": "float32"}        torch.dtype
{"device": "cpu"}           torch.device
{"tensor": […]}             torch.Tensor: blob, bytes, dtype, offset, shape, strides, flags
{"array": […]}              numpy.ndarray: the same
{"config": [m, n, {…}]}     a data class of the course, field by field
{tag: …}                    any other kind in :mod:`hood.judge.values.table`
==========================  ===========================================
"""

from __future__ import annotations

import base64
import dataclasses
import json
import math
import struct
import sys
from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np

from hood.judge.connection.course_code import is_of_course
from hood.judge.values import table
from hood.judge.values.kind import Composed, Scalar
from hood.judge.values.kind import NotByValue as NotByValue

MAX_DEPTH = 16  # levels of nested containers in a value that a check sends or gets
# items in all containers of a value that a check sends or gets
MAX_ITEMS = 100_000
# Limit on commas and brackets in a message's JSON, counted before the JSON is parsed.
MAX_MARKS = 4 * MAX_ITEMS
# Limit on the keys of a dict that are not strings. The hashes of such keys are predictable. So a
# sender can choose keys that collide, and building the dict takes quadratic time.
MAX_KEYS = 1000
MAX_TUPLE_KEY = 8
MAX_RANK = 32  # dimensions of a tensor or an array that a check sends or gets
# bytes of all tensors and arrays in a value that a check sends or gets
MAX_BYTES = 1 << 26
MAX_JSON = 1 << 24
TOO_MUCH = f"more than {MAX_BYTES >> 20} MiB of data"
HEADER = struct.Struct(">IQ")  # bytes of JSON, bytes of storages

# The decoder may raise these errors for JSON that does not follow the table above. RuntimeError
# comes from torch.
UNREADABLE = (ValueError, TypeError, LookupError, AttributeError, OverflowError, RuntimeError)

# Types that JSON represents directly. Most values have such a type, so containers test for these
# types first, without a call for each item.
AS_THEY_ARE = frozenset({int, float, str, bool, type(None)})
OTHER_ITEMS = "a set with unsuitable items"
KEYS = frozenset({int, bool, float, type(None)})  # and dtypes


def pack(value: Any) -> bytes:
    """Encode a value as one message, with its header. Raises NotByValue if it can't be sent."""
    encoder = _Encoder()
    try:
        [tree] = encoder.trees((value,), 0)
        text = json.dumps(tree).encode()
    except (ValueError, RecursionError) as error:  # an integer of thousands of digits
        raise NotByValue(f"a value that is too large to send ({error})") from None
    if len(text) > MAX_JSON:
        raise NotByValue(f"more than {MAX_JSON >> 20} MiB of text and numbers")
    _bound(text)
    return b"".join([HEADER.pack(len(text), encoder.bytes), text, *encoder.blobs])


def sizes(header: bytes) -> tuple[int, int]:
    """Return how many bytes of JSON and of storages follow a header.

    Raises NotByValue if there are too many bytes.
    """
    text, blobs = HEADER.unpack(header)
    if text > MAX_JSON or blobs > MAX_BYTES:
        raise NotByValue(f"a message of {text + blobs} bytes; at most {MAX_BYTES} are read")
    return text, blobs


def unpack(message: bytes) -> Any:
    """Decode a message; tensors get new storages. Raise NotByValue if the message is not valid."""
    text, blobs = sizes(message[: HEADER.size])
    body = memoryview(message)[HEADER.size :]
    if len(body) != text + blobs:
        raise NotByValue("a message that is shorter or longer than its header says")
    json_text = bytes(body[:text])
    _bound(json_text)
    try:
        # Make each NaN a new object: lists that share one NaN object would be equal.
        tree = json.loads(json_text.decode(), parse_constant=float)
        [value] = _Decoder(body[text:]).values((tree,), 0)
    except NotByValue:
        raise
    except UNREADABLE as error:
        raise NotByValue(f"a message that can't be read ({type(error).__name__})") from None
    return value


class _Encoder:
    def __init__(self) -> None:
        self.blobs: list[bytes] = []
        self.bytes = 0
        self.items = 0
        # Keep the storages alive: the address of a freed storage may be used again.
        self.storages: dict[int, tuple[int, Any]] = {}

    def trees(self, values: Collection[Any], depth: int) -> list[Any]:
        """Return the JSON trees of values that are nested ``depth`` levels deep."""
        self.items += len(values)
        if values and depth > MAX_DEPTH:
            raise NotByValue(f"something nested more than {MAX_DEPTH} levels deep")
        if self.items > MAX_ITEMS:
            raise NotByValue(f"more than {MAX_ITEMS} values")
        return [v if type(v) in AS_THEY_ARE else self._other(v, depth) for v in values]

    def _other(self, value: Any, depth: int) -> Any:
        # Test the usual types first: a message has many values, and most tests below cost more.
        kind = type(value)
        if kind is list or kind is tuple or kind is dict:
            return self._container(value, depth + 1)
        if row := table.kind(value):
            if isinstance(row, Composed):
                return {row.tag: self.trees((row.parts(value),), depth + 1)[0]}
            return {row.tag: row.sent(value, self)}
        if isinstance(value, np.generic):
            value = value.item()
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, (int, str)):
            return int(value) if isinstance(value, int) else str(value)
        if isinstance(value, float):
            return float(value)
        if isinstance(value, complex):
            return {"complex": [value.real, value.imag]}
        if isinstance(value, bytes):
            return {"bytes": base64.b64encode(value).decode()}
        return self._container(value, depth + 1)

    def _container(self, value: Any, depth: int) -> Any:
        if isinstance(value, (tuple, list)):
            items = self.trees(value, depth)
            return items if isinstance(value, list) else {"tuple": items}
        if isinstance(value, table.SETS):
            # in an order that depends on the items alone
            items = sorted(value, key=lambda item: (type(item).__name__, repr(item)))
            tag = "set" if isinstance(value, set) else "frozenset"
            return {tag: self.trees(_hashable(items, OTHER_ITEMS), depth)}
        if isinstance(value, slice):
            return {"slice": self.trees((value.start, value.stop, value.step), depth)}
        if isinstance(value, Mapping):
            keys, values = list(value.keys()), list(value.values())
            return {"dict": [self.trees(keys, depth), self.trees(values, depth)]}
        if dataclasses.is_dataclass(value) and is_of_course(type(value).__module__):
            names = [field.name for field in dataclasses.fields(value)]
            fields = self.trees([getattr(value, name) for name in names], depth)
            content = dict(zip(names, fields, strict=True))
            return {"config": [type(value).__module__, type(value).__name__, content]}
        raise NotByValue(
            f"a value of type {type(value).__name__}: expected tensors, arrays, numbers, strings, "
            "or lists, tuples, sets and dicts of them"
        )

    def fits(self, nbytes: int) -> None:
        """Raise NotByValue if these bytes would make the message too large."""
        if self.bytes + nbytes > MAX_BYTES:
            raise NotByValue(TOO_MUCH)

    def storage(self, address: int, nbytes: int, read: Callable[[], bytes], kept: Any) -> int:
        """Return a storage's number in the message. Storages at address 0 are sent again each time.

        ``read`` returns the storage's bytes. The encoder keeps a reference to ``kept``, so that no
        other storage gets the same address.
        """
        if address == 0 or address not in self.storages:
            self.fits(nbytes)
            self.bytes += nbytes
            self.storages[address] = len(self.blobs), kept
            self.blobs.append(read())
        return self.storages[address][0]


class _Decoder:
    """Decode the JSON tree of a message. The methods may raise any error in :data:`UNREADABLE`."""

    def __init__(self, blobs: memoryview):
        self.blobs = blobs
        self.at = 0
        self.storages: list[bytearray] = []
        self.items = 0
        self.bytes = 0

    def values(self, trees: Collection[Any], depth: int) -> list[Any]:
        """Return the values of JSON trees that are nested ``depth`` levels deep."""
        self.items += len(trees)
        if trees and (depth > MAX_DEPTH or self.items > MAX_ITEMS):
            raise NotByValue("a message with too many values or levels")
        return [
            tree
            if type(tree) in AS_THEY_ARE and (type(tree) is not str or tree.isascii())
            else self._other(tree, depth)
            for tree in trees
        ]

    def _other(self, tree: Any, depth: int) -> Any:
        if isinstance(tree, str):  # lone surrogates cannot be written to a UTF-8 file
            return tree.encode("utf-8", "replace").decode("utf-8")
        if isinstance(tree, list):
            return self.values(tree, depth + 1)
        ((kind, content),) = tree.items()
        try:
            row = table.tagged(kind)
        except ImportError:
            raise NotByValue("a value of a library that is not installed") from None
        if isinstance(row, Composed):
            return row.made(self.values((content,), depth + 1)[0])
        if row:
            return row.received(content, self)
        if kind in _SCALARS:
            return _SCALARS[kind](content)
        depth += 1
        if kind == "tuple":
            return tuple(self.values(_list(content), depth))
        if kind in ("set", "frozenset"):
            items = _hashable(self.values(_list(content), depth), OTHER_ITEMS)
            return set(items) if kind == "set" else frozenset(items)
        if kind == "dict":
            keys, values = (self.values(_list(part), depth) for part in _list(content, 2))
            return dict(zip(_hashable(keys), values, strict=True))
        if kind == "slice":
            return slice(*self.values(_list(content, 3), depth))
        if kind == "config":
            module, name, fields = content
            # not by getattr: a module's __getattr__ may import something
            ours = sys.modules.get(module) if is_of_course(module) else None
            known: Any = vars(ours).get(name) if ours else None
            # is_dataclass is also true of an instance
            if not (isinstance(known, type) and dataclasses.is_dataclass(known)):
                raise NotByValue("a value of an unknown class")
            values = self.values(list(fields.values()), depth)
            return known(**dict(zip(fields, values, strict=True)))
        raise NotByValue("a message with an unknown kind of value")

    def _storage(self, index: int, nbytes: int) -> bytearray:
        """Return a storage. The storage is cut from the message when it is first used."""
        if index == len(self.storages) and 0 <= nbytes <= len(self.blobs) - self.at:
            self.storages.append(bytearray(self.blobs[self.at : self.at + nbytes]))
            self.at += nbytes
        elif not 0 <= index < len(self.storages) or nbytes != len(self.storages[index]):
            raise NotByValue("a message that refers to a storage that it does not contain")
        return self.storages[index]

    def _spend(self, shape: list[int], itemsize: int) -> int:
        """Return the number of elements of a shape, and count their bytes against the limit.

        The storage's size does not limit the shape: with strides of 0, a few bytes can have any
        shape.
        """
        if len(shape) > MAX_RANK or any(type(n) is not int or n < 0 for n in shape):
            raise NotByValue("a message with an impossible shape")
        count = math.prod(shape)
        self.bytes += count * itemsize
        if self.bytes > MAX_BYTES:
            raise NotByValue(TOO_MUCH)
        return count

    def view(self, content: Any, itemsize: int) -> tuple[bytearray, int, list, list, str]:
        """Return a tensor's storage, offset, shape, strides and flags, if they fit together.

        ``itemsize`` is the size of the dtype in ``content``. Raises NotByValue if they do not fit
        together, and any error in :data:`UNREADABLE` if the form is wrong.
        """
        index, nbytes, _, offset, shape, strides, flags = content
        count = self._spend(shape, itemsize)
        whole = all(type(n) is int and n >= 0 for n in (*strides, offset))
        if len(strides) != len(shape) or not whole:
            raise NotByValue("a message with impossible strides or an impossible offset")
        last = offset + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
        if count and (last + 1) * itemsize > nbytes:
            raise NotByValue("a message with a view that exceeds its storage")
        return self._storage(index, nbytes), offset, shape, strides, flags


def _bound(text: bytes) -> None:
    if sum(map(text.count, (b",", b"[", b"{"))) > MAX_MARKS:
        raise NotByValue(f"more than {MAX_ITEMS} values")


def _hashable(keys: list[Any], what: str = "a dict with unsuitable keys") -> list[Any]:
    others = [key for key in keys if type(key) is not str]
    if len(others) > MAX_KEYS or not all(map(_is_key, others)):
        raise NotByValue(
            f"{what}: texts are allowed, and at most {MAX_KEYS} small numbers, dates, dtypes and "
            "short tuples of these"
        )
    return keys


def _is_key(key: Any) -> bool:
    if type(key) in (tuple, frozenset) and len(key) <= MAX_TUPLE_KEY:
        return all(type(one) is str or _is_flat_key(one) for one in key)
    return _is_flat_key(key)


def _is_flat_key(key: Any) -> bool:
    if type(key) in KEYS:
        return type(key) is not int or abs(key) < 2**63
    row = table.kind(key)
    return isinstance(row, Scalar) or (row is not None and row.tag == "dtype")


def _list(content: Any, size: int | None = None) -> list[Any]:
    if not isinstance(content, list) or size not in (None, len(content)):
        raise NotByValue("a message without a list where one is expected")
    return content


def _complex(content: Any) -> complex:
    real, imaginary = _list(content, 2)
    if type(real) is not float or type(imaginary) is not float:
        raise NotByValue("a message with a complex number that is not made of floats")
    return complex(real, imaginary)


_SCALARS = {
    "complex": _complex,
    "bytes": lambda text: base64.b64decode(text, validate=True),
}
