"""Lab 10, exercise 4: One big batch"""

import torch
from torch import nn
from torch.nn import functional as F

from utils.checks.exercise import Case, Check, Place, edited
from utils.checks.lab_solution import lab_solution

from .shared import SUMS, as_run, driven, others, with_driver

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
    "['other requests']": "something else than broadcast and all_reduce was asked for.",
    "['losses']": "the losses that the ranks returned",
    "['gradients']": Place("`.grad` of the parameters, from rank 0 on", returned=False),
    "['parameters kept']": "the step has changed parameters.",
    "['reduced']": "shapes and bytes of what was reduced, in order",
    "['tensors kept']": "the model has other parameters or buffers than before.",
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
            came = driven(subject, "started", each, of="ddp_start")
            return {
                "other requests": others(came, "broadcast", "all_reduce"),
                "tensors kept": all(result["tensors kept"] for result in came.results),
                "values": [result["tensors"] for result in came.results],
            }

        words = f"{world} rank{'s' * (world > 1)}"
        words += ", NaN at all but rank 0" if unwritten else ""
        shows = {"values": "{}.results[{at}]['tensors']"}
        paste = as_run(with_driver("started", "ddp_start"), each, shows)
        return Case(start, play, of="ddp_start", shown=words, places=PLACES, paste=paste)

    def stepped(part, rows, bucket_bytes=10**6, stale=False, experts=None):
        """`rows` of each rank; with `experts`, which one each rank's rows use."""
        values = draw.integer(0, 10**6)
        each = []
        for rank, count in enumerate(rows):
            x = draw.tensor((count, 3))
            if experts and count:
                x[0, 0] = 0.5 + x[0, 0].abs() if experts[rank] else -0.5 - x[0, 0].abs()
            y = draw.tensor((count,), torch.int64).abs() % 5
            each.append((values, x, y, bucket_bytes, stale, not experts))

        def play(subject):
            came = driven(subject, "stepped", each, of="ddp_step")
            found = {
                "gradients": [result["gradients"] for result in came.results],
                "parameters kept": [result["parameters kept"] for result in came.results],
            }
            if part == unequal:
                found["losses"] = [result["loss"] for result in came.results]
            if part == buckets:
                found["other requests"] = others(came, "broadcast", "all_reduce")
                found["reduced"] = [f"{e.shape}, {e.bytes} bytes" for e in came.collectives]
            return found

        words = f"{len(rows)} rank{'s' * (len(rows) > 1)} with {', '.join(map(str, rows))} rows"
        words += ", old gradients" if stale else ""
        words += f", buckets of {bucket_bytes} bytes" if part == buckets else ""
        shows = {
            "gradients": "{}.results[{at}]['gradients']",
            "losses": "{}.results[{at}]['loss']",
            "reduced": "[f'{event.shape}, {event.bytes} bytes' for event in {}.collectives]",
        }
        paste = as_run(with_driver("stepped", "ddp_step"), each, shows)
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


ddp_start = lab_solution(__name__, "ddp", "ddp_start")


def ddp_step(rank, world, model, x, y, bucket_bytes):
    model.zero_grad()
    loss = F.cross_entropy(model(x), y, reduction="sum")
    loss.backward()
    total, rows = yield "all_reduce", torch.tensor([loss.item(), len(x)]), "sum"
    buckets, room = [], 0
    for parameter in reversed(list(model.parameters())):
        if not parameter.requires_grad:
            continue
        needed = 4 * parameter.numel()
        if not buckets or needed > room:
            buckets.append([])
            room = bucket_bytes
        buckets[-1].append(parameter)
        room -= needed
    for bucket in buckets:
        flat = [torch.zeros_like(p) if p.grad is None else p.grad for p in bucket]
        summed = yield "all_reduce", torch.cat([g.flatten() for g in flat]) / rows, "sum"
        pieces = summed.split([p.numel() for p in bucket])
        for parameter, piece in zip(bucket, pieces):
            parameter.grad = piece.reshape(parameter.shape)
    return (total / rows).item()


