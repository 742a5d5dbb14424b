"""Find code in any cell of a learner's that may change the meaning of names unseen.

Where there is such code, nothing that :mod:`grader.judging.flow` reads about an answer is sure.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from grader.judging.flow import INSIDES, Hidden, shorten
from grader.judging.hostile import (
    ALL_NAMES,
    HARMLESS,
    HOSTILE,
    INSIDE,
    OWN_FILE,
    SETTINGS,
    allowed,
    hostile_anywhere,
    is_installed,
)
from grader.judging.learner_source import CodeCell, Written, words
from utils.checks.exercise import ByHand

FILES = re.compile(r"(\w+)\.py\b")
RUNS_TEXT = frozenset({"exec", "eval", "compile", "__import__", "globals", "get_ipython"})
DUNDERS = words(
    "__globals__ __code__ __closure__ __builtins__ __getattribute__ __subclasses__ __defaults__ "
    "__kwdefaults__ __loader__ __spec__ __import__"
)


def dangers(written: Written, rule: ByHand) -> Iterator[Hidden]:
    """Yield code anywhere in the learner's cells that may change the meaning of names unseen."""
    seen = [_facts(cell) for cell, _, _ in written.cells]
    modules: dict[str, str] = {}
    for facts in seen:
        modules |= facts.imported
    for _ in range(3):
        for facts in seen:
            for name, other in facts.aliases:
                root, _, rest = other.partition(".")
                if root in modules and name not in modules:
                    modules[name] = f"{modules[root]}.{rest}".rstrip(".")
    files = written.files.union(*(facts.files for facts in seen))
    for (cell, given, finished), facts in zip(written.cells, seen, strict=True):
        if given:
            continue
        if cell.unread and finished:
            yield Hidden("…", "a cell that is nested too deeply to be read")
        for magic in cell.magics:
            yield Hidden(magic, "a line for IPython that may run anything")
        for root, tried, hidden in facts.imports:
            if is_installed(
                root
            ):  # the learner's folder is last in sys.path, so it hides no module
                continue
            if root in files:
                yield Hidden(hidden.code, OWN_FILE, hidden.line)
            elif finished and not tried:  # the import succeeded, so the module exists somewhere
                yield hidden
        yield from facts.hidden
        yield from (hidden for path, hidden in facts.refused if not allowed(rule, path))
        for name, hidden in facts.names:
            if name not in written.bindings:
                yield hidden
        for root, rest, stored, hidden in facts.chains:
            if root not in modules:
                continue
            path = f"{modules[root]}.{rest}".rstrip(".")
            if stored and not path.startswith(SETTINGS):
                yield Hidden(hidden.code, "which changes what a library has for everybody")
            elif path.startswith(HARMLESS) or allowed(rule, path):
                continue
            elif why := hostile_anywhere(path):
                yield Hidden(hidden.code, why)


@dataclass(eq=False)
class _Facts:
    """What a cell contains that may affect other cells. Each item has the code, as Hidden.

    Attributes:
        hidden: code that is always refused.
        imported: the paths of imported things, by the names that the cell gives them.
        imports: for each import, the outermost module and whether it stands in a ``try``.
        refused: the paths of imports that are refused unless the rule allows them.
        files: names of modules whose file name occurs in a string of the cell.
        aliases: pairs of a name and the dotted name that is assigned to it.
        names: uses of built-in names that run text as code or return all names.
        tried: ids of the nodes inside a ``try``.
        chains: for each dotted name its first part, the rest, and whether it is assigned to.
    """

    hidden: list[Hidden] = field(default_factory=list)
    imported: dict[str, str] = field(default_factory=dict)
    imports: list[tuple[str, bool, Hidden]] = field(default_factory=list)
    refused: list[tuple[str, Hidden]] = field(default_factory=list)
    files: set[str] = field(default_factory=set)
    aliases: list[tuple[str, str]] = field(default_factory=list)
    names: list[tuple[str, Hidden]] = field(default_factory=list)
    tried: set[int] = field(default_factory=set)
    chains: list[tuple[str, str, bool, Hidden]] = field(default_factory=list)


