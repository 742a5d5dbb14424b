"""The rules that a text has to follow. Each rule checks one thing and yields its problems.

`lab_problems` and `page_problems` apply all rules, so that everything is reported at once.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from grader import UserError
from grader.build import leaks
from grader.build.cells import (
    BEGIN_HIDDEN,
    BEGIN_SCHEME,
    BEGIN_SOLUTION,
    END_SOLUTION,
    REGIONS,
    nbgrader_metadata,
    outside,
    regions,
    regions_of,
)
from grader.build.figures import silent_images_in_markdown
from grader.build.problems import Problem
from grader.build.syntax import parse_block
from grader.build.text import Text, TextCell, at
from grader.inside.preload import ON_DEMAND
from grader.metadata import KEY
from grader.sandbox import Limits

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,49}")
LAB_SETTINGS = {"title": str, "points": (int, float), "cell_seconds": (int, float)}
# `compile`: true if exercises compile C++, so that grading needs prepared headers; "trace" if they
# only trace (Dynamo, AOTAutograd, fake tensors), which needs no compiler. `gpu`: grading needs a
# GPU. `limits`: see grader/sandbox/limits.py. `examples`: false if learners get no failing
# examples.
# `preload`: groups of modules that its kernels start with; see grader/inside/preload.py.
OPTIONAL_SETTINGS = {
    "compile": (bool, str),
    "gpu": bool,
    "limits": dict,
    "examples": bool,
    "preload": list,
}
PAGE_SETTINGS = {"title": str}
LIVE_MARKUP = re.compile(r"<\s*(script|iframe|object|embed)\b|\bjavascript:", re.IGNORECASE)


def lab_problems(text: Text) -> Iterator[Problem]:
    """Yield everything that is wrong with a lab's text by itself."""
    yield from text.problems
    yield from settings_problems(text, LAB_SETTINGS, OPTIONAL_SETTINGS)
    yield from limit_problems(text)
    for cell in text.cells:
        yield from plain_cell_problems(text, cell)
        yield from kind_problems(text, cell)
        yield from name_problems(text, cell)
        yield from points_problems(text, cell)
        yield from lab_code_problems(text, cell)
        yield from delimiter_problems(text, cell)
        yield from stub_problems(text, cell)
        yield from hidden_problems(text, cell)
        yield from scheme_problems(text, cell)
        yield from live_markup_problems(text, cell)
    yield from duplicate_problems(text)
    yield from total_problems(text)
    yield from leaks.leak_problems(text)


def page_problems(text: Text) -> Iterator[Problem]:
    """Yield everything that is wrong with the text of a lesson or of the start page by itself."""
    yield from text.problems
    yield from settings_problems(text, PAGE_SETTINGS)
    for cell in text.cells:
        yield from plain_cell_problems(text, cell)
        for key in sorted(set(cell.header) - {"tags"}):
            yield at(text, cell, f"{key}= belongs in a lab, not in a lesson")


def settings_problems(
    text: Text, needed: Mapping[str, Any], optional: Mapping[str, Any] = MappingProxyType({})
) -> Iterator[Problem]:
    """Require that `open_the_hood` in the header has exactly known settings of the right types."""
    if not text.course:
        return
    for key, value in text.course.items():
        if key not in needed and key not in optional:
            yield Problem(text.path, 1, f"open_the_hood: unknown setting {key!r}")
        elif key in optional and not isinstance(value, optional[key]):
            kinds = optional[key] if isinstance(optional[key], tuple) else (optional[key],)
            kind = " or ".join(one.__name__ for one in kinds)
            yield Problem(text.path, 1, f"open_the_hood: {key} must be a {kind}, got {value!r}")
        elif key == "compile" and value not in (True, False, "trace"):
            yield Problem(text.path, 1, f'open_the_hood: compile is true or "trace", got {value!r}')
        elif key == "preload" and not set(map(str, value)) <= set(ON_DEMAND):
            known = ", ".join(ON_DEMAND)
            yield Problem(text.path, 1, f"open_the_hood: preload is of {known}, got {value!r}")
    for key, kind in needed.items():
        value = text.course.get(key)
        if not isinstance(value, kind) or isinstance(value, bool) or value in ("", 0):
            yield Problem(text.path, 1, f"open_the_hood: needs {key}, got {value!r}")