def _begun(name, explanation, earns, *edits):
    ddp.misconception(name, explanation, earns=earns)({"ddp_start": edited(ddp_start, *edits)})


def _wrong(name, explanation, earns, *edits):
    ddp.misconception(name, explanation, earns=earns)({"ddp_step": edited(ddp_step, *edits)})


_begun(
    "parameters alone",
    "buffers keep what each rank had.",
    4,
    ("[*model.parameters(), *model.buffers()]", "model.parameters()"),
)
_begun(
    "trained ones alone",
    "frozen parameters keep what each rank had.",
    4,
    ("[*model.parameters(), *model.buffers()]", "[*(p for p in model.parameters() if p.requires_grad), *model.buffers()]"),
)
_begun(
    "sent and not kept",
    "the tensors are sent, and no rank takes over what it received.",
    4,
    ("tensor.detach().copy_(got)", "pass"),
)
_begun(
    "the mean of all ranks",
    "all ranks have the same parameters afterwards, and they are not those of rank 0.",
    4,
    ("got = (yield ('broadcast', tensor.detach(), 0))", "got = (yield ('all_reduce', tensor.detach(), 'sum')) / world"),
)
_begun(
    "the last rank's",
    "all ranks have the same parameters afterwards, and they are not those of rank 0.",
    4,
    ("tensor.detach(), 0)", "tensor.detach(), world - 1)"),
)
_begun(
    "added to zeros",
    "the other ranks' values are multiplied by 0 and added: where one is NaN or infinite, so is the sum.",
    4,
    ("got = (yield ('broadcast', tensor.detach(), 0))", "got = (yield ('all_reduce', tensor.detach() * (rank == 0), 'sum'))"),
)


@ddp.misconception(
    "other objects",
    "the model gets other parameters, and whoever held the old ones, as an optimizer does, holds what no"
    " longer belongs to it.",
    earns=4,
)
class _:
    def ddp_start(rank, world, model):
        for module in model.modules():
            for name, parameter in list(module._parameters.items()):
                if parameter is None:
                    continue
                got = yield "broadcast", parameter.detach(), 0
                module._parameters[name] = nn.Parameter(got, parameter.requires_grad)
        for buffer in model.buffers():
            buffer.copy_((yield "broadcast", buffer, 0))


