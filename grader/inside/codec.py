"""Values as bytes and back, in a format in which nothing can be executed.

A message is JSON, then the bytes of the storages that its tensors and arrays lie in. Each storage
crosses once and whole: tensors that shared one share the copy, and keep shape, strides, offset and
dtype. Floats cross as hexadecimal text, exactly. What arrives is taken for hostile: its size,
depth, count and every index are checked before anything is made of it, so that reading costs time
and memory in proportion to the bytes. The keys of a dict are text, or few and small.

========================  ===========================================
JSON                      value
========================  ===========================================
null, true, 3, "text"     itself
[…]                       list
{"float": "0x1.8p+1"}     float
{"complex": [hex, hex]}   complex
{"bytes": base64}         bytes
{"tuple": […]}            tuple
{"dict": [[k, v], …]}     dict
{"slice": [a, b, c]}      slice
{"dtype": "float32"}      torch.dtype
{"device": "cpu"}         torch.device
{"array": […]}            numpy.ndarray: blob, dtype, shape, order
{"tensor": […]}           torch.Tensor: blob, dtype, offset, shape, strides, flags
{"config": [m, n, {…}]}   a data class of ``utils``, field by field
========================  ===========================================
"""

from __future__ import annotations

import base64
import dataclasses
import json
import math
import re
import struct
import sys
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import torch

MAX_DEPTH = 16
MAX_ITEMS = 100_000
# Commas and brackets in a message's JSON, counted before any of it is made into objects.
MAX_MARKS = 4 * MAX_ITEMS
# Keys of one dict that are not text: unlike text's, their hashes are known, and can be made to
# collide, which is as slow as the square of their number.
MAX_KEYS = 1000
MAX_TUPLE_KEY = 8
MAX_RANK = 32
MAX_BYTES = 1 << 26
MAX_JSON = 1 << 24
HEADER = struct.Struct(">IQ")  # bytes of JSON, bytes of storages

# What a tree of another form than the table's makes of being read; torch raises RuntimeError.
UNREADABLE = (
    ValueError,
    TypeError,
    KeyError,
    IndexError,
    AttributeError,
    OverflowError,
    RuntimeError,
)

NAMES_OF_DTYPES = {
    str(dtype).removeprefix("torch."): dtype
    for dtype in vars(torch).values()
    if isinstance(dtype, torch.dtype)
}
# Those that tensors cross in: no quantized formats, raw bits, or complex32, of which torch warns.
DTYPES = {
    name: dtype
    for name, dtype in NAMES_OF_DTYPES.items()
    if not name.startswith(("q", "bits", "complex32"))
}
# What stands in the JSON as itself. Most values are of just these types, so they are asked for
# first, and where they stand, in containers.
AS_THEY_ARE = frozenset({int, str, bool, type(None)})
KEYS = frozenset({int, bool, float, type(None), torch.dtype})
# NumPy's names of numbers; its parser of dtypes takes gigabytes for a long list of fields.
NUMBERS = re.compile(r"[<|](?:b1|[iu][1248]|f[248]|c8|c16)")
# Flags of a tensor, as letters.
GRAD, CONJ, NEG = "g", "c", "n"


class NotByValue(TypeError):
    """A value of a kind, depth or size that does not cross between processes."""


def pack(value: Any) -> bytes:
    """A value as one message, with its header.

    Raises:
        NotByValue: for anything but tensors, arrays, numbers, strings, dtypes, containers of them
            and data classes of ``utils``; or for too much, too large or too deep.
    """
    encoder = _Encoder()
    try:
        text = json.dumps(encoder.tree(value, 0), allow_nan=False).encode()
    except (ValueError, RecursionError) as error:  # an integer of thousands of digits
        raise NotByValue(f"a value that is too large to send ({error})") from None
    if len(text) > MAX_JSON:
        raise NotByValue(f"more than {MAX_JSON >> 20} MiB of text and numbers")
    _bound(text)
    return b"".join([HEADER.pack(len(text), encoder.bytes), text, *encoder.blobs])


def sizes(header: bytes) -> tuple[int, int]:
    """How many bytes of JSON and of storages follow a header.

    Raises:
        NotByValue: when they are more than a message may have.
    """
    text, blobs = HEADER.unpack(header)
    if text > MAX_JSON or blobs > MAX_BYTES:
        raise NotByValue(f"a message of {text + blobs} bytes; at most {MAX_BYTES} are read")
    return text, blobs


