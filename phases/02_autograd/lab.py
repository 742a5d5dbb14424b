# ---
# jupyter:
#   kernelspec: {display_name: Python 3, language: python, name: python3}
#   open_the_hood: {title: "Lab 02: Autograd by hand", points: 48, preload: [optimizers], cell_seconds: 60}
# ---

# %% [markdown]
# # Lab 02: Autograd by hand
#
# Twelve exercises and one question, 48 points, a little over three hours without the *further*
# exercise 11, which takes half an hour more. A class may leave it out, or count it as a bonus.
# Otherwise all points count. The lab follows [lesson 02](../../notebooks/02_autograd.ipynb). You
# begin with three lines on paper, and at the end your gradients train a language model's last
# layer.
#
# The rule of this lab: you derive every gradient yourself. Your answers may not use
# `torch.autograd` or `torch.func`, a tensor's `backward`, `grad` or `requires_grad_`, or the
# functions that torch itself calls on the way back, such as `native_layer_norm_backward`. The rule
# does not apply in three exercises: 10 and 11 are about autograd itself, and in 4 autograd would
# save you nothing. In the visible checks, and in cells that you add, autograd tells you whether
# your gradient is right. Everything else in torch is allowed, unless an exercise says otherwise.
#
# Each graded cell begins with `check(...)`, which gives the verdict that grading would give, on new
# cases each time. These cases have shapes, memory layouts and *incoming gradients* that you have
# not seen, for example:
#
# - sizes of 1, and empty batches;
# - transposed, sliced and expanded tensors;
# - more than two dimensions wherever a shape begins with "…".
#
# Unless an exercise says something else,
# the floating-point tensors of a call are all float32 or all float64, and your results have the
# same dtype. Your functions may not change the tensors that they get, because other code may still
# read them. The incoming gradients matter most: if a function is right only for incoming gradients
# of 1, it is right only at the very top of a graph.
#
# The rule applies to an answer and to everything that it calls. Your own classes and functions may
# have any name, also `backward` and `grad`. The grader reads your cells and observes them while
# they run. So code that hides what it uses (`exec`, `globals()`, an import of your own file) earns
# nothing where the rule applies.
#
# Parts of an exercise earn their points separately. In a later exercise, you may call a function of
# an earlier one. But then its mistakes count again, so fix it first. Each exercise has two hints,
# folded away. Run the next cell, then start.

# %% given="setup"
import torch

from hood.learner.check import check
from utils.drivers import checkpointing as driver
from utils.drivers.exact import Exact
from utils.minigpt import load_minigpt, load_tokenizer
from utils.notebook.expect import expect_close, expect_equal, expect_shape
from utils.views import autograd_graph, backward_stepper, finite_difference_error

# %% [markdown]
# ## 1 · Three lines, five adjoints
#
# *Warm-up, 5 minutes, 2 points.*
# From the lesson: [Three lines, by hand](../../notebooks/02_autograd.ipynb#cell-id=three-lines-by-hand).
#
# The lesson's graph: `c = a·b`, then `d = c + a`, then `L = d²`. The *adjoint* of a node is the
# derivative of L with respect to the node: how much L grows for each unit that the node grows.
#
# Write `scalar_adjoints(a, b)`. It takes two numbers, which may be positive, negative or 0, and
# returns a dict with the adjoints of `"L"`, `"d"`, `"c"`, `"b"` and `"a"`, as plain numbers.
# Plain arithmetic is enough. Some calls pass `Exact` numbers: they have more digits than a float,
# and know only `+`, `-`, `*`, `/` and `**`.
#
# <details><summary>Where do I begin?</summary>
#
# At the end: L grows by 1 when L grows by 1. Then go back one node at a time. The adjoint of a node
# is the adjoint of its user, times the derivative of the user with respect to the node.
# </details>
# <details><summary>Four of the five are right</summary>
#
# Then `a` is wrong. Which nodes use `a`? Look at all three lines once more, and add the shares of
# all users.
# </details>

# %% solution="scalar_adjoints"
def scalar_adjoints(a: float, b: float) -> dict[str, float]:
    """dL/dnode of every node of c = a·b, d = c + a, L = d²."""
    ### BEGIN SOLUTION
    c = a * b
    d = c + a
    of_d = 2.0 * d
    of_c = of_d
    return {"L": 1.0, "d": of_d, "c": of_c, "b": of_c * a, "a": of_c * b + of_d}
    ### END SOLUTION

# %%
adjoints = scalar_adjoints(2.0, 3.0)
expect_equal("its names", sorted(adjoints), ["L", "a", "b", "c", "d"])
expect_equal("dL/dd", adjoints["d"], 16.0)
expect_equal("dL/db", adjoints["b"], 32.0)
flat = scalar_adjoints(2.0, -1.0)  # here d is 0, the lowest point of a square
expect_equal("where d is 0", [abs(flat[name]) for name in "dcba"], [0.0, 0.0, 0.0, 0.0])
expect_equal("exact numbers", scalar_adjoints(Exact(2**70 + 1), Exact(0))["d"] == 2**71 + 2, True)
expect_equal("dL/db at b = 0, a below 0", scalar_adjoints(-3.0, 0.0)["b"], 18.0)
backward_stepper({"c": "a * b", "d": "c + a", "L": "d ** 2"}, a=2.0, b=3.0)

# %% test="scalar_adjoints" points=2
# Graded
check("scalar_adjoints")
expect_equal("dL/da", scalar_adjoints(2.0, 3.0)["a"], 64.0)
### BEGIN HIDDEN TESTS
verify("scalar_adjoints", scalar_adjoints)
### END HIDDEN TESTS

# %% [markdown]
# ## 2 · An engine
#
# *Medium, 20 minutes, 5 points.*
# From the lesson: [An engine in twenty lines](../../notebooks/02_autograd.ipynb#cell-id=an-engine-in-twenty-lines).
#
# The lesson's engine is made of objects that point at each other.
# Make one that keeps a *tape* instead: a list that records each operation when it happens. To find
# gradients, the engine reads this list backwards. On a tape, a number is known by its place: the
# first number recorded is node 0, the next is node 1.
#
# Complete the class `Tape`:
#
# - `leaf(value)`, `add(i, j)`, `mul(i, j)` and `power(i, n)` (node `i` to a constant whole power `n`
#   of 1 or more) each record a new node and return its number, an int;
# - `value(i)` is the value of node `i`;
# - `gradients(i)` is a list with a float, or an `Exact` number, for **every** node recorded so far:
#   the derivative of node `i` with respect to that node. It is
#   0.0 where node `i` does not depend on it.
#
# The values are floats, or `Exact` numbers as in exercise 1. Don't convert them:
# record them as they come, and calculate with them as they are. A float would lose digits, and so
# would an array or a tensor of floats. Values may be 0.
# Asking twice must give the same answer twice, and each node must get its own answer.
# More nodes may be recorded after a question, and two tapes share nothing. The tapes here have
# about a dozen nodes: don't worry about speed or depth.
#
# <details><summary>What must be written down for each node?</summary>
#
# Write down its value, the numbers of its inputs, and the local derivative for each input. All
# three are known at the moment of recording.
# </details>
# <details><summary>In which order do I go back, and what do I do at a node?</summary>
#
# A node is always recorded after its inputs, so from node `i` down to node 0, every user comes
# before the nodes that it uses. At each node, every input's adjoint *grows by* something. And
# `mul(i, i)`? If your code is right, it needs no special case.
# </details>

