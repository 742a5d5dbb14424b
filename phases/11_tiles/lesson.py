# ---
# jupyter:
#   kernelspec: {display_name: Python 3, language: python, name: python3}
#   open_the_hood: {title: "Tiles"}
# ---

# %% [markdown]
# # Tiles
#
# A softmax uses each number once, so one pass over memory is the best that a kernel can do. A product of matrices uses each number hundreds of times. If each use is a load from memory, the GPU waits nearly all the time. The remedy has one name, *tile*: load a small block once, use it often, and keep the sums in registers. With tiles you write a fast product. With tiles and one more idea you write attention that never stores its table.
#
# It takes about one and a half hours. You need [phase 05](05_custom_op.ipynb#cell-id=one-program-one-row)'s kernels and [phase 08](08_transformer.ipynb#cell-id=one-head)'s attention. If a paragraph begins with **Predict**, decide on an answer before you look below it. Nothing here is graded. Two sections are optional: the lab doesn't ask for them.
#
# No GPU is needed. Kernels run in Triton's interpreter, and are compiled for a GPU that isn't there. Some measurements of an H100 were recorded, but none of this phase's kernels yet. (Triton has no build for macOS. On a Mac you can read this page with its outputs, and run it in a Linux container.)

# %%
import math
import re
import textwrap
import warnings
from collections import Counter

import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode

# %%
from hood.learner.contents import PHASES
from utils.instruments import records
from utils.instruments.accesses import accesses
from utils.instruments.launching import launch
from utils.minigpt import attention_maps, generate, load_minigpt, load_tokenizer
from utils.notebook.drills import choice, number
from utils.softmax import compile_kernel
from utils.views import (
    causal_tiles,
    course_path,
    my_minigpt,
    online_softmax,
    tile_intensity,
    tile_order,
)

torch.set_grad_enabled(False)  # until the backward

# %% [markdown]
# ## Where we are

# %%
course_path(PHASES, here=11)

# %% [markdown]
# In [phase 05](05_custom_op.ipynb#cell-id=one-pass-or-three) a program took one row, and memory was the only bound. In [phase 08](08_transformer.ipynb#cell-id=attention-in-fifty-lines) you wrote attention with a table of T × T shares. Both phases left out the same thing: a kernel that works in tiles. Now you write it.

# %% [markdown]
# ## Resumen en español
#
# Un producto de matrices usa cada número cientos de veces. Si cada programa calcula una *tesela* (*tile*) del resultado, carga una franja de cada matriz y reutiliza lo cargado: cuanto mayor es la tesela, menos bytes. La suma vive en float32, en registros; lo que se hace al final (sesgo, GELU) no cuesta ningún viaje más a la memoria.
# En Triton lo hace `tl.dot`; en el PTX se ve como `mma` o `wgmma`. El orden de los programas decide qué queda en la caché L2.
# La atención no necesita su tabla T × T: el softmax se calcula por teselas, con un máximo provisional `m`, una suma `l` y un factor que corrige lo ya sumado. De cada fila se guarda solo el *log-sum-exp*, y con él se rehacen las teselas hacia atrás. Las teselas del futuro ni se cargan.
# En la práctica se usa `scaled_dot_product_attention`, o FlexAttention si la máscara es propia.

# %% [markdown]
# ## The question
#
# Somebody wants to give a model longer texts: 4,096 words in place of 32. Attention is two lines, and they are right. A mode, as in [phase 04](04_dispatcher.ipynb#cell-id=listening-in), writes down every result that is larger than the query itself.

# %%
def shares_bytes(func):
    """Whether an operator's result is a view. (`_unsafe_view` makes a view, too.)"""
    return func.is_view or func is torch.ops.aten._unsafe_view.default


class Large(TorchDispatchMode):
    """Writes down the operators whose result has more than `limit` bytes, and these bytes."""

    def __init__(self, limit):
        super().__init__()
        self.limit, self.found = limit, []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        for one in () if shares_bytes(func) else out if isinstance(out, tuple) else (out,):
            if isinstance(one, torch.Tensor) and one.nbytes > self.limit:
                self.found.append((func.overloadpacket.__name__, one.nbytes))
        return out


# %% [markdown]
# **Predict.** One head has 64 channels, so q, k, v and the result have 1 MiB each. How many MiB does `attend` ask for in between?

# %%
def attend(q, k, v):
    """Attention of one head: q, k, v (T, D) -> (T, D)."""
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    return scores.softmax(-1) @ v


torch.manual_seed(0)
q, k, v = torch.randn(3, 4096, 64)
with Large(limit=q.nbytes) as large:
    attend(q, k, v)
for name, size in large.found:
    print(f"{name:10}{size / 2**20:6.0f} MiB")
for T in (32_768, 131_072):
    print(f"{T:,} words: {4 * T * T / 2**30:.0f} GiB for each of these tables")

# %% [markdown] tags=["printed 64"]
# It asks for three tables of 64 MiB, for each head and each sentence. Nobody will ever read them. The caller wants 1 MiB. The table is only a step on the way, and it grows with the square of the length.
#
# The second trouble is a product itself. In phase 05 a program took one row of the result. Here we write a product in this manner: one program makes one number, from a row of x and a row of y. (So the kernel computes `x @ y.T`. It says how much each word of x resembles each word of y.)

# %%
@triton.jit
def one_number(x_ptr, y_ptr, out_ptr, columns, CHANNELS: tl.constexpr):
    row, column = tl.program_id(0) // columns, tl.program_id(0) % columns
    k = tl.arange(0, CHANNELS)
    a = tl.load(x_ptr + row * CHANNELS + k)
    b = tl.load(y_ptr + column * CHANNELS + k)
    tl.store(out_ptr + row * columns + column, tl.sum(a * b))


# %% [markdown]
# **Predict.** x has 8 rows, y has 12, and each row has 16 numbers. How often is each number of x loaded, and each number of y?

# %%
def loads(kernel, grid, x, y, *args, **constants):
    """How often a kernel loads each number of x and of y: {tensor: {times: numbers}}."""
    out = torch.full((len(x), len(y)), float("nan"))
    found = accesses(kernel, grid, x, y, out, *args, **constants)
    assert torch.allclose(out, x @ y.T, atol=1e-5), "the product is wrong"
    each = Counter((one.tensor, n) for one in found if one.kind == "load" for n in one.touched)
    return {
        name: dict(Counter(times for (tensor, _), times in each.items() if tensor == name))
        for name in ("x_ptr", "y_ptr")
    }


x, y = torch.randn(8, 16), torch.randn(12, 16)
print(loads(one_number, (8 * 12,), x, y, 12, CHANNELS=16))

# %% [markdown] tags=["printed 128", "printed 12", "printed 192"]
# All 128 numbers of x are loaded 12 times, because y has 12 rows. All 192 numbers of y are loaded 8 times. With 4,096 rows on each side, every number is loaded 4,096 times. For each multiplication and addition there are two loads. No product can have a worse ratio.
#
# > **How can a kernel load each number only a few times, for a product and for attention, and never store what nobody reads?**

