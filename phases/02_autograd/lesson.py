# ---
# jupyter:
#   kernelspec: {display_name: Python 3, language: python, name: python3}
#   open_the_hood: {title: "Autograd by hand"}
# ---

# %% [markdown]
# # Autograd by hand
#
# `loss.backward()` is the most expensive line of a training loop, and the one that nobody reads. This lesson reads it.
#
# It takes about an hour and a half. You need to know what a derivative is, and the chain rule for one variable. The rest is bookkeeping, and this lesson is about the bookkeeping. When a paragraph begins with **Predict**, decide on an answer before you look below it. Nothing here is graded, and everything here is used in the lab.

# %%
import math

import torch
import torch.nn.functional as F

from hood.learner.contents import PHASES
from utils.minigpt import load_minigpt, load_tokenizer
from utils.notebook.drills import choice, number, true_false
from utils.views import (
    autograd_graph,
    backward_stepper,
    course_path,
    finite_difference_error,
)

# %% [markdown]
# ## Where we are

# %%
course_path(PHASES, here=2)

# %% [markdown]
# Phase 01 said what a tensor is: a storage and a way of reading it. It did not explain one field of a tensor, `requires_grad`. This phase is about that field and what depends on it: during the forward pass, PyTorch records how to go back.

# %% [markdown]
# ## Resumen en español
#
# Mientras calculas hacia delante, PyTorch anota cada operación en un grafo; `backward` lo recorre al revés, y en cada nodo hace una sola cosa: multiplica el gradiente que llega por la derivada local y reparte el resultado.
# Cuando un valor se usa dos veces, los caminos se suman. De ahí salen la suma del sesgo sobre el lote, los gradientes que se acumulan y la razón de `zero_grad`.
# Nadie construye jamás un jacobiano: cada capa sólo sabe multiplicarlo por un vector. Con una pérdida escalar, una pasada basta para un millón de parámetros.
# Aprenderás a derivar a mano softmax, LayerNorm y la entropía cruzada, a comprobarlo con diferencias finitas y a enseñar a autograd una función tuya.

# %% [markdown]
# ## The question
#
# A colleague has written their own LayerNorm, forward and backward, because PyTorch's was "too slow". (The end of this lesson explains such a class. For now, believe that `backward` turns the gradient of the output into the gradient of the input.) The output of the forward agrees with PyTorch's to the last digits.

# %%
class FastNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        scale = (x.var(-1, keepdim=True, correction=0) + 1e-5).rsqrt()
        ctx.save_for_backward(scale)
        return (x - x.mean(-1, keepdim=True)) * scale

    @staticmethod
    def backward(ctx, grad_output):
        (scale,) = ctx.saved_tensors
        return grad_output * scale


x = torch.randn(4, 8)
print("largest difference of the forward:",
      (FastNorm.apply(x) - F.layer_norm(x, (8,))).abs().max().item())

# %% [markdown]
# The backward looks right, too: the output is the centred input times a scale, so its derivative is the scale. Train a small network with this LayerNorm, and the same network with PyTorch's.
#
# **Predict.** Will there be an error, a NaN, or a loss that does not fall?

# %%
def train(norm):
    torch.manual_seed(0)
    x = torch.randn(512, 16)
    y = torch.sin(x[:, :4].sum(1))
    a, b, c = (torch.randn(n, m) / math.sqrt(n) for n, m in ((16, 32), (32, 32), (32, 1)))
    weights = [w.requires_grad_() for w in (a, b, c)]
    optimizer = torch.optim.Adam(weights, lr=0.003)
    for step in range(301):
        hidden = torch.tanh(norm(torch.tanh(norm(x @ a)) @ b))
        loss = F.mse_loss((hidden @ c)[:, 0], y)
        if step % 100 == 0:
            print(f"{loss.item():.4f}", end="   ")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

# %%
print("steps          0        100      200      300")
print("theirs     ", end="  ")
train(FastNorm.apply)
print("\nPyTorch's  ", end="  ")
train(lambda t: F.layer_norm(t, t.shape[-1:]))

# %% [markdown]
# None of the three. The loss falls smoothly, but it ends at about three times the loss that PyTorch's LayerNorm reaches. Without the second run, you would see nothing wrong. A wrong forward gives wrong numbers. A wrong backward gives a *slightly worse model*, and the person who trains it will change the learning rate.
#
# So we had better know:
#
# > **What is written down while I compute, and what exactly does `backward` do with it?**

# %% [markdown]
# ## Three lines, by hand
#
# Here is a whole forward pass: `c = a·b`, `d = c + a`, `L = d²`, at a = 2 and b = 3. So c = 6, d = 8, L = 64. For each of the five names we want its **adjoint**: the derivative of L with respect to its value. (Values that do not depend on it stay the same.)
#
# Go backwards. L grows by 1 for each unit that L grows, so its adjoint is 1. The *local derivative* of d² is 2d = 16, so d's adjoint is 1 · 16 = 16. From d to c, the local derivative is 1, so c's adjoint is 16, too. From c to b, the local derivative is a = 2, so b's adjoint is 16 · 2 = 32.
#
# **Predict.** And what is a's adjoint? Remember which nodes use a.

# %%
backward_stepper({"c": "a * b", "d": "c + a", "L": "d ** 2"}, a=2.0, b=3.0)

# %% [markdown]
# Two paths lead from a to L. The path through c contributes 16 · 3 = 48, and the path directly into d contributes 16 · 1 = 16. **Paths add**: dL/da = 64, dL/db = 32. (In a running notebook, the slider shows one node at a time.)
#
# That is everything. *At each node, and for each of its inputs: multiply the node's adjoint by the local derivative, and add the product to the input's adjoint.* A transformer has more nodes, but the same rule. Is it true? Nudge a, and compare with PyTorch.

# %%
def L(a, b):
    c = a * b
    return (c + a) ** 2


a, b = torch.tensor(2.0, requires_grad=True), torch.tensor(3.0, requires_grad=True)
L(a, b).backward()
print("autograd:", a.grad.item(), b.grad.item())
print("nudging a by 0.001:", (L(2.001, 3.0) - L(2.0, 3.0)) / 0.001)

# %% tags=["hide-input"]
number(
    "`y = x · x` is computed at x = 5, as one multiplication of x with x. If the adjoint of y is 1, what is the adjoint of x?", 10,
    why="x is used twice. Each use has the local derivative 5, and paths add.",
    wrong={5: "That is one of two paths. Both factors are x.", 25: "That is the value of y. Local derivatives are multiplied along each path, and then the paths are added."},
)

