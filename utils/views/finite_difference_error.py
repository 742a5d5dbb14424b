"""How wrong a finite difference is, for every step from far too large to far too small."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from matplotlib.figure import Figure
from torch import Tensor

from utils.notebook.style import CARD, GRADIENT, INK, MUTED, STORAGE, VIEW, WIDTH
from utils.views import _interactive
from utils.views._canvas import MARGIN, Canvas, title_height
from utils.views._numbers import number, short

STEPS = tuple(10.0 ** (-k / 4) for k in range(57))  # 1 down to 1e-14
LEFT, RIGHT, HIGH = 92, WIDTH - MARGIN - 150, 300
FLOOR = 1e-15  # an error of exactly 0 is drawn here
Function = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Curve:
    """One way to take the difference: its errors for each of STEPS, relative to the derivative."""

    name: str
    colour: str
    errors: tuple[float, ...]

    @property
    def best(self) -> int:
        """The place of the smallest error."""
        return min(range(len(STEPS)), key=lambda k: self.errors[k])


def finite_difference_error(f: Function, x: float) -> None:
    """Show the error of finite differences of `f` at `x` against the step h; live, h moves.

    Args:
        f: from a 0-dim tensor to one, in torch operations (autograd gives the exact derivative).

    Raises:
        ValueError: if f or its derivative is not finite, or the derivative is 0.
    """
    exact, curves = measure(f, x)
    start = curves[0].best
    _interactive.present(
        lambda k: draw(exact, curves, x, k),
        (start,),
        lambda widgets: [
            widgets.SelectionSlider(
                options=[(number(h, 2), k) for k, h in enumerate(STEPS)],
                value=start,
                description="h",
            )
        ],
    )


def measure(f: Function, x: float) -> tuple[float, tuple[Curve, ...]]:
    """The derivative, and the curves: central and one-sided in float64, central in float32."""
    point = torch.tensor(float(x), dtype=torch.float64, requires_grad=True)
    value = f(point)
    if not isinstance(value, Tensor) or value.dim():
        raise ValueError("finite_difference_error needs a function from a 0-dim tensor to one")
    exact = torch.autograd.grad(value, point)[0].item()
    if not math.isfinite(exact) or exact == 0:
        raise ValueError(f"the derivative at {x} is {exact}: choose another x")

    def error(h: float, dtype: torch.dtype, central: bool) -> float:
        at = torch.tensor(float(x), dtype=dtype)
        low, width = (at - h, 2 * h) if central else (at, h)
        found = ((f(at + h) - f(low)) / width).item()
        wrong = abs(found - exact) / abs(exact)
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


def draw(exact: float, curves: tuple[Curve, ...], x: float, chosen: int) -> tuple[Figure, str]:
    """Return the figure with one h lit, and its alternative text."""
    words = sentence(curves)
    top = title_height(words) + 20
    canvas = Canvas(top + HIGH + 66)
    canvas.title(words)

    def px(h: float) -> float:
        return LEFT + (math.log10(h) + 14) / 14 * (RIGHT - LEFT)

    def py(error: float) -> float:
        return top + HIGH * (1 - (math.log10(max(error, FLOOR)) + 15) / 16.5)

    for power in range(-15, 1, 3):
        y = py(10.0**power)
        canvas.line([(LEFT, y), (RIGHT, y)], line=0.8)
        canvas.note(LEFT - 8, y, "1" if not power else f"1e{power}", ha="right")
    for power in range(-14, 1, 2):
        words_below = "1" if not power else f"1e{power}"
        canvas.note(px(10.0**power), top + HIGH + 14, words_below, ha="center")
    canvas.note(MARGIN, top - 8, "relative error")
    canvas.text((LEFT + RIGHT) / 2, top + HIGH + 36, "step h", size=12, colour=MUTED, ha="center")
    for curve in reversed(curves):
        path = [
            (px(h), py(min(error, 30.0)))
            for h, error in zip(STEPS, curve.errors, strict=True)
            if math.isfinite(error)
        ]
        canvas.line(path, colour=curve.colour, line=1.8)
        canvas.marker(
            px(STEPS[curve.best]), py(curve.errors[curve.best]), "o", size=9, fill=curve.colour
        )
    for k, curve in enumerate(curves):
        y = top + 12 + 48 * k
        canvas.line([(RIGHT + 14, y), (RIGHT + 30, y)], colour=curve.colour, line=2.4)
        canvas.text(RIGHT + 36, y, curve.name, size=11)
        best = f"best h {number(STEPS[curve.best], 1)}: {number(curve.errors[curve.best], 1)}"
        canvas.note(RIGHT + 36, y + 17, best)
    h = STEPS[chosen]
    canvas.line([(px(h), top), (px(h), top + HIGH)], colour=INK, line=1, dashed=True)
    told = f"h = {number(h, 2)}"
    canvas.boxes([(px(h) + 3, top + HIGH - 24, 84, 16)], [CARD], edge="none")
    canvas.text(px(h) + 6, top + HIGH - 16, told, size=11)
    canvas.note(px(3e-13), top + 8, "too small: rounding")
    canvas.note(RIGHT - 4, top + HIGH - 40, "too large: truncation", ha="right")
    return canvas.finish(), describe(exact, curves, x, chosen, words)


def sentence(curves: tuple[Curve, ...]) -> str:
    """What the curves show, as the figure's title."""
    central, _, single = curves
    return (
        f"A large h truncates, a small one rounds: best is {number(STEPS[central.best], 1)} here, "
        f"{number(STEPS[single.best], 1)} in float32."
    )


def describe(exact: float, curves: tuple[Curve, ...], x: float, chosen: int, words: str) -> str:
    """Return the alternative text: each curve's best step, and the lit one's errors."""
    rows = [
        f"{curve.name}: smallest relative error {number(curve.errors[curve.best], 2)} at h = "
        f"{number(STEPS[curve.best], 2)}, and {number(curve.errors[chosen], 2)} at the lit h."
        for curve in curves
    ]
    return (
        f"Error of finite differences against the step. {words} The derivative at x = "
        f"{short(float(x))} is {number(exact, 4)}; lit h = {number(STEPS[chosen], 2)}. "
        + " ".join(rows)
    )
