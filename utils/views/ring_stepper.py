"""An all-reduce around a ring, step by step: whose numbers are in each chunk of each rank."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from matplotlib.figure import Figure
from torch import Tensor

from utils.notebook.style import CARD, IDLE, INK, MUTED, RULE, STORAGE, VIEW
from utils.views import _interactive
from utils.views._canvas import INNER, MARGIN, Box, Canvas, title_height
from utils.views._numbers import human_bytes, short

LABEL, ROW, HEAD, TEXT, STRIP = 84, 56, 46, 14, 8
MOST = 8  # ranks


@dataclass(frozen=True)
class Cell:
    """A chunk at one rank: the sum of its numbers (None: it has none), and whose they are."""

    total: float | None
    of: frozenset[int]


@dataclass(frozen=True)
class Ring:
    """All chunks of all ranks after each step.

    states: for each step, for each rank, its chunks. moved: for each step after the first state
    the chunk that each rank has received in it. sent: for each step the bytes that the rank which
    sends most has sent by then.
    """

    states: tuple[tuple[tuple[Cell, ...], ...], ...]
    moved: tuple[tuple[int, ...], ...]
    sent: tuple[int, ...]

    @property
    def world(self) -> int:
        return len(self.states[0])


def ring_stepper(tensors: Sequence[Tensor], *, step: int = 0) -> None:
    """Show a ring all-reduce of the ranks' own tensors after some steps; live, step through it.

    tensors: one for each of 2 to 8 ranks, of one shape. step: 0 to 2 (ranks - 1).
    Raises ValueError for other numbers of ranks, unequal shapes, or a step that is not there.
    """
    ring = read(tensors)
    last = len(ring.states) - 1
    if not 0 <= step <= last:
        raise ValueError(f"ring_stepper: a step from 0 to {last}, got {step}")
    _interactive.present(
        lambda at: draw(ring, at),
        (step,),
        lambda widgets: [widgets.IntSlider(value=step, min=0, max=last, description="step")],
    )


def read(tensors: Sequence[Tensor]) -> Ring:
    """Let the tensors go round, and note each state."""
    world = len(tensors)
    if not 2 <= world <= MOST:
        raise ValueError(f"ring_stepper draws 2 to {MOST} ranks, got {world}")
    if len({tuple(tensor.shape) for tensor in tensors}) != 1:
        raise ValueError(
            f"expected tensors of one shape, got {[tuple(tensor.shape) for tensor in tensors]}"
        )
    flat = [tensor.detach().flatten() for tensor in tensors]
    chunks = [list(torch.tensor_split(one.double(), world)) for one in flat]
    of = [[{rank} for _ in range(world)] for rank in range(world)]
    each = [part.numel() * tensors[0].element_size() for part in chunks[0]]
    states, moved, bytes_of = [_state(chunks, of)], [], [0] * world
    sent = [0]
    for step in range(2 * (world - 1)):
        came = []
        before = [list(own) for own in chunks], [[set(s) for s in own] for own in of]
        for rank in range(world):
            left = (rank - 1) % world
            # What the left neighbour has got last goes on. Once it has been everywhere it is the
            # sum, and goes round a second time.
            chunk = (left - step) % world
            own, other = before[0][rank][chunk], before[0][left][chunk]
            summed = step < world - 1
            chunks[rank][chunk] = own + other if summed else other
            of[rank][chunk] = before[1][left][chunk] | (before[1][rank][chunk] if summed else set())
            bytes_of[left] += each[chunk]
            came.append(chunk)
        moved.append(tuple(came))
        sent.append(max(bytes_of))
        states.append(_state(chunks, of))
    return Ring(tuple(states), tuple(moved), tuple(sent))


def _state(
    chunks: Sequence[Sequence[Tensor]], of: Sequence[Sequence[set[int]]]
) -> tuple[tuple[Cell, ...], ...]:
    return tuple(
        tuple(
            Cell(part.sum().item() if part.numel() else None, frozenset(who))
            for part, who in zip(own, whose, strict=True)
        )
        for own, whose in zip(chunks, of, strict=True)
    )


def draw(ring: Ring, step: int) -> tuple[Figure, str]:
    """The chunks after a step, and the alternative text."""
    world = ring.world
    top = title_height("one line") + HEAD
    canvas = Canvas(top + ROW * world + 62)
    canvas.title(sentence(ring, step))
    wide = (INNER - LABEL) / world
    gap = 16 if world < 7 else 10
    moved = ring.moved[step - 1] if step else (None,) * world
    for rank in range(world):
        x = MARGIN + LABEL + wide * rank
        canvas.text(x + (wide - gap) / 2, top - 26, f"rank {rank}", size=TEXT, ha="center")
    for chunk in range(world):
        y = top + ROW * chunk
        canvas.text(MARGIN, y + (ROW - 10) / 2, f"chunk {chunk}", size=TEXT, colour=MUTED)
        _draw_row(canvas, ring, step, chunk, y, wide, gap)
        for rank in range(world):
            if moved[rank] == chunk:
                _draw_arrow(canvas, rank, y + (ROW - 10) / 2, wide, gap)
    y = top + ROW * world + 16
    canvas.boxes([(MARGIN, y - 7, 14, 14)], [STORAGE.tint], edge=STORAGE.colour)
    canvas.text(MARGIN + 22, y, "some ranks' numbers are in it", size=TEXT, colour=MUTED)
    canvas.boxes([(MARGIN + 270, y - 7, 14, 14)], [VIEW.tint], edge=VIEW.colour)
    canvas.text(MARGIN + 292, y, "all ranks' numbers", size=TEXT, colour=MUTED)
    canvas.line([(MARGIN + 460, y), (MARGIN + 482, y)], colour=INK, line=2.4)
    canvas.text(MARGIN + 490, y, "has just come from the left", size=TEXT, colour=MUTED)
    words = "The number is the sum over the chunk; the strip below it has a place for each rank."
    canvas.text(MARGIN, y + 24, words, size=TEXT, colour=MUTED)
    return canvas.finish(), describe(ring, step)


def _draw_row(
    canvas: Canvas, ring: Ring, step: int, chunk: int, y: float, wide: float, gap: float
) -> None:
    """One chunk at all ranks: a box with its sum, and a strip that says whose it is."""
    world, high, places = ring.world, ROW - 10, _places(ring)
    boxes: dict[str, list[Box]] = {VIEW.name: [], STORAGE.name: []}
    for rank in range(world):
        cell = ring.states[step][rank][chunk]
        look = VIEW if len(cell.of) == world else STORAGE
        x = MARGIN + LABEL + wide * rank
        boxes[look.name].append((x, y, wide - gap, high))
        words = "empty" if cell.total is None else _written(cell.total, places)
        canvas.text(x + (wide - gap) / 2, y + (high - STRIP) / 2, words, size=TEXT, ha="center")
    for look in (VIEW, STORAGE):
        canvas.boxes(boxes[look.name], [look.tint] * len(boxes[look.name]), edge=look.colour)
    strips, fills = [], []
    for rank in range(world):
        cell = ring.states[step][rank][chunk]
        look = VIEW if len(cell.of) == world else STORAGE
        each = (wide - gap) / world
        for other in range(world):
            left = MARGIN + LABEL + wide * rank + each * other
            strips.append((left, y + high - STRIP, each, float(STRIP)))
            fills.append(look.colour if other in cell.of else IDLE)
    canvas.boxes(strips, fills, edge=CARD, line=0.6)
    canvas.line([(MARGIN, y + ROW - 5), (MARGIN + INNER, y + ROW - 5)], colour=RULE, line=0.5)


def _places(ring: Ring) -> int | None:
    """Decimals for all numbers of all steps: the largest gets three digits; None if none suits."""
    totals = [
        abs(cell.total)
        for state in ring.states
        for own in state
        for cell in own
        if cell.total is not None
    ]
    largest = max(totals, default=0.0)
    if not 0 < largest < 1e6:
        return None if largest else 0
    places = max(0, 2 - math.floor(math.log10(largest)))
    return places if places <= 5 else None


def _written(total: float, places: int | None) -> str:
    """A number with so many decimals, or as short as can be; never "-0.00"."""
    return short(total, 6) if places is None else f"{round(total, places) + 0.0:.{places}f}"


def _draw_arrow(canvas: Canvas, rank: int, y: float, wide: float, gap: float) -> None:
    """From the left neighbour's cell; to rank 0 from the edge, since the ring is closed."""
    x = MARGIN + LABEL + wide * rank
    canvas.line([(x - gap + 1, y), (x - 4, y)], colour=INK, line=2.4)
    canvas.polygon([(x - 6, y - 5), (x, y), (x - 6, y + 5)], INK)
    right = x + wide - gap
    canvas.line(
        [(x, y - 23), (right, y - 23), (right, y + 23), (x, y + 23), (x, y - 23)],
        colour=INK,
        line=2,
    )


def complete(ring: Ring, step: int) -> int:
    """How many chunks, of all ranks together, have everybody's numbers in them."""
    return sum(len(cell.of) == ring.world for own in ring.states[step] for cell in own)


def sentence(ring: Ring, step: int) -> str:
    """How far the sums have come, as the figure's title."""
    whole = ring.world**2
    return (
        f"Step {step} of {len(ring.states) - 1}: {complete(ring, step)} of {whole} chunks are sums "
        f"of all; {human_bytes(ring.sent[step])} sent by a rank."
    )


def describe(ring: Ring, step: int) -> str:
    """The alternative text: whose numbers are in each chunk of each rank."""
    parts = []
    for rank, own in enumerate(ring.states[step]):
        held = "; ".join(
            f"chunk {chunk} of {'all' if len(cell.of) == ring.world else _listed(cell.of)}"
            for chunk, cell in enumerate(own)
        )
        parts.append(f"Rank {rank}: {held}.")
    return f"A ring all-reduce. {sentence(ring, step)} {' '.join(parts)}"


def _listed(ranks: frozenset[int]) -> str:
    return "+".join(map(str, sorted(ranks)))
