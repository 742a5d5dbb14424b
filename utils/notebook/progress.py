"""Read a learner's own progress from the labs as they were last saved.

Nothing is executed, sent or stored: only the saved notebook is read. An exercise counts as begun if
its stub was replaced, and as passing if every visible check below it ran after it, none of them
ended in an error, and a verdict below the graded cell, if there is one, grants all points.
"""

from __future__ import annotations

import ast
import json
import re
from dataclasses import dataclass, field, replace
from html import escape
from pathlib import Path
from typing import Any

from utils.notebook.audience import building
from utils.notebook.course import FURTHER, PHASES, ROOT, Phase, link_from_start
from utils.notebook.style import VIEW

# The grader's verdicts, see grader/verdict.py: their type, and what they say of a right answer.
VERDICT = "application/vnd.open-the-hood.verdict+json"
RIGHT = ("right", "right as far as run")
HEADING = re.compile(r"##\s+(.+)")


@dataclass(frozen=True)
class Exercise:
    """One exercise of a lab as it was saved."""

    name: str  # of its graded cell
    begun: bool  # whether its stub was replaced
    passing: bool  # whether all its checks passed
    title: str = ""  # the heading above it, and
    section: str = ""  # the id of the cell with it; empty if there is none
    further: bool = False  # whether a class may leave it out
    path: Path | None = field(default=None, compare=False)  # the file that it was read from


@dataclass(frozen=True)
class LabProgress:
    """One lab as it was saved."""

    phase: Phase
    exercises: tuple[Exercise, ...] = ()
    trouble: str = ""  # why it could not be read; else empty
    saved: float = 0.0  # when it was saved, in seconds since 1970

    @property
    def begun(self) -> int:
        return sum(exercise.begun for exercise in self.exercises)

    @property
    def passing(self) -> int:
        return sum(exercise.passing for exercise in self.exercises)

    @property
    def left(self) -> list[Exercise]:
        """What the lab still asks for: the exercises that don't pass, without further ones."""
        return [one for one in self.exercises if not one.passing and not one.further]

    def __str__(self) -> str:
        if self.trouble:
            return self.trouble
        if not self.begun:
            return f"{len(self.exercises)} exercises, none begun"
        counts = f"{self.passing} of {len(self.exercises)} exercises pass their checks"
        waiting = [e.name for e in self.exercises if e.begun and not e.passing]
        return counts + (f"; begun: {', '.join(waiting)}" if waiting else "")


class Progress:
    """How far each lab is. Shown as a table in a notebook, as lines of text anywhere else."""

    def __init__(self, labs: list[LabProgress]) -> None:
        self.labs = labs

    @property
    def done(self) -> tuple[int, ...]:
        return tuple(lab.phase.number for lab in self.labs if lab.exercises and not lab.left)

    @property
    def states(self) -> dict[int, str]:
        """How far each phase is, such as "4 of 11", by its number; those begun alone."""
        return {
            lab.phase.number: f"{lab.passing} of {len(lab.exercises)}"
            for lab in self.labs
            if lab.begun
        }

    def __repr__(self) -> str:
        lines = [f"{lab.phase.number:02d} {lab.phase.title}: {lab}" for lab in self.labs]
        return "\n".join(lines) or "There is no lab here yet."

    def _repr_html_(self) -> str:
        if not self.labs:
            return "<p>There is no lab here yet.</p>"
        rows = "".join(
            f'<tr><td style="text-align:left">{lab.phase.number:02d} {escape(lab.phase.title)}</td>'
            f"<td>{_bar(lab)}</td>"
            f'<td style="text-align:left">{escape(str(lab))}</td></tr>'
            for lab in self.labs
        )
        return f"<table><tbody>{rows}</tbody></table>"


def progress(root: Path | str = ROOT) -> Progress:
    """Read every lab under `root`, with its work/ or release/, in the order of the path.

    An exercise counts wherever it was solved: in the learner's copy, or in the lab as released.
    While the course is built no progress is read, because the result is committed.
    """
    if building():
        return Progress([])
    places = [(phase, phase.labs(Path(root))) for phase in PHASES]
    return Progress(
        [_best([read_lab(phase, path) for path in paths]) for phase, paths in places if paths]
    )


def _best(found: list[LabProgress]) -> LabProgress:
    """Return the first of these, with each exercise from where most of it is done."""
    first, *others = found
    if first.trouble:
        return first
    by_name = [{one.name: one for one in lab.exercises} for lab in found]
    exercises = tuple(
        max(
            (named[one.name] for named in by_name if one.name in named),
            key=lambda each: (each.passing, each.begun),
        )
        for one in first.exercises
    )
    saved = max([first.saved, *(lab.saved for lab in others if lab.begun)])
    return replace(first, exercises=exercises, saved=saved)


def show_progress(root: Path | str = ROOT) -> None:
    """Display the progress under `root`; while the course is built, an invitation instead."""
    from IPython.display import display

    if building():
        print("Run this cell (Shift+Enter), and your own progress appears here.")
    else:
        display(progress(root))


