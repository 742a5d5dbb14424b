# ---
# jupyter:
#   kernelspec: {display_name: Python 3, language: python, name: python3}
#   open_the_hood: {title: "Lab 05: An operator of your own", points: 18, cell_seconds: 120, compile: trace}
# ---

# %% [markdown]
# # Lab 05: An operator of your own
#
# Eight exercises and one question, 40 points, about three hours. They follow
# [lesson 05](../../notebooks/05_custom_op.ipynb). You write a softmax as a Triton kernel, its
# backward as another, make an operator of PyTorch out of the two, and put it into MiniGPT.
#
# You need no GPU. `launch(kernel, grid, ...)` runs a kernel where its tensors are: on a CPU in
# Triton's interpreter, one program after another. The interpreter accepts what no GPU could run, so
# some points ask that your kernel also *compiles* for one, an H100 (`sm_90`), which needs none either.
#
# Kernels and operators are tried by a *driver*, a function of `utils/drivers/custom_op.py`, and the
# graded cell uses the same drivers with sizes, strides and dtypes that you have not seen. It hands
# over tensors that are cut from a larger storage full of NaN: whoever reads beside a row will notice,
# and whoever writes there, too.
#
# Parts of an exercise earn their points separately, and no exercise needs the answer to another:
# where one is built from kernels, the driver brings right ones. Stuck? Each holds two hints, folded
# away. Run the next cell, then start.

# %% given="setup"
import torch
import triton
import triton.language as tl

from utils.drivers import custom_op as driver
from utils.expect import expect_close, expect_equal
from utils.launching import launch

# %% [markdown]
# ## 1 · Into tiles
#
# *Easy, 15 minutes, 3 points: one for wide rows, one for narrow ones, one for the ends.*
#
# A block of Triton's has a power of two of lanes, and matrices rarely have as many columns. Plan how
# a matrix of `rows` rows and `columns` columns, with numbers of `itemsize` bytes, is cut into tiles.
# `plan_rows(rows, columns, itemsize)` returns a tuple of four numbers:
#
# - how many programs there must be, so that each row is in one;
# - how many rows a program takes: as many as fit into a tile of 4096 bytes, masked lanes included,
#   and one where not even one fits;
# - the block: how many lanes a row gets, the smallest power of two that is not less than `columns`;
# - how many lanes of all programs together are masked, because they lie beside the row or in a row
#   that does not exist.
#
# There may be no rows at all; there is at least one column.
#
# <details><summary>How do I find the power of two?</summary>
#
# `triton.next_power_of_2(n)`; or double a number until it is large enough.
# </details>
# <details><summary>How many lanes are masked?</summary>
#
# Count all lanes of all programs, then take off those that do hold a number.
# </details>

