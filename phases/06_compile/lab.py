# ---
# jupyter:
#   kernelspec: {display_name: Python 3, language: python, name: python3}
#   open_the_hood: {title: "Lab 06: torch.compile", points: 48, cell_seconds: 180, compile: true}
# ---

# %% [markdown]
# # Lab 06: torch.compile
#
# Eleven exercises and one question, 48 points, about three hours without the *further* exercises 4,
# 5, 6, 10 and 11, which take three hours more. A class may leave those out, or count them as a
# bonus. Otherwise all points count. The lab follows [lesson 06](../../notebooks/06_compile.ipynb). You take apart
# the three machines behind `torch.compile`: the tracer that makes a graph of a function, the
# optimizer that adds a backward and decides what is saved, and the emitter that fuses and writes
# code.
#
# A backend works while other code is compiled. So a *driver*, a function of
# `utils/drivers/compiling.py`, calls your backend. Each graded cell begins with `check(...)`, which
# gives the same verdict as grading. It uses the same drivers with functions, shapes and numbers
# that you have not seen, and new ones each time. Graphs are counted in the process in which your
# code runs. The values count just as much.
#
# Parts of an exercise earn their points separately, and no exercise needs the answer to another
# exercise. If you are stuck, open the hints: each exercise has two, folded away. Run the next cell,
# then start.

# %% given="setup"
import re

import torch
from torch.nn import functional as F

from hood.learner.check import check
from utils.drivers import compiling as driver
from utils.drivers import emitting
from utils.instruments.toolchain import inductor_lacks
from utils.minigpt import MiniGPT
from utils.notebook.expect import expect_close, expect_equal
from utils.softmax import softmax

# %% [markdown]
# ## 1 · What a backend gets
#
# *Easy, 20 minutes, 3 points: one for the operations, one for inputs and outputs, one for several
# graphs.*
# From the lesson: [A graph is data](../../notebooks/06_compile.ipynb#cell-id=a-graph-is-data).
#
# A backend is a function of a graph and of a list of example inputs. The graph, `gm`, is a
# `torch.fx.GraphModule`. A backend returns something that can be called in the graph's place. Write
# `reporting_backend(report)`, which returns a backend. Each time that the backend gets a graph from
# Dynamo, it must append one dictionary to the list `report`:
#
# - `"ops"`: for each operation of the graph, in order, a tuple of its name and the shape of its
#   result. Operations are the nodes that call a function or a method. For a function, the name is
#   its `__name__`; for a method, it is the node's target. (It is not `node.name`, which Dynamo
#   takes from a variable.) If the result is not a tensor, the shape is None;
# - `"inputs"`: the shapes of the graph's inputs, in order;
# - `"outputs"`: how many values the graph returns.
#
# All sizes are fixed, and a shape may be a tuple, a list or a `torch.Size`. The function that the
# backend returns must do exactly what the graph does, so that a compiled function gives the same
# results as before, gradients included.
#
# `driver.report(reporting_backend, steps, x, weights)` compiles a program of the steps that
# `driver.program` lists, and passes its graphs to your backend, as Dynamo does.
#
# <details><summary>What is in a graph?</summary>
#
# `gm.graph.nodes` has the nodes in order, and `print(gm.graph)` shows them. A node has `op`,
# `target`, `args` and `users`. In `node.meta["example_value"]` Dynamo notes what it knows about a
# node's value: a fake tensor.
# </details>
# <details><summary>How many values does it return?</summary>
#
# The last node is the output. Its `args` contain one thing, the tuple of returned values.
# </details>

# %% solution="reporting_backend"
def reporting_backend(report: list):
    """A backend that appends what it got to `report`, and leaves the graph as it is."""
    ### BEGIN SOLUTION
    def shape_of(node):
        value = node.meta["example_value"]
        return tuple(value.shape) if isinstance(value, torch.Tensor) else None

    def backend(gm, example_inputs):
        found = {"ops": [], "inputs": [], "outputs": 0}
        for node in gm.graph.nodes:
            if node.op == "placeholder":
                found["inputs"].append(shape_of(node))
            elif node.op == "call_function":
                found["ops"].append((node.target.__name__, shape_of(node)))
            elif node.op == "call_method":
                found["ops"].append((node.target, shape_of(node)))
            elif node.op == "output":
                found["outputs"] = len(node.args[0])
        report.append(found)
        return gm.forward

    return backend
    ### END SOLUTION

# %%
x, weight = (
    torch.tensor([[1.0, -2.0, 3.0], [0.0, 4.0, -1.0]]),
    torch.tensor([[1.0, 1.0, 0.0], [0.0, 0.5, 2.0]]),
)
came = driver.report(
    reporting_backend, [("linear",), ("relu",), ("scale", 2.0), ("relu",)], x, [weight]
)
expect_equal("one graph", len(came["report"]), 1)
expect_equal(
    "its operations",
    came["report"][0]["ops"],
    [("linear", (2, 2)), ("relu", (2, 2)), ("mul", (2, 2)), ("relu", (2, 2))],
)
expect_equal("its inputs", came["report"][0]["inputs"], [(2, 3), (2, 3)])
expect_equal("its outputs", came["report"][0]["outputs"], 1)
expect_equal("what it returns", came["results"], [[torch.tensor([[0.0, 10.0], [8.0, 0.0]])]])
came = driver.report(reporting_backend, [("neg",), ("first", 2), ("keep",), ("sum", 0)], x)
expect_equal(
    "methods, and what is no tensor",
    came["report"][0]["ops"],
    [("neg", (2, 3)), ("chunk", None), ("getitem", (1, 3)), ("sum", (3,))],
)
expect_equal("two outputs", came["report"][0]["outputs"], 2)

# %% test="reporting_backend" points=3
# Graded
check("reporting_backend")
x = torch.tensor([[1.0, -2.0, 3.0], [0.0, 4.0, -1.0]])
came = driver.report(reporting_backend, [("exp",), ("break",), ("relu",)], x)
expect_equal(
    "two graphs",
    [graph["ops"] for graph in came["report"]],
    [[("exp", (2, 3))], [("relu", (2, 3))]],
)
### BEGIN HIDDEN TESTS
verify("reporting_backend", reporting_backend)
### END HIDDEN TESTS

# %% [markdown]
# ## 2 · How many graphs?
#
# *Medium, 30 minutes, 4 points: one each for dtypes and dimensions, for sizes, for numbers, and for
# the limit.*
# From the lesson: [Guards: what a graph believes](../../notebooks/06_compile.ipynb#cell-id=guards-what-a-graph-believes).
#
# A function `f(x, k)`, which computes `x * k`, is compiled and called several times. Predict how
# many graphs there are after each call. `count_graphs(calls)` gets a list of calls. Each call is a
# tuple of the shape of `x`, its dtype, and `k`. Return a list with one number for each call. In one
# list `k` is always an int, or always a float. All tensors are contiguous, and nothing else
# changes.
#
# The rules of torch 2.13 that you need:
#
# - Each graph has guards: the dtype of `x`, how many dimensions it has, each of its sizes, and `k`.
#   A size, or `k`, is either one exact number, or it is open. A call that fits an existing graph
#   makes no new one. A call that fits no graph makes a new one, until there are eight. After that,
#   such a call runs without a graph.
# - When a graph is made, a size is exact, unless it was another number when an earlier graph of any
#   dtype was made. In that case it is open. The same is true of `k`. When the number of dimensions
#   of `x` has changed, all of its sizes are open from then on.
# - An open size is any size from 2 up. A size of 0 or 1 is exact in the graph that is made for it,
#   even if it would otherwise be open. An open `k` is any number, including 0 and 1.
#
# Your function must calculate the numbers, and it must not compile anything. In another cell you
# may compile: `driver.count_as_torch_does(calls)` asks torch.
#
# <details><summary>What do I keep?</summary>
#
# Keep two things. The first is a list of the graphs so far, each with its guards. The second is for
# all graphs together: which sizes and numbers have changed.
# </details>
# <details><summary>When does something open?</summary>
#
# Only when a graph is made, so first look for a graph that fits. A size or number that is open
# stays open for all later graphs. Existing graphs keep their guards.
# </details>

