"""Record what a Triton kernel touches in the interpreter: each load and store of a program."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch


@dataclass(frozen=True)
class Access:
    """One load or store of one program."""

    program: int  # its number along the grid's first axis
    kind: str  # "load" or "store"
    tensor: str  # the kernel's argument that it goes to
    # index of each place of the block, counted from the tensor's first element
    elements: tuple[int, ...]
    mask: tuple[bool, ...]  # whether memory is touched there

    @property
    def touched(self) -> tuple[int, ...]:
        """The elements whose memory is touched: those that the mask does not exclude."""
        return tuple(i for i, on in zip(self.elements, self.mask, strict=True) if on)

    def __str__(self) -> str:
        pairs = zip(self.elements, self.mask, strict=True)
        places = " ".join(f"{i}" if on else f"[{i}]" for i, on in pairs)
        return f"program {self.program}  {self.kind:5}  {self.tensor:8} {places}"


def accesses(kernel: Any, grid: tuple[int, ...], *args: Any, **kwargs: Any) -> list[Access]:
    """Launch a kernel on CPU tensors in the interpreter, and return its loads and stores in order.

    The launch is real: what the kernel stores is stored. A block is attributed to the tensor that
    begins nearest below its first place.
    """
    from utils.softmax.run import require_triton

    require_triton()
    from utils.softmax.interpreter import interpreted

    given = inspect.signature(kernel.fn).bind(*args, **kwargs).arguments
    tensors = {name: value for name, value in given.items() if isinstance(value, torch.Tensor)}
    found: list[Access] = []
    with _recording(tensors, found):
        interpreted(kernel)[grid](*args, **kwargs)
    return found


@contextmanager
def _recording(tensors: dict[str, torch.Tensor], found: list[Access]) -> Iterator[None]:
    from triton.runtime.interpreter import interpreter_builder as builder

    load, store = builder.create_masked_load, builder.create_masked_store

    def note(kind: str, places: Any, mask: Any) -> None:
        addresses = [int(place) for place in places.data.ravel()]
        on = tuple(bool(bit) for bit in mask.data.ravel())
        name = _owner(tensors, addresses[0])
        start, wide = tensors[name].data_ptr(), tensors[name].element_size()
        elements = tuple((address - start) // wide for address in addresses)
        found.append(Access(builder.grid_idx[0], kind, name, elements, on))

    def noted_load(places: Any, mask: Any, *rest: Any) -> Any:
        note("load", places, mask)
        return load(places, mask, *rest)

    def noted_store(places: Any, value: Any, mask: Any, *rest: Any) -> Any:
        note("store", places, mask)
        return store(places, value, mask, *rest)

    builder.create_masked_load, builder.create_masked_store = noted_load, noted_store
    try:
        yield
    finally:
        del builder.create_masked_load, builder.create_masked_store  # the class's own show again


def _owner(tensors: dict[str, torch.Tensor], address: int) -> str:
    starts = {name: tensor.data_ptr() for name, tensor in tensors.items()}
    below = [name for name in starts if starts[name] <= address]
    return max(below or starts, key=lambda name: starts[name])
