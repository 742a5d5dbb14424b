"""Read the names in the code cells that ran: what each statement binds, reads and changes.

A cell is parsed as IPython runs it: magics and shell lines become Python first, and the code that a
magic such as ``%time`` or ``%%capture`` runs is parsed like any other code.
"""

from __future__ import annotations

import ast
import builtins
import copy
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from IPython.core.inputtransformer2 import TransformerManager


def words(text: str) -> frozenset[str]:
    """Return the set of the words of a text."""
    return frozenset(text.split())


# Characters of a cell above which its names are not cached, because they take much memory.
LONG = 10_000
# Magics that run their text as code of the notebook, and those that run other code or bind names.
PYTHON_MAGICS = words("time timeit capture prun")
OTHER_MAGICS = words(
    "run load loadpy load_ext reload_ext edit ed macro rerun recall rep store pylab alias_magic"
)
# The one extension that is accepted, because many notebooks begin with it.
KNOWN_EXTENSION = "load_ext autoreload"
# IPython accepts these without "%" in a cell of one line.
AUTOMAGIC = re.compile(rf"\s*({'|'.join(OTHER_MAGICS | PYTHON_MAGICS)})\s+\S[^\n]*\s*$")

# Methods that put their arguments into a container.
GROWS = words("append add insert extend update appendleft extendleft setdefault push put")
# Functions that give an object the attributes which they are told.
GIVES = words(
    "setattr namedtuple NamedTuple make_dataclass SimpleNamespace register_buffer "
    "register_parameter register_module add_module"
)
FILES = re.compile(r"(\w+)\.py\b")

Function = ast.FunctionDef | ast.AsyncFunctionDef
Definition = Function | ast.ClassDef
# Statements that bind their names whenever they run.
BIND = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom, ast.Assign,
        ast.Expr, ast.Delete)  # fmt: skip
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
NOWHERE = 1 << 62  # a place behind all statements
MOST = 20_000  # statements behind one name


@dataclass(frozen=True, eq=False)
class Use:
    """A dotted name in the code."""

    root: str  # the global name that it begins with; empty if it begins with anything else
    # What follows, such as ``.softmax``. Where ``root`` is empty, it is ``.softmax`` for an
    # attribute of some value, and ``torch.softmax`` for what was imported inside a function. It
    # ends in ``.?`` where the name is computed when the code runs.
    rest: str
    node: Any  # the code
    stored: bool = False  # whether the attribute is set or deleted


@dataclass(eq=False)
class Statement:
    """The names of a statement at a cell's outermost level."""

    node: ast.stmt
    binds: frozenset[str] = frozenset()  # names that it binds whenever its cell runs to its end
    may_bind: set[str] = field(default_factory=set)  # or whose objects it may change
    # For names that it binds by an import, or to another dotted name: that name, as in :class:`Use`
    stands_for: dict[str, tuple[str, str]] = field(default_factory=dict)
    uses: list[Use] = field(default_factory=list)  # what it reads, changes or calls
    # The path and node of each import, and whether it stands in a ``try``
    imports: list[tuple[str, ast.stmt, bool]] = field(default_factory=list)
    gives: set[str] = field(default_factory=set)  # attributes that it gives to its own objects
    files: set[str] = field(default_factory=set)  # files of Python code in its strings


@dataclass(frozen=True, eq=False)
class CodeCell:
    """A parsed cell."""

    statements: tuple[Statement, ...] = ()
    magics: tuple[str, ...] = ()  # magics that may run anything, such as ``%run other.py``
    unread: bool = False  # whether it could not be parsed here, although it may have run


