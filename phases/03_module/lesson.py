# ---
# jupyter:
#   kernelspec: {display_name: Python 3, language: python, name: python3}
#   open_the_hood: {title: "nn.Module"}
# ---

# %% [markdown]
# # nn.Module
#
# Every model inherits from `nn.Module`, and most of its work happens where nobody looks: in an assignment. This lesson looks there.
#
# It takes about an hour and a half. You need [phase 01](01_tensors.ipynb#cell-id=a-tensor-is-a-storage-and-a-view)'s storages and [phase 02](02_autograd.ipynb#cell-id=leaves-and-gradients-that-add-up)'s leaves. When a paragraph begins with **Predict**, decide on an answer before you look below it. Nothing here is graded, and everything here is used in the lab.

# %%
import copy

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from hood.learner.contents import PHASES
from utils.minigpt import load_config, load_minigpt, load_tokenizer, load_weights, numpy_forward
from utils.notebook.drills import choice, number, true_false
from utils.views import course_path, dropout_modes, module_tree, port_difference

# %% [markdown]
# ## Where we are

# %%
course_path(PHASES, here=3)

# %% [markdown]
# You can say what a tensor is, byte by byte, and where its gradient comes from. A model has dozens of tensors, with thousands or billions of numbers. Something must know all these tensors: to give them to an optimizer, to save them, to move them to another device. This is the work of a registry, and the registry is called `nn.Module`.

# %% [markdown]
# ## Resumen en español
#
# Un `nn.Module` es un registro de tensores más un `forward` escrito como código; lo que no está en el registro ni se entrena, ni se guarda, ni se mueve.
# El registro se llena en el momento de la asignación: `self.peso = nn.Parameter(...)` pasa por `__setattr__`, que mira el tipo. Una lista de Python o un tensor corriente se le escapan sin ningún aviso.
# `.to(device)` recorre el árbol y copia cada parámetro una sola vez; `state_dict` y `load_state_dict` lo recorren para guardar y para llenar; `train` y `eval`, para cambiar de modo.
# Aprenderás a escribir `Module` desde cero, a leer sus errores y a portar un GPT entrenado de NumPy a PyTorch, buscando el primer punto en que difieren.

# %% [markdown]
# ## The question
#
# A colleague gives MiniGPT's LM head one more thing to learn: a factor for each of the 600 words, so that the model can make a rare word less likely everywhere. The code has seven lines, and it runs.

# %%
class ScaledHead(nn.Module):
    def __init__(self, head):
        super().__init__()
        self.head = head
        self.scale = torch.ones(600, requires_grad=True)

    def forward(self, x):
        return self.head(x) * self.scale


torch.manual_seed(0)
trained = load_minigpt()
scaled = ScaledHead(copy.deepcopy(trained.lm_head))
x, targets = torch.randn(256, 64), torch.randint(0, 600, (256,))

# %% [markdown]
# The head is already trained, so only the scale should learn: we freeze the head and give all parameters of the model to the optimizer.
#
# **Predict.** The targets are random, so a factor can help only a little. How far will the loss fall in 100 steps? Will there be an error, or a warning?

# %%
scaled.head.requires_grad_(False)
optimizer = torch.optim.SGD(scaled.parameters(), lr=1.0)
for step in range(101):
    loss = F.cross_entropy(scaled(x), targets)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    if step % 50 == 0:
        grad = scaled.scale.grad.abs().max().item()
        print(
            f"step {step:3}  loss {loss.item():.6f}  scale {scaled.scale[:3].tolist()}  grad "
            f"{grad:.4f}"
        )

# %% [markdown]
# Not even by a millionth. The scale has a gradient (it even grows, because nothing clears it), but after each step the scale is still 1. There is no error and no warning. There won't be one when the model is saved, either: the scale will simply be missing in the file. And this was a lucky case. If another part of the model was trained too, the loss would fall a little, and nobody would notice the mistake.
#
# The mathematics is right, and so is autograd. But one list was too short: `parameters()`.
#
# > **Who knows which tensors belong to a model, from which moment on, and what happens to tensors that nobody knows?**

# %% [markdown]
# ## One line of magic
#
# In Python, `self.name = value` calls `type(self).__setattr__(self, "name", value)`. An ordinary class inherits a `__setattr__` that puts the value into the object's `__dict__`. `nn.Module` has its own `__setattr__`, and this method is most of what you must know about `nn.Module`. Let us watch it.

# %%
class Watched(nn.Module):
    def __setattr__(self, name, value):
        super().__setattr__(name, value)
        kinds = ("_parameters", "_buffers", "_modules")
        place = [kind for kind in kinds if name in self.__dict__.get(kind, {})]
        if name in ("weight", "plain", "layer", "note"):
            print(
                f"{name:7} a {type(value).__name__:10} went to {place[0] if place else '__dict__'}"
            )

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(2, 3))
        self.plain = torch.zeros(2, 3, requires_grad=True)
        self.layer = nn.Linear(3, 2)
        self.note = "text"


watched = Watched()

# %% [markdown]
# That is the magic: `__setattr__` looks at the *type*. A `Parameter` goes to one dict, a `Module` to another, and everything else stays an ordinary attribute. Reading works the other way round: Python finds no `weight` in `__dict__`, so it calls `__getattr__`, and the `__getattr__` of `nn.Module` looks into its dicts.
#
# And `nn.Parameter`? It is a tensor of another class, so that `__setattr__` can recognize it. It has `requires_grad=True` unless you say otherwise, and it computes like any tensor.

# %%
p = nn.Parameter(torch.ones(3))
print(isinstance(p, torch.Tensor), p.requires_grad, p.is_leaf)
print("a Parameter times 2 is a", type(p * 2).__name__, "and no leaf:", (p * 2).is_leaf)

# %% [markdown]
# The second line is a trap that you know from [phase 02](02_autograd.ipynb#cell-id=leaves-and-gradients-that-add-up): `self.gain = 0.1 * nn.Parameter(...)` is a product, and a product is a plain tensor. Do the arithmetic first and make the Parameter last: `nn.Parameter(0.1 * ...)`.
#
# The dicts are made in `Module.__init__`. **Predict.** What happens if a class assigns an attribute before it calls `super().__init__()`? And does it matter which kind of value it assigns?

# %%
def attempt(action):
    """Print what `action()` returns, or the type and the first lines of the refusal."""
    try:
        print(action())
    except Exception as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        print(f"{type(error).__name__}: " + "\n    ".join(line[:150] for line in lines[:6]))


