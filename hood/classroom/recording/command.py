"""``python -m hood grade``: grade every submission of a lab, and record the results."""

from __future__ import annotations

import argparse
import os
import secrets
import shlex
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from dataclasses import replace
from datetime import UTC
from pathlib import Path
from types import FrameType
from typing import Any

from rich.console import Console
from rich.markup import escape

from hood import UserError
from hood.classroom.gradebook.graded import Results
from hood.classroom.gradebook.graded_hand_ins import HandInResult
from hood.classroom.gradebook.run_lock import lock_grades
from hood.classroom.hand_ins.store import HandIns
from hood.classroom.recording.contest import Choice, Contest, Entry
from hood.classroom.recording.preview import Preview
from hood.classroom.recording.summary import RunProgress, RunSummary
from hood.classroom.recording.writer import GradeRecord, Writer
from hood.classroom.results.rename import require_no_renaming
from hood.classroom.rules.class_list import class_list, passed_over_sentence
from hood.classroom.rules.reading import FILE, read_course_file
from hood.classroom.rules.sentences import no_time_sentence
from hood.grader.batch.intake import read_lab
from hood.grader.batch.job import (
    PACKAGES,
    Job,
    LabFiles,
    Result,
    Submission,
    changes,
    failed,
    read_source,
)
from hood.grader.batch.pool import Pool, lasting_pool
from hood.grader.course import Course, enter_lab, open_course, refuse_half_restored, submissions
from hood.grader.run_record import RunRecord, typed_seed
from hood.grader.submission.files import misplaced
from hood.grader.submission.names import id_problem, look_alikes, nfc, printable, shown_id
from hood.grader.submission.notebook import OutOfReach
from hood.grader.submission.rebuild import released_texts
from hood.grader.submission.released import remember
from hood.manifest import differing
from hood.phase_paths import ROOT, lab_named

MOST_PLACES = 10  # misplaced notebooks in a message
MOST_NAMES = 5  # learners in a message
NEW = "new"  # the option's value in place of a seed
# After this many failures in a row the lab's source, with its solutions, is graded too, because
# many learners may make their own submissions fail. If the source also fails, nobody can be graded.
DOUBT = 10
OWN = "the lab's own source / "  # in place of a student id; a slash can't be in a folder's name
# After this many submissions the lab's source is graded, to measure how long honest submissions
# take, for :mod:`hood.grader.batch.turns`. Fewer submissions take too little time to need turns.
FEW = 3
# nbgrader's error for a graded lab with other cells.
OTHER_CELLS = "Cannot add or remove cells for notebook"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(keep_workers=False)  # only nbgrader's autograde keeps workers
    words = (
        "labs of this course, such as 01_tensors or 01; if a lab is not built from phases/, the "
        "name of its folder in source/"
    )
    parser.add_argument("lab", nargs="+", help=words)
    parser.add_argument(
        "--students",
        nargs="+",
        default=[],
        metavar="PATTERN",
        help="grade only learners whose id matches a pattern, such as ana or a* (default: all)",
    )
    parser.add_argument(
        "--workers",
        type=_positive,
        default=os.cpu_count() or 1,
        metavar="N",
        help="the number of processes on this machine (default: one for each processor core)",
    )
    parser.add_argument(
        "--scheduler",
        metavar="ADDRESS",
        help="grade on the Dask cluster at an address such as tcp://host:8786",
    )
    recorded = parser.add_mutually_exclusive_group()
    recorded.add_argument(
        "--regrade",
        action="store_true",
        help="grade recorded submissions again; an unchanged submission gets the same cases",
    )
    recorded.add_argument(
        "--preview",
        action="store_true",
        help="grade in the same way as --regrade, but record nothing: show which points would "
        "change, and write reports/LAB/preview.csv",
    )
    recorded.add_argument(
        "--only-new",
        action="store_true",
        help="keep recorded grades of unchanged submissions, even if these grades come from "
        "another version of the lab, the checks or the grader",
    )
    parser.add_argument(
        "--cell-seconds",
        type=_positive,
        default=0,
        metavar="N",
        help="the upper limit, in seconds, for each cell with a learner's code (the lab's own "
        "limit may be lower)",
    )
    parser.add_argument(
        "--seed",
        type=typed_seed,
        help="make everybody's cases from this seed, so that another run can use the same cases; "
        f"learners must not know the seed. `{NEW}` makes a new seed for everybody (default: a new "
        "seed for learners who are graded for the first time, and the old seed for all others)",
    )
    parser.add_argument(
        "--accept-older-book",
        action="store_true",
        help="go on although the gradebook is older than the graded files (for example, because it "
        "is a restored copy)",
    )
    parser.add_argument(
        "--unsafe-no-sandbox",
        action="store_true",
        help="run learners' code without a sandbox, with all rights of this user",
    )


