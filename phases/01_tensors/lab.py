# ---
# jupyter:
#   kernelspec: {display_name: Python 3, language: python, name: python3}
#   open_the_hood: {title: "Lab 01: Tensors, storage and view", points: 40, cell_seconds: 60}
# ---

# %% [markdown]
# # Lab 01: Tensors, storage and view
#
# Ten exercises and one question, 40 points, about two and a half hours. They follow [lesson 01](../../notebooks/01_tensors.ipynb) section by section. Each exercise takes one thing that
# PyTorch does for you all day, and you do it once yourself.
#
# Every exercise has the same four cells: the question, a stub for your code, a check to run as
# often as you like, and the graded cell. A check prints `ok`, or says what it got and what it
# expected. The graded cell begins with `# Graded` and `check(...)`. It gives the same verdict as
# grading: it tests your function on shapes, dtypes and memory layouts that you have not seen, new
# ones each time. Below it is one more example. So write for the general case, not for the examples.
# Parts of an exercise earn their points separately.
#
# Some exercises say what your answer may not use. This rule is for your function and everything
# that it calls. Elsewhere in the notebook everything is allowed. Grading reads your cells and
# watches them run, to see what your answer uses. So code that hides it (`exec`, `globals()`,
# importing a file that you wrote) earns nothing in these exercises.
#
# Stuck? Each exercise has two hints, folded away. The second says more than the first. Run the next
# cell, then start.

# %% given="setup"
import math

import torch
from einops import rearrange

from hood.learner.check import check
from utils.drivers.described import Described
from utils.minigpt import MiniGPTConfig
from utils.notebook.expect import (
    expect_close,
    expect_equal,
    expect_raises,
    expect_shape,
    expect_shares_storage,
)
from utils.views import broadcast_aligner, roofline, share_map, stride_explorer

# %% [markdown]
# ## 1 · What a slice keeps alive
#
# *Warm-up, 5 minutes, 2 points.*
# From the lesson: [A tensor is a storage and a view](../../notebooks/01_tensors.ipynb#cell-id=a-tensor-is-a-storage-and-a-view).
#
# You load a 2 GB matrix of embeddings, keep one row, and delete the matrix. But the memory is not
# free again. To see why, you need two numbers for any tensor `t`: the bytes that its *view* reaches
# (the number of elements times the bytes of one element), and the bytes that its *storage* holds.
#
# Write `bytes_of(t)`, which returns the pair `(view_bytes, storage_bytes)`, two ints.
# An element that a view reaches twice counts twice in `view_bytes`.
#
# <details><summary>I'm not sure what to ask the tensor</summary>
#
# You need only `t.numel()`, `t.element_size()` and `t.untyped_storage()`.
# </details>
# <details><summary>My second number is wrong</summary>
#
# A storage has no shape and no dtype, so you can't compute its size from them. It is a run of
# bytes, and `nbytes()` says how many.
# </details>

# %% solution="bytes_of"
def bytes_of(t: torch.Tensor) -> tuple[int, int]:
    """The bytes that the view `t` reaches, and the bytes of its storage."""
    ### BEGIN SOLUTION
    view_bytes = t.numel() * t.element_size()
    return view_bytes, t.untyped_storage().nbytes()
    ### END SOLUTION

# %%
embeddings = torch.zeros(600, 64)
expect_equal("the whole matrix", bytes_of(embeddings), (153_600, 153_600))
expect_equal("one row of it", bytes_of(embeddings[7]), (256, 153_600))
expect_equal("one number of it", bytes_of(embeddings[7, 3]), (4, 153_600))
expect_equal("a row read twice", bytes_of(embeddings[7].expand(2, 64)), (512, 153_600))
expect_equal("whole numbers", bytes_of(torch.zeros(5, dtype=torch.int16)), (10, 10))
expect_equal("truth values", bytes_of(torch.zeros(2, 3, dtype=torch.bool)), (6, 6))
expect_equal("complex numbers", bytes_of(torch.zeros((), dtype=torch.complex64)), (8, 8))
expect_equal("no row at all", bytes_of(embeddings[7:7]), (0, 153_600))
expect_equal(
    "a row that has forgotten its matrix", bytes_of(embeddings[7].detach()), (256, 153_600)
)
expect_equal("windows that overlap", bytes_of(torch.zeros(5).unfold(0, 3, 1)), (36, 20))
expect_equal(
    "seven bytes read in pairs",
    bytes_of(torch.zeros(7, dtype=torch.uint8)[:6].view(torch.int16)),
    (6, 7),
)

# %% test="bytes_of" points=2
# Graded
check("bytes_of")
row = torch.zeros(600, 64)[7]
expect_equal("a half-precision copy of a row", bytes_of(row.half()), (128, 128))
### BEGIN HIDDEN TESTS
verify("bytes_of", bytes_of)
### END HIDDEN TESTS

# %% [markdown]
# ## 2 · Row-major strides
#
# *Easy, 5 minutes, 3 points.*
# From the lesson: [Strides: how far is one step](../../notebooks/01_tensors.ipynb#cell-id=strides-how-far-is-one-step).
#
# When torch makes a new tensor, it puts the elements into memory row by row: the last index runs
# fastest. Given only the shape, which strides does that give? `stride[d]` is the number of elements
# to walk when index `d` grows by one.
#
# Write `row_major_strides(shape)`. Two special cases are worth points: a shape may have sizes of 1
# and of 0, and your function must give torch's strides for those too. Make a few such tensors in a
# new cell, look at their strides, and find the rule. Your function must compute the strides from
# the numbers: it may not ask a tensor or an array for its strides or addresses, and it may not use
# `view` or `reshape`.
#
# <details><summary>I know the picture but not the formula</summary>
#
# Start at the last dimension. A step there is 1 element. Then walk to the left. What does one step
# in dimension `d` skip? All the elements of the dimensions to its right.
# </details>
# <details><summary>My strides turn to zero</summary>
#
# If you multiply by a size of 0, all strides to its left become 0. Look at `torch.empty(3, 0,
# 4).stride()`: which number does torch use in place of the size 0?
# </details>

