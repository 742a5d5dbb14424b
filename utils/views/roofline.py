"""The roofline of a machine's memory and compute, and an op's position below it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from utils.notebook.style import CARD, INK, KERNEL, MUTED, STORAGE
from utils.views._canvas import INNER, LINE, MARGIN, RIGHT, Axes, Canvas, Drawing, Point, decades
from utils.views._controls import choice
from utils.views._numbers import si
from utils.views._text_outlines import cut, text_width
from utils.views._view import present

Points = Mapping[str, Sequence[float]]
BATCHES = tuple(2**power for power in range(15))
STILL = 64  # the batch size of a still picture
LEFT, HIGH, HEAD = 130, 270, 32  # the plot's left edge, its height, the room above the roof


@dataclass(frozen=True)
class Roof:
    """A machine: `flops` in FLOP/s, `bandwidth` in B/s."""

    flops: float
    bandwidth: float

    @property
    def ridge(self) -> float:
        """The arithmetic intensity, in FLOP/B, above which compute is the bound."""
        return self.flops / self.bandwidth

    def at(self, intensity: float) -> float:
        """Return the largest FLOP/s that a kernel of this intensity (FLOP/B) can reach."""
        return min(self.flops, intensity * self.bandwidth)


@dataclass(frozen=True)
class Work:
    """One kernel or op: its FLOPs, its moved bytes, and its measured seconds or None."""

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
    """Show ops under a machine's roofline: each op's bound, and how near the op is to its bound.

    points: name -> (flops, bytes) or (flops, bytes, seconds), or a function from a batch size to
        such a dict. In a live view, a slider then sets the batch size.
    peak_flops: the machine's FLOP/s.
    peak_bandwidth: the B/s of the machine's memory.

    Raises ValueError for no points, or for a number that is not above 0.
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
    """Return `points` as Work.

    Raises ValueError unless each point is (flops, bytes[, seconds]) with numbers above 0.
    """
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
    """Draw some ops, on axes with room for the ops of `scope`."""
    canvas = Canvas(title)
    every = [*ops, *scope]
    intensities = [op.intensity for op in every] + [roof.ridge]
    x = min(intensities) / 3, max(intensities) * 12
    heights = [op.attained or roof.at(op.intensity) for op in every] + [roof.at(x[0])]
    y = min(heights) / 3, max([*heights, roof.flops])
    axes = Axes(canvas, LEFT, canvas.top + HEAD, RIGHT - LEFT, HIGH, x=x, y=y, log="xy")
    axes.grid_y(decades(*y, 7), lambda flops: si(flops, "FLOP/s"))
    axes.labels_x(decades(*x, 9), "{:,.6g}".format)
    below = axes.bottom
    canvas.line([(LEFT, below), (RIGHT, below)], MUTED, 0.8)
    words = "arithmetic intensity: FLOP for each byte moved"
    canvas.text((LEFT + RIGHT) / 2, below + 38, words, MUTED, "center")
    start, ridge, top = axes.py(roof.at(x[0])), axes.px(roof.ridge), axes.py(roof.flops)
    canvas.line([(ridge, top), (ridge, below)], MUTED, 0.8, dashed=True)
    canvas.line([(LEFT, start), (ridge, top)], STORAGE.colour, 2.4)
    canvas.line([(ridge, top), (RIGHT, top)], INK, 2.4)
    canvas.text(RIGHT, top - 14, f"compute {si(roof.flops, 'FLOP/s')}", ha="right")
    words = f"memory {si(roof.bandwidth, 'B/s')}"  # above its slope, near the lower end
    up = (start - top) / (ridge - LEFT) * (text_width(words) + 10)
    canvas.text(LEFT + 10, start - up - 14, words, STORAGE.colour)
    words = f"ridge: {roof.ridge:.3g} FLOP per byte"
    fits = ridge + 7 + text_width(words) <= RIGHT
    canvas.text(ridge + (7 if fits else -7), below - 12, words, MUTED, "left" if fits else "right")
    parts = [
        f"Roofline. {title} Peak {si(roof.flops, 'FLOP/s')}, memory {si(roof.bandwidth, 'B/s')}, "
        f"ridge at {roof.ridge:.3g} FLOP per byte."
    ]
    # point -> the numbers of the ops whose marks are near this point
    numbers: dict[Point, list[str]] = {}
    for k, op in enumerate(ops, 1):
        limit = roof.at(op.intensity)
        spot = axes.px(op.intensity), axes.py(op.attained or limit)
        near = (one for one in numbers if abs(one[0] - spot[0]) < 20 and abs(one[1] - spot[1]) < 20)
        numbers.setdefault(next(near, spot), []).append(str(k))
        canvas.line([spot, (spot[0], axes.py(limit))], KERNEL.colour, 1.4)
        # The mark is filled if a time was measured. Otherwise the mark is hollow, and is at the
        # bound.
        fill = CARD if op.attained is None else KERNEL.colour
        canvas.marker(*spot, KERNEL.marker, 11, fill, edge=INK)
        bound = "memory" if op.intensity < roof.ridge else "compute"
        words, told = f"at most {si(limit, 'FLOP/s')}", f"at {si(limit, 'FLOP/s')}"
        if op.attained is not None:
            words = f"{si(op.attained, 'FLOP/s')}, {op.attained / limit:.0%} of the bound"
            told += f", reached {si(op.attained, 'FLOP/s')}, {op.attained / limit:.0%} of that"
        at = MARGIN + INNER / 2 * ((k - 1) % 2), below + 68 + LINE * ((k - 1) // 2)
        canvas.text(*at, cut(f"{k}  {op.name}: {words}", INNER / 2 - 16))
        parts.append(f"{op.name}: {op.intensity:.3g} FLOP per byte, bound by {bound} {told}.")
    for (at_x, at_y), some in numbers.items():
        canvas.text(at_x + 8, at_y + 14, ", ".join(some))
    return canvas.finish(below + 78 + LINE * -(-len(ops) // 2), " ".join(parts))
