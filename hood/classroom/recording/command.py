"""``python -m hood grade``: grade every submission of a lab, and record it."""

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

MOST_PLACES = 10  # misplaced notebooks that are named
MOST_NAMES = 5  # learners who are named
NEW = "new"  # in place of a seed
# After so many failures in a row the lab's own source is graded, with its solutions: learners can
# make their own submissions fail, and many may do so. If it fails, too, nobody can be graded.
DOUBT = 10
OWN = "the lab's own source / "  # in place of a student id; no folder's name, for the slash
# After so many submissions the lab's own source is graded to know how long honest ones take, for
# :mod:`hood.grader.batch.turns`. To grade so few takes no time worth to be shared.
FEW = 3
# What nbgrader says where a graded lab has got other cells.
OTHER_CELLS = "Cannot add or remove cells for notebook"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(keep_workers=False)  # only nbgrader's way in does
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
    recorded = parser.add_mutually_exclusive_group()
    recorded.add_argument(
        "--regrade",
        action="store_true",
        help="grade recorded submissions again; an unchanged submission gets the same cases",
    )
    recorded.add_argument(
        "--preview",
        action="store_true",
        help="do what --regrade does and record nothing: show whose points would change, and write "
        "reports/LAB/preview.csv",
    )
    recorded.add_argument(
        "--only-new",
        action="store_true",
        help="leave recorded grades of unchanged submissions, even where another version of lab, "
        "checks or grader gave them",
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
        help="draw everybody's cases from this seed, so that another run can ask the same; "
        f"learners must not know it. `{NEW}` draws one (default: a new one, but who is graded "
        "again keeps theirs)",
    )
    parser.add_argument(
        "--accept-older-book",
        action="store_true",
        help="go on where the gradebook is older than graded files, as a copy that was put back",
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

    It returns 0 when every submission has a verdict, 1 when some have none or a lab could not be
    graded, 130 when interrupted. Raises UserError when nothing can be graded, or recorded grades
    would be redone unasked; then nothing was done.
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
            console.print("[bold]Not one learner, though it looks so:[/bold]", end=" ")
            said = ", ".join(map(ascii, alike))
            console.print(escape(f"{said} hand in under ids of their own"), highlight=False)
    if stopped:
        console.print(
            "Interrupted. Finished grades are recorded; run the same command again to continue."
        )
        return 130
    return 0 if _is_whole(args, root, outcomes) else 1


def _is_whole(args: argparse.Namespace, root: Path, outcomes: Mapping[str, RunSummary]) -> bool:
    """Return whether every lab that was asked for has a verdict for each submission."""
    whole = len(outcomes) == len({lab_named(root, word) for word in args.lab})
    return whole and not any(outcome.failures for outcome in outcomes.values())


def _offer(
    args: argparse.Namespace,
    root: Path,
    console: Console,
    outcomes: Mapping[str, RunSummary],
    stopped: bool,
) -> int:
    """Say that nothing was recorded, and how to; ask whether to, where somebody sits there."""
    console.print("Nothing was recorded: gradebook and graded files are as they were.")
    if stopped:
        return 130
    words = argparse.Namespace(**vars(args) | {"preview": False, "regrade": True})
    if console.is_terminal and sys.stdin.isatty() and outcomes:
        if console.input("Grade again now, and record it? \\[y/N] ").strip().lower() == "y":
            return run(words, root, console)
    else:
        labs = escape(shlex.join(outcomes))
        console.print(f"`python -m hood grade {labs} --regrade` records it.", highlight=False)
    return 0 if _is_whole(args, root, outcomes) else 1


def grade_labs(
    course: Course, args: argparse.Namespace, console: Console
) -> tuple[dict[str, RunSummary], bool]:
    """Grade labs and record the grades: the one way, for this command and for nbgrader's.

    Where ``args.preview`` is true, nothing is recorded, and the outcomes are previews.

    It returns the outcome of each lab that could be graded, and whether the run was interrupted.
    Raises UserError as :func:`run`.
    """
    asked = list(dict.fromkeys(lab_named(course.root, word) for word in args.lab))
    left, runs = list(asked), {}

    @contextmanager
    def refusals_of(lab: str) -> Iterator[None]:
        """Print why the enclosed code refuses a lab; raise that where no other lab is left."""
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
            "and change your files and the grades, and use the network. Each grade records this."
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
                    f"{said}. Nothing was graded. Add `--regrade` to redo them with the same "
                    "cases, or `--only-new` to leave them and grade what is new. `--preview` shows "
                    "what redoing them would change, and records nothing"
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
                    said = f"{name}: the late penalty of {changed} {many} {have} changed"
                    console.print(said, highlight=False, soft_wrap=True)
        runs = {name: runs[name] for name in left}
        total = sum(len(run_of_lab.students) for run_of_lab in runs.values())
        title = left[0] if len(left) == 1 else f"{len(left)} labs"
        with (
            RunProgress(console, title, total) as progress,
            _executor(args, total, stopped) as executor,
        ):
            # One lab after the other, so that a worker needs the answer key of only one lab at a
            # time.
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
    """Enter the lab in the gradebook, unless the gradebook has it in its current form.

    Its texts are remembered, as those of a release.
    """
    remember(
        course,
        lab.name,
        {n: released_texts(read_source(data), lab.config) for n, data in lab.notebooks.items()},
    )
    if writer.knows(lab):
        return
    with writer.alone(), console.status(f"{lab.name}: entering the lab in the gradebook"):
        if writer.knows(lab):  # another grader may have just entered it
            return
        try:
            enter_lab(course.root, lab.name, lab.notebooks if lab.left_out else None)
        except UserError as error:
            if OTHER_CELLS not in str(error):
                raise
            raise UserError(other_cells(lab.name)) from None
        if not writer.knows(lab):
            raise UserError(
                f"the gradebook does not hold {lab.name} as it is in source/, not even after "
                "`nbgrader generate_assignment`: does it have steps of its own, such as AUTOTEST? "
                "Tests that nbgrader makes can't be graded here: write them out in source/"
            )


def other_cells(lab: str) -> str:
    """Return that a graded lab can't have other exercises, and what to do."""
    return (
        f"the gradebook has grades for {lab} with other exercises, and nbgrader can't add or "
        "remove any. Put the new version under another name; or keep a copy of gradebook.db and "
        f"run `nbgrader db assignment remove {shlex.quote(lab)} --force`, which drops this lab's "
        "marks, by hand too, its comments and its due date"
    )


def _show_misplaced(course: Course, console: Console) -> None:
    """Print which notebooks nobody graded because of where they are."""
    place = course.folder("submitted", "LEARNER", "LAB")
    if place.parts[-2:] != ("LEARNER", "LAB"):  # a structure of the course's own
        return
    known = {nfc(path.name) for path in course.folder("source", ".", "LAB").parent.glob("*")}
    found = misplaced(place.parent.parent, known)
    if found:
        more = f" and {len(found) - MOST_PLACES} more" if len(found) > MOST_PLACES else ""
        console.print("[bold]Not graded, for they are not submitted/LEARNER/LAB/LAB.ipynb[/bold]")
        console.print(f"  {escape(', '.join(found[:MOST_PLACES]))}{more}", highlight=False)


def _few(said: Sequence[str]) -> str:
    more = f"; and {len(said) - MOST_NAMES} more" if len(said) > MOST_NAMES else ""
    return f"{'; '.join(said[:MOST_NAMES])}{more}"


def _executor(
    args: argparse.Namespace, total: int, stopped: Callable[[], bool]
) -> AbstractContextManager[Any]:
    """Return what runs the jobs of all labs, so that workers start only once."""
    if args.scheduler:
        from hood.grader.batch.cluster import Cluster  # Dask is an optional extra

        return Cluster(args.scheduler, stopped)
    make = lasting_pool if args.keep_workers else Pool
    return make(min(args.workers, total), stopped, sandbox=not args.unsafe_no_sandbox)


class _Run:
    """The grading run of one lab: makes its jobs and takes their results."""

    writer: Writer
    progress: RunProgress

    def __init__(self, course: Course, lab: LabFiles, args: argparse.Namespace):
        self.course, self.lab, self.args = course, lab, args
        found = submissions(course.directory, lab.name, args.students)
        passed_over = class_list(course.root).passed_over(found)
        self.students = {who: where for who, where in found.items() if who not in passed_over}
        if passed_over and not self.students:
            raise UserError(
                f"nobody of the class has handed {lab.name} in. "
                f"{passed_over_sentence(passed_over)} "
                f"Who belongs to the class stands in its roster, and not below `left` in {FILE}"
            )
        if not self.students:
            where = course.folder("submitted", "*", lab.name)
            which = f" that matches {' or '.join(args.students)}" if args.students else ""
            raise UserError(f"no submission{which} in {where}")
        self.sandbox = not args.unsafe_no_sandbox
        self.choice = Choice(course, lab)
        self.contests: dict[str, Contest] = {}  # by student, where something is graded
        self.chosen: list[Job] = []  # of hand-ins that count, and have to be graded to be recorded
        # One seed for the whole run: everyone gets the same cases, so the answer key is computed
        # once.
        drawn = args.seed in (None, NEW)
        self.seed: str = secrets.token_hex(16) if drawn else args.seed
        self.preview = Preview(course, lab.name) if args.preview else None
        self.summary = self.preview or RunSummary(lab.name)
        self.summary.passed_over = passed_over
        self.seen: set[str] = set()  # students who have a row in the gradebook
        self.recorded: set[str] = set()  # students who were graded before
        self.several: set[str] = set()  # students of whose hand-ins one was chosen
        key, own = secrets.token_hex(32), Submission(lab.notebooks)
        self.own = Job(lab, OWN, own, key, self.seed, sandbox=self.sandbox)
        # The same, to know how long it takes
        self.gauge = replace(self.own, whole=True)
        self.failures = 0  # in a row
        self.own_wanted = self.own_sent = False
        self.in_doubt: list[tuple[Job, str]] = []  # hopeless jobs, with the problem of each
        self.refused: UserError | None = None  # why nobody can be graded

    def begin(self, writer: Writer) -> None:
        """Call learners by the ids that the gradebook has."""
        self.writer, known = writer, writer.spelled()
        self.students = {known.get(name, name): found for name, found in self.students.items()}
        self.choice.rows = writer.hand_ins(self.lab.name) if self.choice.chooses else {}

    def would_be_redone(self) -> str:
        """Return in a sentence which recorded grades of unchanged submissions would be redone.

        A lab whose checks can't be used, so that nothing could redo them, is refused.
        """
        who: list[str] = []
        why: dict[str, None] = {}
        for student, before in self._in_order():
            if before is None or not before.job_id:
                continue
            if changed := changes(before.job_id, self.lab.digest_in(self.sandbox)):
                with suppress(OutOfReach):  # the run says why
                    found = self.choice.contest(student, self.students[student]).entries
                    if any(before.is_of(one.submission) for one in found):
                        who.append(printable(student))
                        why |= {self._in_words(part, student): None for part in changed}
        if not who:
            return ""
        from hood.grader.batch.grading import require_checks  # here, because few runs need it

        for source in self.lab.notebooks.values():
            require_checks(source)
        named = f" ({', '.join(who)})" if len(who) <= MOST_NAMES else ""
        grades = "1 recorded grade" if len(who) == 1 else f"{len(who)} recorded grades"
        because = f"because of a change in {' and in '.join(why)}"
        return f"{grades} of {self.lab.name}{named} would be redone, {because}"

    def _in_words(self, part: str, student: str) -> str:
        """Return one of the parts that changed; of packages, which were recorded and which not."""
        if part != PACKAGES:
            return part
        folder = self.course.folder("autograded", student, self.lab.name)
        runs = (RunRecord.read(folder / f"{name}.ipynb") for name in self.lab.notebooks)
        before = next((run.versions for run in runs if run.versions), {})
        now = self.lab.manifest.versions
        named = [f"it was {was}, now {new}" for was, new in differing(before, now) if before]
        return f"{part} ({'; '.join(named)})" if named else part

    def jobs(self, progress: RunProgress) -> Iterator[Job]:
        """Yield a job for each submission whose current state is not recorded, read just then.

        Submissions that failed the last time come last. When many fail, so does the lab's source.
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
            except OutOfReach as reason:  # whatever was recorded stays
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
        """Yield the job that grades the lab's source, if it is needed now and not yet sent."""
        if self.own_wanted and not self.own_sent:
            self.own_sent = True
            yield self.own

    def more(self) -> Iterator[Job]:
        """Yield what has to be graded after the results that were taken so far."""
        yield from self.own_source()
        jobs, self.chosen = self.chosen, []
        yield from jobs

    def anew(self) -> Iterator[Job]:
        """Yield the hand-ins that count now, since other labs of this run have their points.

        Those decide which labs a learner's free days go to.
        """
        if self.preview or self.refused or not self.choice.spends_free_days:
            return
        self.choice.renew(self.writer.hand_ins(self.lab.name))
        self.args = argparse.Namespace(**vars(self.args) | {"regrade": False})
        for student, before in self._in_order():
            if student not in self.several or student in self.summary.failures:
                continue
            with suppress(OutOfReach):  # it was read before, and what is recorded stays
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
        """Return the jobs that are needed to know which hand-in counts, and to record it."""
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
        """Make a hand-in's job, and return whether nobody knows yet what comes of it."""
        lab, submission, student = self.lab, entry.submission, contest.student
        job_id = submission.job_id(lab, self.sandbox)
        same = before is not None and before.is_of(submission)
        # A submission that has changed could answer what an earlier one has printed.
        seeds = before.seeds if before and same else self.choice.seeds(student, submission)
        seeds = {} if self.args.seed else seeds
        entry.job = Job(lab, student, submission, job_id, self.seed, seeds, self.sandbox)
        if self.args.regrade or self.preview:
            return True
        if self.choice.chooses and entry.came.name != contest.recorded:
            return self.choice.known(student, entry) is None
        if not (before and before.job_id and same):
            return True
        if changes(before.job_id, job_id):  # then args.only_new
            return False
        folder = self.course.folder("autograded", student, lab.name)
        there = {RunRecord.read(folder / f"{name}.ipynb").job_id for name in lab.notebooks}
        return {before.job_id, *there} != {job_id}

    def take(self, job: Job, result: Result) -> None:
        """Record a result. A hopeless one waits until the lab's source has been graded."""
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
                "that and run the same command again; recorded grades are kept"
            )
        else:
            self.failures, self.own_wanted, self.own_sent = 0, False, False
            while self.in_doubt:
                doubted, why = self.in_doubt.pop()
                self._settle(doubted, failed(doubted, why))

    def finish(self) -> None:
        """Read what is recorded now, and let the lab's maximum be what could be earned."""
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
        """Record a result, or, of several hand-ins of a learner, the one that counts."""
        contest = self.contests.get(job.student)
        if contest is None or result.retryable or result.hopeless:
            if contest is None or not contest.failed:
                self._record(job, result)
            if contest:  # nobody knows which one counts: what is recorded stays
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
            problem = f"it could not be recorded: {type(error).__name__}: {error}"
        if problem:
            summary.failures[job.student] = problem
        else:
            summary.graded += 1
        self.progress.count(graded=True, failed=bool(problem))


@contextmanager
def _interruptible() -> Iterator[Callable[[], bool]]:
    """Yield a function that returns whether Ctrl-C was pressed; a second Ctrl-C exits at once."""
    asked = False

    def ask(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        if asked:
            os._exit(130)
        asked = True

    if threading.current_thread() is not threading.main_thread():  # no signal arrives here
        yield lambda: False
        return
    before = signal.signal(signal.SIGINT, ask)
    try:
        yield lambda: asked
    finally:
        signal.signal(signal.SIGINT, before)
