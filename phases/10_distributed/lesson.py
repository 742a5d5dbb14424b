# ---
# jupyter:
#   kernelspec: {display_name: Python 3, language: python, name: python3}
#   open_the_hood: {title: "Distributed"}
# ---

# %% [markdown]
# # Distributed
#
# So far a training was one process. From here on it is many processes on many devices. They share nothing: no variable, no lock, no byte of memory. All they have is messages. This lesson takes the big names apart: DDP, FSDP, tensor parallelism and pipeline parallelism. In each of them it finds the same few messages, in a different order.
#
# It takes about two and a half hours, in two sittings. The first sitting is about one big batch: messages, collectives, the ring and DDP. It ends at *A resting place*. The second sitting cuts the model, too. Then it looks at PyTorch's own DDP and FSDP, and at a thousand ranks. You need [phase 07](07_training.ipynb#cell-id=the-five-lines)'s training step, and from [phase 02](02_autograd.ipynb#cell-id=three-lines-by-hand) the fact that a gradient is a sum over paths. If a paragraph begins with **Predict**, decide on an answer before you look below it. Nothing here is graded, but the lab uses everything.
#
# You need no GPU and no second machine. Some ranks are processes on your CPU. They are connected by *gloo*, the library that PyTorch uses between CPUs. Other ranks are simulated, and then the page says so. The figures for 1,024 ranks are computed from assumptions, and the page says that, too.

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
# This is the last phase. It builds on [phase 07](07_training.ipynb#cell-id=the-five-lines)'s training step, and it uses nearly everything else once: views and copies, the graph, hooks and the online softmax.

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
# We predict the price of a flat from eight facts about the house and eight about the street. The model has two *towers*, which are linear layers: one for the house and one for the street. The data are in two files, one for each process. A file has a dict of two columns, and the prices.

# %%
class Price(nn.Module):
    """The sum of the towers' results, each from its own column: {name: (N, 8)} -> (N, 1)."""

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
# Here is data parallelism in one hook. Each process (called a *rank*) has a copy of the model and its own file. As soon as the gradient of a parameter is ready, the hook averages it over the ranks: `dist.all_reduce` replaces the tensor at each rank by the sum of all ranks' tensors. So no rank waits for the end of the backward: the first gradients are exchanged before the last ones are computed. Clever!

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
# This really runs in two processes. (`in_processes` starts them, lets gloo connect them, brings back their results, and ends them if they hang.)

# %%
trained = in_processes(train, 2, Each(files))
for rank, (losses, _) in enumerate(trained):
    print(f"rank {rank}: the loss goes", *(f"{losses[k]:.3f}" for k in (0, 5, 20, 59)))

# %% [markdown]
# There is no error and no warning, and at both ranks the loss falls to a thirtieth of its first value. **Predict.** Is the model good? What would you ask the ranks, to be sure? (Go once more through the two processes, line by line. They do not do the same thing.)
#
# For comparison, here is one process that has both files.

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
# One process gets the weights exactly right. Each of the two ranks has learnt a mixture of house and street, and the two mixtures are not even equal.
#
# The second file has its columns in another order. So rank 1's forward and backward visit the towers in another order, and its hooks fire in another order. Rank 1 calls the *same two* all-reduces the other way round. Nothing complains. An all-reduce doesn't know which parameter it belongs to: rank 0's first call is matched with rank 1's first call. So house was added to street: rank 0's house got the same updates as rank 1's street. And the losses fell, because half of each gradient was right.
#
# A bug like this one survives every test on one process, every look at the loss, and many reviews. `for name in set_of_names` causes it, too (the order of a set of strings differs from process to process), and so does an `if` that depends on the data.
#
# > **What does a rank know about the other ranks? What keeps the ranks together? And how do you make one big batch and one big model out of messages alone?**

# %% [markdown]
# ## A rank is a program
#
# All processes run the *same* program. They differ in one number, the rank. Each process also knows the world size, which is the number of ranks. There is no boss who gives orders: rank 3 works out by itself what it has to do. This is called SPMD: single program, multiple data.
#
# Real processes are slow to start and hard to watch. So in this lesson and in the lab, a rank is usually a *generator*: a function that stops at each `yield` and is resumed with an answer. (In [phase 07](07_training.ipynb#cell-id=who-draws-the-random-numbers) a lazy sampler was a generator.) A rank yields its requests to the network. **Predict.** Four ranks run this program, and x is 1 at each of them. What does each rank return?

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
# They return a running sum. Rank 3 had to wait for all others, although no line says so: *receiving is waiting*, and nothing else puts the ranks in order.
#
# `run` is the network, and it is a simulation: it resumes every rank that can go on, copies each tensor from its sender to its receiver, and records each message. It has no surprises, it takes a millisecond, and it knows which rank waits for which. But it is not a toy. Each request has its counterpart in `torch.distributed`, and the same generator runs in real processes:

# %%
show_over_gloo(chain, 4, torch.ones(1))

# %% [markdown]
# There `yield "send", to, x` becomes `dist.send(x, to)`, and `yield "recv", source` becomes `dist.recv` into an empty tensor. (The receiver must know the shape and the dtype beforehand, so here they are sent first.)
#
# There is one thing that a simulation can't forbid. Its ranks live in one process, so all of them could read and write the same global list. Real ranks share no globals. Everything that a rank needs comes in through its arguments or through a message.

# %% tags=["hide-input"]
true_false(
    "Rank 0 gives out the work, and the others wait for its orders.", False,
    "No rank gives orders. All run the same program, and each finds its part by its own number. Rank 0 is special only where a program says `if rank == 0`.",
)

# %% [markdown]
# ## Send, receive, deadlock
#
# Two ranks want to exchange a tensor. **Predict.** What happens here?

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
# It depends on what sending means. In a *rendezvous* the sender waits until the receiver asks for the message. Here both ranks send and neither receives, so both wait for ever, like two polite people at a door. With a *buffer* the network keeps the message, the sender goes on, and all is well.
#
# **Predict.** What does gloo do, with only sixteen bytes? We give it two seconds.

# %%
try:
    print(over_gloo(swap, 2, Each([torch.zeros(4), torch.ones(4)]), seconds=2))
except NoGloo as problem:
    print(problem)