class TooEarly(nn.Module):
    def __init__(self, value):
        self.value = value
        super().__init__()


attempt(lambda: TooEarly(nn.Parameter(torch.ones(1))))
attempt(lambda: TooEarly(3).value)

# %% [markdown]
# For a Parameter there is no dict yet, so `nn.Module` raises an error. A plain value needs no dict, so there is no error. A class with its lines in the wrong order can work for months, until somebody gives it a parameter.

# %% tags=["hide-input"]
choice(
    "Which of these four lines in an `__init__` puts something into the registry?",
    {
        "`self.a = [nn.Linear(2, 2), nn.Linear(2, 2)]`": "The value is a list. `__setattr__` looks only at its type, and not at its elements.",
        "`self.b = torch.ones(2, requires_grad=True)`": "Autograd knows this tensor; Module doesn't. It is not a Parameter.",
        "`self.c = nn.Parameter(torch.ones(2)) / 2`": "A quotient is an ordinary tensor. Nothing refers to the Parameter by a name.",
        "`self.d = nn.Linear(2, 2)`": "This is a Module, so it becomes a child, with its two Parameters.",
    },
    answer="`self.d = nn.Linear(2, 2)`",
)

# %% [markdown]
# ## A tree, and walks through it
#
# Modules contain modules, so a model is a tree. Apart from the dicts and the hooks (a later section), nearly every method of `nn.Module` is a walk through that tree: `children()` (one step down), `modules()` (all the way), `named_parameters()`, `named_buffers()`, `state_dict()`, `to()`, `train()`. Names along the way are joined by dots.

# %%
print([name for name, _ in trained.named_children()])
print(
    *[f"{name:32} {tuple(p.shape)}" for name, p in list(trained.named_parameters())[:5]], sep="\n"
)
module_tree(trained)

# %% [markdown]
# An optimizer gets the purple words: 179,544 numbers in 38 tensors. Note what the tree does *not* say: in which order the parts are called, how often, or whether they are called at all. Only `forward` says that, and `forward` is code, so it can do anything. `AttentionPattern` has no parameters, but it is a module, so that we can look at its output with a hook.
#
# So: **a module is a registry of parameters plus a forward written as code.** The registry and the forward know nothing of each other.

# %% tags=["hide-input"]
true_false(
    "If a registered layer is never called in `forward`, `parameters()` leaves its weights out.", False,
    "Assignments fill the registry, and `forward` plays no part in it. The layer is saved, moved and given to the optimizer, and the gradients of its weights stay `None`.",
)

# %% [markdown]
# ## The loss that won't fall
#
# Back to the scaled head. Draw it.

# %%
module_tree(scaled)

# %% [markdown]
# There is the scale, with a cross. Autograd knows the scale, because the forward uses it. The *registry* does not know it. These are two different lists, and the optimizer gets the list of the registry.
#
# Containers are another way to lose parameters. **Predict.** How many parameters does this tower have?

# %%
class Tower(nn.Module):
    def __init__(self):
        super().__init__()
        self.floors = [nn.Linear(8, 8) for _ in range(3)]
        self.roof = nn.Linear(8, 1)


print(sum(p.numel() for p in Tower().parameters()))
module_tree(Tower())

# %% [markdown]
# Nine: only the roof. A Python list is an ordinary value. `nn.ModuleList` is a list that is a module, with children called "0", "1", "2". `nn.ModuleDict` is a dict that is a module. `nn.Sequential` is a list with a forward, which calls its children one after another. (`ParameterList` and `ParameterDict` do the same for parameters.)
#
# This habit finds all such mistakes in ten seconds: before the first step, list the parameters that are trained. After the first backward, list the parameters that have no gradient.

# %%
mended = ScaledHead(copy.deepcopy(trained.lm_head))
mended.scale = nn.Parameter(mended.scale.detach())   # here: a Parameter takes the old name
F.cross_entropy(mended(x), targets).backward()
for name, p in mended.named_parameters():
    print(f"{name:12} {p.numel():6,}  gradient: {'none' if p.grad is None else 'yes'}")

# %% tags=["hide-input"]
choice(
    "All parameters are registered, all are given to the optimizer, and one weight never changes. `forward` computes `x @ self.weight.data.T + self.bias`. Why?",
    {
        "`.data` is a copy": "It shares the storage, but it has no graph.",
        "its gradient is None, which optimizers skip": "`.data` has the same bytes without a graph, so no path leads back to the weight. The list of gradients above would show it at once.",
        "`.data` is read-only": "You may write to it, and autograd does not notice. That is why you should not use it.",
    },
    answer="its gradient is None, which optimizers skip",
)

# %% [markdown]
# ## What is saved but not trained
#
# Some tensors belong to the model, but training must not change them: the running mean of a BatchNorm, a causal mask, a table of positions. If they are plain attributes, they are not saved or moved with the model. If they are Parameters, they are trained and counted. For such tensors there is the third dict, and you use a call in place of an assignment:

# %%
class Standard(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("centre", torch.zeros(3))
        self.register_buffer("scratch", torch.zeros(3), persistent=False)
        self.width = nn.Parameter(torch.ones(3))


standard = Standard()
print("trained:", [name for name, _ in standard.named_parameters()])
print("moved  :", [name for name, _ in standard.named_buffers()])
print("saved  :", list(standard.state_dict()))

# %% [markdown]
# A buffer is moved and saved, but not trained. With `persistent=False` it is moved but not saved, which is right for tensors that can be computed again. After the registration, the name stays a buffer: `self.centre = self.centre * 0.9` puts the new tensor in the same place. But remember that the new tensor was *computed*. **Predict.** Here the new tensor is the mean of a batch that requires a gradient. Is `centre` still a buffer? And can the module be copied?

# %%
batch = torch.ones(4, 3, requires_grad=True)
standard.centre = batch.mean(0)
print(
    "buffers:",
    [name for name, _ in standard.named_buffers()],
    "  made by:",
    standard.centre.grad_fn.name(),
)
attempt(lambda: copy.deepcopy(standard))
with torch.no_grad():
    standard.centre = batch.mean(0)
print("under no_grad, made by:", standard.centre.grad_fn)

# %% [markdown]
# It is still a buffer, but it keeps a graph alive, and in a running average this graph grows by one batch in each step. Here `deepcopy` raises an error, so you notice it early. Usually you notice it when the memory is full. Update buffers under `no_grad`.

# %% tags=["hide-input"]
choice(
    "A model keeps its mask as a plain attribute, `self.mask = torch.ones(32, 32).tril()`. On a CPU, the model trains, saves and loads as it should. When is the mistake noticed?",
    {
        "when the model is moved": "`.to(\"cuda\")` leaves the mask on the CPU, and the next forward finds tensors on two devices.",
        "when the model is loaded": "The file has no mask, but it needs none: `__init__` makes the same mask again.",
        "when the optimizer is made": "A mask isn't trained, so the optimizer should not get it.",
    },
    answer="when the model is moved",
)

# %% [markdown]
# ## Saving is a dict, loading is a copy
#
# `state_dict()` returns what its name says, a dict from names to tensors. **Predict.** We take the state of a layer, and then change its weight, as training does. What is in the state afterwards, the old weight or the new one?

# %%
layer = nn.Linear(2, 1)
best = layer.state_dict()
before = best["weight"].clone()
with torch.no_grad():
    layer.weight += 1
print("the state has moved by", (best["weight"] - before).tolist())
print("one storage:", best["weight"].data_ptr() == layer.weight.data_ptr())

# %% [markdown]
# The new weight: the tensors in the state are detached from autograd, but they share the bytes of the weights. They are not copies. So in a training loop, `best = model.state_dict()` keeps the *last* weights and not the best. (Make a `copy.deepcopy` of the state, or save it to a file.)
#
# Loading goes the other way. It *copies into* the tensors that are there, name by name. So the Parameter objects stay the same, and an optimizer that was made before still has the right ones.

# %%
weight = layer.weight
print(layer.load_state_dict({"weight": torch.tensor([[5.0, 6.0]]), "bias": torch.zeros(1)}))
print(layer.weight is weight, weight.tolist())

# %% [markdown]
# And loading is strict. Read these three errors slowly: each of them names a typical mistake.

# %%
state = {"head.weight": torch.zeros(4, 3), "head.bias": torch.zeros(4)}
model = nn.ModuleDict({"head": nn.Linear(3, 4), "norm": nn.LayerNorm(3)})
attempt(lambda: model.load_state_dict(state))
attempt(lambda: model["head"].load_state_dict(state))
attempt(
    lambda: nn.Linear(4, 3).load_state_dict({"weight": torch.zeros(3, 1), "bias": torch.zeros(3)})
)

# %% [markdown]
# *Missing*: the model has names that are not in the file. You added a layer, or the file is from another model. *Missing and unexpected, with the same ending*: the names differ by a prefix. The file is from a larger model that contains this one (`head.`), or the model was saved inside a wrapper (`module.` from DataParallel, `_orig_mod.` from `torch.compile`). *Size mismatch*: the sizes differ, or a weight is transposed. (Without this error, a copy would *broadcast* (3, 1) to (3, 4).)
#
# With `strict=False`, names may be missing or unexpected, and `load_state_dict` *returns* these names: look at them. (A wrong size is still an error.) If you ignore the names, your model may be partly trained and partly random, and no message will tell you.

# %%
left_out = model.load_state_dict(state, strict=False)
print("missing:", left_out.missing_keys, "  unexpected:", left_out.unexpected_keys)

# %% tags=["hide-input"]
choice(
    "`load_state_dict` says: Missing key(s) “weight”, “bias”; Unexpected key(s) “module.weight”, “module.bias”. What is the fix?",
    {
        "strip the prefix from the file's names": "The names have the same endings, but the file has one more prefix: the state comes from a wrapper that calls the model `module`.",
        "strict=False": "Then nothing at all is loaded, and there is no error.",
        "train again": "The numbers are all there, under longer names.",
    },
    answer="strip the prefix from the file's names",
)

# %% [markdown]
# If you need a second *model*, and not only its numbers, use `copy.deepcopy`. It goes through the attributes and copies each module and each tensor once. So tied weights stay tied, and the copy shares nothing with the original. **Predict.** This module keeps its forward in a lambda. All weights of the original are 1, and all weights of the copy are 0. What does the copy return?

# %%
class Handy(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(2, 1)
        self.step = lambda x: torch.relu(self.inner(x))

    def forward(self, x):
        return self.step(x)


handy = Handy()
twin = copy.deepcopy(handy)
with torch.no_grad():
    for model, value in ((handy, 1.0), (twin, 0.0)):
        for p in model.parameters():
            p.fill_(value)
print(
    "the copy's weight:", twin.inner.weight.tolist(), "  what it says:", twin(torch.ones(2)).item()
)

# %% [markdown]
# It returns the result of the original. `deepcopy` does not copy functions, and the lambda still refers to the `self` of the original. The copy has its own `inner`, which is saved, moved and given to optimizers, but never called. So write the work of a module as methods: a method gets its `self` at the call.

# %% [markdown]
# ## Two modes
#
# `train()` and `eval()` walk through the tree and set one boolean in each module, `training`. That is all they do. A few layers read this boolean, above all Dropout and BatchNorm.
#
# **Predict.** Dropout with p = 0.5 gets numbers from 0.5 to 2. What is the output in training, and what is its mean over many calls?

# %%
dropout_modes(nn.Dropout(0.5), torch.linspace(0.5, 2.0, 24))

# %% [markdown]
# In about half of the calls a number becomes 0, and in the other half it is twice as large. So the average does not change, and the next layer gets inputs of the usual size. (In a running notebook, you can change the number of calls and the mode.) In eval mode, the layer does nothing:

# %%
dropout_modes(nn.Dropout(0.5), torch.linspace(0.5, 2.0, 24), training=False)

# %% [markdown]
# The first paper scaled nothing in training and used a factor in eval. Today all libraries scale in training, so that a deployed model has no extra work.
#
# Now comes a distinction that costs people days. **Predict.** Does `eval()` switch autograd off?

# %%
net = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5))
net.eval()
y = net(torch.ones(1, 4))
print("training:", [m.training for m in net.modules()], "  requires_grad:", y.requires_grad)

# %% [markdown]
# No. `eval` changes what layers *compute*. `no_grad` and `inference_mode` change what autograd *records*. For an evaluation, use both.

# %% tags=["hide-input"]
true_false(
    "If a model keeps its layers in a Python list, their Dropout is still active after `model.eval()`.", True,
    "The walk goes only through registered children. The list is not registered, so its layers stay in training mode.",
)

