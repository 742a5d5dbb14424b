"""Lab 03, exercise 1: How many numbers?"""

from dataclasses import replace

from hood.judge.checks.exercise import ByHand, Case, Check
from utils.minigpt import MiniGPTConfig, parameter_count

count_parameters = Check(
    "count_parameters",
    parts={"an MLP": 1, "MiniGPT": 1, "tied weights": 1},
    reads="Layers are shapes",
    by_hand=ByHand(
        "the exercise is to count without making a model",
        forbid_names=frozenset({"numel", "nelement", "*parameter*", "torch.nn", "utils.minigpt"}),
        allow_names=frozenset({"utils.minigpt.MiniGPTConfig", "utils.minigpt.load_config"}),
        parts=frozenset({"MiniGPT", "tied weights"}),  # no layer of torch has an MLP's largest widths
    ),
)


@count_parameters.reference
class _:
    def mlp_parameters(widths, bias=True):
        return sum((a + bias) * b for a, b in zip(widths[:-1], widths[1:], strict=True))

    def minigpt_parameters(config, tied=False):
        return parameter_count(config) - tied * config.vocab_size * config.d_model


@count_parameters.cases
def _(draw):
    def asked(part, of, thing, known, shown="", **how):
        """Compare facts first: is the result one of several known wrong numbers?"""

        def play(subject):
            came = subject[of](thing, **how)
            facts = {f"fact {at}": came != number for at, number in enumerate(known.values())}
            return facts | {"number": came}

        places = {f"['fact {at}']": f"That is the number {words}." for at, words in enumerate(known)}
        return Case(part, play, of, shown, places | {"['number']": "what is returned"})

    def mlp(widths, shown="", bias=True):
        pairs = list(zip(widths, widths[1:], strict=False))
        right = sum((a + bias) * b for a, b in pairs)
        known = {
            "without the last layer's biases": right - widths[-1] * bias,
            "without the first layer's biases": right - widths[1] * bias,
            "without the last layer": right - (pairs[-1][0] + bias) * pairs[-1][1],
        }
        known = {words: number for words, number in known.items() if number not in (right, 0)}
        how = {} if bias else {"bias": False}
        return asked("an MLP", "mlp_parameters", widths, known, shown, **how)

    def minigpt(part, config, shown=""):
        def number(**other):
            changed = replace(config, **other)
            tied = part == "tied weights"
            return parameter_count(changed) - tied * changed.vocab_size * changed.d_model

        known = {
            "of a model with a context of 32": number(context=32),
            "of a model with one block": number(n_layers=1),
            "of a model with two blocks": number(n_layers=2),
            "of a model with one block less": number(n_layers=config.n_layers - 1),
            "without the token embedding": number() - config.vocab_size * config.d_model,
            "without the last norm": number() - 2 * config.d_model,
        }
        known = {words: other for words, other in known.items() if other != number()}
        how = {"tied": True} if part == "tied weights" else {}
        return asked(part, "minigpt_parameters", config, known, shown, **how)

    yield mlp([784, 128, 10])
    drawn = [[draw.integer(2, 900) for _ in range(depth)] for depth in (2, 5)]
    words = ("two widths", "five widths", "four equal widths", "a width of 1 between two other widths")
    for widths, shown in zip((*drawn, [7, 7, 7, 7], [5, 1, 5]), words, strict=True):
        yield mlp(widths, shown)
        yield mlp(widths, f"{shown}, without a bias", bias=False)
    wide = [2**40 + draw.integer(1, 99) for _ in range(3)]
    yield mlp(wide, "widths that no layer of torch can have")
    yield mlp(wide, "widths that no layer of torch can have, without a bias", bias=False)
    places = {"['result']": "what is returned", "['arguments'][0]": "the list of widths afterwards"}
    used = [draw.integer(2, 900) for _ in range(3)]
    yield Case(
        "an MLP",
        lambda subject: subject.drive("functions:keeping", [*used], of="mlp_parameters"),
        "mlp_parameters",
        "a list that other code uses afterwards",
        places,
    )
    yield minigpt("MiniGPT", MiniGPTConfig())
    yield minigpt("tied weights", MiniGPTConfig())
    configs = []
    for heads, layers in ((1, 1), (3, draw.integer(3, 6)), (4, 2)):
        words, ff, context = draw.sample(range(30, 400), 3)
        configs.append(MiniGPTConfig(words, 6 * heads, heads, layers, ff, context))
    for config in (*configs, MiniGPTConfig(8, 8, 2, 3, 8, 8)):
        shown = f"n_layers = {config.n_layers}, n_heads = {config.n_heads} and other sizes"
        yield minigpt("MiniGPT", config, shown)
        yield minigpt("tied weights", config, shown)
