"""Do a lab, its checks and its lesson agree? One test a check, the same points, a place to read."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from typing import Protocol

from grader.build.problems import Problem
from grader.build.rules import at, is_points
from grader.build.text import Text


class CheckLike(Protocol):
    """What the build needs to know of a check."""

    @property
    def name(self) -> str: ...

    @property
    def points(self) -> float: ...

    @property
    def reads(self) -> str: ...


def check_problems(
    lab: Text,
    lesson: Text | None,
    checks: Mapping[str, CheckLike],
    code: Mapping[str, str],
) -> Iterator[Problem]:
    """Checks and test cells belong together one to one, agree on points, and know where to read.

    code: the texts of the phase's module `checks` by path, its main file first; a check's problems
        are reported where it is made.
    """
    main = next(iter(code), "checks")
    tests = {cell.header["test"]: cell for cell in lab.cells if "test" in cell.header}
    readable = headings(lesson) if lesson else None
    for name, cell in tests.items():
        if name not in checks:
            yield at(lab, cell, f"test {name!r} has no check in {main}")
        elif is_points(cell.header.get("points")) and cell.header["points"] != checks[name].points:
            said, meant = cell.header["points"], checks[name].points
            yield at(
                lab, cell, f"test {name!r} says points={said}, its check's parts give {meant:g}"
            )
    lines = {path: check_lines(text) for path, text in code.items()}
    places = {name: (path, line) for path in lines for name, line in lines[path].items()}
    for name, check in checks.items():
        where = places.get(name, (main, 1))
        if name not in tests:
            yield Problem(*where, f"no cell of {lab.path} uses check {name!r}")
        if lesson and readable is not None and check.reads not in readable:
            message = f"check {name!r} reads {check.reads!r}, which is no heading of {lesson.path}"
            yield Problem(*where, message)


def headings(text: Text) -> set[str]:
    """The headings of a lesson's markdown cells, without their # marks."""
    found = set()
    for cell in text.cells:
        if cell.kind != "markdown":
            continue
        prose = re.sub(r"^```.*?^```", "", cell.source, flags=re.DOTALL | re.MULTILINE)
        found |= {match[1] for match in re.finditer(r"^#{1,6} +(.+?)[ #]*$", prose, re.MULTILINE)}
    return found


def check_lines(code: str) -> dict[str, int]:
    """The line of each call `Check("name", ...)`."""
    lines = {}
    for node in ast.walk(ast.parse(code)):
        match node:
            case ast.Call(ast.Name("Check"), [ast.Constant(str(name)), *_]):
                lines[name] = node.lineno
    return lines
