"""Read and write the marks of written questions in nbgrader's gradebook.

A mark is stored in a grade's ``manual_score`` and ``needs_manual_grade``, and the mark's remark is
stored as a ``manual_comment``. So formgrader, feedback and reports show the same mark and remark. A
separate table has the data that nbgrader can't store: who gave the mark and when, to which version
of the answer, which boxes were ticked, and what the mark was before.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from nbgrader.api import (
    Assignment,
    BaseCell,
    Comment,
    Grade,
    Notebook,
    SolutionCell,
    SourceCell,
    Student,
    SubmittedAssignment,
    SubmittedNotebook,
    TaskCell,
)
from nbgrader.preprocessors import ClearMarkScheme
from sqlalchemy import (
    Column,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    inspect,
    select,
)
from sqlalchemy.orm import Session

from hood import UserError
from hood.classroom.gradebook.database import engine_of, errors_in_words, writing
from hood.classroom.gradebook.marks import graded_cells, missing_marks
from hood.classroom.gradebook.pseudonyms import pseudonyms
from hood.classroom.marking.answer_reader import Answer, stamp
from hood.classroom.marking.share import Share
from hood.grader.course import Course
from hood.grader.outline import read_outline
from hood.rubric import Rubric, read_rubric
from hood.untrusted import seen

Answers = dict[str, tuple[str, "Mark"]]  # the learner and the mark, by the grade's id

EVERYTHING = Share()
PATIENCE = 10.0  # seconds to wait for a gradebook that another program has locked
MAX_REMARK = 4000  # characters of a remark on a written answer
REMARKS = 20  # earlier remarks that a question's page offers
# One row for each mark that was given here and not undone.
GIVEN = Table(
    "open_the_hood_marks",
    MetaData(),
    Column("id", Integer, primary_key=True),
    Column("grade_id", String(32), nullable=False, index=True),
    Column("marker", Text, nullable=False),  # the identity on Jupyter's server
    Column("name", Text, nullable=False),  # the marker's name for other people
    Column("given", String(32), nullable=False),  # when, in UTC
    Column("answer", String(64), nullable=False),  # digest of the marked answer
    Column("boxes", Text, nullable=False),
    Column("before", Text, nullable=False),
    Column("after", Text, nullable=False),
)


@dataclass(frozen=True)
class Mark:
    """An answer's mark in the gradebook.

    Attributes:
        waits: whether a person must look at the answer.
        extra: extra credit, which only formgrader gives.
    """

    score: float | None = None
    remark: str = ""
    waits: bool = True
    extra: float | None = None

    @property
    def state(self) -> str:
        """``unmarked``, ``marked``, or ``again`` if the answer was graded again after its mark."""
        if not self.waits:
            return "marked"
        return "unmarked" if self.score is None else "again"

    def version(self, digest: str) -> str:
        """Return a hash of the mark and its answer. A save must send the hash that the page got."""
        seen = json.dumps([asdict(self), digest], sort_keys=True)
        return hashlib.sha256(seen.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Marker:
    """A person who marks: their identity on the server, and the name that other people see."""

    id: str
    name: str


@dataclass(frozen=True)
class Wanted:
    """A mark to give. If the score is None, the existing mark is removed."""

    score: float | None
    remark: str = ""
    boxes: tuple[int, ...] = ()


@dataclass(frozen=True)
class Question:
    """A question that a person marks, and the number of its answers in each state."""

    id: str
    lab: str
    notebook: str
    name: str
    title: str
    points: float
    states: Mapping[str, int]
    lost: int = 0  # learners with an unreadable notebook, so there is nothing to mark
    # the number of answers in each state, among the answers in the marker's share
    own: Mapping[str, int] = field(default_factory=dict)


class Entry(NamedTuple):
    """One learner's answer in a question's list: the id, state and score of the grade."""

    grade: str
    pseudonym: str
    state: str
    score: float | None
    own: bool = True  # whether it is in the marker's share


@dataclass(frozen=True)
class Sheet:
    """A question, with everything that a marker needs except the answers."""

    question: Question
    text: str
    rubric: Rubric
    entries: Sequence[Entry]
    remarks: Sequence[str]


@dataclass(frozen=True)
class Shown:
    """A mark, as the page shows it.

    Attributes:
        by: the name of the person who gave the mark; empty if it was not given on these pages.
        boxes: the ticked boxes. They are known only if the mark was given on these pages and has
            not changed since.
        since: empty if the answer was not graded again after its mark. Otherwise, ``changed`` or
            ``same`` says whether the answer has changed, and ``unknown`` means that the mark was
            not given on these pages.
        others: the ids of the grades whose marks were given in the same step. An undo takes these
            marks back too.
    """

    grade: str
    mark: Mark
    version: str
    by: str = ""
    at: str = ""
    boxes: tuple[int, ...] = ()
    since: str = ""
    others: tuple[str, ...] = ()


class StaleError(Exception):
    """The mark or the answer has changed since the page showed it."""

    def __init__(self, now: Shown):
        super().__init__("the mark or its answer has changed since it was shown")
        self.now = now


class AnswerLocation(NamedTuple):
    """Where an answer is: its graded notebook, its cell, and the notebook's id in formgrader."""

    path: Path
    cell: str
    submission: str


