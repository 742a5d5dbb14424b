"""Places the phases of a course on a grid, from what each needs. No drawing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol


class Step(Protocol):
    """A phase as a path needs it: any object with these three (`notebook.course.Phase` is one)."""

    @property
    def number(self) -> int: ...

    @property
    def title(self) -> str: ...

    @property
    def needs(self) -> Sequence[int]: ...


def places(steps: Iterable[Step]) -> dict[int, tuple[int, int]]:
    """(column, row) of each step by its number.

    A column further right than all that a step needs; the longest way through lies in row 0, a
    branch takes the nearest free row below. Raises ValueError for a number that is there twice, a
    need that no step has, or needs that go round in a circle.
    """
    steps = list(steps)
    needs = {step.number: tuple(step.needs) for step in steps}
    if len(needs) < len(steps):
        raise ValueError(f"each step needs a number of its own, got {[s.number for s in steps]}")
    for number, wanted in needs.items():
        if unknown := [other for other in wanted if other not in needs]:
            raise ValueError(f"step {number} needs {unknown}, which is not among {sorted(needs)}")
    columns = _columns(needs)
    rows = dict.fromkeys(_longest(needs, columns), 0)
    taken = {(columns[number], 0) for number in rows}
    for number in sorted(needs, key=lambda n: (columns[n], n)):
        if number not in rows:
            row = max([1, *(rows[other] for other in needs[number])])
            while (columns[number], row) in taken:
                row += 1
            rows[number] = row
            taken.add((columns[number], row))
    return {number: (columns[number], rows[number]) for number in needs}


def _columns(needs: dict[int, tuple[int, ...]]) -> dict[int, int]:
    columns: dict[int, int] = {}
    while len(columns) < len(needs):
        ready = [n for n in needs if n not in columns and all(m in columns for m in needs[n])]
        if not ready:
            circle = sorted(set(needs) - set(columns))
            raise ValueError(f"the needs go round in a circle among {circle}")
        for number in ready:
            columns[number] = max((columns[m] + 1 for m in needs[number]), default=0)
    return columns


def _longest(needs: dict[int, tuple[int, ...]], columns: dict[int, int]) -> list[int]:
    """Return the longest way, back from the step in the last column."""
    if not columns:
        return []
    way = [max(columns, key=lambda number: columns[number])]
    while needs[way[-1]]:
        way.append(max(needs[way[-1]], key=lambda number: columns[number]))
    return way
