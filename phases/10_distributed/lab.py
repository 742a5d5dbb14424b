# ---
# jupyter:
#   kernelspec: {display_name: Python 3, language: python, name: python3}
#   open_the_hood: {title: "Lab 10: Distributed", points: 40, cell_seconds: 90, preload: [optimizers], loopback: true}
# ---

# %% [markdown]
# # Lab 10: Distributed
#
# Nine exercises and one question, 40 points, about three and a half hours without the *further*
# exercises 7 and 8, which take an hour more. A class may leave those out, or count them as a bonus;
# where yours says nothing, all points count. The lab follows
# [lesson 10](../../notebooks/10_distributed.ipynb) in two sittings: the lesson's first half is
# enough for exercises 1 to 4, which take an hour and a half or so. You write what a library for
# distributed training is made of: a broadcast, a ring, DDP, FSDP, a head that is cut in two, a
# pipeline's plan, and a cost model for machines that are not here. In the end MiniGPT does a
# training step on several ranks, none of which has room for the whole optimizer.
#
# A rank's program is a generator function. It is called with its own number, `rank`, and with the
# number of all ranks, `world`; it *yields* what it asks of the network, and what it returns is the
# rank's result:
#
# ```
# yield "send", to, tensor                          # None
# got = yield "recv", source                        # a tensor
# got = yield "exchange", to, tensor, source        # sends and receives, both at the same time
# total = yield "all_reduce", tensor, "sum"         # "max" is the other one
# tensors = yield "all_gather", tensor              # a list, one tensor of each rank
# mine = yield "reduce_scatter", tensors, "sum"     # a list with one tensor for each rank goes in
# got = yield "broadcast", tensor_or_none, source
# ```
#
# Ranks share nothing, as processes share nothing: what one has of another has come by the network. A
# function that yields is run by `yield from`, and then has the value that it returns. Only what an
# exercise names may be asked for in it. A send waits until its receiver asks for the tensor, except
# where it is said that sends are buffered.
#
# The network here is simulated, in this process, and grading uses the same one: it resumes your
# generators, carries the tensors and sees every byte, so no points hang on a clock or on luck. In
# grading it also knows what no rank knows: in a sum a rank may count twice or not at all, as if other
# ranks had the same data (`run(..., counts=[2, 0])`), so only what came by the network is right. Some
# cells run your program once more in processes of their own, over gloo, and print whether they agree.
#
# Each graded cell begins with `check(...)`, which gives the verdict that grading would. It draws
# values and sizes that you have not seen, new ones each time. Parts of an exercise earn their points
# separately, and no exercise needs the answer to another. Stuck? Each holds two hints, folded away.
# Run the next cell, then start.

# %% given="setup"
import math
import os

os.environ["CUDA_VISIBLE_DEVICES"] = ""  # all ranks of this lab are processes on the CPU

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hood.learner.check import check
from utils.drivers import distributed as driver
from utils.instruments.world import Deadlock, Each, run
from utils.instruments.world.gloo import show_over_gloo
from utils.minigpt import load_minigpt
from utils.notebook.expect import expect_close, expect_equal

# %% [markdown]
# ## 1 · A tree
#
# *Easy, 20 minutes, 3 points: one for ranks that all have it, one for any source, one for few rounds.*
# From the lesson: [Collectives and what they cost](../../notebooks/10_distributed.ipynb#cell-id=collectives-and-what-they-cost).
#
# One rank, `source`, has a tensor, and all others need it. Write the program
# `tree_broadcast(rank, world, tensor, source)`: at the source `tensor` is the tensor, at all other ranks
# it is `None`. Each rank returns the tensor. Only `send` and `recv` may be asked for.
#
# - Whoever has it already can pass it on, so the number of ranks that have it can double in each round.
#   A rank takes part in one message of a round at most. It must be done after ⌈log₂ world⌉ rounds: if
#   a message takes a second, whatever its size, then so many seconds after the start.
# - Each rank but the source receives it once, and the source never does.
# - There is one rank or more, any number, and any of them may be the source.
#
# <details><summary>Another source than 0</summary>
#
# Count ranks from the source: `(rank - source) % world`. The source has place 0 then, and the rank at
# place p has number `(p + source) % world`.
# </details>
# <details><summary>Who sends to whom, in which round?</summary>
#
# With a step of 1, 2, 4 …: whoever stands below the step has it already, and sends it to the place one
# step further, if there is one. Who stands there receives in this round.
# </details>

# %% solution="tree_broadcast"
def tree_broadcast(rank: int, world: int, tensor: Tensor | None, source: int):
    """A rank's program: each rank returns the tensor of the source."""
    ### BEGIN SOLUTION
    place = (rank - source) % world
    step = 1
    while step < world:
        if place < step and place + step < world:
            yield "send", (rank + step) % world, tensor
        elif step <= place < 2 * step:
            tensor = yield "recv", (rank - step) % world
        step *= 2
    return tensor
    ### END SOLUTION

# %%
thing = torch.tensor([3.0, 1.0, 4.0])
came = run(tree_broadcast, 4, Each([thing, None, None, None]), 0, latency=1.0)
expect_equal("each rank has it", came.results, [thing] * 4)
expect_equal("three messages, two rounds", (len(came.messages), came.seconds), (3, 2.0))
came = run(tree_broadcast, 6, Each([None] * 5 + [thing]), 5, latency=1.0)
expect_equal("from rank 5 of 6", came.results, [thing] * 6)
expect_equal("five messages, three rounds", (len(came.messages), came.seconds), (5, 3.0))
show_over_gloo(tree_broadcast, 3, Each([None, thing, None]), 1)

# %% test="tree_broadcast" points=3
# Graded
check("tree_broadcast")
thing = torch.tensor([3.0, 1.0, 4.0])
expect_equal("one rank alone", run(tree_broadcast, 1, thing, 0).results, [thing])
### BEGIN HIDDEN TESTS
verify("tree_broadcast", tree_broadcast)
### END HIDDEN TESTS

