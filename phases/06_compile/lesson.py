# ---
# jupyter:
#   kernelspec: {display_name: Python 3, language: python, name: python3}
#   open_the_hood: {title: "torch.compile"}
# ---

# %% [markdown]
# # torch.compile
#
# One line, and the same Python runs faster. Between that line and the machine there are a tracer, an optimizer and an emitter. Each of them makes something that you can print: a graph, two graphs, and a text in C++. This lesson opens all three.
#
# It takes about two and a half hours. You need [phase 02](02_autograd.ipynb#cell-id=a-layer-only-has-to-know-one-product)'s vector-Jacobian products, [phase 04](04_dispatcher.ipynb#cell-id=a-call-is-a-look-up)'s operators, and [phase 05](05_custom_op.ipynb#cell-id=one-program-one-row)'s row kernels. If a paragraph begins with **Predict**, decide on an answer before you look below it. Nothing here is graded, and everything here is used in the lab.
#
# You need a C++ compiler and Python's header `Python.h`, because `torch.compile` writes C++. The last row of [lesson 00](00_hello.ipynb#cell-id=which-python-which-pytorch-which-device)'s picture shows whether you have both. If one is missing, each cell that needs it prints the command that installs it. You need no GPU: the compiler can write code for a GPU that is only described, and the times on a real GPU, an H100, were recorded. (That needs Triton, which has no build for macOS: there you can only read two of the sections.)

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
    """Compute on one thread, because then the times of short calls vary less."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)

# %% [markdown]
# ## Where we are

# %%
course_path(PHASES, here=6)

# %% [markdown]
# In [phase 05](05_custom_op.ipynb#cell-id=one-pass-or-three) you fused a row by hand: one kernel where there had been five. Now a compiler does it. When does it fuse, when doesn't it, and how do you find out?
#
# This has a history. In Theano and the first TensorFlow you first *described* a computation, and numbers ran through it later. So there was a whole graph to optimize, but you could not print a tensor in the middle or use a Python `if`. PyTorch runs each line at once. Autograd records its graph while the lines run, and throws it away after the backward ([phase 02](02_autograd.ipynb#cell-id=a-graph-made-anew-each-time)). That is *define by run*, and it is why you could follow everything so far with `print`. This phase wants both. The program stays Python, but a tracer follows it and writes down a graph and everything that it assumed.

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
# MiniGPT writes word by word. A colleague wants it to begin boldly and to end carefully. So a *temperature*, which falls with every word, divides the logits. The module itself counts the words.

# %%
START = 2 + random.random() / 100  # new in each run, so no earlier compilation fits


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
# She has read that `torch.compile` takes a moment at the first call and is fast from then on. So she adds the one line, and times twelve words.
#
# **Predict.** The first call compiles. How long will each of the other eleven take, compared with the uncompiled module? (The cell runs for a quarter of a minute, or for a whole minute on a slow machine.)

# %%
def milliseconds(head, words=12):
    """The time of each call in milliseconds, and what the calls return."""
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
# Not only the first call compiles. The first eight do, and each starts from the beginning. That costs seconds for a word that takes a fraction of a millisecond. From the ninth call on, nothing is compiled any more. The module is then no faster than before, and may be slower, because eight compiled versions are tried first. Are the values at least right?

# %%
print("all twelve right:", all(torch.allclose(a, b, atol=1e-6) for a, b in zip(values, expected)))

# %% [markdown]
# All twelve are right, so a test of values would pass. In a loop of ten thousand words the lost seconds disappear in the average. You have a module that claims to be compiled, but isn't.
#
# > **What does the compiler take from my function? What does it believe when it uses that again? What does it write? And how do I find out that it has stopped?**

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
# The first machine is **Dynamo**. It works inside Python's interpreter, just before a function's *bytecode* runs. It does not run the bytecode. It follows the instructions one by one, with tensors that have a shape but no numbers, and writes down each operation on a tensor. Then it gives Python a new bytecode in place of yours.
#
# The next cell uses two helpers of this course. `captured(f, x)` calls `f(x)` and returns the graphs that Dynamo made. `kept(f)` returns what Dynamo keeps for each graph: the new bytecode, and the conditions for its use.
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
# None. Only a call of `__compiled_fn_…` with x is left. (Names for timing and for unpacking results are left out here.) Python no longer looks up `pow` or `rsqrt`.
#
# Dynamo's result is a graph of PyTorch's functions and methods, as you wrote them.

# %%
print(graph.graph)

# %% [markdown]
# The second machine is **AOTAutograd**: *ahead of time*. It sends fake tensors through Dynamo's graph, through autograd and through the dispatcher of [phase 04](04_dispatcher.ipynb#cell-id=listening-in), and listens at the bottom. There it records operators of `aten`. If a gradient will be needed, it records the backward as well, before the forward has run once. So its result is two graphs.

# %%
parts = split(rms, x.clone().requires_grad_())
for name, part in (("forward", parts.forward), ("backward", parts.backward)):
    print(f"{name:9}", *(node.name for node in part.nodes if node.op == "call_function"))

# %% [markdown]
# The third is **Inductor**. It turns the operators into loops, merges loops where it can, and writes a text: C++ for this machine, Triton for a GPU. (`split` and `written` are two more helpers. Like `captured`, each runs the compiler up to one of the three machines and returns what that machine made.)

# %%
text = written(rms, x)[0].code
print(len(text.splitlines()), "lines, and in them one kernel:")
print(*(line.split()[0] for line in text.splitlines() if "async_compile.cpp" in line))

# %% [markdown]
# The kernel's name says what is in it: all five operations. We read it below. A *backend* is the function that gets Dynamo's graph. `"inductor"` runs the last two machines, `"aot_eager"` runs only the second, and `"eager"` runs neither of them. Any function may be a backend.

# %% tags=["hide-input"]
choice(
    "A function is compiled with `backend=\"eager\"`. Which part of the compiler's work is done?",
    {
        "none: it is plain eager mode": "Dynamo still follows the bytecode, makes a graph and guards it. But the graph then runs operator by operator.",
        "Dynamo's: a graph is captured and guarded": "That helps to find which of the three machines is to blame: if `eager` fails, the fault is in Dynamo. If `eager` works and `aot_eager` fails, it is in AOTAutograd. If both work, it is in Inductor.",
        "everything but C++": "That is more like `aot_eager`. `eager` stops one machine earlier, before there is a backward.",
    },
    answer="Dynamo's: a graph is captured and guarded",
)

# %% [markdown]
# ## A graph is data
#
# A backend takes a graph and example inputs, and returns something that can be called. The smallest useful backend only reads the graph:

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
# There are four kinds of nodes here. (FX has two more, for submodules and for a module's attributes; Dynamo mostly turns those into inputs.) A `placeholder` is an input, `output` is what the graph returns. A `call_function` calls `node.target`, which is a Python function such as `torch.rsqrt` or `operator.mul`. And a `call_method` calls a method of its first argument. Its target is a *string*, such as "pow". (A node's *name* is something different. Dynamo takes it from the result's variable, such as `mean`, or makes it up, such as `pow_1`.)
#
# `node.args` and `node.kwargs` contain a node's arguments. If an argument is the result of another node, the argument is that node itself. `node.users` contains the nodes that read this node. `node.meta["example_value"]` is a fake tensor: it has a shape, a dtype and strides, but no numbers.
#
# A graph can be changed like any list. Suppose somebody has written the norm with a root and a division:

# %%
def slow_rms(x):
    mean = x.pow(2).mean(-1, keepdim=True)
    return x * (1 / torch.sqrt(mean + EPS))


print(captured(slow_rms, x)[0].graph)

# %% [markdown]
# `1 / sqrt(v)` is `rsqrt(v)`, so one node can replace two. Here is a rewrite that finds the two. Read what it checks before it acts.

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
# The new node is made *before* the one that it replaces, because a graph's nodes are in the order in which they run. Then every reader of the old node is changed to read the new node. After that, nothing reads the old nodes.
#
# Here is the graph before and after. **Predict.** Which node will read `rsqrt`, and what becomes of `sqrt`?

# %%
before, after = captured(slow_rms, x)[0], captured(slow_rms, x)[0]
print("replaced:", use_rsqrt(after))
graph_rewrite(before, after)

# %% [markdown]
# One more line would make it a backend. But does it find every form? **Predict.** Each of these functions contains `1 / sqrt(v)` in some form. In which does the rewrite find something? And where is a `sqrt` left afterwards?

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
# A method's target is a string, so the test `is torch.sqrt` is never true for it. A power is a different function. So the rewrite misses two of the four forms. That is harmless: a missed form is only as slow as before. But to replace too much would be a mistake. In `shared` a second reader still needs the root. `eliminate_dead_code` keeps it, because it removes only nodes that nothing reads.
#
# So a rewrite needs two lists: all forms of the pattern, and all conditions for a safe replacement. In the lab you write one for softmax, which reaches a graph in four forms.
#
# There is one more trap. Besides its graph, a `GraphModule` keeps the Python code generated from it, `gm.code`. **Predict.** Two backends turn `+` into `−` and forget `recompile()`. One of them first reads `gm.code`. What does each return for `f(x) = x + 1`, if x is 1?

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
# The backend that read `gm.code` runs the old code. The code is generated from the graph when something first asks for it. So always call `recompile()` after an edit.

# %% tags=["hide-input"]
choice(
    "`F.softmax(x, dim=-1)` and `x.softmax(-1)` are in one graph. Where does a rewrite find their dimension?",
    {
        "in `node.args[1]` of both": "That is right for the second call: its args are (x, -1). But the first call used a keyword, and FX records a call as it was made.",
        "in `node.kwargs[\"dim\"]` of the first, in `node.args[1]` of the second": "`torch.softmax(x, -1)` has it by position, too. So a rewrite must look in both places.",
        "in `node.meta`": "`node.meta` has the shape of the result, and that is the same for every dimension.",
    },
    answer="in `node.kwargs[\"dim\"]` of the first, in `node.args[1]` of the second",
)

# %% [markdown]
# ## Guards: what a graph believes
#
# The graph was made for one call. May the next call use it, too? Dynamo writes down every fact on which it relied, and checks it before each later call. These checks are the *guards*.
#
# **Predict.** The graph of `rms` was captured with x of shape (2048, 600). Name five things that must be the same in the next call.

# %%
captured(rms, x)
for kind, what in kept(rms)[0].checks:
    if not kind.startswith("DIMENSION"):
        told = f"{kind:26} {what.replace('DispatchKeySet', '')}"[:220]
        print(textwrap.fill(told, 110, subsequent_indent=" " * 27))

# %% [markdown]
# The long line about x lists properties that you know: its dispatch keys ([phase 04](04_dispatcher.ipynb#cell-id=keys-of-a-tensor)), its dtype, whether it requires a gradient, and its sizes and strides ([phase 01](01_tensors.ipynb#cell-id=strides-how-far-is-one-step)). `GLOBAL_STATE` contains settings that no argument shows: whether gradients are recorded, autocast, the number of threads. Your globals are checked, too: `torch.rsqrt` must still be the same object, and `EPS` must still be 10⁻⁶. The value of `EPS` is a constant in the graph, and 600 will be a constant in the generated code.
#
# If a guard fails, Dynamo compiles another version, and keeps both. **Predict.** `rms` gets 3, 4, 5, 1, 0 and 7 rows of 6 numbers, one after the other. How many graphs are there at the end?

# %%
rows = {f"{n} row{'s' * (n != 1)}": (torch.randn(n, 6),) for n in (3, 4, 5, 1, 0, 7)}
guard_counter(rms, rows, call=4)

# %% [markdown]
# Four. The first graph is for exactly 3 rows. When 4 rows arrive, Dynamo has learned that this size changes. So it makes a graph for *n* rows, where n is a symbol. The calls with 5 and with 7 rows use this graph. The calls with 1 and with 0 rows can't use it. Look at the reason: the symbolic graph believes that n ≥ 2.
#
# A dimension of size 1 *broadcasts*: with n = 1 the same line may mean a different operation. A dimension of size 0 has no elements, so reductions differ. So by default these two sizes are constants, and each gets its own graph.

# %% tags=["hide-input"]
number(
    "A data loader gives batches of 32, and then a last batch of 7. Then evaluation uses batches of 64, and at the end somebody tries a single sentence. How many graphs does one compiled function have in the end?",
    3,
    why="The first graph is for exactly 32. With 7 the size becomes a symbol, and 64 uses the same graph. A size of 1 is always a constant.",
    wrong={4: "The batch of 64 uses the graph that was made for 7, because the size is a symbol in it.", 2: "A batch of one never shares a graph with others: sizes 0 and 1 are constants.", 1: "In the first graph the size is a constant, so a second size needs a second graph."},
)

# %% [markdown]
# If a size will change, say so with `torch._dynamo.mark_dynamic(x, 0)`. Then the first graph is already symbolic. (`dynamic=True` makes as much as possible symbolic.)
#
# What about numbers that aren't sizes? **Predict.** For each line that the next two cells print: how many graphs are there after each call?

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
# Ints and floats are like sizes: the first value is a constant, and with the second value the number becomes a symbol. (For an int that is not a size, the symbol also stands for 0 and 1.) A string never becomes a symbol: every string has its own graph. So has every dtype, every rank and every kind of strides, and so have tensors with and without a gradient.
#
# Back to the opening. `self.words` is an int, and yet each word had its own graph. Let us look at the guards. **Predict.** Under which condition would the first graph accept the tenth word? And which graph does accept it?

# %%
words = {f"word {n}": (hidden,) for n in range(1, 13)}
guard_counter(CoolingHead(model.lm_head), words, call=10)

# %% [markdown]
# Dynamo expects that an int argument changes. But for Dynamo an int *attribute of a module* is part of the architecture, like a number of heads. So it is a constant: `self.words == 0`, `== 1`, `== 2`. Each word failed the guards of all earlier versions.
#
# Dynamo makes at most eight versions of one function. A call that fits none of them runs your Python, as if there were no compiler. Here that is every call from the ninth on. Dynamo says so only once, in a log to which most training scripts write a thousand lines. So nobody notices. In the opening this page caught the message and did not print it. Here it is:

# %%
print(len(log), "message:")
print(*(line.split("  #")[0].rstrip() for line in log[0].splitlines()[:3]), sep="\n")

# %% [markdown]
# Here are four ways to fix it. How many versions does each need? **Predict** before you run it.

# %%
class Cooling(nn.Module):
    """CoolingHead, which keeps its temperature in one of four ways; `how` says which."""

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
# One graph or two. Oddly, a float attribute may change, but an int attribute may not. And a tensor is not a constant: Dynamo doesn't look at its numbers, so it can believe nothing about them. (There is one exception, in the next section.) If a number changes in every step, make it a tensor or an argument.
#
# And make Dynamo speak. `TORCH_LOGS=recompiles` prints the reason for every recompilation. In a training script an error is even better: the next cell forbids any further compilation.

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
    "A compiled function is called under `torch.no_grad()`, then without it, then under it again. The tensors are alike in all three calls. How many graphs are there?",
    {
        "1: the numbers are the same": "The numbers are the same, but the work isn't: without `no_grad` a backward may be needed. So GLOBAL_STATE includes the grad mode.",
        "2": "One for each grad mode. The third call finds the first graph again, because versions are kept.",
        "3": "The first version still exists, so the third call uses it again.",
    },
    answer="2",
)

# %% [markdown]
# ## A step that compiles once
#
# A model that writes is called once for each word. If it reads the whole text each time, every call has a new size. A *KV cache* ([phase 08](08_transformer.ipynb#cell-id=one-token-at-a-time)) keeps keys and values, so a step reads only one word. But the usual cache grows by one place in each step, so its size is new, too.
#
# Here is a small loop of this kind. Each call gets one new row, and returns the largest number of each column so far. The first function appends the row to the old rows. The second function has room for eight rows from the beginning, writes the new row at its place, and hides the places after it.

# %%
def appends(rows, new):
    rows = torch.cat([rows, new])
    return rows.amax(0)


def writes(rows, new, place):
    rows[place] = new
    seen = torch.arange(len(rows)) <= place
    return rows.masked_fill(~seen[:, None], -torch.inf).amax(0)

# %% [markdown]
# The place can come in three forms: as an int, as a tensor with one dimension, or as a tensor with none. **Predict.** How many graphs are there after each of six calls, for each of the four ways?

# %%
new, six = torch.randn(6, 3), range(6)
room = torch.zeros(8, 3)
steps = {
    "appended": (appends, [(new[:n], new[n : n + 1]) for n in six]),
    "place 2": (writes, [(room, new[n], n) for n in six]),
    "place tensor([2])": (writes, [(room, new[n], torch.tensor([n])) for n in six]),
    "place tensor(2)": (writes, [(room, new[n], torch.tensor(n)) for n in six]),
}
for way, (function, given) in steps.items():
    print(f"{way:17}", [answer.graphs for answer in replay(function, given)])

# %% [markdown]
# Rows that are appended need three graphs: for no row, for one row, and for *n* rows. An int needs two, and in the second it is a symbol. A tensor with one dimension needs one graph, because Dynamo knows nothing about its number. And a tensor without dimensions is the worst: there is a new graph for every place. As an index, such a tensor stands for its number. To follow the line, Dynamo reads this number, and guards it:

# %%
print(replay(writes, steps["place tensor(2)"][1][:2])[1].refusals[0])

# %% [markdown]
# So a step that compiles once needs three things. Its memory has its full size from the beginning. The place is a tensor with a dimension (`index_copy_`, which takes an index only in this form, works as well). And places that were not yet written are hidden. Nothing in such a graph changes but numbers in tensors. So its launches can also be recorded as a CUDA graph, and replayed for every word.
#
# This has a price: each step computes with all places, empty ones included. And there is a trap. A parameter requires a gradient, so a key that is computed from it does, too. If you write this key into the cache, the cache requires a gradient from then on, and for a guard it is another kind of tensor. Under `torch.no_grad()` that doesn't happen.

# %% tags=["hide-input"]
choice(
    "An attention with a cache of 32 places reads the fifth word. The other 27 places contain zeros, and nothing hides them. What happens?",
    {
        "nothing: a key of zeros gets the score 0, so it gets no share": "A softmax gives every score a share. The score 0 has the weight exp(0) = 1.",
        "each empty place gets a share, so the others get too little": "Each empty place has the weight exp(0) = 1 before the division. Its value is 0, so the sum of the values becomes too small. Only a score of −inf has the weight 0.",
        "the softmax returns NaN": "NaN comes only if *all* places are hidden. Here none is.",
    },
    answer="each empty place gets a share, so the others get too little",
)

# %% [markdown]
# ## When it breaks, and who says so
#
# Dynamo follows the bytecode with tensors that have no numbers. What if the program asks for a number?
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
# In all six. But Dynamo does not fail. It ends its graph, and lets Python do the next step with real tensors. Then it begins a new graph, in a function that it makes itself and that *resumes* yours. That is a **graph break**. The values are right. But the compiler sees two halves, and everything that one half passes to the other goes through memory.
#
# Five witnesses claim to know whether a graph broke. They are the number of graphs that a backend gets; `torch._dynamo.explain`; the statistics in `counters`; `fullgraph=True`, which demands one graph and otherwise raises an error; and the log.

# %%
def witnesses(function):
    """What five witnesses say about the breaks in function(x)."""
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
# Only the log is right about all six. Here are all five witnesses:
#
# - **The number of graphs** is 1 for `lists` and `draws`, although both break. But before the break there is no operation on a tensor, and Dynamo never makes an empty graph.
# - **`explain`** counts graphs and subtracts one. So it is wrong about the same two functions.
# - **The counters** don't count the break in `branches`.
# - **`fullgraph=True`** raises no error for `items` and `selects`. It isn't wrong: under `fullgraph` Dynamo *doesn't break there*. It works harder, and makes symbols of numbers that will be known only at run time. Without `fullgraph`, it breaks. So your test finds one graph in a program that has two for your users.
# - **The log** has a message for every break. The message names the place, mostly with a hint.
#
# So to learn *whether* a graph breaks, look at the log, `TORCH_LOGS=graph_breaks`. To learn what a break *costs*, count the graphs that a backend sees. A break before the first operation costs almost nothing. A break in the middle of the work costs everything that the two halves can't share.

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
# This bytecode calls the first compiled function, then `print`, then `__resume_…`. This last function is the rest of yours, and it is itself traced, guarded and compiled.
#
# To fix a break, express with tensors what you expressed with Python. A branch that chooses between two *values* becomes a `torch.where`: both are computed, and one is taken. This has one trap, in the backward. **Predict.** `safe` avoids the root of a negative number. What is its gradient at −1?

# %%
def safe(v):
    return torch.where(v > 0, v.sqrt(), 0.0)


v = torch.tensor([4.0, -1.0], requires_grad=True)
safe(v).sum().backward()
print(safe(v).detach().tolist(), v.grad.tolist(), "in", len(captured(safe, v)), "graph")

# %% [markdown]
# NaN. Both sides are computed, and both are differentiated. The side that wasn't taken gets the gradient 0. But the root of a negative number has the slope NaN, and 0 times NaN is NaN. So limit the input as well: with `v.clamp(min=…)` under the root, neither side ever gets a number that it can't handle.

# %% tags=["hide-input"]
choice(
    "A training step has `loss.item()` in its middle, for a progress bar. It is compiled without `fullgraph`. What is the cheapest fix?",
    {
        "`fullgraph=True`, which makes it one graph": "It does make it one graph, but the graph then waits for the number in each step. And a colleague who compiles it without the flag has two graphs again.",
        "`torch._dynamo.disable` around the step": "That fixes nothing: the step isn't compiled any more.",
        "return the loss, and take the number outside": "The graph stays whole. The progress bar waits for the number, but the step doesn't. And it is enough to show the loss after every tenth step.",
    },
    answer="return the loss, and take the number outside",
)

# %% [markdown]
# ## One graph for every length
#
# `torch.compile` needs Python. If a guard fails, Dynamo compiles again, and between two graphs Python runs. What if the model goes to a phone, or into a C++ server? There is no Python there, so nothing can be compiled again. One graph must be enough, for all inputs that will ever come.
#
# `torch.export` makes this graph ahead of time. Its result is a *program*: a graph of `aten` operators, the weights, and conditions for the inputs. We begin with the module of the opening. **Predict.** The program is called for four words. Which temperatures does it use?

# %%
from torch.export import Dim, export

program = export(CoolingHead(model.lm_head), (hidden,))
with torch.no_grad():
    for who, run in {"Python": CoolingHead(model.lm_head), "program": program.module()}.items():
        print(f"{who:8}", [f"{run(hidden).max():.3f}" for word in range(4)])
for node in program.graph.nodes:
    if node.op == "call_function":
        print(node.name, node.args)

# %% [markdown]
# Four times the same one. Compiled, this module needed a new graph for each word, because a guard noticed the new number. A program has no guards on Python's values. So whatever Python computed while it was traced is a constant now: the temperature of the first word. Nobody says so. (The fix with a buffer, `Cooling("buffer")`, works here as well: then the count is a tensor, and adding 1 to it is in the graph.)
#
# A size of an input can stay open. `Dim` says which sizes, and how far they may go. MiniGPT has 32 positions. **Predict.** We ask for a program for up to 64 tokens. Who objects: `export`, or the program when it gets a long text, or nobody?

# %%
tokens = torch.zeros(2, 5, dtype=torch.long)
try:
    export(model, (tokens,), dynamic_shapes=({0: Dim("B"), 1: Dim("T", max=64)},))
except Exception as error:
    said = str(error).replace("L['tokens'].size()[1]", "size").splitlines()[1:4]
    print(*(textwrap.fill(line, 100) for line in said), sep="\n")

# %% [markdown]
# `export` objects, and even suggests what to write. How does it know? No text of more than 32 tokens was ever tried. But `MiniGPT.hidden` begins with `if length > context: raise …`. While torch traces, the length is a symbol, T. The example has 5 tokens, so tracing goes on after the `if`. The graph is right only for lengths for which it would go on, and so the condition becomes part of the program: T ≤ 32.
#
# If you write `Dim.DYNAMIC` in place of a name and a limit, torch finds the range itself:

# %%
program = export(model, (tokens,), dynamic_shapes=({0: Dim.DYNAMIC, 1: Dim.DYNAMIC},))
print("the range of each symbol:", program.range_constraints)
calls = [node for node in program.graph.nodes if node.op == "call_function"]
for node in calls[:4]:
    print(f"{node.name:15}", getattr(node.meta["val"], "shape", node.meta["val"]))
for length in (5, 32, 33):
    try:
        print(length, "tokens:", tuple(program.module()(tokens[:, :1].expand(2, length)).shape))
    except AssertionError as error:
        print(length, "tokens:", error)

# %% [markdown]
# The sizes in the graph are symbols, and the program tests its input before it computes. (The ranges begin at 2, because sizes of 0 and 1 are special here as well. If such a size is in the example, it becomes a constant.)
#
# So an `if` on a *size* is decided during tracing, and leaves a limit. An `if` on a *number* in a tensor can't be decided: `export` refuses it. It needs `torch.where`, or `torch.cond`, which puts both branches into the graph.
#
# A third case says nothing at all. `Dim.AUTO` also finds the range itself, but it accepts that a size becomes a constant. **Predict.** Each of these functions gets an x of 5 rows. For which does the length stay open? And which know that the table has 32 rows?

# %%
table = torch.randn(32, 3)


def by_loop(x): return sum(x[t] for t in range(x.shape[0]))
def by_len(x): return x.sum(0) / len(x)
def by_shape(x): return x.sum(0) / x.shape[0]
def by_index(x): return x + table[torch.arange(x.shape[0])]
def by_slice(x): return x + table[: x.shape[0]]

# %%
def rows_of(function, size):
    """The range of x's number of rows in the exported program."""
    module = nn.Module()
    module.forward = function
    try:
        program = export(module, (torch.randn(5, 3),), dynamic_shapes=({0: size},))
    except Exception:
        return "refused"
    return str(*program.range_constraints.values()) or "only 5"


