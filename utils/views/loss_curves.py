"""The losses of runs, with levels to beat, or with bands for the distances from the first run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from utils.notebook.style import CARD, GRADIENT, INK, MUTED, PARAMETER, STORAGE, VIEW
from utils.views._canvas import INNER, MARGIN, RIGHT, Axes, Canvas, Drawing, decades, round_steps
from utils.views._numbers import number, require
from utils.views._text_outlines import text_width
from utils.views._view import present

COLOURS = (STORAGE.colour, GRADIENT.colour, VIEW.colour, PARAMETER.colour)
BAND = "#9fc3e0"  # pale storage blue
LEFT, HIGH, ROW = 84, 270, 24
LABEL = 28  # CSS pixels from the label of the y axis, which is below the title, to the frame
Losses = Sequence[float] | Mapping[int, float]
Runs = Mapping[str, Mapping[int, float]]  # name -> step -> loss, NaN where it was not finite


def loss_curves(
    runs: Mapping[str, Losses],
    *,
    levels: Mapping[str, float] | None = None,
    bands: Mapping[str, Losses] | None = None,
    step: int | None = None,
) -> None:
    """Show up to four runs' losses in one frame, and their values at one step.

    runs: name -> the losses of steps 1, 2, ..., or a dict from step to loss.
    levels: name -> a loss that is drawn as a horizontal line, such as the loss of a baseline.
    bands: the name of each run except the first -> at each step, the largest allowed distance of
        this run from the first run. With bands, the picture shows the distances and the bands
        instead of the losses.
    step: the step whose values are written, by default the last step that all runs have.

    Raises ValueError for no run, more than four runs, a run without a step, a step that no run has,
    or if the bands do not fit the runs.
    """
    losses = read(runs)
    edges = read(bands) if bands else {}
    if bands and list(bands) != list(runs)[1:]:
        raise ValueError(
            f"loss_curves: expected bands for {list(runs)[1:]}, in this order, got {list(bands)}"
        )
    steps = sorted({step for run in losses.values() for step in run})
    if step is None:
        step = ([s for s in steps if all(s in run for run in losses.values())] or steps)[-1]

    if step not in steps:
        raise ValueError(f"loss_curves: expected a step from {steps[0]} to {steps[-1]}, got {step}")
    present(lambda: draw_bands(losses, edges, step) if edges else draw(losses, levels or {}, step))


def read(runs: Mapping[str, Losses]) -> dict[str, dict[int, float]]:
    require("loss_curves", len(runs), "runs", len(COLOURS))
    series = {}
    for name, losses in runs.items():
        pairs = losses if isinstance(losses, Mapping) else dict(enumerate(losses, 1))
        if not pairs:
            raise ValueError(f"loss_curves: the run {name!r} has no step")
        ordered = ((int(step), float(pairs[step])) for step in sorted(pairs))
        series[name] = {step: loss if math.isfinite(loss) else math.nan for step, loss in ordered}
    return series


def draw(runs: Runs, levels: Mapping[str, float], step: int) -> Drawing:
    canvas = Canvas(sentence(runs))
    values = [v for run in runs.values() for v in run.values() if math.isfinite(v)]
    values += levels.values()
    low, high = min(values, default=0.0), max(values, default=1.0)
    low = 0.0 if 0 <= low < 0.4 * high else low - 0.05 * (high - low)
    high += 0.04 * (high - low) or 1.0
    first, last = min(map(min, runs.values())), max(map(max, runs.values()))
    right = RIGHT - 8
    x = first, max(last, first + 1)
    canvas.text(MARGIN, canvas.top + 2, "loss", MUTED)
    axes = Axes(canvas, LEFT, canvas.top + LABEL, right - LEFT, HIGH, x=x, y=(low, high))
    axes.grid_y(round_steps(low, high), lambda tick: number(tick, 3))
    axes.steps_x("step", right)
    looks = [(colour, 2.0) for colour in COLOURS[: len(runs)]]
    # if there are many runs, the first run is drawn on top
    order = list(zip(runs.values(), looks, strict=True))[::-1]
    if len(runs) == 2:
        # Draw the first of two runs as a wide band below the second, so that both are visible where
        # they are equal.
        looks[0] = BAND, 6.0
        order = list(zip(runs.values(), looks, strict=True))
    for run, look in order:
        axes.curve([*run], [*run.values()], *look)
    room = math.inf  # names are at the left, where a loss is still high
    for rank, (name, level) in enumerate(sorted(levels.items(), key=lambda pair: -pair[1])):
        y = axes.py(level)
        canvas.line([(LEFT, y), (right, y)], INK, 1.2, dashed=True)
        at = y - 11 if rank == 0 else max(y + 11, room)
        label = f"{name}, {number(level, 3)}"
        canvas.box((LEFT + 4, at - 8, text_width(label) + 6, 16), CARD)
        canvas.text(LEFT + 7, at, label)
        room = at + 18
    axes.cursor(step)
    below = axes.bottom + 44
    parts = [f"Loss curves. {canvas.title}"]
    for k, ((name, run), look) in enumerate(zip(runs.items(), looks, strict=True)):
        left, y = MARGIN + INNER / 2 * (k % 2), below + ROW * (k // 2)
        canvas.line([(left, y), (left + 24, y)], *look)
        lit = number(run[step], 4) if step in run else "no loss"
        value = "not finite" if lit == "nan" else lit
        canvas.text(left + 32, y, f"{name}: {value} at step {step}")
        parts.append(
            f"{name}: {number(run[min(run)], 4)} at step {min(run)}, "
            f"{number(run[max(run)], 4)} at step {max(run)}, {lit} at the lit step {step}."
        )
    parts += [f"Level {name}: {number(level, 3)}." for name, level in levels.items()]
    return canvas.finish(below + ROW * -(-len(runs) // 2) + 24, " ".join(parts))


def draw_bands(runs: Runs, bands: Runs, step: int) -> Drawing:
    """Draw the distances from the first run. Each distance should be inside its band."""
    base, *others = runs
    apart = {name: distances(runs[base], runs[name]) for name in others}
    canvas = Canvas(band_sentence(apart, bands))
    every = [*apart.values(), *bands.values()]
    values = [v for run in every for v in run.values() if 0 < v < math.inf]
    low, high = min(values, default=1e-3) / 2, max(values, default=1.0) * 2
    first, last = min(runs[base]), max(map(max, runs.values()))
    x, right = (first, max(last, first + 1)), RIGHT - 8
    canvas.text(MARGIN, canvas.top + 2, f"distance of the loss from “{base}”", MUTED)
    axes = Axes(canvas, LEFT, canvas.top + LABEL, right - LEFT, HIGH, x=x, y=(low, high), log="y")
    axes.grid_y(decades(low, high), lambda tick: number(tick, 1))
    axes.steps_x("step", right)
    parts = [f"Distances from {base}. {canvas.title}"]
    below = axes.bottom + 44
    for k, (name, run) in enumerate(apart.items()):
        colour, y, band = COLOURS[k], below + ROW * k, bands[name]
        axes.curve([*run], [v if v > 0 else math.nan for v in run.values()], colour)
        edge = [(axes.px(at), axes.py(v)) for at, v in band.items()]
        canvas.line(edge, colour, 1.2, dashed=True)
        canvas.line([(MARGIN, y), (MARGIN + 24, y)], colour, 2.0)
        lit = run.get(step)
        value = "no loss" if lit is None else "not finite" if math.isnan(lit) else number(lit, 2)
        room = f", where the band ends at {number(band[step], 2)}" if step in band else ""
        words = f"{name}: {value} from {base} at step {step}{room}"
        canvas.text(MARGIN + 32, y, words)
        parts.append(f"{words}.")
    axes.cursor(step)
    return canvas.finish(below + ROW * len(apart) + 8, " ".join(parts))


def distances(base: Mapping[int, float], other: Mapping[int, float]) -> dict[int, float]:
    """Return the distance of two runs, at the steps that both have."""
    return {step: abs(loss - base[step]) for step, loss in other.items() if step in base}


def band_sentence(apart: Runs, bands: Runs) -> str:
    left = []
    for name, run in apart.items():
        outside = [s for s, v in run.items() if s in bands[name] and not v <= bands[name][s]]
        left += [f"“{name}” leaves its band at step {outside[0]}"] if outside else []
    return f"{', '.join(left)}." if left else "Every run stays in its band."


def first_difference(base: Mapping[int, float], other: Mapping[int, float]) -> int | None:
    """Return the first common step of both runs at which their losses differ."""
    differ = (s for s in other if s in base and base[s] != other[s])
    return next((s for s in differ if not math.isnan(base[s]) or not math.isnan(other[s])), None)


def sentence(runs: Runs) -> str:
    first = next(iter(runs.values()))
    if len(runs) == 1:
        ends = f"from {number(first[min(first)], 3)} to {number(first[max(first)], 3)}"
        return f"The loss goes {ends} in {max(first)} steps."
    if len(runs) > 2:
        last = {name: run[max(run)] for name, run in runs.items()}
        best = min(last, key=lambda name: (math.isnan(last[name]), last[name]))
        return f"“{best}” ends lowest, at {number(last[best], 3)}."
    other = list(runs.values())[1]
    gaps = list(distances(first, other).values())
    if not gaps:
        return "The two runs have no step in common."
    step = first_difference(first, other)
    if step is None:
        return f"The runs are the same to the last bit in all {len(gaps)} common steps."
    apart = [gap for gap in gaps if math.isfinite(gap)]
    if not apart:
        return f"The two runs part at step {step}, at which one is not finite."
    where = "" if len(apart) == len(gaps) else " where both are finite"
    return f"The two runs part at step {step}, and are up to {number(max(apart), 2)} apart{where}."
