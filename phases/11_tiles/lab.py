# ---
# jupyter:
#   kernelspec: {display_name: Python 3, language: python, name: python3}
#   open_the_hood: {title: "Lab 11: Tiles", points: 40, cell_seconds: 120, compile: trace}
# ---

# %% [markdown]
# # Lab 11: Tiles
#
# Eight exercises and one question, 40 points, about three and a half hours without the *further*
# exercise 7, which takes half an hour more. A class may leave it out, or count it as a bonus.
# Otherwise all points count. The lab follows [lesson 11](../../notebooks/11_tiles.ipynb). You work
# out what a tiled product costs and write it, first in PyTorch and then as a Triton kernel. Then you
# build FlashAttention in steps: a softmax in one pass, attention in tiles, its backward, and its
# kernel. At last, your kernel does the attention of MiniGPT.
#
# You need no GPU. `launch(kernel, grid, ...)` runs a kernel on the device of its tensors. On a CPU
# it uses Triton's interpreter, which runs one program after another. For some points your kernel
# must also *compile* for a GPU, an H100 (`sm_90`), which needs no GPU either.
#
# A *driver*, a function of `utils/drivers/tiles.py`, tries your code and counts what it does: the
# sizes of products and tensors, loads and stores, launches. Each graded cell begins with
# `check(...)`, which gives the same verdict as grading. It uses sizes and numbers that you have not
# seen, new ones each time. A count is a fact that only the process with your code knows. Then “your
# own process says” it, and the grader believes that. No function may change its arguments.
#
# Parts of an exercise earn their points separately, and no exercise needs the answer to another.
# Are you stuck? Each exercise has two hints, folded away. Run the next cell, then start.

# %% given="setup"
import math

import torch
import torch.nn.functional as F
import triton
import triton.language as tl

from hood.learner.check import check
from utils.drivers import tiles as driver
from utils.instruments.launching import launch
from utils.minigpt import MiniGPT, generate, load_minigpt
from utils.notebook.expect import expect_close, expect_equal

# %% [markdown]
# ## 1 · What a tile costs
#
# *Easy, 15 minutes, 4 points: one each for operations, for bytes of whole tiles, for bytes at ragged
# edges, and for the tile that fits.*
# From the lesson: [What a tile costs](../../notebooks/11_tiles.ipynb#cell-id=what-a-tile-costs).
#
# A tiled product computes C, (M, N), from A, (M, K), and B, (K, N). Each program computes one tile
# of C with `block_m` rows and `block_n` columns. For this it reads the tile's rows of A and the
# tile's columns of B, over all of K, and at the end it writes the tile. Write two functions:
#
# - `tile_cost(M, N, K, block_m, block_n, itemsize)` returns a tuple of two whole numbers for the
#   whole product. At an edge, a part of a tile may lie outside of C. That part is masked: it counts
#   neither in the operations nor in the bytes. The first number is that of the operations, where a
#   multiplication and an addition are two. The second is the number of bytes that all programs
#   together read and write, with `itemsize` bytes for each number. If two programs read the same
#   number, it counts twice.
# - `largest_tile(shared_bytes, block_k, stages, itemsize)` returns the side of the largest square
#   tile of C that fits. In each step, a program with a tile of `side` × `side` keeps a tile of A,
#   `side` × `block_k`, and a tile of B, `block_k` × `side`, in shared memory. So that loads come
#   early enough, `stages` such pairs are there at once, and together they may take at most
#   `shared_bytes` bytes. The side is a power of two. If not even a side of 16 fits, the result is
#   0: smaller tiles are not asked for.
#
# All sizes are at least 1, and a block may be larger than the matrix.
#
# <details><summary>How often is A read?</summary>
#
# All tiles in one row of tiles read the same rows of A. So each number of A is read once for each
# tile in that row, and there are ⌈N / `block_n`⌉ of them.
# </details>
# <details><summary>What is different at the edge?</summary>
#
# For the bytes, only the number of tiles is rounded up. The rows of A that one column of tiles reads
# are M altogether, whether the last tile is whole or not.
# </details>

# %% solution="tile_cost"
def tile_cost(
    M: int, N: int, K: int, block_m: int, block_n: int, itemsize: int
) -> tuple[int, int]:
    """Operations and bytes of a tiled product."""
    ### BEGIN SOLUTION
    read_a = triton.cdiv(N, block_n) * M * K
    read_b = triton.cdiv(M, block_m) * K * N
    return 2 * M * N * K, (read_a + read_b + M * N) * itemsize
    ### END SOLUTION


def largest_tile(shared_bytes: int, block_k: int, stages: int, itemsize: int) -> int:
    """The largest power of two that may be the side of a tile, or 0."""
    ### BEGIN SOLUTION
    side = 16
    while 2 * side * block_k * stages * itemsize <= shared_bytes:
        side *= 2
    return side // 2 if side > 16 else 0
    ### END SOLUTION

# %%
expect_equal("one tile", tile_cost(16, 16, 64, 16, 16, 4), (32_768, 9_216))
expect_equal("four tiles", tile_cost(32, 32, 64, 16, 16, 4), (131_072, 36_864))
expect_equal("wide tiles", tile_cost(32, 32, 64, 16, 32, 4), (131_072, 28_672))
expect_equal("an H100's shared memory", largest_tile(227 * 1024, 64, 3, 2), 256)
expect_equal("in float32", largest_tile(227 * 1024, 64, 4, 4), 64)
expect_equal("no room for a side of 16", largest_tile(3000, 32, 1, 4), 0)

