"""Events of a trace as a tree: what lies inside what, how much of it is its own, and its phase.

Times are in nanoseconds, as `instruments.traces.Event` has them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from utils.instruments.traces import Event
from utils.notebook.style import GRADIENT, KERNEL, PARAMETER, STORAGE, Part

# The phases of a training step; what runs before the first backward node is forward.
FORWARD, BACKWARD, OPTIMIZER, OTHER = "forward", "backward", "optimizer", "other"
LOOKS: dict[str, Part] = {FORWARD: STORAGE, BACKWARD: GRADIENT, OPTIMIZER: PARAMETER, OTHER: KERNEL}


@dataclass
class Node:
    """An event with what lies inside it; times in nanoseconds."""

    name: str
    start: int
    end: int
    depth: int
    phase: str
    inside: list[Node] = field(default_factory=list)

    def own(self) -> list[tuple[int, int]]:
        """The pieces (start, end) of its time in which nothing inside it runs."""
        pieces, at = [], self.start
        for child in self.inside:
            if child.start > at:
                pieces.append((at, child.start))
            at = max(at, child.end)
        return [*pieces, (at, self.end)] if at < self.end else pieces


def tree(events: Iterable[Event]) -> list[Node]:
    """The events of one lane in the order in which they begin, nested by their times."""
    nodes: list[Node] = []
    open_: list[Node] = []
    for event in sorted(events, key=lambda e: (e.start, -e.duration)):
        end = event.end
        while open_ and event.start >= open_[-1].end:
            open_.pop()
        if open_:
            end = min(end, open_[-1].end)  # rounding may let a child end after its parent
        phase = open_[-1].phase if open_ else OTHER
        own = phase_of(event.name)
        if own in (BACKWARD, OPTIMIZER) or (own == FORWARD and phase == OTHER):
            phase = own
        node = Node(event.name, event.start, end, len(open_), phase)
        if open_:
            open_[-1].inside.append(node)
        nodes.append(node)
        open_.append(node)
    return nodes


def phase_of(name: str) -> str:
    """The phase that a name tells of: backward and optimizer by their marks, else forward."""
    if name.startswith("autograd::engine") or name == "backward":
        return BACKWARD
    if name.startswith("Optimizer.") or name == "optimizer":
        return OPTIMIZER
    if name.startswith(("aten::", "open_the_hood::")) or name == "forward":
        return FORWARD
    return OTHER


def short_name(name: str) -> str:
    """A name without what all of its kind begin with."""
    if "DataLoader" in name:
        return "loader"
    name = name.removeprefix("aten::")
    return name.replace("autograd::engine::evaluate_function", "engine")


def ms(nanoseconds: float) -> str:
    """A time as milliseconds, or as microseconds where those are fewer digits: "12.3 ms"."""
    if abs(nanoseconds) >= 1e9:
        return f"{nanoseconds / 1e9:.3g} s"
    if abs(nanoseconds) >= 999_500:
        return f"{nanoseconds / 1e6:.3g} ms" if abs(nanoseconds) < 999.5e6 else "1 s"
    return f"{nanoseconds / 1e3:.3g} µs"


def lanes_of(events: Sequence[Event]) -> list[str]:
    """The lanes that events lie in: host threads before the device, each in order of its name."""
    return sorted({event.lane for event in events}, key=lambda lane: (lane[:3] != "cpu", lane))
