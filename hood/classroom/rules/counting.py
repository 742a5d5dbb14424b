"""What counts: a pure function of raw marks, times, and the rules of ``course.yml``.

Nothing is stored. Whoever shows marks calls this when they are read, so a change of the file
changes what counts at once, runs nobody's code again, and can be undone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from fractions import Fraction

from hood.classroom.rules.schema import ClassRules, LabRules, LatePolicy, Withheld


@dataclass(frozen=True)
class RawMark:
    """One graded cell of a submission, as the gradebook has it.

    Attributes:
        points: what the exercise gives in its lab.
        score: what was earned; None without a mark.
        withheld: points that the grading machine could not ask for.
        waits: whether it has no mark because a person has to give it.
    """

    exercise: str
    points: float
    score: float | None
    withheld: float = 0.0
    waits: bool = False


class Role(StrEnum):
    """How an exercise counts in a class."""

    NORMAL = "normal"
    DROPPED = "dropped"
    BONUS = "bonus"


@dataclass(frozen=True)
class CountedMark:
    """One exercise after the rules, before lateness.

    Attributes:
        worth: what the exercise counts in this class; 0 for what is dropped.
        counts: the points that count; None without a mark.
        most: what they are of: less than ``worth`` where points were withheld, 0 for a bonus.
    """

    raw: RawMark
    role: Role
    worth: float
    counts: float | None
    most: float


@dataclass(frozen=True)
class Lateness:
    """How late one submission came, and what that costs.

    Attributes:
        days: days begun after the due date; 0 within the grace period.
        free: days of them that the learner's free days paid.
        kept: the share of what was earned that counts.
        known: whether the time of the submission is known; if not, it is taken to be in time.
    """

    days: int = 0
    free: int = 0
    kept: float = 1.0
    known: bool = True


@dataclass(frozen=True)
class Counted:
    """What counts of one submission.

    Attributes:
        marks: its exercises, in the lab's order.
        earned: the points that count before lateness, so far.
        most: what they are of.
        waiting: what the exercises count that a person has not marked yet.
        lost: what those count that have no mark for another reason.
    """

    marks: tuple[CountedMark, ...]
    lateness: Lateness
    earned: float
    most: float
    waiting: float = 0.0
    lost: float = 0.0

    @property
    def counts(self) -> float:
        """The points that count so far."""
        return self.earned * self.lateness.kept

    @property
    def is_final(self) -> bool:
        """Whether every exercise that counts has its mark."""
        return not (self.waiting or self.lost)


def count(rules: LabRules, marks: tuple[RawMark, ...], lateness: Lateness) -> Counted:
    """Return what counts of one submission's marks by the rules of its lab."""
    counted = tuple(_count_one(rules, mark) for mark in marks)
    missing = [one for one in counted if one.counts is None]
    return Counted(
        counted,
        lateness,
        earned=math.fsum(one.counts or 0.0 for one in counted),
        most=math.fsum(one.most for one in counted),
        waiting=math.fsum(one.worth for one in missing if one.raw.waits),
        lost=math.fsum(one.worth for one in missing if not one.raw.waits),
    )


def _count_one(rules: LabRules, mark: RawMark) -> CountedMark:
    name, score, most = mark.exercise, mark.score, mark.points
    if name in rules.drop:
        return CountedMark(mark, Role.DROPPED, 0.0, None if score is None else 0.0, 0.0)
    if rules.withheld is Withheld.EXCLUDE:
        most -= mark.withheld
    elif rules.withheld is Withheld.CREDIT and score is not None:
        score += mark.withheld
    worth = rules.points.get(name, mark.points)
    weight = worth / mark.points if mark.points else 0.0
    role = Role.BONUS if name in rules.bonus else Role.NORMAL
    counts = None if score is None else score * weight
    return CountedMark(mark, role, worth, counts, 0.0 if role is Role.BONUS else most * weight)


