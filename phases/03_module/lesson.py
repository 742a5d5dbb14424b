# ---
# jupyter:
#   kernelspec: {display_name: Python 3, language: python, name: python3}
#   open_the_hood: {title: "nn.Module"}
# ---

# %% [markdown]
# # nn.Module
#
# Everybody inherits from it, and its whole work is done while you are not looking: in an assignment. This lesson looks.
#
# It takes about an hour and a half. You need [phase 01](01_tensors.ipynb#cell-id=a-tensor-is-a-storage-and-a-view)'s storages and [phase 02](02_autograd.ipynb#cell-id=leaves-and-gradients-that-add-up)'s leaves. Where a paragraph begins with **Predict**, settle on an answer before you look below it. Nothing here is graded, and everything here is used in the lab.

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
# You can say what a tensor is, byte by byte, and where its gradient comes from. A model has dozens of them, or billions. Somebody has to know them all: to hand them to an optimizer, to save them, to move them to another device. That somebody is a registry, and `nn.Module` is its name.

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
# A colleague gives MiniGPT's LM head one more thing to learn: a factor for each of the 600 words, so that rare words can be made less likely all at once. Seven lines, and they run.

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
# Since the head is trained already, only the scale should learn: the head is frozen, and the optimizer gets all parameters of the model.
#
# **Predict.** A factor can't do much for random targets, but something. After 100 steps, how far will the loss have fallen? Will there be an error, or a warning?

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
# Not by a millionth. The scale has a gradient (it even piles up: nobody clears it), and at each step it stays 1. There is no error and no warning, and there won't be one when the model is saved, either: the file will simply lack the scale. And this was the lucky case. Had anything else in the model been trained along, the loss would have fallen a little, and nobody would ever have looked.
#
# Nothing is wrong with the mathematics, and nothing with autograd. One list was too short.
#
# > **Who knows which tensors belong to a model, since when, and what happens to those that nobody knows?**

# %% [markdown]
# ## One line of magic
#
# In Python, `self.name = value` calls `type(self).__setattr__(self, "name", value)`. An ordinary class inherits one that puts the value into the object's `__dict__`. `nn.Module` has one of its own, and that method is most of what there is to know about it. Let us watch it.

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
# That is the magic: a look at the *type*. A `Parameter` goes to one dict, a `Module` to another, everything else stays an ordinary attribute. Reading is the mirror image: Python finds no `weight` in `__dict__`, so it calls `__getattr__`, and Module's looks into its dicts.
#
# And `nn.Parameter`? It is a tensor with a different class, so that this look has something to find, and with `requires_grad=True` unless you say otherwise. It computes as any tensor does.

# %%
p = nn.Parameter(torch.ones(3))
print(isinstance(p, torch.Tensor), p.requires_grad, p.is_leaf)
print("a Parameter times 2 is a", type(p * 2).__name__, "and no leaf:", (p * 2).is_leaf)

# %% [markdown]
# The second line is a trap that you know from [phase 02](02_autograd.ipynb#cell-id=leaves-and-gradients-that-add-up): `self.gain = 0.1 * nn.Parameter(...)` is a product, and a product is a plain tensor. The Parameter goes last: `nn.Parameter(0.1 * ...)`.
#
# The dicts are made in `Module.__init__`. **Predict.** What happens in a class that assigns before it calls `super().__init__()`? And does it matter what it assigns?

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
# For a Parameter there is no dict yet, and Module says so. A plain value needs none and goes through, so a class with its lines in the wrong order can work for months, until somebody gives it something to learn.

# %% tags=["hide-input"]
choice(
    "Which of these four lines in an `__init__` puts something into the registry?",
    {
        "`self.a = [nn.Linear(2, 2), nn.Linear(2, 2)]`": "The value is a list. `__setattr__` looks at its type, and not into it.",
        "`self.b = torch.ones(2, requires_grad=True)`": "Autograd knows this tensor; Module doesn't. It is no Parameter.",
        "`self.c = nn.Parameter(torch.ones(2)) / 2`": "A quotient is an ordinary tensor. The Parameter itself has no name any more.",
        "`self.d = nn.Linear(2, 2)`": "A Module, so it becomes a child, and brings its two Parameters along.",
    },
    answer="`self.d = nn.Linear(2, 2)`",
)