print(f"{'':10}{'AUTO':16}DYNAMIC")
for function in (by_loop, by_len, by_shape, by_index, by_slice):
    print(f"{function.__name__:10}{rows_of(function, Dim.AUTO):16}{rows_of(function, Dim.DYNAMIC)}")

# %% [markdown]
# A loop over the rows is unrolled, so the graph has five rows for ever. `len(x)` does the same, and that surprises most people: Python demands an int from `len`, so torch must replace the symbol by its number, 5. `x.shape[0]` stays a symbol. (By default, `export` runs your Python. With `strict=True` it lets Dynamo follow the bytecode, which takes longer. Then the length stays open in `len(x)`, too.) With `Dim.AUTO` you learn of this only when the first text of another length is refused. So mark a size as `Dim.DYNAMIC`, or name it, if it must stay open. Then `export` refuses.
#
# `by_index` is the other trap. Its program accepts any number of rows. The 33rd row is an error in the middle of the work, because an index is a number, and torch traces no numbers. A slice, or an `if` on the size, tells the program its limit.

# %% tags=["hide-input"]
choice(
    "MiniGPT is exported with one sentence of 5 words, shape (1, 5). Both sizes are `Dim.AUTO`. The program then gets 4 sentences of 9 words. What happens?",
    {
        "it runs: both sizes are open": "The length is open, from 2 to 32. But the example has a batch of 1.",
        "it refuses the batch": "A size of 1 in the example becomes a constant. `Dim.AUTO` accepts that without a word. With `Dim.DYNAMIC`, `export` would have refused.",
        "it refuses the length": "The length of the example is 5, so it stays a symbol. Look at the other size.",
        "it compiles a second graph": "A program can't compile. It runs its one graph, or it refuses.",
    },
    answer="it refuses the batch",
)

