"""Lab 03, exercise 12: MiniGPT, ported"""

import math
from functools import cache

import numpy as np
import torch
from torch import nn

from hood.judge.checks.compare import Tolerance
from hood.judge.checks.exercise import ByHand, Case, Check, case, not_run
from utils.instruments.parity import TOLERANCES, GpuRun, agree, gpu_run
from utils.instruments.records import NoRecord
from utils.minigpt import MiniGPTConfig, load_config, load_weights, numpy_forward

minigpt_logits = Check(
    "minigpt_logits",
    parts={
        "any sizes": 1,
        "the trained weights": 1,
        "half precision": 1,
        "float32 as on a GPU": 1,
        "float16 as on a GPU": 1,
    },
    reads="A port, function by function",
    reads_by_part={
        "half precision": "Why a GPU differs a little",
        "float32 as on a GPU": "Why a GPU differs a little",
        "float16 as on a GPU": "Why a GPU differs a little",
    },
    tolerance=Tolerance(1e-5, 1e-5, "the same sums in another order, for logits of up to 24"),
    by_hand=ByHand(
        "the exercise is to port the model, not to import it",
        forbid_names=frozenset({"MiniGPT", "load_minigpt", "numpy_forward", "utils.minigpt"}),
        allow_names=frozenset(
            f"utils.minigpt.{name}"
            for name in ("MiniGPTConfig", "load_config", "load_weights", "load_tokenizer")
        ),
    ),
)


@minigpt_logits.reference
def _minigpt_logits(weights, tokens, config, device="cpu", dtype=torch.float32):
    w = {name: torch.from_numpy(array).to(device, dtype) for name, array in weights.items()}
    tokens = tokens.to(device)
    batch, length = tokens.shape
    size = config.d_model // config.n_heads

    def linear(name, x):
        return x @ w[f"{name}.weight"].T + w[f"{name}.bias"]

    def norm(name, x):
        scale, shift = w[f"{name}.weight"], w[f"{name}.bias"]
        return nn.functional.layer_norm(x, (config.d_model,), scale, shift, eps=1e-05)

    def heads(name, x):
        return linear(name, x).view(batch, length, config.n_heads, size).transpose(1, 2)

    def attention(name, x):
        q, k, v = (heads(f"{name}.{part}", x) for part in ("query", "key", "value"))
        scores = q @ k.transpose(-1, -2) / math.sqrt(size)
        future = torch.ones(length, length, dtype=torch.bool, device=device).triu(1)
        pattern = torch.softmax(scores.masked_fill(future, -math.inf), -1)
        mixed = (pattern @ v).transpose(1, 2).reshape(batch, length, config.d_model)
        return linear(f"{name}.output", mixed)

    def mlp(name, x):
        wide = nn.functional.gelu(linear(f"{name}.up", x), approximate="tanh")
        return linear(f"{name}.down", wide)

    x = w["token_embedding.weight"][tokens] + w["position_embedding.weight"][:length]
    for k in range(config.n_layers):
        x = x + attention(f"blocks.{k}.attention", norm(f"blocks.{k}.norm_1", x))
        x = x + mlp(f"blocks.{k}.mlp", norm(f"blocks.{k}.norm_2", x))
    return linear("lm_head", norm("final_norm", x)).float().cpu()


@cache
def trained():
    """MiniGPT's weights and sizes."""
    return load_weights(), load_config()


def random_weights(draw, config):
    """Random weights, large enough that no part of the model is lost in rounding."""
    from utils.minigpt import parameter_shapes

    found = {}
    for name, shape in parameter_shapes(config).items():
        scale = 0.6 / math.sqrt(shape[-1]) if len(shape) == 2 else 0.3
        found[name] = (scale * draw.tensor(shape)).numpy()
    return found


