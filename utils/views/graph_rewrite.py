"""An FX graph before and after a rewrite, node by node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

from matplotlib.figure import Figure
from torch import fx

from utils.notebook.style import CARD, GRADIENT, IDLE, INK, KERNEL, MUTED, RULE, STORAGE, VIEW
from utils.views import _interactive
from utils.views._canvas import INNER, MARGIN, Canvas, title_height
from utils.views._numbers import count, listed
from utils.views._slots import cut
from utils.views._text_outlines import wrap

MOST = 24  # rows
ROW, TEXT = 29, 14
BETWEEN = 24  # CSS pixels between the two graphs
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
    if len(pairs) > MOST:
        raise ValueError(f"graph_rewrite shows up to {MOST} nodes, got {len(pairs)}")
    draw(pairs, node)
    _interactive.present(
        lambda at: draw(pairs, at),
        (node,),
        lambda widgets: [widgets.IntSlider(value=node, min=1, max=len(pairs), description="node")],
    )


def read(graph: Any) -> list[Row]:
    """The nodes of a graph in order."""
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


def draw(pairs: Sequence[Pair], node: int) -> tuple[Figure, str]:
    """The figure with one row lit, and its alternative text."""
    if not 1 <= node <= len(pairs):
        raise ValueError(f"node: expected 1 to {len(pairs)}, got {node}")
    words = sentence(pairs)
    top = title_height(words) + 34
    below = top + ROW * len(pairs) + 16
    canvas = Canvas(below + 62 + 21 * LINES)
    canvas.title(words)
    wide = (INNER - BETWEEN) / 2
    for side, name in enumerate(("before", "after")):
        x = MARGIN + side * (wide + BETWEEN)
        canvas.text(x, top - 18, name, size=TEXT, colour=MUTED)
        _draw_side(canvas, pairs, side, node - 1, (x, top, wide))
    _draw_legend(canvas, below + 4)
    lines = wrap(in_words(pairs, node), INNER, size=TEXT)
    for row, line in enumerate(lines[:LINES]):
        canvas.text(MARGIN, below + 40 + 21 * row, cut(line, INNER, size=TEXT), size=TEXT)
    return canvas.finish(), describe(pairs, node)


def _draw_side(
    canvas: Canvas,
    pairs: Sequence[Pair],
    side: int,
    lit: int,
    place: tuple[float, float, float],
) -> None:
    """One graph; place: its left edge, its top and its width."""
    x, top, wide = place
    chosen = pairs[lit][side]
    changed = (GRADIENT.tint, VIEW.tint)[side]
    for k, pair in enumerate(pairs):
        row = pair[side]
        if row is None:
            continue
        y = top + ROW * k
        box = (x, y, wide, ROW - 5)
        canvas.boxes([box], [changed if None in pair else IDLE], edge=RULE, radius=4)
        edge = _edge(row, chosen)
        if edge:
            canvas.boxes([box], ["none"], edge=edge, line=2.4, radius=4)
        text = cut(f"{row.name}: {row.text}", wide - 20, size=TEXT)
        canvas.text(x + 10, y + (ROW - 5) / 2, text, size=TEXT)


def _edge(row: Row, chosen: Row | None) -> str | None:
    if chosen is None:
        return None
    if row is chosen:
        return INK
    if row.name in chosen.reads:
        return STORAGE.colour
    return KERNEL.colour if chosen.name in row.reads else None


def _draw_legend(canvas: Canvas, y: float) -> None:
    kinds = (
        ("went", GRADIENT.tint, RULE),
        ("came", VIEW.tint, RULE),
        ("what the lit node reads", CARD, STORAGE.colour),
        ("who reads it", CARD, KERNEL.colour),
    )
    for k, (name, fill, edge) in enumerate(kinds):
        x = MARGIN + (0, 90, 180, 390)[k]
        canvas.boxes([(x, y, 20, 16)], [fill], edge=edge, line=1 if edge == RULE else 2.4, radius=3)
        canvas.text(x + 28, y + 8, name, size=TEXT, colour=MUTED)


def sentence(pairs: Sequence[Pair]) -> str:
    """What the rewrite did, as the figure's title."""
    went, came = (sum(pair[1 - side] is None for pair in pairs) for side in (0, 1))
    if not went and not came:
        return "The rewrite changed no node."
    return f"{count(went, 'node')} went, {count(came, 'node')} came."


def in_words(pairs: Sequence[Pair], node: int) -> str:
    """The lit row: the node on either side, what it reads and who reads it."""
    told = []
    for side, when in enumerate(("Before", "After")):
        row = pairs[node - 1][side]
        if row is None:
            told.append(f"{when}: it is not there.")
            continue
        readers = [pair[side].name for pair in pairs if _reads(pair[side], row)]  # type: ignore[union-attr]
        seen = f"read by {listed(readers)}" if readers else "read by nobody"
        told.append(f"{when}: {row.name} is {row.text}, {seen}.")
    return " ".join(told)


def _reads(row: Row | None, what: Row) -> bool:
    return row is not None and what.name in row.reads


def describe(pairs: Sequence[Pair], node: int) -> str:
    """The alternative text: both graphs in order, and the lit row."""
    parts = [f"A graph before and after a rewrite. {sentence(pairs)}"]
    for side, when in enumerate(("Before", "After")):
        rows = [row for pair in pairs if (row := pair[side]) is not None]
        parts.append(f"{when}: {'; '.join(f'{row.name}, {row.text}' for row in rows)}.")
    parts.append(f"Lit: {in_words(pairs, node)}")
    return " ".join(parts)
