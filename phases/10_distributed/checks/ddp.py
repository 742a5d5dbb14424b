"""Lab 10, exercise 4: One big batch"""

import torch
from torch.nn import functional as F

from hood.judge.checks.exercise import Case, Check, Place

from .shared import SUMS, as_run, counted, drawn_counts, driven, others, with_driver

ddp = Check(
    "ddp",
    parts={
        "the same start": 1,
        "gradients": 1,
        "unequal shards": 1,
        "frozen and unused": 1,
        "buckets": 1,
    },
    reads="One big batch",
    tolerance=SUMS,
)

PLACES = {
    "['other requests']": "a request other than broadcast and all_reduce was made.",
    "['losses']": "the losses that the ranks returned",
    "['gradients']": Place("`.grad` of the parameters, from rank 0 on", returned=False),
    "['parameters kept']": "the step has changed parameters.",
    "['reduced']": "shapes and bytes of the reduced tensors, in order",
    "['tensors kept']": "the model's parameters or buffers are not the same objects as before.",
    "['values']": "parameters and buffers, from rank 0 on",
}


@ddp.reference
class _:
    def ddp_start(rank, world, model):
        for value in [*model.buffers(), *model.parameters()]:
            with torch.no_grad():
                value.copy_((yield "broadcast", value.detach(), 0))

    def ddp_step(rank, world, model, x, y, bucket_bytes):
        trained = [p for p in model.parameters() if p.requires_grad]
        loss = F.cross_entropy(model(x), y, reduction="sum")
        found = torch.autograd.grad(loss, trained, allow_unused=True)
        whole = yield "all_reduce", torch.stack([loss.detach(), torch.tensor(float(len(x)))]), "sum"
        rows, waiting = whole[1], []
        for at in reversed(range(len(trained))):
            gradient = torch.zeros_like(trained[at]) if found[at] is None else found[at]
            trained[at].grad = None
            waiting.append((trained[at], gradient.reshape(-1)))
            held = sum(4 * one.numel() for _, one in waiting)
            if at > 0 and held + 4 * trained[at - 1].numel() <= bucket_bytes:
                continue
            flat = yield "all_reduce", torch.cat([one for _, one in waiting]), "sum"
            for parameter, one in waiting:
                parameter.grad = (flat[: len(one)] / rows).view_as(parameter)
                flat = flat[len(one) :]
            waiting = []
        return float(whole[0] / rows)


@ddp.cases
def _(draw):
    start, gradients, unequal, unused, buckets = ddp.parts

    def started(world, unwritten=False):
        values = draw.integer(0, 10**6)
        each = [(values + rank, unwritten and rank > 0) for rank in range(world)]

        def play(subject):
            # ``ddp_start`` sends the values that all ranks should have. The network can't add
            # numbers to them, because it doesn't know to which tensor the values belong.
            subject.claim("that everything that a rank knows about the others came through the network")
            came = driven(subject, "started", each, of="ddp_start")
            return {
                "other requests": others(came, "broadcast", "all_reduce"),
                "tensors kept": all(result["tensors kept"] for result in came.results),
                "values": [result["tensors"] for result in came.results],
            }

        words = f"{world} rank{'s' * (world > 1)}"
        words += ", NaN on all ranks except rank 0" if unwritten else ""
        shows = {"values": "{}.results[{at}]['tensors']"}
        paste = as_run(with_driver("started", "ddp_start"), each, shows)
        return Case(start, play, of="ddp_start", shown=words, places=PLACES, paste=paste)

    def stepped(part, rows, bucket_bytes=10**6, stale=False, experts=None):
        """rows: each rank's number of rows. experts: the number of the expert that each rank's rows use."""
        values = draw.integer(0, 10**6)
        each = []
        for rank, count in enumerate(rows):
            x = draw.tensor((count, 3))
            if experts and count:
                x[0, 0] = 0.5 + x[0, 0].abs() if experts[rank] else -0.5 - x[0, 0].abs()
            y = draw.tensor((count,), torch.int64).abs() % 5
            each.append((values, x, y, bucket_bytes, stale, not experts))
        counts = drawn_counts(draw, len(rows))
        if part == unequal:
            counts = [1 + (rank == counts.index(2)) for rank in range(len(rows))]

        def play(subject):
            came = driven(subject, "stepped", each, of="ddp_step", counts=counts)
            found = {"gradients": [result["gradients"] for result in came.results]}
            if part == unused:
                found["parameters kept"] = [result["parameters kept"] for result in came.results]
            if part == unequal:
                found["losses"] = [result["loss"] for result in came.results]
            if part == buckets:
                found["other requests"] = others(came, "broadcast", "all_reduce")
                found["reduced"] = [f"{e.shape}, {e.bytes} bytes" for e in came.collectives]
            return found

        words = f"{len(rows)} rank{'s' * (len(rows) > 1)} with {', '.join(map(str, rows))} rows"
        words += counted(counts)
        words += ", old gradients" if stale else ""
        words += f", buckets of {bucket_bytes} bytes" if part == buckets else ""
        shows = {
            "gradients": "{}.results[{at}]['gradients']",
            "losses": "{}.results[{at}]['loss']",
            "reduced": "[f'{event.shape}, {event.bytes} bytes' for event in {}.collectives]",
        }
        paste = as_run(with_driver("stepped", "ddp_step"), each, shows, counts=counts)
        return Case(part, play, of="ddp_step", shown=words, places=PLACES, paste=paste)

    for world in (1, 2, draw.integer(3, 4)):
        yield started(world)
    yield started(2, unwritten=True)
    n = draw.integer(2, 3)
    yield stepped(gradients, (2, 2))
    yield stepped(gradients, (n, n, n))
    yield stepped(gradients, (n,), stale=True)
    yield stepped(gradients, (1, 1), stale=True)
    yield stepped(unequal, (1, 3))
    yield stepped(unequal, (n + 1, 1, 2))
    yield stepped(unequal, (0, n))
    yield stepped(unequal, (2, 0, 1))
    yield stepped(unused, (n, n), experts=(0, 1))
    yield stepped(unused, (2, 2), experts=(1, 1), stale=True)
    yield stepped(unused, (1, 1, 1), experts=(1, 0, 0))
    for size in (1, 70, 79, 80, 99, 100, 10**6):  # 79: the second bucket lacks a byte
        yield stepped(buckets, (1,), size)
    yield stepped(buckets, (1,), draw.integer(17, 200))
    yield stepped(buckets, (1, 1), 100, experts=(0, 1))
