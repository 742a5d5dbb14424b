"""Memory's slope and compute's ceiling, and where an op lies under them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure

from utils.notebook.figures import show
from utils.notebook.style import CARD, INK, KERNEL, MUTED, STORAGE, WIDTH
from utils.views import _interactive
from utils.views._canvas import MARGIN, Canvas, title_height
from utils.views._label_placement import Point, Rect, along, place
from utils.views._numbers import si
from utils.views._roofline_model import Roof, Work, works
from utils.views._text_outlines import text_width

Points = Mapping[str, Sequence[float]]
BATCHES = tuple(2**power for power in range(15))
STILL = 64  # the batch of a picture that does not move
LEFT, HIGH, HEAD, TEXT = 130, 300, 30, 14  # the plot's left, its height, room above the roof
DETAILED = 4  # with more ops than this, labels are names only
RIGHT = WIDTH - MARGIN


def roofline(
    points: Points | Callable[[int], Points],
    *,
    peak_flops: float,
    peak_bandwidth: float,
    title: str | None = None,
) -> None:
    """Show ops under a machine's roofline: is memory or compute the bound, and how near are they?

    Args:
        points: name -> (flops, bytes) or (flops, bytes, seconds); or a function from a batch size
            to such a dict: live, it gets a slider over batch sizes.
        peak_flops: FLOP/s.
        peak_bandwidth: B/s of memory.
        title: in place of the sentence found.

    Raises:
        ValueError: for no points or a number that is not above 0.
    """
    if not (peak_flops > 0 and peak_bandwidth > 0):
        raise ValueError(
            "peak_flops (FLOP/s) and peak_bandwidth (B/s) must be above 0, "
            f"got {peak_flops} and {peak_bandwidth}"
        )
    roof = Roof(float(peak_flops), float(peak_bandwidth))
    if not callable(points):
        figure, alt = draw(works(points), roof, title)
        show(figure, alt=alt)
        return
    scope = [op for batch in (BATCHES[0], BATCHES[-1]) for op in works(points(batch))]

    def redraw(batch: int) -> tuple[Figure, str]:
        ops = works(points(batch))
        found = sentence(ops, roof).partition(":")[0].rstrip(".")
        return draw(ops, roof, title or f"Batch {batch}: {found[0].lower()}{found[1:]}.", scope)

    _interactive.present(
        redraw,
        (STILL,),
        lambda widgets: [
            widgets.SelectionSlider(options=BATCHES, value=STILL, description="batch")
        ],
    )


def draw(
    ops: Sequence[Work], roof: Roof, title: str | None = None, scope: Sequence[Work] = ()
) -> tuple[Figure, str]:
    """The figure for some ops, and its alternative text; the axes make room for `scope` too."""
    words = title or sentence(ops, roof)
    plot = _Plot(title_height(words) + 2, [*ops, *scope], roof)
    canvas = Canvas(plot.top + HIGH + 64)
    canvas.title(words)
    _draw_axes(canvas, plot)
    labels = _labels(plot, ops, roof)
    # Words lie over the grid, but not over the roof: their ground goes between the two.
    grounds = [
        (room.left - 2, room.top, room.right - room.left + 4, room.bottom - room.top)
        for room in (label.room for label in labels)
    ]
    canvas.boxes(grounds, [CARD] * len(grounds), edge="none")
    _draw_roof(canvas, plot, roof)
    _draw_ops(canvas, labels)
    return canvas.finish(), describe(ops, roof, words)


def sentence(ops: Sequence[Work], roof: Roof) -> str:
    """What the points show, as the figure's title."""
    bound = [op.intensity < roof.ridge for op in ops]
    if all(bound):
        return "Memory is the bound: moving the bytes takes longer than the arithmetic."
    if not any(bound):
        return "Compute is the bound: the arithmetic takes longer than moving the bytes."
    return f"Below {roof.ridge:.3g} FLOP per byte memory is the bound, above it compute."


