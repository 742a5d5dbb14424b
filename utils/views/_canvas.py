"""A sheet to draw on in CSS pixels, from the top left: what every view's figure is made of.

One axes covers the whole figure, so an x or y of a view is a pixel at 100 % zoom, and things
line up exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, TypeVar, cast

import numpy as np
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure
from matplotlib.markers import MarkerStyle
from matplotlib.path import Path

from utils.notebook.audience import text_only
from utils.notebook.style import CARD, CSS_DPI, INK, MUTED, RULE, WIDTH, points
from utils.views._text_outlines import MIDDLE, text_path, wrap

MARGIN = 26  # CSS pixels around what a card shows
INNER = WIDTH - 2 * MARGIN
TITLE, BODY, SMALL = 18, 13, 11  # font sizes in CSS pixels
LEADING = 25  # from one line of a title to the next
DASHES = (0, (3, 2.4))

Box = tuple[float, float, float, float]
Point = tuple[float, float]
Method = TypeVar("Method", bound=Callable[..., None])


def _draws(method: Method) -> Method:
    """Make a method do nothing on a canvas that stays empty."""

    @wraps(method)
    def drawn(canvas: Canvas, *args: Any, **kwargs: Any) -> None:
        if not canvas.unseen:
            method(canvas, *args, **kwargs)

    return cast(Method, drawn)


class Canvas:
    """A figure of WIDTH x `height` CSS pixels; what is drawn later lies over what was before.

    Attributes:
        unseen: whether it stays empty, because nobody looks (`audience.text_only`).
    """

    def __init__(self, height: float) -> None:
        self.height = height
        size = (WIDTH / CSS_DPI, height / CSS_DPI)
        self.figure = Figure(figsize=size, dpi=CSS_DPI, facecolor=CARD)
        self._letters: list[Path] = []
        self._inks: list[str] = []
        self.unseen = text_only()
        if self.unseen:
            return
        self._axes = self.figure.add_axes((0, 0, 1, 1))
        self._axes.set_axis_off()
        self._axes.set(xlim=(0, WIDTH), ylim=(height, 0))

    @_draws
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
    ) -> None:
        """One line of text with the middle of its digits at y; text lies over everything else."""
        baseline = y + MIDDLE * size
        self._letters.append(text_path(x, baseline, words, size=size, mono=mono, ha=ha))
        self._inks.append(colour)

    def note(self, x: float, y: float, words: str, *, ha: str = "left", mono: bool = False) -> None:
        """A small label in the muted colour."""
        self.text(x, y, words, size=SMALL, colour=MUTED, ha=ha, mono=mono)

    @_draws
    def title(self, words: str) -> None:
        """The figure's sentence at the top, in as many lines as it needs (see `title_height`)."""
        for row, line in enumerate(wrap(words, INNER, size=TITLE)):
            self.text(MARGIN, MARGIN + 8 + row * LEADING, line, size=TITLE)

    @_draws
    def boxes(
        self,
        boxes: Sequence[Box],
        fills: Sequence[str],
        *,
        edge: str = CARD,
        line: float = 1,
        radius: float = 0,
        dashed: bool = False,
    ) -> None:
        """Rectangles (x, y, width, height): square ones for storage, round ones for a view."""
        paths = [_box(*box, radius) for box in boxes]
        self._add(paths, fills, edge, line, dashed)

    @_draws
    def polygon(self, corners: Sequence[Point], fill: str) -> None:
        """A filled shape with straight sides."""
        self._add([Path([*corners, corners[0]], closed=True)], [fill], "none", 0, False)

    @_draws
    def line(
        self, path: Sequence[Point], *, colour: str = RULE, line: float = 1, dashed: bool = False
    ) -> None:
        """A path along straight pieces."""
        self._add([Path(path)], ["none"], colour, line, dashed)

    @_draws
    def lines(self, paths: Sequence[Sequence[Point]], *, colour: str, line: float) -> None:
        """Many paths in one colour, drawn at once."""
        self._add([Path(path) for path in paths], ["none"], colour, line, False)

    @_draws
    def wires(
        self, ways: Sequence[Sequence[Point]], *, colour: str = INK, line: float = 1.6
    ) -> None:
        """Paths with rounded bends, cased in the ground so that they read over what they cross."""
        paths = [_rounded(way, 5) for way in ways]
        self._add(paths, ["none"], CARD, line + 3, False)
        self._add(paths, ["none"], colour, line, False)

    @_draws
    def marker(
        self, x: float, y: float, marker: str, *, size: float, fill: str, edge: str = INK
    ) -> None:
        """One of matplotlib's marker shapes, `size` CSS pixels across."""
        style = MarkerStyle(marker)
        path = style.get_path().transformed(style.get_transform())
        vertices: Any = path.vertices
        centred = Path(vertices * (size, -size) + (x, y), path.codes)
        self._add([centred], [fill], edge, 1.2, False)

    def finish(self) -> Figure:
        """Return the figure, with its text set."""
        self._add(self._letters, self._inks, "none", 0, False)
        self._letters, self._inks = [], []
        return self.figure

    def _add(
        self, paths: Sequence[Path], fills: Sequence[str], edge: str, line: float, dashed: bool
    ) -> None:
        if paths and not self.unseen:
            self._axes.add_collection(
                PathCollection(
                    paths,
                    facecolors=list(fills),
                    edgecolors=edge,
                    linewidths=points(line),
                    linestyles=DASHES if dashed else "solid",
                    zorder=len(self._axes.collections),
                    clip_on=False,
                ),
                autolim=False,
            )


def title_height(words: str) -> float:
    """Return the y in CSS pixels where the first thing below a title may start."""
    return MARGIN + 8 + LEADING * len(wrap(words, INNER, size=TITLE))


def _box(x: float, y: float, width: float, height: float, radius: float) -> Path:
    corners = [(x, y), (x + width, y), (x + width, y + height), (x, y + height), (x, y)]
    return _rounded(corners, radius, closed=True) if radius else Path(corners, closed=True)


def _rounded(corners: Sequence[Point], radius: float, *, closed: bool = False) -> Path:
    """Straight pieces through `corners` (a closed path ends where it begins), bends rounded."""
    at = np.asarray(corners, float)
    bends = range(len(at) - 1) if closed else range(1, len(at) - 1)
    vertices = [] if closed else [at[0]]
    for k in bends:
        before = at[k - 1] if k else at[-2]
        vertices += [_towards(at[k], before, radius), at[k], _towards(at[k], at[k + 1], radius)]
    codes = [Path.LINETO, Path.CURVE3, Path.CURVE3] * len(bends)
    if closed:
        return Path([*vertices, vertices[0]], [Path.MOVETO, *codes[1:], Path.CLOSEPOLY])
    return Path([*vertices, at[-1]], [Path.MOVETO, *codes, Path.LINETO])


def _towards(start: np.ndarray, end: np.ndarray, reach: float) -> np.ndarray:
    """Return the point `reach` from start towards end, at most half-way."""
    step = end - start
    length = float(np.hypot(*step))
    return start + step * (min(reach / length, 0.5) if length else 0)
