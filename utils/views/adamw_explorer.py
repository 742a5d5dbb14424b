"""What AdamW makes of the gradients of one weight: two averages, and the step that they give."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure

from utils.notebook.style import GRADIENT, INK, MUTED, PARAMETER, STORAGE, VIEW, WIDTH
from utils.views import _interactive
from utils.views._axes import TEXT, Axes, round_steps
from utils.views._canvas import MARGIN, Canvas, title_height
from utils.views._numbers import number

LEFT, HIGH, GAP = 176, 74, 18
MOST = 400  # steps
BETAS_1, BETAS_2 = (0.0, 0.5, 0.8, 0.9, 0.95, 0.99), (0.9, 0.95, 0.99, 0.999)


@dataclass(frozen=True)
class Track:
    """What AdamW knows after each step: m, √v (corrected or not), and its step in units of lr."""

    gradients: tuple[float, ...]
    means: tuple[float, ...]
    roots: tuple[float, ...]
    updates: tuple[float, ...]


def adamw_explorer(
    gradients: Sequence[float],
    *,
    betas: tuple[float, float] = (0.9, 0.999),
    step: int | None = None,
    name: str = "one weight",
) -> None:
    """Show g, m, √v and the update m / √v of one weight over its steps; live, betas and step move.

    gradients: those of one weight, step after step, 2 to 400 finite numbers.
    betas: those at first; each of BETAS_1 and BETAS_2 can be chosen. step: the one that is lit.
    Raises ValueError for other gradients, betas that are not offered or a step that there is not.
    """
    found = tuple(float(g) for g in gradients)
    if not 1 < len(found) <= MOST or not all(map(math.isfinite, found)):
        raise ValueError(f"adamw_explorer needs 2 to {MOST} finite gradients, got {len(found)}")
    if betas[0] not in BETAS_1 or betas[1] not in BETAS_2:
        raise ValueError(f"adamw_explorer offers betas of {BETAS_1} and {BETAS_2}, got {betas}")
    start = len(found) if step is None else step
    if not 1 <= start <= len(found):
        raise ValueError(f"adamw_explorer: expected a step from 1 to {len(found)}, got {start}")
    _interactive.present(
        lambda one, two, corrected, at: draw(track(found, (one, two), corrected), at, name),
        (*betas, True, start),
        lambda widgets: [
            widgets.SelectionSlider(options=BETAS_1, value=betas[0], description="beta 1"),
            widgets.SelectionSlider(options=BETAS_2, value=betas[1], description="beta 2"),
            widgets.Checkbox(value=True, description="bias correction", indent=False),
            widgets.IntSlider(value=start, min=1, max=len(found), description="step"),
        ],
    )


def track(
    gradients: Sequence[float], betas: tuple[float, float], corrected: bool, eps: float = 1e-8
) -> Track:
    """AdamW's averages and its step in units of lr, without weight decay, for each gradient."""
    m = v = 0.0
    means, roots, updates = [], [], []
    for count, g in enumerate(gradients, 1):
        m = betas[0] * m + (1 - betas[0]) * g
        v = betas[1] * v + (1 - betas[1]) * g * g
        share = [1 - beta**count if corrected else 1.0 for beta in betas]
        mean, root = m / share[0], math.sqrt(v / share[1])
        means.append(mean)
        roots.append(root)
        updates.append(-mean / (root + eps))
    return Track(tuple(gradients), tuple(means), tuple(roots), tuple(updates))


def draw(found: Track, step: int, name: str) -> tuple[Figure, str]:
    """The figure with one step lit, and its alternative text."""
    words = sentence(found, step)
    top = title_height("one line") + 4
    canvas = Canvas(top + 4 * (HIGH + GAP) + 34)
    canvas.title(words)
    steps = range(1, len(found.gradients) + 1)
    # The two averages have the gradient's own scale, so that their sizes can be compared.
    scale = max((abs(g) for g in (*found.gradients, *found.roots)), default=1.0) or 1.0
    reach = max(1.25, max(abs(u) for u in found.updates) * 1.05)
    rows = (
        ("gradient g", found.gradients, GRADIENT.colour, (-scale, scale)),
        ("mean m", found.means, STORAGE.colour, (-scale, scale)),
        ("root √v", found.roots, VIEW.colour, (0.0, scale)),
        ("step in lr", found.updates, PARAMETER.colour, (-reach, reach)),
    )
    for row, (label, values, colour, span) in enumerate(rows):
        y = top + row * (HIGH + GAP)
        axes = Axes(
            canvas, LEFT, y, WIDTH - MARGIN - 8 - LEFT, HIGH, x=(1, len(values)), y=span
        )  # fmt: skip
        most = float(math.floor(reach))  # a whole learning rate at least
        ends = (-most, 0.0, most) if row == 3 else (0.0,)
        axes.grid_y(ends, [f"{end:+g}" if end else "0" for end in ends])
        canvas.text(MARGIN, y + HIGH / 2 - 11, label, size=TEXT, colour=colour)
        canvas.text(MARGIN, y + HIGH / 2 + 11, number(values[step - 1], 3), size=TEXT, colour=INK)
        axes.curve(steps, values, colour=colour, line=2)
        x = axes.px(step)
        canvas.line([(x, y - GAP / 2), (x, y + HIGH + GAP / 2)], colour=INK, dashed=True)
        canvas.marker(x, axes.py(values[step - 1]), "o", size=9, fill=colour)
    places = [s for s in round_steps(1, len(steps)) if axes.px(s) < WIDTH - MARGIN - 60]
    axes.labels_x(places, [f"{s:g}" for s in places])
    canvas.text(WIDTH - MARGIN, axes.bottom + 16, "step", size=TEXT, colour=MUTED, ha="right")
    return canvas.finish(), describe(found, step, name)


def sentence(found: Track, step: int) -> str:
    """What happens at the lit step, as the figure's title."""
    g, moved = found.gradients[step - 1], found.updates[step - 1]
    way = "up" if moved > 0 else "down"
    moves = f"the weight goes {way} by {number(abs(moved), 2)} lr" if moved else "nothing moves"
    return f"Step {step}: the gradient is {number(g, 2)}, and {moves}."


def describe(found: Track, step: int, name: str) -> str:
    """The alternative text: the four numbers of the lit step, and the largest step."""
    at = step - 1
    most = max(range(len(found.updates)), key=lambda k: abs(found.updates[k]))
    return (
        f"AdamW on {name}, {len(found.gradients)} steps. {sentence(found, step)} "
        f"m is {number(found.means[at], 3)}, the root of v {number(found.roots[at], 3)}. "
        f"The largest step is number {most + 1}, {number(found.updates[most], 3)} lr."
    )
