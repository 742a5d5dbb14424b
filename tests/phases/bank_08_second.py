"""A second bank of lab 08, written from the lesson and the released lab alone."""

# ruff: noqa: E501
from __future__ import annotations

from tests.phases.bank import CODE

RIGHT: dict[str, dict[str, str]] = {
    "visible": {
        "comparisons": """
def visible(queries, keys, causal, padding, window):
    at = torch.arange(keys - queries, keys).unsqueeze(1)
    of = torch.arange(keys).unsqueeze(0)
    allowed = torch.ones(1, queries, keys, dtype=torch.bool)
    if causal:
        allowed = allowed & (of <= at)
    if window is not None:
        allowed = allowed & (at - of < window)
    if padding is not None:
        allowed = allowed & padding.unsqueeze(1)
    return allowed
""",
    },
    "MultiHead": {
        "NaN replaced, and its gradient by it": """
class MultiHead(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.query = nn.Linear(d_model, d_model)
        self.key = nn.Linear(d_model, d_model)
        self.value = nn.Linear(d_model, d_model)
        self.output = nn.Linear(d_model, d_model)

    def forward(self, x, allowed=None):
        B, T, D = x.shape
        q, k, v = (f(x).view(B, T, self.n_heads, -1).transpose(1, 2) for f in (self.query, self.key, self.value))
        scores = q @ k.transpose(-2, -1) / math.sqrt(D // self.n_heads)
        if allowed is not None:
            mask = allowed.unsqueeze(1)
            scores = scores.masked_fill(~mask, -math.inf)
        weights = scores.softmax(-1)
        if allowed is not None:
            weights = weights.nan_to_num(0)
        return self.output((weights @ v).transpose(1, 2).reshape(B, T, D))
""",
    },
    "attend_cached": {
        "a mask of numbers": """
def attend_cached(x, weights, n_heads, cache):
    def linear(name, t):
        return F.linear(t, weights[f"{name}.weight"], weights[f"{name}.bias"])

    def split(t):
        return t.unflatten(-1, (n_heads, -1)).transpose(1, 2)

    q, k, v = (split(linear(name, x)) for name in ("query", "key", "value"))
    if cache is not None:
        k = torch.cat((cache[0], k), dim=2)
        v = torch.cat((cache[1], v), dim=2)
    T, S = q.shape[2], k.shape[2] - q.shape[2]
    mask = torch.full((T, S + T), -math.inf).triu(S + 1)
    mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    return linear("output", mixed.transpose(1, 2).flatten(2)), (k, v)
""",
    },
    "pick": {
        "sorted and scattered": """
def pick(logits, u, temperature, top_k, top_p):
    if temperature == 0:
        return logits.argmax(-1)
    probs = torch.softmax(logits / temperature, -1)
    ranked, ids = torch.sort(probs, dim=-1, descending=True, stable=True)
    if top_k is not None:
        ranked[:, top_k:] = 0
        ranked = ranked / ranked.sum(-1, keepdim=True)
    if top_p is not None:
        before = ranked.cumsum(-1) - ranked
        ranked = ranked.masked_fill(before >= top_p, 0)
        ranked = ranked / ranked.sum(-1, keepdim=True)
    kept = torch.zeros_like(ranked).scatter(-1, ids, ranked)
    return (kept.cumsum(-1) > u[:, None]).int().argmax(-1)
""",
    },
    "generate": {
        "padded on the left": """
def generate(model, prompts, limit, pad, eos):
    if limit <= 0:
        return [[] for _ in prompts]
    longest = max(len(p) for p in prompts)
    tokens = torch.tensor([[pad] * (longest - len(p)) + p for p in prompts])
    padding = torch.tensor([[False] * (longest - len(p)) + [True] * len(p) for p in prompts])
    positions = (padding.cumsum(1) - 1).clamp(min=0)
    cache, words, done = None, [[] for _ in prompts], [False] * len(prompts)
    for step in range(limit):
        logits, cache = model(tokens, positions, padding, cache)
        new = logits[:, -1].argmax(-1)
        for i, word in enumerate(new.tolist()):
            if not done[i]:
                words[i].append(word)
                done[i] = word == eos
        if all(done):
            break
        tokens = new[:, None]
        positions = positions[:, -1:] + 1
        padding = torch.cat([padding, torch.ones(len(prompts), 1, dtype=torch.bool)], 1)
    return words
""",
        "padded on the right": """
def generate(model, prompts, limit, pad, eos):
    lengths = torch.tensor([len(p) for p in prompts])
    widest = int(lengths.max())
    tokens = nn.utils.rnn.pad_sequence([torch.tensor(p) for p in prompts], True, pad)
    padding = torch.arange(widest) < lengths[:, None]
    positions = torch.arange(widest).repeat(len(prompts), 1)
    rows, cache, said = torch.arange(len(prompts)), None, torch.empty(len(prompts), 0, dtype=torch.int64)
    while said.shape[1] < limit and not (said == eos).any(1).all():
        logits, cache = model(tokens, positions, padding, cache)
        at = lengths - 1 if said.shape[1] == 0 else torch.zeros_like(lengths)
        tokens = logits[rows, at].argmax(-1, keepdim=True)
        positions = (lengths + said.shape[1])[:, None]
        padding = F.pad(padding, (0, 1), value=True)
        said = torch.cat([said, tokens], 1)
    lists = said.tolist()
    return [row[: row.index(eos) + 1] if eos in row else row for row in lists]
""",
    },
    "grouped": {
        "repeat_interleave": """
class GroupedAttention(nn.Module):
    def __init__(self, config, kv_heads):
        super().__init__()
        self.n_heads, self.kv_heads = config.n_heads, kv_heads
        width = config.d_model // config.n_heads * kv_heads
        self.query = nn.Linear(config.d_model, config.d_model)
        self.key = nn.Linear(config.d_model, width)
        self.value = nn.Linear(config.d_model, width)
        self.output = nn.Linear(config.d_model, config.d_model)

    def forward(self, x):
        q = self.query(x).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
        k = self.key(x).unflatten(-1, (self.kv_heads, -1)).transpose(1, 2)
        v = self.value(x).unflatten(-1, (self.kv_heads, -1)).transpose(1, 2)
        g = self.n_heads // self.kv_heads
        k, v = k.repeat_interleave(g, 1), v.repeat_interleave(g, 1)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.output(mixed.transpose(1, 2).flatten(2))


def grouped(attention, kv_heads):
    width = attention.query.weight.shape[0]
    config = MiniGPTConfig(d_model=width, n_heads=attention.n_heads)
    made = GroupedAttention(config, kv_heads)
    made.query.load_state_dict(attention.query.state_dict())
    made.output.load_state_dict(attention.output.state_dict())
    with torch.no_grad():
        for name in ("key", "value"):
            old, new = getattr(attention, name), getattr(made, name)
            heads = old.weight.view(kv_heads, attention.n_heads // kv_heads, -1, width)
            new.weight.copy_(heads.mean(1).flatten(0, 1))
            new.bias.copy_(old.bias.view(kv_heads, attention.n_heads // kv_heads, -1).mean(1).flatten())
    return made
""",
    },
    "from_hf": {
        "an error of its own, which is a ValueError": """
import re

NAMES = [
    (r"^transformer\\.wte", "token_embedding"), (r"^transformer\\.wpe", "position_embedding"),
    (r"^transformer\\.ln_f", "final_norm"), (r"^transformer\\.h\\.", "blocks."),
    (r"\\.ln_(\\d)\\.", r".norm_\\1."), (r"\\.attn\\.c_proj", ".attention.output"),
    (r"c_fc", "up"), (r"mlp\\.c_proj", "mlp.down"),
]


def from_hf(state):
    out = {}
    for name, tensor in state.items():
        if re.search(r"\\.attn\\.(masked_)?bias$", name):
            continue
        if re.search(r"c_\\w+\\.weight$", name):
            tensor = tensor.t().contiguous()
        for pattern, ours in NAMES:
            name = re.sub(pattern, ours, name)
        if "c_attn" in name:
            width = tensor.shape[0] // 3
            for i, part in enumerate(("query", "key", "value")):
                out[name.replace("attn.c_attn", "attention." + part)] = tensor[i * width : (i + 1) * width].clone()
        else:
            out[name] = tensor.clone()
    out.setdefault("lm_head.weight", out["token_embedding.weight"])
    out.setdefault("lm_head.bias", out["lm_head.weight"].new_zeros(out["lm_head.weight"].shape[0]))
    return out


class Lost(ValueError):
    def __init__(self, names):
        super().__init__("no place for, or no value for: " + " ".join(names))


def load_strictly(model_class, folder, **options):
    folder = Path(folder)
    if not folder.is_dir():
        raise FileNotFoundError(f"there is no folder {folder}")
    model, report = model_class.from_pretrained(folder, output_loading_info=True, **options)
    names = {*report["missing_keys"], *report["unexpected_keys"]}
    if names:
        raise Lost(sorted(names))
    model.eval()
    return model
""",
    },
}

