"""What a function keeps for its backward, in eager mode and however the joint graph is cut."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from matplotlib.figure import Figure
from torch import Tensor

from utils.instruments.compiling import split
from utils.notebook.style import CARD, INK, KERNEL, MUTED, STORAGE
from utils.views import _interactive
from utils.views._canvas import INNER, MARGIN, Canvas, title_height
from utils.views._numbers import count, human_bytes, listed
from utils.views._slots import cut
from utils.views._text_outlines import wrap

ROW, BAR, TEXT, LINES = 36, 24, 14, 4
NAME_W, SIZE_W = 140, 84
MOST = 7  # saved tensors that are named
MOVES = ("view", "permute", "expand", "unsqueeze", "getitem")  # no arithmetic, and not told of
CUTS: Mapping[str, tuple[str, float]] = {
    "plain cut": ("plain", 1.0),
    "minimum cut": ("min-cut", 1.0),
    "budget 0.5": ("min-cut", 0.5),
    "budget 0": ("min-cut", 0.0),
}


@dataclass(frozen=True)
class Way:
    """One way to keep what the backward needs.

    Attributes:
        name: "eager", or one of CUTS.
        inputs: bytes of arguments and parameters among what is saved.
        made: what is saved besides: name -> bytes.
        again: operations of the forward that the backward does once more.
    """

    name: str
    inputs: int
    made: dict[str, int]
    again: tuple[str, ...]

    @property
    def total(self) -> int:
        """All bytes that are saved."""
        return self.inputs + sum(self.made.values())


def saved_bytes(function: Callable[..., Any], *args: Any, way: int = 1) -> None:
    """Show what `function(*args)` saves for its backward, in eager mode and as it is compiled.

    At least one argument requires a gradient. way: the one that is told of, from 1 (eager); live, a
    slider moves it. Raises ValueError where there is no backward, or several graphs.
    """
    ways = [eager(function, args)] + [compiled(name, function, args) for name in CUTS]
    draw(ways, way)
    _interactive.present(
        lambda at: draw(ways, at),
        (way,),
        lambda widgets: [widgets.IntSlider(value=way, min=1, max=len(ways), description="way")],
    )


def eager(function: Callable[..., Any], args: Sequence[Any]) -> Way:
    """What autograd saves while the function runs. A storage that is saved twice counts once."""
    weights = function.parameters() if isinstance(function, torch.nn.Module) else ()
    own = {_place(arg) for arg in (*args, *weights) if isinstance(arg, Tensor)}
    found: dict[int, tuple[str, int]] = {}

    def keep(tensor: Tensor) -> Tensor:
        found[_place(tensor)] = (_shape(tensor), tensor.untyped_storage().nbytes())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        result = function(*args)  # while it lives, no storage's address is given out again
    made: dict[str, int] = {}
    for number, (place, (shape, size)) in enumerate(found.items(), start=1):
        if place not in own:
            made[f"tensor {number} {shape}"] = size
    inputs = sum(size for place, (_, size) in found.items() if place in own)
    del result
    return Way("eager", inputs, made, ())


def _shape(tensor: Tensor) -> str:
    return f"({'×'.join(map(str, tensor.shape))})"


def _place(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def compiled(name: str, function: Callable[..., Any], args: Sequence[Any]) -> Way:
    """What is saved where the joint graph is cut in one of the ways of CUTS."""
    partition, budget = CUTS[name]
    found = split(function, *args, partition=partition, budget=budget)
    own = {key: size for key, size in found.saved.items() if key.startswith("primals")}
    nodes = {node.name: node.meta.get("val") for node in found.forward.nodes}
    made = {
        f"{key} {_shape(nodes[key])}": size for key, size in found.saved.items() if key not in own
    }
    return Way(name, sum(own.values()), made, found.again)


def draw(ways: Sequence[Way], way: int) -> tuple[Figure, str]:
    """The bars with one way lit, and the alternative text."""
    if not 1 <= way <= len(ways):
        raise ValueError(f"way: expected 1 to {len(ways)}, got {way}")
    words = sentence(ways[way - 1])
    top = title_height("one line") + 14
    below = top + ROW * len(ways) + 10
    canvas = Canvas(below + 44 + 21 * LINES)
    canvas.title(cut(words, INNER, size=18))
    left, room = MARGIN + NAME_W, INNER - NAME_W - SIZE_W
    most = max(1, *(one.total for one in ways))
    for row, one in enumerate(ways):
        y = top + ROW * row
        lit = row + 1 == way
        colour = INK if lit else MUTED
        canvas.text(MARGIN, y + BAR / 2, f"{row + 1}  {one.name}", size=TEXT, colour=colour)
        own = room * one.inputs / most
        rest = room * sum(one.made.values()) / most
        canvas.boxes([(left, y, own, BAR)], [STORAGE.tint], edge=STORAGE.colour)
        if rest:
            x = left + own
            for size in one.made.values():
                wide = room * size / most
                canvas.boxes([(x, y, wide, BAR)], [KERNEL.colour], edge=CARD)
                x += wide
        size_x = left + own + rest + 10
        canvas.text(size_x, y + BAR / 2, human_bytes(one.total), size=TEXT, colour=colour)
        if lit:
            frame = (left - 4, y - 4, max(own + rest, 4) + 8, BAR + 8)
            canvas.boxes([frame], ["none"], edge=INK, line=2.2, radius=4)
    for x, fill, edge, name in (
        (MARGIN, STORAGE.tint, STORAGE.colour, "in memory anyway: arguments, parameters"),
        (MARGIN + 390, KERNEL.colour, CARD, "made by the forward, and kept"),
    ):
        canvas.boxes([(x, below, 20, 16)], [fill], edge=edge)
        canvas.text(x + 28, below + 8, name, size=TEXT, colour=MUTED)
    lines = wrap(in_words(ways[way - 1]), INNER, size=TEXT)
    for row, line in enumerate(lines[:LINES]):
        canvas.text(MARGIN, below + 42 + 21 * row, cut(line, INNER, size=TEXT), size=TEXT)
    return canvas.finish(), describe(ways, way)


def sentence(one: Way) -> str:
    """What a way saves and computes again, as the figure's title."""
    again = [name for name in one.again if not name.startswith(MOVES)]
    words = (
        f"{count(len(again), 'operation')} computed again" if again else "nothing computed again"
    )
    return f"{one.name}: {human_bytes(one.total)} saved, {words}."


def in_words(one: Way) -> str:
    """The lit way, tensor by tensor."""
    most = sorted(one.made.items(), key=lambda pair: -pair[1])
    made = [f"{name} {human_bytes(size)}" for name, size in most[:MOST]]
    if len(most) > MOST:
        made.append(f"{len(most) - MOST} smaller")
    told = f"Kept of what the forward made: {listed(made)}." if made else "Kept: nothing else."
    again = [name for name in one.again if not name.startswith(MOVES)]
    return f"{told} Computed again: {', '.join(again)}." if again else told


def describe(ways: Sequence[Way], way: int) -> str:
    """The alternative text: each way, and the lit one tensor by tensor."""
    each = " ".join(sentence(one) for one in ways)
    return (
        f"Bytes saved for the backward. {each} Lit: {ways[way - 1].name}. {in_words(ways[way - 1])}"
    )
