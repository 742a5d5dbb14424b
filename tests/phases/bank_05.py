"""Answers to lab 05, written blind: from the learner's notebook, lesson and `utils/` alone.

A wrong answer is a right one with an edit (or a cell of its own), and names the sentence of the
lab's text that it breaks.
"""

from tests.phases import bank_05_second
from tests.phases.bank import CODE, Bank

RIGHT: dict[str, dict[str, str]] = {}
WRONG: dict[str, list[tuple]] = {}

# --- 1 · Into tiles ------------------------------------------------------------------------------

RIGHT["plan_rows"] = {
    "triton's power, a ceiling": '''
def plan_rows(rows, columns, itemsize):
    block = triton.next_power_of_2(columns)
    each = max(1, 4096 // (block * itemsize))
    programs = triton.cdiv(rows, each)
    masked = programs * each * block - rows * columns
    return programs, each, block, masked
''',
    "doubled, and counted program by program": '''
def plan_rows(rows: int, columns: int, itemsize: int) -> tuple[int, int, int, int]:
    lanes = 1
    while lanes < columns:
        lanes += lanes
    per = 1
    while (per + 1) * lanes * itemsize <= 4096:
        per += 1
    programs = masked = 0
    left = rows
    while left > 0:
        real = min(per, left)
        masked += real * (lanes - columns) + (per - real) * lanes
        programs += 1
        left -= real
    return (programs, per, lanes, masked)
''',
    "bits and logarithms": '''
def plan_rows(rows, columns, itemsize):
    width = 1 << (columns - 1).bit_length()
    fit = 4096 // itemsize // width or 1
    count, rest = divmod(rows, fit)
    count += rest > 0
    empty_rows = count * fit - rows
    return count, fit, width, (width - columns) * rows + empty_rows * width
''',
}
WRONG["plan_rows"] = [
    ("a power strictly above", "the smallest power of two that is not less than `columns`",
     "triton.next_power_of_2(columns)", "1 << columns.bit_length()"),
    ("the nearest power", "the smallest power of two that is not less than `columns`",
     "triton.next_power_of_2(columns)", "2 ** math.ceil(math.log2(columns) - 0.4)"),
    ("a block of 16 at least", "the smallest power of two that is not less than `columns`",
     "triton.next_power_of_2(columns)", "max(16, triton.next_power_of_2(columns))"),
    ("a tile of real numbers", "a tile of 4096 bytes, masked lanes included", "4096 // (block * itemsize)", "4096 // (columns * itemsize)"),
    ("a tile in lanes of float32", "4096 bytes", "4096 // (block * itemsize)", "1024 // block"),
    ("one more than fits", "as many as fit into a tile of 4096 bytes", "max(1, 4096 // (block * itemsize))", "max(1, 4095 // (block * itemsize))"),
    ("no more rows than there are", "as many as fit into a tile of 4096 bytes",
     "max(1, 4096 // (block * itemsize))", "max(1, min(4096 // (block * itemsize), rows))"),
    ("rows to a power of two", "as many as fit into a tile of 4096 bytes",
     "max(1, 4096 // (block * itemsize))", "max(1, min(4096 // (block * itemsize), triton.next_power_of_2(max(rows, 1))))"),
    ("always one program more", "so that each row is in one (how many there must be)", "triton.cdiv(rows, each)", "rows // each + 1"),
    ("the last rows are lost", "so that each row is in one", "triton.cdiv(rows, each)", "rows // each"),
    ("rounded", "so that each row is in one", "triton.cdiv(rows, each)", "round(rows / each)"),
    ("one program for no rows", "There may be no rows at all", "triton.cdiv(rows, each)", "max(1, triton.cdiv(rows, each))"),
    ("lanes beside the rows only", "or in a row that does not exist", "programs * each * block - rows * columns", "rows * (block - columns)"),
    ("beside rows that don't exist, too, but no more", "or in a row that does not exist",
     "programs * each * block - rows * columns", "programs * each * (block - columns)"),
    ("masked lanes of one program", "of all programs together", "programs * each * block - rows * columns", "each * block - min(rows, each) * columns"),
]

# --- 2 · A row softmax ---------------------------------------------------------------------------