# %% test="tile_cost" points=4
# Graded
check("tile_cost")
expect_equal("ragged edges", tile_cost(17, 40, 3, 16, 16, 4)[1], 4 * (3 * 51 + 2 * 120 + 680))
expect_equal("it just fits", largest_tile(8192, 32, 1, 4), 32)
### BEGIN HIDDEN TESTS
verify("tile_cost", tile_cost=tile_cost, largest_tile=largest_tile)
### END HIDDEN TESTS

# %% [markdown]
# ## 2 · A product in tiles
#
# *Medium, 20 minutes, 4 points: one each for whole tiles, for ragged tiles, for any strides, and for
# one rounding.*
# From the lesson: [A product in tiles](../../notebooks/11_tiles.ipynb#cell-id=a-product-in-tiles).
#
# Write `tiled_matmul(a, b, block)` in PyTorch. It returns the product of `a`, (M, K), and `b`, (K,
# N), which have the same dtype.
#
# - Each product in your code takes at most one tile of `a` and one tile of `b`. A tile has at most
#   `block` rows and at most `block` columns. A product is an `@`, any function of torch that does
#   the same, or a multiplication of two tensors with `*`.
# - All sizes are at least 1. They need not be multiples of `block`, which may also be larger than a
#   matrix, or 1.
# - Both matrices may have any strides.
# - The result has the dtype of `a`. Tiles of float16 and bfloat16 must be widened to float32, or
#   more, before they are multiplied. Their products must be summed in float32, or more, and rounded
#   once, at the end. float64 must stay float64 throughout.
#
# <details><summary>How many loops?</summary>
#
# Three loops are enough: over the rows of tiles, over the columns of tiles, and over the tiles of K.
# The innermost loop adds to one tile of the result.
# </details>
# <details><summary>What about the last tile?</summary>
#
# A slice that goes beyond the end of a tensor stops at the end. So `a[i : i + block]` may have fewer
# rows than `block`, and the slices still fit together.
# </details>

# %% solution="tiled_matmul"
def tiled_matmul(a: torch.Tensor, b: torch.Tensor, block: int) -> torch.Tensor:
    """The product of two matrices, tile by tile."""
    ### BEGIN SOLUTION
    (rows, inner), columns = a.shape, b.shape[1]
    wide = torch.float64 if a.dtype == torch.float64 else torch.float32
    result = torch.zeros(rows, columns, dtype=wide)
    for i in range(0, rows, block):
        for j in range(0, columns, block):
            for k in range(0, inner, block):
                left = a[i : i + block, k : k + block].to(wide)
                right = b[k : k + block, j : j + block].to(wide)
                result[i : i + block, j : j + block] += left @ right
    return result.to(a.dtype)
    ### END SOLUTION

# %%
a, b = torch.arange(35.0).reshape(5, 7), torch.arange(21.0).reshape(7, 3) - 9
came = driver.tiled(tiled_matmul, a, b, 2)
expect_close("ragged tiles", came["output"], a @ b)
expect_equal("the largest side of a factor", came["largest"], 2)
expect_close("transposed", tiled_matmul(b.t(), a.t(), 4), (a @ b).t())
expect_close("float64", tiled_matmul(a.double() / 7, b.double(), 3), a.double() / 7 @ b.double())
swing = torch.tensor([[256.0, 1.0, -256.0]]).bfloat16()
expect_equal("summed in float32", tiled_matmul(swing, swing.t() * 0 + 1, 1).item(), 1.0)
fine = torch.tensor([[1 + 2**-7, -1 - 2**-6]]).bfloat16()  # the first product has more digits
last = torch.tensor([[1 + 2**-7], [1.0]]).bfloat16()
expect_equal("multiplied in float32", tiled_matmul(fine, last, 1).item(), 2**-14)

# %% test="tiled_matmul" points=4
# Graded
check("tiled_matmul")
came = tiled_matmul(torch.ones(2, 3), torch.ones(3, 4), 9)
expect_close("one tile", came, torch.full((2, 4), 3.0))
### BEGIN HIDDEN TESTS
verify("tiled_matmul", tiled_matmul)
### END HIDDEN TESTS

# %% [markdown]
# ## 3 · The same as a kernel
#
# *Hard, 30 minutes, 6 points: one each for whole tiles, for ragged tiles, for any strides, for
# bfloat16, for loads and stores, and for tensor cores.*
# From the lesson: [The same as a kernel](../../notebooks/11_tiles.ipynb#cell-id=the-same-as-a-kernel).
#
# Write a Triton kernel, and `matmul(a, b, blocks)`, which launches it once and returns the product
# of `a`, (M, K), and `b`, (K, N), as a new contiguous matrix. `blocks` is `(block_m, block_n,
# block_k)`: one program computes one tile of `block_m` × `block_n`, in steps of `block_k` along K.
# All three are powers of two, from 16 on.
#
# - M, N and K are at least 1, and need not be multiples of a block. The matrices may have any
#   strides.
# - Both matrices are float32, or both are bfloat16, and so is the result. The sum must be in float32,
#   and is rounded once, at the end.
# - A lane that lies outside of a matrix must load nothing. So all programs together load as many
#   numbers as exercise 1 counts. They store each number of the result once. The driver counts this
#   in the interpreter.
# - For bfloat16, the kernel must compile for `sm_90`, with an instruction for tensor cores. Such
#   instructions have `mma` in their names, and `tl.dot` makes them.
# - The kernel must do the work, on `a` and `b` as they are: use no operator of torch that computes
#   with them, and no copy. Launch with `launch`.
#
# In the cell below your functions, `driver.cut` puts a matrix into a larger storage of NaN, and
# `driver.launched` runs a function and counts what its kernels do. `driver.tensor_cores` compiles
# these kernels for an H100, and says whether they have an `mma` instruction.
#
# <details><summary>What does a program do?</summary>
#
# It finds its rows and columns from `tl.program_id`. In a loop over K it loads a tile of `a` and a
# tile of `b`, and adds `tl.dot` of the two to an accumulator. After the loop it stores the
# accumulator.
# </details>
# <details><summary>Which masks are needed?</summary>
#
# A tile of `a` may go beyond M and beyond K, a tile of `b` beyond K and beyond N, and a tile of the
# result beyond M and beyond N. A hidden lane must add nothing to a sum of products.
# </details>

