# ---
# jupyter:
#   kernelspec: {display_name: Python 3, language: python, name: python3}
#   open_the_hood: {title: "Lab 04: The dispatcher", points: 44, cell_seconds: 60, preload: [flops, derivatives]}
# ---

# %% [markdown]
# # Lab 04: The dispatcher
#
# Ten exercises and one question, 44 points, about three hours without the *further* exercises 10
# and 11, which take half an hour more. A class may leave those out, or count them as a bonus.
# Otherwise all points count. The lab follows [lesson 04](../../notebooks/04_dispatcher.ipynb).
# In the first exercise you predict what the dispatcher does. In the fourth you write a dispatcher.
# In the eighth you count every operator that MiniGPT calls in its forward and its backward.
#
# Four of the answers are classes. A mode listens while *other* code runs, and a tensor subclass
# answers the operators that get such a tensor. So a check passes your class to a *driver*, a small
# function of `utils/drivers/dispatch.py` that runs a program with it, and then looks at the
# results. (Exercises 10 and 11 have drivers, too, because their functions get a model.) Each graded cell begins with `check(...)`, which gives the same verdict as grading. It
# uses the same drivers with programs, shapes and models that you have not seen, and with new ones
# each time. You may read the drivers, because nothing in them is secret.
#
# Parts of an exercise earn their points separately, and no exercise needs the answer to another
# exercise. Are you stuck? Each exercise has two hints, folded away. Run the next cell, then start.

# %% given="setup"
import torch
import torch.nn.functional as F
from torch.utils._python_dispatch import TorchDispatchMode

from hood.learner.check import check
from utils.drivers import derivatives
from utils.drivers import dispatch as driver
from utils.drivers.derivatives import next_words
from utils.drivers.dispatch import FALLTHROUGH
from utils.minigpt import MiniGPT, MiniGPTConfig, load_minigpt, load_tokenizer, training_lines
from utils.notebook.expect import expect_close, expect_equal
from utils.views import dispatch_bars, flops_by_operator, key_explorer

# %% [markdown]
# ## 1 · Which key wins?
#
# *Easy, 20 minutes, 4 points: one for tensors alone, two for contexts, one for the winner.*
# From the lesson: [Keys of a tensor](../../notebooks/04_dispatcher.ipynb#cell-id=keys-of-a-tensor).
#
# A call starts with a set of keys. Tensors bring some keys, and the thread adds some and takes some
# away. Among the remaining keys, the highest key with code in its slot goes first. You get a tensor
# as a description, a dict:
#
# - `"device"`: `"cpu"`, `"cuda"` or `"meta"`; `"dtype"`: such as `"float32"` or `"float16"`;
# - `"requires_grad"` and `"conj"`: booleans. `"conj"` says whether it is a lazy conjugate, such as
#   `z.conj()` of a complex tensor;
# - `"inference"`: whether it was *made* inside `torch.inference_mode()`.
#
# You also get the contexts around the call: a tuple, from the outermost to the innermost, with any
# of `"no_grad"`, `"inference_mode"` and `"autocast"`, each as often as you like. There is only
# autocast for the CPU and for CUDA, because only their tensors bring a key for it. Write
#
# - `call_keys(tensor, contexts)`: the keys of a call with that tensor as its only argument, a tuple
#   of names, the highest first. Leave `BackendSelect` out, because it is always there and has work
#   to do only if no tensor names a backend;
# - `winner(op, keys)`: the key whose code runs first, for such a tuple of keys and for `op`, which
#   is `"mm"`, `"mul"` or `"t"`. These are their slots:
#
# | | Autocast… | Autograd… | ADInplaceOrView | Conjugate | the backend |
# |---|---|---|---|---|---|
# | `mm` | code | code | falls through | falls through | code |
# | `mul` | falls through | code | falls through | code | code |
# | `t` | falls through | code | code | falls through | code |
#
# If a kind of key differs by device, the keys end in the name of the device: `AutogradCPU`,
# `AutogradCUDA`, `AutogradMeta`. Work from the description: asking torch for the keys of a real
# tensor does not count here.
#
# <details><summary>Where do I start?</summary>
#
# Write down the keys that a plain tensor brings, with the highest first: Autocast, Autograd,
# ADInplaceOrView, Conjugate (if it is one), the backend. Then decide for each context which key it
# lets through or takes away. Three words change nothing at all: two words of the description, and
# one context.
# </details>
# <details><summary>inference_mode has two effects</summary>
#
# A tensor that was made inside inference mode lacks two keys for ever. Inside inference mode, the
# thread takes Autograd away from every tensor. Outside it, the thread adds ADInplaceOrView to every
# call, with any tensor.
# </details>

# %% solution="winning_key"
def call_keys(tensor: dict, contexts: tuple[str, ...]) -> tuple[str, ...]:
    """The keys of a call with this tensor in these contexts, the highest first."""
    ### BEGIN SOLUTION
    backend = {"cpu": "CPU", "cuda": "CUDA", "meta": "Meta"}[tensor["device"]]
    keys = []
    if "autocast" in contexts and backend in {"CPU", "CUDA"}:
        keys.append(f"Autocast{backend}")
    if not tensor["inference"] and "inference_mode" not in contexts:
        keys.append(f"Autograd{backend}")
    if not tensor["inference"] or "inference_mode" not in contexts:
        keys.append("ADInplaceOrView")
    if tensor["conj"]:
        keys.append("Conjugate")
    return (*keys, backend)
    ### END SOLUTION


def winner(op: str, keys: tuple[str, ...]) -> str:
    """The key whose code runs first when a call of `op` starts with these keys."""
    ### BEGIN SOLUTION
    falls_through = {
        "mm": {"ADInplaceOrView", "Conjugate"},
        "mul": {"AutocastCPU", "AutocastCUDA", "ADInplaceOrView"},
        "t": {"AutocastCPU", "AutocastCUDA", "Conjugate"},
    }
    return next(key for key in keys if key not in falls_through[op])
    ### END SOLUTION

# %%
plain = {
    "device": "cpu",
    "dtype": "float32",
    "requires_grad": False,
    "conj": False,
    "inference": False,
}
whole, made_inside = (
    plain | {"device": "cuda", "dtype": "int64"},
    plain | {"dtype": "float64", "inference": True},
)
expect_equal("a plain tensor", call_keys(plain, ()), ("AutogradCPU", "ADInplaceOrView", "CPU"))
expect_equal(
    "one without numbers",
    call_keys(plain | {"device": "meta"}, ()),
    ("AutogradMeta", "ADInplaceOrView", "Meta"),
)
expect_equal("integers, with autocast", call_keys(whole, ("autocast",)),
             ("AutocastCUDA", "AutogradCUDA", "ADInplaceOrView", "CUDA"))
expect_equal(
    "a conjugate, no_grad and autocast",
    call_keys(plain | {"conj": True}, ("no_grad", "autocast")),
    ("AutocastCPU", "AutogradCPU", "ADInplaceOrView", "Conjugate", "CPU"),
)
expect_equal("an inference tensor, inside", call_keys(made_inside, ("autocast", "inference_mode")),
             ("AutocastCPU", "CPU"))
expect_equal(
    "half precision, with autocast",
    call_keys(plain | {"dtype": "float16"}, ("autocast",)),
    ("AutocastCPU", "AutogradCPU", "ADInplaceOrView", "CPU"),
)
expect_equal("no numbers, with autocast", call_keys(plain | {"device": "meta"}, ("autocast",)),
             ("AutogradMeta", "ADInplaceOrView", "Meta"))
