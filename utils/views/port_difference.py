"""The differences between a port and its original, after each stage of a forward pass."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from utils.notebook.style import GRADIENT, INK, MUTED, RULE, VIEW
from utils.views._canvas import INNER, MARGIN, RIGHT, SMALL, Canvas, Drawing
from utils.views._numbers import number, require
from utils.views._text_outlines import text_width
from utils.views._view import present

ROW = 28
LOW, HIGH = -9, 1  # powers of ten at the ends of the axis
END = RIGHT - 96
MOST = 40  # stages
ALLOWED = 1e-5  # a difference that rounding explains, relative to a stage's largest value
ABSENT = "not there"


@dataclass(frozen=True)
class Stage:
    """One stage, and the largest difference relative to the largest value.

    If the values can't be compared, the difference is infinite, and `why` is the reason.
    """

    name: str
    error: float
    why: str = ""


def port_difference(original: Mapping[str, ArrayLike], port: Mapping[str, ArrayLike]) -> None:
    """Show how much a port differs after each stage. The first difference that is too large is lit.

    original: name of a stage -> array or tensor, in the order of the forward pass.
    port: the same for the port, with the same names.

    Raises ValueError for no stages or more than 40 stages.
    """
    require("port_difference", len(original), "stages", MOST)
    present(lambda: draw(measure(original, port)))


def measure(original: Mapping[str, ArrayLike], port: Mapping[str, ArrayLike]) -> list[Stage]:
    return [_measured(name, _tensor(want), port.get(name)) for name, want in original.items()]


def _measured(name: str, want: Tensor, got: ArrayLike | None) -> Stage:
    if got is None:
        return Stage(name, math.inf, ABSENT)
    got = _tensor(got)
    if got.shape != want.shape:
        return Stage(name, math.inf, f"shape {tuple(got.shape)}, not {tuple(want.shape)}")
    finite = want.isfinite()  # masked scores are -inf in both
    if not torch.allclose(got[~finite], want[~finite], equal_nan=True):
        return Stage(name, math.inf, "different where the original is not finite")
    if not bool(got[finite].isfinite().all()):
        return Stage(name, math.inf, "NaN or infinite")
    want, got = want[finite], got[finite]
    if not want.numel():
        return Stage(name, 0.0)
    scale = want.abs().max().item() or 1.0
    return Stage(name, (got - want).abs().max().item() / scale)


def _tensor(values: ArrayLike) -> Tensor:
    return torch.as_tensor(values).detach().double().cpu()


def draw(stages: Sequence[Stage]) -> Drawing:
    first = next((k for k, stage in enumerate(stages) if stage.error > ALLOWED), None)
    canvas = Canvas(sentence(stages, first))
    longest = max(text_width(s.name, size=12, mono=True) for s in stages)
    left = MARGIN + min(max(longest, 90), 260) + 16
    top = canvas.top + 30
    bottom = top + ROW * len(stages)

    def px(error: float) -> float:
        power = math.log10(max(error, 10.0**LOW)) if math.isfinite(error) else HIGH
        return left + (min(power, HIGH) - LOW) / (HIGH - LOW) * (END - left)

    for power in range(LOW + 1, HIGH + 1, 2):
        x = px(10.0**power)
        canvas.line([(x, top - 12), (x, bottom - 8)], RULE, 0.7)
        canvas.note(x, bottom + 4, "1" if power == 0 else f"1e{power}", "center")
    edge, allowed = px(ALLOWED), number(ALLOWED, 1)
    canvas.line([(edge, top - 14), (edge, bottom - 8)], INK, 1.2, dashed=True)
    canvas.note(edge, top - 22, f"allowed: {allowed}", "center")
    canvas.note((left + END) / 2, bottom + 24, "largest difference / largest value", "center")
    for k, stage in enumerate(stages):
        x, y = px(stage.error), top + ROW * k
        lit, after = k == first, first is not None and k > first
        good = stage.error <= ALLOWED
        colour = VIEW.colour if good else GRADIENT.colour if lit else "#dca08c"
        if lit:
            canvas.box((MARGIN - 8, y - 13, INNER + 16, 26), GRADIENT.tint, radius=6)
            canvas.line([(edge, y - 13), (edge, y + 13)], INK, 1.2, dashed=True)
        canvas.text(MARGIN, y, stage.name, MUTED if after else INK, size=12, mono=True)
        canvas.line([(left, y), (x, y)], colour, 2.4 if lit else 1.6)
        canvas.marker(x, y, "o" if good else GRADIENT.marker, 11 if lit else 9, colour)
        if stage.why:
            canvas.text(x - 14, y - 8, stage.why, INK, "right", size=SMALL)
        else:
            told = number(stage.error, 2) if stage.error else "the same"
            canvas.text(x + 12, y, told, INK if lit else MUTED, size=SMALL)
    told = ", ".join(f"{stage.name} {stage.why or number(stage.error, 2)}" for stage in stages)
    return canvas.finish(
        bottom + 44,
        f"Difference of a port from its original after each stage, allowed {allowed}. "
        f"{canvas.title} {told}.",
    )


def sentence(stages: Sequence[Stage], first: int | None) -> str:
    if first is None:
        largest = max(stage.error for stage in stages)
        if not largest:
            return f"All {len(stages)} stages are the same to the last bit."
        return f"All {len(stages)} stages agree: what differs, {number(largest, 1)}, is rounding."
    stage = stages[first]
    if stage.why == ABSENT:
        before = ", and all stages before it are right" if first else ""
        return f"The port has no {stage.name} to compare{before}."
    if first == 0:
        return f"The port differs from the first stage on: look into {stage.name}."
    if first == len(stages) - 1:
        return f"{stage.name} differs, and all stages before it are right."
    return f"{stage.name} is the first stage that differs; the later stages inherit it."
