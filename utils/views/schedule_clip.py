"""The gradient norms of a run, with a clip and a learning-rate schedule."""

from __future__ import annotations

import math
from collections.abc import Sequence

from utils.notebook.style import GRADIENT, INK, MUTED, PARAMETER, STORAGE
from utils.views._canvas import RIGHT, Axes, Canvas, Drawing, round_steps
from utils.views._controls import choice, slider
from utils.views._numbers import number
from utils.views._view import present

LEFT, TOP_HIGH, HIGH, GAP = 84, 130, 200, 52
FLOORS = tuple(k / 20 for k in range(21))
CLIPS = (0.1, 0.2, 0.5, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0)


def schedule_clip(norms: Sequence[float], *, warmup: int = 0) -> None:
    """Show the gradient norms of a run with a clip, and a learning-rate schedule with a floor.

    In a live view, controls set the warm-up, the floor and the clip.

    norms: the norm of all gradients at each step before clipping, for 2 or more steps.
    warmup: the number of steps in which the learning rate rises.

    Raises ValueError for fewer norms, or if the warm-up is longer than the run.
    """
    values = [float(norm) for norm in norms]
    if len(values) < 2:
        raise ValueError(f"schedule_clip needs 2 norms or more, got {len(values)}")
    present(
        lambda warm, low, most: draw(values, warm, low, most),
        slider("warm-up", warmup, 0, len(values) - 1),
        choice("floor", 0.1, FLOORS),
        choice("clip", 1.0, CLIPS),
    )


def share_at(step: int, steps: int, warmup: int, floor: float) -> float:
    """Return the learning rate of a step, counted from 0, relative to the highest rate."""
    if step < warmup:
        return (step + 1) / warmup
    way = (step - warmup) / max(1, steps - 1 - warmup)
    return floor + (1 - floor) * 0.5 * (1 + math.cos(math.pi * way))


def draw(norms: Sequence[float], warmup: int, floor: float, clip: float) -> Drawing:
    canvas = Canvas(sentence(norms, clip))
    n, wide, top = len(norms), RIGHT - 8 - LEFT, canvas.top + 28
    steps = range(1, n + 1)
    shares = [share_at(k, n, warmup, floor) for k in range(n)]
    rate = Axes(canvas, LEFT, top, wide, TOP_HIGH, x=(1, n), y=(0, 1.05))
    rate.grid_y((0, 0.5, 1))
    rate.curve(steps, shares, PARAMETER.colour)
    canvas.text(LEFT, top - 16, "learning rate / highest learning rate", MUTED)
    most = max(*([norm for norm in norms if math.isfinite(norm)] or [1.0]), clip) * 1.05
    low = rate.bottom + GAP
    plot = Axes(canvas, LEFT, low, wide, HIGH, x=(1, n), y=(0, most))
    plot.grid_y(round_steps(0, most))
    canvas.text(LEFT, low - 16, "norm of all gradients: before, and after the clip", MUTED)
    plot.curve(steps, norms, "#e0a58e", 1.6)
    plot.curve(steps, [min(norm, clip) for norm in norms], GRADIENT.colour, 2.4)
    y = plot.py(clip)
    canvas.line([(LEFT, y), (LEFT + wide, y)], INK, 1.2, dashed=True)
    if warmup:
        x = rate.px(warmup)
        for axes in (rate, plot):
            canvas.line([(x, axes.top), (x, axes.bottom)], STORAGE.colour, dashed=True)
    plot.steps_x("step", RIGHT - 8, 52)
    told = ", ".join(
        f"{number(shares[k], 2)} at step {k + 1}" for k in sorted({0, warmup, n // 2, n - 1})
    )
    return canvas.finish(
        plot.bottom + 40,
        f"Schedule and clip over {n} steps. {canvas.title} Learning rate / highest "
        f"learning rate: {told}. The median norm is {number(sorted(norms)[n // 2], 2)}, the "
        f"largest {number(max(norms), 3)}.",
    )


def sentence(norms: Sequence[float], clip: float) -> str:
    cut = [norm for norm in norms if not norm <= clip]
    if not cut:
        return f"A clip at {clip:g} shortens none of these {len(norms)} steps."
    finite = [norm for norm in cut if math.isfinite(norm)]
    words = f"A clip at {clip:g} shortens {len(cut)} of {len(norms)} steps"
    if not finite:
        return f"{words}, and their norms are not finite."
    return f"{words}, the worst by a factor of {number(max(finite) / clip, 2)}."