_wrong(
    "the mean of the ranks' means",
    "each rank's mean weighs the same, however many rows it has.",
    4,
    ("reduction='sum')", "reduction='mean') if len(x) else model(x).sum()"),
    ("total, rows = (yield ('all_reduce', torch.tensor([loss.item(), len(x)]), 'sum'))", "total, rows = (yield ('all_reduce', torch.tensor([loss.item(), float(len(x))]), 'sum'))[0], world"),
)
_wrong(
    "the mean of the ranks' gradients",
    "the loss is right, and in the gradient each rank's mean weighs the same, however many rows it has.",
    4,
    ("loss.backward()", "(loss / max(1, len(x))).backward()"),
    ("/ rows, 'sum'", "/ world, 'sum'"),
)
_wrong(
    "a sum, and not a mean",
    "gradients are those of the sum over all rows.",
    1,
    ("torch.cat([g.flatten() for g in flat]) / rows", "torch.cat([g.flatten() for g in flat])"),
)
_wrong(
    "divided by the ranks, too",
    "gradients are smaller than those of the whole batch, by the number of ranks.",
    1,
    ("torch.cat([g.flatten() for g in flat]) / rows", "torch.cat([g.flatten() for g in flat]) / rows / world"),
)
_wrong(
    "its own rows' loss",
    "each rank returns the loss of its own rows.",
    4,
    ("return (total / rows).item()", "return loss.item() / max(1, len(x))"),
)
_wrong(
    "old gradients stay",
    "what was in .grad before is added to the new gradients.",
    3,
    ("model.zero_grad()", "pass"),
)
_wrong(
    "gradients reduced and not written back",
    "each rank keeps the gradients of its own rows.",
    1,
    ("parameter.grad = piece.reshape(parameter.shape)", "pass"),
)
_wrong(
    "what is not there is left out",
    "a parameter without a gradient takes no part, so ranks reduce different tensors.",
    3,
    ("if not parameter.requires_grad:", "if parameter.grad is None:"),
)
_wrong(
    "frozen ones take part",
    "a frozen parameter gets a gradient, of zeros.",
    3,
    ("if not parameter.requires_grad:", "if False:"),
)
_wrong(
    "in the order of the model",
    "buckets begin with the first layer, whose gradients come last.",
    4,
    ("reversed(list(model.parameters()))", "model.parameters()"),
)
_wrong(
    "one all-reduce for each parameter",
    "each parameter is reduced by itself, whatever the size of a bucket.",
    4,
    ("if not buckets or needed > room:", "if True:"),
)
_wrong(
    "frozen ones fill buckets",
    "the bytes of frozen parameters count, too, so buckets are closed too early.",
    4,
    ("        if not parameter.requires_grad:\n            continue\n", ""),
    ("buckets[-1].append(parameter)", "if parameter.requires_grad:\n            buckets[-1].append(parameter)"),
    ("for bucket in buckets:", "for bucket in filter(None, buckets):"),
)
_wrong(
    "the loss in float64",
    "the two numbers are reduced in float64.",
    4,
    ("torch.tensor([loss.item(), len(x)])", "torch.tensor([loss.item(), len(x)], dtype=torch.float64)"),
    ("torch.cat([g.flatten() for g in flat]) / rows", "torch.cat([g.flatten() for g in flat]) / rows.float()"),
)
_wrong(
    "one bucket for all",
    "all gradients are reduced at once, whatever the size of a bucket.",
    4,
    ("if not buckets or needed > room:", "if not buckets:"),
)
_wrong(
    "numbers for bytes",
    "a bucket takes so many numbers, and not so many bytes.",
    4,
    ("4 * parameter.numel()", "parameter.numel()"),
)
_wrong(
    "a bucket that is full is too full",
    "gradients that would fill a bucket to its last byte go into the next one.",
    4,
    ("needed > room", "needed >= room"),
)
_wrong(
    "a bucket overflows",
    "a bucket is closed after it has become too large, and not before.",
    4,
    ("not buckets or needed > room", "not buckets or room <= 0"),
)
_wrong(
    "a step is taken",
    "parameters are changed.",
    1,
    ("parameter.grad = piece.reshape(parameter.shape)", "parameter.grad = piece.reshape(parameter.shape)\n            parameter.data -= 0.01 * parameter.grad"),
)
_wrong(
    "ranks without rows leave early",
    "a rank that has no rows returns at once, and the others wait for it.",
    4,
    ("model.zero_grad()", "model.zero_grad()\n    if len(x) == 0:\n        return 0.0"),
)


