# ---
# jupyter:
#   kernelspec: {display_name: Python 3, language: python, name: python3}
#   open_the_hood: {title: "Tensors: storage and view"}
# ---

# %% [markdown]
# # Tensors: storage and view
#
# Take any model apart and you find tensors, all the way down. This lesson takes the tensor apart.
#
# It takes about two hours, predictions and drills included; "When view works and when reshape copies" is a good place to sleep on it. Where a paragraph begins with **Predict**, settle on an answer before you look below it, on paper if you can bear to: most of these cells were chosen because the obvious answer is wrong. Run the cells as you go, and change them; the pictures are of *your* tensors, and grow sliders once you run them. Nothing here is graded, and everything here is used in the lab.

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
# Two sentences carry the whole course. *A tensor is a storage, which is bytes, and a view of it.* *A module is a registry of parameters and a forward written as code.* This phase is the first sentence, taken slowly. Every later phase leans on it: a gradient is a tensor, a parameter is a tensor, and what a GPU kernel receives is nothing but an address and a few integers.
#
# One layer keeps us company from here to the last phase: the *LM head* of a small language model, `nn.Linear(64, 600)`. It takes a vector of 64 numbers and gives 600 scores, one for each word of its vocabulary. It is small enough to look at every byte of it, and today we will.

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
# You are training an LM head, and you are careful. After each step you measure the loss on data that the head has not seen. Sooner or later it will overfit and that loss will rise again, so you keep the best weights seen so far, and put them back when training ends.

# %%
torch.manual_seed(0)
truth = nn.Linear(64, 600)                       # what there is to learn
x, x_unseen = torch.randn(2, 512, 64)
y, y_unseen = truth(x).argmax(1), truth(x_unseen).argmax(1)

head = nn.Linear(64, 600)                        # what learns it
optimizer = torch.optim.SGD(head.parameters(), lr=10.0)   # in a hurry, to overfit soon
best_loss = float("inf")

# %% [markdown]
# **Predict.** Three losses on unseen data: the best one, the last one, and the one after `load_state_dict(best)`. Which of the three is the smallest? (A loss of log-probabilities is counted in *nats*: log 600, about 6.4, is guessing.)

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
# The restored weights are the last ones. The best ones are gone, without an error or a warning, past a line that says `load_state_dict(best)` and means it. If you had not measured once more, you would now publish the overfitted model and call it the best.
#
# So `best` must be the live weights under another name? Ask Python.

# %%
print("same dict:  ", best is head.state_dict())
print("same tensor:", best["weight"] is head.weight)
print("same values:", torch.equal(best["weight"], head.weight))

# %% [markdown]
# Two dicts, two tensor objects, and yet their values can never differ. Python's `is` has nothing to say about it, and comparing values only tells that they agree at this moment. Something lies below what Python can see, and that is where the question of this phase is:
#
# > **When I hold a tensor, whose bytes am I holding, and how does it find them?**

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
# That record is the *view*. Here is a fresh LM head; `W` is its weight, without autograd's attention.
#
# **Predict.** The transpose of `W` has 600 × 64 numbers in another order. How many bytes does PyTorch set aside for it?

# %%
torch.manual_seed(0)
head = nn.Linear(64, 600)
W = head.weight.detach()
for name, t in {"W": W, "W.t()": W.t(), "W[7]": W[7]}.items():
    storage = t.untyped_storage()
    print(f"{name:6} shape {tuple(t.shape)!s:9}  strides {t.stride()!s:8}  "
          f"offset {t.storage_offset():3}  "
          f"storage: {storage.nbytes():,} bytes at {storage.data_ptr():#x}")

# %% [markdown]
# None: the 153,600 bytes in the second line are the first line's, at the same address. One storage, three records. `W.t()` swaps two pairs of integers, and `W[7]` starts reading at element 448; neither touches a number of the weight, so neither cares how many there are.
#
# Storage and view have different sizes, then. The storage's own is printed above. What the view *reaches* is `numel()` elements of `element_size()` bytes each.