def show_next(root: Path | str = ROOT) -> None:
    """Display a link to where the learner goes on, in the start page of `root` or its copy."""
    from IPython.display import display

    words, link = next_step(progress(root), Path(root))
    button = (
        "display:inline-block;padding:8px 16px;border-radius:6px;text-decoration:none;"
        f"font-weight:600;background:{VIEW.colour};color:{VIEW.on}"
    )
    page = f'<a href="{escape(link)}" style="{button}">{escape(words)}</a>'
    display({"text/html": page, "text/plain": f"{words} ({link})"}, raw=True)


def next_step(labs: Progress, root: Path = ROOT) -> tuple[str, str]:
    """Return where a learner goes on, in words, and the link from the start page.

    It is the first exercise that does not pass, further ones left out, in the lab that was saved
    last of those that are begun and not done; if there is none, the lesson of the first phase whose
    lab is not begun.
    """
    open_labs = [lab for lab in labs.labs if lab.begun and lab.left]
    if open_labs:
        lab = max(open_labs, key=lambda one: one.saved)
        exercise = lab.left[0]
        words = f"Continue: lab {lab.phase.number:02d}, {exercise.title or exercise.name}"
        assert exercise.path is not None  # it was read
        section = f"#cell-id={exercise.section}" if exercise.section else ""
        return words, link_from_start(exercise.path, root) + section
    finished = {lab.phase.number for lab in labs.labs if lab.begun}
    for phase in PHASES:
        lesson = phase.lesson(root)
        if lesson is not None and phase.number not in finished:
            begin = "Next" if finished else "Begin"
            words = f"{begin}: lesson {phase.number:02d}, {phase.title}"
            return words, link_from_start(lesson, root)
    return "Every lab passes its checks: read on in the sources", "../README.md"


def read_lab(phase: Phase, path: Path) -> LabProgress:
    """Read one saved lab. A file that is no notebook is reported, never raised."""
    try:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        exercises = tuple(replace(one, path=path) for one in _exercises(cells))
        saved = path.stat().st_mtime
    except OSError as error:
        return LabProgress(phase, trouble=f"cannot be opened: {error.strerror}")
    except (ValueError, TypeError, KeyError, AttributeError):
        return LabProgress(
            phase,
            trouble=f"{path.name} is not a readable notebook; "
            "take a fresh copy of the lab, or an older one of yours",
        )
    return LabProgress(phase, exercises, saved=saved)


def _exercises(cells: list[dict[str, Any]]) -> list[Exercise]:
    """Group code cells into exercises: stubs and checks, up to and with the graded cell."""
    title, section, further = "", "", False
    found: list[Exercise] = []
    stubs: list[dict[str, Any]] = []
    checks: list[dict[str, Any]] = []
    for cell in cells:
        if cell["cell_type"] != "code":
            if heading := HEADING.match(_text(cell["source"])):
                title, section = heading[1].strip(), str(cell.get("id", ""))
                further = FURTHER.search(_text(cell["source"])) is not None
            continue
        marks = cell.get("metadata", {}).get("nbgrader", {})
        if marks.get("solution"):
            stubs.append(cell)
        elif stubs and _text(cell["source"]).strip():
            checks.append(cell)
        if marks.get("grade") and checks:
            begun = all(map(_is_filled, stubs))
            passing = begun and all(_ran_well(check, after=stubs) for check in checks)
            name = str(marks["grade_id"])
            found.append(Exercise(name, begun, passing, title, section, further))
            stubs, checks = [], []
    return found


def _is_filled(stub: dict[str, Any]) -> bool:
    """A stub has `raise NotImplementedError` until it is replaced."""
    try:
        tree = ast.parse(_text(stub["source"]))
    except (SyntaxError, ValueError):
        return True  # a release always parses, so somebody has been writing here
    return not any(
        isinstance(node, ast.Raise)
        and node.exc is not None
        and "NotImplementedError" in ast.dump(node.exc)
        for node in ast.walk(tree)
    )


def _ran_well(check: dict[str, Any], after: list[dict[str, Any]]) -> bool:
    """Whether the check's saved run came after its stubs' and ended well."""
    count = check.get("execution_count")
    if count is None or any((stub.get("execution_count") or 0) > count for stub in after):
        return False
    outputs = check.get("outputs", [])
    verdicts = [output["data"][VERDICT] for output in outputs if VERDICT in output.get("data", {})]
    failed = any(output.get("output_type") == "error" for output in outputs)
    return not failed and all(verdict["status"] in RIGHT for verdict in verdicts)


def _text(source: str | list[str]) -> str:
    return source if isinstance(source, str) else "".join(source)


def _bar(lab: LabProgress) -> str:
    """One small square an exercise: full if it passes, half if begun; text says it too.

    What isn't filled is transparent, so that in a dark theme, too, the fullest stands out.
    """
    squares = []
    for exercise in lab.exercises:
        full = 100 if exercise.passing else 50 if exercise.begun else 0
        squares.append(
            f'<span title="{escape(exercise.name)}" style="display:inline-block;width:12px;'
            "height:12px;margin-right:3px;border-radius:3px;"
            f"background:linear-gradient(to top,{VIEW.colour} {full}%,transparent {full}%);"
            f'border:1px solid {VIEW.colour}"></span>'
        )
    return f'<span aria-hidden="true" style="white-space:nowrap">{"".join(squares)}</span>'
