"""A sheet to draw on in CSS pixels, from the top left. Every view draws its figure on such a sheet.

One matplotlib axes covers the whole figure. So the x and y of a view are pixels at 100 % zoom, and
shapes are aligned exactly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure
from matplotlib.markers import MarkerStyle
from matplotlib.path import Path
from matplotlib.ticker import MaxNLocator

from hood.audience import text_only
from utils.notebook.style import CARD, CSS_DPI, INK, MUTED, RULE, WIDTH, points
from utils.views._text_outlines import MIDDLE, cut, text_path, text_width, wrap

MARGIN = 26  # CSS pixels around the content of a card
INNER = WIDTH - 2 * MARGIN
RIGHT = WIDTH - MARGIN
TITLE, TEXT, SMALL = 18, 14, 11  # font sizes in CSS pixels; in a window of 420, 14 becomes 7
LEADING = 25  # from one line of a title to the next
LINE = 21  # from one line of a paragraph to the next
DASHES = (0, (3, 2.4))
PLAIN = "{:g}".format

Box = tuple[float, float, float, float]
Point = tuple[float, float]
Drawing = tuple[Figure, str]
# an entry of a legend: a name, its fill, and optionally its edge, as for `box`
Kind = tuple[Any, ...]
Shape = tuple[Path, str, str, float, Any]  # a path, its fill, its edge's colour, width and dashes


class Canvas:
    """A figure of WIDTH with a sentence at its top. Later shapes cover earlier shapes.

    title: the sentence, in as many lines as necessary.
    top: the y at which the content below the title may start.
    unseen: whether nobody looks at the sheet (`audience.text_only`). Then it stays empty.
    """

    def __init__(self, title: str) -> None:
        self.title = title
        self.figure = Figure(dpi=CSS_DPI, facecolor=CARD)
        self._shapes: list[Shape] = []
        self._letters: list[Shape] = []
        self.unseen = text_only()
        lines = wrap(title, INNER, size=TITLE)
        self.top: float = MARGIN + 8 + LEADING * len(lines)
        if self.unseen:
            return
        self._axes = self.figure.add_axes((0, 0, 1, 1))
        self._axes.set_axis_off()
        for row, line in enumerate(lines):
            self.text(MARGIN, MARGIN + 8 + row * LEADING, line, size=TITLE)

    def text(
        self,
        x: float,
        y: float,
        words: str,
        colour: str = INK,
        ha: str = "left",
        *,
        size: float = TEXT,
        mono: bool = False,
    ) -> None:
        """Draw one line of text on top of everything, with the middle of its digits at y."""
        if not self.unseen:
            baseline = y + MIDDLE * size
            letters = text_path(x, baseline, words, size=size, mono=mono, ha=ha)
            self._letters.append((letters, colour, "none", 0, "solid"))

    def note(self, x: float, y: float, words: str, ha: str = "left") -> None:
        """Draw a small label in the muted colour."""
        self.text(x, y, words, MUTED, ha, size=SMALL)

    def paragraph(self, y: float, words: str, lines: int, colour: str = INK) -> None:
        """Draw text over the whole width, in at most `lines` lines. The first line is at y."""
        for row, line in enumerate(wrap(words, INNER, size=TEXT)[:lines]):
            self.text(MARGIN, y + LINE * row, cut(line, INNER), colour)

    def box(
        self,
        box: Box,
        fill: str,
        *,
        edge: str = "none",
        line: float = 1,
        radius: float = 0,
        dashed: bool = False,
    ) -> None:
        """Draw a rectangle (x, y, width, height), rounded for a view and square for a storage."""
        self._add(_box(*box, radius), fill, edge, line, dashed)

    def legend(
        self, x: float, y: float, kinds: Sequence[Kind], step: float = 0, size: float = TEXT
    ) -> float:
        """Draw names, each after a square. If `step` is not 0, it is the distance of the squares.

        Returns the x at which the next entry may begin.
        """
        side = 12 if size > SMALL else 10
        for name, fill, *edge in kinds:
            how = dict(zip(("edge", "dashed", "line"), edge, strict=False))
            self.box((x, y - side / 2, side, side), fill, **how)
            self.text(x + 1.5 * side, y, name, MUTED, size=size)
            x += step or 1.5 * side + text_width(name, size=size) + 18
        return x

    def frame(self, box: Box) -> None:
        """Draw the border of a lit cell, with a gap to the cells around it."""
        self.box(box, "none", edge=CARD, line=5)
        self.box(box, "none", edge=INK, line=2.2, radius=3)

    def polygon(self, corners: Sequence[Point], fill: str) -> None:
        """Draw a filled shape with straight sides."""
        self._add(Path([*corners, corners[0]], closed=True), fill)

    def line(
        self, path: Sequence[Point], colour: str = RULE, line: float = 1, *, dashed: bool = False
    ) -> None:
        """Draw a path along straight pieces."""
        self._add(Path(path), "none", colour, line, dashed)

    def wires(self, ways: Sequence[Sequence[Point]], colour: str = INK, line: float = 1.6) -> None:
        """Draw paths with rounded bends. An outline separates them from crossed shapes."""
        for edge, wide in ((CARD, line + 3), (colour, line)):
            for way in ways:
                self._add(_rounded(way, 5), "none", edge, wide)

    def marker(
        self, x: float, y: float, marker: str, size: float, fill: str, edge: str = "none"
    ) -> None:
        """Draw one of matplotlib's marker shapes, `size` CSS pixels across."""
        style = MarkerStyle(marker)
        path = style.get_path().transformed(style.get_transform())
        vertices: Any = path.vertices
        self._add(Path(vertices * (size, -size) + (x, y), path.codes), fill, edge, 1.2)

    def finish(self, height: float, alt: str) -> Drawing:
        """Return the figure, `height` CSS pixels high, and its alternative text.

        The figure's label is the title.
        """
        self.figure.set_label(self.title)
        self.figure.set_size_inches(WIDTH / CSS_DPI, height / CSS_DPI)
        if not self.unseen:
            self._axes.set(xlim=(0, WIDTH), ylim=(height, 0))
            # All shapes are drawn in one collection, because the time of a redraw depends on the
            # number of collections.
            paths, fills, edges, lines, dashes = zip(*self._shapes, *self._letters, strict=True)
            drawn = PathCollection(
                paths,
                facecolors=fills,
                edgecolors=edges,
                linewidths=lines,
                linestyles=dashes,
                clip_on=False,
            )
            self._axes.add_collection(drawn, autolim=False)
        return self.figure, alt

    def _add(
        self, path: Path, fill: str, edge: str = "none", line: float = 0, dashed: bool = False
    ) -> None:
        if not self.unseen:
            wide = 0 if edge == "none" else points(line)
            self._shapes.append((path, fill, edge, wide, DASHES if dashed else "solid"))


