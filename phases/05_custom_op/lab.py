# ---
# jupyter:
#   kernelspec: {display_name: Python 3, language: python, name: python3}
#   open_the_hood: {title: "Lab 05: An operator of your own", points: 44, cell_seconds: 120, compile: trace}
# ---

# %% [markdown]
# # Lab 05: An operator of your own
#
# Nine exercises and one question, 44 points, about three hours without the *further* exercises 4, 6
# and 10, which take an hour and a half more. A class may leave those out, or count them as a bonus.
# Otherwise all points count. The lab follows [lesson 05](../../notebooks/05_custom_op.ipynb). You
# write a softmax as a Triton kernel, and its backward as another kernel. Then you make a PyTorch
# operator out of the two, and put it into MiniGPT. At the end you may write the softmax once in
# C++.
#
# You need no GPU. `launch(kernel, grid, ...)` runs a kernel on the device of its tensors. On a CPU
# it uses Triton's interpreter, which runs one program after another. The interpreter accepts code
# that no GPU could run, so for some points your kernel must also *compile* for a GPU, an H100
# (`sm_90`). That needs no GPU either.
#
# A *driver*, a function of `utils/drivers/custom_op.py`, tries your kernels and operators. Each
# graded cell begins with `check(...)`, which gives the same verdict as grading. It uses the same
# drivers with sizes, strides and dtypes that you have not seen, and with new ones each time. A
# driver passes tensors that are cut from a larger storage full of NaN, so it notices reading or
# writing beside a row. Some facts are known only to the process that runs your code, such as
# whether a kernel compiles. In such a case “your own process says” it, and the grader believes
# that.
#
# Parts of an exercise earn their points separately, and no exercise needs the answer to another
# exercise. If an exercise needs kernels, the driver brings right ones. Are you stuck? Each exercise
# has two hints, folded away. Run the next cell, then start.

# %% given="setup"
import math

import torch
import triton
import triton.language as tl

from hood.learner.check import check
from utils.drivers import cpp_operator as cpp_driver
from utils.drivers import custom_op as driver
from utils.instruments.cpp_library import load_cpp
from utils.instruments.launching import launch
from utils.instruments.toolchain import inductor_lacks
from utils.minigpt import MiniGPT, MiniGPTConfig
from utils.notebook.expect import expect_close, expect_equal

# %% [markdown]
# ## 1 · Into tiles
#
# *Easy, 15 minutes, 3 points: one for wide rows, one for narrow rows, one for the ends.*
# From the lesson: [One program, one row](../../notebooks/05_custom_op.ipynb#cell-id=one-program-one-row).
#
# The number of lanes in a Triton block is a power of two, and matrices rarely have as many columns.
# In the lesson each program took one row. If rows are narrow, a program may take a *tile*: several
# rows, one below the other, each as wide as a block. Plan how a matrix of `rows` rows and `columns`
# columns, with numbers of `itemsize` bytes, is cut into tiles. `plan_rows(rows, columns, itemsize)`
# returns a tuple of four numbers:
#
# - how many programs there must be, so that each row is in one program;
# - how many rows a program takes: as many as fit into a tile of 4096 bytes, masked lanes included,
#   but at least one;
# - the block: how many lanes a row gets, the smallest power of two that is not less than `columns`;
# - how many lanes of all programs together are masked, because they are beside the row or in a row
#   that does not exist.
#
# There may be no rows at all, but there is at least one column.
#
# <details><summary>How do I find the power of two?</summary>
#
# Use `triton.next_power_of_2(n)`, or double a number until it is large enough.
# </details>
# <details><summary>How many lanes are masked?</summary>
#
# Count all lanes of all programs, then subtract the lanes that have a number.
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
expect_equal("fewer rows than fit", plan_rows(3, 5, 4), (1, 128, 8, 128 * 8 - 3 * 5))
expect_equal("no rows", plan_rows(0, 5, 4), (0, 128, 8, 0))

# %% test="plan_rows" points=3
# Graded
check("plan_rows")
expect_equal("a wide row", plan_rows(3, 3000, 8), (3, 1, 4096, 3 * 1096))
### BEGIN HIDDEN TESTS
verify("plan_rows", plan_rows)
### END HIDDEN TESTS

# %% [markdown]
# ## 2 · A row softmax
#
# *Medium, 40 minutes, 7 points: two for any width, one each for strides, for -inf, for half
# precision, for double precision, and for a kernel that a GPU can run.*
# From the lesson: [Masks, and what lies beside the row](../../notebooks/05_custom_op.ipynb#cell-id=masks-and-what-lies-beside-the-row).
#
# Write a Triton kernel, and `triton_softmax(x, y)`, which launches it. `x` and `y` are matrices of
# the same shape and dtype, and of any strides, which may be different. The function writes the
# softmax of each row of `x` into `y`, and nothing anywhere else. Its return value does not matter.
#
# - There is at least one column, and there may be no rows. Numbers may be large, of either sign.
# - A number of `x` may be -inf: its softmax is 0. A row of nothing but -inf must give NaN, as in
#   torch.
# - float16 and bfloat16 must be widened to float32 before any computation, and rounded once, at the
#   end. float64 must be computed in float64.
# - The kernel must do the work, on `x` and `y` as they are: use no operator of torch on `x` or `y`,
#   no copy, and no existing softmax, neither the course's nor Triton's. The grader reads your code
#   to see that, so a name that is put together only at run time, as in `getattr(tl, name)`, is
#   refused.
# - Launch with `launch`, which takes the result of `@triton.jit`. `kernel[grid](...)` would look
#   for a GPU. The point for a kernel that a GPU can run needs a launched kernel that compiles for
#   `sm_90`, and your own process says whether it does.
#
# <details><summary>What does a program do?</summary>
#
# It loads its row, with a mask. A hidden lane must not win a maximum and must not add to a sum, so
# `other=` gives it a value. Then come the maximum, `tl.exp`, the sum, the quotient, and a store
# with the same mask. The row's number is `tl.program_id(0)`.
# </details>
# <details><summary>How do strides and dtypes get in?</summary>
#
# They are arguments. `x.stride()` is a pair of numbers, and element (row, column) is at `x_ptr +
# row * first + column * second`. A dtype such as `tl.float32` is passed as a `tl.constexpr`, and
# `.to(...)` converts. `y_ptr.dtype.element_ty` is the dtype of `y`.
# </details>