# %% [markdown]
# ## An engine in twenty lines
#
# Let the numbers do the bookkeeping themselves. Each number remembers its value, its inputs, and the local derivative for each input. All this is known when the number is computed.

# %%
class Value:
    """A number that remembers where it came from."""

    def __init__(self, data, sources=()):
        self.data, self.sources, self.adjoint = data, sources, 0.0

    def __add__(self, other):
        return Value(self.data + other.data, [(self, 1.0), (other, 1.0)])

    def __mul__(self, other):
        return Value(self.data * other.data, [(self, other.data), (other, self.data)])

    def backward(self):
        self.adjoint = 1.0
        for value in users_first(self):
            for source, local in value.sources:
                source.adjoint += value.adjoint * local

# %% [markdown]
# The last three lines are exactly the rule from the section above. Only the order is missing: `users_first`.

# %% [markdown]
# ## Who may go first
#
# A node may pass on its adjoint only when the adjoint is complete: after *all* users of the node have added their shares. In our three lines, a and c are both one step from d, but c uses a. An order by distance from L may visit a before c, when a has only 16 of its 64. If a had inputs, they would get only a quarter of their adjoints.
#
# The right order is called *topological*. One way to find it: visit all inputs of a node first, write down the node when you leave it, and reverse the list at the end.

# %%
def users_first(root):
    """All values that `root` depends on, each after all its users."""
    done, left = set(), []

    def visit(value):
        if value not in done:
            done.add(value)
            for source, _ in value.sources:
                visit(source)
            left.append(value)

    visit(root)
    return left[::-1]


a, b = Value(2.0), Value(3.0)
d = a * b + a
(d * d).backward()
print("dL/da", a.adjoint, "  dL/db", b.adjoint)

# %% [markdown]
# These twenty lines differentiate anything that is made of sums and products. (This version is recursive, and Python stops it after about a thousand levels. The lab asks for a version without this limit.)
#
# **Predict.** Call `(d * d).backward()` a second time, on the same `a`. What is `a.adjoint` now?

# %%
(d * d).backward()
print("dL/da after a second backward:", a.adjoint)

# %% [markdown]
# Not 64, and not 128 either. `d` still had its adjoint of 16 from the first backward. It got another 16 and passed on the sum, and `c` did the same. PyTorch avoids half of this: it throws away the adjoints of intermediate values after each backward, and only the *leaves* add up their gradients. We will come to that.

# %% tags=["hide-input"]
choice(
    "Which of these orders is right for `c = a·b`, `d = c + a`, `L = d²`?",
    {
        "L, d, a, c, b": "a comes before c, but c uses a. So `backward` would visit a when a has only a part of its adjoint.",
        "L, d, c, a, b": "Every node comes after all nodes that use it. (L, d, c, b, a is right, too.)",
        "a, b, c, d, L": "That is the order of the forward pass: users come last.",
    },
    answer="L, d, c, a, b",
)

# %% [markdown]
# ## PyTorch's own graph
#
# PyTorch's engine works in the same way, in C++ and with tensors in place of numbers. A tensor that is the result of an operation has a `grad_fn`: the node that knows the way back. The node's `next_functions` are the nodes of the inputs.

# %%
torch.manual_seed(0)
x = torch.randn(5, 3)
W, b = torch.randn(4, 3, requires_grad=True), torch.randn(4, requires_grad=True)
y = torch.tanh(x @ W.T + b)
print(y.grad_fn)
print(y.grad_fn.next_functions)
print(y.grad_fn.next_functions[0][0].next_functions)

# %% [markdown]
# `TanhBackward0` is the way back through tanh. The input of tanh came from a sum, so this node leads to `AddBackward0`, which leads to a product and to an `AccumulateGrad`. A path ends at an `AccumulateGrad`: this node belongs to a leaf, here the bias, and adds each gradient that arrives to the leaf's `.grad`.
#
# A node does not store its local derivatives. It stores what it needs to compute them: the **saved tensors**, the blue words in the picture.
#
# **Predict.** Which of the nodes below must save something? And does tanh save its input or its output?

# %%
loss = (y * y).sum()
autograd_graph(loss, W=W, b=b)

# %% [markdown]
# A sum needs to save nothing: its local derivative is 1. A product keeps both factors. The derivative of tanh is 1 − tanh², so the *output* is enough, and the input may be freed. The product with `W` keeps `x`, which it needs for the gradient of `W`. It does not keep `W`, because only the gradient of `x` would need `W`, and `x` doesn't require a gradient. These saved tensors are the *activations* in the memory bars of [phase 01](01_tensors.ipynb#cell-id=where-the-memory-goes): what a training step keeps in memory between forward and backward. (They take 140 bytes. Both factors of the product and the result of tanh are the same tensor, `y`, whose 80 bytes are kept once. The other 60 bytes are `x`.)
#
# They are freed after they have been used.

# %%
def attempt(action):
    """Print what `action()` returns, or the first sentence of PyTorch's refusal."""
    try:
        print(action())
    except RuntimeError as error:
        said = str(error).splitlines()[0].partition(". ")[0]
        print(f"{type(error).__name__}: {said.rstrip('.,')}.")


saved = y.grad_fn._saved_result
print("tanh saved its own output:", saved.data_ptr() == y.data_ptr())
loss.backward()
attempt(lambda: y.grad_fn._saved_result)
attempt(lambda: loss.backward())

# %% [markdown]
# Backward frees the saved tensors as it goes, so a second backward through the same graph fails, unless the first was called with `retain_graph=True`. And what if a saved tensor changes between forward and backward? Each tensor has a *version*, a counter that in-place operations increase. A node records the version of each tensor that it saves.

# %%
x = torch.ones(3, requires_grad=True)
y = torch.exp(x)                 # exp saves its output: it is its own derivative
y.add_(1)                        # and now that output is another number
print("version of y:", y._version)
attempt(lambda: y.sum().backward())

# %% [markdown]
# This is one of the best error messages in PyTorch: without it, you would get a wrong gradient and no warning. (If you write `y = y + 1`, all is well.)

# %% tags=["hide-input"]
true_false(
    "`y = torch.tanh(x); y += 1` and then `y.sum().backward()` works, since tanh only saved its input.", False,
    "tanh saves its *output*, and `+=` is in-place. The version no longer matches, so backward raises an error. With `torch.sin`, which saves its input, it would work.",
)

# %% [markdown]
# ## A graph made anew each time
#
# Nobody declared that graph. Each call added its node when it ran, so the graph contains what *happened*: loops are unrolled, and an `if` leaves only the branch that ran.

