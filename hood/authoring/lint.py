"""Rules for the text of a lesson or lab, and for all texts of a phase together.

`lab_problems`, `page_problems` and `check_problems` apply all rules, so that all problems are
reported at once. A rule for a cell yields messages, each with a line number in the cell's source
(counted from 0). If the number is None, the message is about the cell's header.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from hood.authoring import leaks
from hood.authoring.notebooks.notebook import nbgrader_metadata
from hood.authoring.notebooks.regions import (
    BEGIN_HIDDEN,
    BEGIN_SCHEME,
    BEGIN_SOLUTION,
    END_SCHEME,
    END_SOLUTION,
    REGIONS,
    outside,
    parse_block,
    regions,
    regions_of,
)
from hood.authoring.notebooks.text import HIDE_INPUT, ROLES, Problem, Text, TextCell, at, is_points
from hood.authoring.stated import WORD
from hood.grader.course_sandbox import of_course
from hood.grader.sandbox.limits import OF_LIMITS, OF_TIME, Expected, setting_faults
from hood.metadata import KEY
from hood.phase_paths import anchor
from hood.rubric import read_rubric

if TYPE_CHECKING:
    from hood.judge.checks.exercise import Check

Faults = Iterator[tuple[str, int | None]]

# The most characters of a line of visible code. With its default font, JupyterLab shows 107
# characters in a window of 1280 px with the left sidebar open. The limit is lower because some
# fonts are wider.
WIDEST = 100
MOST_WORDS = 900  # words of a lesson's prose from one heading to the next
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,49}")
TRUTH = (lambda value: isinstance(value, bool)), "true or false"
PAGE_SETTINGS: Expected = {
    # the title of the page
    "title": (lambda value: isinstance(value, str) and value != "", "a text")
}
NEEDED = ("title",)
# Settings that a lab may have, in addition to the settings of `preload_setting`.
LAB_SETTINGS: dict[str, tuple[Callable[[Any], bool], str]] = {
    **PAGE_SETTINGS,
    # the sum of the points of the lab's cells; the header may leave out this sum
    "points": (lambda value: is_points(value), "a number above 0"),
    **OF_TIME,
    # `true` if exercises compile C++. Grading then prepares torch's headers. `"trace"` if exercises
    # only trace (Dynamo, AOTAutograd, fake tensors), and so need no compiler
    "compile": (
        lambda value: value == "trace" or isinstance(value, bool),
        'true, false or "trace"',
    ),
    "examples": TRUTH,  # `false` if learners should get no failing examples
    # `true` if the processes of a sandbox connect to each other over TCP, as gloo's processes do
    "loopback": TRUTH,
}
IMAGE = re.compile(r"(?P<empty>!\[\s*\]\s*[(\[])|<(?P<tag>img|svg)\b[^>]*>(?!\s*<title)", re.I)
SPEAKS = re.compile(
    r"\b(?:alt|aria-label|aria-labelledby)\s*=\s*[\"']\s*[^\s\"']|aria-hidden=.true|=.presentation"
)
CODE = re.compile(r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)|(`+)[^`].*?\1", re.DOTALL)
HEADING = re.compile(r"^#{1,6} ", re.MULTILINE)
LIVE_MARKUP = re.compile(r"<\s*(script|iframe|object|embed)\b|\bjavascript:", re.IGNORECASE)


def lab_problems(text: Text) -> Iterator[Problem]:
    """Yield all problems of a lab's text, without a look at other files."""
    yield from text.problems
    yield from header_problems(text, LAB_SETTINGS | preload_setting(), NEEDED)
    limits = text.course.get("limits")
    for message in setting_faults(limits, OF_LIMITS) if isinstance(limits, Mapping) else ():
        yield Problem(text.path, 1, f"{KEY}.limits: {message}")
    first: dict[str, int] = {}
    for cell in text.cells:
        for rule in CELL_RULES:
            for message, index in rule(cell):
                yield at(text, cell, message, index)
        if nbgrader := nbgrader_metadata(cell.header):
            name = nbgrader["grade_id"]
            if name in first:
                yield at(text, cell, f"duplicate id {name!r}: line {first[name]} already has it")
            first.setdefault(name, cell.line)
    stated, total = text.course.get("points"), text.points
    if isinstance(stated, int | float) and abs(stated - total) > 1e-9:
        lines = enumerate(text.prefix.split("\n"), start=1)
        line = next((number for number, line in lines if "points:" in line), 1)
        message = (
            f"the header says `points: {stated}`, but the cells have {total:g} points together: "
            f"write `points: {total:g}`, or leave `points` out"
        )
        yield Problem(text.path, line, message)
    yield from leaks.leak_problems(text)


