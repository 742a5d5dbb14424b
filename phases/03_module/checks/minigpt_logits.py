"""Lab 03, exercise 11: MiniGPT, ported"""

import math
from functools import cache

import torch
from torch import nn

from utils.checks.compare import Tolerance
from utils.checks.exercise import ByHand, Case, Check, case, edited, not_run
from utils.instruments.records import NoRecord
from utils.minigpt import MiniGPTConfig, load_config, load_weights, numpy_forward
from utils.minigpt.parity import TOLERANCES, GpuRun, agree, gpu_run

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
    tolerance=Tolerance(1e-5, 1e-5, "the same sums in another order: logits reach 24"),
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
    """Weights of some sizes, large enough that no part of the model is lost in rounding."""
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

    # a small model, whose scores and sums can be made to need what a dtype has or lacks
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
    yield case(part, weights, words(1, 130, config), config, shown="one head, three layers, T = 130")
    weights = random_weights(draw, config)
    yield case(part, weights, words(2, 1, config), config, shown="one head, T = 1")
    for table in ("token_embedding.weight", "position_embedding.weight"):
        weights = {**weights, table: weights[table] / 100}  # so small that the norms' ε shows
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
        """Weights with which a word plus a position is the word: where `level` has few digits."""
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
        return not bool((exactly(weights) - logits).abs().max() <= 0.02)  # NaN is lost as well

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
        "['logits']": "in float16 the logits are further from the float32 answer than they may be.",
        "['really in float16']": "the logits are those of float32: the model did not run in half.",
        "['sums in float16']": "a sum that float16 rounds off came out as in float32: numbers were "
        "rounded to half, and the model did not run in it.",
    }
    yield Case("half precision", in_half, places=places)

    shown = "float64, scores of thousands on both sides of 0"
    places = {"[0]": "the logits", "[1]": "the logits"}
    yield Case("half precision", far_from_0, shown=shown, places=places)

    def in_double(subject):
        return absorbs(subject, 2.0**24, torch.float64)

    places = {
        "": "a sum that needs float64 came out otherwise: the model did not run in float64."
    }
    yield Case("half precision", in_double, places=places)
    try:
        gpu = gpu_run()
    except NoRecord as missing:
        yield not_run("float32 as on a GPU", NEEDS_GPU.format(missing))
        yield not_run("float16 as on a GPU", NEEDS_GPU.format(missing))
        return
    yield on_a_gpu("float32 as on a GPU", gpu, torch.float32)
    yield on_a_gpu("float16 as on a GPU", gpu, torch.float16)


def measured(logits, want, dtype):
    """What is wanted, where the logits agree with it; else the logits. In units of the tolerance.

    A mere yes or no would be the same for every wrong model, and so tell one from none.
    """
    allowed = TOLERANCES[dtype] * want.double().abs().max()
    found = want if agree(logits, want, dtype) else logits
    return found.double() * (1e-5 / allowed)


NEEDS_GPU = "needs a GPU or a recorded GPU run, and there is {}"


def on_a_gpu(part: str, gpu: GpuRun, dtype: torch.dtype) -> Case:
    """The learner's logits beside a GPU's: run there, or here and held against a record."""

    def play(subject):
        weights, config = trained()
        logits = subject(weights, torch.from_numpy(gpu.tokens), config, gpu.device, dtype)
        return {
            "shape": tuple(logits.shape),
            "dtype": logits.dtype,
            "device": logits.device.type,
            "logits": measured(logits, torch.from_numpy(gpu.logits[dtype]), dtype),
        }

    places = {
        "['dtype']": "the logits",
        "['device']": "the logits are not on the CPU.",
        "['logits']": "the logits are further from the GPU's than they may be.",
    }
    return Case(part, play, places=places, against=gpu.words)


def port_error(*edits, name, explanation, keeps=()):
    """A port with one mistake; `keeps` names the parts that it gets right all the same."""
    minigpt_logits.misconception(
        name, explanation, earns={part: minigpt_logits.parts[part] for part in keeps}
    )(edited(_minigpt_logits, *edits))


