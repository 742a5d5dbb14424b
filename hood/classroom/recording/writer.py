"""Record results, in ``autograded/`` and nbgrader's gradebook: one transaction per submission."""

from __future__ import annotations

import errno
import glob
import json
import os
import shutil
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import nbformat
from nbgrader.api import (
    Assignment,
    BaseCell,
    Comment,
    Grade,
    Gradebook,
    InvalidEntry,
    MissingEntry,
    Notebook,
    Student,
    SubmittedAssignment,
    SubmittedNotebook,
    TaskCell,
)
from nbgrader.preprocessors import AssignLatePenalties
from nbgrader.utils import is_grade, is_task
from sqlalchemy import Column, MetaData, String, Table, Text, select, text
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session, scoped_session, sessionmaker
from traitlets.config import Config
from traitlets.utils.importstring import import_item

from hood import UserError
from hood.atomic_files import why_not_written, write_whole
from hood.classroom.gradebook import graded_hand_ins
from hood.classroom.gradebook.book_age import (
    BOOK,
    Count,
    count_in,
    count_in_files,
    older_book,
    rename_book,
    unknown,
    write_count,
)
from hood.classroom.gradebook.database import (
    PATIENCE,
    cause_of,
    engine_of,
    errors_in_words,
    state_of,
    submissions_of,
    waiting,
    writing,
)
from hood.classroom.gradebook.graded_hand_ins import HandInResult, HandInRow
from hood.classroom.gradebook.marks import set_maxima
from hood.classroom.gradebook.regrade import (
    marked_as_asking,
    may_ask,
    only_asks,
    with_earlier_verdicts,
)
from hood.classroom.rules.standing import HandInTime
from hood.grader.batch.job import Job, LabFiles, NotebookResult, Result, Submission
from hood.grader.course import Course, other_version
from hood.grader.execution.graded_cell import is_verified, split_hidden
from hood.grader.run_record import RunRecord
from hood.grader.submission.files import SECRET, TIMESTAMP
from hood.grader.submission.names import spelled
from hood.grader.submission.rebuild import as_recorded, is_owned

# Errors of names in one submission. Another that keeps its files from being written is not its own.
OF_ONE = (errno.EEXIST, errno.EISDIR, errno.ENOTDIR, errno.ENAMETOOLONG)
ATTEMPTS = 3
DEADLOCK = "40P01"  # PostgreSQL's code
ADVISORY = int.from_bytes(b"hood")  # the number of this project's lock there
OTHER_PROGRAM = "another program"  # in place of a job's id
RESUME = "Recorded grades are kept; run the same command again to continue"

# Records of graded submissions. They are in the gradebook's own database, so that they are
# committed with the scores. There is no foreign key, because nbgrader deletes submissions without
# knowing this table.
TASK = TaskCell.__mapper_args__["polymorphic_identity"]
RECORDS = Table(
    "open_the_hood_graded",
    MetaData(),
    Column("submission_id", String(32), primary_key=True),
    Column("key", String(64), nullable=False),
    Column("digest", String(64), nullable=False),
    Column("seeds", Text, nullable=False),
    Column("stamp", Text, nullable=False, default=""),  # earlier versions had a use for it
)
# Indexes on foreign keys. Without them each query below scans a whole table; nbgrader's indexes
# start with the other column.
INDEXES = {
    "grade": "notebook_id",
    "comment": "notebook_id",
    "submitted_notebook": "assignment_id",
}


@dataclass(frozen=True)
class GradeRecord:
    """The record of a submission that was graded before."""

    # Id of the job whose scores are in the gradebook; empty when the grader failed, and
    # :data:`OTHER_PROGRAM` when another program gave the scores
    job_id: str
    digest: str  # digest of the submission; empty when another program gave the scores
    seeds: Mapping[str, str]  # the seed of each notebook

    def is_of(self, submission: Submission) -> bool:
        """Return whether a sandbox could not tell it from this; true where nobody knows."""
        return self.digest in ("", submission.digest)