def unpack(message: bytes) -> Any:
    """The value in a message, made of new storages.

    Raises:
        NotByValue: for whatever is not such a message.
    """
    text, blobs = sizes(message[: HEADER.size])
    body = memoryview(message)[HEADER.size :]
    if len(body) != text + blobs:
        raise NotByValue("a message that is shorter or longer than it says")
    json_text = bytes(body[:text])
    _bound(json_text)
    try:
        tree = READER.decode(json_text.decode())
        return _Decoder(body[text:]).value(tree, 0)
    except NotByValue:
        raise
    except UNREADABLE as error:
        raise NotByValue(f"a message that can't be read ({type(error).__name__})") from None


def copy_by_value(value: Any) -> Any:
    """What arrives when ``value`` is sent: equal, and sharing no bytes with it.

    Raises:
        NotByValue: as :func:`pack` does.
    """
    return unpack(pack(value))


class _Encoder:
    def __init__(self) -> None:
        self.blobs: list[bytes] = []
        self.bytes = 0
        self.items = 0
        # The storages themselves are kept: an address means nothing once its owner is gone.
        self.storages: dict[int, tuple[int, torch.UntypedStorage]] = {}

    def tree(self, value: Any, depth: int) -> Any:
        """What stands in the JSON for a value."""
        return self._trees((value,), depth)[0]

    def _trees(self, values: Collection[Any], depth: int) -> list[Any]:
        """What stands in the JSON for values that lie side by side."""
        self.items += len(values)
        if values and depth > MAX_DEPTH:
            raise NotByValue(f"something nested more than {MAX_DEPTH} levels deep")
        if self.items > MAX_ITEMS:
            raise NotByValue(f"more than {MAX_ITEMS} values")
        return [v if type(v) in AS_THEY_ARE else self._other(v, depth) for v in values]

    def _other(self, value: Any, depth: int) -> Any:
        if isinstance(value, torch.Tensor):
            return {"tensor": self._tensor(value)}
        if isinstance(value, np.generic):
            value = value.item()
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, (int, str)):
            return int(value) if isinstance(value, int) else str(value)
        if isinstance(value, float):
            return {"float": float.hex(float(value))}
        if isinstance(value, complex):
            return {"complex": [value.real.hex(), value.imag.hex()]}
        if isinstance(value, bytes):
            return {"bytes": base64.b64encode(value).decode()}
        if isinstance(value, torch.dtype):
            return {"dtype": str(value).removeprefix("torch.")}
        if isinstance(value, torch.device):
            return {"device": str(value)}
        if isinstance(value, np.ndarray):
            return {"array": self._array(value)}
        return self._container(value, depth + 1)

    def _container(self, value: Any, depth: int) -> Any:
        if isinstance(value, slice):
            return {"slice": self._trees((value.start, value.stop, value.step), depth)}
        if isinstance(value, Mapping):
            keys, values = list(value.keys()), list(value.values())
            pairs = zip(self._trees(keys, depth), self._trees(values, depth), strict=True)
            return {"dict": list(pairs)}
        if isinstance(value, (tuple, list)):
            items = self._trees(value, depth)
            return items if isinstance(value, list) else {"tuple": items}
        if dataclasses.is_dataclass(value) and type(value).__module__.startswith("utils."):
            names = [field.name for field in dataclasses.fields(value)]
            fields = self._trees([getattr(value, name) for name in names], depth)
            content = dict(zip(names, fields, strict=True))
            return {"config": [type(value).__module__, type(value).__name__, content]}
        raise NotByValue(
            f"a value of type {type(value).__name__}: expected tensors, arrays, numbers, strings, "
            "or containers of them"
        )

    def _blob(self, data: bytes) -> int:
        self.bytes += len(data)
        if self.bytes > MAX_BYTES:
            raise NotByValue(f"more than {MAX_BYTES >> 20} MiB of data")
        self.blobs.append(data)
        return len(self.blobs) - 1

    def _array(self, value: np.ndarray) -> list[Any]:
        if value.dtype.hasobject or value.dtype.names:
            raise NotByValue("a NumPy array of Python objects or records")
        if value.nbytes > MAX_BYTES:  # before it is copied
            raise NotByValue(f"more than {MAX_BYTES >> 20} MiB of data")
        order = "F" if value.flags.f_contiguous and not value.flags.c_contiguous else "C"
        data = value.tobytes("F" if order == "F" else "C")
        return [self._blob(data), len(data), value.dtype.str, list(value.shape), order]

    def _tensor(self, value: torch.Tensor) -> list[Any]:
        if type(value).__torch_dispatch__ is not torch.Tensor.__torch_dispatch__:
            # It may have no storage at all, and its operators are the learner's own code.
            raise NotByValue(
                f"a tensor of class {type(value).__name__}: expected the plain tensor inside it"
            )
        if value.layout is not torch.strided or value.device.type == "meta" or value.is_quantized:
            raise NotByValue(f"a tensor of layout {value.layout} on {value.device}")
        if str(value.dtype).removeprefix("torch.") not in DTYPES:
            raise NotByValue(f"a tensor of {value.dtype}")
        plain = value.detach()
        storage = plain.untyped_storage()
        address = storage.data_ptr()
        if address == 0 or address not in self.storages:
            if storage.nbytes() > MAX_BYTES:
                raise NotByValue(f"more than {MAX_BYTES >> 20} MiB of data")
            everything = torch.empty(0, dtype=torch.uint8).set_(storage.cpu())
            index = self._blob(everything.numpy().tobytes())
            self.storages[address] = index, storage
        index = self.storages[address][0]
        flags = (GRAD, value.requires_grad), (CONJ, plain.is_conj()), (NEG, plain.is_neg())
        return [
            index,
            storage.nbytes(),
            str(plain.dtype).removeprefix("torch."),
            plain.storage_offset(),
            list(plain.shape),
            list(plain.stride()),
            "".join(letter for letter, is_so in flags if is_so),
        ]


