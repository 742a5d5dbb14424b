"""Find a learner's additions to one of the lab's code cells, and the names that a cell defines.

Cells are compared statement by statement, in linear time; the layout does not count. In an import,
each imported name is compared separately. Lines for IPython are statements too. Code that the
grader's Python can't parse is compared line by line.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from hood.judge.source.cell_names import PYTHON_MAGICS, bound_in

# A name that a cell defines, for code that can't be parsed.
DEFINES = re.compile(
    r"^(?:[ \t]*(?:async[ \t]+)?(?:def|class)[ \t]+(\w+)|(\w+)[ \t]*(?::[^=\n]+)?=(?!=))",
    re.MULTILINE,
)
IMPORTED = re.compile(r"^[ \t]*(?:from[ \t]+[\w.]+[ \t]+)?import[ \t]+([^\n;]+)", re.MULTILINE)
# A line for IPython: a magic, a shell command, a question such as `x?`, or an assignment of the
# result of a magic or a command.
OF_IPYTHON = re.compile(r"(\s*+)(?:([\w., \t]++=)\s*+[%!]|[%!?]|[\w.]++\?{1,2}\s*$)")
CELL_MAGIC = re.compile(r"\s*%%(\w*)")
LINES = re.compile(r"\r\n|\r|\n")  # as Python counts lines
IMPORTS = (ast.Import, ast.ImportFrom)
# The parser's errors for text that isn't Python, or that is nested too deeply.
UNPARSED = (SyntaxError, ValueError, RecursionError, MemoryError)


class Additions(NamedTuple):
    """Additions to one of the lab's cells."""

    above: str  # before the lab's first statement
    below: str  # anywhere after the lab's first statement
    intact: bool  # whether everything else is unchanged


class _Piece(NamedTuple):
    """Whole lines of a cell: a comment, or statements (one import for each imported name)."""

    text: str
    statements: list[ast.stmt]


def names_in(source: str) -> set[str]:
    """Return the names that a cell binds at its outermost level, also inside ``if`` or ``for``."""
    try:
        return bound_in(_parsed(LINES.split(source)))
    except UNPARSED:
        if CELL_MAGIC.match(source):  # such as %%bash and %%writefile
            return set()
        imported = re.findall(r"(\w+)[ \t]*(?:,|\)|$)", ",".join(IMPORTED.findall(source)))
        return {*imported, *(one for found in DEFINES.findall(source) for one in found if one)}


def additions(text: str, released: str) -> Additions:
    """Return the parts of a cell that the released cell does not have.

    A statement that binds a name of the lab's cell is not an addition: it changes the lab's code. A
    magic that runs the whole cell, such as ``%%time``, is not an addition either.
    """
    magic = CELL_MAGIC.match(text)
    timed = magic is not None and magic[1] in PYTHON_MAGICS
    text = text.partition("\n")[2] if timed else text
    try:
        return _by_statements(_pieces(text), _pieces(released), intact=not timed)
    except UNPARSED:
        theirs, ours = LINES.split(text), {line.strip() for line in LINES.split(released)}
        added = [line for line in theirs if line.strip() not in {*ours, ""}]
        return Additions("", "\n".join(added), ours <= {"", *(line.strip() for line in theirs)})


def _by_statements(theirs: list[_Piece], ours: list[_Piece], intact: bool) -> Additions:
    missing = Counter(key for piece in ours for key, _ in _keys(piece))
    names = bound_in(statement for piece in ours for statement in piece.statements)
    texts = {_bare(piece.text) for piece in ours}
    above, below = list[str](), list[str]()
    side = above
    for piece in theirs:
        added = list[ast.stmt | None]()
        imports = all(isinstance(one, IMPORTS) for one in piece.statements)
        for key, statement in _keys(piece):
            if missing[key] > 0:
                missing[key] -= 1
                side = below if statement else side
            elif key in missing and isinstance(statement, IMPORTS):
                continue  # the import occurs twice
            elif statement and not names.isdisjoint(_binds(statement)):
                intact = False
            else:
                added.append(statement)
        whole = len(added) == max(len(piece.statements), 1)
        side += [piece.text] if whole else [ast.unparse(one) for one in added if one]
        if not (added or imports or _bare(piece.text) in texts):
            intact = False  # a comment was added, or the layout changed
    return Additions("\n".join(above), "\n".join(below), intact and not +missing)


def _keys(piece: _Piece) -> Iterator[tuple[str, ast.stmt | None]]:
    """Yield each statement with its key for comparison; a comment yields its key and None."""
    if not piece.statements:
        yield piece.text.strip(), None
    for statement in piece.statements:
        yield ast.dump(statement), statement


def _bare(text: str) -> str:
    return "\n".join(line.rstrip() for line in LINES.split(text))


def _binds(statement: ast.stmt) -> set[str]:
    """Return the names that a statement binds, except the package of ``import a.b``."""
    if isinstance(statement, ast.Import) and "." in statement.names[0].name:
        return {alias.asname for alias in statement.names if alias.asname}
    return bound_in([statement])


def _pieces(source: str) -> list[_Piece]:
    lines = LINES.split(source)
    spans: list[tuple[int, int, list[ast.stmt]]] = []  # first line, line below the last, statements
    for statement in _parsed(lines):
        nodes = [statement, *getattr(statement, "decorator_list", ())]
        first, below = min(node.lineno for node in nodes) - 1, max(n.end_lineno for n in nodes)
        if spans and first < spans[-1][1]:  # on the same line as the statement before
            spans[-1][2].extend(_one_by_one(statement))
            spans[-1] = (spans[-1][0], below, spans[-1][2])
        else:
            spans.append((first, below, [*_one_by_one(statement)]))
    pieces, end = list[_Piece](), 0
    for first, below, statements in [*spans, (len(lines), len(lines), [])]:
        pieces += [_Piece(line, []) for line in lines[end:first] if line.strip()]
        if statements:
            pieces.append(_Piece("\n".join(lines[first:below]), statements))
        end = below
    return pieces


def _one_by_one(statement: ast.stmt) -> Iterator[ast.stmt]:
    if isinstance(statement, ast.Import):
        yield from (ast.Import([alias]) for alias in statement.names)
    elif isinstance(statement, ast.ImportFrom):
        for alias in statement.names:
            yield ast.ImportFrom(statement.module, [alias], statement.level)
    else:
        yield statement


def _parsed(lines: list[str]) -> list[ast.stmt]:
    """Return the statements of a cell; a line for IPython becomes a text. Raises ``UNPARSED``."""
    try:
        return ast.parse("\n".join(lines)).body
    except SyntaxError:
        magic = next((found for line in lines[:1] if (found := CELL_MAGIC.match(line))), None)
        if magic and magic[1] not in PYTHON_MAGICS:
            raise
        return ast.parse("\n".join([*map(_as_text, lines)])).body


def _as_text(line: str) -> str:
    found = OF_IPYTHON.match(line)
    return f"{found[1]}{found[2] or ''}{line.strip()!r}" if found else line
