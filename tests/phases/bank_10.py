"""Answers to lab 10, written blind: from the learner's notebook and `utils/` alone.

A few were added later: those of floats and ints, and of states that outlive a call.

A wrong answer is the first right one with an edit (or a cell of its own), and names the sentence of
the lab's text that it breaks.
"""

from tests.phases import bank_10_second
from tests.phases.bank import CODE, Bank

RIGHT: dict[str, dict[str, str]] = {}
WRONG: dict[str, list[tuple]] = {}

# --- 1 · A tree ----------------------------------------------------------------------------------

RIGHT["tree_broadcast"] = {
    "as the hints say": '''
def tree_broadcast(rank, world, tensor, source):
    place = (rank - source) % world
    step = 1
    while step < world:
        if place < step:
            if place + step < world:
                yield "send", (place + step + source) % world, tensor
        elif place < 2 * step:
            tensor = yield "recv", (place - step + source) % world
        step *= 2
    return tensor
''',
    "the farthest first": '''
def tree_broadcast(rank: int, world: int, tensor: Tensor | None, source: int):
    place = (rank - source) % world
    for bit in reversed(range((world - 1).bit_length())):
        step = 1 << bit
        if place % (2 * step) == 0 and place + step < world:
            yield "send", (rank + step) % world, tensor
        if place % (2 * step) == step:
            tensor = yield "recv", (rank - step) % world
    return tensor
''',
    "halves, and halves of halves": '''
def tree_broadcast(rank, world, tensor, source):
    def number(place):
        return (place + source) % world

    def tell(low, high):
        """The one at `low` has it, and all below `high` are to get it."""
        nonlocal tensor
        if high - low < 2:
            return
        middle = low + (high - low + 1) // 2
        if rank == number(low):
            yield "send", number(middle), tensor
        if rank == number(middle):
            tensor = yield "recv", number(low)
        if (rank - source) % world < middle:
            yield from tell(low, middle)
        else:
            yield from tell(middle, high)

    yield from tell(0, world)
    return tensor
''',
    "everybody makes the whole list": '''
def rounds_of(world, source):
    told, rest, rounds = [source], [r for r in range(world) if r != source], []
    while rest:
        pairs = list(zip(told, rest))
        rest = rest[len(pairs):]
        told += [to for _, to in pairs]
        rounds.append(pairs)
    return rounds


def tree_broadcast(rank, world, tensor, source):
    for pairs in rounds_of(world, source):
        for a, b in pairs:
            if a == rank:
                yield ("send", b, tensor)
            elif b == rank:
                tensor = yield ("recv", a)
    return tensor
''',
}
WRONG["tree_broadcast"] = [
    ("the source tells all of them", "the number of ranks that have it can double in each round", CODE, '''
def tree_broadcast(rank, world, tensor, source):
    if rank == source:
        for other in range(world):
            if other != source:
                yield "send", other, tensor
    else:
        tensor = yield "recv", source
    return tensor
'''),
    ("handed on in a row", "It must be done after ⌈log₂ world⌉ rounds", CODE, '''
def tree_broadcast(rank, world, tensor, source):
    if rank != source:
        tensor = yield "recv", (rank - 1) % world
    if (rank + 1) % world != source:
        yield "send", (rank + 1) % world, tensor
    return tensor
'''),
    ("a tree with two branches", "It must be done after ⌈log₂ world⌉ rounds", CODE, '''
def tree_broadcast(rank, world, tensor, source):
    place = (rank - source) % world
    if place > 0:
        tensor = yield "recv", ((place - 1) // 2 + source) % world
    for below in (2 * place + 1, 2 * place + 2):
        if below < world:
            yield "send", (below + source) % world, tensor
    return tensor
'''),
    ("by way of rank 0", "Each rank but the source receives it once, and the source never does", CODE, '''
def tree_broadcast(rank, world, tensor, source):
    if source != 0:
        if rank == source:
            yield "send", 0, tensor
        elif rank == 0:
            tensor = yield "recv", source
    step = 1
    while step < world:
        if rank < step:
            if rank + step < world:
                yield "send", rank + step, tensor
        elif rank < 2 * step:
            tensor = yield "recv", rank - step
        step *= 2
    return tensor
'''),
    ("rank 0 is the source", "any of them may be the source", "place = (rank - source) % world", "source = 0\n    place = rank"),
    ("around no circle", "the source has place 0", "place = (rank - source) % world", "place = abs(rank - source)"),
    ("numbers beyond the last", "the place at p has number (p + source) % world", "(place + step + source) % world", "place + step + source"),
    ("for powers of two", "There is one rank or more, any number", "            if place + step < world:\n    ", ""),
    ("one place too far", "the place one step further, if there is one", "if place + step < world", "if place + step <= world"),
    ("one place too few", "Each rank returns the tensor", "if place + step < world", "if place + step < world - 1"),
    ("a round too few", "It must be done after ⌈log₂ world⌉ rounds", "while step < world:", "for step in (2**k for k in range(int(math.log2(world)))):", "        step *= 2\n", ""),
    ("nothing alone", "There is one rank or more", "    place = (rank", "    if world == 1:\n        return None\n    place = (rank"),
    ("the source returns nothing", "Each rank returns the tensor", "    return tensor", "    if rank != source:\n        return tensor"),
    ("None is handed on", "Whoever has it already can pass it on", "            tensor = yield", "            got = yield", "    return tensor", "    return tensor if rank == source else got"),
    ("the collective itself", "Only `send` and `recv` may be asked for", CODE, '''
def tree_broadcast(rank, world, tensor, source):
    return (yield "broadcast", tensor, source)
'''),
    ("told twice", "Each rank but the source receives it once", "    return tensor", '''    if world > 1 and rank == source:
        yield "send", (source + 1) % world, tensor
    if world > 1 and place == 1:
        tensor = yield "recv", source
    return tensor'''),
    ("a copy with another dtype", "Each rank returns the tensor", "            tensor = yield", "            tensor = (yield", "(place - step + source) % world", "(place - step + source) % world).float()"),
]

# --- 2 · The ring --------------------------------------------------------------------------------