# %% [markdown]
# ## Layers are shapes
#
# A transformer is made of four kinds of layers. The table shows the tensors of each layer and what it does to a shape. You need nothing else to count a model's parameters.
#
# | layer | its tensors | takes … to … |
# |---|---|---|
# | `nn.Linear(i, o)` | weight (o, i), bias (o,) | (…, i) to (…, o): only the last dimension matters |
# | `nn.Embedding(n, d)` | weight (n, d) | (…,) of int64 to (…, d): a row for each index |
# | `nn.LayerNorm(d)` | weight (d,), bias (d,) | (…, d) to (…, d): each row separately |
# | `nn.Dropout(p)` | nothing | any to the same |
#
# **Predict.** A classifier of handwritten digits has 784 pixels as inputs, a hidden layer of 128, and ten classes. How many parameters does it have? Do it on paper.

# %%
mlp = nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10))
module_tree(mlp)

# %% [markdown]
# 784·128 + 128 = 100,480, and 128·10 + 10 = 1,290. There is a *bias for each output*: 128 and 10. The sum is 101,770.
#
# And all of them use only the last dimension: the dimensions in front are a batch, however many there are.

# %%
for shape in ((784,), (32, 784), (2, 5, 784)):
    print(shape, "->", tuple(mlp(torch.zeros(shape)).shape))
rows = nn.Embedding(600, 64)(torch.tensor([[3, 7, 7], [0, 1, 2]]))
print(
    "tokens (2, 3) ->",
    tuple(rows.shape),
    "  same word, same row:",
    torch.equal(rows[0, 1], rows[0, 2]),
)
normed = nn.LayerNorm(64)(3 * rows + 10)
print(
    f"a normed row: mean {normed[0, 0].mean():+.4f}, deviation {normed[0, 0].std(correction=0):.4f}"
)

# %% tags=["hide-input"]
number(
    "MiniGPT's LM head is `nn.Linear(64, 600)`. How many parameters?", 39_000,
    why="600 · 64 weights and 600 biases.",
    wrong={38_400: "That is only the weight. There is also a bias for each of the 600 outputs.", 38_464: "You counted a bias for each *input*. There is one for each output."},
)

# %% tags=["hide-input"]
number(
    "Tie the head's weight to the word embedding (600, 64): one Parameter under two names. How many of MiniGPT's 179,544 parameters are left?", 141_144,
    why="38,400 fewer: the weight is counted once. The head's bias stays.",
    wrong={140_544: "You subtracted the bias as well. Tying shares only the weight.", 179_544: "That counts the weight under both names. `parameters()` yields it once."},
)

# %% [markdown]
# ## How a layer begins
#
# `nn.Linear` fills its weight with uniform random numbers between −1/√in and +1/√in. Why should this depend on the number of inputs? Because an output is a sum with one product for each input: the more products, the larger the sum. Send numbers through ten layers of width 256 and look at the result.

# %%
def through(scale, depth=10, width=256):
    torch.manual_seed(0)
    x = torch.randn(64, width)
    for _ in range(depth):
        x = torch.relu(x @ (scale * torch.randn(width, width)))
    return x.std().item()


for name, scale in {"1": 1.0, "1/√in": 256**-0.5, "√2/√in": (2 / 256) ** 0.5, "0.01": 0.01}.items():
    print(f"weights of deviation {name:7} -> after ten layers {through(scale):.2e}")

# %% [markdown]
# With weights of deviation 1, the result is larger than 10¹⁰. With 0.01, it is almost 0. √(2/in) keeps the size, because relu removes half of the signal (this is He's rule, and Glorot's rule is for tanh). `nn.Linear`'s default has a deviation of 1/√(3·in). For a square layer, this is smaller than in both rules. The default is older than these rules, and it is good enough if norms follow.
#
# MiniGPT begins like GPT-2: the weights come from a normal distribution with deviation 0.02. The deviation is even smaller in layers that write into the *residual stream*, the running sum `x = x + part(x)`. This sum goes through all blocks, and each block adds its share, so with smaller weights the sum of many blocks is only about as large as one. `model.apply(f)` calls f on every module, and `nn.init` has a function for each rule. He's rule is there under his first name, Kaiming.
#
# **Predict.** A weight of shape (400, 50) takes 50 inputs to 400 outputs. What deviation does He's rule give it? And what is the deviation if somebody divides by 400?

# %%
wide = nn.Linear(50, 400)
print(
    f"as nn.Linear has it         deviation {wide.weight.std():.3f}, at most "
    f"{wide.weight.abs().max():.2f}"
)
for draw in (nn.init.kaiming_normal_, nn.init.kaiming_uniform_):
    for mode in ("fan_in", "fan_out"):
        draw(wide.weight, mode=mode, nonlinearity="relu")
        said = f"deviation {wide.weight.std():.3f}, at most {wide.weight.abs().max():.2f}"
        print(f"{draw.__name__:18} {mode:8} {said}")
nn.init.zeros_(wide.bias)
print(
    "still a Parameter, and no graph:", isinstance(wide.weight, nn.Parameter), wide.weight.grad_fn
)

# %% [markdown] tags=["printed 0.2", "printed 0.07"]
# √(2/50) is 0.2. *Fan-in* is the number of terms in each sum of the forward. *Fan-out* is the number of terms in each gradient of the backward. With fan-out, the same weight has a deviation of 0.07, and the output is about a third of the right size. The two forms of the rule have the same deviation but different distributions: the uniform form ends at √3 times the deviation, and the normal form has no limit. All these functions write into the existing tensor (the underscore says so), and no graph records it. A bias needs no such scale: it begins as zeros.

# %% tags=["hide-input"]
choice(
    "All weights and biases of an MLP with ReLUs begin at exactly 0. What happens in training?",
    {
        "only the last bias learns": "Every hidden value is 0 and every weight sends back 0, so only the last layer's bias gets a gradient other than 0. (This needs zero biases, too. With `nn.Linear`'s default biases, the hidden values differ from 0. Then the last weight learns at the first step, and the layer before it at the second.)",
        "it learns, only more slowly": "The gradient for a weight is an input times the incoming gradient, and here at least one of the two is 0 everywhere.",
        "the loss is NaN": "All numbers are finite, so nothing can become NaN.",
    },
    answer="only the last bias learns",
)

# %% [markdown]
# ## Listening in: hooks
#
# You call the module, not its `forward`: `model(x)` calls `__call__`, which runs some of the registered hooks, then `forward`, then the other hooks. A *forward hook* gets the module, its inputs and its output. With hooks, you can look inside a model without changing its code.