# %% tags=["hide-input"]
number(
    "How many bytes does the view `W[7]` reach?", 256, unit="bytes",
    why="64 elements of 4 bytes. Its storage is 600 times larger, because it is all of `W`'s.",
    wrong={64: "That is the number of elements; each float32 takes 4 bytes.",
           153600: "That is the storage it reads from. The view reaches one row of it."},
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
# The difference between storage and view is not a nicety of the implementation. It reaches your disk.
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
# `torch.save` writes *storages*, so that tensors which shared bytes before still share them after loading. Save all 600 rows, each to its own file, and you have saved the matrix 600 times. A `clone()` has a storage of its own, of 256 bytes (the rest of the second file is wrapping).
#
# One more consequence. To *allocate* a storage and to *write* it are two acts. `torch.zeros` does both. `torch.empty` does only the first, and hands you whatever the last tenant left.

# %%
def sevens():
    tenant = torch.full((20_000,), 7.0)
    del tenant
    return (torch.empty(20_000) == 7.0).sum().item()


most = max(sevens() for _ in range(20))
print(f"{most:,} of 20,000 elements are sevens that nobody wrote, in the best of 20 tries")

# %% [markdown]
# A dead tensor's bytes, seen through a new view. How many of them are left depends on what the allocator did in the meantime; in a single try it may be all of them, or none. So `torch.empty` is for memory that you are about to fill, and for nothing else.

# %% [markdown]
# ## Strides: how far is one step
#
# Memory has one dimension. A matrix has two, so somebody must decide in which order its numbers stand in line. PyTorch's default is *row-major*: the last index runs fastest, so neighbours in a row are neighbours in memory. Pass the explorer a tensor and pick an index.

# %%
t = torch.arange(12.0).reshape(3, 4)
stride_explorer(t, index=(1, 2))

# %% [markdown]
# The strides are (4, 1): one step down skips 4 elements, one step right skips 1. Now keep the memory and change only the two integers.
#
# **Predict.** In `t.t()`, where has the 6 of row 1, column 2 gone: in the grid, and in memory?

# %%
stride_explorer(t.t(), index=(2, 1))

# %% [markdown]
# In the grid it has crossed the diagonal. In memory it has not moved. A transpose moves nothing; it changes what *one step* means.
#
# **Predict.** Shape and strides of `t[:, ::2]`, every second column?

# %%
stride_explorer(t[:, ::2], index=(1, 1))

# %% [markdown]
# Half the elements, the same storage, and a longer step: that is all that slicing with a step is.
#
# For a fresh tensor the strides follow from the shape, read from the right. The last stride is 1, since neighbours are neighbours. Each stride before it is *the size times the stride of the dimension on its right*: one step in a dimension must jump over everything inside it. A tensor of shape (2, 3, 4) has strides (12, 4, 1), because a row holds 4 and a matrix 3 × 4. (What should happen where a size is 0? The lab wants to know.)

# %% tags=["hide-input"]
number(
    "A fresh float32 tensor has shape (5, 6, 7). What is the stride of dimension 0?", 42,
    unit="elements", why="One step must jump over a 6 × 7 matrix.",
    wrong={35: "That is 5 × 7: a stride jumps over what lies inside, and dimension 0 is not inside itself.",
           30: "That is 5 × 6, read from the left. Strides are built from the right.",
           210: "That is the whole tensor; it would be the stride of one more dimension on the left.",
           168: "That is the step in bytes. PyTorch counts strides in elements, NumPy in bytes."},
)

# %% [markdown]
# ## The address of one element
#
# Now the sentence that makes a tensor work. Element `[i, j, …]` lies at
#
# $$\text{offset} + i \cdot \text{stride}_0 + j \cdot \text{stride}_1 + \cdots$$
#
# elements from the start of the storage, and that times the element size is its distance in bytes. A negative *index* is turned into a positive one first (−1 means size − 1). A negative *stride* does not exist in PyTorch.
#
# Take an awkward view: every second row from 100 to 199 of `W`, and columns 8 to 15 of those.
#
# **Predict.** Its strides and its offset. Then: at which element of `W`'s storage does `v[-1, 3]` lie?

# %%
v = W[100:200:2, 8:16]
print("shape", tuple(v.shape), " strides", v.stride(), " offset", v.storage_offset())
stride_explorer(v, index=(49, 3))

# %% [markdown]
# The offset is 100 · 64 + 8 = 6,408; a step down now skips two rows, 128 elements; index −1 means row 49. So `v[-1, 3]` is element 6,408 + 49 · 128 + 3 · 1 = 12,683. If that sum is really all there is, we can do without PyTorch: take the address of the storage, add 4 bytes for each element, and ask the machine for the float that lies there.

# %%
import ctypes

address = W.untyped_storage().data_ptr() + 4 * 12_683
print(f"{ctypes.c_float.from_address(address).value:.9f}  the float32 at {address:#x}")
print(f"{v[-1, 3].item():.9f}  v[-1, 3]")

# %% [markdown]
# That is indexing, with the hood open. (Be kind to `from_address`: it believes any number you give it, and a wrong one ends the kernel.)
#
# Mind which address you ask for. `untyped_storage().data_ptr()` is where the *storage* begins, `v.data_ptr()` is where the *view's* first element lies.

# %% tags=["hide-input"]
number(
    "How far is `v.data_ptr()` from `v.untyped_storage().data_ptr()`?", 25632, unit="bytes",
    why="The offset, 6,408 elements, times 4 bytes.",
    wrong={6408: "That is the offset in elements; addresses count bytes.",
           0: "Only when the offset is 0. This view starts in row 100, column 8.",
           50732: "That is where `v[-1, 3]` lies. The view's own pointer is at `v[0, 0]`."},
)

# %% [markdown]
# ## Who shares bytes with whom
#
# **Predict.** For each line of the next cell: does it read `W`'s bytes, or has it bytes of its own? Mark the ones you would bet on.

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
# - **Always a view**: `t`, `transpose`, `permute`, `view`, `narrow`, `expand`, `detach`, indexing with integers and slices. They can be written as shape, strides and offset, so that is all they write.
# - **Always a copy**: `clone`, and indexing with a list or a mask. Rows 10, 3 and 500 have no constant step between them, so no stride can reach them.
# - **A copy when it must**: `contiguous`, `reshape`, `to`, `float`, `cpu`. If the tensor is already what you ask for, you get it back, the same bytes and all. `W.contiguous()` is free. `W.t().contiguous()` buys 153,600 bytes and moves every number. Which of the two it will be, `is_contiguous()` says beforehand: whether the elements, read in the order of their indices, lie one behind the other. It is asked of strides alone (`W.t()` says no, though no byte has moved), and a dimension of size 1 has no say, for nobody takes a step along it.
#
# The third family is where bugs live, because it does one thing on Monday and the other on Tuesday, depending on strides that no line of your code mentions.
#
# How do you test for sharing? Three tests come to mind, and all three are wrong.

# %%
import warnings

with warnings.catch_warnings(action="ignore"):  # TypedStorage is deprecated and says so
    print("same tensor object:   ", W[10:20] is W)
    print("same storage object:  ", W.storage() is W.storage())
    print("same data_ptr():      ", W[10:20].data_ptr() == W.data_ptr())
print("same storage address: ",
      W[10:20].untyped_storage().data_ptr() == W.untyped_storage().data_ptr())

# %% [markdown]
# Every view is a new Python object. `storage()` makes a new wrapper at each call, so that `W` seems not to share with itself. `data_ptr()` includes the offset. Only the last line compares where the bytes are. (Even then, one storage is not one element: `W[:300]` and `W[300:]` share a storage and have no number in common.)
#
# Python itself lays one more trap, and it is a good one.

# %% tags=["hide-input"]
true_false(
    "Indexing with a list copies, so `W[[7]] *= 2` leaves `W` as it was.", False,
    "Python runs `W[[7]] *= 2` in three moves: it reads `W[[7]]` (a copy), doubles the copy, and then "
    "**assigns** the result to `W[[7]]`, which writes into `W`. In two lines, `row = W[[7]]` and then "
    "`row *= 2`, nothing is assigned back and `W` keeps its values. (Try both on `torch.ones(3, 3)`.)",
)

# %% [markdown]
# And the lost weights? `state_dict()` makes a new dict and new tensors, and every one of them is a `detach()`: a view.

# %%
state = head.state_dict()
kept = {name: t.clone() for name, t in state.items()}
share_map(live=head.weight, best=state["weight"], best_copy=state.copy()["weight"],
          kept=kept["weight"])

# %% [markdown]
# Every step after the best one wrote into `head.weight`'s bytes, so it wrote into `best`. And at the end `load_state_dict(best)` was asked to copy those bytes onto themselves, and had nothing to do. `state_dict().copy()`, which looks like the cure and can be met in many a repository, copies the dict: new keys, the same tensors. One `clone()` for each tensor, or `copy.deepcopy` of the whole, is what it takes.

# %% [markdown]
# ## Making a view by hand: as_strided
#
# Every function of the first family does a little arithmetic on the record and leaves the bytes alone. `torch.as_strided` lets you write the record yourself: shape, strides, offset. Nothing else in PyTorch is so short and so powerful, so let us use it for something that no slice can do.
#
# A language model with a context of 32 trains on windows of 32 tokens: tokens 0–31, then 1–32, then 2–33. Each window is nearly all of the one before.
#
# **Predict.** Which strides make row *i* of a matrix start at token *i*?

# %%
tokens = torch.arange(1000)
windows = torch.as_strided(tokens, size=(969, 32), stride=(1, 1))
print(windows[0, :4], windows[1, :4], windows[968, -4:])
print(f"reached: {windows.numel() * 8:,} bytes, stored: {tokens.numel() * 8:,} bytes")
stride_explorer(torch.arange(10).as_strided((7, 4), (1, 1)), index=(2, 3))

# %% [markdown]
# (1, 1): a step down and a step right are the same step. The windows look like 248,064 bytes and cost 8,000; `Tensor.unfold` is the official spelling. In the explorer, the lit number appears all along a diagonal of the grid, and once in memory.
#
# Such power has edges, and it is better to cut yourself on them here.
#
# **Predict.** Three lines, three surprises: which raise an error?

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
# - The first is `True`: `as_strided` counts its offset from the start of the *storage*, not of the tensor you called it on, so from row 7 we have read row 0. (Leave the offset out and you keep the tensor's own.)
# - The second raises. The last element asked for is 2 · 4 + 4 · 1 = 12, and the storage has elements 0 to 11. That, and that nothing may be negative, is the only limit: PyTorch checks against the end of the storage.
# - The third raises nothing and is the worst of the three. We added 1 to a view in which up to four indices reach the same number, so it was added to up to four times, in an order that nobody promises. Most in-place operations refuse a stride of 0, which is cheap to see; none looks for other overlaps.
#
# Read through overlapping views as much as you like. Before you write, `clone()`.

# %% tags=["hide-input"]
choice(
    "`t` is `torch.arange(12.0)`. What is `t.as_strided((3, 4), (1, 3))`?",
    {
        "The numbers in rows: 0 1 2 3, then 4 5 6 7": "That has strides (4, 1): here one step right skips 3 elements, not 1.",
        "The numbers in columns: 0 3 6 9, then 1 4 7 10": "One step right skips 3, one step down skips 1: the numbers run down the columns. It is how Fortran keeps a matrix, and what `t.view(4, 3).t()` gives.",
        "An error: the strides must fall from left to right": "No rule asks for that. Every transpose breaks it.",
    },
    answer="The numbers in columns: 0 3 6 9, then 1 4 7 10",
)

# %% [markdown]
# ## When view works and when reshape copies
#
# `view(new_shape)` promises the same bytes in the same reading order with another shape. Sometimes no strides in the world can keep that promise. Take the left half of `W`: rows of 32, and after each of them a gap of 32 that belongs to the right half.
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
# The rule, which you will need exactly:
#
# **Cut the old dimensions into chunks.** A chunk is a stretch that can be walked from end to end with steps of one length. Go from right to left. The last dimension opens a chunk, and its stride is the chunk's *step*. The next dimension joins the chunk if its stride equals *the stride times the size of the neighbour on its right*: then one step in it lands exactly where the neighbour's walk would have continued. If not, it opens a chunk of its own. (Dimensions of size 1 you may ignore: nobody ever takes that step, so their strides mean nothing.)
#
# **Deal the new sizes into the chunks**, again from right to left. Each chunk must be filled exactly: the sizes it gets multiply to its number of elements. If a size overshoots, there is no view. The first size in a chunk gets the chunk's step as its stride; each later one gets *that step times the product of the sizes the chunk already holds*. (New sizes of 1 fit anywhere and multiply nothing.)
#
# On `half`, shape (600, 32), strides (64, 1): the 32 opens a chunk with step 1. The 600 would join if its stride were 1 · 32. It is 64, so the 600 opens a chunk with step 64. Two chunks, 600 | 32.
#
# - (600, 4, 8): 8 goes into the right chunk, stride 1; 4 fills it, stride 8; 600 fills the left one, stride 64.
# - (20, 30, 32): 32 fills the right chunk; 30 and 20 share the left one, strides 64 and 30 · 64 = 1,920.
# - (1200, 16): 16 goes to the right, and then 1200 would have to lie partly in one chunk and partly in the other. It looks so reasonable, every half row cut in two; but from piece to piece the step would be 16, 48, 16, 48 …
# - (300, 64) and (19200,) overshoot at once.
# - (1, 600, 32, 1): the ones cost nothing. (The strides printed for them are the ones the rule would give. Nobody will use them.)
#
# **And size 0**: with no elements there is no order to keep, so any empty shape will do, with the strides of a fresh tensor. (Viewed in the shape that it already has, it keeps its own.)
#
# Now PyTorch's message can be read. Attention splits 64 features into 4 heads of 16, and puts the heads in front:

# %%
q = torch.randn(2, 32, 64)                     # batch, time, features
heads = q.view(2, 32, 4, 16).transpose(1, 2)   # batch, head, time, features of a head
print("heads: shape", tuple(heads.shape), " strides", heads.stride())
attempt(lambda: heads.view(2, 4, 512).shape)

# %% [markdown]
# "Spans across two contiguous subspaces": a new size would have to lie in two chunks. (Here there are four chunks, one for each dimension. Check one: 32 · 64 = 2,048, and the head's stride is 16.) Transposing heads and time *back* restores one chunk; that is how attention merges its heads.
#
# `reshape` is `view` if there is one, otherwise a copy, and it won't say which.
#
# **Predict.** `write` puts 99 into the first element, through a `reshape`. Does the caller's tensor have it?

# %%
def write(t):
    t.reshape(-1)[0] = 99.0
    return t[0, 0].item()


print("on a fresh tensor:  ", write(torch.zeros(3, 4)))
print("on a transposed one:", write(torch.zeros(3, 4).t()))

# %% [markdown]
# The same function, the same shapes, the same values; the strides decided. When you mean to write, use `view`: it works or it complains.

# %% tags=["hide-input"]
choice(
    "`a` has shape (4, 6) and strides (6, 1). Which of these needs a copy?",
    {
        "`a.reshape(2, 2, 6)`": "One chunk of 24 with step 1: any shape of 24 elements is a view.",
        "`a[:, :3].reshape(12)`": "Two chunks, 4 | 3, because 6 is not 1 · 3; and 12 needs both.",
        "`a[:2].reshape(12)`": "The stride 6 still equals 1 · 6: taking whole rows cuts no chunk.",
        "`a.t().reshape(3, 2, 4)`": "Shape (6, 4), strides (1, 6): two chunks, 6 | 4. The 4 fills the right one, and 2 and 3 share the left one.",
    },
    answer="`a[:, :3].reshape(12)`",
)

# %% [markdown]
# ## dtypes: how a number becomes bytes
#
# The fourth field of the record says what the bytes mean. A floating-point number is a sign, an exponent and a fraction, $\pm 1.\text{fraction} \times 2^{\text{exponent}}$: the exponent's bits buy **range**, the fraction's bits buy **precision**, and there are never enough bits for both. Try a few numbers.

# %%
dtype_ruler(0.1)

# %% [markdown]
# No dtype holds 0.1. Each keeps its nearest neighbour, and what differs is how near that is. `bfloat16` is `float32` with the last 16 bits cut off: the whole range, and about two decimal digits. `float16` spends its 16 bits the other way round.

# %%
dtype_range()

# %% [markdown]
# **Predict.** Which of these come out as they would on paper?

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
# One, nearly. `float16` ends at 65,504, and beyond it lies infinity. `bfloat16` has 8 significant bits, so between 256 and 512 it holds only even numbers: count in it and you stay at 256 for ever (`float16` stays at 2,048, `float32` at 16,777,216). A gradient of 1e-8 is 0 in `float16`; that is why training in fp16 multiplies the loss by a large number first (`torch.amp.GradScaler`), and why bf16, which keeps it to within half a percent, needs no such help. And 8-bit `e4m3`, whose largest number is 448, clips.
#
# fp8 is a format to *keep* numbers in, and to multiply matrices in. What torch does with it element by element is patchy: `a + b` is refused, `a * a`, `a == b` and even `a @ b` run, and round each result back into those narrow walls. The product that is meant is `F.scaled_mm`: both sides in fp8, a scale beside each so that neither overflows, sums in float32, the result in bfloat16. An H100 has units for just that, by its data sheet twice as fast as for 16 bits.
#
# What does it cost the LM head? Same weights, same inputs, three dtypes, held against float64:

# %%
x = torch.randn(1024, 64)                      # 32 sequences of 32 tokens
exact = x.double() @ W.double().t()
for dtype in (torch.float32, torch.float16, torch.bfloat16):
    logits = x.to(dtype) @ W.to(dtype).t()
    error = (logits.double() - exact).abs().max().item()
    print(f"{str(dtype):15} {W.to(dtype).numel() * dtype.itemsize:>7,} bytes of weight, "
          f"largest error of a logit {error:.1e}")

# %% [markdown]
# Half the bytes, and fp16 is about eight times as exact as bf16: three more bits of fraction.
#
# Converting with `.to(dtype)` computes new numbers, in new bytes. `.view(dtype)` keeps the bytes and changes the field: it is a view, like all the others. Put three things you know together (a storage has no dtype; bf16 is the upper half of fp32; a stride can skip) and the next line follows.
#
# **Predict.** What is in `top`, and how many bytes did it take?

# %%
top = W.view(torch.bfloat16)[:, 1::2]     # little-endian: the upper half comes second
print("shape", tuple(top.shape), " strides", top.stride(), " offset", top.storage_offset())
print("float32 ", W[0, :4].tolist())
print("bfloat16", top[0, :4].tolist())
print("shares: ", top.untyped_storage().data_ptr() == W.untyped_storage().data_ptr())

# %% [markdown]
# The whole weight in bfloat16, for nothing: the same storage, a stride of 2, an offset of 1. (It cuts where `.to` rounds, so the last bit may differ. It is a conversation piece, not a training recipe.)

# %% tags=["hide-input"]
choice(
    "Which of these keeps 1e-8 as something other than 0?",
    {
        "float16": "Its smallest positive number is about 6e-8 (a subnormal); 1e-8 is less than half of that and rounds to 0.",
        "bfloat16": "It has float32's 8 bits of exponent and reaches down to about 1e-38 at full precision.",
        "float8_e4m3fn": "Its smallest positive number is 2^-9, about 0.002.",
    },
    answer="bfloat16",
)

# %% [markdown]
# ## Where the memory goes
#
# You can now count bytes, so let us audit a training step. Four things take memory: the parameters, their gradients, the optimizer's state, and the *activations* that autograd keeps because backward will ask for them. The head's parameters take 156,000 bytes. The batch is 32 sequences of 32 tokens.
#
# **Predict.** Which of the four is the largest, and how many times the parameters?

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
# The parameters are the small part. Their gradients take as much again, AdamW's two running averages twice as much (and a 4-byte step counter for each tensor). And what backward needs, here the input and the 1,024 × 600 log-probabilities, is more than seventeen times the parameters. It alone grows with the batch. (And `W`, being a view, has just been trained along.)
#
# Why five tensors and four storages? Cross-entropy is two operations, and each of them saved the log-probabilities. Had we summed over tensors, we would have found 2,457,600 bytes that don't exist. To know where memory goes, you have to know who shares it.

# %% tags=["hide-input"]
number(
    "A model of 7 billion parameters, trained with AdamW, everything in float32. How much memory before a single activation, in GB (10^9 bytes)?",
    112, unit="GB", why="Parameters, gradients and two averages: 4 × 4 bytes × 7 × 10^9.",
    wrong={28: "That is the parameters alone.", 56: "That is parameters and gradients; AdamW keeps two more numbers for each.",
           84: "One too few: AdamW keeps two averages, of the gradient and of its square."},
)

# %% [markdown]
# ## Broadcasting: a view with stride 0
#
# The head ends with `+ bias`: 600 numbers added to each of 1,024 rows. Nobody copies the bias 1,024 times.
#
# Two shapes broadcast when, written one above the other and *aligned on the right*, each pair of sizes is equal, or one of the pair is 1, or one is missing. The 1, or the missing one, is stretched to the other.

# %%
bias = head.bias.detach()
broadcast_aligner(torch.empty(32, 32, 600), bias)

# %% [markdown]
# *Stretched* sounds like work. It isn't.
#
# **Predict.** Strides and storage of the bias after it has been stretched to 1,024 rows?

# %%
stretched = bias.expand(1024, 600)
print("shape", tuple(stretched.shape), " strides", stretched.stride())
print(
    f"reached: {stretched.nbytes:,} bytes, stored: {stretched.untyped_storage().nbytes():,} bytes"
)
attempt(lambda: stretched.add_(1))

# %% [markdown]
# A stride of 0: a step down goes nowhere, and finds the same row again. Broadcasting is `expand` on both operands, and `expand` is a view. It also explains the refusal: 1,024 indices reach one number, and `add_` can't say which of the 1,024 sums should stay. (`fill_` writes the same number everywhere, so it doesn't mind.)
#
# By hand, then: each stretched dimension and each added one gets stride 0; a dimension that keeps its size keeps its stride. Two small prints, which you will be glad of:

# %%
print("added, but not stretched:", torch.empty(600).expand(1, 600).stride())
nothing = torch.empty(3, 1) + torch.empty(0)
print("1 meets 0:               ", tuple(nothing.shape), " mean", nothing.mean().item())
attempt(lambda: torch.empty(3) + torch.empty(4))

# %% [markdown]
# A new dimension of size 1 repeats nothing, so it gets no 0 but a row-major stride, size times stride of its right neighbour. A 1 stretches to 0 as willingly as to 7, so an empty batch passes through without a word, and its mean loss is `nan`. And two sizes that differ, neither of them 1, are the only thing that broadcasting ever refuses. Try shapes of your own:

# %%
broadcast_aligner((8, 1, 6, 5), (7, 1, 5))

# %% tags=["hide-input"]
choice(
    "`c = W[:, :1]` has shape (600, 1) and strides (64, 1). What strides does it get beside a (600, 600) matrix?",
    {
        "(64, 0)": "Dimension 0 keeps its size and so its stride; dimension 1 is stretched from 1 to 600.",
        "(0, 1)": "That would repeat one row. The stretched dimension is the one of size 1, on the right.",
        "(1, 0)": "The 64 stays: `c` is a view into `W`, and its next row is 64 elements on.",
        "(600, 1)": "Those are the strides of a copy. Broadcasting makes none.",
    },
    answer="(64, 0)",
)

# %% [markdown]
# ## The silent (64, 64) bug
#
# Broadcasting's kindness has a price. Sixty-four points on a noisy line *y* = 2*x* + 1, and the smallest model there is. `nn.Linear(1, 1)` returns shape (64, 1). The targets, as they so often do, have shape (64,).
#
# **Predict.** Training runs and the loss goes down. Down to what, and which line has the model found?

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
# A loss that falls and settles, and a slope of zero. The model has learnt to ignore its input. What did the subtraction do?

# %%
broadcast_aligner(wrong(inputs), goal)

# %% [markdown]
# 64 numbers minus 64 numbers made 4,096. Take the extra dimension away, and the line is found. Beside it, two facts about the targets; look for both of them in the wrong fit above.

# %%
right = fit(lambda pred, y: ((pred.squeeze(1) - y) ** 2).mean())
print(f"found y = {right.weight.item():.2f} x + {right.bias.item():.2f}")
print(f"the targets alone: mean {goal.mean():.2f}, variance {goal.var(correction=0):.3f}")
with warnings.catch_warnings(record=True, action="always") as said:
    nn.MSELoss()(wrong(inputs), goal)
print("nn.MSELoss:", str(said[0].message)[:98], "...")

# %% [markdown]
# Why did nothing complain, from the subtraction to the last step? And why those two numbers? You have all the pieces, and the lab asks you to put them together in your own words.
#
# The cure is a habit. Write `assert pred.shape == y.shape` before a subtraction that is meant to be elementwise. And say `squeeze(1)`, not a bare `squeeze()`, which also swallows a batch of one. PyTorch's own loss warns, as you see; when you write the loss yourself, nobody does.

# %% [markdown]
# ## NumPy beside torch
#
# NumPy's array is the same idea, and an older one: a buffer, a shape, strides. So the two libraries can read the same bytes.
#
# **Predict.** What does the array hold after the tensor is changed, for each of the three?

# %%
import numpy as np

for make in (torch.from_numpy, torch.as_tensor, torch.tensor):
    array = np.zeros(3)
    tensor = make(array)
    tensor[0] = 9
    print(f"{make.__name__:10}  array {array}  tensor {tensor.dtype}")

# %% [markdown]
# `from_numpy` shares always, `as_tensor` when it can, `torch.tensor` never. (And `t.numpy()` shares on the way back.) Notice the dtype. NumPy's default float is float64, PyTorch's is float32, and the first meeting of the two usually ends like this:

# %%
attempt(lambda: head(torch.from_numpy(np.random.default_rng(0).standard_normal((2, 64)))))

# %% [markdown]
# Three more differences to know when you carry code from one to the other:

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
# NumPy counts strides in bytes and allows negative ones; PyTorch does neither. And the same float32 numbers need not have the same sum, since each library adds them in its own order and each addition rounds. Neither is wrong. Compare across libraries with a tolerance, never with `==`.

# %% [markdown]
# ## Which dtype comes out
#
# When two dtypes meet in an elementwise operation, the result has one. The rule has two parts.
#
# **Rank**: a tensor with dimensions outranks a 0-dim tensor, and that outranks a plain Python number. Among operands of one rank the highest category wins, and within it the smallest dtype that holds them all; `torch.promote_types` knows it for any two.
#
# **Category**: bool < int < float < complex. An operand of lower rank is heard only if its category is *higher* than that of everything above it. Then the category rises, and the dtype with it: to the lower operand's own, or, if that is a Python number, to PyTorch's default (int64, float32, complex64). Otherwise the lower operand's dtype counts for nothing, however wide it is. (A float tensor made complex in this way keeps its own width, where there is a complex dtype of it: float64 + 1j is complex128, float16 + 1j is complex32. There is none for bfloat16, which becomes complex64.)
#
# **Predict** each line:

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
# The second keeps float16: the 0-dim operand is wider, but of the same category, so it isn't heard. The third becomes float64: it is the only float there. float16 and bfloat16 fit only into float32, as uint8 and int8 fit only into int16. True division never stays among the integers. And on the last sum NumPy disagrees: it goes to float64 for the integers' sake, and PyTorch, with an eye on memory, stays.
#
# The rule has limits. It can overflow, it can't widen in place, and it isn't for matrix products:

# %%
print("int8: 100 + 100 =", torch.tensor([100], dtype=torch.int8) + 100)
attempt(lambda: torch.ones(2, dtype=torch.int64).add_(1.5))
attempt(lambda: W @ torch.ones(64, 1, dtype=torch.float64))

# %% tags=["hide-input"]
choice(
    "`mask` is a bool tensor of shape (4,). What is the dtype of `mask + 1`?",
    {
        "bool": "An int is in a higher category than a bool, so the result can't stay bool.",
        "int64": "The Python int is of a higher category and decides alone; with no dtype of its own it brings the default, int64.",
        "float32": "Nothing here is a float. True division, `mask / 1`, would give float32.",
    },
    answer="int64",
)

# %% [markdown]
# ## Devices: what moves, and when
#
# The fifth field of the record says in which memory the address lies. A GPU has its own, and its kernels read only that, so bytes have to travel. They travel when you say so, and hardly ever otherwise.

# %% tags=["hide-input"]
number(
    "The model is on the GPU already, `x` is on the CPU. How many copies between the two does `y = model(x.cuda()); y.cpu()` make?",
    2, unit="copies", why="`x` goes there, `y` comes back. The parameters moved earlier, once, with `model.cuda()`, and everything between input and output is born on the GPU and stays there.",
    wrong={3: "The parameters are not part of it: they crossed once, when the model was moved.",
           1: "`x` crosses as well as `y`.",
           4: "The parameters, weight and bias, crossed earlier, with `model.cuda()`."},
)

# %% [markdown]
# Count rather than believe. Where there is no GPU we rehearse on the device called `meta`: its tensors have the whole record and no bytes, so that every operation computes shapes and nothing else. The counter stands between Python and the kernels and writes down each copy from one device to another. (You need not read the class; how it can stand there is the subject of [phase 04](04_dispatcher.ipynb#cell-id=listening-in).)

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
# Two for the parameters, once; then two for each batch, one each way. On a GPU the counts are the same. What the rehearsal can't show is *time*: a GPU works through its queue while Python runs ahead, and `.cpu()`, `.item()` and `print` make Python wait until the queue is empty. [Phase 09](09_profiling.ipynb#cell-id=two-clocks) measures that.
#
# Forget the move, and operands lie in two memories:

# %%
attempt(lambda: model(batch))

# %% [markdown]
# With a GPU the same mistake reads `Expected all tensors to be on the same device, but …`, and names the two. PyTorch could have moved one of them for you. It refuses, because a hidden copy in an inner loop would cost you more than an error does. (Two exceptions: a 0-dim CPU tensor may join an elementwise operation, since a single number can travel with the kernel's arguments; and in `w[indices]`, but there alone, the indices may lie on the CPU. `F.embedding`, `index_select`, `gather` and the targets of `cross_entropy` want them where the rest is.)
#
# The habit that avoids it: never write `.cuda()` in the middle of things. Choose `device` once at the top, move the model once, move each batch when it is loaded, and create new tensors where they will be used: `torch.arange(T, device=x.device)`, or `x.new_zeros(...)`. And `.to()` is of the third family: if nothing needs to move, it returns the very same tensor.

# %%
print("to('cpu') is the same tensor:           ", batch.to("cpu") is batch)
print("to('cpu', copy=True) is the same tensor:", batch.to("cpu", copy=True) is batch)

# %% [markdown]
# ## matmul, bmm, einsum, rearrange
#
# Nearly all the arithmetic of a network is one operation in several spellings. `@` multiplies matrices, and treats any dimensions before the last two as a *batch*, which broadcasts. `torch.bmm` is the strict form: exactly three dimensions, no broadcasting. `einsum` names the indices instead.
#
# Read its letters as loops: each letter is an index, and a letter that is missing to the right of the arrow is summed over. **Predict** the shape of each result, and which familiar operation it is.

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
# A matrix product, a sum over rows, attention's comparison, the LM head. In `bsh,bth->bst` the feature `h` disappears: for each batch, every position `s` meets every position `t` in a dot product. That is the heart of attention.
#
# In the last pattern, look at what is *not* there: no transpose. `nn.Linear` keeps its weight as (out, in) and computes `x @ W.t()`, and the `t()` costs nothing, as you know. The matrix routine receives the strides and reads along them.
#
# [`einops.rearrange`](https://einops.rocks/api/rearrange/) does for shapes what einsum does for products: it names the dimensions. Now a bug, of the worst kind. You have `q` of shape (2, 32, 64), batch × time × features, and want 4 heads of 16: shape (2, 4, 32, 16). `view` gives you this shape without a murmur.
#
# **Predict.** Is `q.view(2, 4, 32, 16)` what you want? What is in head 0?

# %%
from einops import rearrange

q = torch.arange(32).view(1, 32, 1).expand(2, 32, 64).contiguous()  # each number is its time
split = rearrange(q, "b t (head d) -> b head t d", head=4)
print("times in head 0, rearrange:", split[0, 0, :12, 0].tolist(), "...")
print("times in head 0, view:     ", q.view(2, 4, 32, 16)[0, 0, :12, 0].tolist(), "...")

# %% [markdown]
# The right shape and the wrong numbers: `view` never reorders, so "head 0" is every feature of the first eight time steps. The pattern says what you mean, and would have refused a size that doesn't divide.
#
# Is `rearrange` a view or a copy? It writes no kernel of its own: it composes `reshape` and `permute`, and you know the rules of both.

# %%
def shares(a, b):
    return a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()


merge = "b head t d -> b t (head d)"
print("split the heads:           shares", shares(split, q), " strides", split.stride())
print("merge them:                shares", shares(rearrange(split, merge), q))
print("merge a contiguous copy:   shares", shares(rearrange(split.contiguous(), merge), q))

# %% [markdown]
# Splitting is a view: it cuts a chunk. Merging is a view only while the numbers still lie in the order that the merge asks for. Once every head has written a block of its own they don't, and the line that merges the heads becomes a copy, without looking any different.

# %% [markdown]
# ## Counting FLOPs and bytes
#
# How much work is the LM head? For each of *B* tokens and each of *K* scores it adds up *D* products: a multiplication and an addition each. So 2·*B*·*D*·*K* floating-point operations, **FLOPs**, and *B*·*K* more for the bias, which is customarily left out. PyTorch has a counter; hold the formula against it.
#
# **Predict.** And how many times as much is the backward?

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
# One product of the same size gives the gradient of the weight; a second gives the gradient of the input, and it is made only if somebody below needs it. So "backward costs twice the forward" holds for every layer but the first.
#
# A whole transformer is counted with the same formula, piece by piece: each linear layer is 2·tokens·in·out. Attention has two products that are not linear layers, the scores and the weighted sum, and there every position meets every position, so both grow with the *square* of the context. That, and a list of the layers, is all you need for the lab.
#
# FLOPs are half the story. Bytes have to come from memory and go back: at the least, each tensor that goes into the layer is read once and the output is written once. FLOPs per byte is the **arithmetic intensity**, and a machine has two limits: so many FLOP per second, so many bytes per second. Which one binds depends on the intensity alone. Measure one core of this machine:

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
# **Predict.** The same layer for one token, and for 1,024. Which of the two limits holds each back?

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
# For one token the whole weight, 153,600 bytes, is fetched for 76,800 FLOPs: half a FLOP for each byte. A larger batch shares the fetch. This is why generating text one token at a time keeps a GPU waiting for memory, and why servers batch.
#
# (A point above the slanted roof is no mistake: the head fits into the processor's cache, which is faster than the memory we measured. And far below it, a single token mostly measures what it costs to call anything at all.)
#
# Move the batch yourself, and watch how far to the right the point can get. The roof is now that of a data-centre GPU, an H100 SXM in bfloat16, by its data sheet: 989 TFLOP/s (dense) and 3.35 TB/s. Nothing is timed here, only counted, and for counting the `meta` device is enough: it computes every shape and no number.

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
        "about 300 tokens": "The ridge is at about 295 FLOP per byte, not tokens. For a square layer with thousands of features the two are close; here they are not.",
        "about 10,000 tokens": "Work out the intensity: it grows with the batch, but towards a limit.",
        "No batch is large enough": "With more tokens, input and output dominate the bytes: 2·64·600 FLOP against 2·(64 + 600) bytes a token, which is 58 FLOP per byte at best. The ridge is at 295. A layer with only 64 inputs writes too much for what it computes.",
    },
    answer="No batch is large enough",
)

