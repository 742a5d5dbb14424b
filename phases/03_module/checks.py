"""What the hidden cells of lab 03 check.

Classes are made with random sizes, given random weights through `load_state_dict`, and called; the
references are torch's own layers wherever torch has them. A long solution that goes wrong in one
place is written as an edit of the right one, so that what differs is all there is to read.
"""

import math
from functools import cache

import torch
from torch import nn

from utils.checks import ByHand, Case, Check, case, edited, not_run
from utils.compare import Tolerance
from utils.minigpt import MiniGPTConfig, load_config, load_weights, numpy_forward, parameter_count
from utils.parity import GpuRun, agree, gpu_run
from utils.plans import assemble, drive
from utils.records import NoRecord

LAYOUTS = ("contiguous", "transposed", "sliced")
SUMS = Tolerance(1e-4, 1e-5, "sums of a few products, each in an order of its own")


def shapes_of(made):
    """Name -> (shape, dtype) of what a module saves."""
    return {n: (tuple(t.shape), t.dtype) for n, t in made.call("state_dict").items()}


def in_eval(made):
    """The handle, in eval mode. (`eval()` returns the module itself, which can't come here.)"""
    made.call("__setattr__", "training", False)
    return made


# ------------------------------------------------------------------------------ count_parameters
count_parameters = Check(
    "count_parameters",
    parts={"an MLP": 1, "MiniGPT": 1, "tied weights": 1},
    reads="Layers are shapes",
    by_hand=ByHand(
        "the exercise is to count before there is a model",
        forbid_names=frozenset(
            {"parameter_count", "parameter_shapes", "numel", "parameters", "load_weights"}
        ),
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
    for depth in (2, 3, 5):
        widths = [draw.integer(2, 900) for _ in range(depth)]
        yield case("an MLP", widths, of="mlp_parameters")
        yield case("an MLP", widths, bias=False, of="mlp_parameters")
    yield case("MiniGPT", MiniGPTConfig(), of="minigpt_parameters")
    for _ in range(3):
        heads, layers = draw.integer(1, 4), draw.integer(2, 6)
        words, ff, context = draw.sample(range(20, 400), 3)
        config = MiniGPTConfig(words, 6 * heads, heads, layers, ff, context)
        yield case("MiniGPT", config, of="minigpt_parameters")
        yield case("tied weights", config, tied=True, of="minigpt_parameters")


@count_parameters.misconception(
    "biases forgotten", "only weights were counted; each output has a bias, too.", earns=0
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
    "tying took the whole head away; it is its weight that is shared.",
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
    "norms forgotten", "LayerNorm was counted as having nothing to learn.", earns=1
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


# ---------------------------------------------------------------------------------------- Linear
linear = Check(
    "Linear",
    parts={"what is registered": 1, "forward": 1, "fresh weights": 1},
    reads="One line of magic",
    tolerance=SUMS,
    by_hand=ByHand(
        "write the product and the sum yourself",
        forbid_ops=frozenset({"aten.addmm", "aten.linear"}),
    ),
)


@linear.reference
class _Linear(nn.Module):
    def __init__(self, in_features, out_features, bias=True):
        super().__init__()
        bound = 1 / math.sqrt(in_features)
        self.weight = nn.Parameter(torch.empty(out_features, in_features).uniform_(-bound, bound))
        bias = nn.Parameter(torch.empty(out_features).uniform_(-bound, bound)) if bias else None
        self.register_parameter("bias", bias)

    def forward(self, x):
        y = x @ self.weight.T
        return y if self.bias is None else y + self.bias


@linear.cases
def _(draw):
    def registered(*args):
        def play(subject):
            made = subject(*args)
            return shapes_of(made), made.get("weight").requires_grad

        return Case("what is registered", play)

    def forward(x, state, *args):
        def play(subject):
            made = subject(*args)
            made.call("load_state_dict", state)
            y = made.call("__call__", x)
            return y, y.requires_grad

        return Case("forward", play)

    def fresh(into, out):
        def play(subject):
            one, two = subject(into, out), subject(into, out)
            bound = 1 / math.sqrt(into)
            found = {}
            for name in ("weight", "bias"):
                values = one.get(name).detach().abs()
                found[name] = {
                    "in bounds": bool(values.max() <= bound * (1 + 1e-6)),
                    # of 200 uniform draws, the largest is above 0.9 and the mean near 0.5
                    "reaching them": bool(values.max() > 0.9 * bound),
                    "even": bool(0.35 * bound < values.mean() < 0.65 * bound),
                    "new each time": not torch.equal(one.get(name), two.get(name)),
                }
            return found

        return Case("fresh weights", play)

    for layout in LAYOUTS:
        n, t, i, o = draw.shape(4)
        weight, bias = draw.tensor((o, i)), draw.tensor((o,))
        yield registered(i, o)
        yield registered(i, o, False)
        yield forward(draw.tensor((n, i), layout=layout), {"weight": weight, "bias": bias}, i, o)
        yield forward(draw.tensor((n, t, i), layout=layout), {"weight": weight}, i, o, False)
        yield forward(draw.tensor((i,), layout=layout), {"weight": weight, "bias": bias}, i, o)
    yield fresh(draw.integer(20, 60), draw.integer(200, 300))


RAW = "its tensors are ordinary attributes, which no module knows of: nothing saves or trains them."

linear.misconception("raw tensors", RAW, earns=1)(
    edited(
        _Linear,
        ("nn.Parameter(torch.empty(out_features, in_features).uniform_(-bound, bound))",
         "torch.empty(out_features, in_features).uniform_(-bound, bound).requires_grad_()"),
        ("nn.Parameter(torch.empty(out_features).uniform_(-bound, bound)) if",
         "torch.empty(out_features).uniform_(-bound, bound).requires_grad_() if"),
        ("self.register_parameter('bias', bias)", "self.bias = bias"),
    )
)  # fmt: skip
linear.misconception(
    "weight stored as (in, out)",
    "the weight has its dimensions exchanged: no checkpoint of nn.Linear fits it.",
    earns=1,
)(
    edited(
        _Linear,
        ("torch.empty(out_features, in_features)", "torch.empty(in_features, out_features)"),
        ("self.weight.T", "self.weight"),
    )
)
linear.misconception(
    "weight.data in forward",
    "the forward reads the numbers past autograd, so that no gradient reaches the weight.",
    earns=2,
)(edited(_Linear, ("self.weight.T", "self.weight.data.T")))
linear.misconception(
    "the bias can't be left out", "there is a bias also where none was asked for.", earns=1
)(edited(_Linear, (" if bias else None", "")))
linear.misconception(
    "bounds from the outputs",
    "fresh weights lie within 1/√out; it is the number of summands, the inputs, that matters.",
    earns=2,
)(edited(_Linear, ("math.sqrt(in_features)", "math.sqrt(out_features)")))
linear.misconception(
    "fresh zeros", "all fresh weights are 0, and so are the gradients of a network of them.",
    earns=2,
)(
    edited(
        _Linear,
        ("torch.empty(out_features, in_features).uniform_(-bound, bound)",
         "torch.zeros(out_features, in_features)"),
        ("torch.empty(out_features).uniform_(-bound, bound)", "torch.zeros(out_features)"),
    )
)  # fmt: skip
linear.misconception(
    "normal weights", "fresh weights are normal with deviation 1, whatever the number of inputs.",
    earns=2,
)(
    edited(
        _Linear,
        ("torch.empty(out_features, in_features).uniform_(-bound, bound)",
         "torch.randn(out_features, in_features)"),
        ("torch.empty(out_features).uniform_(-bound, bound)", "torch.randn(out_features)"),
    )
)  # fmt: skip


@linear.alternate("einsum, and nn.init")
class _EinsumLinear(nn.Module):
    def __init__(self, in_features, out_features, bias=True):
        super().__init__()
        self.weight = nn.Parameter(torch.empty((out_features, in_features)))
        nn.init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        self.bias = None
        if bias:
            self.bias = nn.Parameter(torch.empty(out_features))
            nn.init.uniform_(self.bias, -(in_features**-0.5), in_features**-0.5)

    def forward(self, x):
        y = torch.einsum("...i,oi->...o", x, self.weight)
        if self.bias is not None:
            y = y + self.bias
        return y


# ------------------------------------------------------------------------------------- Embedding
embedding = Check(
    "Embedding",
    parts={"what is registered": 1, "look-up": 1, "refusals": 1},
    reads="Layers are shapes",
    by_hand=ByHand(
        "the exercise is to write the look-up", forbid_ops=frozenset({"aten.embedding"})
    ),
)


@embedding.reference
class _Embedding(nn.Module):
    def __init__(self, num_embeddings, embedding_dim):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(num_embeddings, embedding_dim))

    def forward(self, tokens):
        size = self.weight.shape[0]
        if (tokens < 0).any() or (tokens >= size).any():
            raise IndexError("no such token")
        return self.weight[tokens]


@embedding.cases
def _(draw):
    def registered(rows, width):
        def play(subject):
            made, other = subject(rows, width), subject(rows, width)
            weight = made.get("weight").detach()
            return {
                "saved": shapes_of(made),
                "trained": made.get("weight").requires_grad,
                # of more than 2,000 normal draws: the deviation lies within 0.9 and 1.1
                "deviation 1": bool(0.9 < weight.std() < 1.1),
                "mean 0": bool(weight.mean().abs() < 0.2),
                "beyond 2": bool((weight.abs() > 2).any()),
                "new each time": not torch.equal(weight, other.get("weight").detach()),
            }

        return Case("what is registered", play)

    def look_up(part, tokens, weight):
        def play(subject):
            made = subject(*weight.shape)
            made.call("load_state_dict", {"weight": weight})
            rows = made.call("__call__", tokens)
            return rows, rows.requires_grad

        return Case(part, play)

    yield registered(draw.integer(100, 150), draw.integer(24, 30))
    for rank in (0, 1, 2, 3):
        rows, width = draw.integer(8, 12), draw.integer(3, 7)
        weight = draw.tensor((rows, width))
        tokens = draw.tensor(draw.shape(rank), torch.int64).remainder(rows)
        yield look_up("look-up", tokens, weight)
        bad = tokens.clone().view(-1)
        bad[-1] = draw.choice((-1, -rows))
        yield look_up("refusals", bad.view(tokens.shape), weight)
        yield look_up("refusals", (bad.view(tokens.shape) * 0 + rows), weight)


NEGATIVE = "a token of -1 gave the table's last row: Python counts negative indices from the end."

embedding.misconception("negative tokens wrap", NEGATIVE, earns=2)(
    edited(_Embedding, ("(tokens < 0).any() or (tokens >= size).any()", "(tokens >= size).any()"))
)
embedding.misconception(
    "the nearest row instead",
    "a token outside of the table was answered with its first or last row.",
    earns=2,
)(
    edited(
        _Embedding,
        ("raise IndexError('no such token')", "tokens = tokens.clamp(0, size - 1)"),
    )
)
embedding.misconception("raw tensors", RAW, earns=0)(
    edited(
        _Embedding,
        ("nn.Parameter(torch.randn(num_embeddings, embedding_dim))",
         "torch.randn(num_embeddings, embedding_dim, requires_grad=True)"),
    )
)  # fmt: skip
embedding.misconception(
    "a buffer for a parameter", "the table is saved, and no optimizer will ever see it.", earns=1
)(
    edited(
        _Embedding,
        ("self.weight = nn.Parameter(torch.randn(num_embeddings, embedding_dim))",
         "self.register_buffer('weight', torch.randn(num_embeddings, embedding_dim))"),
    )
)  # fmt: skip
embedding.misconception(
    "uniform rows", "fresh rows are uniform between 0 and 1; they should be normal.", earns=2
)(edited(_Embedding, ("torch.randn", "torch.rand")))
embedding.misconception(
    "a table on its side", "the table holds a column for each word; its rows are the words.",
    earns=0,
)(
    edited(
        _Embedding,
        ("torch.randn(num_embeddings, embedding_dim)", "torch.randn(embedding_dim, num_embeddings)"),
        ("self.weight.shape[0]", "self.weight.shape[1]"),
        ("self.weight[tokens]", "self.weight.T[tokens]"),
    )
)  # fmt: skip


@embedding.alternate("a product with one-hot rows")
class _OneHotEmbedding(nn.Module):
    def __init__(self, num_embeddings, embedding_dim):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(num_embeddings, embedding_dim).normal_())

    def forward(self, tokens):
        one_hot = tokens[..., None] == torch.arange(len(self.weight))
        if not one_hot.any(-1).all():
            raise IndexError(tokens)
        return one_hot.float() @ self.weight


# ------------------------------------------------------------------------------------- LayerNorm
layer_norm = Check(
    "LayerNorm",
    parts={"normalised": 1, "scale and shift": 1, "small and large inputs": 1},
    reads="Layers are shapes",
    tolerance=Tolerance(1e-3, 3e-4, "a mean of 1,000 in float32 is known to 6e-5"),
    by_hand=ByHand(
        "the exercise is to write the norm", forbid_ops=frozenset({"aten.native_layer_norm"})
    ),
)


@layer_norm.reference
class _LayerNorm(nn.Module):
    def __init__(self, width, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width))

    def forward(self, x):
        centred = x - x.mean(-1, keepdim=True)
        variance = centred.square().mean(-1, keepdim=True)
        return centred / torch.sqrt(variance + self.eps) * self.weight + self.bias


