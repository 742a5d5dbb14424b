"""Lab 08, exercise 2: Attention in fifty lines"""


import torch
from torch import nn

from hood.judge.checks.exercise import ByHand, Case, Check
from hood.judge.checks.words import counted

from .shared import SUMS, attention_weights

multi_head = Check(
    "MultiHead",
    parts={"one head": 1, "several heads": 1, "masks": 1, "seeing nothing": 1, "gradients": 1},
    reads="Attention in fifty lines",
    tolerance=SUMS,
    by_hand=ByHand(
        because="the exercise asks for attention from linear layers and tensor operations",
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
        shown = f"x {tuple(x.shape)}{size}, {counted(heads, 'head')}, {mask}"
        places = {"['output']": "the output", "['x']": "the gradient of x"}
        return Case(part, play, shown=shown, places=places)

    def mask(batch, length):
        """A random mask in which each position sees itself."""
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
    # scores whose exponentials overflow
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
