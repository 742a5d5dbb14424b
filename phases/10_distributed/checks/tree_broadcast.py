"""Lab 10, exercise 1: A tree"""

import torch

from hood.judge.checks.exercise import Case, Check

from .shared import as_run, others, ranks

tree_broadcast = Check(
    "tree_broadcast",
    parts={"every rank has it": 1, "any source": 1, "few rounds": 1},
    reads="Collectives and what they cost",
)

PLACES = {
    "['other requests']": "a request other than send and recv was made.",
    "['some have none']": "a rank returned None: it received nothing, or it doesn't return what it received.",
    "['results']": "what the ranks returned, from rank 0 on",
    "['got too little']": "ranks that received fewer bytes than the tensor has, so the tensor did not "
    "come through the network",
    "['messages']": "how many messages there were",
    "['rounds']": "how many rounds it took",
    "['rounds more than from rank 0']": "how many more rounds the broadcast takes than with rank 0 as the source",
    "['received by the source']": "messages that the source received",
    "['returned']": "ranks that return something other than what they received through the network",
}


@tree_broadcast.reference
def _(rank, world, tensor, source):
    """The source sends half of the way around. Then each place that has the tensor sends half as far."""
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

    def changed(part, world, source):
        """A case with a network that changes tensors, so that each rank gets a different tensor."""
        tensor = draw.tensor((2, draw.integer(1, 3)))
        added = [draw.tensor(tuple(tensor.shape)) for _ in range(world)]
        each = [(tensor if rank == source else None, source) for rank in range(world)]

        def play(subject):
            has = {source: tensor}

            def carry(sender, to, sent):
                own = has.get(sender)
                if own is not None and sent.shape == own.shape and torch.equal(sent, own):
                    has[to] = sent = sent + added[to]
                return sent

            came = ranks(subject, each, carry=carry)
            same = [rank in has and torch.equal(r, has[rank]) for rank, r in enumerate(came.results)]
            return {"other requests": others(came, "send"), "returned": same.count(False)}

        shown = f"{world} ranks, source {source}, a network that adds numbers to the tensors that it carries"
        return Case(part, play, shown=shown, places=PLACES, example=False)

    for part in (every, few):
        yield changed(part, draw.integer(4, 9), 0)
    world = draw.integer(4, 9)
    yield changed(any_source, world, draw.integer(1, world - 1))
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
