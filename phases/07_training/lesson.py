# ---
# jupyter:
#   kernelspec: {display_name: Python 3, language: python, name: python3}
#   open_the_hood: {title: "Training"}
# ---

# %% [markdown]
# # Training
#
# Five lines train a network. All else in a training script is there because the five lines fail quietly: the loss falls, nothing is raised, and the model is worse than it could be, or can't be made again.
#
# It takes about four hours, predictions and drills included, so plan two or three sittings. You need [phase 02](02_autograd.ipynb#cell-id=leaves-and-gradients-that-add-up)'s gradients and phase 03's modules; of phase 06 there is one section, which you can read without it. Where a paragraph begins with **Predict**, settle on an answer before you look below it. Nothing here is graded, and everything here is used in the lab.

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

torch.set_num_threads(1)  # tensors this small gain nothing from a second one
FOLDER = Path(tempfile.mkdtemp())  # for checkpoints

# %% [markdown]
# ## Where we are

# %%
course_path(PHASES, here=7)

# %% [markdown]
# You know what a tensor is, where a gradient comes from, and how a module finds its parameters. Up to now somebody else had trained MiniGPT. In this phase you do.

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
# A run died at step 5,000. There was a checkpoint; it was resumed; and the loss jumped. Ours is a small one and dies at step 80, but all else is the same: a MiniGPT of one layer with dropout, trained on sentences of the corpus.

# %%
SMALL = MiniGPTConfig(d_model=32, n_layers=1, d_ff=128)
inputs, targets = training_lines()
short = (inputs != 0).sum(1) <= 16  # whole sentences, without the long lists of forms
inputs, targets = inputs[short][:, :16], targets[short][:, :16]


class Dropped(MiniGPT):
    """A MiniGPT that forgets a tenth of what its head reads, while it is trained."""

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
    """Train for so many steps more, and return the loss of each."""
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
# One run goes through, 160 steps. The other writes a file after 80, and "dies": everything that it had in memory is made anew, and the file is read.

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
# The first loss after the pause, at step 81, is where it should be: it was computed with the weights of the file, before anything was changed. Then one step of the optimizer, and what the last forty steps had gained is lost; it takes twenty or thirty more to get back to where the run had been.
#
# And something else went wrong, of which the curve shows nothing: the resumed run sees the very batches again that it saw in its first 80 steps.
#
# > **What is a training run made of, so that a file which holds all of it goes on as if nothing had happened?**
#
# Most of what follows is one part of the answer at a time.

# %% [markdown]
# ## The five lines
#
# The smallest run there is: points near y = 2x + 1, and a layer with one weight and one bias. A quarter of the points is kept apart, to be asked at the end.

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
# To look at it, the numbers must leave torch. **Predict.** Does `model(x_unseen).numpy()` work?

# %%
def attempt(action, *arguments):
    """Print what `action` returns, or the first sentence of its refusal."""
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
# `detach` gives the same bytes without the graph, and `numpy` the same bytes under NumPy's name; nothing is copied. The error settles near 0.09 on the points seen, and near 0.1 on the others. The square of 0.3, the noise that we put in, is 0.09: whatever falls below it on the *seen* points is learnt by heart. (Live, move the slider back to where it began: which arrives first, the slope or the intercept?)

# %% [markdown]
# It went well, and not because the loop is right. Here are the same five lines on points that lie ten times as wide, with a learning rate five times as small, to be careful. **Predict.** Six draws of a hundred points each: what is the loss after a hundred steps?

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
# Three arrive, three explode, and nothing is different but the points. What decides?
#
# The loss of a line is a bowl. At a distance d from its bottom, in a direction in which it curves by λ, the gradient is λ · d. So a step multiplies the distance by 1 − lr · λ. That is a shorter way to the bottom while lr · λ is below 2; beyond it each step lands on the other side, farther up. **The learning rate has a limit, 2 / λ**, for the steepest direction that there is. For a mean squared error the curvatures can be computed: they are the eigenvalues of 2 XᵀX / N, where X has a column of x and a column of ones for the bias.

# %%
def limit(x):
    """The learning rate beyond which a line through these x explodes."""
    X = torch.cat([x, torch.ones_like(x)], 1)
    curvatures = torch.linalg.eigvalsh(2 * X.T @ X / len(X))
    return 2 / curvatures.max().item(), curvatures.tolist()


for seed, (x, _) in enumerate(draws):
    most, (flat, steep) = limit(x)
    print(f"draw {seed}: curvatures {flat:.2f} and {steep:.1f}, so lr must stay below {most:.4f}")

# %% [markdown]
# Twice the mean of x² is about 200, and 2 / 200 is 0.01, the rate that was taken: it sat on the edge, and the draw decided on which side. Does the edge lie where the formula says? A sweep: each draw with nine rates, a point where the loss after a hundred steps is lower than that of the first, a cross where it is higher. **Predict.** Where do the crosses begin, in the draw whose limit is 0.0119?

# %%
rates = [round(0.008 + 0.0005 * k, 4) for k in range(9)]
print("          ", *(f"{rate:.4f}" for rate in rates))
for seed, (x, y) in enumerate(draws):
    marks = []
    for rate in rates:
        curve = losses_of(x, y, rate)
        marks.append("×" if curve[-1] > curve[0] else "·")
    print(f"draw {seed}:   ", "     ".join(marks), f"      limit {limit(x)[0]:.4f}")

# %% [markdown]
# In each row between the two rates that have the row's limit between them. A number out of the inputs alone, without a look at y, a weight or a step, says which of 54 trainings will explode.
#
# And below the limit? Here is the first draw at four shares of its own. **Predict.** Which is fastest?

# %%
x, y = draws[0]
shares = (0.1, 0.5, 0.98, 1.02)
loss_curves(
    {f"{share} of the limit": losses_of(x, y, share * limit(x)[0], 12) for share in shares}, step=6
)

# %% [markdown]
# Half of it: there the steep direction is done in a single step. Just below the limit it swings from side to side, and just above it swings away. But a smaller rate is a poor cure. The other curvature is 2, a hundredth: what suits the slope is a crawl for the bias, and at half the limit it takes hundreds of steps. Better to make the bowl round. **Predict.** Take the mean off x, divide by the deviation: what is the limit now, and how many steps does it take?

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
# One step, to the bottom. Now slowly enough to be watched, at a fifth of the limit, and with a quarter of the points kept apart. The line is worked back into the units of the points: on x it has the slope w / deviation. **Predict.** In the picture further up the slope arrived before the intercept. And here?

# %%
learn, keep = slice(75), slice(75, None)
mean, deviation = x[learn].mean(), x[learn].std(correction=0)  # of the points that are learnt from
torch.manual_seed(0)
round_one = nn.Linear(1, 1)
optimizer = torch.optim.SGD(round_one.parameters(), lr=0.2)
lines = []
for _ in range(26):
    slope = (round_one.weight / deviation).item()
    lines.append((slope, round_one.bias.item() - slope * mean.item()))
    loss = F.mse_loss(round_one((x[learn] - mean) / deviation), y[learn])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
fitted_line((x[learn], y[learn]), (x[keep], y[keep]), lines)

# %% [markdown]
# Together. In a round bowl the way to the bottom is straight: each step takes away 0.4 of what is left, of the slope as of the intercept, and the logarithm of the error falls in a line until only the noise is left, whose square is 1 here. The points that were kept apart are shifted and divided by the *learnt* points' mean and deviation. These two numbers belong to the model, as much as its weight, and who loses them has lost the model.
#
# That is one reason why inputs are brought to a common scale, and why deep networks do it again in each block ([phase 03](03_module.ipynb#cell-id=layers-are-shapes)'s LayerNorm). A deep network's bowl changes its shape as you go, and nobody computes its curvatures; but a loss that grows by a steady factor, step after step, is this picture, and the first thing to try is half the rate.

# %% [markdown]
# Back to the small line. We wrote down `model.weight.item()` after each step. **Predict.** What if we had written down `model.weight.detach()`?

# %%
weights = []
for _ in range(3):
    weights.append(model.weight.detach())
    with torch.no_grad():
        model.weight += 1
print("noted:", *(f"{w.item():.2f}" for w in weights))
print("in the weight's own storage:", weights[0].data_ptr() == model.weight.data_ptr())

# %% [markdown]
# Three times the same tensor, and it shows what the weight is *now*. A note must be a number, or a `clone`. Remember this when it comes to checkpoints.
#
# Now the order. The first two lines make the graph and must come first. The other three can be arranged in six ways, and one can be forgotten.
#
# **Predict.** Which of these orders raise an error? Which learn nothing? Which is hardest to find?

# %%
def fit(order, steps=60):
    """The five lines, the last three in the order given: the losses, and the line found."""
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
# None raises an error. `backward zero step` and `zero step backward` learn nothing at all: the optimizer always finds empty hands, and `step` passes over a parameter without a gradient in silence. The loss stands still to the last digit, and that is how you tell it from a learning rate that is too small.
#
# `step zero backward` is the sly one. It steps with the gradient of the *last* batch, at weights that have moved since; the first step does nothing, and the last gradient is never used. Here, where each step has the same 48 points, it learns as well; with a new batch each time it is one step late for ever, and nobody will look.
#
# `backward step` never forgets, as in [phase 02](02_autograd.ipynb#cell-id=leaves-and-gradients-that-add-up): gradients add up, like a momentum without friction. The loss swings, and would swing for ever.
#
# Another mistake of the same family concerns shapes. **Predict.** The model's output is (48, 1). If y were (48,), what would be learnt?

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
# (48, 1) against (48,) is (48, 48), the broadcast of [phase 01](01_tensors.ipynb#cell-id=the-silent-64-64-bug): each prediction is compared with every y. What suits all y best is their mean, and so that is what it learns, whatever x says. A loss that falls and then rests at the variance of the targets is the sign of it. `mse_loss` warns; your own `((a - b) ** 2).mean()` will not.

