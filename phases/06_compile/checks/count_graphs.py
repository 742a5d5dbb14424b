"""Lab 06, exercise 2: How many graphs?"""

import torch

from utils.checks.exercise import ByHand, Case, Check, edited
from utils.checks.lab_solution import lab_solution

count_graphs = Check(
    "count_graphs",
    parts={"dtypes and dimensions": 1, "sizes": 1, "numbers": 1, "the limit": 1},
    reads="Guards: what a graph believes",
    by_hand=ByHand(
        because="the exercise is to predict what the compiler will do",
        forbid_names=frozenset(
            {"compile", "*dynamo*", "count_as_torch_does", "drivers", "driver", "*inductor*"}
        ),
    ),
)


@count_graphs.reference
def _(calls):
    """That torch says the same is tested in tests/phases/test_06_references.py."""
    made, sizes, number, found = [], None, set(), []
    for shape, dtype, k in calls:
        if len(made) < 8 and not any(graph.fits(shape, dtype, k) for graph in made):
            number.add(k)
            if sizes is None:
                sizes = [{size} for size in shape]
            elif sizes != "all open" and len(sizes) == len(shape):
                sizes = [seen | {size} for seen, size in zip(sizes, shape, strict=True)]
            else:
                sizes = "all open"
            made.append(_Graph(shape, dtype, k, sizes, number))
        found.append(len(made))
    return found


class _Graph:
    """A graph's guards; None is what is open."""

    def __init__(self, shape, dtype, k, sizes, number):
        self.dtype = dtype
        self.sizes = [
            None if size > 1 and (sizes == "all open" or len(sizes[dim]) > 1) else size
            for dim, size in enumerate(shape)
        ]
        self.number = None if len(number) > 1 else k

    def fits(self, shape, dtype, k):
        return (
            dtype == self.dtype
            and len(shape) == len(self.sizes)
            and self.number in (None, k)
            and all(
                size == guard or (guard is None and size > 1)
                for size, guard in zip(shape, self.sizes, strict=True)
            )
        )


F32, F64, I64, F16 = torch.float32, torch.float64, torch.int64, torch.float16


