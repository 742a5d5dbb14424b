"""Lab 07, exercise 1: Which rows, in which order?"""

import math

import torch

from utils.checks.exercise import Case, Check, case

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