@layer_norm.cases
def _(draw):
    def fresh(part, x, **eps):
        return Case(part, lambda subject: subject(x.shape[-1], **eps).call("__call__", x))

    def loaded(x, weight, bias):
        def play(subject):
            made = subject(x.shape[-1])
            made.call("load_state_dict", {"weight": weight, "bias": bias})
            y = made.call("__call__", x)
            return y, y.requires_grad, made.get("weight").requires_grad

        return Case("scale and shift", play)

    for layout in LAYOUTS:
        n, t = draw.sample(range(2, 6), 2)
        width = draw.integer(7, 12)
        flat, deep = draw.tensor((n, width), layout=layout), draw.tensor((n, t, width))
        yield fresh("normalised", flat)
        yield fresh("normalised", deep)
        yield loaded(flat, draw.tensor((width,)), draw.tensor((width,)))
        yield loaded(deep, draw.tensor((width,)), draw.tensor((width,)))
    small, wide = draw.tensor((3, 8)), draw.tensor((4, 64))
    part = "small and large inputs"
    yield fresh(part, small / 500)
    yield fresh(part, small / 10, eps=0.01)
    yield fresh(part, torch.zeros(2, 5) + draw.integer(1, 9))
    yield fresh(part, wide + 1000)


layer_norm.misconception(
    "variance divided by n - 1", "the variance is the sample's, divided by n - 1.", earns=0
)(
    edited(
        _LayerNorm,
        ("centred.square().mean(-1, keepdim=True)", "x.var(-1, keepdim=True)"),
    )
)
layer_norm.misconception(
    "eps outside of the root",
    "ε was added to the deviation. It belongs to the variance, and the two differ where that is "
    "small.",
    earns=2,
)(edited(_LayerNorm, ("torch.sqrt(variance + self.eps)", "(torch.sqrt(variance) + self.eps)")))
layer_norm.misconception(
    "no eps", "nothing keeps a nearly constant row from a division by nearly nothing.", earns=2
)(edited(_LayerNorm, ("variance + self.eps", "variance")))
layer_norm.misconception(
    "eps fixed", "ε is 1e-5 whatever was asked for.", earns=2
)(edited(_LayerNorm, ("self.eps = eps", "self.eps = 1e-05")))
layer_norm.misconception(
    "over the batch", "the mean and the variance were taken over the rows, not within each.",
    earns=0,
)(
    edited(
        _LayerNorm,
        ("x.mean(-1, keepdim=True)", "x.mean(0, keepdim=True)"),
        ("centred.square().mean(-1, keepdim=True)", "centred.square().mean(0, keepdim=True)"),
    )
)  # fmt: skip
layer_norm.misconception(
    "over everything but the batch",
    "each sequence was normalised as a whole; each row has a mean and a variance of its own.",
    earns=1,
)(
    edited(
        _LayerNorm,
        ("x.mean(-1, keepdim=True)", "x.mean(tuple(range(1, x.dim())), keepdim=True)"),
        ("centred.square().mean(-1, keepdim=True)",
         "centred.square().mean(tuple(range(1, x.dim())), keepdim=True)"),
    )
)  # fmt: skip
layer_norm.misconception(
    "a difference of squares",
    "the variance is the mean of squares less the square of the mean: two large numbers, whose "
    "difference is mostly rounding.",
    earns=2,
)(
    edited(
        _LayerNorm,
        ("centred.square().mean(-1, keepdim=True)",
         "(x.square().mean(-1, keepdim=True) - x.mean(-1, keepdim=True) ** 2).clamp(min=0)"),
    )
)  # fmt: skip
layer_norm.misconception("raw tensors", RAW, earns=2)(
    edited(
        _LayerNorm,
        ("nn.Parameter(torch.ones(width))", "torch.ones(width, requires_grad=True)"),
        ("nn.Parameter(torch.zeros(width))", "torch.zeros(width, requires_grad=True)"),
    )
)
layer_norm.misconception(
    "shifted before it is scaled", "the bias was added first, and so was scaled with the rest.",
    earns=2,
)(edited(_LayerNorm, ("* self.weight + self.bias", "* self.weight + self.bias * self.weight")))


