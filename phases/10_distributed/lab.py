# ---
# jupyter:
#   kernelspec: {display_name: Python 3, language: python, name: python3}
#   open_the_hood: {title: "Lab 10: Distributed", points: 40, cell_seconds: 90, preload: [optimizers], loopback: true}
# ---

# %% [markdown]
# # Lab 10: Distributed
#
# Nine exercises and one question, 40 points, about three and a half hours without the *further*
# exercises 7 and 8, which take an hour more. A class may leave those out, or count them as a bonus.
# Otherwise all points count. The lab follows [lesson 10](../../notebooks/10_distributed.ipynb) in
# two sittings: the lesson's first half is enough for exercises 1 to 4, which take about an hour and
# a half. You write what a library for distributed training is made of: a broadcast, a ring, DDP,
# FSDP, a head that is cut in two, a pipeline's schedule, and a cost model for machines that you
# don't have. At the end MiniGPT does a training step on several ranks, and none of them has the
# whole optimizer's state.
#
# A rank's program is a generator function. It is called with the rank's number, `rank`, and with
# the number of all ranks, `world`. It *yields* each request to the network, and returns the rank's
# result:
#
# ```
# yield "send", to, tensor                          # None
# got = yield "recv", source                        # a tensor
# got = yield "exchange", to, tensor, source        # sends and receives, both at the same time
# total = yield "all_reduce", tensor, "sum"         # "max" is possible, too
# tensors = yield "all_gather", tensor              # a list, one tensor of each rank
# mine = yield "reduce_scatter", tensors, "sum"     # a list with one tensor for each rank goes in
# got = yield "broadcast", tensor_or_none, source
# ```
#
# Ranks share nothing, like processes: everything that a rank knows about other ranks came through
# the network. To call another function that yields, write `value = yield from function(...)`. This
# gives the value that the function returns. In each exercise you may use only the requests that it
# names. A send waits until its receiver asks for the tensor, except where an exercise says that
# sends are buffered.
#
# The network here is simulated in this process, and grading uses the same network. It resumes your
# generators, carries the tensors and sees every byte, so no points depend on a clock or on luck. In
# grading the network also does something that no rank knows: in a sum it may count a rank twice or
# not at all, as if other ranks had the same data (`run(..., counts=[2, 0])`). So only results that
# came through the network are right. Some cells run your program once more in real processes, over
# gloo, and print whether the results agree.
#
# Each graded cell begins with `check(...)`, which gives the same verdict as grading. It uses random
# values and sizes that you have not seen, new ones each time. Parts of an exercise earn their
# points separately, and no exercise needs the answer to another exercise. Stuck? Each exercise has
# two folded hints. Run the next cell, then start.

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
# *Easy, 20 minutes, 3 points: one for the tensor at every rank, one for any source, one for few
# rounds.* From the lesson: [Collectives and what they cost](../../notebooks/10_distributed.ipynb#cell-id=collectives-and-what-they-cost).
#
# One rank, `source`, has a tensor, and all others need it. Write the program `tree_broadcast(rank,
# world, tensor, source)`: at the source, the argument `tensor` is this tensor, and at all other
# ranks it is `None`. Each rank returns the tensor. You may use only `send` and `recv`.
#
# - A rank that has the tensor can pass it on, so the number of ranks that have it can double in
#   each round. In one round a rank may take part in at most one message. The program must be done
#   after ⌈log₂ world⌉ rounds. If every message takes one second, whatever its size, this means
#   ⌈log₂ world⌉ seconds after the start.
# - Each rank except the source must receive it exactly once, and the source must never receive it.
# - It must work for any number of ranks, from 1 on, and with any of them as the source.
#
# <details><summary>Another source than 0</summary>
#
# Count ranks from the source: `(rank - source) % world`. Then the source has place 0, and the rank
# at place p has the number `(p + source) % world`.
# </details>
# <details><summary>Who sends to whom, in which round?</summary>
#
# The step is 1, 2, 4 … If a rank's place is below the step, it has the tensor already. It sends the
# tensor to the place one step further, if there is such a place. The rank at that place receives in
# this round.
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
# Write the program `ring_all_reduce(rank, world, tensor)`. Each rank has a tensor of the same shape
# and dtype; each returns the sum of all of them, in this shape and dtype.
#
# - A rank must send only to its successor, `(rank + 1) % world`, and receive only from its
#   predecessor. You may use only `send`, `recv` and `exchange`.
# - With n numbers in a tensor, no message may have more than c = ⌈n / world⌉ of them, and a rank
#   may send 2 · (world - 1) messages at most. So the bytes that a rank sends hardly depend on the
#   number of ranks.
# - All ranks must return exactly the same bits. Floating-point sums depend on their order. So each
#   piece is added up once, on its way around, and the other ranks get a copy of the sum.
# - The tensor may have any shape; it may have fewer numbers than there are ranks, or no numbers.
#   Its dtype is float32, float64 or int64, and there is one rank or more.
# - For three of the points sends are buffered. For the point about sends that wait, sends are not
#   buffered. There a ring in which every rank sends first waits for ever and earns nothing.
#
# <details><summary>The two halves</summary>
#
# First come world - 1 rounds. In each round a rank sends the piece to which it has just added its
# own. After these rounds each rank has one piece with the whole sum. Then come world - 1 rounds in
# which the finished pieces go around. In round k of the first half, rank r sends piece (r - k) %
# world.
# </details>
# <details><summary>Pieces of unequal length</summary>
#
# The receiver does not need to know a piece's length: it gets a tensor. If you cut the flat tensor
# at multiples of c, the last pieces may be shorter, or empty. An empty tensor can be sent like any
# other tensor.
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
# *Easy, 20 minutes, 3 points: one for all-reduce, one for its halves, one for the tree.* From the
# lesson: [Collectives and what they cost](../../notebooks/10_distributed.ipynb#cell-id=collectives-and-what-they-cost).
#
# A message of b bytes takes `latency + b / bandwidth` seconds, and a rank can send one and receive
# one at the same time. Write `cost(kind, size, world, latency, bandwidth)`, which returns two
# floats: how many bytes the busiest rank sends (the rank that sends most), and how many seconds the
# collective takes. `size` is in bytes and is a multiple of `world`, which is 1 or more.
#
# - `"all_reduce"`: a ring, with `world` pieces of one size; `size` is the tensor's size.
# - `"reduce_scatter"`: the first half of that ring; `size` is the size of all that one rank puts in.
# - `"all_gather"`: the second half; `size` is the size of all that one rank has at the end.
# - `"broadcast"`: the tree of exercise 1, ⌈log₂ world⌉ rounds in which the source always sends;
#   `size` is the tensor's size. The tensor is not cut into pieces.
#
# With one rank nothing is sent and no time passes: return `(0.0, 0.0)`.
#
# <details><summary>One round of a ring</summary>
#
# All ranks send a piece of `size / world` bytes at the same time, so a round takes as long as one
# message. How many rounds are there?
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
# Data parallel: each rank has the whole model and some rows of the batch. Write two programs. They
# may use only `broadcast` and `all_reduce`.
#
# `ddp_start(rank, world, model)` gives all ranks the parameters and buffers of rank 0, frozen ones,
# too. The model's tensors must stay the same objects and get new values, because an optimizer may
# refer to them already. Buffers may be of any dtype, and some may not be in the state dict. The
# return value is ignored.
#
# `ddp_step(rank, world, model, x, y, bucket_bytes)` computes gradients and must not change the
# parameters. `x` contains this rank's rows and `y` their classes. The model maps `x` to logits. The
# loss is the mean cross-entropy over the rows of *all* ranks together, and each rank returns it, as
# a float. Afterwards each `.grad` must be the gradient of that loss, the same at all ranks. Ranks
# may have different numbers of rows, and a rank may have no rows. All ranks together have at least
# one row.
#
# - What was in `.grad` before must have no effect.
# - A parameter that needs no gradient must take no part, and gets no gradient. A parameter that is
#   used in two places counts as one parameter.
# - A parameter that this rank's rows have not used has no gradient here. Another rank may have one,
#   so the parameter takes part with zeros. If no rank has used it, its gradient is zero. (With DDP
#   it stays None.)
# - Each rank must make these requests, in this order. First an all-reduce of a float32 tensor with
#   two numbers, in any order: the sum of the losses of its rows, and the number of its rows. Then
#   the gradients are all-reduced in buckets, in the reverse order of `model.parameters()`, which is
#   roughly the order of a backward pass. A bucket takes the next parameter as long as all its
#   gradients together have `bucket_bytes` bytes or fewer; a larger parameter is alone in its
#   bucket. This is done for you: `driver.buckets(parameters, bucket_bytes)` is a list of lists of
#   parameters. Each bucket is one all-reduce of a flat tensor. Parameters are float32.
#
# <details><summary>The mean over all rows</summary>
#
# If ranks have different numbers of rows, the mean of their means is another number. Take sums with
# `F.cross_entropy(..., reduction="sum")`, and divide by the number of all rows, before or after you
# add up.
# </details>
# <details><summary>Into a bucket and out of it</summary>
#
# Give `driver.buckets` the parameters that take part, in reverse order. Put a bucket's flat
# gradients together with `torch.cat` and all-reduce them. Then cut the sum with `split`, by the
# parameters' numbers of elements.
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
# *Medium, 25 minutes, 4 points: one for shards, one for the step, one for momentum, one for
# gathering when needed.* From the lesson: [Who holds what](../../notebooks/10_distributed.ipynb#cell-id=who-holds-what).
#
# Fully sharded: a rank has a whole parameter only while it computes with it.
#
# `shard(tensor, rank, world)` is a plain function. It returns the rank's piece of a tensor: the
# flat tensor, filled up with zeros at its end until `world` divides its length, is cut into `world`
# equal pieces. The rank gets the piece with its number: 1-dim, of the tensor's dtype. The piece
# must have a storage of its own, with nothing else in it, since a view would keep the whole tensor
# in memory. (The check measures this in your own process.)
#
# `fsdp_step(rank, world, shards, moments, shapes, x, y, lr, momentum)` is a program. The model is a
# stack of linear layers without biases, with a ReLU between one layer and the next and none after
# the last. `shards[k]` is this rank's piece of the weight of layer k, and `moments[k]` is a tensor
# of the shard's size. The weight's shape `(out, in)` is `shapes[k]`. `x` and `y` are this rank's
# rows, (B, in) and (B, out). All ranks have equally many rows, and the loss is `F.mse_loss`, the
# mean over the rows of all ranks. The program does one step of SGD with momentum, in which g is the
# gradient of that loss:
#
# m ← momentum · m + g,  w ← w - lr · m
#
# It returns a tuple: the loss of *its own* rows, a float; the list of new shards; the list of new
# moments. Each rank must make these requests and no others: for layers 0 to last an all_gather of
# the shard, as the forward pass comes to it; then, from the last layer to the first, an all_gather
# of the shard again, because the weight was not kept, and a reduce_scatter of its gradient, which
# is filled up with zeros and cut as a weight is. The formulas are done for you: for z = h Wᵀ,
# `driver.linear_backward(h, weight, gradient_of_z)` returns the gradients for the weight and for h.
#
# <details><summary>The backward pass of a layer</summary>
#
# Keep the inputs of all layers, and begin with the gradient of the loss for the last z. A ReLU lets
# the gradient of a number through only if the number is positive.
# </details>
# <details><summary>The mean over all ranks</summary>
#
# All ranks have equally many rows, so the gradient is the mean of the ranks' gradients: divide the
# sum from the reduce_scatter by `world`.
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
# *Medium, 35 minutes, 5 points: one for the loss by columns, one for its gradient, one for large
# logits, one for bytes, one for rows.* From the lesson: [The LM head cut two ways](../../notebooks/10_distributed.ipynb#cell-id=the-lm-head-cut-two-ways).
#
# Tensor parallel: the LM head's weight is (V, D), with a row for each word, and its logits are
# `F.linear(x, weight, bias)`. Written on paper, that is x · Wᵀ. In Wᵀ the V words are the *columns*
# and the D channels are the *rows*, and so the two cuts got their names. Both programs may use only
# `all_reduce`.
#
# `column_loss(rank, world, x, weight, bias, first, targets)`: this rank has some words. `weight` is
# (V_r, D) and `bias` is (V_r,), for the words from number `first` on; ranks may have different
# numbers of words, one or more each. `x`, (T, D), is the same at all ranks, and so are `targets`,
# (T,) int64, numbers of words of the whole vocabulary. Each rank returns a tuple: the mean
# cross-entropy, a 0-dim tensor; and the gradient of it for `x`, (T, D).
#
# - Logits must stay at the rank that computed them. In all, a rank may put at most T · D + 3 · T
#   numbers into the network.
# - Logits of some thousands, positive or negative, must give the right result, too.
#
# `row_logits(rank, world, x, weight, bias)`: this rank has some channels. `x` is (T, D_r), `weight`
# is (V, D_r), and `bias`, (V,), is the whole one, at each rank. Each rank returns the whole logits,
# (T, V). It must put T · V numbers into the network, once.
#
# <details><summary>A softmax over words that are elsewhere</summary>
#
# For each token you need three numbers from all ranks: the largest logit; the sum of the
# exponentials of the logits minus this largest logit; and the logit of the target, which one rank
# has.
# </details>
# <details><summary>The gradient</summary>
#
# The gradient for the logits is (softmax - one-hot) / T, and each rank has it for its own words.
# Multiplied by its own weight, this gives the rank's share of the gradient for x.
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
# one for the bubble.* From the lesson: [The pipeline and its bubble](../../notebooks/10_distributed.ipynb#cell-id=the-pipeline-and-its-bubble).
#
# Pipeline parallel: each stage has some layers, and a batch goes through in `micro` pieces,
# numbered from 0. Stage s can do the forward of piece k, `("F", k)`, once stage s - 1 has done it;
# and the backward, `("B", k)`, once it has done that forward itself and stage s + 1 has done the
# backward. A stage does one thing at a time, in the order of its list.
#
# Write `schedule(stages, micro, kind)`, which returns a list with a list of such pairs for each
# stage: each piece forward once and backward once. `stages` and `micro` are 1 or more, and there
# may be fewer pieces than stages. A stage must take the pieces in the order of their numbers; only
# the backwards of `"gpipe"` may come in any order.
#
# - `"gpipe"`: each stage does all its forwards first, and then all its backwards.
# - `"1f1b"`: a piece is *in flight* at a stage from its forward until its backward there, and
#   during this time its activations take memory. No stage s may ever have more than `stages - s`
#   pieces in flight.
#
# In both kinds no stage may wait for ever, and the whole must take as little time as its rule
# allows, both if a backward takes as long as a forward and if it takes twice as long. Messages take
# no time here.
#
# `bubble(stages, micro)` returns a float: the share of the pipeline's time for which a stage stands
# idle. All forwards take equally long, and so do all backwards. Each stage works for `micro` of
# both, and from the first to the last moment it takes `micro + stages - 1` of both.
#
# <details><summary>When may a stage begin with backwards?</summary>
#
# The last stage can do the backward of piece 0 as soon as it has done the forward of piece 0. Stage
# s can do it `stages - 1 - s` stages later. Until then stage s goes on with forwards, if there are
# enough pieces.
# </details>
# <details><summary>And after that?</summary>
#
# Then it does one forward and one backward in turns, until no forward is left. The remaining
# backwards come last.
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
# Before you rent 1,024 GPUs, you work out whether the model fits. Write `plan(parameters, layers,
# world, kind, tokens, machine)`, which does this for a model with `parameters` parameters in
# `layers` equal layers. Each of the `world` ranks works on `tokens` tokens a step. Weights and
# gradients are bfloat16, 2 bytes each; the optimizer has a float32 copy of the weights and two
# float32 moments, 12 bytes a parameter. `machine` is a dict of floats: `"flops"`, the operations of
# a rank in a second; `"bandwidth"`, in bytes a second, and `"latency"` in seconds. `kind` is
# `"ddp"` or `"fsdp"`. Return a dict of three floats:
#
# - `"memory"`: bytes at each rank, without activations. With DDP each rank has all of it. With FSDP
#   everything is divided by the number of ranks; add the bfloat16 weights of one whole layer. (The
#   lesson's figure also counts the layer's whole gradient. Leave it out here.)
# - `"sent"`: bytes that a rank sends in a step, by rings of equal pieces: DDP all-reduces the bfloat16
#   gradients; FSDP all-gathers the bfloat16 weights twice and reduce-scatters the bfloat16
#   gradients.
# - `"seconds"`: the time of a step. Computing takes 6 operations for each parameter and token. Both
#   kinds communicate layer by layer: a layer needs the ring collectives above, one with DDP and
#   three with FSDP. A round of a ring takes `latency + piece / bandwidth`, a piece is the layer's
#   bytes divided by `world`, and an all-reduce has twice as many rounds as an all-gather or a
#   reduce-scatter. Assume the best case: computing and communicating happen at the same time, so a
#   step takes as long as the longer of the two.
#
# <details><summary>How many rounds?</summary>
#
# An all-gather or a reduce-scatter has `world - 1` rounds, and in each of them a rank sends one
# piece.
# </details>
# <details><summary>Alone</summary>
#
# With one rank there is nothing to send, and the formula gives zero rounds by itself.
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
# *Hard, 30 minutes, 5 points: one for the loss, one for the gradient's norm, two for the new
# weights, one for bytes and memory.* From the lesson: [Who holds what](../../notebooks/10_distributed.ipynb#cell-id=who-holds-what).
#
# Each rank has all of MiniGPT and some lines, and a share of the optimizer: AdamW keeps two numbers
# for each parameter, and each of these numbers needs to be at only one rank. This is called ZeRO-1.
# Write the program `minigpt_step(rank, world, model, tokens, targets, state, lr, max_norm)`, one
# training step:
#
# - `tokens` and `targets` belong to this rank, and are int64 of shape (B, T). The loss is the mean
#   cross-entropy over those targets of *all* ranks that are not -100. A rank may have none of them,
#   but at least one rank has some.
# - The gradient of that loss, over all parameters together, is clipped as
#   `torch.nn.utils.clip_grad_norm_` does it: with its norm n, it is multiplied by `max_norm / (n + 1e-6)` if
#   that is below 1.
# - The slice of a rank is its piece of all parameters: flat and one after the other, as in
#   `model.parameters()` or in any order that all ranks share. They are filled up with zeros and cut
#   into `world` equal pieces. This is done for you: `driver.pieces(tensors, world)` is the list of
#   these pieces.
# - `driver.adamw(slice, gradient, state, lr)` is AdamW with `eps=1e-5` and a weight decay of 0.01.
#   It returns the new values of a slice, and the new state. `state` is this rank's state, and
#   `{"step": 0}` at first.
# - At the end the model must have new weights, the same at all ranks. The program returns a tuple:
#   the loss and the norm before clipping, both floats, and the new state.
#
# Each rank must make these requests, in this order: an all_reduce of a float32 tensor with two
# numbers, in any order: the sum of the losses of its targets, and the number of these targets; a
# reduce_scatter of its gradient, in flat pieces; an all_reduce of one number, shape (1,), the sum
# of the squares of its own piece of the gradient; an all_gather of its new slice. What was in
# `.grad` before must have no effect; its contents afterwards do not matter.
#
# <details><summary>Gradients, and the way back into the model</summary>
#
# `torch.autograd.grad` of the loss for all parameters gives a tuple, which you can pass to
# `driver.pieces`. `torch.nn.utils.vector_to_parameters` writes one long tensor into the parameters.
# It ignores zeros at the end.
# </details>
# <details><summary>The norm of something that no rank has as a whole</summary>
#
# Squares can be added up: each rank adds the squares of its own piece, and the network adds the
# ranks' sums. Before you square the gradient, divide it by the number of targets.
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
# Describe DDP, FSDP, tensor parallel and pipeline parallel in two sentences each: what each rank
# keeps, and what goes over the network and when. Then answer in two or three more sentences: with
# `find_unused_parameters=True`, what does `DistributedDataParallel` find, when and how? And why
# does a model that needs this flag sometimes work for many steps without it?
#
# === BEGIN MARK SCHEME ===
#
# Give one point for each of these: DDP and FSDP; tensor parallel; pipeline parallel; unused
# parameters. Give half a point if one of the two (what a rank keeps, what is sent) is missing.
#
# - **DDP**: each rank has the whole model, whole gradients, a whole optimizer, and a shard of the
#   batch. Gradients are all-reduced in buckets, during the backward, in the reverse order of the
#   parameters. **FSDP**: each rank has a shard of parameters, gradients and optimizer. A layer's
#   weights are all-gathered before its forward, and again before its backward. Its gradients are
#   reduce-scattered after that.
# - **Tensor parallel**: each rank has a piece of each weight, and the same batch. Activations are
#   reduced or gathered within each layer, forward and backward, so it needs a fast network. After a
#   row split there is an all-reduce. After a column split there is one before the softmax or the
#   next layer.
# - **Pipeline parallel**: each rank has whole layers, which are one stage. Activations go forward
#   and their gradients back, point to point, one micro-batch at a time. At both ends stages are
#   idle: the bubble is (p - 1) / (m + p - 1).
# - **Unused parameters**: after the forward pass DDP walks the autograd graph from the outputs. It
#   marks all parameters that it doesn't reach as ready, so that their buckets don't wait for a hook
#   that never fires. Without the flag, a bucket with such a parameter is never reduced, and the
#   next forward raises an error. The model works as long as each rank uses all parameters. For
#   example, a branch depends on the data or on chance, and every rank happens to take it. The
#   answer must say that it depends on what ran in that step.
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
# You began with a tensor of two numbers, and now you have written the step that trains large
# models. You have written the model, the loop, the compiler and the network once, on a small scale.
# Whatever a traceback says from now on, you know which of these parts it comes from.
