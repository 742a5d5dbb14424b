"""A line while it is fitted: the seen points, the unseen points, and the loss on both."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from utils.notebook.style import INK, MUTED, STORAGE, VIEW
from utils.views._canvas import RIGHT, Axes, Canvas, Drawing, decades, round_steps
from utils.views._controls import slider
from utils.views._numbers import number
from utils.views._view import present

HIGH, LEFT, SPLIT = 280, 66, 440
MOST = 200  # points of each kind
Points = tuple[np.ndarray, np.ndarray]
Line = tuple[float, float]


def fitted_line(
    seen: tuple[ArrayLike, ArrayLike], unseen: tuple[ArrayLike, ArrayLike], lines: Sequence[Line]
) -> None:
    """Show points and the line y = w x + b as it was after each step.

    In a live view, a slider sets the step.

    seen, unseen: (x, y) arrays of any shape, at most 200 points each.
    lines: (w, b) before the first step, after the first, and so on.
    Raises ValueError for no line, no points, too many points, or x and y of unequal size.
    """
    if not lines:
        raise ValueError("fitted_line needs at least one line (w, b)")
    data = read("seen", seen), read("unseen", unseen)
    last = len(lines) - 1
    present(lambda step: draw(*data, lines, step), slider("step", last, 0, max(last, 1)))


def read(name: str, points: tuple[ArrayLike, ArrayLike]) -> Points:
    x, y = (np.asarray(part, float).ravel() for part in points)
    if len(x) != len(y) or not 0 < len(x) <= MOST:
        raise ValueError(
            f"fitted_line: {name} needs as many x as y, 1 to {MOST}, got {len(x)} and {len(y)}"
        )
    return x, y


def mean_squared(points: Points, line: Line) -> float:
    x, y = points
    return float(np.mean((line[0] * x + line[1] - y) ** 2))


def draw(seen: Points, unseen: Points, lines: Sequence[Line], step: int) -> Drawing:
    last = len(lines) - 1
    step = min(step, last)
    w, b = lines[step]
    equation = f"y = {number(w, 3)}x {'−' if b < 0 else '+'} {number(abs(b), 3)}"
    error, new = (number(mean_squared(points, (w, b)), 2) for points in (seen, unseen))
    canvas = Canvas(f"After step {step}: {equation}. Error {error}, {new} on the unseen points.")
    top = canvas.top + 34
    _draw_points(canvas, top, seen, unseen, (w, b))
    curves = [[max(mean_squared(p, line), 1e-12) for line in lines] for p in (seen, unseen)]
    finite = [v for curve in curves for v in curve if math.isfinite(v)] or [1.0]
    low, high = min(finite) / 1.6, min(max(finite), 1e6) * 1.6
    left, x, y = SPLIT + 48, (0, max(last, 1)), (low, max(high, low * 2))
    axes = Axes(canvas, left, top, RIGHT - 12 - left, HIGH, x=x, y=y, log="y")
    axes.grid_y(decades(low, high), lambda tick: number(tick, 1))
    axes.steps_x("step", axes.right, 40)
    canvas.text(left, top - 18, "mean squared error", MUTED)
    for curve, part, wide in zip(curves, (STORAGE, VIEW), (4, 2), strict=True):
        axes.curve(range(len(curve)), curve, part.colour, wide)
        at = axes.px(step), axes.py(curve[step])
        canvas.marker(*at, part.marker, 11, part.colour, edge=INK)
    axes.cursor(step)
    ends = "; ".join(
        f"step {k}: w {number(lines[k][0], 3)}, b {number(lines[k][1], 3)}" for k in (0, last)
    )
    return canvas.finish(
        axes.bottom + 44,
        f"A fitted line. {canvas.title} The line is fitted to {len(seen[0])} points; "
        f"{len(unseen[0])} points are unseen. {ends}.",
    )


def _draw_points(canvas: Canvas, top: float, seen: Points, unseen: Points, line: Line) -> None:
    spans = []
    for k, share in enumerate((0.06, 0.08)):
        some = np.concatenate([seen[k], unseen[k]])
        edge = share * float(np.ptp(some)) or 1.0
        spans.append((float(some.min()) - edge, float(some.max()) + edge))
    x, y = spans
    axes = Axes(canvas, LEFT, top, SPLIT - LEFT - 40, HIGH, x=x, y=y)
    axes.grid_y(round_steps(*y))
    axes.labels_x(round_steps(*x))
    # The line is cut where it leaves the frame.
    path = ((at, line[0] * at + line[1]) for at in np.linspace(*x, 200).tolist())
    inside = [point for point in path if y[0] <= point[1] <= y[1]]
    if inside:
        axes.curve([at for at, _ in inside], [value for _, value in inside], INK)
    kinds = ((seen, STORAGE, "learnt from", 0), (unseen, VIEW, "not seen", 130))
    for points, part, name, left in kinds:
        for px, py in zip(*points, strict=True):
            at = axes.px(px), axes.py(py)
            canvas.marker(*at, part.marker, 6, part.colour, edge=part.colour)
        at = LEFT + left + 6, top - 18
        canvas.marker(*at, part.marker, 9, part.colour, edge=part.colour)
        canvas.text(LEFT + left + 18, top - 18, name, MUTED)