def describe(ops: Sequence[Work], roof: Roof, words: str) -> str:
    """Return the alternative text: the machine, then each op."""
    parts = [
        f"Roofline. {words} Peak {si(roof.flops, 'FLOP/s')}, memory {si(roof.bandwidth, 'B/s')}, "
        f"ridge at {roof.ridge:.3g} FLOP per byte."
    ]
    for op in ops:
        bound = "memory" if op.intensity < roof.ridge else "compute"
        limit = si(roof.at(op.intensity), "FLOP/s")
        text = f"{op.name}: {op.intensity:.3g} FLOP per byte, bound by {bound} at {limit}"
        if op.attained is not None:
            share = op.attained / roof.at(op.intensity)
            text += f", reached {si(op.attained, 'FLOP/s')}, {share:.0%} of that"
        parts.append(f"{text}.")
    return " ".join(parts)


class _Plot:
    """Two logarithmic axes: FLOP per byte to x, FLOP/s to y, in CSS pixels."""

    def __init__(self, top: float, ops: Sequence[Work], roof: Roof) -> None:
        self.top = top
        intensities = [op.intensity for op in ops] + [roof.ridge]
        self.low, self.high = min(intensities) / 3, max(intensities) * 12
        heights = [op.attained or roof.at(op.intensity) for op in ops] + [roof.at(self.low)]
        self.floor, self.ceiling = min(heights) / 2, max([*heights, roof.flops])

    def x(self, intensity: float) -> float:
        part = math.log(intensity / self.low) / math.log(self.high / self.low)
        return LEFT + part * (RIGHT - LEFT)

    def y(self, flops: float) -> float:
        part = math.log(flops / self.floor) / math.log(self.ceiling / self.floor)
        return self.top + HEAD + (HIGH - HEAD) * (1 - part)