RIGHT["ring_all_reduce"] = {
    "exchange": '''
def ring_all_reduce(rank, world, tensor):
    flat = tensor.flatten()
    c = -(-flat.numel() // world)
    pieces = [flat[k * c : (k + 1) * c] for k in range(world)]
    to, source = (rank + 1) % world, (rank - 1) % world
    for k in range(world - 1):
        got = yield "exchange", to, pieces[(rank - k) % world], source
        at = (rank - k - 1) % world
        pieces[at] = pieces[at] + got
    for k in range(world - 1):
        got = yield "exchange", to, pieces[(rank + 1 - k) % world], source
        pieces[(rank - k) % world] = got
    return torch.cat(pieces).view(tensor.shape)
''',
    "evens first": '''
def ring_all_reduce(rank, world, tensor):
    pieces = list(tensor.reshape(-1).tensor_split(world))  # their lengths differ by one at most
    after, before = (rank + 1) % world, (rank + world - 1) % world

    def pass_on(piece):
        if rank % 2 == 0:
            yield "send", after, piece
            got = yield "recv", before
        else:
            got = yield "recv", before
            yield "send", after, piece
        return got

    i = rank
    for _ in range(world - 1):
        got = yield from pass_on(pieces[i])
        i = (i - 1) % world
        pieces[i] = got + pieces[i]
    for _ in range(world - 1):
        got = yield from pass_on(pieces[i])
        i = (i - 1) % world
        pieces[i] = got
    return torch.cat(pieces).reshape(tensor.shape)
''',
    "a padded table, and rank 0 waits": '''
def ring_all_reduce(rank: int, world: int, tensor: Tensor):
    n = tensor.numel()
    c = math.ceil(n / world)
    table = torch.zeros(world * c, dtype=tensor.dtype)
    table[:n] = tensor.ravel()
    table = table.view(world, c)
    # round by round, all in one loop: the first world - 1 add, the others replace
    for k in range(2 * (world - 1)):
        out, into = (rank - k) % world, (rank - k - 1) % world
        if rank == 0:
            got = yield "recv", world - 1
            yield "send", 1 % world, table[out]
        else:
            yield "send", (rank + 1) % world, table[out]
            got = yield "recv", rank - 1
        if k < world - 1:
            table[into] += got
        else:
            table[into] = got
    return table.view(-1)[:n].view(tensor.shape)
''',
    "NumPy, in the argument itself": '''
import numpy as np


def ring_all_reduce(rank, world, tensor):
    whole = tensor.contiguous().view(-1).numpy()
    c = (len(whole) + world - 1) // world
    cut = lambda p: slice((p % world) * c, (p % world + 1) * c)
    ring = ((rank + 1) % world, (rank - 1) % world)
    for k in range(2 * world - 2):
        message = torch.from_numpy(whole[cut(rank - k)].copy())
        got = yield "exchange", ring[0], message, ring[1]
        mine = whole[cut(rank - k - 1)]
        np.copyto(mine, mine + got.numpy() if k < world - 1 else got.numpy())
    return torch.from_numpy(whole).reshape(tensor.shape)
''',
}
WRONG["ring_all_reduce"] = [
    ("whole tensors go around", "no message has more than c = ⌈n / world⌉ of them", CODE, '''
def ring_all_reduce(rank, world, tensor):
    got, have = tensor, [None] * world
    have[rank] = tensor
    for k in range(world - 1):
        got = yield "exchange", (rank + 1) % world, got, (rank - 1) % world
        have[(rank - k - 1) % world] = got
    total = have[0]
    for other in have[1:]:
        total = total + other
    return total
'''),
    ("whole tensors, each in its own order", "All ranks return the very same bits", CODE, '''
def ring_all_reduce(rank, world, tensor):
    total = got = tensor
    for k in range(world - 1):
        got = yield "exchange", (rank + 1) % world, got, (rank - 1) % world
        total = total + got
    return total
'''),
    ("pieces, each in its own order", "a rank sends 2 · (world - 1) messages at most", CODE, '''
def ring_all_reduce(rank, world, tensor):
    flat = tensor.flatten()
    c = -(-flat.numel() // world)
    total = []
    for p in range(world):
        piece = got = flat[p * c : (p + 1) * c]
        for _ in range(world - 1):
            got = yield "exchange", (rank + 1) % world, got, (rank - 1) % world
            piece = piece + got
        total.append(piece)
    return torch.cat(total).view(tensor.shape)
'''),
    ("a butterfly", "A rank sends to its successor alone", CODE, '''
def ring_all_reduce(rank, world, tensor):
    step = 1
    while step < world:
        tensor = tensor + (yield "exchange", (rank + step) % world, tensor, (rank - step) % world)
        step *= 2
    return tensor
'''),
    ("the collective itself", "Only `send`, `recv` and `exchange` may be asked for", CODE, '''
def ring_all_reduce(rank, world, tensor):
    return (yield "all_reduce", tensor, "sum")
'''),
    ("everybody sends first", "a ring in which everybody sends first stands still", CODE, '''
def ring_all_reduce(rank, world, tensor):
    flat = tensor.flatten()
    c = -(-flat.numel() // world)
    pieces = [flat[k * c : (k + 1) * c] for k in range(world)]
    to, source = (rank + 1) % world, (rank - 1) % world
    for k in range(world - 1):
        yield "send", to, pieces[(rank - k) % world]
        got = yield "recv", source
        at = (rank - k - 1) % world
        pieces[at] = pieces[at] + got
    for k in range(world - 1):
        yield "send", to, pieces[(rank + 1 - k) % world]
        pieces[(rank - k) % world] = yield "recv", source
    return torch.cat(pieces).view(tensor.shape)
'''),
    ("everybody receives first", "each returns the sum of all of them", CODE, '''
def ring_all_reduce(rank, world, tensor):
    flat = tensor.flatten()
    c = -(-flat.numel() // world)
    pieces = [flat[k * c : (k + 1) * c] for k in range(world)]
    to, source = (rank + 1) % world, (rank - 1) % world
    for k in range(2 * world - 2):
        got = yield "recv", source
        yield "send", to, pieces[(rank - k) % world]
        at = (rank - k - 1) % world
        pieces[at] = pieces[at] + got if k < world - 1 else got
    return torch.cat(pieces).view(tensor.shape)
'''),
    ("to the predecessor", "A rank sends to its successor alone", "to, source = (rank + 1) % world, (rank - 1) % world", "to, source = (rank - 1) % world, (rank + 1) % world",
     "[(rank - k) % world]", "[(rank + k) % world]", "at = (rank - k - 1)", "at = (rank + k + 1)", "[(rank + 1 - k)", "[(rank - 1 + k)"),
    ("the mean", "each returns the sum of all of them", "torch.cat(pieces).view", "(torch.cat(pieces) / world).to(tensor.dtype).view"),
    ("chunks of torch", "fewer numbers than there are ranks, and none at all", "pieces = [flat[k * c : (k + 1) * c] for k in range(world)]", "pieces = list(flat.chunk(world))"),
    ("the rest is lost", "The tensor may have any shape", "c = -(-flat.numel() // world)", "c = flat.numel() // world"),
    ("the rest is with the last", "no message has more than c = ⌈n / world⌉ of them",
     "c = -(-flat.numel() // world)", "c = flat.numel() // world", "for k in range(world)]", "for k in range(world - 1)] + [flat[(world - 1) * c :]]"),
    ("rows, not numbers", "The tensor may have any shape", "flat = tensor.flatten()", "flat = tensor", "flat.numel()", "len(flat)"),
    ("flat it stays", "of that shape and dtype again", ".view(tensor.shape)", ""),
    ("all in float32", "Its dtype is float32, float64 or int64", "flat = tensor.flatten()", "flat = tensor.flatten().float()"),
    ("float32, and back", "Its dtype is float32, float64 or int64", "flat = tensor.flatten()", "flat = tensor.flatten().float()", ".view(tensor.shape)", ".view(tensor.shape).to(tensor.dtype)"),
    ("the padding stays", "of that shape and dtype again", "flat = tensor.flatten()",
     "flat = F.pad(tensor.flatten(), (0, -tensor.numel() % world))", ".view(tensor.shape)", ""),
    ("a round too few", "each returns the sum of all of them", "for k in range(world - 1):\n        got = yield \"exchange\", to, pieces[(rank - k)", "for k in range(world - 2):\n        got = yield \"exchange\", to, pieces[(rank - k)"),
    ("the second half adds, too", "the others get a copy of the sum", "        pieces[(rank - k) % world] = got", "        pieces[(rank - k) % world] = pieces[(rank - k) % world] + got"),
    ("the second half starts with the wrong piece", "the finished pieces go around", "pieces[(rank + 1 - k) % world]", "pieces[(rank - k) % world]"),
    ("only the first half", "each returns the sum of all of them", "    for k in range(world - 1):\n        got = yield \"exchange\", to, pieces[(rank + 1 - k) % world], source\n        pieces[(rank - k) % world] = got\n", ""),
    ("a round too many", "a rank sends 2 · (world - 1) messages at most",
     "    for k in range(world - 1):\n        got = yield \"exchange\", to, pieces[(rank + 1 - k)", "    for k in range(world if world > 1 else 0):\n        got = yield \"exchange\", to, pieces[(rank + 1 - k)"),
    ("messages in halves", "a rank sends 2 · (world - 1) messages at most",
     "        pieces[(rank - k) % world] = got", "        _ = yield \"exchange\", to, flat[:0], source\n        pieces[(rank - k) % world] = got"),
    ("nothing alone", "there is one rank or more", "    flat = tensor", "    if world == 1:\n        return\n    flat = tensor"),
    ("no numbers, no result", "fewer numbers than there are ranks, and none at all", "    flat = tensor", "    if tensor.numel() == 0:\n        return 0\n    flat = tensor"),
    ("even numbers of ranks", "there is one rank or more", CODE, '''
def ring_all_reduce(rank, world, tensor):
    flat = tensor.flatten()
    c = -(-flat.numel() // world)
    pieces = [flat[k * c : (k + 1) * c] for k in range(world)]
    to, source = (rank + 1) % world, (rank - 1) % world
    if world % 2:
        return tensor * world
    for k in range(2 * world - 2):
        got = yield "exchange", to, pieces[(rank - k) % world], source
        at = (rank - k - 1) % world
        pieces[at] = pieces[at] + got if k < world - 1 else got
    return torch.cat(pieces).view(tensor.shape)
'''),
]

# --- 3 · What a collective costs -----------------------------------------------------------------

RIGHT["cost"] = {
    "rounds and pieces": '''
def cost(kind, size, world, latency, bandwidth):
    if kind == "broadcast":
        rounds, piece = (world - 1).bit_length(), size
    else:
        rounds, piece = world - 1, size / world
        if kind == "all_reduce":
            rounds = 2 * rounds
    return float(rounds * piece), float(rounds * (latency + piece / bandwidth))
''',
    "round by round": '''
def cost(kind, size, world, latency, bandwidth):
    sent, seconds = 0.0, 0.0

    def message(n):
        nonlocal sent, seconds
        sent += n
        seconds += latency + n / bandwidth

    if kind in ("reduce_scatter", "all_reduce"):
        for _ in range(world - 1):
            message(size / world)
    if kind in ("all_gather", "all_reduce"):
        for _ in range(world - 1):
            message(size / world)
    if kind == "broadcast":
        have = 1
        while have < world:
            message(size)
            have *= 2
    return sent, seconds
''',
    "the logarithm, rounded up": '''
def cost(kind, size, world, latency, bandwidth):
    rounds = {"all_reduce": 2 * (world - 1), "broadcast": math.ceil(math.log2(world))}.get(kind, world - 1)
    sent = rounds * size / (1 if kind == "broadcast" else world)
    return sent, rounds * latency + sent / bandwidth
''',
    "an all-reduce is two": '''
def cost(kind: str, size: int, world: int, latency: float, bandwidth: float) -> tuple[float, float]:
    match kind:
        case "all_reduce":
            halves = [cost(half, size, world, latency, bandwidth) for half in ("reduce_scatter", "all_gather")]
            return tuple(map(sum, zip(*halves)))
        case "broadcast":
            rounds = next(k for k in range(world) if 2**k >= world)
            return rounds * float(size), rounds * (latency + size / bandwidth)
        case _:
            sent = size * (world - 1) / world
            return sent, (world - 1) * latency + sent / bandwidth
''',
}
WRONG["cost"] = [
    ("half an all-reduce", "`\"all_reduce\"`: a ring, with `world` pieces of one size", "rounds = 2 * rounds", "rounds = rounds"),
    ("all of them in two halves", "`\"reduce_scatter\"`: the first half of that ring", "        if kind == \"all_reduce\":\n            rounds = 2 * rounds", "        rounds = 2 * rounds"),
    ("a round for each rank", "each rank has one piece with the whole sum after world - 1 rounds", "rounds, piece = world - 1, size / world", "rounds, piece = world, size / world"),
    ("pieces as large as the tensor", "a ring, with `world` pieces of one size", "rounds, piece = world - 1, size / world", "rounds, piece = world - 1, size"),
    ("a piece less", "a ring, with `world` pieces of one size", "rounds, piece = world - 1, size / world", "rounds, piece = world - 1, size / max(world - 1, 1)"),
    ("what is gathered is one rank's", "`size` is the size of all that one rank has in the end", "        if kind == \"all_reduce\":", "        if kind == \"all_gather\":\n            piece = size\n        if kind == \"all_reduce\":"),
    ("what is scattered is one rank's", "`size` is the size of all that one rank puts in", "        if kind == \"all_reduce\":", "        if kind == \"reduce_scatter\":\n            piece = size\n        if kind == \"all_reduce\":"),
    ("latency once", "A message of b bytes takes `latency + b / bandwidth` seconds", "rounds * (latency + piece / bandwidth)", "(latency + rounds * piece / bandwidth) * (rounds > 0)"),
    ("no latency", "A message of b bytes takes `latency + b / bandwidth` seconds", "latency + piece / bandwidth", "piece / bandwidth"),
    ("times the bandwidth", "A message of b bytes takes `latency + b / bandwidth` seconds", "piece / bandwidth", "piece * bandwidth"),
    ("bits", "`latency + b / bandwidth`, b in bytes", "piece / bandwidth", "8 * piece / bandwidth"),
    ("to and fro", "a rank can send one and receive one at the same time", "float(rounds * (latency + piece / bandwidth))", "float(rounds * (latency + piece / bandwidth) * (1 if kind == 'broadcast' else 2))"),
    ("the source tells all", "⌈log₂ world⌉ rounds in which the source always sends", "(world - 1).bit_length()", "world - 1"),
    ("the logarithm, cut off", "⌈log₂ world⌉ rounds", "(world - 1).bit_length()", "world.bit_length() - 1"),
    ("bits of the number itself", "⌈log₂ world⌉ rounds", "(world - 1).bit_length()", "(world.bit_length() if world > 1 else 0)"),
    ("the logarithm, rounded", "⌈log₂ world⌉ rounds", "(world - 1).bit_length()", "round(math.log2(world))"),
    ("a logarithm that is no whole number", "⌈log₂ world⌉ rounds", "(world - 1).bit_length()", "math.log2(world)"),
    ("the natural logarithm", "⌈log₂ world⌉ rounds", "(world - 1).bit_length()", "math.ceil(math.log(world))"),
    ("each sends once", "how many bytes that rank sends which sends most", "float(rounds * piece),", "float(piece if kind == 'broadcast' and world > 1 else rounds * piece if kind != 'broadcast' else 0),"),
    ("a tree of pieces", "the tensor's, which is not cut into pieces", "(world - 1).bit_length(), size", "(world - 1).bit_length(), size / world"),
    ("the bytes of all ranks", "how many bytes that rank sends which sends most", "float(rounds * piece),", "float(rounds * piece * (world if kind != 'broadcast' else 1)),"),
    ("all that travels in the tree", "how many bytes that rank sends which sends most", "float(rounds * piece),", "float((world - 1) * size if kind == 'broadcast' else rounds * piece),"),
    ("seconds first", "how many bytes that rank sends which sends most, and how many seconds", CODE, '''
def cost(kind, size, world, latency, bandwidth):
    rounds, piece = (world - 1).bit_length(), size
    if kind != "broadcast":
        rounds, piece = (world - 1) * (2 if kind == "all_reduce" else 1), size / world
    return rounds * (latency + piece / bandwidth), float(rounds * piece)
'''),
    ("something even alone", "Alone, a rank sends nothing, and it takes no time", "    return float(", "    rounds = max(rounds, 1)\n    return float("),
    ("whole seconds", "returns two floats", "float(rounds * (latency + piece / bandwidth))", "float(int(rounds * (latency + piece / bandwidth)))"),
    ("whole numbers of bytes", "returns two floats", "float(rounds * piece),", "int(rounds * piece),"),
]