# %% solution="count_graphs"
def count_graphs(calls: list[tuple[tuple[int, ...], torch.dtype, float]]) -> list[int]:
    """How many graphs there are after each call of `f(x, k)`, given x's shape and dtype, and k."""
    ### BEGIN SOLUTION
    graphs, found = [], []
    first, changed, ranks = {}, set(), set()

    def fits(graph, kind, values):
        known, guards = graph
        return known == kind and all(
            value == guards[name] or guards[name] is None and (name == "k" or value > 1)
            for name, value in values.items()
        )

    for shape, dtype, k in calls:
        kind, values = (dtype, len(shape)), {**dict(enumerate(shape)), "k": k}
        if len(graphs) < 8 and not any(fits(graph, kind, values) for graph in graphs):
            ranks.add(len(shape))
            guards = {}
            for name, value in values.items():
                if first.setdefault(name, value) != value:
                    changed.add(name)
                still_open = name in changed or (name != "k" and len(ranks) > 1)
                guards[name] = None if still_open and (name == "k" or value > 1) else value
            graphs.append((kind, guards))
        found.append(len(graphs))
    return found
    ### END SOLUTION

# %%
f32, f64 = torch.float32, torch.float64
expect_equal(
    "two dtypes", count_graphs([((3,), f32, 2), ((3,), f64, 2), ((3,), f32, 2)]), [1, 2, 2]
)
expect_equal(
    "sizes",
    count_graphs([((3,), f32, 2), ((4,), f32, 2), ((5,), f32, 2), ((1,), f32, 2)]),
    [1, 2, 2, 3],
)
expect_equal(
    "numbers",
    count_graphs([((3,), f32, 2), ((3,), f32, 3), ((3,), f32, 1), ((3,), f32, 0)]),
    [1, 2, 2, 2],
)
dimensions = [((2, 3), f32, 2), ((3,), f32, 2), ((4,), f32, 2), ((2, 3), f32, 2)]
expect_equal("dimensions", count_graphs(dimensions), [1, 2, 2, 2])
expect_equal("torch agrees", driver.count_as_torch_does(dimensions), [1, 2, 2, 2])
expect_equal(
    "sizes of 0 and 1",
    count_graphs([((n,), f32, 2) for n in (3, 0, 4, 0, 1, 0)]),
    [1, 2, 3, 3, 4, 4],
)
expect_equal(
    "two sizes",
    count_graphs([(shape, f32, 2) for shape in ((3, 4), (3, 5), (3, 6), (7, 6), (8, 9))]),
    [1, 2, 2, 3, 3],
)
expect_equal(
    "a number, then sizes",
    count_graphs([((3,), f32, 2), ((3,), f32, 3), ((4,), f32, 3), ((5,), f32, 2)]),
    [1, 2, 3, 3],
)

# %% test="count_graphs" points=4
# Graded
check("count_graphs")
f32, f64 = torch.float32, torch.float64
expect_equal(
    "ten numbers of dimensions",
    count_graphs([((2,) * n, f32, 2) for n in range(10)]),
    [1, 2, 3, 4, 5, 6, 7, 8, 8, 8],
)
expect_equal(
    "a size, of whatever dtype",
    count_graphs([((3,), f32, 2), ((4,), f64, 2), ((5,), f64, 2), ((5,), f32, 2)]),
    [1, 2, 2, 3],
)
### BEGIN HIDDEN TESTS
verify("count_graphs", count_graphs)
### END HIDDEN TESTS

# %% [markdown]
# ## 3 · One graph each
#
# *Medium, 35 minutes, 5 points: one for the gate, two for the scale, two for the rows.*
# From the lesson: [When it breaks, and who says so](../../notebooks/06_compile.ipynb#cell-id=when-it-breaks-and-who-says-so).
#
# Here are three functions that colleagues wrote. Each function works, but Dynamo can't follow it to
# its end. The cells below define them and print how many graphs Dynamo makes of each.

# %% given="broken"
def broken_gate(x: torch.Tensor) -> torch.Tensor:
    """Twice x if the sum of all numbers in x is positive, otherwise half of x."""
    if x.sum() > 0:
        return 2 * x
    return x / 2


def broken_scale(x: torch.Tensor) -> torch.Tensor:
    """x, divided by its largest absolute value. If x has only zeros, they stay zeros."""
    largest = x.abs().max().item()
    if largest == 0:
        print("nothing to scale")
        return 1 * x
    return x / largest