# %% tags=["hide-input"]
choice(
    "A loss is 6.3984 in each of a hundred steps, to the last digit. The loop is meant to take a new batch each time. What do you suspect first?",
    {
        "The learning rate is too small": "Then the loss would differ from batch to batch, if by nothing else.",
        "The gradient is gone when `step` is called": "That explains why the weights stand still. But weights that stand still have other losses on other batches.",
        "Two things: neither the weights nor the batch change": "One loss for a hundred steps needs both. `next(iter(loader))` inside the loop, with a generator that is seeded there too, gives the first batch for ever; and for the weights see above.",
    },
    answer="Two things: neither the weights nor the batch change",
)

# %% tags=["hide-input"]
true_false(
    "`optimizer = SGD(model.parameters())`, and after it `model.head = nn.Linear(64, 10)`. The new head is trained, since the optimizer asks the model for its parameters at each step.", False,
    "The optimizer got a list of tensors when it was made, and never looks at the model again. The new head has gradients that nobody reads; the old one is still in the list, and idle. The same happens to a parameter that was left out of the list.",
)

# %% [markdown]
# ## Who draws the dice
#
# Data comes in two pieces. A `Dataset` knows how many items there are and can give number k. A `DataLoader` decides which items, in which order, and makes a batch of them. Here is a dataset of our sentences, each cut to its own length.

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
# At each place the model reads a word, and all before it, and is asked for the *next*. Where the target is −100 (a dot) it is asked for nothing: nobody can guess which verb a line is about, and after `<eos>` nothing follows. `cross_entropy` passes over −100, and divides by the number of the others.
#
# **Predict.** What does a loader of two such items give?

# %%
attempt(lambda: next(iter(DataLoader(data, batch_size=2))))
pair = next(iter(DataLoader(data, batch_size=2, collate_fn=list)))
print("what a collate_fn is handed:", [tuple(t.shape for t in item) for item in pair])

# %% [markdown]
# The loader's last act is *collating*: a list of items becomes one batch. The default stacks, and stacks only what has one shape. For texts you write your own, which pads; in the lab you do. With what does one pad? The inputs with anything, for the model is causal and no word sees what comes after it. The targets with −100, and with nothing else.
#
# **Predict.** Somebody pads the targets with 0 too, the id of `<pad>`. Is the loss of a training too high, too low, or as it should be?

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
# It looks much better and is worse. After a full stop comes `<eos>`, after that `<pad>` and `<pad>`: the easiest words of the language, and a third of all that is asked. The loss shown is a mean over them.
#
# How many batches does a loader give? N items, B at a time: ⌈N/B⌉, or ⌊N/B⌋ with `drop_last`, which leaves out the rest that fills no batch.

# %%
for drop_last in (False, True):
    loader = DataLoader(range(10), batch_size=4, drop_last=drop_last)
    print(len(loader), [batch.tolist() for batch in loader])

# %% tags=["hide-input"]
number(
    "50,000 items, batches of 64, `drop_last=False`, 3 epochs. How many optimizer steps?", 2346,
    why="⌈50,000 / 64⌉ = 782 a round, and three rounds. Each epoch has its own short batch at the end.",
    wrong={2343: "That is with `drop_last`: 781 a round.", 2344: "⌈3 · 50,000 / 64⌉ joins the epochs. Each of them ends with a short batch of its own."},
)

# %% [markdown]
# In training the rest is often dropped, since the gradient of three items is mostly noise. In *validation* nothing may be dropped; and the mean of the batches' means is not the mean over all items, if the last is smaller. Sum up, and divide at the end.
#
# Now the dice. A shuffling loader asks a generator for a permutation at the beginning of each epoch. Which generator? If you give none, torch's global one, from which dropout and every `torch.rand` draw as well.
#
# **Predict.** This loader does *not* shuffle. Does going through it change the next random number?

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
# It does. Whenever an iterator is made, the loader draws a seed for its workers, needed or not. So one evaluation more, in the middle of a run, and all dropout masks after it are others. The way out is a generator for each thing that draws: `DataLoader(..., generator=g)`.

# %%
g = torch.Generator().manual_seed(0)
loader = DataLoader(range(8), batch_size=4, shuffle=True, generator=g)
for epoch in range(2):
    print("epoch", epoch, [batch.tolist() for batch in loader])
g.manual_seed(0)
print("again  ", [batch.tolist() for batch in loader])

# %% [markdown]
# Each epoch another order, and all of it from one seed. Why shuffle at all? A corpus has an order of its own, all English before all Spanish, say, and then a batch's gradient says what its chapter wants and not what the corpus wants.
#
# The last thing that a loader has are *workers*: processes that make batches ahead, while the model computes. Each of them is a copy of yours, with its own dice. In old advice you read that NumPy then draws the same numbers in every worker. **Predict.** The four columns below are torch, NumPy's global functions, Python's `random`, and a NumPy generator that the dataset brought along. Which of them repeat?
#
# (Workers are started by forking, on Linux, and a forked copy of a notebook that has computed with several threads may hang. So the next cell runs a script of its own, as your training will.)

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
# The last alone. torch, NumPy's global functions and `random` are seeded in each worker, from the seed that the loader drew and the worker's number. A generator that was made before the workers were is copied into each of them, state and all, and nobody seeds it for you.

# %% [markdown]
# And what are they for? For waiting. Here a batch takes 60 ms to arrive, as from a disk or a network, and a step takes 20. **Predict.** How many milliseconds pass from one step to the next, with no worker, one, two, three and four?

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
# Without a worker the two times add up: 80. One worker loads while the model computes, and it is the longer of the two that counts, 60; two share the loading, 30; from three on it hides behind the step altogether, and a fourth has nothing to do. So there is a number of workers that is enough, the loading time by the step's, rounded up. More only cost memory. And they hide *waiting*; where making a batch is work, they need cores to do it on.

# %% tags=["hide-input"]
choice(
    "A run has a dataset with random crops (drawn with `torch.rand` in `__getitem__`), 4 workers and a seeded loader. You go on with 8 workers. What changes?",
    {
        "Nothing: the loader's generator is seeded": "The permutation stays. The crops are drawn by the workers, each with its own seed and for its own share of the batches.",
        "The order of the items": "The sampler sits in the main process and doesn't know how many workers there are.",
        "The crops": "A worker's dice are seeded with its number, and batches are dealt to other workers now. Bit-exact needs the same number of workers, or dice that belong to the item.",
    },
    answer="The crops",
)

# %% [markdown]
# ## What a loader does
#
# In the lab you write a loader yourself. So look at this one from outside, as if you had to guess what is in it. It needs of a dataset two things only, `len(dataset)` and `dataset[k]`. Here is one that keeps a list of what it was asked for. **Predict.** A shuffled loader is made, and two iterators of it. They take turns, three batches in all. When is which item read? Does the second iterator go on where the first is, or begin at the beginning, and in the same order?

# %%
class Asked:
    """Ten numbers, and which of them were asked for since somebody looked."""

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
# Nothing is read before somebody wants it, and then just the items of one batch, in its order. (With workers it is otherwise: each is told of two batches in advance.) And each iterator is an epoch of its own, with an order and a place. So the loader remembers nothing of where it is; it is a recipe, and `iter(loader)`, with which each `for` begins, cooks it once more. That is why you can't ask a loader how far it has come, which will matter in *Stop and go on*.
#
# Then the collating. An item need not be a tensor. **Predict.** Two of these dicts make a batch. What becomes of each entry, and with which dtype?

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
# Dicts become a dict and tuples a list, down to the last level, where tensors are stacked and numbers become a tensor; strings stay a list. One dtype is a trap. A Python float is a float64, so of floats the loader makes float64, and the model is float32. **Predict.** As a target: an error? As an input?

# %%
output = nn.Linear(2, 1)(together["x"])[:, 0]
loss = F.mse_loss(output, together["share"])
loss.backward()
print("as a target, the loss is", loss.dtype)
attempt(lambda: nn.Linear(2, 1)(together["share"]))

# %% [markdown]
# As a target nothing is said: the loss is float64, and so is all on the way back to the output, where it becomes float32 again. Who wants float32 makes a tensor in `__getitem__`.
#
# One line of a training loop has no counterpart on a machine without a GPU. A loader's batch lies in the CPU's memory, wherever the model is, and so it says `x, y = x.to(device), y.to(device)` before anything else. Here is a device that everybody has: on `meta` tensors have a shape and no numbers, and a layer there refuses a tensor from here, as one on a GPU would. **Predict.** `model.to(far)` and `x.to(far)`: what is on the other side after these two lines?

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
# A module's `to` changes the module; a tensor is what it is, and its `to` returns another one. A dict or tuple has no `to` at all, so what collating has built must be taken apart again:

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
# What does the line cost? Where nothing has to be moved, next to nothing, as you will see. A move has a fixed price, whatever its size: the call, and on a GPU an order to the driver. A change of dtype, which also writes each number anew, can stand for it on every machine. **Predict.** 64 sentences, moved as one batch, or one by one, as where `to` stands in `__getitem__`: how many times as dear?

