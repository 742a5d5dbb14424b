"""Answers to lab 08, written blind: from the learner's notebook and `utils/` alone.

A wrong answer is the first right one with an edit (or a cell of its own), and names the sentence of
the lab's text that it breaks.
"""

from tests.phases import bank_08_second
from tests.phases.bank import CODE, Bank

RIGHT: dict[str, dict[str, str]] = {}
WRONG: dict[str, list[tuple]] = {}

# --- 1 · Who may look where? ---------------------------------------------------------------------

RIGHT["visible"] = {
    "a column and a row": """
def visible(queries, keys, causal, padding, window):
    q = torch.arange(keys - queries, keys)[:, None]
    k = torch.arange(keys)[None, :]
    allowed = torch.ones(1, queries, keys, dtype=torch.bool)
    if causal:
        allowed = allowed & (k <= q)
    if window is not None:
        allowed = allowed & (k > q - window)
    if padding is not None:
        allowed = allowed & padding[:, None, :]
    return allowed
""",
    "triangles": """
def visible(queries, keys, causal, padding, window):
    late = keys - queries
    mask = torch.ones(queries, keys, dtype=torch.bool)
    if causal:
        mask = mask.tril(late)
    if window:
        mask = mask.triu(late - window + 1)
    if padding is None:
        padding = torch.ones(1, keys, dtype=torch.bool)
    return mask.expand(len(padding), -1, -1) & padding.unsqueeze(1)
""",
    "three loops": """
def visible(queries, keys, causal, padding, window):
    rows = [[True] * keys] if padding is None else padding.tolist()
    result = torch.zeros(len(rows), queries, keys, dtype=torch.bool)
    for b, real in enumerate(rows):
        for i in range(queries):
            here = keys - queries + i
            for j in range(keys):
                too_late = causal and j > here
                too_early = window is not None and here - j >= window
                result[b, i, j] = real[j] and not too_late and not too_early
    return result
""",
}
WRONG["visible"] = [
    (
        "queries stand at the beginning",
        "the queries are the *last* `queries` of them",
        "torch.arange(keys - queries, keys)",
        "torch.arange(queries)",
    ),
    (
        "one position late",
        "with 2 queries and 5 keys, the first query stands at position 3",
        "torch.arange(keys - queries, keys)",
        "(torch.arange(keys - queries, keys) - 1)",
    ),
    ("not even itself", "no query sees a position after its own", "(k <= q)", "(k < q)"),
    (
        "causal or not",
        "With `causal`",
        "    if causal:\n        allowed = allowed & (k <= q)\n",
        "    allowed = allowed & (k <= q)\n",
    ),
    (
        "a window one too wide",
        "a position that lies `window` or more before its own",
        "(k > q - window)",
        "(k >= q - window)",
    ),
    (
        "a window one too narrow",
        "a position that lies `window` or more before its own",
        "(k > q - window)",
        "(k > q - max(1, window - 1))",
    ),
    (
        "a window on both sides",
        "Of positions after its own, a window says nothing",
        "(k > q - window)",
        "((q - k).abs() < window)",
    ),
    (
        "a window is causal",
        "Of positions after its own, a window says nothing",
        "(k > q - window)",
        "(k > q - window) & (k <= q)",
    ),
    (
        "a window only for the causal",
        "A query may look where no rule forbids it",
        "if window is not None:",
        "if window is not None and causal:",
    ),
    (
        "one window for all queries",
        "`window` or more before its own",
        "(k > q - window)",
        "(k > keys - 1 - window)",
    ),
    (
        "a window of real tokens",
        "a position that lies `window` or more before its own: there are `keys` positions",
        "        allowed = allowed & (k > q - window)\n",
        "        if padding is None:\n            allowed = allowed & (k > q - window)\n        else:\n"
        "            count = padding.cumsum(1)\n"
        "            allowed = allowed & (count[:, None, :] > count[:, keys - queries :, None] - window)\n",
    ),
    (
        "True is padding",
        "True where there is a real token",
        "padding[:, None, :]",
        "~padding[:, None, :]",
    ),
    (
        "what is not real sees nothing",
        "What a query that is not real may see is decided by the other rules",
        "padding[:, None, :]",
        "padding[:, None, :] & padding[:, keys - queries :, None]",
    ),
    (
        "queries are hidden",
        "Nobody sees a key that is not real",
        "padding[:, None, :]",
        "padding[:, keys - queries :, None]",
    ),
    (
        "everybody sees itself",
        "Nobody sees a key that is not real",
        "padding[:, None, :]",
        "(padding[:, None, :] | (k == q))",
    ),
    (
        "the first row's padding",
        "`padding` is (B, keys)",
        "padding[:, None, :]",
        "padding[:1, None, :].expand(len(padding), -1, -1)",
    ),
    (
        "padding or the past",
        "A query may look where no rule forbids it",
        "    if padding is not None:\n",
        "    if padding is not None and not causal:\n",
    ),
    (
        "no batch",
        "Without `padding`, B is 1",
        "    return allowed\n",
        "    return allowed if padding is not None else allowed[0]\n",
    ),
    ("numbers", "a bool tensor", "    return allowed\n", "    return allowed.float()\n"),
    (
        "the padding is written to",
        "No function changes what it is given",
        "        allowed = allowed & padding[:, None, :]\n",
        "        allowed = allowed & padding[:, None, :]\n        padding[:] = True\n",
    ),
]

# --- 2 · Attention in fifty lines ----------------------------------------------------------------