expect_equal(
    "a plain tensor, inside",
    call_keys(plain, ("inference_mode", "no_grad")),
    ("ADInplaceOrView", "CPU"),
)
expect_equal(
    "a conjugate, inside",
    call_keys(made_inside | {"conj": True}, ("inference_mode",)),
    ("Conjugate", "CPU"),
)
expect_equal(
    "complex, no conjugate",
    call_keys(made_inside | {"dtype": "complex64"}, ("no_grad", "autocast")),
    ("AutocastCPU", "ADInplaceOrView", "CPU"),
)
expect_equal(
    "mm, with autocast",
    winner("mm", ("AutocastCUDA", "AutogradCUDA", "ADInplaceOrView", "CUDA")),
    "AutocastCUDA",
)
expect_equal(
    "mul, there",
    winner("mul", ("AutocastCUDA", "AutogradCUDA", "ADInplaceOrView", "CUDA")),
    "AutogradCUDA",
)
expect_equal("mm of a conjugate", winner("mm", ("ADInplaceOrView", "Conjugate", "Meta")), "Meta")
expect_equal("mul of one", winner("mul", ("ADInplaceOrView", "Conjugate", "Meta")), "Conjugate")
key_explorer("aten::mm", torch.ones(2, 2))

# %% test="winning_key" points=4
# Graded
check("winning_key")
made_inside = {"device": "cpu", "dtype": "float64", "requires_grad": False, "conj": False}
made_inside["inference"] = True
expect_equal("an inference tensor", call_keys(made_inside, ()), ("ADInplaceOrView", "CPU"))
with_autocast = winner("t", ("AutocastCPU", "ADInplaceOrView", "CPU"))
expect_equal("its transpose, with autocast", with_autocast, "ADInplaceOrView")
### BEGIN HIDDEN TESTS
verify("winning_key", call_keys=call_keys, winner=winner)
### END HIDDEN TESTS

# %% [markdown]
# ## 2 · An ear at the bottom
#
# *Easy, 15 minutes, 3 points: names, shapes, and that nobody notices.*
# From the lesson: [Listening in](../../notebooks/04_dispatcher.ipynb#cell-id=listening-in).
#
# Write `OpLog`, a `TorchDispatchMode` that writes down each operator that reaches it. After `with
# OpLog() as log:`, `log.ops` is a list of pairs, in the order of the calls:
#
# - the operator's full name with its overload, as `str(func)` gives it: `"aten.addmm.default"`;
# - a list of the shapes, as tuples, of the tensors among its arguments: positional ones first, then
#   keyword arguments. If an argument is a list of tensors, as for `torch.cat`, its tensors count
#   one by one.
#
# The program must not notice: every result must be the same as without a log. Two logs share
# nothing, even if one is inside the other. In that case, both hear the calls inside the inner log.
# A log that is used a second time appends to its list.
#
# <details><summary>What does __torch_dispatch__ get?</summary>
#
# It gets four arguments: the operator with its overload, `func`; `types`, which is for subclasses;
# the tuple `args`; and the dict `kwargs`, which may be None. Call `func` and return its result.
# </details>
# <details><summary>How do I find the tensors?</summary>
#
# `tree_leaves`, in `torch.utils._pytree`, lists everything inside nested tuples, lists and dicts.
# Or look into lists yourself.
# </details>

# %% solution="OpLog"
class OpLog(TorchDispatchMode):
    """Writes down each operator that reaches it: `ops` is a list of (name, shapes)."""

    def __init__(self):
        super().__init__()
        ### BEGIN SOLUTION
        self.ops = []
        ### END SOLUTION

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        ### BEGIN SOLUTION
        kwargs = kwargs or {}
        given = torch.utils._pytree.tree_leaves((args, kwargs))
        shapes = [tuple(t.shape) for t in given if isinstance(t, torch.Tensor)]
        self.ops.append((str(func), shapes))
        return func(*args, **kwargs)
        ### END SOLUTION

# %%
x, w = torch.ones(2, 3), torch.ones(3, 3)
heard = driver.log_ops(OpLog, "two layers", x, w, w)
expect_equal("the operators", [name for name, _ in heard["ops"]],
             ["aten.mm.default", "aten.relu.default", "aten.mm.default"])
heard = driver.log_ops(OpLog, "with keywords", x)
expect_equal("their names", [name for name, _ in heard["ops"]],
             ["aten.select.int", "aten.empty.memory_format", "aten.add.out"])
expect_equal("their tensors", [shapes for _, shapes in heard["ops"]],
             [[(2, 3)], [], [(2, 3), (3,), (2, 3)]])
expect_equal("the result", heard["result"], x + 2 * x[0])
number = torch.tensor(3)
heard = driver.log_ops(OpLog, "in place", number)
expect_equal(
    "tensors of no dimensions", [shapes for _, shapes in heard["ops"]], [[()], [()], [(), ()]]
)
expect_equal("what came of it", heard["result"], 5 * number)

# %% test="OpLog" points=3
# Graded
check("OpLog")
x, w = torch.ones(2, 3), torch.ones(3, 3)
both = driver.log_nested(OpLog, "two layers", x, w, w)
expect_equal("one log inside another", (len(both["outer"]), len(both["inner"])), (5, 3))
heard = driver.log_ops(OpLog, "joined", x, x, times=2)["ops"]
expect_equal("a list of tensors, twice", heard[::2], 2 * [("aten.cat.default", [(2, 3), (2, 3)])])
heard = driver.log_ops(OpLog, "joined", x, x[:0])["ops"]
expect_equal("with an empty one", heard[0], ("aten.cat.default", [(2, 3), (0, 3)]))
### BEGIN HIDDEN TESTS
verify("OpLog", OpLog)
### END HIDDEN TESTS

# %% [markdown]
# ## 3 · What does a linear layer call?
#
# *Medium, 20 minutes, 4 points: two with a bias, one without, one under inference mode.*
# From the lesson: [The LM head seen from above](../../notebooks/04_dispatcher.ipynb#cell-id=the-lm-head-seen-from-above).
#
# `F.linear(x, weight, bias)` is one line, but what a mode hears depends on the number of dimensions
# of `x`, on whether there is a bias, and on whether Autograd's key is there. Write
# `linear_trace(shape, bias, inference)` for a contiguous `x` of that shape, with one to four
# dimensions, no dimension of size 0, and a weight that requires a gradient. `bias` says whether
# there is a bias, which requires a gradient too. `inference` says whether all this happens under
# `torch.inference_mode()`. The function returns a pair. The pair begins with the list of operators
# that a mode hears, in order, by their names without `aten.` and overload (`"addmm"`, `"t"`). Then
# comes the name of the result's `grad_fn`, or `None` if there is no `grad_fn`.
#
# Find the rule by listening, in new cells, and then write it down. The function itself must work
# from its three arguments: running a linear layer inside of it does not count here.
#
# <details><summary>There seem to be many cases</summary>
#
# With a bias there are two cases. `addmm` takes a matrix as it is. Everything else is first
# *viewed* as a matrix, and viewed back afterwards. Without a bias there are three cases.
# </details>
# <details><summary>What is the name of the grad_fn?</summary>
#
# It comes from the operator that was called last, and ends in `Backward` and a number. Print
# `type(y.grad_fn).__name__` for each case, because two of the names are a surprise.
# </details>

# %% solution="linear_trace"
def linear_trace(
    shape: tuple[int, ...], bias: bool, inference: bool
) -> tuple[list[str], str | None]:
    """The operators that a mode hears of F.linear, and the name of the result's grad_fn."""
    ### BEGIN SOLUTION
    if inference:
        return ["linear"], None
    if bias:
        if len(shape) == 2:
            return ["t", "addmm"], "AddmmBackward0"
        return ["view", "t", "addmm", "view"], "ViewBackward0"
    if len(shape) == 2:
        return ["t", "mm"], "MmBackward0"
    if len(shape) == 1:
        return ["t", "unsqueeze", "mm", "squeeze_"], "SqueezeBackward4"
    return ["t", "view", "mm", "_unsafe_view"], "UnsafeViewBackward0"
    ### END SOLUTION

