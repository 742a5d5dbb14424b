"""The tensors that a function saves for its backward, in eager mode and for cuts of its joint
graph.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from utils.instruments.compiling import split
from utils.notebook.style import CARD, INK, KERNEL, MUTED, STORAGE
from utils.views._canvas import INNER, LINE, MARGIN, Canvas, Drawing
from utils.views._numbers import count, human_bytes, listed, require
from utils.views._text_outlines import cut
from utils.views._view import present

ROW, BAR, LINES = 36, 24, 4
LEFT, ROOM = MARGIN + 140, INNER - 140 - 84  # the space of the bars, between names and sizes
MOST = 7  # saved tensors that are named
# operations that do no arithmetic, so they are not shown
MOVES = ("view", "permute", "expand", "unsqueeze", "getitem")
CUTS: Mapping[str, tuple[str, float]] = {
    "plain cut": ("plain", 1.0),
    "minimum cut": ("min-cut", 1.0),
    "budget 0.5": ("min-cut", 0.5),
    "budget 0": ("min-cut", 0.0),
}


@dataclass(frozen=True)
class Way:
    """One way to save what the backward needs."""

    name: str  # "eager", or one of CUTS
    inputs: int  # saved bytes of arguments and parameters
    made: dict[str, int]  # other saved tensors: name -> bytes
    again: tuple[str, ...] = ()  # operations of the forward that the backward repeats

    @property
    def total(self) -> int:
        return self.inputs + sum(self.made.values())


def saved_bytes(function: Callable[..., Any], *args: Any, way: int = 1) -> None:
    """Show what `function(*args)` saves for its backward, in eager mode and when it is compiled.

    At least one argument must require a gradient.

    way: the number of the way whose tensors the view names. Number 1 is eager.

    Raises ValueError if there is no such way or no backward, or if there are several graphs.
    """
    require("saved_bytes", way, "ways", 1 + len(CUTS))
    ways = [eager(function, args), *(compiled(name, function, args) for name in CUTS)]
    present(lambda: draw(ways, way))


def eager(function: Callable[..., Any], args: Sequence[Any]) -> Way:
    """Return the tensors that autograd saves while the function runs. A storage counts once."""
    weights = function.parameters() if isinstance(function, torch.nn.Module) else ()
    own = {_place(arg) for arg in (*args, *weights) if isinstance(arg, Tensor)}
    saved: dict[int, tuple[str, int]] = {}

    def keep(tensor: Tensor) -> Tensor:
        saved[_place(tensor)] = (_shape(tensor), tensor.untyped_storage().nbytes())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        result = function(*args)  # while this list exists, no storage's address is used again
    made = {
        f"tensor {number} {shape}": size
        for number, (place, (shape, size)) in enumerate(saved.items(), start=1)
        if place not in own
    }
    del result
    return Way("eager", sum(saved[place][1] for place in own & saved.keys()), made)


def _shape(tensor: Tensor) -> str:
    return f"({'×'.join(map(str, tensor.shape))})"


def _place(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def compiled(name: str, function: Callable[..., Any], args: Sequence[Any]) -> Way:
    """Return the saved tensors if the joint graph is cut in the way `name` of CUTS."""
    partition, budget = CUTS[name]
    joint = split(function, *args, partition=partition, budget=budget)
    own = {key: size for key, size in joint.saved.items() if key.startswith("primals")}
    nodes = {node.name: node.meta.get("val") for node in joint.forward.nodes}
    made = {
        f"{key} {_shape(nodes[key])}": size for key, size in joint.saved.items() if key not in own
    }
    return Way(name, sum(own.values()), made, joint.again)


def draw(ways: Sequence[Way], way: int) -> Drawing:
    lit = ways[way - 1]
    canvas = Canvas(cut(sentence(lit), INNER, size=18))
    y = canvas.top + 14
    most = max(1, *(kept.total for kept in ways))
    for row, kept in enumerate(ways, 1):
        colour = INK if kept is lit else MUTED
        canvas.text(MARGIN, y + BAR / 2, f"{row}  {kept.name}", colour)
        x = LEFT + ROOM * kept.inputs / most
        canvas.box((LEFT, y, x - LEFT, BAR), STORAGE.tint, edge=STORAGE.colour)
        for size in kept.made.values():
            canvas.box((x, y, ROOM * size / most, BAR), KERNEL.colour, edge=CARD)
            x += ROOM * size / most
        canvas.text(x + 10, y + BAR / 2, human_bytes(kept.total), colour)
        if kept is lit:
            frame = (LEFT - 4, y - 4, max(x - LEFT, 4) + 8, BAR + 8)
            canvas.box(frame, "none", edge=INK, line=2.2, radius=4)
        y += ROW
    y += 10
    kinds = (
        ("in memory anyway: arguments, parameters", STORAGE.tint, STORAGE.colour),
        ("made by the forward, and kept", KERNEL.colour),
    )
    canvas.legend(MARGIN, y + 8, kinds, 390)
    named = in_words(lit)
    canvas.paragraph(y + 42, named, LINES)
    each = " ".join(map(sentence, ways))
    return canvas.finish(
        y + 44 + LINE * LINES, f"Bytes saved for the backward. {each} Lit: {lit.name}. {named}"
    )


def _again(kept: Way) -> list[str]:
    return [name for name in kept.again if not name.startswith(MOVES)]


def sentence(kept: Way) -> str:
    again = _again(kept)
    words = count(len(again), "operation") if again else "nothing"
    return f"{kept.name}: {human_bytes(kept.total)} saved, {words} computed again."


def in_words(kept: Way) -> str:
    most = sorted(kept.made.items(), key=lambda pair: -pair[1])
    made = [f"{name} {human_bytes(size)}" for name, size in most[:MOST]]
    if len(most) > MOST:
        made.append(f"{len(most) - MOST} smaller")
    words = f"The forward made and kept: {listed(made)}." if made else "Nothing else is kept."
    again = _again(kept)
    return f"{words} Computed again: {', '.join(again)}." if again else words
