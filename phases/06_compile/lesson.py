# ---
# jupyter:
#   kernelspec: {display_name: Python 3, language: python, name: python3}
#   open_the_hood: {title: "torch.compile"}
# ---

# %% [markdown]
# # torch.compile
#
# One line, and the same Python runs faster. Between that line and the machine there are a tracer, an optimizer and an emitter, and each of them hands the next a thing that you can take into your hands: a graph, two graphs, and a text in C++. This lesson opens all three on functions of yours.
#
# It takes about two hours. You need [phase 02](02_autograd.ipynb#cell-id=a-layer-only-has-to-know-one-product)'s vector-Jacobian products, [phase 04](04_dispatcher.ipynb#cell-id=a-call-is-a-look-up)'s operators, and [phase 05](05_custom_op.ipynb#cell-id=one-program-one-row)'s row kernels. Where a paragraph begins with **Predict**, settle on an answer before you look below it. Nothing here is graded, and everything here is used in the lab.
#
# A C++ compiler is needed, and Python's header `Python.h`, for `torch.compile` writes C++. The last row of [lesson 00](00_hello.ipynb#cell-id=which-python-which-pytorch-which-device)'s picture shows whether both are there; where one is missing, a cell that needs it ends with one line, which has the command that installs it. No GPU is needed: what is written for one can be written for one that is only described, and how long it takes on a real one, an H100, was recorded. (To write it takes Triton, which has no build for macOS: two sections below can only be read there.)

# %%
import contextlib
import dis
import inspect
import random
import textwrap
import time
import warnings

import torch
from torch import nn
from torch.nn import functional as F

from hood.learner.contents import PHASES
from utils.instruments.compiling import captured, kept, listening, loops, replay, split, written
from utils.minigpt import load_minigpt
from utils.notebook.drills import choice, number, true_false
from utils.views import course_path, fusion_map, graph_rewrite, guard_counter, saved_bytes

torch.manual_seed(0)
EPS = 1e-6

# %%
@contextlib.contextmanager
def one_thread():
    """Compute on one thread: short calls are timed more steadily so."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)

# %% [markdown]
# ## Where we are

# %%
course_path(PHASES, here=6)

# %% [markdown]
# In [phase 05](05_custom_op.ipynb#cell-id=one-pass-or-three) you fused a row by hand: one kernel where there had been five. Now a compiler does it, and the question becomes when it does, when it doesn't, and who tells you.
#
# There is a history to it. Theano and the first TensorFlow had you *describe* a computation and ran numbers through the description afterwards: a whole graph to optimise, and no way to print a tensor in the middle, or to take a Python `if`. PyTorch runs each line as it stands, and autograd's graph is written down in passing and thrown away after the backward ([phase 02](02_autograd.ipynb#cell-id=a-graph-made-anew-each-time)). That is *define by run*, and it is why you could follow everything so far with `print`. This phase wants both: the program stays Python, while something watches it run, and writes down a graph and a list of what it took for granted.

# %% [markdown]
# ## Resumen en español
#
# `torch.compile` son tres máquinas en fila. **Dynamo** sigue el bytecode de Python y saca un grafo, con *guards*: lo que el grafo supone y se comprueba en cada llamada. Si un guard falla, compila otra vez; a la octava versión se rinde, y casi en silencio.
# Lo que no entiende rompe el grafo en dos. El único testigo que lo ve siempre es el registro (`TORCH_LOGS=graph_breaks`).
# **AOTAutograd** pone la ida y la vuelta en un solo grafo, quita las escrituras in situ y decide qué guardar y qué calcular otra vez.
# **Inductor** junta operaciones en bucles y escribe C++ (o Triton). El tiempo es de los bytes: lo que no se escribe en memoria no se paga.
# Compilar cuesta segundos: conviene cuando se llama muchas veces con las mismas formas.

# %% [markdown]
# ## The question
#
# MiniGPT writes word by word. A colleague lets it begin boldly and end carefully: a *temperature* divides the logits, and cools down with every word. The module counts the words itself.

# %%
START = 2 + random.random() / 100  # new in each run: nothing that was compiled before will do


class CoolingHead(nn.Module):
    """Next-word probabilities from a hidden state (N, 64), sharper at every call."""

    def __init__(self, head):
        super().__init__()
        self.head = head
        self.words = 0

    def forward(self, hidden):
        self.words += 1
        temperature = 0.5 + START / self.words
        return torch.softmax(self.head(hidden) / temperature, dim=-1)


model = load_minigpt()
hidden = torch.randn(64, 64)

# %% [markdown]
# She has read that `torch.compile` takes a moment at the first call and is fast from then on. So she adds the one line, and takes the time of twelve words.
#
# **Predict.** The first call compiles. What will the other eleven take, compared with the same module uncompiled? (The cell runs for a quarter of a minute, or for a whole one on a slow machine.)

# %%
def milliseconds(head, words=12):
    """How long each of so many calls takes, and what they return."""
    times, values = [], []
    for _ in range(words):
        begin = time.perf_counter()
        values.append(head(hidden))
        times.append(1000 * (time.perf_counter() - begin))
    return times, values

# %%
torch._dynamo.reset()  # an empty compiler, however often this cell is run
with torch.no_grad(), one_thread(), listening() as log:
    eager, expected = milliseconds(CoolingHead(model.lm_head))
    compiled, values = milliseconds(torch.compile(CoolingHead(model.lm_head)))
for k, (plain, fast) in enumerate(zip(eager, compiled), start=1):
    print(f"word {k:2}: {plain:8.2f} ms plain, {fast:10.2f} ms compiled")

# %% [markdown]
# Not the first call compiles, but the first eight, each anew: seconds for a word that takes a fraction of a millisecond. From the ninth on nothing is compiled any more, and it is no faster than before she added the line; if anything slower, for eight compiled versions are asked first whether they fit. Are the values at least right?

# %%
print("all twelve right:", all(torch.allclose(a, b, atol=1e-6) for a, b in zip(values, expected)))

# %% [markdown]
# Right, every one. No error, no wrong digit: a test of values would pass. In a loop of ten thousand words the lost seconds disappear in the average, and what is left is a module that is called compiled, and isn't.
#
# > **What does the compiler take from my function, what does it believe when it uses it again, what does it write for it, and who tells me when it has stopped?**

# %% [markdown]
# ## Three machines in a row
#
# We take RMS norm, the function that you know from [phase 05](05_custom_op.ipynb#cell-id=one-pass-or-three), because it fits into two lines.

# %%
def rms(x):
    mean = x.pow(2).mean(-1, keepdim=True)
    return x * torch.rsqrt(mean + EPS)


x = torch.randn(2048, 600)

# %% [markdown]
# The first machine is **Dynamo**. It sits in Python's interpreter, at the place where a function's *bytecode* is about to be run. It does not run it: it follows it, instruction by instruction, with tensors that have a shape and no numbers, and writes down each operation on a tensor. Then it hands Python another bytecode in place of yours.
#
# The next cell uses two helpers of this course: `captured(f, x)` calls `f(x)` and returns the graphs that Dynamo made, and `kept(f)` returns what it has kept of them, for each the new bytecode and what it is tied to.
#
# **Predict.** Of the five operations in `rms`, how many are called by name in the new bytecode?

# %%
CLOCKS = ("record_", "__import", "__builtins", "tmp", "graph_out")  # the compiler's own affairs


def names(code):
    """What a function's bytecode loads by name."""
    steps = [step for step in dis.get_instructions(code) if step.opname.startswith("LOAD_")]
    found = [step.argval for step in steps if isinstance(step.argval, str)]
    return [name.split("_at_")[0][:15] for name in found if not name.startswith(CLOCKS)]


graph = captured(rms, x)[0]
print("yours:", *names(rms.__code__))
print("new:  ", *names(kept(rms)[0].code))

# %% [markdown]
# None. What is left is a call of `__compiled_fn_…` with x. (Left out here are names with which it keeps time and unpacks results.) What happens in there was decided once; Python, with its look-ups of `pow` and `rsqrt`, has left.
#
# What Dynamo hands on is a graph, in PyTorch's own words: functions and methods, as you wrote them.

