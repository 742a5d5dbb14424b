# ---
# jupyter:
#   kernelspec: {display_name: Python 3, language: python, name: python3}
#   open_the_hood: {title: "Lab 07: Training", points: 55, cell_seconds: 60, preload: [optimizers]}
# ---

# %% [markdown]
# # Lab 07: Training
#
# Twelve exercises and one question, 55 points, about three hours without the *further* exercises 5,
# 6, 7, 10, 11 and 12, which take three hours more. A class may leave those out, or count
# them as a bonus. Otherwise all points count. The lab follows
# [lesson 07](../../notebooks/07_training.ipynb). You build the parts of a training run one by one:
# windows, a loader, the loop, two optimizers, a schedule, accumulation, a loss scaler, a checkpoint.
# At the end you write the whole loop on an empty page. With it you train a MiniGPT from nothing
# until it beats two n-gram models. You also show that its loss curve stays the same in 16 bits and
# with batches in parts.
#
# Most of your functions are called with plain values, and their results are compared. If that is
# not enough, a *driver* of `utils/drivers` calls your code: it reads your dataset, gives your code
# a model, or stops a training run and lets your code go on with it. Each graded cell begins with
# `check(...)`, which gives the same verdict as grading. It uses the same drivers, with new sizes,
# numbers and seeds each time.
#
# Parts of an exercise earn their points separately, and no exercise needs the answer to another
# exercise. If you are stuck, open the hints: each exercise has two, folded away. Run the next cell,
# then start.

# %% given="setup"
import copy
import math
import os
import statistics
import time
import weakref
from collections.abc import Callable
from pathlib import Path

import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

from hood.learner.check import check
from utils.drivers import killing, measuring
from utils.drivers import training as driver
from utils.minigpt import MiniGPT, MiniGPTConfig, baselines, evaluation_lines, training_lines
from utils.notebook.expect import expect_close, expect_equal, expect_raises
from utils.views import loss_curves

# %% [markdown]
# ## 1 · Windows over a text
#
# *Easy, 25 minutes, 4 points: one for the windows, one for the last of them, one for copies, one for
# collating.*
# From the lesson: [Who draws the random numbers](../../notebooks/07_training.ipynb#cell-id=who-draws-the-random-numbers).
#
# A text is one long row of tokens, and a model learns from pieces of it. Write a dataset,
# `TokenWindows(tokens, context, stride, pad)`, where `tokens` is a tensor of M ≥ 2 integers, int64.
# Item i is a pair `(input_ids, target_ids)`, both int64 and of the same length:
#
# - `input_ids` are the `context` tokens from position `i * stride` on, and `target_ids` are the
#   tokens that come one later;
# - near the end a window is shorter: no token comes after the last one, so it is no input;
# - there is an item for each i whose window has at least one target. `len(dataset)` says how many
#   there are, and an index beyond them raises `IndexError`. Negative indices need not work.
# - Writing into an item must change nothing else: not the tokens, not another item, not the other
#   half of the pair, and not the result of a later request for the same item.
#
# All rows of a batch need the same length. `dataset.collate(items)` takes a list of such pairs and
# returns two tensors, (B, T) int64. T is the longest length among them. On the right, inputs are
# filled up with `pad`, and targets with -100, which `F.cross_entropy` ignores. The number `pad` may
# also be in the text, as a word like any other.
#
# <details><summary>How many windows are there?</summary>
#
# A window that begins at s has a target if position s + 1 exists. How many multiples of the stride
# are below M - 1?
# </details>
# <details><summary>The batch and the loader</summary>
#
# Make two tensors that are full of padding, `torch.full((B, T), ...)`, then write each item into
# its row. A `DataLoader` calls your method if you pass it as `collate_fn=dataset.collate`.
# </details>