# %% solution="Tape"
class Tape:
    """Records a calculation with scalars and differentiates any node of it."""

    def __init__(self):
        ### BEGIN SOLUTION
        self.nodes = []  # (value, [(input, local derivative), ...])
        ### END SOLUTION

    def leaf(self, value: float) -> int:
        """Record a number that is given."""
        ### BEGIN SOLUTION
        self.nodes.append((value, []))
        return len(self.nodes) - 1
        ### END SOLUTION

    def add(self, i: int, j: int) -> int:
        """Record node i + node j."""
        ### BEGIN SOLUTION
        self.nodes.append((self.value(i) + self.value(j), [(i, 1.0), (j, 1.0)]))
        return len(self.nodes) - 1
        ### END SOLUTION

    def mul(self, i: int, j: int) -> int:
        """Record node i · node j."""
        ### BEGIN SOLUTION
        a, b = self.value(i), self.value(j)
        self.nodes.append((a * b, [(i, b), (j, a)]))
        return len(self.nodes) - 1
        ### END SOLUTION

    def power(self, i: int, n: int) -> int:
        """Record node i to the power n, a constant of 1 or more."""
        ### BEGIN SOLUTION
        a = self.value(i)
        self.nodes.append((a**n, [(i, n * a ** (n - 1))]))
        return len(self.nodes) - 1
        ### END SOLUTION

    def value(self, i: int) -> float:
        """The value of node i."""
        ### BEGIN SOLUTION
        return self.nodes[i][0]
        ### END SOLUTION

    def gradients(self, i: int) -> list[float]:
        """The derivative of node i with respect to every node recorded so far."""
        ### BEGIN SOLUTION
        adjoints = [0.0] * len(self.nodes)
        adjoints[i] = 1.0
        for node in range(i, -1, -1):
            for source, local in self.nodes[node][1]:
                adjoints[source] += adjoints[node] * local
        return adjoints
        ### END SOLUTION

# %%
tape = Tape()
a, b = tape.leaf(2.0), tape.leaf(3.0)
c = tape.mul(a, b)
d = tape.add(c, a)
expect_equal("the value of d", tape.value(d), 8.0)
expect_equal("dd/da, dd/db, dd/dc, dd/dd", tape.gradients(d), [4.0, 2.0, 1.0, 1.0])
expect_equal("the gradients of c", tape.gradients(c), [3.0, 2.0, 1.0, 0.0])
tape = Tape()
a = tape.leaf(2.0)
square = tape.power(a, 2)
cube = tape.mul(square, a)
both = tape.add(square, cube)  # a² + a³, where the cube uses the square
expect_equal("its derivatives", tape.gradients(both), [16.0, 3.0, 1.0, 1.0])
fourth = tape.power(a, 4)
expect_equal("the gradients of a later node", tape.gradients(fourth), [32.0, 0.0, 0.0, 0.0, 1.0])
expect_equal("the first question again", tape.gradients(both), [16.0, 3.0, 1.0, 1.0, 0.0])
tape = Tape()
zero, five, other = tape.leaf(0.0), tape.leaf(5.0), tape.leaf(5.0)  # equal, and two nodes
expect_equal("0 · 5", tape.gradients(tape.mul(zero, five)), [5.0, 0.0, 0.0, 1.0])
expect_equal("0 to the power 1", tape.gradients(tape.power(zero, 1)), [1.0, 0.0, 0.0, 0.0, 1.0])
expect_equal("x + x", tape.gradients(tape.add(other, other))[other], 2.0)
tape = Tape()
squared = tape.power(tape.leaf(Exact(2**70 + 1)), 2)
expect_equal("an exact number, squared", tape.gradients(squared)[0] == 2**71 + 2, True)

# %% test="Tape" points=5
# Graded
check("Tape")
tape = Tape()
x = tape.leaf(3.0)
expect_equal("x·x", tape.gradients(tape.mul(x, x)), [6.0, 1.0])
### BEGIN HIDDEN TESTS
verify("Tape", Tape)
### END HIDDEN TESTS

# %% [markdown]
# ## 3 · In which order does backward go?
#
# *Medium, 15 minutes, 3 points.*
# From the lesson: [Who may go first](../../notebooks/02_autograd.ipynb#cell-id=who-may-go-first).
#
# PyTorch keeps no tape. A tensor knows its `grad_fn`, which knows the `grad_fn` of each input. So
# PyTorch must find the order. A node may only be visited when its adjoint is complete, that is,
# after **every** node that uses it.
#
# Write `backward_order(graph, root)`. The graph is a dict from the name of each node to the list of
# its inputs' names (the list has a name twice if the node uses that input twice). Return a list of
# all nodes that `root` depends on, with `root` itself first. Each node is in the list once, and
# no node comes before a node that uses it. If more than one order fits, any order is right. The
# dict may contain nodes that `root` does not depend on. They do not belong in the list. The order
# of the dict means nothing, and `root` may have no inputs. (The dict is a copy, made for you:
# do with it as you like.)
#
# Real graphs are deep: an RNN over a long text makes thousands of nodes in a row. Your function
# will get a graph with six thousand.
#
# <details><summary>Why is breadth first not enough?</summary>
#
# In the lesson's graph, `a` and `c` are both one step from `d`, but `c` uses `a`. The number of
# steps from the root does not say which node must wait for which.
# </details>
# <details><summary>How do I know that a node is ready?</summary>
#
# For each node that can be reached from the root, count how many times other reachable nodes use
# it. (PyTorch's engine does this, too.) When you visit a node, subtract 1 from the count of each of
# its inputs. A node is ready when its count is 0. A loop with a list of ready nodes needs no
# recursion, which Python limits.
# </details>

# %% solution="backward_order"
def backward_order(graph: dict[str, list[str]], root: str) -> list[str]:
    """The nodes that `root` depends on, each after all nodes that use it."""
    ### BEGIN SOLUTION
    waiting_for = {root: 0}
    to_see = [root]
    while to_see:
        for source in graph[to_see.pop()]:
            if source not in waiting_for:
                waiting_for[source] = 0
                to_see.append(source)
            waiting_for[source] += 1

    order, ready = [], [root]
    while ready:
        node = ready.pop()
        order.append(node)
        for source in graph[node]:
            waiting_for[source] -= 1
            if waiting_for[source] == 0:
                ready.append(source)
    return order
    ### END SOLUTION

# %%
graph = {"b": [], "a": [], "other": ["c"], "c": ["a", "b"], "L": ["d"], "d": ["a", "c"]}
order = backward_order(graph, "L")
expect_equal("each node once", sorted(order), ["L", "a", "b", "c", "d"])
expect_equal("c, then a, which it uses", [n for n in order if n in ("a", "c")], ["c", "a"])
ladder = {"z": ["y"], "y": ["x", "w", "w"], "x": ["w"], "w": ["v", "u"], "v": ["u"], "u": []}
for inputs in (["x", "w", "w"], ["w", "w", "x"]):
    order = backward_order(ladder | {"y": inputs}, "z")
    expect_equal("here there is only one order", "".join(order), "zyxwvu")