port_error(
    ("scores.masked_fill(future, -math.inf)", "scores"),
    name="no mask", explanation="every position looks at those that come after it.",
)  # fmt: skip
port_error(
    ("device=device).triu(1)", "device=device).triu(2)"),
    name="masked one too late", explanation="each position also looks at the one right after it.",
)  # fmt: skip
port_error(
    ("scores.masked_fill(future, -math.inf)", "scores.masked_fill(future, 0.0)"),
    name="masked with 0",
    explanation="a score of 0 is not a probability of 0: the future still gets its share.",
)
port_error(
    ("torch.softmax(scores.masked_fill(future, -math.inf), -1)",
     "torch.nan_to_num(torch.softmax(scores.masked_fill(future, -math.inf), -2))"),
    name="softmax over the wrong dimension",
    explanation="the attention weights sum to 1 over the queries; they should over the keys.",
)  # fmt: skip
port_error(
    ("/ math.sqrt(size)", "/ math.sqrt(config.d_model)"),
    name="scaled by the model's width",
    explanation="scores were divided by √d_model; each head has its own, smaller, width.",
)
port_error(
    ("/ math.sqrt(size)", ""),
    name="scores not scaled", explanation="the scores were not divided by √(head width).",
)  # fmt: skip
port_error(
    ("linear(name, x).view(batch, length, config.n_heads, size).transpose(1, 2)",
     "linear(name, x).view(batch, config.n_heads, length, size)"),
    ("(pattern @ v).transpose(1, 2).reshape", "(pattern @ v).reshape"),
    name="heads cut the wrong way",
    explanation="the tensor was viewed as heads without a transpose: its shape is right, and each "
    "head got parts of several positions.",
)  # fmt: skip
port_error(
    ("(pattern @ v).transpose(1, 2).reshape", "(pattern @ v).reshape"),
    name="heads merged without a transpose",
    explanation="heads were merged in the order in which they lie, not side by side.",
)
port_error(
    ("linear(name, x).view(batch, length, config.n_heads, size).transpose(1, 2)",
     "linear(name, x).view(batch, config.n_heads, length, size)"),
    name="heads cut without a transpose",
    explanation="the tensor was viewed as heads without a transpose: its shape is right, each head "
    "got parts of several positions, and the merge does not undo it.",
)  # fmt: skip
port_error(
    ("linear(name, x).view(batch, length, config.n_heads, size).transpose(1, 2)",
     "linear(name, x).view(batch, length, size, config.n_heads).permute(0, 3, 1, 2)"),
    name="heads interleaved",
    explanation="the width was viewed as (head width, heads), so that a head got every n-th channel; "
    "its channels should lie side by side.",
)  # fmt: skip
port_error(
    ("for part in ('query', 'key', 'value'))", "for part in ('query', 'value', 'key'))"),
    name="keys and values exchanged",
    explanation="queries were compared with values, and keys were mixed.",
)
port_error(
    ("for part in ('query', 'key', 'value'))", "for part in ('key', 'query', 'value'))"),
    name="queries and keys exchanged",
    explanation="each position's key was compared with the queries of the others.",
)
port_error(
    ("approximate='tanh'", "approximate='none'"),
    name="the other GELU",
    explanation="the exact GELU, with an erf, was used; the weights were trained with the tanh.",
    keeps=("half precision", "float16 as on a GPU"),
)
port_error(
    ("nn.functional.gelu(linear(f'{name}.up', x), approximate='tanh')",
     "torch.relu(linear(f'{name}.up', x))"),
    name="relu for GELU", explanation="the MLP bends with relu.",
)  # fmt: skip
port_error(
    ("eps=1e-05", "eps=0.01"),
    name="another eps", explanation="the norms use another ε than 1e-5.",
)  # fmt: skip
port_error(
    ("eps=1e-05", "eps=0.001"),
    name="Keras's eps", explanation="the norms use an ε of 1e-3, as they do in Keras.",
)  # fmt: skip
for eps, whose in {"1e-06": "JAX's", "1e-12": "BERT's"}.items():
    port_error(
        ("eps=1e-05", f"eps={eps}"),
        name=f"{whose} eps",
        explanation=f"the norms use an ε of {eps}; these weights were trained with 1e-5.",
        keeps=("half precision", "float16 as on a GPU"),
    )
