"""Find out whether one cell shows learners most of a solution, statement by statement.

`leaks` looks for single statements that reveal much. Statements that reveal little alone may reveal
everything together. So this module finds cells with most of a solution's statements, and ignores
the names of variables. Statements that the solution marks as shown do not count.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections import Counter
from collections.abc import Collection, Iterator
from copy import deepcopy

from hood.authoring.leaks import SHOWN, WORK, released_lines
from hood.authoring.notebooks.regions import parse_block, regions_of
from hood.authoring.notebooks.text import Problem, Text, TextCell, at

# The largest share of a solution's work in one cell. docs/authors/the-build.md has measurements.
MOST = 0.5
FENCED = re.compile(r"^(```|~~~)\w*\n(.*?)^\1", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"`([^`\n]+)`")
COMMENT = re.compile(r"^[ \t]*# ?(.*)$")
# Statements that do not count: they only contain other statements, or they reveal no idea.
NO_WORK = (
    *(ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Try, ast.Pass),
    *(ast.Import, ast.ImportFrom),
)
BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")
Statement = tuple[str, int]  # the code without variables' names; the amount of work


def spelled_out(lab: Text, text: Text) -> Iterator[Problem]:
    """Yield a problem for each cell of a text that has most of the statements of a solution.

    ``text`` is the lab itself, or its lesson. The work of a statement is one plus the number of
    calls, operators and so on in it.
    """
    known = _known(lab)
    solutions = [(cell, [*_solution_of(cell, known)]) for cell in lab.cells]
    for cell in text.cells:
        there = Counter(said for code in _code_of(cell) for said, _ in _statements(code, known))
        for owner, solution in solutions if there else ():
            share = _share(solution, there)
            if share > MOST:
                message = (
                    f"spells out {100 * share:.0f} % of the solution of {owner.name!r}, expected "
                    f"at most {100 * MOST:.0f} %: describe the solution in words, or put the "
                    "comment `# shown` on the solution's lines that learners may see"
                )
                yield at(text, cell, message)


def _share(solution: list[Statement], there: Counter[str]) -> float:
    """Return the share of a solution's work that a cell shows; 0 if it shows only one statement."""
    left, found = Counter(there), []
    for said, work in solution:
        if left[said]:
            left[said] -= 1
            found.append(work)
    return sum(found) / sum(work for _, work in solution) if len(found) > 1 else 0


def _known(lab: Text) -> frozenset[str]:
    """Return the names that mean the same everywhere in a lab: imports and builtins."""
    found = set(dir(builtins))
    for cell in lab.cells:
        for node in (node for top in _parsed(cell.source) for node in ast.walk(top)):
            if isinstance(node, ast.Import | ast.ImportFrom):
                found |= {(one.asname or one.name).partition(".")[0] for one in node.names}
    return frozenset(found)


def _solution_of(cell: TextCell, known: Collection[str]) -> Iterator[Statement]:
    lines = cell.source.split("\n")
    for begin, end in regions_of(cell, "solution"):
        hidden = lines[begin + 1 : end]
        # parse_block adds one line above the code
        shown = {number for number, line in enumerate(hidden, start=2) if SHOWN.search(line)}
        yield from _statements("\n".join(hidden), known, shown)


def _code_of(cell: TextCell) -> Iterator[str]:
    """Yield what a learner can read as code in a cell: code, comments, fenced code and spans."""
    lines = released_lines(cell)
    if cell.kind == "code":
        yield "\n".join(lines)
        comments = (match[1] if (match := COMMENT.match(line)) else "\0" for line in lines)
        yield from "\n".join(comments).split("\0")
    else:
        shown = "\n".join(lines)
        yield from (match[2] for match in FENCED.finditer(shown))
        yield from (match[1] for match in SPAN.finditer(FENCED.sub("", shown)))


def _parsed(code: str) -> list[ast.stmt]:
    """Return the statements of a block of code, indented or not; empty if it is not Python."""
    try:
        return parse_block(code)
    except (SyntaxError, ValueError):
        return []


def _statements(
    code: str, known: Collection[str], shown: Collection[int] = ()
) -> Iterator[Statement]:
    """Yield each statement of a block of code. For a loop or a condition, yield only the head.

    Leave out docstrings, and statements in the lines ``shown``.
    """
    for node in (node for top in _parsed(code) for node in ast.walk(top)):
        docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if not isinstance(node, ast.stmt) or isinstance(node, NO_WORK) or docstring:
            continue
        fields = {name: value for name, value in ast.iter_fields(node) if name not in BLOCKS}
        head = type(node)(**deepcopy(fields))
        parts = [*ast.walk(head)]
        last = max([node.lineno, *(getattr(part, "end_lineno", None) or 0 for part in parts)])
        if not any(node.lineno <= line <= last for line in shown):
            work = 1 + sum(isinstance(part, WORK) for part in parts)
            yield ast.dump(_Nameless(known).visit(head)), work


class _Nameless(ast.NodeTransformer):
    """Replace the names of variables in code."""

    def __init__(self, known: Collection[str]) -> None:
        self.known = known

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.Name(node.id if node.id in self.known else "_", ast.Load())

    def visit_arg(self, node: ast.arg) -> ast.arg:
        return ast.arg("_")
