# ---
# jupyter:
#   kernelspec: {display_name: Python 3, language: python, name: python3}
#   open_the_hood: {title: "Lab 03: nn.Module", points: 40, preload: [optimizers], cell_seconds: 60}
# ---

# %% [markdown]
# # Lab 03: nn.Module
#
# Eleven exercises and one question, 40 points, a little over three hours without the *further*
# exercises 8 and 11, which take half an hour more. A class may leave those out, or count them as a
# bonus. Otherwise all points count. The lab follows [lesson 03](../../notebooks/03_module.ipynb).
# You begin by counting parameters on paper, and write the four layers that a transformer is made
# of. You fix two models that fail without an error. You write a module on an empty page, and
# `Module` itself. At the end, a trained GPT runs on layers that you chose and gives the same
# answers as its NumPy original.
#
# Each graded cell begins with `check(...)`, which gives the verdict that grading would give, on new
# cases each time. These checks, like the grading, make your classes with sizes that you have not
# seen, load weights through `load_state_dict`, and call them. So
# *names and shapes are part of the answer*: if a layer's weight has another name, no checkpoint
# fits the layer. Gradients are part of the answer, too: if a layer gives the right output but
# lets no gradient through, nobody can train it. Inputs may be transposed, sliced or expanded,
# of size 1 or empty, and your code may not change them.
#
# If an exercise says what does not count, this applies to your answer and to everything that it
# calls. The grader reads your cells and observes them while they run. So code that hides what it
# uses (`exec`, `globals()`, an import of your own file) earns nothing there.
#
# Parts of an exercise earn their points separately. Each exercise has two hints, folded away. The
# question that a person reads has none.
#
# Run the next cell, then start.

# %% given="setup"
import copy
import math

import numpy as np
import torch
from torch import nn

from hood.learner.check import check
from utils.drivers.module_spec import assemble, drive
from utils.minigpt import MiniGPTConfig, load_config, load_tokenizer, load_weights, numpy_forward
from utils.notebook.expect import expect_close, expect_equal, expect_raises, expect_shape
from utils.views import dropout_modes, module_tree, my_minigpt, port_difference

# %% [markdown]
# ## 1 · How many numbers?
#
# *Warm-up, 15 minutes, 3 points: one for each kind.*
# From the lesson: [Layers are shapes](../../notebooks/03_module.ipynb#cell-id=layers-are-shapes).
#
# Before a model is made, you can know how many parameters it will have. Write two functions:
#
# - `mlp_parameters(widths, bias=True)`: an MLP of linear layers, from `widths[0]` inputs
#   through the hidden widths to `widths[-1]` outputs. There are two widths or more.
#   They may be equal, or so large that no machine could make the layers. Without `bias`, its layers
#   have only weights.
# - `minigpt_parameters(config, tied=False)`: a model like MiniGPT, for any `MiniGPTConfig`. It has
#   a word embedding and a position embedding. Each of the `n_layers` blocks has two LayerNorms,
#   four linear layers of width `d_model` for attention (query, key, value, output), and an MLP with
#   a hidden width of `d_ff`. At the end there is a LayerNorm, and then the LM head.
#   Every linear layer has a bias, and every LayerNorm has a weight and a bias. If `tied`, the LM
#   head's weight *is* the weight of the word embedding: one Parameter under two names.
#
# Both return an int, by arithmetic on the sizes. It does not count here if you make a model and
# count its numbers (`torch.nn`, `numel` …), or get the number from `utils.minigpt`.
#
# <details><summary>What does a linear layer contain?</summary>
#
# It contains a weight for each pair of an input and an output. And does it contain a bias for each
# input, or for each output?
# </details>
# <details><summary>My MiniGPT is off by a little</summary>
#
# The difference tells you what is missing: the positions have 2,048 numbers (32 · 64), a LayerNorm
# has 128, the head's bias has 600, and the bias of one attention layer has 64.
# </details>

# %% solution="count_parameters"
def mlp_parameters(widths: list[int], bias: bool = True) -> int:
    """Parameters of an MLP with these widths, inputs first."""
    ### BEGIN SOLUTION
    total = 0
    for into, out in zip(widths[:-1], widths[1:], strict=True):
        total += (into + bias) * out
    return total
    ### END SOLUTION


def minigpt_parameters(config: MiniGPTConfig, tied: bool = False) -> int:
    """Parameters of a model like MiniGPT, each counted once."""
    ### BEGIN SOLUTION
    width, wide, words = config.d_model, config.d_ff, config.vocab_size
    norm = 2 * width
    attention = 4 * (width * width + width)
    mlp = (width * wide + wide) + (wide * width + width)
    head = words if tied else width * words + words
    blocks = config.n_layers * (attention + mlp + 2 * norm)
    return (words + config.context) * width + blocks + norm + head
    ### END SOLUTION

# %%
expect_equal("784-128-10", mlp_parameters([784, 128, 10]), 101_770)
widths = [5, 3, 2]
expect_equal("no bias", mlp_parameters(widths, bias=False), 21)
expect_equal("the widths are as they were", widths, [5, 3, 2])
expect_equal("3-3-3-3", mlp_parameters([3, 3, 3, 3]), 36)
expect_equal("larger than any machine", mlp_parameters([2**40, 2**40]), 2**80 + 2**40)
expect_equal("MiniGPT", minigpt_parameters(MiniGPTConfig()), 179_544)

# %% test="count_parameters" points=3
# Graded
check("count_parameters")
small = MiniGPTConfig(vocab_size=10, d_model=4, n_heads=2, n_layers=1, d_ff=6, context=3)
expect_equal("a tiny one", minigpt_parameters(small), 264)
expect_equal("the same, tied", minigpt_parameters(small, tied=True), 224)
### BEGIN HIDDEN TESTS
verify("count_parameters", mlp_parameters=mlp_parameters, minigpt_parameters=minigpt_parameters)
### END HIDDEN TESTS

# %% [markdown]
# ## 2 · Linear
#
# *Easy, 10 minutes, 2 points: one for what is registered, one for the forward.*
# From the lesson: [One line of magic](../../notebooks/03_module.ipynb#cell-id=one-line-of-magic).
#
# Write `Linear(in_features, out_features, bias=True)`, a module
# with one matrix product and one sum:
#
# - its parameters are called `weight` (out, in) and `bias` (out,); when `bias` is False, the attribute
#   `bias` is `None`, and only `weight` is saved;
# - it maps `x` of shape (…, in), with any number of dimensions in front, to shape (…, out).
#
# You may choose the initial numbers here. Exercise 7 asks for particular ones.
#
# In this exercise and the next three, you write a layer out of tensors. So torch's own layer, its
# function and their variants do not count as a base class, as a part inside, or in a call. Here
# these are `nn.Linear`, `F.linear`, `nn.Bilinear` and the like.
# Everything else in torch is allowed, for example `nn.Parameter` and `nn.init`.
#
# <details><summary>What makes a tensor a parameter of the module?</summary>
#
# Its type, at the moment when you assign it to an attribute. Lesson 03, "One line of magic".
# </details>
# <details><summary>And how do I register a bias that isn't there?</summary>
#
# `self.bias = None` makes the attribute; `self.register_parameter("bias", None)` also keeps the
# name for later. Either is right here.
# </details>

