"""Write numbers and lists in words, for the texts of a case."""

from __future__ import annotations

from collections.abc import Iterable


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: ``1 step``, ``3 steps``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def listed(items: Iterable[object]) -> str:
    """Return items as text for a sentence: ``3``, ``3 and 2``, ``3, 2 and 4``."""
    *others, last = map(str, items)
    return f"{', '.join(others)} and {last}" if others else last
