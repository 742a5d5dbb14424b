"""Where a port leaves its original: the difference after each stage of a forward pass."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from matplotlib.figure import Figure
from numpy.typing import ArrayLike
from torch import Tensor

from utils.notebook.figures import show
from utils.notebook.style import GRADIENT, INK, MUTED, RULE, VIEW, WIDTH
from utils.views._canvas import MARGIN, SMALL, Canvas, title_height
from utils.views._numbers import number
from utils.views._text_outlines import text_width

ROW = 28
LOW, HIGH = -9, 1  # powers of ten at the ends of the axis
RIGHT = WIDTH - MARGIN - 96
MOST = 40  # stages
ABSENT = "not there"


@dataclass(frozen=True)
class Stage:
    """One stage: the largest difference as a part of the largest value; infinite where there is
    none to be had, and then `why`."""

    name: str
    error: float
    why: str = ""


def port_difference(
    original: Mapping[str, ArrayLike], port: Mapping[str, ArrayLike], *, tolerance: float = 1e-5
) -> None:
    """Show by how much a port differs after each stage, the first that is too much lit.

    Args:
        original: name -> array or tensor, in the order of the forward pass.
        port: the same of the port; the names of `original` are looked up in it.
        tolerance: largest difference, as a part of the stage's largest value, that rounding
            explains.

    Raises:
        ValueError: for no stages, or more than 40.
    """
    if not 0 < len(original) <= MOST:
        raise ValueError(f"port_difference shows 1 to {MOST} stages, got {len(original)}")
    figure, alt = draw(measure(original, port), tolerance)
    show(figure, alt=alt)


def measure(original: Mapping[str, ArrayLike], port: Mapping[str, ArrayLike]) -> list[Stage]:
    """Return the difference of each stage."""
    return [_measured(name, _tensor(want), port.get(name)) for name, want in original.items()]


def _measured(name: str, want: Tensor, got: ArrayLike | None) -> Stage:
    if got is None:
        return Stage(name, math.inf, ABSENT)
    got = _tensor(got)
    if got.shape != want.shape:
        return Stage(name, math.inf, f"shape {tuple(got.shape)}, not {tuple(want.shape)}")
    finite = want.isfinite()  # masked scores are -inf in both
    if not torch.allclose(got[~finite], want[~finite], equal_nan=True):
        return Stage(name, math.inf, "where the original is not finite, not the same")
    if not bool(got[finite].isfinite().all()):
        return Stage(name, math.inf, "NaN or infinite")
    want, got = want[finite], got[finite]
    if not want.numel():
        return Stage(name, 0.0)
    scale = want.abs().max().item() or 1.0
    return Stage(name, (got - want).abs().max().item() / scale)


def _tensor(values: ArrayLike) -> Tensor:
    return torch.as_tensor(values).detach().double().cpu()


def first_different(stages: list[Stage], tolerance: float) -> int | None:
    """Return the place of the first stage that differs by more than the tolerance."""
    return next((k for k, stage in enumerate(stages) if stage.error > tolerance), None)


def draw(stages: list[Stage], tolerance: float) -> tuple[Figure, str]:
    """Return the figure for some stages, and its alternative text."""
    words = sentence(stages, tolerance)
    first = first_different(stages, tolerance)
    longest = max(text_width(s.name, size=12, mono=True) for s in stages)
    left = MARGIN + min(max(longest, 90), 260) + 16
    top = title_height(words) + 30
    bottom = top + ROW * len(stages)
    canvas = Canvas(bottom + 44)
    canvas.title(words)

    def px(error: float) -> float:
        power = math.log10(max(error, 10.0**LOW)) if math.isfinite(error) else HIGH
        return left + (min(power, HIGH) - LOW) / (HIGH - LOW) * (RIGHT - left)

    for power in range(LOW + 1, HIGH + 1, 2):
        x = px(10.0**power)
        canvas.line([(x, top - 12), (x, bottom - 8)], colour=RULE, line=0.7)
        canvas.note(x, bottom + 4, "1" if power == 0 else f"1e{power}", ha="center")
    edge = px(tolerance)
    canvas.line([(edge, top - 14), (edge, bottom - 8)], colour=INK, line=1.2, dashed=True)
    canvas.note(edge, top - 22, f"allowed: {number(tolerance, 1)}", ha="center")
    canvas.note((left + RIGHT) / 2, bottom + 24, "largest difference / largest value", ha="center")
    for k, stage in enumerate(stages):
        y = top + ROW * k
        lit, after = k == first, first is not None and k > first
        good = stage.error <= tolerance
        colour = VIEW.colour if good else GRADIENT.colour if lit else "#dca08c" if after else MUTED
        if lit:
            canvas.boxes(
                [(MARGIN - 8, y - 13, WIDTH - 2 * MARGIN + 16, 26)],
                [GRADIENT.tint],
                edge="none",
                radius=6,
            )
            canvas.line([(edge, y - 13), (edge, y + 13)], colour=INK, line=1.2, dashed=True)
        canvas.text(MARGIN, y, stage.name, size=12, mono=True, colour=INK if not after else MUTED)
        canvas.line([(left, y), (px(stage.error), y)], colour=colour, line=2.4 if lit else 1.6)
        marker = "o" if good else GRADIENT.marker
        canvas.marker(px(stage.error), y, marker, size=11 if lit else 9, fill=colour, edge="none")
        told = "the same" if stage.error == 0 else stage.why or number(stage.error, 2)
        at = px(stage.error) + 12
        if stage.why:
            canvas.text(px(stage.error) - 14, y - 8, told, size=SMALL, colour=INK, ha="right")
        else:
            canvas.text(at, y, told, size=SMALL, colour=INK if lit else MUTED)
    return canvas.finish(), describe(stages, tolerance, words)


def sentence(stages: list[Stage], tolerance: float) -> str:
    """What the stages show, as the figure's title."""
    first = first_different(stages, tolerance)
    if first is None:
        largest = max(stage.error for stage in stages)
        if not largest:
            return f"All {len(stages)} stages are the same to the last bit."
        return f"All {len(stages)} stages agree: what is left, {number(largest, 1)}, is rounding."
    stage = stages[first]
    if stage.why == ABSENT:
        before = ", and all that comes before it is right" if first else ""
        return f"The port has no {stage.name} to compare{before}."
    if first == 0:
        return f"It differs from the first stage on: look into {stage.name}."
    if first == len(stages) - 1:
        return f"{stage.name} differs, and all that comes before it is right."
    return f"{stage.name} is the first to differ; what follows inherits it."


def describe(stages: list[Stage], tolerance: float, words: str) -> str:
    """Return the alternative text: each stage and its difference."""
    told = ", ".join(f"{stage.name} {stage.why or number(stage.error, 2)}" for stage in stages)
    return (
        f"Difference of a port from its original after each stage, allowed {number(tolerance, 1)}. "
        f"{words} {told}."
    )
