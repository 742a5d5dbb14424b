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
# It takes about an hour and a half. You need what a derivative is and the chain rule for one variable; the rest is bookkeeping, and the bookkeeping is the lesson. Where a paragraph begins with **Predict**, settle on an answer before you look below it. Nothing here is graded, and everything here is used in the lab.

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
# Phase 01 said what a tensor is: a storage and a way of reading it. It left one field of the record alone, `requires_grad`. This phase is about that field, and about what hangs on it: while you compute forward, PyTorch writes down how to come back.

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
# A colleague has written a LayerNorm of their own, forward and backward, because the real one was "too slow". (The class is the end of this lesson; for now, believe that `backward` turns the gradient of the output into the gradient of the input.) The forward agrees with PyTorch's to the last digits.

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
# It looks right, too: the output is the centred input times a scale, so its derivative is the scale. Train a small network with it, and the same network with PyTorch's.
#
# **Predict.** Will there be an error, a NaN, a loss that stays where it is?

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
# None of the three. The loss falls, the curve is smooth, and it ends at about three times the loss that it could have. Without the second run there would be nothing to see. A forward that is wrong gives wrong numbers; a backward that is wrong gives a *slightly worse model*, and whoever trains it will change the learning rate.
#
# So we had better know:
#
# > **What is written down while I compute, and what exactly does `backward` do with it?**

# %% [markdown]
# ## Three lines, by hand
#
# Here is a whole forward pass: `c = a·b`, `d = c + a`, `L = d²`, at a = 2 and b = 3. So c = 6, d = 8, L = 64. For each of the five names we want its **adjoint**: the derivative of L with respect to it, all else that does not depend on it staying as it is.
#
# Go backwards. L grows by 1 for each unit that L grows, so its adjoint is 1. L is d², whose *local derivative* is 2d = 16: d's adjoint is 1 · 16 = 16. From d to c the local derivative is 1, so c's adjoint is 16, too; from c to b it is a = 2, and b's adjoint is 16 · 2 = 32.
#
# **Predict.** And a's? Remember who uses it.

# %%
backward_stepper({"c": "a * b", "d": "c + a", "L": "d ** 2"}, a=2.0, b=3.0)

# %% [markdown]
# Two paths lead from a to L. By way of c come 16 · 3 = 48; straight into d comes 16 · 1 = 16. **Paths add**: dL/da = 64, dL/db = 32. (Live, the slider goes through it one node at a time.)
#
# That is everything. *At each node: the adjoint that has arrived, times the local derivative, is added to each input's adjoint.* A transformer has more nodes, and no other rule. Is it true? Nudge a, and let PyTorch have its say.

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
    "`y = x · x` at x = 5, written as one multiplication of x with x. What is the adjoint of x, when y's is 1?", 10,
    why="x is used twice. Each use has the local derivative 5, and paths add.",
    wrong={5: "That is one of two paths. Both factors are x.", 25: "That is the value of y. Local derivatives multiply along a path; across paths they add."},
)

# %% [markdown]
# ## An engine in twenty lines
#
# Let numbers do the bookkeeping themselves. Each remembers its value, where it came from, and the local derivative for each of its inputs; all this is known at the moment it is computed.

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
# The last three lines are the rule of the section above, word for word. What is missing is the order, `users_first`.

# %% [markdown]
# ## Who may go first
#
# A node may pass its adjoint on only when it is complete, after *all* its users have paid in. In our three lines, a is one step from d, and so is c; but c uses a. Whoever goes by the distance from L may well come to a before c, with 16 of its 64, and if a had inputs of its own they would get a quarter of what is theirs.
#
# The right order has a name, *topological*. One way to find it: go down into all inputs of a node first, write the node down when you leave it, and turn the list round at the end.

# %%
def users_first(root):
    """All values that `root` depends on, each after everything that uses it."""
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
# Twenty lines, and they differentiate anything that is made of sums and products. (This version recurses, and Python gives up after a thousand levels or so. The lab asks for an order that does not.)
#
# **Predict.** Call `(d * d).backward()` a second time, on the same `a`. What is `a.adjoint` now?

# %%
(d * d).backward()
print("dL/da after a second backward:", a.adjoint)

# %% [markdown]
# Not 64, and not 128 either. `d` still had its adjoint of 16 from the first time, gained another 16, and passed the sum on; so did `c`. PyTorch avoids half of that: what is on the way is thrown away after each backward, and only the *leaves* keep adding. We come to that.

# %% tags=["hide-input"]
choice(
    "Which of these orders is right for `c = a·b`, `d = c + a`, `L = d²`?",
    {
        "L, d, a, c, b": "a comes before c, which uses it: it would go on with a part of its adjoint.",
        "L, d, c, a, b": "Every node stands after all that use it. (L, d, c, b, a would do as well.)",
        "a, b, c, d, L": "That is the order of the forward pass: users last.",
    },
    answer="L, d, c, a, b",
)