# %% [markdown]
# ## What a tile costs
#
# Let a program make a *tile* of the result, BLOCK_M rows by BLOCK_N columns. It loads BLOCK_M rows of a and BLOCK_N columns of b, each of length K. Each loaded number of a is now used BLOCK_N times, and each number of b is used BLOCK_M times. Now count the whole product (M, K) @ (K, N). All tiles in one column of tiles together load a once. There are N / BLOCK_N such columns, so a is loaded N / BLOCK_N times. In the same way, b is loaded M / BLOCK_M times. With numbers of $s$ bytes, and sizes that the blocks divide,
#
# $$\text{bytes} = s\left(MK\,\frac{N}{\text{BLOCK}_N} + KN\,\frac{M}{\text{BLOCK}_M} + MN\right),\qquad \text{FLOPs} = 2MNK.$$
#
# Their quotient is the arithmetic intensity of [phase 01](01_tensors.ipynb#cell-id=counting-flops-and-bytes). K cancels in the large terms. For a square tile and a long K, about BLOCK / $s$ FLOP are left for each byte.
#
# An H100 multiplies bfloat16 with 989 TFLOP/s, by its data sheet, and moves 3.35 TB/s. So it needs 295 FLOP for each byte. **Predict.** Is a product of 4,096 × 4,096 matrices in bfloat16 bound by memory or by arithmetic, if its tiles are 64 × 64? And which tile would be large enough?

# %%
FLOPS, BANDWIDTH = 989e12, 3.35e12  # of an H100 SXM, by its data sheet: bfloat16, and memory
tile_intensity(4096, 4096, 4096, peak_flops=FLOPS, peak_bandwidth=BANDWIDTH)

# %% [markdown]
# With 64 × 64 there are 32 FLOP for each byte, a ninth of what is needed. Each number is loaded 64 times. Move the sliders (if your kernel is running): even 256 × 256 is on the slope. A tile would have to be about 590 wide. The green mark shows how much room is left: if each number moved only once, the same product would have more than a thousand FLOP for each byte.
#
# Why not simply take a larger tile? A tile's inputs wait in *shared memory*, a memory on the chip that all threads of a program share. A multiprocessor of an H100 has 228 KiB of it, and a program can have at most 227 KiB. To load the next piece of K while the last piece is multiplied, a kernel keeps several pieces, its *stages*. With pieces of 64 numbers and three stages, a tile needs this much:

# %%
ROOM, STEP, STAGES = 227 * 1024, 64, 3
for side in (64, 128, 256, 590):
    inputs = 2 * side * STEP * 2 * STAGES  # of a and of b, 2 bytes a number
    sums = side * side * 4
    print(
        f"{side:4}: inputs {inputs / 1024:6.1f} KiB, {inputs / ROOM:5.0%} of the room; "
        f"sums in registers {sums / 1024:7.1f} KiB"
    )

# %% [markdown] tags=["printed 590"]
# A tile of 590 doesn't fit. Its sums don't fit either: a multiprocessor has 256 KiB of registers, and a tile of 256 × 256 in float32 already needs all of them. So a tile alone can't reach the flat roof.
#
# And yet real products do. Here is the record of a product of 8,192 × 8,192, by the library that PyTorch calls. How near to the roof does it come?

# %%
record = records.load("nvidia-h100-80gb-hbm3")
reached = record.result("products")["FLOP/s"]
print(record.gpu, "· torch", record.provenance["torch"], "·", record.provenance["date"][:10])
for name in ("bfloat16", "float32 as tf32", "float32"):
    print(f"{name:16}{reached[name] / 1e12:6.0f} TFLOP/s")
print(f"{reached['bfloat16'] / FLOPS:.0%} of the data sheet in bfloat16")

# %% [markdown]
# More than three quarters of the roof. So most of the loads that we counted never reach memory. Programs that run at the same time load the *same* rows and columns, and the second one finds them in the L2 cache. That is a question of the programs' order, and has [a section of its own](11_tiles.ipynb#cell-id=which-program-comes-next). The tile decides how many bytes pass between the multiprocessors and the cache. The order decides how many of them come from memory.
#
# A tile can't help every product. MiniGPT's LM head, for 64 sentences of 32 words, is (2,048, 64) @ (64, 600). Even if each number moved only once, there would be 56 FLOP for each byte, because each number of the result gets only 64 products before it is stored.

# %% tags=["hide-input"]
number(
    "A product in float16 has tiles of 128 × 128 and a very long K. How many FLOP are there for each loaded byte?",
    64,
    unit="FLOP",
    tolerance=0.5,
    why="For each step along K, a tile loads 128 + 128 numbers of 2 bytes, and does 2 · 128 · 128 FLOP. 32,768 / 512 = 64, which is BLOCK / s.",
    wrong={128: "That would be right for numbers of one byte. A float16 has two.", 32: "An addition and a multiplication are two FLOP."},
)

# %% [markdown]
# ## A product in tiles
#
# Before the kernel, here is one tile in PyTorch. Our matrices are the embeddings of MiniGPT's 600 words, 64 numbers each. The product of this table with itself says for each pair of words how alike they are. We take 64 rows and 64 columns of it, and walk along the 64 channels in steps of 16.

# %%
words = load_minigpt().token_embedding.weight.detach()  # (600, 64)
whole = words @ words.T
rows, columns = words[128:192], words[0:64]
total = torch.zeros(64, 64)
for piece_a, piece_b in zip(rows.split(16, dim=1), columns.split(16, dim=1)):
    total += piece_a @ piece_b.T
print("equal:", torch.equal(total, whole[128:192, 0:64]))
print(f"off by {(total - whole[128:192, 0:64]).abs().max():.0e}")
print("the last 64 rows, from 576 on:", tuple(words[576:640].shape))

# %% [markdown]
# The numbers differ in their last digits, because the additions happen in another order. That is no mistake. Every product that is cut along K has such differences, and a GPU's own product has them as well.
#
# Two things need care. The first is the *ragged edge*. 600 is not a multiple of 64, so the last tile has only 24 rows. In PyTorch a slice simply ends at the edge. A kernel's block does not end, and needs a mask.
#
# The second is the *accumulator*, the tile of sums. **Predict.** Each sum has 4,096 products of numbers between 0 and 1, so it is about 1,024. In bfloat16, neighbouring numbers above 512 are 4 apart, and above 1,024 they are 8 apart. We add up 128 pieces of K. Is the largest error about 4, about 30 or about 300, if the accumulator is bfloat16? And if it is float32, and is rounded once at the end?

# %%
a, b = torch.rand(16, 4096).bfloat16(), torch.rand(4096, 16).bfloat16()
exact = a.double() @ b.double()
for dtype in (torch.bfloat16, torch.float32):
    total = torch.zeros(16, 16, dtype=dtype)
    for start in range(0, 4096, 32):
        piece = slice(start, start + 32)
        total += (a[:, piece].float() @ b[piece].float()).to(dtype)
    off = (total.bfloat16().double() - exact).abs().max()
    print(f"accumulator {str(dtype):14} off by {off:5.1f} of {exact.mean():.0f}")

