"""Lab 08, exercise 4: Picking a word"""

import itertools
import math

import torch

from hood.judge.checks.exercise import Check, case

pick = Check(
    "pick",
    parts={"the likeliest": 1, "temperature": 1, "top-k": 1, "top-p": 1},
    reads="Picking a word",
)


def _ranking(row, temperature, top_k):
    """The words that stay after top-k, from the likeliest on: pairs of id and probability."""
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
        """A top_p that is far from each cumulative probability, so that rounding decides nothing."""
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
        """Repeat each row, each time with a ``u`` inside the share of another word."""
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
        shown = f"{len(repeated)} rows of {len(rows[0])} words, temperature {heat}, top_k={k}, top_p={p if p is None else round(p, 4)}"
        return case(part, logits, u, heat, k, p, shown=shown)

    def rows(count, width):
        return draw.tensor((count, width))

    def late(count, width):
        """The first word is the least likely one, so it is cut first."""
        logits = rows(count, width)
        logits[:, 0] = logits.amin(1) - 2
        return logits

    def equal(width):
        """All words except the first two are equally likely."""
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
    # a temperature near 0: exponentials overflow, but no word has all of the probability
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
    # four words with a probability of a quarter each: two of them sum to exactly a half
    shown = "four rows of four equal words, top_p=0.5"
    u = torch.tensor([0.1, 0.4, 0.6, 0.9])
    yield case(first_p, torch.zeros(4, 4), u, 1.0, None, 0.5, shown=shown)
    # if three words stay, two of them reach 0.7 (0.51 + 0.31); if all words stay, two do not (0.40
    # + 0.24)
    fixed = torch.tensor([[1.0, 2.0, 1.5, 0.0, 0.5, 0.3]])
    yield asked(first_p, fixed, 1.0, 3, 0.7)
    yield asked(first_p, fixed, 1.0, 2, 1.0)
    far = torch.tensor([[0.0, 3.0, 6.0, 9.0]])  # at another temperature, other words stay or are picked
    yield asked(first_k, far, 4.0, 3)
    yield asked(first_p, far, 4.0, None, 0.9)
    yield asked(first_p, fixed, 2.0, None, 0.55)
