"""``python -m grader grade``: grade every submission of a lab, and record it."""

from __future__ import annotations

import argparse
import os
import secrets
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Protocol

from rich.console import Console
from rich.markup import escape

from grader import UserError
from grader.batch.canary import Canary
from grader.batch.intake import read_lab, read_submission_of
from grader.batch.job import Job, LabFiles, Result, failed
from grader.batch.lock import only_one
from grader.batch.outcome import RunOutcome
from grader.batch.pool import Pool
from grader.batch.progress import RunProgress
from grader.batch.writer import Recorded, Writer
from grader.course import Course, enter_lab, open_course
from grader.phase_paths import ROOT, lab_named
from grader.results.gradebook import Results
from grader.run_record import typed_seed
from grader.submission.files import printable
from grader.submission.misplaced import misplaced
from grader.submission.student_ids import id_problem

MOST_PLACES = 10  # misplaced notebooks that are named
# What nbgrader says where a graded lab has got other cells.
OTHER_CELLS = "Cannot add or remove cells for notebook"


class Executor(AbstractContextManager, Protocol):
    """Runs jobs: :class:`Pool` or :class:`grader.batch.cluster.Cluster`."""

    def run(self, jobs: Iterator[Job]) -> Iterator[tuple[Job, Result]]:
        """Yield results as they arrive. Jobs are taken one by one, when there is capacity."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``python -m grader grade``."""
    words = "labs, such as 01_tensors or 01; of another origin, by folder name in source/"
    parser.add_argument("lab", nargs="+", help=words)
    parser.add_argument(
        "--students", nargs="+", default=[], metavar="PATTERN", help="only these student ids"
    )
    parser.add_argument(
        "--workers",
        type=_positive,
        default=os.cpu_count() or 1,
        metavar="N",
        help="processes on this machine (default: one for each processor core)",
    )
    parser.add_argument(
        "--scheduler", metavar="ADDRESS", help="grade on a Dask cluster: tcp://host:8786"
    )
    parser.add_argument(
        "--regrade",
        action="store_true",
        help="grade recorded submissions again; an unchanged submission gets the same cases",
    )
    parser.add_argument(
        "--cell-seconds",
        type=_positive,
        default=0,
        metavar="N",
        help="longest time for a cell with a learner's code, even if the lab allows more",
    )
    parser.add_argument(
        "--seed",
        type=typed_seed,
        help="draw the cases from this seed, so that another run can ask the same; "
        "learners must not know it (default: new in each run)",
    )
    parser.add_argument(
        "--unsafe-no-sandbox",
        action="store_true",
        help="run learners' code unprotected, with all rights of this user",
    )