RIGHT["MultiHead"] = {
    "a small number, then zeros": """
class MultiHead(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.query = nn.Linear(d_model, d_model)
        self.key = nn.Linear(d_model, d_model)
        self.value = nn.Linear(d_model, d_model)
        self.output = nn.Linear(d_model, d_model)

    def split(self, x):
        B, T, D = x.shape
        return x.view(B, T, self.n_heads, D // self.n_heads).transpose(1, 2)

    def forward(self, x, allowed=None):
        B, T, D = x.shape
        q, k, v = self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x))
        scores = q @ k.transpose(-1, -2) / math.sqrt(D // self.n_heads)
        if allowed is not None:
            scores = scores.masked_fill(~allowed[:, None], -1e30)
        weights = scores.softmax(-1)
        if allowed is not None:
            weights = weights.masked_fill(~allowed[:, None], 0.0)
        mixed = weights @ v
        return self.output(mixed.transpose(1, 2).reshape(B, T, D))
""",
    "head by head, einsum": '''
class MultiHead(nn.Module):
    """A loop over the heads."""

    def __init__(self, d_model: int, n_heads: int):
        super().__init__()
        for name in ("query", "key", "value", "output"):
            setattr(self, name, nn.Linear(d_model, d_model))
        self.size = d_model // n_heads

    def one_head(self, q, k, v, allowed):
        scores = torch.einsum("bqd,bkd->bqk", q, k) * self.size**-0.5
        scores = torch.where(allowed, scores, torch.finfo(scores.dtype).min)
        weights = torch.softmax(scores, dim=2) * allowed.any(dim=2, keepdim=True)
        return torch.einsum("bqk,bkd->bqd", weights, v)

    def forward(self, x, allowed=None):
        if allowed is None:
            allowed = torch.ones(1, x.shape[1], x.shape[1], dtype=torch.bool)
        parts = zip(*(f(x).split(self.size, -1) for f in (self.query, self.key, self.value)))
        return self.output(torch.cat([self.one_head(*part, allowed) for part in parts], -1))
''',
    "softmax by hand": """
def attention(q, k, v, allowed):
    scores = q.matmul(k.mT) / q.shape[-1] ** 0.5
    scores = torch.where(allowed, scores, torch.full_like(scores, -1e30))
    powers = torch.exp(scores - scores.amax(-1, keepdim=True).detach()) * allowed
    return powers @ v / powers.sum(-1, keepdim=True).clamp(min=1e-30)


class MultiHead(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.query, self.key, self.value, self.output = (nn.Linear(d_model, d_model) for _ in range(4))
        self.n_heads = n_heads

    def forward(self, x, allowed=None):
        if allowed is None:
            allowed = x.new_ones(1, x.size(1), x.size(1)).bool()
        heads = [m(x).unflatten(2, (self.n_heads, -1)).permute(0, 2, 1, 3) for m in (self.query, self.key, self.value)]
        return self.output(attention(*heads, allowed.unsqueeze(1)).permute(0, 2, 1, 3).flatten(2))
""",
    "minus infinity, blind rows apart": """
class MultiHead(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.query = nn.Linear(d_model, d_model)
        self.key = nn.Linear(d_model, d_model)
        self.value = nn.Linear(d_model, d_model)
        self.output = nn.Linear(d_model, d_model)

    def forward(self, x, allowed=None):
        b, t, d = x.shape
        shape = (b, t, self.n_heads, d // self.n_heads)
        q = self.query(x).reshape(shape)
        k = self.key(x).reshape(shape)
        v = self.value(x).reshape(shape)
        scores = torch.einsum("bqhd,bkhd->bhqk", q, k) / math.sqrt(shape[-1])
        if allowed is not None:
            hidden = ~allowed.unsqueeze(1)
            blind = hidden.all(dim=-1, keepdim=True)
            scores = scores.masked_fill(hidden, -math.inf).masked_fill(blind, 0.0)
            weights = F.softmax(scores, dim=-1).masked_fill(blind, 0.0)
        else:
            weights = F.softmax(scores, dim=-1)
        return self.output(torch.einsum("bhqk,bkhd->bqhd", weights, v).reshape(b, t, d))
""",
    "broken lines, and words about them": '''
import math as maths


class MultiHead(nn.Module):
    """Attention with several heads.

    Lines of a docstring
    are no statements,
    however many
    there are.
    """

    # Neither are comments.
    # They may be as long
    # as they like.

    def __init__(
        self,
        d_model,
        n_heads,
    ):
        super().__init__()
        self.n_heads = n_heads
        for name in (
            "query",
            "key",
            "value",
            "output",
        ):
            self.add_module(
                name,
                nn.Linear(
                    d_model,
                    d_model,
                ),
            )

    def forward(
        self,
        x,
        allowed=None,
    ):
        # heads first

        q, k, v = (
            part(x)
            .unflatten(
                -1,
                (self.n_heads, -1),
            )
            .transpose(1, 2)
            for part in (
                self.query,
                self.key,
                self.value,
            )
        )

        # scores

        scores = (
            q
            @ k.transpose(-1, -2)
            / maths.sqrt(q.shape[-1])
        )
        if allowed is None:
            allowed = torch.ones(
                1,
                x.shape[1],
                x.shape[1],
                dtype=torch.bool,
            )
        hidden = ~allowed[:, None]
        weights = (
            scores.masked_fill(
                hidden,
                -1e30,
            )
            .softmax(-1)
            .masked_fill(
                hidden,
                0,
            )
        )

        # side by side

        return self.output(
            (weights @ v)
            .transpose(1, 2)
            .flatten(2)
        )
''',
}
RIGHT["MultiHead"]["NaN never leaves where it is hidden"] = RIGHT["MultiHead"][
    "a small number, then zeros"
].replace("-1e30", "-math.inf")
WRONG["MultiHead"] = [
    ("not divided", "divided by √(D/H)", " / math.sqrt(D // self.n_heads)", ""),
    (
        "divided by the root of D",
        "divided by √(D/H)",
        "math.sqrt(D // self.n_heads)",
        "math.sqrt(D)",
    ),
    ("divided by D/H", "divided by √(D/H)", "math.sqrt(D // self.n_heads)", "(D // self.n_heads)"),
    (
        "divided by the root of H",
        "divided by √(D/H)",
        "math.sqrt(D // self.n_heads)",
        "math.sqrt(self.n_heads)",
    ),
    (
        "softmax over the queries",
        "Softmax over the keys",
        "scores.softmax(-1)",
        "scores.softmax(-2)",
    ),
    (
        "every H-th channel",
        "Head h has the channels from h·D/H on",
        "x.view(B, T, self.n_heads, D // self.n_heads).transpose(1, 2)",
        "x.view(B, T, D // self.n_heads, self.n_heads).permute(0, 3, 1, 2)",
    ),
    (
        "a view that mixes positions",
        "Head h has the channels from h·D/H on",
        "x.view(B, T, self.n_heads, D // self.n_heads).transpose(1, 2)",
        "x.reshape(B, self.n_heads, T, D // self.n_heads)",
    ),
    (
        "not exchanged on the way back",
        "The heads' results stand side by side again",
        "mixed.transpose(1, 2).reshape(B, T, D)",
        "mixed.reshape(B, T, D)",
    ),
    (
        "backwards",
        "a query's scores are its dot products with the keys",
        "q @ k.transpose(-1, -2)",
        "k @ q.transpose(-1, -2)",
    ),
    ("one head for all", "Within a head", "self.n_heads = n_heads", "self.n_heads = 1"),
    (
        "a blind row sees all",
        "A query that may look at nothing gets zeros for a sum",
        "            weights = weights.masked_fill(~allowed[:, None], 0.0)\n",
        "            pass\n",
    ),
    (
        "zeros after the output",
        "before `output`, that is",
        "        return self.output(mixed.transpose(1, 2).reshape(B, T, D))\n",
        "        result = self.output(mixed.transpose(1, 2).reshape(B, T, D))\n"
        "        return result if allowed is None else result * allowed.any(-1, keepdim=True)\n",
    ),
    (
        "minus infinity",
        "Nothing becomes NaN by it",
        "-1e30",
        "-math.inf",
        "            weights = weights.masked_fill(~allowed[:, None], 0.0)\n",
        "            pass\n",
    ),
    (
        "infinity is added, NaN is filled",
        "no gradient either",
        "scores.masked_fill(~allowed[:, None], -1e30)",
        "scores + torch.zeros(allowed.shape).masked_fill(~allowed, -math.inf)[:, None]",
        "weights.masked_fill(~allowed[:, None], 0.0)",
        "weights.nan_to_num()",
    ),
    (
        "zeros only where nobody sees anything",
        "A query that may look at nothing gets zeros for a sum",
        "weights = weights.masked_fill(~allowed[:, None], 0.0)",
        "weights = weights * allowed.any()",
    ),
    (
        "hidden after the softmax",
        "Softmax over the keys that it may look at",
        "            scores = scores.masked_fill(~allowed[:, None], -1e30)\n",
        "            pass\n",
    ),
    (
        "scores of zero",
        "Softmax over the keys that it may look at",
        "scores.masked_fill(~allowed[:, None], -1e30)",
        "scores * allowed[:, None]",
        "            weights = weights.masked_fill(~allowed[:, None], 0.0)\n",
        "            pass\n",
    ),
    (
        "hardly hidden",
        "Softmax over the keys that it may look at",
        "scores.masked_fill(~allowed[:, None], -1e30)",
        "scores - 5.0 * ~allowed[:, None]",
        "weights.masked_fill(~allowed[:, None], 0.0)",
        "weights * allowed.any(-1)[:, None, :, None]",
    ),
    ("True hides", "True where a query may look", "~allowed[:, None]", "allowed[:, None]"),
    (
        "keys and queries of the mask are exchanged",
        "True where a query may look",
        "~allowed[:, None]",
        "~allowed.mT[:, None]",
    ),
    (
        "the first sentence's mask",
        "a bool tensor (B, T, T)",
        "~allowed[:, None]",
        "~allowed[:1, None]",
    ),
    (
        "the past without a mask",
        "where `allowed` is `None` everybody sees everything",
        "        B, T, D = x.shape\n        q, k, v",
        "        B, T, D = x.shape\n        if allowed is None:\n            allowed = torch.ones(1, T, T, dtype=torch.bool).tril()\n        q, k, v",
    ),
    (
        "a mask must be given",
        "`None`, which it is when nobody hands it over",
        "allowed=None",
        "allowed",
    ),
    (
        "no bias in the query",
        "four `nn.Linear(d_model, d_model)`",
        "self.query = nn.Linear(d_model, d_model)",
        "self.query = nn.Linear(d_model, d_model, bias=False)",
    ),
    (
        "a buffer",
        "nothing else in its state dict",
        "        self.n_heads = n_heads\n",
        "        self.n_heads = n_heads\n        self.register_buffer('scale', torch.tensor(1.0))\n",
    ),
    (
        "PyTorch's own",
        "no attention from a library",
        "        weights = scores.softmax(-1)\n",
        "",
        "        if allowed is not None:\n            weights = weights.masked_fill(~allowed[:, None], 0.0)\n",
        "",
        "mixed = weights @ v",
        "mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=None if allowed is None else allowed[:, None])",
    ),
    (
        "weights without gradients",
        "three linear maps of x: their gradients, too",
        "scores.softmax(-1)",
        "scores.softmax(-1).detach()",
    ),
    (
        "too many lines",
        "At most 50 lines",
        "        B, T, D = x.shape\n        q, k, v",
        "        B, T, D = x.shape\n"
        + "".join(f"        step_{i} = {i}\n" for i in range(40))
        + "        q, k, v",
    ),
    (
        "a mask for each sentence",
        "or (1, T, T)",
        "~allowed[:, None]",
        "~allowed.view(B, 1, T, T)",
    ),
    (
        "sums in float32",
        "x and the weights are float32 or, both, float64",
        "mixed = weights @ v",
        "mixed = torch.zeros(q.shape).copy_(weights @ v)",
    ),
    (
        "float32 whatever comes",
        "of the same dtype",
        "return self.output(mixed.transpose(1, 2).reshape(B, T, D))",
        "return self.output(mixed.transpose(1, 2).reshape(B, T, D)).float()",
    ),
    (
        "too many lines in a helper",
        "with all helpers of your own",
        "class MultiHead(nn.Module):\n",
        "def helper():\n"
        + "".join(f"    step_{i} = {i}\n" for i in range(40))
        + "\n\nclass MultiHead(nn.Module):\n",
        "        B, T, D = x.shape\n        q, k, v",
        "        B, T, D = x.shape\n        helper()\n        q, k, v",
    ),
]

# --- 3 · One token at a time ---------------------------------------------------------------------

