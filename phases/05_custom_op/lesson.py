# ---
# jupyter:
#   kernelspec: {display_name: Python 3, language: python, name: python3}
#   open_the_hood: {title: "An operator of your own"}
# ---

# %% [markdown]
# # An operator of your own
#
# A kernel is a loop that runs on a device. An operator is a kernel that PyTorch knows: autograd goes back through it, the compiler plans around it, and a fake tensor passes through it without any computation. The loop is the smaller half of the work.
#
# It takes about two and a half hours. You need [phase 00](00_hello.ipynb#cell-id=a-kernel-one-program-at-a-time)'s first kernel, [phase 02](02_autograd.ipynb#cell-id=a-layer-only-has-to-know-one-product)'s vector-Jacobian products and [phase 04](04_dispatcher.ipynb#cell-id=reading-the-table)'s table. If a paragraph begins with **Predict**, decide on an answer before you look below it. Nothing here is graded, and everything here is used in the lab.
#
# No GPU is needed. Kernels run in Triton's interpreter, on a CPU, and are compiled for a GPU that isn't there. Their times on a real GPU, an H100, were recorded, and towards the end you read that record. (Triton has no build for macOS. On a Mac you can read this page with its outputs, and run it in a Linux container.)

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
# In [phase 04](04_dispatcher.ipynb#cell-id=reading-the-table) you read the table, with a row for each operator, a column for each key, and code in the slots. Now you add a row.

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
# A colleague has written softmax in Triton. There is one kernel for the forward and one for the backward. The functions `run.forward` and `run.backward` launch them, and it doesn't matter yet how they work. She wraps the pair in an `autograd.Function`, as you did in [phase 02](02_autograd.ipynb#cell-id=a-function-of-your-own), and compares the result with PyTorch's softmax.

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
# The result is right in every digit that float32 has. `gradcheck`, which compares the backward with finite differences, is content too. She puts her function into MiniGPT in one line, and the model's probabilities stay the same.

# %%
before = model.probabilities(tokens)
model.softmax = Softmax.apply
print("same probabilities:", torch.allclose(model.probabilities(tokens), before, atol=1e-6))

# %% [markdown]
# Then the model is compiled. (`fullgraph=True` asks for one graph without gaps. `aot_eager` is the compiler without its last stage, which writes code. It traces the program, splits composites and runs the result, and that is enough here.)
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
# Neither the class nor the model calls `data_ptr`. The compiler follows Python line by line: into our function, into the launcher, and into the interpreter that plays GPU here. Somewhere there, the program asks a tensor without data for its address. (On a GPU the compiler would fail elsewhere, or recognise the launch and succeed. The mistake is the same: the compiler looks *into* a thing that it should treat as a whole.)
#
# Why does it not look into `torch.softmax` in this way? A mode, as in [phase 04](04_dispatcher.ipynb#cell-id=listening-in), tells us what the dispatcher hears of each of the two functions.

# %%
class Heard(TorchDispatchMode):
    """Writes down the operators that are called, and the bytes that they read and write."""

    def __init__(self):
        super().__init__()
        self.names, self.bytes = [], 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        self.names.append(func.overloadpacket.__name__)
        if not func.is_view:  # a view moves nothing, and an expanded tensor is read once
            tensors = [t for t in (*args, out) if isinstance(t, torch.Tensor)]
            self.bytes += sum(t.untyped_storage().nbytes() for t in tensors)
        return out


for function in (torch.softmax, lambda x, dim: Softmax.apply(x)):
    with Heard() as heard:
        function(logits, -1)
    print(dict(Counter(heard.names)))

# %% [markdown]
# For `torch.softmax` there is one name. For our function there is no softmax at all. We hear only the launcher, which allocates and copies. Autograd knows our function as a node, because the class says so. The dispatcher does not know it, and everything that relies on the dispatcher does not know it either.
#
# > **What must I tell PyTorch about a kernel, so that autograd, the compiler, fake tensors and every device treat it like PyTorch's own kernels?**
#
# We answer this with another kernel of the same family, *RMS norm*. It divides each row by its root mean square, $y_i = x_i / \sqrt{\frac1n\sum_j x_j^2 + \varepsilon}$. Many language models use it instead of MiniGPT's LayerNorm. Like softmax, it needs one number from the whole row before it can write the first element, and so it has the same troubles as softmax. In the lab, you write the softmax yourself.

# %% [markdown]
# ## One pass or three
#
# Why write a kernel at all? Both functions take a line or two of PyTorch.

# %%
EPS = 1e-6


def rms_plain(x):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + EPS)


def softmax_plain(x):
    lifted = (x - x.amax(-1, keepdim=True)).exp()
    return lifted / lifted.sum(-1, keepdim=True)


# %% [markdown]
# But each of those operators reads its input from memory and writes its result back, and the next operator reads that result again. Let *N* be the number of bytes of x. Each function must read N bytes and write N bytes, which is 2N.
#
# **Predict.** How many N do `rms_plain` and `softmax_plain` move? Count the reads and writes of all tensors that are as large as x. A row that is reduced to one number counts as nothing.

# %%
x = torch.randn(2048, 600)
for function in (rms_plain, softmax_plain, lambda x: torch.softmax(x, -1)):
    with torch.no_grad(), Heard() as heard:
        function(x)
    print(f"{heard.bytes / x.nbytes:4.1f} N ", *heard.names)

# %% [markdown]
# They move five and eight N, although two would be enough. PyTorch's own softmax is *fused*: it is one operator, and no intermediate result ever reaches memory. (The mode counts each tensor once, because a kernel must read it at least once. A fused kernel may still read it more often.)
#
# Inside one kernel the question comes back: how often is the row read? Softmax needs the row's maximum first and then the sum of the exponentials, and only then can it write. A kernel that can't keep the row reads it **three times**. Together with one write, that is 4N. One pass is enough for both maximum and sum if the sum is rescaled whenever the maximum grows (the *online* softmax, Milakov and Gimelshein 2018). That makes 3N. And if the whole row fits into a program's registers, it is read **once**, which makes 2N. A row of 600 float32 has 2,400 bytes, and a GPU's multiprocessor has 256 KiB of registers. So the row fits, and we take one pass.
#
# By the way, the maximum is no luxury. **Predict.** Without it, what is the softmax of a row with 0 and 100?

# %%
row = torch.tensor([0.0, 100.0])
print("without the maximum:", row.exp() / row.exp().sum())
print("with it:            ", softmax_plain(row))
print("exp overflows between 88 and 89:", torch.tensor([88.0, 89.0]).exp())

# %% tags=["hide-input"]
choice(
    "Subtracting the row's maximum changes every exponential. Why is the softmax the same?",
    {
        "It isn't the same, but it is a good approximation": "Work it out: `exp(x − m)` is `exp(x) · exp(−m)`, and m is one number for the whole row.",
        "The same factor is in the numerator and in the denominator, and cancels": "Any m would do. But with the maximum, no exponential exceeds 1 and at least one of them is 1, so the sum can't be 0.",
        "Large logits are rare": "An untrained model has small logits, but a confident model has large ones. And one row of NaN makes every weight NaN one training step later.",
    },
    answer="The same factor is in the numerator and in the denominator, and cancels",
)

# %% [markdown]
# ## One program, one row
#
# In [phase 00](00_hello.ipynb#cell-id=programs-blocks-and-masks) a program took a block of elements. Now it takes a *row*, because the row must be summed, and programs know nothing of each other. Here is the whole kernel, in the first form that comes to mind.

