"""The graph that autograd hung on a tensor: its nodes, what they saved, and the leaves below."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import torch
from matplotlib.figure import Figure
from torch import Tensor

from utils.notebook.figures import show
from utils.notebook.style import CARD, GRADIENT, IDLE, MUTED, PARAMETER, STORAGE
from utils.views._canvas import INNER, MARGIN, SMALL, Canvas, title_height
from utils.views._layers import GAP, layout
from utils.views._numbers import count, human_bytes
from utils.views._text_outlines import cut, text_width

MOST = 24  # nodes in one picture
ROW, HIGH, NODE_W = 86, 46, 112
FREED = "freed by backward"


@dataclass(frozen=True)
class Node:
    """One node as it is drawn: what it is called, and what its second line says."""

    name: str
    detail: str
    leaf: bool


@dataclass(frozen=True)
class Kept:
    """Storages by their address: how many bytes each has, and in how many places it is kept."""

    sizes: dict[int, int]
    holders: Counter[int]


def autograd_graph(tensor: Tensor, **named: Tensor) -> None:
    """Show the graph behind `tensor`: its grad_fn on top, the leaves it will reach at the bottom.

    Args:
        named: leaves to call by name, such as weight=layer.weight. Draw before backward, which
            frees what nodes saved.

    Raises:
        TypeError: for anything but a tensor.
        ValueError: for a tensor without a graph.
    """
    figure, alt = draw(tensor, named)
    show(figure, alt=alt)


def draw(tensor: Tensor, named: dict[str, Tensor]) -> tuple[Figure, str]:
    """Return the figure, and its alternative text."""
    if not isinstance(tensor, Tensor):
        raise TypeError(f"autograd_graph needs a torch.Tensor, got {type(tensor).__name__}")
    if tensor.grad_fn is None:
        why = "it is a leaf" if tensor.requires_grad else "nothing it was made from requires grad"
        raise ValueError(f"this tensor has no graph: {why}")
    nodes, graph, left_out, saved, shared = read(tensor, named)
    words = sentence(nodes, saved, left_out)
    widths = _widths(nodes)
    places = layout(graph, widths, MARGIN, MARGIN + INNER)
    top = title_height(words) + 34
    remark = _counted_once(shared)
    canvas = Canvas(top + ROW * (places.rows - 1) + HIGH + (52 if remark else 26))
    canvas.title(words)
    canvas.note(MARGIN, canvas.height - 24, remark)
    twice = any(len(sources) > len(set(sources)) for sources in graph.values())
    _legend(canvas, top - 22, twice=twice)

    def y(row: int) -> float:
        return top + ROW * row

    for (user, source), bends in places.bends.items():
        path = [(places.x[user], y(places.row[user]) + HIGH)]
        for row, x in bends:
            path += [(x, y(row) - 6), (x, y(row) + HIGH + 6)]
        end = (places.x[source], y(places.row[source]) - 7)
        times = graph[user].count(source)
        canvas.line([*path, end], colour=GRADIENT.colour, line=1.4 * times)
        canvas.marker(*end, "v", size=7, fill=GRADIENT.colour, edge="none")
    for key, node in nodes.items():
        wide = widths[key]
        box = (places.x[key] - wide / 2, y(places.row[key]), wide, HIGH)
        fill = PARAMETER.tint if node.leaf else GRADIENT.tint if node.detail else IDLE
        canvas.boxes([box], [fill], edge=CARD, radius=7)
        middle = box[1] + HIGH / 2
        canvas.text(places.x[key], middle - 9, cut(node.name, wide - 10, 12), size=12, ha="center")
        colour = PARAMETER.colour if node.leaf else STORAGE.colour
        if node.detail in ("", FREED):
            colour = MUTED
        detail = cut(node.detail or "saves nothing", wide - 8, SMALL)
        canvas.text(places.x[key], middle + 10, detail, size=SMALL, colour=colour, ha="center")
    return canvas.finish(), describe(nodes, graph, f"{words} {remark}".strip())


def read(tensor: Tensor, named: dict[str, Tensor]) -> tuple[dict, dict, int, int, int]:
    """Nodes and edges from a tensor down, and three counts.

    They are: nodes left out, bytes saved, and places where a storage is kept that is kept elsewhere
    as well.
    """
    known = {id(leaf): name for name, leaf in named.items()}
    root: Any = tensor.grad_fn
    order, seen = [root], {root}
    for node in order:
        for source, _ in node.next_functions:
            if source is not None and source not in seen:
                seen.add(source)
                order.append(source)
    shown = order[:MOST]
    nodes: dict[Any, Node] = {}
    storages: dict[Any, int] = {}
    holders: Counter[int] = Counter()
    for k, node in enumerate(order):
        leaf = getattr(node, "variable", None)
        if leaf is not None:
            name = known.get(id(leaf), "a leaf")
            found = Node("AccumulateGrad", f"{name} {_shape(leaf)}", True)
        else:
            words, kept = saved_by(node)
            storages |= kept.sizes
            holders += kept.holders
            found = Node(node.name().removesuffix("Backward") or node.name(), words, False)
        if k < MOST:
            nodes[node] = found
    graph = {
        node: [source for source, _ in node.next_functions if source in nodes] for node in shown
    }
    shared = sum(count for count in holders.values() if count > 1)
    return nodes, graph, len(order) - len(shown), sum(storages.values()), shared


def saved_by(node: Any) -> tuple[str, Kept]:
    """What a node keeps for backward, in words and in storages."""
    pairs: list[tuple[str, Any]] = []
    try:
        for name in dir(node):
            if name.startswith("_saved_"):
                pairs.append((name.removeprefix("_saved_"), getattr(node, name)))
        if not pairs and hasattr(node, "saved_tensors"):
            pairs = [("saved", value) for value in node.saved_tensors]
    except RuntimeError:
        return FREED, Kept({}, Counter())
    words, kept = [], Kept({}, Counter())
    for name, value in pairs:
        tensors = value if isinstance(value, (tuple, list)) else (value,)
        for each in tensors:
            if isinstance(each, torch.Tensor):
                words.append(f"{name} {_shape(each)}")
                storage = each.untyped_storage()
                kept.sizes[storage.data_ptr()] = storage.nbytes()
                kept.holders[storage.data_ptr()] += 1
    return ", ".join(words), kept


def sentence(nodes: dict, saved: int, left_out: int) -> str:
    """What this graph shows, as the figure's title."""
    leaves = sum(node.leaf for node in nodes.values())
    inner = len(nodes) - leaves
    freed = any(node.detail == FREED for node in nodes.values())
    steps = "1 step" if inner == 1 else f"{inner} steps"
    goal = "1 leaf" if leaves == 1 else f"{leaves} leaves"
    kept = "what was saved is freed" if freed else f"{human_bytes(saved)} kept for it"
    words = f"Backward will take {steps} to reach {goal}; {kept}."
    if freed:
        words = f"Backward has been here: {kept}."
    return words + (f" ({count(left_out, 'node')} more not shown.)" if left_out else "")