class _Decoder:
    """Reads the tree of a message; raises any of the errors that :func:`unpack` catches."""

    def __init__(self, blobs: memoryview):
        self.blobs = blobs
        self.at = 0
        self.storages: list[bytearray] = []
        self.items = 0
        self.bytes = 0

    def value(self, tree: Any, depth: int) -> Any:
        """The value that a part of the JSON stands for."""
        return self._values((tree,), depth)[0]

    def _values(self, trees: Collection[Any], depth: int) -> list[Any]:
        """The values that parts of the JSON, side by side, stand for."""
        self.items += len(trees)
        if trees and (depth > MAX_DEPTH or self.items > MAX_ITEMS):
            raise NotByValue("a message with too many values or levels")
        return [
            (_text(tree) if type(tree) is str else tree)
            if type(tree) in AS_THEY_ARE
            else self._other(tree, depth)
            for tree in trees
        ]

    def _other(self, tree: Any, depth: int) -> Any:
        if isinstance(tree, list):
            return self._values(tree, depth + 1)
        ((kind, content),) = tree.items()
        if kind in ("tensor", "array"):
            return self._tensor(*content) if kind == "tensor" else self._array(*content)
        if kind in _SCALARS:
            return _SCALARS[kind](content)
        return self._container(kind, content, depth + 1)

    def _container(self, kind: str, content: Any, depth: int) -> Any:
        if kind == "tuple":
            return tuple(self._values(_list(content), depth))
        if kind == "dict":
            keys, values = [k for k, _ in content], [v for _, v in content]
            keys = _hashable(self._values(keys, depth))
            return dict(zip(keys, self._values(values, depth), strict=True))
        if kind == "slice":
            return slice(*self._values(_list(content, 3), depth))
        if kind == "config":
            module, name, fields = content
            known: Any = getattr(sys.modules.get(module), name, None)
            # is_dataclass is true of an instance, too
            is_class = isinstance(known, type) and dataclasses.is_dataclass(known)
            if not (module.startswith("utils.") and is_class):
                raise NotByValue("a value of a class that is not known here")
            values = self._values(list(fields.values()), depth)
            return known(**dict(zip(fields, values, strict=True)))
        raise NotByValue("a message with a kind of value that is not known here")

    def _storage(self, index: int, nbytes: int) -> bytearray:
        """The blob of that index; each is taken up, in order, by the first that lies in it."""
        if index == len(self.storages) and 0 <= nbytes <= len(self.blobs) - self.at:
            self.storages.append(bytearray(self.blobs[self.at : self.at + nbytes]))
            self.at += nbytes
        elif not 0 <= index < len(self.storages) or nbytes != len(self.storages[index]):
            raise NotByValue("a message whose data is not there")
        return self.storages[index]

    def _spend(self, shape: list[int], itemsize: int) -> int:
        """The number of elements. A few bytes can be stretched over any shape: it is bounded."""
        if len(shape) > MAX_RANK or any(type(n) is not int or n < 0 for n in shape):
            raise NotByValue("a message with a shape that can't be")
        count = math.prod(shape)
        self.bytes += count * itemsize
        if self.bytes > MAX_BYTES:
            raise NotByValue(f"more than {MAX_BYTES >> 20} MiB of data")
        return count

    def _array(self, index: int, nbytes: int, dtype: str, shape: list, order: str) -> np.ndarray:
        if not NUMBERS.fullmatch(dtype) or order not in ("C", "F"):
            raise NotByValue("a NumPy array of something else than plain numbers or booleans")
        kind = np.dtype(dtype)
        if self._spend(shape, kind.itemsize) * kind.itemsize != nbytes:
            raise NotByValue("a message whose array is not as long as its shape")
        return np.frombuffer(self._storage(index, nbytes), kind).reshape(
            shape, order="F" if order == "F" else "C"
        )

    def _tensor(
        self,
        index: int,
        nbytes: int,
        dtype: str,
        offset: int,
        shape: list,
        strides: list,
        flags: str,
    ) -> torch.Tensor:
        kind = DTYPES[dtype]
        count = self._spend(shape, kind.itemsize)
        numbers = [*strides, offset]
        if len(strides) != len(shape) or any(type(n) is not int or n < 0 for n in numbers):
            raise NotByValue("a message with strides that can't be")
        last = offset + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
        if count and (last + 1) * kind.itemsize > nbytes:
            raise NotByValue("a message with a view that leaves its storage")
        data = self._storage(index, nbytes)
        tensor = torch.empty(0, dtype=kind)
        if data:
            whole = torch.frombuffer(data, dtype=torch.uint8).untyped_storage()
            tensor.set_(whole, offset, shape, strides)
        else:
            tensor = tensor.as_strided(shape, strides)
        if CONJ in flags:
            tensor = tensor.conj()
        if NEG in flags:
            tensor = torch._neg_view(tensor)
        return tensor.requires_grad_(GRAD in flags)


