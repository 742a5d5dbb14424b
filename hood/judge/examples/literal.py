"""Write values as short Python expressions, for lines that a learner pastes into a notebook."""

from __future__ import annotations

import dataclasses
import math
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from hood.judge.connection.course_code import is_of_course
from hood.judge.values import table
from hood.judge.values.kind import Unprintable as Unprintable

MAX_ITEMS = 60  # numbers and containers in one line
MAX_CHARACTERS = 400


def literal(value: Any, digits: int = 0) -> str:
    """Return an expression that makes a value.

    For a tensor, the expression also makes the same dtype, strides, offset and storage. The only
    names in the expression are ``torch``, ``np`` and the names of the course's data classes.
    ``digits`` is the number of significant digits of a number with a fraction; 0 for exact numbers.
    Raises Unprintable if there is no short expression.
    """
    text = _Writer(digits).text(value)
    if len(text) > MAX_CHARACTERS:
        raise Unprintable("too long")
    return text


def in_order(items: Iterable[Any]) -> list[Any]:
    """Return a set's items in the order that people expect, or at least in a fixed order."""
    try:
        return sorted(items)
    except TypeError:
        return sorted(items, key=repr)


class _Writer:
    """See :class:`hood.judge.values.kind.Writer`."""

    def __init__(self, digits: int) -> None:
        self._left, self._digits = MAX_ITEMS, digits

    def text(self, value: Any) -> str:
        self.spend(1)
        if row := table.kind(value):
            return row.literal(value, self)
        value = value.item() if isinstance(value, np.generic) else value
        match value:
            case float():
                usual = "torch" if "torch" in sys.modules else "np"
                text = self.number(value, sys.float_info.max, repr, usual)
                return f"{text}0" if text.endswith(".") else text
            case complex() if not (math.isfinite(value.real) and math.isfinite(value.imag)):
                raise Unprintable("a complex number that is not finite")
            case int() if abs(value) >= 10**40:
                raise Unprintable("a huge integer")
            case str() | bytes() if len(value) > MAX_CHARACTERS:
                raise Unprintable("a long text")
            case None | int() | complex() | str() | bytes():
                return repr(value)
            case slice():
                return f"slice({self._texts((value.start, value.stop, value.step))})"
            case list():
                return f"[{self._texts(value)}]"
            case tuple():
                return f"({self._texts(value)}{',' if len(value) == 1 else ''})"
            case set() | frozenset():
                items = f"{{{self._texts(in_order(value))}}}" if value else "set()"
                return items if isinstance(value, set) else f"frozenset({items})"
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

    def spend(self, count: int) -> None:
        self._left -= count
        if self._left < 0:
            raise Unprintable("too many values")

    def number(self, value: float, most: float, exact: Callable[[float], str], library: str) -> str:
        if math.isnan(value):
            return f"{library}.nan"
        if math.isinf(value):
            return f"{library}.inf" if value > 0 else f"-{library}.inf"
        # rounding must not turn the largest number into infinity
        rounds = self._digits and abs(value) < 0.99 * most
        text = str(float(f"{value:.{self._digits}g}")) if rounds else exact(value)
        return text.removesuffix("0") if text.endswith(".0") else text
