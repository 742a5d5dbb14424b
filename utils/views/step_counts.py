"""Counts of two versions of a step for inputs of several sizes: operators, bytes, numbers read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from utils.drivers.profiling import Counter
from utils.notebook.style import GRADIENT, IDLE, MUTED, STORAGE
from utils.views._canvas import INNER, MARGIN, RIGHT, Canvas, Drawing
from utils.views._controls import choice
from utils.views._numbers import human_bytes, require
from utils.views._text_outlines import cut
from utils.views._view import present

LOOKS = (GRADIENT, STORAGE)  # before, after
BLOCK, BAR, LINE, LISTED = 92, 22, 25, 4
MOST_SIZES = 12


@dataclass(frozen=True)
class Counts:
    """Counts of one call: operators by name, bytes made, and numbers that Python read."""

    operators: tuple[tuple[str, int], ...]
    bytes: int
    asked: int

    @property
    def calls(self) -> int:
        return sum(number for _, number in self.operators)


def counts(function: Callable[..., Any], *args: Any) -> Counts:
    with Counter() as counted:
        function(*args)
    asked = counted.operators["_local_scalar_dense"]
    return Counts(tuple(counted.operators.most_common()), counted.bytes, asked)


def step_counts(
    steps: Mapping[str, Callable[..., Any]],
    make: Callable[[int], tuple[Any, ...]],
    sizes: Sequence[int],
    *,
    size: int | None = None,
) -> None:
    """Count two versions of a step on inputs of several sizes.

    In a live view, a slider sets the size.

    steps: name -> function, for two functions.
    make: a function that returns the arguments for a size. Each step is called once for each size.
    sizes: the sizes.
    size: the size that is shown first, by default the largest size.

    Raises ValueError unless there are two steps, for no or too many sizes, or if `size` is not in
    `sizes`.
    """
    require("step_counts", len(steps), "steps", 2, 2)
    require("step_counts", len(sizes), "sizes", MOST_SIZES)
    moved = choice("size", max(sizes) if size is None else size, sorted(sizes))
    found = {
        name: {n: counts(step, *make(n)) for n in sorted(sizes)} for name, step in steps.items()
    }
    present(lambda n: draw(found, n), moved)


def draw(found: Mapping[str, Mapping[int, Counts]], size: int) -> Drawing:
    one, other = (by_size[size].calls for by_size in found.values())
    grow = [len({c.calls for c in by_size.values()}) > 1 for by_size in found.values()]
    who = "both" if all(grow) else "the first" if grow[0] else "the second"
    told = f"{who} grow with the size" if any(grow) else "neither grows with the size"
    canvas = Canvas(f"Size {size}: {one:,} operators against {other:,}; {told}.")
    y = canvas.top + 16
    kinds: dict[str, tuple[Callable[[Counts], int], Callable[[int], str]]] = {
        "operators": (lambda c: c.calls, "{:,}".format),
        "bytes made": (lambda c: c.bytes, human_bytes),
        "numbers asked for": (lambda c: c.asked, "{:,}".format),
    }
    for kind, (of, written) in kinds.items():
        canvas.text(MARGIN, y, kind, MUTED)
        most = max(1, *(of(c) for by_size in found.values() for c in by_size.values()))
        for row, (name, by_size) in enumerate(found.items()):
            at, value = y + 14 + (BAR + 6) * row, of(by_size[size])
            left, room = MARGIN + 120, INNER - 120 - 110
            canvas.text(MARGIN + 112, at + BAR / 2, cut(name, 110), ha="right")
            canvas.box((left, at, room, BAR), IDLE)
            # The bars show the square root, so that small counts are visible beside large counts.
            canvas.box((left, at, room * (value / most) ** 0.5, BAR), LOOKS[row].colour)
            canvas.text(RIGHT, at + BAR / 2, written(value), ha="right")
        y += BLOCK
    half, parts = INNER / 2, []
    for k, (name, by_size) in enumerate(found.items()):
        x, counted = MARGIN + half * k, by_size[size]
        canvas.text(x, y + 10, cut(f"{name}, most often", half - 20))
        for row, (operator, number) in enumerate(counted.operators[:LISTED]):
            at = y + 10 + LINE * (row + 1)
            canvas.text(x, at, cut(operator, half - 110), MUTED)
            canvas.text(x + half - 40, at, f"{number:,}", MUTED, "right")
        parts.append(
            f"{name}: {counted.calls:,} operators, {human_bytes(counted.bytes)} made, "
            f"{counted.asked:,} numbers asked for."
        )
    return canvas.finish(
        y + 14 + LINE * (LISTED + 1), f"Counts of two steps. {canvas.title} {' '.join(parts)}"
    )