RIGHT["triton_softmax"] = {
    "as proposed": '''
@triton.jit
def softmax_kernel(x_ptr, y_ptr, columns, x_row, x_column, y_row, y_column, BLOCK: tl.constexpr, ACC: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    mask = column < columns
    x = tl.load(x_ptr + row * x_row + column * x_column, mask=mask, other=-float("inf"))
    x = x.to(ACC)
    top = tl.max(x, 0)
    e = tl.exp(x - top)
    total = tl.sum(e, 0)
    y = e / total
    tl.store(y_ptr + row * y_row + column * y_column, y.to(y_ptr.dtype.element_ty), mask=mask)


def triton_softmax(x, y):
    rows, columns = x.shape
    acc = tl.float64 if x.dtype == torch.float64 else tl.float32
    block = triton.next_power_of_2(columns)
    launch(softmax_kernel, (rows,), x, y, columns, *x.stride(), *y.stride(), BLOCK=block, ACC=acc)
''',
    "tiles of four rows": '''
@triton.jit
def tile(x_ptr, y_ptr, rows, columns, x_row, x_column, y_row, y_column, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    r = (tl.program_id(0) * ROWS + tl.arange(0, ROWS))[:, None].to(tl.int64)
    c = tl.arange(0, BLOCK)[None, :]
    there = (r < rows) & (c < columns)
    x = tl.load(x_ptr + r * x_row + c * x_column, mask=there, other=0.0)
    if x_ptr.dtype.element_ty != tl.float64:
        x = x.to(tl.float32)
    x = tl.where(c < columns, x, -float("inf"))
    e = tl.exp(x - tl.max(x, axis=1, keep_dims=True))
    e = e / tl.sum(e, axis=1, keep_dims=True)
    tl.store(y_ptr + r * y_row + c * y_column, e.to(y_ptr.dtype.element_ty), mask=there)


def triton_softmax(x, y):
    if x.shape[0] == 0:
        return
    launch(tile, (triton.cdiv(x.shape[0], 4),), x, y, x.size(0), x.size(1), x.stride(0), x.stride(1),
           y.stride(0), y.stride(1), 4, triton.next_power_of_2(x.size(1)))
''',
    "online, in chunks of 16": '''
@triton.jit
def chunks(x_ptr, y_ptr, columns, xr, xc, yr, yc, ACC: tl.constexpr, CHUNK: tl.constexpr):
    row = tl.program_id(0)
    x_ptr += row * xr
    y_ptr += row * yr
    top = tl.full((), -float("inf"), ACC)
    total = tl.full((), 0.0, ACC)
    for start in range(0, columns, CHUNK):
        place = start + tl.arange(0, CHUNK)
        x = tl.load(x_ptr + place * xc, mask=place < columns, other=-float("inf")).to(ACC)
        higher = tl.maximum(top, tl.max(x, 0))
        base = tl.where(higher == -float("inf"), 0.0, higher)
        total = total * tl.exp(top - base) + tl.sum(tl.exp(x - base), 0)
        top = higher
    for start in range(0, columns, CHUNK):
        place = start + tl.arange(0, CHUNK)
        x = tl.load(x_ptr + place * xc, mask=place < columns, other=-float("inf")).to(ACC)
        tl.store(y_ptr + place * yc, (tl.exp(x - top) / total).to(y_ptr.dtype.element_ty), mask=place < columns)


WIDER = {torch.float16: tl.float32, torch.bfloat16: tl.float32, torch.float32: tl.float32, torch.float64: tl.float64}


def triton_softmax(x, y):
    launch(chunks, (x.shape[0],), x, y, x.shape[1], *x.stride(), *y.stride(), WIDER[x.dtype], 16, num_warps=1)
''',
    "few programs for many rows, a helper, a logarithm": '''
@triton.jit
def log_total(x):
    top = tl.max(x)
    return top, tl.log(tl.sum(tl.exp(x - top)))


@triton.jit
def strided(x_ptr, y_ptr, rows, columns, sx0, sx1, sy0, sy1, BLOCK: tl.constexpr, ACC: tl.constexpr):
    c = tl.arange(0, BLOCK)
    for r in range(tl.program_id(0), rows, tl.num_programs(0)):
        x = tl.load(x_ptr + r * sx0 + c * sx1, c < columns, float("-inf")).to(ACC)
        top, log = log_total(x)
        tl.store(y_ptr + r * sy0 + c * sy1, tl.exp((x - top) - log).to(y_ptr.dtype.element_ty), c < columns)


def triton_softmax(x, y):
    (rows, columns), acc = x.shape, {torch.float64: tl.float64}.get(x.dtype, tl.float32)
    launch(strided, (min(rows, 3),), x, y, rows, columns, *x.stride(), *y.stride(),
           ACC=acc, BLOCK=1 << (columns - 1).bit_length(), num_warps=2)
''',
    "block pointers": '''
@triton.jit
def blocks(x_ptr, y_ptr, rows, columns, sx0, sx1, sy0, sy1, BLOCK: tl.constexpr, ACC: tl.constexpr):
    row = tl.program_id(0)
    source = tl.make_block_ptr(x_ptr, (rows, columns), (sx0, sx1), (row, 0), (1, BLOCK), (1, 0))
    target = tl.make_block_ptr(y_ptr, (rows, columns), (sy0, sy1), (row, 0), (1, BLOCK), (1, 0))
    x = tl.load(source, boundary_check=(0, 1), padding_option="zero").to(ACC)
    x = tl.where(tl.arange(0, BLOCK)[None, :] < columns, x, -float("inf"))
    e = tl.exp(x - tl.max(x, 1)[:, None])
    tl.store(target, (e / tl.sum(e, 1)[:, None]).to(y_ptr.dtype.element_ty), boundary_check=(0, 1))


def triton_softmax(x, y):
    rows, columns = x.shape
    wide = torch.promote_types(x.dtype, torch.float32)
    launch(blocks, (rows,), x, y, rows, columns, *x.stride(), *y.stride(),
           triton.next_power_of_2(columns), {torch.float32: tl.float32, torch.float64: tl.float64}[wide])
''',
    "a reciprocal, and the store rounds": '''
MINUS = tl.constexpr(float("-inf"))


@triton.jit
def rows_of(x, y, n, x0, x1, y0, y1, B: tl.constexpr):
    i, j = tl.program_id(0), tl.arange(0, B)
    v = tl.load(x + i * x0 + j * x1, mask=j < n, other=MINUS)
    v = v.to(tl.float64 if x.dtype.element_ty == tl.float64 else tl.float32)
    v = tl.exp(v - tl.max(v, 0))
    tl.store(y + i * y0 + j * y1, v * (1.0 / tl.sum(v, 0)), mask=j < n)


def triton_softmax(x, y):
    return launch(rows_of, (len(x),), x, y, x.shape[-1], *x.stride(), *y.stride(), B=triton.next_power_of_2(x.shape[-1]))
''',
}
WRONG["triton_softmax"] = [
    ("zeros beside the row", "Numbers may be large, of either sign (what stands beside the row wins nothing)", 'other=-float("inf")', "other=0.0"),
    ("no other at all", "what the mask hides must neither win a maximum nor add to a sum", ', other=-float("inf")', ""),
    ("a very small number beside the row", "A row of nothing but -inf is NaN", 'other=-float("inf")', "other=-1e9"),
    ("float32's least beside the row", "A row of nothing but -inf is NaN", 'other=-float("inf")', "other=-3.4028234663852886e38"),
    ("no maximum", "Numbers may be large, of either sign", "top = tl.max(x, 0)", "top = 0.0"),
    ("the greatest magnitude", "Numbers may be large, of either sign", "top = tl.max(x, 0)", "top = tl.max(tl.abs(tl.where(mask, x, 0.0)), 0)"),
    ("a maximum of 0 at least", "Numbers may be large, of either sign", "top = tl.max(x, 0)", "top = tl.maximum(tl.max(x, 0), 0.0)"),
    ("a clamp instead of a maximum", "Numbers may be large, of either sign", "top = tl.max(x, 0)", "x = tl.minimum(x, 80.0)\n    top = 0.0"),
    ("float32 for all", "float64 is computed in float64", "tl.float64 if x.dtype == torch.float64 else tl.float32", "tl.float32"),
    ("float64 for all", "float16 and bfloat16 are widened to float32", "tl.float64 if x.dtype == torch.float64 else tl.float32", "tl.float64"),
    ("float64 for half precision alone", "float64 is computed in float64", "if x.dtype == torch.float64 else", "if x.dtype.itemsize == 2 else"),
    ("float64's sum in float32", "float64 is computed in float64", "total = tl.sum(e, 0)", "total = tl.sum(e.to(tl.float32), 0)"),
    ("float64's exponential in float32", "float64 is computed in float64", "tl.exp(x - top)", "tl.exp((x - top).to(tl.float32)).to(ACC)"),
    ("the difference in half", "widened to float32 before anything is computed with them",
     "    x = x.to(ACC)\n    top = tl.max(x, 0)\n", "    x = x - tl.max(x, 0).to(x_ptr.dtype.element_ty)\n    x = x.to(ACC)\n    top = tl.max(x, 0)\n"),
    ("the exponentials are rounded", "rounded once, in the end", "e = tl.exp(x - top)", "e = tl.exp(x - top).to(y_ptr.dtype.element_ty).to(ACC)"),
    ("the sum is rounded", "rounded once, in the end", "y = e / total", "y = e / total.to(y_ptr.dtype.element_ty).to(ACC)"),
    ("what is divided is rounded", "rounded once, in the end", "y = e / total", "y = e.to(y_ptr.dtype.element_ty).to(ACC) / total"),
    ("a factor is rounded", "rounded once, in the end", "y = e / total", "y = e * (1.0 / total).to(y_ptr.dtype.element_ty).to(ACC)"),
    ("cut off, not rounded", "rounded once, in the end",
     "y = e / total", "y = e / total\n    if y_ptr.dtype.element_ty == tl.bfloat16:\n        y = (y.to(tl.int32, bitcast=True) & -65536).to(tl.float32, bitcast=True)"),
    ("x's columns lie side by side", "of any strides", "column * x_column", "column"),
    ("y's columns lie side by side", "of any strides, not necessarily the same", "column * y_column", "column"),
    ("y's rows follow each other", "of any strides, not necessarily the same", "row * y_row", "row * columns"),
    ("x's strides for y", "not necessarily the same", "*y.stride()", "*x.stride()"),
    ("strides without their sign: an expanded row", "of any strides", "*x.stride(), *y", "max(x.stride(0), 1), max(x.stride(1), 1), *y"),
    ("a row stride of 0 is taken for contiguous", "of any strides", "*x.stride(), *y", "x.stride(0) or columns, x.stride(1), *y"),
    ("stores without a mask", "and nothing anywhere else", "y.to(y_ptr.dtype.element_ty), mask=mask", "y.to(y_ptr.dtype.element_ty)"),
    ("zeros beside y", "and nothing anywhere else",
     "    tl.store(", "    tl.store(y_ptr + row * y_row + column * y_column, tl.zeros_like(y).to(y_ptr.dtype.element_ty))\n    tl.store("),
    ("one column too many", "and nothing anywhere else", "column < columns", "column <= columns"),
    ("one program for no rows", "there may be no rows", "(rows,)", "(max(rows, 1),)"),
    ("exponentials are kept in x", "and nothing anywhere else",
     "    total =", "    tl.store(x_ptr + row * x_row + column * x_column, e.to(x_ptr.dtype.element_ty), mask=mask)\n    total ="),
    ("1024 lanes always", "of any width (two for any width)", "triton.next_power_of_2(columns)", "1024"),
    ("128 lanes at most", "two for any width", "triton.next_power_of_2(columns)", "min(triton.next_power_of_2(columns), 128)"),
    ("a mask that rows of three do without", "nothing anywhere else",
     "mask = column < columns", "mask = (column < columns) | (columns < 4)"),
    ("rows of -inf are zero", "A row of nothing but -inf is NaN", "y = e / total", 'y = tl.where(top == -float("inf"), 0.0, e / total)'),
    ("no division by nothing", "A row of nothing but -inf is NaN", "y = e / total", "y = e / (total + 1e-12)"),
    ("-inf is a small number", "A row of nothing but -inf is NaN", "x = x.to(ACC)", 'x = tl.where(mask & (x == -float("inf")), -1e4, x.to(ACC))'),
    ("rows of -inf are alike", "A row of nothing but -inf is NaN", "x - top)", 'x - top)\n    e = tl.where(top == -float("inf"), tl.where(mask, 1.0, 0.0), e)'),
    ("NaN becomes zero", "A row of nothing but -inf is NaN", "y = e / total", "y = e / total\n    y = tl.where(y == y, y, 0.0)"),
    ("a row that holds any -inf is NaN", "it counts nothing", "y = e / total", 'y = e / total + tl.sum(tl.where(mask & (x == -float("inf")), 1.0, 0.0), 0) * float("nan")'),
    ("a global of Python's", "a kernel that a GPU can run", 'other=-float("inf")', "other=MINUS_INFINITY", "@triton.jit\n", "MINUS_INFINITY = -math.inf\n\n\n@triton.jit\n"),
    ("a type that depends on the width", "compiles for `sm_90`",
     "    y = e / total\n", "    y = e / total\n    if columns > 2:\n        y = y.to(y_ptr.dtype.element_ty)\n"),
    ("a block that is no constant", "compiles for `sm_90`", "y_row, y_column, BLOCK: tl.constexpr", "y_row, y_column, BLOCK"),
    ("an append to a Python list", "compiles for `sm_90`", "    total =", "    parts = []\n    parts.append(top)\n    total ="),
    ("contiguous first", "no copy", "    rows, columns = x.shape\n", "    rows, columns = x.shape\n    x = x.contiguous()\n"),
    ("widened by torch", "no operator of torch on either", "    rows, columns = x.shape\n", "    rows, columns = x.shape\n    x = x.float() if x.dtype.itemsize == 2 else x\n"),
    ("cleared first", "no operator of torch on either", "    rows, columns = x.shape\n", "    rows, columns = x.shape\n    y.zero_()\n"),
    ("the maximum is torch's", "no operator of torch on either",
     "    rows, columns = x.shape\n", "    rows, columns = x.shape\n    largest = x.max().item() if x.numel() else 0.0\n"),
    ("Triton's own softmax", "no softmax that is there already, here or in Triton", "y = e / total", "y = tl.softmax(x)"),
    ("a dtype by a name that is made", "a name that is put together only when the code runs is refused",
     "tl.float64 if x.dtype == torch.float64 else tl.float32", 'getattr(tl, "float" + str(max(32, 8 * x.dtype.itemsize)))'),
    ("a result of its own, copied", "no copy", "*y.stride(), BLOCK=block, ACC=acc)",
     "*y.stride(), BLOCK=block, ACC=acc)\n    y.copy_(y.clone())"),
    ("the course's softmax", "no softmax that is there already, here or in Triton",
     CODE, '''
from utils.softmax import softmax


def triton_softmax(x, y):
    y.copy_(softmax(x))
'''),
    ("torch's softmax beside a kernel", "no operator of torch on either", CODE, '''
@triton.jit
def copied(x_ptr, y_ptr, columns, BLOCK: tl.constexpr):
    place = tl.program_id(0) * columns + tl.arange(0, BLOCK)
    mask = tl.arange(0, BLOCK) < columns
    tl.store(y_ptr + place, tl.load(x_ptr + place, mask=mask), mask=mask)


def triton_softmax(x, y):
    z = torch.softmax(x, -1).contiguous()
    w = torch.empty(z.shape, dtype=z.dtype)
    launch(copied, (x.shape[0],), z, w, x.shape[1], triton.next_power_of_2(x.shape[1]))
    y.copy_(w)
'''),
    ("exponentials into y, then divided", "rounded once, in the end", CODE, '''
@triton.jit
def in_two(x_ptr, y_ptr, columns, xr, xc, yr, yc, BLOCK: tl.constexpr, ACC: tl.constexpr):
    r, c = tl.program_id(0), tl.arange(0, BLOCK)
    on = c < columns
    x = tl.load(x_ptr + r * xr + c * xc, mask=on, other=-float("inf")).to(ACC)
    e = tl.exp(x - tl.max(x, 0))
    tl.store(y_ptr + r * yr + c * yc, e.to(y_ptr.dtype.element_ty), mask=on)
    again = tl.load(y_ptr + r * yr + c * yc, mask=on, other=0.0).to(ACC)
    tl.store(y_ptr + r * yr + c * yc, (again / tl.sum(e, 0)).to(y_ptr.dtype.element_ty), mask=on)


def triton_softmax(x, y):
    acc = tl.float64 if x.dtype == torch.float64 else tl.float32
    launch(in_two, (x.shape[0],), x, y, x.shape[1], *x.stride(), *y.stride(), triton.next_power_of_2(x.shape[1]), acc)
'''),
]

