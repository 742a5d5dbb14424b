"""Shapes in rows, aligned on the right: which dimensions broadcasting repeats, and which clash."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from utils.notebook.style import CARD, INK, MUTED, VIEW
from utils.views._canvas import INNER, MARGIN, SMALL, Canvas, Drawing
from utils.views._controls import Control
from utils.views._numbers import count, listed
from utils.views._text_outlines import text_width
from utils.views._view import present

Shape = tuple[int, ...]
BOX_H, ROW, GAP, WIDEST = 38, 52, 10, 76
# the space for a shape, left of its boxes, and for the remark, right of the boxes
LABEL_W, NOTE_W = 130, 214
# Choices for a page without text boxes: an outer sum, a bias, a column beside a row, clashes.
TRIES: tuple[tuple[Shape, ...], ...] = (
    ((5, 1), (1, 4)),
    ((32, 600), (600,)),
    ((64, 1), (64,)),
    ((2, 3, 1), (3, 5)),
    ((3,), (4,)),
    ((8, 6, 5), (8, 6)),
)


@dataclass(frozen=True)
class Alignment:
    """Shapes in rows, aligned on the right.

    rows[r][c]: the size of shape r in column c, or None if shape r has no dimension there.
    result[c]: the size of the result in column c, or None if sizes clash there.
    """

    shapes: tuple[Shape, ...]
    rows: tuple[tuple[int | None, ...], ...]
    result: tuple[int | None, ...]

    @property
    def clashes(self) -> list[int]:
        """The columns in which two sizes differ and neither size is 1."""
        return [column for column, size in enumerate(self.result) if size is None]

    def stretched(self, row: int, column: int) -> bool:
        """Return whether shape `row` is repeated along `column`, by stride 0."""
        size, wanted = self.rows[row][column], self.result[column]
        return wanted is not None and (size is None or size == 1) and wanted != 1

    def repeated(self, row: int) -> list[str]:
        width = len(self.result)
        return [str(c - width) for c in range(width) if self.stretched(row, c)]


def broadcast_aligner(*shapes_or_tensors: Tensor | Sequence[int]) -> None:
    """Show how shapes broadcast: which sizes are repeated, and the result or the clash.

    Each argument is a tensor or a shape such as (64, 1). A live view has a text box for each
    argument, to type other shapes. Raises TypeError for another argument. Raises ValueError without
    an argument, or for a negative size.
    """
    shapes = align([_shape(thing) for thing in shapes_or_tensors]).shapes
    present(
        lambda *texts: draw([parse_shape(text) for text in texts]),
        *(Control("Text", f"shape {at}", str(shape)) for at, shape in enumerate(shapes)),
        tries=[list(map(str, some)) for some in TRIES if len(some) == len(shapes)],
    )


def _shape(thing: object) -> Shape:
    if isinstance(thing, Tensor):
        return tuple(thing.shape)
    if isinstance(thing, Sequence) and all(isinstance(size, int) for size in thing):
        return tuple(thing)
    raise TypeError(f"expected a tensor or a shape such as (64, 1), got {thing!r}")


def align(shapes: Sequence[Sequence[int]]) -> Alignment:
    """Align `shapes` as torch broadcasts them.

    Raises ValueError without a shape, or for a negative size.
    """
    if not shapes:
        raise ValueError("broadcasting needs at least one shape, got none: pass (64, 1), (64,)")
    plain = tuple(tuple(int(size) for size in shape) for shape in shapes)
    for shape in plain:
        if any(size < 0 for size in shape):
            raise ValueError(f"expected sizes of 0 or more, got the shape {shape}")
    width = max(map(len, plain))
    rows = tuple((None,) * (width - len(shape)) + shape for shape in plain)
    result = []
    for column in zip(*rows, strict=True):
        sizes = {size for size in column if size not in (None, 1)}
        result.append(None if len(sizes) > 1 else sizes.pop() if sizes else 1)
    return Alignment(plain, rows, tuple(result))


def parse_shape(text: str) -> Shape:
    """Return the shape in a text such as "(64, 1)", "64 1" or "64×1". "" is a 0-D shape.

    Raises ValueError for any other text.
    """
    words = text.replace("×", " ").replace("x", " ").strip(" ()[]").replace(",", " ").split()
    if not all(word.isdecimal() for word in words):
        raise ValueError(f"expected sizes such as '64, 1', got {text!r}")
    return tuple(int(word) for word in words)


def draw(shapes: Sequence[Shape]) -> Drawing:
    alignment = align(shapes)
    result, clashes = alignment.result, alignment.clashes
    canvas = Canvas(sentence(alignment))
    y = canvas.top + 30
    room = (INNER - LABEL_W - NOTE_W + GAP) / max(len(result), 1) - GAP
    wide, left = min(WIDEST, room), MARGIN + LABEL_W
    xs = [left + column * (wide + GAP) for column in range(len(result))]
    right = xs[-1] + wide if xs else left
    for column, x in enumerate(xs):
        canvas.note(x + wide / 2, y - 14, f"dim {column - len(xs)}", "center")
    parts = [f"Broadcasting, aligned on the right. {canvas.title}"]
    for row, shape in enumerate(alignment.shapes):
        middle, name = y + BOX_H / 2, str(shape)
        if text_width(name, size=12, mono=True) > LABEL_W - 14:
            name = f"shape {row}"
        canvas.text(MARGIN, middle, name, size=12, mono=True)
        for column, (x, size) in enumerate(zip(xs, alignment.rows[row], strict=True)):
            box, centre = (x, y, wide, BOX_H), x + wide / 2
            clash = column in clashes and size not in (None, 1)
            if size is None:
                canvas.box(box, "none", edge=MUTED, radius=8, dashed=True)
            else:
                canvas.box(box, INK if clash else VIEW.tint, radius=8)
            if alignment.stretched(row, column):
                # such as 1 → 64: one element is read 64 times, because the stride is 0
                grown = f"→ {result[column]}"
                if size is not None and text_width(f"1 {grown}", size=12, mono=True) <= wide - 8:
                    grown = f"1 {grown}"
                _draw_fitting(canvas, centre, middle - 7, grown, wide - 8, 13, INK)
                canvas.text(centre, middle + 10, "stride 0", VIEW.colour, "center", size=SMALL - 1)
            elif size is not None:
                ink = CARD if clash else INK
                _draw_fitting(canvas, centre, middle, str(size), wide - 8, 16, ink)
        dims = alignment.repeated(row)
        remark = f"repeated along dim {listed(dims)}" if dims else "used as it is"
        canvas.note(right + 26, middle, remark)
        parts.append(f"{shape}: {remark}.")
        y += ROW
    y += 12
    middle = y + BOX_H / 2
    canvas.line([(MARGIN, y - 13), (right, y - 13)], MUTED)
    canvas.text(MARGIN, middle, "result", size=12, mono=True)
    for size, x in zip(result, xs, strict=True):
        canvas.box((x, y, wide, BOX_H), INK if size is None else VIEW.colour, radius=8)
        words = "≠" if size is None else str(size)
        _draw_fitting(canvas, x + wide / 2, middle, words, wide - 8, 16, CARD)
    sizes = (size for size in result if size is not None)  # None where two sizes clash
    remark = "RuntimeError" if clashes else count(math.prod(sizes), "element")
    canvas.note(right + 26, middle, remark)
    return canvas.finish(y + ROW + 16, " ".join(parts))


def sentence(alignment: Alignment) -> str:
    shapes = listed([str(shape) for shape in alignment.shapes])
    if alignment.clashes:
        column = alignment.clashes[-1]
        found = [row[column] for row in alignment.rows if row[column] not in (None, 1)]
        sizes = listed([str(size) for size in dict.fromkeys(found)])
        dim = column - len(alignment.result)
        return f"{shapes} do not broadcast: dim {dim} has {sizes}, and neither is 1."
    stretched = [
        str(shape) for row, shape in enumerate(alignment.shapes) if alignment.repeated(row)
    ]
    if not stretched:
        return f"{shapes}: every size agrees, so nothing is repeated."
    if len(stretched) == len(alignment.shapes) > 1:
        return f"{shapes} repeat each other: the result {alignment.result} is larger than each."
    verb = "is" if len(stretched) == 1 else "are"
    return f"{listed(stretched)} {verb} repeated to {alignment.result}, by stride 0 and no copy."


def _draw_fitting(
    canvas: Canvas, x: float, y: float, words: str, room: float, size: float, colour: str
) -> None:
    """Draw centred text. Make it smaller if it would not fit in `room` CSS pixels."""
    while text_width(words, size=size, mono=True) > room and size > 7:
        size -= 1
    canvas.text(x, y, words, colour, "center", size=size, mono=True)
