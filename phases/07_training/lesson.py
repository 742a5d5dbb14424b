# ---
# jupyter:
#   kernelspec: {display_name: Python 3, language: python, name: python3}
#   open_the_hood: {title: "Training"}
# ---

# %% [markdown]
# # Training
#
# Five lines train a network. Everything else in a training script is there because the five lines fail quietly. The loss falls, there is no error, and yet the model is worse than it could be, or nobody can train it again in the same way.
#
# It takes about four hours, predictions and drills included, in two sittings. The first needs an hour and three quarters. It is about one step: the five lines, the data, the optimizer, and how far a step goes. It ends at *A resting place*, where you know why a resumed run can jump. The second needs two hours. It is about a whole run: big batches, 16 bits, a checkpoint that forgets nothing, and a MiniGPT trained from nothing.
#
# You need [phase 02](02_autograd.ipynb#cell-id=leaves-and-gradients-that-add-up)'s gradients, and [phase 03](03_module.ipynb#cell-id=saving-is-a-dict-loading-is-a-copy)'s modules and `state_dict`. The second sitting also uses [phase 04](04_dispatcher.ipynb#cell-id=keys-of-the-thread)'s dispatch keys and [phase 06](06_compile.ipynb#cell-id=guards-what-a-graph-believes)'s guards. If a paragraph begins with **Predict**, decide on an answer before you look below it. Nothing here is graded, and everything here is used in the lab.

# %%
import math
import tempfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

from hood.learner.contents import PHASES
from utils.minigpt import MiniGPT, MiniGPTConfig, load_tokenizer, training_lines
from utils.notebook.drills import choice, number, true_false
from utils.views import adamw_explorer, course_path, fitted_line, loss_curves

torch.set_num_threads(1)  # tensors this small gain nothing from a second thread
FOLDER = Path(tempfile.mkdtemp())  # for checkpoints

# %% [markdown]
# ## Where we are

# %%
course_path(PHASES, here=7)

# %% [markdown]
# You know what a tensor is, where a gradient comes from, and how a module finds its parameters. Up to now somebody else had trained MiniGPT. In this phase you train it.

# %% [markdown]
# ## Resumen en español
#
# Entrenar son cinco líneas: predecir, medir el error, borrar los gradientes viejos, `backward`, `step`. Un orden equivocado casi nunca da un error: da un modelo peor.
# El optimizador tiene memoria (en AdamW, dos números por peso), el azar también, y el cargador de datos recuerda por dónde iba: un *checkpoint* que olvida algo de esto no reanuda el entrenamiento, empieza otro.
# La acumulación iguala al lote grande si cada parte pesa según sus palabras. En 16 bits los productos son más baratos y los números pequeños desaparecen: para eso está el `GradScaler`.
# Antes de entrenar de verdad, aprende de memoria un solo lote. Y al final, MiniGPT desde cero, mejor que un trigrama y que un 5-grama, en menos de un minuto y con un solo núcleo.

# %% [markdown]
# ## The question
#
# A training run died at step 5,000. It was resumed from a checkpoint, and the loss jumped. Our run is small and dies at step 80, but everything else is the same: a MiniGPT of one layer with dropout, trained on sentences of the corpus.

# %%
SMALL = MiniGPTConfig(d_model=32, n_layers=1, d_ff=128)
inputs, targets = training_lines()
short = (inputs != 0).sum(1) <= 16  # whole sentences, without the long lists of forms
inputs, targets = inputs[short][:, :16], targets[short][:, :16]


class Dropped(MiniGPT):
    """A MiniGPT in which dropout removes a tenth of the head's input during training."""

    def hidden(self, tokens):
        return F.dropout(super().hidden(tokens), 0.1, self.training)


def loss_of(model, x, y):
    return F.cross_entropy(model(x).flatten(0, 1), y.flatten())


# %%
def new_run():
    torch.manual_seed(0)
    model = Dropped(SMALL).train()
    return SimpleNamespace(model=model, optimizer=torch.optim.AdamW(model.parameters()), step=0)


def train(run, steps):
    """Train for this number of further steps, and return the loss of each."""
    curve = []
    for _ in range(steps):
        rows = torch.randint(len(inputs), (64,))
        run.optimizer.param_groups[0]["lr"] = 0.02 * min(1, (run.step + 1) / 10)
        loss = loss_of(run.model, inputs[rows], targets[rows])
        run.optimizer.zero_grad()
        loss.backward()
        run.optimizer.step()
        run.step += 1
        curve.append(loss.item())
    return curve

# %% [markdown]
# One run makes 160 steps without a stop. The other run writes a file after 80 steps, and "dies". Then everything that it had in memory is made again from scratch, and the file is read.

# %%
whole = train(new_run(), 160)

run = new_run()
train(run, 80)
torch.save({"model": run.model.state_dict(), "step": run.step}, FOLDER / "checkpoint.pt")

died, run = run, new_run()
saved = torch.load(FOLDER / "checkpoint.pt")
run.model.load_state_dict(saved["model"])
run.step = saved["step"]
same = all(torch.equal(a, b) for a, b in zip(run.model.parameters(), died.model.parameters()))
print("every weight is the same to the last bit:", same, "  step:", run.step)

# %% [markdown]
# The weights are right and so is the step, from which the learning rate is computed. **Predict.** What will the loss do in the 80 steps that follow?

# %%
resumed = train(run, 80)
loss_curves({"never stopped": whole, "resumed": dict(enumerate(resumed, 81))}, step=82)

# %% [markdown]
# The first loss after the pause, at step 81, is where it should be: it was computed with the weights of the file, before anything was changed. Then the optimizer makes one step, and the gain of the last forty steps is lost. It takes twenty or thirty more steps to get it back.
#
# And something else went wrong, which the curve does not show: the resumed run gets exactly the same batches as in its first 80 steps.
#
# > **What is a training run made of? What must a file contain, so that the run can go on from it as if nothing had happened?**
#
# Most of the sections below give one part of the answer.

# %% [markdown]
# ## The five lines
#
# We begin with the smallest possible run: points near y = 2x + 1, and a layer with one weight and one bias. A quarter of the points is kept apart for a test at the end.

# %%
torch.manual_seed(0)
x = torch.linspace(-2, 2, 64)[torch.randperm(64)][:, None]  # (64, 1)
y = 2 * x + 1 + 0.3 * torch.randn(64, 1)
x_seen, y_seen, x_unseen, y_unseen = x[:48], y[:48], x[48:], y[48:]