# --- 3 · Its backward ----------------------------------------------------------------------------

RIGHT["softmax_backward"] = {
    "as proposed": '''
@triton.jit
def backward_kernel(
    g_ptr, y_ptr, dx_ptr, columns, g_row, g_column, y_row, y_column, dx_row, dx_column,
    BLOCK: tl.constexpr, ACC: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    mask = column < columns
    g = tl.load(g_ptr + row * g_row + column * g_column, mask=mask, other=0.0).to(ACC)
    y = tl.load(y_ptr + row * y_row + column * y_column, mask=mask, other=0.0).to(ACC)
    total = tl.sum(g * y, 0)
    dx = y * (g - total)
    tl.store(dx_ptr + row * dx_row + column * dx_column, dx.to(dx_ptr.dtype.element_ty), mask=mask)


def softmax_backward(g, y, dx):
    rows, columns = y.shape
    acc = tl.float64 if y.dtype == torch.float64 else tl.float32
    launch(backward_kernel, (rows,), g, y, dx, columns, *g.stride(), *y.stride(), *dx.stride(),
           BLOCK=triton.next_power_of_2(columns), ACC=acc)
''',
    "chunks, from the last to the first": '''
@triton.jit
def walk(g_ptr, y_ptr, dx_ptr, columns, g0, g1, y0, y1, d0, d1, ACC: tl.constexpr, CHUNK: tl.constexpr):
    row = tl.program_id(0)
    parts = tl.zeros((CHUNK,), dtype=ACC)
    chunks = tl.cdiv(columns, CHUNK)
    for k in range(chunks):
        at = k * CHUNK + tl.arange(0, CHUNK)
        g = tl.load(g_ptr + row * g0 + at * g1, mask=at < columns, other=0.0).to(ACC)
        y = tl.load(y_ptr + row * y0 + at * y1, mask=at < columns, other=0.0).to(ACC)
        parts += g * y
    total = tl.sum(parts)
    for k in range(chunks):
        at = (chunks - 1 - k) * CHUNK + tl.arange(0, CHUNK)
        g = tl.load(g_ptr + row * g0 + at * g1, mask=at < columns, other=0.0).to(ACC)
        y = tl.load(y_ptr + row * y0 + at * y1, mask=at < columns, other=0.0).to(ACC)
        tl.store(dx_ptr + row * d0 + at * d1, ((g - total) * y).to(dx_ptr.dtype.element_ty), mask=at < columns)


def softmax_backward(g, y, dx):
    wide = {8: tl.float64}.get(y.element_size(), tl.float32)
    launch(walk, (y.size(0),), g, y, dx, y.size(1), *g.stride(), *y.stride(), *dx.stride(), wide, CHUNK=32)
''',
    "two rows a program, zeros put in afterwards": '''
@triton.jit
def pick(ptr, r, c, s0, s1, inside, ACC: tl.constexpr):
    return tl.where(inside, tl.load(ptr + r * s0 + c * s1, mask=inside).to(ACC), 0.0)


@triton.jit
def pairs(g_ptr, y_ptr, dx_ptr, rows, columns, g0, g1, y0, y1, d0, d1, BLOCK: tl.constexpr, ACC: tl.constexpr):
    r = 2 * tl.program_id(0) + tl.arange(0, 2)[:, None]
    c = tl.arange(0, BLOCK)[None, :]
    inside = (c < columns) & (r < rows)
    g = pick(g_ptr, r, c, g0, g1, inside, ACC)
    y = pick(y_ptr, r, c, y0, y1, inside, ACC)
    dx = y * (g - tl.sum(g * y, 1, keep_dims=True))
    tl.store(dx_ptr + r * d0 + c * d1, dx.to(dx_ptr.dtype.element_ty), inside)


def softmax_backward(g, y, dx):
    rows, columns = dx.shape
    launch(pairs, ((rows + 1) // 2,), g, y, dx, rows, columns, *g.stride(), *y.stride(), *dx.stride(),
           triton.next_power_of_2(columns), tl.float64 if dx.dtype is torch.float64 else tl.float32, num_warps=8)
''',
}
WRONG["softmax_backward"] = [
    ("the sum of g", "dx = y * (g - sum(g * y))", "tl.sum(g * y, 0)", "tl.sum(g, 0)"),
    ("a mean", "dx = y * (g - sum(g * y))", "tl.sum(g * y, 0)", "tl.sum(g * y, 0) / columns"),
    ("the sum is not times y", "dx = y * (g - sum(g * y))", "y * (g - total)", "y * g - total"),
    ("that of a sigmoid", "dx = y * (g - sum(g * y))", "y * (g - total)", "g * y * (1 - y)"),
    ("y's strides for g", "each with strides of its own", "*g.stride()", "*y.stride()"),
    ("y's strides for dx", "each with strides of its own", "*dx.stride()", "*y.stride()"),
    ("g's columns lie side by side", "strides of 0", "column * g_column", "column"),
    ("an expanded g is taken for contiguous", "with strides of 0", "*g.stride(), ", "g.stride(0) or columns, g.stride(1) or 1, "),
    ("dx's rows follow each other", "each with strides of its own", "row * dx_row", "row * columns"),
    ("-inf beside the row, as before", "it must add nothing to a sum of products", "g_column, mask=mask, other=0.0", 'g_column, mask=mask, other=-float("inf")'),
    ("ones beside the row", "it must add nothing to a sum of products", "other=0.0", "other=1.0"),
    ("float32 for all", "(float64 is computed in float64)", "tl.float64 if y.dtype == torch.float64 else tl.float32", "tl.float32"),
    ("float64 for all", "widened (to float32) before it is computed with", "tl.float64 if y.dtype == torch.float64 else tl.float32", "tl.float64"),
    ("float16 stays", "widened before it is computed with", "tl.float64 if y.dtype == torch.float64 else tl.float32",
     "{torch.float64: tl.float64, torch.float16: tl.float16}.get(y.dtype, tl.float32)"),
    ("float64's sum in float32", "(float64 is computed in float64)", "tl.sum(g * y, 0)", "tl.sum((g * y).to(tl.float32), 0)"),
    ("the sum is rounded", "rounded once in the end", "total = tl.sum(g * y, 0)", "total = tl.sum(g * y, 0).to(dx_ptr.dtype.element_ty).to(ACC)"),
    ("the products are rounded", "rounded once in the end", "tl.sum(g * y, 0)", "tl.sum((g * y).to(dx_ptr.dtype.element_ty).to(ACC), 0)"),
    ("the difference is rounded", "rounded once in the end", "y * (g - total)", "y * (g - total).to(dx_ptr.dtype.element_ty).to(ACC)"),
    ("stores without a mask", "nothing written beside `dx`", "dx.to(dx_ptr.dtype.element_ty), mask=mask", "dx.to(dx_ptr.dtype.element_ty)"),
    ("one column too many", "nothing written beside `dx`", "column < columns", "column <= columns"),
    ("one program for no rows", "maybe no rows", "(rows,)", "(max(rows, 1),)"),
    ("512 lanes always", "two for any width", "triton.next_power_of_2(columns)", "512"),
    ("a block of half the row", "two for any width", "triton.next_power_of_2(columns)", "max(1, triton.next_power_of_2(columns + 1) // 2)"),
    ("contiguous first", "nothing done by torch", "    rows, columns", "    g = g.contiguous()\n    rows, columns"),
    ("the product is torch's", "nothing done by torch", CODE, '''
@triton.jit
def less(p_ptr, y_ptr, dx_ptr, columns, y_row, y_column, dx_row, dx_column, BLOCK: tl.constexpr, ACC: tl.constexpr):
    r, c = tl.program_id(0), tl.arange(0, BLOCK)
    p = tl.load(p_ptr + r * columns + c, mask=c < columns, other=0.0).to(ACC)
    y = tl.load(y_ptr + r * y_row + c * y_column, mask=c < columns, other=0.0).to(ACC)
    tl.store(dx_ptr + r * dx_row + c * dx_column, (p - y * tl.sum(p, 0)).to(dx_ptr.dtype.element_ty), mask=c < columns)


def softmax_backward(g, y, dx):
    product = (g.double() * y.double()).contiguous()
    acc = tl.float64 if y.dtype == torch.float64 else tl.float32
    launch(less, (y.shape[0],), product, y, dx, y.shape[1], *y.stride(), *dx.stride(), triton.next_power_of_2(y.shape[1]), acc)
'''),
    ("a global of Python's", "a kernel that a GPU can run", "    total = tl", "    total = NOTHING + tl", "@triton.jit\n", "NOTHING = 0.0\n\n\n@triton.jit\n"),
    ("a type that depends on the width", "a kernel that a GPU can run",
     "    dx = y * (g - total)\n", "    dx = y * (g - total)\n    if columns > 2:\n        dx = dx.to(tl.float64)\n"),
    ("products are kept in g", "nothing written beside `dx`",
     "    dx = y", "    tl.store(g_ptr + row * g_row + column * g_column, (g * y).to(dx_ptr.dtype.element_ty), mask=mask)\n    dx = y"),
]