def lateness_of(
    file: ClassRules,
    student: str,
    times: Mapping[str, datetime | None],
    earned: Mapping[str, float],
) -> dict[str, Lateness]:
    """Return how late each of a learner's submissions came, by lab, and what that costs.

    The term's free days are spent where they save most points. What is equal in points is decided
    by the shares that they save, so days that are left go to labs that have no points yet; then
    fewer days are better; then the lab that is due first gets most. A free day that saves nothing
    is not spent: where the floor stays anyway, after the last day, or where lateness costs nothing.

    Args:
        times: when the learner's submissions came, by lab, with a time zone; None where that is
            not known. What is not handed in is left out.
        earned: the points that count before lateness, by lab; those of the labs that
            :func:`contested` names are enough. What has no mark yet adds nothing.
    """
    found = _without_free_days(file, student, times)
    spent = late = _payable(file, found)
    if _decide(file, late):
        spent = _spent(file, late, earned)
    for lab, free in spent.items():
        kept = _kept(file.policy(lab), late[lab] - free)
        found[lab] = replace(found[lab], free=free, kept=kept)
    return found


def contested(
    file: ClassRules, student: str, times: Mapping[str, datetime | None]
) -> tuple[str, ...]:
    """Return the labs whose points decide where free days are spent; none if they cover all."""
    late = _payable(file, _without_free_days(file, student, times))
    return tuple(late) if _decide(file, late) else ()


def _decide(file: ClassRules, late: Mapping[str, int]) -> bool:
    return sum(late.values()) > file.late.free_days > 0


def _without_free_days(
    file: ClassRules, student: str, times: Mapping[str, datetime | None]
) -> dict[str, Lateness]:
    found = {}
    for lab, came in times.items():
        if lab not in file.labs:
            continue
        if came is None:
            found[lab] = Lateness(known=False)
            continue
        deadline, policy = file.deadline(lab, student), file.policy(lab)
        days = deadline.days_late(came) if deadline else 0
        found[lab] = Lateness(days, kept=0.0 if policy.is_over(days) else _kept(policy, days))
    return found


def _payable(file: ClassRules, found: Mapping[str, Lateness]) -> dict[str, int]:
    """Return the days of lateness in which free days can save anything, by due date of the lab."""
    if not file.late.free_days:
        return {}
    late = {}
    for lab in sorted(found, key=lambda lab: (file.labs[lab].due or datetime.max, lab)):
        one = found[lab]
        if one.kept < 1 and not file.policy(lab).is_over(one.days):
            late[lab] = one.days
    return late


def _spent(
    file: ClassRules, days: Mapping[str, int], earned: Mapping[str, float]
) -> dict[str, int]:
    """Return how many free days each lab gets.

    After each lab the best way is kept for every number of days that are spent until then. It is
    the best of all ways, because what a lab gains depends on its own days alone.

    Args:
        days: how late the labs came, in the order of their due dates.
    """
    left = file.late.free_days
    # By days spent: what is saved as points, and as shares, and what each lab was given.
    best: dict[int, tuple[Fraction, Fraction, tuple[int, ...]]] = {0: (Fraction(), Fraction(), ())}
    for lab, late in days.items():
        points, policy = _exact(earned.get(lab, 0.0)), file.policy(lab)
        costs = _exact(_kept(policy, late))
        ways: dict[int, tuple[Fraction, Fraction, tuple[int, ...]]] = {}
        for used, (saved, shares, given) in best.items():
            for free in range(min(late, left - used) + 1):
                more = _exact(_kept(policy, late - free)) - costs
                way = (saved + points * more, shares + more, (*given, free))
                ways[used + free] = max(way, ways.get(used + free, way))
        best = ways
    _, (_, _, given) = max(best.items(), key=lambda one: (*one[1][:2], -one[0], one[1][2]))
    return dict(zip(days, given, strict=True))


def _exact(number: float) -> Fraction:
    """Return the simple fraction that a share or points stand for, so that equals are equal."""
    return Fraction(number).limit_denominator(10**6)


def _kept(policy: LatePolicy, days: int) -> float:
    return max(policy.floor, 1 - policy.per_day * days) if days else 1.0
