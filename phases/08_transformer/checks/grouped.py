"""Lab 08, exercise 9: Fewer keys and values"""

import torch
from torch import nn

from hood.judge.checks.exercise import Case, Check
from hood.judge.checks.words import counted
from utils.minigpt import MiniGPTConfig

from .shared import SUMS, attention_weights

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

        shown = f"x {tuple(x.shape)}, {counted(heads, 'head')}, {kv_heads} for keys and values"
        places = {"['output']": "the output", "['x']": "the gradient of x"}
        return Case(part, play, shown=shown, places=places)

    def made(heads, kv_heads, width):
        some, weights = config(heads, width), attention_weights(draw, heads * width)

        def play(subject):
            return subject.drive("transformer:converted", some, kv_heads, weights)

        shown = f"{counted(heads, 'head')} of {counted(width, 'channel')}, {kv_heads} for keys and values"
        places = {
            "['weights']": "the weights of the new module",
            "['left']": (
                "the weights of the given module after zeros were written into the new module "
                "(None: a weight no longer requires a gradient)"
            ),
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
