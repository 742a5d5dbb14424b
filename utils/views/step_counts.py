"""Operators, bytes and numbers asked for of two versions of a step, over the size of its input."""

from __future__ import annotations

import collections
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.figure import Figure

from utils.drivers.profiling import Counter
from utils.notebook.style import GRADIENT, IDLE, INK, MUTED, STORAGE
from utils.views import _interactive
from utils.views._axes import TEXT
from utils.views._canvas import INNER, MARGIN, Canvas, title_height
from utils.views._numbers import human_bytes
from utils.views._slots import cut

LOOKS = (GRADIENT, STORAGE)  # before, after
BLOCK, BAR, LINE, LISTED = 92, 22, 25, 4
MOST_SIZES = 12


@dataclass(frozen=True)
class Counts:
    """What one call did: operators by name, bytes made, and numbers that Python asked for."""

    operators: tuple[tuple[str, int], ...]
    bytes: int
    asked: int

    @property
    def calls(self) -> int:
        return sum(number for _, number in self.operators)


class _Counting(Counter):
    """Counts operators by name, too."""

    def __init__(self) -> None:
        super().__init__()
        self.names: collections.Counter[str] = collections.Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names[func.overloadpacket.__name__] += 1
        return super().__torch_dispatch__(func, types, args, kwargs)


def counts(function: Callable[..., Any], *args: Any) -> Counts:
    """Call `function(*args)` and count what it makes PyTorch do."""
    with _Counting() as mode:
        function(*args)
    asked = mode.names["_local_scalar_dense"]
    return Counts(tuple(mode.names.most_common()), mode.bytes, asked)


def step_counts(
    steps: Mapping[str, Callable[..., Any]],
    make: Callable[[int], tuple[Any, ...]],
    sizes: Sequence[int],
    *,
    size: int | None = None,
) -> None:
    """Count two versions of a step on inputs of several sizes; live, a slider moves the size.

    steps: two names -> a function; it is called once for each size, with `make(size)`.
    size: the one that is shown at first, by default the largest.
    Raises ValueError for other than two steps, none or too many sizes, or a size that is not there.
    """
    if len(steps) != 2 or not 1 <= len(sizes) <= MOST_SIZES:
        raise ValueError(
            f"step_counts: two steps and 1 to {MOST_SIZES} sizes, got {len(steps)}, {len(sizes)}"
        )
    start = max(sizes) if size is None else size
    if start not in sizes:
        raise ValueError(f"step_counts: a size of {tuple(sizes)}, got {start}")
    found = {
        name: {n: counts(step, *make(n)) for n in sorted(sizes)} for name, step in steps.items()
    }
    _interactive.present(
        lambda n: draw(found, n),
        (start,),
        lambda widgets: [
            widgets.SelectionSlider(options=sorted(sizes), value=start, description="size")
        ],
    )


Found = Mapping[str, Mapping[int, Counts]]


def draw(found: Found, size: int) -> tuple[Figure, str]:
    """The bars at a size, and their alternative text."""
    top = title_height("one line") + 16
    listed_at = top + 3 * BLOCK + 10
    canvas = Canvas(listed_at + LINE * (LISTED + 1) + 4)
    canvas.title(sentence(found, size))
    kinds: dict[str, Callable[[Counts], int]] = {
        "operators": lambda c: c.calls,
        "bytes made": lambda c: c.bytes,
        "numbers asked for": lambda c: c.asked,
    }
    for k, (kind, of) in enumerate(kinds.items()):
        y = top + BLOCK * k
        canvas.text(MARGIN, y, kind, size=TEXT, colour=MUTED)
        most = max(1, *(of(c) for by_size in found.values() for c in by_size.values()))
        for row, (name, by_size) in enumerate(found.items()):
            at = y + 14 + (BAR + 6) * row
            value = of(by_size[size])
            left, room = MARGIN + 120, INNER - 120 - 110
            canvas.text(
                MARGIN + 112, at + BAR / 2, cut(name, 110, size=TEXT), size=TEXT, ha="right"
            )
            canvas.boxes([(left, at, room, BAR)], [IDLE], edge="none")
            # The root, so that few can be seen beside many.
            long = room * (value / most) ** 0.5
            canvas.boxes([(left, at, long, BAR)], [LOOKS[row].colour], edge="none")
            told = human_bytes(value) if kind == "bytes made" else f"{value:,}"
            canvas.text(MARGIN + INNER, at + BAR / 2, told, size=TEXT, ha="right")
    _draw_names(canvas, found, size, listed_at)
    return canvas.finish(), describe(found, size)


def _draw_names(canvas: Canvas, found: Found, size: int, top: float) -> None:
    half = INNER / 2
    for k, (name, by_size) in enumerate(found.items()):
        x = MARGIN + half * k
        canvas.text(x, top, cut(f"{name}, most often", half - 20, size=TEXT), size=TEXT, colour=INK)
        for row, (operator, number) in enumerate(by_size[size].operators[:LISTED]):
            y = top + LINE * (row + 1)
            canvas.text(x, y, cut(operator, half - 110, size=TEXT), size=TEXT, colour=MUTED)
            canvas.text(x + half - 40, y, f"{number:,}", size=TEXT, colour=MUTED, ha="right")


def sentence(found: Found, size: int) -> str:
    """How the operators grow with the size, as the figure's title."""
    one, other = (by_size[size] for by_size in found.values())
    grows = [len({c.calls for c in by_size.values()}) > 1 for by_size in found.values()]
    told = {
        (True, False): "the first grow with the size",
        (False, True): "the second grow with the size",
        (True, True): "both grow with the size",
        (False, False): "neither grows with the size",
    }[grows[0], grows[1]]
    return f"Size {size}: {one.calls:,} operators against {other.calls:,}; {told}."


def describe(found: Found, size: int) -> str:
    """The alternative text: the three counts of each at the size."""
    parts = [
        f"{name}: {by_size[size].calls:,} operators, {human_bytes(by_size[size].bytes)} made, "
        f"{by_size[size].asked:,} numbers asked for."
        for name, by_size in found.items()
    ]
    return f"Counts of two steps. {sentence(found, size)} {' '.join(parts)}"
