"""A row of the table of kinds of values: the methods that a judge needs for each kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np


class NotByValue(TypeError):
    """A value of a kind, depth or size that cannot be sent between processes."""


class Unprintable(ValueError):
    """A value that cannot be written as a short line of Python."""


class Writer(Protocol):
    """Writes a literal, and counts its numbers."""

    def text(self, value: Any) -> str:
        """Write a value that is inside of another value. Raises Unprintable if it is not short."""

    def spend(self, count: int) -> None:
        """Count numbers that a literal shows. Raises Unprintable for too many numbers."""

    def number(self, value: float, most: float, exact: Any, library: str) -> str:
        """Write a number with a fraction, with the writer's number of digits.

        ``most`` is the largest number of the number's dtype. ``exact`` is a function that writes
        all digits. ``library`` is the module with ``nan`` and ``inf``.
        """


class Kind:
    """A kind of values. This base class is enough for values that are only sent, such as dtypes."""

    tag: str  # its key in the codec's JSON
    type: type | tuple[type, ...]
    is_grid = False  # whether it is a :class:`Grid`
    imports: tuple[str, ...] = ()  # lines that a literal needs, if labs do not have them

    def row(self, value: Any) -> Kind:
        """Return the row for this value: a type such as NumPy's array has more than one row."""
        return self

    def sent(self, value: Any, encoder: Any) -> Any:
        """Return a value's content in a message. Raises NotByValue if it can't be sent."""
        raise NotImplementedError

    def received(self, content: Any, decoder: Any) -> Any:
        """Return the value for a message's content, which may have any form.

        This may raise any error that :func:`hood.judge.connection.codec.unpack` catches.
        """
        raise NotImplementedError

    def literal(self, value: Any, writer: Writer) -> str:
        """Return an expression that makes a value. Raises Unprintable if there is none."""
        raise Unprintable(f"a value of type {type(value).__name__}")


class Grid(Kind):
    """A kind of values like arrays: they contain numbers, and have ``shape`` and ``dtype``."""

    is_grid = True

    def words(self, value: Any) -> str:
        """Return a learner's words for the type, such as ``a tensor``."""
        raise NotImplementedError

    def count(self, value: Any) -> int:
        """Return the number of elements."""
        raise NotImplementedError

    def numbers(self, value: Any) -> np.ndarray:
        """Return the numbers as int64, float64 or complex128, without rounding."""
        raise NotImplementedError

    def equal(self, one: Any, other: Any) -> bool:
        """Test fast whether two values with the same shape and dtype have equal numbers.

        This method may return False for equal values, for example with NaN.
        """
        raise NotImplementedError

    def unchanged(self, before: Any, after: Any) -> bool:
        """Return whether values of the same shape and dtype have equal numbers. NaN equals NaN."""
        raise NotImplementedError

    def strides(self, value: Any) -> tuple[int, ...]:
        """Return the strides in elements; empty if strides of this kind are never compared."""
        return ()

    def address(self, value: Any) -> int:
        """Return the address of the storage; 0 for a kind that can't share storage."""
        return 0

    def needs_gradient(self, value: Any) -> bool:
        return False

    def plain(self, value: Any) -> Any:
        """Return a contiguous copy, which does not have the layout of the original."""
        raise NotImplementedError

    def with_item(self, value: Any, key: Any, item: Any) -> Any:
        """Return a copy with one item replaced."""
        raise NotImplementedError

    def marked(self, value: Any) -> Any:
        """Return a value of the same shape and dtype, with other numbers."""
        raise NotImplementedError


class Attribute(str):
    """The name of an attribute, for a place inside a value: ``.index``, and not ``['index']``."""


class Composed(Kind):
    """A kind whose values are made of other values, such as a data frame of columns.

    Two values are compared item by item, in the order of :meth:`items`.
    """

    watched = True  # whether a function could change a value that is its argument

    def parts(self, value: Any) -> Any:
        """Return the values that ``value`` is made of, for example as a dict that can be sent.

        Raises NotByValue if some of them can't be sent.
        """
        raise NotImplementedError

    def made(self, parts: Any) -> Any:
        """Return the value that is made of some parts, which may have any form.

        The time and memory of this call must be proportional to the size of the parts. This may
        raise any error that :func:`hood.judge.connection.codec.unpack` catches.
        """
        raise NotImplementedError

    def items(self, value: Any) -> list[tuple[Any, Any]]:
        """Return the places inside a value with their items; the first different item is reported.

        A place is a key or an :class:`Attribute`. If two values agree up to a place, their next
        place must be the same.
        """
        return [(Attribute(name), part) for name, part in self.parts(value).items()]

    def words(self, value: Any) -> str:
        """Return a learner's words for the type, such as ``a data frame``."""
        raise NotImplementedError


class Scalar(Kind):
    """A kind of values without items, such as dates and fractions."""


def expect(parts: Any, *types: type) -> list[Any]:
    """Return the items of a list from a message. The items must have exactly these types.

    ``object`` means any type. Raises NotByValue if the form is different.
    """
    if type(parts) is not list or len(parts) != len(types):
        raise NotByValue("a message with a value of an unexpected form")
    if any(of is not object and type(one) is not of for one, of in zip(parts, types, strict=True)):
        raise NotByValue("a message with a value of an unexpected form")
    return parts


class Source(Protocol):
    """A stream of random values of one kind. The methods take dtypes of this kind."""

    def dtype(self, dtype: Any) -> Any:
        """Return a dtype; for None, return the default dtype."""

    def form(self, dtype: Any) -> tuple[str, int]:
        """Return a dtype's kind, such as ``f`` or ``i``, and the dtype's largest integer, or 0."""

    def normal(self, shape: Sequence[int], dtype: Any, decimals: int | None = None) -> Any:
        """Return normal numbers with a mean of 0.3, rounded to ``decimals`` decimals if given."""

    def whole(self, low: int, high: int, shape: Sequence[int], dtype: Any) -> Any:
        """Return whole numbers from ``low`` to ``high`` - 1."""

    def counted(self, start: int, count: int, shape: Sequence[int], dtype: Any) -> Any:
        """Return consecutive whole numbers."""

    def reversed(self, values: Any) -> Any:
        """Return a view with the dimensions in reverse order."""