# %% [markdown]
# ## A tree, and walks through it
#
# Modules hold modules, so a model is a tree. Nearly all that `nn.Module` offers beyond the dicts is a walk through that tree (the rest are hooks, further down): `children()` (one step down), `modules()` (all the way), `named_parameters()`, `named_buffers()`, `state_dict()`, `to()`, `train()`. Names along the way are joined by dots.

# %%
print([name for name, _ in trained.named_children()])
print(
    *[f"{name:32} {tuple(p.shape)}" for name, p in list(trained.named_parameters())[:5]], sep="\n"
)
module_tree(trained)

# %% [markdown]
# The purple words are what an optimizer gets, 179,544 numbers in 38 tensors. Note what the tree does *not* say: in which order the parts are called, how often, or whether at all. That is `forward`, which is code, and can do as it likes. `AttentionPattern` has no parameters and is a module all the same, so that somebody can listen in on it; we shall.
#
# So: **a module is a registry of parameters plus a forward written as code.** The two know nothing of each other.

# %% tags=["hide-input"]
true_false(
    "If a registered layer is never called in `forward`, `parameters()` leaves its weights out.", False,
    "The registry is filled by assignments; nobody looks at `forward`. The layer is saved, moved and handed to the optimizer, and its gradient stays `None`.",
)

# %% [markdown]
# ## The loss that won't fall
#
# Back to the scaled head. Draw it.

# %%
module_tree(scaled)

# %% [markdown]
# There it is, with a cross. Autograd sees the scale, for it takes part in the forward; the *registry* does not. Two different lists, and an optimizer is given the second one.
#
# Containers are the other way to lose something. **Predict.** How many parameters has this one?

# %%
class Tower(nn.Module):
    def __init__(self):
        super().__init__()
        self.floors = [nn.Linear(8, 8) for _ in range(3)]
        self.roof = nn.Linear(8, 1)


print(sum(p.numel() for p in Tower().parameters()))
module_tree(Tower())

# %% [markdown]
# Nine: the roof. A Python list is an ordinary value. `nn.ModuleList` is a list that is a module, with children called "0", "1", "2"; `nn.ModuleDict` is a dict that is one; `nn.Sequential` is a list with a forward, which calls one after the other. (`ParameterList` and `ParameterDict` do it for bare parameters.)
#
# The habit that finds all of this in ten seconds: before the first step, list what is trained, and after the first backward, list who has no gradient.

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
        "`.data` is a copy": "It shares the storage. What it lacks is the graph.",
        "its gradient is None, which optimizers skip": "`.data` is the same bytes without a graph, so no path leads back to the weight. The list of gradients above would have said it at once.",
        "`.data` is read-only": "It may be written to, and nobody will be told. That is why it should not be used.",
    },
    answer="its gradient is None, which optimizers skip",
)

# %% [markdown]
# ## What is saved but not trained
#
# Some tensors belong to the model, and no gradient shall touch them: the running mean of a BatchNorm, a causal mask, a table of positions. As plain attributes they stay behind when the model is saved or moved. As Parameters they would be trained, and counted. For them there is the third dict, and a call in place of an assignment:

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
# A buffer is moved and saved and not trained; with `persistent=False` it is moved and not saved, which suits what can be computed again. Once registered, the name stays a buffer: `self.centre = self.centre * 0.9` puts the new tensor in the same place. Only remember that the new tensor was *computed*. **Predict.** Here it is the mean of a batch that has a gradient. Is it a buffer still? And can the module be copied?

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
# A buffer it is, and it drags a graph along; in a running average that graph is one batch longer with each step. The refusal to copy it is a lucky way to find out, memory that runs full the usual one. Update buffers under `no_grad`.

# %% tags=["hide-input"]
choice(
    "A mask is `self.mask = torch.ones(32, 32).tril()`, a plain attribute. On a CPU the model trains, saves and loads as it should. When is the mistake noticed?",
    {
        "when the model is moved": "`.to(\"cuda\")` leaves the mask on the CPU, and the next forward finds tensors on two devices.",
        "when the model is loaded": "The mask is missing in the file, and not missed: `__init__` makes the same one again.",
        "when the optimizer is made": "A mask isn't trained, so there it is rightly absent.",
    },
    answer="when the model is moved",
)

# %% [markdown]
# ## Saving is a dict, loading is a copy
#
# `state_dict()` is what it says, a dict from names to tensors. **Predict.** We take the state of a layer, then train on. What is in the state afterwards, the old weight or the new one?

