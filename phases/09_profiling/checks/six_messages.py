"""Lab 09, exercise 8: Six messages"""

import torch
import torch.nn.functional as F

from hood.judge.checks.compare import Tolerance
from hood.judge.checks.exercise import Case, Check, case

six_messages = Check(
    "six_messages",
    parts={
        "centered and head": 2,
        "scores and word_loss": 2,
        "extended and convolved": 1,
    },
    reads="Twenty messages",
    tolerance=Tolerance(1e-4, 1e-5, "sums in another order"),
)

# The arguments of each function, and their shapes in the colleague's call.
SHAPES = {
    "centered": {"x": (3, 4)},
    "head": {"x": (2, 7, 5), "weight": (5, 6)},
    "scores": {"q": (2, 3, 4, 5), "k": (2, 3, 7, 5)},
    "word_loss": {"logits": (2, 7, 6), "targets": (2, 7)},
    "extended": {"cache": (2, 3, 7, 5), "new": (2, 3, 1, 5)},
    "convolved": {"pictures": (2, 9, 8, 3), "weight": (4, 3, 2, 2)},
}


@six_messages.reference
class _:
    def met():
        return {
            "centered": [("x", 0), ("x", 1)],
            "head": [("weight", 1), ("x", 2)],
            "scores": [("k", 2), ("q", 3)],
            "word_loss": [("logits", 2), ("targets", 1)],
            "extended": [("cache", 2), ("new", 2)],
            "convolved": [("pictures", 1), ("weight", 1)],
        }

    def centered(x):
        return x - (x.sum(1) / x.shape[1])[:, None]

    def head(x, weight):
        return torch.einsum("btd,dv->btv", x, weight)

    def scores(q, k):
        return torch.einsum("bhsd,bhtd->bhst", q, k)

    def word_loss(logits, targets):
        counted = targets != -100
        rows = logits[counted].log_softmax(1)
        return -rows[torch.arange(len(rows)), targets[counted]].mean()

    def extended(cache, new):
        both = cache.new_empty(*cache.shape[:2], cache.shape[2] + new.shape[2], cache.shape[3])
        both[:, :, : cache.shape[2]], both[:, :, cache.shape[2] :] = cache, new
        return both

    def convolved(pictures, weight):
        return F.conv2d(pictures.movedim(3, 1), weight).movedim(1, 3)


def _looked_at(said, names):
    """Facts about impossible answers, and then the answers for some functions, with sorted pairs.

    An answer that isn't two pairs stays as it is.
    """
    found = {name: said[name] for name in names if name in said}
    facts = {"missing": len(found) < len(names), "odd": False, "unknown": False, "beyond": False, "equal": False}  # fmt: skip
    for name, pairs in found.items():
        shapes = SHAPES[name]
        try:
            (a, m), (b, n) = pairs
            if not (isinstance(pairs, (tuple, list)) and isinstance(a, str) and isinstance(b, str)):
                raise TypeError
            if not type(m) is type(n) is int:
                raise TypeError
        except (TypeError, ValueError):
            facts["odd"] = True
            continue
        if not {a, b} <= shapes.keys():
            facts["unknown"] = True
        elif not all(-len(shapes[x]) <= at < len(shapes[x]) for x, at in ((a, m), (b, n))):
            facts["beyond"] = True
        else:
            facts["equal"] |= shapes[a][m] == shapes[b][n]
            found[name] = sorted([(a, m % len(shapes[a])), (b, n % len(shapes[b]))])
    return facts | found


