"""Lab 10, exercise 5: Who holds what"""


import torch
from torch.nn import functional as F

from hood.judge.checks.exercise import Case, Check

from .shared import SUMS, as_run, counted, drawn_counts, others, ranks

fsdp_step = Check(
    "fsdp_step",
    parts={"shards": 1, "the step": 1, "momentum": 1, "gathered when needed": 1},
    reads="Who holds what",
    tolerance=SUMS,
    sharing=True,
)

PLACES = {
    "['keeps more in memory']": "the piece is a view, so it keeps the whole tensor in memory.",
    "['losses']": "the loss of each rank's own rows",
    "['shards']": "new shards, from rank 0 on",
    "['moments']": "new moments, from rank 0 on",
    "['other requests']": "a request other than all_gather and reduce_scatter was made.",
    "['asked for']": "the requests of each rank, in order",
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
            subject.claim("that a shard keeps only its own numbers in memory")
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

        counts = drawn_counts(draw, world)

        def play(subject):
            came = ranks(subject, each, of="fsdp_step", counts=counts)
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

        words = f"{world} rank{'s' * (world > 1)} with {rows} rows, widths {widths}{counted(counts)}"
        shows = {
            "losses": "{}.results[{at}][0]",
            "shards": "{}.results[{at}][1]",
            "moments": "{}.results[{at}][2]",
            "asked for": "[f'{event.kind} {event.shape}' for event in {}.collectives]",
        }
        paste = as_run("fsdp_step", each, shows, counts=counts)
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