# %%
seen = {}
handle = trained.blocks[0].mlp.register_forward_hook(
    lambda module, inputs, output: seen.update(mlp=(tuple(inputs[0].shape), tuple(output.shape)))
)
trained(torch.zeros(1, 5, dtype=torch.int64))
print(seen)
handle.remove()          # a hook stays until somebody takes it away

# %% [markdown]
# `trained.blocks[0].mlp.forward(x)` would compute the same and run no hook. That is the reason for the rule *call the module, never its forward*. (There are hooks before the forward, around the backward, and for loading and saving. If a forward hook returns a value, this value replaces the output. If a hook before the forward returns a value, it replaces the input.)

# %% [markdown]
# ## Reading errors
#
# Here are four errors that everybody gets some day. Say what is wrong before you read on.

# %%
attempt(lambda: nn.Linear(64, 600)(torch.zeros(600, 32)))
attempt(lambda: nn.Embedding(600, 64)(torch.tensor([600])))
attempt(lambda: nn.Embedding(600, 64)(torch.tensor([1.0])))
attempt(lambda: nn.Linear(4, 4)(torch.zeros(2, 4, dtype=torch.float64)))

# %% [markdown]
# 1. `mat1 and mat2 shapes cannot be multiplied (600x32 and 64x600)`: mat1 is your input, flattened to rows; mat2 is the weight *transposed*. So the layer expects a last dimension of 64, but it got 32.
# 2. The index is not in the table. On a GPU, the same mistake is an assertion in a kernel, and the error appears at some later line. Run the code on the CPU once, and you get this clear message.
# 3. Tokens must be whole numbers, usually int64. Some code turned them into floats: a mean, a division, or a NumPy default.
# 4. The product has two dtypes. The parameters are float32, and the input is float64, for example because this is NumPy's default.
#
# The fifth error, "expected all tensors to be on the same device", is in [phase 01](01_tensors.ipynb#cell-id=devices-what-moves-and-when). Next you will see where it comes from.

# %% [markdown]
# ## What a move moves
#
# `model.cuda()`, `model.to("cuda")`, `model.half()`, `model.double()` are four forms of one method: `_apply(f)`, which walks through the tree and replaces each tensor t by f(t). We don't need a GPU to watch it: we pass an f that prints its tensor and returns it unchanged.

# %%
tied = nn.ModuleDict({"words": nn.Embedding(600, 64), "head": nn.Linear(64, 600)})
tied["head"].weight = tied["words"].weight              # one Parameter, two names
tied.register_buffer("seen", torch.zeros(600))
tied["head"].bias.grad = torch.zeros(600)


def look(t):
    print(
        f"    {type(t).__name__:9} {str(tuple(t.shape)):10} {t.numel() * t.element_size():8,} bytes"
    )
    return t


_ = tied._apply(look)

# %% [markdown]
# `_apply` visits the children before the module itself. In each module, it visits the parameters (and after each parameter its gradient, if there is one), then the buffers. The tied weight is *visited* twice. **Predict.** Is it copied twice? `.to(torch.float64)` walks through the tree in the same way as `.to("cuda")`, so count its copies. (One difference: it does not copy integers and tensors that are already float64. A move to a GPU copies these, too.) To count, we switch on a *dispatch mode*, an object that sees each operator before it runs. The next section says more about it.

# %%
class Copies(TorchDispatchMode):
    def __torch_dispatch__(self, op, types, args=(), kwargs=None):
        if "_to_copy" in str(op):
            print(f"    copy of {tuple(args[0].shape)}")
        return op(*args, **(kwargs or {}))


was = tied["words"].weight
with Copies():
    tied.to(torch.float64)
print("the same Parameter object:", tied["words"].weight is was, "  still tied:",
      tied["head"].weight is tied["words"].weight)

# %% [markdown]
# Once. The move gives the *same Parameter object* new data. On the second visit, the data is already float64, so `.to` has nothing to do. So a tied weight stays tied, and an optimizer that was made before the move still works, because it has the same objects.
#
# A buffer is only a tensor, and is treated differently. **Predict.** The same mask is registered in two places. How many copies are made, and how many masks are there afterwards?

# %%
pair = nn.ModuleList([nn.Module(), nn.Module()])
mask = torch.ones(5)
for part in pair:
    part.register_buffer("mask", mask)
with Copies():
    pair.to(torch.float64)
print("still one mask:", pair[0].mask is pair[1].mask)

# %% [markdown]
# At each place where the walk finds a buffer, it puts a new tensor. So there are two copies and two masks.
#
# A module moves in place, and returns itself for convenience. The `.to` of a *tensor* returns a copy and leaves the tensor where it is: a line with only `x.cuda()` has no effect. This is the most common cause of the error about two devices.
#
# In a training loop, both kinds of `.to` often appear side by side. **Predict.** What does each of the two lines copy in the first step, and in the second?

# %%
layer = nn.Linear(3, 2)
for step in range(2):
    print("step", step)
    with Copies():
        layer.to(torch.float64)
        batch = torch.ones(4, 3).to(torch.float64)

# %% [markdown]
# The first step moves the module. In the second step, this line walks through the tree for nothing, so it belongs above the loop. The batch is new in each step and must be copied each time. A loop can't avoid this copy.
#
# And what about an optimizer that was made before the move? It refers to the Parameters, and they are the same objects. **Predict.** Is that enough after the optimizer has made a step?

# %%
optimizer = torch.optim.Adam(layer.parameters())
layer(batch).sum().backward()
optimizer.step()
layer.to(torch.float32)
held = optimizer.param_groups[0]["params"]
print("it holds the weight:", held[0] is layer.weight, "  which is", layer.weight.dtype)
print("and remembers it as ", optimizer.state[layer.weight]["exp_avg"].dtype)
attempt(optimizer.step)
layer.weight = nn.Parameter(layer.weight.detach().to(torch.float32))   # moved by hand
print(
    "trained by nobody now:",
    [n for n, p in layer.named_parameters() if all(p is not q for q in held)],
)

# %% [markdown]
# Adam's state for each weight is not part of the model, so a move of the model does not move this state. (After a move to another device, the step is an error as well.) The last line shows another way to lose a weight: if you move a weight by hand, you make a *new* Parameter, which the optimizer doesn't know. So: build the model, move it, then make the optimizer.
#
# So we can write down what `.cuda()` copies: the bytes of all parameters, each once, of their gradients, and of all buffers, once for each place. The memory comes from the *caching allocator*, which takes large pieces from the driver and gives out small ones (rounded up to 512 bytes). So 38 tensors need far fewer than 38 calls of `cudaMalloc`. Then the bytes go over the bus. For ordinary memory, the copies run one after another, and each blocks the program.