# %%
def f(x):
    return x * x if x.sum() > 0 else torch.sin(x).cos()


def names(node):
    """The node's name, and those of everything before it along the first input."""
    first = node.next_functions[0][0] if node.next_functions else None
    name = node.name().rpartition("::")[2]  # without C++'s namespace, which a leaf's node shows
    return [name] + (names(first) if first is not None else [])


print(names(f(torch.tensor([1.0], requires_grad=True)).grad_fn))
print(names(f(torch.tensor([-1.0], requires_grad=True)).grad_fn))

# %% [markdown]
# The comparison itself left no trace: a Python `if` is not differentiable, and autograd never sees it. That is convenient, but it has a price. Every forward must build its graph again, and PyTorch can't plan ahead. [Phase 06](06_compile.ipynb#cell-id=forward-and-backward-in-one-graph) (`torch.compile`) is about avoiding this price.

# %% [markdown]
# ## Leaves, and gradients that add up
#
# A graph begins at **leaves** that require a gradient: tensors that you made, not results of a computation. Parameters are leaves. Only leaves get a `.grad`.
#
# **Predict.** Which of `w`, `scaled` and `z` have a gradient after backward?

# %%
import warnings

w = torch.ones(3, requires_grad=True)
scaled = w * 2
z = torch.ones(3, requires_grad=True) * 3      # looks like a parameter
scaled.retain_grad()
(scaled * z).sum().backward()
with warnings.catch_warnings(action="ignore"):  # asking a non-leaf for .grad warns, rightly
    for name, t in {"w": w, "scaled": scaled, "z": z}.items():
        print(f"{name:7} leaf: {t.is_leaf!s:6} grad: {t.grad}")

# %% [markdown]
# `scaled` is not a leaf. It has a gradient only because `retain_grad` asked for it. And `z` is the trap: it is a product, and not a leaf. The leaf is the nameless `torch.ones(3)`, and nobody can reach its gradient any more. An optimizer would refuse `z`, and a hand-written update would find `None`. (`nn.Parameter(3 * torch.ones(3))` does the arithmetic first.)
#
# `AccumulateGrad` *adds*. **Predict** the two lines of output.

# %%
w = torch.ones(3, requires_grad=True)
for _ in range(2):
    (2 * w).sum().backward()
    print(w.grad)

# %% [markdown]
# That is "paths add" again, this time over several calls: two backwards are two users of `w`. It is useful (if memory is short, four small batches make a large one), and it is the reason for `zero_grad`. If you forget `zero_grad`, each step follows the sum of all gradients so far, which looks like a momentum of 1. `zero_grad` sets `.grad` to `None`. This saves memory, and the next backward stores its gradient without an addition.

# %% tags=["hide-input"]
number(
    "In a loop without `zero_grad`, each backward gives a gradient of 0.5 for `w`. The optimizer has a learning rate of 0, so `w` never changes. What is `w.grad` after 8 steps?", 4,
    why="8 · 0.5 = 4: `.grad` is the sum of the gradients of all backwards since the last `zero_grad`.",
    wrong={0.5: "That would need a `zero_grad` in each step.", 8: "That is the number of steps."},
)

# %% [markdown]
# ## When nothing is recorded
#
# There are three ways to say that you need no backward, and they differ.

# %%
w = torch.ones(3, requires_grad=True)
with torch.no_grad():
    quiet = w * 2
with torch.inference_mode():
    silent = w * 2
cut = (w * 2).detach()
for name, t in {"no_grad": quiet, "inference_mode": silent, "detach": cut}.items():
    print(f"{name:15} requires_grad {t.requires_grad}, inference {t.is_inference()}")
attempt(lambda: (quiet * w).sum().backward())
attempt(lambda: (silent * w).sum().backward())

# %% [markdown]
# `no_grad` computes without recording. The result is an ordinary tensor, and a later graph can use it as a constant (the first attempt returned `None`: it worked). `inference_mode` goes further: its tensors have no version counters, which is a little faster. No node may save such a tensor, because without a version nobody could tell whether it has changed. The product with `w` would have to save such a tensor, so the second attempt failed. `detach` cuts the graph at one place: its result has the same bytes and no `grad_fn`.
#
# Evaluate in `inference_mode`; update weights by hand in `no_grad`; `detach` what should be a constant, such as a target that a model computed.

# %% [markdown]
# ## Written over, while autograd watches
#
# What if the result of a computation is written *into* a tensor that already exists? Here is a board of four zeros, which requires no gradient, and a view of its middle.
#
# **Predict.** `part` gets a `grad_fn`. Nobody wrote to `board` under the name `board`. Which `grad_fn` does `board` get?

# %%
x = torch.tensor([2.0, 3.0], requires_grad=True)
board = torch.zeros(4)
part = board[1:3]
part.add_(x)
print("part ", part.grad_fn)
print("board", board.grad_fn)
print("behind it:", *(node and node.name() for node, _ in board.grad_fn.next_functions))
(board * torch.tensor([1.0, 10.0, 100.0, 1000.0])).sum().backward()
print("x.grad", x.grad)

# %% [markdown]
# `part` and `board` share one storage, so `board` has changed as well, and autograd rewrites the history of `board`. `CopySlices` is the way back through "the old board, with its middle replaced". It leads to two places: to the board's old history (there is none), and to x. The tensor x receives two entries of the gradient, from the places where x was written. Autograd also replaces the history of the view: `part` is now a view of the new board, with the node `AsStridedBackward0`.
#
# A leaf can't get a new history like that. The graph begins at the leaf: with a history, it would no longer be a leaf.

# %%
w = torch.ones(3, requires_grad=True)
attempt(lambda: w.add_(1))
attempt(lambda: w[:2].add_(1))
with torch.no_grad():
    print("under no_grad:", w.add_(1))

# %% [markdown]
# Every optimizer writes like the last line. Under `no_grad` no operation is recorded, but the version still counts each write. All views share the version, and so does the result of `detach`. **Predict.** The next cell writes over the result of `exp` in three ways that autograd does not record. How many of the three does autograd notice?

# %%
x = torch.ones(3, requires_grad=True)


def written_over(alias):
    y = torch.exp(x)
    with torch.no_grad():
        alias(y).add_(1)
    print("version of y:", y._version, end="   ")
    return torch.autograd.grad(y.sum(), x)[0]


attempt(lambda: written_over(lambda y: y[:2]))
attempt(lambda: written_over(lambda y: y.detach()))
attempt(lambda: written_over(lambda y: y.data))

