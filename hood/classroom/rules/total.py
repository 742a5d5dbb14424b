"""The total of a term: a pure function of the class's rules and of what counts of each lab.

As :mod:`hood.classroom.rules.counting`, it stores nothing. Sums are exact fractions, so which
labs are dropped does not depend on the order of an addition.
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
    """How a learner stands in a lab; only the first three are in the total."""

    COUNTED = "counted"
    MISSING = "not handed in"  # and the due date is over: 0
    MISSING_YET = "not handed in yet"  # and late: 0, until it comes
    NOT_DUE = "not due yet"
    NO_DUE_DATE = "not handed in, and has no due date"
    NOT_COLLECTED = "not collected yet"  # of nobody
    NOT_GRADED = "handed in, and not graded yet"
    NOT_MARKED = "not all marked yet"
    NOT_SHOWN = "no feedback yet"
    NOT_ASKED = "nothing of it could be asked for"  # on the grading machine: out of the maximum


SETTLED = (Standing.COUNTED, Standing.MISSING, Standing.NOT_ASKED)
NOUGHT = (Standing.MISSING, Standing.MISSING_YET)


@dataclass(frozen=True)
class LabWork:
    """What is known of one learner's work on one lab.

    Attributes:
        counted: what counts of it; None where nothing is graded.
        handed_in: whether something was handed in.
        due: until when it is in time, with a time zone and the grace; None for ever.
        closes: until when it counts at all; None where it always counts.
        collected: whether anybody's work on it is here; if not, it is no sign that this one is not.
    """

    counted: Counted | None = None
    handed_in: bool = False
    due: datetime | None = None
    closes: datetime | None = None
    collected: bool = True


@dataclass(frozen=True)
class LabShare:
    """What one lab does in a learner's total.

    Attributes:
        weight: the lab's part of all weights, 0 to 1.
        share: of what the lab counts, 0 to 1, or more with a bonus; None for one that is not in.
        dropped: whether the learner's total is without it, as one of the lowest.
    """

    lab: str
    standing: Standing
    weight: Fraction
    share: Fraction | None = None
    dropped: bool = False


@dataclass(frozen=True)
class Total:
    """The total of one learner, so far or of the term.

    Attributes:
        labs: in the file's order, without those that weigh nothing.
        points: out of ``out_of``, not rounded; None where no lab is in yet.
        is_final: whether every lab that weighs something is settled.
    """

    labs: tuple[LabShare, ...]
    points: Fraction | None
    out_of: float
    decimals: int
    is_final: bool

    @property
    def rounded(self) -> float | None:
        """The points with the class's number of decimals; a half goes up."""
        if self.points is None:
            return None
        places = 10**self.decimals
        return math.floor(float(self.points * places) + 0.5 + 1e-9) / places


def worth_of(rules: LabRules, points: Mapping[str, float]) -> float:
    """Return what a lab counts in a class: the maximum of somebody of whom all could be asked.

    Args:
        points: of the lab's exercises, by name.
    """
    return math.fsum(  # what gives nothing in the lab can't count here, either
        rules.points.get(name, own)
        for name, own in points.items()
        if own and name not in rules.drop and name not in rules.bonus
    )


def weights_of(file: ClassRules, worth: Mapping[str, float]) -> dict[str, Fraction]:
    """Return each lab's part of the total, 0 to 1; 0 for a lab that counts nothing.

    Args:
        worth: what each lab counts, in points. It is the weight where the file gives none.
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
        weights: of the labs, as :func:`weights_of` gives them.
        work: of the same labs.
        now: with a time zone.
        shown: whether the learner may know the marks of a lab; by default of all.
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
    """Return which labs to drop, by place, so that the mean of the others is as high as it can be.

    With different weights these are not always the labs with the lowest shares. The mean is raised
    (Dinkelbach's method for a ratio) until no choice has a higher one. One lab always stays.

    Args:
        parts: the weight, above 0, and the share of each lab.
        number: how many to drop.
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