def limit_problems(text: Text) -> Iterator[Problem]:
    """Require that the sandbox knows each limit that the lab sets, and accepts its value."""
    try:
        Limits.of({KEY: text.course})
    except UserError as error:
        yield Problem(text.path, 1, str(error))


def plain_cell_problems(text: Text, cell: TextCell) -> Iterator[Problem]:
    """Require that no cell is raw or empty, and that every image in prose has alternative text."""
    if cell.kind not in ("code", "markdown"):
        yield at(text, cell, f"a {cell.kind} cell: use markdown or code")
    if not cell.source.strip():
        yield at(text, cell, "an empty cell: fill it or delete it")
    if cell.kind == "markdown":
        for line, element in silent_images_in_markdown(cell.source):
            yield at(text, cell, f"{element} without alternative text", line - 1)


def kind_problems(text: Text, cell: TextCell) -> Iterator[Problem]:
    """Require that a cell has at most one role, and the cell type that the role needs.

    Roles are given, solution, test and task. Solutions and tests are code, tasks are markdown.
    """
    roles = [key for key in ("given", "solution", "test", "task") if key in cell.header]
    if len(roles) > 1:
        yield at(text, cell, f"expected at most one role in a cell, got {' and '.join(roles)}")
    for role, kind in (("solution", "code"), ("test", "code"), ("task", "markdown")):
        if role in roles and cell.kind != kind:
            yield at(text, cell, f"a {role} cell must be {kind}, got {cell.kind}")


def name_problems(text: Text, cell: TextCell) -> Iterator[Problem]:
    """Require that names are identifiers of at most 50 characters.

    They become nbgrader ids, check names and cell ids.
    """
    if cell.name is not None and not NAME.fullmatch(str(cell.name)):
        yield at(text, cell, f"{cell.name!r} is not a name: use letters, digits and _, at most 50")


def points_problems(text: Text, cell: TextCell) -> Iterator[Problem]:
    """Require that tests and tasks have points above zero, and that other cells have none."""
    graded = "test" in cell.header or "task" in cell.header
    points = cell.header.get("points")
    if graded and points is None:
        yield at(text, cell, f"{cell.name!r} has no points: write points=...")
    elif graded and not is_points(points):
        yield at(text, cell, f"points of {cell.name!r} must be a number above 0, got {points!r}")
    elif points is not None and not graded:
        yield at(text, cell, "points belong to a test or a task")


def is_points(value: object) -> bool:
    """Return whether the value can be a cell's points."""
    return isinstance(value, int | float) and not isinstance(value, bool) and value > 0


def lab_code_problems(text: Text, cell: TextCell) -> Iterator[Problem]:
    """Require that a lab's code is plain Python without magics and shell lines: checks parse it."""
    if cell.kind != "code":
        return
    try:
        ast.parse(cell.source)
    except SyntaxError as error:
        index = (error.lineno or 1) - 1
        yield at(
            text, cell, f"not plain Python: {error.msg} (magics and ! don't belong in a lab)", index
        )


def delimiter_problems(text: Text, cell: TextCell) -> Iterator[Problem]:
    """Require that delimiters are balanced, alone on their lines, and in the right kind of cell."""
    for role, (begin, end) in REGIONS.items():
        try:
            found = regions(cell.source, begin, end)
        except ValueError as error:
            yield at(text, cell, str(error))
            continue
        if found and role not in cell.header:
            yield at(text, cell, f"{begin!r} belongs in a {role} cell", found[0][0])


def stub_problems(text: Text, cell: TextCell) -> Iterator[Problem]:
    """Require that a solution cell has a region with statements that do something."""
    if "solution" not in cell.header:
        return
    spans = regions_of(cell, "solution")
    if not spans and "BEGIN SOLUTION" not in cell.source:
        yield at(text, cell, f"a stub with no solution: no {BEGIN_SOLUTION!r} ... {END_SOLUTION!r}")
    for begin, end in spans:
        lines = cell.source.split("\n")[begin + 1 : end]
        try:
            statements = parse_block("\n".join(lines))
        except SyntaxError:
            yield at(text, cell, "the solution region doesn't hold whole statements", begin)
            continue
        if all(map(is_placeholder, statements)):
            yield at(text, cell, "a stub with no solution: the region does nothing", begin)


def is_placeholder(statement: ast.stmt) -> bool:
    """Return whether a statement is pass, `...`, a bare constant, or raise NotImplementedError."""
    if isinstance(statement, ast.Raise):
        return "NotImplementedError" in ast.unparse(statement)
    constant = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    return constant or isinstance(statement, ast.Pass)


