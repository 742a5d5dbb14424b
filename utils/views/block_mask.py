"""Programs, each with one block, that cover n elements, and the lanes that the mask turns off."""

from __future__ import annotations

from utils.notebook.style import IDLE, INK, KERNEL, MUTED, RULE, STORAGE
from utils.views._canvas import INNER, MARGIN, RIGHT, Canvas, Drawing
from utils.views._controls import choice, slider
from utils.views._numbers import count
from utils.views._view import present, will_move

CELL, ROW, LABEL, NOTE = 44, 46, 128, 132
HIGH = CELL - 10
BLOCKS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
# The largest number of rows, and the number of rows before the gap. The last two rows are after the
# gap.
SHOWN, FIRST = 6, 4
NARROW = 30  # CSS pixels; an index of three digits doesn't fit into a narrower cell


def block_mask(n: int, block: int) -> None:
    """Show the programs that cover n elements in blocks of `block`, and the effect of their masks.

    block: a power of two up to 1024, as Triton requires. A live view has sliders for n and
    `block`. Raises ValueError for n below 0 or another block.
    """
    # All pictures of a live view have the height of the highest picture.
    rows = SHOWN + 1 if will_move() else 0
    present(
        lambda n, block: draw(n, block, rows),
        slider("n", n, 0, max(2 * n, 4 * block, 16)),
        choice("BLOCK", block, BLOCKS),
    )


def draw(n: int, block: int, least: int = 0) -> Drawing:
    """Draw the programs on a sheet that has room for at least `least` rows."""
    grid = -(-n // block)
    off = grid * block - n
    title = "No elements, no programs."
    if n:
        cover = f"{count(grid, 'program')} of {block:,} cover{'s' if grid == 1 else ''}"
        masked = f"; the mask turns off {off:,} {'place' if off == 1 else 'places'} of the last."
        exactly = " exactly: the mask turns nothing off."
        title = f"{cover} {count(n, 'element')}{masked if off else exactly}"
    canvas = Canvas(title)
    top = y = canvas.top + 12
    parts = [f"Programs, blocks and masks. {title}"]
    rows = shown_programs(n, block)
    for program in rows:
        if program is None:
            canvas.text(MARGIN, y + CELL / 2 - 4, f"… {grid - len(rows) + 1:,} more", MUTED)
        else:
            first, last = program * block, min((program + 1) * block, n) - 1
            _draw_program(canvas, y, program, block, last + 1 - first)
            span = f"element {first}" if first == last else f"elements {first} to {last}"
            beyond = first + block - 1 - last
            masked = f", then {beyond} masked off" if beyond else ""
            parts.append(f"Program {program}: {span}{masked}.")
        y += ROW
    if not rows:
        canvas.text(MARGIN, top + 16, "the grid is empty: nothing is launched")
    y = top + max(len(rows), 1) * ROW + 14
    canvas.marker(MARGIN + 8, y, KERNEL.marker, 15, KERNEL.colour)
    canvas.text(MARGIN + 26, y, "one run of the kernel", MUTED)
    canvas.legend(MARGIN + 210, y, [("loaded and stored: i < n", STORAGE.tint, STORAGE.colour)])
    words = "masked off: the program has this place, but does not access memory for it"
    canvas.legend(MARGIN + 2, y + 26, [(words, IDLE, MUTED, True)])
    return canvas.finish(top + max(len(rows), least, 1) * ROW + 66, " ".join(parts))


def shown_programs(n: int, block: int) -> list[int | None]:
    """Return the programs that have a row. None stands for the programs that are left out."""
    grid = -(-n // block)
    if grid <= SHOWN + 1:
        return list(range(grid))
    return [*range(FIRST), None, grid - 2, grid - 1]


def _draw_program(canvas: Canvas, y: float, program: int, block: int, on: int) -> None:
    """Draw the row of a program. The mask is on for the first `on` lanes of its block."""
    left, middle, first = MARGIN + LABEL, y + HIGH / 2, program * block
    cell = min(CELL, (INNER - LABEL - NOTE) / block)
    canvas.marker(MARGIN + 8, middle, KERNEL.marker, 15, KERNEL.colour)
    canvas.text(MARGIN + 24, middle, f"program {program:,}")
    if cell >= NARROW:
        for k in range(block):
            x, size = left + k * cell, 14 if cell >= 36 else 13
            fill, edge, ink = (
                (STORAGE.tint, STORAGE.colour, INK) if k < on else (IDLE, MUTED, MUTED)
            )
            canvas.box((x, y, cell, HIGH), fill, edge=edge, dashed=k >= on)
            canvas.text(x + cell / 2, middle, f"{first + k}", ink, "center", size=size)
    else:
        if on < block:
            rest = (left + on * cell, y, (block - on) * cell, HIGH)
            canvas.box(rest, IDLE, edge=MUTED, dashed=True)
        canvas.box((left, y, on * cell, HIGH), STORAGE.tint, edge=STORAGE.colour)
        canvas.text(left + 8, middle, f"{first:,}")
        ink = MUTED if on < block else INK
        canvas.text(left + block * cell - 8, middle, f"{first + block - 1:,}", ink, "right")
    note = f"{on:,} of {block:,}" if on < block else f"all {block:,}" if block > 1 else "its one"
    canvas.text(left + block * cell + 14, middle, note, MUTED)
    canvas.line([(MARGIN, y + HIGH + 6), (RIGHT, y + HIGH + 6)], RULE, 0.5)
