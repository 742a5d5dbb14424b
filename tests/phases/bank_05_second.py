"""A second bank of answers to lab 05, in other habits, and mistakes of the quiet kind.

A wrong answer is the base of its exercise with edits, or a cell of its own.
"""

from tests.phases.bank import CODE, Bank

PLAN = '''
def plan_rows(rows, columns, itemsize):
    block = triton.next_power_of_2(columns)
    each = max(1, 4096 // (block * itemsize))
    programs = triton.cdiv(rows, each)
    return programs, each, block, programs * each * block - rows * columns
'''
SOFTMAX = '''
@triton.jit
def softmax_kernel(x_ptr, y_ptr, columns, x_row, x_column, y_row, y_column, BLOCK: tl.constexpr, ACC: tl.constexpr):
    row = tl.program_id(0)
    lane = tl.arange(0, BLOCK)
    inside = lane < columns
    x = tl.load(x_ptr + row * x_row + lane * x_column, mask=inside, other=float("-inf")).to(ACC)
    e = tl.exp(x - tl.max(x, axis=0))
    y = e / tl.sum(e, axis=0)
    tl.store(y_ptr + row * y_row + lane * y_column, y.to(y_ptr.dtype.element_ty), mask=inside)


def triton_softmax(x, y):
    rows, columns = x.shape
    acc = tl.float64 if x.dtype == torch.float64 else tl.float32
    block = triton.next_power_of_2(columns)
    launch(softmax_kernel, (rows,), x, y, columns, *x.stride(), *y.stride(), BLOCK=block, ACC=acc)
'''
BACKWARD = '''
@triton.jit
def backward_kernel(
    g_ptr, y_ptr, dx_ptr, columns, g_row, g_column, y_row, y_column, dx_row, dx_column,
    BLOCK: tl.constexpr, ACC: tl.constexpr,
):
    row = tl.program_id(0)
    lane = tl.arange(0, BLOCK)
    inside = lane < columns
    g = tl.load(g_ptr + row * g_row + lane * g_column, mask=inside, other=0.0).to(ACC)
    y = tl.load(y_ptr + row * y_row + lane * y_column, mask=inside, other=0.0).to(ACC)
    dx = y * (g - tl.sum(g * y, axis=0))
    tl.store(dx_ptr + row * dx_row + lane * dx_column, dx.to(dx_ptr.dtype.element_ty), mask=inside)


def softmax_backward(g, y, dx):
    rows, columns = y.shape
    acc = tl.float64 if y.dtype == torch.float64 else tl.float32
    strides = (*g.stride(), *y.stride(), *dx.stride())
    block = triton.next_power_of_2(columns)
    launch(backward_kernel, (rows,), g, y, dx, columns, *strides, BLOCK=block, ACC=acc)
'''
PTX = '''
def names(ptx):
    found = []
    for line in ptx.splitlines():
        words = line.split()
        if words and words[0].startswith("@"):
            words = words[1:]
        if words:
            found.append(words[0].split("."))
    return found


def accesses(ptx):
    every = [name[0] for name in names(ptx) if "global" in name]
    return every.count("ld"), every.count("st")


def widths(ptx, kind):
    sizes = []
    for name in names(ptx):
        if name[0] == kind and "global" in name:
            lanes = 4 if "v4" in name else 2 if "v2" in name else 1
            sizes.append(lanes * int(name[-1][1:]) // 8)
    return sizes


def reductions(ptx):
    every = names(ptx)
    return sum(name[0] == "shfl" for name in every), sum(name[:2] == ["bar", "sync"] for name in every)
'''
OPERATOR = '''
def make_softmax(name, forward, backward):
    @torch.library.custom_op(name, mutates_args=())
    def softmax(x: torch.Tensor) -> torch.Tensor:
        return forward(x)

    @torch.library.custom_op(name + "_backward", mutates_args=())
    def gradient(g: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return backward(g, y)

    @softmax.register_fake
    def _(x):
        return x.new_empty(x.shape)

    @gradient.register_fake
    def _(g, y):
        return y.new_empty(y.shape)

    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output)

    def formula(ctx, g):
        return gradient(g, *ctx.saved_tensors)

    softmax.register_autograd(formula, setup_context=setup_context)
'''
TWICE = '''
def make_twice(name, forward, backward):
    @torch.library.custom_op(name, mutates_args=())
    def softmax(x: torch.Tensor) -> torch.Tensor:
        return forward(x)

    @torch.library.custom_op(name + "_backward", mutates_args=())
    def gradient(g: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return backward(g, y)

    def keep_output(ctx, inputs, output):
        ctx.save_for_backward(output)

    def keep_inputs(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    def once(ctx, g):
        return gradient(g, *ctx.saved_tensors)

    def twice(ctx, v):
        g, y = ctx.saved_tensors
        of_y = v * (g - (g * y).sum(-1, keepdim=True)) - g * (v * y).sum(-1, keepdim=True)
        return gradient(v, y), of_y

    softmax.register_autograd(once, setup_context=keep_output)
    gradient.register_autograd(twice, setup_context=keep_inputs)
'''
ROOFLINE = '''
def bytes_moved(rows, columns, dtype, passes, backward):
    reads = 2 if backward else 1
    return rows * columns * dtype.itemsize * (reads * passes + 1)


def least_seconds(moved, elements, backward, bandwidth, flops):
    memory = moved / bandwidth
    compute = elements * (4 if backward else 5) / flops
    return (memory, "memory") if memory >= compute else (compute, "compute")
'''
SWAP = '''
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
'''
BASE = {
    "plan_rows": PLAN,
    "triton_softmax": SOFTMAX,
    "softmax_backward": BACKWARD,
    "read_ptx": PTX,
    "make_softmax": OPERATOR,
    "make_twice": TWICE,
    "roofline": ROOFLINE,
    "swap_softmax": SWAP,
}