# %% solution="Linear"
class Linear(nn.Module):
    """x @ weight.T + bias."""

    def __init__(self, in_features: int, out_features: int, bias: bool = True):
        super().__init__()
        ### BEGIN SOLUTION
        bound = 1 / math.sqrt(in_features)
        self.weight = nn.Parameter(torch.empty(out_features, in_features).uniform_(-bound, bound))
        b = torch.empty(out_features).uniform_(-bound, bound)
        self.bias = nn.Parameter(b) if bias else None
        ### END SOLUTION

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(…, in) -> (…, out)."""
        ### BEGIN SOLUTION
        y = x @ self.weight.T
        return y if self.bias is None else y + self.bias
        ### END SOLUTION

# %%
layer = Linear(3, 2)
expect_equal("names", sorted(layer.state_dict()), ["bias", "weight"])
layer, theirs = Linear(3, 3), nn.Linear(3, 3)
layer.load_state_dict(theirs.state_dict())
for shape in ((5, 4, 3), (3,), (1, 3)):
    x, upstream = torch.randn(shape, requires_grad=True), torch.randn(shape)
    want = theirs(x), *torch.autograd.grad(theirs(x), (x, theirs.weight, theirs.bias), upstream)
    mine = layer(x)
    inputs = x, layer.weight, layer.bias
    got = mine, *torch.autograd.grad(mine, inputs, upstream, allow_unused=True)
    labels = "the answer", "the gradient of x", "of the weight", "of the bias"
    for label, one, other in zip(labels, got, want, strict=True):
        expect_close(f"{label}, x {shape}", one, other, rtol=1e-4, atol=1e-5)
turned = torch.randn(3, 4, 5).transpose(0, 2)
expect_close("a transposed x", layer(turned), theirs(turned), rtol=1e-4, atol=1e-5)
expect_shape("one output, no bias", Linear(3, 1, bias=False)(turned), (5, 4, 1))

# %% test="Linear" points=2
# Graded
check("Linear")
expect_equal("without a bias", list(Linear(3, 2, bias=False).state_dict()), ["weight"])
expect_equal("the attribute `bias`", Linear(3, 2, bias=False).bias, None)
### BEGIN HIDDEN TESTS
verify("Linear", Linear)
### END HIDDEN TESTS

# %% [markdown]
# ## 3 · Embedding
#
# *Easy, 10 minutes, 3 points: one for what is registered, one for the look-up, one for refusals.*
# From the lesson: [Layers are shapes](../../notebooks/03_module.ipynb#cell-id=layers-are-shapes).
#
# Write `Embedding(num_embeddings, embedding_dim)`: a table with a row for each word.
# Its one parameter, `weight`, has the shape (num_embeddings, embedding_dim) and is drawn
# from a normal distribution with mean 0 and deviation 1. It takes int64 tokens of any shape and
# returns their rows: (…,) -> (…, embedding_dim). There may be one token, or none.
#
# A token that is not in the table raises `IndexError`, and that means *any* such token: data sets
# often mark a gap with −1 or −100, and Python accepts the index −1.
#
# Write the look-up out of tensors: `nn.Embedding`, `F.embedding` and their variants do not count
# here.
#
# <details><summary>Which operation is a look-up?</summary>
#
# Indexing with a tensor of integers: [phase 01](../../notebooks/01_tensors.ipynb#cell-id=who-shares-bytes-with-whom), "Who shares bytes with whom".
# </details>
# <details><summary>How do I look for bad tokens without a loop?</summary>
#
# Compare the whole tensor with the two ends of the table, and test with `any` whether a token is
# outside.
# </details>

# %% solution="Embedding"
class Embedding(nn.Module):
    """A row of the table for each token."""

    def __init__(self, num_embeddings: int, embedding_dim: int):
        super().__init__()
        ### BEGIN SOLUTION
        self.weight = nn.Parameter(torch.randn(num_embeddings, embedding_dim))
        ### END SOLUTION

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """(…,) int64 -> (…, embedding_dim)."""
        ### BEGIN SOLUTION
        size = self.weight.shape[0]
        if ((tokens < 0) | (tokens >= size)).any():
            raise IndexError(f"expected tokens from 0 to {size - 1}")
        return self.weight[tokens]
        ### END SOLUTION

# %%
table = Embedding(10, 4)
tokens = torch.tensor([[1, 2, 9], [0, 1, 1]])
expect_shape("two sequences", table(tokens), (2, 3, 4))
expect_close("the same word, the same row", table(tokens)[0, 0], table(tokens)[1, 2])
expect_shape("tokens that are transposed", table(tokens.T), (3, 2, 4))
expect_shape("one token", table(tokens[:1, :1]), (1, 1, 4))
expect_raises("one past the end", IndexError, table, torch.tensor([10]))
for bad in ([[3, -1]], [[-10, 3]], [[4], [-100]]):
    expect_raises(f"{bad}", IndexError, table, torch.tensor(bad))
expect_shape("no tokens", table(torch.zeros(2, 0, dtype=torch.int64)), (2, 0, 4))
expect_equal(
    "what is saved", {n: tuple(t.shape) for n, t in table.state_dict().items()}, {"weight": (10, 4)}
)
upstream = torch.arange(24.0).view(2, 3, 4)
(grad,) = torch.autograd.grad(table(tokens), table.weight, upstream, allow_unused=True)
expect_close("the gradient of row 0", grad[0], [12.0, 13.0, 14.0, 15.0])
expect_close("of row 1, which was read three times", grad[1], [36.0, 39.0, 42.0, 45.0])
fresh = Embedding(1000, 20).weight.detach()
expect_close("a fresh table's deviation", fresh.std().item(), 1.0, atol=0.05)
expect_close("its mean", fresh.mean().item(), 0.0, atol=0.05)

# %% test="Embedding" points=3
# Graded
check("Embedding")
expect_shape("a single token", Embedding(7, 5)(torch.tensor(3)), (5,))
expect_equal(
    "what an optimizer is given", [n for n, _ in Embedding(7, 5).named_parameters()], ["weight"]
)
### BEGIN HIDDEN TESTS
verify("Embedding", Embedding)
### END HIDDEN TESTS

# %% [markdown]
# ## 4 · LayerNorm
#
# *Medium, 15 minutes, 3 points: one for normalising, one for scale and shift, one for small and
# large inputs.*
# From the lesson: [Layers are shapes](../../notebooks/03_module.ipynb#cell-id=layers-are-shapes).
#
# Write `LayerNorm(width, eps=1e-5)`. For each row of the last dimension, with n = `width` entries:
#
# $$y = w \odot \frac{x - \mu}{\sqrt{\sigma^2 + \epsilon}} + b$$
#
# where μ is the mean of the row, and σ² is the mean of (x − μ)², divided by n.
# The parameters `weight` and `bias`, both (width,), begin as ones and zeros. Rows may be constant
# or nearly so (the gradient must be right there, too), and they may lie far from 0: a mean of
# ±1,000 with a deviation of 1 must give as good results as a mean of 0.
#
# The gradient of x flows through μ and σ, too, so leave both in the graph.
# Write the norm out of tensors: `nn.LayerNorm`, `F.layer_norm` and torch's other norms
# (`group_norm`, `batch_norm` …) do not count here.
#
# <details><summary>Two things that are easy to get nearly right</summary>
#
# `torch.var` divides by n − 1 unless told otherwise. And ε belongs *under* the root. You see the
# difference only if the variance is small.
# </details>
# <details><summary>The results for rows far from 0 are rough</summary>
#
# On paper, the variance is the mean of squares minus the square of the mean. In float32, both are
# about 1,000,000 here, each rounded to about 0.06, and their difference should be 1.
# </details>

# %% solution="LayerNorm"
class LayerNorm(nn.Module):
    """Mean 0 and variance 1 over the last dimension, then a scale and a shift."""

    def __init__(self, width: int, eps: float = 1e-5):
        super().__init__()
        ### BEGIN SOLUTION
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width))
        ### END SOLUTION

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(…, width) -> (…, width)."""
        ### BEGIN SOLUTION
        centred = x - x.mean(-1, keepdim=True)
        variance = centred.square().mean(-1, keepdim=True)
        return self.weight * centred * torch.rsqrt(variance + self.eps) + self.bias
        ### END SOLUTION

# %%
norm = LayerNorm(4)
x = torch.tensor([[1.0, 2.0, 3.0, 4.0]])
expect_close("a row", norm(x), [[-1.3416, -0.4472, 0.4472, 1.3416]])
expect_close("a row far from 0", norm(0.3 * x + 1000), norm(0.3 * x), atol=1e-3)
expect_equal("what is trained", sorted(n for n, _ in norm.named_parameters()), ["bias", "weight"])
norm, theirs = LayerNorm(6, eps=0.01), nn.LayerNorm(6, eps=0.01)
state = {"weight": torch.randn(6), "bias": torch.randn(6)}
norm.load_state_dict(state), theirs.load_state_dict(state)
for size in (1.0, 0.05, 0.0):  # rows of all sorts, nearly constant, constant
    x, upstream = (size * torch.randn(2, 3, 6)).requires_grad_(), torch.randn(2, 3, 6)
    want = theirs(x), *torch.autograd.grad(theirs(x), (x, theirs.weight, theirs.bias), upstream)
    mine = norm(x)
    got = mine, *torch.autograd.grad(mine, (x, norm.weight, norm.bias), upstream, allow_unused=True)
    labels = "the answer", "the gradient of x", "of the weight", "of the bias"
    for label, one, other in zip(labels, got, want, strict=True):
        expect_close(f"{label}, deviation {size}", one, other, rtol=1e-3, atol=1e-4)