# %%
moved = sum(p.numel() * p.element_size() for p in trained.parameters())
rounded = sum(-(-p.numel() * p.element_size() // 512) * 512 for p in trained.parameters())
print(
    f"MiniGPT: {moved:,} bytes to copy, {rounded:,} to reserve, {len(list(trained.parameters()))} "
    "copies"
)

# %% [markdown]
# And there is one trap in this version of PyTorch. Tensors on the *meta* device have shapes but no bytes, which is useful to count the parameters of a model that does not fit in memory. A move to meta can't give a Parameter new data (the two kinds of tensor are too different), so each visit makes a new Parameter. **Predict.** Is the weight still tied?

# %%
tied.to("meta")
print("still tied:", tied["head"].weight is tied["words"].weight)
print("parameters now:", sum(p.numel() for p in tied.parameters()))

# %% [markdown]
# A tensor without bytes can't be copied back. But if a file will fill the model anyway, you can make the model on meta, which costs no memory for any size:

# %%
with torch.device("meta"):
    ghost = nn.Linear(3, 2)
attempt(lambda: ghost.to("cpu"))
ghost.to_empty(device="cpu")
print(ghost.load_state_dict(nn.Linear(3, 2).state_dict()), ghost.weight.device)

# %% [markdown]
# `to_empty` gives every registered tensor memory, with arbitrary old content. `load_state_dict` then writes the numbers. Tensors that are *not* in the state must be made again: a buffer that isn't saved has arbitrary numbers, and a plain attribute is still on meta.

# %% tags=["hide-input"]
choice(
    "A script has three lines: `optimizer = torch.optim.Adam(model.parameters())`, then `model.cuda()`, then the training loop. What happens?",
    {
        "it trains": "The Parameters are the same objects after the move, and Adam has no state before its first step. Still, it is a better habit to move the model first.",
        "the optimizer goes on with the old weights": "There are no old weights. A move gives each Parameter new data and keeps the object. (Only moves to and from meta make new objects.)",
        "an error at the first step": "That happens only after a step before the move: then Adam's state from this step would stay on the CPU.",
    },
    answer="it trains",
)

# %% tags=["hide-input"]
number(
    "A model in float32 has a Linear(64, 600) with gradients for both parameters, a buffer of 600 int64 numbers, and a plain attribute `self.cache` of shape (32, 64). How many bytes does `.cuda()` copy?",
    316_800, unit="bytes",
    why="39,000 parameters and 39,000 gradients of 4 bytes each make 312,000 bytes. The buffer has 600 · 8 = 4,800 bytes. The plain attribute stays behind.",
    wrong={160_800: "The gradients move, too.", 314_400: "An int64 takes 8 bytes.", 324_992: "The plain attribute isn't registered, so it is not moved."},
)

# %% [markdown]
# ## A forward is a list of decisions
#
# Now run the model. What happens to the modules during the call? The dispatch mode of the last section ([phase 04](04_dispatcher.ipynb#cell-id=listening-in) explains it in detail) sees every operator, after autograd and before the kernel. For each operator, PyTorch chooses a kernel by the *device* and the *dtype* of the tensors.

# %%
class Decisions(TorchDispatchMode):
    def __torch_dispatch__(self, op, types, args=(), kwargs=None):
        result = op(*args, **(kwargs or {}))
        name = str(op).removesuffix(".default")
        print(f"    {name:16} {result.device!s:5} {str(result.dtype)[6:]:9} {tuple(result.shape)}")
        return result


small = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 600))
for where, dtype in (("cpu", torch.float32), ("cpu", torch.bfloat16), ("meta", torch.float32)):
    print(f"{where}, {dtype}")
    with torch.no_grad():
        batch, net = (
            torch.zeros(32, 64, device=where, dtype=dtype),
            copy.deepcopy(small).to(where, dtype),
        )
        with Decisions():
            net(batch)

# %% [markdown]
# No module is visible any more. There are only five operators, the same each time. `aten::t` is a view, and `addmm` does a product and a sum in one step. On a GPU, the list would be the same, with `cuda:0` in the second column. The registry says *where the numbers are*, and the forward says in *which order* to use them. Everything else is one table look-up for each operator, and [phase 04](04_dispatcher.ipynb#cell-id=a-call-is-a-look-up) is about that table.

# %% [markdown]
# ## Who multiplies
#
# PyTorch is the *framework*: it knows shapes, memory, graphs and which kernel to call. Much of the arithmetic is done by libraries below it, and you need to know their names when something is slow or gives other numbers.
#
# | what | on a CPU | on an NVIDIA GPU |
# |---|---|---|
# | matrix products (`addmm`, `bmm`) | MKL or OpenBLAS; oneDNN for bf16 and some others | cuBLAS, cuBLASLt |
# | convolutions | oneDNN | cuDNN |
# | elementwise, reductions, norms, softmax | ATen's own, vectorized | ATen's own CUDA kernels |
# | fused attention | ATen's own | FlashAttention's kernels, cuDNN |
# | between processes | Gloo | NCCL |
#
# *ATen* is PyTorch's own C++ library of tensors and operators. It has its own kernels for most operators. For the others, it prepares the arguments and calls one of these libraries. Which libraries does this build of PyTorch have?

# %%
config = torch.__config__.show()
for name, words in {
    "MKL": "BLAS_INFO=mkl",
    "oneDNN": "MKL-DNN",
    "CUDA": "CUDA Runtime",
    "cuDNN": "CuDNN",
}.items():
    print(f"{name:7} {'built in' if words in config else 'not in this build'}")
print(f"NCCL    {'built in' if torch.distributed.is_nccl_available() else 'not in this build'}")
print("a CPU may use:", torch.backends.cpu.get_cpu_capability())

# %% tags=["hide-input"]
choice(
    "A profile on a GPU shows a kernel whose name begins with `sm90_xmma_gemm` below `aten::addmm`. Who wrote that kernel?",
    {
        "cuBLAS": "ATen's `addmm` for CUDA checks shapes, allocates the output, and hands the product to cuBLAS, which picks one of its many kernels by size and dtype.",
        "ATen": "ATen only chooses and calls the library. It does not compute this matrix product itself.",
        "cuDNN": "cuDNN does convolutions and some attention, but no plain matrix products.",
    },
    answer="cuBLAS",
)

