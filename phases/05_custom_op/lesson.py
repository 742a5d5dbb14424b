# ---
# jupyter:
#   kernelspec: {display_name: Python 3, language: python, name: python3}
#   open_the_hood: {title: "An operator of your own"}
# ---

# %% [markdown]
# # An operator of your own
#
# A kernel is a loop that runs on a device. An operator is a kernel that PyTorch knows: autograd goes back through it, the compiler plans around it, a fake tensor passes through it without a number being computed. The loop is the smaller half of the work.
#
# It takes about two and a half hours. You need [phase 00](00_hello.ipynb#cell-id=a-kernel-one-program-at-a-time)'s first kernel, [phase 02](02_autograd.ipynb#cell-id=a-layer-only-has-to-know-one-product)'s vector-Jacobian products and [phase 04](04_dispatcher.ipynb#cell-id=reading-the-table)'s table. Where a paragraph begins with **Predict**, settle on an answer before you look below it. Nothing here is graded, and everything here is used in the lab.
#
# No GPU is needed. Kernels run in Triton's interpreter, on a CPU, and are compiled for a GPU that isn't there. How long they take on one that is, an H100, was recorded; towards the end you read that record. (Triton has no build for macOS. There you can read this page with its outputs, and run it in a Linux container.)

# %%
import warnings
from collections import Counter
from statistics import median

import torch
import triton
import triton.language as tl
from torch.autograd import gradcheck
from torch.utils._python_dispatch import TorchDispatchMode

from hood.learner.contents import PHASES
from utils.instruments import records
from utils.instruments.launching import launch
from utils.minigpt import load_minigpt
from utils.notebook.drills import choice, number, true_false
from utils.softmax import run, softmax
from utils.views import course_path, dispatch_table, kernel_ptx, kernel_steps, row_lanes

# %% [markdown]
# ## Where we are

# %%
course_path(PHASES, here=5)

# %% [markdown]
# In [phase 04](04_dispatcher.ipynb#cell-id=reading-the-table) you read the table: operators down, keys across, and code in the slots. Now you add a row.

# %% [markdown]
# ## Resumen en español
#
# Un *kernel* es un bucle; un *operador* es un kernel que PyTorch conoce. En Triton un programa toma una fila entera: la lee una vez, la reduce y la escribe una vez. El bloque es una potencia de dos, y la máscara decide qué posiciones tocan la memoria; lo que queda fuera de la fila necesita un valor neutro.
# Se acumula en float32 (en float64, si la entrada lo es). El gradiente es otro kernel, y también otro operador.
# PyTorch pide un esquema, un kernel por dispositivo, una versión *fake* que solo conoce formas, y una fórmula para autograd. `gradcheck`, `opcheck`, la comparación y `torch.compile` miran cosas distintas: ninguna prueba lo ve todo.
# Sin GPU se puede leer el PTX, contar lecturas y bytes, y calcular el tiempo que la memoria permite. Lo que tarda de verdad una H100 está medido, y viene con el curso.

# %% [markdown]
# ## The question
#
# A colleague has written softmax in Triton. There is one kernel for the forward and one for the backward; `run.forward` and `run.backward` launch them, and how they work doesn't matter yet. She wraps the pair in an `autograd.Function`, as you did in [phase 02](02_autograd.ipynb#cell-id=a-function-of-your-own), and compares.

# %%
class Softmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = run.forward(x)  # launches a kernel
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        return run.backward(grad_output, *ctx.saved_tensors)  # launches the other


torch.manual_seed(0)
model = load_minigpt()
tokens = torch.zeros(2, 32, dtype=torch.int64)
logits = model(tokens).detach()
apart = (Softmax.apply(logits) - logits.softmax(-1)).abs().max()
print(f"largest difference from torch.softmax: {apart:.0e}")
double = torch.randn(2, 5, dtype=torch.float64, requires_grad=True)
print("gradcheck:", gradcheck(Softmax.apply, double))

# %% [markdown]
# Right in every digit that float32 has, and `gradcheck`, which compares the backward with finite differences, is content. She makes it MiniGPT's softmax, which takes one line, and the model's probabilities are what they were.

# %%
before = model.probabilities(tokens)
model.softmax = Softmax.apply
print("same probabilities:", torch.allclose(model.probabilities(tokens), before, atol=1e-6))

# %% [markdown]
# Then the model is compiled. (`fullgraph=True` asks for one graph without gaps. `aot_eager` is the compiler without its last stage, the one that writes code: it traces, takes apart and runs, and that is enough here.)
#
# **Predict.** The values are right and the gradient is proved. What could the compiler object to?

