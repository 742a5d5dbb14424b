"""The effect of a layer on some numbers, in training mode and in eval mode."""

from __future__ import annotations

import torch
from matplotlib.colors import to_hex, to_rgb
from torch import Tensor, nn

from utils.notebook.style import CARD, IDLE, INK, MUTED, STORAGE, VIEW
from utils.views._canvas import INNER, MARGIN, Canvas, Drawing
from utils.views._controls import choice, slider
from utils.views._numbers import count, require, short
from utils.views._view import present

MOST = 24  # elements in one picture
LABEL_W, HIGH, ROW = 122, 34, 62
ROOMY = 34  # CSS pixels of a cell that holds a number such as -0.25
DARKEST = 0.55  # the share of colour for the largest number, so that dark text on it is readable


def dropout_modes(layer: nn.Module, x: Tensor, *, training: bool = True) -> None:
    """Show the output of `layer` for `x`, in one call and on average over many calls.

    In a live view, controls set the mode and the number of calls.

    layer: a Dropout, or another module with two modes. Its output must have the shape of its input.
        The module's own mode does not change.
    x: 1 to 24 numbers.
    training: whether the view starts in training mode.

    Raises ValueError for more numbers or no numbers, and TypeError for an object that is no module.
    """
    if not isinstance(layer, nn.Module):
        raise TypeError(f"dropout_modes needs an nn.Module, got {type(layer).__name__}")
    flat = x.detach().flatten().float()
    require("dropout_modes", flat.numel(), "numbers", MOST)
    present(
        lambda mode, many: draw(flat, outputs(layer, flat, mode, many), mode),
        choice("mode", training, (True, False), ("train", "eval"), buttons=True),
        slider("calls", 40, 1, 200),
    )


def outputs(layer: nn.Module, x: Tensor, training: bool, calls: int) -> Tensor:
    """Return the results of the calls, (calls, n). The same arguments give the same results."""
    before = [(part, part.training) for part in layer.modules()]
    try:
        layer.train(training)
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            return torch.stack([layer(x.clone()) for _ in range(calls)])
    finally:
        for part, mode in before:
            part.training = mode


def draw(x: Tensor, out: Tensor, training: bool) -> Drawing:
    """Draw some outputs (calls, n)."""
    canvas = Canvas(sentence(x, out, training))
    y = canvas.top + 18
    most = max(float(x.abs().max()), float(out.abs().max()), 1e-12)
    wide = (INNER - LABEL_W) / len(x)
    last = "output of a call" if len(out) == 1 else f"output of call {len(out)}"
    rows = (
        ("input", "input", x, STORAGE),
        (last, "last output", out[-1], STORAGE),
        (f"mean of {count(len(out), 'call')}", "mean", out.mean(0), VIEW),
    )
    told = []
    for label, name, row, part in rows:
        canvas.text(MARGIN, y + HIGH / 2, label, size=12)
        for j, value in enumerate(row.tolist()):
            box = (MARGIN + LABEL_W + j * wide, y, wide - 3, HIGH)
            gone = bool(value == 0 and x[j] != 0)
            if gone:
                canvas.box(box, CARD, edge=MUTED, radius=3, dashed=True)
            else:
                share = 0.08 + DARKEST * min(abs(value) / most, 1.0)
                pairs = zip(to_rgb(IDLE), to_rgb(part.colour), strict=True)
                red, green, blue = (a + (b - a) * share for a, b in pairs)
                canvas.box(box, to_hex((red, green, blue)), radius=3)
            if wide > 24:
                text = "0" if gone else short(round(value, 2 if wide > ROOMY else 1), 4)
                middle = box[0] + box[2] / 2, y + HIGH / 2
                canvas.text(*middle, text, MUTED if gone else INK, "center", size=10)
        told.append(f"{name} {', '.join(short(round(v, 2), 4) for v in row.tolist())}")
        y += ROW
    key = "darker: larger; dashed: dropped" if training else "darker: larger"
    canvas.note(MARGIN + LABEL_W, y - 14, key)
    mode = "training" if training else "eval"
    return canvas.finish(
        y + 14, f"A layer in {mode} mode over {len(out)} calls. {canvas.title} {'; '.join(told)}."
    )


def sentence(x: Tensor, out: Tensor, training: bool) -> str:
    mode = "In training" if training else "In eval"
    if torch.equal(out, x.expand_as(out)):
        return f"{mode} the layer does nothing: its output is its input."
    gone = (out[-1] == 0) & (x != 0)
    stays = (out[-1] / x)[~gone & (x != 0)]
    words = f"{mode}, {int(gone.sum())} of {len(x)} are gone"
    if stays.numel() and bool((stays - stays[0]).abs().max() < 1e-4):
        words += f" and the others {short(round(stays[0].item(), 3))} times as large"
    if len(out) > 1:
        error = (out.mean(0) - x).abs().mean() / x.abs().mean()
        words += f"; the mean of {len(out)} calls differs from the input by {error:.0%} on average"
    return f"{words}."
