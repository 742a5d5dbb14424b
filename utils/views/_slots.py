"""How the views of the dispatcher show what a slot holds: a colour and a mark for each kind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from utils.instruments.dispatch import COMPOSITE, Entry
from utils.notebook.style import CARD, GRADIENT, IDLE, INK, KERNEL, MUTED, PARAMETER, STORAGE, VIEW
from utils.views._canvas import Canvas
from utils.views._text_outlines import text_width

PAD = 6  # CSS pixels between a chip's edge and its words


@dataclass(frozen=True)
class Look:
    """A kind of slot, or of layer: its name, fill, the colour of text on that, and a mark."""

    name: str
    fill: str
    ink: str
    mark: str = ""
    dashed: bool = False


NOTHING = Look("nothing", IDLE, MUTED)
FALLS_THROUGH = Look("falls through", CARD, MUTED, "↓", dashed=True)
OTHER = Look("other code", MUTED, CARD, "O")
KINDS = {
    "kernel": Look("kernel", KERNEL.colour, KERNEL.on, "K"),
    "autograd kernel": Look("autograd kernel", GRADIENT.colour, GRADIENT.on, "A"),
    COMPOSITE: Look(COMPOSITE, PARAMETER.colour, PARAMETER.on, "C"),
    "default for backends": Look("default for backends", KERNEL.tint, INK, "D"),
    "opened for vmap": Look("opened for vmap", VIEW.colour, VIEW.on, "B"),
    "fallback": Look("fallback", STORAGE.tint, INK, "F"),
}

AUTOGRAD = Look("autograd", GRADIENT.colour, GRADIENT.on)
AUTOCAST = Look("autocast", STORAGE.colour, STORAGE.on)
OPENED = Look(COMPOSITE, PARAMETER.colour, PARAMETER.on)
VIEWS = Look("ADInplaceOrView", VIEW.colour, VIEW.on)
BACKEND = Look("the backend", KERNEL.colour, KERNEL.on)
ELSE = Look("another layer", STORAGE.tint, INK)
LAYERS = (AUTOCAST, AUTOGRAD, VIEWS, OPENED, BACKEND, ELSE)


def look(entry: Entry | None) -> Look:
    """How to show what a slot holds, nothing included."""
    if entry is None:
        return NOTHING
    return FALLS_THROUGH if entry.fallthrough else KINDS.get(entry.kind, OTHER)


def held(entry: Entry | None) -> str:
    """What a slot holds, in words: the kind as the table has it."""
    if entry is None:
        return NOTHING.name
    return FALLS_THROUGH.name if entry.fallthrough else entry.kind


def layer(entry: Entry) -> Look:
    """How to show a slot that a call passed: one colour for each kind of layer."""
    if entry.kind == COMPOSITE:
        return OPENED
    for start, found in (("Autograd", AUTOGRAD), ("Autocast", AUTOCAST), (VIEWS.name, VIEWS)):
        if entry.key.startswith(start):
            return found
    return BACKEND if entry.kind in ("kernel", "default for backends") and _last(entry) else ELSE


def _last(entry: Entry) -> bool:
    return entry.key not in ("BackendSelect", "Conjugate", "Negative", "ZeroTensor")


def file_name(entry: Entry) -> str:
    """Return the file of a slot without its folders."""
    return entry.file.rpartition("/")[2]


def short(names: Sequence[str]) -> list[tuple[str, str]]:
    """Operators as options of a slider: beside it is no room for the namespace.

    A list to choose from would open and close by the mouse alone: its keys move JupyterLab's cells.
    """
    return [(name.removeprefix("aten::"), name) for name in names]


def cut(words: str, width: float, *, size: float, mono: bool = False) -> str:
    """`words`, their middle left out where they are wider than `width`: an end tells as much."""
    if text_width(words, size=size, mono=mono) <= width:
        return words
    keep = len(words) - 1
    while keep > 2:
        short = f"{words[: keep - keep // 2]}…{words[-(keep // 2) :]}"
        if text_width(short, size=size, mono=mono) <= width:
            return short
        keep -= 1
    return "…"


def chip_width(words: str, *, size: float) -> float:
    """How wide a chip with these words is."""
    return text_width(words, size=size) + 2 * PAD


@dataclass(frozen=True)
class Chip:
    """A small coloured label: its left end, its middle, its words and how it looks."""

    x: float
    y: float
    words: str
    look: Look

    def width(self, size: float) -> float:
        return chip_width(self.words, size=size)


def draw_chips(canvas: Canvas, chips: Sequence[Chip], *, size: float) -> None:
    """All at once: what a redraw costs is the number of separate drawings."""
    high = size + 8
    for dashed in (False, True):
        some = [chip for chip in chips if chip.look.dashed == dashed]
        boxes = [(chip.x, chip.y - high / 2, chip.width(size), high) for chip in some]
        canvas.boxes(
            boxes,
            [chip.look.fill for chip in some],
            edge=MUTED if dashed else "none",
            radius=4,
            dashed=dashed,
        )
    for chip in chips:
        canvas.text(chip.x + PAD, chip.y, chip.words, size=size, colour=chip.look.ink)