def broken_rows(x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    """The sum of each row's first `lengths[i]` numbers; the later numbers don't count."""
    sums = []
    for row, length in zip(x, lengths.tolist()):
        sums.append(row[:length].sum())
    return torch.stack(sums)


# %%
x, negative = torch.tensor([[3.0, -1.0], [0.5, 2.0]]), torch.tensor([[-3.0, 1.0], [0.5, -2.0]])
print("gate ", driver.compiled(broken_gate, [x], [negative])["graphs"], "graphs")
print("scale", driver.compiled(broken_scale, [x], [0 * x])["graphs"], "graphs")
print(
    "rows ",
    driver.compiled(broken_rows, [x, torch.tensor([1, 2])], [x, torch.tensor([2, 0])])["graphs"],
    "graphs",
)

# %% [markdown]
# Write fixed functions: `gate(x)`, `scale(x)` and `row_sums(x, lengths)`. Compiled without
# `fullgraph`, each must be one graph. It must still be one graph after another call, with other
# numbers of the same shape. It must return what the colleague's function returns, and the gradient
# of `x` must be the same too. All of this must be true for any numbers, including infinite ones,
# and on both sides of each branch. Nothing needs to be printed.
#
# `x` has dtype float32 or float64 and at least one number. In `gate` and `scale` it has any shape.
# In `row_sums` it is a matrix, and `lengths` has a whole number for each row, from 0 to the number
# of columns. The numbers after a row's length may be anything, infinity and NaN included. Within
# the length, infinity and NaN count, as they do in the colleague's sum.
#
# `driver.compiled(function, [arguments], ...)` returns values, gradients and the number of graphs.
# Don't test with `fullgraph=True`: it stops Dynamo from breaking at some places, such as `.item()`,
# where it breaks without `fullgraph`.
#
# <details><summary>How do I write a branch that is data?</summary>
#
# Compute both sides, and let `torch.where` take one of them. The condition may be a tensor without
# dimensions. A row's length gives a condition, too: it says whether each column counts.
# </details>
# <details><summary>The values are right, and the gradients are not</summary>
#
# A number that was fetched with `.item()` has no gradient, so in the colleague's division it is a
# constant. And a NaN that is multiplied by 0 is NaN.
# </details>

# %% solution="mended"
def gate(x: torch.Tensor) -> torch.Tensor:
    """`broken_gate` in one graph."""
    ### BEGIN SOLUTION
    return torch.where(x.sum() > 0, 2 * x, x / 2)
    ### END SOLUTION


def scale(x: torch.Tensor) -> torch.Tensor:
    """`broken_scale` in one graph."""
    ### BEGIN SOLUTION
    largest = x.detach().abs().max()
    return x / torch.where(largest == 0, 1.0, largest)
    ### END SOLUTION


def row_sums(x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    """`broken_rows` in one graph."""
    ### BEGIN SOLUTION
    counts = torch.arange(x.shape[1]) < lengths[:, None]
    return torch.where(counts, x, 0.0).sum(1)
    ### END SOLUTION

# %%
x, negative = torch.tensor([[3.0, -1.0], [0.5, 2.0]]), torch.tensor([[-3.0, 1.0], [0.5, -2.0]])
came = driver.compiled(gate, [x], [negative])
expect_equal("gate", came["values"], [broken_gate(x), broken_gate(negative)])
expect_equal("its gradients", came["gradients"], [torch.full((2, 2), 2.0), torch.full((2, 2), 0.5)])
expect_equal("graphs of gate", came["graphs"], 1)
came = driver.compiled(scale, [x], [0 * x])
expect_equal("scale", came["values"], [x / 3, 0 * x])
expect_close("its gradients", came["gradients"], [torch.full((2, 2), 1 / 3), torch.ones(2, 2)])
expect_equal("graphs of scale", came["graphs"], 1)
mixed, endless = (
    torch.tensor([[-1.0, 3.0], [-0.5, -1.0]]),
    torch.tensor([[float("inf"), -float("inf")], [1.0, 1.0]]),
)
expect_equal(
    "gate of other sums",
    driver.compiled(gate, [mixed], [0 * x], [endless]),
    {**driver.compiled(broken_gate, [mixed], [0 * x], [endless]), "graphs": 1},
)
block = mixed.reshape(2, 1, 2)
expect_equal(
    "three dimensions", [gate(block), scale(-block)], [broken_gate(block), broken_scale(-block)]
)
tiny = torch.tensor([1e-50, -3e-50], dtype=torch.float64)
expect_close("tiny numbers", scale(tiny), tiny / 3e-50)

# %% test="mended" points=5
# Graded
check("mended")
padded = torch.tensor([[1.0, 2.0, float("nan")], [4.0, 5.0, 6.0]])
came = driver.compiled(row_sums, [padded, torch.tensor([2, 0])], [padded, torch.tensor([1, 3])])
expect_equal("row_sums", came["values"], [torch.tensor([3.0, 0.0]), torch.tensor([1.0, 15.0])])
expect_equal("graphs of row_sums", came["graphs"], 1)
endless = torch.tensor([[float("inf"), 1.0, 2.0], [1.0, float("nan"), 2.0]], dtype=torch.float64)
expect_equal(
    "infinity and NaN within",
    row_sums(endless, torch.tensor([1, 3])),
    broken_rows(endless, torch.tensor([1, 3])),
)
### BEGIN HIDDEN TESTS
verify("mended", gate=gate, scale=scale, row_sums=row_sums)
### END HIDDEN TESTS

# %% [markdown]
# ## 4 · Your operator for every softmax
#
# *Further, hard, 45 minutes, 6 points: one for functions, one for methods and modules, two for
# where it fits, one for several in a graph, one for training.*
# From the lesson: [A graph is data](../../notebooks/06_compile.ipynb#cell-id=a-graph-is-data).
#
# In lab 05 you put an operator into MiniGPT by hand. A backend can do it automatically, for any
# function. Write `softmax_backend(op)`, which returns a backend. In each graph that it gets, the
# backend must replace each softmax by a call of `op`, and leave everything else as it was.
#
# - `op` is a function of one tensor: a softmax over the last dimension, which keeps the dtype.
# - A softmax arrives in a graph as a call of `torch.softmax`, of `F.softmax`, or of a tensor's
#   method `softmax`. (Dynamo has already turned `nn.Softmax` into a call of `F.softmax`.) The
#   dimension is always given, by position or by its name `dim`. It counts from the front, or from
#   the end if it is negative. The tensor may also be given by its name, `input`.
# - `op` fits if the dimension is the tensor's last, and the call asks for no dtype, not even for
#   the dtype that the tensor has. (`dtype=None` does not ask for a dtype.) If `op` does not fit,
#   the softmax must stay.
# - The function that the backend returns must run the changed graph. A function that is compiled
#   with your backend must be differentiable, with the gradient of `op`.
#
# `driver.replaced(softmax_backend, [(form, dim), ...], x)` compiles a function that calls some of
# `driver.FORMS`, and passes its graph to your backend, as Dynamo does. It reads `gm.code` before
# that, as a logger would. After that, the module keeps this code until you call `gm.recompile()`.
# As `op` the driver passes `driver.sharper`, a softmax of 1.5 times its input. So the numbers show
# where `op` is used.
#
# <details><summary>How do I find them?</summary>
#
# Print `node.op`, `node.target`, `node.args` and `node.kwargs` for a function that calls all forms.
# A node's `meta["example_value"]` has as many dimensions as the node's tensor. A node that you make
# has an empty `meta`, unless you fill it.
# </details>
# <details><summary>How do I replace a node?</summary>
#
# Inside `with gm.graph.inserting_before(node):` make a new node with `gm.graph.call_function`. Let
# all readers of the old node read the new node (`replace_all_uses_with`), and erase the old node.
# Loop over a list of the nodes, because the graph changes during the loop.
# </details>

# %% solution="softmax_backend"
def softmax_backend(op):
    """A backend that replaces each softmax by `op`, if `op` fits."""
    ### BEGIN SOLUTION
    def backend(gm, example_inputs):
        for node in list(gm.graph.nodes):
            function = node.op == "call_function" and node.target in (torch.softmax, F.softmax)
            if not function and (node.op, node.target) != ("call_method", "softmax"):
                continue
            values = {**dict(zip(("input", "dim"), node.args)), **node.kwargs}
            dtype = values.get("dtype")
            if node.target is not F.softmax and len(node.args) > 2:
                dtype = node.args[2]
            x = values["input"]
            if dtype is None and values["dim"] in (-1, x.meta["example_value"].dim() - 1):
                with gm.graph.inserting_before(node):
                    new = gm.graph.call_function(op, (x,))
                node.replace_all_uses_with(new)
                new.meta = node.meta
                gm.graph.erase_node(node)
        gm.recompile()
        return gm.forward

    return backend
    ### END SOLUTION

# %%
x = torch.tensor([[1.0, 2.0, 0.0], [0.5, -1.0, 0.5]])
sharp, plain = driver.sharper, lambda x, dim: torch.softmax(x, dim)
came = driver.replaced(
    softmax_backend, [("torch.softmax(x, dim=dim)", -1), ("F.softmax(x, dim)", 1)], x
)
expect_close("functions", came["values"], [sharp(x), sharp(x / 2)])
came = driver.replaced(softmax_backend, [("x.softmax(dim)", 1), ("nn.Softmax(dim)(x)", -1)], x)
expect_close("a method and a module", came["values"], [sharp(x), sharp(x / 2)])
came = driver.replaced(
    softmax_backend, [("torch.softmax(x, dim)", 0), ("x.log_softmax(dim)", 1)], x
)
expect_close("where it does not fit", came["values"], [plain(x, 0), torch.log_softmax(x / 2, 1)])
came = driver.replaced(softmax_backend, [("torch.softmax(x, dim, dtype=float64)", 1)], x)
expect_close("another dtype", came["values"], [torch.softmax(x, 1, dtype=torch.float64)])
came = driver.replaced(
    softmax_backend, [("x.softmax(dim, float64)", 1), ("torch.softmax(x, dim, dtype=None)", 1)], x
)
expect_close(
    "a dtype, and none", came["values"], [torch.softmax(x, 1, dtype=torch.float64), sharp(x / 2)]
)
came = driver.replaced(softmax_backend, [("x.softmax(dim, dtype=float64)", 1)], x.double())
expect_close("the dtype that it has", came["values"], [torch.softmax(x.double(), 1)])
cube = torch.arange(8.0).reshape(2, 2, 2)
came = driver.replaced(
    softmax_backend, [("torch.softmax(input=x, dim=dim)", 2), ("x.softmax(dim)", 1)], cube
)
expect_close("three dimensions", came["values"], [sharp(cube), plain(cube / 2, 1)])
came = driver.replaced(
    softmax_backend,
    [("x[None].softmax(dim + 1)[0]", 1), ("F.softmax(x, dim)", -1)],
    x,
    chained=True,
)
expect_close("a softmax of a softmax", came["values"], [sharp(x), sharp(sharp(x))])

# %% test="softmax_backend" points=6
# Graded
check("softmax_backend")
x, sharp = torch.tensor([[1.0, 2.0, 0.0], [0.5, -1.0, 0.5]]), driver.sharper
came = driver.replaced(
    softmax_backend,
    [("torch.softmax(x, dim)", 1)],
    x,
    torch.tensor([[1.0, 0.0, 0.0], [0.0, 2.0, 0.0]]),
)
expect_close("there", came["values"], [sharp(x)])
expect_close(
    "and back",
    came["gradient"],
    [[0.2168, -0.2066, -0.0103], [-0.0713, 0.1427, -0.0713]],
    atol=1e-4,
)
### BEGIN HIDDEN TESTS
verify("softmax_backend", softmax_backend)
### END HIDDEN TESTS

# %% [markdown]
# ## 5 · What is saved
#
# *Further, medium, 35 minutes, 5 points: two for what is saved, one for the corners, two for what
# is computed again.*
# From the lesson: [What is saved, and what is computed again](../../notebooks/06_compile.ipynb#cell-id=what-is-saved-and-what-is-computed-again).
#
# AOTAutograd traces a step, forward and backward, into one *joint* graph. The graph has inputs,
# then nodes, then one output. If the name of an input begins with `tangents`, it is an incoming
# gradient; all other inputs belong to the forward. The output contains the forward's results, and
# after them the gradients: `output.args[0]` is a list of nodes, and its first `outputs` nodes are
# the forward's results. A place without a gradient contains None. A partitioner cuts this graph in
# two by these rules:
#
# - A node belongs to the *forward* if the forward returns it, or if one of the forward's results
#   needs it, directly or through other nodes. All other nodes that call a function belong to the
#   *backward*.
# - The plain partitioner saves each node of the forward, inputs included, that is read by a node of
#   the backward. (torch's own plain partitioner asks whether a node was traced before or after the
#   gradients came in. For simple steps like these, both rules give the same.)
# - A partitioner that saves less must compute some nodes again. The backward wants to read some
#   nodes of the forward. But only some of them are kept, besides the inputs, which exist anyway.
#   Each wanted node that does not exist must be computed again. For that, the nodes that it reads
#   are wanted, too.
#
# Write two functions. Both get `joint`, a `torch.fx.GraphModule`, and return a list of names of nodes,
# each once, in the graph's order:
#
# - `saved(joint, outputs)`: what the plain partitioner saves (`outputs` is a number);
# - `computed_again(joint, wanted, kept)`: which nodes must be computed again (`wanted` and `kept`
#   are lists of names).
#
# Try your functions with `driver.joint_graph(steps, shapes)`. It returns a pair, `joint` and
# `outputs`, for any steps that its docstring lists, and `print(joint.graph)` shows the graph. Each
# `detach` has been removed, because it does nothing here.
#
# <details><summary>How do I find the forward?</summary>
#
# Walk back from the forward's outputs: `node.all_input_nodes` are the nodes that a node reads.
# </details>
# <details><summary>And what must be computed again?</summary>
#
# It is the same walk, starting from the wanted nodes, and it stops at nodes that exist.
# </details>

# %% solution="saved"
def saved(joint: torch.fx.GraphModule, outputs: int) -> list[str]:
    """Names of the nodes that the plain partitioner saves for the backward."""
    ### BEGIN SOLUTION
    *nodes, output = joint.graph.nodes
    forward = needed(output.args[0][:outputs], ())
    read = {one for node in nodes if node not in forward for one in node.all_input_nodes}
    return [node.name for node in nodes if node in forward and node in read]
    ### END SOLUTION


def computed_again(joint: torch.fx.GraphModule, wanted: list[str], kept: list[str]) -> list[str]:
    """Names of the nodes that must run again to give `wanted`, if only `kept` exist."""
    ### BEGIN SOLUTION
    again = needed([node for node in joint.graph.nodes if node.name in wanted], kept)
    return [node.name for node in joint.graph.nodes if node in again and node.op != "placeholder"]


def needed(roots, there):
    """`roots` and all nodes that they need. The walk stops at names in `there`."""
    found, waiting = set(), list(roots)
    while waiting:
        node = waiting.pop()
        if node not in found and node.name not in there:
            found.add(node)
            waiting += node.all_input_nodes
    return found
    ### END SOLUTION

# %%
joint, outputs = driver.joint_graph([("linear",), ("relu",), ("sin",)], [(2, 3), (4, 3)])
print(joint.graph)
expect_equal("a layer", saved(joint, outputs), ["primals_1", "t", "relu"])
expect_equal(
    "nothing is kept", computed_again(joint, ["primals_1", "relu"], []), ["t", "mm", "relu"]
)
expect_equal("the product is kept", computed_again(joint, ["relu", "t"], ["mm"]), ["t", "relu"])
joint, outputs = driver.joint_graph([("softmax",), ("keep",), ("exp",), ("sum", 0)], [(2, 3)])
expect_equal("two results", saved(joint, outputs), ["_softmax", "exp"])
expect_equal(
    "one of two is kept", computed_again(joint, ["_softmax", "exp"], ["_softmax"]), ["exp"]
)

# %% test="saved" points=5
# Graded
check("saved")
joint, outputs = driver.joint_graph([("scale", 2.0), ("sum", 1)], [(2, 3)])
expect_equal("nothing to save", saved(joint, outputs), [])
### BEGIN HIDDEN TESTS
verify("saved", saved=saved, computed_again=computed_again)
### END HIDDEN TESTS

# %% [markdown]
# ## 6 · A fusion pass
#
# *Further, medium, 30 minutes, 4 points: one each for pointwise nodes, for reductions, for the
# order, and for what is stored.*
# From the lesson: [Fusion, and the code](../../notebooks/06_compile.ipynb#cell-id=fusion-and-the-code).
#
# This is a toy version of Inductor's scheduler. A program is a list of nodes. Each node is a tuple
# of its name, its kind, and the names that it reads: `("b", "pointwise", ["a", "x"])`. Kinds are
# `"pointwise"`, `"reduction"` and `"library"`. Names that no node has are inputs. No node reads a
# later node. Write two functions.
#
# `fuse(nodes)` returns groups, a list of lists of names. In the end each group will be one kernel,
# and the kernels run in the order of the list. Go through the nodes in order. A node joins the
# *youngest* group that takes it, that is, the group that was begun last. If no group takes it, it
# begins a new group at the end. A group takes a node if all of this is true:
#
# - the node is pointwise or a reduction, and so are all nodes of the group: a library call is alone
#   in its group;
# - the node reads at least one node of the group;
# - it reads no reduction of the group, because a sum is known only when the loop is over;
# - it reads no result of a younger group, because that kernel runs later.
#
# `stored(nodes, groups, outputs)` returns the names of the nodes whose results must be written to
# memory, in the order of the nodes. These are the results that a node of another group reads, and
# the results in the list `outputs`. Leave out inputs, even if they are in `outputs`. Use the groups
# that are passed in; your own `fuse` might make other groups.
#
# <details><summary>What do I need to know of a group?</summary>
#
# You need its place in the list, and the kind of each of its nodes. A dictionary from names to
# places says which group makes a name that a node reads.
# </details>
# <details><summary>An older group seems to take a node, but a younger group makes another of the
# node's inputs</summary>
#
# Then the older group does not take the node. In other words: of all groups that make an input of
# the node, only the youngest can take it.
# </details>

# %% solution="fuse"
def fuse(nodes: list[tuple[str, str, list[str]]]) -> list[list[str]]:
    """Names of nodes, group by group."""
    ### BEGIN SOLUTION
    groups, place, kinds = [], {}, {}
    for name, kind, reads in nodes:
        made = [read for read in reads if read in place]
        youngest = max((place[read] for read in made), default=None)
        alone = youngest is None or "library" in (kind, kinds[groups[youngest][0]])
        if alone or any(place[r] == youngest and kinds[r] == "reduction" for r in made):
            groups.append([])
            youngest = len(groups) - 1
        groups[youngest].append(name)
        place[name], kinds[name] = youngest, kind
    return groups
    ### END SOLUTION


def stored(
    nodes: list[tuple[str, str, list[str]]], groups: list[list[str]], outputs: list[str]
) -> list[str]:
    """Names of the nodes whose results must be written to memory."""
    ### BEGIN SOLUTION
    place = {name: at for at, group in enumerate(groups) for name in group}
    read = {one for name, _, reads in nodes for one in reads if place.get(one) != place[name]}
    return [name for name, _, _ in nodes if name in read or name in outputs]
    ### END SOLUTION

# %%
head = [
    ("t", "library", ["x", "w"]),
    ("s", "pointwise", ["t", "b"]),
    ("m", "reduction", ["s"]),
    ("d", "pointwise", ["s", "m"]),
    ("e", "pointwise", ["d"]),
    ("z", "reduction", ["e"]),
    ("y", "pointwise", ["e", "z"]),
]
expect_equal("a head with a softmax", fuse(head), [["t"], ["s", "m"], ["d", "e", "z"], ["y"]])
expect_equal("what it stores", stored(head, fuse(head), ["y"]), ["t", "s", "m", "e", "z", "y"])
chain = [
    ("a", "pointwise", ["x"]),
    ("b", "pointwise", ["a"]),
    ("c", "pointwise", ["a", "b"]),
    ("d", "pointwise", ["x"]),
]
expect_equal("pointwise", fuse(chain), [["a", "b", "c"], ["d"]])
expect_equal("what it stores", stored(chain, [["a", "b", "c"], ["d"]], ["c", "d"]), ["c", "d"])
expect_equal(
    "one output, which is read as well", stored(chain, [["a", "b", "c"], ["d"]], ["a"]), ["a"]
)
known = [("m", "reduction", ["x"]), ("a", "pointwise", ["m"]), ("c", "pointwise", ["a", "m"])]
expect_equal("a sum that is known", fuse(known), [["m"], ["a", "c"]])
sides = [
    ("a", "pointwise", ["x"]),
    ("m", "reduction", ["a"]),
    ("b", "pointwise", ["y"]),
    ("c", "pointwise", ["a", "b"]),
    ("d", "pointwise", ["a"]),
]
expect_equal("two groups", fuse(sides), [["a", "m", "d"], ["b", "c"]])
expect_equal("groups that are given", stored(sides, [["a", "d"], ["m"], ["b", "c"]], []), ["a"])

# %% test="fuse" points=4
# Graded
check("fuse")
late = [
    ("a", "pointwise", ["x"]),
    ("p", "library", ["a"]),
    ("b", "pointwise", ["a", "p"]),
    ("c", "pointwise", ["a"]),
]
expect_equal("around a library", fuse(late), [["a", "c"], ["p"], ["b"]])
expect_equal("what it stores", stored(late, fuse(late), ["c", "x", "a"]), ["a", "p", "c"])
### BEGIN HIDDEN TESTS
verify("fuse", fuse=fuse, stored=stored)
### END HIDDEN TESTS

# %% [markdown]
# ## 7 · Get the code
#
# *Medium, 20 minutes, 3 points: one for the forward, one for the backward, one for calling the
# function once and leaving nothing switched on. For the last point, your own process says whether
# Python can parse a text, how often the function is called, and what is left on.*
# From the lesson: [How to look, anywhere](../../notebooks/06_compile.ipynb#cell-id=how-to-look-anywhere).
#
# The lesson's `written` gives you the code that Inductor writes. Outside this course there is no
# such helper, so don't use it here: get the text with torch's own means, such as a log, a folder,
# or one of torch's functions. Any way is right. Write `generated(function, *inputs)`. It must
# compile `function` with Inductor, call it once with `inputs`, and return the modules that Inductor
# has for this call, as a list of texts.
#
# - Each graph that Dynamo makes of the call has a module. If the result requires a gradient, each
#   graph has a second module, for its backward. In that case call `backward` once, on the sum of
#   the result. The list may have any order, and graphs that are alike may share a text.
# - Each text must be the module and nothing else, so that `ast.parse` can read it.
# - It must be the code of this call, whatever was called before: another function, or the same
#   function with these or with other inputs. Code that comes out of a cache must be in the list,
#   too. The code must contain the sizes of the inputs as numbers, and their strides as well.
# - Everything that you change must afterwards be as it was before, even if the call or its backward
#   fails: logs with their handlers, torch's settings, environment variables, functions of torch
#   that you replaced. The error of a call that fails must reach the caller of `generated`.
#
# `function` takes tensors and returns one tensor. You may make the compiler forget what it has
# compiled, and afterwards `.grad` may contain anything. You need no C++ compiler, because a library
# computes products of matrices: `emitting.products(2, 1)` is a function with two products, a graph
# break, and a third product. `emitting.dumped(generated, ((2, 1), x, w), ...)` passes you such
# functions, one call after the other. It returns your texts and everything that you left on.
#
# <details><summary>The second time, nothing comes</summary>
#
# A function that was compiled is not compiled again while the process remembers it.
# `torch._dynamo.reset()` makes it forget. Code that then comes from the disk is logged as if it
# were new.
# </details>
# <details><summary>How do I catch what is logged?</summary>
#
# `torch._logging.set_logs(output_code=True)` switches on the loggers below `"torch._inductor"`, and
# `set_logs()` switches them off. Give that logger your own `logging.Handler`: its `emit(record)`
# gets each whole message, as `record.getMessage()`. Or look at `run_and_get_code` in
# `torch/_inductor/utils.py`: it can call any function that you pass to it, even a function that
# calls `backward`.
# </details>

# %% solution="generated"
def generated(function, *inputs: torch.Tensor) -> list[str]:
    """The texts of the modules that Inductor has for `function(*inputs)`, forward and backward."""
    ### BEGIN SOLUTION
    from torch._inductor.utils import run_and_get_code  # shown

    def there_and_back():
        result = torch.compile(function)(*inputs)
        if result.requires_grad:
            result.sum().backward()

    return run_and_get_code(there_and_back)[1]
    ### END SOLUTION

# %%
x, w = torch.tensor([[1.0, 2.0, 0.0], [0.5, -1.0, 0.5]]), torch.eye(3)
came = emitting.dumped(generated, ((2,), x, w), ((2,), x, w), ((2,), x[:, :2], w[:2, :2]))
expect_equal("a module for each call", [len(texts) for texts in came["texts"]], [1, 1, 1])
expect_equal("Python reads it", came["python"], [[True]] * 3)
(first,), (again,), (other,) = came["texts"]
expect_equal(
    "two products", [text.count(" extern_kernels.mm(") for text in (first, again, other)], [2, 2, 2]
)
expect_equal(
    "from its beginning to its end", ["import torch\n" in first, "__main__" in first], [True, True]
)
expect_equal(
    "the sizes of the call",
    ["assert_size_stride(arg0_1, (2, 3)" in text for text in (first, again, other)],
    [True, True, False],
)
expect_equal("nothing is left on", came["left"], [[], [], []])
came = emitting.dumped(generated, ((2, 1), x, w), back=True)
expect_equal(
    "two graphs, there and back",
    sorted("tangents_1" in text for text in came["texts"][0]),
    [False, False, True, True],
)
expect_equal("nothing is left on", came["left"], [[]])

# %% [markdown]
# Now look at the code of MiniGPT's head, followed by a softmax. (If there is no C++ compiler, the
# cell says so.)

# %%
def probabilities(hidden, weight):
    return torch.softmax(F.linear(hidden, weight), -1)


lack = inductor_lacks()
print(lack or generated(probabilities, torch.randn(2, 64), torch.randn(600, 64))[0])

# %% test="generated" points=3
# Graded
check("generated")
x, w = torch.tensor([[1.0, 2.0, 0.0], [0.5, -1.0, 0.5]]), torch.eye(3)
came = emitting.dumped(generated, ((1, 0), x, w), ((1,), x, w))
expect_equal("a call that fails, and one that does not", came["raised"], [True, False])
expect_equal("nothing is left on", came["left"], [[], []])
### BEGIN HIDDEN TESTS
verify("generated", generated)
### END HIDDEN TESTS

# %% [markdown]
# ## 8 · Read what Inductor wrote
#
# *Easy, 20 minutes, 3 points: one each for the kernels, for the libraries, and for the buffers.*
# From the lesson: [Fusion, and the code](../../notebooks/06_compile.ipynb#cell-id=fusion-and-the-code).
#
# Inductor writes a Python module, with its kernels as text inside: C++ for a CPU, Triton for a GPU.
# The kernels come first. Below them is a function `call`, which runs the kernels, calls libraries,
# and finds memory for the results. These are lines of three such functions:
#
# ```
#         cpp_fused_gelu_0(buf0, buf1)
#             triton_poi_fused_gelu_0.run(buf1, 8192, stream=raw_stream0)
#         extern_kernels.mm(arg0_1, arg1_1, out=buf0)
#             buf1 = torch.ops.open_the_hood.softmax.default(buf0)
#         assert_alignment(buf1, 16, 'torch.ops.open_the_hood.softmax.default')
#         # Topologically Sorted Source Nodes: [mm], Original ATen: [aten.mm]
#         buf3 = buf1; del buf1  # reuse
# ```
#
# The first two lines run a kernel, whose name begins with `cpp_` or `triton_`. The next two lines
# call libraries: a function of `extern_kernels`, or an operator of `torch.ops`. The two lines after
# them only mention names, and call nothing. The last line gives a buffer's memory to another
# buffer; such a line ends in `# reuse`. Write three functions that take the text of a module. They
# must look only at its function `call`: from the line that begins with `def call`, indented or not,
# to the end of the text.
#
# - `launches(code)`: the names of the kernels in the order in which they run, each name as often as
#   its kernel runs;
# - `library_calls(code)`: the names of the library functions that are called, with their dots, in
#   order: `["extern_kernels.mm", "torch.ops.open_the_hood.softmax.default"]`;
# - `reused(code)`: how many buffers get the memory of another buffer.
#
# Each call begins a line, or comes after a name and ` = `. `driver.written("mlp_gpu")`,
# `driver.written("mlp_backward_cpu")` and `driver.written("head_backward_cpu")` are three modules
# to try, and their texts say where they come from. The first was written for a GPU on a machine
# without a GPU, and it has never run.
#
# <details><summary>How do I find the part that counts?</summary>
#
# Use `code.index` or `code.partition` with the beginning of its line. The text before that line
# defines kernels, so it contains their names, too.
# </details>
# <details><summary>How do I tell a call from a name?</summary>
#
# Remove the blanks at both ends of a line, and the part up to ` = `. If the line is a call, it now
# begins with the name, and a bracket follows. Comments begin with `#`.
# </details>

# %% solution="read_code"
def launches(code: str) -> list[str]:
    """Names of the kernels that `call` runs, in order, one name for each run."""
    ### BEGIN SOLUTION
    return [name.removesuffix(".run") for name in called(code) if re.match("(cpp|triton)_", name)]
    ### END SOLUTION


def library_calls(code: str) -> list[str]:
    """Names of the library functions that `call` calls, in order."""
    ### BEGIN SOLUTION
    return [name for name in called(code) if re.match(r"(extern_kernels|torch\.ops)\.", name)]
    ### END SOLUTION


def reused(code: str) -> int:
    """How many buffers get the memory of another buffer."""
    ### BEGIN SOLUTION
    lines = code.partition("def call(")[2].splitlines()
    return sum(line.endswith("# reuse") for line in lines)


def called(code):
    """The name that each line of `call` calls, for lines that call something."""
    body = code.partition("def call(")[2]
    found = (re.match(r"(?:\w+ = )?([\w.]+)\(", line.strip()) for line in body.splitlines())
    return [one[1] for one in found if one]
    ### END SOLUTION

# %%
gpu, cpu = driver.written("mlp_gpu"), driver.written("mlp_backward_cpu")
print(gpu[gpu.index("    def call(") : gpu.index("runner =")])
expect_equal("a kernel for a GPU", launches(gpu), ["triton_poi_fused_gelu_0"])
expect_equal(
    "two products of a library", library_calls(gpu), ["extern_kernels.mm", "extern_kernels.addmm"]
)
expect_equal("a kernel for a CPU", launches(cpu), ["cpp_fused_gelu_gelu_backward_0"])
expect_equal(
    "four products",
    library_calls(cpu),
    ["extern_kernels.mm", "extern_kernels.addmm", "extern_kernels.mm", "extern_kernels.mm"],
)
text = """cpp_fused_add_0 = async_compile.cpp_pybinding(['float*'], '''
    cpp_fused_add_0(in)  # and extern_kernels.mm(in)
    buf0 = buf9; del buf9  # reuse
''')
def call(args):
    triton_red_sum_1.run(buf1, buf2)
    cpp_fused_add_0(buf2, buf3)
    triton_red_sum_1.run(buf3, buf4)
    buf5 = extern_kernels.convolution(buf4, arg1_1)
    buf6 = reinterpret_tensor(buf5, (8,), (1,), 0); del buf5  # reuse
    buf7 = buf6; del buf6  # reuse
    del buf4
"""
expect_equal(
    "kernels, in order", launches(text), ["triton_red_sum_1", "cpp_fused_add_0", "triton_red_sum_1"]
)
expect_equal("a call of a library", library_calls(text), ["extern_kernels.convolution"])
expect_equal("two buffers", reused(text), 2)

# %% test="read_code" points=3
# Graded
check("read_code")
gpu, cpu = driver.written("mlp_gpu"), driver.written("mlp_backward_cpu")
expect_equal("one buffer each", [reused(gpu), reused(cpu)], [1, 1])
short = (
    "def call(args):\n    cpp_fused_add_0(buf0, buf1)\n    # cpp_fused_add_0(buf1) is done\n"
    "    buf2 = torch.ops.aten.sort.stable(buf1)\n"
)
expect_equal("a comment", launches(short), ["cpp_fused_add_0"])
expect_equal("an operator of PyTorch", library_calls(short), ["torch.ops.aten.sort.stable"])
head = driver.written("head_backward_cpu")
ours = "torch.ops.open_the_hood.softmax_backward.default"
expect_equal("an operator", library_calls(head), [ours, "extern_kernels.mm", "extern_kernels.mm"])
### BEGIN HIDDEN TESTS
verify("read_code", launches=launches, library_calls=library_calls, reused=reused)
### END HIDDEN TESTS

# %% [markdown]
# ## 9 · The LM head, compiled
#
# *Hard, 40 minutes, 4 points: one each for the values, for the gradients, for one graph, and for
# Inductor.*
# From the lesson: [Guards: what a graph believes](../../notebooks/06_compile.ipynb#cell-id=guards-what-a-graph-believes).
#
# Here everything comes together, on MiniGPT's head. Write `compiled_head(model, backend)`, which
# returns a function of hidden states and a temperature. This function, `head(x, temperature)`,
# returns probabilities: `model.lm_head` makes logits of `x`, these are divided by the temperature,
# and then the operator takes the softmax of the logits.
#
# - The softmax must be [phase   05](../../notebooks/05_custom_op.ipynb#cell-id=what-pytorch-asks-of-an-operator)'s operator,
#   `softmax` of the first cell, and the function must be compiled with `torch.compile` and the
#   given `backend`: `"inductor"`, or another.
# - `x` has the shape (..., width), the same in every call. The temperature is a positive float, a
#   new one in every call. Still there must be only one graph. It must have `x` as an input, and it
#   must contain the operator.
# - Gradients must flow to `x` and to the weight and bias of `model.lm_head`, that is, to the
#   model's own parameters and not to copies. When an optimizer changes the parameters in place, the
#   head must use the new numbers.
#
# Values and gradients must be the same as without a compiler, to 1e-5. The last point is for
# Inductor as the backend, with two rows of 64 numbers and 600 words. Inductor writes C++ and calls
# g++, which takes some seconds, so the check asks only for this one graph. For the graphs and their
# contents, the check relies on what your own process says.
#
# <details><summary>Why is there another graph for each temperature?</summary>
#
# By default, Dynamo guards a float argument: the first graph is for one number, and the second is
# for any number. It does not guard a number in a tensor.
# </details>
# <details><summary>Where do I turn the float into a tensor?</summary>
#
# Where the tracer does not see the float: in a function around the compiled function.
# </details>

# %% solution="compiled_head"
def compiled_head(model: MiniGPT, backend):
    """Return `head(x, temperature)`: probabilities, from one graph for all temperatures."""
    ### BEGIN SOLUTION
    @torch.compile(backend=backend)
    def probabilities(x, temperature):
        return softmax(model.lm_head(x) / temperature)

    def head(x, temperature):
        return probabilities(x, torch.tensor(temperature))

    return head
    ### END SOLUTION

# %%
x, g = (
    torch.tensor([[1.0, 0.0, -1.0, 2.0], [0.5, 1.0, 1.0, 0.0]]),
    torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]),
)
came = driver.run_head(compiled_head, 4, 3, 0, [(x, 1.0), (x, 2.0), (x, 0.5)], g)
expect_close(
    "at a temperature of 1",
    came["values"][0],
    [[0.5662, 0.3884, 0.0455], [0.1037, 0.7970, 0.0993]],
    atol=1e-4,
)
expect_close(
    "at 2", came["values"][1], [[0.4736, 0.3922, 0.1342], [0.2105, 0.5835, 0.2060]], atol=1e-4
)
expect_close("the bias's gradient", came["gradients"][0][2], [0.1630, -0.0581, -0.1049], atol=1e-4)
expect_equal("graphs", came["graphs"], 1)
expect_equal(
    "the hidden states go into it, and phase 05's operator is in it",
    [came["hidden"], came["operator"]],
    [True, True],
)

