"""The losses of runs over their steps, with levels to beat, or how far apart they may lie."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from utils.notebook.style import CARD, GRADIENT, INK, PARAMETER, STORAGE, VIEW
from utils.views._canvas import INNER, MARGIN, RIGHT, Axes, Canvas, Drawing, decades, round_steps
from utils.views._numbers import number, require
from utils.views._text_outlines import text_width
from utils.views._view import choice, present

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
    bands: Mapping[str, Losses] | None = None,
    step: int | None = None,
) -> None:
    """Show up to four runs' losses in one frame; live, a slider lights a step.

    runs: name -> the losses of steps 1, 2, ..., or a dict from step to loss.
    levels: name -> a loss that is drawn as a line across, such as a baseline's.
    bands: name of each run but the first -> how far it may lie from the first, at each step. Then
        the picture has these distances and their bands in place of the losses.
    step: the one that is lit at first; by default the last that all runs have.
    Raises ValueError for no run, more than four, a run without a step or a band, a band without a
    run, or a step that no run has.
    """
    found = read(runs)
    edges = read(bands) if bands else []
    if bands and list(bands) != list(runs)[1:]:
        raise ValueError(
            f"loss_curves: expected bands for {list(runs)[1:]}, in this order, got {list(bands)}"
        )
    steps = sorted({step for run in found for step in run.steps})
    if step is None:
        step = ([s for s in steps if all(run.at(s) is not None for run in found)] or steps)[-1]

    def drawn(at: int) -> Drawing:
        return draw_bands(found, edges, at) if edges else draw(found, levels or {}, at)

    present(drawn, choice("step", step, steps))


def read(runs: Mapping[str, Losses]) -> list[Run]:
    require("loss_curves", len(runs), "runs", len(COLOURS))
    found = []
    for name, losses in runs.items():
        pairs = losses if isinstance(losses, Mapping) else dict(enumerate(losses, 1))
        if not pairs:
            raise ValueError(f"loss_curves: the run {name!r} has no step")
        steps = tuple(sorted(int(step) for step in pairs))
        values = [float(pairs[step]) for step in steps]
        found.append(Run(name, steps, tuple(v if math.isfinite(v) else math.nan for v in values)))
    return found


def draw(runs: Sequence[Run], levels: Mapping[str, float], step: int) -> Drawing:
    canvas = Canvas(sentence(runs))
    values = [v for run in runs for v in run.losses if math.isfinite(v)] + list(levels.values())
    low, high = min(values, default=0.0), max(values, default=1.0)
    low = 0.0 if 0 <= low < 0.4 * high else low - 0.05 * (high - low)
    high += 0.04 * (high - low) or 1.0
    first, last = min(run.steps[0] for run in runs), max(run.steps[-1] for run in runs)
    right = RIGHT - 8
    x = first, max(last, first + 1)
    axes = Axes(canvas, LEFT, canvas.top + 12, right - LEFT, HIGH, x=x, y=(low, high))
    axes.grid_y(round_steps(low, high), lambda tick: number(tick, 3))
    axes.steps_x("step", right)
    looks = [(colour, 2.0) for colour in COLOURS[: len(runs)]]
    order = list(zip(runs, looks, strict=True))[::-1]  # the first of many lies on top
    if len(runs) == 2:
        # Of two runs the first is a band below the other, so that it shows where they are equal.
        looks[0] = BAND, 6.0
        order = list(zip(runs, looks, strict=True))
    for run, look in order:
        axes.curve(run.steps, run.losses, *look)
    room = math.inf  # names stand at the left, where a loss is still high
    for rank, (name, level) in enumerate(sorted(levels.items(), key=lambda pair: -pair[1])):
        y = axes.py(level)
        canvas.line([(LEFT, y), (right, y)], INK, 1.2, dashed=True)
        at = y - 11 if rank == 0 else max(y + 11, room)
        told = f"{name}, {number(level, 3)}"
        canvas.box((LEFT + 4, at - 8, text_width(told) + 6, 16), CARD)
        canvas.text(LEFT + 7, at, told)
        room = at + 18
    axes.cursor(step)
    below = axes.bottom + 44
    parts = [f"Loss curves. {canvas.title}"]
    for k, (run, look) in enumerate(zip(runs, looks, strict=True)):
        left, y = MARGIN + INNER / 2 * (k % 2), below + ROW * (k // 2)
        canvas.line([(left, y), (left + 24, y)], *look)
        loss = run.at(step)
        lit = "no loss" if loss is None else number(loss, 4)
        told = "not finite" if lit == "nan" else lit
        canvas.text(left + 32, y, f"{run.name}: {told} at step {step}")
        parts.append(
            f"{run.name}: {number(run.losses[0], 4)} at step {run.steps[0]}, "
            f"{number(run.losses[-1], 4)} at step {run.steps[-1]}, {lit} at the lit step {step}."
        )
    parts += [f"Level {name}: {number(level, 3)}." for name, level in levels.items()]
    return canvas.finish(below + ROW * -(-len(runs) // 2) + 24, " ".join(parts))


def draw_bands(runs: Sequence[Run], bands: Sequence[Run], step: int) -> Drawing:
    """The distances of the runs from the first, each below the edge of its band if all is well."""
    apart = [distances(runs[0], run) for run in runs[1:]]
    canvas = Canvas(band_sentence(apart, bands))
    values = [v for run in [*apart, *bands] for v in run.losses if 0 < v < math.inf]
    low, high = min(values, default=1e-3) / 2, max(values, default=1.0) * 2
    first, last = runs[0].steps[0], max(run.steps[-1] for run in runs)
    x, right = (first, max(last, first + 1)), RIGHT - 8
    axes = Axes(canvas, LEFT, canvas.top + 12, right - LEFT, HIGH, x=x, y=(low, high), log="y")
    axes.grid_y(decades(low, high), lambda tick: number(tick, 1))
    axes.steps_x("step", right)
    parts = [f"Distances from {runs[0].name}. {canvas.title}"]
    below = axes.bottom + 44
    for k, (run, band) in enumerate(zip(apart, bands, strict=True)):
        colour, y = COLOURS[k], below + ROW * k
        axes.curve(run.steps, [v if v > 0 else math.nan for v in run.losses], colour)
        edge = zip(band.steps, band.losses, strict=True)
        canvas.line([(axes.px(at), axes.py(v)) for at, v in edge], colour, 1.2, dashed=True)
        canvas.line([(MARGIN, y), (MARGIN + 24, y)], colour, 2.0)
        lit, most = run.at(step), band.at(step)
        told = "no loss" if lit is None else "not finite" if math.isnan(lit) else number(lit, 2)
        room = "" if most is None else f", where the band ends at {number(most, 2)}"
        words = f"{run.name}: {told} from {runs[0].name} at step {step}{room}"
        canvas.text(MARGIN + 32, y, words)
        parts.append(f"{words}.")
    axes.cursor(step)
    return canvas.finish(below + ROW * len(apart) + 8, " ".join(parts))


def distances(one: Run, other: Run) -> Run:
    """How far `other` lies from `one`, at the steps that both have."""
    pairs = zip(other.steps, other.losses, strict=True)
    found = {s: abs(loss - mine) for s, loss in pairs if (mine := one.at(s)) is not None}
    return Run(other.name, tuple(found), tuple(found.values()))


def band_sentence(apart: Sequence[Run], bands: Sequence[Run]) -> str:
    left = []
    for run, band in zip(apart, bands, strict=True):
        pairs = zip(run.steps, run.losses, strict=True)
        outside = [s for s, v in pairs if (most := band.at(s)) is not None and not v <= most]
        left += [f"“{run.name}” leaves its band at step {outside[0]}"] if outside else []
    if not left:
        return "Every run stays in its band."
    return f"{', '.join(left)}."


def first_difference(one: Run, other: Run) -> int | None:
    """The first step that both runs have at which the losses differ."""
    for step, loss in zip(other.steps, other.losses, strict=True):
        mine = one.at(step)
        if mine is not None and mine != loss and not (math.isnan(mine) and math.isnan(loss)):
            return step
    return None


def sentence(runs: Sequence[Run]) -> str:
    one = runs[0]
    if len(runs) == 1:
        ends = f"from {number(one.losses[0], 3)} to {number(one.losses[-1], 3)}"
        return f"The loss goes {ends} in {one.steps[-1]} steps."
    if len(runs) > 2:
        best = min(runs, key=lambda run: (math.isnan(run.losses[-1]), run.losses[-1]))
        return f"“{best.name}” ends lowest, at {number(best.losses[-1], 3)}."
    pairs = zip(runs[1].steps, runs[1].losses, strict=True)
    gaps = [abs(loss - mine) for s, loss in pairs if (mine := one.at(s)) is not None]
    if not gaps:
        return "The two runs have no step in common."
    found = first_difference(one, runs[1])
    if found is None:
        return f"The same to the last bit in all {len(gaps)} steps that both have."
    apart = [gap for gap in gaps if math.isfinite(gap)]
    if not apart:
        return f"The two part at step {found}, where one is not finite."
    where = "" if len(apart) == len(gaps) else " where both are finite"
    return f"The two part at step {found}, and are up to {number(max(apart), 2)} apart{where}."
