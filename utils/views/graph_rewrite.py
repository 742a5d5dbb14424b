"""An FX graph before and after a rewrite, node by node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

from torch import fx

from utils.notebook.style import GRADIENT, IDLE, MUTED, RULE, VIEW
from utils.views._canvas import INNER, LINE, MARGIN, Canvas, Drawing
from utils.views._numbers import count, listed, require
from utils.views._text_outlines import cut
from utils.views._view import present

MOST = 24  # rows
ROW = 29
WIDE = INNER / 2 - 12  # of a graph
LINES = 2  # lines of text below the graphs


@dataclass(frozen=True)
class Row:
    """One node: its name, its text, and the names of the nodes that it reads."""

    name: str
    text: str
    reads: tuple[str, ...]


Pair = tuple[Row | None, Row | None]


def graph_rewrite(before: Any, after: Any) -> None:
    """Show two graphs side by side, with the removed nodes, the new nodes, and their users.

    before, after: FX graphs, or modules with a graph. Raises ValueError for too many nodes.
    """
    pairs = aligned(read(before), read(after))
    require("graph_rewrite", len(pairs), "nodes", MOST)
    present(lambda: draw(pairs))


def read(graph: Any) -> list[Row]:
    nodes = getattr(graph, "graph", graph).nodes
    return [Row(node.name, _text(node), _reads(node)) for node in nodes]


def _reads(node: fx.Node) -> tuple[str, ...]:
    return tuple(source.name for source in node.all_input_nodes)


def _text(node: fx.Node) -> str:
    if node.op == "placeholder":
        return "an input"
    if node.op == "output":
        return f"returns {listed(_reads(node))}"
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
    """Pair the rows of both graphs: nodes of the same name, with None for a missing node."""
    names = [row.name for row in before], [row.name for row in after]
    pairs: list[Pair] = []
    for kind, i, i2, j, j2 in SequenceMatcher(None, *names, autojunk=False).get_opcodes():
        if kind == "equal":
            pairs += zip(before[i:i2], after[j:j2], strict=True)
        else:
            pairs += [(row, None) for row in before[i:i2]]
            pairs += [(None, row) for row in after[j:j2]]
    return pairs


def draw(pairs: Sequence[Pair]) -> Drawing:
    went, came = (changed(pairs, side) for side in (0, 1))
    title = f"{count(len(went), 'node')} removed, {count(len(came), 'node')} added."
    canvas = Canvas(title if went or came else "The rewrite changed no node.")
    top = canvas.top + 34
    below = top + ROW * len(pairs) + 16
    parts = [f"A graph before and after a rewrite. {canvas.title}"]
    for side, (when, tint) in enumerate((("Before", GRADIENT.tint), ("After", VIEW.tint))):
        x = MARGIN + side * (WIDE + 24)
        canvas.text(x, top - 18, when.lower(), MUTED)
        rows = [(k, pair[side]) for k, pair in enumerate(pairs)]
        nodes = []
        for k, row in rows:
            if row is not None:
                box = (x, top + ROW * k, WIDE, ROW - 5)
                canvas.box(box, tint if None in pairs[k] else IDLE, edge=RULE, radius=4)
                words = cut(f"{row.name}: {row.text}", WIDE - 20)
                canvas.text(x + 10, box[1] + box[3] / 2, words)
                nodes.append(f"{row.name}, {row.text}")
        parts.append(f"{when}: {'; '.join(nodes)}.")
    tints = (("removed", GRADIENT.tint, RULE), ("added", VIEW.tint, RULE))
    canvas.legend(MARGIN, below + 12, tints)
    named = (("Removed", went), ("Added", came))
    readers = " ".join(f"{verb}: {'; '.join(nodes)}." for verb, nodes in named if nodes)
    canvas.paragraph(below + 40, readers, LINES)
    return canvas.finish(below + 62 + LINE * (LINES - 1), f"{' '.join(parts)} {readers}")


def changed(pairs: Sequence[Pair], side: int) -> list[str]:
    """Return the nodes that only this side has, each with the nodes that read it."""
    rows = [row for pair in pairs if (row := pair[side]) is not None]
    alone = [row for pair in pairs if pair[1 - side] is None and (row := pair[side]) is not None]
    readers = {row.name: [r.name for r in rows if row.name in r.reads] for row in alone}
    return [f"{name}, read by {listed(names) or 'nobody'}" for name, names in readers.items()]
