# ---
# jupyter:
#   kernelspec: {display_name: Python 3, language: python, name: python3}
#   open_the_hood: {title: "The dispatcher"}
# ---

# %% [markdown]
# # The dispatcher
#
# Between `x @ w` and the loop that multiplies, there is one table look-up. PyTorch does much more than multiply. It records gradients, casts, batches, compiles, and even computes with tensors that have no data. Each of these is a column of that table.
#
# It takes about an hour. You need [phase 02](02_autograd.ipynb#cell-id=pytorchs-own-graph)'s `grad_fn` and [phase 03](03_module.ipynb#cell-id=a-port-function-by-function)'s LM head. If a paragraph begins with **Predict**, decide on an answer before you look below it. Nothing here is graded, and everything here is used in the lab.

# %%
import warnings
from collections import Counter

import torch
import torch.nn.functional as F
from torch._subclasses import FakeTensorMode
from torch.func import functional_call, grad, vmap
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from hood.learner.contents import PHASES
from utils.instruments import dispatch
from utils.minigpt import load_minigpt, load_tokenizer, training_lines
from utils.notebook.drills import choice, number, true_false
from utils.views import course_path, dispatch_bars, dispatch_table, flops_by_operator, key_explorer

# %% [markdown]
# ## Where we are

# %%
course_path(PHASES, here=4)

# %% [markdown]
# [Phase 03](03_module.ipynb#cell-id=a-forward-is-a-list-of-decisions) ended with a list of (operator, device, dtype). That is what remains of a model without its modules. Each line of that list was a decision. Who made it?

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

# %% [markdown] tags=["printed 129", "printed 13"]
# There are 129 operators, and 13 of them are `addmm`, one for each linear layer. That seems right, because [phase 03](03_module.ipynb#cell-id=a-forward-is-a-list-of-decisions) promised it. Then she reads that inference should run under `torch.inference_mode()`. She adds the line and runs the model again.
#
# **Predict.** The model, the tokens and the logits are the same. How many operators are there now? How many of them are `addmm`?

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

# %% [markdown] tags=["printed 60"]
# There are 60, and not one `addmm`. The products must have happened, because the logits are the same to the last bit. But the log, which hears *every* operator, heard `linear` instead, and this name was not in the first list. And `torch.no_grad()`, which also switches gradients off, changes almost nothing:

# %%
with torch.no_grad(), Ops() as heard:
    model(tokens)
print(len(heard.names), "operators;", heard.names.count("addmm"), "addmm")

# %% [markdown]
# Nothing is broken, and no one lied. But if you can't say *why* the second list is shorter, you don't know what the first list contains.
#
# > **When I call an operator, who decides which code runs? What does that depend on? And who hears of the call on the way?**

# %% [markdown]
# ## A call is a look-up
#
# In C++, Python's `x @ w` becomes a call of an operator with the name `aten::mm`. (ATen is PyTorch's library of operators. The colons come from C++.) The operator itself contains no code. It has a *table* with one slot for each *dispatch key*, and a slot may contain a pointer to a function. PyTorch can print the table, and `utils.instruments.dispatch` reads that text. Here are six of about a hundred slots.

# %%
def slots(op, *keys):
    """Print what an operator's table holds for some keys."""
    for key in keys:
        entry = dispatch.table(op).get(key)
        held = "nothing" if entry is None else "falls through" if entry.fallthrough else entry.kind
        print(f"{key:16} {held:22} {'' if entry is None else entry.file}")


slots("aten::mm", "AutocastCPU", "AutogradCPU", "ADInplaceOrView", "CPU", "Meta", "SparseCPU")

# %% [markdown]
# So there is not *one* `mm`. There is one that multiplies numbers on a CPU, one for sparse matrices, one that only works out the shape (Meta), one that records a node for the backward (AutogradCPU), and one that casts its arguments (AutocastCPU). These functions know little of each other. A call of `mm` has three steps: find the key, go to its slot, and call the function in it.
#
# The right column names the PyTorch file in which that slot was filled. (The files with a number are generated while PyTorch is built. They come from the entries of [`native_functions.yaml`](https://github.com/pytorch/pytorch/blob/v2.13.0/aten/src/ATen/native/native_functions.yaml), and for autograd also from the formulas of [`derivatives.yaml`](https://github.com/pytorch/pytorch/blob/v2.13.0/tools/autograd/derivatives.yaml). This is so much code that it is split into several files.)

