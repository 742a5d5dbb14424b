"""What a learner wrote, read from the cells: the code behind a name, with what it leans on."""

from __future__ import annotations

import ast
import symtable
from collections.abc import Iterable, Iterator
from functools import lru_cache

# Code that does not parse, parses and does not compile, or is nested too deeply to be looked at.
UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError)
# Characters; the tree of a longer cell takes too much memory to be kept.
LONG = 10_000


class Written:
    """The code cells that ran, in order, and what stands in them."""

    def __init__(self, cells: Iterable[str] = ()):
        self._known: dict[str, ast.stmt] = {}
        for cell in cells:
            self.add(cell)

    def add(self, cell: str) -> None:
        """Take in the next cell. One that doesn't parse is passed over: nothing of it ran."""
        bound = _bound_in if len(cell) > LONG else _bound_in_again
        self._known.update(bound(cell))

    def behind(self, name: str) -> str:
        """The last definition of a name and of every name that it leans on, each once.

        A statement that can't be read is left out.

        Args:
            name: a function, class or variable at a cell's outermost level.
        """
        found: dict[ast.stmt, str] = {}
        waiting = [name]
        while waiting:
            statement = self._known.get(waiting.pop())
            if statement is not None and statement not in found:
                try:
                    found[statement] = ast.unparse(statement)
                    waiting += names_read_by(found[statement])
                except UNREADABLE:
                    found[statement] = ""
        return "\n\n".join(found.values())


def _bound_in(cell: str) -> dict[str, ast.stmt]:
    """The names that a cell binds at its outermost level, each with its last statement."""
    code = "\n".join(line for line in cell.splitlines() if not line.startswith(("%", "!")))
    try:
        tree = ast.parse(code)
    except UNREADABLE:
        return {}
    return {
        name: statement for statement in _statements(tree.body) for name in _bound_by(statement)
    }


# What comes with a lab is the same for a whole class.
_bound_in_again = lru_cache(maxsize=64)(_bound_in)


def names_read_by(code: str) -> list[str]:
    """The global names that some code reads: not a function's arguments and variables.

    Raises:
        SyntaxError: for code that does not parse.
    """
    names, waiting = [], [symtable.symtable(code, "<cell>", "exec")]
    while waiting:
        scope = waiting.pop()
        waiting += scope.get_children()
        at_top = scope.get_type() == "module"
        names += [
            symbol.get_name()
            for symbol in scope.get_symbols()
            if symbol.is_referenced() and (at_top or symbol.is_global())
        ]
    return names


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements at the outermost level, and those inside its `if`, `for`, `with` and `try`."""
    for statement in body:
        yield statement
        if not isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            for field in ("body", "orelse", "finalbody"):
                yield from _statements(getattr(statement, field, []))
            for handler in getattr(statement, "handlers", []):
                yield from _statements(handler.body)


def _bound_by(statement: ast.stmt) -> list[str]:
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return [statement.name]
    if isinstance(statement, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        nodes = [node for target in targets for node in ast.walk(target)]
        return [node.id for node in nodes if isinstance(node, ast.Name)]
    return []
