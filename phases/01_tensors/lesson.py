# ---
# jupyter:
#   kernelspec: {display_name: Python 3, language: python, name: python3}
#   open_the_hood: {title: "Tensors: storage and view"}
# ---

# %% [markdown]
# # Tensors: storage and view
#
# If you take any model apart, you find tensors, all the way down. This lesson takes the tensor apart.
#
# It takes about two hours, predictions and drills included. The section "When view works and when reshape copies" is a good place for a break. If a paragraph begins with **Predict**, choose an answer before you look below it, on paper if you can. In most of these cells, the obvious answer is wrong. Run the cells as you go, and change them. The pictures show *your* tensors, and get sliders when you run them. Nothing here is graded, but the lab uses everything here.

# %%
import torch
import torch.nn.functional as F
from torch import nn

from hood.learner.contents import PHASES
from utils.instruments import records
from utils.notebook.drills import choice, number, true_false
from utils.views import (
    broadcast_aligner,
    course_path,
    dtype_range,
    dtype_ruler,
    memory_bars,
    roofline,
    share_map,
    stride_explorer,
)

# %% [markdown]
# ## Where we are

# %%
course_path(PHASES, here=1)

# %% [markdown]
# Two sentences carry the whole course. *A tensor is a storage, which is bytes, and a view of it.* *A module is a registry of parameters and a forward written as code.* This phase explains the first sentence, slowly. Every later phase needs it: a gradient is a tensor, a parameter is a tensor, and a GPU kernel receives only an address and a few integers.
#
# One layer stays with us from here to the last phase: the *LM head* of a small language model, `nn.Linear(64, 600)`. It takes a vector of 64 numbers and gives 600 scores, one for each word of the vocabulary. It is so small that we can look at every byte of it, and today we will do that.

# %% [markdown]
# ## Resumen en español
#
# Un tensor no es una tabla de números: es un almacén de bytes (*storage*) y una manera de leerlo (*view*: forma, pasos, desplazamiento, tipo, dispositivo).
# Dos tensores distintos pueden leer los mismos bytes sin que Python lo note; por eso `transpose` no copia nada, y por eso unos pesos guardados «para luego» pueden cambiar solos.
# De esa idea salen `view` y `reshape`, el *broadcasting* (una vista con paso 0) y el error silencioso de las formas (64, 1) y (64,).
# También verás qué se pierde en fp16, bf16 y fp8, qué viaja a la GPU y cuándo, y cuántas operaciones y cuántos bytes cuesta `nn.Linear(64, 600)`.

# %% [markdown]
# ## The question
#
# You are training an LM head, and you are careful. After each step you measure the loss on data that the head has not seen. Sooner or later the head will overfit and that loss will rise again. So you keep the best weights so far, and put them back when training ends.

# %%
torch.manual_seed(0)
truth = nn.Linear(64, 600)                       # what there is to learn
x, x_unseen = torch.randn(2, 512, 64)
y, y_unseen = truth(x).argmax(1), truth(x_unseen).argmax(1)

head = nn.Linear(64, 600)                        # what learns it
optimizer = torch.optim.SGD(head.parameters(), lr=10.0)   # in a hurry, to overfit soon
best_loss = float("inf")

# %% [markdown]
# **Predict.** The cell prints three losses on unseen data: the best one, the last one, and the one after `load_state_dict(best)`. Which of the three is the smallest? (The unit of such a loss is the *nat*. Guessing among 600 words gives log 600, about 6.4 nats.)

# %%
for step in range(40):
    optimizer.zero_grad()
    F.cross_entropy(head(x), y).backward()
    optimizer.step()
    loss = F.cross_entropy(head(x_unseen), y_unseen).item()
    if loss < best_loss:
        best_loss, best_step, best = loss, step, head.state_dict()   # keep the best

print(f"best     {best_loss:.3f} nats, after step {best_step}")
print(f"last     {loss:.3f} nats, after step {step}")
head.load_state_dict(best)                                           # put it back
print(f"restored {F.cross_entropy(head(x_unseen), y_unseen).item():.3f} nats")

# %% [markdown]
# The restored weights are the last ones. The best weights are gone, without an error or a warning, although a line says `load_state_dict(best)`. If you had not measured once more, you would now publish the overfitted model and call it the best.
#
# So is `best` only another name for the live weights? Ask Python.

# %%
print("same dict:  ", best is head.state_dict())
print("same tensor:", best["weight"] is head.weight)
print("same values:", torch.equal(best["weight"], head.weight))

# %% [markdown]
# There are two dicts and two tensor objects, but their values can never differ. Python's `is` doesn't show the connection, and a comparison of values only shows that they are equal at this moment. The connection is below the level that Python can see. So here is the question of this phase:
#
# > **When I have a tensor, whose bytes do I have, and how does the tensor find them?**

# %% [markdown]
# ## A tensor is a storage and a view
#
# A *storage* is a run of bytes: an address and a length. It has no shape and no dtype. It doesn't know whether it holds weights or holiday photographs.
#
# A *tensor* is a small record that says how to read a storage:
#
# | field | what it says |
# |---|---|
# | `shape` | how many values each index may take |
# | `stride()` | how many elements to skip in memory when an index grows by one |
# | `storage_offset()` | at which element of the storage the reading starts |
# | `dtype` | how many bytes make one element, and what they mean |
# | `device` | in which memory the address lies |
# | `requires_grad` | whether autograd is watching ([phase 02](02_autograd.ipynb#cell-id=pytorchs-own-graph)) |
#
# That record is the *view*. Here is a fresh LM head. `W` is its weight, detached from autograd.
#
# **Predict.** The transpose of `W` has 600 × 64 numbers in another order. How many bytes does PyTorch allocate for it?

# %%
torch.manual_seed(0)
head = nn.Linear(64, 600)
W = head.weight.detach()
for name, t in {"W": W, "W.t()": W.t(), "W[7]": W[7]}.items():
    storage = t.untyped_storage()
    print(f"{name:6} shape {tuple(t.shape)!s:9}  strides {t.stride()!s:8}  "
          f"offset {t.storage_offset():3}  "
          f"storage: {storage.nbytes():,} bytes at {storage.data_ptr():#x}")

# %% [markdown] tags=["printed 153600", "printed 448"]
# It allocates no bytes: the 153,600 bytes in the second line are the same as in the first line, at the same address. There is one storage with three records. `W.t()` swaps two pairs of integers, and `W[7]` starts reading at element 448. They don't touch the numbers of the weight, so they are just as fast for a much larger weight.
#
# So storage and view have different sizes. The storage's size is printed above. The view *reaches* `numel()` elements of `element_size()` bytes each.

# %% tags=["hide-input"]
number(
    "How many bytes does the view `W[7]` reach?", 256, unit="bytes",
    why="It reaches 64 elements of 4 bytes. Its storage is 600 times larger, because it is the whole storage of `W`.",
    wrong={64: "That is the number of elements; each float32 takes 4 bytes.",
           153600: "That is the size of its storage. The view reaches only one row of it."},
)

# %% [markdown]
# Here is the storage without a view, and one way of reading it.

# %%
import struct

raw = bytes(W.untyped_storage()[:8])
print(raw.hex(" "), "  the first 8 bytes of the storage")
print(struct.unpack("<2f", raw), "  read as two little-endian float32")
print(tuple(W[0, :2].tolist()), "  W[0, :2]")

# %% [markdown]
# The difference between storage and view is not only a detail inside PyTorch. You can see it on your disk.
#
# **Predict.** `W[7]` reaches 256 bytes. How large is the file that `torch.save` makes of it?

# %%
import io


def saved_size(t):
    file = io.BytesIO()
    torch.save(t, file)
    return len(file.getvalue())


