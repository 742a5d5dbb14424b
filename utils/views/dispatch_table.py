"""A part of the dispatch table: operators as rows, keys as columns, a colour for a kind of slot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from utils.instruments import dispatch
from utils.notebook.style import CARD, INK, MUTED
from utils.views._canvas import INNER, LINE, MARGIN, RIGHT, Box, Canvas, Drawing
from utils.views._controls import choice
from utils.views._numbers import count, listed, require
from utils.views._slots import FALLS_THROUGH, KINDS, NOTHING, OTHER, Look, held, look, operators
from utils.views._text_outlines import cut, text_width, wrap
from utils.views._view import present

MOST_OPS, MOST_KEYS = 20, 14
ROW, HEAD, LEGEND = 26, 17, 24
# the space for the text about the lit slot, and for the operators' names
TOLD, LABEL_W, LINES = 15, 228, 2


def dispatch_table(ops: Sequence[Any], keys: Sequence[str]) -> None:
    """Show the slots of the table for `ops` at `keys`, and describe one slot in words.

    In a live view, controls choose this slot.

    ops: overloads, or names such as "aten::mul.Tensor".
    keys: names such as "AutogradCPU", in the order of the columns.

    Raises LookupError for an unknown operator. Raises ValueError for no or too many operators or
    keys.
    """
    names = tuple(dict.fromkeys(dispatch.op_name(op) for op in ops))
    keys = tuple(dict.fromkeys(keys))
    require("dispatch_table", len(names), "operators", MOST_OPS)
    require("dispatch_table", len(keys), "keys", MOST_KEYS)
    first = next((key for key in keys if key.startswith("Autograd")), keys[0])
    present(
        lambda op, key: draw(names, keys, op, key),
        operators(names[0], names),
        choice("key", first, keys),
    )


def draw(ops: Sequence[str], keys: Sequence[str], op: str, key: str) -> Drawing:
    slots = {name: [dispatch.table(name).get(k) for k in keys] for name in ops}
    composites = sum(dispatch.is_composite(name) for name in slots)
    title = "Each of these operators has its own kernel."
    if composites:
        verb = "is a composite" if composites == 1 else "are composites"
        whole = f"{composites} of {count(len(slots), 'operator')}"
        title = f"{whole} {verb}: one code for all backends and their autograd."
    canvas = Canvas(title)
    top = canvas.top + HEAD * len(keys) + 10
    left, wide = MARGIN + LABEL_W, (INNER - LABEL_W) / len(keys)
    lit = (list(ops).index(op), list(keys).index(key))
    _draw_heads(canvas, keys, left, wide, top, lit[1])
    parts = []
    for k, name in enumerate(ops):
        text = cut(name, LABEL_W - 12, mono=True)
        ink = INK if k == lit[0] else MUTED
        canvas.text(MARGIN, top + ROW * (k + 0.5), text, ink, mono=True)
        kinds: dict[str, list[str]] = {}
        for one, entry in zip(keys, slots[name], strict=True):
            kinds.setdefault(held(entry), []).append(one)
        told = "; ".join(f"{kind} at {listed(at)}" for kind, at in kinds.items())
        parts.append(f"{name}: {told}.")
        for j, entry in enumerate(slots[name]):
            _draw_cell(canvas, (left + wide * j, top + ROW * k, wide - 2, ROW - 2), look(entry))
    box = (left + wide * lit[1] - 2, top + ROW * lit[0] - 2, wide + 2, ROW + 2)
    canvas.box(box, "none", edge=INK, line=2.2, radius=3)
    legend = top + ROW * len(ops) + 26
    shown = [*KINDS.values(), FALLS_THROUGH, NOTHING]
    if any(look(entry) is OTHER for row in slots.values() for entry in row):
        shown.append(OTHER)
    for k, kind in enumerate(shown):
        x, y = MARGIN + INNER / 4 * (k % 4), legend + LEGEND * (k // 4)
        _draw_cell(canvas, (x, y - 9, 22, 18), kind)
        canvas.text(x + 29, y, kind.name)
    told_at = legend + LEGEND * (-(-len(shown) // 4)) + 12
    told = in_words(op, key)
    for k, line in enumerate(wrap(told, INNER, size=TOLD)[:LINES]):
        canvas.text(MARGIN, told_at + 6 + LINE * k, line, size=TOLD)
    alt = f"Dispatch table. {title} Keys, from left to right: {listed(keys)}. {told}"
    return canvas.finish(told_at + LINE * LINES + 12, " ".join([alt, *parts]))


def _draw_heads(
    canvas: Canvas, keys: Sequence[str], left: float, wide: float, top: float, lit: int
) -> None:
    """Draw the names of the keys as a staircase, each above its column."""
    xs = [left + wide * (k + 0.5) - 1 for k in range(len(keys))]
    ys = [top - 10 - HEAD * (len(keys) - k) + HEAD / 2 for k in range(len(keys))]
    for x, y in zip(xs, ys, strict=True):
        canvas.line([(x, y + 8), (x, top - 2)])
    for k, (x, y, key) in enumerate(zip(xs, ys, keys, strict=True)):
        room = text_width(key)
        start = min(x - 6, RIGHT - room)
        if start < x - 6:  # the name extends to the left, over the lines of other columns
            canvas.box((start - 3, y - 8, room + 6, 16), CARD)
        canvas.text(start, y, key, INK if k == lit else MUTED)


def _draw_cell(canvas: Canvas, box: Box, kind: Look) -> None:
    edge = MUTED if kind.dashed else "none"
    canvas.box(box, kind.fill, edge=edge, line=0.8, dashed=kind.dashed)
    x, y, wide, high = box
    canvas.text(x + wide / 2, y + high / 2, kind.mark, kind.ink, "center")


def in_words(op: str, key: str) -> str:
    entry = dispatch.table(op).get(key)
    if entry is None:
        return f"{op} at {key}: nothing. A call that ends here is an error."
    code = f"{'an' if entry.kind[0] in 'aeiou' else 'a'} {entry.kind}"
    if entry.fallthrough:
        code = "an empty slot that says: fall through to the next key"
    file = cut(entry.file, INNER - 90, size=TOLD)
    return f"{op} at {key}: {code}, registered at {file}, line {entry.line}."
