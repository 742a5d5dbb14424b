"""Find the parts of a cell that learners do not get: solutions, hidden tests, mark schemes."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Sequence

from hood.authoring.notebooks.text import TextCell
from hood.lab_words import (
    BEGIN_HIDDEN,
    BEGIN_SCHEME,
    BEGIN_SOLUTION,
    END_HIDDEN,
    END_SCHEME,
    END_SOLUTION,
)

# The markers, by the role of the cell.
REGIONS = {
    "solution": (BEGIN_SOLUTION, END_SOLUTION),
    "test": (BEGIN_HIDDEN, END_HIDDEN),
    "task": (BEGIN_SCHEME, END_SCHEME),
}


def regions(source: str, begin: str, end: str) -> list[tuple[int, int]]:
    """Return pairs of line indices: the line of `begin`, and the line of `end`.

    Raises ValueError if a line has no partner.
    """
    found: list[tuple[int, int]] = []
    opened: int | None = None
    for index, line in enumerate(source.split("\n")):
        # nbgrader searches the words anywhere in a line, so nbgrader accepts an inexact marker.
        words = next((word for word in (begin, end) if word.strip("#= ") in line), None)
        if words is None:
            continue
        # the build and nbgrader expect the marker at the end of the line
        if line.lstrip() != words:
            raise ValueError(
                f"a marker must be alone on its line, without a space after it: write {words!r}"
            )
        if (words == begin) != (opened is None):
            raise ValueError(f"{words!r} has no partner: each BEGIN needs one END after it")
        if opened is None:
            opened = index
        else:
            found.append((opened, index))
            opened = None
    if opened is not None:
        raise ValueError(f"{begin!r} has no {end!r} after it")
    return found


def regions_of(cell: TextCell, role: str) -> list[tuple[int, int]]:
    """Return the regions of a cell that belong to a role; empty if the markers are wrong."""
    try:
        return regions(cell.source, *REGIONS[role])
    except ValueError:
        return []


def outside(source: str, spans: Sequence[tuple[int, int]]) -> list[tuple[int, str]]:
    """Return (index, line) of each line outside the regions and their markers."""
    return [
        (index, line)
        for index, line in enumerate(source.split("\n"))
        if not any(begin <= index <= end for begin, end in spans)
    ]


def parse_block(source: str) -> list[ast.stmt]:
    """Return the statements of an indented block, which may have a `return`.

    The result includes code below the block that is not indented, such as a helper function.
    """
    lines = source.split("\n")
    filled = [n for n, line in enumerate(lines) if line.strip()]
    flush = [n for n in filled if not lines[n][0].isspace()]
    end = flush[0] if flush and flush[0] != filled[0] else len(lines)
    body = textwrap.indent(textwrap.dedent("\n".join(lines[:end])), "    ")
    tree = ast.parse(f"async def block():\n{body}\n    pass\n")
    block = tree.body[0]
    assert isinstance(block, ast.AsyncFunctionDef)
    below = "\n" * (end + 1) + "\n".join(lines[end:])  # blank lines keep the line numbers
    return [*block.body[:-1], *ast.parse(below).body]