# %% test="LayerNorm" points=3
# Graded
check("LayerNorm")
expect_close("a constant row", LayerNorm(3)(torch.full((2, 3), 5.0)), torch.zeros(2, 3))
### BEGIN HIDDEN TESTS
verify("LayerNorm", LayerNorm)
### END HIDDEN TESTS

# %% [markdown]
# ## 5 · Dropout
#
# *Medium, 15 minutes, 3 points: one for training, one for eval, one for the edges.*
# From the lesson: [Two modes](../../notebooks/03_module.ipynb#cell-id=two-modes).
#
# Write `Dropout(p)`. In training mode, each element of the input, of any shape, is set to 0
# with probability `p`, independently and anew in each call (so the number of dropped elements
# differs from call to call). The elements that stay are made larger, so that the *expected* value
# of every element does not change. In eval mode the input passes as it is. `p` may be 0 or 1, and
# in training `p` = 1 gives zeros. A `p` below 0 or above 1 raises `ValueError` when the layer is
# made.
#
# The mode is `self.training`, which `nn.Module` keeps for you, and it may change at any time.
# The output has the dtype of the input, for any floating-point dtype.
# The input itself must not change: the output is a new tensor, or the input itself if there is
# nothing to do. Gradients pass where values passed, with the same factor.
#
# Draw the mask yourself: `nn.Dropout`, `F.dropout` and their variants do not count here.
#
# <details><summary>By how much do I enlarge the elements that stay?</summary>
#
# An element stays with probability 1 − p. Which factor makes the mean right?
# </details>
# <details><summary>p = 1 gives NaN</summary>
#
# Then somewhere 0 was divided by 0, or multiplied by infinity. It is easier to treat that case
# separately than to compute it.
# </details>

# %% solution="Dropout"
class Dropout(nn.Module):
    """Drops elements in training, and is not there in eval."""

    def __init__(self, p: float = 0.5):
        super().__init__()
        ### BEGIN SOLUTION
        if not 0 <= p <= 1:
            raise ValueError(f"expected a probability from 0 to 1, got {p}")
        self.p = p
        ### END SOLUTION

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Any shape and floating-point dtype, kept."""
        ### BEGIN SOLUTION
        if not self.training or self.p == 0:
            return x
        if self.p == 1:
            return torch.zeros_like(x)
        kept = torch.rand(x.shape, device=x.device) >= self.p
        return x * kept / (1 - self.p)
        ### END SOLUTION

# %%
drop = Dropout(0.25)
out = drop(torch.ones(1_000))
expect_close("two values, no more", out.unique(), [0.0, 1 / 0.75])
expect_close("nothing lost on average", out.mean(), torch.tensor(1.0), atol=0.1)
x = torch.full((100, 100), 3.0, dtype=torch.float16, requires_grad=True)
before, out, again = x.detach().clone(), drop(x), drop(x)
expect_equal("the dtype stays", out.dtype, torch.float16)
expect_equal("the input is unchanged", x.detach(), before)
expect_equal("two calls, two masks", torch.equal(out, again), False)
for dim, what in enumerate(("column", "row")):
    some = ((out == 0).any(dim) & (out != 0).any(dim)).all().item()
    expect_equal(f"each {what} loses some and keeps some", some, True)
expect_equal("each sequence has its own mask", torch.equal(*drop(torch.ones(2, 20, 9))), False)
expect_equal("another dtype", drop(torch.ones(3, dtype=torch.bfloat16)).dtype, torch.bfloat16)
counts = {int((drop(torch.ones(10, 5)) == 0).sum()) for _ in range(20)}
expect_equal("not always the same number", len(counts) > 1, True)
(grad,) = torch.autograd.grad(out, x, torch.ones_like(out))
expect_close("gradients go where values went", grad, (out / x).detach(), rtol=1e-2)
expect_equal("all dropped", Dropout(1.0)(torch.ones(4)), torch.zeros(4))
expect_equal("none dropped", Dropout(0.0)(torch.ones(4)), torch.ones(4))
drop.eval()
expect_equal("eval", drop(torch.ones(4)), torch.ones(4))
expect_equal("eval, and gradients pass", drop(x).requires_grad, True)
drop.train()
expect_equal("in training again", (drop(torch.ones(200)) == 0).any().item(), True)
dropout_modes(Dropout(0.5), torch.linspace(0.5, 2.0, 24))

# %% test="Dropout" points=3
# Graded
check("Dropout")
for p in (-0.1, 1.1):
    expect_raises("not a probability", ValueError, Dropout, p)
### BEGIN HIDDEN TESTS
verify("Dropout", Dropout)
### END HIDDEN TESTS

# %% [markdown]
# ## 6 · The loss that won't fall
#
# *Medium, 10 minutes, 2 points: one for what is registered, one for what training changes.*
# From the lesson: [The loss that won't fall](../../notebooks/03_module.ipynb#cell-id=the-loss-that-wont-fall).
#
# This model trains without an error, and without an effect. An optimizer is given one Parameter,
# the gain, so it raises no error. And even the gain does not change.
#
# ```python
# class Stack(nn.Module):
#     def __init__(self, width, depth):
#         super().__init__()
#         self.layers = [nn.Linear(width, width) for _ in range(depth)]
#         self.gain = nn.Parameter(torch.ones(width))
#
#     def forward(self, x):
#         for layer in self.layers:
#             x = x + torch.tanh(layer(x))
#         return x * self.gain.data
# ```
#
# Fix it, so that all of it is trained. Keep the names: the layers are `layers.0`, `layers.1` and so
# on, and the gain is `gain`, of shape (width,), ones at first. The output stays the same, and
# its layers begin as `nn.Linear` makes them. `depth` may be 0. `fit` is given; leave it as it is.
#
# <details><summary>How do I see what is registered?</summary>
#
# `module_tree(Stack(4, 2))` draws it; `list(model.state_dict())` lists it.
# </details>
# <details><summary>It is all registered, and `gain` still does not move</summary>
#
# There are two mistakes in these ten lines. The second is in the forward, and cuts the graph.
# </details>

# %% solution="Stack"
class Stack(nn.Module):
    """`depth` layers, each added to what came, then a gain for each channel."""

    def __init__(self, width: int, depth: int):
        super().__init__()
        ### BEGIN SOLUTION
        layers = [nn.Linear(width, width) for _ in range(depth)]  # shown
        self.layers = nn.ModuleList(layers)
        self.gain = nn.Parameter(torch.ones(width))  # shown
        ### END SOLUTION

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(B, width) -> (B, width)."""
        ### BEGIN SOLUTION
        for layer in self.layers:
            x = x + torch.tanh(layer(x))  # shown
        return x * self.gain
        ### END SOLUTION

    def fit(self, x: torch.Tensor, y: torch.Tensor, steps: int) -> list[float]:
        """The loss before each of `steps` steps of gradient descent. (Given.)"""
        losses = []
        for _ in range(steps):
            loss = (self(x) - y).square().mean()
            self.zero_grad()
            loss.backward()
            with torch.no_grad():
                for parameter in self.parameters():
                    if parameter.grad is not None:
                        parameter -= 0.1 * parameter.grad
            losses.append(loss.item())
        return losses

# %%
torch.manual_seed(0)
model = Stack(4, 2)
module_tree(model)
x = torch.randn(32, 4)
losses = model.fit(x, 3 * x, steps=50)
print(f"loss at first {losses[0]:.3f}, at last {losses[-1]:.3f}")
expect_equal("the loss falls to a tenth", losses[-1] < 0.1 * losses[0], True)
two = Stack(2, 2)
names = ["gain", "layers.0.bias", "layers.0.weight", "layers.1.bias", "layers.1.weight"]
expect_equal("names", sorted(two.state_dict()), names)
expect_equal("a gain for each channel, ones", two.gain.tolist(), [1.0, 1.0])
fresh = {
    name: tensor.detach() for name, tensor in Stack(16, 3).state_dict().items() if name != "gain"
}
expect_equal(
    "different layers", torch.equal(fresh["layers.0.weight"], fresh["layers.1.weight"]), False
)
ends = torch.stack([tensor.abs().max() for tensor in fresh.values()])
expect_equal("fresh layers, up to about 1/√16", ((ends > 0.1) & (ends <= 0.25)).all().item(), True)
state = {
    name: torch.eye(2) if name.endswith("weight") else torch.tensor([0.5, -0.5]) for name in names
}
two.load_state_dict(state | {"layers.1.weight": torch.tensor([[0.0, 1.0], [-2.0, 0.0]])})
x = torch.tensor([[1.0, -1.0]], requires_grad=True)
expect_close("what it computes", two(x), [[0.5093, 1.4524]], atol=1e-3)
(grad,) = torch.autograd.grad(two(x).sum(), x)
expect_close("the gradient of x", grad, [[0.5912, -0.4639]], atol=1e-3)