# %%
print(graph.graph)

# %% [markdown]
# The second machine is **AOTAutograd**: *ahead of time*. It sends fake tensors through Dynamo's graph, through autograd and through the dispatcher of [phase 04](04_dispatcher.ipynb#cell-id=listening-in), and listens at the bottom. What it hears are operators, `aten`, and if a gradient will be wanted it hears the backward as well, before the forward has run once. So it hands on two graphs.

# %%
parts = split(rms, x.clone().requires_grad_())
for name, part in (("forward", parts.forward), ("backward", parts.backward)):
    print(f"{name:9}", *(node.name for node in part.nodes if node.op == "call_function"))

# %% [markdown]
# The third is **Inductor**. It turns the operators into loops, puts together what can share one, and writes a text: C++ for this machine, Triton for a GPU. (`split` and `written` are this course's as well. Like `captured`, each runs the compiler as far as one of the three and hands you what it made.)

# %%
text = written(rms, x)[0].code
print(len(text.splitlines()), "lines, and in them one kernel:")
print(*(line.split()[0] for line in text.splitlines() if "async_compile.cpp" in line))

# %% [markdown]
# Its name says what is in it: all five operations. We read it below, line by line. A *backend* in PyTorch's sense is whoever gets Dynamo's graph: `"inductor"` means the last two machines, `"aot_eager"` the second alone, `"eager"` neither. And any function may be a backend.

# %% tags=["hide-input"]
choice(
    "A function is compiled with `backend=\"eager\"`. What of the compiler's work is done?",
    {
        "none: it is plain eager mode": "Dynamo still follows the bytecode, makes a graph and guards it. Only, the graph is then run operator by operator.",
        "Dynamo's: a graph is captured and guarded": "Which makes it the tool for finding out which of the three is to blame: if `eager` fails, it is Dynamo; if only `aot_eager` does, the second; else Inductor.",
        "everything but C++": "That would be nearer to `aot_eager`; `eager` stops one machine earlier, before there is a backward.",
    },
    answer="Dynamo's: a graph is captured and guarded",
)

# %% [markdown]
# ## A graph is data
#
# A backend is a function that is given a graph and example inputs, and returns something that can be called. The smallest useful one reads:

# %%
def reading(graph, inputs):
    """A backend that prints each node, and leaves the graph as it is."""
    for node in graph.graph.nodes:
        value = node.meta.get("example_value")
        shape = "" if value is None else tuple(value.shape)
        print(f"{node.op:14} {node.name:8} {str(shape):12} from", *node.all_input_nodes)
    return graph


y = torch.compile(rms, backend=reading)(x)

# %% [markdown]
# Four kinds of node. (There are two more, for submodules and for what hangs on a module; Dynamo mostly makes inputs of those.) A `placeholder` is an input, `output` what is returned. A `call_function` calls `node.target`, which is a Python function such as `torch.rsqrt` or `operator.mul`. And a `call_method` calls a method of its first argument: there the target is no function but a *string*, "pow". (A node's *name* is something else again. Dynamo takes it from your variable where the result went into one, such as `mean`, and makes one up where it didn't, such as `pow_1`.)
#
# `node.args` and `node.kwargs` hold what it is called with, and where another node's result goes in, that node itself stands there. Backwards, `node.users` says who reads it. `node.meta["example_value"]` is a fake: shape, dtype, strides, and no number.
#
# A graph can be changed like any list. Suppose somebody has written the norm with a root and a division:

# %%
def slow_rms(x):
    mean = x.pow(2).mean(-1, keepdim=True)
    return x * (1 / torch.sqrt(mean + EPS))


print(captured(slow_rms, x)[0].graph)

# %% [markdown]
# `1 / sqrt(v)` is `rsqrt(v)`: two nodes where one does. Here is a rewrite that finds the pair. Read what it asks before it acts.

# %%
import operator


def use_rsqrt(gm):
    """Replace 1 / sqrt(v) by rsqrt(v), in place; return how many were replaced."""
    found = 0
    for division in list(gm.graph.nodes):
        if division.target is not operator.truediv or division.args[0] != 1:
            continue
        root = division.args[1]
        if getattr(root, "target", None) is torch.sqrt:
            with gm.graph.inserting_before(division):
                quick = gm.graph.call_function(torch.rsqrt, root.args)
            division.replace_all_uses_with(quick)
            found += 1
    gm.graph.eliminate_dead_code()  # what nobody reads: the division, and perhaps the root
    gm.recompile()
    return found

# %% [markdown]
# The new node is made *before* the one that it replaces, because a graph is in the order in which it runs. Then everybody who read the old one is made to read the new one. The old nodes are still there after that, and read by nobody.
#
# Below are the graph before and after. **Predict.** Who will read `rsqrt`, and what becomes of `sqrt`?

# %%
before, after = captured(slow_rms, x)[0], captured(slow_rms, x)[0]
print("replaced:", use_rsqrt(after))
graph_rewrite(before, after)

# %% [markdown]
# As a backend it takes one line more. But is it complete? **Predict.** Each of these four holds a `1 / sqrt(v)` in some form. In which does the rewrite find something, and after which is a `sqrt` left in the graph?

# %%
def by_method(v): return 1 / v.sqrt()
def by_power(v): return 1 / v ** 0.5
def both_wanted(v): return 1 / torch.sqrt(v), torch.sqrt(v)
def shared(v):
    root = torch.sqrt(v)
    return 1 / root, root


for function in (by_method, by_power, both_wanted, shared):
    gm = captured(function, torch.rand(5) + 1)[0]
    number_found = use_rsqrt(gm)
    left = [node.name for node in gm.graph.nodes if node.op.startswith("call")]
    print(f"{function.__name__:12} replaced {number_found}; left:", *left)

# %% [markdown]
# A method arrives as a string, which `is torch.sqrt` never is; a power is another function altogether. So the rewrite is blind to two forms of four. That is harmless: what it misses stays as slow as it was. The opposite would be a mistake. In `shared` the root has two readers, and the rewrite must not take it from the second; here `eliminate_dead_code` takes care, since it removes nothing that is read.
#
# So a rewrite is two lists, all forms of the thing, and all conditions under which it is safe. In the lab you write one for softmax, which reaches a graph in four forms.
#
# One trap more, because it costs people afternoons. A `GraphModule` keeps, beside its graph, the Python that was made of it, `gm.code`. **Predict.** Two backends turn `+` into `−` and forget `recompile()`; one of them prints `gm.code` first. `f(x) = x + 1`, x is 1. What comes out of either?

# %%
def subtracting(look):
    def backend(module, inputs):
        if look:
            module.code  # as if to print it
        for node in module.graph.nodes:
            if node.target is operator.add:
                node.target = operator.sub
        return module
    return backend


def plus_one(x):
    return x + 1


for look in (False, True):
    torch._dynamo.reset()
    print(f"looked: {look!s:5}", torch.compile(plus_one, backend=subtracting(look))(torch.ones(1)))

# %% [markdown]
# Whoever looks, runs the old code. The Python is made when it is first asked for, from the graph as it then is. After an edit, `recompile()`, always; then it doesn't matter who looked.

# %% tags=["hide-input"]
choice(
    "`F.softmax(x, dim=-1)` and `x.softmax(-1)` stand in one graph. Where does a rewrite find their dimension?",
    {
        "in `node.args[1]` of both": "The second's, yes: its args are (x, -1). The first was called with a keyword, and FX writes down the call as it was made.",
        "in `node.kwargs[\"dim\"]` of the first, in `node.args[1]` of the second": "And `torch.softmax(x, -1)` has it by position, too. A rewrite must ask both places.",
        "in `node.meta`": "There is the shape of the result, which a softmax has along any dimension.",
    },
    answer="in `node.kwargs[\"dim\"]` of the first, in `node.args[1]` of the second",
)

