"""Rules on how a lab, its checks and its lesson fit together."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import TYPE_CHECKING

from grader.build.problems import Problem
from grader.build.rules import is_points
from grader.build.text import Text, TextCell, at
from grader.phase_paths import anchor

if TYPE_CHECKING:
    from utils.checks.exercise import Check


def check_problems(
    lab: Text,
    lesson: Text | None,
    checks: Mapping[str, Check],
    code: Mapping[str, str],
) -> Iterator[Problem]:
    """Yield a problem where test cells, checks and headings of the lesson do not agree.

    Every check needs exactly one test cell with the same points, and a heading of the lesson, to
    which the exercise's question links.

    Args:
        code: the source of the phase's module `checks` by path, its main file first. A problem of a
            check is reported at the line where the check is created.
    """
    main = next(iter(code), "checks")
    tests = {cell.header["test"]: cell for cell in lab.cells if "test" in cell.header}
    readable = headings(lesson) if lesson else None
    for name, cell in tests.items():
        if name not in checks:
            yield at(lab, cell, f"test {name!r} has no check in {main}")
        elif is_points(cell.header.get("points")) and cell.header["points"] != checks[name].points:
            said, meant = cell.header["points"], checks[name].points
            yield at(lab, cell, f"test {name!r}: got points={said}, but its check gives {meant:g}")
    for name, question in questions_of(lab):
        if lesson is None or name not in checks or checks[name].reads not in (readable or ()):
            continue
        link = section_link(lesson, checks[name].reads)
        if link not in question.source:
            yield at(lab, question, f"the question of {name!r} needs the link {link}")
    lines = {path: check_lines(text) for path, text in code.items()}
    places = {name: (path, line) for path in lines for name, line in lines[path].items()}
    for name, check in checks.items():
        where = places.get(name, (main, 1))
        if name not in tests:
            yield Problem(*where, f"no cell of {lab.path} uses check {name!r}")
        if lesson and readable is not None and check.reads not in readable:
            message = f"check {name!r} reads {check.reads!r}, which is no heading of {lesson.path}"
            yield Problem(*where, message)


def name_problems(lab: Text, elsewhere: Mapping[str, str]) -> Iterator[Problem]:
    """Yield a problem for each exercise whose name another lab has: `check` finds it by its name.

    Args:
        elsewhere: the names of the other labs' exercises, with the name of the phase.
    """
    for cell in lab.cells:
        name = str(cell.header.get("test"))
        if name in elsewhere:
            yield at(lab, cell, f"{elsewhere[name]} has an exercise {name!r}, too: rename one")


def questions_of(lab: Text) -> Iterator[tuple[str, TextCell]]:
    """Yield the name of each test and the last markdown cell above it that begins with a heading.

    Of a test with no heading above it, that is the lab's first cell.
    """
    question = None
    for cell in lab.cells:
        if question is None or (cell.kind == "markdown" and cell.source.startswith("## ")):
            question = cell
        if "test" in cell.header:
            yield cell.header["test"], question


def section_link(lesson: Text, heading: str) -> str:
    """Return the Markdown link from a lab to a section of its lesson."""
    page = f"../../notebooks/{PurePath(lesson.path).parent.name}.ipynb"
    return f"[{heading}]({page}#{anchor(heading)})"


def headings(text: Text) -> set[str]:
    """Return the headings of a lesson's markdown cells, without their # marks."""
    found = set()
    for cell in text.cells:
        if cell.kind != "markdown":
            continue
        prose = re.sub(r"^```.*?^```", "", cell.source, flags=re.DOTALL | re.MULTILINE)
        found |= {match[1] for match in re.finditer(r"^#{1,6} +(.+?)[ #]*$", prose, re.MULTILINE)}
    return found


def check_lines(code: str) -> dict[str, int]:
    """Return the line of each call `Check("name", ...)`, by name."""
    lines = {}
    for node in ast.walk(ast.parse(code)):
        match node:
            case ast.Call(ast.Name("Check"), [ast.Constant(str(name)), *_]):
                lines[name] = node.lineno
    return lines