# %%
@triton.jit
def rms_first(x_ptr, y_ptr, columns, x_row, EPS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    place = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * x_row + place, mask=place < columns, other=0.0)
    mean = tl.sum(x * x) / columns
    tl.store(y_ptr + row * columns + place, x * tl.rsqrt(mean + EPS), mask=place < columns)


# %% [markdown]
# `tl.program_id(0)` says which program this is, and so which row it takes. `place` is a block of `BLOCK` numbers, 0, 1, 2 … The line below makes a block of addresses from it, and a load turns a block of addresses into a block of values. `tl.sum` adds these values up to one number. A `tl.constexpr` must be known when the kernel is compiled. The size of a block is such a constant, and it must be a power of two. `columns` and `x_row`, the distance from one row to the next, may be different at every launch.
#
# A launch needs a *grid*, the number of programs. On a GPU you write `rms_first[grid](...)`. Here that gives an error:

# %%
attempt(lambda: rms_first[(4,)](torch.ones(4, 6), torch.ones(4, 6), 6, 6, EPS, 8))

# %% [markdown]
# So we use `launch`. If the tensors are on a GPU, it launches the kernel there. Otherwise it uses the interpreter, which runs one program after the other in NumPy. Everything else is the same.

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
# The interpreter can show what each program touched. Above is the program's block, and each place has the number of its element in the storage. Below is the memory. Each frame is a *sector* of 32 bytes, the smallest amount that a GPU moves. **Predict.** Which elements will program 2 load, how many sectors is that, and what does it do with its last two places? Then move the slider. Odd steps load, and even steps store.

# %%
y = torch.empty(4, 6)
kernel_steps(rms_first, (4,), x, y, 6, x.stride(0), EPS, BLOCK=8)

# %% [markdown]
# Now x becomes a transposed view, as happens to every kernel one day. No byte was moved, and its strides are (1, 6), as you know from [phase 01](01_tensors.ipynb#cell-id=strides-how-far-is-one-step).
#
# **Predict.** What is `rms_1(x.t())`: an error, a NaN, or something else?

# %%
turned = x.t()
out = rms_1(turned)
print("shape:", tuple(out.shape), " finite:", out.isfinite().all().item())
print("right:", torch.allclose(out, rms_plain(turned)))

# %% [markdown]
# The shape is right, and the numbers are wrong. The kernel got the step between rows from the tensor, but it guessed the step between columns: `+ place` says that neighbours in a row are neighbours in memory. A kernel sees no shape and no strides. It sees only an address. Everything else that it should know about a view must be an argument.
#
# So every stride becomes an argument. At the same time we make the row's number 64 bits wide, and now you find out why. **Predict.** A row's offset is `row * stride`, and both numbers have 32 bits. What are the offsets of rows 0 to 3, if the stride is 2³⁰?

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
# Row 2 would be eight gigabytes *before* the tensor. A batch of 64 sequences of 32 tokens with 600 logits is far from such offsets. But a training step of a real model, with 150,000 words and 16,384 tokens, has 2.4 billion logits, and reaches them.
#
# Here is the second kernel, with both changes:

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
# The result is right, but look at the frames. A row of eight numbers has 32 bytes, and it is fetched from six sectors, which have 192 bytes. The next program fetches the same six sectors again. The stores go into a contiguous result, and take one sector each. Strides scatter the addresses, but memory always moves whole sectors.

# %% tags=["hide-input"]
number(
    "A (600, 600) tensor of float32 is transposed, and a program loads one row of the view. How many sectors of 32 bytes does it touch?",
    600,
    unit="sectors",
    why="Neighbours in the row are 600 elements apart, which is 2,400 bytes. So each is in a different sector, and only 4 of the 32 bytes in a sector are used.",
    wrong={75: "That is right for a contiguous row: 2,400 bytes in sectors of 32.", 19: "That is the number of 128-byte lines of a contiguous row."},
)

# %% [markdown]
# ## Masks, and what lies beside the row
#
# The size of a block is a power of two, and the length of a row usually is not. **Predict.** How many places does a block need for a row of 512 columns, of 513, of 600, of 601?

# %%
for columns in (512, 513, 600, 601):
    places = triton.next_power_of_2(columns)
    print(f"{columns} columns: a block of {places:,}, {places - columns} places masked off")

# %% [markdown]
# Masked places cost no memory traffic, but they cost lanes: threads that add zeros. Just above a power of two, half of the lanes are idle. Here is a row of 601 columns, and below it the idle part of rows of any width, up to 2,048.

# %%
row_lanes(601)

# %% [markdown]
# The mask has two duties. The first is to keep the program away from memory that belongs to something else. Let us see what happens without a mask. We cut input and output out of larger storages, so the memory beside them is ours too. Beside the output there are sevens.
#
# **Predict.** There are four rows of six, blocks of eight and no mask, so each program copies two elements too many. Is the copy right? Who notices the mistake?

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
# The copy is right! Each program also writes two elements of the next row, but it reads them from the same places, so it writes the right numbers. A kernel that *computes* something from its row would write two wrong numbers there. The next program would repair them, because the interpreter runs the programs in order. A GPU promises no order, so there the result would be right only on some days. And the last program has overwritten two numbers that belong to something else. No comparison of results will ever show this. To test a kernel, cut its output from the middle of a storage, and look at both sides.
#
# The second duty is about values. Masked places still take part in everything that the block does, `tl.sum` and `tl.max` included. So they need a value, and `other` gives it to them. **Predict.** This kernel takes the maximum of each row, with a mask and no `other`. All numbers are below −1. What does it return?

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
# It returns zero, three times, because the interpreter fills masked places with 0. And a GPU? Triton's documentation promises nothing. But you can read in the compiler's output what this version does (more about that later):

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
# The register is set to 0, and the load happens only if the predicate `%p1`, the mask, is on. So today, a masked place is 0 on a GPU too. For a sum, 0 is just the right value, so the mistake stays hidden: `rms_second` would pass without its `other`. The right `other` is the *neutral* value of the block's next operation, which does not change the result.

# %% tags=["hide-input"]
choice(
    "A masked row goes through a maximum. Then that maximum is subtracted, and the exponentials are summed. Which single `other` is neutral for both the maximum and the sum?",
    {
        "0": "For a row of negative numbers, 0 would be the maximum. And it would add exp(0 − max) to the sum, which isn't 0.",
        "the smallest finite float": "It loses every maximum, except against −inf. So a row of nothing but −inf would get a different result.",
        "−inf": "It loses every maximum, and its exponential is 0.",
    },
    answer="−inf",
)

# %% [markdown]
# A row can contain −inf itself, because attention masks the future with it. A row of nothing but −inf has no softmax, because it would need −inf − (−inf). PyTorch's answer is NaN, and an operator that wants to replace PyTorch's softmax must give the same answer.

# %%
masked = torch.tensor([[0.0, -torch.inf, 1.0], [-torch.inf] * 3])
print("PyTorch:", torch.softmax(masked, -1).tolist())
print("ours:   ", softmax(masked).tolist())

