"""Lab 10, exercise 2: The ring"""

import math

import torch

from utils.checks.exercise import Case, Check, edited
from utils.checks.lab_solution import lab_solution

from .shared import SUMS, as_run, others, ranks

ring_all_reduce = Check(
    "ring_all_reduce",
    parts={"the sum": 1, "any size": 1, "sends that wait": 1, "neighbours and bytes": 1},
    reads="The ring",
    tolerance=SUMS,
)

RESULTS = "what the ranks returned, from rank 0 on"
PLACES = {
    "['other requests']": "something else than send, recv and exchange was asked for.",
    "['results']": RESULTS,
    "['sent too little']": "ranks that sent fewer numbers than the tensor has: what the others need "
    "of them did not come by the network",
    "['to others than the successor']": "messages that did not go to the successor",
    "['too long']": "messages of more than ⌈n / world⌉ numbers",
    "['too many']": "ranks that sent more than 2 · (world - 1) messages",
    "['other bits']": "ranks whose sum has other bits than that of rank 0",
}


@ring_all_reduce.reference
def _(rank, world, tensor):
    flat = tensor.reshape(-1).clone()
    size = max(1, -(-flat.numel() // world))
    parts = [flat[size * k : size * (k + 1)] for k in range(world)]
    for step in range(2 * (world - 1)):
        sent = (rank - step) % world
        got = yield "exchange", (rank + 1) % world, parts[sent], (rank - 1) % world
        target = parts[(sent - 1) % world]
        if step < world - 1:
            target += got
        else:
            target.copy_(got)
    return flat.reshape(tensor.shape)


@ring_all_reduce.cases
def _(draw):
    total, sizes, waiting, load = ring_all_reduce.parts

    def asked(part, world, shape, dtype=torch.float32, layout="contiguous"):
        # wider than float32, or float64: what is compared is what these would round off
        base = {torch.int64: 2**60, torch.float64: 2**26}.get(dtype, 0)
        # whole numbers are compared exactly, as they are
        less = world * base if dtype.is_floating_point else 0
        tensors = [draw.tensor(shape, dtype, layout) + base for _ in range(world)]
        numbers = math.prod(shape)
        most = -(-numbers // world) * tensors[0].element_size()

        def play(subject):
            each = [(tensor,) for tensor in tensors]
            came = ranks(subject, each, rendezvous=part == waiting)
            results = [r - less if r.dtype == dtype else r for r in came.results]
            found = {"other requests": others(came, "send"), "results": results}
            # each number that a rank has must leave it, in a sum or as the sum
            little = [came.sent(r) < tensors[r].nbytes for r in range(world)]
            found["sent too little"] = sum(little) if world > 1 else 0
            if part != load:
                return found
            counts = [sum(m.source == r for m in came.messages) for r in range(world)]
            away = [m for m in came.messages if m.to != (m.source + 1) % world]
            bits = [not torch.equal(r, came.results[0]) for r in came.results]
            return found | {
                "to others than the successor": len(away),
                "too long": sum(m.bytes > most for m in came.messages),
                "too many": sum(count > 2 * (world - 1) for count in counts),
                "other bits": sum(bits),
            }

        words = f"{world} rank{'s' * (world > 1)}, shape {shape}, {str(dtype).removeprefix('torch.')}"
        places = PLACES | ({"['results']": f"{RESULTS}, less {less:,}"} if less else {})
        shows = {} if less else {"results": "{}.results"}
        shows["too many"] = f"sum(sum(m.source == r for m in {{}}.messages) > {2 * (world - 1)} for r in range({world}))"
        shows["too long"] = f"sum(m.bytes > {most} for m in {{}}.messages)"
        shows["to others than the successor"] = f"sum(m.to != (m.source + 1) % {world} for m in {{}}.messages)"
        paste = as_run("ring_all_reduce", [(tensor,) for tensor in tensors], shows, rendezvous=part == waiting)
        return Case(part, play, shown=words, places=places, paste=paste)

    n = draw.integer(3, 5)
    yield asked(total, 2, (4,))
    yield asked(total, n, (2 * n,))
    yield asked(total, 4, (draw.integer(2, 4) * 4,))
    yield asked(total, n, (n,), torch.int64)
    yield asked(total, 3, (6,), torch.float64)
    yield asked(sizes, 3, (4,))
    yield asked(sizes, 4, (2, draw.integer(3, 7)))
    yield asked(sizes, 5, (3, 2))
    yield asked(sizes, n, (n - 1,))
    yield asked(sizes, 3, ())
    yield asked(sizes, 3, (0, 2))
    yield asked(sizes, 3, (0,), torch.int64)
    yield asked(sizes, 1, (2, 3))
    yield asked(sizes, 1, (), torch.int64)
    yield asked(sizes, 3, (2, 5), layout="transposed")
    yield asked(sizes, 4, (5, 1), torch.int64)
    for world in (2, 3, 4):
        yield asked(waiting, world, (3 * world,))
    yield asked(waiting, 5, (5,))
    for world, shape in ((2, (2,)), (3, (3 * n,)), (4, (13,)), (n, (n, 3)), (5, (4,))):
        yield asked(load, world, shape)
    yield asked(load, 5, (40,))  # many sums of five, some of which depend on the order


_ring = lab_solution(__name__, "ring_all_reduce")


def _wrong(name, explanation, earns, *edits):
    ring_all_reduce.misconception(name, explanation, earns=earns)(edited(_ring, *edits))


_FIRST = "got = (yield ('exchange', after, pieces[(rank - k) % world], before))"
_SECOND = "got = (yield ('exchange', after, pieces[(rank + 1 - k) % world], before))"
_wrong(
    "everybody sends first",
    "each rank waits for its successor to receive, and nobody does.",
    3,
    (_FIRST, "yield ('send', after, pieces[(rank - k) % world])\n        got = yield ('recv', before)"),
    (_SECOND, "yield ('send', after, pieces[(rank + 1 - k) % world])\n        got = yield ('recv', before)"),
)
_wrong(
    "everybody receives first",
    "each rank waits for its predecessor to send, and nobody does, even where sends are buffered.",
    0,
    (_FIRST, "got = yield ('recv', before)\n        yield ('send', after, pieces[(rank - k) % world])"),
    (_SECOND, "got = yield ('recv', before)\n        yield ('send', after, pieces[(rank + 1 - k) % world])"),
)


@ring_all_reduce.misconception(
    "the whole tensor goes around",
    "each message is the whole tensor, so bytes grow with the number of ranks, and each rank adds up in"
    " an order of its own.",
    earns=3,
)
def _(rank, world, tensor):
    total = tensor = tensor.clone()
    for _ in range(world - 1):
        tensor = yield "exchange", (rank + 1) % world, tensor, (rank - 1) % world
        total = total + tensor
    return total


@ring_all_reduce.misconception(
    "everything to rank 0",
    "one rank adds up for all, and the others send to it and wait for it.",
    earns=3,
)
def _(rank, world, tensor):
    if rank:
        yield "send", 0, tensor
        return (yield "recv", 0)
    for other in range(1, world):
        tensor = tensor + (yield "recv", other)
    for other in range(1, world):
        yield "send", other, tensor
    return tensor


_wrong(
    "half of the ring",
    "after the first half each rank has one finished piece, and returns the others half added up.",
    0,
    ("pieces[(rank - k) % world] = got", "break"),
)
_wrong(
    "a round too few",
    "each half of the ring ends a round too early, and some pieces are not finished.",
    0,
    ("for k in range(world - 1):\n        got = (yield ('exchange', after, pieces[(rank - k)", "for k in range(world - 2):\n        got = (yield ('exchange', after, pieces[(rank - k)"),
)
_wrong(
    "float32, and back",
    "sums are made in float32, and what that can't hold is rounded off.",
    2,
    ("flat = tensor.flatten()", "flat = tensor.flatten().float()"),
    ("torch.cat(pieces)", "torch.cat(pieces).to(tensor.dtype)"),
)
_wrong(
    "added up twice",
    "in the second half, too, pieces are added to what is there, instead of replacing it.",
    0,
    ("pieces[(rank - k) % world] = got", "pieces[(rank - k) % world] = pieces[(rank - k) % world] + got"),
)
_wrong(
    "the piece before",
    "the second half begins with the piece that each rank began with, which is not finished.",
    0,
    ("pieces[(rank + 1 - k) % world]", "pieces[(rank - k) % world]"),
    ("pieces[(rank - k) % world] = got", "pieces[(rank - k - 1) % world] = got"),
)
_wrong(
    "the rest is left out",
    "pieces are of length n // world, and the numbers that are left over are not added up.",
    2,
    ("math.ceil(len(flat) / world)", "len(flat) // world"),
    ("torch.cat(pieces).reshape(tensor.shape)", "torch.cat([*pieces, flat[size * world:]]).reshape(tensor.shape)"),
)
_wrong(
    "the last piece takes the rest",
    "pieces are of length n // world, and the last one is longer by all that is left over.",
    3,
    ("math.ceil(len(flat) / world)", "len(flat) // world"),
    ("for k in range(world)]", "for k in range(world - 1)] + [flat[size * (world - 1):]]"),
)
_wrong(
    "torch.chunk's pieces",
    "there are fewer pieces than ranks where the tensor is small or doesn't divide, so that some rank has"
    " none to send.",
    2,
    ("[flat[size * k:size * (k + 1)] for k in range(world)]", "list(flat.chunk(world))"),
)
_wrong("flat", "the sum comes back flat.", 2, (".reshape(tensor.shape)", ""))
_wrong(
    "the other way around",
    "messages go to the predecessor.",
    3,
    ("after, before = ((rank + 1) % world, (rank - 1) % world)", "after, before = ((rank - 1) % world, (rank + 1) % world)\n    rank = -rank % world"),
)
_wrong(
    "the mean",
    "the sum is divided by the number of ranks.",
    0,
    ("torch.cat(pieces)", "(torch.cat(pieces) / world)"),
)


_wrong(
    "the collective itself",
    "a collective is asked for, which does all of it.",
    0,
    ("flat = tensor.flatten()", "return (yield 'all_reduce', tensor, 'sum')\n    flat = tensor.flatten()"),
)
_wrong(
    "the padding stays",
    "where the tensor doesn't divide, the sum has zeros at its end.",
    2,
    ("flat = tensor.flatten()", "flat = torch.cat([tensor.flatten(), tensor.new_zeros(-tensor.numel() % world)])"),
    ("torch.cat(pieces).reshape(tensor.shape)", "torch.cat(pieces).reshape(tensor.shape if flat.numel() == tensor.numel() else -1)"),
)
_wrong(
    "nothing alone",
    "a rank that is alone returns nothing.",
    3,
    ("flat = tensor.flatten()", "flat = tensor.flatten()\n    if world == 1:\n        return None"),
)
_wrong(
    "all in float32",
    "the sum is float32, whatever the tensors are.",
    2,
    ("flat = tensor.flatten()", "flat = tensor.flatten().float()"),
)


_wrong(
    'whole numbers as float64, and back',
    "sums of whole numbers are made in float64, and what that can't hold is rounded off.",
    2,
    ('flat = tensor.flatten()', 'flat = tensor.flatten() if tensor.is_floating_point() else tensor.flatten().double()'),
    ('reshape(tensor.shape)', 'reshape(tensor.shape).to(tensor.dtype)'),
)
_wrong(
    'the second half the other way around',
    'one half goes to the successor, and the other to the predecessor.',
    3,
    (_SECOND, "got = yield ('exchange', before, pieces[(rank + 1 + k) % world], after)"),
    ('pieces[(rank - k) % world] = got', 'pieces[(rank + 2 + k) % world] = got'),
)
_wrong(
    'bits of its own',
    'each rank changes its finished sum by the rounding of its own numbers.',
    3,
    ('return torch.cat(pieces)', 'own = tensor.flatten()[size * rank:size * (rank + 1)]\n    pieces[rank] = own + (pieces[rank] - own)\n    return torch.cat(pieces)'),
)
_wrong(
    'the first piece once more',
    'the second half passes on the piece that each rank began with, in the place of the finished one.',
    0,
    ('pieces[(rank + 1 - k) % world]', 'pieces[(rank - k) % world]'),
)
_wrong(
    'no second half',
    'each rank returns what it has after the first half.',
    0,
    ("for k in range(world - 1):\n        got = (yield ('exchange', after, pieces[(rank + 1", "for k in range(0):\n        got = (yield ('exchange', after, pieces[(rank + 1"),
)
_wrong(
    'the mean, in the same dtype',
    'the sum is divided by the number of ranks, and has the right dtype.',
    0,
    ('torch.cat(pieces)', '(torch.cat(pieces) / world).to(tensor.dtype)'),
)
_wrong(
    'the rest is lost',
    'pieces are of length n // world, and the numbers that are left over are in none of them.',
    2,
    ('math.ceil(len(flat) / world)', 'len(flat) // world'),
)


@ring_all_reduce.alternate("even ranks send first")
def _(rank, world, tensor):
    count = tensor.numel()
    each = (count + world - 1) // world
    padded = torch.zeros(each * world, dtype=tensor.dtype)
    padded[:count] = tensor.reshape(-1)
    rows = padded.view(world, each)

    def shift(piece):
        nonlocal rank
        if rank % 2 == 0:
            yield "send", (rank + 1) % world, piece
            return (yield "recv", (rank - 1) % world)
        got = yield "recv", (rank - 1) % world
        yield "send", (rank + 1) % world, piece
        return got

    at = rank
    for _ in range(world - 1):
        got = yield from shift(rows[at])
        at = (at - 1) % world
        rows[at] += got
    for _ in range(world - 1):
        got = yield from shift(rows[at])
        at = (at - 1) % world
        rows[at] = got
    return padded[:count].view(tensor.shape)


@ring_all_reduce.alternate("rank 0 receives first, in a list of tensors")
def _(rank, world, tensor):
    pieces = list(torch.tensor_split(tensor.reshape(-1), world))
    for turn in range(2 * world - 2):
        out = pieces[(rank - turn) % world]
        if rank:
            yield "send", (rank + 1) % world, out
            came = yield "recv", rank - 1
        else:
            came = yield "recv", world - 1
            yield "send", 1, out
        slot = (rank - turn - 1) % world
        pieces[slot] = came if turn >= world - 1 else came + pieces[slot]
    return torch.cat(pieces).view(tensor.shape)


ring_all_reduce.equivalent(
    ("for k in range(world)", "for k in range(world + 1)"),
    because="there is nothing in the piece after the last one, and nobody sends it",
)
ring_all_reduce.equivalent(
    ("pieces[(rank - k) % world]", "pieces[rank - k]"),
    ("(rank - k - 1) % world", "rank - k - 1"),
    ("(at - 1) % world", "at - 1"),
    because="an index below 0 counts from the end",
)
ring_all_reduce.equivalent(
    ("torch.zeros(each * world", "torch.ones(each * world"),
    because="what fills the last piece up is not returned",
)
ring_all_reduce.equivalent(
    ("rank % 2 == 0", "rank % 2 != 0"),
    ("rank % 2 == 0", "rank % 2 <= 0"),
    ("rank % 2 == 0", "rank % 2 == 1"),
    ("rank % 2 == 0", "rank % 3 == 0"),
    ("rank % 2 == 0", "rank == 0"),
    because="it is enough that one rank sends first and one receives first",
)
ring_all_reduce.equivalent(
    ("got = (yield ('recv', (rank - 1) % world))", "got = (yield ('recv', rank - 1))"),
    ("got = (yield ('recv', (rank - 1) % world))", "got = (yield ('recv', (rank - 1) % rank))"),
    because="ranks that receive first have a number above 0",
)