@lru_cache(maxsize=512)
def _facts(cell: CodeCell) -> _Facts:
    facts = _Facts()
    for unit in cell.units:
        if isinstance(unit.node, (ast.Try, ast.TryStar)):
            facts.tried |= {id(node) for node in ast.walk(unit.node)}
    seen: set[int] = set()  # the parts of a compound statement are units, too
    for unit in cell.units:
        waiting: list[ast.AST] = [unit.node]
        while waiting:
            node = waiting.pop()
            if id(node) in seen:
                continue
            seen.add(id(node))
            _look_at(node, facts)
            waiting += ast.iter_child_nodes(node)
    return facts


def _look_at(node: ast.AST, facts: _Facts) -> None:
    if isinstance(node, ast.Import):
        for alias in node.names:
            root = alias.name.partition(".")[0]
            facts.imported[alias.asname or root] = alias.name if alias.asname else root
            _imports(alias.name, alias, node, facts)
    elif isinstance(node, ast.ImportFrom):
        for alias in node.names:
            path = f"{'.' * node.level}{node.module or ''}.{alias.name}"
            facts.imported[alias.asname or alias.name] = path
            _imports(path, alias, node, facts)
    elif isinstance(node, ast.Constant):
        if isinstance(node.value, str):
            facts.files |= set(FILES.findall(node.value))
    elif isinstance(node, ast.Name):
        if node.id in DUNDERS:
            facts.hidden.append(Hidden(node.id, INSIDE, node.lineno))
        if node.id in RUNS_TEXT and isinstance(node.ctx, ast.Load):
            why = HOSTILE[f"builtins.{node.id}"]
            facts.names.append((node.id, Hidden(node.id, why, node.lineno)))
    elif isinstance(node, ast.Attribute):
        if node.attr in INSIDES or node.attr in DUNDERS:
            facts.hidden.append(Hidden(shorten(node), INSIDE, node.lineno))
        root, rest = _dotted(node)
        if root:
            stored = not isinstance(node.ctx, ast.Load)
            facts.chains.append((root, rest, stored, Hidden(shorten(node), "", node.lineno)))
    elif isinstance(node, ast.Assign):
        root, rest = _dotted(node.value)
        if root:
            dotted = f"{root}.{rest}".rstrip(".")
            facts.aliases += [(t.id, dotted) for t in node.targets if isinstance(t, ast.Name)]
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        _look_at_call(node, facts)


def _look_at_call(node: ast.Call, facts: _Facts) -> None:
    assert isinstance(node.func, ast.Name)
    name = node.func.id
    if name in ("vars", "locals") and not node.args:
        facts.names.append((name, Hidden(shorten(node), ALL_NAMES, node.lineno)))
    elif name in ("setattr", "delattr", "vars") and node.args:
        root, rest = _dotted(node.args[0])
        if root:
            facts.chains.append((root, f"{rest}.?", True, Hidden(shorten(node), "", node.lineno)))
    elif name == "getattr" and len(node.args) > 1 and isinstance(node.args[1], ast.Constant):
        root, rest = _dotted(node.args[0])
        if root:
            looked_up: Any = node.args[1].value
            whole = f"{rest}.{looked_up}".lstrip(".")
            facts.chains.append((root, whole, False, Hidden(shorten(node), "", node.lineno)))


def _imports(path: str, alias: ast.alias, node: ast.stmt, facts: _Facts) -> None:
    hidden = Hidden(shorten(node), "which is no module of the course or of Python", node.lineno)
    facts.imports.append((path.partition(".")[0], id(alias) in facts.tried, hidden))
    if not path.startswith(HARMLESS) and (why := hostile_anywhere(path)):
        facts.refused.append((path, Hidden(shorten(node), why, node.lineno)))


def _dotted(node: ast.AST) -> tuple[str, str]:
    """Split a dotted name into its first part and the rest; empty strings for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return (node.id, ".".join(reversed(parts))) if isinstance(node, ast.Name) else ("", "")
