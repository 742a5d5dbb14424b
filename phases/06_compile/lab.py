# ---
# jupyter:
#   kernelspec: {display_name: Python 3, language: python, name: python3}
#   open_the_hood: {title: "Lab 06: torch.compile", points: 12, cell_seconds: 180, compile: true}
# ---

# %% [markdown]
# # Lab 06: torch.compile
#
# Eight exercises and one question, 37 points, about three hours. They follow
# [lesson 06](../../notebooks/06_compile.ipynb). You take apart the three machines behind
# `torch.compile`: the tracer that makes a graph of a function, the optimizer that adds a backward
# and decides what is saved, and the emitter that fuses and writes code.
#
# A backend does its work while other code is compiled, so yours is tried by a *driver*, a function of
# `utils/drivers/compiling.py`. The graded cell uses the same drivers with functions, shapes and
# numbers that you have not seen. How many graphs there were, your own process is asked; the values
# that come out count just as much.
#
# Parts of an exercise earn their points separately, and no exercise needs the answer to another.
# Stuck? Each holds two hints, folded away. Run the next cell, then start.

# %% given="setup"
import operator
import re

import torch
from torch.nn import functional as F

from utils.drivers import compiling as driver
from utils.expect import expect_close, expect_equal
from utils.minigpt import MiniGPT, MiniGPTConfig
from utils.softmax import softmax

# %% [markdown]
# ## 1 · What a backend gets
#
# *Easy, 20 minutes, 3 points: one for the operations, one for inputs and outputs, one for several
# graphs.*
#
# A backend is a function of a graph, `gm`, a `torch.fx.GraphModule`, and of a list of example inputs.
# It returns something that can be called in the graph's place. Write `reporting_backend(report)`,
# which returns a backend. Each time that Dynamo hands it a graph, the backend appends one dictionary
# to the list `report`:
#
# - `"ops"`: for each operation of the graph, in order, a tuple of its name and the shape of its
#   result. Operations are the nodes that call a function, whose name is its `__name__`, or a method,
#   which has its name for a target. Where the result is not a tensor, the shape is None;
# - `"inputs"`: the shapes of what the graph takes, in order;
# - `"outputs"`: how many values the graph returns.
#
# Shapes are tuples, and all sizes are fixed. What the backend returns does what the graph says, no
# more and no less: a compiled function gives the same as before.
#
# <details><summary>What is in a graph?</summary>
#
# `gm.graph.nodes`, in order; `gm.graph.print_tabular()` shows them. A node has `op`, `target`, `args`
# and `users`. Dynamo notes in `node.meta["example_value"]` what it knows of a node's value, a fake
# tensor.
# </details>
# <details><summary>How many values does it return?</summary>
#
# The last node is the output. Its `args` hold one thing, a tuple of what is returned.
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
x, weight = torch.tensor([[1.0, -2.0, 3.0], [0.0, 4.0, -1.0]]), torch.tensor([[1.0, 1.0, 0.0], [0.0, 0.5, 2.0]])
came = driver.report(reporting_backend, [("linear",), ("relu",), ("scale", 2.0), ("relu",)], x, [weight])
expect_equal("one graph", len(came["report"]), 1)
expect_equal("its operations", came["report"][0]["ops"], [("linear", (2, 2)), ("relu", (2, 2)), ("mul", (2, 2)), ("relu", (2, 2))])
expect_equal("its inputs", came["report"][0]["inputs"], [(2, 3), (2, 2 + 1)])
expect_equal("its outputs", came["report"][0]["outputs"], 1)
expect_equal("what the function returns", came["results"], [torch.tensor([[0.0, 10.0], [8.0, 0.0]])])
came = driver.report(reporting_backend, [("neg",), ("first", 2), ("keep",), ("sum", 0)], x)
expect_equal("methods, and what is no tensor", came["report"][0]["ops"], [("neg", (2, 3)), ("chunk", None), ("getitem", (1, 3)), ("sum", (3,))])
expect_equal("two outputs", came["report"][0]["outputs"], 2)

# %% test="reporting_backend" points=3
# Graded
came = driver.report(reporting_backend, [("exp",), ("break",), ("relu",)], x)
expect_equal("two graphs", [graph["ops"] for graph in came["report"]], [[("exp", (2, 3))], [("relu", (2, 3))]])
### BEGIN HIDDEN TESTS
verify("reporting_backend", reporting_backend)
### END HIDDEN TESTS

