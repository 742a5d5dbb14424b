# ---
# jupyter:
#   kernelspec: {display_name: Python 3, language: python, name: python3}
#   open_the_hood: {title: "Distributed"}
# ---

# %% [markdown]
# # Distributed
#
# So far a training was one process. From here on it is many, on many devices, and they share nothing: no variable, no lock, no byte of memory. All they have is messages. This lesson takes the big names apart, DDP, FSDP, tensor and pipeline parallelism, and finds in each of them the same few messages, in another order.
#
# It takes about two and a half hours, in two sittings. The first is about one big batch: messages, collectives, the ring, DDP; it ends at a resting place that says so. The second cuts the model, too, and then asks the real ones, and a thousand ranks. You need [phase 07](07_training.ipynb#cell-id=the-five-lines)'s training step, and from [phase 02](02_autograd.ipynb#cell-id=three-lines-by-hand) that a gradient is a sum over paths. Where a paragraph begins with **Predict**, settle on an answer before you look below it. Nothing here is graded, and everything here is used in the lab.
#
# No GPU is needed, and no second machine. Ranks are processes on your CPU, with *gloo*, the library by which PyTorch connects CPUs; or they are simulated, and then this is said. What 1,024 ranks would do is computed, from assumptions that stand beside it, and that is said, too.

# %%
import os

os.environ["CUDA_VISIBLE_DEVICES"] = ""  # all ranks of this lesson are processes on the CPU
os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn

from hood.learner.contents import PHASES
from utils.instruments.world import Deadlock, Each, Mismatch, run
from utils.instruments.world.gloo import NoGloo, over_gloo, show_over_gloo
from utils.instruments.world.processes import in_processes, torchrun
from utils.minigpt import load_minigpt, training_lines
from utils.notebook.drills import choice, number, true_false
from utils.views import course_path, memory_a_rank, message_lines, pipeline_gantt, ring_stepper

# %% [markdown]
# ## Where we are

# %%
course_path(PHASES, here=10)

# %% [markdown]
# The last phase. It stands on [phase 07](07_training.ipynb#cell-id=the-five-lines)'s training step, and it will need nearly everything else once: views and copies, the graph, hooks, the softmax in two passes.

# %% [markdown]
# ## Resumen en español
#
# Cada *rank* es un proceso con su número, y no comparte nada con los demás: solo hay mensajes. Las operaciones colectivas se emparejan por su **orden**, no por su nombre: quien cambia el orden suma peras con manzanas, y nadie avisa.
# El anillo suma n números entre N procesos enviando 2(N−1)/N·n por proceso, sean cuantos sean; lo que crece con N es la latencia.
# DDP: todos tienen todo y se suman los gradientes. FSDP: cada uno guarda un pedazo, y las capas se reúnen cuando hacen falta. Tensor: se corta la matriz. Pipeline: se cortan las capas, y se paga una burbuja.
# `find_unused_parameters` recorre el grafo desde lo que devuelve el *forward*: lo que no alcanza, lo da por terminado.

# %% [markdown]
# ## The question
#
# The price of a flat, from eight facts about the house and eight about the street. The model has a tower for each. The data lie in two files, for two processes, and each row of a file is a dict of its columns.

# %%
class Price(nn.Module):
    """Adds up what each tower makes of its column: {name: (N, 8)} -> (N, 1)."""

    def __init__(self):
        super().__init__()
        towers = {name: nn.Linear(8, 1, bias=False) for name in ("house", "street")}
        self.towers = nn.ModuleDict(towers)

    def forward(self, columns):
        return sum(self.towers[name](column) for name, column in columns.items())


# %%
dice = torch.Generator().manual_seed(10)
house, street = torch.randn(2, 512, 8, generator=dice)
worth = {"house": torch.linspace(0.4, 1.4, 8), "street": torch.linspace(0.9, 0.7, 8)}
price = (house @ worth["house"] + street @ worth["street"])[:, None]
files = [
    ({"house": house[:256], "street": street[:256]}, price[:256]),
    # another colleague wrote this one
    ({"street": street[256:], "house": house[256:]}, price[256:]),
]

# %% [markdown]
# Here is data parallelism in one hook. Each rank has a copy of the model and a file of its own. As soon as the gradient of a parameter is ready, it is averaged over the ranks: `dist.all_reduce` replaces the tensor at each rank by the sum over all of them. So nobody waits for the end of the backward: the first gradients are exchanged before the last are computed. Clever!

# %%
def train(rank, world, file, steps=60):
    """What each process runs. (rank: its number. world: how many there are.)"""

    def average(parameter):
        dist.all_reduce(parameter.grad)
        parameter.grad /= world

    torch.manual_seed(0)  # the same start for all
    model, (columns, price), losses = Price(), file, []
    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(average)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(steps):
        loss = F.mse_loss(model(columns), price)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, {name: tower.weight.detach() for name, tower in model.towers.items()}


# %% [markdown]
# It is run for real, in two processes of their own. (`in_processes` starts them, lets gloo connect them, brings back what they return, and ends them if they hang.)

# %%
trained = in_processes(train, 2, Each(files))
for rank, (losses, _) in enumerate(trained):
    print(f"rank {rank}: the loss goes", *(f"{losses[k]:.3f}" for k in (0, 5, 20, 59)))

# %% [markdown]
# No error, no warning, and the loss falls to a thirtieth of what it was, at both. **Predict.** Is the model good? Of what would you ask the ranks, to be sure? (Look once more at what each of the two processes does, line by line. They do not do the same.)
#
# To compare with: one process that has both files.

# %%
def fit(model, columns, price):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(60):
        loss = F.mse_loss(model(columns), price)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


def some(weights):
    return " ".join(f"{w:.2f}" for w in weights.flatten()[::2])


torch.manual_seed(0)
alone = Price()
print(f"one process: loss {fit(alone, {'house': house, 'street': street}, price):.6f}")

# %%
for name in worth:
    print(f"{name:6}  true:        {some(worth[name])}")
    print(f"        one process: {some(alone.towers[name].weight)}")
    for rank, (_, weights) in enumerate(trained):
        print(f"        rank {rank}:      {some(weights[name])}")

# %% [markdown]
# One process gets it exactly right. The two have learnt something in between, and not even the same.
#
# The second file names its columns in another order. So rank 1's forward visits the towers in another order, and its backward, too; its hooks fire in another order, and it calls the *same two* all-reduces the other way round. Nobody minds. An all-reduce doesn't know of which parameter it is; the first call at one rank meets the first call at the other. House was added to street: rank 0's house got the same updates as rank 1's street. And the losses fell, since half of each gradient was right.
#
# A bug like this one survives every test on one process, every look at the loss, and many a review. `for name in set_of_names` does it, too (the order of a set of strings is another in each process), and an `if` that depends on the data.
#
# > **What does a rank know of the others, what keeps them together; and how does one come from nothing but messages to one big batch and one big model?**

# %% [markdown]
# ## A rank is a program
#
# All processes run the *same* program. They differ in one number, the rank; besides, each knows the world, that is how many there are. There is no boss who deals out work: what rank 3 has to do, rank 3 works out by itself. To work this way is called SPMD, single program, multiple data.
#
# Real processes are slow to start and bad to watch. So in this lesson, and in the lab, a rank is mostly a *generator*: a function that stops at each `yield` and is resumed with an answer (in [phase 07](07_training.ipynb#cell-id=who-draws-the-dice) a lazy sampler was one). What it yields is a request to the network. **Predict.** Four ranks with this program, x is 1 everywhere. What does each return?

# %%
def chain(rank, world, x):
    if rank > 0:
        x = x + (yield "recv", rank - 1)
    if rank < world - 1:
        yield "send", rank + 1, x
    return x


outcome = run(chain, 4, torch.ones(1))
print(outcome.results)
for message in outcome.messages:
    print(f"{message.source} -> {message.to}: {message.bytes} bytes")

# %% [markdown]
# A running sum. Rank 3 had to wait for everybody, though no line says so: *receiving is waiting*, and nothing else orders the ranks.
#
# `run` is the network, and it is a simulation: it resumes whoever can go on, copies each tensor from one to the other, and notes what went where. It has no surprises, it takes a millisecond, and it can tell who waits for whom. But it is not a toy language. Each request has its counterpart in `torch.distributed`, and the same generator runs in real processes:

# %%
show_over_gloo(chain, 4, torch.ones(1))

# %% [markdown]
# There `yield "send", to, x` becomes `dist.send(x, to)`, and `yield "recv", source` becomes `dist.recv` into an empty tensor. (The receiver must know shape and dtype beforehand. Here they are sent ahead.)
#
# One thing a simulation can't forbid: its ranks live in one process, so a global list would be seen by all. Real ranks have no globals in common. What a rank needs comes in by its arguments or by a message.