# %% [markdown]
# The float32 accumulator is off by at most half a step of the result. That is what one rounding costs. The bfloat16 accumulator rounds 128 times. When the sum is large, each piece of about 8 is rounded to a multiple of 4 or 8, and the errors add up.
#
# Half precision is for numbers that travel. Sums stay in float32 until the last store.

# %% [markdown]
# ## The same as a kernel
#
# In Triton one function multiplies two blocks, `tl.dot(a, b)`. It is the only way to a GPU's *tensor cores*, the units that multiply small matrices at once. Here is the smallest kernel around it. We compile it for an H100, and look for the instruction that multiplies.

# %%
@triton.jit
def square(x_ptr, out_ptr, SIDE: tl.constexpr, HOW: tl.constexpr):
    at = tl.arange(0, SIDE)[:, None] * SIDE + tl.arange(0, SIDE)[None, :]
    x = tl.load(x_ptr + at)
    if HOW == "widened":
        x = x.to(tl.float32)
    if HOW == "ieee":
        tl.store(out_ptr + at, tl.dot(x, x, input_precision="ieee"))
    else:
        tl.store(out_ptr + at, tl.dot(x, x))


MULTIPLIES = re.compile(r"wgmma\.mma_async[\w.]*|mma\.sync[\w.]*|fma\.rn\.f32")


def multiplies(kernel, types, **constants):
    """The instructions that multiply in a kernel's PTX for an H100, or why it doesn't compile."""
    try:
        return dict(Counter(MULTIPLIES.findall(compile_kernel(kernel, types, constants).ptx)))
    except Exception as error:
        return str(error).splitlines()[-1]


# %% [markdown]
# **Predict.** One of these five does not compile: its blocks are too small for a tensor core. Which of the others multiply with a tensor core (`mma`), and which with ordinary arithmetic (`fma`)?

# %%
for dtype, side, how in (
    ("bf16", 16, "plain"), ("bf16", 8, "plain"), ("bf16", 16, "widened"),
    ("fp32", 16, "plain"), ("fp32", 16, "ieee"),
):
    found = multiplies(square, {"x_ptr": f"*{dtype}", "out_ptr": "*fp32"}, SIDE=side, HOW=how)
    print(f"{dtype} {side:2} {how:8}", found)

# %% [markdown]
# Read the end of the instruction's name: `f32.bf16.bf16.f32` multiplies two blocks of bfloat16, and adds the products to sums in float32. So the accumulator has float32, although nobody asked for it. Three things may surprise you:
#
# - Triton refuses less than 16 numbers in K, the dimension that is summed. M and N may be smaller: the compiler fills them up, because the instruction has its own sizes (here m16n8k16). In the lab all sides are at least 16.
# - Numbers of float32 are multiplied as *tf32*, which has float32's range and only ten bits behind the point. If you need all 23 bits, `input_precision="ieee"` gives ordinary arithmetic. The record in *What a tile costs* shows the price.
# - A bfloat16 that was widened to float32 is multiplied as tf32, too. Nothing is lost, because tf32 has room for all of its bits. But tf32 has half the speed of bfloat16.
#
# So do not widen before a product: `tl.dot` takes bfloat16 as it is, and its sums have float32. Now the same kernel in the interpreter:

# %%
for dtype in (torch.float32, torch.float16, torch.bfloat16):
    x, out = torch.randn(16, 16).to(dtype), torch.empty(16, 16)
    launch(square, (1,), x, out, SIDE=16, HOW="plain")
    print(f"{str(dtype):15} off by {(out - x.float() @ x.float()).abs().max():.0e}")

# %% [markdown]
# The interpreter knows no tf32, so its float32 is better than a GPU's. It also takes blocks of any size. And it keeps a bfloat16 as a 16-bit integer, as you saw in [phase 05](05_custom_op.ipynb#cell-id=half-precision). By itself it would multiply these integers in `tl.dot`. The course's `launch` makes numbers of them first. If you use Triton's interpreter without the course, you must widen by yourself.

# %% [markdown]
# ### The whole product
#
# Now the whole product. A helper makes one tile, so that several kernels can use it. `x` has `rows` rows, `y` has `columns` rows, and CHANNELS is a multiple of STEP.

# %%
@triton.jit
def tile_of(x_ptr, y_ptr, rows, columns, row, column,
            CHANNELS: tl.constexpr, BLOCK: tl.constexpr, STEP: tl.constexpr):
    """The sums of tile (row, column) of x @ y.T, in float32, and its rows and columns."""
    down = row * BLOCK + tl.arange(0, BLOCK)
    across = column * BLOCK + tl.arange(0, BLOCK)
    x_at, y_at = x_ptr + down[:, None] * CHANNELS, y_ptr + across[None, :] * CHANNELS
    sums = tl.zeros((BLOCK, BLOCK), tl.float32)
    for start in range(0, CHANNELS, STEP):
        channel = start + tl.arange(0, STEP)
        a = tl.load(x_at + channel[None, :], mask=down[:, None] < rows, other=0.0)
        b = tl.load(y_at + channel[:, None], mask=across[None, :] < columns, other=0.0)
        sums = tl.dot(a, b, sums)
    return sums, down[:, None], across[None, :]


# %%
@triton.jit
def alike(x_ptr, y_ptr, out_ptr, rows, columns,
          CHANNELS: tl.constexpr, BLOCK: tl.constexpr, STEP: tl.constexpr):
    wide = tl.cdiv(columns, BLOCK)
    row, column = tl.program_id(0) // wide, tl.program_id(0) % wide
    sums, down, across = tile_of(x_ptr, y_ptr, rows, columns, row, column, CHANNELS, BLOCK, STEP)
    there = (down < rows) & (across < columns)
    tl.store(out_ptr + down * columns + across, sums.to(out_ptr.dtype.element_ty), mask=there)


# %% [markdown]
# `down[:, None]` is a column of numbers and `channel[None, :]` is a row. Their sum is a block of addresses with two dimensions, by broadcasting as in [phase 01](01_tensors.ipynb#cell-id=broadcasting-a-view-with-stride-0). The block of b has its channels from top to bottom, so y is transposed by its addresses alone.
#
# **Predict.** x has 40 rows, y has 24, and a tile is 16 × 16. The kernel `one_number` would load each number of x 24 times, and each number of y 40 times. And this kernel?

# %%
x, y = torch.randn(40, 32), torch.randn(24, 32)
grid = (triton.cdiv(40, 16) * triton.cdiv(24, 16),)
print(loads(alike, grid, x, y, 40, 24, CHANNELS=32, BLOCK=16, STEP=16))

# %% [markdown]
# It loads each number of x twice, and each number of y three times. That is the number of tiles side by side, and one below the other. Masked lanes load nothing, so the ragged edge costs no bytes. But it costs arithmetic: `tl.dot` multiplies the zeros, too.
#
# Look at the masks again. There is one for the rows and one for the columns, and none for the channels. **Predict.** x and y now have 40 channels, which are no multiple of 16. What goes wrong, and does anybody notice? (Both tensors are cut from one larger storage, so there are numbers behind their ends.)

