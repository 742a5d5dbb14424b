"""FLOPs of a model's matrix products by operator, against the length of the sequence."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import torch
from matplotlib.figure import Figure
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode

from utils.notebook.style import CARD, GRADIENT, INK, MUTED, PARAMETER, RULE, STORAGE, VIEW, WIDTH
from utils.views import _interactive
from utils.views._canvas import MARGIN, Canvas, title_height
from utils.views._numbers import count, listed, si
from utils.views._slots import cut

LONGEST, POINTS = 1024, 16  # the longest sequence that is shown, and how many lengths
SAMPLES = 4  # lengths at which the model is called
ATTENTION = ("bmm", "baddbmm")  # products of two activations, for each sequence and head
# Which of an operator's arguments are multiplied.
PRODUCTS = {"mm": (0, 1), "bmm": (0, 1), "addmm": (1, 2), "baddbmm": (1, 2)}
COLOURS = {"addmm": STORAGE, "bmm": GRADIENT, "mm": VIEW, "baddbmm": PARAMETER}
LEFT, RIGHT, HIGH, TEXT = 122, WIDTH - MARGIN - 238, 300, 14
BARS_X, BARS_W = RIGHT + 34, WIDTH - MARGIN - RIGHT - 34
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


class Products(TorchDispatchMode):
    """Counts the FLOPs of matrix products: 2 for each product of two numbers, with its sum."""

    def __init__(self) -> None:
        super().__init__()
        self.flops: dict[str, int] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.overloadpacket.__name__
        if func.namespace == "aten" and name in PRODUCTS:
            a, b = (args[k] for k in PRODUCTS[name])
            self.flops[name] = self.flops.get(name, 0) + 2 * a.numel() * b.shape[-1]
        return func(*args, **(kwargs or {}))


def flops_by_operator(model: nn.Module, tokens: Tensor) -> None:
    """Show the FLOPs of the matrix products of `model(tokens)` by operator; live, the length moves.

    Args:
        model: a MiniGPT, or any module of tokens (batch, length) whose `config` has a `context`,
            the longest sequence. It is called on four lengths; the cost of others follows:
            a product has at most two sizes that are the length.
        tokens: (batch, length), for the batch, and the length at first.

    Raises:
        TypeError: for another model.
        ValueError: for tokens of another shape.
    """
    found = measure(model, tokens)
    start = found.lengths.index(tokens.shape[1])
    _interactive.present(
        lambda k: draw(found, k),
        (start,),
        lambda widgets: [
            widgets.SelectionSlider(
                options=[(str(length), k) for k, length in enumerate(found.lengths)],
                value=start,
                description="length",
            )
        ],
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
    if length > LONGEST:
        raise ValueError(f"flops_by_operator counts up to {LONGEST} tokens, got {length}")
    if context < SAMPLES:
        raise ValueError(f"flops_by_operator needs a context of {SAMPLES} or more, got {context}")
    samples = tuple(context * k // SAMPLES for k in range(1, SAMPLES + 1))
    with torch.random.fork_rng(devices=[]), torch.no_grad(), torch.inference_mode(False):
        heard = [count_products(model, torch.zeros(batch, n, dtype=torch.int64)) for n in samples]
    steps = {LONGEST * k // POINTS for k in range(1, POINTS + 1)}
    lengths = tuple(sorted({1, 2, 4, 8, 16, 32, length} | steps))
    names = [name for name in COLOURS if any(name in counts for counts in heard)]
    curves = {name: _parabola(samples, [counts.get(name, 0) for counts in heard]) for name in names}
    flops = tuple({name: int(curve(n)) for name, curve in curves.items()} for n in lengths)
    return Counted(batch, lengths, flops)


def _parabola(places: Sequence[int], values: Sequence[int]) -> Callable[[int], Fraction]:
    """The polynomial of degree two through the first three points, which the others must be on."""
    (a, b, c), (u, v, w) = places[:3], values[:3]

    def at(n: int) -> Fraction:
        return (
            Fraction(u * (n - b) * (n - c), (a - b) * (a - c))
            + Fraction(v * (n - a) * (n - c), (b - a) * (b - c))
            + Fraction(w * (n - a) * (n - b), (c - a) * (c - b))
        )

    if any(at(n) != value for n, value in zip(places, values, strict=True)):
        raise ValueError("the FLOPs of this model do not grow as the square of the length, or less")
    return at


def count_products(model: nn.Module, tokens: Tensor) -> dict[str, int]:
    """FLOPs by operator of the matrix products in one call."""
    # Fused attention would hide two products in an operator of another name.
    with sdpa_kernel(SDPBackend.MATH), Products() as heard:
        model(tokens)
    return heard.flops


def share(counts: Counts) -> float:
    """Attention's part of the work."""
    return sum(counts.get(name, 0) for name in ATTENTION) / max(1, sum(counts.values()))


def crossing(found: Counted) -> int | None:
    """Return the first counted length at which attention is half of the work or more."""
    return next(
        (
            length
            for length, counts in zip(found.lengths, found.flops, strict=True)
            if share(counts) >= 0.5
        ),
        None,
    )


