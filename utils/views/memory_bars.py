"""The memory of a training step, as a stacked bar to scale."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import cycle

from utils.notebook.style import CARD, GRADIENT, INK, MUTED, PARAMETER, RULE, STORAGE
from utils.views._canvas import INNER, MARGIN, Canvas, Drawing
from utils.views._numbers import human_bytes
from utils.views._text_outlines import text_width
from utils.views._view import present

BAR_H, ROW = 44, 28
STATE = "#cf9bbd"  # for parts with one or more numbers for each parameter, so a lighter purple
LOOKS = {  # colour and shape
    "parameters": (PARAMETER.colour, PARAMETER.marker),
    "gradients": (GRADIENT.colour, GRADIENT.marker),
    "optimizer state": (STATE, PARAMETER.marker),
    "activations": (STORAGE.colour, STORAGE.marker),
}
GREYS = ("#5b6675", "#8b95a3", "#b4bcc7", RULE)
PALE = (STATE, *GREYS[2:])  # colours under dark text


def memory_bars(parts: Mapping[str, int]) -> None:
    """Show the bytes of each part, stacked in one bar.

    parts: name -> bytes. A part whose name is in LOOKS has a special colour.

    Raises ValueError for no parts, a negative number, or a total of 0 bytes.
    """
    found = {str(name): int(size) for name, size in parts.items()}
    if any(size < 0 for size in found.values()) or not sum(found.values()):
        raise ValueError(
            f"memory_bars: expected numbers of bytes of 0 or more, with a sum above 0, got {found}"
        )
    present(lambda: draw(found))


def draw(parts: Mapping[str, int]) -> Drawing:
    total = sum(parts.values())
    most = max(parts, key=parts.__getitem__)
    told = f"{most} {'take' if most.endswith('s') else 'takes'} {parts[most] / total:.0%}"
    if parts.get("parameters") and len(parts) > 1:
        told = f"{total / parts['parameters']:.3g} times the parameters themselves"
    canvas = Canvas(f"{human_bytes(total)} in all: {told}.")
    top = canvas.top + 12
    x, y = float(MARGIN), top + BAR_H + 34
    rows, greys = [], cycle(GREYS)
    for name, size in parts.items():
        fill, marker = LOOKS.get(name) or (next(greys), "s")
        wide, share = INNER * size / total, f"{size / total:.0%}"
        canvas.box((x, top, wide, BAR_H), fill, edge=CARD, line=1.5 if wide > 3 else 0)
        if wide > text_width(share, size=13) + 12:
            ink = INK if fill in PALE else CARD
            canvas.text(x + wide / 2, top + BAR_H / 2, share, ink, "center", size=13)
        x += wide
        canvas.marker(MARGIN + 6, y, marker, 12, fill)
        _draw_row(canvas, y, name, size, INK)
        rows.append(f"{name} {human_bytes(size)} ({share})")
        y += ROW
    canvas.line([(MARGIN, y - ROW / 2), (MARGIN + 300, y - ROW / 2)], RULE)
    _draw_row(canvas, y, "in all", total, MUTED)
    alt = f"Stacked bar of memory. {canvas.title} {', '.join(rows)}."
    return canvas.finish(y + ROW + 6, alt)


def _draw_row(canvas: Canvas, y: float, name: str, size: int, ink: str) -> None:
    canvas.text(MARGIN + 22, y, name, ink, size=13)
    canvas.text(MARGIN + 300, y, human_bytes(size), ha="right", size=13, mono=True)
    canvas.note(MARGIN + 330, y, f"{size:,} B")
