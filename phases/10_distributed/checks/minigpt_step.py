"""Lab 10, exercise 9: MiniGPT on several ranks"""

import torch
from torch import nn
from torch.nn import functional as F

from utils.checks.compare import Tolerance
from utils.checks.exercise import Case, Check, edited
from utils.drivers import distributed as driver

from .shared import as_run, driven, others, with_driver

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
    "['asked for']": "what each rank asked for, in order, with shapes and bytes",
    "['other requests']": "something else than the four collectives was asked for.",
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
        """`lines` of each rank; a rank that has 0 gets one line of padding."""
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
                    targets[0][:2] = [0, 1]  # words as any other
                else:
                    targets = [[-100] * length]
                batches.append((torch.tensor(tokens), torch.tensor(targets)))
            each.append((config, values, batches, 0.001 if real else 0.01, max_norm))

        names = {lost: "losses", norm: "norms", weights: "weights", sent: "held"}

        def play(subject):
            came = driven(subject, "trained", each)
            found = {names[part]: [result[names[part]] for result in came.results]}
            if part == sent:  # right values first
                found["losses"] = [result["losses"] for result in came.results]
                found["asked for"] = [f"{e.kind} {e.shape}, {e.bytes} bytes" for e in came.collectives]
                found["other requests"] = others(came, "all_reduce", "reduce_scatter", "all_gather")
            return found

        shown = f"{'the shipped model' if real else 'a small model'}, {len(lines)} rank{'s' * (len(lines) > 1)}"
        shown += f" with {', '.join(map(str, lines))} lines, {steps} step{'s' * (steps > 1)}"
        shown += f", max_norm {max_norm}" if max_norm < 100 else ""
        shows = {name: f"{{}}.results[{{at}}]['{name}']" for name in (*names.values(), "losses")}
        shows["asked for"] = "[f'{e.kind} {e.shape}, {e.bytes} bytes' for e in {}.collectives]"
        paste = as_run(with_driver("trained", "minigpt_step"), each, shows)
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


def _step(rank, world, model, tokens, targets, state, lr, max_norm):
    parameters = list(model.parameters())
    loss = F.cross_entropy(model(tokens).flatten(0, 1), targets.flatten(), reduction="sum")
    gradients = torch.autograd.grad(loss, parameters)
    flat = torch.cat([g.flatten() for g in gradients])
    counted = (targets != -100).sum().item()
    total, count = yield "all_reduce", torch.tensor([loss.item(), counted]), "sum"
    missing = -len(flat) % world
    pieces = F.pad(flat / count, (0, missing)).chunk(world)
    gradient = yield "reduce_scatter", list(pieces), "sum"
    squares = yield "all_reduce", gradient.square().sum().reshape(1), "sum"
    norm = squares.sqrt().item()
    gradient = gradient * min(1.0, max_norm / (norm + 1e-6))
    weights = torch.cat([p.detach().flatten() for p in parameters])
    mine = F.pad(weights, (0, missing)).chunk(world)[rank]
    mine, state = driver.adamw(mine, gradient, state, lr)
    slices = yield "all_gather", mine
    nn.utils.vector_to_parameters(torch.cat(slices)[: len(flat)], parameters)
    return (total / count).item(), norm, state


_step.__name__ = "minigpt_step"


def _wrong(name, explanation, earns, *edits):
    minigpt_step.misconception(name, explanation, earns=earns)(edited(_step, *edits))


