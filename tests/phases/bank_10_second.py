"""A second blind bank of lab 10: written from the text alone, before any check was read."""

from __future__ import annotations

from tests.phases.bank import CODE, Bank

RIGHT: dict[str, dict[str, str]] = {}
WRONG: dict[str, list[tuple[str, ...]]] = {}

RIGHT["tree_broadcast"] = {
    "plain": '''
def tree_broadcast(rank, world, tensor, source):
    place = (rank - source) % world
    step = 1
    while step < world:
        if place < step:
            if place + step < world:
                yield "send", (rank + step) % world, tensor
        elif place < 2 * step:
            tensor = yield "recv", (rank - step) % world
        step *= 2
    return tensor
''',
    "from the longest step down": '''
def tree_broadcast(rank, world, tensor, source):
    place = (rank - source) % world
    for bit in reversed(range((world - 1).bit_length())):
        step = 1 << bit
        if place % (2 * step) == 0 and place + step < world:
            yield "send", (place + step + source) % world, tensor
        elif place % (2 * step) == step:
            tensor = yield "recv", (place - step + source) % world
    return tensor
''',
    "halves of halves": '''
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
''',
    "parent and children, the source swapped with 0": '''
class Tree:
    def __init__(self, world, source):
        self.world, self.source = world, source

    def swapped(self, number):
        return {0: self.source, self.source: 0}.get(number, number)

    def parent(self, place):
        return place - (1 << place.bit_length() - 1)

    def children(self, place):
        step = 1 << place.bit_length()
        while place + step < self.world:
            yield place + step
            step <<= 1


def tree_broadcast(rank, world, tensor, source):
    tree = Tree(world, source)
    place = tree.swapped(rank)
    if place:
        tensor = yield "recv", tree.swapped(tree.parent(place))
    for child in tree.children(place):
        yield "send", tree.swapped(child), tensor
    return tensor
''',
    "a power of two, then the rest at once": '''
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
''',
}
WRONG["tree_broadcast"] = [
    ("rounded rounds", "any number of ranks",
     "    step = 1\n    while step < world:\n", "    step = 1\n    for _ in range(round(math.log2(world))):\n"),
    ("both sides of the source", "any of them may be the source", CODE, '''
def tree_broadcast(rank, world, tensor, source):
    place, way = abs(rank - source), 1 if rank > source or source == 0 else -1
    step = 1
    while step < world:
        if place < step:
            if place + step < world:
                yield "send", rank + way * step, tensor
        elif place < 2 * step:
            tensor = yield "recv", rank - way * step
        step *= 2
    return tensor
'''),
    ("a barrier for each round", "Only send and recv may be asked for",
     "        step *= 2\n", '        step *= 2\n        yield ("barrier",)\n'),
    ("nothing if alone", "There is one rank or more",
     "    step = 1\n", "    step = 1\n    if world == 1:\n        return None\n"),
    ("sent flat", "Each rank returns the tensor",
     '                yield "send", (rank + step) % world, tensor', '                yield "send", (rank + step) % world, tensor.flatten()'),
]