# %% [markdown]
# ## Forward and backward in one graph
#
# Eager autograd builds the backward while the forward runs, node by node ([phase 02](02_autograd.ipynb#cell-id=pytorchs-own-graph)). AOTAutograd has forward and backward before anything runs, in one **joint graph**. We now use a norm with a gate, because it has more to save: every number is first multiplied by a factor between 0 and 1.

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
# `primals` are the function's inputs, and `tangents` are the gradients that will come in from above. Three lines of Python became seven operators (and two `alias`, which are second names for existing results). The backward begins at the first operator that reads a tangent. It is the chain rule of [phase 02](02_autograd.ipynb#cell-id=a-layer-only-has-to-know-one-product), written out. It can use everything that the forward computed, such as `sigmoid` and `rsqrt`.
#
# Two more things happened on the way down.
#
# **Decomposition.** Inductor can fuse an operator only if it knows what is inside. So most operators are replaced by simpler ones. **Predict.** `F.layer_norm` is one node for Dynamo. How many operators is its forward in Inductor's graph?

# %%
def normed(x):
    return F.layer_norm(x, (600,))


print(
    *(node.name for node in captured(normed, wide[0])[0].graph.nodes if node.op == "call_function")
)
print(*(node.name for node in split(normed, wide[0]).forward.nodes if node.op == "call_function"))

