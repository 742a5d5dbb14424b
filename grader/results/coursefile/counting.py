"""What counts: a pure function of raw marks, times, and the rules of ``course.yml``.

Nothing is stored. Whoever shows marks calls this when they are read, so a change of the file
changes what counts at once, runs nobody's code again, and can be undone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from grader.results.coursefile.schema import CourseFile, LabRules, LatePolicy, Withheld

DAY = timedelta(days=1)


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
    file: CourseFile, student: str, times: Mapping[str, datetime | None]
) -> dict[str, Lateness]:
    """Return how late each of a learner's submissions came, by lab.

    Free days are spent in the order of the labs' due dates, as far as they reach, where they save
    points.

    Args:
        times: when the learner's submissions came, by lab, with a time zone; None where that is
            not known. What is not handed in is left out.
    """
    left, found = file.late.free_days, {}
    own = {lab: file.due(lab, student) for lab in file.labs if lab in times}
    never = datetime.max.replace(tzinfo=file.zone)
    for lab, due in sorted(own.items(), key=lambda one: file.labs[one[0]].due or datetime.max):
        came, policy = times[lab], file.policy(lab)
        if came is None:
            found[lab] = Lateness(known=False)
            continue
        late = came - (due or never)
        days = math.ceil(late / DAY) if late > file.labs[lab].grace else 0
        too_late = policy.last_day is not None and days > policy.last_day
        free = min(days, left) if policy.per_day and not too_late else 0
        left -= free
        found[lab] = Lateness(days, free, 0.0 if too_late else _kept(policy, days - free))
    return found


def _kept(policy: LatePolicy, days: int) -> float:
    return max(policy.floor, 1 - policy.per_day * days) if days else 1.0