# %% [markdown]
# ## 2 · The ring
#
# *Medium, 30 minutes, 4 points: one for the sum, one for any size, one for sends that wait, one for
# neighbours and bytes.*
# From the lesson: [The ring](../../notebooks/10_distributed.ipynb#cell-id=the-ring).
#
# Write the program `ring_all_reduce(rank, world, tensor)`. Each rank has a tensor of the same shape and
# dtype; each returns the sum of all of them, of that shape and dtype again.
#
# - A rank sends to its successor alone, `(rank + 1) % world`, and receives from its predecessor alone.
#   Only `send`, `recv` and `exchange` may be asked for.
# - With n numbers in a tensor, no message has more than c = ⌈n / world⌉ of them, and a rank sends
#   2 · (world - 1) messages at most. So the bytes that a rank sends hardly depend on the number of
#   ranks.
# - All ranks return the very same bits: floating-point sums depend on their order, so a piece is added
#   up once, on its way around, and the others get a copy of the sum.
# - The tensor may have any shape, fewer numbers than there are ranks, and none at all. Its dtype is
#   float32, float64 or int64, and there is one rank or more.
# - For three of the points sends are buffered. For the one about sends that wait they are not, and a
#   ring in which everybody sends first stands still.
#
# <details><summary>The two halves</summary>
#
# First world - 1 rounds in which each rank passes on the piece that it has just added to; after them
# each rank has one piece with the whole sum. Then world - 1 rounds in which the finished pieces go
# around. In round k of the first half rank r passes on piece (r - k) % world.
# </details>
# <details><summary>Pieces of unequal length</summary>
#
# The receiver need not know a piece's length: it gets a tensor. Cut the flat tensor at multiples of c,
# and the last pieces may be shorter, or empty; an empty tensor can be sent like any other.
# </details>

# %% solution="ring_all_reduce"
def ring_all_reduce(rank: int, world: int, tensor: Tensor):
    """A rank's program: each rank returns the sum of all tensors."""
    ### BEGIN SOLUTION
    flat = tensor.flatten()
    size = math.ceil(len(flat) / world)
    pieces = [flat[size * k : size * (k + 1)] for k in range(world)]
    after, before = (rank + 1) % world, (rank - 1) % world
    for k in range(world - 1):
        got = yield "exchange", after, pieces[(rank - k) % world], before
        mine = (rank - k - 1) % world
        pieces[mine] = pieces[mine] + got
    for k in range(world - 1):
        got = yield "exchange", after, pieces[(rank + 1 - k) % world], before
        pieces[(rank - k) % world] = got
    return torch.cat(pieces).reshape(tensor.shape)
    ### END SOLUTION

# %%
mine = Each([torch.arange(6.0).reshape(2, 3) * 10**k for k in range(3)])
came = run(ring_all_reduce, 3, mine, rendezvous=False)
expect_equal("the sum of three", came.results, [torch.arange(6.0).reshape(2, 3) * 111] * 3)
expect_equal("bytes that each sent", [came.sent(rank) for rank in range(3)], [32, 32, 32])
try:
    run(ring_all_reduce, 3, mine)
except Deadlock as deadlock:
    print("where sends wait:", deadlock)
else:
    print("where sends wait: nobody stands still")

# %%
odd = Each(
    [torch.tensor([1.5, 2.5, 1e8]), torch.tensor([0.5, 0.25, 1.0]), *torch.rand(3, 3).unbind()]
)
came = run(ring_all_reduce, 5, odd)
expect_close("three numbers at five ranks", came.results[0], sum(odd), rtol=1e-5)
expect_equal("the same bits", came.results, [came.results[0]] * 5)
show_over_gloo(ring_all_reduce, 4, Each(odd[:4]))

# %% test="ring_all_reduce" points=4
# Graded
check("ring_all_reduce")
expect_equal(
    "no numbers", run(ring_all_reduce, 2, torch.ones(0, 3)).results, [torch.ones(0, 3)] * 2
)
### BEGIN HIDDEN TESTS
verify("ring_all_reduce", ring_all_reduce)
### END HIDDEN TESTS

# %% [markdown]
# ## 3 · What a collective costs
#
# *Easy, 20 minutes, 3 points: one for all-reduce, one for its halves, one for the tree.*
# From the lesson: [Collectives and what they cost](../../notebooks/10_distributed.ipynb#cell-id=collectives-and-what-they-cost).
#
# A message of b bytes takes `latency + b / bandwidth` seconds, and a rank can send one and receive one
# at the same time. Write `cost(kind, size, world, latency, bandwidth)`, which returns two floats: how
# many bytes that rank sends which sends most, and how many seconds the collective takes. `size` is in
# bytes, and it divides by `world`, which is 1 or more.
#
# - `"all_reduce"`: a ring, with `world` pieces of one size; `size` is the tensor's.
# - `"reduce_scatter"`: the first half of that ring; `size` is the size of all that one rank puts in.
# - `"all_gather"`: the second half; `size` is the size of all that one rank has in the end.
# - `"broadcast"`: the tree of exercise 1, ⌈log₂ world⌉ rounds in which the source always sends;
#   `size` is the tensor's, which is not cut into pieces.
#
# Alone, a rank sends nothing, and it takes no time: `(0.0, 0.0)`.
#
# <details><summary>One round of a ring</summary>
#
# Everybody sends a piece of `size / world` bytes at the same time, so it takes as long as one message.
# How many rounds are there?
# </details>
# <details><summary>Logarithms of whole numbers</summary>
#
# `math.log2` rounds. `(world - 1).bit_length()` is ⌈log₂ world⌉, exactly.
# </details>

# %% solution="cost"
def cost(kind: str, size: int, world: int, latency: float, bandwidth: float) -> tuple[float, float]:
    """Bytes that the busiest rank sends, and seconds."""
    ### BEGIN SOLUTION
    if kind == "broadcast":
        rounds, piece = (world - 1).bit_length(), size
    else:
        rounds, piece = world - 1, size / world
        if kind == "all_reduce":
            rounds *= 2
    return float(rounds * piece), rounds * (latency + piece / bandwidth)
    ### END SOLUTION

# %%
expect_close("all_reduce", cost("all_reduce", 6000, 3, 0.5, 1000.0), (8000.0, 10.0), rtol=1e-9)
expect_close("all_gather", cost("all_gather", 6000, 3, 0.5, 1000.0), (4000.0, 5.0), rtol=1e-9)
expect_close(
    "broadcast to six", cost("broadcast", 6000, 6, 0.5, 1000.0), (18000.0, 19.5), rtol=1e-9
)

# %%
# the ring that torch would use, and a network with a slow start: where does latency weigh more?
for size in (2**10, 2**20, 2**30):
    print(
        f"{size:>13,} bytes:",
        *(f"{cost('all_reduce', size, n, 1e-5, 5e10)[1]:.2e} s" for n in (2, 8, 64, 1024)),
    )