# %% [markdown]
# ## PyTorch's own graph
#
# PyTorch's engine is this one, in C++, with tensors for numbers. A tensor that came out of an operation has a `grad_fn`: the node that knows the way back. `next_functions` lead to the nodes of its inputs.

# %%
torch.manual_seed(0)
x = torch.randn(5, 3)
W, b = torch.randn(4, 3, requires_grad=True), torch.randn(4, requires_grad=True)
y = torch.tanh(x @ W.T + b)
print(y.grad_fn)
print(y.grad_fn.next_functions)
print(y.grad_fn.next_functions[0][0].next_functions)

# %% [markdown]
# `TanhBackward0` is the way back through tanh. Its input came from a sum, so it leads to `AddBackward0`; that leads to a product and to an `AccumulateGrad`. This last kind is where a path ends: it holds a leaf, here the bias, and adds what arrives to its `.grad`.
#
# Local derivatives are not stored as numbers but as whatever is needed to compute them: the **saved tensors**, the blue words in the picture.
#
# **Predict.** Which of the nodes below have to keep something? And tanh, does it keep its input or its output?

# %%
loss = (y * y).sum()
autograd_graph(loss, W=W, b=b)

# %% [markdown]
# A sum needs to remember nothing: its local derivative is 1. A product keeps both factors. The derivative of tanh is 1 − tanh², so the *output* is enough, and the input may be freed. The product with `W` keeps `x`, which it needs for the weight's gradient; it does not keep `W`, because `x` doesn't require a gradient and nobody will ask. These are the *activations* of [phase 01](01_tensors.ipynb#cell-id=where-the-memory-goes)'s memory bars: what a training step holds between forward and backward. (They come to 140 bytes. Both factors of the product and the result of tanh are one tensor, `y`, whose 80 bytes are kept once; the other 60 are `x`.)
#
# They go away when they have been used.

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
# Backward frees as it goes, so a second backward through the same graph fails, unless the first was called with `retain_graph=True`. And what if a saved tensor changes between forward and backward? Each tensor carries a *version*, a counter that in-place operations increase; a node notes the version of what it saves.

# %%
x = torch.ones(3, requires_grad=True)
y = torch.exp(x)                 # exp saves its output: it is its own derivative
y.add_(1)                        # and now that output is another number
print("version of y:", y._version)
attempt(lambda: y.sum().backward())

# %% [markdown]
# This is among the best error messages that PyTorch has: the alternative would have been a wrong gradient, and silence. (Write `y = y + 1` and all is well.)

# %% tags=["hide-input"]
true_false(
    "`y = torch.tanh(x); y += 1` and then `y.sum().backward()` works, since tanh only saved its input.", False,
    "tanh saves its *output*, and `+=` is in-place. The version no longer fits and backward refuses. With `torch.sin`, which saves its input, it would work.",
)

# %% [markdown]
# ## A graph made anew each time
#
# Nobody declared that graph. It was made by the calls as they happened, so it contains what *happened*: loops are unrolled, and of an `if` there is one branch.

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
# The comparison itself left no trace: a Python `if` is not differentiable, and autograd never hears of it. That is convenient, and it has a price. Every forward pays for its graph again, and nothing can look ahead. [Phase 06](06_compile.ipynb#cell-id=forward-and-backward-in-one-graph) (`torch.compile`) is about getting that back.

# %% [markdown]
# ## Leaves, and gradients that add up
#
# A **leaf** that requires a gradient is where a graph begins: a tensor that you made, not one that was computed. Parameters are leaves. Only they get a `.grad`.
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
# `scaled` is no leaf and has a gradient only because `retain_grad` asked for it. And `z` is the trap: the tensor that required a gradient was the nameless `torch.ones(3)`, whose gradient nobody can reach any more. `z` is a product. An optimizer given `z` would refuse it; a hand-written update would find `None`. (`nn.Parameter(3 * torch.ones(3))` does the arithmetic first.)
#
# `AccumulateGrad` *adds*. **Predict** the two lines.

# %%
w = torch.ones(3, requires_grad=True)
for _ in range(2):
    (2 * w).sum().backward()
    print(w.grad)

# %% [markdown]
# That is the same "paths add" once more, stretched over time: two backwards are two users of `w`. It is useful (four small batches make a large one, when memory is short), and it is the reason for `zero_grad`. Forget it, and each step follows the sum of all gradients so far, an accident that looks like a momentum of 1. `zero_grad` sets `.grad` to `None`, which saves the memory and makes the next backward write instead of adding.