@minigpt_logits.cases
def _(draw):
    def words(batch, length, config):
        shape = (batch, length)
        return draw.tensor(shape, torch.int64).abs() * 7919 % config.vocab_size

    # a small model: some weights give scores and sums that need more digits or range than a dtype
    # has
    tiny = MiniGPTConfig(9, 8, 2, 1, 12, 6)
    plain = random_weights(draw, tiny)
    six = torch.arange(6)[None]
    sides = torch.tensor([1.0] * 4 + [-1.0] * 4)  # of the first head, of the second
    steep = {
        **plain,
        "blocks.0.attention.query.bias": torch.ones(8).numpy(),
        "blocks.0.attention.key.bias": (1500 * sides).numpy(),
    }

    def exactly(weights):
        double = {name: array.astype("float64") for name, array in weights.items()}
        return torch.from_numpy(numpy_forward.forward(double, six.numpy(), tiny).logits)

    def far_from_0(subject):
        logits = subject(steep, six, tiny, "cpu", torch.float64)
        return logits.dtype, measured(logits, exactly(steep), torch.float16)

    part = "any sizes"

    ff, vocabulary, context = draw.sample(range(9, 21), 3)
    config = MiniGPTConfig(vocabulary, 18, 3, 2, ff, context)
    weights = random_weights(draw, config)
    for length in (context, draw.integer(2, context - 1)):
        tokens = words(length, 3, config).T
        shown = "T as long as the context" if length == context else "T below the context"
        yield case(part, weights, tokens, config, shown=f"a width of 18, 3 heads, {shown}")
    # more positions than MiniGPT has, one head, three layers; and a single word
    config = MiniGPTConfig(draw.integer(9, 20), 8, 1, 3, 12, 130)
    weights = random_weights(draw, config)
    yield case(
        part, weights, words(1, 130, config), config, shown="one head, three layers, T = 130"
    )
    weights = random_weights(draw, config)
    yield case(part, weights, words(2, 1, config), config, shown="one head, T = 1")
    for table in ("token_embedding.weight", "position_embedding.weight"):
        weights = {**weights, table: weights[table] / 100}  # so small that the norms' ε matters
    tokens = words(2, draw.integer(2, config.context - 1), config)
    yield case(part, weights, tokens, config, shown="small embeddings")
    weights, config = trained()
    tokens = words(2, draw.integer(5, 16), config)
    yield case("the trained weights", weights, tokens, config)
    yield case("the trained weights", weights, tokens[:1, :4], config)
    others = {**weights, "lm_head.bias": -weights["lm_head.bias"]}
    yield case(part, others, tokens[:1, :4], config, shown="trained sizes, and other weights")

    exact = torch.from_numpy(numpy_forward.forward(weights, tokens.numpy(), config).logits)

    def absorbing(level):
        """Weights for which a dtype with few digits rounds a word plus a position to the word.
        """
        words, positions = "token_embedding.weight", "position_embedding.weight"
        return {
            **plain,
            words: torch.full((9, 8), level).numpy(),
            positions: torch.from_numpy(plain[positions]).tanh().mul(0.2).numpy(),
        }

    def absorbs(subject, level, dtype):
        """Whether the sum of a word and a position loses the position."""
        weights = absorbing(level)
        logits = subject(weights, six, tiny, "cpu", dtype)
        return not bool((exactly(weights) - logits).abs().max() <= 0.02)  # NaN counts as lost, too

    def in_half(subject):
        logits = subject(weights, tokens, config, "cpu", torch.float16)
        return {
            "shape": tuple(logits.shape),
            "dtype": logits.dtype,
            "logits": measured(logits, exact, torch.float16),
            "really in float16": bool((logits - exact).abs().max() > 1e-3),
            "sums in float16": absorbs(subject, 2.0**11, torch.float16),
        }

    places = {
        "['dtype']": "the logits",
        "['logits']": "in float16 the logits are further from the float32 answer than allowed.",
        "['really in float16']": "the logits are those of float32: the model did not run in float16.",
        "['sums in float16']": "a sum has digits that float16 can't keep: the numbers were "
        "rounded to float16, but the model did not run in float16.",
    }
    yield Case("half precision", in_half, places=places)

    shown = "float64, scores of thousands on both sides of 0"
    places = {"[0]": "the logits", "[1]": "the logits"}
    yield Case("half precision", far_from_0, shown=shown, places=places)

    def in_double(subject):
        return absorbs(subject, 2.0**24, torch.float64)

    places = {"": "a sum that needs float64 is wrong: the model did not run in float64."}
    yield Case("half precision", in_double, places=places)
    try:
        gpu = gpu_run()
    except NoRecord as missing:
        yield not_run("float32 as on a GPU", NEEDS_GPU.format(missing))
        yield not_run("float16 as on a GPU", NEEDS_GPU.format(missing))
        return
    # Words get other numbers in each run, so that no answer is right in two runs.
    names = torch.tensor(draw.sample(range(config.vocab_size), config.vocab_size))
    yield on_a_gpu("float32 as on a GPU", gpu, torch.float32, names)
    yield on_a_gpu("float16 as on a GPU", gpu, torch.float16, names)


def measured(logits, want, dtype):
    """Return `want` if the logits agree with `want`, and otherwise the logits, in units of the
    tolerance.

    A boolean would be the same for all wrong models, so wrong models could not be told apart.
    """
    allowed = TOLERANCES[dtype] * want.double().abs().max()
    found = want if agree(logits, want, dtype) else logits
    return found.double() * (1e-5 / allowed)


NEEDS_GPU = "needs a GPU or a recorded GPU run, and there is {}"


def on_a_gpu(part: str, gpu: GpuRun, dtype: torch.dtype, names: torch.Tensor) -> Case:
    """Compare the learner's logits with a GPU's: in a run on a GPU, or here with a recorded run.

    names: (V,) int64; word i is word ``names[i]`` of the tested model.
    """

    def play(subject):
        weights, config = trained()
        renamed = dict(weights)
        for name in ("token_embedding.weight", "lm_head.weight", "lm_head.bias"):
            renamed[name] = np.empty_like(weights[name])
            renamed[name][names.numpy()] = weights[name]
        tokens = names[torch.from_numpy(gpu.tokens)]
        logits = subject(renamed, tokens, config, gpu.device, dtype)
        return {
            "shape": tuple(logits.shape),
            "dtype": logits.dtype,
            "device": logits.device.type,
            "logits": measured(logits[..., names], torch.from_numpy(gpu.logits[dtype]), dtype),
        }

    places = {
        "['dtype']": "the logits",
        "['device']": "the logits are not on the CPU.",
        "['logits']": "the logits are further from the GPU's than allowed.",
    }
    return Case(part, play, places=places, against=gpu.words)
