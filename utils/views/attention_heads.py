"""One head's attention over a sentence: the whole map, and the attention of one word."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.colors import LinearSegmentedColormap, to_hex
from torch import Tensor

from utils.notebook.style import CARD, GRADIENT, IDLE, INK, MUTED, RULE, VIEW
from utils.views._canvas import MARGIN, RIGHT, Canvas, Drawing
from utils.views._controls import choice
from utils.views._numbers import require
from utils.views._text_outlines import clipped
from utils.views._view import present

MOST = 16  # words
LABEL, MAP, BARS = 116, 320, 150
SHADES = LinearSegmentedColormap.from_list("share", [CARD, VIEW.colour])


def attention_heads(
    words: Sequence[str], maps: Tensor, *, head: int = 0, word: int | None = None
) -> None:
    """Show the map of one head, and the shares of the lit word.

    In a live view, controls choose the head and the word.

    words: the T tokens, 2 to 16.
    maps: (layers, heads, T, T). Row i is the attention of position i.
    head: the number of the head, counted through all layers.
    word: the position of the lit word, by default the last.

    Raises ValueError for other shapes, for rows that do not sum to 1, or for a head or word that
    does not exist.
    """
    shares, count = read(words, maps), len(words)
    names = [f"layer {k + 1}, head {h + 1}" for k in range(len(maps)) for h in range(maps.shape[1])]
    place = count - 1 if word is None else word
    labels = [f"{k} {name}" for k, name in enumerate(words)]
    present(
        lambda one, at: draw(words, shares[one], names[one], at),
        choice("head", head, range(len(names)), names),
        choice("word", place, range(count), labels),
    )


def read(words: Sequence[str], maps: Tensor) -> list[list[list[float]]]:
    """Return the attention as nested lists: head, query position, key position."""
    count = len(words)
    require("attention_heads", count, "words", MOST, 2)
    if maps.dim() != 4 or maps.shape[-2:] != (count, count):
        raise ValueError(
            f"expected maps of shape (layers, heads, {count}, {count}) for {count} words, got "
            f"{tuple(maps.shape)}"
        )
    flat = maps.detach().float().cpu().reshape(-1, count, count)
    worst = float((flat.sum(-1) - 1).abs().max())
    if not worst < 1e-3:
        raise ValueError(f"expected rows that sum to 1, got one that is off by {worst:.2g}")
    return flat.tolist()


def draw(words: Sequence[str], shares: Sequence[Sequence[float]], name: str, place: int) -> Drawing:
    count, row = len(words), shares[place]
    strongest = [max(range(count), key=look.__getitem__) for look in shares]
    most = strongest[place]
    at = "itself" if most == place else f"“{clipped(words[most])}”"
    lit = f"“{clipped(words[place])}” looks most at {at}, {row[most]:.2f}"
    canvas = Canvas(f"{name.capitalize()}: {lit}.")
    top, cell, left = canvas.top + 30, MAP / count, MARGIN + LABEL
    for i, look in enumerate(shares):
        for j, share in enumerate(look):
            fill = to_hex(SHADES(min(share, 1.0))) if j <= i or share > 0 else IDLE
            canvas.box((left + j * cell, top + i * cell, cell, cell), fill, edge=RULE, line=0.6)
    canvas.box((left, top + place * cell, MAP, cell), "none", edge=GRADIENT.colour, line=2.2)
    canvas.text(left, top - 16, "looks at place", MUTED)
    canvas.text(RIGHT - 8, top - 16, "share of the lit row", MUTED, "right")
    bars, high = left + MAP + 24 + LABEL, min(cell * 0.6, 18)
    for k, (word, share) in enumerate(zip(words, row, strict=True)):
        y, label = top + (k + 0.5) * cell, f"{clipped(word)} {k}"
        canvas.text(left - 8, y, label, GRADIENT.colour if k == place else INK, "right")
        canvas.text(left + (k + 0.5) * cell, top + MAP + 16, str(k), MUTED, "center")
        seen = k <= place or share > 0
        canvas.text(bars - 8, y, label, INK if seen else MUTED, "right")
        if seen:
            canvas.box((bars, y - high / 2, max(BARS * share, 1), high), VIEW.colour)
            canvas.text(bars + BARS * share + 8, y, f"{share:.2f}")
    pairs = zip(words, row, strict=True)
    told = ", ".join(f"{word} {share:.2f}" for word, share in pairs if share >= 0.01)
    looks = "; ".join(
        f"{word} at {words[at]} {look[at]:.2f}"
        for word, at, look in zip(words, strongest, shares, strict=True)
    )
    return canvas.finish(
        top + MAP + 36,
        f"Attention of one head. {canvas.title} Its shares: {told}. "
        f"Each word's strongest look: {looks}.",
    )