def hidden_problems(text: Text, cell: TextCell) -> Iterator[Problem]:
    """Require check("its id") first in a test, and verify("its id", ...) hidden at its end."""
    if "test" not in cell.header:
        return
    name = cell.header["test"]
    spans = regions_of(cell, "test")
    if not spans:
        if "HIDDEN TESTS" not in cell.source:
            yield at(text, cell, f"test {name!r} has no hidden region: {BEGIN_HIDDEN!r} ...")
        return
    if len(spans) > 1:
        yield at(text, cell, f"test {name!r} has {len(spans)} hidden regions, one is enough")
    lines = cell.source.split("\n")
    first = next((i for i, line in enumerate(lines) if not line.startswith("#")), 0)
    if called(lines[first : first + 1], "check") != name:
        yield at(text, cell, f'a graded cell begins with check("{name}")', first)
    for begin, end in spans:
        said = called(lines[begin + 1 : end], "verify")
        if said is None:
            yield at(text, cell, f'the hidden region must hold only: verify("{name}", ...)', begin)
        elif said != name:
            yield at(text, cell, f"verify({said!r}, ...) in the test of {name!r}", begin + 1)
    after = [
        index
        for index, line in outside(cell.source, spans)
        if index > spans[-1][1] and line.strip()
    ]
    if after:
        yield at(text, cell, "code after the hidden region: verify(...) must come last", after[0])


def called(lines: list[str], function: str) -> str | None:
    """Return the name in `function("name", ...)` if the lines hold nothing else, otherwise None.

    `verify` also needs the learner's function, and `check` takes the name alone.
    """
    try:
        (line,) = lines
        (statement,) = ast.parse(line).body
    except (SyntaxError, ValueError):
        return None
    match statement:
        case ast.Expr(ast.Call(ast.Name(said), [ast.Constant(str(name)), *rest], named)):
            right = said == function and bool(rest or named) == (function == "verify")
            return name if right else None
    return None


def scheme_problems(text: Text, cell: TextCell) -> Iterator[Problem]:
    """Require that a task has a question and one mark scheme that is not empty."""
    if "task" not in cell.header:
        return
    spans = regions_of(cell, "task")
    if len(spans) != 1:
        if "MARK SCHEME" not in cell.source or spans:
            yield at(text, cell, f"task {cell.name!r} needs one mark scheme: {BEGIN_SCHEME!r} ...")
        return
    ((begin, end),) = spans
    if not "".join(cell.source.split("\n")[begin + 1 : end]).strip():
        yield at(text, cell, f"the mark scheme of {cell.name!r} is empty", begin)
    if not any(line.strip() for _, line in outside(cell.source, spans)):
        yield at(text, cell, f"task {cell.name!r} has no question outside the mark scheme")


def live_markup_problems(text: Text, cell: TextCell) -> Iterator[Problem]:
    """Require that a lab's prose has no scripts or frames."""
    if cell.kind != "markdown":
        return
    for index, line in enumerate(cell.source.split("\n")):
        if match := LIVE_MARKUP.search(line):
            yield at(text, cell, f"live markup {match[0]!r} in a lab", index)


def duplicate_problems(text: Text) -> Iterator[Problem]:
    """Require that every nbgrader id is used once; solution="x" has the id x_solution."""
    first: dict[str, int] = {}
    for cell in text.cells:
        nbgrader = nbgrader_metadata(cell.header)
        if nbgrader is None:
            continue
        name = nbgrader["grade_id"]
        if name in first:
            yield at(text, cell, f"duplicate id {name!r}, first in line {first[name]}")
        first.setdefault(name, cell.line)


def total_problems(text: Text) -> Iterator[Problem]:
    """Require that the header's points are the sum of the cells' points."""
    total = sum(
        cell.header["points"] for cell in text.cells if is_points(cell.header.get("points"))
    )
    stated = text.course.get("points")
    if isinstance(stated, int | float) and abs(stated - total) > 1e-9:
        line = points_line(text)
        yield Problem(
            text.path, line, f"the header says points: {stated}, the cells add up to {total}"
        )


def points_line(text: Text) -> int:
    """Return the line of the header with the points, or 1."""
    lines = text.prefix.split("\n")
    return next((number for number, line in enumerate(lines, 1) if "points:" in line), 1)