# %%
def attempt(action, lines=4):
    """Print what `action()` returns, or the type and the first lines of the refusal."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            print(action())
    except Exception as error:
        said = [line for line in str(error).splitlines() if line.strip()][:lines]
        print(f"{type(error).__name__}:", *(f"\n  {line.strip()[:230]}" for line in said), "\n  …")


attempt(
    lambda: torch.compile(model.probabilities, fullgraph=True, backend="aot_eager")(tokens).shape
)

# %% [markdown]
# Neither the class nor the model has a word of that. The compiler follows Python line by line, into our function, into the launcher, into the interpreter that plays GPU here, and somewhere there it asks a tensor without data for its address. (On a GPU it would stumble elsewhere, or recognise the launch and get by. The mistake is the same: it looks *into* a thing that it should take as a whole.)
#
# Why does it not take `torch.softmax` apart in this way? Listen with a mode of [phase 04](04_dispatcher.ipynb#cell-id=listening-in) to what the dispatcher hears of either.

# %%
class Heard(TorchDispatchMode):
    """Writes down the operators that are called, and the bytes that they read and write."""

    def __init__(self):
        super().__init__()
        self.names, self.bytes = [], 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        self.names.append(func.overloadpacket.__name__)
        if not func.is_view:  # a view moves nothing, and what is expanded is read once
            tensors = [t for t in (*args, out) if isinstance(t, torch.Tensor)]
            self.bytes += sum(t.untyped_storage().nbytes() for t in tensors)
        return out


for function in (torch.softmax, lambda x, dim: Softmax.apply(x)):
    with Heard() as heard:
        function(logits, -1)
    print(dict(Counter(heard.names)))

# %% [markdown]
# For `torch.softmax` there is one name. For ours there is no softmax at all, only the bustle of the launcher, which makes room and copies. To autograd the function is a node, since it was told so. To the dispatcher, and to everyone who stands behind it, there is nothing.
#
# > **What must I tell PyTorch about a kernel, so that autograd, the compiler, fake tensors and every device treat it like one of PyTorch's own?**
#
# We answer it on another kernel of the same family, *RMS norm*: each row is divided by its root mean square, $y_i = x_i / \sqrt{\frac1n\sum_j x_j^2 + \varepsilon}$. Many language models use it where MiniGPT has LayerNorm. Like softmax it needs a number made of the whole row before it can write the first element, and all its troubles are softmax's troubles. The softmax is yours to write, in the lab.

# %% [markdown]
# ## One pass or three
#
# Why write a kernel at all? Both functions take a line of PyTorch.

# %%
EPS = 1e-6


def rms_plain(x):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + EPS)


def softmax_plain(x):
    lifted = (x - x.amax(-1, keepdim=True)).exp()
    return lifted / lifted.sum(-1, keepdim=True)


# %% [markdown]
# But each of those operators reads its input from memory and writes its result there, for the next to read. Let *N* be the bytes of x. Whatever we do, N must be read and N written: 2N.
#
# **Predict.** How many N do `rms_plain` and `softmax_plain` move? Count reads and writes of everything that is as large as x; rows shrunk to one number weigh nothing.

# %%
x = torch.randn(2048, 600)
for function in (rms_plain, softmax_plain, lambda x: torch.softmax(x, -1)):
    with torch.no_grad(), Heard() as heard:
        function(x)
    print(f"{heard.bytes / x.nbytes:4.1f} N ", *heard.names)

# %% [markdown]
# Five and eight, where two would do. PyTorch's own softmax is *fused*: one operator, and nothing of what lies between ever reaches memory. (The mode counts a tensor once, as a kernel must at least read it. A fused kernel may still read it more often.)
#
# Inside one kernel the question comes back. Softmax needs the row's maximum, then the sum of the exponentials, then it can write. A kernel that can't keep the row walks over it **three times**: three reads and a write, 4N. Maximum and sum can be had in one walk, if the sum is rescaled whenever the maximum grows (the *online* softmax, Milakov and Gimelshein 2018): 3N. And if the whole row fits into a program's registers, it is read **once**: 2N. 600 float32 are 2,400 bytes; a GPU's multiprocessor has 256 KiB of registers. So they fit, and one pass it is.
#
# The maximum, by the way, is no luxury. **Predict.** What does softmax become without it, for a row that holds 0 and 100?

# %%
row = torch.tensor([0.0, 100.0])
print("without the maximum:", row.exp() / row.exp().sum())
print("with it:            ", softmax_plain(row))
print("exp overflows between 88 and 89:", torch.tensor([88.0, 89.0]).exp())

# %% tags=["hide-input"]
choice(
    "Subtracting the row's maximum changes every exponential. Why is the softmax the same?",
    {
        "It isn't; it is an approximation that is good enough": "Work it out: `exp(x − m)` is `exp(x) · exp(−m)`, and m is one number for the whole row.",
        "The factor stands above and below the line, and cancels": "Any m would do. The maximum is the one for which no exponential exceeds 1, and at least one is 1, so that the sum can't be 0 either.",
        "Large logits are rare": "An untrained model's are small, a confident model's are not. And one row that is NaN makes every weight NaN a step later.",
    },
    answer="The factor stands above and below the line, and cancels",
)

# %% [markdown]
# ## One program, one row
#
# In [phase 00](00_hello.ipynb#cell-id=programs-blocks-and-masks) a program took a block of elements. Now it takes a *row*, because the row must be summed, and programs know nothing of each other. Here is the whole of it, in the first form that comes to mind.

# %%
@triton.jit
def rms_first(x_ptr, y_ptr, columns, x_row, EPS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    place = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * x_row + place, mask=place < columns, other=0.0)
    mean = tl.sum(x * x) / columns
    tl.store(y_ptr + row * columns + place, x * tl.rsqrt(mean + EPS), mask=place < columns)


# %% [markdown]
# `tl.program_id(0)` says which program this is, so which row. `place` is a block of `BLOCK` numbers, 0, 1, 2 …; with it the line below makes a block of addresses, and a load takes a block of addresses and gives a block of values. `tl.sum` makes one number of it. What is a `tl.constexpr` must be known when the kernel is compiled: the size of a block is part of the program's shape, and must be a power of two. `columns` and `x_row`, the distance from one row to the next, may be different at every launch.
#
# A launch needs a *grid*, the number of programs. On a GPU one writes `rms_first[grid](...)`. Here that says:

# %%
attempt(lambda: rms_first[(4,)](torch.ones(4, 6), torch.ones(4, 6), 6, 6, EPS, 8))

# %% [markdown]
# So `launch` goes where the tensors are: to a GPU if they are on one, and else to the interpreter, which runs one program after the other in NumPy. All else is the same.

# %%
def rms_1(x):
    """RMS norm of x (rows, columns), by the first kernel."""
    rows, columns = x.shape
    y = torch.empty(rows, columns, dtype=x.dtype)
    launch(
        rms_first, (rows,), x, y, columns, x.stride(0), EPS, BLOCK=triton.next_power_of_2(columns)
    )
    return y


x = torch.randn(4, 6)
print("right:", torch.allclose(rms_1(x), rms_plain(x)))

# %% [markdown]
# What each program touched, the interpreter can tell. Above is the program's block, with the number of the storage's element that each place goes to; below is the memory. Frames are *sectors* of 32 bytes, the least that a GPU moves. **Predict.** Which elements will program 2 load, how many sectors is that, and what does it do with its last two places? Then move the slider; odd steps load, even ones store.

# %%
y = torch.empty(4, 6)
kernel_steps(rms_first, (4,), x, y, 6, x.stride(0), EPS, BLOCK=8)

# %% [markdown]
# Now something that every kernel meets one day: x is a transposed view. No byte was moved; its strides are (1, 6), as you know from [phase 01](01_tensors.ipynb#cell-id=strides-how-far-is-one-step).
#
# **Predict.** `rms_1(x.t())`: an error, a NaN, or what?

# %%
turned = x.t()
out = rms_1(turned)
print("shape:", tuple(out.shape), " finite:", out.isfinite().all().item())
print("right:", torch.allclose(out, rms_plain(turned)))

# %% [markdown]
# Numbers of the right shape, and wrong. The kernel took the step from one row to the next from the tensor, and the step from one column to the next from thin air: `+ place` says that neighbours in a row are neighbours in memory. A kernel sees no shape and no strides, it sees an address. Whatever it should know of a view, it must be handed.
#
# So every stride becomes an argument. In the same stroke we make the row's number 64 bits wide, for a reason that you find out right now. **Predict.** A row's offset is `row * stride`, both of 32 bits. What are the offsets of rows 0 to 3, if the stride is 2³⁰?

# %%
@triton.jit
def offsets(out_ptr, stride, WIDE: tl.constexpr):
    row = tl.program_id(0)
    if WIDE:
        row = row.to(tl.int64)
    tl.store(out_ptr + tl.program_id(0), row * stride)


found = torch.zeros(4, dtype=torch.int64)
for wide in (False, True):
    launch(offsets, (4,), found, 2**30, wide)
    print(f"64 bits: {wide!s:5} ", *(f"{offset:,}" for offset in found.tolist()))

# %% [markdown]
# Row 2 would lie eight gigabytes *before* the tensor. A batch of 64 sequences of 32 tokens with 600 logits is far from that; a training step of a real model, with 150,000 words and 16,384 tokens, has 2.4 billion logits, and is beyond it.
#
# The second kernel, with both:

# %%
@triton.jit
def rms_second(x_ptr, y_ptr, columns, x_row, x_column, EPS: tl.constexpr, BLOCK: tl.constexpr):
    line = tl.program_id(0).to(tl.int64)
    place = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + line * x_row + place * x_column, mask=place < columns, other=0.0)
    mean = tl.sum(x * x) / columns
    tl.store(y_ptr + line * columns + place, x * tl.rsqrt(mean + EPS), mask=place < columns)


wide = torch.randn(8, 6).t()
y = torch.empty(6, 8)
kernel_steps(rms_second, (6,), wide, y, 8, *wide.stride(), EPS, BLOCK=8)
print("right:", torch.allclose(y, rms_plain(wide)))

# %% [markdown]
# Right, and look at the frames: a row of eight numbers, 32 bytes, is fetched from six sectors, 192 bytes. The next program fetches the same six again. The stores, into a result that we made ourselves and made contiguous, take one sector each. Strides scatter, and memory moves what it moves.

# %% tags=["hide-input"]
number(
    "A (600, 600) tensor of float32 is transposed, and a program loads one row of the view. How many sectors of 32 bytes does it touch?",
    600,
    unit="sectors",
    why="Neighbours in the row are 600 elements, 2,400 bytes, apart: each lies in a sector of its own, of which 4 bytes in 32 are used.",
    wrong={75: "That is the contiguous row: 2,400 bytes in sectors of 32.", 19: "That would be lines of 128 bytes, for a contiguous row."},
)

# %% [markdown]
# ## Masks, and what lies beside the row
#
# A block is a power of two, and rows are not. **Predict.** How many places does a block need for a row of 512 columns, of 513, of 600, of 601?

# %%
for columns in (512, 513, 600, 601):
    places = triton.next_power_of_2(columns)
    print(f"{columns} columns: a block of {places:,}, {places - columns} places masked off")

# %% [markdown]
# Masked places cost no memory, but they cost lanes: threads that add zeros. Just above a power of two, half of them idle. Here is a row of 601, and below it the idle part of rows of any width, up to 2,048.

# %%
row_lanes(601)

# %% [markdown]
# The mask has two duties. The first is to keep the program away from memory that isn't its own. Let us see what happens without one. We cut input and output out of larger storages, so that what lies beside them is ours too; beside the output are sevens.
#
# **Predict.** Four rows of six, blocks of eight, no mask at all: each program copies two elements too many. Is the copy right? Who notices?

# %%
@triton.jit
def copy_rows(x_ptr, y_ptr, columns, BLOCK: tl.constexpr):
    at = tl.program_id(0) * columns + tl.arange(0, BLOCK)
    tl.store(y_ptr + at, tl.load(x_ptr + at))


ground = torch.full((40,), 7.0)
source, copy = torch.randn(40)[8:32].view(4, 6), ground[8:32].view(4, 6)
kernel_steps(copy_rows, (4,), source, copy, 6, BLOCK=8, step=8)
print("the copy is right:", torch.equal(copy, source))
print("sevens left behind it:", int((ground[32:] == 7).sum()), "of 8")

# %% [markdown]
# The copy is right! Each program writes two elements of the next row as well, and since it reads where it writes, it writes them rightly. A kernel that *computes* something of its row would leave two wrong numbers there, until the next program repairs them, because the interpreter runs them in order. A GPU promises no order, so there it would be right on some days. And the last program has written over two numbers of somebody else's, which no comparison of results will ever show. Whoever tests a kernel cuts its output from the middle of a storage, and looks at both sides.
#
# The second duty is about values. Places that are masked off still take part in everything the block does, `tl.sum` and `tl.max` included, so they must hold something: that is `other`. **Predict.** The maximum of each row, with a mask and no `other`; all numbers are below −1.

# %%
@triton.jit
def row_peaks(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row, place = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + place, mask=place < columns)
    tl.store(out_ptr + row, tl.max(x, 0))


low, peaks = -1 - torch.rand(3, 5), torch.empty(3)
launch(row_peaks, (3,), low, peaks, 5, BLOCK=8)
print("kernel: ", peaks.tolist())
print("PyTorch:", [round(peak, 3) for peak in low.amax(1).tolist()])

# %% [markdown]
# Zero, three times: with that the interpreter fills the places that are masked off. And a GPU? Triton's documentation promises nothing. What the compiler of this version does stands in its output, of which more later:

# %%
from utils.softmax import compile_kernel

code = compile_kernel(
    row_peaks,
    {"x_ptr": "*fp32", "out_ptr": "*fp32", "columns": "i32"},
    {"BLOCK": 128},
    divisible=["x_ptr"],
)
lines = [line.strip() for line in code.ptx.splitlines()]
load = next(k for k, line in enumerate(lines) if "ld.global" in line)
print(*lines[load - 1:load + 1], sep="\n")

# %% [markdown]
# The register is set to 0, and the load happens only if the predicate `%p1`, the mask, is on. So it is 0 there, too, today. For a sum that is just the right value, which is why the mistake survives: `rms_second` would pass without its `other`. What belongs there is the *neutral* value of whatever the block goes through next, the one that leaves the result as it is.

# %% tags=["hide-input"]
choice(
    "A masked row goes first through a maximum and then, less that maximum and exponentiated, through a sum. Which single `other` is neutral for both?",
    {
        "0": "For a row of negative numbers 0 would win the maximum; and in the sum it would add exp(0 − max), which isn't 0.",
        "the smallest finite float": "It loses every maximum, except against −inf: a row of nothing but −inf would become something else. Why stop short?",
        "−inf": "It loses every maximum, and its exponential is 0.",
    },
    answer="−inf",
)

# %% [markdown]
# A row can hold −inf itself: attention masks the future with it. A row of nothing but −inf has no softmax, for there −inf − (−inf) is asked. PyTorch's answer is NaN, and an operator that wants to take its place gives the same.

# %%
masked = torch.tensor([[0.0, -torch.inf, 1.0], [-torch.inf] * 3])
print("PyTorch:", torch.softmax(masked, -1).tolist())
print("ours:   ", softmax(masked).tolist())

# %% tags=["hide-input"]
choice(
    "In `rms_second` somebody writes `tl.sum(x * x) / BLOCK`. For which rows is the result wrong?",
    {
        "for none: the masked places are 0 and add nothing": "To the sum they add nothing. But a mean divides, and by how many?",
        "for all whose length is no power of two": "600 squares are summed and divided by 1,024: the row comes out 1.31 times too large. With 512 or 1,024 columns, as in most people's tests, it is right.",
        "for rows that hold zeros": "Zeros of the row's own count as members of it, rightly. It is the places beside the row that must not be counted.",
    },
    answer="for all whose length is no power of two",
)

# %% [markdown]
# ## Half precision
#
# Models live in half precision, so our kernel must. **Predict.** `rms_second` on 300 times a row of normal numbers, in float16. The result has a root mean square of 1 by definition, so it can't overflow. What comes out?

# %%
def rms_2(x):
    y = x.new_empty(x.shape)
    rows, columns = x.shape
    launch(
        rms_second, (rows,), x, y, columns, *x.stride(), EPS, BLOCK=triton.next_power_of_2(columns)
    )
    return y


half = (300 * torch.randn(2, 6)).half()
print("kernel:        ", rms_2(half)[0].tolist())
print("done in float32:", [round(value, 2) for value in rms_plain(half.float())[0].tolist()])

# %% [markdown]
# Zeros. 300² is 90,000, float16 ends at 65,504, so the mean is infinite, its reciprocal root is 0, and no warning is given. The numbers came in half and go out in half; it is what happens *between* that must be wider. It costs nothing: a kernel that waits for memory has time to compute in float32.
#
# And bfloat16, whose range is float32's? There the interpreter has a surprise of its own.

# %%
brain = torch.randn(2, 6).bfloat16()
print("kernel:", rms_2(brain)[0].tolist())

# %% [markdown]
# NumPy has no bfloat16. The interpreter keeps such numbers as 16-bit integers, and if you multiply them, it multiplies integers. The compiler knows the type and would have no trouble. So convert what you have loaded before you do anything with it, and both problems are gone.
#
# Which type is wide enough? float32 for everything up to 32 bits, and float64 for float64. The latter isn't vanity: `gradcheck` takes its differences in float64, and would find a kernel that secretly rounds to float32. The type is a `constexpr`, since it changes what is compiled.

# %%
@triton.jit
def rms_kernel(x_ptr, y_ptr, columns, x_row, x_column,
               EPS: tl.constexpr, ACC: tl.constexpr, BLOCK: tl.constexpr):
    line, place = tl.program_id(0).to(tl.int64), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + line * x_row + place * x_column, mask=place < columns, other=0.0)
    x = x.to(ACC)
    mean = tl.sum(x * x) / columns
    y = x * tl.rsqrt(mean + EPS)
    tl.store(y_ptr + line * columns + place, y.to(y_ptr.dtype.element_ty), mask=place < columns)


def run_rows(kernel, out, *inputs):
    """Run a row kernel of this lesson on inputs (rows, columns); return `out`, filled."""
    rows, columns = out.shape
    strides = [step for tensor in inputs for step in tensor.stride()]
    wide = tl.float64 if out.dtype == torch.float64 else tl.float32
    padded = triton.next_power_of_2(columns)
    launch(kernel, (rows,), *inputs, out, columns, *strides, EPS, wide, padded)
    return out

# %%
for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
    x = (300 * torch.randn(4, 600)).to(dtype)
    y = run_rows(rms_kernel, torch.empty_like(x), x)
    true = rms_plain(x.double())
    print(
        f"{str(dtype):15} largest error {(y - true).abs().max():.0e}, one step at 4 is "
        f"{4 * torch.finfo(dtype).eps:.0e}"
    )

# %% [markdown]
# Every error is at most a step of the type that was asked for. One trap is left, and it is the interpreter's again. **Predict.** float64 numbers are stored in a bfloat16 tensor; the kernel converts.

# %%
@triton.jit
def to_bfloat16(x_ptr, y_ptr, BY_FLOAT32: tl.constexpr, BLOCK: tl.constexpr):
    place = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + place)
    if BY_FLOAT32:
        x = x.to(tl.float32)
    tl.store(y_ptr + place, x.to(tl.bfloat16))


numbers, out = (
    torch.tensor([1.0, 2.0, 3.0, 0.5], dtype=torch.float64),
    torch.empty(4, dtype=torch.bfloat16),
)
for by_float32 in (False, True):
    launch(to_bfloat16, (1,), numbers, out, by_float32, BLOCK=4)
    print(f"by way of float32: {by_float32!s:5} ", out.tolist())

# %% [markdown]
# It makes an integer of the number, 1 of 1.0 and 0 of 0.5, and takes that for the sixteen bits. The interpreter is a model of the machine, and a good one; where it errs, go round it, and say so in a comment.

# %% tags=["hide-input"]
true_false(
    "A kernel that is right in the interpreter, for all shapes, strides and dtypes, is right on a GPU.", False,
    "Programs run one after another here, so two that write the same place never meet; and Python accepts much that the compiler refuses, as you will see. The interpreter proves the arithmetic. For the rest compile it, and run it on a GPU.",
)

# %% [markdown]
# ## The backward is a kernel, too
#
# What does autograd pay for `rms_plain`? Every operator has saved something and has a backward of its own.
#
# **Predict.** In N, the bytes of x: a fused backward reads the gradient g and x, and writes dx, so 3N. How many does the chain of five operators need?

# %%
x = torch.randn(2048, 600, requires_grad=True)
y = rms_plain(x)
upstream = torch.randn(2048, 600)
with Heard() as heard:
    y.backward(upstream)
print(f"{heard.bytes / x.nbytes:.1f} N ", *heard.names)

# %% [markdown]
# Nearly six times what is needed, and the forward was the smaller half.
#
# So we derive it by hand, as in [phase 02](02_autograd.ipynb#cell-id=a-layer-only-has-to-know-one-product). With $r = 1/\sqrt{\frac1n\sum x_j^2 + \varepsilon}$ and $y = r\,x$, each $x_i$ acts on its own $y_i$, and through r on all of them. Collect the terms:
#
# $$dx = r\,\bigl(g - y\cdot\tfrac1n\textstyle\sum_j g_j\,y_j\bigr)$$
#
# A reduction over the row, and then everything elementwise: the same form as the forward, and the same form as softmax's. What must be kept for it? y and r would do; so would x, from which both are quickly made again. x lies in memory anyway, as somebody's output; y and r would have to be kept on purpose. We keep x. (For softmax the colleague kept y, and y alone. Work out why that is enough.)

# %%
@triton.jit
def rms_backward_kernel(
    g_ptr, x_ptr, dx_ptr, columns, g_row, g_column, x_row, x_column,
    EPS: tl.constexpr, ACC: tl.constexpr, BLOCK: tl.constexpr,
):
    line = tl.program_id(0).to(tl.int64)
    place = tl.arange(0, BLOCK)
    on = place < columns
    g = tl.load(g_ptr + line * g_row + place * g_column, mask=on, other=0.0).to(ACC)
    x = tl.load(x_ptr + line * x_row + place * x_column, mask=on, other=0.0).to(ACC)
    r = tl.rsqrt(tl.sum(x * x) / columns + EPS)
    y = r * x
    dx = r * (g - y * (tl.sum(g * y) / columns))
    tl.store(dx_ptr + line * columns + place, dx.to(dx_ptr.dtype.element_ty), mask=on)


# %% [markdown]
# Note that g has strides of its own. **Predict.** Somebody writes `rms(x).sum().backward()`. Which strides does the g have that arrives at our backward?

# %%
x = torch.randn(3, 4, requires_grad=True)
y = rms_plain(x)
y.register_hook(lambda g: print("g: shape", tuple(g.shape), "strides", g.stride()))
y.sum().backward()
g = torch.ones(()).expand(3, 4)
dx = run_rows(rms_backward_kernel, torch.empty(3, 4), g, x.detach())
print("as autograd has it:", torch.allclose(dx, x.grad, atol=1e-6))

# %% [markdown]
# (0, 0): one number in memory, expanded. The commonest of all gradients isn't contiguous, and a kernel that walks over g with x's strides reads eleven numbers that are somebody else's. No check with `torch.randn_like(y)` for a gradient would tell.

# %% tags=["hide-input"]
choice(
    "In the backward kernel the load of x keeps `other=0.0`, but the one of g has lost its `other`. On a machine where such places hold garbage, what is wrong?",
    {
        "nothing: y is 0 there, so g · y is 0": "Almost always. But garbage may be inf or NaN, and 0 · inf is NaN: then the whole row is.",
        "the sum, where garbage is infinite or NaN": "The product with y's zeros hides every finite number. It fails on rare days, which is the worst kind.",
        "the elements of dx beside the row": "Those are never stored: the mask of the store sees to that.",
    },
    answer="the sum, where garbage is infinite or NaN",
)

# %% [markdown]
# ## What PyTorch asks of an operator
#
# Now tell PyTorch. First, that there is an operator at all: a name with a namespace, a schema, and a function for some kind of device. `custom_op` reads the schema off the annotations.

# %%
from torch.library import custom_op


@custom_op("hood::rms_norm", mutates_args=(), device_types="cpu")
def rms_norm(x: torch.Tensor) -> torch.Tensor:
    return run_rows(rms_kernel, x.new_empty(x.shape), x)


print(torch.ops.hood.rms_norm.default._schema)

# %% [markdown]
# `mutates_args=()` is a promise: no argument is written to ([phase 04](04_dispatcher.ipynb#cell-id=schemas-and-overloads)'s letters; a plain `Tensor` is the promise in the schema). A row of the table has been added, and one slot filled.
#
# **Predict.** Which of these four work now? A call; a mode that hears it; a backward; `torch.compile`.

# %%
plain = torch.randn(4, 6)
with Heard() as heard:
    rms_norm(plain)
print("heard:", heard.names)
attempt(lambda: rms_norm(plain.clone().requires_grad_()).sum().backward(), lines=1)
attempt(lambda: torch.compile(rms_norm, fullgraph=True, backend="aot_eager")(plain), lines=2)

# %% [markdown]
# It is heard, by its name and whole. The backward is refused: `custom_op` has put a function at the Autograd keys that knows no formula and says so. (Remember [phase 04](04_dispatcher.ipynb#cell-id=order-fallthrough-redispatch)'s `double`, which had no such function, and was differentiable by accident. An honest error is worth more.) And the compiler no longer looks inside. It only wants to know one thing: what will come out?
#
# ### What comes out
#
# The compiler runs the program on tensors without data. For those our kernel can do nothing, so it gets a stand-in, the **fake**: shape, strides, dtype, device of the result, and not a number. (`x.new_empty(shape)` makes a contiguous tensor of x's dtype, where x is.)

# %%
from torch._subclasses import FakeTensorMode


@rms_norm.register_fake
def _(x):
    return x.new_empty(x.shape)


with FakeTensorMode():
    print(rms_norm(torch.empty(65536, 600, device="cuda")))
print(rms_norm(torch.empty(65536, 600, device="meta")).shape)
print(torch.compile(rms_norm, fullgraph=True, backend="aot_eager")(plain).shape)

# %% [markdown]
# 157 megabytes on a GPU that isn't there, and a compiled call. The Meta slot of the row is filled, for tensors on `meta`; the mode of fake tensors calls the same function itself. (What the compiler says without one depends on how the operator was made. Of a `custom_op` it says what stood above, “There was no fake impl registered for …”; of an operator that was put into the table by hand, as phase 04's `double` was, “Operator does not support running with fake tensors”. Both want the same.)
#
# Strides are part of the answer. `torch.empty_like(x)` would be shorter, and for a contiguous x it gives the same. For `x.t()` it keeps the transposed strides, while our kernel makes a contiguous result: the fake would lie, and whoever believes it plans with strides that don't come.
#
# ### How to go back
#
# A formula, and what to save for it. The formula is given upstream gradients and returns one gradient for each input. **Predict.** Our backward kernel is ready. May the formula launch it directly?

# %%
@custom_op("hood::rms_norm_backward", mutates_args=(), device_types="cpu")
def rms_norm_backward(g: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    return run_rows(rms_backward_kernel, x.new_empty(x.shape), g, x)


@rms_norm_backward.register_fake
def _(g, x):
    return x.new_empty(x.shape)


def keep_inputs(ctx, inputs, output):
    ctx.save_for_backward(*inputs)  # those of the forward, or g and x


rms_norm.register_autograd(
    lambda ctx, g: rms_norm_backward(g, *ctx.saved_tensors), setup_context=keep_inputs
)

# %% [markdown]
# It may not. The compiler traces the backward just as it traces the forward, on tensors without data, and would meet a bare kernel there: the opening's mistake once more, one floor lower. So the backward is an operator as well, with a fake of its own. In the matrix below you will see what else it is good for.

# %%
step = torch.compile(lambda x: rms_norm(x).square().sum(), fullgraph=True, backend="aot_eager")
x = plain.requires_grad_()
step(x).backward()
compiled_grad, x.grad = x.grad, None
rms_plain(x).square().sum().backward()
print("compiled, forward and backward, as eager:", torch.allclose(compiled_grad, x.grad, atol=1e-5))

# %% [markdown]
# ### On which device
#
# One row, several devices: each backend has a slot of its own. `launch` goes where the tensors are, so the function for CUDA is the same; here it is registered and never run. Before you look at the table: **Predict.** At which of the keys CPU, CUDA, Meta, AutogradCPU, SparseCPU does our row hold something?

# %%
@rms_norm.register_kernel("cuda")
def _(x):
    return run_rows(rms_kernel, x.new_empty(x.shape), x)


dispatch_table(
    ["hood::rms_norm", "hood::rms_norm_backward", "open_the_hood::softmax",
     "aten::_softmax", "aten::softmax.int"],
    ["AutocastCPU", "AutogradCPU", "AutogradCUDA", "ADInplaceOrView", "Python", "Meta",
     "SparseCPU", "CUDA", "CPU"],
)

# %% [markdown]
# Compare the first line with the second, whose CUDA slot is empty: a gradient on a GPU would end there. The finished softmax of this course (third line) has all of them. And `aten::_softmax`, which thousands of people use every day, is a row like yours.
#
# ### Two kinds of box
#
# `custom_op` makes a *closed* box: the compiler plans around it and never looks inside. Anything may be in there, an interpreted kernel, NumPy, a call of another library. Its sister `triton_op` makes an *open* one. Inside it the kernel is launched through `wrap_triton`, and the compiler sees that launch, with the kernel's own text. It needs a real CUDA device to run. To be traced it doesn't need one: we give it a fake.

# %%
import contextlib
import logging

from torch._dynamo.backends.common import aot_autograd
from torch.library import triton_op, wrap_triton

logging.getLogger("torch._dynamo").setLevel(logging.CRITICAL)  # it misses a GPU, at length


@triton_op("hood::rms_open", mutates_args={})
def rms_open(x: torch.Tensor) -> torch.Tensor:
    y = x.new_empty(x.shape)
    wrap_triton(rms_kernel)[(x.shape[0],)](x, y, x.shape[1], *x.stride(), EPS, tl.float32, 1024)
    return y


attempt(lambda: rms_open(torch.randn(4, 600)))

# %% [markdown]
# **Predict.** The compiler traces `op(x) * 2`, once with the closed box and once with the open one. What stands in its graph?

# %%
def traced(op):
    """Print what the compiler's graph holds for op(x) * 2, with x on a fake GPU."""
    graphs = []
    backend = aot_autograd(fw_compiler=lambda graph, inputs: graphs.append(graph) or graph)
    with FakeTensorMode(), contextlib.suppress(RuntimeError):  # only running it takes a GPU
        torch.compile(lambda x: op(x) * 2, backend=backend)(torch.empty(4, 600, device="cuda"))
    calls = [node.target for node in graphs[0].graph.nodes if node.op == "call_function"]
    print(*(str(getattr(call, "__name__", call)) for call in calls), sep=", ")


