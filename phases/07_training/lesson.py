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
# It takes an hour and a half. You need phase 02's gradients and phase 03's modules; of phase 06 there is one section, which you can read without it. Where a paragraph begins with **Predict**, settle on an answer before you look below it. Nothing here is graded, and everything here is used in the lab.

# %%
import math
import tempfile
import time
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

from utils.course import PHASES
from utils.drills import choice, number, true_false
from utils.minigpt import MiniGPT, MiniGPTConfig, baselines, evaluation_lines, generate, load_tokenizer, training_lines
from utils.progress_bar import progress_bar
from utils.views import adamw_explorer, course_path, fitted_line, gradient_ruler, loss_curves, schedule_clip

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
    losses = []
    for _ in range(steps):
        rows = torch.randint(len(inputs), (64,))
        run.optimizer.param_groups[0]["lr"] = 0.02 * min(1, (run.step + 1) / 10)
        loss = loss_of(run.model, inputs[rows], targets[rows])
        run.optimizer.zero_grad()
        loss.backward()
        run.optimizer.step()
        run.step += 1
        losses.append(loss.item())
    return losses


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
# The first loss after the pause, at step 81, is where it should be: it was computed with the weights of the file, before anything was changed. Then one step of the optimizer, and more than a nat is lost; it takes dozens of steps to get back to where the run had been. (A *nat* is a unit of loss: the logarithm is the natural one.)
#
# Twice more it went wrong, and of that the curve shows nothing. The resumed run saw the very batches again that it had seen in its first 80 steps. And even had the loss not jumped, it would have been another run.
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
def attempt(action):
    """Print what `action()` returns, or the first sentence of the refusal."""
    try:
        print(action())
    except Exception as error:
        print(f"{type(error).__name__}: {str(error).splitlines()[0][:150]}")


attempt(lambda: model(x_unseen).numpy().shape)
predicted = model(x_unseen).detach().numpy()
print("mean squared error on what it has not seen:", np.mean((predicted - y_unseen.numpy()) ** 2).round(3))

# %%
fitted_line((x_seen, y_seen), (x_unseen, y_unseen), lines)

# %% [markdown]
# `detach` gives the same bytes without the graph, and `numpy` the same bytes under NumPy's name; nothing is copied. The error settles near 0.09, on the points seen and on the others. That is the square of 0.3, the noise that we put in: whatever falls below it on the *seen* points is learnt by heart. (Live, move the slider and see the slope arrive before the intercept does, or after?)
#
# We wrote down `model.weight.item()` after each step. **Predict.** What if we had written down `model.weight.detach()`?

# %%
weights = []
for _ in range(3):
    weights.append(model.weight.detach())
    with torch.no_grad():
        model.weight += 1
print("noted:", *(f"{w.item():.2f}" for w in weights), "  in the same storage:", weights[0].data_ptr() == model.weight.data_ptr())

# %% [markdown]
# Three times the same tensor, and it shows what the weight is *now*. A note must be a number, or a `clone`. Remember this when it comes to checkpoints.
#
# Now the order. The first two lines make the graph and must come first. The other three can be arranged in six ways, and one can be forgotten.
#
# **Predict.** Which of these orders raise an error? Which learn nothing? Which is hardest to find?

# %%
def fit(order, steps=60):
    """The five lines, the last three in the order given: the losses, and the line that was found."""
    torch.manual_seed(0)
    model = nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    losses = []
    for _ in range(steps):
        loss = F.mse_loss(model(x_seen), y_seen)
        does = {"zero": optimizer.zero_grad, "backward": loss.backward, "step": optimizer.step}
        for line in order.split():
            does[line]()
        losses.append(loss.item())
    return losses, (model.weight.item(), model.bias.item())


for order in ("zero backward step", "backward step zero", "backward zero step", "zero step backward", "step zero backward", "backward step"):
    losses, (w, b) = fit(order)
    print(f"{order:20} y = {w:5.2f}x + {b:5.2f}   loss", *(f"{v:6.2f}" for v in losses[::12]))

# %% [markdown]
# None raises an error. `backward zero step` and `zero step backward` learn nothing at all: the optimizer always finds empty hands, and `step` passes over a parameter without a gradient in silence. The loss stands still to the last digit, and that is how you tell it from a learning rate that is too small.
#
# `step zero backward` is the sly one. It steps with the gradient of the *last* batch, at weights that have moved since; the first step does nothing, and the last gradient is never used. It learns almost as well, and nobody will ever look.
#
# `backward step` never forgets, as in phase 02: gradients add up, like a momentum without friction. The loss swings, and would swing for ever.
#
# Another mistake of the same family concerns shapes. **Predict.** The model's output is (48, 1). If y were (48,), what would be learnt?

# %%
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
print(f"y = {model.weight.item():.2f}x + {model.bias.item():.2f}   loss {loss.item():.2f}   mean of y {flat.mean():.2f}")
print(str(said[0].message)[:128], "…")

