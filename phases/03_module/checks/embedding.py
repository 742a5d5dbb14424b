"""Lab 03, exercise 3: Embedding"""

import torch
from torch import nn

from hood.judge.checks.exercise import ByHand, Case, Check

from .shared import RULE, SUMS, places_of_pull, pull, rough, shapes_of

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
                # 4.6% of the numbers of a normal distribution are beyond 2, and none of a uniform
                # one; the table has more than 2,000 numbers
                "deviation": rough(weight.std().item(), 0.2),
                "mean": rough(weight.mean().item(), 0.2),
                "beyond 2": rough((weight.abs() > 2).float().mean().item(), 0.03),
                "every row": bool((weight.std(1) > 0.3).all()),  # of 24 numbers or more
                "new each time": not torch.equal(weight, other.get("weight").detach()),
            }

        places = {
            "['saved']": "what is saved",
            "['saved']['weight']": "the table",
            "['trained']": "the table requires no gradient.",
            "['deviation']": "the deviation of the fresh table isn't 1.",
            "['mean']": "the mean of the fresh table isn't 0.",
            "['beyond 2']": "the fresh table isn't drawn from a normal distribution.",
            "['every row']": (
                "a row of the fresh table is not drawn from the same distribution as the other "
                "rows."
            ),
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
    # the bad token alone, first, in the middle, last
    for shape, at, asked in (((), 0, 6), ((3, 2), 0, 4), ((7, 3), 10, 4), ((3, 2), -1, 4)):
        for shown, token in bad_tokens[:asked]:
            bad = draw.tensor(shape, torch.int64).remainder(rows).reshape(-1)
            bad[at] = token
            yield refused(bad.view(shape), weight, shown)