def page_problems(text: Text) -> Iterator[Problem]:
    """Yield all problems of the text of a lesson or of the start page."""
    yield from text.problems
    yield from header_problems(text, PAGE_SETTINGS, ["title"])
    yield from length_problems(text)
    for cell in text.cells:
        for rule in PAGE_RULES:
            for message, index in rule(cell):
                yield at(text, cell, message, index)
        for key in sorted(set(cell.header) - {"tags"}):
            yield at(text, cell, f"{key}= belongs in a lab, not in a lesson")


def length_problems(text: Text) -> Iterator[Problem]:
    """Refuse long sections: a heading is a place to stop, and to come back to."""
    sections: list[tuple[TextCell, int, int]] = []  # the heading's cell and line, and the words
    for cell in text.cells:
        if cell.kind != "markdown":
            continue
        starts = {match.start() for match in HEADING.finditer(without_code(cell.source))}
        for start, end in pairwise([*sorted({0, *starts}), len(cell.source)]):
            words = len(WORD.findall(cell.source[start:end]))
            if start in starts or not sections:
                sections.append((cell, cell.source.count("\n", 0, start), words))
            else:
                first, line, before = sections[-1]
                sections[-1] = first, line, before + words
    for cell, line, words in sections:
        if words > MOST_WORDS:
            message = (
                f"this section has {words} words: after at most {MOST_WORDS} words there must be "
                "another heading, so write a subheading"
            )
            yield at(text, cell, message, line)


def preload_setting() -> dict[str, tuple[Callable[[Any], bool], str]]:
    """Return what the setting `preload` may be: a list of the course's groups of modules."""
    groups = of_course().groups
    return {
        # groups of modules to import before the lab's kernels start; the course defines them
        "preload": (
            lambda value: isinstance(value, list) and set(map(str, value)) <= set(groups),
            f"a list of {', '.join(groups)}" if groups else "nothing: this course has no groups",
        )
    }


def header_problems(text: Text, expected: Expected, needed: Sequence[str]) -> Iterator[Problem]:
    """Yield the faults of a text's settings; nothing if the settings could not be read."""
    for name in needed if text.course else ():
        if name not in text.course:
            yield Problem(text.path, 1, f"{KEY}: needs {name}")
    for message in setting_faults(text.course, expected):
        yield Problem(text.path, 1, f"{KEY}: {message}")


def plain_faults(cell: TextCell) -> Faults:
    if cell.kind not in ("code", "markdown"):
        yield f"a text cannot have a {cell.kind} cell: use markdown or code", None
    if not cell.source.strip():
        yield "this cell is empty: fill it or delete it", None
    if cell.kind == "markdown":
        for line, element in silent_images(cell.source, markdown=True):
            yield f"{element} without alternative text", line - 1


def width_faults(cell: TextCell) -> Faults:
    """Refuse lines of visible code that must be scrolled sideways."""
    if cell.kind == "code" and HIDE_INPUT not in cell.header.get("tags", ()):
        for index, line in outside(cell.source, regions_of(cell, "test")):
            if len(line) > WIDEST:
                yield (
                    f"this line has {len(line)} characters: break it, because at most {WIDEST} fit",
                    index,
                )


def header_faults(cell: TextCell) -> Faults:
    roles = [role for role in ROLES if role in cell.header]
    if len(roles) > 1:
        yield f"expected at most one role in a cell, got {' and '.join(roles)}", None
    for role, kind in (("solution", "code"), ("test", "code"), ("task", "markdown")):
        if role in roles and cell.kind != kind:
            yield f"a {role} cell must be {kind}, got {cell.kind}", None
    if cell.name is not None and not NAME.fullmatch(str(cell.name)):
        yield f"{cell.name!r} is not a name: use letters, digits and _, at most 50", None
    graded = "test" in cell.header or "task" in cell.header
    points = cell.header.get("points")
    if graded and points is None:
        yield f"{cell.name!r} has no points: write points=...", None
    elif graded and not is_points(points):
        yield f"points of {cell.name!r} must be a number above 0, got {points!r}", None
    elif points is not None and not graded:
        yield "only a test or a task can have points", None