# %% tags=["hide-input"]
number(
    "A loop without `zero_grad`: each backward gives a gradient of 0.5 for `w`, which an optimizer with learning rate 0 leaves alone. What is `w.grad` after 8 steps?", 4,
    why="8 · 0.5: `.grad` is a sum over all backwards since it was last cleared.",
    wrong={0.5: "That would need a `zero_grad` in each step.", 8: "That is the number of steps."},
)

# %% [markdown]
# ## When nothing is recorded
#
# Three ways to say that no way back is needed, and they differ.

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
# `no_grad` computes without writing down; what comes out is an ordinary tensor that can be used in a later graph as a constant (the first attempt returned `None`: it worked). `inference_mode` goes further and gives tensors without version counters, a little faster, which no node may save: for the product with `w` one would have to, and nobody could vouch for it. `detach` cuts at one place: the same bytes, no `grad_fn`.
#
# Evaluate in `inference_mode`; update weights by hand in `no_grad`; `detach` what should be taken as given, such as a target that was computed by a model.

# %% [markdown]
# ## Written over, while autograd watches
#
# What if the result of a computation is written *into* a tensor that is there already? Here is a board of four zeros, which requires no gradient, and a view of its middle.
#
# **Predict.** `part` gets a `grad_fn`. What does `board` get, into which nobody wrote by that name?

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
# They share one storage, so `board` has changed as well, and autograd rewrites its history: `CopySlices` is the way back through "all of the board as it was, with the middle replaced". It leads to two places, to the board's old history (there is none) and to x, which receives the two entries of the gradient that lie where it was written. The view's own history is thrown away and made anew: it is now read off the board, by `AsStridedBackward0`.
#
# A leaf can't be rewritten like that. It is where the graph begins; had it a history, it were no leaf.

# %%
w = torch.ones(3, requires_grad=True)
attempt(lambda: w.add_(1))
attempt(lambda: w[:2].add_(1))
with torch.no_grad():
    print("under no_grad:", w.add_(1))

# %% [markdown]
# The last line is how every optimizer writes. Under `no_grad` nothing is recorded, and still one thing is noted: the version. It belongs to the storage, so all views share it, and so does what `detach` returns. **Predict.** Three ways to write over the result of `exp` behind autograd's back. How many does it catch?

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

# %% [markdown]
# Two. `.data` is older than the counters: it hands out the same bytes with a counter of its own, and the gradient comes out as 3.7183 where it should be 2.7183, without a word. There is no use of `.data` today that `detach()` or `no_grad` would not serve better.
#
# You may also stand in the way of a gradient and look at it, or change it: a **hook** is a function that is called with it. There are several places to stand. **Predict** the order.

# %%
w = torch.tensor(3.0, requires_grad=True)
h = w * 2
w.register_post_accumulate_grad_hook(lambda w: print("w has its gradient:", w.grad))
w.register_hook(lambda g: print("on its way to w:   ", g))
h.grad_fn.register_hook(lambda to_inputs, to_outputs: print("through the node:  ", to_inputs))
h.register_hook(lambda g: print("on its way to h:   ", g) or g.clamp(max=5.0))
(h * h).backward()

# %% [markdown]
# In the order in which the gradient travels, whatever the order of registration. `h`'s hook returned something, so that is what went on: 5 in place of 12, and the node made 10 of it. `w`'s first hook sees the gradient of *this* backward, before `AccumulateGrad` adds it; the last one sees `.grad` as it is afterwards, and may already step and free it. DDP's exchange of gradients ([phase 10](10_distributed.ipynb#cell-id=one-big-batch)) hangs on such a hook, at every parameter.
#
# A hook stands at a *value*, not at a name. **Predict.** Two hooks on `h`, and between them `h` is written over. What does each of them see?

# %%
h = torch.tensor(3.0, requires_grad=True) * 2
h.register_hook(lambda g: print("the hook from before:", g))
h.mul_(10)
h.register_hook(lambda g: print("the hook from after: ", g))
h.backward()

# %% [markdown]
# The one from after comes first, and sees the gradient of what `h` is now. The other stayed with what `h` was, a place that has no name any more, and there 10 times as much arrives. (Two hooks at the same place are called in the order in which they were registered.)
#
# And the saved tensors have hooks, too: one function packs what a node saves, another unpacks it when backward asks. Packing may mean to write it to disk, to keep it in 16 bits, or just to count it.

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
# `checkpoint` is made of these hooks. Packing keeps nothing; the first unpacking runs the function again from its inputs, and hands out what it saves this time. What is kept between forward and backward falls from six tensors to two, the inputs; what it costs is one more forward. (A function that draws at random must draw the same again: `checkpoint` puts the generators back for it.) Models that fill a GPU are trained so, a checkpoint to each block.

