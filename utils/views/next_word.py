"""The next word under temperature, top-k and top-p, and which one a uniform number picks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure
from torch import Tensor

from utils.notebook.style import GRADIENT, IDLE, INK, MUTED, VIEW, WIDTH
from utils.views import _interactive
from utils.views._canvas import INNER, MARGIN, Canvas, title_height
from utils.views._text_outlines import clipped

SHOWN, ROW, LABEL, BARS, TEXT = 10, 30, 120, 470, 14
EDGED = 4  # CSS pixels; narrower words on the line have no edge of their own
TEMPERATURES = (0.0, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.3, 1.6, 2.0, 3.0, 5.0)
KS = (1, 2, 3, 4, 5, 6, 8, 10, 20, 50, 0)  # 0: all
PS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0)


@dataclass(frozen=True)
class Choice:
    """What is left of a row of logits: words by their probability, and the one that is picked.

    Attributes:
        order: ids, the likeliest first; equals by their id.
        before: the probability of each, at the temperature, before anything is cut off.
        after: the same after it; what was cut off has 0.
        line: the places of `order` that are left, in the order of their ids, as they lie on the
            line from 0 to 1.
        picked: the one of them that u falls on.
    """

    order: tuple[int, ...]
    before: tuple[float, ...]
    after: tuple[float, ...]
    line: tuple[int, ...]
    picked: int


def next_word(
    logits: Tensor,
    vocabulary: Sequence[str],
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float = 1.0,
    u: float = 0.5,
) -> None:
    """Show the likeliest next words, what is cut off, and the pick; live, all four settings move.

    logits: one row, (V,). vocabulary: the V words. temperature, top_k (None for all) and top_p:
    those that are offered, TEMPERATURES, KS and PS. u: from 0 up to 1, without it.
    Raises ValueError for other settings or shapes.
    """
    row = [float(value) for value in logits.detach().cpu().flatten()]
    if logits.dim() != 1 or len(row) != len(vocabulary) or len(row) < 2:
        raise ValueError(
            f"expected logits of shape ({len(vocabulary)},), one for each word, got "
            f"{tuple(logits.shape)}"
        )
    k = top_k or 0
    if temperature not in TEMPERATURES or k not in KS or top_p not in PS or not 0 <= u < 1:
        raise ValueError(
            f"next_word offers temperatures of {TEMPERATURES}, a top_k of {KS[:-1]} or None, a "
            f"top_p of {PS} and 0 <= u < 1; got {temperature}, {top_k}, {top_p} and {u}"
        )
    dice = sorted({u, *(k / 100 for k in range(100))})
    _interactive.present(
        lambda *settings: draw(row, vocabulary, *settings),
        (temperature, k, top_p, u),
        lambda widgets: [
            widgets.SelectionSlider(options=TEMPERATURES, value=temperature, description="temp."),
            widgets.SelectionSlider(
                options=[(str(k or "all"), k) for k in KS], value=k, description="top k"
            ),
            widgets.SelectionSlider(options=PS, value=top_p, description="top p"),
            widgets.SelectionSlider(
                options=[(f"{one:g}", one) for one in dice], value=u, description="u"
            ),
        ],
    )


def read(logits: Sequence[float], temperature: float, k: int, p: float, u: float) -> Choice:
    """Divide by the temperature, keep the k likeliest, of those the fewest that reach p, pick.

    The words that are left lie on a line from 0 to 1 in the order of their ids, each as wide as
    its probability; u falls on one. Temperature 0 is the limit: everything on the likeliest.
    """
    order = sorted(range(len(logits)), key=lambda word: (-logits[word], word))
    if temperature:
        high = logits[order[0]]
        weights = [math.exp((logits[word] - high) / temperature) for word in order]
    else:
        weights = [1.0] + [0.0] * (len(order) - 1)
    whole = math.fsum(weights)
    before = [weight / whole for weight in weights]
    left = before[: k or len(order)]
    enough, reached, kept = p * math.fsum(left) - 1e-12, 0.0, 0
    while kept < len(left) and (not kept or reached < enough):
        reached += left[kept]
        kept += 1
    share = math.fsum(before[:kept])
    after = [q / share if place < kept else 0.0 for place, q in enumerate(before)]
    line = sorted(range(kept), key=order.__getitem__)
    reached, picked = 0.0, line[0]
    for picked in line:
        reached += after[picked]
        if u < reached:
            break
    return Choice(tuple(order), tuple(before), tuple(after), tuple(line), picked)


def draw(
    logits: Sequence[float],
    vocabulary: Sequence[str],
    temperature: float,
    k: int,
    p: float,
    u: float,
) -> tuple[Figure, str]:
    """The figure for some settings, and its alternative text."""
    found = read(logits, temperature, k, p, u)
    shown = min(SHOWN, len(vocabulary))
    top = title_height("one line") + 12
    canvas = Canvas(top + shown * ROW + 128)
    canvas.title(sentence(found, vocabulary, u))
    left = MARGIN + LABEL
    widest = max(found.before[0], found.after[0])
    for place in range(shown):
        y = top + place * ROW
        before, after = found.before[place], found.after[place]
        kept = after > 0
        lit = place == found.picked
        ink = GRADIENT.colour if lit else INK if kept else MUTED
        word = clipped(vocabulary[found.order[place]])
        canvas.text(left - 10, y + ROW / 2, word, size=TEXT, colour=ink, ha="right")
        box = left, y + 5, max(BARS * before / widest, 1), ROW - 10
        canvas.boxes([box], [IDLE], edge=MUTED, line=0.8, dashed=not kept)
        if kept:
            fill = GRADIENT.colour if lit else VIEW.colour
            canvas.boxes(
                [(left, y + 8, max(BARS * after / widest, 1), ROW - 16)], [fill], edge="none"
            )
        wide = BARS * max(before, after) / widest
        told = share_of(after) if kept else f"{share_of(before)} cut off"
        canvas.text(left + wide + 10, y + ROW / 2, told, size=TEXT, colour=ink)
    rest = sum(found.before[shown:])
    y = top + shown * ROW + 14
    more = len(vocabulary) - shown
    canvas.text(
        left, y, f"{more:,} more words, {rest:.3f} in all before the cut", size=TEXT, colour=MUTED
    )
    y += 46
    _draw_line(canvas, y, found, vocabulary, u)
    return canvas.finish(), describe(found, vocabulary, temperature, k, p, u)


def _draw_line(
    canvas: Canvas, y: float, found: Choice, vocabulary: Sequence[str], u: float
) -> None:
    """The words that are left side by side on a line from 0 to 1, and u on it."""
    start = 0.0
    boxes: dict[bool, list[tuple[float, float, float, float]]] = {True: [], False: []}
    lit = None
    for place in found.line:
        share = found.after[place]
        box = MARGIN + start * INNER, y, share * INNER, 30.0
        boxes[share * INNER > EDGED].append(box)
        lit = box if place == found.picked else lit
        word = clipped(vocabulary[found.order[place]])
        if share * INNER > 9.5 * len(word) + 8:
            middle = MARGIN + (start + share / 2) * INNER
            canvas.text(middle, y + 15, word, size=TEXT, ha="center")
        start += share
    # Hundreds of edges side by side would be nothing but edges.
    canvas.boxes([(MARGIN, y, INNER, 30)], [IDLE], edge=MUTED, line=0.8)
    canvas.boxes(boxes[True], [VIEW.tint] * len(boxes[True]), edge=MUTED, line=0.8)
    if lit:
        canvas.boxes([lit], [GRADIENT.tint], edge=MUTED if lit[2] > EDGED else "none", line=0.8)
    x = MARGIN + u * INNER
    canvas.line([(x, y - 6), (x, y + 36)], colour=GRADIENT.colour, line=2.4)
    side = "right" if u > 0.5 else "left"
    at = x + (-6 if u > 0.5 else 6)
    canvas.text(at, y - 13, f"u = {u:.2f}", size=TEXT, colour=GRADIENT.colour, ha=side)
    canvas.text(MARGIN, y + 47, "0", size=TEXT, colour=MUTED)
    if boxes[False]:
        told = "grey: words too narrow for an edge of their own"
        canvas.text(WIDTH / 2, y + 47, told, size=TEXT, colour=MUTED, ha="center")
    canvas.text(WIDTH - MARGIN, y + 47, "1", size=TEXT, colour=MUTED, ha="right")


def share_of(probability: float) -> str:
    """Three digits, or that it is less."""
    return f"{probability:.3f}" if probability >= 0.0005 else "< 0.001"


def sentence(found: Choice, vocabulary: Sequence[str], u: float) -> str:
    """How many words are left, and the pick, as the figure's title."""
    kept = sum(share > 0 for share in found.after)
    word = clipped(vocabulary[found.order[found.picked]])
    left = "1 word is left" if kept == 1 else f"{kept:,} words are left"
    share = found.after[found.picked]
    return f"{left} of {len(vocabulary):,}; u = {u:.2f} picks “{word}”, {share:.3f}."


def describe(
    found: Choice, vocabulary: Sequence[str], temperature: float, k: int, p: float, u: float
) -> str:
    """The alternative text: the settings and the likeliest words."""
    words = "; ".join(
        f"{vocabulary[found.order[place]]} {found.before[place]:.3f}, "
        + (f"then {found.after[place]:.3f}" if found.after[place] else "cut off")
        for place in range(min(5, len(vocabulary)))
    )
    return (
        f"The next word at temperature {temperature:g}, top k {k or 'all'}, top p {p:g}. "
        f"{sentence(found, vocabulary, u)} The likeliest: {words}."
    )