# %% tags=["hide-input"]
true_false(
    "Rank 0 deals out the work; the others wait for its orders.", False,
    "Nobody gives orders. All run the same program and take their part of it by their own number. Rank 0 is special only where a program says `if rank == 0`.",
)

# %% [markdown]
# ## Send, receive, deadlock
#
# Two ranks want to exchange a tensor. **Predict.** What becomes of this?

# %%
def swap(rank, world, x):
    yield "send", 1 - rank, x
    got = yield "recv", 1 - rank
    return got


try:
    print(run(swap, 2, Each([torch.zeros(4), torch.ones(4)])).results)
except Deadlock as stuck:
    print("Deadlock:", stuck)
print(
    "with a buffer:", run(swap, 2, Each([torch.zeros(4), torch.ones(4)]), rendezvous=False).results
)

# %% [markdown]
# It depends on what sending means. In a *rendezvous* the sender waits until the receiver has come. Both send, nobody receives: they stand at the door for ever, and each lets the other go first. With a *buffer* somebody keeps the letter, the sender goes on, and all is well.
#
# **Predict.** And gloo, with sixteen bytes? Two seconds are allowed.

# %%
try:
    print(over_gloo(swap, 2, Each([torch.zeros(4), torch.ones(4)]), seconds=2))
except NoGloo as problem:
    print(problem)

# %% [markdown]
# A rendezvous, however small the tensor. Other networks keep small messages and wait with large ones, and that is the worst of all: the program runs in every test, and stands still with the real model. So a program may rely on the rendezvous only, and must be right under it. The simulation's default is this one.
#
# Four ranks in a circle, each gives its tensor to the next. All send and then receive; or rank 0 receives first; or only the even ones send first; or both are started at the same time. **Predict.** For each of the four ways: does it end, and after how many seconds, if a message takes one?

# %%
def shift(rank, world, x, how):
    to, source = [1, 2, 3, 0][rank], [3, 0, 1, 2][rank]
    if how == "exchange":
        return (yield "exchange", to, x, source)
    rule = {"all send first": True, "rank 0 waits": rank > 0, "evens first": rank % 2 == 0}
    sends_first = rule[how]
    if sends_first:
        yield "send", to, x
    got = yield "recv", source
    if not sends_first:
        yield "send", to, x
    return got


# %%
ways = {}
for how in ("all send first", "rank 0 waits", "evens first", "exchange"):
    try:
        ways[how] = run(shift, 4, torch.ones(1000), how, latency=1.0)
    except Deadlock as stuck:
        ways[how] = stuck

# %%
message_lines(ways)

# %% [markdown]
# Each rank is a line, time goes to the right, a slanted line is a message, amber is waiting. What is red will never happen, and its arrows say who waits for whom: they form a **circle**, and whoever waits in a circle waits for ever. A single rank that receives first breaks the circle, but then one message waits for the other, like dominoes: four seconds.

# %%
message_lines(ways, run="rank 0 waits")

# %% [markdown]
# If the even ones send first it is two.

# %%
message_lines(ways, run="evens first")

# %% [markdown]
# And *exchange*, which starts both and then waits for both (`isend` and `irecv` in PyTorch), takes one.

# %%
message_lines(ways, run="exchange")

# %% [markdown]
# A frequent deadlock has no `send` in it. **Predict.** A colleague wants the mean loss in the log, and only rank 0 writes a log.

# %%
def logged(rank, world, loss):
    if rank == 0:
        mean = (yield "all_reduce", loss, "sum") / world
        print("mean loss", mean.item())
    return loss


try:
    run(logged, 4, torch.ones(1))
except Deadlock as stuck:
    print("Deadlock:", stuck)
print("gloo would wait for", dist.distributed_c10d.default_pg_timeout)

# %% [markdown]
# A collective is a matter for all. If one rank doesn't call it, the others wait: in a cluster until the time is up, with 1,000 GPUs idle. And it doesn't take an `if`: a loader that has one batch more at one rank does it at the end of the epoch.

# %% tags=["hide-input"]
choice(
    "Three ranks in a circle. Rank 0 receives first, the others send first, in a rendezvous. What happens?",
    {
        "A deadlock: 3 is odd": "Evenness isn't what matters. It is enough that the circle of waiting is broken at one place.",
        "It ends, after three messages in a row": "Rank 2 can send to 0, then 1 to 2, and then 0 to 1. Each of them waits for the one before.",
        "It ends, and all three messages go at once": "Rank 0 sends only after it has received, so they can't.",
    },
    answer="It ends, after three messages in a row",
)

# %% [markdown]
# ## Collectives and what they cost
#
# Nearly all traffic of a training has one of five forms, in which all take part. **Predict.** Four ranks; rank r holds [r, 10·r]. What does each have after an all-gather, an all-reduce, a broadcast from rank 2? And after a reduce-scatter of a list of four?

# %%
def five(rank, world):
    x = torch.tensor([rank, 10 * rank])
    gathered = yield "all_gather", x
    total = yield "all_reduce", x, "sum"
    given = yield "broadcast", x if rank == 2 else None, 2
    mine = yield "reduce_scatter", [x + 100 * place for place in range(world)], "sum"
    yield ("barrier",)
    return torch.stack(gathered).tolist(), total.tolist(), given.tolist(), mine.tolist()


for rank, found in enumerate(run(five, 4).results):
    print(f"rank {rank}:", *found)

# %% [markdown]
# *Broadcast*: one has it, all get it. *All-gather*: each has a piece, all get all pieces, in the order of the ranks. *All-reduce*: each has a whole, all get the sum. *Reduce-scatter*: each has a whole, in as many pieces as there are ranks, and gets the sum of *one* piece, its own. *Barrier*: nothing is sent, but nobody goes on until all have come.
#
# Reduce-scatter is the least known, and the most useful. **Predict.** An all-gather of what came of a reduce-scatter: what is it?

# %%
def in_two(rank, world, x):
    mine = yield "reduce_scatter", list(x.chunk(world)), "sum"
    pieces = yield "all_gather", mine
    total = yield "all_reduce", x, "sum"
    return torch.equal(torch.cat(pieces), total)


print(run(in_two, 4, Each(torch.randn(4, 12))).results)

# %% [markdown]
# An all-reduce. Keep it in mind: it is how an all-reduce is done, and FSDP is what comes of it if one takes a walk between the two halves.
#
# Now the question's bug in three lines: collectives are matched by their order. **Predict.** a is 1 and b is 2 at rank 0, 10 and 20 at rank 1.

# %%
def reduces(rank, world, tensors):
    names = ["a", "b"] if rank == 0 else ["b", "a"]
    for name in names:
        tensors[name] = yield "all_reduce", tensors[name], "sum"
    return {name: tensor.tolist() for name, tensor in tensors.items()}


values = [{"a": torch.tensor([k]), "b": torch.tensor([2 * k])} for k in (1.0, 10.0)]
print(run(reduces, 2, Each(values)).results)
values[0]["b"], values[1]["b"] = torch.ones(3), torch.ones(3)
try:
    run(reduces, 2, Each(values))
except Mismatch as problem:
    print("Mismatch:", problem)

# %% [markdown]
# Only where the shapes differ does the simulation notice. (What PyTorch's own checking notices, we shall see at the end.)
#
# What does a message cost? Two numbers are enough for a good guess: the *latency* α, which it takes however small it is, and the *bandwidth* β, bytes a second. A message of n bytes takes α + n/β. With 10 µs and 50 GB/s, which is a good network card of today, the two parts are equal at half a megabyte: below that, count the messages; above it, count the bytes.
#
# **Predict.** Rank 0 has to tell seven others. How long does it take, in messages one after the other, if it tells all of them itself? And what is the fastest way that you can think of?

# %%
def play(rank, world, x, rounds):
    """rounds: lists of (from, to)."""
    for source, to in (pair for pairs in rounds for pair in pairs):
        if rank == source:
            yield "send", to, x
        elif rank == to:
            x = yield "recv", source
    return x


itself = [[(0, to)] for to in range(1, 8)]
helped = [[(0, 1)], [(0, 2), (1, 3)], [(0, 4), (1, 5), (2, 6), (3, 7)]]
told = {"rank 0 alone": run(play, 8, torch.ones(1000), itself, latency=1.0)}
told["with help"] = run(play, 8, torch.ones(1000), helped, latency=1.0)
message_lines(told, run="with help")

