"""Read a saved lab: its exercises, and the verdicts on the answers.

Nothing is executed. An exercise is begun if its stub was replaced. An exercise passes if the
verdict below its graded cell gives all points to the answer in the file. Without a verdict, an
exercise passes if every check below the answer ran after the answer and raised no error.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from hood.course import Phase
from hood.lab_words import FURTHER, UNANSWERED
from hood.metadata import KEY, mark
from hood.verdict import FULL, VERDICT_MIME, Status

HEADING = re.compile(r"##\s+(.+)")
UNREADABLE = (ValueError, TypeError, KeyError, AttributeError)
Cell = dict[str, Any]


@dataclass(frozen=True)
class Exercise:
    """One exercise of a saved lab, or one question in words."""

    name: str  # the name of its graded cell
    begun: bool  # whether its stub was replaced
    passing: bool  # whether it has all points; for a question in words, whether it is answered
    title: str = ""  # the heading above it
    section: str = ""  # the id of the cell with the heading; empty if it has no id
    further: bool = False  # whether a class may leave the exercise out
    points: float = 0.0  # the points that it can give
    earned: float | None = None  # the verdict's points; 0 if stale, None without verdict
    stale: float = 0.0  # the time of a verdict on an older answer; 0 if there is none
    words: bool = False  # whether it is a question in words, which a person marks
    cells: tuple[str, ...] = field(default=(), compare=False)  # ids of its cells
    path: Path | None = field(default=None, compare=False)  # its file


@dataclass(frozen=True)
class LabProgress:
    """One saved lab."""

    phase: Phase
    exercises: tuple[Exercise, ...] = ()  # also the questions in words
    trouble: str = ""  # why the file could not be read; else empty
    saved: float = 0.0  # when it was saved, in seconds since 1970

    @property
    def judged(self) -> list[Exercise]:
        """The lab's exercises; questions in words are left out."""
        return [one for one in self.exercises if not one.words]

    @property
    def begun(self) -> int:
        return sum(exercise.begun for exercise in self.exercises)

    @property
    def passing(self) -> int:
        return sum(exercise.passing for exercise in self.judged)

    @property
    def left(self) -> list[Exercise]:
        """The exercises that are not done yet, without *further* exercises."""
        return [one for one in self.exercises if not one.passing and not one.further]

    @property
    def done_share(self) -> float:
        """The share of points that are done, from 0 to 1. *Further* exercises don't count."""
        asked = [one for one in self.exercises if not one.further]
        done = sum(one.points if one.passing else one.earned or 0 for one in asked)
        return done / (sum(one.points for one in asked) or 1)

    def __str__(self) -> str:
        if self.trouble:
            return self.trouble
        if not self.begun:
            return f"{len(self.judged)} exercises, none begun"
        said = [f"{what}: {', '.join(one.name for one in some)}" for what, some in self.groups()]
        return "; ".join([counts(self.judged, with_exercises=True), *said])

    def groups(self) -> Iterator[tuple[str, list[Exercise]]]:
        """Yield groups of exercises, each with a text about the group."""
        stale = [one for one in self.judged if one.stale]
        begun = [e for e in self.judged if e.begun and not e.passing and not e.stale]
        answered = [one for one in self.exercises if one.words and one.begun]
        for what, some in (
            ("begun", begun),
            ("changed since its verdict, so run the answer and its graded cell again", stale),
            ("answered in words", answered),
        ):
            if some:
                yield what, some


def counts(judged: list[Exercise], with_exercises: bool = False) -> str:
    """Return in words how much is done: points, or passing exercises if there are no verdicts.

    Args:
        judged: the exercises; questions in words are left out.
        with_exercises: whether to count exercises in addition to points.
    """
    passing = f"{sum(one.passing for one in judged)} of {len(judged)} exercises"
    if all(one.earned is None for one in judged):
        return f"{passing} pass their checks"
    earned = sum(one.points if one.passing else one.earned or 0 for one in judged)
    points = f"{earned:g} of {sum(one.points for one in judged):g} points"
    return f"{points}, {passing}" if with_exercises else points


@dataclass(frozen=True)
class Group:
    """The cells of one exercise: the question, the stubs, the checks, then the graded cell."""

    name: str
    title: str
    section: str
    question: str
    points: float
    stubs: list[Cell]
    checks: list[Cell]  # with the graded cell; empty for a question in words

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(str(cell.get("id", "")) for cell in [*self.stubs, *self.checks])


def read_lab(phase: Phase, path: Path) -> LabProgress:
    """Read one saved lab. If the file is not a notebook, ``trouble`` says so; nothing is raised."""
    try:
        found = tuple(replace(one, path=path) for one in exercises(cells_of(path)))
        saved = path.stat().st_mtime
    except OSError as error:
        return LabProgress(phase, trouble=f"cannot be opened: {error.strerror}")
    except UNREADABLE:
        return LabProgress(
            phase,
            trouble=f"{path.name} is not a readable notebook; "
            "use a fresh copy of the lab, or an older version of your copy",
        )
    return LabProgress(phase, found, saved=saved)