# --- 4 · Read the PTX ----------------------------------------------------------------------------

RIGHT["read_ptx"] = {
    "a generator of names": '''
def names(ptx):
    for line in ptx.splitlines():
        words = line.split()
        if words and words[0].startswith("@"):
            words = words[1:]
        if words and not words[0].startswith(("//", ".", "$")):
            yield words[0].rstrip(";").split(".")


def accesses(ptx):
    return len(widths(ptx, "ld")), len(widths(ptx, "st"))


def widths(ptx, kind):
    found = []
    for parts in names(ptx):
        if parts[0] == kind and "global" in parts:
            many = {"v2": 2, "v4": 4}
            times = [many[part] for part in parts if part in many]
            bits = int("".join(c for c in parts[-1] if c.isdigit()))
            found.append(bits // 8 * (times[0] if times else 1))
    return found


def reductions(ptx):
    every = list(names(ptx))
    return sum(p[0] == "shfl" for p in every), sum(p[:2] == ["bar", "sync"] for p in every)
''',
    "regular expressions, words on caches": r'''
import re

ACCESS = r"^[ \t]*(?:@\S+[ \t]+)?(%s)\.global\.(?:[\w:]+\.)*?(?:v(\d)\.)?[a-z]+(\d+)(?=\s)"


def accesses(ptx: str) -> tuple[int, int]:
    return tuple(len(re.findall(ACCESS % kind, ptx, re.M)) for kind in ("ld", "st"))


def widths(ptx: str, kind: str) -> list[int]:
    return [int(bits) * int(many or 1) // 8 for _, many, bits in re.findall(ACCESS % kind, ptx, re.M)]


def reductions(ptx: str) -> tuple[int, int]:
    def count(name):
        return len(re.findall(rf"^\s*(?:@\S+\s+)?{name}[.\s]", ptx, re.MULTILINE))

    return count("shfl"), count(r"bar\.sync")
''',
    "the registers in braces are counted": '''
def split(ptx):
    """(name, operands) of each instruction."""
    out = []
    for line in ptx.split("\\n"):
        line = line.partition("//")[0].strip()
        if line.startswith("@"):
            line = line[1:].lstrip("!").split(None, 1)[1]
        name, *rest = line.split(None, 1)[:2] or [""]
        out.append((name.removesuffix(";"), rest[0] if rest else ""))
    return out


def accesses(ptx):
    names = [name for name, _ in split(ptx)]
    return sum(n.startswith("ld.global.") for n in names), sum(n.startswith("st.global.") for n in names)


def widths(ptx, kind):
    sizes = []
    for name, rest in split(ptx):
        if name.startswith(kind + ".global."):
            one = int(name.rsplit(".", 1)[1].lstrip("bfsu")) // 8
            inside = rest[rest.find("{") + 1:rest.find("}")] if "{" in rest else "one"
            sizes.append(one * len(inside.split(",")))
    return sizes


def reductions(ptx):
    names = [name for name, _ in split(ptx)]
    return len([n for n in names if n.startswith("shfl.")]), names.count("bar.sync")
''',
}
WRONG["read_ptx"] = [
    ("a guard hides the name", "with a guard before it, where it is masked", 'words[0].startswith("@"):\n            words = words[1:]', 'words[0].startswith("@"):\n            words = words[:0]'),
    ("a guard that is negated is no guard", "the second, where the first begins with `@`", 'words[0].startswith("@")', 'words[0].startswith("@%")'),
    ("a guard is @%p1", "with a guard before it, such as `@%p1`", 'words[0].startswith("@")', 'words[0] == "@%p1"'),
    ("every word of the line is a name", "Lines that are no instructions are in the text as well: comments",
     '        if words and not words[0].startswith(("//", ".", "$")):\n            yield words[0].rstrip(";").split(".")',
     '        for word in words:\n            yield word.rstrip(";").split(".")'),
    ("comments' slashes are taken off", "comments", "line.split()", 'line.replace("//", " ").split()'),
    ("any ld", "`shared` and `param` are not", ' and "global" in parts', ""),
    ("all but shared", "`shared` and `param` are not", '"global" in parts', '"shared" not in parts'),
    ("all but param", "`shared` and `param` are not", '"global" in parts', '"param" not in parts'),
    ("one number each", "`v2` or `v4` where one thread moves two or four numbers at once", "times[0] if times else 1", "1"),
    ("v4 alone", "`v2` or `v4`", '{"v2": 2, "v4": 4}', '{"v4": 4}'),
    ("v stands behind global", "Then there may be words on caches, then `v2` or `v4`", "for part in parts if", "for part in parts[2:3] if"),
    ("bits", "the bytes that one thread moves", "bits // 8 *", "bits *"),
    ("always 32 bits", "in the end what one number is", 'bits = int("".join(c for c in parts[-1] if c.isdigit()))', "bits = 32"),
    ("only b has bits", "`b32` has 32 bits, and so have `f32`, `u32` and `s32`", 'int("".join(c for c in parts[-1] if c.isdigit()))', 'int(parts[-1][1:]) if parts[-1][0] == "b" else 0'),
    ("64 bits are 32", "in the end what one number is", 'if c.isdigit()))', "if c.isdigit()))\n            bits = min(bits, 32)"),
    ("16 bits are moved as 32", "the bytes that one thread moves", 'if c.isdigit()))', "if c.isdigit()))\n            bits = max(bits, 32)"),
    ("all digits of the name", "The last part holds the bits of one number", "for c in parts[-1] if", 'for c in ".".join(p for p in parts if p not in many) if'),
    ("the first type", "The last part holds the bits", "parts[-1] if", "parts[2] if"),
    ("sorted", "a list in the order of the text", "return found\n", "return sorted(found, reverse=True)\n"),
    ("each width once", "with each of these instructions", "return found\n", "return list(dict.fromkeys(found))\n"),
    ("stores first", "how many load from global memory, and how many store into it", 'len(widths(ptx, "ld")), len(widths(ptx, "st"))', 'len(widths(ptx, "st")), len(widths(ptx, "ld"))'),
    ("wide ones count for several", "how many instructions", "return len(widths(ptx, \"ld\")), len(", "return sum(w // 4 or 1 for w in widths(ptx, \"ld\")), len("),
    ("bfly alone", "how many instructions are a `shfl`", 'p[0] == "shfl"', 'p[:3] == ["shfl", "sync", "bfly"]'),
    ("any bar", "how many a `bar.sync`", 'p[:2] == ["bar", "sync"]', 'p[0] == "bar"'),
    ("barriers by any name", "how many a `bar.sync`", 'p[:2] == ["bar", "sync"]', 'p[0].startswith("bar") and "sync" in p'),
    ("any sync", "how many a `bar.sync`", 'p[:2] == ["bar", "sync"]', '"sync" in p and p[0] != "shfl"'),
    ("barriers first", "how many are a `shfl`, and how many a `bar.sync`",
     'sum(p[0] == "shfl" for p in every), sum(p[:2] == ["bar", "sync"] for p in every)', 'sum(p[:2] == ["bar", "sync"] for p in every), sum(p[0] == "shfl" for p in every)'),
    ("a word on caches that swallows v4", "Then there may be words on caches, then `v2` or `v4`", CODE, RIGHT["read_ptx"]["regular expressions, words on caches"].replace(
        r"(?:[\w:]+\.)*?(?:v", r"(?:[\w:.]*\.)??(?:v")),
    ("found anywhere", "Lines that are no instructions are in the text as well: labels, declarations, and comments", CODE, '''
def accesses(ptx):
    return ptx.count("ld.global"), ptx.count("st.global")


def widths(ptx, kind):
    found = []
    for line in ptx.splitlines():
        if kind + ".global" in line:
            name = next(word for word in line.split() if word.startswith(kind + ".global"))
            found.append(int(name.split(".")[-1][1:]) // 8 * (4 if ".v4." in name else 2 if ".v2." in name else 1))
    return found


def reductions(ptx):
    return ptx.count("shfl."), ptx.count("bar.sync")
'''),
    ("global anywhere in the line", "`param` is not (a parameter's name may hold the word)", CODE, '''
def lines(ptx):
    for line in ptx.splitlines():
        words = line.split()
        if words and words[0][0] == "@":
            words.pop(0)
        if words:
            yield words


def accesses(ptx):
    return tuple(len(widths(ptx, kind)) for kind in ("ld", "st"))


def widths(ptx, kind):
    found = []
    for words in lines(ptx):
        if words[0].startswith(kind + ".") and "global" in " ".join(words):
            parts = words[0].split(".")
            many = 4 if "v4" in parts else 2 if "v2" in parts else 1
            found.append(many * int("".join(c for c in parts[-1] if c in "0123456789")) // 8)
    return found


def reductions(ptx):
    first = [words[0] for words in lines(ptx)]
    return sum(w.startswith("shfl.") for w in first), sum(w.startswith("bar.sync") for w in first)
'''),
]

