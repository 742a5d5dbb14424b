"""What the gradebook does not say by itself: missing marks, lateness, and what could be earned."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, timedelta
from typing import Any

from nbgrader.api import (
    Assignment,
    Grade,
    GradeCell,
    Notebook,
    SolutionCell,
    SubmittedAssignment,
    SubmittedNotebook,
    TaskCell,
)
from sqlalchemy import func, select
from sqlalchemy.orm import Session, scoped_session

from hood.classroom.gradebook.database import marks_of, submissions_of
from hood.classroom.rules.deadline import Deadline

Database = Session | scoped_session[Any]


@dataclass(frozen=True)
class Missing:
    """A graded cell that has no mark in a submission.

    Attributes:
        waits: whether it waits for a person; if not, the notebook could not be read or graded, and
            has no automatic mark at all.
    """

    student: str
    notebook: str
    cell: str
    points: float
    waits: bool

    @property
    def words(self) -> str:
        """What stands in place of the mark."""
        return "not marked yet" if self.waits else "no mark"


def graded_cells(db: Database, lab: str) -> list[tuple[GradeCell | TaskCell, str, bool]]:
    """Return a lab's cells that earn points, their notebooks, and whether a person marks them."""
    answers = select(SolutionCell.notebook_id, SolutionCell.name).join(Notebook).join(Assignment)
    written = {tuple(row) for row in db.execute(answers.where(Assignment.name == lab))}
    cells = []
    for kind in (GradeCell, TaskCell):
        query = select(kind, Notebook.name).join(Notebook, Notebook.id == kind.notebook_id)
        for cell, notebook in db.execute(query.join(Assignment).where(Assignment.name == lab)):
            answered = (cell.notebook_id, cell.name) in written
            manual = kind is TaskCell or cell.cell_type != "code" or answered
            cells.append((cell, notebook, manual))
    return cells


def handed_in(db: Database, lab: str, student: str = "") -> set[str]:
    """Return the students whose submission is in the gradebook; of one of them, or of all."""
    return set(db.scalars(submissions_of(lab, SubmittedAssignment.student_id, student=student)))


def missing_marks(db: Database, lab: str, student: str = "") -> list[Missing]:
    """Return the marks that are missing in a lab, of one student or of all."""
    columns = SubmittedAssignment.student_id, Grade.cell_id
    unmarked = Grade.auto_score.is_(None), Grade.manual_score.is_(None)
    query = marks_of(lab, *columns, student=student).where(*unmarked)
    cells = {cell.id: (cell, *about) for cell, *about in graded_cells(db, lab)}
    found = []
    for who, cell_id in db.execute(query):
        cell, notebook, manual = cells[cell_id]
        found.append(Missing(who, notebook, cell.name, cell.max_score, manual))
    without = {(one.student, one.notebook) for one in found if not one.waits}
    failed = without - _judged(db, lab, student) if without else without
    return [replace(one, waits=(one.student, one.notebook) not in failed) for one in found]


def averages(
    db: Database, lab: str, without: Collection[str] = ()
) -> dict[tuple[str, str], tuple[float, float]]:
    """Return what was earned on average, and of how much, by notebook and kind of cell.

    The kinds are ``code``, ``written`` and ``task``. Each cell has the average of the marks that
    there are; what has no mark is no 0, and a cell without any mark is part of neither number.

    Args:
        without: students who are left out.
    """
    cells = {cell.id: (cell, notebook) for cell, notebook, _ in graded_cells(db, lab)}
    marked = Grade.auto_score.is_not(None) | Grade.manual_score.is_not(None)
    of_class = SubmittedAssignment.student_id.not_in(without)
    query = marks_of(lab, Grade.cell_id, func.avg(Grade.score))
    query = query.where(Grade.cell_id.in_(cells), marked, of_class)
    found: dict[tuple[str, str], tuple[float, float]] = {}
    for cell_id, mean in db.execute(query.group_by(Grade.cell_id)):
        cell, notebook = cells[cell_id]
        kind = "code" if cell.cell_type == "code" else "written"
        key = notebook, "task" if isinstance(cell, TaskCell) else kind
        earned, most = found.get(key, (0.0, 0.0))
        found[key] = earned + mean, most + cell.max_score
    return found


def _judged(db: Database, lab: str, student: str) -> set[tuple[str, str]]:
    """Return the students and notebooks that have an automatic mark."""
    query = (
        marks_of(lab, SubmittedAssignment.student_id, Notebook.name, student=student)
        .join(Notebook, Notebook.id == SubmittedNotebook.notebook_id)
        .where(Grade.auto_score.is_not(None))
        .distinct()
    )
    return {(who, notebook) for who, notebook in db.execute(query)}


def seconds_late(
    db: Database, lab: str, deadline_of: Callable[[str], Deadline | None] | None = None
) -> dict[str, float]:
    """Return how many seconds after their due date submissions came, by student.

    Who came in time has 0, and so has who came within the grace of the class's rules; one whose
    time is unknown is left out.

    Args:
        deadline_of: a student's deadline, as the class's own rules have it; by default the
            gradebook's due date holds, with its extensions.
    """
    query = submissions_of(
        lab,
        SubmittedAssignment.student_id,
        SubmittedAssignment.timestamp,
        SubmittedAssignment.extension,
        Assignment.duedate,
    )
    found = {}
    for student, came, extension, due in db.execute(query):
        if came is not None:
            if deadline_of:
                deadline = deadline_of(student)
                late = deadline.seconds_late(came.replace(tzinfo=UTC)) if deadline else 0.0
            else:
                last = due + (extension or timedelta()) if due else came
                late = max(0.0, (came - last).total_seconds())
            found[student] = late
    return found


def set_maxima(
    db: Database, lab: str, most: Mapping[tuple[str, str], float], seen: Collection[str]
) -> None:
    """Take points that nobody could earn out of the maximum, in nbgrader's own column.

    So they are out of every denominator. A maximum falls only if all submissions of the lab are
    known (``seen``); points that one of them could earn count for all.

    Args:
        most: the points that these submissions could earn, by notebook and cell.
    """
    whole = handed_in(db, lab) <= set(seen)
    for cell, notebook, _ in graded_cells(db, lab):
        points = most.get((notebook, cell.name))
        if points is not None and (whole or points > cell.max_score):
            cell.max_score = points
