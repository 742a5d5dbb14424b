"""A second bank of answers to lab 05: other habits, and mistakes that the checks once let pass.

A wrong answer is the base of its exercise with edits, or a cell of its own.
"""

from tests.phases.bank import CODE, Bank

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
    "triton_softmax": SOFTMAX,
    "softmax_backward": BACKWARD,
    "read_ptx": PTX,
    "make_softmax": OPERATOR,
    "make_twice": TWICE,
    "swap_softmax": SWAP,
}

RIGHT = [
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
    ("triton_softmax", "-10000 beside the row", "Numbers may be large, of either sign", ('other=float("-inf")', "other=-1e4"), ("tl.exp(x - tl.max(x, axis=0))", "tl.where(inside, tl.exp(x - tl.max(x, axis=0)), 0.0)")),
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
    ("softmax_backward", "a program for no rows", "maybe no rows", ("(rows,)", "(rows or 1,)")),
    ("softmax_backward", "added to what is there", "writes the gradient into `dx`", ("dx = y * (g", "dx = tl.load(dx_ptr + row * dx_row + lane * dx_column, mask=inside, other=0.0).to(ACC) + y * (g")),
    ("make_softmax", "the latest pair for all", "call them", ("def make_softmax", "PAIR = {}\n\n\ndef make_softmax"), ("    @torch.library.custom_op(name, m", '    PAIR["forward"], PAIR["backward"] = forward, backward\n\n    @torch.library.custom_op(name, m'), ("return forward(x)", 'return PAIR["forward"](x)'), ("return backward(g, y)", 'return PAIR["backward"](g, y)')),
    ("make_softmax", "the arguments the other way round", "takes two, `g` and `y`", ("def gradient(g: torch.Tensor, y: torch.Tensor)", "def gradient(y: torch.Tensor, g: torch.Tensor)"), ("    def _(g, y):", "    def _(y, g):"), ("return gradient(g, *ctx.saved_tensors)", "return gradient(*ctx.saved_tensors, g)")),
    ("make_twice", "the result divided by y", "what becomes of it for `g` and for `y`", ("ctx.save_for_backward(*inputs)", "ctx.save_for_backward(*inputs, output)"), ("g, y = ctx", "g, y, dx = ctx"), ("v * (g - (g * y).sum(-1, keepdim=True))", "v * dx / y")),
    ("make_twice", "views of g", "of any strides", ("        g, y = ctx.saved_tensors\n", "        g, y = ctx.saved_tensors\n        g = g.view(-1, y.shape[-1]).view(y.shape)\n")),
    ("swap_softmax", "one softmax for all of the class", "no other model, made before or later", ("        self.softmax = softmax\n\n    def forward", "        Pattern.softmax = staticmethod(softmax)\n\n    def forward")),
    ("swap_softmax", "the first call's mask", "Nothing else changes", ("        self.softmax = softmax\n\n    def forward", "        self.softmax = softmax\n        self.future = None\n\n    def forward"), ("        future = torch.ones(length, length, dtype=torch.bool, device=q.device).triu(diagonal=1)\n", "        if self.future is None:\n            self.future = torch.ones(length, length, dtype=torch.bool, device=q.device).triu(diagonal=1)\n"), ("masked_fill(future", "masked_fill(self.future")),
    ("swap_softmax", "half the width, whatever the heads", "a scale", ("math.sqrt(q.shape[-1])", "2.0")),
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
