"""What a learner wrote: the code cells that ran, statement by statement, and what each one binds.

A cell is read as IPython runs it: magics and shell lines are put into Python first, and what a
magic like ``%time`` or ``%%capture`` runs is read like any other code.
"""

from __future__ import annotations

import ast
import builtins
import re
import symtable
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from IPython.core.inputtransformer2 import TransformerManager


def words(text: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(text.split())


# Code that does not parse, parses and does not compile, or is nested too deeply to be looked at.
UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError)
# Characters; the tree of a longer cell takes too much memory to be kept.
LONG = 10_000

# Magics that run their text as code of the notebook.
PYTHON_MAGICS = frozenset({"time", "timeit", "capture", "prun"})
# Magics that leave the notebook's names, and what they stand for, as they are.
QUIET_MAGICS = words(
    "matplotlib config precision xmode pwd cd ls who who_ls whos history hist lsmagic env pip "
    "conda html markdown latex svg javascript js HTML SVG bash sh pinfo pinfo2 pdoc psource pycat "
    "cat writefile autosave colors dirs pdef pfile magic quickref logstop mkdir autoreload pdb "
    "debug"
)
# Of IPython's own extensions, the one that notebooks often begin with.
KNOWN_EXTENSION = "load_ext autoreload"
# What runs a file or text when a one-line cell begins with it, without a "%" too.
AUTOMAGIC = re.compile(r"\s*(run|load|load_ext|reload_ext|prun|time|timeit|edit|ed|macro)\s+\S")

Function = ast.FunctionDef | ast.AsyncFunctionDef
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@dataclass(frozen=True, eq=False)
class Unit:
    """A statement at a cell's outermost level, or the head of one that holds others.

    Attributes:
        node: the statement; of a compound one only the head belongs to this unit.
        binds: names that it gives a meaning; ``*`` for all those of a module.
        certain: it runs whenever its cell does, and so replaces what the names meant before.
        block: a number that it shares with the units of the same outermost statement.
        declared: names that functions in it may bind anew, with a ``global`` statement.
    """

    node: ast.stmt
    binds: frozenset[str]
    certain: bool
    block: int
    declared: frozenset[str]


@dataclass(frozen=True, eq=False)
class Cell:
    """A cell as it was read.

    Attributes:
        units: its statements, those inside of ``if``, ``for``, ``with`` and ``try`` too.
        magics: lines for IPython that may do anything, such as ``%run other.py``.
        unread: it could not be read although it may have run.
    """

    units: tuple[Unit, ...] = ()
    magics: tuple[str, ...] = ()
    unread: bool = False


class Written:
    """The code cells that ran, in order, and what stands in them."""

    def __init__(self, cells: Iterable[str] = (), *, files: Iterable[str] = ()):
        """Take in some cells.

        Args:
            files: names of the files and folders beside the notebook, which code can import.
        """
        self.files = frozenset(name.partition(".")[0] for name in files) - {""}
        self.cells: list[tuple[Cell, bool, bool]] = []
        self.units: list[tuple[Unit, bool]] = []
        self.block_of: list[tuple[int, int]] = []
        self._count = 0
        self.bindings: dict[str, list[int]] = {}
        self.declared: dict[str, list[int]] = {}
        for cell in cells:
            self.add(cell)

    def add(self, source: str, *, given: bool = False, finished: bool = True) -> None:
        """Take in the next cell. One that doesn't parse is passed over: nothing of it ran.

        Args:
            given: it came with the lab, so that nothing in it can be the learner's doing.
            finished: it ran to its end; otherwise any of its statements may not have run.
        """
        cell = (_read if len(source) > LONG else _read_again)(self._automatic(source))
        self.cells.append((cell, given, finished))
        self._count += 1
        first = len(self.units)
        for place, unit in enumerate(cell.units, first):
            self.units.append((unit, unit.certain and finished))
            self.block_of.append((self._count, unit.block))
            for name in unit.binds:
                self.bindings.setdefault(name, []).append(place)
            for name in unit.declared:
                self.declared.setdefault(name, []).append(place)

    def behind(self, name: str) -> str:
        """The last definition of a name and of every name that it leans on, each once.

        A statement that can't be read is left out.

        Args:
            name: a function, class or variable at a cell's outermost level.
        """
        found: dict[ast.stmt, str] = {}
        waiting = [name]
        while waiting:
            places = self.bindings.get(waiting.pop())
            if places and (statement := self.units[places[-1]][0].node) not in found:
                try:
                    found[statement] = ast.unparse(statement)
                    waiting += names_read_by(found[statement])
                except UNREADABLE:
                    found[statement] = ""
        return "\n\n".join(found.values())

    def _automatic(self, source: str) -> str:
        """A one-line cell such as ``run other.py`` as what it is for IPython: ``%run other.py``."""
        found = AUTOMAGIC.match(source)
        alone = "\n" not in source.strip()
        if (
            found is None
            or not alone
            or found[1] in self.bindings
            or re.match(r"\s*\w+\s*=[^=]", source)
        ):
            return source
        return f"%{source.strip()}"