# %% [markdown]
# ## A port, function by function
#
# The best way to know a model is to port it by hand. `utils/minigpt/numpy_forward.py` is MiniGPT in NumPy, in about ten short functions. Port one function at a time. Each has a counterpart in torch:
#
# | NumPy | torch |
# |---|---|
# | `words[tokens]` | `nn.Embedding` |
# | `x @ weight.T + bias` | `nn.Linear` (weight is (out, in) in both) |
# | `layer_norm`, ε = 1e-5 under the root | `nn.LayerNorm`, with the same default |
# | `0.5 x (1 + tanh(…))` | `nn.GELU(approximate="tanh")`; the default is the exact form |
# | `x.swapaxes(-1, -2)`, `np.where`, `np.triu` | `.mT`, `masked_fill`, `.triu` |
# | `keepdims`, `axis` | `keepdim`, `dim` |
# | float64, unless told otherwise | float32, unless told otherwise |
#
# If the modules have the same names as the weights, `load_state_dict` checks half of the port by itself. It can't check the other half. Here is a port with a mistake that no shape reveals: somebody transposed a square weight.

# %%
tokenizer = load_tokenizer()
tokens = torch.tensor([tokenizer.encode("yo hablé español anoche .")])
port = load_minigpt()
with torch.no_grad():
    square = port.blocks[1].attention.output.weight
    square.copy_(square.T.clone())
    logits = port(tokens)
original = numpy_forward.forward(load_weights(), tokens.numpy(), load_config())
print(
    "largest difference of the logits:",
    (logits - torch.from_numpy(original.logits)).abs().max().item(),
)
print("next words, the port:    ", *tokenizer.words(logits[0].argmax(-1).tolist()))
print("next words, the original:", *tokenizer.words(original.logits[0].argmax(-1).tolist()))

# %% [markdown]
# There is no error and not one wrong word: if you test a port only by its words, you would ship this one. But the logits are off by 1.5, and rounding explains only 0.00001. Other sentences will get wrong words. Where is the mistake? You can stare at the code, or change things and hope. There is a better way, which never fails: **give both sides the same input and find the first place where they differ.** Everything before this place is right, and everything after it inherits the mistake. Hooks collect the outputs of the port.

# %%
def stages_of(model, tokens, names):
    """Outputs of the named modules in one forward."""
    found, parts = {}, dict(model.named_modules())
    handles = [
        parts[name].register_forward_hook(lambda m, i, out, name=name: found.update({name: out}))
        for name in names
    ]
    with torch.no_grad():
        model(tokens)
    for handle in handles:
        handle.remove()
    return found


coarse = ("blocks.0", "blocks.1", "final_norm", "lm_head")
theirs = dict(zip(coarse, (*original.residual[1:], original.hidden, original.logits), strict=True))
port_difference(theirs, stages_of(port, tokens, coarse))

# %% [markdown]
# Block 0 agrees to seven digits, and block 1 does not. So go *into* block 1 and look again. Both sides begin there with the same input, because we have just seen that the outputs of block 0 agree. (If they differed, we would give the original's input to the port's block.)

# %%
part = numpy_forward.part
weights = part(load_weights(), "blocks.1")
x = original.residual[1]                                        # what goes into block 1
normed = numpy_forward.layer_norm(part(weights, "norm_1"), x)
mixed, pattern = numpy_forward.causal_attention(part(weights, "attention"), normed, 4)
theirs = {"blocks.1.norm_1": normed}
for name in ("query", "key", "value"):
    of_this = part(weights, f"attention.{name}")
    theirs[f"blocks.1.attention.{name}"] = numpy_forward.linear(of_this, normed)
theirs |= {"blocks.1.attention.pattern": pattern, "blocks.1.attention.output": mixed}
port_difference(theirs, stages_of(port, tokens, theirs))

# %% [markdown]
# Queries, keys, values and the pattern of attention are right, but the result of the output layer is wrong. After two pictures, only one line of code is left to check. At this point everyone thinks "perhaps torch computes it differently". It does, but the difference is 1e-7. **Suspect the port, not the framework.**
#
# Choose the tolerance in proportion to the size of the values, as the picture does. And if you can't say whether 3e-5 is a mistake, run both sides in float64. The rounding error falls to 1e-14, but the error of a mistake stays.

# %%
exact = {name: array.astype("float64") for name, array in load_weights().items()}
wanted = torch.from_numpy(numpy_forward.forward(exact, tokens.numpy(), load_config()).logits)
for name, model in {"the right port": load_minigpt(), "the wrong one": port}.items():
    with torch.no_grad():
        off = (copy.deepcopy(model).double()(tokens) - wanted).abs().max().item()
    print(f"{name:15} in float64 off by {off:.0e}")

# %% tags=["hide-input"]
choice(
    "Stage by stage, a port differs from the original by 0, 2e-7, 3e-7, 4e-3, 2e-7, 5e-2. Where do you look first?",
    {
        "stage 4": "It is the first difference that is too large. Stage 5 may look fine by chance (after a norm, or after a softmax that saturates). The stages after the first difference prove nothing.",
        "stage 6": "The largest difference is where the effect of the mistake is largest. The mistake itself is usually somewhere before it.",
        "stages 2 and 3": "2e-7 is a normal rounding error of float32, when sums are added in another order.",
    },
    answer="stage 4",
)

# %% [markdown]
# ## Why a GPU differs a little
#
# Move the right port to a GPU, and its logits change in the sixth digit. Nothing is broken. The result of a floating-point sum depends on the order, and a GPU adds in another order: first in blocks, then the blocks in a tree. You don't need a GPU to see the effect:

# %%
torch.manual_seed(0)
values = torch.randn(100_000)
orders = {
    "in blocks of 1,000": values.view(100, 1000).sum(1).sum(),
    "in blocks of 10": values.view(-1, 10).sum(1).sum(),
    "sorted": values.sort().values.sum(),
}
exact_sum = values.double().sum()
for name, found in orders.items():
    print(f"{name:19} {found.item():.6f}   off by {(found.double() - exact_sum).abs().item():.1e}")

