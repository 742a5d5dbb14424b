"""How programs of one block each cover n elements, and which places the mask turns off."""

from __future__ import annotations

from matplotlib.figure import Figure

from utils.notebook.style import IDLE, INK, KERNEL, MUTED, RULE, STORAGE
from utils.views import _interactive
from utils.views._canvas import INNER, MARGIN, Canvas, title_height
from utils.views._numbers import count

CELL, ROW, LABEL, NOTE, TEXT = 44, 46, 128, 132, 14
BLOCKS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
SHOWN, FIRST = 6, 4  # rows at the most, and those before the gap; the last two close the picture
NARROW = 30  # CSS pixels; an index of three digits doesn't fit into a narrower cell


def block_mask(n: int, block: int) -> None:
    """Show the programs that cover n elements in blocks of `block`, and what their masks let pass.

    Args:
        block: a power of two up to 1024, as Triton asks. Live, both have a slider.

    Raises:
        ValueError: for n below 0 or another block.
    """
    draw(n, block)
    most = max(2 * n, 4 * block, 16)
    # A sheet that moves keeps the height of its fullest picture.
    rows = SHOWN + 1 if _interactive.will_move() else 0
    _interactive.present(
        lambda n, block: draw(n, block, rows),
        (n, block),
        lambda widgets: [
            widgets.IntSlider(value=n, min=0, max=most, description="n"),
            widgets.SelectionSlider(options=BLOCKS, value=block, description="BLOCK"),
        ],
    )


def draw(n: int, block: int, least: int = 0) -> tuple[Figure, str]:
    """The figure, and its alternative text. least: rows that the sheet has room for, or more."""
    if n < 0 or block not in BLOCKS:
        raise ValueError(
            f"block_mask needs n of 0 or more and a block among the powers of two up to 1024, "
            f"got n={n} and block={block}"
        )
    words = sentence(n, block)
    top = title_height(words) + 12
    rows = shown_programs(n, block)
    canvas = Canvas(top + max(len(rows), least, 1) * ROW + 66)
    canvas.title(words)
    wide = INNER - LABEL - NOTE
    cell = min(CELL, wide / block)
    for row, program in enumerate(rows):
        y = top + row * ROW
        if program is None:
            left_out = f"… {_grid(n, block) - len(rows) + 1:,} more"
            canvas.text(MARGIN, y + CELL / 2 - 4, left_out, size=TEXT, colour=MUTED)
            continue
        _draw_program(canvas, y, n, block, program, cell)
    if not rows:
        canvas.text(MARGIN, top + 16, "the grid is empty: nothing is launched", size=TEXT)
    _draw_legend(canvas, top + max(len(rows), 1) * ROW + 14)
    return canvas.finish(), describe(n, block)


def shown_programs(n: int, block: int) -> list[int | None]:
    """Return the programs that have a row; None stands for those that are left out."""
    grid = _grid(n, block)
    if grid <= SHOWN + 1:
        return list(range(grid))
    return [*range(FIRST), None, grid - 2, grid - 1]


def sentence(n: int, block: int) -> str:
    """What n and the block come to, as the figure's title."""
    grid = _grid(n, block)
    if not n:
        return "No elements, no programs."
    off = grid * block - n
    cover = f"{count(grid, 'program')} of {block:,} cover{'s' if grid == 1 else ''} "
    cover += count(n, "element")
    if not off:
        return f"{cover} exactly: the mask turns nothing off."
    return f"{cover}; the mask turns off {off:,} {'place' if off == 1 else 'places'} of the last."


def describe(n: int, block: int) -> str:
    """Return the alternative text: each shown program with the elements it covers."""
    parts = [f"Programs, blocks and masks. {sentence(n, block)}"]
    for program in shown_programs(n, block):
        if program is not None:
            off = _off(n, block, program)
            masked = f", then {off} masked off" if off else ""
            parts.append(f"Program {program}: {_span(n, block, program)}{masked}.")
    return " ".join(parts)


def _draw_legend(canvas: Canvas, y: float) -> None:
    canvas.marker(MARGIN + 8, y, KERNEL.marker, size=15, fill=KERNEL.colour, edge="none")
    canvas.text(MARGIN + 26, y, "one run of the kernel", size=TEXT, colour=MUTED)
    canvas.boxes([(MARGIN + 210, y - 7, 14, 14)], [STORAGE.tint], edge=STORAGE.colour)
    canvas.text(MARGIN + 234, y, "loaded and stored: i < n", size=TEXT, colour=MUTED)
    y += 26
    canvas.boxes([(MARGIN + 1, y - 7, 14, 14)], [IDLE], edge=MUTED, dashed=True)
    words = "masked off: the program has the place, and leaves memory alone"
    canvas.text(MARGIN + 26, y, words, size=TEXT, colour=MUTED)


def _draw_program(canvas: Canvas, y: float, n: int, block: int, program: int, cell: float) -> None:
    left, high = MARGIN + LABEL, CELL - 10
    canvas.marker(MARGIN + 8, y + high / 2, KERNEL.marker, size=15, fill=KERNEL.colour, edge="none")
    canvas.text(MARGIN + 24, y + high / 2, f"program {program:,}", size=TEXT)
    first = program * block
    on = min(n - first, block)
    if cell >= NARROW:
        canvas.boxes(
            [(left + k * cell, y, cell, high) for k in range(on)],
            [STORAGE.tint] * on,
            edge=STORAGE.colour,
        )
        canvas.boxes(
            [(left + k * cell, y, cell, high) for k in range(on, block)],
            [IDLE] * (block - on),
            edge=MUTED,
            dashed=True,
        )
        size = TEXT if cell >= 36 else 13
        for k in range(block):
            ink = INK if k < on else MUTED
            middle = left + (k + 0.5) * cell
            canvas.text(middle, y + high / 2, f"{first + k}", size=size, colour=ink, ha="center")
    else:
        if on < block:
            box = left + on * cell, y, (block - on) * cell, high
            canvas.boxes([box], [IDLE], edge=MUTED, dashed=True)
        canvas.boxes([(left, y, on * cell, high)], [STORAGE.tint], edge=STORAGE.colour)
        ends = left + 8, left + block * cell - 8
        canvas.text(ends[0], y + high / 2, f"{first:,}", size=TEXT)
        ink = MUTED if on < block else INK
        last = f"{first + block - 1:,}"
        canvas.text(ends[1], y + high / 2, last, size=TEXT, colour=ink, ha="right")
    note = f"{on:,} of {block:,}" if on < block else f"all {block:,}" if block > 1 else "its one"
    canvas.text(left + block * cell + 14, y + high / 2, note, size=TEXT, colour=MUTED)
    canvas.line([(MARGIN, y + high + 6), (MARGIN + INNER, y + high + 6)], colour=RULE, line=0.5)


def _grid(n: int, block: int) -> int:
    whole, rest = divmod(n, block)
    return whole + bool(rest)


def _off(n: int, block: int, program: int) -> int:
    return max(0, (program + 1) * block - n)


def _span(n: int, block: int, program: int) -> str:
    first, last = program * block, min((program + 1) * block, n) - 1
    return f"element {first}" if first == last else f"elements {first} to {last}"
