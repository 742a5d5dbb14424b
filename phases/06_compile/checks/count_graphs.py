"""Lab 06, exercise 2: How many graphs?"""

import torch

from hood.judge.checks.exercise import ByHand, Case, Check
from hood.judge.checks.lab_solution import lab_solution

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
    """tests/phases/test_06_references.py tests that torch makes the same numbers of graphs."""
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
    """A graph's guards. None means that a size, or k, is open."""

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


MAKES = {
    True: "a new graph, but your numbers say that it makes no new graph",
    False: "no new graph, but your numbers say that it makes a new graph",
}
F32, F64, I64, F16 = torch.float32, torch.float64, torch.int64, torch.float16


@count_graphs.cases
def _(draw):
    kinds, sizes, numbers, limit = count_graphs.parts

    def named(calls):
        return "; ".join(f"x {shape} {str(dtype)[6:]}, k = {k}" for shape, dtype, k in calls)

    def made(counts):
        """For each call, whether it made a graph."""
        return [now > before for before, now in zip([0, *counts], counts, strict=False)]

    def asked(part, calls):
        """First compare for each call whether it makes a graph, and then the numbers of graphs.

        So a verdict names the first call about which the numbers are wrong.
        """
        right, names = made(_count(calls)), [f"call {at + 1}" for at in range(len(calls))]

        def play(subject):
            came = subject(calls)
            said = right
            if isinstance(came, list) and all(isinstance(count, int) for count in came):
                said = made(came) if len(came) == len(calls) else right
            same = [one == other for one, other in zip(said, right, strict=True)]
            return dict(zip(names, same, strict=True)) | {"counts": came}

        places = {
            f"['{name}']": f"{name.capitalize()}, {named([one])}, makes {MAKES[graph]}."
            for name, one, graph in zip(names, calls, right, strict=True)
        }
        places["['counts']"] = "the numbers of graphs"
        shown = named(calls) if len(calls) < 7 else f"{len(calls)} calls, the first of them {named(calls[:1])}"
        return Case(part, play, shown=shown or "no calls", places=places)

    def repeated(part, calls, extra):
        """Some calls, and then random repetitions of them, which test what is open and what fits."""
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
    # a size is open, too, if it was another number two graphs ago, or if x had other dimensions
    # then
    yield asked(kinds, [((n,), F32, k), ((m,), F32, k), ((m,), F64, k), ((o,), F64, k)])
    yield asked(kinds, [((n, m), F32, k), ((n,), F32, k), ((n,), F64, k), ((o,), F64, k)])
    # if the dimensions change, an earlier graph keeps its guards
    yield asked(kinds, [((n, m), F32, k), ((n,), F32, k), ((n, o), F64, k), ((n, o), F32, k)])
    yield asked(sizes, [(size, F32, k) for size in ((n, m), (o, m), (o, p), (n, n))])

    # a call that fits an earlier graph makes no graph, even if many graphs were made since then
    yield asked(kinds, [((n,), F32, k), ((n, m), F32, k), ((n,), F32, k), ((n, m), F32, k), ((), F32, k), ((n,), F32, k)])
    yield asked(sizes, [((size,), F32, k) for size in (n, 1, 0, n, 1, 0)])
    yield asked(sizes, [((size,), F32, k) for size in (n, m, o, 1, 0, p)])
    yield asked(sizes, [((size,), F32, k) for size in (0, n, 0, m, 1, 0)])
    yield asked(sizes, [((size,), F32, k) for size in (1, n, m, 1, 2)])
    yield asked(sizes, [((n, m), F32, k), ((n, o), F32, k), ((n, p), F32, k), ((m, p), F32, k), ((o, m), F32, k)])
    yield asked(sizes, [((n, m), F32, k), ((o, o), F32, k), ((p, n), F32, k), ((1, n), F32, k), ((1, m), F32, k)])
    # a size that has changed is open from then on: it may be 2 or any other number above 1
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
