# ---
# jupyter:
#   kernelspec: {display_name: Python 3, language: python, name: python3}
#   open_the_hood: {title: "The dispatcher"}
# ---

# %% [markdown]
# # The dispatcher
#
# Between `x @ w` and the loop that multiplies lies one table look-up. Everything that PyTorch does besides multiplying, recording gradients, casting, batching, compiling, pretending, is a column of that table.
#
# It takes about an hour. You need [phase 02](02_autograd.ipynb#cell-id=pytorchs-own-graph)'s `grad_fn` and [phase 03](03_module.ipynb#cell-id=a-port-function-by-function)'s LM head. Where a paragraph begins with **Predict**, settle on an answer before you look below it. Nothing here is graded, and everything here is used in the lab.

# %%
import warnings
from collections import Counter

import torch
import torch.nn.functional as F
from torch._subclasses import FakeTensorMode
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from hood.learner.contents import PHASES
from utils.instruments import dispatch
from utils.minigpt import load_minigpt
from utils.notebook.drills import choice, number, true_false
from utils.views import course_path, dispatch_bars, dispatch_table, flops_by_operator, key_explorer

# %% [markdown]
# ## Where we are

# %%
course_path(PHASES, here=4)

# %% [markdown]
# [Phase 03](03_module.ipynb#cell-id=a-forward-is-a-list-of-decisions) ended with a list of (operator, device, dtype): what is left of a model once its modules are out of the way. Each line of that list was a decision, and somebody made it.

# %% [markdown]
# ## Resumen en español
#
# Llamar a un operador es consultar una tabla: la fila es el operador, la columna es una *clave*, y en la casilla está el código. Las claves las traen los tensores y las añade o las quita el hilo; gana la más alta cuya casilla tenga algo que hacer.
# Autograd no es un `if`: es una columna por encima de la del dispositivo. Su código anota el nodo y vuelve a llamar, con las claves que quedan por debajo.
# `requires_grad`, `no_grad` y el dtype no cambian ninguna clave; `inference_mode` y `autocast`, sí. Un operador *compuesto* no tiene código propio: se abre en otros.
# Aprenderás a predecir qué código se ejecuta y en qué archivo de PyTorch está, a escuchar cada operador, a contar FLOPs desde fuera y a hacer tensores que responden por sí mismos.

# %% [markdown]
# ## The question
#
# A colleague wants to know which operators MiniGPT calls. PyTorch has a hook for exactly that, a *dispatch mode*, and hers is six lines long.