# %% solution="TokenWindows"
class TokenWindows(Dataset):
    """Windows of at most `context` tokens, `stride` apart, each with its next tokens."""

    def __init__(self, tokens: torch.Tensor, context: int, stride: int, pad: int):
        ### BEGIN SOLUTION
        self.tokens, self.context, self.stride, self.pad = tokens, context, stride, pad
        ### END SOLUTION

    def __len__(self) -> int:
        ### BEGIN SOLUTION
        return math.ceil((len(self.tokens) - 1) / self.stride)
        ### END SOLUTION

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        """(input_ids, target_ids) of a window."""
        ### BEGIN SOLUTION
        if index >= len(self):
            raise IndexError(f"window {index} of {len(self)}")
        begin = index * self.stride
        piece = self.tokens[begin : begin + self.context + 1]
        return piece[:-1].clone(), piece[1:].clone()
        ### END SOLUTION

    def collate(
        self, items: list[tuple[torch.Tensor, torch.Tensor]]
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Inputs and targets of a batch, (B, T) each."""
        ### BEGIN SOLUTION
        longest = max(len(inputs) for inputs, _ in items)
        batch = torch.full((len(items), longest), self.pad)
        wanted = torch.full((len(items), longest), -100)
        for row, (inputs, targets) in enumerate(items):
            batch[row, : len(inputs)] = inputs
            wanted[row, : len(targets)] = targets
        return batch, wanted
        ### END SOLUTION

# %%
words = torch.tensor([5, 6, 7, 8, 9, 0, 3])
came = driver.windows(TokenWindows, {"tokens": words, "context": 4, "stride": 2, "pad": 0})
expect_equal("windows of seven tokens", came["length"], 3)
expect_equal(
    "the first", came["items"][0], (torch.tensor([5, 6, 7, 8]), torch.tensor([6, 7, 8, 9]))
)
expect_equal("the last", came["items"][2], (torch.tensor([9, 0]), torch.tensor([0, 3])))
dataset = TokenWindows(words, 4, 2, 0)
expect_raises("past the end", IndexError, dataset.__getitem__, 3)
loaded = list(DataLoader(dataset, batch_size=2, collate_fn=dataset.collate))
expect_equal("the second batch", loaded[1], (torch.tensor([[9, 0]]), torch.tensor([[0, 3]])))

# %%
came = driver.overwritten(
    TokenWindows, {"tokens": words.clone(), "context": 4, "stride": 2, "pad": 0}
)
expect_equal("the tokens, after zeros were written into an item", came["stream"], words)
expect_equal("the next item", came["next"][0], torch.tensor([7, 8, 9, 0]))

# %% test="TokenWindows" points=4
# Graded
check("TokenWindows")
words = torch.tensor([5, 6, 7, 8, 9, 0, 3])
text = {"tokens": words, "context": 4, "stride": 4, "pad": 1}
batch, wanted = driver.loaded(TokenWindows, text, 2)[0]
expect_equal("one batch", batch, torch.tensor([[5, 6, 7, 8], [9, 0, 1, 1]]))
expect_equal("its targets", wanted, torch.tensor([[6, 7, 8, 9], [0, 3, -100, -100]]))
### BEGIN HIDDEN TESTS
verify("TokenWindows", TokenWindows)
### END HIDDEN TESTS

# %% [markdown]
# ## 2 · A loader of your own
#
# *Medium, 30 minutes, 5 points: one for batches in order, one for shuffled epochs, one for items that
# are read when they are needed, one for collating tensors and numbers, one for tuples and dicts.*
# From the lesson: [What a loader does](../../notebooks/07_training.ipynb#cell-id=what-a-loader-does).
#
# Write a class `Loader(dataset, batch_size, shuffle, drop_last, generator, collate)`. The cell for it
# is nearly empty. Use nothing of `torch.utils.data`, because that is what you are building. A loop
# `for batch in loader:` goes through one epoch.
#
# A dataset is anything that answers `len(dataset)` and `dataset[k]`, where k is an `int` from 0 on.
# It may be a list, a `range`, a dict with the keys 0, 1, 2, or your `TokenWindows`.
#
# - **How many items.** Each `batch_size` items are a batch. If fewer are left at the end of an
#   epoch, they are a smaller batch; with `drop_last` they are left out. `len(loader)` is the number
#   of batches in an epoch. There may be fewer items than a batch, or none at all.
# - **Which items, without `shuffle`.** An epoch goes through the items in order. There may be 10¹⁵
#   items, so build nothing of that length. Take no random numbers from `generator`, which may be
#   `None`.
# - **Which items, with `shuffle`.** The order of an epoch is `torch.randperm(len(dataset),
#   generator=generator)`, where `generator` is a `torch.Generator`. Call it once for each epoch,
#   either at `iter(loader)` or when the first batch is requested. Take nothing else from
#   `generator`, and leave torch's global generator as it was.
# - **When.** The items of a batch are read when that batch is requested: each once, in the order of
#   the batch, and no other item. Several iterators of one loader may be in use at the same time,
#   each in its own epoch.
# - **In what form.** If `collate` is a function, it gets the list of a batch's items and returns
#   the batch. If it is `None`, you put the items together; they are all of one kind.
#   - Tensors of one shape are stacked along a new first dimension.
#   - Numbers become a tensor: float64 for floats, int64 for ints, bool for bools.
#   - Strings stay a list (or a tuple).
#   - Tuples become one tuple (or a list, as torch's loader has it), and dicts one dict. Each place in
#     them is put together in the same way, however deep. The dicts of a batch have the same keys,
#     which may come in another order.
#
# <details><summary>What has to remember where an epoch is?</summary>
#
# It is not the loader, because several epochs may be running at once. `for` calls `iter(loader)`
# once, and that calls `__iter__`. If `__iter__` contains `yield`, each call returns a new generator
# with its own local variables. It runs only until the next requested batch. A `range` can be sliced
# like a list, and builds nothing.
# </details>
# <details><summary>Items within items</summary>
#
# Write a function that puts a list of items together. It looks at the first item to see of what
# kind they are. For a list of dicts, it makes a list of the values of each key, and calls itself
# with this list. (And `isinstance(True, int)` is true.)
# </details>

# %% solution="Loader"
class Loader:
    """Gives the items of a dataset in batches; each `iter(loader)` is one epoch."""

    def __init__(
        self, dataset, batch_size: int, shuffle: bool, drop_last: bool, generator, collate
    ):
        ### BEGIN SOLUTION
        self.dataset, self.batch_size, self.drop_last = dataset, batch_size, drop_last
        self.shuffle, self.generator = shuffle, generator
        self.collate = together if collate is None else collate
        ### END SOLUTION

    def __len__(self) -> int:
        ### BEGIN SOLUTION
        whole, rest = divmod(len(self.dataset), self.batch_size)
        return whole if self.drop_last or rest == 0 else whole + 1
        ### END SOLUTION

    def __iter__(self):
        ### BEGIN SOLUTION
        order = range(len(self.dataset))
        if self.shuffle:
            order = torch.randperm(len(self.dataset), generator=self.generator).tolist()
        for number in range(len(self)):
            rows = order[number * self.batch_size : (number + 1) * self.batch_size]
            yield self.collate([self.dataset[k] for k in rows])


def together(items: list):
    """Make a batch of a list of items of one kind."""
    first = items[0]
    if isinstance(first, torch.Tensor):
        return torch.stack(items)
    if isinstance(first, float):
        return torch.tensor(items, dtype=torch.float64)
    if isinstance(first, int):
        return torch.tensor(items)
    if isinstance(first, tuple):
        return tuple(together(list(place)) for place in zip(*items))
    if isinstance(first, dict):
        return {key: together([item[key] for item in items]) for key in first}
    return items
    ### END SOLUTION

# %%
letters = ["a", "b", "c", "d", "e"]
loader = Loader(letters, 2, False, False, None, None)
expect_equal("in order", list(loader), [["a", "b"], ["c", "d"], ["e"]])
expect_equal("without the rest", list(Loader(letters, 2, False, True, None, "".join)), ["ab", "cd"])
lengths = [
    len(Loader(range(n), 4, False, drop, None, None)) for n in (0, 8, 10) for drop in (False, True)
]
expect_equal("how many batches", lengths, [0, 0, 2, 2, 3, 2])
settings = {
    "batch_size": 2,
    "shuffle": False,
    "drop_last": False,
    "generator": None,
    "collate": "list",
}
came = driver.dealt(Loader, 10**15, [settings], [(0, 0), (0, 0)])
expect_equal("very many items", came["batches"], [[0, 1], [2, 3]])

# %%
g = torch.Generator().manual_seed(7)
first, second = ([letters[k] for k in torch.randperm(5, generator=g)] for _ in range(2))
shuffled = Loader(dict(enumerate(letters)), 5, True, False, torch.Generator().manual_seed(7), None)
expect_equal("two epochs", [*shuffled, *shuffled], [first, second])
came = driver.dealt(Loader, letters, [settings], [(0, 0), (0, 0), (0, 1), (0, 0)], noted=True)
expect_equal(
    "two epochs, taking turns: each item, and how many were read before",
    came["batches"],
    [[("a", 0), ("b", 1)], [("c", 2), ("d", 3)], [("a", 4), ("b", 5)], [("e", 6)]],
)

# %%
items = [
    {"x": torch.tensor([1, 2]), "pair": (0.1, "hablo"), "seen": True, "n": 3},
    {"x": torch.tensor([3, 4]), "pair": (0.2, "hablé"), "seen": False, "n": 2**40},
    {"x": torch.tensor([5, 6]), "pair": (0.3, "hablas"), "seen": True, "n": 5},
]
theirs = list(DataLoader(items, batch_size=2, generator=torch.Generator()))
expect_equal("as torch's collates", list(Loader(items, 2, False, False, None, None)), theirs)

# %% test="Loader" points=5
# Graded
check("Loader")
one = Loader(range(3), 5, True, True, torch.Generator(), None)
expect_equal("fewer than a batch", (len(one), list(one)), (0, []))
### BEGIN HIDDEN TESTS
verify("Loader", Loader)
### END HIDDEN TESTS

# %% [markdown]
# ## 3 · Five lines, five mistakes
#
# *Easy, 20 minutes, 3 points: one for a single step, one for many steps, one for the losses.*
# From the lesson: [The five lines](../../notebooks/07_training.ipynb#cell-id=the-five-lines).
#
# Somebody fits a line y = w·x + b through points with gradient descent: `x` is (N, 1), `y` is (N,),
# both float32, and `w` and `b` begin at 0. The code should minimize the mean of the squared errors.
#
# ```
# def fit(x, y, steps, lr):
#     w = torch.zeros(1, requires_grad=True)
#     b = torch.zeros(1, requires_grad=True)
#     optimizer = torch.optim.SGD([w], lr=lr)
#     losses = []
#     for _ in range(steps):
#         prediction = x * w + b
#         loss = (prediction - y).square().mean()
#         optimizer.step()
#         loss.backward()
#         losses.append(loss)
#     return w.item(), b.item(), losses
# ```
#
# It runs, and there are five mistakes in it. Write `mended_fit(x, y, steps, lr)`, which returns
# `(w, b, losses)`: two floats, and a list of floats. The list has one loss for each step, the loss
# before that step changed anything. There may be no steps at all. Neither `x` nor `y` may be
# changed. How you do it is up to you: with an optimizer, without one, or with gradients that you
# have worked out on paper.
#
# <details><summary>Where do I look?</summary>
#
# Print the shape of everything, once. Then say, for each of the five lines of a step, what it reads
# and what it leaves for the next line.
# </details>
# <details><summary>What can I compare it with?</summary>
#
# For points on the line y = 2x + 1, w and b go to 2 and 1, and the loss goes to 0. And you can
# compute one step from w = b = 0 by hand: the gradient of b is minus twice the mean of y.
# </details>

# %% solution="mended_fit"
def mended_fit(
    x: torch.Tensor, y: torch.Tensor, steps: int, lr: float
) -> tuple[float, float, list[float]]:
    """Slope, intercept, and the loss before each step, from `x` (N, 1) and `y` (N,)."""
    ### BEGIN SOLUTION
    w = torch.zeros(1, requires_grad=True)
    b = torch.zeros(1, requires_grad=True)
    optimizer = torch.optim.SGD([w, b], lr=lr)
    losses = []
    for _ in range(steps):
        loss = F.mse_loss(x[:, 0] * w + b, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    w, b = w.item(), b.item()
    return w, b, losses
    ### END SOLUTION

# %%
x = torch.linspace(-1, 1, 5).reshape(5, 1)
w, b, losses = mended_fit(x, 2 * x[:, 0] + 1, 1, 0.1)
expect_close("one step", (w, b), (0.2, 0.2), rtol=1e-5)
w, b, losses = mended_fit(x, 2 * x[:, 0] + 1, 200, 0.1)
expect_close("two hundred", (w, b), (2.0, 1.0), rtol=1e-4)
expect_close("the losses of the first two", losses[:2], [3.0, 2.26], rtol=1e-5)

# %% test="mended_fit" points=3
# Graded
check("mended_fit")
x = torch.linspace(-1, 1, 5).reshape(5, 1)
expect_equal("no steps", mended_fit(x, x[:, 0], 0, 0.1), (0.0, 0.0, []))
### BEGIN HIDDEN TESTS
verify("mended_fit", mended_fit)
### END HIDDEN TESTS

# %% [markdown]
# ## 4 · Two optimizers by hand
#
# *Medium, 30 minutes, 5 points: two for SGD, without and with memory; two for AdamW, its first step
# and its later steps; one for parameters without a gradient.*
# From the lesson: [What the optimizer remembers](../../notebooks/07_training.ipynb#cell-id=what-the-optimizer-remembers).
#
# Both functions get `params`, a list of tensors, and `grads`, a list with an entry for each step.
# Each entry is a list with the gradient of each parameter. They return a list of the parameters
# after all steps, and they change none of their inputs: no tensor, and no list. With g the gradient
# and p a parameter:
#
# - `sgd(params, grads, lr, momentum, weight_decay)` adds `weight_decay * p` to g. In a parameter's
#   first step its memory is that sum; after that, the memory is `momentum` times the memory before,
#   plus that sum. Then p loses `lr` times the memory.
# - `adamw(params, grads, lr, betas, eps, weight_decay)` first takes `lr * weight_decay * p` off p.
#   Two memories begin at 0: m is a running mean of g, with `betas[0]`, and v is a running mean of
#   g², with `betas[1]`; in both, the new value has the weight 1 - β. Because both begin at 0, they
#   are corrected: in the parameter's step number t, counted from 1, m̂ is m and v̂ is v, each
#   divided by 1 - βᵗ with its own β. Then p loses `lr` times m̂ divided by √v̂ + `eps`.
#
# If a gradient is `None`, the parameter and its memory stay as they are in that step, and the step
# does not count for this parameter. Parameters have any shape, and are float32 or float64. Work by
# hand, without `torch.optim`. The check below shows that torch gives the same numbers.
#
# <details><summary>What must be remembered?</summary>
#
# Each parameter has its own memory. SGD remembers one tensor. AdamW remembers two tensors, and how
# many steps this parameter has made.
# </details>
# <details><summary>The order within AdamW's step</summary>
#
# First comes the decay, on p itself and not on g. Then come the two running means, with the
# unchanged g. Then come the two corrections, which do not change the memories. Take the root of the
# corrected v, and add `eps` after that.
# </details>

# %% solution="optimizers"
def sgd(params: list, grads: list, lr: float, momentum: float, weight_decay: float) -> list:
    """The parameters after a step for each entry of `grads`."""
    ### BEGIN SOLUTION
    params = [p.clone() for p in params]
    memory = [None] * len(params)
    for step in grads:
        for i, g in enumerate(step):
            if g is not None:
                g = g + weight_decay * params[i]
                memory[i] = g if memory[i] is None else momentum * memory[i] + g
                params[i] = params[i] - lr * memory[i]
    return params
    ### END SOLUTION


def adamw(
    params: list, grads: list, lr: float, betas: tuple, eps: float, weight_decay: float
) -> list:
    """The parameters after a step for each entry of `grads`."""
    ### BEGIN SOLUTION
    params = [p.clone() for p in params]
    m = [torch.zeros_like(p) for p in params]
    v = [torch.zeros_like(p) for p in params]
    t = [0] * len(params)
    for step in grads:
        for i, g in enumerate(step):
            if g is not None:
                t[i] += 1
                p = params[i] * (1 - lr * weight_decay)
                m[i] = betas[0] * m[i] + (1 - betas[0]) * g
                v[i] = betas[1] * v[i] + (1 - betas[1]) * g * g
                mean = m[i] / (1 - betas[0] ** t[i])
                root = (v[i] / (1 - betas[1] ** t[i])).sqrt()
                params[i] = p - lr * mean / (root + eps)
    return params
    ### END SOLUTION

# %%
p = [torch.tensor([1.0, -2.0]), torch.tensor([[3.0]])]
g = [[torch.tensor([0.5, 0.25]), torch.tensor([[1.0]])], [torch.tensor([-1.0, 2.0]), None]]
theirs = [torch.nn.Parameter(t.clone()) for t in p]
optimizer = torch.optim.SGD(theirs, lr=0.1, momentum=0.9, weight_decay=0.01)
for step in g:
    for parameter, gradient in zip(theirs, step):
        parameter.grad = gradient
    optimizer.step()
expect_close("SGD", sgd(p, g, 0.1, 0.9, 0.01), [t.detach() for t in theirs])
expect_close(
    "AdamW, one step", adamw(p, g[:1], 0.1, (0.9, 0.99), 1e-8, 0.0)[0], torch.tensor([0.9, -2.1])
)

# %%
theirs = [torch.nn.Parameter(t.clone()) for t in p]
optimizer = torch.optim.AdamW(theirs, lr=0.1, betas=(0.9, 0.99), eps=1e-2, weight_decay=0.5)
for step in g:
    for parameter, gradient in zip(theirs, step):
        parameter.grad = gradient
    optimizer.step()
expect_close("AdamW", adamw(p, g, 0.1, (0.9, 0.99), 1e-2, 0.5), [t.detach() for t in theirs])
expect_equal("what they were given", p, [torch.tensor([1.0, -2.0]), torch.tensor([[3.0]])])

# %% test="optimizers" points=5
# Graded
check("optimizers")
p, g = (
    [torch.tensor([1.0, -2.0]), torch.tensor([[3.0]])],
    [[torch.tensor([0.5, 0.25]), torch.tensor([[1.0]])]],
)
expect_close(
    "SGD without memory",
    sgd(p, g, 0.5, 0.0, 0.0),
    [torch.tensor([0.75, -2.125]), torch.tensor([[2.5]])],
)
### BEGIN HIDDEN TESTS
verify("optimizers", sgd=sgd, adamw=adamw)
### END HIDDEN TESTS

# %% [markdown]
# ## 5 · How large a step?
#
# *Further, easy, 25 minutes, 4 points: one for the warm-up, one for the cosine, one for clipping,
# one for what must not be clipped.*
# From the lesson: [How far to step](../../notebooks/07_training.ipynb#cell-id=how-far-to-step).
#
# `lr_at(step, steps, warmup, peak, floor)` is the learning rate of a step, a float. Steps are counted
# from 0, and there are `steps` of them.
#
# - In the first `warmup` steps the rate rises by the same amount in each step. It is `peak /
#   warmup` in step 0, and `peak` in step `warmup - 1`. There may be no warm-up.
# - From step `warmup`, where it is `peak`, the rate follows half a cosine down to `floor`, which it
#   reaches in the last step, `steps - 1`. There are at least two steps after the warm-up.
# - After the last step the rate is `floor`.
#
# `clip(grads, max_norm)` gets a list of float32 gradients of any shapes. Some of them may be
# `None`; if all are `None`, the norm is 0. It returns `(norm, clipped)`:
#
# - `norm`, a float, is the norm of all their numbers together, as if they were one long vector;
# - `clipped` is a list of the gradients, all multiplied by the same factor, so that their norm is
#   not larger than `max_norm`. Gradients that are small enough keep their values. A `None` stays
#   `None`.
# - If the norm is not finite, `clipped` is `None`, because such a step should be skipped.
#
# `clip` changes none of its inputs, neither a tensor nor the list.
#
# <details><summary>Half a cosine?</summary>
#
# `(1 + math.cos(math.pi * t)) / 2` goes from 1 to 0 while t goes from 0 to 1. Which t belongs to
# step `warmup`, and which to the last one? Then stretch the curve between `peak` and `floor`.
# </details>
# <details><summary>Which factor?</summary>
#
# The factor is `max_norm / norm`, if that is below 1. And take care of a norm of 0.
# </details>

# %% solution="schedule"
def lr_at(step: int, steps: int, warmup: int, peak: float, floor: float) -> float:
    """The learning rate of a step, counted from 0."""
    ### BEGIN SOLUTION
    if step < warmup:
        return peak * (step + 1) / warmup
    done = min(1.0, (step - warmup) / (steps - 1 - warmup))
    return floor + (peak - floor) * (1 + math.cos(math.pi * done)) / 2
    ### END SOLUTION


def clip(grads: list, max_norm: float) -> tuple[float, list | None]:
    """The norm of all gradients together, and the gradients, no longer than `max_norm`."""
    ### BEGIN SOLUTION
    norm = math.sqrt(sum(g.double().square().sum().item() for g in grads if g is not None))
    if not math.isfinite(norm):
        return norm, None
    factor = max_norm / norm if norm > max_norm else 1.0
    return norm, [None if g is None else g * factor for g in grads]
    ### END SOLUTION

# %%
expect_close(
    "four steps of warm-up", [lr_at(s, 9, 4, 1.0, 0.1) for s in range(4)], [0.25, 0.5, 0.75, 1.0]
)
expect_close(
    "down again",
    [lr_at(s, 9, 4, 1.0, 0.2) for s in range(4, 9)],
    [1.0, 0.8828427, 0.6, 0.3171573, 0.2],
)
expect_close("and on", lr_at(20, 9, 4, 1.0, 0.2), 0.2)
g = [torch.tensor([3.0, 0.0]), None, torch.tensor([[4.0]])]
expect_close(
    "their norm is 5", clip(g, 1.0), (5.0, [torch.tensor([0.6, 0.0]), None, torch.tensor([[0.8]])])
)
expect_equal("small enough", clip(g, 7.0)[1], g)

# %% test="schedule" points=4
# Graded
check("schedule")
expect_equal(
    "infinitely large", clip([torch.tensor([float("inf"), 1.0])], 1.0), (float("inf"), None)
)
### BEGIN HIDDEN TESTS
verify("schedule", lr_at=lr_at, clip=clip)
### END HIDDEN TESTS

# %% [markdown]
# ## 6 · A big batch in pieces
#
# *Further, medium, 20 minutes, 3 points: one for parts of unequal size, one for the gradients that
# were there before, one for memory.*
# From the lesson: [A big batch in pieces](../../notebooks/07_training.ipynb#cell-id=a-big-batch-in-pieces).
#
# The batch that you want does not fit into memory, but its parts do, one by one. Write
# `accumulate(model, parts)`, where `parts` is a list of pairs `(x, targets)`: `model(x)` gives
# logits (N, V), and `targets` (N,) has the class of each row, or -100 if a row counts for nothing.
# N differs from part to part. Afterwards the `.grad` of each parameter must be the same as after
# one big batch: the gradient of the mean cross-entropy over all rows that count, in all parts
# together. What was in `.grad` before must be gone. The function returns this mean, a float. No
# part may be changed.
#
# There may be parts in which no row counts, but at least one row counts in all parts together. Call
# the model once for each part, with all its rows, in their order, and let only one part's graph be
# alive at a time. Your own process says whether that is so.
#
# <details><summary>The mean of the means?</summary>
#
# It is right only if all parts have the same number of rows that count. Weight each part by its
# share: sums can be added, and the number of rows that count is known before you begin.
# </details>
# <details><summary>When does a graph die?</summary>
#
# A graph is freed after `backward` has gone through it. So call `backward` for each part before the
# next part begins, and keep only the loss as a number.
# </details>

# %% solution="accumulate"
def accumulate(model: torch.nn.Module, parts: list) -> float:
    """The loss of all parts together; its gradients are left in the model's parameters."""
    ### BEGIN SOLUTION
    counted = sum(int((targets != -100).sum()) for _, targets in parts)
    model.zero_grad()
    total = 0.0
    for x, targets in parts:
        loss = F.cross_entropy(model(x), targets, reduction="sum") / counted
        loss.backward()
        total += loss.item()
    return total
    ### END SOLUTION

# %%
weights = [
    torch.tensor([[0.5, -1.0], [1.0, 0.25]]),
    torch.tensor([[1.0, 0.0, -1.0], [0.5, 1.0, 0.0]]),
]
parts = [
    (torch.tensor([[1.0, 2.0], [0.0, 1.0], [-1.0, 0.5]]), torch.tensor([0, 2, 1])),
    (torch.tensor([[2.0, -1.0], [0.5, 0.5]]), torch.tensor([-100, 2])),
]
x, targets = (torch.cat(both) for both in zip(*parts))
whole = [w.clone().requires_grad_() for w in weights]
loss = F.cross_entropy((x @ whole[0]).tanh() @ whole[1], targets)
loss.backward()
came = driver.accumulated(accumulate, weights, parts)
expect_close("the loss", came["loss"], loss.item(), rtol=1e-5)
expect_close("the gradients", came["gradients"], [w.grad for w in whole], rtol=1e-4)
expect_equal("graphs of earlier parts", came["alive"], 0)

# %% test="accumulate" points=3
# Graded
check("accumulate")
weights = [
    torch.tensor([[0.5, -1.0], [1.0, 0.25]]),
    torch.tensor([[1.0, 0.0, -1.0], [0.5, 1.0, 0.0]]),
]
x, targets = torch.tensor([[1.0, 2.0], [0.0, 1.0], [-1.0, 0.5]]), torch.tensor([0, 2, 1])
whole = [w.clone().requires_grad_() for w in weights]
F.cross_entropy((x @ whole[0]).tanh() @ whole[1], targets).backward()
parts = [(x, targets), (x, torch.full((3,), -100))]
came = driver.accumulated(accumulate, weights, parts, old=1.0)
want = [w.grad for w in whole]
expect_close("a part in which nothing counts", came["gradients"], want, rtol=1e-4)
### BEGIN HIDDEN TESTS
verify("accumulate", accumulate)
### END HIDDEN TESTS

# %% [markdown]
# ## 7 · A scale for small gradients
#
# *Further, medium, 20 minutes, 3 points: one for scaling and unscaling, one for steps that are
# skipped, one for growth.*
# From the lesson: [Sixteen bits](../../notebooks/07_training.ipynb#cell-id=sixteen-bits).
#
# In float16 a gradient of 10⁻⁸ is 0. So the loss is multiplied by a large number before `backward`,
# and the gradients are divided by it before the optimizer uses them. If the number is too large,
# the gradients overflow. Nobody knows the right number, so it is found during training. Write the
# class `Scaler(scale, growth, backoff, interval)`:
#
# - `scaler.scale` is the current number, a float that begins as `scale`;
# - `scaler.scaled(loss)` returns the loss times the scale, as a tensor on which the caller then
#   calls `backward`;
# - `scaler.unscaled(grads)` gets a list of gradients, in float16 or float32, in which some may be
#   `None`. It returns a list of the gradients in float32, divided by the scale, with `None` where a
#   `None` was. It changes none of its inputs. The division must happen in float32, because in
#   float16 small numbers would become 0 again. If any number is infinite or NaN, it returns `None`
#   instead, and this step is skipped.
#
# After a skipped step, the scale is multiplied by `backoff`. After `interval` good steps in a row,
# the scale is multiplied by `growth`. In both cases the count restarts. All of this happens in
# `unscaled`, but the gradients that it returns are divided by the scale from before.
#
# <details><summary>How do I find out whether all numbers are finite?</summary>
#
# Use `torch.isfinite(g).all()` for each gradient that is not `None`. A list without any gradient
# has no number that is infinite.
# </details>
# <details><summary>Which scale do I divide by?</summary>
#
# Divide by the scale with which the loss was multiplied. So divide first, and change the scale
# afterwards.
# </details>

# %% solution="Scaler"
class Scaler:
    """Multiplies the loss, divides the gradients, and looks for the right factor."""

    def __init__(self, scale: float, growth: float, backoff: float, interval: int):
        ### BEGIN SOLUTION
        self.scale, self.growth, self.backoff, self.interval = scale, growth, backoff, interval
        self.good = 0
        ### END SOLUTION

    def scaled(self, loss: torch.Tensor) -> torch.Tensor:
        """The loss times the scale."""
        ### BEGIN SOLUTION
        return loss * self.scale
        ### END SOLUTION

    def unscaled(self, grads: list) -> list | None:
        """The gradients divided by the scale, in float32; None if one of them is not finite."""
        ### BEGIN SOLUTION
        if not all(torch.isfinite(g).all() for g in grads if g is not None):
            self.scale *= self.backoff
            self.good = 0
            return None
        found = [None if g is None else g.float() / self.scale for g in grads]
        self.good += 1
        if self.good == self.interval:
            self.scale *= self.growth
            self.good = 0
        return found
        ### END SOLUTION

# %%
scaler = Scaler(1024.0, 2.0, 0.5, 2)
expect_equal("the loss", scaler.scaled(torch.tensor(3.0)), torch.tensor(3072.0))
weight = torch.tensor(3.0, requires_grad=True)
scaler.scaled(weight).backward()
expect_equal("what `backward` leaves in a weight", weight.grad, torch.tensor(1024.0))
small = torch.tensor([2.0**-20, 1.0], dtype=torch.float16)
expect_equal(
    "small gradients", scaler.unscaled([small, None]), [torch.tensor([2.0**-30, 2.0**-10]), None]
)
expect_equal("one that overflowed", scaler.unscaled([small, torch.tensor([float("inf")])]), None)
expect_equal("the scale", scaler.scale, 512.0)
scales = []
for _ in range(4):
    scaler.unscaled([small])
    scales.append(scaler.scale)
expect_equal("after each of four good steps in a row", scales, [512.0, 1024.0, 1024.0, 2048.0])

# %%
# torch's own, with a scaled loss in float16 under autocast
model = torch.nn.Linear(2, 1)
theirs, optimizer = (
    torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=1),
    torch.optim.SGD(model.parameters(), lr=0.1),
)
with torch.autocast("cpu", dtype=torch.float16):
    loss = model(torch.ones(3, 2)).float().mean()
