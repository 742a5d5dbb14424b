"""Lab 03, exercise 1: How many numbers?"""

import math

from torch import nn

from utils.checks import ByHand, Case, Check, case
from utils.minigpt import MiniGPTConfig, parameter_count

count_parameters = Check(
    "count_parameters",
    parts={"an MLP": 1, "MiniGPT": 1, "tied weights": 1},
    reads="Layers are shapes",
    by_hand=ByHand(
        "the exercise is to count before there is a model",
        forbid_names=frozenset({"numel", "nelement", "*parameter*", "torch.nn", "utils.minigpt"}),
        allow_names=frozenset({"utils.minigpt.MiniGPTConfig", "utils.minigpt.load_config"}),
        tensors=False,
    ),
)


@count_parameters.reference
class _:
    def mlp_parameters(widths, bias=True):
        pairs = zip(widths[:-1], widths[1:], strict=True)
        layers = [nn.Linear(a, b, bias=bias, device="meta") for a, b in pairs]
        return sum(p.numel() for p in nn.Sequential(*layers).parameters())

    def minigpt_parameters(config, tied=False):
        return parameter_count(config) - tied * config.vocab_size * config.d_model


@count_parameters.cases
def _(draw):
    yield case("an MLP", [784, 128, 10], of="mlp_parameters")
    drawn = [[draw.integer(2, 900) for _ in range(depth)] for depth in (2, 5)]
    words = ("two widths", "five widths", "four equal widths", "a width of 1 between two others")
    for widths, shown in zip((*drawn, [7, 7, 7, 7], [5, 1, 5]), words, strict=True):
        yield case("an MLP", widths, of="mlp_parameters", shown=shown)
        without = f"{shown}, without a bias"
        yield case("an MLP", widths, bias=False, of="mlp_parameters", shown=without)
    places = {"['result']": "the number", "['arguments'][0]": "the list of widths afterwards"}
    yield Case(
        "an MLP",
        lambda subject: subject.drive("functions:keeping", [5, 3, 2], of="mlp_parameters"),
        "mlp_parameters",
        "a list that others go on using",
        places,
    )
    yield case("MiniGPT", MiniGPTConfig(), of="minigpt_parameters")
    yield case("tied weights", MiniGPTConfig(), tied=True, of="minigpt_parameters")
    configs = []
    for heads, layers in ((1, 1), (3, draw.integer(3, 6)), (4, 2)):
        words, ff, context = draw.sample(range(30, 400), 3)
        configs.append(MiniGPTConfig(words, 6 * heads, heads, layers, ff, context))
    for config in (*configs, MiniGPTConfig(8, 8, 2, 3, 8, 8)):
        shown = f"n_layers = {config.n_layers}, n_heads = {config.n_heads} and other sizes"
        yield case("MiniGPT", config, of="minigpt_parameters", shown=shown)
        yield case("tied weights", config, tied=True, of="minigpt_parameters", shown=shown)


@count_parameters.misconception(
    "biases forgotten",
    "the count is that of the weights alone; each output has a bias, too.",
    earns=0,
)
class _:
    def mlp_parameters(widths, bias=True):
        return sum(a * b for a, b in zip(widths[:-1], widths[1:], strict=True))

    def minigpt_parameters(config, tied=False):
        d, f, v = config.d_model, config.d_ff, config.vocab_size
        blocks = config.n_layers * (4 * d * d + 2 * d * f + 4 * d)
        return (v + config.context) * d + blocks + 2 * d + (0 if tied else d * v)


@count_parameters.misconception(
    "a bias for each input", "a linear layer was given as many biases as it has inputs.", earns=2
)
class _:
    def mlp_parameters(widths, bias=True):
        return sum(a * b + bias * a for a, b in zip(widths[:-1], widths[1:], strict=True))


@count_parameters.misconception(
    "bias switched on for good", "`bias=False` changed nothing.", earns=2
)
class _:
    def mlp_parameters(widths, bias=True):
        return sum(a * b + b for a, b in zip(widths[:-1], widths[1:], strict=True))


