"""Rotary positions: each pair of channels of a query and a key as two hands of a clock."""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch import Tensor

from utils.notebook.style import CARD, GRADIENT, INK, MUTED, RULE, VIEW
from utils.views._canvas import INNER, MARGIN, Canvas, Drawing
from utils.views._controls import slider
from utils.views._view import present

MOST = 8  # pairs
FURTHEST = 40  # positions
ROW, RADIUS = 4, 62  # clocks in a row, and the longest hand in CSS pixels
HIGH = 2 * RADIUS + 62


@dataclass(frozen=True)
class Pair:
    """A pair of channels of a query and a key, before they are rotated."""

    speed: float  # the angle for each position
    query: tuple[float, float]  # length and angle
    key: tuple[float, float]

    def share(self, i: int, j: int) -> float:
        """Return the part of the dot product that this pair gives, at positions i and j."""
        (long, turn), (other, start) = self.query, self.key
        return long * other * math.cos(turn - start + (i - j) * self.speed)


def rotated_pairs(
    query: Tensor, key: Tensor, base: float, *, position: int = 7, distance: int = 3
) -> None:
    """Show how RoPE rotates the pairs of a query and of a key that is `distance` tokens before it.

    In a live view, controls set the query's position and the distance.

    query, key: two vectors of d channels; d is even, from 2 to 16. Channels c and c + d/2 are a
        pair.
    base: the pair c is rotated by base^(-2c/d) for each position.

    Raises ValueError for other shapes, or if a position is not from 0 to 40.
    """
    pairs = read(query, key, base)
    if not 0 <= distance <= position <= FURTHEST:
        raise ValueError(
            f"rotated_pairs: expected 0 <= distance <= position <= {FURTHEST}, got a position of "
            f"{position} and a distance of {distance}"
        )
    present(
        lambda at, back: draw(pairs, max(at, back), back),
        slider("position", position, 0, FURTHEST),
        slider("distance", distance, 0, FURTHEST),
    )


def read(query: Tensor, key: Tensor, base: float) -> list[Pair]:
    """Return the pairs of two vectors."""
    d = len(query) if query.dim() == 1 else 0
    if query.shape != key.shape or d % 2 or not 2 <= d <= 2 * MOST:
        raise ValueError(
            f"rotated_pairs: expected two vectors of the same even size, from 2 to {2 * MOST}, got "
            f"{tuple(query.shape)} and {tuple(key.shape)}"
        )
    half = d // 2
    hands = [
        [(math.hypot(x, y), math.atan2(y, x)) for x, y in zip(one[:half], one[half:], strict=True)]
        for one in (query.tolist(), key.tolist())
    ]
    return [Pair(base ** (-2 * c / d), *both) for c, both in enumerate(zip(*hands, strict=True))]


def draw(pairs: list[Pair], i: int, distance: int) -> Drawing:
    j = i - distance
    score = sum(pair.share(i, j) for pair in pairs)
    canvas = Canvas(f"Query at {i}, key at {j}: the score is {score:.2f}.")
    canvas.legend(MARGIN, canvas.top + 4, [("query", VIEW.colour), ("key", GRADIENT.colour)])
    longest = max(max(pair.query[0], pair.key[0]) for pair in pairs) or 1
    columns = min(ROW, len(pairs))
    step = INNER / columns
    told = []
    for c, pair in enumerate(pairs):
        x = MARGIN + (c % columns + 0.5) * step
        y = canvas.top + 40 + RADIUS + (c // columns) * HIGH
        canvas.marker(x, y, "o", 2 * RADIUS, CARD, edge=RULE)
        angles = []
        for (length, start), at, part in ((pair.query, i, VIEW), (pair.key, j, GRADIENT)):
            reach, angle = RADIUS * length / longest, start + at * pair.speed
            tip = x + reach * math.cos(angle), y - reach * math.sin(angle)
            canvas.line([(x, y), tip], part.colour, 3)
            canvas.marker(*tip, part.marker, 9, part.colour, edge=INK)
            angles.append(math.degrees(angle) % 360)
        between, share = (angles[0] - angles[1]) % 360, pair.share(i, j)
        canvas.text(
            x, y + RADIUS + 16, f"pair {c}, {math.degrees(pair.speed):.3g}° a step", ha="center"
        )
        canvas.text(x, y + RADIUS + 36, f"{between:.0f}° apart: {share:+.2f}", MUTED, "center")
        told.append(
            f"Pair {c}: the query at {angles[0]:.0f}°, the key at {angles[1]:.0f}°, {share:+.2f}."
        )
    bottom = canvas.top + 40 + math.ceil(len(pairs) / columns) * HIGH
    return canvas.finish(
        bottom + 6,
        f"{len(pairs)} pairs of channels, each a clock with two hands. {canvas.title} "
        f"{' '.join(told)} The score is the sum of these numbers, and does not depend on the "
        "position, only on the distance.",
    )