# %% solution="row_major_strides"
def row_major_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides, in elements, of a new contiguous tensor of this shape."""
    ### BEGIN SOLUTION
    strides = []
    step = 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))
    ### END SOLUTION

# %%
expect_equal("a matrix", row_major_strides((600, 64)), (64, 1))
expect_equal("a vector", row_major_strides((600,)), (1,))
expect_equal("a number", row_major_strides(()), ())
expect_equal("a size of 1", row_major_strides((3, 1, 4)), (4, 4, 1))
for shape in ((3, 0, 4), (0, 3, 4), (2, 3, 0), (5, 1, 1)):
    expect_equal(f"{shape}, as torch has it", row_major_strides(shape), torch.empty(shape).stride())

# %% test="row_major_strides" points=3
# Graded
check("row_major_strides")
expect_equal("heads", row_major_strides((8, 4, 32, 16)), (2048, 512, 16, 1))
### BEGIN HIDDEN TESTS
verify("row_major_strides", row_major_strides)
### END HIDDEN TESTS

# %% [markdown]
# ## 3 · Where is element (i, j, k)?
#
# *Easy, 10 minutes, 3 points.*
# From the lesson: [The address of one element](../../notebooks/01_tensors.ipynb#cell-id=the-address-of-one-element).
#
# Indexing looks like a search, but it is a single sum. Write `byte_offset(t, index)`, which returns
# the distance, in **bytes**, from the first byte of `t`'s storage to the element `t[index]`. The
# index has one integer for each dimension. As everywhere in Python, a negative one counts from the
# end.
#
# Use `t.stride()`, `t.storage_offset()`, `t.shape` and `t.element_size()`. If you index the tensor
# and ask the result for its address, torch computes the sum, and not you. So some tensors that you
# get are only `Described`: they have these four attributes, but no elements to index. Their numbers
# are Python ints, larger than any int64, so there is no such tensor in torch or NumPy. But your sum
# must be exact.
#
# <details><summary>How do I get from strides to a place?</summary>
#
# Each index takes `index[d]` steps of `stride[d]` elements. The view itself starts at element
# `storage_offset()` of the storage.
# </details>
# <details><summary>It works for fresh tensors but not for views</summary>
#
# Check three things on `torch.arange(12).view(3, 4).t()[1:]`: you use the view's own strides, the
# storage offset is in the sum, and the whole sum, offset included, is multiplied by the bytes of an
# element.
# </details>

# %% solution="byte_offset"
def byte_offset(t: torch.Tensor, index: tuple[int, ...]) -> int:
    """Bytes from the start of `t`'s storage to the element `t[index]`."""
    ### BEGIN SOLUTION
    place = t.storage_offset()
    for i, size, stride in zip(index, t.shape, t.stride(), strict=True):
        if i < 0:
            i += size
        place += i * stride
    return place * t.element_size()
    ### END SOLUTION

# %%
grid = torch.arange(12.0).view(3, 4)
expect_equal("row 1, column 2", byte_offset(grid, (1, 2)), 24)
expect_equal("counted from the end", byte_offset(grid, (-1, -3)), 36)
expect_equal("narrower elements", byte_offset(torch.zeros(5, dtype=torch.float16), (3,)), 6)
expect_equal("wider ones", byte_offset(torch.zeros(5, dtype=torch.complex128), (-2,)), 48)
expect_equal("the first of a slice", byte_offset(grid[1:], (0, 0)), 16)
expect_equal("no dimensions", byte_offset(grid[1, 2], ()), 24)
cube = torch.zeros(2, 3, 4, dtype=torch.float64)
expect_equal("three dimensions", byte_offset(cube, (1, -2, 0)), 128)
expect_equal("turned round", byte_offset(cube.permute(2, 0, 1), (-1, 0, 2)), 88)
wide = Described((2**40, 2**40), (2**40, 1), 0, torch.float16)  # a trillion rows, each as long
expect_equal("too large for any machine", byte_offset(wide, (3, -1)), 2 * (2**42 - 1))
expect_equal("the tensor is as it was", grid, torch.arange(12.0).view(3, 4), strides=True)
stride_explorer(grid.t()[1:], index=(1, 2))

# %% test="byte_offset" points=3
# Graded
check("byte_offset")
turned = torch.arange(12.0).view(3, 4).t()[1:]
expect_equal("in a slice of a transpose", byte_offset(turned, (1, 2)), 40)
### BEGIN HIDDEN TESTS
verify("byte_offset", byte_offset)
### END HIDDEN TESTS

# %% [markdown]
# ## 4 · Four views, by hand
#
# *Medium, 15 minutes, 4 points: one for each.*
# From the lesson: [Making a view by hand: as_strided](../../notebooks/01_tensors.ipynb#cell-id=making-a-view-by-hand-as_strided).
#
# `x.t()` moves nothing. It gives you a second way to read the same bytes, and decides just three
# things: sizes, strides and where to start. `torch.as_strided(x, size, stride, storage_offset)`
# lets you decide them yourself. Make four of torch's views with that one call:
#
# - `transpose_view(x, dim0, dim1)`: two dimensions exchanged, like `x.transpose(dim0, dim1)`;
#   dimensions are counted from 0;
# - `narrow_view(x, dim, start, length)`: `length` entries of one dimension, from `start` on;
# - `expand_view(x, sizes)`: sizes of 1 stretched to `sizes`, which has as many dimensions as `x`;
# - `diagonal_view(x)`: the main diagonal of a matrix, square or not.
#
# Your input is often already a view, with its own strides and offset. Some inputs are only
# `Described`, as in exercise 3: they have a shape, strides and an offset, of any size, and their
# only operator is `as_strided`. The result must be a view of `x` and have the strides that torch
# would give it. A function that lets torch make the view (`x.transpose`, slicing, `expand` …) earns
# nothing. The other functions keep their points.
#
# <details><summary>What does as_strided use when I leave the offset out?</summary>
#
# It uses the offset of `x`. Only one of the four views must start at another place.
# </details>
# <details><summary>The diagonal is giving me trouble</summary>
#
# From one element of the diagonal to the next you go one row down and one column to the right.
# Each of these is a known number of elements.
# </details>