# %%
import timeit


def microseconds(action, times=50):
    """The best of twenty: whatever else runs on this machine only makes it slower."""
    return 1e6 * min(timeit.repeat(action, number=times, repeat=20)) / times


batch = inputs[:64]
sentences = list(batch)
print("already there, the same object:", batch.to("cpu") is batch)
print(f"that costs       {microseconds(lambda: batch.to('cpu')):6.2f} µs")
at_once = microseconds(lambda: batch.to(torch.int32))
singly = microseconds(lambda: [sentence.to(torch.int32) for sentence in sentences])
print(
    f"as one batch     {at_once:6.2f} µs\none by one       {singly:6.2f} µs, "
    f"{singly / at_once:.0f} times as much"
)

# %% [markdown]
# A hundred times or so, for the same numbers: what is paid for is each call with its new tensor. So the line may stand in every loop, and where all is there already it returns what it got. And it belongs behind the collating and not before it, for a batch and not for an item. There is a second reason: on Linux workers are forked, and CUDA refuses to work in the fork of a process that has used it. What a real move costs, and how it is hidden behind the step before (`pin_memory=True` in the loader, `non_blocking=True` in `to`), phase 09 measures on a GPU.

# %% tags=["hide-input"]
choice(
    "`for batch in loader:` is left with `break` in the middle of an epoch, and later `for batch in loader:` stands there again, with the same seeded generator. What does the second loop give?",
    {
        "The rest of the epoch": "The place was the iterator's, and nobody holds that any more.",
        "The same epoch from its beginning": "The order was the iterator's too. A new one asks the generator anew, and that has moved on.",
        "Another epoch from its beginning": "Each new iterator draws an order. The rest of the epoch before is lost.",
    },
    answer="Another epoch from its beginning",
)

# %% [markdown]
# ## What the optimizer remembers
#
# Plain SGD forgets: w ← w − lr · g. Nothing to save. With *momentum* μ it keeps a velocity for each weight, v ← μ·v + g, and steps by lr · v.
#
# **Predict.** The gradient is 1, for ever; lr is 1, μ = 0.9. How far does the weight go in the first steps? And in the hundredth?

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
# 1/(1 − μ) = ten times as far. Momentum multiplies the learning rate for what keeps its direction, and averages away what doesn't.
#
# AdamW remembers two numbers for each weight: a running mean *m* of the gradient, and one, *v*, of its square.
#
# $$m \leftarrow \beta_1 m + (1-\beta_1)\,g \qquad v \leftarrow \beta_2 v + (1-\beta_2)\,g^2$$
# $$\hat m = \frac{m}{1-\beta_1^t} \qquad \hat v = \frac{v}{1-\beta_2^t} \qquad w \leftarrow w - \mathrm{lr}\,\lambda\,w - \mathrm{lr}\,\frac{\hat m}{\sqrt{\hat v}+\varepsilon}$$
#
# Both begin at 0 and are too small at first; the divisions by 1 − βᵗ mend that, t being the number of steps that this weight has made. **Predict.** One step, from nothing, with lr 0.01. How far does a weight go whose gradient is 1000? And one with 0.000001?

# %%
for g in (1000.0, 1.0, 1e-3, 1e-6, 1e-9):
    p = nn.Parameter(torch.zeros(()))
    optimizer = torch.optim.AdamW([p], lr=0.01)
    p.grad = torch.tensor(g)
    optimizer.step()
    print(f"gradient {g:8.0e}   went {p.item():.6f}")

# %% [markdown]
# The same way, all of them: at the first step m̂ is g and √v̂ is |g|. AdamW's first step is ±lr for *every* weight, whatever its gradient's size, down to where ε = 1e-8 begins to count (it stands outside the root, so it is compared with |g|).
#
# Now you know why the loss jumped. The file had the weights and not the optimizer. The new AdamW took its first step for *the* first step: 50,000 finely tuned weights went up or down by the full learning rate each, by the sign of one batch's gradient. The old one had a v that knew which weights are restless, and an m that had averaged the noise away.
#
# Here is one real weight on its way: the one that ties channel 3 of the hidden state to the word "hablé", in the first 120 steps.

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
# **Predict.** "hablé" stands in few sentences. What does its gradient look like, and what does AdamW make of a single large one: when is the step largest, and how long does it last?

# %%
adamw_explorer(gradients, step=30, name="the weight of “hablé”, channel 3")

# %% [markdown]
# The largest step is the very first, one lr. A gradient far above its neighbours moves the weight by little more than half of that, and goes on moving it for ten steps, while m wears off. By little more than half, because it is divided by a root that it has raised itself: v looks back over a thousand steps, but here there have been thirty so far, and of their mean this one gradient is the larger part.
#
# Move β₂ to 0.9 and watch the last row: v forgets the last peak before the next one comes, and small gradients get full steps again. Move β₁ to 0, and the steps follow every twitch. Take the bias correction away: at the first steps m is a tenth of what it should be, but √v is only a thirtieth, and the quotient is three times too *large*.
#
# Is it what torch does? The optimizer's memory lies open. From m, v and t, as they are after the last step, that step can be worked out on paper, and held against the way that the weight went.

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
# The *W* is for the third term, the decay λ·w, which pulls each weight towards 0 apart from all gradients. In the older Adam, weight decay was added to the gradient. **Predict.** What is the difference, after 100 steps, for a weight of 1 with no gradient, with a small noisy one, with a large noisy one?

# %%
for kind in (torch.optim.Adam, torch.optim.AdamW):
    p = nn.Parameter(torch.ones(3))
    optimizer, noise = kind([p], lr=0.01, weight_decay=0.1), torch.Generator().manual_seed(0)
    for _ in range(100):
        p.grad = torch.tensor([0.0, 1e-3, 10.0]) * torch.randn(3, generator=noise)
        optimizer.step()
    print(f"{kind.__name__:6}", *(f"{v:6.3f}" for v in p.tolist()))

# %% [markdown]
# In Adam the decay goes through the division by √v̂: the quiet weights are dragged to 0 at full speed, the loud one hardly feels it. In AdamW it is the same for all, 0.999 a step; what is left over is noise.
#
# Last, who counts t? **Predict.** A parameter has a gradient once, and then `zero_grad` is called and `step`, without a backward between. Does it move? Does it matter whether `zero_grad` sets the gradient to None, which is the default, or to zeros?

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
# Without a gradient a parameter is passed over: no step, no decay, and its own count stands still. A gradient of zeros is a gradient, and m goes on pushing. So the count belongs to the parameter, and is one of the things to save. Here is all that AdamW holds, and what it weighs.

# %%
state = optimizer.state_dict()
print(state["state"])
group = state["param_groups"][0]
print({key: group[key] for key in ("lr", "betas", "eps", "weight_decay", "params")})

# %% [markdown]
# AdamW itself exists three times over: a loop over the parameters, a form that treats all of them at once (`foreach`, the default on a GPU), and one kernel for everything (`fused`). **Predict.** Do they agree, to the last bit?

# %%
def five_steps(**form):
    torch.manual_seed(0)
    model = MiniGPT(SMALL)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, **form)
    for _ in range(5):
        loss = loss_of(model, inputs[:16], targets[:16])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return torch.cat([p.detach().flatten() for p in model.parameters()])


loop = five_steps(foreach=False)
for name in ("foreach", "fused"):
    other = five_steps(**{name: True})
    worst = (loop - other).abs().max()
    print(f"{name:8} same bits: {torch.equal(loop, other)!s:6} largest difference {worst:.0e}")

# %% [markdown]
# `foreach` does the same operations in the same order. `fused` does them in another, rounds elsewhere, and is as right; but a run that changes from one to the other isn't the same run.

# %% tags=["hide-input"]
number(
    "A model of 7 billion parameters, trained in float32 with AdamW. Weights, gradients and the optimizer's state: how many GB (10⁹ bytes), without activations?", 112,
    unit="GB",
    why="Four numbers a parameter (weight, gradient, m, v), four bytes each: 16 bytes, times 7·10⁹.",
    wrong={84: "AdamW keeps two numbers for each weight, m and v.", 28: "Those are the weights alone.", 56: "Weights and gradients; m and v are as large again."},
)

# %% tags=["hide-input"]
choice(
    "You multiply every gradient by 1,000, at every step (so does a loss that is a sum and not a mean). What does it do to SGD, and what to AdamW?",
    {
        "Both step 1,000 times as far": "AdamW divides by the root of the mean square, and that is 1,000 times as large as well.",
        "SGD steps 1,000 times as far, AdamW as before": "m̂/√v̂ has no scale; only ε does. That is why one learning rate suits AdamW on models whose gradients differ by orders of magnitude, and why it forgives a forgotten division.",
        "Neither changes": "SGD multiplies the gradient by lr and no more.",
    },
    answer="SGD steps 1,000 times as far, AdamW as before",
)