# %% [markdown]
# ## Guards: what a graph believes
#
# The graph was made for one call. May it serve the next? Dynamo writes down what it has relied on, and before each further call that is checked. These checks are the *guards*.
#
# **Predict.** The graph of `rms` was captured with x of shape (2048, 600). Name five things that must be as they were.

# %%
captured(rms, x)
for kind, what in kept(rms)[0].checks:
    if not kind.startswith("DIMENSION"):
        told = f"{kind:26} {what.replace('DispatchKeySet', '')}"[:220]
        print(textwrap.fill(told, 110, subsequent_indent=" " * 27))

# %% [markdown]
# The long line about x is a list of old friends: its dispatch keys ([phase 04](04_dispatcher.ipynb#cell-id=keys-of-a-tensor)), dtype, whether it requires a gradient, sizes and strides ([phase 01](01_tensors.ipynb#cell-id=strides-how-far-is-one-step)). `GLOBAL_STATE` holds what no argument tells: whether gradients are recorded, autocast, the number of threads. And your globals are in there: that `torch.rsqrt` is still the same object, and that `EPS` is still 10⁻⁶. The number of `EPS` is in the graph as a constant, and that of 600 will be one in the code that is made of it.
#
# If one fails, Dynamo compiles another version, and keeps both. **Predict.** Rows of 6, in tensors of 3, 4, 5, 1, 0 and 7 rows, one after the other. How many graphs are there at the end?

# %%
rows = {f"{n} row{'s' * (n != 1)}": (torch.randn(n, 6),) for n in (3, 4, 5, 1, 0, 7)}
guard_counter(rms, rows, call=4)

# %% [markdown]
# Four. Move through the calls. The first graph is for 3 rows exactly. When 4 arrive, Dynamo does not make one for 4: it has learnt that this size changes, and makes one for *n* rows, where n is a symbol. 5 and 7 take it. But 1 doesn't, nor does 0. Look at the reason: the symbolic graph believes that n ≥ 2.
#
# That is no pedantry. A dimension of size 1 *broadcasts*: with n = 1 another line may mean another operation. A dimension of size 0 has no elements, so reductions differ. So these two sizes are always constants, and get graphs of their own.

# %% tags=["hide-input"]
number(
    "A data loader gives batches of 32, and a last one of 7; evaluation uses batches of 64, and in the end somebody tries a single sentence. In that order, how many graphs does one compiled function have?",
    3,
    why="32 is exact; 7 makes the size a symbol, which serves 64 as well; 1 is always a constant.",
    wrong={4: "64 is taken by the graph that 7 has made: there the size is a symbol.", 2: "A batch of one never shares a graph with others: sizes 0 and 1 are constants.", 1: "The first size is taken for a constant, until a second one comes."},
)

# %% [markdown]
# If you know which size will change, say so: `torch._dynamo.mark_dynamic(x, 0)`, and the first graph is the symbolic one. (`dynamic=True` makes everything symbolic that can be.)
#
# And numbers that aren't sizes? **Predict.** For each row of the cell: how many graphs are there after each call?

# %%
def times(x, k):
    return x * k


def length(x, k):
    return x * len(k)


three = torch.ones(3)
numbers = {"int": (1, 2, 3, 4, 0, 5), "float": (0.5, 1.5, 2.5, 3.5), "bool": (True, False, True)}
for name, given in numbers.items():
    print(f"{name:9}", [answer.graphs for answer in replay(times, [(three, k) for k in given])])
print(
    "str      ",
    [answer.graphs for answer in replay(length, [(three, k) for k in ("a", "bb", "c")])],
)

# %%
tensors = {
    "dtype": (three, three.double(), three.int()),
    "rank": (three, three[None], three[None, None]),
    "strides": (torch.ones(2, 3), torch.ones(3, 2).t()),
    "gradient": (three, three.clone().requires_grad_()),
}
for name, given in tensors.items():
    print(f"{name:9}", [answer.graphs for answer in replay(times, [(x, 2) for x in given])])

# %% [markdown]
# Ints and floats are like sizes: the first value is taken for a constant, the second makes a symbol of it. (For an int that is no size the symbol serves 0 and 1 as well.) A string has no symbol: every value has its graph, as has every dtype and rank, every kind of strides, and either answer to whether a gradient is wanted.
#
# Now the opening. `self.words` is an int, and yet each word had a graph of its own. Ask the guards. **Predict.** What will the first graph need of the tenth word, and which graph takes it?

# %%
words = {f"word {n}": (hidden,) for n in range(1, 13)}
guard_counter(CoolingHead(model.lm_head), words, call=10)

# %% [markdown]
# An int that comes as an argument is expected to change. An int that is an *attribute of a module* is expected to be part of its architecture, like a number of heads, and is a constant: `self.words == 0`, `== 1`, `== 2`. Each word broke the guard of every version before it.
#
# After eight versions of one function Dynamo makes no ninth. Those that exist are still used; a call that none of them takes runs your Python, as if there were no compiler. Here that is every call from the ninth on. It says so once, in a log where most training scripts have a thousand lines. That is the silence; we kept from the page what was logged during the opening.

# %%
print(len(log), "message:")
print(*(line.split("  #")[0].rstrip() for line in log[0].splitlines()[:3]), sep="\n")

# %% [markdown]
# How many versions do these four ways to mend it need? **Predict** before you run it.

# %%
class Cooling(nn.Module):
    """CoolingHead with the temperature kept in four ways; `how` chooses."""

    def __init__(self, how):
        super().__init__()
        self.how, self.words, self.heat = how, 0, 2.0
        self.register_buffer("count", torch.zeros(()))

    def forward(self, logits, words=None, temperature=None):
        if self.how == "buffer":
            self.count += 1
            temperature = 0.5 + 1.5 / self.count
        elif self.how == "float attribute":
            self.heat = self.heat * 0.9
            temperature = self.heat
        elif self.how == "argument":
            temperature = 0.5 + 1.5 / words
        return torch.softmax(logits / temperature, dim=-1)

# %%
logits, twelve = torch.randn(4, 600), range(1, 13)
ways = {
    "buffer": [(logits,) for k in twelve],
    "float attribute": [(logits,) for k in twelve],
    "argument": [(logits, k) for k in twelve],
    "tensor argument": [(logits, None, torch.tensor(0.5 + 1.5 / k)) for k in twelve],
}
for how, given in ways.items():
    print(f"{how:16}", [answer.graphs for answer in replay(Cooling(how), given)])

# %% [markdown]
# One graph or two. A float attribute, oddly, is allowed to change, where an int isn't. And a tensor is never a constant: what is in it isn't looked at, so nothing can be believed of it. Where a number changes in every step, make it a tensor; or pass it as an argument.
#
# And make the silence loud. `TORCH_LOGS=recompiles` prints every reason. In a training script there is something better, an error: from here on, nothing may be compiled again.

# %%
counting = torch.compile(CoolingHead(model.lm_head), backend="eager")
counting(hidden)
try:
    with torch.compiler.set_stance("fail_on_recompile"):
        counting(hidden)
except RuntimeError as error:
    said = [line.split("  #")[0].split(" filename")[0].rstrip() for line in str(error).splitlines()]
    print(*said[:3], sep="\n")

# %% tags=["hide-input"]
choice(
    "A compiled function is called under `torch.no_grad()`, then without, then under `no_grad` again, with tensors that are otherwise alike. How many graphs?",
    {
        "1: the numbers are the same": "The numbers are, the work isn't: without `no_grad` a backward may be wanted. Grad mode is in GLOBAL_STATE.",
        "2": "One for each grad mode. The third call finds the first graph again, for versions are kept.",
        "3": "The first version is still there when its conditions return.",
    },
    answer="2",
)

# %% [markdown]
# ## When it breaks, and who says so
#
# Dynamo follows bytecode on tensors without numbers. What if the program asks for a number?
#
# **Predict.** Here are six functions. In which must Dynamo stop?

# %%
def prints(x):
    y = x * 2
    print("", end="")
    return y + 1


def branches(x):
    if x.sum() > 0:
        return x + 1
    return x - 1