# %% test="Stack" points=2
# Graded
check("Stack")
expect_equal("names", len(Stack(3, 4).state_dict()), 9)
expect_shape("no layers", Stack(3, 0)(torch.ones(2, 3)), (2, 3))
### BEGIN HIDDEN TESTS
verify("Stack", Stack)
### END HIDDEN TESTS

# %% [markdown]
# ## 7 · A module of your own, on an empty page
#
# *Medium, 30 minutes, 4 points: one each for the initial numbers, for the forward, for
# `fit_inputs`, and for what is moved, copied and counted.*
# From the lesson: [How a layer begins](../../notebooks/03_module.ipynb#cell-id=how-a-layer-begins), and
# [What is saved but not trained](../../notebooks/03_module.ipynb#cell-id=what-is-saved-but-not-trained).
#
# So far there was a skeleton to fill, or something to fix. The next cell is empty, as in real work.
# Write a class `MLP` in it. `MLP(inputs, hidden, outputs)` gets three widths of 1 or more. It has
# two linear layers with a relu between them. Before them, a step uses measured means and deviations
# to bring each input to mean 0 and deviation 1. You may use `nn.Linear`, `nn.init` and your own
# code from above. For the point of the forward, `nn.Sequential` does not count here.
#
# - **Registered.** The trained parameters are `hidden.weight`, `hidden.bias`, `output.weight` and
#   `output.bias`, with the shapes that two `nn.Linear` have. Two tensors are saved and not trained,
#   `centre` and `scale`, both of shape (inputs,). Nothing else is in `state_dict()`.
# - **Fresh.** Each number of a weight is drawn independently, and anew for each `MLP`,
#   from a normal distribution with mean 0 and deviation √(2/n), where n is the number of inputs of
#   *that* layer. Both biases begin as zeros, `centre` as zeros, and `scale` as ones.
# - **Forward.** It maps x (…, inputs), with any number of dimensions in front, to (…, outputs).
#   First `centre` is subtracted from x, and the result is divided by `scale`;
#   then come the hidden layer, a relu, and the output layer.
# - **Measured.** `fit_inputs(x)` measures x (…, inputs), which has one row or more. It makes
#   `centre` the mean of each input over all rows, and `scale` its deviation,
#   the root of the mean of (x − mean)². Where the deviation is 0, as for an input that is always 0,
#   `scale` is 1; a small deviation stays as it is. Inputs may lie far from 0: a deviation of 1 must
#   be right even with a mean of ±1,000. A second call forgets the first.
#   Neither `centre` nor `scale` has a graph, though x may have one, and
#   a later change to x does not change them.
# - **Moved.** After `.to(torch.float64)` all six tensors are float64, and so is the output for a
#   float64 x, in all its digits. An `MLP` that was made on the meta device works like any other
#   after `to_empty` and `load_state_dict`.
# - **Saved and copied.** If the state of one `MLP` is
#   loaded into another with the same widths, both give the same outputs. A `copy.deepcopy` is
#   independent: a change to the original does not change the copy, and a change to the copy does
#   not change the original. It can be made at any time, also after a forward.
# - **Counted.** `count()` returns, as an int, how many numbers are trained at the time of the call.
#   A parameter that requires no gradient is not counted, and a parameter in two places counts once.
#
# Every input is floating-point and has the dtype of the module.
#
# <details><summary>Where do I begin?</summary>
#
# Begin with the tensors that are saved. Write `__init__` until `module_tree(MLP(4, 3, 2))` shows
# the six names and shapes, then `forward`, then the rest. Two `nn.Linear` give you four of the six.
# </details>
# <details><summary>How do I make such a random weight?</summary>
#
# `nn.init` has He's rule under his first name, Kaiming, in two forms, for two distributions. An
# argument says which of the weight's two sizes is n.
# </details>