# %%
expect_equal("a matrix", linear_trace((32, 64), True, False), (["t", "addmm"], "AddmmBackward0"))
expect_equal("a vector", linear_trace((64,), True, False),
             (["view", "t", "addmm", "view"], "ViewBackward0"))
expect_equal("inference", linear_trace((32, 64), False, True), (["linear"], None))
expect_equal(
    "a batch of one", linear_trace((1, 64), True, False), (["t", "addmm"], "AddmmBackward0")
)
expect_equal("four dimensions", linear_trace((2, 3, 8, 64), True, False)[1], "ViewBackward0")
expect_equal("in inference mode", linear_trace((2, 3, 8, 64), True, True), (["linear"], None))


def outline(shape):  # without a bias: how long the names are, and how that of the grad_fn ends
    ops, node = linear_trace(shape, False, False)
    return [len(op) for op in ops], len(str(node)), str(node)[-1]


expect_equal("a vector without a bias", outline((64,)), ([1, 9, 2, 8], 16, "4"))
expect_equal("three dimensions", outline((2, 8, 64)), ([1, 4, 2, 12], 19, "0"))
expect_equal("four dimensions", outline((2, 1, 8, 64)), ([1, 4, 2, 12], 19, "0"))
dispatch_bars(F.linear, torch.ones(2, 8, 64), torch.ones(600, 64), torch.ones(600))

# %% test="linear_trace" points=4
# Graded
check("linear_trace")
expect_equal(
    "a matrix, no bias", linear_trace((32, 64), False, False), (["t", "mm"], "MmBackward0")
)
### BEGIN HIDDEN TESTS
verify("linear_trace", linear_trace)
### END HIDDEN TESTS

# %% [markdown]
# ## 4 · A dispatcher
#
# *Hard, 40 minutes, 7 points: one for priority, two for fallthrough and fallbacks, two for
# redispatch, one for composites, one for holes.*
# From the lesson: [Order, fallthrough, redispatch](../../notebooks/04_dispatcher.ipynb#cell-id=order-fallthrough-redispatch).
#
# PyTorch's dispatcher has some thousand lines of C++. The idea fits on a page, and you are going to
# write it. `Dispatcher(order)` is made with the names of all keys, the highest first. Three methods
# fill its table, in any order, and a new registration replaces an older one:
#
# - `impl(op, key, kernel)`: the code of one operator at one key;
# - `composite(op, keys, kernel)`: code that calls other operators, for each key of `keys` at which
#   the operator has no `impl`;
# - `fallback(key, kernel)`: the code for every operator that has neither an `impl` nor a
#   `composite` at this key.
#
# A kernel is a function, or `FALLTHROUGH`, which means that there is nothing to do at this key.
#
# `call(op, keys, value)` makes a call, and `keys` is a frozenset. It takes the keys from the
# highest to the lowest. If the slot at a key is `FALLTHROUGH`, it goes on to the next key.
# Otherwise it calls the kernel in the slot, returns its result, and is done:
#
# - an `impl` is called as `kernel(rest, value)`, where `rest` is the set, frozen or not, of all
#   `keys` that are *lower* than the key that won. A kernel that wants the next kernel to run makes
#   a `call` with `rest`. That is a *redispatch*;
# - a `fallback` serves all operators, so it is called as `kernel(op, rest, value)`;
# - a `composite` is called as `kernel(keys, value)`, with *all* the keys of the call, because the
#   operators that it calls start from the top.
#
# An empty slot is a hole, and a hole is not a fallthrough but an error: the call raises
# `NotImplementedError`, and the message names the operator and the key. If a call has no key left,
# it raises `NotImplementedError` too, with a message that names the operator.
#
# <details><summary>How do I keep the table?</summary>
#
# Three dicts are enough: from `(op, key)` to a kernel, from `(op, key)` to a composite, and from
# `key` to a fallback. A look-up tries them in this order. Sort the keys of a call by `order.index`.
# </details>
# <details><summary>My redispatch never ends</summary>
#
# Then `rest` still contains the key of the running kernel, or a key above it. If a key was skipped
# because it fell through, it is *above* the winner. So it isn't in `rest` either.
# </details>

# %% solution="Dispatcher"
class Dispatcher:
    """A table from (operator, key) to a kernel, and calls that are looked up in it."""

    ### BEGIN SOLUTION
    def __init__(self, order):
        self.order = order
        self.kernels, self.composites, self.fallbacks = {}, {}, {}

    def impl(self, op, key, kernel):
        self.kernels[op, key] = kernel

    def composite(self, op, keys, kernel):
        for each in keys:
            self.composites[op, each] = kernel

    def fallback(self, key, kernel):
        self.fallbacks[key] = kernel

    def call(self, op, keys, value):
        ordered = sorted(keys, key=self.order.index)
        for place, key in enumerate(ordered):
            rest = frozenset(ordered[place + 1 :])
            if (op, key) in self.kernels:
                kernel, given = self.kernels[op, key], (rest, value)
            elif (op, key) in self.composites:
                kernel, given = self.composites[op, key], (keys, value)
            elif key in self.fallbacks:
                kernel, given = self.fallbacks[key], (op, rest, value)
            else:
                raise NotImplementedError(f"{op} has no kernel for {key}")
            if kernel is not FALLTHROUGH:
                return kernel(*given)
        raise NotImplementedError(f"{op}: no key is left")
    ### END SOLUTION

# %%
order = ("Tracer", "Autograd", "ADInplaceOrView", "CPU")
script = [
    ("fallback", "ADInplaceOrView", ("redispatch", "an older one")),
    ("fallback", "ADInplaceOrView", ("fallthrough",)),
    ("fallback", "Autograd", ("redispatch", "anything")),
    ("impl", "mm", "CPU", ("answer", "an older one")),
    ("impl", "mm", "CPU", ("answer", "multiplied")),
    ("impl", "mm", "Autograd", ("redispatch", "recorded")),
    ("impl", "view", "CPU", ("answer", "viewed")),
    ("impl", "view", "Autograd", ("fallthrough",)),
    ("another", [("impl", "view", "CPU", ("answer", "of another dispatcher"))]),
    ("call", "view", ("CPU", "Autograd"), 3),
    ("call", "mm", ("CPU", "ADInplaceOrView"), 3),
    ("call", "mm", ("CPU", "ADInplaceOrView", "Autograd"), 3),
    ("call", "mm", ("CPU", "Tracer"), 3),
    ("call", "mm", (), 3),
]
through, below, above, hole, none = driver.play_dispatcher(Dispatcher, order, script)
expect_equal("through its own fallthrough, beside another dispatcher", through, ("viewed", 3, []))
expect_equal("the backend's kernel, no keys left", below, ("multiplied", 3, []))
expect_equal("an autograd key above it", above, ("recorded", ("multiplied", 3, [])))
for name, came, words in (("a hole", hole, ("mm", "Tracer")), ("no key left", none, ("mm",))):
    expect_equal(name, came[:2], ("raised", "NotImplementedError"))
    expect_equal(
        f"{name}: what the message lacks", [word for word in words if word not in came[2]], []
    )

