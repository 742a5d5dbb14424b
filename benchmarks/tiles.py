"""Time kernels in the form of lab 11 on a GPU: a product in tiles, and attention in tiles.

Each is compared with PyTorch's own operators. A dry run interprets the kernels, with tiny shapes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.nn import functional as F

from benchmarks.behaviour import seconds
from benchmarks.context import Context
from utils.instruments.launching import launch

# (BLOCK_M, BLOCK_N, BLOCK_K), warps
BLOCKS = (((64, 64, 64), 4), ((128, 128, 64), 4), ((128, 128, 64), 8), ((128, 256, 64), 8))
GROUPS = (1, 8)  # rows of tiles that a group of programs takes
HEADS, CHANNELS = 16, 64


@triton.jit
def product_kernel(a_ptr, b_ptr, c_ptr, M, N, K, a_row, a_column, b_row, b_column,
                   GROUP: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
                   BLOCK_K: tl.constexpr):  # fmt: skip
    """c = a @ b: a (M, K) and b (K, N) with any strides, c contiguous."""
    program, high, wide = tl.program_id(0), tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    first = program // (GROUP * wide) * GROUP
    rows = min(high - first, GROUP)
    inside = program % (GROUP * wide)
    m = ((first + inside % rows) * BLOCK_M + tl.arange(0, BLOCK_M)).to(tl.int64)[:, None]
    n = (inside // rows * BLOCK_N + tl.arange(0, BLOCK_N)).to(tl.int64)[None, :]
    sums = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, K, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        a_mask, b_mask = (m < M) & (k[None, :] < K), (k[:, None] < K) & (n < N)
        a = tl.load(a_ptr + m * a_row + k[None, :] * a_column, mask=a_mask, other=0.0)
        b = tl.load(b_ptr + k[:, None] * b_row + n * b_column, mask=b_mask, other=0.0)
        sums = tl.dot(a, b, sums)
    tl.store(c_ptr + m * N + n, sums.to(c_ptr.dtype.element_ty), mask=(m < M) & (n < N))


@triton.jit
def attention_kernel(q_ptr, k_ptr, v_ptr, out_ptr, T, scale,
                     D: tl.constexpr, BLOCK_Q: tl.constexpr, BLOCK_K: tl.constexpr):  # fmt: skip
    """Causal attention; all tensors are contiguous (heads, T, D)."""
    head, d = tl.program_id(1).to(tl.int64) * T * D, tl.arange(0, D)[None, :]
    i = tl.program_id(0) * BLOCK_Q + tl.arange(0, BLOCK_Q)
    q = tl.load(q_ptr + head + i[:, None] * D + d, mask=i[:, None] < T, other=0.0)
    m = tl.full((BLOCK_Q,), float("-inf"), tl.float32)
    l = tl.zeros((BLOCK_Q,), tl.float32)  # noqa: E741  the papers' name
    sums = tl.zeros((BLOCK_Q, D), tl.float32)
    for start in range(0, min((tl.program_id(0) + 1) * BLOCK_Q, T), BLOCK_K):
        j = start + tl.arange(0, BLOCK_K)
        k = tl.load(k_ptr + head + j[:, None] * D + d, mask=j[:, None] < T, other=0.0)
        v = tl.load(v_ptr + head + j[:, None] * D + d, mask=j[:, None] < T, other=0.0)
        scores = tl.dot(q, tl.trans(k)) * scale
        scores = tl.where(j[None, :] <= i[:, None], scores, float("-inf"))
        new = tl.maximum(m, tl.max(scores, 1))
        p, correction = tl.exp(scores - new[:, None]), tl.exp(m - new)
        l = l * correction + tl.sum(p, 1)  # noqa: E741
        sums = tl.dot(p.to(v.dtype), v, sums * correction[:, None])
        m = new
    out = (sums / l[:, None]).to(out_ptr.dtype.element_ty)
    tl.store(out_ptr + head + i[:, None] * D + d, out, mask=i[:, None] < T)


def product(a: Tensor, b: Tensor, blocks: tuple[int, int, int], warps: int, group: int) -> Tensor:
    """(M, K) @ (K, N) by `product_kernel`."""
    (M, K), N = a.shape, b.shape[1]
    c = a.new_empty(M, N)
    grid = (triton.cdiv(M, blocks[0]) * triton.cdiv(N, blocks[1]),)
    strides = *a.stride(), *b.stride()
    launch(product_kernel, grid, a, b, c, M, N, K, *strides, group, *blocks, num_warps=warps)
    return c


def attention(q: Tensor, k: Tensor, v: Tensor, blocks: tuple[int, int], warps: int) -> Tensor:
    """Return causal attention of contiguous (1, H, T, D) by `attention_kernel`."""
    _, heads, length, channels = q.shape
    out, scale = torch.empty_like(q), 1 / math.sqrt(channels)
    grid = (triton.cdiv(length, blocks[0]), heads)
    launch(attention_kernel, grid, q, k, v, out, length, scale, channels, *blocks, num_warps=warps)
    return out


def tiles_section(context: Context) -> dict[str, Any]:
    """Time products and causal attention, in tiles and by PyTorch; compare their results."""
    dtype = torch.float32 if context.dry_run else torch.bfloat16
    cases = [*_products(context, dtype), *_attentions(context, dtype)]
    return {"dtype": str(dtype).removeprefix("torch."), "cases": cases}


def _products(context: Context, dtype: torch.dtype) -> list[dict[str, Any]]:
    cases = []
    choices = (
        [(((16, 16, 16), 4), 2)] if context.dry_run else [(b, g) for b in BLOCKS for g in GROUPS]
    )
    for size in (40,) if context.dry_run else (1024, 4096, 8192):
        a, b = (torch.randn(size, size, device=context.device, dtype=dtype) for _ in "ab")
        ways: dict[str, Callable[[], Tensor]] = {"torch": lambda a=a, b=b: a @ b}  # type: ignore[misc]
        for (blocks, warps), group in choices:
            name = f"{' × '.join(map(str, blocks))}, {warps} warps, groups of {group}"
            ways[name] = lambda a=a, b=b, how=(blocks, warps, group): product(a, b, *how)  # type: ignore[misc]
        cases += _timed(context, "product", size, 2 * size**3, ways)
    return cases


def _attentions(context: Context, dtype: torch.dtype) -> list[dict[str, Any]]:
    cases = []
    heads, channels = (2, 16) if context.dry_run else (HEADS, CHANNELS)
    choices = (
        [((16, 16), 4)] if context.dry_run else [((64, 64), 4), ((128, 64), 4), ((128, 64), 8)]
    )
    for length in (20,) if context.dry_run else (1024, 4096, 16384):
        shape = 1, heads, length, channels
        q, k, v = (torch.randn(shape, device=context.device, dtype=dtype) for _ in "qkv")
        given = q, k, v
        ways: dict[str, Callable[[], Tensor]] = {
            "torch": lambda given=given: F.scaled_dot_product_attention(*given, is_causal=True)  # type: ignore[misc]
        }
        for blocks, warps in choices:
            name = f"{' × '.join(map(str, blocks))}, {warps} warps"
            ways[name] = lambda given=given, how=(blocks, warps): attention(*given, *how)  # type: ignore[misc]
        pairs = length * (length + 1) // 2
        cases += _timed(context, "attention", length, 4 * heads * pairs * channels, ways)
    return cases


def _timed(
    context: Context, work: str, size: int, flops: int, ways: dict[str, Callable[[], Tensor]]
) -> list[dict[str, Any]]:
    """Return a case for each way: seconds, FLOP/s, and the distance from the first way's result."""
    cases = []
    expected = next(iter(ways.values()))().float()
    for way, call in ways.items():
        off = float((call().float() - expected).norm() / expected.norm())
        if not off < 0.02:
            context.fail(f"{work} of {size}, {way}: off by {off:.3g}, relative to the whole")
        took = seconds(call, context.device)
        context.say(f"{work} of {size:,}, {way}: {took * 1e3:.3f} ms")
        case = {"work": work, "size": size, "way": way, "seconds": took, "FLOP/s": flops / took}
        cases.append(case | {"relative norm of the difference": off})
    return cases
