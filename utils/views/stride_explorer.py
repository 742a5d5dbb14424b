"""A storage as a strip of memory, a view as a grid, and the sum that leads from one to the other."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure
from torch import Tensor

from utils.style import IDLE, INK, MUTED, STORAGE, VIEW
from utils.views import _live
from utils.views._canvas import INNER, MARGIN, SMALL, Canvas, text_width, title_height
from utils.views._numbers import count, human_bytes, short
from utils.views._strides import Geometry, full_index, geometry, plain, storage_values, window

CELL_W, CELL_H, GAP = 46, 30, 4
STRIP_COLUMNS, STRIP_ROWS, STRIP_STEP = 16, 4, 56
GRID_ROWS, GRID_COLUMNS, SLAB_GAP, HEADER = 8, 14, 22, 26


def stride_explorer(tensor: Tensor, *, index: int | Sequence[int] | None = None) -> None:
    """Show where each element of `tensor` lies in its storage, with one element lit in both.

    tensor: any strided tensor, of any shape, dtype and device; large ones are shown through a window.
    index: the element to light, one number a dimension; with a live kernel, sliders move it.
    Raises TypeError for a tensor without strides, IndexError for an index that doesn't fit.
    """
    layout = geometry(tensor)
    start = full_index(layout.shape, index) if not layout.empty else ()
    if layout.empty or not layout.shape:
        _live.still(lambda: draw(tensor, start))
        return
    _live.present(
        lambda *at: draw(tensor, at),
        start,
        lambda widgets: [
            widgets.IntSlider(
                value=start[dim], min=0, max=size - 1, description=f"dim {dim}", continuous_update=True
            )
            for dim, size in enumerate(layout.shape)
        ],
    )


def draw(tensor: Tensor, index: tuple[int, ...]) -> tuple[Figure, str]:
    """The figure for one lit element (index () for an empty view), and its alternative text."""
    layout = geometry(tensor)
    return _Drawing(tensor, layout, index).figure(), describe(tensor, layout, index)


def sentence(layout: Geometry) -> str:
    """What this tensor teaches, as the figure's title."""
    if layout.empty:
        return "An empty view has a shape and strides, but reaches no element."
    if not layout.shape:
        return "A 0-D view has no strides: its one element lies at the offset."
    if layout.sharing > 1:
        return "Stride 0: the view repeats, the memory does not."
    if layout.row_major and not layout.offset:
        return "One step in the last dimension is one step in memory."
    if layout.row_major:
        return "A view may begin anywhere: its offset says where."
    if sorted(layout.stride, reverse=True) != list(layout.stride):
        return "A transposed view reads the same bytes in another order: only its strides differ."
    return "A slice steps over what it leaves out: larger strides, the same bytes."


def describe(tensor: Tensor, layout: Geometry, index: tuple[int, ...]) -> str:
    """The alternative text: the tensor, its storage, and the sum for the lit element."""
    words = (
        f"Stride explorer. {sentence(layout)} A view of shape {layout.shape}, strides {layout.stride}, "
        f"offset {layout.offset}, {dtype_name(tensor)}, over a storage of {count(layout.length, 'element')} "
        f"({human_bytes(layout.length * layout.itemsize)})."
    )
    if layout.empty:
        return words
    at = layout.element(index)
    steps = " + ".join([str(layout.offset), *(f"{i}·{s}" for i, s in zip(index, layout.stride, strict=True))])
    value = plain(tensor[index])
    held = f" and holds {short(value[0])}" if value is not None and not tensor.is_meta else ""
    words += (
        f" Index {list(index)} is {steps} = element {at} of the storage, at byte {at * layout.itemsize},"
        f"{held}."
    )
    if layout.sharing > 1:
        words += f" {count(layout.sharing, 'index')[:-2]}ices reach that one element."
    return words.replace(",.", ".").replace(", and holds", " and holds")


