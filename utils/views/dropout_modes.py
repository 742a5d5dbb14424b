"""What a layer with two modes does to some numbers, in training and in eval."""

from __future__ import annotations

import torch
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from torch import Tensor, nn

from utils.notebook.style import CARD, IDLE, INK, MUTED, STORAGE, VIEW
from utils.views import _interactive
from utils.views._canvas import INNER, MARGIN, Canvas, title_height
from utils.views._numbers import short

MOST = 24  # elements in one picture
LABEL_W, HIGH, ROW = 122, 34, 62
ROOMY = 34  # CSS pixels of a cell that holds a number such as -0.25
DARKEST = 0.55  # how much of a colour the largest number has, so that dark words can be read on it
MODES = (("train", True), ("eval", False))


def dropout_modes(layer: nn.Module, x: Tensor, *, training: bool = True, calls: int = 40) -> None:
    """Show what `layer` makes of `x` in a call, and on average over many; live, both can be moved.

    Args:
        layer: a Dropout, or anything with two modes that keeps a shape; its own mode is left as it
            is.
        x: at most 24 numbers.
        training: the mode at first.
        calls: how many.

    Raises:
        ValueError: for more numbers or none.
        TypeError: for a layer without modes.
    """
    if not isinstance(layer, nn.Module):
        raise TypeError(f"dropout_modes needs an nn.Module, got {type(layer).__name__}")
    flat = x.detach().flatten().float()
    if not 0 < flat.numel() <= MOST:
        raise ValueError(f"dropout_modes shows 1 to {MOST} numbers, got {flat.numel()}")
    if calls < 1:
        raise ValueError(f"dropout_modes needs one call or more, got {calls}")
    _interactive.present(
        lambda mode, many: draw(flat, outputs(layer, flat, mode, many), mode),
        (training, calls),
        lambda widgets: [
            widgets.ToggleButtons(options=MODES, value=training, description="mode"),
            widgets.IntSlider(value=calls, min=1, max=max(200, calls), description="calls"),
        ],
    )


def outputs(layer: nn.Module, x: Tensor, training: bool, calls: int) -> Tensor:
    """(calls, n): what each of so many calls returns; the same for the same arguments."""
    before = [(part, part.training) for part in layer.modules()]
    try:
        layer.train(training)
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            return torch.stack([layer(x.clone()) for _ in range(calls)])
    finally:
        for part, mode in before:
            part.training = mode


def draw(x: Tensor, out: Tensor, training: bool) -> tuple[Figure, str]:
    """Return the figure of some outputs (calls, n), and its alternative text."""
    words = sentence(x, out, training)
    top = title_height(words) + 18
    canvas = Canvas(top + 3 * ROW + 14)
    canvas.title(words)
    most = max(float(x.abs().max()), float(out.abs().max()), 1e-12)
    last = "output of a call" if len(out) == 1 else f"output of call {len(out)}"
    many = "mean of 1 call" if len(out) == 1 else f"mean of {len(out)} calls"
    for k, (label, row) in enumerate((("input", x), (last, out[-1]), (many, out.mean(0)))):
        y = top + k * ROW
        canvas.text(MARGIN, y + HIGH / 2, label, size=12)
        wide = (INNER - LABEL_W) / len(x)
        solid, fills, dropped = [], [], []
        for j, value in enumerate(row.tolist()):
            box = (MARGIN + LABEL_W + j * wide, y, wide - 3, HIGH)
            gone = bool(value == 0 and x[j] != 0)
            part = VIEW if k == 2 else STORAGE
            share = min(abs(value) / most, 1.0)
            if gone:
                dropped.append(box)
            else:
                solid.append(box)
                fills.append(_mix(part.colour, 0.08 + DARKEST * share))
            text = "0" if gone else short(round(value, 2 if wide > ROOMY else 1), 4)
            ink = MUTED if gone else INK
            if wide > 24:
                canvas.text(
                    box[0] + box[2] / 2, y + HIGH / 2, text, size=10, colour=ink, ha="center"
                )
        canvas.boxes(solid, fills, edge="none", line=0, radius=3)
        canvas.boxes(dropped, [CARD] * len(dropped), edge=MUTED, radius=3, dashed=True)
    canvas.note(
        MARGIN + LABEL_W,
        top + 3 * ROW - 14,
        "darker: larger; dashed: dropped" if training else "darker: larger",
    )
    return canvas.finish(), describe(x, out, training, words)


def sentence(x: Tensor, out: Tensor, training: bool) -> str:
    """What the rows show, as the figure's title."""
    if torch.equal(out, x.expand_as(out)):
        mode = "training" if training else "eval"
        return f"In {mode} the layer is not there: what comes out is what went in."
    mode = "In training" if training else "In eval"
    gone = (out[-1] == 0) & (x != 0)
    stays = (out[-1] / x)[~gone & (x != 0)]
    words = f"{mode}, {int(gone.sum())} of {len(x)} are gone"
    if stays.numel() and bool((stays - stays[0]).abs().max() < 1e-4):
        words += f" and the others {short(round(stays[0].item(), 3))} times as large"
    if len(out) > 1:
        error = (out.mean(0) - x).abs().mean() / x.abs().mean()
        words += f"; the mean of {len(out)} calls is on average {error:.0%} off the input"
    return f"{words}."


def describe(x: Tensor, out: Tensor, training: bool, words: str) -> str:
    """Return the alternative text: the three rows in numbers."""
    rows = {"input": x, "last output": out[-1], "mean": out.mean(0)}
    told = "; ".join(
        f"{name} {', '.join(short(round(v, 2), 4) for v in row.tolist())}"
        for name, row in rows.items()
    )
    mode = "training" if training else "eval"
    return f"A layer in {mode} mode over {len(out)} calls. {words} {told}."


def _mix(colour: str, share: float) -> str:
    pairs = zip(to_rgb(IDLE), to_rgb(colour), strict=True)
    red, green, blue = (a + (b - a) * share for a, b in pairs)
    return to_hex((red, green, blue))