class Writer:
    """Writes scores and graded files; nothing else does. Use it as a context manager.

    ``patience`` are the seconds to wait for a gradebook that another program has locked. Raises
    UserError when the gradebook cannot be used; from any method, with what to do.
    """

    def __init__(self, course: Course, patience: float = PATIENCE):
        self.course = course
        self._patience = patience
        self._creates_students = course.autograde.create_student
        self._late = _late_penalties(course)
        directory = course.directory
        self._url = waiting(directory.db_url, patience)
        with self._said_clearly(), self.alone():
            if other := other_version(self._url):
                raise UserError(other)
            self.gradebook = Gradebook(self._url, directory.course_id)
            self._engine = self.gradebook.engine
            self._prepare()

    def _prepare(self) -> None:
        RECORDS.metadata.create_all(self._engine)
        BOOK.metadata.create_all(self._engine)
        graded_hand_ins.prepare(self._engine)
        with self._engine.begin() as connection:
            for table, column in INDEXES.items():
                name = f"open_the_hood_{table}"
                sql = f"CREATE INDEX IF NOT EXISTS {name} ON {table} ({column})"
                connection.execute(text(sql))

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, *_: object) -> None:
        self.gradebook.close()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep other graders from making tables, or entering a lab, in the same PostgreSQL.

        In SQLite each such step waits for the file. The lock ends with the connection.
        """
        engine = engine_of(self.course.directory.db_url, self._patience)
        with engine.execution_options(isolation_level="AUTOCOMMIT").connect() as connection:
            if engine.dialect.name == "postgresql":
                connection.execute(text(f"SELECT pg_advisory_lock({ADVISORY})"))
            yield

    def knows(self, lab: LabFiles) -> bool:
        """Return whether the gradebook has the lab in its current form."""
        with self._said_clearly(), self._transaction():
            try:
                found = self.gradebook.find_assignment(lab.name).notebooks
            except MissingEntry:
                return False
            return _with_any({n.name: _cells(n) for n in found}) == _with_any(
                {name: cells_of(data, lab.config) for name, data in lab.notebooks.items()}
            )

    def has_other_cells(self, lab: LabFiles) -> bool:
        """Return whether the gradebook has a lab with other cells; nbgrader can't change that."""
        with self._said_clearly(), self._transaction():
            found = self.gradebook.find_assignment(lab.name).notebooks
            before = {n.name: {cell[1] for cell in _cells(n)} for n in found}
            now = {
                name: {cell[1] for cell in cells_of(data, lab.config)}
                for name, data in lab.notebooks.items()
            }
            return _with_any(before) != _with_any(now)

    def accept(self, anyway: bool, renew: bool) -> None:
        """Refuse a gradebook that is older than graded files
        (:mod:`hood.classroom.gradebook.book_age`).

        Args:
            anyway: whether somebody has said that it is the one that counts.
            renew: whether to note that, where it is or no graded file speaks against it.

        Raises UserError with whose files it does not know.
        """
        with self._said_clearly(), self._transaction() as session:
            now, labs = count_in(session), sorted(session.scalars(select(Assignment.name)))
        if not now.is_older_than(count_in_files(self.course)):
            return
        spelling = {real: nfc_id for nfc_id, real in self.spelled().items()}
        places = self.course.folder("source", ".", "LAB").parent
        who: list[str] = []
        for lab in sorted({*labs, *(path.parent.name for path in places.glob("*/*.ipynb"))}):
            records = self.records(lab)
            known = {spelling.get(name, name): one.job_id for name, one in records.items()}
            who += unknown(self.course, lab, known)
        if who and not anyway:
            raise UserError(older_book(who))
        if renew:
            with self._said_clearly(), self._transaction() as session:
                now = rename_book(session)
            write_count(self.course, now)

    def spelled(self) -> dict[str, str]:
        """Return the learners' ids in the gradebook that are not in NFC, by their NFC."""
        with self._said_clearly(), self._engine.connect() as connection:
            return spelled(set(connection.scalars(select(Student.id))))

    def records(self, lab: str, student: str = "") -> dict[str, GradeRecord]:
        """Return the records of one learner, or of all who have one, by student id."""
        marked = (
            select(Grade.id)
            .join(SubmittedNotebook, SubmittedNotebook.id == Grade.notebook_id)
            .where(SubmittedNotebook.assignment_id == SubmittedAssignment.id)
            .where(Grade.auto_score.is_not(None))
            .exists()
        )
        query = (
            submissions_of(lab, SubmittedAssignment.student_id, *RECORDS.c, student=student)
            .outerjoin(RECORDS, SubmittedAssignment.id == RECORDS.c.submission_id)
            .where(RECORDS.c.key.is_not(None) | marked)
        )
        with self._said_clearly(), self._engine.connect() as connection:
            return {
                row.student_id: GradeRecord(OTHER_PROGRAM, "", {})
                if row.key is None
                else GradeRecord(row.key, row.digest, json.loads(row.seeds))
                for row in connection.execute(query)
            }

    def hand_ins(self, lab: str) -> dict[str, dict[str, HandInRow]]:
        """Return what is known of a lab's hand-ins, by student and name."""
        with self._said_clearly():
            return graded_hand_ins.hand_in_rows(self._engine, lab)

    def note(self, lab: str, student: str, tried: Sequence[HandInResult]) -> None:
        """Keep what was found of a learner's hand-ins; the recorded one stays."""
        with self._said_clearly(), self._transaction() as session:
            submission = self.gradebook.find_submission(lab, student)
            graded_hand_ins.enter(session, submission.id, tried)

    def record(
        self,
        job: Job,
        result: Result,
        came: HandInTime | None = None,
        tried: Sequence[HandInResult] = (),
    ) -> bool:
        """Write the graded files and the scores, in one transaction that replaces the old ones.

        ``came`` is the hand-in, where several are kept, with the time that counts; ``tried`` what
        was found of it and of the learner's others.

        If this process is killed in between, the record has the old job's id, and the next run
        notices. It returns False where the grader failed for somebody who has a grade: all stays as
        it is.
        """
        lab, student = job.lab.name, job.student
        folder = self.course.folder("autograded", student, lab)
        stopped = any(_replaced_by_halves(folder))
        before = self.records(lab, student).get(student) if stopped or not result.judged else None
        if stopped:
            put_back(folder, before.job_id if before else "")
        if before and before.job_id and not result.judged:
            return False
        time = self.earlier_time(job, result)
        own = job.submission.timestamp
        if time is None and own and came and came.at:
            at = came.at.astimezone(UTC).replace(tzinfo=None)
            time = at if at < datetime.fromisoformat(own) else None
        if time:
            asking = (replace(n, data=marked_as_asking(n.data)) for n in result.notebooks)
            result = replace(result, notebooks=tuple(asking))
        beside = {**job.shown(), **job.submission.of_nbgrader}
        with (
            self._said_clearly(),
            replaced(self.course, student, lab, result.notebooks, beside),
        ):
            for left in reversed(range(ATTEMPTS)):
                try:
                    counts = time.isoformat() if time else own
                    count = self._write(job, result, counts, came.name if came else "", tried)
                    break
                except (OperationalError, InvalidEntry) as error:
                    # PostgreSQL resolved a deadlock by ending this transaction: try again.
                    if left == 0 or state_of(cause_of(error)) != DEADLOCK:
                        raise
        write_count(self.course, count)
        return True

    def earlier_time(self, job: Job, result: Result) -> datetime | None:
        """Return when the work was first handed in, if a request for a regrade is all that is new.

        The time is in UTC and has no zone. What was graded before must still be there as it was
        recorded, and the learner's code must not read files: nobody could say whether those are the
        same.
        """
        student, lab, came = job.student, job.lab, job.submission.timestamp
        if not came or not any(may_ask(notebook.data) for notebook in result.notebooks):
            return None
        before = self.records(lab.name, student).get(student)
        folder = self.course.folder("autograded", student, lab.name)
        paths = {notebook.name: folder / f"{notebook.name}.ipynb" for notebook in result.notebooks}
        here = {p.relative_to(folder).as_posix() for p in folder.rglob("*") if not p.is_dir()}
        known = {path.name for path in paths.values()} | set(lab.files) | {TIMESTAMP, SECRET}
        runs = [RunRecord.read(path) for path in paths.values()]
        if not (before and before.job_id) or {run.job_id for run in runs} != {before.job_id}:
            return None
        again = before.digest == job.submission.digest and any(run.only_asks for run in runs)
        if not again:  # the same is not held against a lab that has changed since
            if job.submission.files or here - known:
                return None
            if not only_asks((n.data, paths[n.name]) for n in result.notebooks):
                return None
        with self._said_clearly(), self._transaction():
            earlier = self.gradebook.find_submission(lab.name, student).timestamp
        return earlier if earlier and earlier.isoformat() < came else None

    def _write(
        self, job: Job, result: Result, time: str | None, name: str, tried: Sequence[HandInResult]
    ) -> Count:
        lab, student, handed_in = job.lab.name, job.student, job.submission
        with self._transaction() as session:
            if self._creates_students:
                self.gradebook.update_or_create_student(student)
            else:
                self.gradebook.find_student(student)
            given = {"timestamp": time} if time or name else {}
            submission = self.gradebook.update_or_create_submission(lab, student, **given)
            of_this = RECORDS.c.submission_id == submission.id
            before = session.execute(select(RECORDS).where(of_this)).one_or_none()
            again = before is not None and handed_in.digest == before.digest
            kept = graded_hand_ins.keep_marks(session, submission.id, name)
            written: list[SubmittedNotebook] = []
            for notebook in result.notebooks:
                submitted = self.gradebook.find_submission_notebook(notebook.name, lab, student)
                _set_marks(session, submitted, notebook, again, kept)
                written.append(submitted)
            graded_hand_ins.enter(session, submission.id, tried)
            if name:
                session.flush()
                graded_hand_ins.stand(session, submission.id, name)
            for submitted in written if self._late is not None else ():
                self._set_penalty(session, submission, submitted)
            drawn = {n.name: n.seed for n in result.notebooks if n.seed}
            new = RECORDS.insert().values(
                submission_id=submission.id,
                key="" if result.retryable else job.id,
                digest=handed_in.digest,
                seeds=json.dumps(dict(job.seeds) | drawn),
            )
            session.execute(RECORDS.delete().where(of_this))
            session.execute(new)
            return count_in(session, 1)

    def set_maxima(
        self, lab: str, most: Mapping[tuple[str, str], float], seen: Collection[str]
    ) -> None:
        """Let a lab's maximum be what could be earned (:mod:`.marks` says how)."""
        with self._said_clearly(), self._transaction() as session:
            set_maxima(session, lab, most, seen)

    def renew_penalties(self, lab: str, students: Collection[str]) -> int:
        """Set the late penalties of recorded grades as policy, due date and marks now ask for.

        It returns the number of submissions of which one has changed.
        """
        if self._late is None:
            return 0
        late = SubmittedAssignment.timestamp > Assignment.duedate
        query = (
            submissions_of(lab, SubmittedNotebook, SubmittedAssignment)
            .join(SubmittedNotebook, SubmittedNotebook.assignment_id == SubmittedAssignment.id)
            .join(RECORDS, RECORDS.c.submission_id == SubmittedAssignment.id)
            .where(RECORDS.c.key != "")
            .where(late | SubmittedNotebook.late_submission_penalty.is_not(None))
        )
        changed = set()
        with self._said_clearly(), self._transaction() as session:
            for submitted, submission in session.execute(query).all():
                if submission.student_id in students:
                    before = submitted.late_submission_penalty
                    self._set_penalty(session, submission, submitted)
                    if submitted.late_submission_penalty != before:
                        changed.add(submission.student_id)
        return len(changed)

    def _set_penalty(
        self, session: Session, submission: SubmittedAssignment, submitted: SubmittedNotebook
    ) -> None:
        """Set the late penalty as nbgrader's AssignLatePenalties does, with its plugin."""
        submitted.late_submission_penalty = None
        assert self._late is not None
        late = submission.total_seconds_late
        if late > 0:
            session.flush()
            session.refresh(submitted, ["score"])
            penalty = self._late.plugin_inst.late_submission_penalty(
                submission.student_id, submitted.score, late
            )
            if penalty is not None:
                checked = self._late._check_late_penalty(submitted, penalty)
                submitted.late_submission_penalty = checked

    @contextmanager
    def _transaction(self) -> Iterator[Session]:
        """Run enclosed code in one transaction, including what nbgrader's API commits."""
        with writing(self._engine) as connection:
            maker = sessionmaker(bind=connection, autoflush=False, expire_on_commit=False)
            self.gradebook.db = scoped_session(maker)
            try:
                yield self.gradebook.db()
                self.gradebook.db.flush()
            finally:
                self.gradebook.db.remove()

    @contextmanager
    def _said_clearly(self) -> Iterator[None]:
        """Turn errors of the database and the disk into a UserError that says what to do."""
        try:
            with errors_in_words(self.course, RESUME, self._patience):
                yield
        except OSError as error:
            if error.errno in OF_ONE:
                raise
            said = why_not_written(error) or f"graded files can't be written: {error}"
            raise UserError(f"{said}. {RESUME}") from error