# %% tags=["hide-input"]
choice(
    "In `rms_second` somebody writes `tl.sum(x * x) / BLOCK`. For which rows is the result wrong?",
    {
        "for none: the masked places are 0 and add nothing": "They add nothing to the sum. But a mean also divides, and by which number?",
        "for all rows with a length that is no power of two": "The sum of 600 squares is divided by 1,024, so the row becomes 1.31 times too large. With 512 or 1,024 columns, as in most people's tests, the result is right.",
        "for rows with zeros in them": "Zeros in the row are counted, and they should be. Only the places beside the row must not be counted.",
    },
    answer="for all rows with a length that is no power of two",
)

# %% [markdown]
# ## Half precision
#
# Models live in half precision, so our kernel must live there too. **Predict.** We run `rms_second` in float16, on normally distributed numbers times 300. The result has a root mean square of 1 by definition, so it can't overflow. What does the kernel return?

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
# It returns zeros. 300² is 90,000, and float16 ends at 65,504. So the mean is infinite and its reciprocal root is 0, and there is no warning. The numbers come in and go out in half precision, but the computation *in between* must be wider. This costs nothing, because a kernel that waits for memory has time to compute in float32.
#
# And bfloat16, which has the range of float32? There the interpreter has another surprise.

# %%
brain = torch.randn(2, 6).bfloat16()
print("kernel:", rms_2(brain)[0].tolist())

# %% [markdown]
# NumPy has no bfloat16. The interpreter keeps such numbers as 16-bit integers, and if you multiply them, it multiplies integers. The compiler knows the type and would have no trouble. So convert the numbers right after you have loaded them, and both problems are gone.
#
# Which type is wide enough? It is float32 for all types up to 32 bits, and float64 for float64. We need float64 because `gradcheck` takes its differences in float64. It would find a kernel that secretly rounds to float32. The type is a `constexpr`, because the compiled code depends on it.

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
# Every error is at most one step of the output's type. One trap is left, and it is in the interpreter again. **Predict.** The kernel converts float64 numbers and stores them in a bfloat16 tensor. What does the tensor contain?

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
# The interpreter turns each number into an integer, 1.0 into 1 and 0.5 into 0, and stores that integer as the sixteen bits. The interpreter is a model of the machine, and a good one. If it is wrong, work around it, and say so in a comment.

# %% tags=["hide-input"]
true_false(
    "A kernel that is right in the interpreter, for all shapes, strides and dtypes, is right on a GPU.", False,
    "Programs run one after another here, so two programs never write to a place at the same time. And Python accepts much that the compiler refuses, as you will see. The interpreter proves the arithmetic. For everything else, compile the kernel and run it on a GPU.",
)

# %% [markdown]
# ## The backward is a kernel, too
#
# What does autograd pay for `rms_plain`? Every operator has saved something and has its own backward.
#
# **Predict.** N is again the number of bytes of x. A fused backward reads the gradient g and x, and writes dx, so it moves 3N. How many N does the chain of five operators move?

# %%
x = torch.randn(2048, 600, requires_grad=True)
y = rms_plain(x)
upstream = torch.randn(2048, 600)
with Heard() as heard:
    y.backward(upstream)
print(f"{heard.bytes / x.nbytes:.1f} N ", *heard.names)

# %% [markdown]
# That is nearly six times as much as needed, and much more than in the forward.
#
# So we derive it by hand, as in [phase 02](02_autograd.ipynb#cell-id=a-layer-only-has-to-know-one-product). With $r = 1/\sqrt{\frac1n\sum x_j^2 + \varepsilon}$ and $y = r\,x$, each $x_i$ changes its own $y_i$ directly, and all of them through r. Collect the terms:
#
# $$dx = r\,\bigl(g - y\cdot\tfrac1n\textstyle\sum_j g_j\,y_j\bigr)$$
#
# This is one reduction over the row, and everything else is elementwise. The forward has the same form, and so has the backward of softmax. What must be kept for the backward? y and r would be enough. x is enough too, because y and r are quickly computed from it. x is in memory anyway, as the output of the operator before. y and r would have to be kept on purpose. So we keep x. (For softmax, the colleague kept only y. Work out why that is enough.)

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
# Note that g has its own strides. **Predict.** Somebody writes `rms(x).sum().backward()`, and a gradient g arrives at our backward. Which strides does g have?

# %%
x = torch.randn(3, 4, requires_grad=True)
y = rms_plain(x)
y.register_hook(lambda g: print("g: shape", tuple(g.shape), "strides", g.stride()))
y.sum().backward()
g = torch.ones(()).expand(3, 4)
dx = run_rows(rms_backward_kernel, torch.empty(3, 4), g, x.detach())
print("as autograd has it:", torch.allclose(dx, x.grad, atol=1e-6))

# %% [markdown]
# The strides are (0, 0), because g is one number in memory, expanded to a matrix. So the most common gradient of all isn't contiguous. A kernel that reads g with x's strides reads eleven numbers that don't belong to g. A test that uses `torch.randn_like(y)` as the gradient would never notice.

# %% tags=["hide-input"]
choice(
    "In the backward kernel the load of x keeps `other=0.0`, but the load of g has no `other`. On a machine that leaves garbage in masked places, what is wrong?",
    {
        "nothing: y is 0 there, so g · y is 0": "That is almost always true. But garbage may be inf or NaN, and 0 · inf is NaN. Then the whole row is NaN.",
        "the sum, if the garbage is infinite or NaN": "The product with y's zeros hides every finite number. So the kernel fails only on rare days, and such mistakes are the worst.",
        "the elements of dx beside the row": "They are never stored, because the store has a mask.",
    },
    answer="the sum, if the garbage is infinite or NaN",
)

# %% [markdown]
# ## What PyTorch asks of an operator
#
# Now tell PyTorch. First, it must know that there is an operator at all. That takes a name with a namespace, a schema, and a function for some kind of device. `custom_op` reads the schema from the annotations.

# %%
from torch.library import custom_op


@custom_op("hood::rms_norm", mutates_args=(), device_types="cpu")
def rms_norm(x: torch.Tensor) -> torch.Tensor:
    return run_rows(rms_kernel, x.new_empty(x.shape), x)


print(torch.ops.hood.rms_norm.default._schema)

# %% [markdown]
# `mutates_args=()` is the promise that no argument is written to. In the schema, this promise is a plain `Tensor`, without [phase 04](04_dispatcher.ipynb#cell-id=schemas-and-overloads)'s letters. The table now has a new row, with one filled slot.
#
# **Predict.** Which of these four work now: a call, a mode that hears it, a backward, `torch.compile`?

# %%
plain = torch.randn(4, 6)
with Heard() as heard:
    rms_norm(plain)
print("heard:", heard.names)
attempt(lambda: rms_norm(plain.clone().requires_grad_()).sum().backward(), lines=1)
attempt(lambda: torch.compile(rms_norm, fullgraph=True, backend="aot_eager")(plain), lines=2)