def items(x):
    return x * x.sum().item()


def lists(x):
    return x * sum(x.tolist())

# %%
from torch._dynamo.utils import counters


def selects(x):
    return x[x > 0].sum()


def draws(x):
    return x * random.random()


suspects = (prints, branches, items, lists, selects, draws)

# %% [markdown]
# In all six. It then does not fail. It closes the graph that it has, lets Python do the next step with real tensors, and begins again behind it, in a function of its own making that *resumes* yours. That is a **graph break**. The values are right; the compiler sees two halves, and what the halves pass to each other goes through memory.
#
# Five witnesses claim to know whether a graph broke. Let us hear all of them about all six: how many graphs a backend is given; `torch._dynamo.explain`; the statistics in `counters`; whether `fullgraph=True`, which demands one graph, raises; and the log.

# %%
def witnesses(function):
    """What five witnesses say of the breaks in function(x)."""
    x, said = torch.tensor([1.0, -2.0, 3.0]), {}
    counters.clear()
    with listening(graph_breaks=True) as lines:
        said["graphs"] = len(captured(function, x))
    said["log"] = "a break" if lines else "nothing"
    said["counters"] = sum(counters["graph_break"].values())
    torch._dynamo.reset()
    said["explain"] = torch._dynamo.explain(function)(x).graph_break_count
    torch._dynamo.reset()
    try:
        torch.compile(function, fullgraph=True, backend="eager")(x)
        said["fullgraph"] = "fine"
    except Exception as error:
        said["fullgraph"] = type(error).__name__
    return said

# %% [markdown]
# **Predict.** Which witnesses will be right about all six?

# %%
columns = ("graphs", "explain", "counters", "fullgraph", "log")
print(f"{'':10}", *(f"{column:>12}" for column in columns))
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    for function in suspects:
        said = witnesses(function)
        print(f"{function.__name__:10}", *(f"{said[column]:>12}" for column in columns))

# %% [markdown]
# One. Go through the others:
#
# - **The number of graphs** is 1 for `lists` and `draws`, as for an unbroken function. They break all right, but before the break there is no operation on a tensor, and an empty graph is never made.
# - **`explain`** counts graphs and subtracts one. So it is wrong in the same two.
# - **The counters** don't count the branch.
# - **`fullgraph=True`** is silent about `items` and `selects`. It isn't wrong: under `fullgraph` Dynamo *doesn't break there*. It works harder, and makes symbols of numbers that it will know only at run time. Without it, it breaks. So the test says "one graph" of a program that, run as your users run it, has two.
# - **The log** has a line for every break, with the place, and mostly with a hint.
#
# So look at the log, `TORCH_LOGS=graph_breaks`, when you want to know *whether*. And count the graphs that a backend sees when you want to know what it *costs*: a break before the first operation costs next to nothing, a break between two halves of a loop's work costs what the halves can't share.

# %%
with listening(graph_breaks=True) as lines:
    captured(branches, torch.ones(3))
print("\n".join(lines[0].splitlines()[:5])[:600])

# %% [markdown]
# What is left of your function between two graphs? Ordinary Python, in bytecode that Dynamo wrote:

# %%
print("yours:", *names(prints.__code__))
captured(prints, torch.ones(3))
print("new:  ", *names(kept(prints)[0].code))

# %% [markdown]
# The first compiled function, then `print`, then `__resume_…`, a function made of the rest of yours, which is itself traced, guarded and compiled.
#
# To mend a break, say with tensors what you said with Python. A branch that chooses between two *values* becomes a `torch.where`: both are computed, and one is taken. It has one trap, and it isn't in the forward. **Predict.** `safe` avoids the root of a negative number. What is its gradient at −1?

# %%
def safe(v):
    return torch.where(v > 0, v.sqrt(), 0.0)


v = torch.tensor([4.0, -1.0], requires_grad=True)
safe(v).sum().backward()
print(safe(v).detach().tolist(), v.grad.tolist(), "in", len(captured(safe, v)), "graph")

# %% [markdown]
# NaN. Both sides are computed, and both are differentiated; the side that wasn't taken gets the gradient 0, and 0 times the slope of a root of a negative number is NaN. Put the condition inside as well: `v.clamp(min=…)` under the root, so that neither side ever sees a number it can't stand.

# %% tags=["hide-input"]
choice(
    "A training step has `loss.item()` in its middle, for a progress bar. It is compiled without `fullgraph`. What is the cheapest cure?",
    {
        "`fullgraph=True`, which makes it one graph": "It does make it one graph, and the graph then waits for the number in each step. And your colleague who compiles it without the flag has two graphs again.",
        "`torch._dynamo.disable` around the step": "That is no cure: the step isn't compiled any more.",
        "return the loss, and take the number outside": "The graph stays whole, and whoever wants the number waits for it, not the step. Every tenth step will do.",
    },
    answer="return the loss, and take the number outside",
)

# %% [markdown]
# ## Forward and backward in one graph
#
# Eager autograd learns of the backward while the forward runs, node by node ([phase 02](02_autograd.ipynb#cell-id=pytorchs-own-graph)). AOTAutograd has both before anything runs, in one **joint graph**. We use a norm with a gate now, since there is more to be saved: every number is first multiplied by a share between 0 and 1.

# %%
def gated(x, gate):
    y = x * torch.sigmoid(gate)
    mean = y.pow(2).mean(-1, keepdim=True)
    return y * torch.rsqrt(mean + EPS)


wide = [torch.randn(2048, 600, requires_grad=True) for _ in range(2)]
joint = split(gated, *wide).joint
for node in joint.nodes:
    print(f"{node.name:12} {str(node.target).replace('aten.', ''):22}", *node.all_input_nodes)

# %% [markdown]
# `primals` are the function's inputs, `tangents` the gradients that will come in from above. Read it from the top: three lines of Python are seven operators (and two `alias`, names for what is there); the backward begins where a tangent first appears. It is the chain rule of [phase 02](02_autograd.ipynb#cell-id=a-layer-only-has-to-know-one-product), written out. And it is in the same graph as the forward, so everything the forward computed is there to be used: `sigmoid`, `rsqrt`.
#
# Two more things happened on the way down.
#
# **Decomposition.** An operator is a box, and Inductor can fuse only what it sees into. So most are taken apart into simpler ones. **Predict.** `F.layer_norm` is one node for Dynamo. How many operators is its forward in Inductor's graph?

# %%
def normed(x):
    return F.layer_norm(x, (600,))


print(
    *(node.name for node in captured(normed, wide[0])[0].graph.nodes if node.op == "call_function")
)
print(*(node.name for node in split(normed, wide[0]).forward.nodes if node.op == "call_function"))

# %% [markdown]
# **Functionalization.** A graph in which tensors are written to can't be reordered: each write is a before and an after. So writes are taken out. **Predict.** What stands in the graph for `x.mul_(2)`, and how does the caller's x still get its new value?

# %%
from torch._dynamo.backends.common import aot_autograd


def doubles(x):
    x.mul_(2)
    return x + 1


graphs, given = [], torch.ones(3)
torch._dynamo.reset()
torch.compile(
    doubles, backend=aot_autograd(fw_compiler=lambda gm, inputs: graphs.append(gm) or gm)
)(given)
print(graphs[0].code.strip())
print("the caller's x:", given)

# %% [markdown]
# There is a `mul` without its underscore, and its result is returned as a second output. When the graph has run, that is copied into the caller's x. Inside, nothing is ever overwritten; the emitter may put things into the same memory again later, when it knows that nobody is looking.

# %% tags=["hide-input"]
true_false(
    "The joint graph is traced, so a Python `if` in a backward (in an `autograd.Function`, say) can be taken anew in each step.", False,
    "The backward was traced when the forward was compiled, with tensors without numbers. What it did then is in the graph; what depends on numbers breaks, or isn't traced at all.",
)