# --- 4 · One big batch ---------------------------------------------------------------------------

RIGHT["ddp"] = {
    "as it is told": '''
def ddp_start(rank, world, model):
    with torch.no_grad():
        for tensor in [*model.parameters(), *model.buffers()]:
            got = yield "broadcast", tensor if rank == 0 else None, 0
            tensor.copy_(got)


def ddp_step(rank, world, model, x, y, bucket_bytes):
    parameters = [p for p in model.parameters() if p.requires_grad]
    loss = F.cross_entropy(model(x), y, reduction="sum")
    grads = torch.autograd.grad(loss, parameters, allow_unused=True)
    grads = [torch.zeros_like(p) if g is None else g for p, g in zip(parameters, grads)]
    both = yield "all_reduce", torch.tensor([loss.item(), len(x)]), "sum"
    total, rows = both.tolist()
    model.zero_grad()
    buckets, size = [], 0
    for p, g in zip(parameters[::-1], grads[::-1]):
        n = 4 * p.numel()
        if not buckets or size + n > bucket_bytes:
            buckets.append([])
            size = 0
        buckets[-1].append((p, g))
        size += n
    for bucket in buckets:
        flat = torch.cat([g.flatten() for _, g in bucket])
        flat = (yield "all_reduce", flat, "sum") / rows
        pieces = flat.split([p.numel() for p, _ in bucket])
        for (p, _), piece in zip(bucket, pieces):
            p.grad = piece.view(p.shape).clone()
    return total / rows
''',
    "the number of rows first": '''
def ddp_start(rank, world, model):
    with torch.no_grad():
        for tensor in [*model.parameters(), *model.buffers()]:
            got = yield "broadcast", tensor if rank == 0 else None, 0
            tensor.copy_(got)


def ddp_step(rank, world, model, x, y, bucket_bytes):
    parameters = [p for p in model.parameters() if p.requires_grad]
    loss = F.cross_entropy(model(x), y, reduction="sum")
    grads = torch.autograd.grad(loss, parameters, allow_unused=True)
    grads = [torch.zeros_like(p) if g is None else g for p, g in zip(parameters, grads)]
    both = yield "all_reduce", torch.tensor([len(x), loss.item()]), "sum"
    rows, total = both.tolist()
    model.zero_grad()
    buckets, size = [], 0
    for p, g in zip(parameters[::-1], grads[::-1]):
        n = 4 * p.numel()
        if not buckets or size + n > bucket_bytes:
            buckets.append([])
            size = 0
        buckets[-1].append((p, g))
        size += n
    for bucket in buckets:
        flat = torch.cat([g.flatten() for _, g in bucket])
        flat = (yield "all_reduce", flat, "sum") / rows
        pieces = flat.split([p.numel() for p, _ in bucket])
        for (p, _), piece in zip(bucket, pieces):
            p.grad = piece.view(p.shape).clone()
    return total / rows
''',
    "backward, and divided before": '''
def ddp_start(rank, world, model):
    for thing in list(model.named_parameters()) + list(model.named_buffers()):
        # zeros at all other ranks: the sum is what rank 0 has
        mine = thing[1].data if rank == 0 else torch.zeros_like(thing[1].data)
        thing[1].data.copy_((yield "all_reduce", mine, "sum"))


def ddp_step(rank, world, model, x, y, bucket_bytes):
    for p in model.parameters():
        p.grad = None
    mine = nn.CrossEntropyLoss(reduction="sum")(model(x), y)
    said = torch.zeros(2)
    said[0], said[1] = mine.detach(), y.shape[0]
    said = yield "all_reduce", said, "sum"
    (mine / said[1]).backward()

    def reduced(bucket):
        flat = torch.cat([p.grad.reshape(-1) for p in bucket])
        flat = yield "all_reduce", flat, "sum"
        for p in bucket:
            p.grad.copy_(flat[: p.numel()].reshape(p.shape))
            flat = flat[p.numel() :]

    waiting, full = [], 0
    for p in reversed(list(model.parameters())):
        if not p.requires_grad:
            continue
        if p.grad is None:
            p.grad = torch.zeros_like(p)
        if waiting and full + p.grad.nbytes > bucket_bytes:
            yield from reduced(waiting)
            waiting, full = [], 0
        waiting.append(p)
        full += p.grad.nbytes
    if waiting:
        yield from reduced(waiting)
    return (said[0] / said[1]).item()
''',
    "gradients are views of a bucket": '''
def ddp_start(rank: int, world: int, model: nn.Module):
    for tensor in (*model.parameters(), *model.buffers()):
        tensor.data = yield "broadcast", (None, tensor.detach())[rank == 0], 0


def buckets_of(sizes, most):
    """Numbers of the parameters, in buckets."""
    found = [[]]
    for number, size in enumerate(sizes):
        if found[-1] and sum(sizes[k] for k in found[-1]) + size > most:
            found.append([])
        found[-1].append(number)
    return [bucket for bucket in found if bucket]


def ddp_step(rank: int, world: int, model: nn.Module, x: Tensor, y: Tensor, bucket_bytes: int):
    live = [p for p in reversed([*model.parameters()]) if p.requires_grad]
    logits = model(x)
    losses = logits.logsumexp(-1) - logits.gather(-1, y[:, None])[:, 0]
    wanted = torch.autograd.grad(losses.sum(), live, allow_unused=True, materialize_grads=True)
    said = yield "all_reduce", torch.stack([losses.detach().sum(), torch.tensor(float(len(y)))]), "sum"
    for bucket in buckets_of([p.numel() * p.element_size() for p in live], bucket_bytes):
        flat = nn.utils.parameters_to_vector([wanted[k] for k in bucket])
        flat = (yield "all_reduce", flat, "sum").div_(said[1])
        at = 0
        for k in bucket:
            live[k].grad = flat[at : at + live[k].numel()].view_as(live[k])
            at += live[k].numel()
    return float(said[0]) / float(said[1])
''',
}
NEW_ONES = '''
        for name, parameter in list(model.named_parameters()):
            *path, last = name.split(".")
            owner = model.get_submodule(".".join(path))
            got = yield "broadcast", parameter if rank == 0 else None, 0
            setattr(owner, last, nn.Parameter(got, parameter.requires_grad))
        for tensor in model.buffers():'''