# %% [markdown]
# Gloo makes a rendezvous, even with a small tensor. Other networks buffer small messages and make a rendezvous for large ones. That is the worst of all: the program runs in every test, and hangs with the real model. So always assume a rendezvous, and write programs that are right with it. It is the simulation's default.
#
# Four ranks form a circle, and each gives its tensor to the next rank. They can do this in four ways. All ranks send first, and then receive. Or only rank 0 receives first. Or only the even ranks send first. Or each rank starts to send and to receive at the same time. **Predict.** For each of the four ways: does it end? After how many seconds, if a message takes one second?

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
# Each rank is a horizontal line, time goes to the right, a slanted line is a message, and amber means waiting. A red arrow shows that a rank waits for another rank for ever. Here the red arrows form a **circle**, and ranks that wait in a circle wait for ever. A single rank that receives first breaks the circle. But then each message waits for the one before it, like dominoes, and the exchange takes four seconds:

# %%
message_lines(ways, run="rank 0 waits")

# %% [markdown]
# If the even ranks send first, it takes two seconds:

# %%
message_lines(ways, run="evens first")

# %% [markdown]
# And *exchange* takes one second. It starts to send and to receive, and then waits until both are done (`isend` and `irecv` in PyTorch):

# %%
message_lines(ways, run="exchange")

# %% [markdown]
# A frequent deadlock has no `send` in it. **Predict.** A colleague wants the mean loss in the log, and only rank 0 writes a log. What happens?

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
# An all-reduce must be called by all ranks. If one rank doesn't call it, the others wait. In a cluster they wait until the timeout, with 1,000 GPUs idle. And the bug needs no `if`: it is enough that the loader of one rank has one batch more than the loaders of the others. At the end of the epoch that rank waits for ever.

# %% tags=["hide-input"]
choice(
    "Three ranks form a circle, and a send is a rendezvous. Rank 0 receives first, the others send first. What happens?",
    {
        "A deadlock: 3 is odd": "It doesn't matter whether the number is even. It is enough that the circle of waiting is broken in one place.",
        "It ends, after three messages in a row": "Rank 2 can send to 0, then 1 to 2, and then 0 to 1. Each message waits for the one before it.",
        "It ends, and all three messages go at once": "Rank 0 sends only after it has received, so not all messages can go at once.",
    },
    answer="It ends, after three messages in a row",
)

# %% [markdown]
# ## Collectives and what they cost
#
# Nearly all traffic of a training comes from five operations, in which all ranks take part. These operations are called *collectives*. **Predict.** There are four ranks, and rank r has [r, 10·r]. What does each rank have after an all-gather, after an all-reduce, and after a broadcast from rank 2? And what after a reduce-scatter of a list of four tensors?

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
# *Broadcast*: one rank has a tensor, and all ranks get it. *All-gather*: each rank has a piece, and all ranks get all pieces, in the order of the ranks. *All-reduce*: each rank has a whole tensor, and all ranks get the sum. *Reduce-scatter*: each rank has a whole tensor, which is cut into as many pieces as there are ranks. Rank r gets the sum of *one* piece, piece r. *Barrier*: nothing is sent, but no rank goes on until all ranks have reached the barrier.
#
# Reduce-scatter is the least known, and the most useful. **Predict.** What is an all-gather of the results of a reduce-scatter?

# %%
def in_two(rank, world, x):
    mine = yield "reduce_scatter", list(x.chunk(world)), "sum"
    pieces = yield "all_gather", mine
    total = yield "all_reduce", x, "sum"
    return torch.equal(torch.cat(pieces), total)


print(run(in_two, 4, Each(torch.randn(4, 12))).results)

# %% [markdown]
# It is an all-reduce. Keep this in mind: an all-reduce is done in these two halves, and FSDP does other work between them.
#
# Here is the bug from the beginning again, in three lines. Collectives are matched by their order. **Predict.** At rank 0, a is 1 and b is 2. At rank 1, a is 10 and b is 20. What does each rank return?

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
# The simulation notices the bug only if the shapes differ. (At the end we see what PyTorch's own checks notice.)
#
# What does a message cost? Two numbers are enough for a good guess. The *latency* α is the time that even the smallest message takes, and the *bandwidth* β is the number of bytes a second. A message of n bytes takes α + n/β. With 10 µs and 50 GB/s, as with a good network card today, the two parts are equal for half a megabyte. For smaller messages, count the messages. For larger ones, count the bytes.
#
# **Predict.** Rank 0 has a tensor for seven other ranks. If it sends the tensor to all of them itself, how many messages go one after the other? And what is the fastest way that you can think of?

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
# Every rank that has the tensor helps to spread it. 1, 2, 4, 8: each round doubles the number of ranks that have it, and after ⌈log₂ N⌉ rounds all ranks have it. This way is called a *tree*. Here the rounds were written out by hand. In the lab you find the rule, for any number of ranks and any source. There each rank has to work out by itself from which rank it receives and to which ranks it sends.
#
# For all-reduce there is a similar trick, the *butterfly*: in round k each rank exchanges its tensor with the rank whose number differs only in bit k, and adds the received tensor to its own. After log₂N rounds all ranks have the sum, and each has sent the whole tensor log₂N times. For a small tensor nothing is faster, if the number of ranks is a power of two. But on 1,024 ranks each rank sends the tensor ten times, which is bad news for a gradient of gigabytes. There is a better way.
#
# (A program can call another one: `total = yield from butterfly(rank, world, x)` would run the butterfly and take its result.)

# %% tags=["hide-input"]
number(
    "A tree broadcasts a tensor over 1,000 ranks. How many rounds does it take?", 10,
    why="2⁹ = 512 are too few, 2¹⁰ = 1,024 are enough.",
    wrong={999: "That would be one message after the other, all sent by rank 0.", 9: "After nine rounds 512 ranks have it.", 500: "In each round *every* rank that has the tensor sends it to another rank."},
)

# %% tags=["hide-input"]
choice(
    "The latency is 10 µs and the bandwidth 50 GB/s. You have to send 1,000 tensors of 4 KB each to the same rank. How much faster is it to send them as one tensor?",
    {
        "Not at all: the bytes are the same": "The bytes take 80 µs in all. The 1,000 latencies take 10 ms.",
        "About a hundred times": "1,000 · (10 µs + 0.08 µs) is about 10 ms; 10 µs + 80 µs is 90 µs.",
        "A thousand times": "The bytes still take 80 µs.",
    },
    answer="About a hundred times",
)

# %% [markdown]
# ## The ring
#
# In a training, ranks add up gradients. Here are four gradients of MiniGPT's LM head. They belong to four ranks, and each rank has 128 words of real text.