RIGHT["attend_cached"] = {
    "a mask for PyTorch's own": """
def attend_cached(x, weights, n_heads, cache):
    def part(name):
        y = F.linear(x, weights[name + ".weight"], weights[name + ".bias"])
        return y.unflatten(-1, (n_heads, -1)).transpose(1, 2)

    q, k, v = part("query"), part("key"), part("value")
    if cache is not None:
        k = torch.cat([cache[0], k], dim=2)
        v = torch.cat([cache[1], v], dim=2)
    T, S = q.shape[2], k.shape[2]
    mask = torch.ones(T, S, dtype=torch.bool).tril(S - T)
    y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    y = y.transpose(1, 2).reshape(x.shape)
    return F.linear(y, weights["output.weight"], weights["output.bias"]), (k, v)
""",
    "by hand, with @": """
def attend_cached(x, weights, n_heads, cache):
    B, T, D = x.shape
    d = D // n_heads
    made = {}
    for name in ["query", "key", "value"]:
        made[name] = (x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]).view(B, T, n_heads, d).permute(0, 2, 1, 3)
    old_keys, old_values = cache or (x.new_zeros(B, n_heads, 0, d), x.new_zeros(B, n_heads, 0, d))
    S = old_keys.shape[2]
    keys = x.new_empty(B, n_heads, S + T, d)
    values = torch.empty_like(keys)
    keys[:, :, :S], keys[:, :, S:] = old_keys, made["key"]
    values[:, :, :S], values[:, :, S:] = old_values, made["value"]
    scores = made["query"] @ keys.transpose(2, 3) / d**0.5
    for t in range(T):
        scores[:, :, t, S + t + 1 :] = -float("inf")
    heads = scores.softmax(dim=-1) @ values
    together = torch.cat([heads[:, h] for h in range(n_heads)], dim=-1)
    return together @ weights["output.weight"].T + weights["output.bias"], (keys, values)
""",
    "one position after the other": """
def attend_cached(x, weights, n_heads, cache):
    maps = {n: (weights[n + ".weight"], weights[n + ".bias"]) for n in ("query", "key", "value", "output")}
    outputs = []
    for one in x.split(1, dim=1):
        q, k, v = (F.linear(one, *maps[n]).view(len(x), n_heads, 1, -1) for n in ("query", "key", "value"))
        cache = (k, v) if cache is None else tuple(torch.cat(pair, 2) for pair in zip(cache, (k, v)))
        mixed = F.scaled_dot_product_attention(q, *cache)
        outputs.append(F.linear(mixed.transpose(1, 2).flatten(2), *maps["output"]))
    return torch.cat(outputs, dim=1), cache
""",
}
WRONG["attend_cached"] = [
    (
        "is_causal",
        "Each new position sees all the old ones, itself, and those of the new ones before it",
        "attn_mask=mask",
        "is_causal=True",
    ),
    (
        "is_causal, but for one token",
        "for several at once: each new position sees all the old ones",
        "attn_mask=mask",
        "is_causal=T > 1",
    ),
    (
        "hidden in the first call only",
        "those of the new ones that come before it",
        "attn_mask=mask",
        "attn_mask=mask if cache is None else None",
    ),
    ("nothing is hidden", "causal attention", "attn_mask=mask", "attn_mask=None"),
    ("not itself", "sees all the old ones, itself", ".tril(S - T)", ".tril(max(S - T - 1, 0))"),
    (
        "new ones first",
        "the old ones first",
        "torch.cat([cache[0], k], dim=2)",
        "torch.cat([k, cache[0]], dim=2)",
        "torch.cat([cache[1], v], dim=2)",
        "torch.cat([v, cache[1]], dim=2)",
        "torch.ones(T, S, dtype=torch.bool).tril(S - T)",
        "torch.cat([torch.ones(T, T, dtype=torch.bool).tril(), torch.ones(T, S - T, dtype=torch.bool)], 1)",
    ),
    (
        "only new ones are returned",
        "the keys and values of all S + T positions",
        "(k, v)\n",
        "(k[:, :, -T:], v[:, :, -T:])\n",
    ),
    ("values and keys", "`(output, (keys, values))`", "(k, v)\n", "(v, k)\n"),
    (
        "the cache is not used",
        "The cache that you are given counts as it is",
        "    y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)\n",
        "    y = F.scaled_dot_product_attention(q, k[:, :, -T:], v[:, :, -T:], is_causal=True)\n",
    ),
    (
        "old values are forgotten",
        "a pair of the keys and the values of the S positions before",
        "torch.cat([cache[1], v], dim=2)",
        "torch.cat([torch.zeros_like(cache[1]), v], dim=2)",
    ),
    (
        "a memory of its own",
        "counts as it is, wherever it comes from",
        CODE,
        """
seen = []


def attend_cached(x, weights, n_heads, cache):
    if cache is None:
        seen.clear()
    seen.append(x)
    whole = torch.cat(seen, dim=1)

    def part(name, y):
        y = F.linear(y, weights[name + ".weight"], weights[name + ".bias"])
        return y.unflatten(-1, (n_heads, -1)).transpose(1, 2)

    q, k, v = part("query", whole), part("key", whole), part("value", whole)
    y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(whole.shape)
    y = F.linear(y, weights["output.weight"], weights["output.bias"])
    return y[:, -x.shape[1] :], (k, v)
""",
    ),
    (
        "the cache grows in place",
        "and stays as it was",
        "        k = torch.cat([cache[0], k], dim=2)\n        v = torch.cat([cache[1], v], dim=2)\n",
        "        cache[0].data = torch.cat([cache[0], k], dim=2)\n"
        "        cache[1].data = torch.cat([cache[1], v], dim=2)\n        k, v = cache\n",
    ),
    (
        "keys are remembered scaled",
        "the keys and values: as a MiniGPT's attention has them",
        "    if cache is not None:\n",
        "    k = k / math.sqrt(k.shape[-1])\n    if cache is not None:\n",
        "attn_mask=mask",
        "attn_mask=mask, scale=1.0",
    ),
    (
        "divided by the root of D",
        "attention with several heads, as MiniGPT's",
        "attn_mask=mask",
        "attn_mask=mask, scale=x.shape[-1] ** -0.5",
    ),
    (
        "positions and heads are not exchanged",
        "(B, H, S, D/H) each",
        "y.unflatten(-1, (n_heads, -1)).transpose(1, 2)",
        "y.reshape(len(x), n_heads, x.shape[1], -1)",
    ),
    (
        "not put side by side",
        "Return `(output, ...)`, (B, T, D): several heads",
        "y.transpose(1, 2).reshape(x.shape)",
        "y.reshape(x.shape)",
    ),
    (
        "no bias at the end",
        "`weights` has a bias for `output`",
        'weights["output.weight"], weights["output.bias"])',
        'weights["output.weight"])',
    ),
    (
        "no output map",
        "`weights` for `output`",
        'return F.linear(y, weights["output.weight"], weights["output.bias"]), ',
        "return y, ",
    ),
    ("four heads", "`n_heads`", "(n_heads, -1)", "(4, -1)"),
    (
        "one sentence's past",
        "(B, H, S, D/H)",
        "torch.cat([cache[0], k], dim=2)",
        "torch.cat([cache[0][:1].expand(len(x), -1, -1, -1), k], dim=2)",
    ),
    (
        "what was old is cut away",
        "the keys and values of all S + T positions",
        "(k, v)\n",
        "(k[:, :, -6:], v[:, :, -6:])\n",
    ),
    (
        "float32 whatever comes",
        "and so is what you return",
        'weights["output.bias"]), (k, v)',
        'weights["output.bias"]).float(), (k, v)',
    ),
]

# --- 4 · Picking a word --------------------------------------------------------------------------