# %% solution="views_by_hand"
def transpose_view(x: torch.Tensor, dim0: int, dim1: int) -> torch.Tensor:
    """`x` with two dimensions exchanged, sharing its storage."""
    ### BEGIN SOLUTION
    sizes, strides = list(x.shape), list(x.stride())
    sizes[dim0], sizes[dim1] = sizes[dim1], sizes[dim0]
    strides[dim0], strides[dim1] = strides[dim1], strides[dim0]
    return torch.as_strided(x, sizes, strides)
    ### END SOLUTION


def narrow_view(x: torch.Tensor, dim: int, start: int, length: int) -> torch.Tensor:
    """Entries `start` to `start + length - 1` of dimension `dim`, sharing storage."""
    ### BEGIN SOLUTION
    sizes = list(x.shape)
    sizes[dim] = length
    offset = x.storage_offset() + start * x.stride(dim)
    return torch.as_strided(x, sizes, x.stride(), offset)
    ### END SOLUTION


def expand_view(x: torch.Tensor, sizes: tuple[int, ...]) -> torch.Tensor:
    """`x` with its dimensions of size 1 stretched to `sizes`, sharing storage."""
    ### BEGIN SOLUTION
    strides = list(x.stride())
    for dim, size in enumerate(sizes):
        if x.size(dim) != size:
            strides[dim] = 0
    return torch.as_strided(x, sizes, strides)
    ### END SOLUTION


def diagonal_view(x: torch.Tensor) -> torch.Tensor:
    """The main diagonal of the matrix `x`, sharing its storage."""
    ### BEGIN SOLUTION
    length = min(x.shape)
    step = x.stride(0) + x.stride(1)
    return torch.as_strided(x, (length,), (step,))
    ### END SOLUTION

# %%
x = torch.arange(20.0).view(4, 5)
expect_equal("transpose", transpose_view(x, 0, 1), x.transpose(0, 1), strides=True)
expect_equal("narrow", narrow_view(x, 1, 2, 3), x.narrow(1, 2, 3), strides=True)
expect_equal("expand", expand_view(x[:, :1], (4, 3)), x[:, :1].expand(4, 3), strides=True)
expect_equal("diagonal", diagonal_view(x), x.diagonal(), strides=True)
inner = x[1:, ::2]  # a view already: strides (5, 2), and it starts at element 5
expect_equal("transpose a view", transpose_view(inner, 0, 1), inner.transpose(0, 1), strides=True)
expect_equal("narrow a view", narrow_view(inner, 0, 1, 2), inner.narrow(0, 1, 2), strides=True)
expect_equal("expand a view", expand_view(inner[:1], (4, 3)), inner[:1].expand(4, 3), strides=True)
expect_equal("diagonal of a view", diagonal_view(inner), inner.diagonal(), strides=True)
expect_equal("x is as it was", x, torch.arange(20.0).view(4, 5), strides=True)
cube = torch.arange(60.0).view(3, 4, 5)[1:]
expect_equal(
    "the first two of three", transpose_view(cube, 0, 1), cube.transpose(0, 1), strides=True
)
expect_equal(
    "the middle one of three", narrow_view(cube, 1, 1, 2), cube.narrow(1, 1, 2), strides=True
)
expect_equal(
    "a 1 that stays", expand_view(x[:1, 2:3], (3, 1)), x[:1, 2:3].expand(3, 1), strides=True
)
expect_equal(
    "stretched to nothing", expand_view(x[:, :1], (4, 0)), x[:, :1].expand(4, 0), strides=True
)
wide = diagonal_view(Described((3, 5), (2**70, 2**65), 2**80))  # no tensor is so large
described = (tuple(wide.shape), wide.stride(), wide.storage_offset())
expect_equal("of a described one", described, ((3,), (2**70 + 2**65,), 2**80))
expect_equal("more rows than columns", diagonal_view(x[:, 1:3]), x[:, 1:3].diagonal(), strides=True)
share_map(x=x, narrow=narrow_view(x, 1, 2, 3), diagonal=diagonal_view(x))

# %% test="views_by_hand" points=4
# Graded
check("views_by_hand")
x = torch.arange(20.0).view(4, 5)
diagonal = diagonal_view(transpose_view(x, 0, 1))
expect_shares_storage("the diagonal of a transpose", diagonal, x)
### BEGIN HIDDEN TESTS
verify("views_by_hand", transpose_view=transpose_view, narrow_view=narrow_view, expand_view=expand_view, diagonal_view=diagonal_view)
### END HIDDEN TESTS

