"""The order in which programs take the tiles of a product, and the strips of inputs that they load.

Programs that run at the same time can share a loaded strip, if it is still in the cache.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from utils.notebook.style import CARD, INK, KERNEL, MUTED, RULE, STORAGE
from utils.views._canvas import MARGIN, RIGHT, Canvas, Drawing
from utils.views._controls import choice, slider
from utils.views._numbers import count, require
from utils.views._text_outlines import wrap
from utils.views._view import present

MOST = 12  # tiles along a side
PLACE = tuple[int, int]
SIDE, STRIP, GAP = 340, 30, 10  # the result's longer side; the width of an input's strip
NOTES = 330  # the distance of the text's start from the right edge

Order = Callable[[int, int, int, int], tuple[int, int]]


def tile_order(
    order: Order, down: int, across: int, *, group: int = 1, at_once: int = 9, wave: int = 1
) -> None:
    """Show which tiles run at the same time, and which strips of the inputs they load.

    In a live view, controls choose the group and the wave.

    order: a function of (program, down, across, group) that returns (row, column) of the program's
        tile.
    down, across: the numbers of tiles from top to bottom and from left to right, each 1 to 12.
    group: the argument `group` of `order`, from 1 to `down`.
    at_once: the number of programs in a wave.
    wave: the lit wave, counted from 1.

    Raises ValueError for numbers outside these bounds, or if the order does not visit each tile
    once.
    """
    require("tile_order", down, "tiles from top to bottom", MOST)
    require("tile_order", across, "tiles from left to right", MOST)
    require("tile_order", at_once, "programs at once", down * across)
    groups = range(1, down + 1)
    if group not in groups:
        raise ValueError(f"tile_order: expected a group of 1 to {down}, got {group}")
    visits = {size: read(order, down, across, size) for size in groups}
    present(
        lambda size, at: draw(visits[size], down, across, size, at_once, at),
        choice("group", group, list(groups)),
        slider("wave", wave, 1, -(-down * across // at_once)),
    )


def read(order: Order, down: int, across: int, group: int) -> list[PLACE]:
    """Return the tile (row, column) of each program.

    Raises ValueError unless each tile occurs once.
    """
    programs = range(down * across)
    visits = [(int(r), int(c)) for r, c in (order(p, down, across, group) for p in programs)]
    if missing := {(r, c) for r in range(down) for c in range(across)} - set(visits):
        raise ValueError(
            f"tile_order: expected each of the {len(visits)} tiles once, but with a group of "
            f"{group} no program takes the tile {min(missing)}"
        )
    return visits


def strips(visits: Sequence[PLACE], at_once: int) -> list[tuple[set[int], set[int]]]:
    """Return for each wave the rows of `a` and the columns of `b` that the wave loads."""
    waves = [visits[k : k + at_once] for k in range(0, len(visits), at_once)]
    return [({r for r, _ in some}, {c for _, c in some}) for some in waves]


def draw(
    visits: Sequence[PLACE], down: int, across: int, group: int, at_once: int, wave: int
) -> Drawing:
    found = strips(visits, at_once)
    rows, columns = found[wave - 1]
    first, last = (wave - 1) * at_once, min(wave * at_once, len(visits)) - 1
    who = f"Program {first} loads" if first == last else f"Programs {first} to {last} load"
    canvas = Canvas(f"{who} {count(len(rows), 'strip')} of a and {len(columns)} of b.")
    cell = SIDE / max(down, across)
    x, y = MARGIN + STRIP + GAP, canvas.top + 22 + STRIP + GAP
    lit = (STORAGE.tint, STORAGE.colour)
    for row in range(down):
        fill, edge = lit if row in rows else (CARD, RULE)
        canvas.box((MARGIN, y + row * cell, STRIP, cell), fill, edge=edge)
    for column in range(across):
        fill, edge = lit if column in columns else (CARD, RULE)
        canvas.box((x + column * cell, y - GAP - STRIP, cell, STRIP), fill, edge=edge)
    canvas.text(MARGIN + STRIP / 2, y - GAP - STRIP / 2, "b", MUTED, "center")
    canvas.text(MARGIN + STRIP / 2, y + down * cell + 16, "a", MUTED, "center")
    for program, (row, column) in enumerate(visits):
        box = (x + column * cell, y + row * cell, cell, cell)
        now, past = first <= program <= last, program < first
        fill = KERNEL.colour if now else KERNEL.tint if past else CARD
        canvas.box(box, fill, edge=INK if now else RULE)
        middle = box[0] + cell / 2, box[1] + cell / 2
        canvas.text(*middle, str(program), INK if now or past else MUTED, "center", size=13)
    at = RIGHT - NOTES
    top = y - GAP - STRIP / 2
    kinds = (
        (f"this wave: {last - first + 1} at the same time", KERNEL.colour, INK),
        ("earlier waves", KERNEL.tint, RULE),
        ("the strips that this wave loads", *lit),
    )
    for line, kind in enumerate(kinds):
        canvas.legend(at, top + 24 * line, [kind])
    total = sum(len(r) + len(c) for r, c in found)
    least, words = down + across, "row by row" if group == 1 else f"in groups of {group} rows"
    told = (
        f"{words[0].upper()}{words[1:]}, all {count(len(found), 'wave')} together load {total} "
        f"strips. If a cache kept everything, {least} would be enough; without a cache it would "
        f"be {2 * len(visits)}."
    )
    for line, text in enumerate(wrap(told, NOTES, size=14)):
        canvas.text(at, top + 96 + 22 * line, text)
    alt = (
        f"{count(len(visits), 'tile')} of a product, {down} × {across}. {canvas.title} Rows of a: "
        f"{listed(rows)}. Columns of b: {listed(columns)}. {told}"
    )
    return canvas.finish(y + down * cell + 38, alt)


def listed(numbers: set[int]) -> str:
    return ", ".join(map(str, sorted(numbers)))
