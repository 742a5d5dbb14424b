"""Lab 09, exercise 5: Memory, and who holds it"""

from utils.checks import Case, Check, edited
from utils.traces import Allocation

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

    def asked(part, rows, words=""):
        events = [Allocation(address, size, 5 * at) for at, (address, size) in enumerate(rows)]

        def play(subject):
            came = subject(events)
            chosen = {highest: (0,), who: (0, 1), again: (0, 1, 2), never: (2,)}[part]
            return tuple(came[k] for k in chosen)

        places = {
            (highest,): ("the peak",),
            (who,): ("the peak", "who is alive then"),
            (again,): ("the peak", "who is alive then", "bytes never freed"),
            (never,): ("bytes never freed",),
        }[(part,)]
        named = {f"[{at}]": what for at, what in enumerate(places)}
        return Case(part, play, shown=words or f"{len(rows)} events", places=named)

    a, b, c, d = (64 * k for k in draw.sample(range(1, 90), 4))
    n, m, o = (draw.integer(2, 99) for _ in range(3))
    x = n + m + 1  # larger than both together

    def life(count, addresses):
        """A drawn record of so many events, with blocks of before and blocks that stay."""
        alive, rows, new = {}, [], set(addresses)
        for _ in range(count):
            address = draw.choice(addresses)
            if address in alive:
                rows.append((address, -alive.pop(address)))
            elif address in new and draw.integer(0, 2) == 0:
                rows.append((address, -8 * draw.integer(1, 20)))
            else:
                alive[address] = 8 * draw.integer(1, 20)
                rows.append((address, alive[address]))
            new.discard(address)
        return rows

    yield asked(highest, [(a, n), (b, m), (a, -n), (c, o), (b, -m), (c, -o)], "three blocks")
    yield asked(highest, [(a, n), (a, -n), (b, m), (b, -m)], "one at a time")
    yield asked(highest, [(a, n), (b, x), (b, -x), (c, m)], "the peak before the end")
    yield asked(highest, [(d, -500), (a, n), (a, -n)], "one from before the record")
    yield asked(highest, [(a, n), (d, -500), (b, m), (c, o)], "one from before, in between")
    yield asked(highest, [(d, -n), (c, -m)], "only blocks from before")
    yield asked(highest, [])
    yield asked(highest, life(30, range(0, 640, 64)))

    yield asked(who, [(b, n), (a, m), (c, o), (a, -m)], "handed out in an order that is not theirs")
    yield asked(who, [(a, n), (b, x), (a, -n), (c, n), (b, -x)], "a peak that is reached twice")
    yield asked(who, [(a, n), (a, -n), (b, n), (b, -n), (c, n)], "three peaks of one height")
    yield asked(who, [(a, x), (a, -x), (b, n), (c, m), (d, 1)], "the last is as high as the first")
    yield asked(who, [(a, n), (b, n), (c, n), (b, -n)], "blocks of one size")
    yield asked(who, [(0, n), (b, m), (0, -n)], "address 0")
    yield asked(who, [(d, -n), (a, n), (b, m)], "one from before")
    yield asked(who, [(a, -n)], "only one from before")
    yield asked(who, life(24, range(0, 512, 64)))

    yield asked(again, [(a, n), (b, o), (a, -n), (a, m), (c, x)], "an address used again")
    yield asked(again, [(a, n), (b, m), (a, -n), (a, x), (a, -x), (a, o)], "an address used three times")
    yield asked(again, [(a, -n), (a, m), (b, o), (a, -m), (c, n)], "there before, and handed out again")
    yield asked(again, [(a, n), (b, m), (a, -n), (c, o), (a, n)], "handed out again, after another")
    yield asked(again, life(40, range(0, 256, 64)))

    yield asked(never, [(a, n), (b, m), (c, o), (b, -m)], "two that stay")
    yield asked(never, [(a, n), (b, m), (a, -n), (b, -m)], "none that stays")
    yield asked(never, [(d, -n), (a, m), (a, -m)], "one from before")
    yield asked(never, [(d, -n), (a, m), (b, o)], "one from before, and two that stay")
    yield asked(never, [(a, n), (a, -n), (a, m), (b, o), (b, -o), (b, x)], "addresses used again")
    yield asked(never, life(31, range(0, 640, 64)))
