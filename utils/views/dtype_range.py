"""How far the floating-point dtypes reach, and how fine they are, on one logarithmic line."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from matplotlib.figure import Figure

from utils.notebook.figures import show
from utils.notebook.style import CARD, MUTED, RULE, STORAGE
from utils.views._canvas import MARGIN, SMALL, Canvas, title_height
from utils.views._floats import Format, format_of
from utils.views._numbers import number
from utils.views._text_outlines import text_width

DTYPES = (
    torch.float32,
    torch.bfloat16,
    torch.float16,
    torch.float8_e5m2,
    torch.float8_e4m3fn,
)
LEFT, RIGHT, ROW, BAR_H = 146, 630, 44, 18
PRECISION_X = 794


def dtype_range(dtypes: Sequence[torch.dtype] = DTYPES) -> None:
    """Show range and relative precision of floating-point dtypes: a bar from smallest to largest.

    Raises:
        TypeError: for a dtype that is not floating-point.
        ValueError: for none.
    """
    if not dtypes:
        raise ValueError("dtype_range needs at least one dtype, got none: pass (torch.float32,)")
    figure, alt = draw([format_of(dtype) for dtype in dtypes])
    show(figure, alt=alt)


def draw(forms: Sequence[Format]) -> tuple[Figure, str]:
    """Return the figure for some dtypes, and its alternative text."""
    words = "The exponent's bits buy range, the fraction's bits buy precision."
    top = title_height(words) + 44
    canvas = Canvas(top + ROW * len(forms) + 34)
    canvas.title(words)
    low = math.floor(math.log10(min(form.smallest for form in forms))) - 1
    high = math.ceil(math.log10(max(form.largest for form in forms))) + 1

    def x(value: float) -> float:
        return LEFT + (math.log10(value) - low) / (high - low) * (RIGHT - LEFT)

    bottom = top + ROW * len(forms) - 8
    step = 10 if high - low < 150 else 100
    for power in range(-(-low // step) * step, high + 1, step):
        at = x(10.0**power)
        colour = RULE if power else MUTED
        canvas.line([(at, top - 14), (at, bottom)], line=0.8, colour=colour)
        canvas.note(at, bottom + 14, "1" if power == 0 else f"1e{power}", ha="center")
    canvas.boxes([(LEFT, top - 33, 10, 10)], [STORAGE.colour])
    canvas.note(LEFT + 15, top - 28, "normal numbers")
    canvas.boxes([(LEFT + 126, top - 33, 10, 10)], [STORAGE.tint])
    canvas.note(LEFT + 141, top - 28, "subnormal: fewer digits the nearer to 0")
    canvas.note(PRECISION_X, top - 28, "relative gap (eps)", ha="right")
    for row, form in enumerate(forms):
        y = top + row * ROW
        canvas.text(MARGIN, y + BAR_H / 2, form.name, mono=True)
        ends = x(form.smallest), x(form.smallest_normal), x(form.largest)
        canvas.boxes(
            [(ends[0], y, ends[1] - ends[0], BAR_H), (ends[1], y, ends[2] - ends[1], BAR_H)],
            [STORAGE.tint, STORAGE.colour],
            edge="none",
        )
        finest = _power(form.fraction)
        canvas.text(PRECISION_X, y + BAR_H / 2 - 7, finest, size=12, mono=True, ha="right")
        digits = (form.fraction + 1) * math.log10(2)
        canvas.note(PRECISION_X, y + BAR_H / 2 + 9, f"{digits:.1f} decimal digits", ha="right")
        reach = f"{number(form.smallest_normal, 3)} to {number(form.largest, 3)}"
        wide = text_width(reach, size=SMALL)
        canvas.boxes([(ends[1] - 2, y + BAR_H + 2, wide + 4, 15)], [CARD], edge="none")
        canvas.note(ends[1], y + BAR_H + 9, reach)
    return canvas.finish(), describe(forms, words)


def describe(forms: Sequence[Format], words: str) -> str:
    """Return the alternative text: range and precision of each dtype."""
    rows = [
        f"{form.name}: {form.exponent} exponent and {form.fraction} fraction bits, "
        f"normal numbers from {number(form.smallest_normal, 3)} to {number(form.largest, 3)}, "
        f"subnormal ones from {number(form.smallest, 3)}, eps {number(2.0**-form.fraction, 3)}."
        for form in forms
    ]
    return " ".join([f"Range of the dtypes on a logarithmic line. {words}", *rows])


def _power(fraction: int) -> str:
    raised = str(fraction).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"{number(2.0**-fraction, 3)} = 2⁻{raised}"