# %% solution="triton_softmax"
@triton.jit
def softmax_kernel(
    x_ptr, y_ptr, columns, x_row, x_column, y_row, y_column, BLOCK: tl.constexpr, ACC: tl.constexpr
):
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
expect_equal(
    "beside them", driver.surroundings(y), driver.surroundings(driver.cut(torch.zeros(2, 5), 1, 3))
)
small = driver.cut(
    torch.tensor([[-0.2, 0.5, 1.5, 1.8, 0.6], [6.3, 6.3, 6.3, 6.3, 6.3]]).half(), 1, 2
)
small_y = torch.zeros(2, 5).half()
expect_equal(
    "half precision",
    driver.fill(triton_softmax, small, small_y)["out"],
    torch.softmax(small.float(), -1).half(),
)
expect_close(
    "bfloat16",
    driver.fill(triton_softmax, small.bfloat16(), small_y.bfloat16())["out"],
    torch.softmax(small.float(), -1).bfloat16(),
)

# %%
nothing = driver.cut(torch.full((2, 3), -float("inf"), dtype=torch.float64))
expect_equal(
    "rows of -inf",
    driver.fill(triton_softmax, nothing, nothing.clone())["out"],
    torch.softmax(nothing, -1),
)
exact = driver.cut(torch.tensor([[0.1, 0.2, 0.7]], dtype=torch.float64))
expect_close(
    "double precision",
    driver.fill(triton_softmax, exact, exact.clone())["out"],
    torch.softmax(exact, -1),
    rtol=1e-12,
    atol=0,
)
alike = torch.tensor([[1.0, 2.0, 0.0]]).expand(2, 3)
expect_close(
    "one row, expanded to two",
    driver.fill(triton_softmax, alike, torch.zeros(2, 3))["out"],
    torch.softmax(alike, -1),
)
expect_equal("no rows", driver.fill(triton_softmax, x[:0], y[:0])["out"], torch.zeros(0, 5))
late = torch.full((1, 1100), -float("inf"))
late[:, 1050:] = 0.0
expect_close(
    "1100 columns",
    driver.fill(triton_softmax, late, torch.zeros(1, 1100))["out"],
    torch.softmax(late, -1),
)
expect_equal("an H100 could run it", driver.compiled(triton_softmax, x, y), True)

# %% test="triton_softmax" points=7
# Graded
check("triton_softmax")
wide = driver.cut(torch.arange(-230.0, -160.0).reshape(1, 70))
expect_close(
    "70 columns", driver.fill(triton_softmax, wide, wide.clone())["out"], torch.softmax(wide, -1)
)
### BEGIN HIDDEN TESTS
verify("triton_softmax", triton_softmax)
### END HIDDEN TESTS

# %% [markdown]
# ## 3 · Its backward
#
# *Medium, 30 minutes, 5 points: two for any width, one each for strides, for other dtypes, and for
# a kernel that a GPU can run.*
# From the lesson: [The backward is a kernel, too](../../notebooks/05_custom_op.ipynb#cell-id=the-backward-is-a-kernel-too).
#
# Let `y` be the result of a softmax, and `g` the gradient with respect to `y`. This is the gradient
# of the input, row by row:
#
# ```
# dx = y * (g - sum(g * y))
# ```
#
# Write a second kernel, and `softmax_backward(g, y, dx)`, which launches it and writes the gradient
# into `dx`. All three are matrices of the same shape and dtype, each with its own strides: a `g`
# that comes from `y.sum().backward()` is one number, expanded to the whole matrix, with strides of
# 0. Otherwise the rules for the softmax apply here too. There is at least one column, and there are
# maybe no rows. Numbers are widened before any computation, and rounded once at the end. Nothing is
# written beside `dx`, and torch does none of the work. Your own process says whether the kernel
# compiles.
#
# <details><summary>What stands beside the row?</summary>
#
# Here a hidden lane must add nothing to a sum of products. Which number does that?
# </details>
# <details><summary>Where do I get the columns from?</summary>
#
# Don't take them from `g.stride()`. The sum needs a whole row of `g` and of `y`, so one program
# takes one row of each matrix. It finds that row by the matrix's own two strides.
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
y = driver.cut(torch.tensor([[0.25, 0.25, 0.5], [0.125, 0.125, 0.75]]), 7, 2)
dx = driver.cut(torch.zeros(2, 3), 2, 7)
expect_close(
    "two rows",
    driver.fill(softmax_backward, g, y, dx)["out"],
    [[-0.0625, -0.8125, 0.875], [-0.0390625, -0.1015625, 0.140625]],
)
expect_equal(
    "beside them", driver.surroundings(dx), driver.surroundings(driver.cut(torch.zeros(2, 3), 2, 7))
)
expect_equal("an H100 could run it", driver.compiled(softmax_backward, g, y, dx), True)