# %% [markdown]
# The mode hears the operator as a whole, with its name. The backward is refused, because `custom_op` has put a function at the Autograd keys that knows no formula and says so. (Remember [phase 04](04_dispatcher.ipynb#cell-id=order-fallthrough-redispatch)'s `double`, which had no such function, and was differentiable by accident. An honest error is worth more.) And the compiler no longer looks inside. It asks only one thing: what will the result be?
#
# ### What comes out
#
# The compiler runs the program on tensors without data. Our kernel can do nothing with them, so it gets a stand-in, the **fake**. The fake returns the shape, strides, dtype and device of the result, and computes no number. (`x.new_empty(shape)` makes a contiguous tensor of x's dtype, where x is.)

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
# We get 157 megabytes on a GPU that isn't there, and a compiled call. The Meta slot of the row is now filled, for tensors on `meta`. The mode of fake tensors calls the same function directly. (Without a fake, the compiler's message depends on how the operator was made. For a `custom_op` it is the message above, “There was no fake impl registered for …”. For an operator that was put into the table by hand, such as phase 04's `double`, it is “Operator does not support running with fake tensors”. Both messages ask for a fake.)
#
# Strides are part of the answer. `torch.empty_like(x)` would be shorter, and for a contiguous x it gives the same result. But for `x.t()` it keeps the transposed strides, and our kernel makes a contiguous result. So the fake would lie, and the compiler would plan with the wrong strides.
#
# ### How to go back
#
# Autograd needs a formula, and must know what to save for it. The formula gets the upstream gradients and returns one gradient for each input. **Predict.** Our backward kernel is ready. May the formula launch it directly?

