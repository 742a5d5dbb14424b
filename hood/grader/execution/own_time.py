"""Limit the time of a learner's own cells, separately from the time of the answers."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from nbformat.notebooknode import NotebookNode

from hood.grader.execution.own_cells import unneeded
from hood.grader.sandbox.kernel import Kernel
from hood.grader.submission.notes import FEW, Note, NoteKind


class OwnTime:
    """The time for a learner's own cells in a notebook: as long as the time for all other cells.

    When this time is used up, own cells that an exercise needs use the answers' time, and other own
    cells are left out. A second run of the notebook gets the time that the first run did not use.
    """

    def __init__(self, cells: list[NotebookNode], seconds: int, grace: int) -> None:
        self.spared = 0.0  # seconds that own cells took in the current kernel
        self._cells, self._seconds, self._grace = cells, seconds, grace
        self._left = float(seconds)
        self._unneeded: set[str] | None = None
        self._places = Counter[str]()  # the number of own cells, by the exercise above them
        self._took: list[tuple[float, str]] = []
        self._left_out = 0

    def start(self) -> None:
        """Begin to count cells and seconds for a new kernel."""
        self.spared, self._left_out = 0.0, 0
        self._places.clear()
        self._took.clear()

    def limit(self, cell: NotebookNode, seconds: int) -> int | None:
        """Return how long an own cell may run, at most ``seconds``; 0 if the cell is left out.

        None means that the cell uses the answers' time.
        """
        if self._left >= seconds:
            return seconds
        if self._unneeded is None:
            self._unneeded = unneeded(self._cells)
        if cell.id not in self._unneeded:
            return None
        return min(seconds, math.ceil(self._left))

    def leave_out(self) -> str:
        """Count a cell that does not run, and return the message for the learner."""
        self._left_out += 1
        return f"left out: {self._what} was used up, and no exercise needs this cell"

    @contextmanager
    def spent(self, kernel: Kernel, most: int, below: str) -> Iterator[None]:
        """Count the time of the enclosed cell, up to ``most`` seconds plus the lab's ``grace``."""
        self._places[below] += 1
        begun, most = kernel.passed(), most + self._grace + 1
        kernel.spare(self.spared + most)
        try:
            yield
        finally:
            took = max(0.0, min(kernel.passed() - begun, most))
            self.spared += took
            self._left -= took
            kernel.spare(self.spared)
            self._took.append((took, f"cell {self._places[below]} {below}"))

    def note(self) -> Note | None:
        """Return the note for the learner if the time was used up; else None."""
        if self._left > 0:
            return None
        longest = sorted(self._took, reverse=True)[:FEW]
        took = ", ".join(f"{seconds:.0f} s in {where}" for seconds, where in longest)
        what = f"{self._what[:1].upper()}{self._what[1:]}"
        said = f"{what} was used up in {self._took[-1][1]}. These cells took longest: {took}."
        if self._left_out:
            cells = "1 cell" if self._left_out == 1 else f"{self._left_out} cells"
            said += f" After this time, {cells} that no exercise needs did not run."
        return Note(NoteKind.OWN_TIME, said)

    @property
    def _what(self) -> str:
        return f"the time of {self._seconds} s for all of your own cells"
