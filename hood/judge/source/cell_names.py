"""Read the names in a code cell: the names that each statement binds, reads and changes.

A cell is parsed as IPython runs it: magics and shell lines become Python first, and the code that a
magic such as ``%time`` or ``%%capture`` runs is parsed like any other code.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from IPython.core.inputtransformer2 import TransformerManager


def words(text: str) -> frozenset[str]:
    """Return the set of words in a text."""
    return frozenset(text.split())


# If a cell has more characters than this, its names are not cached, because they take much memory.
LONG = 10_000
# Magics that run the text after them as code of the notebook.
PYTHON_MAGICS = words("time timeit capture prun")
FROM_IPYTHON = words("run_line_magic run_cell_magic system getoutput")

# Methods that put their arguments into a container.
GROWS = words("append add insert extend update appendleft extendleft setdefault push put")
# Functions that give an object attributes by name.
GIVES = words(
    "setattr namedtuple NamedTuple make_dataclass SimpleNamespace register_buffer "
    "register_parameter register_module add_module"
)

Function = ast.FunctionDef | ast.AsyncFunctionDef
Definition = Function | ast.ClassDef
# Statements that always bind their names when they run.
BIND = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom, ast.Assign,
        ast.Expr, ast.Delete)  # fmt: skip
# An annotation that contains such a node does more than name types.
RUNS = (ast.Call, ast.NamedExpr, ast.Lambda, ast.Await, ast.ListComp, ast.SetComp, ast.DictComp,
        ast.GeneratorExp)  # fmt: skip
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@dataclass(frozen=True, eq=False)
class Use:
    """A dotted name in the code."""

    root: str  # the global name at its beginning; empty if something else is there
    # The rest of the name, such as ``.softmax``. If ``root`` is empty, the rest is ``.softmax`` for
    # an attribute of some value, and ``torch.softmax`` for an import inside a function. The rest
    # ends in ``.?`` if the name is computed at run time.
    rest: str
    node: Any  # the code
    stored: bool = False  # whether the attribute is set or deleted


@dataclass(eq=False)
class Statement:
    """The names of a statement at a cell's outermost level."""

    node: ast.stmt
    lines: range = range(0)  # its lines in the cell, with decorators
    text: str = ""  # the line as it was written, if IPython translates it to Python
    binds: frozenset[str] = frozenset()  # names that it binds if the cell runs to its end
    may_bind: set[str] = field(default_factory=set)  # names that it may bind, or mutate
    # names declared ``global``: a later call may bind them
    declares: set[str] = field(default_factory=set)
    # For names that it binds by an import or to a dotted name: the origin, as in :class:`Use`
    stands_for: dict[str, tuple[str, str]] = field(default_factory=dict)
    uses: list[Use] = field(default_factory=list)  # the names that it reads, changes or calls
    gives: set[str] = field(default_factory=set)  # attributes that it sets on its own objects
    unseen: bool = False  # True if its text does not show how its names were bound


@dataclass(frozen=True, eq=False)
class CodeCell:
    """A parsed cell."""

    statements: tuple[Statement, ...] = ()
    unread: bool = False  # True if it could not be parsed here; the kernel may still have run it


def read_cell(source: str) -> CodeCell:
    """Return the statements of a cell."""
    return (_read if len(source) > LONG else _read_again)(source)


def _read(source: str) -> CodeCell:
    try:
        try:
            found = [_Names(one, _lines_of(one)).found for one in ast.parse(source).body]
        except (SyntaxError, ValueError):
            found = _of_ipython(source)
        return CodeCell(tuple(found))
    except (RecursionError, MemoryError):
        return CodeCell(unread=True)
    except Exception:  # IPython could not parse the cell either, so nothing ran
        return CodeCell()


# Cached, because cells that come with a lab are the same for a whole class.
_read_again = lru_cache(maxsize=256)(_read)


def _lines_of(node: ast.stmt) -> range:
    first = min(one.lineno for one in (node, *getattr(node, "decorator_list", ())))
    return range(first, (node.end_lineno or node.lineno) + 1)