# --- 5 · An operator of your own -----------------------------------------------------------------

RIGHT["make_softmax"] = {
    "custom_op": '''
def make_softmax(name, forward, backward):
    @torch.library.custom_op(name, mutates_args=())
    def op(x: torch.Tensor) -> torch.Tensor:
        return forward(x)

    @torch.library.custom_op(name + "_backward", mutates_args=())
    def op_backward(g: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return backward(g, y)

    @op.register_fake
    def _(x):
        return x.new_empty(x.shape)

    @op_backward.register_fake
    def _(g, y):
        return g.new_empty(g.shape)

    def setup(ctx, inputs, output):
        ctx.save_for_backward(output)

    def formula(ctx, g):
        (y,) = ctx.saved_tensors
        return op_backward(g, y)

    op.register_autograd(formula, setup_context=setup)
''',
    "a Library": '''
LIBRARIES = []


def make_softmax(name, forward, backward):
    space, _, short = name.partition("::")
    library = torch.library.Library(space, "FRAGMENT")
    LIBRARIES.append(library)
    library.define(f"{short}(Tensor x) -> Tensor")
    library.define(f"{short}_backward(Tensor g, Tensor y) -> Tensor")
    library.impl(short, forward, "CompositeExplicitAutograd")
    library.impl(f"{short}_backward", backward, "CompositeExplicitAutograd")
    torch.library.register_fake(name, lambda x: torch.empty(x.shape, dtype=x.dtype, device=x.device))
    torch.library.register_fake(f"{name}_backward", lambda g, y: torch.empty(y.shape, dtype=y.dtype, device=y.device))
    go_back = getattr(getattr(torch.ops, space), f"{short}_backward").default

    def save(ctx, inputs, output):
        ctx.save_for_backward(output)

    torch.library.register_autograd(name, lambda ctx, g: go_back(g, *ctx.saved_tensors), setup_context=save)
''',
    "define and impl, by name": '''
def make_softmax(name, forward, backward):
    torch.library.define(name, "(Tensor x) -> Tensor")
    torch.library.define(name + "_backward", "(Tensor g, Tensor y) -> Tensor")
    torch.library.impl(name, ("cpu", "cuda"), forward)
    torch.library.impl(name + "_backward", ("cpu", "cuda"), backward)

    @torch.library.register_fake(name)
    def fake(x):
        return torch.empty_like(x, memory_format=torch.contiguous_format)

    @torch.library.register_fake(name + "_backward")
    def fake_backward(g, y):
        return torch.empty_like(y, memory_format=torch.contiguous_format)

    namespace, short = name.split("::")

    def formula(ctx, g):
        return getattr(getattr(torch.ops, namespace), short + "_backward")(g.contiguous(), ctx.saved_tensors[0])

    torch.library.register_autograd(name, formula, setup_context=lambda ctx, inputs, output: ctx.save_for_backward(output))
''',
    "schemas in words, other names, a result that is returned": '''
def contiguous_like(t, *_):
    return torch.empty_strided(t.shape, torch.empty(t.shape, device="meta").stride(), dtype=t.dtype, device=t.device)


def make_softmax(name, forward, backward):
    back = torch.library.custom_op(f"{name}_backward", backward, mutates_args=(), schema="(Tensor grad, Tensor result) -> Tensor")
    there = torch.library.custom_op(name, forward, mutates_args=(), schema="(Tensor input) -> Tensor")
    for one in (back, there):
        one.register_fake(contiguous_like)
    there.register_autograd(
        lambda ctx, grad: back(grad, *ctx.saved_tensors),
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(output),
    )
    return there
''',
    "an autograd.Function at the Autograd key": '''
KEPT = []


def make_softmax(name, forward, backward):
    space, short = name.split("::")
    lib = torch.library.Library(space, "FRAGMENT")
    KEPT.append(lib)
    lib.define(short + "(Tensor x) -> Tensor")
    lib.define(short + "_backward(Tensor g, Tensor y) -> Tensor")
    lib.impl(short, forward, "CPU")
    lib.impl(short + "_backward", backward, "CPU")
    lib.impl(short, lambda x: x.new_empty(x.shape), "Meta")
    lib.impl(short + "_backward", lambda g, y: y.new_empty(y.shape), "Meta")
    ops = getattr(torch.ops, space)
    op, op_backward = getattr(ops, short).default, getattr(ops, short + "_backward").default

    class Node(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            with torch._C._AutoDispatchBelowAutograd():
                y = op(x)
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, g):
            return op_backward(g, *ctx.saved_tensors)

    lib.impl(short, Node.apply, "Autograd")
''',
}
NO_FAKE_BACKWARD = '''    @op_backward.register_fake
    def _(g, y):
        return g.new_empty(g.shape)

'''
WRONG["make_softmax"] = [
    ("a fake like its input", "the shape, strides ... of the result: a new contiguous tensor", "return x.new_empty(x.shape)", "return torch.empty_like(x)"),
    ("the backward's fake is like g", "returns the gradient of `x`, a new contiguous tensor", "return g.new_empty(g.shape)", "return torch.empty_like(g)"),
    ("the backward's fake is like y", "returns the gradient of `x`, a new contiguous tensor", "return g.new_empty(g.shape)", "return torch.empty_like(y)"),
    ("fakes are on the CPU", "the shape, strides, dtype and device of the result", "return x.new_empty(x.shape)", "return torch.empty(x.shape, dtype=x.dtype)"),
    ("the backward's fake is on the CPU", "the shape, strides, dtype and device of the result", "return g.new_empty(g.shape)", "return torch.empty(g.shape, dtype=g.dtype)"),
    ("fakes are float32", "the shape, strides, dtype and device of the result", "return x.new_empty(x.shape)", "return x.new_empty(x.shape, dtype=torch.float32)"),
    ("the backward's fake is float32", "the shape, strides, dtype and device of the result", "return g.new_empty(g.shape)", "return torch.empty(g.shape, device=g.device)"),
    ("fakes of the other way round", "the shape, strides ... of the result", "return x.new_empty(x.shape)", "return x.new_empty(x.shape[::-1])"),
    ("fakes are one row", "the shape", "return x.new_empty(x.shape)", "return x.new_empty(x.shape[-1:]).expand(x.shape)"),
    ("a fake that returns its input", "a function that says the shape, strides, dtype and device of the result", "return x.new_empty(x.shape)", "return x"),
    ("a fake for matrices alone", "`forward(x)` takes a tensor of any strides", "return x.new_empty(x.shape)", "rows, columns = x.shape\n        return x.new_empty((rows, columns))"),
    ("a fake that computes", "a fake ... computes nothing, since there may be nothing to compute with", "return x.new_empty(x.shape)", "return forward(x)"),
    ("no fake of the backward", "Each gets a fake", NO_FAKE_BACKWARD, ""),
    ("no formula", "And the first gets the formula of its gradient", "    op.register_autograd(formula, setup_context=setup)\n", ""),
    ("the input is saved", "`backward(g, y)` takes the gradient of the result and the result", "ctx.save_for_backward(output)", "ctx.save_for_backward(*inputs)"),
    ("the formula launches", "nothing of what it follows may launch a kernel: neither a fake nor autograd's formula", "return op_backward(g, y)\n\n    op.", "return backward(g, y)\n\n    op."),
    ("the formula is written in torch", "so call them, and nothing in their place", "return op_backward(g, y)\n\n    op.", "return y * (g - (g * y).sum(-1, keepdim=True))\n\n    op."),
    ("the formula is torch's own backward", "so call them, and nothing in their place", "return op_backward(g, y)\n\n    op.", "return torch._softmax_backward_data(g, y, -1, y.dtype)\n\n    op."),
    ("y and g change places", "two, `g` and `y`", "return op_backward(g, y)\n\n    op.", "return op_backward(y, g)\n\n    op."),
    ("half of it", "returns the gradient of `x`", "return op_backward(g, y)\n\n    op.", "return op_backward(g, y) / 2\n\n    op."),
    ("torch's softmax", "so call them, and nothing in their place", "return forward(x)", "return torch.softmax(x, -1).contiguous()"),
    ("the forward is called twice", "softmax(x + b)", "return forward(x)", "return forward(forward(x))"),
    ("the backward in torch", "so call them, and nothing in their place", "return backward(g, y)", "return (y * (g - (g * y).sum(-1, keepdim=True))).contiguous()"),
    ("the other way to say it in the schema", "which takes two, `g` and `y`", "def op_backward(g: torch.Tensor, y: torch.Tensor)", "def op_backward(y: torch.Tensor, g: torch.Tensor)"),
    ("the backward gets x, too", "which takes two, `g` and `y`",
     "def op_backward(g: torch.Tensor, y: torch.Tensor)", "def op_backward(g: torch.Tensor, y: torch.Tensor, x: torch.Tensor | None = None)"),
    ("a dimension", "which takes a tensor and returns one", "def op(x: torch.Tensor)", "def op(x: torch.Tensor, dim: int = -1)"),
    ("it writes into x", "Both write into none of their arguments", 'custom_op(name, mutates_args=())', 'custom_op(name, mutates_args=("x",))'),
    ("unknown, what is written", "Both write into none of their arguments", 'custom_op(name, mutates_args=())', 'custom_op(name, mutates_args="unknown")'),
    ("the backward writes into g", "Both write into none of their arguments", '_backward", mutates_args=())', '_backward", mutates_args=("g",))'),
    ("x is changed on the way", "Both write into none of their arguments", "return forward(x)", "y = forward(x)\n        x.copy_(y)\n        return y"),
    ("g is changed on the way", "Both write into none of their arguments", "return backward(g, y)", "out = backward(g, y)\n        g.copy_(out)\n        return out"),
    ("called _grad", "one called `name` with `_backward` behind", 'name + "_backward"', 'name + "_grad"'),
    ("a name of its own", "one called `name`", "custom_op(name,", 'custom_op("lab05::my_softmax",'),
    ("a list of one", "which takes a tensor and returns one", CODE, '''
from typing import List


def make_softmax(name, forward, backward):
    @torch.library.custom_op(name, mutates_args=())
    def op(x: torch.Tensor) -> List[torch.Tensor]:
        return [forward(x)]

    @torch.library.custom_op(name + "_backward", mutates_args=())
    def op_backward(g: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return backward(g, y)

    op.register_fake(lambda x: [x.new_empty(x.shape)])
    op_backward.register_fake(lambda g, y: g.new_empty(g.shape))
'''),
    ("a Function, composite", "Each gets a fake", CODE, '''
LIBRARIES = []


def make_softmax(name, forward, backward):
    class Function(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = forward(x)
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, g):
            return backward(g, *ctx.saved_tensors)

    space, short = name.split("::")
    library = torch.library.Library(space, "FRAGMENT")
    LIBRARIES.append(library)
    library.define(short + "(Tensor x) -> Tensor")
    library.define(short + "_backward(Tensor g, Tensor y) -> Tensor")
    library.impl(short, Function.apply, "CompositeImplicitAutograd")
    library.impl(short + "_backward", backward, "CompositeImplicitAutograd")
'''),
    ("the result is a view", "`forward(x)` ... returns the result, a new contiguous tensor", "return forward(x)", "return forward(x).t().contiguous().t() if x.dim() == 2 else forward(x)"),
    ("for a CUDA device", "it computes where the tensors are", "custom_op(name, mutates_args=())", 'custom_op(name, mutates_args=(), device_types="cuda")'),
]

