"""Find out whether the released part of a lab shows a solution.

The released cells are searched for the statements of every solution region of the lab:

- Code of all cells, comments in it, and code in prose (spans and fenced blocks) is compared as
  syntax trees, so that spaces, quotes and parentheses do not matter. Only revealing code counts: a
  value made of at least `TELLING` calls, operators, subscripts and so on. `import math` or `return
  x` occur everywhere and reveal nothing. In the stub's own cell, a repeated whole statement counts
  from `TELLING_AT_HOME` on. In every cell, a value that differs only in its variables' names counts
  from `TELLING_RENAMED` on.
- A whole region of two or more statements, repeated in a row, always counts.
- The rest of the function after the region counts: `return y` is fine, `return y * scale` shows how
  the answer is put together.

If a lab shows a statement on purpose, such as a line of code to be corrected, the region marks it
with a comment that begins with "shown". Only the instructor sees that comment.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from grader.build.cells import REGIONS, outside, regions_of
from grader.build.problems import Problem
from grader.build.syntax import distinctiveness, normal, parse_block, shape
from grader.build.text import Text, TextCell, at

TELLING = 3
TELLING_AT_HOME = 2
TELLING_RENAMED = 5
SIMPLE = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Return, ast.Expr)
SHOWN = re.compile(r"#\s*shown\b")
SPAN = re.compile(r"(?<!`)(`{1,2})(?!`)([^\n]+?)(?<!`)\1(?!`)")
FENCED = re.compile(r"^```[^\n]*\n(.*?)^```", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Solution:
    """One solution region.

    Attributes:
        cell: the cell with the region.
        begin: line of its BEGIN delimiter in the cell's source, from 0.
        end: line of its END delimiter.
        values: the distinctiveness of the value of each simple statement, by code.
        shapes: the same by code without variables' names.
        statements: the distinctiveness of each whole simple statement, by code.
        block: the region's statements in order.
    """

    cell: TextCell
    begin: int
    end: int
    values: dict[str, int]
    shapes: dict[str, int]
    statements: dict[str, int]
    block: tuple[str, ...]


@dataclass(frozen=True)
class Piece:
    """A piece of released code.

    Attributes:
        tellings: (line in the cell's source from 0, code, shape) of each revealing expression.
        statements: (line, code) of each simple statement.
        bodies: sequences of statements, each with its line.
    """

    tellings: list[tuple[int, str, str]]
    statements: list[tuple[int, str]]
    bodies: list[list[tuple[int, str]]]


def leak_problems(text: Text) -> Iterator[Problem]:
    """Yield a problem for each place in the released lab that repeats or completes a solution."""
    solutions = [solution for cell in text.cells for solution in find_solutions(cell)]
    for cell in text.cells:
        found: dict[int, str] = {}
        for piece in released_pieces(cell):
            for solution in solutions:
                for index, what in repeats(piece, solution, at_home=solution.cell is cell):
                    found.setdefault(
                        index, f"gives away the solution of {solution.cell.name!r}: {what}"
                    )
        for solution in solutions:
            if solution.cell is cell:
                for index, what in completes(cell, solution):
                    found.setdefault(index, what)
        for index, message in found.items():
            yield at(text, cell, message, index)


def find_solutions(cell: TextCell) -> list[Solution]:
    """Return the solution regions of a cell.

    Regions that cannot be parsed are left out; the rules report them.
    """
    if "solution" not in cell.header:
        return []
    try:
        return [read_solution(cell, *span) for span in regions_of(cell, "solution")]
    except (ValueError, SyntaxError):
        return []


def read_solution(cell: TextCell, begin: int, end: int) -> Solution:
    """Parse a solution region.

    Raises:
        SyntaxError: when it does not consist of whole statements.
    """
    lines = cell.source.split("\n")[begin + 1 : end]
    block = parse_block("\n".join(lines))
    values, shapes, statements = {}, {}, {}
    for statement in (node for top in block for node in ast.walk(top)):
        if isinstance(statement, SIMPLE) and statement.value is not None:
            if any(SHOWN.search(line) for line in said_in(lines, statement)):
                continue
            values[normal(statement.value)] = distinctiveness(statement.value)
            shapes[shape(statement.value)] = distinctiveness(statement.value)
            statements[normal(statement)] = distinctiveness(statement)
    return Solution(cell, begin, end, values, shapes, statements, tuple(map(normal, block)))


def said_in(lines: list[str], statement: ast.stmt) -> list[str]:
    """Return the lines of a statement. Its line numbers are one too high, by `parse_block`."""
    return lines[statement.lineno - 2 : _end(statement) - 1]


def _end(node: ast.stmt) -> int:
    """Return the number of a parsed statement's last line."""
    assert node.end_lineno is not None
    return node.end_lineno


def released_pieces(cell: TextCell) -> Iterator[Piece]:
    """Yield all code of a cell that a learner gets to see."""
    lines = released_lines(cell)
    if cell.kind == "markdown":
        yield from quoted_pieces("\n".join(lines))
        return
    try:
        yield read_piece(0, ast.parse(blank_stubs(cell, lines)))
    except SyntaxError:
        return  # reported by the rules
    for index, line in enumerate(lines):
        code, mark, comment = line.partition("#")
        if mark:
            yield from parse_piece(index, comment.strip() if code.strip() else comment.strip("# "))
        yield from quoted_spans(index, line)


def released_lines(cell: TextCell) -> list[str]:
    """Return the cell's lines, with those that nbgrader removes empty to keep the numbering."""
    spans = [span for role in REGIONS for span in regions_of(cell, role)]
    kept = dict(outside(cell.source, spans))
    return [kept.get(index, "") for index in range(cell.source.count("\n") + 1)]


def blank_stubs(cell: TextCell, lines: list[str]) -> str:
    """Return the released code with `pass` in place of each solution region, so that it parses."""
    filled = list(lines)
    for begin, _ in regions_of(cell, "solution"):
        line = cell.source.split("\n")[begin]
        filled[begin] = line[: len(line) - len(line.lstrip())] + "pass"
    return "\n".join(filled)


def quoted_pieces(prose: str) -> Iterator[Piece]:
    """Yield the code in markdown: fenced blocks, then spans line by line."""
    for match in FENCED.finditer(prose):
        yield from parse_piece(prose.count("\n", 0, match.start(1)), match[1])
    for index, line in enumerate(
        FENCED.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), prose).split("\n")
    ):
        yield from quoted_spans(index, line)