# %% test="compiled_head" points=4
# Graded
check("compiled_head")
x = torch.tensor([[1.0, 0.0, -1.0, 2.0], [0.5, 1.0, 1.0, 0.0]])
g = torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
came = driver.run_head(compiled_head, 4, 3, 0, [(x, 1.0), (x, 1.0)], g, trained=0.5)
deep = driver.run_head(
    compiled_head, 4, 3, 0, [(torch.stack([x, -x]).transpose(0, 1), 1.0)], g.expand(2, 2, 3)
)
expect_close(
    "a batch of two",
    deep["values"][0][:, 0],
    [[0.5662, 0.3884, 0.0455], [0.1037, 0.7970, 0.0993]],
    atol=1e-4,
)
alone = driver.run_head(compiled_head, 4, 3, 0, [(x[0], 0.125)], g[0])
expect_close("a row alone, at 0.125", alone["values"][0], [0.9533, 0.0467, 0.0], atol=1e-4)
expect_close(
    "after a step of an optimizer",
    came["values"][1],
    [[0.6286, 0.3571, 0.0143], [0.0430, 0.9167, 0.0403]],
    atol=1e-4,
)
### BEGIN HIDDEN TESTS
verify("compiled_head", compiled_head)
### END HIDDEN TESTS

# %% [markdown]
# ## 10 · A decode step that compiles once
#
# *Further, hard, 40 minutes, 4 points: one each for small models, for the trained MiniGPT, for one
# graph, and for one token a step. For the last two, your own process says how many graphs there
# are, what goes into them, how often they run, and how much they compute.*
# From the lesson: [A step that compiles once](../../notebooks/06_compile.ipynb#cell-id=a-step-that-compiles-once).
#
# To write a word, `complete` of `utils.minigpt` reads the whole text again, and the text grows with
# each word. So a compiler always gets a new size. Here you write a decoder that is compiled at the
# first token, and never again.
#
# Write `compiled_writer(model, backend)`, which returns a function `write(prompt)`. `model` is a
# MiniGPT of any sizes (`model.config` has them), in eval mode. `prompt` is a list of ids, at least
# one, and fewer than `context`. `write(prompt)` must return the same list as `complete([prompt],
# model)[0]`: the new ids as ints, the likeliest each time, up to and including the first new
# `<eos>`, whose id is 2, or until the context is full. It must leave `prompt` as it was. `write` is
# called for one prompt after the other, and each prompt must get what it would get alone.
#
# - `write` must work in *steps*. A step reads one token. Each token of the prompt goes through one
#   step, in order, and so does each new word. Only the last new word goes through none, because
#   nobody needs what comes after it.
# - A step must be compiled with `torch.compile` and the given `backend`. There must be only one
#   graph, for all steps of all prompts. It must run once in a step, and it must contain all of the
#   model's linear layers.
# - All inputs of the graph must be tensors, and all their sizes must be fixed. So the token and its
#   position are tensors. And the cache, which keeps keys and values for later steps, has its full
#   size from the beginning.
# - A step must compute keys and values only for its own token. Those of earlier tokens must come
#   from the cache.
# - A place of the cache that was not yet written for this prompt must have no effect, whatever is
#   in it. While the driver runs, memory from `torch.empty` contains NaN.
#
# Nobody needs gradients. The cache may have any form, and the check compares only words, not
# logits. No two words are almost equally likely.
#
# `decoding.run_writer(compiled_writer, prompts)` lets the trained MiniGPT write after each of the
# prompts, and says what the graphs were like. With `sizes` and a `seed`, it takes a small model
# with random weights; its docstring says more.
#
# <details><summary>What is in a step?</summary>
#
# The same as in the model's `forward`, for one token: embeddings, blocks, final norm, LM head. You
# can call all modules of the model, except the attention. Take that apart into `query`, `key`,
# `value` and `output`. `index_copy_` writes to a place that a tensor names. And
# `torch.arange(context) <= position` says which places may be seen.
# </details>
# <details><summary>There are two graphs</summary>
#
# Does a Python number go in, or does something change between the first call and the second? The
# parameters require gradients, so a key requires one, too, and then so does the cache into which it
# was written. Without gradients that doesn't happen. `TORCH_LOGS=recompiles` prints the reason.
# </details>

