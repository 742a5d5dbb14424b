"""A sheet to draw on in CSS pixels, from the top left: what every view's figure is made of.

One axes covers the whole figure, so an x or y of a view is a pixel at 100 % zoom, and things
line up exactly.
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

MARGIN = 26  # CSS pixels around what a card shows
INNER = WIDTH - 2 * MARGIN
RIGHT = WIDTH - MARGIN
TITLE, TEXT, SMALL = 18, 14, 11  # font sizes in CSS pixels; 14 is 7 where the sheet is 420 wide
LEADING = 25  # from one line of a title to the next
LINE = 21  # from one line of a paragraph to the next
DASHES = (0, (3, 2.4))
PLAIN = "{:g}".format

Box = tuple[float, float, float, float]
Point = tuple[float, float]
Drawing = tuple[Figure, str]
Kind = tuple[Any, ...]  # of a legend: a name, its fill, and if it has one the edge as `box` has it
Shape = tuple[Path, str, str, float, Any]  # a path, its fill, its edge's colour, width and dashes


class Canvas:
    """A figure of WIDTH, with a sentence at its top; what is drawn later lies over what was before.

    title: the sentence, which takes as many lines as it needs. top: where the first thing below it
    may start. unseen: whether the sheet stays empty, because nobody looks (`audience.text_only`).
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
        """One line of text with the middle of its digits at y; text lies over everything else."""
        if not self.unseen:
            baseline = y + MIDDLE * size
            letters = text_path(x, baseline, words, size=size, mono=mono, ha=ha)
            self._letters.append((letters, colour, "none", 0, "solid"))

    def note(self, x: float, y: float, words: str, ha: str = "left") -> None:
        """A small label in the muted colour."""
        self.text(x, y, words, MUTED, ha, size=SMALL)

    def paragraph(self, y: float, words: str, lines: int, colour: str = INK) -> None:
        """Words over the whole width, from the line at y on, at most so many lines of them."""
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
        """A rectangle (x, y, width, height): a square one for storage, a round one for a view."""
        self._add(_box(*box, radius), fill, edge, line, dashed)

    def legend(
        self, x: float, y: float, kinds: Sequence[Kind], step: float = 0, size: float = TEXT
    ) -> float:
        """A square before each name, `step` from one to the next, or as far as the words need.

        Returns where a next one may begin.
        """
        side = 12 if size > SMALL else 10
        for name, fill, *edge in kinds:
            how = dict(zip(("edge", "dashed", "line"), edge, strict=False))
            self.box((x, y - side / 2, side, side), fill, **how)
            self.text(x + 1.5 * side, y, name, MUTED, size=size)
            x += step or 1.5 * side + text_width(name, size=size) + 18
        return x

    def frame(self, box: Box) -> None:
        """A lit cell's border, set off from the cells around it."""
        self.box(box, "none", edge=CARD, line=5)
        self.box(box, "none", edge=INK, line=2.2, radius=3)

    def polygon(self, corners: Sequence[Point], fill: str) -> None:
        """A filled shape with straight sides."""
        self._add(Path([*corners, corners[0]], closed=True), fill)

    def line(
        self, path: Sequence[Point], colour: str = RULE, line: float = 1, *, dashed: bool = False
    ) -> None:
        """A path along straight pieces."""
        self._add(Path(path), "none", colour, line, dashed)

    def wires(self, ways: Sequence[Sequence[Point]], colour: str = INK, line: float = 1.6) -> None:
        """Paths with rounded bends, cased in the ground so that they read over what they cross."""
        for edge, wide in ((CARD, line + 3), (colour, line)):
            for way in ways:
                self._add(_rounded(way, 5), "none", edge, wide)

    def marker(
        self, x: float, y: float, marker: str, size: float, fill: str, edge: str = "none"
    ) -> None:
        """One of matplotlib's marker shapes, `size` CSS pixels across."""
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
            # In one go: what a redraw costs is the number of collections.
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


class Axes:
    """A frame of `canvas` from (left, top), `wide` x `high`.

    x, y: (lowest, highest) number; lowest < highest, above 0 on a logarithmic axis. log: the names
    of those.
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
        """The pixel of a number on the x axis."""
        return self.left + _share(x, *self._x, "x" in self._log) * (self.right - self.left)

    def py(self, y: float) -> float:
        """The pixel of a number on the y axis, never far outside the frame."""
        share = min(max(_share(y, *self._y, "y" in self._log), -1.0), 2.0)
        return self.bottom - share * (self.bottom - self.top)

    def grid_y(self, values: Sequence[float], label: Callable[[float], str] = PLAIN) -> None:
        """A hairline and a label, left of the frame, for each value."""
        for value in values:
            y = self.py(value)
            self.canvas.line([(self.left, y), (self.right, y)], RULE, 0.8)
            self.canvas.text(self.left - 8, y, label(value), MUTED, "right")

    def labels_x(self, values: Sequence[float], label: Callable[[float], str] = PLAIN) -> None:
        """A label below the frame for each value."""
        for value in values:
            self.canvas.text(self.px(value), self.bottom + 16, label(value), MUTED, "center")

    def steps_x(self, unit: str, end: float = RIGHT, room: float = 60) -> None:
        """Round numbers below the frame, and what they count, which ends at `end`."""
        places = round_steps(*self._x)
        self.labels_x([x for x in places if x >= self._x[0] and self.px(x) < end - room])
        self.canvas.text(end, self.bottom + 16, unit, MUTED, "right")

    def cursor(self, x: float, reach: float = 0) -> None:
        """A dashed line at a number of the x axis, which goes so far beyond the frame."""
        at = self.px(x)
        self.canvas.line([(at, self.top - reach), (at, self.bottom + reach)], INK, dashed=True)

    def curve(self, xs: Sequence[float], ys: Sequence[float], colour: str, line: float = 2) -> None:
        """A curve through the points, cut at the frame and broken where a value is not finite."""
        finite = [math.isfinite(y) for y in ys]
        inside = [
            min(max(self.py(y), self.top - 1), self.bottom + 1) if ok else math.nan
            for y, ok in zip(ys, finite, strict=True)
        ]
        points = list(zip(map(self.px, xs), inside, strict=True))
        self.canvas.line(points, colour, line)
        around = zip([False, *finite], finite, [*finite[1:], False], strict=False)
        for (x, y), near in zip(points, around, strict=True):
            if near == (False, True, False):  # nothing to draw a line to
                self.canvas.box((x - 2, y - 2, 4, 4), colour)


def _share(value: float, low: float, high: float, log: bool) -> float:
    if log:
        value = math.log(value) if value > 0 else math.log(low)
        low, high = math.log(low), math.log(high)
    return (value - low) / (high - low)


def decades(low: float, high: float, most: int = 20) -> list[float]:
    """Powers of ten in [low, high], thinned to at most `most`."""
    powers = range(math.ceil(math.log10(low)), math.floor(math.log10(high)) + 1)
    return [10.0**power for power in powers if power % -(-len(powers) // most) == 0]


def round_steps(low: float, high: float, about: int = 5) -> list[float]:
    """Round numbers from `low` to `high`, about so many: 0, 50, 100, ..."""
    if not low < high:
        return [low]
    ticks = MaxNLocator(about, steps=(1, 2, 5, 10), min_n_ticks=1).tick_values(low, high)
    edge = 1e-9 * (high - low)
    return [round(float(at), 12) for at in ticks if low - edge <= at <= high + edge]
