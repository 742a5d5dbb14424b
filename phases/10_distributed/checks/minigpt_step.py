"""Lab 10, exercise 9: MiniGPT on several ranks"""

import torch
from torch.nn import functional as F

from hood.judge.checks.compare import Tolerance
from hood.judge.checks.exercise import Case, Check
from utils.drivers import distributed as driver

from .shared import as_run, counted, drawn_counts, driven, others, with_driver

minigpt_step = Check(
    "minigpt_step",
    parts={"the loss": 1, "the norm": 1, "new weights": 2, "what is sent and held": 1},
    reads="Who holds what",
    tolerance=Tolerance(2e-4, 2e-5, "float32 sums in another order, through AdamW"),
)

PLACES = {
    "['losses']": "the loss of each step, from rank 0 on",
    "['norms']": "the norm of each step, from rank 0 on",
    "['weights']": "the model's weights after the steps, from rank 0 on",
    "['held']": "how many numbers of the optimizer's state each rank has",
    "['asked for']": "the requests of each rank, in order, with shapes and bytes",
    "['other requests']": "a request other than the four collectives was made.",
}


@minigpt_step.reference
def _(rank, world, model, tokens, targets, state, lr, max_norm):
    model.zero_grad()
    loss = F.cross_entropy(model(tokens).flatten(0, 1), targets.flatten(), reduction="sum")
    loss.backward()
    facts = torch.stack([loss.detach(), (targets >= 0).sum().float()])
    total, count = yield "all_reduce", facts, "sum"
    parameters = list(model.parameters())
    size = -(-sum(p.numel() for p in parameters) // world)
    padded = torch.zeros(2, size * world)
    at = 0
    for p in parameters:
        padded[0, at : at + p.numel()] = p.grad.reshape(-1) / count
        padded[1, at : at + p.numel()] = p.detach().reshape(-1)
        at += p.numel()
    mine = yield "reduce_scatter", list(padded[0].reshape(world, size)), "sum"
    norm = float((yield "all_reduce", (mine * mine).sum()[None], "sum") ** 0.5)
    mine = mine * min(1.0, max_norm / (norm + 1e-6))
    own = padded[1, rank * size : (rank + 1) * size]
    own, state = driver.adamw(own, mine, state, lr)
    flat = torch.cat((yield "all_gather", own))
    with torch.no_grad():
        for p in parameters:
            p.copy_(flat[: p.numel()].view_as(p))
            flat = flat[p.numel() :]
    return float(total / count), norm, state


@minigpt_step.cases
def _(draw):
    lost, norm, weights, sent = minigpt_step.parts

    def trained(part, lines, steps=1, max_norm=100.0, padded=True, real=False):
        """`lines`: how many lines each rank has. A rank with 0 lines gets one line of padding."""
        config = None if real else {
            "vocab_size": draw.integer(7, 9), "d_model": 4, "n_heads": 1, "n_layers": 1, "d_ff": draw.integer(5, 8),
            "context": 5,
        }  # fmt: skip
        length, words = (6, 599) if real else (4, 6)
        values = draw.integer(0, 10**6)
        each = []
        for count in lines:
            batches = []
            for _ in range(steps):
                tokens = [[draw.integer(0, words) for _ in range(length)] for _ in range(count or 1)]
                targets = [[draw.integer(0, words) for _ in range(length)] for _ in range(count or 1)]
                if padded and count:
                    for row in targets:
                        keep = draw.integer(2, length - 1)
                        row[keep:] = [-100] * (length - keep)
                if count:
                    targets[0][:2] = [0, 1]  # these are words, too
                else:
                    targets = [[-100] * length]
                batches.append((torch.tensor(tokens), torch.tensor(targets)))
            each.append((config, values, batches, 0.001 if real else 0.01, max_norm))

        counts = drawn_counts(draw, len(lines))
        if len(lines) == 2:  # else one rank's gradient would be the mean of both
            counts = draw.sample([1, 2], 2)
        if 0 in lines:  # the targets of another rank count
            counts = [1 + bool(count) for count in lines]
        names = {lost: "losses", norm: "norms", weights: "weights", sent: "held"}

        def play(subject):
            # The norm is a sum over the ranks' own pieces, and each piece counts once.
            network = {"counts": lambda tensor: counts if tensor.numel() > 1 else ()}
            came = driven(subject, "trained", each, **network)
            found = {names[part]: [result[names[part]] for result in came.results]}
            if part == sent:  # right values first
                found["losses"] = [result["losses"] for result in came.results]
                found["asked for"] = [f"{e.kind} {e.shape}, {e.bytes} bytes" for e in came.collectives]
                found["other requests"] = others(came, "all_reduce", "reduce_scatter", "all_gather")
            return found

        shown = f"{'the shipped model' if real else 'a small model'}, {len(lines)} rank{'s' * (len(lines) > 1)}"
        shown += f" with {', '.join(map(str, lines))} lines, {steps} step{'s' * (steps > 1)}"
        shown += f", max_norm {max_norm}" if max_norm < 100 else ""
        shown += counted(counts)
        shows = {name: f"{{}}.results[{{at}}]['{name}']" for name in (*names.values(), "losses")}
        shows["asked for"] = "[f'{e.kind} {e.shape}, {e.bytes} bytes' for e in {}.collectives]"
        paste = as_run(with_driver("trained", "minigpt_step"), each, shows, counts=f"lambda t: {counts} if t.numel() > 1 else ()")
        return Case(part, play, shown=shown, places=PLACES, paste=paste)

    n = draw.integer(1, 2)
    yield trained(lost, (1, 3, 1))
    yield trained(lost, (n, 0))
    yield trained(norm, (2, 1))
    yield trained(norm, (1, 1, 2), max_norm=0.25)
    yield trained(norm, (0, n))
    yield trained(weights, (1, 2, 1), steps=2)
    yield trained(weights, (n, 2), steps=2, max_norm=0.25)
    yield trained(weights, (1, 1, 1, 1), max_norm=0.001)
    yield trained(weights, (2,), steps=2, max_norm=0.5)
    yield trained(weights, (1, 0))
    yield trained(weights, (1, 1), max_norm=1.0, real=True)
    yield trained(sent, (2, 2), padded=False)
    yield trained(sent, (1, 1, 1), padded=False)
    yield trained(sent, (n,), padded=False)
