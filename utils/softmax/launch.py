"""Choose a launch: the rows kernel or the loop kernel, the elements of each program, and the warps.

`TABLE` has the rules that were measured on a GPU. `python -m benchmarks.gpu --tune` tries the
choices on this machine's GPU and prints rules in the form of this file.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Direction = Literal["forward", "backward"]


@dataclass(frozen=True)
class Launch:
    """One way to launch."""

    # True for the loop kernel, where a program has one row in tiles of `tile` columns. False for
    # the rows kernel, where a program has as many whole rows as fit in a tile.
    loop: bool
    tile: int  # elements that a program has at once, a power of two
    warps: int  # warps of 32 threads each, a power of two


@dataclass(frozen=True)
class Rule:
    """The launch for at most `rows` rows of at most `columns` columns."""

    rows: float
    columns: float
    launch: Launch


ANY = float("inf")
FEW = 1024  # rows; an H100 has 132 multiprocessors, so it can run several warps for each row


def _rows(tile: int, warps: int) -> Launch:
    return Launch(False, tile, warps)


def _loop(tile: int, warps: int) -> Launch:
    return Launch(True, tile, warps)


# (direction, bytes of an element) -> rules. The first rule that fits applies.
#
# The rules were first chosen with the compiler's resource report, so that no register spills and a
# thread has 4 to 8 active loads of 16 bytes. If there are many narrow rows, each row gets one or
# two warps, so that warps rarely wait at a barrier. If there are few rows, each row gets four
# warps, so that a thread has fewer operations one after the other. In the loop kernel, a tile is so
# large that only one program fits on a multiprocessor. Then fewer rows are active, and more of each
# row stays in the caches for the second pass.
#
# Then the rules were measured on an H100, each at its width and at the numbers of rows that the
# record names. Each rule is within 5 % of the best of up to 14 launches. The rules for float64 were
# not measured.
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
    raise AssertionError(f"the last rule of TABLE[{direction!r}, {itemsize}] must fit all sizes")


def choose_interpreted(columns: int) -> Launch:
    """Return the launch for the interpreter. A program of any size takes milliseconds there."""
    return Launch(True, 4096, 4) if columns > 4096 else Launch(False, 65536, 4)


def power_of_two(number: int) -> int:
    """Return the smallest power of two that is at least `number` and at least 1."""
    return 1 << (number - 1).bit_length()