@layer_norm.alternate("var_mean and rsqrt")
class _VarMeanLayerNorm(nn.Module):
    def __init__(self, width, eps=1e-5):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(width)), nn.Parameter(torch.zeros(width))
        self.small = eps

    def forward(self, x):
        variance, mean = torch.var_mean(x, dim=-1, correction=0, keepdim=True)
        return torch.addcmul(self.bias, self.weight, (x - mean) * torch.rsqrt(variance + self.small))


# --------------------------------------------------------------------------------------- Dropout
dropout = Check(
    "Dropout",
    parts={"in training": 1, "in eval": 1, "the edges": 1},
    reads="Two modes",
    tolerance=Tolerance(5e-3, 1e-6, "float16 carries 10 bits of fraction, a scale as many"),
)


@dropout.reference
class _Dropout(nn.Module):
    def __init__(self, p=0.5):
        super().__init__()
        if p < 0 or p > 1:
            raise ValueError("p must be a probability")
        self.p = p

    def forward(self, x):
        if self.training and self.p > 0:
            kept = torch.rand_like(x.float()) >= self.p
            scale = 1 / (1 - self.p) if self.p < 1 else 0.0
            return torch.where(kept, x * scale, torch.zeros_like(x))
        return x


@dropout.cases
def _(draw):
    def training(p, x):
        """What can be said of a random mask, in yes and no; each may fail once in a billion."""

        def play(subject):
            made = subject(p)
            y, again = made.call("__call__", x), made.call("__call__", x)
            gone = y == 0
            share = gone.double().mean().item()
            slack = 7 * math.sqrt(p * (1 - p) / x.numel())
            rows, columns = gone.double().mean(1), gone.double().mean(0)
            own = all(bool(((part > 0) & (part < 1)).all()) for part in (rows, columns))
            return {
                **scale(x, y),
                "as many as p says": not own or abs(share - p) < slack,
                "each on its own": own,
                "anew in each call": not torch.equal(y, again),
            }

        return Case("in training", play)

    def scale(x, y):
        """By how much the elements that are left were multiplied."""
        ratio = (y.double() / x.double())[y != 0]
        middle = ratio.median().item() if ratio.numel() else 0.0
        return {
            "shape": tuple(y.shape),
            "dtype": y.dtype,
            "scale": middle,
            "one scale for all": bool((ratio - middle).abs().le(5e-3 * abs(middle)).all()),
        }

    def evaluated(p, x):
        def play(subject):
            y = in_eval(subject(p)).call("__call__", x)
            return {**scale(x, y), "some dropped": bool((y == 0).any()), "same": torch.equal(x, y)}

        return Case("in eval", play)

    def edge(p, x):
        return Case("the edges", lambda subject: subject(p).call("__call__", x))

    for dtype, layout in ((torch.float32, "transposed"), (torch.float16, "contiguous")):
        x = draw.tensor((150, 160), dtype, layout)
        x = torch.where(x.abs() < 0.1, torch.ones_like(x), x)  # a zero would look dropped
        p = draw.choice((0.2, 0.25, 0.3, 0.7, 0.75, 0.8))
        yield training(p, x)
        yield evaluated(p, x)
        yield edge(0.0, x)
        yield edge(1.0, x)
        yield evaluated(1.0, x)
    for p in (-0.25, 1.5):
        yield Case("the edges", lambda subject, p=p: subject(p).get("training"))