# %%
@custom_op("hood::rms_norm_backward", mutates_args=(), device_types="cpu")
def rms_norm_backward(g: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    return run_rows(rms_backward_kernel, x.new_empty(x.shape), g, x)


@rms_norm_backward.register_fake
def _(g, x):
    return x.new_empty(x.shape)


def keep_inputs(ctx, inputs, output):
    ctx.save_for_backward(*inputs)  # x in the forward, g and x in the backward


rms_norm.register_autograd(
    lambda ctx, g: rms_norm_backward(g, *ctx.saved_tensors), setup_context=keep_inputs
)

# %% [markdown]
# It may not. The compiler traces the backward just like the forward, on tensors without data, and would find a bare kernel there. That is again the mistake from the beginning of this page. So the backward is an operator as well, with its own fake. In the matrix below you will see another use of it.

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
# One row serves several devices, because each backend has its own slot. `launch` runs on the tensors' device, so the function for CUDA is the same. Here it is registered, but it never runs. **Predict.** Before you look at the table: at which of the keys CPU, CUDA, Meta, AutogradCPU, SparseCPU does our row have something?

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
# Compare the first line with the second line. The second line has an empty CUDA slot, so a gradient on a GPU would fail there. The finished softmax of this course (third line) has all these slots. And `aten::_softmax`, which thousands of people use every day, is a row like yours.
#
# ### Two kinds of box
#
# `custom_op` makes a *closed* box: the compiler plans around it and never looks inside. Anything may be in there: an interpreted kernel, NumPy, or a call of another library. Its sister `triton_op` makes an *open* box. Inside it the kernel is launched through `wrap_triton`, and the compiler sees that launch, with the kernel's own text. An open box needs a real CUDA device to run. The compiler can trace it without such a device, because we give it a fake tensor.

# %%
import contextlib
import logging

from torch._dynamo.backends.common import aot_autograd
from torch.library import triton_op, wrap_triton

logging.getLogger("torch._dynamo").setLevel(logging.CRITICAL)  # it warns that there is no GPU


@triton_op("hood::rms_open", mutates_args={})
def rms_open(x: torch.Tensor) -> torch.Tensor:
    y = x.new_empty(x.shape)
    wrap_triton(rms_kernel)[(x.shape[0],)](x, y, x.shape[1], *x.stride(), EPS, tl.float32, 1024)
    return y


attempt(lambda: rms_open(torch.randn(4, 600)))

# %% [markdown]
# **Predict.** The compiler traces `op(x) * 2`, once with the closed box and once with the open box. What does its graph contain?

# %%
def traced(op):
    """Print what the compiler's graph contains for op(x) * 2, with x on a fake GPU."""
    graphs = []
    backend = aot_autograd(fw_compiler=lambda graph, inputs: graphs.append(graph) or graph)
    with FakeTensorMode(), contextlib.suppress(RuntimeError):  # only running it takes a GPU
        torch.compile(lambda x: op(x) * 2, backend=backend)(torch.empty(4, 600, device="cuda"))
    calls = [node.target for node in graphs[0].graph.nodes if node.op == "call_function"]
    print(*(str(getattr(call, "__name__", call)) for call in calls), sep=", ")


traced(rms_norm)
traced(rms_open)

# %% [markdown]
# The first line has our operator, as a box. In the second line the box is gone. In its place there are a `new_empty` and a launch that the compiler recognises (`triton_kernel_wrapper…`, with two `getitem` that unpack its result). The compiler can now work with both, and for example reuse that memory. If your operator is nothing but Triton and runs only on GPUs, the open box is better. If the operator must also run on a CPU, or contains anything else, use `custom_op`. The course uses `custom_op`, for your laptop's sake.

# %% tags=["hide-input"]
choice(
    "An operator returns its argument unchanged if there is nothing to do: `if scale == 1: return x`. It is registered with `mutates_args=()` and returns a Tensor. What does PyTorch say?",
    {
        "nothing: no argument was written to": "It was not written to, but it was returned. The schema `Tensor x -> Tensor` also promises new memory. An alias would be `Tensor(a)`.",
        "it refuses the call: the result must not be an input": "`custom_op` checks every call, and asks you to return a clone. Otherwise a compiler that believes the schema could reuse x's memory while the result is still in it.",
        "only the compiler objects": "The compiler would suffer most. But the check is made at run time, in eager mode too.",
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
# How do you know that the operator is right? There are four instruments on the bench, and each measures something different. The first is to *compare* it with a plain version, on contiguous and on transposed inputs. The second is `gradcheck`: is the backward the derivative of this forward? (`gradgradcheck` asks the same about the backward and the backward's own backward.) The third is `opcheck`: do schema, fake and autograd registration agree with what the operator does? The last is to compile it in one graph, forward and backward.
#
# For `gradgradcheck` the backward needs a formula too. That formula is seldom used, so it may be slow. We write the backward in plain PyTorch, and let autograd differentiate it.

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
# Here are the instruments. Each is a function that takes any operator, and raises an error if it finds a fault.

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
# And here are eight wrong versions, each a small step from our operator. Two compute something else. One has half the gradient, and one has no gradient. One has a fake that lies, and one has no fake. One launches the backward's kernel directly, and one breaks the promise of its schema.

# %%
def fresh(x):
    return x.new_empty(x.shape)


def rms(x):
    return run_rows(rms_kernel, fresh(x), x)


def version(name, forward=rms, fake=fresh, formula=rms_norm_backward):
    """An operator like rms_norm, except for the arguments that are given."""
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
# **Predict.** Before you run it, decide three things. One kernel divides by `BLOCK`, and its backward is the true derivative of this wrong function. Which instrument sees that, if any? Which one sees half a gradient? And which is the only one that sees a fake like its input? (The cell runs 54 proofs, which takes a quarter of a minute.)

# %%
from utils.views import proof_matrix

proof_matrix(versions, proofs)

# %% [markdown]
# All these proofs have just run. Move through the refusals and read their messages, because you will see them again. Here is what to take home:
#
# - **Dividing by BLOCK** gives a perfectly good operator for a different function. Only a comparison knows which function you *meant*, and it shows the fault only at a length that isn't a power of two.
# - **Half a gradient** passes `opcheck`, because that instrument tests the registration. There must be a gradient, and it must be possible to trace it. `opcheck` doesn't ask whether the gradient is right.
# - **A bare kernel** passes `gradcheck`, because its numbers are right. But it can't be traced, and it can't be differentiated. For autograd, the kernel's result doesn't depend on anything, so the second derivative is "expected to be zero".
# - **A fake like its input** passes every instrument that gets only contiguous tensors. Here it even passes the compiler, which happens not to need the strides. `opcheck` sees the fault only if you give it a transposed input. No instrument sees more than you show it.
# - **float32 inside** is right to the precision of float32. Only `gradcheck` notices it, because it takes differences over steps of a millionth, which are too small for float32.
# - **Writing to the input** is invisible in the result, and the compiler doesn't see it either. `opcheck` compares the input before and after. `gradcheck` fails because the input has changed.

# %% tags=["hide-input"]
choice(
    "You may run only two of the six instruments. Which pair refuses all eight wrong versions of this table?",
    {
        "gradcheck and compile": "Look at the row `divides by BLOCK`. Its gradient is right for the function that it computes, and it compiles.",
        "compare and opcheck, transposed": "Nearly, but half a gradient and float32 inside pass both. The comparison looks at values, but not at their last digits, and `opcheck` looks only at the registration.",
        "no pair does": "Dividing by BLOCK needs the comparison, half a gradient needs gradcheck, and a lying fake needs opcheck with a transposed input. That makes three instruments.",
    },
    answer="no pair does",
)

# %% [markdown]
# And the colleague's softmax? With these four things, the course has registered her kernels as the operator `open_the_hood::softmax`. **Predict.** We put it into MiniGPT with the same line as before. How many graphs are there now, and which calls come last?

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
# There is one graph, even without `fullgraph`. The operator is in it by name, after the LM head's `linear`. In [phase 06](06_compile.ipynb#cell-id=a-graph-is-data) you will rewrite such graphs.

# %% [markdown]
# ## What C++ sees
#
# A call of our operator begins in the dispatcher, which is C++. From there it goes into a Python function, and this function launches the kernel. PyTorch's own kernels need no Python: a slot of the table holds the address of a C++ function. We fill a slot in the same way.
#
# **Predict.** What does such a function get of `x`? The numbers, the strides, the `grad_fn`, the Python object?

# %%
headers = (f"torch/csrc/stable/{name}.h" for name in ("library", "ops", "tensor"))
HEAD = "".join(f"#include <{path}>\n" for path in ("cmath", *headers))
HEAD += "using torch::stable::Tensor;\n"
print(HEAD)

# %%
SOURCE = HEAD + r"""
Tensor rms_norm(const Tensor& x) {
  Tensor rows = torch::stable::contiguous(x);
  Tensor out = torch::stable::new_empty(x, x.sizes());
  const float* from = rows.const_data_ptr<float>();
  float* to = out.mutable_data_ptr<float>();
  const int64_t columns = x.size(x.dim() - 1);
  for (int64_t row = 0; row < x.numel(); row += columns) {
    float sum = 0;
    for (int64_t i = 0; i < columns; ++i) sum += from[row + i] * from[row + i];
    const float scale = 1 / std::sqrt(sum / columns + 1e-6f);
    for (int64_t i = 0; i < columns; ++i) to[row + i] = scale * from[row + i];
  }
  return out;
}
"""

# %%
SOURCE += r"""
STABLE_TORCH_LIBRARY(NAMESPACE, m) { m.def("rms_norm(Tensor x) -> Tensor"); }
STABLE_TORCH_LIBRARY_IMPL(NAMESPACE, CPU, m) { m.impl("rms_norm", TORCH_BOX(&rms_norm)); }
"""

# %% [markdown]
# A `Tensor` here is a *handle*: a counted reference to the C++ object that Python's `x` also refers to. A copy of a handle copies no number. When the last handle goes, in C++ or in Python, the memory is freed. So `y` may be returned although the function ends, and nobody calls `free`.
#
# From the handle the function can get the sizes, the strides, the dtype and the address of the first number. It sees no Python object. It could call torch's operators, and here it calls two, `contiguous` and `new_empty`. The loops see only the two addresses, `from` and `to`. No index is checked.
#
# The last two lines are the registration. `def` adds a row to the table, from a schema that is written by hand. `impl` fills one slot of this row, at the key `CPU`. `TORCH_BOX` makes a function that takes its arguments from the dispatcher's stack, and puts the result there.
#
# `load_cpp` compiles the text into a library and loads it into this process. When a library is loaded, its static objects are made, and the two macros are such objects. So loading is registering, and no line calls it. A namespace can be defined only once in a process. So `NAMESPACE` is a macro, and `load_cpp` gives it a new name each time, which it returns. (It needs a C++ compiler. Without one, it says what to install.)

# %%
import time

from utils.instruments.cpp_library import command, load_cpp

print(*(part for part in command("operator.so") if part[:2] not in ("-I", "-L")))
begun = time.perf_counter()
namespace = load_cpp(SOURCE)
print(f"compiled and loaded in {time.perf_counter() - begun:.1f} s")
cpp_norm = getattr(torch.ops, namespace).rms_norm
straight, turned = (sample.detach() for sample in samples())
for one in (straight, turned):
    print(one.stride(), "as plain PyTorch:", torch.allclose(cpp_norm(one), rms_plain(one)))
print(torch._C._dispatch_dump(f"{namespace}::rms_norm"))

# %% [markdown]
# The row has its schema and one slot, `CPU`, with the line of the C++ that filled it. **Predict.** What happens if the line with `contiguous` goes? And what does a float64 tensor give?

# %%
shorter = SOURCE.replace("torch::stable::contiguous(x)", "x")
careless = getattr(torch.ops, load_cpp(shorter)).rms_norm
for one in (straight, turned):
    print(one.stride(), "as plain PyTorch:", torch.allclose(careless(one), rms_plain(one)))
try:
    cpp_norm(straight.double())
except RuntimeError as error:
    print("float64: …", str(error).split(", ")[-1])

# %% [markdown]
# The transposed tensor gives wrong numbers, and no error. An address says where the first number lies. Where the next one lies is said by the strides, and the loops didn't ask for them. The dtype *is* checked, because `const_data_ptr<float>` compares it. A plain `data_ptr()` would have read the bytes of float64 as float32.
#
# And the other slots? **Predict.** Which of these raises an error: a tensor on `meta`, or a backward?

# %%
def gradient():
    leaf = straight.clone().requires_grad_()
    cpp_norm(leaf).sum().backward()
    return f"the gradient: {leaf.grad}"


attempt(lambda: cpp_norm(torch.empty(3, 6, device="meta")), lines=1)
attempt(gradient)

# %% [markdown]
# On `meta` there are sizes and no numbers, so the loops would have nothing to read, and the dispatcher asks for a fake. The backward is worse. It raises no error, and no gradient arrives. PyTorch only warns (`attempt` hides the warning). `custom_op` had put a function that refuses at the Autograd keys. Here you fill each slot yourself, and these are still empty.
#
# What is missing need not be C++. A fake runs once in a trace and never in a run, and a formula calls other operators. So both may be Python.

# %%
torch.library.register_fake(f"{namespace}::rms_norm", lambda x: x.new_empty(x.shape))
print("on meta:", cpp_norm(torch.empty(3, 6, device="meta")).shape)
torch.library.register_autograd(
    f"{namespace}::rms_norm",
    lambda ctx, g: rms_norm_backward(g, *ctx.saved_tensors),
    setup_context=keep_inputs,
)
print("gradcheck:", end=" ")
attempt(lambda: gradcheck(cpp_norm, samples()[:1], eps=1e-2, atol=1e-2))
compile_both_ways(cpp_norm)
print(opcheck(cpp_norm.default, samples()[1:]))

# %% [markdown]
# The kernel is in C++, and the rest stayed in Python. Many extensions are made like this: kernels in C++ or CUDA, the rest in Python.
#
# In older code you will find `TORCH_LIBRARY` in place of `STABLE_TORCH_LIBRARY`, and `at::Tensor` in place of this `Tensor`. They do the same. But their headers contain the inside of PyTorch. So they take longer to compile, and the library fits only the version of PyTorch with which it was compiled. The *stable* headers call PyTorch through C functions, which later versions keep.

# %% tags=["hide-input"]
choice(
    "You forget the fake of a C++ operator. Which call fails?",
    {
        "every call": "A call with a tensor on the CPU reaches the slot `CPU`. The fake has no part in it.",
        "a call while a compiler traces": "The compiler has no numbers, only shapes. It asks the fake what the result will be, and there is none.",
        "a call with a transposed tensor": "The C++ kernel makes a contiguous copy of it. A fake is not asked.",
    },
    answer="a call while a compiler traces",
)

# %% [markdown]
# ## The same kernel as PTX
#
# So far NumPy has played GPU. But the compiler needs no GPU either. From the types of the arguments and a target, it makes the same text as on a machine with a GPU. The target `sm_90` is a Hopper GPU, such as an H100 or H200. `ptx_of` compiles a recorded launch.
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
# In Python, a name can have a value of any type. In a compiled program, a variable has the same type on every path. The interpreter accepts much more than a GPU can run, so a kernel that has never been compiled is only half tested.
#
# Now we compile our own kernel, for contiguous rows of 600.

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
# These are five languages, and each is nearer to the machine than the one before. TTIR has blocks and no threads yet. TTGIR says which thread has which element. LLVM IR and PTX are the program of *one thread*. PTX is NVIDIA's assembly language for GPUs in general, and SASS is the language of this GPU. In PTX you can still find the kernel's lines.
#
# **Predict.** Four warps are 128 threads, and the block has 1,024 places. How many loads does the line with `tl.load` become in the program of one thread? And what does `tl.sum` become, if each thread has only a part of the row? Move to the lines and look.

# %%
kernel_ptx(rms_kernel, code, line=6)

# %% [markdown]
# There are eight loads, each with a predicate, which is the mask. The sum has three stages. First, each thread adds its own eight squares (`fma`). Then the threads of a warp exchange their sums: `shfl.sync.bfly` exchanges registers between two threads with numbers that differ in one bit. After five exchanges, over distances of 16, 8, 4, 2 and 1, all 32 threads have the sum of their warp. Last come the four warps. One thread of each warp puts its sum into *shared* memory, all threads wait at a barrier (`bar.sync`), and two more exchanges add the four sums.
#
# **Predict.** We compile the same kernel with one warp. Which of these instructions vanish?

# %%
for warps in (4, 1):
    found = Counter(
        name
        for name in for_hopper(600, warps).ptx.split()
        if name.startswith(("shfl", "bar.", "ld.global", "st.shared"))
    )
    print(f"{warps} warps:", dict(found))

# %% [markdown]
# Shared memory and barriers vanish, because one warp needs only `shfl.sync`, which makes its threads wait for each other. In return, every thread now has 32 elements instead of 8. Only a GPU can say which version is better, and further down it does.
#
# Now look at the loads again: each `ld.global.b32` loads one number of 32 bits. A GPU can load four numbers with one instruction, `ld.global.v4.b32`, if the address is a multiple of 16 bytes. **Predict.** Take 600 columns and 4,096 columns. With which width does each row begin at such an address? And how much of this does the compiler know?

# %%
def loads(code):
    """The kinds of instruction that load from the GPU's memory, and how many of each."""
    return dict(Counter(word for word in code.ptx.split() if word.startswith("ld.global")))


for columns, known in {600: [], 4096: ["columns", "x_row"]}.items():
    code = for_hopper(columns, known=known)
    layout = next(line for line in code.ttgir.splitlines() if line.startswith("#blocked"))
    print(f"{columns:5,} columns:", loads(code), layout.split("{")[1].split(",")[0])

# %% [markdown]
# 4,096 columns are nearly seven times as many, and they take the same eight loads. TTGIR, which gives each thread its elements, shows the difference. With 600 columns, a thread has single elements that are far apart. With 4,096 columns, it has four neighbours at a time. But 600 floats are 2,400 bytes, which *is* a multiple of 16. Each row could be loaded four numbers at a time!
#
# The compiler doesn't know this, because `columns` and `x_row` come in only when the kernel is launched. Triton asks only whether 16 divides such a number. If so, it compiles a separate version, and our argument `known` asks for that version. (It also asks whether the number is 1, and then treats it as a constant.) 4,096 % 16 = 0, and 600 % 16 = 8. So for the compiler a stride of 600 is just any number, and a row may begin anywhere.
#
# You can tell the compiler more. The finished softmax passes the width as a number of groups, and the size of a group as a constant: 75 groups of 8. Here are the loads without that trick and with it.

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
    "A row has 1,000 float32, and its width and stride are run-time integers. How will it be loaded?",
    {
        "four at a time, since 4,000 bytes are a multiple of 16": "That is true of the bytes. But Triton asks whether 16 divides the *number*, and 1,000 = 62 · 16 + 8.",
        "one at a time": "1,000 % 16 is 8, as with 600. For 1,008 columns it would be four at a time.",
        "two at a time": "8 divides 1,000, but Triton doesn't ask about 8. It asks only about 16.",
    },
    answer="one at a time",
)

# %% [markdown]
# One pass has a price, and the compiler can show it without running anything. A thread has at most 255 registers. **Predict.** The kernel keeps a whole row of 16,384 columns. With one warp, each of the 32 threads must keep 512 elements. What happens?

# %%
for warps in (1, 2, 4, 8, 16):
    code = for_hopper(16384, warps, known=["columns", "x_row"])
    print(
        f"{warps:2} warps: {code.registers:3} registers a thread, {code.stack:5} bytes spilled to "
        "memory"
    )

# %% [markdown]
# It *spills*: values without a register go to memory and come back. That is the very traffic that one pass should save. (The figures come from NVIDIA's assembler, which is in Triton's package.)
#
# So there are choices: the block, the number of warps, and whether to keep the row or to loop over it. The best choice depends on width, dtype and GPU. `triton.autotune` finds it by trying: at the first launch with new sizes, it times every configuration in a list.

# %%
choices = [triton.Config({}, num_warps=warps) for warps in (4, 8, 16)]
tuned = triton.autotune(choices, key=["columns"])(rms_kernel)
print(type(tuned).__name__, "around the same kernel:", tuned.fn is rms_kernel)
attempt(
    lambda: launch(tuned, (1,), torch.randn(1, 8), torch.empty(1, 8), 8, 8, 1, EPS, tl.float32, 8)
)

# %% [markdown]
# Its candidates differ in the number of warps, 4, 8 or 16, and only a GPU can say which is fastest. So `launch` refuses to choose.
#
# ### What a GPU said
#
# We have asked a GPU. The course comes with the *record* of an H100, one of the GPUs that you have compiled for. It contains the measurements of `python -m benchmarks.gpu`, with a different version of PyTorch from yours. (If you have the course's repository and a GPU, the same command makes a record of your GPU.)
#
# The course's softmax was written as you work here, with no GPU in reach. Every test of it had run in the interpreter, and its kernels had been compiled only to be read. **Predict.** Then the same tests ran on the H100 for the first time. They try values, dtypes and strides of every kind, opcheck, gradcheck and the compiler. How many failed?

# %%
record = records.load("nvidia-h100-80gb-hbm3")
origin = record.provenance
print(f"{record.gpu}, torch {origin['torch']}, triton {origin['triton']}, {origin['date'][:10]}\n")
for name, check in record.result("checks").items():
    print(f"{name:12} {check['outcome']:7} {check['says'][:85]}")

# %% [markdown]
# Not one failed. A drill said that a kernel may be right in the interpreter and fail on a GPU. Was it wrong? The interpreter had proved the arithmetic, and the GPU computes the same up to the last digits (`same_as_cpu`). The rest was read, not run. The kernels had been compiled for just that chip. No program reads the results of another program, so the order of the programs can't matter. And the source works around the known faults of the interpreter. But not everything can be tried without a GPU. One example is `far`, with rows that begin more than 2³¹ elements after the first row, in a tensor of four gigabytes. This test passes, because `row` was made 64 bits wide.
#
# Now we ask the question from above about the softmax. **Predict.** Each program takes one row of 600, and the GPU has 132 multiprocessors. Which number of warps, 1, 2, 4 or 8, is best for 64 rows, and which is best for 65,536 rows?

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
# It depends on the number of rows. With 64 rows, every program has its own multiprocessor, and only the time of *one* program counts. In float32, four or eight warps are best, because each thread then goes through fewer elements. With 65,536 rows, there is always another program to run while one waits. So one warp is as good as four, because they all wait for memory. In bfloat16 that wait is half as long, and it no longer hides the other work. You have read that work in the PTX: barriers and exchanges through shared memory, twice for each row of 1,200 bytes. With eight warps, the kernel takes nearly twice the time.
#
# Could we have known this beforehand? The course's softmax tunes nothing at run time. It has a table in `utils/softmax/launch.py`. The table was reasoned from figures like the ones above, before any GPU was asked. The table follows a few rules. Nothing may spill. A thread should have four to eight loads under way. If there are many narrow rows, each gets one or two warps. If there are few rows, each gets four.
#
# **Predict.** On 40 kinds of tensor, forward and backward, in 2 and in 4 bytes, the H100 tried every sensible launch, 441 in all. How often was the launch from the table within 3 % of the best launch? And how much do you lose with the worst launch?

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

# %% [markdown] tags=["printed 37", "printed 40", "printed 2.4"]
# It was in 37 of 40 cases, and the worst choice costs up to a factor of 2.4. So reading is worth a lot: it leaves only a few percent for a GPU to decide. Two of the three misses are a tenth of a microsecond. The third is a real one, and reading didn't predict it. Look up the launches of that case: which kernel was better?

# %%
for launched, seconds in sorted(tried("forward", 2, 4096, 32768).items(), key=lambda item: item[1]):
    print(f"{seconds * 1e6:6.1f} µs  {launched}")

# %% tags=["hide-input"]
true_false(
    "Of two kernels for the same softmax, the one that reads its row once is at least as fast as the one that reads it twice.", False,
    "Here the loop reads each row of 64 KiB in two tiles, and then reads it again. It is still 5 % faster than the kernel that keeps the row, because the second reading comes from a cache. In float32 the kernel that keeps the row is faster (ask `tried`, with 4 in place of 2). The count of bytes says what is possible. Only a measurement says which kernel comes nearest to that.",
)

# %% [markdown]
# ## How fast can it be
#
# The first question is not how fast it *is*, but how fast it *could* be. The answer is a count of bytes, divided by a bandwidth from a data sheet. The count is exact, and gives a bound that no kernel can beat. Then the record says how near to this bound a kernel comes.
#
# Take the logits of 2,048 sequences of 32 tokens: 65,536 rows of 600 float32. An H100 moves 3.35 TB a second.
#
# **Predict.** How long does each way take at least? The arithmetic is about five FLOPs an element, at 67 TFLOP/s. Does it matter?

# %%
BANDWIDTH, FLOPS = 3.35e12, 67e12  # of an H100 SXM, by its data sheet: B/s; FLOP/s in float32
elements = 65_536 * 600
for way, passes in {"op by op": 8, "three passes": 4, "online": 3, "one pass": 2}.items():
    moved = passes * elements * 4
    print(f"{way:13} {moved / 1e6:7,.0f} MB  {moved / BANDWIDTH * 1e6:6.1f} µs")
print(f"the arithmetic alone       {5 * elements / FLOPS * 1e6:6.1f} µs")

# %% [markdown]
# The arithmetic takes a thirtieth of the shortest of these times. So here is the rule for every kernel of this kind: **its bytes decide its time**. Fewer passes make it faster, and fewer bytes an element do too (half precision halves the time). Nothing else matters much, until the tensor is so small that the kernel takes longer to start than to run.

# %% tags=["hide-input"]
number(
    "The softmax's backward reads g and y and writes dx. At 3.35 TB/s, how many µs does it take at least for these 65,536 rows of 600, in bfloat16?",
    70,
    unit="µs",
    tolerance=1,
    why="Three times 65,536 · 600 · 2 bytes are 236 MB. Divided by 3.35 TB/s, this is 70 µs.",
    wrong={141: "That is the time in float32. An element of bfloat16 has 2 bytes.", 47: "Count again: two tensors are read and one is written."},
)

# %% [markdown] tags=["printed 94"]
# So much for the bound. Now we compare four kernels on the H100, for the same rows. `copy` reads and writes as many bytes and computes nothing. The other three are softmax kernels: ours, the one that `torch.compile` makes from `torch.softmax`, and PyTorch's own. **Predict.** The bound of the forward in float32 is 94 µs. How near does each kernel come to this bound? And is it true that half precision halves the time?

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
# In the first line, a softmax takes as long as a copy, no matter who wrote it. The exponentials, the maximum and the sum are hidden behind the bytes. But not even the copy reaches the bound. A data sheet says what the wires could carry, and about a tenth of that is never reached.
#
# And half precision? For our kernel and the compiler's kernel, the time is halved. For PyTorch's own kernel it is not. In bfloat16 that kernel takes one and a half times as long as a copy. In both backwards PyTorch takes twice as long as a copy, although it moves no more bytes. So bytes are only a *bound*. To come near it, a kernel needs loads that are wide enough, and enough loads under way. Times alone don't say what PyTorch's two kernels wait for. That takes a profiler ([phase 09](09_profiling.ipynb#cell-id=total-and-self)).
#
# Here is the same as a roofline, which you know from [phase 01](01_tensors.ipynb#cell-id=counting-flops-and-bytes). The horizontal axis has the FLOPs for each byte, and the vertical axis has the FLOP/s that the machine then allows. The LM head's product is in the figure as well. A hollow mark is a bound. A filled mark was measured. There is one if the record has a softmax with that number of rows (64, 512, 4,096 and 65,536, which are 2, 16, 128 and 2,048 sequences).
#
# **Predict.** You raise the batch. Which of the three points moves? And how near to its bound is our softmax with two sequences, and how near with 2,048?

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
# The LM head moves, because a larger batch shares the weight. From five sequences on, its arithmetic is the bound. The bound of softmax stays in its place, and the measured speed climbs towards it. Two sequences are 307 KB, which the memory could move in a tenth of a microsecond. But they take two microseconds, because even a tiny kernel takes time to start and to end. (Python's share is not included, because the launches came out of a CUDA graph. [Phase 09](09_profiling.ipynb#cell-id=fewer-larger-later) adds it.)
#
# Every row of a softmax brings its own bytes and its own FLOPs, so their ratio is the same for every batch. Only fusing changes this ratio, from 0.16 to 0.63 FLOP a byte, and that is four times the speed.

# %% tags=["hide-input"]
choice(
    "A new GPU has twice the FLOP/s and the same memory. What happens to a fused softmax of this size?",
    {
        "It takes half the time": "It would, if it waited for the arithmetic.",
        "Next to nothing": "The slanted roof is the limit of the memory, and stays where it is. The ridge moves to the right, further away from the point.",
        "It gets slower": "Neither bytes nor bandwidth have changed.",
    },
    answer="Next to nothing",
)

# %% [markdown]
# ## The finished softmax, read
#
# **Solve the lab before you read on.** The rest of this section shows the course's own solution. It is in `utils/softmax`, because you will need the operator from here on. But you learn nothing from copying it.
#
# When your softmax works, compare the two. You know all the parts. Here they are written for speed.

# %%
import inspect

from utils.softmax import kernel, op

print(inspect.getsource(kernel.softmax_rows.fn))

# %% [markdown]
# Four things are different from our `rms_kernel`. A program takes `ROWS` rows at once, a tile of two dimensions, so that narrow rows don't leave its threads idle. `INDEX` has 32 bits within a row if that is enough, because 64-bit arithmetic is slower. You have already seen the groups of `ALIGN` at work. And `evict_first` tells the caches that these bytes will not be needed again.
#
# The other kernel of that file is for rows that are too long for any register file. Here is its heart, the online softmax.

# %%
lines = inspect.getsource(kernel.softmax_loop.fn).splitlines()
first = next(k for k, line in enumerate(lines) if "raised =" in line)
print("\n".join(lines[first:first + 5]))

# %% [markdown]
# `top` is the maximum so far, and `total` is the sum of the exponentials after that maximum was subtracted. If the maximum rises, the old sum is multiplied by exp(old − new), and is right again. The line with `base` is for a row that contained nothing but −inf so far. Look up in the source how the kernel goes over the row the second time. It begins at the end, because the last numbers that it read are still in the caches.
#
# That is a fine idea, but does it pay? **Predict.** Rows of 131,072 fit into no register file, so there are two readings and a write, which is 3N. If all three went to memory, how long would that take at least? And how long did the kernel really take?

# %%
for dtype in ("float32", "bfloat16"):
    moved, took = measured(1024, 131_072, dtype)
    print(
        f"{dtype:8} 3N at 3.35 TB/s: {1.5 * moved / BANDWIDTH * 1e6:5.1f} µs at least; measured "
        f"{took['triton'] * 1e6:5.1f} µs"
    )

# %% [markdown]
# That is faster than the memory could be. So a part of the second reading never went to memory, because it was still in the caches. In bfloat16 that part is larger, because a row has half the bytes.
#
# And here is the operator, which makes the kernels known to PyTorch:

# %%
print(
    inspect.getsource(op._save_output)
    + inspect.getsource(op._vjp)
    + inspect.getsource(op._vjp_of_backward)
)

# %% [markdown]
# **Predict.** The result of our `twice` could not be differentiated again, because `twice` detaches. Is this operator better? Ask it for a third derivative.

# %%
x = torch.tensor([[0.5, -1.0, 2.0]], dtype=torch.float64, requires_grad=True)
for function in (softmax, lambda x: torch.softmax(x, -1)):
    d = function(x)
    for _ in range(3):
        (d,) = torch.autograd.grad((d * torch.arange(1.0, 4)).sum(), x, create_graph=True)
    print(d.detach())

# %% [markdown]
# It is. Its second backward is made of PyTorch's own operators. Each of them has its own backward, and so on without end.

# %% [markdown]
# ## What you can now do
#
# [The lab](../release/05_custom_op/05_custom_op.ipynb) of this phase asks you to do it:
#
# - plan a launch, with its grid, its block and its masked places;
# - write a row softmax in Triton, for any width, strides and dtype, and its backward;
# - compile it for a GPU that you don't have, and read its PTX: loads and stores, their widths, the reductions;
# - register it as an operator, with schema, fake, autograd and a kernel for the CPU, and pass `gradcheck`, `opcheck` and the compiler;
# - make this operator differentiable twice;
# - compute how many bytes a softmax moves, and the time that memory allows;
# - put it behind MiniGPT's LM head, in one line;
# - write its kernel once in C++, and register it from there.
#
# And you can answer the question. PyTorch needs a name with a schema, a kernel for each device, a fake that describes the result without computing it, and a formula for the gradient that calls an operator again. Each of these is one slot or one function. No single proof sees whether all of them are right.

# %% [markdown]
# ## What this phase leaves out
#
# - **Fusing without writing a kernel**: [phase 06](06_compile.ipynb#cell-id=fusion-and-the-code) reads what `torch.compile` makes of `rms_plain` by itself. Write your own kernel if the compiler finds nothing as good.
# - **Time**: [phase 09](09_profiling.ipynb#cell-id=two-clocks) is about streams, launches and good measurements.
# - **Products of matrices in Triton**, with tiles and tensor cores, and **fused attention**: [phase 11](11_tiles.ipynb#cell-id=the-same-as-a-kernel) builds both.
# - **C++ and CUDA extensions**: they use the same registration in another language (`TORCH_LIBRARY`).
# - **`vmap` over your operator**: it needs `register_vmap`.

# %% [markdown]
# ## Sources
#
# - P. Tillet, H. T. Kung, D. Cox, "[Triton: An Intermediate Language and Compiler for Tiled Neural Network Computations](https://doi.org/10.1145/3315508.3329973)", MAPL 2019; and Triton's documentation, above all the tutorial "[Fused Softmax](https://triton-lang.org/main/getting-started/tutorials/02-fused-softmax.html)" (read it after the lab).
# - M. Milakov, N. Gimelshein, "[Online normalizer calculation for softmax](https://arxiv.org/abs/1805.02867)", 2018.
# - B. Zhang, R. Sennrich, "[Root Mean Square Layer Normalization](https://arxiv.org/abs/1910.07467)", NeurIPS 2019.
# - PyTorch's documentation: [`torch.library`](https://docs.pytorch.org/docs/stable/library.html) (`custom_op`, `triton_op`, `register_fake`, `register_autograd`, `opcheck`), and the "[PyTorch Custom Operators](https://docs.pytorch.org/tutorials/advanced/custom_ops_landing_page.html)" pages; "[Gradcheck mechanics](https://docs.pytorch.org/docs/stable/notes/gradcheck.html)"; "[LibTorch Stable ABI](https://docs.pytorch.org/docs/stable/notes/libtorch_stable_abi.html)".
# - NVIDIA, "[Parallel Thread Execution ISA](https://docs.nvidia.com/cuda/parallel-thread-execution/index.html)" (`ld`, `shfl.sync`, `bar.sync`) and [the H100's data sheet](https://resources.nvidia.com/en-us-gpu-resources/h100-datasheet-24306).
# - S. Williams, A. Waterman, D. Patterson, "[Roofline: An Insightful Visual Performance Model for Multicore Architectures](https://doi.org/10.1145/1498765.1498785)", CACM 2009.