port_error(
    ("x = x + attention(f'blocks.{k}.attention', norm(f'blocks.{k}.norm_1', x))",
     "x = norm(f'blocks.{k}.norm_1', x + attention(f'blocks.{k}.attention', x))"),
    ("x = x + mlp(f'blocks.{k}.mlp', norm(f'blocks.{k}.norm_2', x))",
     "x = norm(f'blocks.{k}.norm_2', x + mlp(f'blocks.{k}.mlp', x))"),
    name="norms after the sums",
    explanation="each norm comes after its sum, as in the first transformer; here they come before "
    "each part.",
)  # fmt: skip
port_error(
    (" + w['position_embedding.weight'][:length]", ""),
    name="positions forgotten", explanation=
    "the logits are those of the words' rows without those of their positions.",
)  # fmt: skip
port_error(
    ("w['position_embedding.weight'][:length]", "w['position_embedding.weight'][1:length + 1]"),
    name="positions from 1",
    explanation="the first word got the second position's row, and so on: positions begin at 0.",
)
port_error(
    ("x @ w[f'{name}.weight'].T",
     "x @ (w[f'{name}.weight'] if len(w[f'{name}.weight']) == x.shape[-1] else "
     "w[f'{name}.weight'].T)"),
    name="square weights not transposed",
    explanation="a weight is (out, in). Where both are equal, its transpose fits as well, and it is "
    "another matrix.",
)  # fmt: skip
port_error(
    ("x = x + attention(", "x = attention("),
    name="a sum left out", explanation="attention replaced the stream; it should be added to it.",
)  # fmt: skip
port_error(
    ("x = x + mlp(", "x = mlp("),
    name="the MLP's sum left out",
    explanation="the MLP replaced the stream; it should be added to it.",
)
port_error(
    ("x = x + attention(f'blocks.{k}.attention', norm(f'blocks.{k}.norm_1', x))",
     "x = norm(f'blocks.{k}.norm_1', x + attention(f'blocks.{k}.attention', x))"),
    name="one norm after its sum",
    explanation="`norm_1` comes after the sum of attention and stream; it comes before attention.",
)  # fmt: skip
port_error(
    ("norm(f'blocks.{k}.norm_2', x)", "norm(f'blocks.{k}.norm_1', x)"),
    name="one norm for both", explanation="the MLP reads the stream through the norm of attention.",
)  # fmt: skip
for called, code in {
    "final_norm": "norm('final_norm', x)",
    "norm_1": "norm(f'blocks.{k}.norm_1', x)",
    "norm_2": "norm(f'blocks.{k}.norm_2', x)",
}.items():
    port_error(
        (code, "nn.functional.layer_norm(x, (config.d_model,), eps=1e-05)"),
        name=f"{called} with ones and zeros",
        explanation=f"`{called}` works as with ones and zeros: the weight and the bias that it was "
        "given never got there. With `strict=False` a name that doesn't fit is passed over in silence.",
    )
port_error(
    ("x = x + attention(f'blocks.{k}.attention', norm(f'blocks.{k}.norm_1', x))",
     "x = x + attention(f'blocks.{k}.attention', norm(f'blocks.{k}.norm_2', x))"),
    ("x = x + mlp(f'blocks.{k}.mlp', norm(f'blocks.{k}.norm_2', x))",
     "x = x + mlp(f'blocks.{k}.mlp', norm(f'blocks.{k}.norm_1', x))"),
    name="norms exchanged",
    explanation="attention reads the stream through `norm_2`, and the MLP through `norm_1`.",
)  # fmt: skip
port_error(
    ("x = x + attention(", "before = x\n        x = x + attention("),
    ("norm(f'blocks.{k}.norm_2', x)", "norm(f'blocks.{k}.norm_2', before)"),
    name="the MLP beside attention",
    explanation="the MLP reads the stream as it was before attention was added to it.",
)
port_error(
    ("linear('lm_head', norm('final_norm', x))",
     "(norm('final_norm', x) @ w['token_embedding.weight'].T + w['lm_head.bias'])"),
    name="the embedding for a head",
    explanation="the head's product is with the word embedding; here the head has a weight of its own.",
)  # fmt: skip
port_error(
    ("w['position_embedding.weight'][:length]", "w['position_embedding.weight'][-length:]"),
    name="the last positions",
    explanation="the words got the last rows of the position embedding; positions begin at 0.",
    keeps=("float32 as on a GPU", "float16 as on a GPU"),
)
port_error(
    ("norm('final_norm', x)", "x"),
    name="no final norm", explanation="the head reads the stream as it is, without the last norm.",
)  # fmt: skip
port_error(
    ("scores.masked_fill(future, -math.inf)", "scores.masked_fill(future, -1000000000.0)"),
    name="a mask that overflows",
    explanation="a number that float16 does not have was to be stored in it, such as a mask of -1e9.",
    keeps=("any sizes", "the trained weights", "float32 as on a GPU"),
)
port_error(
    (".to(device, dtype)", ".to(device)"),
    name="the dtype ignored",
    explanation="the logits are those of float32, whatever was asked for.",
    keeps=("any sizes", "the trained weights", "float32 as on a GPU", "float16 as on a GPU"),
)
port_error(
    (".float().cpu()", ".cpu()"),
    name="logits left in half",
    explanation="the logits come back in the dtype of the model; float32 was asked for.",
    keeps=("any sizes", "the trained weights", "float32 as on a GPU"),
)


