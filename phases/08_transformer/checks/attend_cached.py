"""Lab 08, exercise 3: One token at a time"""

import torch

from hood.judge.checks.exercise import Case, Check, case
from hood.judge.checks.words import counted

from .shared import SUMS, attention_weights

attend_cached = Check(
    "attend_cached",
    parts={"the first call": 1, "one token": 1, "several tokens": 1, "what is remembered": 1},
    reads="One token at a time",
    tolerance=SUMS,
)


@attend_cached.reference
def _(x, weights, n_heads, cache):
    def part(name):
        return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]

    def heads(y):
        return y.reshape(*y.shape[:2], n_heads, -1).transpose(1, 2)

    q, k, v = heads(part("query")), heads(part("key")), heads(part("value"))
    old = 0 if cache is None else cache[0].shape[2]
    if cache is not None:
        k, v = torch.cat([cache[0], k], 2), torch.cat([cache[1], v], 2)
    rows = []
    for step in range(x.shape[1]):
        seen = old + step + 1
        scores = q[:, :, step : step + 1] @ k[:, :, :seen].mT / q.shape[-1] ** 0.5
        rows.append(scores.softmax(-1) @ v[:, :, :seen])
    mixed = torch.cat(rows, 2).transpose(1, 2).reshape(x.shape)
    return mixed @ weights["output.weight"].T + weights["output.bias"], (k, v)


@attend_cached.cases
def _(draw):
    first, one, several, remembered = attend_cached.parts

    def inputs(batch, new, old, heads, width, dtype=torch.float32):
        weights = attention_weights(draw, heads * width, dtype=dtype)
        x = draw.tensor((batch, new, heads * width), dtype)
        shape = (batch, heads, old, width)
        return x, weights, heads, (draw.tensor(shape, dtype), draw.tensor(shape, dtype)) if old else None

    def asked(part, *sizes):
        given = inputs(*sizes)
        heads, old = sizes[3], sizes[2]
        shown = f"x {tuple(given[0].shape)}, {counted(heads, 'head')}, {counted(old, 'position')} before"
        places = {"[0]": "the output", "[1][0]": "the keys", "[1][1]": "the values"}
        return case(part, *given, shown=shown, places=places)

    yield asked(first, 2, draw.integer(3, 5), 0, 2, 3)
    yield asked(first, 1, 1, 0, draw.integer(1, 3), 2)
    yield asked(first, 2, 4, 0, 1, 4)
    yield asked(one, 2, 1, draw.integer(3, 6), 2, 3)
    yield asked(one, 1, 1, 1, 3, 2)
    yield asked(one, 3, 1, 4, draw.integer(1, 2), draw.integer(2, 4))
    yield asked(several, 2, 3, 2, 2, 3)
    yield asked(several, 2, 2, 3, 2, 2, torch.float64)
    yield asked(several, 1, 2, draw.integer(3, 6), 3, 2)
    yield asked(several, 2, draw.integer(4, 6), 1, 2, 2)
    yield asked(one, 1, 1, 40, 1, 2)  # beyond the context of the course's MiniGPT

    x, weights, heads, cache = inputs(2, 2, 3, 2, 3)
    more = draw.tensor((2, 3, 6))

    def twice(subject):
        """Continue twice from the same cache, and once from the cache that is returned."""
        _, kept = subject(x, weights, heads, cache)
        output, longer = subject(more, weights, heads, tuple(kept))
        again, _ = subject(x, weights, heads, cache)
        return output, longer, again, kept

    places = {
        "[0]": "the output of a call with the returned cache",
        "[1]": "the cache that the second call returned",
        "[2]": "the output of a third call, which gets the same cache as the first call",
        "[3]": "the cache that the first call returned, after the other calls",
    }
    yield Case(remembered, twice, shown="2 new positions after 3, then 3 more", places=places)

    def forked(subject):
        return subject.drive("transformer:forked", x, weights, heads, [more, more + 1])

    places = {
        "[0]": (
            "the cache that the first call returned, after a second call that got the same cache "
            "as the first"
        ),
        "[1]": "the cache that the second call returned",
    }
    shown = "2 positions, then 3 more positions twice, both times from the same cache"
    yield Case(remembered, forked, shown=shown, places=places)

    start = inputs(1, 2, 0, 2, 2)
    next_x = draw.tensor((1, 1, 4))

    def from_nothing(subject):
        _, kept = subject(*start)
        return subject(next_x, start[1], 2, (kept[0] + 1, kept[1] * 2))

    places = {"[0]": "the output, after the cache was changed", "[1]": "the keys and values of all positions"}
    yield Case(remembered, from_nothing, shown="2 positions, a changed cache, then 1 position", places=places)
