"""The bytes that a profiled step holds, moment by moment, and who is alive under the cursor."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure

from utils.instruments.traces import Allocation, Event
from utils.notebook.style import INK, MUTED, WIDTH
from utils.views import _interactive
from utils.views._axes import TEXT, Axes, round_steps
from utils.views._canvas import MARGIN, Canvas, title_height
from utils.views._numbers import count, human_bytes
from utils.views._slots import cut
from utils.views._trace import FORWARD, LOOKS, Node, ms, short_name, tree

LEFT, HIGH, LISTED, LINE = 100, 230, 6, 25
STEPS = 200  # places of the slider
COLUMNS = 400  # of the drawn curve


@dataclass(frozen=True)
class Block:
    """Memory from when it was made to when it was freed (None: not in the record), in ns."""

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

    def at(self, place: int) -> float:
        """The time of a place of the slider, 0 to STEPS."""
        return self.start + (self.end - self.start) * place / STEPS

    def held(self, at: float) -> int:
        return sum(block.bytes for block in self.blocks if block.alive(at))

    def peak(self) -> tuple[float, int]:
        """The first moment at which most bytes are held, and how many."""
        changes = [(block.start, block.bytes) for block in self.blocks]
        changes += [(b.end, -b.bytes) for b in self.blocks if b.end is not None]
        now, best, when = 0, 0, float(self.start)
        for moment, size in sorted(changes):
            now += size
            if now > best:
                best, when = now, float(moment)
        return when, best


def memory_timeline(
    events: Sequence[Event], allocations: Sequence[Allocation], *, moment: int | None = None
) -> None:
    """Show what is held at each moment of a profiled step; live, a cursor moves through it.

    events, allocations: as `instruments.traces` reads them from a profile with
    `profile_memory=True`.
    moment: where the cursor stands at first, in half per cent (0 to 200); by default at the peak.
    Raises ValueError if there are no events, or no allocations, or for a moment outside.
    """
    found = read(events, allocations)
    start = moment if moment is not None else place_of(found, found.peak()[0])
    if not 0 <= start <= STEPS:
        raise ValueError(f"memory_timeline: a moment from 0 to {STEPS}, got {start}")
    _interactive.present(
        lambda at: draw(found, at),
        (start,),
        lambda widgets: [widgets.IntSlider(value=start, min=0, max=STEPS, description="moment")],
    )


def read(events: Sequence[Event], allocations: Sequence[Allocation]) -> Memory:
    """The blocks that were made in the record, each with the operator that made it.

    What was there before the record and is freed in it is left out.
    """
    if not events or not allocations:
        raise ValueError("memory_timeline: nothing to show; profile with profile_memory=True")
    nodes = tree(event for event in events if event.lane == "cpu")
    starts = [node.start for node in nodes]
    open_: dict[int, tuple[int, int, str, str]] = {}
    blocks = []
    for change in sorted(allocations, key=lambda allocation: allocation.time):
        if change.bytes > 0:
            maker = _maker(nodes, starts, change.time)
            open_[change.address] = (change.time, change.bytes, *maker)
        elif change.address in open_:
            start, size, name, phase = open_.pop(change.address)
            blocks.append(Block(start, change.time, size, name, phase))
    blocks += [Block(start, None, size, name, how) for start, size, name, how in open_.values()]
    times = [allocation.time for allocation in allocations]
    first = min([*times, *starts])
    last = max([*times, *(node.end for node in nodes)])
    return Memory(first, last, tuple(sorted(blocks, key=lambda block: block.start)))


def _maker(nodes: Sequence[Node], starts: Sequence[int], at: int) -> tuple[str, str]:
    """The operator that asked for memory at a time, and its phase.

    The innermost operators only fetch memory (`aten::empty`, ...); the next around them is named.
    """
    chain: list[Node] = []
    for node in nodes[: bisect_right(starts, at)]:
        del chain[node.depth :]
        chain.append(node)
    chain = [node for node in chain if node.start <= at <= node.end]
    fetching = ("aten::empty", "aten::resize_", "aten::new_empty", "aten::zero_")
    named = [node for node in chain if not node.name.startswith(fetching)] or chain
    return (named[-1].name, named[-1].phase) if named else ("no operator", FORWARD)


def place_of(memory: Memory, at: float) -> int:
    """The first place of the slider at which `at` has come."""
    share = (at - memory.start) / max(1, memory.end - memory.start)
    place = min(STEPS, max(0, int(share * STEPS)))
    return place if memory.at(place) >= at or place == STEPS else place + 1


def draw(memory: Memory, place: int) -> tuple[Figure, str]:
    """The figure with the cursor at a place, and its alternative text."""
    at = memory.at(place)
    top = title_height("one line") + 10
    listed_at = top + HIGH + 62
    canvas = Canvas(listed_at + LINE * (LISTED + 1) + 8)
    canvas.title(sentence(memory, at))
    wide = WIDTH - MARGIN - 8 - LEFT
    length = memory.end - memory.start
    peak = memory.peak()[1]
    axes = Axes(canvas, LEFT, top, wide, HIGH, x=(0, max(1, length)), y=(0, peak / 2**20 * 1.05))
    marks = round_steps(0, peak / 2**20, 4)
    axes.grid_y(marks, [f"{mark:g} MiB" for mark in marks])
    _draw_stack(canvas, axes, memory)
    ends = [t for t in round_steps(0, length) if axes.px(t) < WIDTH - MARGIN - 50]
    axes.labels_x(ends, [ms(t) if t else "0" for t in ends])
    x = axes.px(at - memory.start)
    canvas.line([(x, top - 4), (x, axes.bottom)], colour=INK, dashed=True, line=1.6)
    _draw_alive(canvas, memory, at, listed_at)
    return canvas.finish(), describe(memory, at)


def _draw_stack(canvas: Canvas, axes: Axes, memory: Memory) -> None:
    """The bytes of each phase, one upon the other, as areas with steps."""
    length = memory.end - memory.start
    columns = range(COLUMNS + 1)
    below = [0.0] * (COLUMNS + 1)
    for phase, look in LOOKS.items():
        change = [0.0] * (COLUMNS + 2)
        for block in memory.blocks:
            if block.phase != phase:
                continue
            change[_column(block.start - memory.start, length)] += block.bytes / 2**20
            if block.end is not None:
                change[_column(block.end - memory.start, length)] -= block.bytes / 2**20
        own, now = [], 0.0
        for k in columns:
            now += change[k]
            own.append(now)
        if not any(own):
            continue
        above = [low + more for low, more in zip(below, own, strict=True)]
        way = [(axes.px(length * k / COLUMNS), axes.py(above[k])) for k in columns]
        back = [(axes.px(length * k / COLUMNS), axes.py(below[k])) for k in reversed(columns)]
        canvas.polygon([*way, *back], look.colour)
        below = above


def _column(time: int, length: int) -> int:
    """The first column at which a time has come."""
    return min(COLUMNS, -(-time * COLUMNS // max(1, length)))


def _draw_alive(canvas: Canvas, memory: Memory, at: float, top: float) -> None:
    blocks = alive(memory, at)
    x = float(MARGIN)
    for name, look in LOOKS.items():
        size = sum(block.bytes for block in blocks if block.phase == name)
        canvas.boxes([(x, top - 6, 12, 12)], [look.colour], edge="none")
        canvas.text(x + 18, top, f"{name} {human_bytes(size)}", size=TEXT, colour=MUTED)
        x += 192
    for k, (maker, phase, number, size) in enumerate(groups(blocks)[:LISTED]):
        y = top + LINE * (k + 1)
        canvas.boxes([(MARGIN, y - 6, 12, 12)], [LOOKS[phase].colour], edge="none")
        canvas.text(MARGIN + 18, y, cut(short_name(maker), 400, size=TEXT), size=TEXT)
        canvas.text(MARGIN + 540, y, count(number, "block"), size=TEXT, colour=MUTED, ha="right")
        canvas.text(MARGIN + 690, y, human_bytes(size), size=TEXT, ha="right")


def alive(memory: Memory, at: float) -> list[Block]:
    """The blocks that are held at a time, in the order in which they were made."""
    return [block for block in memory.blocks if block.alive(at)]


def groups(blocks: Sequence[Block]) -> list[tuple[str, str, int, int]]:
    """(maker, phase, number, bytes) of the blocks of each maker, largest first."""
    found: dict[tuple[str, str], list[int]] = {}
    for block in blocks:
        found.setdefault((block.maker, block.phase), []).append(block.bytes)
    rows = [(*key, len(sizes), sum(sizes)) for key, sizes in found.items()]
    return sorted(rows, key=lambda row: -row[3])


def sentence(memory: Memory, at: float) -> str:
    """What is held at the cursor, beside the peak, as the figure's title."""
    when, peak = memory.peak()
    return (
        f"{human_bytes(memory.held(at))} held at {ms(at - memory.start)}; "
        f"the peak, {human_bytes(peak)}, is at {ms(when - memory.start)}."
    )


def describe(memory: Memory, at: float) -> str:
    """The alternative text: what is held, and who made the most of it."""
    told = "; ".join(
        f"{short_name(maker)} ({phase}): {count(number, 'block')}, {human_bytes(size)}"
        for maker, phase, number, size in groups(alive(memory, at))[:LISTED]
    )
    whole = f"{count(len(alive(memory, at)), 'block')} alive"
    return f"Memory over time. {sentence(memory, at)} {whole}. {told}."