# %% [markdown]
# Whoever knows it helps to spread it. 1, 2, 4, 8: in each round twice as many know, and after ⌈log₂ N⌉ rounds all do. It is a *tree*. The rounds were written out by hand here; in the lab you find the rule, for any number of ranks and any source, and each rank has to work out by itself from whom it hears and whom it tells.
#
# For all-reduce there is a like trick, the *butterfly*: in round k each rank exchanges what it has with the rank whose number differs in bit k, and adds. After log₂N rounds all have the sum, and each has sent the whole tensor log₂N times. For a small tensor, and a power of two of ranks, nothing is faster. For a gradient of gigabytes, ten times the gigabytes on 1,024 ranks is bad news. There is a better way.
#
# (A program can be a part of another one: `total = yield from butterfly(rank, world, x)` would run it and have what it returns.)

# %% tags=["hide-input"]
number(
    "A broadcast by a tree to 1,000 ranks. How many rounds does it take?", 10,
    why="2⁹ = 512 are too few, 2¹⁰ = 1,024 are enough.",
    wrong={999: "That is one after the other, by rank 0 alone.", 9: "After nine rounds 512 know it.", 500: "In each round *all* who know it tell another."},
)

# %% tags=["hide-input"]
choice(
    "10 µs and 50 GB/s. You have to send 1,000 tensors of 4 KB each to the same rank. How much faster is it to send them as one?",
    {
        "Not at all: the bytes are the same": "The bytes take 80 µs in all. The 1,000 latencies take 10 ms.",
        "About a hundred times": "1,000 · (10 µs + 0.08 µs) is about 10 ms; 10 µs + 80 µs is 90 µs.",
        "A thousand times": "The bytes are still there: 80 µs of them.",
    },
    answer="About a hundred times",
)

# %% [markdown]
# ## The ring
#
# What is to be added up, in a training, is gradients. Here are some: those of MiniGPT's LM head, of four ranks, each with 128 words of real text.

# %%
gpt = load_minigpt()
x, y = training_lines()
kept = y[:64] != -100  # 64 lines, without what is no target
with torch.no_grad():
    hidden, targets = gpt.hidden(x[:64])[kept][:512], y[:64][kept][:512]
head = gpt.lm_head


def gradient(hidden, targets, reduction="mean"):
    """Of the loss in the LM head's weight: (600, 64)."""
    loss = F.cross_entropy(head(hidden), targets, reduction=reduction)
    return torch.autograd.grad(loss, head.weight)[0]


gradients = [gradient(h, t) for h, t in zip(hidden.chunk(4), targets.chunk(4))]
print(
    tuple(hidden.shape),
    [f"{g.norm():.3f}" for g in gradients],
    f"{gradients[0].nbytes:,} bytes each",
)

# %% [markdown]
# The first thought: all send theirs to rank 0, who adds, and tells the sum to all. Rank 0 receives N − 1 gradients, and its wire is what everybody waits for; with 1,024 ranks it is 1,023 gradients long.
#
# The cure: cut the tensor into N chunks, and let each rank be in charge of *one*. Put the ranks in a circle, and let each talk to its two neighbours only. In every step each rank passes one chunk on to its right, and adds what comes from its left to its own. **Predict**, before you move the slider. After the first step, whose numbers are in the chunk that rank 2 has just got? After how many steps is the first chunk complete, and at whom?

# %%
ring_stepper(gradients, step=0)

# %% [markdown]
# The strip below each number shows whose are in it. In the first step rank 2 gets what was rank 1's, and adds its own. A chunk starts somewhere, goes once around, and collects. This is how things stand after N − 1 = 3 steps:

# %%
ring_stepper(gradients, step=3)

# %% [markdown]
# Each rank has one complete chunk (green): that was the reduce-scatter. Then the complete chunks go around once more, and this time nothing is added, they replace what is there: the all-gather. After 2·(N − 1) = 6 steps all have all.
#
# Which chunk does rank r send in step s? Read it off the figure; it is one short expression, the same in both rounds, and it is the heart of the exercise.
#
# **Predict.** Now count. A tensor of n bytes, N ranks: how many bytes does a rank send in all? What becomes of that as N grows?

# %%
for n in (2, 3, 4, 8, 1024):
    steps, piece = 2 * (n - 1), 1 / n
    print(f"{n:5,} ranks: {steps * piece:.3f} times the tensor")

# %% [markdown]
# 2·(N − 1) steps with n/N bytes each (the figure counts them, too: live, move it to step 6). That is less than 2n, for *any* number of ranks; all wires are busy all the time, and no all-reduce sends less: of each number, every rank has to give away its own and get the sum. What does grow with N are the steps, each with its latency. Let us see who wins when, with α = 10 µs and β = 50 GB/s.

# %%
alpha, beta = 10e-6, 50e9


def milliseconds(messages, amount):
    return f"{1e3 * (messages * alpha + amount / beta):11,.2f}"


for size, name in ((4e3, "a norm, 4 KB"), (25e6, "a bucket, 25 MB"), (13.5e9, "a model, 13.5 GB")):
    print(f"{name:28} rank 0 adds   butterfly        ring   (ms)")
    for n, rounds in ((8, 3), (64, 6), (1024, 10)):
        alone = 2 * (n - 1), 2 * (n - 1) * size
        ring = 2 * (n - 1), 2 * (n - 1) / n * size
        costs = alone, (rounds, rounds * size), ring
        print(f"{n:>20,} ranks ", *(milliseconds(*cost) for cost in costs))

# %% [markdown]
# Small tensors want few rounds, large ones want few bytes. So libraries have several ways and choose by size: NVIDIA's NCCL has rings and trees. And *you* can choose, too: put many small tensors into one large one.
#
# One more thing about sums. **Predict.** Added in the order of the ranks 0, 1, 2, 3, or 1, 2, 3, 0: are these equal, bit for bit?

# %%
in_order = gradients[0] + gradients[1] + gradients[2] + gradients[3]
rotated = gradients[1] + gradients[2] + gradients[3] + gradients[0]
print(torch.equal(in_order, rotated), f"largest difference {(in_order - rotated).abs().max():.0e}")

# %% [markdown]
# [Phase 01](01_tensors.ipynb#cell-id=dtypes-how-a-number-becomes-bytes)'s rounding. In the ring, each chunk's sum begins at another rank, so an all-reduce isn't bit-equal to a loop over the ranks. But each chunk is summed up *once* and then copied: all ranks get the same bits. That is what counts. Copies of a model that are off by a bit are off by more in the next step.

# %% tags=["hide-input"]
number(
    "An all-reduce by a ring, 5 ranks, a tensor of 100 MB. How many MB does each rank send?", 160,
    why="2 · 4 steps with 20 MB each.",
    wrong={80: "That is one round; the sums have to come back to all.", 200: "100 MB twice would be the limit for endlessly many ranks.", 800: "Eight steps, but with a fifth of the tensor each."},
)

# %% [markdown]
# ## One big batch
#
# Data parallelism: every rank has the whole model, and its share of the batch. It is right if each step is the step that *one* process would have made with the big batch. **Predict.** The mean of the four gradients above, and the gradient of all 512 words together: how far apart?

# %%
big = gradient(hidden, targets)
mean = in_order / 4
length = big.norm()
print(f"equal shares: off by {(mean - big).norm() / length:.2g} of its length")
sizes = [300, 150, 50, 12]
parts = [gradient(h, t) for h, t in zip(hidden.split(sizes), targets.split(sizes))]
print(f"unequal shares: off by {(sum(parts) / 4 - big).norm() / length:.2g} of its length")
print("each share's own gradient:", *(f"{part.norm() / length:.1f}" for part in parts), "lengths")

# %% [markdown]
# Off by more than its own length. The mean of twelve words is mostly chance, 6.2 times as long as the mean of all, and it counts for a quarter here instead of a fortieth. [Phase 07](07_training.ipynb#cell-id=a-big-batch-in-pieces) all over: a mean of means is the mean only if all have the same number of words. There it was micro-batches, here it is ranks, and *the sum and the count* are what has to be added up. (DistributedDataParallel doesn't do that for you. It divides by the number of ranks, whatever they had, as we shall measure.) In the lab some shares are empty.
#
# Four conditions, then, and the replicas stay together for ever: the same start, the same gradients, the same optimizer, the same number of steps. So at the beginning rank 0's parameters *and buffers* are broadcast. Nothing is ever compared afterwards. (Buffers that a forward changes, such as running means, would drift apart all the same, for each rank sees other rows. Therefore DDP sends rank 0's anew before such a forward.)
#
# When may the reducing start? As soon as a gradient is final, and hooks say when that is. **Predict.** In which order do MiniGPT's parameters get ready?

# %%
ready, watched = [], load_minigpt()
for name, parameter in watched.named_parameters():
    parameter.register_post_accumulate_grad_hook(lambda parameter, name=name: ready.append(name))
