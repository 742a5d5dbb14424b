"""A learning-rate schedule and a clip laid over the gradient norms of a run."""

from __future__ import annotations

import math
from collections.abc import Sequence

from matplotlib.figure import Figure

from utils.notebook.style import GRADIENT, INK, MUTED, PARAMETER, STORAGE, WIDTH
from utils.views import _interactive
from utils.views._axes import TEXT, Axes, round_steps
from utils.views._canvas import MARGIN, Canvas, title_height
from utils.views._numbers import number

LEFT, TOP_HIGH, HIGH, GAP = 84, 130, 200, 52
FLOORS = tuple(k / 20 for k in range(21))
CLIPS = (0.1, 0.2, 0.5, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0)


def schedule_clip(
    norms: Sequence[float], *, warmup: int = 0, floor: float = 0.1, clip: float = 1.0
) -> None:
    """Show the norms of a run under a clip, and the schedule of its steps; live, all three move.

    norms: the norm of all gradients at each step, before clipping; 2 or more numbers.
    warmup: steps of the climb; floor: the last learning rate as a part of the highest; clip: one
    of CLIPS.
    Raises ValueError for fewer norms, or settings outside these bounds.
    """
    values = [float(norm) for norm in norms]
    if len(values) < 2:
        raise ValueError(f"schedule_clip needs 2 norms or more, got {len(values)}")
    if not (0 <= warmup < len(values) and 0 <= floor <= 1 and clip in CLIPS):
        raise ValueError(
            f"schedule_clip: expected 0 <= warmup < {len(values)}, 0 <= floor <= 1 and a clip of "
            f"{CLIPS}, got {warmup}, {floor} and {clip}"
        )
    _interactive.present(
        lambda warm, low, most: draw(values, warm, low, most),
        (warmup, floor, clip),
        lambda widgets: [
            widgets.IntSlider(value=warmup, min=0, max=len(values) - 1, description="warm-up"),
            widgets.SelectionSlider(
                options=sorted({*FLOORS, floor}), value=floor, description="floor"
            ),
            widgets.SelectionSlider(options=CLIPS, value=clip, description="clip"),
        ],
    )


def share_at(step: int, steps: int, warmup: int, floor: float) -> float:
    """The learning rate of a step, counted from 0, as a part of the highest."""
    if step < warmup:
        return (step + 1) / warmup
    way = (step - warmup) / max(1, steps - 1 - warmup)
    return floor + (1 - floor) * 0.5 * (1 + math.cos(math.pi * way))


def draw(norms: Sequence[float], warmup: int, floor: float, clip: float) -> tuple[Figure, str]:
    """The figure for some settings, and its alternative text."""
    words = sentence(norms, clip)
    top = title_height("one line") + 28
    canvas = Canvas(top + TOP_HIGH + GAP + HIGH + 40)
    canvas.title(words)
    wide = WIDTH - MARGIN - 8 - LEFT
    steps = range(1, len(norms) + 1)
    shares = [share_at(k, len(norms), warmup, floor) for k in range(len(norms))]
    span = (1, len(norms))
    rate = Axes(canvas, LEFT, top, wide, TOP_HIGH, x=span, y=(0, 1.05))
    rate.grid_y((0, 0.5, 1), ("0", "0.5", "1"))
    rate.curve(steps, shares, colour=PARAMETER.colour)
    canvas.text(LEFT, top - 16, "learning rate, as a part of the highest", size=TEXT, colour=MUTED)
    finite = [norm for norm in norms if math.isfinite(norm)] or [1.0]
    most = max(*finite, clip) * 1.05
    low = top + TOP_HIGH + GAP
    plot = Axes(canvas, LEFT, low, wide, HIGH, x=span, y=(0, most))
    ticks = round_steps(0, most)
    plot.grid_y(ticks, [f"{tick:g}" for tick in ticks])
    told = "norm of all gradients: before, and after the clip"
    canvas.text(LEFT, low - 16, told, size=TEXT, colour=MUTED)
    plot.curve(steps, norms, colour="#e0a58e", line=1.6)
    plot.curve(steps, [min(norm, clip) for norm in norms], colour=GRADIENT.colour, line=2.4)
    y = plot.py(clip)
    canvas.line([(LEFT, y), (LEFT + wide, y)], colour=INK, line=1.2, dashed=True)
    if warmup:
        x = rate.px(warmup)
        for start, end in ((top, top + TOP_HIGH), (low, low + HIGH)):
            canvas.line([(x, start), (x, end)], colour=STORAGE.colour, dashed=True)
    places = [s for s in round_steps(1, len(norms)) if plot.px(s) < WIDTH - MARGIN - 60]
    plot.labels_x(places, [f"{s:g}" for s in places])
    canvas.text(WIDTH - MARGIN - 8, plot.bottom + 16, "step", size=TEXT, colour=MUTED, ha="right")
    return canvas.finish(), describe(norms, warmup, floor, clip)


def sentence(norms: Sequence[float], clip: float) -> str:
    """What the clip does to these norms, as the figure's title."""
    cut = [norm for norm in norms if not norm <= clip]
    if not cut:
        return f"A clip at {clip:g} touches none of these {len(norms)} steps."
    finite = [norm for norm in cut if math.isfinite(norm)]
    words = f"A clip at {clip:g} shortens {len(cut)} of {len(norms)} steps"
    if not finite:
        return f"{words}, none of which is finite."
    return f"{words}, the worst by a factor of {number(max(finite) / clip, 2)}."


def describe(norms: Sequence[float], warmup: int, floor: float, clip: float) -> str:
    """The alternative text: the schedule at a few steps, and the norms."""
    n = len(norms)
    told = ", ".join(
        f"{number(share_at(k, n, warmup, floor), 2)} at step {k + 1}"
        for k in sorted({0, warmup, n // 2, n - 1})
    )
    middle = sorted(norms)[n // 2]
    return (
        f"Schedule and clip over {n} steps. {sentence(norms, clip)} Learning rate, as a part of "
        f"the highest: {told}. The median norm is {number(middle, 2)}, the largest "
        f"{number(max(norms), 3)}."
    )
