"""What the gradebook's database keeps of each hand-in that was graded, also of those not recorded.

nbgrader knows one submission of a learner to a lab. Of the other hand-ins this table has what a
comparison needs, and the marks that a person gave while one of them was the recorded one.
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

# There is no foreign key, because nbgrader deletes submissions without knowing this table.
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
    """A hand-in as a run found it.

    Attributes:
        name: under which it is kept.
        key: the id of its job, from which :func:`hood.grader.batch.job.changes` tells what
            changed; empty where it was not graded.
        digest: of the submission.
        seeds: of its cases, by notebook.
        scores: that its verdicts gave, by notebook and cell; None without one.
        blank: the cells that are as they were released, by notebook.
        withheld: points that the machine could not ask for, by notebook and cell.
        came: the time that counts, in ISO format and UTC; empty where that is not known.
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
    """What the table has of a hand-in.

    Attributes:
        stands: whether it is the one that the gradebook has.
        by_person: the marks that a person gave it, by notebook and cell, if it stood once.
    """

    tried: HandInResult
    stands: bool
    by_person: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def marks(self, base: Graded) -> tuple[Graded, dict[str, float]]:
        """Return its marks and what was withheld, as if it had been recorded.

        A person's mark is taken over from the recorded one, ``base``, as recording does, unless the
        answer is blank here.
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
    """Make the table, unless it is there."""
    TABLE.metadata.create_all(engine)


def withheld_in(data: bytes) -> dict[str, float]:
    """Return the points that could not be asked for in a graded notebook's file, by cell."""
    verdicts = read_verdicts(nbformat.v4.reads(data.decode()))
    found = {name: verdict.points - verdict.most for name, verdict in verdicts.items()}
    return {name: points for name, points in found.items() if points > 0}


def hand_in_rows(engine: Engine, lab: str, student: str = "") -> dict[str, dict[str, HandInRow]]:
    """Return what is known of a lab's hand-ins, by learner and name; of one learner or all."""
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
    """Enter hand-ins that were graded; which one stands stays as it is."""
    for one in tried:
        at = (TABLE.c.submission_id == submission) & (TABLE.c.name == one.name)
        data = json.dumps(asdict(one))
        if session.scalar(select(TABLE.c.stands).where(at)) is None:
            new = {"submission_id": submission, "name": one.name, "stands": 0, "tried": data}
            session.execute(TABLE.insert().values(**new))
        else:
            session.execute(TABLE.update().where(at).values(tried=data))


def keep_marks(session: Session, submission: str, name: str) -> bool:
    """Keep what a person marked for the hand-in that stands, before another one, NAME, does.

    NAME may be empty, for one that is not kept. It returns whether another one stood.
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
    """Let a hand-in stand, and give back the marks that a person gave it when it stood before."""
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
    """Return the marks of a submission: the cell's name, the notebook's, the grade, the comment."""
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