def describe(nodes: dict, graph: dict, words: str) -> str:
    """Return the alternative text: each node with what it saved and where it leads."""
    names = {key: f"{node.name} {k}" for k, (key, node) in enumerate(nodes.items(), 1)}
    parts = []
    for key, node in nodes.items():
        text = f"{names[key]} ({node.detail or 'saves nothing'})"
        if graph[key]:
            text += " leads to " + ", ".join(names[source] for source in graph[key])
        parts.append(text)
    return f"Graph of autograd, output first. {words} {'; '.join(parts)}."


def _widths(nodes: dict) -> dict:
    wide = {}
    for key, node in nodes.items():
        lines = (text_width(node.name, size=12), text_width(node.detail, size=SMALL))
        wide[key] = min(max(NODE_W, *(line + 20 for line in lines)), 250)
    return wide


def _counted_once(shared: int) -> str:
    """A remark on the bytes, where the shapes in the picture come to more than the title says."""
    if not shared:
        return ""
    return f"{shared} of the blue entries share their bytes with others: each byte is counted once."


def _legend(canvas: Canvas, y: float, *, twice: bool) -> None:
    x = float(MARGIN)
    kinds = (
        (GRADIENT.tint, "a step of backward that keeps"),
        (IDLE, "a step that keeps nothing"),
        (PARAMETER.tint, "a leaf: its .grad is filled"),
    )
    for tint, words in kinds:
        canvas.boxes([(x, y - 5, 10, 10)], [tint], radius=3)
        canvas.note(x + 15, y, words)
        x += 15 + text_width(words, size=SMALL)
        if tint is GRADIENT.tint:
            canvas.text(x + 4, y, "this", size=SMALL, colour=STORAGE.colour)
            x += 4 + text_width("this", size=SMALL)
        x += GAP
    if twice:
        canvas.line([(x, y), (x + 16, y)], colour=GRADIENT.colour, line=2.8)
        canvas.note(x + 22, y, "used twice or more")


def _shape(tensor: Tensor) -> str:
    return str(tuple(tensor.shape)).replace(",)", ")") if tensor.dim() else "()"