WRONG["ddp"] = [
    ("no buffers", "gives all ranks the parameters and buffers of rank 0", "[*model.parameters(), *model.buffers()]", "model.parameters()"),
    ("not what is frozen", "the parameters and buffers of rank 0, frozen ones, too", "[*model.parameters(), *model.buffers()]", "[*(p for p in model.parameters() if p.requires_grad), *model.buffers()]"),
    ("new parameters", "The tensors that the model has stay the same objects", "\n        for tensor in [*model.parameters(), *model.buffers()]:", NEW_ONES),
    ("the mean of all starts", "the parameters and buffers of rank 0", 'got = yield "broadcast", tensor if rank == 0 else None, 0', 'got = (yield "all_reduce", tensor, "sum") / world'),
    ("the last rank's", "the parameters and buffers of rank 0", "tensor if rank == 0 else None, 0", "tensor if rank == world - 1 else None, world - 1"),
    ("only rank 0 asks", "gives all ranks the parameters and buffers of rank 0", '            got = yield "broadcast", tensor if rank == 0 else None, 0\n', '            got = tensor\n            if rank == 0:\n                got = yield "broadcast", tensor, 0\n'),
    ("buffers of floats", "buffers may be of any dtype", "[*model.parameters(), *model.buffers()]", "[*model.parameters(), *(b for b in model.buffers() if b.is_floating_point())]"),
    ("what is got is let go", "get new values", "            tensor.copy_(got)\n", "            tensor = got\n"),
    ("the mean of means", "The loss is the mean cross-entropy over the rows of *all* ranks together",
     'reduction="sum")\n', 'reduction="mean")\n', "total, rows = both.tolist()", "total, rows = both.tolist()\n    rows = world"),
    ("the gradient of the sum", "each `.grad` is the gradient of that loss", '(yield "all_reduce", flat, "sum") / rows', '(yield "all_reduce", flat, "sum")'),
    ("a mean over ranks", "each `.grad` is the gradient of that loss", '(yield "all_reduce", flat, "sum") / rows', '(yield "all_reduce", flat, "sum") / len(x) / world if len(x) else flat + (yield "all_reduce", flat, "sum")'),
    ("divided once more", "each `.grad` is the gradient of that loss", '(yield "all_reduce", flat, "sum") / rows', '(yield "all_reduce", flat, "sum") / rows / world'),
    ("the own loss", "The loss is the mean over the rows of *all* ranks together, and each rank returns it", "return total / rows", "return loss.item() / max(len(x), 1)"),
    ("the sum of losses", "The loss is the mean cross-entropy", "return total / rows", "return total"),
    ("on top of what was there", "What was in `.grad` before counts for nothing", "    model.zero_grad()\n", "", "p.grad = piece.view(p.shape).clone()", "p.grad = piece.view(p.shape) + (0 if p.grad is None else p.grad)"),
    ("frozen ones with zeros", "A parameter that needs no gradient takes no part", "[p for p in model.parameters() if p.requires_grad]", "list(model.parameters())",
     "torch.autograd.grad(loss, parameters, allow_unused=True)", "dict(zip([p for p in parameters if p.requires_grad], torch.autograd.grad(loss, [p for p in parameters if p.requires_grad], allow_unused=True)))\n    grads = [grads.get(p) for p in parameters]"),
    ("frozen ones fill buckets", "as long as all its gradients have `bucket_bytes` bytes or fewer together", "    for p, g in zip(parameters[::-1], grads[::-1]):", "    have = dict(zip(parameters, grads))\n    for p in reversed(list(model.parameters())):\n        g = have.get(p)",
     "        buckets[-1].append((p, g))", "        if g is not None:\n            buckets[-1].append((p, g))", "for bucket in buckets:", "for bucket in filter(None, buckets):"),
    ("the unused stay out", "so it takes part with zeros", "    grads = [torch.zeros_like(p) if g is None else g for p, g in zip(parameters, grads)]\n", "    parameters, grads = zip(*((p, g) for p, g in zip(parameters, grads) if g is not None))\n"),
    ("no gradient for the unused here", "Another rank may have one, so it takes part with zeros", "    grads = [torch.zeros", "    unused = {p for p, g in zip(parameters, grads) if g is None}\n    grads = [torch.zeros",
     "            p.grad = piece.view(p.shape).clone()", "            p.grad = None if p in unused else piece.view(p.shape).clone()"),
    ("none where nobody used it", "where no rank has used it, its gradient is zero", "            p.grad = piece.view(p.shape).clone()", "            p.grad = piece.view(p.shape).clone() if piece.any() else None"),
    ("forwards", "the parameters in the reverse order of `model.parameters()`", "zip(parameters[::-1], grads[::-1])", "zip(parameters, grads)"),
    ("full means fuller", "as long as all its gradients have `bucket_bytes` bytes or fewer together", "size + n > bucket_bytes", "size + n >= bucket_bytes"),
    ("closed when it is too full", "as long as all its gradients have `bucket_bytes` bytes or fewer together", "size + n > bucket_bytes", "size > bucket_bytes"),
    ("numbers, not bytes", "have `bucket_bytes` bytes or fewer together", "n = 4 * p.numel()", "n = p.numel()"),
    ("one each", "A bucket takes the next parameter as long as", "if not buckets or size + n > bucket_bytes", "if True"),
    ("everything in one", "A bucket takes the next parameter as long as", "if not buckets or size + n > bucket_bytes", "if not buckets"),
    ("the size is not begun anew", "as long as all its gradients have `bucket_bytes` bytes or fewer together", "            buckets.append([])\n            size = 0\n", "            buckets.append([])\n"),
    ("large ones with small ones", "a parameter that is larger is alone in a bucket", "        size += n\n", "        size += n if n <= bucket_bytes else 0\n"),
    ("the loss at the end", "Each rank asks for this, in this order. First an all-reduce of a float32 tensor with two numbers",
     '    both = yield "all_reduce", torch.tensor([loss.item(), len(x)]), "sum"\n    total, rows = both.tolist()\n', "",
     '(yield "all_reduce", flat, "sum") / rows', '(yield "all_reduce", flat, "sum")',
     "    return total / rows", '    both = yield "all_reduce", torch.tensor([loss.item(), len(x)]), "sum"\n    total, rows = both.tolist()\n    for p in parameters:\n        p.grad /= rows\n    return total / rows'),
    ("the loss in float64", "an all-reduce of a float32 tensor with two numbers", "torch.tensor([loss.item(), len(x)])", "torch.tensor([loss.item(), len(x)], dtype=torch.float64)"),
    ("two reduces for two numbers", "First an all-reduce of a float32 tensor with two numbers",
     '    both = yield "all_reduce", torch.tensor([loss.item(), len(x)]), "sum"\n    total, rows = both.tolist()\n',
     '    total = (yield "all_reduce", torch.tensor([loss.item()]), "sum").item()\n    rows = (yield "all_reduce", torch.tensor([float(len(x))]), "sum").item()\n'),
    ("nothing to do without rows", "one may have none", "    parameters = [p for", "    if len(x) == 0:\n        return 0.0\n    parameters = [p for"),
    ("nan without rows", "one may have none",
     'reduction="sum")\n', 'reduction="mean") * max(len(x), 1)\n'),
    ("a step, too", "computes gradients and leaves the parameters alone", "    return total / rows", "    with torch.no_grad():\n        for p in parameters:\n            p -= 0.1 * p.grad\n    return total / rows"),
    ("two places, two parameters", "One that is used in two places is one parameter", "[p for p in model.parameters() if p.requires_grad]", "[p for _, p in model.named_parameters(remove_duplicate=False) if p.requires_grad]"),
    ("a tensor for the loss", "each rank returns it, as a float", "return total / rows", "return both[0] / both[1]"),
    ("a row counted for a rank that has none", "one may have none; together they have one or more", "total, rows = both.tolist()", "total, rows = both.tolist()\n    rows = rows + (len(x) == 0)"),
    ("gradients of the last bucket are lost", "Afterwards each `.grad` is the gradient of that loss", "    for bucket in buckets:", "    for bucket in buckets[:-1] or buckets:"),
]

# --- 5 · Who holds what --------------------------------------------------------------------------

