"""Lab 07, exercise 2: A loader of your own"""

import torch

from hood.judge.checks.compare import EXACT
from hood.judge.checks.exercise import ByHand, Case, Check

loader = Check(
    "Loader",
    parts={
        "in order": 1,
        "shuffled epochs": 1,
        "read when needed": 1,
        "tensors and numbers": 1,
        "tuples and dicts": 1,
    },
    reads="What a loader does",
    tolerance=EXACT,
    by_hand=ByHand(
        because="the exercise is to build what `torch.utils.data` has",
        forbid_names=frozenset({"torch.utils.data", "torch.utils.data.*"}),
    ),
)


@loader.reference
class Loader:
    def __init__(self, dataset, batch_size, shuffle, drop_last, generator, collate):
        self.dataset, self.size = dataset, batch_size
        self.dice = generator if shuffle else None
        whole, rest = divmod(len(dataset), batch_size)
        self.number = whole if drop_last else whole + (rest > 0)
        self.collate = collate

    def __len__(self):
        return self.number

    def __iter__(self):
        n = len(self.dataset)
        order = None if self.dice is None else torch.randperm(n, generator=self.dice).tolist()
        for begin in range(0, self.number * self.size, self.size):
            rows = range(begin, min(begin + self.size, n))
            items = [self.dataset[k if order is None else order[k]] for k in rows]
            yield self.put(items) if self.collate is None else self.collate(items)

    def put(self, items):
        for kind, made in (
            (torch.Tensor, torch.stack),
            (bool, torch.BoolTensor),
            (int, torch.LongTensor),
            (float, torch.DoubleTensor),
        ):
            if isinstance(items[0], kind):
                return made(items)
        if isinstance(items[0], tuple):
            return tuple(self.put([item[at] for item in items]) for at in range(len(items[0])))
        if isinstance(items[0], dict):
            return {key: self.put([item[key] for item in items]) for key in items[0]}
        return items


PLACES = {
    "['lengths']": "`len(loader)`",
    "['over']": "An epoch ends too early or too late.",
    "['sizes']": "A batch has too many items, or too few.",
    "['each once']": "An item comes twice in an epoch, or is not in the dataset.",
    "['left alone']": "Torch's global random generator was used or seeded.",
    "['batches']": "the batches",
}
ORDER = "`torch.randperm(len(dataset), generator=generator)`"


def _facts(came, items, turns):
    """How many items each batch has, and whether no item comes twice in an epoch."""
    lists = [batch if isinstance(batch, list | tuple) else [] for batch in came["batches"]]
    epochs = {turn: [] for turn in turns}
    for turn, batch in zip(turns, lists):
        epochs[turn] += batch
    once = all(one in items for seen in epochs.values() for one in seen)
    once = once and all(seen.count(one) == 1 for seen in epochs.values() for one in seen)
    return {"sizes": [len(batch) for batch in lists], "each once": once}


def _settings(batch_size, drop_last=False, collate="list", seed=None, **more):
    return {
        "batch_size": batch_size,
        "shuffle": seed is not None,
        "drop_last": drop_last,
        "generator": seed,
        "collate": collate,
        **more,
    }


def _asked(part, dataset, loaders, turns, words, noted=False):
    """A case about the batches of ``turns``. A number means as many batches of the first loader."""
    turns = [(0, 0)] * turns if isinstance(turns, int) else turns
    places = dict(PLACES)
    for number, (_, epoch) in enumerate(turns):
        at = f"['batches'][{number}]"
        if part == "read when needed":
            places[f"{at}['items']"] = "the items of a batch"
            places[f"{at}['read']"] = (
                "The items are right, but they were not read as required: each item once, in the batch's " "order, when that batch is requested, and no other item before."
            )
        elif part == "shuffled epochs" and len(loaders) == 1:
            places[at] = f"The items do not come in the order that {ORDER} gives."
            if epoch:
                places[at] = "The first epoch has the right order, but a later epoch has not."

    def play(subject):
        came = subject.drive("training:dealt", dataset, loaders, turns, noted)
        if part == "in order":
            return {key: came[key] for key in ("lengths", "over", "batches")}
        if part == "read when needed":
            return {key: came[key] for key in ("over", "batches")}
        if part != "shuffled epochs":  # of collating no more is asked than that
            return {"batches": came["batches"]}
        items = list(dataset.values()) if isinstance(dataset, dict) else dataset
        facts = _facts(came, items, turns)
        return {"over": came["over"], "left alone": came["left alone"], **facts, "batches": came["batches"]}

    return Case(part, play, shown=words, places=places)