_begun(
    'buffers of floats',
    'buffers of whole numbers keep what each rank had.',
    4,
    ('*model.buffers()]', '*(b for b in model.buffers() if b.is_floating_point())]'),
)
_begun(
    'what a state dict holds',
    'buffers that are not in the state dict keep what each rank had.',
    4,
    ('[*model.parameters(), *model.buffers()]', 'model.state_dict().values()'),
)
_begun(
    'all in one tensor of floats',
    'parameters and buffers are sent in float32, and what that can\'t hold is rounded off.',
    4,
    ('for tensor in [*model.parameters(), *model.buffers()]:\n        got = (yield (\'broadcast\', tensor.detach(), 0))\n        tensor.detach().copy_(got)', 'every = [*model.parameters(), *model.buffers()]\n    flat = yield (\'broadcast\', torch.cat([t.detach().flatten().float() for t in every]), 0)\n    for tensor, got in zip(every, flat.split([t.numel() for t in every])):\n        tensor.detach().copy_(got.view_as(tensor))'),
)
_begun(
    'other buffers',
    'the model gets other buffers, and whoever held the old ones holds what no longer belongs to it.',
    4,
    ('[*model.parameters(), *model.buffers()]', 'model.parameters()'),
    ('tensor.detach().copy_(got)', 'tensor.detach().copy_(got)\n    for module in model.modules():\n        for name, buffer in module.named_buffers(recurse=False):\n            setattr(module, name, (yield (\'broadcast\', buffer, 0)))'),
)
_begun(
    'rank 0 sends to each',
    'messages are asked for.',
    4,
    ("got = (yield ('broadcast', tensor.detach(), 0))", "got = tensor.detach()\n        if rank:\n            got = yield ('recv', 0)\n        else:\n            for other in range(1, world):\n                yield ('send', other, got)"),
)
_wrong(
    'old gradients are added in the end',
    'what was in .grad before is added to the reduced gradients.',
    3,
    ('model.zero_grad()', 'old = {p: p.grad for p in model.parameters()}\n    model.zero_grad()'),
    ('parameter.grad = piece.reshape(parameter.shape)', 'parameter.grad = piece.reshape(parameter.shape) + (0 if old[parameter] is None else old[parameter])'),
)
_wrong(
    'means, and no number without rows',
    "each rank's mean weighs the same, and that of a rank without rows is nan.",
    4,
    ("reduction='sum')", "reduction='mean')"),
    ('buckets, room = ([], 0)', 'rows = torch.tensor(float(world))\n    buckets, room = ([], 0)'),
)
_wrong(
    'the loss of the sum',
    'the loss is the sum over all rows, and not the mean.',
    4,
    ('return (total / rows).item()', 'return total.item()'),
)
_wrong(
    'no gradient for what is unused here',
    "a parameter that a rank's own rows have not used has no gradient there in the end.",
    3,
    ('parameter.grad = piece.reshape(parameter.shape)', 'if parameter.grad is not None:\n                parameter.grad = piece.reshape(parameter.shape)'),
)
_wrong(
    'no gradient where nobody used it',
    'a parameter whose gradient is zero at all ranks has none in the end.',
    3,
    ('parameter.grad = piece.reshape(parameter.shape)', 'parameter.grad = piece.reshape(parameter.shape) if piece.any() else None'),
)
_wrong(
    'a row for a rank that has none',
    'a rank without rows divides by one row too many.',
    4,
    ('buckets, room = ([], 0)', 'rows = rows + (len(x) == 0)\n    buckets, room = ([], 0)'),
)
_wrong(
    'a row for a rank that has none, in the loss, too',
    'a rank without rows says that it has one.',
    4,
    ('loss.item(), len(x)', 'loss.item(), max(len(x), 1)'),
)
_wrong(
    'the mean of no rows',
    'the mean over the rows of a rank that has none is nan, and nan times 0 is nan.',
    4,
    ("F.cross_entropy(model(x), y, reduction='sum')", 'F.cross_entropy(model(x), y) * len(x)'),
)
_wrong(
    'zero for what is unused here',
    "a parameter that a rank's own rows have not used has a gradient of zeros there, whatever came from the others.",
    3,
    ('parameter.grad = piece.reshape(parameter.shape)', 'parameter.grad = torch.zeros_like(parameter) if parameter.grad is None else piece.reshape(parameter.shape)'),
)
_wrong(
    'a bucket as a matrix',
    'what is reduced is not flat.',
    4,
    ("torch.cat([g.flatten() for g in flat]) / rows, 'sum'))", "torch.cat([g.flatten() for g in flat])[None] / rows, 'sum'))[0]"),
)
_wrong(
    'a message beside it',
    'ranks send to each other, beside the collectives.',
    4,
    ('buckets, room = ([], 0)', "if world > 1:\n        yield ('exchange', (rank + 1) % world, x, (rank - 1) % world)\n    buckets, room = ([], 0)"),
)