@count_parameters.misconception(
    "tied weight counted twice",
    "the one weight that carries two names was counted under both.",
    earns=2,
)
class _:
    def minigpt_parameters(config, tied=False):
        d, f, v = config.d_model, config.d_ff, config.vocab_size
        block = 4 * (d * d + d) + 2 * d * f + f + d + 4 * d
        return (v + config.context) * d + config.n_layers * block + 2 * d + d * v + v


@count_parameters.misconception(
    "a tied head without its bias",
    "with tying the head's bias is missing, too; it is the weight that is shared.",
    earns=2,
)
class _:
    def minigpt_parameters(config, tied=False):
        d, f, v = config.d_model, config.d_ff, config.vocab_size
        block = 4 * (d * d + d) + 2 * d * f + f + d + 4 * d
        return (v + config.context) * d + config.n_layers * block + 2 * d + (not tied) * (d + 1) * v


@count_parameters.misconception(
    "positions forgotten", "the position embedding is a table, too, and it is trained.", earns=1
)
class _:
    def minigpt_parameters(config, tied=False):
        d, f, v = config.d_model, config.d_ff, config.vocab_size
        block = 4 * (d * d + d) + 2 * d * f + f + d + 4 * d
        return v * d + config.n_layers * block + 2 * d + (0 if tied else d * v) + v


@count_parameters.misconception(
    "norms forgotten", "the weights and biases of the norms are missing.", earns=1
)
class _:
    def minigpt_parameters(config, tied=False):
        d, f, v = config.d_model, config.d_ff, config.vocab_size
        block = 4 * (d * d + d) + 2 * d * f + f + d
        return (v + config.context) * d + config.n_layers * block + (0 if tied else d * v) + v


@count_parameters.misconception(
    "an MLP of four times the width",
    "the MLP was taken to be four times as wide as the model; the config has a number for that.",
    earns=1,
)
class _:
    def minigpt_parameters(config, tied=False):
        d, f, v = config.d_model, 4 * config.d_model, config.vocab_size
        block = 4 * (d * d + d) + 2 * d * f + f + d + 4 * d
        return (
            (v + config.context) * d + config.n_layers * block + 2 * d + (0 if tied else d * v) + v
        )


@count_parameters.alternate("as lists of shapes")
class _:
    def mlp_parameters(widths, bias=True):
        shapes = []
        for k in range(1, len(widths)):
            shapes.append((widths[k], widths[k - 1]))
            if bias:
                shapes.append((widths[k],))
        return sum(math.prod(shape) for shape in shapes)

    def minigpt_parameters(config, tied=False):
        d, f, v = config.d_model, config.d_ff, config.vocab_size
        block = [(d, d), (d,)] * 4 + [(f, d), (f,), (d, f), (d,)] + [(d,)] * 4
        shapes = [(v, d), (config.context, d), *block * config.n_layers, (d,), (d,), (v,)]
        if not tied:
            shapes.append((v, d))
        return sum(math.prod(shape) for shape in shapes)


count_parameters.equivalent(
    ("(widths[k], widths[k - 1])", "(widths[k - 1], widths[k])"),
    ("[(d, d), (d,)] * 4", "[(d,), (d, d)] * 4"),
    ("[(f, d), (f,), ", "[(f,), (f, d), "),
    ("(f,), (d, f), ", "(d, f), (f,), "),
    ("(d, f), (d,)]", "(d,), (d, f)]"),
    ("[(f, d), (f,)", "[(d, f), (f,)"),
    ("(f,), (d, f)", "(f,), (f, d)"),
    ("[(v, d), (config.context, d), ", "[(config.context, d), (v, d), "),
    ("(config.context, d), *block * config.n_layers", "*block * config.n_layers, (config.context, d)"),
    ("*block * config.n_layers, (d,)", "(d,), *block * config.n_layers"),
    ("(d,), (v,)]", "(v,), (d,)]"),
    ("[(v, d), (config", "[(d, v), (config"),
    ("(config.context, d)", "(d, config.context)"),
    ("append((v, d))", "append((d, v))"),
    because="a product is the same in either order, and so is the sum of all",
)