# %% tags=["hide-input"]
choice(
    "A block with twelve layers is wrapped in one `checkpoint`. When does its memory peak?",
    {
        "in the forward, as without it": "In the forward, only the block's inputs stay.",
        "when backward enters the block: all that its layers save is there again": "The whole block is run once more, and everything it saves is alive until backward has used it. So one checkpoint around the whole model saves next to nothing: it takes several.",
        "never: each layer is computed again on its own": "That would be twelve checkpoints, one for each layer.",
    },
    answer="when backward enters the block: all that its layers save is there again",
)

# %% [markdown]
# ## A layer only has to know one product
#
# With tensors, a local derivative is a table: the **Jacobian**, one row for each output, one column for each input. For the LM head over 32 positions it would have 19,200 rows and 2,048 columns, 157 MB, for one small layer, and nearly all of it zeros.
#
# So nobody makes it. What backward needs at a node is *the incoming gradient times the Jacobian*: a **vector–Jacobian product**. A backward pass is a chain of such products, from right to left.
#
# Take `y = x @ W.T`, with rows of `x` of size 3 and rows of `y` of size 4, and call the incoming gradient g; it has the shape of `y`. Entry i of a row of `x` reaches every entry k of the same row of `y`, each with the factor W[k, i], and paths add: the gradient for that entry is the sum over k of g[k] · W[k, i]. For all rows at once, that is `g @ W`.
#
# And the weight? In a single row, W[k, i] reaches y[k] alone, with the factor x[i]. So the row asks for g[k] · x[i] at every k and i: an *outer product* of its piece of g with its piece of `x`. All rows use the same `W`, and paths add.

# %%
torch.manual_seed(0)
x, W = torch.randn(5, 3, requires_grad=True), torch.randn(4, 3, requires_grad=True)
g = torch.randn(5, 4)                                     # what comes back from above
for_x, for_W = torch.autograd.grad(x @ W.T, (x, W), grad_outputs=g)
print("g @ W is the gradient for x:              ", torch.allclose(for_x, g @ W))
outer = [torch.outer(g[n], x[n]) for n in range(5)]
print("the sum of outer products is that for W:  ", torch.allclose(for_W, sum(outer)))

# %% [markdown]
# A sum of outer products over the rows is itself a matrix product, `g.T @ x`. So the way back through a linear layer is two products, each as large as the one of the way forward. That is why a backward costs about twice its forward, however many weights there are. (A bias is added to every row, and gets the sum of their gradients; the next section says why.)
#
# Now check the general rule on a small one: the whole Jacobian, made by brute force, and the product that autograd makes without it.

# %%
torch.manual_seed(0)
x, W = torch.randn(3, requires_grad=True), torch.randn(4, 3)
jacobian = torch.autograd.functional.jacobian(lambda x: torch.tanh(W @ x), x)
v = torch.randn(4)
(product,) = torch.autograd.grad(torch.tanh(W @ x), x, grad_outputs=v)
print("Jacobian", tuple(jacobian.shape), "  v @ Jacobian:", v @ jacobian)
print("                     autograd:", product)

# %% [markdown]
# Now the reason why training is possible at all. A loss is *one number*, so the Jacobian of the loss has one row. Times the vector (1), that row is the gradient: one backward, all parameters, a million or a billion of them.
#
# With 32 losses the table has 32 rows, and one product gives one *combination* of them. PyTorch won't guess which.
#
# **Predict.** What is `w.grad` when the incoming gradient is (1, 10, 100)?

# %%
w = torch.tensor(2.0, requires_grad=True)
losses = w * torch.tensor([1.0, 2.0, 3.0])
attempt(lambda: losses.backward())
losses.backward(gradient=torch.tensor([1.0, 10.0, 100.0]))
print("w.grad:", w.grad)
rows = [torch.autograd.grad((w * k), w)[0].item() for k in (1.0, 2.0, 3.0)]
print("each loss on its own, one backward each:", rows)

# %% [markdown]
# 1·1 + 10·2 + 100·3 = 321. `loss.mean()` is such a choice, too: it sends 1/32 to every row. To have all rows apart takes one backward for each (or the same, batched: `torch.func.jacrev`). From the other side, *forward mode* computes Jacobian times vector, one column for each run: the better way where there are few inputs and many outputs, which is never the case for a loss.

# %% tags=["hide-input"]
choice(
    "A network has 10 inputs to differentiate by, and 1,000 outputs. How many backwards does its full Jacobian take?",
    {
        "10": "That is forward mode: one run for each input, here the better way.",
        "1,000": "One backward gives one row, and there is a row for each output.",
        "10,000": "That is the number of entries. A backward gives a whole row of them.",
        "1": "One backward gives one combination of the rows.",
    },
    answer="1,000",
)