# %% [markdown]
# **Functionalization.** If a graph writes to tensors, its nodes can't be reordered: it matters whether a node reads a tensor before or after a write. So writes are removed. **Predict.** What is in the graph in place of `x.mul_(2)`, and how does the caller's x still get its new value?

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
# There is a `mul` without its underscore, and its result is returned as a second output. When the graph has run, that result is copied into the caller's x. Inside the graph, nothing is ever overwritten. Later, the emitter may reuse memory again, if the old numbers are no longer needed.

# %% tags=["hide-input"]
true_false(
    "The joint graph is traced, so a Python `if` in a backward (in an `autograd.Function`, say) can be decided again in each step.", False,
    "The backward was traced when the forward was compiled, with tensors that have no numbers. The graph contains only what it did then. A branch on numbers causes a break, or isn't traced at all.",
)

# %% [markdown]
# ## What is saved, and what is computed again
#
# The joint graph must be cut in two, because the loss is computed in between. Everything that the lower half reads from the upper half must be kept in memory: these are the saved tensors. The *partitioner* chooses where to cut.
#
# The plain partitioner keeps everything that the backward reads. **Predict.** Which tensors are these for `gated`? Look at the joint graph above: what do the nodes of the backward read from the forward?

# %%
plain = split(gated, *wide, partition="plain")
print({name: f"{size / 2**20:.2f} MiB" for name, size in plain.saved.items()})

