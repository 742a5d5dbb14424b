"""Lab 08, exercise 4: Picking a word"""

import itertools
import math

import torch

from utils.checks.exercise import Check, case, edited
from utils.checks.lab_solution import lab_solution

pick = Check(
    "pick",
    parts={"the likeliest": 1, "temperature": 1, "top-k": 1, "top-p": 1},
    reads="Picking a word",
)


def _ranking(row, temperature, top_k):
    """Probabilities of the words that stay after top-k, by rank: pairs of id and share."""
    largest = max(row)
    shares = [math.exp((logit - largest) / temperature) for logit in row]
    ranked = sorted(range(len(row)), key=lambda word: (-row[word], word))[:top_k]
    total = sum(shares[word] for word in ranked)
    return [(word, shares[word] / total) for word in ranked]


def _staying(row, temperature, top_k, top_p):
    """Id -> probability of the words that stay, in the order of their ids."""
    found, reached = {}, 0.0
    for word, share in _ranking(row, temperature, top_k):
        if top_p is None or reached < top_p:
            found[word] = share
        reached += share
    total = sum(found.values())
    return {word: found[word] / total for word in sorted(found)}


@pick.reference
def _(logits, u, temperature, top_k, top_p):
    words = []
    for row, number in zip(logits.tolist(), u.tolist()):
        if temperature == 0:
            words.append(row.index(max(row)))
            continue
        staying = _staying(row, temperature, top_k, top_p)
        sums = itertools.accumulate(staying.values())
        words.append(next(word for word, reached in zip(staying, sums) if reached > number))
    return torch.tensor(words)


@pick.cases
def _(draw):
    likeliest, temperature, first_k, first_p = pick.parts
    FRACTIONS = (0.25, 0.5, 0.75)

    def clear(rows, heat, k):
        """A top_p that no sum of a ranking comes near, so that rounding decides nothing."""
        sums = [1.0]
        for row in rows:
            reached = 0.0
            for _, share in _ranking(row, heat, k):
                reached += share
                sums.append(reached)
        tried = [0.3 + n / 200 for n in range(130)]
        good = [p for p in tried if min(abs(p - s) for s in sums) > 0.008]
        return draw.choice(good) if good else max(tried, key=lambda p: min(abs(p - s) for s in sums))

    def asked(part, rows, heat, k=None, p=None):
        """Each row several times, with numbers in the middle of several words' shares."""
        rows = rows.tolist()
        p = clear(rows, heat, k) if p == "clear" else p
        repeated, numbers = [], []
        for row in rows:
            left, staying = 0.0, _staying(row, heat or 1.0, k, p)
            middles = []
            for share in staying.values():
                if share > 0.02:
                    middles.append(left + share * draw.choice(FRACTIONS))
                left += share
            chosen = draw.sample(range(len(middles)), min(3, len(middles)))
            numbers += [middles[i] for i in chosen] + [0.0]
            repeated += [row] * (len(chosen) + 1)
        logits, u = torch.tensor(repeated), torch.tensor(numbers)
        shown = f"{len(repeated)} rows of {len(rows[0])} words, temperature {heat}, top_k={k}, top_p={p}"
        return case(part, logits, u, heat, k, p, shown=shown)

    def rows(count, width):
        return draw.tensor((count, width))

    def late(count, width):
        """The first word is the least likely one, and goes first."""
        logits = rows(count, width)
        logits[:, 0] = logits.amin(1) - 2
        return logits

    def equal(width):
        """All but the first two words alike."""
        return torch.tensor([[0.5, -0.5] + [1.0] * (width - 2)])

    n = draw.integer(4, 7)
    yield asked(likeliest, rows(3, n), 0.0)
    yield asked(likeliest, equal(n), 0.0)
    yield asked(likeliest, rows(2, n), 0.0, 3, 0.5)
    yield asked(likeliest, rows(1, 1), 0.0)
    two = torch.tensor([[1.0, 2.0, 2.0]])  # a large `u` would pick the second of them
    yield case(likeliest, two, torch.tensor([0.9]), 0.0, None, None, shown="two words alike, u=0.9")
    for heat in (1.0, 0.5, 2.0, draw.choice((0.7, 1.5, 3.0))):
        yield asked(temperature, rows(3, n), heat)
    yield asked(temperature, 40 * rows(2, n), 20.0)  # large logits
    # a temperature near 0: exponentials are beyond all numbers, and yet no word has all
    yield asked(temperature, torch.tensor([[40.0, 40.01, 39.99, 40.0]]), 0.01)
    for heat, k in ((1.0, 2), (0.5, 3), (2.0, 1), (1.0, n + 2), (1.0, n)):
        yield asked(first_k, late(3, n), heat, k)
        yield asked(first_k, rows(3, n), heat, k)
    yield asked(first_k, equal(n + 2), 1.0, draw.integer(2, 3))
    for heat, k in ((1.0, None), (0.5, None), (2.0, None), (1.0, 3), (2.0, 4)):
        yield asked(first_p, late(2, n), heat, k, "clear")
        yield asked(first_p, rows(2, n), heat, k, "clear")
    yield asked(first_p, rows(2, n), 1.0, None, 1.0)
    yield asked(first_p, rows(2, n), 1.0, None, 0.01)
    yield asked(first_p, equal(n + 2), 1.0, None, "clear")
    # four words of a quarter each, of which two sum to a half
    shown = "four rows of four equal words, top_p=0.5"
    u = torch.tensor([0.1, 0.4, 0.6, 0.9])
    yield case(first_p, torch.zeros(4, 4), u, 1.0, None, 0.5, shown=shown)
    # the first three by temperature, and 0.9 of them: 0.57 and 0.34 suffice, but not of all words
    fixed = torch.tensor([[1.0, 2.0, 1.5, 0.0, 0.5, 0.3]])
    yield asked(first_p, fixed, 1.0, 3, 0.7)
    yield asked(first_p, fixed, 1.0, 2, 1.0)
    far = torch.tensor([[0.0, 3.0, 6.0, 9.0]])  # at another temperature, others stay or are picked
    yield asked(first_k, far, 4.0, 3)
    yield asked(first_p, far, 4.0, None, 0.9)
    yield asked(first_p, fixed, 2.0, None, 0.55)


