"""The stride explorer's drawing: strip, grid, the wire between them, and the sum."""

from __future__ import annotations

from itertools import product
from typing import Any

from matplotlib.figure import Figure
from torch import Tensor

from utils.notebook.style import IDLE, INK, MUTED, STORAGE, VIEW
from utils.views._canvas import BODY, INNER, MARGIN, SMALL, Canvas, title_height
from utils.views._numbers import count, human_bytes, short
from utils.views._strides import Geometry, Number, plain, storage_values, window
from utils.views._text_outlines import text_width

CELL_W, CELL_H, GAP = 46, 30, 6
STRIP_COLUMNS, STRIP_ROWS, STRIP_STEP = 16, 4, 56
LANE = MARGIN + STRIP_COLUMNS * CELL_W + 14  # where the wire passes lower rows of the strip
FACTS_W, ROW_HEADER = 168, 24  # the column of facts left of the grid; the row numbers
GRID_ROWS, GRID_COLUMNS, SLAB_COLUMNS, SLAB_GAP = 6, 11, 5, 24


class StrideSheet:
    """Places everything on one canvas for one lit index; () where the view is empty or 0-D."""

    def __init__(self, tensor: Tensor, layout: Geometry, index: tuple[int, ...]) -> None:
        self.tensor, self.layout, self.index = tensor, layout, index
        self.lit = None if layout.empty else layout.element(index)
        whole = layout.length <= STRIP_COLUMNS * STRIP_ROWS
        most = STRIP_COLUMNS * (STRIP_ROWS if whole else STRIP_ROWS // 2)
        self.strip = window(layout.length, self.lit or 0, most, STRIP_COLUMNS)
        # The grid shows the last three dimensions, the ones before them fixed at the lit index.
        self.leading = index[:-3]
        self.shape = (1, 1, 1, *layout.shape)[-3:]
        self.corner: Any = (0, 0, 0, *index)[-3:]
        self.planes, self.rows, self.columns = self._windows()

    def _windows(self) -> tuple[range, range, range]:
        slabs, rows, columns = self.shape
        wide = INNER - FACTS_W + SLAB_GAP
        shown = min(columns, GRID_COLUMNS if slabs <= 1 else SLAB_COLUMNS)
        fit = max(1, int(wide // _slab_width(shown)))
        i, j, k = self.corner
        return window(slabs, i, fit), window(rows, j, GRID_ROWS), window(columns, k, shown)

    def draw(self, title: str) -> Figure:
        sum_y = title_height(title) + 10
        self.strip_y = sum_y + (108 if self.lit is not None else 46)
        strip_rows = -(-len(self.strip) // STRIP_COLUMNS)
        bottom = self.strip_y + (strip_rows - 1) * STRIP_STEP + CELL_H
        partly = len(self.strip) < self.layout.length
        self.lane_y = bottom + 18
        self.grid_y = self.lane_y + (36 if self.lit is not None else 10)
        grid_rows = 0 if self.layout.empty else len(self.rows)
        grid = grid_rows * (CELL_H + GAP) + (16 if self._labelled() else 0)
        height = self.grid_y + max(grid, 96) + (22 if partly or self._grid_partly() else 0) + 18
        self.canvas = Canvas(height)
        self.canvas.title(title)
        if self.lit is not None:
            self._draw_sum(sum_y + 12)
        self._draw_strip()
        self._draw_facts()
        if not self.layout.empty:
            self._draw_grid()
            self._draw_wire()
        self._draw_window_note(height - 24)
        return self.canvas.finish()

    def _draw_sum(self, y: float) -> None:
        """`[1, 2] → 0 + 1·4 + 2·1 = 6 → byte 24`, each number named below it."""
        layout, lit = self.layout, self.lit
        terms = [([(str(list(self.index)), VIEW.colour)], "index"), ([("→", MUTED)], "")]
        terms.append(([(str(layout.offset), INK)], "offset"))
        for dim, (i, s) in enumerate(zip(self.index, layout.stride, strict=True)):
            step = [(str(i), VIEW.colour), (f"·{s}", INK)]
            terms += [([("+", MUTED)], ""), (step, f"dim {dim}")]
        terms += [([("=", MUTED)], ""), ([(str(lit), STORAGE.colour)], "element")]
        assert lit is not None
        address = [(f"byte {lit * layout.itemsize}", STORAGE.colour)]
        terms += [([("→", MUTED)], ""), (address, f"{lit} × {layout.itemsize} B")]

        def widths(size: float) -> list[float]:
            return [
                max(
                    text_width("".join(piece for piece, _ in pieces), size=size, mono=True),
                    text_width(label, size=SMALL),
                )
                for pieces, label in terms
            ]

        size, gap = 18.0, 11.0
        while sum(widths(size)) + gap * (len(terms) - 1) > INNER and size > 9:
            size, gap = size - 1, max(4, gap - 1)
        x = float(MARGIN)
        for (pieces, label), width in zip(terms, widths(size), strict=True):
            own = text_width("".join(piece for piece, _ in pieces), size=size, mono=True)
            at = x + (width - own) / 2 if x > MARGIN else x
            for piece, colour in pieces:
                self.canvas.text(at, y, piece, size=size, mono=True, colour=colour)
                at += text_width(piece, size=size, mono=True)
            middle = x + width / 2 if x > MARGIN else x
            self.canvas.note(middle, y + 21, label, ha="center" if x > MARGIN else "left")
            x += width + gap

    def _draw_strip(self) -> None:
        layout, canvas = self.layout, self.canvas
        y = self.strip_y - 34
        canvas.boxes([(MARGIN, y - 6, 12, 12)], [STORAGE.colour])
        canvas.text(MARGIN + 20, y, "storage", colour=STORAGE.colour)
        dtype = str(self.tensor.dtype).removeprefix("torch.")
        size = human_bytes(layout.length * layout.itemsize)
        what = f"{count(layout.length, 'element')} of {dtype}, {layout.itemsize} B each: {size}"
        what += "; above each, the address of its first byte" if layout.length else " allocated"
        canvas.note(MARGIN + 26 + text_width("storage", size=BODY), y, what)

        reached = layout.reached(self.strip.start, self.strip.stop)
        values = storage_values(self.tensor, self.strip.start, self.strip.stop)
        # Long addresses stand over every second or fourth cell.
        wide = text_width(str(self.strip.stop * layout.itemsize), size=SMALL) + 8
        every = 1 if wide <= CELL_W else 2 if wide <= 2 * CELL_W else 4
        boxes, fills = [], []
        for k in self.strip:
            x, top = self._strip_xy(k)
            lit = k == self.lit
            boxes.append((x, top, CELL_W, CELL_H))
            fills.append(STORAGE.colour if lit else STORAGE.tint if k in reached else IDLE)
            near = self.lit is not None and 0 < abs(k - self.lit) < every
            if lit or k % every == 0 and not near:
                address, ink = str(k * layout.itemsize), INK if lit else MUTED
                canvas.text(x + CELL_W / 2, top - 9, address, size=SMALL, colour=ink, ha="center")
            if values is not None:
                colour = STORAGE.on if lit else INK if k in reached else MUTED
                self._value(x, top, values[k - self.strip.start], colour)
        canvas.boxes(boxes, fills)

    def _draw_facts(self) -> None:
        canvas, layout, y = self.canvas, self.layout, self.grid_y + 8
        canvas.boxes([(MARGIN, y - 6, 12, 12)], [VIEW.colour], radius=4)
        canvas.text(MARGIN + 20, y, "view", colour=VIEW.colour)
        facts = (("shape", layout.shape), ("strides", layout.stride), ("offset", layout.offset))
        for row, (name, value) in enumerate(facts, start=1):
            canvas.note(MARGIN, y + 6 + 20 * row, name)
            words = str(value)
            size = min(12, 12 * (FACTS_W - 60) / text_width(words, size=12, mono=True))
            canvas.text(MARGIN + 54, y + 6 + 20 * row, words, size=size, mono=True)

    def _draw_grid(self) -> None:
        canvas, layout = self.canvas, self.layout
        block = self._block()
        same, boxes, fills = [], [], []
        places = list(product(self.planes, self.rows, self.columns))
        for at, place in enumerate(places):
            index = (*self.leading, *place[3 - min(3, len(layout.shape)) :])
            x, top = self._grid_xy(place)
            lit = index == self.index
            boxes.append((x, top, CELL_W, CELL_H))
            fills.append(VIEW.colour if lit else VIEW.tint)
            if not lit and layout.element(index) == self.lit:
                same.append(boxes[-1])
            if block is not None:
                self._value(x, top, block[at], VIEW.on if lit else INK)
        canvas.boxes(boxes, fills, radius=7)
        canvas.boxes(same, ["none"] * len(same), edge=VIEW.colour, line=2, radius=7)
        for plane in self.planes:
            self._draw_headers(plane)

    def _draw_headers(self, plane: int) -> None:
        """Row and column numbers of one slab, those of the lit element in ink."""
        here = plane == self.corner[0]
        if len(self.layout.shape) > 1:
            for row in self.rows:
                x, y = self._grid_xy((plane, row, self.columns.start))
                colour = INK if here and row == self.corner[1] else MUTED
                self.canvas.text(
                    x - 10, y + CELL_H / 2, str(row), size=SMALL, colour=colour, ha="right"
                )
        if self.layout.shape:
            for column in self.columns:
                x, y = self._grid_xy((plane, self.rows.start, column))
                colour = INK if here and column == self.corner[2] else MUTED
                self.canvas.text(
                    x + CELL_W / 2, y - 10, str(column), size=SMALL, colour=colour, ha="center"
                )
        if self._labelled():
            x, y = self._grid_xy((plane, self.rows.stop, self.columns.start))
            fixed = ", ".join(map(str, (*self.leading, plane)))
            self.canvas.text(
                x, y + 6, f"[{fixed}, :, :]", size=SMALL, mono=True, colour=INK if here else MUTED
            )

    def _draw_wire(self) -> None:
        """From the lit cell of the strip to that of the grid, in the gaps, across no number."""
        assert self.lit is not None
        x, y = self._strip_xy(self.lit)
        start = x + CELL_W / 2, y + CELL_H
        end_x, end_y = self._grid_xy(self.corner)
        gap_x, end_y = end_x - GAP / 2, end_y + CELL_H / 2
        way = [start]
        if self.strip_y + (len(self.strip) - 1) // STRIP_COLUMNS * STRIP_STEP > y:
            way += [(start[0], y + CELL_H + 8), (LANE, y + CELL_H + 8), (LANE, self.lane_y)]
        else:
            way.append((start[0], self.lane_y))
        way += [(gap_x, self.lane_y), (gap_x, end_y), (end_x, end_y)]
        self.canvas.wires([way])
        ends = (((x, y), STORAGE, 0), (self._grid_xy(self.corner), VIEW, 7))
        for corner, part, radius in ends:
            box = (*corner, CELL_W, CELL_H)
            self.canvas.boxes([box], [part.colour], edge=INK, line=1.6, radius=radius)

    def _draw_window_note(self, y: float) -> None:
        parts = []
        if len(self.strip) < self.layout.length:
            parts.append(f"elements {_span(self.strip)} of {self.layout.length:,}")
        names = ("slabs", "rows", "columns")
        for name, size, shown in zip(
            names, self.shape, (self.planes, self.rows, self.columns), strict=True
        ):
            if len(shown) < size and not self.layout.empty:
                parts.append(f"{name} {_span(shown)} of {size:,}")
        if parts:
            self.canvas.note(MARGIN, y, f"Shown: {', '.join(parts)}.")

    def _value(self, x: float, y: float, value: Number, colour: str) -> None:
        """One value in its cell; a complex one in two lines."""
        lines = [short(value, 5)]
        if isinstance(value, complex):
            imaginary = short(value.imag, 4)
            lines = [short(value.real, 5), f"{'' if imaginary[0] == '-' else '+'}{imaginary}j"]
        size = SMALL if len(lines) == 1 else SMALL - 1
        for row, words in enumerate(lines):
            middle = y + CELL_H / 2 + 12 * (row - (len(lines) - 1) / 2)
            self.canvas.text(
                x + CELL_W / 2, middle, words, size=size, mono=True, colour=colour, ha="center"
            )

    def _block(self) -> list | None:
        """The values of the cells in the grid's window, in order; None where there are none."""
        windows = (self.planes, self.rows, self.columns)
        kept = windows[3 - min(3, len(self.layout.shape)) :]
        place: Any = (*self.leading, *(slice(w.start, w.stop) for w in kept))
        return plain(self.tensor[place])

    def _labelled(self) -> bool:
        return len(self.layout.shape) > 2 and not self.layout.empty

    def _grid_partly(self) -> bool:
        shown = (self.planes, self.rows, self.columns)
        return any(len(part) < size for part, size in zip(shown, self.shape, strict=True))

    def _strip_xy(self, element: int) -> tuple[float, float]:
        row, column = divmod(element - self.strip.start, STRIP_COLUMNS)
        return MARGIN + column * CELL_W, self.strip_y + row * STRIP_STEP

    def _grid_xy(self, place: tuple[int, int, int]) -> tuple[float, float]:
        plane, row, column = place
        left = MARGIN + FACTS_W + (plane - self.planes.start) * _slab_width(len(self.columns))
        x = left + ROW_HEADER + (column - self.columns.start) * (CELL_W + GAP)
        return x, self.grid_y + (row - self.rows.start) * (CELL_H + GAP)


def _slab_width(columns: int) -> float:
    return ROW_HEADER + columns * (CELL_W + GAP) - GAP + SLAB_GAP


def _span(shown: range) -> str:
    return f"{shown.start:,}–{shown.stop - 1:,}"
