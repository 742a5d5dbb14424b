"""Load a lab's own solution. Most answers that test a check are edits of this solution."""

from __future__ import annotations

import ast
import linecache
import re
import sys
from functools import cache
from pathlib import Path
from typing import Any

CELL = re.compile(r"^# %%(.*)\n", re.M)


def lab_solution(module: str, exercise: str, name: str = "") -> Any:
    """Return a function or class of the lab's own solution, without annotations and docstrings.

    The function or class sees the names that the lab's cells import, not the names in the check's
    file. Raises LookupError if the lab has no such solution.

    Args:
        module: ``__name__`` of the check's file, which is ``checks.py`` or a file in ``checks``.
        exercise: the exercise's name.
        name: the name of the function or class; by default the exercise's name.
    """
    lab = phase_folder(module) / "lab.py"
    try:
        return lab_names(lab, exercise, module)[name or exercise]
    except KeyError:
        raise LookupError(f"{lab}: the solution {exercise!r} has no {name or exercise!r}") from None


def phase_folder(module: str) -> Path:
    """Return the folder of a phase; ``module`` is the name of a module of this phase's checks."""
    folder = Path(getattr(sys.modules[module], "__file__", None) or "nowhere/here").parent
    return folder.parent if folder.name == "checks" else folder


def supply(names: dict[str, Any], lab: Path, source: str) -> None:
    """Run the imports of the lab's cells that ``source`` uses, in the namespace ``names``."""
    used = {node.id for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name)}
    for name, statement in _imports(lab).items():
        if name in used and name not in names:
            exec(statement, names)


@cache
def lab_names(lab: Path, exercise: str, module: str) -> dict[str, Any]:
    """Return a dict of all names that a lab's solution defines or uses. Do not change the dict.

    Args:
        module: the name of a module that can be imported; the value of ``__name__`` in the dict.
    """
    names: dict[str, Any] = {"__name__": module, "__lab__": lab}
    run("\n\n\n".join(bare(_solutions(lab).get(exercise, "")).values()), names, lab, exercise)
    return names


def bare(source: str) -> dict[str, str]:
    """Return the functions and classes of some code by name, as ``edits`` see them.

    ``edits`` see no comments, no docstrings, and no annotations of signatures.
    """
    return {
        one.name: ast.unparse(_Bare().visit(one))
        for one in ast.parse(source).body
        if isinstance(one, ast.FunctionDef | ast.ClassDef)
    }


def run(source: str, among: dict[str, Any], lab: Path | None, title: str) -> dict[str, Any]:
    """Run code in the namespace ``among``; return a dict of the functions and classes in the code.

    Args:
        lab: a lab with imports that the code may use, or None.
    """
    if lab:
        supply(among, lab, source)
    file = f"<{title} {hash(source):x}>"
    # Code that reads a function's source, such as Triton's decorators, finds the source here.
    linecache.cache[file] = len(source), None, source.splitlines(keepends=True), file
    exec(compile(source, file, "exec"), among)
    found = {}
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found[node.name] = one = among[node.name]
            one._source, one._among = ast.unparse(node), among
    return found


class _Bare(ast.NodeTransformer):
    """Leave out docstrings, and the annotations in signatures.

    Nested functions keep their annotations, because torch may read them. Triton's annotation
    ``constexpr`` is also kept.
    """

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.ClassDef:
        node.body = [
            self.visit(one) if isinstance(one, ast.FunctionDef) else one for one in _without(node)
        ]
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        node.body, node.returns = _without(node), None
        for argument in ast.walk(node.args):
            if isinstance(argument, ast.arg) and "constexpr" not in ast.dump(argument):
                argument.annotation = None
        return node


def _without(node: ast.FunctionDef | ast.ClassDef) -> list[ast.stmt]:
    return node.body[1:] if ast.get_docstring(node) else node.body


@cache
def _cells(lab: Path) -> list[tuple[str, str]]:
    """Return two texts for each code cell: the rest of the line `# %%`, and the code."""
    parts = CELL.split(lab.read_text(encoding="utf-8"))
    return [
        (head, code)
        for head, code in zip(parts[1::2], parts[2::2], strict=True)
        if "[markdown]" not in head
    ]


def _solutions(lab: Path) -> dict[str, str]:
    """Return the code of each exercise's solution cell in a lab."""
    named = ((re.search(r'solution="(\w+)"', head), code) for head, code in _cells(lab))
    return {head[1]: code for head, code in named if head}


@cache
def _imports(lab: Path) -> dict[str, str]:
    """Return the import statement of each name that a lab's cells import."""
    found = {}
    for _, code in _cells(lab):
        for node in ast.parse(code).body:
            if isinstance(node, ast.Import | ast.ImportFrom):
                for alias in node.names:
                    bound = (alias.asname or alias.name).partition(".")[0]
                    found[bound] = ast.unparse(node)
    return found