# %%
gpt = load_minigpt()
x, y = training_lines()
kept = y[:64] != -100  # 64 lines, only the places with a target
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
# The first idea is that all ranks send their gradients to rank 0, which adds them and sends the sum to all. Rank 0 receives N − 1 gradients over one wire, and all others wait for this wire. With 1,024 ranks, 1,023 gradients go through it.
#
# Here is a better way. Cut the tensor into N chunks, and let each rank be in charge of *one* chunk. Put the ranks in a circle, and let each rank talk only to its two neighbours. In every step each rank sends one chunk to its right neighbour, and adds the chunk from its left neighbour to its own. **Predict**, before you move the slider. In the first step rank 2 receives a chunk and adds its own to it: which ranks' numbers are in this chunk now? After how many steps is chunk 0 complete, and at which rank?

# %%
ring_stepper(gradients, step=0)

# %% [markdown]
# The strip below each number shows which ranks' numbers are in the sum. In the first step rank 2 gets rank 1's chunk and adds its own. A chunk starts at one rank, goes once around, and collects the numbers of all ranks. After N − 1 = 3 steps it looks like this:

# %%
ring_stepper(gradients, step=3)

# %% [markdown]
# Each rank has one complete chunk (green): that was the reduce-scatter. Then the complete chunks go around once more, and this time they are not added: they replace the old ones. That is the all-gather. After 2·(N − 1) = 6 steps all ranks have the whole sum.
#
# Which chunk does rank r send in step s? Read it off the figure. It is one short expression, the same in both halves, and it is the heart of the lab's exercise.
#
# **Predict.** Now count. A tensor has n bytes, and there are N ranks. How many bytes does a rank send in all? How does that number change as N grows?

# %%
for n in (2, 3, 4, 8, 1024):
    steps, piece = 2 * (n - 1), 1 / n
    print(f"{n:5,} ranks: {steps * piece:.3f} times the tensor")

# %% [markdown]
# There are 2·(N − 1) steps, and each sends n/N bytes. (The figure counts the bytes, too: in the live notebook, move it to step 6.) Together that is less than 2n bytes, for *any* number of ranks. All wires are busy all the time. And as long as only ranks add, no all-reduce sends less, because for each number every rank has to give away its own and get the sum. But the number of steps grows with N, and each step has its latency. Let us see which way is the fastest for which tensor, with α = 10 µs and β = 50 GB/s.

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
# Small tensors need few rounds, and large ones need few bytes. So libraries have several ways and choose by size: NVIDIA's NCCL has rings and trees. And *you* can choose, too: put many small tensors into one large one.
#
# One more thing about sums. **Predict.** Add the gradients in the order of the ranks 0, 1, 2, 3, and again in the order 1, 2, 3, 0. Are the two sums equal, bit for bit?

# %%
in_order = gradients[0] + gradients[1] + gradients[2] + gradients[3]
rotated = gradients[1] + gradients[2] + gradients[3] + gradients[0]
print(torch.equal(in_order, rotated), f"largest difference {(in_order - rotated).abs().max():.0e}")

# %% [markdown]
# They are not, because of [phase 01](01_tensors.ipynb#cell-id=dtypes-how-a-number-becomes-bytes)'s rounding. In the ring, each chunk's sum begins at a different rank, so an all-reduce isn't bit-equal to a loop over the ranks. But each chunk is summed up *once* and then copied, so all ranks get the same bits. That is what matters most: with different bits, the copies of the model would drift apart, a little more in each step.

# %% tags=["hide-input"]
number(
    "A ring of 5 ranks does an all-reduce of a tensor of 100 MB. How many MB does each rank send?", 160,
    why="There are 2 · 4 steps, and each sends 20 MB.",
    wrong={80: "That is only the first half. The sums have to come back to all ranks.", 200: "200 MB would be the limit for very many ranks.", 800: "There are eight steps, but each sends only a fifth of the tensor."},
)

# %% [markdown]
# ## One big batch
#
# In data parallelism every rank has the whole model and a share of the batch. Each step should be the step that *one* process would make with the big batch. **Predict.** Compare the mean of the four gradients above with the gradient of all 512 words together. How far apart are they? And if the ranks' shares are unequal?

# %%
big = gradient(hidden, targets)
mean = in_order / 4
length = big.norm()
print(f"equal shares: off by {(mean - big).norm() / length:.2g} of its length")
sizes = [300, 150, 50, 12]
parts = [gradient(h, t) for h, t in zip(hidden.split(sizes), targets.split(sizes))]
print(f"unequal shares: off by {(sum(parts) / 4 - big).norm() / length:.2g} of its length")
print("each share's own gradient:", *(f"{part.norm() / length:.1f}" for part in parts), "lengths")

# %% [markdown] tags=["printed 6.2"]
# With unequal shares, the error is longer than the gradient itself. The gradient of twelve words is mostly chance, and 6.2 times as long as the gradient of all words. It counts for a quarter here instead of a fortieth. This is [phase 07](07_training.ipynb#cell-id=a-big-batch-in-pieces)'s problem again: a mean of means is the mean only if all parts have the same number of words. There the parts were micro-batches, and here they are the ranks' shares. You have to add up *the sum and the count*. (DistributedDataParallel doesn't do that for you. It divides by the number of ranks, however large their shares are. We measure that below.) In the lab some shares are empty.
#
# The replicas stay equal for ever if four things are the same: the start, the gradients, the optimizer and the number of steps. So at the beginning rank 0's parameters *and buffers* are broadcast. Afterwards nothing is ever compared. (Some buffers are changed by the forward, for example running means. They would still drift apart, because each rank sees different rows. Therefore DDP sends rank 0's buffers again before the next forward.)

# %% [markdown]
# ### Buckets
#
# When may a gradient's all-reduce start? As soon as the gradient is final, and a hook can tell that. **Predict.** In which order do MiniGPT's gradients get ready?

# %%
ready, watched = [], load_minigpt()
for name, parameter in watched.named_parameters():
    parameter.register_post_accumulate_grad_hook(lambda parameter, name=name: ready.append(name))
F.cross_entropy(watched(x[:8]).flatten(0, 1), y[:8].flatten()).backward()
print(len(ready), "in all:", *ready[:4], "...", *ready[-3:])