def _decades(low: float, high: float, most: int) -> list[float]:
    """Powers of ten in [low, high], thinned to at most `most`."""
    powers = range(math.ceil(math.log10(low)), math.floor(math.log10(high)) + 1)
    return [10.0**power for power in powers if power % -(-len(powers) // most) == 0]


def _draw_axes(canvas: Canvas, plot: _Plot) -> None:
    bottom = plot.top + HIGH
    for flops in _decades(plot.floor, plot.ceiling, 7):
        y = plot.y(flops)
        canvas.line([(LEFT, y), (RIGHT, y)], line=0.8)
        canvas.text(LEFT - 10, y, si(flops, "FLOP/s"), size=TEXT, colour=MUTED, ha="right")
    for intensity in _decades(plot.low, plot.high, 9):
        x = plot.x(intensity)
        canvas.line([(x, bottom), (x, bottom + 5)], colour=MUTED, line=0.8)
        canvas.text(x, bottom + 16, f"{intensity:,.6g}", size=TEXT, colour=MUTED, ha="center")
    canvas.line([(LEFT, bottom), (RIGHT, bottom)], colour=MUTED, line=0.8)
    words = "arithmetic intensity: FLOP for each byte moved"
    canvas.text((LEFT + RIGHT) / 2, bottom + 38, words, size=TEXT, colour=MUTED, ha="center")


def _draw_roof(canvas: Canvas, plot: _Plot, roof: Roof) -> None:
    ridge, top = plot.x(roof.ridge), plot.y(roof.flops)
    start = (plot.x(plot.low), plot.y(roof.at(plot.low)))
    canvas.line([(ridge, top), (ridge, plot.top + HIGH)], colour=MUTED, line=0.8, dashed=True)
    canvas.line([start, (ridge, top)], colour=STORAGE.colour, line=2.4)
    canvas.line([(ridge, top), (RIGHT, top)], colour=INK, line=2.4)
    canvas.text(RIGHT, top - 14, f"compute {si(roof.flops, 'FLOP/s')}", size=TEXT, ha="right")
    label = _slope_label(plot, roof)
    words = f"memory {si(roof.bandwidth, 'B/s')}"
    canvas.text(label.left, label.top + 9, words, size=TEXT, colour=STORAGE.colour)
    words = f"ridge: {roof.ridge:.3g} FLOP per byte"
    x, side = ridge + 7, "left"
    if x + text_width(words, size=TEXT) > RIGHT:
        x, side = ridge - 7, "right"
    canvas.text(x, plot.top + HIGH - 12, words, size=TEXT, colour=MUTED, ha=side)


def _slope_label(plot: _Plot, roof: Roof) -> Rect:
    """Where the words beside memory's slope stand: above it, near its lower end."""
    left = LEFT + 10
    right = left + text_width(f"memory {si(roof.bandwidth, 'B/s')}", size=TEXT)
    start, ridge = plot.y(roof.at(plot.low)), plot.x(roof.ridge)
    rise = (start - plot.y(roof.flops)) / (ridge - LEFT)
    bottom = start - rise * (right - LEFT) - 5
    return Rect(left, bottom - 19, right, bottom)


@dataclass(frozen=True)
class _Label:
    """An op's place in the plot, and the room and words of its label."""

    op: Work
    spot: Point
    limit: Point  # on the roof, above or below the spot
    room: Rect
    lines: tuple[str, ...]


def _labels(plot: _Plot, ops: Sequence[Work], roof: Roof) -> list[_Label]:
    """Return a label for each op, clear of each other, of the roof and of every marker."""
    spots = [(plot.x(op.intensity), plot.y(op.attained or roof.at(op.intensity))) for op in ops]
    limits = [(x, plot.y(roof.at(op.intensity))) for op, (x, _) in zip(ops, spots, strict=True)]
    taken = [Rect(x - 9, y - 9, x + 9, y + 9) for x, y in spots] + _obstacles(plot, roof)
    for spot, limit in zip(spots, limits, strict=True):
        taken += along(spot, limit)
    frame = Rect(LEFT + 4, plot.top - 10, RIGHT, plot.top + HIGH - 20)
    labels: list[_Label] = []
    for op, spot, limit in zip(ops, spots, limits, strict=True):
        bound = roof.at(op.intensity)
        details: tuple[str, ...] = (f"at most {si(bound, 'FLOP/s')}",)
        if op.attained is not None:
            share = f"{op.attained / bound:.0%} of the bound"
            details = (si(op.attained, "FLOP/s"), share)
        lines = (op.name,) if len(ops) > DETAILED else (op.name, *details)
        width = max(text_width(words, size=TEXT) for words in lines)
        rooms = [label.room for label in labels]
        room = place(spot, width, 2 + 19 * len(lines), taken, frame, rooms)
        labels.append(_Label(op, spot, limit, room, lines))
        taken += along(spot, room.nearest(*spot))
    return labels


def _draw_ops(canvas: Canvas, labels: Sequence[_Label]) -> None:
    """A filled hexagon where a time was measured, a hollow one at the bound where none was."""
    for label in labels:
        end = label.room.nearest(*label.spot)
        if math.dist(label.spot, end) > 20:
            canvas.line([label.spot, end], colour=MUTED, line=0.8)
        canvas.line([label.spot, label.limit], colour=KERNEL.colour, line=1.4)
        canvas.text(label.room.left, label.room.top + 9, label.lines[0], size=TEXT)
        for row, words in enumerate(label.lines[1:]):
            y = label.room.top + 28 + 19 * row
            canvas.text(label.room.left, y, words, size=TEXT, colour=MUTED)
    for label in labels:
        fill = CARD if label.op.attained is None else KERNEL.colour
        canvas.marker(*label.spot, KERNEL.marker, size=11, fill=fill)


def _obstacles(plot: _Plot, roof: Roof) -> list[Rect]:
    """What labels keep clear of: the roof, the ridge, and the words beside them."""
    ridge, top = plot.x(roof.ridge), plot.y(roof.flops)
    start = (plot.x(plot.low), plot.y(roof.at(plot.low)))
    return [
        *along(start, (ridge, top)),
        *along((ridge, top), (ridge, plot.top + HIGH)),
        Rect(ridge, top - 3, RIGHT, top + 3),
        Rect(RIGHT - 210, top - 24, RIGHT, top),
        _slope_label(plot, roof),
    ]