def _positive(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number, 1 or more")
    return int(text)


def run(args: argparse.Namespace, root: Path = ROOT, console: Console | None = None) -> int:
    """Grade the labs.

    Returns:
        0 when every submission has a verdict, 1 when some have none, 130 when interrupted.

    Raises:
        UserError: when there are no submissions, or grading is impossible.
    """
    console = console or Console()
    course = open_course(root)
    if args.cell_seconds:
        course.config.Execute.max_cell_seconds = args.cell_seconds
    names = dict.fromkeys(lab_named(root, word) for word in args.lab)
    labs = {name: read_lab(course, name) for name in names}
    students = {name: course.students("submitted", name, args.students) for name in labs}
    for name, found in students.items():
        if not found:
            where = course.folder("submitted", "*", name)
            which = f" that matches {' or '.join(args.students)}" if args.students else ""
            raise UserError(f"no submission{which} in {where}")
    if args.unsafe_no_sandbox:
        console.print(
            "[bold red]No sandbox:[/bold red] learners' code runs with your rights. It can read "
            "and change your files and the grades, and use the network. Each grade records this."
        )
    outcomes = {name: RunOutcome(name) for name in labs}
    with only_one(course), _interruptible() as stopped, Writer(course) as writer:
        for lab in labs.values():
            try:
                _enter(course, writer, lab, console)
            except UserError:
                if stopped():  # Ctrl-C ended nbgrader, too
                    break
                raise
        total = sum(map(len, students.values()))
        title = next(iter(labs)) if len(labs) == 1 else f"{len(labs)} labs"
        with (
            RunProgress(console, title, total) as progress,
            _executor(args, total, stopped) as executor,
        ):
            runs = {
                name: _Run(course, writer, lab, students[name], args, outcomes[name], progress)
                for name, lab in labs.items()
            }
            # One lab after the other, so that a worker needs the answer key of only one lab at a
            # time.
            jobs: Iterator[Job] = (job for run_of_lab in runs.values() for job in run_of_lab.jobs())
            while not stopped():
                for job, result in executor.run(jobs):
                    runs[job.lab.name].take(job, result)
                left = [job for run_of_lab in runs.values() if (job := run_of_lab.canary.job())]
                if not left:
                    break
                jobs = iter(left)
        for run_of_lab in runs.values():
            run_of_lab.finish()
    for outcome in outcomes.values():
        outcome.show(console)
    if not args.students:
        _show_misplaced(course, console)
    if stopped():
        console.print(
            "Interrupted. Finished grades are recorded; run the same command again to continue."
        )
        return 130
    return 0 if all(outcome.complete for outcome in outcomes.values()) else 1


def _enter(course: Course, writer: Writer, lab: LabFiles, console: Console) -> None:
    """Enter the lab in the gradebook, unless the gradebook has it in its current form."""
    if writer.knows(lab):
        return
    with console.status(f"{lab.name}: entering the lab in the gradebook"):
        try:
            enter_lab(course.root, lab.name)
        except UserError as error:
            if OTHER_CELLS not in str(error):
                raise
            raise UserError(
                f"the gradebook has grades for {lab.name} with other exercises, and nbgrader can't "
                "add or remove any. Put the new version under another name; or keep a copy of "
                f"gradebook.db and run `nbgrader db assignment remove {lab.name} --force`, which "
                "drops this lab's marks, by hand too, its comments and its due date"
            ) from None
    if not writer.knows(lab):
        raise UserError(
            f"the gradebook does not hold {lab.name} as it is in source/, not even after "
            "`nbgrader generate_assignment`: does it have steps of its own, such as AUTOTEST? "
            "Then grade it with `nbgrader autograde`"
        )


def _show_misplaced(course: Course, console: Console) -> None:
    """Print which notebooks nobody graded because of where they are."""
    place = course.folder("submitted", "LEARNER", "LAB")
    if place.parts[-2:] != ("LEARNER", "LAB"):  # a structure of the course's own
        return
    known = {path.name for path in course.folder("source", ".", "LAB").parent.glob("*")}
    found = misplaced(place.parent.parent, known)
    if found:
        more = f" and {len(found) - MOST_PLACES} more" if len(found) > MOST_PLACES else ""
        console.print("[bold]Not graded, for they are not submitted/LEARNER/LAB/LAB.ipynb[/bold]")
        console.print(f"  {escape(', '.join(found[:MOST_PLACES]))}{more}", highlight=False)


def _executor(args: argparse.Namespace, total: int, stopped: Callable[[], bool]) -> Executor:
    """Return the executor for all labs. Its workers start only once."""
    if args.scheduler:
        from grader.batch.cluster import Cluster  # Dask is an optional extra

        return Cluster(args.scheduler, stopped)
    return Pool(min(args.workers, total), stopped, sandbox=not args.unsafe_no_sandbox)


@dataclass
class _Run:
    """The grading run of one lab: makes its jobs and takes their results."""

    course: Course
    writer: Writer
    lab: LabFiles
    students: list[str]
    args: argparse.Namespace
    outcome: RunOutcome
    progress: RunProgress

    def __post_init__(self) -> None:
        # One seed for the whole run: everyone gets the same cases, so the answer key is computed
        # once.
        self.seed = self.args.seed or secrets.token_hex(16)
        self.canary = Canary(self.lab, not self.args.unsafe_no_sandbox, self.seed)
        self.in_doubt: list[tuple[Job, str]] = []  # hopeless jobs, with the problem of each
        self.recorded: list[str] = []  # students who were graded before

    def jobs(self) -> Iterator[Job]:
        """Yield a job for each submission whose current state is not recorded, read just then.

        Submissions that failed the last time come last. When many fail, the canary's job is
        inserted.
        """
        for student, before in self._in_order():
            job = self._job(student, before)
            if job is None:
                self.recorded.append(student)
                self.progress.count(graded=False)
            else:
                yield job
            if (honest := self.canary.job()) is not None:
                yield honest

    def _in_order(self) -> Iterator[tuple[str, Recorded | None]]:
        failed_before = []
        for student in self.students:
            if problem := id_problem(student):
                self.outcome.fail(printable(student), f"{problem}: rename the student's folder")
                self.progress.count(graded=False, failed=True)
                continue
            before = self.writer.recorded(self.lab.name, student)
            if before and not before.job_id:
                failed_before.append((student, before))
            else:
                yield student, before
        yield from failed_before

    def _job(self, student: str, before: Recorded | None) -> Job | None:
        lab, files, sandbox = self.lab, self.writer.files, not self.args.unsafe_no_sandbox
        submission = read_submission_of(self.course, lab, student)
        job_id = submission.job_id(lab, sandbox)
        if before and before.job_id == job_id and not self.args.regrade:
            names = list(lab.notebooks)
            if files.stamp(student, lab.name, names) == before.stamp or all(
                files.run_record(student, lab.name, name).key == job_id for name in names
            ):
                return None
        graded_before = False
        if before:
            seeds = before.seeds if before.digest == submission.digest else {}
        else:
            seeds = files.seeds_of_plain_grading(student, lab.name, submission)
            graded_before = len(seeds) == len(lab.notebooks)
        return Job(
            lab=lab,
            student=student,
            submission=submission,
            id=job_id,
            seed=self.seed,
            seeds=seeds if self.args.regrade else {},
            graded_before=graded_before,
            sandbox=sandbox,
        )

    def take(self, job: Job, result: Result) -> None:
        """Record a result in the gradebook. A hopeless one waits until the canary has been graded.

        Raises:
            UserError: when grading cannot continue.
        """
        if self.canary.is_mine(job):
            self.canary.judge(result)
            while self.in_doubt:
                doubted, why = self.in_doubt.pop()
                self._record(doubted, failed(doubted, why))
            return
        self.canary.note(result)
        if result.hopeless:
            self.in_doubt.append((job, result.problem))
        else:
            self._record(job, result)

    def finish(self) -> None:
        """Read what was recorded before, and let the lab's maximum be what could be earned."""
        outcome, results = self.outcome, Results(self.course, self.lab.name)
        for one in results.read(only=self.recorded):
            outcome.add_recorded(one, results.notebooks)
        self.writer.set_maxima(self.lab.name, outcome.most, outcome.seen)
        outcome.late = {who: late for who, late in results.late.items() if who in outcome.seen}
        outcome.to_mark = [m for m in results.missing if m.waits and m.student in outcome.seen]
        without = {student for student, _ in outcome.failures}
        outcome.not_entered = [who for who in results.not_entered if who not in without]

    def _record(self, job: Job, result: Result) -> None:
        without = result.retryable
        try:
            self.writer.record(job, result)
        except UserError:
            raise
        except Exception as error:
            without = True
            problem = f"it could not be recorded: {type(error).__name__}: {error}"
            self.outcome.fail(job.student, problem)
        else:
            self.outcome.add(job, result)
        self.progress.count(graded=True, failed=without)


@contextmanager
def _interruptible() -> Iterator[Callable[[], bool]]:
    """Yield a function that returns whether Ctrl-C was pressed; a second Ctrl-C exits at once."""
    asked = False

    def ask(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        if asked:
            os._exit(130)
        asked = True

    before = signal.signal(signal.SIGINT, ask)
    try:
        yield lambda: asked
    finally:
        signal.signal(signal.SIGINT, before)