# %% [markdown]
# From the last layer to the first, of course. The gradients of the last layers are ready early. They can be sent while the gradients of the first layers are still being computed. The network works while the chip works: this is called *overlap*, and most of the art of DDP is about it.
#
# But one message for each parameter means many small messages. So gradients are copied into *buckets*, and a bucket is sent when it is full. **Predict.** A backward takes 400 ms, and 400 gradients of 5 MB each get ready in it, evenly spread. 8 ranks form a ring with 100 µs of latency and 10 GB/s. When is everything done: with a bucket for each gradient, with buckets of 25 MB, or with everything in one bucket?

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
# Small buckets cost latency, and large ones leave nothing to overlap with. PyTorch takes 25 MB, but 1 MB for the first bucket, so that something is sent early (we check that below). The gradient that takes a bucket over its limit still goes into this bucket, so a bucket may be larger than its limit. And the buckets have *one order for all ranks*. At first it is the list of parameters backwards, and later the order in which rank 0's gradients got ready. So the bug from the beginning can't happen: a bucket that is full too early waits for its turn.
#
# The opposite problem is a bucket that is *never* full. Every parameter in a bucket must get ready, or the whole bucket waits. **Predict.** Which of these parameters must not be in a bucket, and which need care: a frozen parameter, one that is used in two places, one that this batch doesn't use?

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
# The *tied* weight is one parameter: `parameters()` gives it once, autograd adds the gradients of its two paths, and its hook fires once, after both paths. It needs no care, unless you list the parameters yourself. The *frozen* parameter never gets ready, so it stays out of all buckets. Tied and frozen parameters are known beforehand. The *unused* parameter is not. Each forward decides whether `second` gets a gradient, and the ranks may decide differently.
#
# There is one moment in which you can find out in time: after the forward and before the backward, the graph exists. A parameter that isn't in the graph will not get ready. [Phase 02](02_autograd.ipynb#cell-id=pytorchs-own-graph) taught you to walk the graph.

# %%
def reached(output, model):
    """Names of the parameters that a backward from `output` will reach."""
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
# That is the heart of `find_unused_parameters=True`. After each forward DDP walks the graph from the forward's *return value*. It marks every parameter that the walk doesn't reach as ready. This costs a walk in each step. The walk starts only from tensors that DDP can find in the returned value. And without the flag, an unused parameter causes an error only in the next step, not in the step in which it is unused. That is why a model without the flag "sometimes works". We will see the last two things happen.
#
# The last topic of this half is accumulation, in which a step has several micro-batches. Sums can be added in any order, so nothing needs to be sent before the last backward of a step. With four micro-batches, an all-reduce after each of them would send four times the bytes for the same sum. In DDP the context `no_sync()` switches these all-reduces off.

# %% tags=["hide-input"]
choice(
    "DDP runs on 4 ranks. By mistake each rank makes its own random start, and DDP's broadcast is switched off. What will you see?",
    {
        "An error at the first reduce": "Gradients of equal shapes are added, whatever weights they belong to.",
        "The four models train, and stay different for ever": "They make the same updates from different starts. Each loss falls for a while, although each rank also gets gradients that were computed for other weights.",
        "They become equal after some steps": "Nothing pulls them together: gradients are averaged, not weights.",
    },
    answer="The four models train, and stay different for ever",
)

# %% tags=["hide-input"]
true_false(
    "DDP sends each gradient as soon as it is ready, with one all-reduce for each parameter.", False,
    "DDP waits until a bucket is full, although many blog posts say otherwise.",
)

# %% [markdown]
# ## A resting place
#
# This is half of the lesson, and a good place to stop for today. All ranks run one program. Their collectives are matched only by their order. In an all-reduce over N ranks, each rank sends 2(N − 1)/N times the tensor. DDP all-reduces the gradients, in buckets, during the backward. Exercises 1 to 4 of [the lab](../release/10_distributed/10_distributed.ipynb) need only this half: a tree, a ring, their costs, and DDP. The second half cuts the model, which DDP leaves whole.

# %% [markdown]
# ## Who holds what
#
# DDP is wasteful: it keeps N copies of everything. And *everything* is more than the weights. With AdamW in float32 a parameter needs 4 bytes for the weight, 4 for the gradient and 8 for the optimizer's state. (With bfloat16 it needs 2, 2 and 12, because a float32 copy of the weight is kept as well.) N ranks keep the same 16 bytes N times.
#
# So cut them. **Predict.** You have 8 ranks, and may cut one of the three into 8 shares: the weights, the gradients or the optimizer's state. Which cut saves most? And what does each cut make harder?

# %%
memory_a_rank(gpt, ranks=8)

# %% [markdown]
# (MB and GB are powers of ten in this lesson, as on data sheets. Only the limits of DDP's buckets are counted in units of 2²⁰ bytes.) In the live notebook you can change the number of ranks. The figure shows, from top to bottom:
#
# *ZeRO-1* cuts the optimizer's state. Each rank updates its eighth of the weights, and then the new weights are gathered. For this update a reduce-scatter of the gradients is enough. Reduce-scatter and all-gather are the two halves of the all-reduce, so ZeRO-1 sends *not a byte more* than DDP. With *ZeRO-2* a rank also keeps only its own share of the gradients. *FSDP*, or ZeRO-3, cuts the weights, too. That is harder, because a rank needs the whole layer to compute with it.
#
# So a layer is gathered when it is needed, and freed afterwards. The green part of the figure shows the gathered weights of one unit, such as a block. In the backward it also contains the unit's whole gradient, until the gradient is summed up and cut. (The lab's plan counts only the weights.)

# %%
def sharded_linear(rank, world, own_rows, x):
    """The forward of a linear layer; each rank holds some of its rows."""
    rows = yield "all_gather", own_rows
    whole = torch.cat(rows)  # there for as long as this layer computes
    return x @ whole.T


outcome = run(sharded_linear, 4, Each(head.weight.detach().chunk(4)), hidden)
print(torch.equal(outcome.results[3], hidden @ head.weight.detach().T))
print(f"a rank holds {head.weight.nbytes // 4:,} bytes, and for a moment {head.weight.nbytes:,}")