# %%
half_g, half_y = torch.tensor([[[2.9, -2.0, -3.0, -1.0]], [[0.05, 0.15, 0.4, 0.4]]]).half()
came = driver.fill(softmax_backward, half_g, half_y, torch.zeros(1, 4).half())
expect_close(
    "half precision",
    came["out"],
    torch.tensor([[0.2327, -0.0368, -0.498, 0.3018]]).half(),
    rtol=1e-4,
    atol=0,
)
expect_equal("g and y are as they were", came["kept"], True)
exact = torch.tensor([[0.1, 0.2, 0.7]], dtype=torch.float64)
expect_close(
    "double precision",
    driver.fill(softmax_backward, exact, exact, exact.clone())["out"],
    exact * (exact - 0.54),
    rtol=1e-12,
    atol=0,
)
expect_equal(
    "no rows", driver.fill(softmax_backward, g[:0], y[:0], dx[:0])["out"], torch.zeros(0, 3)
)
even = torch.full((1, 1100), 1 / 1100)
expect_close(
    "1100 columns",
    driver.fill(softmax_backward, torch.ones(1, 1100), even, torch.ones(1, 1100))["out"],
    torch.zeros(1, 1100),
)

# %% test="softmax_backward" points=5
# Graded
check("softmax_backward")
y = driver.cut(torch.tensor([[0.25, 0.25, 0.5], [0.125, 0.125, 0.75]]), 7, 2)
dx = driver.cut(torch.zeros(2, 3), 2, 7)
alike = torch.tensor(2.0).expand(2, 3)
expect_equal(
    "the same everywhere", driver.fill(softmax_backward, alike, y, dx)["out"], torch.zeros(2, 3)
)
### BEGIN HIDDEN TESTS
verify("softmax_backward", softmax_backward)
### END HIDDEN TESTS

# %% [markdown]
# ## 4 · Read the PTX
#
# *Further, medium, 25 minutes, 4 points: one for loads and stores, two for their widths, one for
# reductions.*
# From the lesson: [The same kernel as PTX](../../notebooks/05_custom_op.ipynb#cell-id=the-same-kernel-as-ptx).
#
# The compiler's output for your kernel is text, so a program can read it. A line of PTX is an
# instruction, with a guard before it, such as `@%p1`, if it is masked:
#
# ```
# @%p1 ld.global.v4.b32 { %r1, %r2, %r3, %r4 }, [ %rd1 + 0 ];
# ld.param.b64 %rd9, [softmax_kernel_param_0];
# @%p2 st.global.L1::evict_first.b16 [ %rd5 + 0 ], { %rs7 };
# shfl.sync.bfly.b32 %r40, %r39, 16, 31, -1;
# bar.sync 0;
# ```
#
# An instruction's name is made of parts, with dots between them. `ld` and `st` load and store.
# `global` is the GPU's memory, and `shared` and `param` are not. Then there may be words about
# caches. If one thread moves two or four numbers at once, `v2` or `v4` comes next. The last part is
# the type of one number: `b32`, `f32`, `u32` and `s32` all have 32 bits. `shfl` passes a number
# from thread to thread within a warp, and all warps of a program wait for one another at the
# barrier `bar.sync`: a sum over a row needs both. Write three functions that take the text of one
# kernel:
#
# - `accesses(ptx)`: how many instructions load from global memory, and how many store into it, as a
#   tuple of two numbers;
# - `widths(ptx, kind)`: the bytes that one thread moves with each load (if `kind` is `"ld"`) or
#   with each store (if `kind` is `"st"`), as a list in the order of the text: 16 for the first line
#   above;
# - `reductions(ptx)`: how many instructions are a `shfl`, and how many a `bar.sync`, as a tuple.
#
# Not every line is an instruction: the text also has labels, declarations, and comments.
#
# <details><summary>How do I find an instruction's name?</summary>
#
# Split the line at spaces and tabs. The name is the first word. If the first word begins with `@`,
# the name is the second word.
# </details>
# <details><summary>How do I get the bytes?</summary>
#
# Split the name at its dots. The last part is a letter and then the bits of one number, and another
# part may say how many numbers there are.
# </details>

# %% solution="read_ptx"
def accesses(ptx: str) -> tuple[int, int]:
    """How many instructions load from global memory, and how many store into it."""
    ### BEGIN SOLUTION
    return len(widths(ptx, "ld")), len(widths(ptx, "st"))
    ### END SOLUTION


