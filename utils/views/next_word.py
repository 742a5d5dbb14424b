"""The next word under temperature, top-k and top-p, and the word that a uniform number picks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from utils.notebook.style import GRADIENT, IDLE, INK, MUTED, VIEW, WIDTH
from utils.views._canvas import INNER, MARGIN, RIGHT, Canvas, Drawing
from utils.views._controls import choice
from utils.views._text_outlines import clipped
from utils.views._view import present

SHOWN, ROW, LEFT, BARS = 10, 30, MARGIN + 120, 470
EDGED = 4  # CSS pixels; narrower words on the line have no edges
TEMPERATURES = (0.0, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.3, 1.6, 2.0, 3.0, 5.0)
KS = (1, 2, 3, 4, 5, 6, 8, 10, 20, 50, 0)  # 0: all
PS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0)


@dataclass(frozen=True)
class Choice:
    """The remaining words of a row of logits, by their probability, and the picked word."""

    # the ids, the likeliest first; words with the same probability are in the order of their ids
    order: tuple[int, ...]
    # the probability of each word at this temperature, before words are cut off
    before: tuple[float, ...]
    after: tuple[float, ...]  # the probability of each word after the cut, 0 for removed words
    # The remaining words, as indices into `order`. They are in the order of their ids, as on the
    # line from 0 to 1.
    line: tuple[int, ...]
    picked: int  # the index of the word at u


def next_word(
    logits: Tensor,
    vocabulary: Sequence[str],
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float = 1.0,
    u: float = 0.5,
) -> None:
    """Show the likeliest next words, the cut, and the pick.

    In a live view, controls set temperature, top_k, top_p and u.

    logits: one row, (V,).
    vocabulary: the V words.
    temperature: one of TEMPERATURES.
    top_k: one of KS, or None for all words.
    top_p: one of PS.
    u: the number that picks the word, at least 0 and below 1.

    Raises ValueError for other settings or shapes.
    """
    row = [float(value) for value in logits.detach().cpu().flatten()]
    if logits.dim() != 1 or len(row) != len(vocabulary) or len(row) < 2:
        raise ValueError(
            f"expected logits of shape ({len(vocabulary)},), one for each word, got "
            f"{tuple(logits.shape)}"
        )
    if not 0 <= u < 1:
        raise ValueError(f"next_word: expected 0 <= u < 1, got {u}")
    draws = sorted({u, *(k / 100 for k in range(100))})
    present(
        lambda *settings: draw(row, vocabulary, *settings),
        choice("temp.", temperature, TEMPERATURES),
        choice("top k", top_k or 0, KS, [str(k or "all") for k in KS]),
        choice("top p", top_p, PS),
        choice("u", u, draws, [f"{one:g}" for one in draws]),
    )


def read(logits: Sequence[float], temperature: float, k: int, p: float, u: float) -> Choice:
    """Divide the logits by the temperature, cut off words, and pick a word.

    The k likeliest words remain, and of these the fewest words that reach the probability p. The
    remaining words are on a line from 0 to 1, in the order of their ids. The width of a word is its
    probability. The picked word is the word at u. At temperature 0, the likeliest word has
    probability 1.
    """
    row = torch.tensor(logits, dtype=torch.float64)
    order = row.argsort(descending=True, stable=True)
    before = (torch.arange(len(row)) == 0).double()
    if temperature:
        before = (row[order] / temperature).softmax(0)
    reached = before[: k or None].cumsum(0)
    kept = min(int((reached < p * reached[-1] - 1e-12).sum()) + 1, len(reached))
    after = before / before[:kept].sum()
    after[kept:] = 0
    line = sorted(range(kept), key=order.tolist().__getitem__)
    picked = line[min(int((after[line].cumsum(0) <= u).sum()), kept - 1)]
    ids, shares, left = (tuple(some.tolist()) for some in (order, before, after))
    return Choice(ids, shares, left, tuple(line), picked)


def draw(
    logits: Sequence[float],
    vocabulary: Sequence[str],
    temperature: float,
    k: int,
    p: float,
    u: float,
) -> Drawing:
    found = read(logits, temperature, k, p, u)
    words = [clipped(vocabulary[id_]) for id_ in found.order]
    kept, share = sum(share > 0 for share in found.after), found.after[found.picked]
    left = "1 word is left" if kept == 1 else f"{kept:,} words are left"
    picks = f"u = {u:.2f} picks “{words[found.picked]}”, {share:.3f}"
    canvas = Canvas(f"{left} of {len(vocabulary):,}; {picks}.")
    top, shown = canvas.top + 12, min(SHOWN, len(vocabulary))
    widest = max(found.before[0], found.after[0])
    for place in range(shown):
        y, before, after = top + place * ROW, found.before[place], found.after[place]
        lit = place == found.picked
        ink = GRADIENT.colour if lit else INK if after else MUTED
        canvas.text(LEFT - 10, y + ROW / 2, words[place], ink, "right")
        box = LEFT, y + 5, max(BARS * before / widest, 1), ROW - 10
        canvas.box(box, IDLE, edge=MUTED, line=0.8, dashed=not after)
        told = f"{share_of(before)} cut off"
        if after:
            told, fill = share_of(after), GRADIENT.colour if lit else VIEW.colour
            canvas.box((LEFT, y + 8, max(BARS * after / widest, 1), ROW - 16), fill)
        wide = BARS * max(before, after) / widest
        canvas.text(LEFT + wide + 10, y + ROW / 2, told, ink)
    y = top + shown * ROW + 14
    more, rest = len(vocabulary) - shown, sum(found.before[shown:])
    canvas.text(LEFT, y, f"{more:,} more words, {rest:.3f} in all before the cut", MUTED)
    _draw_line(canvas, y + 46, found, words, u)
    likeliest = "; ".join(
        f"{vocabulary[found.order[place]]} {found.before[place]:.3f}, "
        + (f"then {found.after[place]:.3f}" if found.after[place] else "cut off")
        for place in range(min(5, len(vocabulary)))
    )
    return canvas.finish(
        y + 114,
        f"The next word at temperature {temperature:g}, top k {k or 'all'}, top p {p:g}. "
        f"{canvas.title} The likeliest: {likeliest}.",
    )


def _draw_line(canvas: Canvas, y: float, found: Choice, words: Sequence[str], u: float) -> None:
    """Draw the remaining words side by side on a line from 0 to 1, and u on this line."""
    x, narrow = float(MARGIN), False
    canvas.box((MARGIN, y, INNER, 30), IDLE, edge=MUTED, line=0.8)
    for place in found.line:
        box = x, y, found.after[place] * INNER, 30.0
        # With hundreds of narrow words side by side, only edges would be visible.
        if box[2] > EDGED:
            canvas.box(box, VIEW.tint, edge=MUTED, line=0.8)
        narrow |= box[2] <= EDGED
        if place == found.picked:
            lit = box
        if box[2] > 9.5 * len(words[place]) + 8:
            canvas.text(x + box[2] / 2, y + 15, words[place], ha="center")
        x += box[2]
    canvas.box(lit, GRADIENT.tint, edge=MUTED if lit[2] > EDGED else "none", line=0.8)
    x = MARGIN + u * INNER
    canvas.line([(x, y - 6), (x, y + 36)], GRADIENT.colour, 2.4)
    at, ha = (x - 6, "right") if u > 0.5 else (x + 6, "left")
    canvas.text(at, y - 13, f"u = {u:.2f}", GRADIENT.colour, ha)
    canvas.text(MARGIN, y + 47, "0", MUTED)
    if narrow:
        told = "grey: words that are too narrow for an edge"
        canvas.text(WIDTH / 2, y + 47, told, MUTED, "center")
    canvas.text(RIGHT, y + 47, "1", MUTED, "right")


def share_of(probability: float) -> str:
    return f"{probability:.3f}" if probability >= 0.0005 else "< 0.001"
