"""A storage as a strip, a view as a grid, and the sum that finds an element in the strip."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

from torch import Tensor

from utils.notebook.style import CARD, IDLE, INK, MUTED, STORAGE, VIEW
from utils.views._canvas import INNER, MARGIN, SMALL, Canvas, Drawing
from utils.views._controls import slider
from utils.views._numbers import count, human_bytes, short
from utils.views._strides import (
    Geometry,
    Number,
    full_index,
    geometry,
    plain,
    storage_values,
    window,
)
from utils.views._text_outlines import text_width
from utils.views._view import present

CELL_W, CELL_H, GAP = 46, 30, 6
STRIP_COLUMNS, STRIP_ROWS, STRIP_STEP = 16, 4, 56
LANE = MARGIN + STRIP_COLUMNS * CELL_W + 14  # the x at which the line passes lower rows
FACTS_W, ROW_HEADER = 168, 24  # the widths of the facts left of the grid, and of the row numbers
GRID_ROWS, GRID_COLUMNS, SLAB_COLUMNS, SLAB_GAP = 6, 11, 5, 24


def stride_explorer(tensor: Tensor, *, index: int | Sequence[int] | None = None) -> None:
    """Show where the elements of `tensor` are in its storage, with one element lit in both.

    A live view has a slider for each dimension.

    tensor: any strided tensor, with any shape, dtype and device. If the tensor is large, only a
        part is shown.
    index: the index of the lit element, one number for each dimension.

    Raises TypeError for a tensor without strides, and IndexError for an index that doesn't fit.
    """
    layout = geometry(tensor)
    start = () if layout.empty else full_index(layout.shape, index)
    sizes = enumerate(zip(start, layout.shape, strict=False))
    controls = [slider(f"dim {dim}", i, 0, size - 1) for dim, (i, size) in sizes]
    present(lambda *at: draw(tensor, at), *controls)


def draw(tensor: Tensor, index: tuple[int, ...]) -> Drawing:
    """Draw the tensor with the element at `index` lit. An empty view ignores `index`."""
    layout = geometry(tensor)
    index = () if layout.empty else index
    return _Sheet(tensor, layout, index).finish(describe(tensor, layout, index))


def sentence(layout: Geometry) -> str:
    if layout.empty:
        return "An empty view has a shape and strides, and reaches no element."
    if not layout.shape:
        return "A 0-D view has no strides: its one element is at the offset."
    if layout.sharing > 1:
        return "Stride 0: the view repeats, the memory does not."
    if layout.overlaps:
        return "Overlapping windows: neighbours in the view share elements of the storage."
    if layout.row_major and layout.offset:
        return "A view may begin anywhere: the offset says where."
    if layout.row_major:
        return "Row-major: one step in the last dimension is one step in memory."
    steps = [s for s, n in zip(layout.stride, layout.shape, strict=True) if n > 1]
    if sorted(steps, reverse=True) != steps:
        return "Transposing moves no byte: the strides change places."
    return "A slice copies nothing: its strides step over the other elements."


def describe(tensor: Tensor, layout: Geometry, index: tuple[int, ...]) -> str:
    dtype = str(tensor.dtype).removeprefix("torch.")
    words = (
        f"Stride explorer. {sentence(layout)} A view of shape {layout.shape}, "
        f"strides {layout.stride}, offset {layout.offset}, dtype {dtype}, over a storage of "
        f"{count(layout.length, 'element')} ({human_bytes(layout.length * layout.itemsize)})."
    )
    if layout.empty:
        return words
    at = layout.element(index)
    steps = [f"{i}·{s}" for i, s in zip(index, layout.stride, strict=True)]
    words += (
        f" Index {list(index)} is {' + '.join([str(layout.offset), *steps])} = element {at} "
        f"of the storage, at byte {at * layout.itemsize}"
    )
    value = plain(tensor[index])
    words += f"; it holds {short(value[0])}." if value is not None else "; it has no value to show."
    if layout.sharing > 1:
        words += f" {layout.sharing:,} indices reach that one element."
    return words


class _Sheet:
    """Draws everything on a canvas for a lit index, which is () for an empty or 0-D view."""

    def __init__(self, tensor: Tensor, layout: Geometry, index: tuple[int, ...]) -> None:
        self.tensor, self.layout, self.index = tensor, layout, index
        self.lit = None if layout.empty else layout.element(index)
        whole = layout.length <= STRIP_COLUMNS * STRIP_ROWS
        most = STRIP_COLUMNS * (STRIP_ROWS if whole else STRIP_ROWS // 2)
        self.strip = window(layout.length, self.lit or 0, most, STRIP_COLUMNS)
        # The grid shows the last three dimensions. Earlier dimensions are fixed at the lit index.
        self.leading = index[:-3]
        self.shape = (1, 1, 1, *layout.shape)[-3:]
        self.corner: Any = (0, 0, 0, *index)[-3:]
        slabs, rows, columns = self.shape
        i, j, k = self.corner
        shown = min(columns, GRID_COLUMNS if slabs <= 1 else SLAB_COLUMNS)
        fit = max(1, int((INNER - FACTS_W + SLAB_GAP) // _slab_width(shown)))
        self.planes, self.rows = window(slabs, i, fit), window(rows, j, GRID_ROWS)
        self.columns = window(columns, k, shown)
        self.labelled = len(layout.shape) > 2 and not layout.empty
        self.canvas = Canvas(sentence(layout))

    def finish(self, alt: str) -> Drawing:
        layout, seen = self.layout, self.lit is not None
        sum_y = self.canvas.top + 10
        self.strip_y = sum_y + (108 if seen else 46)
        strip_rows = -(-len(self.strip) // STRIP_COLUMNS)
        self.lane_y = self.strip_y + (strip_rows - 1) * STRIP_STEP + CELL_H + 18
        self.grid_y = self.lane_y + (36 if seen else 10)
        self._draw_strip()
        self._draw_facts()
        parts = []
        if len(self.strip) < layout.length:
            parts.append(f"elements {_span(self.strip)} of {layout.length:,}")
        grid = 0
        if seen:
            self._draw_sum(sum_y + 12)
            self._draw_grid()
            self._draw_wire()
            grid = len(self.rows) * (CELL_H + GAP) + (16 if self.labelled else 0)
        shown = zip(("slabs", "rows", "columns"), self.shape, self._windows(), strict=True)
        cut = [(name, size, some) for name, size, some in shown if len(some) < size]
        parts += [f"{name} {_span(some)} of {size:,}" for name, size, some in cut if seen]
        height = self.grid_y + max(grid, 96) + 18
        if len(self.strip) < layout.length or cut:
            height += 22
        if parts:
            self.canvas.note(MARGIN, height - 24, f"Shown: {', '.join(parts)}.")
        return self.canvas.finish(height, alt)

    def _windows(self) -> tuple[range, range, range]:
        return self.planes, self.rows, self.columns

    def _draw_sum(self, y: float) -> None:
        """Draw `[1, 2] → 0 + 1·4 + 2·1 = 6 → byte 24`, with a name below each number."""
        layout, lit = self.layout, self.lit
        assert lit is not None
        terms = [([(str(list(self.index)), VIEW.colour)], "index"), ([("→", MUTED)], "")]
        terms.append(([(str(layout.offset), INK)], "offset"))
        for dim, (i, s) in enumerate(zip(self.index, layout.stride, strict=True)):
            step = [(str(i), VIEW.colour), (f"·{s}", INK)]
            terms += [([("+", MUTED)], ""), (step, f"dim {dim}")]
        terms += [([("=", MUTED)], ""), ([(str(lit), STORAGE.colour)], "element")]
        address = [(f"byte {lit * layout.itemsize}", STORAGE.colour)]
        terms += [([("→", MUTED)], ""), (address, f"{lit} × {layout.itemsize} B")]

        def widths(size: float) -> list[tuple[float, float]]:
            own = [
                text_width("".join(piece for piece, _ in pieces), size=size, mono=True)
                for pieces, _ in terms
            ]
            named = (text_width(label, size=SMALL) for _, label in terms)
            return [(alone, max(alone, name)) for alone, name in zip(own, named, strict=True)]

        size, gap = 18.0, 11.0
        while sum(wide for _, wide in widths(size)) + gap * (len(terms) - 1) > INNER and size > 9:
            size, gap = size - 1, max(4, gap - 1)
        x = float(MARGIN)
        for (pieces, label), (own, width) in zip(terms, widths(size), strict=True):
            first = x == MARGIN
            at = x if first else x + (width - own) / 2
            for piece, colour in pieces:
                self.canvas.text(at, y, piece, colour, size=size, mono=True)
                at += text_width(piece, size=size, mono=True)
            middle = x if first else x + width / 2
            self.canvas.note(middle, y + 21, label, "left" if first else "center")
            x += width + gap

    def _draw_strip(self) -> None:
        layout, canvas = self.layout, self.canvas
        y = self.strip_y - 34
        canvas.box((MARGIN, y - 6, 12, 12), STORAGE.colour, edge=CARD)
        canvas.text(MARGIN + 20, y, "storage", STORAGE.colour, size=13)
        dtype = str(self.tensor.dtype).removeprefix("torch.")
        size = human_bytes(layout.length * layout.itemsize)
        what = f"{count(layout.length, 'element')} of {dtype}, {layout.itemsize} B each: {size}"
        what += "; above each, the address of its first byte" if layout.length else " allocated"
        canvas.note(MARGIN + 26 + text_width("storage", size=13), y, what)

        reached = layout.reached(self.strip.start, self.strip.stop)
        values = storage_values(self.tensor, self.strip.start, self.strip.stop)
        # If addresses are long, only every second or fourth cell has an address.
        wide = text_width(str(self.strip.stop * layout.itemsize), size=SMALL) + 8
        every = 1 if wide <= CELL_W else 2 if wide <= 2 * CELL_W else 4
        for k in self.strip:
            x, top = self._strip_xy(k)
            lit = k == self.lit
            fill = STORAGE.colour if lit else STORAGE.tint if k in reached else IDLE
            canvas.box((x, top, CELL_W, CELL_H), fill, edge=CARD)
            near = self.lit is not None and 0 < abs(k - self.lit) < every
            if lit or k % every == 0 and not near:
                address, ink = str(k * layout.itemsize), INK if lit else MUTED
                canvas.text(x + CELL_W / 2, top - 9, address, ink, "center", size=SMALL)
            if values is not None:
                colour = STORAGE.on if lit else INK if k in reached else MUTED
                self._value(x, top, values[k - self.strip.start], colour)

    def _draw_facts(self) -> None:
        canvas, layout, y = self.canvas, self.layout, self.grid_y + 8
        canvas.box((MARGIN, y - 6, 12, 12), VIEW.colour, edge=CARD, radius=4)
        canvas.text(MARGIN + 20, y, "view", VIEW.colour, size=13)
        facts = (("shape", layout.shape), ("strides", layout.stride), ("offset", layout.offset))
        for name, value in facts:
            y += 20
            canvas.note(MARGIN, y + 6, name)
            size = min(12, 12 * (FACTS_W - 60) / text_width(str(value), size=12, mono=True))
            canvas.text(MARGIN + 54, y + 6, str(value), size=size, mono=True)

    def _draw_grid(self) -> None:
        canvas, layout = self.canvas, self.layout
        kept = self._windows()[3 - min(3, len(layout.shape)) :]
        place: Any = (*self.leading, *(slice(w.start, w.stop) for w in kept))
        block = plain(self.tensor[place])
        for at, place in enumerate(product(*self._windows())):
            index = (*self.leading, *place[3 - min(3, len(layout.shape)) :])
            x, top = self._grid_xy(place)
            lit = index == self.index
            box = (x, top, CELL_W, CELL_H)
            canvas.box(box, VIEW.colour if lit else VIEW.tint, edge=CARD, radius=7)
            if not lit and layout.element(index) == self.lit:
                canvas.box(box, "none", edge=VIEW.colour, line=2, radius=7)
            if block is not None:
                self._value(x, top, block[at], VIEW.on if lit else INK)
        for plane in self.planes:
            self._draw_headers(plane)

    def _draw_headers(self, plane: int) -> None:
        """Draw the row and column numbers of a slab. The numbers of the lit element are darker."""
        canvas, here = self.canvas, plane == self.corner[0]
        for row in self.rows if len(self.layout.shape) > 1 else ():
            x, y = self._grid_xy((plane, row, self.columns.start))
            ink = INK if here and row == self.corner[1] else MUTED
            canvas.text(x - 10, y + CELL_H / 2, str(row), ink, "right", size=SMALL)
        for column in self.columns if self.layout.shape else ():
            x, y = self._grid_xy((plane, self.rows.start, column))
            ink = INK if here and column == self.corner[2] else MUTED
            canvas.text(x + CELL_W / 2, y - 10, str(column), ink, "center", size=SMALL)
        if self.labelled:
            x, y = self._grid_xy((plane, self.rows.stop, self.columns.start))
            fixed = ", ".join(map(str, (*self.leading, plane)))
            ink = INK if here else MUTED
            canvas.text(x, y + 6, f"[{fixed}, :, :]", ink, size=SMALL, mono=True)

    def _draw_wire(self) -> None:
        """Draw a line from the strip's lit cell to the grid's lit cell. It crosses no number."""
        assert self.lit is not None
        x, y = self._strip_xy(self.lit)
        end = self._grid_xy(self.corner)
        middle, gap_x, end_y = x + CELL_W / 2, end[0] - GAP / 2, end[1] + CELL_H / 2
        way = [(middle, y + CELL_H), (middle, self.lane_y)]
        if self.strip_y + (len(self.strip) - 1) // STRIP_COLUMNS * STRIP_STEP > y:
            below = y + CELL_H + 8
            way[1:] = [(middle, below), (LANE, below), (LANE, self.lane_y)]
        way += [(gap_x, self.lane_y), (gap_x, end_y), (end[0], end_y)]
        self.canvas.wires([way])
        for corner, part, radius in (((x, y), STORAGE, 0), (end, VIEW, 7)):
            box = (*corner, CELL_W, CELL_H)
            self.canvas.box(box, part.colour, edge=INK, line=1.6, radius=radius)

    def _value(self, x: float, y: float, value: Number, colour: str) -> None:
        words = short(value, 2 if isinstance(value, complex) else 5)
        at = x + CELL_W / 2, y + CELL_H / 2
        self.canvas.text(*at, words, colour, "center", size=SMALL, mono=True)

    def _strip_xy(self, element: int) -> tuple[float, float]:
        row, column = divmod(element - self.strip.start, STRIP_COLUMNS)
        return MARGIN + column * CELL_W, self.strip_y + row * STRIP_STEP

    def _grid_xy(self, place: tuple[int, ...]) -> tuple[float, float]:
        plane, row, column = place
        left = MARGIN + FACTS_W + (plane - self.planes.start) * _slab_width(len(self.columns))
        x = left + ROW_HEADER + (column - self.columns.start) * (CELL_W + GAP)
        return x, self.grid_y + (row - self.rows.start) * (CELL_H + GAP)


def _slab_width(columns: int) -> float:
    return ROW_HEADER + columns * (CELL_W + GAP) - GAP + SLAB_GAP


def _span(shown: range) -> str:
    return f"{shown.start:,}–{shown.stop - 1:,}"