# %% test="Dispatcher" points=7
# Graded
check("Dispatcher")
order = ("Tracer", "Autograd", "ADInplaceOrView", "CPU")
script = [
    ("fallback", "Tracer", ("fallthrough",)),
    ("fallback", "Autograd", ("answer", "for all")),
    ("composite", "relu", ("CPU",), ("fallthrough",)),
    ("composite", "view", ("CPU", "Autograd"), ("answer", "opened")),
    ("impl", "view", "Autograd", ("fallthrough",)),
    ("impl", "view", "CPU", ("answer", "viewed")),
    ("impl", "mm", "Autograd", ("call", "by way of", "relu")),
    ("impl", "mm", "CPU", ("answer", "multiplied")),
    ("impl", "t", "Autograd", ("nothing",)),
    ("impl", "t", "CPU", ("answer", "turned")),
    ("call", "neg", ("CPU", "Autograd", "Tracer"), 5),
    ("call", "view", ("CPU", "Autograd"), 5),
    ("call", "mm", ("CPU", "Autograd"), 5),
    ("call", "t", ("CPU", "Autograd"), 5),
]
for_all, viewed, no_relu, nothing = driver.play_dispatcher(Dispatcher, order, script)
expect_equal("a fallback is enough for an operator", for_all, ("for all", 5, ["CPU"]))
expect_equal("its own slot, before a composite", viewed, ("viewed", 5, []))
expect_equal(
    "an operator with nothing but a fallthrough", no_relu[:2], ("raised", "NotImplementedError")
)
expect_equal("a kernel that returns None", nothing, None)
script = [
    ("impl", "addmm", "CPU", ("answer", "multiplied")),
    ("impl", "addmm", "Autograd", ("redispatch", "recorded")),
    ("fallback", "Autograd", ("redispatch", "anything")),
    ("impl", "linear", "CPU", ("answer", "its own")),
    ("composite", "linear", ("Autograd", "CPU"), ("call", "opened", "addmm")),
    ("composite", "norm", ("Autograd", "CPU"), ("answer", "older")),
    ("composite", "norm", ("Autograd",), ("answer", "newer")),
    ("call", "linear", ("CPU", "Autograd"), 7),
    ("call", "linear", ("CPU",), 7),
    ("fallback", "Tracer", ("fallthrough",)),
    ("call", "norm", ("CPU", "Autograd", "Tracer"), 7),
    ("call", "norm", ("CPU",), 7),
]
opened, own, newer, older = driver.play_dispatcher(Dispatcher, order, script)
expect_equal(
    "a composite starts from the top", opened, ("opened", ("recorded", ("multiplied", 7, [])))
)
expect_equal("beside a kernel of its own", own, ("its own", 7, []))
expect_equal("registered again", newer, ("newer", 7, ["Autograd", "CPU", "Tracer"]))
expect_equal("registered once", older, ("older", 7, ["CPU"]))
### BEGIN HIDDEN TESTS
verify("Dispatcher", Dispatcher)
### END HIDDEN TESTS

# %% [markdown]
# ## 5 · Count while others compute
#
# *Medium, 20 minutes, 5 points: two for products, one for the backward, one under inference mode,
# one for MiniGPT.*
# From the lesson: [Listening in](../../notebooks/04_dispatcher.ipynb#cell-id=listening-in).
#
# In lab 01 you *predicted* the FLOPs of a forward from a config. A mode can count them, in any
# model and in the backward as well, and no line of the model changes. Write `FlopCounter`, a
# `TorchDispatchMode` with an int `flops`, which is 0 at first. It adds 2·M·K·N for each product of
# (M, K) with (K, N), and it does so for each matrix of a batch. Products arrive as `mm`, `addmm`,
# `bmm` and `baddbmm`, and the sum in `addmm` and `baddbmm` is too small to count. Nothing else
# counts, neither `mv` nor `dot`, which multiply by a vector. The program must not notice the mode.
#
# Under `torch.inference_mode()` composites arrive whole, and the count must be the same. In the
# programs here, `linear` and `matmul` are the composites that contain products.
# `func.decompose(*args, **kwargs)` runs a composite's own code, and the operators in it are
# ordinary calls. If the operator is not a composite, `decompose` returns `NotImplemented`. A mode
# doesn't hear the calls inside its own `__torch_dispatch__`, unless it is entered again by `with
# self:`.
#
# `torch.utils.flop_counter` and the like do not count here.
#
# <details><summary>Which argument is which?</summary>
#
# The calls are `mm(a, b)` and `bmm(a, b)`, but `addmm(sum, a, b)` and `baddbmm(sum, a, b)`. In the
# last two, the matrices are the second and the third argument. `func._schema` shows the arguments
# of any operator.
# </details>
# <details><summary>The backward doesn't seem to be counted</summary>
#
# A mode hears every call inside its `with`. If you call `backward()` inside the `with`, the mode
# also hears the engine's calls. For each product in the forward there are two in the backward, one
# for each input that requires a gradient.
# </details>

# %% solution="FlopCounter"
class FlopCounter(TorchDispatchMode):
    """Counts the FLOPs of matrix products: `flops` is an int."""

    def __init__(self):
        super().__init__()
        ### BEGIN SOLUTION
        self.flops = 0
        ### END SOLUTION

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        ### BEGIN SOLUTION
        kwargs = kwargs or {}
        with self:
            result = func.decompose(*args, **kwargs)
        if result is not NotImplemented:
            return result
        name = func.overloadpacket.__name__
        first = {"mm": 0, "bmm": 0, "addmm": 1, "baddbmm": 1}.get(name)
        if first is not None:
            a, b = args[first], args[first + 1]
            self.flops += 2 * a.numel() * b.shape[-1]
        return func(*args, **kwargs)
        ### END SOLUTION

# %%
a, b, c = torch.ones(2, 3), torch.ones(3, 4), torch.ones(4, 5)
expect_equal("two products", driver.count_flops(FlopCounter, "two layers", a, b, c)["flops"],
             2 * 2 * 3 * 4 + 2 * 2 * 4 * 5)
expect_equal(
    "a matrix with a batch, inference mode",
    driver.count_flops(FlopCounter, "two layers", a, torch.ones(6, 3, 4), c, inference=True)[
        "flops"
    ],
    6 * (2 * 2 * 3 * 4 + 2 * 2 * 4 * 5),
)
q, k = torch.ones(6, 5, 8), torch.ones(6, 7, 8)
expect_equal("two batches of them", driver.count_flops(FlopCounter, "attention", q, k, k)["flops"],
             2 * (2 * 6 * 5 * 8 * 7))
expect_equal("products with a vector", driver.count_flops(FlopCounter, "vectors", a)["flops"], 0)
expect_equal(
    "and inference mode",
    driver.count_flops(FlopCounter, "a matrix and a vector", a, inference=True)["flops"],
    0,
)
expect_equal(
    "a sum and a batch of products",
    driver.count_flops(FlopCounter, "a sum of products", torch.ones(6, 5, 7), q, k.mT)["flops"],
    2 * 6 * 5 * 8 * 7,
)
expect_equal(
    "a layer of a batch, inference mode",
    driver.count_flops(FlopCounter, "linear", q, torch.ones(3, 8), torch.ones(3), inference=True)[
        "flops"
    ],
    2 * 6 * 5 * 8 * 3,
)
expect_equal(
    "what is written in place",
    driver.count_flops(FlopCounter, "in place", a, inference=True)["result"],
    5 * a,
)
sentence = torch.zeros(1, 32, dtype=torch.int64)
expect_equal(
    "MiniGPT, inference mode",
    driver.flops_of_minigpt(FlopCounter, MiniGPTConfig(), sentence, inference=True),
    9_273_344,
)
flops_by_operator(MiniGPT(MiniGPTConfig()), sentence)

