"""Two axes on a sheet: numbers to CSS pixels, a grid with its labels, and curves cut at the frame.

What the views of phase 07 draw their curves with.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from utils.notebook.style import MUTED, RULE
from utils.views._canvas import Canvas, Point

TEXT = 14  # CSS pixels: 7 where the sheet is 420 wide


class Axes:
    """A frame of `canvas` from (left, top), `wide` x `high`; y may be logarithmic.

    x, y: (lowest, highest) number; lowest < highest, above 0 on a logarithmic axis.
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
        log: bool = False,
    ) -> None:
        self.canvas = canvas
        self.left, self.top, self.right, self.bottom = left, top, left + wide, top + high
        self._x, self._log = x, log
        self._y = (math.log(y[0]), math.log(y[1])) if log else y

    def px(self, x: float) -> float:
        """The pixel of a number on the x axis."""
        low, high = self._x
        return self.left + (x - low) / (high - low) * (self.right - self.left)

    def py(self, y: float) -> float:
        """The pixel of a number on the y axis, never far outside the frame."""
        low, high = self._y
        if self._log:
            y = math.log(y) if y > 0 else low
        share = min(max((y - low) / (high - low), -1.0), 2.0)
        return self.bottom - share * (self.bottom - self.top)

    def grid_y(self, values: Sequence[float], labels: Sequence[str]) -> None:
        """A hairline and a label, left of the frame, for each value."""
        for value, label in zip(values, labels, strict=True):
            y = self.py(value)
            self.canvas.line([(self.left, y), (self.right, y)], colour=RULE, line=0.8)
            self.canvas.text(self.left - 8, y, label, size=TEXT, colour=MUTED, ha="right")

    def labels_x(self, values: Sequence[float], labels: Sequence[str]) -> None:
        """A label below the frame for each value."""
        for value, label in zip(values, labels, strict=True):
            x = self.px(value)
            self.canvas.text(x, self.bottom + 16, label, size=TEXT, colour=MUTED, ha="center")

    def curve(
        self,
        xs: Sequence[float],
        ys: Sequence[float],
        *,
        colour: str,
        line: float = 2,
        dashed: bool = False,
    ) -> None:
        """A curve through the points, cut at the frame and broken where a value is not finite."""
        piece: list[Point] = []
        for x, y in zip(xs, ys, strict=True):
            if math.isfinite(y):
                inside = min(max(self.py(y), self.top - 1), self.bottom + 1)
                piece.append((self.px(x), inside))
            elif piece:
                self._draw(piece, colour, line, dashed)
                piece = []
        self._draw(piece, colour, line, dashed)

    def _draw(self, piece: Sequence[Point], colour: str, line: float, dashed: bool) -> None:
        if len(piece) > 1:
            self.canvas.line(piece, colour=colour, line=line, dashed=dashed)
        elif piece:
            x, y = piece[0]
            self.canvas.boxes([(x - 2, y - 2, 4, 4)], [colour], edge="none")


def round_steps(low: float, high: float, about: int = 5) -> list[float]:
    """Round numbers from `low` to `high`, about so many: 0, 50, 100, ..."""
    if not low < high:
        return [low]
    raw = (high - low) / about
    power = 10.0 ** math.floor(math.log10(raw))
    step = power * next(k for k in (1, 2, 5, 10) if k * power >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [round(k * step, 12) for k in range(first, last + 1)]
