"""The rows of torch in the table of kinds: tensors, dtypes, devices."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import torch

from hood.judge.values.kind import Grid, Kind, NotByValue, Unprintable, Writer

NAMES_OF_DTYPES = {
    str(dtype).removeprefix("torch."): dtype
    for dtype in vars(torch).values()
    if isinstance(dtype, torch.dtype)
}
# The dtypes of tensors that can be sent. Left out: quantized and raw-bit dtypes, and complex32,
# for which torch warns.
DTYPES = {
    name: dtype
    for name, dtype in NAMES_OF_DTYPES.items()
    if not name.startswith(("q", "bits", "complex32"))
}
NAMES = {dtype: name for name, dtype in DTYPES.items()}
GRAD, CONJ, NEG = "g", "c", "n"  # flags of a tensor, as letters

SHORTEST, LONGEST = 6, 256  # elements of a tensor that is written as `torch.arange`
EXACT = 2**52  # float64 has every whole number up to this; for much larger numbers, x + 1 is x
# dtypes that torch.tensor infers from Python numbers
INFERRED = {torch.float32, torch.int64, torch.bool, torch.complex64}
NUMPYS = {torch.float64: np.float64, torch.float32: np.float32, torch.float16: np.float16}


class TensorKind(Grid):
    tag, type = "tensor", torch.Tensor

    def sent(self, value: torch.Tensor, encoder: Any) -> list[Any]:
        if type(value).__torch_dispatch__ is not torch.Tensor.__torch_dispatch__:
            # A subclass may have no storage, and operators of a subclass run the learner's code.
            raise NotByValue(
                f"a tensor of class {type(value).__name__}: expected the plain tensor inside it"
            )
        if value.layout is not torch.strided or value.device.type == "meta" or value.is_quantized:
            raise NotByValue(f"a tensor of layout {value.layout} on {value.device}")
        name = NAMES.get(value.dtype)
        if name is None:
            raise NotByValue(f"a tensor of {value.dtype}")
        plain = value.detach()
        storage = plain.untyped_storage()
        index = encoder.storage(
            storage.data_ptr(), storage.nbytes(), lambda: _bytes(storage), storage
        )
        flags = (GRAD, value.requires_grad), (CONJ, plain.is_conj()), (NEG, plain.is_neg())
        return [
            index,
            storage.nbytes(),
            name,
            plain.storage_offset(),
            list(plain.shape),
            list(plain.stride()),
            "".join(letter for letter, is_so in flags if is_so),
        ]

    def received(self, content: Any, decoder: Any) -> torch.Tensor:
        kind = DTYPES[content[2]]
        data, offset, shape, strides, flags = decoder.view(content, kind.itemsize)
        if not data:
            tensor = torch.empty(0, dtype=kind).as_strided(shape, strides)
        elif len(data) % kind.itemsize:
            storage = torch.frombuffer(data, dtype=torch.uint8).untyped_storage()
            tensor = torch.empty(0, dtype=kind).set_(storage, offset, shape, strides)
        else:
            tensor = torch.frombuffer(data, dtype=kind).as_strided_(shape, strides, offset)
        if CONJ in flags:
            tensor = tensor.conj()
        if NEG in flags:
            tensor = torch._neg_view(tensor)
        return tensor.requires_grad_() if GRAD in flags else tensor

    def words(self, value: torch.Tensor) -> str:
        return "a 0-dim tensor" if value.dim() == 0 else "a tensor"

    def count(self, value: torch.Tensor) -> int:
        return value.numel()

    def numbers(self, value: torch.Tensor) -> np.ndarray:
        wide = torch.complex128 if value.is_complex() else torch.float64
        if not (value.is_floating_point() or value.is_complex()):
            wide = torch.int64
        return value.detach().to(wide).cpu().resolve_conj().resolve_neg().numpy()

    def equal(self, one: torch.Tensor, other: torch.Tensor) -> bool:
        # torch.equal does not support complex32
        return one.dtype is not torch.complex32 and torch.equal(one, other)

    def unchanged(self, before: torch.Tensor, after: torch.Tensor) -> bool:
        # the usual case; this test is fast, and False if there is a NaN
        if torch.equal(before, after):
            return True
        if not (before.is_floating_point() or before.is_complex()):
            return False
        one, other = (tensor.detach().to(torch.complex128) for tensor in (before, after))
        return bool(torch.isclose(one, other, rtol=0, atol=0, equal_nan=True).all())

    def strides(self, value: torch.Tensor) -> tuple[int, ...]:
        return value.stride()

    def address(self, value: torch.Tensor) -> int:
        try:
            return value.untyped_storage().data_ptr()
        except RuntimeError:
            return 0

    def needs_gradient(self, value: torch.Tensor) -> bool:
        return value.requires_grad

    def plain(self, value: torch.Tensor) -> torch.Tensor:
        plain = value.detach().resolve_conj().resolve_neg()
        return plain.clone(memory_format=torch.contiguous_format)

    def with_item(self, value: torch.Tensor, key: Any, item: Any) -> torch.Tensor:
        copy = value.detach().clone()
        copy[key] = item
        return copy

    def marked(self, value: torch.Tensor) -> torch.Tensor:
        numbers = torch.arange(3, value.numel() + 3).remainder(251).reshape(value.shape)
        return numbers.to(value.dtype) if value.dtype is not torch.bool else ~value

    def literal(self, value: torch.Tensor, writer: Writer) -> str:
        """Return an expression that also makes the same dtype, strides, offset and storage."""
        plain = value.detach()
        if plain.layout is not torch.strided or plain.is_conj() or plain.is_neg():
            raise Unprintable("a tensor of another layout")
        suffix = ".requires_grad_()" if value.requires_grad else ""
        stored = plain.untyped_storage().nbytes() // plain.element_size()
        short = _spacing(plain, stored) or _is_constant(plain, stored)
        writer.spend(plain.dim() + 1 if short else stored)
        # dimensions by stride, largest first: in this order, a dense tensor is contiguous
        strides = plain.stride()
        order = sorted(range(plain.dim()), key=lambda dim: -strides[dim])
        if _is_fresh(plain, stored):
            return _fresh(plain, writer) + suffix
        if _is_fresh(plain.permute(order), stored):
            if plain.dim() == 2:
                return f"{_fresh(plain.t(), writer)}.t(){suffix}"
            back = tuple(order.index(dim) for dim in range(plain.dim()))
            return f"{_fresh(plain.permute(order), writer)}.permute{back}{suffix}"
        whole = plain.as_strided((stored,), (1,), 0)
        place = f"{tuple(plain.shape)}, {plain.stride()}"
        if plain.storage_offset():
            place += f", {plain.storage_offset()}"
        return f"{_fresh(whole, writer)}.as_strided({place}){suffix}"


def _bytes(storage: torch.UntypedStorage) -> bytes:
    whole = storage.cpu()
    return ctypes.string_at(whole.data_ptr(), whole.nbytes())


def _fresh(tensor: torch.Tensor, writer: Writer) -> str:
    def dtype(*inferred: torch.dtype) -> str:
        return "" if tensor.dtype in inferred else f", dtype={tensor.dtype}"

    shape, count = tuple(tensor.shape), tensor.numel()
    if not count:
        made = "torch.tensor([]" if shape == (0,) else f"torch.zeros({shape}"
        return f"{made}{dtype(torch.float32)})"
    if spacing := _spacing(tensor, count):
        start, times = spacing
        ends = f"{start}, {start + count}" if start else f"{count}"
        ends += "." if tensor.dtype is torch.float32 else dtype(torch.int64)
        numbers = f"torch.arange({ends})"
        numbers = f"({numbers} {times})" if times else numbers
        return numbers + (f".reshape{shape}" if len(shape) > 1 else "")
    if _is_constant(tensor, count):
        number = _numbers(tensor.flatten()[0], writer)
        return f"torch.full({shape}, {number}{dtype(*INFERRED)})"
    return f"torch.tensor({_numbers(tensor, writer)}{dtype(*INFERRED)})"


def _numbers(tensor: torch.Tensor, writer: Writer) -> str:
    if tensor.dim():
        return f"[{', '.join(_numbers(one, writer) for one in tensor)}]"
    value = tensor.item()
    if tensor.dtype.is_complex:
        if not (math.isfinite(value.real) and math.isfinite(value.imag)):
            raise Unprintable("a complex number that is not finite")
        return repr(value)
    if not tensor.dtype.is_floating_point:
        return repr(value)
    most = torch.finfo(tensor.dtype).max
    return writer.number(value, most, partial(_exact, tensor.dtype), "torch")


def _exact(dtype: torch.dtype, value: float) -> str:
    """Write a number with the fewest digits that are exact in its dtype."""
    if dtype in NUMPYS:
        return str(NUMPYS[dtype](value))
    tries = (f"{value:.{digits}g}" for digits in range(1, 18))
    text = next(t for t in tries if torch.tensor(float(t), dtype=dtype).item() == value)
    return text if set(text) & set(".en") else f"{text}.0"


def _is_fresh(tensor: torch.Tensor, stored: int) -> bool:
    """Return whether a tensor is laid out like a new tensor and uses its whole storage."""
    alike = torch.empty(tensor.shape, dtype=tensor.dtype, device="meta").stride()
    return tensor.stride() == alike and tensor.storage_offset() == 0 and tensor.numel() == stored


def _spacing(tensor: torch.Tensor, stored: int) -> tuple[int, str] | None:
    """Return how to make a tensor's storage from consecutive whole numbers; None if impossible.

    The result is the first number, and the operation on each number, such as ``* 0.5``, or "".
    """
    if not SHORTEST <= stored <= LONGEST or tensor.dtype.is_complex or tensor.dtype is torch.bool:
        return None
    flat = tensor.as_strided((stored,), (1,), 0)
    whole = flat.to(torch.float64)
    step = float(whole[1] - whole[0])
    if not (math.isfinite(step) and step and abs(float(whole[0]) / step) < EXACT):
        return None
    start = round(float(whole[0]) / step)
    if step == 1:
        counts = torch.equal(whole, torch.arange(stored, dtype=torch.float64) + start)
        return (start, "") if counts else None
    if tensor.dtype not in (torch.float32, torch.float64):
        return None
    counted = torch.arange(start, start + stored, dtype=tensor.dtype)
    factor = float(whole[-1] - whole[0]) / (stored - 1)
    if not factor:
        return None
    for digits in range(1, 10):
        for sign, number in (("*", factor), ("/", 1 / factor)):
            text = f"{number:.{digits}g}"
            made = counted * float(text) if sign == "*" else counted / float(text)
            if torch.equal(made, flat):
                return start, f"{sign} {text}"
    return None


def _is_constant(tensor: torch.Tensor, stored: int) -> bool:
    flat = tensor.as_strided((stored,), (1,), 0) if stored > SHORTEST else tensor
    return stored > SHORTEST and bool((flat == flat[0]).all()) and not tensor.dtype.is_complex


class DtypeKind(Kind):
    tag, type = "dtype", torch.dtype

    def sent(self, value: torch.dtype, encoder: Any) -> str:
        return str(value).removeprefix("torch.")

    def received(self, content: Any, decoder: Any) -> torch.dtype:
        return NAMES_OF_DTYPES[content]

    def literal(self, value: torch.dtype, writer: Writer) -> str:
        return repr(value)


class DeviceKind(Kind):
    tag, type = "device", torch.device

    def sent(self, value: torch.device, encoder: Any) -> str:
        return str(value)

    def received(self, content: Any, decoder: Any) -> torch.device:
        return torch.device(content)


class TensorSource:
    """Random numbers in tensors; see :class:`hood.judge.values.kind.Source`."""

    def __init__(self, seed: int):
        self._generator = torch.Generator().manual_seed(seed)

    def dtype(self, dtype: torch.dtype | None) -> torch.dtype:
        return torch.float32 if dtype is None else dtype

    def form(self, dtype: torch.dtype) -> tuple[str, int]:
        if dtype.is_floating_point or dtype.is_complex:
            return ("c" if dtype.is_complex else "f"), 0
        if dtype is torch.bool:
            return "b", 0
        return ("u" if dtype is torch.uint8 else "i"), torch.iinfo(dtype).max

    def normal(
        self, shape: Sequence[int], dtype: torch.dtype, decimals: int | None = None
    ) -> torch.Tensor:
        real = torch.complex128 if dtype.is_complex else torch.float64
        values = torch.randn(tuple(shape), generator=self._generator, dtype=real) * 1.3 + 0.3
        return (values if decimals is None else values.round(decimals=decimals)).to(dtype)

    def whole(self, low: int, high: int, shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
        return torch.randint(low, high, tuple(shape), generator=self._generator).to(dtype)

    def counted(
        self, start: int, count: int, shape: Sequence[int], dtype: torch.dtype
    ) -> torch.Tensor:
        return torch.arange(start, start + count).to(dtype).reshape(tuple(shape))

    def reversed(self, values: torch.Tensor) -> torch.Tensor:
        return values.permute(tuple(range(values.dim() - 1, -1, -1)))


KINDS = (TensorKind(), DtypeKind(), DeviceKind())
