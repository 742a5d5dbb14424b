"""How a floating-point dtype stores a number: its bits, its gaps, its range. No drawing."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import torch

INTEGERS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
FORMATS = (
    torch.float64,
    torch.float32,
    torch.float16,
    torch.bfloat16,
    torch.float8_e4m3fn,
    torch.float8_e5m2,
)


@dataclass(frozen=True)
class Format:
    """A dtype with a sign bit, `exponent` bits of exponent, and `fraction` bits of fraction.

    A normal number is (1 + f / 2**fraction) * 2**(e - bias). A subnormal number has no leading 1.
    """

    dtype: torch.dtype
    exponent: int
    fraction: int
    bias: int

    @property
    def name(self) -> str:
        return str(self.dtype).removeprefix("torch.")

    @property
    def bits(self) -> int:
        return 1 + self.exponent + self.fraction

    @property
    def largest(self) -> float:
        return torch.finfo(self.dtype).max

    @property
    def smallest_normal(self) -> float:
        return 2.0 ** (1 - self.bias)

    @property
    def smallest(self) -> float:
        """The smallest positive number, which is subnormal."""
        return math.ldexp(1.0, 1 - self.bias - self.fraction)

    def gap(self, value: float) -> float:
        """Return the gap (one ulp) from a stored `value` to the next number away from zero.

        The gap is nan if `value` is not finite.
        """
        if not math.isfinite(value):
            return math.nan
        power = math.frexp(value)[1] - 1 if value else -self.bias
        return math.ldexp(1.0, max(power, 1 - self.bias) - self.fraction)

    def number(self, place: int) -> float:
        """Return the `place`-th number above zero, or below zero for a negative place."""
        power, fraction = divmod(abs(place), 1 << self.fraction)
        lead = 1 if power else 0
        units = (lead << self.fraction) + fraction
        size = math.ldexp(units, max(power, 1) - self.bias - self.fraction)
        return size if place >= 0 else -size

    def place(self, value: float) -> int:
        """Return the place of the largest number that is not above the finite `value`.

        If there is no such number, return the place of the lowest number.
        """
        size = min(abs(value), self.largest)
        power = max(math.frexp(size)[1] - 1 if size else -self.bias, 1 - self.bias)
        steps = math.ldexp(size, self.fraction - power)  # in units of the gap
        base = (power + self.bias - 1) << self.fraction
        return base + math.floor(steps) if value >= 0 else -(base + math.ceil(steps))


@lru_cache
def format_of(dtype: torch.dtype) -> Format:
    """Return the `Format` of a dtype. Raises TypeError for a dtype that is not in FORMATS."""
    if dtype not in FORMATS:
        names = ", ".join(str(known).removeprefix("torch.") for known in FORMATS)
        raise TypeError(f"expected a floating-point dtype ({names}), got {dtype}")
    info = torch.finfo(dtype)
    fraction = round(-math.log2(info.eps))
    bias = 1 - round(math.log2(info.smallest_normal))
    return Format(dtype, info.bits - 1 - fraction, fraction, bias)


@dataclass(frozen=True)
class Stored:
    """A number as a dtype stores it.

    `error` and `gap` are nan if the stored number is not finite.
    """

    format: Format
    sign: str  # the bits, as "0" and "1"
    exponent: str
    fraction: str
    value: float
    error: float  # the stored value minus the original number
    gap: float

    @property
    def kind(self) -> str:
        """ "normal", "subnormal", "zero", "saturated" (far too large), "inf", "nan"."""
        if math.isnan(self.value):
            return "nan"
        if math.isinf(self.value):
            return "inf"
        if self.value == 0:
            return "zero"
        if abs(self.error) > self.gap:
            return "saturated"
        return "subnormal" if abs(self.value) < self.format.smallest_normal else "normal"


def store(number: float, dtype: torch.dtype) -> Stored:
    """`number` (a Python float, so a float64) as torch stores it in `dtype`."""
    form = format_of(dtype)
    kept = torch.tensor(float(number), dtype=torch.float64).to(dtype)
    whole = int(kept.view(INTEGERS[kept.element_size()]).item()) % (1 << form.bits)
    bits = format(whole, f"0{form.bits}b")
    value = float(kept.to(torch.float64))
    error = value - number if math.isfinite(value) and not math.isnan(number) else math.nan
    exponent, fraction = bits[1 : 1 + form.exponent], bits[1 + form.exponent :]
    return Stored(form, bits[0], exponent, fraction, value, error, form.gap(value))
