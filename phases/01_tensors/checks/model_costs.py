"""Lab 01, exercise 11: What a forward pass costs"""

from dataclasses import replace

from utils.checks.exercise import Case, Check, case, edited
from utils.minigpt import MiniGPTConfig

model_costs = Check(
    "model_costs",
    parts={
        "FLOPs of a linear layer": 1,
        "bytes of a linear layer": 2,
        "FLOPs of the LM head": 1,
        "FLOPs of the blocks": 2,
    },
    reads="Counting FLOPs and bytes",
)


@model_costs.reference
class _:
    def linear_cost(batch, d_in, d_out, itemsize):
        elements = batch * d_in + d_out * d_in + d_out + batch * d_out
        return {"flops": 2 * batch * d_in * d_out, "bytes": elements * itemsize}

    def minigpt_flops(config, batch, length):
        tokens = batch * length
        projections = 4 * 2 * tokens * config.d_model * config.d_model
        attention = 2 * 2 * tokens * length * config.d_model
        mlp = 2 * 2 * tokens * config.d_model * config.d_ff
        head = 2 * tokens * config.d_model * config.vocab_size
        return config.n_layers * (projections + attention + mlp) + head


@model_costs.cases
def _(draw):
    def layer_case(part, key, sizes):
        return Case(part, lambda subject: subject["linear_cost"](*sizes)[key], of="linear_cost")

    def batch_case(sizes):
        """What as many rows again add to the bytes: no weight and no bias."""
        batch, *others = sizes

        def play(subject):
            cost = subject["linear_cost"]
            return cost(2 * batch, *others)["bytes"] - cost(*sizes)["bytes"]

        told = {"": "what grows with the batch, input and output"}
        return Case("bytes of a linear layer", play, of="linear_cost", places=told)

    def share_cases(config, batch, length):
        """What the MLP and the attention table take, whatever else is counted."""

        def layers(subject):
            count, depth = subject["minigpt_flops"], config.n_layers
            some = [count(replace(config, n_layers=k * depth), batch, length) for k in (0, 1, 2)]
            return bool(some[2] - some[1] == some[1] - some[0] > 0)

        def mlp(subject):
            count, wider = subject["minigpt_flops"], replace(config, d_ff=2 * config.d_ff)
            return count(wider, batch, length) - count(config, batch, length)

        def table(subject):
            count, third = subject["minigpt_flops"], length // 3
            one, two, three = (count(config, batch, k * third) for k in (1, 2, 3))
            return three - 2 * two + one

        told = {
            "More blocks (`n_layers`) do not take evenly more FLOPs.": layers,
            "the MLP, which grows with `d_ff`": mlp,
            "the attention table, which grows with the square of `length`": table,
        }
        for words, play in told.items():
            yield Case("FLOPs of the blocks", play, of="minigpt_flops", places={"": words})

    def blocks_case(config, batch, length):
        """What the blocks add to a model that has none."""
        empty = replace(config, n_layers=0)

        def play(subject):
            count = subject["minigpt_flops"]
            return count(config, batch, length) - count(empty, batch, length)

        told = {"": "the blocks, beyond the MLP and the attention table"}
        return Case("FLOPs of the blocks", play, of="minigpt_flops", places=told)

    for itemsize in (4, 2, 8):
        sizes = (*(draw.integer(2, 700) for _ in range(3)), itemsize)
        yield layer_case("FLOPs of a linear layer", "flops", sizes)
        yield batch_case(sizes)
        yield layer_case("bytes of a linear layer", "bytes", sizes)
    for _ in range(2):
        heads = draw.integer(2, 6)
        config = MiniGPTConfig(
            vocab_size=draw.integer(100, 900),
            d_model=heads * draw.integer(5, 20),
            n_heads=heads,
            n_layers=draw.integer(3, 7),
            d_ff=draw.integer(100, 500),
            context=64,
        )
        batch, length = draw.integer(2, 9), draw.integer(10, 60)
        head, shown = replace(config, n_layers=0), "no blocks, the head alone"
        yield case("FLOPs of the LM head", head, batch, length, of="minigpt_flops", shown=shown)
        yield from share_cases(config, batch, length)
        yield blocks_case(config, batch, length)
    yield blocks_case(MiniGPTConfig(), 2, 32)


_linear_cost = model_costs.right["linear_cost"]
_minigpt_flops = model_costs.right["minigpt_flops"]