# %% solution="MLP"
# class MLP
### BEGIN SOLUTION
class MLP(nn.Module):
    """Two linear layers with a relu between them, for inputs that were measured."""

    def __init__(self, inputs: int, hidden: int, outputs: int):
        super().__init__()  # shown
        self.hidden = nn.Linear(inputs, hidden)
        self.output = nn.Linear(hidden, outputs)
        for layer in (self.hidden, self.output):
            nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")  # shown
            nn.init.zeros_(layer.bias)  # shown
        self.register_buffer("centre", torch.zeros(inputs))
        self.register_buffer("scale", torch.ones(inputs))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(…, inputs) -> (…, outputs)."""
        x = (x - self.centre) / self.scale
        return self.output(torch.relu(self.hidden(x)))

    @torch.no_grad()
    def fit_inputs(self, x: torch.Tensor) -> None:
        """Measure each input over all rows of x (…, inputs)."""
        rows = x.reshape(-1, x.shape[-1])
        deviation = rows.std(0, correction=0)
        self.centre = rows.mean(0)
        self.scale = torch.where(deviation > 0, deviation, 1.0)

    def count(self) -> int:
        """How many numbers are trained, as things are now."""
        return sum(p.numel() for p in self.parameters() if p.requires_grad)
### END SOLUTION

# %%
mlp = MLP(3, 4, 2)
module_tree(mlp)

# %%
shapes = {
    "hidden.weight": (4, 3),
    "hidden.bias": (4,),
    "output.weight": (2, 4),
    "output.bias": (2,),
}
expect_equal("what is trained", {n: tuple(p.shape) for n, p in mlp.named_parameters()}, shapes)
shapes |= {"centre": (3,), "scale": (3,)}
expect_equal("what is saved", {n: tuple(t.shape) for n, t in mlp.state_dict().items()}, shapes)
fresh, other = MLP(50, 400, 30), MLP(50, 400, 30)
for layer, n in (("hidden", 50), ("output", 400)):
    weight = fresh.state_dict()[f"{layer}.weight"]
    expect_close(
        f"the deviation of {layer}.weight", weight.std().item(), math.sqrt(2 / n), rtol=0.05
    )
    expect_close("its mean", weight.mean().item(), 0.0, atol=0.1 * math.sqrt(2 / n))
    far = (weight.abs() > 2 * math.sqrt(2 / n)).float().mean().item()
    expect_close("beyond two deviations, as in every normal distribution", far, 0.0455, atol=0.015)
    expect_equal("the rows differ", torch.equal(weight[0], weight[1]), False)
    expect_equal(
        "another MLP, other numbers",
        torch.equal(weight, other.state_dict()[f"{layer}.weight"]),
        False,
    )
    expect_equal("the bias", fresh.state_dict()[f"{layer}.bias"].abs().max().item(), 0.0)
expect_equal("centre and scale", (mlp.centre.tolist(), mlp.scale.tolist()), ([0.0] * 3, [1.0] * 3))

# %%
state = {
    "hidden.weight": torch.tensor([[1.0, 0.0], [0.0, -1.0], [2.0, 1.0]]),
    "hidden.bias": torch.tensor([0.5, 0.25, -1.5]),
    "output.weight": torch.tensor([[1.0, 2.0, -1.0]]),
    "output.bias": torch.tensor([-3.0]),
    "centre": torch.tensor([1.0, 10.0]),
    "scale": torch.tensor([2.0, 5.0]),
}
mlp = MLP(2, 3, 1)
mlp.load_state_dict(state)
x = torch.tensor([[[3.0, 5.0], [-3.0, 20.0]], [[1.0, 10.0], [5.0, 0.0]]], requires_grad=True)
expect_close("four rows", mlp(x), [[[1.0], [-3.0]], [[-2.0], [3.5]]])
expect_close("one row", mlp(x[0, 0]), [1.0])
expect_shape("no rows", mlp(x[:, :0]), (2, 0, 1))
inputs = x, mlp.hidden.weight, mlp.output.weight
grads = torch.autograd.grad(mlp(x).sum(), inputs, allow_unused=True)
expect_close("the gradient of x", grads[0][0], [[0.5, -0.4], [0.0, 0.0]])  # a relu blocks the rest
expect_close("of hidden.weight", grads[1], [[3.0, -3.0], [6.0, -6.0], [-2.0, 2.0]])
expect_close("of output.weight", grads[2], [[4.5, 3.75, 0.5]])

# %%
x = torch.tensor([[[1.0, 7.0, 2.0]], [[5.0, 7.0, 1.0]]], requires_grad=True)
mlp = MLP(3, 4, 2)
mlp.fit_inputs(torch.randn(5, 3) + 10)
mlp.fit_inputs(x)
expect_close("the centre", mlp.centre, [3.0, 7.0, 1.5])
expect_close("the scale", mlp.scale, [2.0, 1.0, 0.5])
expect_equal("no graph", mlp.centre.requires_grad or mlp.scale.requires_grad, False)
expect_equal("saved, still", len(mlp.state_dict()), 6)
again, twin = MLP(3, 4, 2), copy.deepcopy(mlp)
again.load_state_dict(mlp.state_dict())
y = mlp(x).detach()
expect_close("the state, loaded into another", again(x), y)
nn.init.zeros_(mlp.output.weight)
expect_close("a copy does not change", twin(x), y)
twin.to(torch.float64)
expect_equal(
    "moved",
    {t.dtype for t in twin.state_dict().values()} | {twin(x.double()).dtype},
    {torch.float64},
)
expect_equal("counted", MLP(5, 4, 3).count(), 39)
mlp.hidden.requires_grad_(False)
expect_equal("with a layer that is frozen", mlp.count(), 10)

# %% test="MLP" points=4
# Graded
check("MLP")
with torch.device("meta"):
    ghost = MLP(3, 4, 2)
mlp, x = MLP(3, 4, 2), torch.randn(5, 3) + 10
mlp.fit_inputs(x)
ghost.to_empty(device="cpu").load_state_dict(mlp.state_dict())
expect_close("from the meta device", ghost(x), mlp(x))
### BEGIN HIDDEN TESTS
verify("MLP", MLP)
### END HIDDEN TESTS

# %% [markdown]
# ## 8 · The model that forgets
#
# *Further, medium, 15 minutes, 2 points: one for a running average that is saved, and used in eval;
# one for a buffer without a graph.*
# From the lesson: [What is saved but not trained](../../notebooks/03_module.ipynb#cell-id=what-is-saved-but-not-trained).
#
# This layer normalises each channel by a mean and a variance that it has *seen*: in training it
# uses the mean and variance of the batch, and remembers a running average of them.
# In eval it uses this running average. It works until the model is saved and loaded: the new model
# normalises by a mean of 0 and a variance of 1, as if it had never seen anything. (And on a GPU it
# fails at once: tensors that are not registered do not move.)
#
# ```python
# class RunningNorm(nn.Module):
#     def __init__(self, width, momentum=0.1):
#         super().__init__()
#         self.momentum = momentum
#         self.mean = torch.zeros(width)
#         self.variance = torch.ones(width)
#
#     def forward(self, x):
#         if not self.training:
#             return (x - self.mean) / torch.sqrt(self.variance + 1e-5)
#         mean, variance = x.mean(0), x.var(0, correction=0)
#         self.mean = self.mean + self.momentum * (mean - self.mean)
#         self.variance = self.variance + self.momentum * (variance - self.variance)
#         return (x - mean) / torch.sqrt(variance + 1e-5)
# ```
#
# Fix it. `mean` and `variance` keep their names, and only these two are registered:
# they are saved with the model, they move with it, and no optimizer ever sees them. In training and
# in eval, the output is the same as that of the broken layer, for any momentum from 0 to 1 and
# any batch, also of one row. There is a second mistake, which hurts a long training run: the
# running average is computed from `x`, so it carries the graph of every batch so far. Fix this,
# too, and no more than this. The output must keep its graph,
# through the batch's own mean and variance.
#
# <details><summary>What is the word for a tensor that belongs to a module and is not trained?</summary>
#
# A buffer. Lesson 03, "What is saved but not trained".
# </details>
# <details><summary>What about the graph?</summary>
#
# [Phase 02](../../notebooks/02_autograd.ipynb#cell-id=when-nothing-is-recorded), "When nothing is
# recorded". It is about the update of the running average. The output, and the batch's mean and
# variance, must keep their graph.
# </details>

# %% solution="RunningNorm"
class RunningNorm(nn.Module):
    """Normalises channels by the batch in training, and by a running average in eval."""

    def __init__(self, width: int, momentum: float = 0.1):
        super().__init__()
        self.momentum = momentum
        ### BEGIN SOLUTION
        self.register_buffer("mean", torch.zeros(width))  # shown
        self.register_buffer("variance", torch.ones(width))  # shown
        ### END SOLUTION

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(B, width) -> (B, width)."""
        ### BEGIN SOLUTION
        mean, variance = self.mean, self.variance
        if self.training:
            mean, variance = x.mean(0), x.var(0, correction=0)  # shown
            with torch.no_grad():
                self.mean += self.momentum * (mean - self.mean)  # shown
                self.variance += self.momentum * (variance - self.variance)  # shown
        return (x - mean) / torch.sqrt(variance + 1e-5)  # shown
        ### END SOLUTION

    def registered(self) -> dict[str, list[str]]:
        """What an optimizer is given, and what only moves along. (Given.)"""
        parameters = sorted(name for name, _ in self.named_parameters())
        return {"parameters": parameters, "buffers": sorted(n for n, _ in self.named_buffers())}

# %%
torch.manual_seed(0)
norm = RunningNorm(2, momentum=0.25)
expect_close("fresh, in eval", norm.eval()(torch.ones(1, 2)), [[1.0, 1.0]])
x = torch.tensor([[1.0, 5.0], [3.0, 5.0], [8.0, 5.0]], requires_grad=True)
upstream = torch.tensor([[1.0, 0.5], [0.0, -1.0], [0.0, 0.0]])
normed = nn.functional.batch_norm(x, None, None, training=True)
theirs = torch.autograd.grad(normed, x, upstream)[0]
y = norm.train()(x)
expect_close("the output in training", y, normed, rtol=1e-4, atol=1e-4)
expect_close("the mean, a quarter of the way", norm.mean, [1.0, 1.25])
expect_close("the variance, which is divided by n", norm.variance, [0.75 + 26 / 12, 0.75])
expect_equal("no graph", norm.mean.requires_grad or norm.variance.requires_grad, False)
(grad,) = torch.autograd.grad(y, x, upstream)
expect_close("the gradient of x", grad, theirs, atol=1e-2)
saved = {name: tensor.clone() for name, tensor in norm.state_dict().items()}
y = norm.eval()(x)
expect_close(
    "eval uses the running average", y[0], (x[0] - norm.mean) / torch.sqrt(norm.variance + 1e-5)
)
expect_close("eval does not change the variance", norm.variance, saved["variance"])
expect_equal("but lets gradients through", y.requires_grad, True)
expect_close("a batch of one row", RunningNorm(2)(torch.ones(1, 2)), [[0.0, 0.0]])
norm = RunningNorm(2, momentum=0.5)
x = torch.randn(1000, 2) * 3 + 10
for _ in range(10):
    norm(x)
expect_close("the running mean is about 10", norm.mean, x.mean(0), atol=0.1)
again = RunningNorm(2, momentum=0.5)
again.load_state_dict(norm.state_dict())
expect_close("the loaded layer gives the same output", again.eval()(x), norm.eval()(x))
module_tree(norm)

# %% test="RunningNorm" points=2
# Graded
check("RunningNorm")
expect_equal("what an optimizer is given", RunningNorm(3).registered()["parameters"], [])
### BEGIN HIDDEN TESTS
verify("RunningNorm", RunningNorm)
### END HIDDEN TESTS

