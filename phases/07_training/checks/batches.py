"""Lab 07, exercise 1: Which rows, in which order?"""

import math

import torch

from utils.checks.exercise import Case, Check, case, edited
from utils.checks.lab_solution import lab_solution

batches = Check(
    "batches",
    parts={"steps": 1, "in order": 1, "shuffled epochs": 1, "dice of its own": 1},
    reads="Who draws the dice",
)


@batches.reference
class _:
    def steps(n, batch_size, epochs, drop_last):
        whole, rest = divmod(n, batch_size)
        return epochs * (whole + (1 if rest and not drop_last else 0))

    def batches(n, batch_size, seed, drop_last):
        generator = torch.Generator()
        if seed is not None:
            generator.manual_seed(seed)
        while True:
            shuffled = seed is not None
            order = torch.randperm(n, generator=generator).tolist() if shuffled else range(n)
            for begin in range(0, n, batch_size):
                rows = list(order[begin : begin + batch_size])
                if len(rows) == batch_size or not drop_last:
                    yield rows


def _words(n, batch_size, drop_last):
    return f"{n} rows by {batch_size}{', drop_last' if drop_last else ''}"


@batches.cases
def _(draw):
    counted, in_order, shuffled, own = batches.parts
    size = draw.integer(3, 9)
    corners = [(0, size), (1, size), (size - 1, size), (size, size), (size + 1, size), (5, 1)]
    corners += [(1, 10**6), (10**6 + 1, 10**6)]  # a rest that is next to nothing of a batch
    drawn = [(draw.integer(20, 999), draw.integer(2, 19)) for _ in range(3)]
    drawn.append((size * draw.integer(2, 9), size))
    for n, batch_size in corners + drawn:
        epochs = draw.integer(2, 5)
        for drop_last in (False, True):
            asked = n, batch_size, epochs, drop_last
            shown = f"{_words(n, batch_size, drop_last)}, {epochs} epochs"
            yield case(counted, *asked, of="steps", shown=shown)
    yield case(counted, 10, 4, 1, False, of="steps", shown="one epoch")
    yield case(counted, 10, 4, 0, False, of="steps", shown="no epochs")

    def taken(part, count, n, batch_size, seed, drop_last):
        def play(subject):
            return subject.generator(n, batch_size, seed, drop_last, of="batches").take(count)

        epochs = "" if seed is None else f", shuffled{'' if seed else ' with a seed of 0'}"
        words = f"the first {count} batches of {_words(n, batch_size, drop_last)}{epochs}"
        return Case(part, play, of="batches", shown=words)

    for part in (in_order, shuffled):
        sizes = [(7, 3), (6, 3), (draw.integer(9, 20), draw.integer(2, 8)), (4, 1), (3, 3)]
        for n, batch_size in sizes:
            seed = None if part == in_order else draw.integer(0, 10**6)
            per_epoch = math.ceil(n / batch_size)
            for drop_last in (False, True):
                yield taken(part, 2 * per_epoch + 1, n, batch_size, seed, drop_last)
    yield taken(shuffled, 5, 7, 4, 0, False)
    for n in (10**15, 10**15 + 1):
        for drop_last in (False, True):
            yield taken(in_order, 3, n, draw.integer(2, 5), None, drop_last)

    # nothing is left over, so that drop_last decides nothing here
    batch_size = draw.integer(3, 4)
    n = batch_size * draw.integer(3, 4)
    seeds = draw.integer(0, 999), draw.integer(1000, 1999)
    for drop_last in (False, True):

        def in_turn(subject, drop_last=drop_last):
            both = [
                subject.generator(n, batch_size, seed, drop_last, of="batches") for seed in seeds
            ]
            return [one.resume() for _ in range(11) for one in both]

        yield Case(own, in_turn, of="batches", shown="two of them, taking turns")
    settings = {"n": n, "batch_size": batch_size, "drop_last": False}
    places = {"['left alone']": "torch's global generator was asked or seeded."}

    for seed, words in ((seeds[0], ""), (None, ", and the rows are in order")):

        def disturbed(subject, asked=settings | {"seed": seed}):
            return subject.drive("training:undisturbed", asked, 9)

        shown = f"while others seed torch's generator{words}"
        yield Case(own, disturbed, shown=shown, places=places)


steps = lab_solution(__name__, "batches", "steps")
_batches = lab_solution(__name__, "batches")


_batches.__name__ = "batches"


def _counted(*edits):
    return {"steps": edited(steps, *edits)}


def _yielded(*edits):
    return {"batches": edited(_batches, *edits)}