# %% solution="matmul"
@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, a_row, a_column, b_row, b_column,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """One tile of the product; the arguments are a proposal."""
    ### BEGIN SOLUTION
    i = (tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M))[:, None]
    j = (tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N))[None, :]
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for first in range(0, K, BLOCK_K):
        k = first + tl.arange(0, BLOCK_K)
        across, down = k[None, :], k[:, None]
        a_mask, b_mask = (i < M) & (across < K), (down < K) & (j < N)
        a = tl.load(a_ptr + i * a_row + across * a_column, mask=a_mask, other=0.0)
        b = tl.load(b_ptr + down * b_row + j * b_column, mask=b_mask, other=0.0)
        acc = tl.dot(a, b, acc)
    tl.store(c_ptr + i * N + j, acc.to(c_ptr.dtype.element_ty), mask=(i < M) & (j < N))
    ### END SOLUTION


def matmul(a: torch.Tensor, b: torch.Tensor, blocks: tuple[int, int, int]) -> torch.Tensor:
    """The product of two matrices, in one launch."""
    ### BEGIN SOLUTION
    (M, K), N = a.shape, b.shape[1]
    c = torch.empty(M, N, dtype=a.dtype, device=a.device)
    grid = triton.cdiv(M, blocks[0]), triton.cdiv(N, blocks[1])
    launch(matmul_kernel, grid, a, b, c, M, N, K, *a.stride(), *b.stride(), *blocks)
    return c
    ### END SOLUTION

# %%
torch.manual_seed(0)
a, b = driver.cut(torch.randn(33, 20)), driver.cut(torch.randn(20, 17))
came = driver.launched(matmul, a, b, (16, 16, 16))
expect_close("ragged tiles", came["output"], a @ b, atol=1e-5)
expect_equal("numbers loaded", came["loads"], 2 * 33 * 20 + 3 * 20 * 17)
expect_equal("numbers stored", came["stores"], 33 * 17)
turned = matmul(b.t(), a.t(), (16, 32, 16))
expect_close("transposed", turned, (a @ b).t().contiguous(), atol=1e-5)
half, other = torch.full((16, 64), 25 / 32).bfloat16(), torch.full((64, 16), 0.75).bfloat16()
half[:, :16], half[:, 48:] = 16, -16  # a large sum on the way, a small one at the end
came = matmul(half, other, (16, 16, 16))
expect_equal("bfloat16", came, torch.full((16, 16), 18.75).bfloat16())
expect_equal("tensor cores", driver.tensor_cores(matmul, half, other, (16, 16, 16)), True)

# %% test="matmul" points=6
# Graded
check("matmul")
expect_equal("one number", matmul(torch.ones(1, 1), torch.ones(1, 1), (16, 16, 16)).item(), 1.0)
### BEGIN HIDDEN TESTS
verify("matmul", matmul)
### END HIDDEN TESTS

# %% [markdown]
# ## 4 · An epilogue, fused
#
# *Medium, 20 minutes, 4 points: one each for float32, for ragged tiles, for one rounding, and for
# one kernel.*
# From the lesson: [An epilogue, fused](../../notebooks/11_tiles.ipynb#cell-id=an-epilogue-fused).
#
# A linear layer and its activation take two or three kernels, and the numbers between them go to
# memory and back. Write `linear_gelu(x, weight, bias)`, which does all in one Triton kernel. `x` is
# (rows, in), `weight` is (out, in), as in `nn.Linear`, and `bias` is (out,). With z = `x` · `weight`ᵀ
# + `bias`, it returns GELU(z) = z/2 · (1 + erf(z/√2)) as a new contiguous tensor, (rows, out).
#
# - All sizes are at least 1, and the tensors may have any strides.
# - All tensors are float32, or all are bfloat16, and so is the result. Everything up to the GELU must
#   be computed in float32, and the result is rounded once, at the end. For bfloat16 this is more
#   exact than a product, a sum and a GELU that round one after another.
# - Launch one kernel, which stores each number of the result once. For bfloat16, it must compile for
#   `sm_90` with an instruction for tensor cores (`mma`).
# - The kernel must do the work, on the tensors as they are: use no operator of torch that computes
#   with them, and no copy. Launch with `launch`.
#
# <details><summary>Where does the epilogue go?</summary>
#
# It goes between the loop over K and the store, where the whole sum is in the accumulator. The bias
# is one row of `block_n` numbers, the same for all rows of the tile. The error function is `tl.erf`.
# </details>
# <details><summary>How do I transpose the weight?</summary>
#
# You need not transpose it. Row `k` and column `j` of its transpose is row `j` and column `k` of the
# weight, so use the other stride for each.
# </details>

