"""Lab 09, exercise 5: Memory, and who holds it"""

from utils.checks.exercise import Case, Check
from utils.instruments.traces import Allocation

peak = Check(
    "peak",
    parts={"the peak": 1, "who is alive": 1, "addresses used again": 1, "never freed": 1},
    reads="Memory over time",
)


@peak.reference
def _(allocations):
    ends = {}
    for at, block in enumerate(allocations):
        if block.bytes < 0:
            begun = [
                k for k in range(at) if allocations[k].address == block.address and k not in ends
            ]
            if begun and allocations[begun[-1]].bytes > 0:
                ends[begun[-1]] = at
    lives = [
        (k, ends.get(k, len(allocations)), block)
        for k, block in enumerate(allocations)
        if block.bytes > 0
    ]

    def alive(at):
        return [(block.address, block.bytes) for k, end, block in lives if k <= at < end]

    sizes = [sum(size for _, size in alive(at)) for at in range(len(allocations))]
    most = max(sizes, default=0)
    then = alive(sizes.index(most)) if most else []
    return most, then, sum(block.bytes for k, end, block in lives if end == len(allocations))


@peak.cases
def _(draw):
    highest, who, again, never = peak.parts

    def asked(part, rows, words="", apart=5):
        events = [Allocation(address, size, apart * at) for at, (address, size) in enumerate(rows)]

        def play(subject):
            came = subject(events)
            entries = {
                "peak": came[0], "blocks": in_any_order(came[1]), "order": came[1], "never freed": came[2],
            }  # fmt: skip
            return {name: entries[name] for name in chosen}

        chosen = {
            highest: ("peak",),
            who: ("peak", "blocks", "order"),
            again: ("peak", "blocks", "order", "never freed"),
            never: ("never freed",),
        }[part]
        places = {
            "['peak']": "the peak",
            "['blocks']": "who is alive then",
            "['order']": "The blocks that are alive then are right, and in another order than that of being"
            " handed out.",
            "['never freed']": "bytes never freed",
        }
        return Case(part, play, shown=words or f"{len(rows)} events", places=places)

    def in_any_order(blocks):
        """A list of pairs, sorted; anything else as it is. A pair may be a list, too."""
        pairs = isinstance(blocks, list) and all(isinstance(pair, (tuple, list)) for pair in blocks)
        return sorted(map(tuple, blocks)) if pairs else blocks

    a, b, c, d = (64 * k for k in draw.sample(range(1, 90), 4))
    # three sizes, of which each is smaller than the other two together, and one above n + m and o:
    # no sum is reached twice where a case is not about that
    n, m, o = draw.sample(range(50, 100), 3)
    x = n + m + 1

    def life(count, addresses, again=True):
        """A drawn record of so many events, with blocks of before and blocks that stay."""
        alive, rows, new = {}, [], set(addresses)
        for _ in range(count):
            address = draw.choice(sorted(new | alive.keys()) if not again else addresses)
            if address in alive:
                rows.append((address, -alive.pop(address)))
            elif address in new and draw.integer(0, 2) == 0:
                rows.append((address, -8 * draw.integer(1, 20)))
            else:
                alive[address] = 8 * draw.integer(1, 20)
                rows.append((address, alive[address]))
            new.discard(address)
        return rows

    def with_one_peak(count, addresses):
        """Such a record, whose largest sum is reached once. Cases by hand ask which of several counts."""
        rows, alive, sums = life(count, addresses), {}, []
        for address, size in rows:
            alive[address] = max(size, 0)
            sums.append(sum(alive.values()) * (size > 0))
        if sums.count(max(sums)) > 1:  # a block of its own, which lives only then, makes the first one larger
            first, own = sums.index(max(sums)) + 1, addresses[-1] + 64
            rows[first:first] = [(own, 8), (own, -8)]
        return rows

    yield asked(highest, [(a, n), (b, m), (a, -n), (c, o), (b, -m), (c, -o)], "three blocks")
    yield asked(highest, [(a, n), (a, -n), (b, m), (b, -m)], "one at a time")
    yield asked(highest, [(a, n), (b, x), (b, -x), (c, m)], "the peak before the end")
    yield asked(highest, [(a, n), (b, m), (a, -n), (c, x), (b, -m)], "all at one moment", apart=0)
    yield asked(highest, [(d, -500), (a, n), (a, -n)], "one from before the record")
    yield asked(highest, [(a, n), (d, -500), (b, m), (c, o)], "one from before, in between")
    yield asked(highest, [(d, -n), (c, -m)], "only blocks from before")
    yield asked(highest, [])
    yield asked(highest, life(30, range(0, 3200, 64), again=False))

    yield asked(who, [(b, n), (a, m), (c, o), (a, -m)], "handed out in an order that is not theirs")
    yield asked(who, [(a, n), (b, x), (a, -n), (c, n), (b, -x)], "a peak that is reached twice")
    yield asked(who, [(a, n), (a, -n), (b, n), (b, -n), (c, n)], "three peaks of one height")
    yield asked(who, [(a, n), (a, -n), (b, m), (c, x)], "one that is gone by then")
    yield asked(who, [(64, n), (128, m), (64, -n), (256, x)], "one gone by then, at a lower address")
    yield asked(who, [(128, n), (64, m), (128, -n), (256, x)], "one gone by then, at a higher address")
    yield asked(who, [(a, x), (a, -x), (b, n), (c, m), (d, 1)], "the last is as high as the first")
    yield asked(who, [(a, n), (b, n), (c, n), (b, -n)], "blocks of one size")
    yield asked(who, [(0, n), (b, m), (0, -n)], "address 0")
    yield asked(who, [(d, -n), (a, n), (b, m)], "one from before")
    yield asked(who, [(a, -n)], "only one from before")
    yield asked(who, life(24, range(0, 3200, 64), again=False))

    yield asked(again, [(a, n), (b, o), (a, -n), (a, m), (c, x)], "an address used again")
    yield asked(again, [(a, n), (b, m), (a, -n), (a, x), (a, -x), (a, o)], "an address used three times")
    yield asked(again, [(a, -n), (a, m), (b, o), (a, -m), (c, n)], "there before, and handed out again")
    yield asked(again, [(a, n), (b, m), (a, -n), (c, o), (a, n)], "handed out again, after another")
    yield asked(again, [(a, n), (a, -n), (a, m), (b, o), (b, -o), (b, x)], "addresses used again, and kept")
    yield asked(again, with_one_peak(40, range(0, 256, 64)))

    yield asked(never, [(a, n), (b, m), (c, o), (b, -m)], "two that stay")
    yield asked(never, [(a, n), (b, m), (a, -n), (b, -m)], "none that stays")
    yield asked(never, [(d, -n), (a, m), (a, -m)], "one from before")
    yield asked(never, [(d, -n), (a, m), (b, o)], "one from before, and two that stay")
    yield asked(never, [(a, n), (b, x), (b, -x), (c, m)], "one that is handed out after the peak, and stays")
    yield asked(never, life(31, range(0, 3200, 64), again=False))
