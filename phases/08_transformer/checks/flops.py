"""Lab 08, exercise 6: What it costs"""

from hood.judge.checks.exercise import Check, case
from utils.minigpt import MiniGPTConfig

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
    # not two layers: then the bytes of one layer would be equal to the bytes of the keys alone
    for itemsize, layers, heads in ((2, 3, 2), (4, 1, 3), (1, 5, 1), (8, 2, 4)):
        some, tokens = config(layers, heads), draw.integer(1, 30)
        shown = f"{some}, {tokens} tokens, {itemsize} bytes a number"
        yield case(size, some, tokens, itemsize, of="cache_bytes", shown=shown)
    yield case(size, config(), 0, 4, of="cache_bytes", shown="no tokens")