RIGHT["pick"] = {
    "sort, mask, scatter": """
def pick(logits, u, temperature, top_k, top_p):
    if temperature == 0:
        return logits.argmax(-1)
    probs = (logits / temperature).softmax(-1)
    ranked, ids = probs.sort(dim=-1, descending=True, stable=True)
    if top_k is not None:
        ranked[:, top_k:] = 0
    ranked = ranked / ranked.sum(-1, keepdim=True)
    if top_p is not None:
        before = ranked.cumsum(-1) - ranked
        ranked = ranked.masked_fill(before >= top_p, 0)
    ranked = ranked / ranked.sum(-1, keepdim=True)
    stays = torch.zeros_like(probs).scatter(-1, ids, ranked)
    found = stays.cumsum(-1) > u[:, None]
    last = stays.shape[-1] - 1 - (stays > 0).flip(-1).int().argmax(-1)
    return torch.where(found.any(-1), found.int().argmax(-1), last)
""",
    "row by row, in Python": """
def pick_one(row, dice, temperature, top_k, top_p):
    words = range(len(row))
    if temperature == 0:
        return max(words, key=lambda w: row[w])
    top = max(row)
    p = [math.exp((x - top) / temperature) for x in row]
    total = sum(p)
    p = [x / total for x in p]
    ranking = sorted(words, key=lambda w: (-p[w], w))[:top_k]
    if top_p is not None:
        left, total, so_far = [], sum(p[w] for w in ranking), 0.0
        for w in ranking:
            if so_far >= top_p:
                break
            left.append(w)
            so_far += p[w] / total
        ranking = left
    total, so_far = sum(p[w] for w in ranking), 0.0
    for w in sorted(ranking):
        so_far += p[w] / total
        if so_far > dice:
            return w
    return max(ranking)


def pick(logits, u, temperature, top_k, top_p):
    return torch.tensor([pick_one(row, dice, temperature, top_k, top_p) for row, dice in zip(logits.tolist(), u.tolist())])
""",
    "ranks and minus infinity": """
def pick(logits, u, temperature, top_k, top_p):
    if not temperature:
        return torch.max(logits, dim=1).indices
    logits = logits / temperature
    order = torch.argsort(logits, dim=1, descending=True, stable=True)
    rank = torch.argsort(order, dim=1)
    if top_k is not None:
        logits = logits.masked_fill(rank >= top_k, -torch.inf)
    if top_p is not None:
        p = torch.softmax(logits, dim=1).gather(1, order)
        count = 1 + (p.cumsum(1)[:, :-1] < top_p).sum(dim=1, keepdim=True)
        logits = logits.masked_fill(rank >= count, -torch.inf)
    sums = torch.softmax(logits.double(), dim=1).cumsum(1)
    return torch.searchsorted(sums, u.double()[:, None], right=True)[:, 0].clamp(max=logits.shape[1] - 1)
""",
}
WRONG["pick"] = [
    (
        "almost zero",
        "the first of them if there are several; `u` is then of no account",
        "        return logits.argmax(-1)\n",
        "        temperature, top_k, top_p = 1e-6, None, None\n",
    ),
    (
        "the last of the largest",
        "the first of them if there are several",
        "return logits.argmax(-1)",
        "return logits.shape[-1] - 1 - logits.flip(-1).argmax(-1)",
    ),
    (
        "the smallest",
        "the one with the largest logit",
        "return logits.argmax(-1)",
        "return logits.argmin(-1)",
    ),
    (
        "times the temperature",
        "the logits divided by the temperature",
        "logits / temperature",
        "logits * temperature",
    ),
    ("no temperature", "the logits divided by the temperature", "(logits / temperature)", "logits"),
    (
        "the temperature comes last",
        "in this order: temperature, top-k, top-p",
        "probs = (logits / temperature).softmax(-1)",
        "probs = logits.softmax(-1)",
        "    stays = torch",
        "    ranked = ranked ** (1 / temperature)\n    ranked = ranked / ranked.sum(-1, keepdim=True)\n    stays = torch",
    ),
    (
        "equal ones rank the other way round",
        "of equal ones, the one with the smaller id ranks higher",
        "    ranked, ids = probs.sort(dim=-1, descending=True, stable=True)\n",
        "    ranked, ids = (both.flip(-1) for both in probs.sort(dim=-1, stable=True))\n    ranked = ranked.clone()\n",
    ),
    (
        "all that are as likely as the k-th",
        "only the first `top_k` of the ranking stay",
        "ranked[:, top_k:] = 0",
        "ranked[ranked < ranked[:, : top_k][:, -1:]] = 0",
    ),
    (
        "one more than k",
        "only the first `top_k` of the ranking stay",
        "ranked[:, top_k:] = 0",
        "ranked[:, top_k + 1 :] = 0",
    ),
    (
        "never fewer than k",
        "all of them if there are fewer",
        "ranked[:, top_k:] = 0",
        "ranked = ranked * (ranked >= ranked.topk(top_k).values[:, -1:])",
    ),
    (
        "sums of all, not of what has stayed",
        "of what has stayed, with probabilities that sum to 1 again",
        "        ranked[:, top_k:] = 0\n    ranked = ranked / ranked.sum(-1, keepdim=True)\n",
        "        ranked[:, top_k:] = 0\n",
    ),
    (
        "top-p comes first",
        "in this order: top-k, top-p",
        "    if top_k is not None:\n        ranked[:, top_k:] = 0\n    ranked = ranked / ranked.sum(-1, keepdim=True)\n",
        "",
        "        ranked = ranked.masked_fill(before >= top_p, 0)\n",
        "        ranked = ranked.masked_fill(before >= top_p, 0)\n    if top_k is not None:\n        ranked[:, top_k:] = 0\n",
    ),
    (
        "one too few",
        "the shortest beginning of the ranking that sums to `top_p` or more",
        "ranked.cumsum(-1) - ranked",
        "ranked.cumsum(-1)",
        "before >= top_p",
        "before > top_p",
    ),
    (
        "one too few, but never none",
        "the shortest beginning of the ranking that sums to `top_p` or more",
        "before = ranked.cumsum(-1) - ranked",
        "before = ranked.cumsum(-1) * (torch.arange(ranked.shape[-1]) > 0)",
        "before >= top_p",
        "before > top_p",
    ),
    ("reached, and one more", "sums to `top_p` or more", "before >= top_p", "before > top_p"),
    (
        "those above top_p",
        "the shortest beginning of the ranking that sums to `top_p` or more",
        "before = ranked.cumsum(-1) - ranked\n",
        "",
        "before >= top_p",
        "ranked < ranked[:, :1] * top_p",
    ),
    (
        "what stays doesn't sum to 1",
        "What stays sums to 1 again",
        "    ranked = ranked / ranked.sum(-1, keepdim=True)\n    stays",
        "    stays",
    ),
    (
        "in the order of the ranking",
        "Go through the words in the order of their ids",
        "    found = stays.cumsum(-1) > u[:, None]\n    last = stays.shape[-1] - 1 - (stays > 0).flip(-1).int().argmax(-1)\n"
        "    return torch.where(found.any(-1), found.int().argmax(-1), last)\n",
        "    found = ranked.cumsum(-1) > u[:, None]\n    return ids.gather(-1, found.int().argmax(-1, keepdim=True))[:, 0]\n",
    ),
    ("the sum reaches u", "the sum is larger than the row's `u`", "> u[:, None]", ">= u[:, None]"),
    (
        "the word before",
        "the first word at which the sum is larger",
        "found = stays.cumsum(-1) > u",
        "found = stays.cumsum(-1) + stays.roll(-1, -1) > u",
    ),
    ("one u for all", "a number for each row", "u[:, None]", "u[0]"),
    ("new dice", "Nothing is drawn at random in it", "> u[:, None]", "> torch.rand(len(u), 1)"),
    (
        "a column",
        "what is returned is (N,)",
        "found.int().argmax(-1), last)",
        "found.int().argmax(-1), last)[:, None]",
        "return logits.argmax(-1)",
        "return logits.argmax(-1, keepdim=True)",
    ),
    ("int32", "int64", "found.int().argmax(-1), last)", "found.int().argmax(-1), last).int()"),
    (
        "divided in place",
        "No function changes what it is given",
        "(logits / temperature)",
        "logits.div_(temperature)",
    ),
]

# --- 5 · Prompts of unequal length ---------------------------------------------------------------

