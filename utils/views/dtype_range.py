"""The range and the precision of floating-point dtypes, on one logarithmic line."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from utils.notebook.style import CARD, MUTED, RULE, STORAGE
from utils.views._canvas import MARGIN, SMALL, Axes, Canvas, Drawing
from utils.views._floats import Format, format_of
from utils.views._numbers import number, raised
from utils.views._text_outlines import text_width
from utils.views._view import present

DTYPES = (torch.float32, torch.bfloat16, torch.float16, torch.float8_e5m2, torch.float8_e4m3fn)
LEFT, RIGHT, ROW, BAR_H = 146, 630, 44, 18
PRECISION_X = 794


def dtype_range() -> None:
    """Show range and relative precision of dtypes: a bar from smallest to largest number."""
    present(lambda: draw([format_of(dtype) for dtype in DTYPES]))


def draw(forms: Sequence[Format]) -> Drawing:
    canvas = Canvas("The exponent's bits buy range, the fraction's bits buy precision.")
    top = canvas.top + 44
    bottom = top + ROW * len(forms) - 8
    low = math.floor(math.log10(min(form.smallest for form in forms))) - 1
    high = math.ceil(math.log10(max(form.largest for form in forms))) + 1
    axes = Axes(canvas, LEFT, top, RIGHT - LEFT, bottom - top, x=(low, high), y=(0, 1))
    step = 10 if high - low < 150 else 100
    for power in range(-(-low // step) * step, high + 1, step):
        at = axes.px(power)
        canvas.line([(at, top - 14), (at, bottom)], RULE if power else MUTED, 0.8)
        canvas.note(at, bottom + 14, "1" if power == 0 else f"1e{power}", "center")
    few = "subnormal: fewer digits the nearer to 0"
    kinds = ("normal numbers", STORAGE.colour), (few, STORAGE.tint)
    canvas.legend(LEFT, top - 28, kinds, size=SMALL)
    canvas.note(PRECISION_X, top - 28, "relative gap (eps)", "right")
    parts = [f"Range of the dtypes on a logarithmic line. {canvas.title}"]
    for row, form in enumerate(forms):
        y, eps = top + row * ROW, number(2.0**-form.fraction, 3)
        canvas.text(MARGIN, y + BAR_H / 2, form.name, size=13, mono=True)
        start, normal, end = (
            axes.px(math.log10(value))
            for value in (form.smallest, form.smallest_normal, form.largest)
        )
        canvas.box((start, y, normal - start, BAR_H), STORAGE.tint)
        canvas.box((normal, y, end - normal, BAR_H), STORAGE.colour)
        finest = f"{eps} = 2{raised(-form.fraction)}"
        canvas.text(PRECISION_X, y + BAR_H / 2 - 7, finest, ha="right", size=12, mono=True)
        digits = (form.fraction + 1) * math.log10(2)
        canvas.note(PRECISION_X, y + BAR_H / 2 + 9, f"{digits:.1f} decimal digits", "right")
        reach = f"{number(form.smallest_normal, 3)} to {number(form.largest, 3)}"
        canvas.box((normal - 2, y + BAR_H + 2, text_width(reach, size=SMALL) + 4, 15), CARD)
        canvas.note(normal, y + BAR_H + 9, reach)
        parts.append(
            f"{form.name}: {form.exponent} exponent and {form.fraction} fraction bits, normal "
            f"numbers from {reach}, subnormal ones from {number(form.smallest, 3)}, eps {eps}."
        )
    return canvas.finish(bottom + 42, " ".join(parts))
