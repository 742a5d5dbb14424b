"""Each load and store of a Triton kernel, one after the other, and the memory that it accesses."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from utils.instruments.accesses import Access, accesses
from utils.notebook.style import CARD, GRADIENT, IDLE, INK, KERNEL, MUTED, RULE, STORAGE
from utils.views._canvas import INNER, MARGIN, RIGHT, Canvas, Drawing
from utils.views._controls import slider
from utils.views._numbers import count
from utils.views._text_outlines import cut, text_width
from utils.views._view import present

SECTOR = 32  # bytes; the smallest piece that a GPU moves between its memory and its caches
# the number of elements of a tensor, and of a block, for which the picture has room
MOST_SECTORS, MOST_LANES = 16, 32
CELL, GAP, ROW = 21, 16, 30
LANES_X, LANE = 126, 36
HEAD = 30  # the line above a tensor's cells


@dataclass(frozen=True)
class Memory:
    """One tensor of the launch, and its storage."""

    name: str
    told: str
    length: int
    itemsize: int
    offset: int  # the index of the storage element at which the tensor begins
    inside: frozenset[int]  # the elements of the storage that belong to the tensor

    @property
    def sector(self) -> int:
        return max(1, SECTOR // self.itemsize)

    @property
    def shown(self) -> int:
        """The number of elements that are drawn, from the first element of the storage on."""
        return min(self.length, MOST_SECTORS * self.sector)

    @property
    def sectors_in_a_line(self) -> int:
        return max(1, int((INNER + GAP) // (self.sector * CELL + GAP)))

    @property
    def height(self) -> float:
        sectors = -(-self.shown // self.sector)
        return HEAD + ROW * -(-sectors // self.sectors_in_a_line) + 14

    def places(self, access: Access) -> list[int]:
        return [self.offset + element for element in access.touched]

    def sectors(self, access: Access) -> list[int]:
        return sorted({place // self.sector for place in self.places(access)})

    def outside(self, access: Access) -> list[int]:
        """Return the accessed elements that are not part of the tensor."""
        return [place for place in self.places(access) if place not in self.inside]


def kernel_steps(
    kernel: Any, grid: tuple[int, ...], *args: Any, step: int = 1, **kwargs: Any
) -> None:
    """Launch `kernel` in the interpreter and show what it loads and stores.

    In a live view, a slider chooses the load or store.

    kernel: the result of `@triton.jit`.
    args, kwargs: the arguments of the launch, with small tensors on the CPU. The kernel's stores
        change these tensors.
    step: the load or store that is lit first, counted from 1.

    Raises ValueError if the kernel loads and stores nothing, or if there is no such step.
    """
    found = accesses(kernel, grid, *args, **kwargs)
    given = inspect.signature(kernel.fn).bind(*args, **kwargs).arguments
    tensors = [memory(name, it) for name, it in given.items() if isinstance(it, torch.Tensor)]
    if not found:
        raise ValueError("kernel_steps: the kernel loaded and stored nothing")
    present(lambda at: draw(tensors, found, at), slider("step", step, 1, len(found)))


def memory(name: str, tensor: torch.Tensor) -> Memory:
    itemsize = tensor.element_size()
    length = tensor.untyped_storage().nbytes() // itemsize
    places = torch.arange(length).as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())
    dtype = str(tensor.dtype).removeprefix("torch.")
    told = f"shape {tuple(tensor.shape)}, strides {tensor.stride()}, {dtype}"
    inside = frozenset(places.flatten().tolist())
    return Memory(name, told, length, itemsize, int(tensor.storage_offset()), inside)


def draw(tensors: Sequence[Memory], found: Sequence[Access], step: int) -> Drawing:
    access = found[step - 1]
    owner = next(one for one in tensors if one.name == access.tensor)
    touched, strangers = owner.places(access), owner.outside(access)
    sectors = count(len(owner.sectors(access)), "sector")
    if not touched:
        does = "nothing, because all places are masked off"
    elif strangers:
        does = f"{count(len(strangers), 'element')} beside {owner.name}'s own"
    else:
        way = "from" if access.kind == "load" else "into"
        does = f"{count(len(touched), 'element')} {way} {sectors} of {owner.name}"
    canvas = Canvas(f"Step {step} of {len(found)}: program {access.program} {access.kind}s {does}.")
    top = canvas.top + 14
    _draw_lanes(canvas, owner, access, top)
    y = top + LANE + 28
    canvas.line([(MARGIN, y - 10), (RIGHT, y - 10)])
    for one in tensors:
        before = [past for past in found[: step - 1] if past.tensor == one.name]
        _draw_memory(canvas, one, before, access if one is owner else None, y)
        y += one.height
    y += 8
    kinds = (
        ("in this step", STORAGE.colour),
        ("before", STORAGE.tint, RULE),
        ("beside the tensor", IDLE, MUTED, True),
        ("touched beside it", GRADIENT.colour),
        (f"a sector of {SECTOR} bytes", "none", INK, False, 2),
    )
    canvas.legend(MARGIN, y, kinds)
    parts = [f"A kernel's loads and stores. {canvas.title}"]
    if touched:
        listed = ", ".join(map(str, touched[:MOST_LANES]))
        used, moved = len(touched) * owner.itemsize, len(owner.sectors(access)) * SECTOR
        parts.append(
            f"{owner.name}, elements {listed} of its storage: {used} bytes of the {moved} in "
            f"{sectors} of {SECTOR}."
        )
    if strangers:
        parts.append(f"Not in the tensor: {', '.join(map(str, strangers))}.")
    off = count(len(access.mask) - len(touched), "lane")
    parts.append(f"Masked off: {off} of {len(access.mask)}.")
    parts += [f"{one.name}: {one.told}." for one in tensors]
    return canvas.finish(y + 44, " ".join(parts))


def _draw_lanes(canvas: Canvas, owner: Memory, access: Access, y: float) -> None:
    """Draw the program's block. Each lane contains the index of its storage element."""
    middle = y + LANE / 2
    canvas.marker(MARGIN + 8, middle, KERNEL.marker, 15, KERNEL.colour)
    canvas.text(MARGIN + 24, middle, f"program {access.program}")
    some = list(zip(access.elements, access.mask, strict=True))[:MOST_LANES]
    wide = min(44, (INNER - LANES_X) / len(some))
    strange = set(owner.outside(access))
    looks = {  # colours of a lane: fill, ink, edge
        "on": (STORAGE.tint, INK, STORAGE.colour),
        "off": (IDLE, MUTED, MUTED),
        "beside": (GRADIENT.colour, GRADIENT.on, GRADIENT.colour),
    }
    for k, (element, on) in enumerate(some):
        place, x = owner.offset + element, MARGIN + LANES_X + k * wide
        fill, ink, edge = looks["off" if not on else "beside" if place in strange else "on"]
        canvas.box((x, y, wide, LANE), fill, edge=edge, dashed=not on)
        if text_width(str(place)) < wide - 2:
            canvas.text(x + wide / 2, middle, str(place), ink, "center")


