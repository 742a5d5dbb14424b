"""Write an invented graded class, gradebook and autograded notebooks, without running code.

    python -m tests.hood.classroom.report.made_up FOLDER 2000

writes a class of that size, to look at the report and to measure it.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nbgrader.api import (
    Assignment,
    Base,
    BaseCell,
    Course,
    Grade,
    GradeCell,
    Notebook,
    Student,
    SubmittedAssignment,
    SubmittedNotebook,
    TaskCell,
)
from sqlalchemy import create_engine, insert
from sqlalchemy.orm import Session

from hood.verdict import VERDICT_MIME

LAB = "98_made_up"
POINTS = {"twice": 2.0, "row_sums": 3.0, "softmax": 5.0}
TITLES = {
    "twice": "1 · Twice as much",
    "row_sums": "2 · The sum of each row",
    "softmax": "3 · Softmax, by hand",
    "why": "4 · In your own words",
}
TASK = "why"
START = 1_790_000_000  # seconds since the epoch


@dataclass
class Made:
    """One invented learner. By default the answers are right, graded in a sandbox, and marked."""

    student: str
    first: str = "Ada"
    last: str = "Example"
    verdicts: dict[str, Any] = field(default_factory=dict)
    scores: dict[str, float | None] = field(default_factory=dict)
    manual: dict[str, float] = field(default_factory=dict)
    extra: dict[str, float] = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)
    code: dict[str, str] = field(default_factory=dict)  # answers, by exercise
    notebook: bool = True
    padding: int = 0


def verdict(
    name: str,
    earned: float | None = None,
    *,
    misconceptions: dict[str, str] | None = None,
    problem: str = "",
    status: str = "",
    cause: str = "wrong_result",
    quoted: str = "",
) -> dict[str, Any]:
    """Return a verdict of one part as JSON; right by default."""
    points = POINTS[name]
    earned = points if earned is None else earned
    state = "right" if earned == points else "partly" if earned else "wrong"
    known = next(iter(misconceptions or {}), "")
    part = {"name": "values", "points": points, "earned": earned, "cause": cause, "quoted": quoted}
    part |= {"status": status or state, "misconception": known}
    part["problem"] = "" if known else problem
    return {
        "check": name,
        "points": points,
        "earned": earned,
        "status": status or state,
        "problem": problem if status == "not run" else "",
        "cause": cause if status == "not run" else "none",
        "parts": [] if status == "not run" else [part],
        "explanations": misconceptions or {},
        "claims": ["which operators ran"],
        "reads": f"About {name}",
        "lesson": "98",
    }


def make_course(root: Path, learners: Iterable[Made]) -> Path:
    """Write a course folder with a lab of three exercises and a task, and these learners."""
    (root / "phases").mkdir(parents=True)
    write(root / "notebooks" / f"{LAB}.ipynb", {"cells": [], "metadata": {}})
    write(root / "source" / LAB / f"{LAB}.ipynb", _notebook({}, {"title": "A made-up lab"}))
    # nbgrader's Gradebook would start another process to ask for its schema's version
    engine = create_engine(f"sqlite:///{root / 'gradebook.db'}")
    Base.metadata.create_all(engine)
    with Session(engine) as session:
        lab = Assignment(name=LAB, course=Course(id="default_course"))
        notebook = Notebook(name=LAB, assignment=lab)
        cells: dict[str, BaseCell] = {
            name: GradeCell(name=name, notebook=notebook, max_score=points, cell_type="code")
            for name, points in POINTS.items()
        }
        cells[TASK] = TaskCell(name=TASK, notebook=notebook, max_score=4, cell_type="markdown")
        session.add(lab)
        session.flush()
        ids = {name: cell.id for name, cell in cells.items()}
        made = list(learners)
        _enter(session, made, ids, notebook.id, lab.id)
        for one in made:
            if one.notebook:
                path = root / "autograded" / one.student / LAB / f"{LAB}.ipynb"
                write(path, graded_notebook(one))
        session.commit()
    engine.dispose()
    return root


def _enter(session: Session, some: list[Made], cells: dict, notebook: str, lab: str) -> None:
    rows: dict[Any, list] = {Student: [], SubmittedAssignment: [], SubmittedNotebook: [], Grade: []}
    for one in some:
        key = one.student
        rows[Student].append({"id": key, "first_name": one.first, "last_name": one.last})
        rows[SubmittedAssignment].append({"id": f"a{key}", "assignment_id": lab, "student_id": key})
        handed_in = {"id": f"n{key}", "assignment_id": f"a{key}", "notebook_id": notebook}
        rows[SubmittedNotebook].append(handed_in)
        for name, cell in cells.items():
            auto = one.scores.get(name, _stated(one, name))
            manual = one.manual.get(name)
            rows[Grade].append(
                {
                    "id": f"g{name}{key}",
                    "notebook_id": f"n{key}",
                    "cell_id": cell,
                    "auto_score": auto,
                    "manual_score": manual,
                    "extra_credit": one.extra.get(name),
                    "needs_manual_grade": auto is None and manual is None,
                }
            )
    for table, values in rows.items() if some else ():
        session.execute(insert(table), values)


def _stated(one: Made, name: str) -> float | None:
    said = one.verdicts.get(name)
    return said.get("earned", 0.0) if isinstance(said, dict) else POINTS.get(name)


def graded_notebook(one: Made) -> dict[str, Any]:
    """Return the notebook of one learner as grading leaves it."""
    verdicts = {name: one.verdicts.get(name, verdict(name)) for name in POINTS}
    ours = {"seed": f"seed of {one.student}", "sandbox": True, "seconds": 2.0, "notes": []}
    return _notebook(verdicts, ours | one.metadata, one.padding, one.code)


def _notebook(
    verdicts: dict[str, Any], ours: dict, padding: int = 0, answers: dict[str, str] | None = None
) -> dict[str, Any]:
    cells = []
    for name in TITLES:
        cells.append({"cell_type": "markdown", "metadata": {}, "source": f"## {TITLES[name]}"})
        code = name in POINTS
        settings = {"grade_id": name, "grade": code, "solution": False, "locked": code}
        settings |= {"task": not code, "schema_version": 3, "points": POINTS.get(name, 4)}
        metadata: dict[str, Any] = {"nbgrader": settings}
        if not code:
            cells.append({"cell_type": "markdown", "metadata": metadata, "source": "Why?"})
            continue
        if name in (answers or {}):
            about = {"nbgrader": {"grade_id": f"{name}_code", "solution": True, "grade": False}}
            cell = {"cell_type": "code", "metadata": about, "source": answers[name]}
            cells.append({**cell, "outputs": [], "execution_count": None})
        metadata["open_the_hood"] = {"seconds": 0.5}
        hidden = f'### BEGIN HIDDEN TESTS\nverify("{name}", {name})\n### END HIDDEN TESTS'
        cell = {"cell_type": "code", "metadata": metadata, "source": hidden, "outputs": []}
        if name in verdicts:
            data = {"text/plain": "x" * padding, VERDICT_MIME: verdicts[name]}
            cell["outputs"] = [{"output_type": "display_data", "metadata": {}, "data": data}]
        cells.append({**cell, "execution_count": None})
    return {"cells": cells, "metadata": {"open_the_hood": ours}, "nbformat": 4, "nbformat_minor": 5}


def write(path: Path, data: dict[str, Any]) -> None:
    """Write a notebook as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"nbformat": 4, "nbformat_minor": 5, **data}))


