"""Compute the page's figures: the bars' positions, a sentence as title, and a text alternative.

The template draws them as SVG; its colours follow the reader's light or dark theme.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from grader.results.class_report.tally import ExerciseTally

# The kinds of outcome, with the word for each on the page.
LABELS = {"full": "all", "some": "some", "nothing": "nothing", "untried": "not tried"}
WIDTH = 760  # units of every figure's viewBox, CSS pixels at full width


@dataclass(frozen=True)
class ChartBar:
    """A rectangle in units of the viewBox, with a text beside it and the number on it."""

    x: float
    y: float
    width: float
    height: float
    label: str
    value: int


@dataclass(frozen=True)
class Histogram:
    """The distribution of points: how many learners earned how much.

    Attributes:
        title: the result in a sentence.
        base: y coordinate of the bars' lower end.
        median: x coordinate of the median.
    """

    title: str
    alt: str
    bars: list[ChartBar]
    height: int
    base: float
    median: float


@dataclass(frozen=True)
class ChartRow:
    """The stacked bar of one exercise.

    Attributes:
        share: share of the points that were earned, as text.
        segments: ``(kind, bar)`` for each kind of outcome that occurred.
    """

    y: float
    title: str
    name: str
    share: str
    segments: list[tuple[str, ChartBar]]


@dataclass(frozen=True)
class Successes:
    """How many learners earned all, some or none of the points of each exercise.

    Attributes:
        title: the result in a sentence.
        left: x coordinate of the bars' left end.
    """

    title: str
    alt: str
    rows: list[ChartRow]
    height: int
    left: float


def histogram(points: Sequence[float], most: float) -> Histogram | None:
    """Return the histogram: ten bins of ten percent and one for full points.

    None without learners.
    """
    if not points or not most:
        return None
    counts = [0] * 11
    for value in points:
        counts[max(0, min(10, int(value / most * 10 + 1e-9)))] += 1
    labels = [f"{10 * k}–{10 * k + 9} %" for k in range(10)] + ["all"]
    top, base, step = 26.0, 196.0, WIDTH / 11
    tallest = max(counts)
    bars = []
    for number, (count, label) in enumerate(zip(counts, labels, strict=True)):
        height = (base - top) * count / tallest
        bars.append(ChartBar(number * step + 4, base - height, step - 8, height, label, count))
    middle = statistics.median(points)
    words = ", ".join(f"{label}: {count}" for count, label in zip(counts, labels, strict=True))
    return Histogram(
        title=_score_sentence(points, middle, most),
        alt=f"Histogram of learners by share of the points. {words}.",
        bars=bars,
        height=236,
        base=base,
        median=min(middle / most, 1.0) * 10 * step if middle < most else 10.5 * step,
    )


def _score_sentence(points: Sequence[float], middle: float, most: float) -> str:
    full = sum(value >= most for value in points)
    none = sum(value <= 0 for value in points)
    if full == len(points):
        return "Everyone earned every point"
    sentence = f"Half of the class earned {middle:g} of {most:g} points or more"
    ends = [f"{full} earned all of them" if full else "", f"{none} none" if none else ""]
    said = " and ".join(filter(None, ends))
    return f"{sentence}; {said}" if said else sentence


def successes(exercises: Sequence[ExerciseTally]) -> Successes | None:
    """Return a stacked bar for each exercise that has scores; None when no exercise has any."""
    marked = [one for one in exercises if one.marked]
    if not marked:
        return None
    left, right, high, step = 292.0, 56.0, 20.0, 34.0
    wide = WIDTH - left - right
    rows = []
    for number, one in enumerate(marked):
        y, x, segments = number * step + 6, left, []
        for kind, count in parts(one):
            width = wide * count / one.marked
            if count:
                segments.append((kind, ChartBar(x, y, width, high, "", count)))
            x += width
        rows.append(
            ChartRow(
                y,
                one.title or one.name,
                one.name,
                f"{one.share or 0:.0%}".replace("%", " %"),
                segments,
            )
        )
    words = "; ".join(
        f"{one.title or one.name}: "
        + ", ".join(f"{count} {LABELS[kind]}" for kind, count in parts(one) if count)
        for one in marked
    )
    return Successes(
        title=_hardest_sentence(marked),
        alt=f"Stacked bars of learners for each exercise. {words}.",
        rows=rows,
        height=round(len(rows) * step + 6),
        left=left,
    )


def parts(one: ExerciseTally) -> list[tuple[str, int]]:
    """Return the four kinds of outcome with the number of learners."""
    return list(zip(LABELS, (one.full, one.some, one.nothing, one.not_tried), strict=True))


def _hardest_sentence(marked: Sequence[ExerciseTally]) -> str:
    worst = min(marked, key=lambda one: one.share or 0.0)
    if worst.share and worst.share >= 0.9:
        return "Every exercise was within reach of nearly everyone"
    tried = worst.marked - worst.not_tried
    solved = f"{worst.full} of the {tried} who tried it earned all its points"
    return f"“{_plain(worst.title or worst.name)}” was the hardest: {solved}"


def _plain(title: str) -> str:
    """Return a heading without its number."""
    number, _, rest = title.partition(" · ")
    return rest if rest and number.isdigit() else title
