"""Questions in words and their marks, in nbgrader's gradebook.

A mark is a grade's ``manual_score`` with ``needs_manual_grade``, and its remark is a
``manual_comment``: formgrader, feedback and reports show the same. What nbgrader has no place for
stands in a table beside them: who gave a mark and when, for which answer, by which boxes, and what
was there before.
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
MAX_REMARK = 4000  # characters
REMARKS = 20  # that are offered for a question
# One row for each mark that was given here, and not taken back.
GIVEN = Table(
    "open_the_hood_marks",
    MetaData(),
    Column("id", Integer, primary_key=True),
    Column("grade_id", String(32), nullable=False, index=True),
    Column("marker", Text, nullable=False),  # the identity that Jupyter's server knows
    Column("name", Text, nullable=False),  # under which others know the marker
    Column("given", String(32), nullable=False),  # when, in UTC
    Column("answer", String(64), nullable=False),  # digest of what was marked
    Column("boxes", Text, nullable=False),
    Column("before", Text, nullable=False),
    Column("after", Text, nullable=False),
)


@dataclass(frozen=True)
class Mark:
    """What the gradebook has for an answer.

    Attributes:
        waits: whether a person has to look at it.
        extra: extra credit, which only formgrader gives.
    """

    score: float | None = None
    remark: str = ""
    waits: bool = True
    extra: float | None = None

    @property
    def state(self) -> str:
        """``unmarked``, ``marked``, or ``again``: marked, and graded anew since."""
        if not self.waits:
            return "marked"
        return "unmarked" if self.score is None else "again"

    def version(self, digest: str) -> str:
        """Return what a save must know of the mark, and of the answer that it is for."""
        seen = json.dumps([asdict(self), digest], sort_keys=True)
        return hashlib.sha256(seen.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Marker:
    """Who marks: the server's identity, and the name that others are told."""

    id: str
    name: str


@dataclass(frozen=True)
class Wanted:
    """A mark that somebody wants to give; None for a score takes the mark away."""

    score: float | None
    remark: str = ""
    boxes: tuple[int, ...] = ()


@dataclass(frozen=True)
class Question:
    """A question of a lab that a person marks, and how many of its answers are in which state."""

    id: str
    lab: str
    notebook: str
    name: str
    title: str
    points: float
    states: Mapping[str, int]
    lost: int = 0  # learners whose notebook could not be read, so there is nothing to mark
    own: Mapping[str, int] = field(default_factory=dict)  # of them, those in somebody's share


class Entry(NamedTuple):
    """One learner's answer in the list of a question: its grade's id, and what it has."""

    grade: str
    pseudonym: str
    state: str
    score: float | None
    own: bool = True  # whether it is in the share of whoever marks


@dataclass(frozen=True)
class Sheet:
    """A question with all that is needed to mark it, except for the answers themselves."""

    question: Question
    text: str
    rubric: Rubric
    entries: Sequence[Entry]
    remarks: Sequence[str]


@dataclass(frozen=True)
class Shown:
    """A mark as the page shows it.

    Attributes:
        by: who gave it, or empty where it was not given here.
        boxes: which were ticked, if the mark is the one that they gave.
        since: what happened to an answer that was graded anew since its mark: ``changed``,
            ``same``, or ``unknown`` where the mark was not given here; else empty.
        others: grades whose marks were given in one step with this, and taken back with it.
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
    """Somebody else changed the mark, or its answer, after it was shown."""

    def __init__(self, now: Shown):
        super().__init__("the mark or its answer has changed since it was shown")
        self.now = now


class AnswerLocation(NamedTuple):
    """Where an answer is: its graded notebook, its cell, and the id of the notebook's page."""

    path: Path
    cell: str
    submission: str


