"""The timings of two versions: two clouds of points with quartiles, and the runs in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from utils.notebook.style import GRADIENT, INK, MUTED, STORAGE, Part
from utils.views._canvas import MARGIN, RIGHT, Axes, Canvas, Drawing, round_steps
from utils.views._controls import slider
from utils.views._numbers import count, require
from utils.views._view import present

ROW, HIGH, LEFT = 74, 190, 118
LOOKS = (STORAGE, GRADIENT)
MOST = 400
FEW = 5  # with fewer runs, no conclusion is possible
# Points that are further above the middle half than BEYOND times its width are drawn at the edge.
BEYOND = 6


def timing_spread(timings: Mapping[str, Sequence[float]]) -> None:
    """Show the timings of two versions.

    In a live view, a slider sets how many of the first runs of each version are used.

    timings: name -> the seconds of each run, in order, for two versions.

    Raises ValueError unless there are two versions, for no or too many runs, or for a time of 0 or
    less.
    """
    found = read(timings)
    most = max(len(times) for times in found.values())
    present(lambda n: draw(found, n), slider("runs", most, 1, most))


def read(timings: Mapping[str, Sequence[float]]) -> dict[str, list[float]]:
    found = {str(name): [1e3 * float(t) for t in times] for name, times in timings.items()}
    require("timing_spread", len(found), "timings", 2, 2)
    for name, times in found.items():
        require("timing_spread", len(times), f"runs of {name!r}", MOST)
        if not all(0 < t < 1e9 for t in times):
            raise ValueError(
                f"timing_spread: expected seconds above 0, got {min(times) / 1e3} in {name!r}"
            )
    return found


def quartiles(times: Sequence[float]) -> list[float]:
    """Return the quartiles: a quarter, half and three quarters of the times are below them."""
    return [float(each) for each in np.percentile(times, (25, 50, 75))]


def verdict(one: Sequence[float], other: Sequence[float]) -> str:
    if min(len(one), len(other)) < FEW:
        return "too few runs to say anything"
    a, b = quartiles(one), quartiles(other)
    if a[2] < b[0] or b[2] < a[0]:
        return "the middle halves do not overlap"
    return "the middle halves overlap: nothing can be said"


def draw(timings: Mapping[str, Sequence[float]], runs: int) -> Drawing:
    shown = {name: times[:runs] for name, times in timings.items()}
    one, other = (quartiles(times)[1] for times in shown.values())
    says = verdict(*shown.values())
    canvas = Canvas(f"{count(runs, 'run')} each: {other / one:.2f} times as long; {says}.")
    every = [t for times in timings.values() for t in times]
    lowest, _, upper_quarter = quartiles(every)
    reach = max(BEYOND * (upper_quarter - lowest), 0.2 * upper_quarter)
    high, low = min(max(every), upper_quarter + reach) * 1.02, min(every) * 0.94
    top, wide = canvas.top + 10, RIGHT - 8 - LEFT
    upper = Axes(canvas, LEFT, top, wide, 2 * ROW, x=(low, high), y=(0, 1))
    upper.steps_x("ms", room=52)
    last = max(2, *map(len, timings.values()))
    lower = Axes(canvas, LEFT, upper.bottom + 62, wide, HIGH, x=(1, last), y=(low, high))
    lower.grid_y(round_steps(low, high, 4))
    canvas.text(LEFT, lower.top - 17, "the same runs, in order", MUTED)
    lower.steps_x("run", room=50)
    parts = [f"Timings of two runs. {canvas.title}"]
    for look, (name, times) in zip(LOOKS, shown.items(), strict=True):
        quarters = quartiles(times)
        canvas.text(MARGIN, top + ROW / 2 - 10, name)
        canvas.text(MARGIN, top + ROW / 2 + 10, f"{quarters[1]:.3g} ms", MUTED)
        _draw_cloud(canvas, upper, times, quarters, top, high, look)
        lower.curve(range(1, len(times) + 1), [min(t, high) for t in times], look.colour, 1.8)
        parts.append(
            f"{name}: median {quarters[1]:.3g} ms, half of {count(len(times), 'run')} from "
            f"{quarters[0]:.3g} to {quarters[2]:.3g} ms, slowest {max(times):.3g} ms."
        )
        top += ROW
    return canvas.finish(lower.bottom + 40, " ".join(parts))


def _draw_cloud(
    canvas: Canvas,
    axes: Axes,
    times: Sequence[float],
    quarters: Sequence[float],
    top: float,
    high: float,
    look: Part,
) -> None:
    left, x, right = (axes.px(min(each, high)) for each in quarters)
    canvas.box((left, top + 8, right - left, ROW - 16), look.tint, edge=look.colour)
    # The points are spread downward in a fixed pattern, so that points of similar times do not hide
    # each other.
    for j, t in enumerate(times):
        box = (axes.px(min(t, high)) - 2.5, top + 13.5 + (11 * j) % (ROW - 32), 5.0, 5.0)
        canvas.box(box, "none" if t > high else look.colour, edge=look.colour, radius=2)
    canvas.line([(x, top + 4), (x, top + ROW - 4)], INK, 2.4)