# %% [markdown] tags=["printed 3.7183"]
# Two. `.data` is older than the counters: it returns the same bytes with a separate counter. So the gradient is 3.7183, without any error. It should be 2.7183. Today, use `detach()` or `no_grad` in place of `.data`.
#
# You can also look at a gradient on its way, or change it: a **hook** is a function that is called with the gradient. Hooks can be in several places. **Predict** the order in which they run.

# %%
w = torch.tensor(3.0, requires_grad=True)
h = w * 2
w.register_post_accumulate_grad_hook(lambda w: print("w has its gradient:", w.grad))
w.register_hook(lambda g: print("on its way to w:   ", g))
h.grad_fn.register_hook(lambda to_inputs, to_outputs: print("through the node:  ", to_inputs))
h.register_hook(lambda g: print("on its way to h:   ", g) or g.clamp(max=5.0))
(h * h).backward()

# %% [markdown] tags=["printed 10"]
# The hooks run in the order in which the gradient travels, not in the order of registration. The hook of `h` returned a value, which replaced the gradient: 5 in place of 12, and the node turned it into 10. The hook on the way to `w` sees the gradient of *this* backward, before `AccumulateGrad` adds it. The last hook sees `.grad` after the addition, and may already make an optimizer step with it and free it. DDP ([phase 10](10_distributed.ipynb#cell-id=one-big-batch)) exchanges gradients in such hooks, one for each parameter.
#
# A hook belongs to a *value*, not to a name. **Predict.** The next cell puts two hooks on `h`, and between them it writes over `h`. What does each hook see?

# %%
h = torch.tensor(3.0, requires_grad=True) * 2
h.register_hook(lambda g: print("the hook from before:", g))
h.mul_(10)
h.register_hook(lambda g: print("the hook from after: ", g))
h.backward()

# %% [markdown]
# The hook from after runs first, and sees the gradient of the new `h`. The hook from before belongs to the old `h`, which has no name any more. The gradient of the old `h` is 10 times as large. (Two hooks at the same place are called in the order in which they were registered.)
#
# And the saved tensors have hooks, too: one function packs what a node saves, another unpacks it when backward needs it. The pack function may write the tensor to disk, keep it in 16 bits, or just count its bytes.

# %%
from torch.autograd.graph import saved_tensors_hooks
from torch.utils.checkpoint import checkpoint


def kept(function, *args):
    """The bytes that the graph of a call keeps, each storage once, and the gradients from it."""
    saved = {}
    with saved_tensors_hooks(lambda t: saved.update({t.data_ptr(): t.nbytes}) or t, lambda t: t):
        y = function(*args)
    return sum(saved.values()), torch.autograd.grad(y.sum(), args)


# %%
def deep(x, W):
    for _ in range(4):
        x = torch.tanh(x @ W)
    return x


x, W = torch.randn(64, 32, requires_grad=True), torch.randn(32, 32, requires_grad=True)
plain, gradients = kept(deep, x, W)
again, same = kept(lambda x, W: checkpoint(deep, x, W, use_reentrant=False), x, W)
print(f"kept: {plain:,} bytes, with a checkpoint {again:,}")
print("the same gradients:", all(map(torch.equal, gradients, same)))

# %% [markdown]
# `checkpoint` is made of these hooks. Its pack function keeps nothing. The first call of its unpack function runs the checkpointed function again, and returns the tensors that are saved this time. Between forward and backward, the graph keeps only the two inputs. Without a checkpoint, it keeps six tensors. The price is one more forward. (If the function uses random numbers, the second run must use the same ones, so `checkpoint` restores the generators.) Models that fill a GPU are trained this way, with a checkpoint for each block.

# %% tags=["hide-input"]
choice(
    "A block with twelve layers is wrapped in one `checkpoint`. When does its memory use reach its peak?",
    {
        "in the forward, as without it": "In the forward, only the block's inputs stay.",
        "when backward enters the block: everything that its layers save is in memory again": "The whole block is run once more, and everything it saves is alive until backward has used it. So one checkpoint around the whole model saves almost nothing. You need several checkpoints.",
        "never: each layer is computed again on its own": "That would be twelve checkpoints, one for each layer.",
    },
    answer="when backward enters the block: everything that its layers save is in memory again",
)

# %% [markdown]
# ## A layer only has to know one product
#
# With tensors, a local derivative is a table, the **Jacobian**: one row for each output, one column for each input. For the LM head over 32 positions, it would have 19,200 rows and 2,048 columns. That is 157 MB for one small layer, and nearly all entries are zeros.
#
# So nobody builds this table. At a node, backward needs only *the incoming gradient times the Jacobian*: a **vector–Jacobian product**. A backward pass is a chain of such products, from right to left.
#
# Take `y = x @ W.T`. A row of `x` has size 3, and a row of `y` has size 4. The incoming gradient, g, has the shape of `y`. Entry i of a row of `x` reaches every entry k of the same row of `y`, with the factor W[k, i]. Paths add, so the gradient for entry i is the sum over k of g[k] · W[k, i]. For all rows at once, that is `g @ W`.
#
# And the weight? In a single row, W[k, i] reaches only y[k], with the factor x[i]. So this row contributes g[k] · x[i] at every k and i: the *outer product* of its row of g with its row of `x`. All rows use the same `W`, and paths add.

# %%
torch.manual_seed(0)
x, W = torch.randn(5, 3, requires_grad=True), torch.randn(4, 3, requires_grad=True)
g = torch.randn(5, 4)                                     # what comes back from above
for_x, for_W = torch.autograd.grad(x @ W.T, (x, W), grad_outputs=g)
print("g @ W is the gradient for x:              ", torch.allclose(for_x, g @ W))
outer = [torch.outer(g[n], x[n]) for n in range(5)]
print("the sum of outer products is that for W:  ", torch.allclose(for_W, sum(outer)))

# %% [markdown]
# A sum of outer products over the rows is itself a matrix product, `g.T @ x`. So the backward of a linear layer takes two products, each as large as the product in the forward. That is why a backward costs about twice its forward, however many weights there are. (A bias is added to every row, so it gets the sum of the rows' gradients. The next section says why.)
#
# Now check the general rule on a small example. Compute the whole Jacobian by brute force, and compare it with the product that autograd computes without the Jacobian.

# %%
torch.manual_seed(0)
x, W = torch.randn(3, requires_grad=True), torch.randn(4, 3)
jacobian = torch.autograd.functional.jacobian(lambda x: torch.tanh(W @ x), x)
v = torch.randn(4)
(product,) = torch.autograd.grad(torch.tanh(W @ x), x, grad_outputs=v)
print("Jacobian", tuple(jacobian.shape), "  v @ Jacobian:", v @ jacobian)
print("                     autograd:", product)

