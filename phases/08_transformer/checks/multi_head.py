"""Lab 08, exercise 2: Attention in fifty lines"""


import torch
from torch import nn

from utils.checks.exercise import ByHand, Case, Check, edited
from utils.checks.lab_solution import lab_solution

from .shared import SUMS, attention_weights

multi_head = Check(
    "MultiHead",
    parts={"one head": 1, "several heads": 1, "masks": 1, "seeing nothing": 1, "gradients": 1},
    reads="Attention in fifty lines",
    tolerance=SUMS,
    by_hand=ByHand(
        because="the exercise is attention from linear layers and tensor operations",
        forbid_names=frozenset({"*ttention*", "*multi_head*", "*Multihead*", "Transformer*"}),
        max_lines=50,
    ),
)


@multi_head.reference
class _Reference(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.heads = n_heads
        for name in ("query", "key", "value", "output"):
            self.add_module(name, nn.Linear(d_model, d_model))

    def forward(self, x, allowed=None):
        width = x.shape[-1] // self.heads
        sums = []
        for head in range(self.heads):
            own = slice(head * width, (head + 1) * width)
            q, k, v = (part(x)[..., own] for part in (self.query, self.key, self.value))
            sums.append(nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=allowed))
        return self.output(torch.cat(sums, -1))


@multi_head.cases
def _(draw):
    one, several, masks, nothing, gradients = multi_head.parts

    def asked(part, batch, length, width, heads, allowed=None, upstream=False, dtype=torch.float32, large=1):
        weights = attention_weights(draw, width * heads)
        x = draw.tensor((batch, length, width * heads), dtype) * large
        more = draw.tensor(x.shape, dtype) if upstream else None

        def play(subject):
            sizes = [width * heads, heads]
            return subject.drive("transformer:attention", sizes, weights, x, allowed, more)

        mask = "no mask" if allowed is None else f"a mask {tuple(allowed.shape)}"
        size = "" if large == 1 else " of large numbers"
        shown = f"x {tuple(x.shape)}{size}, {heads} heads, {mask}"
        places = {"['output']": "the output", "['x']": "the gradient of x"}
        return Case(part, play, shown=shown, places=places)

    def mask(batch, length):
        """Random, but each position sees itself."""
        return draw.tensor((batch, length, length), torch.bool) | torch.eye(length).bool()

    def blind(batch, length, rows):
        hidden = mask(batch, length)
        hidden[-1, rows] = False
        return hidden

    past = torch.ones(1, 5, 5, dtype=torch.bool).tril()
    yield asked(one, 2, 3, draw.integer(2, 5), 1)
    yield asked(one, 1, draw.integer(2, 5), 4, 1)
    yield asked(several, 2, 3, draw.integer(2, 3), draw.integer(2, 4))
    yield asked(several, 1, 1, 2, 3)
    yield asked(several, 3, 4, 3, 4, dtype=torch.float64)
    yield asked(several, 2, 3, 4, 2)
    # scores whose exponentials are beyond all numbers
    yield asked(several, 2, 3, 4, 2, dtype=torch.float64, large=40)
    yield asked(masks, 2, 5, 2, 2, past)
    yield asked(masks, 2, 4, 3, draw.integer(1, 3), mask(2, 4))
    yield asked(masks, 3, 3, 2, 3, mask(1, 3))
    yield asked(masks, 2, 4, 3, 2, mask(2, 4), dtype=torch.float64, large=40)
    yield asked(masks, 2, 2, 2, 2, mask(2, 2))
    yield asked(nothing, 2, 4, 3, 2, blind(2, 4, draw.integer(0, 3)))
    yield asked(nothing, 1, 3, 2, 1, torch.zeros(1, 3, 3, dtype=torch.bool))
    yield asked(nothing, 2, 5, 2, 2, blind(1, 5, [0, 4]))
    exact = {"upstream": True, "dtype": torch.float64}
    yield asked(gradients, 2, 3, 2, 2, None, **exact)
    yield asked(gradients, 2, 5, 2, draw.integer(1, 3), past, **exact)
    yield asked(gradients, 2, 4, 3, 2, blind(2, 4, 1), **exact)


_Right = lab_solution(__name__, "MultiHead")


def _misconception(name, explanation, earns, *edits):
    multi_head.misconception(name, explanation, earns=earns)(edited(_Right, *edits))