fork = {"f": ["near", "far"], "far": ["near"], "near": ["g", "h"], "g": ["i"], "h": [], "i": []}
order = backward_order(fork, "f")
expect_equal("near, which is used from far, too", order[:3], ["f", "far", "near"])
long = {str(k): [str(k - 1)] for k in range(1, 6000)} | {"0": []}
expect_equal("a node alone", backward_order({"x": []}, "x"), ["x"])
expect_equal("6,000 in a row", len(backward_order(long, "5999")), 6000)


def graph_of(tensor):
    """A tensor's own graph as a dict of names."""
    names, found, to_see = {}, {}, [tensor.grad_fn]
    while to_see:
        node = to_see.pop()
        inputs = [source for source, _ in node.next_functions if source is not None]
        for each in (node, *inputs):
            names.setdefault(each, f"{each.name().rpartition('::')[2]} {len(names)}")
        if names[node] not in found:
            found[names[node]] = [names[source] for source in inputs]
            to_see += inputs
    return found, names[tensor.grad_fn]


x = torch.randn(4, requires_grad=True)
loss = (torch.tanh(x) * x).sum()
print(*backward_order(*graph_of(loss)), sep="\n")
autograd_graph(loss, x=x)

# %% test="backward_order" points=3
# Graded
check("backward_order")
expect_equal("y = x + x", backward_order({"x": [], "y": ["x", "x"]}, "y"), ["y", "x"])
### BEGIN HIDDEN TESTS
verify("backward_order", backward_order)
### END HIDDEN TESTS

# %% [markdown]
# ## 4 · Back to the shape it came from
#
# *Easy, 10 minutes, 3 points.*
# From the lesson: [Broadcasting's adjoint is a sum](../../notebooks/02_autograd.ipynb#cell-id=broadcastings-adjoint-is-a-sum).
#
# A bias of shape (600,) is added to logits of shape (32, 600). The gradient that comes back has
# shape (32, 600), and the gradient of the bias must have shape (600,).
#
# Write `unbroadcast(grad, shape)`: the gradient for a tensor of `shape` that was broadcast to the
# shape of `grad`. Broadcasting may have put new dimensions in front, stretched sizes of 1, or both;
# or it may have done nothing. The result has exactly `shape`. It has the dtype of `grad`, which may
# be any floating-point dtype, also float16 or bfloat16.
#
# <details><summary>What is the rule?</summary>
#
# One number was read in many places. Each place sends back a gradient, and paths add.
# </details>
# <details><summary>My result has too few dimensions, or too many</summary>
#
# Broadcasting does two things, so the way back does two things. New dimensions must go. Stretched
# dimensions must stay, with size 1: `sum` has an argument for that.
# </details>

# %% solution="unbroadcast"
def unbroadcast(grad: torch.Tensor, shape: tuple[int, ...]) -> torch.Tensor:
    """The gradient of a tensor of `shape` that was broadcast to `grad.shape`."""
    ### BEGIN SOLUTION
    while grad.dim() > len(shape):
        grad = grad.sum(0)
    for dim, size in enumerate(shape):
        if size == 1 and grad.size(dim) != 1:
            grad = grad.sum(dim, keepdim=True)
    return grad
    ### END SOLUTION

# %%
grad = torch.arange(6.0).view(2, 3)
expect_close("a bias", unbroadcast(grad, (3,)), [3.0, 5.0, 7.0])
expect_close("a column", unbroadcast(grad, (2, 1)), [[3.0], [12.0]])
expect_close("two stretched", unbroadcast(grad, (1, 1)), [[15.0]])
expect_close("nothing was broadcast", unbroadcast(grad, (2, 3)), grad)
expect_close(
    "a bias, equal sizes", unbroadcast(torch.arange(9.0).view(3, 3), (3,)), [9.0, 12.0, 15.0]
)
deep = torch.arange(24.0, dtype=torch.float64).view(2, 3, 4).mT  # (2, 4, 3), and not contiguous
expect_close("both", unbroadcast(deep, (4, 1)), [[60.0], [66.0], [72.0], [78.0]])
turned = torch.ones(2, 5, 4, 3).transpose(0, 1)
expect_shape("two new in front of a 1", unbroadcast(turned, (1, 3)), (1, 3))
expect_close("a batch of nothing", unbroadcast(torch.ones(0, 3), (1, 3)), [[0.0, 0.0, 0.0]])
for dtype in (torch.float16, torch.bfloat16):
    expect_equal(f"{dtype}", unbroadcast(torch.ones(2, 3, dtype=dtype), (3,)).dtype, dtype)

# %% test="unbroadcast" points=3
# Graded
check("unbroadcast")
grad = torch.arange(6.0).view(2, 3)
expect_close("a single number", unbroadcast(grad, ()), 15.0)
### BEGIN HIDDEN TESTS
verify("unbroadcast", unbroadcast)
### END HIDDEN TESTS

# %% [markdown]
# ## 5 · The linear layer, backwards
#
# *Medium, 15 minutes, 4 points.*
# From the lesson: [A layer only has to know one product](../../notebooks/02_autograd.ipynb#cell-id=a-layer-only-has-to-know-one-product).
#
# From here on, each function receives `grad_output`, the gradient of the loss for the layer's
# *output*, and returns the gradients for its inputs. Such a function is called a vector–Jacobian
# product. A layer needs nothing else to take part in backward.
#
# The layer is `y = x @ weight.T + bias`, with `x` of shape (…, in), `weight` (out, in) and `bias`
# (out,). So `y` and `grad_output` have shape (…, out), with one or more dimensions in front. Write
# `linear_vjp(grad_output, x, weight)`, which returns the gradients for `x`, `weight` and `bias`, in
# this order. Each gradient has the shape of its tensor.
#
# <details><summary>How do I find a matrix formula?</summary>
#
# Take one number of the output: row n, channel k is the sum over i of x[n, i] · weight[k, i], plus
# bias[k]. For each input, ask which outputs it reaches and with which factor, then add up. Often
# the shapes allow only one way to write the sum.
# </details>
# <details><summary>It works for a matrix but not for a batch of sequences</summary>
#
# For the weight and the bias, it does not matter whether the rows are in one dimension or in three.
# Make it one: `flatten(0, -2)`.
# </details>