# %% [markdown]
# ## 9 · Module, from nothing
#
# *Hard, 40 minutes, 7 points: registration 2, tied parameters 1, buffers 1, saving and loading 1,
# refusals 1, train and eval 1.*
# From the lesson: [One line of magic](../../notebooks/03_module.ipynb#cell-id=one-line-of-magic).
#
# Write `Module` yourself. Python's `object` is your only base class;
# `nn.Parameter` still says what a parameter is. Nothing else of `torch.nn` counts here,
# as a base class or as a part inside: torch's module may not do the work of your module.
# A class that inherits from yours calls `super().__init__()` first, and then assigns parameters and
# modules to attributes, as always.
#
# - **Registration.** `named_parameters()` yields pairs (name, parameter): first the module's own
#   parameters in the order they were assigned, then those of each child, to any depth. The children
#   come in the order they were assigned, too, and their parameters are named
#   with the child's name and a dot in front. A parameter that was assigned to two places
#   comes once, under the first name. When an attribute is assigned again,
#   what was there before is forgotten, whatever it was:
#   a plain value may take the name of a parameter, and
#   a parameter or a module may take the name of a buffer. (The name may keep its place in the order
#   or lose it.) You read attributes as usual, and a missing attribute raises `AttributeError`.
#   Calling the module calls its `forward`.
# - **Buffers.** `register_buffer(name, tensor)`: an attribute that is saved and not trained. After
#   that, assigning a tensor to the name replaces the buffer. A tensor that was only assigned, and
#   not registered, is an attribute like any other: not saved.
# - **Saving.** `state_dict()`: a dict from names to tensors, of all parameters and buffers at any
#   depth. Here a tied parameter appears under both its names. So does a buffer that was registered
#   in two places, and every tensor of a module that was assigned to two places. The tensors may
#   still require a gradient or not (in torch they do not).
# - **Loading.** `load_state_dict(state)` copies the values *into* the tensors that are there (an
#   optimizer may be using them), so they keep their dtype, and
#   a later change to `state` does not change the module. Names that are missing in `state`,
#   names that are not the module's, and shapes that differ in any way raise `RuntimeError`. Its
#   message names every one of them, all three kinds in one message. In this case
#   nothing at all is changed.
# - **Modes.** `training` is True at first; `train(mode=True)` and `eval()` set it in this module
#   and in all children, at any depth.
#
# `run_module` is given. The grader can send only values. So it calls `run_module`, which makes a
# tree of your modules and puts questions to it. (`drive`, in `utils/drivers/module_spec.py`, does
# this work.)
#
# <details><summary>Where do I keep the parameters?</summary>
#
# You don't need a `__setattr__` if each method looks through `vars(self)`. PyTorch has a dict for
# each kind, filled by `__setattr__`. If you use such dicts, `__init__` must make them before your
# own `__setattr__` needs them. Python calls `__getattr__` only when the ordinary look-up fails: it
# must find the values in the dicts.
# </details>
# <details><summary>Which loads go wrong although all the names are right?</summary>
#
# `copy_` broadcasts: without an error, it copies shape (1,) into shape (600,), and (3,) into (1,
# 3). So compare shapes. And make all comparisons before the first copy.
# </details>

# %% solution="run_module"
class Module:
    """What nn.Module adds to a class."""

    def __init__(self):
        ### BEGIN SOLUTION
        self.training = True
        self._buffer_names = []
        ### END SOLUTION

    def __call__(self, *args):
        return self.forward(*args)

    def register_buffer(self, name: str, tensor: torch.Tensor) -> None:
        """Make an attribute that is saved and not trained."""
        ### BEGIN SOLUTION
        if name not in self._buffer_names:
            self._buffer_names.append(name)
        setattr(self, name, tensor)
        ### END SOLUTION

    def named_tensors(self):
        """Pairs (name, tensor): parameters and buffers here and below, under every name they have.

        A helper for the next three methods. Only your code calls it, so you may leave it empty.
        """
        ### BEGIN SOLUTION
        for name, value in vars(self).items():
            buffer = name in self._buffer_names and isinstance(value, torch.Tensor)
            if buffer or isinstance(value, nn.Parameter):
                yield name, value
        for child_name, child in vars(self).items():
            if isinstance(child, Module):
                for name, value in child.named_tensors():
                    yield f"{child_name}.{name}", value
        ### END SOLUTION

    def named_parameters(self):
        """Pairs (name, parameter), each parameter once."""
        ### BEGIN SOLUTION
        seen = set()
        for name, tensor in self.named_tensors():
            if isinstance(tensor, nn.Parameter) and id(tensor) not in seen:
                seen.add(id(tensor))
                yield name, tensor
        ### END SOLUTION

    def state_dict(self) -> dict[str, torch.Tensor]:
        """Name -> tensor, of every parameter and buffer."""
        ### BEGIN SOLUTION
        return {name: tensor.detach() for name, tensor in self.named_tensors()}
        ### END SOLUTION

    def load_state_dict(self, state: dict[str, torch.Tensor]) -> None:
        """Copy values into the module's tensors; RuntimeError when they do not fit."""
        ### BEGIN SOLUTION
        own = dict(self.named_tensors())
        wrong = [f"missing: {name}" for name in own if name not in state]
        wrong += [f"unexpected: {name}" for name in state if name not in own]
        for name in own.keys() & state.keys():
            if own[name].shape != state[name].shape:
                shapes = tuple(own[name].shape), tuple(state[name].shape)
                wrong.append(f"{name}: expected shape {shapes[0]}, got {shapes[1]}")
        if wrong:
            raise RuntimeError("; ".join(wrong))
        with torch.no_grad():
            for name, tensor in own.items():
                tensor.copy_(state[name])
        ### END SOLUTION

    def train(self, mode: bool = True):
        """Set the mode, here and below."""
        ### BEGIN SOLUTION
        self.training = mode
        for child in vars(self).values():
            if isinstance(child, Module):
                child.train(mode)
        return self
        ### END SOLUTION

    def eval(self):
        """Set training to False, here and below."""
        return self.train(False)


def run_module(plan, *requests):
    """Builds a tree of your modules by the plan, and answers the requests. (Given.)"""
    return drive(Module, plan, *requests)

# %%
class Affine(Module):
    def __init__(self, width):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(width))
        self.shift = nn.Parameter(torch.zeros(width))

    def forward(self, x):
        return x * self.gain + self.shift


class Two(Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = Affine(3), Affine(3)
        self.second.gain = self.first.gain
        self.register_buffer("calls", torch.zeros(1))

    def forward(self, x):
        self.calls += 1
        return self.second(self.first(x))


two = Two()
names = [name for name, _ in two.named_parameters()]
expect_equal("the tied gain once", names, ["first.gain", "first.shift", "second.shift"])
expect_equal("five names, with the buffer", len(two.state_dict()), 5)
expect_close("a call", two(torch.ones(3)), [1.0, 1.0, 1.0])
two.eval()
expect_equal("eval goes down", two.second.training, False)
two.train()
expect_equal("and so does train", (two.training, two.second.training), (True, True))
two.train(False)
expect_equal("and train(False)", (two.training, two.second.training), (False, False))
expect_raises("an attribute that isn't there", AttributeError, getattr, two, "third")
expect_raises("a state with nothing in it", RuntimeError, two.load_state_dict, {})

# %%
outer = Module()
outer.inner = two  # a third level
outer.first = nn.Parameter(torch.ones(2))
outer.also = nn.Parameter(torch.ones(2), requires_grad=False)
outer.plain = torch.ones(2)
names = ["first", "also", "inner.first.gain", "inner.first.shift", "inner.second.shift"]
expect_equal(
    "own parameters first, then the child's", [n for n, _ in outer.named_parameters()], names
)
saved = {*names, "inner.second.gain", "inner.calls"}
expect_equal("what is saved", set(outer.state_dict()), saved)
outer.eval()
expect_equal("eval goes all the way down", two.first.training, False)
held, other = two.first.shift, torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)
state = {name: tensor.clone() for name, tensor in outer.state_dict().items()} | {
    "inner.first.shift": other
}
outer.load_state_dict(state)
expect_equal("loaded into the tensor that is there", two.first.shift is held, True)
other.zero_()
expect_equal("a copy, of its own dtype", two.first.shift.tolist(), [1.0, 2.0, 3.0])
expect_equal("the dtype", two.first.shift.dtype, torch.float32)
wrong = {name: torch.zeros_like(tensor) for name, tensor in state.items() if name != "inner.calls"}
wrong |= {"first": torch.ones(1, 2), "inner.first.shift": torch.ones(1), "stranger": torch.ones(1)}
try:
    outer.load_state_dict(wrong)
    said = "nothing"
except RuntimeError as refusal:
    said = str(refusal)
for name in ("first", "inner.first.shift", "stranger", "inner.calls"):
    expect_equal(f"the refusal names {name}", name in said, True)
expect_equal(
    "and nothing has changed",
    two.second.shift.tolist() + two.first.gain.tolist(),
    [0.0] * 3 + [1.0] * 3,
)
two.calls = torch.ones(1)  # still a buffer
two.second.shift = 5       # no parameter any more
two.first.gain = nn.Parameter(torch.zeros(3))
outer.plain = nn.Parameter(torch.zeros(3))
names = {"inner.first.gain", "inner.first.shift", "inner.second.gain", "first", "also", "plain"}
expect_equal("after four assignments", {n for n, _ in outer.named_parameters()}, names)
expect_equal("and read", outer.plain.tolist(), [0.0] * 3)
expect_equal("and saved", set(outer.state_dict()), names | {"inner.calls"})

