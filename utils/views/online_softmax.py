"""A softmax in one pass: the running maximum and the running sum of a row, tile by tile."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from utils.notebook.style import CARD, GRADIENT, IDLE, INK, MUTED, RULE, STORAGE, VIEW
from utils.views._canvas import INNER, MARGIN, Canvas, Drawing
from utils.views._controls import slider, switch
from utils.views._numbers import require, short
from utils.views._view import present

MOST, MOST_TILES = 32, 8
LABEL, CELL, ROW = 196, 34, 34


@dataclass(frozen=True)
class Step:
    """The state after a tile."""

    top: float  # the largest number of the tile
    m: float  # the largest number so far
    correction: float  # the factor of the old sum
    l: float  # noqa: E741  the papers' name: the sum of exp(number - m) so far


def online_softmax(
    row: Tensor | Sequence[float], tile: int, *, step: int | None = None, correct: bool = True
) -> None:
    """Show the running maximum and sum of a row, tile by tile, and the factor that corrects it.

    In a live view, controls choose the tile and switch the correction off.

    row: 1 to 32 numbers, which may be -inf.
    tile: the number of numbers in a tile. There may be at most 8 tiles.
    step: the number of the lit tile, counted from 1, by default the last tile.

    Raises ValueError for other numbers.
    """
    numbers = [float(value) for value in row]
    require("online_softmax", len(numbers), "numbers", MOST)
    if tile < 1:
        raise ValueError(f"online_softmax: expected a tile of 1 or more, got {tile}")
    tiles = [numbers[k : k + tile] for k in range(0, len(numbers), tile)]
    require("online_softmax", len(tiles), "tiles", MOST_TILES)
    if any(math.isnan(value) or value == math.inf for value in numbers):
        raise ValueError("online_softmax: expected finite numbers or -inf, got inf or nan")
    present(
        lambda at, right: draw(tiles, read(tiles, right), at, right),
        slider("tile", len(tiles) if step is None else step, 1, len(tiles)),
        switch("correct the sum", correct),
    )


def read(tiles: Sequence[Sequence[float]], correct: bool = True) -> list[Step]:
    """Return the state after each tile.

    correct: whether the old sum is multiplied by the correction.
    """
    found, m, total = [], -math.inf, 0.0
    for tile in tiles:
        top = max(tile)
        new = max(m, top)
        factor = _exp(m, new) if correct else 1.0
        total = total * factor + sum(_exp(value, new) for value in tile)
        m = new
        found.append(Step(top, m, factor, total))
    return found


def _exp(value: float, m: float) -> float:
    """Return exp(value - m). For a value of -inf, return 0, even if m is -inf."""
    return 0.0 if value == -math.inf else math.exp(value - m)


def draw(
    tiles: Sequence[Sequence[float]], steps: Sequence[Step], at: int, correct: bool
) -> Drawing:
    step, before = steps[at - 1], steps[at - 2].m if at > 1 else -math.inf
    raised = step.m > before and at > 1
    if not raised:
        does = "the first maximum" if at == 1 else f"the maximum stays at {short(step.m, 5)}"
        title = f"Tile {at} of {len(tiles)}: {does}, and the sum is {short(step.l, 5)}."
    elif correct:
        title = (
            f"Tile {at} of {len(tiles)} raises the maximum: the old sum shrinks by {_factor(step)}."
        )
    else:
        title = f"Tile {at} of {len(tiles)} raises the maximum, and nobody corrects the old sum."
    canvas = Canvas(title)
    y = canvas.top + 20
    wide = min(CELL * 2, (INNER - 8 * len(tiles)) / sum(map(len, tiles)))
    x = float(MARGIN)
    for k, tile in enumerate(tiles, 1):
        fill, edge = (STORAGE.colour, INK) if k == at else (STORAGE.tint, STORAGE.colour)
        ink = STORAGE.on if k == at else INK
        if k > at:
            fill, edge, ink = IDLE, RULE, MUTED
        for value in tile:
            canvas.box((x, y, wide, CELL), fill, edge=edge)
            if wide >= CELL + 8:
                canvas.text(x + wide / 2, y + CELL / 2, short(value, 4), ink, "center", size=13)
            x += wide
        x += 8
    y += CELL + 34
    whole = max(map(max, tiles))
    names = ("largest of the tile", "m, largest so far", "factor of the old sum", "l, sum so far")
    column = (INNER - LABEL) / len(tiles)
    canvas.text(MARGIN, y, "tile", MUTED)
    for k in range(1, len(tiles) + 1):
        ink = INK if k == at else MUTED
        canvas.text(MARGIN + LABEL + (k - 0.5) * column, y, str(k), ink, "center")
    y += 22
    for line, name in enumerate(names):
        canvas.text(MARGIN, y + line * ROW + ROW / 2, name, MUTED)
        for k, one in enumerate(steps[:at], 1):
            value = (one.top, one.m, one.correction, one.l)[line]
            box = (MARGIN + LABEL + (k - 1) * column + 3, y + line * ROW + 3, column - 6, ROW - 6)
            lit = line == 2 and one.correction != 1 and k > 1
            look = GRADIENT if lit else VIEW
            strong = k == at and (line in (1, 3) or lit)
            fill = look.colour if strong else look.tint if lit or line in (1, 3) else CARD
            words = "–" if line == 2 and k == 1 else short(value, 5)
            canvas.box(box, fill, edge=look.colour if strong else RULE)
            middle = box[0] + box[2] / 2, box[1] + box[3] / 2
            canvas.text(*middle, words, look.on if strong else INK, "center", size=13)
    y += len(names) * ROW + 26
    seen = [value for tile in tiles[:at] for value in tile]
    right = sum(_exp(value, step.m) for value in seen)
    wrong = "" if math.isclose(right, step.l, rel_tol=1e-6) else f", but l is {short(step.l, 5)}"
    told = f"In two passes over these {len(seen)} numbers, the sum is {short(right, 5)}{wrong}."
    canvas.text(MARGIN, y, told, GRADIENT.colour if wrong else INK)
    states = "; ".join(
        f"tile {k}: largest {short(one.top, 5)}, m {short(one.m, 5)}, "
        f"factor {short(one.correction, 5)}, l {short(one.l, 5)}"
        for k, one in enumerate(steps[:at], 1)
    )
    alt = f"A softmax tile by tile. {title} {states}. {told} Largest of the row: {short(whole, 5)}."
    return canvas.finish(y + 26, alt)


def _factor(step: Step) -> str:
    return f"a factor of {short(step.correction, 5)}"