def _positive(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number, 1 or more, got {text!r}")
    return int(text)


def run(args: argparse.Namespace, root: Path = ROOT, console: Console | None = None) -> int:
    """Grade the labs.

    Return 0 if every submission has a verdict, and 130 if the run was interrupted. Return 1 if a
    submission has no verdict, or if a lab could not be graded. Raises UserError if nothing can be
    graded, or if recorded grades would be redone and no option allows that. If UserError is raised,
    nothing was done.
    """
    console = console or Console()
    course = open_course(root)
    if args.cell_seconds:
        course.config.Execute.max_cell_seconds = args.cell_seconds
    outcomes, stopped = grade_labs(course, args, console)
    for outcome in outcomes.values():
        outcome.show(console)
    if args.preview:
        return _offer(args, root, console, outcomes, stopped)
    if not args.students:
        _show_misplaced(course, console)
        for alike in look_alikes(submissions(course.directory, "*")):
            console.print(
                "[bold]These ids look alike, but belong to different learners:[/bold]", end=" "
            )
            said = ", ".join(map(ascii, alike))
            console.print(escape(said), highlight=False)
    if stopped:
        console.print(
            "Interrupted. Finished grades are recorded; run the same command again to continue."
        )
        return 130
    return 0 if _is_whole(args, root, outcomes) else 1


def _is_whole(args: argparse.Namespace, root: Path, outcomes: Mapping[str, RunSummary]) -> bool:
    """Return whether every requested lab has a verdict for each submission."""
    whole = len(outcomes) == len({lab_named(root, word) for word in args.lab})
    return whole and not any(outcome.failures for outcome in outcomes.values())


def _offer(
    args: argparse.Namespace,
    root: Path,
    console: Console,
    outcomes: Mapping[str, RunSummary],
    stopped: bool,
) -> int:
    """Print that nothing was recorded, and how to grade again; in a terminal, offer to do this."""
    console.print("Nothing was recorded: the gradebook and the graded files have not changed.")
    if stopped:
        return 130
    words = argparse.Namespace(**vars(args) | {"preview": False, "regrade": True})
    if console.is_terminal and sys.stdin.isatty() and outcomes:
        answer = console.input("Grade again now, and record the new grades? \\[y/N] ")
        if answer.strip().lower() == "y":
            return run(words, root, console)
    else:
        labs = escape(shlex.join(outcomes))
        command = f"python -m hood grade {labs} --regrade"
        console.print(f"`{command}` records the new grades.", highlight=False)
    return 0 if _is_whole(args, root, outcomes) else 1


def grade_labs(
    course: Course, args: argparse.Namespace, console: Console
) -> tuple[dict[str, RunSummary], bool]:
    """Grade labs and record the grades, for ``python -m hood grade`` and ``nbgrader autograde``.

    If ``args.preview`` is true, nothing is recorded, and each outcome is a preview.

    Return the outcome of each lab that could be graded, and whether the run was interrupted. Raises
    UserError like :func:`run`.
    """
    asked = list(dict.fromkeys(lab_named(course.root, word) for word in args.lab))
    left, runs = list(asked), {}

    @contextmanager
    def refusals_of(lab: str) -> Iterator[None]:
        """Print why the enclosed code refuses a lab, or raise the error if no other lab is left."""
        try:
            yield
        except UserError as error:
            left.remove(lab)
            if len(asked) == 1:
                raise
            if not left:
                raise UserError(f"{lab} is not graded: {error}") from error
            console.print(f"[bold red]{escape(lab)} is not graded:[/bold red]", end=" ")
            console.print(escape(str(error)), highlight=False)

    require_no_renaming(course.root)
    HandIns(course).finish()
    for name in asked:
        with refusals_of(name):
            runs[name] = _Run(course, read_lab(course, name), args)
            for why in runs[name].lab.left_out:
                console.print(escape(f"{name}: {why}"), highlight=False, soft_wrap=True)
    if args.unsafe_no_sandbox:
        console.print(
            "[bold red]No sandbox:[/bold red] learners' code runs with your rights. It can read "
            "and change your files and the grades, and use the network. The record of each grade "
            "says so."
        )
    with lock_grades(course), _interruptible() as stopped, Writer(course) as writer:
        refuse_half_restored(course.root)
        writer.accept(args.accept_older_book, renew=not args.preview)
        for run_of_lab in runs.values():
            run_of_lab.begin(writer)
        if not (args.regrade or args.only_new or args.preview):
            redone = []
            for name in list(left):
                with refusals_of(name):
                    redone.append(runs[name].would_be_redone())
            if said := "; ".join(filter(None, redone)):
                raise UserError(
                    f"{said}. Nothing was graded. Add `--regrade` to grade these submissions again "
                    "with the same cases, or add `--only-new` to keep their grades and grade only "
                    "new submissions. `--preview` shows which points would change, and records "
                    "nothing"
                )
        for name in list(left):
            with refusals_of(name):
                if args.preview:
                    if writer.has_other_cells(runs[name].lab):
                        raise UserError(other_cells(name))
                    continue
                try:
                    _enter(course, writer, runs[name].lab, console)
                except UserError:
                    if not stopped():  # Ctrl-C ends nbgrader, too
                        raise
                if changed := writer.renew_penalties(name, runs[name].students):
                    many, have = ("submission", "has") if changed == 1 else ("submissions", "have")
                    said = f"{name}: {changed} {many} {have} a new late penalty"
                    console.print(said, highlight=False, soft_wrap=True)
        runs = {name: runs[name] for name in left}
        total = sum(len(run_of_lab.students) for run_of_lab in runs.values())
        title = left[0] if len(left) == 1 else f"{len(left)} labs"
        with (
            RunProgress(console, title, total) as progress,
            _executor(args, total, stopped) as executor,
        ):
            # Labs are graded one after the other, so that a worker has the answer key of only one
            # lab.
            jobs: Iterator[Job] = (job for one in runs.values() for job in one.jobs(progress))
            rounds = len(runs)
            while not stopped():
                with closing(executor.run(jobs)) as results:
                    for job, result in results:
                        runs[job.lab.name].take(job, result)
                more = [job for one in runs.values() for job in one.more()]
                if not more and (rounds := rounds - 1):
                    more = [job for one in runs.values() for job in one.anew()]
                if not more:
                    break
                jobs = iter(more)
        for name, run_of_lab in runs.items():
            if refused := run_of_lab.refused:
                with refusals_of(name):
                    raise refused
            else:
                run_of_lab.finish()
        return {name: runs[name].summary for name in left}, stopped()


def _enter(course: Course, writer: Writer, lab: LabFiles, console: Console) -> None:
    """Add the lab to the gradebook, unless the gradebook already has its current version.

    The lab's texts are stored too. The release of a lab also stores its texts.
    """
    remember(
        course,
        lab.name,
        {n: released_texts(read_source(data), lab.config) for n, data in lab.notebooks.items()},
    )
    if writer.knows(lab):
        return
    with writer.alone(), console.status(f"{lab.name}: adding the lab to the gradebook"):
        if writer.knows(lab):  # another grader may have just added the lab
            return
        try:
            enter_lab(course.root, lab.name, lab.notebooks if lab.left_out else None)
        except UserError as error:
            if OTHER_CELLS not in str(error):
                raise
            raise UserError(other_cells(lab.name)) from None
        if not writer.knows(lab):
            raise UserError(
                f"even after `nbgrader generate_assignment`, the gradebook's {lab.name} differs "
                "from source/. Does `generate_assignment` have extra steps, such as AUTOTEST? "
                "Tests that nbgrader generates can't be graded here: write them out in source/"
            )


def other_cells(lab: str) -> str:
    """Return the error for a graded lab whose exercises differ from the gradebook's exercises."""
    return (
        f"the gradebook has grades for {lab} with other exercises, and nbgrader can't add or "
        "remove exercises. Give the new version another name. Or make a copy of gradebook.db and "
        f"run `nbgrader db assignment remove {shlex.quote(lab)} --force`, which deletes this lab's "
        "marks (also marks given by hand), comments and due date"
    )


def _show_misplaced(course: Course, console: Console) -> None:
    """Print which notebooks were not graded because they are in the wrong place."""
    place = course.folder("submitted", "LEARNER", "LAB")
    if place.parts[-2:] != ("LEARNER", "LAB"):  # the course's own structure
        return
    known = {nfc(path.name) for path in course.folder("source", ".", "LAB").parent.glob("*")}
    found = misplaced(place.parent.parent, known)
    if found:
        more = f" and {len(found) - MOST_PLACES} more" if len(found) > MOST_PLACES else ""
        console.print(
            "[bold]Not graded, because they are not at submitted/LEARNER/LAB/LAB.ipynb[/bold]"
        )
        console.print(f"  {escape(', '.join(found[:MOST_PLACES]))}{more}", highlight=False)


def _few(said: Sequence[str]) -> str:
    more = f"; and {len(said) - MOST_NAMES} more" if len(said) > MOST_NAMES else ""
    return f"{'; '.join(said[:MOST_NAMES])}{more}"


def _executor(
    args: argparse.Namespace, total: int, stopped: Callable[[], bool]
) -> AbstractContextManager[Any]:
    """Return one executor for the jobs of all labs, so that its workers start only once."""
    if args.scheduler:
        from hood.grader.batch.cluster import Cluster  # Dask is an optional extra

        return Cluster(args.scheduler, stopped)
    make = lasting_pool if args.keep_workers else Pool
    return make(min(args.workers, total), stopped, sandbox=not args.unsafe_no_sandbox)


class _Run:
    """Makes the jobs of one lab's grading run, and takes their results."""

    writer: Writer
    progress: RunProgress

    def __init__(self, course: Course, lab: LabFiles, args: argparse.Namespace):
        self.course, self.lab, self.args = course, lab, args
        found = submissions(course.directory, lab.name, args.students)
        passed_over = class_list(course.root).passed_over(found)
        self.students = {who: where for who, where in found.items() if who not in passed_over}
        if passed_over and not self.students:
            raise UserError(
                f"nobody in the class has handed in {lab.name}. "
                f"{passed_over_sentence(passed_over)} "
                f"The class is everybody in the roster, except learners in `left` in {FILE}"
            )
        if not self.students:
            where = course.folder("submitted", "*", lab.name)
            which = f" that matches {' or '.join(args.students)}" if args.students else ""
            raise UserError(f"no submission{which} in {where}")
        self.sandbox = not args.unsafe_no_sandbox
        self.choice = Choice(course, lab)
        self.contests: dict[str, Contest] = {}  # by student, if one of their hand-ins is graded
        self.chosen: list[Job] = []  # jobs of hand-ins that count and must be graded to be recorded
        # One seed for the whole run: all learners get the same cases, so the answer key is computed
        # once.
        drawn = args.seed in (None, NEW)
        self.seed: str = secrets.token_hex(16) if drawn else args.seed
        self.preview = Preview(course, lab.name) if args.preview else None
        self.summary = self.preview or RunSummary(lab.name)
        self.summary.passed_over = passed_over
        self.seen: set[str] = set()  # students with a row in the gradebook
        self.recorded: set[str] = set()  # students who were graded before
        self.several: set[str] = set()  # students with several hand-ins
        key, own = secrets.token_hex(32), Submission(lab.notebooks)
        self.own = Job(lab, OWN, own, key, self.seed, sandbox=self.sandbox)
        # the same job without turns, to measure how long it takes
        self.gauge = replace(self.own, whole=True)
        self.failures = 0  # in a row
        self.own_wanted = self.own_sent = False
        self.in_doubt: list[tuple[Job, str]] = []  # hopeless jobs, with the problem of each
        self.refused: UserError | None = None  # why nobody can be graded

    def begin(self, writer: Writer) -> None:
        """Spell the learners' ids as the gradebook does."""
        self.writer, known = writer, writer.spelled()
        self.students = {known.get(name, name): found for name, found in self.students.items()}
        self.choice.rows = writer.hand_ins(self.lab.name) if self.choice.chooses else {}

    def would_be_redone(self) -> str:
        """Return a clause that says which grades of unchanged submissions this run would redo.

        A lab with unusable checks is refused, because its grades could not be redone.
        """
        who: list[str] = []
        why: dict[str, None] = {}
        for student, before in self._in_order():
            if before is None or not before.job_id:
                continue
            if changed := changes(before.job_id, self.lab.digest_in(self.sandbox)):
                with suppress(OutOfReach):  # the run reports it
                    found = self.choice.contest(student, self.students[student]).entries
                    if any(before.is_of(one.submission) for one in found):
                        who.append(printable(student))
                        why |= {self._in_words(part, student): None for part in changed}
        if not who:
            return ""
        from hood.grader.batch.grading import require_checks  # here: few runs need it

        for source in self.lab.notebooks.values():
            require_checks(source)
        named = f" ({', '.join(who)})" if len(who) <= MOST_NAMES else ""
        grades = "1 recorded grade" if len(who) == 1 else f"{len(who)} recorded grades"
        because = f"because of a change in {' and in '.join(why)}"
        return f"{grades} of {self.lab.name}{named} would be redone, {because}"

    def _in_words(self, part: str, student: str) -> str:
        """Describe a changed part; for packages, add the old and the new version."""
        if part != PACKAGES:
            return part
        folder = self.course.folder("autograded", student, self.lab.name)
        runs = (RunRecord.read(folder / f"{name}.ipynb") for name in self.lab.notebooks)
        before = next((run.versions for run in runs if run.versions), {})
        now = self.lab.manifest.versions
        named = [f"it was {was}, now {new}" for was, new in differing(before, now) if before]
        return f"{part} ({'; '.join(named)})" if named else part

    def jobs(self, progress: RunProgress) -> Iterator[Job]:
        """Yield a job for each submission whose current state has no recorded grade.

        Submissions that failed in the previous run come last. If many submissions fail, the lab's
        source is graded too.
        """
        self.progress, sent = progress, 0
        for student, before in self._in_order():
            if self.refused:
                return
            if problem := id_problem(student):
                self._fail(printable(student), f"{problem}: rename the student's folder")
                continue
            try:
                jobs = self._jobs(student, before)
            except OutOfReach as reason:  # the recorded grade stays
                self._fail(student, str(reason))
                continue
            if not jobs:
                self._skip(student)
            if sent <= FEW < sent + len(jobs) and self.sandbox:
                yield self.gauge
            sent += len(jobs)
            yield from jobs
            yield from self.own_source()

    def own_source(self) -> Iterator[Job]:
        """Yield the job that grades the lab's source as soon as it is needed, but only one time."""
        if self.own_wanted and not self.own_sent:
            self.own_sent = True
            yield self.own

    def more(self) -> Iterator[Job]:
        """Yield further jobs, if the present results require them."""
        yield from self.own_source()
        jobs, self.chosen = self.chosen, []
        yield from jobs

    def anew(self) -> Iterator[Job]:
        """Yield jobs for hand-ins that now count, because this run has graded other labs.

        The points in other labs decide where a learner's free days are spent.
        """
        if self.preview or self.refused or not self.choice.spends_free_days:
            return
        self.choice.renew(self.writer.hand_ins(self.lab.name))
        self.args = argparse.Namespace(**vars(self.args) | {"regrade": False})
        for student, before in self._in_order():
            if student not in self.several or student in self.summary.failures:
                continue
            with suppress(OutOfReach):  # the hand-in was read before, and the recorded grade stays
                for job in self._jobs(student, before):
                    self.progress.expect_more()
                    self.summary.graded -= student in self.seen
                    self.recorded.discard(student)
                    yield job

    def _in_order(self) -> list[tuple[str, GradeRecord | None]]:
        records = self.writer.records(self.lab.name)
        found = [(student, records.get(student)) for student in self.students]
        return sorted(found, key=lambda one: one[1] is not None and not one[1].job_id)

    def _fail(self, student: str, problem: str) -> None:
        self.summary.failures[student] = problem
        self.progress.count(graded=False, failed=True)

    def _skip(self, student: str) -> None:
        self.recorded.add(student)
        self.progress.count(graded=False)

    def _jobs(self, student: str, before: GradeRecord | None) -> list[Job]:
        """Return the jobs that decide which hand-in counts, or the job whose grade is recorded."""
        contest = self.choice.contest(student, self.students[student])
        entries = contest.entries
        if self.preview:
            if before and before.job_id:
                entries = [one for one in entries if before.is_of(one.submission)][:1]
            else:
                entries = []
            if not entries:
                self.preview.leave_out(before)
                return []
        contest.recorded = self.choice.recorded(contest, before)
        wanted = [one for one in entries if self._is_wanted(contest, one, before)]
        if self.choice.chooses and not self.preview:
            self.several |= {student} if len(entries) > 1 else set()
            if not wanted:
                entry = self.choice.decide(contest, {}).entry
                self._say(contest, entry)
                if entry.came.name == contest.recorded:
                    if seen := self.choice.unseen(contest):
                        self.writer.note(self.lab.name, student, seen)
                    return []
                contest.chosen, wanted = entry, [entry]
            contest.wanted = wanted
            self.contests[student] = contest
        return [one.job for one in wanted if one.job]

    def _is_wanted(self, contest: Contest, entry: Entry, before: GradeRecord | None) -> bool:
        """Make the job for a hand-in, and return whether the job's result is still unknown."""
        lab, submission, student = self.lab, entry.submission, contest.student
        job_id = submission.job_id(lab, self.sandbox)
        same = before is not None and before.is_of(submission)
        # A changed submission could contain answers that an earlier submission printed.
        seeds = before.seeds if before and same else self.choice.seeds(student, submission)
        seeds = {} if self.args.seed else seeds
        entry.job = Job(lab, student, submission, job_id, self.seed, seeds, self.sandbox)
        if self.args.regrade or self.preview:
            return True
        if self.choice.chooses and entry.came.name != contest.recorded:
            return self.choice.known(student, entry) is None
        if not (before and before.job_id and same):
            return True
        if changes(before.job_id, job_id):  # this happens only with args.only_new
            return False
        folder = self.course.folder("autograded", student, lab.name)
        there = {RunRecord.read(folder / f"{name}.ipynb").job_id for name in lab.notebooks}
        return {before.job_id, *there} != {job_id}

    def take(self, job: Job, result: Result) -> None:
        """Record a result, but let a hopeless result wait.

        A result is hopeless if every submission would probably fail in the same way. It waits until
        the lab's own source has been graded.
        """
        if job is self.gauge:
            return
        if job is not self.own:
            failed_now = result.retryable or result.hopeless
            self.failures = self.failures + 1 if failed_now else 0
            self.own_wanted |= result.hopeless or self.failures >= DOUBT
            if result.hopeless:
                self.in_doubt.append((job, result.problem))
            elif result.judged or not self.refused:
                if ended := [said for notebook in result.notebooks for said in notebook.ended]:
                    self.summary.ended[printable(job.student)] = _few(ended)
                self._settle(job, result)
        elif result.hopeless:
            self.refused = UserError(result.problem)
        elif result.retryable:
            self.refused = UserError(
                f"the lab's own source could not be graded either: {result.problem}. Fix "
                "this problem and run the same command again; recorded grades are kept"
            )
        else:
            self.failures, self.own_wanted, self.own_sent = 0, False, False
            while self.in_doubt:
                doubted, why = self.in_doubt.pop()
                self._settle(doubted, failed(doubted, why))

    def finish(self) -> None:
        """Read the recorded grades for the summary, and set the maxima of the lab."""
        if self.preview:
            self.preview.write()
            return
        summary, results = self.summary, Results(self.course, self.lab.name)
        seen = self.seen | self.recorded
        summary.skipped = len(self.recorded)
        most: dict[tuple[str, str], float] = {}
        for one in results.read(only=seen):
            summary.to_mark += len(one.waiting)
            for name, verdict in one.verdicts.items():
                notebook, _, cell = name.rpartition("/")
                key = notebook or results.notebooks[0], cell
                if verdict.parts:
                    most[key] = max(verdict.most, most.get(key, 0.0))
            why = "; ".join(dict.fromkeys(map(str, one.reasons())))
            if why and one.student not in summary.failures:
                summary.people[one.student] = why
        self.writer.set_maxima(self.lab.name, most, {*seen, *results.passed_over})
        rules, untimed = read_course_file(self.course.root), len(results.untimed)
        summary.no_time = no_time_sentence(rules, self.lab.name, untimed, len(results.students))
        summary.late = {who: late for who, late in results.late.items() if late and who in seen}
        without = set(map(nfc, summary.failures))
        summary.not_entered = [w for w in map(shown_id, results.not_entered) if w not in without]

    def _settle(self, job: Job, result: Result) -> None:
        """Record a result. Of several hand-ins of a learner, record only the one that counts."""
        contest = self.contests.get(job.student)
        if contest is None or result.retryable or result.hopeless:
            if contest is None or not contest.failed:
                self._record(job, result)
            if contest:  # it is not known which hand-in counts, so the recorded grade stays
                contest.failed = True
            return
        contest.of(job).result = result
        wanted = [contest.chosen] if contest.chosen else contest.wanted
        if contest.failed or any(one.result is None for one in wanted):
            return
        earlier = {
            one.came.name: time.replace(tzinfo=UTC)
            for one in contest.entries
            if one.job and one.result and one.came.name != contest.recorded
            if (time := self.writer.earlier_time(one.job, one.result))
        }
        decision = self.choice.decide(contest, earlier)
        entry = contest.chosen or decision.entry
        self._say(contest, entry)
        if entry.job and entry.result:
            self._record(entry.job, entry.result, entry, decision.tried)
            return
        self.writer.note(self.lab.name, job.student, decision.tried)
        if entry.came.name == contest.recorded:
            self._skip(job.student)
        elif entry.job:
            contest.chosen = entry
            self.chosen.append(entry.job)

    def _say(self, contest: Contest, entry: Entry) -> None:
        if said := self.choice.sentence(contest, entry):
            self.summary.earlier[contest.student] = said

    def _record(
        self,
        job: Job,
        result: Result,
        entry: Entry | None = None,
        tried: Sequence[HandInResult] = (),
    ) -> None:
        summary = self.summary
        summary.unsafe = summary.unsafe or not job.sandbox
        problem = result.problem if result.retryable else ""
        try:
            if self.preview:
                recorded = self.preview.compare(job, result)
            else:
                came = entry.came if entry else None
                recorded = self.writer.record(job, result, came, tried)
            if recorded:
                self.seen.add(job.student)
            else:
                problem = f"{result.problem}; the earlier grade stays"
        except UserError:
            raise
        except Exception as error:
            problem = f"the grade could not be recorded: {type(error).__name__}: {error}"
        if problem:
            summary.failures[job.student] = problem
        else:
            summary.graded += 1
        self.progress.count(graded=True, failed=bool(problem))


@contextmanager
def _interruptible() -> Iterator[Callable[[], bool]]:
    """Yield a function that returns whether Ctrl-C was pressed; a second Ctrl-C ends the run."""
    asked = False

    def ask(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        if asked:
            os._exit(130)
        asked = True

    if threading.current_thread() is not threading.main_thread():  # no signals in other threads
        yield lambda: False
        return
    before = signal.signal(signal.SIGINT, ask)
    try:
        yield lambda: asked
    finally:
        signal.signal(signal.SIGINT, before)
