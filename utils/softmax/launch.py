"""Choose how a kernel is launched: which of the two, how much a program takes, with how many warps.

`TABLE` is the only place for a GPU's measurements. `python -m benchmarks.gpu --tune` tries the
choices on the GPU at hand and prints rules in the form of this file.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Direction = Literal["forward", "backward"]


@dataclass(frozen=True)
class Launch:
    """One way to launch."""

    # whether it is the loop kernel: one row a program, in tiles of `tile` columns. Else it is the
    # rows kernel: as many whole rows as fit in the tile.
    loop: bool
    tile: int  # elements that a program holds at once, a power of two
    warps: int  # warps of 32 threads each, a power of two


@dataclass(frozen=True)
class Rule:
    """The launch for at most so many rows of at most so many columns."""

    rows: float
    columns: float
    launch: Launch


ANY = float("inf")
FEW = 1024  # rows; an H100 has 132 multiprocessors, so a row finds several of their warps idle


def _rows(tile: int, warps: int) -> Launch:
    return Launch(False, tile, warps)


def _loop(tile: int, warps: int) -> Launch:
    return Launch(True, tile, warps)


# (direction, bytes per element) -> rules; the first that fits counts. Reasoned from the compiler's
# resource report: nothing spills; a thread has 4 to 8 loads of 16 bytes under way. Many narrow rows
# get a warp or two each, so that hardly anything waits at a barrier; few get four, for a shorter
# chain. A loop's tile is so large that only one program fits on a multiprocessor: fewer rows under
# way leave more of each in the caches for the second pass. Then measured on an H100: each rule is
# within 5 % of the best of up to 14 launches, at its width and at the numbers of rows that the
# record names; float64's are reasoned still.
TABLE: dict[tuple[Direction, int], tuple[Rule, ...]] = {
    ("forward", 2): (
        Rule(FEW, 1024, _rows(1024, 4)),
        Rule(ANY, 1024, _rows(1024, 1)),
        Rule(ANY, 2048, _rows(2048, 2)),
        Rule(ANY, 4096, _rows(4096, 4)),
        Rule(ANY, 8192, _rows(8192, 8)),
        Rule(ANY, 16384, _rows(16384, 16)),
        Rule(ANY, 32768, _loop(16384, 32)),
        Rule(ANY, ANY, _loop(65536, 32)),
    ),
    ("forward", 4): (
        Rule(FEW, 1024, _rows(1024, 4)),
        Rule(ANY, 1024, _rows(1024, 1)),
        Rule(ANY, 2048, _rows(2048, 2)),
        Rule(ANY, 4096, _rows(4096, 4)),
        Rule(ANY, 8192, _rows(8192, 8)),
        Rule(ANY, 16384, _rows(16384, 16)),
        Rule(ANY, 32768, _rows(32768, 32)),
        Rule(ANY, ANY, _loop(32768, 32)),
    ),
    ("forward", 8): (
        Rule(ANY, 1024, _rows(1024, 4)),
        Rule(ANY, 4096, _rows(4096, 8)),
        Rule(ANY, ANY, _loop(8192, 32)),
    ),
    ("backward", 2): (
        Rule(FEW, 1024, _rows(1024, 4)),
        Rule(ANY, 1024, _rows(1024, 2)),
        Rule(ANY, 4096, _rows(4096, 8)),
        Rule(ANY, 8192, _rows(8192, 16)),
        Rule(ANY, 16384, _rows(16384, 32)),
        Rule(ANY, ANY, _loop(32768, 32)),
    ),
    ("backward", 4): (
        Rule(FEW, 1024, _rows(1024, 4)),
        Rule(ANY, 1024, _rows(1024, 2)),
        Rule(ANY, 4096, _rows(4096, 8)),
        Rule(ANY, 8192, _rows(8192, 16)),
        Rule(ANY, 16384, _rows(16384, 32)),
        Rule(ANY, ANY, _loop(16384, 32)),
    ),
    ("backward", 8): (
        Rule(ANY, 1024, _rows(1024, 4)),
        Rule(ANY, 4096, _rows(4096, 8)),
        Rule(ANY, ANY, _loop(8192, 32)),
    ),
}


def choose(direction: Direction, itemsize: int, rows: int, columns: int) -> Launch:
    """Return the launch for `rows` x `columns` elements of `itemsize` bytes on a GPU."""
    for rule in TABLE[direction, itemsize]:
        if rows <= rule.rows and columns <= rule.columns:
            return rule.launch
    raise AssertionError(f"the last rule of TABLE[{direction!r}, {itemsize}] fits nothing else")


def choose_interpreted(columns: int) -> Launch:
    """Return the launch for the interpreter: a program costs milliseconds, whatever its size."""
    return Launch(True, 4096, 4) if columns > 4096 else Launch(False, 65536, 4)


def power_of_two(number: int) -> int:
    """Return the smallest power of two that is at least `number`, itself at least 1."""
    return 1 << (number - 1).bit_length()