# %% test="FlopCounter" points=5
# Graded
check("FlopCounter")
a, b, c = torch.ones(2, 3), torch.ones(3, 4), torch.ones(4, 5)
expect_equal(
    "there and back",
    driver.count_flops(FlopCounter, "there and back", a, torch.ones(7, 3))["flops"],
    2 * (2 * 2 * 3 * 7),
)
expect_equal(
    "two counters, one after the other",
    driver.count_by_two(FlopCounter, "two layers", a, b, c),
    {"first": 128, "second": 128},
)
### BEGIN HIDDEN TESTS
verify("FlopCounter", FlopCounter)
### END HIDDEN TESTS

# %% [markdown]
# ## 6 · Metres and seconds
#
# *Hard, 30 minutes, 5 points: two for sums and products, one for operators that keep the units, one
# for roots and functions, one for refusals.*
# From the lesson: [Tensors that answer](../../notebooks/04_dispatcher.ipynb#cell-id=tensors-that-answer).
#
# A tensor that knows its units refuses to add a length to a time. Nothing in PyTorch has to change
# for this, because every operator on a tensor of a subclass calls its `__torch_dispatch__`.
# `Quantity` wraps a plain tensor, `values`, and a dict from a unit to its power, `units`: `{"m": 1,
# "s": -1}` is a speed, and no power in it is 0. The code that makes such a wrapper is given, and
# you write its answers.
#
# Write `__torch_dispatch__`. The result of an operator on at least one `Quantity` is a `Quantity`
# again, with the values that torch computes from the plain values. It is a `Quantity` even if no
# unit is left. The operands keep their units. Plain numbers and plain tensors have no units.
#
# | operators | units of the result |
# |---|---|
# | `add`, `sub` | both operands must have the same units, which stay |
# | `mul`, `mm` | powers are added |
# | `div` | powers are subtracted |
# | `neg`, `abs`, `sum`, `mean`, `t`, `view` | stay |
# | `sqrt` | powers are halved, and each must be even |
# | `reciprocal` | powers change their sign (Python's `1 / q` calls it) |
# | `exp`, `log` | the operand must have none |
#
# A call that breaks a rule raises `ValueError`. An operator that is not in the table raises
# `NotImplementedError`, even if its name begins or ends like a name in the table, as `log2` and
# `neg_` do.
#
# <details><summary>How do I tell which operator it is?</summary>
#
# `func` has an overload (`aten.add.Tensor`, `aten.sum.dim_IntList`). `func.overloadpacket` has no
# overload, so you can compare it: `func.overloadpacket is torch.ops.aten.add`. Its name is
# `func.overloadpacket.__name__`.
# </details>
# <details><summary>It calls itself for ever</summary>
#
# `func` on a `Quantity` calls `__torch_dispatch__` again. First take the plain values out of the
# positional arguments and out of the keyword arguments: `torch.utils._pytree.tree_map` does this
# for everything inside. Then `func` gets plain tensors, and you wrap its result.
# </details>