# %%
layer = nn.Linear(2, 1)
best = layer.state_dict()
before = best["weight"].clone()
with torch.no_grad():
    layer.weight += 1
print("the state has moved by", (best["weight"] - before).tolist())
print("one storage:", best["weight"].data_ptr() == layer.weight.data_ptr())

# %% [markdown]
# The new one: the state holds the same bytes, through tensors that are cut off from autograd, and no copies. `best = model.state_dict()` in a training loop keeps the *last* weights under the name of the best. (`copy.deepcopy` it, or save it to a file.)
#
# Loading goes the other way. It *copies into* the tensors that are there, name by name. So the Parameter objects stay who they are, and an optimizer that was made before still holds the right ones.

# %%
weight = layer.weight
print(layer.load_state_dict({"weight": torch.tensor([[5.0, 6.0]]), "bias": torch.zeros(1)}))
print(layer.weight is weight, weight.tolist())

# %% [markdown]
# And it is strict. Read these three refusals slowly; each is the name of a mistake.

# %%
state = {"head.weight": torch.zeros(4, 3), "head.bias": torch.zeros(4)}
model = nn.ModuleDict({"head": nn.Linear(3, 4), "norm": nn.LayerNorm(3)})
attempt(lambda: model.load_state_dict(state))
attempt(lambda: model["head"].load_state_dict(state))
attempt(
    lambda: nn.Linear(4, 3).load_state_dict({"weight": torch.zeros(3, 1), "bias": torch.zeros(3)})
)

# %% [markdown]
# *Missing*: the model has names that the file lacks. You added a layer, or the file is of another model. *Missing and unexpected, with the same ending*: a prefix is off. The file is of a larger thing (`head.`), or was saved through a wrapper (`module.` from DataParallel, `_orig_mod.` from `torch.compile`). *Size mismatch*: other sizes, or a transposed weight. (Had it been copied all the same, (3, 1) would have *broadcast* to (3, 4).)
#
# With `strict=False` names may be missing or unexpected, and those names are *returned*: look at them. (A size that doesn't fit is refused all the same.) Whoever throws them away has a model that is part trained and part random, and nobody to say so.

# %%
left_out = model.load_state_dict(state, strict=False)
print("missing:", left_out.missing_keys, "  unexpected:", left_out.unexpected_keys)

# %% tags=["hide-input"]
choice(
    "`load_state_dict` says: Missing key(s) “weight”, “bias”; Unexpected key(s) “module.weight”, “module.bias”. What is the mend?",
    {
        "strip the prefix from the file's names": "Same endings, one prefix more: the state is of a wrapper that called the model `module`.",
        "strict=False": "Then nothing at all is loaded, and no one complains.",
        "train again": "The numbers are all there, under longer names.",
    },
    answer="strip the prefix from the file's names",
)

# %% [markdown]
# To have a second *model*, and not only its numbers, take `copy.deepcopy`. It goes through the attributes and makes a new one of each module and each tensor, so that ties stay ties and nothing is shared. **Predict.** This module keeps its forward in a handy form. All weights of the original are 1, all of the copy are 0. What does the copy say?

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
# It says what the original would. `deepcopy` leaves functions as they are, and this one knows the `self` of the day on which it was made. The copy has an `inner` of its own, which is saved, moved and handed to optimizers, and is never asked. What a module does belongs into methods: those are given their `self` at the call.

# %% [markdown]
# ## Two modes
#
# `train()` and `eval()` walk through the tree and set one boolean in each module, `training`. That is all that they do: a few layers read it, Dropout and BatchNorm above all.
#
# **Predict.** Dropout with p = 0.5 gets numbers from 0.5 to 2. What do you expect of the output in training, and of its mean over many calls?

# %%
dropout_modes(nn.Dropout(0.5), torch.linspace(0.5, 2.0, 24))

# %% [markdown]
# Each number is gone half of the time, and twice as large the other half; so on average nothing has changed, and whatever follows sees inputs of the size that it is used to. (Live, move the number of calls, and switch the mode.) In eval the layer isn't there:

# %%
dropout_modes(nn.Dropout(0.5), torch.linspace(0.5, 2.0, 24), training=False)

# %% [markdown]
# The first paper did it the other way round, nothing in training and a factor in eval; all libraries have since moved the work to training, so that a deployed model pays nothing.
#
# Now a distinction that costs people days. **Predict.** Does `eval()` switch autograd off?

