"""Memory's slope and compute's ceiling, and where an op lies under them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from utils.notebook.style import CARD, INK, KERNEL, MUTED, STORAGE
from utils.views._canvas import RIGHT, Canvas, Drawing, Point
from utils.views._numbers import si
from utils.views._text_outlines import text_width
from utils.views._view import choice, present

Points = Mapping[str, Sequence[float]]
BATCHES = tuple(2**power for power in range(15))
STILL = 64  # the batch of a picture that does not move
LEFT, HIGH, HEAD = 130, 300, 30  # the plot's left, its height, room above the roof
DETAILED = 4  # with more ops than this, labels are names only
TURNS = (20, 0, 45, 90, -20, 160, 180, 135, 70, 110, -160, -45, -90, -135)  # degrees, down is 90


@dataclass(frozen=True)
class Roof:
    """A machine: `flops` in FLOP/s, `bandwidth` in B/s."""

    flops: float
    bandwidth: float

    @property
    def ridge(self) -> float:
        """The arithmetic intensity, in FLOP/B, from which compute is the bound, and not memory."""
        return self.flops / self.bandwidth

    def at(self, intensity: float) -> float:
        """Return the most FLOP/s that a kernel of this intensity (FLOP/B) can reach."""
        return min(self.flops, intensity * self.bandwidth)


@dataclass(frozen=True)
class Work:
    """One kernel or op: FLOPs, bytes moved, and the measured seconds, None when not timed."""

    name: str
    flops: float
    bytes: float
    seconds: float | None = None

    @property
    def intensity(self) -> float:
        return self.flops / self.bytes

    @property
    def attained(self) -> float | None:
        return None if self.seconds is None else self.flops / self.seconds


def roofline(
    points: Points | Callable[[int], Points], *, peak_flops: float, peak_bandwidth: float
) -> None:
    """Show ops under a machine's roofline: is memory or compute the bound, and how near are they?

    points: name -> (flops, bytes) or (flops, bytes, seconds); or a function from a batch size to
    such a dict: live, it gets a slider over batch sizes. peak_flops: FLOP/s. peak_bandwidth: B/s of
    memory. Raises ValueError for no points or a number that is not above 0.
    """
    if not (peak_flops > 0 and peak_bandwidth > 0):
        raise ValueError(
            "peak_flops (FLOP/s) and peak_bandwidth (B/s) must be above 0, "
            f"got {peak_flops} and {peak_bandwidth}"
        )
    roof = Roof(float(peak_flops), float(peak_bandwidth))
    if not callable(points):
        ops = works(points)
        present(lambda: draw(ops, roof, sentence(ops, roof)))
        return
    scope = [op for batch in (BATCHES[0], BATCHES[-1]) for op in works(points(batch))]

    def redraw(batch: int) -> Drawing:
        ops = works(points(batch))
        found = sentence(ops, roof).partition(":")[0].rstrip(".")
        return draw(ops, roof, f"Batch {batch}: {found[0].lower()}{found[1:]}.", scope)

    present(redraw, choice("batch", STILL, BATCHES))


def works(points: Points) -> list[Work]:
    """`points` as Work; ValueError when one isn't (flops, bytes[, seconds]) with all above 0."""
    if not points:
        raise ValueError("roofline needs at least one point, got none: pass {name: (flops, bytes)}")
    found = []
    for name, point in points.items():
        numbers = tuple(float(number) for number in point)
        if len(numbers) not in (2, 3) or any(not number > 0 for number in numbers):
            raise ValueError(
                f"roofline point {name!r}: expected (flops, bytes) or (flops, bytes, seconds), "
                f"all above 0, got {tuple(point)}"
            )
        found.append(Work(str(name), *numbers))
    return found


def sentence(ops: Sequence[Work], roof: Roof) -> str:
    bound = [op.intensity < roof.ridge for op in ops]
    if all(bound):
        return "Memory is the bound: moving the bytes takes longer than the arithmetic."
    if not any(bound):
        return "Compute is the bound: the arithmetic takes longer than moving the bytes."
    return f"Below {roof.ridge:.3g} FLOP per byte memory is the bound, above it compute."