_ORDER = "range(n) if generator is None else torch.randperm(n, generator=generator).tolist()"
_COUNT = "n // batch_size if drop_last else -(-n // batch_size)"
batches.misconception(
    "the rest forgotten", "a last, smaller batch is not counted as a step.", earns=3
)(_counted((_COUNT, "n // batch_size")))
batches.misconception(
    "the rest always counted", "with drop_last, too, the smaller batch is counted.", earns=3
)(_counted((_COUNT, "-(-n // batch_size)")))
batches.misconception(
    "the rest carried over",
    "the count is as if what is left over in one epoch began the first batch of the next.",
    earns=3,
)(
    _counted(
        (f"per_epoch = {_COUNT}", "n = epochs * n"),
        ("epochs * per_epoch", _COUNT),
    )
)
batches.misconception(
    "a whole batch dropped",
    "with drop_last, each epoch is counted a batch short where nothing is left over, too.",
    earns=3,
)(_counted((_COUNT, "-(-n // batch_size) - drop_last")))
batches.misconception(
    "a batch for no rest",
    "an epoch that whole batches fill is counted a batch more.",
    earns=3,
)(_counted((_COUNT, "n // batch_size if drop_last else n // batch_size + (n > 0)")))
batches.misconception(
    "one order for all epochs",
    "every epoch has the order of the first, as where the seed is set anew for each.",
    earns=2,
)(
    _yielded(
        ("while True:", "while True:\n        if generator: generator.manual_seed(seed)"),
    )
)
batches.misconception(
    "a new seed for each epoch",
    "each epoch is drawn from a generator that is seeded anew, with the seed and the epoch's number.",
    earns=2,
)(
    _yielded(
        ("while True:", "epoch = -1\n    while True:\n        epoch += 1"),
        (_ORDER, _ORDER.replace("generator=generator", "generator=generator.manual_seed(seed + epoch)")),
    )
)
batches.misconception(
    "two draws for each epoch",
    "an epoch draws twice, so from the second on its order is that of a later one.",
    earns=2,
)(
    _yielded(
        ("order = " + _ORDER, "generator and torch.randperm(n, generator=generator)\n        order = " + _ORDER),
    )
)
batches.misconception(
    "a seed of 0 is none", "with a seed of 0, rows come in order, as where it is None.", earns=3
)(_yielded(("seed is None", "not seed")))
batches.misconception(
    "the global dice, seeded",
    "the order comes from torch's global generator, which others seed and ask as well.",
    earns=3,
)(
    _yielded(
        ("torch.Generator().manual_seed(seed)", "torch.manual_seed(seed)"),
        (", generator=generator", ""),
    )
)
batches.misconception(
    "a loader in order",
    "without a seed torch's global generator is asked or seeded, as where a DataLoader deals the rows.",
    earns=3,
)(
    _yielded(
        (
            "    while True:",
            "    while generator is None:\n"
            "        yield from torch.utils.data.DataLoader(\n"
            "            range(n), batch_size, drop_last=drop_last, collate_fn=list)\n"
            "    while True:",
        ),
    )
)
batches.misconception(
    "drop_last unused", "with drop_last, the smaller batch comes all the same.", earns=2
)(_yielded(("n - n % batch_size if drop_last else n", "n")))
batches.misconception(
    "always dropped", "the smaller batch at the end of an epoch never comes.", earns=2
)(_yielded(("n - n % batch_size if drop_last else n", "n - n % batch_size")))
batches.misconception(
    "one epoch", "it ends after the first epoch.", earns=1
)(_yielded(("while True:", "for _ in range(1):")))
batches.misconception(
    "all rows first",
    "before the first batch it builds a list that grows with the number of rows, and for very many there is no memory.",
    earns=3,
)(_yielded((_ORDER, _ORDER.replace("range(n)", "list(range(n))"))))
batches.misconception(
    "the rows shuffled batch by batch",
    "each batch holds neighbours, and only their turns are shuffled.",
    earns=2,
)(
    _yielded(
        (_ORDER, "range(n)"),
        (
            "range(0, stop, batch_size):",
            "(range(0, stop, batch_size) if seed is None else"
            " (batch_size * torch.randperm(-(-stop // batch_size), generator=generator)).tolist()):",
        ),
    )
)


@batches.alternate("a tensor split into pieces")
class _:
    def steps(n, batch_size, epochs, drop_last):
        total = 0
        for _ in range(epochs):
            total += n // batch_size
            if n % batch_size > 0 and not drop_last:
                total += 1
        return total

    def batches(n, batch_size, seed, drop_last):
        if seed is None:
            at = 0
            while True:
                left = n - at
                if left <= 0 or (drop_last and left < batch_size):
                    at = 0
                    continue
                yield [at + k for k in range(min(batch_size, left))]
                at += batch_size
        g = torch.Generator()
        g.manual_seed(seed)
        while True:
            for piece in torch.randperm(n, generator=g).split(batch_size):
                if not drop_last or len(piece) == batch_size:
                    yield piece.tolist()


@batches.alternate("a function that is asked again and again")
class _:
    def steps(n, batch_size, epochs, drop_last):
        return epochs * ((n if drop_last else n + batch_size - 1) // batch_size)

    def batches(n, batch_size, seed, drop_last):
        order, at = range(n), 0
        dice = torch.Generator().manual_seed(0 if seed is None else seed)
        if seed is not None:
            order = torch.randperm(n, generator=dice).tolist()

        def following():
            nonlocal order, at
            if at >= n or (drop_last and at + batch_size > n):
                at = 0
                if seed is not None:
                    order = torch.randperm(n, generator=dice).tolist()
            at += batch_size
            return list(order[at - batch_size : at])

        return iter(following, None)


batches.equivalent(
    ("n % batch_size > 0", "n % batch_size != 0"),
    ("len(piece) == batch_size", "len(piece) >= batch_size"),
    because="a rest is not negative, and no piece is longer than a batch",
)
batches.equivalent(
    ("0 if seed is None", "1 if seed is None"),
    ("0 if seed is None", "-1 if seed is None"),
    because="without a seed nobody asks these dice",
)