# %% [markdown]
# In the backward the same layer is needed again, so it is gathered again. Then each rank has a gradient of the *whole* layer, computed from its own words. Where does this gradient have to go? **Predict.** What is the backward of an all-gather? (The backward of a linear map A is its transpose B, for which ⟨A x, y⟩ = ⟨x, B y⟩ for all x and y. So you can test a guess.)

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
# It is a reduce-scatter. All ranks got my piece, so all ranks have a gradient for it, and the gradients of all paths are added. In [phase 02](02_autograd.ipynb#cell-id=leaves-and-gradients-that-add-up) one tensor was used N times. Here one shard is used at N ranks.
#
# So this is FSDP's step. The forward all-gathers each layer. The backward all-gathers each layer again, and reduce-scatters its gradient. Then the optimizer works on shares. **Predict.** DDP sends 2(N − 1)/N times the model's bytes. How much does FSDP send?

# %%
for n in (2, 8, 64, 1024):
    once_around = (n - 1) / n
    print(f"{n:5,} ranks: DDP {2 * once_around:.2f}, FSDP {3 * once_around:.2f} times the model")

# %% [markdown]
# It sends three times (N − 1)/N, which is half as much again as DDP sends. That is the price, but a layer can be gathered while the layer before it computes. (`reshard_after_forward=False` keeps the weights that the forward has gathered. Then FSDP sends only two thirds as much, but at the start of the backward each rank has the weights of all layers.)
#
# The layers are gathered in *units*, and a unit is usually one block. **Predict.** How does the last bar change if there is only one unit, the whole model?

# %%
memory_a_rank({"the whole model": sum(p.numel() for p in gpt.parameters())}, ranks=8)

# %% [markdown]
# Then everything is gathered at once, and little is gained. If each layer is a unit, there are more and smaller messages. A block is the usual compromise.
#
# And what if a tensor doesn't divide evenly? There are two ways to cut it. PyTorch's `fully_shard` cuts each parameter by rows, with `torch.chunk`, so that a share is still a matrix (as above). **Predict.** How does it cut five rows for four ranks?

# %%
print(
    [len(piece) for piece in torch.arange(5).chunk(4)],
    [len(piece) for piece in torch.arange(600).chunk(7)],
)

# %% [markdown]
# It cuts them into two, two and one. The fourth rank has nothing, but it must still take part in every collective. FSDP's first version and the lab use the second way. They make the tensor *flat*, add zeros until the number of ranks divides its length, and cut it. Then all shares are equally long, whatever the tensor's shape, and an all-gather needs that. But a share has no rows any more. The memory figure counts in this second way.
#
# We are lucky that an optimizer can work on shares at all: AdamW updates each number without looking at the other numbers. Clipping by the global norm is different. It needs a sum over *all* gradients, and so a small all-reduce of one number, the sum of the squares.

# %% tags=["hide-input"]
number(
    "AdamW runs in float32, with ZeRO-1 on 4 ranks. How many bytes does a rank have for each parameter?", 10,
    why="It has 4 for the weight, 4 for the gradient, and 8/4 for the optimizer's state.",
    wrong={4: "That would be a quarter of all 16 bytes, as in FSDP.", 16: "That is DDP.", 12: "The optimizer has two numbers, which take 8 bytes. A rank has a quarter of them."},
)

# %% [markdown]
# ## The LM head cut two ways
#
# So far each rank had its own words, and sooner or later it had the whole layer. *Tensor parallelism* cuts the matrix product itself, so no rank ever has the whole layer. The running example of this course is made for it: a product with a table of 600 × 64. You can cut the 600 or the 64.
#
# If you cut the **600**, each of four ranks has all of the input and 150 words of the vocabulary. (In the literature this is the *column* split, because the table is written as 64 × 600 there, input times output.) If you cut the **64**, each rank has 16 numbers of each input, and the 16 columns of the table that belong to them. (In the literature this is the *row* split.) **Predict.** In each case, what does a rank have after its product? What must be sent so that all ranks have all logits? And which of the two results is bit-equal to the uncut one?

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
# In the cut by words, each rank has *some of the logits, complete*: they only have to be put side by side. Each logit is the same sum of 64 products as before. In the cut by inputs, each rank has *all of the logits, incomplete*: for each logit it has a part of the sum. These parts have to be added, and sums in another order are rounded differently. So for each word of the text, the cut by words needs an all-gather of 150 logits, and the cut by inputs needs an all-reduce of 600. (Where does the bias go? In the cut by words, each rank has the bias of its own 150 words. In the cut by inputs, the bias must be added once, and not four times. And the cut by words is bit-equal only because of this machine's kernels for these shapes. Nothing guarantees it.)
#
# And 512 × 600 logits are sent just to compute one loss from them. With a real vocabulary of 128,000 words nobody does that. **Predict.** The loss of a word is log Σ exp(logit) − the target's logit. What does each rank have to send about its 150 logits, so that all ranks know the loss? How many numbers does it send?
#
# In a first attempt, each rank sends the sum of its exponentials, and these sums are added up.

# %%
for logits in (torch.tensor([1.0, 2.0, 3.0, 4.0]), torch.tensor([1.0, 2.0, 3.0, 100.0])):
    told = [half.exp().sum() for half in logits.chunk(2)]
    print("from the sums:     ", sum(told).log().item(), " right:", logits.logsumexp(0).item())

# %% [markdown]
# It works until a logit is large. So each rank sends three numbers. The first is its largest logit, and the second is the sum of exp(logit − largest logit). The third is the target's logit if the target is one of its words, and else 0. You know the first two from [phase 05](05_custom_op.ipynb#cell-id=one-pass-or-three). There the online softmax rescaled its sum whenever the maximum grew. If two parts of a row have maxima m₁, m₂ and sums l₁, l₂, together they have the maximum m = max(m₁, m₂) and the sum l₁·exp(m₁ − m) + l₂·exp(m₂ − m).
#
# In the lab you write this loss and its gradient. For the loss, a rank sends three numbers a word in place of 600.
#
# Now comes the trick that made tensor parallelism popular (the lab doesn't use it). A transformer's MLP has two products with a GELU between them. **Predict.** Cut the first product by outputs and the second by inputs. How many collectives are there, and where? And what if you cut them the other way round?

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
# There is one, at the end. The numbers in between are divided among the ranks, but each number is complete at its rank, and a GELU works on one number at a time. The other way round, the first product gives parts of sums, and the sum of the parts' GELUs is not the GELU of the sum. So you would have to reduce before the GELU and gather after it. Attention can be cut in the same way, because its heads are independent: cut query, key and value by heads, and the output projection by inputs.
#
# So there are two all-reduces in a block's forward, and two in its backward. (All ranks have a part of the gradient for x, and these parts are added.) But in the forward nothing can be computed before these all-reduces are done, so there is no overlap as in DDP. (Two refinements have some. *Sequence parallelism* splits each all-reduce into its two halves. *Async tensor parallelism* sends these halves in pieces, and multiplies other pieces meanwhile.) Tensor parallelism is for ranks with fast wires between them, such as the eight GPUs in one box.