# %% test="cost" points=3
# Graded
check("cost")
expect_equal("alone", cost("all_reduce", 100, 1, 0.5, 10.0), (0.0, 0.0))
### BEGIN HIDDEN TESTS
verify("cost", cost)
### END HIDDEN TESTS

# %% [markdown]
# ## 4 · One big batch
#
# *Medium, 30 minutes, 5 points: one for the same start, one for the gradients, one for unequal
# shards, one for frozen and unused parameters, one for buckets.*
# From the lesson: [One big batch](../../notebooks/10_distributed.ipynb#cell-id=one-big-batch).
#
# Data parallel: each rank has the whole model and some rows of the batch. Write two programs, of which
# the network may be asked for `broadcast` and `all_reduce` only.
#
# `ddp_start(rank, world, model)` gives all ranks the parameters and buffers of rank 0, frozen ones,
# too. The tensors that the model has stay the same objects and get new values, since an optimizer may
# hold them already. Buffers may be of any dtype, and some may not be in the state dict. What is
# returned is not looked at.
#
# `ddp_step(rank, world, model, x, y, bucket_bytes)` computes gradients and leaves the parameters alone.
# `x` are this rank's rows and `y` their classes; the model maps `x` to logits. The loss is the mean
# cross-entropy over the rows of *all* ranks together, and each rank returns it, as a float. Afterwards
# each `.grad` is the gradient of that loss, the same at all ranks. Ranks may have different numbers of
# rows, and one may have none; together they have one or more.
#
# - What was in `.grad` before counts for nothing.
# - A parameter that needs no gradient takes no part, and gets none. One that is used in two places is
#   one parameter.
# - A parameter that this rank's rows have not used has no gradient here. Another rank may have one, so
#   it takes part with zeros; where no rank has used it, its gradient is zero. (DDP's stays None there.)
# - Each rank asks for this, in this order. First an all-reduce of a float32 tensor with two numbers,
#   in any order: the sum of the losses of its rows, and how many rows it has. Then gradients, in
#   buckets: the parameters in the reverse order of `model.parameters()`, about as a backward pass
#   gets at them. A bucket takes the next parameter as long as all its gradients have `bucket_bytes`
#   bytes or fewer together; a parameter that is larger is alone in a bucket. This is done for you:
#   `driver.buckets(parameters, bucket_bytes)` is a list of lists of parameters. Each bucket is one
#   all-reduce of a flat tensor. Parameters are float32.
#
# <details><summary>The mean over all rows</summary>
#
# The mean of the ranks' means is another number if they have different numbers of rows. Take sums:
# `F.cross_entropy(..., reduction="sum")`, and divide by the number of all rows, before or after you
# add up.
# </details>
# <details><summary>Into a bucket and out of it</summary>
#
# Give `driver.buckets` the parameters that take part, backwards. `torch.cat` of a bucket's flat gradients
# goes into the network, and what comes back is cut by `split` with the parameters' numbers of elements.
# </details>

# %% solution="ddp"
def ddp_start(rank: int, world: int, model: nn.Module):
    """A rank's program: parameters and buffers become those of rank 0."""
    ### BEGIN SOLUTION
    for tensor in [*model.parameters(), *model.buffers()]:
        got = yield "broadcast", tensor.detach(), 0
        tensor.detach().copy_(got)
    ### END SOLUTION


def ddp_step(rank: int, world: int, model: nn.Module, x: Tensor, y: Tensor, bucket_bytes: int):
    """A rank's program: `.grad` gets the gradient of the mean over all ranks' rows, returned."""
    ### BEGIN SOLUTION
    model.zero_grad()
    loss = F.cross_entropy(model(x), y, reduction="sum")
    loss.backward()
    total, rows = yield "all_reduce", torch.tensor([loss.item(), len(x)]), "sum"
    trained = [p for p in model.parameters() if p.requires_grad]
    for bucket in driver.buckets(reversed(trained), bucket_bytes):
        flat = [torch.zeros_like(p) if p.grad is None else p.grad for p in bucket]
        summed = yield "all_reduce", torch.cat([g.flatten() for g in flat]) / rows, "sum"
        pieces = summed.split([p.numel() for p in bucket])
        for parameter, piece in zip(bucket, pieces):
            parameter.grad = piece.reshape(parameter.shape)
    return (total / rows).item()
    ### END SOLUTION

# %%
def started(rank, world, values):
    return driver.started(ddp_start, rank, world, values)

begun = run(started, 3, Each([5, 6, 7])).results
first = driver.Net(5)
names = ["still.weight", "again.bias", "seen", "scale", "mask"]
for name in names:
    want = dict([*first.named_parameters(remove_duplicate=False), *first.named_buffers()])[
        name
    ].detach()
    expect_equal(f"{name} at rank 2", begun[2]["tensors"][name], want)

# %%
def stepped(rank, world, x, y, bucket_bytes, stale):
    return driver.stepped(ddp_step, rank, world, 5, x, y, bucket_bytes, stale)

whole = torch.tensor([[0.5, 1.0, -1.0], [0.75, -2.0, 0.25], [1.0, 0.5, 2.0]])
classes = torch.tensor([0, 4, 2])
F.cross_entropy(first(whole), classes).backward()
want = {name: p.grad for name, p in first.named_parameters()}
came = run(stepped, 2, Each([whole[:1], whole[1:]]), Each([classes[:1], classes[1:]]), 100, True)
mine, other = came.results
expect_close("the loss", mine["loss"], F.cross_entropy(first(whole), classes).item(), rtol=1e-5)
expect_close("a gradient of one row and two", mine["gradients"]["head.weight"], want["head.weight"])
expect_close("at the other rank", other["gradients"]["inner.weight"], want["inner.weight"])
expect_equal("a frozen one", mine["gradients"]["still.weight"], None)
expect_equal("one that nobody used", mine["gradients"]["spare.weight"], torch.zeros(1, 2))
shapes = [event.shape for event in came.collectives]
expect_equal("what was reduced", shapes, [(2,), (25,), (19,), (20,), (16,)])
show_over_gloo(
    stepped, 2, Each([whole[:1], whole[1:]]), Each([classes[:1], classes[1:]]), 100, False
)

# %% test="ddp" points=5
# Graded
check("ddp")
def stepped(rank, world, x, y, bucket_bytes, stale):
    return driver.stepped(ddp_step, rank, world, 5, x, y, bucket_bytes, stale)