# %%
class Ops(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.append(func.overloadpacket.__name__)
        return func(*args, **(kwargs or {}))


model = load_minigpt()
tokens = torch.zeros(2, 32, dtype=torch.int64)
with Ops() as log:
    logits = model(tokens)
print(len(log.names), "operators; the commonest:", Counter(log.names).most_common(5))

# %% [markdown]
# 129, of which 13 are `addmm`, one for each linear layer. That seems right: it is what [phase 03](03_module.ipynb#cell-id=a-forward-is-a-list-of-decisions) promised. Then she reads that inference should run under `torch.inference_mode()`, adds the line, and runs it again.
#
# **Predict.** Same model, same tokens, same logits. How many operators now? How many `addmm`?

# %%
with torch.inference_mode(), Ops() as quiet:
    same = model(tokens)
print(
    len(quiet.names),
    "operators;",
    quiet.names.count("addmm"),
    "addmm;",
    quiet.names.count("linear"),
    "linear",
)
print("same logits:", torch.equal(logits, same))

# %% [markdown]
# 60, and not one `addmm`. The products must have happened, since the logits are the same to the last bit. But the log, which hears *every* operator, heard `linear` in their place, a name that was not in the first list at all. And `torch.no_grad()`, which also switches gradients off, changes next to nothing:

# %%
with torch.no_grad(), Ops() as heard:
    model(tokens)
print(len(heard.names), "operators;", heard.names.count("addmm"), "addmm")

# %% [markdown]
# Nothing is broken, and no one lied. But whoever can't say *why* the second list is shorter does not know what the first one is a list of.
#
# > **When I call an operator, who decides which code runs, by looking at what, and who gets to hear of it on the way?**

# %% [markdown]
# ## A call is a look-up
#
# What Python calls `x @ w` ends, in C++, as a call of an operator with a name: `aten::mm`. (ATen is PyTorch's library of operators; the colons are C++'s.) The operator itself holds no code. It holds a *table*, one slot for each *dispatch key*, and in a slot there may be a pointer to a function. PyTorch can print it, and `utils.instruments.dispatch` reads what it prints. Here are six of some hundred slots.

# %%
def slots(op, *keys):
    """Print what an operator's table holds for some keys."""
    for key in keys:
        entry = dispatch.table(op).get(key)
        held = "nothing" if entry is None else "falls through" if entry.fallthrough else entry.kind
        print(f"{key:16} {held:22} {'' if entry is None else entry.file}")


slots("aten::mm", "AutocastCPU", "AutogradCPU", "ADInplaceOrView", "CPU", "Meta", "SparseCPU")

# %% [markdown]
# So there is not *one* `mm`. There is one that multiplies numbers on a CPU, one for sparse matrices, one that only works out the shape (Meta), one that records a node for the backward (AutogradCPU), one that casts its arguments (AutocastCPU). They know little of each other. To call `mm` means: find the key, go to the slot, call what is there.
#
# The right column is no decoration. It is the file of PyTorch in which that slot was filled. (Those with a number are generated while PyTorch is built, from the entries of [`native_functions.yaml`](https://github.com/pytorch/pytorch/blob/v2.13.0/aten/src/ATen/native/native_functions.yaml), and for autograd with the formulas of [`derivatives.yaml`](https://github.com/pytorch/pytorch/blob/v2.13.0/tools/autograd/derivatives.yaml): so much code that it is cut into several files.)

# %% tags=["hide-input"]
choice(
    "Somebody writes a backend for a new chip and wants `mm` to work on it. What is the least they must do?",
    {
        "add a branch to the source of `aten::mm`": "There is no such source: the operator is a name and a table. This is what the table is for.",
        "register a function for `mm` at their backend's key": "One slot. Whoever calls `mm` on a tensor that brings this key gets there, and no line of PyTorch has changed.",
        "subclass `torch.Tensor` and override `__matmul__`": "That changes what Python's `@` does with this class. `F.linear` calls `mm` from C++ and never asks for `__matmul__`.",
    },
    answer="register a function for `mm` at their backend's key",
)

# %% [markdown]
# ## Keys of a tensor
#
# Who brings the key? First of all the arguments. Each tensor carries a *set* of keys, a few bits that are set when it is made.

# %%
x = torch.randn(2, 3)
print(dispatch.keys_of(x))

# %% [markdown]
# Four, the highest first. `CPU` says where the bytes are. `AutogradCPU` says that autograd wants to be asked. `ADInplaceOrView` has to do with views and changes in place ([phase 02](02_autograd.ipynb#cell-id=written-over-while-autograd-watches)'s version counter lives there), and `AutocastCPU` with mixed precision.
#
# **Predict.** Which of these have other keys than `x`: a tensor that requires a gradient; one in half precision; one of integers, which can't have a gradient; a transposed view; one made under `no_grad`; one made under `inference_mode`?

# %%
with torch.no_grad():
    without = torch.randn(2, 3)
with torch.inference_mode():
    inside = torch.randn(2, 3)
for name, tensor in {
    "requires_grad": torch.randn(2, 3, requires_grad=True),
    "half": x.half(),
    "integers": torch.ones(2, 3, dtype=torch.int64),
    "a view": x.t(),
    "under no_grad": without,
    "under inference_mode": inside,
    "meta": torch.empty(2, 3, device="meta"),
    "a lazy conjugate": torch.randn(2, 3, dtype=torch.complex64).conj(),
}.items():
    keys = dispatch.keys_of(tensor)
    print(f"{name:22}", "the same" if keys == dispatch.keys_of(x) else keys)

# %% [markdown]
# The first five are all the same. This is the point at which most explanations of the dispatcher go wrong, so say it once more: **`requires_grad` changes no key.** Every ordinary tensor brings Autograd's key, integers too, and so *autograd is asked on every such call*. Its code looks at `requires_grad` itself, inside, and often finds that there is nothing to record. The same with these dtypes: they are no keys. The CPU's `mm` looks at the dtype and branches. (Quantized dtypes are an exception, with a backend key of their own.)
#
# What does change the keys is where the bytes are (`meta`: nowhere), a lazy bit that somebody has to resolve before reading (the conjugate), and being made under `inference_mode`: such a tensor lacks two keys, for its whole life.

# %% tags=["hide-input"]
true_false(
    "If no tensor of a call requires a gradient, the call skips autograd's code.", False,
    "The key is there all the same. Autograd's kernel is called, sees that nothing requires a gradient, and passes the call on. `inference_mode` exists to spare even that.",
)

# %% [markdown]
# ## Keys of the thread
#
# The tensors propose; the thread disposes. Each thread has two sets of its own: keys that it *adds* to every call, and keys that it *takes away*, whoever brought them. Context managers work by changing these two.

# %%
def contexts(tensor):
    """Print the keys with which a call on this tensor starts, in some contexts."""
    for name, context in {
        "plain": torch.enable_grad(),
        "no_grad": torch.no_grad(),
        "inference_mode": torch.inference_mode(),
        "autocast": torch.autocast("cpu"),
        "a dispatch mode": Ops(),
    }.items():
        with context:
            keys = dispatch.call_keys(tensor)
        print(f"{name:16}", *keys)


contexts(x)

# %% [markdown]
# Go through it line by line, for there is a surprise in each.
#
# - **plain**: `AutocastCPU`, which the tensor brought, is gone. The thread *excludes* all autocast keys by default.
# - **no_grad** is the plain line. It sets a flag that autograd's code reads; to the dispatcher it does not exist. That is why 129 became 127 and no less: two `detach` are gone, with which each `softmax` keeps its result for the backward.
# - **inference_mode** takes Autograd away from everybody. Not a flag: the column itself is out of the game.
# - **autocast** adds nothing. It takes its key *out of the set of the excluded*, and the one that the tensor has brought all along comes through.
# - **a mode** adds two: `PythonTLSSnapshot`, which is the highest of those here and merely remembers the thread's sets for later, and `Python`, which is the mode itself. Note where that one stands: *below* Autograd and above the CPU.
#
# `BackendSelect` is always there. It has work to do in calls that have no tensor to ask, such as `torch.ones(3, device=...)`.
#
# Here it is for you to move. Switch contexts on and off, change the tensor, and watch which slot wins.

# %%
key_explorer("aten::mm", x)

# %% tags=["hide-input"]
choice(
    "What does `with torch.autocast(\"cpu\"):` change so that `mm` computes in bfloat16?",
    {
        "the tensors: they get one more key": "They are not touched, and could not be: there may be millions. They bring the autocast key from the day they are made.",
        "the thread: a key is no longer excluded": "One bit of one set. The tensors' autocast key is let through, stands above Autograd, and its code casts the arguments and calls `mm` again.",
        "the operator: `mm` is replaced": "The table stays as it is. It has held autocast's code all the time.",
    },
    answer="the thread: a key is no longer excluded",
)

# %% [markdown]
# ## Order, fallthrough, redispatch
#
# All keys have a fixed order, and the highest that is left has the first word. The rule in one line:
#
# > winner = highest of ((keys of all arguments ∪ included) − excluded) **whose slot does not fall through**
#
# The end of that line matters. A *fallthrough* is registered where a key has nothing to do for an operator: the call goes on to the next key as though this one weren't there. `ADInplaceOrView` falls through for `mm`, which makes no view; autocast falls through for `mul`, which it has no rule for. `dispatch.decide` applies the rule and tells all it considered.

# %%
def show(decision):
    """Print the slots that a call considers, and where it ends."""
    for entry in decision.considered:
        mark = "->" if entry is decision.winner else "  "
        print(
            mark,
            f"{entry.key:16}",
            "falls through" if entry.fallthrough else f"{entry.kind}, {entry.file}",
        )


w = torch.randn(3, 4, requires_grad=True)
show(dispatch.decide("aten::mm", x, w))

# %% [markdown]
# Autograd's kernel wins. But autograd can't multiply! What it does, for every operator, is: prepare a node (`MmBackward0`, with what it has to save); take its own key and those above it out of the set; *call the same operator again*; hang the node on the result. The second call is looked up like the first, finds `CPU`, and multiplies. This is called a **redispatch**, and it is the whole trick: each layer does its part and calls the one below, without knowing which that is.
#
# From Python you can redispatch as well. **Predict.** We enter `mm` below autograd, with `CPU` as the only key. The weight requires a gradient. What is the `grad_fn` of the result?

# %%
K, Keys = torch._C.DispatchKey, torch._C.DispatchKeySet
mm = torch.ops.aten.mm.default
for name, result in {
    "from the top": x @ w,
    "from CPU on": mm.redispatch(Keys(K.CPU), x, w),
    "from AutogradCPU on": mm.redispatch(Keys(K.AutogradCPU) | Keys(K.CPU), x, w),
}.items():
    print(f"{name:20}", type(result.grad_fn).__name__)

# %% [markdown]
# None: nobody asked autograd, so nothing was recorded, although gradients are on and the weight wants one. **Autograd is not a property of the computation. It is a layer that a call passes through, or doesn't.**
#
# And what if the slot is empty? Not a fallthrough, but nothing at all? Then there is an error, and now you can read it. We make an operator of our own, with no code anywhere.

# %%
lab = torch.library.Library("hood", "FRAGMENT")
lab.define("double(Tensor x) -> Tensor")


def attempt(action):
    """Print what `action()` returns, or the type and the first words of the refusal."""
    try:
        print(action())
    except Exception as error:
        print(f"{type(error).__name__}: {str(error)[:170]} …")


attempt(lambda: torch.ops.hood.double(x))

# %% [markdown]
# "Could not run 'hood::double' with arguments from the 'CPU' backend": row, column, empty slot. Fill it, and the call works. **Predict.** We register a kernel for CPU and nothing for autograd. Will there be a gradient?

# %%
lab.impl("double", lambda t: t + t, "CPU")
leaf = torch.ones(3, requires_grad=True)
doubled = torch.ops.hood.double(leaf)
print(doubled)
with warnings.catch_warnings(record=True) as said:
    doubled.sum().backward()
print(leaf.grad)
print("and a warning:", str(said[0].message)[:99], "…")

# %% [markdown]
# There is one, by accident, and PyTorch is not happy about it. At AutogradCPU our operator has only the fallback, which passes the call on without leaving autograd; so the `+` *inside* our kernel was looked up from the top, autograd included, and recorded itself: `AddBackward0`, and no `DoubleBackward` anywhere. Had the kernel been written in NumPy or Triton, there would have been nothing inside to record, and `leaf.grad` would have stayed None. In [phase 05](05_custom_op.ipynb#cell-id=what-pytorch-asks-of-an-operator) we register a formula, as one should.

# %% tags=["hide-input"]
choice(
    "Under autocast, the keys of a call of `mul` are AutocastCPU, AutogradCPU, ADInplaceOrView, BackendSelect, CPU. Whose code runs first?",
    {
        "AutocastCPU's": "It is the highest, but for `mul` its slot is a fallthrough: multiplying elementwise has no rule of its own under autocast.",
        "AutogradCPU's": "The first with something to do. It records, and redispatches to what is below.",
        "CPU's": "It does the work, as the last one.",
    },
    answer="AutogradCPU's",
)

# %% [markdown]
# ## Schemas and overloads
#
# A row of the table belongs not to `add` but to one of its *overloads*: `add` is a packet of them, each with a schema and a table of its own. The schema is a promise about types, and about memory.

# %%
print(torch.ops.aten.add.overloads()[:4], "…")
for op in (
    torch.ops.aten.add.Tensor,
    torch.ops.aten.add_.Tensor,
    torch.ops.aten.add.out,
    torch.ops.aten.t.default,
):
    print(op._schema)

# %% [markdown]
# Read the small letters. `Tensor(a!)` means: this argument is written to, and the result is the same memory. `Tensor(a)` without the mark, in `t`: the result shares the argument's memory, a view. No letter: new memory. (Two exceptions: `_unsafe_view` has no letter and shares memory all the same, as its name warns; `reshape` has the letter, and its result *may* share.) The compiler of [phase 06](06_compile.ipynb#cell-id=forward-and-backward-in-one-graph) believes these letters; an operator that lies in its schema is compiled into something wrong.

# %% tags=["hide-input"]
choice(
    "`aten::relu_(Tensor(a!) self) -> Tensor(a!)`. What does the schema promise?",
    {
        "the result is a view of the argument": "It shares its memory, but a view would be `(a)`. The mark says more.",
        "the argument is written to, and returned": "That is the `!`. The underscore in the name is a habit; the letter is the promise.",
        "the argument is not changed": "That would be a plain `Tensor`.",
    },
    answer="the argument is written to, and returned",
)

# %% [markdown]
# ## Composites
#
# Now look at the row of `linear`.

# %%
slots("aten::linear", "AutocastCPU", "AutogradCPU", "ADInplaceOrView", "CPU", "CUDA", "Meta")

# %% [markdown]
# The same file at AutogradCPU, CPU, CUDA and Meta. `linear` has no kernel for any backend. It is a **composite**: one function, written in terms of other operators (transpose, then `addmm`), which serves for every backend *and for their autograd keys*. Nobody had to write a backward for it. At AutogradCPU the composite runs, calls `t` and `addmm`, *those* are looked up from the top, and each has an autograd kernel of its own. (PyTorch's name is CompositeImplicitAutograd: the gradient is implied.)
#
# So composites dissolve on the way down, and **at which key they dissolve decides who still sees them whole**. You can see it in a redispatch. Enter `linear` below autograd, as we did with `mm`, which lost its gradient:

# %%
y = torch.ops.aten.linear.default.redispatch(Keys(K.CPU), x, w.t())
print(type(y.grad_fn).__name__)

# %% [markdown]
# It has one, `MmBackward0`. The composite was found at CPU, opened there, and its parts started *from the top again*, where autograd is. Entering below autograd keeps autograd away from an operator that has a kernel; a composite has none to keep it away from.
#
# And now you hold everything for the question.

# %% tags=["hide-input"]
choice(
    "A mode's key, Python, stands below Autograd and above CPU. Under inference_mode, where does `linear` dissolve?",
    {
        "at AutogradCPU, as always": "Inference mode has taken that key out of the call.",
        "it doesn't before the mode has heard it": "With Autograd gone, the highest key with code for it is Python: the mode. It hears `linear`, calls it again, and then it dissolves.",
        "never": "It must, or nothing would be multiplied. But that happens below the mode, which isn't asked again.",
    },
    answer="it doesn't before the mode has heard it",
)

# %% [markdown]
# That is the missing half of MiniGPT's list. A mode stands *below autograd*. In ordinary times, and under `no_grad`, each composite has been opened at AutogradCPU before a mode gets to hear anything: 129 operators, the parts. Under inference mode there is no AutogradCPU to open it at; `linear`, `matmul`, `softmax`, `layer_norm` arrive whole: 60. Same arithmetic, heard one floor higher.

# %% [markdown]
# ## The LM head seen from above
#
# Put it together on the course's own layer. A profiler sees calls as they nest, and for each of them `utils.instruments.dispatch` works out the keys at which it started and the slots that it passed through. Below the bars stands the whole story of the one that is framed: who won, what the slot held, and the file and line in which it was registered. Move the lower slider to frame another.

# %%
head = model.lm_head
hidden = torch.randn(2, 32, 64)
dispatch_bars(head, hidden)

# %% [markdown]
# Read it from the outside in. `aten::linear` arrives with Autograd's key and meets the composite there; that opens it into `view`, `t`, `addmm`, `view`, for with three dimensions the batch must be flattened into a matrix first. Each of the four passes autograd's kernel (which makes a node, but for the first `view`: `hidden` requires no gradient), the views also ADInplaceOrView (they note whose view they are), and then the CPU's. Below that, autograd is out of the picture: the `expand` and `copy_` that `addmm` calls inside record nothing.
#
# Now frame the lines one after the other, and read what stands below as a sentence: *PyTorch dispatched `aten::linear` at the keys AutogradCPU, ADInplaceOrView, BackendSelect and CPU; AutogradCPU won; its slot holds the composite, from `RegisterCompositeImplicitAutograd_0.cpp`*. Of `addmm` there are two parts: AutogradCPU won, with autograd's own kernel from a `VariableType` file, and passed the call on to the CPU's, from a `RegisterCPU` file. Every call of an operator is dispatched so.
#
# **Predict.** What changes with two dimensions? And which node does the result carry, with two, and with three?

# %%
for some in (hidden[0], hidden, hidden[0, 0]):
    with Ops() as log:
        out = head(some)
    print(f"{str(tuple(some.shape)):12}", *log.names, "  ->", type(out.grad_fn).__name__)

# %% [markdown]
# The node is that of whatever came *last*, so a linear layer on a batch of sentences ends in a `ViewBackward0`, and whoever looks for `AddmmBackward0` finds it one step further down the graph. The way back is a list as well, and each of its operators has a reason:

# %%
out = head(hidden[0])
upstream = torch.ones_like(out)
with Ops() as log:
    out.backward(upstream)
print(*log.names)

# %% [markdown]
# `t`, `mm`, `t`: [phase 02](02_autograd.ipynb#cell-id=a-layer-only-has-to-know-one-product)'s gᵀ x, turned, for what `addmm` was given is the *transposed* weight. `sum` and `view`: the gradient of the bias, a broadcast undone, which the first `detach` puts into its `.grad`. The next `t` is the way back through `t`, and the last `detach` ends in the weight's `.grad`. And the gradient of the input? Missing! Nobody wanted it: our input required none, and autograd's kernel had noted that when it made the node.

# %% tags=["hide-input"]
number(
    "In the backward of a linear layer inside a model, the input's gradient *is* needed. How many matrix products does one linear layer then cost, forward and backward together?",
    3,
    why="One forward, and two back: one for the weight, one for the input. So training costs three times the forward, a rule that you will use in phase 07.",
    wrong={2: "The backward needs two: a gradient for each of the two factors."},
)

# %% [markdown]
# ## Listening in
#
# You have met `TorchDispatchMode`. Its elder sister is `TorchFunctionMode`, which stands at the other end: in Python, before any dispatcher has been asked. **Predict.** What does each hear of one `head(x) + 1`?

# %%
class Above(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        print("  above:", func.__name__)
        return func(*args, **(kwargs or {}))


class Below(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        print("  below:", func)
        return func(*args, **(kwargs or {}))


rows = hidden[0]
with Above(), Below():
    head(rows) + 1

# %% [markdown]
# Above hears what was *written*, in Python's words, once for each call from Python. Below hears what is left after autograd has recorded and composites have dissolved, with overloads and in ATen's words. Of a backward, above hears the one word `backward` that you call; what the engine then does, no Python calls. Below hears that too, since the engine's operators are dispatched like any others.
#
# A mode may do more than listen. It may change the arguments, return something else, or not call at all. The smallest useful one: what is the largest value that any operator of MiniGPT ever produces? (Whoever wants to go to half precision should know; float16 ends at 65,504.)

# %%
class Largest(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.found = {}

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        if isinstance(out, torch.Tensor) and out.is_floating_point() and out.numel():
            top = out[out.isfinite()].abs().max().item() if out.isfinite().any() else 0.0
            called = func.overloadpacket.__name__
            self.found[called] = max(self.found.get(called, 0.0), top)
        return out


with Largest() as largest:
    model(tokens)
for name, value in sorted(largest.found.items(), key=lambda item: -item[1])[:4]:
    print(f"{name:14} {value:8.2f}")

# %% [markdown]
# Note that `isfinite`, `abs` and `max`, which we called in there, were not heard: inside its own `__torch_dispatch__` a mode is switched off, or it would never end. (`with self:` switches it on again, for those who want that.)

# %% tags=["hide-input"]
choice(
    "You want a list of the calls in a model *as its author wrote them*: `linear`, `softmax`, `layer_norm`. Gradients stay on. What do you use?",
    {
        "a TorchDispatchMode": "With gradients on it stands below autograd, where composites have been opened already.",
        "a TorchFunctionMode": "It is asked before the dispatcher, in Python's words.",
        "a TorchDispatchMode under no_grad": "no_grad changes no key. 127 in place of 129, and `addmm` for `linear` as before.",
    },
    answer="a TorchFunctionMode",
)

# %% [markdown]
# ## Tensors that answer
#
# A mode listens to everybody. A tensor *subclass* with `__torch_dispatch__` listens to the calls that it takes part in, since it brings the Python key along. Here is a tensor that remembers its history: a wrapper around a plain tensor, and a list of what made it.

# %%
class Remembering(torch.Tensor):
    @staticmethod
    def __new__(cls, inner, history=()):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

    def __init__(self, inner, history=()):
        self.inner, self.history = inner, list(history)

    def __repr__(self):
        return f"Remembering({self.history})"

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        past = [step for a in args if isinstance(a, cls) for step in a.history]
        plain = [a.inner if isinstance(a, cls) else a for a in args]
        return cls(func(*plain, **(kwargs or {})), [*past, func.overloadpacket.__name__])


told = Remembering(hidden[0])
with torch.no_grad():
    print(torch.relu(head(told)).sum())
print(dispatch.keys_of(told))

# %% [markdown]
# Nobody wrote `linear` or `relu` for this class. It is asked at the Python key, *below* autograd, answers with its inner tensor's result, and passes itself on. (`told` itself has no data. Its shape claims bytes, and `told.nbytes` repeats the claim; but there is no memory behind it, and if the CPU's kernel ever got it, it would find nothing there.) Tensors that are cut over many GPUs, nested tensors with jagged rows, the quantized ones of torchao and the next one are made in just this way.
#
# **Fake tensors** answer every operator by its shape alone. No data, and yet a device: they claim to be on a GPU, on a machine that has none.

# %%
with FakeTensorMode():
    weight, batch = torch.empty(600, 64, device="cuda"), torch.empty(512, 32, 64, device="cuda")
    logits = F.linear(batch, weight)
    print(logits)
    print(dispatch.keys_of(logits))
print("bytes it would have:", 512 * 32 * 600 * 4)

# %% [markdown]
# The meta key (`device="meta"`) is the older form: shape and dtype and no device to speak of. Fake tensors use it inside; they ask the Meta slot of each operator for the shape, and add the device by a rule of their own. [Phase 06](06_compile.ipynb#cell-id=three-machines-in-a-row)'s compiler runs your whole model on fakes before it writes a line.

# %% tags=["hide-input"]
choice(
    "An operator of yours has a CPU kernel and a CUDA kernel and no more. `torch.compile` refuses it: “There was no fake impl registered for …”. What is it that it lacks?",
    {
        "a gradient formula": "It may lack that, too, but for this message the shape of the result is what is missing.",
        "a function from the inputs' shapes to the output's": "The compiler runs the program on tensors without data, and your kernels can't tell what they would return.",
        "a kernel for another backend": "Meta stands among the backends in the table, and computes nothing.",
    },
    answer="a function from the inputs' shapes to the output's",
)

# %% [markdown]
# ## Reading the table
#
# Here is a piece of the table itself: operators down, keys across, the highest on the left. **Predict.** Before you look at a row: where has `relu` code, and where does `reshape`?

# %%
dispatch_table(
    ["aten::mm", "aten::mul.Tensor", "aten::relu", "aten::t", "aten::add_.Tensor",
     "aten::linear", "aten::matmul", "aten::reshape", "aten::softmax.int", "aten::_softmax",
     "aten::empty.memory_format", "aten::clone"],
    ["FuncTorchBatched", "AutocastCPU", "AutogradCPU", "ADInplaceOrView", "Conjugate", "Python",
     "BackendSelect", "Meta", "SparseCPU", "CUDA", "CPU"],
)

# %% [markdown]
# `relu` has code of autograd's and of the backend's; `reshape`, a composite, one and the same code at both. Columns have characters. *Autograd* is full: everybody records, or is a composite, or passes the call on. *Autocast* is nearly empty, except for matrix products and a few that need precision. *ADInplaceOrView* has code just for views (`t`) and for what writes in place (`add_`). *BackendSelect* has code for factories. *Python* is one fallback for all, which asks the modes and subclasses.
#
# And rows: a composite is one colour wherever autograd or a backend is asked. `softmax.int`, which you call, is one; `_softmax`, which does the work, is none. (In a build without CUDA that column holds defaults, which would end in an error, and holes; in a GPU's build there are kernels.)
#
# One line of such a table, in words. `AutogradCPU: registered at …/VariableType_8.cpp [autograd kernel]` in the row of `mm`: *whoever calls `mm` with an ordinary tensor on the CPU gets first to the function that was registered in this generated file; it records a node if one is wanted, and calls `mm` again below.* The lab asks you for another.

# %% tags=["hide-input"]
true_false(
    "If an operator's slots at CPU, CUDA and AutogradCPU name the same file and the word `math kernel`, it has a backward of its own.", False,
    "It is a composite: one function for all of them. Its gradient comes from the operators that it calls, each of which records itself.",
)

# %% [markdown]
# ## Counting, to the last operator
#
# In [phase 01](01_tensors.ipynb#cell-id=counting-flops-and-bytes) you *predicted* FLOPs from a config. Now you can count them, from outside, without a line of the model being changed: each product passes by with its shapes. That is how PyTorch's own counter works, and yours, in the lab.
#
# **Predict.** Most products are `addmm`, a layer's, and grow with the number of tokens. Those of attention are `bmm`, and compare every position with every other; at 32 tokens they are one part in eighteen. At which length do they overtake the layers, roughly: 100, 500, or 5,000 tokens?

# %%
flops_by_operator(model, tokens)

# %% [markdown]
# Everything is a straight line except for `bmm`. The length at which it overtakes the rest, the dashed line, is where papers about long contexts begin.
#
# The number of *operators*, on the other hand, does not depend on the length. (A batch of one, or one token, saves some: what is contiguous already is not cloned.) On a GPU each of them (but not the views, which move nothing) starts a kernel, and starting one takes some microseconds whether or not there is anything to do. For a model as small as ours the starts are the whole cost. The lab's last exercise makes the account.

# %%
for length in (2, 8, 32):
    short = tokens[:, :length]
    with Ops() as log:
        model(short)
    print(len(log.names), "operators for a length of", length)

# %% tags=["hide-input"]
number(
    "A forward calls 129 operators, of which 79 are views. A GPU takes 5 µs to start a kernel, and each kernel here is faster than that. About how many µs does the forward take at least?",
    250,
    why="50 operators start a kernel, at 5 µs each: 250. The arithmetic hardly matters. Fewer, larger kernels are what phase 06 is about.",
    unit="µs",
    tolerance=1,
    wrong={645: "Views only write down another shape and strides. They start nothing."},
)

# %% [markdown]
# ## The whole picture
#
# One call, from top to bottom, as you can now tell it. `head(x)` calls `F.linear`, which asks the `TorchFunctionMode`s, if there are any, and enters C++. The dispatcher unites the keys of `x`, weight and bias, adds what the thread includes, takes away what it excludes. The highest key with code: autocast's, were it let through; else AutogradCPU, where `linear` is a composite and dissolves. Its `addmm` starts over: AutogradCPU, this time with a kernel, which makes `AddmmBackward0` and redispatches; ADInplaceOrView falls through; the mode, if there is one, hears it; BackendSelect falls through; `CPU: registered at …/RegisterCPU_0.cpp`. That one checks shapes, allocates, and calls MKL.
#
# > PyTorch dispatched `aten::addmm` to the CPU backend, at this key set, from that file.
#
# At the start of this lesson that sentence was a riddle. It is a row, a column and a slot.
#
# Say it of a call that you have not seen yet. **Predict.** `torch.softmax(hidden, -1)`, in an ordinary context: which key wins, what does its slot hold, and how does the file's name begin? And of the operator inside that does the work?

# %%
dispatch_bars(torch.softmax, hidden, -1)

# %% [markdown]
# `softmax` has no kernel: AutogradCPU wins with the composite, from a `RegisterCompositeImplicitAutograd` file. `_softmax`, which it calls, passes autograd's kernel and then the CPU's, from a `VariableType` and a `RegisterCPU` file. Put a call of your own into that cell.

# %% [markdown]
# ## What you can now do
#
# [The lab](../release/04_dispatcher/04_dispatcher.ipynb) of this phase asks you to do it:
#
# - predict the keys of a call and its winner, for any tensor in any context;
# - listen to every operator with a mode, and count FLOPs with one, forward and backward;
# - predict what a linear layer calls, and the name of its `grad_fn`;
# - write a dispatcher: priority, fallthrough, redispatch, composites, holes;
# - make a tensor that knows its units and refuses nonsense;
# - read PyTorch's own table, and account for every operator of MiniGPT.
#
# And you can answer the question. A table decides, by operator and key. The keys come from all tensors of the call and from the thread. Who gets to hear of a call depends on where they stand, and on whether the operator still exists by the time the call comes past.

# %% [markdown]
# ## What this phase leaves out
#
# - **Filling a slot properly**: schema, kernels for several devices, a gradient formula, a fake. [Phase 05](05_custom_op.ipynb#cell-id=what-pytorch-asks-of-an-operator).
# - **What the compiler does with all this**: functionalization, fakes, and guards that hold a key set. [Phase 06](06_compile.ipynb#cell-id=guards-what-a-graph-believes).
# - **Mixed precision in training**, with its gradient scaler. [Phase 07](07_training.ipynb#cell-id=sixteen-bits).
# - **The time of a call**, and a profiler read properly. [Phase 09](09_profiling.ipynb#cell-id=total-and-self).
# - **Subclasses that are cut over devices** (DTensor). [Phase 10](10_distributed.ipynb#cell-id=the-real-ones).
# - `vmap` and `grad` of `torch.func` are keys, too (FuncTorchBatched, FuncTorchGradWrapper), with a stack of their own levels; that story, the PyTorch developers' wiki tells.

# %% [markdown]
# ## Sources
#
# - E. Yang, "[PyTorch internals](https://blog.ezyang.com/2019/05/pytorch-internals/)", 2019: a talk, drawn and written down; its second half walks from a call to a kernel. And, by the same, "[Let's talk about the PyTorch dispatcher](https://blog.ezyang.com/2020/09/lets-talk-about-the-pytorch-dispatcher/)", 2020: the order of keys, boxing, and why a table.
# - PyTorch's documentation: "[Extending PyTorch](https://docs.pytorch.org/docs/stable/notes/extending.html)" (`__torch_function__`, `__torch_dispatch__`, modes), "[Registering a Dispatched Operator in C++](https://docs.pytorch.org/tutorials/advanced/dispatcher.html)", [`torch.library`](https://docs.pytorch.org/docs/stable/library.html), "[Autograd mechanics](https://docs.pytorch.org/docs/stable/notes/autograd.html)" (grad modes: no_grad and inference_mode), "[Automatic Mixed Precision](https://docs.pytorch.org/docs/stable/amp.html)".
# - In PyTorch's source: [`c10/core/DispatchKey.h`](https://github.com/pytorch/pytorch/blob/v2.13.0/c10/core/DispatchKey.h), where the keys stand in order and each has a comment; [`aten/src/ATen/native/native_functions.yaml`](https://github.com/pytorch/pytorch/blob/v2.13.0/aten/src/ATen/native/native_functions.yaml), a line for each operator; [`aten/src/ATen/native/README.md`](https://github.com/pytorch/pytorch/blob/v2.13.0/aten/src/ATen/native/README.md), which explains that file.
# - A. Paszke et al., "[PyTorch: An Imperative Style, High-Performance Deep Learning Library](https://arxiv.org/abs/1912.01703)", NeurIPS 2019.