# %% solution="linear_vjp"
def linear_vjp(
    grad_output: torch.Tensor, x: torch.Tensor, weight: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Gradients for x (…, in), weight (out, in) and bias (out,), from grad_output (…, out)."""
    ### BEGIN SOLUTION
    rows = grad_output.flatten(0, -2)
    grad_weight = rows.T @ x.flatten(0, -2)
    return grad_output @ weight, grad_weight, rows.sum(0)
    ### END SOLUTION

# %%
for shape, dtype in (
    ((5, 3), torch.float64),
    ((4, 2, 2, 3), torch.float32),
    ((1, 3), torch.float32),
):
    x, upstream = (
        torch.randn(shape[::-1], dtype=dtype).permute(*range(len(shape))[::-1]) for _ in "xy"
    )
    weight, bias = torch.randn(3, 3, dtype=dtype), torch.randn(3, dtype=dtype)
    x, weight, bias = x.requires_grad_(), weight.requires_grad_(), bias.requires_grad_()
    theirs = torch.autograd.grad(x @ weight.T + bias, (x, weight, bias), upstream)
    sent = upstream, x.detach(), weight.detach()
    copies = [t.clone() for t in sent]
    mine = linear_vjp(*sent)
    for name, got, want in zip(("x", "weight", "bias"), mine, theirs, strict=True):
        expect_close(f"{name}, where x is {shape}", got, want, atol=1e-5, rtol=1e-4)
    for before, after in zip(copies, sent, strict=True):
        expect_equal("the input is unchanged", after, before)

# %% test="linear_vjp" points=4
# Graded
check("linear_vjp")
expect_shape(
    "the bias of a batch of sequences",
    linear_vjp(torch.ones(2, 4, 6), torch.ones(2, 4, 3), torch.ones(6, 3))[2],
    (6,),
)
### BEGIN HIDDEN TESTS
verify("linear_vjp", linear_vjp)
### END HIDDEN TESTS

# %% [markdown] task="why_scalar" points=3
# ## 6 · Why is one backward enough?
#
# *10 minutes, 3 points, read by a person.*
#
# A colleague writes: "My model has a million parameters, so its gradient is a million derivatives.
# How can one backward, at about twice the cost of a forward, find them all? And why does PyTorch
# refuse `losses.backward()` when I leave out the `.mean()` and have 32 losses?" Answer in four to
# six sentences. Say what one backward computes and why that is cheap. Say also what you would need
# to get a gradient for each loss in a vector of losses.
#
# === BEGIN MARK SCHEME ===
#
# One point each:
#
# - One backward computes a vector–Jacobian product. It starts with one number (or vector) at the
#   output and goes once through the graph. At each node, it multiplies the incoming gradient by the
#   local Jacobian, without ever building this Jacobian. The cost is a few forwards, for any number
#   of inputs.
# - With a scalar loss the Jacobian has one row, so the product with the vector (1) *is* the
#   gradient: one pass gives every parameter's derivative.
# - With 32 losses the Jacobian has 32 rows. One backward gives one combination of the rows. So
#   PyTorch asks for the `gradient` argument (the weights of the combination). A gradient for each
#   loss takes 32 backwards, one for each unit vector (or the same batched, by `vmap` /
#   `is_grads_batched` / `torch.func.jacrev`). Accept forward mode as cheaper only if there are few
#   inputs.
#
# === END MARK SCHEME ===

# %% [markdown]
# *Your answer goes here.*

# %% [markdown]
# ## 7 · Two activations
#
# *Medium, 20 minutes, 4 points: two for each.*
# From the lesson: [Softmax: a Jacobian that nobody makes](../../notebooks/02_autograd.ipynb#cell-id=softmax-a-jacobian-that-nobody-makes).
#
# `relu_vjp(grad_output, x)`: the gradient for `x` of any shape, where the output was `relu(x)`.
# At exactly 0, and at −0, relu has no derivative. PyTorch has chosen a value there:
# find out which, and use the same value.
#
# `softmax_vjp(grad_output, y)`: the gradient for the input of `softmax` over the last dimension,
# where `y` (…, n) is its **output**. You don't get the input, and you don't need it. (You could not
# always compute the input from the output: a probability of exactly 0 has no logarithm.)
# Every output depends on every input of its row:
#
# $$\frac{\partial y_i}{\partial x_j} = y_i\,(\delta_{ij} - y_j)$$
#
# so the Jacobian of a row of 600 has 360,000 entries. You don't need to build it: multiply the
# formula by the incoming gradient, sum over i, and look at what is left.
# Only products and sums are left, and these work for whole numbers, too. Some calls have an int64
# `y` and an int64 `grad_output`: then return the int64 tensor that the formula gives, exactly.
#
# <details><summary>How do I find out what PyTorch does at 0?</summary>
#
# In a cell of your own: `x = torch.zeros(1, requires_grad=True)`, then `torch.relu(x).backward()`.
# Trying things out with autograd is always allowed, as long as your answer doesn't call it.
# </details>
# <details><summary>I multiplied it out and got two sums</summary>
#
# In the first sum, the δ leaves a single term. In the second sum, y_j does not depend on i, so you
# can take it out of the sum. The rest of that sum is one number for each row: take care of the
# dimension and of `keepdim`.
# </details>

# %% solution="activations"
def relu_vjp(grad_output: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """The gradient for x of relu(x)."""
    ### BEGIN SOLUTION
    return torch.where(x > 0, grad_output, torch.zeros_like(grad_output))
    ### END SOLUTION


def softmax_vjp(grad_output: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """The gradient for the input of a softmax over the last dimension whose output is y."""
    ### BEGIN SOLUTION
    row = (grad_output * y).sum(-1, keepdim=True)
    return y * (grad_output - row)
    ### END SOLUTION

# %%
kinds = {"float32": torch.float32, "float64": torch.float64}
for name, dtype in kinds.items():
    x = torch.tensor([[1.0, 0.0, -2.0], [1e-9, -0.0, 3.0]], dtype=dtype, requires_grad=True)
    upstream = torch.tensor([[1.0, 2.0, 3.0], [-4.0, 5.0, 6.0]], dtype=dtype)
    y = torch.softmax(x, -1)
    theirs = [torch.autograd.grad(out, x, upstream)[0] for out in (x.relu(), y)]
    sent = upstream, x.detach(), y.detach()
    copies = [t.clone() for t in sent]
    expect_close(f"relu, {name}", relu_vjp(upstream, x.detach()), theirs[0])
    expect_close(f"softmax, {name}", softmax_vjp(upstream, y.detach()), theirs[1])
    for before, after in zip(copies, sent, strict=True):
        expect_equal("the input is unchanged", after, before)
x, upstream = torch.randn(2, 3, 5, requires_grad=True), torch.randn(2, 3, 5)
y = torch.softmax(x, -1)
theirs = torch.autograd.grad(y, x, upstream)[0]
expect_close("softmax of a batch of sequences", softmax_vjp(upstream, y.detach()), theirs)
large = torch.tensor([2**53 + 1, 0, 1])  # float64 does not have the first number
came = softmax_vjp(large, torch.tensor([1, 2, 0]))
expect_equal("the formula with whole numbers", came.tolist(), [0, -(2**54) - 2, 0])

# %% test="activations" points=4
# Graded
check("activations")
third = torch.full((3,), 1 / 3)
expect_close("equal incoming gradients", softmax_vjp(torch.ones(3), third), [0.0, 0.0, 0.0])
sure = torch.tensor([0.0, 1.0, 0.0])
expect_close("a sure softmax", softmax_vjp(torch.tensor([1.0, 2.0, 3.0]), sure), [0.0, 0.0, 0.0])
### BEGIN HIDDEN TESTS
verify("activations", relu_vjp=relu_vjp, softmax_vjp=softmax_vjp)
### END HIDDEN TESTS

# %% [markdown]
# ## 8 · LayerNorm, backwards
#
# *Hard, 25 minutes, 4 points.*
# From the lesson: [LayerNorm: three ways to the loss](../../notebooks/02_autograd.ipynb#cell-id=layernorm-three-ways-to-the-loss).
#
# For each row of the last dimension, with n entries:
#
# $$\hat x = \frac{x - \mu}{\sqrt{\sigma^2 + \epsilon}}, \qquad y = w \odot \hat x + b$$
#
# where μ is the mean of the row, and σ² is the mean of (x − μ)² (divided by n, not by n − 1). Write
# `layer_norm_vjp(grad_output, x, weight, eps)`: the gradients for `x` (…, n),
# with one or more dimensions in front, `weight` (n,) and `bias` (n,), in this order.
# A row may be constant, a weight may be 0, `eps` may be large or small, and
# in float64 rows may be far from 0.
#
# The gradients for `weight` and `bias` are a warm-up. For `x` there are three ways from an entry to
# the loss: directly, through the mean, and through the variance.
# If you leave one out, the network still trains, only a little worse, so people often don't notice
# this mistake for months.
#
# <details><summary>How do I keep the algebra small?</summary>
#
# Let g be the gradient that arrives at x̂: the incoming gradient times the weight. First
# differentiate as if μ and σ² were constants. Then correct the result: the gradient for `x` must
# not change the row's mean, so one correction subtracts the mean of g.
# </details>
# <details><summary>And the way through the variance?</summary>
#
# Stretching a row away from its mean does not change x̂ (apart from ε), so you must subtract the
# part of g along x̂, too. That part is x̂ times a mean over the row: the mean of the product of g
# and x̂. After both corrections, divide by the deviation.
# </details>

# %% solution="layer_norm_vjp"
def layer_norm_vjp(
    grad_output: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Gradients for x (…, n), weight (n,) and bias (n,) of a LayerNorm over the last dimension."""
    ### BEGIN SOLUTION
    centred = x - x.mean(-1, keepdim=True)
    scale = (centred.square().mean(-1, keepdim=True) + eps).rsqrt()
    normed = centred * scale
    g = grad_output * weight
    along = (g * normed).mean(-1, keepdim=True)
    grad_x = scale * (g - g.mean(-1, keepdim=True) - normed * along)
    grad_weight = (grad_output * normed).flatten(0, -2).sum(0)
    return grad_x, grad_weight, grad_output.flatten(0, -2).sum(0)
    ### END SOLUTION

# %%
for shape, eps in (((5, 8), 0.1), ((2, 2, 3, 8), 1e-5)):
    x, upstream = torch.randn(shape, dtype=torch.float64), torch.randn(shape, dtype=torch.float64)
    x[0], x[-1] = 3.0, x[-1] + 1e7  # constant rows, and rows far from 0
    weight, bias = torch.randn(8).double(), torch.randn(8).double().requires_grad_()
    weight[0] = 0.0
    weight.requires_grad_()
    y = torch.nn.functional.layer_norm(x.requires_grad_(), (8,), weight, bias, eps)
    theirs = torch.autograd.grad(y, (x, weight, bias), upstream)
    sent = upstream, x.detach(), weight.detach()
    copies = [t.clone() for t in sent]
    mine = layer_norm_vjp(*sent, eps)
    for name, got, want in zip(("x", "weight", "bias"), mine, theirs, strict=True):
        expect_close(f"{name}, where x is {shape}", got, want, atol=1e-5, rtol=1e-4)
    for before, after in zip(copies, sent, strict=True):
        expect_equal("the input is unchanged", after, before)

# %% test="layer_norm_vjp" points=4
# Graded
check("layer_norm_vjp")
grad_x = layer_norm_vjp(torch.randn(3, 8), torch.randn(3, 8), torch.randn(8), 1e-5)[0]
expect_close("no gradient along the mean", grad_x.sum(-1), torch.zeros(3), atol=1e-4)
### BEGIN HIDDEN TESTS
verify("layer_norm_vjp", layer_norm_vjp)
### END HIDDEN TESTS

# %% [markdown]
# ## 9 · Trust, but check
#
# *Medium, 15 minutes, 3 points.*
# From the lesson: [Nudging: how far is far enough](../../notebooks/02_autograd.ipynb#cell-id=nudging-how-far-is-far-enough).
#
# How do you know that a gradient is right if you have no autograd? Nudge each input a little,
# one at a time, and see how the outputs change:
#
# $$\text{grad}_i = \sum_k \text{grad\_output}_k \; \frac{f(x + h\,e_i)_k - f(x - h\,e_i)_k}{2h}$$
#
# Write `numeric_vjp(name, x, grad_output, h)`:
#
# - The function f is torch's function of that name, such as `torch.tanh`, `torch.inverse` or
#   `torch.det`. Look it up inside `numeric_vjp`, with `getattr(torch, name)`.
# - `x` may have any shape. The output f(x) may have any shape, too, and `grad_output` has the same
#   shape. The output may be a view of the input, as with `torch.t`.
# - The result has the shape of `x` and is **float64**, and so is all the arithmetic. `x`,
#   `grad_output` or both may be float32: convert both to float64 before you do anything else.
# - `x` must be left as it was. Note that `double()` of a float64 tensor returns the same tensor,
#   not a copy.
# - `h` is the step. Use it as it is.
#
# <details><summary>How do I nudge one entry of a tensor of any shape?</summary>
#
# Make a contiguous copy and change one element of its `view(-1)`: this also changes the copy. Or
# add a tensor of zeros with a single h in it.
# </details>
# <details><summary>Elementwise functions work, `inverse` doesn't</summary>
#
# One input may change many outputs. So the difference has the shape of the output: multiply it by
# the incoming gradient and sum, once for each input.
# </details>

# %% solution="numeric_vjp"
def numeric_vjp(
    name: str, x: torch.Tensor, grad_output: torch.Tensor, h: float = 1e-6
) -> torch.Tensor:
    """The gradient for x of torch's function `name`, by central differences in float64."""
    ### BEGIN SOLUTION
    f = getattr(torch, name)
    x, grad_output = x.double(), grad_output.double()
    grad = torch.zeros(x.numel(), dtype=torch.float64)
    for i in range(x.numel()):
        nudge = torch.zeros(x.numel(), dtype=torch.float64)
        nudge[i] = h
        nudge = nudge.view(x.shape)
        grad[i] = (grad_output * (f(x + nudge) - f(x - nudge))).sum() / (2 * h)
    return grad.view(x.shape)
    ### END SOLUTION

# %%
x = torch.tensor([0.0, 1.0, 2.0], dtype=torch.float64)
weights = torch.tensor([1.0, 10.0, 100.0], dtype=torch.float64)
expect_close("exp", numeric_vjp("exp", x, weights), weights * torch.exp(x), rtol=1e-6)
matrix = torch.tensor([[2.0, 1.0], [0.0, 4.0]])
expect_close("det", numeric_vjp("det", matrix, torch.tensor(1.0)), [[4.0, 0.0], [-1.0, 2.0]])
turned = matrix.T.double()
theirs = -turned.inverse().T @ torch.ones(2, 2).double() @ turned.inverse().T
mine = numeric_vjp("inverse", turned, torch.ones(2, 2, dtype=torch.float64))
expect_close("inverse, of a matrix that is not contiguous", mine, theirs, rtol=1e-6)
expect_equal("x is as it was", turned.tolist(), [[2.0, 0.0], [1.0, 4.0]])
three = torch.arange(6.0).view(1, 2, 3) / 10
mine = numeric_vjp("sin", three, torch.ones(1, 2, 3))
expect_close("three dimensions, float32", mine, torch.cos(three.double()), rtol=1e-8)
one = torch.tensor(0.0, dtype=torch.float64)
expect_close("a single number", numeric_vjp("exp", one, one + 2), 2.0)
finite_difference_error(torch.exp, 1.0)

# %% test="numeric_vjp" points=3
# Graded
check("numeric_vjp")
x, weights = torch.tensor([0.0, 1.0, 2.0]).double(), torch.tensor([1.0, 10.0, 100.0]).double()
slope = torch.sinh(torch.tensor(0.5).double()) / 0.5  # of exp at 0, between -0.5 and 0.5
mine = numeric_vjp("exp", x, weights, h=0.5)
expect_close("a large h is seen", mine, weights * torch.exp(x) * slope)
### BEGIN HIDDEN TESTS
verify("numeric_vjp", numeric_vjp)
### END HIDDEN TESTS

# %% [markdown]
# ## 10 · A function that autograd can call
#
# *Medium, 20 minutes, 3 points.*
# From the lesson: [A Function of your own](../../notebooks/02_autograd.ipynb#cell-id=a-function-of-your-own).
#
# Now teach autograd your softmax. Complete `Softmax`: its `forward` computes
# the softmax over the last dimension of `x` (…, n) and keeps what backward will need. Its
# `backward` returns the gradient for `x`. Keep it with `ctx.save_for_backward`. This records the
# version of each tensor, so that autograd raises an error if a tensor was written to later. But no
# point depends on where you keep it.
#
# The numbers of a row may reach ±1,000, and different rows may be at very different levels. No row
# may overflow or vanish. Neither method may use torch's own softmax, its log-softmax, or a function
# that contains one of them (`cross_entropy`, attention, `torch.distributions`). `logsumexp` is
# allowed.
#
# The backward must itself be differentiable: people take gradients of gradients (physics, some
# regularizers, second-order optimizers). You get that for free if backward is made of ordinary
# tensor operations on what you saved.
#
# `run_softmax` is given. It uses your class and returns the values that the grader compares: the
# output, the gradient for `x`, and, if there is a direction, the gradients of that gradient.
#
# <details><summary>What should I save?</summary>
#
# Exercise 7 says what the gradient needs. Save that and nothing else; `ctx.saved_tensors` gives it
# back as a tuple.
# </details>
# <details><summary>The first gradient is right, the second isn't</summary>
#
# Something in your backward was cut off from the graph: a `detach`, a `.data`, a NumPy array, or a
# saved tensor that is not the input or the output of `forward`. (`forward` itself is not recorded,
# so autograd knows no path from such a tensor back to `x`.)
# </details>

# %% solution="run_softmax"
class Softmax(torch.autograd.Function):
    """Softmax over the last dimension, differentiable twice."""

    @staticmethod
    def forward(ctx, x):
        ### BEGIN SOLUTION
        e = torch.exp(x - x.amax(-1, keepdim=True))
        y = e / e.sum(-1, keepdim=True)
        ctx.save_for_backward(y)
        return y
        ### END SOLUTION

    @staticmethod
    def backward(ctx, grad_output):
        ### BEGIN SOLUTION
        (y,) = ctx.saved_tensors
        weighted = y * grad_output
        return weighted - y * weighted.sum(-1, keepdim=True)
        ### END SOLUTION


def run_softmax(x: torch.Tensor, grad_output: torch.Tensor, direction: torch.Tensor | None = None):
    """Output, gradient and, along a direction, the gradients of that gradient. (Given.)"""
    x = x.detach().requires_grad_()
    upstream = grad_output.detach().requires_grad_()
    y = Softmax.apply(x)
    (first,) = torch.autograd.grad(y, x, upstream, create_graph=True)
    found = {"node": y.grad_fn.name(), "output": y.detach(), "gradient": first.detach()}
    if direction is not None:
        found["of x"], found["of upstream"] = torch.autograd.grad(first, (x, upstream), direction)
    return found

# %%
found = run_softmax(torch.tensor([[1.0, 2.0, 3.0]]), torch.tensor([[1.0, 0.0, 0.0]]))
expect_close("the output", found["output"], [[0.0900, 0.2447, 0.6652]])
expect_close("the gradient", found["gradient"], [[0.0819, -0.0220, -0.0599]])
levels = torch.tensor(
    [[1000.0, 1000.0, 0.0], [-1000.0, -1000.0, 1000.0], [-1000.0, -1000.0, -2000.0]]
)
found = run_softmax(levels, torch.zeros(3, 3))
expect_close("three levels", found["output"], [[0.5, 0.5, 0.0], [0.0, 0.0, 1.0], [0.5, 0.5, 0.0]])
x, upstream = torch.randn(2, 3, 4), torch.randn(2, 3, 4)
theirs = torch.autograd.grad(x.requires_grad_().softmax(-1), x, upstream)[0]
expect_close("a batch of sequences", run_softmax(x, upstream)["gradient"], theirs)
x = torch.randn(2, 5, dtype=torch.float64, requires_grad=True)
expect_equal("gradcheck", torch.autograd.gradcheck(Softmax.apply, (x,)), True)
expect_equal("gradgradcheck", torch.autograd.gradgradcheck(Softmax.apply, (x,)), True)

# %% test="run_softmax" points=3
# Graded
check("run_softmax")
expect_close(
    "no overflow", run_softmax(torch.full((1, 2), 1e4), torch.ones(1, 2))["output"], [[0.5, 0.5]]
)
### BEGIN HIDDEN TESTS
verify("run_softmax", run_softmax)
### END HIDDEN TESTS

# %% [markdown]
# ## 11 · Run it again
#
# *Further, hard, 30 minutes, 4 points: one each for the gradients, for what is kept, for random
# numbers, and for inputs that are written over. The check observes in your own process what is kept
# and how often a function runs.*
# From the lesson: [Kept, or computed again](../../notebooks/02_autograd.ipynb#cell-id=kept-or-computed-again).
#
# A graph keeps what its nodes have saved until backward has used it, and this fills a GPU.
# A checkpoint keeps only the inputs, and on the way back it runs the function once more.
# Write `checkpointed(function, *inputs)`, which returns what `function(*inputs)` returns.
#
# `function` is anything that can be called. Its inputs are tensors of any dtype. At least one input
# requires a gradient, and a complex input never does. `function` returns a new floating-point
# tensor and does not write into its inputs. It may use parameters that are not among its inputs.
#
# - **Gradients.** In backward, each input that requires a gradient and each parameter that the
#   function uses get the same gradient as without a checkpoint.
#   An input that the function doesn't use gets none, or zeros.
# - **What is kept.** Between forward and backward nothing is alive that the function made on its
#   way to the result: no intermediate tensor and no graph.
#   It runs once in the forward and once in each backward;
#   with `retain_graph=True` there may be several backwards.
# - **Random numbers.**
#   If the function draws from torch's generator, as dropout does, it draws the same numbers in each run, whatever other code has drawn since.
#   Other code notices nothing: it gets the same numbers as if the function had run only in the
#   forward.
# - **Written over.**
#   If an input has been written to since the forward, backward raises a `RuntimeError`,
#   in torch's words or yours, because the second run would get other numbers than the first. Every
#   write counts: a write to a part of the input, a write through its `detach()`, even a write of
#   the same numbers, and a write to an input that requires no gradient, too. A write before the
#   forward doesn't matter.
#
# torch's own checkpoint is not allowed. In this exercise, everything else in autograd is allowed.
#
# <details><summary>Where do I begin?</summary>
#
# Write a `Function`. Its `forward` gets the function and the inputs, and saves the inputs. You
# don't have to switch recording off: nothing in a `forward` is recorded. For an argument of `apply`
# that is not a tensor, `backward` returns None.
# </details>
# <details><summary>The second run gives no gradients, or the parameters get none</summary>
#
# In `backward`, nothing is recorded either, unless you switch it on. Give the second run new
# leaves, so that its graph ends there. There are two ways to go back through this graph:
# `torch.autograd.grad` stops at the tensors that you name, and `backward` goes on to every leaf.
# </details>

# %% solution="checkpointed"
def checkpointed(function, *inputs: torch.Tensor) -> torch.Tensor:
    """What `function(*inputs)` returns; for backward only the inputs are kept."""
    ### BEGIN SOLUTION
    return Checkpoint.apply(function, *inputs)


class Checkpoint(torch.autograd.Function):
    """Keeps a function and its inputs, and runs the function again on the way back."""

    @staticmethod
    def forward(ctx, function, *inputs):
        ctx.function, ctx.dice = function, torch.get_rng_state()
        ctx.save_for_backward(*inputs)
        return function(*inputs)

    @staticmethod
    def backward(ctx, upstream):
        inputs = ctx.saved_tensors  # refused if one was written to
        with torch.random.fork_rng(devices=[]), torch.enable_grad():
            torch.set_rng_state(ctx.dice)
            again = [x.detach().requires_grad_(x.requires_grad) for x in inputs]
            torch.autograd.backward(ctx.function(*again), upstream)
        return None, *(x.grad for x in again)
    ### END SOLUTION

# %%
wanted, weights = (True, True, False), [[torch.randn(3, 4), torch.randn(4, 3)]]
inputs, upstream = [torch.randn(5, 3), torch.randn(3), torch.tensor([3, 0, 0])], torch.randn(3, 3)
x, scale, first, second = (t.clone().requires_grad_() for t in (*inputs[:2], *weights[0]))
y = torch.tanh((x * scale)[inputs[2]] @ first) @ second  # what the driver's function computes
theirs = torch.autograd.grad(y, (x, scale, first, second), upstream)
came = driver.checkpoints(
    checkpointed, inputs, wanted, weights, [upstream, upstream], old=1.0, count=True
)
expect_close("the result", came["output"], y.detach())
for times in (1, 2):
    got = [*came["gradients"][times - 1], *came["parameters"][times - 1]]
    for name, mine, want, old in zip(
        ("x", "scale", "first", "second"), got, theirs, (0, 0, 1, 1), strict=True
    ):
        expect_close(
            f"{name}, after backward {times}", mine, times * want + old, atol=1e-5, rtol=1e-4
        )
expect_equal("how often the function has run", came["runs"], [1, 2, 3])
expect_equal("tensors alive before backward", came["alive"], 0)
for which, how in (
    (0, "added to"),
    (1, "one row of it"),
    (2, "by way of detach"),
    (0, "the same numbers"),
):
    came = driver.checkpoints(
        checkpointed, inputs, wanted, weights, [upstream], written=(which, how, 0)
    )
    expect_equal(
        f"input {which} is written to: {how}. Backward refuses", came["refused"] == 0, True
    )

# %%
model, tokenizer = load_minigpt(), load_tokenizer()
tokens = torch.tensor([tokenizer.encode("yo hablé español anoche .")])
stream = (
    (model.token_embedding(tokens) + model.position_embedding.weight[: tokens.shape[1]])
    .detach()
    .requires_grad_()
)
own = {p.untyped_storage().data_ptr() for p in model.blocks[0].parameters()}


def kept(function, x):
    """The bytes that the graph keeps, each storage once, without the weights, and the result."""
    saved = {}

    def pack(t):
        saved[t.untyped_storage().data_ptr()] = t.untyped_storage().nbytes()
        return t

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        y = function(x)
    return sum(size for at, size in saved.items() if at not in own), y


def block(x):
    return torch.nn.functional.dropout(model.blocks[0](x), 0.1)


found = []
for way in (block, lambda x: checkpointed(block, x)):
    torch.manual_seed(0)
    size, y = kept(way, stream)
    print(f"MiniGPT's first block keeps {size:6,} bytes for its backward")
    torch.rand(9)  # somebody else draws
    model.zero_grad()
    stream.grad = None
    y.square().sum().backward()
    found.append((stream.grad, model.blocks[0].mlp.up.weight.grad, torch.rand(2)))
for name, want, mine in zip(("the stream", "a weight", "drawn afterwards"), *found, strict=True):
    expect_close(f"with and without a checkpoint: {name}", mine, want, atol=1e-5, rtol=1e-4)

# %% test="checkpointed" points=4
# Graded
check("checkpointed")
inputs = [torch.randn(5, 3), torch.randn(3), torch.tensor([3, 0, 0])]
wanted, weights = (True, True, False), [[torch.randn(3, 4), torch.randn(4, 3)]]
upstreams = [torch.randn(3, 3)]
came = driver.checkpoints(checkpointed, inputs, wanted, weights, upstreams, before=True)
expect_equal("written to before the forward: nothing is refused", came["refused"] is None, True)
### BEGIN HIDDEN TESTS
verify("checkpointed", checkpointed)
### END HIDDEN TESTS

# %% [markdown]
# ## 12 · The LM head
#
# *Hard, 20 minutes, 6 points: three for the loss, three for the head.*
# From the lesson: [Cross-entropy: what came minus what should have come](../../notebooks/02_autograd.ipynb#cell-id=cross-entropy-what-came-minus-what-should-have-come).
#
# At last the real thing. MiniGPT's last layer is `logits = x @ weight.T + bias`, and it was trained
# with the mean cross-entropy of the logits and the next words:
#
# $$\text{loss} = -\frac1N \sum_n \log\, \text{softmax}(\text{logits}_n)_{\text{target}_n}$$
#
# `cross_entropy_vjp(grad_output, logits, targets)`: the gradient for `logits` (N, V). `targets`
# (N,) are int64 numbers, each from 0 to V − 1 (no target is special, and some may be equal).
# `grad_output` is the gradient for the mean loss, a 0-dim tensor of any value.
# In both functions N is at least 1, because zero rows have no mean. Logits may reach ±1,000, and
# different rows may be at very different levels. `torch.softmax` is allowed here, and so is
# `log_softmax`.
#
# `lm_head_gradients(x, weight, bias, targets)`: a dict with the gradients of the mean cross-entropy
# for `"x"` (N, in), `"weight"` (V, in) and `"bias"` (V,). Its logits may also reach ±1,000. You may
# call a function that you wrote above. But if that function is wrong, this one is wrong, too.
#
# <details><summary>The derivative of log softmax?</summary>
#
# Write the log of a softmax as logit minus the log of the sum of the exponentials. The derivative
# of the first term is 1 for the target's own logit. And what is the derivative of the second term
# for any logit? You know it well.
# </details>
# <details><summary>Right direction, wrong size</summary>
#
# The loss is a mean, so each row has only 1/N of it. And other code may multiply the loss by a
# number: `grad_output` contains this number.
# </details>

# %% solution="lm_head"
def cross_entropy_vjp(
    grad_output: torch.Tensor, logits: torch.Tensor, targets: torch.Tensor
) -> torch.Tensor:
    """The gradient for logits (N, V) of the mean cross-entropy with targets (N,)."""
    ### BEGIN SOLUTION
    excess = torch.softmax(logits, -1)
    excess[torch.arange(len(targets)), targets] -= 1
    return grad_output * excess / len(targets)
    ### END SOLUTION


def lm_head_gradients(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, targets: torch.Tensor
) -> dict[str, torch.Tensor]:
    """Gradients of the mean cross-entropy of `x @ weight.T + bias` for x, weight and bias."""
    ### BEGIN SOLUTION
    excess = torch.softmax(x @ weight.T + bias, -1)
    excess[torch.arange(len(targets)), targets] -= 1
    excess = excess / len(targets)
    return {"x": excess @ weight, "weight": excess.T @ x, "bias": excess.sum(0)}
    ### END SOLUTION

# %%
logits = torch.tensor(
    [[1e3, 999.0, 0.0], [-1e3, -999.0, -1e3], [0.0, 1.0, 2.0], [3.0, 0.0, 1.0]]
).double()
logits, targets = logits.requires_grad_(), torch.tensor([1, 0, 2, 0])
loss = torch.nn.functional.cross_entropy(logits, targets)
theirs = torch.autograd.grad(-3 * loss, logits)[0]
before = logits.detach().clone()
mine = cross_entropy_vjp(torch.tensor(-3.0).double(), logits.detach(), targets)
expect_close("the loss, times -3", mine, theirs)
expect_equal("the logits are as they were", logits.detach(), before)
large = lm_head_gradients(before[:2], 9 * torch.eye(3).double(), before[2], torch.tensor([2, 2]))
expect_close("a head with large logits", large["bias"], [0.5, 0.5, -1.0], atol=1e-3)

# %%
model, tokenizer = load_minigpt(), load_tokenizer()
tokens = torch.tensor([tokenizer.encode("yo hablé español anoche .")])
x = model.hidden(tokens[:, :-1])[0].detach().requires_grad_()
weight, bias = model.lm_head.weight, model.lm_head.bias
loss = torch.nn.functional.cross_entropy(x @ weight.T + bias, tokens[0, 1:])
theirs = dict(
    zip(("x", "weight", "bias"), torch.autograd.grad(loss, (x, weight, bias)), strict=True)
)
mine = lm_head_gradients(x.detach(), weight.detach(), bias.detach(), tokens[0, 1:])
for name in theirs:
    expect_close(f"{name}, loss {loss.item():.3f}", mine[name], theirs[name], atol=1e-6, rtol=1e-4)

# %% test="lm_head" points=6
# Graded
check("lm_head")
two = cross_entropy_vjp(torch.tensor(2.0), torch.zeros(1, 4), torch.tensor([3]))
expect_close("twice the loss of one guess", two, [[0.5, 0.5, 0.5, -1.5]])
### BEGIN HIDDEN TESTS
verify("lm_head", cross_entropy_vjp=cross_entropy_vjp, lm_head_gradients=lm_head_gradients)
### END HIDDEN TESTS

# %% [markdown]
# ## 13 · The head learns
#
# *Medium, 15 minutes, 4 points: one each for one step, for several steps, for large logits, and for
# MiniGPT's head.*
# From the lesson: [Cross-entropy: what came minus what should have come](../../notebooks/02_autograd.ipynb#cell-id=cross-entropy-what-came-minus-what-should-have-come).
#
# What are all these gradients for? If you subtract a small part of them from the weights, the loss
# falls. Then you compute new gradients, and subtract again. This is *stochastic gradient descent*
# (SGD), and a language model is trained by little more. Here your own gradients do it.
#
# `train_head(x, weight, bias, targets, lr, steps)` trains the head of exercise 12 and returns
# `(losses, weight, bias)`. Each step
#
# - computes the mean cross-entropy of `x @ weight.T + bias` and the targets, and appends it to the
#   list `losses`, as a Python float. So each loss is the loss *before* its step;
# - computes the gradients of this loss for weight and bias;
# - subtracts `lr` (the learning rate, a float above 0) times the gradient, from the weight and from
#   the bias.
#
# The returned weight and bias are those after the last step. `x` is not trained, and the tensors
# that you get keep their values. With `steps=0` the list is empty, and weight and bias are the old
# ones. As in exercise 12, N is at least 1, and logits may reach ±1,000. A loss is then large, but
# finite. torch may compute the loss for you, but not its gradients.
#
# <details><summary>The first loss is right, and the others are not</summary>
#
# The gradients belong to the weights at which they were computed. After each step the weights are
# others, so everything in the step is computed again.
# </details>
# <details><summary>The loss is inf or nan</summary>
#
# A probability of e⁻²⁰⁰⁰ is rounded to 0, and the log of 0 is −inf. `log_softmax` computes the log
# without this detour.
# </details>

# %% solution="train_head"
def train_head(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor,
    targets: torch.Tensor,
    lr: float,
    steps: int,
) -> tuple[list[float], torch.Tensor, torch.Tensor]:
    """The loss before each step of SGD, and the weight and the bias after the last step."""
    ### BEGIN SOLUTION
    rows, losses = torch.arange(len(targets)), []
    for _ in range(steps):
        log_p = torch.log_softmax(x @ weight.T + bias, -1)
        losses.append(-log_p[rows, targets].mean().item())
        excess = log_p.exp()
        excess[rows, targets] -= 1
        change = lr / len(targets) * excess
        weight = weight - change.T @ x
        bias = bias - change.sum(0)
    return losses, weight, bias
    ### END SOLUTION

# %% [markdown]
# MiniGPT finds this sentence very unlikely: its loss is above 10. Your gradients train a copy of the
# head for eight steps, and so do autograd's.

# %%
model, tokenizer = load_minigpt(), load_tokenizer()
tokens = torch.tensor([tokenizer.encode("ayer nosotros comemos pan .")])
x, targets = model.hidden(tokens[:, :-1])[0].detach(), tokens[0, 1:]
start = (model.lm_head.weight.detach(), model.lm_head.bias.detach())
mine, weight, bias = train_head(x, *start, targets, lr=0.02, steps=8)
theirs = [one.clone().requires_grad_() for one in start]
optimizer, losses = torch.optim.SGD(theirs, lr=0.02), []
for _ in range(8):
    loss = torch.nn.functional.cross_entropy(x @ theirs[0].T + theirs[1], targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("autograd:", *(f"{one:.3f}" for one in losses))
expect_close("the losses", torch.tensor(mine), losses, atol=1e-5)
expect_close("the weight", weight, theirs[0].detach(), atol=1e-5)
expect_close("the bias", bias, theirs[1].detach(), atol=1e-5)
expect_equal("MiniGPT's own head", start[0], load_minigpt().lm_head.weight.detach())

# %% test="train_head" points=4
# Graded
check("train_head")
three = train_head(torch.eye(2), torch.zeros(2, 2), torch.zeros(2), torch.tensor([1, 0]), 0.5, 3)
expect_equal("three losses", len(three[0]), 3)
expect_close("the first is log 2", torch.tensor(three[0][0]), 0.6931, atol=1e-3)
### BEGIN HIDDEN TESTS
verify("train_head", train_head)
### END HIDDEN TESTS

# %% [markdown]
# ## Done
#
# Use *Kernel → Restart Kernel and Run All Cells* once more, so that you know your notebook works
# from top to bottom, then save it.
#
# You have now trained a layer with gradients from your own matrix products and sums. Autograd does
# nothing more than that. It just never gets tired. All these gradients are for parameters: phase 03
# shows where the parameters live.