def exercises(cells: list[Cell]) -> Iterator[Exercise]:
    """Yield the exercises of a lab's cells, with the results of the verdicts below them."""
    yield from map(_exercise, groups(cells))


def cells_of(path: Path) -> list[Cell]:
    """Return a notebook's cells. Raises OSError or an error in UNREADABLE for any other file."""
    cells: list[Cell] = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return cells


def groups(cells: list[Cell]) -> Iterator[Group]:
    """Yield the exercises and questions in words of a lab's cells, in their order."""
    title, section, question = "", "", ""
    stubs: list[Cell] = []
    checks: list[Cell] = []
    task: Cell | None = None  # the question in words that the next answer belongs to
    for cell in cells:
        source, marks = text_of(cell), cell.get("metadata", {}).get("nbgrader", {})
        if cell["cell_type"] != "code":
            if heading := HEADING.match(source):
                title, section, question = heading[1].strip(), str(cell.get("id", "")), source
                task = None
            if marks.get("task"):
                task = cell
            elif task is not None:
                yield _group(task, title, section, question, [cell], [])
                task = None
            continue
        if marks.get("solution"):
            stubs.append(cell)
        elif stubs and source.strip():
            checks.append(cell)
        if marks.get("grade") and checks:
            yield _group(cell, title, section, question, stubs, checks)
            stubs, checks = [], []


def _group(
    marked: Cell, title: str, section: str, question: str, stubs: list[Cell], checks: list[Cell]
) -> Group:
    marks = marked["metadata"]["nbgrader"]
    points = float(marks.get("points") or 0)
    return Group(str(marks["grade_id"]), title, section, question, points, stubs, checks)


def _exercise(one: Group) -> Exercise:
    further = FURTHER.search(one.question) is not None
    words = not one.checks
    begun = not _is_blank(one.stubs[0]) if words else all(map(_is_filled, one.stubs))
    passing, earned, stale = begun, None, 0.0
    if not words:
        graded = one.checks[-1]
        output = next(reversed(list(verdicts(graded))), None)
        if output is None:
            passing = begun and all(_ran_well(check, after=one.stubs) for check in one.checks)
        else:
            verdict = output["data"][VERDICT_MIME]
            status = str(verdict.get("status"))
            fresh = begun and _is_of(output, graded, one.stubs)
            passing = fresh and status in FULL
            earned = float(verdict.get("earned") or 0) if fresh else 0.0
            tried = begun and status != Status.NOT_ATTEMPTED
            stale = _given(output) if tried and not fresh else 0.0
    return Exercise(
        one.name,
        begun,
        passing,
        one.title,
        one.section,
        further,
        one.points,
        earned,
        stale,
        words,
        one.ids,
    )


def verdicts(graded: Cell) -> Iterator[dict[str, Any]]:
    """Yield the outputs of a cell that are verdicts."""
    yield from (one for one in graded.get("outputs", []) if VERDICT_MIME in one.get("data", {}))


def _is_of(output: dict[str, Any], graded: Cell, stubs: list[Cell]) -> bool:
    """Return whether a verdict judged the answer in the file.

    If the verdict has a stamp, the stamp decides, else the order in which the cells ran.
    """
    ran = output.get("metadata", {}).get(KEY, {}).get("ran")
    if isinstance(ran, list):
        return all(mark(text_of(stub)) in ran for stub in stubs)
    return _ran_after(graded, stubs)


def _given(output: dict[str, Any]) -> float:
    """Return when a verdict was given; 1 if the verdict does not say when."""
    at = output.get("metadata", {}).get(KEY, {}).get("at")
    return float(at) if isinstance(at, (int, float)) else 1.0


def _is_blank(answer: Cell) -> bool:
    return text_of(answer).strip() in ("", *UNANSWERED)


def _is_filled(stub: Cell) -> bool:
    """Return whether a stub's `raise NotImplementedError` was replaced."""
    try:
        tree = ast.parse(text_of(stub))
    except (SyntaxError, ValueError):
        return True  # released stubs can be parsed, so somebody has changed this one
    return not any(
        isinstance(node, ast.Raise)
        and node.exc is not None
        and "NotImplementedError" in ast.dump(node.exc)
        for node in ast.walk(tree)
    )


def _ran_after(check: Cell, stubs: list[Cell]) -> bool:
    count = check.get("execution_count")
    return count is not None and all((s.get("execution_count") or 0) <= count for s in stubs)


def _ran_well(check: Cell, after: list[Cell]) -> bool:
    """Return whether a check's saved run came after the runs of its stubs, and had no error."""
    failed = any(output.get("output_type") == "error" for output in check.get("outputs", []))
    return not failed and _ran_after(check, after)


def text_of(cell: Cell) -> str:
    source: str | list[str] = cell["source"]
    return source if isinstance(source, str) else "".join(source)