_misconception(
    "a view over heads",
    "heads are cut out of positions and channels together, as where (B, T, D) is viewed as"
    " (B, H, T, D/H).",
    1,
    (
        "part.unflatten(-1, (self.n_heads, -1)).transpose(1, 2)",
        "part.reshape(len(x), self.n_heads, x.shape[1], -1)",
    ),
    ("(weights @ v).transpose(1, 2).flatten(2)", "(weights @ v).reshape(x.shape)"),
)
_misconception(
    "heads not put back in order",
    "heads and positions are mixed on the way back, as where the exchanged dimensions stay exchanged.",
    1,
    ("(weights @ v).transpose(1, 2).flatten(2)", "(weights @ v).reshape(x.shape)"),
)
_misconception(
    "heads interleaved",
    "head h has every H-th channel, from h on, and not a row of channels side by side.",
    1,
    (
        "part.unflatten(-1, (self.n_heads, -1)).transpose(1, 2)",
        "part.unflatten(-1, (-1, self.n_heads)).permute(0, 3, 1, 2)",
    ),
    ("(weights @ v).transpose(1, 2).flatten(2)", "(weights @ v).permute(0, 2, 3, 1).flatten(2)"),
)
_misconception(
    "divided by the whole width",
    "scores are divided by the root of D, and not of a head's own channels.",
    1,
    ("math.sqrt(q.shape[-1])", "math.sqrt(x.shape[-1])"),
)
_misconception(
    "divided without a root",
    "scores are divided by D/H, and not by its root.",
    0,
    ("math.sqrt(q.shape[-1])", "q.shape[-1]"),
)
_misconception(
    "cut as a view, put back in order",
    "heads are cut out of positions and channels together, as where (B, T, D) is viewed as"
    " (B, H, T, D/H).",
    1,
    (
        "part.unflatten(-1, (self.n_heads, -1)).transpose(1, 2)",
        "part.reshape(len(x), self.n_heads, x.shape[1], -1)",
    ),
)
_misconception(
    "interleaved, and put side by side",
    "head h has every H-th channel, from h on, and not a row of channels side by side.",
    1,
    (
        "part.unflatten(-1, (self.n_heads, -1)).transpose(1, 2)",
        "part.unflatten(-1, (-1, self.n_heads)).permute(0, 3, 1, 2)",
    ),
)
_misconception(
    "one head of all channels",
    "the channels are not divided among heads.",
    1,
    ("self.n_heads = n_heads", "self.n_heads = 1"),
)
_misconception(
    "zeros after the output",
    "where a row sees nothing, the module's result is zero: it is the sum *before* `output` that is.",
    3,
    (
        "return self.output((weights @ v).transpose(1, 2).flatten(2))",
        "result = self.output((weights @ v).transpose(1, 2).flatten(2))\n"
        "        return result if allowed is None else result * allowed.any(-1, keepdim=True)",
    ),
)
_misconception(
    "causal without a mask",
    "where no mask is handed over, positions after a query are hidden, too.",
    2,
    (
        "weights = scores.softmax(-1)",
        "weights = scores.masked_fill(torch.ones_like(scores[0, 0]).triu(1).bool(), -1e30).softmax(-1)",
    ),
)
_misconception(
    "a transposed mask",
    "`allowed` is read with keys as its rows and queries as its columns.",
    2,
    ("~allowed[:, None]", "~allowed.mT[:, None]"),
)
_misconception(
    "the first sentence's mask",
    "every sentence is given the mask of the first one.",
    2,
    ("~allowed[:, None]", "~allowed[:1, None]"),
)
_misconception(
    "a mask without a dimension for heads",
    "`allowed` has no dimension for the heads: its first one, of sentences, is taken for theirs.",
    2,
    ("~allowed[:, None]", "~allowed"),
)
_misconception(
    "the first sentence's blind rows",
    "which rows see nothing is looked up in the first sentence's mask alone.",
    3,
    (".masked_fill(hidden, 0)", ".masked_fill(hidden[:1].all(-1, keepdim=True), 0)"),
)
_misconception(
    "not scaled",
    "scores are not divided by a root.",
    0,
    (" / math.sqrt(q.shape[-1])", ""),
)
_misconception(
    "softmax over the queries",
    "weights sum to 1 over the queries, and not over the keys.",
    0,
    ("scores.softmax(-1)", "scores.softmax(-2)"),
    (".softmax(-1).masked_fill(hidden, 0)", ".softmax(-2).masked_fill(hidden, 0)"),
)
_misconception(
    "queries and keys exchanged",
    "the keys ask and the queries answer.",
    0,
    ("(self.query(x), self.key(x), self.value(x))", "(self.key(x), self.query(x), self.value(x))"),
)
_misconception(
    "the mask after softmax",
    "what is hidden still takes its share, so that the weights of the rest don't sum to 1.",
    2,
    ("scores.masked_fill(hidden, -1e+30).softmax(-1)", "scores.softmax(-1)"),
)
_misconception(
    "the mask the wrong way round",
    "what may be seen is hidden, and what is hidden is seen.",
    2,
    ("~allowed[:, None]", "allowed[:, None]"),
)
_misconception(
    "NaN where nothing is seen",
    "a row that may look at nothing becomes NaN.",
    3,
    ("-1e+30).softmax(-1).masked_fill(hidden, 0)", "-math.inf).softmax(-1)"),
)
_misconception(
    "NaN in the gradient alone",
    "a row that sees nothing is zero, and its gradient is NaN.",
    4,
    (
        "scores.masked_fill(hidden, -1e+30).softmax(-1).masked_fill(hidden, 0)",
        "(scores + torch.zeros(hidden.shape).masked_fill(hidden, -math.inf)).softmax(-1).nan_to_num()",
    ),
)
_misconception(
    "everything seen where nothing is",
    "a row that may look at nothing sees all positions alike.",
    3,
    ("-1e+30).softmax(-1).masked_fill(hidden, 0)", "-1e30).softmax(-1)"),
)
_misconception(
    "no way back through the keys",
    "nothing flows back through the scores: queries and keys get no gradient that is right.",
    4,
    ("scores = q @ k.transpose(-1, -2)", "scores = (q @ k.transpose(-1, -2)).detach()"),
)


