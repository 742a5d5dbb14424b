"""Numbers short enough for a cell, and bytes in readable units."""

from __future__ import annotations

import math
from collections.abc import Sequence


def short(value: bool | int | float | complex, most: int = 6) -> str:
    """Return `value` in at most `most` characters if possible: "0.1", "-1.2e5", "True", "1+2j"."""
    if isinstance(value, complex):
        imaginary = short(value.imag, most)
        return f"{short(value.real, most)}{'' if imaginary[0] == '-' else '+'}{imaginary}j"
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, int):
        return str(value) if len(str(value)) <= most else tidy_exponent(f"{value:.0e}")
    if math.isnan(value) or math.isinf(value):
        return str(value)
    for digits in range(most, 0, -1):
        text = tidy_exponent(f"{value:.{digits}g}")
        if len(text) <= most:
            return text
    return text


def tidy_exponent(text: str) -> str:
    """Shorten "1e-05" to "1e-5", and "2e+08" to "2e8"."""
    if "e" not in text:
        return text
    digits, exponent = text.split("e")
    return f"{digits}e{int(exponent)}"


def number(value: float, digits: int) -> str:
    """Return `value` with `digits` significant digits.

    If the value is below a million, all digits before the point are written.
    """
    if 1 <= abs(value) < 1e6:
        digits = max(digits, math.floor(math.log10(abs(value))) + 1)
    elif 0 < abs(value) < 1e-3:
        mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
        return f"{mantissa.rstrip('0').rstrip('.')}e{int(exponent)}"
    return tidy_exponent(f"{value:.{digits}g}")


def human_bytes(count: int) -> str:
    """Return a number of bytes with three significant digits and a binary unit: "37.5 KiB"."""
    size = float(count)
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if size < 1024 or unit == "TiB":
            break
        size /= 1024
    if unit == "B" or size >= 1000:
        return f"{size:.0f} {unit}"
    return f"{size:.3g} {unit}"


def si(value: float, unit: str) -> str:
    """Return a quantity with an SI prefix and three significant digits: "989 TFLOP/s"."""
    for power, prefix in ((15, "P"), (12, "T"), (9, "G"), (6, "M"), (3, "k")):
        if abs(value) >= 0.9995 * 10**power:
            return f"{value / 10**power:.3g} {prefix}{unit}"
    return f"{value:.3g} {unit}"


def count(number: int, noun: str) -> str:
    """Return a count in words: "1 element", "2 elements", "12,345 elements"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def require(view: str, found: int, noun: str, most: int, least: int = 1) -> None:
    """Raise ValueError unless a view can show this number of things."""
    if not least <= found <= most:
        raise ValueError(f"{view} shows {least} to {most} {noun}, got {found}")


def listed(words: Sequence[str]) -> str:
    """Return names as a list in words: "a", "a and b", "a, b and c"."""
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


def raised(number: int) -> str:
    """Return a whole number as an exponent: "⁻¹²"."""
    return str(number).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