theirs.scale(loss).backward()
mine = Scaler(1024.0, 2.0, 0.5, 1)
by_hand = mine.unscaled([p.grad.clone() for p in model.parameters()])
theirs.unscale_(optimizer)
expect_close("unscaled", by_hand, [p.grad for p in model.parameters()])
theirs.step(optimizer)
theirs.update()
expect_equal("the scale", mine.scale, theirs.get_scale())

# %% test="Scaler" points=3
# Graded
check("Scaler")
expect_equal("no gradient at all", Scaler(8.0, 2.0, 0.5, 3).unscaled([None]), [None])
### BEGIN HIDDEN TESTS
verify("Scaler", Scaler)
### END HIDDEN TESTS

# %% [markdown]
# ## 8 · Stop and go on
#
# *Hard, 30 minutes, 5 points: one each for a stop between epochs, for a stop within an epoch, for
# dropout, for a checkpoint that stays in memory, and for a checkpoint that goes through a file.*
# From the lesson: [Stop and go on](../../notebooks/07_training.ipynb#cell-id=stop-and-go-on).
#
# `Trainer` in `utils/drivers/training.py` is a whole training run in forty lines: read it first. Then
# write two functions:
#
# - `checkpoint(trainer)` returns everything that is needed to go on later, preferably in a dict;
# - `resume(trainer, saved)` puts it into another trainer. This trainer was made with the same data
#   and sizes but *another seed*, and it has already trained a little. From there on it must do, bit
#   for bit, what the first trainer did after its checkpoint: the same losses, the same weights.
#
# A run is not alone in its process: other code takes random numbers between two steps. Taking a
# checkpoint must change nothing: the run goes on as if there were no checkpoint. And a checkpoint
# in memory must stay as it was, even after a trainer has resumed from it, so that it can be used
# again. A checkpoint is written with `torch.save` and read with `torch.load(...,
# weights_only=True)`, which accepts tensors, numbers, strings, `None`, and dicts, lists and tuples
# of them. It refuses objects of classes that it doesn't know. Grading changes some of the numbers
# in a checkpoint, and a trainer that resumes from it must go on with the changed numbers.
#
# <details><summary>What belongs in it?</summary>
#
# Everything that a step reads and that an earlier step has changed. Go through `step` line by line:
# most of it belongs to the trainer, but one thing does not.
# </details>
# <details><summary>It is right through a file, and wrong in memory</summary>
#
# `state_dict()` returns the same tensors into which the next step writes, and `load_state_dict` may
# keep the tensors that it gets. A file contains a copy. Without a file, `copy.deepcopy` makes one.
# </details>