F.cross_entropy(watched(x[:8]).flatten(0, 1), y[:8].flatten()).backward()
print(len(ready), "in all:", *ready[:4], "...", *ready[-3:])

# %% [markdown]
# From the back to the front, of course. The last layers are ready early, and can be sent while the first are being computed. The network works while the chip works: that is the *overlap*, and most of the art of DDP is about it.
#
# But with one message for each parameter there are many small ones. So gradients are copied into *buckets*, and a bucket goes when it is full. **Predict.** 400 gradients of 5 MB each get ready evenly over 400 ms of backward; 8 ranks, a ring, 100 µs of latency and 10 GB/s. When is it all over: with a bucket for each, with 25 MB, with everything in one?

# %%
def over_after(
    tensors_in_bucket, tensors=400, size=5e6, backward=0.4, ranks=8, latency=1e-4, bandwidth=1e10
):
    free = 0.0  # the network's clock
    for last in range(tensors_in_bucket, tensors + 1, tensors_in_bucket):
        starts = max(free, backward * last / tensors)
        steps = 2 * (ranks - 1)
        free = starts + steps * (latency + tensors_in_bucket * size / ranks / bandwidth)
    return free


for n in (1, 5, 20, 100, 400):
    print(f"{n:3} in a bucket, {5 * n:5,} MB: over after {1e3 * over_after(n):4.0f} ms")

# %% [markdown]
# Too small: latency. Too large: nothing to overlap with. PyTorch takes 25 MB, and 1 MB for the first, so that something travels early (we shall ask it); a bucket is closed by the gradient that takes it over its limit, so it may be larger. And the buckets have *one order for all ranks*: the list of parameters backwards, and later the order in which rank 0 saw them get ready. So the question's bug can't happen: a bucket that is full too early waits for its turn.
#
# A bucket that is *never* full is the other side of it. Whoever is in a bucket must get ready, or the whole bucket waits. **Predict.** Which of these parameters must not be in a bucket, or need care: a frozen one; one that is used in two places; one that this batch doesn't use?

# %%
class Switch(nn.Module):
    """Two uses of one layer, then a scale that is frozen; not every batch needs the last layer."""

    def __init__(self):
        super().__init__()
        self.first, self.again, self.second = (nn.Linear(4, 4, bias=False) for _ in range(3))
        self.again.weight = self.first.weight  # tied
        self.scale = nn.Parameter(torch.full((4,), 2.0), requires_grad=False)  # frozen

    def forward(self, x, both=True):
        hidden = self.again(self.first(x)) * self.scale
        return self.second(hidden) if both else hidden


# %%
model, fired = Switch(), []
print([name for name, _ in model.named_parameters()])
for name, parameter in model.named_parameters():
    if parameter.requires_grad:
        parameter.register_post_accumulate_grad_hook(
            lambda parameter, name=name: fired.append(name)
        )
for both in (True, False):
    model(torch.ones(1, 4), both).sum().backward()
    print(f"both={both}: ready", fired)
    fired.clear()

# %% [markdown]
# The *tied* one is one parameter: `parameters()` gives it once, its two paths are added by autograd, and its hook fires once, after both. No care needed, unless you list parameters in a way of your own. The *frozen* one never gets ready: it stays out of all buckets. Those two are known beforehand. The *unused* one is not. Whether `second` gets a gradient is decided by each forward, and perhaps not the same at each rank.
#
# There is one place where it can be known in time: after the forward, before the backward, the graph is there. Whoever isn't in it will not get ready. [Phase 02](02_autograd.ipynb#cell-id=pytorchs-own-graph) taught you to walk it.

# %%
def reached(output, model):
    """Names of the parameters that a backward from `output` will come to."""
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    found, todo = set(), [output.grad_fn]
    while todo:
        node = todo.pop()
        if hasattr(node, "variable"):  # an AccumulateGrad: the end of a path
            found.add(names[id(node.variable)])
        todo += [behind for behind, _ in node.next_functions if behind is not None]
    return found


print(reached(model(torch.ones(1, 4)), model))
print(reached(model(torch.ones(1, 4), both=False), model))

# %% [markdown]
# That is the heart of `find_unused_parameters=True`: after each forward DDP walks the graph from what the forward *returned*, and marks as ready whatever it doesn't reach. It costs a walk in each step. It sees only tensors that it can find in the returned value. And without it, an unused parameter is no error in the step in which it is unused, but in the next: that is why leaving the flag out "sometimes works". The last two we shall see happen.
#
# Last: accumulation, several micro-batches to a step. Adding commutes with adding, so nothing needs to travel before the last backward of a step: a reduce after each of four would send four times the bytes for the same sum. In DDP that is the context `no_sync()`.

# %% tags=["hide-input"]
choice(
    "DDP on 4 ranks; by mistake each rank draws its own random start, and DDP is told not to broadcast it. What will be seen?",
    {
        "An error at the first reduce": "Gradients of equal shapes are added, whatever weights they belong to.",
        "The four models train, and stay different for ever": "They make the same updates from different starts. Each loss falls for a while, as each gets gradients that were computed for others, too.",
        "They become equal after some steps": "Nothing pulls them together: what is averaged are gradients, not weights.",
    },
    answer="The four models train, and stay different for ever",
)

# %% tags=["hide-input"]
true_false(
    "DDP sends each gradient as soon as it is ready, one all-reduce for each parameter.", False,
    "It waits until a bucket is full. You will find the other story in many blog posts.",
)

# %% [markdown]
# **A resting place.** This is half of it, and a good place to stop for today. All ranks run one program; what they do together is matched by order alone; an all-reduce costs 2(N − 1)/N of the tensor, however many they are; and DDP is that, in buckets, during the backward. Exercises 1 to 4 of [the lab](../release/10_distributed/10_distributed.ipynb) ask for no more: a tree, a ring, what they cost, and DDP. The second half cuts what DDP leaves whole.

# %% [markdown]
# ## Who holds what
#
# DDP has a luxury: N copies of everything. And *everything* is more than the weights. With AdamW in float32 a parameter is 4 bytes of weight, 4 of gradient and 8 of the optimizer's memory. (With bfloat16 it is 2, 2 and 12, as one keeps the weight in float32 besides.) N ranks hold the same 16 bytes N times.
#
# So cut them. **Predict.** For 8 ranks, and one of the three to be cut into 8 shares: which one saves most? And what becomes harder by cutting which?

# %%
memory_a_rank(gpt, ranks=8)

# %% [markdown]
# (MB and GB are powers of ten in this lesson, as on data sheets; only the limits of DDP's buckets are counted in 2²⁰ bytes.) Live, move the ranks. From top to bottom:
#
# *ZeRO-1* cuts the optimizer's memory. Each rank updates its eighth of the weights, and then the new weights are gathered. A reduce-scatter of the gradients is enough for that, and reduce-scatter and all-gather are the two halves of the all-reduce: it costs *not a byte more* than DDP. *ZeRO-2* keeps no more of the gradients than the own share, either. *FSDP*, or ZeRO-3, cuts the weights, too. That is another matter: to compute with a layer one needs all of it.
#
# So a layer is gathered when it is needed, and let go afterwards. That is the green part: one unit's weights, and in the backward its whole gradient, too, until that is summed up and cut. (The lab's plan asks for the weights alone.)

# %%
def sharded_linear(rank, world, own_rows, x):
    """The forward of a linear layer of which each rank holds some rows."""
    rows = yield "all_gather", own_rows
    whole = torch.cat(rows)  # there for as long as this layer computes
    return x @ whole.T


outcome = run(sharded_linear, 4, Each(head.weight.detach().chunk(4)), hidden)
print(torch.equal(outcome.results[3], hidden @ head.weight.detach().T))
print(f"a rank holds {head.weight.nbytes // 4:,} bytes, and for a moment {head.weight.nbytes:,}")

# %% [markdown]
# In the backward the same layer is needed again, and is gathered again. Out comes a gradient of the *whole* layer, of each rank's own words. Where does it have to go? **Predict.** What is the backward of an all-gather? (The backward of a linear map A is its transpose B, for which ⟨A x, y⟩ = ⟨x, B y⟩ for all x and y. So a guess can be tested.)

# %%
def adjoint(rank, world, x, y):
    gathered = torch.cat((yield "all_gather", x))
    back = yield "reduce_scatter", list(y.chunk(world)), "sum"
    return (gathered * y).sum().item(), (x * back).sum().item()


dice = torch.Generator().manual_seed(1)
xs, ys = torch.randn(4, 3, generator=dice).double(), torch.randn(4, 12, generator=dice).double()
forward, backward = zip(*run(adjoint, 4, Each(xs), Each(ys)).results)
print(f"{sum(forward):.12f} {sum(backward):.12f}")