traced(rms_norm)
traced(rms_open)

# %% [markdown]
# Above: our operator, a box. Below: the box is gone, and in its place are a `new_empty` and a launch that the compiler knows as one (`triton_kernel_wrapper…`; the `getitem` unpack its result). It can now do something with both, reuse that memory for one. If your operator is nothing but Triton and lives on GPUs, that is the better form; if it must also run on a CPU, or holds anything else, `custom_op`. The course uses `custom_op`, for your laptop's sake.

# %% tags=["hide-input"]
choice(
    "An operator returns its argument unchanged if there is nothing to do: `if scale == 1: return x`. It is registered with `mutates_args=()` and returns a Tensor. What does PyTorch say?",
    {
        "nothing: no argument was written to": "Not written to, but passed out again. The schema `Tensor x -> Tensor` also promises new memory; an alias would be `Tensor(a)`.",
        "it refuses the call: the result must not be an input": "`custom_op` looks, each time, and asks you to return a clone. A compiler that believes the schema would otherwise reuse x's memory while the result still lives there.",
        "only the compiler objects": "It would be the one to suffer. But the check is made at run time, in eager mode too.",
    },
    answer="it refuses the call: the result must not be an input",
)

# %%
same = custom_op("hood::same", lambda x: x, mutates_args=(), schema="(Tensor x) -> Tensor")
try:
    same(torch.ones(3))