def _of_ipython(source: str, depth: int = 0) -> list[Statement]:
    """Return the statements of a cell that is not plain Python, also those that its magics run.

    ``depth`` is the number of magics around ``source``.
    """
    found: list[Statement] = []
    written = source.splitlines()
    for statement in ast.parse(TransformerManager().transform_cell(source)).body:
        lines = _lines_of(statement)
        inner: list[Statement] = []
        calls: list[Any] = [node for node in ast.walk(statement) if _asks_ipython(node)]
        for call in calls:
            kind, (name, *rest) = call.func.attr, [argument.value for argument in call.args]
            if name not in PYTHON_MAGICS or depth > 3 or not kind.endswith("_magic"):
                continue
            text = "\n".join(rest[-1:]) if kind == "run_cell_magic" else "".join(rest)
            if kind == "run_line_magic":
                text = re.sub(r"^(\s*-\w+(\s+\d+)?)+\s*", "", text)
            elif name in ("time", "timeit") and not rest[0].startswith("-"):
                text = f"{rest[0]}\n{text}"
            inner += (ran := _of_ipython(text, depth + 1))
            last = ran[-1].node if ran else None
            if isinstance(statement, ast.Assign) and isinstance(last, ast.Expr):
                statement.value = last.value  # as in x = %time f()
        found.append(outer := _Names(statement, lines).found)
        if calls and len(written) >= lines.start:
            outer.text = written[lines.start - 1].strip()
        for one in inner:
            one.lines = lines
        found += inner
    return found


def _asks_ipython(call: Any) -> bool:
    """Return whether this is the call that IPython writes for a magic or a shell line."""
    return (
        isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr in FROM_IPYTHON
        and isinstance(call.func.value, ast.Call)
        and getattr(call.func.value.func, "id", "") == "get_ipython"
        and all(isinstance(a, ast.Constant) and isinstance(a.value, str) for a in call.args)
        and bool(call.args)
    )