# %% [markdown]
# ## What is saved, and what is computed again
#
# The joint graph must be cut in two, since the loss is computed in between. Whatever the lower half reads from the upper must be kept in memory meanwhile: these are the saved tensors. Where to cut is the *partitioner's* choice.
#
# The plain one keeps whatever the backward reads. **Predict.** Which tensors is that, for `gated`? Look at the joint graph above: what do nodes below the first tangent read from above it?

# %%
plain = split(gated, *wide, partition="plain")
print({name: f"{size / 2**20:.2f} MiB" for name, size in plain.saved.items()})

# %% [markdown]
# Inductor's cuts elsewhere. It takes the graph for a network of pipes, each as wide as the bytes of its tensor, and looks for the cut with the fewest bytes: a *minimum cut*. What lies beyond the cut and is needed must be computed a second time. That is forbidden for products and other dear things, and cheap for everything pointwise, since in a fused loop it costs arithmetic and no bytes.
#
# **Predict.** Which of those four will it not keep, and from what will it compute them again?

# %%
cut = split(gated, *wide)
print({name: f"{size / 2**20:.2f} MiB" for name, size in cut.saved.items()})
print("computed again:", *cut.again)

# %% [markdown]
# The two inputs, which are there anyway, and a number for each row. `sigmoid` and their product are computed again in the backward's loop, from what that loop reads in any case. (Further down you learn to read such loops; this one is `loops(written(gated, *wide, backward=True)[1].code)`.)
#
# Here is the same for a layer of your MiniGPT: the attention of one block, on two sequences of 128 words. A bar each for eager autograd, the plain cut, the minimum cut, and two smaller *budgets* (`torch._functorch.config.activation_memory_budget`), which allow only a part of those bytes; below them, what is kept with half of the budget. **Predict.** The pattern, 128 × 128 weights for each head and sequence, is the largest tensor. Who will keep it? And what must be kept in its place, so that it can be made again without doing the softmax's sums twice?

# %%
attention = model.blocks[0].attention
saved_bytes(attention, torch.randn(2, 128, 64, requires_grad=True), way=4)

# %% [markdown]
# Here the minimum cut saves what eager autograd saves: a softmax's exponentials are cheap, but the pattern feeds a product, which is dear, and it wants to read the pattern from memory.
#
# With half the budget the pattern is gone. What stands in its place is `amax` and `sum_1`: of each row of 128 weights the maximum and the sum. From these and the scores (a product, done once more) each weight is `exp(score − maximum) / sum`. Two numbers for a row in place of 128: this is the idea of FlashAttention's backward, and here a partitioner has found it by counting bytes. With a budget of 0 nothing but the arguments is kept, and the whole forward is done twice, which is what `torch.utils.checkpoint` does by hand. Memory is bought with time, and the budget is the price tag.

# %% tags=["hide-input"]
number(
    "`y = torch.relu(x)` on 1,000,000 float32. The backward needs to know where y is positive. Eager autograd keeps y, 4,000,000 bytes. How many does the minimum cut keep?",
    1_000_000,
    unit="bytes",
    why="It keeps the answer to `y <= 0`, a bool for each element. One byte in place of four, and where the next layer keeps y anyway, none at all.",
    wrong={4_000_000: "That is y itself. What is asked of it is yes or no.", 125_000: "A bool takes a byte in a tensor, and not a bit."},
)

# %% [markdown]
# ## Fusion, and the code
#
# Now the text. This is the C++ that Inductor has written for `rms` on this machine, without casts and braces. Take your time; it is your function. (The step of the inner loops, 8 or 16, is the number of floats that this machine's vector registers hold.)

# %%
print(inspect.getsource(rms))
print(loops(written(rms, x)[0].code))

# %% [markdown]
# Now with your two lines beside it.
#
# `x0` is the row. `#pragma omp for` deals the rows out to the threads: rows know nothing of each other, as in [phase 05](05_custom_op.ipynb#cell-id=one-program-one-row). Inside, there are two loops over the 600 columns.
#
# The first is your first line. `loadu` reads as many neighbours as fit into a register; `tmp0 * tmp0` is `pow(2)`, and the addition is `mean`'s sum. There is no tensor of squares. Then `vec_reduce_all` makes one number of the register, and the row's sum is stored: 4 bytes for 2,400.
#
# The second is your second line, and it begins by reading x *again*. Division by 600 (the rest of `mean`), the `EPS`, the root: on one number. Then the multiplication, and a store. Five operators, one kernel, and the only thing of x's size that is written is the result.
#
# **Predict.** In N, the bytes of x: what goes over the memory bus? [Phase 05](05_custom_op.ipynb#cell-id=one-pass-or-three) counted five N op by op, and three where a row must be read twice.

# %% tags=["hide-input"]
number(
    "How many N does this loop move between memory and the processor, if a row of 2,400 bytes stays in the first cache (32 KiB or more) between its two readings?",
    2,
    unit="N",
    why="x is read from memory once; the second reading finds the row in the cache. The result is written once.",
    wrong={3: "By count of loads and stores, yes. But between the two readings of a row lie 2,400 bytes, and the cache still has them.", 5: "That is op by op, each reading and writing memory."},
)

# %% [markdown]
# So fusing over rows is as good as [phase 05](05_custom_op.ipynb#cell-id=one-program-one-row)'s kernel that holds the row in registers, as long as a row fits into the cache. Let it run; here the whole compiler works, `g++` included. **Predict.** Is the result the same to the last bit?

# %%
torch._dynamo.reset()
fast_rms = torch.compile(rms)
print("to the bit:  ", torch.equal(fast_rms(x), rms(x)))
print("to rounding: ", torch.allclose(fast_rms(x), rms(x), atol=1e-6))

# %% [markdown]
# The sum is taken in another order: 8 or 16 partial sums in a register, which are added at the end. PyTorch's own kernel adds in an order of its own. Both are right, to rounding. So tests of compiled code compare with a tolerance.
#
# ### What shares a loop
#
# Two operations can share a loop if each element of the one needs only that element of the other, or the row's, once the row is done. A mean over the row is done when the row's loop is. **Predict.** What if the mean is taken over the *columns*, or over the whole tensor? Here are three versions of `gated` that differ in one argument.

# %%
def over_columns(x, gate):
    y = x * torch.sigmoid(gate)
    mean = y.pow(2).mean(0, keepdim=True)
    return y * torch.rsqrt(mean + EPS)


def over_all(x, gate):
    y = x * torch.sigmoid(gate)
    mean = y.pow(2).mean()
    return y * torch.rsqrt(mean + EPS)


pair = [t.detach() for t in wide]
versions = {
    "mean over the row": gated,
    "mean over the columns": over_columns,
    "mean over everything": over_all,
}

# %%
fusion_map(versions, *pair, version=2)

# %% [markdown]
# Left your lines, right what shares loops, with the bytes that go in and out. With the mean over the columns no row can be finished before the last row has been read. So there must be a loop for the mean and another one for the product, and y, which both need, lies in memory between them.
#
# And look at the first version. Two passes, where a row's loop could do it all! y is written to memory, 4.9 MB of it, although it is nobody's result, and read twice. The text says it, too: a loop over all elements that stores, and then the loops that you know.

# %%
text = loops(written(gated, *pair)[0].code)
print(
    *[line for line in text.splitlines() if "for(" in line or "load" in line or "store" in line],
    sep="\n",
)

# %% [markdown]
# Why? y has two readers, the mean and the product. If it isn't stored, each of them computes it anew. In Inductor's source (`should_realize_on_reuse`, in [`torch/_inductor/ir.py`](https://github.com/pytorch/pytorch/blob/v2.13.0/torch/_inductor/ir.py)) stands a list of what is too dear for that on a CPU: exp, log, sigmoid, tanh. And once y is a tensor of its own, its loop is one over 1,228,800 elements, which no longer fits the loop over rows.
#
# That can be tested. **Predict.** The gate is a `clamp` in place of a sigmoid. How many passes?

# %%
def clamped(x, gate):
    y = x * gate.clamp(0, 1)
    mean = y.pow(2).mean(-1, keepdim=True)
    return y * torch.rsqrt(mean + EPS)


