"""Shapes under one another, aligned on the right: what broadcasting repeats, where it clashes."""

from __future__ import annotations

import math
from collections.abc import Sequence

from matplotlib.figure import Figure
from torch import Tensor

from utils.notebook.style import CARD, INK, MUTED, VIEW
from utils.views import _interactive
from utils.views._broadcasting import Alignment, Shape, align, parse_shape
from utils.views._canvas import INNER, MARGIN, SMALL, Canvas, title_height
from utils.views._numbers import count, listed
from utils.views._text_outlines import text_width

BOX_H, ROW, GAP, WIDEST = 38, 52, 10, 76
LABEL_W, NOTE_W = 130, 214  # the shape left of its boxes, the remark right of them
# Offered where nothing can be typed: an outer sum, a bias, a column beside a row, clashes.
TRIES: tuple[tuple[Shape, ...], ...] = (
    ((5, 1), (1, 4)),
    ((32, 600), (600,)),
    ((64, 1), (64,)),
    ((2, 3, 1), (3, 5)),
    ((3,), (4,)),
    ((8, 6, 5), (8, 6)),
)


def broadcast_aligner(*shapes_or_tensors: Tensor | Sequence[int]) -> None:
    """Show how shapes broadcast: aligned on the right, what is repeated, the result or the clash.

    Each argument is a tensor or a shape such as (64, 1). Live, a text box for each tries another.

    Raises:
        TypeError: for anything else.
        ValueError: for no argument or a negative size.
    """
    shapes = align([_shape(thing) for thing in shapes_or_tensors]).shapes
    _interactive.present(
        lambda *texts: draw([parse_shape(text) for text in texts]),
        [str(shape) for shape in shapes],
        lambda widgets: [
            widgets.Text(value=str(shape), description=f"shape {at}", continuous_update=False)
            for at, shape in enumerate(shapes)
        ],
        [list(map(str, some)) for some in TRIES if len(some) == len(shapes)],
    )


def draw(shapes: Sequence[Shape]) -> tuple[Figure, str]:
    """Return the figure for some shapes, and its alternative text."""
    alignment = align(shapes)
    words = sentence(alignment)
    top = title_height(words) + 30
    canvas = Canvas(top + ROW * (len(shapes) + 1) + 28)
    canvas.title(words)
    columns = _columns(len(alignment.result))
    for column, (x, width) in enumerate(columns):
        dim = column - len(columns)
        canvas.note(x + width / 2, top - 14, f"dim {dim}", ha="center")
    for row in range(len(shapes)):
        _draw_shape(canvas, top + row * ROW, alignment, row, columns)
    _draw_result(canvas, top + len(shapes) * ROW + 12, alignment, columns)
    return canvas.finish(), describe(alignment)


def sentence(alignment: Alignment) -> str:
    """What these shapes do, as the figure's title."""
    shapes = listed([str(shape) for shape in alignment.shapes])
    if alignment.clashes:
        column = alignment.clashes[-1]
        found = [row[column] for row in alignment.rows if row[column] not in (None, 1)]
        sizes = listed([str(size) for size in dict.fromkeys(found)])
        dim = column - len(alignment.result)
        return f"{shapes} do not broadcast: dim {dim} has {sizes}, and neither is 1."
    stretched = [
        str(shape)
        for row, shape in enumerate(alignment.shapes)
        if any(alignment.stretched(row, column) for column in range(len(alignment.result)))
    ]
    if not stretched:
        return f"{shapes}: every size agrees, so nothing is repeated."
    if len(stretched) == len(alignment.shapes) > 1:
        return f"{shapes} repeat each other: the result {alignment.result} is larger than any."
    verb = "is" if len(stretched) == 1 else "are"
    return f"{listed(stretched)} {verb} repeated to {alignment.result}, by stride 0 and no copy."


def describe(alignment: Alignment) -> str:
    """Return the alternative text: the sentence, then each shape's remark."""
    remarks = [f"{shape}: {_remark(alignment, row)}." for row, shape in enumerate(alignment.shapes)]
    return " ".join([f"Broadcasting, aligned on the right. {sentence(alignment)}", *remarks])