except RuntimeError as error:
    print("…", str(error).split("): ")[1][:134], "…")

# %% [markdown]
# ## Proofs, and what each does not see
#
# How do you know that the operator is right? There are four instruments in the shop, and each measures something else. *Compare* with a plain version, on contiguous and on transposed inputs. `gradcheck`: is the backward the derivative of this forward? (And `gradgradcheck`: is the backward's backward the derivative of the backward?) `opcheck`: do schema, fake and autograd registration agree with what the operator does? And compile it, in one graph, both ways.
#
# For `gradgradcheck` the backward needs a formula, too. It is needed seldom, so it may be slow: we write the backward in plain PyTorch, and let autograd differentiate that.

# %%
def backward_plain(g, x):
    r = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + EPS)
    return r * (g - r * x * (g * r * x).mean(-1, keepdim=True))


def twice(ctx, v):
    with torch.enable_grad():
        g, x = (t.detach().requires_grad_() for t in ctx.saved_tensors)
        return torch.autograd.grad(backward_plain(g, x), (g, x), v)


rms_norm_backward.register_autograd(twice, setup_context=keep_inputs)

# %% [markdown]
# Here are the instruments, each a function that raises when it finds something. They take any operator.

# %%
def samples(dtype=torch.float32):
    """The same (3, 6) numbers, contiguous and as a transposed view, requiring gradients."""
    numbers = torch.linspace(-2, 3, 18, dtype=dtype).reshape(3, 6)
    return [numbers.clone().requires_grad_(), numbers.t().contiguous().t().requires_grad_()]