# %% [markdown]
# ## 5 · Can `view` do it?
#
# *Hard, 25 minutes, 5 points.*
# From the lesson: [When view works and when reshape copies](../../notebooks/01_tensors.ipynb#cell-id=when-view-works-and-when-reshape-copies).
#
# `x.view(shape)` either returns at once, or complains that the "view size is not compatible with
# input tensor's size and stride". It never looks at the data: shape and strides decide. Now decide
# it yourself.
#
# Write `view_strides(shape, strides, new_shape)`, which returns the strides of the view, or `None`
# when no strides can do it and the elements would have to be copied. Both shapes have at least one
# dimension and at least one element, and both have the same number of elements. The stride that you
# give to a dimension of size 1 does not matter, because nobody ever takes a step along it. For the
# same reason, a dimension of size 1 in the input must never stand in the way, whatever its stride.
# Compute the strides from the numbers. You may not make a tensor or an array and ask it for the
# strides (`empty_strided`, `view`, `reshape`, `stride` …). A tensor or an array can't have strides
# beyond int64, which the tests use, too.
#
# <details><summary>What is the rule?</summary>
#
# Cut the input's dimensions into *chunks*. Two neighbours belong to one chunk when the outer one
# continues where the inner one ends: `strides[d] == strides[d + 1] * shape[d + 1]`. Inside a chunk
# the elements are evenly spaced, so you may cut the chunk in any new way. But no new dimension can
# be in two chunks.
# </details>
# <details><summary>How do I turn that into code?</summary>
#
# First drop the sizes of 1 and merge the other dimensions into a list of chunks `[length, step]`.
# Then walk through `new_shape` from the right. Each size must divide the length of the last chunk.
# If it doesn't, there is no view. When a chunk is used up, go on with the chunk before it.
# </details>