WRONG: dict[str, list[tuple[str, ...]]] = {
    "visible": [
        (
            "the padding, changed for one query",
            "No function changes what it is given",
            CODE,
            """
def visible(queries, keys, causal, padding, window):
    at = torch.arange(keys - queries, keys)[:, None]
    of = torch.arange(keys)
    if padding is None:
        padding = torch.ones(1, keys, dtype=torch.bool)
    mask = padding[:, None].expand(-1, queries, -1).contiguous()
    if causal:
        mask &= of <= at
    if window is not None:
        mask &= at - of < window
    return mask
""",
        ),
    ],
    "MultiHead": [
        (
            "a mask without a dimension for heads",
            "`allowed` is (B, T, T): one table for each sequence",
            "allowed.unsqueeze(1)",
            "allowed",
        ),
    ],
    "attend_cached": [
        (
            "values and keys",
            "Return `(output, (keys, values))`",
            "cache[0], k",
            "cache[1], k",
            "cache[1], v",
            "cache[0], v",
            ", (k, v)",
            ", (v, k)",
        ),
        (
            "no longer than the context",
            "the keys and values of all S + T positions",
            "    T, S =",
            "    k, v = k[:, :, -32:], v[:, :, -32:]\n    T, S =",
        ),
        (
            "one room for all that go on",
            "somebody may go on from it twice",
            CODE,
            """
ROOM = 64


def grow(old, new):
    S, T = old.shape[2], new.shape[2]
    room = old._base
    if room is None or room.dim() != 4 or room.shape[2] != ROOM:
        room = new.new_zeros(new.shape[0], new.shape[1], ROOM, new.shape[3])
        room[:, :, :S] = old
    room[:, :, S : S + T] = new
    return room[:, :, : S + T]


def attend_cached(x, weights, n_heads, cache):
    def linear(name, t):
        return F.linear(t, weights[f"{name}.weight"], weights[f"{name}.bias"])

    def split(t):
        return t.unflatten(-1, (n_heads, -1)).transpose(1, 2)

    with torch.no_grad():
        q, k, v = (split(linear(name, x)) for name in ("query", "key", "value"))
        old = (k[:, :, :0].clone(), v[:, :, :0].clone()) if cache is None else cache
        k, v = grow(old[0], k), grow(old[1], v)
        T, S = q.shape[2], k.shape[2] - q.shape[2]
        mask = torch.ones(T, S + T, dtype=torch.bool).tril(S)
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return linear("output", mixed.transpose(1, 2).flatten(2)), (k, v)
""",
        ),
    ],
    "pick": [
        (
            "ties the other way",
            "of equal ones, the one with the smaller id ranks higher",
            "torch.sort(probs, dim=-1, descending=True, stable=True)",
            "(t.flip(-1) for t in torch.sort(probs, dim=-1, stable=True))",
        ),
        (
            "exp without a maximum",
            "Probabilities are the softmax of the logits divided by the temperature",
            "torch.softmax(logits / temperature, -1)",
            "(logits / temperature).exp() / (logits / temperature).exp().sum(-1, keepdim=True)",
        ),
        (
            "cold from 0.05 on",
            "At temperature 0 a row's word is the one with the largest logit; otherwise it is drawn",
            "temperature == 0",
            "temperature < 0.05",
        ),
    ],
    "generate": [
        (
            "prompts padded in place",
            "No function changes what it is given",
            "    tokens = torch.tensor([[pad] * (longest - len(p)) + p for p in prompts])\n    padding = torch.tensor([[False] * (longest - len(p)) + [True] * len(p) for p in prompts])",
            "    padding = torch.tensor([[False] * (longest - len(p)) + [True] * len(p) for p in prompts])\n    for p in prompts:\n        p[:0] = [pad] * (longest - len(p))\n    tokens = torch.tensor(prompts)",
        ),
        (
            "ended rows are padding, and go on counting",
            "any number that is no larger than the largest of a real one",
            "torch.ones(len(prompts), 1, dtype=torch.bool)",
            "~torch.tensor(done)[:, None]",
        ),
        (
            "ended at the eos of the prompt",
            "the new ids, up to and with the first `eos`",
            "[False] * len(prompts)",
            "[p[-1] == eos for p in prompts]",
        ),
    ],
    "grouped": [
        (
            "a mask of the context",
            "of a config, your class needs no more than `d_model` and `n_heads`",
            "        width = config",
            "        self.past = torch.ones(config.context, config.context, dtype=torch.bool).tril()\n        width = config",
            "is_causal=True",
            "attn_mask=self.past[: x.shape[1], : x.shape[1]]",
        ),
    ],
    "from_hf": [],
}
