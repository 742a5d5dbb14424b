"""Find a graded notebook's exercises: each graded cell, with the cells that belong to it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from nbformat.notebooknode import NotebookNode
from nbgrader.utils import is_grade, is_solution, is_task

from hood.grader.outline import HEADING
from hood.metadata import KEY
from hood.untrusted import mapping, text


@dataclass
class Segment:
    """A part of a notebook, with at most one graded cell.

    Attributes:
        title: the heading above it; empty before the first one.
        graded: the cell with the mark; None where nothing is marked.
        question: the lab's own text.
        cells: all others, in their order: what the learner wrote, and the lab's own cells.
    """

    title: str = ""
    graded: NotebookNode | None = None
    question: list[NotebookNode] = field(default_factory=list)
    cells: list[NotebookNode] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The name of the graded cell; empty without one."""
        return str(self.graded.metadata.nbgrader.grade_id) if self.graded else ""


def segments(nb: NotebookNode) -> Iterator[Segment]:
    """Yield a graded notebook's segments in their order.

    One begins at a heading of the lab's own, and in a segment with a graded cell at the next
    solution or graded cell.
    """
    now = Segment()
    for cell in nb.cells:
        by = added_by(cell)
        if by == "grader":  # its notes, which the metadata has, too
            continue
        is_text = cell.cell_type == "markdown" and not by and not is_solution(cell)
        heading = HEADING.search(cell.source) if is_text else None
        marked = is_grade(cell) or is_task(cell)
        if heading or now.graded and (marked or is_solution(cell)):
            yield now
            now = Segment(heading[1].strip() if heading else now.title)
        if marked:
            now.graded = cell
        if is_text:
            now.question.append(cell)
        elif not marked or is_solution(cell):
            now.cells.append(cell)
    yield now


def added_by(cell: NotebookNode) -> str:
    """Return who added a cell to the lab's: ``learner``, ``grader``; empty for the lab's own."""
    return text(mapping(cell.metadata.get(KEY)).get("by"))


def is_answer(cell: NotebookNode) -> bool:
    """Return whether the text of a cell is the learner's."""
    return bool(is_solution(cell)) or added_by(cell) == "learner"


def code_by_exercise(nb: NotebookNode) -> dict[str, str]:
    """Return the code in which a notebook answers each exercise with a graded code cell."""
    return {
        segment.name: "\n".join(
            cell.source for cell in segment.cells if cell.cell_type == "code" and is_answer(cell)
        )
        for segment in segments(nb)
        if segment.graded and segment.graded.cell_type == "code"
    }
