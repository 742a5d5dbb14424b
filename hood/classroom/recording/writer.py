"""Record results in ``autograded/`` and in nbgrader's gradebook, one transaction per submission."""

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

# Errors that a file name in one submission can cause. All other write errors concern every
# submission.
OF_ONE = (errno.EEXIST, errno.EISDIR, errno.ENOTDIR, errno.ENAMETOOLONG)
ATTEMPTS = 3
DEADLOCK = "40P01"  # PostgreSQL's code
ADVISORY = int.from_bytes(b"hood")  # the number of this project's lock in PostgreSQL
OTHER_PROGRAM = "another program"  # in place of a job's id
RESUME = "Recorded grades are kept; run the same command again to continue"

# Records of graded submissions. These records are in the gradebook's database, so that they are
# committed together with the scores. There is no foreign key, because nbgrader deletes submissions
# and does not know this table.
TASK = TaskCell.__mapper_args__["polymorphic_identity"]
RECORDS = Table(
    "open_the_hood_graded",
    MetaData(),
    Column("submission_id", String(32), primary_key=True),
    Column("key", String(64), nullable=False),
    Column("digest", String(64), nullable=False),
    Column("seeds", Text, nullable=False),
    Column("stamp", Text, nullable=False, default=""),  # only earlier versions used this column
)
# Indexes on foreign keys. Without these indexes each query below scans a whole table, because
# nbgrader's own indexes start with another column.
INDEXES = {
    "grade": "notebook_id",
    "comment": "notebook_id",
    "submitted_notebook": "assignment_id",
}


@dataclass(frozen=True)
class GradeRecord:
    """The record of a graded submission."""

    # Id of the job whose scores are in the gradebook; empty when the grader failed, and
    # :data:`OTHER_PROGRAM` when another program gave the scores
    job_id: str
    digest: str  # digest of the submission; empty when another program gave the scores
    seeds: Mapping[str, str]  # the seed of each notebook

    def is_of(self, submission: Submission) -> bool:
        """Return whether a submission has the recorded digest; True if no digest is recorded."""
        return self.digest in ("", submission.digest)


class Writer:
    """Writes scores and graded files, which no other code writes. Use it as a context manager.

    ``patience`` is how many seconds to wait for another program's lock. Every method raises
    UserError if the gradebook cannot be used; the message says what to do.
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
        """Lock a PostgreSQL database, so that no other grader can make tables or add a lab.

        The lock ends with the connection. SQLite needs no such lock, because each step waits for
        the lock of the file.
        """
        engine = engine_of(self.course.directory.db_url, self._patience)
        with engine.execution_options(isolation_level="AUTOCOMMIT").connect() as connection:
            if engine.dialect.name == "postgresql":
                connection.execute(text(f"SELECT pg_advisory_lock({ADVISORY})"))
            yield

    def knows(self, lab: LabFiles) -> bool:
        """Return whether the gradebook has the current version of the lab."""
        with self._said_clearly(), self._transaction():
            try:
                found = self.gradebook.find_assignment(lab.name).notebooks
            except MissingEntry:
                return False
            return _with_any({n.name: _cells(n) for n in found}) == _with_any(
                {name: cells_of(data, lab.config) for name, data in lab.notebooks.items()}
            )

    def has_other_cells(self, lab: LabFiles) -> bool:
        """Return whether the gradebook has other cells for the lab; nbgrader can't change them."""
        with self._said_clearly(), self._transaction():
            found = self.gradebook.find_assignment(lab.name).notebooks
            before = {n.name: {cell[1] for cell in _cells(n)} for n in found}
            now = {
                name: {cell[1] for cell in cells_of(data, lab.config)}
                for name, data in lab.notebooks.items()
            }
            return _with_any(before) != _with_any(now)

    def accept(self, anyway: bool, renew: bool) -> None:
        """Refuse a gradebook that is older than the graded files (see :mod:`.gradebook.book_age`).

        Args:
            anyway: whether to accept an older gradebook.
            renew: whether an older gradebook that is accepted becomes the current gradebook. A
                gradebook is also accepted if no graded file contradicts it.

        Raises UserError, which names the learners whose files the gradebook does not know.
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
        """Return the ids in the gradebook that are not in NFC, keyed by their NFC form."""
        with self._said_clearly(), self._engine.connect() as connection:
            return spelled(set(connection.scalars(select(Student.id))))

    def records(self, lab: str, student: str = "") -> dict[str, GradeRecord]:
        """Return the records of one learner or of all learners, keyed by student id."""
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
        """Return the rows of the table of hand-ins for a lab, keyed by student and hand-in name."""
        with self._said_clearly():
            return graded_hand_ins.hand_in_rows(self._engine, lab)

    def note(self, lab: str, student: str, tried: Sequence[HandInResult]) -> None:
        """Store the results of a learner's hand-ins. The recorded hand-in stays the same."""
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
        """Replace a submission's graded files and scores, in one transaction.

        If several hand-ins are kept, ``came`` is the name of the graded hand-in, and the time that
        counts for it. ``tried`` has the results of this hand-in and of the learner's other
        hand-ins.

        If this process is killed before the transaction ends, the record still has the old job's
        id, and the next run notices this. If the grader failed and the learner already has a grade,
        the method changes nothing and returns False.
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
        """If only a request for a regrade is new, return when the work was first handed in.

        The time is in UTC and has no zone. The recorded graded files must still be there,
        unchanged. The submission must have no files besides its notebooks, because nothing shows
        whether such files have changed.
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
        if not again:  # an unchanged submission keeps its time even if the lab changed
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
        """Set the maxima of a lab to the points that could be earned (see :mod:`.marks`)."""
        with self._said_clearly(), self._transaction() as session:
            set_maxima(session, lab, most, seen)

    def renew_penalties(self, lab: str, students: Collection[str]) -> int:
        """Update the late penalties of recorded grades to the current policy, due date and marks.

        Return how many submissions have a new penalty.
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
        """Set a submission's late penalty with the plugin of nbgrader's AssignLatePenalties."""
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
        """Run the enclosed code in one transaction, which includes commits by nbgrader's API."""
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
    """Yield the old folders that remained beside graded files when :func:`replaced` was killed."""
    return folder.parent.glob(f".{glob.escape(folder.name)}.*.old")