RIGHT["fsdp_step"] = {
    "by the formulas": '''
def shard(tensor, rank, world):
    flat = tensor.flatten()
    size = -(-flat.numel() // world)
    padded = torch.zeros(size * world, dtype=tensor.dtype)
    padded[: flat.numel()] = flat
    return padded[rank * size : (rank + 1) * size].clone()


def fsdp_step(rank, world, shards, moments, shapes, x, y, lr, momentum):
    def whole(pieces, shape):
        return torch.cat(pieces)[: math.prod(shape)].view(shape)

    inputs, h, last = [], x, len(shapes) - 1
    for k, shape in enumerate(shapes):
        inputs.append(h)
        pieces = yield "all_gather", shards[k]
        h = h @ whole(pieces, shape).T
        if k < last:
            h = h.relu()
    loss = F.mse_loss(h, y)
    u = 2 * (h - y) / h.numel()
    new_shards, new_moments = list(shards), list(moments)
    for k in reversed(range(len(shapes))):
        pieces = yield "all_gather", shards[k]
        w = whole(pieces, shapes[k])
        g = u.T @ inputs[k]
        mine = (yield "reduce_scatter", [shard(g, r, world) for r in range(world)], "sum") / world
        new_moments[k] = momentum * moments[k] + mine
        new_shards[k] = shards[k] - lr * new_moments[k]
        u = (u @ w) * (inputs[k] > 0)
    return loss.item(), new_shards, new_moments
''',
    "a layer of autograd at a time, in place": '''
def shard(tensor, rank, world):
    flat = F.pad(tensor.reshape(-1), (0, -tensor.numel() % world))
    return flat.reshape(world, flat.numel() // world)[rank].clone()


def fsdp_step(rank, world, shards, moments, shapes, x, y, lr, momentum):
    def gathered(k):
        flat = torch.cat((yield "all_gather", shards[k]))
        out, into = shapes[k]
        return flat[: out * into].reshape(out, into)

    def layer(k, h, w):
        z = F.linear(h, w)
        return z if k == len(shapes) - 1 else F.relu(z)

    h, kept = x, []
    for k in range(len(shapes)):
        kept.append(h)
        h = layer(k, h, (yield from gathered(k)))
    out = h.detach().requires_grad_()
    loss = F.mse_loss(out, y)
    (u,) = torch.autograd.grad(loss, out)
    for k in range(len(shapes) - 1, -1, -1):
        w = (yield from gathered(k)).detach().requires_grad_()
        h = kept[k].detach().requires_grad_()
        u, g = torch.autograd.grad(layer(k, h, w), (h, w), u)
        g = yield "reduce_scatter", [shard(g, r, world) for r in range(world)], "sum"
        moments[k].mul_(momentum).add_(g / world)
        shards[k].sub_(lr * moments[k])
    return float(loss), shards, moments
''',
    "NumPy at heart": '''
import numpy as np


def shard(tensor: Tensor, rank: int, world: int) -> Tensor:
    numbers = tensor.detach().numpy().reshape(-1)
    each = (numbers.size + world - 1) // world
    mine = numbers[rank * each : (rank + 1) * each]
    return torch.from_numpy(np.concatenate([mine, np.zeros(each - mine.size, mine.dtype)]))


def fsdp_step(rank, world, shards, moments, shapes, x, y, lr, momentum):
    def weight(pieces, shape):
        return np.concatenate([p.numpy() for p in pieces])[: shape[0] * shape[1]].reshape(shape)

    hs = [x.numpy()]
    for k in range(len(shapes)):
        pieces = yield ("all_gather", shards[k])
        z = np.einsum("bi,oi->bo", hs[-1], weight(pieces, shapes[k]))
        hs.append(z if k + 1 == len(shapes) else np.maximum(z, 0))
    off = hs[-1] - y.numpy()
    loss = float((off**2).mean())
    slope = (2 / off.size * off).astype(off.dtype)
    result = []
    for k in range(len(shapes))[::-1]:
        if k + 1 < len(shapes):
            slope = slope * (hs[k + 1] > 0)
        w = weight((yield ("all_gather", shards[k])), shapes[k])
        g = torch.from_numpy(np.einsum("bo,bi->oi", slope, hs[k])) / world
        g = yield ("reduce_scatter", tuple(shard(g, r, world) for r in range(world)), "sum")
        m = torch.add(g, moments[k], alpha=momentum)
        result.insert(0, (shards[k].sub(m, alpha=lr), m))
        slope = np.einsum("bo,oi->bi", slope, w)
    return loss, [w for w, _ in result], [m for _, m in result]
''',
}
WRONG["fsdp_step"] = [
    ("a view", "It has a storage of its own", "padded[rank * size : (rank + 1) * size].clone()", "padded[rank * size : (rank + 1) * size]"),
    ("contiguous is no copy", "It has a storage of its own", "padded[rank * size : (rank + 1) * size].clone()", "padded[rank * size : (rank + 1) * size].contiguous()"),
    ("a view where it divides", "It has a storage of its own, since a view would keep the whole tensor in memory", "    padded = torch", "    if flat.numel() == size * world:\n        return flat[rank * size : (rank + 1) * size]\n    padded = torch"),
    ("chunks without zeros", "filled up with zeros at its end until its length divides by `world`", "    padded = torch.zeros(size * world, dtype=tensor.dtype)\n    padded[: flat.numel()] = flat\n    return padded", "    return flat"),
    ("the rest is lost", "filled up with zeros at its end until its length divides by `world`", "size = -(-flat.numel() // world)", "size = flat.numel() // world\n    flat = flat[: size * world]"),
    ("zeros in front", "filled up with zeros at its end", "padded[: flat.numel()] = flat", "padded[size * world - flat.numel() :] = flat"),
    ("in turns", "is cut into `world` equal pieces", "padded[rank * size : (rank + 1) * size].clone()", "padded[rank::world].clone()"),
    ("always float32", "of the tensor's dtype", "torch.zeros(size * world, dtype=tensor.dtype)", "torch.zeros(size * world)"),
    ("zeros where nothing is to be filled", "until its length divides by `world`", "size = -(-flat.numel() // world)", "size = flat.numel() // world + 1"),
    ("by rows", "the flat tensor is cut into `world` equal pieces", CODE, '''
def shard(tensor, rank, world):
    rows = -(-len(tensor) // world)
    padded = torch.zeros(rows * world, *tensor.shape[1:], dtype=tensor.dtype)
    padded[: len(tensor)] = tensor
    return padded[rank * rows : (rank + 1) * rows].flatten().clone()


def fsdp_step(rank, world, shards, moments, shapes, x, y, lr, momentum):
    yield "all_gather", shards[0]
    return 0.0, shards, moments
'''),
    ("the sum over ranks", "the loss is the mean over the rows of all ranks", ', "sum") / world', ', "sum")'),
    ("the mean over rows, not numbers", "the loss is `F.mse_loss`", "2 * (h - y) / h.numel()", "2 * (h - y) / len(h)"),
    ("half the slope", "the loss is `F.mse_loss`", "2 * (h - y) / h.numel()", "(h - y) / h.numel()"),
    ("a ReLU at the end", "with a ReLU between one and the next and none after the last", "        if k < last:\n            h = h.relu()", "        h = h.relu()"),
    ("no way back through the ReLU", "g is the gradient of that loss", "(u @ w) * (inputs[k] > 0)", "u @ w"),
    ("the wrong layer's mask", "g is the gradient of that loss", "u = (u @ w) * (inputs[k] > 0)", "u = (u @ w) * ((u @ w) > 0)"),
    ("from the old momentum", "w ← w - lr · m, after m ← momentum · m + g", "shards[k] - lr * new_moments[k]", "shards[k] - lr * moments[k]"),
    ("no momentum in the step", "w ← w - lr · m", "shards[k] - lr * new_moments[k]", "shards[k] - lr * mine"),
    ("a running mean", "m ← momentum · m + g", "momentum * moments[k] + mine", "momentum * moments[k] + (1 - momentum) * mine"),
    ("Nesterov's", "w ← w - lr · m", "shards[k] - lr * new_moments[k]", "shards[k] - lr * (mine + momentum * new_moments[k])"),
    ("the rate in the momentum", "m ← momentum · m + g", "momentum * moments[k] + mine", "momentum * moments[k] + lr * mine", "shards[k] - lr * new_moments[k]", "shards[k] - new_moments[k]"),
    ("uphill", "w ← w - lr · m", "shards[k] - lr", "shards[k] + lr"),
    ("the old momentum returned", "the list of new moments", "return loss.item(), new_shards, new_moments", "return loss.item(), new_shards, moments"),
    ("the gradients as moments", "the list of new moments", "        new_shards[k] = shards[k] - lr * new_moments[k]", "        new_shards[k] = shards[k] - lr * new_moments[k]\n        new_moments[k] = mine"),
    ("the last layer first", "the list of new shards", "return loss.item(), new_shards, new_moments", "return loss.item(), new_shards[::-1], new_moments[::-1]"),
    ("moments first", "the loss of its own rows, a float; the list of new shards; the list of new moments", "return loss.item(), new_shards, new_moments", "return loss.item(), new_moments, new_shards"),
    ("weights are kept", "an all_gather of the shard again, because the weight was let go", "    inputs, h, last = [], x", "    kept = []\n    inputs, h, last = [], x", "        h = h @ whole(pieces, shape).T", "        kept.append(pieces)\n        h = h @ whole(pieces, shape).T",
     "    for k in reversed(range(len(shapes))):\n        pieces = yield \"all_gather\", shards[k]\n        w = whole(pieces, shapes[k])", "    for k in reversed(range(len(shapes))):\n        w = whole(kept[k], shapes[k])"),
    ("the last weight is kept", "from the last layer to the first, an all_gather of the shard again", "    for k in reversed(range(len(shapes))):\n        pieces = yield \"all_gather\", shards[k]", "    for k in reversed(range(len(shapes))):\n        if k < last:\n            pieces = yield \"all_gather\", shards[k]"),
    ("the first weight is not asked for again", "from the last layer to the first, an all_gather of the shard again", "        pieces = yield \"all_gather\", shards[k]\n        w = whole(pieces, shapes[k])\n", "        if k > 0:\n            pieces = yield \"all_gather\", shards[k]\n            w = whole(pieces, shapes[k])\n",
     "        u = (u @ w) * (inputs[k] > 0)", "        if k > 0:\n            u = (u @ w) * (inputs[k] > 0)"),
    ("all are gathered before the first", "for layers 0 to last an all_gather of the shard, as the forward pass comes to it; then, from the last layer to the first, an all_gather of the shard again and a reduce_scatter",
     "    for k in reversed(range(len(shapes))):\n        pieces = yield \"all_gather\", shards[k]\n        w = whole(pieces, shapes[k])",
     "    back = {}\n    for k in reversed(range(len(shapes))):\n        back[k] = yield \"all_gather\", shards[k]\n    for k in reversed(range(len(shapes))):\n        w = whole(back[k], shapes[k])"),
    ("an all-reduce of the gradient", "Each rank asks for this and nothing else", '(yield "reduce_scatter", [shard(g, r, world) for r in range(world)], "sum") / world', 'shard((yield "all_reduce", g, "sum") / world, rank, world)'),
    ("everybody's loss", "the loss of *its own* rows", "    return loss.item(),", '    loss = (yield "all_reduce", loss.reshape(1), "sum") / world\n    return loss.item(),'),
    ("the loss times the ranks", "the loss of *its own* rows", "return loss.item(),", "return loss.item() * len(x),"),
    ("a gradient without zeros", "its gradient, which is filled up with zeros and cut as a weight is", "[shard(g, r, world) for r in range(world)]", "[g.flatten()[r * len(shards[k]) : (r + 1) * len(shards[k])] for r in range(world)]"),
    ("every rank the same share", "this rank's piece of the weight", "[shard(g, r, world) for r in range(world)]", "[shard(g, rank, world) for r in range(world)]"),
    ("the wrong side of the weight", "`shards[k]` is this rank's piece of the weight, whose shape `(out, in)` is `shapes[k]`", "[: math.prod(shape)].view(shape)", "[: math.prod(shape)].view(shape[::-1]).T"),
    ("a tensor for the loss", "the loss of *its own* rows, a float", "return loss.item(),", "return loss,"),
]

# --- 6 · The LM head, cut two ways ---------------------------------------------------------------