# %% [markdown]
# ## 2 · How many graphs?
#
# *Medium, 30 minutes, 4 points: one each for dtypes and dimensions, for sizes, for numbers, and for
# the limit.*
#
# A function `f(x, k)`, in which `x * k` is computed, is compiled and called several times. Predict how
# many graphs there are after each call. `count_graphs(calls)` gets a list of calls, each a tuple of
# the shape of `x`, its dtype, and `k`; it returns a list of as many numbers. In one list `k` is an int
# throughout, or a float throughout. All tensors are contiguous, and nothing else changes.
#
# What you need of the rules of torch 2.13:
#
# - Each graph has guards: the dtype of `x`, how many dimensions it has, each of its sizes, and `k`. A
#   size, or `k`, is either one exact number, or it is open. A call that fits a graph that is there
#   makes no other. One that fits none makes one, until there are eight: from then on it runs
#   without.
# - When a graph is made, a size is exact, unless it was another number when an earlier graph was made:
#   then it is open. The same holds of `k`. Once `x` had another number of dimensions than before, all
#   of its sizes are open from then on.
# - An open size is any size from 2 up. A size of 0 or 1 is exact in the graph that is made for it, even
#   where it would be open. An open `k` is any number, 0 and 1 among them.
#
# The function calculates. It compiles nothing; you may, in a cell of your own:
# `driver.count_as_torch_does(calls)` asks torch.
#
# <details><summary>What do I keep?</summary>
#
# Two things: a list of the graphs so far, each with its guards; and, over all of them, what is already
# known to change.
# </details>
# <details><summary>When does something open?</summary>
#
# Only when a graph is made, so look for a fitting one first. What was open stays open for the graphs
# that are made later; the graphs that are there keep their guards.
# </details>

# %% solution="count_graphs"
def count_graphs(calls: list[tuple[tuple[int, ...], torch.dtype, float]]) -> list[int]:
    """How many graphs there are after each call of `f(x, k)`, given x's shape and dtype, and k."""
    ### BEGIN SOLUTION
    graphs, found = [], []
    first, changed, ranks = {}, set(), set()
    for shape, dtype, k in calls:
        values = {**dict(enumerate(shape)), "k": k}

        def fits(graph):
            known, guards = graph
            return known == (dtype, len(shape)) and all(
                value == guards[name] or guards[name] is None and (name == "k" or value > 1)
                for name, value in values.items()
            )

        if len(graphs) < 8 and not any(fits(graph) for graph in graphs):
            ranks.add(len(shape))
            guards = {}
            for name, value in values.items():
                if first.setdefault(name, value) != value:
                    changed.add(name)
                still_open = name in changed or (name != "k" and len(ranks) > 1)
                guards[name] = None if still_open and (name == "k" or value > 1) else value
            graphs.append(((dtype, len(shape)), guards))
        found.append(len(graphs))
    return found
    ### END SOLUTION

# %%
f32, f64 = torch.float32, torch.float64
expect_equal("two dtypes", count_graphs([((3,), f32, 2), ((3,), f64, 2), ((3,), f32, 2)]), [1, 2, 2])
expect_equal("sizes", count_graphs([((3,), f32, 2), ((4,), f32, 2), ((5,), f32, 2), ((1,), f32, 2)]), [1, 2, 2, 3])
expect_equal("numbers", count_graphs([((3,), f32, 2), ((3,), f32, 3), ((3,), f32, 1), ((3,), f32, 0)]), [1, 2, 2, 2])
dimensions = [((2, 3), f32, 2), ((3,), f32, 2), ((4,), f32, 2), ((2, 3), f32, 2)]
expect_equal("dimensions", count_graphs(dimensions), [1, 2, 2, 2])
expect_equal("torch agrees", driver.count_as_torch_does(dimensions), [1, 2, 2, 2])

# %% test="count_graphs" points=4
# Graded
expect_equal("ten numbers of dimensions", count_graphs([((2,) * n, f32, 2) for n in range(10)]), [1, 2, 3, 4, 5, 6, 7, 8, 8, 8])
### BEGIN HIDDEN TESTS
verify("count_graphs", count_graphs)
### END HIDDEN TESTS