# %% tags=["hide-input"]
choice(
    "Somebody writes a backend for a new chip and wants `mm` to work on it. What is the least they must do?",
    {
        "add a branch to the source of `aten::mm`": "There is no such source, because the operator is a name and a table. With a table, nobody needs such a branch.",
        "register a function for `mm` at their backend's key": "One slot is enough. Every call of `mm` on a tensor that brings this key gets there, and no line of PyTorch has changed.",
        "subclass `torch.Tensor` and override `__matmul__`": "That changes what Python's `@` does with this class. `F.linear` calls `mm` from C++ and never looks at `__matmul__`.",
    },
    answer="register a function for `mm` at their backend's key",
)

# %% [markdown]
# ## Keys of a tensor
#
# Who brings the key? First of all, the arguments do. Each tensor has a *set* of keys, a few bits that are chosen when the tensor is made.

# %%
x = torch.randn(2, 3)
print(dispatch.keys_of(x))

# %% [markdown]
# There are four keys, with the highest first. `CPU` says where the bytes are. `AutogradCPU` says that autograd's code must be called. `ADInplaceOrView` is about views and in-place changes, and updates [phase 02](02_autograd.ipynb#cell-id=written-over-while-autograd-watches)'s version counter. `AutocastCPU` is about mixed precision.
#
# **Predict.** Which of these tensors have different keys from `x`: one that requires a gradient, one in half precision, one of integers (which can't have a gradient), a transposed view, one made under `no_grad`, one made under `inference_mode`?

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
# The first five have the same keys as `x`. Most explanations of the dispatcher go wrong at this point, so here it is once more: **`requires_grad` changes no key.** Every ordinary tensor brings Autograd's key, even a tensor of integers. So *autograd's code runs in every such call*. That code looks at `requires_grad` itself, and often finds nothing to record. Dtypes like these are not keys either. The CPU's `mm` looks at the dtype and branches. (Quantized dtypes are an exception: they have their own backend key.)
#
# Three things do change the keys. The first is where the bytes are (with `meta`, nowhere). The second is a lazy bit that must be resolved before reading (the conjugate). The third is `inference_mode`: a tensor that was made under it lacks two keys for its whole life.

# %% tags=["hide-input"]
true_false(
    "If no tensor of a call requires a gradient, the call skips autograd's code.", False,
    "The key is there all the same. Autograd's kernel is called, sees that nothing requires a gradient, and passes the call on. `inference_mode` exists to avoid even that.",
)

# %% [markdown]
# ## Keys of the thread
#
# Tensors propose keys, and the thread has the last word. Each thread has two sets of keys: it *adds* the first set to every call, and it *takes away* the second set, no matter which tensor brought those keys. Context managers work by changing these two sets.

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
# Go through it line by line, because each line has a surprise.
#
# - **plain**: `AutocastCPU`, which the tensor brought, is gone. The thread *excludes* all autocast keys by default.
# - **no_grad** gives the same line as plain. It sets a flag that autograd's code reads and that the dispatcher never sees. That is why 129 operators became 127 and no fewer. Only two calls of `detach` are gone: each `softmax` makes one when it keeps its result for the backward.
# - **inference_mode** takes Autograd away from every call. This is more than a flag: no call uses that column any more.
# - **autocast** adds no key. It takes its key *out of the excluded set*, so the Autocast key that the tensor always brings now stays in the call.
# - **a mode** adds two keys. `PythonTLSSnapshot` is the highest key here, and only remembers the thread's sets for later. `Python` is the mode itself. Note its place: it is *below* Autograd and above the CPU.
#
# `BackendSelect` is always there. It has work to do in calls without a tensor, such as `torch.ones(3, device=...)`.
#
# Now try it yourself. Switch contexts on and off, change the tensor, and watch which slot wins.

# %%
key_explorer("aten::mm", x)