def quoted_spans(index: int, line: str) -> Iterator[Piece]:
    """Yield the code between backquotes in one line."""
    for match in SPAN.finditer(line):
        yield from parse_piece(index, match[2].strip())


def parse_piece(index: int, code: str) -> Iterator[Piece]:
    """Yield one piece if the text is Python code; prose is not."""
    try:
        tree = ast.Module(parse_block(code), [])
    except (SyntaxError, ValueError):
        return
    # parse_block adds one line above the code.
    yield read_piece(index - 1, tree)


def read_piece(above: int, tree: ast.Module) -> Piece:
    """Return the expressions and statements of a piece of code.

    Args:
        above: number of lines of the cell above the tree.
    """
    piece = Piece([], [], [])
    for node in ast.walk(tree):
        index = above + getattr(node, "lineno", 1) - 1
        if isinstance(node, ast.expr) and distinctiveness(node) >= TELLING:
            piece.tellings.append((index, normal(node), shape(node)))
        elif isinstance(node, SIMPLE):
            piece.statements.append((index, normal(node)))
        for field in ("body", "orelse", "finalbody"):
            body = getattr(node, field, None)
            if isinstance(body, list):
                piece.bodies.append([(above + s.lineno - 1, normal(s)) for s in body])
    return piece


def repeats(piece: Piece, solution: Solution, at_home: bool) -> Iterator[tuple[int, str]]:
    """Yield (line in the cell from 0, code) of each place where a piece repeats a solution.

    Args:
        at_home: whether the piece is in the solution's own cell.
    """
    for index, code, renamed in piece.tellings:
        same = solution.values.get(code, 0) >= TELLING
        if same or solution.shapes.get(renamed, 0) >= TELLING_RENAMED:
            yield index, code
    for index, code in piece.statements:
        if at_home and solution.statements.get(code, 0) >= TELLING_AT_HOME:
            yield index, code
    size = len(solution.block)
    if size < 2:
        return
    for body in piece.bodies:
        for start in range(len(body) - size + 1):
            if tuple(code for _, code in body[start : start + size]) == solution.block:
                yield body[start][0], f"its {size} statements in a row"


def completes(cell: TextCell, solution: Solution) -> Iterator[tuple[int, str]]:
    """Yield code after the region in the same function, except a return of plain names."""
    try:
        tree = ast.parse(cell.source)
    except SyntaxError:
        return
    around = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.lineno - 1 < solution.begin
        and max(_end(node) - 1, *(_end(n) - 1 for n in node.body)) >= last_line(solution)
    ]
    if not around:
        return
    function = max(around, key=lambda node: node.lineno)
    for statement in ast.walk(function):
        index = getattr(statement, "lineno", 0) - 1
        if not isinstance(statement, SIMPLE) or index <= solution.end:
            continue
        if any(begin < index < end for begin, end in regions_of(cell, "solution")):
            continue
        if statement.value is not None and distinctiveness(statement.value):
            left = f"code left after the solution of {cell.name!r} shows how the answer is put"
            yield index, f"{left} together: {normal(statement)}"


def last_line(solution: Solution) -> int:
    """Return the region's last line that contains code (from 0 in the cell)."""
    lines = solution.cell.source.split("\n")
    code = [
        index
        for index in range(solution.begin + 1, solution.end)
        if lines[index].strip() and not lines[index].strip().startswith("#")
    ]
    return max(code, default=solution.begin)
