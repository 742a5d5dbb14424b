"""Choose which of a learner's hand-ins is recorded, if several may count.

Each hand-in is graded once. The hand-in with the most points after the late penalty is recorded.
The results of the other hand-ins stay in the gradebook's database, so that the next run does not
grade them again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from hood import UserError
from hood.classroom.gradebook.graded import Graded, Results
from hood.classroom.gradebook.graded_hand_ins import HandInResult, HandInRow, withheld_in
from hood.classroom.gradebook.regrade import may_ask
from hood.classroom.hand_ins.store import HandIn, HandIns
from hood.classroom.recording.writer import GradeRecord
from hood.classroom.results.counted_marks import CountedMarks, raw_marks, times_by_student
from hood.classroom.rules.reading import exercises_of, read_course_file
from hood.classroom.rules.schema import ClassRules, HandInRule
from hood.classroom.rules.sentences import moment
from hood.classroom.rules.standing import HandInTime, Times, choosing, in_zone, may_count
from hood.grader.batch.intake import read_submission_of
from hood.grader.batch.job import Job, LabFiles, Result, Submission, changes
from hood.grader.course import Course
from hood.grader.submission.notebook import OutOfReach

ATTEMPTS = 3  # to read a learner's hand-ins while the service stores new hand-ins


@dataclass
class Entry:
    """A hand-in that may count.

    Attributes:
        came: the hand-in's name, and the time that counts for it. For a hand-in that only asks for
            a regrade, this may be the time of an earlier hand-in.
        asks: whether the hand-in is included only because it may contain a request for a regrade.
        job: the job that grades the hand-in; None until the job is made.
        result: the result of the job; None if the job has not run, or if an earlier run has the
            result.
    """

    came: HandInTime
    submission: Submission
    asks: bool = False
    job: Job | None = None
    result: Result | None = None


@dataclass
class Contest:
    """The hand-ins of one learner; one of these hand-ins is chosen, and then recorded.

    Attributes:
        times: when each kept hand-in came, keyed by its name; the newest is last.
        recorded: the name of the recorded hand-in; empty if there is none.
        wanted: the hand-ins that this run grades to find out which hand-in counts.
        failed: whether no decision is possible, because a hand-in could not be graded.
        chosen: the hand-in that was chosen, if it must be graded again before it is recorded.
    """

    student: str
    entries: list[Entry]
    times: Mapping[str, datetime | None]
    recorded: str = ""
    failed: bool = False
    chosen: Entry | None = None
    wanted: Sequence[Entry] = ()

    def of(self, job: Job) -> Entry:
        """Return the entry that a job grades."""
        return next(entry for entry in self.entries if entry.job and entry.job.id == job.id)


@dataclass
class Decision:
    """The decision on a learner's hand-ins.

    Attributes:
        entry: the hand-in that counts.
        tried: new rows for the table of hand-ins. Each hand-in that is seen for the first time has
            a row, and each graded hand-in has a row with its result.
    """

    entry: Entry
    tried: tuple[HandInResult, ...] = ()


class Choice:
    """Finds the hand-ins of a lab, and compares their points.

    Raises:
        UserError: when ``course.yml`` has an error, or kept hand-ins can't be read.
    """

    def __init__(self, course: Course, lab: LabFiles):
        self.course, self.lab = course, lab
        self.file: ClassRules | None = read_course_file(course.root)
        self.store = HandIns(course)
        self.chooses = choosing(self.file, lab.name)
        rule = self.file.hand_in_rule(lab.name) if self.file and self.chooses else None
        self._last = rule is HandInRule.LAST
        self.rows: dict[str, dict[str, HandInRow]] = {}  # by learner and name
        self._results: Results | None = None
        self._points: dict[str, float] = {}

    @property
    def spends_free_days(self) -> bool:
        """Whether the choice depends on the points of other labs, because there are free days."""
        return self.chooses and self.file is not None and self.file.late.free_days > 0

    def renew(self, rows: dict[str, dict[str, HandInRow]]) -> None:
        """Read the recorded grades again; ``rows`` is the current table of hand-ins."""
        self.rows, self._results = rows, None

    def contest(self, student: str, folders: Sequence[Path]) -> Contest:
        """Read a learner's hand-ins that may count, and return them, the latest first.

        If the newest hand-in counts (for example, without a due date), only ``submitted/`` is read.

        Raises:
            OutOfReach: when a hand-in can't be read for a reason that the learner did not cause.
        """
        if not self.chooses or len(folders) != 1:
            with self.store.at_rest():
                found = read_submission_of(self.course, self.lab, folders)
            return _alone(student, found)
        try:
            for _ in range(ATTEMPTS):
                with suppress(FileNotFoundError):  # a newer hand-in replaced a kept hand-in
                    return self._contest(student, folders)
            raise OutOfReach("the learner handed in again during the grading: grade the lab again")
        except PermissionError as error:
            raise UserError(
                f"{error.filename} can't be read by this account, so it is not known which "
                f"hand-in counts: give this account the right to read {self.store.place}"
            ) from error

    def _contest(self, student: str, folders: Sequence[Path]) -> Contest:
        lab = self.lab.name
        lying = self.store.keep(self.file, student, lab, folders[0])
        kept = {one.name: one for one in (*self.store.of(student, lab), lying) if one}
        if lying is None and (self._last or not kept):
            return _alone(student, read_submission_of(self.course, self.lab, folders))
        known = self.rows.get(student, {})
        came = [replace(one.came, at=_of(known, one)) for one in kept.values()]
        every = [one for one in came if not (self._last and lying) or one.name == lying.name]
        chosen = may_count(self.file, lab, student, every, self.others(student))
        entries = [Entry(one, self._read(kept[one.name], lying, folders)) for one in chosen]
        last = max(came, key=lambda one: one.name)
        asked = known.get(last.name)
        if last not in chosen and not (asked and asked.tried.key):
            submission = self._read(kept[last.name], lying, folders)
            if any(isinstance(n, bytes) and may_ask(n) for n in submission.notebooks.values()):
                entries.insert(0, Entry(last, submission, asks=True))
        return Contest(student, entries, {name: one.at for name, one in kept.items()})

    def _read(self, one: HandIn, lying: HandIn | None, folders: Sequence[Path]) -> Submission:
        with self.store.at_rest():
            if lying and one.name == lying.name:
                found = read_submission_of(self.course, self.lab, folders)
                if _time(found.timestamp) == one.at:
                    return found
            with one.folder(self.lab.name) as folder:
                return read_submission_of(self.course, self.lab, [folder])

    def others(self, student: str) -> Times:
        """Return when a learner's submissions to the other labs came; empty without free days."""
        if not (self.file and self.file.late.free_days):
            return {}
        labs = [lab for lab in self.file.labs if lab != self.lab.name]
        return times_by_student(self.course, labs, student).get(student, {})

    def recorded(self, contest: Contest, before: GradeRecord | None) -> str:
        """Return the name of the recorded hand-in; empty if it is not known."""
        if not (before and before.job_id):
            return ""
        entries, student = contest.entries, contest.student
        standing = [name for name, row in self.rows.get(student, {}).items() if row.stands]
        if standing:
            same = [entry for entry in entries if entry.came.name in standing]
            return standing[0] if not same or before.is_of(same[0].submission) else ""
        own = [entry for entry in entries if before.is_of(entry.submission)]
        then = times_by_student(self.course, [self.lab.name], student).get(student, {})
        exact = [one for one in own if one.came.at == then.get(self.lab.name)]
        return next((one.came.name for one in exact or own), "")

    def known(self, student: str, entry: Entry) -> HandInRow | None:
        """Return an earlier result for the same files, lab and grader, if one exists."""
        found = self.rows.get(student, {})
        first = [found[entry.came.name]] if entry.came.name in found else []
        for row in (*first, *found.values()):
            same = row.tried.digest == entry.submission.digest and row.tried.key
            if same and entry.job and not changes(row.tried.key, entry.job.id):
                return row
        return None

    def seeds(self, student: str, submission: Submission) -> Mapping[str, str]:
        """Return the seeds of an earlier grading of the same files, or an empty mapping."""
        rows = self.rows.get(student, {}).values()
        same = (row.tried.seeds for row in rows if row.tried.digest == submission.digest)
        return next(same, {})

    def decide(self, contest: Contest, earlier: Mapping[str, datetime]) -> Decision:
        """Decide which hand-in counts: the hand-in with the most points after the late penalty.

        If several hand-ins have equal points, the hand-in that uses the fewest free days counts. If
        the numbers of free days are also equal, the latest hand-in counts.

        Args:
            earlier: the times that count for hand-ins that only ask for a regrade, keyed by the
                names of the hand-ins.
        """
        assert self.file is not None
        student, others = contest.student, self.others(contest.student)
        for entry in contest.entries:
            if entry.came.name in earlier:
                entry.came = replace(entry.came, at=earlier[entry.came.name])
        by_name = {entry.came.name: entry for entry in contest.entries}
        every = [entry.came for entry in contest.entries]
        left = [
            by_name[one.name] for one in may_count(self.file, self.lab.name, student, every, others)
        ]
        found = (_tried(entry) for entry in contest.entries if entry.result and entry.job)
        tried = (*self.unseen(contest), *found)
        if len(left) == 1:
            return Decision(left[0], tried)
        marks = CountedMarks(self.course, self.file, student)
        best = max(left, key=lambda one: self._rank(contest, one, marks))
        return Decision(best, tried)

    def unseen(self, contest: Contest) -> tuple[HandInResult, ...]:
        """Return rows for all hand-ins that no earlier run has seen, even for ungraded hand-ins."""
        seen = self.rows.get(contest.student, {})
        return tuple(HandInResult(name) for name in contest.times if name not in seen)

    def _rank(self, contest: Contest, one: Entry, known: CountedMarks) -> tuple[float, int, str]:
        scores, withheld = self._marks(contest, one)
        marks = raw_marks(scores, self._points, withheld)
        counted = known.would_count(self.lab.name, contest.student, one.came.at, marks)
        return round(counted.counts, 9), -counted.lateness.free, one.came.name

    def _marks(self, contest: Contest, one: Entry) -> tuple[Graded, Mapping[str, float]]:
        """Return the marks and withheld points that a hand-in would have if it were recorded."""
        if self._results is None:
            self._results = Results(self.course, self.lab.name)
            self._points = exercises_of(self.course.root, self.lab.name) or {}
        results, student = self._results, contest.student
        base = next(results.read(only=[student], runs=False), None)
        if base and one.result is None and one.came.name == contest.recorded:
            return base, results.withheld(student)
        base = base or Graded(student, student, {}, {cell.name: cell for cell in results.cells})
        row = HandInRow(_tried(one), stands=False) if one.result else self.known(student, one)
        assert row is not None
        own = self.rows.get(student, {}).get(one.came.name)
        return replace(row, by_person=own.by_person if own else {}).marks(base)

    def sentence(self, contest: Contest, entry: Entry) -> str:
        """Return a sentence that explains the recorded hand-in; empty if no explanation is needed.

        An explanation is needed if a newer hand-in exists, or if an earlier run knew this hand-in
        but recorded another hand-in.
        """
        chosen, before = entry.came.name, contest.recorded
        newest = max(contest.times, default=chosen)
        is_new = chosen not in self.rows.get(contest.student, {})
        if chosen == newest and (is_new or before in ("", chosen)):
            return ""
        if before in ("", chosen):
            return f"{self._named(contest, chosen)} counts"
        than = f", in place of {self._named(contest, before)}" if before in contest.times else ""
        return f"{self._named(contest, chosen)} counts now{than}"

    def _named(self, contest: Contest, name: str) -> str:
        at = in_zone(self.file, contest.times.get(name))
        return f"the hand-in of {moment(at)}" if at else "a hand-in without a known time"


def _alone(student: str, found: Submission) -> Contest:
    return Contest(student, [Entry(HandInTime("", _time(found.timestamp)), found)], {})


def _time(iso: str | None) -> datetime | None:
    return datetime.fromisoformat(iso).replace(tzinfo=UTC) if iso else None


def _of(known: Mapping[str, HandInRow], one: HandIn) -> datetime | None:
    """Return the time that counts for a hand-in.

    If the hand-in only asks for a regrade, the time of the earlier hand-in counts.
    """
    row = known.get(one.name)
    return _time(row.tried.came) if row and row.tried.came else one.at


def _tried(one: Entry) -> HandInResult:
    assert one.job is not None
    assert one.result is not None
    notebooks = one.result.notebooks
    at = one.came.at
    return HandInResult(
        name=one.came.name,
        key=one.job.id,
        digest=one.submission.digest,
        seeds=dict(one.job.seeds) | {n.name: n.seed for n in notebooks if n.seed},
        scores={n.name: dict(n.scores) for n in notebooks},
        blank={n.name: [c for c, blank in n.unanswered.items() if blank] for n in notebooks},
        withheld={n.name: withheld_in(n.data) for n in notebooks},
        came=at.replace(tzinfo=None).isoformat() if at else "",
    )