# %% solution="compiled_writer"
def compiled_writer(model: MiniGPT, backend):
    """Return `write(prompt)`: the words of `complete`, from one graph for all tokens."""
    ### BEGIN SOLUTION
    config = model.config
    heads, context = config.n_heads, config.context
    places = torch.arange(context)

    @torch.compile(backend=backend)
    def step(token, position, cache):
        x = model.token_embedding(token) + model.position_embedding(position)
        for block, (keys, values) in zip(model.blocks, cache):
            attention, normed = block.attention, block.norm_1(x)
            query = attention.query(normed).view(heads, 1, -1)
            keys.index_copy_(1, position, attention.key(normed).view(heads, 1, -1))
            values.index_copy_(1, position, attention.value(normed).view(heads, 1, -1))
            scores = query @ keys.transpose(1, 2) / query.shape[-1] ** 0.5
            weights = scores.masked_fill(places > position, float("-inf")).softmax(-1)
            x = x + attention.output((weights @ values).view(1, -1))
            x = x + block.mlp(block.norm_2(x))
        return model.lm_head(model.final_norm(x)).argmax(-1)

    @torch.no_grad()
    def write(prompt):
        shape = heads, context, config.d_model // heads
        cache = [(torch.zeros(shape), torch.zeros(shape)) for _ in model.blocks]
        ids = list(prompt)
        for place in range(context - 1):
            word = step(torch.tensor([ids[place]]), torch.tensor([place]), cache)
            if place + 1 == len(ids):
                ids.append(int(word))
                if ids[-1] == 2:
                    break
        return ids[len(prompt) :]

    return write
    ### END SOLUTION

