"""A second bank of lab 08, written from the lesson and the released lab alone."""

# ruff: noqa: E501
from __future__ import annotations

from tests.phases.bank import CODE, Bank

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
        "triangles, in place": """
def visible(queries, keys, causal=True, padding=None, window=None, *, device=None):
    late = keys - queries
    batch = 1 if padding is None else len(padding)
    mask = torch.ones(batch, queries, keys, dtype=torch.bool, device=device)
    if causal:
        mask = mask.tril(late)
    if window is not None:
        mask.triu_(late - window + 1)
    if padding is not None:
        mask.logical_and_(padding[:, None])
    return mask
""",
        "loops": """
def visible(queries, keys, causal, padding, window):
    real = [[True] * keys] if padding is None else padding.tolist()

    def sees(row, place, key):
        if causal and key > place:
            return False
        if window is not None and place - key >= window:
            return False
        return row[key]

    places = range(keys - queries, keys)
    return torch.tensor([[[sees(row, p, k) for k in range(keys)] for p in places] for row in real])
""",
    },
    "MultiHead": {
        "a finite fill": """
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
            scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
        weights = scores.softmax(-1)
        if allowed is not None:
            weights = weights.masked_fill(~mask, 0)
        return self.output((weights @ v).transpose(1, 2).reshape(B, T, D))
""",
        "head by head, softmax by hand": """
class MultiHead(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        for name in ("query", "key", "value", "output"):
            self.add_module(name, nn.Linear(d_model, d_model))
        self.width = d_model // n_heads
        self.heads = n_heads

    def one(self, q, k, v, allowed):
        scores = torch.einsum("bid,bjd->bij", q, k) * self.width**-0.5
        hidden = torch.where(allowed, scores, -torch.inf)
        top = hidden.amax(-1, keepdim=True).detach()
        top = torch.where(top.isinf(), 0, top)
        e = (hidden - top).exp()
        return torch.einsum("bij,bjd->bid", e / e.sum(-1, keepdim=True).clamp(min=1e-30), v)

    def forward(self, x, allowed=None):
        if allowed is None:
            allowed = x.new_ones(1, x.size(1), x.size(1)).bool()
        parts = [f(x).split(self.width, -1) for f in (self.query, self.key, self.value)]
        return self.output(torch.cat([self.one(*qkv, allowed) for qkv in zip(*parts)], -1))
""",
        "heads in the batch, a buffer that isn't saved": """
class MultiHead(nn.Module):
    def __init__(self, d_model, n_heads, bias=True):
        super().__init__()
        self.query, self.key, self.value, self.output = (nn.Linear(d_model, d_model, bias) for _ in range(4))
        self.register_buffer("heads", torch.tensor(n_heads), persistent=False)

    def fold(self, x):
        h = int(self.heads)
        return torch.cat(x.chunk(h, -1))

    def forward(self, x, allowed=None):
        h = int(self.heads)
        q, k, v = map(self.fold, (self.query(x), self.key(x), self.value(x)))
        scores = torch.bmm(q, k.mT) / q.shape[-1] ** 0.5
        if allowed is None:
            shares = scores.softmax(2)
        else:
            seen = allowed.expand(len(x), -1, -1).repeat(h, 1, 1)
            none = ~seen.any(-1, keepdim=True)
            shares = scores.masked_fill(~(seen | none), -math.inf).softmax(2)
            shares = shares.masked_fill(none, 0.0)
        return self.output(torch.cat(torch.bmm(shares, v).chunk(h), -1))
""",
    },
    "attend_cached": {
        "PyTorch's, with a mask": """
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
    mask = torch.ones(T, S + T, dtype=torch.bool).tril(S)
    mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    return linear("output", mixed.transpose(1, 2).flatten(2)), (k, v)
""",
        "one position after the other": """
def attend_cached(x, weights, n_heads, cache):
    B, T, D = x.shape
    d = D // n_heads

    def heads(name, t):
        return (t @ weights[name + ".weight"].t() + weights[name + ".bias"]).reshape(B, n_heads, 1, d)

    if cache is None:
        cache = x.new_zeros(B, n_heads, 0, d), x.new_zeros(B, n_heads, 0, d)
    keys, values = cache
    said = []
    for t in range(T):
        now = x[:, t]
        keys = torch.cat([keys, heads("key", now)], -2)
        values = torch.cat([values, heads("value", now)], -2)
        shares = torch.softmax(heads("query", now) @ keys.mT / d**0.5, -1)
        said.append((shares @ values).reshape(B, 1, D))
    out = torch.cat(said, 1) @ weights["output.weight"].t() + weights["output.bias"]
    return out, (keys, values)
""",
        "room for all, filled in": """
def attend_cached(x, weights, n_heads, cache):
    B, T, D = x.shape
    old = 0 if cache is None else cache[0].size(2)
    room = [x.new_empty(B, n_heads, old + T, D // n_heads) for _ in range(2)]
    for place, name in enumerate(["key", "value"]):
        if old:
            room[place][:, :, :old] = cache[place]
        new = torch.einsum("btc,dc->btd", x, weights[name + ".weight"]) + weights[name + ".bias"]
        room[place][:, :, old:] = new.view(B, T, n_heads, -1).permute(0, 2, 1, 3)
    q = F.linear(x, weights["query.weight"], weights["query.bias"]).view(B, T, n_heads, -1)
    scores = torch.einsum("bihd,bhjd->bhij", q, room[0]) * (D / n_heads) ** -0.5
    scores += torch.full_like(scores[0, 0], -torch.inf).triu(old + 1)
    mixed = torch.einsum("bhij,bhjd->bihd", scores.softmax(-1), room[1]).reshape(B, T, D)
    return F.linear(mixed, weights["output.weight"], weights["output.bias"]), tuple(room)
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
        "row by row, in Python": """
def one(row, dice, temperature, top_k, top_p):
    if temperature == 0:
        return max(range(len(row)), key=lambda i: (row[i], -i))
    top = max(row)
    mass = [math.exp((value - top) / temperature) for value in row]
    order = sorted(range(len(row)), key=lambda i: (-mass[i], i))[:top_k]
    if top_p is not None:
        whole, gone, stay = sum(mass[i] for i in order), 0.0, []
        for i in order:
            if gone >= top_p * whole:
                break
            stay.append(i)
            gone += mass[i]
        order = stay
    whole, seen = sum(mass[i] for i in order), 0.0
    for i in sorted(order):
        seen += mass[i]
        if seen > dice * whole:
            return i
    return max(order)


def pick(logits, u, temperature=1.0, top_k=None, top_p=None):
    rows = zip(logits.tolist(), u.tolist())
    return torch.tensor([one(row, dice, temperature, top_k, top_p) for row, dice in rows])
""",
        "ranks, and a search": """
def pick(logits, u, temperature, top_k, top_p):
    n, words = logits.shape
    if not temperature:
        return logits.max(dim=1).indices
    p = (logits.double() / temperature).softmax(1)
    order = p.argsort(dim=1, descending=True, stable=True)
    rank = torch.empty_like(order)
    rank.scatter_(1, order, torch.arange(words).expand(n, -1))
    if top_k is not None:
        p = p * (rank < top_k)
        p /= p.sum(1, keepdim=True)
    if top_p is not None:
        ahead = (p.unsqueeze(1) * (rank.unsqueeze(1) < rank.unsqueeze(2))).sum(2)
        p = p * ((ahead < top_p - 1e-9) | (rank == 0))
    sums = p.cumsum(1)
    target = (u.double() * sums[:, -1]).unsqueeze(1)
    return torch.searchsorted(sums, target, right=True).clamp(max=words - 1).squeeze(1)
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
        "a class that keeps the rows": """
class Writer:
    def __init__(self, prompts, eos):
        self.eos, self.words = eos, [[] for _ in prompts]

    @property
    def open(self):
        return [not w or w[-1] != self.eos for w in self.words]

    def take(self, new):
        for words, still, word in zip(self.words, self.open, new):
            if still:
                words.append(int(word))


def generate(model, prompts, limit, pad, eos):
    writer, width = Writer(prompts, eos), max(map(len, prompts))
    tokens = torch.full((len(prompts), width), pad)
    real = torch.zeros(len(prompts), width, dtype=torch.bool)
    at = torch.zeros(len(prompts), width, dtype=torch.int64)
    for i, p in enumerate(prompts):
        tokens[i, width - len(p) :] = torch.tensor(p)
        real[i, width - len(p) :] = True
        at[i, width - len(p) :] = torch.arange(len(p))
    cache = None
    for _ in range(limit):
        if not any(writer.open):
            break
        logits, cache = model(tokens, at, real, cache)
        tokens = logits[:, -1:].argmax(-1)
        writer.take(tokens[:, 0])
        at = at[:, -1:] + 1
        real = torch.cat([real, real.new_ones(len(prompts), 1)], -1)
    return writer.words
""",
    },
    "flops": {
        "a function of two numbers": """
def flops(config, prompt, new, cached):
    D, F_, V, L = config.d_model, config.d_ff, config.vocab_size, config.n_layers

    def once(tokens, keys):
        maps = 4 * 2 * tokens * D * D
        pairs = 2 * 2 * tokens * keys * D
        mlp = 2 * 2 * tokens * D * F_
        return L * (maps + pairs + mlp) + 2 * tokens * D * V

    total = once(prompt, prompt)
    for i in range(1, new):
        total += once(1, prompt + i) if cached else once(prompt + i, prompt + i)
    return total


def cache_bytes(config, tokens, itemsize):
    return 2 * config.n_layers * config.d_model * tokens * itemsize
""",
        "sums in closed form": """
def flops(config, prompt, new, cached):
    d, n, p = config.d_model, new - 1, prompt
    each = config.n_layers * (8 * d * d + 4 * d * config.d_ff) + 2 * d * config.vocab_size
    pair = config.n_layers * 4 * d
    line = n * p + n * new // 2
    square = n * p * p + p * n * new + n * new * (2 * n + 1) // 6
    tokens, pairs = (p + n, p * p + line) if cached else (p + line, p * p + square)
    return each * tokens + pair * pairs


def cache_bytes(config, tokens, itemsize):
    head = config.d_model // config.n_heads
    return sum(2 * config.n_heads * head * itemsize for _ in range(config.n_layers)) * tokens
""",
        "from the shapes of the weights": """
def flops(config, prompt, new, cached):
    with torch.device("meta"):
        linear = [m for m in MiniGPT(config).modules() if isinstance(m, nn.Linear)]
    per_token = 2 * sum(m.in_features * m.out_features for m in linear)
    passes = [(n if n == prompt or not cached else 1, n) for n in range(prompt, prompt + new)]
    return sum(t * per_token + config.n_layers * 4 * t * n * config.d_model for t, n in passes)


def cache_bytes(config, tokens, itemsize):
    keys = torch.empty(config.n_layers, tokens, config.d_model, device="meta")
    return 2 * keys.numel() * itemsize
""",
    },
    "from_hf": {
        "block by block": """
def from_hf(state):
    out = {
        "token_embedding.weight": state["transformer.wte.weight"],
        "position_embedding.weight": state["transformer.wpe.weight"],
    }
    blocks = 1 + max(int(name.split(".")[2]) for name in state if name.startswith("transformer.h."))
    table = {"ln_1": "norm_1", "attn.c_proj": "attention.output", "ln_2": "norm_2", "mlp.c_fc": "mlp.up", "mlp.c_proj": "mlp.down"}
    for i in range(blocks):
        for kind in ("weight", "bias"):
            joined = state[f"transformer.h.{i}.attn.c_attn.{kind}"]
            for name, part in zip(("query", "key", "value"), joined.chunk(3, -1)):
                out[f"blocks.{i}.attention.{name}.{kind}"] = part.T if kind == "weight" else part
            for theirs, ours in table.items():
                tensor = state[f"transformer.h.{i}.{theirs}.{kind}"]
                out[f"blocks.{i}.{ours}.{kind}"] = tensor.T if ".c_" in theirs and kind == "weight" else tensor
    out["final_norm.weight"] = state["transformer.ln_f.weight"]
    out["final_norm.bias"] = state["transformer.ln_f.bias"]
    head = state.get("lm_head.weight", state["transformer.wte.weight"])
    out["lm_head.weight"] = head
    out["lm_head.bias"] = state["lm_head.bias"] if "lm_head.bias" in state else torch.zeros(len(head))
    return out


def load_strictly(model_class, folder):
    if not Path(folder).exists():
        raise FileNotFoundError(folder)
    model, info = model_class.from_pretrained(folder, output_loading_info=True)
    lost = sorted(info["missing_keys"]) + sorted(info["unexpected_keys"])
    if lost:
        raise ValueError(", ".join(lost))
    return model.eval()
""",
        "by regular expressions, theirs to ours": """
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
        "groups as a dimension, and a matrix of means": """
from types import SimpleNamespace


class GroupedAttention(nn.Module):
    def __init__(self, config, kv_heads):
        super().__init__()
        self.heads, self.shared, d = config.n_heads, kv_heads, config.d_model
        for name, out in dict(query=d, key=d * kv_heads // config.n_heads, value=d * kv_heads // config.n_heads, output=d).items():
            setattr(self, name, nn.Linear(d, out))

    def forward(self, x):
        b, t, _ = x.shape
        q = self.query(x).view(b, t, self.shared, self.heads // self.shared, -1)
        k, v = (f(x).view(b, t, self.shared, -1) for f in (self.key, self.value))
        scores = torch.einsum("bikgd,bjkd->bkgij", q, k) / q.size(-1) ** 0.5
        past = torch.arange(t)[:, None] >= torch.arange(t)
        shares = torch.where(past, scores, -torch.inf).softmax(-1)
        return self.output(torch.einsum("bkgij,bjkd->bikgd", shares, v).reshape(x.shape))


@torch.no_grad()
def grouped(attention, kv_heads):
    h, d = attention.n_heads, attention.query.in_features
    means = torch.eye(kv_heads).repeat_interleave(h // kv_heads, 1) * (kv_heads / h)
    state = {name: tensor.clone() for name, tensor in attention.state_dict().items()}
    for name in ("key.weight", "key.bias", "value.weight", "value.bias"):
        state[name] = torch.tensordot(means, state[name].unflatten(0, (h, -1)), 1).flatten(0, 1)
    made = GroupedAttention(SimpleNamespace(d_model=d, n_heads=h), kv_heads)
    made.load_state_dict(state)
    return made
""",
        "torch's own groups": """
import copy


class GroupedAttention(CausalSelfAttention):
    def __init__(self, config, kv_heads):
        super().__init__(config)
        self.kv_heads = kv_heads
        width = kv_heads * (config.d_model // config.n_heads)
        self.key, self.value = (nn.Linear(config.d_model, width) for _ in range(2))

    def forward(self, x):
        q = self._split(self.query(x))
        k, v = (part(x).unflatten(-1, (self.kv_heads, -1)).transpose(1, 2) for part in (self.key, self.value))
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        return self.output(mixed.transpose(1, 2).reshape(x.shape))


def _mean(linear, kv_heads, n_heads):
    width = linear.out_features // n_heads * kv_heads
    made = nn.Linear(linear.in_features, width)
    for name in ("weight", "bias"):
        heads = getattr(linear, name).detach().chunk(n_heads)
        g = n_heads // kv_heads
        rows = [sum(heads[i : i + g]) / g for i in range(0, n_heads, g)]
        setattr(made, name, nn.Parameter(torch.cat(rows)))
    return made


def grouped(attention, kv_heads):
    made = GroupedAttention(MiniGPTConfig(d_model=attention.query.in_features, n_heads=attention.n_heads), kv_heads)
    made.query, made.output = copy.deepcopy(attention.query), copy.deepcopy(attention.output)
    made.key = _mean(attention.key, kv_heads, attention.n_heads)
    made.value = _mean(attention.value, kv_heads, attention.n_heads)
    return made
""",
    },
    "fine_tune": {
        "half and half": """
Lines = tuple[torch.Tensor, torch.Tensor]


def fine_tune(weights, config, new, old, steps, seed):
    g = torch.Generator().manual_seed(seed)
    with torch.random.fork_rng():
        model = MiniGPT(config)
    model.load_state_dict(weights)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for _ in range(steps):
        a, b = (torch.randint(len(lines[0]), (32,), generator=g) for lines in (new, old))
        x, y = torch.cat([new[0][a], old[0][b]]), torch.cat([new[1][a], old[1][b]])
        loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    return model.state_dict()
""",
        "Adam by hand, on a dict": """
Lines = tuple[torch.Tensor, torch.Tensor]


def fine_tune(weights, config, new, old, steps, seed):
    torch.manual_seed(seed)
    model = MiniGPT(config)
    state = {name: tensor.detach().clone().requires_grad_() for name, tensor in weights.items()}
    first = {name: torch.zeros_like(t) for name, t in state.items()}
    second = {name: torch.zeros_like(t) for name, t in state.items()}
    for step in range(1, steps + 1):
        pairs = [(lines, torch.randint(len(lines[0]), (32,))) for lines in (new, old)]
        x, y = (torch.cat([lines[i][rows] for lines, rows in pairs]) for i in range(2))
        logits = torch.func.functional_call(model, state, (x,))
        loss = F.cross_entropy(logits.transpose(1, 2), y)
        rate = 3e-3 * (1 - (step - 1) / steps)
        for (name, p), grad in zip(state.items(), torch.autograd.grad(loss, list(state.values()))):
            first[name].mul_(0.9).add_(grad, alpha=0.1)
            second[name].mul_(0.999).addcmul_(grad, grad, value=0.001)
            size = (second[name] / (1 - 0.999**step)).sqrt() + 1e-8
            with torch.no_grad():
                p -= rate * first[name] / (1 - 0.9**step) / size
    return {name: tensor.detach() for name, tensor in state.items()}
""",
    },
}

WRONG: dict[str, list[tuple[str, ...]]] = {
    "visible": [
        ("a window on both sides", "Of positions after its own, a window says nothing", "at - of < window", "(at - of).abs() < window"),
        ("padded queries see nothing", "What a query that is not real may see is decided by the other rules", "allowed & padding.unsqueeze(1)", "allowed & padding.unsqueeze(1) & padding[:, keys - queries :].unsqueeze(2)"),
        ("a window only of the past", "A query may look where no rule forbids it, and a window is a rule of its own", "if window is not None:", "if causal and window is not None:"),
        ("a window from the row's number", "a query does not see a position that lies `window` or more before its own", "at - of < window", "torch.arange(queries).unsqueeze(1) - of < window"),
        ("numbers", "It returns a bool tensor", "return allowed", "return allowed.float()"),
        ("the padding, changed for one query", "No function changes what it is given", CODE, """
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
"""),
        ("a first token that all see", "Nobody sees a key that is not real; a window hides what lies before it", "return allowed", "allowed[:, :, 0] |= padding is None\n    return allowed"),
        ("padding, and its causality, from the queries alone", "the queries are the *last* `queries` of them", "torch.arange(keys - queries, keys)", "torch.arange(keys - queries, keys) if padding is None else torch.arange(queries)"),
    ],
    "MultiHead": [
        ("None is causal", "where `allowed` is `None`, everybody sees everything", "B, T, D = x.shape\n", "B, T, D = x.shape\n        if allowed is None:\n            allowed = torch.ones(1, T, T, dtype=torch.bool).tril()\n"),
        ("no default", "`None`, which it is when nobody hands it over", "allowed=None", "allowed"),
        ("a mask without a dimension for heads", "`allowed` is (B, T, T): one table for each sequence", "allowed.unsqueeze(1)", "allowed"),
        ("softmax in float32", "the weights are float32 or, both, float64", "scores.softmax(-1)", "scores.softmax(-1, dtype=torch.float32).to(x.dtype)"),
        ("blind rows of the first sequence", "A query that may look at nothing gets zeros", "weights.masked_fill(~mask, 0)", "weights.masked_fill(~mask[:1].any(-1, keepdim=True), 0)"),
        ("the mask filled in place", "No function changes what it is given", CODE, """
class MultiHead(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.query = nn.Linear(d_model, d_model)
        self.key = nn.Linear(d_model, d_model)
        self.value = nn.Linear(d_model, d_model)
        self.output = nn.Linear(d_model, d_model)

    def forward(self, x, allowed=None):
        q, k, v = (f(x).unflatten(-1, (self.n_heads, -1)).transpose(1, 2) for f in (self.query, self.key, self.value))
        scores = q @ k.mT / math.sqrt(q.shape[-1])
        if allowed is None:
            weights = scores.softmax(-1)
        else:
            blind = ~allowed.any(-1, keepdim=True)
            allowed |= blind
            weights = scores.masked_fill(~allowed[:, None], -math.inf).softmax(-1)
            weights = weights.masked_fill(blind[:, None], 0)
        return self.output((weights @ v).transpose(1, 2).flatten(2))
"""),
        ("PyTorch's own, under another name", "no attention from a library", CODE, """
from torch.nn.functional import scaled_dot_product_attention as weigh


class MultiHead(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        for name in ("query", "key", "value", "output"):
            setattr(self, name, nn.Linear(d_model, d_model))

    def forward(self, x, allowed=None):
        q, k, v = (f(x).unflatten(-1, (self.n_heads, -1)).transpose(1, 2) for f in (self.query, self.key, self.value))
        if allowed is not None:
            allowed = allowed.unsqueeze(1)
        return self.output(weigh(q, k, v, attn_mask=allowed).transpose(1, 2).flatten(2))
"""),
        ("exp as it is", "Softmax over the keys: of large scores, too", "weights = scores.softmax(-1)", "weights = scores.exp() / scores.exp().sum(-1, keepdim=True)"),
        ("the largest of all, hidden ones too", "Softmax over the keys that it may look at", CODE, """
class MultiHead(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.query, self.key, self.value, self.output = (nn.Linear(d_model, d_model) for _ in range(4))

    def forward(self, x, allowed=None):
        q, k, v = (f(x).unflatten(-1, (self.n_heads, -1)).transpose(1, 2) for f in (self.query, self.key, self.value))
        scores = q @ k.mT / math.sqrt(q.shape[-1])
        e = (scores - scores.amax(-1, keepdim=True)).exp()
        if allowed is not None:
            e = e * allowed[:, None]
        weights = e / e.sum(-1, keepdim=True).clamp(min=1e-20)
        return self.output((weights @ v).transpose(1, 2).flatten(2))
"""),
        ("hidden by -100", "Softmax over the keys that it may look at", "torch.finfo(scores.dtype).min", "-100.0", "weights.masked_fill(~mask, 0)", "weights.masked_fill(~mask.any(-1, keepdim=True), 0)"),
        ("a constant added to the sum", "Softmax over the keys that it may look at gives its weights", CODE, """
class MultiHead(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.query, self.key, self.value, self.output = (nn.Linear(d_model, d_model) for _ in range(4))

    def forward(self, x, allowed=None):
        q, k, v = (f(x).unflatten(-1, (self.n_heads, -1)).transpose(1, 2) for f in (self.query, self.key, self.value))
        e = (q @ k.mT / math.sqrt(q.shape[-1])).exp()
        if allowed is not None:
            e = e * allowed[:, None]
        weights = e / (e.sum(-1, keepdim=True) + 1e-9)
        return self.output((weights @ v).transpose(1, 2).flatten(2))
"""),
        ("NaN replaced after softmax", "Nothing becomes NaN by it, no gradient either", "torch.finfo(scores.dtype).min", "-math.inf", "weights.masked_fill(~mask, 0)", "weights.nan_to_num(0)"),
    ],
    "attend_cached": [
        ("values and keys", "Return `(output, (keys, values))`", "cache[0], k", "cache[1], k", "cache[1], v", "cache[0], v", ", (k, v)", ", (v, k)"),
        ("a mask of numbers", "All of them are float32, or all float64", "torch.ones(T, S + T, dtype=torch.bool).tril(S)", "torch.full((T, S + T), -math.inf).triu(S + 1)"),
        ("no longer than the context", "the keys and values of all S + T positions", "    T, S =", "    k, v = k[:, :, -32:], v[:, :, -32:]\n    T, S ="),
        ("room of float32", "All of them are float32, or all float64, and so is what you return", CODE, """
def attend_cached(x, weights, n_heads, cache):
    def linear(name, t):
        return F.linear(t, weights[f"{name}.weight"], weights[f"{name}.bias"])

    B, T, D = x.shape
    S = 0 if cache is None else cache[0].shape[2]
    k, v = (torch.zeros(B, n_heads, S + T, D // n_heads) for _ in range(2))
    if S:
        k[:, :, :S], v[:, :, :S] = cache
    k[:, :, S:] = linear("key", x).unflatten(-1, (n_heads, -1)).transpose(1, 2)
    v[:, :, S:] = linear("value", x).unflatten(-1, (n_heads, -1)).transpose(1, 2)
    q = linear("query", x).unflatten(-1, (n_heads, -1)).transpose(1, 2)
    mask = torch.ones(T, S + T, dtype=torch.bool).tril(S)
    mixed = F.scaled_dot_product_attention(q, k.to(q.dtype), v.to(q.dtype), attn_mask=mask)
    return linear("output", mixed.transpose(1, 2).flatten(2)), (k, v)
"""),
        ("one room for all that go on", "somebody may go on from it twice", CODE, """
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
"""),
        ("all new ones see each other after a cache of one", "it sees those of the new ones that come before it", ".tril(S)", ".tril(S if S != 1 else T)"),
        ("the first call isn't causal", "Each new position sees itself, and those of the new ones that come before it", "attn_mask=mask", "attn_mask=mask if cache is not None else None"),
        ("a list", "Return `(output, (keys, values))`, a pair", ", (k, v)", ", torch.stack([k, v])"),
        ("a batch of one", "x is (B, T, D)", "k = torch.cat((cache[0], k), dim=2)", "k = torch.cat((cache[0][:1].expand_as(cache[0]), k), dim=2)"),
    ],
    "pick": [
        ("ties at the limit of top k stay", "only the first `top_k` of the ranking stay", "ranked[:, top_k:] = 0", "ranked = ranked.masked_fill(ranked < ranked[:, : top_k][:, -1:], 0)"),
        ("one word more at top p", "only the shortest beginning that sums to `top_p` or more", "before >= top_p", "before > top_p"),
        ("not divided after top k", "of what has stayed, with probabilities that sum to 1 again", "ranked[:, top_k:] = 0\n        ranked = ranked / ranked.sum(-1, keepdim=True)", "ranked[:, top_k:] = 0"),
        ("top p first", "in this order: top k, then top p", CODE, """
def pick(logits, u, temperature, top_k, top_p):
    if temperature == 0:
        return logits.argmax(-1)
    probs = torch.softmax(logits / temperature, -1)
    ranked, ids = torch.sort(probs, dim=-1, descending=True, stable=True)
    if top_p is not None:
        ranked = ranked.masked_fill(ranked.cumsum(-1) - ranked >= top_p, 0)
    if top_k is not None:
        ranked[:, top_k:] = 0
    ranked = ranked / ranked.sum(-1, keepdim=True)
    kept = torch.zeros_like(ranked).scatter(-1, ids, ranked)
    return (kept.cumsum(-1) > u[:, None]).int().argmax(-1)
"""),
        ("topk of more than there are", "all of them if there are fewer", "ranked[:, top_k:] = 0", "ranked = ranked.masked_fill(ranked < ranked.topk(top_k).values[:, -1:], 0)"),
        ("at least u", "the first word at which the sum is larger than `u`", "> u[:, None]", ">= u[:, None]"),
        ("ties the other way", "of equal ones, the one with the smaller id ranks higher", "torch.sort(probs, dim=-1, descending=True, stable=True)", "(t.flip(-1) for t in torch.sort(probs, dim=-1, stable=True))"),
        ("as many as the first row", "It picks one word for each row", "before >= top_p", "(before >= top_p)[:1].expand_as(before)"),
        ("the logits divided in place", "No function changes what it is given", "    probs = torch.softmax(logits / temperature, -1)", "    logits = logits.contiguous()\n    logits /= temperature\n    probs = torch.softmax(logits, -1)"),
        ("heat after the cut", "in this order: the softmax of the logits divided by the temperature first", "torch.softmax(logits / temperature, -1)", "torch.softmax(logits, -1)", "    kept =", "    ranked = ranked ** (1 / temperature)\n    ranked = ranked / ranked.sum(-1, keepdim=True)\n    kept ="),
        ("exp without a maximum", "Probabilities are the softmax of the logits divided by the temperature", "torch.softmax(logits / temperature, -1)", "(logits / temperature).exp() / (logits / temperature).exp().sum(-1, keepdim=True)"),
        ("not divided at the end", "What stays sums to 1 again", "        ranked = ranked.masked_fill(before >= top_p, 0)\n        ranked = ranked / ranked.sum(-1, keepdim=True)", "        ranked = ranked.masked_fill(before >= top_p, 0)"),
        ("cold from 0.05 on", "At temperature 0 a row's word is the one with the largest logit; otherwise it is drawn", "temperature == 0", "temperature < 0.05"),
        ("top p also when it's cold", "at temperature 0 the first of them if there are several", "return logits.argmax(-1)", "return torch.where(logits == logits.amax(-1, keepdim=True), torch.arange(logits.shape[1]), 0).amax(-1) if top_k else logits.argmax(-1)"),
        ("top k and top p, each of all", "of what has stayed, after top k", CODE, """
def pick(logits, u, temperature, top_k, top_p):
    if temperature == 0:
        return logits.argmax(-1)
    probs = torch.softmax(logits / temperature, -1)
    order = probs.argsort(-1, descending=True, stable=True)
    ranked = probs.gather(-1, order)
    stay = torch.ones_like(ranked, dtype=torch.bool)
    if top_k is not None:
        stay[:, top_k:] = False
    if top_p is not None:
        stay &= ranked.cumsum(-1) - ranked < top_p
    kept = torch.zeros_like(probs).scatter(-1, order, ranked * stay)
    sums = kept.cumsum(-1)
    return (sums / sums[:, -1:] > u[:, None]).int().argmax(-1)
"""),
    ],
    "generate": [
        ("on to the limit", "No call is made whose answer is not needed", "        if all(done):\n            break\n", ""),
        ("all end at once, or never", "No call is made whose answer is not needed", "if all(done):", "if (new == eos).all():"),
        ("tensors for words", "a list of ints", "enumerate(new.tolist())", "enumerate(new)"),
        ("prompts padded in place", "No function changes what it is given", "    tokens = torch.tensor([[pad] * (longest - len(p)) + p for p in prompts])\n    padding = torch.tensor([[False] * (longest - len(p)) + [True] * len(p) for p in prompts])", "    padding = torch.tensor([[False] * (longest - len(p)) + [True] * len(p) for p in prompts])\n    for p in prompts:\n        p[:0] = [pad] * (longest - len(p))\n    tokens = torch.tensor(prompts)"),
        ("positions of the longest", "`positions` says where each token stands in its own text", "positions = positions[:, -1:] + 1", "positions = positions[:, -1:].max().expand(len(prompts), 1) + 1"),
        ("ended rows are padding, and go on counting", "any number that is no larger than the largest of a real one", "torch.ones(len(prompts), 1, dtype=torch.bool)", "~torch.tensor(done)[:, None]"),
        ("padding of what isn't pad", "`pad` may also be a word of the prompts: it is `padding` that tells the two apart", "torch.ones(len(prompts), 1, dtype=torch.bool)", "new[:, None] != pad"),
        ("ended at the eos of the prompt", "the new ids, up to and with the first `eos`", "[False] * len(prompts)", "[p[-1] == eos for p in prompts]"),
        ("a call to the end", "No call is made whose answer is not needed", "        if all(done):\n            break\n", "", "    for step in range(limit):\n        logits, cache = model(tokens, positions, padding, cache)\n", "    for step in range(limit):\n        logits, cache = model(tokens, positions, padding, cache)\n        if all(done):\n            break\n"),
        ("one position too far", "`positions`: the first of a prompt at 0", "padding.cumsum(1) - 1).clamp(min=0)", "padding.cumsum(1)).clamp(max=int(padding.sum(1).max()) - 1)"),
    ],
    "flops": [
        ("an MLP of four widths", "the MLP's two maps, of d_ff channels", "config.d_ff", "4 * config.d_model"),
        ("keys one behind", "whose queries still meet the keys of all tokens so far", "once(1, prompt + i)", "once(1, prompt + i - 1)"),
        ("the head once, with a cache", "every token that goes through the model goes through the head", "    total = once(prompt, prompt)", "    total = once(prompt, prompt) - cached * 2 * (prompt - 1) * D * V"),
        ("float32", "with `itemsize` bytes a number", "tokens * itemsize", "tokens * 4"),
        ("one layer's pairs with a cache", "the bytes of keys and values in all layers", "2 * config.n_layers * config", "4 * config"),
        ("the last word goes through, too", "The last new word itself goes through nothing", "range(1, new)", "range(1, new + cached)", "once(prompt, prompt)\n", "once(prompt, prompt) if not cached or new > 1 else once(prompt, prompt) - once(1, prompt + 1)\n"),
        ("pairs of the past", "computed for all pairs of a query and a key, hidden ones too", "pairs = 2 * 2 * tokens * keys * D", "pairs = 2 * 2 * D * (tokens * keys if not cached else tokens * (tokens + 1) // 2 + tokens * (keys - tokens))"),
    ],
    "from_hf": [
        ("a head of its own", "`lm_head.weight` may be missing", 'state.get("lm_head.weight", state["transformer.wte.weight"])', 'state["lm_head.weight"]'),
        ("blocks by the last name", "There are as many blocks as the names say", '1 + max(int(name.split(".")[2]) for name in state if name.startswith("transformer.h."))', '1 + int(max(name.split(".")[2] for name in state if name.startswith("transformer.h.")))'),
        ("zeros as wide as the model", "`lm_head.bias` may be missing, and then it is zeros", "torch.zeros(len(head))", "torch.zeros(head.shape[1])"),
        ("masks dropped from what was given", "No function changes what it is given", "def from_hf(state):\n", "def from_hf(state):\n    for name in [n for n in state if n.endswith(('.attn.bias', '.attn.masked_bias'))]:\n        del state[name]\n"),
        ("what is unexpected alone", "or lacks one that the class needs, it raises `ValueError`", 'sorted(info["missing_keys"]) + sorted(info["unexpected_keys"])', 'sorted(info["unexpected_keys"])'),
        ("the first name alone", "the message names each such tensor", '", ".join(lost)', "lost[0]"),
        ("theirs raises", "Where the folder does not exist, it raises `FileNotFoundError`", "    if not Path(folder).exists():\n        raise FileNotFoundError(folder)\n", ""),
        ("zeros for a head that isn't there yet", "`lm_head.weight` may be missing, and so may its bias", "torch.zeros(len(head))", 'torch.zeros(len(state["lm_head.weight"]))'),
        ("how many, not which", "the message names each such tensor", '", ".join(lost)', 'f"{len(lost)} tensors were lost"'),
        ("the masks, too", "what is returned has only what MiniGPT has", "    out[\"final_norm.weight\"]", "    out |= {n.replace('transformer.h', 'blocks').replace('attn', 'attention'): t for n, t in state.items() if n.endswith('.attn.bias')}\n    out[\"final_norm.weight\"]"),
    ],
    "grouped": [
        ("the same query", "What it returns is independent of `attention`", "made.query.load_state_dict(attention.query.state_dict())", "made.query = attention.query"),
        ("the same data", "What it returns is independent of `attention`", "made.output.load_state_dict(attention.output.state_dict())", "made.output.weight.data = attention.output.weight.data\n    made.output.bias.data = attention.output.bias.data"),
        ("the key's bias of the first", "the weights and biases of a key head are the means", "new.bias.copy_(old.bias.view(kv_heads, attention.n_heads // kv_heads, -1).mean(1).flatten())", "biases = old.bias.view(kv_heads, attention.n_heads // kv_heads, -1)\n            new.bias.copy_((biases[:, 0] if name == 'key' else biases.mean(1)).flatten())"),
        ("the usual sizes", "`attention` has `n_heads` and weights that say the sizes", "MiniGPTConfig(d_model=width, n_heads=attention.n_heads)", "MiniGPTConfig()"),
        ("a mask of numbers", "x and the weights may be float64, too", "is_causal=True", "attn_mask=torch.full((x.shape[1], x.shape[1]), -math.inf).triu(1)"),
        ("a mask of the context", "of a config, your class needs no more than `d_model` and `n_heads`", "        width = config", "        self.past = torch.ones(config.context, config.context, dtype=torch.bool).tril()\n        width = config", "is_causal=True", "attn_mask=self.past[: x.shape[1], : x.shape[1]]"),
        ("with as many heads, itself", "What it returns is independent of `attention`", "    with torch.no_grad():\n", "    if kv_heads == attention.n_heads:\n        made.key, made.value = attention.key, attention.value\n        return made\n    with torch.no_grad():\n"),
        ("no mask for a single head", "Its `forward(x)` is causal", "is_causal=True", "is_causal=self.kv_heads > 1"),
        ("turned for a single head", "Query head h looks at key and value head h // g", "k.repeat_interleave(g, 1), v.repeat_interleave(g, 1)", "k.repeat_interleave(g, 1), v.repeat(1, g, 1, 1) if g > 2 else v.repeat_interleave(g, 1)"),
    ],
    "fine_tune": [
        ("a hundred steps", "learnt for `steps` steps", "for _ in range(steps):", "for _ in range(100):"),
        ("one step more", "no optimizer takes more", "range(steps)", "range(steps + 1)"),
        ("the trained one, whatever is given", "has begun with `weights`", "model.load_state_dict(weights)", "model.load_state_dict(load_minigpt(WITHOUT_IMPERFECT).state_dict())"),
        ("a state that is shared", "`weights` stay as they are", "model.load_state_dict(weights)", "model.load_state_dict(weights, assign=True)"),
    ],
}

BANK = Bank("08")
BANK.fill(RIGHT, WRONG)