# %% [markdown]
# A reduce-scatter. Everybody got my piece; so everybody has a gradient for it, and paths add. What was one tensor used N times in [phase 02](02_autograd.ipynb#cell-id=leaves-and-gradients-that-add-up) is one shard used at N ranks.
#
# So FSDP's step is: all-gather each layer forward, all-gather each layer backward, reduce-scatter each gradient, and let the optimizer work on shares. **Predict.** DDP sends 2(N − 1)/N times the model's bytes. How much does FSDP send?

# %%
for n in (2, 8, 64, 1024):
    once_around = (n - 1) / n
    print(f"{n:5,} ranks: DDP {2 * once_around:.2f}, FSDP {3 * once_around:.2f} times the model")

# %% [markdown]
# Three times (N − 1)/N: half as much again. That is the price; it can be paid while the layer before computes. (`reshard_after_forward=False` keeps what was gathered in the forward: two thirds of the traffic, and the weights of all layers at the backward's start.)
#
# The layers are gathered in *units*, mostly a block each. **Predict.** What becomes of the last bar if there is only one unit, the whole model?

# %%
memory_a_rank({"the whole model": sum(p.numel() for p in gpt.parameters())}, ranks=8)

# %% [markdown]
# Then everything is there at once, and little is won. With units as small as a layer there are more and smaller messages. A block is the usual compromise.
#
# And what doesn't divide evenly? There are two ways to cut. PyTorch's `fully_shard` cuts each parameter by rows, with `torch.chunk`, so that a share is still a matrix (it was done so above). **Predict.** Five rows over four ranks?

# %%
print(
    [len(piece) for piece in torch.arange(5).chunk(4)],
    [len(piece) for piece in torch.arange(600).chunk(7)],
)

# %% [markdown]
# Two, two, one; and the fourth rank has nothing, and must take part all the same. An empty share is no excuse to leave out a collective. The other way is that of FSDP's first version, and of the lab: make it *flat*, fill it up with zeros until the number of ranks divides it, and cut. All shares are equal then, as an all-gather wants them, whatever the shape; but a share has no rows any more. The memory figure counts in this way.
#
# That an optimizer can work on shares at all is luck, or rather: AdamW treats each number by itself. What doesn't? Clipping by the global norm, for one. It needs a sum over *all* gradients, and so a small all-reduce: of one number, the squares.

# %% tags=["hide-input"]
number(
    "AdamW in float32, ZeRO-1 on 4 ranks. How many bytes does a rank hold for each parameter?", 10,
    why="4 for the weight, 4 for the gradient, and 8/4 of the optimizer's memory.",
    wrong={4: "That would be all 16 cut, as in FSDP.", 16: "That is DDP.", 12: "The optimizer has two numbers, 8 bytes, and of these a quarter."},
)

# %% [markdown]
# ## The LM head cut two ways
#
# So far each rank had its own words, and sooner or later the whole layer. *Tensor parallelism* cuts the product itself, and the layer never comes together. The running example of this course is made for it: a product with a table of 600 × 64. One can cut the 600, or the 64.
#
# By the **600**: each of four ranks has all of the input and 150 words of the vocabulary. (In the literature this is the *column* split, for there the table is written 64 × 600, input times output.) By the **64**: each rank has 16 numbers of each input, and the 16 columns of the table that belong to them (there: *rows*). **Predict.** What does a rank have after its product, in each case? What must be sent so that all have all logits? And which of the two is bit-equal to the uncut one?

# %%
weight, bias = head.weight.detach(), head.bias.detach()
uncut = hidden @ weight.T
by_words = [hidden @ rows.T for rows in weight.chunk(4)]  # what each of four ranks computes
by_inputs = [h @ columns.T for h, columns in zip(hidden.chunk(4, dim=-1), weight.chunk(4, dim=-1))]
print("a rank has", tuple(by_words[2].shape), "or", tuple(by_inputs[2].shape))
wholes = {"by words": torch.cat(by_words, dim=-1), "by inputs": sum(by_inputs)}
for name, whole in wholes.items():
    off = (whole - uncut).abs().max()
    print(f"{name:9}: equal {torch.equal(whole, uncut)}, off by {off:.0e}")

# %% [markdown]
# Cut by words, each rank has *some of the logits, complete*: they only have to be put side by side. Each of them is the same sum of 64 products as before. Cut by inputs, each rank has *all of the logits, incomplete*: a part of the sum for each. They have to be added, and sums in another order are rounded otherwise. So it is an all-gather of 150 logits for each word of the text, or an all-reduce of 600. (Where does the bias go? Each rank has the bias of its own 150 words in one case. In the other it must come in once, and not four times. And bit-equality of the first is what this machine's kernels give for these shapes, and nobody's promise.)
#
# And 512 × 600 logits are sent, just to get one loss of them. With a real vocabulary of 128,000 words nobody does that. **Predict.** The loss of a word is log Σ exp(logit) − the target's logit. What does each rank have to tell the others about its 150 logits, so that all know the loss? How many numbers is that?
#
# A first attempt: each tells the sum of its exp, and these are added up.

# %%
for logits in (torch.tensor([1.0, 2.0, 3.0, 4.0]), torch.tensor([1.0, 2.0, 3.0, 100.0])):
    told = [half.exp().sum() for half in logits.chunk(2)]
    print("from what was told:", sum(told).log().item(), " right:", logits.logsumexp(0).item())

# %% [markdown]
# It works until a logit is large. So there are three numbers: a rank's largest logit, the sum of its exp relative to that, and the target's logit if it is one of its words (else 0). You know the first two from [phase 05](05_custom_op.ipynb#cell-id=one-pass-or-three), where the online softmax rescaled its sum whenever the maximum grew: two parts of a row with maxima m₁, m₂ and sums l₁, l₂ have the maximum m = max(m₁, m₂) and the sum l₁·exp(m₁ − m) + l₂·exp(m₂ − m).
#
# In the lab you write this loss, with its gradient: three numbers a word on the wire in place of 600.
#
# Now the trick that made it popular (the lab does without it). A transformer's MLP is two products with a GELU between them. **Predict.** The first cut by outputs, the second by inputs: how many collectives are there, and where? And the other way round?

# %%
mlp = gpt.blocks[0].mlp
up_w, up_b, down_w, down_b = (p.detach() for p in mlp.parameters())


def parallel_mlp(rank, world, x, up_w, up_b, down_w, down_b):
    own = F.gelu(x @ up_w.T + up_b, approximate="tanh")  # its share of the hidden numbers
    return down_b + (yield "all_reduce", own @ down_w.T, "sum")


cut = Each(up_w.chunk(4)), Each(up_b.chunk(4)), Each(down_w.chunk(4, dim=1))
outcome = run(parallel_mlp, 4, hidden, *cut, down_b)
print(
    len(outcome.collectives),
    "collective; off by",
    f"{(outcome.results[0] - mlp(hidden)).abs().max():.0e}",
)
a, b = torch.tensor(1.0), torch.tensor(-2.0)
print(f"gelu(a + b) = {F.gelu(a + b):.3f}, gelu(a) + gelu(b) = {F.gelu(a) + F.gelu(b):.3f}")

# %% [markdown]
# One, at the end. The numbers between are cut between the ranks, each complete where it is, and a GELU asks for one number at a time. The other way round the first product gives parts of sums, and a GELU of parts is not the GELU of the sum: one would have to reduce before it and gather after it. Attention goes the same way, since heads are independent: cut query, key and value by heads, the output by inputs.
#
# So there are two all-reduces in a block's forward, and two in its backward (where does x's gradient come from? from all ranks, and paths add). But look at where they are: nothing can be computed before they are done. There is no overlap as in DDP. Tensor parallelism is for ranks with fast wires between them, the eight in one box.

# %% tags=["hide-input"]
number(
    "Rank 0's largest logit is 2, and the sum of its exp(logit − 2) is 3. Rank 1's largest is 0, with a sum of 5. What is the sum relative to the common maximum? (e⁻² = 0.135)", 3.68, tolerance=0.02,
    why="The maximum is 2. Rank 0's sum stays 3, rank 1's shrinks to 5 · 0.135.",
    wrong={8: "They are relative to two different maxima.", 5.41: "The other way round: the smaller maximum is brought up to the larger."},
)

# %% tags=["hide-input"]
choice(
    "The head is cut by words, and every rank knows the whole input x. How does each get the gradient in x?",
    {
        "It has it: x was whole": "It has the part that comes from its own 150 words.",
        "From an all-reduce": "x is used at all ranks, once for each share of the words, and paths add.",
        "From an all-gather": "The parts are not beside each other. Each is a gradient for all of x, and they are to be added.",
    },
    answer="From an all-reduce",
)