# %% [markdown]
# How high is such a roof really? The course has the record of an H100: products of two square matrices, and copies, timed there. **Predict.** What share of the 989 TFLOP/s does bfloat16 reach? Does fp8 reach twice as much? And float64, with twice the bytes, against float32?

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
# Three quarters of a data sheet is a good product, and nine tenths a good copy: read peaks as what the wires could carry. fp8 comes to 1.6 times bfloat16. And float64 is *faster* than float32! Matrices are multiplied in units of their own, which this chip has for 64 bits, and for 16 and 8, but not for float32 in full: that is left to the ordinary units. `float32 as tf32` lends it the matrix units, at the price of 13 bits of the fraction: seven times as fast. (`torch.backends.cuda.matmul.fp32_precision = "tf32"` says that you are willing.)

# %% [markdown]
# ## What you can now do
#
# [The lab](../release/01_tensors/01_tensors.ipynb) of this phase asks you to do it:
#
# - tell the bytes of a view from the bytes of its storage;
# - derive the strides of any fresh tensor, and the byte of any element of any view, by arithmetic alone;
# - build transpose, narrow, expand and diagonal with `as_strided`, sharing every byte;
# - decide whether `view` exists, and with which strides, by PyTorch's own rule;
# - broadcast two shapes by hand, strides included; mend a bug that broadcasting hides, and say why nothing complained;
# - write attention scores as an einsum, and split heads with a pattern;
# - predict the dtype of any sum;
# - count the FLOPs and the bytes of the LM head and of a whole small GPT, and say which limit of a machine it meets.
#
# And you can answer the question we began with. When I hold a tensor, I hold a small record; the bytes are the storage's, and others may be holding it too.