RIGHT["generate"] = {
    "padded on the left": """
def generate(model, prompts, limit, pad, eos):
    said = [[] for _ in prompts]
    if limit < 1 or not prompts:
        return said
    longest = max(len(p) for p in prompts)
    tokens = torch.tensor([[pad] * (longest - len(p)) + p for p in prompts])
    padding = torch.tensor([[False] * (longest - len(p)) + [True] * len(p) for p in prompts])
    positions = (padding.cumsum(1) - 1).clamp(min=0)
    cache = None
    done = [False] * len(prompts)
    for step in range(limit):
        logits, cache = model(tokens, positions, padding, cache)
        words = logits[:, -1].argmax(-1).tolist()
        for row, word in enumerate(words):
            if not done[row]:
                said[row].append(word)
                done[row] = word == eos
        if all(done):
            break
        tokens = torch.tensor(words)[:, None]
        positions = positions[:, -1:] + 1
        padding = torch.cat([padding, torch.ones(len(prompts), 1, dtype=torch.bool)], dim=1)
    return said
""",
    "padded on the right, ends are looked up": """
def generate(model, prompts, limit, pad, eos):
    lengths = torch.tensor([len(p) for p in prompts])
    width = int(lengths.max())
    real = torch.arange(width) < lengths[:, None]
    tokens = torch.full((len(prompts), width), pad)
    tokens[real] = torch.tensor([word for p in prompts for word in p])
    positions = torch.arange(width).expand(len(prompts), -1) * real
    new, cache = torch.zeros(len(prompts), 0, dtype=torch.int64), None
    while new.shape[1] < limit and not (new == eos).any(1).all():
        if cache is not None:
            tokens, positions = new[:, -1:], positions.max(1, keepdim=True).values + 1
            real = torch.cat([real, torch.ones_like(tokens, dtype=torch.bool)], 1)
        logits, cache = model(tokens, positions, real, cache)
        at = lengths - 1 if new.shape[1] == 0 else torch.zeros_like(lengths)
        word = logits[torch.arange(len(prompts)), at].argmax(-1)
        new = torch.cat([new, word[:, None]], 1)
    rows = new.tolist()
    return [row[: row.index(eos) + 1] if eos in row else row for row in rows]
""",
    "those that have ended are padding": """
def generate(model, prompts, limit, pad, eos):
    n, texts, over = len(prompts), [list(p) for p in prompts], [False] * len(prompts)
    width, cache, flags = max(map(len, prompts)), None, [[] for _ in prompts]
    for step in range(limit):
        if all(over):
            break
        if step == 0:
            columns = [[pad] * (width - len(t)) + t for t in texts]
            flags = [[False] * (width - len(t)) + [True] * len(t) for t in texts]
            places = [[0] * (width - len(t)) + list(range(len(t))) for t in texts]
        else:
            columns = [[pad if o else t[-1]] for t, o in zip(texts, over)]
            places = [[0 if o else len(t) - 1] for t, o in zip(texts, over)]
            flags = [f + [not o] for f, o in zip(flags, over)]
        logits, cache = model(torch.tensor(columns), torch.tensor(places), torch.tensor(flags), cache)
        for i, word in enumerate(logits[:, -1].argmax(1).tolist()):
            if not over[i]:
                texts[i].append(word)
                over[i] = word == eos
    return [t[len(p):] for t, p in zip(texts, prompts)]
""",
}
WRONG["generate"] = [
    (
        "padded on the right",
        "The ends of the prompts: what comes after each of the T tokens",
        "[[pad] * (longest - len(p)) + p for p in prompts]",
        "[p + [pad] * (longest - len(p)) for p in prompts]",
        "[[False] * (longest - len(p)) + [True] * len(p) for p in prompts]",
        "[[True] * len(p) + [False] * (longest - len(p)) for p in prompts]",
    ),
    (
        "columns are positions",
        "where each token stands in its own text: the first of a prompt at 0",
        "positions = (padding.cumsum(1) - 1).clamp(min=0)",
        "positions = torch.arange(longest).repeat(len(prompts), 1)",
    ),
    (
        "later positions are columns",
        "where each token stands in its own text",
        "positions = positions[:, -1:] + 1",
        "positions = torch.full((len(prompts), 1), longest + step)",
    ),
    (
        "later positions stay",
        "where each token stands in its own text",
        "positions = positions[:, -1:] + 1",
        "positions = positions[:, -1:]",
    ),
    (
        "later positions begin anew",
        "where each token stands in its own text",
        "positions = positions[:, -1:] + 1",
        "positions = torch.full((len(prompts), 1), step)",
    ),
    (
        "counted from 1",
        "the first of a prompt at 0",
        "(padding.cumsum(1) - 1).clamp(min=0)",
        "padding.cumsum(1)",
    ),
    ("minus one for padding", "any number from 0 on will do", ".clamp(min=0)", ""),
    (
        "what equals pad is padding",
        "`pad` may also be a word of the prompts like any other",
        "torch.tensor([[False] * (longest - len(p)) + [True] * len(p) for p in prompts])",
        "tokens != pad",
    ),
    (
        "pad is never said",
        "it is `padding` that tells the two apart",
        "logits[:, -1].argmax(-1)",
        "logits[:, -1].index_fill(-1, torch.tensor([pad]), -math.inf).argmax(-1)",
    ),
    (
        "everything is real",
        "True where a real token is",
        "[[False] * (longest - len(p))",
        "[[True] * (longest - len(p))",
    ),
    (
        "True is padding",
        "True where a real token is",
        "[[False] * (longest - len(p)) + [True] * len(p) for p in prompts]",
        "[[True] * (longest - len(p)) + [False] * len(p) for p in prompts]",
        "positions = (padding",
        "positions = ((~padding)",
        "torch.ones(len(prompts), 1, dtype",
        "torch.zeros(len(prompts), 1, dtype",
    ),
    (
        "padding of the new column",
        "for all S columns so far",
        "torch.cat([padding, torch.ones(len(prompts), 1, dtype=torch.bool)], dim=1)",
        "torch.ones(len(prompts), 1, dtype=torch.bool)",
    ),
    (
        "padding is not hidden later",
        "for all S columns so far",
        "torch.cat([padding, torch.ones(len(prompts), 1, dtype=torch.bool)], dim=1)",
        "torch.ones(len(prompts), padding.shape[1] + 1, dtype=torch.bool)",
    ),
    (
        "no memory",
        "`cache` is later what the call before returned",
        "logits, cache = model",
        "logits, _ = model",
    ),
    (
        "the first memory",
        "what the call before returned",
        "logits, cache = model(tokens, positions, padding, cache)",
        "logits, later = model(tokens, positions, padding, cache)\n        cache = cache or later",
    ),
    (
        "the whole text each time",
        "each later one gets one column",
        "logits, cache = model(",
        "logits, _ = model(",
        "tokens = torch.tensor(words)[:, None]",
        "tokens = torch.cat([tokens, torch.tensor(words)[:, None]], 1)",
        "positions = positions[:, -1:] + 1",
        "positions = torch.cat([positions, positions[:, -1:] + 1], 1)",
    ),
    (
        "one prompt after the other",
        "All of them go through the model together",
        CODE,
        """
def generate(model, prompts, limit, pad, eos):
    said = []
    for prompt in prompts:
        words, tokens, cache = [], torch.tensor([prompt]), None
        while len(words) < limit and eos not in words:
            seen = len(prompt) + len(words)
            positions = torch.arange(seen - tokens.shape[1], seen)[None]
            logits, cache = model(tokens, positions, torch.ones(1, seen, dtype=torch.bool), cache)
            words.append(int(logits[0, -1].argmax()))
            tokens = torch.tensor([[words[-1]]])
        said.append(words)
    return said
""",
    ),
    (
        "without the eos",
        "up to and with the first `eos`",
        "                said[row].append(word)\n                done[row] = word == eos\n",
        "                done[row] = word == eos\n                if not done[row]:\n                    said[row].append(word)\n",
    ),
    (
        "on after the eos",
        "up to and with the first `eos`",
        "            if not done[row]:\n                said[row].append(word)\n                done[row] = word == eos\n",
        "            said[row].append(word)\n            done[row] = done[row] or word == eos\n",
    ),
    (
        "all end with the first",
        "Each prompt gets what it would get alone",
        "if all(done)",
        "if any(done)",
    ),
    (
        "the last call's end decides",
        "No call is made whose answer is not needed",
        "if all(done)",
        "if all(word == eos for word in words)",
    ),
    (
        "an eos in the prompt ends it",
        "up to the first `eos` of the new ids",
        "done = [False] * len(prompts)",
        "done = [eos in p for p in prompts]",
    ),
    (
        "one call too many",
        "No call is made whose answer is not needed",
        "        if all(done):\n            break\n",
        "",
        "for step in range(limit):\n",
        "for step in range(limit):\n        if all(done):\n            model(tokens, positions, padding, cache)\n            break\n",
    ),
    (
        "always `limit` calls",
        "No call is made whose answer is not needed",
        "        if all(done):\n            break\n",
        "",
    ),
    ("one word more", "at most `limit` of them", "range(limit)", "range(limit + 1)"),
    ("one word fewer", "at most `limit` of them", "range(limit)", "range(max(1, limit - 1))"),
    (
        "a word for nothing",
        "at most `limit` of them",
        "    if limit < 1 or not prompts:\n        return said\n",
        "    limit = max(limit, 1)\n",
    ),
    (
        "tensors of one number",
        "a list of ints",
        "words = logits[:, -1].argmax(-1).tolist()",
        "words = list(logits[:, -1].argmax(-1))",
        "torch.tensor(words)",
        "torch.stack(words)",
        "done[row] = word == eos",
        "done[row] = bool(word == eos)",
    ),
    (
        "prompts, too",
        "a list with the new ids of each prompt",
        "said = [[] for _ in prompts]",
        "said = [list(p) for p in prompts]",
    ),
    (
        "sorted by length",
        "a list with the new ids of each prompt",
        "    said = [[]",
        "    prompts = sorted(prompts, key=len)\n    said = [[]",
    ),
    (
        "the first column's logits",
        "what comes after each of the T tokens",
        "logits[:, -1]",
        "logits[:, 0]",
    ),
    (
        "large numbers for padding",
        "no larger than the largest of a real one",
        "(padding.cumsum(1) - 1).clamp(min=0)",
        "torch.where(padding, padding.cumsum(1) - 1, longest)",
    ),
    (
        "the prompts column by column",
        "The first call gets the whole prompts",
        "    for step in range(limit):\n",
        "    for column in range(longest - 1):\n"
        "        here = slice(column, column + 1)\n"
        "        _, cache = model(tokens[:, here], positions[:, here], padding[:, : column + 1], cache)\n"
        "    tokens, positions = tokens[:, -1:], positions[:, -1:]\n"
        "    for step in range(limit):\n",
    ),
]

# --- 6 · What it costs ---------------------------------------------------------------------------

RIGHT["flops"] = {
    "a function of a pass": """
def one_pass(config, tokens, keys):
    d, f, v = config.d_model, config.d_ff, config.vocab_size
    maps = 4 * 2 * tokens * d * d
    scores = 2 * tokens * keys * d
    sums = 2 * tokens * keys * d
    mlp = 2 * 2 * tokens * d * f
    head = 2 * tokens * d * v
    return config.n_layers * (maps + scores + sums + mlp) + head


def flops(config, prompt, new, cached):
    total = one_pass(config, prompt, prompt)
    for n in range(prompt + 1, prompt + new):
        total += one_pass(config, 1 if cached else n, n)
    return total


def cache_bytes(config, tokens, itemsize):
    return 2 * config.n_layers * config.d_model * tokens * itemsize
""",
    "closed form": """
def flops(config, prompt, new, cached):
    d, L = config.d_model, config.n_layers
    last = prompt + new - 1
    keys = last * (last + 1) // 2 - prompt * (prompt - 1) // 2
    squares = lambda n: n * (n + 1) * (2 * n + 1) // 6
    if cached:
        through, pairs = last, prompt**2 + keys - prompt
    else:
        through, pairs = keys, squares(last) - squares(prompt - 1)
    per_token = L * (8 * d**2 + 4 * d * config.d_ff) + 2 * d * config.vocab_size
    return through * per_token + pairs * L * 4 * d


def cache_bytes(config, tokens, itemsize):
    head = config.d_model // config.n_heads
    return sum(2 * config.n_heads * head * tokens * itemsize for _ in range(config.n_layers))
""",
    "products by their shapes": """
def product(rows, inner, columns):
    return 2 * rows * inner * columns


def flops(config, prompt, new, cached):
    D, H, F_, V = config.d_model, config.n_heads, config.d_ff, config.vocab_size
    passes = [(prompt, prompt)]
    while len(passes) < new:
        keys = passes[-1][1] + 1
        passes.append((1, keys) if cached else (keys, keys))
    total = 0
    for t, k in passes:
        layer = 4 * product(t, D, D) + H * (product(t, D // H, k) + product(t, k, D // H))
        layer += product(t, D, F_) + product(t, F_, D)
        total += layer * config.n_layers + product(t, D, V)
    return total


def cache_bytes(config, tokens, itemsize):
    shape = (config.n_layers, 2, config.n_heads, tokens, config.d_model // config.n_heads)
    return math.prod(shape) * itemsize
""",
}
WRONG["flops"] = [
    (
        "multiplications only",
        "two operations for each multiplication and its addition",
        "    return config.n_layers * (maps + scores + sums + mlp) + head\n",
        "    return (config.n_layers * (maps + scores + sums + mlp) + head) // 2\n",
    ),
    (
        "three maps",
        "the four maps of attention",
        "4 * 2 * tokens * d * d",
        "3 * 2 * tokens * d * d",
    ),
    ("no weighted sums", "scores, weighted sums", "scores + sums", "scores"),
    (
        "biases",
        "Nothing else counts, no bias either",
        "maps = 4 * 2 * tokens * d * d",
        "maps = 4 * (2 * tokens * d * d + tokens * d)",
    ),
    (
        "a softmax",
        "Nothing else counts",
        "    sums =",
        "    scores += 3 * config.n_heads * tokens * keys\n    sums =",
    ),
    (
        "the past only",
        "hidden ones too",
        "    sums = 2 * tokens * keys * d\n",
        "    scores = sums = 2 * d * sum(range(keys - tokens + 1, keys + 1))\n",
    ),
    (
        "once for each head",
        "scores and weighted sums, whose heads have D/H channels",
        "scores = 2 * tokens",
        "scores = config.n_heads * 2 * tokens",
    ),
    (
        "one head's scores",
        "scores are computed for all pairs, in all heads",
        "scores = 2 * tokens * keys * d",
        "scores = 2 * tokens * keys * d // config.n_heads",
    ),
    (
        "an MLP of four times the width",
        "the MLP's two maps: of a `config`",
        "d, f, v = config.d_model, config.d_ff,",
        "d, f, v = config.d_model, 4 * config.d_model,",
    ),
    ("half of the MLP", "the MLP's two maps", "mlp = 2 * 2 *", "mlp = 2 *"),
    ("one layer", "a MiniGPT of a `config`", "config.n_layers * (", "("),
    (
        "a head in each layer",
        "the LM head",
        "(maps + scores + sums + mlp) + head",
        "(maps + scores + sums + mlp + head)",
    ),
    ("no head", "the LM head", "+ mlp) + head", "+ mlp)"),
    (
        "the head reads the last token",
        "every token that goes through the model goes through the head",
        "head = 2 * tokens * d * v",
        "head = 2 * d * v",
    ),
    (
        "one pass too many",
        "The last new word itself goes through nothing",
        "range(prompt + 1, prompt + new)",
        "range(prompt + 1, prompt + new + 1)",
    ),
    (
        "one pass too few",
        "Each further one takes a pass of its own",
        "range(prompt + 1, prompt + new)",
        "range(prompt + 1, prompt + new - 1)",
    ),
    (
        "one key too few",
        "whose queries still meet the keys of all tokens so far",
        "1 if cached else n, n)",
        "1 if cached else n, n - cached)",
    ),
    (
        "one key only",
        "whose queries still meet the keys of all tokens so far",
        "1 if cached else n, n)",
        "1 if cached else n, 1 if cached else n)",
    ),
    (
        "the prompt's keys only",
        "the keys of all tokens so far",
        "1 if cached else n, n)",
        "1 if cached else n, prompt if cached else n)",
    ),
    (
        "the prompt one by one",
        "The first new word comes from a pass of the whole prompt",
        "total = one_pass(config, prompt, prompt)",
        "total = sum(one_pass(config, 1, n + 1) for n in range(prompt)) if cached else one_pass(config, prompt, prompt)",
    ),
    (
        "the prompt again and again",
        "without a cache, of all tokens so far",
        "1 if cached else n, n)",
        "1 if cached else prompt, n if cached else prompt)",
    ),
    ("cached or not", "with a cache, of the last one alone", "1 if cached else n", "n"),
    (
        "the other way round",
        "with a cache, of the last one alone",
        "1 if cached else n",
        "n if cached else 1",
    ),
    (
        "keys only",
        "the bytes of keys and values",
        "return 2 * config.n_layers *",
        "return config.n_layers *",
    ),
    (
        "one layer's cache",
        "in all layers",
        "2 * config.n_layers * config.d_model",
        "2 * config.d_model",
    ),
    (
        "one head's cache",
        "of keys and values of that many tokens: of all heads",
        "config.d_model * tokens",
        "config.d_model // config.n_heads * tokens",
    ),
    (
        "the whole context",
        "of that many tokens",
        "config.d_model * tokens",
        "config.d_model * config.context",
    ),
    ("float32", "with `itemsize` bytes a number", "tokens * itemsize", "tokens * 4"),
]

