"""One row in a block of a power of two: the lanes that hold a number, and those that idle."""

from __future__ import annotations

from matplotlib.figure import Figure

from utils.notebook.style import IDLE, INK, KERNEL, MUTED, RULE, STORAGE
from utils.views import _interactive
from utils.views._canvas import INNER, MARGIN, Canvas, title_height
from utils.views._numbers import count

MOST = 2048  # columns; the widest row that is shown
BAR, HIGH, TEXT = 44, 150, 14  # the block's height, the curve's, and the letters'
LEFT, RIGHT = MARGIN + 58, MARGIN + INNER


def row_lanes(columns: int) -> None:
    """Show the block that a row of `columns` takes, and how many of its lanes idle; live, move it.

    Args:
        columns: 1 to 2048. A program takes one row, in a block of the next power of two.

    Raises:
        ValueError: for another number.
    """
    draw(columns)
    _interactive.present(
        draw,
        (columns,),
        lambda widgets: [widgets.IntSlider(value=columns, min=1, max=MOST, description="columns")],
    )


def block_of(columns: int) -> int:
    """Return the smallest power of two that is at least `columns`."""
    return 1 << (columns - 1).bit_length()


def idle(columns: int) -> float:
    """Return the part of a row's lanes that hold no number."""
    return 1 - columns / block_of(columns)


def draw(columns: int) -> tuple[Figure, str]:
    """Return the figure, and its alternative text."""
    if not 1 <= columns <= MOST:
        raise ValueError(f"row_lanes shows rows of 1 to {MOST:,} columns, got {columns}")
    words = sentence(columns)
    top = title_height("one line") + 10
    curve = top + BAR + 92
    canvas = Canvas(curve + HIGH + 58)
    canvas.title(words)
    _draw_block(canvas, columns, top)
    _draw_curve(canvas, columns, curve)
    return canvas.finish(), describe(columns)


def sentence(columns: int) -> str:
    """What the row costs, as the figure's title."""
    block = block_of(columns)
    row = f"A row of {count(columns, 'column')}"
    if columns == block:
        return f"{row} fills its block: no lane idles."
    verb = "idles" if block - columns == 1 else "idle"
    return f"{row} takes {block:,} lanes: {block - columns:,} of them, {idle(columns):.0%}, {verb}."


def describe(columns: int) -> str:
    """Return the alternative text: the row, and its neighbours beyond the powers of two."""
    nearby = [k for k in (columns - 1, columns + 1) if 1 <= k <= MOST]
    told = " ".join(
        f"{count(k, 'column')}: {block_of(k):,} lanes, {idle(k):.0%} idle." for k in nearby
    )
    return (
        f"Lanes of a row. {sentence(columns)} {told} The idle part is 0 at each power of two, "
        "nearly half just above it, and falls in a straight line to the next."
    )


def _draw_block(canvas: Canvas, columns: int, y: float) -> None:
    """The block over the whole width: first the columns, then what is masked off."""
    block = block_of(columns)
    part = (RIGHT - MARGIN) * columns / block
    if columns < block:
        rest = (MARGIN + part, y, RIGHT - MARGIN - part, BAR)
        canvas.boxes([rest], [IDLE], edge=MUTED, dashed=True)
    canvas.boxes([(MARGIN, y, part, BAR)], [STORAGE.tint], edge=STORAGE.colour)
    middle = y + BAR + 24
    canvas.boxes([(MARGIN, middle - 8, 16, 16)], [STORAGE.tint], edge=STORAGE.colour)
    canvas.text(MARGIN + 24, middle, f"columns, {columns:,}", size=TEXT)
    x = MARGIN + 190
    canvas.boxes([(x, middle - 8, 16, 16)], [IDLE], edge=MUTED, dashed=True)
    canvas.text(x + 24, middle, f"masked off, {block - columns:,}", size=TEXT)
    canvas.text(RIGHT, middle, f"a block of {block:,}", size=TEXT, ha="right")


def _draw_curve(canvas: Canvas, columns: int, top: float) -> None:
    """The idle part against the number of columns, with this row's marked."""

    def at(number: float, part: float) -> tuple[float, float]:
        return LEFT + (RIGHT - LEFT) * number / MOST, top + HIGH * (1 - 2 * part)

    canvas.text(MARGIN, top - 22, "lanes that idle, by columns of a row", size=TEXT, colour=MUTED)
    for part in (0, 0.25, 0.5):
        y = at(0, part)[1]
        canvas.line([(LEFT, y), (RIGHT, y)], colour=RULE, line=0.8)
        canvas.text(LEFT - 8, y, f"{part:.0%}", size=TEXT, colour=MUTED, ha="right")
    for number in (256, 512, 1024, 1536, 2048):
        x, ha = at(number, 0)[0], "right" if number == MOST else "center"
        canvas.text(x, top + HIGH + 18, f"{number:,}", size=TEXT, colour=MUTED, ha=ha)
    path = [at(16, 0)]  # below, the teeth are too narrow to be told apart
    for power in range(5, MOST.bit_length()):
        path += [at(2 ** (power - 1), 0), at(2 ** (power - 1), 0.5), at(2**power, 0)]
    canvas.line(path, colour=STORAGE.colour, line=2)
    x, y = at(columns, idle(columns))
    canvas.line([(x, top), (x, top + HIGH)], colour=INK, dashed=True)
    canvas.marker(x, y, KERNEL.marker, size=13, fill=KERNEL.colour)