# --- 6 · Differentiable twice --------------------------------------------------------------------

RIGHT["make_twice"] = {
    "on paper": '''
def make_twice(name, forward, backward):
    @torch.library.custom_op(name, mutates_args=())
    def op(x: torch.Tensor) -> torch.Tensor:
        return forward(x)

    @torch.library.custom_op(name + "_backward", mutates_args=())
    def op_backward(g: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return backward(g, y)

    def save_output(ctx, inputs, output):
        ctx.save_for_backward(output)

    def save_inputs(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    def once(ctx, g):
        (y,) = ctx.saved_tensors
        return op_backward(g, y)

    def twice(ctx, v):
        g, y = ctx.saved_tensors
        gy = (g * y).sum(-1, keepdim=True)
        vy = (v * y).sum(-1, keepdim=True)
        of_g = y * (v - vy)
        of_y = v * (g - gy) - g * vy
        return of_g, of_y

    op.register_autograd(once, setup_context=save_output)
    op_backward.register_autograd(twice, setup_context=save_inputs)
''',
    "autograd on the plain backward": '''
def plain(g, y):
    return y * (g - (g * y).sum(dim=-1, keepdim=True))


def make_twice(name, forward, backward):
    back = torch.library.custom_op(name + "_backward", backward, mutates_args=(), schema="(Tensor g, Tensor y) -> Tensor")
    main = torch.library.custom_op(name, forward, mutates_args=(), schema="(Tensor x) -> Tensor")

    def keep(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    def second(ctx, v):
        with torch.enable_grad():
            leaves = [t.detach().requires_grad_() for t in ctx.saved_tensors]
            return torch.autograd.grad(plain(*leaves), leaves, v)

    back.register_autograd(second, setup_context=keep)
    main.register_autograd(lambda ctx, g: back(g, *ctx.saved_tensors), setup_context=lambda ctx, inputs, output: ctx.save_for_backward(output))
''',
    "the operator again, an einsum, a Library": '''
LIBRARIES = []


def make_twice(name, forward, backward):
    space, short = name.split("::")
    library = torch.library.Library(space, "FRAGMENT")
    LIBRARIES.append(library)
    library.define(f"{short}(Tensor x) -> Tensor")
    library.define(f"{short}_backward(Tensor g, Tensor y) -> Tensor")
    library.impl(short, forward, "CPU")
    library.impl(f"{short}_backward", backward, "CPU")

    def again(g, y):
        return getattr(getattr(torch.ops, space), f"{short}_backward")(g, y)

    def save_y(ctx, inputs, output):
        ctx.save_for_backward(output)

    def save_both(ctx, inputs, output):
        ctx.save_for_backward(inputs[0], inputs[1])

    def formula(ctx, v):
        g, y = ctx.saved_tensors
        dot = torch.einsum("...i,...i->...", g, y).unsqueeze(-1)
        return again(v, y), g * v - dot * v - torch.einsum("...i,...i->...", v, y)[..., None] * g

    torch.library.register_autograd(name, lambda ctx, g: again(g, ctx.saved_tensors[0]), setup_context=save_y)
    torch.library.register_autograd(f"{name}_backward", formula, setup_context=save_both)
''',
    "torch.func.vjp": '''
def make_twice(name, forward, backward):
    op = torch.library.custom_op(name, forward, mutates_args=(), schema="(Tensor x) -> Tensor")
    op_backward = torch.library.custom_op(f"{name}_backward", backward, mutates_args=(), schema="(Tensor g, Tensor y) -> Tensor")
    op.register_fake(lambda x: x.new_empty(x.shape))
    op_backward.register_fake(lambda g, y: g.new_empty(g.shape))

    def remember(ctx, inputs, output):
        ctx.save_for_backward(*(inputs if len(inputs) == 2 else [output]))

    def second(ctx, v):
        _, pull = torch.func.vjp(lambda g, y: y * g - y * (g * y).sum(-1, True), *ctx.saved_tensors)
        return pull(v)

    op.register_autograd(lambda ctx, g: op_backward(g, *ctx.saved_tensors), setup_context=remember)
    op_backward.register_autograd(second, setup_context=remember)
''',
}
WRONG["make_twice"] = [
    ("the inner y is forgotten", "`y` stands in two places, outside of the sum and in it", "v * (g - gy) - g * vy", "v * (g - gy)"),
    ("the outer y is forgotten", "`y` stands in two places, outside of the sum and in it", "v * (g - gy) - g * vy", "-g * vy"),
    ("a sign", "what becomes of it for `y`", "v * (g - gy) - g * vy", "v * (g - gy) + g * vy"),
    ("the sum is forgotten in the first term", "differentiate it by one `y`", "v * (g - gy) - g * vy", "v * g - g * vy"),
    ("v's sum is not over y", "differentiate it by one `y`", "v * (g - gy) - g * vy", "v * (g - gy) - g * v.sum(-1, keepdim=True)"),
    ("as if it were linear in y as in g", "what becomes of it for `g` and for `y`", "v * (g - gy) - g * vy", "g * (v - vy)"),
    ("times y", "what becomes of it for `y`: autograd finds the way to x by itself", "v * (g - gy) - g * vy", "y * (v * (g - gy) - g * vy)"),
    ("on to x by hand", "On from there autograd finds the way to `x` by itself", "return of_g, of_y", "return of_g, y * (of_y - (of_y * y).sum(-1, keepdim=True))"),
    ("over all rows", "row by row", "(v * y).sum(-1, keepdim=True)", "(v * y).sum()"),
    ("the first sum over all rows", "row by row", "(g * y).sum(-1, keepdim=True)", "(g * y).sum()"),
    ("over columns", "row by row", "(v * y).sum(-1, keepdim=True)", "(v * y).sum(0, keepdim=True)"),
    ("of g: y is elementwise", "what becomes of `v` on the way back to `g` is what became of `g`", "y * (v - vy)", "y * v"),
    ("of g: g for v", "what becomes of `v` on the way back to `g`", "y * (v - vy)", "op_backward(g, y)"),
    ("of g: the wrong sum", "what becomes of `v` on the way back to `g` is what became of `g`", "y * (v - vy)", "y * (v - gy)"),
    ("the other way round", "for `g` and for `y`", "return of_g, of_y", "return of_y, of_g"),
    ("nothing for g", "one for its gradient of g", "return of_g, of_y", "return None, of_y"),
    ("nothing for y", "two for that of x", "return of_g, of_y", "return of_g, None"),
    ("y is a constant in the backward", "autograd finds the way to `x` by itself", "return op_backward(g, y)\n\n    def", "return op_backward(g, y.detach())\n\n    def"),
    ("g is a constant in the backward", "one for its gradient of g", "return op_backward(g, y)\n\n    def", "return op_backward(g.detach(), y)\n\n    def"),
    ("the formula launches", "a gradient for the operator of the backward", "return op_backward(g, y)\n\n    def", "return backward(g, y)\n\n    def"),
    ("the second gradient is not registered", "with a gradient for the operator of the backward as well",
     "    op_backward.register_autograd(twice, setup_context=save_inputs)\n", ""),
    ("the first formula in torch, the second never asked", "a gradient for the operator of the backward; call them, and nothing in their place",
     "return op_backward(g, y)\n\n    def", "return y * (g - (g * y).sum(-1, keepdim=True))\n\n    def"),
    ("the output is saved, not y", "for `g` and for `y`", "ctx.save_for_backward(*inputs)", "ctx.save_for_backward(inputs[0], output)"),
    ("float32 on the way", "`gradgradcheck` prove your formula", "g, y = ctx.saved_tensors\n", "dtype, v = v.dtype, v.float()\n        g, y = (t.float() for t in ctx.saved_tensors)\n"),
    ("torch's softmax for y", "of a softmax with a bias that you don't know", CODE, '''
def make_twice(name, forward, backward):
    op = torch.library.custom_op(name, forward, mutates_args=(), schema="(Tensor x) -> Tensor")
    op_backward = torch.library.custom_op(f"{name}_backward", backward, mutates_args=(), schema="(Tensor g, Tensor y) -> Tensor")
    op.register_autograd(
        lambda ctx, g: (lambda y: y * (g - (g * y).sum(-1, keepdim=True)))(torch.softmax(ctx.saved_tensors[0], -1)),
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs))
'''),
]