def _shape(thing: object) -> Shape:
    if isinstance(thing, Tensor):
        return tuple(thing.shape)
    if isinstance(thing, Sequence) and all(isinstance(size, int) for size in thing):
        return tuple(thing)
    raise TypeError(f"expected a tensor or a shape such as (64, 1), got {thing!r}")


def _remark(alignment: Alignment, row: int) -> str:
    width = len(alignment.result)
    dims = [str(c - width) for c in range(width) if alignment.stretched(row, c)]
    return f"repeated along dim {listed(dims)}" if dims else "used as it is"


def _columns(ndim: int) -> list[tuple[float, float]]:
    """Return the left edge and width of each column of boxes."""
    room = INNER - LABEL_W - NOTE_W
    width = min(WIDEST, (room + GAP) / max(ndim, 1) - GAP)
    return [(MARGIN + LABEL_W + column * (width + GAP), width) for column in range(ndim)]


def _note_x(columns: Sequence[tuple[float, float]]) -> float:
    return (sum(columns[-1]) if columns else MARGIN + LABEL_W) + 26


def _draw_shape(
    canvas: Canvas,
    y: float,
    alignment: Alignment,
    row: int,
    columns: Sequence[tuple[float, float]],
) -> None:
    middle = y + BOX_H / 2
    name = str(alignment.shapes[row])
    if text_width(name, size=12, mono=True) > LABEL_W - 14:
        name = f"shape {row}"
    canvas.text(MARGIN, middle, name, size=12, mono=True)
    for column, (x, width) in enumerate(columns):
        size = alignment.rows[row][column]
        clash = column in alignment.clashes and size not in (None, 1)
        box = [(x, y, width, BOX_H)]
        if size is None:
            canvas.boxes(box, ["none"], edge=MUTED, radius=8, dashed=True)
        else:
            canvas.boxes(box, [INK if clash else VIEW.tint], edge="none", radius=8)
        if alignment.stretched(row, column):
            # What the shape says, then how many times it is read: by a stride of 0.
            grown = f"→ {alignment.result[column]}"
            if size is not None and text_width(f"1 {grown}", size=12, mono=True) <= width - 8:
                grown = f"1 {grown}"
            _draw_fitting(canvas, x + width / 2, middle - 7, grown, width - 8, 13)
            centre, size = x + width / 2, SMALL - 1
            canvas.text(centre, middle + 10, "stride 0", size=size, colour=VIEW.colour, ha="center")
        elif size is not None:
            colour = CARD if clash else INK
            _draw_fitting(canvas, x + width / 2, middle, str(size), width - 8, 16, colour)
    canvas.note(_note_x(columns), middle, _remark(alignment, row))


def _draw_result(
    canvas: Canvas, y: float, alignment: Alignment, columns: Sequence[tuple[float, float]]
) -> None:
    middle = y + BOX_H / 2
    right = columns[-1][0] + columns[-1][1] if columns else MARGIN + LABEL_W
    canvas.line([(MARGIN, y - 13), (right, y - 13)], colour=MUTED)
    canvas.text(MARGIN, middle, "result", size=12, mono=True)
    for size, (x, width) in zip(alignment.result, columns, strict=True):
        fill = INK if size is None else VIEW.colour
        canvas.boxes([(x, y, width, BOX_H)], [fill], edge="none", radius=8)
        words = "≠" if size is None else str(size)
        _draw_fitting(canvas, x + width / 2, middle, words, width - 8, 16, CARD)
    clash = bool(alignment.clashes)
    sizes = (size for size in alignment.result if size is not None)  # None where two clash
    remark = "RuntimeError" if clash else count(math.prod(sizes), "element")
    canvas.note(_note_x(columns), middle, remark)


def _draw_fitting(
    canvas: Canvas,
    x: float,
    y: float,
    words: str,
    room: float,
    size: float,
    colour: str = INK,
) -> None:
    """Centred text, smaller where it would not fit in `room` CSS pixels."""
    while text_width(words, size=size, mono=True) > room and size > 7:
        size -= 1
    canvas.text(x, y, words, size=size, mono=True, ha="center", colour=colour)