dropout.misconception(
    "what stays is not scaled",
    "elements that stay keep their size, so that the mean sinks in training.",
    earns=2,
)(edited(_Dropout, ("1 / (1 - self.p) if self.p < 1 else 0.0", "1.0")))
dropout.misconception(
    "scaled by 1/p", "elements that stay are divided by the probability of going.", earns=2
)(edited(_Dropout, ("1 / (1 - self.p) if self.p < 1 else 0.0", "1 / self.p")))
dropout.misconception(
    "p taken for the share that stays",
    "p was read as the probability of staying; in PyTorch it is that of being dropped.",
    earns=1,
)(
    edited(
        _Dropout,
        ("if self.training and self.p > 0:", "if self.training and self.p < 1:"),
        ("torch.rand_like(x.float()) >= self.p", "torch.rand_like(x.float()) < self.p"),
        ("1 / (1 - self.p) if self.p < 1 else 0.0", "1 / self.p if self.p > 0 else 0.0"),
    )
)
dropout.misconception(
    "dropping in eval, too", "the mode is never asked for: elements are dropped in eval.", earns=2
)(edited(_Dropout, ("self.training and self.p > 0", "self.p > 0")))
dropout.misconception(
    "scaled in eval instead",
    "as in the first paper: nothing is scaled in training, and all is made smaller in eval.",
    earns=1,
)(
    edited(
        _Dropout,
        ("1 / (1 - self.p) if self.p < 1 else 0.0", "1.0"),
        ("zeros_like(x))\n        return x",
         "zeros_like(x))\n        return x if self.training else x * (1 - self.p)"),
    )
)
dropout.misconception(
    "one mask for ever", "the mask is drawn once and used again in each call.", earns=2
)(
    edited(
        _Dropout,
        ("kept = torch.rand_like(x.float()) >= self.p",
         "if not hasattr(self, 'kept'):\n                self.kept = torch.rand_like(x.float()) >= self.p\n"
         "            kept = self.kept"),
    )
)  # fmt: skip
dropout.misconception(
    "whole rows dropped", "one draw decides for a whole row; each element should have its own.",
    earns=2,
)(edited(_Dropout, ("torch.rand_like(x.float()) >=", "torch.rand(x.shape[0], 1) >=")))
dropout.misconception(
    "0 divided by 0", "at p = 1 nothing is left to be scaled, and the scale is infinite.", earns=2
)(
    edited(
        _Dropout,
        ("1 / (1 - self.p) if self.p < 1 else 0.0",
         "torch.tensor(1.0) / torch.tensor(1 - self.p)"),
        ("torch.where(kept, x * scale, torch.zeros_like(x))", "x * (kept * scale).to(x.dtype)"),
    )
)  # fmt: skip
dropout.misconception(
    "any p goes", "a p that is no probability is let through when the layer is made.", earns=2
)(edited(_Dropout, ("if p < 0 or p > 1:", "if False:")))


@dropout.alternate("torch.bernoulli")
class _BernoulliDropout(nn.Module):
    def __init__(self, p=0.5):
        super().__init__()
        if not 0.0 <= p <= 1.0:
            raise ValueError(p)
        self.keep = 1.0 - p

    def forward(self, x):
        if self.training and self.keep == 0:
            return x * 0
        if self.training:
            return x * torch.bernoulli(torch.full(x.shape, self.keep, dtype=x.dtype)) / self.keep
        return x.clone()


@dropout.alternate("torch's own function")
class _TorchDropout(nn.Module):
    def __init__(self, p=0.5):
        super().__init__()
        if p < 0 or p > 1:
            raise ValueError("expected a probability")
        self.p = p

    def forward(self, x):
        return nn.functional.dropout(x, self.p, self.training)


# ----------------------------------------------------------------------------------------- Stack
stack = Check(
    "Stack",
    parts={"what is registered": 1, "what training changes": 2},
    reads="The loss that won't fall",
    tolerance=Tolerance(1e-3, 1e-4, "eight steps of descent, each with sums in an order of its own"),
)


@stack.reference
class _Stack(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(width, width) for _ in range(depth)])
        self.gain = nn.Parameter(torch.ones(width))

    def forward(self, x):
        for layer in self.layers:
            x = x + torch.tanh(layer(x))
        return x * self.gain

    def fit(self, x, y, steps):
        losses = []
        for _ in range(steps):
            loss = (self(x) - y).square().mean()
            self.zero_grad()
            loss.backward()
            with torch.no_grad():
                for parameter in self.parameters():
                    if parameter.grad is not None:
                        parameter -= 0.1 * parameter.grad
            losses.append(loss.item())
        return losses


@stack.cases
def _(draw):
    def registered(width, depth):
        def play(subject):
            made = subject(width, depth)
            return shapes_of(made), made.get("gain").detach()

        return Case("what is registered", play)

    def trained(x, y, state, depth):
        def play(subject):
            made = subject(x.shape[1], depth)
            made.call("load_state_dict", state)
            before = made.call("__call__", x)
            losses = made.call("fit", x, y, 8)
            flag = made.get("gain").requires_grad
            return before, losses, dict(made.call("state_dict")), flag

        return Case("what training changes", play)

    for depth in (2, 3, 1):
        width = draw.integer(3, 6)
        yield registered(width, depth)
        state = {"gain": 0.5 * draw.tensor((width,))}
        for k in range(depth):
            state[f"layers.{k}.weight"] = 0.3 * draw.tensor((width, width))
            state[f"layers.{k}.bias"] = 0.3 * draw.tensor((width,))
        x, y = draw.tensor((9, width)), draw.tensor((9, width))
        yield trained(x, y, state, depth)


stack.misconception(
    "a list of layers",
    "a Python list holds the layers, and a module does not look into lists.",
    earns=0,
)(
    edited(
        _Stack,
        ("nn.ModuleList([nn.Linear(width, width) for _ in range(depth)])",
         "[nn.Linear(width, width) for _ in range(depth)]"),
    )
)  # fmt: skip
stack.misconception(
    "a raw tensor", "the gain requires a gradient, and gets one, and no optimizer knows of it.",
    earns=0,
)(edited(_Stack, ("nn.Parameter(torch.ones(width))", "torch.ones(width, requires_grad=True)")))
stack.misconception(
    "a buffer for a parameter",
    "the gain is saved, and it is not trained: it requires no gradient.",
    earns=1,
)(
    edited(
        _Stack,
        ("self.gain = nn.Parameter(torch.ones(width))",
         "self.register_buffer('gain', torch.ones(width))"),
    )
)  # fmt: skip
stack.misconception(
    ".data in forward",
    "the gain is read past autograd: the output is right, and its gradient never comes.",
    earns=1,
)(edited(_Stack, ("x * self.gain", "x * self.gain.data")))
stack.misconception(
    "one layer many times",
    "all entries of the list are one layer, registered under several names.",
    earns=1,
)(
    edited(
        _Stack,
        ("[nn.Linear(width, width) for _ in range(depth)]", "[nn.Linear(width, width)] * depth"),
    )
)


