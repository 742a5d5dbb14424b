"""Write values as short Python expressions, for lines that a learner pastes into a notebook."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import torch

from hood.judge.connection.course_code import is_of_course

MAX_ITEMS = 60  # numbers and containers; nobody reads more in one line
MAX_CHARACTERS = 400
SHORTEST, LONGEST = 6, 256  # elements of a tensor that is written as `torch.arange`
EXACT = 2**52  # of the numbers below it, float64 has each whole one; above some, x + 1 is x
# dtypes that torch.tensor infers from Python numbers
INFERRED = {torch.float32, torch.int64, torch.bool, torch.complex64}
NUMPYS = {torch.float64: np.float64, torch.float32: np.float32, torch.float16: np.float16}


class Unprintable(ValueError):
    """A value that cannot be written as a short line of Python."""


def literal(value: Any, digits: int = 0) -> str:
    """Return an expression that makes a value.

    For a tensor it also makes the same dtype, strides, offset and storage. The expression uses no
    names but ``torch`` and those of the course's data classes. ``digits`` are significant
    digits of numbers with a fraction; 0 for as many as are exact. Raises Unprintable if there is no
    such expression, or none that is short.
    """
    text = _Writer(digits).text(value)
    if len(text) > MAX_CHARACTERS:
        raise Unprintable("too long")
    return text


class _Writer:
    def __init__(self, digits: int) -> None:
        self._left, self._digits = MAX_ITEMS, digits

    def text(self, value: Any) -> str:
        self._spend(1)
        value = value.item() if isinstance(value, np.generic) else value
        match value:
            case torch.Tensor():
                return self._tensor(value)
            case float():
                return self._float(value, torch.float64)
            case complex():
                return _complex(value)
            case int() if abs(value) >= 10**40:
                raise Unprintable("a huge integer")
            case str() | bytes() if len(value) > MAX_CHARACTERS:
                raise Unprintable("a long text")
            case None | int() | str() | bytes() | torch.dtype():
                return repr(value)
            case slice():
                return f"slice({self._texts((value.start, value.stop, value.step))})"
            case list():
                return f"[{self._texts(value)}]"
            case tuple():
                return f"({self._texts(value)}{',' if len(value) == 1 else ''})"
            case Mapping():
                pairs = [f"{self.text(key)}: {self.text(item)}" for key, item in value.items()]
                return "{" + ", ".join(pairs) + "}"
        if dataclasses.is_dataclass(value) and is_of_course(type(value).__module__):
            fields = [(field, getattr(value, field.name)) for field in dataclasses.fields(value)]
            words = [f"{f.name}={self.text(v)}" for f, v in fields if v != f.default]
            return f"{type(value).__name__}({', '.join(words)})"
        raise Unprintable(f"a value of type {type(value).__name__}")

    def _texts(self, values: Iterable[Any]) -> str:
        return ", ".join(map(self.text, values))

    def _spend(self, count: int) -> None:
        self._left -= count
        if self._left < 0:
            raise Unprintable("too many values")

    def _tensor(self, value: torch.Tensor) -> str:
        plain = value.detach()
        if plain.layout is not torch.strided or plain.is_conj() or plain.is_neg():
            raise Unprintable("a tensor of another layout")
        suffix = ".requires_grad_()" if value.requires_grad else ""
        stored = plain.untyped_storage().nbytes() // plain.element_size()
        short = _spacing(plain, stored) or _is_constant(plain, stored)
        self._spend(plain.dim() + 1 if short else stored)
        # dimensions by stride, largest first: permuted so, a dense tensor is contiguous
        strides = plain.stride()
        order = sorted(range(plain.dim()), key=lambda dim: -strides[dim])
        if _is_fresh(plain, stored):
            return self._fresh(plain) + suffix
        if _is_fresh(plain.permute(order), stored):
            if plain.dim() == 2:
                return f"{self._fresh(plain.t())}.t(){suffix}"
            back = tuple(order.index(dim) for dim in range(plain.dim()))
            return f"{self._fresh(plain.permute(order))}.permute{back}{suffix}"
        whole = plain.as_strided((stored,), (1,), 0)
        place = f"{tuple(plain.shape)}, {plain.stride()}"
        if plain.storage_offset():
            place += f", {plain.storage_offset()}"
        return f"{self._fresh(whole)}.as_strided({place}){suffix}"

    def _fresh(self, tensor: torch.Tensor) -> str:
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
            number = self._numbers(tensor.flatten()[0])
            return f"torch.full({shape}, {number}{dtype(*INFERRED)})"
        return f"torch.tensor({self._numbers(tensor)}{dtype(*INFERRED)})"

    def _numbers(self, tensor: torch.Tensor) -> str:
        if tensor.dim():
            return f"[{', '.join(map(self._numbers, tensor))}]"
        value = tensor.item()
        if tensor.dtype.is_complex:
            return _complex(value)
        return self._float(value, tensor.dtype) if tensor.dtype.is_floating_point else repr(value)

    def _float(self, value: float, dtype: torch.dtype) -> str:
        """Write a number in ``digits`` digits or, for 0, in as few as are exact in its dtype."""
        if math.isnan(value):
            return "torch.nan"
        if math.isinf(value):
            return "torch.inf" if value > 0 else "-torch.inf"
        # rounded up, the largest number would be infinite
        if self._digits and abs(value) < 0.99 * torch.finfo(dtype).max:
            text = str(float(f"{value:.{self._digits}g}"))
        elif dtype in NUMPYS:
            text = str(NUMPYS[dtype](value))
        else:
            tries = (f"{value:.{digits}g}" for digits in range(1, 18))
            text = next(t for t in tries if torch.tensor(float(t), dtype=dtype).item() == value)
            text = text if set(text) & set(".en") else f"{text}.0"
        return text.removesuffix("0") if text.endswith(".0") else text


def _is_fresh(tensor: torch.Tensor, stored: int) -> bool:
    """Return whether a tensor is laid out like a new one and uses its whole storage."""
    alike = torch.empty(tensor.shape, dtype=tensor.dtype, device="meta").stride()
    return tensor.stride() == alike and tensor.storage_offset() == 0 and tensor.numel() == stored


def _spacing(tensor: torch.Tensor, stored: int) -> tuple[int, str] | None:
    """Return how a tensor's storage is made of consecutive whole numbers, or None.

    It returns the first of them; and what is done to each, such as ``* 0.5``, or an empty text.
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


def _complex(value: complex) -> str:
    if not (math.isfinite(value.real) and math.isfinite(value.imag)):
        raise Unprintable("a complex number that is not finite")
    return repr(value)