# %% tags=["hide-input"]
number(
    "Rank 0's largest logit is 2, and the sum of its exp(logit − 2) is 3. Rank 1's largest logit is 0, and its sum is 5. What is the sum relative to the common maximum? (e⁻² = 0.135)", 3.68, tolerance=0.02,
    why="The maximum is 2. Rank 0's sum stays 3, rank 1's shrinks to 5 · 0.135.",
    wrong={8: "The two sums are relative to different maxima.", 5.41: "It is the other way round: the sum with the smaller maximum is rescaled."},
)

# %% tags=["hide-input"]
choice(
    "The head is cut by words, and every rank knows the whole input x. How does each rank get the gradient for x?",
    {
        "It already has it, because x was whole": "It only has the part that comes from its own 150 words.",
        "From an all-reduce": "x is used at all ranks, once for each share of the words, so the gradients of all ranks are added.",
        "From an all-gather": "The parts can't be put side by side. Each part is a gradient for all of x, so the parts have to be added.",
    },
    answer="From an all-reduce",
)

# %% [markdown]
# ## The pipeline and its bubble
#
# The fourth way cuts between layers. Stage 0 has the first blocks, stage 1 has the next blocks, and only activations go from one stage to the next. These messages are small, and each goes only to a neighbour. But there is a different price. A *schedule* lists the work of each stage in order: F2 is the forward of piece 2 of the batch, and B2 is its backward. **Predict.** There are three stages, and each piece goes through them and back before the next piece starts. What part of the time is a stage idle?

# %%
def of(words):
    return [(word[0], int(word[1:])) for word in words.split()]


one_by_one = [of("F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 F5 B5 F6 B6 F7 B7")] * 3
pipeline_gantt({"one by one": one_by_one})

# %% [markdown]
# Two thirds of the time: while one stage works, the others wait. (A forward counts as one unit of time, and a backward as two.) So stage 0 should begin with the second piece, or *micro-batch*, while stage 1 works on the first. **Predict.** Each stage does all forwards, then all backwards. Which stages are idle now, and when?

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
# That is *GPipe*. The grey part is the **bubble**. There are S stages and M micro-batches. Each stage works for M forwards and M backwards. The whole schedule takes as long as M + S − 1 forwards and as many backwards. This is because the last stage begins S − 1 forwards later than the first, and the first stage ends S − 1 backwards later than the last. So the idle share is (S − 1)/(M + S − 1), however long a backward takes. (In the live notebook, move the slider.)

# %% tags=["hide-input"]
number(
    "There are 8 stages. How many micro-batches are needed at least for a bubble below 10 %?", 64,
    why="7/(M + 7) is below a tenth if M is above 63.",
    wrong={63: "7/70 is exactly a tenth, and not below it.", 70: "That is M + 7 for M = 63.", 71: "7/71 compares the idle time with the working time, not with the whole time."},
)

# %% [markdown]
# Why not a thousand micro-batches? Small micro-batches use a chip badly. In GPipe there is another reason: before its first backward, a stage keeps the activations of *all* micro-batches. Now look at *1F1B*, which means one forward, one backward. A stage does a backward as soon as one is possible. From then on forwards and backwards alternate. **Predict.** Is its bubble smaller?

# %%
pipeline_gantt(schedules, schedule="1F1B")

# %% [markdown]
# It isn't smaller, not by a single unit. But 1F1B saves memory: stage s keeps the activations of at most S − s micro-batches, however many there are. Memory no longer grows with M, so M may be large, and *that* makes the bubble small.
#
# Watch what the three stages do differently at the beginning, and find the rule for S stages: the lab asks for it. A schedule can deadlock, too. This happens if a stage waits for a forward, and that forward has to wait for one of the stage's own later backwards. It is the same circle as with four ranks that all send first.

# %% tags=["hide-input"]
true_false(
    "1F1B has a smaller bubble than GPipe, because its backwards start earlier.", False,
    "Its backwards start earlier, but its forwards end later. The first stage still waits for the first backward to come back, and that takes as long as before.",
)

# %% [markdown]
# ## The real ones
#
# All of this exists in PyTorch, of course, and now you know what must be inside. Each of the next cells starts real processes. First comes `DistributedDataParallel(module)`. It calls the module, and its hooks fill the buckets and reduce them. We use two ranks, the LM head, and the 512 words from above. **Predict.** How far is DDP's gradient from the big batch's gradient, first with equal shares, then with shares of 450 and 62 words?

# %%
from torch.nn.parallel import DistributedDataParallel as DDP


def gradient_of_ddp(rank, world, head, hidden, targets):
    ddp = DDP(head)  # needs a name: its hooks live only as long as it does
    F.cross_entropy(ddp(hidden), targets).backward()
    return head.weight.grad


for name, sizes in (("equal", [256, 256]), ("unequal", [450, 62])):
    shares = Each(hidden.split(sizes)), Each(targets.split(sizes))
    found = in_processes(gradient_of_ddp, 2, head, *shares)[0]
    print(f"{name:8} shares: off by {(found - big).norm() / length:.2g} of its length")

# %% [markdown]
# It divides by the number of ranks, so it gives the big batch's gradient only for equal shares.
#
# Next, look at the buckets of eight layers of 400 × 400, with a limit of 1 MB (`bucket_cap_mb`). `reduced_buckets` lists how many numbers each sent bucket has. It uses DDP's *communication hook*, which is made for compressing gradients. **Predict.** How many buckets are sent in the first step, how many in the second, and how many in `no_sync()`?

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
# The first step reduces one big bucket, in the order of the list. Then DDP knows in which order gradients *really* get ready at rank 0. It sends that order to all ranks and rebuilds the buckets. In `no_sync` nothing is sent. (The last two numbers are the default limits in bytes: one for the first bucket, and one for the other buckets.)
#
# **Predict.** Somebody adds 1 to the weights at rank 1 only, and 60 steps follow. By how much do the ranks' weights differ at the end? And what does DDP learn from the two files from the beginning of the lesson, even if the two starts differ?

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
# If you change weights at one rank, the model there stays different for good. And from the two files DDP learns the right prices, in spite of their different orders and starts. (DDP broadcasts rank 0's start.)