# %% [markdown]
# (48, 1) against (48,) is (48, 48), the broadcast of phase 01: each prediction is compared with every y. What suits all y best is their mean, and so that is what it learns, whatever x says. A loss that falls and then rests at the variance of the targets is the sign of it. `mse_loss` warns; your own `((a - b) ** 2).mean()` will not.

# %% tags=["hide-input"]
choice(
    "A loss falls from 6.4 to 6.1 in ten steps, and then is 6.0984 in each of the next hundred, to the last digit, with a new batch each time. What do you suspect first?",
    {
        "The learning rate is too small": "Then it would still change in its last digits, from batch to batch at least.",
        "The gradient is gone when `step` is called": "Even then the loss would differ between batches, since each has other words. The same loss for different data means that the data isn't different.",
        "The batches are all the same, or don't reach the loss": "Weights that stand still would give other losses on other batches. A constant loss needs constant weights *and* a constant batch: perhaps the loader is made anew for each step, with the same seed.",
    },
    answer="The batches are all the same, or don't reach the loss",
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
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
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
    print("targets padded with {:4}: loss shown {:.2f}, loss on the words {:.2f}".format(ignored, *quick(ignored)))

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
# In training the rest is often dropped, since a batch of three items has a loud gradient. In *validation* nothing may be dropped; and the mean of the batches' means is not the mean over all items, if the last is smaller. Sum up, and divide at the end.
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
# The last thing that a loader has are *workers*: processes that make batches ahead, while the model computes. Each of them is a copy of yours, with its own dice. In old advice you read that NumPy then draws the same numbers in every worker. **Predict.** Is that so today?
#
# (Workers are started by forking, on Linux, and a forked copy of a notebook that has computed with several threads may hang. So the next cell runs a script of its own, as your training will.)

# %%
import subprocess
import sys

SCRIPT = """
import random, numpy, torch
from torch.utils.data import DataLoader, Dataset, get_worker_info

class Dice(Dataset):
    def __len__(self):
        return 4
    def __getitem__(self, k):
        return f"item {k}, worker {get_worker_info().id}: {torch.rand(1).item():.3f} {numpy.random.rand():.3f} {random.random():.3f}"

if __name__ == "__main__":
    for epoch in range(2):
        print(*DataLoader(Dice(), batch_size=None, num_workers=2, generator=torch.Generator().manual_seed(epoch)), sep="\\n")
"""
(FOLDER / "dice.py").write_text(SCRIPT)
print(subprocess.run([sys.executable, FOLDER / "dice.py"], capture_output=True, text=True, check=True).stdout)

# %% [markdown]
# It is not. torch, NumPy's global functions and `random` are all seeded from that drawn seed, plus the worker's number. What still repeats is what nobody seeds for you: a `numpy.random.default_rng(0)` that your dataset made *before* the workers were forked. And what workers hide is time, and only the time of loading: as long as a batch is made faster than it is used, the model never waits.

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
# Now you know why the loss jumped. The file had the weights and not the optimizer. The new AdamW took its first step for *the* first step: 10,000 finely tuned weights went up or down by the full learning rate each, by the sign of one batch's gradient. The old one had a v that knew which weights are restless, and an m that had averaged the noise away.
#
# Here is one real weight on its way: the one that ties channel 3 of the hidden state to the word "hablé", in the first 120 steps.

# %%
torch.manual_seed(0)
model = MiniGPT(SMALL)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
gradients, norms = [], []
for _ in range(120):
    rows = torch.randint(len(inputs), (64,))
    loss = loss_of(model, inputs[rows], targets[rows])
    optimizer.zero_grad()
    loss.backward()
    gradients.append(model.lm_head.weight.grad[tokenizer.id("hablé"), 3].item())
    norms.append(torch.cat([p.grad.flatten() for p in model.parameters()]).norm().item())
    optimizer.step()

# %% [markdown]
# **Predict.** "hablé" stands in few sentences. What does its gradient look like, and what does AdamW make of a single large one: when is the step largest, and how long does it last?

# %%
adamw_explorer(gradients, step=60, name="the weight of “hablé”, channel 3")

# %% [markdown]
# Move β₂ to 0.9 and watch the last row: v forgets the last peak before the next one comes, and small gradients get full steps again. Move β₁ to 0, and the steps follow every twitch. Take the bias correction away: at the first steps m is a tenth of what it should be, but √v is only a thirtieth, and the quotient is three times too *large*.
#
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
    print(f"set_to_none={to_none!s:5}  {after_one:.4f} -> {p.item():.4f}   own step count {optimizer.state[p]['step']:.0f}")

# %% [markdown]
# Without a gradient a parameter is passed over: no step, no decay, and its own count stands still. A gradient of zeros is a gradient, and m goes on pushing. So the count belongs to the parameter, and is one of the things to save. Here is all that AdamW holds, and what it weighs.

# %%
state = optimizer.state_dict()
print(state["state"])
print({k: v for k, v in state["param_groups"][0].items() if k in ("lr", "betas", "eps", "weight_decay", "params")})

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
