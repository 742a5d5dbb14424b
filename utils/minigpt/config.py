"""The sizes of MiniGPT."""

from dataclasses import dataclass


@dataclass(frozen=True)
class MiniGPTConfig:
    """The sizes of a pre-LN decoder-only transformer. The defaults are the course's model."""

    vocab_size: int = 600  # number of tokens, which is also the width of the LM head's output
    d_model: int = 64  # width of the residual stream
    n_heads: int = 4  # attention heads; each has ``d_model // n_heads`` channels
    n_layers: int = 2  # transformer blocks
    d_ff: int = 256  # hidden width of a block's MLP
    context: int = 32  # longest sequence, in tokens


def parameter_shapes(config: MiniGPTConfig) -> dict[str, tuple[int, ...]]:
    """Return the shape of every parameter by name, in the order of the forward pass.

    A linear layer's weight is (out, in), as in PyTorch.
    """
    width, wide = config.d_model, config.d_ff
    shapes: dict[str, tuple[int, ...]] = {
        "token_embedding.weight": (config.vocab_size, width),
        "position_embedding.weight": (config.context, width),
    }

    def linear(name: str, into: int, out: int) -> None:
        shapes[f"{name}.weight"], shapes[f"{name}.bias"] = (out, into), (out,)

    def norm(name: str) -> None:
        shapes[f"{name}.weight"] = shapes[f"{name}.bias"] = (width,)

    for index in range(config.n_layers):
        block = f"blocks.{index}"
        norm(f"{block}.norm_1")
        for part in ("query", "key", "value", "output"):
            linear(f"{block}.attention.{part}", width, width)
        norm(f"{block}.norm_2")
        linear(f"{block}.mlp.up", width, wide)
        linear(f"{block}.mlp.down", wide, width)
    norm("final_norm")
    linear("lm_head", width, config.vocab_size)
    return shapes


def parameter_count(config: MiniGPTConfig) -> int:
    """Return the number of parameters by a formula. For the defaults it is 179,544.

    With V = vocab_size, D = d_model, L = n_layers, F = d_ff, T = context:

        V·D + T·D                                   embeddings
        + L · (4·(D² + D) + (D·F + F) + (F·D + D)   attention, MLP up, MLP down
               + 2·2·D)                             two norms
        + 2·D + D·V + V                             final norm, LM head
    """
    v, d, f = config.vocab_size, config.d_model, config.d_ff
    block = 4 * (d * d + d) + (d * f + f) + (f * d + d) + 4 * d
    return v * d + config.context * d + config.n_layers * block + 2 * d + d * v + v