# %%
net = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5))
net.eval()
y = net(torch.ones(1, 4))
print("training:", [m.training for m in net.modules()], "  requires_grad:", y.requires_grad)

# %% [markdown]
# No. `eval` changes what layers *compute*; `no_grad` and `inference_mode` change what autograd *records*. Evaluation wants both.

# %% tags=["hide-input"]
true_false(
    "`model.eval()` on a model whose layers are kept in a Python list leaves their Dropout active.", True,
    "The walk goes through registered children only. The list is not on its way, so the layers in it stay in training mode.",
)

# %% [markdown]
# ## Layers are shapes
#
# The four layers that a transformer is made of, with what they hold and what they do to a shape. Nothing else has to be known to count a model.
#
# | layer | holds | takes … to … |
# |---|---|---|
# | `nn.Linear(i, o)` | weight (o, i), bias (o,) | (…, i) to (…, o): only the last dimension is looked at |
# | `nn.Embedding(n, d)` | weight (n, d) | (…,) of int64 to (…, d): a row for each index |
# | `nn.LayerNorm(d)` | weight (d,), bias (d,) | (…, d) to (…, d): each row on its own |
# | `nn.Dropout(p)` | nothing | any to the same |
#
# **Predict.** A classifier of handwritten digits: 784 pixels, a hidden layer of 128, ten classes. How many parameters? Do it on paper.

# %%
mlp = nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10))
module_tree(mlp)

# %% [markdown]
# 784·128 + 128 = 100,480, and 128·10 + 10 = 1,290. A *bias for each output*, of which there are 128 and 10. The sum is 101,770.
#
# And all of them look at the last dimension alone: whatever stands in front is a batch, of any rank.

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
    wrong={38_400: "The weight alone. There is a bias for each of the 600 outputs.", 38_464: "A bias for each *input*; it is one for each output."},
)

# %% tags=["hide-input"]
number(
    "Tie the head's weight to the word embedding (600, 64): one Parameter under two names. How many of MiniGPT's 179,544 parameters are left?", 141_144,
    why="38,400 fewer: the weight is counted once. The head's bias stays.",
    wrong={140_544: "You took the bias away as well; tying shares the weight only.", 179_544: "Then it would be counted under both names; `parameters()` yields it once."},
)

# %% [markdown]
# ## How a layer begins
#
# `nn.Linear` draws its weight evenly between −1/√in and +1/√in. Why should that depend on the number of inputs? Because an output is a sum of that many products: the more there are, the larger it grows. Send numbers through ten layers of width 256 and look at what arrives.

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
# With weights of deviation 1 it ends beyond 10¹⁰, with 0.01 near nothing; √(2/in) keeps the size, since relu throws half of it away (that is He's rule; Glorot's is for tanh). `nn.Linear`'s default has a deviation of 1/√(3·in), for a square layer smaller than either: it is older than these rules and good enough when norms follow.
#
# MiniGPT does as GPT-2 does: normal with deviation 0.02, smaller still where a layer writes into the *residual stream*, the running sum `x = x + part(x)` that goes through all blocks and to which each of them adds its share; so the sum of many blocks begins at the size of one. `model.apply(f)` calls f on every module, and `nn.init` has the rules by name; He's stands under his first name, Kaiming.
#
# **Predict.** A weight of shape (400, 50) takes 50 inputs to 400 outputs. What deviation does He's rule give it? And if somebody divides by the other size?

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

# %% [markdown]
# √(2/50) is 0.2. *Fan-in* is what goes into each sum on the way forward, *fan-out* what comes together in each gradient on the way back; divided by that, the same weight begins at 0.07, and what goes through is a third of the size that it should have. The two forms of the rule have one deviation and two shapes: the uniform one ends at √3 times it, the normal one has no end. All of these functions write into the tensor that is there (so says the underscore), and no graph hears of it. A bias has no sum to keep in size, and begins as zeros.

# %% tags=["hide-input"]
choice(
    "All weights and biases of an MLP with ReLUs begin at exactly 0. What happens in training?",
    {
        "only the last bias learns": "Every hidden value is 0 and every weight sends back 0, so no gradient but 0 reaches anything except the last layer's bias. (It takes the biases: with `nn.Linear`'s own, hidden values differ from 0, the last weight learns at the first step, and the layer before it at the second.)",
        "it learns, only more slowly": "A gradient for a weight is an input times what comes back; in here at least one of the two is 0 everywhere.",
        "the loss is NaN": "All numbers are finite. They are just all the same.",
    },
    answer="only the last bias learns",
)