# %%
from utils.drivers import decoding
from utils.minigpt import complete, load_minigpt, load_tokenizer

tokenizer = load_tokenizer()
starts = ("<bos> <es> hablar <past> yo", "<bos> <en> go <future> she", "<bos> <es> ser", "<bos>")
prompts = [tokenizer.encode(start) for start in starts]
came = decoding.run_writer(compiled_writer, prompts)
for start, words in zip(starts, came["words"]):
    print(start, "…", tokenizer.decode(words))
expected = complete(prompts, load_minigpt())
expect_equal("the words of `complete`", came["words"], expected)
expect_equal("graphs", came["graphs"], 1)
expect_equal("tensors of fixed sizes go in", came["fixed"], True)
expect_equal("all layers are in it", came["whole"], True)
read = sum(len(prompt) + len(words) - 1 for prompt, words in zip(prompts, expected))
expect_equal("one run for each token that is read", came["steps"], read)
expect_equal("for one token at a time", came["single"], True)

# %% test="compiled_writer" points=4
# Graded
check("compiled_writer")
from utils.drivers import decoding
from utils.minigpt import complete

small = decoding.small_minigpt((11, 8, 2, 2, 12, 10), seed=9)
prompts = [[3, 2, 5, 7, 1, 4, 0, 6, 8], [4], [9, 2]]
came = decoding.run_writer(compiled_writer, prompts, (11, 8, 2, 2, 12, 10), seed=9)
expect_equal("a small model", came["words"], complete(prompts, small))
### BEGIN HIDDEN TESTS
verify("compiled_writer", compiled_writer)
### END HIDDEN TESTS