print(f"torch.save(W[7])         {saved_size(W[7]):>8,} bytes")
print(f"torch.save(W[7].clone()) {saved_size(W[7].clone()):>8,} bytes")

# %% [markdown]
# `torch.save` writes *storages*, so tensors that shared bytes before still share them after loading. If you save all 600 rows, each to its own file, you save the matrix 600 times. A `clone()` has its own storage of 256 bytes. (The rest of the second file describes the tensor.)
#
# There is one more consequence. It is one step to *allocate* a storage, and a second step to *write* it. `torch.zeros` takes both steps. `torch.empty` takes only the first, and gives you the bytes that the last tenant left.

# %%
def sevens():
    tenant = torch.full((20_000,), 7.0)
    del tenant
    return (torch.empty(20_000) == 7.0).sum().item()


most = max(sevens() for _ in range(20))
print(f"{most:,} of 20,000 elements are sevens that nobody wrote, in the best of 20 tries")

# %% [markdown]
# You see a dead tensor's bytes through a new view. How many sevens are left depends on the allocator: in a single try it may be all of them, or none. So use `torch.empty` only for memory that you will fill.

# %% [markdown]
# ## Strides: how far is one step
#
# Memory has one dimension. A matrix has two, so somebody must decide the order of its numbers in memory. PyTorch's default is *row-major*: the last index changes fastest, so neighbours in a row are neighbours in memory. Give the explorer a tensor and choose an index.

# %%
t = torch.arange(12.0).reshape(3, 4)
stride_explorer(t, index=(1, 2))

# %% [markdown]
# The strides are (4, 1): one step down skips 4 elements, one step right skips 1. Now keep the memory and change only the two integers.
#
# **Predict.** In `t`, the 6 is in row 1, column 2. Where is it in `t.t()`: in the grid, and in memory?

# %%
stride_explorer(t.t(), index=(2, 1))

# %% [markdown]
# In the grid, the 6 is now on the other side of the diagonal. In memory it has not moved. A transpose moves nothing: it only changes what *one step* means.
#
# **Predict.** What are the shape and the strides of `t[:, ::2]`, every second column?

# %%
stride_explorer(t[:, ::2], index=(1, 1))

# %% [markdown]
# The view has half the elements, the same storage, and a longer step. Slicing with a step does nothing else.
#
# For a fresh tensor the strides follow from the shape, read from the right. The last stride is 1, because neighbours in a row are neighbours in memory. Each stride before it is *the size times the stride of the dimension on its right*: one step in a dimension must jump over everything inside it. A tensor of shape (2, 3, 4) has strides (12, 4, 1), because a row has 4 elements and a matrix has 3 × 4. (What should happen if a size is 0? The lab asks you.)

# %% tags=["hide-input"]
number(
    "A fresh float32 tensor has shape (5, 6, 7). What is the stride of dimension 0?", 42,
    unit="elements", why="One step must jump over a 6 × 7 matrix.",
    wrong={35: "That is 5 × 7. A stride jumps over the dimensions inside, and dimension 0 is not inside itself.",
           30: "That is 5 × 6, read from the left. Strides are built from the right.",
           210: "That is the whole tensor. It would be the stride of one more dimension on the left.",
           168: "That is the step in bytes. PyTorch counts strides in elements, NumPy in bytes."},
)

# %% [markdown]
# ## The address of one element
#
# Here is the rule that makes a tensor work. The distance of element `[i, j, …]` is
#
# $$\text{offset} + i \cdot \text{stride}_0 + j \cdot \text{stride}_1 + \cdots$$
#
# elements from the start of the storage. Multiply this number by the element size, and you have the distance in bytes. A negative *index* is turned into a positive one first (−1 means size − 1). A negative *stride* does not exist in PyTorch.
#
# Take an awkward view: from every second row of `W` from 100 to 199, take columns 8 to 15.
#
# **Predict.** What are its strides and its offset? Then: which element of `W`'s storage is `v[-1, 3]`?

# %%
v = W[100:200:2, 8:16]
print("shape", tuple(v.shape), " strides", v.stride(), " offset", v.storage_offset())
stride_explorer(v, index=(49, 3))

# %% [markdown] tags=["printed 6408"]
# The offset is 100 · 64 + 8 = 6,408. A step down now skips two rows, which is 128 elements. Index −1 means row 49. So `v[-1, 3]` is element 6,408 + 49 · 128 + 3 · 1 = 12,683. If this sum is really everything, we don't need PyTorch: we take the address of the storage, add 4 bytes for each element, and read the float at that address.

# %%
import ctypes

address = W.untyped_storage().data_ptr() + 4 * 12_683
print(f"{ctypes.c_float.from_address(address).value:.9f}  the float32 at {address:#x}")
print(f"{v[-1, 3].item():.9f}  v[-1, 3]")

# %% [markdown]
# That is indexing, with the hood open. (Be careful with `from_address`: it believes any number that you give it, and a wrong address ends the kernel.)
#
# There are two addresses. `untyped_storage().data_ptr()` is the address where the *storage* begins. `v.data_ptr()` is the address of the *view's* first element.

# %% tags=["hide-input"]
number(
    "How far is `v.data_ptr()` from `v.untyped_storage().data_ptr()`?", 25632, unit="bytes",
    why="The distance is the offset, 6,408 elements, times 4 bytes.",
    wrong={6408: "That is the offset in elements; addresses count bytes.",
           0: "That is right only if the offset is 0. This view starts in row 100, column 8.",
           50732: "That is the distance to `v[-1, 3]`. The view's pointer is at `v[0, 0]`."},
)

# %% [markdown]
# ## Who shares bytes with whom
#
# **Predict.** For each line of the next cell: does the tensor read `W`'s bytes, or does it have its own bytes? Mark the lines that you are sure about.

# %%
share_map(
    W=W,
    t=W.t(),
    slice=W[10:20],
    list=W[[10, 3, 500]],
    reshape=W.reshape(-1),
    t_reshape=W.t().reshape(-1),
    contiguous=W.contiguous(),
    t_contiguous=W.t().contiguous(),
    float=W.float(),
    double=W.double(),
)

# %% [markdown]
# Three families:
#
# - **Always a view**: `t`, `transpose`, `permute`, `view`, `narrow`, `expand`, `detach`, indexing with integers and slices. Their result needs only a new shape, new strides and a new offset, so they write nothing else.
# - **Always a copy**: `clone`, and indexing with a list or a mask. There is no constant step between rows 10, 3 and 500, so no stride can reach them.
# - **A copy only if needed**: `contiguous`, `reshape`, `to`, `float`, `cpu`. If the tensor already is what you ask for, you get it back, with the same bytes. `W.contiguous()` is free. `W.t().contiguous()` allocates 153,600 bytes and moves every number. Call `is_contiguous()` to know beforehand: it says whether the elements, read in the order of their indices, are neighbours in memory. It looks only at shape and strides: for `W.t()` it says False, although no byte has moved. It ignores dimensions of size 1, because there is no step along them.
#
# Bugs live in the third family. It copies on Monday and shares on Tuesday, depending on strides that no line of your code mentions.
#
# How do you test whether two tensors share bytes? Three tests come to mind, and all three are wrong.

# %%
import warnings

with warnings.catch_warnings(action="ignore"):  # TypedStorage is deprecated and says so
    print("same tensor object:   ", W[10:20] is W)
    print("same storage object:  ", W.storage() is W.storage())
    print("same data_ptr():      ", W[10:20].data_ptr() == W.data_ptr())
print("same storage address: ",
      W[10:20].untyped_storage().data_ptr() == W.untyped_storage().data_ptr())

# %% [markdown]
# Every view is a new Python object. `storage()` makes a new wrapper at each call, so even `W` and `W` seem to have different storages. `data_ptr()` includes the offset. Only the last line compares the addresses of the storages. (Even then, two tensors may share a storage but no element: `W[:300]` and `W[300:]` have no number in common.)
#
# Python itself has one more trap, and it is a good one.

