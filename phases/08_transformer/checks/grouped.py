"""Lab 08, exercise 8: Fewer keys and values"""

import torch
from torch import nn
from torch.nn import functional as F

from utils.checks.exercise import Case, Check, edited
from utils.checks.lab_solution import lab_solution
from utils.minigpt import MiniGPTConfig

from .shared import SUMS, attention_weights, named

grouped = Check(
    "grouped",
    parts={"one key and value head": 1, "groups": 1, "of a trained one": 1},
    reads="Where to change the model",
    tolerance=SUMS,
)


class _Reference(nn.Module):
    def __init__(self, config, kv_heads):
        super().__init__()
        self.width = config.d_model // config.n_heads
        self.query = nn.Linear(config.d_model, config.d_model)
        self.key = nn.Linear(config.d_model, kv_heads * self.width)
        self.value = nn.Linear(config.d_model, kv_heads * self.width)
        self.output = nn.Linear(config.d_model, config.d_model)

    def forward(self, x):
        queries, keys, values = (
            part(x).split(self.width, -1) for part in (self.query, self.key, self.value)
        )
        group, sums = len(queries) // len(keys), []
        future = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        for head, query in enumerate(queries):
            scores = query @ keys[head // group].mT / self.width**0.5
            weights = scores.masked_fill(future, -torch.inf).softmax(-1)
            sums.append(weights @ values[head // group])
        return self.output(torch.cat(sums, -1))


def _reference(attention, kv_heads):
    width = attention.query.in_features
    made = _Reference(MiniGPTConfig(d_model=width, n_heads=attention.n_heads), kv_heads)
    state = {}
    for name, tensor in attention.state_dict().items():
        if name.startswith(("key", "value")):
            heads = tensor.chunk(attention.n_heads)
            group = attention.n_heads // kv_heads
            means = [
                torch.stack(heads[start : start + group]).mean(0)
                for start in range(0, attention.n_heads, group)
            ]
            tensor = torch.cat(means)
        state[name] = tensor.clone()
    made.load_state_dict(state)
    return made


grouped.reference({"GroupedAttention": _Reference, "grouped": _reference})


@grouped.cases
def _(draw):
    one, groups, trained = grouped.parts

    def config(heads, width):
        return MiniGPTConfig(9, heads * width, heads, 1, 8, 12)

    def asked(part, heads, kv_heads, width, length=4, batch=2, upstream=False):
        dtype = torch.float64 if upstream else torch.float32
        some = config(heads, width)
        weights = attention_weights(draw, heads * width, kv_heads * width)
        x = draw.tensor((batch, length, heads * width), dtype)
        more = draw.tensor(x.shape, dtype) if upstream else None

        def play(subject):
            given = (some, kv_heads, weights, x, more)
            return subject.drive("transformer:grouped_attention", *given)

        shown = f"x {tuple(x.shape)}, {heads} heads, {kv_heads} for keys and values"
        places = {"['output']": "the output", "['x']": "the gradient of x"}
        return Case(part, play, shown=shown, places=places)

    def made(heads, kv_heads, width):
        some, weights = config(heads, width), attention_weights(draw, heads * width)

        def play(subject):
            return subject.drive("transformer:converted", some, kv_heads, weights)

        shown = f"{heads} heads of {width} channels, {kv_heads} for keys and values"
        places = {
            "['weights']": "the weights of what was made",
            "['left']": "the weights that it was made of, after zeros were written into what was made",
        }
        return Case(trained, play, shown=shown, places=places)

    yield asked(one, 4, 1, draw.integer(1, 3))
    yield asked(one, draw.integer(2, 5), 1, 2, draw.integer(2, 5))
    yield asked(one, 1, 1, 3)
    yield asked(one, 2, 1, 1, 13, 1)  # longer than the config's context, which the class need not know
    yield asked(one, 3, 1, 2, upstream=True)
    yield asked(groups, 4, 2, 2)
    yield asked(groups, 6, draw.choice((2, 3)), draw.integer(1, 3), draw.integer(2, 5))
    yield asked(groups, 3, 3, 2)
    yield asked(groups, 4, 2, 3, 1, 3)
    yield asked(groups, 6, 3, 2, upstream=True)
    yield made(4, 2, draw.integer(2, 3))
    yield made(6, draw.choice((2, 3)), 2)
    yield made(draw.integer(2, 4), 1, 3)
    yield made(3, 3, 2)
    yield made(4, 2, 2)


_Right = lab_solution(__name__, "grouped", "GroupedAttention")
_grouped = lab_solution(__name__, "grouped")


GroupedAttention = _Right  # the name that `_grouped` knows it by, as in a lab


def _of_class(name, explanation, earns, *edits):
    wrong = named("GroupedAttention", edited(_Right, *edits))
    grouped.misconception(name, explanation, earns=earns)(wrong)


def _of_making(name, explanation, *edits):
    wrong = named("grouped", edited(_grouped, *edits))
    grouped.misconception(name, explanation, earns=2)(wrong)


_of_class(
    "heads taken in turn",
    "query head h looks at key head h modulo kv_heads, as where `repeat` lays the heads out.",
    2,
    (".repeat_interleave(self.n_heads // self.kv_heads, dim=1)", ".repeat(1, self.n_heads // self.kv_heads, 1, 1)"),
)
_of_class(
    "not causal",
    "positions see what comes after them.",
    1,
    ("is_causal=True", "is_causal=False"),
)
_of_class(
    "no bias",
    "keys and values are mapped without a bias.",
    0,
    ("self.key = nn.Linear(config.d_model, shared)", "self.key = nn.Linear(config.d_model, shared, bias=False)"),
    ("self.value = nn.Linear(config.d_model, shared)", "self.value = nn.Linear(config.d_model, shared, bias=False)"),
)
_of_class(
    "scaled by the whole width",
    "scores are divided by the root of D, and not of a head's own channels.",
    1,
    ("is_causal=True", "is_causal=True, scale=x.shape[-1] ** -0.5"),
)
_of_class(
    "heads not put back in order",
    "heads and positions are mixed on the way back, as where the exchanged dimensions stay exchanged.",
    1,
    ("mixed.transpose(1, 2).flatten(2)", "mixed.reshape(x.shape)"),
)
_of_class(
    "a buffer",
    "there is more in the state dict than four maps: a mask that is a buffer, say.",
    0,
    ("self.n_heads, self.kv_heads = (config.n_heads, kv_heads)", "self.n_heads, self.kv_heads = (config.n_heads, kv_heads)\n        self.register_buffer('past', torch.ones(config.context, config.context).tril())"),
)
_of_class(
    "keys and values exchanged",
    "what is looked at is the values, and what is summed is the keys.",
    1,
    ("parts = (self.key(x), self.value(x))", "parts = (self.value(x), self.key(x))"),
)
_of_making(
    "the first of a group",
    "a group has the keys and values of its first head, and not the mean.",
    ("heads.mean(1)", "heads[:, 0]"),
)
_of_making(
    "the sum of a group",
    "a group has the sum of its heads' keys and values, and not the mean.",
    ("heads.mean(1)", "heads.sum(1)"),
)
_of_making(
    "means across groups",
    "each mean is of one head of every group, and not of the heads of one.",
    ("(kv_heads, n_heads // kv_heads, -1)", "(n_heads // kv_heads, kv_heads, -1)"),
    ("heads.mean(1)", "heads.mean(0)"),
)
_of_making(
    "biases as they were",
    "the biases are not means of their group.",
    ("heads.mean(1)", "(heads.mean(1) if name.endswith('weight') else heads[:, 0])"),
)
_of_making(
    "shared with the old one",
    "what was made and what it was made of share tensors.",
    ("made.load_state_dict(state)", "made.load_state_dict(state)\n    made.query = attention.query"),
)
_of_making(
    "query and output are the old ones",
    "what was made and what it was made of share the tensors of `query` and `output`: they are no copies.",
    ("made.load_state_dict(state)", "made.load_state_dict(state)\n    made.query, made.output = (attention.query, attention.output)"),
)
_of_making(
    "means of keys alone",
    "value heads are those of the first head of a group, and not the means.",
    ("heads.mean(1)", "(heads.mean(1) if name.startswith('key') else heads[:, 0])"),
)
_of_making(
    "first values, means of biases",
    "the values' weights are those of the first head of a group, and not the means.",
    ("heads.mean(1)", "(heads[:, 0] if name == 'value.weight' else heads.mean(1))"),
)
_of_making(
    "values made of keys",
    "value heads are means of the keys.",
    ("heads = state[name]", "heads = attention.state_dict()[name.replace('value', 'key')]"),
)
_of_making(
    "means written back",
    "the means are written into the module that was given, too.",
    ("        state[name] = heads.mean(1)", "        heads.copy_(heads.mean(1, keepdim=True).clone().expand_as(heads))\n        state[name] = heads.mean(1)"),
)


class _Expanded(nn.Module):
    def __init__(self, config, kv_heads):
        super().__init__()
        self.kv, self.group = kv_heads, config.n_heads // kv_heads
        self.width = config.d_model // config.n_heads
        self.query = nn.Linear(config.d_model, config.d_model)
        self.output = nn.Linear(config.d_model, config.d_model)
        self.key = nn.Linear(config.d_model, self.width * kv_heads)
        self.value = nn.Linear(config.d_model, self.width * kv_heads)

    def forward(self, x):
        b, t, d = x.shape
        q = self.query(x).view(b, t, self.kv, self.group, self.width)
        k = self.key(x).view(b, t, self.kv, self.width)
        v = self.value(x).view(b, t, self.kv, self.width)
        scores = torch.einsum("bqngc,bknc->bngqk", q, k) / self.width**0.5
        scores = scores + torch.full((t, t), -torch.inf).triu(1)
        mixed = torch.einsum("bngqk,bknc->bqngc", scores.softmax(-1), v)
        return self.output(mixed.reshape(b, t, d))


def _in_place(attention, kv_heads):
    heads, d = attention.n_heads, attention.query.weight.shape[1]
    new = GroupedAttention(MiniGPTConfig(d_model=d, n_heads=heads), kv_heads)
    with torch.no_grad():
        for name, parameter in new.named_parameters():
            old = attention.get_parameter(name)
            if name[:3] in ("key", "val"):
                old = old.reshape(kv_heads, heads // kv_heads, d // heads, -1).mean(dim=1)
            parameter.copy_(old.reshape(parameter.shape))
    return new


grouped.alternate("einsum, no keys repeated, copied in place")(
    {**named("GroupedAttention", _Expanded), **named("grouped", _in_place)}
)


class _Enabled(nn.Module):
    def __init__(self, config, kv_heads):
        super().__init__()
        d, self.width = config.d_model, config.d_model // config.n_heads
        sizes = {"query": d, "key": kv_heads * self.width, "value": kv_heads * self.width, "output": d}
        for name, size in sizes.items():
            self.add_module(name, nn.Linear(d, size))

    def forward(self, x):
        q, k, v = (
            getattr(self, name)(x).unflatten(2, (-1, self.width)).movedim(2, 1)
            for name in ("query", "key", "value")
        )
        past = torch.ones(x.shape[1], x.shape[1]).tril().bool()
        mixed = F.scaled_dot_product_attention(q, k, v, past, enable_gqa=True)
        return self.output(mixed.movedim(1, 2).reshape(x.shape))


def _head_by_head(attention, kv_heads):
    size = MiniGPTConfig(d_model=attention.output.out_features, n_heads=attention.n_heads)
    module, group = GroupedAttention(size, kv_heads), attention.n_heads // kv_heads
    state = attention.state_dict()
    for name in state:
        if name.split(".")[0] in ("key", "value"):
            heads = state[name].chunk(attention.n_heads)
            means = [sum(heads[g * group : (g + 1) * group]) / group for g in range(kv_heads)]
            state[name] = torch.cat(means)
    module.load_state_dict(state)
    return module


grouped.alternate("PyTorch's own groups, means head by head")(
    {**named("GroupedAttention", _Enabled), **named("grouped", _head_by_head)}
)


grouped.equivalent(
    ("transpose(1, 2)", "transpose(2, 1)"),
    ("movedim(1, 2)", "movedim(2, 1)"),
    ("movedim(2, 1)", "movedim(1, 2)"),
    because="the same two dimensions are exchanged",
)
grouped.equivalent(
    ("('key.weight', 'key.bias', ", "('key.bias', 'key.weight', "),
    ("'key.bias', 'value.weight'", "'value.weight', 'key.bias'"),
    ("'value.weight', 'value.bias')", "'value.bias', 'value.weight')"),
    ("('key', 'val')", "('val', 'key')"),
    ("('key', 'value')", "('value', 'key')"),
    because="all of them are gone through, in any order",
)
grouped.equivalent(
    ("return made", "return made.float()"),
    ("return new", "return new.float()"),
    ("return module", "return module.float()"),
    because="it is float32 already",
)
grouped.equivalent(
    ("d // heads, -1).mean(dim=1)", "-1, d // heads).mean(dim=1)"),
    because="the mean is over whole blocks of a head's numbers, however these are shaped",
    of="einsum, no keys repeated, copied in place",
)
grouped.equivalent(
    ("query.weight.shape[1]", "query.weight.shape[0]"),
    because="the map of the queries is square",
)