@minigpt_logits.alternate("modules, and one matrix for queries, keys and values")
def _(weights, tokens, config, device="cpu", dtype=torch.float32):
    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.joint = nn.Linear(config.d_model, 3 * config.d_model)
            self.output = nn.Linear(config.d_model, config.d_model)

        def forward(self, x):
            parts = self.joint(x).chunk(3, dim=-1)
            q, k, v = (t.unflatten(-1, (config.n_heads, -1)).transpose(1, 2) for t in parts)
            mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            return self.output(mixed.transpose(1, 2).flatten(2))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            d = config.d_model
            self.token_embedding = nn.Embedding(config.vocab_size, d)
            self.position_embedding = nn.Embedding(config.context, d)
            self.blocks = nn.ModuleList()
            for _ in range(config.n_layers):
                block = nn.ModuleDict({"norm_1": nn.LayerNorm(d), "norm_2": nn.LayerNorm(d)})
                block["attention"] = Attention()
                block["mlp"] = nn.ModuleDict(
                    {"up": nn.Linear(d, config.d_ff), "down": nn.Linear(config.d_ff, d)}
                )
                self.blocks.append(block)
            self.final_norm = nn.LayerNorm(d)
            self.lm_head = nn.Linear(d, config.vocab_size)

        def forward(self, tokens):
            x = self.token_embedding(tokens)
            x = x + self.position_embedding.weight[: tokens.shape[1]]
            for block in self.blocks:
                x = x + block["attention"](block["norm_1"](x))
                up = block["mlp"]["up"](block["norm_2"](x))
                x = x + block["mlp"]["down"](nn.functional.gelu(up, approximate="tanh"))
            return self.lm_head(self.final_norm(x))

    state = {name: torch.tensor(array) for name, array in weights.items()}
    for k in range(config.n_layers):
        for kind in ("weight", "bias"):
            parts = [f"blocks.{k}.attention.{p}.{kind}" for p in ("query", "key", "value")]
            state[f"blocks.{k}.attention.joint.{kind}"] = torch.cat([state.pop(p) for p in parts])
    model = Model()
    model.load_state_dict(state)
    with torch.no_grad():
        return model.to(device, dtype)(tokens.to(device)).to("cpu", torch.float32)


minigpt_logits.equivalent(
    ("'query', 'key', 'value', 'output'", "'key', 'query', 'value', 'output'"),
    ("'query', 'key', 'value', 'output'", "'query', 'value', 'key', 'output'"),
    ("'query', 'key', 'value', 'output'", "'query', 'key', 'output', 'value'"),
    ("('weight', 'bias')", "('bias', 'weight')"),
    because="modules and weights are found by their names",
)
minigpt_logits.equivalent(
    (", device=tokens.device", ""),
    ("port(tokens.to(device))", "port(tokens)"),
    (".float().cpu()", ".float()"),
    ("(tokens.to(device))", "(tokens)"),
    because="on a CPU everything is there already; a GPU would refuse, or be told of",
)
minigpt_logits.equivalent(
    (".transpose(1, 2)", ".transpose(2, 1)"), because="they are exchanged either way"
)
minigpt_logits.equivalent(
    ("self.lm_head(self.final_norm(x))", "self.lm_head(self.final_norm(x)).float()"),
    (".float().cpu()", ".float().cpu().float()"),
    (".to('cpu', torch.float32)", ".to('cpu', torch.float32).float()"),
    ("dtype=torch.float32", "dtype=torch.float64"),
    because="the logits go out as float32 in any case, and float64 is as near at least",
)
minigpt_logits.equivalent(
    (".eval()", ""),
    ("with torch.inference_mode():", "if True:"),
    ("with torch.no_grad():", "if True:"),
    because="no layer has modes here, and nobody asks whether the logits have a graph",
)