# %% solution="Quantity"
class Quantity(torch.Tensor):
    """A tensor with units: `values` is a plain tensor, `units` a dict from unit to power."""

    @staticmethod
    def __new__(cls, values, units):
        return torch.Tensor._make_wrapper_subclass(
            cls, values.shape, strides=values.stride(), dtype=values.dtype, device=values.device
        )

    def __init__(self, values, units):
        self.values = values
        self.units = {unit: power for unit, power in units.items() if power}

    def __repr__(self):
        return f"{self.values} " + "·".join(f"{unit}^{power}" for unit, power in self.units.items())

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        ### BEGIN SOLUTION
        def units_of(thing):
            return thing.units if isinstance(thing, cls) else {}

        def plain(thing):
            return thing.values if isinstance(thing, cls) else thing

        def combined(a, b, sign):
            return {u: a.get(u, 0) + sign * b.get(u, 0) for u in {**a, **b}}

        name = func.overloadpacket.__name__
        first, second = [*map(units_of, args), {}][:2]
        if name in {"add", "sub"}:
            if first != second:
                raise ValueError(f"{name} of {first} and {second}")
            units = first
        elif name in {"mul", "mm"}:
            units = combined(first, second, 1)
        elif name == "div":
            units = combined(first, second, -1)
        elif name in {"neg", "abs", "sum", "mean", "t", "view"}:
            units = first
        elif name == "sqrt":
            if any(power % 2 for power in first.values()):
                raise ValueError(f"the root of {first}")
            units = {unit: power // 2 for unit, power in first.items()}
        elif name == "reciprocal":
            units = {unit: -power for unit, power in first.items()}
        elif name in {"exp", "log"}:
            if first:
                raise ValueError(f"{name} of {first}")
            units = {}
        else:
            raise NotImplementedError(f"Quantity does not know {func}")
        args, kwargs = torch.utils._pytree.tree_map(plain, (args, kwargs or {}))
        return cls(func(*args, **kwargs), units)
        ### END SOLUTION

# %%
given = {
    "length": (torch.tensor([3.0, 8.0]), {"m": 1}),
    "time": (torch.tensor([2.0, 4.0]), {"s": 1}),
    "ones": (torch.tensor([1.0, 1.0]),),
    "sheet": (torch.tensor([[3.0, 8.0]]), {"m": 1}),
    "area": (torch.tensor([4.0, 16.0]), {"m": 2}),
    "volume": (torch.tensor([8.0, 64.0]), {"m": 3}),
    "ratio": (torch.tensor([0.25, 1.0]), {}),
    "turned": (torch.tensor([0.5, 1.0]), {"s": -1, "m": 1}),
}
program = [
    ("speed", "div", "length", "time"),
    ("twice", "mul", "speed", 2.0),
    ("mean", "mean", "twice"),
    ("pace", "reciprocal", "speed"),
    ("rate", "div", "ones", "time"),
    ("far", "add", "length", "length", {"alpha": 2}),
    ("a length and a time", "add", "length", "time"),
    ("a length and a number", "add", "length", 1.0),
    ("the root of a time", "sqrt", "time"),
    ("the logarithm of a length", "log", "length"),
    ("an exponential of a length", "exp", "length"),
    ("the sine of a length", "sin", "length"),
    ("from the left", "mean", "length", 0, True),
    ("against", "neg", "speed"),
    ("a row", "flatten", "sheet"),
    ("a length and an area", "add", "length", "area"),
    ("a ratio and a number", "add", "ratio", 1.0),
    ("the root of a ratio", "sqrt", "ratio"),
    ("one over an area", "reciprocal", "area"),
    ("its root", "sqrt", "one over an area"),
    ("the root of a volume", "sqrt", "volume"),
    ("a product", "mul", "length", "time"),
    ("the root of a product", "sqrt", "a product"),
    ("another speed", "add", "speed", "turned"),
    ("a length in place", "neg_", "length"),
]
came = driver.measure(Quantity, given, program)
expect_equal("a speed", came["speed"], ("Quantity", torch.tensor([1.5, 2.0]), {"m": 1, "s": -1}))
expect_equal("its mean, twice", came["mean"], ("Quantity", torch.tensor(3.5), {"m": 1, "s": -1}))
expect_equal("one over a speed", came["pace"][2], {"m": -1, "s": 1})
expect_equal(
    "one over a time, by `/`", came["rate"], ("Quantity", torch.tensor([0.5, 0.25]), {"s": -1})
)
expect_equal(
    "a length, and twice another", came["far"], ("Quantity", torch.tensor([9.0, 24.0]), {"m": 1})
)
expect_equal(
    "a mean along a dimension", came["from the left"], ("Quantity", torch.tensor([5.5]), {"m": 1})
)
expect_equal(
    "minus a speed", came["against"], ("Quantity", torch.tensor([-1.5, -2.0]), {"m": 1, "s": -1})
)
expect_equal(
    "flattened, by a view", came["a row"], ("Quantity", torch.tensor([3.0, 8.0]), {"m": 1})
)
expect_equal(
    "a ratio and 1", came["a ratio and a number"], ("Quantity", torch.tensor([1.25, 2.0]), {})
)
expect_equal(
    "the root of no units", came["the root of a ratio"], ("Quantity", torch.tensor([0.5, 1.0]), {})
)
expect_equal(
    "the root of one over an area",
    came["its root"],
    ("Quantity", torch.tensor([0.5, 0.25]), {"m": -1}),
)
expect_equal(
    "units in another order",
    came["another speed"],
    ("Quantity", torch.tensor([2.0, 3.0]), {"m": 1, "s": -1}),
)
for nonsense in (
    "a length and a time",
    "a length and a number",
    "a length and an area",
    "the root of a time",
    "the root of a volume",
    "the root of a product",
    "the logarithm of a length",
    "an exponential of a length",
):
    expect_equal(nonsense, came[nonsense], ("raised", "ValueError"))
for unknown in ("the sine of a length", "a length in place"):
    expect_equal(unknown, came[unknown], ("raised", "NotImplementedError"))

# %% test="Quantity" points=5
# Graded
check("Quantity")
given = {
    "length": (torch.tensor([3.0, 8.0]), {"m": 1}),
    "first": (torch.ones(2, 3), {"m": 1, "s": -1}),
    "second": (torch.ones(3, 1), {"s": 1}),
}
program = [
    ("area", "mul", "length", "length"),
    ("side", "sqrt", "area"),
    ("ratio", "div", "side", "length"),
    ("log2 of a ratio", "log2", "ratio"),
    ("pace", "reciprocal", "length"),
    ("length, as it was", "abs", "length"),
    ("matrices", "mm", "first", "second"),
]
came = driver.measure(Quantity, given, program)
expect_equal("the side of a square", came["side"], ("Quantity", torch.tensor([3.0, 8.0]), {"m": 1}))
expect_equal("a ratio", came["ratio"], ("Quantity", torch.tensor([1.0, 1.0]), {}))
expect_equal("no such operator", came["log2 of a ratio"], ("raised", "NotImplementedError"))
expect_equal("an operand keeps its units", came["length, as it was"][2], {"m": 1})
expect_equal(
    "a product of matrices", came["matrices"], ("Quantity", torch.full((2, 1), 3.0), {"m": 1})
)
### BEGIN HIDDEN TESTS
verify("Quantity", Quantity)
### END HIDDEN TESTS

# %% [markdown]
# ## 7 · Read the real table
#
# *Easy, 15 minutes, 3 points: two for the kind of a slot, one for its file.*
# From the lesson: [Reading the table](../../notebooks/04_dispatcher.ipynb#cell-id=reading-the-table).
#
# `torch._C._dispatch_dump_table("aten::mm")` is the truth: a text with one line for each key at
# which the operator has a slot. Write `read_slot(dump, key)`, which finds the line of a key in such
# a text and returns a pair:
#
# - the kind of the slot: `"kernel"`, `"autograd kernel"`, `"composite"` (torch says `math kernel`),
#   `"default"` (torch says `default backend kernel`), `"batched"` (`batched kernel`) or
#   `"fallback"` (`backend fallback`). If the line says `fallthrough`, the kind is `"fallthrough"`,
#   whatever it says in brackets. If the key has no line, the kind is `"nothing"`;
# - the name of the file in which it was registered, without folders and without a line number, such
#   as `"RegisterCPU_0.cpp"`. If the key has no line, this name is `""`.
#
# <details><summary>It finds another key's line</summary>
#
# `AutogradCPU`, `QuantizedCPU` and `SparseCPU` end in `CPU` too, and file names contain names of
# keys. The key is the whole text before the first `": "`.
# </details>
# <details><summary>How do I take a line apart?</summary>
#
# After the key come the words `registered at` or `fallthrough registered at`, a path, a colon and a
# number. At the very end is the kind in square brackets. `str.rpartition` splits a line from the
# right.
# </details>

# %% solution="read_slot"
def read_slot(dump: str, key: str) -> tuple[str, str]:
    """What an operator's slot for `key` holds, and the file in which that was registered."""
    ### BEGIN SOLUTION
    words = {
        "math kernel": "composite",
        "default backend kernel": "default",
        "batched kernel": "batched",
        "backend fallback": "fallback",
    }
    for line in dump.splitlines():
        name, _, rest = line.partition(": ")
        if name == key:
            where, _, kind = rest.rpartition(" [")
            file = where.rpartition(":")[0].rpartition("/")[2]
            kind = kind.removesuffix("]")
            if rest.startswith("fallthrough"):
                kind = "fallthrough"
            return words.get(kind, kind), file
    return "nothing", ""
    ### END SOLUTION

# %%
dump = torch._C._dispatch_dump_table("aten::mm")
expect_equal("mm on a CPU", read_slot(dump, "CPU"), ("kernel", "RegisterCPU_0.cpp"))
expect_equal("mm and autograd", read_slot(dump, "AutogradCPU")[0], "autograd kernel")
expect_equal("mm without numbers", read_slot(dump, "Meta"), ("kernel", "_meta_registrations.py"))
expect_equal("mm has nothing to do here", read_slot(dump, "ADInplaceOrView"),
             ("fallthrough", "VariableFallbackKernel.cpp"))
expect_equal("mm and Python", read_slot(dump, "Python"), ("fallback", "PythonFallbackKernel.cpp"))
expect_equal("clone on a GPU", read_slot(driver.table("clone"), "CUDA")[0], "default")
expect_equal(
    "a batch of dropouts", read_slot(driver.table("dropout"), "FuncTorchBatched")[0], "batched"
)
expect_equal(
    "a view of a conjugate",
    read_slot(driver.table("view"), "Conjugate"),
    ("fallthrough", "ConjugateFallback.cpp"),
)
for no_key in ("Toaster", "PU", "Auto", "cpu", "Other"):
    expect_equal(f"no key {no_key}", read_slot(dump, no_key), ("nothing", ""))

# %% test="read_slot" points=3
# Graded
check("read_slot")
linear = torch._C._dispatch_dump_table("aten::linear")
expect_equal("linear on a CPU", read_slot(linear, "CPU"),
             ("composite", "RegisterCompositeImplicitAutograd_0.cpp"))
expect_equal("linear and autograd", read_slot(linear, "AutogradCPU")[0], "composite")
### BEGIN HIDDEN TESTS
verify("read_slot", read_slot)
### END HIDDEN TESTS

# %% [markdown]
# ## 8 · The account of MiniGPT
#
# *Medium, 25 minutes, 4 points: two for the forward, two with the backward.*
# From the lesson: [Counting, to the last operator](../../notebooks/04_dispatcher.ipynb#cell-id=counting-to-the-last-operator).
#
# How many operators does a forward call, and how many of them do any work? Write
# `account(model, tokens, backward)`. It runs `model(tokens)`, takes the sum of the logits and, if
# `backward` is true, calls `backward()` on the sum. It sorts every operator that a mode hears
# meanwhile, including the sum, into one of four kinds:
#
# - `"views"`: its result, one tensor or several, is in the storage of one of its arguments, and
#   nothing was written;
# - `"copies"`: `clone`, `copy_` and `_to_copy`, which put the same numbers elsewhere;
# - `"products"`: `mm`, `addmm`, `bmm`, `baddbmm`;
# - `"rest"`: everything else.
#
# It returns a dict with these four counts and `"launches"`: how many of the operators would start
# work on a GPU, namely all operators except the views. The graded cell also uses small models that
# are not MiniGPT: they slice, split, join, cast, multiply and write in place.
#
# <details><summary>How do I know that it is a view?</summary>
#
# You know this since
# [phase 01](../../notebooks/01_tensors.ipynb#cell-id=who-shares-bytes-with-whom): compare the
# `untyped_storage().data_ptr()` of the result and of each tensor argument. Names mislead:
# `_unsafe_view` makes a view in memory, and `reshape` sometimes makes one.
# </details>
# <details><summary>My counts are a few too high</summary>
#
# `zero_` and `add_` return their argument and write into it, so they are not views.
# `func._schema.is_mutable` is true for such operators. And your mode should not count the operators
# that it calls itself to look at a tensor.
# </details>

# %% solution="account"
def account(model: torch.nn.Module, tokens: torch.Tensor, backward: bool) -> dict[str, int]:
    """Views, copies, products, rest and launches of a forward, and of a backward if wanted."""
    ### BEGIN SOLUTION
    counts = {"views": 0, "copies": 0, "products": 0, "rest": 0}

    def storages(things):
        leaves = torch.utils._pytree.tree_leaves(things)
        return {t.untyped_storage().data_ptr() for t in leaves if isinstance(t, torch.Tensor)}

    class Accountant(TorchDispatchMode):
        def __torch_dispatch__(self, op, types, args=(), kwargs=None):
            came = op(*args, **(kwargs or {}))
            name = op.overloadpacket.__name__
            if name in {"mm", "addmm", "bmm", "baddbmm"}:
                kind = "products"
            elif name in {"clone", "copy_", "_to_copy"}:
                kind = "copies"
            elif not op._schema.is_mutable and storages(came) & storages(args):
                kind = "views"
            else:
                kind = "rest"
            counts[kind] += 1
            return came

    with Accountant():
        total = model(tokens).sum()
        if backward:
            total.backward()
    return counts | {"launches": counts["copies"] + counts["products"] + counts["rest"]}
    ### END SOLUTION

# %%
found = driver.account(account, MiniGPTConfig(), torch.zeros(2, 32, dtype=torch.int64), False)
print(found)
expect_equal("all operators of the forward, and the sum", found["launches"] + found["views"], 130)
expect_equal("views, copies and products", (found["views"], found["copies"], found["products"]),
             (79, 8, 17))
tokens = torch.zeros(2, 3, dtype=torch.int64)
found = driver.account(account, "a comparison, and its transpose", tokens, False)
expect_equal(
    "a small model", found, {"views": 1, "copies": 0, "products": 0, "rest": 3, "launches": 3}
)
found = driver.account(account, "a diagonal", tokens, False)
expect_equal("another", found, {"views": 1, "copies": 0, "products": 0, "rest": 2, "launches": 2})
found = driver.account(account, "a shuffle", tokens, False)
expect_equal("one with a product", (found["views"], found["copies"], found["products"]), (3, 2, 1))

# %% test="account" points=4
# Graded
check("account")
tokens = torch.zeros(2, 3, dtype=torch.int64)
found, kinds = driver.account_of_two(account, tokens), ("views", "copies", "products")
expect_equal("another model, there and back", [found["first"][kind] for kind in kinds], [9, 3, 2])
expect_equal("and one after it", (found["second"]["views"], found["second"]["copies"]), (2, 1))
### BEGIN HIDDEN TESTS
verify("account", account)
### END HIDDEN TESTS

# %% [markdown] task="one_line" points=3
# ## 9 · One line of the table
#
# *10 minutes, 3 points, read by a person.*
#
# The table of `aten::linear` has the line
#
# ```
# AutogradCPU: registered at .../RegisterCompositeImplicitAutograd_0.cpp:5218 [math kernel]
# ```
#
# Explain it in five to eight sentences to somebody who knows phase 03. Say what a key is, and who
# brought this key to the call. Say what a `math kernel` is, why autograd has no kernel for
# `linear`, and how `linear` still gets a gradient. And say what a mode hears, with and without
# `torch.inference_mode()`.
#
# === BEGIN MARK SCHEME ===
#
# One point each:
#
# - **The look-up.** A call is looked up by operator and key set. Each ordinary tensor on the CPU
#   brings AutogradCPU, whether or not it requires a gradient. This key is above the backend's key,
#   so it comes first. (The reason "because requires_grad is set" is wrong.)
# - **Composite.** The math kernel is code that calls other operators (`t`, `addmm`, `view`). It is
#   registered once for all backends and their autograd keys. Each operator that it calls is looked
#   up again from the top and has its own autograd kernel, which records a node. These nodes give
#   the gradient of linear, so nobody had to write a backward for it.
# - **What a mode hears.** A mode is below autograd. With AutogradCPU in the set, linear is split
#   before the mode hears it, so the mode hears `t`, `addmm` and the other parts. Under inference
#   mode the autograd keys are taken away. So the mode's key comes first, and the mode hears one
#   `linear`.
#
# === END MARK SCHEME ===

# %% [markdown]
# *Your answer goes here.*

# %% [markdown]
# ## 10 · Who pulls hardest?
#
# *Further, medium, 20 minutes, 3 points: one each for small models, for MiniGPT, and for no loop and
# no trace.*
# From the lesson: [A gradient for each example](../../notebooks/04_dispatcher.ipynb#cell-id=a-gradient-for-each-example).
#
# The gradient of a batch is a mean, so it does not show which example pulls hardest at the weights.
# Write `sample_gradients(model, loss, x, targets)`, which returns a gradient for each example.
#
# - `model` is a module, and `x` is a batch of N examples, with N at least 1. The model takes only
#   batches: `model(x)` has N rows. It uses no random numbers, and no row depends on another example.
# - `loss(outputs, targets)` is the loss of a batch, a tensor with one number. Like
#   `F.cross_entropy`, it takes a mean over the batch. `targets` has N rows, too.
#
# The result is a dict with the names of `model.named_parameters()`. Under each name is a tensor of
# shape (N, *shape of the parameter). Its row i is the gradient of the loss for a batch that contains
# only example i. If two layers share a parameter, it has one name and one gradient.
#
# A loop over the examples does not count: for a larger batch, a mode must not hear more operators.
# The model is only read: its parameters, its buffers and each parameter's `.grad` stay as they are.
#
# <details><summary>What do I differentiate?</summary>
#
# You need a function of the parameters and of *one* example, which returns a loss. Inside it,
# `torch.func.functional_call` runs the model with the parameters that the function gets.
# </details>
# <details><summary>The model complains about a missing dimension</summary>
#
# Inside `vmap`, an example has lost the dimension of the batch, and the model takes only batches. So
# make a batch of one, both of the example and of its target.
# </details>

# %% solution="sample_gradients"
def sample_gradients(
    model: torch.nn.Module, loss, x: torch.Tensor, targets: torch.Tensor
) -> dict[str, torch.Tensor]:
    """Each parameter's gradients, (N, *shape of the parameter), a row for each example."""
    ### BEGIN SOLUTION
    def alone(parameters, example, target):
        outputs = torch.func.functional_call(model, parameters, (example[None],))
        return loss(outputs, target[None])

    parameters = {name: one.detach() for name, one in model.named_parameters()}
    each = torch.vmap(torch.func.grad(alone), in_dims=(None, 0, 0))
    return each(parameters, x, targets)
    ### END SOLUTION

# %% [markdown]
# Sixteen lines of MiniGPT's own training, sorted by how hard they pull. Is it the loss that decides?

# %%
model, tokenizer = load_minigpt(), load_tokenizer()
x, targets = (lines[:16] for lines in training_lines())
found = sample_gradients(model, next_words, x, targets)
alone = torch.autograd.grad(next_words(model(x[3:4]), targets[3:4]), list(model.parameters()))
for (name, _), one in zip(model.named_parameters(), alone):
    expect_close(f"{name}, of the fourth line", found[name][3].detach(), one, atol=1e-5)
expect_equal("nothing in .grad", [p.grad for p in model.parameters() if p.grad is not None], [])
nine = torch.ones(9, 3), torch.tensor([0, 1, 2] * 3)
came = derivatives.sample_gradients(
    sample_gradients, "a linear layer", (3, 4), {}, "cross-entropy", *nine, few=2
)
expect_equal("nine examples call no more operators than two", came["operators"] < 7, True)
pulls = sum(one.detach().flatten(1).square().sum(1) for one in found.values()).sqrt()
for row in pulls.argsort(descending=True):
    value = next_words(model(x[row : row + 1]), targets[row : row + 1]).item()
    text = tokenizer.decode(x[row].tolist())
    print(f"pull {pulls[row]:.2f}   loss {value:.2f}   {text[:60]}")

# %% test="sample_gradients" points=3
# Graded
check("sample_gradients")
layer = torch.nn.Linear(2, 1, bias=False)
x, targets = torch.tensor([[1.0, 2.0], [3.0, 5.0]]), torch.zeros(2, 1)
with torch.no_grad():
    layer.weight.copy_(torch.tensor([[1.0, 1.0]]))
found = sample_gradients(layer, F.mse_loss, x, targets)
expect_close(
    "2 (w·x) x, for each x", found["weight"].detach(), [[[6.0, 12.0]], [[48.0, 80.0]]], atol=1e-4
)
### BEGIN HIDDEN TESTS
verify("sample_gradients", sample_gradients)
### END HIDDEN TESTS

# %% [markdown]
# ## 11 · Curvature without a matrix
#
# *Further, hard, 20 minutes, 3 points: one each for small models, for MiniGPT, and for no Hessian and
# no trace.*
# From the lesson: [A gradient for each example](../../notebooks/04_dispatcher.ipynb#cell-id=a-gradient-for-each-example).
#
# If the weights move a little along v, how does the gradient change? By H v, where H is the
# *Hessian*, the matrix of all second derivatives of the loss. For MiniGPT's 179,544 parameters, H
# would fill 258 GB in float64. But H v has only as many numbers as v.
#
# Write `hessian_product(model, loss, x, targets, v)`. The first four arguments are as in exercise
# 10, but here the loss is that of the whole batch, `loss(model(x), targets)`. `v` is a dict with the
# names of `model.named_parameters()`, in their order. Each tensor in it has the shape of its
# parameter. The result is H v, a dict of the same form. H is the Hessian for all parameters
# together, so a step in one of them changes the gradients of the others, too.
#
# All floating-point tensors are float64, and the result must be exact to rounding. The difference of
# two gradients, divided by a small step, is not.
#
# Don't make H, whole or in parts. For a model with n > 1,000 parameters, a mode must hear fewer than
# n operators, and no operator may return a tensor with more than 10·n numbers. `v` and the model are
# only read: parameters, buffers and each parameter's `.grad` stay as they are.
#
# <details><summary>A derivative of a gradient?</summary>
#
# The gradient is a function of the parameters, like the loss. `torch.func.grad(f)` *is* this
# function, and you can differentiate it again.
# </details>
# <details><summary>Which derivative gives H v?</summary>
#
# You want the derivative of the gradient along one direction. Forward mode computes just that:
# `torch.func.jvp(g, (p,), (v,))` returns g(p), and the derivative of g at p along v.
# </details>

# %% solution="hessian_product"
def hessian_product(
    model: torch.nn.Module,
    loss,
    x: torch.Tensor,
    targets: torch.Tensor,
    v: dict[str, torch.Tensor],
) -> dict[str, torch.Tensor]:
    """The product of the loss's Hessian and v, for all parameters together."""
    ### BEGIN SOLUTION
    def whole(parameters):
        return loss(torch.func.functional_call(model, parameters, (x,)), targets)

    parameters = {name: one.detach() for name, one in model.named_parameters()}
    _, product = torch.func.jvp(torch.func.grad(whole), (parameters,), (v,))
    return product
    ### END SOLUTION

# %% [markdown]
# First a small model, whose Hessian fits into memory. Then MiniGPT: how long may a step along its
# gradient g be, if the loss should fall? The curvature along g is c = g·H g / g·g, and a parabola
# with this curvature is back at its old height after a step of 2/c.

# %%
torch.manual_seed(0)
small = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Tanh(), torch.nn.Linear(2, 2)).double()
x, targets = torch.randn(4, 3, dtype=torch.float64), torch.tensor([0, 1, 1, 0])
v = {name: torch.randn_like(one).detach() for name, one in small.named_parameters()}
names = list(v)