# %%
storage = torch.randn(2, 4096)
x, y = storage[0, :1600].view(40, 40), storage[1, :960].view(24, 40)
out = torch.empty(40, 24)
launch(alike, grid, x, y, out, 40, 24, CHANNELS=40, BLOCK=16, STEP=16)
print(f"off by {(out - x @ y.T).abs().max():.1f}, finite: {out.isfinite().all()}")

# %% [markdown]
# Each row's last piece runs eight numbers into the next row, and the last row's piece runs past the end of the tensor. All of these are real numbers, so there is no error, and every sum is wrong.
#
# So the two kinds of masks have different duties. A mask for rows or columns protects memory: a wrong row gives wrong sums only in places that are never stored. A mask for the summed dimension protects the *values*: what lies beyond the end of a row becomes a part of every sum, so it must be 0. Your kernel in the lab takes any M, N and K, so it needs both.

# %% tags=["hide-input"]
choice(
    "Somebody avoids masks on rows with `down % rows`: lanes beyond the last row load the first rows again. Is the product right?",
    {
        "No: these rows appear twice in the sums": "A row is not part of another row's sum. Only the channels are summed.",
        "Yes, and it loads as many bytes as with a mask": "The product is right. But the extra lanes load real numbers, so bytes are moved for results that nobody stores.",
        "Yes, but it loads more": "Triton's own tutorial does this. The lanes beyond the edge get sums that are never stored. But their loads are real, while a masked load moves nothing.",
    },
    answer="Yes, but it loads more",
)

# %% [markdown]
# The last step is to read what the compiler makes of it. **Predict.** A program has 4 warps, which are 128 threads, and a thread can have 255 registers. Do the sums of a 128 × 128 tile fit? And what else needs registers?

# %%
TYPES = {"x_ptr": "*bf16", "y_ptr": "*bf16", "out_ptr": "*bf16", "rows": "i32", "columns": "i32"}
ALIGNED = ["x_ptr", "y_ptr", "out_ptr"]
for block, warps in ((32, 4), (64, 4), (128, 4), (128, 8)):
    shape = {"CHANNELS": 512, "BLOCK": block, "STEP": 64}
    code = compile_kernel(alike, TYPES, shape, num_warps=warps, divisible=ALIGNED)
    how = ", ".join(sorted(set(MULTIPLIES.findall(code.ptx))))
    print(f"{block:3} × {block:<3} {warps} warps: {code.registers:3} registers, stack "
          f"{code.stack:3} bytes, shared {code.shared / 1024:3.0f} KiB\n  {how}")

# %% [markdown] tags=["printed 96"]
# 16,384 sums for 128 threads are 128 registers for each thread, half of what a thread can have. Addresses, masks and the inputs need registers as well, and there is not room for all of them. So the compiler puts some values on the *stack*, which is memory. This is called a *spill*. With 8 warps each thread has half as many sums, and nothing spills.
#
# Look at the instructions, too. A small tile uses `mma.sync`, in which the 32 threads of one warp multiply. From 64 rows on it is `wgmma`, the H100's own: four warps multiply together, and they read their blocks from shared memory. The last column is the room for the stages. Three are the compiler's default, and two blocks of 128 × 64 in bfloat16 have 32 KiB, which is 96 KiB together. (With `mma.sync` it keeps only two stages.) So you wrote a plain loop, and the compiler made a pipeline of it: it fetches a later piece of K with `cp.async` while it multiplies an earlier one.
#
# Which line of the table is the fastest? The spill makes the third one unlikely. More can't be read, only measured on a GPU: `triton.autotune` times each choice, and keeps the best. Is there a record of it?

# %%
try:
    for case in record.result("tiles")["cases"]:
        print(case)
except records.NoRecord:
    print(f"There is no record of these kernels on an {record.gpu}.")

# %% [markdown]
# So this lesson says how many bytes a kernel moves, and nothing about its speed. (If you have the course's repository and a GPU, `python -m benchmarks.gpu --only tiles` times such kernels against PyTorch's, and makes a record.)

# %% [markdown]
# ## An epilogue, fused
#
# When a tile's sums are finished, they are in registers, in float32. Whatever the next operator would do to each number, the kernel can do now, before the only store. That is an *epilogue*. It is written with Triton's functions of single numbers, such as `tl.exp` and `tl.erf`. A separate operator would read the whole result again, and write it again.
#
# Our table of similarities needs one. The sums favour words with long vectors. For the *cosine* each sum is divided by the lengths of its two vectors.

# %%
@triton.jit
def cosines(x_ptr, y_ptr, x_length_ptr, y_length_ptr, out_ptr, rows, columns,
            CHANNELS: tl.constexpr, BLOCK: tl.constexpr, STEP: tl.constexpr):
    wide = tl.cdiv(columns, BLOCK)
    row, column = tl.program_id(0) // wide, tl.program_id(0) % wide
    sums, down, across = tile_of(x_ptr, y_ptr, rows, columns, row, column, CHANNELS, BLOCK, STEP)
    x_length = tl.load(x_length_ptr + down, mask=down < rows, other=1.0)
    y_length = tl.load(y_length_ptr + across, mask=across < columns, other=1.0)
    cosine = (sums / (x_length * y_length)).to(out_ptr.dtype.element_ty)
    there = (down < rows) & (across < columns)
    tl.store(out_ptr + down * columns + across, cosine, mask=there)


# %%
lengths = words.norm(dim=1)
table = torch.empty(600, 600)
launch(cosines, (100,), words, words, lengths, lengths, table, 600, 600, 64, 64, 32)
print("as PyTorch:", torch.allclose(table, F.normalize(words) @ F.normalize(words).T, atol=1e-6))
tokenizer = load_tokenizer()
for word in ("hablar", "ella", "<past>"):
    near = table[tokenizer.encode([word])[0]].topk(4).indices[1:]
    print(f"{word:8} is most like", tokenizer.decode(near.tolist()))

# %% [markdown]
# A separate division would read all 360,000 sums and write them again. The epilogue saves one write and one read of the whole table, and adds two loads of 600 lengths. (Why is `other` 1.0 for the lengths? With 0, the places beyond the edge would be 0 / 0, a NaN. It would not be stored, but a debugger that looks for NaN would find it.)
#
# In half precision something else changes: the *rounding*. Two operators round twice. The first one stores its sums in bfloat16, and the second one reads the rounded sums. A fused kernel rounds once. So the two results can't be equal, and a test needs a tolerance. How large must it be? Let $u$ be half a step, relative to the number: 2⁻⁸ for bfloat16. Let $z$ be the exact sum, and $f$ the epilogue.
#
# - Fused, one rounding: the error is at most $u\,|f(z)|$.
# - In two steps, the sum becomes $z(1+\delta)$ with $|\delta| \le u$. Then $f$ passes this on: the error grows by $|f'(z)|\,|z|\,u$. The second rounding adds $u\,|f(z)|$.
#
# For a division $f(z) = z / c$, and both terms are equal: at most $2u$, relative to the result. With a GELU it is different, because $f(z)$ can be small where $f'(z)z$ is not. **Predict.** By which factor does a GELU multiply a relative error of its input, at z = 3 and at z = −3?

# %%
points = torch.tensor([3.0, 1.0, -0.5, -1.0, -2.0, -3.0], requires_grad=True)
with torch.enable_grad():
    f = F.gelu(points)
    (slope,) = torch.autograd.grad(f.sum(), points)