# %% tags=["hide-input"]
choice(
    "What does `with torch.autocast(\"cpu\"):` change so that `mm` computes in bfloat16?",
    {
        "the tensors: they get one more key": "The tensors stay as they are, because there may be millions of them. They have the autocast key from the moment they are made.",
        "the thread: a key is no longer excluded": "Only one bit of one set changes. Now the tensors' autocast key stays in the call. It is above Autograd, and its code casts the arguments and calls `mm` again.",
        "the operator: `mm` is replaced": "The table stays as it is. It contains autocast's code all the time.",
    },
    answer="the thread: a key is no longer excluded",
)

# %% [markdown]
# ## Order, fallthrough, redispatch
#
# All keys have a fixed order, and the highest remaining key comes first. Here is the rule in one line:
#
# > winner = highest of ((keys of all arguments ∪ included) − excluded) **with a slot that does not fall through**
#
# The end of that line matters. If a key has nothing to do for an operator, a *fallthrough* is registered there, and the call goes on to the next key. `ADInplaceOrView` falls through for `mm`, because `mm` makes no view. Autocast falls through for `mul`, because it has no rule for `mul`. `dispatch.decide` applies the rule and lists every slot that it considered.

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
# Autograd's kernel wins. But autograd can't multiply! For every operator, it does four things. It prepares a node (here `MmBackward0`, with the saved tensors). It takes its own key and all higher keys out of the set. It *calls the same operator again*. And it attaches the node to the result. The second call is looked up like the first, finds `CPU`, and multiplies. This is called a **redispatch**, and it is the whole trick: each layer does its part and calls the next layer, without knowing which layer that is.
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
# It is None. Autograd's code did not run, so nothing was recorded, although gradients are on and the weight requires a gradient. **Autograd is not a property of the computation. It is a layer, and a call can go through it or miss it.**
#
# And what if the slot is empty, without even a fallthrough? Then there is an error, and now you can read it. We make a new operator that has no code at any key.

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
# "Could not run 'hood::double' with arguments from the 'CPU' backend": the message names the row and the column of the empty slot. Fill the slot, and the call works. **Predict.** We register a kernel for CPU and nothing for autograd. Will there be a gradient?

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
# There is a gradient, by accident, and PyTorch is not happy about it. At AutogradCPU our operator has only the fallback, which passes the call on and leaves autograd switched on. So the `+` *inside* our kernel was looked up from the top, and autograd recorded it. There is an `AddBackward0`, and no `DoubleBackward`. A kernel in NumPy or Triton contains nothing that autograd can record, and then `leaf.grad` would stay None. In [phase 05](05_custom_op.ipynb#cell-id=what-pytorch-asks-of-an-operator) we register a formula, as we should.

# %% tags=["hide-input"]
choice(
    "Under autocast, the keys of a call of `mul` are AutocastCPU, AutogradCPU, ADInplaceOrView, BackendSelect, CPU. Whose code runs first?",
    {
        "AutocastCPU's": "It is the highest key, but for `mul` its slot is a fallthrough, because autocast has no rule for `mul`.",
        "AutogradCPU's": "This is the first key with code. It records, and redispatches to the keys below.",
        "CPU's": "It does the work, but it runs last.",
    },
    answer="AutogradCPU's",
)

# %% [markdown]
# ## Schemas and overloads
#
# A row of the table does not belong to `add` but to one of its *overloads*. `add` is a packet of overloads, and each overload has its own schema and its own table. The schema is a promise about types, and about memory.

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
# Read the small letters. `Tensor(a!)` means that this argument is written to and that the result is the same memory. `Tensor(a)` without the mark, as in `t`, means that the result is a view: it shares the argument's memory. No letter means new memory. (There are two exceptions. `_unsafe_view` has no letter and still shares memory, as its name warns. `reshape` has the letter, but its result only *may* share memory.) The compiler of [phase 06](06_compile.ipynb#cell-id=forward-and-backward-in-one-graph) believes these letters. If the schema of an operator lies, the compiled program is wrong.