# --- 7 · The time that memory allows -------------------------------------------------------------

RIGHT["roofline"] = {
    "as it is said": '''
def bytes_moved(rows, columns, dtype, passes, backward):
    reads = 2 if backward else 1
    return rows * columns * dtype.itemsize * (reads * passes + 1)


def least_seconds(moved, elements, backward, bandwidth, flops):
    move = moved / bandwidth
    compute = elements * (4 if backward else 5) / flops
    return max(move, compute), "memory" if move >= compute else "compute"
''',
    "the larger of two pairs": '''
def bytes_moved(rows: int, columns: int, dtype: torch.dtype, passes: int, backward: bool) -> int:
    matrix = torch.empty((), dtype=dtype).element_size() * rows * columns
    total = matrix
    for _ in range(passes):
        total += matrix + backward * matrix
    return total


def least_seconds(moved, elements, backward, bandwidth, flops):
    return max((moved / bandwidth, "memory"), ((5 - backward) * elements / flops, "compute"), key=lambda pair: pair[0])
''',
    "strings of meaning": '''
FLOPS = {False: 5, True: 4}


def bytes_moved(rows, columns, dtype, passes, backward):
    matrices = 1 + passes * len("gy" if backward else "x")
    return matrices * math.prod((rows, columns, dtype.itemsize))


def least_seconds(moved, elements, backward, bandwidth, flops):
    times = {"memory": moved / bandwidth, "compute": FLOPS[bool(backward)] * elements / flops}
    which = sorted(times, key=times.get, reverse=True)[0]
    return times[which], which
''',
}
WRONG["roofline"] = [
    ("every pass writes", "Either writes one matrix, once", "reads * passes + 1", "(reads + 1) * passes"),
    ("one pass", "each is read once in every pass", "reads * passes + 1", "reads + 1"),
    ("passes count for the forward alone", "each is read once in every pass", "reads * passes + 1", "reads * (1 if backward else passes) + 1"),
    ("y is read once", "each is read once in every pass", "reads * passes + 1", "passes + reads"),
    ("a backward reads g alone", "a backward reads two, `g` and `y`", "2 if backward else 1", "1"),
    ("a backward reads x, too", "a backward reads two, `g` and `y`", "2 if backward else 1", "3 if backward else 1"),
    ("a backward writes twice", "Either writes one matrix, once", "reads * passes + 1", "reads * passes + reads"),
    ("nothing is written", "Either writes one matrix, once", "reads * passes + 1", "reads * passes"),
    ("float32", "All hold numbers of `dtype`", "dtype.itemsize", "4"),
    ("half or float32", "All hold numbers of `dtype`", "dtype.itemsize", "(2 if dtype in (torch.float16, torch.bfloat16) else 4)"),
    ("written in float32", "All hold numbers of `dtype`", "dtype.itemsize * (reads * passes + 1)", "(dtype.itemsize * reads * passes + max(dtype.itemsize, 4))"),
    ("bits", "how many bytes", "dtype.itemsize", "dtype.itemsize * 8"),
    ("whole blocks", "what is masked off moves nothing", "columns * dtype", "triton.next_power_of_2(columns) * dtype"),
    ("five always", "A forward takes five operations an element, a backward four", "(4 if backward else 5)", "5"),
    ("four and five change places", "A forward takes five operations an element, a backward four", "(4 if backward else 5)", "(5 if backward else 4)"),
    ("one after the other", "Moving and computing overlap", "max(move, compute)", "move + compute"),
    ("the shorter decides", "the longer of the two decides", "max(move, compute)", "min(move, compute)"),
    ("equally long: compute", 'where both take equally long, "memory"', "move >= compute", "move > compute"),
    ("memory's seconds", "so the longer of the two decides", "max(move, compute)", "move"),
    ("always memory", "which it was", '"memory" if move >= compute else "compute"', '"memory"'),
    ("the other one's name", "which it was", '"memory" if move >= compute else "compute"', '"compute" if move >= compute else "memory"'),
    ("the name first", "a tuple: the seconds, and which it was", 'max(move, compute), "memory" if move >= compute else "compute"', '"memory" if move >= compute else "compute", max(move, compute)'),
    ("nearly equal is memory", "the longer of the two decides", "move >= compute", "move * 1.01 >= compute"),
    ("microseconds", "the seconds", "max(move, compute)", "max(move, compute) * 1e6"),
    ("whole seconds", "the seconds", "max(move, compute)", "max(move, compute) // 1"),
    ("gigabytes of 2**30", "bytes a second", "moved / bandwidth", "moved / bandwidth * 1e9 / 2**30"),
]

# --- 8 · Into MiniGPT ----------------------------------------------------------------------------