# %% tags=["hide-input"]
true_false(
    "Indexing with a list copies, so `W[[7]] *= 2` leaves `W` as it was.", False,
    "Python runs `W[[7]] *= 2` in three steps. It reads `W[[7]]` (a copy), it doubles the copy, and then "
    "it **assigns** the result to `W[[7]]`, which writes into `W`. If you write two lines, `row = W[[7]]` "
    "and then `row *= 2`, nothing is assigned back. (Try both on `torch.ones(3, 3)`.)",
)

# %% [markdown]
# What happened to the lost weights? `state_dict()` makes a new dict with new tensors, and every new tensor is made by `detach()`: it is a view.

# %%
state = head.state_dict()
kept = {name: t.clone() for name, t in state.items()}
share_map(live=head.weight, best=state["weight"], best_copy=state.copy()["weight"],
          kept=kept["weight"])

# %% [markdown]
# Every step after the best one wrote into `head.weight`'s bytes, so it also wrote into `best`. At the end, `load_state_dict(best)` copied those bytes onto themselves, which changed nothing. `state_dict().copy()` looks like the fix, and many repositories use it. But it copies only the dict: the tensors in it are the same. You need a `clone()` of each tensor, or `copy.deepcopy` of the whole dict.

# %% [markdown]
# ## Making a view by hand: as_strided
#
# Every function of the first family does a little arithmetic on the record and doesn't touch the bytes. `torch.as_strided` lets you write the record yourself: shape, strides, offset. Nothing else in PyTorch is so short and so powerful, so let us use it for something that no slice can do.
#
# A language model with a context of 32 trains on windows of 32 tokens: tokens 0–31, then 1–32, then 2–33. Each window shares 31 tokens with the window before it.
#
# **Predict.** Which strides make row *i* of a matrix start at token *i*?

# %%
tokens = torch.arange(1000)
windows = torch.as_strided(tokens, size=(969, 32), stride=(1, 1))
print(windows[0, :4], windows[1, :4], windows[968, -4:])
print(f"reached: {windows.numel() * 8:,} bytes, stored: {tokens.numel() * 8:,} bytes")
stride_explorer(torch.arange(10).as_strided((7, 4), (1, 1)), index=(2, 3))

# %% [markdown] tags=["printed 248064", "printed 8000"]
# The strides are (1, 1): a step down and a step right are the same step. The windows look like 248,064 bytes, but cost only 8,000. `Tensor.unfold` is the official function for this. In the explorer, the highlighted number appears along a whole diagonal of the grid, but only once in memory.
#
# Such power is dangerous, so make the mistakes here first.
#
# **Predict.** The last three lines of the next cell have three surprises. Which of them raise an error?

# %%
def attempt(action):
    """Print what `action()` returns, or what PyTorch says when it refuses."""
    try:
        print(action())
    except Exception as error:
        print(f"{type(error).__name__}: {error}")


row = W[7]
attempt(lambda: torch.equal(row.as_strided((64,), (1,), 0), W[0]))
attempt(lambda: torch.arange(12.0).as_strided((3, 5), (4, 1)))
attempt(lambda: torch.arange(10.0).as_strided((7, 4), (1, 1)).add_(1)[:, 0])

# %% [markdown]
# - The first is `True`. `as_strided` counts its offset from the start of the *storage*, not from the start of the tensor, so we called it on row 7 but read row 0. (Without an offset, the view starts where the tensor starts.)
# - The second raises an error. The last element of this view would be 2 · 4 + 4 · 1 = 12, but the storage has only elements 0 to 11. PyTorch checks only two things: the view must end within the storage, and no number may be negative.
# - The third raises no error and is the worst of the three. We added 1 to a view in which up to four indices reach the same number. So 1 was added to it up to four times, in no guaranteed order. Most in-place operations refuse a stride of 0, which is easy to find. They don't look for other overlaps.
#
# You may read from overlapping views as much as you like. Before you write, `clone()`.

# %% tags=["hide-input"]
choice(
    "`t` is `torch.arange(12.0)`. What is `t.as_strided((3, 4), (1, 3))`?",
    {
        "The numbers in rows: 0 1 2 3, then 4 5 6 7": "That has strides (4, 1): here one step right skips 3 elements, not 1.",
        "The numbers in columns: 0 3 6 9, then 1 4 7 10": "One step right skips 3 and one step down skips 1, so the numbers run down the columns. Fortran stores a matrix in this way, and `t.view(4, 3).t()` gives the same.",
        "An error: the strides must fall from left to right": "There is no such rule. Every transpose would break it.",
    },
    answer="The numbers in columns: 0 3 6 9, then 1 4 7 10",
)

# %% [markdown]
# ## When view works and when reshape copies
#
# `view(new_shape)` promises the same bytes in the same reading order with another shape. Sometimes no strides can keep that promise. Take the left half of `W`. It has rows of 32 elements, and after each row comes a gap of 32, which belongs to the right half.
#
# **Predict.** Which of these six shapes can `half.view` give?

# %%
half = W[:, :32]
print("half: shape", tuple(half.shape), " strides", half.stride())
for shape in [(600, 4, 8), (20, 30, 32), (1200, 16), (300, 64), (19_200,), (1, 600, 32, 1)]:
    try:
        print(f"view{shape!s:16} strides {half.view(shape).stride()}")
    except RuntimeError:
        print(f"view{shape!s:16} no view")

# %% [markdown]
# Here is the rule. You will need it exactly:
#
# **Cut the old dimensions into chunks.** In a chunk, you can walk from the first element to the last with equal steps. Go from right to left. The last dimension starts a chunk, and its stride is the chunk's *step*. The next dimension joins the chunk if its stride equals *the stride times the size of the neighbour on its right*. Then one step in this dimension leads exactly to the place where the neighbour's walk would continue. If the stride is different, the dimension starts a new chunk. (You may ignore dimensions of size 1: nobody ever takes a step there, so their strides mean nothing.)
#
# **Put the new sizes into the chunks**, again from right to left. Each chunk must be filled exactly: the product of its sizes must be its number of elements. If a size doesn't fit, there is no view. The first size in a chunk gets the chunk's step as its stride. Each later size gets *that step times the product of the sizes that are already in the chunk*. (New sizes of 1 fit anywhere and change no product.)
#
# Now take `half`, with shape (600, 32) and strides (64, 1). The 32 starts a chunk with step 1. To join it, the 600 would need the stride 1 · 32. Its stride is 64, so the 600 starts a new chunk with step 64. We have two chunks, 600 | 32.
#
# - (600, 4, 8): 8 goes into the right chunk, with stride 1. 4 fills this chunk, with stride 8. 600 fills the left chunk, with stride 64.
# - (20, 30, 32): 32 fills the right chunk. 30 and 20 share the left chunk, with strides 64 and 30 · 64 = 1,920.
# - (1200, 16): 16 goes into the right chunk, and then 1200 would have to be partly in each chunk. This shape looks so reasonable: it cuts every half row in two. But from piece to piece the step would be 16, 48, 16, 48 …
# - (300, 64) and (19200,): the last size is already too large for the right chunk.
# - (1, 600, 32, 1): the sizes of 1 cost nothing. (The rule gives the strides that are printed for them. Nobody will use these strides.)
#
# **And size 0**: without elements there is no order to keep. So any empty shape is a view, with the strides of a fresh tensor. (If the new shape is the old shape, the view keeps the old strides.)
#
# Now you can understand PyTorch's error message. Attention splits 64 features into 4 heads of 16, and puts the heads in front:

# %%
q = torch.randn(2, 32, 64)                     # batch, time, features
heads = q.view(2, 32, 4, 16).transpose(1, 2)   # batch, head, time, features of a head
print("heads: shape", tuple(heads.shape), " strides", heads.stride())
attempt(lambda: heads.view(2, 4, 512).shape)

# %% [markdown]
# "Spans across two contiguous subspaces" means that a new size would have to be in two chunks. (Here there are four chunks, one for each dimension. Check one pair: the time's size times its stride is 32 · 64 = 2,048, but the head's stride is 16.) If you transpose heads and time *back*, there is one chunk again. Attention merges its heads in this way.
#
# `reshape` gives a view if there is one, and otherwise a copy. It doesn't say which.
#
# **Predict.** `write` puts 99 into the first element, through a `reshape`. Is the 99 in the caller's tensor?

# %%
def write(t):
    t.reshape(-1)[0] = 99.0
    return t[0, 0].item()


print("on a fresh tensor:  ", write(torch.zeros(3, 4)))
print("on a transposed one:", write(torch.zeros(3, 4).t()))

# %% [markdown]
# The function and the values were the same. Only the strides were different, and they decided the result. When you want to write, use `view`: it works, or it raises an error.

# %% tags=["hide-input"]
choice(
    "`a` has shape (4, 6) and strides (6, 1). Which of these needs a copy?",
    {
        "`a.reshape(2, 2, 6)`": "There is one chunk of 24 with step 1, so any shape of 24 elements is a view.",
        "`a[:, :3].reshape(12)`": "There are two chunks, 4 | 3, because 6 is not 1 · 3. The size 12 would need both.",
        "`a[:2].reshape(12)`": "The stride 6 still equals 1 · 6, so whole rows still form one chunk.",
        "`a.t().reshape(3, 2, 4)`": "With shape (6, 4) and strides (1, 6) there are two chunks, 6 | 4. The 4 fills the right chunk, and 2 and 3 share the left chunk.",
    },
    answer="`a[:, :3].reshape(12)`",
)

# %% [markdown]
# ## dtypes: how a number becomes bytes
#
# The fourth field of the record says what the bytes mean. A floating-point number has a sign, an exponent and a fraction, $\pm 1.\text{fraction} \times 2^{\text{exponent}}$. The exponent's bits buy **range**, the fraction's bits buy **precision**, and there are never enough bits for both. Try a few numbers.

# %%
dtype_ruler(0.1)

# %% [markdown]
# No dtype can store exactly 0.1. Each one stores its nearest number, and some are nearer than others. `bfloat16` is `float32` without the last 16 bits: it has the whole range, but only about two decimal digits. `float16` has more digits and less range.

# %%
dtype_range()

# %% [markdown]
# **Predict.** Which of these results are the same as on paper?

# %%
print("fp16   70,000         ", torch.tensor(70_000.0).to(torch.float16).item())
print("bf16   256 + 1        ", (torch.tensor(256.0, dtype=torch.bfloat16) + 1).item())
print("fp16   2048 + 1       ", (torch.tensor(2048.0, dtype=torch.float16) + 1).item())
print("fp32   16,777,216 + 1 ", (torch.tensor(16_777_216.0) + 1).item())
print("fp16   gradient 1e-8  ", torch.tensor(1e-8).to(torch.float16).item())
print("bf16   gradient 1e-8  ", torch.tensor(1e-8).to(torch.bfloat16).item())
print("e4m3   1,000          ", torch.tensor(1000.0).to(torch.float8_e4m3fn).item())
attempt(lambda: torch.ones(2).to(torch.float8_e4m3fn) + 1)

# %% [markdown]
# Only one of them, the bf16 gradient, and only nearly. The largest number of `float16` is 65,504, and above it comes infinity. `bfloat16` has 8 significant bits, so between 256 and 512 it has only even numbers: if you count by ones, you stay at 256 for ever (`float16` stays at 2,048, `float32` at 16,777,216). A gradient of 1e-8 becomes 0 in `float16`. So training in fp16 multiplies the loss by a large number first (`torch.amp.GradScaler`). bf16 keeps this gradient to within half a percent, and needs no such help. The largest number of the 8-bit `e4m3` is 448, and larger numbers become 448.
#
# fp8 is a format for *storing* numbers and for multiplying matrices. Element by element, torch supports it only in part: `a + b` is refused, but `a * a`, `a == b` and even `a @ b` run, and round each result back to fp8. The product made for fp8 is `F.scaled_mm`. Both of its inputs are fp8, each has a scale so that it doesn't overflow, the sums are float32, and the result is bfloat16. An H100 has units for exactly this. By its data sheet, these units are twice as fast with fp8 as with 16 bits.
#
# How much accuracy does the LM head lose? We take the same weights and inputs in three dtypes, and compare with float64:

# %%
x = torch.randn(1024, 64)                      # 32 sequences of 32 tokens
exact = x.double() @ W.double().t()
for dtype in (torch.float32, torch.float16, torch.bfloat16):
    logits = x.to(dtype) @ W.to(dtype).t()
    error = (logits.double() - exact).abs().max().item()
    print(f"{str(dtype):15} {W.to(dtype).numel() * dtype.itemsize:>7,} bytes of weight, "
          f"largest error of a logit {error:.1e}")

# %% [markdown]
# Both 16-bit dtypes halve the bytes. fp16 is about eight times as exact as bf16, because it has three more bits of fraction.
#
# `.to(dtype)` computes new numbers in new bytes. `.view(dtype)` keeps the bytes and changes the field `dtype`, so it is a view like all others. You know three things: a storage has no dtype, bf16 is the upper half of fp32, and a stride can skip elements. Together they explain the next line.
#
# **Predict.** What is in `top`, and how many new bytes did it need?

# %%
top = W.view(torch.bfloat16)[:, 1::2]     # little-endian: the upper half comes second
print("shape", tuple(top.shape), " strides", top.stride(), " offset", top.storage_offset())
print("float32 ", W[0, :4].tolist())
print("bfloat16", top[0, :4].tolist())
print("shares: ", top.untyped_storage().data_ptr() == W.untyped_storage().data_ptr())

# %% [markdown]
# We have the whole weight in bfloat16, for nothing: the same storage, a stride of 2, an offset of 1. (`.to` rounds, but this view just cuts the lower bits off, so the last bit may differ. It is fun, but don't train with it.)

# %% tags=["hide-input"]
choice(
    "In which of these dtypes is 1e-8 not rounded to 0?",
    {
        "float16": "Its smallest positive number is about 6e-8 (a subnormal). 1e-8 is less than half of that, so it is rounded to 0.",
        "bfloat16": "It has float32's 8 bits of exponent and reaches down to about 1e-38 at full precision.",
        "float8_e4m3fn": "Its smallest positive number is 2^-9, about 0.002.",
    },
    answer="bfloat16",
)

# %% [markdown]
# ## Where the memory goes
#
# You can now count bytes, so let us count the bytes of a training step. Four things need memory: the parameters, their gradients, the optimizer's state, and the *activations*, which autograd keeps because backward will need them. The head's parameters take 156,000 bytes. The batch has 32 sequences of 32 tokens.
#
# **Predict.** Which of the four is the largest, and how many times as large as the parameters is it?

# %%
targets = torch.randint(600, (1024,))
optimizer = torch.optim.AdamW(head.parameters())
saved, storages = [], {}


def keep(t):
    saved.append(t)
    storages[t.untyped_storage().data_ptr()] = t.untyped_storage().nbytes()
    return t


with torch.autograd.graph.saved_tensors_hooks(keep, lambda t: t):
    loss = F.cross_entropy(head(x), targets)
loss.backward()
optimizer.step()

# %%
state = [t for entry in optimizer.state.values() for t in entry.values()]
memory_bars({
    "parameters": sum(p.nbytes for p in head.parameters()),
    "gradients": sum(p.grad.nbytes for p in head.parameters()),
    "optimizer state": sum(t.nbytes for t in state),
    "activations": sum(storages.values()),
})
print(f"saved for backward: {len(saved)} tensors, {len(storages)} storages")