RIGHT["parallel_head"] = {
    "three numbers a token": '''
def column_loss(rank, world, x, weight, bias, first, targets):
    logits = F.linear(x, weight, bias)
    top = yield "all_reduce", logits.max(dim=1).values, "max"
    powers = (logits - top[:, None]).exp()
    total = yield "all_reduce", powers.sum(dim=1), "sum"
    place = targets - first
    own = (place >= 0) & (place < len(weight))
    at = torch.where(own, place, 0)[:, None]
    mine = torch.where(own, logits.gather(1, at)[:, 0], 0.0)
    target = yield "all_reduce", mine, "sum"
    loss = (total.log() + top - target).mean()
    slope = powers / total[:, None]
    slope = slope.scatter_add(1, at, -own.to(slope.dtype)[:, None])
    share = slope @ weight / len(x)
    gradient = yield "all_reduce", share, "sum"
    return loss, gradient


def row_logits(rank, world, x, weight, bias):
    part = x @ weight.T
    logits = (yield "all_reduce", part, "sum") + bias
    return logits
''',
    "one reduce for two, and one-hot": '''
def column_loss(rank, world, x, weight, bias, first, targets):
    own_words = torch.arange(first, first + weight.shape[0])
    hot = (targets.unsqueeze(1) == own_words.unsqueeze(0)).to(x.dtype)
    z = torch.addmm(bias, x, weight.t())
    m = yield ("all_reduce", z.amax(1), "max")
    z = z - m.unsqueeze(1)
    e = torch.exp(z)
    s, t = yield ("all_reduce", torch.stack((e.sum(1), (z * hot).sum(1))), "sum")
    d = (e / s.unsqueeze(1) - hot).div(targets.numel())
    g = yield ("all_reduce", torch.mm(d, weight), "sum")
    return torch.mean(torch.log(s) - t), g


def row_logits(rank, world, x, weight, bias):
    return (yield "all_reduce", F.linear(x, weight, bias if rank == 0 else None), "sum")
''',
    "autograd takes the gradient": '''
def column_loss(rank, world, x, weight, bias, first, targets):
    x = x.detach().requires_grad_()
    with torch.enable_grad():
        logits = x @ weight.T + bias
    mine = logits.detach().logsumexp(dim=-1)
    highest = yield "all_reduce", mine, "max"
    z = highest + (yield "all_reduce", (mine - highest).exp(), "sum").log()
    with torch.enable_grad():
        rows = [t for t, word in enumerate(targets.tolist()) if first <= word < first + len(weight)]
        hits = logits.new_zeros(len(targets))
        hits[rows] = logits[rows, targets[rows] - first]
        share = ((logits - z[:, None]).exp().sum() - hits.sum()) / len(targets)
    (gradient,) = torch.autograd.grad(share, x)
    gradient = yield "all_reduce", gradient, "sum"
    hits = yield "all_reduce", hits.detach(), "sum"
    return (z - hits).mean(), gradient


def row_logits(rank, world, x, weight, bias):
    part = torch.einsum("td,vd->tv", x, weight) + bias / world
    whole = yield "all_reduce", part, "sum"
    return whole
''',
}
WRONG["parallel_head"] = [
    ("nothing is taken off", "Logits of some thousands are no harm", '    top = yield "all_reduce", logits.max(dim=1).values, "max"\n', "    top = torch.zeros(len(x))\n"),
    ("the own largest one", "the mean cross-entropy over the words of all ranks", 'top = yield "all_reduce", logits.max(dim=1).values, "max"', "top = logits.max(dim=1).values"),
    ("the largest are added up", "Logits of some thousands are no harm", 'logits.max(dim=1).values, "max"', 'logits.max(dim=1).values, "sum"'),
    ("one largest of all tokens", "Logits of some thousands are no harm", 'logits.max(dim=1).values, "max"', 'logits.max().expand(len(x)), "max"'),
    ("the largest below zero is zero", "Logits of some thousands, positive or negative, are no harm", 'top = yield "all_reduce", logits.max(dim=1).values, "max"', 'top = yield "all_reduce", logits.max(dim=1).values.clamp(min=0), "max"'),
    ("logits are clamped", "Logits of some thousands are no harm", "logits = F.linear(x, weight, bias)", "logits = F.linear(x, weight, bias).clamp(-60, 60)"),
    ("the first word is nobody's", "ranks may have different numbers of words, one or more each", "own = (place >= 0) & (place < len(weight))", "own = (place > 0) & (place < len(weight))"),
    ("a word too many", "for the words from number `first` on", "(place < len(weight))", "(place <= len(weight))", "torch.where(own, place, 0)[:, None]", "torch.where(own, place, 0).clamp(max=len(weight) - 1)[:, None]"),
    ("all ranks from word 0", "for the words from number `first` on", "place = targets - first", "place = targets"),
    ("all ranks with as many words", "ranks may have different numbers of words", "place = targets - first", "place = targets - rank * len(weight)"),
    ("targets of others are somebody's", "the logit of the target, which one rank has", "mine = torch.where(own, logits.gather(1, at)[:, 0], 0.0)", "mine = logits.gather(1, at)[:, 0]"),
    ("divided by the ranks", "the mean cross-entropy", "(total.log() + top - target).mean()", "(total.log() + top - target).mean() / world"),
    ("the sum of losses", "the mean cross-entropy", "(total.log() + top - target).mean()", "(total.log() + top - target).sum()"),
    ("a loss each token", "the mean cross-entropy, a 0-dim tensor", "(total.log() + top - target).mean()", "total.log() + top - target"),
    ("the largest is not put back", "the mean cross-entropy", "total.log() + top - target", "total.log() - target"),
    ("a loss of shape (1,)", "the mean cross-entropy, a 0-dim tensor", "(total.log() + top - target).mean()", "(total.log() + top - target).mean(0, keepdim=True)"),
    ("the gradient of the sum", "the gradient of it for `x`", "slope @ weight / len(x)", "slope @ weight"),
    ("the own share of the gradient", "Each rank returns the gradient of it for `x`", 'gradient = yield "all_reduce", share, "sum"', "gradient = share"),
    ("the softmax of the own words", "the gradient of it for `x`", "slope = powers / total[:, None]", "slope = logits.softmax(dim=1)"),
    ("no target in the gradient", "the gradient of it for `x`", "    slope = slope.scatter_add(1, at, -own.to(slope.dtype)[:, None])\n", ""),
    ("the target everywhere", "each rank has that for its own words", "-own.to(slope.dtype)[:, None]", "-torch.ones_like(slope[:, :1])"),
    ("uphill", "the gradient of it for `x`", "share = slope @ weight / len(x)", "share = -slope @ weight / len(x)"),
    ("the mean gradient of the ranks", "the gradient of it for `x`", 'gradient = yield "all_reduce", share, "sum"', 'gradient = (yield "all_reduce", share, "sum") / world'),
    ("one number more", "at most T · D + 3 · T numbers", "    share = slope", '    yield "all_reduce", torch.ones(1), "sum"\n    share = slope'),
    ("who has the target is asked", "at most T · D + 3 · T numbers", "    share = slope", '    yield "all_reduce", own.float(), "max"\n    share = slope'),
    ("the whole logits in a table", "Logits stay where they are", CODE, '''
def column_loss(rank, world, x, weight, bias, first, targets):
    counts = torch.zeros(world, dtype=torch.int64)
    counts[rank] = len(weight)
    counts = yield "all_reduce", counts, "sum"
    table = torch.zeros(len(x), int(counts.sum()))
    table[:, first : first + len(weight)] = F.linear(x, weight, bias)
    table = yield "all_reduce", table, "sum"
    slope = table.softmax(1)
    slope[torch.arange(len(x)), targets] -= 1
    share = slope[:, first : first + len(weight)] @ weight / len(x)
    gradient = yield "all_reduce", share, "sum"
    return F.cross_entropy(table, targets), gradient


def row_logits(rank, world, x, weight, bias):
    return (yield "all_reduce", x @ weight.T, "sum") + bias
'''),
    ("the bias of each", "`bias`, (V,), is the whole one, at each rank", "    part = x @ weight.T\n", "    part = x @ weight.T + bias\n", 'logits = (yield "all_reduce", part, "sum") + bias', 'logits = yield "all_reduce", part, "sum"'),
    ("no bias", "Each rank returns the whole logits", '(yield "all_reduce", part, "sum") + bias', '(yield "all_reduce", part, "sum")'),
    ("the bias of rank 0, at rank 0", "Each rank returns the whole logits", '(yield "all_reduce", part, "sum") + bias', '(yield "all_reduce", part, "sum") + (bias if rank == 0 else 0)'),
    ("the bias goes, too", "It puts T · V numbers into the network, once", '(yield "all_reduce", part, "sum") + bias', '(yield "all_reduce", part, "sum") + (yield "all_reduce", bias, "sum") / world'),
    ("the largest part", "Each rank returns the whole logits", '(yield "all_reduce", part, "sum") + bias', '(yield "all_reduce", part, "max") + bias'),
    ("the mean of parts", "Each rank returns the whole logits", '(yield "all_reduce", part, "sum") + bias', '(yield "all_reduce", part, "sum") / world + bias'),
    ("gathered and added", "Of both programs the network may be asked for `all_reduce` only", '(yield "all_reduce", part, "sum") + bias', 'sum((yield "all_gather", part)) + bias'),
    ("the own part", "Each rank returns the whole logits", '(yield "all_reduce", part, "sum") + bias', 'part + bias + 0 * (yield "all_reduce", part, "sum")'),
    ("the targets of one rank", "`targets`, (T,) int64, numbers of words of the whole vocabulary", "place = targets - first", "place = targets % len(weight)"),
]

# --- 7 · The pipeline ----------------------------------------------------------------------------

