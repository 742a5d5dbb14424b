"""Compute the points that count from the marks and times in the gradebook."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from nbgrader.api import Assignment, SubmittedAssignment
from sqlalchemy import select
from sqlalchemy.orm import Session

from hood.classroom.gradebook.database import engine_of
from hood.classroom.gradebook.graded import Graded, Results, withheld_by
from hood.classroom.gradebook.graded_hand_ins import HandInRow, hand_in_rows
from hood.classroom.hand_ins.store import HandIns
from hood.classroom.rules.counting import Counted, Lateness, RawMark, contested, count, lateness_of
from hood.classroom.rules.reading import exercises_of, read_course_file
from hood.classroom.rules.schema import ClassRules, Withheld
from hood.classroom.rules.sentences import dates_sentence, policy_sentences
from hood.classroom.rules.standing import (
    KnownHandIn,
    choosing,
    hand_ins_sentence,
    in_zone,
    lateness_at,
)
from hood.grader.course import Course, open_course


class CountedMarks:
    """Computes the points that count in a course folder that has a ``course.yml``.

    Args:
        student: if given, only the submissions of this learner are read.
    """

    def __init__(self, course: Course, file: ClassRules, student: str = ""):
        self.course, self.file = course, file
        self._times = times_by_student(course, list(file.labs), student)
        self._points: dict[str, dict[str, float]] = {}  # of the exercises, by lab
        self._earned = self._earned_elsewhere()
        self._rows: dict[str, dict[str, dict[str, HandInRow]]] = {}  # of hand-ins, by lab

    def of(self, lab: str, one: Graded, withheld: Mapping[str, float] | None = None) -> Counted:
        """Return the points that count in one graded submission of a lab that ``course.yml`` names.

        Args:
            withheld: the points of checks that could not run, keyed by cell. By default, they are
                taken from the submission's verdicts.
        """
        known = withheld_by(one.verdicts) if withheld is None else withheld
        counted = self._in_time(lab, one, known)
        earned = self._earned.get(one.student, {}) | {lab: counted.earned}
        every = lateness_of(self.file, one.student, self._times.get(one.student, {}), earned)
        return replace(counted, lateness=every.get(lab, Lateness(known=False)))

    def _in_time(self, lab: str, one: Graded, withheld: Mapping[str, float]) -> Counted:
        if lab not in self._points:
            self._points[lab] = exercises_of(self.course.root, lab) or {}
        marks = raw_marks(one, self._points[lab], withheld)
        return count(self.file.labs[lab], marks, Lateness())

    def _earned_elsewhere(self) -> dict[str, dict[str, float]]:
        """Return the points that decide where free days are spent, keyed by learner and lab."""
        who: dict[str, list[str]] = {}
        for student, times in self._times.items():
            for lab in contested(self.file, student, times):
                who.setdefault(lab, []).append(student)
        found: dict[str, dict[str, float]] = {}
        for lab, students in who.items():
            for student, earned in self._earned_in(lab, students):
                found.setdefault(student, {})[lab] = earned
        return found

    def _earned_in(self, lab: str, students: list[str]) -> Iterator[tuple[str, float]]:
        results, credit = Results(self.course, lab), self.file.labs[lab].withheld
        for one in results.read(only=students, runs=False):
            # Withheld points change the earned points only if the class gives these points to
            # learners. In any other class, no file is read.
            gives = credit is Withheld.CREDIT
            withheld = results.withheld(one.student) if gives else {}
            yield one.student, self._in_time(lab, one, withheld).earned

    def would_count(
        self, lab: str, student: str, at: datetime | None, marks: tuple[RawMark, ...]
    ) -> Counted:
        """Return the points that would count if this hand-in replaced the recorded hand-in.

        The learner's free days are spent over all labs as if this hand-in were recorded.

        Args:
            at: when the hand-in came, with a time zone; None if not known.
        """
        counted = count(self.file.labs[lab], marks, Lateness())
        times = {**self._times.get(student, {}), lab: at}
        earned = self._earned.setdefault(student, {})
        for other in contested(self.file, student, times):
            if other != lab and other not in earned:
                earned.update((other, points) for _, points in self._earned_in(other, [student]))
        every = lateness_of(self.file, student, times, {**earned, lab: counted.earned})
        return replace(counted, lateness=every[lab])

    def came(self, lab: str, student: str) -> datetime | None:
        """Return when a learner's submission of a lab came, in UTC; None if not known."""
        return self._times.get(student, {}).get(lab)

    def hand_ins(self, lab: str, one: Graded) -> list[KnownHandIn]:
        """Return a learner's hand-ins to a lab, with the cost of their lateness, the oldest first.

        Args:
            one: the submission in the gradebook; it is one of the hand-ins.
        """
        if not choosing(self.file, lab):
            return []
        try:
            kept = HandIns(self.course).of(one.student, lab)
        except PermissionError:  # `grade` reports this error
            return []
        if len(kept) < 2:
            return []
        if lab not in self._rows:
            self._rows[lab] = hand_in_rows(engine_of(self.course.directory.db_url), lab)
        known, times = self._rows[lab].get(one.student, {}), self._times.get(one.student, {})
        names = [each.name for each in kept]
        same = [each.name for each in kept if each.at == times.get(lab)]
        stands = next((name for name in names if name in known and known[name].stands), "")
        stands = stands or next(iter(same), names[-1])
        others = {other: at for other, at in times.items() if other != lab}
        found = []
        for each in kept:
            row = known.get(each.name)
            counts_from = datetime.fromisoformat(row.tried.came) if row and row.tried.came else None
            at = counts_from.replace(tzinfo=UTC) if counts_from else each.at
            points = None
            if each.name == stands:
                late = self.of(lab, one).lateness
            elif row and row.tried.key:
                marks = raw_marks(*self._as_recorded(lab, row, one))
                would = self.would_count(lab, one.student, at, marks)
                late, points = would.lateness, would.counts
            else:
                late = lateness_at(self.file, lab, one.student, at, others)
            seen = row is not None or not known or each.name < max(known)
            when = in_zone(self.file, each.at)
            found.append(KnownHandIn(when, late, each.name == stands, points, seen))
        return found

    def _as_recorded(
        self, lab: str, row: HandInRow, one: Graded
    ) -> tuple[Graded, Mapping[str, float], Mapping[str, float]]:
        graded, withheld = row.marks(one)
        return graded, exercises_of(self.course.root, lab) or {}, withheld

    def read(
        self, lab: str, only: Collection[str] | None = None
    ) -> Iterator[tuple[Graded, Counted]]:
        """Yield a lab's graded submissions, from all or some students, and the points that count.

        Raises:
            UserError: when there is no gradebook, or when the lab is not in the gradebook.
        """
        for one in Results(self.course, lab).read(only=only):
            yield one, self.of(lab, one)