_wrong(
    "padding counts",
    "sums are divided by the number of all targets, those of -100 included.",
    1,
    ("(targets != -100).sum().item()", "targets.numel()"),
)
_wrong(
    "word 0 is padding",
    "targets of 0 are not counted, as if 0 were padding.",
    0,
    ("(targets != -100)", "(targets > 0)"),
)
_wrong(
    "word 0 is left out",
    "targets of 0 are left out, as if 0 were padding.",
    0,
    ("targets.flatten(), ", "targets.flatten().masked_fill(targets.flatten() == 0, -100), "),
    ("(targets != -100)", "(targets > 0)"),
)
_wrong(
    "the mean of no targets",
    "the mean over the targets of a rank that has none is nan, and nan times 0 is nan.",
    4,
    ("targets.flatten(), reduction='sum')", "targets.flatten()) * (targets != -100).sum()"),
)
_wrong(
    "a target for a rank that has none",
    "a rank without targets says that it has one.",
    1,
    ("(targets != -100).sum().item()", "max(1, (targets != -100).sum().item())"),
)
_wrong(
    "old gradients stay",
    "what was in .grad before is added to the new gradients.",
    2,
    ("gradients = torch.autograd.grad(loss, parameters)", "loss.backward()\n    gradients = [p.grad for p in parameters]"),
)
_wrong(
    "cleared after the step, and not before",
    "what was in .grad before the first step is added to its gradients.",
    2,
    ("torch.autograd.grad(loss, parameters)", "torch.autograd.grad(loss, parameters, retain_graph=True)"),
    ("missing = -len(flat) % world", "(loss / count).backward()\n    flat = torch.cat([p.grad.flatten() for p in parameters])\n    model.zero_grad()\n    missing = -len(flat) % world"),
    ("flat / count", "flat"),
)
_wrong(
    "the mean of the ranks' means",
    "each rank's mean weighs the same, however many targets it has.",
    1,
    ("counted = (targets != -100).sum().item()", "counted = 1.0\n    few = max(1, (targets != -100).sum().item())\n    flat, loss = (flat / few, loss / few)"),
)
_wrong(
    "the mean of the ranks' gradients",
    "the loss is right, and in the gradient each rank's mean weighs the same, however many targets it has.",
    2,
    ("flat / count", "flat / max(1, counted) / world"),
)
_wrong(
    "gradients of the sum",
    "gradients are not divided by the number of targets.",
    2,
    ("flat / count", "flat"),
)
_wrong(
    "its own slice's norm",
    "the norm is that of the rank's own piece of the gradient.",
    2,
    ("norm = squares.sqrt().item()", "norm = gradient.norm().item()"),
)
_wrong(
    "the norm of the sum",
    "the norm is that of the sum over all targets: as if it were taken before dividing by their number.",
    2,
    ("flat / count", "flat"),
    ("gradient = gradient * ", "gradient = gradient / count * "),
)
_wrong(
    "the root forgotten",
    "the norm is the sum of squares.",
    2,
    ("squares.sqrt().item()", "squares.item()"),
)
_wrong(
    "clipped up",
    "small gradients are made larger, until their norm is the bound.",
    3,
    ("min(1.0, max_norm / (norm + 1e-06))", "(max_norm / (norm + 1e-06))"),
)
_wrong(
    "not clipped",
    "the gradient is not clipped.",
    3,
    ("min(1.0, max_norm / (norm + 1e-06))", "1.0"),
)
_wrong(
    "the norm after clipping",
    "the norm is that of the clipped gradient.",
    4,
    ("return ((total / count).item(), norm, state)", "return ((total / count).item(), min(norm, max_norm), state)"),
)
_wrong(
    "rank 0's slice for each",
    "each rank steps with the first slice of the weights.",
    3,
    (".chunk(world)[rank]", ".chunk(world)[0]"),
)
_wrong(
    "a new state each time",
    "the optimizer's state is lost after each step.",
    3,
    ("mine, state = driver.adamw(mine, gradient, state, lr)", "mine, state = driver.adamw(mine, gradient, {'step': 0}, lr)"),
)
_wrong(
    "the old state returned",
    "the optimizer's state is what it was before.",
    2,
    ("mine, state = driver.adamw", "mine, _ = driver.adamw"),
)
_wrong(
    "a whole optimizer at each rank",
    "each rank reduces and steps the whole gradient, and holds a state for all parameters.",
    4,
    ("gradient = (yield ('reduce_scatter', list(pieces), 'sum'))", "whole = yield ('all_reduce', torch.cat(pieces), 'sum')\n    gradient = whole"),
    ("squares = (yield ('all_reduce', gradient.square().sum().reshape(1), 'sum'))", "squares = gradient.square().sum().reshape(1)"),
    (".chunk(world)[rank]", ""),
    ("slices = (yield ('all_gather', mine))", "slices = [mine]"),
)
_wrong(
    "the weights not written back",
    "the model keeps its old weights.",
    3,
    ("nn.utils.vector_to_parameters(torch.cat(slices)[:len(flat)], parameters)", "pass"),
)
_wrong(
    "its own slice alone is new",
    "each rank has new weights in its own slice, and old ones in the others.",
    2,
    ("slices = (yield ('all_gather', mine))", "slices = list(F.pad(weights, (0, missing)).chunk(world))\n    slices[rank] = mine"),
)
_wrong(
    "its own loss",
    "each rank returns the mean over its own targets.",
    3,
    ("(total / count).item()", "(loss / max(1, counted)).item()"),
)