# %% [markdown]
# ## How far to step
#
# A learning rate is rarely a constant. It climbs for a while, the *warm-up*; then it falls, mostly along half a cosine, to a floor. With *s* the share of the way down that lies behind, from 0 to 1:
#
# $$\mathrm{lr} = \mathrm{floor} + (\mathrm{peak} - \mathrm{floor}) \cdot \tfrac12\,(1 + \cos \pi s)$$
#
# PyTorch has schedulers for it (`LinearLR`, `CosineAnnealingLR`, `SequentialLR`, or `LambdaLR` for a function of your own), each a thing with a `state_dict`. Or one computes it from the step and writes it into the optimizer's groups, as our `train` does, and saves nothing but the step.
#
# Off by one is the usual accident. **Predict.** A warm-up of 4 steps to 0.1, computed as peak · step / 4, steps counted from 0. What does the first batch teach?

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
# Nothing: a whole batch is computed, forward and backward, and multiplied by 0.
#
# Why warm up at all? At its first step AdamW moves every weight by the full learning rate, on the word of one batch; you have seen what comes of it. **Predict.** A new MiniGPT of three layers, lr 0.01. One run climbs to it in 20 steps, the other begins with it. Does the first fall behind, and for how long?

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
# It is behind for a dozen steps and then far ahead. The run that began at full speed has not exploded; it has only wrecked, in its first steps, what the others build on, and is slow ever after.
#
# **Predict.** Somebody has lost the optimizer's state for good, and has nothing but the weights of step 80. What if they let the learning rate climb again from the bottom?

# %%
run = new_run()
run.model.load_state_dict(saved["model"])  # and the step is 0, so `train` climbs again
again = dict(enumerate(train(run, 80), 81))
loss_curves(
    {"never stopped": whole, "resumed": dict(enumerate(resumed, 81)), "climbing again": again},
    step=82,
)

# %% [markdown]
# No jump: v is filled before anything goes far. It isn't the old run, but it is a good one.
#
# The other half is *clipping*. All gradients are taken as one long vector. If its norm is above a bound, the whole vector is multiplied by bound / norm: its length changes, its direction does not.

# %%
a, b = nn.Parameter(torch.zeros(2)), nn.Parameter(torch.zeros(1))
a.grad, b.grad = torch.tensor([3.0, 0.0]), torch.tensor([4.0])
norm = nn.utils.clip_grad_norm_([a, b], max_norm=1.0)
print("returned:", norm.item(), "  now:", a.grad, b.grad)
print("again:   ", nn.utils.clip_grad_norm_([a, b], max_norm=10.0).item(), "  now:", a.grad, b.grad)

# %% [markdown]
# It returns the norm from *before*, which is the number to log: a run that goes wrong shows it there first. A gradient that is shorter than the bound stays as it is. And there is one norm for all; clipping each tensor by itself would turn the direction.
#
# **Predict.** One element of the gradient is infinite. What does clipping make of it, and what does the optimizer then make of the weights?

# %%
p = nn.Parameter(torch.ones(3))
optimizer = torch.optim.AdamW([p], lr=0.01)
p.grad = torch.tensor([1.0, math.inf, 2.0])
print("norm:", nn.utils.clip_grad_norm_([p], 1.0).item(), "  clipped:", p.grad)
optimizer.step()
print("weights:", p.data)
attempt(lambda: nn.utils.clip_grad_norm_([p], 1.0, error_if_nonfinite=True))

# %% [markdown]
# 1/∞ is 0: all that was healthy is gone, and ∞ · 0 is NaN. AdamW writes the NaN into the weight, and into m and v, from where it never leaves. A norm that isn't finite is a reason to leave out the step.
#
# Now on the norms of *your* run, those that were written down beside the gradients of "hablé". **Predict.** Where in a run are the large ones? Then move the clip down until it cuts every step: what does clipping then amount to?

# %%
from utils.views import schedule_clip

schedule_clip(norms, warmup=10)

# %% [markdown]
# A clip below all norms makes each step's gradient the same length. For SGD this is a learning rate that adapts to the norm; for AdamW, which has no scale, next to nothing. What a clip is for are the single steps far above their neighbours, which would otherwise sit in m for ten steps and in v for a thousand.

# %% tags=["hide-input"]
number(
    "Warm-up over steps 0 to 9 to a peak of 0.01, then half a cosine to a floor of 0.001, reached at step 110. What is the learning rate at step 60?", 0.0055,
    why="Step 60 is half-way between 10 and 110, where the cosine is 0: the middle of 0.01 and 0.001.",
    wrong={0.005: "The floor is 0.001, and not 0.", 0.0045: "That is half of the way from floor to peak; add the floor."},
)

# %% [markdown]
# ## A big batch in pieces
#
# A batch of 256 doesn't fit into memory, so one takes four of 64 and lets the gradients add up: `backward` four times, one `step`. [Phase 02](02_autograd.ipynb#cell-id=leaves-and-gradients-that-add-up)'s accumulation, for once on purpose.
#
# The loss is a mean, so each part's loss is divided by 4. **Predict.** Is the gradient then that of the whole batch?

# %%
every_input, every_target = training_lines()  # the lists of forms as well
order = (every_target[:256] != -100).sum(1).argsort()  # short lines first, as bucketing loaders do
x, y = every_input[order], every_target[order]
model = run.model.eval()  # 160 steps old, dropout off


def gradient(parts, weigh):
    """The gradient, as one vector, of parts (rows of x and y) that are weighed and added up."""
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
# It is not, because the parts are unequal. Each has 64 lines, but the loss is a mean over *targets*, and the last part, which has the lists of forms, holds three times as many as the first. In a mean of means, a word of a short line counts more. It is nearly half of the gradient here, and the loss still falls. (With parts that happen to be equal the error is 0, and so the mistake passes every small test. Hugging Face's `Trainer` had it until late 2024.)
#
# A part has to count by its share of all the targets. That share must be known before the first `backward`.

# %%
everything = (y != -100).sum()
right = gradient(quarters, lambda y: (y != -100).sum() / everything)
print(f"weighed by targets, off by {(right - big).norm() / big.norm():.0e}")
print("bit for bit:", torch.equal(right, big))

# %% [markdown]
# Equal to rounding, and not bit for bit: four sums of sums are added in another order than one.
#
# What is gained is memory. **Predict.** Autograd keeps what the backward needs. How much does it keep for the batch of 256, and how much at most for the quarters?

# %%
def kept(model, x, y):
    """MiB that autograd saves for the backward, by their dtype, each storage once."""
    found, sizes = {}, {}

    def pack(t):
        found[t.untyped_storage().data_ptr()] = t
        return t

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        loss_of(model, x, y)
    for t in found.values():
        sizes[t.dtype] = sizes.get(t.dtype, 0) + t.untyped_storage().nbytes() / 2**20
    return sizes


print(f"whole: {sum(kept(model, x, y).values()):.1f} MiB   each quarter:", end="")
print(*(f" {sum(kept(model, x[rows], y[rows]).values()):.1f}" for rows in quarters))

# %% [markdown]
# A quarter, provided that each part's graph is gone before the next is made. Whoever adds up the *losses* and calls `backward` once, at the end, keeps all four graphs alive, and has gained nothing.
#
# The order of a whole step is now: zero; for each part forward, weigh, backward; then clip, *once*; then step. A clip inside the loop would cut unfinished sums.

# %% tags=["hide-input"]
choice(
    "Four parts with 100, 100, 100 and 20 targets. Each part's mean loss is divided by 4 and backpropagated. By which factor does a word of the last part count too much, compared with its right weight?",
    {
        "5": "It counts 5 times as much as a word of the other parts. Compared with its *right* weight it is less, since those count too little.",
        "4": "Its weight is 1/(4 · 20) = 1/80, and should be 1/320.",
        "1: the mean of means is the mean": "Only of parts that have the same number of targets.",
    },
    answer="4",
)

# %% [markdown]
# ## Sixteen bits
#
# [Phase 01](01_tensors.ipynb#cell-id=dtypes-how-a-number-becomes-bytes)'s ruler: float16 has 5 bits of exponent and 10 of fraction, bfloat16 8 and 7. On a GPU with tensor cores a product of matrices in either is many times as fast as in float32. So: all in 16 bits?
#
# **Predict.** A weight of 1 in bfloat16, and a thousand updates of 0.001. What is it in the end?

# %%
for dtype in (torch.float32, torch.bfloat16):
    w = torch.ones((), dtype=dtype)
    for _ in range(1000):
        w += 0.001
    print(dtype, w.item())

# %% [markdown]
# Still 1. The next number above 1 is 1.0078, and 1.001 is rounded back, a thousand times over. Late in a training, updates are that small beside their weights. So the weights stay in float32, and only what is computed *from* them is done in 16 bits. That is *mixed* precision, and `autocast` is [phase 04](04_dispatcher.ipynb#cell-id=keys-of-the-thread)'s dispatcher at work: a key before autograd's which casts the inputs of some operators.
#
# **Predict.** Which modules of MiniGPT give 16 bits under autocast, and which 32? What of the loss, and of the gradients?

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
# Products come out in bfloat16. The residual stream stays float32 (an embedding is no product, and float32 plus bfloat16 is float32), so LayerNorm, which reads the stream, computes in float32. `cross_entropy` is on autocast's list of operators that need 32 bits. The softmax inside attention is on that list for CUDA, and not for a CPU. The gradients have the dtype of the weights.
#
# The context belongs around forward and loss alone: backward runs each operator's backward in the dtype that its forward had. Is it right, and is it fast? Both can be measured.

# %%
import time