# %% [markdown]
# ### Unused parameters
#
# `find_unused_parameters` is an argument of DDP. The model is `Switch`, in which some batches don't need the layer `second`. Here are seven trials with two ranks:
#
# | | the forward returns | `second` is used by | the flag | steps |
# |---|---|---|---|---|
# | A | the tensor | nobody | no | 1 |
# | B | the tensor | nobody | no | 2 |
# | C | the tensor | nobody | yes | 2 |
# | D | the tensor | rank 0 | yes | 2 |
# | E | a dict with it | nobody | yes | 2 |
# | F | an object of another class with it | nobody | yes | 2 |
# | G | an object of another class with it | both | no | 2 |
#
# **Predict.** Which trials end in an error, and in which step? (`Returns` calls a model and wraps its result; `tensor_in` takes it out again. A trial reports the length of the gradient of `second` at rank 1, or the error and its step.)

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
# And here is the table again, for Python:

# %%
trials = {
    "A": ("tensor", (), False, 1), "B": ("tensor", (), False, 2), "C": ("tensor", (), True, 2),
    "D": ("tensor", (0,), True, 2), "E": ("dict", (), True, 2), "F": ("object", (), True, 2),
    "G": ("object", (0, 1), False, 2),
}  # fmt: skip
for name, how in trials.items():
    print(name, in_processes(trial, 2, *how)[1])

# %% [markdown]
# This explains why it "sometimes works". *Without* the flag (A, B), a parameter that gets no gradient leaves its bucket unfinished. The step itself notices nothing, but the next forward raises an error. So a test of one step passes. A model with a branch works as long as every batch takes the branch. If one batch doesn't take it, the error appears at the next batch, which is innocent.
#
# *With* the flag it works if the walk begins at the right place. DDP finds tensors in lists, tuples, dicts and dataclasses (E). In an object of any other class (F) it finds no tensor, so it treats *all* parameters as unused and marks them as ready. When their gradients come after all, the parameters are ready twice, which is an error. The same model without the flag is fine (G). (In D, rank 1 didn't use `second`, but got a gradient for it. It is rank 0's gradient divided by two, because rank 1's zeros enter the average.)
#
# The flag fixes nothing else: it only tells the buckets not to wait. People often try it when they run out of memory, but it doesn't help. With and without the flag, the buckets have a place for every parameter, and the flag only adds a walk.

# %% [markdown]
# ### FSDP and DTensors
#
# FSDP comes next. We apply `fully_shard(module)` to each block and to the model around them, so each of these becomes a unit. Parameters become *DTensors*, which are tensors that know how they are divided over a *mesh* of ranks (here a row of four). `to_local()` gives a rank's own share, and `full_tensor()` gathers the whole tensor. `CommDebugMode` counts the collectives. **Predict.** MiniGPT has 179,544 parameters. How many of them does each of four ranks have? How many all-gathers and reduce-scatters are there in a forward and backward, with three units (two blocks and the rest)?

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
# We compare it with one process that has all 16 lines. (The model predicts padding, too, so that the ranks' shares are equal.)

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
# A rank has a quarter of the weights and a quarter of the optimizer's state. The gradient is the big batch's gradient, up to rounding. Each unit's gradient was reduce-scattered once. The blocks were gathered twice, in the forward and again in the backward. The outermost unit was gathered only once: the forward uses it last and the backward needs it first, so it isn't freed in between. With `reshard_after_forward=False` (the second line) no unit is freed in between.
#
# A DTensor can be cut as you like: `Shard(0)` cuts by rows, `Shard(1)` cuts by columns, and `Replicate()` doesn't cut. `distribute_tensor` cuts a tensor, and `redistribute` cuts it in another way. **Predict.** Here is the LM head again, cut by words and by inputs. What does the multiplication send? And which collective makes the result whole?

# %%
def real_cuts(rank, world, hidden, weight, cut, x_cut):
    """The LM head as DTensors: how the result is divided, and what was sent for it."""
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
# The placements say what you worked out above: `Shard(1)` means some of the logits, complete, and `Partial(sum)` means all of the logits, incomplete. The multiplication sends nothing. To make the result whole, the cut by words needs an all-gather, and the cut by inputs an all-reduce. A DTensor is [phase 04](04_dispatcher.ipynb#cell-id=tensors-that-answer)'s idea again: a subclass that answers `__torch_dispatch__`. It knows how the result of each operator is placed, and calls a collective when it must.

# %% [markdown]
# ### How a training starts
#
# Finally, here is how you really start a training. A training is a script, and `torchrun` runs it in as many processes as you like. Each process gets its rank through the environment. The script below has the bug from the beginning. It runs under PyTorch's strictest checks, `TORCH_DISTRIBUTED_DEBUG=DETAIL`. **Predict.** What will these checks say about two all-reduces in different orders? And about two all-reduces of unequal shapes?

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
# (The command was `torchrun --nnodes=1 --nproc-per-node=2 --master-addr=127.0.0.1 --master-port=… script.py`. On many machines you run the same script, with `--nnodes` and the address of the first machine.)
#
# The checks find unequal shapes and name them. They don't find a wrong order: they compare the kind, shape and dtype of the ranks' calls, and these agree. *A wrong order can't be seen from outside*, because an all-reduce has no name. Two things help. One is a fixed order for all ranks, as in DDP's buckets. The other is to compare the ranks now and then, for example by a checksum of the weights.

# %% [markdown]
# ## Eight ranks, 64, 1,024
#
# You can now compute things that nobody can try at home. Take a model of 7 billion parameters in bfloat16 with AdamW, and a batch of 4 million tokens in each step. We make these assumptions. A device has 80 GB. It reaches 40 % of its peak of 989 TFLOP/s (an H100's data sheet, without sparsity, and a good MFU). Eight devices are in a box. Each has 450 GB/s inside its box, and 50 GB/s to other boxes. A message has a latency of 10 µs. Nothing here was measured.
#
# **Predict**, before anything else: with how many ranks does DDP fit into memory at all?

# %%
block = 4 * 4096**2 + 3 * 4096 * 11008 + 2 * 4096
seven = {
    "embedding": 32000 * 4096,
    **{f"block {k}": block for k in range(32)},
    "head": 32000 * 4096 + 4096,
}
memory_a_rank(seven, ranks=64, precision="bfloat16", limit=80e9)