@count_graphs.cases
def _(draw):
    kinds, sizes, numbers, limit = count_graphs.parts

    def named(calls):
        return ", ".join(f"{shape} {str(dtype)[6:]} {k}" for shape, dtype, k in calls)

    def made(counts):
        """Which calls have made a graph."""
        return [now > before for before, now in zip([0, *counts], counts, strict=False)]

    def asked(part, calls):
        """Facts come first: of the first call that is said to make a graph and makes none, or the
        other way round, that is told."""
        right, names = made(_count(calls)), [f"call {at + 1}" for at in range(len(calls))]

        def play(subject):
            came = subject(calls)
            said = right
            if isinstance(came, list) and all(isinstance(count, int) for count in came):
                said = made(came) if len(came) == len(calls) else right
            same = [one == other for one, other in zip(said, right, strict=True)]
            return dict(zip(names, same, strict=True)) | {"counts": came}

        places = {
            f"['{name}']": f"It is wrong whether the number rises with {name}, {named([one])}."
            for name, one in zip(names, calls, strict=True)
        }
        places["['counts']"] = "the numbers of graphs"
        return Case(part, play, shown=named(calls) or "no calls", places=places)

    def repeated(part, calls, extra):
        """Some calls, and then drawn ones of the same: what is open and what fits must be known."""
        return asked(part, [*calls, *(draw.choice(calls) for _ in range(extra))])

    n, m, o, p = draw.sample(range(2, 10), 4)
    k = draw.integer(2, 9)
    yield repeated(kinds, [((n,), F32, k), ((n,), F64, k), ((n,), I64, k)], 3)
    yield asked(kinds, [])
    yield asked(kinds, [((), F32, k), ((n,), F32, k), ((m,), F32, k)])
    yield repeated(kinds, [((n, m), F32, k), ((n,), F32, k), ((n, o), F32, k), ((o,), F32, k)], 2)
    yield asked(kinds, [((n,), F32, k), ((1, m), F32, k), ((o,), F32, k), ((1, o), F32, k), ((1,), F32, k)])
    yield asked(kinds, [((), F32, k), ((n,), F32, k), ((m,), F64, k), ((n,), F64, k), ((), F64, k), ((), F32, k)])
    yield asked(kinds, [((n,), F32, k), ((m,), F64, k), ((o,), F64, k), ((o,), F32, k), ((n,), F32, k)])
    yield asked(kinds, [((n,), F32, k), ((n,), F64, k), ((m,), F64, k), ((o,), F64, k)])

    # what fits a graph of before makes none, however many came since
    yield asked(kinds, [((n,), F32, k), ((n, m), F32, k), ((n,), F32, k), ((n, m), F32, k), ((), F32, k), ((n,), F32, k)])
    yield asked(sizes, [((size,), F32, k) for size in (n, 1, 0, n, 1, 0)])
    yield asked(sizes, [((size,), F32, k) for size in (n, m, o, 1, 0, p)])
    yield asked(sizes, [((size,), F32, k) for size in (0, n, 0, m, 1, 0)])
    yield asked(sizes, [((size,), F32, k) for size in (1, n, m, 1, 2)])
    yield asked(sizes, [((n, m), F32, k), ((n, o), F32, k), ((n, p), F32, k), ((m, p), F32, k), ((o, m), F32, k)])
    yield asked(sizes, [((n, m), F32, k), ((o, o), F32, k), ((p, n), F32, k), ((1, n), F32, k), ((1, m), F32, k)])
    # a size that has changed is open from then on, at 2 as at any other above 1
    yield asked(sizes, [((size,), F32, k) for size in (3, 2, 5, 2, 1)])
    moves = ((n, m), (o, m), (p, m), (p, o), (n, n))
    yield asked(sizes, [(size, F32, k) for size in moves])
    yield asked(sizes, [((size,), F32, k) for size in (n, 0, m, 0, 1)])
    yield asked(sizes, [((size,), F32, k) for size in (n, 1, m, 1, 0)])
    many = [((draw.integer(0, 4), draw.integer(1, 3)), F32, k) for _ in range(8)]
    yield asked(sizes, many)

    yield asked(numbers, [((n,), F32, one) for one in (k, k + 1, k + 2, 0, 1, -1)])
    yield asked(numbers, [((n,), F32, one) for one in (0, 1, 1, 0, k)])
    yield asked(numbers, [((n,), F32, one) for one in (k + 2, k, k + 1)])
    yield asked(numbers, [((n,), F32, one) for one in (0.5 * k, 1.0, 2.0, 0.0, -1.0)])
    yield asked(numbers, [((n,), F32, k), ((m,), F32, k), ((o,), F32, k + 1), ((p,), F32, k), ((p,), F32, 1)])
    yield asked(numbers, [((n,), F32, k), ((n,), F64, k + 1), ((n,), F32, k + 1), ((n,), F64, 0), ((n,), F32, k)])

    yield asked(numbers, [((n,), F32, k), ((n,), F32, k + 1), ((n,), F64, k + 1), ((n,), F64, k + 2)])
    yield asked(numbers, [((n,), F32, k), ((n,), F32, k + 1), ((m,), F32, k + 1), ((o,), F32, k)])

    ranks = (((n, m), k), ((o,), k), ((p,), k + 1), ((p,), k + 2), ((n, m), k + 2))
    yield asked(numbers, [(shape, F32, one) for shape, one in ranks])

    dtypes = [F32, F64, I64, F16, torch.int32, torch.int16, torch.uint8, torch.int8]
    kinds_of_x = draw.sample([(shape, dtype, k) for dtype in dtypes for shape in ((n,), (n, n))], 11)
    yield asked(limit, [*kinds_of_x, *draw.sample(kinds_of_x, 3)])
    yield asked(limit, [((n,) * rank, F32, k) for rank in range(8)] + [((m,), F32, k), ((m,), F64, k), ((m,), F32, 1)])


_count = lab_solution(__name__, "count_graphs")


def _misconception(name, explanation, earns, *edits):
    count_graphs.misconception(name, explanation, earns=earns)(edited(_count, *edits))


_misconception(
    "nothing opens",
    "each new size and each new number makes a graph: none is ever open.",
    1,
    ("guards[name] = None if still_open and (name == 'k' or value > 1) else value", "guards[name] = value"),
)
_misconception(
    "open from the start",
    "in the first graph already, sizes from 2 up and numbers are taken to be open.",
    1,
    ("still_open = name in changed or (name != 'k' and len(ranks) > 1)", "still_open = True"),
)
_misconception(
    "1 is a size like any other",
    "an open size is taken to be 0 or 1 as well.",
    2,
    ("guards[name] is None and (name == 'k' or value > 1)", "guards[name] is None"),
    ("still_open and (name == 'k' or value > 1)", "still_open"),
)
_misconception(
    "0 and 1 exact for numbers, too",
    "the number k is treated as a size is: 0 and 1 get graphs of their own.",
    3,
    ("guards[name] is None and (name == 'k' or value > 1)", "guards[name] is None and value > 1"),
    ("still_open and (name == 'k' or value > 1)", "still_open and value > 1"),
)
_misconception(
    "no limit",
    "a ninth graph is made, and a tenth.",
    3,
    ("len(graphs) < 8 and ", ""),
)
_misconception(
    "one open, all open",
    "one size that changes opens all sizes.",
    3,
    ("still_open = name in changed or (name != 'k' and len(ranks) > 1)",
     "still_open = name in changed or (name != 'k' and (len(ranks) > 1 or bool(changed - {'k'})))"),
)  # fmt: skip
_misconception(
    "dimensions open nothing",
    "after another number of dimensions, sizes are exact that are open.",
    3,
    (" or (name != 'k' and len(ranks) > 1)", ""),
)
_misconception(
    "the last graph alone",
    "a call is held against the newest graph, and the older ones are forgotten.",
    1,
    ("for graph in graphs)", "for graph in graphs[-1:])"),
)
_misconception(
    "the dtype forgotten",
    "a graph is taken to fit every dtype.",
    1,
    ("known == kind", "known[1] == kind[1]"),
)


