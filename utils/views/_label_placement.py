"""Finds room for a label near its point, so that no two labels lie over one another. No drawing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

Point = tuple[float, float]
TURNS = (20, 0, 45, 90, -20, 160, 180, 135, 70, 110, -160, -45, -90, -135)  # degrees, down is 90


@dataclass(frozen=True)
class Rect:
    """A rectangle in CSS pixels, y growing downward."""

    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: Rect) -> bool:
        return (
            self.left < other.right
            and other.left < self.right
            and self.top < other.bottom
            and other.top < self.bottom
        )

    def within(self, frame: Rect) -> bool:
        return (
            frame.left <= self.left
            and frame.top <= self.top
            and self.right <= frame.right
            and self.bottom <= frame.bottom
        )

    def nearest(self, x: float, y: float) -> tuple[float, float]:
        """Return the point of the rectangle that is nearest to (x, y)."""
        return min(max(x, self.left), self.right), min(max(y, self.top), self.bottom)


def place(
    point: Point,
    width: float,
    height: float,
    taken: Sequence[Rect],
    frame: Rect,
    labels: Sequence[Rect] = (),
) -> Rect:
    """Return the rectangle of this size nearest to `point` that lies in `frame` and meets nothing.

    taken and labels: what it must not meet; a line from the point to it must cross no label.
    Right and below come first at equal distance. Where no room is left, the place right of the
    point, pushed into the frame.
    """
    x, y = point
    for reach in range(14, 420, 6):
        for degrees in TURNS:
            turn = math.radians(degrees)
            dx, dy = math.cos(turn), math.sin(turn)
            left = x + dx * reach - (width if dx < -0.3 else width / 2 if dx < 0.3 else 0)
            top = y + dy * reach - height * (1 - dy) / 2
            found = Rect(left, top, left + width, top + height)
            if not found.within(frame) or any(found.meets(one) for one in (*taken, *labels)):
                continue
            way = along(point, found.nearest(x, y))
            if not any(spot.meets(label) for spot in way for label in labels):
                return found
    left = min(max(x + 12, frame.left), frame.right - width)
    top = min(max(y, frame.top), frame.bottom - height)
    return Rect(left, top, left + width, top + height)


def along(start: Point, end: Point, width: float = 4) -> list[Rect]:
    """Small squares that cover the line from start to end."""
    steps = max(1, math.ceil(math.dist(start, end) / width))
    half = width / 2
    spots = []
    for k in range(steps + 1):
        x = start[0] + (end[0] - start[0]) * k / steps
        y = start[1] + (end[1] - start[1]) * k / steps
        spots.append(Rect(x - half, y - half, x + half, y + half))
    return spots