def crowd(size: int, padding: int = 0, seed: int = 0) -> Iterator[Made]:
    """Return learners of all abilities, with common and rare mistakes and some accidents."""
    draw = random.Random(seed)
    for number in range(size):
        able = draw.gauss(0, 1)
        verdicts = {}
        for hard, (name, points) in enumerate(POINTS.items(), start=-1):
            if draw.gauss(able, 1) > hard / 2:
                continue
            known = (
                {"doubled twice": "each value was doubled once more."}
                if draw.random() < 0.6
                else {}
            )
            earned = draw.choice([0.0, 1.0]) if points > 2 else 0.0
            problem = draw.choice(["of 3 values 2 differ", "wrong shape", "raised ValueError: bad"])
            quoted = problem.partition(": ")[2]
            verdicts[name] = verdict(
                name, earned, misconceptions=known, problem=problem, quoted=quoted
            )
        if number % 50 == 7:
            stopped = "not run, because the kernel died in the cell `twice`: SIGKILL ended it"
            verdicts["softmax"] = verdict(
                "softmax", 0.0, status="not run", cause="kernel_stopped", problem=stopped
            )
        note = {"kind": "changed", "message": "The cell was edited.", "cell": "twice"}
        yield Made(
            f"s{number:06}",
            first=f"Learner{number}",
            verdicts=verdicts,
            manual={TASK: draw.choice([0.0, 2.0, 4.0])} if number % 3 else {},
            metadata={"notes": [note]} if number % 40 == 3 else {},
            padding=padding,
        )


if __name__ == "__main__":
    make_course(Path(sys.argv[1]), crowd(int(sys.argv[2]), padding=40_000))
