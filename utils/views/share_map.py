"""Which of some tensors lie in the same bytes, and which are copies."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure
from torch import Tensor

from utils.notebook.figures import show
from utils.notebook.style import MUTED, STORAGE, VIEW
from utils.views._canvas import INNER, MARGIN, Canvas, title_height
from utils.views._numbers import human_bytes, listed
from utils.views._sharing import Placed, Storage, storages
from utils.views._text_outlines import text_width

LABEL_W, FACTS_W = 110, 190  # the names left of the bars, shape and strides right of them
LEFT, WIDE = MARGIN + LABEL_W, INNER - LABEL_W - FACTS_W
STRIP_H, BAR_H, ROW, GROUP_GAP = 26, 14, 27, 24
NARROW = 3.0  # CSS pixels; byte ranges thinner than this run together


def share_map(**tensors: Tensor) -> None:
    """Show which tensors share bytes: a strip for each storage, a bar for each tensor in it.

    Args:
        tensors: by the names to show, as in share_map(x=x, xt=x.t(), copy=x.t().contiguous()).

    Raises:
        TypeError: for one without strides.
        ValueError: for none at all.
    """
    if not tensors:
        raise ValueError("share_map needs at least one tensor, got none: pass share_map(x=x)")
    figure, alt = draw(storages(tensors))
    show(figure, alt=alt)


def draw(found: Sequence[Storage]) -> tuple[Figure, str]:
    """Return the figure for some storages, and its alternative text."""
    words = sentence(found)
    top = title_height(words) + 14
    rows = sum(len(storage.tensors) for storage in found)
    canvas = Canvas(top + len(found) * (STRIP_H + 12 + GROUP_GAP) + rows * ROW + 4)
    canvas.title(words)
    y = top
    largest = max(storage.nbytes for storage in found)
    for storage in found:
        wide = WIDE * (storage.nbytes / largest if largest else 0)
        _draw_strip(canvas, y, wide, storage)
        y += STRIP_H + 12
        for tensor in storage.tensors:
            _draw_bar(canvas, y, wide, storage, tensor)
            y += ROW
        y += GROUP_GAP
    return canvas.finish(), describe(found)


def sentence(found: Sequence[Storage]) -> str:
    """What the map shows, as the figure's title."""
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


def describe(found: Sequence[Storage]) -> str:
    """Return the alternative text: each storage and the bytes of it that each tensor spans."""
    parts = [f"Map of shared bytes. {sentence(found)}"]
    for number, storage in enumerate(found):
        spans = [
            f"{tensor.name}, shape {tensor.layout.shape}, strides {tensor.layout.stride}, "
            + _bytes(tensor)
            for tensor in storage.tensors
        ]
        parts.append(f"Storage {number}, {human_bytes(storage.nbytes)}: {'; '.join(spans)}.")
    return " ".join(parts)


def _bytes(tensor: Placed) -> str:
    if tensor.last <= tensor.first:
        return "no byte"
    return f"bytes {tensor.first} to {tensor.last - 1}{'' if tensor.dense else ' with gaps'}"


def _draw_strip(canvas: Canvas, y: float, wide: float, storage: Storage) -> None:
    middle = y + STRIP_H / 2
    canvas.boxes([(MARGIN, middle - 6, 12, 12)], [STORAGE.colour])
    canvas.text(MARGIN + 20, middle, "storage", colour=STORAGE.colour)
    if wide:
        box = (LEFT, y, wide, STRIP_H)
        canvas.boxes([box], [STORAGE.tint], edge=STORAGE.colour, line=1.2)
    canvas.text(LEFT + WIDE + 18, middle, human_bytes(storage.nbytes), size=12)


def _draw_bar(canvas: Canvas, y: float, wide: float, storage: Storage, tensor: Placed) -> None:
    middle = y + BAR_H / 2
    name = tensor.name
    while text_width(name, size=13, mono=True) > LABEL_W - 12:
        name = f"{name[:-2]}…"
    canvas.text(MARGIN, middle, name, mono=True)
    spans = _spans(tensor, wide, storage.nbytes)
    if len(spans) > 1:
        first, end = spans[0][0], sum(spans[-1])
        canvas.line([(first, middle), (end, middle)], colour=VIEW.colour, line=1)
    bars = [(x, y, w, BAR_H) for x, w in spans]
    # Bytes too fine to draw one by one: a pale bar says that the tensor only touches some of them.
    blurred = len(spans) == 1 and not tensor.dense
    canvas.boxes(
        bars,
        [VIEW.tint if blurred else VIEW.colour] * len(bars),
        edge=VIEW.colour,
        radius=6 if len(spans) == 1 and spans[0][1] > 14 else 2,
    )
    facts = f"{tensor.layout.shape}  strides {tensor.layout.stride}"
    size = min(11.0, 11 * (FACTS_W - 18) / text_width(facts, size=11))
    canvas.text(LEFT + WIDE + 18, middle, facts, size=size, colour=MUTED)


def _spans(tensor: Placed, wide: float, nbytes: int) -> list[tuple[float, float]]:
    """Return the bytes the tensor reaches as (x, width) in a strip `wide` CSS pixels wide."""
    if tensor.last <= tensor.first:
        return []
    scale = wide / nbytes
    narrow = min(tensor.layout.itemsize * scale, wide) < NARROW
    ranges = [(tensor.first, tensor.last)]
    if not tensor.dense and not narrow:
        ranges = tensor.reached(tensor.first, tensor.last)
    gap = 0.5 if len(ranges) > 1 else 0
    return [(LEFT + a * scale + gap, (b - a) * scale - 2 * gap) for a, b in ranges]