@model_costs.misconception(
    "one operation for a multiply-add",
    "the counts are half as large: a multiplication and the addition that follows it are two "
    "operations.",
    earns=2,
)
class _:
    linear_cost = edited(_linear_cost, ("2 * batch", "batch"))
    minigpt_flops = edited(
        _minigpt_flops,
        ("4 * 2 *", "4 *"),
        ("attention = 2 * 2", "attention = 2"),
        ("mlp = 2 * 2", "mlp = 2"),
        ("head = 2 * tokens", "head = tokens"),
    )


@model_costs.misconception(
    "one operation for a layer's multiply-add",
    "the layer's count is half as large: a multiplication and the addition that follows it are "
    "two operations.",
    earns=5,
)
class _:
    linear_cost = edited(_linear_cost, ("2 * batch", "batch"))


@model_costs.misconception(
    "an addition fewer",
    "each output has one operation fewer than two for each of its products.",
    earns=5,
)
class _:
    linear_cost = edited(
        _linear_cost, ("2 * batch * d_in * d_out", "batch * (2 * d_in - 1) * d_out")
    )


@model_costs.misconception(
    "output not written",
    "the bytes lack those of the output, which is written once.",
    earns=4,
)
class _:
    linear_cost = edited(_linear_cost, (" + batch * d_out", ""))


@model_costs.misconception(
    "half of the table saved",
    "only the pairs that a causal mask leaves were counted; all of them are computed.",
    earns=4,
)
class _:
    minigpt_flops = edited(_minigpt_flops, ("2 * 2 * tokens * length", "2 * tokens * (length + 1)"))


@model_costs.misconception(
    "bias counted as work",
    "there is an operation more for each output, as if the additions of the bias counted; only "
    "the product does.",
    earns=5,
)
class _:
    def linear_cost(batch, d_in, d_out, itemsize):
        elements = batch * d_in + d_out * d_in + d_out + batch * d_out
        return {"flops": 2 * batch * d_in * d_out + batch * d_out, "bytes": elements * itemsize}


@model_costs.misconception(
    "weights not read",
    "the traffic is that of the activations alone; weights and bias come from memory too.",
    earns=4,
)
class _:
    def linear_cost(batch, d_in, d_out, itemsize):
        return {
            "flops": 2 * batch * d_in * d_out,
            "bytes": (batch * d_in + batch * d_out) * itemsize,
        }


@model_costs.misconception(
    "bias not read",
    "the bytes lack those of one number for each output, as the bias has them.",
    earns=4,
)
class _:
    def linear_cost(batch, d_in, d_out, itemsize):
        elements = batch * d_in + d_out * d_in + batch * d_out
        return {"flops": 2 * batch * d_in * d_out, "bytes": elements * itemsize}


@model_costs.misconception(
    "elements for bytes", "the traffic was counted in elements, whatever their width.", earns=4
)
class _:
    def linear_cost(batch, d_in, d_out, itemsize):
        elements = batch * d_in + d_out * d_in + d_out + batch * d_out
        return {"flops": 2 * batch * d_in * d_out, "bytes": elements}


@model_costs.misconception(
    "attention without its tables",
    "the count lacks what the two products with the (length, length) table take.",
    earns=4,
)
class _:
    minigpt_flops = edited(_minigpt_flops, ("projections + attention + mlp", "projections + mlp"))


@model_costs.misconception(
    "scores without the weighted sum",
    "attention's table is counted for one product; the scores and the sum of values that they "
    "weight are two, as large as each other.",
    earns=4,
)
class _:
    minigpt_flops = edited(_minigpt_flops, ("attention = 2 * 2", "attention = 2"))


@model_costs.misconception(
    "every head as wide as the model",
    "the tables are counted once for each head at the full width; a head has a share of it.",
    earns=4,
)
class _:
    minigpt_flops = edited(_minigpt_flops, ("tokens * length", "tokens * length * config.n_heads"))


@model_costs.misconception(
    "positions compared across the batch",
    "every token was compared with every token of the batch; each sequence keeps to itself.",
    earns=4,
)
class _:
    minigpt_flops = edited(_minigpt_flops, ("tokens * length", "tokens * tokens"))


@model_costs.misconception(
    "three projections",
    "three projections are counted in each block: queries, keys and values make three, and a "
    "fourth matrix mixes the heads.",
    earns=4,
)
class _:
    minigpt_flops = edited(_minigpt_flops, ("projections = 4", "projections = 3"))


@model_costs.misconception(
    "an MLP four times as wide",
    "the count is that of an MLP 4 · d_model wide, as it often is; the config says how wide.",
    earns=4,
)
class _:
    minigpt_flops = edited(_minigpt_flops, ("config.d_ff", "4 * config.d_model"))


