"""Lab 10, exercise 2: The ring"""

import math

import torch

from hood.judge.checks.exercise import Case, Check

from .shared import SUMS, as_run, others, ranks

ring_all_reduce = Check(
    "ring_all_reduce",
    parts={"the sum": 1, "any size": 1, "sends that wait": 1, "neighbours and bytes": 1},
    reads="The ring",
    tolerance=SUMS,
)

RESULTS = "what the ranks returned, from rank 0 on"
PLACES = {
    "['other requests']": "a request other than send, recv and exchange was made.",
    "['results']": RESULTS,
    "['sent too little']": "ranks that sent fewer numbers than the tensor has, so the others did not "
    "get all numbers through the network",
    "['to others than the successor']": "messages that did not go to the successor",
    "['too long']": "messages of more than ⌈n / world⌉ numbers",
    "['too many']": "ranks that sent more than 2 · (world - 1) messages",
    "['other bits']": "ranks whose sum has bits that differ from the sum of rank 0",
    "['not sent']": (
        "numbers that no rank sent unchanged (each sum around the ring begins with a number of "
        "one rank)"
    ),
    "['without']": "ranks whose sum does not include the numbers that the network added to their messages",
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
        # the numbers need more digits than float32, or float64, has: the digits that these would
        # lose are compared
        base = {torch.int64: 2**60, torch.float64: 2**26}.get(dtype, 0)
        # whole numbers are compared exactly, so nothing is subtracted
        less = world * base if dtype.is_floating_point else 0
        tensors = [draw.tensor(shape, dtype, layout) + base for _ in range(world)]
        numbers = math.prod(shape)
        most = -(-numbers // world) * tensors[0].element_size()

        def play(subject):
            each = [(tensor,) for tensor in tensors]
            came = ranks(subject, each, rendezvous=part == waiting)
            results = [r - less if r.dtype == dtype else r for r in came.results]
            found = {"other requests": others(came, "send"), "results": results}
            # a rank must send each of its numbers, as a part of a sum or as the whole sum
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

    def changed(part, world, numbers):
        """A network that adds to each number that a rank sends unchanged, before this number is in a sum."""
        drawn = draw.sample(range(1024), world * numbers)
        # each number is 1 more than a multiple of 8, and no sum is; what is added is larger than
        # every number
        tensors = (8.0 * torch.tensor(drawn) + 1).view(world, numbers)
        added = torch.tensor([[draw.integer(1, 60) * 2.0**14 for _ in range(numbers)] for _ in range(world)])
        at = [{number: place for place, number in enumerate(row)} for row in tensors.tolist()]

        def play(subject):
            extra = torch.zeros(world, numbers)

            def carry(sender, to, sent):
                more = torch.zeros_like(sent).flatten()
                for k, number in enumerate(sent.flatten().tolist()):
                    place = at[sender].get(number)
                    if place is not None:
                        more[k] = extra[sender, place] = added[sender, place]
                return sent + more.view_as(sent)

            each = [(tensor,) for tensor in tensors.clone()]
            came = ranks(subject, each, rendezvous=part == waiting, carry=carry)
            lacks = []
            for rank, result in enumerate(came.results):
                # what was added to a rank's own messages may come back to this rank or not
                whole = tensors.sum(0) + extra.sum(0)
                lacks.append(not bool(((result == whole) | (result == whole - extra[rank])).all()))
            return {
                "other requests": others(came, "send"),
                "not sent": int((extra.sum(0) == 0).sum()),
                "without": sum(lacks),
            }

        network = "a network that adds numbers to the tensors that it carries"
        shown = f"{world} ranks, {numbers} numbers, {network}"
        return Case(part, play, shown=shown, places=PLACES, example=False)

    n = draw.integer(3, 5)
    for part in ring_all_reduce.parts:
        yield changed(part, n, 2 * n + draw.integer(0, 2 if part == sizes else 0))
        yield changed(part, 2, 4)
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