@six_messages.cases
def _(draw):
    sums, products, moved = six_messages.parts

    def sizes(part, names):
        def play(subject):
            said = subject.drive("profiling:said", of="met")
            return _looked_at(said, names) if isinstance(said, dict) else said

        places = {
            "['missing']": "There is no entry for one of the functions.",
            "['odd']": "An entry is not two pairs of a name and a whole number.",
            "['unknown']": "An entry has a name that isn't an argument of the function.",
            "['beyond']": "An entry has a dimension that its argument does not have.",
            "['equal']": "The two dimensions of an entry have the same size in the colleague's call. Their sizes should be different.",
        }
        for name in names:
            places |= {
                f"['{name}']{at}": f"For `{name}`, the two sizes in the error message don't come from these dimensions: look at the message's numbers again."
                for at in ("", *(f"[{i}]{j}" for i in (0, 1) for j in ("", "[0]", "[1]")))
            }
        return Case(part, play, of="met", shown="", places=places, example=False)

    # The right answer of `met` is the same in each run. So `met` alone earns no point: a function
    # must be repaired, too.
    yield sizes(sums, ("centered", "head"))
    yield sizes(products, ("scores", "word_loss"))
    yield sizes(moved, ("extended", "convolved"))

    def call(part, of, *tensors, shown):
        return case(part, *tensors, of=of, shown=f"{of}, {shown}")

    a, b, c, d = draw.shape(4)
    n = draw.integer(2, 4)
    floats = (torch.float32, torch.float64)
    for dtype, layout in zip(floats, ("contiguous", "transposed")):
        what = f"{dtype}, {layout}"

        def t(*shape):
            return draw.tensor(shape, dtype, layout)  # noqa: B023

        yield call(sums, "centered", t(a, b), shown=f"other sizes, {what}")
        yield call(sums, "centered", t(n, n), shown=f"equal sizes, {what}")
        yield call(sums, "head", t(a, b, c), t(c, d), shown=f"other sizes, {what}")
        yield call(sums, "head", t(a, b, n), t(n, n), shown=f"a square weight, {what}")
        yield call(products, "scores", t(2, 3, a, b), t(2, 3, c, b), shown=f"other sizes, {what}")
        yield call(products, "scores", t(2, 3, a, n), t(2, 3, n, n), shown=f"as many keys as numbers in each key, {what}")
        for sizes_of, shown in (((a, b, c), "other sizes"), ((a, n, n), "as many words as classes")):
            targets = draw.tensor(sizes_of[:2], torch.int64).abs() % sizes_of[2]
            if layout == "transposed":
                targets = targets.T.contiguous().T
            yield call(products, "word_loss", t(*sizes_of), targets, shown=f"{shown}, {what}")
            some = targets.clone()
            some[0, 1:] = -100
            some[-1, : draw.integer(0, 1)] = -100
            yield call(products, "word_loss", t(*sizes_of), some, shown=f"{shown}, some words don't count, {what}")
        yield call(moved, "extended", t(2, 3, a, b), t(2, 3, c, b), shown=f"other sizes, {what}")
        yield call(moved, "extended", t(2, 3, n, n), t(2, 3, n, n), shown=f"as many new positions as in the cache, {what}")
        yield call(moved, "extended", t(a, b, 0, c), t(a, b, d, c), shown=f"an empty cache, {what}")
        yield call(moved, "convolved", t(2, a + 2, b + 2, c), t(d, c, 3, 2), shown=f"other sizes, {what}")
        yield call(moved, "convolved", t(2, 3, 3, 3), t(3, 3, 2, 2), shown=f"equal sizes, {what}")
    x = draw.tensor((a, b))
    yield call(sums, "centered", x[:1], shown="a single row")
    yield call(sums, "centered", x[:, :1], shown="a single column")
    far = 2.0**30 + draw.tensor((2, a, b), torch.float64)  # with digits that float32 can't keep
    pairs = torch.tensor([1.0, -1.0], dtype=torch.float64)  # subtracts one of two such numbers from the other
    near = "numbers near 2**30, float64"
    yield call(sums, "centered", far[0], shown=near)
    yield call(sums, "head", far[:, :, :2], pairs[:, None], shown=near)
    yield call(products, "scores", far[None, :, :, :2], pairs.expand(1, 2, 3, 2), shown=near)
    yield call(products, "word_loss", far, torch.zeros(2, a, dtype=torch.int64), shown=near)
    yield call(moved, "extended", far[None], far[None, :, :1], shown=near)
    yield call(moved, "convolved", far[None, ..., :2], pairs.view(1, 2, 1, 1), shown=near)
    yield call(sums, "head", draw.tensor((1, 1, b)), draw.tensor((b, 1)), shown="sizes of 1")
    yield call(sums, "head", draw.tensor((a, b, 1)), draw.tensor((1, 1)), shown="sizes of 1")
    yield call(products, "scores", draw.tensor((1, 1, 1, a)), draw.tensor((1, 1, b, a)), shown="one query")
    yield call(products, "scores", draw.tensor((1, 2, a, 1)), draw.tensor((1, 2, 1, 1)), shown="sizes of 1")
    yield call(products, "word_loss", draw.tensor((1, 1, a)), torch.tensor([[a - 1]]), shown="one word")
    yield call(products, "word_loss", draw.tensor((2, 2, a)), torch.tensor([[-100, -100], [-100, 0]]), shown="one word that counts")
    yield call(moved, "extended", draw.tensor((1, 1, a, 1)), draw.tensor((1, 1, 1, 1)), shown="sizes of 1")
    yield call(moved, "convolved", draw.tensor((1, a, b, 1)), draw.tensor((1, 1, 1, 1)), shown="sizes of 1")
    yield call(moved, "convolved", draw.tensor((1, 2, 3, c)), draw.tensor((d, c, 2, 3)), shown="a weight as large as the pictures")