class Book:
    """The gradebook of a course, for marking.

    Each method raises UserError if the gradebook can't be used, and KeyError for an unknown id.
    """

    def __init__(self, course: Course):
        self.course = course
        self._engine = engine_of(course.directory.db_url, PATIENCE)

    def questions(self, share: Share = EVERYTHING) -> list[Question]:
        """Return the questions of all labs that have a submission, in the order of the labs."""
        with self._reading() as session:
            labs = sorted(session.scalars(select(Assignment.name)))
            every = (question for lab in labs for question, _ in self._lab(session, lab, share))
            return [one for one in every if one.states or one.lost]

    def sheet(self, cell_id: str, share: Share = EVERYTHING) -> Sheet:
        """Return one question, its rubric, and its answers.

        The order of the entries differs between questions, but for one question it is always the
        same.
        """
        with self._reading() as session:
            lab = session.scalar(
                select(Assignment.name).join(Notebook).join(BaseCell).where(BaseCell.id == cell_id)
            )
            if lab is None:
                raise KeyError(cell_id)
            of_lab = {one.id: (one, marks) for one, marks in self._lab(session, lab, share)}
            question, marks = of_lab[cell_id]
            source = session.scalar(
                select(SourceCell.source)
                .join(BaseCell, BaseCell.notebook_id == SourceCell.notebook_id)
                .where(BaseCell.id == cell_id, SourceCell.name == BaseCell.name)
            )
        scheme = ClearMarkScheme(config=self.course.config)
        begin, end = scheme.begin_mark_scheme_delimeter, scheme.end_mark_scheme_delimeter
        text, rubric = read_rubric(source or "", begin, end)
        names = pseudonyms(self.course.root)
        entries = [
            Entry(grade, names.order(student), mark.state, mark.score, share.has(student))
            for grade, (student, mark) in marks.items()
        ]
        entries.sort(key=lambda one: hashlib.sha256(f"{cell_id} {one.pseudonym}".encode()).digest())
        said = Counter(
            line for _, mark in marks.values() for line in dict.fromkeys(lines(mark.remark))
        )
        often = sorted(said.items(), key=lambda one: (-one[1], one[0]))
        return Sheet(question, text, rubric, entries, [line for line, _ in often[:REMARKS]])

    def names(self, cell_id: str) -> dict[str, str]:
        """Return the learners' names, or their ids if they have no names, keyed by grade id."""
        query = (
            select(Grade.id, Student.id, Student.first_name, Student.last_name)
            .join(SubmittedNotebook, SubmittedNotebook.id == Grade.notebook_id)
            .join(SubmittedAssignment, SubmittedAssignment.id == SubmittedNotebook.assignment_id)
            .join(Student, Student.id == SubmittedAssignment.student_id)
            .where(Grade.cell_id == cell_id)
        )
        with self._reading() as session:
            return {
                grade: seen(" ".join(filter(None, parts))) or student
                for grade, student, *parts in session.execute(query)
            }

    def location(self, grade_id: str) -> AnswerLocation:
        """Return the location of the answer to which a grade belongs."""
        query = (
            select(
                SubmittedAssignment.student_id,
                Assignment.name,
                Notebook.name,
                BaseCell.name,
                SubmittedNotebook.id,
            )
            .select_from(Grade)
            .join(SubmittedNotebook, SubmittedNotebook.id == Grade.notebook_id)
            .join(SubmittedAssignment, SubmittedAssignment.id == SubmittedNotebook.assignment_id)
            .join(Assignment, Assignment.id == SubmittedAssignment.assignment_id)
            .join(Notebook, Notebook.id == SubmittedNotebook.notebook_id)
            .join(BaseCell, BaseCell.id == Grade.cell_id)
            .where(Grade.id == grade_id)
        )
        with self._reading() as session:
            found = session.execute(query).one_or_none()
        if found is None:
            raise KeyError(grade_id)
        student, lab, notebook, cell, submission = found
        path = self.course.folder("autograded", student, lab) / f"{notebook}.ipynb"
        return AnswerLocation(path, cell, submission)

    def shown(self, grade_id: str, answer: Answer) -> Shown:
        """Return an answer's mark, as the page shows it."""
        with self._reading() as session:
            return self._shown(session, grade_id, answer.digest)

    def give(
        self, grade_id: str, version: str, wanted: Wanted, marker: Marker, answer: Answer
    ) -> Shown:
        """Record a mark, and return the recorded mark.

        Args:
            version: the :meth:`Mark.version` that the marker saw.
            answer: the current answer.

        Raises:
            StaleError: when the mark or the answer has changed since the marker saw them. Nothing
                is recorded.
            ValueError: for a mark that can't be given; the message says what was expected.
        """
        path = self.location(grade_id).path
        with self._writing() as session:
            now = self._shown(session, grade_id, answer.digest, lock=True)
            # the batch grader replaces files first, and then waits for the lock that this code has
            if now.version != version or stamp(path) != answer.stamp:
                raise StaleError(now)
            most = session.scalars(select(Grade).where(Grade.id == grade_id)).one().cell.max_score
            if wanted.score is not None and not 0 <= wanted.score <= most:
                raise ValueError(f"expected points from 0 to {most:g}")
            if len(wanted.remark) > MAX_REMARK:
                raise ValueError(f"expected a remark of at most {MAX_REMARK:,} characters")
            self._give(session, now, wanted, marker, answer, _moment())
            return self._shown(session, grade_id, answer.digest)

    def waiting(self, cell_id: str) -> list[str]:
        """Return the ids of a question's grades that have neither a mark nor a remark."""
        unmarked = [
            entry.grade for entry in self.sheet(cell_id).entries if entry.state == "unmarked"
        ]
        with self._reading() as session:
            return [one for one in unmarked if not self._shown(session, one, "").mark.remark]

    def give_blank(self, cell_id: str, answers: Mapping[str, Answer], marker: Marker) -> list[str]:
        """Give 0 points to all waiting blank answers in one step, and return their grades' ids.

        An answer is skipped if it now has a mark or a remark, or if it is no longer blank.

        Args:
            answers: the current answers, keyed by the ids of their grades.
        """
        paths = {grade: self.location(grade).path for grade in answers}
        waiting, at, given = set(self.waiting(cell_id)), _moment(), []
        with self._writing() as session:
            for grade, answer in answers.items():
                now = self._shown(session, grade, answer.digest, lock=True)
                fresh = now.mark.state == "unmarked" and not now.mark.remark
                same = answer.blank and stamp(paths[grade]) == answer.stamp
                if fresh and same and grade in waiting:
                    self._give(session, now, Wanted(0.0), marker, answer, at)
                    given.append(grade)
        return given

    def _give(
        self, session: Session, now: Shown, wanted: Wanted, marker: Marker, answer: Answer, at: str
    ) -> None:
        after = Mark(wanted.score, wanted.remark, wanted.score is None, now.mark.extra)
        self._set(session, now.grade, after)
        session.execute(
            GIVEN.insert().values(
                grade_id=now.grade,
                marker=marker.id,
                name=marker.name,
                given=at,
                answer=answer.digest,
                boxes=json.dumps(wanted.boxes),
                before=json.dumps(asdict(now.mark)),
                after=json.dumps(asdict(after)),
            )
        )
        session.flush()

    def last(self, cell_id: str, marker: Marker) -> str:
        """Return the id of the question's grade that this marker changed last, or ``""``."""
        with self._reading() as session:
            of_this = select(Grade.id).where(Grade.cell_id == cell_id)
            row = self._last(session, GIVEN.c.marker == marker.id, GIVEN.c.grade_id.in_(of_this))
        return row.grade_id if row else ""

    def take_back(self, grade_id: str, marker: Marker, answer: Answer) -> Shown:
        """Undo this marker's last mark of an answer, and return the mark that the answer has now.

        Marks that were given in the same step are also undone, except marks that somebody has
        changed after that step.

        Raises:
            StaleError: when somebody else has changed the mark, or the answer was graded again.
        """
        with self._writing() as session:
            now = self._shown(session, grade_id, answer.digest, lock=True)
            last = self._last(session, GIVEN.c.grade_id == grade_id)
            own = last is not None and last.marker == marker.id
            if not own or Mark(**json.loads(last.after)) != now.mark:
                raise StaleError(now)
            self._undo(session, last)
            others = [one.grade_id for one in self._with(session, last) if self._undo(session, one)]
            return replace(self._shown(session, grade_id, answer.digest), others=tuple(others))

    def _with(self, session: Session, last: Any) -> Sequence[Any]:
        """Return the rows of the other marks that were given in the same step as ``last``."""
        if "." not in last.given:  # an earlier version wrote whole seconds, one mark per step
            return ()
        step = (GIVEN.c.marker == last.marker) & (GIVEN.c.given == last.given)
        return session.execute(select(GIVEN).where(step, GIVEN.c.id != last.id)).all()

    def _undo(self, session: Session, row: Any) -> bool:
        """Undo a mark, unless a newer mark exists; return whether the mark was undone."""
        now = self._shown(session, row.grade_id, row.answer, lock=True)
        last = self._last(session, GIVEN.c.grade_id == row.grade_id)
        if last.id != row.id or Mark(**json.loads(row.after)) != now.mark:
            return False
        self._set(session, row.grade_id, Mark(**json.loads(row.before)))
        session.execute(GIVEN.delete().where(GIVEN.c.id == row.id))
        session.flush()
        return True

    def _lab(self, session: Session, lab: str, share: Share) -> list[tuple[Question, Answers]]:
        """Return the questions of a lab in their order, each with the marks of its answers."""
        cells = {
            cell.id: (cell, notebook)
            for cell, notebook, by_person in graded_cells(session, lab)
            if by_person
        }
        if not cells:
            return []
        named = select(Notebook.name).join(Assignment).where(Assignment.name == lab)
        notebooks = tuple(sorted(session.scalars(named)))
        titles = read_outline(self.course.root, lab, notebooks).titles
        lost = {
            (one.student, one.notebook, one.cell)
            for one in missing_marks(session, lab)
            if not one.waits
        }
        remarks = {
            (notebook, cell): remark
            for notebook, cell, remark in session.execute(
                select(Comment.notebook_id, BaseCell.name, Comment.manual_comment)
                .join(BaseCell, BaseCell.id == Comment.cell_id)
                .join(Notebook, Notebook.id == BaseCell.notebook_id)
                .join(Assignment)
                .where(Assignment.name == lab)
            )
        }
        answers: dict[str, Answers] = {cell_id: {} for cell_id in cells}
        unread: Counter[str] = Counter()
        for grade, student in session.execute(
            select(Grade, SubmittedAssignment.student_id)
            .join(SubmittedNotebook, SubmittedNotebook.id == Grade.notebook_id)
            .join(SubmittedAssignment, SubmittedAssignment.id == SubmittedNotebook.assignment_id)
            .where(Grade.cell_id.in_(cells))
        ):
            if share.members.why_not(student):
                continue
            cell, notebook = cells[grade.cell_id]
            if (student, notebook, cell.name) in lost:
                unread[cell.id] += 1
                continue
            mark = _mark(grade, remarks.get((grade.notebook_id, cell.name)))
            answers[cell.id][grade.id] = (student, mark)
        order = {name: place for place, name in enumerate(titles)}
        found = []
        for cell_id, (cell, notebook) in cells.items():
            name = cell.name if len(notebooks) == 1 else f"{notebook}/{cell.name}"
            marks = answers[cell_id].values()
            states = Counter(mark.state for _, mark in marks)
            own = Counter(mark.state for student, mark in marks if share.has(student))
            question = Question(
                cell_id,
                lab,
                notebook,
                cell.name,
                titles.get(name) or name,
                cell.max_score,
                states,
                unread[cell_id],
                own,
            )
            found.append((order.get(name, len(order)), question, answers[cell_id]))
        found.sort(key=lambda one: one[0])
        return [(question, of_it) for _, question, of_it in found]

    def _shown(self, session: Session, grade_id: str, digest: str, lock: bool = False) -> Shown:
        query = select(Grade).where(Grade.id == grade_id)
        grade = session.scalar(query.with_for_update() if lock else query)
        if grade is None:
            raise KeyError(grade_id)
        comment = self._comment(session, grade)
        mark = _mark(grade, comment.manual_comment if comment else None)
        last = self._last(session, GIVEN.c.grade_id == grade_id)
        version = mark.version(digest)
        if mark.score is None and not mark.remark:
            return Shown(grade_id, mark, version)
        after = Mark(**json.loads(last.after)) if last else None
        ours = after is not None and (after.score, after.remark) == (mark.score, mark.remark)
        since = ""
        if mark.state == "again":
            since = "unknown" if not ours else "same" if last.answer == digest else "changed"
        if not ours:
            return Shown(grade_id, mark, version, since=since)
        boxes = tuple(json.loads(last.boxes))
        return Shown(grade_id, mark, version, last.name, last.given, boxes, since)

    def _set(self, session: Session, grade_id: str, mark: Mark) -> None:
        grade = session.scalars(select(Grade).where(Grade.id == grade_id)).one()
        grade.manual_score, grade.needs_manual_grade = mark.score, mark.waits
        comment = self._comment(session, grade)
        if comment is None and mark.remark:
            of_comments = session.scalars(
                select(BaseCell).where(
                    BaseCell.notebook_id == grade.cell.notebook_id,
                    BaseCell.name == grade.cell.name,
                )
            )
            cell = next(one for one in of_comments if isinstance(one, (SolutionCell, TaskCell)))
            comment = Comment(cell_id=cell.id, notebook_id=grade.notebook_id)
            session.add(comment)
        if comment is not None:
            # an empty comment would hide an automatic comment
            comment.manual_comment = mark.remark or None

    @staticmethod
    def _comment(session: Session, grade: Grade) -> Comment | None:
        """Return the comment on a graded cell; a solution cell has a separate comment."""
        query = select(Comment).join(BaseCell, BaseCell.id == Comment.cell_id)
        of_this = (Comment.notebook_id == grade.notebook_id) & (BaseCell.name == grade.cell.name)
        return session.scalar(query.where(of_this))

    @staticmethod
    def _last(session: Session, *which: Any) -> Any:
        """Return the row of the last mark that was given here and matches the conditions."""
        if not inspect(session.connection()).has_table(GIVEN.name):
            return None
        return session.execute(
            select(GIVEN).where(*which).order_by(GIVEN.c.id.desc()).limit(1)
        ).one_or_none()

    @contextmanager
    def _reading(self) -> Iterator[Session]:
        with self._said_clearly(), Session(self._engine) as session:
            yield session

    @contextmanager
    def _writing(self) -> Iterator[Session]:
        """Run the enclosed code in one transaction; no other program can write at that time."""
        with self._said_clearly(), writing(self._engine) as connection:
            GIVEN.metadata.create_all(connection)
            with Session(connection) as session:
                yield session
                session.flush()

    @contextmanager
    def _said_clearly(self) -> Iterator[None]:
        """Turn errors of the database into a UserError that says what to do."""
        if self.course.database is not None and not self.course.database.exists():
            raise UserError("there is no gradebook yet: grade a lab first")
        with errors_in_words(self.course, "Nothing was recorded: try again", PATIENCE):
            yield


def _moment() -> str:
    """Return the current time, which identifies the marks that are given in one step."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


def lines(remark: str) -> list[str]:
    """Return the lines of a remark; the page can offer each line for other answers."""
    return [line.strip() for line in remark.splitlines() if line.strip()]


def _mark(grade: Grade, remark: str | None) -> Mark:
    return Mark(grade.manual_score, remark or "", grade.needs_manual_grade, grade.extra_credit)
