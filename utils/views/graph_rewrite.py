"""An FX graph before and after a rewrite, node by node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

from torch import fx

from utils.notebook.style import CARD, GRADIENT, IDLE, INK, KERNEL, MUTED, RULE, STORAGE, VIEW
from utils.views._canvas import INNER, LINE, MARGIN, Canvas, Drawing
from utils.views._controls import slider
from utils.views._numbers import count, listed, require
from utils.views._text_outlines import cut
from utils.views._view import present

MOST = 24  # rows
ROW = 29
WIDE = INNER / 2 - 12  # of a graph
LINES = 3  # of words below


@dataclass(frozen=True)
class Row:
    """One node: its name, what it is as text, and the names of those that it reads."""

    name: str
    text: str
    reads: tuple[str, ...]


Pair = tuple[Row | None, Row | None]


def graph_rewrite(before: Any, after: Any, *, node: int = 1) -> None:
    """Show two graphs side by side: what went, what came, and who reads whom.

    before, after: FX graphs, or modules that hold one. node: the row that is lit, from 1; live, a
    slider moves it. Raises ValueError for too many nodes or a row that is not there.
    """
    pairs = aligned(read(before), read(after))
    require("graph_rewrite", len(pairs), "nodes", MOST)
    present(lambda at: draw(pairs, at), slider("node", node, 1, len(pairs)))


def read(graph: Any) -> list[Row]:
    nodes = getattr(graph, "graph", graph).nodes
    return [Row(n.name, _text(n), tuple(one.name for one in n.all_input_nodes)) for n in nodes]


def _text(node: fx.Node) -> str:
    if node.op == "placeholder":
        return "an input"
    if node.op == "output":
        return f"returns {listed([one.name for one in node.all_input_nodes])}"
    given = [_written(arg) for arg in node.args]
    given += [f"{key}={_written(value)}" for key, value in node.kwargs.items()]
    if node.op == "call_method":
        return f"{given[0]}.{node.target}({', '.join(given[1:])})"
    name = str(getattr(node.target, "__name__", node.target))
    return f"{name}({', '.join(given)})"


def _written(arg: Any) -> str:
    if isinstance(arg, (tuple, list)):
        return f"({', '.join(map(_written, arg))})"
    return str(arg)


def aligned(before: Sequence[Row], after: Sequence[Row]) -> list[Pair]:
    """The rows of both, with nodes of one name side by side and None where one has none."""
    names = [row.name for row in before], [row.name for row in after]
    pairs: list[Pair] = []
    for kind, i, i2, j, j2 in SequenceMatcher(None, *names, autojunk=False).get_opcodes():
        if kind == "equal":
            pairs += zip(before[i:i2], after[j:j2], strict=True)
        else:
            pairs += [(row, None) for row in before[i:i2]]
            pairs += [(None, row) for row in after[j:j2]]
    return pairs


def draw(pairs: Sequence[Pair], node: int) -> Drawing:
    went, came = (sum(pair[1 - side] is None for pair in pairs) for side in (0, 1))
    changed = f"{count(went, 'node')} went, {count(came, 'node')} came."
    canvas = Canvas(changed if went or came else "The rewrite changed no node.")
    top = canvas.top + 34
    below = top + ROW * len(pairs) + 16
    parts = [f"A graph before and after a rewrite. {canvas.title}"]
    lit = []  # the lit row: the node on either side, and who reads it
    for side, (when, tint) in enumerate((("Before", GRADIENT.tint), ("After", VIEW.tint))):
        x, chosen = MARGIN + side * (WIDE + 24), pairs[node - 1][side]
        canvas.text(x, top - 18, when.lower(), MUTED)
        rows = []
        for k, pair in enumerate(pairs):
            row = pair[side]
            if row is None:
                continue
            rows.append(row)
            box = (x, top + ROW * k, WIDE, ROW - 5)
            canvas.box(box, tint if None in pair else IDLE, edge=RULE, radius=4)
            if edge := _edge(row, chosen):
                canvas.box(box, "none", edge=edge, line=2.4, radius=4)
            canvas.text(x + 10, box[1] + box[3] / 2, cut(f"{row.name}: {row.text}", WIDE - 20))
        parts.append(f"{when}: {'; '.join(f'{row.name}, {row.text}' for row in rows)}.")
        if chosen is None:
            lit.append(f"{when}: it is not there.")
        else:
            readers = listed([row.name for row in rows if chosen.name in row.reads]) or "nobody"
            lit.append(f"{when}: {chosen.name} is {chosen.text}, read by {readers}.")
    kinds = (
        ("went", GRADIENT.tint, RULE),
        ("came", VIEW.tint, RULE),
        ("what the lit node reads", CARD, STORAGE.colour, False, 2.4),
        ("who reads it", CARD, KERNEL.colour, False, 2.4),
    )
    canvas.legend(MARGIN, below + 12, kinds)
    canvas.paragraph(below + 40, " ".join(lit), LINES)
    return canvas.finish(below + 62 + LINE * LINES, f"{' '.join(parts)} Lit: {' '.join(lit)}")


def _edge(row: Row, chosen: Row | None) -> str | None:
    if chosen is None:
        return None
    if row is chosen:
        return INK
    if row.name in chosen.reads:
        return STORAGE.colour
    return KERNEL.colour if chosen.name in row.reads else None