# %% [markdown]
# ## 11 · A program for every length
#
# *Further, medium, 35 minutes, 4 points: one each for `pooled`, `running_mean`, `placed` and
# MiniGPT. For `placed`, your own process says which range the program has.*
# From the lesson: [One graph for every length](../../notebooks/06_compile.ipynb#cell-id=one-graph-for-every-length).
#
# A colleague needs three functions and MiniGPT on a machine that has no Python. So `torch.export`
# must make a graph of each, once, for inputs of every length. Here are her functions. The cells
# below define them, and print what `torch.export` says.

# %% given="eager"
from utils.drivers import exporting


def eager_pooled(x: torch.Tensor, kept: torch.Tensor) -> torch.Tensor:
    """The mean of the rows of x that `kept` marks. If it marks none, the mean of all rows."""
    if not kept.any():
        return x.mean(0)
    return x[kept].mean(0)


def eager_running_mean(x: torch.Tensor) -> torch.Tensor:
    """Row t of the result is the mean of the rows 0 to t of x."""
    return torch.stack([x[: t + 1].mean(0) for t in range(len(x))])


def eager_placed(x: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
    """x, with row t of the table added to its row t."""
    return x + table[torch.arange(x.shape[0])]


# %%
x, kept = torch.tensor([[1.0, 4.0], [3.0, 0.0], [5.0, -1.0]]), torch.tensor([True, False, True])
table = torch.tensor([[0.5, 0.0], [0.25, 1.0], [0.0, 2.0], [2.0, 0.0]])
for function, example in (
    (eager_pooled, [x, kept]),
    (eager_running_mean, [x]),
    (eager_placed, [x, table]),
):
    came = exporting.exported(function, example)
    print(f"{function.__name__:20}", came["complaint"] or f"longest: {came['longest']}")

# %% [markdown]
# Write `pooled`, `running_mean` and `placed`, which return what her functions return, but can be
# exported. And write `export_minigpt(model)`.
#
# - Of each of your three functions, `torch.export.export` must make a program for any number of
#   rows from 2 on: the driver marks this size as `Dim.DYNAMIC`. The program must give what her
#   function gives, to 1e-5 and in the same dtype, whatever the example contained.
# - `x` is a matrix of float32 or float64. `kept` has a bool for each row of `x`. `table` has the
#   dtype of `x`, as many columns, and at least three rows. In `pooled`, rows that don't count may
#   contain anything, infinity and NaN included. All other numbers are finite.
# - In `placed`, `x` may not have more rows than the table. Her function can be exported, but its
#   program has no limit. So it takes an `x` that is too long, and fails in the middle of its work.
#   Your program must have the limit in its `range_constraints`: they must allow as many rows as
#   the table has, and no more.
# - `export_minigpt(model)` must return the `ExportedProgram` of a MiniGPT in eval mode, of any sizes
#   (`model.config` has them, and the context is at least 4). The program gets tokens of the shape
#   (B, T) and returns the model's logits. B is any number from 2 on, and T is any number from 2 up
#   to the context. You choose the example and the `dynamic_shapes`. If your example passes the
#   tokens by name, the check does so, too.
#
# `exporting.exported(function, example, arguments, ...)` exports a function as the check does. It
# returns the program's values for each list of arguments, the main sentence of torch's complaint,
# and the longest `x` that the range allows. `exporting.exported_minigpt(export_minigpt, [tokens])`
# does the same with the trained MiniGPT.
#
# <details><summary>What may I do with the number of rows?</summary>
#
# `x.shape[0]` is a symbol while torch traces the function. You can compute with it, slice with it,
# and give it to most functions of torch. If Python needs an int, the symbol becomes a constant.
# That happens in `len(x)`, `int(...)` and `range(...)`.
# </details>
# <details><summary>How does a program get its limit?</summary>
#
# From a simple comparison of two sizes that must be true for the program to go on, such as
# `a <= b`. `MiniGPT.hidden` has such a comparison. So has every operation that takes only certain
# sizes. But from the `min` or `max` of sizes, torch derives no range.
# </details>

# %% solution="exportable"
def pooled(x: torch.Tensor, kept: torch.Tensor) -> torch.Tensor:
    """`eager_pooled` for `torch.export`."""
    ### BEGIN SOLUTION
    counts = (kept | ~kept.any())[:, None]
    return torch.where(counts, x, 0.0).sum(0) / counts.sum()
    ### END SOLUTION


def running_mean(x: torch.Tensor) -> torch.Tensor:
    """`eager_running_mean` for `torch.export`."""
    ### BEGIN SOLUTION
    return x.cumsum(0) / torch.arange(1, x.shape[0] + 1)[:, None]
    ### END SOLUTION


def placed(x: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
    """`eager_placed` for `torch.export`, with the limit in the program's range."""
    ### BEGIN SOLUTION
    return x + table[: x.shape[0]]
    ### END SOLUTION


def export_minigpt(model: MiniGPT) -> torch.export.ExportedProgram:
    """The program of a MiniGPT, for tokens of any shape (B, T) up to the model's context."""
    ### BEGIN SOLUTION
    example = torch.zeros(2, 2, dtype=torch.int64)
    sizes = {0: torch.export.Dim.DYNAMIC, 1: torch.export.Dim.DYNAMIC}
    return torch.export.export(model, (example,), dynamic_shapes=(sizes,))
    ### END SOLUTION

# %%
x, kept = torch.tensor([[1.0, 4.0], [3.0, 0.0], [5.0, -1.0]]), torch.tensor([True, False, True])
more, none = torch.arange(10.0).reshape(5, 2), torch.zeros(5, dtype=torch.bool)
nan = torch.where(kept[:, None], x, torch.nan)
came = exporting.exported(pooled, [x, kept], [x, kept], [more, none], [nan, kept])
expect_equal("what torch says of pooled", came["complaint"], None)
means = [eager_pooled(x, kept), eager_pooled(more, none), eager_pooled(nan, kept)]
expect_close("pooled, and with NaN in a row that doesn't count", came["values"], means)
came = exporting.exported(running_mean, [x], [x], [more])
expect_equal("what torch says of running_mean", came["complaint"], None)
expect_close("running_mean", came["values"], [eager_running_mean(x), eager_running_mean(more)])
table = torch.tensor([[0.5, 0.0], [0.25, 1.0], [0.0, 2.0], [2.0, 0.0]])
came = exporting.exported(placed, [x, table], [x, table], [more[:4], table], [more, table])
expect_equal("what torch says of placed", came["complaint"], None)
expect_equal("the longest x", came["longest"], 4)
expect_equal("an x that is too long is refused", came["values"].pop(), None)
expect_close("placed", came["values"], [eager_placed(x, table), eager_placed(more[:4], table)])

# %% test="exportable" points=4
# Graded
check("exportable")
from utils.drivers import exporting
from utils.minigpt import load_minigpt

model = load_minigpt()
texts = [torch.arange(count * length).reshape(count, length) for count, length in ((3, 5), (2, 32))]
came = exporting.exported_minigpt(export_minigpt, [*texts, torch.zeros(2, 33, dtype=torch.long)])
expect_equal("what torch says of MiniGPT", came["complaint"], None)
expect_equal("a text that is too long is refused", came["values"].pop(), None)
expect_close("MiniGPT", came["values"], [model(tokens).detach() for tokens in texts], atol=1e-4)
### BEGIN HIDDEN TESTS
verify("exportable", pooled=pooled, running_mean=running_mean, placed=placed, export_minigpt=export_minigpt)
### END HIDDEN TESTS

# %% [markdown] task="why_apart" points=3
# ## 12 · Why did this not fuse?
#
# *10 minutes, 3 points, read by a person.*
#
# Inductor was given this function, with 64 rows and 600 columns:
#
# ```python
# def f(x, w):                         # x: (64, 600), w: (600, 600)
#     y = torch.relu(x @ w) + 1
#     return torch.exp(y - y.mean())
# ```
#
# For a GPU it wrote a call of `extern_kernels.mm` and three kernels. The first kernel reads the
# product and writes 5 numbers. The second reads these 5 numbers and writes one number. The third
# reads the product again, and the one number, and writes the result. With `y.mean(0)`, the mean of
# each column, in place of `y.mean()`, Inductor wrote the call and a single kernel. Explain this, in
# five to eight sentences, to somebody who expected a single kernel both times. What keeps each of
# the four pieces apart from the next? Why is a single kernel enough for the columns? Where and how
# often are the `relu` and the `+ 1` computed, and why is that no waste?
#
# === BEGIN MARK SCHEME ===
#
# One point each:
#
# - **What keeps them apart.** A library computes the product, and Inductor does not write the
#   library's inside (without max-autotune), so the product goes to memory. The mean needs every
#   number, and the programs of a kernel do not wait for one another. Only the end of a kernel
#   guarantees that all have written. So five programs sum a part each, a second kernel adds the
#   five sums, and only a third kernel can subtract the mean.
# - **The columns.** One program holds whole columns, because the 64 numbers of each fit into
#   registers (a persistent reduction). So it knows the means of its columns, and then subtracts and
#   takes exp without writing anything in between.
# - **relu and + 1.** They are pointwise, and they are computed in registers wherever the product is
#   read: in the loop of the sum, and once more in the last kernel. y is never stored. It is cheaper
#   to compute y twice than to write and read 64 × 600 numbers, because memory limits such kernels.
#
# === END MARK SCHEME ===

# %% [markdown]
# *Your answer goes here.*

# %% [markdown]
# ## Done
#
# Use *Kernel → Restart Kernel and Run All Cells* once more, so that you know your notebook works
# from top to bottom, then save it.
