"""The FLOPs of a model's matrix products for each operator and length of the sequence."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from utils.notebook.style import CARD, GRADIENT, MUTED, PARAMETER, STORAGE, VIEW
from utils.views._canvas import MARGIN, RIGHT, Axes, Canvas, Drawing, round_steps
from utils.views._numbers import count, require, si
from utils.views._text_outlines import cut
from utils.views._view import present

LONGEST = 1024  # the longest sequence that is shown
SAMPLES = 4  # lengths at which the model is called
ATTENTION = ("bmm", "baddbmm")  # products of two activations, for each sequence and head
COLOURS = {"addmm": STORAGE, "bmm": GRADIENT, "mm": VIEW, "baddbmm": PARAMETER}
LEFT, END, HIGH = 122, RIGHT - 238, 300
BARS_X, BARS_W = END + 34, 204
Counts = Mapping[str, int]


@dataclass(frozen=True)
class Counted:
    """The FLOPs of each operator, in the order of COLOURS, for some lengths."""

    batch: int
    lengths: Sequence[int]
    flops: tuple[Counts, ...]

    @property
    def operators(self) -> list[str]:
        return [name for name in COLOURS if any(name in counts for counts in self.flops)]

    @property
    def half(self) -> int | None:
        """The first length at which attention takes half of the FLOPs or more, or None."""
        pairs = zip(self.lengths, self.flops, strict=True)
        return next((length for length, counts in pairs if share(counts) >= 0.5), None)

    def of(self, name: str) -> list[int]:
        return [counts.get(name, 0) for counts in self.flops]


def flops_by_operator(model: nn.Module, tokens: Tensor) -> None:
    """Show for each length and operator the FLOPs of the matrix products of `model(tokens)`.

    model: a MiniGPT, or another module that takes tokens (batch, length). Its `config` must have a
        `context`, the length of the longest sequence.
    tokens: (batch, length). Their shape gives the batch size, and the length that is described.

    The model is called on four lengths. The counts for other lengths are computed from these four
    calls, because in a product at most two sizes depend on the length. Raises TypeError for another
    model, and ValueError for tokens of another shape.
    """
    counted = measure(model, tokens)
    present(lambda: draw(counted, tokens.shape[1]))


def measure(model: nn.Module, tokens: Tensor) -> Counted:
    """Return the counts of a model at each length up to LONGEST."""
    config = getattr(model, "config", None)
    context = getattr(config, "context", None)
    if not (isinstance(model, nn.Module) and isinstance(context, int)):
        raise TypeError(
            "flops_by_operator needs a model such as MiniGPT, with a config that has a context, "
            f"got {type(model).__name__}"
        )
    if tokens.dim() != 2 or not tokens.numel():
        raise ValueError(f"expected tokens of shape (batch, length), got {tuple(tokens.shape)}")
    batch, length = tokens.shape
    require("flops_by_operator", length, "tokens", LONGEST)
    if context < SAMPLES:
        raise ValueError(f"flops_by_operator needs a context of {SAMPLES} or more, got {context}")
    samples = tuple(context * k // SAMPLES for k in range(1, SAMPLES + 1))
    with torch.random.fork_rng(devices=[]), torch.no_grad(), torch.inference_mode(False):
        heard = [count_products(model, torch.zeros(batch, n, dtype=torch.int64)) for n in samples]
    lengths = range(1, LONGEST + 1)
    sampled = Counted(batch, samples, tuple(heard))
    curves = {name: _parabola(samples, sampled.of(name)) for name in sampled.operators}
    flops = tuple({name: curve(n) for name, curve in curves.items()} for n in lengths)
    return Counted(batch, lengths, flops)


def _parabola(places: Sequence[int], values: Sequence[int]) -> Callable[[int], int]:
    """Return the polynomial of degree two through the points. It computes with whole numbers."""
    curve = np.poly1d(np.polyfit(places, values, 2))
    if any(round(curve(n)) != value for n, value in zip(places, values, strict=True)):
        raise ValueError("the FLOPs of this model are not a polynomial of degree 2 in the length")
    return lambda n: round(curve(n))


def count_products(model: nn.Module, tokens: Tensor) -> dict[str, int]:
    from torch.utils.flop_counter import FlopCounterMode  # here, because it imports Triton

    # Fused attention would hide two products in an operator with another name.
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as heard:
        model(tokens)
    counts = heard.get_flop_counts().get("Global", {})
    return {op.__name__: flops for op, flops in counts.items() if op.__name__ in COLOURS}


def share(counts: Counts) -> float:
    return sum(counts.get(name, 0) for name in ATTENTION) / max(1, sum(counts.values()))


def draw(counted: Counted, length: int) -> Drawing:
    counts = counted.flops[counted.lengths.index(length)]
    every, tokens = sum(counts.values()), count(length, "token")
    overtakes = f"half or more from {counted.half:,} on" if counted.half else "never half"
    canvas = Canvas(f"Attention is {share(counts):.1%} of the FLOPs at {tokens}, {overtakes}.")
    top = canvas.top + 40
    most = max(max(c.values(), default=1) for c in counted.flops)
    axes = Axes(canvas, LEFT, top, END - LEFT, HIGH, x=(0, LONGEST), y=(0, most * 1.02))
    axes.grid_y(round_steps(0, most), lambda tick: si(tick, "FLOP") if tick else "0")
    axes.labels_x((0, 256, 512, 768, 1024))
    words = "length of the sequence, in tokens"
    canvas.text((LEFT + END) / 2, axes.bottom + 39, words, MUTED, "center")
    canvas.text(MARGIN, top - 20, f"FLOPs of a forward, batch {counted.batch}", MUTED)
    if counted.half:
        axes.cursor(counted.half)
        canvas.text(axes.px(counted.half) - 8, top + 8, f"{counted.half:,}", ha="right")
    canvas.text(BARS_X, top - 20, f"at {tokens}", MUTED)
    parts = [
        f"FLOPs by operator against the length of the sequence, batch {counted.batch}. "
        f"{canvas.title}"
    ]
    y, total = top, max(1, every)
    for name in counted.operators:
        part, of, flops = COLOURS[name], counted.of(name), counts.get(name, 0)
        axes.curve((0, *counted.lengths), (0, *of), part.colour, 2.4)
        canvas.marker(axes.px(length), axes.py(flops), "o", 10, part.colour, edge=CARD)
        canvas.text(BARS_X, y + 6, name, size=15, mono=True)
        canvas.text(BARS_X + 62, y + 6, "attention" if name in ATTENTION else "layers", MUTED)
        canvas.text(RIGHT, y + 6, f"{flops / total:.1%}", ha="right", size=15)
        canvas.box((BARS_X, y + 18, BARS_W, 10), part.tint)
        canvas.box((BARS_X, y + 18, BARS_W * flops / total, 10), part.colour)
        canvas.text(BARS_X, y + 42, cut(f"{flops:,} FLOP", BARS_W), MUTED)
        parts.append(
            f"{name}: {flops:,} FLOP, {flops / total:.1%}, at {tokens}; "
            f"{of[-1]:,} at {counted.lengths[-1]}."
        )
        y += 66
    canvas.text(BARS_X, y + 10, cut(f"{total:,} in all", BARS_W))
    parts.append(f"The total is {every:,} FLOP, and {share(counts):.1%} of it is attention.")
    return canvas.finish(axes.bottom + 62, " ".join(parts))