def _replaced_by_halves(folder: Path) -> Iterator[Path]:
    """Yield what lies beside a learner's graded files if a run was killed in :func:`replaced`."""
    return folder.parent.glob(f".{glob.escape(folder.name)}.*.old")


def put_back(folder: Path, job_id: str) -> None:
    """Of graded files that were being replaced, keep those that the gradebook has the grades for.

    Args:
        folder: a learner's graded files, or where they should be.
        job_id: of the job whose grades the gradebook has; empty for none.
    """
    for old in sorted(_replaced_by_halves(folder)):
        ids = {RunRecord.read(path).job_id for path in old.glob("*.ipynb")}
        if ids == {job_id} or not folder.exists():
            shutil.rmtree(folder, ignore_errors=True)
            old.rename(folder)
        else:
            shutil.rmtree(old)


@contextmanager
def replaced(
    course: Course,
    student: str,
    lab: str,
    notebooks: Sequence[NotebookResult],
    beside: Mapping[str, bytes],
) -> Iterator[None]:
    """Replace a submission's graded files.

    When that or the enclosed code fails, the old files are put back. If the process is killed in
    between, the old files, the new files or none are there. ``beside`` has the other files, by
    relative path.
    """
    folder = course.folder("autograded", student, lab)
    root = os.path.normpath(course.folder("autograded", ".", "."))
    folder.parent.mkdir(parents=True, exist_ok=True)
    course.share(*(path for path in folder.parents if path.is_relative_to(root)))
    for left in folder.parent.glob(f".{glob.escape(lab)}.*"):  # left by a killed run
        shutil.rmtree(left, ignore_errors=True)
    new = Path(tempfile.mkdtemp(prefix=f".{lab}.", dir=folder.parent))
    old = new.with_name(f"{new.name}.old")
    try:
        for name, data in beside.items():
            _write_file(course, new / name, data)
        for notebook in notebooks:
            file = f"{notebook.name}.ipynb"
            _write_file(course, new / file, with_earlier_verdicts(notebook.data, folder / file))
        for inside, _, _ in os.walk(new):
            os.chmod(inside, 0o755)
            course.share(Path(inside))
        if os.path.lexists(folder):
            folder.rename(old)
        new.rename(folder)
        yield
    except BaseException:
        if not new.exists():
            folder.rename(new)
        if os.path.lexists(old):
            old.rename(folder)
        raise
    finally:
        for left in (new, old):
            shutil.rmtree(left, ignore_errors=True)
        with suppress(OSError):
            old.unlink()  # no folder