# %% solution="linear_gelu"
@triton.jit
def linear_gelu_kernel(
    x_ptr, w_ptr, bias_ptr, y_ptr, M, N, K, x_row, x_column, w_row, w_column, bias_step,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """One tile of the result; the arguments are a proposal."""
    ### BEGIN SOLUTION
    i = (tl.program_id(0) * BLOCK + tl.arange(0, BLOCK))[:, None]
    j = (tl.program_id(1) * BLOCK + tl.arange(0, BLOCK))[None, :]
    acc = tl.zeros((BLOCK, BLOCK), tl.float32)
    for first in range(0, K, BLOCK):
        k = first + tl.arange(0, BLOCK)
        across, down = k[None, :], k[:, None]
        x_mask, w_mask = (i < M) & (across < K), (down < K) & (j < N)
        x = tl.load(x_ptr + i * x_row + across * x_column, mask=x_mask, other=0.0)
        w = tl.load(w_ptr + down * w_column + j * w_row, mask=w_mask, other=0.0)
        acc = tl.dot(x, w, acc)
    z = acc + tl.load(bias_ptr + j * bias_step, mask=j < N, other=0.0).to(tl.float32)
    y = 0.5 * z * (1 + tl.erf(z * 0.7071067811865476))
    tl.store(y_ptr + i * N + j, y.to(y_ptr.dtype.element_ty), mask=(i < M) & (j < N))
    ### END SOLUTION


def linear_gelu(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """GELU of a linear layer, in one launch."""
    ### BEGIN SOLUTION
    (M, K), N = x.shape, weight.shape[0]
    y = torch.empty(M, N, dtype=x.dtype, device=x.device)
    strides = *x.stride(), *weight.stride(), *bias.stride()
    grid = triton.cdiv(M, 16), triton.cdiv(N, 16)
    launch(linear_gelu_kernel, grid, x, weight, bias, y, M, N, K, *strides, BLOCK=16)
    return y
    ### END SOLUTION

# %%
torch.manual_seed(0)
x, weight, bias = torch.randn(20, 30), torch.randn(17, 30) / 5, torch.randn(34)[::2]
came = driver.launched(linear_gelu, x, weight, bias)
expect_close("as two steps", came["output"], F.gelu(F.linear(x, weight, bias)), atol=1e-5)
expect_equal("one launch, one store", (came["launches"], came["stores"]), (1, 340))
half = [one.bfloat16() for one in (x, weight / 3, bias * 0 - 3)]
exact = F.gelu(F.linear(*(one.double() for one in half)))
error = (linear_gelu(*half).double() - exact).abs() / exact.abs()
expect_equal("one rounding", bool(error.max() < 0.01), True)
ones = torch.ones(16, 16).bfloat16()
expect_equal("tensor cores", driver.tensor_cores(linear_gelu, ones, ones, ones[0]), True)

# %% test="linear_gelu" points=4
# Graded
check("linear_gelu")
one = torch.ones(1, 1)
expect_close("one number", linear_gelu(one, one, one[0]), [[1.9545]])
### BEGIN HIDDEN TESTS
verify("linear_gelu", linear_gelu)
### END HIDDEN TESTS

# %% [markdown]
# ## 5 · A softmax in one pass
#
# *Medium, 20 minutes, 4 points: one each for maximum and sum, for the weighted sum, for minus
# infinity, and for the end.*
# From the lesson: [A softmax in one pass](../../notebooks/11_tiles.ipynb#cell-id=a-softmax-in-one-pass).
#
# The scores of some rows come in tiles, one tile after another, and no tile comes twice. Each score
# belongs to a value, and you compute the mean of the values, weighted by the softmax of each row's
# scores. Write two functions.
#
# `online(m, l, acc, scores, values)` gets the next tile, and returns the new `(m, l, acc)`:
#
# - `scores`, (rows, n), has the next n scores of each row. `values`, (n, D), has the vectors that
#   belong to them, the same for all rows.
# - `m`, (rows,), is the largest score of each row so far.
# - `l`, (rows,), is the sum of exp(score − m) over all scores of the row so far.
# - `acc`, (rows, D), is the sum of exp(score − m) · value over all scores of the row so far.
#
# Before the first tile, `m` is -inf, and `l` and `acc` are 0. All three must be right after every
# tile, also if a later tile has a larger score. Scores may be large, of either sign. A score may be
# -inf, and then it adds nothing. A row that has seen nothing but -inf keeps -inf, 0 and 0.
#
# `finish(m, l, acc)` returns `(output, lse)`. The output, (rows, D), is the weighted mean. `lse`,
# (rows,), is the logarithm of the sum of exp(score) over all scores of the row. If a row has seen
# nothing but -inf, its output is 0, and its `lse` is -inf.
#
# The tensors of a call are all float32 or all float64, and the results have the same dtype. There
# is at least one row, one score and one channel. No result may have a NaN.
#
# <details><summary>What if the maximum moves?</summary>
#
# The old sums have exp(score − old m) where they should have exp(score − new m). The quotient of the
# two does not depend on the score.
# </details>
# <details><summary>Where does NaN come from?</summary>
#
# It comes from -inf − (-inf). If the new maximum is -inf, then subtract any finite number in its
# place: exp(-inf − 0) is 0.
# </details>

# %% solution="online"
def online(
    m: torch.Tensor, l: torch.Tensor, acc: torch.Tensor, scores: torch.Tensor, values: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Maximum, sum and weighted sum after one more tile."""
    ### BEGIN SOLUTION
    new_m = torch.maximum(m, scores.amax(1))
    finite = new_m.masked_fill(new_m == -math.inf, 0)
    correction = torch.exp(m - finite)
    p = torch.exp(scores - finite[:, None])
    return new_m, l * correction + p.sum(1), acc * correction[:, None] + p @ values
    ### END SOLUTION


def finish(
    m: torch.Tensor, l: torch.Tensor, acc: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """The weighted mean and the log-sum-exp of each row."""
    ### BEGIN SOLUTION
    return acc / l.masked_fill(l == 0, 1)[:, None], m + l.log()
    ### END SOLUTION

# %%
torch.manual_seed(0)
scores, values = 3 * torch.randn(3, 10), torch.randn(10, 2)
state = torch.full((3,), -math.inf), torch.zeros(3), torch.zeros(3, 2)
for some, their in zip(scores.split(4, 1), values.split(4)):
    state = online(*state, some, their)
expect_close("the maximum", state[0], scores.amax(1))
expect_close("the weights", state[1], torch.exp(scores - state[0][:, None]).sum(1))
output, lse = finish(*state)
expect_close("the weighted mean", output, torch.softmax(scores, 1) @ values)
expect_close("the log-sum-exp", lse, torch.logsumexp(scores, 1))

# %%
nothing = torch.full((1, 2), -math.inf)
state = online(nothing[:, 0], torch.zeros(1), torch.zeros(1, 2), nothing, values[:2])
shown = [one.tolist() for one in state]
expect_equal("nothing but -inf", shown, [[-math.inf], [0.0], [[0.0, 0.0]]])
shown = [one.tolist() for one in finish(*state)]
expect_equal("the end of nothing but -inf", shown, [[[0.0, 0.0]], [-math.inf]])
later = scores[:1, :2] + 2000
state = online(*state, later, values[:2])
right = torch.softmax(later, 1) @ values[:2]
expect_close("then numbers", finish(*state)[0], right, atol=1e-3)

# %% test="online" points=4
# Graded
check("online")
one = torch.ones(1)
state = online(one, 2 * one, one[None], 0 * one[None], one[None])
expect_close("a smaller score", state[1], [2.367879])
### BEGIN HIDDEN TESTS
verify("online", online=online, finish=finish)
### END HIDDEN TESTS

# %% [markdown]
# ## 6 · Attention without the matrix
#
# *Hard, 35 minutes, 6 points: one each for all words, for the past, for ragged tiles, for the
# log-sum-exp, for no T × T tensor, and for skipped tiles.*
# From the lesson: [Attention without the matrix](../../notebooks/11_tiles.ipynb#cell-id=attention-without-the-matrix).
#
# Write `flash(q, k, v, causal, block)`, attention in tiles of `block` words. `q`, `k` and `v` are
# (B, H, T, D), for B sentences, H heads, T words and D channels, all float32 or all float64. Return
# `(output, lse)` of the same dtype:
#
# - The score of a query and a key is their dot product, divided by √D. The output, (B, H, T, D), is
#   the mean of the values, weighted by the softmax of the query's scores.
# - `lse`, (B, H, T), is the logarithm of the sum of exp(score) over all keys that the query sees.
# - With `causal`, a query sees the key of its own word and of the words before it. Otherwise it sees
#   all keys.
# - Scores may be large and far apart, also those that a query does not see.
# - T need not be a multiple of `block`, which may also be larger than T, or 1. T may be 1.
# - For one sentence and one head, no tensor in your code may have T × T numbers or more, if T is
#   much larger than D and `block`. (This is tried only with B = H = 1.)
# - With `causal`, a tile in which no query sees a key must not be computed. The driver counts the
#   operations of your products of matrices. Each of the other tiles needs two products: one for its
#   scores, and one for its weighted values.
#
# <details><summary>How do the loops go?</summary>
#
# The outer loop goes over tiles of queries, the inner one over tiles of keys. For each tile of
# queries, the inner loop keeps a maximum, a sum and a weighted sum, as in exercise 5.
# </details>
# <details><summary>Which tiles need a mask?</summary>
#
# If tiles of queries and of keys begin at the same places, then only the tile on the diagonal has
# both seen and unseen keys. Hide scores before you take the maximum: a score that nobody sees must
# not become the maximum.
# </details>

# %% solution="flash"
def flash(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool, block: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Attention in tiles: the output, (B, H, T, D), and the log-sum-exp, (B, H, T)."""
    ### BEGIN SOLUTION
    length, width = q.shape[-2:]
    output, lse = torch.empty_like(q), torch.empty_like(q[..., 0])
    for i in range(0, length, block):
        mine = q[..., i : i + block, :] / math.sqrt(width)
        m = torch.full_like(mine[..., :1], -math.inf)
        l, acc = torch.zeros_like(m), torch.zeros_like(mine)
        for j in range(0, i + 1 if causal else length, block):
            scores = mine @ k[..., j : j + block, :].mT
            if causal and i == j:
                future = torch.ones_like(scores, dtype=torch.bool).triu(1)
                scores = scores.masked_fill(future, -math.inf)
            new_m = torch.maximum(m, scores.amax(-1, keepdim=True))
            p, correction = torch.exp(scores - new_m), torch.exp(m - new_m)
            l = l * correction + p.sum(-1, keepdim=True)
            acc = acc * correction + p @ v[..., j : j + block, :]
            m = new_m
        output[..., i : i + block, :] = acc / l
        lse[..., i : i + block] = (m + l.log()).squeeze(-1)
    return output, lse
    ### END SOLUTION

# %%
torch.manual_seed(0)
q, k, v = 3 * torch.randn(3, 1, 2, 10, 4)
for causal in (False, True):
    output, lse = flash(q, k, v, causal, 4)
    theirs = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
    expect_close(f"causal={causal}", output, theirs, atol=1e-5)
expect_close("the first word", lse[..., 0], (q[..., 0, :] * k[..., 0, :]).sum(-1) / 2)
long = torch.randn(3, 1, 1, 64, 4)
came = driver.attention(flash, *long, True, 8)
expect_equal("less than 64 × 64 numbers", came["largest"] < 64 * 64, True)
expect_equal("36 of 64 tiles", came["flops"] <= 36 * 4 * 4 * 8 * 8, True)

# %% test="flash" points=6
# Graded
check("flash")
far = torch.tensor([[0.0], [0.0], [300.0]])[None, None]
output, lse = flash(torch.ones(1, 1, 3, 1), far, far, True, 2)
expect_close("a large score in the future", output[0, 0, :, 0], [0.0, 0.0, 300.0])
### BEGIN HIDDEN TESTS
verify("flash", flash)
### END HIDDEN TESTS

# %% [markdown]
# ## 7 · Back through the tiles
#
# *Further, hard, 35 minutes, 4 points: one each for the values' gradient, for the gradients of queries
# and keys, for ragged tiles, and for memory.*
# From the lesson: [Back through the tiles](../../notebooks/11_tiles.ipynb#cell-id=back-through-the-tiles).
#
# The backward needs the weights of the softmax, and there is no matrix of them. But with the
# log-sum-exp, each tile of weights can be computed again: p = exp(score − lse). Write the class
# `FlashAttention`, a `torch.autograd.Function` that is called as `FlashAttention.apply(q, k, v,
# causal, block)` and returns the output.
#
# - The forward is given: `driver.attended(q, k, v, causal)` returns `(output, lse)`, as your `flash`
#   does. Everything is as there: (B, H, T, D), float32 or float64, any T, any `block` from 1 on.
# - The backward gets `grad`, the gradient of the output, and returns the gradients of `q`, `k` and
#   `v`, in tiles of `block` words: no factor of a product of matrices has more words. (D may be
#   larger than `block`.) With `causal`, hidden scores get no gradient.
# - Other calls may come between a forward and its backward.
# - For one sentence and one head, no tensor may have T × T numbers or more, if T is much larger than
#   D and `block`. From the forward, keep only `q`, `k`, `v`, the output and `lse`, with
#   `ctx.save_for_backward`.
#
# For a tile of queries and a tile of keys, with dots for products of matrices:
#
# ```
# delta = sum(grad * output), for each query          p = exp(q · kᵀ / √D − lse)
# dv += pᵀ · grad                                     ds = p * (grad · vᵀ − delta) / √D
# dq += ds · k                                        dk += dsᵀ · q
# ```
#
# <details><summary>What has to be saved?</summary>
#
# `ctx.save_for_backward(q, k, v, output, lse)` keeps the five tensors. `causal` and `block` are no
# tensors, so they can be attributes of `ctx`.
# </details>
# <details><summary>How do I hide a score?</summary>
#
# A hidden score must be -inf before `exp`, so that its p is 0. Then its ds is 0 too.
# </details>

# %% solution="FlashAttention"
class FlashAttention(torch.autograd.Function):
    """Attention whose backward computes the weights again, tile by tile."""

    @staticmethod
    def forward(ctx, q, k, v, causal, block):
        """The output, (B, H, T, D)."""
        output, lse = driver.attended(q, k, v, causal)
        ### BEGIN SOLUTION
        ctx.save_for_backward(q, k, v, output, lse)
        ctx.causal, ctx.block = causal, block
        ### END SOLUTION
        return output

    @staticmethod
    def backward(ctx, grad):
        """The gradients of q, k and v, and None for the other two arguments."""
        ### BEGIN SOLUTION
        q, k, v, output, lse = ctx.saved_tensors
        dq, dk, dv = torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
        delta = (grad * output).sum(-1, keepdim=True)
        length, scale = q.shape[-2], 1 / math.sqrt(q.shape[-1])
        for i in range(0, length, ctx.block):
            mine = slice(i, i + ctx.block)
            for j in range(0, i + 1 if ctx.causal else length, ctx.block):
                theirs = slice(j, j + ctx.block)
                scores = q[..., mine, :] @ k[..., theirs, :].mT * scale
                if ctx.causal and i == j:
                    future = torch.ones_like(scores, dtype=torch.bool).triu(1)
                    scores = scores.masked_fill(future, -math.inf)
                p = torch.exp(scores - lse[..., mine, None])
                dp = grad[..., mine, :] @ v[..., theirs, :].mT
                ds = p * (dp - delta[..., mine, :]) * scale
                dv[..., theirs, :] += p.mT @ grad[..., mine, :]
                dq[..., mine, :] += ds @ k[..., theirs, :]
                dk[..., theirs, :] += ds.mT @ q[..., mine, :]
        return dq, dk, dv, None, None
        ### END SOLUTION

# %%
torch.manual_seed(0)
q, k, v, upstream = torch.randn(4, 1, 2, 7, 4)
for causal in (False, True):
    leaves = [one.clone().requires_grad_() for one in (q, k, v)]
    theirs = F.scaled_dot_product_attention(*leaves, is_causal=causal)
    right = torch.autograd.grad(theirs, leaves, upstream)
    came = driver.backward(FlashAttention, q, k, v, causal, 3, upstream, between=True)
    for name, mine, other in zip("qkv", came["gradients"], right):
        expect_close(f"causal={causal}, the gradient of {name}", mine, other, atol=1e-5)
few = [one[:, :1, :3, :2] for one in (q, k, v)]
expect_equal("gradcheck", driver.gradcheck(FlashAttention, *few, True, 2), True)
q, k, v, upstream = torch.randn(4, 1, 1, 64, 4)
came = driver.backward(FlashAttention, q, k, v, True, 8, upstream)
expect_equal("less than 64 × 64 numbers", came["largest"] < 64 * 64, True)
expect_equal("numbers kept", came["saved"] <= 4 * 64 * 4 + 64, True)

# %% test="FlashAttention" points=4
# Graded
check("FlashAttention")
came = driver.backward(FlashAttention, *torch.ones(3, 1, 1, 1, 2), True, 1, torch.ones(1, 1, 1, 2))
expect_close("one word", came["gradients"][2], [[[[1.0, 1.0]]]])
### BEGIN HIDDEN TESTS
verify("FlashAttention", FlashAttention)
### END HIDDEN TESTS

# %% [markdown]
# ## 8 · FlashAttention as a kernel
#
# *Hard, 60 minutes, 6 points: one each for all words, for the past, for one launch, for tensor
# cores, for the same words, and for the place in MiniGPT.*
# From the lesson: [FlashAttention as a kernel](../../notebooks/11_tiles.ipynb#cell-id=flashattention-as-a-kernel).
#
# Write two functions. `triton_attention(q, k, v, causal)` launches your Triton kernel once, and
# returns the attention of exercise 6, without the log-sum-exp, as a new contiguous tensor:
#
# - `q`, `k` and `v` are (B, H, T, D) in float32, each with any strides. D is 16, 32 or 64, and T is
#   at least 1.
# - The scores are divided by √D. With `causal`, a query sees its own word and the words before it,
#   otherwise all words. Scores may be large and far apart. You may skip tiles of the future, as in
#   exercise 6, but here nobody counts.
# - The size of the tiles is up to you. The programs must store each number of the output once, and
#   nothing else.
# - The kernel must compile for `sm_90`, with an instruction for tensor cores (`mma`).
# - The kernel must do the work, on the tensors as they are: use no operator of torch that computes
#   with them, and no copy. Launch with `launch`.
#
# The trained MiniGPT must write the same words with your attention as with its own. For this, the
# check puts your function into it.
#
# `swap_attention(model, attention)` does that for any MiniGPT. It must change the given model so that
# the attention of each block, `model.blocks[i].attention`, uses `attention(q, k, v, True)` in place
# of its own pattern and the product with the values. Read `CausalSelfAttention` in
# `utils/minigpt/model.py`: everything else in it must stay. That is its four linear layers, and the
# way in which heads are split and joined. The names in the state dict and all other models must
# stay, too.
#
# Three things may be new in your kernel. An argument may be a tuple, such as `q.stride()`, and
# `q_strides[0]` is its first number. Minus infinity is `-float("inf")`. And the end of a `range` may
# depend on the program's number.
#
# <details><summary>How does a program find its head?</summary>
#
# Let one axis of the grid count tiles of queries, and the other one all B × H heads. Then `//` and
# `%` by H give the sentence and the head, and each tensor has a stride for both.
# </details>
# <details><summary>What about the ragged edge?</summary>
#
# Keys that don't exist must not count. A score of theirs is hidden like a score of the future,
# before the maximum. Queries that don't exist may compute anything, because they aren't stored.
# </details>

# %% solution="triton_attention"
@triton.jit
def flash_kernel(
    q_ptr, k_ptr, v_ptr, o_ptr, T, H, scale, q_strides, k_strides, v_strides,
    CAUSAL: tl.constexpr, D: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """A tile of queries of one head; the arguments are a proposal."""
    ### BEGIN SOLUTION
    b, h = tl.program_id(1) // H, tl.program_id(1) % H
    d = tl.arange(0, D)[None, :]
    i = (tl.program_id(0) * BLOCK + tl.arange(0, BLOCK))[:, None]
    q_ptr += b * q_strides[0] + h * q_strides[1]
    k_ptr += b * k_strides[0] + h * k_strides[1]
    v_ptr += b * v_strides[0] + h * v_strides[1]
    q = tl.load(q_ptr + i * q_strides[2] + d * q_strides[3], mask=i < T, other=0.0)
    m = tl.full((BLOCK, 1), -float("inf"), tl.float32)
    l = tl.zeros((BLOCK, 1), tl.float32)
    acc = tl.zeros((BLOCK, D), tl.float32)
    end = tl.minimum((tl.program_id(0) + 1) * BLOCK, T) if CAUSAL else T
    for first in range(0, end, BLOCK):
        j = first + tl.arange(0, BLOCK)
        down, across = j[:, None], j[None, :]
        k = tl.load(k_ptr + down * k_strides[2] + d * k_strides[3], mask=down < T, other=0.0)
        v = tl.load(v_ptr + down * v_strides[2] + d * v_strides[3], mask=down < T, other=0.0)
        scores = tl.dot(q, tl.trans(k)) * scale
        seen = across < T
        if CAUSAL:
            seen = seen & (across <= i)
        scores = tl.where(seen, scores, -float("inf"))
        new_m = tl.maximum(m, tl.max(scores, 1, keep_dims=True))
        p, correction = tl.exp(scores - new_m), tl.exp(m - new_m)
        l = l * correction + tl.sum(p, 1, keep_dims=True)
        acc = acc * correction + tl.dot(p, v)
        m = new_m
    tl.store(o_ptr + (tl.program_id(1) * T + i) * D + d, acc / l, mask=i < T)
    ### END SOLUTION


def triton_attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool
) -> torch.Tensor:
    """Attention, (B, H, T, D), in one launch."""
    ### BEGIN SOLUTION
    B, H, T, D = q.shape
    output = torch.empty(B, H, T, D, device=q.device)
    strides = q.stride(), k.stride(), v.stride()
    grid = triton.cdiv(T, 16), B * H
    scale = 1 / math.sqrt(D)
    launch(flash_kernel, grid, q, k, v, output, T, H, scale, *strides, CAUSAL=causal, D=D, BLOCK=16)
    return output
    ### END SOLUTION


def swap_attention(model: MiniGPT, attention) -> None:
    """Lets each block of this model use `attention(q, k, v, True)`."""

    ### BEGIN SOLUTION
    def forward_of(own):
        def forward(x):
            q, k, v = (own._split(part(x)) for part in (own.query, own.key, own.value))
            mixed = attention(q, k, v, True)
            return own.output(mixed.transpose(1, 2).reshape(x.shape))

        return forward

    for block in model.blocks:
        block.attention.forward = forward_of(block.attention)
    ### END SOLUTION

# %%
torch.manual_seed(0)
q, k, v = 2 * torch.randn(3, 1, 2, 20, 16)
for causal in (False, True):
    output = triton_attention(q, k, v, causal)
    theirs = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
    expect_close(f"causal={causal}", output, theirs, atol=1e-5)
turned = [one.mT.contiguous().mT for one in (q, k, v)]
came = driver.launched(triton_attention, *turned, True)
expect_close("channels apart in memory", came["output"], theirs, atol=1e-5)
expect_equal("one launch, one store", (came["launches"], came["stores"]), (1, 640))
theirs = F.scaled_dot_product_attention(40 * q, k, v, is_causal=True)
expect_close("large scores", triton_attention(40 * q, k, v, True), theirs, atol=1e-4)
few = [one[:, :, :16] for one in (q, k, v)]
expect_equal("tensor cores", driver.tensor_cores(triton_attention, *few, True), True)

# %%
model = load_minigpt()
swap_attention(model, triton_attention)
ours = generate("yo", verb="hablar", tense="past", model=model)
expect_equal("the same words", ours, generate("yo", verb="hablar", tense="past"))

# %% test="triton_attention" points=6
# Graded
check("triton_attention")
q, k, v = torch.ones(3, 1, 1, 1, 16)
expect_close("one word", triton_attention(q, k, v, True), v)
### BEGIN HIDDEN TESTS
verify("triton_attention", triton_attention=triton_attention, swap_attention=swap_attention)
### END HIDDEN TESTS

# %% [markdown] task="why_no_matrix" points=2
# ## 9 · Slower by count, faster by clock
#
# *10 minutes, 2 points, read by a person.*
#
# Your backward of exercise 7 computes all scores a second time, so it does more operations than one
# that keeps the matrix of weights. The same backward, written as one kernel, is nevertheless faster
# on a GPU. Explain why in four to six sentences, with numbers for one sentence of 4096 words, and for
# 16 heads of 64 channels in bfloat16. Say how many bytes the matrices of weights have, how many bytes
# `q`, `k`, `v` and the output have together, and what a GPU does while it writes and reads the
# matrices. (The L2 cache of an H100 has 50 MB.) Then say for which sentences it would be better to
# keep them.
#
# === BEGIN MARK SCHEME ===
#
# - **The bytes.** The matrices have 16 · 4096 · 4096 · 2 bytes = 512 MiB, more than any cache. `q`,
#   `k`, `v` and the output have 4 · 16 · 4096 · 64 · 2 bytes = 32 MiB. (half a point)
# - **They decide.** Writing and reading the matrices takes longer than computing the scores again,
#   and the tensor cores wait meanwhile. Any true comparison of the two times, or of operations for
#   each byte, is right. (half a point)
# - **Where it turns round.** A matrix grows with T², and the four tensors grow with T · D. So the
#   advantage shrinks with T. If T is about as large as D or smaller, then the matrix is no larger
#   than the tensors, and it may even stay on the chip: then computing it again only costs time.
#   (1 point)
#
# === END MARK SCHEME ===

# %% [markdown]
# *Your answer goes here.*

# %% [markdown]
# ## Done
#
# Use *Kernel → Restart Kernel and Run All Cells* once more, so that you know your notebook works
# from top to bottom, then save it.