def code_faults(cell: TextCell) -> Faults:
    """Require plain Python in code, because checks parse it. Refuse scripts and frames in prose."""
    if cell.kind == "code":
        try:
            ast.parse(cell.source)
        except SyntaxError as error:
            message = f"not plain Python: {error.msg} (magics and ! don't belong in a lab)"
            yield message, (error.lineno or 1) - 1
    else:
        for index, line in enumerate(cell.source.split("\n")):
            if match := LIVE_MARKUP.search(line):
                yield f"a browser would run or load {match[0]!r}: remove it from the lab", index
    for role, (begin, end) in REGIONS.items():
        try:
            found = regions(cell.source, begin, end)
        except ValueError as error:
            yield str(error), None
            continue
        if found and role not in cell.header:
            yield f"{begin!r} belongs in a {role} cell", found[0][0]


def stub_faults(cell: TextCell) -> Faults:
    if "solution" not in cell.header:
        return
    spans = regions_of(cell, "solution")
    if not spans and "BEGIN SOLUTION" not in cell.source:
        yield f"the stub has no solution: write {BEGIN_SOLUTION!r} ... {END_SOLUTION!r}", None
    for begin, end in spans:
        try:
            statements = parse_block("\n".join(cell.source.split("\n")[begin + 1 : end]))
        except SyntaxError:
            yield "the solution region must contain whole statements", begin
            continue
        if all(map(is_placeholder, statements)):
            yield "the stub has no solution: the region does nothing", begin
        flush = not cell.source.split("\n")[begin].startswith(" ")
        below = "\n".join(leaks.released_lines(cell)[end:])
        if flush and re.search(r"^(def|class) ", below, re.M):
            message = (
                "the stub would raise its exception before a function below it is defined: move "
                "the solution region below the last function"
            )
            yield message, begin


def is_placeholder(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Raise):
        return "NotImplementedError" in ast.unparse(statement)
    constant = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    return constant or isinstance(statement, ast.Pass)


def test_faults(cell: TextCell) -> Faults:
    if "test" not in cell.header:
        return
    name = cell.header["test"]
    spans = regions_of(cell, "test")
    if not spans:
        if "HIDDEN TESTS" not in cell.source:
            yield f"test {name!r} has no hidden region: {BEGIN_HIDDEN!r} ...", None
        return
    if len(spans) > 1:
        yield f"test {name!r} has {len(spans)} hidden regions, expected one", None
    lines = cell.source.split("\n")
    first = next((i for i, line in enumerate(lines) if not line.startswith("#")), 0)
    if called(lines[first : first + 1], "check") != name:
        yield f'a graded cell must begin with check("{name}")', first
    for begin, end in spans:
        said = called(lines[begin + 1 : end], "verify")
        if said is None:
            yield f'the hidden region must contain only: verify("{name}", ...)', begin
        elif said != name:
            yield f"verify({said!r}, ...) in the test of {name!r}: write {name!r}", begin + 1
    for index, line in outside(cell.source, spans):
        if index > spans[-1][1] and line.strip():
            yield "there is code after the hidden region: verify(...) must come last", index
            break


def called(lines: list[str], function: str) -> str | None:
    """Return the name in `function("name", ...)` if the lines are only this call, else None."""
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


def task_faults(cell: TextCell) -> Faults:
    if "task" not in cell.header:
        return
    spans = regions_of(cell, "task")
    if len(spans) != 1:
        if "MARK SCHEME" not in cell.source or spans:
            yield f"task {cell.name!r} needs one mark scheme: {BEGIN_SCHEME!r} ...", None
        return
    ((begin, end),) = spans
    if not "".join(cell.source.split("\n")[begin + 1 : end]).strip():
        yield f"the mark scheme of {cell.name!r} is empty", begin
    if not any(line.strip() for _, line in outside(cell.source, spans)):
        yield f"task {cell.name!r} has no question outside the mark scheme", None
    _, rubric = read_rubric(cell.source, BEGIN_SCHEME, END_SCHEME)
    points = cell.header.get("points")
    if rubric.boxes and rubric.most is None:
        fault = (
            "has boxes without points: write “One point each:” above the list, or points in "
            "brackets at the end of each item, such as (2 points)"
        )
        yield f"the mark scheme of {cell.name!r} {fault}", begin
    elif rubric.boxes and rubric.most != points:
        fault = f"give {rubric.most:g} points together, but the question has points={points}"
        yield f"the boxes of {cell.name!r} {fault}: make the two numbers equal", begin


