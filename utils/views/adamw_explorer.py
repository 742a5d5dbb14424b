"""How AdamW uses the gradients of one weight: two averages, and the step that they give."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from utils.notebook.style import GRADIENT, INK, PARAMETER, STORAGE, VIEW
from utils.views._canvas import MARGIN, RIGHT, Axes, Canvas, Drawing
from utils.views._controls import choice, slider, switch
from utils.views._numbers import number
from utils.views._view import present

LEFT, HIGH, GAP = 176, 74, 18
MOST = 400  # steps
BETAS_1, BETAS_2 = (0.0, 0.5, 0.8, 0.9, 0.95, 0.99), (0.9, 0.95, 0.99, 0.999)


@dataclass(frozen=True)
class Track:
    """AdamW's state after each step: m and √v (corrected or not), and the update in units of lr."""

    gradients: Sequence[float]
    means: list[float]
    roots: list[float]
    updates: list[float]


def adamw_explorer(
    gradients: Sequence[float], *, step: int | None = None, name: str = "one weight"
) -> None:
    """Show g, m, √v and the update m / √v of one weight over its steps.

    In a live view, controls set the betas, the bias correction and the step.

    gradients: the gradient of one weight at each step, 2 to 400 finite numbers.
    step: the lit step.

    Raises ValueError for other gradients, or for a step without a gradient.
    """
    found = [float(g) for g in gradients]
    if not 1 < len(found) <= MOST or not all(map(math.isfinite, found)):
        raise ValueError(f"adamw_explorer needs 2 to {MOST} finite gradients, got {len(found)}")
    present(
        lambda one, two, corrected, at: draw(track(found, (one, two), corrected), at, name),
        choice("beta 1", 0.9, BETAS_1),
        choice("beta 2", 0.999, BETAS_2),
        switch("bias correction", True),
        slider("step", len(found) if step is None else step, 1, len(found)),
    )


def track(gradients: Sequence[float], betas: tuple[float, float], corrected: bool) -> Track:
    """Return AdamW's averages and updates for the gradients, without weight decay."""
    m = v = 0.0
    found = Track(gradients, [], [], [])
    for count, g in enumerate(gradients, 1):
        m = betas[0] * m + (1 - betas[0]) * g
        v = betas[1] * v + (1 - betas[1]) * g * g
        share = [1 - beta**count if corrected else 1.0 for beta in betas]
        mean, root = m / share[0], math.sqrt(v / share[1])
        found.means.append(mean)
        found.roots.append(root)
        found.updates.append(-mean / (root + 1e-8))
    return found


def draw(found: Track, step: int, name: str) -> Drawing:
    at, count = step - 1, len(found.gradients)
    moved = found.updates[at]
    way = f"the weight goes {'up' if moved > 0 else 'down'} by {number(abs(moved), 2)} lr"
    gradient = number(found.gradients[at], 2)
    canvas = Canvas(
        f"Step {step}: the gradient is {gradient}, and {way if moved else 'nothing moves'}."
    )
    # The two averages use the gradient's scale, so that their sizes can be compared.
    scale = max(abs(g) for g in (*found.gradients, *found.roots)) or 1.0
    reach = max(1.25, max(map(abs, found.updates)) * 1.05)
    whole = float(math.floor(reach))  # at least one learning rate
    rows = (
        ("gradient g", found.gradients, GRADIENT, (-scale, scale), (0.0,)),
        ("mean m", found.means, STORAGE, (-scale, scale), (0.0,)),
        ("root √v", found.roots, VIEW, (0.0, scale), (0.0,)),
        ("step in lr", found.updates, PARAMETER, (-reach, reach), (-whole, 0.0, whole)),
    )
    y = canvas.top + 4
    for label, values, look, span, ends in rows:
        axes = Axes(canvas, LEFT, y, RIGHT - 8 - LEFT, HIGH, x=(1, count), y=span)
        axes.grid_y(ends, lambda end: f"{end:+g}" if end else "0")
        canvas.text(MARGIN, y + HIGH / 2 - 11, label, look.colour)
        canvas.text(MARGIN, y + HIGH / 2 + 11, number(values[at], 3))
        axes.curve(range(1, count + 1), values, look.colour)
        axes.cursor(step, reach=GAP / 2)
        canvas.marker(axes.px(step), axes.py(values[at]), "o", 9, look.colour, edge=INK)
        y += HIGH + GAP
    axes.steps_x("step")
    most = max(range(count), key=lambda k: abs(found.updates[k]))
    return canvas.finish(
        y + 34,
        f"AdamW on {name}, {count} steps. {canvas.title} "
        f"m is {number(found.means[at], 3)}, the root of v {number(found.roots[at], 3)}. "
        f"The largest step is number {most + 1}, {number(found.updates[most], 3)} lr.",
    )
