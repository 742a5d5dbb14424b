"""Lab 03, exercise 3: Embedding"""

import torch
from torch import nn

from utils.checks.exercise import ByHand, Case, Check, edited

from .shared import RAW, RULE, SUMS, places_of_pull, pull, rough, shapes_of

embedding = Check(
    "Embedding",
    parts={"what is registered": 1, "look-up": 1, "refusals": 1},
    reads="Layers are shapes",
    tolerance=SUMS,
    by_hand=ByHand(
        RULE.format("write the look-up yourself"),
        forbid_ops=frozenset({"aten.embedding"}),
        forbid_names=frozenset({"*Embedding*", "*embedding*"}),
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
                "rows apart": not torch.equal(weight[0], weight[1]),
                # of more than 2,000 normal draws, 4.6 of 100 lie beyond 2; uniform ones nowhere
                "deviation": rough(weight.std().item(), 0.2),
                "mean": rough(weight.mean().item(), 0.2),
                "beyond 2": rough((weight.abs() > 2).float().mean().item(), 0.03),
                "every row": bool((weight.std(1) > 0.3).all()),  # of 24 draws or more
                "new each time": not torch.equal(weight, other.get("weight").detach()),
            }

        places = {
            "['saved']": "what is saved",
            "['saved']['weight']": "the table",
            "['trained']": "the table requires no gradient.",
            "['deviation']": "the deviation of the fresh table isn't 1.",
            "['mean']": "the mean of the fresh table isn't 0.",
            "['beyond 2']": "the fresh table isn't drawn from a normal distribution.",
            "['every row']": "a row of the fresh table isn't drawn like the others.",
            "['rows apart']": "two rows of the fresh table are the same.",
            "['new each time']": "two fresh tables are the same.",
        }
        return Case("what is registered", play, places=places)

    def look_up(tokens, weight):
        upstream = draw.tensor((*tokens.shape, weight.shape[1]))

        def play(subject):
            made = subject(*weight.shape)
            made.call("load_state_dict", {"weight": weight})
            return made.call("__call__", tokens), pull(made, upstream, tokens, "weight")

        places = {"[0]": "the rows", **places_of_pull("[1]", weight="the table")}
        return Case("look-up", play, places=places)

    def refused(tokens, weight, shown):
        def play(subject):
            made = subject(*weight.shape)
            made.call("load_state_dict", {"weight": weight})
            return made.call("__call__", tokens)

        return Case("refusals", play, shown=shown, raises="IndexError")

    yield registered(draw.integer(100, 150), draw.integer(24, 30))
    for shape in ((), *(draw.shape(rank) for rank in (1, 2)), (2, 1, 3, 1), (2, 0)):
        rows, width = draw.integer(8, 12), draw.integer(3, 7)
        tokens = draw.tensor(shape, torch.int64).remainder(rows)
        yield look_up(tokens, draw.tensor((rows, width)))
    ends = torch.tensor([[0, rows - 1], [rows - 1, 0]]).T  # the first row and the last
    yield look_up(ends, draw.tensor((rows, width)))
    yield look_up(torch.tensor([[1, 1], [0, 1]]), draw.tensor((3, 4)))
    yield look_up(torch.tensor([0, 0, 0]), draw.tensor((1, 1)))
    weight = draw.tensor((rows, width))
    bad_tokens = (
        ("a token of -1", -1),
        ("a token below -1", draw.integer(2 - rows, -2)),
        ("a token of minus the table's size", -rows),
        ("a token of the table's size", rows),
        ("a token far beyond the table", 100 * rows),
        ("a token of -100", -100),
    )
    # alone, first, in the middle, last
    for shape, at, asked in (((), 0, 6), ((3, 2), 0, 4), ((7, 3), 10, 4), ((3, 2), -1, 4)):
        for shown, token in bad_tokens[:asked]:
            bad = draw.tensor(shape, torch.int64).remainder(rows).reshape(-1)
            bad[at] = token
            yield refused(bad.view(shape), weight, shown)


embedding.misconception(
    "negative tokens wrap",
    "a negative token gave a row: Python, and torch with it, counts such an index from the end.",
    earns=2,
)(edited(_Embedding, ("(tokens < 0).any() or (tokens >= size).any()", "(tokens >= size).any()")))
embedding.misconception(
    "only -1 is refused",
    "a token of -1 is refused, and a smaller one gives a row, counted from the table's end.",
    earns=2,
)(edited(_Embedding, ("(tokens < 0).any()", "(tokens == -1).any()")))
embedding.misconception(
    ".data in forward",
    "the forward reads the table past autograd: the rows are right, and no gradient reaches it.",
    earns=2,
)(edited(_Embedding, ("self.weight[tokens]", "self.weight.data[tokens]")))
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


@embedding.misconception(
    "torch's own layer", "the class is `nn.Embedding`, with a look at the tokens before.", earns=0
)
class _TorchEmbedding(nn.Embedding):
    def forward(self, tokens):
        if (tokens < 0).any():
            raise IndexError("a negative token")
        return super().forward(tokens)


@embedding.misconception("torch's own function", "`F.embedding` does the look-up.", earns=0)
class _FunctionalEmbedding(nn.Module):
    def __init__(self, num_embeddings, embedding_dim):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(num_embeddings, embedding_dim))

    def forward(self, tokens):
        return nn.functional.embedding(tokens, self.weight)


@embedding.alternate("index_select, which refuses by itself, and an attribute named as the layer")
class _SelectEmbedding(nn.Module):
    def __init__(self, num_embeddings, embedding_dim):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(num_embeddings, embedding_dim))
        self.embedding = embedding_dim

    def forward(self, tokens):
        width = self.embedding
        return self.weight.index_select(0, tokens.flatten()).view(*tokens.shape, width)


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


embedding.equivalent(
    ("self.weight[tokens]", "self.weight[tokens].float()"),
    ("view(*tokens.shape, width)", "view(*tokens.shape, width).float()"),
    ("one_hot.float() @ self.weight", "(one_hot.float() @ self.weight).float()"),
    because="the lab asks for nothing but float32 here",
)
embedding.equivalent(
    ("((tokens < 0) | (tokens >= size)).any()", "(tokens < 0).any()"),
    ("tokens >= size", "tokens > size"),
    ("tokens >= size", "tokens == size"),
    because="torch's own indexing refuses what is past the end, with an IndexError",
)
embedding.equivalent(
    ("(tokens < 0) |", "(tokens < 0) ^"), because="no token is both below 0 and past the end"
)