RIGHT["pipeline"] = {
    "warm up, then in turns": '''
def schedule(stages, micro, kind):
    plan = []
    for s in range(stages):
        ahead = micro if kind == "gpipe" else min(micro, stages - s)
        stage = [("F", k) for k in range(ahead)]
        for k in range(micro):
            stage.append(("B", k))
            if ahead + k < micro:
                stage.append(("F", ahead + k))
        plan.append(stage)
    return plan


def bubble(stages, micro):
    return (stages - 1) / (micro + stages - 1)
''',
    "sorted by a clock": '''
def schedule(stages, micro, kind):
    def when(stage):
        # of a backward: 2k; a forward comes right before the backward that must wait for it
        lead = micro if kind == "gpipe" else stages - stage
        return lambda job: 2 * job[1] if job[0] == "B" else 2 * (job[1] - lead) + 1

    jobs = [(what, k) for k in range(micro) for what in "FB"]
    return [sorted(jobs, key=when(stage)) for stage in range(stages)]


def bubble(stages, micro):
    return 1 - micro / (micro + stages - 1)
''',
    "played through, tick by tick": '''
def schedule(stages: int, micro: int, kind: str) -> list[list[tuple[str, int]]]:
    plan = [[] for _ in range(stages)]
    there, back = [0] * stages, [0] * stages  # how many forwards and backwards each has done
    while min(back) < micro:
        now = there[:], back[:]
        for s in range(stages):
            came = micro if s == 0 else now[0][s - 1]
            returned = now[0][s] if s == stages - 1 else now[1][s + 1]
            most = stages - s
            if kind == "gpipe":
                returned = returned if there[s] == micro else 0
                most = micro
            if back[s] < returned:
                plan[s].append(("B", back[s]))
                back[s] += 1
            elif there[s] < came and there[s] - back[s] < most:
                plan[s].append(("F", there[s]))
                there[s] += 1
    return plan


def bubble(stages: int, micro: int) -> float:
    whole = micro + stages - 1
    return float(whole - micro) / whole
''',
    "GPipe the other way back": '''
import itertools


def one_stage(lead, micro):
    forwards = iter([("F", k) for k in range(micro)])
    backwards = iter([("B", k) for k in range(micro)])
    yield from itertools.islice(forwards, lead)
    for back, there in itertools.zip_longest(backwards, forwards):
        yield back
        if there:
            yield there


def schedule(stages, micro, kind):
    if kind == "gpipe":  # the last one forward is the first one back, as autograd would do it
        return [[("F", k) for k in range(micro)] + [("B", k) for k in reversed(range(micro))]] * stages
    return [list(one_stage(stages - s, micro)) for s in range(stages)]


def bubble(stages, micro):
    return (stages - 1) / (stages - 1 + micro)
''',
}
WRONG["pipeline"] = [
    ("1F1B is GPipe", "No stage s ever has more than `stages - s` pieces in flight", 'micro if kind == "gpipe" else min(micro, stages - s)', "micro"),
    ("GPipe is 1F1B", "`\"gpipe\"`: each stage does all its forwards first", 'micro if kind == "gpipe" else min(micro, stages - s)', "min(micro, stages - s)"),
    ("the kinds swapped", "`\"gpipe\"`: each stage does all its forwards first", 'kind == "gpipe"', 'kind == "1f1b"'),
    ("as many ahead at each stage", "No stage s ever has more than `stages - s` pieces in flight", "min(micro, stages - s)", "min(micro, stages)"),
    ("the stages counted from behind", "No stage s ever has more than `stages - s` pieces in flight", "min(micro, stages - s)", "min(micro, s + 1)"),
    ("one ahead too few", "the whole takes as little time as its rule allows", "min(micro, stages - s)", "min(micro, max(1, stages - s - 1))"),
    ("one ahead too many", "No stage s ever has more than `stages - s` pieces in flight", "min(micro, stages - s)", "min(micro, stages - s + 1)"),
    ("none ahead at the last stage", "the backward once it has done that forward itself", "min(micro, stages - s)", "min(micro, stages - s - 1)"),
    ("one by one", "the whole takes as little time as its rule allows", "min(micro, stages - s)", "1"),
    ("half of them ahead", "No stage s ever has more than `stages - s` pieces in flight", "min(micro, stages - s)", "(micro + 1) // 2"),
    ("a forward first, in turns", "No stage s ever has more than `stages - s` pieces in flight",
     '            stage.append(("B", k))\n            if ahead + k < micro:\n                stage.append(("F", ahead + k))\n', '            if ahead + k < micro:\n                stage.append(("F", ahead + k))\n            stage.append(("B", k))\n'),
    ("more forwards than pieces", "there may be fewer pieces than stages", "min(micro, stages - s)", "stages - s"),
    ("the last backwards are missing", "each piece forward once and backward once", "        for k in range(micro):\n            stage.append", '        for k in range(micro if kind == "gpipe" else micro - ahead + 1):\n            stage.append'),
    ("the first two backwards swapped", "the whole takes as little time as its rule allows", 'stage.append(("B", k))', 'stage.append(("B", k if micro < 2 or s or k > 1 else 1 - k))'),
    ("GPipe's last stage goes back the other way", "In both kinds the whole takes as little time as its rule allows",
     "        plan.append(stage)", '        if kind == "gpipe" and s == stages - 1:\n            stage[micro:] = stage[micro:][::-1]\n        plan.append(stage)'),
    ("each stage goes another way", "In both kinds the whole takes as little time as its rule allows",
     "        plan.append(stage)", '        if kind == "gpipe" and s % 2:\n            stage[micro:] = stage[micro:][::-1]\n        plan.append(stage)'),
    ("pieces from 1", "`micro` pieces, numbered from 0", 'stage = [("F", k) for k in range(ahead)]', 'stage = [("F", k) for k in range(ahead)]', "        plan.append(stage)", "        plan.append([(what, k + 1) for what, k in stage])"),
    ("words", "a list of such pairs", "        plan.append(stage)", '        plan.append([f"{what}{k}" for what, k in stage])'),
    ("all stages behind each other", "a list with a list of such pairs for each stage", "        plan.append(stage)", "        plan += stage"),
    ("the last stage first", "a list with a list of such pairs for each stage", "        plan.append(stage)", "        plan.insert(0, stage)"),
    ("ranks in one dict", "returns a list with a list of such pairs for each stage", "    return plan", "    return dict(enumerate(plan))"),
    ("idle by working", "the share of its time for which a stage stands idle", "(micro + stages - 1)", "micro"),
    ("a stage too many", "it takes `micro + stages - 1` of both", "(micro + stages - 1)", "(micro + stages)"),
    ("at both ends", "it takes `micro + stages - 1` of both", "return (stages - 1) /", "return 2 * (stages - 1) /"),
    ("working, not idle", "the share of its time for which a stage stands idle", "return (stages - 1) /", "return micro /"),
    ("in percent", "the share of its time", "return (stages - 1) /", "return 100 * (stages - 1) /"),
    ("whole shares", "a float", "(stages - 1) / (micro", "(stages - 1) // (micro"),
    ("one by the pieces", "it takes `micro + stages - 1` of both", "return (stages - 1) / (micro + stages - 1)", "return 1 - 1 / stages if micro == 1 else (stages - 1) / (micro * stages)"),
    ("one more stage than there is", "returns a list with a list of such pairs for each stage", "for s in range(stages):", "for s in range(stages + 1):"),
]

# --- 8 · A thousand ranks ------------------------------------------------------------------------

RIGHT["plan"] = {
    "by the sentences": '''
def plan(parameters, layers, world, kind, tokens, machine):
    weights = 2 * parameters
    layer = weights / layers
    if kind == "ddp":
        memory, rings = 16.0 * parameters, 2
    else:
        memory, rings = 16 * parameters / world + layer, 3
    rounds = rings * (world - 1)
    piece = layer / world
    sent = layers * rounds * piece
    computing = 6 * parameters * tokens / machine["flops"]
    sending = layers * rounds * (machine["latency"] + piece / machine["bandwidth"])
    return {"memory": memory, "sent": sent, "seconds": max(computing, sending)}
''',
    "a layer at a time": '''
def collective(size, world, machine):
    """Of an all-gather, or of a reduce-scatter: bytes and seconds."""
    sent = seconds = 0.0
    for _ in range(world - 1):
        sent += size / world
        seconds += machine["latency"] + size / world / machine["bandwidth"]
    return sent, seconds


def plan(parameters: int, layers: int, world: int, kind: str, tokens: int, machine: dict) -> dict:
    a_layer = parameters / layers
    bytes_of = {"weights": 2, "gradients": 2, "optimizer": 12}
    memory = float(sum(bytes_of.values()) * parameters)
    if kind == "fsdp":
        memory = memory / world + bytes_of["weights"] * a_layer
    sent, seconds = collective(bytes_of["gradients"] * a_layer, world, machine)
    halves = {"ddp": 2, "fsdp": 3}[kind] * layers
    computing = 6.0 * parameters * tokens / machine["flops"]
    return dict(memory=memory, sent=halves * sent, seconds=max(halves * seconds, computing))
''',
    "fractions, and a float at last": '''
from fractions import Fraction


def plan(parameters, layers, world, kind, tokens, machine):
    flops, bandwidth, latency = (Fraction(machine[name]) for name in ("flops", "bandwidth", "latency"))
    cut, half_rings = (1, 2) if kind == "ddp" else (world, 3)
    share = Fraction(world - 1, world)
    sent = half_rings * share * 2 * parameters
    memory = Fraction((2 + 2 + 12) * parameters, cut) + (0 if kind == "ddp" else Fraction(2 * parameters, layers))
    hidden = sorted([6 * parameters * tokens / flops, layers * half_rings * (world - 1) * latency + sent / bandwidth])
    return {"memory": float(memory), "sent": float(sent), "seconds": float(hidden[-1])}
''',
}
WRONG["plan"] = [
    ("no gradients", "Weights and gradients are bfloat16, 2 bytes each", "16.0 * parameters", "14.0 * parameters", "16 * parameters", "14 * parameters"),
    ("no copy in float32", "the optimizer has a float32 copy of the weights and two float32 moments, 12 bytes", "16.0 * parameters", "12.0 * parameters", "16 * parameters", "12 * parameters"),
    ("float32 weights", "Weights and gradients are bfloat16, 2 bytes each", "weights = 2 * parameters", "weights = 4 * parameters"),
    ("everything in float32", "Weights and gradients are bfloat16, 2 bytes each", "16.0 * parameters", "20.0 * parameters", "16 * parameters", "20 * parameters"),
    ("DDP cuts the optimizer", "With DDP each rank has all of it", "16.0 * parameters", "(4 + 12 / world) * parameters"),
    ("FSDP has no whole layer", "and beside it the bfloat16 weights of one whole layer", "16 * parameters / world + layer", "16 * parameters / world"),
    ("the whole layer is cut", "beside it the bfloat16 weights of one whole layer", "16 * parameters / world + layer", "(16 * parameters + layer) / world"),
    ("the own piece is not counted twice", "beside it the bfloat16 weights of one whole layer", "16 * parameters / world + layer", "16 * parameters / world + layer * (world - 1) / world"),
    ("a whole layer with its gradient", "beside it the bfloat16 weights of one whole layer", "16 * parameters / world + layer", "16 * parameters / world + 2 * layer"),
    ("a whole layer with everything", "beside it the bfloat16 weights of one whole layer", "16 * parameters / world + layer", "16 * parameters / world + 8 * layer"),
    ("the whole weights", "beside it the bfloat16 weights of one whole layer", "16 * parameters / world + layer", "16 * parameters / world + weights"),
    ("only the optimizer is cut", "With FSDP everything is cut by the number of ranks", "16 * parameters / world + layer", "4 * parameters + 12 * parameters / world + layer"),
    ("DDP in one half", "DDP all-reduces the bfloat16 gradients", "memory, rings = 16.0 * parameters, 2", "memory, rings = 16.0 * parameters, 1"),
    ("FSDP gathers once", "FSDP all-gathers the bfloat16 weights twice", "+ layer, 3", "+ layer, 2"),
    ("FSDP all-reduces", "FSDP all-gathers the bfloat16 weights twice and reduce-scatters the bfloat16 gradients", "+ layer, 3", "+ layer, 4"),
    ("a round for each rank", "An all-gather, or a reduce-scatter, has `world - 1`", "rings * (world - 1)", "rings * world"),
    ("pieces for one rank less", "a piece is the layer's bytes by `world`", "piece = layer / world", "piece = layer / max(world - 1, 1)"),
    ("gradients in float32", "DDP all-reduces the bfloat16 gradients", "sent = layers * rounds * piece", "sent = layers * rounds * piece * (2 if kind == 'ddp' else 4 / 3)"),
    ("of one layer", "bytes that a rank sends in a step", "sent = layers * rounds * piece", "sent = rounds * piece"),
    ("of all ranks", "bytes that a rank sends in a step", "sent = layers * rounds * piece", "sent = layers * rounds * piece * world"),
    ("one after the other", "a step takes as long as the longer of the two", "max(computing, sending)", "computing + sending"),
    ("the shorter one", "a step takes as long as the longer of the two", "max(computing, sending)", "min(computing, sending)"),
    ("computing alone", "a step takes as long as the longer of the two", "max(computing, sending)", "computing"),
    ("the forward alone", "Computing takes 6 operations for a parameter and a token", "6 * parameters * tokens", "2 * parameters * tokens"),
    ("tokens of all ranks", "Each of the `world` ranks works on `tokens` tokens a step", "6 * parameters * tokens", "6 * parameters * tokens * world"),
    ("tokens are shared", "Each of the `world` ranks works on `tokens` tokens a step", '6 * parameters * tokens / machine["flops"]', '6 * parameters * tokens / world / machine["flops"]'),
    ("FSDP computes its part", "Computing takes 6 operations for a parameter and a token", '6 * parameters * tokens / machine["flops"]', '6 * parameters * tokens / (world if kind == "fsdp" else 1) / machine["flops"]'),
    ("latency once a collective", "A round of a ring takes `latency + piece / bandwidth`", '(machine["latency"] + piece / machine["bandwidth"])', 'piece / machine["bandwidth"] + layers * rings * machine["latency"] * (world > 1)'),
    ("all layers in one collective", "Both kinds communicate layer by layer", 'layers * rounds * (machine["latency"] + piece / machine["bandwidth"])', 'rounds * (machine["latency"] + layers * piece / machine["bandwidth"])'),
    ("an all-reduce has as many rounds", "an all-reduce has twice as many rounds as an all-gather or a reduce-scatter", "sending = layers * rounds", "sending = layers * (rounds if kind == 'fsdp' else rounds / 2)"),
    ("whole layers in each round", "a piece is the layer's bytes by `world`", 'piece / machine["bandwidth"]', 'layer / machine["bandwidth"]'),
    ("the bytes of a rank as they come", "A round of a ring takes `latency + piece / bandwidth`", 'layers * rounds * (machine["latency"] + piece / machine["bandwidth"])', 'sent / machine["bandwidth"]'),
    ("whole bytes in a piece", "a piece is the layer's bytes by `world`", "piece = layer / world", "piece = layer // world"),
    ("the loads as well", "It returns a dict of three floats", '"seconds": max(computing, sending)}', '"seconds": max(computing, sending), "computing": computing, "sending": sending}'),
    ("gigabytes", "`\"memory\"`: bytes at each rank", '{"memory": memory,', '{"memory": memory / 1e9,'),
]