@stack.alternate("names given one by one")
class _NamedStack(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.layers = nn.Module()
        for k in range(depth):
            self.layers.add_module(str(k), nn.Linear(width, width))
        self.register_parameter("gain", nn.Parameter(torch.ones(width)))

    def forward(self, x):
        for layer in self.layers.children():
            x = torch.tanh(layer(x)) + x
        return self.gain * x

    def fit(self, x, y, steps):
        losses = []
        for _ in range(steps):
            loss = (self(x) - y).square().mean()
            self.zero_grad()
            loss.backward()
            with torch.no_grad():
                for parameter in self.parameters():
                    if parameter.grad is not None:
                        parameter -= 0.1 * parameter.grad
            losses.append(loss.item())
        return losses


# ----------------------------------------------------------------------------------- RunningNorm
running_norm = Check(
    "RunningNorm",
    parts={"saved and restored": 1, "eval": 1, "a buffer without a graph": 1},
    reads="What is saved but not trained",
    tolerance=SUMS,
)


@running_norm.reference
class _RunningNorm(nn.Module):
    def __init__(self, width, momentum=0.1):
        super().__init__()
        self.momentum = momentum
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("variance", torch.ones(width))

    def forward(self, x):
        mean, variance = self.mean, self.variance
        if self.training:
            mean, variance = x.mean(0), x.var(0, correction=0)
            with torch.no_grad():
                self.mean += self.momentum * (mean - self.mean)
                self.variance += self.momentum * (variance - self.variance)
        return (x - mean) / torch.sqrt(variance + 1e-05)

    def registered(self):
        parameters = sorted(name for name, _ in self.named_parameters())
        return {"parameters": parameters, "buffers": sorted(n for n, _ in self.named_buffers())}


@running_norm.cases
def _(draw):
    def seen(made, batches):
        return [made.call("__call__", x).detach() for x in batches]

    def saved(momentum, batches):
        def play(subject):
            made, again = (subject(batches[0].shape[1], momentum) for _ in range(2))
            outputs = seen(made, batches)
            state = dict(made.call("state_dict"))
            again.call("load_state_dict", state)
            return outputs, state, again.get("mean").detach(), again.get("variance").detach()

        return Case("saved and restored", play)

    def evaluated(momentum, batches, x):
        def play(subject):
            made = subject(x.shape[1], momentum)
            seen(made, batches)
            in_eval(made)
            outputs = seen(made, (x, x))
            return outputs, made.get("mean").detach(), made.get("variance").detach()

        return Case("eval", play)

    def apart(x):
        def play(subject):
            made = subject(x.shape[1])
            y = made.call("__call__", x)
            return {
                "registered": made.call("registered"),
                "the output has a graph": y.requires_grad,
                "the memory has one": made.get("mean").requires_grad
                or made.get("variance").requires_grad,
            }

        return Case("a buffer without a graph", play)

    for _ in range(3):
        n, width = draw.sample(range(3, 9), 2)
        momentum = draw.choice((0.1, 0.2, 0.3))
        batches = [draw.tensor((n, width)) + k for k in range(3)]
        yield saved(momentum, batches)
        yield evaluated(momentum, batches, draw.tensor((n, width)))
        yield apart(draw.tensor((n, width)).requires_grad_())


running_norm.misconception(
    "plain attributes",
    "the memory is in ordinary attributes: it is not saved, and a move leaves it behind.",
    earns=1,
)(
    edited(
        _RunningNorm,
        ("self.register_buffer('mean', torch.zeros(width))", "self.mean = torch.zeros(width)"),
        ("self.register_buffer('variance', torch.ones(width))",
         "self.variance = torch.ones(width)"),
    )
)  # fmt: skip
running_norm.misconception(
    "parameters for buffers",
    "the memory is made of Parameters, which an optimizer would change.",
    earns=2,
)(
    edited(
        _RunningNorm,
        ("self.register_buffer('mean', torch.zeros(width))",
         "self.mean = nn.Parameter(torch.zeros(width))"),
        ("self.register_buffer('variance', torch.ones(width))",
         "self.variance = nn.Parameter(torch.ones(width))"),
    )
)  # fmt: skip
running_norm.misconception(
    "buffers that are not saved",
    "the buffers were registered with `persistent=False`: they move, and are not saved.",
    earns=2,
)(
    edited(
        _RunningNorm,
        ("torch.zeros(width))", "torch.zeros(width), persistent=False)"),
        ("torch.ones(width))", "torch.ones(width), persistent=False)"),
    )
)
running_norm.misconception(
    "the batch in eval, too", "eval normalises by the batch, and remembers it.", earns=2
)(edited(_RunningNorm, ("if self.training:", "if True:")))
running_norm.misconception(
    "learning in eval", "eval uses what was remembered, and goes on remembering.", earns=2
)(
    edited(
        _RunningNorm,
        ("mean, variance = (self.mean, self.variance)\n",
         "mean, variance = self.mean.clone(), self.variance.clone()\n"),
        ("if self.training:\n            mean, variance = (x.mean(0), x.var(0, correction=0))\n",
         "batch = x.mean(0), x.var(0, correction=0)\n        if True:\n"),
        ("self.mean += self.momentum * (mean - self.mean)",
         "self.mean += self.momentum * (batch[0] - self.mean)"),
        ("self.variance += self.momentum * (variance - self.variance)",
         "self.variance += self.momentum * (batch[1] - self.variance)\n"
         "        if self.training:\n            mean, variance = batch"),
    )
)  # fmt: skip
running_norm.misconception(
    "a memory with a graph",
    "autograd records the update of the memory, which so holds on to every batch there was.",
    earns=2,
)(
    edited(
        _RunningNorm,
        ("with torch.no_grad():", "if True:"),
        ("self.mean +=", "self.mean = self.mean +"),
        ("self.variance +=", "self.variance = self.variance +"),
    )
)
running_norm.misconception(
    "momentum the other way round",
    "the momentum was taken as the share of the old; in PyTorch's norms it is that of the new.",
    earns=1,
)(
    edited(
        _RunningNorm,
        ("self.momentum * (mean - self.mean)", "(1 - self.momentum) * (mean - self.mean)"),
        ("self.momentum * (variance - self.variance)",
         "(1 - self.momentum) * (variance - self.variance)"),
    )
)  # fmt: skip
running_norm.misconception(
    "the output cut off",
    "the whole forward runs without a graph, so that nothing before this layer is trained.",
    earns=2,
)(
    edited(
        _RunningNorm,
        ("return (x - mean) / torch.sqrt(variance + 1e-05)",
         "return ((x - mean) / torch.sqrt(variance + 1e-05)).detach()"),
    )
)  # fmt: skip


@running_norm.alternate("buffers assigned anew")
class _AssigningRunningNorm(nn.Module):
    def __init__(self, width, momentum=0.1):
        super().__init__()
        self.momentum = momentum
        for name, value in (("mean", 0.0), ("variance", 1.0)):
            self.register_buffer(name, torch.full((width,), value))

    def forward(self, x):
        if not self.training:
            return (x - self.mean) * torch.rsqrt(self.variance + 1e-5)
        mean = x.mean(0)
        variance = (x - mean).square().mean(0)
        self.mean = torch.lerp(self.mean, mean.detach(), self.momentum)
        self.variance = torch.lerp(self.variance, variance.detach(), self.momentum)
        return (x - mean) * torch.rsqrt(variance + 1e-5)

    def registered(self):
        parameters = sorted(name for name, _ in self.named_parameters())
        return {"parameters": parameters, "buffers": sorted(n for n, _ in self.named_buffers())}


# ------------------------------------------------------------------------------------ run_module
run_module = Check(
    "run_module",
    parts={
        "registration": 2,
        "tied parameters": 1,
        "buffers": 1,
        "saving and loading": 1,
        "refusals": 1,
        "train and eval": 1,
    },
    reads="One line of magic",
    tolerance=SUMS,
)


@run_module.reference
def _run_module(plan, *requests):
    class Module:
        def __init__(self):
            self.__dict__["training"] = True
            for kind in ("_parameters", "_buffers", "_modules"):
                self.__dict__[kind] = {}

        def __call__(self, *args):
            return self.forward(*args)

        def __setattr__(self, name, value):
            keep = self._buffers if name in self._buffers else self.__dict__
            if isinstance(value, nn.Parameter):
                keep = self._parameters
            elif isinstance(value, Module):
                keep = self._modules
            for kind in (self._parameters, self._modules, self._buffers, self.__dict__):
                if kind is not keep:
                    kind.pop(name, None)
            keep[name] = value

        def __getattr__(self, name):
            for kind in ("_parameters", "_buffers", "_modules"):
                if name in self.__dict__[kind]:
                    return self.__dict__[kind][name]
            raise AttributeError(name)

        def register_buffer(self, name, tensor):
            self._buffers[name] = tensor

        def all_parameters(self):
            yield from self._parameters.items()
            for child_name, child in self._modules.items():
                for name, parameter in child.all_parameters():
                    yield (child_name + "." + name, parameter)

        def all_buffers(self):
            yield from self._buffers.items()
            for child_name, child in self._modules.items():
                for name, buffer in child.all_buffers():
                    yield (child_name + "." + name, buffer)

        def named_parameters(self):
            seen = set()
            for name, parameter in self.all_parameters():
                if parameter not in seen:
                    seen.add(parameter)
                    yield (name, parameter)

        def tensors(self):
            return {**dict(self.all_parameters()), **dict(self.all_buffers())}

        def state_dict(self):
            return {name: tensor.detach() for name, tensor in self.tensors().items()}

        def load_state_dict(self, state):
            own = self.tensors()
            missing = [name for name in own if name not in state]
            extra = [name for name in state if name not in own]
            both = [name for name in own if name in state]
            shapes = [name for name in both if own[name].shape != state[name].shape]
            if missing or extra or shapes:
                raise RuntimeError(f"missing {missing}, unexpected {extra}, other shape {shapes}")
            with torch.no_grad():
                for name in both:
                    own[name].copy_(state[name])

        def train(self, mode=True):
            self.training = mode
            for child in self._modules.values():
                child.train(mode)
            return self

        def eval(self):
            return self.train(False)

    return drive(Module, plan, *requests)


@run_module.cases
def _(draw):
    def vector(width, kind="parameter"):
        return [kind, draw.tensor((width,))]

    def ask(part, plan, *requests, show=None):
        """Ask; `show` turns the answers into what is compared."""

        def play(subject):
            answers = subject(plan, *requests)
            return show(answers) if show else answers

        return Case(part, play)

    def leaves(state):
        return {name: draw.tensor(tuple(tensor.shape)) for name, tensor in state.items()}

    for _ in range(2):
        a, b, c, d, e, f = draw.sample(
            ("head", "up", "down", "norm", "query", "key", "value", "gain", "shift", "scale"), 6
        )
        w = draw.integer(3, 6)
        x = draw.tensor((2, w))
        deep = {a: vector(w), b: {c: vector(w), d: {e: vector(w)}}, f: vector(w)}
        part = "registration"
        yield ask(part, deep, ("parameters", ""), ("parameters", b), ("call", "", x))
        yield ask(part, deep, ("gradients", x), ("get", f"{b}.{d}", e), ("kept", f))
        plain = {a: vector(w), c: vector(w, "plain")}
        yield ask(part, plain, ("parameters", ""), ("get", "", c))
        changed = ("set", "", a, vector(w)), ("set", "", b, {d: vector(w)})

        def in_any_order(answers):  # a name that is assigned again may keep its place or lose it
            return dict(answers[-2]), answers[-1]

        again = *changed, ("parameters", ""), ("state_dict", "")
        yield ask(part, deep, *again, show=in_any_order)
        yield ask(part, deep, ("set", "", a, ["plain", draw.tensor((w,))]), ("parameters", ""))

        part = "tied parameters"
        tied = {a: {c: vector(w)}, b: {d: vector(w), e: ["same", f"{a}.{c}"]}}
        yield ask(part, tied, ("parameters", ""), ("state_dict", ""))
        yield ask(part, tied, ("gradients", x), ("shared", f"{a}.{c}", f"{b}.{e}"))
        equal = ["parameter", torch.zeros(w)]
        yield ask(part, {a: {c: equal}, b: {d: equal}}, ("parameters", ""))

        part = "buffers"
        counted = {a: vector(w, "buffer"), b: {c: vector(w, "buffer"), d: vector(w)}}
        yield ask(part, counted, ("parameters", ""), ("state_dict", ""), ("call", "", x))
        anew = ("set", b, c, vector(w, "plain"))
        yield ask(part, counted, anew, ("state_dict", ""), ("get", b, c))

        part = "saving and loading"
        state = {a: draw.tensor((w,)), f"{b}.{c}": draw.tensor((w,)), f"{b}.{d}": draw.tensor((w,))}
        after = ("state_dict", ""), ("kept", f"{b}.{d}"), ("kept", f"{b}.{c}"), ("call", "", x)
        yield ask(part, counted, ("load", "", state, []), *after)
        reverse = dict(reversed(state.items()))
        yield ask(part, counted, ("load", "", reverse, []), *after)

        part = "refusals"
        keys = [*state, "alien.weight"]
        less = {name: tensor for name, tensor in state.items() if name != f"{b}.{d}"}
        more = {**state, "alien.weight": torch.ones(w)}
        both = {**less, "alien.weight": torch.ones(w)}
        thin = {**state, f"{b}.{d}": torch.ones(1)}

        def refused(answers):
            (answer, named), left = answers
            return answer, sorted(named), left

        for wrong, named in ((less, [f"{b}.{d}"]), (more, keys[3:]), (both, [keys[3], f"{b}.{d}"])):
            request = ("load", "", wrong, named)
            yield ask(part, counted, request, ("state_dict", ""), show=refused)
        yield ask(
            part, counted, ("load", "", thin, [f"{b}.{d}"]), ("state_dict", ""), show=refused
        )

        part = "train and eval"
        yield ask(part, deep, ("modes", ""), ("eval", ""), ("modes", ""))
        yield ask(part, deep, ("eval", ""), ("train", b, True), ("modes", ""))


ALL = {
    "registration": 2,
    "tied parameters": 1,
    "buffers": 1,
    "saving and loading": 1,
    "refusals": 1,
    "train and eval": 1,
}


def all_but(*parts):
    """Points of every part of `run_module` but these."""
    return sum(points for part, points in ALL.items() if part not in parts)


run_module.misconception(
    "children not asked",
    "the module lists what is its own; nobody goes down into the children.",
    earns=0,
)(
    edited(
        _run_module,
        ("""            for child_name, child in self._modules.items():
                for name, parameter in child.all_parameters():
                    yield (child_name + '.' + name, parameter)
""", ""),
        ("""            for child_name, child in self._modules.items():
                for name, buffer in child.all_buffers():
                    yield (child_name + '.' + name, buffer)
""", ""),
        ("""            for child in self._modules.values():
                child.train(mode)
""", ""),
    )
)  # fmt: skip
run_module.misconception(
    "one level deep",
    "children are asked for their own parameters, and not for those of their children.",
    earns=all_but("registration"),
)(
    edited(
        _run_module,
        ("for name, parameter in child.all_parameters():",
         "for name, parameter in child._parameters.items():"),
    )
)  # fmt: skip
run_module.misconception(
    "names without a path",
    "a child's parameters keep their short names, so that two of the same name are one.",
    earns=1,
)(
    edited(
        _run_module,
        ("yield (child_name + '.' + name, parameter)", "yield (name, parameter)"),
        ("yield (child_name + '.' + name, buffer)", "yield (name, buffer)"),
    )
)
run_module.misconception(
    "tied parameters twice",
    "a parameter that is registered in two places is yielded twice; an optimizer would refuse it, "
    "or step twice.",
    earns=all_but("tied parameters"),
)(edited(_run_module, ("if parameter not in seen:", "if True:")))
run_module.misconception(
    "tied by value",
    "parameters were taken for one when their numbers are equal; what counts is the object.",
    earns=all_but("tied parameters"),
)(
    edited(
        _run_module,
        ("if parameter not in seen:", "if tuple(parameter.tolist()) not in seen:"),
        ("seen.add(parameter)", "seen.add(tuple(parameter.tolist()))"),
    )
)
run_module.misconception(
    "saved once",
    "the state leaves out the second name of a tied parameter, which loading will look for.",
    earns=all_but("tied parameters"),
)(
    edited(
        _run_module,
        ("{**dict(self.all_parameters()), **dict(self.all_buffers())}",
         "{**dict(self.named_parameters()), **dict(self.all_buffers())}"),
    )
)  # fmt: skip
run_module.misconception(
    "buffers forgotten in the state",
    "the state holds parameters alone: what the model has seen is lost with it.",
    earns=all_but("buffers", "saving and loading", "refusals"),
)(
    edited(
        _run_module,
        ("{**dict(self.all_parameters()), **dict(self.all_buffers())}",
         "dict(self.all_parameters())"),
    )
)  # fmt: skip
run_module.misconception(
    "loading replaces",
    "new Parameters take the place of the old, and the optimizer goes on with those it knew.",
    earns=all_but("saving and loading"),
)(
    edited(
        _run_module,
        ("""            with torch.no_grad():
                for name in both:
                    own[name].copy_(state[name])
""",
         """            for name in both:
                where = self
                for step in name.split('.')[:-1]:
                    where = where._modules[step]
                new = state[name].clone()
                if isinstance(own[name], nn.Parameter):
                    new = nn.Parameter(new)
                setattr(where, name.split('.')[-1], new)
"""),
    )
)  # fmt: skip
run_module.misconception(
    "what is unknown is ignored",
    "names that the module does not have are passed over in silence.",
    earns=all_but("refusals"),
)(edited(_run_module, ("if missing or extra or shapes:", "if missing or shapes:")))
run_module.misconception(
    "what is missing is ignored",
    "names that the state does not have keep their old values, in silence.",
    earns=all_but("refusals"),
)(edited(_run_module, ("if missing or extra or shapes:", "if extra or shapes:")))
run_module.misconception(
    "a shape that broadcasts",
    "shapes are not compared, and `copy_` fills a tensor from a single number.",
    earns=all_but("refusals"),
)(edited(_run_module, ("if missing or extra or shapes:", "if missing or extra:")))
run_module.misconception(
    "refused half-way",
    "values were copied before all names had been looked at, so a refusal leaves a mixture.",
    earns=all_but("refusals"),
)(
    edited(
        _run_module,
        ("            if missing or extra or shapes:",
         """            with torch.no_grad():
                for name in set(both) - set(shapes):
                    own[name].copy_(state[name])
            if missing or extra or shapes:"""),
    )
)  # fmt: skip
run_module.misconception(
    "only the first is named",
    "the refusal names one of the keys that are wrong, not all of them.",
    earns=all_but("refusals"),
)(
    edited(
        _run_module,
        ("raise RuntimeError(f'missing {missing}, unexpected {extra}, other shape {shapes}')",
         "raise RuntimeError(f'not fitting: {(missing + extra + shapes)[0]}')"),
    )
)  # fmt: skip
run_module.misconception(
    "modes stay at the top",
    "`train` and `eval` set the module's own mode, and its children keep theirs.",
    earns=all_but("train and eval"),
)(
    edited(
        _run_module,
        ("""            for child in self._modules.values():
                child.train(mode)
""", ""),
    )
)  # fmt: skip
run_module.misconception(
    "the old one stays registered",
    "an attribute that is assigned again leaves what was there before in its registry.",
    earns=all_but("registration"),
)(
    edited(
        _run_module,
        ("if kind is not keep:", "if False:"),
        ("keep[name] = value", "keep.setdefault(name, value)\n"
         "            if keep is not self._parameters:\n                keep[name] = value"),
    )
)  # fmt: skip
run_module.misconception(
    "every tensor is a parameter",
    "plain tensors were registered as if they were Parameters.",
    earns=all_but("registration"),
)(
    edited(
        _run_module,
        ("if isinstance(value, nn.Parameter):", "if isinstance(value, torch.Tensor):"),
    )
)


@run_module.alternate("no registry: look through the attributes")
def _(plan, *requests):
    class Module:
        def __init__(self):
            self.training = True
            self.memory = set()

        def __call__(self, *args):
            return self.forward(*args)

        def register_buffer(self, name, tensor):
            self.memory.add(name)
            setattr(self, name, tensor)

        def walk(self, prefix=""):
            below = []
            for name, value in self.__dict__.items():
                if isinstance(value, nn.Parameter) or name in self.memory:
                    yield prefix + name, value
                if isinstance(value, Module):
                    below.append((name, value))
            for name, child in below:
                yield from child.walk(prefix + name + ".")

        def named_parameters(self):
            found = {}
            for name, value in self.walk():
                if isinstance(value, nn.Parameter):
                    found.setdefault(id(value), (name, value))
            return list(found.values())

        def state_dict(self):
            return {name: value.data for name, value in self.walk()}

        def load_state_dict(self, state):
            mine = self.state_dict()
            wrong = sorted(set(mine) ^ set(state))
            wrong += [n for n in mine if n in state and mine[n].shape != state[n].shape]
            if wrong:
                raise RuntimeError("does not fit: " + ", ".join(wrong))
            for name, value in mine.items():
                value.copy_(state[name])

        def train(self, mode=True):
            to_set = [self]
            for module in to_set:
                module.training = mode
                to_set += [v for v in vars(module).values() if isinstance(v, Module)]
            return self

        def eval(self):
            return self.train(False)

    return drive(Module, plan, *requests)


# ----------------------------------------------------------------------------------- bytes_moved
bytes_moved = Check(
    "bytes_moved",
    parts={"parameters": 1, "buffers": 1, "gradients": 1, "a buffer in two places": 1},
    reads="What a move moves",
)


@bytes_moved.reference
def _bytes_moved(plan):
    model = assemble(plan)
    moved, seen = 0, set()
    for module in model.modules():
        for parameter in module._parameters.values():
            if parameter is None or id(parameter) in seen:
                continue
            seen.add(id(parameter))
            moved += parameter.numel() * parameter.element_size()
            if parameter.grad is not None:
                moved += parameter.grad.numel() * parameter.grad.element_size()
        for buffer in module._buffers.values():
            if buffer is not None:
                moved += buffer.numel() * buffer.element_size()
    return moved


@bytes_moved.cases
def _(draw):
    def tensor(kind, *more, dtype=torch.float32):
        return [kind, draw.tensor(draw.shape(2), dtype), *more]

    def graded(dtype=torch.float32):
        shape = draw.shape(2)
        return ["parameter", draw.tensor(shape, dtype), draw.tensor(shape, dtype)]

    for _ in range(2):
        words, width, wide = draw.sample(range(5, 30), 3)
        head = {"weight": ["same", "embed.weight"], "bias": ["parameter", draw.tensor((words,))]}
        layers = {"embed": ["Embedding", words, width], "up": {"in": ["Linear", width, wide]}}
        half, double = (tensor("parameter", dtype=t) for t in (torch.float16, torch.float64))
        wide_storage = ["parameter", draw.tensor((4, 6), layout="sliced")]
        part = "parameters"
        yield case(part, {**layers, "norm": ["LayerNorm", width]})
        yield case(part, {**layers, "head": head})
        yield case(part, {**layers, "low": half, "high": double, "still": tensor("frozen")})
        yield case(part, {"part": wide_storage, "notes": tensor("plain")})
        part = "buffers"
        yield case(part, {**layers, "seen": tensor("buffer"), "n": tensor("buffer", dtype=torch.int64)})
        yield case(part, {"norm": ["BatchNorm1d", width], "scratch": tensor("buffer", False)})
        yield case("gradients", {**layers, "scale": graded(), "shift": tensor("parameter")})
        grads = {"first": {"w": graded()}, "second": {"w": ["same", "first.w"], "v": graded()}}
        yield case("gradients", grads)
        mask = {"mask": ["same", "first.mask"]}
        shared = {"first": {"mask": tensor("buffer")}, "second": mask, "third": {"w": half}}
        yield case("a buffer in two places", shared)


bytes_moved.misconception(
    "tied parameters twice", "a parameter with two names was counted under each of them.", earns=2
)(edited(_bytes_moved, ("seen.add(id(parameter))", "pass")))
bytes_moved.misconception(
    "buffers forgotten", "only parameters were counted; buffers move as well.", earns=2
)(edited(_bytes_moved, ("if buffer is not None:", "if False:")))
bytes_moved.misconception(
    "a gradient forgotten", "the gradients that parameters have move with them.", earns=3
)(edited(_bytes_moved, ("if parameter.grad is not None:", "if False:")))
bytes_moved.misconception(
    "a shared buffer once",
    "a buffer in two places was counted once, as `model.buffers()` lists it; a move copies it at "
    "each place.",
    earns=3,
)(
    edited(
        _bytes_moved,
        ("if buffer is not None:", "if buffer is not None and id(buffer) not in seen:\n"
         "                seen.add(id(buffer))"),
    )
)  # fmt: skip
bytes_moved.misconception(
    "elements for bytes", "elements were counted, and not the bytes that each of them takes.", earns=0
)(
    edited(
        _bytes_moved,
        ("moved += parameter.numel() * parameter.element_size()", "moved += parameter.numel()"),
        ("moved += parameter.grad.numel() * parameter.grad.element_size()",
         "moved += parameter.grad.numel()"),
        ("moved += buffer.numel() * buffer.element_size()", "moved += buffer.numel()"),
    )
)  # fmt: skip
bytes_moved.misconception(
    "four bytes for everything", "every element was taken for a float32.", earns=1
)(
    edited(
        _bytes_moved,
        ("parameter.numel() * parameter.element_size()", "parameter.numel() * 4"),
        ("buffer.numel() * buffer.element_size()", "buffer.numel() * 4"),
    )
)
bytes_moved.misconception(
    "only what is trained", "parameters that require no gradient were left behind.", earns=3
)(
    edited(
        _bytes_moved,
        ("if parameter is None or id(parameter) in seen:",
         "if parameter is None or id(parameter) in seen or (not parameter.requires_grad):"),
    )
)  # fmt: skip
bytes_moved.misconception(
    "whole storages", "storages were counted whole, of which a parameter may be a part.", earns=3
)(
    edited(
        _bytes_moved,
        ("parameter.numel() * parameter.element_size()", "parameter.untyped_storage().nbytes()"),
    )
)


@bytes_moved.misconception(
    "what is saved",
    "`state_dict` was summed up: it lacks gradients and buffers that aren't saved, and names tied "
    "parameters twice.",
    earns=1,
)
def _(plan):
    model = assemble(plan)
    return sum(t.numel() * t.element_size() for t in model.state_dict().values())


@bytes_moved.alternate("watch the move")
def _(plan):
    model = assemble(plan)
    copied = []

    def move(tensor):
        if tensor.dtype is torch.complex128:
            return tensor
        copied.append(tensor.numel() * tensor.element_size())
        return tensor.to(torch.complex128)

    model._apply(move)
    return sum(copied)


@bytes_moved.alternate("names without duplicates, and with")
def _(plan):
    model = assemble(plan)
    total = sum(b.nbytes for _, b in model.named_buffers(remove_duplicate=False))
    for parameter in model.parameters():
        total += parameter.nbytes + (0 if parameter.grad is None else parameter.grad.nbytes)
    return total


# -------------------------------------------------------------------------------- minigpt_logits
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
        forbid_names=frozenset({"MiniGPT", "load_minigpt", "numpy_forward", "forward_numpy"}),
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

    for layers, heads in ((1, 2), (2, 3)):
        ff, vocabulary, context = draw.sample(range(9, 21), 3)
        config = MiniGPTConfig(vocabulary, 6 * heads, heads, layers, ff, context)
        weights = random_weights(draw, config)
        for length in (context, draw.integer(2, context - 1))[:layers]:
            yield case("any sizes", weights, words(draw.integer(1, 3), length, config), config)
    weights, config = trained()
    tokens = words(2, draw.integer(5, 16), config)
    yield case("the trained weights", weights, tokens, config)
    yield case("the trained weights", weights, tokens[:1, :4], config)

    exact = torch.from_numpy(numpy_forward.forward(weights, tokens.numpy(), config).logits)

    def in_half(subject):
        logits = subject(weights, tokens, config, "cpu", torch.float16)
        return {
            "shape": tuple(logits.shape),
            "dtype": logits.dtype,
            "near the float32 answer": agree(logits, exact, torch.float16),
            "really in float16": bool((logits - exact).abs().max() > 1e-3),
        }

    yield Case("half precision", in_half)
    try:
        gpu = gpu_run()
    except NoRecord as missing:
        yield not_run("float32 as on a GPU", NEEDS_GPU.format(missing))
        yield not_run("float16 as on a GPU", NEEDS_GPU.format(missing))
        return
    yield on_a_gpu("float32 as on a GPU", gpu, torch.float32)
    yield on_a_gpu("float16 as on a GPU", gpu, torch.float16)


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
            "agrees with the GPU": gpu.agrees(logits, dtype),
        }

    return Case(part, play, against=gpu.words)


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
    name="positions forgotten", explanation="the words' rows were used without those of their "
    "positions.",
)  # fmt: skip
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
    ("norm('final_norm', x)", "x"),
    name="no final norm", explanation="the head reads the stream as it is, without the last norm.",
)  # fmt: skip
port_error(
    ("scores.masked_fill(future, -math.inf)", "scores.masked_fill(future, -1000000000.0)"),
    name="a mask that overflows",
    explanation="the mask is a number that float16 does not have.",
    keeps=("any sizes", "the trained weights", "float32 as on a GPU"),
)
port_error(
    (".to(device, dtype)", ".to(device)"),
    name="the dtype ignored",
    explanation="the model was run in float32, whatever was asked for.",
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