@model_costs.misconception(
    "a vocabulary of 600, whatever the config",
    "the count is that of 600 words, whatever the config says.",
    earns=5,
)
class _:
    minigpt_flops = edited(_minigpt_flops, ("config.vocab_size", "600"))


@model_costs.misconception(
    "a width of 64, whatever the config",
    "the model's counts are those of a d_model of 64, whatever the config says.",
    earns=3,
)
class _:
    minigpt_flops = edited(
        _minigpt_flops,
        ("    tokens =", """    config = MiniGPTConfig(
        vocab_size=config.vocab_size, n_layers=config.n_layers, d_ff=config.d_ff
    )
    tokens ="""),
    )  # fmt: skip


@model_costs.misconception(
    "head only at the last position",
    "the LM head is counted once for a sequence; in a full forward it runs at every position.",
    earns=5,
)
class _:
    minigpt_flops = edited(_minigpt_flops, ("head = 2 * tokens", "head = 2 * batch"))


@model_costs.misconception(
    "a head in every block",
    "the LM head is counted once for each block; it stands once, after the last of them.",
    earns=3,
)
class _:
    minigpt_flops = edited(
        _minigpt_flops,
        ("(projections + attention + mlp) + head", "(projections + attention + mlp + head)"),
    )


@model_costs.misconception(
    "embedding counted as a product",
    "the LM head is counted twice, or the embedding counts as a product as large; looking up a "
    "row of it multiplies nothing.",
    earns=5,
)
class _:
    minigpt_flops = edited(_minigpt_flops, ("head = 2", "head = 2 * 2"))


@model_costs.misconception(
    "weights read for each row",
    "the bytes have the weight again for each row of the batch; it is read once.",
    earns=4,
)
class _:
    linear_cost = edited(_linear_cost, ("d_out * d_in", "batch * d_out * d_in"))


@model_costs.misconception(
    "four bytes for each element", "the bytes are as if each element were 4 bytes wide.", earns=4
)
class _:
    linear_cost = edited(_linear_cost, ("elements * itemsize", "elements * 4"))


@model_costs.misconception(
    "no LM head", "the FLOPs lack those of the LM head behind the blocks.", earns=5
)
class _:
    minigpt_flops = edited(_minigpt_flops, (" + head", ""))


@model_costs.misconception(
    "half of the MLP", "of the MLP's two products only one was counted.", earns=4
)
class _:
    minigpt_flops = edited(
        _minigpt_flops,
        (
            "2 * 2 * tokens * config.d_model * config.d_ff",
            "2 * tokens * config.d_model * config.d_ff",
        ),
    )


@model_costs.misconception(
    "pairs of the whole context",
    "the pairs of positions were counted as if a sequence were as long as the context.",
    earns=4,
)
class _:
    minigpt_flops = edited(_minigpt_flops, ("tokens * length", "tokens * config.context"))


@model_costs.alternate("a list of matrix products")
class _:
    def linear_cost(batch, d_in, d_out, itemsize):
        read = batch * d_in + d_out * (d_in + 1)
        return {"bytes": itemsize * (read + batch * d_out), "flops": d_out * 2 * batch * d_in}

    def minigpt_flops(config, batch, length):
        d, head = config.d_model, config.d_model // config.n_heads
        products = []
        for _ in range(config.n_layers):
            products += [(batch * length, d, d)] * 4
            products += [(length, head, length), (length, length, head)] * batch * config.n_heads
            products += [(batch * length, d, config.d_ff), (batch * length, config.d_ff, d)]
        products.append((batch * length, d, config.vocab_size))
        return sum(2 * m * k * n for m, k, n in products)


model_costs.equivalent(
    ("(batch * length, d, ", "(d, batch * length, "),
    ("(batch * length, d, config.d_ff)", "(batch * length, config.d_ff, d)"),
    ("(batch * length, config.d_ff, d)", "(batch * length, d, config.d_ff)"),
    ("(batch * length, config.d_ff, d)", "(config.d_ff, batch * length, d)"),
    ("(batch * length, d, config.vocab_size)", "(batch * length, config.vocab_size, d)"),
    ("(length, head, length)", "(head, length, length)"),
    ("(length, head, length)", "(length, length, head)"),
    ("(length, length, head)", "(length, head, length)"),
    ("(length, head, length), (length, length, head)",
     "(length, length, head), (length, head, length)"),
    ("(batch * length, d, config.d_ff), (batch * length, config.d_ff, d)",
     "(batch * length, config.d_ff, d), (batch * length, d, config.d_ff)"),
    because="a product is the same in any order of its factors, a sum in any order of its terms",
)  # fmt: skip
