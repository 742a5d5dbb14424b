"""Compute the points that count from only raw marks, times and the rules of ``course.yml``.

The points are not stored, but computed whenever marks are shown. So a change of ``course.yml``
takes effect at once, and can be undone. No learner's code is run again.
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
    """One graded cell of a submission, with the numbers from the gradebook.

    Attributes:
        points: the exercise's maximum in its lab.
        score: the points earned; None without a mark.
        withheld: points of checks that the grading machine could not run.
        waits: whether the cell waits for a person's mark.
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
    """An exercise's mark according to the rules, before the late penalty.

    Attributes:
        worth: the exercise's points in this class; 0 if the exercise does not count.
        counts: the points that count; None without a mark.
        most: the maximum of ``counts``. It is less than ``worth`` if points were withheld, and 0
            for a bonus.
    """

    raw: RawMark
    role: Role
    worth: float
    counts: float | None
    most: float


@dataclass(frozen=True)
class Lateness:
    """How late a submission came, and what that costs.

    Attributes:
        days: how many days after the due date have begun; 0 within the grace.
        free: how many of these days the learner's free days cover.
        kept: the share of the earned points that counts in spite of lateness.
        known: whether the submission's time is known; if not, the submission counts as in time.
    """

    days: int = 0
    free: int = 0
    kept: float = 1.0
    known: bool = True


@dataclass(frozen=True)
class Counted:
    """The points that count in one submission.

    Attributes:
        marks: the marks of the submission's exercises, in the lab's order.
        earned: the points that count so far, before the late penalty.
        most: the maximum of ``earned``.
        waiting: the points of the exercises that a person has not marked yet.
        lost: the points of the exercises that lack a mark for another reason.
    """

    marks: tuple[CountedMark, ...]
    lateness: Lateness
    earned: float
    most: float
    waiting: float = 0.0
    lost: float = 0.0

    @property
    def counts(self) -> float:
        """The points that count so far, after the late penalty."""
        return self.earned * self.lateness.kept

    @property
    def is_final(self) -> bool:
        """Whether every exercise that counts has a mark."""
        return not (self.waiting or self.lost)


def count(rules: LabRules, marks: tuple[RawMark, ...], lateness: Lateness) -> Counted:
    """Return the points that count in one submission, according to the rules of its lab."""
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
    """Return how late each of a learner's submissions came and what that costs, keyed by lab.

    The term's free days are spent where they save most points. If several distributions of the days
    save equal points, the distribution that saves the larger shares of points is taken. So spare
    days go to labs without points. If these shares are also equal, the distribution that spends
    fewer days is taken. If the numbers of days are also equal, the lab that is due first gets most
    days. A free day is not spent where it saves nothing: below the floor, after the last day, or in
    a lab where lateness costs nothing.

    Args:
        times: when the learner's submissions came, with a time zone, keyed by lab; None if not
            known. Labs that were not handed in are left out.
        earned: the points that count before the late penalty, keyed by lab. Only the labs that
            :func:`contested` returns are needed. Exercises without a mark add nothing.
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
    """Return the labs whose points decide where free days are spent.

    The result is empty if there are no free days, or if there are enough free days for all labs.
    """
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
    """Return how many days late each lab is, only for labs in which free days can save points.

    The labs are in the order of their due dates.
    """
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

    This is dynamic programming: after each lab, the best distribution is remembered for each number
    of days spent so far. The result is exact, because what a lab gains depends only on its own
    days.

    Args:
        days: how many days late each lab is, in the order of due dates.
    """
    left = file.late.free_days
    # For each number of days spent: points saved, shares saved, and the free days of each lab.
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
    """Return a float as a simple fraction, so that equal values compare as equal."""
    return Fraction(number).limit_denominator(10**6)


def _kept(policy: LatePolicy, days: int) -> float:
    return max(policy.floor, 1 - policy.per_day * days) if days else 1.0
