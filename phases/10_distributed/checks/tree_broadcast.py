"""Lab 10, exercise 1: A tree"""

import torch

from utils.checks.exercise import Case, Check, edited
from utils.checks.lab_solution import lab_solution

from .shared import as_run, others, ranks

tree_broadcast = Check(
    "tree_broadcast",
    parts={"every rank has it": 1, "any source": 1, "few rounds": 1},
    reads="Collectives and what they cost",
)

PLACES = {
    "['other requests']": "something else than send and recv was asked for.",
    "['some have none']": "a rank returned None: it was sent nothing, or doesn't return what it has.",
    "['results']": "what the ranks returned, from rank 0 on",
    "['got too little']": "ranks that received fewer bytes than the tensor has: it did not come to "
    "them by the network",
    "['messages']": "how many messages there were",
    "['rounds']": "how many rounds it took",
    "['rounds more than from rank 0']": "how many rounds more it took than from rank 0",
    "['received by the source']": "messages that the source received",
}


@tree_broadcast.reference
def _(rank, world, tensor, source):
    """The half of the places that is farthest from the source first, as in a knock-out draw."""
    place, width = (rank - source) % world, 1 << (world - 1).bit_length()
    has = place == 0
    while width > 1:
        width //= 2
        if has and place % (2 * width) == 0 and place + width < world:
            yield "send", (rank + width) % world, tensor
        elif not has and place % (2 * width) == width:
            tensor = yield "recv", (rank - width) % world
            has = True
    return tensor


@tree_broadcast.cases
def _(draw):
    every, any_source, few = tree_broadcast.parts

    def asked(part, world, source, dtype=torch.float32):
        tensor = draw.tensor((draw.integer(1, 3), 2), dtype)
        each = [(tensor if rank == source else None, source) for rank in range(world)]

        def play(subject):
            came = ranks(subject, each, latency=1.0)
            got = [sum(m.bytes for m in came.messages if m.to == rank) for rank in range(world)]
            found = {
                "other requests": others(came, "send"),
                "some have none": any(result is None for result in came.results),
                "results": came.results,
            }
            found["got too little"] = sum(
                got[rank] < tensor.nbytes for rank in range(world) if rank != source
            )
            if part == any_source:  # as many rounds as from rank 0, whatever these are
                usual = [(tensor if rank == 0 else None, 0) for rank in range(world)]
                seconds = ranks(subject, usual, latency=1.0).seconds
                found["rounds more than from rank 0"] = round(came.seconds - seconds)
                found["received by the source"] = sum(m.to == source for m in came.messages)
            if part == few:
                found |= {
                    "messages": len(came.messages),
                    "rounds": round(came.seconds),
                    "received by the source": sum(m.to == source for m in came.messages),
                }
            return found

        words = f"{world} rank{'s' * (world > 1)}, source {source}"
        shows = {"results": "{}.results", "rounds": "round({}.seconds)", "messages": "len({}.messages)"}
        paste = as_run("tree_broadcast", each, shows, latency=1.0)
        return Case(part, play, shown=words, places=PLACES, paste=paste)

    for world in (1, 2, 3, 4, draw.integer(5, 7), 8, 9):
        yield asked(every, world, 0)
    for world in (2, 3, 4, draw.integer(5, 7), 8):
        yield asked(any_source, world, world - 1)
    world = draw.integer(5, 9)
    yield asked(any_source, world, draw.integer(1, world - 2))
    yield asked(any_source, 7, 3)
    yield asked(any_source, 5, 1)
    yield asked(every, 3, 0, torch.int64)
    for world in (1, 2, 3, 4, 5, 6, 7, 8, draw.integer(9, 15), 16, 17):
        yield asked(few, world, 0)


_tree_broadcast = lab_solution(__name__, "tree_broadcast")


def _wrong(name, explanation, earns, *edits):
    tree_broadcast.misconception(name, explanation, earns=earns)(edited(_tree_broadcast, *edits))


@tree_broadcast.misconception(
    "one message at a time",
    "there is one message in a round and no more, as with a star or a chain.",
    earns=2,
)
def _(rank, world, tensor, source):
    if rank == source:
        for other in range(world):
            if other != source:
                yield "send", other, tensor
    else:
        tensor = yield "recv", source
    return tensor