# %% [markdown]
# ## Broadcasting's adjoint is a sum
#
# A bias of 4 numbers is added to 5 rows. In [phase 01](01_tensors.ipynb#cell-id=broadcasting-a-view-with-stride-0) you saw how: stride 0, one number read in five places. Read in five places means *used* five times, and paths add.

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
# The rule has two halves. A dimension that broadcasting *added* is summed away. A dimension that it *stretched* from 1 is summed and stays, with size 1. And it works in the other direction as well: the adjoint of a sum is a broadcast, since each summand gets the whole incoming gradient.

# %% tags=["hide-input"]
choice(
    "`scores` is (8, 4, 32, 32), `mask_weight` is (4, 1, 1), and they are multiplied. Over which dimensions is the gradient summed on its way back to `mask_weight`?",
    {
        "0, 2 and 3": "0 was added, 2 and 3 were stretched. The first goes, the others stay with size 1.",
        "2 and 3": "Dimension 0 was added by broadcasting: all 8 examples read the same numbers.",
        "0 only": "Dimensions 2 and 3 were stretched from 1 to 32, so each number was read 1,024 times.",
        "1": "That is the one dimension in which every weight has its own entry.",
    },
    answer="0, 2 and 3",
)

# %% [markdown]
# ## Softmax: a Jacobian that nobody makes
#
# Relu is soon done: each output depends on its own input alone, so its Jacobian is a diagonal, 1 where the input is positive and 0 where it is negative, and the product with it is elementwise. (At exactly 0 relu has a corner and no derivative, and every library has had to choose one. The lab lets you find out which.)
#
# Softmax is the first layer in which every output depends on every input: raise one logit, and all other probabilities sink. Its Jacobian for a row is full, $\partial y_i / \partial x_j = y_i(\delta_{ij} - y_j)$. Look at a small one.

# %%
logits = torch.tensor([2.0, 1.0, 0.0, -1.0])
y = torch.softmax(logits, -1)
jacobian = torch.autograd.functional.jacobian(lambda t: torch.softmax(t, -1), logits)
print(jacobian)
print("sum of each row:   ", jacobian.sum(1))
print("rank:              ", torch.linalg.matrix_rank(jacobian, atol=1e-6).item(), "of 4")

# %% [markdown]
# A positive diagonal, all else negative, and rows that sum to 0: add the same number to all logits, and nothing happens. It is a diagonal minus an *outer product* of y with itself, and that is what makes it cheap: a vector times such a table is an elementwise product, less y times a single number. You will find that number in the lab; it is one for each row.
#
# **Predict.** What is the gradient for the logits, when the incoming gradient is the same for all probabilities?

# %%
logits = torch.tensor([[2.0, 1.0, 0.0, -1.0]], requires_grad=True)
(grad,) = torch.autograd.grad(torch.softmax(logits, -1), logits, torch.full((1, 4), 7.0))
print(grad)

# %% [markdown]
# Nothing, but for rounding: the probabilities sum to 1 whatever you do, so pushing them all the same way pushes nowhere. This is why a test with `softmax(x).sum().backward()` proves nothing. *Always test a backward with random incoming gradients.*

# %% [markdown]
# ## Cross-entropy: what came minus what should have come
#
# Behind the LM head stands the mean cross-entropy: minus the log of the probability that the model gave to the right word. The log of a softmax is the logit less one number for the whole row, the log of the sum of all exponentials. The gradient is the friendliest in the whole field.

# %%
logits = torch.tensor([[2.0, 1.0, 0.0, -1.0], [0.0, 3.0, 0.0, 0.0]], requires_grad=True)
targets = torch.tensor([0, 2])
F.cross_entropy(logits, targets).backward()
print("probabilities\n", torch.softmax(logits, -1).detach())
print("gradient, times the number of rows\n", 2 * logits.grad)

# %% [markdown]
# Everywhere the probability itself, and at the right word 1 less: *what came minus what should have come*, and the share of each row in the mean. The first row gave the right word 0.64 and is pulled by the 0.36 that is missing; the second, sure of the wrong word, gets almost −1 and +1. Softmax alone goes numb when it is sure of itself, its Jacobian near 0; together with the log, it does not.
#
# Here it is on the model that this course is about: what do the 600 logits of MiniGPT's head hear, when the sentence goes on as it does?

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
# At each position the right word is pulled up (a negative gradient: the optimizer subtracts), and whatever the model thought likely in its place is pushed down. From here on it is one linear layer back to `x`, `W` and `b`: the lab's last exercise.

