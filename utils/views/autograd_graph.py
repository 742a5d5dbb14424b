"""The graph that autograd made for a tensor: its nodes, their saved tensors, and the leaves."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from utils.notebook.style import CARD, GRADIENT, IDLE, MUTED, PARAMETER, STORAGE
from utils.views._canvas import INNER, MARGIN, SMALL, Canvas, Drawing
from utils.views._layers import layout
from utils.views._numbers import count, human_bytes
from utils.views._text_outlines import cut, text_width
from utils.views._view import present

MOST = 24  # nodes in one picture
ROW, HIGH, NODE_W = 86, 46, 112


@dataclass(frozen=True)
class Node:
    """One node as it is drawn: its name, and its second line."""

    name: str
    detail: str
    leaf: bool


@dataclass(frozen=True)
class Graph:
    """The nodes that are drawn, the nodes to which each drawn node leads, and three counts."""

    nodes: dict[Any, Node]
    inputs: dict[Any, list[Any]]
    left_out: int
    saved: int  # the bytes that all nodes keep
    shared: int  # the number of saved tensors whose storage is also kept elsewhere


def autograd_graph(tensor: Tensor, **named: Tensor) -> None:
    """Show the graph behind `tensor`: its grad_fn at the top, and the leaves at the bottom.

    named: leaves with names, such as weight=layer.weight.

    Call this before backward, because backward frees saved tensors. Raises TypeError if `tensor` is
    not a tensor, and ValueError if it has no graph. If backward has already freed the saved
    tensors, torch raises RuntimeError.
    """
    present(lambda: draw(tensor, named))


def draw(tensor: Tensor, named: dict[str, Tensor]) -> Drawing:
    if not isinstance(tensor, Tensor):
        raise TypeError(f"autograd_graph needs a torch.Tensor, got {type(tensor).__name__}")
    if tensor.grad_fn is None:
        why = "it is a leaf" if tensor.requires_grad else "none of its inputs requires grad"
        raise ValueError(f"this tensor has no graph: {why}")
    found = read(tensor, named)
    nodes, inputs = found.nodes, found.inputs
    canvas = Canvas(sentence(found))
    top = canvas.top + 34
    widths = {}
    for key, node in nodes.items():
        wide = max(text_width(node.name, size=12), text_width(node.detail, size=SMALL)) + 20
        widths[key] = min(max(NODE_W, wide), 250)
    places = layout(inputs, widths, MARGIN, MARGIN + INNER)
    twice = any(len(sources) > len(set(sources)) for sources in inputs.values())
    _legend(canvas, top - 22, twice=twice)

    def y(row: int) -> float:
        return top + ROW * row

    for (user, source), bends in places.bends.items():
        path = [(places.x[user], y(places.row[user]) + HIGH)]
        for row, x in bends:
            path += [(x, y(row) - 6), (x, y(row) + HIGH + 6)]
        end = (places.x[source], y(places.row[source]) - 7)
        canvas.line([*path, end], GRADIENT.colour, 1.4 * inputs[user].count(source))
        canvas.marker(*end, "v", 7, GRADIENT.colour)
    names = {key: f"{node.name} {k}" for k, (key, node) in enumerate(nodes.items(), 1)}
    told = []
    for key, node in nodes.items():
        wide, x, above = widths[key], places.x[key], y(places.row[key])
        fill = PARAMETER.tint if node.leaf else GRADIENT.tint if node.detail else IDLE
        canvas.box((x - wide / 2, above, wide, HIGH), fill, edge=CARD, radius=7)
        name = cut(node.name, wide - 10, size=12, middle=False)
        canvas.text(x, above + HIGH / 2 - 9, name, ha="center", size=12)
        colour = PARAMETER.colour if node.leaf else STORAGE.colour
        if not node.detail:
            colour = MUTED
        detail = node.detail or "saves nothing"
        words = cut(detail, wide - 8, size=SMALL, middle=False)
        canvas.text(x, above + HIGH / 2 + 10, words, colour, "center", size=SMALL)
        leads = ", ".join(names[source] for source in inputs[key])
        told.append(f"{names[key]} ({detail}){f' leads to {leads}' if leads else ''}")
    # If tensors share bytes, the shapes in the picture can together have more bytes than the title
    # says.
    shares = f"{found.shared} of the blue entries share their bytes with others"
    remark = f"{shares}: each byte is counted once." if found.shared else ""
    height = y(places.rows - 1) + HIGH + (52 if remark else 26)
    canvas.note(MARGIN, height - 24, remark)
    words = f"{canvas.title} {remark}".strip()
    return canvas.finish(height, f"Graph of autograd, output first. {words} {'; '.join(told)}.")


def read(tensor: Tensor, named: dict[str, Tensor]) -> Graph:
    known = {id(leaf): name for name, leaf in named.items()}
    order: list[Any] = [tensor.grad_fn]
    seen = set(order)
    for node in order:
        for source, _ in node.next_functions:
            if source is not None and source not in seen:
                seen.add(source)
                order.append(source)
    nodes: dict[Any, Node] = {}
    sizes: dict[int, int] = {}
    holders: Counter[int] = Counter()
    for node in order:
        leaf = getattr(node, "variable", None)
        if leaf is not None:
            name = known.get(id(leaf), "a leaf")
            nodes[node] = Node("AccumulateGrad", f"{name} {_shape(leaf)}", True)
            continue
        words, kept = saved_by(node)
        sizes |= {storage.data_ptr(): storage.nbytes() for storage in kept}
        holders.update(storage.data_ptr() for storage in kept)
        nodes[node] = Node(node.name().removesuffix("Backward") or node.name(), words, False)
    shown = {node: nodes[node] for node in order[:MOST]}
    inputs = {n: [source for source, _ in n.next_functions if source in shown] for n in shown}
    shared = sum(number for number in holders.values() if number > 1)
    return Graph(shown, inputs, len(order) - len(shown), sum(sizes.values()), shared)


def saved_by(node: Any) -> tuple[str, list[torch.UntypedStorage]]:
    named = [name for name in dir(node) if name.startswith("_saved_")]
    pairs = [(name.removeprefix("_saved_"), getattr(node, name)) for name in named]
    if not pairs and hasattr(node, "saved_tensors"):
        pairs = [("saved", value) for value in node.saved_tensors]
    words, kept = [], []
    for name, value in pairs:
        for each in value if isinstance(value, (tuple, list)) else (value,):
            if isinstance(each, torch.Tensor):
                words.append(f"{name} {_shape(each)}")
                kept.append(each.untyped_storage())
    return ", ".join(words), kept


def sentence(found: Graph) -> str:
    leaves = sum(node.leaf for node in found.nodes.values())
    goal = "1 leaf" if leaves == 1 else f"{leaves} leaves"
    steps = count(len(found.nodes) - leaves, "step")
    words = f"Backward will take {steps} to reach {goal}; {human_bytes(found.saved)} kept for it."
    left_out = f" ({count(found.left_out, 'node')} more not shown.)" if found.left_out else ""
    return words + left_out


def _legend(canvas: Canvas, y: float, *, twice: bool) -> None:
    x = canvas.legend(MARGIN, y, [("a step of backward that keeps", GRADIENT.tint)], size=SMALL)
    canvas.text(x - 14, y, "this", STORAGE.colour, size=SMALL)
    kinds = ("a step that keeps nothing", IDLE), ("a leaf: its .grad is filled", PARAMETER.tint)
    x = canvas.legend(x + 4 + text_width("this", size=SMALL), y, kinds, size=SMALL)
    if twice:
        canvas.line([(x, y), (x + 16, y)], GRADIENT.colour, 2.8)
        canvas.note(x + 22, y, "used twice or more")


def _shape(tensor: Tensor) -> str:
    return str(tuple(tensor.shape)).replace(",)", ")")
