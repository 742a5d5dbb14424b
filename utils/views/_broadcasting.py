"""Broadcasting worked out column by column, from the right. No drawing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Alignment:
    """Shapes laid under one another, aligned on the right.

    rows[r][c]: shape r's size in column c of the result, None where it has no such dimension.
    result[c]: the size they agree on, None in a column where they clash.
    """

    shapes: tuple[Shape, ...]
    rows: tuple[tuple[int | None, ...], ...]
    result: tuple[int | None, ...]

    @property
    def clashes(self) -> list[int]:
        """The columns where two sizes differ and neither is 1."""
        return [column for column, size in enumerate(self.result) if size is None]

    def stretched(self, row: int, column: int) -> bool:
        """Return whether shape `row` is repeated along `column`, by stride 0."""
        size, wanted = self.rows[row][column], self.result[column]
        return wanted is not None and (size is None or size == 1) and wanted != 1


def align(shapes: Sequence[Sequence[int]]) -> Alignment:
    """Align `shapes` as torch broadcasts them; ValueError for no shape or a negative size."""
    if not shapes:
        raise ValueError("broadcasting needs at least one shape, got none: pass (64, 1), (64,)")
    plain = tuple(tuple(int(size) for size in shape) for shape in shapes)
    for shape in plain:
        if any(size < 0 for size in shape):
            raise ValueError(f"a size is 0 or more, got the shape {shape}")
    width = max(len(shape) for shape in plain)
    rows = tuple((None,) * (width - len(shape)) + shape for shape in plain)
    result = []
    for column in zip(*rows, strict=True):
        sizes = {size for size in column if size not in (None, 1)}
        result.append(None if len(sizes) > 1 else sizes.pop() if sizes else 1)
    return Alignment(plain, rows, tuple(result))


def parse_shape(text: str) -> Shape:
    """The shape in `text`: "(64, 1)", "64 1", "64×1", "" for 0-D; ValueError for anything else."""
    words = text.replace("×", " ").replace("x", " ").strip(" ()[]").replace(",", " ").split()
    if not all(word.isdecimal() for word in words):
        raise ValueError(f"expected sizes such as 64, 1, got {text!r}")
    return tuple(int(word) for word in words)