def _draw_memory(
    canvas: Canvas, one: Memory, before: Sequence[Access], now: Access | None, y: float
) -> None:
    canvas.text(MARGIN, y + 10, one.name, STORAGE.colour if now else INK, mono=True)
    start = MARGIN + text_width(one.name, mono=True) + 14
    canvas.text(start, y + 10, cut(one.told, RIGHT - start), MUTED)

    def corner(place: int) -> tuple[float, float]:
        sector, within = divmod(place, one.sector)
        line, across = divmod(sector, one.sectors_in_a_line)
        x = MARGIN + across * (one.sector * CELL + GAP) + within * CELL
        return x, y + HEAD + line * ROW

    lit = set(one.places(now)) if now else set()
    past = {place for access in before for place in one.places(access)}
    for place in range(one.shown):
        x, top = corner(place)
        stranger = place not in one.inside
        part = GRADIENT if stranger else STORAGE
        ink = STORAGE.on if place in lit else INK
        if stranger and place not in lit | past:
            ink = MUTED
            canvas.box((x, top, CELL, CELL), IDLE, edge=RULE, dashed=True)
        else:
            fill = part.colour if place in lit else part.tint if place in past else CARD
            canvas.box((x, top, CELL, CELL), fill, edge=RULE)
        if text_width(str(place), size=13) < CELL:
            canvas.text(x + CELL / 2, top + CELL / 2, str(place), ink, "center", size=13)
    for sector in one.sectors(now) if now else []:
        if 0 <= sector * one.sector < one.shown:
            x, top = corner(sector * one.sector)
            frame = (x - 2, top - 2, one.sector * CELL + 4, CELL + 4)
            canvas.box(frame, "none", edge=INK, line=2, radius=3)
    if one.shown < one.length:
        told = f"the first {one.shown} of {one.length:,}"
        canvas.text(RIGHT, y + 10, told, MUTED, "right")