# %% [markdown]
# ## Listening in: hooks
#
# A module is called, not its `forward`: `model(x)` is `__call__`, which runs the hooks that were registered, then `forward`, then more hooks. A *forward hook* sees the module, its inputs and its output. It is how one looks inside a model without changing its code.

# %%
seen = {}
handle = trained.blocks[0].mlp.register_forward_hook(
    lambda module, inputs, output: seen.update(mlp=(tuple(inputs[0].shape), tuple(output.shape)))
)
trained(torch.zeros(1, 5, dtype=torch.int64))
print(seen)
handle.remove()          # a hook stays until somebody takes it away

# %% [markdown]
# `trained.blocks[0].mlp.forward(x)` would compute the same and run no hook. That is the reason for the rule *call the module, never its forward*. (There are hooks before the forward, around the backward, and on loading and saving. A forward hook that returns something replaces the output, one before the forward the input.)

# %% [markdown]
# ## Reading errors
#
# Four that everybody meets. Say what is wrong before you read on.

# %%
attempt(lambda: nn.Linear(64, 600)(torch.zeros(600, 32)))
attempt(lambda: nn.Embedding(600, 64)(torch.tensor([600])))
attempt(lambda: nn.Embedding(600, 64)(torch.tensor([1.0])))
attempt(lambda: nn.Linear(4, 4)(torch.zeros(2, 4, dtype=torch.float64)))

# %% [markdown]
# 1. `mat1 and mat2 shapes cannot be multiplied (600x32 and 64x600)`: mat1 is your input, flattened to rows; mat2 is the weight *transposed*. So the layer wants a last dimension of 64, and 32 came.
# 2. An index that is not in the table. On a GPU the same mistake is an assertion in a kernel, reported at some later line; run it on the CPU once, and you get this sentence.
# 3. Words are whole numbers, int64 as a rule. Something turned them into floats: a mean, a division, a NumPy default.
# 4. Two dtypes in one product. The parameters are float32; NumPy's default is float64.
#
# The fifth, "expected all tensors to be on the same device", you met in [phase 01](01_tensors.ipynb#cell-id=devices-what-moves-and-when); you are about to see where it comes from.

# %% [markdown]
# ## What a move moves
#
# `model.cuda()`, `model.to("cuda")`, `model.half()`, `model.double()` are one method in four coats: `_apply(f)`, which walks through the tree and replaces each tensor t by f(t). We have no need of a GPU to watch it. Give it an f that looks and returns what it got.

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
# Children come before the module itself. In each module, its parameters (and behind each the gradient, where there is one), then its buffers. The tied weight is *visited* twice. **Predict.** Is it copied twice? `.to(torch.float64)` takes the same way through the tree as `.to("cuda")` does, so count its copies. (One difference: it has nothing to do for integers, and for what is float64 already. To a GPU, they go as well.) To count, we switch on a *dispatch mode*, an object that is shown each operator before it runs; the next section has more of it.

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
# Once. The move gives the *same Parameter object* new data, so when the walk comes to it again, it is there already and `.to` has nothing to do. So a tied weight stays tied, and an optimizer made before the move goes on working, since it holds the same objects.
#
# A buffer is only a tensor, and has no such luck. **Predict.** The same mask is registered in two places. How many copies, and how many masks afterwards?

# %%
pair = nn.ModuleList([nn.Module(), nn.Module()])
mask = torch.ones(5)
for part in pair:
    part.register_buffer("mask", mask)
with Copies():
    pair.to(torch.float64)
print("still one mask:", pair[0].mask is pair[1].mask)

# %% [markdown]
# A buffer is replaced, at each place where it is found, by a new tensor. Two copies, two masks.
#
# A module moves in place, and returns itself for convenience. A *tensor's* `.to` returns a copy and leaves the tensor where it is: `x.cuda()` as a line of its own does nothing. That is the commonest way to the error about two devices.
#
# In a training loop the two lines stand side by side and look alike. **Predict.** What does each of them copy in the first step, and in the second?

# %%
layer = nn.Linear(3, 2)
for step in range(2):
    print("step", step)
    with Copies():
        layer.to(torch.float64)
        batch = torch.ones(4, 3).to(torch.float64)