for name, function in {"sigmoid": gated, "clamp": clamped}.items():
    passes = written(function, *pair)[0].passes
    moved = sum(sum(one.reads.values()) + sum(one.writes.values()) for one in passes)
    print(f"{name:8} passes: {len(passes)}, {moved / 1e6:.1f} MB")

# %% [markdown]
# One, and no y. A heuristic is no theorem. It is a rule of thumb in a file, and you can go and read it.
#
# Is y worth the fuss? In eager mode both versions take the same way: 10 N of reads and writes, if N is x's bytes. Compiled it is 5 N with y, and 3 N without. **Predict.** By how much is each faster?

# %%
def fastest(function, *args, seconds=0.7):
    """The shortest run, in ms, of those that fit into the time: of an undisturbed machine."""
    times = []
    while sum(times) < seconds:
        begin = time.perf_counter()
        function(*args)
        times.append(time.perf_counter() - begin)
    return 1000 * min(times)


tall = [torch.randn(16384, 600) for _ in range(2)]
for name, function in {"sigmoid": gated, "clamp": clamped}.items():
    torch._dynamo.reset()
    with one_thread():
        quick = torch.compile(function)
        quick(*tall)
        plain, fast = fastest(function, *tall), fastest(quick, *tall)
    times = f"{plain / fast:.1f} times as fast"
    print(f"{name:8} plain {plain:5.0f} ms, compiled {fast:5.0f} ms: {times}")

# %% [markdown]
# By bytes alone it would be twice, and 3.3 times. Times differ from machine to machine, and this page was made on a small and busy one. Less comes out where arithmetic is what takes the time, above all exponentials, which no fusion spares; or where the tensors find room in the processor's last cache, in which bytes are cheap (try `pair`, an eighth as tall). More comes out where memory itself is dear: what eager mode writes in between must be had from the operating system, page by page, in every call. On one thread and with rows like these it is mostly more.

# %% [markdown]
# ### The same for a GPU
#
# Inductor has a second pen. For a GPU it writes Triton, the language of [phase 05](05_custom_op.ipynb#cell-id=one-program-one-row). To *write* it needs no GPU: only some figures of one, since how it divides the work depends on them. We tell it those of an H100's data sheet (132 multiprocessors, 65,536 registers each, warps of 32), and give it fake tensors on that device. What you see is Inductor's own text, made just now on your machine. It has not run. (What was written in the same way on a real H100 has, and stands at the end of this lesson, with its times.)

# %%
described = written(rms, x, device="cuda")[0].code
kernel = described[described.index("@triton.jit"):described.index("''', device_str")]
print(kernel)

# %% [markdown]
# Put [phase 05](05_custom_op.ipynb#cell-id=half-precision)'s `rms_kernel` beside it. `program_id` picks the rows, XBLOCK of them at once. The block is 1,024 for 600 columns; there is a mask, `other=0.0`, a sum in float32, a store under the same mask. x is loaded **once**: the row stays in registers. Inductor calls that a *persistent reduction*. For rows of more than 1,024 it writes a loop, and a second reading; remember that for later.
#
# Two differences are worth a look. The size is in the text as a number, `600*x0`, where our kernel was given a stride at run time; so Triton's compiler knows that each row begins at a multiple of 32 bytes. And there is no stride of columns: x was contiguous when it was traced, and a *guard* says so. Your kernel had to serve all strides. This one serves what was guarded, and for others there will be another.
#
# The map again, for the GPU. **Predict.** Is y still written to memory?

# %%
fusion_map(versions, *pair, device="cuda", version=1)

# %% [markdown]
# No: one pass, and y never exists. The list of dear functions is for CPUs; on a GPU arithmetic is so cheap against memory that a sigmoid is computed again wherever it is needed. Move to the other versions as well. A mean over everything takes *two* steps, partial sums first, since programs can't wait for each other; and then a third pass, which makes y once more from x and the gate.
#
# What a description doesn't settle is which of several configurations (rows to a program, warps) will be taken. Inductor tries some on the device, when it first runs. On a machine with a GPU, `TORCH_LOGS=output_code python your_script.py` prints the text of every kernel, and `TORCH_LOGS=autotuning` what was tried.

# %% tags=["hide-input"]
choice(
    "`x.softmax(-1).sum(0)`: a softmax of each row, then a sum over the rows. How many passes at least, on a CPU?",
    {
        "one: a row's softmax can be added to a running total at once": "For one thread that would do. With rows dealt out to threads, each needs a total of its own, and those must be added up afterwards; Inductor doesn't write it so.",
        "two: the second reduction runs across the rows": "A column's sum is done when the last row is, and its loop runs the other way. In memory between the two lie the exponentials, not yet divided: the division goes with the second loop. Ask `written`.",
        "four, one for each reduction and each pointwise step": "The softmax's own parts share the row's loop, as those of `rms` do.",
    },
    answer="two: the second reduction runs across the rows",
)

# %% [markdown]
# ### Libraries, and memory that is used twice
#
# Not everything becomes a loop. **Predict.** What does Inductor write for a product of matrices?

# %%
def two_layers(x, w, v):
    h = torch.relu(x @ w)
    return torch.relu(h @ v)


square = [torch.randn(64, 64) for _ in range(3)]
code = written(two_layers, *square)[0].code
body = code[code.index("def call("):code.index("runner =")]
print(
    *[
        line.strip()
        for line in body.splitlines()
        if any(word in line for word in ("extern", "cpp_", "reuse", "empty"))
    ],
    sep="\n",
)

# %% [markdown]
# Nothing: it calls the library that eager mode calls, `extern_kernels.mm`. What you see here is the module's `call`, Python once more: buffers are made, kernels are called in order, and buffers are given away.
#
# `buf1 = buf0; del buf0  # reuse`: the product's memory becomes the relu's. relu is done in place, though your code said no such thing, and functionalization had removed all writing. Now it comes back, where the compiler has *proved* that nobody looks at the old numbers any more. And both relus are one kernel, `cpp_fused_relu_0`, called twice: the same text needs no second copy.

# %% [markdown]
# ## Caches
#
# Compiling takes seconds. Where is it remembered? In three places.
#
# - In the process, with the function's code: the versions and their guards. `torch._dynamo.reset()` empties it, and so does the end of the process.
# - On disk, for AOTAutograd and for Inductor: a hash of the graph that comes in, of shapes, settings and versions leads to what was made of it.
# - On disk, the built libraries, by their text.
#
# **Predict.** Which of these four must call `g++`? The same function again after a reset; the same body under another name; another number of rows; another `EPS`.

# %%
def renamed(v):
    squares = v.pow(2).mean(-1, keepdim=True)
    return v * torch.rsqrt(squares + EPS)


def compiled_anew(function, x):
    """Seconds of a first call after a reset, and what the caches on disk said."""
    torch._dynamo.reset()
    counters.clear()
    begin = time.perf_counter()
    torch.compile(function)(x)
    seconds = time.perf_counter() - begin
    found = (
        counters["aot_autograd"]["autograd_cache_hit"],
        counters["inductor"]["fxgraph_cache_hit"],
    )
    said = ["found" if number else "not found" for number in found]
    return f"{seconds:6.2f} s; for AOTAutograd {said[0]}, for Inductor {said[1]}"

# %%
compiled_anew(rms, x)
print("again:       ", compiled_anew(rms, x))
print("renamed:     ", compiled_anew(renamed, x))
print("other rows:  ", compiled_anew(rms, x[: random.randrange(1000, 2000)]))
EPS = 1e-6 * (1 + random.random())
print("another EPS: ", compiled_anew(rms, x))
EPS = 1e-6

# %% [markdown]
# To Inductor names don't count, and numbers do: sizes and constants stand in the text as literals. (To AOTAutograd names count as well, for Dynamo names its graph after your variables; but without `g++` it is soon done.) The cell draws both at random; numbers that were compiled before, even yesterday, would be found. Dynamo runs in any case; what is spared is what comes behind it, and above all `g++`.
#
# The folder is `TORCHINDUCTOR_CACHE_DIR`, or one of your own in `/tmp`. What lies there is machine code, and is run. Share such a folder with nobody whom you wouldn't let run programs as you.