# %% solution="checkpoint"
def checkpoint(trainer: driver.Trainer) -> dict:
    """Everything that is needed to go on from here."""
    ### BEGIN SOLUTION
    return copy.deepcopy(
        {
            "model": trainer.model.state_dict(),
            "optimizer": trainer.optimizer.state_dict(),
            "schedule": trainer.schedule.state_dict(),
            "generator": trainer.generator.get_state(),
            "order": trainer.order,
            "position": trainer.position,
            "dice": torch.get_rng_state(),
        }
    )
    ### END SOLUTION


def resume(trainer: driver.Trainer, saved: dict) -> None:
    """Bring a trainer to the point at which the checkpoint was taken."""
    ### BEGIN SOLUTION
    saved = copy.deepcopy(saved)
    trainer.model.load_state_dict(saved["model"])
    trainer.optimizer.load_state_dict(saved["optimizer"])
    trainer.schedule.load_state_dict(saved["schedule"])
    trainer.generator.set_state(saved["generator"])
    trainer.order, trainer.position = saved["order"], saved["position"]
    torch.set_rng_state(saved["dice"])
    ### END SOLUTION

# %%
both = {"checkpoint": checkpoint, "resume": resume}
data = {
    "x": torch.linspace(-1, 1, 24).reshape(8, 3),
    "y": torch.linspace(0, 1, 8).reshape(8, 1),
    "seed": 3,
}
came = driver.stopped(both, data, 4, 5, "a copy")
expect_equal("between two epochs: losses", came["resumed"]["losses"], came["whole"]["losses"])
expect_equal("and weights", came["resumed"]["weights"], came["whole"]["weights"])
came = driver.stopped(both, data, 3, 4, "a copy")
expect_equal("within an epoch", came["resumed"]["losses"], came["whole"]["losses"])
came = driver.stopped(both, data | {"dropout": 0.5}, 2, 4, "a file")
expect_equal("with dropout, through a file", came["resumed"]["losses"], came["whole"]["losses"])