_misconception(
    "an open size from 1 up",
    "an open size is taken to fit 1 as well.",
    2,
    (
        "guards[name] is None and (name == 'k' or value > 1)",
        "guards[name] is None and (name == 'k' or value > 0)",
    ),
)
_misconception(
    "made for 1, and open",
    "a graph that is made for a size of 0 or 1 is taken to be open there.",
    2,
    ("still_open and (name == 'k' or value > 1)", "still_open"),
)
_misconception(
    "numbers exact",
    "the number k is never open: each value of it makes a graph.",
    3,
    ("still_open = name in changed", "still_open = (name in changed and name != 'k')"),
)
_misconception("nine", "a ninth graph is made.", 3, ("len(graphs) < 8", "len(graphs) < 9"))
_misconception(
    "changes of each dtype",
    "what has changed is kept for each dtype by itself.",
    2,
    ("first.setdefault(name, value)", "first.setdefault((dtype, name), value)"),
    ("changed.add(name)", "changed.add((dtype, name))"),
    ("name in changed", "(dtype, name) in changed"),
)
_misconception(
    "numbers open sizes",
    "a number k that changes opens the sizes, too.",
    3,
    ("{**dict(enumerate(shape)), 'k': k}", "{'k': k, **dict(enumerate(shape))}"),
    ("len(ranks) > 1", "(len(ranks) > 1 or 'k' in changed)"),
)
_misconception(
    "another dtype opens sizes",
    "another dtype opens the sizes, too.",
    3,
    ("ranks.add(len(shape))", "ranks.add(kind)"),
)
_misconception(
    "the number opens with the dimensions",
    "another number of dimensions opens the number k, too.",
    3,
    ("name in changed or (name != 'k' and len(ranks) > 1)", "name in changed or len(ranks) > 1"),
)


@count_graphs.misconception(
    "different calls counted", "each call that was not made before makes a graph.", earns=0
)
def _(calls):
    return [len(set(calls[: i + 1])) for i in range(len(calls))]


@count_graphs.alternate("a list of patterns, and what has been seen")
def _(calls):
    patterns, seen, counts = [], [], []

    def fits(pattern, shape, dtype, k):
        sizes, kind, number = pattern
        if kind != dtype or len(sizes) != len(shape) or (number != "any" and number != k):
            return False
        return all(b > 1 if a == "any" else a == b for a, b in zip(sizes, shape))

    for shape, dtype, k in calls:
        if len(patterns) < 8 and not any(fits(one, shape, dtype, k) for one in patterns):
            seen.append((shape, k))
            ranks = {len(old) for old, _ in seen}
            sizes = []
            for i, size in enumerate(shape):
                moves = len(ranks) > 1 or len({old[i] for old, _ in seen}) > 1
                sizes.append("any" if moves and size > 1 else size)
            number = k if len({old for _, old in seen}) == 1 else "any"
            patterns.append((sizes, dtype, number))
        counts.append(len(patterns))
    return counts


@count_graphs.alternate("a recursive walk with a table of states")
def _(calls):
    state = {"graphs": [], "open": set(), "last": {}}

    def guard(where, value):
        last = state["last"].get(where, value)
        state["last"][where] = value
        if last != value:
            state["open"].add(where)
        return where in state["open"]

    def walk(rest):
        if not rest:
            return []
        (shape, dtype, k), *others = rest
        for kind, sizes, number in state["graphs"]:
            if kind != dtype or len(sizes) != len(shape) or not (number is None or number == k):
                continue
            if all(s == g or (g is None and s > 1) for s, g in zip(shape, sizes)):
                break
        else:
            if len(state["graphs"]) < 8:
                ranks = guard("rank", len(shape))
                moved = [guard(i, size) for i, size in enumerate(shape)]
                sizes = [
                    None if (ranks or m) and size > 1 else size
                    for m, size in zip(moved, shape)
                ]
                state["graphs"].append((dtype, sizes, None if guard("k", k) else k))
        return [len(state["graphs"]), *walk(others)]

    return walk(calls)


count_graphs.equivalent(
    ("dtype, len(shape)", "len(shape), dtype"),
    ("guard('rank', len(shape))", "guard(len(shape), 'rank')"),
    ("'rank'", "'rank_'"),
    ("'k', k", "'k_', k"),
    because="what a thing is called, or where it stands in a tuple, is the solution's own affair",
)
count_graphs.equivalent(
    ("< 8", "!= 8"),
    ("len(ranks) > 1", "len(ranks) != 1"),
    ("seen}) > 1", "seen}) != 1"),
    ("}) == 1", "}) <= 1"),
    because="there are never more than eight graphs, and at least one number of dimensions or value",
)
