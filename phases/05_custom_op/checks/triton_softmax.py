"""Lab 05, exercise 2: A row softmax"""

import torch
import triton
import triton.language as tl

from utils.checks.exercise import Check, edited
from utils.drivers.custom_op import cut
from utils.instruments.launching import launch

from .shared import IN_A_KERNEL, compiles, launched, room_for, written

triton_softmax = Check(
    "triton_softmax",
    parts={
        "any width": 2,
        "any strides": 1,
        "minus infinity": 1,
        "half precision": 1,
        "double precision": 1,
        "compiles for a GPU": 1,
    },
    reads="Masks, and what lies beside the row",
    changes_inputs=True,
    by_hand=IN_A_KERNEL,
)


@triton_softmax.reference
def _(x, y):
    launched(x)
    y.copy_(torch.softmax(x.double(), -1))


@triton_softmax.cases
def _(draw):
    def softmax_of(part, x, shown, out=()):
        y = room_for(x, *out)
        dtype = str(x.dtype).removeprefix("torch.")
        words = f"{dtype} {tuple(x.shape)}, strides {x.stride()}{shown}"
        return written("triton_softmax", part, (x, y), torch.softmax(x.double(), -1), words, 1)

    width, strides, infinite, half, double, gpu = triton_softmax.parts
    odd = 2 * draw.integer(5, 20) + 1
    for shape in ((3, odd), (2, 1), (1, 2), (1, 3), (1, 17)):
        yield softmax_of(width, cut(draw.tensor(shape)), "")
    for columns in (16, 65):
        yield softmax_of(width, cut(draw.tensor((1, columns))), ", one row")
    x = draw.tensor((1, 600))
    x[0, -1] += 300  # a large one, late
    yield softmax_of(width, cut(x), "")
    yield softmax_of(width, cut(draw.tensor((1, 1100))), ", one wide row")
    yield softmax_of(width, cut(draw.tensor((0, odd))), ", no rows")
    far = draw.tensor((3, odd))
    far[0] -= 120
    far[1] += 300
    far[2] = 0
    yield softmax_of(width, cut(far), ", far below 0, far above, and all equal")
    lowest = torch.full((1, 5), -3e38)
    yield softmax_of(width, cut(lowest), ", all of them -3e38")

    x = draw.tensor((2, draw.integer(9, 14)))
    rows, columns = x.shape
    yield softmax_of(strides, x, ", contiguous", (columns, 1))
    yield softmax_of(strides, cut(x, columns + draw.integer(1, 5)), "", (columns, 1))
    yield softmax_of(strides, cut(x, 1, rows), ", transposed", (columns + 2, 1))
    yield softmax_of(strides, cut(x, 2 * columns + 1, 2), ", every second", (1, rows + 1))
    late = x.clone()
    late[:, -1] += 200
    yield softmax_of(strides, cut(late, 3 * columns, 3), ", every third, the last large")
    one = cut(x)[:1]  # with room around it for whoever takes it for a matrix
    yield softmax_of(strides, one.expand(rows, columns), ", expanded from one row")
    yield softmax_of(strides, one[:, :1].expand(rows, columns), ", expanded from one number")
    yield softmax_of(strides, cut(x), "; the output transposed", (1, rows))
    yield softmax_of(strides, cut(x), "; the output sliced", (3 * columns, 3))

    some = draw.tensor((4, draw.integer(9, 14)))
    some[0, 0] = some[1, -1] = some[2, 1:] = some[3, 1] = some[3, 2] = -float("inf")
    yield softmax_of(infinite, cut(some), ", some of it -inf")
    none = some[:2].clone()
    none[1] = -float("inf")
    yield softmax_of(infinite, cut(none), ", a row of -inf alone")
    yield softmax_of(infinite, cut(none[1:, :4]), ", a row of -inf alone, as wide as a block")
    late = draw.tensor((1, 1100))
    late[0, :1050] = -float("inf")  # all that a first tile holds
    yield softmax_of(infinite, cut(late), ", -inf in the first 1050 columns")

    for dtype in (torch.float16, torch.bfloat16):
        x = draw.tensor((3, 33))
        x[:, 4] = 6.3
        x[1, 9:] = -float("inf")
        x[2] += 300
        yield softmax_of(half, cut(x.to(dtype)), ", some of it -inf, some far above 0")
        yield softmax_of(half, cut(draw.tensor((2, odd)).to(dtype), 1, 2), ", transposed")

    yield softmax_of(double, cut(draw.tensor((2, odd), torch.float64)), "")
    large = draw.tensor((2, odd), torch.float64) + 900
    yield softmax_of(double, cut(large, 1, 2), ", far above 0, transposed")

    for dtype in (torch.bfloat16, torch.float64):
        x = cut(draw.tensor((1, odd), dtype))
        yield compiles(gpu, (x, cut(x)), str(dtype).removeprefix("torch."))


