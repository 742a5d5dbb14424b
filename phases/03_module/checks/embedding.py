"""Lab 03, exercise 3: Embedding"""

import torch
from torch import nn

from utils.checks import ByHand, Case, Check, edited

from .shared import RAW, shapes_of

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