def compare(op):
    for x in samples():
        torch.testing.assert_close(
            op(x.detach().clone(memory_format=torch.preserve_format)), rms_plain(x).detach()
        )


def compile_both_ways(op):
    torch._dynamo.reset()
    function = torch.compile(lambda x: op(x) * 2, fullgraph=True, backend="aot_eager")
    for x in samples():
        weights = torch.linspace(0, 1, 18).reshape(3, 6)
        (got,) = torch.autograd.grad(function(x), x, weights)
        torch.testing.assert_close(got, torch.autograd.grad(op(x) * 2, x, weights)[0])

# %%
from torch.autograd import gradgradcheck
from torch.library import opcheck

proofs = {
    "compare": compare,
    "gradcheck": lambda op: gradcheck(op, samples(torch.float64)[0]),
    "gradgradcheck": lambda op: gradgradcheck(op, samples(torch.float64)[0][:2]),
    "opcheck": lambda op: opcheck(op, (samples()[0],)),
    "opcheck, transposed": lambda op: opcheck(op, (samples()[1],)),
    "compile": compile_both_ways,
}

# %% [markdown]
# And here are eight ways to get it wrong, each a small step from what we did. Two compute something else; one has half the gradient, one none; two have a fake that lies, or none; one launches its backward's kernel bare; one breaks the promise of its schema.

# %%
def fresh(x):
    return x.new_empty(x.shape)


def rms(x):
    return run_rows(rms_kernel, fresh(x), x)


def version(name, forward=rms, fake=fresh, formula=rms_norm_backward):
    """An operator like rms_norm, but for what is given."""
    made = custom_op(f"hood::{name}", forward, mutates_args=(), schema="(Tensor x) -> Tensor")
    if fake:
        made.register_fake(fake)
    if formula:
        made.register_autograd(
            lambda ctx, g: formula(g, *ctx.saved_tensors), setup_context=keep_inputs
        )
    return made

# %%
def in_place(x):
    return x.copy_(rms(x)).clone(memory_format=torch.contiguous_format)


def by_block(x):  # the sum divided by BLOCK, which is 8 for the 6 columns of the samples
    return (x * torch.rsqrt(x.pow(2).sum(-1, keepdim=True) / 8 + EPS)).contiguous()


def by_block_backward(g, x):  # and its true derivative
    r = torch.rsqrt(x.pow(2).sum(-1, keepdim=True) / 8 + EPS)
    return r * (g - r * x * (g * r * x).sum(-1, keepdim=True) / 8)

# %%
versions = {
    "right": rms_norm,
    "divides by BLOCK": version("by_block", forward=by_block, formula=by_block_backward),
    "float32 inside": version(
        "narrow", forward=lambda x: run_rows(rms_kernel, fresh(x.float()), x.float()).to(x.dtype)
    ),
    "half the gradient": version("half", formula=lambda g, x: rms_norm_backward(g, x) / 2),
    "no formula": version("no_formula", formula=None),
    "no fake": version("no_fake", fake=None),
    "fake like its input": version("like_input", fake=torch.empty_like),
    "bare kernel in backward": version(
        "bare", formula=lambda g, x: run_rows(rms_backward_kernel, fresh(x), g, x)
    ),
    "writes to its input": version("in_place", forward=in_place),
}

# %% [markdown]
# **Predict.** Before you run it, settle three things. Which instrument, if any, sees that a kernel divides by `BLOCK`, when its backward is the true derivative of the wrong function? Which sees half a gradient? And which is the only one to see a fake that is like its input? (54 proofs are run, which takes a quarter of a minute.)

# %%
from utils.views import proof_matrix

proof_matrix(versions, proofs)

# %% [markdown]
# Every cell has just been run. Move through the refusals and read what they say, for you will meet them again. What to take home:
#
# - **Dividing by BLOCK** is a perfectly good operator, of another function. Only a comparison can know what you *meant*; and it too, only at a length that is no power of two.
# - **Half a gradient** passes `opcheck`. It tests registration: that there is a gradient, which can be traced. Whether it is the right one, it doesn't ask.
# - **A bare kernel** passes `gradcheck`. Its numbers are right. It can't be traced, and it can't be differentiated: to autograd the kernel's result doesn't depend on anything, so the second derivative is "expected to be zero".
# - **A fake like its input** passes everything that has only seen contiguous tensors, and here even the compiler, which happens not to need the strides. `opcheck` sees it if, and only if, you show it a transposed input. An instrument sees what it is shown.
# - **float32 inside** is right, to float32. Only `gradcheck` notices: it takes differences over steps of a millionth, of which float32 sees little.
# - **Writing to the input** is invisible to whoever looks at the result alone, and even to the compiler. `opcheck` compares the input before and after; `gradcheck` stumbles over an input that is no longer what it was.

# %% tags=["hide-input"]
choice(
    "You may run two of the six, and no more. Which pair refuses all eight wrong versions of this table?",
    {
        "gradcheck and compile": "Look at the row `divides by BLOCK`. Its gradient is the true one of what it computes, and it compiles.",
        "compare and opcheck, transposed": "Nearly. Half a gradient and float32 inside pass both: the one looks at values alone, and not at their last digits, the other only at registration.",
        "none does": "Dividing by BLOCK needs the comparison, half a gradient needs gradcheck, a lying fake needs opcheck with a transposed input. That makes three.",
    },
    answer="none does",
)

