"""Read a master notebook of Otter Assign, in the format of version 1 and later versions."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import yaml

from hood import UserError
from hood.authoring.importing.assignment import (
    Asserts,
    Assignment,
    Exercise,
    Graded,
    InWords,
    Other,
)
from hood.authoring.importing.cells import Cell
from hood.authoring.importing.solution_cell import IGNORED, of_otter, parsed
from hood.untrusted import mapping, number, sequence, text, truth

FENCE = re.compile(r"^```otter[ \t]*\n(.*?)^```[ \t]*$\n?", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"#\s+(begin|end)\s+(question|prompt|solution|tests)\b", re.IGNORECASE)
CONFIG = re.compile(r"#\s+assignment\s+config\b", re.IGNORECASE)
IGNORED_CELL = re.compile(r"##?\s*ignore\s*(##)?\s*$", re.IGNORECASE | re.MULTILINE)
TEST_CONFIG = re.compile(
    r"\A\s*(?:\w\s*=\s*)?(\"\"\"|''')\s*#\s*BEGIN\s+TEST\s+CONFIG\s*\n(.*?)"
    r"^\s*\1\s*;?\s*#\s*END\s+TEST\s+CONFIG[^\n]*\n?",
    re.IGNORECASE | re.DOTALL | re.MULTILINE,
)
HIDDEN = re.compile(r"\A\s*#[^\n]*\bhidden\b[^\n]*\n?", re.IGNORECASE)
VISIBLE = re.compile(r"\A\s*##?\s*test\s*(##)?\s*\n", re.IGNORECASE)
SOLUTION_WORDS = re.compile(r"^(\*\*|<strong>)solution:?(\*\*|</strong>):?[ \t]*", re.I | re.M)
OF_OTTER = re.compile(r"\botter\.Notebook\(|^\s*grader\.(check|export)", re.MULTILINE)


@dataclass
class _Question:
    place: int  # the number of its first cell
    config: Mapping[str, Any]
    text: list[str] = field(default_factory=list)
    prompt: list[str] = field(default_factory=list)  # code
    solution: list[str] = field(default_factory=list)  # code
    answer: list[str] = field(default_factory=list)  # words
    code: list[str] = field(default_factory=list)  # other cells
    tests: list[Asserts] = field(default_factory=list)
    # The points of each test; None if the test does not state its points.
    points: list[float | None] = field(default_factory=list)

    @property
    def name(self) -> str:
        return text(str(self.config.get("name") or "")) or f"question_{self.place}"


def read(cells: Sequence[Cell], title: str) -> Assignment:
    """Return the assignment of a master notebook.

    Raises UserError if no cell begins a question, or if a block of cells has no begin or no end.
    """
    found = Assignment(title)
    question: _Question | None = None
    block = ""
    for place, cell in _boundaries_alone(cells):
        bare = cell.source.strip()
        if not bare or IGNORED_CELL.match(bare):
            continue
        mark = BLOCK.match(bare) if cell.kind == "raw" else None
        if cell.kind == "raw" and CONFIG.match(bare):
            _assignment_config(found, _config(bare, place))
        elif mark:
            begins, kind = mark[1].lower() == "begin", mark[2].lower()
            expected = (
                (not block and (kind == "question") == (question is None))
                if begins
                else (kind == (block or ("question" if question else "")))
            )
            if not expected:
                inside = block or ("question" if question else "nothing")
                raise UserError(
                    f"cell {place}: expected the end of {inside!r}, got {bare.splitlines()[0]!r}"
                    if inside != "nothing"
                    else f"cell {place}: {bare.splitlines()[0]!r} is outside of any question"
                )
            if kind != "question":
                block = kind if begins else ""
            elif begins:
                question = _Question(place, _config(bare, place))
            elif question:
                _close(found, question)
                question = None
        elif cell.kind == "raw":
            found.open.append(f"cell {place}: the draft leaves out a raw cell: {bare[:60]!r}")
        elif question is None:
            if not OF_OTTER.search(cell.source):
                found.cells.append(Other(cell.kind, cell.source))
        else:
            _take(question, block, cell)
        if cell.pasted:
            found.open.append(f"cell {place}: it has a pasted image, which is not copied.")
        if "BEGIN PLUGIN" in bare:
            found.open.append(f"cell {place}: Otter's plugins have no counterpart here.")
    if question:
        raise UserError(f"question {question.name!r} has no `# END QUESTION` cell")
    if not any(isinstance(one, Exercise | InWords) for one in found.cells):
        raise UserError(
            "expected a master notebook of Otter Assign, got one without a raw cell that begins "
            "with `# BEGIN QUESTION`. Otter's old format (v0) is not read."
        )
    return found


def _boundaries_alone(cells: Sequence[Cell]) -> Iterator[tuple[int, Cell]]:
    """Yield each cell with its number; a fenced block of a text becomes a raw cell."""
    for place, cell in enumerate(cells, start=1):
        if cell.kind != "markdown":
            yield place, cell
            continue
        end = 0
        for match in FENCE.finditer(cell.source):
            yield place, replace(cell, source=cell.source[end : match.start()].strip("\n"))
            yield place, Cell("raw", match[1])
            end = match.end()
        yield place, replace(cell, source=cell.source[end:].lstrip("\n") if end else cell.source)


def _config(source: str, place: int) -> Mapping[str, Any]:
    """Return the settings of a cell. Raises UserError if the settings are not YAML."""
    try:
        return mapping(yaml.safe_load(source))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        said = getattr(error, "problem", None) or str(error).split("\n")[0]
        raise UserError(f"cell {place}: its settings are not YAML: {said}") from None


def _assignment_config(found: Assignment, config: Mapping[str, Any]) -> None:
    found.title = text(config.get("name")) or found.title
    for key in ("files", "student_files", "autograder_files"):
        found.files += [text(one) for one in sequence(config.get(key)) if text(one)]
    if config.get("seed"):
        found.open.append(
            "Otter sets a seed between cells (`seed` in its settings). This engine sets no seed: "
            "let a function get its random generator as an argument."
        )


def _take(question: _Question, block: str, cell: Cell) -> None:
    """Add a cell to a question; ``block`` is the kind of block that the cell is in."""
    code = cell.kind == "code"
    if block == "tests":
        if code:
            _take_test(question, cell)
    elif block == "solution":
        (question.solution if code else question.answer).append(cell.source)
    elif block == "prompt":
        if code:
            question.prompt.append(cell.source)
    else:
        (question.code if code else question.text).append(cell.source)


def _take_test(question: _Question, cell: Cell) -> None:
    source, config = cell.source, mapping(None)
    if match := TEST_CONFIG.match(source):
        config = dict(_config(match[2], question.place))
        source = source[match.end() :]
        hidden = truth(config.get("hidden")) or False
    else:
        hidden = HIDDEN.match(source) is not None
        source = VISIBLE.sub("", HIDDEN.sub("", source))
    lines = [line for line in source.split("\n") if not IGNORED.search(line)]
    source = _unwrapped("\n".join(lines).strip("\n"))
    source, output = _as_asserts(source, cell.output)
    question.tests.append(Asserts(source, hidden, output=output))
    question.points.append(number(config.get("points")))


def _unwrapped(source: str) -> str:
    """Return a test in which the body of each test function replaces the function.

    Otter calls a test function with names of the learner's notebook. Two kinds of functions are not
    replaced: a function that gets the learner's whole notebook as `env`, and a function that
    returns something.
    """
    tree = parsed(source)
    lines = source.split("\n")
    for node in reversed(tree.body if tree else []):
        if (
            isinstance(node, ast.FunctionDef)
            and node.name.startswith("test")
            and "env" not in {one.arg for one in node.args.args}
            and not any(isinstance(one, ast.Return) for one in ast.walk(node))
            and node.body[0].lineno > node.lineno
        ):
            body = "\n".join(lines[node.body[0].lineno - 1 : node.end_lineno])
            lines[node.lineno - 1 : node.end_lineno] = textwrap.dedent(body).split("\n")
    return "\n".join(lines)


def _as_asserts(source: str, output: str | None) -> tuple[str, str | None]:
    """Return a test as an assert, if its last statement is an expression with a literal output.

    If the output is not a literal, return the unchanged source and the output.
    """
    tree = parsed(source)
    last = tree.body[-1] if tree and tree.body else None
    if output is None or not isinstance(last, ast.Expr):
        return source, None
    try:
        value = ast.literal_eval(output)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return source, output
    lines = source.split("\n")
    above, shown = lines[: last.lineno - 1], ast.unparse(last.value)
    if isinstance(last.value, ast.Call) and ast.unparse(last.value.func) == "print":
        return source, output
    if value is True:
        condition = shown
    elif value is False or value is None:
        condition = f"({shown}) is {value}"
    else:
        condition = f"{_operand(last.value)} == {value!r}"
    return "\n".join([*above, f"assert {condition}"]), None


def _operand(node: ast.expr) -> str:
    """Return an expression as an operand of `==`."""
    shown = ast.unparse(node)
    loose = ast.Compare | ast.BoolOp | ast.IfExp | ast.Lambda | ast.UnaryOp
    return f"({shown})" if isinstance(node, loose) else shown


def _close(found: Assignment, question: _Question) -> None:
    """Add a whole question to the assignment."""
    name, manual = question.name, truth(question.config.get("manual")) or False
    shares = _shares(question, found)
    total = sum(shares)
    prose = "\n\n".join(question.text)
    if question.tests and question.solution and total > 0:
        if manual:
            message = "in Otter, a person gives its points. Here its tests give the points."
            found.open.append(f"{name}: {message}")
        tests = [
            replace(test, points=share) for test, share in zip(question.tests, shares, strict=True)
        ]
        solution = "\n\n".join(map(of_otter, question.solution))
        prompt = "\n\n".join(question.prompt)
        exercise = Exercise(name, prose, solution, prompt, tests)
        found.cells += [Other("markdown", one) for one in question.text]
        found.cells += [Other("code", one) for one in question.code]
        found.cells += [exercise, Graded(exercise)]
        if question.answer:
            found.open.append(f"{name}: the solution also has text, which the draft leaves out.")
        return
    if question.tests:
        why = "has tests, but no solution in code" if total > 0 else "has tests without points"
        found.open.append(f"{name}: it {why}, so it became a question in words. Its tests:")
        found.open[-1] += "".join(f"\n\n{_quoted(test.source)}" for test in question.tests)
    answer = SOLUTION_WORDS.sub("", "\n\n".join(question.answer)).strip()
    code = "\n\n".join(map(_without_marks, question.solution)).strip()
    answer = "\n\n".join(filter(None, [answer, f"```python\n{code}\n```" if code else ""]))
    found.cells += [Other("code", one) for one in question.code]
    found.cells.append(InWords(name, prose or f"# {name}", answer, total))


def _without_marks(source: str) -> str:
    lines = of_otter(source).split("\n")
    return "\n".join(line for line in lines if not line.lstrip().startswith("### "))


def _shares(question: _Question, found: Assignment) -> list[float]:
    """Return the points of each test by Otter's rules; without tests, the question's points."""
    said, own = question.config.get("points"), question.points
    count = len(own)
    if isinstance(said, list):
        each = [number(one) or 0 for one in said]
        if len(each) == count:
            return each
        found.open.append(f"{question.name}: it has {count} tests, but points for {len(each)}.")
        said = sum(each)
    if isinstance(said, dict):
        return [number(said.get("each")) or 0] * (count or 1)
    total = number(said)
    if not count:
        return [_one(question, found) if total is None else total]
    if total is None:
        if any(one is not None for one in own):
            return [one or 0 for one in own]
        total = _one(question, found)
    open_count = own.count(None)
    rest = max(0.0, total - sum(one or 0 for one in own))
    return [rest / open_count if one is None else one for one in own]


def _one(question: _Question, found: Assignment) -> float:
    found.open.append(f"{question.name}: it has no points. Otter and the draft count 1 point.")
    return 1


def _quoted(source: str) -> str:
    return "\n".join(f"        {line}" for line in source.split("\n"))