def _write_file(course: Course, path: Path, data: bytes) -> None:
    write_whole(path, data)
    path.chmod(int(str(course.autograde.permissions), 8))


def cells_of(source: bytes, config: Config) -> set[tuple]:
    """Return what nbgrader's gradebook stores of a notebook: ids, texts, points.

    The points of cells with a check are left out: there it holds what could be earned.
    """
    nb = as_recorded(nbformat.reads(source.decode(), as_version=4), config)
    cells: set[tuple] = set()
    for cell in filter(is_owned, nb.cells):
        ours = cell.metadata.nbgrader
        cells.add(("text", ours.grade_id, cell.cell_type, cell.source))
        if (is_grade(cell) or is_task(cell)) and not is_verified(cell):
            cells.add(("points", ours.grade_id, float(ours.points)))
    return cells


def _with_any(cells: dict[str, set]) -> dict[str, set]:
    """Leave out notebooks without cells, unless all are: one was tried out beside the lab's."""
    return {name: found for name, found in cells.items() if found} or cells


def _cells(notebook: Notebook) -> set[tuple]:
    cells = {("text", c.name, c.cell_type, c.source) for c in notebook.source_cells}
    verified = {c.name for c in notebook.source_cells if split_hidden(c.source)}
    graded = [*notebook.grade_cells, *notebook.task_cells]
    return cells | {("points", c.name, c.max_score) for c in graded if c.name not in verified}


