"""Each load and store of a Triton kernel, one after the other, on the memory that it goes to."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from matplotlib.figure import Figure

from utils.instruments.accesses import Access, accesses
from utils.notebook.style import CARD, GRADIENT, IDLE, INK, KERNEL, MUTED, RULE, STORAGE
from utils.views import _interactive
from utils.views._canvas import INNER, MARGIN, Canvas, title_height
from utils.views._numbers import count
from utils.views._slots import cut
from utils.views._text_outlines import text_width

SECTOR = 32  # bytes; the least that a GPU moves between its memory and its caches
MOST_SECTORS, MOST_LANES = 16, 32  # of a tensor, and of a block, that have room in the picture
CELL, GAP, ROW, TEXT = 21, 16, 30, 14
LANES_X, LANE = 126, 36
HEAD = 30  # the line above a tensor's cells


@dataclass(frozen=True)
class Memory:
    """One tensor of the launch, and the storage that it is a view of.

    Attributes:
        inside: the elements of the storage that belong to the tensor.
        offset: where it begins.
    """

    name: str
    told: str
    length: int
    itemsize: int
    offset: int
    inside: frozenset[int]

    @property
    def sector(self) -> int:
        """Elements in a sector."""
        return max(1, SECTOR // self.itemsize)

    @property
    def shown(self) -> int:
        """Elements that are drawn, counted from the storage's first."""
        return min(self.length, MOST_SECTORS * self.sector)

    @property
    def sectors_in_a_line(self) -> int:
        return max(1, int((INNER + GAP) // (self.sector * CELL + GAP)))

    @property
    def height(self) -> float:
        sectors = -(-self.shown // self.sector)
        return HEAD + ROW * -(-sectors // self.sectors_in_a_line) + 14


def kernel_steps(
    kernel: Any, grid: tuple[int, ...], *args: Any, step: int = 1, **kwargs: Any
) -> None:
    """Launch `kernel` in the interpreter and show what it loads and stores; live, step by step.

    Args:
        kernel: what `@triton.jit` returned.
        args: as for a launch, with small tensors on the CPU. The launch is real: what the kernel
            stores is stored.
        kwargs: further arguments, by name.
        step: which load or store is lit at first, from 1.

    Raises:
        ValueError: if nothing was loaded or stored, or there is no such step.
    """
    found = accesses(kernel, grid, *args, **kwargs)
    given = inspect.signature(kernel.fn).bind(*args, **kwargs).arguments
    tensors = [memory(name, it) for name, it in given.items() if isinstance(it, torch.Tensor)]
    if not found:
        raise ValueError("kernel_steps: the kernel loaded and stored nothing")
    _interactive.present(
        lambda at: draw(tensors, found, at),
        (step,),
        lambda widgets: [widgets.IntSlider(value=step, min=1, max=len(found), description="step")],
    )


def memory(name: str, tensor: torch.Tensor) -> Memory:
    """What the picture needs to know of a tensor."""
    itemsize = tensor.element_size()
    length = tensor.untyped_storage().nbytes() // itemsize
    places = torch.arange(length).as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())
    dtype = str(tensor.dtype).removeprefix("torch.")
    told = f"shape {tuple(tensor.shape)}, strides {tensor.stride()}, {dtype}"
    inside = frozenset(places.flatten().tolist())
    return Memory(name, told, length, itemsize, int(tensor.storage_offset()), inside)


def draw(tensors: Sequence[Memory], found: Sequence[Access], step: int) -> tuple[Figure, str]:
    """Return the figure with one load or store lit, and its alternative text."""
    if not 1 <= step <= len(found):
        raise ValueError(f"step: expected 1 to {len(found)}, got {step}")
    access = found[step - 1]
    owner = next(one for one in tensors if one.name == access.tensor)
    words = sentence(owner, access, step, len(found))
    top = title_height("one line") + 14
    canvas = Canvas(top + LANE + 50 + sum(one.height for one in tensors) + 30)
    canvas.title(words)
    _draw_lanes(canvas, owner, access, top)
    y = top + LANE + 28
    canvas.line([(MARGIN, y - 10), (MARGIN + INNER, y - 10)])
    for one in tensors:
        before = [past for past in found[: step - 1] if past.tensor == one.name]
        _draw_memory(canvas, one, before, access if one is owner else None, y)
        y += one.height
    _draw_legend(canvas, y + 8)
    return canvas.finish(), describe(tensors, found, step, words)


def places(owner: Memory, access: Access) -> list[int]:
    """Return the elements of the storage that an access touches."""
    return [owner.offset + element for element in access.touched]


def sectors(owner: Memory, access: Access) -> list[int]:
    """Return the sectors of the storage that an access touches."""
    return sorted({place // owner.sector for place in places(owner, access)})


def outside(owner: Memory, access: Access) -> list[int]:
    """What an access touches that is no part of the tensor."""
    return [place for place in places(owner, access) if place not in owner.inside]


def sentence(owner: Memory, access: Access, step: int, steps: int) -> str:
    """What the lit step does, as the figure's title."""
    touched = access.touched
    lead = f"Step {step} of {steps}: program {access.program} {access.kind}s"
    if not touched:
        return f"{lead} nothing, for its mask is off everywhere."
    if strangers := outside(owner, access):
        return f"{lead} {count(len(strangers), 'element')} beside {owner.name}'s own."
    way = "from" if access.kind == "load" else "into"
    used = count(len(sectors(owner, access)), "sector")
    return f"{lead} {count(len(touched), 'element')} {way} {used} of {owner.name}."


def describe(tensors: Sequence[Memory], found: Sequence[Access], step: int, words: str) -> str:
    """Return the alternative text: the launch's tensors, and the lit step in numbers."""
    access = found[step - 1]
    owner = next(one for one in tensors if one.name == access.tensor)
    parts = [f"A kernel's loads and stores. {words}"]
    touched = places(owner, access)
    if touched:
        listed = ", ".join(map(str, touched[:MOST_LANES]))
        used, moved = len(touched) * owner.itemsize, len(sectors(owner, access)) * SECTOR
        parts.append(
            f"{owner.name}, elements {listed} of its storage: {used} bytes of the {moved} in "
            f"{count(len(sectors(owner, access)), 'sector')} of {SECTOR}."
        )
    if strangers := outside(owner, access):
        parts.append(f"Not of the tensor: {', '.join(map(str, strangers))}.")
    off = len(access.mask) - len(access.touched)
    parts.append(f"Masked off: {count(off, 'lane')} of {len(access.mask)}.")
    parts += [f"{one.name}: {one.told}." for one in tensors]
    return " ".join(parts)


def _draw_lanes(canvas: Canvas, owner: Memory, access: Access, y: float) -> None:
    """The program's block: in each lane the element of the storage that it goes to."""
    middle = y + LANE / 2
    canvas.marker(MARGIN + 8, middle, KERNEL.marker, size=15, fill=KERNEL.colour, edge="none")
    canvas.text(MARGIN + 24, middle, f"program {access.program}", size=TEXT)
    some = list(zip(access.elements, access.mask, strict=True))[:MOST_LANES]
    wide = min(44, (INNER - LANES_X) / len(some))
    strange = set(outside(owner, access))
    looks = {  # of a lane: fill, ink, edge
        "on": (STORAGE.tint, INK, STORAGE.colour),
        "off": (IDLE, MUTED, MUTED),
        "beside": (GRADIENT.colour, GRADIENT.on, GRADIENT.colour),
    }
    lanes: dict[str, list[tuple[float, float, float, float]]] = {name: [] for name in looks}
    for k, (element, on) in enumerate(some):
        place = owner.offset + element
        kind = "off" if not on else "beside" if place in strange else "on"
        x = MARGIN + LANES_X + k * wide
        lanes[kind].append((x, y, wide, LANE))
        if text_width(str(place), size=TEXT) < wide - 2:
            canvas.text(
                x + wide / 2, middle, str(place), size=TEXT, colour=looks[kind][1], ha="center"
            )
    for kind, (fill, _, edge) in looks.items():
        boxes = lanes[kind]
        canvas.boxes(boxes, [fill] * len(boxes), edge=edge, dashed=kind == "off")


def _draw_memory(
    canvas: Canvas, one: Memory, before: Sequence[Access], now: Access | None, y: float
) -> None:
    ink = STORAGE.colour if now else INK
    canvas.text(MARGIN, y + 10, one.name, size=TEXT, mono=True, colour=ink)
    start = MARGIN + text_width(one.name, size=TEXT, mono=True) + 14
    canvas.text(
        start, y + 10, cut(one.told, MARGIN + INNER - start, size=TEXT), size=TEXT, colour=MUTED
    )
    lit = set(places(one, now)) if now else set()
    past = {place for access in before for place in places(one, access)}
    boxes: list[tuple[float, float, float, float]] = []
    fills: list[str] = []
    dashed: list[tuple[float, float, float, float]] = []
    for place in range(one.shown):
        x, top = _cell(one, place, y)
        stranger = place not in one.inside
        if place in lit:
            fill = GRADIENT.colour if stranger else STORAGE.colour
        elif place in past:
            fill = GRADIENT.tint if stranger else STORAGE.tint
        else:
            fill = IDLE if stranger else CARD
        (dashed if stranger and place not in lit | past else boxes).append((x, top, CELL, CELL))
        if fill != IDLE:
            fills.append(fill)
        number = str(place)
        if text_width(number, size=13) < CELL:
            on = STORAGE.on if place in lit else MUTED if fill == IDLE else INK
            canvas.text(x + CELL / 2, top + CELL / 2, number, size=13, colour=on, ha="center")
    canvas.boxes(dashed, [IDLE] * len(dashed), edge=RULE, dashed=True)
    canvas.boxes(boxes, fills, edge=RULE)
    whole = [s for s in (sectors(one, now) if now else []) if 0 <= s * one.sector < one.shown]
    frames = []
    for sector in whole:
        x, top = _cell(one, sector * one.sector, y)
        frames.append((x - 2, top - 2, one.sector * CELL + 4, CELL + 4))
    canvas.boxes(frames, ["none"] * len(frames), edge=INK, line=2, radius=3)
    if one.shown < one.length:
        x, top = _cell(one, one.shown - 1, y)
        canvas.text(
            MARGIN + INNER,
            y + 10,
            f"the first {one.shown} of {one.length:,}",
            size=TEXT,
            colour=MUTED,
            ha="right",
        )


def _cell(one: Memory, place: int, y: float) -> tuple[float, float]:
    sector, within = divmod(place, one.sector)
    line, across = divmod(sector, one.sectors_in_a_line)
    x = MARGIN + across * (one.sector * CELL + GAP) + within * CELL
    return x, y + HEAD + line * ROW


def _draw_legend(canvas: Canvas, y: float) -> None:
    """What the colours of the cells mean."""
    kinds = (
        ("in this step", STORAGE.colour, "none", False),
        ("before", STORAGE.tint, RULE, False),
        ("beside the tensor", IDLE, MUTED, True),
        ("touched beside it", GRADIENT.colour, "none", False),
    )
    x = float(MARGIN)
    for name, fill, edge, dashed in kinds:
        canvas.boxes([(x, y - 8, 16, 16)], [fill], edge=edge, dashed=dashed)
        canvas.text(x + 23, y, name, size=TEXT)
        x += 23 + text_width(name, size=TEXT) + 18
    canvas.boxes([(x - 1, y - 9, 26, 18)], ["none"], edge=INK, line=2, radius=3)
    canvas.text(x + 33, y, f"a sector of {SECTOR} bytes", size=TEXT)
