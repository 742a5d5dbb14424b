"""Lab 05, exercise 3: Its backward"""

import torch
import triton
import triton.language as tl

from utils.checks.exercise import Check, edited
from utils.drivers.custom_op import cut
from utils.instruments.launching import launch

from .shared import IN_A_KERNEL, compiles, launched, room_for, written

softmax_backward = Check(
    "softmax_backward",
    parts={"any width": 2, "strides of each": 1, "half and double": 1, "compiles for a GPU": 1},
    reads="The backward is a kernel, too",
    changes_inputs=True,
    by_hand=IN_A_KERNEL,
)


def _exact(g, y):
    g, y = g.double(), y.double()
    return y * (g - (g * y).sum(-1, keepdim=True))


@softmax_backward.reference
def _(g, y, dx):
    launched(y)
    dx.copy_(_exact(g, y))


@softmax_backward.cases
def _(draw):
    def probabilities(shape):
        return torch.softmax(draw.tensor(shape, torch.float64), -1)

    def backward_of(part, g, y, shown, out=()):
        dx = room_for(y, *out)
        dtype = str(y.dtype).removeprefix("torch.")
        words = f"{dtype} {tuple(y.shape)}, strides {g.stride()} and {y.stride()}{shown}"
        wide_g, wide_y = g.double(), y.double()
        scale = wide_y * (wide_g.abs() + (wide_g.abs() * wide_y).sum(-1, keepdim=True))
        return written("softmax_backward", part, (g, y, dx), _exact(g, y), words, 0, scale)

    width, strides, dtypes, gpu = softmax_backward.parts
    odd = 2 * draw.integer(5, 20) + 1
    # Of five rows one is lost where programs of two rows overlap, or where there is one too few.
    for shape in ((5, odd), (1, 2), (1, 16), (1, 17), (1, 65), (2, 1), (0, odd), (1, 600)):
        yield backward_of(width, cut(draw.tensor(shape)), cut(probabilities(shape).float()), "")
    wide = draw.tensor((1, 1100)), probabilities((1, 1100)).float()
    yield backward_of(width, *map(cut, wide), ", one wide row")
    far = draw.tensor((2, odd))
    far[0] += 40
    far[1] = -far[1].abs() - 1
    y = probabilities((2, odd)).float()
    yield backward_of(width, cut(far), cut(y), ", g far above 0, and below")

    rows, columns = shape = 2, draw.integer(9, 14)
    g, y = draw.tensor(shape), probabilities(shape).float()
    yield backward_of(strides, g, y, ", contiguous", (columns, 1))
    yield backward_of(strides, cut(g, 1, rows), cut(y), ", g transposed")
    yield backward_of(strides, cut(g), cut(y, 1, rows + 1), ", y transposed")
    yield backward_of(strides, cut(g, columns + 1), cut(y, columns + 4), ", rows apart")
    yield backward_of(strides, cut(g, 2 * columns, 2), cut(y), ", every second of g")
    yield backward_of(strides, cut(g), cut(y, 3 * columns, 3), ", every third of y")
    yield backward_of(strides, cut(g), cut(y), "; the output transposed", (1, rows + 2))
    yield backward_of(strides, cut(g), cut(y), "; the output sliced", (2 * columns + 1, 2))
    one = cut(g)[:1]  # with room around it for whoever takes it for a matrix
    yield backward_of(strides, one[:, :1].expand(shape), cut(y), ", g expanded from one number")
    yield backward_of(strides, one.expand(shape), cut(y), ", g expanded from one row")

    for dtype in (torch.float16, torch.bfloat16, torch.float64):
        g, y = draw.tensor((2, odd)).to(dtype), probabilities((2, odd)).to(dtype)
        yield backward_of(dtypes, cut(g), cut(y), "")
        g, y = draw.tensor((2, 33)).to(dtype), probabilities((2, 33)).to(dtype)
        yield backward_of(dtypes, cut(g + 20, 1, 2), cut(y), ", g far above 0")

    for dtype in (torch.bfloat16, torch.float64):
        g, y = cut(draw.tensor((1, odd)).to(dtype)), cut(probabilities((1, odd)).to(dtype))
        yield compiles(gpu, (g, y, cut(y)), str(dtype).removeprefix("torch."))


