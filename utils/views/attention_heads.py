"""One head's attention over a sentence: the whole map, and where one word of it looks."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.colors import LinearSegmentedColormap, to_hex
from matplotlib.figure import Figure
from torch import Tensor

from utils.notebook.style import CARD, GRADIENT, IDLE, INK, MUTED, RULE, VIEW, WIDTH
from utils.views import _interactive
from utils.views._canvas import MARGIN, Canvas, title_height
from utils.views._text_outlines import clipped

MOST = 16  # words
LABEL, MAP, BARS, TEXT = 116, 320, 150, 14
SHADES = LinearSegmentedColormap.from_list("share", [CARD, VIEW.colour])


def attention_heads(
    words: Sequence[str], maps: Tensor, *, head: int = 0, word: int | None = None
) -> None:
    """Show the map of one head, and the shares of the word that is lit; live, both move.

    words: the T tokens, 2 to 16. maps: (layers, heads, T, T) or (layers * heads, T, T); row i says
    how place i shares its look. head: counted through all layers. word: a place, from the end if
    negative; by default the last.
    Raises ValueError for other shapes, rows that do not sum to 1, or a head or word that is not
    there.
    """
    shares = read(words, maps)
    count, names = len(words), head_names(maps)
    place = count - 1 if word is None else word + count * (word < 0)
    if not (0 <= head < len(shares) and 0 <= place < count):
        raise ValueError(
            f"attention_heads: expected a head below {len(shares)} and a word from {-count} to "
            f"{count - 1}, got {head} and {word}"
        )
    _interactive.present(
        lambda one, at: draw(words, shares[one], names[one], at),
        (head, place),
        lambda widgets: [
            widgets.SelectionSlider(
                options=[(name, k) for k, name in enumerate(names)], value=head, description="head"
            ),
            widgets.SelectionSlider(
                options=[(f"{k} {name}", k) for k, name in enumerate(words)],
                value=place,
                description="word",
            ),
        ],
    )


def read(words: Sequence[str], maps: Tensor) -> list[list[list[float]]]:
    """The shares of each head: head, looking place, place looked at."""
    count = len(words)
    if not 2 <= count <= MOST:
        raise ValueError(f"attention_heads needs 2 to {MOST} words, got {count}")
    if maps.dim() not in (3, 4) or maps.shape[-2:] != (count, count):
        raise ValueError(
            f"expected maps of shape (layers, heads, {count}, {count}) for {count} words, got "
            f"{tuple(maps.shape)}"
        )
    flat = maps.detach().float().cpu().reshape(-1, count, count)
    worst = float((flat.sum(-1) - 1).abs().max())
    if not worst < 1e-3:
        raise ValueError(f"expected rows that sum to 1, got one that is off by {worst:.2g}")
    shares: list[list[list[float]]] = flat.tolist()
    return shares


def head_names(maps: Tensor) -> list[str]:
    """ "layer 1, head 1" and so on; of three dimensions "head 1" alone."""
    if maps.dim() == 3:
        return [f"head {k + 1}" for k in range(len(maps))]
    return [
        f"layer {layer + 1}, head {head + 1}"
        for layer in range(maps.shape[0])
        for head in range(maps.shape[1])
    ]


def draw(
    words: Sequence[str], shares: Sequence[Sequence[float]], name: str, place: int
) -> tuple[Figure, str]:
    """The figure of one head with one word lit, and its alternative text."""
    top = title_height("one line") + 30
    canvas = Canvas(top + MAP + 36)
    canvas.title(sentence(words, shares, name, place))
    count = len(words)
    cell, left = MAP / count, MARGIN + LABEL
    boxes = [
        (left + j * cell, top + i * cell, cell, cell) for i in range(count) for j in range(count)
    ]
    fills = [
        to_hex(SHADES(min(share, 1.0))) if j <= i or share > 0 else IDLE
        for i, row in enumerate(shares)
        for j, share in enumerate(row)
    ]
    canvas.boxes(boxes, fills, edge=RULE, line=0.6)
    lit = [(left, top + place * cell), (left + MAP, top + place * cell)]
    edge = [*lit, *((x, y + cell) for x, y in reversed(lit)), lit[0]]
    canvas.line(edge, colour=GRADIENT.colour, line=2.2)
    canvas.text(left, top - 16, "looks at place", size=TEXT, colour=MUTED)
    bars = left + MAP + 24 + LABEL
    canvas.text(
        WIDTH - MARGIN - 8, top - 16, "share of the lit row", size=TEXT, colour=MUTED, ha="right"
    )
    for k, word in enumerate(words):
        y = top + (k + 0.5) * cell
        ink = GRADIENT.colour if k == place else INK
        canvas.text(left - 8, y, f"{clipped(word)} {k}", size=TEXT, colour=ink, ha="right")
        under = left + (k + 0.5) * cell, top + MAP + 16
        canvas.text(*under, str(k), size=TEXT, colour=MUTED, ha="center")
        share = shares[place][k]
        seen = k <= place or share > 0
        told = clipped(word) + f" {k}"
        canvas.text(bars - 8, y, told, size=TEXT, colour=INK if seen else MUTED, ha="right")
        if seen:
            high = min(cell * 0.6, 18)
            canvas.boxes(
                [(bars, y - high / 2, max(BARS * share, 1), high)], [VIEW.colour], edge="none"
            )
            canvas.text(bars + BARS * share + 8, y, f"{share:.2f}", size=TEXT)
    return canvas.finish(), describe(words, shares, name, place)


def sentence(words: Sequence[str], shares: Sequence[Sequence[float]], name: str, place: int) -> str:
    """Where the lit word looks most, as the figure's title."""
    row = shares[place]
    most = max(range(len(row)), key=row.__getitem__)
    at = "itself" if most == place else f"“{clipped(words[most])}”"
    return f"{name.capitalize()}: “{clipped(words[place])}” looks most at {at}, {row[most]:.2f}."


def describe(words: Sequence[str], shares: Sequence[Sequence[float]], name: str, place: int) -> str:
    """The alternative text: the lit row, and the strongest look of each word."""
    row = ", ".join(
        f"{word} {share:.2f}"
        for word, share in zip(words, shares[place], strict=True)
        if share >= 0.01
    )
    strongest = "; ".join(
        f"{word} at {words[max(range(len(words)), key=look.__getitem__)]} {max(look):.2f}"
        for word, look in zip(words, shares, strict=True)
    )
    return (
        f"Attention of one head. {sentence(words, shares, name, place)} Its shares: {row}. "
        f"Each word's strongest look: {strongest}."
    )
