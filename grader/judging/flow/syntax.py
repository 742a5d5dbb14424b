"""Questions about pieces of syntax trees."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any
from weakref import WeakKeyDictionary

from grader.judging.flow.tables import GROWS
from grader.judging.learner_source import Function

MOST = 48  # characters of code that a report quotes


def shorten(node: ast.AST) -> str:
    """Return a node's code on one line of at most ``MOST`` characters and an ellipsis."""
    try:
        text = " ".join(ast.unparse(node).split())
    except (ValueError, RecursionError):
        text = type(node).__name__
    return text if len(text) <= MOST else f"{text[:MOST]}…"


def position(node: Any) -> int:
    """Return a number that orders nodes by line and column; 0 for None."""
    return getattr(node, "lineno", 0) * 1000 + getattr(node, "col_offset", 0) if node else 0


def decorators(node: Any) -> set[str]:
    """Return the names of a definition's decorators, without modules and arguments."""
    found = set()
    for decorator in getattr(node, "decorator_list", []):
        call = decorator.func if isinstance(decorator, ast.Call) else decorator
        found.add(call.attr if isinstance(call, ast.Attribute) else getattr(call, "id", "?"))
    return found


def is_dunder(name: str) -> bool:
    """Return whether a name begins and ends with two underscores."""
    return name.startswith("__") and name.endswith("__") and len(name) > 4


def is_lookup(node: ast.Call) -> bool:
    """Return whether a call only looks up an attribute.

    The use of the attribute is reported then, not that of the module or value that has it.
    """
    return isinstance(node.func, ast.Name) and node.func.id in ("getattr", "hasattr", "vars")


def literal_argument(node: Any, index: int) -> str | None:
    """Return a call's positional argument if it is a literal string, else None."""
    args = getattr(node, "args", [])
    if len(args) > index and isinstance(args[index], ast.Constant):
        return args[index].value if isinstance(args[index].value, str) else None
    return None


def loaded(target: ast.AST) -> ast.AST:
    """Return the expression that reads what an assignment's target names."""
    return (
        ast.parse(ast.unparse(target), mode="eval").body
        if not isinstance(target, ast.Name)
        else target
    )


def same_scope(statement: ast.AST) -> Iterator[ast.AST]:
    """Yield a statement's nodes, without the insides of functions and classes in it."""
    waiting = [statement]
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, (Function, ast.ClassDef, ast.Lambda)):
            waiting += ast.iter_child_nodes(node)


def root_name(node: ast.AST) -> str:
    """Return the name at the left end of a chain of attributes, indices and calls, or empty."""
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call, ast.Starred)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def fills(statement: ast.stmt, roots: set[str], boxes: set[str]) -> bool:
    """Return whether a statement may put something into an object, or give it another name.

    Args:
        roots: names of classes and functions of the learner, whose attributes it may set.
        boxes: names of containers and instances: any statement that reads one may hand it on.
    """
    # The analysis asks this of every statement again and again, so what it touches is kept.
    if statement not in _touched:
        read: set[str] = set()
        filled: set[str] = set()
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                read.add(node.id)
            elif isinstance(node, (ast.Attribute, ast.Subscript, ast.Call)):
                filled.add(_filled_by(node))
        _touched[statement] = frozenset(read), frozenset(filled)
    read_by, filled_by = _touched[statement]
    return not (boxes.isdisjoint(read_by) and roots.isdisjoint(filled_by))


# For each statement in use, the names that it reads and those whose objects it may change.
_touched: WeakKeyDictionary[ast.stmt, tuple[frozenset[str], frozenset[str]]] = WeakKeyDictionary()


def _filled_by(node: ast.Attribute | ast.Subscript | ast.Call) -> str:
    """Return the name whose object a node may change, or empty."""
    if not isinstance(node, ast.Call):
        return root_name(node) if isinstance(node.ctx, ast.Store) else ""
    if isinstance(node.func, ast.Name) and node.func.id == "setattr":
        return root_name(node.args[0]) if node.args else ""
    grows = isinstance(node.func, ast.Attribute) and node.func.attr in GROWS
    return root_name(node.func) if grows else ""