def draw(found: Counted, chosen: int) -> tuple[Figure, str]:
    """Return the figure with one length lit, and its alternative text."""
    counts, length = found.flops[chosen], found.lengths[chosen]
    words = sentence(found, chosen)
    top = title_height("one line") + 40
    canvas = Canvas(top + HIGH + 62)
    canvas.title(words)
    most = max(max(c.values(), default=1) for c in found.flops)
    scale, ticks = _ticks(most)

    def px(n: float) -> float:
        return LEFT + n / LONGEST * (RIGHT - LEFT)

    def py(flops: float) -> float:
        return top + HIGH * (1 - flops / scale)

    canvas.lines([[(LEFT, py(t)), (RIGHT, py(t))] for t in ticks], colour=RULE, line=0.8)
    for tick in ticks:
        canvas.text(
            LEFT - 8,
            py(tick),
            si(tick, "FLOP") if tick else "0",
            size=TEXT,
            colour=MUTED,
            ha="right",
        )
    for n in (0, 256, 512, 768, 1024):
        canvas.text(px(n), top + HIGH + 16, str(n), size=TEXT, colour=MUTED, ha="center")
    canvas.text(
        (LEFT + RIGHT) / 2,
        top + HIGH + 39,
        "length of the sequence, in tokens",
        size=TEXT,
        colour=MUTED,
        ha="center",
    )
    canvas.text(
        MARGIN, top - 20, f"FLOPs of a forward, batch {found.batch}", size=TEXT, colour=MUTED
    )
    canvas.line([(px(length), top), (px(length), top + HIGH)], colour=INK, line=1, dashed=True)
    for name in found.operators:
        path = [
            (px(n), py(c.get(name, 0))) for n, c in zip(found.lengths, found.flops, strict=True)
        ]
        canvas.line([(px(0), py(0)), *path], colour=COLOURS[name].colour, line=2.4)
        canvas.marker(*path[chosen], "o", size=10, fill=COLOURS[name].colour, edge=CARD)
    _draw_bars(canvas, found.operators, counts, length, top)
    return canvas.finish(), describe(found, chosen, words)


def _draw_bars(
    canvas: Canvas, operators: Sequence[str], counts: Counts, length: int, top: float
) -> None:
    """The work at the lit length, by operator: each a bar of its share."""
    total = max(1, sum(counts.values()))
    canvas.text(BARS_X, top - 20, f"at {count(length, 'token')}", size=TEXT, colour=MUTED)
    boxes, fills = [], []
    for k, name in enumerate(operators):
        y, part = top + 66 * k, COLOURS[name]
        flops = counts.get(name, 0)
        told = "attention" if name in ATTENTION else "layers"
        canvas.text(BARS_X, y + 6, name, size=15, mono=True)
        canvas.text(BARS_X + 62, y + 6, told, size=TEXT, colour=MUTED)
        canvas.text(BARS_X + BARS_W, y + 6, f"{flops / total:.1%}", size=15, ha="right")
        boxes += [(BARS_X, y + 18, BARS_W, 10), (BARS_X, y + 18, BARS_W * flops / total, 10)]
        fills += [part.tint, part.colour]
        canvas.text(
            BARS_X, y + 42, cut(f"{flops:,} FLOP", BARS_W, size=TEXT), size=TEXT, colour=MUTED
        )
    canvas.boxes(boxes, fills, edge="none")
    y = top + 66 * len(operators) + 10
    canvas.text(BARS_X, y, cut(f"{total:,} in all", BARS_W, size=TEXT), size=TEXT)


def _ticks(most: float) -> tuple[float, list[float]]:
    """Return the axis's end and its ticks: three to six steps of 1, 2 or 5 times a power of ten."""
    power = 10.0 ** (len(str(int(most))) - 1)
    step = next(s * power for s in (0.2, 0.5, 1, 2, 5) if most / (s * power) <= 6)
    ticks = [step * k for k in range(int(most / step) + 1)]
    return most * 1.02, ticks


def bends(found: Counted) -> list[str]:
    """Return the operators whose FLOPs are not in proportion to the length."""
    pairs = list(zip(found.lengths, found.flops, strict=True))
    each = {name: {c.get(name, 0) * LONGEST // n for n, c in pairs} for name in found.operators}
    return [name for name, rates in each.items() if len(rates) > 1]


def sentence(found: Counted, chosen: int) -> str:
    """What the lit length and the lines show, as the figure's title, in one line."""
    counts, length = found.flops[chosen], found.lengths[chosen]
    bent = bends(found)
    if not bent:
        lines = "all lines are straight"
    else:
        lines = f"{listed(bent)} {'bends' if len(bent) == 1 else 'bend'}"
        lines += ", the rest is straight" if len(bent) < len(found.operators) else ""
    done = si(sum(counts.values()), "FLOP")
    return f"At {count(length, 'token')} attention is {share(counts):.1%} of {done}: {lines}."


def describe(found: Counted, chosen: int, words: str) -> str:
    """Return the alternative text: the lit length in numbers, and the ends of each line."""
    counts, length = found.flops[chosen], found.lengths[chosen]
    total = max(1, sum(counts.values()))
    parts = [f"FLOPs by operator against the length of the sequence, batch {found.batch}. {words}"]
    for name in found.operators:
        flops = counts.get(name, 0)
        parts.append(
            f"{name}: {flops:,} FLOP, {flops / total:.1%}, at {count(length, 'token')}; "
            f"{found.flops[-1].get(name, 0):,} at {found.lengths[-1]}."
        )
    parts.append(f"In all {sum(counts.values()):,} FLOP, {share(counts):.1%} of it attention.")
    half = crossing(found)
    if half is not None:
        parts.append(f"Of the lengths counted, {half} is the first at which it is half or more.")
    return " ".join(parts)
