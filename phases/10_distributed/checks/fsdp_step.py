"""Lab 10, exercise 5: Who holds what"""

import math

import torch
from torch.nn import functional as F

from utils.checks.exercise import Case, Check, edited
from utils.checks.lab_solution import lab_solution

from .shared import SUMS, as_run, others, ranks

fsdp_step = Check(
    "fsdp_step",
    parts={"shards": 1, "the step": 1, "momentum": 1, "gathered when needed": 1},
    reads="Who holds what",
    tolerance=SUMS,
    sharing=True,
)

PLACES = {
    "['keeps more in memory']": "the piece is a view, and keeps a whole tensor in memory.",
    "['losses']": "the loss of each rank's own rows",
    "['shards']": "new shards, from rank 0 on",
    "['moments']": "new moments, from rank 0 on",
    "['other requests']": "something else than all_gather and reduce_scatter was asked for.",
    "['asked for']": "what each rank asked for, in order",
}


@fsdp_step.reference
class _:
    def shard(tensor, rank, world):
        size = (tensor.numel() + world - 1) // world
        piece = torch.zeros(size, dtype=tensor.dtype)
        own = tensor.reshape(-1)[rank * size : (rank + 1) * size]
        piece[: len(own)] = own
        return piece

    def fsdp_step(rank, world, shards, moments, shapes, x, y, lr, momentum):
        kept, h = [], x
        for k in range(len(shards)):
            flat = torch.cat((yield "all_gather", shards[k]))
            weight = flat[: shapes[k][0] * shapes[k][1]].reshape(shapes[k])
            kept.append(h)
            h = F.linear(h, weight)
            if k < len(shards) - 1:
                h = F.relu(h)
        loss, upstream = F.mse_loss(h, y), 2 * (h - y) / y.numel()
        after = [None] * len(shards), [None] * len(shards)
        for k in range(len(shards) - 1, -1, -1):
            flat = torch.cat((yield "all_gather", shards[k]))
            weight = flat[: shapes[k][0] * shapes[k][1]].reshape(shapes[k]).requires_grad_()
            with torch.enable_grad():
                h = kept[k].detach().requires_grad_()
                z = F.linear(h, weight)
                if k < len(shards) - 1:
                    z = F.relu(z)
            upstream, gradient = torch.autograd.grad(z, (h, weight), upstream)
            padded = torch.zeros(world * len(shards[k]))
            padded[: gradient.numel()] = gradient.reshape(-1)
            summed = yield "reduce_scatter", list(padded.reshape(world, -1)), "sum"
            after[1][k] = momentum * moments[k] + summed / world
            after[0][k] = shards[k] - lr * after[1][k]
        return loss.item(), after[0], after[1]


