"""From tensors to a launched kernel: layout, allocation, and the choice of the device."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from utils.instruments.accelerator import compiles_for
from utils.instruments.launching import launch_on, require_triton
from utils.softmax.launch import Direction, Launch, choose, choose_interpreted, power_of_two

DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
_VECTOR = 16  # bytes that one thread moves in one access
_INT32 = 2**31 - 1


def forward(x: Tensor, launch: Launch | None = None) -> Tensor:
    """Return softmax(x) over the last dimension of x (…, columns), contiguous.

    ``launch`` replaces the launch from the table, for benchmarks and tests.
    """
    y = allocate(x)
    if x.numel():
        _run("forward", {"x": x}, y, launch)
    return y


def backward(grad_output: Tensor, y: Tensor, launch: Launch | None = None) -> Tensor:
    """Return the gradient of x, contiguous, from y = softmax(x) and the gradient of y.

    All three have the shape (…, columns).
    """
    dx = allocate(y)
    if y.numel():
        _run("backward", {"g": grad_output, "y": y}, dx, launch)
    return dx


def allocate(like: Tensor) -> Tensor:
    """Return a contiguous, uninitialised tensor for a result. Tests fill it with NaN."""
    return torch.empty(like.shape, dtype=like.dtype, device=like.device)


def _run(
    direction: Direction, inputs: dict[str, Tensor], out: Tensor, launch: Launch | None
) -> None:
    rows, columns = out.numel() // out.shape[-1], out.shape[-1]
    if launch is None and compiles_for(out.device):
        launch = choose(direction, out.element_size(), rows, columns)
    launch = launch or choose_interpreted(columns)
    # reshape copies the tensor only if the distances between neighbouring rows differ.
    flat = {name: tensor.reshape(rows, columns) for name, tensor in inputs.items()}
    grid, arguments = plan(flat, out, launch)
    kernel = find_kernel(direction, launch)
    launch_on(out.device, kernel, grid, arguments, launch.warps)


def plan(
    inputs: dict[str, Tensor], out: Tensor, launch: Launch
) -> tuple[tuple[int], dict[str, Any]]:
    """Return the grid and the arguments of a kernel for `inputs` (rows, columns) and `out`."""
    require_triton()
    import triton.language as tl

    rows, columns = next(iter(inputs.values())).shape
    strides = {name: _strides(tensor) for name, tensor in inputs.items()}
    align = math.gcd(_VECTOR, columns, *(row for row, _ in strides.values()))
    arguments: dict[str, Any] = {f"{name}_ptr": tensor for name, tensor in inputs.items()}
    arguments["dx_ptr" if "g" in inputs else "y_ptr"] = out
    for name, (row, column) in strides.items():
        arguments |= {f"{name}_row_groups": row // align, f"{name}_column_stride": column}
    arguments |= {"column_groups": columns // align, "ALIGN": align}
    arguments["ACC"] = tl.float64 if out.dtype == torch.float64 else tl.float32

    if launch.loop:
        block, per_program = launch.tile, 1
        arguments |= {"VEC": _VECTOR // out.element_size(), "TILES": -(-columns // block)}
    else:
        block = power_of_two(columns)
        per_program = max(1, launch.tile // block)
        arguments |= {"rows": rows, "ROWS": per_program}
    reach = (columns + block) * max(column for _, column in strides.values())
    arguments |= {"BLOCK": block, "INDEX": tl.int32 if reach <= _INT32 else tl.int64}
    return (-(-rows // per_program),), arguments


def _strides(tensor: Tensor) -> tuple[int, int]:
    """Return the row stride and the column stride in elements.

    The stride of a dimension of size 1 does not matter, so it is replaced by a fixed value.
    """
    rows, columns = tensor.shape
    column = tensor.stride(1) if columns > 1 else 1
    return (tensor.stride(0) if rows > 1 else columns, column)


def find_kernel(direction: Direction, launch: Launch) -> Any:
    """Return the `@triton.jit` kernel of a launch."""
    require_triton()
    from utils.softmax import kernel

    name = "softmax_loop" if launch.loop else "softmax_rows"
    return getattr(kernel, name if direction == "forward" else f"{name}_backward")
