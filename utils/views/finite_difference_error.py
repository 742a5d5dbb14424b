"""The error of a finite difference, for steps from far too large to far too small."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from utils.notebook.style import GRADIENT, INK, MUTED, STORAGE, VIEW
from utils.views._canvas import MARGIN, RIGHT, SMALL, Axes, Canvas, Drawing, decades
from utils.views._numbers import number, short
from utils.views._view import present

STEPS = tuple(10.0 ** (-k / 4) for k in range(57))  # 1 down to 1e-14
LEFT, END, HIGH = 92, RIGHT - 150, 300
FLOOR = 1e-15  # an error of exactly 0 is drawn here
Function = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Curve:
    """One kind of difference, and its error for each of STEPS, relative to the derivative."""

    name: str
    colour: str
    errors: tuple[float, ...]

    @property
    def best(self) -> int:
        return min(range(len(STEPS)), key=self.errors.__getitem__)


def finite_difference_error(f: Function, x: float) -> None:
    """Show the error of finite differences of `f` at `x` against the step h.

    f: a function from a 0-dim tensor to a 0-dim tensor. It uses torch operations, because autograd
        computes the exact derivative.

    Raises ValueError if f or its derivative is not finite, or if the derivative is 0.
    """
    exact, curves = measure(f, x)
    present(lambda: draw(exact, curves, x))


def measure(f: Function, x: float) -> tuple[float, tuple[Curve, ...]]:
    """Return the derivative and the curves: both kinds in float64, and central in float32."""
    point = torch.tensor(float(x), dtype=torch.float64, requires_grad=True)
    exact = torch.autograd.grad(f(point), point)[0].item()
    if not math.isfinite(exact) or exact == 0:
        raise ValueError(f"the derivative at {x} is {exact}: choose another x")

    def error(h: float, dtype: torch.dtype, central: bool) -> float:
        at = torch.tensor(float(x), dtype=dtype)
        low, width = (at - h, 2 * h) if central else (at, h)
        slope = ((f(at + h) - f(low)) / width).item()
        wrong = abs(slope - exact) / abs(exact)
        return wrong if math.isfinite(wrong) else math.inf

    ways = (
        ("central, float64", GRADIENT.colour, torch.float64, True),
        ("one-sided, float64", VIEW.colour, torch.float64, False),
        ("central, float32", STORAGE.colour, torch.float32, True),
    )
    with torch.no_grad():
        return exact, tuple(
            Curve(name, colour, tuple(error(h, dtype, central) for h in STEPS))
            for name, colour, dtype, central in ways
        )


def draw(exact: float, curves: tuple[Curve, ...], x: float) -> Drawing:
    central, _, single = curves
    canvas = Canvas(
        f"A large h truncates, a small h rounds: best is {number(STEPS[central.best], 1)} here, "
        f"{number(STEPS[single.best], 1)} in float32."
    )
    top, x_span, y_span = canvas.top + 20, (STEPS[-1], STEPS[0]), (FLOOR, 30.0)
    axes = Axes(canvas, LEFT, top, END - LEFT, HIGH, x=x_span, y=y_span, log="xy")
    axes.grid_y(decades(*y_span, 6), short)
    axes.labels_x(decades(*x_span, 8), short)
    bottom = axes.bottom
    canvas.note(MARGIN, top - 8, "relative error")
    canvas.text((LEFT + END) / 2, bottom + 38, "step h", MUTED, "center")
    for curve in reversed(curves):
        axes.curve(STEPS, curve.errors, curve.colour, 1.8)
        best = axes.px(STEPS[curve.best]), axes.py(curve.errors[curve.best])
        canvas.marker(*best, "o", 9, curve.colour, edge=INK)
    rows = []
    for k, curve in enumerate(curves):
        y, at, least = top + 12 + 48 * k, STEPS[curve.best], curve.errors[curve.best]
        canvas.line([(END + 14, y), (END + 30, y)], curve.colour, 2.4)
        canvas.text(END + 36, y, curve.name, size=SMALL)
        canvas.note(END + 36, y + 17, f"best h {number(at, 1)}: {number(least, 1)}")
        rows.append(
            f"{curve.name}: smallest relative error {number(least, 2)} at h = {number(at, 2)}."
        )
    canvas.note(axes.px(3e-13), top + 8, "too small: rounding")
    canvas.note(END - 4, bottom - 40, "too large: truncation", "right")
    return canvas.finish(
        bottom + 66,
        f"Error of finite differences against the step. {canvas.title} The derivative at x = "
        f"{short(float(x))} is {number(exact, 4)}. {' '.join(rows)}",
    )
