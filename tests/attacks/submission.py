"""The submission of a lazy learner, which attacks change."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

import nbformat
from nbformat.notebooknode import NotebookNode

ANSWERS = {
    "twice": "def twice(x):\n    return x * 2",
    "row_sums": "def row_sums(x):\n    return torch.zeros(len(x), dtype=x.dtype)",
    "corner": "def corner(x):\n    return torch.zeros(2, 2)",
}
RIGHT = {
    "twice": "def twice(x):\n    return x + x",
    "row_sums": "def row_sums(x):\n    return x.sum(1)",
    "corner": "def corner(x):\n    return x.as_strided((2, 2), x.stride(), x.storage_offset())",
}


@dataclass(frozen=True)
class Host:
    """What an attacker may know of the grading machine.

    Attributes:
        course: the course's folder, with the gradebook and all submissions.
        tcp: a TCP port on which the machine listens.
        udp: a UDP port on which the machine listens.
        unix: the path of a UNIX socket.
        abstract: the name of an abstract UNIX socket.
    """

    course: Path
    tcp: int
    udp: int
    unix: str
    abstract: str


@dataclass
class Work:
    """A submission that is being written.

    Attributes:
        nb: the notebook; ``twice`` is right, ``row_sums`` and ``corner`` are wrong.
        host: what the attacker knows of the grading machine.
        folder: the folder of the submission, for files beside the notebook.
        raw: the bytes of the notebook file, if they are not those of ``nb``.
    """

    nb: NotebookNode
    host: Host
    folder: Path
    raw: bytes | None = None

    def cell(self, grade_id: str) -> NotebookNode:
        """Return the cell with an id."""
        return self.nb.cells[self._position(grade_id)]

    def answer(self, exercise: str, code: str) -> None:
        """Write code into an exercise's solution cell."""
        self.cell(f"{exercise}_solution").source = dedent(code).strip()

    def answer_all(self) -> None:
        """Write right answers into all solution cells."""
        for exercise, code in RIGHT.items():
            self.answer(exercise, code)

    def first(self, code: str) -> None:
        """Add a cell before the first exercise."""
        self._insert(self._position("setup") + 1, code)

    def before(self, exercise: str, code: str) -> None:
        """Add a cell between an exercise's solution and its graded cell."""
        self._insert(self._position(exercise), code)

    def last(self, code: str) -> None:
        """Add a cell after all others."""
        self._insert(len(self.nb.cells), code)

    def text(self, markdown: str) -> None:
        """Add a text cell."""
        self.nb.cells.append(nbformat.v4.new_markdown_cell(markdown))

    def bytes(self) -> bytes:
        """Return the bytes of the notebook file."""
        return self.raw if self.raw is not None else nbformat.writes(self.nb).encode()

    def _insert(self, place: int, code: str) -> None:
        self.nb.cells.insert(place, nbformat.v4.new_code_cell(dedent(code).strip()))

    def _position(self, grade_id: str) -> int:
        ids = [cell.metadata.get("nbgrader", {}).get("grade_id") for cell in self.nb.cells]
        return ids.index(grade_id)


def lazy(release: NotebookNode, host: Host, folder: Path) -> Work:
    """Make the lazy learner's submission from a released lab."""
    work = Work(copy.deepcopy(release), host, folder)
    for exercise, code in ANSWERS.items():
        work.answer(exercise, code)
    return work