# %% [markdown]
# ## The pipeline and its bubble
#
# The fourth way cuts between layers. Stage 0 has the first blocks, stage 1 the next, and what goes from one to the other is the stream of activations: small, and from neighbour to neighbour. The price is another one. A *schedule* is for each stage the list of what it does, in order: F2 is the forward of the batch's piece 2, B2 its backward. **Predict.** Three stages, and each piece goes through them and back before the next one comes. What part of the time is a stage idle?

# %%
def of(words):
    return [(word[0], int(word[1:])) for word in words.split()]


one_by_one = [of("F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 F5 B5 F6 B6 F7 B7")] * 3
pipeline_gantt({"one by one": one_by_one})

# %% [markdown]
# Two thirds: while one works, the others wait. (A forward counts as one unit of time, a backward as two.) So stage 0 begins with the second *micro-batch* while stage 1 has the first. **Predict.** All forwards, then all backwards: what is idle now, and where?

# %%
all_forward = "F0 F1 F2 F3 F4 F5 F6 F7 B0 B1 B2 B3 B4 B5 B6 B7"
schedules = {
    "one by one": one_by_one,
    "GPipe": [of(all_forward)] * 3,
    "1F1B": [
        of("F0 F1 F2 B0 F3 B1 F4 B2 F5 B3 F6 B4 F7 B5 B6 B7"),
        of("F0 F1 B0 F2 B1 F3 B2 F4 B3 F5 B4 F6 B5 F7 B6 B7"),
        of("F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 F5 B5 F6 B6 F7 B7"),
    ],
}
pipeline_gantt(schedules, schedule="GPipe")

# %% [markdown]
# That is *GPipe*. What is grey is the **bubble**. Each stage works for M forwards and M backwards, and the whole lasts as long as M + S − 1 of both, since the last stage begins S − 1 later, and at the end the first one is done S − 1 later. So the idle share is (S − 1)/(M + S − 1), whatever a backward takes (live, move the slider).

# %% tags=["hide-input"]
number(
    "8 stages. How many micro-batches are needed, at least, for a bubble below 10 %?", 64,
    why="7/(M + 7) is below a tenth where M is above 63.",
    wrong={63: "7/70 is a tenth exactly.", 70: "That is M + 7.", 71: "7 of 71 would be idle in relation to working."},
)

# %% [markdown]
# What speaks against a thousand micro-batches? Small ones use a chip badly, and in GPipe there is another reason: at the turn a stage remembers the activations of *all* of them. Now look at *1F1B*: one forward, one backward. A backward is done as soon as one is possible, and then they alternate. **Predict.** Is its bubble smaller?

# %%
pipeline_gantt(schedules, schedule="1F1B")

# %% [markdown]
# It isn't, not by a unit. What it saves is memory: stage s remembers at most S − s micro-batches, however many there are. Since memory no longer grows with M, M may be large, and *that* makes the bubble small.
#
# Watch what the three stages do differently at the beginning, and find the rule for S stages: the lab asks for it. A schedule can stand still, too, if a stage wants to see a forward before a backward that this forward has to wait for: the same circle as with four ranks that all send first.

# %% tags=["hide-input"]
true_false(
    "1F1B has a smaller bubble than GPipe, since the backwards start earlier.", False,
    "They start earlier and the forwards end later. The first stage still waits for the first backward to come back, and that takes as long as before.",
)

# %% [markdown]
# ## The real ones
#
# All of this exists, of course, and now you can look at it as somebody who knows what must be inside. Each of the next cells starts real processes. First `DistributedDataParallel(module)`: it calls the module, and its hooks fill the buckets and reduce them. Two ranks, the LM head, and the 512 words of above. **Predict.** Equal shares, then 450 and 62 words: how far is its gradient from that of the big batch?

# %%
from torch.nn.parallel import DistributedDataParallel as DDP


def gradient_of_ddp(rank, world, head, hidden, targets):
    ddp = DDP(head)  # by a name: its hooks live as long as it does
    F.cross_entropy(ddp(hidden), targets).backward()
    return head.weight.grad


for name, sizes in (("equal", [256, 256]), ("unequal", [450, 62])):
    shares = Each(hidden.split(sizes)), Each(targets.split(sizes))
    found = in_processes(gradient_of_ddp, 2, head, *shares)[0]
    print(f"{name:8} shares: off by {(found - big).norm() / length:.2g} of its length")

# %% [markdown]
# It divides by the number of ranks, so the big batch comes out only for equal shares.
#
# Next, its buckets: eight layers of 400 × 400 and a limit of 1 MB (`bucket_cap_mb`). `reduced_buckets` lists how many numbers each bucket has that is sent; it uses DDP's *communication hook*, which is made for compressing gradients. **Predict.** How many buckets go in the first step, how many in the second, and how many in `no_sync()`?

# %%
from utils.instruments.world.observed import collectives, reduced_buckets


def buckets_of_ddp(rank, world):
    net, told = nn.Sequential(*(nn.Linear(400, 400) for _ in range(8))), {}
    ddp = DDP(net, bucket_cap_mb=1)
    buckets = reduced_buckets(ddp)
    for name in ("step 0", "step 1", "in no_sync"):
        with ddp.no_sync() if name == "in no_sync" else torch.enable_grad():
            ddp(torch.randn(3, 400)).sum().backward()
        told[name] = list(buckets)
        buckets.clear()
    return told, dist._DEFAULT_FIRST_BUCKET_BYTES, DDP(nn.Linear(1, 1)).bucket_bytes_cap


print(*in_processes(buckets_of_ddp, 2)[0], sep="\n")

# %% [markdown]
# The first step reduces one big bucket, in the order of the list; then it has seen in which order gradients *really* get ready, at rank 0, tells it to all, and builds the buckets anew. In `no_sync` nothing goes. (The last two numbers are the limits that it has by default, in bytes: of the first bucket, and of the others.)
#
# **Predict.** Somebody adds 1 to the weights at rank 1 only, and 60 steps follow: by what do the ranks differ? And what does DDP make of the question's two files, with two different starts besides?

# %%
def real_ddp(rank, world, files):
    changed = DDP(nn.Linear(4, 4))
    with torch.no_grad():
        changed.module.weight += rank
    fit(changed, torch.ones(8, 4), torch.ones(8, 4))
    torch.manual_seed(rank)  # not even the same start
    prices = DDP(Price())
    fit(prices, *files)
    return changed.module.weight.detach(), prices.module.towers["house"].weight.detach()


(at_0, house_0), (at_1, house_1) = in_processes(real_ddp, 2, Each(files))
print(f"rank 1's weights less rank 0's, at the end: {(at_1 - at_0).mean():.3f}")
print(f"house, at both: {some(house_0)} | {some(house_1)}")

# %% [markdown]
# Whoever changes weights at one rank has changed the model there for good. And on the two files it learns the right prices, in spite of their orders, and of the two starts: rank 0's was broadcast.
#
# Now `find_unused_parameters`, which is told to DDP when it is made, on `Switch`: the model of which some batches don't need the layer `second`. Seven trials, at two ranks:
#
# | | the forward returns | `second` is used by | the flag | steps |
# |---|---|---|---|---|
# | A | the tensor | nobody | no | 1 |
# | B | the tensor | nobody | no | 2 |
# | C | the tensor | nobody | yes | 2 |
# | D | the tensor | rank 0 | yes | 2 |
# | E | a dict with it | nobody | yes | 2 |
# | F | an object of another class with it | nobody | yes | 2 |
# | G | the same | both | no | 2 |
#
# **Predict.** Which of them end in an error, and in which step? (`Returns` calls a model and wraps what comes of it; `tensor_in` takes it out again. A trial says how long the gradient of `second` is at rank 1, or where there was an error, and which.)

# %%
from utils.instruments.world.observed import Returns


def trial(rank, world, kind, users, find, steps):
    torch.manual_seed(0)
    ddp = DDP(Returns(Switch(), kind), find_unused_parameters=find)
    try:
        for step in range(steps):
            returned = ddp(torch.ones(2, 4) * (1 + rank + step), rank in users)
            ddp.module.tensor_in(returned).sum().backward()
        grad = ddp.module.inside.second.weight.grad
        return f"ok; gradient of second: {None if grad is None else round(grad.norm().item(), 2)}"
    except RuntimeError as problem:
        return f"step {step}: {str(problem).split('.')[0]}"


# %% [markdown]
# And the table once more, for Python:

# %%
trials = {
    "A": ("tensor", (), False, 1), "B": ("tensor", (), False, 2), "C": ("tensor", (), True, 2),
    "D": ("tensor", (0,), True, 2), "E": ("dict", (), True, 2), "F": ("object", (), True, 2),
    "G": ("object", (0, 1), False, 2),
}  # fmt: skip
for name, how in trials.items():
    print(name, in_processes(trial, 2, *how)[1])

# %% [markdown]
# Here is the answer to "sometimes works". *Without* the flag (A, B) a parameter that gets no gradient leaves its bucket unfinished; the step itself notices nothing, and the next forward complains. So it works in a test of one step; it works for a model whose branch is taken in every batch, until the first one in which it isn't; and then the error stands at an innocent batch.
#
# *With* the flag it works where the walk begins at the right place. It finds tensors in lists, tuples, dicts and dataclasses (E). In an object of any other class (F) it finds none, takes *all* parameters for unused and calls them ready; and when their gradients come after all, they are ready twice. The same model without the flag is fine (G). (And in D rank 1, which didn't use `second`, got a gradient for it: rank 0's, divided by two. To take part with zeros is to be averaged with zeros.)
#
# What it doesn't do is mend anything: it only tells the buckets not to wait. Nor does it help whoever runs out of memory, as is often tried: the buckets have a place for every parameter with and without it, and what it adds is a walk.
#
# FSDP next. `fully_shard(module)` is applied to each block, and to the model around them: each becomes a unit. Parameters become *DTensors*, tensors that know how they lie on a *mesh* of ranks (here a row of four); `to_local()` is a rank's own share, `full_tensor()` gathers it. `CommDebugMode` counts the collectives. **Predict.** MiniGPT has 179,544 parameters. How many does each of four ranks hold? How many all-gathers and reduce-scatters are there in a forward and backward, with three units (two blocks and the rest)?

# %%
import warnings

from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Replicate, Shard, distribute_tensor, init_device_mesh
from torch.distributed.tensor.debug import CommDebugMode


def real_fsdp(rank, world, tokens, words, reshard):
    warnings.simplefilter("ignore")  # of hooks on modules whose input needs no gradient
    model, mesh = load_minigpt(), init_device_mesh("cpu", (world,))
    for unit in (*model.blocks, model):
        fully_shard(unit, mesh=mesh, reshard_after_forward=reshard)
    with CommDebugMode() as comms:
        F.cross_entropy(model(tokens).flatten(0, 1), words.flatten()).backward()
    grad = torch.cat([p.grad.full_tensor().flatten() for p in model.parameters()])
    optimizer = torch.optim.AdamW(model.parameters())
    optimizer.step()
    m = sum(state["exp_avg"].to_local().numel() for state in optimizer.state.values())
    return sum(p.to_local().numel() for p in model.parameters()), m, grad, collectives(comms)


# %% [markdown]
# It is compared with one process that has all 16 lines. (What fills up a line is predicted, too, so that the ranks' shares are equal.)

# %%
tokens, words = x[:16, :-1], x[:16, 1:]
loss = F.cross_entropy(gpt(tokens).flatten(0, 1), words.flatten())
whole = torch.cat([grad.flatten() for grad in torch.autograd.grad(loss, list(gpt.parameters()))])
for reshard in (None, False):  # None is the default
    shares = Each(tokens.chunk(4)), Each(words.chunk(4))
    held, m, grad, sent = in_processes(real_fsdp, 4, *shares, reshard)[0]
    print(
        f"held {held:,}, in AdamW's m {m:,}; off by {(grad - whole).norm() / whole.norm():.0e} of "
        f"its length; sent {sent}"
    )

# %% [markdown]
# A quarter of the weights, a quarter of the optimizer's memory, and the gradient of the big batch to rounding. Each unit's gradient was reduce-scattered once; the blocks were gathered twice, in the forward and again in the backward, but the outermost unit only once: it is the last to be used and the first to be needed again, and so it isn't let go. With `reshard_after_forward=False` (the second line) that holds for all.
#
# A DTensor can be cut as you like: `Shard(0)` by rows, `Shard(1)` by columns, `Replicate()` not at all. `distribute_tensor` cuts a tensor, `redistribute` cuts it in another way. **Predict.** The LM head by words and by inputs once more: what does multiplying send, and what does it take to make the result whole?

# %%
def real_cuts(rank, world, hidden, weight, cut, x_cut):
    """The LM head as DTensors: where the result lies, and what was sent for it."""
    mesh = init_device_mesh("cpu", (world,))
    w, x = distribute_tensor(weight, mesh, [cut]), distribute_tensor(hidden, mesh, [x_cut])
    with CommDebugMode() as multiplied:
        out = F.linear(x, w)
    with CommDebugMode() as gathered:
        out.redistribute(mesh, [Replicate()])
    return str(out.placements), collectives(multiplied), collectives(gathered)


for name, *cuts in (("by words", Shard(0), Replicate()), ("by inputs", Shard(1), Shard(1))):
    print(f"{name:9}", *in_processes(real_cuts, 4, hidden, weight, *cuts)[0])

# %% [markdown]
# The placements say what you worked out above: `Shard(1)` is complete in pieces, `Partial(sum)` is all of it, incomplete; multiplying sends nothing; and to make it whole is an all-gather in one case and an all-reduce in the other. A DTensor is [phase 04](04_dispatcher.ipynb#cell-id=tensors-that-answer)'s idea once more: a subclass that answers `__torch_dispatch__`, knows for each operator what comes out of which placements, and calls a collective where it must.
#
# At last, how it is really started. A training is a script, and `torchrun` runs it in as many processes as asked for, and tells each by the environment who it is. This one has the question's bug, under the strictest checking that PyTorch has, `TORCH_DISTRIBUTED_DEBUG=DETAIL`. **Predict.** What will that say about two all-reduces in another order? And about two of unequal shapes?

# %%
script = """
import os, torch, torch.distributed as dist
os.environ["TORCH_DISTRIBUTED_DEBUG"] = "DETAIL"
dist.set_debug_level_from_env()
dist.init_process_group("gloo")  # rank, world and address come from the environment
rank, told = dist.get_rank(), []
a, b = torch.tensor([1.0 + 9 * rank]), torch.tensor([2.0 + 18 * rank])
for tensor in (a, b) if rank == 0 else (b, a):
    dist.all_reduce(tensor)
told.append(f"a = {a.item():g}, b = {b.item():g}")
try:
    dist.all_reduce(torch.ones(2 + rank))
except RuntimeError as problem:
    told.append(str(problem).split('.')[0])
os.write(1, f"rank {os.environ['RANK']} of {os.environ['WORLD_SIZE']}: {told}\\n".encode())
"""
print(*sorted(torchrun(script, 2).splitlines()), sep="\n")

# %% [markdown]
# (The command was `torchrun --nnodes=1 --nproc-per-node=2 --master-addr=127.0.0.1 --master-port=… script.py`. On many machines it is the same script, with `--nnodes` and the address of the first.)
#
# Unequal shapes are found, and named. The order is not. It compares kind, shape and dtype of what the ranks call, and those agree. *This can't be checked from outside*: an all-reduce has no name. What helps is one order, fixed for all ranks, as in DDP's buckets; and to compare now and then, say a checksum of the weights at each rank.

# %% [markdown]
# ## Eight ranks, 64, 1,024
#
# You can now compute what nobody can try at home. A model of 7 billion parameters in bfloat16 with AdamW, a batch of 4 million tokens in each step, and these assumptions: a device has 80 GB, and of its peak of 989 TFLOP/s it reaches 40 % (an H100's data sheet, and a good MFU); eight of them are in a box with 450 GB/s each, and between boxes each has 50 GB/s; a message takes 10 µs. Nothing here was measured.
#
# **Predict**, before anything else: on which numbers of ranks does DDP fit at all?

# %%
block = 4 * 4096**2 + 3 * 4096 * 11008 + 2 * 4096
seven = {
    "embedding": 32000 * 4096,
    **{f"block {k}": block for k in range(32)},
    "head": 32000 * 4096 + 4096,
}
memory_a_rank(seven, ranks=64, precision="bfloat16", limit=80e9)

# %% [markdown]
# On none. DDP needs the same 108 GB on 8 ranks as on 1,024, and no number of ranks ever helps. From ZeRO-1 on it does.
#
# Then time. A step needs 6 · parameters · tokens FLOPs ([phase 07](07_training.ipynb#cell-id=time-on-a-napkin)), shared by all ranks. What is sent *can* be hidden behind it, if it takes less: the step takes the longer of the two. **Predict.** From 64 to 1,024 ranks, 16 times as many: how many times faster is a step of FSDP?

