"""Lab 01, exercise 9: Attention scores"""

import itertools
import math

import torch
from einops import rearrange

from utils.checks.exercise import Check, case

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


@attention_scores.misconception(
    "scale forgotten", "the scores are too large by the root of a head's width.", earns=0
)
def _(x, w_q, w_k, n_heads):
    q = rearrange(x @ w_q.T, "b s (h d) -> b h s d", h=n_heads)
    k = rearrange(x @ w_k.T, "b s (h d) -> b h s d", h=n_heads)
    return torch.einsum("bhsd,bhtd->bhst", q, k)


@attention_scores.misconception(
    "scaled by the whole width",
    "the products were divided by the root of d_model; each head is narrower than that.",
    earns=1,
)
def _(x, w_q, w_k, n_heads):
    q = rearrange(x @ w_q.T, "b s (h d) -> b h s d", h=n_heads)
    k = rearrange(x @ w_k.T, "b s (h d) -> b h s d", h=n_heads)
    return torch.einsum("bhsd,bhtd->bhst", q, k) / x.shape[-1] ** 0.5


@attention_scores.misconception(
    "scaled by the number of heads",
    "the products were divided by the root of the number of heads, not of the width of one.",
    earns=0,
)
def _(x, w_q, w_k, n_heads):
    q = rearrange(x @ w_q.T, "b s (h d) -> b h s d", h=n_heads)
    k = rearrange(x @ w_k.T, "b s (h d) -> b h s d", h=n_heads)
    return torch.einsum("bhsd,bhtd->bhst", q, k) / n_heads**0.5


@attention_scores.misconception(
    "divided by the width, not its root",
    "the products were divided by the width of a head itself, not by its root.",
    earns=0,
)
def _(x, w_q, w_k, n_heads):
    q = rearrange(x @ w_q.T, "b s (h d) -> b h s d", h=n_heads)
    k = rearrange(x @ w_k.T, "b s (h d) -> b h s d", h=n_heads)
    return torch.einsum("bhsd,bhtd->bhst", q, k) / q.shape[-1]


@attention_scores.misconception(
    "keys of all heads",
    "the queries of each head met the keys of all heads, added up; a head compares its own.",
    earns=1,
)
def _(x, w_q, w_k, n_heads):
    q = rearrange(x @ w_q.T, "b s (h d) -> b h s d", h=n_heads)
    k = rearrange(x @ w_k.T, "b s (h d) -> b h s d", h=n_heads)
    return torch.einsum("bhsd,bgtd->bhst", q, k) / q.shape[-1] ** 0.5


@attention_scores.misconception(
    "channels dealt out in turn",
    "neighbouring channels went to different heads; a head owns a run of channels.",
    earns=1,
)
def _(x, w_q, w_k, n_heads):
    q = rearrange(x @ w_q.T, "b s (d h) -> b h s d", h=n_heads)
    k = rearrange(x @ w_k.T, "b s (d h) -> b h s d", h=n_heads)
    return torch.einsum("bhsd,bhtd->bhst", q, k) / q.shape[-1] ** 0.5