# %% tags=["hide-input"]
true_false(
    "A compiled model that is loaded in a new process, with all caches on disk warm, starts as fast as one that isn't compiled.", False,
    "Guards and bytecode were in the old process. Dynamo follows the Python again, the hashes are computed, the libraries are loaded: tenths of a second for each graph, seconds for a large model.",
)

# %% [markdown]
# ## When it doesn't pay
#
# You have seen what is gained: bytes that aren't moved, and Python that isn't run. And what is paid: seconds once for every version, and guards in every call. So it can be worked out.
#
# **Predict.** For which of these is the compiled version faster, and from how many calls on has the compiling paid?

# %%
def compare(name, function, *args):
    """Print ms of both, and after how many calls the compiling has paid."""
    torch._dynamo.reset()
    quick = torch.compile(function)
    with one_thread():
        begin = time.perf_counter()
        quick(*args)
        cost = time.perf_counter() - begin
        plain, fast = fastest(function, *args), fastest(quick, *args)
    pays = "never pays"
    if fast < 0.9 * plain:
        pays = f"pays after {1000 * cost / (plain - fast):,.0f} calls"
    times = f"{plain:7.3f} ms plain, {fast:7.3f} ms compiled"
    print(f"{name:21} {times}, {cost:4.1f} s to compile: {pays}")

# %%
def gelu(x):
    return 0.5 * x * (1 + torch.tanh(0.79788456 * (x + 0.044715 * x**3)))


compare("gelu of 16384 x 600", gelu, tall[0])
compare("rms of 2 x 6", rms, torch.randn(2, 6))
compare("product of 512 x 512", torch.matmul, torch.randn(512, 512), torch.randn(512, 512))

# %% [markdown]
# (The times are those of one thread of one machine, on one day. Run it on yours.)
#
# GELU written out is eight operators, each of which reads and writes memory; compiled it is one loop. The tiny `rms` has nothing to save in bytes: its five operators cost a few microseconds each in eager mode, and compiled it pays for guards and a call. The product is the library's either way: there is nothing to fuse, and the guards come on top.
#
# So it doesn't pay where there is one call, or a new shape at every call; where the time goes into products that a library does; where graphs break so often that nothing is left to fuse; and where the bottleneck is something else, such as the data loader. Measure a whole step, after the compiling, against eager ([phase 09](09_profiling.ipynb#cell-id=a-number-without-a-spread) does it properly).

# %% tags=["hide-input"]
number(
    "Compiling takes 40 s. A training step takes 100 ms, compiled 80 ms. After how many steps has it paid?",
    2000,
    unit="steps",
    why="20 ms a step; 40 s are 2,000 of those.",
    wrong={500: "40 s divided by 80 ms: but a step doesn't save 80 ms, it saves 20.", 400: "Per step the difference counts, 20 ms, and not the step."},
)

# %% [markdown]
# ### How to look, anywhere
#
# This course's helpers only save you typing. On your own code, with nothing but PyTorch:
#
# | here | anywhere |
# |---|---|
# | `captured` | a backend that keeps its graph; `TORCH_LOGS=graph_code` |
# | `kept` | `TORCH_LOGS=guards,bytecode` |
# | `replay`, and its view | `TORCH_LOGS=recompiles`; a backend that counts |
# | `witnesses` | `TORCH_LOGS=graph_breaks` |
# | `split` | `TORCH_LOGS=aot_joint_graph,aot_graphs` |
# | `written` | `TORCH_LOGS=fusion,output_code`; `run_and_get_code` |
# | all of it, in a folder | `TORCH_COMPILE_DEBUG=1` |
#
# The last but one is for the text of what was really built and is run. `TORCH_LOGS=output_code python your_script.py` prints it, and so does `torch._logging.set_logs(output_code=True)` in a notebook. Printing is for eyes. To do something with the text, catch it on its way: PyTorch's logs are those of Python's `logging`, and a *handler* that hangs on the logger gets each message whole.
#
# **Predict.** The compiled `rms` is called, and called again. Then the process forgets it, and it is called once more, while its code still lies on the disk. After which calls is a module logged?

# %%
import logging


class FirstLines(logging.Handler):
    """Prints the first line of each message, and how many lines follow it."""

    def emit(self, record):
        first, *more = record.getMessage().splitlines()
        print("   ", first.partition(":")[0], "and", len(more), "lines")

# %%
speaks, quick = logging.getLogger("torch._inductor"), torch.compile(rms)
torch._logging.set_logs(output_code=True)
speaks.handlers = [FirstLines()]  # in place of torch's own handler, which prints everything
try:
    for what in ("called", "called again", "forgotten, and called"):
        print(what)
        if what != "called again":
            torch._dynamo.reset()
        quick(x)
finally:
    speaks.handlers.clear()
    torch._logging.set_logs()  # silent again, and torch's handlers as they were

# %% [markdown]
# After the first and the third. What the process remembers is not compiled, and nobody says a word. What comes from the disk is logged as if it had been written just now. So whoever wants the text of a certain call lets the compiler forget first. The short messages that follow a module say where its file lies: it is the caches' folder once more, and you may as well read it there. Only, a file's name is a hash, and the folder is for all calls: it doesn't say whose the file is.
#
# And look at `finally`. A log that stays on, a variable of the environment that stays set, a function of torch's that stays exchanged: each makes another's afternoon strange, most of all after an error, when nobody comes to the line that would have switched it off.
#
# PyTorch's own tests have all of this in one function. `run_and_get_code` forgets, exchanges the function that is handed each module, calls whatever you give it, puts everything back, and returns the result and the texts:

# %%
from torch._inductor.utils import run_and_get_code

result, texts = run_and_get_code(torch.compile(rms), x)
print(
    [line.split()[0] for text in texts for line in text.splitlines() if "async_compile.cpp" in line]
)

# %% [markdown]
# Only what has been compiled by the end of the call is among them, and a backward is compiled when somebody first goes back. `TORCH_COMPILE_DEBUG=1` leaves the same texts in a folder, `torch_compile_debug`, with the graphs that came before them; but here a cache is silent, and of what lies on the disk already there is nothing in that folder.

# %% [markdown]
# ## The finished step, read
#
# **Solve the lab before you read on.** Then look at what becomes of MiniGPT's LM head in both forms, with PyTorch's softmax and with [phase 05](05_custom_op.ipynb#cell-id=the-finished-softmax-read)'s operator, behind the same temperature.

# %%
from utils.softmax import softmax


def head_plain(hidden, weight, bias, heat):
    logits = F.linear(hidden, weight, bias)
    return torch.softmax(logits * heat, dim=-1)


def head_op(hidden, weight, bias, heat):
    logits = F.linear(hidden, weight, bias)
    return softmax(logits * heat)


weights = [model.lm_head.weight.detach(), model.lm_head.bias.detach(), torch.tensor([2.0])]
fusion_map(
    {"torch.softmax": head_plain, "our operator": head_op},
    torch.randn(2048, 64),
    *weights,
    device="cuda",
    version=2,
)

# %% [markdown]
# An operator is a wall. The compiler plans around `open_the_hood::softmax` and never looks inside, just as you asked in [phase 05](05_custom_op.ipynb#cell-id=what-pytorch-asks-of-an-operator); so the multiplication before it, which could have been done while the row was in registers, is a pass of its own: a read and a write of all logits more. PyTorch's softmax is decomposed, fuses with what stands before it, and becomes one kernel.
#
# That was a described GPU. On a real one, [phase 05](05_custom_op.ipynb#cell-id=how-fast-can-it-be)'s H100, the LM head with a softmax behind it (and no temperature) was compiled in both forms, forward and backward, and what Inductor wrote there was kept. **Predict.** What are the steps of its `call`, in either form? And in which line do you see that memory is used twice?

# %%
from utils.instruments import records