def passed(dtype, rows=slice(0, 256, 4)):
    """The gradient of one pass over 64 rows as a vector, and the seconds of CPU that it took."""
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
    low, middle, high = (1e3 * times[k] for k in (2, 4, 6))  # ms; half of the nine lie between
    print(
        f"{dtype!s:15} gradient off by {off:.1e}   {middle:5.1f} ms of CPU ({low:.1f} to "
        f"{high:.1f})"
    )

# %% [markdown]
# Right to a few parts in a thousand, and with float16's three more bits of fraction to one in a thousand, where from one batch to the next the gradient changes by more than half of its length. And faster? Look at the two rows separately. A CPU that has instructions for bfloat16 (AVX-512 with BF16, or AMX) takes about as long for small matrices as in float32, and less for large ones; one that has none goes a roundabout way and takes a multiple. For float16 most CPUs go one. Mixed precision is a matter of the hardware, and the only way to know is to measure on what you will use.
#
# On the hardware that it is made for it *was* measured: the course comes with a record of a GPU, another machine than yours and another version of PyTorch. First products alone, of 8,192 × 8,192. **Predict.** Take float32 as 1. Where does bfloat16 lie, where float64, and where do eight bits?

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
# Sixteen times. That is the *tensor cores*, which multiply small blocks of matrices, and float32 as it is has none of them: it is the slowest of all, behind float64, which has. *TF32* is a way round. The factors keep float32's exponent and ten bits of fraction, and sums are float32; it isn't a dtype but a permission (`torch.backends.cuda.matmul.fp32_precision = "tf32"`), and for products off unless you give it.
#
# Then a training: a GPT of 8 layers, 1,024 wide, with AdamW, on 16 sequences of 512 tokens, the same in each row. **Predict.** Products are sixteen times as fast in bfloat16. And the step? What is left of the peak of memory? How far apart are the losses after twenty steps?

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
# Three times, and not sixteen, for a step has more in it than products; *Time on a napkin*, below, gets these milliseconds out of the table above. TF32 costs a line and has most of it.
#
# And the memory, which 16 bits are often said to halve, is down by a twentieth. What lives from step to step is float32, 16 bytes a weight as before. What is kept for the backward is halved where it is read by a product. But the residual stream isn't, and with attention it gets *more*: softmax is computed in float32, its table is kept for its own backward, and once more, rounded, for the product behind it. Six bytes a number where there were four. To win memory one must not keep the table; [phase 08](08_transformer.ipynb#cell-id=attention-in-fifty-lines) has a kernel that doesn't.
#
# The losses begin alike to four digits, and after twenty steps they lie up to a tenth from float32's, TF32's as well. Each rounding sends a training on a way of its own, and twenty steps of one run don't tell whether a way is worse.
#
# Much code still writes `torch.cuda.amp`. It works, and says:

# %%
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    torch.cuda.amp.autocast(enabled=False)
    torch.cuda.amp.GradScaler(enabled=False)
print(*(f"{each.category.__name__}: {each.message}" for each in said), sep="\n")

# %% [markdown]
# Next: the range. float16's smallest number is 6e-8. Here are the gradients of the *shipped* MiniGPT on 256 lines, sorted by size, above what either dtype can hold. It was trained for 6,000 steps, and what a model has learnt pulls no more: late in a training, gradients are small.
#
# **Predict.** What part of them is too small for float16? By how much would you multiply the loss, so that none is lost and none overflows?

# %%
from utils.minigpt import load_minigpt
from utils.views import gradient_ruler

shipped = load_minigpt()
loss_of(shipped, inputs[:256], targets[:256]).backward()
gradient_ruler([p.grad for p in shipped.parameters()])

# %% [markdown]
# One in twelve becomes 0, and four more in ten fall among the subnormals, where digits go missing. On the other side there is room for twenty doublings.
#
# Multiply the loss by S, and by the chain rule every gradient is multiplied by S: the whole histogram moves to the right, at the price of one multiplication. Before the step the gradients are divided by S again, in float32. bfloat16 has float32's exponent and needs none of this.
#
# Which S? As large as goes, and what goes changes during training. `GradScaler` tries: if a gradient is inf or NaN, it leaves out the step and halves S; after so many good steps in a row it doubles S. How many, its state tells, which is also what a checkpoint must hold. **Predict.** Here it doubles after 2, and the second of the losses is infinite. Write down scale and weight for each line.

# %%
p = nn.Parameter(torch.tensor(1.0))
optimizer = torch.optim.SGD([p], lr=0.1)
print("as it comes:", torch.amp.GradScaler("cpu").state_dict())
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**16, growth_interval=2)
for factor in (1.0, math.inf, 1.0, 1.0, 1.0):
    optimizer.zero_grad()
    scaler.scale(p * factor).backward()
    scaler.step(optimizer)  # divides by the scale, looks, and steps or doesn't
    scaler.update()
    print(f"gradient {factor:3}   weight {p.item():.1f}   scale {scaler.get_scale():,.0f}")

# %% [markdown]
# The infinite one left no trace in the weight, only in the scale. A few skipped steps at the beginning of a run in float16 are how the scaler finds its place; a scale that falls and falls means that something is infinite for another reason.
#
# And clipping? **Predict.** The gradient is 2, the clip is 1, the scale is 65,536. What does the weight do, if one clips before the scaler has divided?

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

# %% [markdown]
# It cuts 131,072 down to 1, and then the scaler divides that by 65,536. With SGD the model stands nearly still; with AdamW nobody notices, except that the clip has become something else. `unscale_` first: the scaler remembers, and doesn't divide again.
#
# Now everything in one step, in the only order that is right: parts that are weighed, each under autocast and scaled; then, once, unscale, clip, step, update. (One scale for all parts, since they are added up.)

# %%
def whole_step(model, parts, dtype):
    """One step of SGD with accumulation, mixed precision and clipping: how the weights went."""
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
# **Predict.** Against one batch of 256 in float32: how far off is the step in four parts? In four parts and 16 bits? And which is the fastest here?

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
# Correct in each form, to what its dtype allows; cutting into parts costs no digits and hardly any time; and what 16 bits cost, or save, is the machine's affair, as above. On a GPU the same cell, with `"cuda"` in it and matrices like the record's, is where it pays.

# %% tags=["hide-input"]
choice(
    "A colleague trains in bfloat16 under autocast, with a `GradScaler`. What does the scaler do there?",
    {
        "It keeps small gradients from becoming 0": "bfloat16 has the exponent of float32: what float32 can hold, it can hold, with fewer digits.",
        "Nothing that is needed": "It multiplies and divides by a power of two, which is exact, and skips a step whose gradient isn't finite. That last is worth having, but `error_if_nonfinite` or a look at the norm does it as well.",
        "It makes the gradients float32": "They are float32 because the weights are.",
    },
    answer="Nothing that is needed",
)

# %% tags=["hide-input"]
number(
    "In float32, weights, gradients and AdamW's two numbers are 16 bytes a weight. How many are they if one trains in bfloat16 under autocast?", 16,
    unit="bytes",
    why="Autocast casts what goes into a product, for as long as it is needed. Weights, gradients and the optimizer's memory don't change.",
    wrong={8: "That is `model.bfloat16()`: everything in 16 bits, weights that updates no longer move.", 14: "Under autocast the gradient of a weight has the dtype of the weight, float32.", 18: "The cast copies live through forward and backward, and then they are gone."},
)

# %% [markdown]
# ## The same curve
#
# Take three runs of one model: in float32, under autocast, and in ragged parts. All three start from the same first weights and go through the same batches. Their losses will agree in the first digits, and hardly one will be the same to the last digit; that is no mistake. With a mean of means the losses differ as well, and that is a mistake. **How far apart may two runs lie, if nothing is wrong?** Without a number for it, one can only hold two pictures side by side and find them alike.
#
# Begin with a single number. bfloat16 has eight binary digits, so the next number above 1 is 1 + 2⁻⁷. A number between two neighbours is moved to the nearer one, by half of their gap at most. For numbers near 1, this half is the *unit roundoff*, u. A number t that is rounded becomes t · (1 + δ), where |δ| is at most u.

# %%
UNITS = {
    dtype: torch.finfo(dtype).eps / 2 for dtype in (torch.bfloat16, torch.float16, torch.float32)
}
for dtype, u in UNITS.items():
    print(f"{dtype!s:15} u = 2^{math.log2(u):.0f} = {u:.1e}")

# %% [markdown]
# What does that do to a loss? If t becomes t · (1 + δ), the loss moves by δ · t · ∂L/∂t, to first order, and autograd knows ∂L/∂t. Autocast rounds what a product reads, inputs and weights, and what it gives. There are two estimates of all these errors together. If all of them push the loss in the same direction, it is off by u times the sum of all |t · ∂L/∂t|. If each has its sign by chance, they add up like the steps of a random walk, and the loss is off by u times the root of the sum of squares.
#
# **Predict.** In our model, at 64 sentences, the linear layers read and give more than a million numbers. How many u is the first estimate, and how many the second? Which of the two is nearer to what is measured?