def silent_images(source: str, markdown: bool = False) -> Iterator[tuple[int, str]]:
    """Yield (line from 1, element) of each image element without alternative text.

    If ``markdown`` is true, ![](...) is also an image element, and code is ignored.
    """
    source = without_code(source) if markdown else source
    for match in IMAGE.finditer(source):
        if match["tag"] and not SPEAKS.search(match[0]):
            yield source.count("\n", 0, match.start()) + 1, f"<{match['tag']}>"
        elif match["empty"] and markdown:
            yield source.count("\n", 0, match.start()) + 1, "![](...)"


def without_code(markdown: str) -> str:
    """Return a text with a space for each character of its code."""
    return CODE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), markdown)


PAGE_RULES = (plain_faults, width_faults)
CELL_RULES = (*PAGE_RULES, header_faults, code_faults, stub_faults, test_faults, task_faults)


def check_problems(
    lab: Text,
    lesson: Text | None,
    checks: Mapping[str, Check],
    code: Mapping[str, str],
) -> Iterator[Problem]:
    """Yield a problem if test cells, checks and headings of the lesson contradict each other.

    `code` has the source of each module of the phase's checks, by path.
    """
    main = next(iter(code), "checks")
    alone = PurePath(main).name == "checks.py"
    home = main if alone else f"a file of {PurePath(lab.path).with_name('checks')}"
    readable = headings(lesson) if lesson else set()
    question, tested = None, set()
    for cell in lab.cells:
        if question is None or (cell.kind == "markdown" and cell.source.startswith("## ")):
            question = cell
        if "test" not in cell.header:
            continue
        name, points = cell.header["test"], cell.header.get("points")
        tested.add(name)
        check = checks.get(name)
        if check is None:
            message = f'has no check: write Check("{name}", ...) in {home}'
            yield at(lab, cell, f"test {name!r} {message}")
            continue
        if is_points(points) and points != check.points:
            message = f"test {name!r}: got points={points}, but its check gives {check.points:g}"
            yield at(lab, cell, message)
        if lesson and check.reads in readable:
            page = f"../../notebooks/{PurePath(lesson.path).parent.name}.ipynb"
            link = f"[{check.reads}]({page}#{anchor(check.reads)})"
            if link not in question.source:
                yield at(lab, question, f"the question of {name!r} needs the link {link}")
    places = {name: (path, line) for path in code for name, line in check_lines(code[path]).items()}
    for name, check in checks.items():
        where = places.get(name, (main, 1))
        if name not in tested:
            yield Problem(*where, f"no cell of {lab.path} uses check {name!r}")
        told = {check.reads, *check.reads_by_part.values()}
        if lesson:
            for reads in sorted(told - readable):
                message = f"check {name!r} reads {reads!r}, but {lesson.path} has no such heading"
                yield Problem(*where, message)
        for part in check.reads_by_part.keys() - check.parts.keys():
            yield Problem(*where, f"reads_by_part: check {name!r} has no part {part!r}")


def headings(text: Text) -> set[str]:
    """Return the headings of a lesson's markdown cells, without their # marks."""
    found = set()
    for cell in text.cells:
        if cell.kind == "markdown":
            prose = re.sub(r"^```.*?^```", "", cell.source, flags=re.DOTALL | re.MULTILINE)
            found |= set(re.findall(r"^#{1,6} +(.+?)[ #]*$", prose, re.MULTILINE))
    return found


def check_lines(code: str) -> dict[str, int]:
    """Return the line of each call `Check("name", ...)`, by name."""
    lines = {}
    for node in ast.walk(ast.parse(code)):
        match node:
            case ast.Call(ast.Name("Check"), [ast.Constant(str(name)), *_]):
                lines[name] = node.lineno
    return lines