# %% [markdown]
# And the colleague's softmax? With the four things told, her kernels are the operator `open_the_hood::softmax`, which this course ships. **Predict.** It is put into MiniGPT in the same one line as before. How many graphs, and what stands at the end of it?

# %%
model.softmax = softmax
torch._dynamo.reset()
graphs = []
step = torch.compile(
    model.probabilities, backend=lambda graph, inputs: graphs.append(graph) or graph
)
print("same probabilities:", torch.allclose(step(tokens), before, atol=1e-6))
print(
    len(graphs),
    "graph; its last calls:",
    *[str(node.target) for node in graphs[0].graph.nodes][-3:-1],
)

# %% [markdown]
# One graph, without `fullgraph` having to insist, and the operator stands in it under its name, behind the LM head's `linear`. In [phase 06](06_compile.ipynb#cell-id=a-graph-is-data) you will rewrite such graphs.

# %% [markdown]
# ## The same kernel as PTX
#
# So far NumPy has played GPU. The compiler, however, needs no GPU either: given the types of the arguments and a target it makes the same text as on a machine that has one. `sm_90` is a Hopper GPU, an H100 or H200. `ptx_of` takes a launch that was recorded.
#
# **Predict.** This kernel rounds its numbers to half precision if there are many of them. In the interpreter it runs. Does it compile?

# %%
from utils.instruments.launching import ptx_of, recorded_launches


@triton.jit
def sometimes_half(x_ptr, columns, BLOCK: tl.constexpr):
    place = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + place)
    if columns > 4:
        x = x.to(tl.float16)
    tl.store(x_ptr + place, x)


with recorded_launches() as launches:
    launch(sometimes_half, (1,), torch.randn(8), 8, BLOCK=8)
attempt(lambda: ptx_of(launches[0]))

# %% [markdown]
# To Python a name is a name. In a compiled program a variable has one type, whichever way the program goes. The interpreter accepts a good deal more than a GPU can run, so a kernel that has never been compiled is half tested.
#
# Now ours, for contiguous rows of 600.

# %%
def for_hopper(columns, warps=4, known=()):
    """rms_kernel, compiled for contiguous float32 rows; `known`: sizes that 16 divides."""
    return compile_kernel(
        rms_kernel,
        {"x_ptr": "*fp32", "y_ptr": "*fp32", "columns": "i32", "x_row": "i32"},
        {"x_column": 1, "EPS": EPS, "ACC": tl.float32, "BLOCK": triton.next_power_of_2(columns)},
        num_warps=warps,
        divisible=["x_ptr", "y_ptr", *known],
    )


code = for_hopper(600)
for stage in ("ttir", "ttgir", "llir", "ptx", "sass"):
    print(f"{stage:6}", f"{len((getattr(code, stage) or '').splitlines()):5} lines")

# %% [markdown]
# Five languages, each nearer to the machine. In TTIR there are blocks and no threads yet. TTGIR says which thread holds which element. LLVM IR and PTX are the program of *one thread*; PTX is NVIDIA's assembly language for GPUs in general, and SASS that of this one. In PTX the kernel's lines can still be found again.
#
# **Predict.** Four warps are 128 threads, the block has 1,024 places. How many loads does the line with `tl.load` leave in the program of one thread? And what does `tl.sum` become, when each thread holds only a part of the row? Move to the lines and look.

# %%
kernel_ptx(rms_kernel, code, line=6)

# %% [markdown]
# Eight loads, each under a predicate: that is the mask. The sum goes in three stages. Each thread adds its own eight squares (`fma`). Then threads of a warp exchange: `shfl.sync.bfly` hands a register to the thread whose number differs in one bit, and after five of them, 16, 8, 4, 2, 1, all 32 hold the sum. Last, the four warps: one thread of each puts its sum into *shared* memory, all wait at a barrier (`bar.sync`), and the four sums are added with two exchanges more.
#
# **Predict.** The same kernel with one warp: which of these instructions vanish?

# %%
for warps in (4, 1):
    found = Counter(
        name
        for name in for_hopper(600, warps).ptx.split()
        if name.startswith(("shfl", "bar.", "ld.global", "st.shared"))
    )
    print(f"{warps} warps:", dict(found))

# %% [markdown]
# No shared memory, no barrier: a warp keeps step by itself. For that every thread has 32 elements now in place of 8. Which is better, a GPU must say, and further down it does.
#
# Now look at the loads again: `ld.global.b32`, one number of 32 bits each. A GPU can move four in one instruction, `ld.global.v4.b32`, if the address is a multiple of 16 bytes. **Predict.** 600 columns and 4,096 columns: in which does each row begin at such an address? And what does the compiler know of it?

# %%
def loads(code):
    """The kinds of instruction that load from the GPU's memory, and how many of each."""
    return dict(Counter(word for word in code.ptx.split() if word.startswith("ld.global")))


for columns, known in {600: [], 4096: ["columns", "x_row"]}.items():
    code = for_hopper(columns, known=known)
    layout = next(line for line in code.ttgir.splitlines() if line.startswith("#blocked"))
    print(f"{columns:5,} columns:", loads(code), layout.split("{")[1].split(",")[0])

# %% [markdown]
# 4,096 columns, nearly seven times as many, take the same eight loads. TTGIR, where it is decided who holds what, says it as well: a thread holds one element and skips to its next, or it holds four neighbours at a time. But 600 floats are 2,400 bytes, which *is* a multiple of 16. Each row could be loaded four at a time!
#
# The compiler doesn't know. `columns` and `x_row` come in when the kernel is launched. Of such a number's divisors Triton asks one thing only, whether 16 is among them, and if so it compiles a version of its own; that is what `known` stands for. (It also asks whether the number is 1, and then takes it for a constant.) 4,096 % 16 = 0, and 600 % 16 = 8. So a stride of 600 is any number, and a row may begin anywhere.
#
# One can tell it more. The finished softmax passes the width as a number of groups, and the size of a group as a constant: 75 groups of 8. Here it is without that trick, and with it.

# %%
from utils.softmax import compiled

for align in (1, 8):
    found = loads(compiled("sm_90", columns=600, align=align))
    print(
        f"groups of {align}:",
        *(
            f"{times} × {name.replace('.L1::evict_first.L2::cache_hint', '…')}"
            for name, times in found.items()
        ),
    )

# %% tags=["hide-input"]
choice(
    "Rows of 1,000 float32, with width and stride as run-time integers. How will they be loaded?",
    {
        "four at a time, since 4,000 bytes are a multiple of 16": "True of the bytes. Triton asks whether 16 divides the *number*, and 1,000 = 62 · 16 + 8.",
        "one at a time": "1,000 % 16 is 8, as with 600. For 1,008 columns it would be four at a time.",
        "two at a time": "8 divides 1,000, but nobody asks for that: it is 16, or nothing known.",
    },
    answer="one at a time",
)

# %% [markdown]
# One pass has a price, and the compiler can tell it without running anything. A thread has at most 255 registers. **Predict.** A row of 16,384 columns, kept whole: what happens with one warp, whose 32 threads must hold 512 elements each?

# %%
for warps in (1, 2, 4, 8, 16):
    code = for_hopper(16384, warps, known=["columns", "x_row"])
    print(
        f"{warps:2} warps: {code.registers:3} registers a thread, {code.stack:5} bytes spilled to "
        "memory"
    )

# %% [markdown]
# It *spills*: what finds no register goes to memory and comes back, the very traffic that one pass was to spare. (The figures are those of NVIDIA's assembler, which Triton's package brings along.)
#
# So block, warps, and whether to keep the row or to walk over it, are choices, and the best depends on width, dtype and GPU. `triton.autotune` makes them by trying: a list of configurations, each timed at the first launch with new sizes.

# %%
choices = [triton.Config({}, num_warps=warps) for warps in (4, 8, 16)]
tuned = triton.autotune(choices, key=["columns"])(rms_kernel)
print(type(tuned).__name__, "around the same kernel:", tuned.fn is rms_kernel)
attempt(
    lambda: launch(tuned, (1,), torch.randn(1, 8), torch.empty(1, 8), 8, 8, 1, EPS, tl.float32, 8)
)

# %% [markdown]
# Its candidates differ in what the compiler was just asked for, 4, 8 or 16 warps, and which is fastest only a GPU can say: so `launch` refuses to pretend.
#
# ### What a GPU said
#
# One has been asked. The course comes with the *record* of an H100, one of the GPUs for which you have been compiling: what `python -m benchmarks.gpu` measured there, under another version of PyTorch than yours. (With the course's repository on a machine with a GPU, the same command makes a record of that one.)
#
# The course's softmax was written as you work here, with no GPU in reach: every test of it had run in the interpreter, and its kernels had been compiled only to be read. **Predict.** Then the same tests ran on the H100, for the first time: values, dtypes and strides of every kind, opcheck, gradcheck, the compiler. How many failed?