for z, y, s in zip(points.tolist(), f.tolist(), slope.tolist()):
    print(f"z = {z:4}: gelu {y:8.4f}, slope {s:7.4f}, factor {abs(z * s / y):5.2f}")

# %% [markdown]
# For positive numbers the factor is near 1. At −3 it is nearly 9: the GELU is almost 0 there, and its slope is not. So a tolerance that is only relative would be wrong.
#
# The bound is a sum of two terms: $u\,(|f'(z)\,z| + |f(z)|)$ for two steps, and $u\,|f(z)|$ for one. (Terms with $u^2$ are left out, because they are far smaller.) Is it true? Here is a layer in bfloat16. We compare both ways with float64, and divide each error by its bound.

# %%
x, weight = torch.randn(512, 256).bfloat16(), (torch.randn(300, 256) / 16).bfloat16()
bias, u = torch.randn(300).bfloat16(), torch.finfo(torch.bfloat16).eps / 2
z = (x.double() @ weight.double().T + bias.double()).requires_grad_()
with torch.enable_grad():
    f = F.gelu(z)
    (slope,) = torch.autograd.grad(f.sum(), z)
once = F.gelu(x.float() @ weight.float().T + bias.float()).bfloat16()
twice = F.gelu(F.linear(x, weight, bias))
bounds = {"fused": u * f.abs(), "two steps": u * ((slope * z).abs() + f.abs())}
for (name, bound), got in zip(bounds.items(), (once, twice)):
    error = (got.double() - f).abs()
    share = (error / (bound + 1e-6)).max()
    print(f"{name:9} largest error {error.max():.4f}, at most {share:.2f} of its bound")
apart = (once.double() - twice.double()).abs() / (sum(bounds.values()) + 1e-6)
print(f"fused against two steps: {apart.max():.2f} of the sum of both bounds")

# %% [markdown]
# Both stay within their bounds, and come near to them. (The small 10⁻⁶ is for the float32 sums themselves.) The fused kernel moves fewer bytes, and its bound is smaller, too.

# %% tags=["hide-input"]
choice(
    "Which of these can't be an epilogue of a tiled product, without any further communication between programs?",
    {
        "adding a bias for each column": "A tile has its columns, and loads their biases.",
        "a softmax over each row of the result": "A row is spread over many programs. Each has only its tile's part of the row, so the maximum and the sum are known to nobody. The next sections are about this.",
        "multiplying with another matrix of the same shape, number by number": "A tile loads the other matrix's tile, and multiplies.",
    },
    answer="a softmax over each row of the result",
)

# %% [markdown]
# ## Which program comes next
#
# *This section is optional: the lab doesn't ask for it.* An H100 has 132 multiprocessors. GPUs usually start programs in the order of their numbers, although nothing promises it. So 132 neighbours load at the same time, and the L2 cache keeps what one of them loads for the others. Our kernel numbers its tiles row by row. Is that a good order? A helper chooses another one: it takes GROUP rows of tiles, and goes through them column by column.

# %%
@triton.jit
def place_of(program, high, wide, GROUP):
    first = program // (GROUP * wide) * GROUP  # the group's first row of tiles
    rows = min(high - first, GROUP)  # the last group may have fewer
    inside = program % (GROUP * wide)
    return first + inside % rows, inside // rows


# %% [markdown]
# The function without its decorator is plain Python, so the view can call the very function that a kernel would call. The result has 9 × 9 tiles, and 9 programs run at the same time. **Predict.** Row by row, the first nine programs need 1 strip of a and 9 of b. How many strips do they need in groups of three rows?

# %%
tile_order(place_of.fn, 9, 9, group=3, at_once=9)

# %% [markdown]
# They need 3 + 3, in place of 1 + 9. A *wave* of programs is a tile made of tiles. It loads its height plus its width, and for the same area a square has the shortest border.
#
# Now take 132 programs, and tiles of 128 in a product of 8,192. A row of tiles has 64 programs. Row by row, the first 132 programs take two rows and four more tiles. This is what they load:

# %%
for group in (1, 4, 8, 12, 16, 64):
    tiles = [place_of.fn(program, 64, 64, group) for program in range(132)]
    strips = len({row for row, _ in tiles}) + len({column for _, column in tiles})
    print(f"groups of {group:2}: {strips:3} strips of {128 * 8192 * 2 / 2**20:.0f} MiB")

# %% [markdown] tags=["printed 67", "printed 23"]
# The number falls from 67 to 23, and only the order has changed. How much time that saves, only a GPU can say: the interpreter has no cache.

# %% [markdown]
# ## A softmax in one pass
#
# Attention is two products with a softmax between them. A softmax over a row can't be an epilogue, because a tile has only a part of the row. [Phase 05](05_custom_op.ipynb#cell-id=the-finished-softmax-read) had the idea that helps here. A program goes through the row tile by tile, and keeps two numbers: `m`, the largest score so far, and `l`, the sum of exp(score − m) so far. If a later tile has a larger score, the old sum was made with a maximum that is now wrong. It is repaired by one factor, the *correction* exp(m_old − m_new).
#
# Here is a row of your own: the scores that a head of MiniGPT gives to the words of a sentence. Change the subject, the verb or the tense if you like.

# %%
_, looks = generate("yo", verb="hablar", tense="past", return_attention=True)
tokens = torch.tensor([tokenizer.encode(looks.words)])
shares = attention_maps(load_minigpt(), tokens)[0, 0, 3, -1]  # layer 1, head 4, the last word
row = shares.log()  # the scores, up to a constant
print("".join(f"{word:>10}" for word in looks.words))
print("".join(f"{score:10.2f}" for score in row.tolist()))

# %% [markdown]
# **Predict.** The tiles have two scores. Which of the five tiles raise the maximum? And what happens to `l` if nobody corrects it? (There is a switch for that.)

# %%
online_softmax(row, 2, step=3)

# %% [markdown]
# The first tile sets the maximum, the second and the third raise it, and then it stays. The last value of `l` is the sum that two passes would give. Without the correction it is too large: the old terms were measured from a lower maximum, so they count too much. Then every share is too small, and a row of shares sums to less than 1. If the largest score is in the first tile, the mistake doesn't show at all. So test a row that rises.
#
# The pieces of a row don't have to come one after the other. Any two finished pieces can be joined. Each has its own `m` and `l`. The larger `m` wins, and each `l` is corrected to it. **Predict.** We join three pieces in two ways: the first two and then the third, or the last two and then the first. Is the result the same? And what becomes of a piece in which all scores are −inf, because a mask hides them all?

# %%
def piece(scores):
    m = scores.max()
    return m, (scores - m).exp().sum()


def join(one, other):
    m = torch.maximum(one[0], other[0])
    return m, one[1] * (one[0] - m).exp() + other[1] * (other[0] - m).exp()


first, second, third = map(piece, (5 * torch.randn(30)).split(10))
print("left first: ", join(join(first, second), third))
print("right first:", join(first, join(second, third)))
print("nothing but -inf:", piece(torch.full((10,), -math.inf)))

