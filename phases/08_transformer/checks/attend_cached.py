"""Lab 08, exercise 3: One token at a time"""

import torch
from torch.nn import functional as F

from utils.checks.exercise import Case, Check, case, edited
from utils.checks.lab_solution import lab_solution

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
        shown = f"x {tuple(given[0].shape)}, {heads} heads, {old} positions before"
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
        """From one cache, twice; and from what was returned."""
        _, kept = subject(x, weights, heads, cache)
        output, longer = subject(more, weights, heads, tuple(kept))
        again, _ = subject(x, weights, heads, cache)
        return output, longer, again, kept

    places = {
        "[0]": "the output of a call with the cache that a call returned",
        "[1]": "the cache of the second call",
        "[2]": "the output of a call with the first cache again",
        "[3]": "the cache that the first call returned",
    }
    yield Case(remembered, twice, shown="2 new positions after 3, then 3 more", places=places)

    def forked(subject):
        return subject.drive("transformer:forked", x, weights, heads, [more, more + 1])

    places = {
        "[0]": "the cache that the first call returned, after another from the same one",
        "[1]": "the cache that the other call returned",
    }
    shown = "2 positions, then 3 more, and 3 others from the same cache"
    yield Case(remembered, forked, shown=shown, places=places)

    start = inputs(1, 2, 0, 2, 2)
    next_x = draw.tensor((1, 1, 4))

    def from_nothing(subject):
        _, kept = subject(*start)
        return subject(next_x, start[1], 2, (kept[0] + 1, kept[1] * 2))

    places = {"[0]": "the output, after the cache was altered", "[1]": "the keys and values of all"}
    yield Case(remembered, from_nothing, shown="2 positions, altered, then 1", places=places)


_attend = lab_solution(__name__, "attend_cached")


def _misconception(name, explanation, earns, *edits):
    attend_cached.misconception(name, explanation, earns=earns)(edited(_attend, *edits))


_misconception(
    "aligned at the top left",
    "after a cache, the first new position sees only the first old one, as with `is_causal=True`.",
    1,
    ("attn_mask=allowed", "is_causal=True"),
)
_misconception(
    "aligned at the top left, but for one token",
    "after a cache, the first of several new positions sees only the first old one, as with"
    " `is_causal=True`.",
    2,
    ("attn_mask=allowed", "is_causal=len(x[0]) > 1"),
)
_misconception(
    "one too many after a cache",
    "after a cache, each new position sees one that comes after it, too.",
    2,
    ("tril(every - new)", "tril(every - new + (cache is not None))"),
)
_misconception(
    "hidden in the first call alone",
    "after a cache, new positions see the new ones that come after them.",
    2,
    ("attn_mask=allowed", "attn_mask=allowed if cache is None else None"),
)
_misconception(
    "the cache returned, and not looked at",
    "the new positions see each other alone; the cache is only handed on.",
    1,
    (
        "F.scaled_dot_product_attention(query, keys, values, attn_mask=allowed)",
        "F.scaled_dot_product_attention(query, part('key'), part('value'), is_causal=True)",
    ),
)
_misconception(
    "heads not put back in order",
    "heads and positions are mixed on the way back, as where the exchanged dimensions stay exchanged.",
    1,
    ("mixed.transpose(1, 2).flatten(2)", "mixed.reshape(x.shape)"),
)
_misconception(
    "a view over heads",
    "heads are cut out of positions and channels together, as where (B, T, D) is viewed as"
    " (B, H, T, D/H).",
    1,
    ("mapped.unflatten(-1, (n_heads, -1)).transpose(1, 2)", "mapped.reshape(len(x), n_heads, x.shape[1], -1)"),
)
_misconception(
    "divided by the whole width",
    "scores are divided by the root of D, and not of a head's own channels.",
    0,
    ("attn_mask=allowed", "attn_mask=allowed, scale=x.shape[-1] ** -0.5"),
)
_misconception(
    "no output map",
    "the heads' results are not mapped by `output`.",
    0,
    ("return (output, (keys, values))", "return (mixed.transpose(1, 2).flatten(2), (keys, values))"),
)
_misconception(
    "no bias in the output map",
    "the bias of `output` is not added.",
    0,
    ("weights['output.weight'], weights['output.bias'])", "weights['output.weight'])"),
)
_misconception(
    "weights not transposed",
    "x is multiplied by the weights as they lie; a linear layer holds (out, in), so x meets their transpose.",
    0,
    ("F.linear(x, weights[f'{name}.weight'], weights[f'{name}.bias'])", "x @ weights[f'{name}.weight'] + weights[f'{name}.bias']"),
    ("F.linear(mixed.transpose(1, 2).flatten(2), weights['output.weight'], weights['output.bias'])", "mixed.transpose(1, 2).flatten(2) @ weights['output.weight'] + weights['output.bias']"),
)
_misconception(
    "nothing hidden",
    "new positions see the new ones that come after them.",
    1,
    ("attn_mask=allowed", "attn_mask=None"),
)
_misconception(
    "not itself",
    "a new position doesn't see itself.",
    0,
    ("tril(every - new)", "tril(every - new - 1)"),
)
_misconception(
    "the new ones first",
    "the new keys and values stand before the old ones.",
    1,
    ("[cache[0], keys]", "[keys, cache[0]]"),
    ("[cache[1], values]", "[values, cache[1]]"),
)
_misconception(
    "the new ones alone are returned",
    "what is returned for the next call has only the keys and values of this one.",
    1,
    ("(keys, values)", "(part('key'), part('value'))"),
)
_misconception(
    "keys and values exchanged",
    "what is returned for the next call is the values first, and then the keys.",
    0,
    ("return (output, (keys, values))", "return (output, (values, keys))"),
)
_misconception(
    "values and keys all along",
    "the cache is read and returned as a pair of the values first, and then the keys.",
    0,
    ("[cache[0], keys]", "[cache[1], keys]"),
    ("[cache[1], values]", "[cache[0], values]"),
    ("return (output, (keys, values))", "return (output, (values, keys))"),
)
_misconception(
    "the cache not read",
    "the answer is the same, whatever the cache holds.",
    1,
    ("if cache is not None:", "if False:"),
)
_misconception(
    "a cache of the inputs",
    "what is returned for the next call is not keys and values by head.",
    0,
    ("(keys, values)", "(x, x)"),
)
_misconception(
    "the values of the cache dropped",
    "old keys are looked at, and what they say is zero.",
    1,
    ("cache[1], values]", "torch.zeros_like(cache[1]), values]"),
)


