"""Inputs of every kind for the softmax's checks, and their results in float64."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from unittest.mock import patch

import torch
from torch import Tensor

from utils.softmax import run
from utils.softmax.launch import Launch

LAYOUTS = ("contiguous", "transposed", "sliced", "permuted", "expanded", "unaligned")
VALUES = ("normal", "wide", "largest", "some -inf", "row of -inf", "+inf", "nan", "equal")
MARGIN = 64  # guard elements before and after an output; a multiple of 16 bytes


@dataclass(frozen=True)
class Case:
    """An input of one or more dimensions; `LAYOUTS` and `VALUES` list the layouts and values."""

    shape: tuple[int, ...]
    dtype: torch.dtype = torch.float32
    layout: str = "contiguous"
    values: str = "normal"
    launch: Launch | None = None
    seed: int = 0

    def tensor(self, device: torch.device, stream: int = 0, values: str | None = None) -> Tensor:
        """Return the input; each `stream` gives other numbers."""
        generator = torch.Generator().manual_seed(1000 * self.seed + stream)
        # the memory is filled with poison first, so the gaps between the elements are poison, too
        x = lay_out(self.shape, self.dtype, self.layout, device)
        numbers = fill(self.shape, values or self.values, self.dtype, generator)
        if self.layout == "expanded":
            x[:1] = numbers[:1].to(device)
            return x[:1].expand(self.shape)
        return x.copy_(numbers.to(device))


def lay_out(
    shape: tuple[int, ...], dtype: torch.dtype, layout: str, device: torch.device
) -> Tensor:
    """Return a poisoned tensor of `shape`, with the strides and offset that `layout` names."""
    *leading, columns = shape

    def poison(*sizes: int) -> Tensor:
        return torch.full(sizes, 77.0, dtype=dtype, device=device)

    if layout == "transposed":
        return poison(columns, *leading).movedim(0, -1)
    if layout == "sliced":
        return poison(*leading, 2 * columns)[..., ::2]
    if layout == "permuted":  # the leading dimensions don't merge into one
        return poison(*reversed(leading), columns + 3)[..., :columns].permute(
            *reversed(range(len(leading))), len(leading)
        )
    if layout == "unaligned":
        return poison(*leading, columns + 1)[..., 1:]
    return poison(*shape)


def fill(
    shape: tuple[int, ...], values: str, dtype: torch.dtype, generator: torch.Generator
) -> Tensor:
    """Return float64 numbers within the range of `dtype`.

    If `values` asks for one unusual row, it is the last row.
    """
    x = torch.randn(shape, generator=generator, dtype=torch.float64)
    if not x.numel():
        return x
    last = x.reshape(-1, shape[-1])[-1]  # a view: x is contiguous
    middle = shape[-1] // 2
    if values == "wide":
        x *= 30
    elif values == "largest":
        x = x.sign() * torch.finfo(dtype).max
    elif values == "some -inf":
        x[torch.rand(shape, generator=generator) < 0.5] = -torch.inf
        x[..., middle] = 0.5
    elif values == "row of -inf":
        last[:] = -torch.inf
    elif values == "+inf":
        last[middle] = torch.inf
    elif values == "nan":
        last[middle] = torch.nan
    elif values == "equal":
        x = torch.zeros_like(x)
    return x


# The largest allowed difference from the float64 result, relative to that result, and the reason.
RELATIVE = {
    torch.float64: 1e-13,  # a few of 2^-52; the sum of a row runs in any order
    # exp's argument, up to 88, is rounded to 2^-24 of itself, and exp's result to 2 units in the
    # last place
    torch.float32: 2e-5,
    torch.float16: 1e-3,  # the result is rounded to 2^-11
    torch.bfloat16: 2**-7,  # one unit: Triton's interpreter cuts the bits off where a GPU rounds
}
# Below its smallest normal number a format keeps fewer digits, and a GPU's exp none at all.
ABSOLUTE = {
    torch.float64: 1e-300,
    torch.float32: 2e-38,
    torch.float16: 7e-8,
    torch.bfloat16: 1e-37,  # and Triton's interpreter garbles what is smaller
}


def forward_reference(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return softmax(x) in float64, and the largest allowed error of each element."""
    want = torch.softmax(x.double(), -1)
    return want, RELATIVE[x.dtype] * want + ABSOLUTE[x.dtype]


def backward_reference(g: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Return y * (g - sum(g * y)) in float64, and the largest allowed error of each element.

    The difference may cancel, so the allowed error depends on the two terms, not on the result.
    """
    g64, y64 = g.double(), y.double()
    want = y64 * (g64 - (g64 * y64).sum(-1, keepdim=True))
    terms = y64.abs() * (g64.abs() + (g64 * y64).abs().sum(-1, keepdim=True))
    return want, RELATIVE[y.dtype] * terms + ABSOLUTE[y.dtype]


def require_close(got: Tensor, want: Tensor, allowed: Tensor, what: str) -> float:
    """Return the largest error relative to the allowed error. Raises AssertionError above 1."""
    if not got.numel():
        return 0.0
    share = (got.double() - want).abs() / allowed
    share[got.isnan() & want.isnan()] = 0.0
    worst = share.nan_to_num(nan=torch.inf).max().item()
    if worst > 1:
        at = tuple(
            int(i) for i in torch.unravel_index(share.nan_to_num(torch.inf).argmax(), share.shape)
        )
        raise AssertionError(
            f"{what}: at {at} got {got[at].item():.9g}, expected {want[at].item():.9g}; the error "
            f"is {worst:.3g} times the allowed error"
        )
    return worst


@contextmanager
def guarded_outputs() -> Iterator[None]:
    """Fill results and the memory around them with poison, so that unwritten elements are visible.

    At the end, raise AssertionError if a kernel has written outside its result."""
    buffers: list[Tensor] = []

    def allocate(like: Tensor) -> Tensor:
        poison = torch.finfo(like.dtype).max
        size = like.numel() + 2 * MARGIN
        buffers.append(torch.full((size,), poison, dtype=like.dtype, device=like.device))
        return buffers[-1][MARGIN:-MARGIN].view(like.shape)

    with patch.object(run, "allocate", allocate):
        yield
    for buffer in buffers:
        for margin in (buffer[:MARGIN], buffer[-MARGIN:]):
            if not (margin == torch.finfo(buffer.dtype).max).all():
                raise AssertionError("the kernel wrote outside its output")