def _softmax(x, y):
    @triton.jit
    def kernel(
        x_ptr,
        y_ptr,
        columns,
        x_row,
        x_column,
        y_row,
        y_column,
        BLOCK: tl.constexpr,
        ACC: tl.constexpr,
    ):
        row = tl.program_id(0).to(tl.int64)
        column = tl.arange(0, BLOCK)
        inside = column < columns
        x = tl.load(x_ptr + row * x_row + column * x_column, mask=inside, other=-float("inf"))
        x = x.to(ACC)
        top = tl.max(x, 0)
        e = tl.exp(x - top)
        y = e / tl.sum(e, 0)
        tl.store(y_ptr + row * y_row + column * y_column, y.to(y_ptr.dtype.element_ty), mask=inside)

    rows, columns = x.shape
    block = triton.next_power_of_2(columns)
    acc = tl.float64 if x.dtype == torch.float64 else tl.float32
    launch(kernel, (rows,), x, y, columns, *x.stride(), *y.stride(), BLOCK=block, ACC=acc)


def _misconception(name, explanation, earns, *edits):
    triton_softmax.misconception(name, explanation, earns=earns)(edited(_softmax, *edits))


_misconception(
    "the padding counts as 0",
    "lanes beside the row take part as zeros, in the maximum and in the sum.",
    1,
    ("other=-float('inf')", "other=0.0"),
)
_misconception(
    "no maximum",
    "nothing is subtracted before `exp`, which overflows for large numbers.",
    2,
    ("tl.exp(x - top)", "tl.exp(x)"),
)
_misconception(
    "columns side by side",
    "the input is read as where its columns lie side by side, whatever its column stride.",
    4,
    ("column * x_column", "column"),
)
_misconception(
    "output columns side by side",
    "the output is written as where its columns lie side by side, whatever its column stride.",
    6,
    ("column * y_column", "column"),
)
_misconception(
    "one layout for both",
    "the output is written with the strides of the input.",
    4,
    ("*x.stride(), *y.stride()", "*x.stride(), *x.stride()"),
)
_misconception(
    "rows back to back",
    "a row is taken to begin where the last one ended, as in a contiguous matrix.",
    1,
    ("row * x_row", "row * columns"),
)
_misconception(
    "a store without a mask",
    "the whole block is stored, over what lies beside the row.",
    1,
    ("y.to(y_ptr.dtype.element_ty), mask=inside)", "y.to(y_ptr.dtype.element_ty))"),
)
_misconception(
    "a load beside the row",
    "numbers that lie beside the row are loaded, and count.",
    1,
    (", mask=inside, other=-float('inf'))", ")"),
)
_misconception(
    "minus infinity is 0",
    "a row of nothing but -inf gets numbers, where torch says NaN.",
    6,
    ("e / tl.sum(e, 0)", "e / tl.sum(e, 0)\n        y = tl.where(top == -float('inf'), 0.0, y)"),
)
_misconception(
    "half computed in half",
    "what `exp` gives is rounded to half precision before it is summed and divided.",
    6,
    ("tl.exp(x - top)", "tl.exp(x - top).to(x_ptr.dtype.element_ty)"),
)
_misconception(
    "float32 for all",
    "a float64 is computed in float32.",
    6,
    ("x = x.to(ACC)", "x = x.to(tl.float32)"),
)
_misconception(
    "only the interpreter takes it",
    "the kernel reaches for what only the interpreter has, and no GPU can run it.",
    6,
    ("top = tl.max(x, 0)", "top = float(x.handle.data.max())"),
)