class LearnerSource:
    """The code cells that ran, in order.

    ``cells`` are the sources of the first cells, as for :meth:`add`; ``files`` are names of the
    files and folders beside the notebook, which code can import.
    """

    def __init__(self, cells: Iterable[str] = (), *, files: Iterable[str] = ()):
        # Names of the modules beside the notebook
        self.files = frozenset(name.partition(".")[0] for name in files) - {""}
        # For each cell the parsed cell, and the flags ``given`` and ``finished`` of :meth:`add`
        self.cells: list[tuple[CodeCell, bool, bool]] = []
        self._statements: list[tuple[Statement, bool, bool]] = []
        self._bound: dict[str, list[int]] = {}
        self._known: dict[tuple[str, int], frozenset[str]] = {}
        for cell in cells:
            self.add(cell)

    def add(self, source: str, *, given: bool = False, finished: bool = True) -> None:
        """Add the next cell. A cell that does not parse counts as empty, because none of it ran.

        ``given`` says whether it came with the lab, so that it is trusted; ``finished`` says
        whether it ran to its end; if not, any of its statements may not have run.
        """
        cell = (_read if len(source) > LONG else _read_again)(source)
        for statement in cell.statements:
            for name in statement.binds | statement.may_bind:
                self._bound.setdefault(name, []).append(len(self._statements))
            self._statements.append((statement, given, finished))
        self.cells.append((cell, given, finished))
        self._known.clear()

    def statements(self) -> Iterator[tuple[Statement, bool, int]]:
        """Yield all statements, each with whether it came with the lab, and ``before``.

        ``before`` is for :meth:`paths`. A function finds what is bound at the end, and a statement
        at a cell's outermost level what was bound when it ran.
        """
        for place, (statement, given, _) in enumerate(self._statements):
            yield statement, given, _before(statement, place, NOWHERE)

    def behind(self, name: str) -> list[tuple[Statement, bool, int]]:
        """Return the statements that define a name, and every name that they use.

        They are as :meth:`statements` yields them; what was called when a cell ran comes with what
        was bound then. Raises RecursionError if there are too many.
        """
        found: dict[tuple[int, int], None] = {}
        waiting, asked = [(name, NOWHERE)], set[tuple[str, int]]()
        while waiting:
            asked.add(reading := waiting.pop())
            for place in self._definitions(*reading):
                statement = self._statements[place][0]
                before = _before(statement, place, reading[1])
                if len(found) > MOST:
                    raise RecursionError
                if (place, before) not in found:
                    found[place, before] = None
                    wanted = dict.fromkeys((use.root, before) for use in statement.uses if use.root)
                    waiting += [name for name in wanted if name not in asked]
        return [(*self._statements[place][:2], before) for place, before in found]

    def paths(self, use: Use, before: int = NOWHERE) -> frozenset[str]:
        """Return what a dotted name may stand for: paths such as ``torch.softmax``.

        One that begins with a dot belongs to a value, and an empty one is such a value itself.
        """
        if not use.root:
            return frozenset({use.rest})
        return frozenset(base + use.rest for base in self._stands_for(use.root, before) or {""})

    def reads(self, name: str) -> set[str]:
        """Return the global names that the code behind a name reads."""
        return {use.root for one, _, _ in self.behind(name) for use in one.uses} - {""}

    def lines_behind(self, name: str) -> int:
        """Return how many lines of the learner's code a name stands for, with all that it uses.

        A statement counts as one line, whatever it is broken into. Blank lines, comments,
        docstrings, imports, and cells that came with the lab count nothing.
        """
        own = {one.node for one, given, _ in self.behind(name) if not given}
        return sum(map(_lines, own))

    def _definitions(self, name: str, before: int) -> Iterator[int]:
        """Yield the places that bind a name, back to the last one that certainly ran."""
        for place in reversed(self._bound.get(name, ())):
            if place < before:
                yield place
                statement, _, finished = self._statements[place]
                if finished and name in statement.binds and name != "*":
                    return

    def _stands_for(self, name: str, before: int) -> frozenset[str]:
        if (name, before) not in self._known:
            found, certain = set[str](), False
            for place in self._definitions(name, before):
                statement, _, finished = self._statements[place]
                certain = finished and name in statement.binds
                if name in statement.stands_for:
                    root, rest = statement.stands_for[name]
                    bases = self._stands_for(root, place) or {""} if root else {""}
                    found |= {base + rest for base in bases}
            if not certain and name != "*":
                found |= {f"{module}.{name}" for module in self._stands_for("*", before)}
                if hasattr(builtins, name) or name in ("get_ipython", "__builtins__"):
                    found.add(f"builtins.{name}")
            self._known[name, before] = frozenset(found)
        return self._known[name, before]


def _before(statement: Statement, place: int, asked: int) -> int:
    return asked if isinstance(statement.node, Definition) else place


class _Bare(ast.NodeTransformer):
    """Takes imports, docstrings and other texts that are statements out of code."""

    def visit_Import(self, node: ast.AST) -> None: ...

    visit_ImportFrom = visit_Import

    def visit_Expr(self, node: ast.Expr) -> ast.Expr | None:
        return None if isinstance(node.value, ast.Constant) else node


def _lines(statement: ast.stmt) -> int:
    bare = _Bare().visit(copy.deepcopy(statement))
    return len([line for line in ast.unparse(bare).splitlines() if line]) if bare else 0


