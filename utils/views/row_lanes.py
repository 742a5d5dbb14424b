"""One row in a block of a power of two: the lanes with a number, and the idle lanes."""

from __future__ import annotations

from utils.notebook.style import IDLE, INK, KERNEL, MUTED, STORAGE
from utils.softmax.launch import power_of_two
from utils.views._canvas import INNER, MARGIN, RIGHT, Axes, Canvas, Drawing
from utils.views._numbers import count, require
from utils.views._view import present

MOST = 2048  # columns of the widest row that is shown
BAR, HIGH = 44, 150  # the height of the block, and the height of the curve
LEFT = MARGIN + 58


def row_lanes(columns: int) -> None:
    """Show the block that a row of `columns` takes, and how many of its lanes are idle.

    A program takes one row. The size of its block is the next power of two.

    columns: 1 to 2048. Raises ValueError for another number.
    """
    require("row_lanes", columns, "columns", MOST)
    present(lambda: draw(columns))


def idle(columns: int) -> float:
    """Return the share of a row's lanes that contain no number."""
    return 1 - columns / power_of_two(columns)


def draw(columns: int) -> Drawing:
    block = power_of_two(columns)
    off = block - columns
    title = f"A row of {count(columns, 'column')} fills its block: no lane idles."
    if off:
        part = f"{off:,} of them, {idle(columns):.0%}, idle{'s' if off == 1 else ''}"
        title = f"A row of {count(columns, 'column')} takes {block:,} lanes: {part}."
    canvas = Canvas(title)
    # Draw the block over the whole width: first the columns, then the masked lanes.
    y = canvas.top + 10
    wide = INNER * columns / block
    if off:
        canvas.box((MARGIN + wide, y, INNER - wide, BAR), IDLE, edge=MUTED, dashed=True)
    canvas.box((MARGIN, y, wide, BAR), STORAGE.tint, edge=STORAGE.colour)
    y += BAR + 24
    kinds = (
        (f"columns, {columns:,}", STORAGE.tint, STORAGE.colour),
        (f"masked off, {off:,}", IDLE, MUTED, True),
    )
    canvas.legend(MARGIN, y, kinds, 190)
    canvas.text(RIGHT, y, f"a block of {block:,}", ha="right")
    # Draw the idle part against the number of columns, with a mark for this row.
    y += 68
    axes = Axes(canvas, LEFT, y, RIGHT - LEFT, HIGH, x=(0, MOST), y=(0, 0.5))
    canvas.text(MARGIN, y - 22, "idle lanes, by the number of columns", MUTED)
    axes.grid_y((0, 0.25, 0.5), "{:.0%}".format)
    for number in (256, 512, 1024, 1536, 2048):
        ha = "right" if number == MOST else "center"
        canvas.text(axes.px(number), axes.bottom + 18, f"{number:,}", MUTED, ha)
    path = [(16, 0.0)]  # below this number, the teeth are too narrow to be visible
    for power in range(5, MOST.bit_length()):
        path += [(2 ** (power - 1), 0), (2 ** (power - 1), 0.5), (2**power, 0)]
    axes.curve([x for x, _ in path], [y for _, y in path], STORAGE.colour)
    axes.cursor(columns)
    canvas.marker(
        axes.px(columns), axes.py(idle(columns)), KERNEL.marker, 13, KERNEL.colour, edge=INK
    )
    nearby = [k for k in (columns - 1, columns + 1) if 1 <= k <= MOST]
    nearby_rows = " ".join(
        f"{count(k, 'column')}: {power_of_two(k):,} lanes, {idle(k):.0%} idle." for k in nearby
    )
    return canvas.finish(
        axes.bottom + 58,
        f"Lanes of a row. {title} {nearby_rows} The idle part is 0 at each power of two, "
        "nearly half just above it, and falls in a straight line to the next.",
    )