# %% [markdown]
# Inductor's partitioner cuts elsewhere. It looks for the cut with the fewest bytes: a *minimum cut*. If the backward needs a tensor that was not kept, it must compute it a second time. For products and other expensive operations that is forbidden. For pointwise operations it is cheap, because in a fused loop it costs arithmetic but no bytes.
#
# **Predict.** Which of those four tensors will it not keep, and from which tensors will it compute them again?

# %%
cut = split(gated, *wide)
print({name: f"{size / 2**20:.2f} MiB" for name, size in cut.saved.items()})
print("computed again:", *cut.again)

# %% [markdown]
# It keeps the two inputs, which exist anyway, and one number for each row. The backward's loop computes `sigmoid` and the product with x again, from tensors that it reads in any case. (Further down you learn to read such loops; this one is `loops(written(gated, *wide, backward=True)[1].code)`.)
#
# Here is the same for the attention of one block of MiniGPT, on two sequences of 128 words. There is one bar each for eager autograd, the plain cut and the minimum cut. Two more are for smaller *budgets* (`torch._functorch.config.activation_memory_budget`), which allow only a part of those bytes. Below them is what is kept with half of the budget. **Predict.** The largest tensor is the pattern: 128 × 128 weights for each head and sequence. Which of the bars will include it? And what must be kept in its place, so that the pattern can be computed again without the softmax's sums?

# %%
attention = model.blocks[0].attention
saved_bytes(attention, torch.randn(2, 128, 64, requires_grad=True), way=4)

# %% [markdown]
# Here the minimum cut saves the same tensors as eager autograd. A softmax's exponentials are cheap, but a product reads the pattern from memory, and a product is expensive.
#
# With half of the budget the pattern is no longer kept. In its place there are `amax` and `sum_1`: the maximum and the sum of each row of 128 weights. With these and the scores (a product that is computed once more), each weight is `exp(score − maximum) / sum`. Two numbers for each row replace 128. This is the idea of FlashAttention's backward, and here a partitioner found it by counting bytes. With a budget of 0 only the arguments are kept, and the whole forward runs twice. With `torch.utils.checkpoint` you do the same by hand. You pay for memory with time.

# %% tags=["hide-input"]
number(
    "`y = torch.relu(x)` on 1,000,000 float32. The backward needs to know where y is positive. Eager autograd keeps y, 4,000,000 bytes. How many does the minimum cut keep?",
    1_000_000,
    unit="bytes",
    why="It keeps the result of `y <= 0`, one bool for each element. That is one byte in place of four. If the next layer keeps y anyway, it needs no extra byte at all.",
    wrong={4_000_000: "That is y itself. The backward only needs a yes or a no for each element.", 125_000: "A bool in a tensor takes a byte, not a bit."},
)

# %% [markdown]
# ## Fusion, and the code
#
# This is the C++ that Inductor wrote for `rms` on this machine, without casts and braces. (The step of the inner loops, 8 or 16, is the number of floats that fit into one vector register of this machine.)

# %%
print(inspect.getsource(rms))
print(loops(written(rms, x)[0].code))

# %% [markdown]
# Now compare it with your two lines.
#
# `x0` is the row. `#pragma omp for` distributes the rows over the threads, because the rows don't depend on each other, as in [phase 05](05_custom_op.ipynb#cell-id=one-program-one-row). Inside, there are two loops over the 600 columns.
#
# The first loop is your first line. `loadu` reads as many neighbouring numbers as fit into a register. `tmp0 * tmp0` is `pow(2)`, and the addition is the sum in `mean`. There is no tensor of squares. Then `vec_reduce_all` adds up the numbers in the register, and the row's sum is stored: 4 bytes for a row of 2,400.
#
# The second loop is your second line, and it begins by reading x *again*. The division by 600 (the rest of `mean`), the addition of `EPS` and the root work on one number. Five operators became one kernel, and only one tensor of x's size is written: the result.
#
# **Predict.** Let N be the bytes of x. How many N go over the memory bus? [Phase 05](05_custom_op.ipynb#cell-id=one-pass-or-three) counted five N if each operation runs by itself, and three N if a row must be read twice.

# %% tags=["hide-input"]
number(
    "How many N does this loop move between memory and the processor, if a row of 2,400 bytes stays in the first cache (32 KiB or more) between its two readings?",
    2,
    unit="N",
    why="x is read from memory once; the second reading finds the row in the cache. The result is written once.",
    wrong={3: "That counts loads and stores. But at the second reading the cache still has the row.", 5: "That is right if each operation runs by itself."},
)

# %% [markdown]
# So as long as a row fits into the cache, this loop is as good as [phase 05](05_custom_op.ipynb#cell-id=one-program-one-row)'s kernel, which keeps the row in registers. Now run it, with the whole compiler, `g++` included. **Predict.** Is the result the same to the last bit?

# %%
torch._dynamo.reset()
fast_rms = torch.compile(rms)
print("to the bit:  ", torch.equal(fast_rms(x), rms(x)))
print("to rounding: ", torch.allclose(fast_rms(x), rms(x), atol=1e-6))

# %% [markdown]
# The sum is computed in another order: a register has 8 or 16 partial sums, which are added at the end. PyTorch's own kernel adds in yet another order. Both are right, up to rounding. So tests of compiled code need a tolerance.
#
# ### What shares a loop
#
# Two operations can share a loop in two cases. Each element of the second needs only the same element of the first, or it needs only a result of its own row, such as a mean. Such a mean is known when the row's loop ends. **Predict.** What if the mean is taken over the *columns*, or over the whole tensor? Here are three versions of `gated` that differ in one argument.

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
# On the left are your lines, and on the right the loops that they share, with the bytes that they move. With the mean over the columns no row can be finished before the last row has been read. So there must be one loop for the mean and another for the product, with y in memory between them.
#
# And look at the first version. It has two passes, although one loop over the rows could do everything! y is not a result, and yet its 4.9 MB are written to memory and read twice. The text shows it, too: first a loop over all elements that stores y, then the known loops.

# %%
text = loops(written(gated, *pair)[0].code)
print(
    *[line for line in text.splitlines() if "for(" in line or "load" in line or "store" in line],
    sep="\n",
)