record = records.load("nvidia-h100-80gb-hbm3")
print(f"{record.gpu}, torch {record.provenance['torch']}, {record.provenance['date'][:10]}")
for name in ("torch", "operator"):
    for direction in ("forward", "backward"):
        text = record.text(record.result("inductor")[f"{name} {direction}"]["file"])
        steps = text[text.index("def call(") : text.index("runner =")].splitlines()
        print(f"\n{direction}, {'our operator' if name == 'operator' else 'torch.softmax'}")
        for step in map(str.strip, steps):
            if not step.startswith("#") and any(
                word in step for word in ("empty", "extern", ".run", "ops.", "reuse")
            ):
                print("   ", step.split("(")[0])

# %% [markdown]
# The product is the library's in both, `extern_kernels.addmm`. Behind it stands one Triton kernel, which works on the product's own memory (`buf3 = buf0`); or it is our operator, by its name, and it makes room for a result of its own: a schema that returns a plain `Tensor` promises new memory, so nothing can be reused. Behind the box there are two asserts. The compiler has planned with the shape and the strides that the *fake* promised; here it looks whether they came. The backward has the wall in it as well, and around it the same steps in both: two products, for the gradients of input and weight, and a sum for the bias's.
#
# And how fast? By count of bytes the compiler's softmax moves 2 N, as ours does. **Predict.** What is its time on the H100, in shares of ours?

# %%
cases = record.result("softmax")["cases"]
kinds = [
    (direction, dtype) for direction in ("forward", "backward") for dtype in ("float32", "float16")
]
print("compiled : ours   ", *(f"{direction} {dtype:8}" for direction, dtype in kinds))
for rows, columns in ((65_536, 600), (8_192, 4_096), (4_096, 32_768), (1_024, 131_072)):
    shares = []
    for direction, dtype in kinds:
        asked = {"rows": rows, "columns": columns, "dtype": dtype, "direction": direction}
        (case,) = (one["timings"] for one in cases if asked.items() <= one.items())
        shares.append(case["compiled"]["seconds"] / case["triton"]["seconds"])
    print(f"{rows:6,} × {columns:7,}  ", *(f"{share:16.2f}" for share in shares))

# %% [markdown]
# At MiniGPT's width they are alike, to 4 %, and so is nearly every backward. But a forward over long rows in half precision takes the compiler's kernel about one and a half times as long. **Predict.** Ask the text: how often does it load a row of 600, and one of 4,096?

# %%
for columns in (600, 1024, 1025, 4096):
    logits = torch.randn(8192, columns, dtype=torch.float16)
    text = written(lambda x: torch.softmax(x, -1), logits, device="cuda")[0].code
    print(
        f"{columns:5,} columns: loads: {text.count('tl.load(')}, loops: "
        f"{text.count('for r0_offset')}"
    )

# %% [markdown]
# There is the rule of thumb that you were to remember. Beyond 1,024 Inductor no longer keeps a row: it runs the online softmax of [phase 05](05_custom_op.ipynb#cell-id=one-pass-or-three), and reads everything a second time. Mostly that comes out of a cache, so by count of bytes from *memory* nothing is lost, and in float32, at 4,096, nothing is lost in time. With half the bytes to wait for, it doesn't hide any more. Ours keeps a half-precision row of 4,096, and of up to 16,384, by taking more warps. Beyond that it loops as well, though it begins its second walk at the end of the row, where the caches are warm. (Keep in mind that the text above is by your version of the compiler, and the times by an earlier one.)
#
# So a kernel of one's own pays where the compiler finds nothing as good: online softmax inside attention, a quantized product, a loss that never writes its logits; and, this year, a plain softmax of long rows. For MiniGPT's the compiler's is as good as ours, and better as soon as something stands before it. That is worth knowing, too; and you can now read both.

# %% tags=["hide-input"]
choice(
    "Logits of (8192, 600) in float32 are multiplied by a number, and a softmax follows. It is compiled for a GPU. Which form is faster, if time is bytes?",
    {
        "with our operator, which has fewer lines of text around it": "Look at the map once more: what stands before the operator is a kernel of its own.",
        "with torch.softmax, about twice": "One pass reads and writes, 2 N. With the operator the multiplication reads and writes, and then the softmax does: 4 N.",
        "they are alike, as in the first row of the table": "There nothing stood before the softmax, so there was nothing that could be fused with it.",
    },
    answer="with torch.softmax, about twice",
)

# %% [markdown]
# ## What you can now do
#
# [The lab](../release/06_compile/06_compile.ipynb) of this phase asks you to do it:
#
# - write a backend that reports what it was given;
# - predict how many graphs a series of calls makes;
# - mend functions that break, so that they are one graph without being asked for it;
# - write a backend that finds every form of softmax and replaces it where that is safe;
# - read a joint graph: what is saved, what is computed again;
# - fuse a toy graph, and say what must be written to memory;
# - get the modules that Inductor wrote for a call of yours, and leave nothing switched on;
# - read a module that Inductor wrote: launches, library calls, memory that is reused;
# - compile MiniGPT's LM head, with your operator inside, forward and backward.
#
# And you can answer the question. It takes a graph and constants; it believes its guards; it writes a loop for each group of operations that can share one, and calls libraries for the rest. When it stops, the log says so, and nobody else does.

# %% [markdown]
# ## What this phase leaves out
#
# - **Time**, measured properly: [phase 09](09_profiling.ipynb#cell-id=a-number-without-a-spread). CUDA graphs (`mode="reduce-overhead"`), which spare the launches, take a GPU; [phase 09](09_profiling.ipynb#cell-id=fewer-larger-later) has MiniGPT's step with and without them, as the H100 timed it.
# - **The optimizer**: its step is a function of tensors like any other, and can be compiled as well.
# - **Autotuning** (`mode="max-autotune"`): products of matrices from several templates, chosen by trying; those in Triton take a GPU.
# - **`torch.export`**: the same tracer, without Python beside it: one graph or nothing.
# - **Higher-order operators** (`torch.cond`, `while_loop`, flex attention), with which a graph can hold a branch.
# - **Compiled autograd**, which traces the backward when it runs.

# %% [markdown]
# ## Sources
#
# - J. Ansel and others, "[PyTorch 2: Faster Machine Learning Through Dynamic Python Bytecode Transformation and Graph Compilation](https://doi.org/10.1145/3620665.3640366)", ASPLOS 2024.
# - PyTorch's documentation: "[torch.compiler](https://docs.pytorch.org/docs/stable/user_guide/torch_compiler/torch.compiler.html)", above all "[Dynamo Deep-Dive](https://docs.pytorch.org/docs/stable/user_guide/torch_compiler/torch.compiler_dynamo_deepdive.html)", "[Dynamic Shapes](https://docs.pytorch.org/docs/stable/user_guide/torch_compiler/torch.compiler_dynamic_shapes.html)", "[The programming model of torch.compile](https://docs.pytorch.org/docs/stable/user_guide/torch_compiler/compile/programming_model.html)" and "[torch.fx](https://docs.pytorch.org/docs/stable/fx.html)".
# - J. Reed, Z. DeVito and others, "[torch.fx: Practical Program Capture and Transformation for Deep Learning in Python](https://arxiv.org/abs/2112.08429)", MLSys 2022.
# - H. He, "[Min-cut optimal(*) recomputation (i.e. activation checkpointing) with AOTAutograd](https://dev-discuss.pytorch.org/t/min-cut-optimal-recomputation-i-e-activation-checkpointing-with-aotautograd/467)", PyTorch developer forum, 2022.
# - The source of what is used here: [`torch/_dynamo/symbolic_convert.py`](https://github.com/pytorch/pytorch/blob/v2.13.0/torch/_dynamo/symbolic_convert.py), [`torch/_functorch/partitioners.py`](https://github.com/pytorch/pytorch/blob/v2.13.0/torch/_functorch/partitioners.py), [`torch/_inductor/scheduler.py`](https://github.com/pytorch/pytorch/blob/v2.13.0/torch/_inductor/scheduler.py) and [`codegen/`](https://github.com/pytorch/pytorch/tree/v2.13.0/torch/_inductor/codegen).