# %% [markdown]
# The module is there after the first, so that the second only walks through the tree for nothing; that line belongs above the loop. The batch is a new one in each step, and has to go each time: it is what a loop goes on paying for.
#
# And the optimizer, which was made before the move? It holds the Parameters, and they are the same objects. **Predict.** Does that do, once it has made a step?

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
# What Adam has noted of each weight is no part of the model, and no walk comes by there. (Between devices it is refused as well.) The last line shows the other way to lose a weight: whoever moves one by hand makes a *new* Parameter, which no optimizer has heard of. So: build the model, move it, then make the optimizer.
#
# So the bill for `.cuda()` can be written down: bytes of all parameters, each once, of their gradients, and of all buffers at each of their places. For each of them memory is asked for from the *caching allocator*, which takes large pieces from the driver and deals out small ones (rounded up to 512 bytes), so that 38 tensors are by no means 38 `cudaMalloc`s; then the bytes go over the bus, for ordinary memory one blocking copy after another.

# %%
moved = sum(p.numel() * p.element_size() for p in trained.parameters())
rounded = sum(-(-p.numel() * p.element_size() // 512) * 512 for p in trained.parameters())
print(
    f"MiniGPT: {moved:,} bytes to copy, {rounded:,} to reserve, {len(list(trained.parameters()))} "
    "copies"
)

# %% [markdown]
# And one trap, on this version of PyTorch. The *meta* device has shapes and no bytes, which is handy for counting what would not fit. Moving there can't be done by giving a Parameter new data (the two kinds of tensor are too different), so each visit makes a new Parameter. **Predict** what that does to the tie.

# %%
tied.to("meta")
print("still tied:", tied["head"].weight is tied["words"].weight)
print("parameters now:", sum(p.numel() for p in tied.parameters()))

# %% [markdown]
# What has no bytes can't be copied back. A model that is to be filled from a file anyway can still begin there, at no cost, whatever its size:

# %%
with torch.device("meta"):
    ghost = nn.Linear(3, 2)
attempt(lambda: ghost.to("cpu"))
ghost.to_empty(device="cpu")
print(ghost.load_state_dict(nn.Linear(3, 2).state_dict()), ghost.weight.device)

# %% [markdown]
# `to_empty` gives every registered tensor memory, with whatever lay there before; `load_state_dict` then writes the numbers. All that is *not* in the state, such as a buffer that isn't saved or a plain attribute, is left as rubbish or on meta, and has to be made anew.

# %% tags=["hide-input"]
choice(
    "A script has three lines: `optimizer = torch.optim.Adam(model.parameters())`, then `model.cuda()`, then the training loop. What comes of it?",
    {
        "it trains": "The Parameters are the same objects after the move, and before its first step Adam has noted nothing that could be left behind. The other order is the better habit all the same.",
        "the optimizer goes on with the old weights": "There are none. A move gives each Parameter new data and keeps the object. (To meta, and from there, it does not.)",
        "an error at the first step": "Had there been a step before the move, yes: what Adam noted then would have stayed behind.",
    },
    answer="it trains",
)

# %% tags=["hide-input"]
number(
    "A model in float32: a Linear(64, 600), with gradients for both its parameters; a buffer of 600 int64 numbers; and a plain attribute `self.cache` of shape (32, 64). How many bytes does `.cuda()` copy?",
    316_800, unit="bytes",
    why="39,000 parameters and as many gradients at 4 bytes make 312,000; the buffer 600 · 8 = 4,800. The plain attribute stays behind.",
    wrong={160_800: "The gradients move, too.", 314_400: "An int64 takes 8 bytes.", 324_992: "The plain attribute isn't registered: nobody moves it."},
)

# %% [markdown]
# ## A forward is a list of decisions
#
# Now run it. What is left of a module in the moment of the call? The dispatch mode of the last section ([phase 04](04_dispatcher.ipynb#cell-id=listening-in) takes it apart) sees every operator, after autograd and before the kernel. For each of them PyTorch has decided on a kernel, by what the tensors are: their *device* and *dtype*.

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
# No module is to be seen any more: five operators, the same each time. `aten::t` is a view, `addmm` a product and a sum in one. On the GPU the list would read the same with `cuda:0` in the second column. The registry told us *where the numbers are*, the forward in *which order* to use them; all else is a table look-up for each op, and [phase 04](04_dispatcher.ipynb#cell-id=a-call-is-a-look-up) is about that table.

# %% [markdown]
# ## Who multiplies
#
# PyTorch is the *framework*: it knows shapes, memory, graphs and which kernel to call. Much of the arithmetic is done by libraries below it, and it makes sense to keep the names apart when something is slow, or different.
#
# | what | on a CPU | on an NVIDIA GPU |
# |---|---|---|
# | matrix products (`addmm`, `bmm`) | MKL or OpenBLAS; oneDNN for bf16, and more | cuBLAS, cuBLASLt |
# | convolutions | oneDNN | cuDNN |
# | elementwise, reductions, norms, softmax | ATen's own, vectorized | ATen's own CUDA kernels |
# | attention in one piece | ATen's own | FlashAttention's kernels, cuDNN |
# | between processes | Gloo | NCCL |
#
# *ATen* is PyTorch's own library of tensors and operators in C++, with a kernel of its own for most of them; for the rest it prepares the arguments and calls the specialist. What was this build made with?

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
        "ATen": "ATen has chosen and called; the matrix product itself is not its own.",
        "cuDNN": "That one does convolutions and some attention, and no plain matrix products.",
    },
    answer="cuBLAS",
)