def _read(source: str) -> Cell:
    """The units of a cell."""
    try:
        tree = ast.parse(source)
    except (RecursionError, MemoryError):
        return Cell(unread=True)
    except (SyntaxError, ValueError):
        tree = None
    try:
        magics: list[str] = []
        body = tree.body if tree is not None else _of_ipython(source, magics, 0)
        return Cell(tuple(_units(body)), tuple(magics))
    except (RecursionError, MemoryError):
        return Cell(unread=True)
    except Exception:  # IPython could not read it either
        return Cell()


# What comes with a lab is the same for a whole class.
_read_again = lru_cache(maxsize=256)(_read)


def _of_ipython(source: str, magics: list[str], depth: int) -> list[ast.stmt]:
    """The statements that IPython makes of a cell that is not plain Python."""
    tree = ast.parse(TransformerManager().transform_cell(source))
    return [new for old in tree.body for new in _without_magic(old, magics, depth)]


def _without_magic(statement: ast.stmt, magics: list[str], depth: int) -> list[ast.stmt]:
    """A statement with the code that its magic runs in place of the magic."""
    body = getattr(statement, "body", None)
    if isinstance(body, list):
        whole: Any = statement
        whole.body = [new for old in body for new in _without_magic(old, magics, depth)]
        return [statement]
    call: Any = getattr(statement, "value", None)
    if not _asks_ipython(call):
        return [statement]
    kind = call.func.attr
    if kind in ("system", "getoutput"):
        call.func = ast.copy_location(ast.Name("str", ast.Load()), call.func)  # text comes of it
        return [statement]
    name, *rest = (argument.value for argument in call.args)
    text = "\n".join(rest[-1:]) if kind == "run_cell_magic" else "".join(rest)
    if name in PYTHON_MAGICS and depth < 4:
        if kind == "run_line_magic":
            text = re.sub(r"^(\s*-\w+(\s+\d+)?)+\s*", "", text)
        elif name in ("time", "timeit") and rest[0].strip() and not rest[0].startswith("-"):
            text = f"{rest[0]}\n{text}"
        inner = _of_ipython(text, magics, depth + 1)
        if isinstance(statement, ast.Assign):  # as in x = %time f()
            return [*inner, ast.copy_location(ast.Assign(statement.targets, call), statement)]
        return inner
    if name not in QUIET_MAGICS and f"{name} {text}".strip() != KNOWN_EXTENSION:
        magics.append(f"%{name} {text}".strip().splitlines()[0])
    call.func = ast.copy_location(ast.Name("str", ast.Load()), call.func)
    return [statement]


def _asks_ipython(call: ast.expr | None) -> bool:
    """Whether this is what IPython writes for a magic or a shell line."""
    return (
        isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr in ("run_line_magic", "run_cell_magic", "system", "getoutput")
        and isinstance(call.func.value, ast.Call)
        and getattr(call.func.value.func, "id", "") == "get_ipython"
        and all(isinstance(a, ast.Constant) and isinstance(a.value, str) for a in call.args)
        and bool(call.args)
    )


