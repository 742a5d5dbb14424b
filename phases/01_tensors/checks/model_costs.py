"""Lab 01, exercise 11: What a forward pass costs"""

from dataclasses import replace

from hood.judge.checks.exercise import Case, Check, case
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
        """A case for the bytes that twice as many rows add. Weight and bias add none."""
        batch, *others = sizes

        def play(subject):
            cost = subject["linear_cost"]
            return cost(2 * batch, *others)["bytes"] - cost(*sizes)["bytes"]

        told = {"": "the bytes of input and output, whose number grows with the batch"}
        return Case("bytes of a linear layer", play, of="linear_cost", places=told)

    def share_cases(config, batch, length):
        """Cases that test only the MLP and only the attention table, whatever else an answer counts."""

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
            "Each further block (`n_layers`) should add FLOPs, and always the same number.": layers,
            "the FLOPs of the MLP, which grow with `d_ff`": mlp,
            "the FLOPs of the attention table, which grow with the square of `length`": table,
        }
        for words, play in told.items():
            yield Case("FLOPs of the blocks", play, of="minigpt_flops", places={"": words})

    def blocks_case(config, batch, length):
        """A case for the FLOPs that the blocks add to a model without blocks."""
        empty = replace(config, n_layers=0)

        def play(subject):
            count = subject["minigpt_flops"]
            return count(config, batch, length) - count(empty, batch, length)

        told = {"": "the FLOPs of the blocks, beyond those of the MLP and the attention table"}
        return Case("FLOPs of the blocks", play, of="minigpt_flops", places=told)

    for itemsize in (4, 2, 8):
        sizes = (*(draw.integer(2, 700) for _ in range(3)), itemsize)
        yield layer_case("FLOPs of a linear layer", "flops", sizes)
        yield batch_case(sizes)
        yield layer_case("bytes of a linear layer", "bytes", sizes)
    for least in (2, 3):  # a batch of 2 looks like the factor 2 of a multiplication and an addition
        heads = draw.integer(least, 6)
        config = MiniGPTConfig(
            vocab_size=draw.integer(100, 900),
            d_model=heads * draw.integer(5, 20),
            n_heads=heads,
            n_layers=draw.integer(3, 7),
            d_ff=draw.integer(100, 500),
            context=64,
        )
        batch, length = draw.integer(least, 9), draw.integer(10, 60)
        head, shown = replace(config, n_layers=0), "no blocks, the head alone"
        yield case("FLOPs of the LM head", head, batch, length, of="minigpt_flops", shown=shown)
        yield from share_cases(config, batch, length)
        yield blocks_case(config, batch, length)
    yield blocks_case(MiniGPTConfig(), 2, 32)
