"""An all-reduce around a ring, step by step, with the ranks whose numbers are in each chunk."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from utils.notebook.style import CARD, IDLE, INK, MUTED, RULE, STORAGE, VIEW
from utils.views._canvas import INNER, MARGIN, RIGHT, Canvas, Drawing
from utils.views._controls import slider
from utils.views._numbers import human_bytes, require, short
from utils.views._view import present

LABEL, ROW, HEAD, STRIP = 84, 56, 46, 8
HIGH = ROW - 10  # size of a chunk's box
MOST = 8  # ranks


@dataclass(frozen=True)
class Cell:
    """A chunk at one rank: the sum of its numbers, or None, and the ranks that added numbers."""

    total: float | None
    of: frozenset[int]


@dataclass(frozen=True)
class Ring:
    """All chunks of all ranks after each step.

    states: after each step, the chunks of each rank.
    moved: for each step, the chunk that each rank receives in this step.
    sent: after each step, the bytes that a rank has sent until then. If the ranks differ, it is the
        largest number.
    """

    states: list[list[list[Cell]]]
    moved: list[list[int]]
    sent: list[int]

    @property
    def world(self) -> int:
        return len(self.states[0])


def ring_stepper(tensors: Sequence[Tensor], *, step: int = 0) -> None:
    """Show a ring all-reduce of the ranks' own tensors after some steps.

    In a live view, a slider chooses the step.

    tensors: one tensor for each of 2 to 8 ranks. All have the same shape.
    step: 0 to 2 (ranks - 1).

    Raises ValueError for other numbers of ranks, unequal shapes, or a step that does not exist.
    """
    ring = read(tensors)
    present(lambda at: draw(ring, at), slider("step", step, 0, len(ring.states) - 1))


def read(tensors: Sequence[Tensor]) -> Ring:
    """Send the tensors around the ring, and record each state."""
    world, shapes = len(tensors), [tuple(tensor.shape) for tensor in tensors]
    require("ring_stepper", world, "ranks", MOST, 2)
    if len(set(shapes)) != 1:
        raise ValueError(f"expected tensors of one shape, got {shapes}")
    # For each rank, its chunks. With each chunk are the ranks whose numbers are in the chunk.
    now = [
        [(part, {rank}) for part in torch.tensor_split(tensor.detach().flatten().double(), world)]
        for rank, tensor in enumerate(tensors)
    ]
    each = [part.numel() * tensors[0].element_size() for part, _ in now[0]]
    sent_by = [0] * world
    ring = Ring([_state(now)], [], [0])
    for step in range(2 * (world - 1)):
        before, came = [list(own) for own in now], []
        for rank in range(world):
            left = (rank - 1) % world
            # In each step, a rank gets the chunk that its left neighbour received in the previous
            # step. After one round the chunk is the sum, and it goes around a second time.
            chunk = (left - step) % world
            part, of = before[left][chunk]
            if step < world - 1:
                own, own_of = before[rank][chunk]
                part, of = own + part, own_of | of
            now[rank][chunk] = part, of
            sent_by[left] += each[chunk]
            came.append(chunk)
        ring.moved.append(came)
        ring.sent.append(max(sent_by))
        ring.states.append(_state(now))
    return ring


def _state(now: Sequence[Sequence[tuple[Tensor, set[int]]]]) -> list[list[Cell]]:
    return [
        [Cell(part.sum().item() if part.numel() else None, frozenset(of)) for part, of in own]
        for own in now
    ]


def draw(ring: Ring, step: int) -> Drawing:
    world = ring.world
    canvas = Canvas(
        f"Step {step} of {len(ring.states) - 1}: {complete(ring, step)} of {world**2} chunks are "
        f"sums of all; {human_bytes(ring.sent[step])} sent by a rank."
    )
    y = canvas.top + HEAD
    gap, places = 16 if world < 7 else 10, _places(ring)
    xs = [MARGIN + LABEL + (INNER - LABEL) / world * rank for rank in range(world)]
    wide = (INNER - LABEL) / world - gap
    for rank, x in enumerate(xs):
        canvas.text(x + wide / 2, y - 26, f"rank {rank}", ha="center")
    for chunk in range(world):
        canvas.text(MARGIN, y + HIGH / 2, f"chunk {chunk}", MUTED)
        for x, own in zip(xs, ring.states[step], strict=True):
            cell = own[chunk]
            look = VIEW if len(cell.of) == world else STORAGE
            canvas.box((x, y, wide, HIGH), look.tint, edge=look.colour)
            words = _written(cell.total, places)
            canvas.text(x + wide / 2, y + (HIGH - STRIP) / 2, words, ha="center")
            for other in range(world):
                strip = (x + wide / world * other, y + HIGH - STRIP, wide / world, STRIP)
                fill = look.colour if other in cell.of else IDLE
                canvas.box(strip, fill, edge=CARD, line=0.6)
        canvas.line([(MARGIN, y + ROW - 5), (RIGHT, y + ROW - 5)], RULE, 0.5)
        for rank, x in enumerate(xs):
            if step and ring.moved[step - 1][rank] == chunk:
                # An arrow from the left neighbour's cell. The arrow to rank 0 comes from the
                # picture's edge, because the ranks are a ring.
                middle = y + HIGH / 2
                canvas.line([(x - gap + 1, middle), (x - 4, middle)], INK, 2.4)
                canvas.polygon([(x - 6, middle - 5), (x, middle), (x - 6, middle + 5)], INK)
                canvas.box((x, y, wide, HIGH), "none", edge=INK, line=2)
        y += ROW
    y += 16
    names = ("some ranks' numbers are in it", STORAGE), ("all ranks' numbers", VIEW)
    canvas.legend(MARGIN, y, [(name, look.tint, look.colour) for name, look in names], 270)
    canvas.line([(MARGIN + 460, y), (MARGIN + 482, y)], INK, 2.4)
    canvas.text(MARGIN + 490, y, "has just come from the left", MUTED)
    words = "The number is the sum over the chunk; the strip below it has a place for each rank."
    canvas.text(MARGIN, y + 24, words, MUTED)
    parts = []
    for rank, own in enumerate(ring.states[step]):
        whose = ("all" if len(c.of) == world else "+".join(map(str, sorted(c.of))) for c in own)
        held = "; ".join(f"chunk {chunk} of {ranks}" for chunk, ranks in enumerate(whose))
        parts.append(f"Rank {rank}: {held}.")
    return canvas.finish(y + 46, f"A ring all-reduce. {canvas.title} {' '.join(parts)}")


def _places(ring: Ring) -> int | None:
    """Return the number of decimals with which the largest number of all steps has three digits.

    Returns None for unsuitable numbers.
    """
    cells = (cell for state in ring.states for own in state for cell in own)
    largest = max((abs(cell.total) for cell in cells if cell.total is not None), default=0.0)
    if not 0 < largest < 1e6:
        return None if largest else 0
    places = max(0, 2 - math.floor(math.log10(largest)))
    return places if places <= 5 else None


def _written(total: float | None, places: int | None) -> str:
    """Return a number with `places` decimals, or for None as short as possible. Never "-0.00"."""
    if total is None or places is None:
        return "empty" if total is None else short(total, 6)
    return f"{round(total, places) + 0.0:.{places}f}"


def complete(ring: Ring, step: int) -> int:
    """Return the number of chunks, over all ranks, that contain the numbers of every rank."""
    return sum(len(cell.of) == ring.world for own in ring.states[step] for cell in own)