def _read(source: str) -> CodeCell:
    magics: list[str] = []
    try:
        try:
            body = ast.parse(source).body
        except (SyntaxError, ValueError):
            body = _of_ipython(f"%{source}" if AUTOMAGIC.match(source) else source, magics)
        return CodeCell(tuple(_Names(statement).found for statement in body), tuple(magics))
    except (RecursionError, MemoryError):
        return CodeCell(unread=True)
    except Exception:  # IPython could not parse it either, so nothing ran
        return CodeCell()


# Cached, because cells that come with a lab are the same for a whole class.
_read_again = lru_cache(maxsize=256)(_read)


def _of_ipython(source: str, magics: list[str], depth: int = 0) -> list[ast.stmt]:
    """Return the statements of a cell that is not plain Python, and those that its magics run.

    ``magics`` gets the magics that may run anything; ``depth`` is the number of magics around
    ``source``.
    """
    body: list[ast.stmt] = []
    for statement in ast.parse(TransformerManager().transform_cell(source)).body:
        body.append(statement)
        calls: list[Any] = [node for node in ast.walk(statement) if _asks_ipython(node)]
        for call in calls:
            kind, call.func = call.func.attr, ast.Name("str", ast.Load())  # it returns text
            if kind in ("system", "getoutput"):
                continue
            name, *rest = (argument.value for argument in call.args)
            text = "\n".join(rest[-1:]) if kind == "run_cell_magic" else "".join(rest)
            if name in PYTHON_MAGICS and depth < 4:
                if kind == "run_line_magic":
                    text = re.sub(r"^(\s*-\w+(\s+\d+)?)+\s*", "", text)
                elif name in ("time", "timeit") and not rest[0].startswith("-"):
                    text = f"{rest[0]}\n{text}"
                body += (inner := _of_ipython(text, magics, depth + 1))
                if isinstance(statement, ast.Assign) and isinstance(inner[-1], ast.Expr):
                    statement.value = inner[-1].value  # as in x = %time f()
            elif name in OTHER_MAGICS and f"{name} {text}".strip() != KNOWN_EXTENSION:
                magics.append(f"%{name} {text}".strip().splitlines()[0])
    return body


def _asks_ipython(call: Any) -> bool:
    """Return whether this is the call that IPython writes for a magic or a shell line."""
    return (
        isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr in ("run_line_magic", "run_cell_magic", "system", "getoutput")
        and isinstance(call.func.value, ast.Call)
        and getattr(call.func.value.func, "id", "") == "get_ipython"
        and all(isinstance(a, ast.Constant) and isinstance(a.value, str) for a in call.args)
        and bool(call.args)
    )


class _Names(ast.NodeVisitor):
    """Find the names of a statement. Annotations are not read."""

    def __init__(self, statement: ast.stmt):
        self.found = Statement(statement)  # the names
        # For each scope around a node, but for the notebook's, what its names stand for, as in
        # :class:`Use`. The names of a class are not seen in its methods.
        self._scopes: list[tuple[bool, dict[str, tuple[str, str]]]] = []
        self._tried = 0
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
        if name == "locals" and self._scopes:  # those of a function are its own
            return "", ""
        return name, ""

    def _set(self, name: str, stands_for: tuple[str, str]) -> None:
        """Note what a name stands for, in the scope that binds it."""
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
        """Note that the object which an expression begins with may be changed."""
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

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, str):
            self.found.files |= set(FILES.findall(node.value))

    def visit_Call(self, node: ast.Call) -> None:
        if _looked_up(node):
            self._use(node)
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
            self.found.imports.append((alias.name, node, self._tried > 0))

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        module = "." * node.level + (node.module or "")
        for alias in node.names:
            path = module if alias.name == "*" else f"{module}.{alias.name}"
            self._set(alias.asname or alias.name, ("", path))
            self.found.imports.append((path, node, self._tried > 0))

    def visit_Try(self, node: ast.Try | ast.TryStar) -> None:
        self._tried += 1
        self.generic_visit(node)
        self._tried -= 1

    visit_TryStar = visit_Try

    def visit_Global(self, node: ast.Global) -> None:
        self.found.may_bind |= set(node.names)

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
        if node.value:
            self.visit(node.value)

    def visit_FunctionDef(self, node: Any) -> None:
        self._visit_all([*getattr(node, "decorator_list", ()), *node.args.defaults])
        self._visit_all([default for default in node.args.kw_defaults if default])
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
        """Visit nodes in a scope of their own that binds some names."""
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
    """Split a dotted name into the expression that it begins with, and the rest with its dots."""
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


def importable(folder: Path) -> list[str]:
    """Return the names of the files and folders in a folder that could be imported."""
    try:
        found = list(folder.iterdir())
    except OSError:
        return []
    return [p.name for p in found if p.suffix in (".py", ".pyc", ".so", ".zip") or p.is_dir()]