@fsdp_step.cases
def _(draw):
    shards, step, momentum, gathered = fsdp_step.parts

    def cut(shape, world, dtype=torch.float32, layout="contiguous"):
        rank = draw.integer(0, world - 1)
        words = f"shape {shape}, rank {rank} of {world}"
        return piece_of(draw.tensor(shape, dtype, layout), rank, world, words)

    def piece_of(tensor, rank, world, words):
        def play(subject):
            subject.claim("that a shard keeps nothing else in memory")
            came = subject["shard"](tensor, rank, world)
            whole = came.untyped_storage().nbytes() > came.nbytes
            return {"the shard": came, "keeps more in memory": whole}

        return Case(shards, play, of="shard", shown=words, places=PLACES)

    def pieces(tensor, world):
        size = -(-tensor.numel() // world)
        flat = torch.zeros(size * world)
        flat[: tensor.numel()] = tensor.reshape(-1)
        return list(flat.reshape(world, size).clone().unbind())

    def stepped(part, widths, world, rows):
        shapes = [(out, into) for into, out in zip(widths, widths[1:], strict=False)]
        weights = [draw.tensor(shape) for shape in shapes]
        inputs = [draw.tensor((rows, widths[0])) for _ in range(world)]
        if len(shapes) == 1:  # a negative output in each run
            inputs[0][0] = -weights[0][0]
        moving = part == momentum
        before = [draw.tensor(s) if moving else torch.zeros(s) for s in shapes]
        lr, keeps = draw.integer(1, 9) / 20, draw.integer(1, 9) / 10 if moving else 0.0
        parts = [pieces(weight, world) for weight in weights]
        moments = [pieces(moment, world) for moment in before]
        each = [
            (
                [piece[rank].clone() for piece in parts],
                [moment[rank].clone() for moment in moments],
                shapes,
                inputs[rank],
                draw.tensor((rows, widths[-1])),
                lr,
                keeps,
            )
            for rank in range(world)
        ]

        def play(subject):
            came = ranks(subject, each, of="fsdp_step")
            if part == gathered:
                return {
                    "asked for": [f"{event.kind} {event.shape}" for event in came.collectives],
                    "other requests": others(came, "all_gather", "reduce_scatter"),
                }
            found = {
                "losses": [result[0] for result in came.results],
                "shards": [result[1] for result in came.results],
            }
            if part == momentum:
                found["moments"] = [result[2] for result in came.results]
            return found

        words = f"{world} rank{'s' * (world > 1)} with {rows} rows, widths {widths}"
        shows = {
            "losses": "{}.results[{at}][0]",
            "shards": "{}.results[{at}][1]",
            "moments": "{}.results[{at}][2]",
            "asked for": "[f'{event.kind} {event.shape}' for event in {}.collectives]",
        }
        paste = as_run("fsdp_step", each, shows)
        return Case(part, play, of="fsdp_step", shown=words, places=PLACES, paste=paste)

    n = draw.integer(2, 4)
    for rank in range(3):
        tensor = draw.tensor((7,))
        yield piece_of(tensor, rank, 3, f"7 numbers, rank {rank} of 3")
    yield cut((2, n), 2)
    yield cut((n, n), n)
    yield cut((3, 5), 4)
    yield cut((n, 3), 1)
    yield cut((5, 2), 3, torch.int64)
    yield cut((4, 3), 2, layout="transposed")
    yield cut((5, 3), 4, layout="transposed")
    yield cut((2, 2, 3), 5, torch.float64)
    yield piece_of(draw.tensor((2,)), 2, 4, "2 numbers, rank 2 of 4")
    yield piece_of(draw.tensor(()), 0, 2, "a 0-dim tensor, rank 0 of 2")
    yield stepped(step, [2, 4, 3], 2, n)
    yield stepped(step, [3, 5, 3, 1], 3, 2)
    yield stepped(step, [2, 3, 2, 3, 1], 2, 2)
    yield stepped(step, [n, 3], 2, 2)
    yield stepped(step, [n, 2, 2], 1, 3)
    yield stepped(step, [1, 3, 1], 4, 1)
    yield stepped(momentum, [2, 3, 2], 2, n)
    yield stepped(momentum, [n, 3, 1], 3, 2)
    yield stepped(momentum, [2, 2], 1, 2)
    yield stepped(gathered, [2, 3, n, 2], 2, 2)
    yield stepped(gathered, [n, 3], 3, 1)
    yield stepped(gathered, [2, 4, 3, 2, 1], 1, 2)


shard = lab_solution(__name__, "fsdp_step", "shard")


def _fsdp_step(rank, world, shards, moments, shapes, x, y, lr, momentum):
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
        gradient = upstream.T @ inputs[k]
        upstream = (upstream @ weight) * (inputs[k] > 0)
        missing = len(shards[k]) * world - gradient.numel()
        pieces = F.pad(gradient.flatten(), (0, missing)).chunk(world)
        mine = yield "reduce_scatter", pieces, "sum"
        new_moments[k] = momentum * moments[k] + mine / world
        new_shards[k] = shards[k] - lr * new_moments[k]
    return loss, new_shards, new_moments


_fsdp_step.__name__ = "fsdp_step"


def _cut(name, explanation, earns, *edits):
    fsdp_step.misconception(name, explanation, earns=earns)({"shard": edited(shard, *edits)})


def _wrong(name, explanation, earns, *edits):
    fsdp_step.misconception(name, explanation, earns=earns)({"fsdp_step": edited(_fsdp_step, *edits)})


_cut(
    "a view",
    "the piece is a view, so as long as it lives the whole tensor stays in memory.",
    3,
    ("padded = F.pad(tensor.flatten(), (0, size * world - tensor.numel()))", "missing = size * world - tensor.numel()\n    padded = F.pad(tensor.flatten(), (0, missing)) if missing else tensor.flatten()"),
    (".clone()", ""),
)
_cut(
    "without zeros",
    "the last pieces are shorter than the others.",
    3,
    ("padded = F.pad(tensor.flatten(), (0, size * world - tensor.numel()))", "padded = tensor.flatten()"),
)
_cut(
    "zeros in front",
    "the zeros come first, and not last.",
    3,
    ("(0, size * world - tensor.numel())", "(size * world - tensor.numel(), 0)"),
)
_cut(
    "rounded down",
    "pieces are too short where the tensor doesn't divide, and its last numbers are lost.",
    3,
    ("-(-tensor.numel() // world)", "tensor.numel() // world"),
    ("(0, size * world - tensor.numel())", "(0, 0)"),
)
_cut(
    "every so many",
    "a rank gets every world-th number, and not neighbours.",
    3,
    ("padded[rank * size:(rank + 1) * size]", "padded[rank::world]"),
)
_cut(
    "rows are cut",
    "the tensor is cut along its first dimension.",
    3,
    ("padded = F.pad(tensor.flatten(), (0, size * world - tensor.numel()))", "tensor = tensor if tensor.dim() else tensor.reshape(1)\n    size = -(-len(tensor) // world)\n    padded = F.pad(tensor.movedim(0, -1), (0, size * world - len(tensor))).movedim(-1, 0)"),
)
_wrong(
    "the sum over the ranks",
    "the gradient is the sum of the ranks' gradients, and not their mean.",
    2,
    ("mine / world", "mine"),
)
_wrong(
    "weights are kept",
    "no weight is gathered a second time: all of them are held from the forward pass on.",
    3,
    ("h, inputs = (x, [])", "h, inputs = (x, [])\n    weights = []"),
    ("h = h @ weight.T", "weights.append(weight)\n        h = h @ weight.T"),
    ("weight = (yield from gather(k))\n        gradient", "weight = weights[k]\n        gradient"),
)
_wrong(
    "all weights first",
    "the second time, too, weights are gathered from the first layer to the last, before any gradient: each rank holds the whole model.",
    3,
    ("h, inputs = (x, [])", "h, inputs = (x, [])\n    weights = []\n    for k in range(last + 1):\n        weights.append((yield from gather(k)))\n    for k in range(last + 1):\n        weights.append((yield from gather(k)))"),
    ("weight = (yield from gather(k))\n        h =", "weight = weights[k]\n        h ="),
    ("weight = (yield from gather(k))\n        gradient", "weight = weights[k]\n        gradient"),
)
_wrong(
    "all-reduced",
    "the whole gradient comes back to each rank, which then keeps its piece.",
    3,
    ("mine = (yield ('reduce_scatter', pieces, 'sum'))", "whole = yield ('all_reduce', torch.cat(pieces), 'sum')\n        mine = whole.chunk(world)[rank]"),
)
_wrong(
    "its own rows' gradient",
    "each rank keeps its piece of the gradient of its own rows.",
    2,
    ("mine = (yield ('reduce_scatter', pieces, 'sum'))", "yield ('reduce_scatter', pieces, 'sum')\n        mine = world * pieces[rank]"),
)
_wrong(
    "a ReLU after the last layer",
    "what comes out of the last layer is cut off at 0.",
    2,
    ("if k < last:", "if True:"),
)
_wrong(
    "the gradient goes through the ReLU uncut",
    "gradients of the layers before the last one are as if there were no ReLU on the way back.",
    2,
    (" * (inputs[k] > 0)", ""),
)
_wrong(
    "a ReLU before the first layer",
    "what is negative in x is cut off.",
    2,
    ("h, inputs = (x, [])", "h, inputs = (x.relu(), [])"),
)
_wrong(
    "the loss of a mean over rows",
    "the loss is the mean over rows of what each row's numbers give together.",
    2,
    ("F.mse_loss(h, y).item()", "(h - y).square().sum(dim=1).mean().item()"),
)
_wrong(
    "momentum not carried on",
    "the step is made of the new gradient alone.",
    3,
    ("momentum * moments[k] + mine / world", "mine / world"),
)
_wrong(
    "dampened",
    "the new gradient is multiplied by 1 - momentum.",
    3,
    ("momentum * moments[k] + mine / world", "momentum * moments[k] + (1 - momentum) * mine / world"),
)
_wrong(
    "stepped by the old moment",
    "the step is made with the moment from before this gradient.",
    2,
    ("shards[k] - lr * new_moments[k]", "shards[k] - lr * moments[k]"),
)
_wrong(
    "lr in the moment",
    "moments hold the learning rate, too.",
    3,
    ("momentum * moments[k] + mine / world", "momentum * moments[k] + lr * mine / world"),
    ("shards[k] - lr * new_moments[k]", "shards[k] - new_moments[k]"),
)
_wrong(
    "the loss of all",
    "the loss is another one than that of the rank's own rows.",
    2,
    ("loss = F.mse_loss(h, y).item()", "loss = F.mse_loss(h, y, reduction='sum').item()"),
)


_wrong(
    "the mean over rows alone",
    "the gradient is that of a mean over rows, and not over all numbers.",
    2,
    ("/ y.numel()", "/ len(y)"),
)
_wrong(
    "half the slope",
    "the gradient is half of what it is.",
    2,
    ("2 * (h - y)", "(h - y)"),
)


_wrong(
    "uphill",
    "the step goes up the slope.",
    2,
    ("shards[k] - lr * new_moments[k]", "shards[k] + lr * new_moments[k]"),
)
_wrong(
    "Nesterov's momentum",
    "the step is made as Nesterov's momentum makes it.",
    3,
    ("shards[k] - lr * new_moments[k]", "shards[k] - lr * (momentum * new_moments[k] + mine / world)"),
)
_wrong(
    "the gradients as moments",
    "gradients are returned where moments are asked for.",
    3,
    ("shards[k] - lr * new_moments[k]", "shards[k] - lr * new_moments[k]\n        new_moments[k] = mine / world"),
)
_wrong(
    "the last weight is kept",
    "the last layer's weight is not gathered a second time.",
    3,
    ("weight = (yield from gather(k))\n        gradient", "if k < last:\n            weight = (yield from gather(k))\n        gradient"),
)
_wrong(
    "a tensor for the loss",
    "the loss is a tensor, and no number.",
    2,
    ("F.mse_loss(h, y).item()", "F.mse_loss(h, y)"),
)


_wrong(
    'no momentum in the step',
    'the step is made of the new gradient alone, though the moments are right.',
    3,
    ('shards[k] - lr * new_moments[k]', 'shards[k] - lr * mine / world'),
)
_wrong(
    'the old moments returned',
    'the moments that come back are those that were passed in.',
    3,
    ('return (loss, new_shards, new_moments)', 'return (loss, new_shards, list(moments))'),
)
_wrong(
    'moments first',
    'moments come before shards.',
    2,
    ('return (loss, new_shards, new_moments)', 'return (loss, new_moments, new_shards)'),
)
_wrong(
    'negative gradients are cut off',
    'on the way back, the ReLU is applied to the gradient.',
    2,
    ('upstream = upstream @ weight * (inputs[k] > 0)', 'upstream = (upstream @ weight).relu()'),
)
_wrong(
    'the loss times the ranks',
    'the loss that is returned is larger, by the number of ranks.',
    2,
    ('return (loss,', 'return (loss * world,'),
)
_wrong(
    'a shard sent along',
    'ranks send to each other, beside the collectives.',
    3,
    ("pieces = (yield ('all_gather', shards[k]))", "if world > 1:\n            yield ('exchange', (rank + 1) % world, shards[k], (rank - 1) % world)\n        pieces = (yield ('all_gather', shards[k]))"),
)


@fsdp_step.alternate("a layer at a time through autograd")
class _:
    def shard(tensor, rank, world):
        flat = tensor.reshape(-1)
        missing = -len(flat) % world
        flat = torch.cat([flat, flat.new_zeros(missing)])
        return flat.view(world, len(flat) // world)[rank].clone()

    def fsdp_step(rank, world, shards, moments, shapes, x, y, lr, momentum):
        layers = len(shapes)

        def whole(k):
            out, into = shapes[k]
            flat = torch.cat((yield "all_gather", shards[k]))
            return flat[: out * into].reshape(out, into)

        def layer(k, h, weight):
            z = F.linear(h, weight)
            return z if k == layers - 1 else z.clamp(min=0)

        inputs = [x]
        for k in range(layers):
            inputs.append(layer(k, inputs[-1], (yield from whole(k))))
        prediction = inputs.pop().requires_grad_()
        loss = F.mse_loss(prediction, y)
        loss.backward()
        back = prediction.grad
        results = []
        for k in range(layers - 1, -1, -1):
            weight = (yield from whole(k)).requires_grad_()
            h = inputs[k].clone().requires_grad_()
            layer(k, h, weight).backward(back)
            back = h.grad
            flat = weight.grad.reshape(-1)
            flat = F.pad(flat, (0, len(shards[k]) * world - len(flat)))
            piece = yield "reduce_scatter", list(flat.chunk(world)), "sum"
            moment = moments[k].mul(momentum).add(piece.div(world))
            results.insert(0, (shards[k].sub(moment, alpha=lr), moment))
        return loss.item(), [w for w, _ in results], [m for _, m in results]


@fsdp_step.alternate("upstream already divided, in place")
class _:
    def shard(tensor, rank, world):
        numbers = tensor.reshape(-1)
        count = math.ceil(numbers.numel() / world)
        mine = tensor.new_zeros(count)
        for at in range(count):
            if rank * count + at < numbers.numel():
                mine[at] = numbers[rank * count + at]
        return mine

    def fsdp_step(rank, world, shards, moments, shapes, x, y, lr, momentum):
        acts = [x]
        for k, (out, into) in enumerate(shapes):
            pieces = yield "all_gather", shards[k]
            z = acts[k] @ torch.cat(pieces)[: out * into].reshape(out, into).t()
            acts.append(torch.where(z > 0, z, 0) if k + 1 < len(shapes) else z)
        error = acts[-1] - y
        grad = error * (2.0 / error.numel() / world)
        for k in range(len(shapes) - 1, -1, -1):
            out, into = shapes[k]
            pieces = yield "all_gather", shards[k]
            full = torch.cat(pieces)[: out * into].reshape(out, into)
            if k + 1 < len(shapes):
                grad = torch.where(acts[k + 1] > 0, grad, 0)
            dw = torch.zeros(len(shards[k]) * world)
            dw[: out * into] = torch.einsum("bo,bi->oi", grad, acts[k]).reshape(-1)
            grad = grad @ full
            moments[k] *= momentum
            moments[k] += yield "reduce_scatter", [*dw.split(len(shards[k]))], "sum"
            shards[k] -= lr * moments[k]
        return error.square().mean().item(), shards, moments


fsdp_step.equivalent(
    ("size * world - tensor.numel()", "size * world + tensor.numel()"),
    ("(0, size * world - tensor.numel())", "(0, size * world)"),
    ("(0, size * world - tensor.numel())", "(0, tensor.numel())"),
    because="zeros after the last piece are not used",
)
fsdp_step.equivalent(
    (".view(shapes[k])", ".view(shapes[k]).float()"),
    (".reshape(out, into)", ".reshape(out, into).float()"),
    ("return z if k == layers - 1 else z.clamp(min=0)", "return (z if k == layers - 1 else z.clamp(min=0)).float()"),
    because="all of it is float32",
)
fsdp_step.equivalent(
    ("len(shards)", "len(moments)"),
    ("len(shards[k])", "len(moments[k])"),
    ("len(shapes)", "len(moments)"),
    because="there is one of each for a layer, and shards and moments have one size",
)
fsdp_step.equivalent(
    ("k < last", "k != last"),
    ("k == layers - 1", "k >= layers - 1"),
    ("k + 1 < len(shapes)", "k + 1 != len(shapes)"),
    because="no layer comes after the last one",
)
fsdp_step.equivalent(
    ("F.mse_loss(h, y)", "F.mse_loss(y, h)"),
    ("F.mse_loss(prediction, y)", "F.mse_loss(y, prediction)"),
    because="a squared difference has no sign",
)
fsdp_step.equivalent(
    ("(list(shards), list(moments))", "(list(moments), list(shards))"),
    ("(list(shards), list(moments))", "(shards, list(moments))"),
    ("(list(shards), list(moments))", "(list(moments), list(moments))"),
    ("(list(shards), list(moments))", "(list(shards), moments)"),
    ("(list(shards), list(moments))", "(list(shards), list(shards))"),
    ("(list(shards), list(moments))", "(list(shards), list(shapes))"),
    because="each entry of both lists is written over, and the lists that came in are copies",
)
fsdp_step.equivalent(
    ("inputs[k] > 0", "inputs[k] != 0"),
    ("acts[k + 1] > 0", "acts[k + 1] != 0"),
    ("torch.where(z > 0", "torch.where(z >= 0"),
    because="what comes out of a ReLU is not negative, and the gradient of the first input is not used",
)
fsdp_step.equivalent(
    ("inputs[k].clone().requires_grad_()", "inputs[k].requires_grad_()"),
    ("list(flat.chunk(world))", "flat.chunk(world)"),
    because="an input is used once on the way back, and a tuple is as good as a list",
)
