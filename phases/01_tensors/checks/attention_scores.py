"""Lab 01, exercise 9: Attention scores"""

import itertools

import torch

from hood.judge.checks.exercise import Check, case

attention_scores = Check(
    "attention_scores",
    parts={"one head": 1, "several heads": 2},
    reads="matmul, bmm, einsum, rearrange",
)


@attention_scores.reference
def _(x, w_q, w_k, n_heads):
    q = torch.nn.functional.linear(x, w_q).unflatten(-1, (n_heads, -1)).transpose(1, 2)
    k = torch.nn.functional.linear(x, w_k).unflatten(-1, (n_heads, -1)).transpose(1, 2)
    return q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5


@attention_scores.cases
def _(draw):
    for layout, heads in itertools.product(("contiguous", "transposed"), (1, 2, 4)):
        batch, length = draw.sample((2, 3, 5), 2)
        width = heads * draw.choice((3, 5, 6))
        x = draw.tensor((batch, length, width), torch.float32, layout)
        w_q, w_k = (draw.tensor((width, width)) / width**0.5 for _ in "qk")
        yield case("one head" if heads == 1 else "several heads", x, w_q, w_k, heads)
    for heads in (1, 2):
        x, w_q, w_k = (draw.tensor((2 * heads, 2 * heads), torch.float64) for _ in range(3))
        yield case("one head" if heads == 1 else "several heads", x[:1, None], w_q, w_k, heads)
