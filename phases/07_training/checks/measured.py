"""Lab 07, exercise 12: What do 16 bits save here?"""

import weakref
from collections import Counter

import torch

from hood.judge.checks.compare import Tolerance
from hood.judge.checks.exercise import Case, Check, Place
from hood.judge.checks.words import counted, listed

measured = Check(
    "measured",
    parts={
        "slow first calls": 1,
        "a speed that changes": 1,
        "a device with a queue": 1,
        "the most bytes": 1,
    },
    reads="A stopwatch and a meter",
    tolerance=Tolerance(1e-6, 1e-6, "a time is the difference of two readings of a clock"),
)


@measured.reference
class _:
    """Reads the clock three times in a pair. Counts how many saved tensors use each storage."""

    def speed_up(before, after, warmup, pairs, clock, synchronize):
        ratios = []
        for number in range(warmup + pairs):
            readings = []
            for function in (lambda: None, before, after):
                function()
                synchronize()
                readings.append(clock())
            began, between, ended = readings
            if number >= warmup:
                ratios.append((between - began) / (ended - between))
        ratios.sort()
        return ratios[len(ratios) // 2]

    def most_kept(step, weights):
        meter = _Meter(weights)
        with torch.autograd.graph.saved_tensors_hooks(meter.pack, _Kept.unpack):
            step()
        return meter.most


class _Meter:
    """Knows how many saved tensors use each storage, and the largest sum of bytes so far."""

    def __init__(self, weights):
        self.own = {weight.untyped_storage().data_ptr() for weight in weights}
        self.users, self.now, self.most = Counter(), 0, 0

    def pack(self, tensor):
        kept = _Kept(tensor.detach())
        storage = tensor.untyped_storage()
        at, size = storage.data_ptr(), storage.nbytes()
        if at not in self.own:
            self.now += size * (self.users[at] == 0)
            self.users[at] += 1
            self.most = max(self.most, self.now)
            weakref.finalize(kept, self.leave, at, size)
        return kept

    def leave(self, at, size):
        self.users[at] -= 1
        self.now -= size * (self.users[at] == 0)


class _Kept:
    """A tensor that a graph keeps."""

    def __init__(self, tensor):
        self.tensor = tensor

    def unpack(self):
        return self.tensor


@measured.cases
def _(draw):
    first, speed, queue, most = measured.parts

    def seconds():
        """Two different times, far enough from each other that each mistake shows."""
        fast = draw.integer(3, 9)
        times = [fast / 4, fast * draw.integer(6, 13) / 16]
        return dict(zip(("before", "after"), draw.sample(times, 2), strict=True))

    def timed(part, warmup, pairs, shown, **machine):
        machine = {"seconds": seconds(), "now": float(draw.integer(1, 500)), **machine}
        return Case(
            part,
            lambda subject: subject.drive("measuring:timed", machine, warmup, pairs, of="speed_up"),
            of="speed_up",
            shown=f"`warmup` is {warmup} and `pairs` is {pairs}; {shown}",
            places={"": "the ratio"},
        )

    def slow(warmup, pairs, slower="before"):
        factors = dict.fromkeys(("before", "after"), float(draw.integer(5, 9)))
        factors[slower] = float(draw.integer(20, 40))
        shown = "no calls are slow"
        if warmup:
            shown = "the warm-up calls take {before:.0f} and {after:.0f} times as long".format(
                **factors
            )
        return timed(first, warmup, pairs, shown, slow=factors if warmup else None)

    def changing(warmup, pairs, disturbed, rising=False):
        """A machine with another speed in each pair; it may only become slower.

        ``disturbed`` has pairs (name, number): the call of this function in the number-th of the
        fastest counted pairs takes longer.
        """
        pace = draw.sample([1.0, 1.5, 2.5, 4.0, 6.0, 9.0, 14.0], pairs)
        pace = sorted(pace) if rising else pace
        fastest = sorted(range(pairs), key=pace.__getitem__)
        extra = [(name, fastest[k], float(draw.integer(300, 600))) for name, k in disturbed]
        shown = f"the speed changes {counted(pairs - 1, 'time')} after the warm-up"
        if extra:
            each = [f"`{name}` in pair {number + 1}" for name, number, _ in extra]
            shown += f", and another program disturbs {listed(each)}"
        before = [float(draw.integer(1, 9)) for _ in range(warmup)]
        return timed(speed, warmup, pairs, shown, factors=before + pace, disturbed=extra)

    def queued(warmup, pairs, waiting):
        returns = {name: draw.integer(1, 40) / 128 for name in ("before", "after")}
        shown = f"calls return early, and {waiting} s of work are in the queue at the beginning"
        return timed(queue, warmup, pairs, shown, returns=returns, queued=float(waiting))

    yield slow(0, 1)
    yield slow(2, 3)
    yield slow(1, 1)
    yield slow(1, 1, "after")
    yield slow(2, 2, "after")
    yield slow(draw.integer(3, 5), draw.integer(2, 4))
    yield slow(6, 5)
    yield changing(0, 5, [])
    yield changing(1, 5, [("before", 0), ("before", 1)])
    yield changing(2, 5, [("after", 0), ("after", 1)])
    yield changing(draw.integer(1, 3), 3, [("after", 0)])
    yield changing(0, 7, [("before", 0), ("after", 1), ("before", 2)])
    yield changing(1, 4, [("before", 0)])
    yield changing(2, 6, [("after", 1), ("after", 0)])
    # the first pairs are disturbed, so that fewer pairs are not enough
    yield changing(2, 5, [("before", 0), ("before", 1)], rising=True)
    yield changing(1, 7, [("after", 0), ("after", 1), ("after", 2)], rising=True)
    # a disturbed pair that is still the fastest; two disturbed pairs that have the same ratio
    pace, small = [1.1, 1.3, 0.2, 2.3, 1.7], [("before", 2, 0.1), ("before", 1, 0.4)]
    yield timed(
        speed,
        0,
        5,
        "another program disturbs the second and the third pair",
        factors=pace,
        disturbed=small,
    )
    alike, shown = (
        [("before", 0, 0.7), ("before", 1, 0.7)],
        "another program disturbs the first two pairs",
    )
    yield timed(speed, 0, 5, shown, now=0.3, disturbed=alike)
    yield queued(0, 1, draw.integer(20, 50))
    yield queued(2, 1, 0)
    yield queued(draw.integer(1, 3), 2, draw.integer(20, 50))
    yield queued(1, 5, 0)

    def kept(rows, acts, shown, dtype=torch.float32, flat=False):
        """A step that does ``acts``, with parts of ``rows`` rows."""
        d, h, v = draw.integer(3, 6), draw.integer(2, 6), draw.integer(3, 6)
        x, first, second = (draw.tensor(shape, dtype) for shape in ((sum(rows), d), (d, h), (v, h)))

        def play(subject):
            step = x, rows, [first, second], acts, flat
            came = subject.drive("measuring:kept", *step, of="most_kept")
            return [came["bytes"], came["gradients"]]

        size = f"parts of {listed(rows)} rows" if len(rows) > 1 else counted(*rows, "row")
        return Case(most, play, of="most_kept", shown=f"{size}; {shown}", places=PLACES)

    n = draw.integer(4, 7)
    yield kept([n], _acts("forward 0, backward 0"), "one graph")
    each = "forward {0}, backward {0}"
    in_turn = ", ".join(each.format(part) for part in range(3))
    yield kept([2, n, 3], _acts(in_turn), "forward and backward of each part in turn")
    together = "forward 0, forward 1, forward 2, backward 0, backward 1, backward 2"
    yield kept([2, n, 1], _acts(together), "first each part's forward, then each part's backward")
    overlap = "forward 0, forward 1, backward 0, forward 2, backward 1, backward 2"
    yield kept(
        [2, n, 5], _acts(overlap), "each part's forward before the backward of the part before"
    )
    dropped = "forward 0, drop 0, forward 1, drop 1, forward 2, backward 2"
    yield kept([3, n, 4], _acts(dropped), "the first two graphs are thrown away without a backward")
    again = "forward 0, retain 0, forward 1, backward 0, backward 1"
    yield kept([n, 3], _acts(again), "the first backward retains its graph")
    heads = "forward 0, head 0, drop head 0, forward 1, backward 0, backward 1"
    yield kept([2, n], _acts(heads), "a second head, on the first hidden layer, is thrown away")
    two = "forward 0, head 0, forward 1, drop head 0, backward 0, backward 1"
    yield kept([n, 3], _acts(two), "a second head on the first hidden layer")
    batch = "forward 0, forward 1, backward 0, head 1, backward 1"
    yield kept([1, n], _acts(batch), "after the first backward, a second head on the other part")
    double = torch.float64
    yield kept(
        [2, n], _acts("forward 0, backward 0, forward 1, backward 1"), "float64", dtype=double
    )
    yield kept(
        [n, 2], _acts("forward 0, forward 1"), "the weights are views of one storage", flat=True
    )
    yield kept([1, n], _acts("forward 1, backward 1"), "only the second part is used")
    other = _acts("forward 0, forward 1, drop 0, pick 1")
    yield kept([2, n], other, "a head with an index, and with a tensor that is not in the list")
    yield kept([n, 2], (), "the step does nothing")


def _acts(words):
    """The acts of a step that are written as words, such as ``forward 0, drop head 0``."""
    return [
        (what, int(part)) for what, _, part in (one.rpartition(" ") for one in words.split(", "))
    ]


PLACES = {
    "[0]": "the number of bytes",
    "[1]": Place("the gradients of the weights", returned=False),
}
