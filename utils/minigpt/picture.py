"""Pictures of MiniGPT's attention."""

from __future__ import annotations

from typing import TYPE_CHECKING

from utils.minigpt.generation import Attention
from utils.notebook.figures import show
from utils.notebook.style import CARD, CSS_DPI, INK, RULE, WIDTH, course_style, points

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure
    from torch import Tensor

LABEL = points(11)
NUMBERS_FROM = 0.05  # smaller shares are left to the colour


def attention_picture(attention: Attention, *, position: int | None = None) -> None:
    """Show where MiniGPT looks: the whole map of every head, or one position's share in each head.

    Args:
        attention: as `generate(..., return_attention=True)` returns it.
        position: index of a word in `attention.words`, negative from the end. The word that is
            written next is the one after it, so the verb is decided at the subject's last word.

    Raises:
        ValueError: if the sentence has no such position.
    """
    if position is None:
        figure, alt = draw_maps(attention)
    else:
        figure, alt = draw_position(attention, position)
    show(figure, alt=alt)


def draw_maps(attention: Attention) -> tuple[Figure, str]:
    """Draw a map for each head: row i is the position that looks, column j where it looks."""
    from matplotlib.figure import Figure

    layers, heads, length, _ = attention.maps.shape
    with course_style():
        cell = (WIDTH - 150) / heads / length
        height = layers * (cell * length + 24) + 120
        figure = Figure(figsize=(WIDTH / CSS_DPI, height / CSS_DPI))
        grid = figure.subplots(layers, heads, squeeze=False, sharex=True, sharey=True)
        for layer in range(layers):
            for head in range(heads):
                axes = grid[layer][head]
                _colour(axes, attention.maps[layer, head])
                axes.set_aspect("equal")
                axes.set_title(_name(layer, head), fontsize=points(12), pad=points(6))
                _words_below(axes, attention, show_words=layer == layers - 1)
        for row in grid:
            row[0].set_yticks([i + 0.5 for i in range(length)], attention.words, fontsize=LABEL)
        figure.suptitle(
            "No word looks ahead; each head looks back in its own way", x=0.03, ha="left", color=INK
        )
    looks = "; ".join(
        _strongest(attention, layer, head) for layer in range(layers) for head in range(heads)
    )
    alt = (
        f"Attention of {layers} layers with {heads} heads over the words "
        f"“{' '.join(attention.words)}”, a triangle each, for no word sees a later one. "
        f"The strongest look at another word: {looks}."
    )
    return figure, alt


def draw_position(attention: Attention, position: int) -> tuple[Figure, str]:
    """Draw a row for each head: how one position shares its look among words up to itself."""
    from matplotlib.figure import Figure

    words = attention.words
    if not -len(words) <= position < len(words):
        raise ValueError(
            f"expected a position from {-len(words)} to {len(words) - 1}, got {position}"
        )
    position %= len(words)
    layers, heads, _, _ = attention.maps.shape
    seen = words[: position + 1]
    rows = attention.maps[:, :, position, : position + 1].reshape(layers * heads, -1)
    names = [_name(layer, head) for layer in range(layers) for head in range(heads)]
    with course_style():
        height = 34 * len(rows) + 150
        figure = Figure(figsize=(WIDTH / CSS_DPI, height / CSS_DPI))
        axes = figure.subplots()
        _colour(axes, rows)
        for (row, column), share in _shares(rows):
            ink = CARD if share > 0.5 else INK
            place = (column + 0.5, row + 0.5)
            axes.annotate(f"{share:.2f}", place, ha="center", va="center", color=ink, size=LABEL)
        axes.set_xticks([i + 0.5 for i in range(len(seen))], seen)
        axes.set_yticks([i + 0.5 for i in range(len(rows))], names)
        axes.tick_params(length=0)
        axes.xaxis.tick_top()
        most = seen[int(rows.mean(0).argmax())]
        written = f"Before “{words[position + 1]}”" if position + 1 < len(words) else "At the end"
        axes.set_title(f"{written}, MiniGPT looks most at “{most}”")
    said = "; ".join(
        f"{name} {seen[int(row.argmax())]} {float(row.max()):.2f}"
        for name, row in zip(names, rows, strict=True)
    )
    alt = (
        f"{written}, at “{seen[-1]}”, how each head shares its look among “{' '.join(seen)}”. "
        f"Largest shares: {said}."
    )
    return figure, alt


def _colour(axes: Axes, shares: Tensor) -> None:
    axes.pcolormesh(
        shares.numpy(), cmap=_ink(), vmin=0, vmax=1, edgecolors=RULE, linewidth=points(0.5)
    )
    axes.set_ylim(len(shares), 0)
    axes.spines[:].set_visible(False)


def _ink() -> Colormap:
    """Return a colour map from the card's ground to the ink; attention has no colour of its own."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("ink", [CARD, INK])


def _words_below(axes: Axes, attention: Attention, *, show_words: bool) -> None:
    axes.tick_params(length=0, labelbottom=show_words)
    places = [i + 0.5 for i in range(len(attention.words))]
    axes.set_xticks(places, attention.words, rotation=90, fontsize=LABEL)


def _name(layer: int, head: int) -> str:
    return f"layer {layer + 1}, head {head + 1}"


def _strongest(attention: Attention, layer: int, head: int) -> str:
    """Return, in words, the largest share of a head that is not a word's look at itself."""
    shares = attention.maps[layer, head].tril(diagonal=-1)
    looking, at = divmod(int(shares.argmax()), shares.shape[-1])
    words, share = attention.words, float(shares[looking, at])
    return f"{_name(layer, head)}, “{words[looking]}” at “{words[at]}” {share:.2f}"


def _shares(rows: Tensor) -> list[tuple[tuple[int, int], float]]:
    """Return the shares that get a number: ((row, column), share)."""
    return [
        ((row, column), float(rows[row, column]))
        for row in range(rows.shape[0])
        for column in range(rows.shape[1])
        if rows[row, column] >= NUMBERS_FROM
    ]
