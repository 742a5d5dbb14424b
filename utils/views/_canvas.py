"""A sheet to draw on in CSS pixels, from the top left: what every view's figure is made of.

One axes covers the whole figure, so an x or y of a view is a pixel at 100 % zoom, and things line up exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from matplotlib import font_manager
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.ft2font import FT2Font
from matplotlib.lines import Line2D
from matplotlib.patches import PathPatch
from matplotlib.path import Path

from utils.style import CARD, CSS_DPI, INK, MUTED, RULE, WIDTH, points

MARGIN = 26  # CSS pixels around what a card shows
INNER = WIDTH - 2 * MARGIN
SANS, MONO = "DejaVu Sans", "DejaVu Sans Mono"
TITLE, BODY, SMALL = 18, 13, 11  # CSS pixels
TITLE_LEADING = 25


class Canvas:
    """A figure of WIDTH x `height` CSS pixels; y grows downward."""

    def __init__(self, height: float) -> None:
        self.height = height
        self.figure = Figure(figsize=(WIDTH / CSS_DPI, height / CSS_DPI), dpi=CSS_DPI, facecolor=CARD)
        self.axes = self.figure.add_axes((0, 0, 1, 1))
        self.axes.set_axis_off()
        self.axes.set(xlim=(0, WIDTH), ylim=(height, 0))

    def text(
        self,
        x: float,
        y: float,
        words: str,
        *,
        size: float = BODY,
        colour: str = INK,
        mono: bool = False,
        ha: str = "left",
        va: str = "center_baseline",
    ) -> None:
        self.axes.text(
            x,
            y,
            words,
            fontproperties=_font(mono, size),
            color=colour,
            ha=ha,
            va=va,
            parse_math=False,
        )

    def title(self, words: str) -> float:
        """Write the figure's sentence at the top, wrapped; returns the y below it."""
        lines = wrap(words, INNER, size=TITLE)
        for row, line in enumerate(lines):
            self.text(MARGIN, title_baseline(row), line, size=TITLE, va="baseline")
        return title_height(words)

    def boxes(
        self,
        boxes: Sequence[tuple[float, float, float, float]],
        fills: Sequence[str],
        *,
        edge: str = CARD,
        line: float = 1,
        radius: float = 0,
        dashed: bool = False,
    ) -> None:
        """Rectangles (x, y, width, height), all with one edge and corner radius; storage is square, a view is round."""
        if boxes:
            self.axes.add_collection(
                PathCollection(
                    [_box_path(*box, radius) for box in boxes],
                    facecolors=list(fills),
                    edgecolors=edge,
                    linewidths=points(line),
                    linestyles=(0, (3, 2.4)) if dashed else "solid",
                ),
                autolim=False,
            )

    def line(
        self,
        xs: Sequence[float],
        ys: Sequence[float],
        *,
        colour: str = RULE,
        line: float = 1,
        dashed: bool = False,
    ) -> None:
        style = (0, (3, 2.4)) if dashed else "solid"
        self.axes.add_line(
            Line2D(xs, ys, color=colour, linewidth=points(line), linestyle=style, solid_capstyle="butt")
        )

    def wire(self, corners: Sequence[tuple[float, float]], *, colour: str = INK, line: float = 1.6) -> None:
        """A path along straight pieces with rounded bends, cased in the ground so that it reads over lines."""
        path = _rounded_polyline(corners, 5)
        for tone, width in ((CARD, line + 3), (colour, line)):
            self.axes.add_patch(
                PathPatch(path, fill=False, edgecolor=tone, linewidth=points(width), capstyle="butt")
            )

    def marker(self, x: float, y: float, marker: str, *, size: float, fill: str, edge: str = CARD) -> None:
        self.axes.add_line(
            Line2D([x], [y], marker=marker, markersize=points(size), color=fill, markeredgecolor=edge)
        )

    def note(self, x: float, y: float, words: str, *, ha: str = "left", mono: bool = False) -> None:
        self.text(x, y, words, size=SMALL, colour=MUTED, ha=ha, mono=mono)


def title_baseline(row: int) -> float:
    return MARGIN + 14 + row * TITLE_LEADING


def title_height(words: str) -> float:
    """The y in CSS pixels where the first thing below a title may start."""
    return title_baseline(len(wrap(words, INNER, size=TITLE)) - 1) + 16


def text_width(words: str, *, size: float = BODY, mono: bool = False) -> float:
    """The width of one line of text in CSS pixels."""
    return sum(_advance(letter, mono) for letter in words) * size


def wrap(words: str, width: float, *, size: float = BODY, mono: bool = False) -> list[str]:
    """Break `words` into lines of at most `width` CSS pixels; a longer word stays whole."""
    lines: list[str] = []
    for word in words.split():
        if lines and text_width(f"{lines[-1]} {word}", size=size, mono=mono) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines or [""]


@lru_cache
def _font(mono: bool, size: float) -> FontProperties:
    return FontProperties(family=MONO if mono else SANS, size=points(size))


@lru_cache
def _face(mono: bool) -> FT2Font:
    face = FT2Font(font_manager.findfont(_font(mono, BODY)))
    face.set_size(100, 72)
    return face


@lru_cache(maxsize=1024)
def _advance(letter: str, mono: bool) -> float:
    """The width of one letter as a part of the font size."""
    return _face(mono).load_char(ord(letter)).linearHoriAdvance / 65536 / 100


def _box_path(x: float, y: float, width: float, height: float, radius: float) -> Path:
    corners = [(x, y), (x + width, y), (x + width, y + height), (x, y + height)]
    if not radius:
        return Path([*corners, corners[0]], closed=True)
    return _rounded_polyline([*corners, corners[0]], radius, closed=True)


def _rounded_polyline(corners: Sequence[tuple[float, float]], radius: float, *, closed: bool = False) -> Path:
    """Straight pieces through `corners`, each bend a curve of at most `radius`."""
    points_ = list(corners)
    bends = range(len(points_) - 1) if closed else range(1, len(points_) - 1)
    vertices: list[tuple[float, float]] = [] if closed else [points_[0]]
    codes: list[int] = [] if closed else [Path.MOVETO]
    for at in bends:
        here, after = points_[at], points_[at + 1]
        before = points_[at - 1] if at else points_[-2]
        enter, leave = _towards(here, before, radius), _towards(here, after, radius)
        vertices += [enter, here, leave]
        codes += [Path.LINETO if codes else Path.MOVETO, Path.CURVE3, Path.CURVE3]
    if closed:
        vertices.append(vertices[0])
        codes.append(Path.CLOSEPOLY)
    else:
        vertices.append(points_[-1])
        codes.append(Path.LINETO)
    return Path(vertices, codes)


def _towards(start: tuple[float, float], end: tuple[float, float], reach: float) -> tuple[float, float]:
    """The point `reach` from start towards end, at most half-way."""
    dx, dy = end[0] - start[0], end[1] - start[1]
    length = (dx * dx + dy * dy) ** 0.5
    share = min(reach / length, 0.5) if length else 0
    return start[0] + dx * share, start[1] + dy * share
