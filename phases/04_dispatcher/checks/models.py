"""Models with drawn numbers, and their inputs, for exercises 10 and 11 of lab 04."""

import torch

from utils.drivers.derivatives import model_of
from utils.minigpt import MiniGPTConfig, training_lines

MODEL_KEPT = {
    "['kept']['model']": "the call changed the model's parameters or buffers.",
    "['kept']['requires']": "after the call, a parameter of the model requires no gradient.",
    "['kept']['grad']": "the call changed the `.grad` of the model's parameters.",
}


def made(draw, model, sizes, dtype):
    """A state for the model: numbers from `draw` of this dtype, and one tensor for a shared one."""
    new, drawn = model_of(model, sizes), {}
    for one in new.state_dict(keep_vars=True).values():
        if id(one) not in drawn:
            drawn[id(one)] = draw.tensor(tuple(one.shape), dtype)
    return {name: drawn[id(one)] for name, one in new.state_dict(keep_vars=True).items()}


def minigpt(draw, layers, dtype):
    """The sizes of a small MiniGPT, and a state for it."""
    config = MiniGPTConfig(
        vocab_size=draw.integer(7, 12), d_model=4, n_heads=2, n_layers=layers,
        d_ff=draw.integer(5, 9), context=7,
    )  # fmt: skip
    return config, made(draw, config, (), dtype)


def inputs(draw, model, loss, rows, ins, outs, dtype=torch.float64):
    """Inputs and targets for one of the drivers' models. Tokens and classes are below `outs`."""

    def whole(*shape):
        count = torch.Size(shape).numel()
        return torch.tensor([draw.integer(0, outs - 1) for _ in range(count)]).reshape(shape)

    if isinstance(model, MiniGPTConfig):
        return whole(rows, ins), whole(rows, ins)
    if "embedding" in model:
        x = whole(rows, draw.integer(2, 4))
    else:
        x = draw.tensor((rows, 2, ins) if "convolution" in model else (rows, ins), dtype)
    return x, whole(rows) if loss == "cross-entropy" else draw.tensor((rows, outs), dtype)


def trained(rows):
    """Some of the sentences of MiniGPT's training, and their next words."""
    x, targets = training_lines()
    return x[rows, :12], targets[rows, :12]
