"""A second bank of lab 10, written from the lesson and the released lab alone.

The right answers have ways of their own; the wrong ones are those that found something. They are
edits of the lab's own solution.
"""

from __future__ import annotations

from tests.phases.bank import Bank

# exercise, name, cell
RIGHT = [
    (
        "tree_broadcast",
        "halves of halves",
        """
def tree_broadcast(rank, world, tensor, source, *, low=0, high=None):
    high = world if high is None else high
    if high - low == 1:
        return tensor
    place, middle = (rank - source) % world, (low + high + 1) // 2
    if place == low:
        yield "send", (middle + source) % world, tensor
    elif place == middle:
        tensor = yield "recv", (low + source) % world
    part = (low, middle) if place < middle else (middle, high)
    return (yield from tree_broadcast(rank, world, tensor, source, low=part[0], high=part[1]))
""",
    ),
    (
        "tree_broadcast",
        "a power of two, then the rest at once",
        """
def tree_broadcast(rank, world, tensor, source):
    place, full = (source - rank) % world, 1
    while 2 * full <= world:
        full *= 2

    def number(p):
        return (source - p) % world

    step = full // 2
    while step and place < full:
        if not place & (2 * step - 1):
            yield "send", number(place | step), tensor
        elif not place & (step - 1):
            tensor = yield "recv", number(place ^ step)
        step //= 2
    if place >= full:
        tensor = yield "recv", number(place - full)
    elif place + full < world:
        yield "send", number(place + full), tensor
    return tensor
""",
    ),
    (
        "ring_all_reduce",
        "filled up with zeros, in place, rank 0 waits",
        """
def ring_all_reduce(rank, world, tensor):
    n = tensor.numel()
    c = (n + world - 1) // world
    table = tensor.new_zeros(world, c)
    table.view(-1)[:n] = tensor.reshape(n)
    for k in range(2 * (world - 1)):
        if k >= world - 1:
            sends = table[(rank + 1 - (k - world + 1)) % world]
        else:
            sends = table[(rank - k) % world]
        if rank:
            yield "send", (rank + 1) % world, sends
            gets = yield "recv", rank - 1
        else:
            gets = yield "recv", world - 1
            yield "send", 1, sends
        if k < world - 1:
            table[(rank - k - 1) % world] += gets
        else:
            table[(rank - (k - world + 1)) % world].copy_(gets)
    return table.view(-1)[:n].reshape(tensor.size())
""",
    ),
    (
        "ring_all_reduce",
        "empty pieces stay at home",
        """
def ring_all_reduce(rank, world, tensor):
    pieces = dict(enumerate(tensor.reshape(-1).split(max(1, -(-tensor.numel() // world)))))
    pieces = {k: piece for k, piece in pieces.items() if len(piece)}
    right, left = (rank + 1) % world, (rank + world - 1) % world

    def passed(out, come):
        if out in pieces and come in pieces:
            return (yield "exchange", right, pieces[out], left)
        if out in pieces:
            yield "send", right, pieces[out]
        if come in pieces:
            return (yield "recv", left)

    for k in range(world - 1):
        come = (rank - k - 1) % world
        got = yield from passed((rank - k) % world, come)
        if got is not None:
            pieces[come] = pieces[come] + got
    for k in range(world - 1):
        come = (rank - k) % world
        got = yield from passed((come + 1) % world, come)
        if got is not None:
            pieces[come] = got
    if not pieces:
        return tensor.clone()
    return torch.cat([pieces[k] for k in sorted(pieces)]).reshape(tensor.shape)
""",
    ),
    (
        "cost",
        "by recursion and by the round",
        """
def cost(kind, size, world, latency, bandwidth, /, know=1):
    match kind:
        case "broadcast":
            if know >= world:
                return 0.0, 0.0
            sent, seconds = cost(kind, size, world, latency, bandwidth, 2 * know)
            return sent + size, seconds + latency + size / bandwidth
        case "all_reduce":
            halves = (cost(half, size, world, latency, bandwidth) for half in ("reduce_scatter", "all_gather"))
            return tuple(map(sum, zip(*halves)))
    sent = seconds = 0.0
    for _ in range(1, world):
        sent += size / world
        seconds += latency + size / world / bandwidth
    return sent, seconds
""",
    ),
    (
        "ddp",
        "a class for buckets, grads are its views",
        """
class Bucket:
    def __init__(self, parameters):
        self.parameters = parameters
        self.flat = torch.zeros(sum(p.numel() for p in parameters))
        self.views, at = [], 0
        for p in parameters:
            self.views.append(self.flat[at : at + p.numel()].view(p.shape))
            at += p.numel()

    def fill(self, scale):
        for p, view in zip(self.parameters, self.views):
            if p.grad is not None:
                view.copy_(p.grad * scale)
            p.grad = view

    def reduced(self):
        self.flat.copy_((yield "all_reduce", self.flat, "sum"))


def ddp_start(rank, world, model):
    every = list(model.parameters()) + list(model.buffers())
    for tensor in every:
        got = yield "broadcast", tensor.detach() if rank == 0 else None, 0
        with torch.no_grad():
            tensor[...] = got


def ddp_step(rank, world, model, x, y, bucket_bytes):
    for p in model.parameters():
        p.grad = None
    logits = model(x)
    losses = F.cross_entropy(logits, y, reduction="none")
    told = yield "all_reduce", torch.tensor([losses.sum(), len(losses)]), "sum"
    mean = losses.sum() / told[1]
    mean.backward()
    trained = [p for p in model.parameters() if p.requires_grad]
    for bucket in map(Bucket, driver.buckets(trained[::-1], bucket_bytes)):
        bucket.fill(1)
        yield from bucket.reduced()
    return (told[0] / told[1]).item()
""",
    ),
    (
        "fsdp_step",
        "by recursion",
        '''
def shard(tensor, rank, world, fill=0):
    n = tensor.numel()
    size = math.ceil(n / world)
    numbers = tensor.reshape(-1)[rank * size : (rank + 1) * size]
    return torch.cat((numbers, numbers.new_full((size - len(numbers),), fill)))


def gathered(piece, shape):
    out, wide = shape
    return torch.cat((yield "all_gather", piece))[: out * wide].reshape(out, wide)


def fsdp_step(rank, world, shards, moments, shapes, x, y, lr, momentum):
    last = len(shapes) - 1
    w, m = {}, {}

    def through(k, h):
        """Layer k and all behind it: the loss, and the gradient for h."""
        weight = yield from gathered(shards[k], shapes[k])
        z = torch.einsum("bi,oi->bo", h, weight)
        del weight
        if k == last:
            loss, back = F.mse_loss(z, y), (z - y).mul(2 / y.numel())
        else:
            loss, back = yield from through(k + 1, F.relu(z))
            back = torch.where(z > 0, back, 0)
        weight = yield from gathered(shards[k], shapes[k])
        change, behind = driver.linear_backward(h, weight, back)
        pieces = [shard(change / world, r, world) for r in range(world)]
        own = yield "reduce_scatter", pieces, "sum"
        m[k] = moments[k] * momentum + own
        w[k] = torch.add(shards[k], m[k], alpha=-lr)
        return loss, behind

    loss, _ = yield from through(0, x)
    return loss.item(), [w[k] for k in range(last + 1)], [m[k] for k in range(last + 1)]
''',
    ),
    (
        "parallel_head",
        "log-sum-exps, and the target by a max",
        """
def column_loss(rank, world, x, weight, bias, first, targets):
    T = targets.shape[0]
    logits = torch.addmm(bias, x, weight.t())
    hot = targets[:, None] == torch.arange(first, first + weight.shape[0])
    lse = logits.logsumexp(dim=-1)
    chosen = logits.masked_fill(~hot, -math.inf).amax(dim=-1)
    tops = yield "all_reduce", torch.stack([lse, chosen]), "max"
    sums = yield "all_reduce", (lse - tops[0]).exp(), "sum"
    lse = tops[0] + sums.log()
    gradient = ((logits - lse.unsqueeze(1)).exp() - hot.to(logits.dtype)) / T
    gradient = yield "all_reduce", torch.einsum("tv,vd->td", gradient, weight), "sum"
    return torch.mean(lse - tops[1]), gradient


def row_logits(rank, world, x, weight, bias):
    return (yield "all_reduce", torch.addmm(bias / world, x, weight.t()), "sum")
""",
    ),
    (
        "parallel_head",
        "token by token",
        """
def column_loss(rank, world, x, weight, bias, first, targets):
    scores = [weight @ token + bias for token in x]
    m = yield "all_reduce", torch.stack([s.max() for s in scores]), "max"
    own = []
    for s, top, y in zip(scores, m, targets.tolist()):
        there = s[y - first] if first <= y < first + len(s) else s.new_zeros(())
        own.append(torch.stack([torch.exp(s - top).sum(), there]))
    both = yield "all_reduce", torch.stack(own), "sum"
    loss, back = 0.0, torch.zeros_like(x)
    for t, (s, top, (z, picked), y) in enumerate(zip(scores, m, both, targets.tolist())):
        loss = loss + z.log() + top - picked
        p = torch.exp(s - top) / z
        back[t] = p @ weight
        if first <= y < first + len(s):
            back[t] -= weight[y - first]
    back = yield "all_reduce", back.div_(len(x)), "sum"
    return loss / len(x), back


def row_logits(rank, world, x, weight, bias):
    mine = bias if rank == 0 else torch.zeros_like(bias)
    part = sum(torch.outer(channel, column) for channel, column in zip(x.T, weight.T)) + mine
    got = yield "all_reduce", part, "sum"
    return got
""",
    ),
    (
        "pipeline",
        "a clock that ticks",
        """
def schedule(stages, micro, kind):
    plan, done = [[] for _ in range(stages)], set()
    while any(len(p) < 2 * micro for p in plan):
        now = []
        for s, p in enumerate(plan):
            f, b = (sum(w == what for w, _ in p) for what in "FB")
            first = s == 0 or (s - 1, "F", f) in done
            back = s == stages - 1 or (s + 1, "B", b) in done
            room = micro if kind == "gpipe" else stages - s
            early = kind == "1f1b" or f == micro
            if b < f and back and early and (f - b == room or f == micro):
                now.append((s, "B", b))
            elif f < micro and first and f - b < room:
                now.append((s, "F", f))
        for s, what, k in now:
            plan[s].append((what, k))
            done.add((s, what, k))
    return plan


def bubble(stages, micro):
    working = 3.0 * micro
    return (3.0 * (micro + stages - 1) - working) / (3.0 * (micro + stages - 1))
""",
    ),
    (
        "plan",
        "layer by layer",
        '''
def plan(parameters, layers, world, kind, tokens, machine):
    def ring(size, halves):
        """Bytes and seconds of an all-reduce, which has two halves, or of one of the halves."""
        piece = size / world
        sent = seconds = 0.0
        for _ in range(halves * (world - 1)):
            sent += piece
            seconds += machine["latency"] + piece / machine["bandwidth"]
        return sent, seconds

    one = parameters / layers
    collectives = [ring(2 * one, 2)] if kind == "ddp" else [ring(2 * one, 1) for _ in range(3)]
    came = dict.fromkeys(("memory", "sent", "seconds"), 0.0)
    for _ in range(layers):
        came["sent"] += sum(sent for sent, _ in collectives)
        came["memory"] += (2 + 2 + 12) * one / (1 if kind == "ddp" else world)
        came["seconds"] += max(sum(s for _, s in collectives), 6 * one * tokens / machine["flops"])
    came["memory"] += 0 if kind == "ddp" else 2 * one
    return came
''',
    ),
    (
        "minigpt_step",
        "backward, in the reverse order of parameters",
        """
def minigpt_step(rank, world, model, tokens, targets, state, lr, max_norm):
    order = list(reversed(list(model.parameters())))
    model.zero_grad()
    logits = model(tokens).reshape(-1, model.lm_head.weight.shape[0])
    keep = targets.reshape(-1) >= 0
    words = int(keep.sum())
    losses = -logits.log_softmax(-1)[keep, targets.reshape(-1)[keep]]
    losses.sum().backward()
    both = yield "all_reduce", torch.tensor([float(words), losses.sum().item()]), "sum"
    scale = 1 / both[0]
    share = yield "reduce_scatter", [g * scale for g in driver.pieces([p.grad for p in order], world)], "sum"
    (squares,) = yield "all_reduce", (share @ share)[None], "sum"
    norm = float(squares) ** 0.5
    factor = max_norm / (norm + 1e-6)
    if factor < 1:
        share.mul_(factor)
    at = slice(rank * len(share), (rank + 1) * len(share))
    flat = F.pad(nn.utils.parameters_to_vector(order).detach(), (0, world * len(share)))[at]
    new, later = driver.adamw(flat, share, state, lr)
    whole = torch.cat((yield "all_gather", new))
    with torch.no_grad():
        for p in order:
            p.copy_(whole[: p.numel()].view_as(p))
            whole = whole[p.numel() :]
    return float(both[1] * scale), norm, later
""",
    ),
]
# exercise, name, what of the question it breaks, edits of the lab's own solution
WRONG: list[tuple[str, str, str, list[tuple[str, str]]]] = [
    (
        "tree_broadcast",
        "rounded rounds",
        "any number of ranks",
        [("while step < world:", "for _ in range(round(math.log2(world))):")],
    ),
    (
        "ring_all_reduce",
        "whole numbers by way of float64",
        "its dtype is float32, float64 or int64",
        [
            ("flat = tensor.flatten()", "flat = tensor.flatten() if tensor.is_floating_point() else tensor.flatten().double()"),
            ("reshape(tensor.shape)", "reshape(tensor.shape).to(tensor.dtype)"),
        ],
    ),
    (
        "ddp",
        "the state dict",
        "the parameters and buffers of rank 0",
        [("[*model.parameters(), *model.buffers()]", "model.state_dict().values()")],
    ),
    (
        "ddp",
        "buffers replaced",
        "the tensors that the model has stay the same objects",
        [
            ("[*model.parameters(), *model.buffers()]", "model.parameters()"),
            (
                "        tensor.detach().copy_(got)\n",
                """        tensor.detach().copy_(got)
    for module in model.modules():
        for name, buffer in module.named_buffers(recurse=False):
            setattr(module, name, (yield "broadcast", buffer if rank == 0 else None, 0))
""",
            ),
        ],
    ),
    (
        "ring_all_reduce",
        "nothing is float32",
        "its dtype is float32, float64 or int64",
        [
            (
                "    flat = tensor.flatten()\n",
                "    if not tensor.numel():\n        return torch.zeros(tensor.shape)\n"
                "    flat = tensor.flatten()\n",
            )
        ],
    ),
    (
        "ddp",
        "zero times what the others have",
        "the parameters and buffers of rank 0",
        [
            (
                'yield "broadcast", tensor.detach(), 0',
                'yield "all_reduce", tensor.detach() * (rank == 0), "sum"',
            )
        ],
    ),
    (
        "ddp",
        "all in one float tensor",
        "buffers may be of any dtype",
        [
            (
                """    for tensor in [*model.parameters(), *model.buffers()]:
        got = yield "broadcast", tensor.detach(), 0
        tensor.detach().copy_(got)
""",
                """    every = [*model.parameters(), *model.buffers()]
    flat = torch.cat([t.detach().flatten().float() for t in every])
    flat = yield "broadcast", flat if rank == 0 else None, 0
    for t, piece in zip(every, flat.split([t.numel() for t in every])):
        t.detach().copy_(piece.view_as(t))
""",
            )
        ],
    ),
    (
        "parallel_head",
        "alone, no largest one is taken off",
        "logits of some thousands are no harm",
        [('largest = yield "all_reduce", logits.amax(dim=1), "max"', 'largest = yield "all_reduce", logits.amax(dim=1) * (world > 1), "max"')],
    ),
    (
        "minigpt_step",
        "cleared afterwards",
        "what was in .grad before counts for nothing",
        [
            ("gradients = torch.autograd.grad(loss, parameters)", "loss.backward()\n    gradients = [p.grad.clone() for p in parameters]\n    model.zero_grad()")
        ],
    ),
]


def add_to(bank: Bank) -> None:
    """Add all of them to the bank of the lab."""
    for exercise, name, cell in RIGHT:
        bank.right(exercise, name, code=cell)
    for exercise, name, breaks, edits in WRONG:
        bank.wrong(exercise, name, *edits, breaks=breaks)