@multi_head.alternate("einsum")
class _Einsum(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.width = d_model // n_heads
        self.query, self.key = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)
        self.value, self.output = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)

    def forward(self, x, allowed=None):
        b, t, d = x.shape
        q = self.query(x).view(b, t, -1, self.width)
        k = self.key(x).view(b, t, -1, self.width)
        v = self.value(x).view(b, t, -1, self.width)
        scores = torch.einsum("bqhc,bkhc->bhqk", q, k) * self.width**-0.5
        if allowed is None:
            allowed = x.new_ones(1, t, t, dtype=torch.bool)
        seen = allowed.unsqueeze(1)
        scores = torch.where(seen, scores, -1e30)
        largest = scores.detach().amax(-1, keepdim=True)
        weights = (scores - largest).exp() * seen
        total = weights.sum(-1, keepdim=True)
        weights = weights / torch.where(total == 0, torch.ones_like(total), total)
        return self.output(torch.einsum("bhqk,bkhc->bqhc", weights, v).reshape(b, t, d))


@multi_head.alternate("head by head")
class _Loop(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        for name in ("query", "key", "value", "output"):
            setattr(self, name, nn.Linear(d_model, d_model))

    def forward(self, x, allowed=None):
        chunks = [m(x).chunk(self.n_heads, -1) for m in (self.query, self.key, self.value)]
        found = []
        for q, k, v in zip(*chunks):
            scores = torch.bmm(q, k.mT) / q.size(-1) ** 0.5
            if allowed is not None:
                scores = torch.where(allowed, scores, torch.finfo(x.dtype).min)
            weights = torch.softmax(scores, 2)
            if allowed is not None:
                weights = weights * allowed
            found.append(torch.bmm(weights, v))
        return self.output(torch.cat(found, 2))


multi_head.equivalent(
    ("transpose(1, 2)", "transpose(2, 1)"),
    ("transpose(-1, -2)", "transpose(-2, -1)"),
    ("transpose(-1, -2)", "transpose(-1, 2)"),
    because="the same two of four dimensions are exchanged",
)
multi_head.equivalent(("-1e+30", "-2e+30"), because="either is far below every score")
multi_head.equivalent(
    ("1, t, t, dtype", "1, t, dtype"),
    because="ones broadcast, and a product with 1 is the same whatever its dtype",
)
multi_head.equivalent(
    ("scores.detach().amax", "scores.amax"),
    because="what is subtracted from a whole row has no gradient: softmax stays as it was",
)
multi_head.equivalent(("total == 0", "total <= 0"), because="no sum of exponentials is below 0")
multi_head.equivalent(
    ("('query', 'key', 'value', 'output')", "('key', 'query', 'value', 'output')"),
    ("('query', 'key', 'value', 'output')", "('query', 'value', 'key', 'output')"),
    ("('query', 'key', 'value', 'output')", "('query', 'key', 'output', 'value')"),
    because="the modules are found by name, whatever their order",
)
