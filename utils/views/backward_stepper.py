"""The backward pass through a small calculation with numbers, one node at a time."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from utils.notebook.style import CARD, GRADIENT, IDLE, INK, MUTED
from utils.views._canvas import INNER, MARGIN, SMALL, Canvas, Drawing
from utils.views._controls import slider
from utils.views._layers import LANE, layout
from utils.views._numbers import require, short
from utils.views._text_outlines import text_width
from utils.views._view import present, will_move

MOST = 12  # nodes in one picture
ROW, HIGH, WIDE, GRAPH_W = 92, 46, 96, 380
LINE = 30
FUNCTIONS = {"exp": torch.exp, "log": torch.log, "tanh": torch.tanh, "relu": torch.relu}


@dataclass(frozen=True)
class Tape:
    """A calculation and its backward pass."""

    values: dict[str, float]  # the value of each name, with the given names first
    # name -> {input: the local derivatives, one for each use}; a given name has no inputs
    inputs: dict[str, dict[str, tuple[float, ...]]]
    order: tuple[str, ...]  # names in the order of backward
    adjoints: dict[str, float]  # name -> the derivative of the last name with respect to it
    lines: dict[str, str]  # name -> how its adjoint was computed, in words


def backward_stepper(steps: Mapping[str, str], **values: float) -> None:
    """Show the backward pass through `steps`, one node for each position of a slider.

    A still image shows the whole pass.

    steps: name -> expression, such as {"c": "a * b", "L": "c ** 2"}. An expression may use earlier
        names, + - * / **, exp, log, tanh and relu. The last name is differentiated.
    values: the given numbers, such as a=2.0.

    Raises ValueError for an expression that can't be read.
    """
    tape = record(steps, values)
    last = len(tape.order)
    shown = min(1, last) if will_move() else last
    present(lambda step: draw(tape, step), slider("step", shown, 0, last))


def record(steps: Mapping[str, str], values: Mapping[str, float]) -> Tape:
    require("backward_stepper", len(steps), "steps", MOST - len(values))
    known = {name: float(value) for name, value in values.items()}
    inputs: dict[str, dict[str, tuple[float, ...]]] = {name: {} for name in known}
    for name, expression in steps.items():
        if name in known:
            raise ValueError(f"{name!r} is there twice: give each line another name")
        known[name], inputs[name] = _evaluated(expression, known)
    order = (*reversed(list(steps)), *reversed(list(values)))
    adjoints = dict.fromkeys(known, 0.0)
    adjoints[order[0]] = 1.0
    came: dict[str, list[str]] = {name: [] for name in known}
    for name in order:
        for source, locals_ in inputs[name].items():
            adjoints[source] += adjoints[name] * sum(locals_)
            came[source] += [f"{short(adjoints[name])} · {short(local)}" for local in locals_]
    lines = {order[0]: "1"} | {
        name: (f"{' + '.join(came[name])} = " if came[name] else "") + short(adjoints[name])
        for name in order[1:]
    }
    return Tape(known, inputs, order, adjoints, lines)


def draw(tape: Tape, step: int) -> Drawing:
    visited = tape.order[:step]
    now = visited[-1] if visited else None
    canvas = Canvas(sentence(tape, step))
    top = canvas.top + 16
    graph = {name: list(tape.inputs[name]) for name in tape.order}
    apart = {
        (user, source): _apart(locals_)
        for user in tape.order
        for source, locals_ in tape.inputs[user].items()
    }
    lanes = {
        ("lane", *edge, k): LANE + way[-1] - way[0]
        for edge, way in apart.items()
        for k in range(MOST)
    }
    places = layout(graph, dict.fromkeys(graph, WIDE) | lanes, MARGIN, MARGIN + GRAPH_W)

    def y(name: str) -> float:
        return top + ROW * places.row[name]

    labels = []
    for (user, source), bends in places.bends.items():
        middle_path = [(places.x[user], y(user) + HIGH)]
        for row, x in bends:
            middle_path += [(x, top + ROW * row - 4), (x, top + ROW * row + HIGH + 4)]
        middle_path.append((places.x[source], y(source) - 7))
        lit = user in visited
        colour = GRADIENT.colour if lit else MUTED
        for shift, local in zip(apart[user, source], tape.inputs[user][source], strict=True):
            path = [(x + shift, down) for x, down in middle_path]
            canvas.line(path, colour, 2.2 if user == now else 1.3, dashed=not lit)
            canvas.marker(*path[-1], "v", 7, colour)
            # The label of an edge that passes other nodes is in the edge's lane, where it has room.
            (ax, ay), (bx, by) = path[1:3] if bends else path[-2:]
            labels.append(((ax + bx) / 2, (ay + by) / 2, _times(local), INK if lit else MUTED))
    for x, middle, text, colour in labels:
        wide = text_width(text, size=SMALL) + 8
        canvas.box((x - wide / 2, middle - 8, wide, 16), CARD)
        canvas.text(x, middle, text, colour, "center", size=SMALL)
    left = MARGIN + GRAPH_W + 40
    canvas.note(left, top + 6, f"d{tape.order[0]} / d…, in the order of backward")
    for k, name in enumerate(tape.order):
        seen, line = name in visited, top + 36 + k * LINE
        fill, ink = (GRADIENT.tint if seen else IDLE), INK
        if name == now:
            fill, ink = GRADIENT.colour, GRADIENT.on
            canvas.marker(left - 12, line, GRADIENT.marker, 10, GRADIENT.colour)
        x, middle = places.x[name], y(name) + HIGH / 2
        canvas.box((x - WIDE / 2, y(name), WIDE, HIGH), fill, edge=CARD, radius=7)
        value = f"{name} = {short(tape.values[name])}"
        canvas.text(x, middle - 9, value, ink, "center", size=13)
        adjoint = f"adjoint {short(tape.adjoints[name]) if seen else 'not yet'}"
        canvas.text(x, middle + 10, adjoint, ink if seen else MUTED, "center", size=SMALL)
        ink = INK if seen else MUTED
        canvas.text(left, line, name, ink, size=13, mono=True)
        told = tape.lines[name] if seen else "…"
        room = INNER - GRAPH_W - 90
        size = 13 if text_width(told, size=13, mono=True) < room else 10
        if text_width(told, size=size, mono=True) > room:
            told, size = f"… = {told.rpartition(' = ')[2]}", 13
        canvas.text(left + 46, line, told, ink, size=size, mono=True)
    high = max(ROW * (places.rows - 1) + HIGH, LINE * len(tape.order) + 8)
    canvas.note(left, top + high + 10, "× on an arrow: the local derivative")
    values = ", ".join(f"{name} = {short(value)}" for name, value in tape.values.items())
    told = "; ".join(f"{name}: {tape.lines[name]}" for name in visited) or "none yet"
    rest = f" Not visited yet: {', '.join(tape.order[step:])}." if step < len(tape.order) else ""
    return canvas.finish(
        top + high + 30,
        f"Backward, step {step} of {len(tape.order)}. {canvas.title} {values}. "
        f"Adjoints: {told}.{rest}",
    )


def sentence(tape: Tape, step: int) -> str:
    if not step:
        return f"Forward is done: {tape.order[0]} = {short(tape.values[tape.order[0]])}."
    name = tape.order[step - 1]
    if step == 1:
        return f"Backward begins at {name} with an adjoint of 1."
    users = [user for user in tape.order if name in tape.inputs[user]]
    paths = sum(len(tape.inputs[user][name]) for user in users)
    if paths > 1:
        return f"{paths} paths meet at {name}, and paths add: {short(tape.adjoints[name])}."
    if not users:
        return f"Nothing uses {name}: its adjoint is 0."
    return f"Only {users[0]} uses {name}: {users[0]}'s adjoint times the local derivative."


def _apart(locals_: tuple[float, ...]) -> list[float]:
    """Return how far each arrow between the same two nodes is from the middle, in CSS pixels."""
    more = len(locals_) - 1
    label = max(text_width(_times(local), size=SMALL) for local in locals_)
    step = min(label + 12, (WIDE - 10) / max(1, more))
    return [(k - more / 2) * step for k in range(more + 1)]


def _times(local: float) -> str:
    return f"× {short(local)}"


class _Leaves:
    """The names that an expression may use in `eval`. Each use of a name is a separate leaf."""

    def __init__(self, known: Mapping[str, float]) -> None:
        self.known, self.uses = known, list[tuple[str, torch.Tensor]]()

    def __getitem__(self, name: str) -> torch.Tensor:
        leaf = torch.tensor(self.known[name], dtype=torch.float64, requires_grad=True)
        self.uses.append((name, leaf))
        return leaf


def _evaluated(
    expression: str, known: Mapping[str, float]
) -> tuple[float, dict[str, tuple[float, ...]]]:
    """Return the value of an expression, and its local derivatives by name, one for each use."""
    names: Any = _Leaves(known)
    try:
        result = eval(expression, {"__builtins__": {}, **FUNCTIONS}, names)
        found = torch.autograd.grad(result, [leaf for _, leaf in names.uses])
    except Exception as error:
        allowed = f"+ - * / **, {', '.join(FUNCTIONS)}, numbers, and one or more of"
        raise ValueError(
            f"{expression!r}: expected {allowed} {', '.join(known)} ({error})"
        ) from None
    if not math.isfinite(result.item()):
        raise ValueError(f"{expression!r} is {result.item()} here")
    pairs = [(name, g.item()) for (name, _), g in zip(names.uses, found, strict=True)]
    return result.item(), {name: tuple(g for k, g in pairs if k == name) for name, _ in pairs}