# %% [markdown]
# ## LayerNorm: three ways to the loss
#
# Back to our colleague. LayerNorm subtracts the mean of a row and divides by its deviation. An entry of the row reaches the output straight, *and* by way of the mean, *and* by way of the variance, which all other entries of the row share. Their backward followed the first.
#
# What does the full one look like? Two things can be said without any algebra. Add the same number to the whole row: the output stays. Stretch the row away from its mean: the output stays (but for eps). A gradient says in which direction the loss changes, and in these two directions it does not; so the gradient must have no part along either.

# %%
torch.manual_seed(0)
x, upstream = torch.randn(1, 64, requires_grad=True), torch.randn(1, 64)
normed = F.layer_norm(x, (64,))
for name, norm in {"PyTorch's": lambda t: F.layer_norm(t, (64,)), "theirs": FastNorm.apply}.items():
    (grad,) = torch.autograd.grad(norm(x), x, upstream)
    along_mean, along_row = grad.mean().item(), (grad * normed).mean().item()
    print(f"{name:10} along the mean {along_mean:+.6f}, along the row {along_row:+.6f}")

# %% [markdown]
# PyTorch's has none (to rounding). Our colleague's pushes the weights in directions that don't matter, at each step, for ever: the loss still falls, since the rest of the gradient is right, and the optimizer's budget goes to waste. The correction is to take these two parts out, each with one mean over the row; the lab asks you to write it.

# %% tags=["hide-input"]
true_false(
    "LayerNorm's gradient for its input sums to 0 over each row, whatever the incoming gradient is.", True,
    "Adding a constant to the row changes nothing, so the derivative in that direction, which is the sum of the gradient's entries, is 0.",
)

# %% [markdown]
# ## Nudging: how far is far enough
#
# How could they have known? By nudging. A derivative is what a small change does, so make a small change: $\big(f(x+h) - f(x-h)\big) / 2h$. No algebra, and no trust needed.
#
# **Predict.** Smaller is better, so take h = 1e-12? Where does the error become smallest?

# %%
finite_difference_error(torch.exp, 1.0)

# %% [markdown]
# There are two errors. *Truncation*: a curve is no line, and the central difference is off by about h²/6 times the third derivative; on these axes a slope of 2. (One-sided, the error goes with h, and the slope is 1.) *Rounding*: f(x+h) and f(x−h) agree in nearly all their digits, and the subtraction keeps only the rest, with an error of about eps/h; a slope of −1, and noise. Where the two meet lies the best h, near the cube root of eps: 6e-6 in float64. In float32 it is near 5e-3, and even there no more than five or six digits are left; on the far left its line is flat at an error of 1, because x+h rounds to x itself and the difference is 0. That is why numeric gradients are done **in float64**, and why a test in float32 can neither convict nor acquit.
#
# And it costs two forwards for each *input*. For the 39,000 parameters of MiniGPT's head alone, that is 78,000 forwards to find what one backward finds. Nudging is for checking.

# %% tags=["hide-input"]
choice(
    "You check a gradient in float64 by central differences with h = 1e-6, and see a relative error of 1e-10. With h = 1e-3 it is 1e-4. What do you conclude?",
    {
        "The gradient is right": "The error goes with h², until rounding: 1e-10 is what is left. A wrong gradient has an error that does not shrink with h.",
        "The gradient is wrong, for the error depends on h": "Truncation always depends on h. Suspect the error that *stays* when h shrinks.",
        "h = 1e-9 would be a stricter test": "Rounding grows as h shrinks: at 1e-9 no more than about seven digits are left.",
    },
    answer="The gradient is right",
)

# %% [markdown]
# ## A Function of your own
#
# `torch.autograd.Function` is how you teach autograd a node: `forward` computes and saves, `backward` receives the incoming gradient and returns one gradient for each input. You saw one at the top. Here is another, the activation `x · sigmoid(x)`, with its derivative from paper.

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
# In the graph it is one node, with the name of the class. `gradcheck` takes small inputs in float64 and makes the whole Jacobian twice, once by backwards and once by nudging; `gradgradcheck` does the same for the derivative of the backward, which works here because backward is made of ordinary operations.
#
# **Predict.** What do they say of our colleague's norm?

# %%
x = torch.randn(2, 5, dtype=torch.float64, requires_grad=True)
print("SiLU, gradcheck:    ", torch.autograd.gradcheck(SiLU.apply, (x,)))
print("SiLU, gradgradcheck:", torch.autograd.gradgradcheck(SiLU.apply, (x,)))
attempt(lambda: torch.autograd.gradcheck(FastNorm.apply, (x,)))

# %% [markdown]
# There it is: one line, a fraction of a second, and the silent bug has a voice. "Jacobian mismatch for output 0 with respect to input 0." Whoever writes a backward writes this line below it.
#
# (What if you have the forward in tensor operations, and no wish for a backward? Then don't write one. A `Function` is for what autograd can't see, such as a kernel of your own in [phase 05](05_custom_op.ipynb#cell-id=the-backward-is-a-kernel-too), and for saving memory.)