# %% [markdown]
# The joins agree. But a piece of nothing but −inf is NaN, because −inf − (−inf) is NaN, and one NaN spoils the row for ever.
#
# In attention a mask can hide a whole piece: a padded sentence begins with words that nobody may see, so a row's first tile can be empty. What must the answer be? Nothing was seen, so `m` stays −inf and `l` stays 0, and the first real tile begins from there. A kernel therefore subtracts 0 in place of a maximum of −inf: exp(−inf − 0) is 0, as it should be.
#
# At the end, `m` and `l` become one number, the *log-sum-exp*: lse = m + log(l). It is the logarithm of the sum of all exponentials, and with it any share can be computed alone: exp(score − lse). Written without a maximum, log(Σ exp(score)), it overflows like any softmax:

# %%
high = torch.tensor([100.0, 99.0, 80.0])
m, l = piece(high)
print("direct:", high.exp().sum().log(), "  with m:", m + l.log(), "  torch:", high.logsumexp(0))
print("shares:", (high - (m + l.log())).exp(), high.softmax(0))

# %% tags=["hide-input"]
number(
    "After some tiles m = 2 and l = 3. The next tile has the scores 4 and 4. What is l afterwards?",
    2.406,
    tolerance=0.005,
    why="The maximum rises to 4. The old sum becomes 3 · exp(2 − 4) = 0.406, and each new score adds exp(0) = 1.",
    wrong={5: "The old sum was measured from 2. It must be multiplied by exp(2 − 4).", 24.17: "The correction is exp(m_old − m_new), which is below 1, and not exp(m_new − m_old)."},
)

# %% [markdown]
# ## Attention without the matrix
#
# The result of attention is not the softmax, but a mean of values, weighted by the softmax. So there is a third thing to carry along, the weighted sum of the values so far (`acc` in the lab). It was made with the same wrong maximum as `l`, and needs the same correction. At the end it is divided by `l`.
#
# As with the sums, we first join finished pieces. Each piece is attention over *some* of the keys, with its own result and its own lse. The pieces' shares of the whole row are again a softmax, this time over their lse.

# %%
def part(q, k, v):
    """Attention over these keys alone: the result (T, D), and the lse of each query (T,)."""
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    lse = scores.logsumexp(-1)
    return (scores - lse[:, None]).exp() @ v, lse


def joined(parts):
    """Attention over all keys, from attention over some of them."""
    results, lses = map(torch.stack, zip(*parts))
    return (lses.softmax(0)[..., None] * results).sum(0)


# %% [markdown]
# Now the keys of our 4,096 words are cut into four pieces:

# %%
with Large(limit=q.nbytes) as large:
    result = joined(part(q, *pair) for pair in zip(k.chunk(4), v.chunk(4)))
print(f"off by {(result - attend(q, k, v)).abs().max():.0e}")
print("largest:", max(size for _, size in large.found) / 2**20, "MiB in place of 64")

# %% [markdown]
# It is the same, and the largest tensor has a quarter of the table. (Serving systems use this form, *Flash-Decoding*, for one new word and a long cache.)
#
# **FlashAttention** goes one step further. It cuts the queries as well, so a program has one tile of queries. The program walks over the tiles of k and v, and keeps `m`, `l` and `acc` in registers. A tile of scores is made, used and forgotten, and no tensor has T × T numbers. The scale 1/√D is applied to the scores at once, before the maximum. In the lab you write this loop twice, in PyTorch and in Triton.
#
# And the mask? If no word may see a later word, a tile of the table is in one of three places: all of its keys are in the past, or all are in the future, or the diagonal goes through it. **Predict.** There are 4,096 words, and tiles of 512 queries by 512 keys. How many of the 64 tiles must be computed, and how many of these need a mask?

# %%
causal_tiles(4096, block_q=512, block_k=512)

# %% [markdown]
# Tiles in the future are never loaded. This is a second reason for FlashAttention's speed in [phase 08](08_transformer.ipynb#cell-id=attention-in-fifty-lines): nearly half of the work isn't done. Make the tiles smaller, and the wasted part of the diagonal shrinks. Give them unequal sides, and look at which tiles need the mask then. If a loop ends one tile too early, it loses words that a query may see, and the query's own word is one of them.
#
# In a tile on the diagonal the mask comes *before* the maximum. **Predict.** Somebody takes the maximum first, and masks then. The hidden score is large. Mathematically any m would do. What happens?

# %%
scores = torch.tensor([1.0, 2.0, 300.0])  # the last one is in the future
hidden = torch.tensor([False, False, True])
for name, m in (("before", scores[~hidden].max()), ("after", scores.max())):
    weights = (scores - m).exp().masked_fill(hidden, 0)
    print(f"mask {name:6} the maximum:", weights / weights.sum())

# %% [markdown]
# All exponentials underflow to 0, and 0 / 0 is NaN. With smaller scores the result would be right, so this mistake waits for a confident model.
#
# How many bytes does FlashAttention save? Take one head of 4,096 words and 64 channels in float32, and tiles of 128 queries. The three tables of `attend` are written and read. FlashAttention reads q once and writes the result once. It reads k and v once for each tile of queries.

# %%
T, D, BLOCK = 4096, 64, 128
table, vector = 4 * T * T, 4 * T * D
with_table = 6 * table + 4 * vector  # scores, scaled, shares: each is written and read
in_tiles = 2 * vector + T // BLOCK * 2 * vector
print(f"with the table: {with_table / 1e6:6.1f} MB;  in tiles: {in_tiles / 1e6:5.1f} MB, at most")

# %% [markdown]
# ## Back through the tiles
#
# Autograd saves what the backward needs. For attention with a table, this includes the shares. **Predict.** How many MiB does it keep of `attend`, for one head of 1,024 words? (q, k and v have 0.25 MiB each, and a table has 4 MiB.)

# %%
def kept(function, *tensors):
    """The bytes that autograd saves while `function` runs; each storage counts once."""
    saved = {}

    def note(tensor):
        saved[tensor.untyped_storage().data_ptr()] = tensor  # keeps it alive, and its address
        return tensor

    with torch.enable_grad(), torch.autograd.graph.saved_tensors_hooks(note, lambda one: one):
        function(*tensors)
    return sum(tensor.untyped_storage().nbytes() for tensor in saved.values())


leaves = [torch.randn(1024, 64).requires_grad_() for _ in "qkv"]
print(f"attend: {kept(attend, *leaves) / 2**20:.2f} MiB")
heads = [one.detach()[None, None].requires_grad_() for one in leaves]  # (1, 1, T, D)
print(f"PyTorch's own: {kept(F.scaled_dot_product_attention, *heads) / 2**20:.3f} MiB")

