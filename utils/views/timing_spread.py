"""The timings of two runs as two clouds of points, their quartiles, and their order in time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from utils.notebook.style import GRADIENT, INK, MUTED, STORAGE, WIDTH
from utils.views import _interactive
from utils.views._axes import TEXT, Axes, round_steps
from utils.views._canvas import MARGIN, Canvas, title_height
from utils.views._numbers import count

ROW, HIGH, LEFT = 74, 190, 118
LOOKS = (STORAGE, GRADIENT)
MOST = 400
FEW = 5  # below so many runs nothing can be said
BEYOND = 6  # times the middle half's width: what lies further above it is drawn at the edge


def timing_spread(timings: Mapping[str, Sequence[float]], *, runs: int | None = None) -> None:
    """Show what the clock said of two things; live, a slider takes only the first runs of each.

    timings: two names -> seconds of each run, in the order in which they were taken.
    runs: how many of each count at first, by default all.
    Raises ValueError for other than two names, none or too many runs, or a time of 0 or below.
    """
    found = read(timings)
    most = max(len(times) for times in found.values())
    start = most if runs is None else runs
    if not 1 <= start <= most:
        raise ValueError(f"timing_spread: runs from 1 to {most}, got {start}")
    _interactive.present(
        lambda n: draw(found, n),
        (start,),
        lambda widgets: [widgets.IntSlider(value=start, min=1, max=most, description="runs")],
    )


def read(timings: Mapping[str, Sequence[float]]) -> dict[str, list[float]]:
    """The timings as milliseconds."""
    found = {str(name): [1e3 * float(t) for t in times] for name, times in timings.items()}
    if len(found) != 2:
        raise ValueError(f"timing_spread compares two, got {len(found)}")
    for name, times in found.items():
        if not 1 <= len(times) <= MOST:
            raise ValueError(f"timing_spread: 1 to {MOST} runs, got {len(times)} of {name!r}")
        if not all(0 < t < 1e9 for t in times):
            raise ValueError(f"timing_spread: seconds above 0, got {min(times) / 1e3} in {name!r}")
    return found


def quartiles(times: Sequence[float]) -> tuple[float, float, float]:
    """A quarter, half and three quarters of the times lie below these."""
    low, middle, high = np.percentile(times, (25, 50, 75))
    return float(low), float(middle), float(high)


def verdict(one: Sequence[float], other: Sequence[float]) -> str:
    """What two series of times allow one to say."""
    if min(len(one), len(other)) < FEW:
        return "too few runs to say anything"
    a, b = quartiles(one), quartiles(other)
    if a[2] < b[0] or b[2] < a[0]:
        return "the middle halves lie apart"
    return "the middle halves overlap: nothing can be said"


def draw(timings: Mapping[str, Sequence[float]], runs: int) -> tuple[Figure, str]:
    """The figure for the first runs of each, and its alternative text."""
    every = sorted(t for times in timings.values() for t in times)
    lowest, _, upper_quarter = quartiles(every)
    reach = max(BEYOND * (upper_quarter - lowest), 0.2 * upper_quarter)
    high = min(every[-1], upper_quarter + reach) * 1.02
    low = min(every) * 0.94
    top = title_height("one line") + 10
    plot_at = top + 2 * ROW + 62
    canvas = Canvas(plot_at + HIGH + 40)
    canvas.title(sentence(timings, runs))
    wide = WIDTH - MARGIN - 8 - LEFT
    upper = Axes(canvas, LEFT, top, wide, 2 * ROW, x=(low, high), y=(0, 1))
    ticks = [t for t in round_steps(low, high) if upper.px(t) < WIDTH - MARGIN - 52]
    upper.labels_x(ticks, [f"{tick:g}" for tick in ticks])
    canvas.text(WIDTH - MARGIN, upper.bottom + 16, "ms", size=TEXT, colour=MUTED, ha="right")
    first, last = 1, max(2, *(len(times) for times in timings.values()))
    lower = Axes(canvas, LEFT, plot_at, wide, HIGH, x=(first, last), y=(low, high))
    marks = round_steps(low, high, 4)
    lower.grid_y(marks, [f"{mark:g}" for mark in marks])
    canvas.text(LEFT, plot_at - 17, "the same runs, in order", size=TEXT, colour=MUTED)
    ends = [k for k in round_steps(first, last) if k >= 1 and lower.px(k) < WIDTH - MARGIN - 50]
    lower.labels_x(ends, [f"{k:g}" for k in ends])
    canvas.text(WIDTH - MARGIN, lower.bottom + 16, "run", size=TEXT, colour=MUTED, ha="right")
    for k, (name, times) in enumerate(timings.items()):
        _draw_cloud(canvas, upper, name, times[:runs], k, top + ROW * k, high)
        xs = list(range(1, len(times[:runs]) + 1))
        lower.curve(xs, [min(t, high) for t in times[:runs]], colour=LOOKS[k].colour, line=1.8)
    return canvas.finish(), describe(timings, runs)


def _draw_cloud(
    canvas: Canvas, axes: Axes, name: str, times: Sequence[float], k: int, top: float, high: float
) -> None:
    look = LOOKS[k]
    middle = top + ROW / 2
    canvas.text(MARGIN, middle - 10, name, size=TEXT)
    low, median, upper = quartiles(times)
    canvas.text(MARGIN, middle + 10, f"{median:.3g} ms", size=TEXT, colour=MUTED)
    left, right = axes.px(min(low, high)), axes.px(min(upper, high))
    canvas.boxes([(left, top + 8, right - left, ROW - 16)], [look.tint], edge=look.colour)
    # Spread downward in a fixed pattern, so that points of like time do not hide each other.
    places = [
        (axes.px(min(t, high)), top + 16 + (11 * j) % (ROW - 32)) for j, t in enumerate(times)
    ]
    boxes = [(x - 2.5, y - 2.5, 5.0, 5.0) for x, y in places]
    beyond = [t > high for t in times]
    fills = ["none" if far else look.colour for far in beyond]
    canvas.boxes(boxes, fills, edge=look.colour, line=1, radius=2)
    x = axes.px(min(median, high))
    canvas.line([(x, top + 4), (x, top + ROW - 4)], colour=INK, line=2.4)


def sentence(timings: Mapping[str, Sequence[float]], runs: int) -> str:
    """The ratio of the medians and what it is worth, as the figure's title."""
    one, other = (times[:runs] for times in timings.values())
    ratio = quartiles(other)[1] / quartiles(one)[1]
    return f"{count(runs, 'run')} each: {ratio:.2f} times as long; {verdict(one, other)}."


def describe(timings: Mapping[str, Sequence[float]], runs: int) -> str:
    """The alternative text: the quartiles of each, the ratio and the verdict."""
    parts = []
    for name, times in timings.items():
        low, median, high = quartiles(times[:runs])
        parts.append(
            f"{name}: median {median:.3g} ms, half of {count(len(times[:runs]), 'run')} from "
            f"{low:.3g} to {high:.3g} ms, slowest {max(times[:runs]):.3g} ms."
        )
    return f"Timings of two runs. {sentence(timings, runs)} {' '.join(parts)}"