def _set_marks(
    session: Session,
    submitted: SubmittedNotebook,
    notebook: NotebookResult,
    again: bool,
    kept: bool,
) -> None:
    """Set a notebook's scores as nbgrader's SaveAutoGrades does, replacing the earlier ones.

    Manual scores and extra credit stay; a manual score is flagged for review, as is every task
    unless this same submission was graded before (``again``). Where the marks of the hand-in that
    stood before are ``kept`` with it, none of them goes to an answer in which nothing is written.
    """
    grades = session.execute(
        select(Grade, BaseCell.name, BaseCell.type)
        .join(BaseCell, BaseCell.id == Grade.cell_id)
        .where(Grade.notebook_id == submitted.id)
        # a mark given by hand comes before, and is flagged, or waits (SQLite is locked as a whole)
        .with_for_update(of=Grade)
    )
    for grade, name, kind in grades:
        grade.auto_score = notebook.scores.get(name)
        if kept and notebook.unanswered.get(name):
            grade.manual_score = None
        if kind == TASK:
            grade.needs_manual_grade = grade.needs_manual_grade or not again
        else:
            manual = grade.manual_score is not None
            grade.needs_manual_grade = manual or grade.auto_score is None
    comments = session.execute(
        select(Comment, BaseCell.name, BaseCell.type)
        .join(BaseCell, BaseCell.id == Comment.cell_id)
        .where(Comment.notebook_id == submitted.id)
    )
    for comment, name, kind in comments:
        unanswered = notebook.unanswered.get(name)
        comment.auto_comment = "No response." if unanswered and kind != TASK else None
        if kept and unanswered:
            comment.manual_comment = None


def _late_penalties(course: Course) -> AssignLatePenalties | None:
    """Return nbgrader's step for late submissions, with its plugin, if the course uses it."""
    for step in course.autograde.autograde_preprocessors:
        step = import_item(step) if isinstance(step, str) else step
        if isinstance(step, type) and issubclass(step, AssignLatePenalties):
            made = step(config=course.config)
            made.init_plugin()
            return made
    return None