# --- 7 · From their folder -----------------------------------------------------------------------

RIGHT["from_hf"] = {
    "from our names to theirs": """
PAIRS = {
    "norm_1": "ln_1", "attention.output": "attn.c_proj", "norm_2": "ln_2",
    "mlp.up": "mlp.c_fc", "mlp.down": "mlp.c_proj",
}


def from_hf(state):
    ours = {
        "token_embedding.weight": state["transformer.wte.weight"],
        "position_embedding.weight": state["transformer.wpe.weight"],
        "final_norm.weight": state["transformer.ln_f.weight"],
        "final_norm.bias": state["transformer.ln_f.bias"],
    }
    layer = 0
    while f"transformer.h.{layer}.ln_1.weight" in state:
        here, there = f"blocks.{layer}.", f"transformer.h.{layer}."
        for kind in ("weight", "bias"):
            for mine, theirs in PAIRS.items():
                tensor = state[there + theirs + "." + kind]
                if ".c_" in theirs and kind == "weight":
                    tensor = tensor.T
                ours[here + mine + "." + kind] = tensor
            joined = state[there + "attn.c_attn." + kind]
            for name, piece in zip(("query", "key", "value"), joined.chunk(3, dim=-1)):
                ours[here + "attention." + name + "." + kind] = piece.T if kind == "weight" else piece
        layer += 1
    head = state.get("lm_head.weight", state["transformer.wte.weight"])
    ours["lm_head.weight"] = head
    ours["lm_head.bias"] = state.get("lm_head.bias", torch.zeros(len(head)))
    return ours


def load_strictly(model_class, folder):
    if not Path(folder).exists():
        raise FileNotFoundError(folder)
    model, info = model_class.from_pretrained(folder, output_loading_info=True)
    wrong = sorted(info["missing_keys"]) + sorted(info["unexpected_keys"])
    if wrong:
        raise ValueError("lost: " + ", ".join(wrong))
    return model.eval()
""",
    "from their names to ours, with patterns": """
import re

WHOLE = {"wte": "token_embedding", "wpe": "position_embedding", "ln_f": "final_norm", "lm_head": "lm_head"}
BLOCK = {"ln_1": "norm_1", "ln_2": "norm_2", "attn.c_proj": "attention.output", "mlp.c_fc": "mlp.up", "mlp.c_proj": "mlp.down"}


def from_hf(state):
    found = {}
    for name, t in state.items():
        name = name.removeprefix("transformer.")
        rest, kind = name.rsplit(".", 1)
        if rest in WHOLE:
            found[f"{WHOLE[rest]}.{kind}"] = t.clone()
            continue
        layer, part = re.fullmatch(r"h\\.(\\d+)\\.(.*)", rest).groups()
        if part == "attn":
            continue
        t = t.t() if "c_" in part and kind == "weight" else t
        if part == "attn.c_attn":
            width = t.shape[0] // 3
            for i, who in enumerate(["query", "key", "value"]):
                found[f"blocks.{layer}.attention.{who}.{kind}"] = t[i * width : (i + 1) * width].clone()
        else:
            found[f"blocks.{layer}.{BLOCK[part]}.{kind}"] = t.clone()
    found.setdefault("lm_head.weight", found["token_embedding.weight"].clone())
    found.setdefault("lm_head.bias", found["lm_head.weight"].new_zeros(found["lm_head.weight"].shape[0]))
    return found


def load_strictly(model_class, folder):
    folder = Path(folder)
    if not folder.is_dir():
        raise FileNotFoundError(f"there is no folder {folder}")
    model, report = model_class.from_pretrained(str(folder), output_loading_info=True)
    complaints = [f"{what}: {name}" for what in ("missing_keys", "unexpected_keys") for name in report[what]]
    if complaints:
        raise ValueError("\\n".join(complaints))
    model.eval()
    return model
""",
    "names compared by hand": """
from safetensors import safe_open


def linear(state, name):
    return {"weight": state[name + ".weight"].transpose(0, 1).contiguous(), "bias": state[name + ".bias"]}


def same(state, name):
    return {kind: state[f"{name}.{kind}"] for kind in ("weight", "bias")}


def block(state, there):
    joined = linear(state, f"{there}.attn.c_attn")
    D = len(joined["bias"]) // 3
    return {
        "norm_1": same(state, f"{there}.ln_1"), "norm_2": same(state, f"{there}.ln_2"),
        "attention.query": {k: t[:D] for k, t in joined.items()},
        "attention.key": {k: t[D : 2 * D] for k, t in joined.items()},
        "attention.value": {k: t[2 * D :] for k, t in joined.items()},
        "attention.output": linear(state, f"{there}.attn.c_proj"),
        "mlp.up": linear(state, f"{there}.mlp.c_fc"), "mlp.down": linear(state, f"{there}.mlp.c_proj"),
    }


def from_hf(state):
    words = state["transformer.wte.weight"]
    layers = {int(name.split(".")[2]) for name in state if name.startswith("transformer.h.")}
    modules = {"token_embedding": {"weight": words}, "position_embedding": {"weight": state["transformer.wpe.weight"]}}
    for i in sorted(layers):
        modules |= {f"blocks.{i}.{name}": part for name, part in block(state, f"transformer.h.{i}").items()}
    modules["final_norm"] = same(state, "transformer.ln_f")
    bias = state["lm_head.bias"] if "lm_head.bias" in state else torch.zeros(words.shape[0])
    modules["lm_head"] = {"weight": state.get("lm_head.weight", words), "bias": bias}
    return {f"{name}.{kind}": t for name, part in modules.items() for kind, t in part.items()}


def load_strictly(model_class, folder):
    file = Path(folder) / "model.safetensors"
    if not file.exists():
        raise FileNotFoundError(file)
    with safe_open(file, framework="pt") as f:
        there = set(f.keys())
    model = model_class.from_pretrained(folder)
    lost = there.symmetric_difference(model.state_dict())
    if lost:
        raise ValueError(f"not the same in the file and in the class: {lost}")
    return model
""",
}
WRONG["from_hf"] = [
    (
        "square ones are not turned",
        "So do all four of a block: `attn.c_proj`",
        'if ".c_" in theirs',
        'if "mlp.c_" in theirs',
    ),
    (
        "only what doesn't fit is turned",
        "So do all four of a block",
        'piece.T if kind == "weight" else piece',
        "piece.clone()",
    ),
    (
        "the MLP is not turned",
        "So do all four of a block: `mlp.c_fc` and `mlp.c_proj`",
        'if ".c_" in theirs',
        'if "attn.c_" in theirs',
    ),
    (
        "the embedding is turned",
        "A `Conv1D` holds its weight as (in, out), and an embedding is none",
        '"token_embedding.weight": state["transformer.wte.weight"]',
        '"token_embedding.weight": state["transformer.wte.weight"].T',
    ),
    (
        "key before query",
        "query, key and value side by side, in this order",
        '("query", "key", "value")',
        '("key", "query", "value")',
    ),
    (
        "value before key",
        "query, key and value side by side, in this order",
        '("query", "key", "value")',
        '("query", "value", "key")',
    ),
    (
        "cut along the other dimension",
        "side by side; (in, out)",
        "joined.chunk(3, dim=-1)",
        "(joined.chunk(3) if kind == 'bias' else joined.reshape(3, -1, len(joined)))",
    ),
    (
        "every third channel",
        "query, key and value side by side",
        "joined.chunk(3, dim=-1)",
        "[joined[..., i::3] for i in range(3)]",
    ),
    (
        "norms are exchanged",
        "the same weights as a MiniGPT has them",
        '"norm_1": "ln_1"',
        '"norm_1": "ln_2"',
        '"norm_2": "ln_2"',
        '"norm_2": "ln_1"',
    ),
    (
        "the MLP's biases are forgotten",
        "the same weights as a MiniGPT has them",
        '                tensor = state[there + theirs + "." + kind]\n',
        "                tensor = state[there + theirs + \".\" + kind]\n                tensor = torch.zeros_like(tensor) if kind == 'bias' and 'mlp' in mine else tensor\n",
    ),
    (
        "a bias must be there",
        "`lm_head.bias` may be missing, and then it is zeros",
        'state.get("lm_head.bias", torch.zeros(len(head)))',
        'state["lm_head.bias"]',
    ),
    (
        "never a bias",
        "`lm_head.bias` may be missing",
        'state.get("lm_head.bias", torch.zeros(len(head)))',
        "torch.zeros(len(head))",
    ),
    (
        "no bias at all",
        "`lm_head.bias` may be missing, and then it is zeros",
        '    ours["lm_head.bias"] = state.get("lm_head.bias", torch.zeros(len(head)))\n',
        '    if "lm_head.bias" in state:\n        ours["lm_head.bias"] = state["lm_head.bias"]\n',
    ),
    (
        "a bias as wide as the stream",
        "then it is zeros",
        "torch.zeros(len(head))",
        "torch.zeros(head.shape[1])",
    ),
    (
        "a head must be there",
        "`lm_head.weight` may be missing",
        'state.get("lm_head.weight", state["transformer.wte.weight"])',
        'state["lm_head.weight"]',
    ),
    (
        "always tied",
        "`lm_head.weight` may be missing, and then",
        'state.get("lm_head.weight", state["transformer.wte.weight"])',
        'state["transformer.wte.weight"]',
    ),
    (
        "without a head the bias is forgotten",
        "then the head shares the embedding's weight: only that",
        'ours["lm_head.bias"] = state.get("lm_head.bias", torch.zeros(len(head)))',
        'ours["lm_head.bias"] = state["lm_head.bias"] if "lm_head.bias" in state and "lm_head.weight" in state else torch.zeros(len(head))',
    ),
    (
        "two blocks",
        "as many blocks as the names say",
        'while f"transformer.h.{layer}.ln_1.weight" in state:',
        "while layer < 2:",
    ),
    (
        "at most ten blocks",
        "as many blocks as the names say",
        "in state:\n        here",
        "in state and layer < 10:\n        here",
    ),
    (
        "masks are carried over",
        "MiniGPT has no place for them",
        '        for kind in ("weight", "bias"):\n            for mine',
        '        if there + "attn.bias" in state:\n            ours[here + "attention.bias"] = state[there + "attn.bias"]\n'
        '        for kind in ("weight", "bias"):\n            for mine',
    ),
    (
        "the masked_bias is carried over",
        "what is returned has only what MiniGPT has",
        "    return ours\n",
        '    return ours | {k: v for k, v in state.items() if k.endswith("masked_bias")}\n',
    ),
    (
        "what is nowhere is an OSError",
        "Where the folder does not exist, it raises `FileNotFoundError`",
        "    if not Path(folder).exists():\n        raise FileNotFoundError(folder)\n",
        "",
    ),
    (
        "a ValueError for all",
        "it raises `FileNotFoundError`",
        "raise FileNotFoundError(folder)",
        "raise ValueError(folder)",
    ),
    (
        "dropped in silence",
        "Where the file has a tensor that the class has no place for",
        'sorted(info["missing_keys"]) + sorted(info["unexpected_keys"])',
        'sorted(info["missing_keys"])',
    ),
    (
        "drawn in silence",
        "or lacks one that the class needs",
        'sorted(info["missing_keys"]) + sorted(info["unexpected_keys"])',
        'sorted(info["unexpected_keys"])',
    ),
    (
        "no names",
        "the message names each such tensor",
        '"lost: " + ", ".join(wrong)',
        '"lost: " + str(len(wrong))',
    ),
    ("a KeyError", "it raises `ValueError`", "raise ValueError(", "raise KeyError("),
    (
        "a warning",
        "it raises `ValueError`",
        'raise ValueError("lost: " + ", ".join(wrong))',
        'print("lost: " + ", ".join(wrong))',
    ),
    (
        "the pair",
        "returns `model_class.from_pretrained(folder)`",
        "return model.eval()",
        "return model, info",
    ),
    ("in training mode", "in evaluation mode", "return model.eval()", "return model.train()"),
    (
        "the class is ignored",
        "`model_class.from_pretrained(folder)`",
        "model_class.from_pretrained(",
        "MiniGPTForCausalLM.from_pretrained(",
    ),
    (
        "taken out of the state",
        "No function changes what it is given",
        '"transformer.ln_f.bias"],\n    }\n',
        '"transformer.ln_f.bias"],\n    }\n    del state["transformer.ln_f.bias"]\n',
    ),
    ("only the first name", "the message names each such tensor", '", ".join(wrong)', "wrong[0]"),
    (
        "only one kind of names",
        "the message names each such tensor",
        'sorted(info["missing_keys"]) + sorted(',
        'sorted(info["missing_keys"]) or sorted(',
    ),
]