# %% [markdown] tags=["printed 1228800"]
# Why? y has two readers, the mean and the product. If it isn't stored, each of them computes it again. Inductor's source has a list of functions that are too expensive for that on a CPU: exp, log, sigmoid, tanh (`should_realize_on_reuse`, in [`torch/_inductor/ir.py`](https://github.com/pytorch/pytorch/blob/v2.13.0/torch/_inductor/ir.py)). And once y is stored, its loop runs over 1,228,800 elements, so it can no longer be merged with the loop over rows.
#
# We can test that. **Predict.** Now the gate is a `clamp` in place of a sigmoid. How many passes are there?

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
# There is one pass, and no y. So the list is only a rule of thumb in a file, and you can go and read it.
#
# Does it matter whether y is stored? In eager mode both versions move 10 N, if N is x's bytes. The compiled code moves 5 N with y, and 3 N without. **Predict.** How much faster does compiling make each of them?

# %%
def fastest(function, *args, seconds=0.7):
    """The shortest time of a call, in ms. Calls are repeated for ``seconds``."""
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
# By bytes alone, compiled code would be twice as fast with the sigmoid, and 3.3 times as fast with the clamp. Times differ between machines, and this page was made on a small and busy one. The gain is smaller if arithmetic takes most of the time, above all exponentials, which fusion does not remove. It is smaller, too, if the tensors fit into the processor's last cache (try `pair`, an eighth as tall). The gain is larger if memory itself is expensive: in every call, eager mode must get memory for its intermediate results, page by page. On one thread and with rows like these, it is mostly larger.

# %% [markdown]
# ### The same for a GPU
#
# Inductor has a second language. For a GPU it writes Triton, which you know from [phase 05](05_custom_op.ipynb#cell-id=one-program-one-row). To *write* the code it needs no GPU, only some figures, which decide how it divides the work. We give it the figures from an H100's data sheet (132 multiprocessors, 65,536 registers each, warps of 32), and fake tensors on that device. You see Inductor's own text, made just now on your machine. It has not run. (Code that Inductor wrote on a real H100 did run. It is at the end of this lesson, with its times.)

# %%
described = written(rms, x, device="cuda")[0].code
kernel = described[described.index("@triton.jit"):described.index("''', device_str")]
print(kernel)

# %% [markdown]
# Compare it with [phase 05](05_custom_op.ipynb#cell-id=half-precision)'s `rms_kernel`. `program_id` chooses the rows, XBLOCK of them at once. The block has 1,024 places for 600 columns. There is a mask with `other=0.0`, a sum in float32, and a store under the same mask. x is loaded **once**: the row stays in registers. Inductor calls that a *persistent reduction*. For rows of more than 1,024 numbers it writes a loop, and reads the row a second time.
#
# Two differences are worth a look. First, the size is in the text as a number, `600*x0`, but our kernel got a stride at run time. So Triton's compiler knows that each row begins at a multiple of 32 bytes. Second, there is no stride of columns: x was contiguous when it was traced, and a *guard* checks that. Your kernel had to work for all strides. This kernel works only for the guarded strides.
#
# Here is the map again, for the GPU. **Predict.** Is y still written to memory?

# %%
fusion_map(versions, *pair, device="cuda", version=1)

# %% [markdown]
# No. There is one pass, and y is never stored. The list of expensive functions is for CPUs. On a GPU arithmetic is so cheap compared with memory that a sigmoid is computed again wherever it is needed. Move to the other versions as well. A mean over everything takes *two* passes, with partial sums first, because programs can't wait for each other. Then a third pass computes y once more from x and the gate.
#
# A data sheet can't decide which configuration (rows per program, warps) is the fastest. Inductor tries some of them on the GPU when a kernel first runs. With a GPU, `TORCH_LOGS=output_code python your_script.py` prints the text of every kernel, and `TORCH_LOGS=autotuning` prints what was tried.