def _said(n, batch_size, drop_last):
    items = "1 item" if n == 1 else f"{n} items"
    return f"{items} in batches of {batch_size}{', drop_last' if drop_last else ''}"


@loader.cases
def _(draw):
    in_order, shuffled, needed, flat, nested = loader.parts

    def words(n):
        return [f"{draw.integer(10, 99)} {k}" for k in range(n)]

    size = draw.integer(3, 6)
    sizes = [(0, size), (1, size), (size - 1, size), (size, size), (size + 1, size), (5, 1)]
    sizes += [(2 * size, size), (draw.integer(9, 20), draw.integer(2, 8)), (0, 1), (1, 1)]
    for n, batch_size in sizes:
        for drop in (False, True):
            settings = [_settings(batch_size, drop)]
            turns = [(0, epoch) for epoch in range(2) for _ in range(n // batch_size + 2)]
            yield _asked(in_order, words(n), settings, turns, _said(n, batch_size, drop))
    for n, batch_size in ((10**6 + 1, 10**6), (10**15, 3), (10**15 + 1, draw.integer(4, 6))):
        for drop in (False, True):
            turns = 3 if n > 10**9 else 0
            settings = [_settings(batch_size, drop)]
            yield _asked(in_order, n, settings, turns, f"a range of {_said(n, batch_size, drop)}")
    by_key = dict(enumerate(words(7)))
    yield _asked(in_order, by_key, [_settings(3)], 4, "a dict with the keys 0 to 6, in batches of 3")
    rows = [draw.tensor((n,), torch.int64) for n in (2, draw.integer(3, 6), 1, 4)]
    yield _asked(in_order, rows, [_settings(2, collate="padded")], 3, "a collate that pads")
    for name in ("the list itself", "nothing"):
        said = "a collate that returns its list" if name != "nothing" else "a collate that returns None"
        yield _asked(in_order, words(5), [_settings(2, collate=name)], 4, said)
    numbers = [draw.integer(1, 9) for _ in range(6)]
    two = [_settings(2, collate="total"), _settings(3, True)]
    turns = [(1, 0), (0, 0), (1, 0), (0, 0), (1, 0), (0, 0), (0, 0)]
    yield _asked(in_order, numbers, two, turns, "two loaders of one dataset, one of them with `sum`")

    def seed():
        return draw.integer(0, 10**6)

    for n, batch_size in ((7, 3), (8, 4), (draw.integer(9, 20), draw.integer(2, 8)), (5, 1), (4, 9)):
        for drop in (False, True):
            settings = [_settings(batch_size, drop, seed=seed())]
            turns = [(0, epoch) for epoch in range(3) for _ in range(n // batch_size + 2)]
            said = f"{_said(n, batch_size, drop)}, shuffled, three epochs"
            yield _asked(shuffled, words(n), settings, turns, said)
    for nothing in ([], {}):
        yield _asked(shuffled, nothing, [_settings(2, seed=0)], 1, "no items, shuffled")
    by_key = dict(enumerate(words(8)))
    yield _asked(shuffled, by_key, [_settings(3, seed=0)], 3, "a dict with the keys 0 to 7, shuffled")
    shared = seed()
    plain = _settings(4, generator=shared)
    both = [_settings(4, seed=shared), _settings(3, seed=shared), plain]
    turns = [(2, 0), (1, 0), (2, 0), (1, 0), (1, 0), (2, 0), (0, 0), (0, 0), (0, 0), (1, 1), (1, 1)]
    said = "three loaders with one generator, two of them shuffled"
    yield _asked(shuffled, words(8), both, turns, said)
    own = [_settings(4, seed=seed()), _settings(4, seed=seed())]
    turns = [(0, 0), (1, 0), (0, 0), (1, 0), (0, 1), (1, 1), (0, 1)]
    yield _asked(shuffled, words(8), own, turns, "two loaders, each with its own generator")
    yield _asked(shuffled, words(4), [_settings(3)], 2, "not shuffled, and without a generator")

    # an item, and how many items were read before it
    for seeded in (None, seed()):
        for drop in (False, True):
            settings = [_settings(3, drop, "when read", seeded)]
            said = f"{_said(7, 3, drop)}{'' if seeded is None else ', shuffled'}"
            turns = [(0, 0)] * 4 + [(0, 1)] * 2
            yield _asked(needed, words(7), settings, turns, f"{said}, one epoch after the other", True)
            turns = [(0, 0), (0, 1), (0, 0), (0, 2), (0, 1), (0, 0), (0, 1), (0, 1), (0, 2)]
            yield _asked(needed, words(7), settings, turns, f"{said}, three epochs at once", True)
    settings = [_settings(4, False, "when read", seed()), _settings(2, False, "when read")]
    turns = [(1, 0), (0, 0), (1, 0), (0, 0), (1, 0)]
    yield _asked(needed, words(8), settings, turns, "two loaders of one dataset, taking turns", True)

    def put(part, items, batch_size, said):
        settings = [_settings(batch_size, collate=None)]
        return _asked(part, items, settings, len(items) // batch_size, said)

    def tensors(count, shape, dtype=torch.float32):
        return [draw.tensor(shape, dtype) for _ in range(count)]

    n = draw.integer(2, 4)
    for dtype in (torch.float32, torch.int32, torch.float64, torch.bool):
        yield put(flat, tensors(2 * n + 1, (3, n), dtype), n, f"tensors of {dtype}, (3, {n})")
    yield put(flat, tensors(3, (n,)), 1, "tensors, a batch of one")
    yield put(flat, tensors(5, ()), 2, "tensors without a dimension")
    yield put(flat, tensors(3, (0, 2)), 2, "tensors (0, 2)")
    yield put(flat, [draw.integer(1, 99) / 10 + 1e-12 for _ in range(5)], 2, "floats")
    yield put(flat, [float(draw.integer(0, 1)) for _ in range(3)], 3, "floats 0.0 and 1.0")
    yield put(flat, [0, 1, draw.integer(-9, -1), 2**40 + draw.integer(0, 99)], 3, "ints")
    yield put(flat, [True, False, True], 2, "bools")
    yield put(flat, words(5), 2, "strings")
    yield put(flat, [1.5, draw.integer(2, 9) / 8], 1, "floats, a batch of one")

    def pair(k):
        return draw.tensor((2,)), k

    yield put(nested, [pair(k) for k in range(5)], 2, "pairs of a tensor and an int")
    yield put(nested, [(draw.integer(0, 9), f"word {k}", 0.1 * k) for k in range(4)], 3, "triples")
    yield put(nested, [(k,) for k in range(3)], 2, "tuples of one")
    yield put(nested, [pair(1), pair(2)], 1, "pairs, a batch of one")
    fields = [{"x": draw.tensor((2, 3)), "n": draw.integer(0, 9), "word": f"w{k}"} for k in range(5)]
    yield put(nested, fields, 3, "dicts of a tensor, an int and a string")
    yield put(nested, fields[:2], 1, "dicts, a batch of one")
    turned = [dict(list(one.items())[:: -1 if k % 2 else 1]) for k, one in enumerate(fields)]
    yield put(nested, turned, 2, "dicts with their keys in another order")
    yield put(nested, [{"a": k % 2 == 0, "b": k / 10} for k in range(4)], 2, "dicts of bools and floats")
    yield put(nested, [(pair(k), k) for k in range(3)], 2, "tuples in tuples")
    yield put(nested, [(word, draw.integer(0, 9)) for word in words(4)], 2, "pairs of a string and an int")
    deep = [({"x": (k, (0.5, {"y": draw.tensor((1,))}))}, {"z": {"t": pair(k)}}) for k in range(3)]
    yield put(nested, deep, 2, "tuples and dicts inside each other, four deep")
