"""The losses of one or more runs over their steps, laid over each other, with levels to beat."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure

from utils.notebook.style import CARD, GRADIENT, INK, MUTED, PARAMETER, STORAGE, VIEW, WIDTH
from utils.views import _interactive
from utils.views._axes import TEXT, Axes, round_steps
from utils.views._canvas import MARGIN, Canvas, title_height
from utils.views._numbers import number
from utils.views._text_outlines import text_width

COLOURS = (STORAGE.colour, GRADIENT.colour, VIEW.colour, PARAMETER.colour)
BAND = "#9fc3e0"  # pale storage blue
LEFT, HIGH, ROW = 84, 270, 24
Losses = Sequence[float] | Mapping[int, float]


@dataclass(frozen=True)
class Run:
    """One run: its steps in order, and the loss at each. NaN where it was not finite."""

    name: str
    steps: tuple[int, ...]
    losses: tuple[float, ...]

    def at(self, step: int) -> float | None:
        """The loss at a step, None where the run has none."""
        return dict(zip(self.steps, self.losses, strict=True)).get(step)


def loss_curves(
    runs: Mapping[str, Losses],
    *,
    levels: Mapping[str, float] | None = None,
    step: int | None = None,
) -> None:
    """Show up to four runs' losses in one frame; live, a slider lights a step.

    runs: name -> the losses of steps 1, 2, ..., or a dict from step to loss.
    levels: name -> a loss that is drawn as a line across, such as a baseline's.
    step: the one that is lit at first; by default the last that all runs have.
    Raises ValueError for no run, more than four, or a run without a step.
    """
    read_runs = read(runs)
    steps = sorted({step for run in read_runs for step in run.steps})
    common = [s for s in steps if all(run.at(s) is not None for run in read_runs)]
    start = step if step is not None else (common or steps)[-1]
    if start not in steps:
        span = f"{steps[0]} to {steps[-1]}"
        raise ValueError(f"loss_curves: no run has a step {start}; they have {span}")
    marks = dict(levels or {})
    _interactive.present(
        lambda at: draw(read_runs, marks, at),
        (start,),
        lambda widgets: [widgets.SelectionSlider(options=steps, value=start, description="step")],
    )


def read(runs: Mapping[str, Losses]) -> tuple[Run, ...]:
    """The runs as steps and losses."""
    if not 0 < len(runs) <= len(COLOURS):
        raise ValueError(f"loss_curves shows 1 to {len(COLOURS)} runs, got {len(runs)}")
    found = []
    for name, losses in runs.items():
        pairs = losses if isinstance(losses, Mapping) else dict(enumerate(losses, 1))
        if not pairs:
            raise ValueError(f"loss_curves: the run {name!r} has no step")
        steps = tuple(sorted(int(step) for step in pairs))
        values = tuple(float(pairs[step]) for step in steps)
        found.append(Run(name, steps, tuple(v if math.isfinite(v) else math.nan for v in values)))
    return tuple(found)


def draw(runs: Sequence[Run], levels: Mapping[str, float], step: int) -> tuple[Figure, str]:
    """The figure with one step lit, and its alternative text."""
    words = sentence(runs)
    top = title_height("one line") + 12
    canvas = Canvas(top + HIGH + 50 + ROW * -(-len(runs) // 2) + 18)
    canvas.title(words)
    values = [v for run in runs for v in run.losses if math.isfinite(v)] + list(levels.values())
    low, high = min(values, default=0.0), max(values, default=1.0)
    low = 0.0 if 0 <= low < 0.4 * high else low - 0.05 * (high - low)
    high += 0.04 * (high - low) or 1.0
    first, last = min(run.steps[0] for run in runs), max(run.steps[-1] for run in runs)
    right = WIDTH - MARGIN - 8
    axes = Axes(
        canvas, LEFT, top, right - LEFT, HIGH,
        x=(first, max(last, first + 1)), y=(low, high),
    )  # fmt: skip
    ticks = round_steps(low, high)
    axes.grid_y(ticks, [number(tick, 3) for tick in ticks])
    places = [s for s in round_steps(first, last) if axes.px(s) < right - 60]
    axes.labels_x(places, [f"{s:g}" for s in places])
    canvas.text(right, axes.bottom + 16, "step", size=TEXT, colour=MUTED, ha="right")
    order = list(enumerate(runs))
    for k, run in order if len(runs) == 2 else reversed(order):  # the first of many lies on top
        # Of two runs the first is a band below the other, so that it shows where they are equal.
        axes.curve(run.steps, run.losses, colour=_colour(runs, k), line=_line(runs, k))
    _draw_levels(canvas, axes, levels)
    x = axes.px(step)
    canvas.line([(x, top), (x, axes.bottom)], colour=INK, dashed=True)
    _draw_legend(canvas, runs, axes.bottom + 44, step)
    return canvas.finish(), describe(runs, levels, step)


def _draw_levels(canvas: Canvas, axes: Axes, levels: Mapping[str, float]) -> None:
    """Dashed lines with their names at the left, where a loss is still high."""
    room = math.inf
    for rank, (name, level) in enumerate(sorted(levels.items(), key=lambda pair: -pair[1])):
        y = axes.py(level)
        canvas.line([(axes.left, y), (axes.right, y)], colour=INK, line=1.2, dashed=True)
        at = y - 11 if rank == 0 else max(y + 11, room)
        told = f"{name}, {number(level, 3)}"
        wide = text_width(told, size=TEXT)
        canvas.boxes([(axes.left + 4, at - 8, wide + 6, 16)], [CARD], edge="none")
        canvas.text(axes.left + 7, at, told, size=TEXT)
        room = at + 18


def _draw_legend(canvas: Canvas, runs: Sequence[Run], top: float, step: int) -> None:
    half = (WIDTH - 2 * MARGIN) / 2
    for k, run in enumerate(runs):
        x, y = MARGIN + half * (k % 2), top + ROW * (k // 2)
        canvas.line([(x, y), (x + 24, y)], colour=_colour(runs, k), line=_line(runs, k))
        loss = run.at(step)
        told = "no loss" if loss is None else "not finite" if math.isnan(loss) else number(loss, 4)
        canvas.text(x + 32, y, f"{run.name}: {told} at step {step}", size=TEXT)


def _colour(runs: Sequence[Run], k: int) -> str:
    return BAND if len(runs) == 2 and k == 0 else COLOURS[k]


def _line(runs: Sequence[Run], k: int) -> float:
    return 6.0 if len(runs) == 2 and k == 0 else 2.0


def first_difference(one: Run, other: Run) -> tuple[int, float] | None:
    """The first step that both runs have at which the losses differ, and by how much."""
    for step, loss in zip(other.steps, other.losses, strict=True):
        mine = one.at(step)
        if mine is not None and mine != loss and not (math.isnan(mine) and math.isnan(loss)):
            return step, loss - mine
    return None


def sentence(runs: Sequence[Run]) -> str:
    """What the curves show, as the figure's title."""
    one = runs[0]
    ends = f"from {number(one.losses[0], 3)} to {number(one.losses[-1], 3)}"
    if len(runs) == 1:
        return f"The loss goes {ends} in {one.steps[-1]} steps."
    if len(runs) > 2:
        best = min(runs, key=lambda run: (math.isnan(run.losses[-1]), run.losses[-1]))
        return f"“{best.name}” ends lowest, at {number(best.losses[-1], 3)}."
    other = runs[1]
    common = [step for step in other.steps if one.at(step) is not None]
    if not common:
        return "The two runs have no step in common."
    found = first_difference(one, other)
    if found is None:
        return f"The same to the last bit in all {len(common)} steps that both have."
    step, gap = found
    pairs = zip(other.steps, other.losses, strict=True)
    gaps = [abs(loss - first) for s, loss in pairs if (first := one.at(s)) is not None]
    apart = [gap for gap in gaps if math.isfinite(gap)]
    if not apart:
        return f"The two part at step {step}, where one is not finite."
    where = "" if len(apart) == len(gaps) else " where both are finite"
    return f"The two part at step {step}, and are up to {number(max(apart), 2)} apart{where}."


def describe(runs: Sequence[Run], levels: Mapping[str, float], step: int) -> str:
    """The alternative text: each run's ends and its loss at the lit step, and the levels."""
    parts = [f"Loss curves. {sentence(runs)}"]
    for run in runs:
        at = run.at(step)
        lit = "no loss" if at is None else number(at, 4)
        parts.append(
            f"{run.name}: {number(run.losses[0], 4)} at step {run.steps[0]}, "
            f"{number(run.losses[-1], 4)} at step {run.steps[-1]}, {lit} at the lit step {step}."
        )
    parts += [f"Level {name}: {number(level, 3)}." for name, level in levels.items()]
    return " ".join(parts)