_wrong(
    "the squares of its own lines' gradient",
    "the norm is made of the ranks' own gradients, before they are added up.",
    2,
    ('gradient.square().sum().reshape(1)', '(flat / count).square().sum().reshape(1)'),
)
_wrong(
    'the norms are added',
    "the ranks' norms are added up, and not their squares.",
    2,
    ('gradient.square().sum().reshape(1)', 'gradient.norm().reshape(1)'),
    ('squares.sqrt().item()', 'squares.item()'),
)
_wrong(
    'the largest sum of squares',
    "of the ranks' sums of squares the largest is taken.",
    2,
    ("gradient.square().sum().reshape(1), 'sum'", "gradient.square().sum().reshape(1), 'max'"),
)
_wrong(
    'each number is clipped',
    'numbers of the gradient are cut off, instead of all being made smaller.',
    3,
    ('gradient * min(1.0, max_norm / (norm + 1e-06))', 'gradient.clamp(-max_norm, max_norm)'),
)
_wrong(
    'divided by the ranks, too',
    'the gradient is smaller than that of all targets, by the number of ranks.',
    2,
    ('flat / count', 'flat / count / world'),
)
_wrong(
    'gathered, and its own slice kept',
    'each rank gathers the new slices, and has old weights in all but its own.',
    3,
    ("slices = (yield ('all_gather', mine))", "yield ('all_gather', mine)\n    slices = list(F.pad(weights, (0, missing)).chunk(world))\n    slices[rank] = mine"),
)
_wrong(
    'the loss in float64',
    'the two numbers are reduced in float64.',
    4,
    ('torch.tensor([loss.item(), counted])', 'torch.tensor([loss.item(), counted], dtype=torch.float64)'),
    ('flat / count', 'flat / count.float()'),
)
_wrong(
    'gradients as a column',
    'what is scattered is not flat.',
    4,
    ("list(pieces), 'sum'))", "[p[:, None] for p in pieces], 'sum'))[:, 0]"),
)
_wrong(
    'a slice sent along',
    'ranks send to each other, beside the collectives.',
    4,
    ("slices = (yield ('all_gather', mine))", "if world > 1:\n        yield ('exchange', (rank + 1) % world, mine, (rank - 1) % world)\n    slices = (yield ('all_gather', mine))"),
)


@minigpt_step.alternate("views of one flat tensor, and backward")
def _(rank, world, model, tokens, targets, state, lr, max_norm):
    model.zero_grad(set_to_none=True)
    logits = model(tokens)
    losses = F.cross_entropy(logits.transpose(1, 2), targets, reduction="none")
    losses.sum().backward()
    numbers = torch.zeros(2)
    numbers[0] += losses.sum().detach()
    numbers[1] += targets.ne(-100).sum()
    numbers = yield "all_reduce", numbers, "sum"
    vector = nn.utils.parameters_to_vector(model.parameters()).detach()
    each = (vector.numel() + world - 1) // world
    buffer = torch.zeros(world, each)
    buffer.view(-1)[: vector.numel()] = nn.utils.parameters_to_vector(
        p.grad for p in model.parameters()
    )
    piece = yield "reduce_scatter", [buffer[r] for r in range(world)], "sum"
    piece = piece / numbers[1]
    size = (yield "all_reduce", torch.linalg.vector_norm(piece).pow(2).view(1), "sum")[0].sqrt()
    if size > max_norm:
        piece = piece * (max_norm / (size + 1e-6))
    rest = torch.zeros(world, each)
    rest.view(-1)[: vector.numel()] = vector
    new, state = driver.adamw(rest[rank], piece, state, lr)
    parts = yield "all_gather", new
    joined, begin = torch.cat(parts), 0
    for p in model.parameters():
        p.data = joined[begin : begin + p.numel()].view(p.shape).clone()
        begin += p.numel()
    return numbers[0].item() / numbers[1].item(), size.item(), state


minigpt_step.equivalent(
    ("(targets != -100).sum().item()", "(targets != -100).sum()"),
    ("targets != -100", "targets > -100"),
    ("torch.tensor([loss.item(), counted])", "torch.tensor([loss, counted])"),
    (".sum().detach()", ".sum()"),
    ("(model.parameters()).detach()", "(model.parameters())"),
    because="what goes into the network is the values alone, and no word has a number below 0",
)
minigpt_step.equivalent(
    ("rest = torch.zeros(world, each)", "rest = torch.ones(world, each)"),
    (".view(p.shape).clone()", ".view(p.shape)"),
    because="what fills a slice up is no parameter's, and a parameter may be a view",
)
minigpt_step.equivalent(
    ("(norm + 1e-06)", "(norm - 1e-06)"),
    ("max_norm / (norm + 1e-06)", "max_norm / norm"),
    ("(norm + 1e-06)", "(norm + 2e-06)"),
    ("(size + 1e-06)", "(size - 1e-06)"),
    ("max_norm / (size + 1e-06)", "max_norm / size"),
    ("(size + 1e-06)", "(size + 2e-06)"),
    ("size > max_norm", "size >= max_norm"),
    because="a millionth of a norm is less than sums in another order differ by",
)
minigpt_step.equivalent(
    ("model.zero_grad(set_to_none=True)", "model.zero_grad()"),
    ("model.zero_grad(set_to_none=True)", "model.zero_grad(set_to_none=False)"),
    ("transpose(1, 2)", "transpose(2, 1)"),
    ("numbers[0] += ", "numbers[0] = "),
    ("numbers[1] += ", "numbers[1] = "),
    ("[0].sqrt()", "[-1].sqrt()"),
    because="it is the same by torch's definition, or the number was 0 before and is the only one",
)