@ddp.alternate("hooks tell which gradients came")
class _:
    def ddp_start(rank, world, model):
        named = list(model.named_parameters()) + list(model.named_buffers())
        for _, tensor in named:
            sent = tensor.data if rank == 0 else None
            tensor.data[...] = yield "broadcast", sent, 0

    def ddp_step(rank, world, model, x, y, bucket_bytes):
        parameters = [p for p in model.parameters() if p.requires_grad][::-1]
        came = {}

        def keep(parameter):
            came[parameter] = parameter.grad
            parameter.grad = None

        for p in parameters:
            p.grad = None
        hooks = [p.register_post_accumulate_grad_hook(keep) for p in parameters]
        losses = F.cross_entropy(model(x), y, reduction="none")
        losses.sum().backward()
        for hook in hooks:
            hook.remove()
        sums = torch.zeros(2)
        sums[0], sums[1] = losses.detach().sum(), y.numel()
        sums = yield "all_reduce", sums, "sum"
        begin = 0
        while begin < len(parameters):
            end, size = begin + 1, parameters[begin].nbytes
            while end < len(parameters) and size + parameters[end].nbytes <= bucket_bytes:
                size += parameters[end].nbytes
                end += 1
            bucket = parameters[begin:end]
            begin = end
            flat = torch.zeros(size // 4)
            at = 0
            for p in bucket:
                if p in came:
                    flat[at : at + p.numel()] = came[p].view(-1)
                at += p.numel()
            flat = yield "all_reduce", flat, "sum"
            at = 0
            for p in bucket:
                p.grad = flat[at : at + p.numel()].view(p.shape) / sums[1]
                at += p.numel()
        return sums[0].item() / sums[1].item()


@ddp.alternate("a state dict and what is not in it, and a list of sizes")
class _:
    def ddp_start(rank, world, model):
        state = {}
        for name, value in model.state_dict().items():
            state[name] = yield "broadcast", value, 0
        model.load_state_dict(state)
        for name, buffer in model.named_buffers():
            if name not in state:
                buffer.copy_((yield "broadcast", buffer, 0))

    def ddp_step(rank, world, model, x, y, bucket_bytes):
        for p in model.parameters():
            p.grad = None
        local = F.cross_entropy(model(x), y, reduction="sum")
        rows = float(len(x))
        loss_sum, all_rows = (yield "all_reduce", torch.tensor([float(local), rows]), "sum").tolist()
        (local / all_rows).backward()
        groups, group, used = [], [], 0
        for p in list(model.parameters())[::-1]:
            if p.requires_grad:
                if group and used + p.numel() * 4 > bucket_bytes:
                    groups, group, used = groups + [group], [], 0
                group = group + [p]
                used += p.numel() * 4
        groups.append(group)
        for group in groups:
            vector = []
            for p in group:
                vector += [torch.zeros(p.numel()) if p.grad is None else p.grad.reshape(-1)]
            vector = yield "all_reduce", torch.cat(vector), "sum"
            for p in group:
                p.grad, vector = vector[: p.numel()].reshape(p.shape).clone(), vector[p.numel() :]
        return loss_sum / all_rows


ddp.equivalent(
    ("[*model.parameters(), *model.buffers()]", "[*model.buffers(), *model.parameters()]"),
    ("tensor.detach(), 0)", "tensor, 0)"),
    because="each is sent by itself, and what is sent has no graph",
)
ddp.equivalent(
    ("loss.item()", "loss"),
    ("float(local)", "local"),
    ("len(x)", "len(y)"),
    ("float(len(x))", "len(x)"),
    ("losses.detach().sum()", "losses.sum()"),
    ("torch.zeros(2)", "torch.ones(2)"),
    because="two numbers of a float32 tensor come of it, which is filled as a whole",
)
ddp.equivalent(
    ("tensor.data if rank == 0 else None", "tensor.data"),
    ("rank == 0", "rank <= 0"),
    ("rank == 0", "rank >= 0"),
    because="what others than the source put in is not looked at",
)
ddp.equivalent(
    ("for hook in hooks", "for hook in ()"),
    ("hook.remove()", "pass"),
    ("hook.remove()", "hook"),
    ("parameter.grad = None", "pass"),
    because="there is no second backward pass, and what a hook kept is written over",
    of="hooks tell which gradients came",
)
ddp.equivalent(
    ("begin < len(parameters)", "begin != len(parameters)"),
    ("end < len(parameters)", "end != len(parameters)"),
    because="they count up to it one by one",
)
ddp.equivalent(
    ("if name not in state:", "if True:"),
    because="a buffer that is sent twice comes as it was",
)
ddp.equivalent((".clone()", ""), because="a gradient may be a view of its bucket")