# %% [markdown]
# `attend` keeps the table of shares. PyTorch's own operator keeps q, k, v, the result and one number for each query: the lse. From q, k and lse each share can be computed again, p = exp(s − lse), in one step, without a maximum and without a correction. This is *recomputation*, as in [phase 02](02_autograd.ipynb#cell-id=kept-or-computed-again): a product is done twice, so that a table is not kept.
#
# Recomputation pays if the table is large: T² numbers, against T · D of q. With 4,096 words and 64 channels a table is 64 times as large as q. With 64 words it is as large as q, and nothing is saved.
#
# With $g$, the gradient of the result, the rules are those of two products and a softmax:
#
# $$dv = p^\top g,\qquad dp = g\,v^\top,\qquad ds = \frac{p\,(dp - \delta)}{\sqrt D},\qquad dq = ds\,k,\qquad dk = ds^\top q.$$
#
# (Here $ds$ is the gradient of $qk^\top$, before the scale.)
#
# The softmax's backward needs $\delta$, for each row the sum of $p \cdot dp$. It goes over the whole row, so again a tile doesn't have it. **Predict.** There is a way to know δ before any tile is computed, from the result and its gradient alone. Which? (Write out the sum over the keys, and put the sum over the channels outside.)

# %%
torch.manual_seed(1)
q_, k_, v_, g = torch.randn(4, 48, 16, dtype=torch.float64)
result, lse = part(q_, k_, v_)
p = (q_ @ k_.mT / 4 - lse[:, None]).exp()
dp = g @ v_.mT
print("over the keys:    ", (p * dp).sum(-1)[:4])
print("over the channels:", (g * result).sum(-1)[:4])

# %% [markdown]
# δ is the sum of g · result over the *channels*: $\sum_j p_{ij} \sum_d g_{id} v_{jd} = \sum_d g_{id} \sum_j p_{ij} v_{jd}$, and the inner sum is the result. So before the tiles begin, each query has two numbers, lse and δ. With them, every tile of p and ds can be made alone.
#
# Are the rules right? Here they are on the whole table, against autograd.

# %%
delta = (g * result).sum(-1)
ds = p * (dp - delta[:, None]) / 4  # √16
mine = (ds @ k_, ds.T @ q_, p.T @ g)
copies = [one.clone().requires_grad_() for one in (q_, k_, v_)]
with torch.enable_grad():
    theirs = torch.autograd.grad(attend(*copies), copies, g)
for name, one, other in zip("qkv", mine, theirs):
    print(f"d{name} off by {(one - other).abs().max():.0e}")

# %% [markdown]
# In tiles, dv and dk are sums over the queries, and dq is a sum over the keys. So the backward goes over pairs of tiles, one of queries and one of keys. For each pair it adds to some rows of dq, dk and dv. You write this in the lab.

# %% tags=["hide-input"]
number(
    "Attention's forward has two products of T × T × D. The backward has four: dv, dp, dq and dk. If the shares are computed again, how many products does the backward have for each product of the forward?",
    2.5,
    tolerance=0.01,
    why="The scores are needed again, which is a fifth product. 5 / 2 = 2.5. In exchange, no table is kept, and its bytes were the bound.",
    wrong={2: "That is without recomputation: the scores are a product, too.", 3: "Only the scores are computed again. The result, p times v, is saved."},
)

# %% [markdown]
# ## FlashAttention as a kernel
#
# A kernel for attention has two `tl.dot` in one loop, and the result of the first one never leaves the chip. Here is this skeleton *without* the softmax: it computes (q kᵀ) v, for one head whose length is a multiple of BLOCK.

# %%
@triton.jit
def two_products(q_ptr, k_ptr, v_ptr, out_ptr, T, D: tl.constexpr, BLOCK: tl.constexpr):
    channel = tl.arange(0, D)
    mine = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    q = tl.load(q_ptr + mine[:, None] * D + channel[None, :])
    mixed = tl.zeros((BLOCK, D), tl.float32)
    for first in range(0, T, BLOCK):
        theirs = first + tl.arange(0, BLOCK)
        k = tl.load(k_ptr + theirs[None, :] * D + channel[:, None])
        v = tl.load(v_ptr + theirs[:, None] * D + channel[None, :])
        between = tl.dot(q, k)  # a tile of the table
        mixed = tl.dot(between.to(v.dtype), v, mixed)
    tl.store(out_ptr + mine[:, None] * D + channel[None, :], mixed)


# %% [markdown]
# Here are its loads and stores, for 64 words and tiles of 16:

# %%
a, b, c = torch.randn(3, 64, 16).unbind()
out = torch.empty(64, 16)
found = accesses(two_products, (4,), a, b, c, out, 64, D=16, BLOCK=16)
moved = Counter((one.kind, one.tensor) for one in found for _ in one.touched)
for (kind, name), times in moved.items():
    print(f"{kind:5} {name:8}{times:6,}, {times / 1024:g} times each")
print("right:", torch.allclose(out, (a @ b.T) @ c, rtol=1e-4, atol=1e-3))

# %% [markdown]
# The table of 64 × 64 was never stored. To make FlashAttention of this, you add to the loop what you know from the last sections: the scale, the mask, the new maximum, the exponentials, and the correction of both sums. If the mask is causal, the loop ends early. The program's number says which head of which sentence it belongs to, and the ends of a ragged T are masked. With all that it has about 25 lines, and you write them in the lab.
#
# A real FlashAttention does more. In the third version, for the H100, some warps only load tiles. The others work in two groups: while one group computes exponentials, the other one multiplies. Its authors report three quarters of the chip's peak in float16. Nothing of this changes the arithmetic that you write in the lab.
#
# How fast are your kernels? There is no record of them yet. But the record of phase 08 shows what is possible: causal attention with the table, and PyTorch's FlashAttention.

# %%
print("q, k and v:", record.result("attention")["shape"])
for case in record.result("attention")["cases"]:
    if case["length"] in (1024, 4096, 16384):
        print(f"{case['length']:6,} words, {case['way']:6} {case['seconds'] * 1e3:7.2f} ms, "
              f"{case['bytes'] / 1e6:9,.1f} MB besides q, k and v")

# %% [markdown]
# ## What one uses
#
# *This section is optional: the lab doesn't ask for it.* You will rarely write this kernel at work. `scaled_dot_product_attention` chooses one of several, its *backends*. Here are two of them on a CPU, and the operators that we hear:

