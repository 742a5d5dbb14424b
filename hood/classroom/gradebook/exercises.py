"""Split a graded notebook into exercises. An exercise is a graded cell and the cells around it."""

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
        title: the heading above the segment; empty for a segment before the first heading.
        graded: the cell with the mark; None if the segment has no such cell.
        question: the lab's own text.
        cells: all other cells, from the learner or from the lab, in the notebook's order.
    """

    title: str = ""
    graded: NotebookNode | None = None
    question: list[NotebookNode] = field(default_factory=list)
    cells: list[NotebookNode] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The name of the graded cell; empty if there is no graded cell."""
        return str(self.graded.metadata.nbgrader.grade_id) if self.graded else ""


def segments(nb: NotebookNode) -> Iterator[Segment]:
    """Yield a graded notebook's segments in their order.

    Each heading of the lab begins a segment. After a graded cell, the next solution cell or graded
    cell also begins a segment.
    """
    now = Segment()
    for cell in nb.cells:
        by = added_by(cell)
        if by == "grader":  # the grader's notes are in the metadata too
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
    """Return who added a cell: ``learner`` or ``grader``; empty for a cell of the lab itself."""
    return text(mapping(cell.metadata.get(KEY)).get("by"))


def is_answer(cell: NotebookNode) -> bool:
    """Return whether a learner wrote the text of a cell."""
    return bool(is_solution(cell)) or added_by(cell) == "learner"


def code_by_exercise(nb: NotebookNode) -> dict[str, str]:
    """Return the learner's code for each exercise with a graded code cell."""
    return {
        segment.name: "\n".join(
            cell.source for cell in segment.cells if cell.cell_type == "code" and is_answer(cell)
        )
        for segment in segments(nb)
        if segment.graded and segment.graded.cell_type == "code"
    }