# %% [markdown]
# ## 3 · One graph each
#
# *Medium, 35 minutes, 5 points: one for the gate, two for the scale, two for the rows.*
#
# Three functions, as colleagues wrote them. Each works, and Dynamo can't follow it to its end: the
# cell below says how many graphs it makes of each.

# %% given="broken"
def broken_gate(x: torch.Tensor) -> torch.Tensor:
    """Twice x where the sum of all of x is positive, otherwise half of x."""
    if x.sum() > 0:
        return 2 * x
    return x / 2


def broken_scale(x: torch.Tensor) -> torch.Tensor:
    """x, divided by the largest of its absolute values; nothing but zeros stay zeros."""
    largest = x.abs().max().item()
    if largest == 0:
        print("nothing to scale")
        return 1 * x
    return x / largest


def broken_rows(x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    """The sum of each row's first `lengths[i]` numbers; what lies behind them is of no concern."""
    sums = []
    for row, length in zip(x, lengths.tolist()):
        sums.append(row[:length].sum())
    return torch.stack(sums)


# %%
x, negative = torch.tensor([[3.0, -1.0], [0.5, 2.0]]), torch.tensor([[-3.0, 1.0], [0.5, -2.0]])
print("gate ", driver.compiled(broken_gate, [x], [negative])["graphs"], "graphs")
print("scale", driver.compiled(broken_scale, [x], [0 * x])["graphs"], "graphs")
print("rows ", driver.compiled(broken_rows, [x, torch.tensor([1, 2])], [x, torch.tensor([2, 0])])["graphs"], "graphs")

# %% [markdown]
# Mend them as `gate(x)`, `scale(x)` and `row_sums(x, lengths)`. Compiled without `fullgraph`, each is
# one graph, and stays one when it is called again with other numbers of the same shape. It gives what
# the colleague's function gives, and the gradient of `x` is the one that the colleague's function
# gives, too. That holds for any numbers, so on both sides of each branch. Nothing needs to be printed.
#
# `x` is of float32 or float64, with at least one number. In `gate` and `scale` it has any shape, in
# `row_sums` it is a matrix,
# and `lengths` has a whole number for each row, from 0 to the number of columns. What lies behind a
# row's length may be anything, infinity and NaN included.
#
# `driver.compiled(function, [arguments], ...)` says values, gradients and the number of graphs.
# Whether `fullgraph=True` raises is no test: with it, Dynamo looks away from some breaks, and
# `.item()` is one of them.
#
# <details><summary>How do I write a branch that is data?</summary>
#
# Compute both sides, and let `torch.where` take one. What decides may be a tensor of no dimensions. A
# row's length decides, too: of each column, whether it counts.
# </details>
# <details><summary>The values are right, and the gradients are not</summary>
#
# A number that was fetched with `.item()` has no gradient, so the colleague's division takes it for a
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
came = driver.compiled(gate, [x], [negative])
expect_equal("gate", came["values"], [broken_gate(x), broken_gate(negative)])
expect_equal("its gradients", came["gradients"], [torch.full((2, 2), 2.0), torch.full((2, 2), 0.5)])
expect_equal("graphs of gate", came["graphs"], 1)
came = driver.compiled(scale, [x], [0 * x])
expect_equal("scale", came["values"], [x / 3, 0 * x])
expect_close("its gradients", came["gradients"], [torch.full((2, 2), 1 / 3), torch.ones(2, 2)])
expect_equal("graphs of scale", came["graphs"], 1)

# %% test="mended" points=5
# Graded
padded = torch.tensor([[1.0, 2.0, float("nan")], [4.0, 5.0, 6.0]])
came = driver.compiled(row_sums, [padded, torch.tensor([2, 0])], [padded, torch.tensor([1, 3])])
expect_equal("row_sums", came["values"], [torch.tensor([3.0, 0.0]), torch.tensor([1.0, 15.0])])
expect_equal("graphs of row_sums", came["graphs"], 1)
### BEGIN HIDDEN TESTS
verify("mended", gate=gate, scale=scale, row_sums=row_sums)
### END HIDDEN TESTS