@triton_softmax.alternate("several rows a program")
def _(x, y):
    @triton.jit
    def kernel(
        x_ptr,
        y_ptr,
        rows,
        columns,
        xr,
        xc,
        yr,
        yc,
        ROWS: tl.constexpr,
        BLOCK: tl.constexpr,
        ACC: tl.constexpr,
    ):
        row = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)[:, None]
        lane = tl.arange(0, BLOCK)[None, :]
        inside = (row < rows) & (lane < columns)
        wide = tl.load(x_ptr + row * xr + lane * xc, mask=inside, other=-float("inf")).to(ACC)
        e = tl.exp(wide - tl.max(wide, axis=1, keep_dims=True))
        tl.store(y_ptr + row * yr + lane * yc, e / tl.sum(e, axis=1, keep_dims=True), mask=inside)

    rows, columns = x.shape
    sizes = {"ROWS": 2, "BLOCK": triton.next_power_of_2(columns)}
    sizes["ACC"] = tl.float64 if x.dtype == torch.float64 else tl.float32
    launch(kernel, (triton.cdiv(rows, 2),), x, y, rows, columns, *x.stride(), *y.stride(), **sizes)


@triton_softmax.alternate("in tiles, three times over the row")
def _(x, y):
    @triton.jit
    def kernel(x_ptr, y_ptr, columns, xr, xc, yr, yc, TILE: tl.constexpr, ACC: tl.constexpr):
        row = tl.program_id(0).to(tl.int64)
        top = tl.full((TILE,), -float("inf"), ACC)
        for begin in range(0, columns, TILE):
            lane = begin + tl.arange(0, TILE)
            place = x_ptr + row * xr + lane * xc
            x = tl.load(place, mask=lane < columns, other=-float("inf")).to(ACC)
            top = tl.maximum(top, x)
        top = tl.max(top, 0)
        total = tl.zeros((TILE,), ACC)
        for first in range(0, columns, TILE):
            column = first + tl.arange(0, TILE)
            place = x_ptr + row * xr + column * xc
            x = tl.load(place, mask=column < columns, other=-float("inf")).to(ACC)
            total += tl.exp(x - top)
        for start in range(0, columns, TILE):
            column = start + tl.arange(0, TILE)
            place = x_ptr + row * xr + column * xc
            x = tl.load(place, mask=column < columns).to(ACC)
            y = tl.exp(x - top) / tl.sum(total, 0)
            tl.store(y_ptr + row * yr + column * yc, y, mask=column < columns)

    acc = tl.float64 if x.dtype == torch.float64 else tl.float32
    strides = (*x.stride(), *y.stride())
    launch(kernel, (x.shape[0],), x, y, x.shape[1], *strides, TILE=128, ACC=acc)


triton_softmax.equivalent(
    (".to(tl.int64)", ""),
    (".to(tl.int64)", ".to(tl.int32)"),
    because="a matrix whose offsets need more than 32 bits has gigabytes",
)
triton_softmax.equivalent(
    (", 0)", ")"),
    (", 0)", ", -1)"),
    because="a row has one dimension",
)
triton_softmax.equivalent(
    ("= x.shape", "= y.shape"),
    ("x.shape[0]", "y.shape[0]"),
    ("x.shape[1]", "y.shape[1]"),
    ("x.dtype == ", "y.dtype == "),
    ("y.to(y_ptr.dtype", "y.to(x_ptr.dtype"),
    because="both have the same shape and dtype",
)
triton_softmax.equivalent(
    ("y.to(y_ptr.dtype.element_ty)", "y"),
    because="a store converts by itself",
)
triton_softmax.equivalent(
    (").to(ACC)", ")"),
    because="Triton's maximum widens halves to float32 by itself, and the difference with it",
)
triton_softmax.equivalent(
    ("[None, :]", "[:,]"),
    ("[None, :]", "[None,]"),
    because="a block of lanes is stretched over the rows either way",
)
triton_softmax.equivalent(
    ("(triton.cdiv(rows, 2),)", "(rows,)"),
    ("cdiv(rows, 2)", "cdiv(rows, 1)"),
    because="programs beyond the last row do nothing",
)
triton_softmax.equivalent(
    ("range(0, columns, TILE)", "range(0, columns + 1, TILE)"),
    because="a tile beyond the row is masked off",
)
triton_softmax.equivalent(
    ("begin in range(0, columns, TILE)", "begin in range(0, columns)"),
    ("begin in range(0, columns, TILE)", "begin in range(0, columns, yc)"),
    ("start in range(0, columns, TILE)", "start in range(0, columns)"),
    ("start in range(0, columns, TILE)", "start in range(0, columns, yc)"),
    because="a maximum may be taken twice, and a number be written twice",
)
triton_softmax.equivalent(
    ("row < rows", "row != rows"),
    because="with two rows a program there is at most one that does not exist",
)