def _box(x: float, y: float, width: float, height: float, radius: float) -> Path:
    corners = [(x, y), (x + width, y), (x + width, y + height), (x, y + height), (x, y)]
    return _rounded(corners, radius, closed=True) if radius else Path(corners, closed=True)


def _rounded(corners: Sequence[Point], radius: float, *, closed: bool = False) -> Path:
    """Return a path through `corners` with rounded bends. A closed path repeats its start."""
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
    """Return the point at the distance `reach` from start towards end, but at most half-way."""
    step = end - start
    length = float(np.hypot(*step))
    return start + step * (min(reach / length, 0.5) if length else 0)


class Axes:
    """A frame on `canvas`, `wide` x `high`, whose top left corner is at (left, top).

    x, y: (lowest, highest) number of the axis, with lowest < highest. On a logarithmic axis, both
        are above 0.
    log: the names of the logarithmic axes.
    """

    def __init__(
        self,
        canvas: Canvas,
        left: float,
        top: float,
        wide: float,
        high: float,
        *,
        x: tuple[float, float],
        y: tuple[float, float],
        log: Literal["", "x", "y", "xy"] = "",
    ) -> None:
        self.canvas = canvas
        self.left, self.top, self.right, self.bottom = left, top, left + wide, top + high
        self._x, self._y, self._log = x, y, log

    def px(self, x: float) -> float:
        """Return the pixel of a number on the x axis."""
        return self.left + _share(x, *self._x, "x" in self._log) * (self.right - self.left)

    def py(self, y: float) -> float:
        """Return the pixel of a number on the y axis, never far outside the frame."""
        share = min(max(_share(y, *self._y, "y" in self._log), -1.0), 2.0)
        return self.bottom - share * (self.bottom - self.top)

    def grid_y(self, values: Sequence[float], label: Callable[[float], str] = PLAIN) -> None:
        """Draw a hairline for each value, and a label to the left of the frame."""
        for value in values:
            y = self.py(value)
            self.canvas.line([(self.left, y), (self.right, y)], RULE, 0.8)
            self.canvas.text(self.left - 8, y, label(value), MUTED, "right")

    def labels_x(self, values: Sequence[float], label: Callable[[float], str] = PLAIN) -> None:
        """Draw a label below the frame for each value."""
        for value in values:
            self.canvas.text(self.px(value), self.bottom + 16, label(value), MUTED, "center")

    def steps_x(self, unit: str, end: float = RIGHT, room: float = 60) -> None:
        """Draw round numbers below the frame, and the label of the axis, which ends at `end`."""
        places = round_steps(*self._x)
        self.labels_x([x for x in places if x >= self._x[0] and self.px(x) < end - room])
        self.canvas.text(end, self.bottom + 16, unit, MUTED, "right")

    def cursor(self, x: float, reach: float = 0) -> None:
        """Draw a dashed line at a number of the x axis. It extends `reach` beyond the frame."""
        at = self.px(x)
        self.canvas.line([(at, self.top - reach), (at, self.bottom + reach)], INK, dashed=True)

    def curve(self, xs: Sequence[float], ys: Sequence[float], colour: str, line: float = 2) -> None:
        """Draw a curve through the points. It is cut at the frame, and has gaps at inf and NaN."""
        finite = [math.isfinite(y) for y in ys]
        inside = [
            min(max(self.py(y), self.top - 1), self.bottom + 1) if ok else math.nan
            for y, ok in zip(ys, finite, strict=True)
        ]
        points = list(zip(map(self.px, xs), inside, strict=True))
        self.canvas.line(points, colour, line)
        around = zip([False, *finite], finite, [*finite[1:], False], strict=False)
        for (x, y), near in zip(points, around, strict=True):
            if near == (False, True, False):  # a single point, to which no line can be drawn
                self.canvas.box((x - 2, y - 2, 4, 4), colour)


def _share(value: float, low: float, high: float, log: bool) -> float:
    if log:
        value = math.log(value) if value > 0 else math.log(low)
        low, high = math.log(low), math.log(high)
    return (value - low) / (high - low)


def decades(low: float, high: float, most: int = 20) -> list[float]:
    """Return powers of ten in [low, high], evenly spaced and at most `most`."""
    powers = range(math.ceil(math.log10(low)), math.floor(math.log10(high)) + 1)
    return [10.0**power for power in powers if power % -(-len(powers) // most) == 0]


def round_steps(low: float, high: float, about: int = 5) -> list[float]:
    """Return round numbers from `low` to `high`, such as 0, 50, 100: roughly `about` of them."""
    if not low < high:
        return [low]
    ticks = MaxNLocator(about, steps=(1, 2, 5, 10), min_n_ticks=1).tick_values(low, high)
    edge = 1e-9 * (high - low)
    return [round(float(at), 12) for at in ticks if low - edge <= at <= high + edge]