# %% [markdown]
# ## A port, function by function
#
# The best way to know a model is to move it by hand. `utils/minigpt/numpy_forward.py` is MiniGPT in NumPy, some ten short functions. A port goes function by function, and each has a counterpart:
#
# | NumPy | torch |
# |---|---|
# | `words[tokens]` | `nn.Embedding` |
# | `x @ weight.T + bias` | `nn.Linear` (weight is (out, in) in both) |
# | `layer_norm`, ε = 1e-5 under the root | `nn.LayerNorm`, whose default that is |
# | `0.5 x (1 + tanh(…))` | `nn.GELU(approximate="tanh")`; the default is the other form |
# | `x.swapaxes(-1, -2)`, `np.where`, `np.triu` | `.mT`, `masked_fill`, `.triu` |
# | `keepdims`, `axis` | `keepdim`, `dim` |
# | float64, unless told otherwise | float32, unless told otherwise |
#
# If the modules get the names that the weights have, `load_state_dict` checks half of the port by itself. Not the other half. Here is a port with a mistake that all shapes forgive: somebody transposed a square weight.

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
# No error, and not one wrong word: whoever tests a port by reading what it writes would ship this one. But the logits are off by 1.5, where rounding leaves 0.00001, and other sentences will suffer. Where is the mistake? One can stare at the code, or change things and hope. There is a better way, which never fails: **give both sides the same input and find the first place where they differ.** Everything before it is right; everything behind it inherits. Hooks collect the port's side.

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
# Block 0 agrees to seven digits, block 1 does not. So go *into* block 1 and look again. Both sides begin there with the same input: the original with its own, the port with what its block 0 made, which we have just seen to be the same. (Had it not been, we would have handed the port's block the original's.)

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
# Queries, keys, values and the pattern of attention are right; what the output layer makes of them is wrong. Two pictures, and one line is left to read. This is also the answer to the thought that comes to everyone at this point, "perhaps torch computes it differently": it does, at 1e-7. **Suspect the port, not the framework.**
#
# For the tolerance, measure against the size of the values, as the picture does. And if you can't say whether 3e-5 is a mistake: run both sides in float64. Rounding goes down to 1e-14, and a mistake stays where it is.

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
        "stage 4": "The first that is too large. That stage 5 looks fine again may be chance (a norm, a softmax that saturates); what follows the first difference proves nothing.",
        "stage 6": "The largest difference is where the mistake shows most, and seldom where it was made.",
        "stages 2 and 3": "2e-7 is what float32 leaves when sums run in another order.",
    },
    answer="stage 4",
)

# %% [markdown]
# ## Why a GPU differs a little
#
# Move the right port to a GPU, and its logits change in the sixth digit. Nothing is broken. Floating-point addition depends on the order, and a GPU adds in another order, in blocks that are then added in a tree. You don't need a GPU to see it:

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
# The same numbers in three orders, and other last digits each time. Each sum was computed in float32 without a mistake; how far it is off depends on the order, and sorting, which first piles up all that is negative and then takes it away again, is the worst of the three by far. The same happens between two CPUs, two libraries, two batch sizes. This is why a comparison has a tolerance, and why it must be chosen with a reason: 24 bits of precision, a few hundred roundings on the way, 1e-5 to be safe.
#
# With half precision two more things change. **Predict.** How far from the float32 logits, which reach 24, are those of float16 and of bfloat16?

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
# *Precision*: float16 keeps 11 bits, so each of some twenty roundings in a row is off by up to 5e-4 of its value, and a hundredth of the largest value is a fair tolerance; bfloat16 keeps 8 and is eight times as rough. *Range*: float16 ends at 65,504, and a mask of −1e9 does not exist in it (use −inf, or `torch.finfo(dtype).min`); bfloat16 has float32's range. On a GPU, tensor cores multiply in half precision and add up in float32.
#
# The lab compares your port with a GPU on these terms: with a live one where you have it, else with one that was recorded; and where there is neither, it says that it did not run. A check that can't run is no check that passed.