# %% test="checkpoint" points=5
# Graded
check("checkpoint")
both = {"checkpoint": checkpoint, "resume": resume}
x, y = torch.linspace(-1, 1, 24).reshape(8, 3), torch.linspace(0, 1, 8).reshape(8, 1)
data = {"x": x, "y": y, "seed": 3}
came = driver.stopped(both, data, 2, 5, "memory")
expect_equal("kept in memory", came["resumed"]["losses"], came["whole"]["losses"])
### BEGIN HIDDEN TESTS
verify("checkpoint", checkpoint=checkpoint, resume=resume)
### END HIDDEN TESTS

# %% [markdown]
# ## 9 · The whole loop, on an empty page
#
# *Hard, 45 minutes, 7 points: one each for plain steps, for batches in parts, for clipping, for
# sixteen bits, for a step that overflows, for the loss on held-out data, and for the curves of a
# MiniGPT. Your own process says which modes, dtypes and graphs there were.*
# From the lesson: [Sixteen bits](../../notebooks/07_training.ipynb#cell-id=sixteen-bits).
#
# You have built the parts of a training run one by one. Now write the whole loop in one function,
# as you will write it for years, with all of torch's tools: `fit(model, epochs, held_out, lr,
# warmup, max_norm, dtype, scale)`. It trains `model` in place and returns a dict of four lists,
# `"losses"`, `"norms"`, `"rates"` and `"held out"`.
#
# `epochs` is a list of epochs, an epoch is a list of steps, and a step is a list of parts `(x,
# targets)` as in exercise 6: `model(x)` gives logits (N, V), and a target of -100 counts for
# nothing. There may be parts in which no row counts, but in each step at least one row counts. Call
# the model once for each part, in their order, in training mode. When you get the model it may be
# in another mode.
#
# - **Sixteen bits.** In training the model must run under autocast on the CPU with `dtype`. If
#   `dtype` is `torch.float32`, it must run without autocast. Weights must stay float32, and the
#   loss must be computed in float32.
# - **Loss.** The loss of a step is the mean cross-entropy over all rows that count, in all its
#   parts together. `"losses"` has this number of each step, never multiplied by the scale. A step
#   that is left out has its loss in the list, too.
# - **Scale.** With `torch.float16`, and no other dtype, the loss is multiplied by a scale before
#   `backward`, and the gradients are divided by it before anything else uses them. The scale begins
#   as `scale`. If a gradient of any part is not finite, the whole step is left out: no weight
#   changes, and the optimizer's memory doesn't change either. From then on the scale is halved.
#   Nothing else changes the scale. (After 2,000 good steps in a row `GradScaler` would double it,
#   but a run has fewer steps.)
# - **Clipping.** If the norm of all gradients of the step together is larger than `max_norm`, the
#   gradients are scaled down to this norm. `"norms"` has the norm before clipping, and `None` for a
#   step that was left out.
# - **Step.** SGD with a momentum of 0.9, as `torch.optim.SGD` computes it. The rate of the run's
#   t-th step is `lr * min(1, t / warmup)`. Steps are counted from 1, through all epochs, and a step
#   that is left out counts as well. `"rates"` has the rate of each step. `warmup` is 1 or more.
# - **Held out.** After each epoch `"held out"` gets the mean cross-entropy over all rows that count
#   in `held_out`, a list of parts. Call the model once for each part, in evaluation mode, without a
#   graph, without autocast.
#
# The last model is a MiniGPT. Its x are lines of tokens, (B, T), so N is B · T. Its losses in
# parts, and under bfloat16 or float16, must be in a *band* around its losses with whole batches in
# float32. [The lesson](../../notebooks/07_training.ipynb#cell-id=the-same-curve) derives this band.
#
# All numbers in the lists must be floats. At the end the model may be in either mode, and `.grad`
# may contain anything.
#
# <details><summary>In which order?</summary>
#
# In each step, first clear the gradients. For each part, run forward and backward. After the last
# part, unscale, measure and clip, make the step, and update the scale. Then set the rate of the
# next step. `GradScaler` looks for numbers that are not finite when it unscales.
# </details>
# <details><summary>What does torch have for each line?</summary>
#
# `torch.autocast("cpu", dtype=..., enabled=...)`, `torch.amp.GradScaler("cpu", init_scale=...,
# enabled=...)`, `nn.utils.clip_grad_norm_`, which returns the norm,
# `torch.optim.lr_scheduler.LambdaLR` (it warns if the very first step is left out, which is
# harmless), and `F.cross_entropy(..., reduction="sum")`.
# </details>

# %% solution="fit"
def fit(
    model: torch.nn.Module,
    epochs: list,
    held_out: list,
    lr: float,
    warmup: int,
    max_norm: float,
    dtype: torch.dtype,
    scale: float,
) -> dict[str, list]:
    """Train the model; return what happened in each step and each epoch."""
    ### BEGIN SOLUTION
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda done: min(1, (done + 1) / warmup)
    )
    scaler = torch.amp.GradScaler("cpu", init_scale=scale, enabled=dtype is torch.float16)
    log = {"losses": [], "norms": [], "rates": [], "held out": []}
    for steps in epochs:
        model.train()
        for parts in steps:
            counted = count(parts)
            optimizer.zero_grad()
            total = 0.0
            for x, targets in parts:
                with torch.autocast(  # shown
                    "cpu", dtype=dtype, enabled=dtype is not torch.float32
                ):
                    logits = model(x)
                loss = F.cross_entropy(logits.float(), targets, reduction="sum") / counted
                scaler.scale(loss).backward()
                total += loss.item()
            scaler.unscale_(optimizer)  # shown
            norm = torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm).item()
            log["losses"].append(total)
            log["norms"].append(norm if math.isfinite(norm) else None)
            log["rates"].append(schedule.get_last_lr()[0])
            scaler.step(optimizer)
            scaler.update()
            schedule.step()
        log["held out"].append(mean_loss(model, held_out))
    return log


def count(parts: list) -> int:
    return sum(int((targets != -100).sum()) for _, targets in parts)


@torch.no_grad()
def mean_loss(model: torch.nn.Module, parts: list) -> float:
    model.eval()
    losses = [F.cross_entropy(model(x), targets, reduction="sum").item() for x, targets in parts]
    return sum(losses) / count(parts)
    ### END SOLUTION

# %%
weights = [
    torch.tensor([[0.5, -1.0], [1.0, 0.25]]),
    torch.tensor([[1.0, 0.0, -1.0], [0.5, 1.0, 0.0]]),
]
first = [(torch.tensor([[1.0, 2.0], [0.0, 1.0], [-1.0, 0.5]]), torch.tensor([0, 2, 1]))]
second = [
    (torch.tensor([[2.0, -1.0]]), torch.tensor([-100])),
    (torch.tensor([[0.5, 0.5], [1.0, 0.0]]), torch.tensor([2, 0])),
]
settings = {
    "epochs": [[first, second], [first]],
    "held_out": second,
    "lr": 0.4,
    "warmup": 2,
    "max_norm": 10.0,
}
came = driver.fitted(fit, weights, 0.0, {**settings, "dtype": torch.float32, "scale": 1.0}, 0)
expect_close("the rates", came["returned"]["rates"], [0.2, 0.4, 0.4])
leaves = [w.clone().requires_grad_() for w in weights]
loss = F.cross_entropy((first[0][0] @ leaves[0]).tanh() @ leaves[1], first[0][1])
loss.backward()
expect_close("the first loss", came["returned"]["losses"][0], loss.item(), rtol=1e-5)
expect_close("losses", came["returned"]["losses"], [1.10738, 1.15034, 0.93900], rtol=1e-4)
expect_close("held out", came["returned"]["held out"], [1.04181, 0.91778], rtol=1e-4)
expect_close(
    "its norm",
    came["returned"]["norms"][0],
    torch.cat([w.grad.flatten() for w in leaves]).norm().item(),
    rtol=1e-5,
)
expect_equal(
    "calls: training, a graph",
    [call[:2] for call in came["calls"]],
    [(True, True)] * 3 + [(False, False)] * 2 + [(True, True)] + [(False, False)] * 2,
)

# %%
tight = driver.fitted(
    fit,
    weights,
    0.0,
    {**settings, "epochs": [[first]], "max_norm": 0.1, "dtype": torch.float32, "scale": 1.0},
    0,
)
went = torch.cat([(a - b).flatten() for a, b in zip(tight["weights"], weights)]).norm().item()
expect_close("clipped to 0.1, at a rate of 0.2", went, 0.02, rtol=1e-4)
large = driver.fitted(fit, weights, 0.0, {**settings, "dtype": torch.float16, "scale": 2.0**24}, 0)
expect_equal("overflowed", large["returned"]["norms"][0], None)
expect_equal(
    "dtypes of logits",
    [str(call[2]) for call in large["calls"][:4]],
    ["torch.float16"] * 3 + ["torch.float32"],
)

# %%
inputs, targets = driver.sentences(*training_lines(), columns=18)  # the lines that are not longer
x, wanted = driver.sentences(*evaluation_lines(held_out=True), columns=18)
config = MiniGPTConfig(d_model=32, n_heads=2, n_layers=1, d_ff=64, context=18)


def minigpt(dtype, steps, cuts, lr=0.05, max_norm=1.0):
    """What `fit` returns for a new MiniGPT; `cuts` are the numbers of lines in a step's parts."""
    epochs = [driver.steps_of_lines(inputs, targets, steps, cuts, 0)]
    run = {
        "epochs": epochs,
        "held_out": [(x, wanted.flatten())],
        "lr": lr,
        "warmup": 10,
        "max_norm": max_norm,
    }
    return driver.minigpt_fitted(fit, config, {**run, "dtype": dtype, "scale": 1024.0}, 0)


