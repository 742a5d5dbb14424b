"""Find the names that the code of cells imports, defines and uses."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable
from dataclasses import dataclass, field

from hood.authoring.importing.solution_cell import parsed


@dataclass
class Imports:
    """What some cells import."""

    modules: dict[str, str] = field(default_factory=dict)  # {"np": "numpy"}
    members: dict[str, str] = field(default_factory=dict)  # {"pi": "math.pi"}
    statements: dict[str, str] = field(default_factory=dict)  # {"np": "import numpy as np"}

    @classmethod
    def of(cls, sources: Iterable[str]) -> Imports:
        """Return the imports in the sources of some cells, also the imports inside functions."""
        found = cls()
        for node in (node for source in sources for node in _nodes(source)):
            if isinstance(node, ast.Import):
                for one in node.names:
                    bound = one.asname or one.name.partition(".")[0]
                    found.modules[bound] = one.name if one.asname else bound
                    found.statements[bound] = ast.unparse(ast.Import([one]))
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                for one in node.names:
                    bound = one.asname or one.name
                    found.members[bound] = f"{node.module}.{one.name}"
                    found.statements[bound] = ast.unparse(ast.ImportFrom(node.module, [one], 0))
        return found

    def packages(self) -> set[str]:
        """Return the imported modules' first names, such as "numpy" for "numpy.linalg"."""
        return {one.partition(".")[0] for one in (*self.modules.values(), *self.members.values())}


def _nodes(source: str) -> list[ast.AST]:
    tree = parsed(source)
    return [*ast.walk(tree)] if tree else []


def functions(source: str) -> list[str]:
    """Return the names of a cell's functions, in the cell's order, without `__...` names."""
    tree = parsed(source)
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    names = [one.name for one in tree.body if isinstance(one, kinds)] if tree else []
    return [name for name in dict.fromkeys(names) if not name.startswith("__")]


def defined(source: str) -> set[str]:
    """Return the names that a cell's own statements bind, without names inside its functions."""
    tree = parsed(source)
    found: set[str] = set()
    left: list[ast.AST] = list(tree.body) if tree else []
    while left:
        node = left.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
            continue
        if isinstance(node, ast.Lambda | ast.ListComp | ast.SetComp | ast.DictComp):
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.alias):
            found.add((node.asname or node.name).partition(".")[0])
        left += ast.iter_child_nodes(node)
    return found


def used(source: str) -> set[str]:
    """Return the names that a cell reads but does not bind."""
    read: set[str] = set()
    bound: set[str] = set(dir(builtins))
    for node in _nodes(source):
        if isinstance(node, ast.Name):
            (read if isinstance(node.ctx, ast.Load) else bound).add(node.id)
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            bound.add(node.name)
        elif isinstance(node, ast.alias):
            bound.add((node.asname or node.name).partition(".")[0])
        elif isinstance(node, ast.ExceptHandler) and node.name:
            bound.add(node.name)
    return read - bound
