"""Parse the code cells that ran into statements, with the names that each statement binds.

A cell is parsed as IPython runs it: magics and shell lines become Python first, and the code that a
magic such as ``%time`` or ``%%capture`` runs is parsed like any other code.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import re
import symtable
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from IPython.core.inputtransformer2 import TransformerManager


def words(text: str) -> frozenset[str]:
    """Return the set of the words of a text."""
    return frozenset(text.split())


# Raised for code that does not parse, does not compile, or is nested too deeply.
UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError)
# Characters of a cell above which its syntax tree is not cached, because it takes much memory.
LONG = 10_000

# Magics that run their text as code of the notebook.
PYTHON_MAGICS = frozenset({"time", "timeit", "capture", "prun"})
# Magics that change neither the notebook's names nor their meaning.
QUIET_MAGICS = words(
    "matplotlib config precision xmode pwd cd ls who who_ls whos history hist lsmagic env pip "
    "conda html markdown latex svg javascript js HTML SVG bash sh pinfo pinfo2 pdoc psource pycat "
    "cat writefile autosave colors dirs pdef pfile magic quickref logstop mkdir autoreload pdb "
    "debug"
)
# The one extension that is accepted, because many notebooks begin with it.
KNOWN_EXTENSION = "load_ext autoreload"
# Magics that run a file or text, which IPython also accepts without "%" in a one-line cell.
AUTOMAGIC = re.compile(r"\s*(run|load|load_ext|reload_ext|prun|time|timeit|edit|ed|macro)\s+\S")

Function = ast.FunctionDef | ast.AsyncFunctionDef
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@dataclass(frozen=True, eq=False)
class Unit:
    """A statement at a cell's outermost level, or the head of a compound statement.

    Attributes:
        node: the statement; of a compound one only the head belongs to this unit.
        binds: names that it binds; ``*`` for all names of a module.
        certain: whether it runs whenever its cell does, so that its bindings replace earlier ones.
        block: a number that is the same for all units of one outermost statement.
        declared: names that functions in it may bind with a ``global`` statement.
    """

    node: ast.stmt
    binds: frozenset[str]
    certain: bool
    block: int
    declared: frozenset[str]


@dataclass(frozen=True, eq=False)
class CodeCell:
    """A parsed cell.

    Attributes:
        units: its statements, including those inside ``if``, ``for``, ``with`` and ``try``.
        magics: magics that may run anything, such as ``%run other.py``.
        unread: whether it could not be parsed here, although it may have run.
    """

    units: tuple[Unit, ...] = ()
    magics: tuple[str, ...] = ()
    unread: bool = False


class Written:
    """The code cells that ran, in order, with their statements and bindings.

    Args:
        cells: the sources of the first cells, as for :meth:`add`.
        files: names of the files and folders beside the notebook, which code can import.

    Attributes:
        files: names of the modules beside the notebook.
        cells: for each cell the parsed cell, and the flags ``given`` and ``finished`` of
            :meth:`add`.
        units: the units of all cells, each with whether it certainly ran.
        block_of: for each unit, the numbers of its cell and of its block.
        bindings: for each name, the indices in ``units`` of the units that bind it.
        declared: the same for names that functions may bind with ``global``.
    """

    def __init__(self, cells: Iterable[str] = (), *, files: Iterable[str] = ()):
        self.files = frozenset(name.partition(".")[0] for name in files) - {""}
        self.cells: list[tuple[CodeCell, bool, bool]] = []
        self.units: list[tuple[Unit, bool]] = []
        self.block_of: list[tuple[int, int]] = []
        self.bindings: dict[str, list[int]] = {}
        self.declared: dict[str, list[int]] = {}
        for cell in cells:
            self.add(cell)

    def add(self, source: str, *, given: bool = False, finished: bool = True) -> None:
        """Add the next cell. A cell that does not parse counts as empty, because none of it ran.

        Args:
            given: whether it came with the lab, so that it is trusted.
            finished: whether it ran to its end; if not, any of its statements may not have run.
        """
        cell = (_read if len(source) > LONG else _read_again)(self._automatic(source))
        for place, unit in enumerate(cell.units, len(self.units)):
            self.units.append((unit, unit.certain and finished))
            self.block_of.append((len(self.cells), unit.block))
            for name in unit.binds:
                self.bindings.setdefault(name, []).append(place)
            for name in unit.declared:
                self.declared.setdefault(name, []).append(place)
        self.cells.append((cell, given, finished))

    def behind(self, name: str) -> str:
        """Return the last definition of a name, and of every name that it uses, each once.

        A statement that cannot be turned into text is left out.
        """
        return "\n\n".join(self._definitions(name, range(len(self.units))).values())

    def lines_behind(self, name: str) -> int:
        """Return how many lines of the learner's code a name stands for, with all that it uses.

        A statement counts as one line, whatever it is broken into. Blank lines, comments,
        docstrings, imports, and cells that came with the lab count nothing.
        """
        labs = {number for number, (_, given, _) in enumerate(self.cells) if given}
        own = [place for place, (cell, _) in enumerate(self.block_of) if cell not in labs]
        return sum(map(_lines, self._definitions(name, own)))

    def _definitions(self, name: str, among: Iterable[int]) -> dict[ast.stmt, str]:
        """Return the last definition of a name among some units, and of every name that it uses.

        Each has its text, which is empty if there is none that can be read.
        """
        chosen, waiting, seen = set(among), [name], set[str]()
        found: dict[ast.stmt, str] = {}
        while waiting:
            if (read := waiting.pop()) in seen:
                continue
            seen.add(read)
            places = [place for place in self.bindings.get(read, ()) if place in chosen]
            if places and (statement := self.units[places[-1]][0].node) not in found:
                found[statement] = ""
                with contextlib.suppress(*UNREADABLE):
                    text = ast.unparse(statement)
                    waiting += names_read_by(text)
                    found[statement] = text
        return found

    def _automatic(self, source: str) -> str:
        """Add the "%" that IPython implies: ``run other.py`` becomes ``%run other.py``."""
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


def _lines(statement: ast.stmt) -> int:
    """Return how many lines a statement takes, without imports and docstrings."""
    count = 0
    for node in ast.walk(statement):
        text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        free = isinstance(node, (ast.Import, ast.ImportFrom)) or text
        if isinstance(node, (ast.stmt, ast.excepthandler, ast.match_case)) and not free:
            count += 1 + len(getattr(node, "decorator_list", ()))
        # `else:` and `finally:` are lines; an `elif` is a statement of its own
        for branch in ("orelse", "finalbody"):
            body = getattr(node, branch, None)
            if isinstance(body, list) and body:
                count += not (isinstance(node, ast.If) and isinstance(body[0], ast.If))
    return count


def _read(source: str) -> CodeCell:
    """Parse a cell."""
    try:
        tree = ast.parse(source)
    except (RecursionError, MemoryError):
        return CodeCell(unread=True)
    except (SyntaxError, ValueError):
        tree = None
    try:
        magics: list[str] = []
        body = tree.body if tree is not None else _of_ipython(source, magics, 0)
        return CodeCell(tuple(_units(body)), tuple(magics))
    except (RecursionError, MemoryError):
        return CodeCell(unread=True)
    except Exception:  # IPython could not parse it either, so nothing ran
        return CodeCell()


# Cached, because cells that come with a lab are the same for a whole class.
_read_again = lru_cache(maxsize=256)(_read)


def _of_ipython(source: str, magics: list[str], depth: int) -> list[ast.stmt]:
    """Return the statements of a cell that is not plain Python, as IPython transforms it.

    Args:
        magics: gets the magics that may run anything.
        depth: the number of magics around ``source``.
    """
    tree = ast.parse(TransformerManager().transform_cell(source))
    return [new for old in tree.body for new in _without_magic(old, magics, depth)]


def _without_magic(statement: ast.stmt, magics: list[str], depth: int) -> list[ast.stmt]:
    """Return a statement with each magic replaced by the code that it runs."""
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
        call.func = ast.copy_location(ast.Name("str", ast.Load()), call.func)  # it returns text
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


def _units(body: list[ast.stmt], certain: bool = True, block: int = 0) -> Iterator[Unit]:
    """Yield the units of statements, and those inside their ``if``, ``for``, ``with``, ``try``."""
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
    """Yield the bodies of a compound statement, each with whether it always runs."""
    if isinstance(statement, (ast.With, ast.AsyncWith)):
        yield statement.body, False  # a context manager may end its block early without an error
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
    """Return the parts of a compound statement that are outside of its bodies."""
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
    """Return the names that code binds in its own scope, not in functions and classes inside."""
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
    """Return the global names that functions inside of a statement declare and may bind."""
    found = (node.names for node in ast.walk(statement) if isinstance(node, ast.Global))
    return frozenset(name for names in found for name in names)


def names_read_by(code: str) -> list[str]:
    """Return the global names that code reads, without the local names of functions.

    Raises:
        SyntaxError: if the code does not parse.
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
    """Return the names of the files and folders in a folder that could be imported."""
    try:
        found = list(folder.iterdir())
    except OSError:
        return []
    return [p.name for p in found if p.suffix in (".py", ".pyc", ".so", ".zip") or p.is_dir()]


def is_builtin(name: str) -> bool:
    """Return whether a name is built into Python or IPython."""
    return hasattr(builtins, name) or name == "get_ipython"