@tree_broadcast.misconception(
    "a heap",
    "each rank passes it on to two others and no more, and then stands idle while others still send.",
    earns=2,
)
def _(rank, world, tensor, source):
    place = (rank - source) % world
    if place > 0:
        tensor = yield "recv", ((place - 1) // 2 + source) % world
    for child in (2 * place + 1, 2 * place + 2):
        if child < world:
            yield "send", (child + source) % world, tensor
    return tensor


_wrong(
    "rank 0 is the source",
    "it works as if rank 0 had the tensor, whichever rank is the source.",
    2,
    ("(rank - source) % world", "rank"),
)
_wrong(
    "places taken for ranks",
    "messages go to places in the tree, as if these were the ranks' numbers.",
    2,
    ("(rank + step) % world", "place + step"),
    ("(rank - step) % world", "place - step"),
)
_wrong(
    "powers of two alone",
    "a message is sent to places beyond the last rank, so it comes back to one that has the tensor.",
    0,
    ("place < step and place + step < world", "place < step"),
)
_wrong(
    "one round too few",
    "the last round is missing, and some ranks return nothing.",
    0,
    ("while step < world:", "while 2 * step < world:"),
)
_wrong(
    "rounds for whole trees alone",
    "the last round is missing where the number of ranks is no power of two, and some ranks return nothing.",
    0,
    ("while step < world:", "while 2 * step <= world:"),
)
_wrong(
    "the number of rounds, rounded",
    "the logarithm is rounded to the nearest whole number, so where it is rounded down the last round is missing.",
    0,
    ("while step < world:", "for _ in range(round(torch.tensor(world).log2().item())):"),
)
_wrong(
    "received and not returned",
    "ranks that receive the tensor return None.",
    0,
    ("tensor = (yield ('recv', (rank - step) % world))", "yield ('recv', (rank - step) % world)"),
)
_wrong(
    "everybody asks",
    "a collective is asked for.",
    0,
    ("    step = 1\n", "    step = world\n    return (yield 'broadcast', tensor, source)\n"),
)


@tree_broadcast.misconception(
    "nobody sends to the source's back",
    "ranks below the source are never sent anything.",
    earns=2,
)
def _(rank, world, tensor, source):
    place = rank - source
    step = 1
    while step < world:
        if 0 <= place < step and rank + step < world:
            yield "send", rank + step, tensor
        elif step <= place < 2 * step:
            tensor = yield "recv", rank - step
        step *= 2
    return tensor


@tree_broadcast.misconception(
    "by way of rank 0",
    "where rank 0 is not the source, the tensor takes a detour, and the source gets back what it had.",
    earns=2,
)
def _(rank, world, tensor, source):
    if source != 0:
        if rank == source:
            yield "send", 0, tensor
        elif rank == 0:
            tensor = yield "recv", source
    step = 1
    while step < world:
        if rank < step and rank + step < world:
            yield "send", rank + step, tensor
        elif step <= rank < 2 * step:
            tensor = yield "recv", rank - step
        step *= 2
    return tensor


_wrong(
    "nothing alone",
    "a rank that is alone returns nothing.",
    1,
    ("    step = 1\n", "    step = 1\n    if world == 1:\n        return None\n"),
)
_wrong(
    "the source returns nothing",
    "the source returns None, though it has the tensor.",
    0,
    ("return tensor", "return None if rank == source else tensor"),
)
_wrong(
    "told twice",
    "ranks are sent what they have already.",
    2,
    ("tensor = (yield ('recv', (rank - step) % world))", "tensor = (yield ('recv', (rank - step) % world))\n            yield ('recv', (rank - step) % world)"),
    ("yield ('send', (rank + step) % world, tensor)", "yield ('send', (rank + step) % world, tensor)\n            yield ('send', (rank + step) % world, tensor)"),
)
_wrong(
    "always float32",
    "what is returned has another dtype than what the source has.",
    2,
    ("return tensor", "return tensor.float()"),
)


@tree_broadcast.alternate("its own subtree, halved")
def _(rank, world, tensor, source):
    low, high = 0, world
    place = (rank - source) % world
    while high - low > 1:
        middle = low + (1 << ((high - low - 1).bit_length() - 1))
        if place == low:
            yield "send", (middle + source) % world, tensor
        if place == middle:
            tensor = yield "recv", (low + source) % world
        if place < middle:
            high = middle
        else:
            low = middle
    return tensor


@tree_broadcast.alternate("the place's bits")
def _(rank, world, tensor, source):
    place = (rank - source) % world
    k = place.bit_length()
    if place:
        tensor = yield "recv", (place - 2 ** (k - 1) + source) % world
    while place + 2**k < world:
        yield "send", (place + 2**k + source) % world, tensor
        k += 1
    return tensor


tree_broadcast.equivalent(
    ("while step < world", "while step <= world"),
    because="in a round that is not needed nobody has a partner",
)
tree_broadcast.equivalent(
    ("high - low > 1", "high - low != 1"),
    ("(high - low - 1).bit_length()", "(1 - (high - low)).bit_length()"),
    ("place == low", "place <= low"),
    because="a rank is always within its own part, which has one rank or more",
)
