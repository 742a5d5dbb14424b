"""MiniGPT's forward pass in NumPy: the reference that every other version must agree with.

The functions are pure, take a dict of weights, and follow the order of the paper (Vaswani et al.,
"Attention Is All You Need", 2017). Three things are as in GPT-2: the norms come first, there is no
encoder, and positions are learned.

Shapes: B sequences of T tokens, D channels, H heads of D/H channels, F = MLP width, V words.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from utils.minigpt.config import MiniGPTConfig

Array = NDArray[np.floating]
Weights = Mapping[str, Array]

EPSILON = 1e-5  # added under the root of a norm, as in torch.nn.LayerNorm


class Forward(NamedTuple):
    """The results of a forward pass."""

    residual: Array  # (n_layers + 1, B, T, D), the stream after the embeddings and after each block
    # (n_layers, B, H, T, T), the attention of each position to itself and to earlier positions
    attention: Array
    hidden: Array  # (B, T, D), the last hidden state: the stream after the final norm
    logits: Array  # (B, T, V)


def forward(weights: Weights, tokens: NDArray[np.integer], config: MiniGPTConfig) -> Forward:
    """Run MiniGPT on tokens (B, T) in the dtype of the weights. T is at most `config.context`."""
    x = embed(weights, tokens)
    residual, attention = [x], []
    for index in range(config.n_layers):
        x, probabilities = block(part(weights, f"blocks.{index}"), x, config.n_heads)
        residual.append(x)
        attention.append(probabilities)
    hidden = layer_norm(part(weights, "final_norm"), x)
    logits = linear(part(weights, "lm_head"), hidden)
    return Forward(np.stack(residual), np.stack(attention), hidden, logits)


def embed(weights: Weights, tokens: NDArray[np.integer]) -> Array:
    """Return the word's row plus the position's row: (B, T) -> (B, T, D)."""
    words, positions = weights["token_embedding.weight"], weights["position_embedding.weight"]
    return words[tokens] + positions[: tokens.shape[1]]


def block(weights: Weights, x: Array, n_heads: int) -> tuple[Array, Array]:
    """Attention, then the MLP, each added to the stream: (B, T, D) -> (B, T, D), (B, H, T, T)."""
    mixed, probabilities = causal_attention(
        part(weights, "attention"), layer_norm(part(weights, "norm_1"), x), n_heads
    )
    x = x + mixed
    return x + mlp(part(weights, "mlp"), layer_norm(part(weights, "norm_2"), x)), probabilities


def causal_attention(weights: Weights, x: Array, n_heads: int) -> tuple[Array, Array]:
    """softmax(QKᵀ/√d) V in each head: (B, T, D) -> (B, T, D) and the softmax (B, H, T, T)."""
    q, k, v = (
        split_heads(linear(part(weights, name), x), n_heads) for name in ("query", "key", "value")
    )
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1], dtype=q.dtype)
    length = x.shape[1]
    future = np.triu(np.ones((length, length), dtype=bool), k=1)
    probabilities = softmax(np.where(future, -np.inf, scores))
    return linear(part(weights, "output"), merge_heads(probabilities @ v)), probabilities


def mlp(weights: Weights, x: Array) -> Array:
    """Widen to F channels, apply GELU, narrow again: (B, T, D) -> (B, T, D)."""
    return linear(part(weights, "down"), gelu(linear(part(weights, "up"), x)))


def split_heads(x: Array, n_heads: int) -> Array:
    """(B, T, D) -> (B, H, T, D/H)."""
    batch, length, width = x.shape
    return x.reshape(batch, length, n_heads, width // n_heads).swapaxes(1, 2)


def merge_heads(x: Array) -> Array:
    """(B, H, T, D/H) -> (B, T, D)."""
    batch, n_heads, length, width = x.shape
    return x.swapaxes(1, 2).reshape(batch, length, n_heads * width)


def linear(weights: Weights, x: Array) -> Array:
    """x Wᵀ + b with W (out, in): (..., in) -> (..., out)."""
    return x @ weights["weight"].T + weights["bias"]


def layer_norm(weights: Weights, x: Array) -> Array:
    """Mean 0 and variance 1 over the channels, then scale and shift: (..., D) -> (..., D)."""
    centred = x - x.mean(-1, keepdims=True)
    variance = (centred**2).mean(-1, keepdims=True)
    return centred / np.sqrt(variance + EPSILON) * weights["weight"] + weights["bias"]


def gelu(x: Array) -> Array:
    """GELU in the tanh form, as in GPT-2 (Hendrycks and Gimpel, 2016), for any shape."""
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def softmax(x: Array) -> Array:
    """Return softmax over the last dimension. Subtracting the maximum prevents overflow."""
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def part(weights: Weights, name: str) -> dict[str, Array]:
    """Return the weights whose names begin with `name`, without this prefix."""
    prefix = f"{name}."
    return {
        key.removeprefix(prefix): array for key, array in weights.items() if key.startswith(prefix)
    }
