"""Keep the results of all graded hand-ins in a table of the gradebook's database.

nbgrader knows only one submission of a learner to a lab: the recorded hand-in. For each other
hand-in, this table stores the points, so that hand-ins can be compared. The table also stores the
marks that a person gave to such a hand-in while it was the recorded hand-in.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import nbformat
from nbgrader.api import BaseCell, Comment, Grade, SubmittedAssignment
from nbgrader.api import SubmittedNotebook as Submitted
from sqlalchemy import Column, Engine, Integer, MetaData, String, Table, Text, inspect, select
from sqlalchemy.orm import Session

from hood.classroom.gradebook.database import submissions_of
from hood.classroom.gradebook.graded import Graded
from hood.grader.execution.graded_cell import read_verdicts

# There is no foreign key, because nbgrader deletes submissions and does not know this table.
TABLE = Table(
    "open_the_hood_hand_ins",
    MetaData(),
    Column("submission_id", String(32), primary_key=True),
    Column("name", String(64), primary_key=True),
    Column("stands", Integer, nullable=False),
    Column("tried", Text, nullable=False),
    Column("by_person", Text, nullable=False, default=""),
)


@dataclass(frozen=True)
class HandInResult:
    """The result of grading one hand-in.

    Attributes:
        name: the name of the hand-in's file or folder.
        key: the id of the job that graded the hand-in; empty if it was not graded.
            :func:`hood.grader.batch.job.changes` compares two such ids, and finds what has changed.
        digest: the hash of the submission's files.
        seeds: the seed of the cases, keyed by notebook.
        scores: the scores of the verdicts, keyed by notebook and cell; None without a verdict.
        blank: the cells that the learner left unchanged, keyed by notebook.
        withheld: the points of checks that the machine could not run, keyed by notebook and cell.
        came: the hand-in time that counts, in ISO format and UTC; empty if not known.
    """

    name: str
    key: str = ""
    digest: str = ""
    seeds: Mapping[str, str] = field(default_factory=dict)
    scores: Mapping[str, Mapping[str, float | None]] = field(default_factory=dict)
    blank: Mapping[str, list[str]] = field(default_factory=dict)
    withheld: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    came: str = ""


@dataclass(frozen=True)
class HandInRow:
    """One row of the table: a hand-in.

    Attributes:
        stands: whether the hand-in is recorded in the gradebook.
        by_person: the marks that a person gave while this was the recorded hand-in, keyed by
            notebook and cell.
    """

    tried: HandInResult
    stands: bool
    by_person: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def marks(self, base: Graded) -> tuple[Graded, dict[str, float]]:
        """Return the marks and withheld points that this hand-in would have if it were recorded.

        ``base`` is the recorded hand-in. A mark that a person gave to ``base`` is copied, as it
        would be if this hand-in were recorded. The mark is not copied if the answer is blank in
        this hand-in.
        """
        scores: dict[str, float | None] = {}
        for notebook, found in self.tried.scores.items():
            for cell, score in found.items():
                name = _name(base, notebook, cell)
                saved = self.by_person.get(notebook, {}).get(cell)
                if saved and saved["score"] is not None:
                    score = saved["score"] + (saved["extra"] or 0.0)
                elif name in base.by_person and cell not in self.tried.blank.get(notebook, ()):
                    score = base.scores[name]
                if name in base.cells:
                    scores[name] = score
        withheld = {
            _name(base, notebook, cell): points
            for notebook, found in self.tried.withheld.items()
            for cell, points in found.items()
        }
        return replace(base, scores=scores), withheld


def _name(base: Graded, notebook: str, cell: str) -> str:
    return cell if cell in base.cells else f"{notebook}/{cell}"


def prepare(engine: Engine) -> None:
    """Make the table if it does not exist."""
    TABLE.metadata.create_all(engine)


def withheld_in(data: bytes) -> dict[str, float]:
    """Return how many points each cell in a graded notebook lacks because a check could not run."""
    verdicts = read_verdicts(nbformat.v4.reads(data.decode()))
    found = {name: verdict.points - verdict.most for name, verdict in verdicts.items()}
    return {name: points for name, points in found.items() if points > 0}


def hand_in_rows(engine: Engine, lab: str, student: str = "") -> dict[str, dict[str, HandInRow]]:
    """Return a lab's rows, of one or of all learners, keyed by learner and by hand-in's name."""
    if not inspect(engine).has_table(TABLE.name):
        return {}
    query = submissions_of(lab, SubmittedAssignment.student_id, TABLE, student=student)
    query = query.join(TABLE, TABLE.c.submission_id == SubmittedAssignment.id)
    found: dict[str, dict[str, HandInRow]] = {}
    with engine.connect() as connection:
        for one in connection.execute(query):
            marks = json.loads(one.by_person) if one.by_person else {}
            row = HandInRow(HandInResult(**json.loads(one.tried)), bool(one.stands), marks)
            found.setdefault(one.student_id, {})[one.name] = row
    return found


def enter(session: Session, submission: str, tried: Iterable[HandInResult]) -> None:
    """Store the results of hand-ins. The recorded hand-in stays the same."""
    for one in tried:
        at = (TABLE.c.submission_id == submission) & (TABLE.c.name == one.name)
        data = json.dumps(asdict(one))
        if session.scalar(select(TABLE.c.stands).where(at)) is None:
            new = {"submission_id": submission, "name": one.name, "stands": 0, "tried": data}
            session.execute(TABLE.insert().values(**new))
        else:
            session.execute(TABLE.update().where(at).values(tried=data))


def keep_marks(session: Session, submission: str, name: str) -> bool:
    """Save the marks that a person gave to the recorded hand-in, before another one replaces it.

    ``name`` is the hand-in that will be recorded next. It is empty if that hand-in is not stored.
    Return whether the marks were saved. They are not saved if there is no recorded hand-in, or if
    ``name`` is the recorded hand-in.
    """
    own = TABLE.c.submission_id == submission
    before = session.scalar(select(TABLE.c.name).where(own, TABLE.c.stands == 1))
    if before is None or before == name:
        return False
    found: dict[str, Any] = {}
    for cell, notebook, grade, comment in _marked(session, submission):
        if grade.manual_score is None and not grade.extra_credit:
            continue
        mark = {"score": grade.manual_score, "extra": grade.extra_credit}
        mark |= {"waits": bool(grade.needs_manual_grade)}
        mark |= {"remark": comment.manual_comment if comment else None}
        found.setdefault(notebook, {})[cell] = mark
    at = own & (TABLE.c.name == before)
    session.execute(TABLE.update().where(at).values(stands=0, by_person=json.dumps(found)))
    return True


def stand(session: Session, submission: str, name: str) -> None:
    """Mark a hand-in as recorded, and restore the marks that a person gave to it earlier."""
    own = (TABLE.c.submission_id == submission) & (TABLE.c.name == name)
    saved = session.scalar(select(TABLE.c.by_person).where(own, TABLE.c.stands == 0))
    marks = json.loads(saved) if saved else {}
    for cell, notebook, grade, comment in _marked(session, submission) if marks else ():
        if not (mark := marks.get(notebook, {}).get(cell)):
            continue
        grade.manual_score, grade.extra_credit = mark["score"], mark["extra"]
        grade.needs_manual_grade = mark["waits"]
        if comment and mark["remark"] is not None:
            comment.manual_comment = mark["remark"]
    session.execute(TABLE.update().where(own).values(stands=1, by_person=""))


def _marked(session: Session, submission: str) -> list[Any]:
    """Return a submission's marks: cell name, notebook name, grade and comment."""
    query = (
        select(BaseCell.name, Submitted, Grade)
        .join(Grade, Grade.cell_id == BaseCell.id)
        .join(Submitted, Submitted.id == Grade.notebook_id)
        .where(Submitted.assignment_id == submission)
    )
    remarks = (
        select(BaseCell.name, Comment.notebook_id, Comment)
        .join(Comment, Comment.cell_id == BaseCell.id)
        .join(Submitted, Submitted.id == Comment.notebook_id)
        .where(Submitted.assignment_id == submission)
    )
    comments = {(cell, notebook): one for cell, notebook, one in session.execute(remarks)}
    return [
        (cell, notebook.name, grade, comments.get((cell, notebook.id)))
        for cell, notebook, grade in session.execute(query)
    ]
