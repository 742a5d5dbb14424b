"""What a training step keeps in memory, stacked to scale."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import cycle

from utils.notebook.style import CARD, GRADIENT, INK, MUTED, PARAMETER, RULE, STORAGE
from utils.views._canvas import INNER, MARGIN, Canvas, Drawing
from utils.views._numbers import human_bytes
from utils.views._text_outlines import text_width
from utils.views._view import present

BAR_H, ROW = 44, 28
STATE = "#cf9bbd"  # the parameters' purple, lighter: kept once or more for each of them
# Words in a part's name, and its colour and shape: the first that fits is taken.
LOOKS = (
    (("grad",), GRADIENT.colour, GRADIENT.marker),
    (("state", "optimizer", "moment", "adam"), STATE, PARAMETER.marker),
    (("param", "weight"), PARAMETER.colour, PARAMETER.marker),
    (("activation", "backward", "saved"), STORAGE.colour, STORAGE.marker),
)
GREYS = ("#5b6675", "#8b95a3", "#b4bcc7", RULE)
PALE = (STATE, *GREYS[2:])  # these take dark text


def memory_bars(parts: Mapping[str, int]) -> None:
    """Show how many bytes each part takes of the whole, stacked in one bar.

    parts: name -> bytes; parameters, gradients, optimizer state and activations have looks of their
    own. Raises ValueError for no parts, a negative number, or 0 bytes in all.
    """
    found = {str(name): int(size) for name, size in parts.items()}
    if any(size < 0 for size in found.values()) or not sum(found.values()):
        raise ValueError(f"memory_bars needs bytes of 0 or more, not 0 in all, got {found}")
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
    rows = []
    for (name, size), (fill, marker) in zip(parts.items(), _looks(parts), strict=True):
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


def _looks(parts: Mapping[str, int]) -> list[tuple[str, str]]:
    """Return a colour and marker for each part: its own, or the next grey square."""
    greys = cycle(GREYS)
    found: list[tuple[str, str]] = []
    for name in parts:
        fits = ((c, mark) for keys, c, mark in LOOKS if any(key in name.lower() for key in keys))
        look = next(fits, None)
        found.append(look if look and look not in found else (next(greys), "s"))
    return found
