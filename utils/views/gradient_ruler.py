"""Where a model's gradients lie on the rulers of 16-bit dtypes, under a scale that moves."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor

from utils.notebook.style import GRADIENT, IDLE, INK, MUTED, STORAGE, WIDTH
from utils.views import _interactive
from utils.views._axes import TEXT
from utils.views._canvas import MARGIN, Canvas, title_height
from utils.views._floats import format_of
from utils.views._text_outlines import text_width

LOW, HIGH_POWER = -46, 22  # powers of two at the ends of the axis
LEFT, PLOT, ROW, BAR = 128, 170, 58, 24
DTYPES = (torch.float16, torch.bfloat16)
MOST_SCALE = 34
SHADES = (IDLE, STORAGE.tint, STORAGE.colour, GRADIENT.tint)  # lost, subnormal, normal, infinite


@dataclass(frozen=True)
class Magnitudes:
    """How many gradients there are, how many are 0 or not finite, and log2 of the others' size."""

    count: int
    zeros: int
    wild: int
    powers: np.ndarray

    def fates(self, scale: int, dtype: torch.dtype) -> dict[str, float]:
        """Shares of the non-zero, finite gradients that become 0, subnormal, normal or infinite."""
        form = format_of(dtype)
        at = self.powers + scale
        # Rounding: below half the smallest is 0, from half a gap above the largest it overflows.
        largest = math.log2(form.largest * (1 + 2.0 ** -(form.fraction + 2)))
        lost = at <= math.log2(form.smallest) - 1
        over = at >= largest
        below = (at < math.log2(form.smallest_normal)) & ~lost
        kept = ~(lost | over | below)
        whole = max(len(at), 1)
        parts = {"become 0": lost, "keep few digits": below, "are kept": kept, "overflow": over}
        return {name: float(part.sum()) / whole for name, part in parts.items()}


def gradient_ruler(gradients: Iterable[Tensor], *, scale: int = 0) -> None:
    """Show how large gradients are, and what 16 bits keep of them; live, a scale moves.

    gradients: tensors of float32, such as each parameter's `.grad`; None is left out.
    scale: the power of two at first that all of them are multiplied by, 0 to 34.
    Raises ValueError for no gradient that is finite and not 0, or for another scale.
    """
    found = read(gradients)
    if not 0 <= scale <= MOST_SCALE:
        raise ValueError(f"gradient_ruler: expected a power from 0 to {MOST_SCALE}, got {scale}")
    _interactive.present(
        lambda power: draw(found, power),
        (scale,),
        lambda widgets: [
            widgets.IntSlider(value=scale, min=0, max=MOST_SCALE, description="scale 2^")
        ],
    )


def read(gradients: Iterable[Tensor]) -> Magnitudes:
    """The sizes of all elements."""
    parts = [g.detach().double().flatten().cpu() for g in gradients if g is not None]
    flat = torch.cat(parts) if parts else torch.zeros(0)
    finite = flat[torch.isfinite(flat)]
    sizes = finite[finite != 0].abs()
    if not len(sizes):
        raise ValueError("gradient_ruler needs a gradient that is finite and not 0: call backward")
    zeros = int((finite == 0).sum())
    return Magnitudes(len(flat), zeros, len(flat) - len(finite), sizes.log2().numpy())