# %%
record = records.load("nvidia-h100-80gb-hbm3")
origin = record.provenance
print(f"{record.gpu}, torch {origin['torch']}, triton {origin['triton']}, {origin['date'][:10]}\n")
for name, check in record.result("checks").items():
    print(f"{name:12} {check['outcome']:7} {check['says'][:85]}")

# %% [markdown]
# None. So was that drill too severe, by which right in the interpreter need not be right on a GPU? The interpreter had proved the arithmetic, and to the last digits the GPU computes the same (`same_as_cpu`). The other half was read and not run: the kernels had gone through the compiler for just that chip; a program reads nothing that another writes, so no order can hurt; and where the interpreter is known to err, the source goes round it. A little is left that neither shows. One such thing is `far`: rows that begin more than 2³¹ elements behind the first, which takes a tensor of four gigabytes to try. It holds, for `row` was made 64 bits wide.
#
# Now the question from above, put to the softmax. **Predict.** Rows of 600, one to a program. The GPU has 132 multiprocessors. 1, 2, 4 or 8 warps: which is best for 64 rows, and which for 65,536?

# %%
from utils.softmax.launch import Launch, choose


def tried(direction, itemsize, rows, columns):
    """Seconds of every launch that was tried on such a tensor."""
    shape = {"direction": direction, "itemsize": itemsize, "rows": rows, "columns": columns}
    found = [one for one in record.result("tune")["measured"] if shape.items() <= one.items()]
    return {Launch(one["loop"], one["tile"], one["warps"]): one["seconds"] for one in found}


print("µs, forward, by warps:      ", *(f"{warps:7}" for warps in (1, 2, 4, 8)))
for dtype, itemsize in {"float32": 4, "bfloat16": 2}.items():
    for rows in (64, 512, 4_096, 65_536):
        seconds = tried("forward", itemsize, rows, 600)
        one_row = [seconds[Launch(False, 1024, warps)] * 1e6 for warps in (1, 2, 4, 8)]
        print(f"{dtype:8} {rows:6,} rows of 600: ", *(f"{time:7.2f}" for time in one_row))

# %% [markdown]
# It depends on how many rows there are. With 64 every program has a multiprocessor to itself, and what counts is how long *one* takes: in float32 four warps or eight, whose threads go through fewer elements one after the other. With 65,536 there is always another program to go on with while one waits, and one warp is as good as four: the memory is what they all wait for. In bfloat16 there is half as much to wait for, and what was hidden behind it comes out. It fits what you have read: barriers and exchanges through shared memory, twice for each row of 1,200 bytes. With eight warps it takes nearly twice the time.
#
# Somebody could have known. The course's softmax tunes nothing at run time; it has a table, in `utils/softmax/launch.py`, and that was reasoned from figures like those above before any GPU was asked. Nothing may spill; a thread should have four to eight loads under way; of many narrow rows each gets a warp or two, and of few each gets four.
#
# **Predict.** On 40 kinds of tensor, forward and backward, in 2 and in 4 bytes, the H100 tried whatever launch is sensible, 441 in all. How often was the reasoned one within 3 % of the best? And how much can one lose, by taking the worst?

# %%
corrected = {("forward", 2, 4096, 32768): Launch(False, 32768, 32)}  # what the table said before
names, tuned = ("direction", "itemsize", "rows", "columns"), record.result("tune")["measured"]
shapes = dict.fromkeys(tuple(one[name] for name in names) for one in tuned)
lost, worst = {}, []
for shape in shapes:
    seconds = tried(*shape)
    fastest = min(seconds.values())
    lost[shape] = seconds[corrected.get(shape, choose(*shape))] / fastest - 1
    worst.append(max(seconds.values()) / fastest)
print(f"within 3 %: {sum(share <= 0.03 for share in lost.values())} of {len(lost)}")
for shape, share in lost.items():
    if share > 0.03:
        print(f"{share:.1%} lost:", *shape, f" best of {min(tried(*shape).values()) * 1e6:.1f} µs")
print(f"the worst takes {median(worst):.1f} times as long as the best, up to {max(worst):.1f}")

# %% [markdown]
# 37 of 40, where up to a factor of 2.4 was to be lost. That is what reading is worth: what it leaves for a GPU to say are a few percent. Two of the three misses are a tenth of a microsecond. The third is a real one, and reading didn't see it coming. Look up the two launches: which kernel was better?

# %%
for launched, seconds in sorted(tried("forward", 2, 4096, 32768).items(), key=lambda item: item[1]):
    print(f"{seconds * 1e6:6.1f} µs  {launched}")

# %% tags=["hide-input"]
true_false(
    "Of two kernels for the same softmax, the one that reads its row once is at least as fast as the one that reads it twice.", False,
    "Here the loop, which reads each row of 64 KiB in two tiles and then again, beats the kernel that keeps it by 5 %: the second reading comes out of a cache. In float32 it is the other way round (ask `tried`, with 4 in place of 2). The count of bytes tells what is possible; what is best, near that, only trying tells.",
)

# %% [markdown]
# ## How fast can it be
#
# First, not *how fast is it*, but how fast it could be: a count of bytes, divided by a bandwidth from a data sheet. The count is exact, and tells what no kernel can beat. Then the record says how near one comes.
#
# Take the logits of 2,048 sequences of 32 tokens: 65,536 rows of 600 float32. An H100 moves 3.35 TB a second.
#
# **Predict.** How long does each way take at least? And the arithmetic, five FLOPs an element or so, at 67 TFLOP/s: does it come into play?

# %%
BANDWIDTH, FLOPS = 3.35e12, 67e12  # of an H100 SXM, by its data sheet: B/s; FLOP/s in float32
elements = 65_536 * 600
for way, passes in {"op by op": 8, "three passes": 4, "online": 3, "one pass": 2}.items():
    moved = passes * elements * 4
    print(f"{way:13} {moved / 1e6:7,.0f} MB  {moved / BANDWIDTH * 1e6:6.1f} µs")
print(f"the arithmetic alone       {5 * elements / FLOPS * 1e6:6.1f} µs")

# %% [markdown]
# The arithmetic is a thirtieth of the best. So the rule for every kernel of this kind: **its time is its bytes**. Fewer passes, fewer bytes an element (half precision halves the time), and nothing else matters much, until the tensor is so small that starting the kernel takes longer than running it.

# %% tags=["hide-input"]
number(
    "The softmax's backward reads g and y and writes dx. At 3.35 TB/s, how many µs does it take at least for these 65,536 rows of 600, in bfloat16?",
    70,
    unit="µs",
    tolerance=1,
    why="Three times 65,536 · 600 · 2 bytes are 236 MB. Divided by 3.35 TB/s: 70 µs.",
    wrong={141: "That is float32: an element of bfloat16 has 2 bytes.", 47: "Count again: two tensors are read and one is written."},
)

# %% [markdown]
# So much for the bound. Now four kernels on the H100, for the same rows: `copy` reads and writes as many bytes and computes nothing; ours; what `torch.compile` makes of `torch.softmax`; and the one that PyTorch brings along. **Predict.** The bound of the forward in float32 is 94 µs. Who comes how near? And is it true that half precision halves the time?

# %%
def measured(rows, columns, dtype="float32", direction="forward"):
    """A case of the record: bytes moved at least, and the seconds of each contender."""
    asked = {"rows": rows, "columns": columns, "dtype": dtype, "direction": direction}
    case = next(one for one in record.result("softmax")["cases"] if asked.items() <= one.items())
    return case["bytes"], {name: timing["seconds"] for name, timing in case["timings"].items()}


print("µs, 65,536 × 600       bound      copy      ours  compiled PyTorch's")
for direction in ("forward", "backward"):
    for dtype in ("float32", "bfloat16"):
        moved, took = measured(65_536, 600, dtype, direction)
        times = (
            moved / BANDWIDTH,
            *(took[name] for name in ("copy", "triton", "compiled", "torch")),
        )
        print(f"{direction:8} {dtype:9}", *(f"{time * 1e6:9.1f}" for time in times))

# %% [markdown]
# In the first line a softmax costs what a copy costs, whoever wrote it: the exponentials, the maximum, the sum are hidden behind the bytes. None reaches the bound, the copy neither, for a data sheet tells what the wires could carry; a tenth of that nobody gets.
#
# And half precision? Ours and the compiler's are halved. PyTorch's own is not: in bfloat16 it takes one and a half times as long as a copy does, and in both backwards twice as long, though it has no byte more to move. So bytes are a *bound*, and whoever reaches it has earned it: by loads that are wide enough, and enough of them under way. What those two kernels wait for, times alone don't tell; that takes a profiler ([phase 09](09_profiling.ipynb#cell-id=total-and-self)).
#
# The same as a roofline, which you know from [phase 01](01_tensors.ipynb#cell-id=counting-flops-and-bytes): to the right the FLOPs that are done for each byte, up the FLOP/s that the machine then allows. The LM head's product is drawn in as well. Hollow marks are a bound; a filled mark was measured, where the record has a softmax of just so many rows (64, 512, 4,096 and 65,536, which are 2, 16, 128 and 2,048 sequences).
#
# **Predict.** You raise the batch. Which of the three points moves? And how near to its bound is our softmax with two sequences, how near with 2,048?

