"""Find out whether a released lab shows a solution, a hidden test or a mark scheme.

Each statement of hidden code, and each line of a mark scheme, is searched for in the released code,
comments and prose. Spaces and the kind of quotes don't matter.

A lab may show a statement on purpose, such as a line of code to be corrected. In the hidden
region, this statement then has a comment that begins with "shown", which only the instructor sees.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from hood.authoring.notebooks.regions import REGIONS, outside, parse_block, regions_of
from hood.authoring.notebooks.text import Problem, Text, TextCell, at

# A statement with this many calls, operators, subscripts and so on reveals something; `return x`
# occurs everywhere. In the cell with the solution, a smaller number is enough to reveal something.
TELLING, TELLING_AT_HOME = 3, 2
SHORT = 30  # a mark scheme's line with fewer characters may appear anywhere
SHOWN = re.compile(r"#\s*shown\b")
LAYOUT = re.compile(r"[\s#`]+")
MODULE = re.compile(r"\b(?:torch|np|math|tl|triton|F|nn)\.")  # `torch.exp` counts as one name
WORK = (
    *(ast.Call, ast.BinOp, ast.BoolOp, ast.Compare, ast.Subscript, ast.Attribute),
    *(ast.IfExp, ast.Lambda, ast.comprehension),
)
SIMPLE = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Return, ast.Expr)


def leak_problems(text: Text) -> Iterator[Problem]:
    """Yield a problem for each line of the released lab that shows hidden text."""
    secrets = [(cell, *secret) for cell in text.cells for secret in secrets_of(cell)]
    for cell in text.cells:
        lines = [compact(line) for line in released_lines(cell)]
        shown, found = "".join(lines), {}
        for owner, code, telling in secrets:
            place = shown.find(compact(code))
            if place >= 0 and telling >= (TELLING_AT_HOME if cell is owner else TELLING):
                index = next(n for n in range(len(lines)) if len("".join(lines[: n + 1])) > place)
                found[index] = f"gives away the solution of {owner.name!r}: {code}"
        for index, message in found.items():
            yield at(text, cell, message, index)


def secrets_of(cell: TextCell) -> Iterator[tuple[str, int]]:
    """Yield the hidden pieces of a cell, each with a number that says how much it reveals."""
    lines = cell.source.split("\n")
    for begin, end in (span for role in REGIONS for span in regions_of(cell, role)):
        hidden = lines[begin + 1 : end]
        if cell.kind == "markdown":
            yield from ((line, 2 * TELLING) for line in hidden if len(line) >= SHORT)
            continue
        try:
            block = parse_block("\n".join(hidden))
        except SyntaxError:
            continue  # reported by `lint`
        for node in (node for top in block for node in ast.walk(top)):
            # parse_block adds one line above the code
            if not isinstance(node, SIMPLE) or node.value is None:
                continue
            said = hidden[node.lineno - 2 : (node.end_lineno or 0) - 1]
            if not any(map(SHOWN.search, said)):
                value = ast.unparse(node.value)
                plain = ast.parse(MODULE.sub("", value))
                yield value, sum(isinstance(part, WORK) for part in ast.walk(plain))
        if len(block) > 1 and not any(map(SHOWN.search, hidden)):
            yield "\n".join(map(ast.unparse, block)), 2 * TELLING


def released_lines(cell: TextCell) -> list[str]:
    """Return the cell's lines, with an empty line in place of each line that nbgrader removes."""
    spans = [span for role in REGIONS for span in regions_of(cell, role)]
    kept = dict(outside(cell.source, spans))
    return [kept.get(index, "") for index in range(cell.source.count("\n") + 1)]


def compact(code: str) -> str:
    return LAYOUT.sub("", code).replace('"', "'")
