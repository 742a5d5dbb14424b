"""Lab 08, exercise 12: A Llama of your own"""

import torch
from torch import nn

from hood.judge.checks.compare import Tolerance
from hood.judge.checks.exercise import ByHand, Case, Check
from hood.judge.checks.words import counted

load_llama = Check(
    "load_llama",
    parts={"the norm": 1, "a block": 1, "fewer keys": 1, "a folder": 1, "all kinds of folders": 1},
    reads="What a block looks like today",
    tolerance=Tolerance(1e-3, 1e-4, "float32 sums in another order, through several layers"),
    by_hand=ByHand(
        because="the exercise asks for a model of your own",
        forbid_names=frozenset({"transformers.*"}),
        allow_names=frozenset({"transformers.models.llama.modeling_llama.apply_rotary_pos_emb"}),
    ),
)

MAPS = "query", "key", "value", "output", "gate", "up", "down"


class _Norm(nn.Module):
    def __init__(self, width, eps):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, x):
        wide = x.double()
        return (self.weight * (wide / ((wide**2).mean(-1, keepdim=True) + self.eps) ** 0.5)).to(
            x.dtype
        )


def sizes(config):
    """D, the MLP's width, the numbers of heads for queries and for keys, and the width of a head."""
    heads = config["num_attention_heads"]
    width = config["hidden_size"]
    wide = config.get("head_dim", width // heads)
    return width, config["intermediate_size"], heads, config["num_key_value_heads"], wide


def shapes(config):
    """The shape of each tensor in a block."""
    width, hidden, heads, kv_heads, wide = sizes(config)
    outs = (heads * wide, kv_heads * wide, kv_heads * wide, width, hidden, hidden, width)
    ins = (width, width, width, heads * wide, width, width, hidden)
    found = {f"{name}.weight": (o, i) for name, o, i in zip(MAPS, outs, ins, strict=True)}
    return {**found, "norm_1.weight": (width,), "norm_2.weight": (width,)}


class _Block(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        for name, shape in shapes(config).items():
            kind = name.removesuffix(".weight")
            if kind in MAPS:
                self.add_module(kind, nn.Linear(*shape[::-1], bias=False))
            else:
                self.add_module(kind, _Norm(shape[0], config["rms_norm_eps"]))

    def turned(self, x, positions):
        """One head, (B, T, d), rotated."""
        half = x.shape[-1] // 2
        rope = self.config.get("rope_parameters") or self.config
        speeds = rope["rope_theta"] ** (-torch.arange(half, dtype=torch.float64) / half)
        turns = torch.exp(1j * positions[..., None] * speeds)
        pairs = torch.complex(x[..., :half].double(), x[..., half:].double()) * turns
        return torch.cat([pairs.real, pairs.imag], -1).to(x.dtype)

    def forward(self, x, positions):
        _, _, heads, kv_heads, wide = sizes(self.config)
        y, mixed = self.norm_1(x), []
        future = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        for head in range(heads):
            shared = head // (heads // kv_heads)
            query = self.turned(self.query(y).split(wide, -1)[head], positions)
            key = self.turned(self.key(y).split(wide, -1)[shared], positions)
            scores = (query @ key.mT / wide**0.5).masked_fill(future, -torch.inf)
            mixed.append(scores.softmax(-1) @ self.value(y).split(wide, -1)[shared])
        x = x + self.output(torch.cat(mixed, -1))
        y = self.norm_2(x)
        gate = self.gate(y)
        return x + self.down(gate * gate.sigmoid() * self.up(y))


class _Logits(nn.Module):
    """The library's model, which returns only logits."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, tokens):
        return self.model(tokens).logits


def _load(folder):
    from transformers import LlamaForCausalLM

    return _Logits(LlamaForCausalLM.from_pretrained(folder, dtype=torch.float32)).eval()


load_llama.reference({"RMSNorm": _Norm, "LlamaBlock": _Block, "load_llama": _load})


@load_llama.cases
def _(draw):
    norm, block, fewer, folder, kinds = load_llama.parts

    def normed(shape, dtype, eps, large=0.0):
        weight = draw.tensor(shape[-1:])
        x = draw.tensor(shape, dtype)
        if large:
            x = (x.sign() * large * (1 + x.abs() / 9)).to(dtype)

        def play(subject):
            came = subject.drive("transformer:llama_norm", weight, eps, x)["output"]
            if x.dtype.itemsize > 2:
                return {"output": came}
            # An answer is compared with its own numbers for the same x in float32.
            wide = subject.drive("transformer:llama_norm", weight.to(dtype), eps, x.float())[
                "output"
            ]
            tensors = isinstance(came, torch.Tensor) and isinstance(wide, torch.Tensor)
            fits = tensors and came.shape == wide.shape
            near = fits and bool(((came - wide).abs() <= 0.03 * wide.abs() + 1e-3).all())
            return {"dtype": str(came.dtype) if tensors else "", "near": near, "wide": wide}

        name = str(dtype).removeprefix("torch.")
        places = {
            "['output']": "the output of `RMSNorm`",
            "['dtype']": f"the dtype of the output of `RMSNorm` for x in {name}",
            "['near']": (
                f"The output of `RMSNorm` for x in {name} is far from its output for the same x in "
                "float32."
            ),
            "['wide']": "the output of `RMSNorm` for the same x in float32",
        }
        size = f", numbers near ±{large:g}" if large else ""
        shown = f"`RMSNorm`, x {tuple(shape)} in {name}{size}, eps {eps:g}"
        return Case(norm, play, of="RMSNorm", shown=shown, places=places)

    def eps():
        return draw.integer(1, 9) / 10

    yield normed((draw.integer(2, 4), 3), torch.float32, eps())
    yield normed((2, 3, 4), torch.float64, eps())
    yield normed((2, 5), torch.float32, 1e-6, large=1e-3)
    yield normed((3, 1), torch.float32, eps())
    yield normed((2, 6), torch.float16, 1e-6, large=300.0)
    yield normed((2, 600), torch.bfloat16, eps(), large=1.0)

    def config(heads, kv_heads, wide, width=None, **more):
        found = {"hidden_size": width or heads * wide, "intermediate_size": draw.integer(5, 9)}
        found |= {"num_attention_heads": heads, "num_key_value_heads": kv_heads, "head_dim": wide}
        return found | {"rms_norm_eps": 1e-6, **more}

    def asked(part, some, base, length, dtype=torch.float32, old=False, falling=False):
        rope = {"rope_theta": base}
        given = some | {"num_hidden_layers": 1, "vocab_size": 9, "hidden_act": "silu"}
        given |= {"attention_bias": False, "mlp_bias": False, "tie_word_embeddings": False}
        given |= {"max_position_embeddings": 2048}
        given |= rope if old else {"rope_parameters": {"rope_type": "default", **rope}}
        if old:
            del given["head_dim"]
        weights = {
            name: draw.tensor(shape) / shape[-1] ** 0.5 for name, shape in shapes(given).items()
        }
        x = draw.tensor((2, length, given["hidden_size"]), dtype)
        steps = [[draw.integer(1, 5) for _ in range(length)] for _ in range(2)]
        positions = torch.tensor(steps).cumsum(1)
        positions = positions.flip(1) if falling else positions

        def play(subject):
            return subject.drive("transformer:llama_block", given, weights, x, positions)

        _, _, heads, kv_heads, wide = sizes(given)
        shown = (
            f"`LlamaBlock`, x {tuple(x.shape)} in {str(dtype).removeprefix('torch.')}, "
            f"{counted(heads, 'head')} of {wide} channels, {kv_heads} for keys and values, "
            f"{'an older config, ' if old else ''}base {base:g}"
            f"{', positions that become smaller' if falling else ''}"
        )
        places = {
            "['output']": "the output of `LlamaBlock`",
            "['config']": "`LlamaBlock` changes the config that it gets.",
        }
        return Case(part, play, of="LlamaBlock", shown=shown, places=places)

    usual = 10000.0
    yield asked(block, config(2, 2, 4), usual, draw.integer(4, 6), falling=True)
    yield asked(block, config(3, 3, 2), usual, draw.integer(3, 5), torch.float64)
    yield asked(block, config(1, 1, 6), usual, draw.integer(65, 70))
    yield asked(fewer, config(4, 2, 2), usual, 4)
    yield asked(fewer, config(6, draw.choice((2, 3)), 2), usual, draw.integer(3, 5), torch.float64)
    yield asked(fewer, config(3, 1, 4), usual, 5)

    def loaded(part, shown, some, layers=1, batch=2, length=5, **more):
        says = some | {"num_hidden_layers": layers, "vocab_size": draw.integer(7, 13), **more}
        tokens = torch.tensor([[draw.integer(0, 6) for _ in range(length)] for _ in range(batch)])
        seed = draw.integer(0, 10**6)

        def play(subject):
            return subject.drive("transformer:llama_logits", says, seed, tokens)

        places = {
            "['logits']": "the logits",
            "['training']": "The module is in training mode.",
            "['numbers']": "the number of parameter values in the module",
        }
        return Case(part, play, of="load_llama", shown=f"a folder with {shown}", places=places)

    yield loaded(folder, "1 layer", config(2, 2, 4))
    yield loaded(folder, "3 layers", config(2, 2, 2), layers=3, batch=1, length=draw.integer(6, 9))
    yield loaded(folder, "11 layers", config(1, 1, 2), layers=11, batch=1, length=3)
    yield loaded(kinds, "fewer keys and values", config(4, 2, 2), layers=2)
    other = 10.0 * draw.integer(2, 9)
    yield loaded(kinds, f"base {other:g}", config(2, 2, 4), rope_theta=other, length=9)
    shown = f"an older config, base {other:g}"
    yield loaded(kinds, shown, config(2, 2, 4), rope_theta=other, old=True, length=9)
    yield loaded(kinds, "heads of 6 channels and D of 8", config(2, 1, 6, width=8))
    yield loaded(kinds, "a tied head", config(2, 2, 2), tie_word_embeddings=True)
    shown = "a tied head, and a file in float16"
    yield loaded(kinds, shown, config(2, 1, 2), tie_word_embeddings=True, stored="float16")
    yield loaded(kinds, "a large eps", config(2, 2, 2), rms_norm_eps=eps())
    yield loaded(kinds, "a file in bfloat16", config(2, 1, 2), stored="bfloat16")
    yield asked(kinds, config(4, 2, 2), other, 5, old=True)
    yield asked(kinds, config(2, 1, 6, width=8), other, 5)