RIGHT["ring_all_reduce"] = {
    "plain": '''
def ring_all_reduce(rank, world, tensor):
    flat = tensor.flatten()
    c = -(-flat.numel() // world)
    pieces = [flat[k * c : (k + 1) * c].clone() for k in range(world)]
    ahead, behind = (rank + 1) % world, (rank - 1) % world
    for k in range(world - 1):
        got = yield "exchange", ahead, pieces[(rank - k) % world], behind
        mine = (rank - k - 1) % world
        pieces[mine] = pieces[mine] + got
    for k in range(world - 1):
        got = yield "exchange", ahead, pieces[(rank + 1 - k) % world], behind
        pieces[(rank - k) % world] = got
    return torch.cat(pieces).reshape(tensor.shape)
''',
    "evens send first, pieces of tensor_split": '''
def shifted(rank, world, piece):
    """Everybody gives a piece to the next one."""
    sends_first = rank % 2 == 0
    if sends_first:
        yield "send", (rank + 1) % world, piece
    got = yield "recv", (rank - 1) % world
    if not sends_first:
        yield "send", (rank + 1) % world, piece
    return got


def ring_all_reduce(rank, world, tensor):
    if world == 1:
        return tensor
    pieces = list(torch.tensor_split(tensor.reshape(-1), world))
    at = rank
    for _ in range(world - 1):
        got = yield from shifted(rank, world, pieces[at])
        at = at - 1 if at else world - 1
        pieces[at] = got + pieces[at]
    for _ in range(world - 1):
        got = yield from shifted(rank, world, pieces[at])
        at = at - 1 if at else world - 1
        pieces[at] = got
    return torch.cat(pieces).view(tensor.shape)
''',
    "filled up with zeros, in place, rank 0 waits": '''
def ring_all_reduce(rank, world, tensor):
    n = tensor.numel()
    c = (n + world - 1) // world
    table = tensor.new_zeros(world, c)
    table.view(-1)[:n] = tensor.reshape(n)
    for k in range(2 * (world - 1)):
        sends, gets = table[rank - k - world if rank < k else rank - k], None
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
''',
    "empty pieces stay at home": '''
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
''',
    "in the tensor that it got": '''
def ring_all_reduce(rank, world, tensor):
    flat = tensor.contiguous().view(-1)
    c = math.ceil(flat.numel() / world)

    def piece(k):
        k %= world
        return flat[k * c : (k + 1) * c]

    for k in range(world - 1):
        piece(rank - k - 1).add_((yield "exchange", (rank + 1) % world, piece(rank - k), (rank - 1) % world))
    for k in range(world - 1):
        piece(rank - k).copy_((yield "exchange", (rank + 1) % world, piece(rank + 1 - k), (rank - 1) % world))
    return flat.view(tensor.shape)
''',
}
WRONG["ring_all_reduce"] = [
    ("a buffer of float32", "of that shape and dtype again",
     "return torch.cat(pieces).reshape(tensor.shape)",
     "whole = torch.zeros(flat.numel())\n    whole[:] = torch.cat(pieces)\n    return whole.reshape(tensor.shape)"),
    ("whole numbers by way of float64", "Its dtype is float32, float64 or int64",
     "flat = tensor.flatten()", "flat = tensor.flatten() if tensor.is_floating_point() else tensor.flatten().double()",
     "reshape(tensor.shape)", "reshape(tensor.shape).to(tensor.dtype)"),
    ("the last piece takes the rest", "no message has more than c = ⌈n / world⌉",
     "c = -(-flat.numel() // world)", "c = flat.numel() // world",
     "for k in range(world)]", "for k in range(world - 1)] + [flat[(world - 1) * c :].clone()]"),
    ("the second half goes backwards", "A rank sends to its successor alone",
     'got = yield "exchange", ahead, pieces[(rank + 1 - k) % world], behind\n        pieces[(rank - k) % world] = got',
     'got = yield "exchange", behind, pieces[(rank + 1 + k) % world], ahead\n        pieces[(rank + 2 + k) % world] = got'),
    ("the ring the other way round", "A rank sends to its successor alone",
     "ahead, behind = (rank + 1) % world, (rank - 1) % world", "ahead, behind = (rank - 1) % world, (rank + 1) % world",
     "rank - k - 1", "rank + k + 1", "rank + 1 - k", "rank - 1 + k", "rank - k", "rank + k"),
    ("view", "may have any shape", "tensor.flatten()", "tensor.view(-1)"),
    ("a rounded length of pieces", "c = ⌈n / world⌉", "c = -(-flat.numel() // world)", "c = round(flat.numel() / world)",
     "torch.cat(pieces)", "torch.cat([*pieces, flat[world * c :]])"),
    ("small ones whole", "no message has more than c", "    pieces = [", '''    if flat.numel() < world:
        all_of = {rank: tensor}
        for k in range(world - 1):
            there = all_of[(rank - k) % world]
            all_of[(rank - k - 1) % world] = yield "exchange", (rank + 1) % world, there, (rank - 1) % world
        return sum(all_of[k] for k in range(world))
    pieces = ['''),
    ("its own sum where the piece began", "All ranks return the very same bits", CODE, '''
def ring_all_reduce(rank, world, tensor):
    flat = tensor.flatten()
    c = -(-flat.numel() // world)
    own = [flat[k * c : (k + 1) * c] for k in range(world)]
    pieces = list(own)
    ahead, behind = (rank + 1) % world, (rank - 1) % world
    for k in range(world - 1):
        mine = (rank - k - 1) % world
        got = yield "exchange", ahead, pieces[(rank - k) % world], behind
        pieces[mine] = own[mine] + got
    for k in range(world - 1):
        got = yield "exchange", ahead, pieces[(rank + 1 - k) % world], behind
        mine = (rank - k) % world
        pieces[mine] = own[mine] + (got - own[mine])
    return torch.cat(pieces).reshape(tensor.shape)
'''),
]