# %% [markdown]
# ## Kept, or computed again
#
# `checkpoint` runs a function a second time, and nobody notices. What would it take to do that yourself? The plan is short: a `Function` that saves nothing but its inputs, and in `backward` calls the function again. Four things stand in its way, and most of them are silent.
#
# The first is recording. Is anything written down while a `Function` of yours is at work? **Predict** the words, for a plain backward and for one that shall itself be differentiated.

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
# In the forward nothing ever is. To autograd a `Function` is a single node, so it doesn't look inside, though `x` still says what it wants; and a checkpoint could wish for nothing better, for what the function makes on its way is freed as it goes. The backward is recorded only under `create_graph=True`. In a plain one, the second run has to ask for its graph: `torch.enable_grad()`.
#
# Then there is a graph within a backward, and somebody must go back through it, there and then. That is allowed. The second thing is where it ends. **Predict.** `inner` holds the bytes of `h` and begins a graph of its own; `w` was there already. Who has a gradient after `backward`? And `other`, after `torch.autograd.grad`?

# %%
x, w = torch.tensor(2.0, requires_grad=True), torch.tensor(3.0, requires_grad=True)
h = x.exp()
inner = h.detach().requires_grad_()
(inner * w).backward()
print(f"backward: inner {inner.grad}   w {w.grad:.3f}   x {x.grad}")
other = torch.tensor(5.0, requires_grad=True)
print("grad:     inner", *torch.autograd.grad(inner * other, inner), "  other", other.grad)

# %% [markdown]
# `x` has none: the way ends at `inner`. What has arrived there is what `h` is owed, and the outer backward, which is still under way, will carry it on to `x`. Without the `detach` the inner one would have gone on by itself, through nodes that are not its own, and freed what they had saved.
#
# And `w`, which nobody handed in, got its gradient in passing. `backward` goes on to every leaf that it meets, and a model's weights are such leaves; `torch.autograd.grad` goes to those that you name, and leaves `other` with nothing.
#
# The third thing is the dice. **Predict.** Dropout on twelve ones, four times. Which lines are alike?

# %%
ones = torch.ones(12)
before = torch.get_rng_state()
lines = {"the first run": F.dropout(ones, 0.5), "run again": F.dropout(ones, 0.5)}
with torch.random.fork_rng(devices=[]):
    torch.set_rng_state(before)
    lines["dice put back"] = F.dropout(ones, 0.5)
lines["afterwards"] = F.dropout(ones, 0.5)
for name, line in lines.items():
    print(f"{name:14}", *("x" if kept else "." for kept in line.tolist()))

# %% [markdown]
# The first and the third. Run again as it is, it is another network: other units are dropped, and the gradient that comes out belongs to a loss that nobody computed. It has the right shape and the right size, and the training gets a little worse; you know this kind of bug from the top of this lesson. `fork_rng` remembers where the generator stands and puts it back at the end, so that the rest of the program draws what it would have drawn anyway.
#
# The fourth you know, too: somebody writes over what was saved. "Written over, while autograd watches" had a guard against that, the version. **Predict.** Here is the same accident, with hooks that hand each saved tensor on as it is, and with hooks that keep a copy. Is it noticed?

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

# %% [markdown]
# Neither time. The copy is right to be silent; the other is the 3.7183 of `.data` again, and no word said. Even hooks that do nothing take the guard away, since autograd can't know what was made of a tensor by packing it. Whoever packs vouches, and can: `t._version` is there to be noted and compared.
#
# PyTorch has two checkpoints, an old one that is a `Function` and the newer one that is made of hooks. **Predict.** What do they say if an *input* is written over?

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
# Both refuse. Run again, the function would be given other numbers, and the gradient would be that of another place. The old one has its inputs from `save_for_backward`, which notes versions; and for its inputs the newer one goes that way, too, hooks or no hooks. ("Re-entrant" is the old one's name because its backward enters the engine a second time, from within the first.)

# %% tags=["hide-input"]
choice(
    "Somebody writes a checkpoint and doesn't put the dice back. The block has dropout. What shows?",
    {
        "nothing but a model that is a little worse": "Values and shapes are fine, and the loss falls. The gradient is that of other units than those that made the loss.",
        "an error, since the saved tensors don't fit": "There are none to fit: the second run makes all of them anew, and they fit each other.",
        "the same as ever: dropout's backward needs no random numbers": "It needs to know which units were dropped. That is one of the things that are computed again.",
    },
    answer="nothing but a model that is a little worse",
)