class _Names(ast.NodeVisitor):
    """Find the names of a statement. An annotation that only names types is not read."""

    def __init__(self, statement: ast.stmt, lines: range):
        self.found = Statement(statement, lines)  # the names
        # One item for each scope around the visited node, except the notebook's scope. An item says
        # whether the scope is a class, and maps each name of the scope to the ``root`` and the
        # ``rest`` (see :class:`Use`) of what the name stands for. Methods do not see the names of a
        # class.
        self._scopes: list[tuple[bool, dict[str, tuple[str, str]]]] = []
        bound = frozenset(bound_in([statement]))
        if isinstance(statement, BIND):
            self.found.binds = bound
        else:
            self.found.may_bind |= bound
        self.visit(statement)

    def _names(self, name: str) -> tuple[str, str]:
        for depth, (of_class, names) in enumerate(reversed(self._scopes)):
            if name in names and (depth == 0 or not of_class):
                return names[name]
        if name == "locals" and self._scopes:  # a function's local names are not global
            return "", ""
        return name, ""

    def _set(self, name: str, stands_for: tuple[str, str]) -> None:
        """Record what a name stands for, in the scope that binds it."""
        if self._scopes and name in self._scopes[-1][1]:
            self._scopes[-1][1][name] = stands_for
        elif not self._scopes or name in self.found.may_bind:
            self.found.stands_for[name] = stands_for

    def _use(self, node: Any, extra: str = "", *, stored: bool = False, whole: Any = None) -> None:
        base, parts = _parts(node)
        root, rest = self._names(base.id) if isinstance(base, ast.Name) else ("", "")
        if not isinstance(base, ast.Name):
            self.visit(base)
        rest += parts + extra
        if root or rest:
            self.found.uses.append(Use(root, rest, whole or node, stored))

    def _changes(self, node: ast.AST) -> None:
        """Record that the object at the beginning of an expression may be changed."""
        while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call)):
            node = node.func if isinstance(node, ast.Call) else node.value
        if isinstance(node, ast.Name) and (root := self._names(node.id)[0]):
            self.found.may_bind.add(root)

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            self._use(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        stored = not isinstance(node.ctx, ast.Load)
        if stored:
            self._changes(node)
            self.found.gives.add(node.attr)
        self._use(node, stored=stored)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        if not isinstance(node.ctx, ast.Load):
            self._changes(node)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        if _looked_up(node):
            self._use(node)
            self._visit_all(node.args[2:])
            return
        called = getattr(node.func, "attr", getattr(node.func, "id", ""))
        if called in ("methodcaller", "attrgetter"):
            names = [a.value for a in node.args if isinstance(a, ast.Constant)]
            self.found.uses += [Use("", f".{name!s}", node) for name in names]
        elif called in GROWS and isinstance(node.func, ast.Attribute):
            self._changes(node.func.value)
        elif called in ("setattr", "delattr") and node.args:
            self._changes(node.args[0])
            self._use(node.args[0], ".?", stored=True, whole=node)
        elif called in ("getattr", "vars") and node.args:
            self._use(node.args[0], ".?" if called == "getattr" else ".__dict__", whole=node)
        elif called == "vars":
            self.found.uses.append(Use("", "builtins.globals", node))
        if called in GIVES:
            said = (part.value for part in ast.walk(node) if isinstance(part, ast.Constant))
            self.found.gives.update(re.findall(r"\w+", " ".join(map(repr, said))))
            self.found.gives.update(word.arg for word in node.keywords if word.arg)
        self.generic_visit(node)

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            root = alias.name.partition(".")[0]
            self._set(alias.asname or root, ("", alias.name if alias.asname else root))

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        module = "." * node.level + (node.module or "")
        for alias in node.names:
            path = module if alias.name == "*" else f"{module}.{alias.name}"
            self._set(alias.asname or alias.name, ("", path))

    def visit_Global(self, node: ast.Global) -> None:
        self.found.may_bind |= set(node.names)
        self.found.declares |= set(node.names)

    def visit_Assign(self, node: ast.Assign) -> None:
        self.generic_visit(node)
        if isinstance(node.value, (ast.Name, ast.Attribute, ast.Call)):
            base, parts = _parts(node.value)
            for target in node.targets:
                if isinstance(target, ast.Name) and isinstance(base, ast.Name):
                    root, rest = self._names(base.id)
                    self._set(target.id, (root, rest + parts))

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self.visit(node.target)
        self._annotation(node.annotation)
        if node.value:
            self.visit(node.value)

    def _annotation(self, node: ast.expr | None) -> None:
        """Read an annotation that does more than name types, because Python evaluates it."""
        if node and any(isinstance(part, RUNS) for part in ast.walk(node)):
            self.visit(node)

    def visit_FunctionDef(self, node: Any) -> None:
        self._visit_all([*getattr(node, "decorator_list", ()), *node.args.defaults])
        self._visit_all([default for default in node.args.kw_defaults if default])
        for part in ast.walk(node.args):
            if isinstance(part, ast.arg):
                self._annotation(part.annotation)
        self._annotation(getattr(node, "returns", None))
        body = node.body if isinstance(node.body, list) else [node.body]
        given = {part.arg for part in ast.walk(node.args) if isinstance(part, ast.arg)}
        self._inside(body, given | bound_in(body))

    visit_AsyncFunctionDef = visit_Lambda = visit_FunctionDef

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._visit_all([*node.decorator_list, *node.bases, *node.keywords])
        bound = bound_in(node.body)
        self.found.gives |= bound
        self._inside(node.body, bound, of_class=True)

    def visit_ListComp(self, node: Any) -> None:
        self.visit(node.generators[0].iter)
        inside = [*ast.iter_child_nodes(node)]
        self._inside(inside, bound_in(g.target for g in node.generators))

    visit_SetComp = visit_DictComp = visit_GeneratorExp = visit_ListComp

    def _inside(self, nodes: list[Any], names: set[str], of_class: bool = False) -> None:
        """Visit nodes in a new scope that binds some names."""
        waiting, outer = list(nodes), set[str]()
        while waiting:
            node = waiting.pop()
            if isinstance(node, (ast.Global, ast.Nonlocal)):
                outer |= set(node.names)
            elif not isinstance(node, (Definition, ast.Lambda)):
                waiting += ast.iter_child_nodes(node)
        self._scopes.append((of_class, dict.fromkeys(names - outer, ("", ""))))
        self._visit_all(nodes)
        self._scopes.pop()

    def _visit_all(self, nodes: list[Any]) -> None:
        for node in nodes:
            self.visit(node)


def _parts(node: Any) -> tuple[ast.expr, str]:
    """Split a dotted name into the expression at the beginning, and the rest with the dots."""
    if isinstance(node, ast.Attribute):
        base, rest = _parts(node.value)
        return base, f"{rest}.{node.attr}"
    if _looked_up(node):
        base, rest = _parts(node.args[0])
        return base, f"{rest}.{node.args[1].value}"
    return node, ""


def _looked_up(node: Any) -> bool:
    called = isinstance(node, ast.Call) and getattr(node.func, "id", "") == "getattr"
    return called and len(node.args) > 1 and isinstance(node.args[1], ast.Constant)


def bound_in(nodes: Iterable[ast.AST]) -> set[str]:
    """Return the names that code binds in its own scope, not in functions and classes inside."""
    names: set[str] = set()
    waiting = list(nodes)
    while waiting:
        node: Any = waiting.pop()
        if isinstance(node, Definition):
            names.add(node.name)
        elif isinstance(node, COMPREHENSIONS):
            names |= {n.target.id for n in ast.walk(node) if isinstance(n, ast.NamedExpr)}
        elif not isinstance(node, ast.Lambda):
            if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
                names.add(node.id)
            elif isinstance(node, ast.alias):
                names.add(node.asname or node.name.partition(".")[0])
            elif isinstance(node, (ast.MatchAs, ast.MatchStar, ast.ExceptHandler)) and node.name:
                names.add(node.name)
            elif isinstance(node, ast.MatchMapping) and node.rest:
                names.add(node.rest)
            waiting += ast.iter_child_nodes(node)
    return names