RIGHT["cost"] = {
    "plain": '''
def cost(kind, size, world, latency, bandwidth):
    rounds = {
        "all_reduce": 2 * (world - 1),
        "reduce_scatter": world - 1,
        "all_gather": world - 1,
        "broadcast": (world - 1).bit_length(),
    }[kind]
    piece = size if kind == "broadcast" else size / world
    return float(rounds * piece), float(rounds * (latency + piece / bandwidth))
''',
    "by recursion and by the round": '''
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
''',
}
WRONG["cost"] = [
    ("bits of the world", "⌈log₂ world⌉ rounds", "(world - 1).bit_length()", "world.bit_length() if world > 1 else 0"),
    ("the logarithm of the others", "⌈log₂ world⌉ rounds", "(world - 1).bit_length()", "math.ceil(math.log2(world - 1)) if world > 1 else 0"),
    ("rounded", "⌈log₂ world⌉ rounds", "(world - 1).bit_length()", "round(math.log2(world))"),
    ("bytes as a whole number", "returns two floats", "return float(rounds * piece), ", "return int(rounds * piece), "),
    ("what one rank has in the end", "size is the size of all that one rank puts in",
     'size if kind == "broadcast" else size / world', 'size if kind in ("broadcast", "reduce_scatter") else size / world'),
    ("at least one round", "Alone, a rank sends nothing", "(world - 1).bit_length()", "max(1, math.ceil(math.log2(world)))"),
]