# %% [markdown]
# ## When the numbers go wrong: detect_anomaly
#
# The last tool is for the day when the loss is fine and a gradient is NaN. This forward is harmless: where x is 0, the branch with the root is not taken.
#
# **Predict.** The gradient at 0, and at 4?

# %%
x = torch.tensor([0.0, 4.0], requires_grad=True)
y = torch.where(x > 0, torch.sqrt(x), torch.zeros_like(x))
y.sum().backward()
print("y", y.detach(), "  gradient", x.grad)

# %% [markdown]
# A NaN for an input whose branch was not even chosen.
#
# In backward, `where` sends 0 to the branch that was not taken, and the root multiplies it by its own derivative at 0, which is infinite: 0 · ∞ is NaN. In a big model you would not know where to look. `detect_anomaly` stops at the first node that returns a NaN and names it. (It also prints where in the *forward* that node was made; it is slow, so switch it on for one step.)

# %%
with warnings.catch_warnings(action="ignore"), torch.autograd.detect_anomaly():
    x = torch.tensor([0.0, 4.0], requires_grad=True)
    y = torch.where(x > 0, torch.sqrt(x), torch.zeros_like(x))
    attempt(lambda: y.sum().backward())
safe = torch.where(x > 0, x, torch.ones_like(x))            # mend the input, not the output
torch.where(x > 0, torch.sqrt(safe), torch.zeros_like(x)).sum().backward()
print("mended:", x.grad)

# %% [markdown]
# ## What you can now do
#
# [The lab](../release/02_autograd/02_autograd.ipynb) of this phase asks you to do it:
#
# - find every adjoint of a small graph on paper, where paths meet too;
# - write an engine that differentiates any calculation with scalars, and visit any graph in the order that backward needs;
# - sum a gradient back to the shape that was broadcast;
# - derive the vector–Jacobian products of linear, relu, softmax, LayerNorm and cross-entropy, none of them with a Jacobian;
# - say why one backward is enough for a loss, and what many losses would need;
# - check a gradient by nudging, with an h that you can defend;
# - teach autograd a softmax of your own that passes `gradcheck` and `gradgradcheck`;
# - write a checkpoint: keep only what went in, run it again on the way back with the same dice, and refuse where an input was written over;
# - compute the gradients of MiniGPT's LM head, and agree with autograd.
#
# And you can answer the question. While you compute, each operation leaves a node that knows its inputs' nodes and saved just enough for one product; `backward` visits them, users first, and at each multiplies what has arrived and adds the result to what lies below.

# %% [markdown]
# ## What this phase leaves out
#
# - **Where parameters live**, and how a module finds them all. [Phase 03](03_module.ipynb#cell-id=a-tree-and-walks-through-it).
# - **Where in the dispatcher autograd sits**: why `no_grad` changes no key, and its kernel decides inside. [Phase 04](04_dispatcher.ipynb#cell-id=keys-of-the-thread).
# - **A backward for a kernel of your own**, registered with `torch.library`. [Phase 05](05_custom_op.ipynb#cell-id=what-pytorch-asks-of-an-operator).
# - **The joint graph of forward and backward**, made ahead of time, and what a partitioner saves. [Phase 06](06_compile.ipynb#cell-id=what-is-saved-and-what-is-computed-again).
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
# - T. Chen, B. Xu, C. Zhang, C. Guestrin, "[Training deep nets with sublinear memory cost](https://arxiv.org/abs/1604.06174)", 2016: a checkpoint to each of √n segments.
# - A. Karpathy's [micrograd](https://github.com/karpathy/micrograd) is the best-known scalar engine of this kind; ours follows its spirit. He writes it before your eyes in the first lecture of "[Neural Networks: Zero to Hero](https://karpathy.ai/zero-to-hero.html)".
#
# PyTorch's documentation: "[Autograd mechanics](https://docs.pytorch.org/docs/stable/notes/autograd.html)", "[Extending PyTorch](https://docs.pytorch.org/docs/stable/notes/extending.html)" (extending `torch.autograd`), "[Gradcheck mechanics](https://docs.pytorch.org/docs/stable/notes/gradcheck.html)", [`torch.autograd.graph`](https://docs.pytorch.org/docs/stable/autograd.html#autograd-graph), [`torch.utils.checkpoint`](https://docs.pytorch.org/docs/stable/checkpoint.html), [`torch.autograd.detect_anomaly`](https://docs.pytorch.org/docs/stable/autograd.html#torch.autograd.detect_anomaly), and the tutorial "[A Gentle Introduction to torch.autograd](https://docs.pytorch.org/tutorials/beginner/blitz/autograd_tutorial.html)". The derivative of each operator, and what it saves, stands in [`tools/autograd/derivatives.yaml`](https://github.com/pytorch/pytorch/blob/v2.13.0/tools/autograd/derivatives.yaml).