# --- 8 · Fewer keys and values -------------------------------------------------------------------

RIGHT["grouped"] = {
    "repeated keys, PyTorch's attention": """
class GroupedAttention(nn.Module):
    def __init__(self, config, kv_heads):
        super().__init__()
        self.n_heads, self.kv_heads = config.n_heads, kv_heads
        width = config.d_model
        narrow = width // config.n_heads * kv_heads
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, narrow)
        self.value = nn.Linear(width, narrow)
        self.output = nn.Linear(width, width)

    def forward(self, x):
        q = self.query(x).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
        k = self.key(x).unflatten(-1, (self.kv_heads, -1)).transpose(1, 2)
        v = self.value(x).unflatten(-1, (self.kv_heads, -1)).transpose(1, 2)
        g = self.n_heads // self.kv_heads
        k, v = k.repeat_interleave(g, dim=1), v.repeat_interleave(g, dim=1)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.output(y.transpose(1, 2).reshape(x.shape))


def grouped(attention, kv_heads):
    width, heads = attention.query.in_features, attention.n_heads
    made = GroupedAttention(MiniGPTConfig(d_model=width, n_heads=heads), kv_heads)
    with torch.no_grad():
        for name in ("query", "output"):
            getattr(made, name).load_state_dict(getattr(attention, name).state_dict())
        for name in ("key", "value"):
            old, new = getattr(attention, name), getattr(made, name)
            shape = (kv_heads, heads // kv_heads, width // heads)
            new.weight.copy_(old.weight.view(*shape, width).mean(1).flatten(0, 1))
            new.bias.copy_(old.bias.view(shape).mean(1).flatten())
    return made
""",
    "groups of queries, einsum": """
class GroupedAttention(nn.Module):
    def __init__(self, config, kv_heads):
        super().__init__()
        self.d = config.d_model // config.n_heads
        self.kv = kv_heads
        self.query = nn.Linear(config.d_model, config.d_model)
        self.key = nn.Linear(config.d_model, self.d * kv_heads)
        self.value = nn.Linear(config.d_model, self.d * kv_heads)
        self.output = nn.Linear(config.d_model, config.d_model)

    def forward(self, x):
        B, T, D = x.shape
        q = self.query(x).view(B, T, self.kv, -1, self.d)
        k = self.key(x).view(B, T, self.kv, self.d)
        v = self.value(x).view(B, T, self.kv, self.d)
        scores = torch.einsum("bqngd,bknd->bngqk", q, k) / math.sqrt(self.d)
        scores = scores.masked_fill(torch.ones(T, T).triu(1) > 0, float("-inf"))
        return self.output(torch.einsum("bngqk,bknd->bqngd", scores.softmax(-1), v).reshape(B, T, D))


def grouped(attention, kv_heads):
    state = {name: t.clone() for name, t in attention.state_dict().items()}
    D, H = len(state["query.bias"]), attention.n_heads
    for name in ("key.weight", "key.bias", "value.weight", "value.bias"):
        heads = state[name].split(D // H)
        g = H // kv_heads
        means = [sum(heads[i : i + g]) / g for i in range(0, H, g)]
        state[name] = torch.cat(means)
    made = GroupedAttention(MiniGPTConfig(d_model=D, n_heads=H), kv_heads)
    made.load_state_dict(state)
    return made
""",
    "a subclass, enable_gqa": """
from types import SimpleNamespace


class GroupedAttention(CausalSelfAttention):
    def __init__(self, config, kv_heads):
        super().__init__(config)
        size = kv_heads * config.d_model // config.n_heads
        self.key = nn.Linear(config.d_model, size)
        self.value = nn.Linear(config.d_model, size)
        self.kv_heads = kv_heads

    def forward(self, x):
        q = self._split(self.query(x))
        k, v = (part(x).unflatten(-1, (self.kv_heads, -1)).transpose(1, 2) for part in (self.key, self.value))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        return self.output(y.transpose(1, 2).flatten(2))


@torch.no_grad()
def grouped(attention, kv_heads):
    D, H = attention.output.out_features, attention.n_heads
    module = GroupedAttention(SimpleNamespace(d_model=D, n_heads=H), kv_heads)
    mean = lambda t: t.unflatten(0, (kv_heads, H // kv_heads, D // H)).mean(1).flatten(0, 1)
    module.load_state_dict({
        name: mean(t) if name.startswith(("key", "value")) else t for name, t in attention.state_dict().items()
    })
    return module
""",
}
WRONG["grouped"] = [
    (
        "repeat",
        "Query head h looks at key and value head h // g",
        "k.repeat_interleave(g, dim=1), v.repeat_interleave(g, dim=1)",
        "k.repeat(1, g, 1, 1), v.repeat(1, g, 1, 1)",
    ),
    (
        "values are repeated in another order",
        "Query head h looks at key and value head h // g",
        "v.repeat_interleave(g, dim=1)",
        "v.repeat(1, g, 1, 1)",
    ),
    (
        "queries in another order",
        "Query head h looks at key and value head h // g",
        "self.query(x).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)",
        "self.query(x).unflatten(-1, (-1, self.n_heads)).permute(0, 3, 1, 2)",
    ),
    ("not causal", "Its `forward(x)` is causal", "is_causal=True", "is_causal=False"),
    (
        "divided by another root",
        "all the rest is as in `CausalSelfAttention`",
        "is_causal=True",
        "is_causal=True, scale=(x.shape[-1] // self.kv_heads) ** -0.5",
    ),
    (
        "as wide as the queries",
        "`key` and `value` map to `kv_heads` heads of D/H channels each",
        "narrow = width // config.n_heads * kv_heads",
        "narrow = width",
        "(self.kv_heads, -1)",
        "(self.n_heads, -1)",
        "g = self.n_heads // self.kv_heads",
        "g = 1",
        "new.weight.copy_(old.weight.view(*shape, width).mean(1).flatten(0, 1))",
        "new.weight.copy_(old.weight.view(*shape, width).mean(1, keepdim=True).expand(*shape, width).flatten(0, 2))",
        "new.bias.copy_(old.bias.view(shape).mean(1).flatten())",
        "new.bias.copy_(old.bias.view(shape).mean(1, keepdim=True).expand(shape).flatten())",
    ),
    (
        "kv_heads is the size of a group",
        "`kv_heads` heads",
        "= config.n_heads, kv_heads\n",
        "= config.n_heads, config.n_heads // kv_heads\n",
        "config.n_heads * kv_heads\n",
        "config.n_heads * self.kv_heads\n",
    ),
    (
        "no bias",
        "linear maps with a bias",
        "nn.Linear(width, narrow)",
        "nn.Linear(width, narrow, bias=False)",
        "            new.bias.copy_(old.bias.view(shape).mean(1).flatten())\n",
        "",
    ),
    (
        "not put side by side",
        "all the rest is as in `CausalSelfAttention`",
        "y.transpose(1, 2).reshape(x.shape)",
        "y.reshape(x.shape)",
    ),
    (
        "the bias of the first head",
        "the weights and biases of a key head are the means of those of its group",
        "old.bias.view(shape).mean(1)",
        "old.bias.view(shape)[:, 0]",
    ),
    (
        "biases are forgotten",
        "the weights and biases of a key head",
        "            new.bias.copy_(old.bias.view(shape).mean(1).flatten())\n",
        "            new.bias.zero_()\n",
    ),
    ("the first head of each group", "are the means of those of its group", ".mean(1)", "[:, 0]"),
    ("sums", "are the means of those of its group", ".mean(1)", ".sum(1)"),
    (
        "every kv-th head is a group",
        "of its group: h // g",
        "shape = (kv_heads, heads // kv_heads, width // heads)",
        "shape = (heads // kv_heads, kv_heads, width // heads)",
        ".mean(1)",
        ".mean(0)",
    ),
    (
        "means of neighbouring channels",
        "A key head is the mean of the heads of its group",
        "shape = (kv_heads, heads // kv_heads, width // heads)",
        "shape = (kv_heads, width // heads, heads // kv_heads)",
        ".mean(1)",
        ".mean(2)",
    ),
    (
        "values are made of keys",
        "(and of a value head)",
        "old, new = getattr(attention, name),",
        'old, new = getattr(attention, "key"),',
    ),
    (
        "values are the first ones",
        "(and of a value head) are the means",
        "            new.weight.copy_(old.weight.view(*shape, width).mean(1).flatten(0, 1))\n",
        "            w = old.weight.view(*shape, width)\n            new.weight.copy_((w.mean(1) if name == 'key' else w[:, 0]).flatten(0, 1))\n",
    ),
    (
        "the same query",
        "What it returns is independent of `attention`",
        "getattr(made, name).load_state_dict(getattr(attention, name).state_dict())",
        "setattr(made, name, getattr(attention, name))",
    ),
    (
        "shared storage",
        "`query` and `output` are copies of its own",
        "getattr(made, name).load_state_dict(getattr(attention, name).state_dict())",
        "getattr(made, name).load_state_dict(getattr(attention, name).state_dict(), assign=True)",
    ),
    (
        "output is drawn",
        "`query` and `output` are copies of its own",
        '("query", "output")',
        '("query",)',
    ),
    (
        "means are written back",
        "`attention`, which is not changed",
        "            new.bias.copy_(",
        "            old.bias.view(shape).copy_(old.bias.view(shape).mean(1, keepdim=True))\n            new.bias.copy_(",
    ),
    (
        "four heads",
        "of a trained `CausalSelfAttention`",
        "attention.query.in_features, attention.n_heads",
        "attention.query.in_features, 4",
    ),
    (
        "a mask that is a buffer",
        "and nothing else in its state dict",
        "        self.output = nn.Linear(width, width)\n",
        "        self.output = nn.Linear(width, width)\n"
        "        self.register_buffer('past', torch.ones(config.context, config.context).tril())\n",
    ),
    (
        "sums in float32",
        "x and the weights may be float64, too",
        "self.output(y.transpose(1, 2).reshape(x.shape))",
        "self.output(y.transpose(1, 2).reshape(x.shape).float())",
    ),
]