@attend_cached.alternate("by hand, scores first")
def _(x, weights, n_heads, cache):
    batch, new, width = x.shape
    joined = torch.cat([weights[f"{name}.weight"] for name in ("query", "key", "value")])
    bias = torch.cat([weights[f"{name}.bias"] for name in ("query", "key", "value")])
    q, k, v = (
        part.view(batch, new, n_heads, width // n_heads).permute(0, 2, 1, 3)
        for part in (x @ joined.t() + bias).split(width, dim=-1)
    )
    old = 0
    if cache:
        old = cache[0].size(2)
        k, v = (torch.cat(pair, 2) for pair in zip(cache, (k, v)))
    scores = q @ k.mT * q.shape[-1] ** -0.5
    future = torch.arange(old + new) > torch.arange(old, old + new)[:, None]
    weight = scores.masked_fill(future, float("-inf")).softmax(-1)
    mixed = torch.einsum("bhqk,bhkc->bqhc", weight, v).reshape(batch, new, width)
    return mixed @ weights["output.weight"].T + weights["output.bias"], (k, v)


@attend_cached.alternate("one new position after another")
def _(x, weights, n_heads, cache):
    def mapped(name, rows):
        return F.linear(rows, weights[name + ".weight"], weights[name + ".bias"])

    outputs = []
    for rows in x.split(1, dim=1):
        heads = [mapped(n, rows).view(len(x), n_heads, 1, -1) for n in ("query", "key", "value")]
        if cache is None:
            cache = heads[1], heads[2]
        else:
            cache = torch.cat([cache[0], heads[1]], 2), torch.cat([cache[1], heads[2]], 2)
        mixed = F.scaled_dot_product_attention(heads[0], *cache)
        outputs.append(mapped("output", mixed.flatten(1)[:, None]))
    return torch.cat(outputs, 1), cache


attend_cached.equivalent(("transpose(1, 2)", "transpose(2, 1)"), because="the same two are exchanged")
attend_cached.equivalent(
    ("cache[0].size(2)", "cache[1].size(2)"),
    ("cache[0].size(2)", "cache[-1].size(2)"),
    because="there are as many keys as values",
)
