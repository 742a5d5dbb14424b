"""Put a lab's markers around the solution in a cell: `### BEGIN SOLUTION`, `### END SOLUTION`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from hood.lab_words import BEGIN_SOLUTION, END_SOLUTION

MARK = re.compile(r"^(\s*)\S.*?\b(BEGIN|END) SOLUTION\b.*$", re.MULTILINE)
# Otter's forms, in the order in which they are tried
IGNORED = re.compile(r"#+ *IGNORE *(#+ *)?$", re.IGNORECASE)
HEADING = re.compile(r"^#+ *solution *#* *$", re.IGNORECASE)
BEGIN_PROMPT = re.compile(r"^(\"\"\"|''') *# *BEGIN PROMPT")
END_PROMPT = re.compile(r"^(\"\"\"|''') *;? *# *END PROMPT")
ONE_LINE = re.compile(r"\s*# *(SOLUTION NO PROMPT|SOLUTION|SEED) *$")
FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)


def parsed(source: str) -> ast.Module | None:
    """Return the tree of Python code; None for anything else.

    Raises RecursionError or MemoryError for code that is nested too deeply.
    """
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError):
        return None


def exact_marks(source: str) -> str:
    """Return a cell of nbgrader with exact markers, because nbgrader also accepts inexact ones."""
    return MARK.sub(
        lambda found: found[1] + (BEGIN_SOLUTION if found[2] == "BEGIN" else END_SOLUTION), source
    )


def mark_all(source: str) -> str:
    """Return a cell that has no markers, with markers around the whole answer.

    The answer is the body of each function and method, below its docstring. If the cell has no
    function, the answer is the whole cell.
    """
    tree = parsed(source)
    functions = [*_functions(tree)] if tree else []
    if not functions:
        return f"{BEGIN_SOLUTION}\n{source.strip()}\n{END_SOLUTION}"
    lines = source.split("\n")
    for function in reversed(functions):
        body = function.body[1:] if ast.get_docstring(function) is not None else function.body
        if not body:
            continue
        first, last = _first_line(body[0]), body[-1].end_lineno or body[-1].lineno
        above = lines[first - 1][: body[0].col_offset]
        indent = " " * (function.col_offset + 4)
        if above.strip():  # `def f(x): return x`
            rest = lines[first - 1][len(above) :]
            lines[first - 1 : first] = [above.rstrip(), indent + rest]
            first, last = first + 1, last + 1
        else:
            indent = above
        lines.insert(last, indent + END_SOLUTION)
        lines.insert(first - 1, indent + BEGIN_SOLUTION)
    return "\n".join(lines).strip("\n")


def _functions(node: ast.Module | ast.ClassDef) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for one in node.body:
        if isinstance(one, FUNCTION):
            yield one
        elif isinstance(one, ast.ClassDef):
            yield from _functions(one)


def _first_line(statement: ast.stmt) -> int:
    decorators = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(one.lineno for one in decorators)])


def of_otter(source: str) -> str:
    """Return a solution cell of Otter Assign with this project's markers.

    A prompt's lines become comments, because they would otherwise run after the solution. Lines
    that Otter ignores are left out. If a cell has no markers of Otter, :func:`mark_all` adds
    markers.
    """
    kept: list[str] = []
    region: list[str] = []  # lines of the solution that are not written yet
    inside = ""  # the block whose end was not found yet
    marked = False

    def close() -> None:
        if any(line.strip() for line in region):
            blank = next(n for n, line in enumerate(reversed(region)) if line.strip())
            hidden, below = region[: len(region) - blank], region[len(region) - blank :]
            indent = _indent(hidden[0])
            kept.extend([indent + BEGIN_SOLUTION, *hidden, indent + END_SOLUTION, *below])
        region.clear()

    for line in source.split("\n"):
        bare = line.strip()
        words = re.sub(r"^#+ *", "", bare) if bare.startswith("#") else ""
        if inside == "IGNORE" or IGNORED.search(bare) or words == "BEGIN IGNORE":
            inside = (
                "" if words == "END IGNORE" else "IGNORE" if words == "BEGIN IGNORE" else inside
            )
        elif inside == "PROMPT" or BEGIN_PROMPT.match(bare):
            if END_PROMPT.match(bare):
                inside = ""
            elif inside == "PROMPT":
                close()
                kept.append(line if not bare or bare.startswith("#") else _comment(line))
            inside, marked = "PROMPT" if BEGIN_PROMPT.match(bare) else inside, True
        elif words.startswith("BEGIN SOLUTION"):
            inside, marked = "SOLUTION", True
        elif words == "END SOLUTION":
            inside = ""
        elif HEADING.match(bare):
            continue
        elif inside == "SOLUTION" or ONE_LINE.search(line):
            marked = True
            if region and bare and len(_indent(line)) < len(_indent(region[0])):
                close()
            if bare or region:
                region.append(ONE_LINE.sub("", line))
        elif region and not bare:
            region.append(line)
        else:
            close()
            kept.append(line)
    close()
    return "\n".join(kept).strip("\n") if marked else mark_all("\n".join(kept))


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _comment(line: str) -> str:
    return f"{_indent(line)}# {line.strip()}"
