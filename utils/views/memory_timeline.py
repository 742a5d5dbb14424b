"""The bytes that a profiled step uses, over time, and the blocks that are alive at the peak."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from utils.instruments.traces import Allocation, Event
from utils.notebook.style import MUTED
from utils.views._canvas import MARGIN, RIGHT, Axes, Canvas, Drawing, round_steps
from utils.views._numbers import count, human_bytes
from utils.views._text_outlines import cut
from utils.views._trace import FORWARD, LOOKS, Node, ms, short_name, tree
from utils.views._view import present

LEFT, HIGH, LISTED, LINE = 100, 230, 6, 25
COLUMNS = 400  # columns of the drawn curve


@dataclass(frozen=True)
class Block:
    """A block of memory, with the times of its allocation and release in nanoseconds.

    A time that is not in the record is None.
    """

    start: int
    end: int | None
    bytes: int
    maker: str
    phase: str

    def alive(self, at: float) -> bool:
        return self.start <= at and (self.end is None or at < self.end)


@dataclass(frozen=True)
class Memory:
    """The blocks of a record, from its first event to its last."""

    start: int
    end: int
    blocks: tuple[Block, ...]

    def alive(self, at: float) -> list[Block]:
        """Return the blocks that exist at the time ``at``, the oldest first."""
        return [block for block in self.blocks if block.alive(at)]

    def held(self, at: float) -> int:
        return sum(block.bytes for block in self.alive(at))

    @cached_property
    def peak(self) -> tuple[float, int]:
        """The first moment at which the memory is largest, and the number of bytes then."""
        when = max((float(block.start) for block in self.blocks), key=self.held)
        return when, self.held(when)


def memory_timeline(events: Sequence[Event], allocations: Sequence[Allocation]) -> None:
    """Show a profiled step's memory over time, and the operators that allocated the peak's memory.

    events, allocations: what `instruments.traces` read from a profile with `profile_memory=True`.

    Raises ValueError if nothing was allocated.
    """
    memory = read(events, allocations)
    present(lambda: draw(memory))


def read(events: Sequence[Event], allocations: Sequence[Allocation]) -> Memory:
    """Return the blocks that were allocated during the record, each with its operator.

    Blocks that are older than the record are left out.
    """
    if not events or not allocations:
        raise ValueError("memory_timeline: nothing to show; profile with profile_memory=True")
    nodes = tree(event for event in events if event.lane == "cpu")
    starts = [node.start for node in nodes]
    open_: dict[int, Block] = {}
    blocks = []
    for change in sorted(allocations, key=lambda allocation: allocation.time):
        if change.bytes > 0:
            maker = _maker(nodes, starts, change.time)
            open_[change.address] = Block(change.time, None, change.bytes, *maker)
        elif change.address in open_:
            blocks.append(replace(open_.pop(change.address), end=change.time))
    blocks += open_.values()
    times = [allocation.time for allocation in allocations]
    first = min([*times, *starts])
    last = max([*times, *(node.end for node in nodes)])
    return Memory(first, last, tuple(sorted(blocks, key=lambda block: block.start)))


def _maker(nodes: Sequence[Node], starts: Sequence[int], at: int) -> tuple[str, str]:
    """Return the operator that allocated memory at the time ``at``, and the operator's phase.

    The innermost operators only allocate memory (`aten::empty`, ...), so the operator around them
    is named.
    """
    chain: list[Node] = []
    for node in nodes[: bisect_right(starts, at)]:
        del chain[node.depth :]
        chain.append(node)
    chain = [node for node in chain if node.start <= at <= node.end]
    fetching = ("aten::empty", "aten::resize_", "aten::new_empty", "aten::zero_")
    named = [node for node in chain if not node.name.startswith(fetching)] or chain
    return (named[-1].name, named[-1].phase) if named else ("no operator", FORWARD)


def draw(memory: Memory) -> Drawing:
    (when, peak), length = memory.peak, memory.end - memory.start
    blocks = memory.alive(when)
    alive = f"{count(len(blocks), 'block')} alive"
    canvas = Canvas(
        f"The peak, {human_bytes(peak)}, is at {ms(when - memory.start)}, with {alive}."
    )
    wide, span = RIGHT - 8 - LEFT, (0, peak / 2**20 * 1.05)
    axes = Axes(canvas, LEFT, canvas.top + 10, wide, HIGH, x=(0, max(1, length)), y=span)
    axes.grid_y(round_steps(0, peak / 2**20, 4), "{:g} MiB".format)
    _draw_stack(canvas, axes, memory)
    ends = [t for t in round_steps(0, length) if axes.px(t) < RIGHT - 50]
    axes.labels_x(ends, lambda t: ms(t) if t else "0")
    axes.cursor(when - memory.start)
    y = axes.bottom + 62
    sizes = {name: sum(b.bytes for b in blocks if b.phase == name) for name in LOOKS}
    legend = [(f"{name} {human_bytes(sizes[name])}", look.colour) for name, look in LOOKS.items()]
    canvas.legend(MARGIN, y, legend, 192)
    made: dict[tuple[str, str], list[int]] = {}
    for block in blocks:
        made.setdefault((block.maker, block.phase), []).append(block.bytes)
    makers = []
    for (maker, phase), each in sorted(made.items(), key=lambda pair: -sum(pair[1]))[:LISTED]:
        y += LINE
        number, size = count(len(each), "block"), human_bytes(sum(each))
        canvas.box((MARGIN, y - 6, 12, 12), LOOKS[phase].colour)
        canvas.text(MARGIN + 18, y, cut(short_name(maker), 400))
        canvas.text(MARGIN + 540, y, number, MUTED, "right")
        canvas.text(MARGIN + 690, y, size, ha="right")
        makers.append(f"{short_name(maker)} ({phase}): {number}, {size}")
    return canvas.finish(
        axes.bottom + 70 + LINE * (LISTED + 1),
        f"Memory over time. {canvas.title} {'; '.join(makers)}.",
    )


def _draw_stack(canvas: Canvas, axes: Axes, memory: Memory) -> None:
    """Draw the bytes of each phase, stacked, as areas with steps."""
    length = max(1, memory.end - memory.start)
    xs = [axes.px((memory.end - memory.start) * k / COLUMNS) for k in range(COLUMNS + 1)]
    below = np.zeros(COLUMNS + 1)
    for phase, look in LOOKS.items():
        change = np.zeros(COLUMNS + 1)
        for block in memory.blocks:
            for time, sign in ((block.start, 1), (block.end, -1)):
                if block.phase == phase and time is not None:  # the first column not before it
                    column = min(COLUMNS, -(-(time - memory.start) * COLUMNS // length))
                    change[column] += sign * block.bytes / 2**20
        above = below + change.cumsum()
        if (above != below).any():
            edges = [list(zip(xs, map(axes.py, each), strict=True)) for each in (above, below)]
            canvas.polygon([*edges[0], *reversed(edges[1])], look.colour)
            below = above