# %%
from utils.views import roofline


def work(batch):
    """FLOPs, bytes and perhaps seconds, in float32, at MiniGPT's end, for `batch` × 32 tokens."""
    rows = 32 * batch
    took = [measured(rows, 600)[1]["triton"]] if batch in SEQUENCES else []
    return {
        "LM head": (2 * rows * 64 * 600, 4 * (rows * 64 + 64 * 600 + 600 + rows * 600)),
        "softmax, op by op": (5 * rows * 600, 8 * rows * 600 * 4),
        "softmax, one pass": (5 * rows * 600, 2 * rows * 600 * 4, *took),
    }


SEQUENCES = (2, 16, 128, 2048)
for batch in SEQUENCES:
    _, moved, took = work(batch)["softmax, one pass"]
    share = moved / BANDWIDTH / took
    print(f"{batch:5,} sequences: {took * 1e6:6.1f} µs, {share:4.0%} of the bandwidth")
roofline(work, peak_flops=FLOPS, peak_bandwidth=BANDWIDTH)

# %% [markdown]
# The LM head moves: a larger batch shares the weight, and from five sequences on its arithmetic is the bound. Softmax stands still, or its bound does. What is reached climbs towards it: two sequences are 307 KB, a tenth of a microsecond's worth of bandwidth, and take two microseconds, for to begin a kernel and to end it takes its time, however little it does. (Nothing of Python's is in that yet: the launches came out of a CUDA graph. [Phase 09](09_profiling.ipynb#cell-id=fewer-larger-later) adds it.)
#
# Every row brings its own bytes and its own FLOPs, in the same proportion, whatever the batch. Fusing is the only thing that moves it, from 0.16 to 0.63 FLOP a byte, and that is four times the speed.

# %% tags=["hide-input"]
choice(
    "A GPU with twice the FLOP/s and the same memory. What happens to a fused softmax of this size?",
    {
        "It takes half the time": "It would, if the arithmetic were what it waits for.",
        "Next to nothing": "The slanted roof is memory's, and stays where it is. The ridge moves to the right, further away from the point.",
        "It gets slower": "Neither bytes nor bandwidth have changed.",
    },
    answer="Next to nothing",
)

# %% [markdown]
# ## The finished softmax, read
#
# **Solve the lab before you read on.** What follows is the course's own answer to it. It lies open in `utils/softmax`, since you will need the operator from here on; but what you take from there you will not have learnt.
#
# When you have yours, compare. You know all the parts; here is how they look when speed is meant.

# %%
import inspect

from utils.softmax import kernel, op

print(inspect.getsource(kernel.softmax_rows.fn))

# %% [markdown]
# Four things are different from our `rms_kernel`. A program takes `ROWS` rows at once, a tile of two dimensions, so that narrow rows don't leave its threads idle. `INDEX` is 32 bits within a row where that is enough, since 64-bit arithmetic is slower. The groups of `ALIGN` you have seen work. And `evict_first` tells the caches that no one will ask for these bytes again.
#
# The other kernel of that file is for rows that no register file can hold. Here is the heart of it, the online softmax.

# %%
lines = inspect.getsource(kernel.softmax_loop.fn).splitlines()
first = next(k for k, line in enumerate(lines) if "raised =" in line)
print("\n".join(lines[first:first + 5]))

# %% [markdown]
# `top` is the maximum so far, `total` the sum of exponentials less that maximum. If the maximum rises, the old sum shrinks by exp(old − new), and is right again. The line with `base` is there for a row that has brought nothing but −inf so far. Look up in the source how it goes over the row the second time: from the end. What it has read last, the caches still hold.
#
# Is that a fine thought, or does it pay? **Predict.** Rows of 131,072, which nobody can keep: two readings and a write, 3N. If memory had to serve every one of them, how long would it take at least, and how long did it take?

# %%
for dtype in ("float32", "bfloat16"):
    moved, took = measured(1024, 131_072, dtype)
    print(
        f"{dtype:8} 3N at 3.35 TB/s: {1.5 * moved / BANDWIDTH * 1e6:5.1f} µs at least; measured "
        f"{took['triton'] * 1e6:5.1f} µs"
    )

# %% [markdown]
# Faster than the memory could be. So part of the second reading never went there: the caches had it, and more of it in bfloat16, where a row has half the bytes.
#
# And the operator, where PyTorch is told:

# %%
print(
    inspect.getsource(op._save_output)
    + inspect.getsource(op._vjp)
    + inspect.getsource(op._vjp_of_backward)
)

# %% [markdown]
# **Predict.** Our `twice` could be differentiated no further, for it detached. Can this one? Ask it for a third derivative.

# %%
x = torch.tensor([[0.5, -1.0, 2.0]], dtype=torch.float64, requires_grad=True)
for function in (softmax, lambda x: torch.softmax(x, -1)):
    d = function(x)
    for _ in range(3):
        (d,) = torch.autograd.grad((d * torch.arange(1.0, 4)).sum(), x, create_graph=True)
    print(d.detach())

# %% [markdown]
# It can: its second backward is made of PyTorch's own operators, each of which has a backward of its own, and so on without end.

# %% [markdown]
# ## What you can now do
#
# [The lab](../release/05_custom_op/05_custom_op.ipynb) of this phase asks you to do it:
#
# - plan a launch: grid, block, and the places that are masked off;
# - write a row softmax in Triton, for any width, strides and dtype, and its backward;
# - compile it for a GPU that you don't have, and read its PTX: loads and stores, their widths, the reductions;
# - register it, with schema, fake, autograd and a kernel for the CPU, and pass `gradcheck`, `opcheck` and the compiler;
# - make it differentiable twice;
# - tell the bytes that it moves, and the time that memory allows;
# - put it behind MiniGPT's LM head, in one line.
#
# And you can answer the question. PyTorch must be told a name and a schema, a kernel for each device, what comes out where nothing is computed, and how to go back, by an operator again. Each of these is one slot or one function; and none of the proofs that you got them right sees all of it.

# %% [markdown]
# ## What this phase leaves out
#
# - **Fusing without writing a kernel**: [phase 06](06_compile.ipynb#cell-id=fusion-and-the-code) reads what `torch.compile` makes of `rms_plain` by itself. A kernel of one's own is for where the compiler finds nothing as good.
# - **Time**: streams, launches, measuring properly. [Phase 09](09_profiling.ipynb#cell-id=two-clocks).
# - **Products of matrices in Triton**, with tiles and tensor cores, and attention fused with its softmax: [Triton's own tutorials](https://triton-lang.org/main/getting-started/tutorials/index.html) begin where this ends.
# - **C++ and CUDA extensions**: the same registration, in another language (`TORCH_LIBRARY`).
# - `vmap` over your operator: `register_vmap`.

# %% [markdown]
# ## Sources
#
# - P. Tillet, H. T. Kung, D. Cox, "[Triton: An Intermediate Language and Compiler for Tiled Neural Network Computations](https://doi.org/10.1145/3315508.3329973)", MAPL 2019; and Triton's documentation, above all the tutorial "[Fused Softmax](https://triton-lang.org/main/getting-started/tutorials/02-fused-softmax.html)" (read it after the lab).
# - M. Milakov, N. Gimelshein, "[Online normalizer calculation for softmax](https://arxiv.org/abs/1805.02867)", 2018.
# - B. Zhang, R. Sennrich, "[Root Mean Square Layer Normalization](https://arxiv.org/abs/1910.07467)", NeurIPS 2019.
# - PyTorch's documentation: [`torch.library`](https://docs.pytorch.org/docs/stable/library.html) (`custom_op`, `triton_op`, `register_fake`, `register_autograd`, `opcheck`), and the "[PyTorch Custom Operators](https://docs.pytorch.org/tutorials/advanced/custom_ops_landing_page.html)" pages; "[Gradcheck mechanics](https://docs.pytorch.org/docs/stable/notes/gradcheck.html)".
# - NVIDIA, "[Parallel Thread Execution ISA](https://docs.nvidia.com/cuda/parallel-thread-execution/index.html)" (`ld`, `shfl.sync`, `bar.sync`) and [the H100's data sheet](https://resources.nvidia.com/en-us-gpu-resources/h100-datasheet-24306).
# - S. Williams, A. Waterman, D. Patterson, "[Roofline: An Insightful Visual Performance Model for Multicore Architectures](https://doi.org/10.1145/1498765.1498785)", CACM 2009.
