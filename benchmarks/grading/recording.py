"""Measure the cost of recording in a large class, without grading the whole class.

The gradebook and the folders of a class are filled as the grader would leave them. Then the real
command grades some more submissions. Reading, scheduling, rebuilding, writing and the gradebook's
transactions are real. Only the execution is replayed, from a graded notebook.

    python -m benchmarks.grading.recording LAB LETTER    (started by `recording`, in a course)
"""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import nbformat
from nbformat.notebooknode import NotebookNode

from benchmarks.grading.course import Course
from hood.grader.execution.execute import Execute

RECORDED = "OPEN_THE_HOOD_RECORDED"  # the graded notebook's path
CONFIG = """
c.Autograde.autograde_preprocessors = [
    "benchmarks.grading.recording.Replay", *c.Autograde.autograde_preprocessors[1:]
]
"""
# The rows that the writer and nbgrader add to the gradebook for each further student.
ROWS = """
CREATE TEMP TABLE new AS WITH RECURSIVE n(i) AS (SELECT :first UNION ALL SELECT i + 1 FROM n
  WHERE i + 1 < :last) SELECT printf('f%06d', i) AS student, lower(hex(randomblob(16))) AS work,
  lower(hex(randomblob(16))) AS book FROM n WHERE :first < :last;
INSERT INTO student (id) SELECT student FROM new;
INSERT INTO submitted_assignment (id, assignment_id, student_id)
  SELECT new.work, assignment.id, new.student FROM new, assignment;
INSERT INTO submitted_notebook (id, assignment_id, notebook_id)
  SELECT new.book, new.work, notebook.id FROM new, notebook;
INSERT INTO grade (id, cell_id, notebook_id, auto_score, needs_manual_grade)
  SELECT lower(hex(randomblob(16))), id, new.book, 1, 0 FROM new, base_cell
  WHERE type IN ('GradeCell', 'TaskCell');
INSERT INTO comment (id, cell_id, notebook_id)
  SELECT lower(hex(randomblob(16))), id, new.book FROM new, base_cell
  WHERE type IN ('SolutionCell', 'TaskCell');
INSERT INTO open_the_hood_graded SELECT work, 'key', 'digest', '{}', 'stamp' FROM new;
DROP TABLE new;
"""


class Replay(Execute):
    """Gives every submission the outputs of one executed submission."""

    def preprocess(
        self, nb: NotebookNode, resources: Any = None, km: Any = None
    ) -> tuple[NotebookNode, Any]:
        """Copy the outputs, cell by cell."""
        recorded = nbformat.read(os.environ[RECORDED], as_version=4)
        outputs = {cell.id: cell.get("outputs", []) for cell in recorded.cells}
        for cell in nb.cells:
            if cell.cell_type == "code":
                cell.outputs = outputs.get(cell.id, [])
        return nb, resources


@dataclass(frozen=True)
class Recording:
    """The milliseconds of one submission in a class of `size` students.

    record: the median time to write its files and its transaction
    whole: the command's wall-clock time, from start to end, divided by the number of submissions
    """

    size: int
    record: float
    whole: float


def make_replaying(course: Course) -> None:
    """Make a graded course replay its executions."""
    with (course.root / "nbgrader_config.py").open("a") as file:
        file.write(CONFIG)


def fill(course: Course, before: int, size: int) -> None:
    """Grow the class from `before` to `size` students."""
    with closing(sqlite3.connect(course.root / "gradebook.db")) as database:
        for statement in ROWS.split(";\n"):
            names = {"first": before, "last": size}
            database.execute(statement, names if ":" in statement else {})
        database.commit()
    for number in range(before, size):
        for step in ("submitted", "autograded"):
            (course.root / step / f"f{number:06d}" / course.lab).mkdir(parents=True)


def recording(course: Course, size: int, letter: str, recorded: Path, count: int) -> Recording:
    """Grade `count` new submissions in a class of `size`; the new ids begin with `letter`."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.grading.recording", course.lab, letter],
        cwd=course.root,
        env={**course.environment(), RECORDED: str(recorded)},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise RuntimeError(f"recording in a class of {size} failed:\n{done.stderr[-2000:]}")
    said = json.loads(done.stdout.splitlines()[-1])
    if len(said["record"]) != count:
        raise RuntimeError(f"{len(said['record'])} of {count} submissions were recorded")
    return Recording(size, 1e3 * median(said["record"]), 1e3 * said["seconds"] / count)


def main(lab: str, letter: str) -> None:
    """Grade the new submissions with the real command; print each step's seconds as JSON."""
    from hood.__main__ import main as grader
    from hood.classroom.recording.writer import Writer

    took: list[float] = []
    really = Writer.record

    def record(self: Writer, *args: Any) -> bool:
        start = time.perf_counter()
        written = really(self, *args)
        took.append(time.perf_counter() - start)
        return written

    Writer.record = record
    start = time.perf_counter()
    status = grader(["grade", lab, "--students", f"{letter}*"])
    print(json.dumps({"record": took, "seconds": time.perf_counter() - start}))
    sys.exit(status)


if __name__ == "__main__":
    main(*sys.argv[1:])