@attention_scores.misconception(
    "reshaped straight to heads",
    "the scores are as if the heads came from a reshape to (batch, heads, length, …), which cuts "
    "positions, not channels.",
    earns=1,
)
def _(x, w_q, w_k, n_heads):
    batch, length, width = x.shape
    q = (x @ w_q.T).reshape(batch, n_heads, length, width // n_heads)
    k = (x @ w_k.T).reshape(batch, n_heads, length, width // n_heads)
    return torch.einsum("bhsd,bhtd->bhst", q, k) / q.shape[-1] ** 0.5


@attention_scores.misconception(
    "queries and keys exchanged",
    "entry (s, t) holds what belongs at (t, s), how much t asks of s: the table of each head is "
    "the transpose.",
    earns=0,
)
def _(x, w_q, w_k, n_heads):
    q = rearrange(x @ w_q.T, "b s (h d) -> b h s d", h=n_heads)
    k = rearrange(x @ w_k.T, "b s (h d) -> b h s d", h=n_heads)
    return torch.einsum("bhsd,bhtd->bhts", q, k) / q.shape[-1] ** 0.5


@attention_scores.misconception(
    "weights not transposed",
    "the scores are as if x were multiplied by the weights as they are stored; a linear layer "
    "keeps them as (out, in).",
    earns=0,
)
def _(x, w_q, w_k, n_heads):
    q = rearrange(x @ w_q, "b s (h d) -> b h s d", h=n_heads)
    k = rearrange(x @ w_k, "b s (h d) -> b h s d", h=n_heads)
    return torch.einsum("bhsd,bhtd->bhst", q, k) / q.shape[-1] ** 0.5


@attention_scores.misconception(
    "a softmax taken",
    "the scores went through a softmax, so that each row adds up to 1; it comes later.",
    earns=0,
)
def _(x, w_q, w_k, n_heads):
    q = rearrange(x @ w_q.T, "b s (h d) -> b h s d", h=n_heads)
    k = rearrange(x @ w_k.T, "b s (h d) -> b h s d", h=n_heads)
    scores = torch.einsum("bhsd,bhtd->bhst", q, k) / q.shape[-1] ** 0.5
    return torch.softmax(scores, dim=-1)


@attention_scores.misconception(
    "keys' weight not transposed",
    "the keys are as if x were multiplied by their weight as it is stored, (out, in); the queries "
    "are right.",
    earns=0,
)
def _(x, w_q, w_k, n_heads):
    q = rearrange(x @ w_q.T, "b s (h d) -> b h s d", h=n_heads)
    k = rearrange(x @ w_k, "b s (h d) -> b h s d", h=n_heads)
    return torch.einsum("bhsd,bhtd->bhst", q, k) / q.shape[-1] ** 0.5


@attention_scores.misconception(
    "queries' weight not transposed",
    "the queries are as if x were multiplied by their weight as it is stored, (out, in); the keys "
    "are right.",
    earns=0,
)
def _(x, w_q, w_k, n_heads):
    q = rearrange(x @ w_q, "b s (h d) -> b h s d", h=n_heads)
    k = rearrange(x @ w_k.T, "b s (h d) -> b h s d", h=n_heads)
    return torch.einsum("bhsd,bhtd->bhst", q, k) / q.shape[-1] ** 0.5


@attention_scores.misconception(
    "one weight for both", "the keys are as if they were made with the queries' weight.", earns=0
)
def _(x, w_q, w_k, n_heads):
    q = rearrange(x @ w_q.T, "b s (h d) -> b h s d", h=n_heads)
    return torch.einsum("bhsd,bhtd->bhst", q, q) / q.shape[-1] ** 0.5


@attention_scores.misconception(
    "keys that are x itself", "the keys are as if x itself were dealt out to the heads.", earns=0
)
def _(x, w_q, w_k, n_heads):
    q = rearrange(x @ w_q.T, "b s (h d) -> b h s d", h=n_heads)
    k = rearrange(x, "b s (h d) -> b h s d", h=n_heads)
    return torch.einsum("bhsd,bhtd->bhst", q, k) / q.shape[-1] ** 0.5


@attention_scores.misconception(
    "a causal mask",
    "scores of positions that come later are minus infinity, as a causal mask makes them; it "
    "comes later.",
    earns=0,
)
def _(x, w_q, w_k, n_heads):
    q = rearrange(x @ w_q.T, "b s (h d) -> b h s d", h=n_heads)
    k = rearrange(x @ w_k.T, "b s (h d) -> b h s d", h=n_heads)
    scores = torch.einsum("bhsd,bhtd->bhst", q, k) / q.shape[-1] ** 0.5
    later = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
    return scores.masked_fill(later, -math.inf)


@attention_scores.alternate("one einsum with the weights split into heads")
def _(x, w_q, w_k, n_heads):
    w_q = rearrange(w_q, "(h d) m -> h d m", h=n_heads)
    w_k = rearrange(w_k, "(h d) m -> h d m", h=n_heads)
    q = torch.einsum("bsm,hdm->bhsd", x, w_q)
    k = torch.einsum("btm,hdm->bhtd", x, w_k)
    return torch.einsum("bhsd,bhtd->bhst", q, k) * w_q.shape[1] ** -0.5


@attention_scores.alternate("a loop over heads")
def _(x, w_q, w_k, n_heads):
    q, k = x @ w_q.T, x @ w_k.T
    scores = []
    for q_head, k_head in zip(q.chunk(n_heads, -1), k.chunk(n_heads, -1)):
        scores.append(torch.bmm(q_head, k_head.mT) / math.sqrt(q_head.shape[-1]))
    return torch.stack(scores, dim=1)


attention_scores.equivalent(
    ("w_q.shape[1]", "w_k.shape[1]"), because="queries and keys are equally wide"
)