# %% test="run_module" points=7
# Graded
check("run_module")
plan = {
    "scale": ["parameter", torch.tensor([2.0])],
    "inner": {"bias": ["buffer", torch.tensor([5.0])]},
}
expect_equal("a plan", list(run_module(plan, ("state_dict", ""))[0]), ["scale", "inner.bias"])
### BEGIN HIDDEN TESTS
verify("run_module", run_module)
### END HIDDEN TESTS

# %% [markdown] task="what_cuda_does" points=3
# ## 10 · What does `.cuda()` do?
#
# *10 minutes, 3 points, read by a person.*
#
# A colleague writes: `model.cuda()`, `y = model(x)`. The model has a word embedding, a Dropout, and
# an LM head. The head's weight is tied to the embedding's weight. `x` contains tokens on the CPU,
# and an optimizer was made before. Answer in six to eight sentences. What moves, in which order,
# and how often? What does *not* move? What does the next line do, and why? After you fix that line,
# which library does the LM head's work on the GPU, and what is PyTorch's own part?
#
# === BEGIN MARK SCHEME ===
#
# One point each:
#
# - **What moves.** `.cuda()` is `_apply` with a function that copies one tensor. It visits the
#   children before the module itself. In each module, it visits the parameters (and the gradient of
#   each, if there is one), then the buffers. The Parameter *objects* stay and get new data. So the
#   tied weight is copied once (on the second visit, it is already on the GPU). The optimizer has
#   the same objects, so it still works. Memory comes from the caching allocator, which asks the
#   driver for large pieces, not once for each tensor.
# - **What does not.** Plain tensor attributes, Python lists of tensors, the optimizer's own state
#   (none before the first step), and above all the input `x`. The model moves in place, but a
#   tensor's `.cuda()` returns a copy. Dropout has nothing to move. So the next line raises
#   "Expected all tensors to be on the same device" in the embedding's look-up; `model(x.cuda())` or
#   `x = x.to(device)` fixes it.
# - **Who works.** PyTorch (the framework) keeps the registry and the graph, computes the output's
#   shape and allocates the output, and dispatches `aten::addmm` by the tensors' device. ATen's CUDA
#   kernel for `addmm` calls cuBLAS (or cuBLASLt), which chooses and launches the matrix kernel.
#   Accept any answer that separates the two roles and names cuBLAS for the product. cuDNN
#   (convolutions, some attention) and NCCL (between GPUs) are not called here.
#
# === END MARK SCHEME ===

# %% [markdown]
# *Your answer goes here.*

# %% [markdown]
# ## 11 · Byte by byte
#
# *Further, medium, 15 minutes, 3 points: one each for parameters, buffers and gradients.*
# From the lesson: [What a move moves](../../notebooks/03_module.ipynb#cell-id=what-a-move-moves).
#
# Write `bytes_moved(plan)`: how many bytes are copied when `model.to("cuda")` is called on a model
# with all its tensors on the CPU. The grader describes its models by plans. So
# your first line, which is given, makes a module from a plan (and leaves a module as it is).
#
# Count what is *copied*: the elements of a tensor, not the whole storage, which may be larger.
# Count a Parameter or a module that is registered in two places once. Count
# a gradient, where a parameter has one (it may have another dtype).
# No buffer is registered in two places here. For everything else, don't guess: the lesson shows how
# to watch a move without a GPU, because `model.to(torch.float64)` goes the same way through the
# tree. But don't count its copies as the answer: it does not copy integers or tensors that are
# already float64, but a move to a GPU copies them all.
#
# <details><summary>How can I watch it?</summary>
#
# `model._apply(look)`, with a function `look` that prints the shape of the tensor it is given and
# returns it as it is. If `look` gets a tensor twice, the tensor is copied twice, unless it is
# already on the GPU the second time. This is so for a Parameter and its gradient, because they are
# changed in place.
# </details>
# <details><summary>My number for the buffers is too small</summary>
#
# `state_dict()` leaves out buffers that are not saved, but `.to` moves them.
# </details>

# %% solution="bytes_moved"
def bytes_moved(plan) -> int:
    """Bytes that `.to("cuda")` copies, of a model on the CPU (or of a plan of one)."""
    model = assemble(plan)
    ### BEGIN SOLUTION
    moved = list(model.buffers())
    for parameter in model.parameters():
        moved.append(parameter)
        if parameter.grad is not None:
            moved.append(parameter.grad)
    return sum(tensor.numel() * tensor.element_size() for tensor in moved)
    ### END SOLUTION

# %%
expect_equal("the LM head", bytes_moved(nn.Linear(64, 600)), 156_000)
def tied_head():
    tied = nn.ModuleDict({"words": nn.Embedding(600, 64), "head": nn.Linear(64, 600)})
    tied["head"].weight = tied["words"].weight
    return tied


expect_equal("tied to the embedding", bytes_moved(tied_head()), 156_000)
expect_equal(
    "a frozen model moves, too", bytes_moved(tied_head().requires_grad_(False)), 156_000
)
tied = tied_head()
tied["head"].bias.grad = torch.zeros(600)
tied["head"].weight.grad = torch.zeros(600, 64)
expect_equal("with gradients", bytes_moved(tied), 312_000)
module_tree(tied_head())

# %%
half = {"w": ["parameter", torch.ones(3, dtype=torch.bfloat16), torch.ones(3)]}
expect_equal("a gradient with another dtype", bytes_moved(half), 6 + 12)
column = torch.ones(4, 5)[:, :1]  # 4 of 20 numbers
expect_equal(
    "a part of a storage",
    bytes_moved({"w": ["parameter", column, column], "b": ["buffer", column]}),
    48,
)
mask = {"mask": ["buffer", torch.ones(5, dtype=torch.bool)]}
once = {"first": {"part": mask}, "second": {"part": ["same", "first.part"]}}
expect_equal("one module in two places", bytes_moved(once), 5)

# %% test="bytes_moved" points=3
# Graded
check("bytes_moved")
expect_equal("a plan", bytes_moved({"seen": ["buffer", torch.zeros(3, dtype=torch.int64)]}), 24)
### BEGIN HIDDEN TESTS
verify("bytes_moved", bytes_moved)
### END HIDDEN TESTS

# %% [markdown]
# ## 12 · MiniGPT, ported
#
# *Hard, 35 minutes, 5 points: one for any sizes, one for the trained weights, one for half
# precision, and one each for agreeing with a GPU in float32 and in float16.*
# From the lesson: [A port, function by function](../../notebooks/03_module.ipynb#cell-id=a-port-function-by-function).
#
# Here is a trained language model as a dict of NumPy arrays, and `utils/minigpt/numpy_forward.py`
# is its forward in NumPy. Read this file, and port its functions one by one,
# each to the module that does the same.
#
# Write `minigpt_logits(weights, tokens, config, device="cpu", dtype=torch.float32)`. It makes your
# model and loads `weights` into it (NumPy arrays by name, as `load_weights()` gives them). It moves
# the model to `device` and `dtype` (float16, float32 or float64) and runs it on `tokens` (int64 of
# shape (B, T), on the CPU). It returns the logits (B, T, V) **on the CPU, as float32**. Any
# `MiniGPTConfig` and any T from 1 up to its context must work, and the context may differ from 32.
# Each call must use the weights that it got. `nn`'s layers are allowed, and so are your own. From
# `utils.minigpt`, your answer may use `MiniGPTConfig`, `load_config`, `load_weights` and
# `load_tokenizer`. The rest is not allowed, above all the torch model and the NumPy forward.
#
# If the modules have the same names as the weights, `load_state_dict` does the rest, and raises an
# error if names differ. That is what strictness is for. But
# you may load the weights in another way, if you like.
#
# Agreement means 1e-5 in float32, and in float16 a hundredth of the largest logit.
# The last two parts compare with MiniGPT on a GPU: with a real run if there is a GPU, and otherwise
# with a recorded run. If there is neither, they are not run, and the report says so.
#
# <details><summary>Which functions correspond?</summary>
#
# `nn` has a module for `linear`, for `layer_norm` and for the look-ups. `gelu` has two forms in
# torch, and the NumPy code uses the form with the tanh: see the argument `approximate`. The rest
# are tensor operations of the same name.
# </details>
# <details><summary>It runs, and the logits are wrong</summary>
#
# Don't stare at the logits. `numpy_forward.forward` also returns the stream after each block, and
# its functions can be called one at a time: give both sides the same input, and find the first
# function that differs. Below, `stages_of` observes your port through a forward hook on each
# module, and the picture shows the first stage that is wrong. Then go inside this stage, as the
# lesson does. (`stages_of` takes the output of a stage from the input of the next norm. If this
# norm has another name than in `weights`, or is not called as a module, the stage is "not there".)
# </details>

