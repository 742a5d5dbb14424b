"""Record the memory accesses of a Triton kernel in the interpreter: each load and store."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

import torch

from utils.instruments.launching import require_triton


@dataclass(frozen=True)
class Access:
    """One load or store of one program."""

    program: int  # its number along the grid's first axis
    kind: str  # "load" or "store"
    tensor: str  # the name of the accessed argument of the kernel
    # for each lane of the block, the index of its element, counted from the tensor's first element
    elements: tuple[int, ...]
    mask: tuple[bool, ...]  # for each lane, whether it accesses its element

    @property
    def touched(self) -> tuple[int, ...]:
        """The accessed elements: those that the mask does not exclude."""
        return tuple(i for i, on in zip(self.elements, self.mask, strict=True) if on)

    def __str__(self) -> str:
        pairs = zip(self.elements, self.mask, strict=True)
        places = " ".join(f"{i}" if on else f"[{i}]" for i, on in pairs)
        return f"program {self.program}  {self.kind:5}  {self.tensor:8} {places}"


def accesses(kernel: Any, grid: tuple[int, ...], *args: Any, **kwargs: Any) -> list[Access]:
    """Launch a kernel on CPU tensors in the interpreter, and return its loads and stores in order.

    The kernel's stores change the tensors. An access belongs to the last tensor in memory that
    starts at or before the address of the block's first lane.
    """
    require_triton()
    from triton.runtime.interpreter import interpreter_builder as builder

    from utils.instruments.interpreter import interpreted, watched

    given = inspect.signature(kernel.fn).bind(*args, **kwargs).arguments
    tensors = {name: value for name, value in given.items() if isinstance(value, torch.Tensor)}
    starts = {name: tensor.data_ptr() for name, tensor in tensors.items()}
    seen: list[Access] = []

    def note(kind: str, places: Any, mask: Any) -> None:
        addresses = [int(place) for place in places.data.ravel()]
        below = [name for name in starts if starts[name] <= addresses[0]]
        name = max(below or starts, key=lambda name: starts[name])
        wide = tensors[name].element_size()
        elements = tuple((address - starts[name]) // wide for address in addresses)
        on = tuple(bool(bit) for bit in mask.data.ravel())
        seen.append(Access(builder.grid_idx[0], kind.removesuffix("s"), name, elements, on))

    with watched(note):
        interpreted(kernel)[grid](*args, **kwargs)
    return seen
