"""What several exercises of lab 08 need."""

import torch

from hood.judge.checks.compare import Tolerance

SUMS = Tolerance(1e-4, 1e-5, "float32 sums in another order")


def attention_weights(draw, d_model, shared=None, dtype=torch.float32):
    """The state dict of an attention; keys and values have `shared` channels, d_model if None."""
    wide = {"query": d_model, "key": shared or d_model, "value": shared or d_model}
    found = {}
    for name, out in {**wide, "output": d_model}.items():
        found[f"{name}.weight"] = draw.tensor((out, d_model), dtype) / max(2, d_model**0.5)
        found[f"{name}.bias"] = draw.tensor((out,), dtype)
    return found
