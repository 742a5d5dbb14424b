"""FLOPs of a model's matrix products by operator, against the length of the sequence."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from utils.notebook.style import CARD, GRADIENT, MUTED, PARAMETER, STORAGE, VIEW
from utils.views._canvas import MARGIN, RIGHT, Axes, Canvas, Drawing, round_steps
from utils.views._controls import choice
from utils.views._numbers import count, listed, require, si
from utils.views._text_outlines import cut
from utils.views._view import present

LONGEST, POINTS = 1024, 16  # the longest sequence that is shown, and how many lengths
SAMPLES = 4  # lengths at which the model is called
ATTENTION = ("bmm", "baddbmm")  # products of two activations, for each sequence and head
COLOURS = {"addmm": STORAGE, "bmm": GRADIENT, "mm": VIEW, "baddbmm": PARAMETER}
LEFT, END, HIGH = 122, RIGHT - 238, 300
BARS_X, BARS_W = END + 34, 204
Counts = Mapping[str, int]


@dataclass(frozen=True)
class Counted:
    """FLOPs by operator, in the order of COLOURS, at each length."""

    batch: int
    lengths: tuple[int, ...]
    flops: tuple[Counts, ...]

    @property
    def operators(self) -> list[str]:
        return [name for name in COLOURS if any(name in counts for counts in self.flops)]

    def of(self, name: str) -> list[int]:
        return [counts.get(name, 0) for counts in self.flops]


def flops_by_operator(model: nn.Module, tokens: Tensor) -> None:
    """Show the FLOPs of the matrix products of `model(tokens)` by operator; live, the length moves.

    model: a MiniGPT, or any module of tokens (batch, length) whose `config` has a `context`, the
    longest sequence. It is called on four lengths; the cost of others follows: a product has at
    most two sizes that are the length. tokens: (batch, length), for the batch, and the length at
    first. Raises TypeError for another model; ValueError for tokens of another shape.
    """
    found = measure(model, tokens)
    start, places = found.lengths.index(tokens.shape[1]), range(len(found.lengths))
    present(
        lambda k: draw(found, k), choice("length", start, places, list(map(str, found.lengths)))
    )


def measure(model: nn.Module, tokens: Tensor) -> Counted:
    """What a model of this config counts at each length, the one of `tokens` among them."""
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
    steps = {LONGEST * k // POINTS for k in range(1, POINTS + 1)}
    lengths = tuple(sorted({1, 2, 4, 8, 16, 32, length} | steps))
    sampled = Counted(batch, samples, tuple(heard))
    curves = {name: _parabola(samples, sampled.of(name)) for name in sampled.operators}
    flops = tuple({name: curve(n) for name, curve in curves.items()} for n in lengths)
    return Counted(batch, lengths, flops)


def _parabola(places: Sequence[int], values: Sequence[int]) -> Callable[[int], int]:
    """The polynomial of degree two through the points, in whole numbers."""
    curve = np.poly1d(np.polyfit(places, values, 2))
    if any(round(curve(n)) != value for n, value in zip(places, values, strict=True)):
        raise ValueError("the FLOPs of this model do not grow as the square of the length, or less")
    return lambda n: round(curve(n))


def count_products(model: nn.Module, tokens: Tensor) -> dict[str, int]:
    from torch.utils.flop_counter import FlopCounterMode  # here, because it imports Triton

    # Fused attention would hide two products in an operator of another name.
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as heard:
        model(tokens)
    counts = heard.get_flop_counts().get("Global", {})
    return {op.__name__: flops for op, flops in counts.items() if op.__name__ in COLOURS}


def share(counts: Counts) -> float:
    return sum(counts.get(name, 0) for name in ATTENTION) / max(1, sum(counts.values()))


def draw(found: Counted, chosen: int) -> Drawing:
    counts, length = found.flops[chosen], found.lengths[chosen]
    every, tokens = sum(counts.values()), count(length, "token")
    bent = bends(found)
    lines = "all lines are straight"
    if bent:
        lines = f"{listed(bent)} {'bends' if len(bent) == 1 else 'bend'}"
        lines += ", the rest is straight" if len(bent) < len(found.operators) else ""
    attention = f"attention is {share(counts):.1%} of {si(every, 'FLOP')}"
    canvas = Canvas(f"At {tokens} {attention}: {lines}.")
    top = canvas.top + 40
    most = max(max(c.values(), default=1) for c in found.flops)
    axes = Axes(canvas, LEFT, top, END - LEFT, HIGH, x=(0, LONGEST), y=(0, most * 1.02))
    axes.grid_y(round_steps(0, most), lambda tick: si(tick, "FLOP") if tick else "0")
    axes.labels_x((0, 256, 512, 768, 1024))
    words = "length of the sequence, in tokens"
    canvas.text((LEFT + END) / 2, axes.bottom + 39, words, MUTED, "center")
    canvas.text(MARGIN, top - 20, f"FLOPs of a forward, batch {found.batch}", MUTED)
    axes.cursor(length)
    canvas.text(BARS_X, top - 20, f"at {tokens}", MUTED)
    parts = [
        f"FLOPs by operator against the length of the sequence, batch {found.batch}. {canvas.title}"
    ]
    y, total = top, max(1, every)
    for name in found.operators:
        part, of = COLOURS[name], found.of(name)
        axes.curve((0, *found.lengths), (0, *of), part.colour, 2.4)
        canvas.marker(axes.px(length), axes.py(of[chosen]), "o", 10, part.colour, edge=CARD)
        flops = of[chosen]
        canvas.text(BARS_X, y + 6, name, size=15, mono=True)
        canvas.text(BARS_X + 62, y + 6, "attention" if name in ATTENTION else "layers", MUTED)
        canvas.text(RIGHT, y + 6, f"{flops / total:.1%}", ha="right", size=15)
        canvas.box((BARS_X, y + 18, BARS_W, 10), part.tint)
        canvas.box((BARS_X, y + 18, BARS_W * flops / total, 10), part.colour)
        canvas.text(BARS_X, y + 42, cut(f"{flops:,} FLOP", BARS_W), MUTED)
        parts.append(
            f"{name}: {flops:,} FLOP, {flops / total:.1%}, at {tokens}; "
            f"{of[-1]:,} at {found.lengths[-1]}."
        )
        y += 66
    canvas.text(BARS_X, y + 10, cut(f"{total:,} in all", BARS_W))
    parts.append(f"In all {every:,} FLOP, {share(counts):.1%} of it attention.")
    half = (n for n, c in zip(found.lengths, found.flops, strict=True) if share(c) >= 0.5)
    if first := next(half, None):
        parts.append(f"Of the lengths counted, {first} is the first at which it is half or more.")
    return canvas.finish(axes.bottom + 62, " ".join(parts))


def bends(found: Counted) -> list[str]:
    """Return the operators whose FLOPs are not in proportion to the length."""
    each = {
        name: {flops * LONGEST // n for n, flops in zip(found.lengths, found.of(name), strict=True)}
        for name in found.operators
    }
    return [name for name, rates in each.items() if len(rates) > 1]