# %%
def effects(model, x, y):
    """t · ∂L/∂t of each number t that a linear layer reads or gives."""
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
# The measured error is near the walk or below it, and far from the sum: a pass moves the loss by less than u. (Attention's two products are not counted here; they change little.) This holds whether the loss itself is 6 or 0.1, because a loss is a mean of *logarithms*: a probability that is off by a share of u moves its logarithm by u.
#
# From here on we build a band: how far the loss of each step may be off. It has three parts.
#
# *What is rounded in this very step*: one u. *The sum of the loss itself*, which is added up in float32, over 600 words and some 500 places: about twenty additions follow one another in it, and twenty in the other run's, so the loss is off by 40 · 2⁻²⁴ of itself, and with some room by 2⁻¹⁸.
#
# *What earlier steps have left behind*, in the weights. A gradient has gone through seven products in a row forward and through seven back, and each rounds what it reads and what it gives: some forty roundings, of 0.4 u on average, which add up like a walk. √40 · 0.4 u is 2.6 u, so say that a gradient is off by 3 u of its length. (*Sixteen bits* has measured one to two.) With a momentum of 0.9 each gradient counts 1 + 0.9 + 0.81 + … = 10 times. So after some steps the weights of two runs are apart by at most 10 · 3 u times the sum, over those steps, of rate times norm. The losses are then apart by at most that distance times the norm of the gradient at this place; they would be so far apart if the difference pointed exactly along the gradient.
#
# The three together are a band, made of what any run should log: losses, norms and rates.

# %%
import inspect

from utils.drivers.training import band, steps_of_lines

print(inspect.getsource(band))

# %% [markdown]
# The band leaves one thing out. At other weights the gradient is another one, so a difference of the weights makes a new difference of the gradients. *The five lines* has shown what becomes of a distance in a direction that curves by λ: each step multiplies it by 1 − lr · λ, and it shrinks as long as the rate is below the limit 2 / λ. Nobody can compute what that does in a whole network, so it is measured, beside the band.
#
# The runs are those of the last section, step by step, with momentum. Two more runs have a mistake built in that many loops have: a mean of the parts' means, and a loss from logits in 16 bits, as they leave autocast.

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
    """Losses, norms and rates of a new MiniGPT, in steps of 64 sentences in parts of so many."""
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
# **Predict.** In how many digits do the losses agree? And in a picture of the distances from float32, how many powers of ten lie between the three other runs?

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
# Drawn as losses, the four runs would be one curve. Here you see their distances from the first, on a scale of powers of ten. The dashed lines are the edges of the bands; a gap in a curve is a loss that is the same to the last bit. All runs stay inside, those in 16 bits by far: the band allows that every error of forty steps points along the gradient, and really they point anywhere.
#
# The band of the parts is narrower by the quotient of the units, 2¹⁶. So to prove an accumulation right, compare in *float32*. Under bfloat16 a mistake would have to be ten thousand times as large to be seen.
#
# **Predict.** Can you see the two mistakes in the losses? And at which step do they leave their bands?

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
# The losses fall as they should, and one run with a mistake even ends *lower* than the right one. Yet both are outside of their bands at the very first step, where all weights are still the same: the mean of means by more than a hundred times, since it is another number, and the loss in 16 bits by thirty times. (Later the second comes back inside. So look at the first steps, where a band is narrow.)
#
# Why is the loss in 16 bits so far off? Rounding it would explain a sixty-fourth: between 4 and 8, bfloat16 has steps of a thirty-second. But it is off by more, and how much more depends on how the lines lie:

# %%
new = MiniGPT(SMALL)
with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
    logits = new(read).flatten(0, 1)
for given in (logits, logits.float()):
    print(
        given.dtype,
        "sum of the losses:",
        F.cross_entropy(given, asked.flatten(), reduction="sum").item(),
    )
print("2048 + 6.4 in bfloat16:", (torch.tensor(2048.0, dtype=torch.bfloat16) + 6.4).item())

# %% [markdown]
# The sum stands still at 2048: neighbours are 16 apart there, so adding a loss of 6.4 changes nothing. `cross_entropy` knows that danger and adds in blocks of sixteen. But on a CPU it closes a block only at a place that counts, and here each sixteenth place begins a line, and is −100. Divided by some 500 places, 2048 is a loss of 4, at once, and an untrained model looks as if it had learnt a lot.
#
# And how far does the band itself hold? **Predict.** Take a rate ten times as large, float32, whole batches and the same batches in parts, and no mistake. The larger rate makes the band about ten times as wide. Do the runs stay inside?

# %%
fast = {
    name: run_of(cuts=cuts, lr=0.5, steps=60)
    for name, cuts in (("whole", (64,)), ("in parts", RAGGED))
}
edge = {"in parts": band(fast["whole"], UNITS[torch.float32], max_norm=1.0, momentum=0.9)}
loss_curves({name: log["losses"] for name, log in fast.items()}, bands=edge, step=30)

# %% [markdown]
# They do for half of the run. Then the distance grows tenfold every few steps, a straight line on this scale, until it is as large as the losses' own noise. The reason is the factor |1 − lr · λ|, which is now above 1: at this rate the run is at its limit, and there each difference, even one of 10⁻⁷, leads to another way. Nothing is wrong with either run. So a proof by curves has its conditions: the same first weights and batches, a rate well below the limit, and a few dozen steps. For longer runs, compare where they arrive, with several runs of each kind.
#
# So parts and 16 bits are both right. What do they save? [The quarters](07_training.ipynb#cell-id=a-big-batch-in-pieces) above kept a quarter. **Predict.** Of what a full MiniGPT keeps for the backward, what share is left under bfloat16?

# %%
full = MiniGPT()
for dtype in (torch.float32, torch.bfloat16):
    with torch.autocast("cpu", dtype=dtype, enabled=dtype is not torch.float32):
        sizes = kept(full, read, asked)
    parts = ", ".join(
        f"{size:.1f} {str(kind).removeprefix('torch.')}" for kind, size in sizes.items()
    )
    print(f"under {dtype}: {sum(sizes.values()):.1f} MiB, of it {parts}")

# %% [markdown]
# Seven tenths, and not half. What products read is halved. The rest stays in float32: the residual stream, which LayerNorm reads, and above all the loss's own table, a logarithm for each of 600 words at each place. Token numbers are int64 in either. (On the GPU above, attention's softmax was kept in both forms, and so even less was saved.) Weights, gradients and the optimizer's memory don't change at all. Parts, on the other hand, divide all that is kept by their number, cost no digits, and change nothing else. So where memory is short, accumulate; 16 bits are for speed.

# %% tags=["hide-input"]
number(
    "A float8, e4m3, has three binary digits behind the point and one before it. What is its unit roundoff?", 0.0625,
    why="The next number above 1 is 1 + 2⁻³, and half of the gap is 2⁻⁴. Each number may be off by six per cent: products in it need scales of their own.",
    wrong={0.125: "That is the gap. To the nearer neighbour it is half of it at most."},
    tolerance=0.0001,
)

# %% tags=["hide-input"]
choice(
    "Under bfloat16, the first loss of your loop in parts lies 0.002 from that of whole batches. Is the accumulation right?",
    {
        "Yes, 0.002 is in the band": "It is in the band of bfloat16, 0.004. So would be a mean of means whose parts are nearly equal.",
        "No, a mean must not depend on how it is cut": "It does in any dtype, by the order of the sums; and 16-bit products of other shapes may round otherwise.",
        "That can't be told here; in float32 it can": "There the band is some 0.00003 wide, and a mistake in the weights of parts has nowhere to hide.",
    },
    answer="That can't be told here; in float32 it can",
)

# %% [markdown]
# ## Overfit one batch first
#
# All these parts can be wrong, and the loss will mostly fall all the same. So before any long run there are two tests that take seconds.
#
# The first needs no training. **Predict.** A new model knows nothing and has 600 words to choose from. What is its loss?

# %%
torch.manual_seed(0)
model = MiniGPT(SMALL)
print(f"loss {loss_of(model, inputs[:64], targets[:64]).item():.3f}   ln 600 = {math.log(600):.3f}")

# %% [markdown]
# A loss that begins elsewhere says that the last layer, the targets or the reduction are not what you think.
#
# The second: take *one* batch of 16 lines and learn it by heart. A model with 50,000 numbers can do that to perfection, and if yours can't, something is broken, and a larger model or more data would only hide it. Here are a right loop and three with a planted bug.
#
# **Predict.** Which of the bugs does the test see?

# %%
def targets_with(bug, x, y):
    if bug == "targets shuffled":  # each line gets another line's targets
        return y[torch.randperm(len(y))]
    if bug == "targets not shifted":  # the word that is read is the word that is asked
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
# The head alone lags far behind: a frozen or forgotten part shows. So does a learning rate that is too small, a graph that is cut, a gradient that never comes.
#
# The other two pass, and copying even beats the right one! Sixteen lines with the wrong targets are as easy to learn by heart as with the right ones, and copying a word is easier than foreseeing it. The test says that *something* is learnt, and not what. Hence the third test, before it and cheaper still: print one item of the loader, in words, as we did with `read` and `asked`. And be suspicious of a loss that falls too fast.

# %% tags=["hide-input"]
choice(
    "One batch is learnt by heart down to 0.01. In the real run the loss falls to 0.02 in an epoch, and it can't write a sentence. What would explain both?",
    {
        "The learning rate is too large": "Then the loss would not come down that far.",
        "The causal mask is missing": "A word can then look at the next one, which is its own target: nearly perfect in training, at no cost, and useless where the next word isn't there yet. A loss below what the language's own randomness allows is always a leak.",
        "The model is too small": "It would show as a loss that stays high.",
    },
    answer="The causal mask is missing",
)