RIGHT = [
    *((exercise, "plain", code) for exercise, code in BASE.items()),
    (
        "plan_rows",
        "bits and negative quotients",
        '''
def _up(n: int) -> int:
    return 1 << (n - 1).bit_length()


def plan_rows(rows: int, columns: int, itemsize: int, *, tile: int = 4096) -> tuple[int, int, int, int]:
    block = _up(columns)
    each = tile // (block * itemsize) or 1
    programs = -(-rows // each)
    missing = programs * each - rows
    return programs, each, block, rows * (block - columns) + missing * block
''',
    ),
    (
        "plan_rows",
        "a named tuple, and loops",
        '''
from typing import NamedTuple


class Plan(NamedTuple):
    programs: int
    rows: int
    block: int
    masked: int


def plan_rows(rows, columns, itemsize):
    block = 1
    while block < columns:
        block *= 2
    each = 1
    while (each + 1) * block * itemsize <= 4096:
        each += 1
    programs = 0
    while programs * each < rows:
        programs += 1
    return Plan(programs, each, block, programs * each * block - rows * columns)
''',
    ),
    (
        "triton_softmax",
        "two rows a program",
        '''
@triton.jit
def softmax_kernel(x_ptr, y_ptr, rows, columns, x_row, x_column, y_row, y_column, ROWS: tl.constexpr, BLOCK: tl.constexpr, WIDE: tl.constexpr):
    r = (tl.program_id(0) * ROWS + tl.arange(0, ROWS))[:, None]
    c = tl.arange(0, BLOCK)[None, :]
    there = (r < rows) & (c < columns)
    x = tl.load(x_ptr + r * x_row + c * x_column, mask=there, other=float("-inf"))
    x = x.to(tl.float64 if WIDE else tl.float32)
    x = x - tl.max(x, 1)[:, None]
    e = tl.exp(x)
    tl.store(y_ptr + r * y_row + c * y_column, (e / tl.sum(e, 1)[:, None]).to(y_ptr.dtype.element_ty), mask=there)


def triton_softmax(x, y):
    n, m = x.shape
    launch(
        softmax_kernel, (triton.cdiv(n, 2),), x, y, n, m, x.stride(0), x.stride(1), y.stride(0), y.stride(1),
        ROWS=2, BLOCK=triton.next_power_of_2(m), WIDE=x.dtype == torch.float64,
    )
''',
    ),
    (
        "triton_softmax",
        "blocks of 32 columns, three passes",
        '''
LOWEST = tl.constexpr(float("-inf"))


@triton.jit
def part(x_ptr, lane, column, columns, ACC: tl.constexpr):
    return tl.load(x_ptr + lane * column, mask=lane < columns, other=LOWEST).to(ACC)


@triton.jit
def softmax_kernel(x_ptr, y_ptr, columns, x_row, x_column, y_row, y_column, BLOCK: tl.constexpr, ACC: tl.constexpr):
    x_ptr += tl.program_id(0) * x_row
    y_ptr += tl.program_id(0) * y_row
    largest = tl.full((BLOCK,), LOWEST, ACC)
    for start in range(0, columns, BLOCK):
        largest = tl.maximum(largest, part(x_ptr, start + tl.arange(0, BLOCK), x_column, columns, ACC))
    top = tl.max(largest, 0)
    total = tl.zeros((BLOCK,), ACC)
    for start in range(0, columns, BLOCK):
        total += tl.exp(part(x_ptr, start + tl.arange(0, BLOCK), x_column, columns, ACC) - top)
    whole = tl.sum(total, 0)
    for start in range(0, columns, BLOCK):
        lane = start + tl.arange(0, BLOCK)
        e = tl.exp(part(x_ptr, lane, x_column, columns, ACC) - top)
        tl.store(y_ptr + lane * y_column, (e / whole).to(y_ptr.dtype.element_ty), mask=lane < columns)


def triton_softmax(x, y):
    wide = {torch.float64: tl.float64}.get(x.dtype, tl.float32)
    launch(softmax_kernel, (x.shape[0],), x, y, x.shape[1], *x.stride(), *y.stride(), BLOCK=32, ACC=wide)
''',
    ),
    (
        "triton_softmax",
        "four programs that go through all rows",
        '''
@triton.jit
def softmax_kernel(x_ptr, y_ptr, rows, columns, x_row, x_column, y_row, y_column, BLOCK: tl.constexpr, ACC: tl.constexpr):
    lane = tl.arange(0, BLOCK)
    inside = lane < columns
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        x = tl.load(x_ptr + row * x_row + lane * x_column, mask=inside, other=float("-inf")).to(ACC)
        e = tl.exp(x - tl.max(x, axis=0))
        y = e / tl.sum(e, axis=0)
        tl.store(y_ptr + row * y_row + lane * y_column, y.to(y_ptr.dtype.element_ty), mask=inside)


def triton_softmax(x, y):
    rows, columns = x.size()
    launch(
        softmax_kernel, (4,), x, y, rows, columns, *x.stride(), *y.stride(),
        BLOCK=triton.next_power_of_2(columns), ACC=tl.float64 if x.element_size() == 8 else tl.float32,
    )
''',
    ),
    (
        "softmax_backward",
        "a tile of four rows, multiplied out",
        '''
@triton.jit
def backward_kernel(g_ptr, y_ptr, dx_ptr, rows, columns, g0, g1, y0, y1, d0, d1, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    c = tl.arange(0, BLOCK)[None, :]
    there = (r < rows) & (c < columns)
    g = tl.load(g_ptr + r * g0 + c * g1, mask=there, other=0)
    y = tl.load(y_ptr + r * y0 + c * y1, mask=there, other=0)
    if y_ptr.dtype.element_ty != tl.float64:
        g = g.to(tl.float32)
        y = y.to(tl.float32)
    product = g * y
    dx = product - y * tl.sum(product, axis=1, keep_dims=True)
    tl.store(dx_ptr + r * d0 + c * d1, dx.to(dx_ptr.dtype.element_ty), mask=there)


def softmax_backward(g, y, dx):
    n, m = dx.shape
    launch(backward_kernel, (triton.cdiv(n, 4),), g, y, dx, n, m, *g.stride(), *y.stride(), *dx.stride(), ROWS=4, BLOCK=triton.next_power_of_2(m))
''',
    ),
    (
        "softmax_backward",
        "blocks of 16, lanes put to 0 by where",
        '''
@triton.jit
def backward_kernel(g_ptr, y_ptr, dx_ptr, columns, g0, g1, y0, y1, d0, d1, ACC: tl.constexpr):
    row = tl.program_id(0)
    dot = tl.zeros((16,), ACC)
    for start in range(0, columns, 16):
        c = start + tl.arange(0, 16)
        inside = c < columns
        g = tl.load(g_ptr + row * g0 + c * g1, mask=inside).to(ACC)
        y = tl.load(y_ptr + row * y0 + c * y1, mask=inside).to(ACC)
        dot += tl.where(inside, g * y, 0.0)
    s = tl.sum(dot, 0)
    for start in range(0, columns, 16):
        c = start + tl.arange(0, 16)
        inside = c < columns
        g = tl.load(g_ptr + row * g0 + c * g1, mask=inside).to(ACC)
        y = tl.load(y_ptr + row * y0 + c * y1, mask=inside).to(ACC)
        tl.store(dx_ptr + row * d0 + c * d1, (y * (g - s)).to(dx_ptr.dtype.element_ty), mask=inside)


def softmax_backward(g, y, dx):
    acc = tl.float64 if g.dtype is torch.double else tl.float32
    launch(backward_kernel, tuple(g.shape[:1]), g, y, dx, g.shape[1], *g.stride(), *y.stride(), *dx.stride(), ACC=acc)
''',
    ),
    (
        "read_ptx",
        "regular expressions",
        r'''
import re

ACCESS = re.compile(r"^\s*(?:@\S+\s+)?(ld|st)\.global((?:\.[\w:]+)*)\.[a-z]+(\d+)\s", re.M)


def accesses(ptx):
    kinds = [found[1] for found in ACCESS.finditer(ptx)]
    return kinds.count("ld"), kinds.count("st")


def widths(ptx, kind):
    def many(words):
        return next((int(word[1]) for word in words.split(".") if word in ("v2", "v4")), 1)

    return [many(f[2]) * int(f[3]) // 8 for f in ACCESS.finditer(ptx) if f[1] == kind]


def reductions(ptx):
    def count(what):
        return len(re.findall(rf"^\s*(?:@\S+\s+)?{what}\b", ptx, re.M))

    return count(r"shfl"), count(r"bar\.sync")
''',
    ),
    (
        "read_ptx",
        "a class of instructions",
        '''
class Instruction:
    def __init__(self, line):
        guard, *rest = line.split() or [""]
        self.name = (rest[0] if rest else "") if guard[:1] == "@" else guard
        self.parts = self.name.split(".")

    def touches(self, kind):
        return self.parts[0] == kind and "global" in self.parts

    @property
    def bytes(self):
        bits = int("".join(c for c in self.parts[-1] if c.isdigit()))
        vectors = [int(p[1:]) for p in self.parts if p[:1] == "v" and p[1:].isdigit()]
        return bits * (vectors + [1])[0] // 8


def accesses(ptx):
    return len(widths(ptx, "ld")), len(widths(ptx, kind="st"))


def widths(ptx, kind):
    return [i.bytes for i in map(Instruction, ptx.split("\\n")) if i.touches(kind)]


def reductions(ptx):
    every = [Instruction(line) for line in ptx.split("\\n")]
    return sum(i.parts[0] == "shfl" for i in every), sum(i.name.startswith("bar.sync") for i in every)
''',
    ),
    (
        "make_softmax",
        "a torch.library.Library",
        '''
LIBRARIES = []


def make_softmax(name, forward, backward):
    space, _, short = name.partition("::")
    library = torch.library.Library(space, "FRAGMENT")
    LIBRARIES.append(library)
    library.define(f"{short}(Tensor x) -> Tensor")
    library.define(f"{short}_backward(Tensor g, Tensor y) -> Tensor")
    for kind in ("CPU", "CUDA"):
        library.impl(short, lambda x: forward(x), kind)
        library.impl(f"{short}_backward", lambda g, y: backward(g, y), kind)
    torch.library.register_fake(name, lambda x: torch.empty(x.shape, dtype=x.dtype, device=x.device), lib=library)
    torch.library.register_fake(f"{name}_backward", lambda g, y: torch.empty(y.shape, dtype=y.dtype, device=y.device), lib=library)

    def keep(ctx, inputs, output):
        ctx.save_for_backward(output)

    def formula(ctx, g):
        (y,) = ctx.saved_tensors
        return getattr(torch.ops, space).__getattr__(f"{short}_backward")(g, y)

    torch.library.register_autograd(name, formula, setup_context=keep, lib=library)
''',
    ),
    (
        "make_softmax",
        "schemas written out, and the result computed again",
        '''
def make_softmax(name, forward, backward):
    op = torch.library.custom_op(name, lambda x: forward(x), mutates_args=(), schema="(Tensor x) -> Tensor")
    back = torch.library.custom_op(name + "_backward", lambda g, y: backward(g, y), mutates_args=(), schema="(Tensor g, Tensor y) -> Tensor")
    contiguous = {"memory_format": torch.contiguous_format}
    op.register_fake(lambda x: torch.empty_like(x, **contiguous))
    back.register_fake(lambda g, y: torch.empty_like(y, **contiguous))

    def keep(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    def formula(ctx, g):
        (x,) = ctx.saved_tensors
        return back(g, op(x.detach()))

    op.register_autograd(formula, setup_context=keep)
''',
    ),
    (
        "make_twice",
        "torch.func.vjp of the formula",
        TWICE.replace(
            '''        of_y = v * (g - (g * y).sum(-1, keepdim=True)) - g * (v * y).sum(-1, keepdim=True)
        return gradient(v, y), of_y
''',
            '''        _, back = torch.func.vjp(lambda g, y: y * (g - (g * y).sum(-1, keepdim=True)), g, y)
        return back(v)
''',
        ),
    ),
    (
        "make_twice",
        "einsum, and only what is needed",
        TWICE.replace(
            '''        of_y = v * (g - (g * y).sum(-1, keepdim=True)) - g * (v * y).sum(-1, keepdim=True)
        return gradient(v, y), of_y
''',
            '''        dot = lambda a, b: torch.einsum("...i,...i->...", a, b).unsqueeze(-1)
        for_g, for_y = ctx.needs_input_grad
        of_y = v * g - v * dot(g, y) - g * dot(v, y) if for_y else None
        return (y * v - y * dot(v, y) if for_g else None), of_y
''',
        ),
    ),
    (
        "roofline",
        "a meta tensor, and max by key",
        '''
def bytes_moved(rows, columns, dtype, passes, backward):
    matrix = torch.empty((rows, columns), dtype=dtype, device="meta")
    return sum([matrix.nbytes] * passes * (1 + bool(backward)), matrix.nbytes)


def least_seconds(moved, elements, backward, bandwidth, flops):
    both = [(moved / bandwidth, "memory"), ((5 - backward) * elements / flops, "compute")]
    return max(both, key=lambda one: one[0])
''',
    ),
    (
        "swap_softmax",
        "a forward of its own, bound to the object",
        '''
import types


def swap_softmax(model, softmax):
    def forward(self, q, k):
        scores = torch.matmul(q, k.mT) * q.shape[-1] ** -0.5
        index = torch.arange(q.shape[-2], device=q.device)
        scores = scores.where(index[:, None] >= index, float("-inf"))
        return softmax(scores)

    model.softmax = softmax
    for block in model.blocks:
        block.attention.pattern.forward = types.MethodType(forward, block.attention.pattern)
''',
    ),
    (
        "swap_softmax",
        "a subclass with a mask that is no part of the state",
        '''
from utils.minigpt.model import AttentionPattern


class Sharper(AttentionPattern):
    def __init__(self, function, context):
        super().__init__()
        self.function = [function]
        mask = torch.full((context, context), float("-inf")).triu(1)
        self.register_buffer("mask", mask, persistent=False)

    def forward(self, q, k):
        n = q.size(-2)
        scores = torch.einsum("bhid,bhjd->bhij", q, k) / q.size(-1) ** 0.5
        return self.function[0](scores + self.mask[:n, :n])


def swap_softmax(model, softmax):
    model.softmax = softmax
    for module in list(model.modules()):
        if isinstance(getattr(module, "pattern", None), AttentionPattern):
            new = Sharper(softmax, model.config.context)
            module.pattern = new.to(next(model.parameters()).device)
''',
    ),
    (
        "swap_softmax",
        "a hook that computes the pattern anew",
        '''
def swap_softmax(model, softmax):
    def hook(module, args, output):
        q, k = args
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
        past = torch.ones_like(scores, dtype=torch.bool).tril()
        return softmax(scores.masked_fill(~past, float("-inf")))

    model.softmax = softmax
    for block in model.blocks:
        block.attention.pattern.register_forward_hook(hook)
''',
    ),
]