_pick = lab_solution(__name__, "pick")


def _misconception(name, explanation, earns, *edits):
    pick.misconception(name, explanation, earns=earns)(edited(_pick, *edits))


_misconception(
    "the temperature after softmax",
    "the temperature changes nothing, as where probabilities are divided by it, which scales them all alike.",
    1,
    ("(logits / temperature).softmax(-1)", "(logits.softmax(-1) / temperature)"),
)
_misconception(
    "multiplied by the temperature",
    "a high temperature makes the likely words likelier still.",
    1,
    ("(logits / temperature)", "(logits * temperature)"),
)
_misconception(
    "exponentials beyond all numbers",
    "at a small temperature probabilities become NaN, as where logits divided by it are too large for `exp`.",
    3,
    ("(logits / temperature).softmax(-1)", "((logits / temperature).exp() / (logits / temperature).exp().sum(-1, keepdim=True))"),
)
_misconception(
    "a small temperature for 0",
    "at a small temperature, the likeliest word is always taken, as at temperature 0.",
    3,
    ("temperature == 0", "temperature < 0.05"),
)
_misconception(
    "the larger id first",
    "of equal words, the one with the larger id ranks higher.",
    2,
    (
        "(logits / temperature).softmax(-1).sort(dim=-1, descending=True, stable=True)",
        "(part.flip(-1) for part in (logits / temperature).softmax(-1).sort(dim=-1, stable=True))",
    ),
)
_misconception(
    "the word that crosses is dropped",
    "what stays sums to less than top_p: the word that would reach it is gone.",
    3,
    ("before >= top_p", "before + ranked > top_p"),
)
_misconception(
    "reached, and one more",
    "where a beginning sums to top_p exactly, one word more stays.",
    3,
    ("before >= top_p", "before > top_p"),
)
_misconception(
    "one more than k",
    "top_k + 1 words stay.",
    2,
    ("ranked[:, top_k:] = 0", "ranked[:, top_k + 1:] = 0"),
)
_misconception(
    "a very small temperature",
    "at temperature 0, of several largest ones it is not the first that comes out, but `u` that picks,"
    " as where a small number stands for 0.",
    3,
    ("return logits.argmax(-1)", "temperature, top_k, top_p = (1e-06, None, None)"),
)
_misconception(
    "the last of the largest",
    "of several largest logits, the last one is taken.",
    3,
    ("logits.argmax(-1)", "logits.shape[-1] - 1 - logits.flip(-1).argmax(-1)"),
)
_misconception(
    "one number for all rows",
    "every row is picked by the first row's `u`.",
    1,
    ("u[:, None]", "u[0]"),
)
_misconception(
    "the temperature last",
    "top-k and top-p look at probabilities without the temperature.",
    3,
    ("(logits / temperature).softmax(-1)", "logits.double().softmax(-1)"),
    ("staying = torch.zeros_like(ranked).scatter(-1, words, ranked)", "ranked = ranked ** (1 / temperature)\n    staying = torch.zeros_like(ranked).scatter(-1, words, ranked)"),
)
_misconception(
    "top-p of all words",
    "top_p is compared with shares of all words, also of those that top-k has taken away, as where it"
    " comes before top-k.",
    3,
    ("top_p * ranked.sum(-1, keepdim=True)", "top_p"),
)
_misconception(
    "not normalised again",
    "what stays sums to less than 1, and where `u` is beyond that, there is no such word.",
    2,
    ("u[:, None] * reached[:, -1:]", "u[:, None]"),
)
_misconception(
    "in the order of the ranking",
    "the sum goes from the likeliest word down, and not through the ids.",
    1,
    ("reached = staying.cumsum(-1)", "reached = ranked.cumsum(-1)"),
    ("(reached <= u[:, None] * reached[:, -1:]).sum(-1)", "words.gather(-1, (reached <= u[:, None] * reached[:, -1:]).sum(-1, keepdim=True))[:, 0]"),
)
_misconception(
    "the rank for the id",
    "what is returned is a word's place in the ranking, and not its id.",
    1,
    ("torch.zeros_like(ranked).scatter(-1, words, ranked)", "ranked"),
)
_misconception(
    "a word that is gone",
    "where `u` is 0, the first id is picked, even one that does not stay.",
    2,
    ("reached <= u", "reached < u"),
)
_misconception(
    "equal words all stay",
    "words as likely as the last one that stays remain too, so there are more than top_k.",
    3,
    ("ranked[:, top_k:] = 0", "ranked[ranked < ranked[:, top_k - 1:top_k]] = 0"),
    ("top_k is not None", "top_k is not None and top_k < ranked.shape[1]"),
)