# %% [markdown]
# ## Stop and go on
#
# Back to the question. A run is whatever the next step depends on: the weights; the optimizer's memory; the step; the dice. We put them into a file one after the other, and see how far each file goes. The generator's state is a tensor of bytes, and can be saved like any other.

# %%
PARTS = {  # name: how it is taken from a run, and how it is put back
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
    """Make everything anew, and put back these parts of the file."""
    run, saved = new_run(), torch.load(FOLDER / "whole.pt")
    for name in names:
        PARTS[name][1](run, saved[name])
    return run


# %% [markdown]
# **Predict.** With model, step and optimizer: does the loss jump? Is the run the same as the one that never stopped?

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
loss_curves({name: runs[name] for name in ("never stopped", "optimizer, too")}, step=100)

# %% [markdown]
# With the optimizer there is no jump, and this is where most people stop. But from step 81 on it is another run: it sees the batches of its youth once more, and forgets other channels. (nanoGPT does just that, as you will read below, and for its purpose it is good enough.) With the dice it is the same in every bit, as the last line above says.
#
# Is it worth the trouble? A resumed run that is *the same to the last bit* can be tested with `==`. One that is "nearly the same" can't be told from one that lost something. (Bit for bit, that is, on the same machine with the same number of threads: another may add in another order.)
#
# What else draws, or remembers? A scheduler, a `GradScaler`, Python's and NumPy's dice if you use them, on a GPU `torch.cuda.get_rng_state_all()`; the running means of BatchNorm are buffers and in the model. And four traps.
#
# **One: a `state_dict` is no copy.** **Predict.** A colleague keeps the best model so far in a variable. What is in it at the end?

# %%
best = run.model.state_dict()
noted = best["lm_head.bias"].sum().item()
train(run, 5)
print(f"when kept {noted:.4f}, five steps later {best['lm_head.bias'].sum().item():.4f}")

# %% [markdown]
# The last model, under the name of the best. The dict is new, the tensors are the model's own, as with our list of weights. `torch.save` writes the bytes at once and is safe; in memory, `copy.deepcopy`. It holds for the optimizer's `state_dict` too, m and v included.
#
# **Two: the file decides.** **Predict.** A run used lr 0.02. You resume, and make the optimizer with lr 0.001, since the loss no longer falls. Which is used?

# %%
p = nn.Parameter(torch.zeros(2))
old, new = torch.optim.AdamW([p], lr=0.02), torch.optim.AdamW([p], lr=0.001)
new.load_state_dict(old.state_dict())
print("lr:", new.param_groups[0]["lr"])

# %% [markdown]
# The groups come back with the state: lr, betas, decay. And m and v are found by *number*, not by name: a parameter's place in the list. If modules were registered in another order in the meantime, and the shapes happen to fit, each gets the memory of another, without an error.
#
# **Three: what `torch.load` reads.** Since 2.6 it opens files with `weights_only=True`: tensors, numbers, strings, lists, dicts. A pickle can run any code when it is opened, so this is a lock on a door. **Predict.** Which of these can be read back?

# %%
def reads_back(thing):
    torch.save({"thing": thing}, FOLDER / "thing.pt")
    return f"reads back a {type(torch.load(FOLDER / 'thing.pt')['thing']).__name__}"


for thing in (torch.get_rng_state(), 0.5, SMALL, np.float64(0.5), Path("runs")):
    print(f"{type(thing).__name__:14}", end=" ")
    attempt(reads_back, thing)

# %% [markdown]
# A configuration goes in as a dict (`dataclasses.asdict`), a NumPy number as `float(...)`. The failure comes when the file is *opened*, weeks after it was written: so a test of a checkpoint reads it.
#
# **Four: a process can die while it writes.** Then the old file is gone, and the new one is half there. Write beside it, then put it in its place with `os.replace`, which happens as a whole or not at all.
#
# One thing is left: the middle of an epoch. **Predict.** A loader goes through 12 items in shuffled batches of 3. It is stopped after two batches of its second epoch; the generator's state is saved there, and put back. What does the loader give next?

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
# Neither the rest of epoch 2 nor epoch 3, but an epoch that the first run never had. The whole permutation is drawn when an epoch begins, and between two batches nothing is; so the state tells nothing of how far one has come, and the rest of the epoch is lost. (And at its end the sampler draws once more, for a rest that is empty. So the state of the stop isn't that of the next beginning, either.) No loss curve shows any of this.
#
# What must be saved is the state from the *beginning* of the epoch, and how many batches have been used. Then the same permutation is drawn again, and so many batches are thrown away.

# %%
loader, dice = loader_of(seed=1)
dice.set_state(at_start)
epoch = iter(loader)
for _ in range(2):
    next(epoch)
print("goes on with:", [batch.tolist() for batch in epoch], " as it was:", rest)
print("epoch 3:     ", [batch.tolist() for batch in loader])

# %% [markdown]
# But take care of the order: drawing the permutation again, and whatever the thrown-away batches draw, must not disturb the *other* dice. Put torch's global state back last, when the loader stands where it stood.

# %% tags=["hide-input"]
number(
    "50,000 items in batches of 64, the rest kept. A run is stopped after 2,000 steps. How many batches of the current epoch must be passed over when it goes on?", 436,
    unit="batches",
    why="An epoch has 782 batches. 2,000 = 2 · 782 + 436.",
    wrong={438: "781 batches would be an epoch with `drop_last`.", 2000: "Two epochs are over; only the place in the third matters."},
)

# %% tags=["hide-input"]
true_false(
    "If the model has no dropout and the loader a generator of its own, the global random state need not be saved.", True,
    "Then nothing draws from it. But it is 5,056 bytes, and the day somebody adds a dropout or an augmentation nobody will think of the checkpoint.",
)

# %% [markdown]
# ## MiniGPT from nothing
#
# Now for real: the full MiniGPT, 179,544 parameters, 6,000 lines of the corpus. What should it reach? Numbers need something beside them. On 1,000 sentences that are in no training line there are two older models, which count how often a word follows the last two (a trigram) or the last four (a 5-gram), and were fitted to the *whole* corpus, eight times as much. There is a floor too: whoever knows the grammar still can't know which object comes.

# %%
from utils.minigpt import baselines, evaluation_lines, generate

for split, found in baselines().items():
    for name in ("trigram", "fivegram", "grammar"):
        print(
            f"{split:21} {name:8} perplexity {found[name]:.2f}   loss {math.log(found[name]):.3f}"
        )

# %% [markdown]
# *Perplexity* is e to the loss: the number of words between which it is as if one were choosing. *Held out* are verbs in tenses and persons that no training line shows together with the verb's name: there, to count is not enough.
#
# **Predict.** How long does MiniGPT need to be better than either, on one core? Seconds, minutes, hours?

# %%
from utils.minigpt.dataset import batches  # endless, shuffled; lines of like length together

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
    """The five lines, with warm-up and clipping: the loss, the batch, the seconds of CPU."""
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
# Below both in seconds, with an eighth of their data. On combinations held out it isn't even close: a 5-gram has never seen the words together and must guess, while the network has found out that a stem and a tense can be put together.
#
# The training loss has spikes that the other curves don't have. **Predict.** Too high a learning rate? A bad batch? What would you look at first?

# %%
late = history[100:]
for loss, x, _ in (max(late, key=lambda row: row[0]), min(late, key=lambda row: row[0])):
    print(f"loss {loss:.2f}, {x.shape[1]} tokens wide:", *tokenizer.words(x[0][x[0] != 0])[:16])

# %% [markdown]
# The data. Some lines are lists of a verb's forms in random order, to be learnt for their spelling; which form comes next nobody can know. Such lines are long, lines of like length share a batch, and so there are batches of nothing but lists. No learning rate is to blame, and no clip would help. *Look at the batch before you touch a hyperparameter.*
#
# And what does it say?

# %%
for step, sentence in says.items():
    print(f"step {step:3}: yo, hablar, past: {sentence}")
print("shipped, step 6000:        ", generate("yo", verb="hablar", tense="past"))

# %% [markdown]
# (On another machine sums are rounded otherwise, and after 300 steps so are the sentences.) Not one of these is right. At step 200 it has the verb and not the tense; at 300 the tense, but another verb, and *yo* with the form for *nosotros*. And yet the loss is at 0.84, where the floor is at 0.54, and both baselines are beaten. Most words of a sentence are easy; what you care about is in one of them, and the mean over all words hardly shows it. The other 5,700 steps are for that, and a validation that counts right verbs would be worth more than any loss.
#
# Here the learning rate stayed where it was after the warm-up. A cosine is for the end of a run, when there is more noise than progress; to bring a run of 300 steps down so early costs more than it gains (try it).
#
# One more thing that goes around the loop: `torch.compile`. What it makes is [phase 06](06_compile.ipynb#cell-id=three-machines-in-a-row)'s; here is how a loop meets it. The compiler specialises on what it sees, and our batches have many lengths. **Predict.** How many times does it compile for these eight batches?

# %%
compiled_for = []


def spy(graph, examples):
    """A backend that only takes note of being called."""
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
# Once for the first length, once more when a second one comes, now with the length as a symbol; after that no more. A short batch at the end of the epoch is a new batch size and costs another one: with `drop_last` it never comes. A real backend takes seconds to a minute for each, so what is trained for seconds isn't worth compiling.
#
# And it has a trap for checkpoints. **Predict.** What are the names in the `state_dict` of a compiled model?

# %%
print(next(iter(fast.state_dict())))
attempt(lambda: MiniGPT().load_state_dict(fast.state_dict()))
gpt.compile(backend=spy)  # in place: the same module, the same names
print(next(iter(gpt.state_dict())))

# %% [markdown]
# `torch.compile(model)` wraps, and each name gets a prefix, which the next program doesn't know. Save the model that is inside, or compile in place.

# %% [markdown]
# ## Time on a napkin
#
# How long will a training take? Two numbers are enough. A weight of a linear layer takes part, for each token, in one multiplication and one addition: 2 FLOPs. Backward makes two such products, one for the gradient of the input and one for that of the weight ([phase 02](02_autograd.ipynb#cell-id=a-layer-only-has-to-know-one-product)). So 6 FLOPs a weight and token: **6 · N · tokens**, where N counts the weights that are multiplied. Embeddings are looked up and cost none.
#
# **Predict.** By how much is that wrong for MiniGPT, counted by [phase 04](04_dispatcher.ipynb#cell-id=counting-to-the-last-operator)'s FLOP counter?

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
# What is missing is attention's own two products, which have no weights; they grow with the length, and at 16 words they are next to nothing.
#
# Now divide by the FLOPs that this machine can do in a second. Take the largest product of matrices for its peak. The quotient of what was achieved and the peak has a name, **MFU**, *model FLOPs utilization*.

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
# So many matrices so small: a good part of the time goes to everything that isn't a product, softmax, norms, the optimizer, Python. Large models on large GPUs reach 40 to 50 %.
#
# Now the record of *Sixteen bits*. **Predict.** What is the MFU of this MiniGPT on an H100? And of the large one: in float32 its step took 140 ms. Divide its FLOPs by what products alone achieve; take what is left over as fixed, and reckon the three other rows.

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
# MiniGPT is far worse off there, since two hundred launches wait for each other; [phase 09](09_profiling.ipynb#cell-id=fewer-larger-later) shows where the time goes. And the large model's milliseconds are right to about a tenth, from two figures and a napkin. (It leaves out attention's two products, takes the rate of very large matrices for all, and pretends that autocast changes nothing else.) So sixteen times faster products make a step three times as fast, and the MFU *falls*, since the peak has risen and the rest has not. Who wants it back must attack the rest: fuse it ([phase 06](06_compile.ipynb#cell-id=fusion-and-the-code)), keep no table, take wider layers.
#
# The same napkin for GPT-2: 124 million parameters, 300 billion tokens, which is about what nanoGPT's script is set to. One H100 does 989 TFLOP/s in bfloat16, by its data sheet; say at 40 %.

# %%
flops = 6 * 124e6 * 300e9
days = flops / (0.4 * 989e12) / 86400
print(f"{flops:.2g} FLOPs, {days:.1f} days on one H100, {days / 8 * 24:.0f} hours on eight")
print(f"on this core, at the pace of MiniGPT: {flops / achieved / 86400 / 365:,.0f} years")

# %% tags=["hide-input"]
number(
    "7 billion parameters, 10¹² tokens, 1,000 GPUs that each achieve 4·10¹⁴ FLOP/s. How many hours?", 29.2,
    unit="hours", tolerance=0.5,
    why="6 · 7·10⁹ · 10¹² = 4.2·10²² FLOPs, at 4·10¹⁷ a second: 105,000 s.",
    wrong={9.7: "That is the forward pass alone, 2 · N · tokens.", 105000: "Those are seconds."},
)

# %% [markdown]
# ## Reading nanoGPT's train.py
#
# You now know every part of Andrej Karpathy's nanoGPT, the best-known small training script there is. (Its page has called it old and deprecated since November 2025, in favour of [nanochat](https://github.com/karpathy/nanochat), which has the same parts in more files. To be read from top to bottom, it is still the one.) Open [`train.py`](https://github.com/karpathy/nanoGPT/blob/93a43d9a5c22450bbf06e78da2cb6eeef084b717/train.py) in its repository ([github.com/karpathy/nanoGPT](https://github.com/karpathy/nanoGPT); the lines are those of the version of December 2024) and read it beside this list. It has no class and hardly a function; it is a program from top to bottom.
#
# | lines | what happens | what you know of it |
# |---|---|---|
# | 32–78 | Every setting is a global variable. Another file is then executed among them and overwrites what the command line asks for; all of it is kept in a dict, `config`. | 40 parts of 12 sequences of 1,024 tokens are one step: half a million tokens. |
# | 82–101 | Whether it is one of several processes is told by an environment variable. If so, the number of parts is divided by the number of processes, and each has a seed of its own. | So the batch is the same size on one GPU or on eight, and no two draw the same data. |
# | 106–112 | A seed; TF32 is allowed; `ctx` is autocast, or on a CPU nothing. | *Sixteen bits*: on a CPU the script does without. |
# | 116–131 | `get_batch`: random places in one long file of tokens, the targets one place further. | No Dataset, no DataLoader and no epochs: drawn with replacement. There is no middle of an epoch to resume in. |
# | 149–193 | The model: new, from a checkpoint, or with GPT-2's weights. From a checkpoint the sizes are taken too, and a prefix is cut off the names. | You have seen where the prefix comes from. |
# | 196–202 | A scaler that is switched on for float16 alone; an optimizer, and its state if there is one. | Line 196 calls `torch.cuda.amp.GradScaler`, the name that warns today. Switched off, each of its methods passes on what it gets, and the loop below is the same for every dtype. |
# | 205–212 | Compile, then wrap for several processes. | Phases 06 and 10. |
# | 215–228 | `estimate_loss`: eval mode, no gradients, the mean of 200 batches of each split, back to train mode. | Batches of equal size: the mean of means is right. |
# | 231–242 | `get_lr`: up in a line, down along a cosine, then flat at a tenth. | Its first step isn't 0. It was, until somebody noticed. |
# | 257–288 | The loop: set the rate; every 2,000 steps evaluate, and write a checkpoint. | *Before* the step, so the file says: step k has yet to be made. |
# | 292–305 | The parts: forward under `ctx`, the loss divided by their number, the next batch fetched meanwhile, backward through the scaler. Gradients are exchanged on the last part only. | Divided by the number of parts: right here, where each place of each sequence has a target. |
# | 307–314 | Unscale, clip, step, update, zero. | The zero at the end instead of the beginning. The same order. |
# | 317–333 | Time, loss, a running mean of the MFU that leaves out the first five steps; stop after the last. | To read the loss makes the program wait for the GPU, so there is an interval for it; it is set to 1. |
#
# **Predict.** The checkpoint has six entries: model, optimizer, the model's sizes, the step, the best validation loss, and `config`. What is missing for a resume that is exact to the last bit? And what does a resumed run do in its first steps?

# %% tags=["hide-input"]
choice(
    "nanoGPT is stopped at step 10,000 and resumed. Which batches does it draw?",
    {
        "those that would have come next": "For that the generator's state would have to be in the file.",
        "those of its very first steps, once more": "The seed is set at the top, in every start. It is the `new_run` of this lesson. With 300 billion tokens drawn with replacement, a few seen twice hurt nobody; on a small corpus, with a run that is resumed every hour, it would train on the same hour for ever.",
        "others, at random": "They would be, if nobody set a seed. The line that makes a run reproducible is the one that repeats it.",
    },
    answer="those of its very first steps, once more",
)

# %% [markdown]
# The dice are missing, and the scaler's state, for float16. It is a choice and not a mistake: short, readable, and good enough for what it is for. Now you can say what the choice costs.

# %% [markdown]
# ## What you can now do
#
# [The lab](../release/07_training/07_training.ipynb) of this phase asks you to do it:
#
# - write a `Dataset` of tokenized text that gives (input_ids, target_ids), and the collate that pads it;
# - write the `DataLoader` around it: batches, dice, collating, and nothing read before its time;
# - find what is wrong with a loop that raises nothing;
# - write SGD and AdamW so that they agree with `torch.optim`, step for step;
# - schedule and clip; skip a step that isn't finite;
# - accumulate parts of any size to the gradient of the whole;
# - write a `GradScaler`;
# - stop anywhere and go on, equal in every bit;
# - write the whole loop, and prove by its curves that 16 bits and parts change nothing but rounding;
# - train a MiniGPT from nothing below the trigram and the 5-gram, and read the curves of runs that went wrong.
#
# And you can answer the question. A run is its weights, its optimizer's memory, its step, its dice and its place in the data (and a scaler, if it has one). What the next step depends on is in the file, or the run that goes on is another.

# %% [markdown]
# ## What this phase leaves out
#
# - **The Hugging Face `Trainer`**, which does all of this behind one call, and what it then hides. [Phase 08](08_transformer.ipynb#cell-id=the-trainer-once).
# - **Where the time goes** in a step, measured properly, and how to get it back. [Phase 09](09_profiling.ipynb#cell-id=total-and-self).
# - **More than one GPU**: how gradients are exchanged, and optimizers that are cut into shards. [Phase 10](10_distributed.ipynb#cell-id=who-holds-what).
# - **float8 training**, and optimizers that keep less (Adafactor, 8-bit Adam) or other things (Shampoo, Muon): the same loop, another line five.
# - **Which hyperparameters**: this phase makes sure that what you compare are two learning rates, and not a bug and a learning rate.

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