# %%
weights, tokens, flops_a_second = sum(seven.values()), 4 * 2**20, 0.4 * 989e12
print(f"{weights:,} parameters; of a step at each rank, in seconds:")
print("ranks   computing   ZeRO-1 sends   FSDP sends   of it latency   FSDP's step")
for ranks, bandwidth in ((8, 450e9), (64, 50e9), (1024, 50e9)):
    computing = 6 * weights * tokens / ranks / flops_a_second
    # every weight once around the ring
    round_of_all = (ranks - 1) / ranks * 2 * weights / bandwidth
    latencies = 3 * len(seven) * (ranks - 1) * 10e-6  # three collectives for each unit
    zero = 2 * round_of_all + 2 * len(seven) * (ranks - 1) * 10e-6
    fsdp = 3 * round_of_all + latencies
    print(
        f"{ranks:5,} {computing:11.2f} {zero:14.2f} {fsdp:12.2f} {latencies:15.2f} "
        f"{max(computing, fsdp):13.2f}"
    )

# %% [markdown]
# Eight ranks compute for most of a minute and have nothing to fear from their wires. 64 are eight times as fast. But at 1,024 it is 3.6 times, and not 16: the ranks have 4,096 tokens each, done in less than half a second, while the bytes are *as many as before*: what a rank sends hardly depends on how many there are. And a ring of 1,023 steps for every block adds a second of nothing but latency. The wires rule; most of the money waits.
#
# **Predict.** What can one do? (No new idea is needed, only the parts of this lesson, put together.)

# %%
box, boxes = 8, 128
inside = 3 * (box - 1) / box * 2 * weights / 450e9 + 3 * len(seven) * (box - 1) * 10e-6
between = 2 * (boxes - 1) / boxes * 2 * weights / box / 50e9 + 2 * len(seven) * (boxes - 1) * 10e-6
computing = 6 * weights * tokens / (box * boxes) / flops_a_second
print(f"computing {computing:.2f} s, inside a box {inside:.2f} s, between boxes {between:.2f} s")
print(f"memory: {16 * weights / box / 1e9:.1f} of 80 GB")

# %% [markdown]
# Don't shard over all. Shard within a box of eight, over the fast wires, and treat the 128 boxes as replicas: each rank all-reduces only *its eighth* of the gradients with the 127 others that hold the same eighth.
#
# Both are now shorter than the computing, and can be hidden behind it. 13.5 GB of memory in place of 0.1, and there was plenty. This is called hybrid sharding (HSDP), and the idea goes on: a *mesh* of ranks with several directions, tensor parallelism along the fastest wires, sharding along the next, pipeline stages between far boxes where little is sent, and data along all that is left. Which goes where is decided by two numbers for each wire, and by counting bytes. That is what this phase was about.

# %% tags=["hide-input"]
choice(
    "The 1,024 ranks get a batch of 16 million tokens in place of 4. What happens to plain FSDP?",
    {
        "It gets worse: four times as much is sent": "What is sent are weights and gradients. Their size doesn't depend on the tokens.",
        "The computing takes four times as long, the sending as long as before": "1.7 s of computing hide most of it. That is why large clusters like large batches; whether the *training* likes them is phase 07's question.",
        "Nothing: both grow alike": "Only the computing depends on the tokens.",
    },
    answer="The computing takes four times as long, the sending as long as before",
)

# %% [markdown]
# ## What you can now do
#
# [The lab](../release/10_distributed/10_distributed.ipynb) of this phase asks you to do it. After the tree, the ring, the costs and DDP come a step of FSDP, the LM head cut both ways, pipeline schedules and their bubble, a plan for 1,024 ranks, a step of the real MiniGPT with its optimizer cut between the ranks; and four kinds of parallelism in two sentences each.
#
# And you can answer the question. A rank knows its own number, and what it was sent. What keeps the ranks together is that all of them call the same collectives in the same order, and that nobody checks it. Big batch and big model come from five collectives, which are made of send and receive.
#
# This was the last phase. The course began with a promise, that nothing here is magic, and with two sentences: a tensor is a storage and a view of it; a module is a registry and a forward. You can now add what came of them. A view that was laid over bytes in [phase 01](01_tensors.ipynb#cell-id=a-tensor-is-a-storage-and-a-view) is cut over a thousand machines in this one, and a gradient is still a sum over paths, some of which go through a wire. Between a line of Python and a number that comes back, there is no step left that you have not taken by hand at least once.

# %% [markdown]
# ## What this phase leaves out
#
# - **GPUs, NCCL and real networks**: streams and overlap as they are, links that fail, slow ranks. None was at hand; what was said of them was computed, and says so.
# - **Context and expert parallelism**: one sequence over many ranks (ring attention), and experts on different ranks (all-to-all, a sixth collective).
# - **Better pipelines**: interleaved stages, and schedules that split the backward to fill the bubble.
# - **Checkpoints of what is cut** (`torch.distributed.checkpoint`), and ranks that come and go (elastic training).
# - **Compressed gradients** and asynchronous or local updates, which change the algorithm and not only its transport.
#
# Where to go on, now that there is no phase 11:
#
# - *Read what you have rebuilt.* [`torch/nn/parallel/distributed.py`](https://github.com/pytorch/pytorch/blob/v2.13.0/torch/nn/parallel/distributed.py) and the reducer under it ([`torch/csrc/distributed/c10d/reducer.cpp`](https://github.com/pytorch/pytorch/blob/v2.13.0/torch/csrc/distributed/c10d/reducer.cpp)), `torch/distributed/fsdp/_fully_shard`, [`torch/csrc/autograd/engine.cpp`](https://github.com/pytorch/pytorch/blob/v2.13.0/torch/csrc/autograd/engine.cpp), `torch/_dynamo`. You know what must be in there; that is the best way to read.
# - *Train something that matters to you*, on one GPU, to the end, with [phase 07](07_training.ipynb#cell-id=overfit-one-batch-first)'s habits: overfit a batch, write the checkpoint first, look at the data. Then torchtitan or nanochat, to see the same with many.
# - *Write kernels*: Triton's own tutorials, and GPU MODE's lectures and puzzles, on real hardware, with [phase 09](09_profiling.ipynb#cell-id=a-number-without-a-spread)'s rules for whatever you measure.
# - *Give something back.* PyTorch's issues carry labels for newcomers, and a report with ten lines that reproduce the bug is worth as much as a mend. You know how to make one.
#
# And when the next thing comes along that looks like magic: it has a source file.

# %% [markdown]
# ## Sources
#
# - P. Patarasuk, X. Yuan, "[Bandwidth optimal all-reduce algorithms for clusters of workstations](https://doi.org/10.1016/j.jpdc.2008.09.002)", JPDC 2009: the ring. R. Thakur, R. Rabenseifner, W. Gropp, "[Optimization of Collective Communication Operations in MPICH](https://doi.org/10.1177/1094342005051521)", 2005: trees, butterflies, and when which.
# - S. Li et al., "[PyTorch Distributed: Experiences on Accelerating Data Parallel Training](https://arxiv.org/abs/2006.15704)", VLDB 2020: buckets, overlap, unused parameters.
# - S. Rajbhandari et al., "[ZeRO: Memory Optimizations Toward Training Trillion Parameter Models](https://arxiv.org/abs/1910.02054)", SC 2020. Y. Zhao et al., "[PyTorch FSDP: Experiences on Scaling Fully Sharded Data Parallel](https://arxiv.org/abs/2304.11277)", VLDB 2023.
# - M. Shoeybi et al., "[Megatron-LM](https://arxiv.org/abs/1909.08053)", 2019: the cuts of MLP and attention. D. Narayanan et al., "[Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM](https://arxiv.org/abs/2104.04473)", SC 2021: the three together.
# - Y. Huang et al., "[GPipe](https://arxiv.org/abs/1811.06965)", NeurIPS 2019. D. Narayanan et al., "[PipeDream](https://doi.org/10.1145/3341301.3359646)", SOSP 2019: 1F1B.
# - H. Touvron et al., "[LLaMA](https://arxiv.org/abs/2302.13971)", 2023: the sizes of the 7-billion model. NVIDIA, [data sheet of the H100 (SXM)](https://resources.nvidia.com/en-us-gpu-resources/h100-datasheet-24306).
# - PyTorch's documentation: "[Distributed communication package](https://docs.pytorch.org/docs/stable/distributed.html)", "[DistributedDataParallel](https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html)" and [its design note](https://docs.pytorch.org/docs/stable/notes/ddp.html), [`fully_shard`](https://docs.pytorch.org/docs/stable/distributed.fsdp.fully_shard.html), [`torch.distributed.tensor`](https://docs.pytorch.org/docs/stable/distributed.tensor.html), [`torchrun`](https://docs.pytorch.org/docs/stable/elastic/run.html).