# %% solution="plan_rows"
def plan_rows(rows: int, columns: int, itemsize: int) -> tuple[int, int, int, int]:
    """Programs, rows of a program, lanes of a row, masked lanes of all programs together."""
    ### BEGIN SOLUTION
    block = triton.next_power_of_2(columns)
    per_program = max(1, 4096 // (block * itemsize))
    programs = triton.cdiv(rows, per_program)
    return programs, per_program, block, programs * per_program * block - rows * columns
    ### END SOLUTION

# %%
expect_equal("the LM head's 600 columns", plan_rows(64, 600, 4), (64, 1, 1024, 64 * 424))
expect_equal("in half precision", plan_rows(65, 600, 2), (33, 2, 1024, 33 * 2 * 1024 - 65 * 600))
expect_equal("64 columns", plan_rows(64, 64, 4), (4, 16, 64, 0))

# %% test="plan_rows" points=3
# Graded
expect_equal("a wide row", plan_rows(3, 3000, 8), (3, 1, 4096, 3 * 1096))
### BEGIN HIDDEN TESTS
verify("plan_rows", plan_rows)
### END HIDDEN TESTS

# %% [markdown]
# ## 2 · A row softmax
#
# *Medium, 40 minutes, 7 points: two for any width, one each for strides, for -inf, for half
# precision, for double precision, and for a kernel that a GPU can run.*
#
# Write a Triton kernel, and `triton_softmax(x, y)`, which launches it. `x` and `y` are matrices of
# the same shape and dtype, and of any strides, not necessarily the same. It writes the softmax of
# each row of `x` into `y`, and nothing anywhere else. What it returns does not matter.
#
# - There is at least one column, and there may be no rows. Numbers may be large, of either sign.
# - A number of `x` may be -inf: it counts nothing. A row of nothing but -inf is NaN, as in torch.
# - float16 and bfloat16 are widened to float32 before anything is computed with them, and rounded
#   once, in the end. float64 is computed in float64.
# - The work is done in the kernel, on `x` and `y` as they are: no operator of torch on either, no
#   copy, and no softmax that is there already, here or in Triton.
# - `launch` launches. The point for a kernel that a GPU can run is earned when what was launched
#   compiles for `sm_90`.
#
# <details><summary>What does a program do?</summary>
#
# It loads its row, with a mask, and what the mask hides must neither win a maximum nor add to a sum:
# `other=` says what stands there. Then maximum, `tl.exp`, sum, quotient, and a store with the same
# mask. Which row is `tl.program_id(0)`.
# </details>
# <details><summary>How do strides and dtypes get in?</summary>
#
# As arguments: `x.stride()` is a pair of numbers, and element (row, column) lies at
# `x_ptr + row * first + column * second`. A dtype such as `tl.float32` is passed as a
# `tl.constexpr`, and `.to(...)` converts. `y_ptr.dtype.element_ty` is what `y` holds.
# </details>

# %% solution="triton_softmax"
@triton.jit
def softmax_kernel(x_ptr, y_ptr, columns, x_row, x_column, y_row, y_column, BLOCK: tl.constexpr, ACC: tl.constexpr):
    """One row of `y` from one row of `x`; the arguments are a proposal."""
    ### BEGIN SOLUTION
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    inside = column < columns
    x = tl.load(x_ptr + row * x_row + column * x_column, mask=inside, other=-float("inf")).to(ACC)
    e = tl.exp(x - tl.max(x, 0))
    y = e / tl.sum(e, 0)
    tl.store(y_ptr + row * y_row + column * y_column, y.to(y_ptr.dtype.element_ty), mask=inside)
    ### END SOLUTION


def triton_softmax(x: torch.Tensor, y: torch.Tensor) -> None:
    """Writes the softmax of each row of `x` into `y`, both (rows, columns)."""
    ### BEGIN SOLUTION
    rows, columns = x.shape
    block = triton.next_power_of_2(columns)
    acc = tl.float64 if x.dtype == torch.float64 else tl.float32
    launch(softmax_kernel, (rows,), x, y, columns, *x.stride(), *y.stride(), BLOCK=block, ACC=acc)
    ### END SOLUTION

# %%
x = driver.cut(torch.tensor([[1.0, 2.0, 3.0, 4.0, 5.0], [900.0, -3.0, 900.0, -float("inf"), 0.0]]))
y = driver.cut(torch.zeros(2, 5), 1, 3)
expect_close("two rows", driver.fill(triton_softmax, x, y)["out"], torch.softmax(x, -1))
expect_equal("beside them", driver.surroundings(y), driver.surroundings(driver.cut(torch.zeros(2, 5), 1, 3)))
small = driver.cut(torch.tensor([[0.1, 0.2, 6.3], [0.3, -0.5, 6.3]]).half(), 1, 2)
small_y = torch.zeros(2, 3).half()
expect_close("half precision", driver.fill(triton_softmax, small, small_y)["out"], torch.softmax(small.float(), -1).half(), rtol=1e-3)

# %%
nothing = driver.cut(torch.full((2, 3), -float("inf"), dtype=torch.float64))
expect_equal("rows of -inf", driver.fill(triton_softmax, nothing, nothing.clone())["out"], torch.softmax(nothing, -1))
expect_equal("an H100 could run it", driver.compiled(triton_softmax, x, y), True)

# %% test="triton_softmax" points=7
# Graded
wide = driver.cut(torch.arange(-130.0, -60.0).reshape(1, 70))
expect_close("70 columns", driver.fill(triton_softmax, wide, wide.clone())["out"], torch.softmax(wide, -1))
### BEGIN HIDDEN TESTS
verify("triton_softmax", triton_softmax)
### END HIDDEN TESTS

# %% [markdown]
# ## 3 · Its backward
#
# *Medium, 30 minutes, 5 points: two for any width, one each for strides, for other dtypes, and for a
# kernel that a GPU can run.*
#
# Of a softmax, `y`, and the gradient of what came after it, `g`, the gradient of the input is, row by
# row,
#
# ```
# dx = y * (g - sum(g * y))
# ```
#
# Write a second kernel, and `softmax_backward(g, y, dx)`, which launches it and writes the gradient
# into `dx`. All three are matrices of one shape and dtype, each with strides of its own: a `g` that
# comes from `y.sum().backward()` is one number, expanded to the whole matrix, with strides of 0.
# For the rest what was said of the softmax holds here: at least one column, maybe no rows; widened
# before it is computed with, rounded once in the end; nothing written beside `dx`; nothing done by
# torch.
#
# <details><summary>What stands beside the row?</summary>
#
# Here it must add nothing to a sum of products. Which number does that?
# </details>
# <details><summary>Where do I get the columns from?</summary>
#
# Not from `g.stride()`. The sum needs a whole row of `g` and of `y`, so one program takes one row of
# both, each found by its own two strides.
# </details>

# %% solution="softmax_backward"
@triton.jit
def backward_kernel(
    g_ptr, y_ptr, dx_ptr, columns, g_row, g_column, y_row, y_column, dx_row, dx_column,
    BLOCK: tl.constexpr, ACC: tl.constexpr,
):
    """One row of `dx` from one row of `g` and of `y`; the arguments are a proposal."""
    ### BEGIN SOLUTION
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    inside = column < columns
    g = tl.load(g_ptr + row * g_row + column * g_column, mask=inside, other=0.0).to(ACC)
    y = tl.load(y_ptr + row * y_row + column * y_column, mask=inside, other=0.0).to(ACC)
    dx = y * (g - tl.sum(g * y, 0))
    place = dx_ptr + row * dx_row + column * dx_column
    tl.store(place, dx.to(dx_ptr.dtype.element_ty), mask=inside)
    ### END SOLUTION


def softmax_backward(g: torch.Tensor, y: torch.Tensor, dx: torch.Tensor) -> None:
    """Writes the gradient of the softmax's input into `dx`, all (rows, columns)."""
    ### BEGIN SOLUTION
    rows, columns = y.shape
    block = triton.next_power_of_2(columns)
    acc = tl.float64 if y.dtype == torch.float64 else tl.float32
    strides = (*g.stride(), *y.stride(), *dx.stride())
    launch(backward_kernel, (rows,), g, y, dx, columns, *strides, BLOCK=block, ACC=acc)
    ### END SOLUTION

# %%
g = driver.cut(torch.tensor([[1.0, -2.0, 3.0], [0.5, 0.0, 1.0]]), 1, 2)
y = driver.cut(torch.tensor([[0.25, 0.25, 0.5], [0.125, 0.125, 0.75]]))
dx = driver.cut(torch.zeros(2, 3))
expect_close("two rows", driver.fill(softmax_backward, g, y, dx)["out"], [[-0.0625, -0.8125, 0.875], [-0.0390625, -0.1015625, 0.140625]])
expect_equal("beside them", driver.surroundings(dx), driver.surroundings(driver.cut(torch.zeros(2, 3))))
expect_equal("an H100 could run it", driver.compiled(softmax_backward, g, y, dx), True)

# %% test="softmax_backward" points=5
# Graded
alike = torch.tensor(2.0).expand(2, 3)
expect_equal("the same everywhere", driver.fill(softmax_backward, alike, y, dx)["out"], torch.zeros(2, 3))
### BEGIN HIDDEN TESTS
verify("softmax_backward", softmax_backward)
### END HIDDEN TESTS

# %% [markdown]
# ## 7 · The time that memory allows
#
# *Easy, 15 minutes, 3 points: one for the forward's bytes, one for the backward's, one for the time.*
#
# No kernel is faster than its memory. Write two functions:
#
# - `bytes_moved(rows, columns, dtype, passes, backward)`: how many bytes go between the chip and its
#   memory. A forward reads a matrix `x`, a backward reads two, `g` and `y`; each is read once in
#   every pass. Either writes one matrix, once. All hold numbers of `dtype`, and what is masked off
#   moves nothing;
# - `least_seconds(moved, elements, backward, bandwidth, flops)`: how long it takes at least to move
#   so many bytes at `bandwidth` bytes a second, while so many elements of a matrix are computed
#   with at `flops` operations a second. A forward takes five operations an element, a backward
#   four. Moving and computing overlap, so the longer of the two decides. It returns a tuple: the
#   seconds, and which it was, `"memory"` or `"compute"`; where both take equally long, `"memory"`.
#
# <details><summary>How many bytes has a number?</summary>
#
# `dtype.itemsize` of a `torch.dtype`.
# </details>
# <details><summary>How many passes are there?</summary>
#
# One where a row fits on the chip, which is what a fused kernel is for. Three where maximum, sum and
# quotient each read the row anew: three times read, and still written once.
# </details>

# %% solution="roofline"
def bytes_moved(rows: int, columns: int, dtype: torch.dtype, passes: int, backward: bool) -> int:
    """Bytes between chip and memory, for a softmax or its backward."""
    ### BEGIN SOLUTION
    read = 2 if backward else 1
    return (passes * read + 1) * rows * columns * dtype.itemsize
    ### END SOLUTION


def least_seconds(moved: int, elements: int, backward: bool, bandwidth: float, flops: float) -> tuple[float, str]:
    """The seconds that moving and computing take at least, and which of the two decides."""
    ### BEGIN SOLUTION
    memory = moved / bandwidth
    compute = (4 if backward else 5) * elements / flops
    return max(memory, compute), "memory" if memory >= compute else "compute"
    ### END SOLUTION

# %%
expect_equal("the LM head's softmax", bytes_moved(64, 600, torch.float32, 1, False), 307_200)
expect_equal("in three passes", bytes_moved(64, 600, torch.bfloat16, 3, False), 307_200)
expect_close("on an H100", least_seconds(307_200, 38_400, False, 3.35e12, 67e12)[0], 9.170149e-08)
expect_equal("what decides", least_seconds(307_200, 38_400, False, 3.35e12, 67e12)[1], "memory")
expect_equal("a slow calculator", least_seconds(8000, 1000, False, 1e9, 1e8), (5e-05, "compute"))

# %% test="roofline" points=3
# Graded
expect_equal("its backward", bytes_moved(64, 600, torch.float32, 1, True), 460_800)
### BEGIN HIDDEN TESTS
verify("roofline", bytes_moved=bytes_moved, least_seconds=least_seconds)
### END HIDDEN TESTS

# %% [markdown]
# ## Done
#
# Use *Kernel → Restart Kernel and Run All Cells* once more, so that you know your notebook works
# from top to bottom, then save it.