# %% [markdown]
# It never fits. DDP needs 108 GB at each rank, with 8 ranks as with 1,024, so more ranks never help. They do help with ZeRO-1, ZeRO-2 and FSDP.
#
# Now look at the time. A step needs 6 · parameters · tokens FLOPs ([phase 07](07_training.ipynb#cell-id=time-on-a-napkin)), which all ranks share. Sending *can* be hidden behind the computing if it takes less time, so a step takes as long as the longer of the two. **Predict.** From 64 to 1,024 ranks there are 16 times as many ranks. How many times faster is a step of FSDP?

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
# Eight ranks compute for most of a minute, and their wires are fast enough. 64 ranks are eight times as fast. But 1,024 ranks are only 3.6 times as fast as 64, not 16 times. Each rank has 4,096 tokens, which take less than half a second. But the number of bytes is *the same as before*, because it hardly depends on the number of ranks. And a ring of 1,023 steps for every block adds a second of latency alone. The wires are the bottleneck, and most of the expensive hardware waits.
#
# **Predict.** What can you do? (You need no new idea, only the parts of this lesson, put together.)

# %%
box, boxes = 8, 128
inside = 3 * (box - 1) / box * 2 * weights / 450e9 + 3 * len(seven) * (box - 1) * 10e-6
between = 2 * (boxes - 1) / boxes * 2 * weights / box / 50e9 + 2 * len(seven) * (boxes - 1) * 10e-6
computing = 6 * weights * tokens / (box * boxes) / flops_a_second
print(f"computing {computing:.2f} s, inside a box {inside:.2f} s, between boxes {between:.2f} s")
print(f"memory: {16 * weights / box / 1e9:.1f} of 80 GB")

# %% [markdown] tags=["printed 13.5", "printed 0.1"]
# Don't shard over all ranks. Shard within a box of eight, over the fast wires, and treat the 128 boxes as replicas. Each rank all-reduces only *its eighth* of the gradients, with the 127 other ranks that have the same eighth.
#
# Sending inside a box and sending between boxes both take less time than computing now, and can be hidden behind it. A rank needs 13.5 GB of memory in place of 0.1, but there was plenty. This is called hybrid sharding (HSDP). The idea goes further: a *mesh* of ranks can have several directions. Tensor parallelism gets the fastest wires, and sharding the next. Pipeline stages go into distant boxes, because they send little. Data parallelism gets everything else. The latency and bandwidth of each wire, and a count of bytes, decide which goes where. That is what this phase was about.

# %% tags=["hide-input"]
choice(
    "The 1,024 ranks get a batch of 16 million tokens in place of 4 million. What happens to plain FSDP?",
    {
        "It gets worse: four times as much is sent": "The ranks send weights and gradients. Their size doesn't depend on the number of tokens.",
        "The computing takes four times as long, the sending as long as before": "1.7 s of computing hide most of the sending. That is why large clusters like large batches. Whether the *training* likes them is phase 07's question.",
        "Nothing: both grow alike": "Only the computing depends on the number of tokens.",
    },
    answer="The computing takes four times as long, the sending as long as before",
)

# %% [markdown]
# ## What you can now do
#
# [The lab](../release/10_distributed/10_distributed.ipynb) of this phase asks you to do all of this. First come the tree, the ring, the costs and DDP. Then come a step of FSDP, the LM head cut both ways, pipeline schedules and their bubble, and a plan for 1,024 ranks. After that the real MiniGPT does a step, with its optimizer divided among the ranks. At the end you describe four kinds of parallelism in two sentences each.
#
# And you can answer the question. A rank knows its own number, the world size, and the messages that it received. The ranks stay together only because all of them call the same collectives in the same order, and nothing checks that. Five collectives make the big batch and the big model, and the collectives are made of send and receive.
#
# This was the last phase. The course began with a promise: nothing here is magic. It also began with two sentences. A tensor is a storage and a view of it. A module is a registry and a forward. Now you know where these sentences lead. In [phase 01](01_tensors.ipynb#cell-id=a-tensor-is-a-storage-and-a-view) a tensor was a view of some bytes, and in this phase it is spread over a thousand machines. A gradient is still a sum over paths, but some of the paths go through a wire. Between a line of Python and the number that comes back, you have taken every step by hand at least once.

# %% [markdown]
# ## What this phase leaves out
#
# - **GPUs, NCCL and real networks**: real streams and overlap, links that fail, slow ranks. We had none of these. The figures about them were computed, and the page says so.
# - **Context and expert parallelism**: one sequence is spread over many ranks (ring attention), or experts are on different ranks (which needs all-to-all, a sixth collective).
# - **Better pipelines**: interleaved stages, and schedules that split the backward to fill the bubble.
# - **Checkpoints of sharded models** (`torch.distributed.checkpoint`), and ranks that come and go (elastic training).
# - **Compressed gradients** and asynchronous or local updates, which change the algorithm and not only its transport.
#
# There is no phase 11, but you can go on:
#
# - *Read what you have rebuilt*: [`torch/nn/parallel/distributed.py`](https://github.com/pytorch/pytorch/blob/v2.13.0/torch/nn/parallel/distributed.py) and the reducer under it ([`torch/csrc/distributed/c10d/reducer.cpp`](https://github.com/pytorch/pytorch/blob/v2.13.0/torch/csrc/distributed/c10d/reducer.cpp)), `torch/distributed/fsdp/_fully_shard`, [`torch/csrc/autograd/engine.cpp`](https://github.com/pytorch/pytorch/blob/v2.13.0/torch/csrc/autograd/engine.cpp), `torch/_dynamo`. You know what must be in these files, and that is the best way to read.
# - *Train something that matters to you*, on one GPU, to the end, with [phase 07](07_training.ipynb#cell-id=overfit-one-batch-first)'s habits: overfit a batch, write the checkpoint first, look at the data. Then read torchtitan or nanochat, to see the same on many GPUs.
# - *Write kernels* on real hardware. Begin with Triton's own tutorials, and with GPU MODE's lectures and puzzles. Follow [phase 09](09_profiling.ipynb#cell-id=a-number-without-a-spread)'s rules in everything that you measure.
# - *Give something back.* Some of PyTorch's issues have labels for newcomers. A report with ten lines that reproduce a bug is worth as much as a fix, and you know how to write one.
#
# And when the next thing comes along that looks like magic, remember that it has a source file.

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
