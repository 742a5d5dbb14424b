"""Compute the total of a term, from the rules of the class and the points that count in each lab.

As in :mod:`hood.classroom.rules.counting`, nothing is stored. Sums are exact fractions, so that the
order of additions does not affect which labs are dropped.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from fractions import Fraction

from hood.classroom.rules.counting import Counted
from hood.classroom.rules.schema import ClassRules, LabRules, TotalPolicy


class Standing(StrEnum):
    """The state of a learner's lab. Only labs in the first three states are in the total."""

    COUNTED = "counted"
    MISSING = "not handed in"  # the due date is over, so the lab counts 0
    MISSING_YET = "not handed in yet"  # the lab is late, and counts 0 until it is handed in
    NOT_DUE = "not due yet"
    NO_DUE_DATE = "not handed in, and has no due date"
    NOT_COLLECTED = "not collected yet"  # no learner's submission has been collected
    NOT_GRADED = "handed in, and not graded yet"
    NOT_MARKED = "not all marked yet"
    NOT_SHOWN = "no feedback yet"
    NOT_ASKED = "none of its checks could run"  # so the lab is not in the maximum


SETTLED = (Standing.COUNTED, Standing.MISSING, Standing.NOT_ASKED)
NOUGHT = (Standing.MISSING, Standing.MISSING_YET)


@dataclass(frozen=True)
class LabWork:
    """What is known about one learner's work on one lab.

    Attributes:
        counted: the points that count; None if nothing is graded.
        handed_in: whether the learner handed something in.
        due: the due date with its grace, with a time zone; None without a due date.
        closes: the time after which nothing counts; None if late work always counts.
        collected: whether the work of any learner on the lab has been collected. If not, this
            learner may have handed in work that is not collected yet.
    """

    counted: Counted | None = None
    handed_in: bool = False
    due: datetime | None = None
    closes: datetime | None = None
    collected: bool = True


@dataclass(frozen=True)
class LabShare:
    """What one lab contributes to a learner's total.

    Attributes:
        weight: the lab's share of the sum of all weights, 0 to 1.
        share: the share of the lab's points that the learner has, 0 to 1, or more with a bonus;
            None if the lab is not in the total.
        dropped: whether the lab is dropped as one of the learner's lowest labs.
    """

    lab: str
    standing: Standing
    weight: Fraction
    share: Fraction | None = None
    dropped: bool = False


@dataclass(frozen=True)
class Total:
    """The total of one learner, either so far or final.

    Attributes:
        labs: the labs in the order of ``course.yml``, without labs of weight 0.
        points: the total as points out of ``out_of``, not rounded; None if it includes no lab yet.
        is_final: whether the share of every lab with a weight is final.
    """

    labs: tuple[LabShare, ...]
    points: Fraction | None
    out_of: float
    decimals: int
    is_final: bool

    @property
    def rounded(self) -> float | None:
        """The points, rounded to the class's number of decimals; a half is rounded up."""
        if self.points is None:
            return None
        places = 10**self.decimals
        return math.floor(float(self.points * places) + 0.5 + 1e-9) / places


def worth_of(rules: LabRules, points: Mapping[str, float]) -> float:
    """Return a lab's maximum in a class, under the assumption that all checks can run.

    Args:
        points: the points of the lab's exercises, keyed by name.
    """
    return math.fsum(  # an exercise with 0 points in the lab can't count in the class either
        rules.points.get(name, own)
        for name, own in points.items()
        if own and name not in rules.drop and name not in rules.bonus
    )


def weights_of(file: ClassRules, worth: Mapping[str, float]) -> dict[str, Fraction]:
    """Return each lab's share of all weights, 0 to 1. The share of a lab that counts 0 points is 0.

    Args:
        worth: the points of each lab. If the file gives no weights, these points are the weights.
    """
    own = (file.total or TotalPolicy()).weights
    found = {
        lab: Fraction(own[lab] if own else worth[lab]) if worth[lab] else Fraction()
        for lab in file.labs
    }
    whole = sum(found.values())
    return {lab: weight / whole if whole else weight for lab, weight in found.items()}


def total_of(
    policy: TotalPolicy,
    weights: Mapping[str, Fraction],
    work: Mapping[str, LabWork],
    now: datetime,
    shown: Mapping[str, bool] | None = None,
) -> Total:
    """Return one learner's total.

    Args:
        weights: the weights of the labs, from :func:`weights_of`.
        work: the learner's work on the same labs.
        now: the current time, with a time zone.
        shown: whether the learner may know the marks, keyed by lab. By default, they may know all
            marks.
    """
    labs = [
        _share(lab, weight, work[lab], now, shown is None or shown[lab])
        for lab, weight in weights.items()
        if weight
    ]
    inside = [one for one in labs if one.share is not None]
    parts = [(one.weight, one.share or Fraction()) for one in inside]
    dropped = {inside[place].lab for place in lowest(parts, policy.drop_lowest)}
    kept = [part for one, part in zip(inside, parts, strict=True) if one.lab not in dropped]
    reached = _mean(kept) if kept else None
    return Total(
        tuple(replace(one, dropped=one.lab in dropped) for one in labs),
        None if reached is None else min(reached, Fraction(1)) * Fraction(policy.out_of),
        policy.out_of,
        policy.decimals,
        all(one.standing in SETTLED for one in labs),
    )


def _share(lab: str, weight: Fraction, work: LabWork, now: datetime, shown: bool) -> LabShare:
    standing = _standing(work, now)
    if not shown and (work.counted or work.handed_in):
        standing = Standing.NOT_SHOWN
    share = None
    if standing is Standing.COUNTED and work.counted:
        share = Fraction(work.counted.counts) / Fraction(work.counted.most)
    elif standing in NOUGHT:
        share = Fraction()
    return LabShare(lab, standing, weight, share)


def _standing(work: LabWork, now: datetime) -> Standing:
    if work.counted:
        if not work.counted.is_final:
            return Standing.NOT_MARKED
        return Standing.COUNTED if work.counted.most else Standing.NOT_ASKED
    if work.handed_in:
        return Standing.NOT_GRADED
    if work.due is None:
        return Standing.NO_DUE_DATE
    if now <= work.due:
        return Standing.NOT_DUE
    if not work.collected:
        return Standing.NOT_COLLECTED
    return Standing.MISSING_YET if work.closes and now <= work.closes else Standing.MISSING


def lowest(parts: Sequence[tuple[Fraction, Fraction]], number: int) -> set[int]:
    """Return the indices of the labs to drop, so that the mean of the other labs is highest.

    If the weights differ, these are not always the labs with the lowest shares. Dinkelbach's method
    for ratios repeatedly moves to a choice with a higher mean, until no choice has a higher mean.
    At least one lab is kept.

    Args:
        parts: the weight of each lab, which is above 0, and its share.
        number: how many labs to drop.
    """
    keep = max(len(parts) - number, 1)
    if number == 0 or len(parts) <= 1:
        return set()
    kept, reached = list(range(keep)), Fraction(-1)
    while (mean := _mean([parts[place] for place in kept])) > reached:
        reached = mean
        gain = [weight * (share - reached) for weight, share in parts]
        kept = sorted(range(len(parts)), key=lambda place: (-gain[place], place))[:keep]
    return set(range(len(parts))) - set(kept)


def _mean(parts: Sequence[tuple[Fraction, Fraction]]) -> Fraction:
    return sum((w * share for w, share in parts), Fraction()) / sum((w for w, _ in parts))
