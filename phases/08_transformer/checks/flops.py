"""Lab 08, exercise 6: What it costs"""

from utils.checks.exercise import Check, case, edited
from utils.checks.lab_solution import lab_solution
from utils.minigpt import MiniGPTConfig

from .shared import named

flops = Check(
    "flops",
    parts={"without a cache": 1, "with a cache": 1, "bytes": 1},
    reads="What it costs",
)


@flops.reference
class _:
    def flops(config, prompt, new, cached):
        products = []  # (rows, inner, columns) of every matrix product

        def passes(tokens, keys):
            width = config.d_model
            for _ in range(config.n_layers):
                products.extend([(tokens, width, width)] * 4)
                products.append((tokens, width, keys))
                products.append((tokens, keys, width))
                products.append((tokens, width, config.d_ff))
                products.append((tokens, config.d_ff, width))
            products.append((tokens, width, config.vocab_size))

        passes(prompt, prompt)
        for done in range(1, new):
            passes(1 if cached else prompt + done, prompt + done)
        return sum(2 * a * b * c for a, b, c in products)

    def cache_bytes(config, tokens, itemsize):
        return config.n_layers * 2 * config.d_model * tokens * itemsize


@flops.cases
def _(draw):
    without, cached, size = flops.parts

    def config(layers=None, heads=None):
        heads = heads or draw.integer(1, 4)
        return MiniGPTConfig(
            vocab_size=draw.integer(20, 99),
            d_model=heads * draw.integer(3, 9),
            n_heads=heads,
            n_layers=layers or draw.integer(2, 5),
            d_ff=draw.integer(20, 70),
            context=draw.integer(30, 60),
        )

    def asked(part, prompt, new, heads=None):
        some = config(heads=heads)
        shown = f"{some}, prompt {prompt}, {new} new"
        return case(part, some, prompt, new, part == cached, of="flops", shown=shown)

    for part in (without, cached):
        yield asked(part, draw.integer(3, 9), 1)
        yield asked(part, 1, 1)
        yield asked(part, 1, 2)
        yield asked(part, draw.integer(2, 9), 2)
        yield asked(part, draw.integer(2, 9), draw.integer(3, 15), heads=3)
    # with two layers, one layer's bytes would be those of the keys alone
    for itemsize, layers, heads in ((2, 3, 2), (4, 1, 3), (1, 5, 1), (8, 2, 4)):
        some, tokens = config(layers, heads), draw.integer(1, 30)
        shown = f"{some}, {tokens} tokens, {itemsize} bytes a number"
        yield case(size, some, tokens, itemsize, of="cache_bytes", shown=shown)
    yield case(size, config(), 0, 4, of="cache_bytes", shown="no tokens")


_flops = lab_solution(__name__, "flops")
_cache_bytes = lab_solution(__name__, "flops", "cache_bytes")


def _misconception(name, explanation, earns, *edits):
    wrong = edited(_flops, *edits)
    flops.misconception(name, explanation, earns=earns)(named("flops", wrong))


def _of_bytes(name, explanation, *edits):
    wrong = edited(_cache_bytes, *edits)
    flops.misconception(name, explanation, earns=2)(named("cache_bytes", wrong))


