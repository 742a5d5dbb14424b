"""The graph that autograd hung on a tensor: its nodes, what they saved, and the leaves below."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from matplotlib.figure import Figure
from torch import Tensor

from utils.figures import show
from utils.style import CARD, GRADIENT, IDLE, MUTED, PARAMETER, STORAGE
from utils.views._canvas import INNER, MARGIN, SMALL, Canvas, title_height
from utils.views._layers import GAP, layout
from utils.views._numbers import count, human_bytes
from utils.views._type import text_width

MOST = 24  # nodes in one picture
ROW, HIGH, NODE_W = 86, 46, 112
FREED = "freed by backward"


@dataclass(frozen=True)
class Node:
    """One node as it is drawn: what it is called, and what its second line says."""

    name: str
    detail: str
    leaf: bool


def autograd_graph(tensor: Tensor, **named: Tensor) -> None:
    """Show the graph behind `tensor`: its grad_fn on top, the leaves it will reach at the bottom.

    named: leaves to call by name, such as weight=layer.weight.
    Draw before backward: what nodes saved is freed by it. Raises TypeError for what is no tensor,
    ValueError for a tensor that has no graph.
    """
    figure, alt = draw(tensor, named)
    show(figure, alt=alt)


def draw(tensor: Tensor, named: dict[str, Tensor]) -> tuple[Figure, str]:
    """The figure, and its alternative text."""
    if not isinstance(tensor, Tensor):
        raise TypeError(f"autograd_graph needs a torch.Tensor, got {type(tensor).__name__}")
    if tensor.grad_fn is None:
        why = "it is a leaf" if tensor.requires_grad else "nothing it was made from requires grad"
        raise ValueError(f"this tensor has no graph: {why}")
    nodes, graph, left_out, saved = read(tensor, named)
    words = sentence(nodes, saved, left_out)
    widths = _widths(nodes)
    places = layout(graph, widths, MARGIN, MARGIN + INNER)
    top = title_height(words) + 34
    canvas = Canvas(top + ROW * (places.rows - 1) + HIGH + 26)
    canvas.title(words)
    _legend(canvas, top - 22)

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
        canvas.text(places.x[key], middle - 9, _cut(node.name, wide - 10, 12), size=12, ha="center")
        colour = PARAMETER.colour if node.leaf else STORAGE.colour
        if node.detail in ("", FREED):
            colour = MUTED
        detail = _cut(node.detail or "saves nothing", wide - 8, SMALL)
        canvas.text(places.x[key], middle + 10, detail, size=SMALL, colour=colour, ha="center")
    return canvas.finish(), describe(nodes, graph, words)


def read(tensor: Tensor, named: dict[str, Tensor]) -> tuple[dict, dict, int, int]:
    """Nodes and edges from a tensor down, how many nodes are left out, and bytes saved."""
    known = {id(leaf): name for name, leaf in named.items()}
    order, seen = [tensor.grad_fn], {tensor.grad_fn}
    for node in order:
        for source, _ in node.next_functions:
            if source is not None and source not in seen:
                seen.add(source)
                order.append(source)
    shown = order[:MOST]
    nodes, storages = {}, {}
    for k, node in enumerate(order):
        leaf = getattr(node, "variable", None)
        if leaf is not None:
            name = known.get(id(leaf), "a leaf")
            found = Node("AccumulateGrad", f"{name} {_shape(leaf)}", True)
        else:
            words, kept = saved_by(node)
            storages |= kept
            found = Node(node.name().removesuffix("Backward") or node.name(), words, False)
        if k < MOST:
            nodes[node] = found
    graph = {
        node: [source for source, _ in node.next_functions if source in nodes] for node in shown
    }
    return nodes, graph, len(order) - len(shown), sum(storages.values())


def saved_by(node: Any) -> tuple[str, dict[int, int]]:
    """What a node keeps for backward, in words, and the bytes of each storage by address."""
    pairs: list[tuple[str, Any]] = []
    try:
        for name in dir(node):
            if name.startswith("_saved_"):
                pairs.append((name.removeprefix("_saved_"), getattr(node, name)))
        if not pairs and hasattr(node, "saved_tensors"):
            pairs = [("saved", value) for value in node.saved_tensors]
    except RuntimeError:
        return FREED, {}
    words, kept = [], {}
    for name, value in pairs:
        tensors = value if isinstance(value, (tuple, list)) else (value,)
        for each in tensors:
            if isinstance(each, torch.Tensor):
                words.append(f"{name} {_shape(each)}")
                storage = each.untyped_storage()
                kept[storage.data_ptr()] = storage.nbytes()
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
    """The alternative text: each node with what it saved and where it leads."""
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


def _legend(canvas: Canvas, y: float) -> None:
    x = float(MARGIN)
    kinds = ((GRADIENT, "a step of backward"), (PARAMETER, "a leaf: its .grad is filled"))
    for part, words in kinds:
        canvas.boxes([(x, y - 5, 10, 10)], [part.tint], radius=3)
        canvas.note(x + 15, y, words)
        x += 15 + text_width(words, size=SMALL) + GAP
    canvas.text(x, y, "saved for backward", size=SMALL, colour=STORAGE.colour)


def _shape(tensor: Tensor) -> str:
    return str(tuple(tensor.shape)).replace(",)", ")") if tensor.dim() else "()"


def _cut(words: str, width: float, size: float) -> str:
    if text_width(words, size=size) <= width:
        return words
    while words and text_width(words + "…", size=size) > width:
        words = words[:-1]
    return words + "…"