# %% [markdown]
# The same numbers in three orders give different last digits each time. Each sum was computed in float32 without a mistake, but its error depends on the order. Sorting is by far the worst of the three: it first adds all the negative numbers, and then the positive numbers cancel this large sum. The same happens between two CPUs, two libraries or two batch sizes. This is why a comparison needs a tolerance, and you need a reason for its value: float32 has 24 bits of precision, a result has a few hundred roundings, and 1e-5 is safe.
#
# With half precision, two more things change. **Predict.** The float32 logits reach 24. How far from them are the logits of float16 and of bfloat16?

# %%
right = load_minigpt()
with torch.no_grad():
    full = right(tokens)
    for dtype in (torch.float16, torch.bfloat16):
        half = copy.deepcopy(right).to(dtype)(tokens).float()
        same = (half.argmax(-1) == full.argmax(-1)).all().item()
        print(
            f"{dtype}: largest difference {(half - full).abs().max().item():.3f}, same words: "
            f"{same}"
        )
attempt(lambda: torch.zeros(2, dtype=torch.float16).masked_fill(torch.tensor([True, False]), -1e9))

# %% [markdown]
# *Precision*: float16 keeps 11 bits. There are about twenty roundings in a row, each off by up to 5e-4 of its value, so a hundredth of the largest value is a fair tolerance. bfloat16 keeps 8 bits, so its errors are eight times as large. *Range*: the largest number of float16 is 65,504, so it has no −1e9 for a mask (use −inf, or `torch.finfo(dtype).min`). bfloat16 has the range of float32. On a GPU, tensor cores multiply in half precision and add in float32.
#
# The lab compares your port with a GPU within these tolerances: with your GPU if you have one, and otherwise with recorded results. If there is neither, it says that the comparison did not run. A check that can't run has not passed.

# %% [markdown]
# ## What you can now do
#
# [The lab](../release/03_module/03_module.ipynb) of this phase asks you to do it:
#
# - count the parameters of any MLP and any MiniGPT before it exists, tied or not;
# - write Linear, Embedding, LayerNorm and Dropout, with the names and the shapes that checkpoints expect;
# - fix a model whose parameters no optimizer knows, and a model that forgets what it has seen;
# - write your own module on an empty page: it begins by a rule, measures its inputs, can be moved and copied, and counts what is trained;
# - write `Module` itself: registration, tied parameters, buffers, saving, strict loading, modes;
# - say what `.cuda()` moves, in which order, and how many bytes it copies;
# - port a trained GPT from NumPy, agree with it to 1e-5, and compare it with a GPU.
#
# And you can answer the question. A tensor belongs to a model from the moment it is assigned *as a Parameter, a buffer, or inside a child module*. Every operation on the whole model is a walk through the registered tensors. A tensor that was not registered is left out, without any message.

# %% [markdown]
# ## What this phase leaves out
#
# - **How an operator finds its kernel**: dispatch keys, their order, and what switches each key on. [Phase 04](04_dispatcher.ipynb#cell-id=keys-of-a-tensor).
# - **An operator of your own** in place of the softmax in MiniGPT's head. [Phase 05](05_custom_op.ipynb#cell-id=what-pytorch-asks-of-an-operator).
# - **What `torch.compile` makes of a module**: which attributes become guards. [Phase 06](06_compile.ipynb#cell-id=guards-what-a-graph-believes).
# - **Optimizers, checkpoints with optimizer state, mixed precision**. [Phase 07](07_training.ipynb#cell-id=what-the-optimizer-remembers).
# - **Attention itself**, in under fifty lines, and the same model in Hugging Face's form. [Phase 08](08_transformer.ipynb#cell-id=attention-in-fifty-lines).
# - **Modules cut over several devices**: what DDP and FSDP do with the registry. [Phase 10](10_distributed.ipynb#cell-id=who-holds-what).
# - Lazy modules, parametrizations (`torch.nn.utils.parametrize`), `torch.func.functional_call` and backward hooks are left to the documentation.

# %% [markdown]
# ## Sources
#
# Papers:
# - A. Paszke et al., "[PyTorch: An Imperative Style, High-Performance Deep Learning Library](https://arxiv.org/abs/1912.01703)", NeurIPS 2019: why models are programs, and why there is a caching allocator.
# - X. Glorot, Y. Bengio, "[Understanding the difficulty of training deep feedforward neural networks](https://proceedings.mlr.press/v9/glorot10a.html)", AISTATS 2010; K. He et al., "[Delving Deep into Rectifiers](https://arxiv.org/abs/1502.01852)", ICCV 2015: how weights should begin.
# - N. Srivastava et al., "[Dropout: A Simple Way to Prevent Neural Networks from Overfitting](https://jmlr.org/papers/v15/srivastava14a.html)", *JMLR* 15, 2014.
# - J. L. Ba, J. R. Kiros, G. E. Hinton, "[Layer Normalization](https://arxiv.org/abs/1607.06450)", 2016 (arXiv:1607.06450); D. Hendrycks, K. Gimpel, "[Gaussian Error Linear Units](https://arxiv.org/abs/1606.08415)", 2016 (arXiv:1606.08415).
# - O. Press, L. Wolf, "[Using the Output Embedding to Improve Language Models](https://arxiv.org/abs/1608.05859)", EACL 2017: tied weights.
# - N. J. Higham, [*Accuracy and Stability of Numerical Algorithms*](https://doi.org/10.1137/1.9780898718027), SIAM, 2nd edition 2002, chapter 4: sums in different orders.
#
# And a book that covers the same topics more slowly: L. Antiga, E. Stevens, H. Huang, T. Viehmann, [*Deep Learning with PyTorch*](https://www.manning.com/books/deep-learning-with-pytorch-second-edition), second edition, Manning, 2026, chapter 6: modules, and the loop around them.
#
# PyTorch's documentation: [`torch.nn.Module`](https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html), "[Modules](https://docs.pytorch.org/docs/stable/notes/modules.html)" and "[Serialization semantics](https://docs.pytorch.org/docs/stable/notes/serialization.html)" in the notes, "[CUDA semantics](https://docs.pytorch.org/docs/stable/notes/cuda.html#memory-management)" (memory management), "[Numerical accuracy](https://docs.pytorch.org/docs/stable/notes/numerical_accuracy.html)", [`torch.nn.init`](https://docs.pytorch.org/docs/stable/nn.init.html), and "[Meta device](https://docs.pytorch.org/docs/stable/meta.html)". The walk itself is `_apply` in [`torch/nn/modules/module.py`](https://github.com/pytorch/pytorch/blob/v2.13.0/torch/nn/modules/module.py), 100 lines that are worth an evening.