_misconception(
    "one operation for two",
    "a multiplication and its addition are counted as one.",
    1,
    ("return 2 *", "return"),
)
_misconception(
    "a pass too many",
    "the last new word goes through the model as well.",
    1,
    ("prompt + new)", "prompt + new + 1)"),
)
_misconception(
    "a pass too few",
    "one of the new words is had for nothing.",
    1,
    ("range(prompt + 1,", "range(prompt + 2,"),
)
_misconception(
    "hidden pairs left out",
    "only pairs of a query and a key that it may see are counted.",
    1,
    ("2 * tokens * keys * config.d_model", "tokens * (2 * keys - tokens + 1) * config.d_model"),
)
_misconception(
    "three maps",
    "one of attention's four maps is left out.",
    1,
    ("4 * config.d_model", "3 * config.d_model"),
)
_misconception(
    "scores alone",
    "scores and weighted sums come to half of what they cost, as where one of the two is left out.",
    1,
    ("2 * tokens * keys", "tokens * keys"),
)
_misconception(
    "the head for one token",
    "the head is counted for the last token alone.",
    1,
    ("tokens * config.d_model * config.vocab_size", "config.d_model * config.vocab_size"),
)
_misconception(
    "attention for one head",
    "scores and sums are counted for one head's channels alone.",
    1,
    ("keys * config.d_model\n", "keys * (config.d_model // config.n_heads)\n"),
)
_misconception(
    "a new word alone with itself",
    "with a cache, a new query meets one key, its own.",
    2,
    ("one_pass(1 if cached else keys, keys)", "one_pass(1, 1) if cached else one_pass(keys, keys)"),
)
_misconception(
    "a cache that saves nothing",
    "with a cache, all tokens go through again.",
    2,
    ("1 if cached else keys", "keys"),
)
_misconception(
    "no head",
    "the LM head is not counted.",
    1,
    (" + tokens * config.d_model * config.vocab_size", ""),
)
_misconception(
    "a head in each layer",
    "the LM head is counted once for each layer.",
    1,
    ("config.n_layers * layer + tokens * config.d_model * config.vocab_size", "config.n_layers * (layer + tokens * config.d_model * config.vocab_size)"),
)
_misconception(
    "products of one layer",
    "attention and MLP are counted for one layer alone.",
    1,
    ("config.n_layers * layer", "layer"),
)
_misconception(
    "an MLP of four times the width",
    "the MLP is taken to be 4 D wide, where `config.d_ff` says how wide it is.",
    1,
    ("2 * config.d_model * config.d_ff", "8 * config.d_model ** 2"),
)
_misconception(
    "one map in the MLP",
    "the MLP's maps come to half of what they cost, as where one of the two is left out.",
    1,
    ("2 * config.d_model * config.d_ff", "config.d_model * config.d_ff"),
)
_misconception(
    "biases counted",
    "the additions of biases are counted.",
    1,
    ("4 * config.d_model ** 2", "4 * config.d_model ** 2 + 2 * config.d_model"),
)
_misconception(
    "the last word for nothing",
    "the last new word takes no pass, although a pass gives each new word.",
    1,
    ("prompt + new)", "prompt + new - 1)"),
)
_misconception(
    "a key too few",
    "with a cache, a new query does not meet its own key.",
    2,
    ("one_pass(1 if cached else keys, keys)", "one_pass(1, keys - 1) if cached else one_pass(keys, keys)"),
)
_misconception(
    "the prompt's keys alone",
    "with a cache, a new query meets the keys of the prompt, and none of the new words'.",
    2,
    ("one_pass(1 if cached else keys, keys)", "one_pass(1, prompt) if cached else one_pass(keys, keys)"),
)
_of_bytes("keys alone", "values are left out.", ("2 * config", "config"))
_of_bytes("one layer", "the bytes are those of one layer.", ("config.n_layers * ", ""))
_of_bytes("once for each head", "every head is given all channels.", (" * itemsize", " * itemsize * config.n_heads"))
_of_bytes("numbers, not bytes", "numbers are counted, and not their bytes.", (" * itemsize", ""))
_of_bytes("four bytes each", "a number takes four bytes, whatever `itemsize` says.", ("config.d_model * itemsize", "config.d_model * 4"))
_of_bytes("one head's cache", "the bytes are those of one head.", (" * itemsize", " // config.n_heads * itemsize"))


@flops.alternate("closed forms")
class _:
    def flops(config, prompt, new, cached):
        last = prompt + new - 1  # keys in the last pass
        squares = last * (last + 1) * (2 * last + 1) // 6 - (prompt - 1) * prompt * (2 * prompt - 1) // 6
        sums = last * (last + 1) // 2 - prompt * (prompt - 1) // 2
        tokens, pairs = (last, prompt**2 + sums - prompt) if cached else (sums, squares)
        one = 8 * config.d_model**2 + 4 * config.d_model * config.d_ff
        head = 2 * config.d_model * config.vocab_size
        return config.n_layers * (one * tokens + 4 * pairs * config.d_model) + head * tokens

    def cache_bytes(config, tokens, itemsize):
        key = config.d_model * itemsize
        return config.n_layers * tokens * (key + key)


@flops.alternate("a list of passes")
class _:
    def flops(config, prompt, new, cached):
        d, f, v = config.d_model, config.d_ff, config.vocab_size
        passes = [(prompt, prompt)]
        for word in range(1, new):
            keys = prompt + word
            passes.append((1, keys) if cached else (keys, keys))
        found = 0
        for q, k in passes:
            attention = 4 * (2 * q * d * d) + 2 * q * k * d + 2 * q * k * d
            mlp = 2 * q * d * f + 2 * q * f * d
            found += config.n_layers * (attention + mlp) + 2 * q * d * v
        return found

    def cache_bytes(config, tokens, itemsize):
        head = config.d_model // config.n_heads
        return sum(2 * config.n_heads * head * tokens * itemsize for _ in range(config.n_layers))