# --- 9 · MiniGPT on several ranks ----------------------------------------------------------------

RIGHT["minigpt_step"] = {
    "as it is told": '''
def minigpt_step(rank, world, model, tokens, targets, state, lr, max_norm):
    parameters = list(model.parameters())
    logits = model(tokens).flatten(0, 1)
    loss = F.cross_entropy(logits, targets.flatten(), reduction="sum")
    count = (targets != -100).sum()
    said = yield "all_reduce", torch.stack([loss.detach(), count.float()]), "sum"
    total, rows = said.tolist()
    grads = torch.autograd.grad(loss / rows, parameters)
    flat = torch.cat([g.flatten() for g in grads])
    n = flat.numel()
    size = -(-n // world)
    flat = F.pad(flat, (0, size * world - n))
    mine = yield "reduce_scatter", list(flat.split(size)), "sum"
    squares = yield "all_reduce", mine.square().sum().reshape(1), "sum"
    norm = squares.sqrt().item()
    factor = max_norm / (norm + 1e-6)
    if factor < 1:
        mine = mine * factor
    weights = nn.utils.parameters_to_vector(parameters).detach()
    own = F.pad(weights, (0, size * world - n))[rank * size : (rank + 1) * size]
    new, state = driver.adamw(own, mine, state, lr)
    gathered = yield "all_gather", new
    nn.utils.vector_to_parameters(torch.cat(gathered)[:n], parameters)
    return total / rows, norm, state
''',
    "backward, and copies into the model": '''
def minigpt_step(rank: int, world: int, model: nn.Module, tokens: Tensor, targets: Tensor, state: dict, lr: float, max_norm: float):
    kept = targets != -100
    losses = -model(tokens).log_softmax(dim=-1)[kept].gather(-1, targets[kept].unsqueeze(-1))
    said = yield "all_reduce", torch.tensor([losses.sum().item(), kept.sum().item()]), "sum"
    for p in model.parameters():
        p.grad = None
    (losses.sum() / said[1]).backward()

    def table(tensors):
        flat = torch.cat([t.detach().reshape(-1) for t in tensors])
        width = math.ceil(len(flat) / world)
        filled = flat.new_zeros(world, width)
        filled.view(-1)[: len(flat)] = flat
        return filled

    everything = table([torch.zeros_like(p) if p.grad is None else p.grad for p in model.parameters()])
    part = yield "reduce_scatter", list(everything), "sum"
    norm = (yield "all_reduce", part.dot(part)[None], "sum")[0] ** 0.5
    part = part * torch.clamp(max_norm / (norm + 1e-6), max=1.0)
    new, state = driver.adamw(table(model.parameters())[rank], part, state, lr)
    flat = torch.cat((yield "all_gather", new))
    with torch.no_grad():
        at = 0
        for p in model.parameters():
            p.copy_(flat[at : at + p.numel()].view_as(p))
            at += p.numel()
    return float(said[0] / said[1]), float(norm), state
''',
}
WRONG["minigpt_step"] = [
    ("the mean of means", "The loss is the mean cross-entropy over the targets of *all* ranks that are not -100", "total, rows = said.tolist()", "total, rows = said.tolist()\n    loss = loss * (rows / world / max(count.item(), 1))"),
    ("padding is counted", "the targets of *all* ranks that are not -100", "count = (targets != -100).sum()", "count = torch.tensor(targets.numel())"),
    ("the gradient of the sum", "The gradient of that loss is clipped", "torch.autograd.grad(loss / rows, parameters)", "torch.autograd.grad(loss, parameters)"),
    ("divided once more", "The gradient of that loss is clipped", "torch.autograd.grad(loss / rows, parameters)", "torch.autograd.grad(loss / rows / world, parameters)"),
    ("the own piece's norm", "over all parameters together", "norm = squares.sqrt().item()", "norm = mine.norm().item()"),
    ("squares of the own gradient", "the sum of the squares of its own piece of the gradient", "mine.square().sum().reshape(1)", "flat.square().sum().reshape(1)"),
    ("the norms are added", "the sum of the squares of its own piece of the gradient", "mine.square().sum().reshape(1)", "mine.norm().reshape(1)", "squares.sqrt().item()", "squares.item()"),
    ("the square of the norm", "with its norm n", "squares.sqrt().item()", "squares.item()"),
    ("always as long", "it is multiplied by `max_norm / (n + 1e-6)` if that is below 1", "if factor < 1:", "if True:"),
    ("not clipped", "over all parameters together, is clipped", "if factor < 1:", "if False:"),
    ("each number is clipped", "as `torch.nn.utils.clip_grad_norm_` does it", "mine = mine * factor", "mine = mine.clamp(-max_norm, max_norm)"),
    ("the norm afterwards", "the norm before clipping", "return total / rows, norm,", "return total / rows, min(norm, max_norm),"),
    ("the own loss", "The loss is the mean over the targets of *all* ranks", "return total / rows,", "return loss.item() / max(count.item(), 1),"),
    ("the old state", "the new state", "new, state = driver", "new, _ = driver"),
    ("the weights of rank 0", "The slice of a rank is its piece of all parameters", "[rank * size : (rank + 1) * size]", "[:size]"),
    ("only the own slice is new", "In the end the model has new weights, the same at all ranks", "torch.cat(gathered)[:n]", "torch.cat([weights[: rank * size], new, weights[(rank + 1) * size :]])[:n]"),
    ("the model stays old", "In the end the model has new weights", "    nn.utils.vector_to_parameters(torch.cat(gathered)[:n], parameters)\n", ""),
    ("no padding", "filled up with zeros and cut into `world` equal pieces", "flat = F.pad(flat, (0, size * world - n))", "flat = flat"),
    ("on top of what was there", "What was in `.grad` before counts for nothing", "grads = torch.autograd.grad(loss / rows, parameters)", "(loss / rows).backward()\n    grads = [p.grad for p in parameters]"),
    ("a number without dimensions", "an all_reduce of one number, shape (1,)", '    squares = yield "all_reduce", mine.square().sum().reshape(1), "sum"\n', '    squares = yield "all_reduce", mine.square().sum(), "sum"\n'),
    ("everybody has all of the optimizer", "a share of the optimizer; none of them need exist twice", "    new, state = driver.adamw(own, mine, state, lr)\n    gathered = yield \"all_gather\", new\n",
     "    gathered = yield \"all_gather\", mine\n    new, state = driver.adamw(F.pad(weights, (0, size * world - n)), torch.cat(gathered), state, lr)\n    gathered = [new]\n"),
    ("nothing to do without targets", "A rank may have none of them", "    parameters = list", "    if (targets == -100).all():\n        return 0.0, 0.0, state\n    parameters = list"),
    ("tensors, not floats", "the loss, the norm before clipping, both floats", "return total / rows, norm, state", "return said[0] / said[1], squares[0].sqrt(), state"),
    ("the largest sum of squares", "an all_reduce of one number, the sum of the squares", 'mine.square().sum().reshape(1), "sum"', 'mine.square().sum().reshape(1), "max"'),
    ("one state for all calls", "`state` is this rank's, `{\"step\": 0}` at first", "    new, state = driver.adamw(own, mine, state, lr)", "    new, KEPT[rank] = driver.adamw(own, mine, KEPT.get(rank, state), lr)\n    state = KEPT[rank]", "def minigpt_step", "KEPT = {}\n\n\ndef minigpt_step"),
]

# What the check can't tell, or the tools refuse, and why. They are not judged.
OPEN: dict[tuple[str, str], str] = {}

BANK = Bank("10")
BANK.fill(RIGHT, WRONG, OPEN)
BANK.right(
    "minigpt_step",
    "the number of targets first",
    ("total, count = yield", "count, total = yield"),
    ("[loss.item(), counted]", "[counted, loss.item()]"),
)
BANK.right(
    "minigpt_step",
    "the last parameter first",
    ("parameters = list(model.parameters())", "parameters = list(model.parameters())[::-1]"),
)
bank_10_second.add_to(BANK)