def loss_at(*ones):
    return F.cross_entropy(torch.func.functional_call(small, dict(zip(names, ones)), (x,)), targets)


at = tuple(one.detach() for one in small.parameters())
_, right = torch.autograd.functional.hvp(loss_at, at, tuple(v.values()))
product = hessian_product(small, F.cross_entropy, x, targets, v)
expect_equal("the names", list(product), names)
for name, one in zip(names, right):
    expect_close(f"H v, {name}", product[name].detach(), one, atol=1e-12)
wide = torch.nn.Linear(40, 30).double()
v = {name: torch.ones_like(one).detach() for name, one in wide.named_parameters()}
given = wide.state_dict(), "cross-entropy", torch.ones(2, 40).double(), torch.tensor([0, 29])
came = derivatives.hessian_product(
    hessian_product, "a linear layer", (40, 30), *given, v, watched=True
)
expect_equal("fewer operators than parameters", came["operators"] < 1230, True)
expect_equal("no tensor like H", came["largest"] <= 12300, True)

model = load_minigpt().double()
x, targets = (lines[:16] for lines in training_lines())
slopes = torch.autograd.grad(next_words(model(x), targets), list(model.parameters()))
g = {name: one for (name, _), one in zip(model.named_parameters(), slopes)}
product = hessian_product(model, next_words, x, targets, g)
curvature = sum((g[name] * product[name]).sum() for name in g).item()
curvature /= sum(one.square().sum() for one in g.values()).item()
print(f"curvature along the gradient: {curvature:.1f}")
for length in (0, 0.5, 1, 1.5, 2, 2.5):
    moved = {name: one - length / curvature * g[name] for name, one in model.named_parameters()}
    logits = torch.func.functional_call(model, moved, (x,))
    print(f"a step of {length:3} / curvature: the loss is {next_words(logits, targets):.4f}")

# %% test="hessian_product" points=3
# Graded
check("hessian_product")
layer = torch.nn.Linear(2, 1, bias=False).double()
x, zero = torch.tensor([[1.0, 2.0], [3.0, 5.0]], dtype=torch.float64), torch.zeros(2, 1).double()
v = {"weight": torch.tensor([[1.0, 0.0]], dtype=torch.float64)}
product = hessian_product(layer, derivatives.squared_errors, x, zero, v)
expect_close("the first column of xᵀx", product["weight"].detach(), [[10.0, 17.0]], atol=1e-9)
### BEGIN HIDDEN TESTS
verify("hessian_product", hessian_product)
### END HIDDEN TESTS

# %% [markdown]
# ## Done
#
# Use *Kernel → Restart Kernel and Run All Cells* once more, so that you know your notebook works
# from top to bottom, then save it.
#
# You can now say of any call which keys it starts with, which of them wins, which code then runs,
# and in which file of PyTorch that code was registered. You have written a dispatcher, listened to
# the real one, and answered in its place. In
# [phase 05](../../notebooks/05_custom_op.ipynb#cell-id=what-pytorch-asks-of-an-operator) you add an
# operator to its table.
