"""Shapes under one another, aligned on the right: what broadcasting repeats, and where it clashes."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure
from torch import Tensor

from utils.style import CARD, IDLE, INK, MUTED, RULE, VIEW
from utils.views import _live
from utils.views._broadcasting import Alignment, Shape, align, parse_shape
from utils.views._canvas import MARGIN, SMALL, Canvas, title_height

BOX_W, BOX_H, ROW, COLUMN = 74, 38, 58, 86


def broadcast_aligner(*shapes_or_tensors: Tensor | Sequence[int]) -> None:
    """Show how shapes broadcast together: aligned on the right, repeated sizes marked, the result or the clash.

    Each argument is a tensor or a shape such as (64, 1). Live, a box for each lets you try another shape.
    Raises TypeError for anything else, ValueError for no argument or a negative size.
    """
    shapes = align([_shape(thing) for thing in shapes_or_tensors]).shapes
    _live.present(
        lambda *texts: draw([parse_shape(text) for text in texts]),
        [str(shape) for shape in shapes],
        lambda widgets: [
            widgets.Text(value=str(shape), description=f"shape {at}", continuous_update=False)
            for at, shape in enumerate(shapes)
        ],
    )


def draw(shapes: Sequence[Shape]) -> tuple[Figure, str]:
    """The figure for some shapes, and its alternative text."""
    alignment = align(shapes)
    words = sentence(alignment)
    top = title_height(words) + 14
    canvas = Canvas(top + ROW * (len(shapes) + 1) + 30)
    canvas.title(words)
    left = MARGIN + 150
    for row, sizes in enumerate(alignment.rows):
        y = top + row * ROW
        canvas.text(MARGIN, y + BOX_H / 2, str(alignment.shapes[row]), mono=True)
        for column, size in enumerate(sizes):
            _draw_size(canvas, left + column * COLUMN, y, alignment, row, column, size)
    y = top + len(shapes) * ROW
    right = left + len(alignment.result) * COLUMN
    canvas.line([(MARGIN, y - 8), (right, y - 8)], colour=MUTED)
    canvas.text(MARGIN, y + BOX_H / 2 + 6, "result", colour=MUTED)
    for column, size in enumerate(alignment.result):
        x = left + column * COLUMN
        fill = INK if size is None else VIEW.colour
        canvas.boxes([(x, y + 6, BOX_W, BOX_H)], [fill], radius=8)
        canvas.text(
            x + BOX_W / 2,
            y + 6 + BOX_H / 2,
            "≠" if size is None else str(size),
            size=16,
            mono=True,
            colour=CARD,
            ha="center",
        )
    return canvas.finish(), describe(alignment)


def sentence(alignment: Alignment) -> str:
    """What these shapes do, as the figure's title."""
    shapes = " and ".join(str(shape) for shape in alignment.shapes)
    if alignment.clashes:
        back = alignment.clashes[-1] - len(alignment.result)
        sizes = sorted({row[back] for row in alignment.rows if row[back] not in (None, 1)})
        return f"{shapes} do not broadcast: dim {back} has {' and '.join(map(str, sizes))}, and neither is 1."
    result = tuple(alignment.result)
    stretched = [
        shape
        for row, shape in enumerate(alignment.shapes)
        if any(alignment.stretched(row, column) for column in range(len(result)))
    ]
    if not stretched:
        return f"{shapes} agree in every dimension: nothing is repeated."
    if len(stretched) == len(alignment.shapes) > 1:
        return f"{shapes} give {result}: each is repeated, so the result is larger than any of them."
    return f"{shapes} give {result}: {' and '.join(map(str, stretched))} is repeated, by stride 0."


def describe(alignment: Alignment) -> str:
    """The alternative text: the sentence, then each shape's repeated dimensions."""
    parts = [f"Broadcasting, aligned on the right. {sentence(alignment)}"]
    width = len(alignment.result)
    for row, shape in enumerate(alignment.shapes):
        dims = [str(c - width) for c in range(width) if alignment.stretched(row, c)]
        parts.append(f"{shape} is repeated along dim {', '.join(dims)}." if dims else f"{shape} is used as it is.")
    return " ".join(parts)


def _shape(thing: object) -> Shape:
    if isinstance(thing, Tensor):
        return tuple(thing.shape)
    if isinstance(thing, int):
        return (thing,)
    if isinstance(thing, Sequence) and not isinstance(thing, str) and all(isinstance(n, int) for n in thing):
        return tuple(thing)
    raise TypeError(f"expected a tensor or a shape such as (64, 1), got {thing!r}")


def _draw_size(
    canvas: Canvas, x: float, y: float, alignment: Alignment, row: int, column: int, size: int | None
) -> None:
    stretched, clash = alignment.stretched(row, column), column in alignment.clashes
    middle = x + BOX_W / 2
    if size is None:
        canvas.boxes([(x, y, BOX_W, BOX_H)], ["none"], edge=MUTED, radius=8, dashed=True)
    else:
        fill = INK if clash and size != 1 else VIEW.tint if not stretched else IDLE
        canvas.boxes([(x, y, BOX_W, BOX_H)], [fill], edge=RULE if stretched else CARD, radius=8)
    if stretched:
        text = f"1 → {alignment.result[column]}" if size is not None else f"→ {alignment.result[column]}"
        canvas.text(middle, y + BOX_H / 2 - 6, text, mono=True, ha="center", colour=MUTED)
        canvas.text(middle, y + BOX_H / 2 + 10, "stride 0", size=SMALL - 1, ha="center", colour=VIEW.colour)
    elif size is not None:
        colour = CARD if clash and size != 1 else INK
        canvas.text(middle, y + BOX_H / 2, str(size), size=16, mono=True, ha="center", colour=colour)
