"""Events of a trace as a tree: nested events, their self time, and their phase.

Times are in nanoseconds, as in `instruments.traces.Event`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from utils.instruments.traces import Event
from utils.notebook.style import GRADIENT, KERNEL, PARAMETER, STORAGE, Part

# The phases of a training step; events before the first backward node are forward.
FORWARD, BACKWARD, OPTIMIZER, OTHER = "forward", "backward", "optimizer", "other"
LOOKS: dict[str, Part] = {FORWARD: STORAGE, BACKWARD: GRADIENT, OPTIMIZER: PARAMETER, OTHER: KERNEL}


@dataclass
class Node:
    """An event with its inner events. Times are in nanoseconds."""

    name: str
    start: int
    end: int
    depth: int
    phase: str
    inside: list[Node] = field(default_factory=list)

    def own(self) -> list[tuple[int, int]]:
        """Return the intervals (start, end) of this event in which no inner event runs."""
        pieces, at = [], self.start
        for child in self.inside:
            if child.start > at:
                pieces.append((at, child.start))
            at = max(at, child.end)
        return [*pieces, (at, self.end)] if at < self.end else pieces


def tree(events: Iterable[Event]) -> list[Node]:
    """Return the events of one lane in the order in which they begin, nested by their times."""
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
    """Return the phase of a name. Certain words mean backward or optimizer. Otherwise: forward."""
    if name.startswith("autograd::engine") or name == "backward":
        return BACKWARD
    if name.startswith("Optimizer.") or name == "optimizer":
        return OPTIMIZER
    if name.startswith(("aten::", "open_the_hood::")) or name == "forward":
        return FORWARD
    return OTHER


def short_name(name: str) -> str:
    """Return a name without the common prefix of its kind."""
    if "DataLoader" in name:
        return "loader"
    name = name.removeprefix("aten::")
    return name.replace("autograd::engine::evaluate_function", "engine")


def ms(nanoseconds: float) -> str:
    """Return a time in seconds, milliseconds or microseconds, such as "12.3 ms"."""
    if abs(nanoseconds) >= 1e9:
        return f"{nanoseconds / 1e9:.3g} s"
    if abs(nanoseconds) >= 999_500:
        return f"{nanoseconds / 1e6:.3g} ms" if abs(nanoseconds) < 999.5e6 else "1 s"
    return f"{nanoseconds / 1e3:.3g} µs"


def lanes_of(events: Sequence[Event]) -> list[str]:
    """Return the lanes of events, sorted by name. Threads of the host are before streams."""
    return sorted({event.lane for event in events}, key=lambda lane: (lane[:3] != "cpu", lane))
