"""A line while it is fitted: the points it learns from, those it has not seen, and both losses."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from utils.notebook.style import INK, MUTED, STORAGE, VIEW, WIDTH
from utils.views import _interactive
from utils.views._axes import TEXT, Axes, round_steps
from utils.views._canvas import MARGIN, Canvas, title_height
from utils.views._numbers import number

HIGH, LEFT, SPLIT = 280, 66, 440
MOST = 200  # points of each kind
Points = tuple[np.ndarray, np.ndarray]
Line = tuple[float, float]


def fitted_line(
    seen: tuple[ArrayLike, ArrayLike],
    unseen: tuple[ArrayLike, ArrayLike],
    lines: Sequence[Line],
) -> None:
    """Show points and the line y = w x + b as it was after each step; live, the step moves.

    seen, unseen: (x, y) arrays of any shape, at most 200 points each.
    lines: (w, b) before the first step, after the first, and so on.
    Raises ValueError for no line, no point, too many, or x and y of unequal size.
    """
    if not lines:
        raise ValueError("fitted_line needs at least one line (w, b)")
    data = read("seen", seen), read("unseen", unseen)
    start = len(lines) - 1
    _interactive.present(
        lambda step: draw(*data, lines, step),
        (start,),
        lambda widgets: [
            widgets.IntSlider(value=start, min=0, max=max(start, 1), description="step")
        ],
    )


def read(name: str, points: tuple[ArrayLike, ArrayLike]) -> Points:
    """Points as two flat arrays."""
    x, y = (np.asarray(part, float).ravel() for part in points)
    if len(x) != len(y) or not 0 < len(x) <= MOST:
        raise ValueError(
            f"fitted_line: {name} needs as many x as y, 1 to {MOST}, got {len(x)} and {len(y)}"
        )
    return x, y


def mean_squared(points: Points, line: Line) -> float:
    """The mean squared error of a line on some points."""
    x, y = points
    return float(np.mean((line[0] * x + line[1] - y) ** 2))


def draw(seen: Points, unseen: Points, lines: Sequence[Line], step: int) -> tuple[Figure, str]:
    """The figure after `step` steps, and its alternative text."""
    step = min(step, len(lines) - 1)
    words = sentence(seen, unseen, lines, step)
    top = title_height("one line") + 34
    canvas = Canvas(top + HIGH + 44)
    canvas.title(words)
    _draw_points(canvas, top, seen, unseen, lines[step])
    _draw_losses(canvas, top, seen, unseen, lines, step)
    return canvas.finish(), describe(seen, unseen, lines, step)


def _draw_points(canvas: Canvas, top: float, seen: Points, unseen: Points, line: Line) -> None:
    xs, ys = (np.concatenate([seen[k], unseen[k]]) for k in (0, 1))
    edge = 0.06 * float(np.ptp(xs)) or 1.0, 0.08 * float(np.ptp(ys)) or 1.0
    x = float(xs.min()) - edge[0], float(xs.max()) + edge[0]
    y = float(ys.min()) - edge[1], float(ys.max()) + edge[1]
    axes = Axes(canvas, LEFT, top, SPLIT - LEFT - 40, HIGH, x=x, y=y)
    ticks = round_steps(*y)
    axes.grid_y(ticks, [f"{tick:g}" for tick in ticks])
    ticks = round_steps(*x)
    axes.labels_x(ticks, [f"{tick:g}" for tick in ticks])
    # The line is cut where it leaves the frame.
    inside = [
        (at, value) for at in np.linspace(*x, 200).tolist()
        if y[0] <= (value := line[0] * at + line[1]) <= y[1]
    ]  # fmt: skip
    if inside:
        axes.curve(*zip(*inside, strict=True), colour=INK, line=2)
    for points, part in ((seen, STORAGE), (unseen, VIEW)):
        for px, py in zip(*points, strict=True):
            at = axes.px(px), axes.py(py)
            canvas.marker(*at, part.marker, size=6, fill=part.colour, edge=part.colour)
    where = LEFT
    for part, name in ((STORAGE, "learnt from"), (VIEW, "not seen")):
        at = where + 6, top - 18
        canvas.marker(*at, part.marker, size=9, fill=part.colour, edge=part.colour)
        canvas.text(where + 18, top - 18, name, size=TEXT, colour=MUTED)
        where += 130


def _draw_losses(
    canvas: Canvas, top: float, seen: Points, unseen: Points, lines: Sequence[Line], step: int
) -> None:
    curves = [[max(mean_squared(p, line), 1e-12) for line in lines] for p in (seen, unseen)]
    finite = [v for curve in curves for v in curve if math.isfinite(v)] or [1.0]
    low, high = min(finite) / 1.6, min(max(finite), 1e6) * 1.6
    axes = Axes(
        canvas, SPLIT + 48, top, WIDTH - MARGIN - 12 - SPLIT - 48, HIGH,
        x=(0, max(len(lines) - 1, 1)), y=(low, max(high, low * 2)), log=True,
    )  # fmt: skip
    powers = range(math.ceil(math.log10(low)), math.floor(math.log10(high)) + 1)
    axes.grid_y([10.0**p for p in powers], [number(10.0**p, 1) for p in powers])
    ticks = round_steps(0, max(len(lines) - 1, 1), 4)
    axes.labels_x(ticks[:-1], [f"{tick:g}" for tick in ticks[:-1]])
    canvas.text(axes.right, axes.bottom + 16, "step", size=TEXT, colour=MUTED, ha="right")
    canvas.text(SPLIT + 48, top - 18, "mean squared error", size=TEXT, colour=MUTED)
    for curve, part, line in zip(curves, (STORAGE, VIEW), (4, 2), strict=True):
        axes.curve(range(len(curve)), curve, colour=part.colour, line=line)
        canvas.marker(axes.px(step), axes.py(curve[step]), part.marker, size=11, fill=part.colour)
    x = axes.px(step)
    canvas.line([(x, top), (x, axes.bottom)], colour=INK, dashed=True)


def sentence(seen: Points, unseen: Points, lines: Sequence[Line], step: int) -> str:
    """The line and what it is worth, as the figure's title."""
    w, b = lines[step]
    sign = "−" if b < 0 else "+"
    line = f"y = {number(w, 3)}x {sign} {number(abs(b), 3)}"
    error, new = mean_squared(seen, (w, b)), mean_squared(unseen, (w, b))
    return f"After step {step}: {line}. Error {number(error, 2)}, {number(new, 2)} on the unseen."


def describe(seen: Points, unseen: Points, lines: Sequence[Line], step: int) -> str:
    """The alternative text: the line at the lit step, at the first and at the last."""
    ends = "; ".join(
        f"step {k}: w {number(lines[k][0], 3)}, b {number(lines[k][1], 3)}"
        for k in (0, len(lines) - 1)
    )
    return (
        f"A fitted line. {sentence(seen, unseen, lines, step)} {len(seen[0])} points are learnt "
        f"from, {len(unseen[0])} are not seen. {ends}."
    )