# %% tags=["hide-input"]
choice(
    "`x.softmax(-1).sum(0)`: a softmax of each row, then a sum over the rows. How many passes at least, on a CPU?",
    {
        "one: a row's softmax can be added to a running total at once": "For one thread that would be enough. With several threads, each thread needs its own total, and these totals must be added up afterwards. Inductor doesn't write it that way.",
        "two: the second reduction runs across the rows": "A column's sum is known only after the last row, and its loop runs in the other direction. Between the two passes the exponentials are in memory. They are not yet divided, because the division happens in the second loop. `written` shows it.",
        "four, one for each reduction and each pointwise step": "The parts of the softmax share the row's loop, as the parts of `rms` do.",
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
# Nothing. It calls the same library as eager mode, `extern_kernels.mm`. These lines are from the module's function `call`, in Python again. It makes buffers, calls kernels in order, and passes the memory of old buffers on to new ones.
#
# `buf1 = buf0; del buf0  # reuse` means that the relu's result gets the product's memory. So the relu works in place, although functionalization had removed all writes. They come back where the compiler has *proved* that nothing reads the old numbers any more. And both relus are one kernel, `cpp_fused_relu_0`, which is called twice, because their text is the same.

# %% [markdown]
# ## Layout in the compiler
#
# Strides are guarded, and written into the code as numbers. So what does a transposed tensor do to the code, and what does `contiguous()` do? A helper shows what `call` runs, how many bytes go to memory and come from it, and in how many kernels blocks of numbers are turned around.

# %%
import re


def runs(function, *inputs):
    """Print the bytes that are moved, how many kernels turn blocks, and what `call` runs."""
    made = written(function, *inputs)[0]
    body = made.code[made.code.index("def call(") : made.code.index("runner =")]
    called = re.findall(r"(cpp_\w+|extern_kernels\.\w+)\(", body)
    moved = sum(sum(one.reads.values()) + sum(one.writes.values()) for one in made.passes)
    kernels = made.code[: made.code.index("def call(")].split("async_compile.cpp")[1:]
    turning = sum("transpose_mxn" in kernel for kernel in kernels)
    print(f"{moved / 1e6:5.2f} MB, blocks are turned in {turning} of:", *called)

# %% [markdown]
# First two matrices of the same shape, and one loop. **Predict.** `a` and `b` are contiguous. In which of the four calls must the loop read in two directions at once?

# %%
def joined(a, b):
    return torch.relu(a) + b


def copied_first(a, b):
    return torch.relu(a) + b.contiguous()


a, b = torch.randn(600, 600), torch.randn(600, 600)
for f, *inputs in (
    (joined, a, b),
    (joined, a.t(), b.t()),
    (joined, a, b.t()),
    (copied_first, a, b.t()),
):
    runs(f, *inputs)

# %% [markdown]
# Only in the last two. Inductor orders its loop by the strides, so two transposed matrices are as good as two contiguous ones: it is a flat loop over 360,000 numbers. If the layouts differ, one of the two would be read with steps of 2,400 bytes. So the kernel reads a block of 8 or 16 rows, turns it around in registers (`transpose_mxn`), and goes on. (On a processor without such instructions the count is 0, and the numbers are read one by one.) `contiguous()` in front of it changes nothing: its copy is fused into the same loop, and no byte is moved for it.
#
# Is that always true? Now a library comes after it. **Predict.** The weight of a linear layer is (64, 600), and the product needs it transposed. Which of the two functions moves more bytes?

# %%
def as_it_is(x, w):
    return x @ w.t()


def made_contiguous(x, w):
    return x @ w.t().contiguous()


x600, w64 = torch.randn(64, 600), torch.randn(64, 600)
for f in (as_it_is, made_contiguous):
    runs(f, x600, w64)

# %% [markdown]
# The transposed weight costs nothing, because a library of products takes strides. (In the text it is a `reinterpret_tensor`, the same memory with other strides.) With `contiguous()`, a kernel copies the weight in every call, because a library can't fuse the copy.
#
# For images there are two usual orders: all numbers of one channel together, or all channels of one pixel together, which is `channels_last`. **Predict.** A library computes the convolution. What does Inductor write before and after it, for each order?

# %%
images, kernel = torch.randn(8, 16, 32, 32), torch.randn(16, 16, 3, 3)


def convolved(images, kernel):
    return torch.relu(F.conv2d(images, kernel))


for order in (torch.contiguous_format, torch.channels_last):
    print(str(order).removeprefix("torch."))
    runs(convolved, images.to(memory_format=order), kernel.to(memory_format=order))

# %% [markdown]
# The library for convolutions on this processor works with `channels_last`, and Inductor knows that. So a contiguous image and weight are turned around first, in a kernel that Inductor writes. And the relu's kernel turns the result back, because the caller expects a contiguous one. If image and weight already have the library's order, both turns disappear, and the relu works in place. In a network of many layers, Inductor turns only at the beginning and at the end.
#
# So before you add `contiguous()`, look at the code: in front of a loop it costs nothing and helps nothing, and in front of a library it costs a copy.

# %% tags=["hide-input"]
choice(
    "`torch.relu(x.t()).contiguous() @ w`, for a contiguous x of (600, 64). How many times is a tensor of x's size written to memory?",
    {
        "once": "The relu needs a loop in any case, and the copy is fused into it. So the loop writes its result once, and the library reads it.",
        "twice: by the relu and by the copy": "They share a loop, as `relu` and `contiguous` did above. The relu's result is never stored before the copy.",
        "never: the library takes strides": "A library takes strides, but not a relu: something must compute it before the product.",
    },
    answer="once",
)

# %% [markdown]
# ## Caches
#
# Compiling takes seconds. Where is the result kept? By default, in three places.
#
# - The process keeps the versions and their guards with the function's code. `torch._dynamo.reset()` deletes them, and so does the end of the process.
# - The disk keeps the code that AOTAutograd and Inductor made. They find it by a hash of the incoming graph, shapes, settings and versions.
# - The disk also keeps the built libraries. They are found by their source text.
#
# On request, `torch.compiler.save_cache_artifacts` packs the disk's part for another machine, and with `caching_precompile` guards and bytecode, too. A function from `aot_compile` saves all of it in a file, and `torch.compiler.load_compiled_function` reads it.
#
# **Predict.** Which of these four must call `g++`? The same function again after a reset; the same body under another name; another number of rows; another `EPS`.

# %%
def renamed(v):
    squares = v.pow(2).mean(-1, keepdim=True)
    return v * torch.rsqrt(squares + EPS)


def compiled_anew(function, x):
    """The seconds of a first call after a reset, and whether the caches on disk had its code."""
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
# For Inductor, names don't matter but numbers do: sizes and constants are in its text as literals. (For AOTAutograd names matter as well, because Dynamo names its nodes after your variables. But AOTAutograd doesn't need `g++`, so it is soon done.) The cell chooses the rows and `EPS` at random, because the caches would find old numbers, even yesterday's. Dynamo runs in any case. The caches save the work after it, above all `g++`.
#
# The folder is `TORCHINDUCTOR_CACHE_DIR`, or a folder in `/tmp` that has your name. It contains machine code, and your process runs that code. So share such a folder only with people who may run programs as you.

# %% tags=["hide-input"]
true_false(
    "A compiled model that is loaded in a new process, with all caches on disk warm, starts as fast as one that isn't compiled.", False,
    "By default, guards and bytecode were only in the old process. In the new process Dynamo follows the Python again, hashes are computed, and libraries are loaded. That takes tenths of a second for each graph, and seconds for a large model.",
)

# %% [markdown]
# ## When it doesn't pay
#
# The gain is fewer moved bytes, and less Python. The price is seconds for every version, and guards in every call.
#
# **Predict.** For which of these is the compiled version faster, and after how many calls does compiling pay off?

# %%
def compare(name, function, *args):
    """Print both times in ms, and after how many calls compiling has paid off."""
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
# (The times come from one thread of one machine on one day. Run the cell on your machine.)
#
# Written out, GELU is eight operators, each of which reads and writes memory. Compiled, it is one loop. The tiny `rms` has hardly any bytes to save. Its five operators cost a microsecond or two each in eager mode. Compiled, it pays for guards and a call. The library computes the product either way, so there is nothing to fuse, and the guards cost extra.
#
# So compiling doesn't pay if there is only one call, or a new shape in every call. It doesn't pay if a library's products take most of the time, or if graphs break so often that nothing is left to fuse. And it doesn't pay if the bottleneck is something else, such as the data loader. Measure a whole step after the compiling, and compare it with eager mode ([phase 09](09_profiling.ipynb#cell-id=a-number-without-a-spread) does it properly).

# %% tags=["hide-input"]
number(
    "Compiling takes 40 s. A training step takes 100 ms, compiled 80 ms. After how many steps has compiling paid off?",
    2000,
    unit="steps",
    why="A step saves 20 ms; 40 s are 2,000 times that.",
    wrong={500: "That is 40 s divided by 80 ms. But a step saves 20 ms, not 80.", 400: "The difference of 20 ms counts, not the whole step."},
)

# %% [markdown]
# ### How to look, anywhere
#
# This course's helpers only save you typing. For your own code, PyTorch itself is enough:
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
# The row of `written` gives you the text of the code that was really built and that runs. `TORCH_LOGS=output_code python your_script.py` prints it, and so does `torch._logging.set_logs(output_code=True)` in a notebook. But a printed text can only be read. To do something with the text, catch it before it is printed: PyTorch logs with Python's `logging`, and a *handler* that you attach to the logger gets each whole message.
#
# **Predict.** The compiled `rms` is called twice. Then the process forgets it, and it is called a third time. Its code is still on the disk. After which of the three calls is a module logged?

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
# After the first and the third call. A version that the process remembers is not compiled again, and nothing is logged. A module that comes from the disk is logged as if it had been written just now. So if you want the text of a certain call, first let the compiler forget. The short messages that follow a module say where its file is: in the caches' folder. But a file's name is a hash, and all calls use the same folder, so you can't see to which call a file belongs.
#
# And look at `finally`. A log that stays on can spoil somebody else's afternoon, and so can an environment variable or a replaced torch function. After an error, the line that restores it may never be reached.
#
# PyTorch's own tests have all of this in one function. `run_and_get_code` makes the compiler forget, replaces the function that receives each module, calls the function that you pass, puts everything back, and returns the result and the texts:

# %%
from torch._inductor.utils import run_and_get_code

result, texts = run_and_get_code(torch.compile(rms), x)
print(
    [line.split()[0] for text in texts for line in text.splitlines() if "async_compile.cpp" in line]
)

# %% [markdown]
# The list has only code that was compiled before the call ended, and a backward is compiled when it first runs. `TORCH_COMPILE_DEBUG=1` writes the same texts into a folder, `torch_compile_debug`, together with the graphs from which they were made. But code that was already in a cache on the disk does not appear in that folder.

# %% [markdown]
# ## The finished step, read
#
# **Solve the lab before you read on.** Then look at the code of MiniGPT's LM head in two forms: with PyTorch's softmax, and with [phase 05](05_custom_op.ipynb#cell-id=the-finished-softmax-read)'s operator. Both come after the same temperature.

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
# An operator is a wall. The compiler plans around `open_the_hood::softmax` and never looks inside, just as you asked in [phase 05](05_custom_op.ipynb#cell-id=what-pytorch-asks-of-an-operator). So the multiplication before it is a separate pass, which reads and writes all logits once more. Otherwise it could have been done while the row was in registers. PyTorch's softmax is decomposed. It fuses with the operation before it, and both become one kernel.
#
# That GPU was only described. On a real GPU, [phase 05](05_custom_op.ipynb#cell-id=how-fast-can-it-be)'s H100, the LM head with a softmax after it (but no temperature) was compiled in both forms, forward and backward. The course kept the text that Inductor wrote there. **Predict.** What are the steps of its `call` in each form? And in which line do you see that memory is used twice?

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
# In both forms the library computes the product, `extern_kernels.addmm`. With PyTorch's softmax one Triton kernel follows, which works in the product's own memory (`buf3 = buf0`). With our softmax the operator follows, under its name. It can't reuse memory, because a schema that returns a plain `Tensor` promises new memory. After the operator there are two asserts. They check the shape and the strides that the *fake* promised. The backward contains the wall as well. Around it, both forms have the same steps: two products, for the gradients of input and weight, and a sum for the bias.
#
# And how fast are they? Counted in bytes, the compiler's softmax moves 2 N, and so does ours. **Predict.** How long does it take on the H100, as a multiple of our time?

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
# At MiniGPT's width the two times are equal within 4 %, and the same is true of nearly every backward. But for a forward over long rows in half precision the compiler's kernel takes about one and a half times as long as ours. **Predict.** Look at its text: how often does it load a row of 600 numbers, and how often a row of 4,096?

# %%
for columns in (600, 1024, 1025, 4096):
    logits = torch.randn(8192, columns, dtype=torch.float16)
    text = written(lambda x: torch.softmax(x, -1), logits, device="cuda")[0].code
    print(
        f"{columns:5,} columns: loads: {text.count('tl.load(')}, loops: "
        f"{text.count('for r0_offset')}"
    )

# %% [markdown]
# This is the rule of thumb from above. If a row has more than 1,024 numbers, Inductor no longer keeps it. It runs the online softmax of [phase 05](05_custom_op.ipynb#cell-id=one-pass-or-three), and reads everything a second time. Mostly this second reading comes from a cache, so it costs no bytes from *memory*. In float32, at 4,096, it costs no time either. But half precision has only half the bytes to wait for, so there the second reading does cost time. Our kernel keeps a half-precision row of 4,096 numbers, and of up to 16,384, by taking more warps. For longer rows it loops as well, but it begins its second reading at the end of the row, where the caches are warm. (The text above comes from your version of the compiler, but the times come from an earlier one.)
#
# So your own kernel is useful if the compiler finds nothing as good. Examples are online softmax inside attention, a quantized product, a loss that never writes its logits, and, this year, a plain softmax of long rows. At MiniGPT's width the compiler's softmax is as good as ours, and better as soon as another operation comes before it. Now you can read both.

# %% tags=["hide-input"]
choice(
    "Logits of (8192, 600) in float32 are multiplied by a number, and a softmax follows. It is compiled for a GPU. Which form is faster, if time is bytes?",
    {
        "with our operator, which has fewer lines of text around it": "Look at the map once more: the multiplication before the operator is a separate kernel.",
        "with torch.softmax, about twice": "Here one pass reads and writes: 2 N. With the operator, first the multiplication reads and writes, and then the softmax does: 4 N.",
        "they are alike, as in the first row of the table": "In the table nothing came before the softmax that could fuse with it.",
    },
    answer="with torch.softmax, about twice",
)

# %% [markdown]
# ## What you can now do
#
# [The lab](../release/06_compile/06_compile.ipynb) of this phase asks you to do it:
#
# - write a backend that reports what it gets;
# - predict how many graphs a series of calls makes;
# - fix functions that break, so that they are one graph even without `fullgraph`;
# - write a backend that finds every form of softmax and replaces it where that is safe;
# - read a joint graph, and say what is saved and what is computed again;
# - fuse a toy graph, and say what must be written to memory;
# - get the modules that Inductor wrote for one of your calls, and leave nothing switched on;
# - find launches, library calls and reused memory in a module that Inductor wrote;
# - compile MiniGPT's LM head, with your operator inside, forward and backward;
# - write sentences with MiniGPT and a cache, in a step that is compiled once;
# - fix functions that can't be exported, and export MiniGPT for texts of every length.
#
# And you can answer the question. The compiler takes a graph and constants from your function. It believes in them as long as its guards pass. It writes a loop for each group of operations that can share one, and calls libraries for the rest. When it has stopped, only the log says so.

# %% [markdown]
# ## What this phase leaves out
#
# - **Time**: [phase 09](09_profiling.ipynb#cell-id=a-number-without-a-spread) measures it properly. CUDA graphs (`mode="reduce-overhead"`) save launches on a GPU. [Phase 09](09_profiling.ipynb#cell-id=fewer-larger-later) gives the H100's times of MiniGPT's step with and without them.
# - **The optimizer**: its step is a function of tensors like any other, and can be compiled as well.
# - **Autotuning** (`mode="max-autotune"`): the compiler has several templates for a product of matrices, and chooses one by trying them. The templates in Triton need a GPU.
# - **AOTInductor** compiles a program of `torch.export` into a library that needs no Python.
# - **Higher-order operators** (`torch.cond`, `while_loop`, flex attention), with which a graph can contain a branch or a loop.
# - **Compiled autograd**, which traces the backward when it runs.

# %% [markdown]
# ## Sources
#
# - J. Ansel and others, "[PyTorch 2: Faster Machine Learning Through Dynamic Python Bytecode Transformation and Graph Compilation](https://doi.org/10.1145/3620665.3640366)", ASPLOS 2024.
# - PyTorch's documentation: "[torch.compiler](https://docs.pytorch.org/docs/stable/user_guide/torch_compiler/torch.compiler.html)", above all "[Dynamo Deep-Dive](https://docs.pytorch.org/docs/stable/user_guide/torch_compiler/torch.compiler_dynamo_deepdive.html)", "[Dynamic Shapes](https://docs.pytorch.org/docs/stable/user_guide/torch_compiler/torch.compiler_dynamic_shapes.html)", "[The programming model of torch.compile](https://docs.pytorch.org/docs/stable/user_guide/torch_compiler/compile/programming_model.html)" and "[torch.fx](https://docs.pytorch.org/docs/stable/fx.html)".
# - J. Reed, Z. DeVito and others, "[torch.fx: Practical Program Capture and Transformation for Deep Learning in Python](https://arxiv.org/abs/2112.08429)", MLSys 2022.
# - H. He, "[Min-cut optimal(*) recomputation (i.e. activation checkpointing) with AOTAutograd](https://dev-discuss.pytorch.org/t/min-cut-optimal-recomputation-i-e-activation-checkpointing-with-aotautograd/467)", PyTorch developer forum, 2022.
# - The source of what is used here: [`torch/_dynamo/symbolic_convert.py`](https://github.com/pytorch/pytorch/blob/v2.13.0/torch/_dynamo/symbolic_convert.py), [`torch/_functorch/partitioners.py`](https://github.com/pytorch/pytorch/blob/v2.13.0/torch/_functorch/partitioners.py), [`torch/_inductor/scheduler.py`](https://github.com/pytorch/pytorch/blob/v2.13.0/torch/_inductor/scheduler.py) and [`codegen/`](https://github.com/pytorch/pytorch/tree/v2.13.0/torch/_inductor/codegen).
