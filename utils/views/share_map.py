"""Which tensors share bytes, and which are copies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from torch import Tensor

from utils.notebook.expect import storage_key
from utils.notebook.style import CARD, MUTED, STORAGE, VIEW
from utils.views._canvas import INNER, MARGIN, Canvas, Drawing
from utils.views._numbers import human_bytes, listed
from utils.views._strides import Geometry, geometry
from utils.views._text_outlines import cut, text_width
from utils.views._view import present

# the space for names, left of the bars, and for shape and strides, right of the bars
LABEL_W, FACTS_W = 110, 190
LEFT, WIDE = MARGIN + LABEL_W, INNER - LABEL_W - FACTS_W
STRIP_H, BAR_H, ROW, GROUP_GAP = 26, 14, 27, 24
NARROW = 3.0  # CSS pixels; narrower byte ranges are joined


@dataclass(frozen=True)
class Placed:
    """A named tensor in its storage. It spans the bytes [first, last)."""

    name: str
    layout: Geometry
    first: int
    last: int

    def reached(self, start: int, stop: int) -> list[tuple[int, int]]:
        """Return the byte ranges in [start, stop) that the tensor reaches.

        Adjacent ranges are joined.
        """
        size = self.layout.itemsize
        ranges: list[tuple[int, int]] = []
        for k in sorted(self.layout.reached(start // size, -(-stop // size))):
            first = k * size
            if ranges and ranges[-1][1] == first:
                first = ranges.pop()[0]
            ranges.append((first, (k + 1) * size))
        return ranges

    @property
    def dense(self) -> bool:
        """Whether the tensor reaches every byte between its first byte and its last byte."""
        shape, stride = self.layout.shape, self.layout.stride
        span = 1
        for step, size in sorted(zip(stride, shape, strict=True)):
            if size > 1 and step:
                if step > span:
                    return False
                span += (size - 1) * step
        return True


@dataclass(frozen=True)
class Storage:
    """One storage of `nbytes`, and the tensors that use it, in the order of the arguments."""

    nbytes: int
    tensors: list[Placed]


def share_map(**tensors: Tensor) -> None:
    """Show which tensors share bytes: a strip for each storage, a bar for each tensor in it.

    tensors: the keywords are the names in the picture, as in share_map(x=x, xt=x.t(),
        copy=x.t().contiguous()).

    Raises TypeError for a tensor without strides, and ValueError for no tensor.
    """
    if not tensors:
        raise ValueError("share_map needs at least one tensor, got none: pass share_map(x=x)")
    present(lambda: draw(storages(tensors)))


def storages(tensors: Mapping[str, Tensor]) -> list[Storage]:
    """Return the distinct storages of the named tensors, in the order of their first tensor.

    `utils.notebook.expect.storage_key` decides which tensors share a storage.
    """
    found: dict[tuple[str, int], Storage] = {}
    for name, tensor in tensors.items():
        layout = geometry(tensor, name)
        first = last = layout.offset * layout.itemsize
        if not layout.empty:
            last = (layout.element([size - 1 for size in layout.shape]) + 1) * layout.itemsize
        storage = Storage(tensor.untyped_storage().nbytes(), [])
        placed = Placed(name, layout, first, last)
        found.setdefault(storage_key(tensor), storage).tensors.append(placed)
    return list(found.values())


def draw(found: Sequence[Storage]) -> Drawing:
    canvas = Canvas(sentence(found))
    y = canvas.top + 14
    largest = max(storage.nbytes for storage in found)
    parts = [f"Map of shared bytes. {canvas.title}"]
    for number, storage in enumerate(found):
        wide = WIDE * (storage.nbytes / largest if largest else 0)
        middle, size = y + STRIP_H / 2, human_bytes(storage.nbytes)
        canvas.box((MARGIN, middle - 6, 12, 12), STORAGE.colour, edge=CARD)
        canvas.text(MARGIN + 20, middle, "storage", STORAGE.colour, size=13)
        if wide:
            canvas.box((LEFT, y, wide, STRIP_H), STORAGE.tint, edge=STORAGE.colour, line=1.2)
        canvas.text(LEFT + WIDE + 18, middle, size, size=12)
        y += STRIP_H + 12
        told = []
        for tensor in storage.tensors:
            _draw_bar(canvas, y, wide, storage, tensor)
            y += ROW
            reach = "no byte"
            if tensor.last > tensor.first:
                gaps = "" if tensor.dense else " with gaps"
                reach = f"bytes {tensor.first} to {tensor.last - 1}{gaps}"
            shape = f"shape {tensor.layout.shape}, strides {tensor.layout.stride}"
            told.append(f"{tensor.name}, {shape}, {reach}")
        parts.append(f"Storage {number}, {size}: {'; '.join(told)}.")
        y += GROUP_GAP
    return canvas.finish(y + 4, " ".join(parts))


def sentence(found: Sequence[Storage]) -> str:
    names = [tensor.name for storage in found for tensor in storage.tensors]
    if len(names) == 1:
        return f"{names[0]} has a storage to itself."
    shared = [s for s in found if len(s.tensors) > 1]
    if not shared:
        return f"{listed(names)} share no byte: each has a storage of its own."
    alone = [s.tensors[0].name for s in found if len(s.tensors) == 1]
    groups = ", ".join(listed([tensor.name for tensor in s.tensors]) for s in shared)
    words = f"{groups} share one storage" if len(shared) == 1 else f"Shared: {groups}"
    if not alone:
        return f"{words}: a write through one is seen by all."
    return f"{words}; {listed(alone)} {'has its own' if len(alone) == 1 else 'have their own'}."


def _draw_bar(canvas: Canvas, y: float, wide: float, storage: Storage, tensor: Placed) -> None:
    middle = y + BAR_H / 2
    name = cut(tensor.name, LABEL_W - 12, size=13, mono=True)
    canvas.text(MARGIN, middle, name, size=13, mono=True)
    spans = _spans(tensor, wide, storage.nbytes)
    if len(spans) > 1:
        first, end = spans[0][0], sum(spans[-1])
        canvas.line([(first, middle), (end, middle)], VIEW.colour)
    # Single bytes are too narrow to be drawn. A pale bar means that the tensor reaches only some of
    # these bytes.
    fill = VIEW.tint if len(spans) == 1 and not tensor.dense else VIEW.colour
    radius = 6 if len(spans) == 1 and spans[0][1] > 14 else 2
    for x, w in spans:
        canvas.box((x, y, w, BAR_H), fill, edge=VIEW.colour, radius=radius)
    facts = f"{tensor.layout.shape}  strides {tensor.layout.stride}"
    size = min(11.0, 11 * (FACTS_W - 18) / text_width(facts, size=11))
    canvas.text(LEFT + WIDE + 18, middle, facts, MUTED, size=size)


def _spans(tensor: Placed, wide: float, nbytes: int) -> list[tuple[float, float]]:
    """Return the bytes that the tensor reaches as (x, width), in a strip of `wide` CSS pixels."""
    if tensor.last <= tensor.first:
        return []
    scale = wide / nbytes
    narrow = min(tensor.layout.itemsize * scale, wide) < NARROW
    ranges = [(tensor.first, tensor.last)]
    if not tensor.dense and not narrow:
        ranges = tensor.reached(tensor.first, tensor.last)
    gap = 0.5 if len(ranges) > 1 else 0
    return [(LEFT + a * scale + gap, (b - a) * scale - 2 * gap) for a, b in ranges]