whole = torch.tensor([[0.5, 1.0, -1.0], [0.75, -2.0, 0.25], [1.0, 0.5, 2.0]])
classes = torch.tensor([0, 4, 2])
rows, wanted = Each([whole[:0], whole]), Each([classes[:0], classes])
reduced = run(stepped, 2, rows, wanted, 10**6, False).collectives
expect_equal("one bucket, and a rank without rows", [e.shape for e in reduced], [(2,), (80,)])
### BEGIN HIDDEN TESTS
verify("ddp", ddp_start=ddp_start, ddp_step=ddp_step)
### END HIDDEN TESTS

# %% [markdown]
# ## 5 · Who holds what
#
# *Medium, 25 minutes, 4 points: one for shards, one for the step, one for momentum, one for what is
# gathered when.*
# From the lesson: [Who holds what](../../notebooks/10_distributed.ipynb#cell-id=who-holds-what).
#
# Fully sharded: no rank holds a whole parameter for longer than it computes with it.
#
# `shard(tensor, rank, world)` is a plain function. It returns the rank's piece of a tensor: the flat
# tensor, filled up with zeros at its end until its length divides by `world`, is cut into `world` equal
# pieces, and the rank gets the one with its number: 1-dim, of the tensor's dtype. It has a storage of
# its own, with nothing else in it, since a view would keep the whole tensor in memory; your own process
# says whether it has.
#
# `fsdp_step(rank, world, shards, moments, shapes, x, y, lr, momentum)` is a program. The model is a stack
# of linear layers without biases, with a ReLU between one and the next and none after the last.
# `shards[k]` is this rank's piece of the weight of layer k, whose shape `(out, in)` is `shapes[k]`, and
# `moments[k]` a tensor of the shard's size. `x` and `y` are this rank's rows, (B, in) and (B, out), all
# ranks have as many, and the loss is `F.mse_loss`, the mean over the rows of all ranks. It does one step of
# SGD with momentum, where g is the gradient of that loss:
#
# m ← momentum · m + g,  w ← w - lr · m
#
# and returns a tuple: the loss of *its own* rows, a float; the list of new shards; the list of new
# moments. Each rank asks for this and nothing else: for layers 0 to last an all_gather of the shard, as
# the forward pass comes to it; then, from the last layer to the first, an all_gather of the shard again,
# because the weight was let go, and a reduce_scatter of its gradient, which is filled up with zeros and
# cut as a weight is. The formulas are done for you: for z = h Wᵀ, `driver.linear_backward(h, weight,
# gradient_of_z)` returns the gradients for the weight and for h.
#
# <details><summary>The backward pass of a layer</summary>
#
# Keep the inputs of all layers, and begin with the gradient of the loss for the last z. Through a ReLU
# goes only what belongs to a positive number.
# </details>
# <details><summary>The mean over all ranks</summary>
#
# All have equally many rows, so the gradient is the mean of the ranks' gradients: the sum that comes
# back, divided by `world`.
# </details>