def _units(body: list[ast.stmt], certain: bool = True, block: int = 0) -> Iterator[Unit]:
    """Statements at the outermost level, and those inside its `if`, `for`, `with` and `try`."""
    for number, statement in enumerate(body):
        within = block or number + 1
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            for alias in statement.names:
                one = ast.copy_location(_of_one(statement, alias), statement)
                yield Unit(one, _named_by(alias), certain, within, frozenset())
            continue
        inside = () if isinstance(statement, (Function, ast.ClassDef)) else list(_parts(statement))
        heads = [statement] if not inside else _head(statement)
        sure = certain and not isinstance(statement, (ast.For, ast.AsyncFor, ast.While, ast.Match))
        declared = frozenset() if inside else _declared_in(statement)
        yield Unit(statement, frozenset(bound_in(heads)), sure, within, declared)
        for part, always in inside:
            yield from _units(part, certain and always, within)


def _of_one(statement: ast.Import | ast.ImportFrom, alias: ast.alias) -> ast.stmt:
    if isinstance(statement, ast.Import):
        return ast.Import([alias])
    return ast.ImportFrom(statement.module, [alias], statement.level)


def _named_by(alias: ast.alias) -> frozenset[str]:
    return frozenset({alias.asname or alias.name.partition(".")[0]})


def _parts(statement: ast.stmt) -> Iterator[tuple[list[ast.stmt], bool]]:
    """The bodies of a compound statement, each with whether it runs whenever the head does."""
    if isinstance(statement, (ast.With, ast.AsyncWith)):
        yield statement.body, False  # a context may end its block early, and in silence
    elif isinstance(statement, (ast.If, ast.For, ast.AsyncFor, ast.While)):
        yield statement.body, False
        yield statement.orelse, False
    elif isinstance(statement, (ast.Try, ast.TryStar)):
        yield statement.body, False
        for handler in statement.handlers:
            yield handler.body, False
        yield statement.orelse, False
        yield statement.finalbody, True
    elif isinstance(statement, ast.Match):
        for case in statement.cases:
            yield case.body, False


def _head(statement: ast.stmt) -> list[ast.AST]:
    """What of a compound statement does not stand in one of its bodies."""
    heads: list[ast.AST] = []
    for name, value in ast.iter_fields(statement):
        if name in ("body", "orelse", "finalbody"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.ExceptHandler):
                heads += [ast.Name(child.name, ast.Store())] if child.name else []
                heads += [child.type] if child.type else []
            elif isinstance(child, ast.match_case):
                heads += [child.pattern] + ([child.guard] if child.guard else [])
            elif isinstance(child, ast.AST):
                heads.append(child)
    return heads


def bound_in(nodes: Iterable[ast.AST]) -> set[str]:
    """Names that some code binds in its own scope: not those of functions and classes inside."""
    names: set[str] = set()
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        if isinstance(node, (Function, ast.ClassDef)):
            names.add(node.name)
            waiting += node.decorator_list
            if isinstance(node, ast.ClassDef):
                waiting += [*node.bases, *(word.value for word in node.keywords)]
            else:
                waiting += [d for d in (*node.args.defaults, *node.args.kw_defaults) if d]
            continue
        if isinstance(node, ast.Lambda):
            waiting += [d for d in (*node.args.defaults, *node.args.kw_defaults) if d]
            continue
        if isinstance(node, COMPREHENSIONS):
            inner = (n for n in ast.walk(node) if isinstance(n, ast.NamedExpr))
            names |= {n.target.id for n in inner}
            continue
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            names.add(node.id)
        elif isinstance(node, ast.alias):
            names |= _named_by(node)
        elif isinstance(node, (ast.MatchAs, ast.MatchStar, ast.ExceptHandler)) and node.name:
            names.add(node.name)
        elif isinstance(node, ast.MatchMapping) and node.rest:
            names.add(node.rest)
        waiting += ast.iter_child_nodes(node)
    return names


def _declared_in(statement: ast.stmt) -> frozenset[str]:
    """Names of the notebook that functions inside of a statement may bind anew."""
    found = (node.names for node in ast.walk(statement) if isinstance(node, ast.Global))
    return frozenset(name for names in found for name in names)


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


def importable(folder: Path) -> list[str]:
    """Names of what lies in a folder and could be imported there."""
    try:
        found = list(folder.iterdir())
    except OSError:
        return []
    return [p.name for p in found if p.suffix in (".py", ".pyc", ".so", ".zip") or p.is_dir()]


def is_builtin(name: str) -> bool:
    """Whether Python itself, or IPython, gives a name its meaning."""
    return hasattr(builtins, name) or name == "get_ipython"