# %% solution="minigpt_logits"
class Port(nn.Module):
    """Your model. Write as many classes beside it as you like."""

    def __init__(self, config: MiniGPTConfig):
        super().__init__()
        ### BEGIN SOLUTION
        d = config.d_model
        self.heads = config.n_heads
        self.token_embedding = nn.Embedding(config.vocab_size, d)
        self.position_embedding = nn.Embedding(config.context, d)
        self.blocks = nn.ModuleList()
        for _ in range(config.n_layers):
            linears = {name: nn.Linear(d, d) for name in ("query", "key", "value", "output")}
            mlp = {"up": nn.Linear(d, config.d_ff), "down": nn.Linear(config.d_ff, d)}
            block = {"attention": nn.ModuleDict(linears), "mlp": nn.ModuleDict(mlp)}
            block |= {"norm_1": nn.LayerNorm(d), "norm_2": nn.LayerNorm(d)}
            self.blocks.append(nn.ModuleDict(block))
        self.final_norm = nn.LayerNorm(d)
        self.lm_head = nn.Linear(d, config.vocab_size)
        ### END SOLUTION

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """(B, T) -> (B, T, V)."""
        ### BEGIN SOLUTION
        length = tokens.shape[1]
        future = torch.ones(length, length, dtype=torch.bool, device=tokens.device).triu(1)
        x = self.token_embedding(tokens) + self.position_embedding.weight[:length]
        for block in self.blocks:
            part, normed = block["attention"], block["norm_1"](x)
            q, k, v = (
                part[name](normed).unflatten(-1, (self.heads, -1)).transpose(1, 2)
                for name in ("query", "key", "value")
            )
            scores = (q @ k.mT / math.sqrt(q.shape[-1])).masked_fill(future, -torch.inf)
            x = x + part["output"]((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))
            wide = nn.functional.gelu(block["mlp"]["up"](block["norm_2"](x)), approximate="tanh")
            x = x + block["mlp"]["down"](wide)
        return self.lm_head(self.final_norm(x))
        ### END SOLUTION


def minigpt_logits(
    weights: dict[str, np.ndarray],
    tokens: torch.Tensor,
    config: MiniGPTConfig,
    device: str = "cpu",
    dtype: torch.dtype = torch.float32,
) -> torch.Tensor:
    """Logits (B, T, V) of a MiniGPT with these weights, as float32 on the CPU."""
    ### BEGIN SOLUTION
    port = Port(config)
    port.load_state_dict({name: torch.from_numpy(array) for name, array in weights.items()})
    port.to(device, dtype).eval()
    with torch.inference_mode():
        return port(tokens.to(device)).float().cpu()
    ### END SOLUTION

# %%
weights, config, tokenizer = load_weights(), load_config(), load_tokenizer()
tokens = torch.tensor([tokenizer.encode("yo hablé español anoche .")])
theirs = numpy_forward.forward(weights, tokens.numpy(), config)
mine = minigpt_logits(weights, tokens, config)
expect_close("the logits", mine, torch.from_numpy(theirs.logits), rtol=1e-5, atol=1e-5)
half = minigpt_logits(weights, tokens, config, dtype=torch.float16)
expect_equal("float16 inside, float32 outside", half.dtype, torch.float32)
expect_close("the logits in half", half, mine, rtol=0, atol=0.01 * mine.abs().max().item())
expect_equal("it ran in half precision", torch.equal(half, mine), False)
for now, following in zip(tokens[0], mine[0].argmax(-1), strict=True):
    print(*tokenizer.words([now.item()]), "->", *tokenizer.words([following.item()]))

# %%
# Another model, made of parts of this one: nonsense, and computed all the same
cut = {name: array for name, array in weights.items() if not name.startswith("blocks.1.")}
cut |= {f"blocks.2{name[8:]}": -cut[name] for name in cut if name.startswith("blocks.0.mlp")}
cut |= {
    f"blocks.2{name[8:]}": cut[name]
    for name in list(cut)
    if name.startswith("blocks.0.") and "mlp" not in name
}
cut |= {f"blocks.1{name[8:]}": cut[name] for name in list(cut) if name.startswith("blocks.2.")}
for block in range(3):
    for name in ("up.weight", "up.bias"):
        cut[f"blocks.{block}.mlp.{name}"] = cut[f"blocks.{block}.mlp.{name}"][:100]
    cut[f"blocks.{block}.mlp.down.weight"] = cut[f"blocks.{block}.mlp.down.weight"][:, :100]
cut["position_embedding.weight"] = np.repeat(weights["position_embedding.weight"], 2, 0)[:40]
for heads, size in ((1, (2, 40)), (8, (1, 1))):
    other = MiniGPTConfig(n_heads=heads, n_layers=3, d_ff=100, context=40)
    words = torch.arange(size[0] * size[1]).view(size[::-1]).T
    expected = torch.from_numpy(numpy_forward.forward(cut, words.numpy(), other).logits)
    mine = minigpt_logits(cut, words, other)
    expect_close(f"{heads} heads, tokens {size}", mine, expected, rtol=1e-5, atol=2e-5)

# %%
def stages_of(weights, tokens, config):
    """Your port's stream after each stage, as the next norm gets it, and its logits."""
    heard = []

    def hear(module, given, out):
        copies = [t.clone() if isinstance(t, torch.Tensor) else None for t in (*given[:1], out)]
        heard.append((module, copies[0], copies[-1]))

    hook = nn.modules.module.register_module_forward_hook(hear)  # for every module that is called
    try:
        logits = minigpt_logits(weights, tokens, config)
    finally:
        hook.remove()
    names = {part: name for name, part in heard[-1][0].named_modules()} if heard else {}
    calls = {names.get(part): (given, out) for part, given, out in heard}
    norms = {"embeddings": "blocks.0.norm_1", "block 0": "blocks.1.norm_1", "block 1": "final_norm"}
    found = {stage: calls[norm][0] for stage, norm in norms.items() if norm in calls}
    if "final_norm" in calls:
        found["final_norm"] = calls["final_norm"][1]
    return found | {"lm_head": logits}


stages = dict(zip(("embeddings", "block 0", "block 1"), theirs.residual, strict=True))
stages |= {"final_norm": theirs.hidden, "lm_head": theirs.logits}
port_difference(stages, stages_of(weights, tokens, config))

# %% test="minigpt_logits" points=5
# Graded
check("minigpt_logits")
weights, config = load_weights(), load_config()
logits = minigpt_logits(weights, torch.zeros(3, 7, dtype=torch.int64), config)
expect_shape("a batch", logits, (3, 7, 600))
### BEGIN HIDDEN TESTS
verify("minigpt_logits", minigpt_logits)
### END HIDDEN TESTS

# %% [markdown]
# ## MiniGPT, in your hands
#
# There is nothing to write here, and there are no points. The next cell builds the trained MiniGPT
# again, with your `Linear`, `Embedding` and `LayerNorm` in place of PyTorch's, and with the same
# trained weights. Then the model writes some text. In the picture, the filled parts are yours. If
# one of your layers gives other numbers than PyTorch's, the cell does not use it, and names it
# below the picture. Two parts are still missing: you write the softmax in lab 05 and attention in
# lab 08, and both labs show the picture again.

# %%
my_minigpt(Linear=Linear, Embedding=Embedding, LayerNorm=LayerNorm)

# %% [markdown]
# ## Done
#
# Use *Kernel → Restart Kernel and Run All Cells* once more, so that you know your notebook works
# from top to bottom, then save it.
#
# You have written `Module`, the layers of a transformer, and a model that is made of such layers.
# You can also say which bytes are copied when a model moves to a GPU. You have not yet seen what
# happens between `x @ weight.T` and the kernel that multiplies.
# [Phase 04](../../notebooks/04_dispatcher.ipynb#cell-id=a-call-is-a-look-up) shows it.