whole, ragged = [16], [9, 5, 2]
runs = {
    "float32": minigpt(torch.float32, 16, whole),
    "float32, in parts": minigpt(torch.float32, 16, ragged),
    "bfloat16": minigpt(torch.bfloat16, 16, whole),
    "float16, in parts": minigpt(torch.float16, 16, ragged),
}
units = {"float32, in parts": 2.0**-24, "bfloat16": 2.0**-8, "float16, in parts": 2.0**-11}
bands = {name: driver.band(runs["float32"], unit, 1.0, 0.9) for name, unit in units.items()}
losses = {name: run["losses"] for name, run in runs.items()}
loss_curves(losses, bands=bands)
for name, band in bands.items():
    pairs = zip(losses["float32"], losses[name], band)
    expect_equal(f"{name}: in its band", all(abs(a - b) <= width for a, b, width in pairs), True)

# %%
mine = math.exp(minigpt(torch.float32, 300, [64], lr=0.5, max_norm=0.5)["held out"][0])
rivals = baselines()["combinations held out"]
print(
    f"held out, after 300 steps: {mine:.2f}; trigram {rivals['trigram']:.2f}, 5-gram "
    f"{rivals['fivegram']:.2f}"
)
expect_equal("below both", mine < rivals["fivegram"], True)

# %% test="fit" points=7
# Graded
check("fit")
weights, part = [torch.eye(2), torch.eye(2)], (torch.eye(2), torch.tensor([0, 1]))
run = {"epochs": [[[part], [part]], [[part]]], "held_out": [part], "lr": 0.4, "warmup": 2}
run |= {"max_norm": 1.0, "dtype": torch.float32, "scale": 1.0}
came = driver.fitted(fit, weights, 0.0, run, 0)["returned"]
lengths = [len(came[key]) for key in ("losses", "norms", "rates", "held out")]
expect_equal("three for each step, two for the epochs", lengths, [3, 3, 3, 2])
### BEGIN HIDDEN TESTS
verify("fit", fit)
### END HIDDEN TESTS

# %% [markdown]
# ## 10 · A run that may be killed
#
# *Further, hard, 40 minutes, 5 points: one each for a run that is never killed, for a run that is
# killed between two steps, for one that is killed within a step or while it writes, for steps that
# are not done again, and for batches that are moved to the device. For the last two points, your
# own process says how many steps and moves there were.*
# From the lesson: [One thing left out](../../notebooks/07_training.ipynb#cell-id=one-thing-left-out).
#
# `Run` in `utils/drivers/killing.py` has the pieces of a training run: model, optimizer, schedule,
# scaler and loader. Its `run.step(x, targets)` does one whole step in 16 bits, and returns a dict of
# three floats. Read the class first, and the class `Noisy` above it: each time an item is read, it
# gets other noise from torch's global generator.
#
# The run's process may be killed at any moment, without a warning. Only one file is left of it.
# Write the loop around the pieces: `keep_training(run, epochs, device, file)`, where `file` is a
# `Path`. All its batches go through `run.step`.
#
# - **Training.** An epoch is one `for` over `run.loader`, until the loader itself ends it. Train
#   until the run has `epochs` epochs, 1 or more, with those of earlier processes. Return a list
#   with what each step returned, from the first step of the run on. The steps of earlier processes
#   are in it, too.
# - **Writing.** After each step, write everything that is needed to go on into `file`, with
#   `torch.save`. If the process is killed while it writes, the file of the step before must still
#   be there, and whole.
# - **Going on.** If `file` exists, an earlier process wrote it, and you go on with that process's
#   run. Your own `run` is new and has another seed. (If no step was done yet, it has the same seed,
#   so you need no file before the first step.) In the end the list and the weights of `run.model`
#   must be, bit for bit, those of a run that was never killed. A step that is in the file must not
#   be done again. There may be no step left, and a later process may ask for more epochs than an
#   earlier one, but never for fewer.
# - **Moving.** Before a step, move its x and its targets to `device`, each of them once. Move
#   nothing else: the model is on the device already, and batches that are only skipped need no
#   device.
#
# `killing.killed(keep_training, data, calls, fake)` calls your function again and again, each time as
# if in a new process; its docstring says more. A kill is an exception, `Killed`. After it, nothing can
# be saved any more. The device is the CPU, or a fake: torch's meta device, whose tensors have no
# data for you. The driver keeps the data and counts what is moved.
#
# <details><summary>Where in an epoch am I?</summary>
#
# The order of an epoch is drawn from `run.loader.generator` when the epoch begins. So save the state
# that the generator had at that moment, and how many batches were used since then. To go on, set
# this state, begin the epoch, and skip that number of batches. A skipped batch is read, and reading
# draws noise. So restore torch's global generator only after that.
# </details>
# <details><summary>How does the old file stay whole?</summary>
#
# Write to another file in the same folder, such as `file.with_suffix(".new")`. If it is complete,
# `os.replace` puts it in the place of the old file, completely or not at all.
# </details>

# %% solution="keep_training"
def keep_training(run: killing.Run, epochs: int, device: torch.device, file: Path) -> list[dict]:
    """Train, or go on from the file; return what each step of the run returned."""
    ### BEGIN SOLUTION
    parts = {name: getattr(run, name) for name in ("model", "optimizer", "schedule", "scaler")}
    log, first, used = [], 0, 0
    if file.exists():
        saved = torch.load(file)
        for name, part in parts.items():
            part.load_state_dict(saved[name])
        log, first, used = saved["log"], saved["epoch"], saved["used"]
        run.loader.generator.set_state(saved["begin"])
    for epoch in range(first, epochs):
        begin = run.loader.generator.get_state()
        batches = iter(run.loader)
        if used:
            for _ in range(used):
                next(batches)
            torch.set_rng_state(saved["dice"])
        for x, targets in batches:
            log.append(run.step(x.to(device), targets.to(device)))
            used += 1
            state = {name: part.state_dict() for name, part in parts.items()}
            state |= {"log": log, "epoch": epoch, "used": used, "begin": begin}
            state["dice"] = torch.get_rng_state()
            torch.save(state, file.with_suffix(".new"))
            os.replace(file.with_suffix(".new"), file)
        used = 0
    return log
    ### END SOLUTION

# %%
data = {
    "x": torch.linspace(-1, 1, 14).reshape(7, 2),
    "targets": torch.tensor([0, 1, 2, 0, 1, 2, 1]),
    "seed": 3,
}
whole = killing.killed(keep_training, data, [(2, None)], fake=False)
expect_equal("three steps for each epoch", whole["done"], [6])
expect_equal("what the steps return", sorted(whole["log"][0]), ["loss", "rate", "scale"])
came = killing.killed(keep_training, data, [(2, ("step", 3)), (2, None)], fake=False)
expect_equal("killed when the third step begins", came["log"], whole["log"])
expect_equal("the weights", came["weights"], whole["weights"])
expect_equal("two steps were in the file", came["done"], [3, 4])

# %%
came = killing.killed(keep_training, data, [(2, ("file", 5)), (2, None)], fake=False)
expect_equal("killed when half of the fifth file is written", came["log"], whole["log"])
came = killing.killed(keep_training, data, [(2, None)], fake=True)
expect_equal("all that a step gets is on the device", came["there"], [(True, True)] * 6)
expect_equal("moved to the device", came["moves"], [12])

# %% test="keep_training" points=5
# Graded
check("keep_training")
data = {"x": torch.eye(4), "targets": torch.tensor([0, 1, 2, 0]), "seed": 1, "batch_size": 2}
whole = killing.killed(keep_training, data, [(2, None)], fake=False)
came = killing.killed(keep_training, data, [(2, ("batch", 3)), (2, None)], fake=False)
expect_equal("killed between two epochs", came["log"], whole["log"])
### BEGIN HIDDEN TESTS
verify("keep_training", keep_training)
### END HIDDEN TESTS

# %% [markdown]
# ## 11 · Eight questions about a script
#
# *Further, medium, 30 minutes, 4 points: half a point for each question.*
# From the lesson: [Reading nanoGPT's train.py](../../notebooks/07_training.ipynb#cell-id=reading-nanogpts-train-py).
#
# Before somebody pays for eight GPUs, you should know what a script will do. Read
# [`train.py`](https://github.com/karpathy/nanoGPT/blob/93a43d9a5c22450bbf06e78da2cb6eeef084b717/train.py)
# of nanoGPT. (If you have no network, the lesson's table says in words what its lines do.) Then
# write eight functions. Each answers a question about some lines of the script.
#
# `run` is a dict with settings of the script by their names, such as `run["batch_size"]`, and with
# the values from the command line: no line has changed them yet. It has all settings on which the
# answer can depend in any run, and sometimes more. Unless a question says something else, the run
# is new. If there are several processes, `torchrun` has started them on one machine, and
# `gradient_accumulation_steps` is a multiple of their number. If there is one process, it was
# started without `torchrun`. No function may change a dict or a list that it gets.
#
# - `tokens(run, processes)`, lines 82 to 101: with how many tokens does the model train in an
#   iteration? Return the number of all processes together, and the number of each process.
# - `steps(run, first)`, lines 231 to 242 and 255 to 333: how many steps does the optimizer make,
#   and which learning rate does the last of them have? Return an int and a float, or `(0, None)`.
#   `first` is the iteration at which the run begins: 0 in a new run, or more in a run that
#   continues from a checkpoint.
# - `precision(run, processes)`, lines 82 to 112, 196 and 300: which dtype do the matrix products of
#   the forward in line 300 return, and does the scaler do anything? Return a text, such as
#   `"float32"`, and a bool. With several processes or with `"float16"`, the machine has CUDA, even
#   if the device is `"cpu"`.
# - `gradient(run, scale, gradients)`, lines 95 and 292 to 311: with which gradient does the
#   optimizer make its step? The model has a single parameter, and this is a single number. In process r and
#   micro step m, `gradients[r][m]` is the gradient of the loss that the model returns in line 300.
#   `scale` is the scaler's scale. Nothing overflows. Return a float.
# - `printed(run, iteration, losses)`, lines 292 to 327: which loss does the script print at the
#   end of this iteration? In process r and micro step m, `losses[r][m]` is the loss that the model
#   returns in line 300. Return a float, or `None` if no loss is printed there.
# - `saved(run, losses)`, lines 134 to 135 and 263 to 286: what is in the file `ckpt.pt` at the
#   end? `losses` are the validation losses of all evaluations of the run, in their order. Some may
#   be NaN. Return the file's `iter_num` and its `best_val_loss`, or `None` if there is no file.
# - `batches(run, processes, rank, iteration)`, lines 95 and 215 to 311: how many batches has the
#   process with this rank got from `get_batch` when line 311 makes the step of this iteration?
# - `resumed(old, new)`, lines 147 to 202 and 257 to 260: with which values does a resumed run
#   train? It was started with the settings `old`. The checkpoint is resumed with the settings
#   `new` on the command line. Both dicts are like `run`. Return a dict with six entries: `"n_layer"`, `"dropout"`,
#   `"batch_size"`, `"learning_rate"` (the schedule's largest rate), `"weight_decay"` (of matrices)
#   and `"beta2"`.
#
# <details><summary>How do I read a loop of eighty lines?</summary>
#
# Choose small settings: two iterations, two micro steps, two processes. Go through the lines with a
# pencil and write down each variable. Each process goes through all lines, except where
# `master_process` stands in front of them.
# </details>
# <details><summary>What does an optimizer's state dict contain?</summary>
#
# Make an AdamW for one parameter, call `step`, and print `state_dict()`. `load_state_dict` restores
# everything that you see. Then look for the settings that the loop sets again in each iteration.
# </details>

