"""Read an instructor's notebook of nbgrader."""

from __future__ import annotations

import re
from collections.abc import Sequence

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
from hood.authoring.importing.names import defined, used
from hood.authoring.importing.solution_cell import exact_marks, mark_all
from hood.lab_words import BEGIN_SOLUTION
from hood.untrusted import number

HIDDEN = re.compile(
    r"^[^\n]*BEGIN HIDDEN TESTS[^\n]*\n(.*?)(?:^[^\n]*END HIDDEN TESTS[^\n]*$|\Z)", re.M | re.S
)
REGION = re.compile(
    r"^[^\n]*BEGIN SOLUTION[^\n]*\n(.*?)(?:^[^\n]*END SOLUTION[^\n]*$|\Z)", re.M | re.S
)
SCHEME = re.compile(r"=== *BEGIN MARK SCHEME *===(.*?)(?:=== *END MARK SCHEME *===|\Z)", re.DOTALL)


def read(cells: Sequence[Cell], title: str) -> Assignment:
    """Return the assignment of an instructor's notebook.

    Raises UserError if no cell has nbgrader's settings.
    """
    if not any(cell.settings for cell in cells):
        raise UserError(
            "expected a notebook from nbgrader's source/ folder, got one without nbgrader's cells"
        )
    found = Assignment(title)
    for place, cell in enumerate(cells, start=1):
        if not cell.source.strip():
            continue
        grade, solution, task = (
            cell.settings.get(key) is True for key in ("grade", "solution", "task")
        )
        name = str(cell.settings.get("grade_id") or f"cell_{place}")
        if cell.pasted:
            found.open.append(f"cell {place}: it has a pasted image, which is not copied.")
        if task or (grade and solution):
            _in_words(found, cell, name, task)
        elif solution and cell.kind == "code":
            marked = exact_marks(cell.source)
            marked = marked if BEGIN_SOLUTION in marked else mark_all(cell.source)
            found.cells.append(Exercise(name, _text_above(found), marked))
        elif solution:
            message = (
                "the answer in words has no points, so it became a text that the learner replaces."
            )
            found.open.append(f"{name}: {message}")
            found.cells.append(Other("markdown", "*Write your answer here.*"))
        elif grade:
            _tests(found, cell, name)
        else:
            found.cells.append(Other("code" if cell.kind == "code" else "markdown", cell.source))
    return found


def _text_above(found: Assignment) -> str:
    above = found.cells[-1] if found.cells else None
    return above.source if isinstance(above, Other) and above.kind == "markdown" else ""


def _in_words(found: Assignment, cell: Cell, name: str, task: bool) -> None:
    points = number(cell.settings.get("points")) or 0
    answer = rubric = ""
    if task:
        scheme = SCHEME.search(cell.source)
        question = SCHEME.sub("", cell.source).strip()
        rubric = scheme[1].strip() if scheme else ""
    else:  # a manually graded answer, below its question
        question = _text_above(found)
        if question:
            found.cells.pop()
        given, answer = _given_and_answer(cell)
        question = "\n\n".join(part for part in (question, given) if part)
    found.cells.append(InWords(name, question or f"# {name}", answer, points, rubric))


def _given_and_answer(cell: Cell) -> tuple[str, str]:
    """Return the text that learners get, and the answer, which nbgrader removes.

    The answer is between the markers of a solution. Without markers it is the whole cell.
    """
    if not REGION.search(cell.source):
        parts = "", cell.source
    else:
        answer = "\n".join(part[1].strip("\n") for part in REGION.finditer(cell.source))
        parts = re.sub(r"\n{3,}", "\n\n", REGION.sub("", cell.source)), answer
    given, answer = (part.strip("\n") for part in parts)
    if cell.kind == "code":
        given, answer = (f"```python\n{part}\n```" if part else "" for part in (given, answer))
    return given.strip(), answer.strip()


def _tests(found: Assignment, cell: Cell, name: str) -> None:
    """Add a cell with tests to an exercise.

    The cell may use names that exercises define: then the last of these exercises gets the tests.
    Otherwise, the last exercise above the cell gets them.
    """
    if "AUTOTEST" in cell.source:
        found.open.append(
            f"{name}: it has AUTOTEST lines, which make tests. Write these tests as asserts."
        )
    earlier = [*reversed(found.exercises)]
    asked = used(cell.source)
    mine = [one for one in earlier if asked & defined(one.solution)] or earlier
    if not mine:
        found.open.append(
            f"{name}: no exercise is above this test, so the draft leaves the test out:"
        )
        found.open[-1] += f"\n\n{_quoted(cell.source)}"
        return
    exercise, points = mine[0], number(cell.settings.get("points")) or 0
    hidden = "\n".join(part[1] for part in HIDDEN.finditer(cell.source)).strip("\n")
    visible = HIDDEN.sub("", cell.source).strip("\n")
    tests = [(visible, False), (hidden, True)]
    tests = [(source, is_hidden) for source, is_hidden in tests if _has_tests(source)]
    shares = _shares(points, len(tests))
    exercise.guessed = exercise.guessed or len(tests) > 1
    for (source, is_hidden), share in zip(tests, shares, strict=True):
        before = visible if is_hidden else ""
        exercise.tests.append(Asserts(source, is_hidden, share, before))
    found.cells = [
        one for one in found.cells if not (isinstance(one, Graded) and one.exercise is exercise)
    ]
    found.cells.append(Graded(exercise))


def _has_tests(source: str) -> bool:
    return any(line.strip() and not line.lstrip().startswith("#") for line in source.split("\n"))


def _shares(points: float, count: int) -> list[float]:
    """Divide a cell's points between its visible and hidden tests, in whole points if possible.

    A cell without tests gets no points.
    """
    if count < 2:
        return [points] * count
    first = points // 2 if points >= 2 and float(points).is_integer() else points / 2
    return [first, points - first]


def _quoted(source: str) -> str:
    return "\n".join(f"        {line}" for line in source.split("\n"))
