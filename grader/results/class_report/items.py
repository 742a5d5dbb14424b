"""Item analysis: how well an exercise discriminates between learners, by classical test theory."""

from __future__ import annotations

import math
import statistics
from array import array
from dataclasses import dataclass

FEWEST = 10  # with fewer learners an exercise is not judged
EASY, HARD = 0.95, 0.20  # limits of the mean share of points earned
WEAK = 0.20  # correlations below are weak


class Pairs:
    """The points of each learner in the exercise, and in all others."""

    def __init__(self) -> None:
        self._item, self._rest = array("d"), array("d")

    def add(self, item: float, rest: float) -> None:
        """Add one learner; points that differ by rounding alone become equal."""
        self._item.append(round(item, 9))
        self._rest.append(round(rest, 9))

    @property
    def n(self) -> int:
        """The number of learners."""
        return len(self._item)

    @property
    def mean(self) -> float:
        """Mean points earned in the exercise; 0 without learners."""
        return statistics.fmean(self._item) if self.n else 0.0

    @property
    def correlation(self) -> float | None:
        """The corrected item-total correlation: Pearson's r of the exercise with the *rest*.

        With the total it would be too high, because the exercise is part of the total: S.
        Henrysson, "Correction of item-total correlations in item analysis", Psychometrika 28
        (1963), 211-218. None when all learners have the same points in the exercise, or in the
        rest.
        """
        if len(set(self._item)) < 2 or len(set(self._rest)) < 2:
            return None
        return statistics.correlation(self._item, self._rest)


@dataclass(frozen=True)
class Judgement:
    """The judgement of one exercise.

    Attributes:
        learners: number of learners that it is based on: those who tried at least one exercise.
        share: mean share of its points that was earned, 0 to 1; None without learners.
        r: the corrected item-total correlation; None when there is none.
        low: lower end of its 95 % interval.
        high: upper end of its 95 % interval.
        words: the judgement in words.
        suspect: whether somebody should look at the exercise.
    """

    learners: int
    share: float | None
    r: float | None
    low: float | None
    high: float | None
    words: str
    suspect: bool = False


def judge_item(pairs: Pairs, points: float) -> Judgement:
    """Judge an exercise by the results of the learners who tried the lab.

    R. L. Ebel and D. A. Frisbie, "Essentials of Educational Measurement" (5th ed., 1991), give a
    rule of thumb for the discrimination index: revise an item under 0.2. Here it is applied to the
    correlation. In a class of 30 an r of 0.3 may be anything from -0.1 to 0.6, so an exercise is
    called poor only when its whole interval (Fisher's z) lies under 0.2.
    """
    n, r = pairs.n, pairs.correlation
    share = pairs.mean / points if n and points else None
    if n < FEWEST or share is None:
        return Judgement(n, share, None, None, None, f"too few learners ({n}) to say")
    low, high = interval(r, n) if r is not None else (None, None)
    found = (n, share, r, low, high)
    if share >= EASY:
        return Judgement(*found, "nearly everyone solved it; good to begin with")
    if share <= HARD:
        why = "hardly anyone solved it: is it asked clearly, is it taught?"
        return Judgement(*found, why, True)
    if r is None:
        return Judgement(*found, "everyone earned the same, here or in the rest")
    assert low is not None
    assert high is not None
    if high < WEAK:
        why = "those who do well elsewhere do no better here: is there a trap in it?"
        return Judgement(*found, why, True)
    if low > 0 and r >= WEAK:
        return Judgement(*found, "goes with the rest")
    leaning = "a weak link" if r < WEAK else "a link"
    return Judgement(*found, f"{leaning} with the rest; too few learners to be sure")


def interval(r: float, n: int) -> tuple[float, float]:
    """Return the approximate 95 % interval of a correlation of n > 3 pairs, by Fisher's z."""
    if abs(r) >= 1.0:
        return r, r
    z, half = math.atanh(r), 1.96 / math.sqrt(n - 3)
    return math.tanh(z - half), math.tanh(z + half)