def draw(found: Magnitudes, scale: int) -> tuple[Figure, str]:
    """The figure under one scale, and its alternative text."""
    words = sentence(found, scale)
    top = title_height("one line") + 30
    rulers = top + PLOT + 44
    canvas = Canvas(rulers + ROW * len(DTYPES) + 40)
    canvas.title(words)
    right = WIDTH - MARGIN

    def px(power: float) -> float:
        share = (power - LOW) / (HIGH_POWER - LOW)
        return LEFT + min(max(share, 0.0), 1.0) * (right - LEFT)

    _draw_histogram(canvas, found, scale, top, px)
    for power in range(-40, HIGH_POWER, 10):
        canvas.line([(px(power), top), (px(power), rulers + ROW * len(DTYPES) - 16)], line=0.8)
        told = f"2{str(power).translate(str.maketrans('-0123456789', '⁻⁰¹²³⁴⁵⁶⁷⁸⁹'))}"
        canvas.text(px(power), top + PLOT + 16, told, size=TEXT, colour=MUTED, ha="center")
    canvas.text(LEFT, top - 16, "gradients by size, times the scale", size=TEXT, colour=MUTED)
    for row, dtype in enumerate(DTYPES):
        form, y = format_of(dtype), rulers + row * ROW
        edges = [LOW, math.log2(form.smallest) - 1, math.log2(form.smallest_normal),
                 math.log2(form.largest), HIGH_POWER]  # fmt: skip
        spans = [(px(a), px(max(a, b))) for a, b in zip(edges, edges[1:], strict=False)]
        for (start, end), fill in zip(spans, SHADES, strict=True):
            if end - start > 0.5:
                canvas.boxes([(start, y, end - start, BAR)], [fill], edge="none")
        canvas.text(MARGIN, y + BAR / 2, form.name, size=TEXT, mono=True)
        shares = found.fates(scale, dtype)
        told = ", ".join(f"{_percent(part)} {fate}" for fate, part in shares.items() if part)
        canvas.text(LEFT, y + BAR + 15, told, size=TEXT, colour=MUTED)
    _draw_key(canvas, rulers + ROW * len(DTYPES) + 10)
    return canvas.finish(), describe(found, scale)


def _draw_histogram(
    canvas: Canvas, found: Magnitudes, scale: int, top: float, px: Callable[[float], float]
) -> None:
    edges = np.arange(LOW, HIGH_POWER + 1)
    counts, _ = np.histogram(np.clip(found.powers + scale, LOW, HIGH_POWER - 1e-6), edges)
    most = max(int(counts.max()), 1)
    form = format_of(torch.float16)
    boxes, fills = [], []
    for power, count in zip(edges[:-1].tolist(), counts.tolist(), strict=True):
        if not count:
            continue
        high = max(1.0, count / most * PLOT)
        lost = power + 1 <= math.log2(form.smallest)
        over = power >= math.log2(form.largest)
        boxes.append((px(power) + 0.5, top + PLOT - high, px(power + 1) - px(power) - 1, high))
        fills.append(GRADIENT.colour if lost or over else STORAGE.colour)
    canvas.boxes(boxes, fills, edge="none")
    canvas.line([(LEFT, top + PLOT), (WIDTH - MARGIN, top + PLOT)], colour=INK)


def _draw_key(canvas: Canvas, y: float) -> None:
    """What the shades of a ruler mean."""
    x = float(LEFT)
    for fill, words in zip(SHADES, ("becomes 0", "few digits", "kept", "overflows"), strict=True):
        canvas.boxes([(x, y - 8, 16, 16)], [fill], edge=MUTED)
        canvas.text(x + 24, y, words, size=TEXT, colour=MUTED)
        x += 24 + text_width(words, size=TEXT) + 26


def _percent(share: float) -> str:
    return f"{share:.0%}" if share == 0 or 0.01 <= share <= 0.99 or share == 1 else f"{share:.2%}"


def sentence(found: Magnitudes, scale: int) -> str:
    """What float16 makes of these gradients, as the figure's title."""
    fates = found.fates(scale, torch.float16)
    at = "Unscaled" if scale == 0 else f"Times {2**scale:,}"
    lost, over = fates["become 0"], fates["overflow"]
    if over:
        return f"{at}, {_percent(over)} of the gradients overflow float16."
    if lost:
        return f"{at}, {_percent(lost)} of the gradients become 0 in float16."
    few = fates["keep few digits"]
    return f"{at}, float16 holds them all" + (f", {_percent(few)} with few digits." if few else ".")


def describe(found: Magnitudes, scale: int) -> str:
    """The alternative text: the sizes, and what becomes of them in each dtype."""
    low, middle, high = np.quantile(found.powers, (0.01, 0.5, 0.99))
    rows = [
        f"{format_of(dtype).name}: "
        + ", ".join(f"{_percent(part)} {fate}" for fate, part in found.fates(scale, dtype).items())
        for dtype in DTYPES
    ]
    wild = f" and {found.wild:,} infinite or NaN" if found.wild else ""
    return (
        f"Sizes of {found.count:,} gradients, {found.zeros:,} of them exactly 0{wild}. "
        f"{sentence(found, scale)} Unscaled, 98% of the others lie between 2^{low:.0f} and "
        f"2^{high:.0f}, the median at 2^{middle:.0f}. {'. '.join(rows)}."
    )
