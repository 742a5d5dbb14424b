"""The sizes of MiniGPT."""

from dataclasses import dataclass


@dataclass(frozen=True)
class MiniGPTConfig:
    """A pre-LN decoder-only transformer; the defaults are the course's model.

    Attributes:
        vocab_size: tokens, and the width of the LM head's output.
        d_model: width of the residual stream.
        n_heads: attention heads; each has ``d_model // n_heads`` channels.
        n_layers: transformer blocks.
        d_ff: hidden width of a block's MLP.
        context: longest sequence, in tokens.
    """

    vocab_size: int = 600
    d_model: int = 64
    n_heads: int = 4
    n_layers: int = 2
    d_ff: int = 256
    context: int = 32
