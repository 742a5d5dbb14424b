"""The bytes and FLOPs of a tiled product, and its position below a machine's roofline."""

from __future__ import annotations

from dataclasses import dataclass

from utils.notebook.style import CARD, INK, KERNEL, MUTED, RULE, STORAGE, VIEW
from utils.views._canvas import MARGIN, RIGHT, Axes, Canvas, Drawing, decades
from utils.views._controls import choice
from utils.views._numbers import si
from utils.views._text_outlines import cut
from utils.views._view import present
from utils.views.roofline import Roof

BLOCKS = (16, 32, 64, 128, 256)
PANEL, GAP = 290, 12  # the room of the three matrices, and the gap between two of them
LEAST = 56  # CSS pixels of a matrix's shorter side
LEFT, HIGH = MARGIN + PANEL + 126, 250  # the plot of the roofline
MOST_LINES = 20  # if a side has more tiles, their borders are not drawn
LEAST_TILE = 4  # CSS pixels of a tile's side


@dataclass(frozen=True)
class Cost:
    """A product (m, k) @ (k, n) in tiles, with its operations and its moved bytes."""

    m: int
    n: int
    k: int
    block_m: int
    block_n: int
    itemsize: int

    @property
    def down(self) -> int:
        return -(-self.m // self.block_m)

    @property
    def across(self) -> int:
        return -(-self.n // self.block_n)

    @property
    def flops(self) -> int:
        return 2 * self.m * self.n * self.k

    @property
    def bytes(self) -> int:
        """The bytes loaded and stored, without masked lanes and without a cache."""
        loaded = self.m * self.k * self.across + self.k * self.n * self.down
        return self.itemsize * (loaded + self.m * self.n)

    @property
    def intensity(self) -> float:
        return self.flops / self.bytes

    @property
    def once(self) -> float:
        """The intensity if each number moved once, as with a single tile."""
        numbers = self.m * self.k + self.k * self.n + self.m * self.n
        return self.flops / (self.itemsize * numbers)


def tile_intensity(
    m: int,
    n: int,
    k: int,
    *,
    block_m: int = 64,
    block_n: int = 64,
    itemsize: int = 2,
    peak_flops: float,
    peak_bandwidth: float,
) -> None:
    """Show how often a tiled product (m, k) @ (k, n) loads its inputs, and its bound on a machine.

    In a live view, controls set the height and the width of a tile of the result.

    block_m, block_n: the height and the width of a tile: 16, 32, 64, 128 or 256.
    itemsize: the bytes of a number.
    peak_flops: the machine's FLOP/s.
    peak_bandwidth: the B/s of the machine's memory.

    Raises ValueError for a number that is not above 0, or for another block.
    """
    given: dict[str, float] = {"m": m, "n": n, "k": k, "itemsize": itemsize}
    given |= {"peak_flops": peak_flops, "peak_bandwidth": peak_bandwidth}
    if wrong := [f"{name} = {value}" for name, value in given.items() if not value > 0]:
        raise ValueError(f"tile_intensity: expected numbers above 0, got {', '.join(wrong)}")
    roof = Roof(float(peak_flops), float(peak_bandwidth))
    present(
        lambda down, across: draw(Cost(m, n, k, down, across, itemsize), roof),
        choice("BLOCK_M", block_m, BLOCKS),
        choice("BLOCK_N", block_n, BLOCKS),
    )


def draw(cost: Cost, roof: Roof) -> Drawing:
    bound = "memory" if cost.intensity < roof.ridge else "compute"
    canvas = Canvas(
        f"Tiles of {cost.block_m} × {cost.block_n}: {cost.intensity:.3g} FLOP for each byte; "
        f"{bound} is the bound."
    )
    top = canvas.top + 22
    _draw_matrices(canvas, cost, top)
    _draw_roof(canvas, cost, roof, top)
    y = top + HIGH + 110
    needs = duration(cost.bytes / roof.bandwidth), duration(cost.flops / roof.flops)
    lines = (
        f"{cost.down * cost.across:,} tiles. Each number of a is loaded {times(cost.across)}, each "
        f"number of b {times(cost.down)}.",
        f"Moved: {si(cost.bytes, 'B')}, at least {needs[0]}. "
        f"Computed: {si(cost.flops, 'FLOP')}, at least {needs[1]}.",
    )
    for row, line in enumerate(lines):
        canvas.text(MARGIN, y + 22 * row, cut(line, RIGHT - MARGIN))
    alt = (
        f"A product of {cost.m} × {cost.k} and {cost.k} × {cost.n} in tiles. {canvas.title} "
        f"{' '.join(lines)} The ridge is at {roof.ridge:.3g} FLOP per byte. If each number moved "
        f"once, it would be {cost.once:.3g} FLOP per byte."
    )
    return canvas.finish(y + 44, alt)


def times(number: int) -> str:
    return {1: "once", 2: "twice"}.get(number, f"{number:,} times")


def duration(seconds: float) -> str:
    """Return a duration with three significant digits: "12.3 µs"."""
    unit, name = next((u, n) for u, n in ((1, "s"), (1e-3, "ms"), (0, "µs")) if seconds >= u)
    return f"{seconds / (unit or 1e-6):,.3g} {name}"


def _draw_matrices(canvas: Canvas, cost: Cost, top: float) -> None:
    """Draw a to the left of the result, b above it, and the strips for the tile in the middle."""
    sides = [cost.m, cost.n, cost.k]
    scale = (PANEL - GAP) / max(cost.k + cost.n, cost.k + cost.m)
    m, n, k = (max(side * scale, LEAST) for side in sides)
    fit = (PANEL - GAP) / max(k + n, k + m)
    m, n, k = m * fit, n * fit, k * fit
    x, y = MARGIN + k + GAP, top + k + GAP  # the result's corner
    for box in ((MARGIN, y, k, m), (x, top, n, k), (x, y, n, m)):
        canvas.box(box, CARD, edge=MUTED)
    row, column = cost.down // 2, cost.across // 2
    high, wide = m * min(cost.block_m / cost.m, 1), n * min(cost.block_n / cost.n, 1)
    at_y, at_x = y + row * high, x + column * wide
    high = max(min(high, y + m - at_y), LEAST_TILE)
    wide = max(min(wide, x + n - at_x), LEAST_TILE)
    for box in ((MARGIN, at_y, k, high), (at_x, top, wide, k)):
        canvas.box(box, STORAGE.tint, edge=STORAGE.colour)
    if max(cost.down, cost.across) <= MOST_LINES:
        for line in range(1, cost.down):
            at = y + line * m * cost.block_m / cost.m
            canvas.line([(x, at), (x + n, at)], RULE, 0.8)
        for line in range(1, cost.across):
            at = x + line * n * cost.block_n / cost.n
            canvas.line([(at, y), (at, y + m)], RULE, 0.8)
    canvas.box((at_x, at_y, wide, high), KERNEL.colour, edge=INK)
    for name, (left, up) in {"a": (MARGIN, y), "b": (x, top), "a @ b": (x, y)}.items():
        canvas.text(left + 6, up + 12, name, MUTED)


def _draw_roof(canvas: Canvas, cost: Cost, roof: Roof, top: float) -> None:
    x = (1.0, 10 * max(cost.once, roof.ridge))
    axes = Axes(
        canvas, LEFT, top, RIGHT - LEFT, HIGH, x=x, y=(roof.at(1.0) / 2, roof.flops * 2), log="xy"
    )
    axes.grid_y(decades(roof.at(1.0) / 2, roof.flops * 2, 4), lambda flops: si(flops, "FLOP/s"))
    axes.labels_x(decades(*x, 6), "{:,.6g}".format)
    middle = (LEFT + RIGHT) / 2
    canvas.text(middle, axes.bottom + 38, "FLOP for each byte moved", MUTED, "center")
    ridge, high = axes.px(roof.ridge), axes.py(roof.flops)
    canvas.line([(LEFT, axes.bottom), (RIGHT, axes.bottom)], MUTED, 0.8)
    canvas.line([(ridge, high), (ridge, axes.bottom)], MUTED, 0.8, dashed=True)
    canvas.line([(LEFT, axes.py(roof.at(1.0))), (ridge, high)], STORAGE.colour, 2.4)
    canvas.line([(ridge, high), (RIGHT, high)], INK, 2.4)
    canvas.text(ridge - 7, axes.bottom - 14, f"ridge {roof.ridge:.3g}", MUTED, "right")
    spots = ((cost.once, VIEW, "each number once"), (cost.intensity, KERNEL, "these tiles"))
    for intensity, look, _ in spots:
        spot = axes.px(intensity), axes.py(roof.at(intensity))
        canvas.marker(*spot, look.marker, 13, look.colour, edge=INK)
    y = axes.bottom + 66
    for (_, look, name), at in zip(spots, (LEFT + 150, LEFT), strict=True):
        canvas.marker(at + 7, y, look.marker, 13, look.colour, edge=INK)
        canvas.text(at + 20, y, name, MUTED)