@pick.alternate("row by row, with lists")
def _(logits, u, temperature, top_k, top_p):
    picked = []
    for row, number in zip(logits, u.tolist()):
        if temperature == 0:
            picked.append(int(row.argmax()))
            continue
        shares = torch.softmax(row.double() / temperature, 0).tolist()
        ranking = sorted(range(len(shares)), key=lambda i: -shares[i])
        stay = ranking if top_k is None else ranking[:top_k]
        if top_p is not None:
            total, reached, short = sum(shares[i] for i in stay), 0.0, []
            for i in stay:
                short.append(i)
                reached += shares[i]
                if reached >= top_p * total:
                    break
            stay = short
        total, reached = sum(shares[i] for i in stay), 0.0
        for i in sorted(stay):
            reached += shares[i] / total
            if reached > number:
                break
        picked.append(i)
    return torch.tensor(picked)


@pick.alternate("minus infinity, and searchsorted")
def _(logits, u, temperature, top_k, top_p):
    if not temperature:
        return torch.max(logits, dim=1).indices
    scores = logits / temperature
    order = scores.argsort(descending=True, stable=True)
    rank = order.argsort()
    if top_k:
        scores = torch.where(rank < top_k, scores, -torch.inf)
    if top_p:
        probabilities = scores.softmax(1)
        ranked = probabilities.gather(1, order)
        enough = (ranked.cumsum(1) < top_p).sum(1, keepdim=True)
        scores = torch.where(rank <= enough, scores, -torch.inf)
    sums = scores.softmax(1).cumsum(1)
    return torch.searchsorted(sums, u[:, None], right=True).flatten()


pick.equivalent(
    ("temperature == 0", "temperature <= 0"),
    because="no temperature is below 0",
)
pick.equivalent(
    ("argmax(-1)", "argmax(1)"),
    ("softmax(-1)", "softmax(1)"),
    ("cumsum(-1)", "cumsum(1)"),
    ("sum(-1, keepdim", "sum(1, keepdim"),
    ("scatter(-1", "scatter(1"),
    (".sum(-1)", ".sum(1)"),
    ("dim=-1, ", "dim=1, "),
    ("dim=-1, ", ""),
    ("temperature, 0)", "temperature, -1)"),
    because="it is the same dimension, the last one",
)
pick.equivalent(
    (", stable=True", ""),
    ("stable=True", "stable=False"),
    because="on a CPU the sort of so few numbers is stable anyway",
)
pick.equivalent(
    ("reached > number", "reached >= number"),
    ("row.double()", "row"),
    ("row.double()", "row.float()"),
    because="what rounding decides is not asked",
)
pick.equivalent(
    ("torch.zeros_like(ranked)", "ranked"),
    ("torch.zeros_like(ranked)", "torch.ones_like(ranked)"),
    because="every place is written to",
)
pick.equivalent(
    ("u.tolist()", "u"),
    ("int(row.argmax())", "row.argmax()"),
    ("temperature, 0).tolist()", "temperature, 0)"),
    because="numbers or tensors of one number",
)
pick.equivalent(
    ("ranking if top_k is None else ranking[:top_k]", "ranking[:top_k]"),
    ("ranking if top_k is None", "ranking if temperature is None"),
    because="`[:None]` is everything",
)