def put_back(folder: Path, job_id: str) -> None:
    """After an interrupted replacement, keep the graded files that match the gradebook.

    Args:
        folder: the folder of a learner's graded files; it may be missing.
        job_id: the id of the job that gave the recorded grades; empty without such grades.
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
    """Replace a submission's graded files, then run the enclosed code.

    If the replacement or the enclosed code fails, the old files are restored. If the process is
    killed during the replacement, the folder is missing, or it has either the old files or the new
    files. ``beside`` has the files that are not notebooks, keyed by relative path.
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
            old.unlink()  # not a folder


def _write_file(course: Course, path: Path, data: bytes) -> None:
    write_whole(path, data)
    path.chmod(int(str(course.autograde.permissions), 8))


def cells_of(source: bytes, config: Config) -> set[tuple]:
    """Return the ids, texts and points of a notebook's cells, as nbgrader's gradebook stores them.

    The points of cells with a check are left out. The gradebook may have lower numbers for these
    cells, because it stores the points that could be earned.
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
    """Leave out notebooks without cells, unless no notebook has cells.

    A notebook without cells is not part of the lab: somebody only tried something out in its
    folder.
    """
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
    """Set the scores of a notebook in place of earlier scores, as nbgrader's SaveAutoGrades does.

    Manual scores and extra credit stay. Every manual score is flagged for review. Every task is
    flagged too, unless this same submission was graded before (``again``). ``kept`` says whether
    the marks of the previously recorded hand-in were saved. If so, an unanswered cell loses its
    manual score.
    """
    grades = session.execute(
        select(Grade, BaseCell.name, BaseCell.type)
        .join(BaseCell, BaseCell.id == Grade.cell_id)
        .where(Grade.notebook_id == submitted.id)
        # A person may give a mark at the same time. This mark is either written before this query
        # and then flagged, or written after this transaction. SQLite locks the whole file.
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
    """Return nbgrader's step for late submissions, with its plugin; None if no step is used."""
    for step in course.autograde.autograde_preprocessors:
        step = import_item(step) if isinstance(step, str) else step
        if isinstance(step, type) and issubclass(step, AssignLatePenalties):
            made = step(config=course.config)
            made.init_plugin()
            return made
    return None