# %% solution="view_strides"
def view_strides(
    shape: tuple[int, ...], strides: tuple[int, ...], new_shape: tuple[int, ...]
) -> tuple[int, ...] | None:
    """The strides after `view(new_shape)`, or None if there is no such view."""
    ### BEGIN SOLUTION
    chunks = []  # [length, step], outermost first
    for size, stride in zip(shape, strides, strict=True):
        if size == 1:
            continue
        if chunks and chunks[-1][1] == size * stride:
            chunks[-1] = [chunks[-1][0] * size, stride]
        else:
            chunks.append([size, stride])

    result = []
    for size in reversed(new_shape):
        if size == 1:
            result.append(1)
            continue
        length, step = chunks[-1]
        if length % size != 0:
            return None
        result.append(step)
        chunks[-1] = [length // size, step * size]
        if chunks[-1][0] == 1:
            chunks.pop()
    return tuple(reversed(result))
    ### END SOLUTION

# %%
expect_equal("flatten a fresh matrix", view_strides((4, 6), (6, 1), (24,)), (1,))
expect_equal("split it", view_strides((4, 6), (6, 1), (4, 2, 3)), (6, 3, 1))
expect_equal("flatten its transpose", view_strides((6, 4), (1, 6), (24,)), None)
expect_equal("split its transpose", view_strides((6, 4), (1, 6), (2, 3, 4)), (3, 1, 6))
expect_equal("a stride nobody walks", view_strides((4, 1, 6), (6, 99, 1), (24,)), (1,))
far = view_strides((2, 6), (2**70, 2**65), (2, 2, 3))
expect_equal("rows far apart", far, (2**70, 3 * 2**65, 2**65))
expect_equal("split a row that is stretched", view_strides((5, 4), (0, 1), (5, 2, 2)), (0, 2, 1))
expect_equal("a size of 1 in front", view_strides((4, 6), (6, 1), (1, 24))[1], 1)
expect_equal("pieces of two rows", view_strides((3, 4), (8, 1), (2, 2, 3)), None)
expect_equal("one element, many times", view_strides((3, 4), (0, 0), (12,)), (0,))
expect_equal("a row, many times", view_strides((5, 4), (0, 1), (20,)), None)
expect_equal("every third element", view_strides((2, 3), (9, 3), (6,)), (3,))
expect_equal("sizes of 1 around", view_strides((1, 4, 1), (9, 1, 9), (2, 2)), (2, 1))
expect_equal("nothing but sizes of 1", len(view_strides((1, 1), (5, 7), (1, 1, 1))), 3)
expect_equal("a size of 1 behind", view_strides((2, 3), (3, 1), (6, 1))[0], 1)

# %% test="view_strides" points=5
# Graded
check("view_strides")
heads = torch.zeros(8, 32, 4, 16).transpose(1, 2)  # batch, heads, length, channels
shape, strides = tuple(heads.shape), heads.stride()
expect_equal("merge batch and heads", view_strides(shape, strides, (32, 32, 16)), None)
### BEGIN HIDDEN TESTS
verify("view_strides", view_strides)
### END HIDDEN TESTS

# %% [markdown]
# ## 6 · Broadcast two shapes
#
# *Medium, 15 minutes, 4 points.*
# From the lesson: [Broadcasting: a view with stride 0](../../notebooks/01_tensors.ipynb#cell-id=broadcasting-a-view-with-stride-0).
#
# `a + b` with shapes (8, 1, 64) and (32, 64) repeats nothing in memory. Both operands become views
# with the common shape, and a size of 1 is stretched by a step of 0.
#
# Write `broadcast(shape_a, strides_a, shape_b, strides_b)`. It returns three tuples: the common
# shape, the strides of `a` in it, and the strides of `b` in it. Shapes are aligned at their last
# dimension, and a dimension that an operand does not have counts as size 1. A size of 1 is
# stretched to the other size, 0 included. If two sizes differ and neither is 1, raise `ValueError`.
# If the common size of a dimension is 1, its stride does not matter. Compute from the numbers here,
# too. You may not use `broadcast_shapes`, `expand` and similar functions of torch or NumPy, and you
# may not make a tensor (`torch.empty`, `zeros`, `ones`) to ask it for the answer. The numbers are
# Python ints of any size, and many are too large for a tensor or an array.
#
# <details><summary>How do I align shapes of different length?</summary>
#
# Put sizes of 1 in front of the shorter shape until both shapes have the same number of dimensions.
# Give the new dimensions stride 0.
# </details>
# <details><summary>Which stride does a stretched dimension get?</summary>
#
# It gets stride 0: the index grows by one, but there is no step in memory. A dimension that is not
# stretched keeps its stride.
# </details>

# %% solution="broadcast"
def broadcast(
    shape_a: tuple[int, ...],
    strides_a: tuple[int, ...],
    shape_b: tuple[int, ...],
    strides_b: tuple[int, ...],
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Common shape, strides of `a` in it, strides of `b` in it; ValueError on a clash."""
    ### BEGIN SOLUTION
    rank = max(len(shape_a), len(shape_b))

    def padded(values, filler):
        return (filler,) * (rank - len(values)) + tuple(values)

    shape_a, shape_b = padded(shape_a, 1), padded(shape_b, 1)
    shape = []
    for size_a, size_b in zip(shape_a, shape_b, strict=True):
        if size_a != size_b and size_a != 1 and size_b != 1:
            raise ValueError(f"{shape_a} and {shape_b} clash: {size_a} against {size_b}")
        shape.append(size_b if size_a == 1 else size_a)

    def read_in(own_shape, strides):
        steps = zip(own_shape, padded(strides, 0), shape, strict=True)
        return tuple(stride if size == common else 0 for size, stride, common in steps)

    return tuple(shape), read_in(shape_a, strides_a), read_in(shape_b, strides_b)
    ### END SOLUTION

# %%
column, row = torch.zeros(4, 1), torch.zeros(1, 6)
shape, strides_column, strides_row = broadcast((4, 1), (1, 1), (1, 6), (6, 1))
expect_equal("common shape", shape, (4, 6))
expect_equal("strides of the column", strides_column, (1, 0))
expect_equal("strides of the row", strides_row, (0, 1))
came = broadcast((6,), (1,), (4, 6), (1, 4))
expect_equal("beside a transpose", came, ((4, 6), (0, 1), (1, 4)))
came = broadcast((2**70, 1), (9, 9), (7,), (2**65,))
expect_equal("sizes beyond int64", came, ((2**70, 7), (9, 0), (0, 2**65)))
expect_raises("3 against 6", ValueError, broadcast, (3, 2), (2, 1), (6, 2), (2, 1))
expect_equal("0 against 1", broadcast((3, 1), (1, 1), (0,), (1,)), ((3, 0), (1, 0), (0, 1)))
expect_equal("no dimensions", broadcast((), (), (2, 3), (3, 1)), ((2, 3), (0, 0), (3, 1)))
expect_equal("neither has any", broadcast((), (), (), ()), ((), (), ()))
expect_raises("0 against 6", ValueError, broadcast, (0,), (1,), (6,), (1,))
expect_raises("4 against 2", ValueError, broadcast, (4, 1), (1, 1), (2, 3), (3, 1))
expect_raises(
    "a stretched row against three", ValueError, broadcast, (2, 3), (0, 1), (3, 3), (3, 1)
)
broadcast_aligner(column, row)

# %% test="broadcast" points=4
# Graded
check("broadcast")
expect_equal(
    "a bias over a batch",
    broadcast((8, 32, 64), (2048, 64, 1), (64,), (1,)),
    ((8, 32, 64), (2048, 64, 1), (0, 0, 1)),
)
### BEGIN HIDDEN TESTS
verify("broadcast", broadcast)
### END HIDDEN TESTS

# %% [markdown]
# ## 7 · The loss that would not fall
#
# *Easy, 10 minutes, 3 points.*
# From the lesson: [The silent (64, 64) bug](../../notebooks/01_tensors.ipynb#cell-id=the-silent-64-64-bug).
#
# A colleague trains `nn.Linear(64, 1)` on one number for each sentence. The loss goes down a little
# and then stays at about the variance of the targets, however long the training runs. This is the
# loss function:
#
# ```python
# def loss(prediction, target):            # prediction: (B, 1), target: (B,)
#     return ((prediction - target) ** 2).mean()
# ```
#
# Write the fixed version, `mended_loss(prediction, target)`. It returns the mean squared error of B
# predictions and B targets, as a 0-dim tensor of their dtype, through which gradients flow back to
# the prediction. Each argument may have shape (B,) or (B, 1). Anything else, two different batch
# sizes included, must raise `ValueError`: a loss that refuses is worth more than one that guesses.
# (While you explore, `assert` is quick. In a function that others call, raise an exception that
# says what is wrong.)
#
# <details><summary>What is wrong with the colleague's version?</summary>
#
# Look at `(torch.zeros(64, 1) - torch.zeros(64)).shape`.
# </details>
# <details><summary>I flatten both, and a case still fails</summary>
#
# What happens to a batch of 1 and a batch of 5 when both are vectors? Compare the lengths yourself,
# before you subtract.
# </details>

# %% solution="mended_loss"
def mended_loss(prediction: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """Mean squared error of two batches, each (B,) or (B, 1); ValueError for anything else."""
    ### BEGIN SOLUTION
    def as_vector(t):
        if t.dim() == 2 and t.size(1) == 1:
            t = t.squeeze(1)
        if t.dim() != 1:
            raise ValueError(f"expected shape (B,) or (B, 1), got {tuple(t.shape)}")
        return t

    prediction, target = as_vector(prediction), as_vector(target)
    if prediction.shape != target.shape:
        raise ValueError(f"{len(prediction)} predictions, but {len(target)} targets")
    return (prediction - target).square().mean()
    ### END SOLUTION

# %%
prediction, target = torch.tensor([[1.0], [2.0], [3.0]]), torch.tensor([1.0, 2.0, 5.0])
expect_close("three predictions", mended_loss(prediction, target), 4 / 3)
expect_close("both as columns", mended_loss(prediction, target[:, None]), 4 / 3)
expect_close("a batch of one", mended_loss(prediction[2:], target[2:]), 4.0)
loss = mended_loss(prediction.double().requires_grad_(), target.double())
expect_equal("the dtype of both", loss.dtype, torch.float64)
expect_equal("gradients can flow", loss.requires_grad, True)
near = torch.tensor([100_000.0, 100_001.0], dtype=torch.float64)
expect_close(
    "large numbers",
    mended_loss(near, near + 1e-4),
    torch.tensor(1e-8, dtype=torch.float64),
    rtol=1e-3,
)
expect_equal("float32 stays float32", mended_loss(prediction, target).dtype, torch.float32)
weight = torch.tensor([[1.0], [2.0], [3.0]], requires_grad=True)
mended_loss(weight, target).backward()
expect_close("the gradient", weight.grad, [[0.0], [0.0], [-4 / 3]])
expect_shape("the prediction is as it was", prediction, (3, 1))

# %% test="mended_loss" points=3
# Graded
check("mended_loss")
column, row = torch.tensor([[1.0], [2.0], [3.0]]), torch.tensor([1.0, 2.0, 5.0])
refused = {
    "3 against 4": (column, torch.zeros(4)),
    "3 against 1": (column, row[:1]),
    "two matrices": (torch.zeros(3, 2), torch.zeros(3, 2)),
    "a column against a row": (column, row[None]),
    "two rows": (row[None], row[None]),
    "two numbers": (row[0], row[1]),
    "three dimensions": (column[None], column[None]),
    "three dimensions, two of them 1": (column[:, None], column[:, None]),
}
for label, (prediction, target) in refused.items():
    expect_raises(label, ValueError, mended_loss, prediction, target)
### BEGIN HIDDEN TESTS
verify("mended_loss", mended_loss)
### END HIDDEN TESTS

# %% [markdown] task="why_silent" points=3
# ## 8 · Why did nothing complain?
#
# *5 minutes, 3 points, read by a person.*
#
# Your colleague asks: "PyTorch checks shapes all the time. Why did it let this pass, and why did
# the loss even fall a little?" Answer in three to five sentences, in the cell below. Say three
# things: which shape the difference had and which rule gave this shape, over which numbers the mean
# was taken, and which constant prediction makes this mean smallest.
#
# === BEGIN MARK SCHEME ===
#
# One point each:
#
# - The rule: shapes align on the right, so (B, 1) and (B,) become (B, B) by stretching both sizes
#   of 1. This is legal broadcasting, so no operator sees a mistake.
# - The mean is taken over all B² pairs of a prediction and a target, not over the B matching
#   pairs. It is still a scalar, so backward works and training goes on.
# - Each prediction is pulled towards all targets equally, so the best that the model can do is to
#   predict their mean. The loss falls until it reaches the targets' variance.
#
# === END MARK SCHEME ===

# %% [markdown]
# *Your answer goes here.*

# %% [markdown]
# ## 9 · Attention scores
#
# *Medium, 15 minutes, 3 points.*
# From the lesson: [matmul, bmm, einsum, rearrange](../../notebooks/01_tensors.ipynb#cell-id=matmul-bmm-einsum-rearrange).
#
# The heart of a transformer is one einsum. From `x` of shape (batch, length, d_model), make queries
# and keys with two linear layers, split their channels into heads, and compare every query with
# every key:
#
# $$\text{scores}_{b,h,s,t} = \frac{1}{\sqrt{d_\text{head}}} \sum_d q_{b,h,s,d}\; k_{b,h,t,d}$$
#
# Write `attention_scores(x, w_q, w_k, n_heads)`. The weights are stored as `nn.Linear` stores them,
# (out, in). Both have shape (d_model, d_model), and there is no bias. Head 0 owns the first
# `d_model // n_heads` channels of the queries and keys, head 1 owns the next ones, and so on. The
# result has shape (batch, n_heads, length, length). There is no softmax and no mask: they come
# later. With `rearrange` and `torch.einsum` you need three lines, but any way is fine.
#
# <details><summary>How do I split the channels into heads?</summary>
#
# With `rearrange` you name the dimensions on both sides of an arrow. A pair in brackets, such as
# `(h d)`, reads one dimension as two, and the first of them changes slowest. Give `rearrange` the
# size of one of them. The lesson has an example.
# </details>
# <details><summary>Right shape, wrong numbers</summary>
#
# Check three things. The weights need a transpose (`x @ w_q.T`). The root is the root of one head's
# width. In the einsum, `s` comes from the queries and `t` from the keys.
# </details>

# %% solution="attention_scores"
def attention_scores(
    x: torch.Tensor, w_q: torch.Tensor, w_k: torch.Tensor, n_heads: int
) -> torch.Tensor:
    """The scaled scores, (B, H, S, S), for x: (B, S, D) and weights (out, in): (D, D)."""
    ### BEGIN SOLUTION
    q = rearrange(x @ w_q.T, "b s (h d) -> b h s d", h=n_heads)
    k = rearrange(x @ w_k.T, "b s (h d) -> b h s d", h=n_heads)
    return torch.einsum("bhsd,bhtd->bhst", q, k) / math.sqrt(q.shape[-1])
    ### END SOLUTION

# %%
x = torch.tensor([[[1.0, 0.0, 2.0, 0.0], [0.0, 1.0, 0.0, -2.0], [1.0, 1.0, 1.0, 1.0]]])
w_q = torch.eye(4)
w_q[0, 3] = 2.0  # the first channel of a query hears the last one of x, too
scores = attention_scores(torch.cat([x, -x]), w_q, 2 * torch.eye(4), n_heads=2)
expect_shape("two sentences, two heads, three positions", scores, (2, 2, 3, 3))
expect_close(
    "head 0 has the first two channels",
    scores[0, 0],
    [[1.4142, 0.0, 1.4142], [-5.6569, 1.4142, -4.2426], [4.2426, 1.4142, 5.6569]],
)
expect_close("both signs turned round are the same scores", scores[1], scores[0])
four = attention_scores(x.double(), torch.eye(4).double(), 3 * torch.eye(4).double(), n_heads=4)
expect_close(
    "four heads of one channel",
    four[0, 2],
    torch.tensor([[12.0, 0, 6], [0, 0, 0], [6, 0, 3]]).double(),
)
expect_equal("x is as it was", x[0, 0], torch.tensor([1.0, 0.0, 2.0, 0.0]))

# %% test="attention_scores" points=3
# Graded
check("attention_scores")
x = torch.tensor([[[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]])
w_k = torch.tensor([[0.0, 1.0], [3.0, 0.0]])
one_head = attention_scores(x, torch.eye(2), w_k, n_heads=1)
expect_close(
    "one head, every query against every key",
    one_head[0, 0],
    [[0.0, 0.7071, 0.7071], [2.1213, 0.0, 2.1213], [2.1213, 0.7071, 2.8284]],
)
### BEGIN HIDDEN TESTS
verify("attention_scores", attention_scores)
### END HIDDEN TESTS

# %% [markdown]
# ## 10 · Which dtype comes out?
#
# *Medium, 15 minutes, 4 points.*
# From the lesson: [Which dtype comes out](../../notebooks/01_tensors.ipynb#cell-id=which-dtype-comes-out).
#
# `torch.ones(3, dtype=torch.int32) + 0.5` is float32, in NumPy the same sum is float64, and `half +
# tensor(0.5, dtype=torch.float64)` stays half. In torch there is one rule behind all of it.
#
# Write `result_dtype(a, b)`, which returns the dtype of `a + b`. Each operand is a tensor with
# dimensions, a tensor with none, or a Python number, and at least one is a tensor. You may use
# `torch.promote_types(dtype, dtype)`, which takes two *dtypes*. You may not add the two operands or
# copies of them, or do other arithmetic with them. You may not make tensors for it (`torch.zeros`,
# `ones`, `empty`, `full` and the like), and you may not call `result_type`, torch's or NumPy's.
#
# <details><summary>What is the rule?</summary>
#
# Dtypes have categories, from low to high: bool, integers, floats, complex. Operands have ranks,
# from high to low: tensors with dimensions, 0-dim tensors, Python numbers. Dtypes of the same rank
# are promoted. An operand of lower rank counts only if its category is higher than the category of
# the operand of higher rank. (A float tensor that becomes complex keeps its width:
# `dtype.to_complex()` gives that dtype.)
# </details>
# <details><summary>Which dtype does a Python number have?</summary>
#
# It has bool, int64, torch's *default* float (float32), or the complex dtype of this float. Be
# careful with the order of your tests: in Python, `isinstance(True, int)` is true.
# `torch.tensor(number).dtype` gives the right dtype for each kind of number.
# </details>

# %% solution="result_dtype"
def result_dtype(
    a: torch.Tensor | bool | int | float | complex, b: torch.Tensor | bool | int | float | complex
) -> torch.dtype:
    """The dtype of `a + b`."""
    ### BEGIN SOLUTION
    def rank_and_dtype(operand):
        if not isinstance(operand, torch.Tensor):
            return 0, torch.tensor(operand).dtype
        return (1 if operand.dim() == 0 else 2), operand.dtype

    def category(dtype):
        if dtype == torch.bool:
            return 0
        return 3 if dtype.is_complex else 2 if dtype.is_floating_point else 1

    (rank_a, dtype_a), (rank_b, dtype_b) = rank_and_dtype(a), rank_and_dtype(b)
    if rank_a < rank_b:
        (rank_a, dtype_a), (rank_b, dtype_b) = (rank_b, dtype_b), (rank_a, dtype_a)
    if rank_a == rank_b:
        return torch.promote_types(dtype_a, dtype_b)
    if category(dtype_b) <= category(dtype_a):
        return dtype_a
    if category(dtype_a) == 2:  # a float that meets a complex of lower rank
        return dtype_a.to_complex()
    return torch.promote_types(dtype_a, dtype_b)
    ### END SOLUTION

# %%
ints, halves = torch.ones(3, dtype=torch.int32), torch.ones(3, dtype=torch.float16)
expect_equal("int32 + 0.5", result_dtype(ints, 0.5), torch.float32)
expect_equal("int32 + float16", result_dtype(ints, halves), torch.float16)
expect_equal("2 * float16", result_dtype(2, halves), torch.float16)
expect_equal("float16 + 1j", result_dtype(halves, 1j), torch.complex32)
expect_equal("bool + 1", result_dtype(ints == 1, 1), torch.int64)
expect_equal("True + bool", result_dtype(True, ints == 1), torch.bool)
expect_equal(
    "float16 + bfloat16", result_dtype(halves, torch.ones(3, dtype=torch.bfloat16)), torch.float32
)
expect_equal("uint8 - 1", result_dtype(torch.ones(3, dtype=torch.uint8), -1), torch.uint8)
expect_equal(
    "one float64 + float32",
    result_dtype(torch.ones(1, dtype=torch.float64), torch.ones(3)),
    torch.float64,
)
expect_equal(
    "no float64 + float32",
    result_dtype(torch.ones(0, dtype=torch.float64), torch.ones(1)),
    torch.float64,
)
number = torch.tensor(7, dtype=torch.int16)
expect_equal("an int16 of no dimensions + 300", result_dtype(number, 300), torch.int16)
expect_equal("the ints are as they were", ints, torch.ones(3, dtype=torch.int32))
expect_equal("and the halves", halves, torch.ones(3, dtype=torch.float16))

# %% test="result_dtype" points=4
# Graded
check("result_dtype")
ints, halves = torch.ones(3, dtype=torch.int32), torch.ones(3, dtype=torch.float16)
small = torch.tensor(0.5, dtype=torch.float64)
expect_equal("a 0-dim float64 + float16", result_dtype(small, halves), torch.float16)
expect_equal("float32 + a 0-dim float64", result_dtype(torch.ones(2), small), torch.float32)
expect_equal("a 0-dim float64 + int32", result_dtype(small, ints), torch.float64)
expect_equal("float16 + a 0-dim complex128", result_dtype(halves, small + 0j), torch.complex32)
### BEGIN HIDDEN TESTS
verify("result_dtype", result_dtype)
### END HIDDEN TESTS

# %% [markdown]
# ## 11 · What a forward pass costs
#
# *Medium, 20 minutes, 6 points: three for the layer, three for MiniGPT.*
# From the lesson: [Counting FLOPs and bytes](../../notebooks/01_tensors.ipynb#cell-id=counting-flops-and-bytes).
#
# Before you measure anything, know what to expect. Write two functions:
#
# `linear_cost(batch, d_in, d_out, itemsize)` returns `{"flops": …, "bytes": …}` for one linear
# layer with a bias. The FLOPs are those of the matrix product, and a multiplication and its
# addition are two FLOPs. The bias is too small to count. For the bytes, the input, the weight and
# the bias are each read once, and the output is written once. Each element has `itemsize` bytes.
#
# `minigpt_flops(config, batch, length)` returns the FLOPs of MiniGPT's forward pass over `batch`
# sequences of `length` tokens. Count only matrix products. Read the sizes from `config`, because
# they vary; `print(MiniGPTConfig())` shows its fields. Each of the `config.n_layers` blocks has
# three groups of products. There are four (d_model, d_model) projections: queries, keys, values,
# and the one that mixes the heads. There are the scores, and the sum of values weighted by them,
# over all `length` × `length` pairs (the causal mask saves nothing). And there is an MLP, d_model
# to d_ff and back. After the blocks comes the LM head, d_model to vocab_size, at every position.
# Looking up an embedding multiplies nothing.
#
# <details><summary>What does one product cost?</summary>
#
# (M, K) times (K, N) gives M·N results, and each result is a sum of K products. That makes 2·M·K·N
# FLOPs.
# </details>
# <details><summary>And the attention table?</summary>
#
# Together, the heads are as wide as the model. So for each sequence, all the scores cost as much as
# one product of (length, d_model) and (d_model, length). The weighted sums cost the same.
# </details>

# %% solution="model_costs"
def linear_cost(batch: int, d_in: int, d_out: int, itemsize: int) -> dict[str, int]:
    """FLOPs and bytes moved by a linear layer with bias on a (batch, d_in) input."""
    ### BEGIN SOLUTION
    elements = batch * d_in + d_out * d_in + d_out + batch * d_out
    return {"flops": 2 * batch * d_in * d_out, "bytes": elements * itemsize}
    ### END SOLUTION


def minigpt_flops(config: MiniGPTConfig, batch: int, length: int) -> int:
    """FLOPs of the matrix products in one forward pass over (batch, length) tokens."""
    ### BEGIN SOLUTION
    tokens, d = batch * length, config.d_model
    projections = 4 * (2 * tokens * d * d)
    attention = 2 * (2 * tokens * length * d)
    mlp = 2 * (2 * tokens * d * config.d_ff)
    head = 2 * tokens * d * config.vocab_size
    return config.n_layers * (projections + attention + mlp) + head
    ### END SOLUTION

# %%
head = {f"batch {batch}": linear_cost(batch, 64, 600, 4) for batch in (1, 32, 1024)}
expect_equal("LM head, batch 1", head["batch 1"], {"flops": 76_800, "bytes": 158_656})
expect_equal(
    "32 rows, in half precision",
    linear_cost(32, 64, 600, 2),
    {"flops": 2_457_600, "bytes": 120_496},
)
for batch, cost in head.items():
    print(f"LM head, {batch}: {cost['flops'] / cost['bytes']:.2f} FLOP for each byte")
# On a core of 200 GFLOP/s and 20 GB/s, which of the three waits for memory, which for arithmetic?
points = {batch: (cost["flops"], cost["bytes"]) for batch, cost in head.items()}
roofline(points, peak_flops=200e9, peak_bandwidth=20e9)

# %% test="model_costs" points=6
# Graded
check("model_costs")
expect_equal("MiniGPT, one sentence", minigpt_flops(MiniGPTConfig(), 1, 32), 9_273_344)
smaller = MiniGPTConfig(n_layers=1, d_ff=100)
expect_equal("a smaller one, two sentences", minigpt_flops(smaller, 2, 16), 4_456_448)
narrow = MiniGPTConfig(vocab_size=50, d_model=32, n_heads=2, n_layers=3, d_ff=40, context=16)
expect_equal("a narrow one, two short sentences", minigpt_flops(narrow, 2, 8), 739_328)
### BEGIN HIDDEN TESTS
verify("model_costs", linear_cost=linear_cost, minigpt_flops=minigpt_flops)
### END HIDDEN TESTS

# %% [markdown]
# ## Done
#
# Use *Kernel → Restart Kernel and Run All Cells* once more, so that you know that your notebook
# works from top to bottom. Then save it.
#
# You can now say where every element of a tensor is, which other tensors read it, what a reshape
# costs, which dtype a mixed sum has, and how long a forward pass must take at least. [Phase 02](../../notebooks/02_autograd.ipynb#cell-id=pytorchs-own-graph) asks the next question: when
# this tensor changes a little, by how much does the loss?