# %% [markdown]
# The parameters are a small part. Their gradients need the same number of bytes. AdamW's two running averages need twice as many (and a 4-byte step counter for each tensor). Backward needs the input and the 1,024 × 600 log-probabilities, more than seventeen times the bytes of the parameters. Only this part grows with the batch. (`W` is a view of the head's weight, so it has just been trained, too.)
#
# Why are there five tensors but four storages? Cross-entropy is two operations, and both of them saved the log-probabilities. If we had added up the tensors, we would have counted 2,457,600 bytes that don't exist. To know where memory goes, you must know which tensors share it.

# %% tags=["hide-input"]
number(
    "A model of 7 billion parameters is trained with AdamW, everything in float32. How much memory does it need without any activations, in GB (10^9 bytes)?",
    112, unit="GB", why="There are parameters, gradients and two averages: 4 × 4 bytes × 7 × 10^9.",
    wrong={28: "That is only the parameters.", 56: "That is parameters and gradients. AdamW keeps two more numbers for each parameter.",
           84: "That counts one average, but AdamW keeps two: of the gradient and of its square."},
)

# %% [markdown]
# ## Broadcasting: a view with stride 0
#
# The head ends with `+ bias`: 600 numbers are added to each of 1,024 rows. Nobody copies the bias 1,024 times.
#
# Write two shapes one above the other, *aligned on the right*. They broadcast if, in each pair of sizes, both are equal, or one is 1, or one is missing. A 1 or a missing size is stretched to the other size.

# %%
bias = head.bias.detach()
broadcast_aligner(torch.empty(32, 32, 600), bias)

# %% [markdown]
# *Stretched* sounds like work. It isn't.
#
# **Predict.** What are the strides and the storage of the bias after it is stretched to 1,024 rows?

# %%
stretched = bias.expand(1024, 600)
print("shape", tuple(stretched.shape), " strides", stretched.stride())
print(
    f"reached: {stretched.nbytes:,} bytes, stored: {stretched.untyped_storage().nbytes():,} bytes"
)
attempt(lambda: stretched.add_(1))

# %% [markdown] tags=["printed 1024"]
# The new stride is 0: a step down goes nowhere, and finds the same row again. Broadcasting is `expand` on both operands, and `expand` is a view. The stride of 0 also explains the error: 1,024 indices reach one number, and `add_` can't know which of the 1,024 sums it should keep. (`fill_` writes the same number everywhere, so it accepts a stride of 0.)
#
# So by hand: each stretched dimension gets stride 0, and so does each added dimension. A dimension that keeps its size keeps its stride. There are two special cases:

# %%
print("added, but not stretched:", torch.empty(600).expand(1, 600).stride())
nothing = torch.empty(3, 1) + torch.empty(0)
print("1 meets 0:               ", tuple(nothing.shape), " mean", nothing.mean().item())
attempt(lambda: torch.empty(3) + torch.empty(4))

# %% [markdown]
# A new dimension of size 1 repeats nothing. So it gets a row-major stride and not 0: the size times the stride of its right neighbour. A 1 can be stretched to 0 just as well as to 7, so an empty batch passes without an error, and its mean loss is `nan`. Broadcasting refuses only one thing: two sizes that differ when neither is 1. Try your own shapes:

# %%
broadcast_aligner((8, 1, 6, 5), (7, 1, 5))

# %% tags=["hide-input"]
choice(
    "`c = W[:, :1]` has shape (600, 1) and strides (64, 1). Which strides does it get when it is added to a (600, 600) matrix?",
    {
        "(64, 0)": "Dimension 0 keeps its size, so it keeps its stride. Dimension 1 is stretched from 1 to 600.",
        "(0, 1)": "That would repeat one row. The stretched dimension is the one of size 1, on the right.",
        "(1, 0)": "The 64 stays: `c` is a view of `W`, and its next row is 64 elements further.",
        "(600, 1)": "A copy would have these strides. Broadcasting makes no copy.",
    },
    answer="(64, 0)",
)

# %% [markdown]
# ## The silent (64, 64) bug
#
# Broadcasting's convenience has a price. Here are sixty-four points on a noisy line *y* = 2*x* + 1, and the smallest model that there is. `nn.Linear(1, 1)` returns shape (64, 1). The targets have shape (64,), as they so often do.
#
# **Predict.** Training runs and the loss goes down. To which value does it go, and which line does the model find?

# %%
torch.manual_seed(0)
inputs = torch.linspace(-1, 1, 64).unsqueeze(1)                 # (64, 1)
goal = 2 * inputs.squeeze(1) + 1 + 0.1 * torch.randn(64)        # (64,)


def fit(loss_of):
    torch.manual_seed(1)
    line = nn.Linear(1, 1)
    optimizer = torch.optim.SGD(line.parameters(), lr=0.2)
    for step in range(200):
        loss = loss_of(line(inputs), goal)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step in (0, 5, 199):
            print(f"step {step:3}: loss {loss.item():.3f}")
    return line

# %%
wrong = fit(lambda pred, y: ((pred - y) ** 2).mean())
print(f"found y = {wrong.weight.item():.2f} x + {wrong.bias.item():.2f}")

# %% [markdown]
# The loss falls and settles, but the slope is zero. The model has learnt to ignore its input. What did the subtraction do?

# %%
broadcast_aligner(wrong(inputs), goal)

# %% [markdown]
# 64 numbers minus 64 numbers gave 4,096 numbers. Without the extra dimension, the model finds the line. The next cell also prints two facts about the targets. Look for both in the wrong fit above.

# %%
right = fit(lambda pred, y: ((pred.squeeze(1) - y) ** 2).mean())
print(f"found y = {right.weight.item():.2f} x + {right.bias.item():.2f}")
print(f"the targets alone: mean {goal.mean():.2f}, variance {goal.var(correction=0):.3f}")
with warnings.catch_warnings(record=True, action="always") as said:
    nn.MSELoss()(wrong(inputs), goal)
print("nn.MSELoss:", str(said[0].message)[:98], "...")

# %% [markdown]
# Why was there no error, from the subtraction to the last step? And why do these two numbers appear in the wrong fit? You know enough for an answer, and the lab asks you to write it in your own words.
#
# The fix is a habit. Write `assert pred.shape == y.shape` before a subtraction that should be elementwise. And write `squeeze(1)`, not just `squeeze()`, which also removes a batch dimension of size 1. PyTorch's own loss warns you, as you see. When you write the loss yourself, nobody warns you.

# %% [markdown]
# ## NumPy beside torch
#
# NumPy's array is the same idea, but older: a buffer, a shape, strides. So the two libraries can read the same bytes.
#
# **Predict.** For each of the three functions: what is in the array after the tensor is changed?

# %%
import numpy as np

for make in (torch.from_numpy, torch.as_tensor, torch.tensor):
    array = np.zeros(3)
    tensor = make(array)
    tensor[0] = 9
    print(f"{make.__name__:10}  array {array}  tensor {tensor.dtype}")

# %% [markdown]
# `from_numpy` always shares the bytes, `as_tensor` shares them if it can, and `torch.tensor` never does. (`t.numpy()` shares them, too.) Notice the dtype. NumPy's default float is float64 and PyTorch's is float32, so their first meeting usually ends like this:

# %%
attempt(lambda: head(torch.from_numpy(np.random.default_rng(0).standard_normal((2, 64)))))

# %% [markdown]
# You should know three more differences when you move code from one library to the other:

# %%
array = np.arange(12, dtype=np.float32).reshape(3, 4)
print(
    "strides:    NumPy", array.strides, "bytes; torch", torch.from_numpy(array).stride(), "elements"
)
attempt(lambda: torch.from_numpy(array[::-1]))
many = np.random.default_rng(0).standard_normal(38_400).astype(np.float32)
print(f"sum, float32: NumPy {many.sum():.6f}, torch {torch.from_numpy(many).sum():.6f}, "
      f"in float64 {many.sum(dtype=np.float64):.6f}")

# %% [markdown]
# NumPy counts strides in bytes and allows negative strides. PyTorch counts them in elements and does not allow negative ones. And the same float32 numbers may give different sums, because each library adds them in its own order and each addition rounds. Both sums are right. Compare across libraries with a tolerance, never with `==`.

# %% [markdown]
# ## Which dtype comes out
#
# When an elementwise operation gets two dtypes, its result has only one. The rule has two parts.
#
# **Rank**: a tensor with dimensions has a higher rank than a 0-dim tensor, and a 0-dim tensor has a higher rank than a plain Python number. Among operands of the same rank, the highest category wins. Within this category, the result is the smallest dtype that fits them all. `torch.promote_types` gives this dtype for any two dtypes.
#
# **Category**: bool < int < float < complex. An operand of lower rank counts only if its category is *higher* than the category of every operand of higher rank. Then the result has that category. Its dtype is the lower operand's dtype or, for a Python number, PyTorch's default (int64, float32, complex64). Otherwise the lower operand's dtype is ignored, even if it is wide. (A float tensor that becomes complex in this way keeps its width if such a complex dtype exists: float64 + 1j is complex128, and float16 + 1j is complex32. There is no such dtype for bfloat16, so it becomes complex64.)
#
# **Predict** the dtype in each line:

# %%
i8, f16, f32 = (torch.ones(2, dtype=d) for d in (torch.int8, torch.float16, torch.float32))
double0 = torch.tensor(1.0, dtype=torch.float64)      # 0-dim
print("int8 tensor    + 1.5                ", (i8 + 1.5).dtype)
print("float16 tensor + float64 0-dim      ", (f16 + double0).dtype)
print("int8 tensor    + float64 0-dim      ", (i8 + double0).dtype)
print("float16 tensor + float32 tensor     ", (f16 + f32).dtype)
print("float16 tensor + bfloat16 tensor    ", (f16 + f16.bfloat16()).dtype)
print("float64 tensor + 1j                 ", (f32.double() + 1j).dtype)
print("uint8 tensor   + int8 tensor        ", (i8.to(torch.uint8) + i8).dtype)
print("int8 tensor    / int8 tensor        ", (i8 / i8).dtype)
print("int64 tensor   + float16 tensor     ", (i8.long() + f16).dtype)
print("int64 + float16 in NumPy            ", np.result_type(np.int64, np.float16))

# %% [markdown]
# The second line keeps float16: the 0-dim operand is wider, but it has the same category, so it doesn't count. The third becomes float64, the dtype of the only float in it. float16 and bfloat16 fit only into float32, just as uint8 and int8 fit only into int16. True division of integers always gives a float. For the last sum, NumPy disagrees: it uses float64, which can store the integers better. PyTorch saves memory and stays at float16.
#
# The rule has limits. The result can overflow, an in-place operation can't change its tensor's dtype, and matrix products don't follow the rule:

# %%
print("int8: 100 + 100 =", torch.tensor([100], dtype=torch.int8) + 100)
attempt(lambda: torch.ones(2, dtype=torch.int64).add_(1.5))
attempt(lambda: W @ torch.ones(64, 1, dtype=torch.float64))

# %% tags=["hide-input"]
choice(
    "`mask` is a bool tensor of shape (4,). What is the dtype of `mask + 1`?",
    {
        "bool": "An int is in a higher category than a bool, so the result can't stay bool.",
        "int64": "The Python int has a higher category, so it decides. It has no dtype, so the result gets the default, int64.",
        "float32": "Nothing here is a float. True division, `mask / 1`, would give float32.",
    },
    answer="int64",
)

# %% [markdown]
# ## Devices: what moves, and when
#
# The fifth field of the record says which memory the address belongs to. A GPU has its own memory, and its kernels read only that, so bytes have to travel. They travel when you say so, and almost never otherwise.

# %% tags=["hide-input"]
number(
    "The model is already on the GPU, and `x` is on the CPU. How many copies between CPU and GPU does `y = model(x.cuda()); y.cpu()` make?",
    2, unit="copies", why="`x` goes to the GPU, and `y` comes back. The parameters moved earlier, once, with `model.cuda()`. Everything between input and output is made on the GPU and stays there.",
    wrong={3: "The parameters don't count here: they were copied once, when the model was moved.",
           1: "Both `x` and `y` are copied.",
           4: "The parameters, weight and bias, were copied earlier, with `model.cuda()`."},
)

# %% [markdown]
# Don't believe this: count. Without a GPU we rehearse on the device called `meta`. Its tensors have the whole record but no bytes, so every operation computes only shapes. The counter is between Python and the kernels, and writes down each copy from one device to another. (You need not read the class. [Phase 04](04_dispatcher.ipynb#cell-id=listening-in) explains how it gets between them.)

# %%
from torch.utils._python_dispatch import TorchDispatchMode