RIGHT["swap_softmax"] = {
    "another module": '''
class Pattern(torch.nn.Module):
    def __init__(self, softmax):
        super().__init__()
        self.softmax = softmax

    def forward(self, q, k):
        scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
        length = q.shape[-2]
        future = torch.ones(length, length, dtype=torch.bool, device=q.device).triu(diagonal=1)
        return self.softmax(scores.masked_fill(future, -math.inf))


def swap_softmax(model, softmax):
    model.softmax = softmax
    for block in model.blocks:
        block.attention.pattern = Pattern(softmax)
''',
    "a forward of its own": '''
def swap_softmax(model: MiniGPT, softmax) -> None:
    def forward(q, k):
        """softmax(QK/sqrt(d)), with the future masked."""
        products = torch.einsum("bhqd,bhkd->bhqk", q, k) * q.shape[-1] ** -0.5
        here = torch.arange(q.shape[-2], device=q.device)
        return softmax(torch.where(here[:, None] >= here, products, -torch.inf))

    for module in model.modules():
        if type(module).__name__ == "AttentionPattern":
            module.forward = forward
    model.softmax = softmax
''',
    "a method, bound": '''
import types

from utils.minigpt.model import AttentionPattern


def swap_softmax(model, softmax):
    def attend(self, q, k):
        scores = (q / math.sqrt(q.size(-1))) @ k.mT
        return softmax(scores + torch.full_like(scores, float("-inf")).triu(1))

    model.softmax = softmax
    for one in filter(lambda m: isinstance(m, AttentionPattern), model.modules()):
        one.forward = types.MethodType(attend, one)
''',
    "a subclass, by the object's class": '''
from utils.minigpt.model import AttentionPattern


def swap_softmax(model, softmax):
    class Sharp(AttentionPattern):
        def forward(self, q, k):
            scores = torch.matmul(q, k.transpose(2, 3)).div(math.sqrt(q.shape[3]))
            allowed = torch.ones_like(scores, dtype=torch.bool).tril()
            return softmax(scores.masked_fill(~allowed, float("-inf")))

    for block in model.blocks.children():
        block.attention.pattern.__class__ = Sharp
    setattr(model, "softmax", softmax)
''',
    "a hook that answers in its place": '''
def swap_softmax(model, softmax):
    def instead(module, inputs, output):
        q, k = inputs
        scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
        n = q.shape[-2]
        later = torch.triu(torch.ones(n, n, device=q.device), 1) > 0
        return softmax(scores.masked_fill(later, -math.inf))

    model.softmax = softmax
    for block in model.blocks:
        block.attention.pattern.register_forward_hook(instead)
''',
}
WRONG["swap_softmax"] = [
    ("the head alone", "its head and all its blocks", "block.attention.pattern = Pattern(softmax)", "pass"),
    ("the attention alone", "its head and all its blocks", "    model.softmax = softmax\n", ""),
    ("the first block", "all its blocks", "in model.blocks:", "in model.blocks[:1]:"),
    ("all but the last block", "all its blocks", "in model.blocks:", "in model.blocks[:-1] if len(model.blocks) > 1 else model.blocks:"),
    ("two blocks", "all its blocks", "in model.blocks:", "in model.blocks[:2]:"),
    ("no mask", "It brings no mask along", "scores.masked_fill(future, -math.inf)", "scores"),
    ("zeros for the future", "A row of your softmax has -inf where the future is", "-math.inf)", "0.0)"),
    ("a finite mask", "A row of your softmax has -inf where the future is", "-math.inf)", "-1e4)"),
    ("a small finite mask", "A row of your softmax has -inf where the future is", "-math.inf)", "-20.0)"),
    ("masked afterwards", "Three things come before its softmax: a product, a scale and a mask",
     "self.softmax(scores.masked_fill(future, -math.inf))", "self.softmax(scores).masked_fill(future, 0.0)"),
    ("no scale", "a product, a scale and a mask", " / math.sqrt(q.shape[-1])", ""),
    ("scaled by d", "Nothing else changes", "math.sqrt(q.shape[-1])", "q.shape[-1]"),
    ("scaled by the length", "Nothing else changes", "math.sqrt(q.shape[-1])", "math.sqrt(q.shape[-2])"),
    ("scaled behind the softmax", "Three things come before its softmax", " / math.sqrt(q.shape[-1])", "",
     "-math.inf))", "-math.inf) * q.shape[-1] ** -1.0)"),
    ("nobody sees itself", "the weights of the past", "triu(diagonal=1)", "triu(diagonal=0)"),
    ("one of the future", "turns a query and a key into the weights of the past", "diagonal=1", "diagonal=2"),
    ("keys look back at queries", "Nothing else changes", "q @ k.transpose(-1, -2)", "k @ q.transpose(-1, -2)"),
    ("softmax of a softmax", "a softmax of torch's inside, whose place it takes", "self.softmax(scores.masked_fill(future, -math.inf))",
     "self.softmax(torch.softmax(scores.masked_fill(future, -math.inf), -1))"),
    ("torch's softmax is still inside", "all its blocks use `softmax`", "self.softmax(scores.masked_fill(future, -math.inf))", "torch.softmax(scores.masked_fill(future, -math.inf), -1)"),
    ("scores without gradient", "the gradients", "        length = q.shape[-2]", "        scores = scores.detach()\n        length = q.shape[-2]"),
    ("the mask stays on the CPU", "the same logits on a GPU", ", device=q.device", ""),
    ("a mask in the state dict", "not their names in the state dict", "        self.softmax = softmax\n",
     '        self.softmax = softmax\n        self.register_buffer("seen", torch.ones(1))\n'),
    ("a temperature that can be learnt", "not the parameters", "        self.softmax = softmax\n",
     "        self.softmax = softmax\n        self.temperature = torch.nn.Parameter(torch.ones(()))\n"),
    ("a module under two names", "not their names in the state dict", "        block.attention.pattern = Pattern(softmax)",
     "        block.attention.pattern = Pattern(softmax)\n        block.attention.keys = block.attention.key"),
    ("new attention", "the parameters, which are the same objects as before", "        block.attention.pattern = Pattern(softmax)",
     "        import copy\n        block.attention = copy.deepcopy(block.attention)\n        block.attention.pattern = Pattern(softmax)"),
    ("a copy of the model", "It changes the model that it is given", "    model.softmax = softmax\n", "    import copy\n    model = copy.deepcopy(model)\n    model.softmax = softmax\n"),
    ("looked at with print", "one graph", "        length = q.shape[-2]", "        print(end='')\n        length = q.shape[-2]"),
    ("looked at with item", "one graph", "        length = q.shape[-2]", "        assert not math.isnan(scores.sum().item())\n        length = q.shape[-2]"),
    ("an if on numbers", "one graph", "        length = q.shape[-2]", "        if scores.isnan().any():\n            raise ValueError\n        length = q.shape[-2]"),
    ("the compiler is kept out", "one graph", "    def forward(self, q, k):", "    @torch.compiler.disable\n    def forward(self, q, k):"),
    ("one of the class", "What you write into the class holds for every model", CODE, '''
def swap_softmax(model, softmax):
    def forward(self, q, k):
        scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
        length = q.shape[-2]
        future = torch.ones(length, length, dtype=torch.bool, device=q.device).triu(diagonal=1)
        return softmax(scores.masked_fill(future, -math.inf))

    model.softmax = softmax
    type(model.blocks[0].attention.pattern).forward = forward
'''),
    ("torch's softmax itself", "and no other model, made before or later", CODE, '''
def swap_softmax(model, softmax):
    model.softmax = softmax
    torch.softmax = lambda x, dim: softmax(x)
'''),
    ("of the logarithm of torch's", "Three things come before its softmax", CODE, '''
def swap_softmax(model, softmax):
    model.softmax = softmax
    for block in model.blocks:
        block.attention.pattern.register_forward_hook(lambda module, inputs, output: softmax(output.log()))
'''),
]

# Some that were meant to be wrong and are right: what they leave out makes no difference. One that
# returns what nobody asks for.
for exercise, name, old, new in (
    # tl.max widens half precision by itself, and what is computed with it is then float32.
    ("triton_softmax", "float16 is left to tl.max", "tl.float64 if x.dtype == torch.float64 else tl.float32",
     "{torch.float64: tl.float64, torch.float16: tl.float16}.get(x.dtype, tl.float32)"),
    ("triton_softmax", "the maximum is taken before", "    x = x.to(ACC)\n    top = tl.max(x, 0)\n",
     "    x = x - tl.max(x, 0)\n    x = x.to(ACC)\n    top = tl.max(x, 0)\n"),
    ("triton_softmax", "y is returned", "BLOCK=block, ACC=acc)", "BLOCK=block, ACC=acc)\n    return y"),
    ("make_softmax", "a fake with torch's softmax", "return x.new_empty(x.shape)", "return torch.softmax(x, -1).contiguous()"),
    ("read_ptx", "split at blanks alone", "line.split()", 'line.strip().split(" ")'),
):
    RIGHT[exercise][name] = next(iter(RIGHT[exercise].values())).replace(old, new)

_rows = (
    ("columns, x_row, x_column, y_row, y_column, B", "rows, columns, x_row, x_column, y_row, y_column, B"),
    ("column < columns", "(column < columns) & (row < rows)"),
    ("x, y, columns,", "x, y, rows, columns,"),
)
for name, edits in {
    # interpreter takes for places; a block of one lane raises, and other programs are blamed.
    "the mask looks at the row, too": _rows,
    "an even number of programs": (*_rows, ("(rows,)", "(2 * triton.cdiv(rows, 2),)")),
    "a block and a condition on a sum": (
        ("y = e / total", 'y = tl.where(mask & (total > 0), e / total, float("nan"))'),
    ),
}.items():
    cell = RIGHT["triton_softmax"]["as proposed"]
    for old, new in edits:
        assert old in cell, (name, old)
        cell = cell.replace(old, new)
    RIGHT["triton_softmax"][name] = cell

# What the check can't tell, or the tools refuse, and why. They are not judged.
OPEN = {
    ("triton_softmax", "a block and a condition on a sum"): "Triton's interpreter refuses such an &",
    ("triton_softmax", "cut off, not rounded"): "the interpreter cuts bfloat16 off itself",
    ("make_twice", "the first formula in torch, the second never asked"): "values tell nothing of it",
    ("swap_softmax", "a finite mask"): "the softmax that is handed over gives 0 for it, too",
    ("swap_softmax", "a small finite mask"): "the softmax that is handed over is too sharp",
    ("swap_softmax", "the mask stays on the CPU"): "it takes a GPU",
}

BANK = Bank("05")
BANK.fill(RIGHT, WRONG, OPEN)
bank_05_second.add_to(BANK)