# %% [markdown]
# ## What this phase leaves out
#
# - **What `requires_grad` starts**: in-place writes to a view of something that autograd watches, version counters, saved tensors. [Phase 02](02_autograd.ipynb#cell-id=written-over-while-autograd-watches).
# - **Parameters and buffers**, and what `.to(device)` does to a whole module, ties included. [Phase 03](03_module.ipynb#cell-id=what-a-move-moves).
# - **How one line of Python finds a kernel**, and how `Crossings` could listen. [Phase 04](04_dispatcher.ipynb#cell-id=listening-in).
# - **How a GPU reads memory**, and why neighbouring threads should read neighbouring bytes. [Phase 05](05_custom_op.ipynb#cell-id=the-same-kernel-as-ptx).
# - **Mixed precision in a training loop**, `autocast` and `GradScaler`. [Phase 07](07_training.ipynb#cell-id=sixteen-bits).
# - **Pinned memory, asynchronous copies, the caching allocator, a memory timeline.** [Phase 09](09_profiling.ipynb#cell-id=memory-over-time).
# - Sparse, quantized and nested tensors have layouts of their own, and are left to the documentation.

# %% [markdown]
# ## Sources
#
# Papers and essays:
# - E. Stevens, L. Antiga, T. Viehmann, [*Deep Learning with PyTorch*](https://www.manning.com/books/deep-learning-with-pytorch), Manning, 2020, chapter 3: storage, offset and strides at a slower pace.
# - Edward Z. Yang, "[PyTorch internals](https://blog.ezyang.com/2019/05/pytorch-internals/)" (blog.ezyang.com, 2019): the tensor, its storage and strides, drawn by one of its makers.
# - S. van der Walt, S. C. Colbert, G. Varoquaux, "[The NumPy array: a structure for efficient numerical computation](https://arxiv.org/abs/1102.1523)", *Computing in Science & Engineering* 13(2), 2011.
# - D. Goldberg, "[What every computer scientist should know about floating-point arithmetic](https://doi.org/10.1145/103162.103163)", *ACM Computing Surveys* 23(1), 1991.
# - P. Micikevicius et al., "[Mixed precision training](https://arxiv.org/abs/1710.03740)", 2017 (arXiv:1710.03740); D. Kalamkar et al., "[A study of BFLOAT16 for deep learning training](https://arxiv.org/abs/1905.12322)", 2019 (arXiv:1905.12322); P. Micikevicius et al., "[FP8 formats for deep learning](https://arxiv.org/abs/2209.05433)", 2022 (arXiv:2209.05433).
# - S. Rajbhandari et al., "[ZeRO: memory optimizations toward training trillion parameter models](https://arxiv.org/abs/1910.02054)", SC20: the accounting of parameters, gradients and optimizer state.
# - S. Williams, A. Waterman, D. Patterson, "[Roofline: an insightful visual performance model for multicore architectures](https://doi.org/10.1145/1498765.1498785)", *Communications of the ACM* 52(4), 2009.
# - A. Rogozhnikov, "[Einops: clear and reliable tensor manipulations with Einstein-like notation](https://openreview.net/forum?id=oapKSVM2bcj)", ICLR 2022.
#
# PyTorch's documentation: "[Tensor Views](https://docs.pytorch.org/docs/stable/tensor_view.html)", "[Broadcasting semantics](https://docs.pytorch.org/docs/stable/notes/broadcasting.html)", "[Tensor Attributes](https://docs.pytorch.org/docs/stable/tensor_attributes.html)" (type promotion), [`torch.Tensor.view`](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.view.html), [`torch.as_strided`](https://docs.pytorch.org/docs/stable/generated/torch.as_strided.html), "[Serialization semantics](https://docs.pytorch.org/docs/stable/notes/serialization.html)" (tensors that share storage), and the tutorial "[Saving and Loading Models](https://docs.pytorch.org/tutorials/beginner/saving_loading_models.html)", which warns about `best_model_state = model.state_dict()`. The rule of `view` is `computeStride` in [`aten/src/ATen/TensorUtils.cpp`](https://github.com/pytorch/pytorch/blob/v2.13.0/aten/src/ATen/TensorUtils.cpp).
#
# NumPy's documentation: "[Data type promotion in NumPy](https://numpy.org/doc/stable/reference/arrays.promotion.html)" and [NEP 50](https://numpy.org/neps/nep-0050-scalar-promotion.html); [`numpy.ndarray.strides`](https://numpy.org/doc/stable/reference/generated/numpy.ndarray.strides.html). NVIDIA's ["H100 Tensor Core GPU" data sheet](https://resources.nvidia.com/en-us-gpu-resources/h100-datasheet-24306) for the two peaks.