def raw_marks(
    one: Graded, points: Mapping[str, float], withheld: Mapping[str, float]
) -> tuple[RawMark, ...]:
    """Return the marks of a submission in the gradebook, with the withheld points.

    Args:
        points: the points of the exercises in the lab's source. The gradebook may have fewer
            points, because it leaves out points that nobody could earn. The notebook can't be
            trusted if it was graded without a sandbox.
    """
    found = []
    for name, cell in one.cells.items():
        score, worth = one.scores.get(name), points.get(name, cell.points)
        waits = score is None and name not in one.lost
        found.append(RawMark(name, worth, score, min(withheld.get(name, 0.0), worth), waits))
    return tuple(found)


def times_by_student(
    course: Course, labs: list[str], student: str = ""
) -> dict[str, dict[str, datetime | None]]:
    """Return when submissions came, in UTC, keyed by learner and lab; None if not known."""
    times: dict[str, dict[str, datetime | None]] = {}
    query = (
        select(SubmittedAssignment.student_id, Assignment.name, SubmittedAssignment.timestamp)
        .join(Assignment, Assignment.id == SubmittedAssignment.assignment_id)
        .where(Assignment.name.in_(labs))
    )
    if student:
        query = query.where(SubmittedAssignment.student_id == student)
    with Session(engine_of(course.directory.db_url)) as session:
        for who, lab, came in session.execute(query):
            times.setdefault(who, {})[lab] = came and came.replace(tzinfo=UTC)
    return times


def counts_of(
    course: Course, lab: str, only: Collection[str] | None = None
) -> dict[str, Counted] | None:
    """Return the points that count in a lab, keyed by student; None if the lab has no rules.

    Raises:
        UserError: when ``course.yml`` has an error, or the lab is not in the gradebook.
    """
    file = read_course_file(course.root)
    if file is None or lab not in file.labs:
        return None
    counted, results = CountedMarks(course, file), Results(course, lab)
    return {
        one.student: counted.of(lab, one, results.withheld(one.student))
        for one in results.read(only=only, runs=False)
    }


@dataclass(frozen=True)
class FeedbackRules:
    """The class's rules as one learner's feedback on a lab shows them.

    Attributes:
        course: the title of the course; empty if it has none.
        counted: the points that count in the submission; None without rules.
        dates: a sentence on the due date, and on when the learner handed in.
        policy: sentences on what lateness costs in this lab.
        shows: whether the feedback shows ``misconceptions``, ``examples`` and ``rubrics``.
        hand_ins: a sentence on which of several hand-ins counts; empty if there was only one
            hand-in.
    """

    course: str = ""
    counted: Counted | None = None
    dates: str = ""
    policy: tuple[str, ...] = ()
    shows: Mapping[str, bool] = field(
        default_factory=lambda: {"misconceptions": True, "examples": True, "rubrics": False}
    )
    hand_ins: str = ""


def feedback_rules(root: Path, lab: str, student: str, now: datetime) -> FeedbackRules:
    """Return the rules for a learner's feedback, or the defaults if there is no ``course.yml``.

    Args:
        now: the current time, with a time zone.

    Raises:
        UserError: when the file has an error.
    """
    file = read_course_file(root)
    if file is None or lab not in file.labs:
        return FeedbackRules(file.course.title if file else "")
    marks = CountedMarks(open_course(root), file, student)
    one, counted = next(marks.read(lab, [student]), (None, None))
    found = marks.hand_ins(lab, one) if one else []
    hand_ins = hand_ins_sentence(found, file.hand_in_rule(lab))
    shows = {what: file.shows(what, lab, student, now) for what in FeedbackRules().shows}
    dates = dates_sentence(file.deadline(lab, student), marks.came(lab, student), file.zone)
    policy = tuple(policy_sentences(file, lab, counted.lateness)) if counted else ()
    return FeedbackRules(file.course.title, counted, dates, policy, shows, hand_ins)
