"""Drivers of lab 05: kernels that write into tensors, and operators of one's own."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import torch

from utils.launching import ptx_of, recorded_launches


def cut(
    values: torch.Tensor, row_stride: int | None = None, column_stride: int = 1
) -> torch.Tensor:
    """The values as a view that is cut from a larger storage, with NaN on all sides of it.

    So a kernel that reads beside its rows has NaN in its result, and one that writes there leaves
    marks. There is room for a block of lanes before and behind it.

    Args:
        values: floating point, (rows, columns).
        row_stride, column_stride: of the view; by default rows follow each other with a gap of 3.
    """
    rows, columns = values.shape
    row_stride = columns * column_stride + 3 if row_stride is None else row_stride
    room = 8 * max(columns, 1) + row_stride + 16
    last = max(rows - 1, 0) * row_stride + max(columns - 1, 0) * column_stride
    storage = torch.full((room + last + 1 + room,), float("nan"), dtype=values.dtype)
    view = storage.as_strided((rows, columns), (row_stride, column_stride), room)
    return view.copy_(values)


def surroundings(view: torch.Tensor) -> torch.Tensor:
    """A copy of the storage that a tensor lies in, with 0 in place of the tensor itself."""
    count = view.untyped_storage().nbytes() // view.element_size()
    flat = torch.as_strided(view.detach(), (count,), (1,), 0).clone()
    flat.as_strided(view.shape, view.stride(), view.storage_offset()).zero_()
    return flat


def fill(function: Callable, *tensors: torch.Tensor) -> dict[str, Any]:
    """Call a function that reads all tensors but the last and writes into that.

    Returns:
        ``out``, the last tensor; ``kept``, whether the storages of the others are as they were.
    """
    *inputs, out = tensors
    before = [_bytes(tensor) for tensor in inputs]
    function(*tensors)
    return {"out": out, "kept": before == [_bytes(tensor) for tensor in inputs]}


def compiled(function: Callable, *tensors: torch.Tensor, target: str = "sm_90") -> bool:
    """Whether a function launches kernels, and all of them compile for a GPU.

    Raises:
        LookupError: when it launches none.
        CompileError: with what the compiler said.
    """
    with recorded_launches() as launches:
        function(*tensors)
    if not launches:
        raise LookupError("no kernel was launched: launch(kernel, grid, ...) runs one")
    for launched in launches:
        ptx_of(launched, target)
    return True


def _bytes(tensor: torch.Tensor) -> bytes:
    """What a tensor's storage holds, read without an operator on the tensor: a rule may watch."""
    storage = tensor.untyped_storage()
    return ctypes.string_at(storage.data_ptr(), storage.nbytes()) if storage.nbytes() else b""
