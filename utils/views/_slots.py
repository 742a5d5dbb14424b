"""How the views of the dispatcher show a slot's content: a colour and a mark for each kind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from utils.instruments.dispatch import COMPOSITE, Entry
from utils.notebook.style import CARD, GRADIENT, IDLE, INK, KERNEL, MUTED, PARAMETER, STORAGE, VIEW
from utils.views._canvas import Canvas
from utils.views._controls import Control, choice
from utils.views._text_outlines import text_width

PAD = 6  # CSS pixels between a chip's edge and its words


@dataclass(frozen=True)
class Look:
    """The look of a kind of slot or layer: name, fill, colour of text on the fill, and mark."""

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
    """Return how to show the content of a slot, which may be empty."""
    if entry is None:
        return NOTHING
    return FALLS_THROUGH if entry.fallthrough else KINDS.get(entry.kind, OTHER)


def held(entry: Entry | None) -> str:
    """Return the content of a slot in words: the kind of its kernel, or why it has no kernel."""
    return entry.kind if entry is not None and not entry.fallthrough else look(entry).name


def layer(entry: Entry) -> Look:
    """Return how to show a slot that a call passed. Each kind of layer has a colour."""
    if entry.kind == COMPOSITE:
        return OPENED
    for start, look_of in (("Autograd", AUTOGRAD), ("Autocast", AUTOCAST), (VIEWS.name, VIEWS)):
        if entry.key.startswith(start):
            return look_of
    last = entry.key not in ("BackendSelect", "Conjugate", "Negative", "ZeroTensor")
    return BACKEND if entry.kind in ("kernel", "default for backends") and last else ELSE


def operators(start: str, names: Sequence[str]) -> Control:
    """Return a control to choose an operator. Its labels have no room for the namespace."""
    return choice("operator", start, names, [name.removeprefix("aten::") for name in names])


def chip_width(words: str, *, size: float) -> float:
    """Return the width of a small coloured label with these words."""
    return text_width(words, size=size) + 2 * PAD


def draw_chip(canvas: Canvas, x: float, y: float, words: str, kind: Look, *, size: float) -> float:
    """Draw a label that begins at x and whose middle is at y. Return the x of its end."""
    wide, high = chip_width(words, size=size), size + 8
    edge = MUTED if kind.dashed else "none"
    box = (x, y - high / 2, wide, high)
    canvas.box(box, kind.fill, edge=edge, radius=4, dashed=kind.dashed)
    canvas.text(x + PAD, y, words, kind.ink, size=size)
    return x + wide