# %% [markdown]
# ## What you can now do
#
# [The lab](../release/03_module/03_module.ipynb) of this phase asks you to do it:
#
# - count the parameters of any MLP and any MiniGPT before it exists, tied or not;
# - write Linear, Embedding, LayerNorm and Dropout, with the names and the shapes that checkpoints expect;
# - mend a model whose parameters no optimizer knows, and one that forgets what it has seen;
# - write a module of your own on an empty page: registered, drawn by a rule, measured, moved, copied, counted;
# - write `Module` itself: registration, tied parameters, buffers, saving, strict loading, modes;
# - say what `.cuda()` does, in which order, and how many bytes it copies;
# - port a trained GPT from NumPy, agree with it to 1e-5, and hold it against a GPU.
#
# And you can answer the question. A tensor belongs to a model from the moment it is assigned *as a Parameter, a buffer, or inside a child module*. Whatever is done to the whole model is a walk through what was registered; and to what was not, nothing is done, in silence.

# %% [markdown]
# ## What this phase leaves out
#
# - **How an operator finds its kernel**: keys, their order, and what turns each on. [Phase 04](04_dispatcher.ipynb#cell-id=keys-of-a-tensor).
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
# - A. Paszke et al., "[PyTorch: An Imperative Style, High-Performance Deep Learning Library](https://arxiv.org/abs/1912.01703)", NeurIPS 2019: why models are programs, and how the caching allocator came about.
# - X. Glorot, Y. Bengio, "[Understanding the difficulty of training deep feedforward neural networks](https://proceedings.mlr.press/v9/glorot10a.html)", AISTATS 2010; K. He et al., "[Delving Deep into Rectifiers](https://arxiv.org/abs/1502.01852)", ICCV 2015: how weights should begin.
# - N. Srivastava et al., "[Dropout: A Simple Way to Prevent Neural Networks from Overfitting](https://jmlr.org/papers/v15/srivastava14a.html)", *JMLR* 15, 2014.
# - J. L. Ba, J. R. Kiros, G. E. Hinton, "[Layer Normalization](https://arxiv.org/abs/1607.06450)", 2016 (arXiv:1607.06450); D. Hendrycks, K. Gimpel, "[Gaussian Error Linear Units](https://arxiv.org/abs/1606.08415)", 2016 (arXiv:1606.08415).
# - O. Press, L. Wolf, "[Using the Output Embedding to Improve Language Models](https://arxiv.org/abs/1608.05859)", EACL 2017: tied weights.
# - N. J. Higham, [*Accuracy and Stability of Numerical Algorithms*](https://doi.org/10.1137/1.9780898718027), SIAM, 2nd edition 2002, chapter 4: sums in different orders.
#
# And a book that goes the same road more slowly: E. Stevens, L. Antiga, T. Viehmann, [*Deep Learning with PyTorch*](https://www.manning.com/books/deep-learning-with-pytorch), Manning, 2020, chapter 6: modules, and the loop around them.
#
# PyTorch's documentation: [`torch.nn.Module`](https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html), "[Modules](https://docs.pytorch.org/docs/stable/notes/modules.html)" and "[Serialization semantics](https://docs.pytorch.org/docs/stable/notes/serialization.html)" in the notes, "[CUDA semantics](https://docs.pytorch.org/docs/stable/notes/cuda.html#memory-management)" (memory management), "[Numerical accuracy](https://docs.pytorch.org/docs/stable/notes/numerical_accuracy.html)", [`torch.nn.init`](https://docs.pytorch.org/docs/stable/nn.init.html), and "[Meta device](https://docs.pytorch.org/docs/stable/meta.html)". The walk itself is `_apply` in [`torch/nn/modules/module.py`](https://github.com/pytorch/pytorch/blob/v2.13.0/torch/nn/modules/module.py), 100 lines that are worth an evening.
