"""Run ``python -m hood grade`` in a course folder and read what it recorded."""

from __future__ import annotations

import argparse
import io
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import nbformat
from nbformat.notebooknode import NotebookNode
from nbgrader.api import Gradebook
from rich.console import Console

from hood.classroom.recording import command
from hood.grader.course import Course
from tests.hood.classroom.recording.small import HW
from tests.hood.tiny import LAB, environment

OPEN = "--unsafe-no-sandbox"


def grade(course: Path, *words: str, lab: str = LAB) -> subprocess.CompletedProcess:
    """Run the command in another process, as a user does."""
    return subprocess.run(
        [sys.executable, "-m", "hood", "grade", lab, *words],
        cwd=course,
        env=environment(course),
        capture_output=True,
        text=True,
    )


def run(
    course: Course, *words: str, workers: int = 1, labs: Sequence[str] = (HW,)
) -> tuple[int, str]:
    """Run the command in this process; return its exit status and output."""
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    console = Console(file=io.StringIO(), width=200)
    args = parser.parse_args([*labs, "--workers", str(workers), *words])
    return command.run(args, root=course.root, console=console), console.file.getvalue()


def count(text: str, what: str) -> int:
    """Return the number in the line of the command's output that begins with these words."""
    [line] = [line for line in text.splitlines() if line.strip().startswith(what)]
    return int(line.split()[-1])


def rows(course: Path, lab: str = LAB, url: str = "") -> dict[str, dict[str, tuple]]:
    """Return everything that the gradebook has about a lab, by student, notebook and cell."""
    with Gradebook(url or f"sqlite:///{course / 'gradebook.db'}") as gradebook:
        return {
            submission.student.id: {
                f"{notebook.name}/{one.name}{kind}": _row(kind, one)
                for notebook in submission.notebooks
                for kind, found in (("", notebook.grades), (" comment", notebook.comments))
                for one in found
            }
            for submission in gradebook.assignment_submissions(lab)
        }


def _row(kind: str, one: object) -> tuple:
    if kind:
        return one.auto_comment, one.manual_comment
    return one.auto_score, one.manual_score, one.extra_credit, one.needs_manual_grade


def everything(course: Path) -> tuple[list[str], dict[Path, tuple[bytes, int]]]:
    """Return each row of the gradebook, and bytes and time of each graded file."""
    with sqlite3.connect(course / "gradebook.db") as database:
        lines = list(database.iterdump())
    files = (path for path in sorted(course.glob("autograded/**/*")) if path.is_file())
    return lines, {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in files}


def owned(nb: NotebookNode) -> list[tuple]:
    """Return every cell of a graded notebook without its outputs and run times."""
    return [
        (cell.cell_type, cell.metadata.get("nbgrader"), cell.metadata.get("tags"), cell.source)
        for cell in nb.cells
    ]


def marks(course: Path, student: str, lab: str = LAB) -> dict[str, float | None]:
    """Return the automatic scores of one learner by cell."""
    with Gradebook(f"sqlite:///{course / 'gradebook.db'}") as gradebook:
        submission = gradebook.find_submission(lab, student)
        return {g.name: g.auto_score for n in submission.notebooks for g in n.grades}


def graded(course: Path, student: str, lab: str = LAB, name: str = "") -> NotebookNode:
    """Return a graded notebook."""
    path = course / "autograded" / student / lab / f"{name or lab}.ipynb"
    return nbformat.read(path, as_version=4)