WRONG = [
    ("plan_rows", "only what lies beside a row", "or in a row that does not exist", ("programs * each * block - rows * columns", "rows * (block - columns)")),
    ("plan_rows", "no more rows than there are", "as many as fit into a tile of 4096 bytes", ("4096 // (block * itemsize))", "min(rows, 4096 // (block * itemsize)))")),
    ("plan_rows", "a program for no rows", "There may be no rows at all", ("triton.cdiv(rows, each)", "max(1, triton.cdiv(rows, each))")),
    ("plan_rows", "two lanes at least", "the smallest power of two that is not less than `columns`", ("triton.next_power_of_2(columns)", "max(2, triton.next_power_of_2(columns))")),
    ("plan_rows", "4096 lanes at most", "the smallest power of two that is not less than `columns`", ("triton.next_power_of_2(columns)", "min(4096, triton.next_power_of_2(columns))")),
    ("plan_rows", "only real lanes fill the tile", "masked lanes included", ("block * itemsize)", "columns * itemsize)")),
    ("triton_softmax", "128 lanes, whatever the width", "matrices of any width", ("BLOCK=block", "BLOCK=128")),
    ("triton_softmax", "-10000 beside the row", "Numbers may be large, of either sign", ('other=float("-inf")', "other=-1e4"), ("tl.exp(x - tl.max(x, axis=0))", "tl.where(inside, tl.exp(x - tl.max(x, axis=0)), 0.0)")),
    ("triton_softmax", "rounded before the quotient", "rounded once, in the end", ("y = e / tl.sum(e, axis=0)", "y = e.to(y_ptr.dtype.element_ty) / tl.sum(e, axis=0).to(y_ptr.dtype.element_ty)")),
    ("triton_softmax", "a sum in float32", "float64 is computed in float64", ("tl.sum(e, axis=0)", "tl.sum(e.to(tl.float32), axis=0)")),
    ("triton_softmax", "bfloat16 as it is", "float16 and bfloat16 are widened to float32", ("else tl.float32", "else tl.bfloat16 if x.dtype == torch.bfloat16 else tl.float32")),
    ("triton_softmax", "a program for no rows", "there may be no rows", ("(rows,)", "(max(rows, 1),)")),
    ("triton_softmax", "contiguous first, where it is not", "no copy", ("    rows, columns = x.shape\n", "    if not x.is_contiguous():\n        x = x.contiguous()\n    rows, columns = x.shape\n")),
    ("triton_softmax", "a small number below the line", "the softmax of each row", ("tl.sum(e, axis=0)", "(tl.sum(e, axis=0) + 1e-6)")),
    ("triton_softmax", "Triton's own softmax", "no softmax that is there already", ("    e = tl.exp(x - tl.max(x, axis=0))\n    y = e / tl.sum(e, axis=0)\n", "    y = tl.softmax(x)\n")),
    (
        "triton_softmax", "two rows a program, the last not masked", "nothing anywhere else",
        ("tl.program_id(0)\n    lane = tl.arange(0, BLOCK)\n", "tl.program_id(0) * 2 + tl.arange(0, 2)[:, None]\n    lane = tl.arange(0, BLOCK)[None, :]\n"),
        ("tl.max(x, axis=0)", "tl.max(x, axis=1)[:, None]"), ("tl.sum(e, axis=0)", "tl.sum(e, axis=1)[:, None]"), ("(rows,)", "(triton.cdiv(rows, 2),)"),
    ),
    (
        "triton_softmax", "online, and a first block of -inf", "A number of `x` may be -inf: it counts nothing",
        (
            CODE,
            '''
@triton.jit
def softmax_kernel(x_ptr, y_ptr, columns, x_row, x_column, y_row, y_column, BLOCK: tl.constexpr, ACC: tl.constexpr):
    x_ptr += tl.program_id(0) * x_row
    y_ptr += tl.program_id(0) * y_row
    top = tl.full((), float("-inf"), ACC)
    total = tl.full((), 0.0, ACC)
    for start in range(0, columns, BLOCK):
        lane = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + lane * x_column, mask=lane < columns, other=float("-inf")).to(ACC)
        new = tl.maximum(top, tl.max(x, 0))
        total = total * tl.exp(top - new) + tl.sum(tl.exp(x - new), 0)
        top = new
    for start in range(0, columns, BLOCK):
        lane = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + lane * x_column, mask=lane < columns, other=float("-inf")).to(ACC)
        tl.store(y_ptr + lane * y_column, (tl.exp(x - top) / total).to(y_ptr.dtype.element_ty), mask=lane < columns)


def triton_softmax(x, y):
    acc = tl.float64 if x.dtype == torch.float64 else tl.float32
    launch(softmax_kernel, (x.shape[0],), x, y, x.shape[1], *x.stride(), *y.stride(), BLOCK=16, ACC=acc)
''',
        ),
    ),
    ("triton_softmax", "the first call's block", "any width, in every call", ("def triton_softmax", "SIZES = {}\n\n\ndef triton_softmax"), ("BLOCK=block", 'BLOCK=SIZES.setdefault("block", block)')),
    ("triton_softmax", "the largest of torch", "no operator of torch on either", ("    rows, columns = x.shape\n", "    rows, columns = x.shape\n    assert not torch.isnan(x).any()\n")),
    ("triton_softmax", "rows that follow each other", "of any strides", ("*x.stride(), *y.stride()", "*x.stride(), max(y.stride(0), columns), y.stride(1)")),
    ("softmax_backward", "g has the strides of y", "each with strides of its own", ("g_ptr + row * g_row + lane * g_column", "g_ptr + row * y_row + lane * y_column")),
    ("softmax_backward", "dx has the strides of y", "each with strides of its own", ("dx_ptr + row * dx_row + lane * dx_column", "dx_ptr + row * y_row + lane * y_column")),
    ("softmax_backward", "a row of y has no gaps", "each with strides of its own", ("lane * y_column", "lane")),
    ("softmax_backward", "a row of dx has no gaps", "each with strides of its own", ("lane * dx_column", "lane")),
    ("softmax_backward", "a stride of 0 taken for 1", "strides of 0", ("strides = (*g.stride(), ", "strides = (*(s or 1 for s in g.stride()), ")),
    ("softmax_backward", "the product before it is widened", "widened before it is computed with", ("other=0.0).to(ACC)\n    y = ", "other=0.0)\n    y = "), ("other=0.0).to(ACC)\n    dx = y * (g - tl.sum(g * y, axis=0))", "other=0.0)\n    dx = y.to(ACC) * (g.to(ACC) - tl.sum((g * y).to(ACC), axis=0))")),
    ("softmax_backward", "the difference rounded", "rounded once in the end", ("dx = y * (g - tl.sum(g * y, axis=0))", "dx = y * (g - tl.sum(g * y, axis=0)).to(dx_ptr.dtype.element_ty)")),
    ("softmax_backward", "a sum in float32", "float64 is computed in float64", ("tl.sum(g * y, axis=0)", "tl.sum((g * y).to(tl.float32), axis=0)")),
    ("softmax_backward", "a program for no rows", "maybe no rows", ("(rows,)", "(rows or 1,)")),
    ("softmax_backward", "one number everywhere is a case for torch", "nothing done by torch", ("    rows, columns = y.shape\n", "    rows, columns = y.shape\n    if g.stride() == (0, 0):\n        dx.zero_()\n        return\n")),
    ("softmax_backward", "added to what is there", "writes the gradient into `dx`", ("dx = y * (g", "dx = tl.load(dx_ptr + row * dx_row + lane * dx_column, mask=inside, other=0.0).to(ACC) + y * (g")),
    ("softmax_backward", "600 columns at most", "any width", ("triton.next_power_of_2(columns)", "min(64, triton.next_power_of_2(columns))")),
    ("read_ptx", "the letters in the text", "comments", ("every = [name[0] for name in names(ptx) if \"global\" in name]\n    return every.count(\"ld\"), every.count(\"st\")", 'return ptx.count("ld.global"), ptx.count("st.global")')),
    ("read_ptx", "guards that are not negated", "where the first begins with `@`", ('startswith("@")', 'startswith("@%")')),
    ("read_ptx", "four or one", "`v2` or `v4`", ('4 if "v4" in name else 2 if "v2" in name else 1', '4 if "v4" in name else 1')),
    ("read_ptx", "each barrier's name", "how many a `bar.sync`", ('name[:2] == ["bar", "sync"]', 'name[0] == "bar"')),
    ("read_ptx", "in order of size", "in the order of the text", ("    return sizes\n", "    return sorted(sizes)\n")),
    ("read_ptx", "a tab behind a guard", "Split the line at spaces and tabs", ("line.split()", 'line.strip().split(" ")')),
    ("read_ptx", "the third part says how many", "Then there may be words on caches, then `v2` or `v4`", ('4 if "v4" in name else 2 if "v2" in name else 1', '{"v4": 4, "v2": 2}.get(name[2], 1)')),
    ("read_ptx", "butterflies only", "how many instructions are a `shfl`", ('name[0] == "shfl"', 'name[:3] == ["shfl", "sync", "bfly"]')),
    ("read_ptx", "b16, b64, and the rest has four bytes", "`b32` has 32 bits", ("int(name[-1][1:]) // 8", '{"b16": 2, "b64": 8}.get(name[-1], 4)')),
    ("read_ptx", "what is not shared is global", "`shared` and `param` are not", ('name[0] == kind and "global" in name', 'name[0] == kind and "shared" not in name and "param" not in name')),
    ("read_ptx", "guarded instructions only", "with a guard before it where it is masked", ("every = [name[0] for name in names(ptx) if \"global\" in name]", 'every = [name[0] for name in names("\\n".join(x for x in ptx.splitlines() if "@" in x)) if "global" in name]')),
    ("make_softmax", "a fake of float32", "shape, strides, dtype and device", ("x.new_empty(x.shape)", "torch.empty(x.shape, device=x.device)")),
    ("make_softmax", "a fake on the CPU", "shape, strides, dtype and device", ("y.new_empty(y.shape)", "torch.empty(y.shape, dtype=y.dtype)")),
    ("make_softmax", "the backward's fake has g's strides", "a new contiguous tensor", ("y.new_empty(y.shape)", "torch.empty_like(g)")),
    ("make_softmax", "the backward's fake has y's strides", "a new contiguous tensor", ("y.new_empty(y.shape)", "torch.empty_like(y)")),
    ("make_softmax", "a fake of matrices", "one dimension or more", ("x.new_empty(x.shape)", "x.new_empty(x.shape[0], x.shape[-1])")),
    ("make_softmax", "the formula by hand", "call them, and nothing in their place", ("        return gradient(g, *ctx.saved_tensors)", "        (y,) = ctx.saved_tensors\n        return y * (g - (g * y).sum(-1, keepdim=True))")),
    ("make_softmax", "the kernels launched by the formula", "nothing of what it follows may launch a kernel", ("return gradient(g,", "return backward(g,")),
    ("make_softmax", "who knows what is written", "Both write into none of their arguments", ('"_backward", mutates_args=()', '"_backward", mutates_args="unknown"')),
    ("make_softmax", "the latest pair for all", "call them", ("def make_softmax", "PAIR = {}\n\n\ndef make_softmax"), ("    @torch.library.custom_op(name, m", '    PAIR["forward"], PAIR["backward"] = forward, backward\n\n    @torch.library.custom_op(name, m'), ("return forward(x)", 'return PAIR["forward"](x)'), ("return backward(g, y)", 'return PAIR["backward"](g, y)')),
    ("make_softmax", "a dimension as well", "takes a tensor and returns one", ("def softmax(x: torch.Tensor)", "def softmax(x: torch.Tensor, dim: int = -1)"), ("    def _(x):", "    def _(x, dim=-1):"), ("        return gradient(g, *ctx.saved_tensors)", "        return gradient(g, *ctx.saved_tensors), None")),
    ("make_softmax", "a gradient in float32", "the gradient of `x`", ("return gradient(g, *ctx.saved_tensors)", "return gradient(g.float(), *(y.float() for y in ctx.saved_tensors))")),
    ("make_softmax", "the arguments the other way round", "takes two, `g` and `y`", ("def gradient(g: torch.Tensor, y: torch.Tensor)", "def gradient(y: torch.Tensor, g: torch.Tensor)"), ("    def _(g, y):", "    def _(y, g):"), ("return gradient(g, *ctx.saved_tensors)", "return gradient(*ctx.saved_tensors, g)")),
    ("make_softmax", "a flat view inside, back to the shape without a copy", "of any strides", ("return forward(x)", "return forward(x.view(-1, x.shape[-1])).view(x.shape)")),
    ("make_softmax", "no backward's fake", "Each gets a fake", ("    @gradient.register_fake\n    def _(g, y):\n        return y.new_empty(y.shape)\n\n", "")),
    ("make_twice", "sums over dimension 1", "one dimension or more", ("sum(-1, keepdim=True)) - g * (v * y).sum(-1,", "sum(1, keepdim=True)) - g * (v * y).sum(1,")),
    ("make_twice", "the result divided by y", "what becomes of it for `g` and for `y`", ("ctx.save_for_backward(*inputs)", "ctx.save_for_backward(*inputs, output)"), ("g, y = ctx", "g, y, dx = ctx"), ("v * (g - (g * y).sum(-1, keepdim=True))", "v * dx / y")),
    ("make_twice", "views of g", "of any strides", ("        g, y = ctx.saved_tensors\n", "        g, y = ctx.saved_tensors\n        g = g.view(-1, y.shape[-1]).view(y.shape)\n")),
    ("make_twice", "v as if it were detached from its row", "the sum of all `v * dx`", ("g * (v * y).sum(-1, keepdim=True)", "g * (v * y)")),
    ("make_twice", "the formula by hand, once", "the same as `make_softmax`", ("        return gradient(g, *ctx.saved_tensors)", "        (y,) = ctx.saved_tensors\n        return y * (g - (g * y).sum(-1, keepdim=True))")),
    ("roofline", "y is read once", "each is read once in every pass", ("(reads * passes + 1)", "(passes + reads)")),
    ("roofline", "a backward writes in each pass", "Either writes one matrix, once", ("(reads * passes + 1)", "(3 * passes if backward else passes + 1)")),
    ("roofline", "half or single", "All hold numbers of `dtype`", ("dtype.itemsize", "(2 if dtype in (torch.float16, torch.bfloat16) else 4)")),
    ("roofline", "compute where both take equally long", 'where both take equally long, `"memory"`', (">=", ">")),
    ("roofline", "five operations, either way", "a backward four", ("(4 if backward else 5)", "5")),
    ("roofline", "bytes as a float", "how many bytes, a whole number", ("dtype.itemsize", "torch.finfo(dtype).bits / 8")),
    ("swap_softmax", "the first two blocks", "its head and all its blocks", ("in model.blocks", "in model.blocks[:2]")),
    ("swap_softmax", "numbers without a way back", "Nothing else changes", ("self.softmax(scores", "self.softmax(scores.detach()")),
    ("swap_softmax", "one softmax for all of the class", "no other model, made before or later", ("        self.softmax = softmax\n\n    def forward", "        Pattern.softmax = staticmethod(softmax)\n\n    def forward")),
    ("swap_softmax", "the first call's mask", "Nothing else changes", ("        self.softmax = softmax\n\n    def forward", "        self.softmax = softmax\n        self.future = None\n\n    def forward"), ("        future = torch.ones(length, length, dtype=torch.bool, device=q.device).triu(diagonal=1)\n", "        if self.future is None:\n            self.future = torch.ones(length, length, dtype=torch.bool, device=q.device).triu(diagonal=1)\n"), ("masked_fill(future", "masked_fill(self.future")),
    ("swap_softmax", "-5 for the future", "a row of your softmax has -inf where the future is", ("-math.inf", "-5.0")),
    ("swap_softmax", "half the width, whatever the heads", "a scale", ("math.sqrt(q.shape[-1])", "2.0")),
    ("swap_softmax", "a mask of the model's device, made once in the state", "not their names in the state dict", ("        self.softmax = softmax\n\n    def forward", '        self.softmax = softmax\n        self.register_buffer("future", torch.ones(64, 64, dtype=torch.bool).triu(1))\n\n    def forward'), ("        future = torch.ones(length, length, dtype=torch.bool, device=q.device).triu(diagonal=1)\n", "        future = self.future[:length, :length]\n")),
]


def add_to(bank: Bank) -> None:
    """Add all of them to the bank of the lab."""
    for exercise, name, code in RIGHT:
        bank.right(exercise, name, code=code)
    for exercise, name, breaks, *edits in WRONG:
        code = BASE[exercise]
        for old, new in edits:
            assert old == CODE or old in code, f"{exercise}, {name}: {old!r}"
            code = new if old == CODE else code.replace(old, new)
        bank.wrong(exercise, name, code=code, breaks=breaks)
