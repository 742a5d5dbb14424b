"""MiniGPT as a `torch.nn.Module`: the port of `numpy_forward`, line for line.

Shapes: B sequences of T tokens, D channels, H heads of D/H channels, F = MLP width, V words.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from utils.minigpt.config import MiniGPTConfig

Softmax = Callable[[Tensor], Tensor]


class AttentionPattern(nn.Module):
    """softmax(QKᵀ/√d) with a causal mask. A separate module, so that a hook can see its result."""

    def forward(self, q: Tensor, k: Tensor) -> Tensor:
        """q, k: (B, H, T, D/H) -> (B, H, T, T). A row is 0 for later positions, and sums to 1."""
        scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
        length = q.shape[-2]
        future = torch.ones(length, length, dtype=torch.bool, device=q.device).triu(diagonal=1)
        return torch.softmax(scores.masked_fill(future, -math.inf), dim=-1)


class CausalSelfAttention(nn.Module):
    """Multi-head attention in which no position sees a later position."""

    def __init__(self, config: MiniGPTConfig) -> None:
        super().__init__()
        self.n_heads = config.n_heads
        self.query = nn.Linear(config.d_model, config.d_model)
        self.key = nn.Linear(config.d_model, config.d_model)
        self.value = nn.Linear(config.d_model, config.d_model)
        self.pattern = AttentionPattern()
        self.output = nn.Linear(config.d_model, config.d_model)

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, D) -> (B, T, D)."""
        q, k, v = (self._split(part(x)) for part in (self.query, self.key, self.value))
        mixed = self.pattern(q, k) @ v
        return self.output(mixed.transpose(1, 2).reshape(x.shape))

    def _split(self, x: Tensor) -> Tensor:
        """(B, T, D) -> (B, H, T, D/H)."""
        return x.unflatten(-1, (self.n_heads, -1)).transpose(1, 2)


class MLP(nn.Module):
    """Two linear layers with a GELU (tanh form, as in GPT-2) between them."""

    def __init__(self, config: MiniGPTConfig) -> None:
        super().__init__()
        self.up = nn.Linear(config.d_model, config.d_ff)
        self.down = nn.Linear(config.d_ff, config.d_model)

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, D) -> (B, T, D)."""
        return self.down(F.gelu(self.up(x), approximate="tanh"))


class Block(nn.Module):
    """Attention, then the MLP. Each reads a normed copy of the stream, and adds to the stream."""

    def __init__(self, config: MiniGPTConfig) -> None:
        super().__init__()
        self.norm_1 = nn.LayerNorm(config.d_model)
        self.attention = CausalSelfAttention(config)
        self.norm_2 = nn.LayerNorm(config.d_model)
        self.mlp = MLP(config)

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, D) -> (B, T, D)."""
        x = x + self.attention(self.norm_1(x))
        return x + self.mlp(self.norm_2(x))


class MiniGPT(nn.Module):
    """The course's running example: a pre-LN decoder-only transformer with an untied LM head.

    `softmax` turns logits into probabilities over the last dimension. You may replace it at any
    time: ``model.softmax = my_softmax``. The weights of a new model come from torch's global
    generator.
    """

    def __init__(self, config: MiniGPTConfig | None = None) -> None:
        super().__init__()
        self.config = config or MiniGPTConfig()
        width = self.config.d_model
        self.token_embedding = nn.Embedding(self.config.vocab_size, width)
        self.position_embedding = nn.Embedding(self.config.context, width)
        self.blocks = nn.Sequential(*(Block(self.config) for _ in range(self.config.n_layers)))
        self.final_norm = nn.LayerNorm(width)
        self.lm_head = nn.Linear(width, self.config.vocab_size)
        self.softmax: Softmax = partial(torch.softmax, dim=-1)
        self.apply(self._initialise)

    def hidden(self, tokens: Tensor) -> Tensor:
        """Return the last hidden state, which the LM head reads: tokens (B, T) -> (B, T, D)."""
        if tokens.dim() != 2:
            raise ValueError(f"expected tokens of shape (B, T), got {tuple(tokens.shape)}")
        length = tokens.shape[1]
        if length > self.config.context:
            raise ValueError(
                f"expected at most {self.config.context} tokens (the context), got {length}: "
                "shorten the sequence"
            )
        positions = torch.arange(length, device=tokens.device)
        x = self.token_embedding(tokens) + self.position_embedding(positions)
        return self.final_norm(self.blocks(x))

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the logits of each next word: tokens (B, T) of int64 -> (B, T, V)."""
        return self.lm_head(self.hidden(tokens))

    def probabilities(self, tokens: Tensor) -> Tensor:
        """Return the probability of each next word: tokens (B, T) -> (B, T, V)."""
        return self.softmax(self(tokens))

    def _initialise(self, module: nn.Module) -> None:
        """Initialise as in GPT-2: weights are normal with a standard deviation of 0.02.

        The deviation is smaller for layers that add to the stream.
        """
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, std=0.02)
        if isinstance(module, nn.Linear):
            nn.init.zeros_(module.bias)
        if isinstance(module, Block):
            for into_stream in (module.attention.output, module.mlp.down):
                nn.init.normal_(into_stream.weight, std=0.02 / math.sqrt(2 * self.config.n_layers))
