"""A row of the table of kinds of values: what a judge asks of each kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np


class NotByValue(TypeError):
    """A value of a kind, depth or size that cannot be sent between processes."""


class Unprintable(ValueError):
    """A value that cannot be written as a short line of Python."""


class Writer(Protocol):
    """What writes a literal, and counts how much is in it."""

    def spend(self, count: int) -> None:
        """Count numbers that a literal shows. Raises Unprintable for too many."""

    def number(self, value: float, most: float, exact: Any, library: str) -> str:
        """Write a number with a fraction, in as many digits as the writer may use.

        ``most`` is its dtype's largest number. ``exact`` writes all digits. ``library`` is the name
        that has ``nan`` and ``inf``.
        """


class Kind:
    """A kind of values. By itself, one that is only sent, such as a dtype."""

    tag: str  # of the codec's JSON
    type: type
    is_grid = False  # whether it is a :class:`Grid`

    def sent(self, value: Any, encoder: Any) -> Any:
        """Return what a message says of a value. Raises NotByValue if it can't be sent."""
        raise NotImplementedError

    def received(self, content: Any, decoder: Any) -> Any:
        """Return the value of what a message says, which may be anything.

        Raises any of the errors that :func:`hood.judge.connection.codec.unpack` catches.
        """
        raise NotImplementedError

    def literal(self, value: Any, writer: Writer) -> str:
        """Return an expression that makes a value. Raises Unprintable if there is none."""
        raise Unprintable(f"a value of type {type(value).__name__}")


class Grid(Kind):
    """A kind of values that hold numbers in a shape: they have ``shape`` and ``dtype``."""

    is_grid = True
    imports: tuple[str, ...] = ()  # lines that a literal needs and no lab has of itself

    def words(self, value: Any) -> str:
        """Return a learner's words for the type, such as ``a tensor``."""
        raise NotImplementedError

    def count(self, value: Any) -> int:
        """Return the number of elements."""
        raise NotImplementedError

    def numbers(self, value: Any) -> np.ndarray:
        """Return the numbers as int64, float64 or complex128, in which each of them is exact."""
        raise NotImplementedError

    def equal(self, one: Any, other: Any) -> bool:
        """Return whether two of one shape and dtype have equal numbers, where that is soon known.

        NaN may differ from NaN.
        """
        raise NotImplementedError

    def unchanged(self, before: Any, after: Any) -> bool:
        """Return whether two of one shape and dtype have the same numbers; NaN equals NaN."""
        raise NotImplementedError

    def strides(self, value: Any) -> tuple[int, ...]:
        """Return the strides, in elements, of a kind of which they may be asked; else nothing."""
        return ()

    def address(self, value: Any) -> int:
        """Return where the storage lies, of a kind that can share one; else 0."""
        return 0

    def needs_gradient(self, value: Any) -> bool:
        return False

    def plain(self, value: Any) -> Any:
        """Return a copy without the layout."""
        raise NotImplementedError

    def with_item(self, value: Any, key: Any, item: Any) -> Any:
        """Return a copy with another item."""
        raise NotImplementedError

    def marked(self, value: Any) -> Any:
        """Return other numbers, of the same shape and dtype."""
        raise NotImplementedError


class Source(Protocol):
    """A stream of random numbers of one kind, and how they are laid out. Dtypes are the kind's."""

    def dtype(self, dtype: Any) -> Any:
        """Return a dtype; the usual one for None."""

    def form(self, dtype: Any) -> tuple[str, int]:
        """Return ``f``, ``c``, ``i``, ``u`` or ``b``, and the largest whole number, or 0."""

    def normal(self, shape: Sequence[int], dtype: Any, decimals: int | None = None) -> Any:
        """Return normal numbers with a mean of 0.3, rounded to some decimals if given."""

    def whole(self, low: int, high: int, shape: Sequence[int], dtype: Any) -> Any:
        """Return whole numbers from ``low`` to ``high`` - 1."""

    def counted(self, start: int, count: int, shape: Sequence[int], dtype: Any) -> Any:
        """Return consecutive whole numbers."""

    def reversed(self, values: Any) -> Any:
        """Return a view with the dimensions in reverse order."""