def widths(ptx: str, kind: str) -> list[int]:
    """The bytes that one thread moves with each load, or each store, of global memory."""
    ### BEGIN SOLUTION
    found = []
    for line in ptx.splitlines():
        words = [word for word in line.split() if not word.startswith("@")]
        if words and words[0].startswith(f"{kind}.global."):
            parts = words[0].split(".")
            numbers = 4 if "v4" in parts else 2 if "v2" in parts else 1
            found.append(numbers * int(parts[-1][1:]) // 8)
    return found
    ### END SOLUTION


def reductions(ptx: str) -> tuple[int, int]:
    """How many instructions hand numbers between threads, and how many are barriers."""
    ### BEGIN SOLUTION
    words = [word for line in ptx.splitlines() for word in line.split("//")[0].split()]
    shuffles = [word for word in words if word.startswith("shfl.")]
    return len(shuffles), words.count("bar.sync")
    ### END SOLUTION

# %%
narrow = driver.compile_softmax(600)
wide = driver.compile_softmax(4096)
expect_equal("a load, guarded", accesses("@%p1 ld.global.b32 %r1, [%rd1];"), (1, 0))
expect_equal(
    "a word on caches",
    widths("@%p2 st.global.L1::evict_first.b16 [ %rd5 + 0 ], { %rs7 };", "st"),
    [2],
)
lines = """// ld.global.b32 in a comment, and bar.sync
$L__BB0_1:
ld.global.u8 %rs1, [%rd1];
@!%p3 ld.global.L1::evict_last.v2.f64 {%fd1, %fd2}, [%rd1+16];
st.shared.b32 [%r9], %r1;
bar.sync 0;
bar.arrive 2, 64;
@%p1 shfl.sync.down.b32 %r6, %r5, 2, 31, -1;
"""
expect_equal("nine lines: loads and stores", accesses(lines), (2, 0))
expect_equal("their widths", widths(lines, "ld"), [1, 16])
expect_equal("shuffles and barriers", reductions(lines), (1, 1))
expect_equal("600 columns: loads and stores", accesses(narrow), (8, 8))
expect_equal("4096 columns: loads and stores", accesses(wide), (8, 8))
expect_equal("600 columns, one by one", widths(narrow, "ld"), [4] * 8)
expect_equal("4096 columns, four by four", widths(wide, "ld"), [16] * 8)
expect_equal(
    "a maximum and a sum: five steps in a warp, two among four", reductions(narrow), (14, 5)
)
print(*[line for line in wide.splitlines() if ".global." in line], sep="\n")

# %% test="read_ptx" points=4
# Graded
check("read_ptx")
one_warp = driver.compile_softmax(640, torch.bfloat16, num_warps=1)
expect_equal(
    "bfloat16, in one warp", (widths(one_warp, "st"), reductions(one_warp)), ([16] * 4, (10, 0))
)
### BEGIN HIDDEN TESTS
verify("read_ptx", accesses=accesses, widths=widths, reductions=reductions)
### END HIDDEN TESTS

# %% [markdown]
# ## 5 · An operator of your own
#
# *Hard, 35 minutes, 5 points: one each for what it computes, for its gradient, for its fake, for
# its schema and opcheck, and for one graph under torch.compile.*
# From the lesson: [What PyTorch asks of an operator](../../notebooks/05_custom_op.ipynb#cell-id=what-pytorch-asks-of-an-operator).
#
# A kernel is not an operator yet. PyTorch doesn't know its inputs, its outputs and its gradient,
# and a compiler doesn't know that it need not look inside. Write `make_softmax(name, forward,
# backward)`, which registers all this. `name` is a string such as `"lab05::softmax_7"`. `forward`
# and `backward` are a correct pair of functions that launch kernels. Another call gets another name
# and another pair:
#
# - `forward(x)` takes a tensor of one dimension or more, of any strides, and returns the result, a new
#   contiguous tensor;
# - `backward(g, y)` takes the gradient of the result and the result, and returns the gradient of `x`,
#   a new contiguous tensor.
#
# They may compute a softmax with a bias that you don't know, `softmax(x + b)`, and `backward` may
# multiply its result by a factor, so you must call them, and nothing in their place. Register two
# operators with `torch.library`: `name` takes a tensor and returns a tensor, and `name` followed by
# `_backward` takes two tensors, `g` and `y`, and returns a tensor. Neither operator writes into its
# arguments. Each must have a fake: a function that returns a tensor with the shape, strides, dtype
# and device of the result, and computes nothing, because a fake tensor has no numbers. And the
# first operator must have the formula of its gradient. The return value of your function does not
# matter, because the check looks the operators up by name.
#
# Two of opcheck's tests, `test_schema` and `test_autograd_registration`, belong to the point for
# the schema. The other two tests look for a fake that lies and for a kernel that is launched while
# a step is traced. Such a fault costs the point for the fake or the point for one graph. Your own
# process says whether opcheck passes, and into how many graphs `torch.compile` cuts a function that
# calls your operator. The computed numbers count just as much.
#
# <details><summary>Where do I start?</summary>
#
# Start with `torch.library.custom_op`. As a decorator it reads the schema from the function's
# annotations, and returns an object with `register_fake` and `register_autograd`.
# `register_autograd` takes the formula, and as `setup_context=` a function that saves what the
# formula needs. torch calls this function with arguments by name, so its parameters must be called
# `ctx`, `inputs` and `output`.
# </details>
# <details><summary>It works, and the fake or one graph is refused</summary>
#
# A compiler follows a step on fake tensors, forward and backward. So a fake must not launch a
# kernel, and autograd's formula must not launch one either. And if the kernel's result is
# contiguous, the fake must not promise the input's strides.
# </details>

# %% solution="make_softmax"
def make_softmax(name: str, forward, backward) -> None:
    """Registers the operator `name`, and the one of its gradient, `name` + "_backward"."""
    ### BEGIN SOLUTION
    @torch.library.custom_op(name, mutates_args=())
    def there(x: torch.Tensor) -> torch.Tensor:
        return forward(x)

    @torch.library.custom_op(f"{name}_backward", mutates_args=())
    def back(g: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return backward(g, y)

    @there.register_fake
    def _(x):
        return torch.empty(x.shape, dtype=x.dtype, device=x.device)

    @back.register_fake
    def _(g, y):
        return torch.empty(y.shape, dtype=y.dtype, device=y.device)

    def keep(ctx, inputs, output):
        ctx.save_for_backward(output)

    def vjp(ctx, g):
        (y,) = ctx.saved_tensors
        return back(g, y)

    there.register_autograd(vjp, setup_context=keep)
    ### END SOLUTION

# %%
x, g = (
    torch.tensor([[1.0, 2.0], [0.0, 5.0], [-3.0, 1.0]]).T,
    torch.tensor([[1.0, 0.0, 2.0], [0.0, 1.0, 0.0]]),
)
came = driver.run_operator(make_softmax, x, g, 0.5)
expect_close("softmax(x + b)", came["output"], torch.softmax(x + torch.tensor([0.0, 0.5, 1.0]), -1))
expect_close(
    "its gradient", came["gradient"], [[0.2029, -0.2431, 0.0402], [-0.0269, 0.0537, -0.0269]]
)
expect_close(
    "a backward that gives twice as much",
    driver.run_operator(make_softmax, x, g, 0.5, 2.0)["gradient"],
    2 * came["gradient"],
)
fake = [((2, 3), (1, 2), torch.float64, "cpu"), ((4, 2, 3), (6, 3, 1), torch.float16, "cuda")]
right = [((2, 3), (3, 1), torch.float64, "cpu"), ((4, 2, 3), (6, 3, 1), torch.float16, "cuda")]
expect_equal("its fake", driver.fakes(make_softmax, fake), right)
expect_equal("its backward's", driver.fakes(make_softmax, fake, backward=True), right)
expect_equal("opcheck", set(driver.opcheck(make_softmax, x).values()), {"SUCCESS"})

# %% test="make_softmax" points=5
# Graded
check("make_softmax")
x = torch.tensor([[1.0, 2.0], [0.0, 5.0], [-3.0, 1.0]]).T
came = driver.trace_operator(make_softmax, x)
expect_equal("one graph", came["graphs"], 1)
expect_equal("a gradient, traced", came["gradient"], ((2, 3), (3, 1)))
schemas = driver.schema_of(make_softmax).values()
expect_equal(
    "what the two take", [one["arguments"] for one in schemas], [["Tensor"], ["Tensor", "Tensor"]]
)
expect_equal("whether they write into it", [one["writes"] for one in schemas], [False, False])
### BEGIN HIDDEN TESTS
verify("make_softmax", make_softmax)
### END HIDDEN TESTS

# %% [markdown]
# ## 6 · Differentiable twice
#
# *Further, hard, 30 minutes, 4 points: one for the gradient, one for its gradient with respect to
# g, two for its gradient with respect to x.*
# From the lesson: [Proofs, and what each does not see](../../notebooks/05_custom_op.ipynb#cell-id=proofs-and-what-each-does-not-see).
#
# A gradient that is computed with `create_graph=True` can be differentiated again, as for a penalty
# on gradients, a curvature, or `gradgradcheck`. Then the backward itself has to be differentiated,
# and autograd must know how. Write `make_twice(name, forward, backward)`, which does the same as
# `make_softmax`, and also registers a gradient for the operator of the backward. The output of that
# operator is `dx = y * (g - sum(g * y))`, row by row. Given `v`, the gradient with respect to `dx`,
# its formula must return the gradients with respect to `g` and `y`. From `y`, autograd finds the
# way to `x` by itself, with the formula of the first operator.
#
# Fakes are not required here. In the graded cell, the call after `check` lets `gradgradcheck` prove
# your formula.
#
# <details><summary>The gradient of g</summary>
#
# `dx` is linear in `g`, and the matrix in between is symmetric. So `v` becomes the gradient of `g`
# in the same way in which `g` becomes `dx`.
# </details>
# <details><summary>The gradient of y</summary>
#
# `y` is in two places, outside the sum and inside it, and each place gives a term. On paper, write
# down the sum of all `v * dx` of one row, and differentiate it by one `y`.
# </details>

# %% solution="make_twice"
def make_twice(name: str, forward, backward) -> None:
    """Registers the operators of a softmax that can be differentiated twice."""
    ### BEGIN SOLUTION
    @torch.library.custom_op(name, mutates_args=())
    def there(x: torch.Tensor) -> torch.Tensor:
        return forward(x)

    @torch.library.custom_op(f"{name}_backward", mutates_args=())
    def back(g: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return backward(g, y)

    def keep_y(ctx, inputs, output):
        ctx.save_for_backward(output)

    def vjp(ctx, g):
        (y,) = ctx.saved_tensors
        return back(g, y)

    def keep_both(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    def vjp_of_back(ctx, v):
        g, y = ctx.saved_tensors
        of_g = back(v, y)
        of_y = v * (g - (g * y).sum(-1, keepdim=True)) - g * (v * y).sum(-1, keepdim=True)
        return of_g, of_y

    there.register_autograd(vjp, setup_context=keep_y)
    back.register_autograd(vjp_of_back, setup_context=keep_both)
    ### END SOLUTION

# %%
x, g = (
    torch.tensor([[0.0, 1.0, -1.0], [2.0, 0.0, 1.0]]),
    torch.tensor([[1.0, 0.0, 0.5], [0.0, 2.0, -1.0]]),
)
came = driver.run_twice(make_twice, x, g, torch.tensor([[0.0, 1.0, 2.0], [1.0, -1.0, 0.0]]))
expect_close(
    "the gradient", came["gradient"], [[0.1738, -0.1927, 0.0189], [0.0430, 0.1859, -0.2289]]
)
expect_close("of g", came["of_g"], [[-0.2069, 0.1029, 0.1040], [0.2826, -0.1418, -0.1408]])
expect_close("of x", came["of_x"], [[-0.1090, 0.0732, 0.0358], [0.1133, -0.2799, 0.1666]])

# %% test="make_twice" points=4
# Graded
check("make_twice")
x = torch.tensor([[0.0, 1.0, -1.0], [2.0, 0.0, 1.0]])
expect_equal("gradgradcheck", driver.gradgradcheck(make_twice, x), True)
### BEGIN HIDDEN TESTS
verify("make_twice", make_twice)
### END HIDDEN TESTS

# %% [markdown]
# ## 7 · The time that memory allows
#
# *Easy, 15 minutes, 3 points: one for the forward's bytes, one for the backward's bytes, one for
# the time.*
# From the lesson: [How fast can it be](../../notebooks/05_custom_op.ipynb#cell-id=how-fast-can-it-be).
#
# No kernel is faster than its memory. Write two functions:
#
# - `bytes_moved(rows, columns, dtype, passes, backward)`: how many bytes go between the chip and
#   its memory. A forward reads one matrix, `x`, and a backward reads two, `g` and `y`. Each is read
#   once in every pass. Both write one matrix, once. All numbers have the type `dtype`, and masked
#   lanes move nothing;
# - `least_seconds(moved, elements, backward, bandwidth, flops)`: how long it takes at least to move
#   `moved` bytes at `bandwidth` bytes a second, while `elements` numbers are computed at `flops`
#   operations a second. A forward takes five operations an element, and a backward takes four.
#   Moving and computing overlap, so the longer of the two times decides. It returns a tuple of the
#   seconds and of the word for the longer time, `"memory"` or `"compute"`. If both take equally
#   long, the word is `"memory"`.
#
# <details><summary>How many bytes has a number?</summary>
#
# It has `dtype.itemsize` bytes.
# </details>
# <details><summary>How many passes are there?</summary>
#
# If a row fits on the chip, as in a fused kernel, there is one pass. If maximum, sum and quotient
# each read the row again, there are three. Then the row is read three times, and still written
# once.
# </details>

# %% solution="roofline"
def bytes_moved(rows: int, columns: int, dtype: torch.dtype, passes: int, backward: bool) -> int:
    """Bytes between chip and memory, for a softmax or its backward."""
    ### BEGIN SOLUTION
    read = 2 if backward else 1
    return (passes * read + 1) * rows * columns * dtype.itemsize
    ### END SOLUTION


def least_seconds(
    moved: int, elements: int, backward: bool, bandwidth: float, flops: float
) -> tuple[float, str]:
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
check("roofline")
expect_equal("its backward", bytes_moved(64, 600, torch.float32, 1, True), 460_800)
expect_equal("a backward in two passes, float64", bytes_moved(3, 4, torch.float64, 2, True), 480)
expect_equal(
    "a backward that computes for longer",
    least_seconds(8000, 1000, True, 1e9, 4e8),
    (1e-05, "compute"),
)
expect_equal("equally long", least_seconds(8000, 1000, False, 8e9, 5e9), (1e-06, "memory"))
### BEGIN HIDDEN TESTS
verify("roofline", bytes_moved=bytes_moved, least_seconds=least_seconds)
### END HIDDEN TESTS

# %% [markdown]
# ## 8 · Into MiniGPT
#
# *Hard, 30 minutes, 6 points: one each for the head, the attention, the gradients (which need both
# of them), for leaving everything else alone, for one graph, and for the same logits on a GPU.*
# From the lesson: [What PyTorch asks of an operator](../../notebooks/05_custom_op.ipynb#cell-id=what-pytorch-asks-of-an-operator).
#
# MiniGPT calls a softmax in two places. Its head turns logits into probabilities with
# `model.softmax`, an attribute that you can set in one line. And the attention of each block,
# `model.blocks[i].attention`, has a module `pattern`. This `AttentionPattern` turns queries and
# keys into attention weights, with torch's softmax inside. Read it in `utils/minigpt/model.py`,
# then write `swap_softmax(model, softmax)`. It must change the given model so that its head and all
# its blocks use `softmax`, a function of one tensor that works on the last dimension. `softmax`
# does no masking.
#
# Nothing else may change: not the parameters, which must stay the same objects, not their names in
# the state dict, and no other model, made before or later.
#
# The check passes a softmax that is sharper than torch's softmax, so the numbers show where it is
# used. For `torch.compile` and for the GPU, it passes the course's own Triton operator. Your own
# process says into how many graphs the model is cut. The last point needs a GPU, or the record of a
# GPU. If there is no GPU and no record, nobody can earn it, and 5 of 6 points is the most.
#
# <details><summary>How do I change one module and no other?</summary>
#
# Put another module in its place, `block.attention.pattern = ...`, or give this one object its own
# `forward`. A change of the class affects every model.
# </details>
# <details><summary>What does AttentionPattern do, besides?</summary>
#
# Three things come before its softmax: a product, a scale and a mask. Your softmax gets rows with
# -inf in the places of the future.
# </details>

# %% solution="swap_softmax"
def swap_softmax(model: MiniGPT, softmax) -> None:
    """Lets the head and the attention of this model use `softmax`."""
    ### BEGIN SOLUTION
    class Pattern(torch.nn.Module):
        def forward(self, q, k):
            scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
            length = q.shape[-2]
            future = torch.ones(length, length, dtype=torch.bool, device=q.device).triu(diagonal=1)
            return softmax(scores.masked_fill(future, -math.inf))

    model.softmax = softmax
    for block in model.blocks:
        block.attention.pattern = Pattern()
    ### END SOLUTION

# %%
small, tokens = MiniGPTConfig(9, 8, 2, 2, 12, 6), torch.tensor([[3, 1, 4, 1], [5, 0, 2, 6]])
came = driver.swap(swap_softmax, small, 0, tokens)
expect_close("a row of the logits", came["logits"][1, 3, :4], [0.7115, 1.6394, -0.5825, 0.6046])
expect_close(
    "the same row, as probabilities",
    came["probabilities"][1, 3],
    torch.softmax(1.5 * came["logits"][1, 3], -1),
)
expect_equal("the same parameters", came["parameters"], True)
expect_equal("under the same names", came["names"], list(MiniGPT(small).state_dict()))
expect_equal(
    "other models, made before and later",
    [torch.equal(a, b) for a, b in zip(came["others"][:2], came["others"][2:])],
    [True, True],
)
expect_close(
    "their logits are torch's", came["others"][0][1, 3, :4], [0.7114, 1.6481, -0.6029, 0.5979]
)

# %% test="swap_softmax" points=6
# Graded
check("swap_softmax")
small, tokens = MiniGPTConfig(9, 8, 2, 2, 12, 6), torch.tensor([[3, 1, 4, 1], [5, 0, 2, 6]])
expect_equal("one graph", driver.compiled_swapped(swap_softmax, small, tokens)["graphs"], 1)
### BEGIN HIDDEN TESTS
verify("swap_softmax", swap_softmax)
### END HIDDEN TESTS

# %% [markdown] task="why_wide" points=3
# ## 9 · 600 and 4096
#
# *10 minutes, 3 points, read by a person.*
#
# The PTX of your softmax, for contiguous float32 matrices and four warps, loads 4096 columns with
#
# ```
# ld.global.v4.b32 { %r1, %r2, %r3, %r4 }, [ %rd1 + 0 ];
# ```
#
# and 600 columns with `ld.global.b32`, one number at a time, although 600 is a multiple of four.
# Explain this in five to eight sentences to somebody who has written the kernel. Say what a wide
# load requires of an address, and what the compiler knows about the address of a row if the width
# and the strides arrive only at run time. Say why 600 does not fulfil the condition, and give one
# way in which the 600 columns get wide loads all the same. And say whether you expect the kernel to
# be four times as fast then, and why.
#
# === BEGIN MARK SCHEME ===
#
# One point each:
#
# - **What is known.** A load of 16 bytes needs an address that is a multiple of 16 bytes. A row
#   begins at base + row × stride. The compiler doesn't see the stride. It only knows whether 16
#   divides it (or whether it is 1), because Triton checks this at the launch. So the compiler knows
#   that a stride of 4096 keeps each row aligned.
# - **600, and what to do.** 600 = 16 × 37 + 8, so the compiler knows nothing about the stride or
#   about the mask's end. It must assume the worst, and loads one number at a time. Any one of these
#   is right: width and strides as `tl.constexpr`; the stride passed as a number of groups of 8,
#   multiplied in the kernel; a row stride padded to 608 or 640 together with a width that is known;
#   `tl.multiple_of`.
# - **How much faster.** The kernel is not four times as fast, because the bytes are the same, and
#   memory decides the time. There are fewer instructions for the same bytes, but the single loads
#   of neighbouring threads already form whole memory transactions. Wide loads help only if the
#   number of instructions, or of requests under way, was a limit.
#
# === END MARK SCHEME ===

# %% [markdown]
# *Your answer goes here.*

# %% [markdown]
# ## 10 · Once in C++
#
# *Further, hard, 40 minutes, 4 points: one each for any tensor, for any numbers, for the schema,
# and for the fake. Without a C++ compiler, nobody can earn them.*
# From the lesson: [What C++ sees](../../notebooks/05_custom_op.ipynb#cell-id=what-c-sees).
#
# The kernels of torch's own operators are C++. Write the forward of a softmax in C++, too. Write
# `cpp_softmax()`, which passes a C++ text to `load_cpp`, registers a fake for its operator, and
# returns the namespace that `load_cpp` returned. In the text, the namespace is called `NAMESPACE`,
# as in the lesson. With the lesson's macros, the text must register an operator `softmax`, and a
# kernel for the key `CPU`. The operator takes a tensor `x` and returns a tensor, the softmax along
# the last dimension:
#
# - `x` has one dimension or more, and may have any strides. The last dimension has at least one
#   number, and other dimensions may have none.
# - The result is a new contiguous tensor with the shape and dtype of `x`, and the kernel does not
#   change `x`. The schema says that the result is new, and that `x` is only read.
# - Numbers may be large, of either sign. The softmax of -inf is 0, and a row of nothing but -inf
#   must give NaN, as in torch.
# - float32 and float64 must work, and float64 must be computed in float64. For float16, bfloat16
#   and whole numbers, the kernel must raise an error.
# - Your loops must do the work. The C++ may call operators of torch that make a tensor, copy it, or
#   change its shape, but none that computes.
# - The fake returns a tensor with the shape, strides, dtype and device of the result, for fake
#   tensors on any device.
#
# Nobody asks for a gradient. Your own process says which operators ran, whether the kernel is C++,
# whether opcheck's `test_schema` passes, and into how many graphs `torch.compile` cuts a function
# that calls the operator. There should be one.
#
# A wrong index raises no error in C++. It may end the kernel of this notebook, so save the notebook
# before you run the cells.
#
# <details><summary>Where do I start?</summary>
#
# Start with the text of the lesson's operator. The headers and the two registrations stay, with
# other names. After `torch::stable::contiguous`, the rows are one below the other, and each has as
# many numbers as the last dimension.
# </details>
# <details><summary>How do I write the loops for two dtypes?</summary>
#
# Write them once, as a template: `template <typename T> void rows(const T* x, T* y, int64_t count,
# int64_t columns)`. Then compare `x.scalar_type()` with `torch::headeronly::ScalarType::Float` and
# `Double`, and call `rows` with pointers to `float` or to `double`. `STD_TORCH_CHECK(condition,
# "message")` raises an error if the condition is false.
# </details>

# %% solution="cpp_softmax"
def cpp_softmax() -> str:
    """Loads the operator `softmax` and registers its fake; returns its namespace."""
    ### BEGIN SOLUTION
    namespace = load_cpp(r"""
        #include <algorithm>
        #include <cmath>
        #include <torch/csrc/stable/library.h>
        #include <torch/csrc/stable/ops.h>
        #include <torch/csrc/stable/tensor.h>

        using torch::headeronly::ScalarType;
        using torch::stable::Tensor;

        template <typename T>
        void rows(const T* x, T* y, int64_t count, int64_t columns) {
          for (int64_t row = 0; row < count; ++row, x += columns, y += columns) {
            T top = *std::max_element(x, x + columns), sum = 0;
            for (int64_t i = 0; i < columns; ++i) sum += y[i] = std::exp(x[i] - top);
            for (int64_t i = 0; i < columns; ++i) y[i] /= sum;
          }
        }

        Tensor softmax(const Tensor& x) {
          Tensor given = torch::stable::contiguous(x);
          Tensor y = torch::stable::new_empty(x, x.sizes());
          int64_t columns = x.size(x.dim() - 1), count = x.numel() / columns;
          if (x.scalar_type() == ScalarType::Float) {
            rows(given.const_data_ptr<float>(), y.mutable_data_ptr<float>(), count, columns);
          } else {
            STD_TORCH_CHECK(x.scalar_type() == ScalarType::Double, "float32 or float64, please");
            rows(given.const_data_ptr<double>(), y.mutable_data_ptr<double>(), count, columns);
          }
          return y;
        }

        STABLE_TORCH_LIBRARY(NAMESPACE, m) { m.def("softmax(Tensor x) -> Tensor"); }
        STABLE_TORCH_LIBRARY_IMPL(NAMESPACE, CPU, m) { m.impl("softmax", TORCH_BOX(&softmax)); }
    """)

    @torch.library.register_fake(f"{namespace}::softmax")
    def _(x):
        return torch.empty(x.shape, dtype=x.dtype, device=x.device)

    return namespace
    ### END SOLUTION

# %%
x = torch.tensor([[1.0, 2.0, 3.0], [900.0, -3.0, 900.0]])
expect_close(
    "two rows",
    cpp_driver.run_cpp(cpp_softmax, x.clone())["output"],
    [[0.0900, 0.2447, 0.6652], [0.5, 0.0, 0.5]],
)
expect_close(
    "along the last of three dimensions",
    cpp_driver.run_cpp(cpp_softmax, x.sin().reshape(3, 1, 2).double())["output"],
    torch.softmax(x.sin().reshape(3, 1, 2).double(), -1),
    rtol=1e-12,
)
expect_close(
    "columns of a wider tensor",
    cpp_driver.run_cpp(cpp_softmax, x[:, ::2])["output"],
    torch.softmax(x[:, ::2], -1),
)
expect_equal(
    "no rows", cpp_driver.run_cpp(cpp_softmax, torch.zeros(2, 0, 3))["output"], torch.zeros(2, 0, 3)
)
half = cpp_driver.run_cpp(cpp_softmax, x.half(), refuses=True)
expect_equal("float16 is refused", half["refused"], True)
expect_equal("own loops", cpp_driver.run_cpp(cpp_softmax, x)["computed"], False)
schema = cpp_driver.cpp_schema(cpp_softmax, x)
expect_equal("whether the schema says that it writes", schema["writes"], False)

# %% test="cpp_softmax" points=4
# Graded
check("cpp_softmax")
fake = [((2, 3), (1, 2), torch.float64, "cpu"), ((4, 2, 3), (6, 3, 1), torch.float32, "cuda")]
right = [((2, 3), (3, 1), torch.float64, "cpu"), ((4, 2, 3), (6, 3, 1), torch.float32, "cuda")]
if not inductor_lacks():
    expect_equal("its fake", cpp_driver.cpp_fakes(cpp_softmax, fake), right)
    expect_equal("one graph", cpp_driver.trace_cpp(cpp_softmax, torch.ones(2, 3))["graphs"], 1)
### BEGIN HIDDEN TESTS
verify("cpp_softmax", cpp_softmax)
### END HIDDEN TESTS

# %% [markdown]
# ## Done
#
# Use *Kernel → Restart Kernel and Run All Cells* once more, so that you know your notebook works
# from top to bottom, then save it.