# %% [markdown]
# Now you can see why training is possible at all. A loss is *one number*, so its Jacobian has one row. The vector (1) times this row is the gradient. So one backward gives the derivatives for all parameters, a million or a billion of them.
#
# With 32 losses, the Jacobian has 32 rows, and one product gives one *combination* of the rows. PyTorch does not guess which combination you want.
#
# **Predict.** What is `w.grad` if the incoming gradient is (1, 10, 100)?

# %%
w = torch.tensor(2.0, requires_grad=True)
losses = w * torch.tensor([1.0, 2.0, 3.0])
attempt(lambda: losses.backward())
losses.backward(gradient=torch.tensor([1.0, 10.0, 100.0]))
print("w.grad:", w.grad)
rows = [torch.autograd.grad((w * k), w)[0].item() for k in (1.0, 2.0, 3.0)]
print("each loss on its own, one backward each:", rows)

# %% [markdown] tags=["printed 321"]
# 1·1 + 10·2 + 100·3 = 321. `loss.mean()` chooses a combination, too: it sends 1/32 to every row. To get all rows separately, you need one backward for each row (or one batched call: `torch.func.jacrev`). There is also *forward mode*, which computes the Jacobian times a vector and gives one column for each run. It is better if there are few inputs and many outputs, which is never the case for a loss.

# %% tags=["hide-input"]
choice(
    "A network has 10 inputs and 1,000 outputs. How many backwards do you need for its full Jacobian?",
    {
        "10": "That is forward mode: one run for each input. It would be the better way here.",
        "1,000": "One backward gives one row, and there is a row for each output.",
        "10,000": "That is the number of entries. A backward gives a whole row of them.",
        "1": "One backward gives one combination of the rows.",
    },
    answer="1,000",
)

# %% [markdown]
# ## Broadcasting's adjoint is a sum
#
# A bias of 4 numbers is added to 5 rows. In [phase 01](01_tensors.ipynb#cell-id=broadcasting-a-view-with-stride-0) you saw how: with stride 0, one number is read in five places. So each number is *used* five times, and paths add.

# %%
rows, bias = torch.randn(5, 4), torch.zeros(4, requires_grad=True)
upstream = torch.randn(5, 4)
(rows + bias).backward(upstream)
print("bias.grad        ", bias.grad)
print("upstream.sum(0)  ", upstream.sum(0))
column = torch.zeros(5, 1, requires_grad=True)
(rows + column).backward(upstream)
print("column.grad      ", tuple(column.grad.shape), "is upstream summed over its rows:",
      torch.allclose(column.grad[:, 0], upstream.sum(1)))

# %% [markdown]
# The rule has two parts. If broadcasting *added* a dimension, sum over it and drop it. If broadcasting *stretched* a dimension from 1, sum over it and keep it with size 1. The other direction works as well: the adjoint of a sum is a broadcast, because each summand gets the whole incoming gradient.

# %% tags=["hide-input"]
choice(
    "`scores` of shape (8, 4, 32, 32) is multiplied by `mask_weight` of shape (4, 1, 1). Over which dimensions is the gradient summed on its way back to `mask_weight`?",
    {
        "0, 2 and 3": "Dimension 0 was added, so it is dropped after the sum. Dimensions 2 and 3 were stretched, so they stay with size 1.",
        "2 and 3": "Dimension 0 was added by broadcasting: all 8 examples read the same numbers.",
        "0 only": "Dimensions 2 and 3 were stretched from 1 to 32, so each number was read 1,024 times.",
        "1": "That is the only dimension in which `mask_weight` has several numbers.",
    },
    answer="0, 2 and 3",
)

# %% [markdown]
# ## Softmax: a Jacobian that nobody makes
#
# Relu is easy: each output depends only on the input at the same place. So its Jacobian is diagonal, with 1 for a positive input and 0 for a negative one, and the product with it is elementwise. (At exactly 0, relu has a corner and no derivative, so every library had to choose a value. In the lab, you find out which value PyTorch chose.)
#
# Softmax is the first layer in which every output depends on every input: if you raise one logit, all other probabilities fall. Its Jacobian for a row is a full matrix, $\partial y_i / \partial x_j = y_i(\delta_{ij} - y_j)$. Look at a small one.

# %%
logits = torch.tensor([2.0, 1.0, 0.0, -1.0])
y = torch.softmax(logits, -1)
jacobian = torch.autograd.functional.jacobian(lambda t: torch.softmax(t, -1), logits)
print(jacobian)
print("sum of each row:   ", jacobian.sum(1))
print("rank:              ", torch.linalg.matrix_rank(jacobian, atol=1e-6).item(), "of 4")

# %% [markdown]
# The diagonal is positive, and all other entries are negative. Each row sums to 0, because nothing changes if you add the same number to all logits. The Jacobian is a diagonal matrix minus the *outer product* of y with itself, and this makes it cheap: a vector times this matrix is an elementwise product, minus y times a single number. You will find that number in the lab. There is one such number for each row of logits.
#
# **Predict.** What is the gradient for the logits, if the incoming gradient is the same for all probabilities?

# %%
logits = torch.tensor([[2.0, 1.0, 0.0, -1.0]], requires_grad=True)
(grad,) = torch.autograd.grad(torch.softmax(logits, -1), logits, torch.full((1, 4), 7.0))
print(grad)

# %% [markdown]
# It is 0, apart from rounding: the probabilities always sum to 1, so they can't all grow at once. This is why a test with `softmax(x).sum().backward()` proves nothing. *Always test a backward with random incoming gradients.*

# %% [markdown]
# ## Cross-entropy: what came minus what should have come
#
# After the LM head comes the cross-entropy. For each row, it is minus the log of the probability that the model gave to the right word. The loss is the mean over the rows. The log of a softmax is the logit minus the log of the sum of all exponentials, which is one number for the whole row. The gradient of this loss is the friendliest in the whole field.

# %%
logits = torch.tensor([[2.0, 1.0, 0.0, -1.0], [0.0, 3.0, 0.0, 0.0]], requires_grad=True)
targets = torch.tensor([0, 2])
F.cross_entropy(logits, targets).backward()
print("probabilities\n", torch.softmax(logits, -1).detach())
print("gradient, times the number of rows\n", 2 * logits.grad)

