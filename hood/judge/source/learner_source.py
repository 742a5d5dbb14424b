"""Follow names through the code cells that ran, from an answer to everything that it uses.

The kernel reports which names got a new value while a statement ran. If the statement's text does
not bind such a name (``exec``, ``globals()``, ``%run``), the text does not show what the name
stands for. Then :attr:`~hood.judge.source.cell_names.Statement.unseen` is set.
"""

from __future__ import annotations

import ast
import builtins
import copy
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping

from IPython.core.inputtransformer2 import leading_empty_lines

from hood.judge.connection.originals import TOO_MANY
from hood.judge.source.cell_names import CodeCell, Definition, Statement, Use, read_cell, words

# Builtins of IPython, and a name of every module.
OF_IPYTHON = words("get_ipython display __builtins__")
NOWHERE = 1 << 62  # a position after all statements
# Limits on the code that one name depends on. A person's code stays far below them.
MOST = 20_000  # statements
MOST_CHARACTERS = 500_000  # of all paths that names may stand for
MOST_STEPS = 300_000  # steps from a use to a path
MOST_NAMES = 50_000  # names that the kernel reports as bound in one notebook
ANY_LINE = 0  # the line that bound a name, if the kernel does not report the line


class LearnerSource:
    """The code cells that ran, in order. ``cells`` are sources for :meth:`add`."""

    def __init__(self, cells: Iterable[str] = ()):
        # Why names can't be followed; empty if they can be.
        self.lost = ""
        self._statements: list[tuple[Statement, bool, bool]] = []
        self._bound: dict[str, list[int]] = {}
        self._declared: set[str] = set()
        self._told = 0
        self._known: dict[tuple[str, int], frozenset[str]] = {}
        self._characters, self._steps = 0, 0
        for cell in cells:
            self.add(cell)

    def add(
        self,
        source: str,
        *,
        given: bool = False,
        finished: bool = True,
        bound: Mapping[int, Collection[str]] | None = None,
    ) -> None:
        """Add the next cell. A cell that does not parse counts as empty, because it did not run.

        ``given`` says whether the cell came with the lab and so is trusted. ``finished`` says
        whether the cell ran to its end. If not, some statements of the cell may not have
        run. ``bound`` maps each line of the cell, or ANY_LINE, to the names that got a new value
        while that line ran.
        """
        # IPython removes empty lines at the top, so the kernel counts lines after them.
        source = "".join(leading_empty_lines(source.splitlines(keepends=True)))
        cell = read_cell(source)
        if cell.unread and finished and not given:
            self.lost = "a cell that is nested too deeply to be read"
        for statement in cell.statements:
            self._add(statement, given, finished)
        for line, names in (bound or {}).items():
            self._told += len(names)
            if self._told > MOST_NAMES or TOO_MANY in names:
                self.lost = "cells that bind too many names"
                break
            self._add_bound(cell, source, given, line, names)
        self._known.clear()

    def _add(self, statement: Statement, given: bool, finished: bool) -> None:
        for name in statement.binds | statement.may_bind:
            self._bound.setdefault(name, []).append(len(self._statements))
        self._declared |= statement.declares
        self._statements.append((statement, given, finished))

    def _add_bound(
        self, cell: CodeCell, source: str, given: bool, line: int, names: Collection[str]
    ) -> None:
        """Add a statement for names that a line bound, if the line's text does not show them."""
        here = [one for one in cell.statements if line == ANY_LINE or line in one.lines]
        shown = self._declared.union(*(one.binds | one.may_bind for one in here))
        if not (hidden := frozenset(names) - shown):
            return
        for star in here:
            if "*" in star.binds:
                module = star.stands_for["*"][1]
                stands_for = {name: ("", f"{module}.{name}") for name in hidden}
                self._add(Statement(star.node, binds=hidden, stands_for=stands_for), given, True)
                return
        node = here[0].node if here else ast.Pass(lineno=max(line, 1), col_offset=0)
        text = next(iter(source.splitlines()[max(line - 1, 0) :]), "").strip()
        self._add(Statement(node, text=text, binds=hidden, unseen=True), False, True)

    def statements(self) -> Iterator[tuple[Statement, bool, int]]:
        """Yield for each statement: the statement, whether it came with the lab, and ``before``.

        ``before`` is for :meth:`paths`. A function sees the names that are bound at the end; a
        statement at a cell's outermost level sees the names that were bound when it ran.
        """
        for place, (statement, given, _) in enumerate(self._statements):
            yield statement, given, _before(statement, place, NOWHERE)

    def behind(self, name: str, also: Iterable[int] = ()) -> list[tuple[Statement, bool, int]]:
        """Return the statements that define a name, and all statements that these depend on.

        The result has the form of :meth:`statements`. A function that was called when a cell ran
        sees the names that were bound then. ``also`` are numbers of further statements, which also
        count as used. Raises RecursionError if there are too many statements.
        """
        found: dict[tuple[int, int], None] = {}
        waiting, asked = [(name, NOWHERE)], set[tuple[str, int]]()
        self._characters, self._steps = 0, 0

        def take(place: int, before: int) -> None:
            statement = self._statements[place][0]
            before = _before(statement, place, before)
            if len(found) > MOST:
                raise RecursionError
            if (place, before) not in found:
                found[place, before] = None
                self._step(len(statement.uses))
                wanted = dict.fromkeys((use.root, before) for use in statement.uses if use.root)
                waiting.extend(one for one in wanted if one not in asked)

        while waiting:
            asked.add(reading := waiting.pop())
            for place in self._definitions(*reading):
                take(place, reading[1])
            if not waiting and also:
                also, more = (), also
                for place in more:
                    take(place, NOWHERE)
        return [(*self._statements[place][:2], before) for place, before in found]

    def paths(self, use: Use, before: int = NOWHERE) -> frozenset[str]:
        """Return what a dotted name may stand for: paths such as ``torch.softmax``.

        A path that begins with a dot belongs to a value, and an empty path is a value itself.
        Raises RecursionError if there are too many paths.
        """
        if not use.root:
            return frozenset({use.rest})
        bases = self._stands_for(use.root, before) or {""}
        self._step(len(bases))
        return frozenset(base + use.rest for base in bases)

    def _step(self, count: int) -> None:
        self._steps += count
        if self._steps > MOST_STEPS:
            raise RecursionError

    def reads(self, name: str) -> set[str]:
        """Return the global names that the code of a name reads."""
        return {use.root for one, _, _ in self.behind(name) for use in one.uses} - {""}

    def lines_behind(self, name: str) -> int:
        """Return how many lines of the learner's code define a name and everything that it uses.

        Each statement counts as one line, even if the learner spread it over several lines. Blank
        lines, comments, docstrings, imports, and cells that came with the lab don't count.
        """
        own = {one.node for one, given, _ in self.behind(name) if not given}
        return sum(map(_lines, own))

    def _definitions(self, name: str, before: int) -> Iterator[int]:
        """Yield the statements that bind a name, the last one first, until one certainly ran."""
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
                modules = self._stands_for("*", before)
                found |= {f"{module}.{name}" for module in modules if _may_have(module, name)}
                if hasattr(builtins, name) or name in OF_IPYTHON:
                    found.add(f"builtins.{name}")
            self._characters += sum(map(len, found))
            if self._characters > MOST_CHARACTERS:
                raise RecursionError
            self._known[name, before] = frozenset(found)
        return self._known[name, before]


def _may_have(module: str, name: str) -> bool:
    """Return whether ``import *`` may bind a name that no other statement certainly binds.

    Few modules define the name of a builtin. So a module that is not loaded here is assumed to
    define no such name. The kernel reports which names the import really bound.
    """
    loaded = sys.modules.get(module)
    return name in vars(loaded) if loaded else not hasattr(builtins, name)


def _before(statement: Statement, place: int, asked: int) -> int:
    return asked if isinstance(statement.node, Definition) else place


class _Bare(ast.NodeTransformer):
    """Remove from code its imports, docstrings, and other constants that are statements."""

    def visit_Import(self, node: ast.AST) -> None: ...

    visit_ImportFrom = visit_Import

    def visit_Expr(self, node: ast.Expr) -> ast.Expr | None:
        return None if isinstance(node.value, ast.Constant) else node


def _lines(statement: ast.stmt) -> int:
    bare = _Bare().visit(copy.deepcopy(statement))
    return len([line for line in ast.unparse(bare).splitlines() if line]) if bare else 0