# %% solution="read_script"
def tokens(run: dict, processes: int) -> tuple[int, int]:
    """The tokens of an iteration: of all processes, and of each process."""
    ### BEGIN SOLUTION
    whole = run["gradient_accumulation_steps"] * run["batch_size"] * run["block_size"]
    return whole, whole // processes
    ### END SOLUTION


def steps(run: dict, first: int) -> tuple[int, float | None]:
    """How many steps the optimizer makes, and the learning rate of the last one."""
    ### BEGIN SOLUTION
    if run["eval_only"] and first == 0:
        return 0, None
    last = max(first, run["max_iters"])
    return last - first + 1, rate(run, last) if run["decay_lr"] else run["learning_rate"]


def rate(run: dict, iteration: int) -> float:
    """The learning rate of an iteration on the schedule."""
    begin, end = run["warmup_iters"], run["lr_decay_iters"]
    if iteration < begin:
        return run["learning_rate"] * (iteration + 1) / (begin + 1)
    if iteration >= end:
        return run["min_lr"]
    share = 0.5 + 0.5 * math.cos(math.pi * (iteration - begin) / (end - begin))
    return share * run["learning_rate"] + (1 - share) * run["min_lr"]
    ### END SOLUTION


def precision(run: dict, processes: int) -> tuple[str, bool]:
    """The dtype of the forward's products, and whether the scaler does anything."""
    ### BEGIN SOLUTION
    device = "cuda" if processes > 1 else run["device"]
    return run["dtype"] if "cuda" in device else "float32", run["dtype"] == "float16"
    ### END SOLUTION


def gradient(run: dict, scale: float, gradients: list[list[float]]) -> float:
    """The gradient with which the optimizer makes its step."""
    ### BEGIN SOLUTION
    every = [one for process in gradients for one in process]
    mean, most = sum(every) / len(every), run["grad_clip"]
    return max(-most, min(most, mean)) if most != 0.0 else mean
    ### END SOLUTION


def printed(run: dict, iteration: int, losses: list[list[float]]) -> float | None:
    """The loss that is printed at the end of an iteration."""
    ### BEGIN SOLUTION
    return losses[0][-1] if iteration % run["log_interval"] == 0 else None
    ### END SOLUTION


def saved(run: dict, losses: list[float]) -> tuple[int, float] | None:
    """The `iter_num` and the `best_val_loss` of the file at the end."""
    ### BEGIN SOLUTION
    best, file = 1e9, None
    for number, loss in enumerate(losses):
        if loss < best or run["always_save_checkpoint"]:
            best = loss
            if number > 0:
                file = number * run["eval_interval"], best
    return file
    ### END SOLUTION


def batches(run: dict, processes: int, rank: int, iteration: int) -> int:
    """How many batches a process has got when it makes the step of an iteration."""
    ### BEGIN SOLUTION
    parts = run["gradient_accumulation_steps"] // processes
    evaluations = iteration // run["eval_interval"] + 1 if rank == 0 else 0
    return 1 + (iteration + 1) * parts + evaluations * 2 * run["eval_iters"]
    ### END SOLUTION


def resumed(old: dict, new: dict) -> dict:
    """The values with which a resumed run trains."""
    ### BEGIN SOLUTION
    by_file = {name: old[name] for name in ("n_layer", "weight_decay", "beta2")}
    by_hand = ("dropout", "batch_size", "learning_rate")
    return {**by_file, **{name: new[name] for name in by_hand}}
    ### END SOLUTION

# %%
run = {"gradient_accumulation_steps": 8, "batch_size": 3, "block_size": 10}
expect_equal("tokens of two processes", tokens(run, 2), (240, 120))
run = {"max_iters": 6, "eval_only": False, "decay_lr": True, "learning_rate": 1.0}
run |= {"min_lr": 0.2, "warmup_iters": 3, "lr_decay_iters": 9}
expect_close("steps, and the last rate", steps(run, 4), (3, 0.6), rtol=1e-6)
expect_close("in the warm-up", steps(run | {"max_iters": 1}, 0), (2, 0.5), rtol=1e-6)
expect_equal("without a step", steps(run | {"eval_only": True}, 0), (0, None))
expect_equal("on a Mac", precision({"device": "mps", "dtype": "bfloat16"}, 1), ("float32", False))
expect_equal("on a GPU", precision({"device": "cuda", "dtype": "bfloat16"}, 1)[0], "bfloat16")

# %%
run = {"gradient_accumulation_steps": 4, "dtype": "float16", "grad_clip": 5.0}
numbers = [[1.0, 2.0], [6.0, 3.0]]
expect_close("the gradient of two processes", gradient(run, 512.0, numbers), 3.0, rtol=1e-5)
clipped = gradient(run | {"grad_clip": 0.5}, 512.0, numbers)
expect_close("clipped", clipped, 0.5, rtol=1e-5)
expect_equal("not printed", printed({"log_interval": 5}, 4, numbers), None)
run = {"eval_interval": 10, "always_save_checkpoint": False}
expect_equal("the third of four evaluations", saved(run, [6.5, 4.0, 3.0, 3.5]), (20, 3.0))
expect_equal("after a NaN", saved(run, [math.nan, 4.0, 5.0]), (10, 4.0))
run = {"gradient_accumulation_steps": 4, "eval_interval": 10, "eval_iters": 5}
expect_equal("batches of the second process", batches(run, 2, 1, 2), 7)
expect_equal("and of the first", batches(run, 2, 0, 2), 17)

# %%
old = {"n_layer": 2, "dropout": 0.0, "batch_size": 4, "learning_rate": 0.01}
old |= {"weight_decay": 0.1, "beta2": 0.95}
changed = resumed(old, old | {"batch_size": 8, "dropout": 0.5})
expect_equal("a larger batch, and dropout", changed, old | {"batch_size": 8, "dropout": 0.5})

# the optimizer's part of the same question
one = [torch.nn.Parameter(torch.ones(2))]
optimizer = torch.optim.AdamW(one, lr=0.5, weight_decay=0.3)
optimizer.load_state_dict(torch.optim.AdamW(one, lr=0.01, weight_decay=0.1).state_dict())
print({name: optimizer.param_groups[0][name] for name in ("lr", "weight_decay")})

# %% test="read_script" points=4
# Graded
check("read_script")
run = {"gradient_accumulation_steps": 40, "batch_size": 12, "block_size": 1024}
expect_equal("tokens with the script's own settings", tokens(run, 8), (491_520, 61_440))
### BEGIN HIDDEN TESTS
verify("read_script", tokens=tokens, steps=steps, precision=precision, gradient=gradient, printed=printed, saved=saved, batches=batches, resumed=resumed)
### END HIDDEN TESTS

