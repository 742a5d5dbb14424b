"""One number in several floating-point dtypes: its bits, and the ruler of the dtype's numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from utils.notebook.style import CARD, INK, MUTED, RULE, STORAGE
from utils.views._canvas import MARGIN, SMALL, Canvas, Drawing
from utils.views._controls import Control
from utils.views._floats import Stored, store
from utils.views._numbers import listed, number
from utils.views._view import present

DTYPES = (torch.float32, torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2)
LEFT, WIDE, FIELD_GAP = 146, 412, 4  # the bits and, below them, the rulers; CSS pixels
STORED_X, ERROR_X, GAP_X = 660, 730, 794  # the right ends of the columns of numbers
ROW, BIT_H, RULER_ROW, TICK_H = 44, 24, 30, 14
DENSE = 150  # if there are more ticks, they run together and are drawn as a band
# Choices for a page without a text box: exact, rounded and out-of-range numbers.
TRIES = (0.5, 1 / 3, math.pi, 1000.1, 2.0**24 + 1, 65504.0, 65520.0, 1e-8)


def dtype_ruler(value: float = 0.1) -> None:
    """Show the number `value` as each of DTYPES stores it, bit by bit and on the dtype's ruler.

    value: a Python number. In a live view, a text box changes the value.
    """
    present(draw, Control("FloatText", "value", float(value)), tries=[(one,) for one in TRIES])


def draw(value: float) -> Drawing:
    rows = [store(value, dtype) for dtype in DTYPES]
    canvas = Canvas(sentence(value, rows))
    top = canvas.top + 34
    _draw_table(canvas, top, rows)
    bottom = top + ROW * len(rows) + 14
    # Half the width of the window of the rulers. It is three of the largest gaps, or 0 if no gap is
    # finite.
    gaps = [row.gap for row in rows if row.kind in ("normal", "subnormal", "zero")]
    if gaps:
        _draw_rulers(canvas, bottom + 26, value, 3.3 * max(gaps), rows)
        bottom += 52 + RULER_ROW * len(rows)
    parts = [f"Dtype ruler for {value!r}. {canvas.title}"]
    for row in rows:
        bits = f"sign {row.sign}, exponent {row.exponent}, fraction {row.fraction}"
        text = f"{row.format.name}: {bits}; stored as {row.value:.9g} ({row.kind})"
        if math.isfinite(row.error):
            text += f", error {row.error:.2g}, gap to the next number {row.gap:.2g}"
        parts.append(f"{text}.")
    return canvas.finish(bottom, " ".join(parts))


def sentence(value: float, rows: Sequence[Stored]) -> str:
    said = number(value, 6)
    if not math.isfinite(value):
        return (
            f"{said} has special bits, if the dtype has this value: the exponent's bits are all 1."
        )
    beyond = [row.format.name for row in rows if row.kind in ("inf", "nan", "saturated")]
    if beyond:
        return f"{said} is too large for {listed(beyond)}: the exponent's bits set the range."
    lost = [row.format.name for row in rows if row.kind == "zero"]
    if lost and value:
        return f"{said} is too near zero for {listed(lost)}: it is stored as 0."
    if all(row.error == 0 for row in rows):
        return f"{said} is exact in each dtype: it needs few bits."
    return f"{said} is rounded to the nearest number: the fraction's bits set the gap."


def _draw_table(canvas: Canvas, top: float, rows: Sequence[Stored]) -> None:
    y = top - 16
    keys = (("sign", INK), ("exponent", STORAGE.colour), ("fraction", STORAGE.tint))
    canvas.legend(LEFT, y, keys, size=SMALL)
    for x, label in ((STORED_X, "stored"), (ERROR_X, "error"), (GAP_X, "gap")):
        canvas.note(x, y, label, "right")
    cell = (WIDE - 2 * FIELD_GAP) / max(row.format.bits for row in rows)
    for at, row in enumerate(rows):
        y = top + at * ROW
        _draw_bits(canvas, y, cell, row)
        middle = y + BIT_H / 2
        canvas.text(MARGIN, middle - 7, row.format.name, size=13, mono=True)
        canvas.note(MARGIN, middle + 10, f"up to {number(row.format.largest, 3)}")
        # A dash replaces a number that does not exist.
        error = "–" if math.isnan(row.error) else number(row.error, 3)
        gap = "–" if math.isnan(row.gap) else number(row.gap, 3)
        columns = (
            (STORED_X, number(row.value, 9), INK),
            (ERROR_X, f"{'+' if row.error > 0 else ''}{error}", MUTED),
            (GAP_X, gap, MUTED),
        )
        for x, words, ink in columns:
            canvas.text(x, middle, words, ink, "right", size=12, mono=True)


def _draw_bits(canvas: Canvas, y: float, cell: float, row: Stored) -> None:
    """Draw the bits from the left, so that float32 and its shorter form bfloat16 are aligned."""
    x = float(LEFT)
    fields = (
        (row.sign, INK, "#ffffff"),
        (row.exponent, STORAGE.colour, STORAGE.on),
        (row.fraction, STORAGE.tint, INK),
    )
    for digits, fill, ink in fields:
        for digit in digits:
            canvas.box((x, y, cell, BIT_H), fill, edge=CARD, line=0.8)
            if cell >= 9:
                at = x + cell / 2, y + BIT_H / 2
                canvas.text(*at, digit, ink, "center", size=SMALL, mono=True)
            x += cell
        x += FIELD_GAP


def _draw_rulers(
    canvas: Canvas, y: float, value: float, reach: float, rows: Sequence[Stored]
) -> None:
    """Draw a ruler for each dtype with a tick for each number, and a line for the value."""
    middle, scale = LEFT + WIDE / 2, WIDE / 2 / reach
    canvas.note(MARGIN, y - 20, "the dtype's numbers")
    canvas.text(middle, y - 20, number(value, 6), ha="center", size=12, mono=True)
    canvas.note(GAP_X, y - 20, "how many", "right")
    bottom = y + RULER_ROW * len(rows) - 8
    landed = []
    for at, row in enumerate(rows):
        top, form = y + at * RULER_ROW, row.format
        base = top + TICK_H
        low, high = form.place(value - reach), form.place(value + reach)
        if form.number(low) < value - reach:
            low += 1
        canvas.text(MARGIN, top + TICK_H / 2, form.name, size=12, mono=True)
        canvas.line([(LEFT, base), (LEFT + WIDE, base)], MUTED, 0.8)
        count = high - low + 1 if abs(value) - reach < form.largest else 0
        if count > DENSE:
            canvas.box((LEFT, top, WIDE, TICK_H), STORAGE.tint)
        else:
            for n in range(count):
                x = middle + (form.number(low + n) - value) * scale
                line = 1.4 if count < 60 else 0.8
                canvas.line([(x, top), (x, base)], STORAGE.colour, line)
        told = f"{count:,}" if count < 10**6 else number(count, 2)
        canvas.text(GAP_X, top + TICK_H / 2, told, MUTED, "right", size=12, mono=True)
        if abs(row.error) <= reach:
            landed.append((middle + row.error * scale - 4.5, base - 4.5, 9, 9))
    canvas.line([(middle, y - 10), (middle, bottom)], INK, 1.2, dashed=True)
    for box in landed:
        canvas.box(box, STORAGE.colour, edge=INK, line=1.2)
    for x, sign, ha in ((LEFT, "−", "left"), (LEFT + WIDE, "+", "right")):
        canvas.line([(x, bottom - 2), (x, bottom + 4)], RULE)
        canvas.note(x, bottom + 12, f"{sign} {number(reach, 3)}", ha)