# --- 9 · A new tense -----------------------------------------------------------------------------

RIGHT["fine_tune"] = {
    "half and half": """
Lines = tuple[torch.Tensor, torch.Tensor]


def fine_tune(weights, config, new, old, steps, seed):
    torch.manual_seed(seed)
    model = MiniGPT(config)
    model.load_state_dict(weights)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.003, weight_decay=0.0)
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = 0.003 * min(1, 2 * (1 - step / steps))
        parts = []
        for inputs, targets in (new, old):
            rows = torch.randint(len(inputs), (32,))
            parts.append((inputs[rows], targets[rows]))
        x, y = (torch.cat(both) for both in zip(*parts))
        loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model.state_dict()
""",
    "a generator of its own, two losses": """
def fine_tune(weights, config, new, old, steps, seed):
    model = MiniGPT(config)
    model.load_state_dict({name: w.clone() for name, w in weights.items()})
    dice = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.002, betas=(0.9, 0.98))
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.1, total_iters=max(steps, 1))

    def loss_of(lines, count):
        rows = torch.randperm(len(lines[0]), generator=dice)[:count]
        return F.cross_entropy(model(lines[0][rows]).transpose(1, 2), lines[1][rows])

    for _ in range(steps):
        optimizer.zero_grad(set_to_none=True)
        (0.5 * loss_of(new, 24) + 0.5 * loss_of(old, 40)).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
    return {name: w.detach().clone() for name, w in model.state_dict().items()}
""",
}
WRONG["fine_tune"] = [
    (
        "new lines only",
        "on unseen lines of all that it knew, it must stay below 2.15",
        "in (new, old):",
        "in (new, new):",
    ),
    (
        "old lines only",
        "on unseen lines in the imperfect, its perplexity must come below 2.8",
        "in (new, old):",
        "in (old, old):",
    ),
    (
        "from nothing",
        "a `MiniGPT(config)` that has begun with `weights`",
        "    model.load_state_dict(weights)\n",
        "",
    ),
    ("a hundredth of the learning rate", "its perplexity must come below 2.8", "0.003", "0.00003"),
    (
        "in place",
        "and `weights` stay as they are",
        "model.load_state_dict(weights)",
        "model.load_state_dict(weights, assign=True)",
    ),
    ("no seed", "The same arguments give the same bits", "    torch.manual_seed(seed)\n", ""),
    ("nothing is learnt", "learnt for `steps` steps", "        optimizer.step()\n", ""),
    (
        "names of its own",
        "the state dict of a `MiniGPT(config)`",
        "return model.state_dict()",
        'return {f"model.{name}": tensor for name, tensor in model.state_dict().items()}',
    ),
    (
        "a hundred steps, whatever is asked",
        "no optimizer takes more",
        "range(steps)",
        "range(100)",
        "step / steps",
        "step / 100",
    ),
]

# What the check can't tell, or the tools refuse, and why. They are not judged.
OPEN: dict[tuple[str, str], str] = {}

BANK = Bank("08")
BANK.fill(RIGHT, WRONG, OPEN)
BANK.fill(bank_08_second.RIGHT, bank_08_second.WRONG)