def draw(ops: Sequence[Work], roof: Roof, title: str, scope: Sequence[Work] = ()) -> Drawing:
    """Some ops, on axes that make room for `scope` too."""
    canvas = Canvas(title)
    plot = _Plot(canvas.top + 2, [*ops, *scope], roof)
    bottom = plot.top + HIGH
    for flops in _decades(plot.floor, plot.ceiling, 7):
        y = plot.y(flops)
        canvas.line([(LEFT, y), (RIGHT, y)], line=0.8)
        canvas.text(LEFT - 10, y, si(flops, "FLOP/s"), MUTED, "right")
    for intensity in _decades(plot.low, plot.high, 9):
        x = plot.x(intensity)
        canvas.line([(x, bottom), (x, bottom + 5)], MUTED, 0.8)
        canvas.text(x, bottom + 16, f"{intensity:,.6g}", MUTED, "center")
    canvas.line([(LEFT, bottom), (RIGHT, bottom)], MUTED, 0.8)
    words = "arithmetic intensity: FLOP for each byte moved"
    canvas.text((LEFT + RIGHT) / 2, bottom + 38, words, MUTED, "center")
    labels = _labels(plot, ops)
    # Words lie over the grid, but not over the roof: their ground goes between the two.
    rooms = [label.room for label in labels]
    canvas.boxes([(r.left - 2, r.top, r.right - r.left + 4, r.bottom - r.top) for r in rooms], CARD)
    _draw_roof(canvas, plot)
    parts = [
        f"Roofline. {title} Peak {si(roof.flops, 'FLOP/s')}, memory {si(roof.bandwidth, 'B/s')}, "
        f"ridge at {roof.ridge:.3g} FLOP per byte."
    ]
    for label in labels:
        op, limit = label.op, roof.at(label.op.intensity)
        end = label.room.nearest(label.spot)
        if math.dist(label.spot, end) > 20:
            canvas.line([label.spot, end], MUTED, 0.8)
        canvas.line([label.spot, label.limit], KERNEL.colour, 1.4)
        for row, words in enumerate(label.lines):
            y = label.room.top + 9 + 19 * row
            canvas.text(label.room.left, y, words, MUTED if row else INK)
        bound = "memory" if op.intensity < roof.ridge else "compute"
        told = f"{op.name}: {op.intensity:.3g} FLOP per byte, bound by {bound} at "
        told += si(limit, "FLOP/s")
        if op.attained is not None:
            told += f", reached {si(op.attained, 'FLOP/s')}, {op.attained / limit:.0%} of that"
        parts.append(f"{told}.")
    for label in labels:  # filled where a time was measured, hollow at the bound where none was
        fill = CARD if label.op.attained is None else KERNEL.colour
        canvas.marker(*label.spot, KERNEL.marker, 11, fill, edge=INK)
    return canvas.finish(bottom + 64, " ".join(parts))


class _Plot:
    """Two logarithmic axes: FLOP per byte to x, FLOP/s to y, in CSS pixels; and the roof there."""

    def __init__(self, top: float, ops: Sequence[Work], roof: Roof) -> None:
        self.top, self.roof = top, roof
        intensities = [op.intensity for op in ops] + [roof.ridge]
        self.low, self.high = min(intensities) / 3, max(intensities) * 12
        heights = [op.attained or roof.at(op.intensity) for op in ops] + [roof.at(self.low)]
        self.floor, self.ceiling = min(heights) / 2, max([*heights, roof.flops])
        self.start = LEFT, self.y(roof.at(self.low))
        self.ridge = self.x(roof.ridge), self.y(roof.flops)

    def x(self, intensity: float) -> float:
        part = math.log(intensity / self.low) / math.log(self.high / self.low)
        return LEFT + part * (RIGHT - LEFT)

    def y(self, flops: float) -> float:
        part = math.log(flops / self.floor) / math.log(self.ceiling / self.floor)
        return self.top + HEAD + (HIGH - HEAD) * (1 - part)

    def memory(self) -> tuple[str, Rect]:
        """The words beside memory's slope, and their room: above it, near its lower end."""
        words = f"memory {si(self.roof.bandwidth, 'B/s')}"
        left, right = LEFT + 10, LEFT + 10 + text_width(words)
        rise = (self.start[1] - self.ridge[1]) / (self.ridge[0] - LEFT)
        bottom = self.start[1] - rise * (right - LEFT) - 5
        return words, Rect(left, bottom - 19, right, bottom)