class Crossings(TorchDispatchMode):
    """Writes down every copy from one device to another."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func is torch.ops.aten._to_copy.default:
            here, there = args[0].device, torch.device(kwargs.get("device", args[0].device))
            if here != there:
                print(f"    {tuple(args[0].shape)} crosses: {here} to {there}")
            if here.type == "meta":  # no bytes to bring back: return empty ones
                return torch.empty_like(args[0], device=there)
        return func(*args, **kwargs)

# %%
away = torch.device("cuda" if torch.cuda.is_available() else "meta")
model, batch = nn.Linear(64, 600), torch.randn(32, 64)
with Crossings():
    print(f"model.to({away})")
    model.to(away)
    print("y = model(batch.to(away)); y.cpu()")
    y = model(batch.to(away))
    y.cpu()

# %% [markdown]
# There are two copies for the parameters, but only once. Then there are two copies for each batch, one in each direction. On a GPU the counts are the same. The rehearsal can't show *time*: a GPU works through its queue while Python runs ahead, and `.cpu()`, `.item()` and `print` make Python wait until the queue is empty. [Phase 09](09_profiling.ipynb#cell-id=two-clocks) measures that.
#
# If you forget the move, the operands are in two memories:

# %%
attempt(lambda: model(batch))

# %% [markdown]
# With a GPU, the message for the same mistake is `Expected all tensors to be on the same device, but …`, and it names both devices. PyTorch could have moved one tensor for you. It refuses, because a hidden copy in an inner loop would cost you more than an error. (There are two exceptions. A 0-dim CPU tensor may join an elementwise operation, because a single number can travel with the kernel's arguments. And in `w[indices]` and `w[indices] = v`, but only there, the indices may be on the CPU. `F.embedding`, `index_select`, `gather` and `cross_entropy` (for its targets) need them on the same device as the rest.)
#
# A habit avoids this mistake: never write `.cuda()` in the middle of your code. Choose `device` once at the top, move the model once, and move each batch when it is loaded. Create new tensors on the device where you will use them: `torch.arange(T, device=x.device)`, or `x.new_zeros(...)`. `.to()` belongs to the third family: if nothing needs to move, it returns the same tensor.

# %%
print("to('cpu') is the same tensor:           ", batch.to("cpu") is batch)
print("to('cpu', copy=True) is the same tensor:", batch.to("cpu", copy=True) is batch)

# %% [markdown]
# ## matmul, bmm, einsum, rearrange
#
# Nearly all the arithmetic of a network is one operation in several spellings. `@` multiplies matrices, and treats any dimensions before the last two as a *batch*, which broadcasts. `torch.bmm` is the strict form: it takes exactly three dimensions and doesn't broadcast. `einsum` names the indices instead.
#
# Read the letters of `einsum` as loops: each letter is an index, and einsum sums over a letter that is missing to the right of the arrow. **Predict** the shape of each result, and which familiar operation it is.

# %%
a, b = torch.randn(5, 6), torch.randn(6, 7)
s, t = torch.randn(2, 8, 16), torch.randn(2, 9, 16)     # batch, time, features
familiar = {
    "ij,jk->ik": ((a, b), a @ b),
    "ij->j": ((a,), a.sum(0)),
    "bsh,bth->bst": ((s, t), torch.bmm(s, t.transpose(1, 2))),
    "bd,vd->bv": ((x, W), F.linear(x, W)),
}
for pattern, (operands, wanted) in familiar.items():
    got = torch.einsum(pattern, *operands)
    agrees = torch.allclose(got, wanted, atol=1e-5)
    print(f"{pattern:13} {tuple(got.shape)!s:12} agrees: {agrees}")

# %% [markdown]
# The four are a matrix product, a sum over rows, attention's comparison, and the LM head. In `bsh,bth->bst` the feature `h` disappears: for each batch, every position `s` meets every position `t` in a dot product. That is the heart of attention.
#
# There is *no* transpose in the last pattern. `nn.Linear` keeps its weight as (out, in) and computes `x @ W.t()`, and the `t()` costs nothing, as you know. The matrix routine receives the strides and follows them.
#
# [`einops.rearrange`](https://einops.rocks/api/rearrange/) does for shapes what einsum does for products: it names the dimensions. Now comes a bug of the worst kind. You have `q` of shape (2, 32, 64), batch × time × features, and want 4 heads of 16: shape (2, 4, 32, 16). `view` gives you this shape without any complaint.
#
# **Predict.** Is `q.view(2, 4, 32, 16)` what you want? What is in head 0?

# %%
from einops import rearrange

q = torch.arange(32).view(1, 32, 1).expand(2, 32, 64).contiguous()  # each number is its time
split = rearrange(q, "b t (head d) -> b head t d", head=4)
print("times in head 0, rearrange:", split[0, 0, :12, 0].tolist(), "...")
print("times in head 0, view:     ", q.view(2, 4, 32, 16)[0, 0, :12, 0].tolist(), "...")

# %% [markdown]
# The shape is right and the numbers are wrong. `view` never reorders, so "head 0" has all features of the first eight time steps. The pattern of `rearrange` says what you mean, and `rearrange` refuses a size that can't be divided into the heads.
#
# Does `rearrange` give a view or a copy? It has no kernel: it calls `reshape` and `permute`, and you know the rules of both.

# %%
def shares(a, b):
    return a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()


merge = "b head t d -> b t (head d)"
print("split the heads:           shares", shares(split, q), " strides", split.stride())
print("merge them:                shares", shares(rearrange(split, merge), q))
print("merge a contiguous copy:   shares", shares(rearrange(split.contiguous(), merge), q))

# %% [markdown]
# Splitting gives a view: it cuts a chunk. Merging gives a view only while the numbers in memory are still in the order that the merge needs. When every head has written its own block, they are in another order. Then the line that merges the heads makes a copy, although it looks the same.

# %% [markdown]
# ## Counting FLOPs and bytes
#
# How much work is the LM head? For each of *B* tokens and each of *K* scores, it adds up *D* products. Each product takes a multiplication and an addition. So there are 2·*B*·*D*·*K* floating-point operations, **FLOPs**. The bias takes *B*·*K* more, which people usually leave out. PyTorch has a counter, so let us test the formula.
#
# **Predict.** How many times as many FLOPs does the backward take?

# %%
from torch.utils.flop_counter import FlopCounterMode

B, D, K = 1024, 64, 600
for needs_grad in (False, True):
    data = torch.randn(B, D, requires_grad=needs_grad)
    with FlopCounterMode(display=False) as forward:
        out = head(data)
    with FlopCounterMode(display=False) as backward:
        out.sum().backward()
    ratio = backward.get_total_flops() / forward.get_total_flops()
    print(f"2BDK = {2 * B * D * K:,} FLOP, counted {forward.get_total_flops():,}; "
          f"backward {ratio:.0f} × that, input needs grad: {needs_grad}")

# %% [markdown]
# One product of the same size gives the gradient of the weight. A second product gives the gradient of the input, and is computed only if an earlier layer needs it. So "backward costs twice the forward" is true for every layer except the first.
#
# You can count a whole transformer with the same formula, piece by piece: each linear layer takes 2·tokens·in·out. Attention has two products that are not linear layers: the scores and the weighted sum. In both, every position meets every position, so they grow with the *square* of the context. For the lab you need only this and a list of the layers.
#
# FLOPs are half the story. Bytes have to come from memory and go back: at least, each tensor that goes into the layer is read once, and the output is written once. FLOPs per byte is the **arithmetic intensity**. A machine has two limits: its FLOP per second and its bytes per second. The intensity alone decides which of them is the limit for a computation. Measure one core of this machine:

# %%
import time


def seconds(action):
    """The shortest of 20 runs: the others were disturbed."""
    times = []
    for _ in range(20):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return min(times)


threads = torch.get_num_threads()
torch.set_num_threads(1)                    # the other cores may be busy with something else
squares = [torch.randn(n, n) for n in (256, 512, 1024)]
peak_flops = max(2 * len(a) ** 3 / seconds(lambda a=a: a @ a) for a in squares)
source, target = torch.randn(2, 2**23)      # 32 MiB each, one read and one written
peak_bandwidth = 2 * source.nbytes / seconds(lambda: target.copy_(source))
print(f"{peak_flops / 1e9:.0f} GFLOP/s, {peak_bandwidth / 1e9:.0f} GB/s")

# %% [markdown]
# **Predict.** Run the same layer on one token, and on 1,024 tokens. Which of the two limits decides in each case?

# %%
def costs(layer, data):
    """FLOPs, and the least bytes to move, of `layer(data)`."""
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        out = layer(data)
    return counter.get_total_flops(), sum(t.nbytes for t in (data, *layer.parameters(), out))


points = {}
for batch in (1, 32, 1024):
    data = torch.randn(batch, D)
    with torch.no_grad():
        points[f"batch {batch:,}"] = (*costs(head, data), seconds(lambda data=data: head(data)))
torch.set_num_threads(threads)
roofline(points, peak_flops=peak_flops, peak_bandwidth=peak_bandwidth)

# %% [markdown]
# For one token, the machine reads the whole weight, 153,600 bytes, for 76,800 FLOPs: half a FLOP for each byte. All tokens of a larger batch share this one reading. So a GPU that generates text one token at a time mostly waits for memory. This is also why servers process many requests in one batch.
#
# (A point above the slanted roof is not a mistake: the head fits into the processor's cache, which is faster than the memory that we measured. The point of a single token is far below the roof, because it mostly measures the cost of a call.)
#
# Change the batch yourself, and watch how far to the right the point can go. The roof now belongs to a data-centre GPU, an H100 SXM in bfloat16, by its data sheet: 989 TFLOP/s (dense; "with sparsity" the sheet prints twice as much) and 3.35 TB/s. Here we only count and don't measure time, so the `meta` device is enough: it computes shapes but no numbers.

# %%
bf16 = {"device": "meta", "dtype": torch.bfloat16}
head_bf16 = nn.Linear(D, K, **bf16)
roofline(
    lambda batch: {"LM head, bf16": costs(head_bf16, torch.empty(batch, D, **bf16))},
    peak_flops=989e12, peak_bandwidth=3.35e12,
)

# %% tags=["hide-input"]
choice(
    "How large must the batch be until the LM head is limited by this GPU's arithmetic, and no longer by its memory?",
    {
        "about 300 tokens": "The ridge is at about 295 FLOP per byte, not at 295 tokens. For a square layer with thousands of features the two numbers are close. Here they are not.",
        "about 10,000 tokens": "Compute the intensity: it grows with the batch, but only towards a limit.",
        "No batch is large enough": "With more tokens, most bytes are input and output. Each token takes 2·64·600 FLOP and 2·(64 + 600) bytes, which is 58 FLOP per byte at best. The ridge is at 295. A layer with only 64 inputs writes too many bytes for its few FLOPs.",
    },
    answer="No batch is large enough",
)

# %% [markdown]
# How high is such a roof really? The course has a record from an H100: the times of products of two square matrices, and of copies. **Predict.** What share of the 989 TFLOP/s does bfloat16 reach? Does fp8 reach twice as many TFLOP/s? float64 has twice the bytes of float32: is it slower?

# %%
record = records.load("nvidia-h100-80gb-hbm3")
print(f"{record.gpu}, torch {record.provenance['torch']}, {record.provenance['date'][:10]}")
# dense
sheet = {
    "float64": 67,
    "float32": 67,
    "float32 as tf32": 495,
    "bfloat16": 989,
    "float8_e4m3fn": 1979,
}
for name, peak in sheet.items():
    reached = record.result("products")["FLOP/s"][name] / 1e12
    print(f"{name:16} {reached:7.1f} of {peak:5,} TFLOP/s, {reached / peak:4.0%}")
copied = record.result("softmax")["peak copy"]["bytes per second"] / 1e12
print(f"the fastest copy {copied:7.2f} of {3.35:5} TB/s,    {copied / 3.35:4.0%}")

# %% [markdown]
# A good product reaches three quarters of the data sheet's peak, and a good copy nine tenths: a peak is a bound that real code does not reach. fp8 comes to 1.6 times bfloat16. And float64 is *faster* than float32! This chip has special units that multiply matrices. They take 64, 16 and 8 bits, but not full float32, so float32 uses the ordinary units. `float32 as tf32` uses the matrix units and loses 13 bits of the fraction: it is seven times as fast. (You allow this with `torch.backends.cuda.matmul.fp32_precision = "tf32"`.)

# %% [markdown]
# ## What you can now do
#
# [The lab](../release/01_tensors/01_tensors.ipynb) of this phase asks you to do all of this:
#
# - distinguish the bytes of a view from the bytes of its storage;
# - compute the strides of any fresh tensor, and the position of any element of any view in bytes;
# - build transpose, narrow, expand and diagonal with `as_strided`, sharing every byte;
# - decide whether `view` exists, and with which strides, by PyTorch's own rule;
# - broadcast two shapes by hand, strides included;
# - fix a bug that broadcasting hides, and say why there was no error;
# - write attention scores as an einsum, and split heads with a pattern;
# - predict the dtype of any sum;
# - count the FLOPs of the LM head and of a whole small GPT, count the bytes of the head, and say which limit of a machine it reaches.
#
# And you can answer our first question. When I have a tensor, I have a small record. The bytes belong to the storage, and other tensors may use the same storage.

# %% [markdown]
# ## What this phase leaves out
#
# - **What `requires_grad` starts**: saved tensors, version counters, and in-place writes to a view when autograd is watching. [Phase 02](02_autograd.ipynb#cell-id=written-over-while-autograd-watches).
# - **Parameters and buffers**, and what `.to(device)` does to a whole module, tied weights included. [Phase 03](03_module.ipynb#cell-id=what-a-move-moves).
# - **How one line of Python finds a kernel**, and how `Crossings` could see every call. [Phase 04](04_dispatcher.ipynb#cell-id=listening-in).
# - **How a GPU reads memory**, and why neighbouring threads should read neighbouring bytes. [Phase 05](05_custom_op.ipynb#cell-id=the-same-kernel-as-ptx).
# - **Mixed precision in a training loop**, `autocast` and `GradScaler`. [Phase 07](07_training.ipynb#cell-id=sixteen-bits).
# - **Pinned memory, asynchronous copies, the caching allocator, a memory timeline.** [Phase 09](09_profiling.ipynb#cell-id=memory-over-time).
# - Sparse, quantized and nested tensors have other layouts. Read PyTorch's documentation for them.

# %% [markdown]
# ## Sources
#
# Papers and essays:
# - L. Antiga, E. Stevens, H. Huang, T. Viehmann, [*Deep Learning with PyTorch*](https://www.manning.com/books/deep-learning-with-pytorch-second-edition), second edition, Manning, 2026, chapter 3: explains storage, offset and strides more slowly.
# - Edward Z. Yang, "[PyTorch internals](https://blog.ezyang.com/2019/05/pytorch-internals/)" (blog.ezyang.com, 2019): the tensor, its storage and strides, drawn by one of PyTorch's developers.
# - S. van der Walt, S. C. Colbert, G. Varoquaux, "[The NumPy array: a structure for efficient numerical computation](https://arxiv.org/abs/1102.1523)", *Computing in Science & Engineering* 13(2), 2011.
# - D. Goldberg, "[What every computer scientist should know about floating-point arithmetic](https://doi.org/10.1145/103162.103163)", *ACM Computing Surveys* 23(1), 1991.
# - P. Micikevicius et al., "[Mixed precision training](https://arxiv.org/abs/1710.03740)", 2017 (arXiv:1710.03740); D. Kalamkar et al., "[A study of BFLOAT16 for deep learning training](https://arxiv.org/abs/1905.12322)", 2019 (arXiv:1905.12322); P. Micikevicius et al., "[FP8 formats for deep learning](https://arxiv.org/abs/2209.05433)", 2022 (arXiv:2209.05433).
# - S. Rajbhandari et al., "[ZeRO: memory optimizations toward training trillion parameter models](https://arxiv.org/abs/1910.02054)", SC20: counts the bytes of parameters, gradients and optimizer state.
# - S. Williams, A. Waterman, D. Patterson, "[Roofline: an insightful visual performance model for multicore architectures](https://doi.org/10.1145/1498765.1498785)", *Communications of the ACM* 52(4), 2009.
# - A. Rogozhnikov, "[Einops: clear and reliable tensor manipulations with Einstein-like notation](https://openreview.net/forum?id=oapKSVM2bcj)", ICLR 2022.
#
# PyTorch's documentation: "[Tensor Views](https://docs.pytorch.org/docs/stable/tensor_view.html)", "[Broadcasting semantics](https://docs.pytorch.org/docs/stable/notes/broadcasting.html)", "[Tensor Attributes](https://docs.pytorch.org/docs/stable/tensor_attributes.html)" (type promotion), [`torch.Tensor.view`](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.view.html), [`torch.as_strided`](https://docs.pytorch.org/docs/stable/generated/torch.as_strided.html), "[Serialization semantics](https://docs.pytorch.org/docs/stable/notes/serialization.html)" (tensors that share storage), and the tutorial "[Saving and Loading Models](https://docs.pytorch.org/tutorials/beginner/saving_loading_models.html)", which warns about `best_model_state = model.state_dict()`. The rule of `view` is `computeStride` in [`aten/src/ATen/TensorUtils.cpp`](https://github.com/pytorch/pytorch/blob/v2.13.0/aten/src/ATen/TensorUtils.cpp).
#
# NumPy's documentation: "[Data type promotion in NumPy](https://numpy.org/doc/stable/reference/arrays.promotion.html)" and [NEP 50](https://numpy.org/neps/nep-0050-scalar-promotion.html); [`numpy.ndarray.strides`](https://numpy.org/doc/stable/reference/generated/numpy.ndarray.strides.html). NVIDIA's ["H100 Tensor Core GPU" data sheet](https://resources.nvidia.com/en-us-gpu-resources/h100-datasheet-24306) for the two peaks.
