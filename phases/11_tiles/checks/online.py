"""Lab 11, exercise 5: A softmax in one pass"""

import math

import torch

from hood.judge.checks.exercise import Case, Check

from .shared import ATTENTION, DOUBLE, doubly_exact

online = Check(
    "online",
    parts={
        "maximum and sum": 1,
        "weighted sum": 1,
        "minus infinity": 1,
        "output and log-sum-exp": 1,
    },
    reads="A softmax in one pass",
    tolerance=ATTENTION,
)


@online.reference
class _:
    def online(m, l, acc, scores, values):
        # the scores so far are like one score, m + log l, whose value is acc / l
        new_m, new_l, new_acc = [], [], []
        for row in range(len(m)):
            largest = max(float(m[row]), float(scores[row].max()))
            if largest == -math.inf:
                new_m, new_l = [*new_m, largest], [*new_l, 0.0]
                new_acc.append(acc[row] * 0)
                continue
            weights = torch.exp(scores[row].double() - largest)
            kept = math.exp(float(m[row]) - largest)
            new_m.append(largest)
            new_l.append(float(l[row]) * kept + float(weights.sum()))
            new_acc.append(acc[row].double() * kept + weights @ values.double())
        as_given = {"dtype": m.dtype}
        return (
            torch.tensor(new_m, **as_given),
            torch.tensor(new_l, **as_given),
            torch.stack(new_acc).to(**as_given),
        )

    def finish(m, l, acc):
        seen = l > 0
        output = torch.where(seen[:, None], acc / l[:, None], torch.zeros_like(acc))
        return output, torch.where(seen, m + l.log(), torch.full_like(m, -math.inf))


PLACES = "m, the largest score", "l, the sum", "acc, the weighted sum"


@online.cases
def _(draw):
    sums, weighted, infinite, finished = online.parts

    def start(rows, width, dtype=torch.float32):
        m = torch.full((rows,), -math.inf, dtype=dtype)
        return m, torch.zeros(rows, dtype=dtype), torch.zeros(rows, width, dtype=dtype)

    def tile(rows, n, width, dtype=torch.float32):
        return draw.tensor((rows, n), dtype), draw.tensor((n, width), dtype)

    def after(scores, values):
        """The state after some scores."""
        return online.right["online"](*start(len(scores), values.shape[1], scores.dtype), scores, values)

    def step(part, state, scores, values, words):
        keys = {sums: (0, 1), weighted: (2,), infinite: (0, 1, 2)}[part]
        right = online.right["online"](*state, scores, values)

        def play(subject):
            came = subject["online"](*state, scores, values)
            found = [came[key] for key in keys]
            return doubly_exact(found, [right[key] for key in keys]), *found

        dtype = str(scores.dtype).removeprefix("torch.")
        shown = f"{dtype} scores {tuple(scores.shape)}, values {tuple(values.shape)}, {words}"
        places = {"[0]": DOUBLE} | {f"[{at}]": PLACES[key] for at, key in enumerate(keys, 1)}
        return Case(part, play, "online", shown, places)

    for part in (sums, weighted):
        for dtype in (torch.float32, torch.float64):
            rows, n, width = draw.sample((2, 3, 4, 5), 3)
            first, second = tile(rows, n, width, dtype), tile(rows, n + 1, width, dtype)
            yield step(part, start(rows, width, dtype), *first, "the first tile")
            yield step(part, after(*first), *second, "the second tile")
            higher = second[0] + 6, second[1]
            yield step(part, after(*first), *higher, "the second tile, with larger scores")
            yield step(part, after(*higher), *first, "the second tile, with smaller scores")
            mixed = second[0].clone()
            mixed[0] += 5
            mixed[-1] -= 5
            yield step(part, after(*first), mixed, second[1], "larger scores in one row, smaller in another")
            mixed = second[0].clone()
            mixed[:, -1] += 4
            yield step(part, after(*first), mixed, second[1], "the last score the largest")
        first, second = tile(3, 4, 2), tile(3, 2, 2)
        far = 1000.0 * draw.integer(1, 9)
        yield step(part, after(first[0] + far, first[1]), second[0] + far, second[1], "all far above 0")
        yield step(part, after(first[0] - far, first[1]), second[0] - far, second[1], "all far below 0")
        yield step(part, after(*first), second[0] + far, second[1], "the second tile far above the first")
        yield step(part, after(*first), second[0] - far, second[1], "the second tile far below the first")
        yield step(part, start(1, 1), *tile(1, 1, 1), "a single score")
        yield step(part, after(*tile(1, 3, 1)), *tile(1, 1, 1), "one row, one score")
        equal = torch.full((2, 3), float(draw.integer(-3, 3)))
        yield step(part, after(equal, first[1][:3]), equal, second[1].repeat(2, 1)[:3], "all scores equal")

    some, values = tile(4, 3, 2)
    hidden = some.clone()
    hidden[0, 0] = hidden[1, 1:] = hidden[2] = -math.inf
    nothing = torch.full_like(some, -math.inf)
    yield step(infinite, start(4, 2), hidden, values, "some of it -inf")
    yield step(infinite, after(some, values), hidden, values + 1, "some of it -inf, after other scores")
    yield step(infinite, after(hidden, values), some + 3, values + 1, "numbers after a row of -inf")
    yield step(infinite, after(hidden, values), hidden, values + 1, "a row with -inf twice")
    yield step(infinite, start(4, 2), nothing, values, "nothing but -inf")
    yield step(infinite, after(some, values), nothing, values + 1, "nothing but -inf, after numbers")
    yield step(infinite, after(some - 2000, values), nothing, values + 1, "nothing but -inf, after numbers far below 0")
    double = hidden.double() - 2000
    yield step(infinite, start(4, 2, torch.float64), double, values.double(), "some of it -inf, the rest far below 0")
    yield step(infinite, start(1, 1), nothing[:1, :1], values[:1, :1], "a single -inf")

    def end(state, words):
        def play(subject):
            came = subject["finish"](*state)
            return doubly_exact(came, right), *came

        right = online.right["finish"](*state)
        places = {"[0]": DOUBLE, "[1]": "the output", "[2]": "the log-sum-exp"}
        return Case(finished, play, "finish", words, places)

    for dtype in (torch.float32, torch.float64):
        rows, n, width = draw.sample((2, 3, 4, 5), 3)
        scores, values = tile(rows, n, width, dtype)
        yield end(after(scores, values), "a few scores")
        yield end(after(scores + 900, values), "scores far above 0")
        yield end(after(scores - 900, values), "scores far below 0")
        scores[-1] = -math.inf
        yield end(after(scores, values), "a row of nothing but -inf")
    yield end(start(2, 3), "no scores at all")
    yield end(after(*tile(1, 1, 1)), "a single score")