def _decades(low: float, high: float, most: int) -> list[float]:
    """Powers of ten in [low, high], thinned to at most `most`."""
    powers = range(math.ceil(math.log10(low)), math.floor(math.log10(high)) + 1)
    return [10.0**power for power in powers if power % -(-len(powers) // most) == 0]


def _draw_roof(canvas: Canvas, plot: _Plot) -> None:
    (ridge, top), bottom = plot.ridge, plot.top + HIGH
    canvas.line([(ridge, top), (ridge, bottom)], MUTED, 0.8, dashed=True)
    canvas.line([plot.start, (ridge, top)], STORAGE.colour, 2.4)
    canvas.line([(ridge, top), (RIGHT, top)], INK, 2.4)
    canvas.text(RIGHT, top - 14, f"compute {si(plot.roof.flops, 'FLOP/s')}", ha="right")
    words, room = plot.memory()
    canvas.text(room.left, room.top + 9, words, STORAGE.colour)
    words = f"ridge: {plot.roof.ridge:.3g} FLOP per byte"
    if ridge + 7 + text_width(words) > RIGHT:
        canvas.text(ridge - 7, bottom - 12, words, MUTED, "right")
    else:
        canvas.text(ridge + 7, bottom - 12, words, MUTED)


@dataclass(frozen=True)
class _Label:
    """An op's place in the plot, and the room and words of its label."""

    op: Work
    spot: Point
    limit: Point  # on the roof, above or below the spot
    room: Rect
    lines: tuple[str, ...]


def _labels(plot: _Plot, ops: Sequence[Work]) -> list[_Label]:
    """Return a label for each op, clear of each other, of the roof and of every marker."""
    roof, ridge = plot.roof, plot.ridge
    spots = [(plot.x(op.intensity), plot.y(op.attained or roof.at(op.intensity))) for op in ops]
    limits = [(x, plot.y(roof.at(op.intensity))) for op, (x, _) in zip(ops, spots, strict=True)]
    taken = [
        *(Rect(x - 9, y - 9, x + 9, y + 9) for x, y in spots),
        *along(plot.start, ridge),
        *along(ridge, (ridge[0], plot.top + HIGH)),
        Rect(ridge[0], ridge[1] - 3, RIGHT, ridge[1] + 3),
        Rect(RIGHT - 210, ridge[1] - 24, RIGHT, ridge[1]),
        plot.memory()[1],
    ]
    for spot, limit in zip(spots, limits, strict=True):
        taken += along(spot, limit)
    frame = Rect(LEFT + 4, plot.top - 10, RIGHT, plot.top + HIGH - 20)
    labels: list[_Label] = []
    for op, spot, limit in zip(ops, spots, limits, strict=True):
        bound = roof.at(op.intensity)
        details: tuple[str, ...] = (f"at most {si(bound, 'FLOP/s')}",)
        if op.attained is not None:
            details = (si(op.attained, "FLOP/s"), f"{op.attained / bound:.0%} of the bound")
        lines = (op.name,) if len(ops) > DETAILED else (op.name, *details)
        width = max(map(text_width, lines))
        rooms = [label.room for label in labels]
        room = place(spot, width, 2 + 19 * len(lines), taken, frame, rooms)
        labels.append(_Label(op, spot, limit, room, lines))
        taken += along(spot, room.nearest(spot))
    return labels


@dataclass(frozen=True)
class Rect:
    """A rectangle in CSS pixels, y growing downward."""

    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: Rect) -> bool:
        beside = self.left >= other.right or other.left >= self.right
        return not (beside or self.top >= other.bottom or other.top >= self.bottom)

    def within(self, frame: Rect) -> bool:
        across = frame.left <= self.left and self.right <= frame.right
        return across and frame.top <= self.top and self.bottom <= frame.bottom

    def nearest(self, point: Point) -> Point:
        x, y = point
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
            way = along(point, found.nearest(point))
            if not any(spot.meets(label) for spot in way for label in labels):
                return found
    left = min(max(x + 12, frame.left), frame.right - width)
    top = min(max(y, frame.top), frame.bottom - height)
    return Rect(left, top, left + width, top + height)


def along(start: Point, end: Point) -> list[Rect]:
    """Squares of four pixels that cover the line from start to end."""
    steps = max(1, math.ceil(math.dist(start, end) / 4))
    spots = []
    for k in range(steps + 1):
        x = start[0] + (end[0] - start[0]) * k / steps
        y = start[1] + (end[1] - start[1]) * k / steps
        spots.append(Rect(x - 2, y - 2, x + 2, y + 2))
    return spots