# %% [markdown]
# ## 12 · What do 16 bits save here?
#
# *Further, medium, 35 minutes, 4 points: one each for slow first calls, for a busy machine whose
# speed changes, for a device with a queue, and for the bytes that a step keeps.*
# From the lesson: [A stopwatch and a meter](../../notebooks/07_training.ipynb#cell-id=a-stopwatch-and-a-meter).
#
# Is your training step faster in bfloat16? Does it need less memory, or is it better to cut the
# batch into parts? It depends on the machine, so measure it, and compare ratios.
#
# `speed_up(before, after, warmup, pairs, clock, synchronize)` returns a float: how many times as fast
# `after()` is, compared with `before()`. If `before` takes 3 s and `after` takes 2 s, it is 1.5.
# `clock()` returns the time in seconds, and `synchronize()` waits until the device has no work left.
# You may call these two as often as you like. But a step may take a minute, so you may call `before`
# and `after` at most `warmup + pairs` times each. The result must be right on a machine like this:
#
# - **Slow first calls.** The first `warmup` calls of each function may take much longer, because
#   something is compiled or tuned. These calls don't count. `warmup` may be 0.
# - **Changing speed.** The machine becomes faster or slower, by any factor. It changes only after
#   every second call: the first two calls have the same speed, then the next two, and so on. All
#   calls of `before` and `after` count for this.
# - **Other programs.** After the slow first calls, the next call of `before` and the next call of
#   `after` are a pair, then again the next of each, and so on. In fewer than half of the first
#   `pairs` pairs, another program makes one of the two calls longer, by any time. `pairs` is 1 or
#   more.
# - **Device.** A call may return before its work is done. Then the work is in the queue of a
#   device, which does one piece of work after the other. When `speed_up` is called, there may
#   already be work in the queue.
#
# `most_kept(step, weights)` calls `step()` once. It returns an int: the largest number of bytes that
# autograd keeps for backward at any moment in that call. A graph keeps the tensors that it has saved
# until `backward` has gone through it, or until nobody needs the graph any more. (After
# `backward(retain_graph=True)` it keeps them.) Count the whole storage of a saved tensor, even if the
# tensor is only a view of a part of it. Several saved tensors may use one storage, also in different
# graphs: it counts once. The storages of the tensors in the list `weights` don't count. The gradients
# of the step must be the same as without you.
#
# Grading uses machines with their own clock, so it doesn't matter how busy yours is.
# `measuring.timed(speed_up, machine, warmup, pairs)` makes such a machine from a dict, and
# `measuring.kept(...)` makes a step from a list. Their docstrings, and the one of
# `measuring.Machine`, say more.
#
# <details><summary>Which calls have the same speed?</summary>
#
# Two calls that follow each other, if you call the two functions in turn. So the ratio of such a pair
# is right, whatever the speed is. Some pairs have wrong ratios, because another program disturbed
# them. But fewer than half do: sort the ratios, and ask where a right one must be.
# </details>
# <details><summary>How do I notice that a graph lets go of a tensor?</summary>
#
# `torch.autograd.graph.saved_tensors_hooks(pack, unpack)` lets you save any object in place of a
# tensor, for example one of a class of your own. A `weakref.WeakSet` contains such objects only as
# long as somebody else keeps them. Let your object hold `t.detach()`: the tensor itself may hold its
# own graph, and then nobody would ever free the two. At each `pack`, add up what is alive.
# </details>

# %% solution="measured"
def speed_up(
    before: Callable,
    after: Callable,
    warmup: int,
    pairs: int,
    clock: Callable,
    synchronize: Callable,
) -> float:
    """How many times as fast `after` is as `before`."""
    ### BEGIN SOLUTION
    def seconds(function):
        synchronize()
        began = clock()
        function()
        synchronize()
        return clock() - began

    for _ in range(warmup):
        before()
        after()
    return statistics.median([seconds(before) / seconds(after) for _ in range(pairs)])
    ### END SOLUTION


def most_kept(step: Callable, weights: list) -> int:
    """The largest number of bytes that autograd keeps at any moment of a step."""
    ### BEGIN SOLUTION
    own = {weight.untyped_storage().data_ptr() for weight in weights}
    alive, most = weakref.WeakSet(), 0

    def pack(tensor):
        nonlocal most
        saved = Saved(tensor.detach())
        alive.add(saved)
        storages = [one.tensor.untyped_storage() for one in alive]
        sizes = {storage.data_ptr(): storage.nbytes() for storage in storages}
        most = max(most, sum(size for at, size in sizes.items() if at not in own))
        return saved

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda saved: saved.tensor):
        step()
    return most


class Saved:
    """What a graph holds in place of a tensor."""

    def __init__(self, tensor):
        self.tensor = tensor
    ### END SOLUTION

# %%
machine = {"seconds": {"before": 3.0, "after": 2.0}, "now": 100.0}
expect_close("without difficulties", measuring.timed(speed_up, machine, 0, 1), 1.5, rtol=1e-6)
compiles = machine | {"slow": {"before": 90.0, "after": 4.0}}
expect_close("slow first calls", measuring.timed(speed_up, compiles, 2, 3), 1.5, rtol=1e-6)
slower = machine | {"factors": [1.0, 2.0, 5.0, 5.0, 5.0]}
expect_close("slower and slower", measuring.timed(speed_up, slower, 1, 3), 1.5, rtol=1e-6)
neighbour = slower | {"disturbed": [("before", 0, 60.0)]}
expect_close("and disturbed", measuring.timed(speed_up, neighbour, 0, 3), 1.5, rtol=1e-6)
queue = machine | {"returns": {"before": 0.01, "after": 0.02}, "queued": 7.0}
expect_close("a device with a queue", measuring.timed(speed_up, queue, 2, 1), 1.5, rtol=1e-6)

# %%
x, weights = torch.randn(6, 4), [torch.randn(4, 3), torch.randn(5, 3)]
batch, row = 6 * 4 * 4, (3 + 5) * 4  # bytes of x, and of each row of a hidden layer and its head
in_turn = [("forward", 0), ("backward", 0), ("forward", 1), ("backward", 1)]
came = measuring.kept(most_kept, x, [4, 2], weights, in_turn)
expect_equal("two parts, in turn", came["bytes"], batch + 4 * row)
together = [("forward", 0), ("forward", 1), ("backward", 0), ("backward", 1)]
came = measuring.kept(most_kept, x, [4, 2], weights, together)
expect_equal("two graphs at once", came["bytes"], batch + 6 * row)
dropped = [("forward", 0), ("drop", 0), ("forward", 1)]
came = measuring.kept(most_kept, x, [2, 4], weights, dropped)
expect_equal("a graph that is thrown away", came["bytes"], batch + 4 * row)

# %%
# your own machine: a step of MiniGPT, in two precisions and in one or four parts
model = MiniGPT()
# clone, so that they are not views of the whole corpus
x, wanted = (lines[:64].clone() for lines in driver.sentences(*training_lines(), columns=18))


def training_step(dtype, parts):
    """A function that makes the gradients of a batch, in parts."""

    def step():
        model.zero_grad()
        for inputs, targets in zip(x.chunk(parts), wanted.chunk(parts)):
            with torch.autocast("cpu", dtype=dtype, enabled=dtype is not torch.float32):
                logits = model(inputs).flatten(0, 1)
                loss = F.cross_entropy(logits, targets.flatten(), reduction="sum")
            (loss / (wanted != -100).sum()).backward()

    return step


plain = training_step(torch.float32, 1)
most = most_kept(plain, list(model.parameters()))
for dtype in (torch.float32, torch.bfloat16):
    for parts in (1, 4):
        step = training_step(dtype, parts)
        # no device to wait for
        times = speed_up(plain, step, 2, 5, time.perf_counter, lambda: None)
        kept = most_kept(step, list(model.parameters()))
        print(f"{dtype!s:14} in {parts}: {times:.2f} times as fast, {kept / most:.0%} of the bytes")

# %% test="measured" points=4
# Graded
check("measured")
same = {"seconds": {"before": 0.5, "after": 0.5}}
expect_close("no difference", measuring.timed(speed_up, same, 1, 2), 1.0, rtol=1e-6)
expect_equal("a step that does nothing", most_kept(lambda: None, []), 0)
### BEGIN HIDDEN TESTS
verify("measured", speed_up=speed_up, most_kept=most_kept)
### END HIDDEN TESTS

# %% [markdown] task="three_logs" points=3
# ## 13 · Three logs
#
# *10 minutes, 3 points, read by a person.*
#
# Three people train MiniGPT, which has 600 words, and each shows you the log of a run:
#
# ```
# step      A: loss      B: loss      C: training   C: unseen lines
#    0        6.41         6.40          6.41            6.41
#  100        6.40         2.31          0.94            7.85
#  200        6.41         1.12          0.03           11.20
#  300        6.40          nan          0.01           12.74
# ```
#
# A trains in float32. B trains under float16 autocast, without anything else. C's loss on training
# lines is too good to be true. Nobody can know which time of day comes next, so a perplexity of 1.7
# is the best that is possible on this corpus.
#
# Write two or three sentences about each log. What do the numbers say? Name one mistake that fits
# them, and say why it gives exactly these numbers. What would you look at or try first, in a
# minute?
#
# === BEGIN MARK SCHEME ===
#
# One point each; the mistake must fit the numbers, and the test must be able to tell.
#
# - **A.** log(600) = 6.40, so every word is equally likely. The model has learned nothing at all,
#   not even which words are frequent. Mistakes that fit: the optimizer has other parameters than
#   the model (it was made before a copy, or with an empty list); `step` is missing; the learning
#   rate is 0 (a warm-up begins at 0 and doesn't move); `zero_grad` is between `backward` and
#   `step`; the loss is detached. To try: train on one batch again and again, then print one weight
#   and its gradient before and after a step.
# - **B.** The model learns, and then one step is not finite. In float16 numbers from 65,520 on
#   become infinite, and an inf becomes NaN in the next operation. Once one weight is NaN,
#   everything becomes NaN. Mistakes that fit: no GradScaler, or nothing else that skips such a
#   step; no clipping; a learning rate that is too large. (If small gradients become 0, that alone
#   makes no NaN.) To try: find the first step that isn't finite, and the norm of the gradients
#   before it; run the same steps in float32 or bfloat16; check `isfinite` before `step`.
# - **C.** The training loss is below the best that is possible, and unseen lines get worse and
#   worse, so the model does not predict. Mistakes that fit: the targets are not shifted (the model
#   copies its input); a mask shows the future; the same few lines come again and again and are
#   learned by heart. Unshifted targets explain both columns: the model is perfect at copying, and
#   confidently wrong on unseen lines, which are shifted rightly. To try: print one input beside its
#   target; change a later word and see whether earlier logits change.
#
# === END MARK SCHEME ===

# %% [markdown]
# *Your answer goes here.*

# %% [markdown]
# ## Done
#
# Use *Kernel → Restart Kernel and Run All Cells* once more, so that you know your notebook works
# from top to bottom, then save it.
#
# You have built every part of a training run. And you have trained a model from nothing that beats
# models which only count words. In phase 08 you open the model itself.