# %% solution="fsdp_step"
def shard(tensor: Tensor, rank: int, world: int) -> Tensor:
    """The rank's piece of the flat tensor, filled up with zeros."""
    ### BEGIN SOLUTION
    size = -(-tensor.numel() // world)
    padded = F.pad(tensor.flatten(), (0, size * world - tensor.numel()))
    return padded[rank * size : (rank + 1) * size].clone()
    ### END SOLUTION


def fsdp_step(
    rank: int,
    world: int,
    shards: list,
    moments: list,
    shapes: list,
    x: Tensor,
    y: Tensor,
    lr: float,
    momentum: float,
):
    """A rank's program: (loss of its own rows, new shards, new moments)."""

    ### BEGIN SOLUTION
    def gather(k):
        pieces = yield "all_gather", shards[k]
        return torch.cat(pieces)[: math.prod(shapes[k])].view(shapes[k])

    last = len(shards) - 1
    h, inputs = x, []
    for k in range(last + 1):
        inputs.append(h)
        weight = yield from gather(k)
        h = h @ weight.T
        if k < last:
            h = h.relu()
    loss = F.mse_loss(h, y).item()
    upstream = 2 * (h - y) / y.numel()
    new_shards, new_moments = list(shards), list(moments)
    for k in reversed(range(last + 1)):
        weight = yield from gather(k)
        gradient, upstream = driver.linear_backward(inputs[k], weight, upstream)
        upstream = upstream * (inputs[k] > 0)
        missing = len(shards[k]) * world - gradient.numel()
        pieces = F.pad(gradient.flatten(), (0, missing)).chunk(world)
        mine = yield "reduce_scatter", pieces, "sum"
        new_moments[k] = momentum * moments[k] + mine / world
        new_shards[k] = shards[k] - lr * new_moments[k]
    return loss, new_shards, new_moments
    ### END SOLUTION

# %%
five = torch.tensor([[1.0, 2.0, 3.0, 4.0, 5.0]])
expect_equal(
    "five numbers at three ranks",
    [shard(five, r, 3).tolist() for r in range(3)],
    [[1.0, 2.0], [3.0, 4.0], [5.0, 0.0]],
)
piece = shard(five, 0, 1)
piece.zero_()
expect_equal("the tensor is as it was", five[0, 0].item(), 1.0)

# %%
shapes = [(3, 2), (1, 3)]
weights = [
    torch.tensor([[1.0, -1.0], [0.5, 2.0], [-1.0, 1.0]]).requires_grad_(),
    torch.tensor([[2.0, 1.0, -1.0]]).requires_grad_(),
]
x, y = torch.tensor([[1.0, 2.0], [3.0, 1.0]]), torch.tensor([[1.0], [2.0]])
F.mse_loss((x @ weights[0].T).relu() @ weights[1].T, y).backward()
pieces = Each([[shard(w.detach(), r, 2) for w in weights] for r in range(2)])
moments = Each([[shard(torch.ones(shape), r, 2) for shape in shapes] for r in range(2)])
came = run(
    fsdp_step, 2, pieces, moments, shapes, Each([x[:1], x[1:]]), Each([y[:1], y[1:]]), 0.1, 0.5
)
for k, weight in enumerate(weights):
    flat = torch.cat([new_shards[k] for _, new_shards, _ in came.results])[: weight.numel()]
    want = weight.detach() - 0.1 * (0.5 + weight.grad)
    expect_close(f"the new weight of layer {k}", flat.view(shapes[k]), want)
expect_close("the loss of each", [loss for loss, _, _ in came.results], [6.25, 30.25], rtol=1e-6)
kinds = [(event.kind, event.shape) for event in came.collectives]
gather, scatter = "all_gather", "reduce_scatter"
want = [
    (gather, (3,)),
    (gather, (2,)),
    (gather, (2,)),
    (scatter, (2,)),
    (gather, (3,)),
    (scatter, (3,)),
]
expect_equal("what was asked for", kinds, want)
show_over_gloo(
    fsdp_step, 2, pieces, moments, shapes, Each([x[:1], x[1:]]), Each([y[:1], y[1:]]), 0.1, 0.5
)

# %% test="fsdp_step" points=4
# Graded
check("fsdp_step")
expect_equal(
    "a number at two ranks", [shard(torch.tensor(7), r, 2).tolist() for r in range(2)], [[7], [0]]
)
### BEGIN HIDDEN TESTS
verify("fsdp_step", shard=shard, fsdp_step=fsdp_step)
### END HIDDEN TESTS

# %% [markdown]
# ## 6 · The LM head, cut two ways
#
# *Medium, 35 minutes, 5 points: one for the loss by columns, one for its gradient, one for large logits,
# one for bytes, one for rows.*
# From the lesson: [The LM head cut two ways](../../notebooks/10_distributed.ipynb#cell-id=the-lm-head-cut-two-ways).
#
# Tensor parallel: the LM head's weight is (V, D), a row for each word, and its logits are `F.linear(x, weight, bias)`.
# Written on paper as x · Wᵀ, its V words are the *columns* and its D channels the *rows*; that is where the
# two names come from. Of both programs the network may be asked for `all_reduce` only.
#
# `column_loss(rank, world, x, weight, bias, first, targets)`: this rank has some words. `weight` is
# (V_r, D) and `bias` (V_r,), for the words from number `first` on; ranks may have different numbers of
# words, one or more each. `x`, (T, D), is the same at all ranks, and so are `targets`, (T,) int64, numbers
# of words of the whole vocabulary. Each rank returns a tuple: the mean cross-entropy, a 0-dim tensor; and
# the gradient of it for `x`, (T, D).
#
# - Logits stay where they are. All that a rank puts into the network, from the start to the end, is at
#   most T · D + 3 · T numbers.
# - Logits of some thousands, positive or negative, are no harm.
#
# `row_logits(rank, world, x, weight, bias)`: this rank has some channels. `x` is (T, D_r), `weight` is
# (V, D_r), and `bias`, (V,), is the whole one, at each rank. Each rank returns the whole logits, (T, V).
# It puts T · V numbers into the network, once.
#
# <details><summary>A softmax over words that are elsewhere</summary>
#
# Three numbers for each token are needed from all ranks: the largest logit; the sum of the exponentials,
# once that largest one is taken off; and the logit of the target, which one rank has.
# </details>
# <details><summary>The gradient</summary>
#
# For the logits it is (softmax - one-hot) / T, and each rank has that for its own words. Times its own
# weight this gives its share of the gradient for x.
# </details>

# %% solution="parallel_head"
def column_loss(
    rank: int, world: int, x: Tensor, weight: Tensor, bias: Tensor, first: int, targets: Tensor
):
    """A rank's program: the mean cross-entropy and its gradient for x, by some of the words."""
    ### BEGIN SOLUTION
    logits = x @ weight.T + bias
    largest = yield "all_reduce", logits.amax(dim=1), "max"
    powers = (logits - largest[:, None]).exp()
    total = yield "all_reduce", powers.sum(dim=1), "sum"
    mine = (targets >= first) & (targets < first + len(bias))
    rows = mine.nonzero()[:, 0]
    chosen = torch.zeros_like(largest)
    chosen[rows] = logits[rows, targets[rows] - first]
    chosen = yield "all_reduce", chosen, "sum"
    loss = (largest + total.log() - chosen).mean()
    upstream = powers / total[:, None]
    upstream[rows, targets[rows] - first] -= 1
    gradient = yield "all_reduce", upstream @ weight / len(x), "sum"
    return loss, gradient
    ### END SOLUTION


def row_logits(rank: int, world: int, x: Tensor, weight: Tensor, bias: Tensor):
    """A rank's program: the whole logits, by some of the channels."""
    ### BEGIN SOLUTION
    logits = yield "all_reduce", x @ weight.T, "sum"
    return logits + bias
    ### END SOLUTION

# %%
x = torch.tensor([[1.0, 0.0], [0.5, -1.0], [0.0, 2.0]]).requires_grad_()
weight = torch.tensor([[1.0, 2.0], [0.0, 1.0], [-1.0, 1.0], [3.0, 0.0], [2.0, 2.0]])
bias, targets = torch.tensor([0.0, 1.0, 0.0, -1.0, 0.5]), torch.tensor([3, 0, 4])
loss = F.cross_entropy(F.linear(x, weight, bias), targets)
(want,) = torch.autograd.grad(loss, x)
cut = Each([weight[:2], weight[2:]]), Each([bias[:2], bias[2:]]), Each([0, 2])
came = run(column_loss, 2, x.detach(), *cut, targets)
expect_close("the loss of both ranks", [one for one, _ in came.results], [loss.detach()] * 2)
expect_close("the gradient of both ranks", [other for _, other in came.results], [want] * 2)
expect_equal(
    "few bytes", sum(event.bytes for event in came.collectives) <= 4 * (3 * 2 + 3 * 3), True
)
far = Each([1000 * weight[:2], 1000 * weight[2:]]), *cut[1:]
want = F.cross_entropy(x.detach() @ (1000 * weight.T) + bias, targets)
expect_close("large logits", run(column_loss, 2, x.detach(), *far, targets).results[0][0], want)

# %%
# the real head, 64 channels by 600 words, on real hidden states
gpt = load_minigpt()
hidden = gpt.hidden(torch.arange(12).reshape(1, 12))[0].detach()
head, shift = gpt.lm_head.weight.detach(), gpt.lm_head.bias.detach()
halves = Each([hidden[:, :32], hidden[:, 32:]]), Each([head[:, :32], head[:, 32:]])
with torch.no_grad():
    want = gpt.lm_head(hidden)
came = run(row_logits, 2, *halves, shift)
expect_close("MiniGPT's logits, by rows", came.results, [want, want], rtol=1e-4, atol=1e-4)
show_over_gloo(row_logits, 2, *halves, shift)
words = (
    Each([head[:200], head[200:400], head[400:]]),
    Each([shift[:200], shift[200:400], shift[400:]]),
)
show_over_gloo(column_loss, 3, hidden, *words, Each([0, 200, 400]), torch.arange(1, 13))

# %% test="parallel_head" points=5
# Graded
check("parallel_head")
x = torch.tensor([[1.0, 0.0], [0.5, -1.0], [0.0, 2.0]])
weight = torch.tensor([[1.0, 2.0], [0.0, 1.0], [-1.0, 1.0], [3.0, 0.0], [2.0, 2.0]])
bias, targets = torch.tensor([0.0, 1.0, 0.0, -1.0, 0.5]), torch.tensor([3, 0, 4])
came = run(column_loss, 1, x, weight, bias, 0, targets).results
expect_close("one rank alone", came[0][0], F.cross_entropy(F.linear(x, weight, bias), targets))
### BEGIN HIDDEN TESTS
verify("parallel_head", column_loss=column_loss, row_logits=row_logits)
### END HIDDEN TESTS

# %% [markdown]
# ## 7 · The pipeline
#
# *Further, medium, 30 minutes, 4 points: one for GPipe, one for 1F1B, one for what is in flight,
# one for the bubble.*
# From the lesson: [The pipeline and its bubble](../../notebooks/10_distributed.ipynb#cell-id=the-pipeline-and-its-bubble).
#
# Pipeline parallel: each stage has some layers, and a batch goes through in `micro` pieces, numbered from
# 0. Stage s can do the forward of piece k, `("F", k)`, once stage s - 1 has done it; and the backward,
# `("B", k)`, once it has done that forward itself and stage s + 1 has done the backward. It does one thing
# at a time, in the order of its list.
#
# Write `schedule(stages, micro, kind)`, which returns a list with a list of such pairs for each stage: each
# piece forward once and backward once. Both numbers are 1 or more, and there may be fewer pieces than
# stages. A stage takes the pieces in the order of their numbers, but for the backwards of `"gpipe"`,
# whose order is free.
#
# - `"gpipe"`: each stage does all its forwards first, and then all its backwards.
# - `"1f1b"`: a piece is *in flight* at a stage from its forward until its backward there, and its
#   activations take memory as long. No stage s ever has more than `stages - s` pieces in flight.
#
# In both kinds nobody waits for ever, and the whole takes as little time as its rule allows, whether a
# backward takes as long as a forward or twice as long. Messages take no time here.
#
# `bubble(stages, micro)` returns the share of its time, a float, for which a stage stands idle while
# the pipeline runs, where a forward takes as long at each stage, and so does a backward: each stage works
# for `micro` of both, and from the first to the last moment it takes `micro + stages - 1` of both.
#
# <details><summary>When may a stage begin with backwards?</summary>
#
# The last stage can do the backward of piece 0 as soon as it has done its forward. Stage s gets it back
# `stages - 1 - s` stages later: until then it goes on with forwards, if there are as many.
# </details>
# <details><summary>And after that?</summary>
#
# One forward, one backward, in turns, until no forward is left; then the backwards that remain.
# </details>

# %% solution="pipeline"
def schedule(stages: int, micro: int, kind: str) -> list[list[tuple[str, int]]]:
    """What each stage does, in order."""
    ### BEGIN SOLUTION
    plan = []
    for stage in range(stages):
        ahead = micro if kind == "gpipe" else min(micro, stages - 1 - stage)
        mine = [("F", k) for k in range(ahead)]
        for k in range(ahead, micro):
            mine += [("F", k), ("B", k - ahead)]
        mine += [("B", k) for k in range(micro - ahead, micro)]
        plan.append(mine)
    return plan
    ### END SOLUTION


def bubble(stages: int, micro: int) -> float:
    """The share of its time for which a stage is idle."""
    ### BEGIN SOLUTION
    return (stages - 1) / (micro + stages - 1)
    ### END SOLUTION

# %%
def flying(stage):
    """The most pieces in flight at a stage."""
    now = [sum(1 if what == "F" else -1 for what, _ in stage[: k + 1]) for k in range(len(stage))]
    return max(now)

for kind, most in (("gpipe", [5, 5, 5]), ("1f1b", [3, 2, 1])):
    plan = schedule(3, 5, kind)
    expect_equal(f"{kind}: each once", [len(set(stage)) for stage in plan], [10, 10, 10])
    came = run(driver.follow, 3, plan, rendezvous=False)
    expect_equal(
        f"{kind}: seconds, and how many are in flight",
        (came.seconds, [flying(s) for s in plan]),
        (21.0, most),
    )
expect_equal("gpipe's first backward", schedule(3, 5, "gpipe")[2].index(("B", 4)) >= 5, True)
expect_close("the bubble", bubble(3, 5), 2 / 7, rtol=1e-9)

# %% test="pipeline" points=4
# Graded
check("pipeline")
expect_equal("one stage", schedule(1, 2, "1f1b"), [[("F", 0), ("B", 0), ("F", 1), ("B", 1)]])
### BEGIN HIDDEN TESTS
verify("pipeline", schedule=schedule, bubble=bubble)
### END HIDDEN TESTS

# %% [markdown]
# ## 8 · A thousand ranks
#
# *Further, easy, 20 minutes, 3 points: one for memory, one for bytes, one for seconds.*
# From the lesson: [Eight ranks, 64, 1,024](../../notebooks/10_distributed.ipynb#cell-id=eight-ranks-64-1-024).
#
# Nobody tries out on 1,024 GPUs whether a model fits. Write `plan(parameters, layers, world, kind, tokens,
# machine)`, which reckons it beforehand for a model of so many parameters in so many equal layers. Each of
# the `world` ranks works on `tokens` tokens a step. Weights and gradients are bfloat16, 2 bytes each; the
# optimizer has a float32 copy of the weights and two float32 moments, 12 bytes a parameter. `machine` is
# a dict of floats: `"flops"`, what a rank does in a second; `"bandwidth"`, in bytes a second, and
# `"latency"` in seconds. It returns a dict of three floats, where `kind` is `"ddp"` or `"fsdp"`:
#
# - `"memory"`: bytes at each rank, without activations. With DDP each rank has all of it. With FSDP
#   everything is cut by the number of ranks, and beside it the bfloat16 weights of one whole layer
#   (its whole gradient, which the lesson's figure counts as well, is left out here).
# - `"sent"`: bytes that a rank sends in a step, by rings of equal pieces: DDP all-reduces the bfloat16
#   gradients; FSDP all-gathers the bfloat16 weights twice and reduce-scatters the bfloat16
#   gradients.
# - `"seconds"`: of a step. Computing takes 6 operations for a parameter and a token. Both kinds
#   communicate layer by layer: one ring collective of those above for a layer, or three. A round of a ring
#   takes `latency + piece / bandwidth`, a piece is the layer's bytes by `world`, and an all-reduce has
#   twice as many rounds as an all-gather or a reduce-scatter. At best all of it is hidden behind computing,
#   or the other way round: a step takes as long as the longer of the two.
#
# <details><summary>How many rounds?</summary>
#
# An all-gather, or a reduce-scatter, has `world - 1`, and so many times a piece does a rank send.
# </details>
# <details><summary>Alone</summary>
#
# With one rank there is nothing to send: zero rounds come out by themselves.
# </details>

# %% solution="plan"
def plan(parameters: int, layers: int, world: int, kind: str, tokens: int, machine: dict) -> dict:
    """Memory of a rank, bytes that it sends, and seconds of a step."""
    ### BEGIN SOLUTION
    weights = 2 * parameters
    if kind == "ddp":
        memory, rounds = float(16 * parameters), 2 * (world - 1)
    else:
        memory, rounds = 16 * parameters / world + weights / layers, 3 * (world - 1)
    piece = weights / layers / world
    communicating = layers * rounds * (machine["latency"] + piece / machine["bandwidth"])
    computing = 6 * parameters * tokens / machine["flops"]
    return {
        "memory": memory,
        "sent": layers * rounds * piece,
        "seconds": max(computing, communicating),
    }
    ### END SOLUTION

# %%
slow = {"flops": 1e6, "bandwidth": 1e4, "latency": 0.5}
came = plan(8000, 4, 2, "ddp", 10, slow)
expect_close(
    "ddp", (came["memory"], came["sent"], came["seconds"]), (128_000.0, 16_000.0, 5.6), rtol=1e-9
)
came = plan(8000, 4, 2, "fsdp", 200, slow)
expect_close(
    "fsdp", (came["memory"], came["sent"], came["seconds"]), (68_000.0, 24_000.0, 9.6), rtol=1e-9
)

# %%
# 7 billion parameters in 32 layers, 4,096 tokens at each rank
gpu = {"flops": 4e14, "bandwidth": 5e10, "latency": 1e-5}
for kind in ("ddp", "fsdp"):
    for world in (1, 8, 64, 1024):
        came = plan(7 * 10**9, 32, world, kind, 4096, gpu)
        print(
            f"{kind:4} {world:5} ranks: {came['memory'] / 1e9:6.1f} GB, sends "
            f"{came['sent'] / 1e9:5.1f} GB, {came['seconds']:.2f} s a step"
        )

# %% test="plan" points=3
# Graded
check("plan")
slow = {"flops": 1e6, "bandwidth": 1e4, "latency": 0.5}
expect_equal(
    "what it holds", sorted(plan(8000, 4, 1, "ddp", 10, slow)), ["memory", "seconds", "sent"]
)
### BEGIN HIDDEN TESTS
verify("plan", plan)
### END HIDDEN TESTS

# %% [markdown]
# ## 9 · MiniGPT on several ranks
#
# *Hard, 30 minutes, 5 points: one for the loss, one for the gradient's norm, two for the new weights, one
# for what is sent and held.*
# From the lesson: [Who holds what](../../notebooks/10_distributed.ipynb#cell-id=who-holds-what).
#
# Each rank has all of MiniGPT and some lines, and a share of the optimizer: AdamW keeps two numbers for each
# parameter, and none of them need exist twice. This is what is called ZeRO-1. Write the program
# `minigpt_step(rank, world, model, tokens, targets, state, lr, max_norm)`, one training step:
#
# - `tokens` and `targets` are this rank's, (B, T) int64. The loss is the mean cross-entropy over the targets
#   of *all* ranks that are not -100. A rank may have none of them, but not all ranks.
# - The gradient of that loss, over all parameters together, is clipped as
#   `torch.nn.utils.clip_grad_norm_` does it: with its norm n, it is multiplied by `max_norm / (n + 1e-6)` if
#   that is below 1.
# - The slice of a rank is its piece of all parameters, flat and one after the other, as in
#   `model.parameters()` or in any order that all ranks share, filled up with zeros and cut into `world`
#   equal pieces. This is done for you: `driver.pieces(tensors, world)` is the list of these pieces.
# - `driver.adamw(slice, gradient, state, lr)` is AdamW with `eps=1e-5` and a weight decay of 0.01. It
#   returns the new values of a slice, and the new state. `state` is this rank's, `{"step": 0}` at first.
# - In the end the model has new weights, the same at all ranks, and the program returns a tuple: the loss,
#   the norm before clipping, both floats, and the new state.
#
# Each rank asks for this, in this order: an all_reduce of a float32 tensor with two numbers, in any order:
# the sum of the losses of its targets, and how many they are; a reduce_scatter of its gradient, in flat
# pieces; an all_reduce of one number, shape (1,), the sum of the squares of its own piece of the gradient;
# an all_gather of its new slice. What was in `.grad` before counts for nothing, and what is there
# afterwards is not looked at.
#
# <details><summary>Gradients, and the way back into the model</summary>
#
# `torch.autograd.grad` of the loss for all parameters gives a tuple, which `driver.pieces` takes.
# `torch.nn.utils.vector_to_parameters` gives one long tensor back to the parameters; it doesn't mind zeros
# at the end.
# </details>
# <details><summary>The norm of something that nobody has as a whole</summary>
#
# Squares can be added up: each rank those of its piece, and the network does the rest. Divide the gradient
# by the number of targets before, not after.
# </details>

# %% solution="minigpt_step"
def minigpt_step(
    rank: int,
    world: int,
    model: nn.Module,
    tokens: Tensor,
    targets: Tensor,
    state: dict,
    lr: float,
    max_norm: float,
):
    """A rank's program: one step of AdamW on the model; (loss, norm before clipping, new state)."""
    ### BEGIN SOLUTION
    parameters = list(model.parameters())
    loss = F.cross_entropy(model(tokens).flatten(0, 1), targets.flatten(), reduction="sum")
    gradients = torch.autograd.grad(loss, parameters)
    counted = (targets != -100).sum().item()
    total, count = yield "all_reduce", torch.tensor([loss.item(), counted]), "sum"

    pieces = [piece / count for piece in driver.pieces(gradients, world)]
    gradient = yield "reduce_scatter", pieces, "sum"
    squares = yield "all_reduce", gradient.square().sum().reshape(1), "sum"
    norm = squares.sqrt().item()
    gradient = gradient * min(1.0, max_norm / (norm + 1e-6))

    mine = driver.pieces(parameters, world)[rank]
    mine, state = driver.adamw(mine, gradient, state, lr)
    slices = yield "all_gather", mine
    nn.utils.vector_to_parameters(torch.cat(slices), parameters)
    return (total / count).item(), norm, state
    ### END SOLUTION

# %%
small = {"vocab_size": 7, "d_model": 4, "n_heads": 1, "n_layers": 1, "d_ff": 8, "context": 5}
lines = torch.tensor([[1, 2, 3, 4], [2, 3, 0, 0], [5, 6, 1, 0]])
nexts = torch.tensor([[2, 3, 4, 5], [3, -100, -100, -100], [6, 1, -100, -100]])

def trained(rank, world, config, batches, max_norm):
    return driver.trained(minigpt_step, rank, world, config, 3, batches, 0.01, max_norm)

alone = driver.minigpt_of(small, 3)
optimizer = torch.optim.AdamW(alone.parameters(), lr=0.01, eps=1e-5, weight_decay=0.01)
said = []
for _ in range(2):
    optimizer.zero_grad()
    loss = F.cross_entropy(alone(lines).flatten(0, 1), nexts.flatten())
    loss.backward()
    norm = nn.utils.clip_grad_norm_(alone.parameters(), 0.5)
    optimizer.step()
    said.append((loss.item(), norm.item()))
both = Each([[(lines[:1], nexts[:1])] * 2, [(lines[1:], nexts[1:])] * 2])
came = run(trained, 2, small, both, 0.5)
for rank, mine in enumerate(came.results):
    expect_close(f"rank {rank}: two losses", mine["losses"], [loss for loss, _ in said], rtol=1e-4)
    expect_close(f"rank {rank}: two norms", mine["norms"], [norm for _, norm in said], rtol=1e-4)
    want = nn.utils.parameters_to_vector(alone.parameters()).detach()
    expect_close(f"rank {rank}: the weights", mine["weights"], want, atol=1e-5)

# %%
# the real one, and the real processes: each holds half of the optimizer's 359,088 numbers
lines = torch.arange(24).reshape(4, 6)
both = Each([[(lines[:2], lines[:2] + 1)], [(lines[2:], lines[2:] + 1)]])
came = run(trained, 2, None, both, 1.0)
print("held:", [mine["held"] for mine in came.results], " loss:", came.results[0]["losses"])
expect_equal(
    "what was asked for",
    [event.shape for event in came.collectives],
    [(2,), (89772,), (1,), (89772,)],
)
lost = [mine["weights"].isnan().any().item() for mine in came.results]
expect_equal("no weight is lost", lost, [False, False])
show_over_gloo(trained, 2, None, both, 1.0)

# %% test="minigpt_step" points=5
# Graded
check("minigpt_step")
def trained(rank, world, config, batches, max_norm):
    return driver.trained(minigpt_step, rank, world, config, 3, batches, 0.01, max_norm)


small = {"vocab_size": 7, "d_model": 4, "n_heads": 1, "n_layers": 1, "d_ff": 8, "context": 5}
lines = torch.tensor([[1, 2, 3, 4]])
came = run(trained, 2, small, Each([[(lines, lines + 1)], [(lines + 1, lines)]]), 1.0)
lost = [mine["weights"].isnan().any().item() for mine in came.results]
expect_equal("no weight is lost", lost, [False, False])
### BEGIN HIDDEN TESTS
verify("minigpt_step", minigpt_step)
### END HIDDEN TESTS

# %% [markdown] task="four_ways" points=4
# ## 10 · Four ways to cut
#
# *15 minutes, 4 points, read by a person.*
#
# Describe DDP, FSDP, tensor parallel and pipeline parallel in two sentences each: what each rank holds, and
# what goes over the network and when. Then answer in two or three sentences more: with
# `find_unused_parameters=True`, what does `DistributedDataParallel` find, when and how; and why does a model
# that needs it, and doesn't have it, sometimes work for many steps?
#
# === BEGIN MARK SCHEME ===
#
# One point each for: DDP and FSDP; tensor parallel; pipeline parallel; unused parameters. Half a
# point where one of the two (what is held, what is sent) is missing.
#
# - **DDP**: a whole model, whole gradients and a whole optimizer at each rank, a shard of the batch.
#   Gradients are all-reduced in buckets, during backward, in the reverse order of the parameters.
#   **FSDP**: a shard of parameters, gradients and optimizer at each rank. All-gather of a layer's
#   weights before its forward, and again before its backward; reduce-scatter of its gradients
#   after it.
# - **Tensor parallel**: a piece of each weight at each rank, and the same batch. Activations are reduced or
#   gathered within each layer, forward and backward (an all-reduce after a row split, before the
#   softmax or the next layer after a column split), so it wants a fast network.
# - **Pipeline parallel**: whole layers at each rank, one stage after the other. Activations go forward
#   and their gradients back, point to point, a micro-batch at a time; stages idle at both
#   ends, the bubble (p - 1) / (m + p - 1).
# - **Unused parameters**: after the forward pass it walks the autograd graph from the outputs and marks all
#   parameters that the graph doesn't reach as ready, so that their buckets are reduced without waiting for
#   a hook that never fires. Without it, a bucket with such a parameter is never reduced, and the
#   next forward raises. It works as long as each rank uses all parameters, as when a branch depends
#   on the data or on chance and happens to be taken at every rank; the answer must say that it depends on
#   what ran in that step.
#
# === END MARK SCHEME ===

# %% [markdown]
# *Your answer goes here.*

# %% [markdown]
# ## Done
#
# Use *Kernel → Restart Kernel and Run All Cells* once more, so that you know your notebook works
# from top to bottom, then save it.
#
# You began with a tensor of two numbers, and have arrived at the step that trains large models: the
# model, the loop, the compiler and the network are code that you have written once, in small. Whatever
# stands in a traceback from now on, you know which of these floors it comes from.
