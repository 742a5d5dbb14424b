"""Compute missing marks, lateness and the obtainable points from the gradebook."""

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
        waits: whether the cell waits for a person's mark. If not, its notebook has no automatic
            marks, because it could not be read or graded.
    """

    student: str
    notebook: str
    cell: str
    points: float
    waits: bool

    @property
    def words(self) -> str:
        """The text that is shown in place of the mark."""
        return "not marked yet" if self.waits else "no mark"


def graded_cells(db: Database, lab: str) -> list[tuple[GradeCell | TaskCell, str, bool]]:
    """Return a lab's cells with points, their notebooks, and whether a person marks them."""
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
    """Return the students with a submission in the gradebook.

    If ``student`` is given, the result has at most this student.
    """
    return set(db.scalars(submissions_of(lab, SubmittedAssignment.student_id, student=student)))


def missing_marks(db: Database, lab: str, student: str = "") -> list[Missing]:
    """Return the missing marks of a lab, of one student or of all students."""
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
    """Return the average points, and the maximum points, keyed by notebook and kind of cell.

    The kinds are ``code``, ``written`` and ``task``. A cell's average includes only its existing
    marks: a missing mark does not count as 0. A cell without any mark is left out of the average
    and of the maximum.

    Args:
        without: the students whose marks are left out.
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
    """Return the pairs of student and notebook that have an automatic mark."""
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
    """Return how many seconds after the due date each submission came, keyed by student.

    The number is 0 for a submission that came in time, or within the grace of the class's rules.
    Submissions without a known time are left out.

    Args:
        deadline_of: returns a student's deadline according to the class's own rules. By default,
            the due date and extensions in the gradebook are used.
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
    """Lower nbgrader's maxima of a lab by the points that nobody could earn.

    So no percentage includes these points. A maximum is lowered only if ``seen`` has all students
    who handed in the lab. If one submission could earn a point, the point stays in the maximum of
    all submissions.

    Args:
        most: the points that at least one submission could earn, keyed by notebook and cell.
        seen: the students whose submissions are known.
    """
    whole = handed_in(db, lab) <= set(seen)
    for cell, notebook, _ in graded_cells(db, lab):
        points = most.get((notebook, cell.name))
        if points is not None and (whole or points > cell.max_score):
            cell.max_score = points