# %%
class Results(TorchDispatchMode):
    """Prints each operator whose result is no view, with the shapes of its results."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        some = out if isinstance(out, tuple) else (out,)
        if not shares_bytes(func):
            print(" ", func.overloadpacket.__name__, *(tuple(one.shape) for one in some))
        return out


heads = torch.randn(3, 1, 4, 96, 16)
for backend in (SDPBackend.FLASH_ATTENTION, SDPBackend.MATH):
    print(backend.name)
    with sdpa_kernel(backend), Results():
        F.scaled_dot_product_attention(*heads, is_causal=True)

# %% [markdown]
# The first is one operator, in tiles, and returns the result and the lse, (1, 4, 96). The second, `MATH`, makes tables of 96 × 96. `MATH` is the fallback for everything that no fused kernel accepts. So a small change of a model can bring the table back, and no message says so. With `sdpa_kernel` you get an error instead, because it allows only the backends that you name. Here is a mask that needs a gradient, such as a learnt bias.

# %%
bias, flash = torch.zeros(96, 96, requires_grad=True), SDPBackend.FLASH_ATTENTION
for backends in ([flash, SDPBackend.MATH], [flash]):
    with warnings.catch_warnings(record=True), sdpa_kernel(backends), torch.enable_grad():
        try:
            with Large(limit=heads[0].nbytes) as large:
                F.scaled_dot_product_attention(*heads, attn_mask=bias)
            print("tables:", *(name for name, _ in large.found))
        except RuntimeError as error:
            print(f"{[one.name for one in backends]}:", error)

# %% [markdown]
# The first call is allowed to fall back, and makes its tables without a word. The second call is refused.
#
# And if your mask is not causal? **FlexAttention** takes a mask as a Python function of indices, `mask_mod(batch, head, query, key)`. With `torch.compile` it generates a fused kernel with this mask in it. From the mask it also finds out which tiles are whole, cut or empty. Here is a causal window of 64 words. **Predict.** How many of the 6 × 6 tiles of 64 are skipped?

# %%
from torch.nn.attention.flex_attention import create_block_mask, flex_attention


def window(batch, head, query, key):
    return (query >= key) & (query - key < 64)


long = torch.randn(3, 1, 4, 384, 16)
mask = create_block_mask(window, 1, 1, 384, 384, device="cpu", BLOCK_SIZE=64)
print(mask)
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    flexed = flex_attention(*long, block_mask=mask)
place = torch.arange(384)
dense = window(0, 0, place[:, None], place[None, :])
expected = F.scaled_dot_product_attention(*long, attn_mask=dense)
print(f"off by {(flexed - expected).abs().max():.0e}")
for one in said:
    print(textwrap.fill(str(one.message).splitlines()[0], 96))

# %% [markdown]
# 25 of 36 tiles are skipped, and the result is right. But read the warning: without `torch.compile`, FlexAttention makes the full table, and only masks it. It is meant for trying, as here. The saving begins with the compiler.

# %% tags=["hide-input"]
choice(
    "Which of these changes of attention can `mask_mod` NOT express?",
    {
        "each sentence of a packed batch sees only itself": "The function can look up the sentence's number of query and key in a tensor.",
        "a bias that is added to each score": "A mask says only yes or no. For a change of the score there is the other argument, `score_mod`.",
        "every second head sees only the last 64 words": "The function gets the head's index.",
    },
    answer="a bias that is added to each score",
)

# %% [markdown]
# ## MiniGPT, with your attention
#
# At the end of lab 08 MiniGPT spoke with your attention. Lab 11 replaces what is inside. In exercise 8 your Triton kernel does it. Here it is your `flash` of exercise 6, in PyTorch and in tiles of eight words. The view below takes the layers that you wrote in your saved labs, compares each with PyTorch's, and puts them into the trained model. Until you have done the lab, the box *in tiles* has no colour.

# %%
my_minigpt(subject="Ana y yo", verb="vivir", tense="imperfect")

# %% [markdown]
# MiniGPT's 32 words need no tiles. But the view uses a part only if the logits are those of PyTorch's parts, up to rounding. So if the box has a colour, these words were computed by your `flash`.

# %% [markdown]
# ## What you can now do
#
# [The lab](../release/11_tiles/11_tiles.ipynb) of this phase asks you to do it:
#
# - compute the FLOPs and the bytes of a product in tiles, with ragged edges, and the tile that fits a given shared memory;
# - write a product in tiles of PyTorch;
# - write it as a Triton kernel, for any sizes and strides, with masks and a float32 accumulator, and prove its loads by counting;
# - fuse a bias and a GELU into it, and say how far the result may be from two steps;
# - do one step of an online softmax, with its correction, and with rows that see nothing;
# - write FlashAttention in tiles, with the log-sum-exp, and skip the tiles of the future;
# - go back through the tiles, without a table;
# - write the forward as one Triton kernel, and let MiniGPT speak with it.
#
# And you can answer the question. A tile of the result loads a strip of each input and uses each number as often as the tile is wide. What comes after a product is done before its only store. And a softmax needs no whole row at once, because a wrong maximum can be corrected by one factor.

# %% [markdown]
# ## What this phase leaves out
#
# - **Tensor descriptors and warp specialization in Triton**: an H100 has a unit that copies whole tiles by itself (*TMA*). A kernel uses it with `tl.make_tensor_descriptor`.
# - **Split-K and persistent kernels**: two other ways to give work to multiprocessors. The first is for a small result with a long K. The second is for a last wave that is not full.
# - **Products of eight bits and less**: the scales of blocks are one more thing in the loop. [Phase 08](08_transformer.ipynb#cell-id=eight-bits-four-bits) has the arithmetic.
# - **Dropout, biases and unequal lengths inside attention**: each is a few lines in the loop's body.
# - **Attention over many GPUs** (*ring attention*): the tiles of k and v travel around a ring of ranks ([phase 10](10_distributed.ipynb#cell-id=the-ring)). The results are joined by their lse, as in this lesson.

# %% [markdown]
# ## Sources
#
# - T. Dao, D. Y. Fu, S. Ermon, A. Rudra, C. Ré, "[FlashAttention: Fast and Memory-Efficient Exact Attention with IO-Awareness](https://arxiv.org/abs/2205.14135)", NeurIPS 2022.
# - T. Dao, "[FlashAttention-2: Faster Attention with Better Parallelism and Work Partitioning](https://arxiv.org/abs/2307.08691)", 2023. J. Shah et al., "[FlashAttention-3: Fast and Accurate Attention with Asynchrony and Low-precision](https://arxiv.org/abs/2407.08608)", 2024.
# - M. N. Rabe, C. Staats, "[Self-attention Does Not Need O(n²) Memory](https://arxiv.org/abs/2112.05682)", 2021. M. Milakov, N. Gimelshein, "[Online normalizer calculation for softmax](https://arxiv.org/abs/1805.02867)", 2018.
# - J. Dong et al., "[Flex Attention: A Programming Model for Generating Optimized Attention Kernels](https://arxiv.org/abs/2412.05496)", 2024. H. Liu, M. Zaharia, P. Abbeel, "[Ring Attention with Blockwise Transformers for Near-Infinite Context](https://arxiv.org/abs/2310.01889)", 2023.
# - P. Tillet, H. T. Kung, D. Cox, "[Triton](https://doi.org/10.1145/3315508.3329973)", MAPL 2019; Triton's tutorials "[Matrix Multiplication](https://triton-lang.org/main/getting-started/tutorials/03-matrix-multiplication.html)" and "[Fused Attention](https://triton-lang.org/main/getting-started/tutorials/06-fused-attention.html)" (read them after the lab).
# - PyTorch's documentation: [`torch.nn.attention`](https://docs.pytorch.org/docs/stable/nn.attention.html), [`flex_attention`](https://docs.pytorch.org/docs/stable/nn.attention.flex_attention.html), [`scaled_dot_product_attention`](https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html).
# - NVIDIA, "[Parallel Thread Execution ISA](https://docs.nvidia.com/cuda/parallel-thread-execution/index.html)" (`mma`, `wgmma`, `cp.async`), and [the H100's data sheet](https://resources.nvidia.com/en-us-gpu-resources/h100-datasheet-24306). N. J. Higham, "Accuracy and Stability of Numerical Algorithms", SIAM 2002: what roundings may add up to.
