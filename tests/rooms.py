"""Which part of the project imports which part: ``python -m tests.rooms`` prints a table.

A room is a folder of ``hood/`` or another package of the project; an arrow leads from a module to a
module that it imports. Imports inside functions count, too.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("hood", "utils")
ENGINE = "hood"  # as a room: the modules directly in `hood/`
# The rooms of the engine, in order: each may import from the rooms before it.
FLOORS = (ENGINE, "hood.judge", "hood.learner", "hood.grader", "hood.classroom", "hood.authoring")
COMMANDS = "hood.__main__"  # it names the module of every command

Graph = Mapping[str, set[str]]


@cache
def modules() -> dict[str, Path]:
    """Every module of the project's packages, by its dotted name; a package counts as a module."""
    files = (path for name in PACKAGES for path in (ROOT / name).rglob("*.py"))
    found = {".".join(path.relative_to(ROOT).with_suffix("").parts): path for path in files}
    return {name.removesuffix(".__init__"): path for name, path in found.items()}


def named(path: Path) -> Iterator[str]:
    """The modules that a file imports, at any place, or the names that it imports from them."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@cache
def arrows() -> Graph:
    """Maps each module to the imported modules of the project, without the packages above these."""
    return {name: set(_of_project(named(path))) - {name} for name, path in modules().items()}


def _of_project(names: Iterable[str]) -> Iterator[str]:
    for name in names:
        while name and name not in modules():
            name = name.rpartition(".")[0]
        if name:
            yield name


def room(module: str) -> str:
    """The room of a module: ``hood.judge``, ``utils``, or ``hood`` for modules directly in it."""
    first, _, rest = module.partition(".")
    second = f"{first}.{rest.partition('.')[0]}"
    return second if first == ENGINE and second in FLOORS else first


def folder(module: str) -> str:
    """The package of a module; the `__init__.py` of a package counts as a module in it."""
    inside = modules()[module].name != "__init__.py"
    return module.rpartition(".")[0] if inside else module


def circles(graph: Graph) -> list[list[str]]:
    """The groups of nodes that all reach each other (Tarjan, 1972), sorted."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    groups = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in graph.get(node, ()):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            at = stack.index(node)
            groups.append(sorted(stack[at:]))
            del stack[at:]

    for node in sorted(graph):
        if node not in index:
            visit(node)
    return sorted(group for group in groups if len(group) > 1)


def between(part: Mapping[str, str]) -> dict[str, dict[str, list[str]]]:
    """The arrows between parts, and for each arrow the imports that it represents.

    Args:
        part: each module's part; modules that are not in it are left out.
    """
    found: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for module, others in arrows().items():
        for other in others:
            a, b = part.get(module), part.get(other)
            if a and b and a != b:
                found[a][b].append(f"{module} -> {other}")
    return found


def main() -> None:
    """Print the lines of each room, and how many imports lead from room to room."""
    rooms = [*FLOORS, *(name for name in PACKAGES if name != ENGINE)]
    imports = between({module: room(module) for module in modules()})
    table = Table("room", "lines", *(name.rpartition(".")[2] for name in rooms))
    for name in rooms:
        files = [path for module, path in modules().items() if room(module) == name]
        lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in files)
        counts = (str(len(imports.get(name, {}).get(other, []))) for other in rooms)
        cells = (count if count != "0" else "" for count in counts)
        table.add_row(name.removeprefix("hood."), f"{lines:,}", *cells)
    Console(width=max(100, Console().width)).print(table)


if __name__ == "__main__":
    main()