# %% [markdown] tags=["printed 0.64", "printed 0.36"]
# Each entry is the probability, minus 1 at the right word: *what came minus what should have come*, times the row's share of the mean. In the first row, the right word has a probability of 0.64, and it is pulled up by the missing 0.36. In the second row, the model is sure of a wrong word, so the gradient is almost −1 at the right word and almost +1 at this wrong word. If a softmax is sure, its Jacobian is near 0, and hardly any gradient passes through it. With the log after it, the gradient still passes.
#
# Now look at MiniGPT, the model of this course: which gradients do the 600 logits of MiniGPT's head get for this sentence?

# %%
model, tokenizer = load_minigpt(), load_tokenizer()
tokens = torch.tensor([tokenizer.encode("yo hablé español anoche .")])
logits = model.lm_head(model.hidden(tokens[:, :-1]))[0]
logits.retain_grad()
F.cross_entropy(logits, tokens[0, 1:]).backward()
for n, word in enumerate(tokenizer.words(tokens[0, 1:].tolist())):
    loudest = logits.grad[n].abs().topk(3)
    heard = [
        f"{tokenizer.words([i])[0]} {logits.grad[n, i]:+.3f}" for i in loudest.indices.tolist()
    ]
    print(f"{word:8} {heard}")

# %% [markdown]
# At each position the right word is pulled up (its gradient is negative, and the optimizer subtracts it), and the other words that the model thought likely are pushed down. From here, one linear layer leads back to `x`, `W` and `b`: the lab's last exercise.

# %% [markdown]
# ## LayerNorm: three ways to the loss
#
# Back to our colleague. LayerNorm subtracts the mean of a row and divides by the row's standard deviation. An entry of the row reaches the output directly, *and* through the mean, *and* through the variance. The whole row shares the mean and the variance. The colleague's backward followed only the first way.
#
# What does the full backward look like? We can say two things without any algebra. If you add the same number to the whole row, the output stays the same. If you stretch the row away from its mean, the output stays the same, too (apart from eps). A gradient says in which direction the loss changes. The loss does not change in these two directions, so the gradient must have no part along them.

# %%
torch.manual_seed(0)
x, upstream = torch.randn(1, 64, requires_grad=True), torch.randn(1, 64)
normed = F.layer_norm(x, (64,))
for name, norm in {"PyTorch's": lambda t: F.layer_norm(t, (64,)), "theirs": FastNorm.apply}.items():
    (grad,) = torch.autograd.grad(norm(x), x, upstream)
    along_mean, along_row = grad.mean().item(), (grad * normed).mean().item()
    print(f"{name:10} along the mean {along_mean:+.6f}, along the row {along_row:+.6f}")

# %% [markdown]
# PyTorch's gradient has no such part (apart from rounding). Our colleague's gradient pushes the weights in directions that don't matter, at each step, for ever. The loss still falls, because the rest of the gradient is right, but part of each step is wasted. The correction subtracts these two parts, each with one mean over the row. The lab asks you to write it.

# %% tags=["hide-input"]
true_false(
    "LayerNorm's gradient for its input sums to 0 over each row, whatever the incoming gradient is.", True,
    "Adding a constant to the row does not change the output, so the derivative in that direction is 0. This derivative is the sum of the gradient's entries.",
)

# %% [markdown]
# ## Nudging: how far is far enough
#
# How could our colleague have known? By nudging. A derivative is the effect of a small change, so make a small change: $\big(f(x+h) - f(x-h)\big) / 2h$. You need no algebra and no trust.
#
# **Predict.** Is a smaller h always better, even h = 1e-12? At which h is the error smallest?

# %%
finite_difference_error(torch.exp, 1.0)

# %% [markdown]
# There are two errors. *Truncation*: a curve is not a line, so the central difference is off by about h²/6 times the third derivative. On these axes, this is a line with a slope of 2. (The error of a one-sided difference is proportional to h, so its slope is 1.) *Rounding*: f(x+h) and f(x−h) agree in nearly all their digits, and the subtraction keeps only the rest, with an error of about eps/h. This is a line with a slope of −1, and noise. The best h is where the two lines meet, near the cube root of eps: 6e-6 in float64. In float32, the best h is near 5e-3, and even there no more than five or six digits are right. On the far left, the error of float32 stays at 1, because x+h is rounded to x, and the difference is 0. That is why numeric gradients are computed **in float64**, and why a test in float32 can't tell a right gradient from a slightly wrong one.
#
# Nudging also costs two forwards for each *input*. For the 39,000 parameters of MiniGPT's head alone, nudging takes 78,000 forwards to find what one backward finds. So nudging is only for checking.

# %% tags=["hide-input"]
choice(
    "You check a gradient in float64 by central differences with h = 1e-6, and see a relative error of 1e-10. With h = 1e-3, the error is 1e-4. What do you conclude?",
    {
        "The gradient is right": "The error shrinks with h², until only the rounding error is left, here 1e-10. The error of a wrong gradient does not shrink with h.",
        "The gradient is wrong, because the error depends on h": "Truncation always depends on h. Be suspicious if the error *stays* when h shrinks.",
        "h = 1e-9 would be a stricter test": "The rounding error grows as h shrinks: at 1e-9, no more than about seven digits are left.",
    },
    answer="The gradient is right",
)

# %% [markdown]
# ## A Function of your own
#
# With `torch.autograd.Function`, you teach autograd a new node: `forward` computes and saves, and `backward` receives the incoming gradient and returns one gradient for each input. You saw such a class at the top. Here is another: the activation `x · sigmoid(x)`, with a derivative that was worked out on paper.