def dtype_name(tensor: Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


class _Drawing:
    """Places strip, grid and wire on one canvas."""

    def __init__(self, tensor: Tensor, layout: Geometry, index: tuple[int, ...]) -> None:
        self.tensor, self.layout, self.index = tensor, layout, index
        self.lit = None if layout.empty else layout.element(index)
        size = STRIP_COLUMNS * STRIP_ROWS
        self.strip = window(layout.length, self.lit or 0, size, STRIP_COLUMNS)
        self.leading = index[:-3]
        shape = (1, 1, 1, *layout.shape)[-3:]
        corner = (0, 0, 0, *index)[-3:] if not layout.empty else (0, 0, 0)
        self.shape3 = shape
        columns = min(shape[2], GRID_COLUMNS)
        slab = HEADER + columns * (CELL_W + GAP) + SLAB_GAP
        slabs = max(1, int((INNER + SLAB_GAP) // slab)) if shape[0] > 1 else 1
        if shape[0] > 1 and slabs < 2:
            columns, slabs = 6, 2
        self.cells = (
            window(shape[0], corner[0], slabs),
            window(shape[1], corner[1], GRID_ROWS),
            window(shape[2], corner[2], columns),
        )
        self.corner = corner

    def figure(self) -> Figure:
        top = title_height(sentence(self.layout)) + 4
        strip_y = top + 92
        rows = -(-max(1, len(self.strip)) // STRIP_COLUMNS)
        grid_y = strip_y + (rows - 1) * STRIP_STEP + CELL_H + 74
        notes = self.notes()
        depth = 0 if self.layout.empty else len(self.cells[1]) * (CELL_H + GAP)
        self.canvas = Canvas(grid_y + depth + 16 + 18 * len(notes) + 10)
        self.canvas.title(sentence(self.layout))
        self.draw_sum(top + 18)
        self.draw_strip(strip_y)
        if not self.layout.empty:
            self.draw_grid(strip_y, grid_y)
        for row, note in enumerate(notes):
            self.canvas.note(MARGIN, grid_y + depth + 20 + 18 * row, note)
        return self.canvas.figure

    def notes(self) -> list[str]:
        layout = self.layout
        facts = (
            f"shape {layout.shape}   ·   strides {layout.stride}   ·   offset {layout.offset}   ·   "
            f"{dtype_name(self.tensor)}, {layout.itemsize} B an element   ·   "
            f"storage {human_bytes(layout.length * layout.itemsize)}"
        )
        return [facts]

    def draw_sum(self, y: float) -> None:
        if self.lit is None:
            return
        layout = self.layout
        terms = [(str(list(self.index)), "index"), ("→", ""), (str(layout.offset), "offset")]
        for dim, (i, s) in enumerate(zip(self.index, layout.stride, strict=True)):
            terms += [("+", ""), (f"{i}·{s}", f"dim {dim}")]
        terms += [("=", ""), (str(self.lit), "element"), ("→", ""), (f"byte {self.lit * layout.itemsize}", "")]
        x = MARGIN
        for words, label in terms:
            width = text_width(words, size=17, mono=True)
            colour = {"element": STORAGE.colour, "index": VIEW.colour}.get(label, INK)
            self.canvas.text(x, y, words, size=17, mono=True, colour=colour)
            self.canvas.note(x + width / 2, y + 20, label, ha="center")
            x += width + 12

    def strip_xy(self, y: float, element: int) -> tuple[float, float]:
        row, column = divmod(element - self.strip.start, STRIP_COLUMNS)
        return MARGIN + 16 + column * CELL_W, y + row * STRIP_STEP

    def draw_strip(self, y: float) -> None:
        layout, canvas = self.layout, self.canvas
        reached = layout.reached(self.strip.start, self.strip.stop)
        values = storage_values(self.tensor, self.strip.start, self.strip.stop)
        boxes, fills = [], []
        for k in self.strip:
            x, top = self.strip_xy(y, k)
            boxes.append((x, top, CELL_W, CELL_H))
            lit = k == self.lit
            fills.append(STORAGE.colour if lit else STORAGE.tint if k in reached else IDLE)
            canvas.note(x + CELL_W / 2, top - 9, str(k * layout.itemsize), ha="center")
            if values is not None:
                colour = STORAGE.on if lit else INK if k in reached else MUTED
                canvas.text(
                    x + CELL_W / 2,
                    top + CELL_H / 2,
                    short(values[k - self.strip.start]),
                    size=SMALL,
                    mono=True,
                    colour=colour,
                    ha="center",
                )
        canvas.boxes(boxes, fills)

    def draw_grid(self, strip_y: float, y: float) -> None:
        canvas, layout = self.canvas, self.layout
        slab_width = HEADER + len(self.cells[2]) * (CELL_W + GAP) + SLAB_GAP
        boxes, fills = [], []
        for place, plane in enumerate(self.cells[0]):
            left = MARGIN + 16 + HEADER + place * slab_width
            for column, j in enumerate(self.cells[2]):
                canvas.note(left + column * (CELL_W + GAP) + CELL_W / 2, y - 9, str(j), ha="center")
            for row, i in enumerate(self.cells[1]):
                top = y + row * (CELL_H + GAP)
                canvas.note(left - 8, top + CELL_H / 2, str(i), ha="right")
                for column, j in enumerate(self.cells[2]):
                    at = (*self.leading, *(plane, i, j)[3 - min(3, len(layout.shape)) :])
                    x = left + column * (CELL_W + GAP)
                    boxes.append((x, top, CELL_W, CELL_H))
                    lit = at == self.index
                    same = layout.element(at) == self.lit
                    fills.append(VIEW.colour if lit else "#8fcdb9" if same else VIEW.tint)
                    value = plain(self.tensor[at]) if not self.tensor.is_meta else None
                    if value is not None:
                        canvas.text(
                            x + CELL_W / 2,
                            top + CELL_H / 2,
                            short(value[0]),
                            size=SMALL,
                            mono=True,
                            colour=VIEW.on if lit else INK,
                            ha="center",
                        )
        canvas.boxes(boxes, fills, radius=7)
