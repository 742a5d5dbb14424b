"""One number in several floating-point dtypes: the bits, what they hold, and how far it is off."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from matplotlib.figure import Figure

from utils.style import INK, MUTED, STORAGE
from utils.views import _live
from utils.views._canvas import MARGIN, SMALL, Canvas, title_height
from utils.views._floats import Stored, format_of, store
from utils.views._numbers import tidy_exponent

DTYPES = (torch.float32, torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2)
BITS_X, BITS_W, BIT_H, ROW = 146, 384, 24, 48
STORED_X, ERROR_X, GAP_X = 562, 672, 740


def dtype_ruler(value: float = 0.1, dtypes: Sequence[torch.dtype] = DTYPES) -> None:
    """Show what each of `dtypes` keeps of the number `value`: its bits, the stored value, the error, the gap.

    value: a Python number; live, a box changes it. dtypes: floating-point dtypes of torch.
    Raises TypeError for any other dtype, ValueError for no dtype at all.
    """
    value = float(value)
    if not dtypes:
        raise ValueError("dtype_ruler needs at least one dtype, got none: pass (torch.float32,)")
    for dtype in dtypes:
        format_of(dtype)
    _live.present(
        lambda number: draw(number, dtypes),
        (value,),
        lambda widgets: [widgets.FloatText(value=value, description="value", step=0.1)],
    )


def draw(value: float, dtypes: Sequence[torch.dtype]) -> tuple[Figure, str]:
    """The figure for one number, and its alternative text."""
    rows = [store(value, dtype) for dtype in dtypes]
    words = sentence(value, rows)
    top = title_height(words) + 30
    canvas = Canvas(top + ROW * len(rows) + 14)
    canvas.title(words)
    for x, label in (
        (BITS_X, "sign, exponent, fraction"),
        (STORED_X, "stored"),
        (ERROR_X, "error"),
        (GAP_X, "gap"),
    ):
        canvas.note(x, top - 10, label)
    cell = BITS_W / max(row.format.bits for row in rows)
    for at, row in enumerate(rows):
        _draw_row(canvas, top + 6 + at * ROW, cell, row)
    return canvas.finish(), describe(value, rows)


def sentence(value: float, rows: Sequence[Stored]) -> str:
    """What the rows show, as the figure's title."""
    number = f"{value:.6g}"
    lost = [row.format.name for row in rows if row.kind in ("inf", "nan") and math.isfinite(value)]
    if lost:
        return f"{number} is beyond the range of {' and '.join(lost)}: range is set by the exponent's bits."
    if any(row.kind == "zero" for row in rows) and value:
        return f"{number} is too near zero for some dtypes: they store 0."
    if all(row.error == 0 for row in rows):
        return f"{number} is stored exactly by all: it needs few bits."
    return f"{number} is rounded to the nearest number that the bits can say."


def describe(value: float, rows: Sequence[Stored]) -> str:
    """The alternative text: a sentence for each dtype."""
    parts = [f"Dtype ruler for {value!r}. {sentence(value, rows)}"]
    for row in rows:
        bits = f"sign {row.sign}, exponent {row.exponent}, fraction {row.fraction}"
        text = f"{row.format.name}: {bits}, stored as {row.value:.9g} ({row.kind})"
        if math.isfinite(row.error):
            text += f", error {row.error:.2g}, gap to the next number {row.gap:.2g}"
        parts.append(f"{text}.")
    return " ".join(parts)


def _draw_row(canvas: Canvas, y: float, cell: float, row: Stored) -> None:
    form = row.format
    middle = y + BIT_H / 2
    canvas.text(MARGIN, middle - 7, form.name, mono=True)
    canvas.note(MARGIN, middle + 10, f"max {_number(form.largest, 3)}")
    digits = row.sign + row.exponent + row.fraction
    looks = (
        [(INK, "#ffffff")]
        + [(STORAGE.colour, STORAGE.on)] * form.exponent
        + [(STORAGE.tint, INK)] * form.fraction
    )
    boxes = []
    for at, digit in enumerate(digits):
        x = BITS_X + at * cell + (3 if at else 0) + (3 if at > form.exponent else 0)
        boxes.append((x, y, cell, BIT_H))
        if cell >= 9:
            canvas.text(
                x + cell / 2, middle, digit, size=SMALL, mono=True, colour=looks[at][1], ha="center"
            )
    canvas.boxes(boxes, [fill for fill, _ in looks], line=0.8)
    canvas.text(STORED_X, middle, _number(row.value, 9), size=12, mono=True)
    canvas.text(ERROR_X, middle, _signed(row.error), size=12, mono=True, colour=MUTED)
    canvas.text(GAP_X, middle, _number(row.gap, 2), size=12, mono=True, colour=MUTED)


def _number(value: float, digits: int) -> str:
    return "–" if math.isnan(value) and digits == 2 else tidy_exponent(f"{value:.{digits}g}")


def _signed(value: float) -> str:
    if math.isnan(value):
        return "–"
    return "0" if value == 0 else tidy_exponent(f"{value:+.2g}")