def _bound(text: bytes) -> None:
    """Refuse JSON that may become too many objects, by its commas and brackets."""
    if sum(map(text.count, (b",", b"[", b"{"))) > MAX_MARKS:
        raise NotByValue(f"more than {MAX_ITEMS} values")


def _hashable(keys: list[Any]) -> list[Any]:
    """The keys of a dict, when they can't make it slow."""
    others = [key for key in keys if type(key) is not str]
    if len(others) > MAX_KEYS or not all(map(_is_key, others)):
        raise NotByValue(
            f"a dict whose keys are not text, or at most {MAX_KEYS} small numbers, dtypes and "
            "short tuples of them"
        )
    return keys


def _is_key(key: Any) -> bool:
    if type(key) is tuple and len(key) <= MAX_TUPLE_KEY:
        return all(type(one) is str or (type(one) is not tuple and _is_key(one)) for one in key)
    return type(key) in KEYS and (type(key) is not int or abs(key) < 2**63)


def _text(text: str) -> str:
    """Without halves of characters, which no file can hold."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def _list(content: Any, size: int | None = None) -> list[Any]:
    if not isinstance(content, list) or size not in (None, len(content)):
        raise NotByValue("a message with something else where a list must stand")
    return content


def _no_float(text: str) -> None:
    raise NotByValue("a message with a number in decimals")


READER = json.JSONDecoder(parse_float=_no_float, parse_constant=_no_float)

_SCALARS = {
    "float": float.fromhex,
    "complex": lambda parts: complex(*map(float.fromhex, parts)),
    "bytes": lambda text: base64.b64decode(text, validate=True),
    "dtype": NAMES_OF_DTYPES.__getitem__,
    "device": torch.device,
}