model = nn.Linear(1, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
lines = [(model.weight.item(), model.bias.item())]
for _ in range(60):
    loss = F.mse_loss(model(x_seen), y_seen)  # 1, 2: predict, and measure how wrong it was
    optimizer.zero_grad()  # 3: forget the last gradient
    loss.backward()  # 4: find the new one
    optimizer.step()  # 5: go
    lines.append((model.weight.item(), model.bias.item()))

# %% [markdown]
# To plot the result, we must take the numbers out of torch. **Predict.** Does `model(x_unseen).numpy()` work?

# %%
def attempt(action, *arguments):
    """Print what `action` returns, or the first sentence of its error."""
    try:
        print(action(*arguments))
    except Exception as error:
        said = str(error).splitlines()[0].partition(". ")[0]
        print(f"{type(error).__name__}: {said[:150]}")


attempt(lambda: model(x_unseen).numpy().shape)
predicted = model(x_unseen).detach().numpy()
print(
    "mean squared error on what it has not seen:",
    np.mean((predicted - y_unseen.numpy()) ** 2).round(3),
)

# %%
fitted_line((x_seen, y_seen), (x_unseen, y_unseen), lines)

# %% [markdown]
# `detach` gives the same bytes without the graph, and `numpy` gives the same bytes as a NumPy array. Nothing is copied. In the end the error is near 0.09 on the seen points, and near 0.1 on the other points. The square of the noise that we added is 0.09, too. So an error below 0.09 on the *seen* points would mean that the model has learned points by heart.

# %% [markdown]
# We wrote down `model.weight.item()` after each step. **Predict.** What if we had written down `model.weight.detach()`?

# %%
weights = []
for _ in range(3):
    weights.append(model.weight.detach())
    with torch.no_grad():
        model.weight += 1
print("noted:", *(f"{w.item():.2f}" for w in weights))
print("in the weight's own storage:", weights[0].data_ptr() == model.weight.data_ptr())

# %% [markdown]
# It is the same tensor three times, and it shows what the weight is *now*. To record a value, use a number or a `clone`. Remember this for checkpoints.

# %% [markdown]
# ### The order of the lines
#
# The first two lines make the graph and must come first. The other three can be arranged in six ways, and one can be forgotten.
#
# **Predict.** Which of these orders raise an error? With which does the model learn nothing? Which wrong order is the hardest to notice?

# %%
def fit(order, steps=60):
    """The five lines, with the last three in the given order. Returns the losses and the line."""
    torch.manual_seed(0)
    model = nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    curve = []
    for _ in range(steps):
        loss = F.mse_loss(model(x_seen), y_seen)
        does = {"zero": optimizer.zero_grad, "backward": loss.backward, "step": optimizer.step}
        for line in order.split():
            does[line]()
        curve.append(loss.item())
    return curve, (model.weight.item(), model.bias.item())


# %%
ORDERS = """zero backward step, backward step zero, backward zero step,
zero step backward, step zero backward, backward step"""
for order in ORDERS.replace("\n", " ").split(", "):
    losses, (w, b) = fit(order)
    print(f"{order:20} y = {w:5.2f}x + {b:5.2f}   loss", *(f"{v:6.2f}" for v in losses[::12]))

# %% [markdown]
# None of them raises an error. With `backward zero step` and `zero step backward` the model learns nothing at all: the optimizer never finds a gradient, and `step` silently skips a parameter without a gradient. The loss stays the same to the last digit. With a learning rate that is too small, the last digits would change.
#
# `step zero backward` is the hardest to notice. It steps with the gradient of the *last* batch. The first step does nothing, and the last gradient is never used. Here each step has the same 48 points, so the model learns as well. With a new batch each time, every step uses the batch of the step before, and nobody will notice.
#
# `backward step` never clears the gradients, as in [phase 02](02_autograd.ipynb#cell-id=leaves-and-gradients-that-add-up): they add up, like a momentum that never slows down. The loss swings, and it would swing for ever.
#
# Another mistake of the same family concerns shapes. **Predict.** The model's output is (48, 1). What does the model learn if y is (48,)?

# %%
import warnings

model = nn.Linear(1, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
flat = y_seen[:, 0]
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    for _ in range(200):
        loss = F.mse_loss(model(x_seen), flat)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print(f"y = {model.weight.item():.2f}x + {model.bias.item():.2f}   loss {loss.item():.2f}")
print(f"mean of y {flat.mean():.2f}   variance {flat.var(correction=0):.2f}")
print(str(said[0].message)[:128], "…")

# %% [markdown]
# (48, 1) minus (48,) is (48, 48), the broadcast of [phase 01](01_tensors.ipynb#cell-id=the-silent-64-64-bug): each prediction is compared with every y. The number that fits all y best is their mean, so the model learns this mean and ignores x. If a loss falls and then stops at the variance of the targets, suspect this mistake. `mse_loss` warns about it, but your own `((a - b) ** 2).mean()` will not.

# %% tags=["hide-input"]
choice(
    "A loss is 6.3984 in each of a hundred steps, to the last digit. The loop should take a new batch each time. What do you suspect first?",
    {
        "The learning rate is too small": "Then the loss would still differ from batch to batch.",
        "The gradient is gone when `step` is called": "That explains why the weights don't change. But the same weights have different losses on different batches.",
        "Two things: neither the weights nor the batch change": "If the loss stays the same for a hundred steps, both must stay the same. For example, the loop seeds a generator and calls `next(iter(loader))` in each step, so it always gets the first batch.",
    },
    answer="Two things: neither the weights nor the batch change",
)

# %% tags=["hide-input"]
true_false(
    "First comes `optimizer = SGD(model.parameters())`, and then `model.head = nn.Linear(64, 10)`. The new head is trained, because the optimizer asks the model for its parameters in each step.", False,
    "The optimizer got a list of tensors when it was made, and never looks at the model again. The new head has gradients that nothing reads. The old head is still in the list, but the model doesn't use it any more. The same happens to a parameter that was left out of the list.",
)

# %% [markdown]
# ### How large a step may be
#
# The right loop alone is not enough. Here are the same five lines on points that are spread ten times as wide. To be careful, we take a learning rate that is five times as small. **Predict.** There are six random sets of a hundred points each. What is the loss after a hundred steps?

# %%
def losses_of(x, y, lr, steps=100):
    torch.manual_seed(0)
    model = nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    curve = []
    for _ in range(steps):
        loss = F.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        curve.append(loss.item())
    return curve


# %%
draws = []
for seed in range(6):
    torch.manual_seed(seed)
    x = 10 * torch.randn(100, 1)
    draws.append((x, 2 * x + 1 + torch.randn(100, 1)))
    print(f"draw {seed}: loss {losses_of(*draws[-1], lr=0.01)[-1]:.3g}")

# %% [markdown]
# Three runs arrive and three explode, although only the points are different.
#
# The loss of a line is a bowl. Take a direction in which the bowl has the curvature λ. At a distance d from the bottom, the gradient is λ · d. So a step multiplies the distance by 1 − lr · λ. If lr · λ is below 2, the distance shrinks. If it is above 2, each step lands on the other side, farther up. So **the learning rate has a limit, 2 / λ**, where λ is the curvature in the steepest direction. For a mean squared error the curvatures can be computed: they are the eigenvalues of 2 XᵀX / N. Here X has a column of x and a column of ones for the bias.

# %%
def limit(x):
    """The learning rate beyond which a line through these x explodes."""
    X = torch.cat([x, torch.ones_like(x)], 1)
    curvatures = torch.linalg.eigvalsh(2 * X.T @ X / len(X))
    return 2 / curvatures.max().item(), curvatures.tolist()


for seed, (x, _) in enumerate(draws):
    most, (flat, steep) = limit(x)
    print(f"draw {seed}: curvatures {flat:.2f} and {steep:.1f}, so lr must stay below {most:.4f}")

# %% [markdown] tags=["printed 0.01"]
# Twice the mean of x² is about 200, and 2 / 200 is 0.01. That was our rate: it was at the edge, and chance decided on which side. So the limit, which is computed from the inputs alone, says before the first step which of the six runs will explode.
#
# What happens below the limit? Here is the first draw with four rates, given as shares of its limit. **Predict.** Which is the fastest?

# %%
x, y = draws[0]
shares = (0.1, 0.5, 0.98, 1.02)
loss_curves(
    {f"{share} of the limit": losses_of(x, y, share * limit(x)[0], 12) for share in shares}, step=6
)

# %% [markdown]
# Half of the limit is the fastest: there, one step is enough in the steep direction. Just below the limit the loss swings from side to side, and just above the limit it swings away. But a smaller rate is a poor fix. The other curvature is 2, a hundredth of the steep one, so at half of the limit the bias needs hundreds of steps. It is better to make the bowl round. **Predict.** Subtract the mean from x and divide by the standard deviation. What is the limit now, and how many steps does it take?

# %%
standard = (x - x.mean()) / x.std(correction=0)
print(
    "limit:",
    round(limit(standard)[0], 4),
    "  curvatures:",
    *(round(c, 4) for c in limit(standard)[1]),
)
print("losses at half of it:", *(round(loss, 3) for loss in losses_of(standard, y, 0.5, 5)))

# %% [markdown]
# One step leads to the bottom. But the mean and the deviation now belong to the model, as much as its weight does: new points must be shifted and divided by the same two numbers.
#
# A round bowl is one reason why we bring inputs to a common scale, and why deep networks do it again in each block ([phase 03](03_module.ipynb#cell-id=layers-are-shapes)'s LayerNorm). The bowl of a deep network changes its shape during training, and nobody computes its curvatures. But if a loss grows by a constant factor in each step, you see this picture again. Then first try half of the rate.

# %% [markdown]
# ## Who draws the random numbers
#
# Data comes in two pieces. A `Dataset` knows how many items there are and can return number k. A `DataLoader` decides which items, in which order, and makes a batch of them. Here is a dataset of our sentences, each cut to its own length.

# %%
class Sentences(Dataset):
    def __init__(self, inputs, targets):
        self.inputs, self.targets = inputs, targets

    def __len__(self):
        return len(self.inputs)

    def __getitem__(self, k):
        length = int((self.inputs[k] != 0).sum())
        return self.inputs[k, :length], self.targets[k, :length]


data, tokenizer = Sentences(inputs, targets), load_tokenizer()
read, asked = data[3]
print(f"{len(data):,} sentences")
print("reads:", *(f"{word:9}" for word in tokenizer.words(read)))
print("asked:", *(f"{'·' if k < 0 else tokenizer.words([k])[0]:9}" for k in asked.tolist()))

# %% [markdown]
# At each place the model reads a word and all words before it, and must predict the *next* word. If the target is −100 (a dot), the model need not predict anything: nobody can guess which verb a line is about, and nothing follows `<eos>`. `cross_entropy` skips −100, and divides by the number of the other targets.
#
# **Predict.** What does a loader give if a batch has two such items?

# %%
attempt(lambda: next(iter(DataLoader(data, batch_size=2))))
pair = next(iter(DataLoader(data, batch_size=2, collate_fn=list)))
print("what a collate_fn is handed:", [tuple(t.shape for t in item) for item in pair])

# %% [markdown]
# The loader's last step is *collating*: a list of items becomes one batch. By default it stacks tensors, which works only if all of them have one shape. For texts you write your own function, which pads, as you will in the lab. What do you pad with? You may pad the inputs with anything, because the model is causal: no word depends on the words after it. You must pad the targets with −100.
#
# **Predict.** Somebody pads the targets with 0, too, the id of `<pad>`. Is the training loss then too high, too low, or right?

# %%
def quick(ignored, steps=60):
    torch.manual_seed(0)
    model = MiniGPT(SMALL)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for _ in range(steps):
        rows = torch.randint(len(inputs), (64,))
        y = targets[rows].where(inputs[rows] != 0, ignored)
        loss = loss_of(model, inputs[rows], y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        return loss.item(), loss_of(model, inputs[:500], targets[:500]).item()


for ignored in (-100, 0):
    shown, on_words = quick(ignored)
    print(f"targets padded with {ignored:4}: loss shown {shown:.2f}, on the words {on_words:.2f}")

# %% [markdown]
# It looks much better but is worse. After a full stop comes `<eos>`, and after that comes one `<pad>` after the other. These are the easiest words of the language, and a third of all targets. The loss that is shown is a mean over them, too.
#
# How many batches does a loader give? N items in batches of B give ⌈N/B⌉ batches. With `drop_last` it is ⌊N/B⌋, because the items that don't fill a whole batch are left out.

# %%
for drop_last in (False, True):
    loader = DataLoader(range(10), batch_size=4, drop_last=drop_last)
    print(len(loader), [batch.tolist() for batch in loader])

# %% tags=["hide-input"]
number(
    "50,000 items, batches of 64, `drop_last=False`, 3 epochs. How many optimizer steps are that?", 2346,
    why="An epoch has ⌈50,000 / 64⌉ = 782 steps, and there are three epochs. Each epoch has its own short batch at the end.",
    wrong={2343: "That is right with `drop_last`: 781 in each epoch.", 2344: "⌈3 · 50,000 / 64⌉ joins the epochs. But each epoch ends with its own short batch."},
)

# %% [markdown]
# In training the last short batch is often dropped, because the gradient of a few items is mostly noise. In *validation* nothing may be dropped. There, add up the losses of all items and divide at the end: with a smaller last batch, the mean of the batches' means is not the mean over all items.

# %% [markdown]
# ### Random numbers
#
# Random numbers come from a *random generator*, an object with a state that changes with each number. This page calls such an object `dice` in its code. If a loader shuffles, it asks a generator for a permutation at the beginning of each epoch. Which generator? If you pass no generator, the loader uses torch's global one, which dropout and every `torch.rand` use as well.
#
# **Predict.** This loader does *not* shuffle. Does the next random number change if a loop goes through it?

# %%
torch.manual_seed(0)
print("next number:                              ", torch.rand(1).item())
torch.manual_seed(0)
list(DataLoader(range(4)))
print("next number after a loader in order:      ", torch.rand(1).item())
torch.manual_seed(0)
list(DataLoader(range(4), generator=torch.Generator()))
print("after a loader with a generator of its own:", torch.rand(1).item())

# %% [markdown]
# It does. Whenever an iterator is made, the loader takes a random seed for its workers, even if it has no workers. So one more evaluation in the middle of a run changes all later dropout masks. To avoid this, give each user of random numbers a separate generator: `DataLoader(..., generator=g)`.

# %%
g = torch.Generator().manual_seed(0)
loader = DataLoader(range(8), batch_size=4, shuffle=True, generator=g)
for epoch in range(2):
    print("epoch", epoch, [batch.tolist() for batch in loader])
g.manual_seed(0)
print("again  ", [batch.tolist() for batch in loader])

# %% [markdown]
# Each epoch has another order, and all orders come from one seed. Why shuffle at all? A corpus often has an order, for example all English before all Spanish. Without shuffling, the gradient of a batch would fit its chapter, but not the whole corpus.

# %% [markdown]
# ### Workers
#
# A loader can have *workers*: processes that prepare batches in advance, while the model computes. Each of them has a copy of your dataset, and its own random generators. Old advice says that NumPy then draws the same numbers in every worker. **Predict.** The four columns below are torch, NumPy's global functions, Python's `random`, and a NumPy generator that belongs to the dataset. Which columns have the same numbers in both workers?
#
# (The next cell runs a separate script, as your training will. Up to Python 3.13, Linux forks workers, and a forked copy of a notebook may hang. From 3.14 on, the default is `forkserver`: dataset and `collate_fn` are pickled for each new worker. So a lambda is an error, and so is a class from a notebook: put both into a file that you import. And the script must start its work below `if __name__ == "__main__":`, because each worker imports it.)

# %%
import subprocess
import sys

SCRIPT = """
import random, numpy, torch
from torch.utils.data import DataLoader, Dataset, get_worker_info

class Dice(Dataset):
    own = numpy.random.default_rng(0)
    def __len__(self):
        return 4
    def __getitem__(self, k):
        four = torch.rand(1).item(), numpy.random.rand(), random.random(), self.own.random()
        return str(k) + "".join(f"{v:8.3f}" for v in four) + f"   worker {get_worker_info().id}"

if __name__ == "__main__":
    dice = torch.Generator().manual_seed(2)
    print(*DataLoader(Dice(), batch_size=None, num_workers=2, generator=dice), sep="\\n")
"""

# %%
(FOLDER / "dice.py").write_text(SCRIPT)
command = [sys.executable, FOLDER / "dice.py"]
print("item   torch   numpy  random     own")
print(subprocess.run(command, capture_output=True, text=True, check=True).stdout)

# %% [markdown]
# Only the last column. torch, NumPy's global functions and `random` are seeded in each worker, from the loader's seed and the worker's number. A generator that was made before the workers started is copied into each worker with its state, and it is not seeded again.

# %% [markdown]
# What are workers good for? They wait, so that the model does not have to. Here a batch takes 60 ms to arrive, as from a disk or a network, and a step takes 20 ms. **Predict.** How many milliseconds pass from one step to the next, with no worker, and with one, two, three and four workers?

# %%
SCRIPT = """
import time
from torch.utils.data import DataLoader, Dataset

class Slow(Dataset):
    def __len__(self):
        return 40
    def __getitem__(self, k):
        time.sleep(0.060)
        return k

if __name__ == "__main__":
    for workers in range(5):
        began = []
        for _ in DataLoader(Slow(), batch_size=None, num_workers=workers):
            began.append(time.perf_counter())
            time.sleep(0.020)
        print(f"{workers} workers: {1000 * (began[-1] - began[19]) / 20:3.0f} ms from step to step")
"""

# %%
(FOLDER / "slow.py").write_text(SCRIPT)
command = [sys.executable, FOLDER / "slow.py"]
print(subprocess.run(command, capture_output=True, text=True, check=True).stdout)

# %% [markdown]
# Without a worker the two times add up to 80 ms. One worker loads while the model computes, and the longer time counts: 60 ms. Two workers share the loading: 30 ms. With three workers, loading takes no longer than the step, and a fourth worker is of no use. So the loading time divided by the step's time, rounded up, is enough; more workers only cost memory. And if it is work to make a batch, they need cores for it.

# %% tags=["hide-input"]
choice(
    "A run has a dataset with random crops (drawn with `torch.rand` in `__getitem__`), 4 workers and a seeded loader. You go on with 8 workers. What changes?",
    {
        "Nothing: the loader's generator is seeded": "The permutation stays the same. But the workers make the crops, each with its own seed and for its own share of the batches.",
        "The order of the items": "The sampler is in the main process and doesn't know how many workers there are.",
        "The crops": "A worker's random generators are seeded with its number, and now other workers get the batches. If you want the same crops to the last bit, you need the same number of workers, or a generator for each item.",
    },
    answer="The crops",
)

# %% [markdown]
# ## What a loader does
#
# In the lab you write a loader yourself. So first look at torch's loader from outside. It needs only two things from a dataset, `len(dataset)` and `dataset[k]`. Here is a dataset that records which items were requested. **Predict.** A shuffled loader and two iterators of it are made. The iterators take turns, with three batches in all. When is which item read? Does the second iterator continue where the first one is, or does it start at the beginning? And does it use the same order?

# %%
class Asked:
    """Ten numbers, and a list of the requested ones."""

    def __init__(self):
        self.asked = []

    def __len__(self):
        return 10

    def __getitem__(self, k):
        self.asked.append(k)
        return k


# %%
spied = Asked()
loader = DataLoader(spied, batch_size=3, shuffle=True, generator=torch.Generator().manual_seed(0))
iterators = {"first": iter(loader), "second": iter(loader)}
print("so far:", spied.asked)
for name in ("first", "second", "first"):
    batch = next(iterators[name])
    print(
        f"{name:6} {batch.tolist()}   asked for {spied.asked}, type {type(spied.asked[0]).__name__}"
    )
    spied.asked.clear()

# %% [markdown]
# Nothing is read before a batch is requested, and then only the items of that batch, in its order. (With workers it is different: each gets two batches to prepare in advance.) And each iterator is a separate epoch, with its own order and its own position. So the loader itself has no position. Each `for` loop calls `iter(loader)`, which begins a new epoch. This will matter in *Stop and go on*.
#
# Next comes collating. An item need not be a tensor. **Predict.** Two of these dicts make a batch. What becomes of each entry, and with which dtype?

# %%
item = {
    "x": torch.zeros(2),
    "words": 7,
    "share": 0.1,
    "seen": True,
    "verb": "hablar",
    "at": (3, (1.5,)),
}
together = next(iter(DataLoader([item, item], batch_size=2)))
for key, value in together.items():
    print(
        f"{key:6} "
        f"{value if not isinstance(value, torch.Tensor) else (tuple(value.shape), value.dtype)}"
    )

# %% [markdown]
# Dicts become a dict and tuples become a list, at every level. At the last level, tensors are stacked, numbers become a tensor, and strings stay a list. One dtype is a trap. A Python float is a float64, so the loader makes a float64 tensor of floats, but the model is float32. For an input that is an error; for a target it is not, and then the loss is float64. If you want float32, make a tensor in `__getitem__`.
#
# One line of a training loop does nothing on a machine without a GPU. A loader's batch is always in the CPU's memory, wherever the model is. So a loop begins with `x, y = x.to(device), y.to(device)`. Here `meta` stands for the GPU: its tensors have no numbers, but a layer on it refuses a tensor from the CPU, as a layer on a GPU would. **Predict.** `model.to(far)` and `x.to(far)`: what is on the other device after these two lines?

# %%
device = torch.accelerator.current_accelerator(check_available=True) or torch.device("cpu")
print("this machine's device:", device)
far = torch.device("meta")
model, x = nn.Linear(16, 1), torch.randn(64, 16)
model.to(far)
x.to(far)
print("the model:", model.weight.device, "  the batch:", x.device)
attempt(lambda: model(x).device)
x = x.to(far)
attempt(lambda: model(x).device)

# %% [markdown]
# A module's `to` changes the module. A tensor's `to` does not change the tensor, but returns another one. A dict or a tuple has no `to` at all, so the tensors in such a batch must be moved one by one:

# %%
def moved(batch, device):
    """The same batch, with its tensors on a device."""
    if isinstance(batch, dict):
        return {key: moved(value, device) for key, value in batch.items()}
    if isinstance(batch, (tuple, list)):
        return type(batch)(moved(value, device) for value in batch)
    return batch.to(device) if isinstance(batch, torch.Tensor) else batch


print(moved(together, far)["at"])

# %% [markdown]
# If the tensor is already on the device, `to` returns the same tensor. So you may write this line in every loop. But use it after collating, for a batch and not for an item: a move has a fixed cost, whatever its size, and `__getitem__` may run in workers, which would all have to start CUDA. [Phase 09](09_profiling.ipynb#cell-id=fewer-larger-later) measures what a move costs on a GPU. It also shows how a move can run during the step before (`pin_memory=True` in the loader, `non_blocking=True` in `to`).

# %% tags=["hide-input"]
choice(
    "A loop `for batch in loader:` ends with `break` in the middle of an epoch. Later a second loop `for batch in loader:` uses the same loader and generator. What does the second loop give?",
    {
        "The rest of the epoch": "The position belonged to the first iterator, which no longer exists.",
        "The same epoch from its beginning": "The order belonged to the first iterator, too. A new iterator asks the generator again, and the generator's state has changed.",
        "Another epoch from its beginning": "Each new iterator makes a new order. The rest of the last epoch is lost.",
    },
    answer="Another epoch from its beginning",
)

# %% [markdown]
# ## What the optimizer remembers
#
# Plain SGD remembers nothing: w ← w − lr · g. So there is nothing to save. With *momentum* μ it keeps a velocity for each weight, v ← μ·v + g, and steps by lr · v.
#
# **Predict.** The gradient is always 1, lr is 1, and μ is 0.9. How far does the weight go in each of the first steps? And in the hundredth step?

# %%
p = nn.Parameter(torch.zeros(()))
optimizer = torch.optim.SGD([p], lr=1.0, momentum=0.9)
went = []
for _ in range(100):
    before = p.item()
    p.grad = torch.tensor(1.0)
    optimizer.step()
    went.append(before - p.item())
print("first:", *(f"{v:.3f}" for v in went[:5]), "  hundredth:", f"{went[-1]:.3f}")

# %% [markdown]
# In the end each step is 1/(1 − μ) = ten times as long. If gradients keep their direction, momentum multiplies the learning rate. If they change their direction, they cancel.

# %% [markdown]
# ### AdamW
#
# AdamW remembers two numbers for each weight: a running mean *m* of the gradient, and a running mean *v* of its square.
#
# $$m \leftarrow \beta_1 m + (1-\beta_1)\,g \qquad v \leftarrow \beta_2 v + (1-\beta_2)\,g^2$$
# $$\hat m = \frac{m}{1-\beta_1^t} \qquad \hat v = \frac{v}{1-\beta_2^t} \qquad w \leftarrow w - \mathrm{lr}\,\lambda\,w - \mathrm{lr}\,\frac{\hat m}{\sqrt{\hat v}+\varepsilon}$$
#
# Both begin at 0 and are too small at first. The divisions by 1 − βᵗ correct that; t is the number of steps that this weight has made. **Predict.** AdamW makes its first step, with lr 0.01. How far does a weight go if its gradient is 1000? And if its gradient is 0.000001?

# %%
for g in (1000.0, 1.0, 1e-3, 1e-6, 1e-9):
    p = nn.Parameter(torch.zeros(()))
    optimizer = torch.optim.AdamW([p], lr=0.01)
    p.grad = torch.tensor(g)
    optimizer.step()
    print(f"gradient {g:8.0e}   went {p.item():.6f}")

# %% [markdown]
# They all go the same distance, because at the first step m̂ is g and √v̂ is |g|. AdamW's first step is ±lr for *every* weight, whatever the size of its gradient. For gradients near ε = 1e-8 it is smaller (ε is added outside the root, so it is compared with |g|).
#
# Now you know why the loss jumped. The file had the weights but not the optimizer. So the new AdamW began again with a first step: each of 50,000 finely tuned weights went up or down by the full learning rate, and only the sign of one batch's gradient decided the direction. In the old optimizer, v knew which weights have large gradients, and in m the noise was averaged out.
#
# Here is one real weight in the first 120 steps. It connects channel 3 of the hidden state with the word "hablé".

# %%
torch.manual_seed(0)
model = MiniGPT(SMALL)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
place = tokenizer.id("hablé"), 3
gradients, norms, path = [], [], []
for _ in range(120):
    rows = torch.randint(len(inputs), (64,))
    loss = loss_of(model, inputs[rows], targets[rows])
    optimizer.zero_grad()
    loss.backward()
    gradients.append(model.lm_head.weight.grad[place].item())
    norms.append(torch.cat([p.grad.flatten() for p in model.parameters()]).norm().item())
    optimizer.step()
    path.append(model.lm_head.weight[place].item())

# %% [markdown]
# **Predict.** Only a few sentences contain "hablé". What does its gradient look like? What does AdamW do after a single large gradient: when is the step largest, and how long does the effect last?

# %%
adamw_explorer(gradients, step=30, name="the weight of “hablé”, channel 3")

# %% [markdown]
# The very first step is the largest: one lr. A gradient far above its neighbours moves the weight by little more than half of that, because it is divided by a root that it has made larger itself. Then it goes on moving the weight for ten steps, while m shrinks. In v it stays for a thousand.
#
# Move β₂ to 0.9 and watch the last row: v forgets the last peak before the next peak comes, and small gradients make full steps again. Switch the bias correction off: at the first step m is a tenth of what it should be, but √v is only a thirtieth, so the quotient is three times too *large*.
#
# Is that really what torch does? From m, v and t after the last step we compute that step by hand, and compare it with the distance that the weight went.

# %%
memory = optimizer.state[model.lm_head.weight]
m, v, t = memory["exp_avg"][place], memory["exp_avg_sq"][place], memory["step"]
m_hat, v_hat = m / (1 - 0.9**t), v / (1 - 0.999**t)
decay = 0.01 * path[-2]  # the default λ
by_hand = -1e-2 * (decay + m_hat / (v_hat.sqrt() + 1e-8))
print(f"by hand {by_hand.item():.5e}   by torch {path[-1] - path[-2]:.5e}")

kept = sum(tensor.nbytes for each in optimizer.state.values() for tensor in each.values())
print(f"it keeps {kept:,} bytes; the weights have {sum(p.nbytes for p in model.parameters()):,}")

# %% [markdown]
# The *W* stands for weight decay, the term λ·w. It pulls each weight towards 0, independently of all gradients. In the older Adam, weight decay was added to the gradient. **Predict.** What is the difference after 100 steps, for a weight of 1? Take a gradient of 0, a small noisy gradient, and a large noisy gradient.

# %%
for kind in (torch.optim.Adam, torch.optim.AdamW):
    p = nn.Parameter(torch.ones(3))
    optimizer, noise = kind([p], lr=0.01, weight_decay=0.1), torch.Generator().manual_seed(0)
    for _ in range(100):
        p.grad = torch.tensor([0.0, 1e-3, 10.0]) * torch.randn(3, generator=noise)
        optimizer.step()
    print(f"{kind.__name__:6}", *(f"{v:6.3f}" for v in p.tolist()))

# %% [markdown]
# In Adam the decay is also divided by √v̂. So weights with small gradients go to 0 at full speed, but the weight with the large gradient hardly decays. In AdamW the decay is the same for all weights, a factor of 0.999 in each step.
#
# Finally, which steps does t count? **Predict.** A parameter gets a gradient once. After that step, `zero_grad` and `step` are called without a backward in between. Does the parameter move? Does it matter whether `zero_grad` sets the gradient to None, which is the default, or to zeros?

# %%
for to_none in (True, False):
    p = nn.Parameter(torch.tensor(1.0))
    optimizer = torch.optim.AdamW([p], lr=0.01, weight_decay=0.1)
    p.grad = torch.tensor(1.0)
    optimizer.step()
    after_one = p.item()
    optimizer.zero_grad(set_to_none=to_none)
    optimizer.step()
    count = optimizer.state[p]["step"].item()
    print(
        f"set_to_none={to_none!s:5}  {after_one:.4f} -> {p.item():.4f}   steps counted: {count:.0f}"
    )

# %% [markdown]
# If a parameter has no gradient, `step` skips it: it doesn't move, it doesn't decay, and its own count stays the same. A gradient of zeros is a gradient, and m goes on moving the parameter. So each parameter has its own count, and you must save it, too. Here is everything that AdamW stores.

# %%
state = optimizer.state_dict()
print(state["state"])
group = state["param_groups"][0]
print({key: group[key] for key in ("lr", "betas", "eps", "weight_decay", "params")})

# %% [markdown]
# torch has AdamW in three forms: a loop over the parameters, a form that treats all of them at once (`foreach`, the default on a GPU), and one kernel for everything (`fused`). `foreach` gives the same bits as the loop, but `fused` rounds at other places. It is just as right, but if a run changes to `fused`, it isn't the same run any more.

# %% tags=["hide-input"]
number(
    "A model of 7 billion parameters is trained in float32 with AdamW. How many GB (10⁹ bytes) do weights, gradients and the optimizer's state take, without activations?", 112,
    unit="GB",
    why="Each parameter has four numbers (weight, gradient, m, v) of four bytes each. That is 16 bytes, times 7·10⁹.",
    wrong={84: "AdamW keeps two numbers for each weight, m and v.", 28: "That is right for the weights alone.", 56: "That is right for weights and gradients. m and v take the same again."},
)

# %% tags=["hide-input"]
choice(
    "You multiply every gradient by 1,000 in every step (a loss that is a sum and not a mean does that, too). What happens with SGD, and what with AdamW?",
    {
        "Both step 1,000 times as far": "AdamW divides by the root of the mean square, and this root is 1,000 times as large as well.",
        "SGD steps 1,000 times as far, AdamW as before": "m̂/√v̂ does not depend on the scale of the gradients; only ε does. That is why one learning rate of AdamW suits models with very different gradients, and why a forgotten division does so little harm.",
        "Neither changes": "SGD only multiplies the gradient by lr.",
    },
    answer="SGD steps 1,000 times as far, AdamW as before",
)

# %% [markdown]
# ## How far to step
#
# A learning rate is rarely a constant. It rises for a while, during the *warm-up*. Then it falls to a floor, mostly along half a cosine. Let *s* be the share of the way down that is already done, from 0 to 1:
#
# $$\mathrm{lr} = \mathrm{floor} + (\mathrm{peak} - \mathrm{floor}) \cdot \tfrac12\,(1 + \cos \pi s)$$
#
# PyTorch has schedulers for it (such as `LambdaLR` for your own function), each with a `state_dict`. Or you compute the rate from the step and write it into the optimizer's groups, as our `train` does. Then you only have to save the step.
#
# The usual mistake is to be off by one. **Predict.** A warm-up of 4 steps to 0.1 is computed as peak · step / 4, with steps counted from 0. What does the model learn from the first batch?

# %%
p = nn.Parameter(torch.zeros(()))
optimizer = torch.optim.SGD([p], lr=0.1)
climbs = {
    "step / 4": lambda step: min(1, step / 4),
    "(step + 1) / 4": lambda step: min(1, (step + 1) / 4),
}
for name, climb in climbs.items():
    optimizer = torch.optim.SGD([p], lr=0.1)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, climb)
    rates = []
    for _ in range(6):
        rates.append(schedule.get_last_lr()[0])
        optimizer.step()
        schedule.step()  # after the optimizer's step, once a step
    print(f"{name:15}", *(f"{rate:.3f}" for rate in rates))

# %% [markdown]
# Nothing. The gradient of a whole batch is computed, forward and backward, and then multiplied by 0.
#
# Why warm up at all? At its first step AdamW moves every weight by the full learning rate, after only a single batch. You have seen the result. **Predict.** We train a new MiniGPT of three layers, with lr 0.01. One run reaches this rate in 20 steps of warm-up, the other begins with it. Is the first run behind the other, and for how long?

# %%
def start(warmup, lr=0.01, steps=60):
    torch.manual_seed(0)
    model = MiniGPT(MiniGPTConfig(n_layers=3))
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
    curve = []
    for step in range(steps):
        optimizer.param_groups[0]["lr"] = lr * min(1, (step + 1) / warmup)
        rows = torch.randint(len(inputs), (32,))
        loss = loss_of(model, inputs[rows], targets[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        curve.append(loss.item())
    return curve


loss_curves(
    {"the full rate at once": start(warmup=1), "20 steps of warm-up": start(warmup=20)}, step=40
)

# %% [markdown]
# It is behind for a dozen steps and then far ahead. The first steps of the other run have moved the weights to a bad place, and it is slow from then on.
#
# **Predict.** Somebody has lost the optimizer's state for good, and has only the weights of step 80. What happens if they begin again with a warm-up?

# %%
run = new_run()
run.model.load_state_dict(saved["model"])  # and the step is 0, so `train` climbs again
again = dict(enumerate(train(run, 80), 81))
loss_curves(
    {"never stopped": whole, "resumed": dict(enumerate(resumed, 81)), "climbing again": again},
    step=82,
)

# %% [markdown]
# There is no jump, because v gets good values before any weight goes far. It isn't the old run, but it is a good run.
#
# The second way to limit a step is *clipping*. All gradients together are treated as one long vector. If its norm is above a bound, the whole vector is multiplied by bound / norm. Its length changes, but its direction does not.

# %%
a, b = nn.Parameter(torch.zeros(2)), nn.Parameter(torch.zeros(1))
a.grad, b.grad = torch.tensor([3.0, 0.0]), torch.tensor([4.0])
norm = nn.utils.clip_grad_norm_([a, b], max_norm=1.0)
print("returned:", norm.item(), "  now:", a.grad, b.grad)
print("again:   ", nn.utils.clip_grad_norm_([a, b], max_norm=10.0).item(), "  now:", a.grad, b.grad)

# %% [markdown]
# It returns the norm from *before* clipping. Log this number, because it is the first to show that a run goes wrong. A gradient that is shorter than the bound stays as it is. And there is one norm for all tensors, because clipping each tensor by itself would change the direction.
#
# **Predict.** One element of the gradient is infinite. What does the gradient look like after clipping, and what do the weights look like after the optimizer's step?

# %%
p = nn.Parameter(torch.ones(3))
optimizer = torch.optim.AdamW([p], lr=0.01)
p.grad = torch.tensor([1.0, math.inf, 2.0])
print("norm:", nn.utils.clip_grad_norm_([p], 1.0).item(), "  clipped:", p.grad)
optimizer.step()
print("weights:", p.data)
attempt(lambda: nn.utils.clip_grad_norm_([p], 1.0, error_if_nonfinite=True))

# %% [markdown]
# The factor 1/∞ is 0. So all finite numbers become 0, and ∞ · 0 is NaN. AdamW writes the NaN into the weight, and into m and v, where it stays for ever. If the norm isn't finite, leave out the step.
#
# Now look at the norms of *your* run, which were recorded beside the gradients of "hablé". **Predict.** Where in a run are the large norms? Then move the clip down until it cuts every step. What does clipping do then?

# %%
from utils.views import schedule_clip

schedule_clip(norms, warmup=10)

# %% [markdown]
# A clip below all norms gives all steps gradients of the same length. For AdamW that changes almost nothing, because the scale of the gradients does not matter there. A clip is for single gradients far above their neighbours, which would stay in m for ten steps and in v for a thousand.

# %% tags=["hide-input"]
number(
    "A warm-up in steps 0 to 9 leads to a peak of 0.01. Then half a cosine falls to a floor of 0.001, and reaches it at step 110. What is the learning rate at step 60?", 0.0055,
    why="Step 60 is half-way between 10 and 110, where the cosine is 0: the middle of 0.01 and 0.001.",
    wrong={0.005: "The floor is 0.001, and not 0.", 0.0045: "That is half of the difference between floor and peak. Add the floor."},
)

# %% [markdown]
# ## A resting place
#
# Here the first sitting ends. You know what each of the five lines does, what the optimizer remembers, and why the loss of the resumed run jumped. You can now solve exercises 1 to 5 of [the lab](../release/07_training/07_training.ipynb), 21 of its 55 points: windows, a loader, five mistakes, two optimizers, and the size of a step. The second sitting finds out what else a file must contain.

# %% [markdown] tags=["needs-kernel"]
# When you come back, run the cells above again (*Run → Run All Above Selected Cell*, a minute or two), because the rest uses their model and their sentences.

# %% [markdown]
# ## A big batch in pieces
#
# A batch of 256 doesn't fit into memory. So you take four parts of 64 and let the gradients add up, with four `backward` and one `step`. This is [phase 02](02_autograd.ipynb#cell-id=leaves-and-gradients-that-add-up)'s accumulation, but now on purpose.
#
# The loss is a mean, so each part's loss is divided by 4. **Predict.** Is the gradient then the same as the gradient of the whole batch?

# %%
every_input, every_target = training_lines()  # the lists of forms as well
order = (every_target[:256] != -100).sum(1).argsort()  # short lines first, as bucketing loaders do
x, y = every_input[order], every_target[order]
model = run.model.eval()  # 160 steps old, dropout off


def gradient(parts, weigh):
    """The gradient, as one vector, of the weighted sum of parts (rows of x and y)."""
    model.zero_grad()
    for rows in parts:
        (loss_of(model, x[rows], y[rows]) * weigh(y[rows])).backward()
    return torch.cat([p.grad.flatten() for p in model.parameters()])


quarters = torch.arange(256).split(64)
big = gradient([torch.arange(256)], lambda y: 1.0)
mean = gradient(quarters, lambda y: 1 / 4)
print("targets in each part:", [int((y[rows] != -100).sum()) for rows in quarters])
print(f"mean of means, off by {(mean - big).norm() / big.norm():.1%}")

# %% [markdown]
# It is not, because the parts are unequal. Each has 64 lines, but the loss is a mean over *targets*. The last part has the lists of forms, so it has three times as many targets as the first. In a mean of means, a word of a short line counts more. Here the error is nearly half of the gradient, and the loss still falls. (If all parts have the same number of targets, the error is 0. So the mistake passes every small test. Hugging Face's `Trainer` had it until late 2024.)
#
# Each part must be weighted by its share of all targets. This share must be known before the first `backward`.

# %%
everything = (y != -100).sum()
right = gradient(quarters, lambda y: (y != -100).sum() / everything)
print(f"weighed by targets, off by {(right - big).norm() / big.norm():.0e}")
print("bit for bit:", torch.equal(right, big))

# %% [markdown]
# They are equal up to rounding, but not bit for bit, because the same numbers are added in another order.
#
# The gain is memory. **Predict.** Autograd keeps the tensors that the backward needs. How much memory do they take for the batch of 256, and how much at most for a quarter?

# %%
def kept(model, x, y):
    """MiB that autograd saves for the backward. Each storage counts once."""
    found = {}

    def pack(t):
        found[t.untyped_storage().data_ptr()] = t  # kept alive, so that no address is used twice
        return t

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        loss_of(model, x, y)
    return sum(t.untyped_storage().nbytes() for t in found.values()) / 2**20


print(f"whole: {kept(model, x, y):.1f} MiB   each quarter:", end="")
print(*(f" {kept(model, x[rows], y[rows]):.1f}" for rows in quarters))

# %% [markdown]
# A quarter, if each part's graph is freed before the next graph is made. If you add up the *losses* and call `backward` once, at the end, all four graphs stay alive, and you have gained nothing.
#
# Now the order of a whole step is: clear the gradients; for each part run forward, weight the loss and run backward; then clip, *once*; then step. A clip inside the loop would clip unfinished sums.

# %% tags=["hide-input"]
choice(
    "Four parts have 100, 100, 100 and 20 targets. Each part's mean loss is divided by 4 and backpropagated. How many times its right weight does a word of the last part get?",
    {
        "5": "It counts 5 times as much as a word of the other parts. Compared with its *right* weight the factor is smaller, because the other words count too little.",
        "4": "Its weight is 1/(4 · 20) = 1/80, and should be 1/320.",
        "1: the mean of means is the mean": "That is true only if all parts have the same number of targets.",
    },
    answer="4",
)

# %% [markdown]
# ## Sixteen bits
#
# [Phase 01](01_tensors.ipynb#cell-id=dtypes-how-a-number-becomes-bytes)'s ruler: float16 has 5 bits of exponent and 10 of fraction, and bfloat16 has 8 and 7. On a GPU with tensor cores, a product of matrices in one of these dtypes is many times as fast as in float32. So should everything be in 16 bits?
#
# **Predict.** A weight of 1 in bfloat16 gets a thousand updates of 0.001. What is it in the end?

# %%
for dtype in (torch.float32, torch.bfloat16):
    w = torch.ones((), dtype=dtype)
    for _ in range(1000):
        w += 0.001
    print(dtype, w.item())

# %% [markdown]
# It is still 1. The next number above 1 is 1.0078, so 1.001 is rounded back to 1, a thousand times. Late in a training, updates are often as small as this, compared with their weights. So the weights stay in float32, and only the computation *with* them is done in 16 bits. That is *mixed* precision. `autocast` does it with [phase 04](04_dispatcher.ipynb#cell-id=keys-of-the-thread)'s dispatcher: a key that comes before autograd's key casts the inputs of some operators.
#
# **Predict.** Which modules of MiniGPT give 16 bits under autocast, and which give 32? What about the loss and the gradients?

# %%
found = {}


def note(module, inputs, output):
    found.setdefault(type(module).__name__, str(output.dtype).removeprefix("torch."))


hooks = [module.register_forward_hook(note) for module in model.modules()]
model.zero_grad()
with torch.autocast("cpu", dtype=torch.bfloat16):
    loss = loss_of(model, x, y)
loss.backward()
for hook in hooks:
    hook.remove()
print(found)
print("loss:", loss.dtype, "  gradients:", {p.grad.dtype for p in model.parameters()})

# %% [markdown]
# The results of products are bfloat16. The residual stream stays float32, because an embedding is not a product, and float32 plus bfloat16 is float32. So LayerNorm, which reads the stream, computes in float32. `cross_entropy` is on autocast's list of operators that need 32 bits. The softmax inside attention is on this list for CUDA, but not for a CPU. The gradients have the dtype of the weights.
#
# Use the context only for forward and loss: the backward of each operator runs in the dtype of its forward. Is the result right, and is it fast? Both can be measured.

# %%
import time


def passed(dtype, rows=slice(0, 256, 4)):
    """The gradient of 64 rows as a vector, and the CPU time in seconds."""
    began = time.process_time()
    model.zero_grad()
    with torch.autocast("cpu", dtype=dtype, enabled=dtype is not torch.float32):
        loss = loss_of(model, x[rows], y[rows])
    loss.backward()
    spent = time.process_time() - began
    return torch.cat([p.grad.flatten() for p in model.parameters()]), spent


# %%
exact, _ = passed(torch.float32)
neighbours, _ = passed(torch.float32, slice(1, 256, 4))
print(f"another batch of 64      gradient off by {(neighbours - exact).norm() / exact.norm():.1e}")
for dtype in (torch.float32, torch.bfloat16, torch.float16):
    times = sorted(passed(dtype)[1] for _ in range(9))
    off = (passed(dtype)[0] - exact).norm() / exact.norm()
    low, middle, high = (1e3 * times[k] for k in (2, 4, 6))  # ms; half of the nine are between
    print(
        f"{dtype!s:15} gradient off by {off:.1e}   {middle:5.1f} ms of CPU ({low:.1f} to "
        f"{high:.1f})"
    )

# %% [markdown]
# It is right to a few parts in a thousand, and float16, with three more bits of fraction, to one part in a thousand. From one batch to the next, the gradient changes by more than half of its length. But is it faster? Some CPUs have instructions for bfloat16 (AVX-512 with BF16, or AMX), which save time for large matrices. Other CPUs must emulate it and take several times as long, and most CPUs must emulate float16. So measure on the machine that you will use.

# %% [markdown]
# ### What a GPU said
#
# We *did* measure on hardware that is made for it. The course comes with a record of a GPU, from another machine than yours and with another version of PyTorch. First come products alone, of 8,192 × 8,192. **Predict.** If float32 has the speed 1, what speed have bfloat16, float64 and eight bits?

# %%
from utils.instruments import records

gpu = records.load("nvidia-h100-80gb-hbm3")
print(f"{gpu.gpu}, torch {gpu.provenance['torch']}, {gpu.provenance['date'][:10]}")
rates = gpu.result("products")["FLOP/s"]
for name, rate in sorted(rates.items(), key=lambda row: row[1]):
    print(
        f"{name:16} {rate / 1e12:6.0f} ·10¹² operations a second, {rate / rates['float32']:5.1f} "
        "times float32"
    )

# %% [markdown]
# bfloat16 is sixteen times as fast. The reason is the *tensor cores*, which multiply small blocks of matrices. Plain float32 can't use them and is the slowest of all, even slower than float64. *TF32* is a way around that: the factors keep float32's exponent but only ten bits of fraction, and the sums are float32. TF32 isn't a dtype but a permission (`torch.backends.cuda.matmul.fp32_precision = "tf32"`), off by default.
#
# Then comes a whole training: a GPT of 8 layers, 1,024 wide, with AdamW, on 16 sequences of 512 tokens. Each row of the output is the same training in another precision. **Predict.** Products are sixteen times as fast in bfloat16. How many times as fast is the step? How much smaller is the peak of memory? How far apart are the losses after twenty steps?

# %%
trained = gpu.result("precision")
plain, (rows, columns) = trained["ways"]["float32"], trained["batch"]
for name, way in trained["ways"].items():
    times, peak = plain["seconds"] / way["seconds"], way["peak"] / 1e9
    print(f"{name:22} {1e3 * way['seconds']:6.1f} ms, {times:.1f} × as fast; peak {peak:.2f} GB;",
          f"loss {way['losses'][0]:.4f}, after twenty steps {way['losses'][-1]:.2f}")
weights = plain["weights"] / 4
table = trained["config"]["n_layers"] * trained["config"]["n_heads"] * rows * columns**2
print(f"\n{weights / 1e6:.1f} million weights, with gradients and AdamW's memory "
      f"{16 * weights / 1e9:.2f} GB")
print(f"attention's tables, {table / 1e6:.0f} million numbers: {4 * table / 1e9:.2f} GB at 4 "
      f"bytes, {6 * table / 1e9:.2f} GB at 6")

# %% [markdown]
# The step is three times as fast, not sixteen, because it contains more than products. *Time on a napkin*, below, derives these milliseconds from the table above. TF32 takes one line and gives most of the gain.
#
# People often say that 16 bits halve the memory, but here the peak is only 4 to 6 % smaller. Everything that stays from step to step is float32, with 16 bytes for each weight as before. Tensors that are kept for the backward of a product are halved. But the residual stream isn't halved, and attention keeps even *more*. Its softmax is computed in float32, and the softmax's table is kept for its own backward. For the product that follows, the table is kept again, rounded. That makes six bytes for each number in place of four. So use 16 bits for speed. If memory is short, accumulate: that divides all kept tensors by the number of parts. And don't keep the table: [phase 08](08_transformer.ipynb#cell-id=attention-in-fifty-lines) has a kernel that doesn't.
#
# The first losses are the same to four digits. After twenty steps they differ from float32's by up to a tenth, even with TF32. Each kind of rounding leads a training to other weights. Twenty steps of one run don't show whether these are worse.
#
# Much code still uses `torch.cuda.amp.autocast` and `torch.cuda.amp.GradScaler`. They work, but they are deprecated and warn: use the names in `torch.amp`.

# %% [markdown]
# ### A scale for small gradients
#
# The smallest positive number in float16 is 6e-8. Here are the gradients of the *shipped* MiniGPT on 256 lines, sorted by size. Below them you see the range of each dtype. If a model predicts a word well, the word gives almost no gradient, so late in a training gradients are small.
#
# **Predict.** What part of the gradients is too small for float16? By how much would you multiply the loss so that no gradient is lost and none overflows?

# %%
from utils.minigpt import load_minigpt
from utils.views import gradient_ruler

shipped = load_minigpt()
loss_of(shipped, inputs[:256], targets[:256]).backward()
gradient_ruler([p.grad for p in shipped.parameters()])

# %% [markdown]
# One gradient in twelve becomes 0, and four more in ten become subnormal numbers, which have fewer digits. At the other end there is room for twenty doublings.
#
# If you multiply the loss by S, the chain rule multiplies every gradient by S. So the whole histogram moves to the right, and this costs only one multiplication. Before the step the gradients are divided by S again, in float32. bfloat16 has float32's exponent and needs none of this.
#
# How large should S be? As large as possible, but the limit changes during training. `GradScaler` finds it by trying. If a gradient is inf or NaN, it leaves out the step and halves S. After a number of good steps in a row it doubles S. Its state contains this number, and a checkpoint must contain its state. **Predict.** Here the scaler doubles S after 2 good steps, and the second loss is infinite. Write down scale and weight for each line.

# %%
p = nn.Parameter(torch.tensor(1.0))
optimizer = torch.optim.SGD([p], lr=0.1)
print("as it comes:", torch.amp.GradScaler("cpu").state_dict())
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**16, growth_interval=2)
for factor in (1.0, math.inf, 1.0, 1.0, 1.0):
    optimizer.zero_grad()
    scaler.scale(p * factor).backward()
    scaler.step(optimizer)  # divides by the scale, checks, and steps or doesn't
    scaler.update()
    print(f"gradient {factor:3}   weight {p.item():.1f}   scale {scaler.get_scale():,.0f}")

# %% [markdown]
# The infinite gradient did not change the weight, only the scale. At the beginning of a run a few skipped steps are normal. But if the scale falls again and again, something is infinite for another reason.
#
# How does clipping fit in? **Predict.** The gradient is 2, the clip is 1, and the scale is 65,536. What happens to the weight if you clip before the scaler has divided?

# %%
for unscale_first in (True, False):
    p = nn.Parameter(torch.tensor(1.0))
    optimizer = torch.optim.SGD([p], lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**16)
    scaler.scale(2 * p).backward()
    if unscale_first:
        scaler.unscale_(optimizer)
    norm = nn.utils.clip_grad_norm_([p], 1.0)
    scaler.step(optimizer)
    print(f"unscale first: {unscale_first!s:5}  norm seen {norm:9,.0f}   weight {p.item():.7f}")

# %% [markdown] tags=["printed 131072"]
# The clip cuts 131,072 down to 1, and then the scaler divides that by 65,536. With SGD the model hardly moves. With AdamW nobody notices, although the clip now means something else. So call `unscale_` first. The scaler remembers that, and doesn't divide again.

# %% [markdown]
# ### Everything in one step
#
# Here is the whole step, in the only right order: weighted parts, each under autocast and scaled; then, once, unscale, clip, step, update. (All parts need the same scale, because their gradients are added up.)

# %%
def whole_step(model, parts, dtype):
    """One SGD step with accumulation, mixed precision and clipping: the change of the weights."""
    optimizer, scaler = torch.optim.SGD(model.parameters(), lr=0.1), torch.amp.GradScaler("cpu")
    before = torch.cat([p.detach().flatten() for p in model.parameters()])
    optimizer.zero_grad()
    for rows in parts:
        share = (y[rows] != -100).sum() / everything
        with torch.autocast("cpu", dtype=dtype, enabled=dtype is not torch.float32):
            part = share * loss_of(model, x[rows], y[rows])
        scaler.scale(part).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    return torch.cat([p.detach().flatten() for p in model.parameters()]) - before

# %% [markdown]
# **Predict.** Compare with one batch of 256 in float32. How far off is the step in four parts? How far off is it in four parts and 16 bits? And which is the fastest here?

# %%
import copy

reference = whole_step(copy.deepcopy(model), [torch.arange(256)], torch.float32)
for dtype in (torch.float32, torch.bfloat16, torch.float16):
    for parts in ([torch.arange(256)], quarters):
        began = time.process_time()
        found = whole_step(copy.deepcopy(model), parts, dtype)
        spent = time.process_time() - began
        off = (found - reference).norm() / reference.norm()
        print(f"{dtype!s:15} in {len(parts)}: off by {off:.0e}   {spent * 1e3:4.0f} ms of CPU")

# %% [markdown]
# Each form is as correct as its dtype allows. Cutting into parts costs no digits and hardly any time. What 16 bits cost or save depends on the machine. On a GPU, use the same cell with `"cuda"` in place of `"cpu"`.

# %% tags=["hide-input"]
choice(
    "A colleague trains in bfloat16 under autocast, with a `GradScaler`. What does the scaler do there?",
    {
        "It keeps small gradients from becoming 0": "bfloat16 has the exponent of float32. So if a small gradient fits into float32, it also fits into bfloat16, with fewer digits.",
        "Nothing that is needed": "It multiplies and divides by a power of two, which is exact, and skips a step whose gradient isn't finite. It is useful to skip such a step, but for that a check of the norm is enough.",
        "It makes the gradients float32": "They are float32 because the weights are.",
    },
    answer="Nothing that is needed",
)

# %% tags=["hide-input"]
number(
    "In float32, a weight, its gradient and AdamW's two numbers take 16 bytes. How many bytes do they take in a training in bfloat16 under autocast?", 16,
    unit="bytes",
    why="Autocast only makes temporary copies of the inputs of a product. Weights, gradients and the optimizer's memory don't change.",
    wrong={8: "That is `model.bfloat16()`: everything is in 16 bits, and updates no longer change the weights.", 14: "Under autocast the gradient of a weight has the dtype of the weight, float32.", 18: "The 16-bit copies exist during forward and backward, and then they are freed."},
)

# %% [markdown]
# ### A stopwatch and a meter
#
# What do 16 bits and parts bring on *your* machine? The last cell measured each step once, and one time says little: the first call is often slow, other programs get in the way, and the machine itself becomes faster and slower. So measure ratios, in pairs. A pair is the step in float32 on the whole batch, and at once the other step. As both have the same conditions, the ratio of their times is what counts. Leave out the first pair, and take the median of the others.
#
# **Predict.** The first row compares a step with itself, so its ratio should be 1. How far from 1 is it? And how many times as fast is a step in 16 bits?

# %%
from statistics import median


def stopwatch(dtype, parts):
    """Seconds of CPU of a whole step, with a copy of the model."""
    twin = copy.deepcopy(model)
    began = time.process_time()
    whole_step(twin, parts, dtype)
    return time.process_time() - began


all_rows = [torch.arange(256)]
for dtype in (torch.float32, torch.bfloat16):
    for parts in (all_rows, quarters):
        pairs = [(stopwatch(torch.float32, all_rows), stopwatch(dtype, parts)) for _ in range(7)]
        ratios = sorted(first / second for first, second in pairs[1:])
        print(f"{dtype!s:15} in {len(parts)}: {median(ratios):.2f} times as fast "
              f"({ratios[1]:.2f} to {ratios[4]:.2f})")

# %% [markdown]
# The first row shows how large the noise is. Believe in a difference only if it is larger. The second row may even be above 1, although four parts do the same work as one batch. A likely reason is that smaller tensors more often fit into the caches of the processor. If the number in the third row is below 1, 16 bits cost time on this CPU. There are two reasons. Each cast reads and writes a tensor, in the forward and once more in the backward. And a CPU without instructions for bfloat16 widens each number again to multiply it, so the product itself can't be faster. On a GPU with tensor cores, products gain far more than the casts cost, as in the record above.
#
# On a GPU you need one more thing. A call only puts work into a queue and returns, so wait for the device before each reading of the clock. `torch.accelerator.synchronize()` waits. [Phase 09](09_profiling.ipynb#cell-id=two-clocks) shows what happens otherwise.
#
# Now the bytes. `kept`, above, counts what *one* graph keeps. But a step in four parts makes four graphs, and what counts is how much is kept at the same time. **Predict.** A hook may give autograd any object in place of a tensor. We give it tickets, and count those that somebody still has. How many are there after the forward, and how many after the backward?

# %%
import weakref


class Ticket:
    """A graph gets it in place of a tensor, and returns it when backward needs the tensor."""

    def __init__(self, t):
        self.t = t.detach()  # without its graph, or the graph would keep itself alive


def exchange(t):
    ticket = Ticket(t)
    tickets.add(ticket)
    return ticket


# %%
tickets = weakref.WeakSet()  # contains a ticket only as long as somebody else has it
with torch.autograd.graph.saved_tensors_hooks(exchange, lambda ticket: ticket.t):
    two = [loss_of(model, x[rows], y[rows]) for rows in quarters[:2]]
print("after two forwards:", len(tickets))
two[0].backward()
print("after the backward of the first:", len(tickets))
del two
print("after the second graph is thrown away:", len(tickets))

# %% [markdown]
# A graph lets go of its tensors when `backward` has gone through it, and also when nobody needs it any more. So if the parts run in turn, forward and backward, only one graph has its tensors at a time. The most that such a step keeps is what its largest part keeps.
#
# **Predict.** A number in bfloat16 has half of the bytes. Does autograd then keep half as much?

# %%
for dtype in (torch.float32, torch.bfloat16):
    with torch.autocast("cpu", dtype=dtype, enabled=dtype is not torch.float32):
        batch = kept(model, x, y)
        largest = max(kept(model, x[rows], y[rows]) for rows in quarters)
    print(f"{dtype!s:15} whole {batch:4.1f} MiB, the largest quarter {largest:4.1f} MiB")

# %% [markdown]
# Inputs of products are kept in half of the bytes. But the residual stream, what LayerNorm reads, and the logarithms of the loss stay float32. Each weight that was cast is kept as well, in 16 bits. So here you save much less than half. Parts save more, and you can choose how many.
#
# In [the lab](../release/07_training/07_training.ipynb) you build both instruments, and measure your own step.

# %% [markdown]
# ## Overfit one batch first
#
# Any of these parts can be wrong, and the loss will mostly fall all the same. So make two tests before any long run. They take seconds.
#
# The first test needs no training. **Predict.** A new model knows nothing and has 600 words to choose from. What is its loss?

# %%
torch.manual_seed(0)
model = MiniGPT(SMALL)
print(f"loss {loss_of(model, inputs[:64], targets[:64]).item():.3f}   ln 600 = {math.log(600):.3f}")

# %% [markdown]
# If the loss begins with another number, something is wrong with the last layer, the targets or the reduction.
#
# For the second test, take *one* batch of 16 lines and let the model learn it by heart. A model with 50,000 numbers can do that perfectly. If yours can't, something is broken, and a larger model or more data would only hide it. Here are a right loop and three loops with a bug.
#
# **Predict.** Which of the bugs does the test find?

# %%
def targets_with(bug, x, y):
    if bug == "targets shuffled":  # each line gets another line's targets
        return y[torch.randperm(len(y))]
    if bug == "targets not shifted":  # the target is the word that the model reads
        return x.where(y != -100, -100)
    return y


# %%
def overfit(bug=None, steps=60):
    torch.manual_seed(0)
    model = MiniGPT(SMALL)
    learnt = [p for name, p in model.named_parameters() if bug != "head only" or "lm_head" in name]
    optimizer = torch.optim.AdamW(learnt, lr=1e-2)
    x, y = inputs[:16], targets_with(bug, inputs[:16], targets[:16])
    curve = []
    for _ in range(steps):
        loss = loss_of(model, x, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        curve.append(loss.item())
    return curve


# %%
BUGS = (None, "targets shuffled", "targets not shifted", "head only")
loss_curves({bug or "right": overfit(bug) for bug in BUGS}, step=60)

# %% [markdown]
# If only the head learns, the loss stays far behind. So the test shows a frozen or forgotten part. It also shows a learning rate that is too small, a graph that is cut, or a gradient that never arrives.
#
# The other two bugs pass the test, and copying is even better than the right loop! Sixteen lines with wrong targets are as easy to learn by heart as with right targets, and it is easier to copy a word than to predict it. The test says that the model learns *something*, but not what. So there is a third test, which is even cheaper, and you should run it first: print one item of the loader in words, as we did with `read` and `asked`. And be suspicious if a loss falls too fast.

# %% tags=["hide-input"]
choice(
    "The model learns one batch by heart, to a loss of 0.01. In the real run the loss falls to 0.02 in an epoch, but the model can't write a sentence. What would explain both?",
    {
        "The learning rate is too large": "Then the loss would not come down that far.",
        "The causal mask is missing": "Then a place can look at the next word, which is its own target. In training the model is nearly perfect without learning anything. When it writes, the next word doesn't exist yet, and the model is useless. A loss below the randomness of the language is always a leak.",
        "The model is too small": "Then the loss would stay high.",
    },
    answer="The causal mask is missing",
)

# %% [markdown]
# ## Stop and go on
#
# Back to the question. A run is everything on which the next step depends: the weights, the optimizer's memory, the step, and the random generators (`dice` in the code below). We restore one more of them each time, and see how long the resumed run stays the same. A generator's state is a tensor of bytes, and it can be saved like any other tensor.

# %%
PARTS = {  # name: how to get it from a run, and how to put it back
    "model": (lambda run: run.model.state_dict(), lambda run, it: run.model.load_state_dict(it)),
    "optimizer": (lambda run: run.optimizer.state_dict(),
                  lambda run, it: run.optimizer.load_state_dict(it)),
    "step": (lambda run: run.step, lambda run, it: setattr(run, "step", it)),
    "dice": (lambda run: torch.get_rng_state(), lambda run, it: torch.set_rng_state(it)),
}

run = new_run()
train(run, 80)
torch.save({name: take(run) for name, (take, _) in PARTS.items()}, FOLDER / "whole.pt")


def resume(*names):
    """Make a new run, and restore these parts from the file."""
    run, saved = new_run(), torch.load(FOLDER / "whole.pt")
    for name in names:
        PARTS[name][1](run, saved[name])
    return run

# %% [markdown]
# **Predict.** We restore model, step and optimizer. Does the loss jump? Is the run the same as the run that never stopped?

# %%
after = {step: loss for step, loss in enumerate(whole, 1) if step > 80}
runs = {"never stopped": after}
saved_parts = {"model, step": ["model", "step"]}
saved_parts["optimizer, too"] = [*saved_parts["model, step"], "optimizer"]
saved_parts["dice, too"] = [*saved_parts["optimizer, too"], "dice"]
for name, parts in saved_parts.items():
    runs[name] = dict(enumerate(train(resume(*parts), 80), 81))
    wrong = [step for step in after if runs[name][step] != after[step]]
    print(f"{name:15} first difference:", f"step {wrong[0]}" if wrong else "none in 80 steps")

# %%
# the first 30 steps after the file
begin = {
    name: {step: loss for step, loss in runs[name].items() if step <= 110}
    for name in ("never stopped", "optimizer, too")
}
loss_curves(begin, step=100)

# %% [markdown]
# With the optimizer there is no jump, and this is where most people stop. But from step 81 on it is another run: it gets its very first batches once more, and dropout drops other channels. (nanoGPT does just that.) With the generator's state restored, too, the run is the same in every bit, as the last printed line says.
#
# Is it worth the trouble? A resumed run that is *the same to the last bit* can be tested with `==`. If a run is only "nearly the same", you can't know whether it lost something. (That holds for one machine and one number of threads: another machine may add in another order.)
#
# What else has a state? A scheduler, a `GradScaler`, Python's and NumPy's random generators if you use them, and on a GPU `torch.cuda.get_rng_state_all()`. The running means of BatchNorm are buffers, so they are in the model. And there are four traps.
#
# **One: a `state_dict` is not a copy.** **Predict.** A colleague keeps the best model so far in a variable. What does it contain at the end?

# %%
best = run.model.state_dict()
noted = best["lm_head.bias"].sum().item()
train(run, 5)
print(f"when kept {noted:.4f}, five steps later {best['lm_head.bias'].sum().item():.4f}")

# %% [markdown]
# It contains the last model, under the name `best`. The dict is new, but the tensors are the model's own, as in our list of weights. The same is true of the optimizer's `state_dict`. `torch.save` is safe, because it writes the bytes at once. In memory, use `copy.deepcopy`.
#
# **Two: the file decides.** **Predict.** A run used lr 0.02. You resume it, and make the optimizer with lr 0.001, because the loss no longer falls. Which rate is used?

# %%
p = nn.Parameter(torch.zeros(2))
old, new = torch.optim.AdamW([p], lr=0.02), torch.optim.AdamW([p], lr=0.001)
new.load_state_dict(old.state_dict())
print("lr:", new.param_groups[0]["lr"])

# %% [markdown]
# The state also restores the groups: lr, betas, decay. And m and v are found by *number*, not by name: by a parameter's place in the list. If the modules are now registered in another order, and the shapes happen to fit, parameters get the memory of other parameters, without an error.
#
# **Three: what `torch.load` reads.** Since torch 2.6 it opens files with `weights_only=True`, which allows tensors, and plain values such as numbers, strings, lists and dicts. A pickle could run any code when it is opened. **Predict.** Which of these values can be read back?

# %%
def reads_back(thing):
    torch.save({"thing": thing}, FOLDER / "thing.pt")
    return f"reads back a {type(torch.load(FOLDER / 'thing.pt')['thing']).__name__}"


for thing in (torch.get_rng_state(), 0.5, SMALL, np.float64(0.5), Path("runs")):
    print(f"{type(thing).__name__:14}", end=" ")
    attempt(reads_back, thing)

# %% [markdown]
# Save a configuration as a dict (`dataclasses.asdict`), and a NumPy number as `float(...)`. The error comes only when the file is *opened*, perhaps weeks after it was written. So a test of a checkpoint must read it.
#
# **Four: a process can die while it writes.** Then the old file is gone, and only half of the new one is there. So write to a second file beside the first. Then replace the first file with it by `os.replace`, which happens completely or not at all.
#
# One more thing remains: a stop in the middle of an epoch. **Predict.** A loader goes through 12 items in shuffled batches of 3. It is stopped after two batches of its second epoch. The generator's state is saved at that moment, and later restored. What does the loader give next?

# %%
def loader_of(seed=0):
    dice = torch.Generator().manual_seed(seed)
    return DataLoader(range(12), batch_size=3, shuffle=True, generator=dice), dice


loader, dice = loader_of()
list(loader)  # epoch 1
at_start = dice.get_state()
epoch = iter(loader)
used = [next(epoch).tolist() for _ in range(2)]
stopped = dice.get_state()
rest = [batch.tolist() for batch in epoch]
print("epoch 2:               ", used, "| stop |", rest)
print("epoch 3:               ", [batch.tolist() for batch in loader])

loader, dice = loader_of(seed=1)
dice.set_state(stopped)
print("state of the stop gives", [batch.tolist() for batch in loader])

# %% [markdown]
# It gives an epoch that the first run never had: not the rest of epoch 2, and not epoch 3. The whole permutation is made when an epoch begins, and between two batches the generator is not used. So the generator's state doesn't say how far the epoch has come, and the rest of the epoch is lost. (At the end of an epoch the sampler uses the generator once more, so it isn't epoch 3, either.) No loss curve shows any of this.
#
# So save the state from the *beginning* of the epoch, and the number of batches that were used. After the restart, the same permutation is made again. Then skip that number of batches.

# %%
loader, dice = loader_of(seed=1)
dice.set_state(at_start)
epoch = iter(loader)
for _ in range(2):
    next(epoch)
print("goes on with:", [batch.tolist() for batch in epoch], " as it was:", rest)
print("epoch 3:     ", [batch.tolist() for batch in loader])

# %% [markdown]
# The skipped batches may also use *other* random generators, such as torch's global one. So restore torch's global state last, when the loader has reached its old position.

# %% tags=["hide-input"]
number(
    "A loader has 50,000 items in batches of 64, without `drop_last`. A run is stopped after 2,000 steps. How many batches of the current epoch must be skipped when it goes on?", 436,
    unit="batches",
    why="An epoch has 782 batches. 2,000 = 2 · 782 + 436.",
    wrong={438: "With `drop_last` an epoch would have 781 batches.", 2000: "Two epochs are over. Only the position in the third epoch matters."},
)

# %% tags=["hide-input"]
true_false(
    "If the model has no dropout and the loader has its own generator, the global random state need not be saved.", True,
    "Then nothing uses the global generator. But its state has only 5,056 bytes. And if somebody adds dropout or an augmentation one day, nobody will think of the checkpoint.",
)

# %% [markdown]
# ### One thing left out
#
# `Run` of `utils/drivers/killing.py` puts everything into one run: a model with dropout, momentum, a schedule, a scaler, and a loader that shuffles. Each item that is read gets other noise from the global generator. `run.step` does a whole step in float16. After two epochs and three batches the state is written down (a deep copy stands for the file), and the run goes on.

# %%
from utils.drivers.killing import Run

points = torch.randn(48, 2, generator=torch.Generator().manual_seed(0))
labels = (points[:, 0] > 0).long() + (points[:, 1] > 0).long()  # three classes


def new_process(seed):
    return Run(points, labels, seed=seed, batch_size=8)  # an epoch has 6 batches


def epochs_of(run, count):
    """The losses of the steps of some epochs."""
    return [run.step(x, y)["loss"] for _ in range(count) for x, y in run.loader]

# %%
STATES = "model", "optimizer", "schedule", "scaler"

first = new_process(seed=0)
losses = epochs_of(first, 2)
written = {"order": first.loader.generator.get_state(), "place": 3}
batches = iter(first.loader)
losses += [first.step(*next(batches))["loss"] for _ in range(3)]
written |= {name: copy.deepcopy(getattr(first, name).state_dict()) for name in STATES}
written["dice"] = torch.get_rng_state()
losses += [first.step(x, y)["loss"] for x, y in batches] + epochs_of(first, 2)

# %%
def gone_on(without):
    """The losses of a new process that reads all that was written, except for one thing."""
    run = new_process(seed=1)
    for name in STATES:
        if name != without:
            getattr(run, name).load_state_dict(copy.deepcopy(written[name]))
    if without != "order":
        run.loader.generator.set_state(written["order"])
    left = iter(run.loader)
    for _ in range(0 if without == "place" else written["place"]):
        next(left)
    if without != "dice":
        torch.set_rng_state(written["dice"])
    return [run.step(x, y)["loss"] for x, y in left] + epochs_of(run, 2)

# %% [markdown]
# **Predict.** Each of seven things is left out once. Which of the curves split off in the first step, and which later? With which would you notice anything in the loss?

# %%
runs = {"never stopped": dict(enumerate(losses, 1))}
for without in ("nothing", *STATES, "order", "place", "dice"):
    runs[without] = dict(zip(range(16, 31), gone_on(without)))
    wrong = [step for step, loss in runs[without].items() if loss != losses[step - 1]]
    said = f"step {wrong[0]}" if wrong else "none in 15 steps"
    print(f"without {without:10} first difference:", said)
shown = {f"without {name}": runs[name] for name in ("scaler", "dice")}
loss_curves({"never stopped": runs["never stopped"], **shown}, step=18)

# %% [markdown]
# With everything, the run is the same in every bit. The weights, the order, the place and the random generator change the very first loss. The optimizer's memory changes the update that follows, so the second loss shows it. The optimizer's state also has the next rate. So a schedule that counts from 0 again shows one step later. The scaler shows last: only a step that one of the runs leaves out makes a difference.
#
# Nobody would find a mistake in the curves of the figure, but `==` finds it in a few steps. Write such a test for your own runs, and make it long enough: five steps would pass without the scaler.

# %% tags=["hide-input"]
choice(
    "A resumed run has the right first and second loss, bit for bit. From the third step on its losses differ. What was left out?",
    {
        "The weights": "Then the first loss would differ.",
        "The loader's generator": "Then the first batch would differ.",
        "The optimizer's memory": "The first step uses the memory, so the second loss would differ.",
        "The schedule": "The optimizer's state has the first rate. The schedule computes the second one, and the third loss shows it.",
    },
    answer="The schedule",
)

# %% [markdown]
# ### A batch goes to its device
#
# A loader makes its batches in the CPU's memory. If the model is on a GPU, each batch must be moved before its step, x *and* targets. torch's meta device shows this without a GPU: its tensors have a device, but no data.

# %%
x, y = torch.randn(8, 2), torch.zeros(8, dtype=torch.long)
there = torch.device("meta")
away = nn.Linear(2, 3).to(there)
x.to(there)
attempt(lambda: away(x).device)
attempt(lambda: F.cross_entropy(away(x.to(there)), y).device)
attempt(lambda: F.cross_entropy(away(x.to(there)), y.to(there)).device)
print("already there, so the same tensor:", x.to("cpu") is x)

# %% [markdown]
# `x.to(there)` alone does nothing for `x`: unlike a module's `to`, it returns a new tensor. And targets that are left behind fail only in the loss. A `to` of a tensor that is already there costs nothing, but a second `to` of the original copies it again.

# %% [markdown]
# ## MiniGPT from nothing
#
# Now we train the full MiniGPT, with 179,544 parameters, on 6,000 lines of the corpus. What loss should it reach? A number means little unless you can compare it with another number. So there are 1,000 sentences that are in no training line, and two older models to compare with. They count how often a word follows the last two words (a trigram) or the last four words (a 5-gram). They were fitted to the *whole* corpus, which is eight times as large. There is a floor, too: even perfect knowledge of the grammar can't say which object comes.

# %%
from utils.minigpt import baselines, evaluation_lines, generate

for split, found in baselines().items():
    for name in ("trigram", "fivegram", "grammar"):
        print(
            f"{split:21} {name:8} perplexity {found[name]:.2f}   loss {math.log(found[name]):.3f}"
        )

# %% [markdown]
# *Perplexity* is e to the power of the loss: the model is as unsure as if it chose between that many words. *Held out* means: verbs in tenses and persons that no training line shows together with the verb's name. For these, counting is not enough.
#
# **Predict.** How long does MiniGPT need on one core to beat both models? Seconds, minutes or hours?

# %%
from utils.minigpt.dataset import batches  # endless, shuffled; lines of similar length together

unseen = {
    split: [tensor[:, :17] for tensor in evaluation_lines(held_out="held out" in split)]
    for split in baselines()
}


@torch.no_grad()
def validate(model, split):
    model.eval()
    loss = loss_of(model, *unseen[split]).item()
    model.train()
    return loss


# %%
torch.manual_seed(0)
gpt = MiniGPT().train()
optimizer = torch.optim.AdamW(gpt.parameters(), lr=3e-3, betas=(0.9, 0.99))
stream = batches(*training_lines(), 64, torch.Generator().manual_seed(0))


def one_step(step):
    """The five lines, with warm-up and clipping: the loss, the batch, and the seconds of CPU."""
    began = time.process_time()
    optimizer.param_groups[0]["lr"] = 3e-3 * min(1, step / 20)
    x, y = next(stream)
    loss = loss_of(gpt, x, y)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(gpt.parameters(), 1.0)
    optimizer.step()
    return loss.item(), x, time.process_time() - began


# %%
from utils.notebook.progress_bar import progress_bar

history, checks, says = [], {split: {} for split in unseen}, {}
for step in progress_bar(range(1, 301), "training"):
    history.append(one_step(step))
    if step % 25 == 0:
        for split, found in checks.items():
            found[step] = validate(gpt, split)
    if step in (50, 100, 200, 300):
        says[step] = generate("yo", verb="hablar", tense="past", model=gpt)
print(f"{sum(seconds for *_, seconds in history):.0f} s of CPU")

# %%
for split, found in checks.items():
    print(f"{split:21} perplexity {math.exp(found[300]):.2f}", end="")
    for name in ("trigram", "fivegram"):
        level = baselines()[split][name]
        first = next(step for step, loss in found.items() if math.exp(loss) < level)
        print(f"; below the {name} ({level:.2f}) at step {first}", end="")
    print()

# %%
levels = baselines()["combinations seen"]
loss_curves(
    {**checks, "training, by batch": [loss for loss, *_ in history]},
    levels={"trigram": math.log(levels["trigram"]), "5-gram": math.log(levels["fivegram"])},
    step=300,
)

# %% [markdown]
# It is below both in seconds, with an eighth of their data. On held-out combinations it is far better. A 5-gram has never seen the words together and must guess, but the network has found out that a stem and a tense can be combined.
#
# The training loss has spikes that the other curves don't have. **Predict.** Is the learning rate too high? Are some batches bad? What would you look at first?

# %%
late = history[100:]
for loss, x, _ in (max(late, key=lambda row: row[0]), min(late, key=lambda row: row[0])):
    print(f"loss {loss:.2f}, {x.shape[1]} tokens wide:", *tokenizer.words(x[0][x[0] != 0])[:16])

# %% [markdown]
# It is the data. Some lines are lists of a verb's forms in random order, which teach their spelling, and nobody can know which form comes next. Such lines are long, and lines of similar length are in one batch, so some batches have only lists. *Look at the batch before you change a hyperparameter.*
#
# And what does the model write?

# %%
for step, sentence in says.items():
    print(f"step {step:3}: yo, hablar, past: {sentence}")
print("shipped, step 6000:        ", generate("yo", verb="hablar", tense="past"))

# %% [markdown] tags=["printed 0.54"]
# (Another machine rounds sums differently, and after 300 steps its sentences differ too.) Not one of these sentences is right. At step 200 the verb is right but the tense is wrong. At step 300 the tense is right, but the verb is another one, and *yo* has the form for *nosotros*. And yet the loss is 0.84, the floor is 0.54, and both baselines are beaten. Most words of a sentence are easy, and the mean over all words hardly shows the one that you care about. A validation that counts right verbs would be worth more than any loss.

# %% [markdown]
# ### A compiled model
#
# `torch.compile` can speed up the loop. From [phase 06](06_compile.ipynb#cell-id=guards-what-a-graph-believes) you know that its graphs have guards on shapes, and our batches have many lengths. **Predict.** How many times does it compile for these eight batches?

# %%
compiled_for = []


def spy(graph, examples):
    """A backend that only counts its calls."""
    compiled_for.append(len(compiled_for))
    return graph.forward


fast = torch.compile(gpt, backend=spy)
for _ in range(8):
    x, y = next(stream)
    before = len(compiled_for)
    loss_of(fast, x, y).backward()
    print(f"{tuple(x.shape)}", "compiled" if len(compiled_for) > before else "")
loss_of(fast, x[:7], y[:7]).backward()
print(f"(7, {x.shape[1]})", f"and a short batch: {len(compiled_for)} compilations in all")

# %% [markdown]
# It compiles once for the first length, and once more for the second, now with the length as a symbol. A short batch at the end of the epoch costs another compilation; with `drop_last` there is none. A real backend takes seconds to a minute for each, so for a training of a few seconds it isn't worth it.
#
# And there is a trap for checkpoints. **Predict.** What are the names in the `state_dict` of a compiled model?

# %%
print(next(iter(fast.state_dict())))
attempt(lambda: MiniGPT().load_state_dict(fast.state_dict()))
gpt.compile(backend=spy)  # in place: the same module, the same names
print(next(iter(gpt.state_dict())))

# %% [markdown]
# `torch.compile(model)` wraps the model, and each name gets a prefix, which an uncompiled model doesn't have. So save the original model, or compile it in place.

# %% [markdown]
# ## The same curve
#
# Train one model three times, from the same weights and with the same batches: in float32, under autocast, and in parts of unequal size. The losses will agree in the first digits, but hardly one will be the same to the last digit. That is no mistake. With a mean of means the losses differ as well, and that is a mistake. **How far apart may two runs be if nothing is wrong?** Without a number for that, you can only look at two curves side by side and call them similar.

# %% [markdown]
# ### Rounding in one loss
#
# bfloat16 has eight binary digits, so the next number above 1 is 1 + 2⁻⁷. A number between two neighbours is rounded to the nearer one, so it changes by at most half of their gap. For numbers just above 1, half of the gap is the *unit roundoff*, u. If a number t is rounded, it becomes t · (1 + δ), where |δ| is at most u.

# %%
UNITS = {
    dtype: torch.finfo(dtype).eps / 2 for dtype in (torch.bfloat16, torch.float16, torch.float32)
}
for dtype, u in UNITS.items():
    print(f"{dtype!s:15} u = 2^{math.log2(u):.0f} = {u:.1e}")

# %% [markdown]
# What does that do to a loss? If t becomes t · (1 + δ), the loss moves by δ · t · ∂L/∂t, to first order, and autograd knows ∂L/∂t. Autocast rounds the inputs and weights of a product, and its result. There are two estimates of all these errors together. If all errors change the loss in the same direction, the loss is off by u times the sum of all |t · ∂L/∂t|. If each error has a random sign, they add up like the steps of a random walk. Then the loss is off by u times the root of the sum of squares.
#
# **Predict.** In our model, with 64 sentences, the inputs and outputs of the linear layers have more than a million numbers. How many u is the first estimate, and how many u is the second? Which of the two is nearer to the measured error?

# %%
def effects(model, x, y):
    """t · ∂L/∂t of each number t in the input, the output and the weight of a linear layer."""
    found = set()

    def note(layer, read, gave):
        for t in (*read, gave, layer.weight):
            t.retain_grad()
            found.add(t)

    hooks = [m.register_forward_hook(note) for m in model.modules() if isinstance(m, nn.Linear)]
    model.zero_grad()
    loss_of(model, x, y).backward()
    for hook in hooks:
        hook.remove()
    return torch.cat([(t * t.grad).detach().flatten() for t in found])


# %%
read, asked = inputs[:64], targets[:64]
model = run.model.eval()  # of *Stop and go on*, dropout off
each = effects(model, read, asked)
print(
    f"{len(each):,} numbers; if all conspire {each.abs().sum():.1f} u, a walk {each.norm():.2f} u"
)
exact = loss_of(model, read, asked).item()
for dtype in (torch.bfloat16, torch.float16):
    with torch.autocast("cpu", dtype=dtype):
        off = abs(loss_of(model, read, asked).item() - exact)
    print(f"{dtype!s:15} loss off by {off:.1e}, {off / UNITS[dtype]:.2f} u")

# %% [markdown]
# The measured error is near the random walk or below it. So rounding in one pass changes the loss by less than u. That is true whether the loss itself is 6 or 0.1, because a loss is a mean of *logarithms*. If a probability is off by a factor of 1 + u, its logarithm is off by u.

# %% [markdown]
# ### A band for a whole run
#
# Now we derive a band: how far the loss of each step may be off. It is the sum of three parts.
#
# *The rounding in this step itself*: one u. *The sum of the loss itself*, which is added up in float32, over 600 words and some 500 places. About twenty additions follow one another in it, and twenty in the sum of the other run. So the loss is off by 40 · 2⁻²⁴ of itself. With some room, we take 2⁻¹⁸.
#
# *The errors of earlier steps*, which are in the weights. For a gradient, seven products in a row run forward, and seven run backward. Each product rounds its inputs and its result. These are some forty roundings of 0.4 u on average. As a random walk they add up to √40 · 0.4 u, which is 2.6 u, so we say that a gradient is off by 3 u of its length. (*Sixteen bits* has measured one to two u.) With a momentum of 0.9 each gradient counts 1 + 0.9 + 0.81 + … = 10 times. Now multiply rate and norm in each step, and add up these products. After some steps the weights of two runs differ by at most 10 · 3 u times this sum. The losses then differ by at most that distance times the norm of the present gradient.
#
# The three parts together are the band. It needs only numbers that any run should log: losses, norms and rates.

# %%
import inspect

from utils.drivers.training import band, steps_of_lines

print(inspect.getsource(band))

# %% [markdown]
# The band leaves one thing out. If the weights of two runs differ, their gradients differ, too, and that changes the difference of the weights again. *How large a step may be* has shown what happens to a distance in a direction with the curvature λ: each step multiplies it by 1 − lr · λ. So it shrinks as long as the rate is below the limit 2 / λ. Nobody can compute this effect for a whole network, so we compare the band with measurements.
#
# The runs make the steps of *Sixteen bits*, many times and with momentum. Each of two more runs has a mistake that many loops have: a mean of the parts' means, or a loss from logits in 16 bits, as autocast returns them.

# %%
def step_of(model, optimizer, scaler, parts, dtype, mistake):
    """One step: its loss, and the norm of its gradient before clipping."""
    counts = [(wanted != -100).sum().item() for _, wanted in parts]
    optimizer.zero_grad()
    losses = []
    for (read, wanted), count in zip(parts, counts):
        share = 1 / len(parts) if mistake == "mean of means" else count / sum(counts)
        with torch.autocast("cpu", dtype=dtype, enabled=dtype is not torch.float32):
            logits = model(read).flatten(0, 1)
        logits = logits if mistake == "loss in 16 bits" else logits.float()
        losses.append(share * F.cross_entropy(logits, wanted))
        scaler.scale(losses[-1]).backward()
    scaler.unscale_(optimizer)
    norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    return sum(loss.item() for loss in losses), norm.item()


# %%
def run_of(dtype=torch.float32, cuts=(64,), mistake=None, lr=0.05, steps=40):
    """Losses, norms and rates of a new MiniGPT. `cuts`: how many sentences each part has."""
    torch.manual_seed(0)
    model, scaler = MiniGPT(SMALL), torch.amp.GradScaler("cpu", enabled=dtype is torch.float16)
    optimizer = torch.optim.SGD(model.parameters(), lr, momentum=0.9)
    log = {"losses": [], "norms": [], "rates": [lr] * steps}
    for parts in steps_of_lines(inputs, targets, steps, cuts, seed=0):
        loss, norm = step_of(model, optimizer, scaler, parts, dtype, mistake)
        log["losses"].append(loss)
        log["norms"].append(norm)
    return log


RAGGED = (40, 16, 8)  # short sentences first, so the targets of a part are very unequal
runs = {"float32": run_of(), "in parts": run_of(cuts=RAGGED)}
runs |= {"bfloat16": run_of(torch.bfloat16), "float16": run_of(torch.float16)}

# %% [markdown]
# **Predict.** In how many digits do the losses agree? The picture shows the distances from float32. How many powers of ten are between the three other runs?

# %%
losses = {name: log["losses"] for name, log in runs.items()}
for name, curve in losses.items():
    print(f"{name:8} steps 1, 10, 20, 40:", *(f"{curve[step - 1]:.7f}" for step in (1, 10, 20, 40)))

# %%
bands = {
    name: band(runs["float32"], UNITS[dtype], max_norm=1.0, momentum=0.9)
    for name, dtype in (
        ("in parts", torch.float32),
        ("bfloat16", torch.bfloat16),
        ("float16", torch.float16),
    )
}
loss_curves(losses, bands=bands, step=20)

# %% [markdown]
# The dashed lines are the edges of the bands. Where a curve has a gap, the loss is the same to the last bit. All runs stay inside, and the runs in 16 bits stay far inside. The band allows for errors that all have the direction of the gradient, but in fact their directions are random.
#
# The band for the parts is narrower by the quotient of the two u, 2¹⁶. So if you want to prove that an accumulation is right, compare in *float32*. Under bfloat16 you see only a mistake that is ten thousand times as large.

# %% [markdown]
# ### What a band finds
#
# **Predict.** Can you see the two mistakes in the losses? And at which step do the two runs leave their bands?

# %%
wrong = {
    "mean of means": (run_of(cuts=RAGGED, mistake="mean of means"), bands["in parts"]),
    "loss in 16 bits": (run_of(torch.bfloat16, mistake="loss in 16 bits"), bands["bfloat16"]),
}
for name, (log, band_of) in wrong.items():
    for step in (1, 20, 40):
        loss, right = log["losses"][step - 1], losses["float32"][step - 1]
        apart, width = abs(loss - right), band_of[step - 1]
        print(
            f"{name:15} step {step:2}: {loss:.3f}, right {right:.3f}; apart {apart:.0e}, allowed "
            f"{width:.0e}"
        )

# %% [markdown]
# The losses fall as they should, and one run with a mistake even ends *lower* than the right run. Yet both are outside their bands at the very first step, when all weights are still the same. The mean of means is off by more than a hundred times the width, because it is a different number. The loss in 16 bits is off by thirty times the width. (Later the second run comes back inside. So look at the first steps, where a band is narrow.)
#
# Rounding the loss would explain an error of a sixty-fourth, because neighbours in bfloat16 are a thirty-second apart between 4 and 8. The error is larger, because the losses of all places are also *added up* in bfloat16. In the worst case such a sum stops growing: at 2,048 neighbours are 16 apart, so adding a loss of 6.4 changes nothing.
#
# And what are the limits of the band itself? **Predict.** Take a rate that is ten times as large, in float32, with whole batches and with the same batches in parts, and without a mistake. The larger rate makes the band about ten times as wide. Does the run in parts stay inside?

# %%
fast = {
    name: run_of(cuts=cuts, lr=0.5, steps=60)
    for name, cuts in (("whole", (64,)), ("in parts", RAGGED))
}
edge = {"in parts": band(fast["whole"], UNITS[torch.float32], max_norm=1.0, momentum=0.9)}
loss_curves({name: log["losses"] for name, log in fast.items()}, bands=edge, step=30)

# %% [markdown]
# It does for half of the run. Then the distance grows tenfold every few steps, which is a straight line on this scale, until it is as large as the noise of the losses. The reason is the factor |1 − lr · λ|, which is now above 1. At this rate the run is at its limit, and there every difference, even one of 10⁻⁷, grows. Nothing is wrong with either run. So a proof by curves has conditions: the same first weights and batches, a rate well below the limit, and only a few dozen steps. For longer runs, compare the results at the end, with several runs of each kind.

# %% tags=["hide-input"]
number(
    "A number in float8 e4m3 has one binary digit before the point and three after it. What is its unit roundoff?", 0.0625,
    why="The next number above 1 is 1 + 2⁻³, and half of the gap is 2⁻⁴. Each number may be off by six per cent, so products in float8 need scales for their inputs.",
    wrong={0.125: "That is the gap. The nearer neighbour is at most half of the gap away."},
    tolerance=0.0001,
)

# %% tags=["hide-input"]
choice(
    "Under bfloat16, the first loss of your loop in parts differs by 0.002 from the first loss with whole batches. Is the accumulation right?",
    {
        "Yes, 0.002 is in the band": "0.002 is in the band of bfloat16, which is 0.004 wide. But a mean of means would be inside, too, if the parts are nearly equal.",
        "No, a mean must not depend on how it is cut": "In every dtype it depends on that a little, because of the order of the sums. And 16-bit products of other shapes may round differently.",
        "You can't know from this; in float32 you can": "In float32 the band is some 0.00002 wide, so a mistake in the weights of the parts is outside.",
    },
    answer="You can't know from this; in float32 you can",
)

# %% [markdown]
# ## Time on a napkin
#
# How long will a training take? Two numbers are enough. For each token, each weight of a linear layer takes part in one multiplication and one addition: 2 FLOPs. The backward computes two such products, one for the gradient of the input and one for the gradient of the weight ([phase 02](02_autograd.ipynb#cell-id=a-layer-only-has-to-know-one-product)). So each weight costs 6 FLOPs for each token: **6 · N · tokens**, where N is the number of weights that are multiplied. Embeddings are only looked up, so they cost no FLOPs.
#
# **Predict.** By how much is that wrong for MiniGPT? We count with [phase 04](04_dispatcher.ipynb#cell-id=counting-to-the-last-operator)'s FLOP counter.

# %%
from torch.utils.flop_counter import FlopCounterMode


def matrices(model):
    """How many weights are multiplied."""
    return sum(
        p.numel()
        for name, p in model.named_parameters()
        if p.dim() == 2 and "embedding" not in name
    )


plain = MiniGPT()
multiplied = matrices(plain)
x, y = inputs[:64], targets[:64]
with FlopCounterMode(display=False) as counter:
    loss_of(plain, x, y).backward()
print(f"N = {multiplied:,} of {sum(p.numel() for p in plain.parameters()):,}")
napkin, counted = 6 * multiplied * x.numel(), counter.get_total_flops()
print(f"napkin {napkin:,}   counted {counted:,}, {counted / napkin:.3f} times as much")

# %% [markdown]
# The formula leaves out attention's own two products, which have no weights. They grow with the length, and at 16 words they cost almost nothing.
#
# Now divide by the FLOPs that this machine can do in a second. As its peak, take the rate of a large product of matrices. The achieved rate divided by the peak is called **MFU**, *model FLOPs utilization*.

# %%
a = torch.randn(1024, 1024)
a @ a
began = time.process_time()
for _ in range(4):
    a @ a
peak = 4 * 2 * 1024**3 / (time.process_time() - began)
words = sum(x.numel() for _, x, _ in history)
seconds = sum(seconds for *_, seconds in history)
achieved = 6 * multiplied * words / seconds
print(f"{words:,} tokens in {seconds:.1f} s: {achieved / 1e9:.1f} GFLOP/s")
print(f"peak {peak / 1e9:.0f} GFLOP/s, so an MFU of {achieved / peak:.0%}")
print(f"the shipped model's 6,000 steps at this pace: {seconds * 20 / 60:.0f} minutes")

# %% [markdown]
# The matrices are small, and a large part of the time is not for products but for softmax, norms, the optimizer and Python. (This peak was *measured*. Usually people divide by the peak of a data sheet, which no product reaches. By that measure, large models on large GPUs reach 40 to 50 %.)
#
# Now look again at the record of *Sixteen bits*. **Predict.** What is the MFU of this MiniGPT on an H100? And what is the MFU of the large GPT? In float32 its step took 140 ms. Divide its FLOPs by the rate of products alone, treat the rest of the time as fixed, and compute the three other rows.

# %%
steps = gpu.result("steps")
there = 6 * multiplied * math.prod(steps["batch"]) / steps["ways"]["eager"]["done"]
print(
    f"MiniGPT on {steps['batch']} words: {there / 1e9:.0f} GFLOP/s, an MFU of "
    f"{there / rates['float32']:.2%}\n"
)
with torch.device("meta"):
    large = MiniGPT(MiniGPTConfig(**trained["config"]))
flops = 6 * matrices(large) * math.prod(trained["batch"])
rest = trained["ways"]["float32"]["seconds"] - flops / rates["float32"]
for name, way in trained["ways"].items():
    product = flops / rates[name.removesuffix(" with a scaler")]
    napkin, came = 1e3 * (product + rest), way["seconds"]
    print(f"{name:22} napkin {1e3 * product:5.1f} + {1e3 * rest:.1f} = {napkin:5.1f} ms;",
          f"measured {1e3 * came:5.1f} ms, an MFU of {product / came:.0%}")

# %% [markdown]
# MiniGPT does far worse there, because two hundred launches wait for each other; [phase 09](09_profiling.ipynb#cell-id=fewer-larger-later) shows where the time goes. But for the large model, two figures and a simple formula give the milliseconds to about a tenth. So if products are sixteen times as fast, the step is only three times as fast. And the MFU *falls*, because the peak has risen but the rest of the time has not shrunk. To raise the MFU again, shorten the rest: fuse it ([phase 06](06_compile.ipynb#cell-id=fusion-and-the-code)), keep no table, use wider layers.
#
# Now use the same formula for GPT-2, with 124 million parameters and 300 billion tokens. nanoGPT's script has about these settings. By its data sheet, one H100 does 989 TFLOP/s in bfloat16. (The sheet prints twice as much, 1,979, "with sparsity".) Let us say that we reach 40 % of it.

# %%
flops = 6 * 124e6 * 300e9
days = flops / (0.4 * 989e12) / 86400
print(f"{flops:.2g} FLOPs, {days:.1f} days on one H100, {days / 8 * 24:.0f} hours on eight")
print(f"on this core, at the pace of MiniGPT: {flops / achieved / 86400 / 365:,.0f} years")

# %% tags=["hide-input"]
number(
    "A model with 7 billion parameters is trained on 10¹² tokens, with 1,000 GPUs that each achieve 4·10¹⁴ FLOP/s. How many hours does it take?", 29.2,
    unit="hours", tolerance=0.5,
    why="6 · 7·10⁹ · 10¹² are 4.2·10²² FLOPs. At 4·10¹⁷ FLOPs a second, that takes 105,000 s.",
    wrong={9.7: "That is the forward pass alone, 2 · N · tokens.", 105000: "That is the number of seconds."},
)

# %% [markdown]
# ## Reading nanoGPT's train.py
#
# You now know every part of Andrej Karpathy's nanoGPT, the best-known small training script there is. (Its page now recommends [nanochat](https://github.com/karpathy/nanochat), which has the same parts in more files. But nanoGPT is still the best script to read from top to bottom.) Open [`train.py`](https://github.com/karpathy/nanoGPT/blob/93a43d9a5c22450bbf06e78da2cb6eeef084b717/train.py) in its repository ([github.com/karpathy/nanoGPT](https://github.com/karpathy/nanoGPT); the line numbers are from the version of December 2024) and read it beside this list.
#
# | lines | what happens | what you know of it |
# |---|---|---|
# | 32–78 | Every setting is a global variable, and `configurator.py` overwrites those that the command line names. A dict, `config`, keeps all settings. | `gradient_accumulation_steps` is 40, `batch_size` 12 and `block_size` 1,024: half a million tokens in a step. |
# | 82–101 | If `torchrun` has started the process, its device is its own GPU, whatever the settings say. The parts are divided among the processes, and each has its own seed. `master_process` is true in the first process. | So the batch has the same size on one GPU and on eight, and no two processes use the same data. |
# | 106–112 | A seed is set, and TF32 is allowed. If the device's name has `cuda` in it, `ctx` is autocast with `dtype`. On other devices it does nothing. | *Sixteen bits*: on a CPU the script doesn't use them. |
# | 116–131 | `get_batch` takes `batch_size` random places in one long file of tokens, and `block_size` tokens from each. The targets are one place further. | There is no Dataset, no DataLoader and no epoch. So a run can't stop in the middle of one. |
# | 134–193 | `best_val_loss` begins at 10⁹. The model is new, or comes from a checkpoint, or gets GPT-2's weights. From a checkpoint come six settings (`n_layer`, `n_head`, `n_embd`, `block_size`, `bias`, `vocab_size`), the step, and the best validation loss. A prefix is removed from its names. If the command line has a smaller `block_size`, the position embedding is cut to it. | You have seen where the prefix comes from. |
# | 196–202 | A scaler is made, which is enabled only for float16. An optimizer is made with the settings, and then a checkpoint's state is loaded into it. | Line 196 calls `torch.cuda.amp.GradScaler`, which warns today. If the scaler is not enabled, its methods change nothing. So the loop below is the same for every dtype. |
# | 205–212 | The model is compiled, and then wrapped for several processes. | See phases 06 and 10. |
# | 215–228 | `estimate_loss` computes the mean loss of `eval_iters` batches of each of the two splits, in eval mode and without gradients. It gets them from `get_batch`. | All batches have the same size, so the mean of means is right. |
# | 231–242 | `get_lr` is `learning_rate` · (k + 1) / (`warmup_iters` + 1) in step k of the warm-up. From step `warmup_iters` it falls along half a cosine from `learning_rate` to `min_lr`, which it reaches in step `lr_decay_iters`. There it stays. | The rate of its first step isn't 0 (it was, until somebody noticed). |
# | 250–288 | The first batch is fetched. Then the loop begins: it sets the rate, by `get_lr` if `decay_lr` is true. If the step is a multiple of `eval_interval`, the first process evaluates. If the validation loss is below `best_val_loss`, or if `always_save_checkpoint` is true, it becomes `best_val_loss`, and a checkpoint is written, except at step 0. At step 0, `eval_only` ends the run here. | This comes *before* the step. So the file's step k is the next step to make. |
# | 292–305 | Each part runs forward under `ctx`, its loss is divided by the number of the process's parts, and it runs backward through the scaler. Between forward and backward, while the GPU computes, the next batch is fetched. Gradients are exchanged only in the last part's backward. | Here it is right to divide by the number of parts, because each place of each sequence has a target. |
# | 307–314 | Unscale and clip, unless `grad_clip` is 0. Then step, update, and clear the gradients. | As in *Everything in one step*, but gradients are cleared at the end. |
# | 317–333 | If the step is a multiple of `log_interval`, the first process prints time, loss, and a running mean of the MFU without the first five steps. For the loss it takes the variable `loss`, as the parts have left it, and multiplies it by the number of parts. Then the step goes up by 1, and if it is above `max_iters`, the run ends. | Reading the loss makes the program wait for the GPU. So there is an interval for it, which is set to 1. |
#
# **Predict.** The checkpoint has six entries: model, optimizer, the model's sizes, the step, the best validation loss, and `config`. What else is needed to resume exactly? And what does a resumed run do in its first steps?

# %% tags=["hide-input"]
choice(
    "nanoGPT is stopped at step 10,000 and resumed. Which batches does it get?",
    {
        "those that would have come next": "For that, the file would have to contain the generator's state.",
        "those of its very first steps, once more": "Every start sets the same seed at the top, as `new_run` does in this lesson. With 300 billion random tokens, it does no harm to use a few of them twice. But on a small corpus, a run that is resumed every hour would always train on the batches of the first hour.",
        "others, at random": "That would be right if nobody set a seed. The same line that makes a run reproducible makes a resumed run repeat its batches.",
    },
    answer="those of its very first steps, once more",
)

# %% [markdown]
# The states of the random generators are missing, and for float16 the scaler's state. That is a choice, not a mistake: the script stays short. Now you can say what this choice costs.

# %% [markdown]
# ## What you can now do
#
# [The lab](../release/07_training/07_training.ipynb) of this phase asks you to do it:
#
# - write a `Dataset` of tokenized text, the collate function that pads its items, and a loader around it;
# - find the mistakes in a loop that raises no error;
# - write SGD and AdamW so that they agree with `torch.optim`;
# - schedule the rate, clip gradients, accumulate parts of any size, and write a `GradScaler`;
# - stop anywhere and go on, the same in every bit;
# - write the whole loop, and prove by its curves that 16 bits and parts change only the rounding;
# - measure what 16 bits and parts save on your machine, in time and in bytes;
# - say what a real training script will do with settings that you have not seen;
# - train a MiniGPT from nothing until it beats the trigram and the 5-gram, and read the logs of runs that went wrong.
#
# And you can answer the question. A run is its weights, its optimizer's memory, its step, its random generators and its place in the data (and a scaler, if it has one). If the file lacks anything on which the next step depends, the resumed run is another run.

# %% [markdown]
# ## What this phase leaves out
#
# - **The Hugging Face `Trainer`**, which does all of this behind one call. [Phase 08](08_transformer.ipynb#cell-id=the-trainer-once) shows what that call hides.
# - **Where the time goes** in a step, and how to save it. [Phase 09](09_profiling.ipynb#cell-id=total-and-self) measures this properly.
# - **More than one GPU**: [phase 10](10_distributed.ipynb#cell-id=who-holds-what) shows how gradients are exchanged, and how an optimizer is divided among GPUs.
# - **float8 training**, and optimizers that keep less (Adafactor, 8-bit Adam) or something else (Shampoo, Muon). The loop is the same; only its fifth line changes.
# - **Which hyperparameters**: this phase only makes sure that you compare two learning rates, and not a bug with a learning rate.

# %% [markdown]
# ## Sources
#
# - D. P. Kingma, J. Ba, "[Adam: A Method for Stochastic Optimization](https://arxiv.org/abs/1412.6980)", ICLR 2015; I. Loshchilov, F. Hutter, "[Decoupled Weight Decay Regularization](https://arxiv.org/abs/1711.05101)", ICLR 2019, and, for the cosine, "[SGDR](https://arxiv.org/abs/1608.03983)", ICLR 2017.
# - P. Goyal et al., "[Accurate, Large Minibatch SGD: Training ImageNet in 1 Hour](https://arxiv.org/abs/1706.02677)", 2017: warm-up. R. Pascanu, T. Mikolov, Y. Bengio, "[On the difficulty of training recurrent neural networks](https://arxiv.org/abs/1211.5063)", ICML 2013: clipping by the norm.
# - P. Micikevicius et al., "[Mixed Precision Training](https://arxiv.org/abs/1710.03740)", ICLR 2018: float32 weights, loss scaling.
# - J. Kaplan et al., "[Scaling Laws for Neural Language Models](https://arxiv.org/abs/2001.08361)", 2020: 6·N·tokens. A. Chowdhery et al., "[PaLM](https://arxiv.org/abs/2204.02311)", 2022: MFU.
# - A. Karpathy, [nanoGPT](https://github.com/karpathy/nanoGPT), and "[A Recipe for Training Neural Networks](https://karpathy.github.io/2019/04/25/recipe/)", 2019: overfit one batch first.
# - F. Jelinek, R. L. Mercer, "Interpolated estimation of Markov source parameters from sparse data", 1980: the n-grams.
# - PyTorch's documentation: [`torch.utils.data`](https://docs.pytorch.org/docs/stable/data.html), [`torch.optim`](https://docs.pytorch.org/docs/stable/optim.html), "[Automatic Mixed Precision package](https://docs.pytorch.org/docs/stable/amp.html)", "[Reproducibility](https://docs.pytorch.org/docs/stable/notes/randomness.html)", "[Serialization semantics](https://docs.pytorch.org/docs/stable/notes/serialization.html)".