# %%
class SiLU(torch.autograd.Function):
    """x · sigmoid(x), whose derivative is s + x · s · (1 - s) where s = sigmoid(x)."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)           # not `ctx.x = x`: this one keeps track of versions
        return x * torch.sigmoid(x)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        s = torch.sigmoid(x)
        return grad_output * (s + x * s * (1 - s))


x = torch.randn(3, requires_grad=True)
autograd_graph(SiLU.apply(x).sum(), x=x)

# %% [markdown]
# In the graph, the `Function` is one node, with the name of the class. `gradcheck` takes small inputs in float64 and computes the whole Jacobian twice, once with backwards and once by nudging. `gradgradcheck` does the same for the derivative of the backward. It works here because our `backward` is made of ordinary operations.
#
# **Predict.** What does `gradcheck` say about our colleague's norm?

# %%
x = torch.randn(2, 5, dtype=torch.float64, requires_grad=True)
print("SiLU, gradcheck:    ", torch.autograd.gradcheck(SiLU.apply, (x,)))
print("SiLU, gradgradcheck:", torch.autograd.gradgradcheck(SiLU.apply, (x,)))
attempt(lambda: torch.autograd.gradcheck(FastNorm.apply, (x,)))

# %% [markdown]
# There it is: one line and a fraction of a second, and the silent bug is found. "Jacobian mismatch for output 0 with respect to input 0." When you write a backward, write this line below it.
#
# (What if your forward is made of tensor operations, and you don't want to write a backward? Then don't write one: autograd does it. A `Function` is for code that autograd can't see, such as your own kernel in [phase 05](05_custom_op.ipynb#cell-id=the-backward-is-a-kernel-too), and for saving memory.)

# %% [markdown]
# ## Kept, or computed again
#
# `checkpoint` runs a function a second time, and no other code notices it. What would it take to do that yourself? The plan is short: write a `Function` that saves only its inputs, and calls the function again in `backward`. Four things can go wrong, and most of them give no error.
#
# The first is recording. Is anything recorded while your `Function` runs? **Predict** what is printed, for a plain backward and for a backward that will itself be differentiated.

# %%
class Listening(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        print(
            "forward:  recording",
            torch.is_grad_enabled(),
            "  x requires a gradient",
            x.requires_grad,
        )
        return 2 * x

    @staticmethod
    def backward(ctx, grad_output):
        print("backward: recording", torch.is_grad_enabled())
        return 2 * grad_output


x = torch.ones(3, requires_grad=True)
Listening.apply(x).sum().backward()
torch.autograd.grad(Listening.apply(x).sum(), x, create_graph=True)

# %% [markdown]
# In the forward, nothing is ever recorded. For autograd, a `Function` is a single node, so autograd doesn't look inside, although `x` still says that it requires a gradient. This is good for a checkpoint: the function's intermediate results are freed while it runs. The backward is recorded only under `create_graph=True`. In a plain backward, the second run must switch recording on, with `torch.enable_grad()`.
#
# Then there is a graph inside a backward, and this backward must go through the inner graph before it returns. That is allowed. The second thing is where the inner graph ends. **Predict.** `inner` shares the bytes of `h` and begins a new graph. `w` existed before. Which tensors have a gradient after `backward`? And does `other` have one after `torch.autograd.grad`?

# %%
x, w = torch.tensor(2.0, requires_grad=True), torch.tensor(3.0, requires_grad=True)
h = x.exp()
inner = h.detach().requires_grad_()
(inner * w).backward()
print(f"backward: inner {inner.grad}   w {w.grad:.3f}   x {x.grad}")
other = torch.tensor(5.0, requires_grad=True)
print("grad:     inner", *torch.autograd.grad(inner * other, inner), "  other", other.grad)

# %% [markdown]
# `x` has no gradient: the path ends at `inner`. The gradient that arrived there is the gradient of `h`. In a checkpoint, the outer backward is still running, and it carries this gradient on to `x`. Without the `detach`, the inner backward would continue through nodes of the outer graph, and free what they had saved.
#
# And `w` got a gradient, although it was never an input. `backward` goes on to every leaf that it can reach, and a model's weights are such leaves. `torch.autograd.grad` goes only to the tensors that you name, so `other` has no gradient.
#
# The third thing is the random generator. **Predict.** The next cell runs dropout on twelve ones, four times. Which lines are equal?

# %%
ones = torch.ones(12)
before = torch.get_rng_state()
lines = {"the first run": F.dropout(ones, 0.5), "run again": F.dropout(ones, 0.5)}
with torch.random.fork_rng(devices=[]):
    torch.set_rng_state(before)
    lines["state put back"] = F.dropout(ones, 0.5)
lines["afterwards"] = F.dropout(ones, 0.5)
for name, line in lines.items():
    print(f"{name:14}", *("x" if kept else "." for kept in line.tolist()))

# %% [markdown]
# The first and the third. If you don't restore the generator, the second run computes a different network: other units are dropped, and the gradient belongs to a loss that nobody computed. This gradient has the right shape and the right size, and the training gets a little worse. You know this kind of bug from the top of this lesson. `fork_rng` saves the state of the generator and restores it at the end, so that the rest of the program gets the same random numbers as without the second run.
#
# You know the fourth thing already: somebody writes over a saved tensor. The section "Written over, while autograd watches" showed a guard against this mistake: the version. **Predict.** Here is the same mistake twice: with hooks that return each saved tensor as it is, and with hooks that keep a copy. Does autograd notice it?

# %%
x = torch.ones(3, requires_grad=True)


def result_written_over(pack):
    with saved_tensors_hooks(pack, lambda t: t):
        y = torch.exp(x)
    with torch.no_grad():
        y.add_(1)
    return torch.autograd.grad(y.sum(), x)[0]


attempt(lambda: result_written_over(lambda t: t))
attempt(lambda: result_written_over(lambda t: t.clone()))

# %% [markdown] tags=["printed 2.7183", "printed 3.7183"]
# Neither time. With the copy, no error is needed: the gradient is 2.7183. Without the copy, the gradient is 3.7183 again, as with `.data`, and there is no error. Even hooks that do nothing switch the guard off, because autograd can't know what your pack function did to the tensor. So you must do the check yourself: record `t._version` when you pack, and compare it when you unpack.
#
# PyTorch has two checkpoints: an old one, which is a `Function`, and a newer one, which is made of hooks. **Predict.** What does each of them do if an *input* is written over?

# %%
def input_written_over(use_reentrant):
    x.grad, h = None, x * 1
    y = checkpoint(torch.exp, h, use_reentrant=use_reentrant)
    with torch.no_grad():
        h.add_(1)
    y.sum().backward()
    return x.grad


attempt(lambda: input_written_over(True))            # the Function
attempt(lambda: input_written_over(False))           # the hooks

# %% [markdown]
# Both raise an error. The second run would get other numbers, and the gradient would belong to another input. Both checkpoints keep their inputs with `save_for_backward`, which records versions. (The old checkpoint is called "re-entrant" because its backward starts the engine a second time, from inside the first.)

# %% tags=["hide-input"]
choice(
    "Somebody writes a checkpoint and doesn't restore the generator's state. The block has dropout. What do you notice?",
    {
        "nothing but a model that is a little worse": "Values and shapes are fine, and the loss falls. But the second run drops other units than the first run, so its gradient is the gradient of another loss.",
        "an error, since the saved tensors don't fit": "All saved tensors come from the second run, so they fit each other.",
        "nothing: dropout's backward needs no random numbers": "It needs to know which units were dropped. The second run decides that again.",
    },
    answer="nothing but a model that is a little worse",
)

# %% [markdown]
# ## When the numbers go wrong: detect_anomaly
#
# The last tool is for the day when the loss is fine and a gradient is NaN. This forward is harmless: where x is 0, the branch with the root is not taken.
#
# **Predict.** What is the gradient at 0, and at 4?

# %%
x = torch.tensor([0.0, 4.0], requires_grad=True)
y = torch.where(x > 0, torch.sqrt(x), torch.zeros_like(x))
y.sum().backward()
print("y", y.detach(), "  gradient", x.grad)

# %% [markdown]
# The gradient at 0 is NaN, although the branch with the root was not even taken there.
#
# In backward, `where` sends 0 to the branch that was not taken. The root multiplies this 0 by its derivative at 0, which is infinite, and 0 · ∞ is NaN. In a big model you would not know where to look. `detect_anomaly` stops at the first node that returns a NaN and names it. (It also prints where in the *forward* that node was made. It is slow, so switch it on for one step only.)

# %%
with warnings.catch_warnings(action="ignore"), torch.autograd.detect_anomaly():
    x = torch.tensor([0.0, 4.0], requires_grad=True)
    y = torch.where(x > 0, torch.sqrt(x), torch.zeros_like(x))
    attempt(lambda: y.sum().backward())
safe = torch.where(x > 0, x, torch.ones_like(x))            # fix the input, not the output
torch.where(x > 0, torch.sqrt(safe), torch.zeros_like(x)).sum().backward()
print("fixed:", x.grad)

# %% [markdown]
# ## What you can now do
#
# [The lab](../release/02_autograd/02_autograd.ipynb) of this phase asks you to do it:
#
# - find every adjoint of a small graph on paper, also where paths meet;
# - write an engine that differentiates any calculation with scalars, and visit any graph in the order that backward needs;
# - sum a gradient back to the shape that was broadcast;
# - derive the vector–Jacobian products of linear, relu, softmax, LayerNorm and cross-entropy, all without a Jacobian;
# - say why one backward is enough for a loss, and what many losses would need;
# - check a gradient by nudging, with an h that you can justify;
# - teach autograd a softmax of your own that passes `gradcheck` and `gradgradcheck`;
# - write a checkpoint: keep only the inputs, run the function again on the way back with the same random numbers, and raise an error if an input was written over;
# - compute the gradients of MiniGPT's LM head, agree with autograd, and train the head with them.
#
# And you can answer the question. While you compute, each operation makes a node, which knows the nodes of its inputs and saves just enough to compute one vector–Jacobian product. `backward` visits the nodes, users first. At each node, it multiplies the incoming gradient by the local derivatives, and adds the results to the gradients of the node's inputs.

# %% [markdown]
# ## What this phase leaves out
#
# - **Where parameters are kept**, and how a module finds them all. [Phase 03](03_module.ipynb#cell-id=a-tree-and-walks-through-it).
# - **The place of autograd in the dispatcher**: `no_grad` changes no key. Autograd's kernel itself tests for `no_grad`. [Phase 04](04_dispatcher.ipynb#cell-id=keys-of-the-thread).
# - **A backward for a kernel of your own**, registered with `torch.library`. [Phase 05](05_custom_op.ipynb#cell-id=what-pytorch-asks-of-an-operator).
# - **The joint graph of forward and backward**, made ahead of time, and which tensors a partitioner saves. [Phase 06](06_compile.ipynb#cell-id=what-is-saved-and-what-is-computed-again).
# - **Gradient accumulation, clipping and scaling** in a training loop. [Phase 07](07_training.ipynb#cell-id=a-big-batch-in-pieces).
# - **What hooks are for** when many processes train: DDP overlaps communication with backward. [Phase 10](10_distributed.ipynb#cell-id=one-big-batch).
# - Forward mode (`torch.func.jvp`), complex derivatives and `vmap` are left to the documentation.

# %% [markdown]
# ## Sources
#
# Papers:
# - S. Linnainmaa, "[Taylor expansion of the accumulated rounding error](https://doi.org/10.1007/BF01931367)", *BIT* 16, 1976: reverse mode, before it had the name.
# - D. E. Rumelhart, G. E. Hinton, R. J. Williams, "[Learning representations by back-propagating errors](https://doi.org/10.1038/323533a0)", *Nature* 323, 1986.
# - A. Griewank, A. Walther, [*Evaluating Derivatives*](https://doi.org/10.1137/1.9780898717761), SIAM, 2nd edition 2008: adjoints, and what a gradient costs at most.
# - A. G. Baydin, B. A. Pearlmutter, A. A. Radul, J. M. Siskind, "[Automatic differentiation in machine learning: a survey](https://arxiv.org/abs/1502.05767)", *JMLR* 18, 2018.
# - A. Paszke et al., "[Automatic differentiation in PyTorch](https://openreview.net/forum?id=BJJsrmfCZ)", NIPS 2017 workshop.
# - J. L. Ba, J. R. Kiros, G. E. Hinton, "[Layer normalization](https://arxiv.org/abs/1607.06450)", 2016 (arXiv:1607.06450).
# - T. Chen, B. Xu, C. Zhang, C. Guestrin, "[Training deep nets with sublinear memory cost](https://arxiv.org/abs/1604.06174)", 2016: a checkpoint for each of √n segments.
# - A. Karpathy's [micrograd](https://github.com/karpathy/micrograd) is the best-known scalar engine of this kind; ours follows its spirit. He writes it before your eyes in the first lecture of "[Neural Networks: Zero to Hero](https://karpathy.ai/zero-to-hero.html)".
#
# PyTorch's documentation: "[Autograd mechanics](https://docs.pytorch.org/docs/stable/notes/autograd.html)", "[Extending PyTorch](https://docs.pytorch.org/docs/stable/notes/extending.html)" (extending `torch.autograd`), "[Gradcheck mechanics](https://docs.pytorch.org/docs/stable/notes/gradcheck.html)", [`torch.autograd.graph`](https://docs.pytorch.org/docs/stable/autograd.html#autograd-graph), [`torch.utils.checkpoint`](https://docs.pytorch.org/docs/stable/checkpoint.html), [`torch.autograd.detect_anomaly`](https://docs.pytorch.org/docs/stable/autograd.html#torch.autograd.detect_anomaly), and the tutorial "[A Gentle Introduction to torch.autograd](https://docs.pytorch.org/tutorials/beginner/blitz/autograd_tutorial.html)". The derivative of each operator, and the tensors that it saves, are in [`tools/autograd/derivatives.yaml`](https://github.com/pytorch/pytorch/blob/v2.13.0/tools/autograd/derivatives.yaml).
