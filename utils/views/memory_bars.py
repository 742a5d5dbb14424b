"""What a training step keeps in memory, stacked to scale."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import cycle

from matplotlib.figure import Figure

from utils.notebook.figures import show
from utils.notebook.style import CARD, GRADIENT, INK, MUTED, PARAMETER, RULE, STORAGE
from utils.views._canvas import INNER, MARGIN, Canvas, title_height
from utils.views._numbers import human_bytes
from utils.views._text_outlines import text_width

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

    Args:
        parts: name -> bytes; parameters, gradients, optimizer state and activations have looks of
            their own.

    Raises:
        ValueError: for no parts, a negative number, or 0 bytes in all.
    """
    figure, alt = draw(_checked(parts))
    show(figure, alt=alt)


def draw(parts: Mapping[str, int]) -> tuple[Figure, str]:
    """Return the figure for some parts, and its alternative text."""
    total = sum(parts.values())
    words = sentence(parts)
    top = title_height(words) + 12
    canvas = Canvas(top + BAR_H + 26 + ROW * (len(parts) + 1) + 14)
    canvas.title(words)
    looks = _looks(parts)
    x = float(MARGIN)
    y = top + BAR_H + 34
    for row, (name, size) in enumerate(parts.items()):
        fill, marker = looks[name]
        wide = INNER * size / total
        canvas.boxes([(x, top, wide, BAR_H)], [fill], line=1.5 if wide > 3 else 0)
        share = f"{size / total:.0%}"
        if wide > text_width(share, size=13) + 12:
            ink = INK if fill in PALE else CARD
            canvas.text(x + wide / 2, top + BAR_H / 2, share, colour=ink, ha="center")
        x += wide
        line = y + row * ROW
        canvas.marker(MARGIN + 6, line, marker, size=12, fill=fill, edge="none")
        canvas.text(MARGIN + 22, line, name)
        canvas.text(MARGIN + 300, line, human_bytes(size), ha="right", mono=True)
        canvas.note(MARGIN + 330, line, f"{size:,} B")
    line = y + len(parts) * ROW
    canvas.line([(MARGIN, line - ROW / 2), (MARGIN + 300, line - ROW / 2)], colour=RULE)
    canvas.text(MARGIN + 22, line, "in all", colour=MUTED)
    canvas.text(MARGIN + 300, line, human_bytes(total), ha="right", mono=True)
    canvas.note(MARGIN + 330, line, f"{total:,} B")
    return canvas.finish(), describe(parts)


def sentence(parts: Mapping[str, int]) -> str:
    """What the bar shows, as the figure's title."""
    total = human_bytes(sum(parts.values()))
    name = max(parts, key=lambda key: parts[key])
    share = parts[name] / sum(parts.values())
    own = parts.get("parameters")
    if own and len(parts) > 1:
        times = sum(parts.values()) / own
        return f"{total} in all: {times:.3g} times the parameters themselves."
    return f"{total} in all: {name} {'take' if name.endswith('s') else 'takes'} {share:.0%}."


def describe(parts: Mapping[str, int]) -> str:
    """Return the alternative text: the total, then each part."""
    total = sum(parts.values())
    rows = [f"{name} {human_bytes(size)} ({size / total:.0%})" for name, size in parts.items()]
    return f"Stacked bar of memory. {sentence(parts)} {', '.join(rows)}."


def _checked(parts: Mapping[str, int]) -> dict[str, int]:
    found = {str(name): int(size) for name, size in parts.items()}
    if any(size < 0 for size in found.values()) or not sum(found.values()):
        raise ValueError(f"memory_bars needs bytes of 0 or more, not 0 in all, got {found}")
    return found


def _looks(parts: Mapping[str, int]) -> dict[str, tuple[str, str]]:
    """Return a colour and marker for each part: its own, or the next grey square."""
    greys = cycle(GREYS)
    found: dict[str, tuple[str, str]] = {}
    for name in parts:
        own = [(c, mark) for keys, c, mark in LOOKS if any(key in name.lower() for key in keys)]
        look = own[0] if own else None
        found[name] = look if look and look not in found.values() else (next(greys), "s")
    return found