class Book:
    """The gradebook of a course, for marking.

    Each method raises a UserError if the gradebook can't be used, and a KeyError for an id that it
    does not have.
    """

    def __init__(self, course: Course):
        self.course = course
        self._engine = engine_of(course.directory.db_url, PATIENCE)

    def questions(self, share: Share = EVERYTHING) -> list[Question]:
        """Return the questions of all labs that somebody has handed in, in the labs' order."""
        with self._reading() as session:
            labs = sorted(session.scalars(select(Assignment.name)))
            every = (question for lab in labs for question, _ in self._lab(session, lab, share))
            return [one for one in every if one.states or one.lost]

    def sheet(self, cell_id: str, share: Share = EVERYTHING) -> Sheet:
        """Return one question, its rubric, and who has answered it.

        The order of the entries is a different one for each question, and always the same for one.
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
        """Return the learners' names, or their ids if there is none, by the grades' ids."""
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
        """Return where the answer of a grade is."""
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
        """Return an answer's mark."""
        with self._reading() as session:
            return self._shown(session, grade_id, answer.digest)

    def give(
        self, grade_id: str, version: str, wanted: Wanted, marker: Marker, answer: Answer
    ) -> Shown:
        """Record a mark and return it as it is now.

        Args:
            version: of the mark and answer that the marker has seen.
            answer: as it is now, read just before.

        Raises:
            StaleError: when the mark or the answer is another one than that; nothing is recorded.
            ValueError: for a mark that can't be given, with what was expected.
        """
        path = self.location(grade_id).path
        with self._writing() as session:
            now = self._shown(session, grade_id, answer.digest, lock=True)
            # the batch replaces files before it asks for the lock that is held here
            if now.version != version or stamp(path) != answer.stamp:
                raise StaleError(now)
            most = session.scalars(select(Grade).where(Grade.id == grade_id)).one().cell.max_score
            if wanted.score is not None and not 0 <= wanted.score <= most:
                raise ValueError(f"a mark is a number from 0 to {most:g}")
            if len(wanted.remark) > MAX_REMARK:
                raise ValueError(f"a remark has at most {MAX_REMARK:,} characters")
            self._give(session, now, wanted, marker, answer, _moment())
            return self._shown(session, grade_id, answer.digest)

    def waiting(self, cell_id: str) -> list[str]:
        """Return the grades of a question's answers that have no mark and no remark yet."""
        unmarked = [
            entry.grade for entry in self.sheet(cell_id).entries if entry.state == "unmarked"
        ]
        with self._reading() as session:
            return [one for one in unmarked if not self._shown(session, one, "").mark.remark]

    def give_blank(self, cell_id: str, answers: Mapping[str, Answer], marker: Marker) -> list[str]:
        """Give no point to answers that are blank and wait, in one step, and return their grades.

        One that has a mark or a remark by now, or is not blank any more, stays as it is.

        Args:
            answers: as they are now, by the ids of their grades, read just before.
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
        """Return the grade that this marker has marked last for a question, or nothing."""
        with self._reading() as session:
            of_this = select(Grade.id).where(Grade.cell_id == cell_id)
            row = self._last(session, GIVEN.c.marker == marker.id, GIVEN.c.grade_id.in_(of_this))
        return row.grade_id if row else ""

    def take_back(self, grade_id: str, marker: Marker, answer: Answer) -> Shown:
        """Undo this marker's last mark of an answer, and return what is there now.

        Marks that were given in one step with it are taken back, too, but for those that somebody
        has changed since.

        Raises:
            StaleError: when somebody else has changed it since, or it was graded anew.
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
        """Return the rows of the marks that were given in one step with another."""
        if "." not in last.given:  # an earlier version wrote whole seconds, for one mark each
            return ()
        step = (GIVEN.c.marker == last.marker) & (GIVEN.c.given == last.given)
        return session.execute(select(GIVEN).where(step, GIVEN.c.id != last.id)).all()

    def _undo(self, session: Session, row: Any) -> bool:
        """Take a mark back, unless another one has been given since; return whether it was."""
        now = self._shown(session, row.grade_id, row.answer, lock=True)
        last = self._last(session, GIVEN.c.grade_id == row.grade_id)
        if last.id != row.id or Mark(**json.loads(row.after)) != now.mark:
            return False
        self._set(session, row.grade_id, Mark(**json.loads(row.before)))
        session.execute(GIVEN.delete().where(GIVEN.c.id == row.id))
        session.flush()
        return True

    def _lab(self, session: Session, lab: str, share: Share) -> list[tuple[Question, Answers]]:
        """Return a lab's questions in its order, each with the marks of its answers."""
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
            comment.manual_comment = mark.remark or None  # an empty one would hide an automatic one

    @staticmethod
    def _comment(session: Session, grade: Grade) -> Comment | None:
        """Return the comment that belongs to a grade; that of a solution has a cell of its own."""
        query = select(Comment).join(BaseCell, BaseCell.id == Comment.cell_id)
        of_this = (Comment.notebook_id == grade.notebook_id) & (BaseCell.name == grade.cell.name)
        return session.scalar(query.where(of_this))

    @staticmethod
    def _last(session: Session, *which: Any) -> Any:
        """Return the row of the last mark that was given here, of those that are asked for."""
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
        """Run enclosed code in one transaction, which nobody else writes beside."""
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
    """Return the time now, by which marks that are given in one step know each other."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


def lines(remark: str) -> list[str]:
    """Return the remarks that make up a remark, each of which can be given again."""
    return [line.strip() for line in remark.splitlines() if line.strip()]


def _mark(grade: Grade, remark: str | None) -> Mark:
    return Mark(grade.manual_score, remark or "", grade.needs_manual_grade, grade.extra_credit)
