"""Lab 11, exercise 3: The same as a kernel"""

import torch
import triton
import triton.language as tl

from hood.judge.checks.exercise import Case, Check
from utils.drivers.custom_op import cut
from utils.instruments.launching import launch

from .shared import EXACTNESS_IS_A_FACT, IN_A_KERNEL, TRUNCATED, exactness

matmul = Check(
    "matmul",
    parts={
        "whole tiles": 1,
        "ragged tiles": 1,
        "any strides": 1,
        "bfloat16": 1,
        "loads and stores": 1,
        "tensor cores": 1,
    },
    reads="The same as a kernel",
    by_hand=IN_A_KERNEL,
    tolerance=EXACTNESS_IS_A_FACT,
)


@triton.jit
def _tile(a_ptr, b_ptr, c_ptr, sizes, strides, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """One tile of the product, in a grid of one dimension."""
    M, N, K = sizes
    across = tl.cdiv(N, BN)
    i = tl.program_id(0) // across * BM + tl.arange(0, BM)
    j = tl.program_id(0) % across * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    left = a_ptr + i[:, None] * strides[0] + k[None, :] * strides[1]
    right = b_ptr + k[:, None] * strides[2] + j[None, :] * strides[3]
    total = tl.zeros((BM, BN), tl.float32)
    while tl.max(k, 0) - BK + 1 < K:
        a = tl.load(left, mask=(i[:, None] < M) & (k[None, :] < K), other=0.0)
        b = tl.load(right, mask=(k[:, None] < K) & (j[None, :] < N), other=0.0)
        total += tl.dot(a, b)
        k += BK
        left += BK * strides[1]
        right += BK * strides[2]
    inside = (i[:, None] < M) & (j[None, :] < N)
    tl.store(c_ptr + i[:, None] * N + j[None, :], total, mask=inside)


@matmul.reference
def _(a, b, blocks):
    sizes = len(a), b.shape[1], len(b)
    c = torch.zeros(sizes[0], sizes[1], dtype=a.dtype)
    programs = triton.cdiv(sizes[0], blocks[0]) * triton.cdiv(sizes[1], blocks[1])
    launch(_tile, (programs,), a, b, c, sizes, (*a.stride(), *b.stride()), *blocks)
    return c


INEXACT = (
    "The result is nearly right, but less exact than its dtype allows. That happens if the sum is "
    "rounded, or computed with fewer digits, before the end."
)
NAN = (
    "There is NaN where a number is expected. The places beside the rows of `a` and `b` are NaN, and "
    "so are places of the result to which nothing is written."
)


@matmul.cases
def _(draw):
    whole, ragged, strides, half, moved, gpu = matmul.parts

    def drawn(M, N, K, dtype=torch.float32):
        return draw.tensor((M, K)).to(dtype), draw.tensor((K, N)).to(dtype)

    def product(part, a, b, blocks, words=""):
        exact, scale = a.double() @ b.double(), a.double().abs() @ b.double().abs()

        def play(subject):
            output = subject.drive("tiles:computed", a, b, blocks)["output"]
            right = isinstance(output, torch.Tensor) and output.dtype == a.dtype
            return (
                not right or not bool(output.isnan().any()),
                not right or exactness(output, exact, scale, TRUNCATED),
                not right or output.is_contiguous(),
                output,
            )

        contiguous = "The result is not contiguous."
        places = {"[0]": NAN, "[1]": INEXACT, "[2]": contiguous, "[3]": "the product"}
        dtype = str(a.dtype).removeprefix("torch.")
        shown = f"{dtype} {tuple(a.shape)} @ {tuple(b.shape)}, blocks {blocks}{words}"
        return Case(part, play, shown=shown, places=places)

    for M, N, K, blocks in (
        (16, 16, 16, (16, 16, 16)),
        (32, 16, 48, (16, 16, 16)),
        (32, 64, 32, (32, 16, 32)),
        (32, 128, 64, (16, 64, 32)),
    ):
        yield product(whole, *drawn(M, N, K), blocks)

    def rest():
        return draw.integer(1, 15)

    for M, N, K in (
        (16 + rest(), 16, 16),
        (16, 16 + rest(), 16),
        (16, 16, 16 + rest()),
        (17, 15, 33),
        (rest(), rest(), 16 + rest()),
        (1, 1, 1),
        (1, 32 + rest(), rest()),
        (32 + rest(), 1, 1),
    ):
        a, b = drawn(M, N, K)
        yield product(ragged, cut(a), cut(b), (16, 16, 16))
    yield product(ragged, *map(cut, drawn(20 + rest(), 10 + rest(), 40 + rest())), (32, 16, 32))
    yield product(ragged, *map(cut, drawn(rest(), 30 + rest(), rest())), (16, 64, 32))

    a, b = drawn(32, 16, 32)
    yield product(strides, cut(a, 1, 33), b, (16, 16, 16), ", a transposed")
    yield product(strides, a, cut(b, 1, 32), (16, 16, 16), ", b transposed")
    yield product(strides, cut(a, 70, 2), b, (16, 16, 16), ", every second column of a larger a")
    yield product(strides, a, cut(b, 60, 3), (16, 16, 16), ", every third column of a larger b")
    yield product(strides, cut(a, 40), cut(b, 20), (16, 16, 16), ", rows apart")
    one = cut(a)[:1]
    yield product(strides, one.expand(16, 32), b, (16, 16, 16), ", a expanded from one row")

    yield product(half, *drawn(16, 32, 32, torch.bfloat16), (16, 16, 16))
    yield product(half, *drawn(16, 16, 160, torch.bfloat16), (16, 16, 16), ", a long sum")
    a, b = drawn(16, 16, 48)
    a[:, :16], a[:, 32:] = 16.0, -16.0  # large sums on the way, small ones at the end
    b[:16] = b[32:] = 1.0
    swinging = a.bfloat16(), b.bfloat16()
    yield product(half, *swinging, (16, 16, 16), ", large sums on the way")

    def counted(a, b, blocks):
        (M, K), N = a.shape, b.shape[1]
        loads = triton.cdiv(N, blocks[1]) * M * K + triton.cdiv(M, blocks[0]) * K * N

        def play(subject):
            came = subject.drive("tiles:launched", a, b, blocks)
            return (
                came["loads"] <= loads,
                came["loads"] >= loads,
                came["stores"] <= M * N,
                came["stores"] >= M * N,
                came["launches"] == 1,
                came["others"] == 0,
                came["output"],
            )

        places = {
            "[0]": "The programs load more numbers than the formula of exercise 1 says.",
            "[1]": "The programs load fewer numbers than the formula of exercise 1 says. The tiles "
            "should have the sizes in `blocks`.",
            "[2]": "The programs store more numbers than the result has.",
            "[3]": "The programs store fewer numbers than the result has.",
            "[4]": "Not exactly one kernel is launched.",
            "[5]": "A kernel gets a tensor that is neither `a`, `b` nor the result. The kernel "
            "should read `a` and `b` as they are.",
            "[6]": "the product",
        }
        shown = f"{tuple(a.shape)} @ {tuple(b.shape)}, blocks {blocks}"
        return Case(moved, play, shown=shown, places=places)

    for M, N, K, blocks in (
        (32, 16, 32, (16, 16, 16)),
        (16 + rest(), 16 + rest(), 16 + rest(), (16, 16, 16)),
        (33, rest(), 17, (32, 16, 32)),
        (rest(), 50, 20, (16, 32, 16)),
    ):
        a, b = map(cut, drawn(M, N, K))
        yield counted(a, b, blocks)

    def compiled(subject):
        return subject.drive("tiles:tensor_cores", *pair, (16, 16, 16))

    # for the compiler like the tensors in the lab's cell, so no kernel is compiled twice
    pair = drawn(16, 16, 64, torch.bfloat16)
    says = {"": "The kernel compiles for an H100, but it has no `mma` instruction. `tl.dot` makes them."}
    yield Case(gpu, compiled, shown="bfloat16, compiled for sm_90", places=says)
