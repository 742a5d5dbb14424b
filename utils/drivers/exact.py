"""Calculate with exact numbers, which have more digits than a float can store.

Code with ``+``, ``-``, ``*``, ``/`` and ``**`` works with exact numbers. Code that needs floats,
such as tensors, does not work, because an exact number can't be converted into a float.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import total_ordering
from typing import Any

from utils.drivers import WHOLE, driver


@total_ordering
class Exact:
    """An exact number. Calculations with ints and floats use their exact values."""

    def __init__(self, value: int | float | Fraction):
        self._value = Fraction(value)

    def __repr__(self) -> str:
        return f"Exact({self.plain()!r})"

    def plain(self) -> int | Fraction:
        """Return the number as an int, or as a fraction if it is not whole."""
        return self._value.numerator if self._value.denominator == 1 else self._value

    def __float__(self) -> float:
        raise TypeError("an exact number is not a float: calculate with the number itself")

    def __eq__(self, other: object) -> bool:
        return _fraction(other) == self._value

    def __lt__(self, other: Any) -> bool:
        return self._value < _fraction(other)

    def __hash__(self) -> int:
        return hash(self._value)

    def __bool__(self) -> bool:
        return bool(self._value)

    def __neg__(self) -> Exact:
        return Exact(-self._value)

    def __pos__(self) -> Exact:
        return self

    def __abs__(self) -> Exact:
        return Exact(abs(self._value))


def _fraction(number: Any) -> Any:
    if isinstance(number, Exact):
        return number._value
    return Fraction(number) if isinstance(number, int | float | Fraction) else NotImplemented


def _between(name: str) -> Callable[[Exact, Any], Any]:
    def result(self: Exact, other: Any) -> Any:
        number = _fraction(other)
        if number is NotImplemented:
            return NotImplemented
        if "pow" in name:  # a fractional exponent would make the result a float
            power = number if name == "__pow__" else self._value
            base = self._value if name == "__pow__" else number
            if power.denominator != 1:
                raise TypeError("the exponent of an exact number must be a whole number")
            return Exact(base**power.numerator)
        return Exact(getattr(self._value, name)(number))

    return result


for _name in ("add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv", "pow", "rpow"):
    setattr(Exact, f"__{_name}__", _between(f"__{_name}__"))


def _plain(number: Any) -> Any:
    """Return a whole number as an int, and another exact number as the string of a fraction.

    Any other value is returned unchanged.
    """
    if isinstance(number, Exact):
        whole = number.plain()
        return whole if isinstance(whole, int) else str(whole)
    return int(number) if isinstance(number, float) and number.is_integer() else number


@driver(WHOLE)
def adjoints(function: Callable, *numbers: int) -> dict[str, Any]:
    """Return the dict of numbers that a function returns for exact numbers."""
    return {str(name): _plain(each) for name, each in function(*map(Exact, numbers)).items()}


@driver("numbers", "values", "gradients")
def taped(
    tape_class: Callable, program: Sequence[tuple], asked: Sequence[int]
) -> Mapping[str, list[Any]]:
    """Record a program on a new tape, and compute gradients. The leaves are exact numbers.

    ``program`` has tuples of a method's name and the method's arguments. ``values`` has the values
    of all nodes. ``gradients`` has the gradients of the nodes in ``asked``. ``numbers`` has the
    results of the methods.
    """
    tape = tape_class()
    made = [
        getattr(tape, method)(*(map(Exact, rest) if method == "leaf" else rest))
        for method, *rest in program
    ]
    return {
        "numbers": made,
        "values": [_plain(tape.value(node)) for node in range(len(program))],
        "gradients": [[_plain(each) for each in tape.gradients(node)] for node in asked],
    }
