"""The softmax as a PyTorch operator: schema, fake, autograd, vmap, a kernel for each device."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.library import custom_op

from utils.instruments.accelerator import kernel_devices
from utils.softmax import run

NAMESPACE = "open_the_hood"


@custom_op(f"{NAMESPACE}::softmax", mutates_args=(), device_types=kernel_devices())
def row_softmax(x: Tensor) -> Tensor:
    """Return softmax over the last dimension of x, (…, columns). The result is contiguous."""
    return run.forward(x)


@custom_op(f"{NAMESPACE}::softmax_backward", mutates_args=(), device_types=kernel_devices())
def row_softmax_backward(grad_output: Tensor, y: Tensor) -> Tensor:
    """Return y * (grad_output - sum(grad_output * y)) over the last dimension, (…, columns)."""
    return run.backward(grad_output, y)


# Fakes tell a tracer the shape, dtype, device and strides of a result. They compute nothing.


@row_softmax.register_fake
def _(x: Tensor) -> Tensor:
    return torch.empty(x.shape, dtype=x.dtype, device=x.device)


@row_softmax_backward.register_fake
def _(grad_output: Tensor, y: Tensor) -> Tensor:
    return torch.empty(y.shape, dtype=y.dtype, device=y.device)


# Autograd. The backward is an operator with a backward, so that it can be differentiated. This
# second backward is plain PyTorch code, which can be differentiated any number of times.


def _save_output(ctx: Any, inputs: tuple[Tensor], output: Tensor) -> None:
    ctx.save_for_backward(output)


def _vjp(ctx: Any, grad_output: Tensor) -> Tensor:
    (y,) = ctx.saved_tensors
    return row_softmax_backward(grad_output, y)


def _save_inputs(ctx: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
    ctx.save_for_backward(*inputs)


def _vjp_of_backward(ctx: Any, v: Tensor) -> tuple[Tensor | None, Tensor | None]:
    """Return the gradients of g and y, where v is the gradient of dx = y * (g - sum(g * y))."""
    g, y = ctx.saved_tensors
    grad_g = grad_y = None
    if ctx.needs_input_grad[0]:
        grad_g = row_softmax_backward(v, y)
    if ctx.needs_input_grad[1]:
        wide = torch.promote_types(y.dtype, torch.float32)
        g, y, v = g.to(wide), y.to(wide), v.to(wide)
        dot_g, dot_v = (g * y).sum(-1, keepdim=True), (v * y).sum(-1, keepdim=True)
        grad_y = (v * (g - dot_g) - g * dot_v).to(ctx.saved_tensors[1].dtype)
    return grad_g, grad_y


row_softmax.register_autograd(_vjp, setup_context=_save_output)
row_softmax_backward.register_autograd(_vjp_of_backward, setup_context=_save_inputs)


# vmap. A batch dimension becomes an additional leading dimension, and a row softmax takes any
# number of leading dimensions.


@row_softmax.register_vmap
def _(info: Any, in_dims: tuple[int], x: Tensor) -> tuple[Tensor, int]:
    return row_softmax(x.movedim(in_dims[0], 0)), 0


@row_softmax_backward.register_vmap
def _(info: Any, in_dims: tuple[int | None, int | None], *tensors: Tensor) -> tuple[Tensor, int]:
    batched = [
        tensor.expand(info.batch_size, *tensor.shape) if dim is None else tensor.movedim(dim, 0)
        for tensor, dim in zip(tensors, in_dims, strict=True)
    ]
    return row_softmax_backward(*batched), 0


def softmax(x: Tensor, dim: int = -1) -> Tensor:
    """Return exp(x) / sum(exp(x)) along `dim` like `torch.softmax`, with this package's kernels.

    The result can be differentiated any number of times. The function works in `torch.vmap` and in
    `torch.compile(fullgraph=True)`. `torch.func.grad` refuses it, as it refuses every operator that
    `torch.library.custom_op` made. Autocast does not change the dtype.

    x: float16, bfloat16, float32 or float64, with any shape and strides, on a CPU or a GPU. Sums
        are accumulated in float64 for float64, and in float32 for other dtypes.
    dim: the dimension of the sums.

    Returns a tensor with x's shape and dtype. For the last dimension it is contiguous. For another
    dimension it is a transposed view. A row with NaN or +inf, or with only -inf, becomes NaN.
    Raises TypeError for another dtype, IndexError if x has no such dimension, and TritonMissing if
    Triton is not installed.
    """
    if x.dtype not in run.DTYPES:
        names = ", ".join(str(dtype).removeprefix("torch.") for dtype in run.DTYPES)
        raise TypeError(f"softmax takes {names}, got {x.dtype}: convert x first, e.g. x.float()")
    if x.dim() == 0 and dim in (-1, 0):
        return row_softmax(x.unsqueeze(0)).squeeze(0)
    if not -x.dim() <= dim < x.dim():
        raise IndexError(
            f"softmax over dim={dim}, but x of shape {tuple(x.shape)} has {x.dim()} dimensions"
        )
    if dim in (-1, x.dim() - 1):
        return row_softmax(x)
    return row_softmax(x.movedim(dim, -1)).movedim(-1, dim)