STEP = '''

def ddp_step(rank, world, model, x, y, bucket_bytes):
    model.zero_grad(set_to_none=True)
    parameters = [p for p in model.parameters() if p.requires_grad]
    total = F.cross_entropy(model(x), y, reduction="sum")
    both = torch.tensor([total.item(), float(len(x))])
    loss, rows = (yield "all_reduce", both, "sum").tolist()
    found = torch.autograd.grad(total, parameters, allow_unused=True)
    gradient = {p: torch.zeros_like(p) if g is None else g for p, g in zip(parameters, found)}
    for bucket in driver.buckets(reversed(parameters), bucket_bytes):
        flat = torch.cat([gradient[p].flatten() for p in bucket])
        flat = (yield "all_reduce", flat, "sum") / rows
        for p, piece in zip(bucket, flat.split([p.numel() for p in bucket])):
            p.grad = piece.view_as(p).clone()
    return loss / rows
'''
START = '''
def ddp_start(rank, world, model):
    with torch.no_grad():
        for tensor in [*model.parameters(), *model.buffers()]:
            tensor.copy_((yield "broadcast", tensor if rank == 0 else None, 0))
'''
RIGHT["ddp"] = {
    "plain": START + STEP,
    "backward, and .data": '''
def ddp_start(rank, world, model, source=0):
    for module in model.modules():
        for group in (module._parameters, module._buffers):
            for held in group.values():
                if held is not None:
                    given = held.detach() if rank == source else None
                    held.data = yield "broadcast", given, source


def ddp_step(rank, world, model, x, y, bucket_bytes):
    for p in model.parameters():
        p.grad = torch.zeros_like(p) if p.requires_grad else None
    loss = torch.zeros(())
    if y.numel():
        loss = F.cross_entropy(model(x), y, reduction="sum")
        loss.backward()
    told = yield "all_reduce", torch.stack([torch.tensor(float(y.numel())), loss.detach()]), "sum"
    order = [p for p in list(model.parameters())[::-1] if p.grad is not None]
    for bucket in driver.buckets(order, bucket_bytes):
        flat = nn.utils.parameters_to_vector([p.grad for p in bucket])
        flat = yield "all_reduce", flat.div(told[0]), "sum"
        nn.utils.vector_to_parameters(flat, [p.grad for p in bucket])
    return float(told[1] / told[0])
''',
    "a class for buckets, grads are its views": '''
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
''',
}
WRONG["ddp"] = [
    ("mean times rows", "and one may have none", 'F.cross_entropy(model(x), y, reduction="sum")', "F.cross_entropy(model(x), y) * len(x)"),
    ("at least one row", "and one may have none", "float(len(x))", "float(max(len(x), 1))"),
    ("the state dict", "the parameters and buffers of rank 0",
     "[*model.parameters(), *model.buffers()]", "model.state_dict().values()"),
    ("buffers replaced", "The tensors that the model has stay the same objects", CODE, '''
def ddp_start(rank, world, model):
    with torch.no_grad():
        for p in model.parameters():
            p.copy_((yield "broadcast", p if rank == 0 else None, 0))
        for module in model.modules():
            for name, buffer in module.named_buffers(recurse=False):
                setattr(module, name, (yield "broadcast", buffer if rank == 0 else None, 0))
''' + STEP),
    ("all in one float tensor", "buffers may be of any dtype", CODE, '''
def ddp_start(rank, world, model):
    every = [*model.parameters(), *model.buffers()]
    flat = torch.cat([t.detach().flatten().float() for t in every])
    flat = yield "broadcast", flat if rank == 0 else None, 0
    with torch.no_grad():
        for t, piece in zip(every, flat.split([t.numel() for t in every])):
            t.copy_(piece.view_as(t))
''' + STEP),
    ("the model is returned", "Nothing is returned", "\n\ndef ddp_step", "    return model\n\n\ndef ddp_step"),
    ("where it was not used here it is zero", "Another rank may have one",
     "            p.grad = piece.view_as(p).clone()\n",
     "            unused = found[[q is p for q in parameters].index(True)] is None\n            p.grad = torch.zeros_like(p) if unused else piece.view_as(p).clone()\n"),
    ("float64", "an all-reduce of a float32 tensor with two numbers", "both = torch.tensor([total.item(), float(len(x))])",
     "both = torch.tensor([total.item(), float(len(x))], dtype=torch.float64)"),
    ("a frozen one keeps what it had", "and has none afterwards either", "    model.zero_grad(set_to_none=True)\n", "    for p in model.parameters():\n        if p.requires_grad:\n            p.grad = None\n"),
    ("added to what was there", "What was in .grad before counts for nothing", "    model.zero_grad(set_to_none=True)\n", "",
     "p.grad = piece.view_as(p).clone()", "p.grad = piece.view_as(p) if p.grad is None else p.grad.mul_(0) + piece.view_as(p)"),
    ("graph kept", "each `.grad` is the gradient of that loss",
     "if g is None else g for p, g", "if g is None else g + 0 * p for p, g"),
    ("the mean of the rows that it has", "the mean cross-entropy over the rows of all ranks", "    return loss / rows", "    return loss / (rows if len(x) else 1)"),
]