def _backward(g, y, dx):
    @triton.jit
    def kernel(
        g_ptr,
        y_ptr,
        dx_ptr,
        columns,
        g_row,
        g_column,
        y_row,
        y_column,
        dx_row,
        dx_column,
        BLOCK: tl.constexpr,
        ACC: tl.constexpr,
    ):
        row = tl.program_id(0).to(tl.int64)
        column = tl.arange(0, BLOCK)
        inside = column < columns
        g = tl.load(g_ptr + row * g_row + column * g_column, mask=inside, other=0.0).to(ACC)
        y = tl.load(y_ptr + row * y_row + column * y_column, mask=inside, other=0.0).to(ACC)
        dot = tl.sum(g * y, 0)
        dx = y * (g - dot)
        tl.store(
            dx_ptr + row * dx_row + column * dx_column, dx.to(dx_ptr.dtype.element_ty), mask=inside
        )

    rows, columns = y.shape
    block = triton.next_power_of_2(columns)
    acc = tl.float64 if y.dtype == torch.float64 else tl.float32
    strides = (*g.stride(), *y.stride(), *dx.stride())
    launch(kernel, (rows,), g, y, dx, columns, *strides, BLOCK=block, ACC=acc)


def _misconception(name, explanation, earns, *edits):
    softmax_backward.misconception(name, explanation, earns=earns)(edited(_backward, *edits))


_misconception(
    "the diagonal alone",
    "each output is differentiated by its own input alone, as where there were no other columns.",
    1,
    ("y * (g - dot)", "y * (1.0 - y) * g"),
)
_misconception(
    "y lies as g does",
    "y is read with the strides of g.",
    3,
    ("(*g.stride(), *y.stride(), *dx.stride())", "(*g.stride(), *g.stride(), *dx.stride())"),
)
_misconception(
    "g lies as y does",
    "g is read with the strides of y.",
    3,
    ("(*g.stride(), *y.stride(), *dx.stride())", "(*y.stride(), *y.stride(), *dx.stride())"),
)
_misconception(
    "dx lies as y does",
    "the gradient is written with the strides of y.",
    4,
    ("(*g.stride(), *y.stride(), *dx.stride())", "(*g.stride(), *y.stride(), *y.stride())"),
)
_misconception(
    "the sum of g",
    "g is summed by itself, and not weighted with y.",
    1,
    ("tl.sum(g * y, 0)", "tl.sum(g, 0)"),
)
_misconception(
    "the forward's padding",
    "lanes beside the row are loaded as -inf, and take part in the sum.",
    1,
    ("g_column, mask=inside, other=0.0)", "g_column, mask=inside, other=-float('inf'))"),
)
_misconception(
    "the padding counts as 1",
    "lanes beside the row take part in the sum as ones.",
    1,
    ("g_column, mask=inside, other=0.0)", "g_column, mask=inside, other=1.0)"),
    ("y_column, mask=inside, other=0.0)", "y_column, mask=inside, other=1.0)"),
)
_misconception(
    "the outer y forgotten",
    "what is returned is the gradient before it is multiplied with y.",
    1,
    ("y * (g - dot)", "g - dot"),
)
_misconception(
    "a mean",
    "the weighted gradients are averaged and not summed.",
    1,
    ("tl.sum(g * y, 0)", "tl.sum(g * y, 0) / columns"),
)
_misconception(
    "a store without a mask",
    "the whole block is stored, over what lies beside the row.",
    1,
    ("dx.to(dx_ptr.dtype.element_ty), mask=inside)", "dx.to(dx_ptr.dtype.element_ty))"),
)
_misconception(
    "columns side by side",
    "g is read as where its columns lie side by side, whatever its column stride.",
    3,
    ("column * g_column", "column"),
)
_misconception(
    "float32 for all",
    "a float64 is computed in float32.",
    4,
    ("acc = tl.float64 if y.dtype == torch.float64 else tl.float32", "acc = tl.float32"),
)
_misconception(
    "half computed in half",
    "of half precision something is rounded before the end, as where it was not widened.",
    4,
    ("acc = tl.float64 if y.dtype == torch.float64 else tl.float32",
     "acc = {torch.float64: tl.float64, torch.float16: tl.float16}.get(y.dtype, tl.float32)"),
)  # fmt: skip
_misconception(
    "only the interpreter takes it",
    "the kernel reaches for what only the interpreter has, and no GPU can run it.",
    3,
    ("dot = tl.sum(g * y, 0)", "dot = float((g * y).handle.data.sum())"),
)


