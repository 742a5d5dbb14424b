"""The gradients of a model on the rulers of 16-bit dtypes, for different loss scales."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from utils.notebook.style import GRADIENT, IDLE, INK, MUTED, STORAGE
from utils.views._canvas import MARGIN, RIGHT, Canvas, Drawing
from utils.views._controls import slider
from utils.views._floats import format_of
from utils.views._numbers import raised
from utils.views._view import present

LOW, HIGH_POWER = -46, 22  # powers of two at the ends of the axis
LEFT, PLOT, ROW, BAR = 128, 170, 58, 24
DTYPES = (torch.float16, torch.bfloat16)
# The kind of a stored number, its shade on a ruler, and the shade's name.
FATES = {
    "become 0": (IDLE, "becomes 0"),
    "keep few digits": (STORAGE.tint, "few digits"),
    "are kept": (STORAGE.colour, "kept"),
    "overflow": (GRADIENT.tint, "overflows"),
}


@dataclass(frozen=True)
class Magnitudes:
    """How many gradients a model has, and how large they are.

    Attributes:
        count: the number of all gradients.
        zeros: the number of gradients that are 0.
        wild: the number of gradients that are infinite or NaN.
        sizes: the absolute values of the other gradients.
    """

    count: int
    zeros: int
    wild: int
    sizes: Tensor

    @cached_property
    def powers(self) -> np.ndarray:
        return self.sizes.log2().numpy()

    def fates(self, scale: int, dtype: torch.dtype) -> dict[str, float]:
        """The shares of non-zero, finite gradients that become 0, subnormal, normal or infinite."""
        kept = (self.sizes * 2.0**scale).to(dtype)
        lost, over, few = kept == 0, kept.isinf(), kept < torch.finfo(dtype).smallest_normal
        parts = (lost, few & ~lost, ~(few | over), over)
        return {name: part.double().mean().item() for name, part in zip(FATES, parts, strict=True)}


def gradient_ruler(gradients: Iterable[Tensor]) -> None:
    """Show the sizes of gradients, and how 16-bit dtypes store them.

    In a live view, a slider sets the loss scale.

    gradients: tensors of float32, such as each parameter's `.grad`. A gradient may be None.

    Raises ValueError if all gradients are 0, infinite or NaN.
    """
    found = read(gradients)
    present(lambda power: draw(found, power), slider("scale 2^", 0, 0, 34))


def read(gradients: Iterable[Tensor]) -> Magnitudes:
    parts = [g.detach().double().flatten().cpu() for g in gradients if g is not None]
    flat = torch.cat(parts) if parts else torch.zeros(0)
    finite = flat[torch.isfinite(flat)]
    sizes = finite[finite != 0].abs()
    if not len(sizes):
        raise ValueError("gradient_ruler needs a finite gradient other than 0: call backward first")
    zeros = int((finite == 0).sum())
    return Magnitudes(len(flat), zeros, len(flat) - len(finite), sizes)


def draw(found: Magnitudes, scale: int) -> Drawing:
    canvas = Canvas(sentence(found.fates(scale, torch.float16), scale))
    top = canvas.top + 30
    rulers = top + PLOT + 44
    key = rulers + ROW * len(DTYPES)

    def px(power: float) -> float:
        share = (power - LOW) / (HIGH_POWER - LOW)
        return LEFT + min(max(share, 0.0), 1.0) * (RIGHT - LEFT)

    edges = np.arange(LOW, HIGH_POWER + 1)
    counts, _ = np.histogram(np.clip(found.powers + scale, LOW, HIGH_POWER - 1e-6), edges)
    half = format_of(torch.float16)
    for power, count in zip(edges[:-1].tolist(), counts.tolist(), strict=True):
        if count:
            high = max(1.0, count / int(counts.max()) * PLOT)
            out = power + 1 <= math.log2(half.smallest) or power >= math.log2(half.largest)
            box = (px(power) + 0.5, top + PLOT - high, px(power + 1) - px(power) - 1, high)
            canvas.box(box, GRADIENT.colour if out else STORAGE.colour)
    canvas.line([(LEFT, top + PLOT), (RIGHT, top + PLOT)], INK)
    for power in range(-40, HIGH_POWER, 10):
        canvas.line([(px(power), top), (px(power), key - 16)], line=0.8)
        canvas.text(px(power), top + PLOT + 16, f"2{raised(power)}", MUTED, "center")
    canvas.text(LEFT, top - 16, "gradients by size, times the scale", MUTED)
    rows = []
    for row, dtype in enumerate(DTYPES):
        form, y = format_of(dtype), rulers + row * ROW
        ends = (form.smallest / 2, form.smallest_normal, form.largest)
        places = [LOW, *map(math.log2, ends), HIGH_POWER]
        for start, end, (fill, _) in zip(places, places[1:], FATES.values(), strict=False):
            wide = px(end) - px(start)
            if wide > 0.5:
                canvas.box((px(start), y, wide, BAR), fill)
        canvas.text(MARGIN, y + BAR / 2, form.name, mono=True)
        shares = found.fates(scale, dtype)
        told = ", ".join(f"{_percent(part)} {fate}" for fate, part in shares.items() if part)
        canvas.text(LEFT, y + BAR + 15, told, MUTED)
        every = ", ".join(f"{_percent(part)} {fate}" for fate, part in shares.items())
        rows.append(f"{form.name}: {every}.")
    canvas.legend(LEFT, key + 10, [(words, fill, MUTED) for fill, words in FATES.values()])
    low, middle, high = np.quantile(found.powers, (0.01, 0.5, 0.99))
    wild = f" and {found.wild:,} infinite or NaN" if found.wild else ""
    return canvas.finish(
        key + 40,
        f"Sizes of {found.count:,} gradients, {found.zeros:,} of them exactly 0{wild}. "
        f"{canvas.title} Unscaled, 98% of the others lie between 2^{low:.0f} and "
        f"2^{high:.0f}, the median at 2^{middle:.0f}. {' '.join(rows)}",
    )


def _percent(share: float) -> str:
    return f"{share:.0%}" if share == 0 or 0.01 <= share <= 0.99 or share == 1 else f"{share:.2%}"


def sentence(fates: dict[str, float], scale: int) -> str:
    at = "Unscaled" if scale == 0 else f"Times {2**scale:,}"
    lost, few, _, over = fates.values()
    if over:
        return f"{at}, {_percent(over)} of the gradients overflow float16."
    if lost:
        return f"{at}, {_percent(lost)} of the gradients become 0 in float16."
    return f"{at}, float16 keeps them all" + (f", {_percent(few)} with few digits." if few else ".")