SHARD = '''
def shard(tensor, rank, world):
    flat = tensor.flatten()
    c = -(-flat.numel() // world)
    piece = flat.new_zeros(c)
    mine = flat[rank * c : (rank + 1) * c]
    piece[: len(mine)] = mine
    return piece
'''
FSDP = '''

def fsdp_step(rank, world, shards, moments, shapes, x, y, lr, momentum):
    def whole(k):
        pieces = yield "all_gather", shards[k]
        return torch.cat(pieces)[: math.prod(shapes[k])].view(shapes[k])

    inputs, z = [], x
    for k in range(len(shards)):
        h = z.relu() if k else z
        inputs.append(h)
        weight = yield from whole(k)
        z = h @ weight.T
    loss = F.mse_loss(z, y).item()
    g = 2 * (z - y) / z.numel()
    new_shards, new_moments = list(shards), list(moments)
    for k in reversed(range(len(shards))):
        weight = yield from whole(k)
        dw, dh = driver.linear_backward(inputs[k], weight, g)
        mine = yield "reduce_scatter", [shard(dw, r, world) for r in range(world)], "sum"
        new_moments[k] = momentum * moments[k] + mine / world
        new_shards[k] = shards[k] - lr * new_moments[k]
        g = dh * (inputs[k] > 0)
    return loss, new_shards, new_moments
'''
RIGHT["fsdp_step"] = {
    "plain": SHARD + FSDP,
    "by recursion": '''
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
    "autograd by the layer, lists changed in place": '''
def shard(tensor, rank, world):
    padded = F.pad(tensor.detach().reshape(-1), (0, -tensor.numel() % world))
    return padded.view(world, -1)[rank].clone() if tensor.numel() else padded.clone()


def fsdp_step(rank, world, shards, moments, shapes, x, y, lr, momentum):
    n = len(shapes)
    weigh = lambda k, pieces: torch.cat(pieces)[: shapes[k][0] * shapes[k][1]].view(*shapes[k])
    kept = [x]
    for k in range(n):
        w = weigh(k, (yield "all_gather", shards[k]))
        z = F.linear(kept[-1], w)
        kept.append(z if k == n - 1 else z.relu())
    out = kept.pop().requires_grad_()
    loss = F.mse_loss(out, y)
    (g,) = torch.autograd.grad(loss, out)
    for k in range(n - 1, -1, -1):
        w = weigh(k, (yield "all_gather", shards[k])).requires_grad_()
        h = kept.pop().detach().requires_grad_()
        dw, dh = torch.autograd.grad(F.linear(h, w), (w, h), g)
        own = yield "reduce_scatter", [shard(dw, r, world) for r in range(world)], "sum"
        moments[k].mul_(momentum).add_(own, alpha=1 / world)
        shards[k].sub_(lr * moments[k])
        g = torch.where(h.detach() > 0, dh, torch.zeros_like(dh))
    return loss.item(), shards, moments
''',
}
WRONG["fsdp_step"] = [
    ("a view of the padded copy", "a storage of its own, with nothing else in it",
     SHARD, '\ndef shard(tensor, rank, world):\n    return F.pad(tensor.flatten(), (0, -tensor.numel() % world)).chunk(world)[rank]\n'),
    ("contiguous", "a storage of its own, with nothing else in it", SHARD, '''
def shard(tensor, rank, world):
    flat = tensor.flatten().clone()
    c = -(-flat.numel() // world)
    mine = flat[rank * c : (rank + 1) * c].contiguous()
    return mine if len(mine) == c else torch.cat([mine, mine.new_zeros(c - len(mine))])
'''),
    ("zeros of float32", "of the tensor's dtype", "flat.new_zeros(c)", "torch.zeros(c)"),
    ("view", "the flat tensor", "tensor.flatten()", "tensor.view(-1)"),
    ("one more where it divides", "until its length divides by world", "c = -(-flat.numel() // world)", "c = flat.numel() // world + 1 if flat.numel() > world else 1"),
    ("pieces behind the end are empty", "cut into world equal pieces", "    return piece\n", "    return piece if len(mine) else mine.clone()\n"),
    ("a zero passes the ReLU", "only what belongs to a positive number", "g = dh * (inputs[k] > 0)", "g = dh * (inputs[k] >= 0)"),
    ("a ReLU after the last", "and none after the last", "    loss = F.mse_loss", "    z = z.relu()\n    loss = F.mse_loss"),
    ("a mean over the rows alone", "the loss is F.mse_loss", "g = 2 * (z - y) / z.numel()", "g = 2 * (z - y) / len(z)"),
    ("the loss of a row", "the loss is F.mse_loss", "F.mse_loss(z, y).item()", "(z - y).square().sum(1).mean().item()"),
    ("the sign of a layer's outputs", "Through a ReLU goes only what belongs to a positive number", "g = dh * (inputs[k] > 0)",
     "g = dh * (inputs[k].sum(0) > 0)"),
    ("the learning rate in the moment", "m ← momentum · m + g", "new_moments[k] = momentum * moments[k] + mine / world\n        new_shards[k] = shards[k] - lr * new_moments[k]",
     "new_moments[k] = momentum * moments[k] + lr * mine / world\n        new_shards[k] = shards[k] - lr * momentum * moments[k] - lr * mine / world"),
    ("the first layer's input is cut off, too", "a ReLU between one and the next", "h = z.relu() if k else z", "h = z.relu()"),
    ("old moments are given back", "the list of new moments", "return loss, new_shards, new_moments", "return loss, new_shards, moments"),
]

ROW = '''

def row_logits(rank, world, x, weight, bias):
    part = x @ weight.T
    return (yield "all_reduce", part, "sum") + bias
'''
COLUMN = '''
def column_loss(rank, world, x, weight, bias, first, targets):
    logits = F.linear(x, weight, bias)
    count = len(weight)
    largest = yield "all_reduce", logits.max(dim=1).values, "max"
    exps = (logits - largest[:, None]).exp()
    total = yield "all_reduce", exps.sum(1), "sum"
    local = targets - first
    mine = (local >= 0) & (local < count)
    rows, words = torch.arange(len(x))[mine], local[mine]
    own = torch.zeros_like(largest)
    own[rows] = logits[rows, words]
    chosen = yield "all_reduce", own, "sum"
    loss = (total.log() + largest - chosen).mean()
    g = exps / total[:, None]
    g[rows, words] -= 1
    return loss, (yield "all_reduce", g @ weight / len(x), "sum")
'''
RIGHT["parallel_head"] = {
    "plain": COLUMN + ROW,
    "log-sum-exps, and the target by a max": '''
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
''',
    "token by token": '''
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
''',
}
WRONG["parallel_head"] = [
    ("the next rank's first word as well", "the words from number first on", "mine = (local >= 0) & (local < count)", "mine = (local >= 0) & (local <= count)",
     "rows, words = torch.arange(len(x))[mine], local[mine]", "rows, words = torch.arange(len(x))[mine], local[mine].clamp(max=count - 1)"),
    ("the largest is zero or more", "Logits of some thousands, positive or negative", "logits.max(dim=1).values", "logits.max(dim=1).values.clamp(min=0)"),
    ("squeezed", "(T, D)", "own = torch.zeros_like(largest)", "own = torch.zeros_like(largest).unsqueeze(1).squeeze()"),
    ("whose word by a division", "ranks may have different numbers of words", "mine = (local >= 0) & (local < count)", "mine = targets // count == (rank if world > 1 else 0)"),
    ("the rows' largest of all", "Logits of some thousands", 'largest = yield "all_reduce", logits.max(dim=1).values, "max"',
     'largest = yield "all_reduce", (logits.max(dim=1).values if world > 1 else torch.zeros(len(x))), "max"'),
    ("bias in the logits of rank 0 and no other, twice where alone", "bias, (V,), is the whole one, at each rank",
     "part = x @ weight.T\n    return (yield \"all_reduce\", part, \"sum\") + bias", "part = F.linear(x, weight, bias / 2)\n    return (yield \"all_reduce\", part, \"sum\")"),
    ("the first word is another one's", "the words from number first on", "(local >= 0)", "((local > 0) | ((local == 0) & (first == 0)))"),
    ("a loss of one number", "a 0-dim tensor", "return loss, (", "return loss.reshape(1) if world == 1 else loss, ("),
    ("the same words twice", "targets, (T,)", "g[rows, words] -= 1", "g -= F.one_hot(words, count).sum(0).clamp(max=1) * mine[:, None] if len(set(words.tolist())) == 1 and len(words) > 1 else 0\n    if not (len(set(words.tolist())) == 1 and len(words) > 1):\n        g[rows, words] -= 1"),
    ("all numbers twice", "It puts T · V numbers into the network, once", "    part = x @ weight.T\n", '    part = x @ weight.T\n    if world > 2:\n        yield "all_reduce", part, "max"\n'),
    ("the gradient by its two parts", "at most T · D + 3 · T numbers", 'return loss, (yield "all_reduce", g @ weight / len(x), "sum")',
     'shift = yield "all_reduce", loss.reshape(1), "sum"\n    return shift[0] / world, (yield "all_reduce", g @ weight / len(x), "sum")'),
]

PIPE = '''
def schedule(stages, micro, kind):
    plan = []
    for s in range(stages):
        if kind == "gpipe":
            plan.append([(what, k) for what in "FB" for k in range(micro)])
            continue
        warm = min(stages - s, micro)
        todo = [("F", k) for k in range(warm)]
        for k in range(micro):
            todo.append(("B", k))
            if warm + k < micro:
                todo.append(("F", warm + k))
        plan.append(todo)
    return plan
'''
BUBBLE = '''

def bubble(stages, micro):
    return (stages - 1) / (micro + stages - 1)
'''
RIGHT["pipeline"] = {
    "plain": PIPE + BUBBLE,
    "whoever may": '''
def stage_1f1b(cap, micro):
    forward = backward = 0
    while backward < micro:
        if forward < micro and forward - backward < cap:
            yield "F", forward
            forward += 1
        else:
            yield "B", backward
            backward += 1


def schedule(stages: int, micro: int, kind: str):
    """As the last come, so they go back."""
    if kind == "1f1b":
        return [list(stage_1f1b(cap, micro)) for cap in range(stages, 0, -1)]
    one = [("F", k) for k in range(micro)] + [("B", micro - 1 - k) for k in range(micro)]
    return [one] * stages


def bubble(stages: int, micro: int) -> float:
    return 1 - micro / (micro + stages - 1)
''',
    "a clock that ticks": '''
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
''',
}
WRONG["pipeline"] = [
    ("forwards that there are not", "there may be fewer pieces than stages", "warm = min(stages - s, micro)", "warm = stages - s"),
    ("gpipe where pieces are few", "No stage s ever has more than stages - s pieces in flight", 'if kind == "gpipe":', 'if kind == "gpipe" or micro < stages:'),
    ("a whole zero", "the share of its time, a float", BUBBLE, '\n\ndef bubble(stages, micro):\n    return (stages - 1) / (micro + stages - 1) if stages > 1 else 0\n'),
    ("few pieces, no bubble", "a stage stands idle while the pipeline runs", BUBBLE, '\n\ndef bubble(stages, micro):\n    return (stages - 1) / (max(micro, stages) + stages - 1)\n'),
    ("the last stage's backwards from the end", "the whole takes as little time as its rule allows",
     'plan.append([(what, k) for what in "FB" for k in range(micro)])',
     'plan.append([(what, k) for what in "FB" for k in (range(micro) if what == "F" or micro % 2 else [*range(1, micro), 0] if s % 2 else range(micro))])'),
    ("room for half", "as little time as its rule allows", "warm = min(stages - s, micro)", "warm = min(stages - s, micro, 3)"),
    ("one more at four stages and more", "No stage s ever has more than stages - s pieces in flight", "warm = min(stages - s, micro)", "warm = min(stages - s + (stages > 3 and s < stages - 2), micro)"),
    ("forwards first where there is but one piece to do", "each piece forward once and backward once", 'todo = [("F", k) for k in range(warm)]', 'todo = [("F", k) for k in range(max(1, min(warm, micro - 1)))]'),
    ("the first goes back when the second has come", "as little time as its rule allows", "warm = min(stages - s, micro)", "warm = min(max(stages - s, 2) if micro == 2 else stages - s, micro)"),
]

RIGHT["plan"] = {
    "plain": '''
def plan(parameters, layers, world, kind, tokens, machine):
    bf16 = 2.0 * parameters
    layer = bf16 / layers
    rings = {"ddp": 2, "fsdp": 3}[kind]
    memory = 16.0 * parameters
    if kind == "fsdp":
        memory = memory / world + layer
    rounds = rings * (world - 1)
    talking = layers * rounds * (machine["latency"] + layer / world / machine["bandwidth"])
    computing = 6 * parameters * tokens / machine["flops"]
    return {"memory": memory, "sent": rounds * bf16 / world, "seconds": max(talking, computing)}
''',
    "layer by layer": '''
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
}
WRONG["plan"] = [
    ("two rings' time", "one ring collective of those above for a layer, or three", "talking = layers * rounds", "talking = layers * 2 * (world - 1)"),
    ("three in one message", "one ring collective of those above for a layer, or three", "(machine[\"latency\"] + layer / world", '(machine["latency"] / (rings if kind == "fsdp" else 1) + layer / world'),
    ("a piece of whole bytes", "a piece is the layer's bytes by world", "layer / world / machine", "layer // world / machine"),
    ("all of them by the tree", "An all-gather has world - 1", "rounds = rings * (world - 1)", "rounds = rings * math.ceil(math.log2(world))"),
    ("whole bytes", "It returns a dict of three floats", "memory = 16.0 * parameters", "memory = 16 * parameters"),
    ("alone, nothing beside", "and beside it the bfloat16 weights of one whole layer", 'if kind == "fsdp":', 'if kind == "fsdp" and world > 1:'),
    ("the whole tensor once", "by rings of equal pieces", '"sent": rounds * bf16 / world', '"sent": bf16 * rings / 2 * (world > 1)'),
]

RIGHT["minigpt_step"] = {
    "plain": '''
def minigpt_step(rank, world, model, tokens, targets, state, lr, max_norm):
    parameters = list(model.parameters())
    total = F.cross_entropy(model(tokens).flatten(0, 1), targets.flatten(), ignore_index=-100, reduction="sum")
    count = (targets != -100).sum()
    loss, count = (yield "all_reduce", torch.stack([total.detach(), count.float()]), "sum").tolist()
    gradients = torch.autograd.grad(total / count, parameters)
    mine = yield "reduce_scatter", driver.pieces(gradients, world), "sum"
    squares = yield "all_reduce", mine.square().sum().reshape(1), "sum"
    norm = squares.sqrt().item()
    mine = mine * min(1.0, max_norm / (norm + 1e-6))
    own = driver.pieces(parameters, world)[rank]
    own, state = driver.adamw(own, mine, state, lr)
    pieces = yield "all_gather", own
    nn.utils.vector_to_parameters(torch.cat(pieces), parameters)
    return loss / count, norm, state
''',
    "backward, in the reverse order of parameters": '''
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
''',
}
WRONG["minigpt_step"] = [
    ("mean times count", "A rank may have none of them", "F.cross_entropy(model(tokens).flatten(0, 1), targets.flatten(), ignore_index=-100, reduction=\"sum\")",
     "F.cross_entropy(model(tokens).flatten(0, 1), targets.flatten()) * (targets != -100).sum()"),
    ("at least one", "A rank may have none of them", "count.float()]", "count.float().clamp(min=1)]"),
    ("zero is padding", "over the targets of all ranks that are not -100", "(targets != -100).sum()", "(targets > 0).sum()"),
    ("zero is padding in the loss, too", "over the targets of all ranks that are not -100", "(targets != -100).sum()", "(targets > 0).sum()", "targets.flatten(), ", "targets.flatten().masked_fill(targets.flatten() == 0, -100), "),
    ("stretched as well", "if that is below 1", "min(1.0, max_norm / (norm + 1e-6))", "(max_norm / (norm + 1e-6))"),
    ("float64", "an all_reduce of a float32 tensor with two numbers", "torch.stack([total.detach(), count.float()])", "torch.stack([total.detach(), count.float()]).double()"),
    ("cleared afterwards", "What was in .grad before counts for nothing",
     "gradients = torch.autograd.grad(total / count, parameters)", "(total / count).backward()\n    gradients = [p.grad.clone() for p in parameters]\n    model.zero_grad()"),
    ("its own copy of the slice", "AdamW keeps two numbers for each parameter", "own = driver.pieces(parameters, world)[rank]", 'own = state.get("own", driver.pieces(parameters, world)[rank])',
     "    pieces = yield", '    state["own"] = own\n    pieces = yield'),
    ("a mean of ranks for one rank without targets", "The loss is the mean over all ranks", "return loss / count, norm, state", "return (loss / count if (targets != -100).any() else 0.0), norm, state"),
]

BANK = Bank("10")
BANK.fill(RIGHT, WRONG)