@softmax_backward.alternate("several rows a program, the sum distributed")
def _(g, y, dx):
    @triton.jit
    def kernel(
        g_ptr,
        y_ptr,
        dx_ptr,
        rows,
        columns,
        gr,
        gc,
        yr,
        yc,
        dr,
        dc,
        ROWS: tl.constexpr,
        BLOCK: tl.constexpr,
        ACC: tl.constexpr,
    ):
        row = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)[:, None]
        lane = tl.arange(0, BLOCK)[None, :]
        inside = (row < rows) & (lane < columns)
        g = tl.load(g_ptr + row * gr + lane * gc, mask=inside, other=0.0).to(ACC)
        y = tl.load(y_ptr + row * yr + lane * yc, mask=inside, other=0.0).to(ACC)
        dx = g * y - y * tl.sum(g * y, axis=1, keep_dims=True)
        tl.store(dx_ptr + row * dr + lane * dc, dx, mask=inside)

    rows, columns = y.shape
    strides = (*g.stride(), *y.stride(), *dx.stride())
    sizes = {"ROWS": 2, "BLOCK": triton.next_power_of_2(columns)}
    sizes["ACC"] = tl.float64 if y.dtype == torch.float64 else tl.float32
    launch(kernel, (triton.cdiv(rows, 2),), g, y, dx, rows, columns, *strides, **sizes)


@softmax_backward.alternate("in tiles, twice over the row")
def _(g, y, dx):
    @triton.jit
    def kernel(
        g_ptr, y_ptr, dx_ptr, columns, gr, gc, yr, yc, dr, dc, TILE: tl.constexpr, ACC: tl.constexpr
    ):
        row = tl.program_id(0).to(tl.int64)
        partial = tl.zeros((TILE,), ACC)
        for first in range(0, columns, TILE):
            column = first + tl.arange(0, TILE)
            g = tl.load(g_ptr + row * gr + column * gc, mask=column < columns, other=0.0).to(ACC)
            y = tl.load(y_ptr + row * yr + column * yc, mask=column < columns, other=0.0).to(ACC)
            partial += g * y
        for begin in range(0, columns, TILE):
            column = begin + tl.arange(0, TILE)
            g = tl.load(g_ptr + row * gr + column * gc, mask=column < columns, other=0.0).to(ACC)
            y = tl.load(y_ptr + row * yr + column * yc, mask=column < columns, other=0.0).to(ACC)
            dx = y * (g - tl.sum(partial, 0))
            tl.store(dx_ptr + row * dr + column * dc, dx, mask=column < columns)

    strides = (*g.stride(), *y.stride(), *dx.stride())
    acc = tl.float64 if y.dtype == torch.float64 else tl.float32
    launch(kernel, (y.shape[0],), g, y, dx, y.shape[1], *strides, TILE=128, ACC=acc)


softmax_backward.equivalent(
    (".to(tl.int64)", ""),
    (".to(tl.int64)", ".to(tl.int32)"),
    because="a matrix whose offsets need more than 32 bits has gigabytes",
)
softmax_backward.equivalent(
    (").to(ACC)", ")"),
    because="Triton's arithmetic with half precisions and the wider other goes on in float32",
)
softmax_backward.equivalent(
    (", other=0.0)", ")"),
    (", other=0.0)", ", other=1.0)"),
    because="the product is 0 where one of the two is",
)
softmax_backward.equivalent(
    (", 0)", ")"),
    (", 0)", ", -1)"),
    because="a row has one dimension",
)
softmax_backward.equivalent(
    ("dx.to(dx_ptr.dtype.element_ty)", "dx"),
    ("to(dx_ptr.dtype", "to(y_ptr.dtype"),
    because="a store converts by itself, and all have one dtype",
)
softmax_backward.equivalent(
    ("= y.shape", "= g.shape"),
    ("= y.shape", "= dx.shape"),
    ("y.shape[0]", "g.shape[0]"),
    ("y.shape[0]", "dx.shape[0]"),
    ("y.shape[1]", "g.shape[1]"),
    ("y.shape[1]", "dx.shape[1]"),
    ("y.dtype == ", "g.dtype == "),
    ("y.dtype == ", "dx.dtype == "),
    because="all have the same shape and dtype",
)
softmax_backward.equivalent(
    ("[None, :]", "[:,]"),
    ("[None, :]", "[None,]"),
    because="a block of lanes is stretched over the rows either way",
)
softmax_backward.equivalent(
    ("range(0, columns, TILE)", "range(0, columns + 1, TILE)"),
    because="a tile beyond the row is masked off",
)
softmax_backward.equivalent(
    ("(triton.cdiv(rows, 2),)", "(rows,)"),
    ("cdiv(rows, 2)", "cdiv(rows, 1)"),
    because="programs beyond the last row do nothing",
)
softmax_backward.equivalent(
    ("for begin in range(0, columns, TILE)", "for begin in range(0, columns)"),
    ("for begin in range(0, columns, TILE)", "for begin in range(0, columns, dc)"),
    because="tiles that overlap store the same numbers again",
)
softmax_backward.equivalent(
    ("row < rows", "row != rows"),
    of="several rows a program, the sum distributed",
    because="a program has two rows, and at most one of them is past the end",
)