# %% tags=["hide-input"]
choice(
    "`aten::relu_(Tensor(a!) self) -> Tensor(a!)`. What does the schema promise?",
    {
        "the result is a view of the argument": "It shares the argument's memory, but a view would be `(a)`. The mark says more.",
        "the argument is written to, and returned": "The `!` says so. The underscore in the name is only a habit. The letter with its mark is the promise.",
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
# The file is the same at AutogradCPU, CPU, CUDA and Meta. `linear` has no kernel for any backend. It is a **composite**: one function that calls other operators (transpose, then `addmm`). It is used for every backend *and for the autograd key of every backend*. Nobody had to write a backward for it. At AutogradCPU the composite runs and calls `t` and `addmm`. *These calls* are looked up from the top, and each of the two operators has its own autograd kernel. (PyTorch's name for this is CompositeImplicitAutograd, because the gradient is implied.)
#
# So a composite is split into its parts on the way down. **Listeners above the key of the split see it whole. Listeners below that key see only the parts.** You can see the split in a redispatch. Enter `linear` below autograd, as we did with `mm`, which lost its gradient:

# %%
y = torch.ops.aten.linear.default.redispatch(Keys(K.CPU), x, w.t())
print(type(y.grad_fn).__name__)

# %% [markdown]
# The result has a `grad_fn`, `MmBackward0`. The composite was found at CPU and split there, and its parts started *from the top again*, where autograd is. If you enter below autograd, only an operator with its own kernel misses autograd. The parts of a composite start from the top, so autograd records them.
#
# Now you have everything you need for the question.

# %% tags=["hide-input"]
choice(
    "The key of a mode, Python, is below Autograd and above CPU. Under inference_mode, where is `linear` split into its parts?",
    {
        "at AutogradCPU, as always": "Inference mode has taken that key out of the call.",
        "only after the mode has heard it": "Without Autograd, the highest key with code is Python, the mode. The mode hears `linear` and calls it again, and then `linear` is split.",
        "never": "It must be split, or nothing would be multiplied. But that happens below the mode, so the mode doesn't hear the parts.",
    },
    answer="only after the mode has heard it",
)

# %% [markdown]
# That explains the shorter list. A mode is *below autograd*. Normally, and under `no_grad`, each composite is split at AutogradCPU before a mode hears anything. So the mode hears the parts, and there are 129 operators. Under inference mode there is no AutogradCPU that could split them. So `linear`, `matmul`, `softmax` and `layer_norm` arrive whole, and there are only 60 operators. The arithmetic is the same, but the mode hears it one level higher.

# %% [markdown]
# ## The LM head seen from above
#
# Now put it together on MiniGPT's own layer. A profiler shows which call happens inside which. For each call, `utils.instruments.dispatch` works out its first set of keys and the slots that it passed through. Below the bars is the whole story of the framed call: the key that won, the content of its slot, and the file and line of the registration. Move the lower slider to frame another call.

# %%
head = model.lm_head
hidden = torch.randn(2, 32, 64)
dispatch_bars(head, hidden)

# %% [markdown]
# Read it from the outside in. `aten::linear` arrives with Autograd's key, and the slot there contains the composite. The composite calls `view`, `t`, `addmm`, `view`, because a batch with three dimensions must first be flattened into a matrix. Each of the four goes through autograd's kernel. This kernel makes a node, except for the first `view`, because `hidden` requires no gradient. The views also go through ADInplaceOrView, which notes the tensor that they share. Then comes the CPU's kernel. Autograd takes no part below that: inside `addmm`, the calls of `expand` and `copy_` record nothing.
#
# Now frame one line after another, and read the text below it as a sentence: *PyTorch dispatched `aten::linear` at the keys AutogradCPU, ADInplaceOrView, BackendSelect and CPU. AutogradCPU won. Its slot contains the composite, from `RegisterCompositeImplicitAutograd_0.cpp`*. For `addmm` there are two sentences. AutogradCPU won, with autograd's own kernel from a `VariableType` file. This kernel passed the call on to the CPU's kernel, from a `RegisterCPU` file. Every call of an operator is dispatched this way.
#
# **Predict.** What changes with two dimensions? And which node does the result have with two dimensions, and which node with three?

# %%
for some in (hidden[0], hidden, hidden[0, 0]):
    with Ops() as log:
        out = head(some)
    print(f"{str(tuple(some.shape)):12}", *log.names, "  ->", type(out.grad_fn).__name__)

# %% [markdown]
# The node belongs to the *last* operator. So a linear layer on a batch of sentences ends in a `ViewBackward0`, and you find `AddmmBackward0` one step further down the graph. The backward is a list of operators as well, and each of them has a reason:

# %%
out = head(hidden[0])
upstream = torch.ones_like(out)
with Ops() as log:
    out.backward(upstream)
print(*log.names)

# %% [markdown]
# The first three, `t`, `mm` and `t`, compute [phase 02](02_autograd.ipynb#cell-id=a-layer-only-has-to-know-one-product)'s gᵀ x, transposed, because `addmm` got the *transposed* weight. `sum` and `view` undo a broadcast, which gives the gradient of the bias. The first `detach` puts it into the bias's `.grad`. The next `t` is the backward of the forward's `t`, and the last `detach` ends in the weight's `.grad`. And the gradient of the input? It is missing! Our input requires no gradient, and autograd's kernel noted that when it made the node.

# %% tags=["hide-input"]
number(
    "In the backward of a linear layer inside a model, the input's gradient *is* needed. How many matrix products does one linear layer then cost, forward and backward together?",
    3,
    why="There is one in the forward and two in the backward: one for the weight, one for the input. So training costs three times as much as the forward. You will use this rule in phase 07.",
    wrong={2: "The backward alone needs two: a gradient for each of the two factors."},
)

# %% [markdown]
# ## Listening in
#
# You know `TorchDispatchMode`. Its elder sister is `TorchFunctionMode`. She listens at the other end: in Python, before the dispatcher is called. **Predict.** What does each mode hear of `head(x) + 1`?

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
# `Above` hears the calls as they were *written* in Python, with Python's names. `Below` hears the operators after autograd has recorded and composites have been split, with ATen's names and overloads. In a backward, `Above` hears only your call of `backward`, because the engine's operators are not called from Python. `Below` hears them too, because they are dispatched like all others.
#
# A mode may do more than listen. It may change the arguments, return something else, or not call the operator at all. Here is a small useful mode: what is the largest value that an operator of MiniGPT produces? (You should know it before you use half precision, because float16 ends at 65,504.)

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
# Note that the mode did not hear `isfinite`, `abs` and `max`, although we called them inside it. A mode is switched off inside its own `__torch_dispatch__`, or it would never end. (If you want to hear such calls, `with self:` switches the mode on again.)

# %% tags=["hide-input"]
choice(
    "You want a list of the calls in a model *as its author wrote them*: `linear`, `softmax`, `layer_norm`. Gradients stay on. What do you use?",
    {
        "a TorchDispatchMode": "With gradients on, composites are split at autograd's keys, and this mode hears only the parts.",
        "a TorchFunctionMode": "It is called before the dispatcher, and hears Python's names.",
        "a TorchDispatchMode under no_grad": "no_grad changes no key. The mode hears 127 operators instead of 129, and still `addmm` instead of `linear`.",
    },
    answer="a TorchFunctionMode",
)

# %% [markdown]
# ## Tensors that answer
#
# A mode listens to all calls. A tensor *subclass* with `__torch_dispatch__` listens only to the calls that it takes part in, because it brings the Python key. Here is a tensor that remembers its history: a wrapper around a plain tensor, with a list of the operators that made it.

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
# Nobody wrote `linear` or `relu` for this class. The class is called at the Python key, *below* autograd. It computes with its inner tensor and wraps the result again. (`told` itself has no data. Its shape and `told.nbytes` claim some bytes, but there is no memory behind them, and a CPU kernel would find nothing there.) Many kinds of tensors are made in just this way: tensors that are split over many GPUs, nested tensors with rows of different lengths, torchao's quantized tensors, and the next example.
#
# **Fake tensors** answer every operator with a shape alone. They have no data, but they have a device: here they claim to be on a GPU, even on a machine without a GPU.

# %%
with FakeTensorMode():
    weight, batch = torch.empty(600, 64, device="cuda"), torch.empty(512, 32, 64, device="cuda")
    logits = F.linear(batch, weight)
    print(logits)
    print(dispatch.keys_of(logits))
print("bytes it would have:", 512 * 32 * 600 * 4)

# %% [markdown]
# The meta key (`device="meta"`) is the older form: a shape and a dtype, but no real device. Fake tensors use it inside. They get the shape from the Meta slot of each operator, and add the device by their own rule. [Phase 06](06_compile.ipynb#cell-id=three-machines-in-a-row)'s compiler runs your whole model on fakes before it writes a line of code.

# %% tags=["hide-input"]
choice(
    "Your operator has a CPU kernel, a CUDA kernel and nothing else. `torch.compile` refuses it: “There was no fake impl registered for …”. What is missing?",
    {
        "a gradient formula": "The formula may be missing too, but this message is about the shape of the result.",
        "a function from the inputs' shapes to the output's": "The compiler runs the program on tensors without data, and your kernels can't say what they would return.",
        "a kernel for another backend": "Meta is in the table like a backend, but it computes no numbers.",
    },
    answer="a function from the inputs' shapes to the output's",
)

# %% [markdown]
# ## Reading the table
#
# Here is a piece of the table itself. Each row is an operator and each column is a key, with the highest key on the left. **Predict.** Before you look at their rows: where does `relu` have code, and where does `reshape`?

# %%
dispatch_table(
    ["aten::mm", "aten::mul.Tensor", "aten::relu", "aten::t", "aten::add_.Tensor",
     "aten::linear", "aten::matmul", "aten::reshape", "aten::softmax.int", "aten::_softmax",
     "aten::empty.memory_format", "aten::clone"],
    ["FuncTorchBatched", "AutocastCPU", "AutogradCPU", "ADInplaceOrView", "Conjugate", "Python",
     "BackendSelect", "Meta", "SparseCPU", "CUDA", "CPU"],
)

# %% [markdown]
# `relu` has one kernel for autograd and another kernel for the backend. `reshape` is a composite and has the same code at both keys. Every column has a character. *Autograd* is full: every operator records, or is a composite, or passes the call on. *Autocast* is nearly empty, except for matrix products and a few operators that need precision. *ADInplaceOrView* has code only for views (`t`) and for operators that write in place (`add_`). *BackendSelect* has code for factories. *Python* has one fallback for all operators, which calls the modes and subclasses.
#
# Rows have a character too: a composite has the same colour at autograd's key and at every backend's key. `softmax.int`, which you call, is a composite. `_softmax`, which does the work, is not. (In a build without CUDA, the CUDA column has holes, and defaults that would raise an error. In a build with CUDA, it has kernels.)
#
# Here is one line of such a table in words. `AutogradCPU: registered at …/VariableType_8.cpp [autograd kernel]` in the row of `mm` means: *a call of `mm` with an ordinary tensor on the CPU first reaches the function that was registered in this generated file. It records a node if one is needed, and calls `mm` again below.* In the lab you explain another line.

# %% tags=["hide-input"]
true_false(
    "If an operator's slots at CPU, CUDA and AutogradCPU name the same file and the words `math kernel`, the operator has its own backward.", False,
    "It is a composite: one function for all of them. Its gradient comes from the operators that it calls, because autograd records each of them.",
)

# %% [markdown]
# ## Counting, to the last operator
#
# In [phase 01](01_tensors.ipynb#cell-id=counting-flops-and-bytes) you *predicted* FLOPs from a configuration. Now you can count them from outside, and no line of the model changes: a mode sees each product with its shapes. PyTorch's own counter works in this way, and so will yours in the lab.
#
# **Predict.** Most products are the layers' `addmm`, and their FLOPs grow with the number of tokens. Attention's products are `bmm`, and they compare every position with every other position. At 32 tokens, these are one eighteenth of all FLOPs. At which length do they overtake the layers, roughly: 100, 500, or 5,000 tokens?

# %%
flops_by_operator(model, tokens)

# %% [markdown]
# Everything is a straight line except for `bmm`. The dashed line is the length at which `bmm` overtakes the rest. Papers about long contexts begin there.
#
# The number of *operators*, on the other hand, does not depend on the length. (With a batch of one, or with one token, there are fewer, because a tensor that is already contiguous is not cloned.) On a GPU each operator starts a kernel, except for the views, which move nothing. It takes some microseconds to start a kernel, even if the kernel has almost nothing to do. For a model as small as ours, the starts are the whole cost. You count them in the lab's last exercise.

# %%
for length in (2, 8, 32):
    short = tokens[:, :length]
    with Ops() as log:
        model(short)
    print(len(log.names), "operators for a length of", length)

# %% tags=["hide-input"]
number(
    "A forward calls 129 operators, and 79 of them are views. A GPU takes 5 µs to start a kernel, and each kernel here is faster than that. About how many µs does the forward take at least?",
    250,
    why="50 operators start a kernel, and 50 times 5 µs are 250 µs. The arithmetic hardly matters. Phase 06 is about fewer, larger kernels.",
    unit="µs",
    tolerance=1,
    wrong={645: "A view only has a different shape and different strides. It starts no kernel."},
)

# %% [markdown]
# ## A gradient for each example
#
# Which of these sixteen lines of its own training pulls hardest at MiniGPT's weights? The gradient of a batch can't say, because it is a mean. Sixteen small backwards could.
#
# With `torch.func` you ask for all of them at once. First we need the loss as a *function* of the parameters and of one line. For this, `functional_call` runs a module with the parameters that it gets. Then `grad` turns the loss into a function that returns its gradient.

# %%
lines, following = (part[:16] for part in training_lines())
parameters = {name: tensor.detach() for name, tensor in model.named_parameters()}


def line_loss(parameters, line, following):
    logits = functional_call(model, parameters, (line[None],))  # MiniGPT takes only batches
    return F.cross_entropy(logits[0], following)


with Ops() as log:
    grad(line_loss)(parameters, lines[0], following[0])
print(len(log.names), "operators for the gradient of one line")

# %% [markdown]
# `vmap` turns a function of one line into a function of a batch of lines. `in_dims` says that all lines see the same parameters (None), and that each line sees its own row (0).
#
# **Predict.** A loop over sixteen lines would call sixteen times as many operators. How many does `vmap` call for four lines, and how many for sixteen?

# %%
pull = vmap(grad(line_loss), in_dims=(None, 0, 0))
for rows in (4, 16):
    with Ops() as log:
        each = pull(parameters, lines[:rows], following[:rows])
    print(len(log.names), "operators for", rows, "lines")
lengths = sum(one.flatten(1).square().sum(1) for one in each.values()).sqrt()
for row in lengths.argsort(descending=True)[:3]:
    print(f"{lengths[row]:.2f}  {load_tokenizer().decode(lines[row])}")

# %% [markdown]
# It calls 633 for sixteen lines, and as many for four. (An irregular verb pulls hardest, *pedir*.) Where did the loop go? `vmap` and `grad` are keys:

# %%
def keys_inside(x):
    print(dispatch.keys_of(x))
    return x.sum()


sums = vmap(keys_inside)(torch.ones(16, 3))
gradient = grad(keys_inside)(torch.ones(3))

# %% [markdown]
# `vmap` wraps its tensor. The function sees one row, and the wrapper holds all of them and brings the key FuncTorchBatched. The slot there has a *batching rule*, which calls an operator once for all rows: here, `sum` becomes a sum along a dimension. `grad` brings FuncTorchGradWrapper, and its autograd is separate from yours. These layers can be stacked, because each calls the next one below. For example, `jvp` computes the derivative along a direction v. So the `jvp` of a `grad` is the Hessian times v, and nobody has to make the Hessian.

# %% [markdown]
# ## The whole picture
#
# Now you can follow one call from top to bottom. `head(x)` calls `F.linear`, which first calls the `TorchFunctionMode`s, if there are any, and then enters C++. The dispatcher unites the keys of `x`, weight and bias, adds the keys that the thread includes, and takes away the keys that the thread excludes. The highest key with code wins. That is autocast's key, if it is not excluded. Otherwise it is AutogradCPU, where `linear` is a composite and is split. Its `addmm` starts again from the top. This time AutogradCPU has a kernel, which makes `AddmmBackward0` and redispatches. ADInplaceOrView falls through. If there is a mode, it hears the call. BackendSelect falls through. The last slot is `CPU: registered at …/RegisterCPU_0.cpp`. This kernel checks shapes, allocates memory, and calls a BLAS library, here MKL.
#
# > PyTorch dispatched `aten::addmm` to the CPU backend, at this key set, from that file.
#
# At the start of this lesson, that sentence was a riddle. Now you know that it names a row, a column and a slot.
#
# Now say such a sentence about a new call. **Predict.** You call `torch.softmax(hidden, -1)` in an ordinary context. Which key wins, what does its slot contain, and how does the file's name begin? Answer the same questions for the operator inside, which does the work.

# %%
dispatch_bars(torch.softmax, hidden, -1)

# %% [markdown]
# `softmax` has no kernel. AutogradCPU wins with the composite, from a `RegisterCompositeImplicitAutograd` file. The composite calls `_softmax`. This call goes first through autograd's kernel, from a `VariableType` file, and then through the CPU's kernel, from a `RegisterCPU` file. Try a different call in that cell.

# %% [markdown]
# ## What you can now do
#
# [The lab](../release/04_dispatcher/04_dispatcher.ipynb) of this phase asks you to do it:
#
# - predict the keys of a call and the key that wins, for any tensor in any context;
# - listen to every operator with a mode, and count FLOPs with a mode in the forward and the backward;
# - predict what a linear layer calls, and the name of its `grad_fn`;
# - write a dispatcher with priority, fallthrough, redispatch, composites and holes;
# - make a tensor that knows its units and refuses nonsense;
# - read PyTorch's own table, and account for every operator of MiniGPT;
# - compute a gradient for each example without a loop.
#
# And you can answer the question. A table decides, by operator and key. The keys come from all tensors of the call and from the thread. A dispatch mode hears a call only at the mode's own key. If a composite was split above that key, the mode hears the parts.

# %% [markdown]
# ## What this phase leaves out
#
# - **Filling a slot properly**: [phase 05](05_custom_op.ipynb#cell-id=what-pytorch-asks-of-an-operator) adds a schema, kernels for several devices, a gradient formula and a fake.
# - **The compiler's use of all this**: [phase 06](06_compile.ipynb#cell-id=guards-what-a-graph-believes) shows functionalization, fakes, and guards that check a key set.
# - **Mixed precision in training**: [phase 07](07_training.ipynb#cell-id=sixteen-bits) uses it with a gradient scaler.
# - **The time of a call**: in [phase 09](09_profiling.ipynb#cell-id=total-and-self) you read a profiler properly.
# - **Subclasses that are split over devices** (DTensor): [phase 10](10_distributed.ipynb#cell-id=the-real-ones) uses them.

# %% [markdown]
# ## Sources
#
# - E. Yang, "[PyTorch internals](https://blog.ezyang.com/2019/05/pytorch-internals/)", 2019. This is a talk with drawings, and its second half goes from a call to a kernel. The same author's "[Let's talk about the PyTorch dispatcher](https://blog.ezyang.com/2020/09/lets-talk-about-the-pytorch-dispatcher/)", 2020, explains the order of keys, boxing, and the reasons for a table.
# - PyTorch's documentation: "[Extending PyTorch](https://docs.pytorch.org/docs/stable/notes/extending.html)" (`__torch_function__`, `__torch_dispatch__`, modes), "[Registering a Dispatched Operator in C++](https://docs.pytorch.org/tutorials/advanced/dispatcher.html)", [`torch.library`](https://docs.pytorch.org/docs/stable/library.html), "[Autograd mechanics](https://docs.pytorch.org/docs/stable/notes/autograd.html)" (grad modes: no_grad and inference_mode), "[Automatic Mixed Precision](https://docs.pytorch.org/docs/stable/amp.html)".
# - In PyTorch's source: [`c10/core/DispatchKey.h`](https://github.com/pytorch/pytorch/blob/v2.13.0/c10/core/DispatchKey.h), which lists the keys in order with a comment for each; [`aten/src/ATen/native/native_functions.yaml`](https://github.com/pytorch/pytorch/blob/v2.13.0/aten/src/ATen/native/native_functions.yaml), which has an entry for each operator; [`aten/src/ATen/native/README.md`](https://github.com/pytorch/pytorch/blob/v2.13.0/aten/src/ATen/native/README.md), which explains that file.
# - A. Paszke et al., "[PyTorch: An Imperative Style, High-Performance Deep Learning Library](https://arxiv.org/abs/1912.01703)", NeurIPS 2019.
