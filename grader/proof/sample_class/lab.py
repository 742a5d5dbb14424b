"""What the sample class needs to know of a lab: its notebooks, its exercises, their answers."""

from __future__ import annotations

import copy
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import nbformat
from nbformat.notebooknode import NotebookNode
from nbgrader.utils import is_grade, is_solution

from grader import UserError
from grader.build.release import generate
from grader.judging.catalogue import load_checks
from utils.checks import Candidate, Check

SOLUTION_LINES = re.compile(r"^[^\n]*### (BEGIN|END) SOLUTION[^\n]*\n?", re.MULTILINE)


@dataclass(frozen=True)
class Exercise:
    """A graded cell, the check behind it, and the solution cell above it.

    Attributes:
        check: its name is the graded cell's ``grade_id``.
        solution_id: ``grade_id`` of the cell that the learner fills in.
        reference: the solution as the lab's own text has it.
    """

    check: Check
    solution_id: str
    reference: str

    @property
    def name(self) -> str:
        """The check's name."""
        return self.check.name

    def written(self, candidate: Candidate) -> str:
        """What the solution cell says when a learner writes this candidate."""
        return candidate.cell(self.name, self.reference)


@dataclass(frozen=True)
class Lab:
    """A lab as it was released, with its exercises in order."""

    name: str
    release: NotebookNode
    exercises: tuple[Exercise, ...]

    @cached_property
    def missing(self) -> dict[str, dict[str, str]]:
        """By exercise, the parts that can't be run on this machine, and why."""
        return {exercise.name: exercise.check.not_run() for exercise in self.exercises}

    def full(self) -> dict[str, float]:
        """All points of every exercise that can be earned on this machine."""
        return {e.name: float(e.check.earnable(self.missing[e.name])) for e in self.exercises}

    def expects(self, exercise: Exercise, candidate: Candidate) -> float:
        """The points that a candidate of an exercise must earn on this machine."""
        return float(exercise.check.expects(candidate, self.missing[exercise.name]))

    def solved(self, answers: dict[str, str] | None = None) -> NotebookNode:
        """A submission: the reference everywhere, except where ``answers`` says otherwise."""
        return self.answered({e.name: e.reference for e in self.exercises} | (answers or {}))

    def answered(self, answers: dict[str, str]) -> NotebookNode:
        """A submission: the release everywhere, except where ``answers`` says otherwise."""
        nb = copy.deepcopy(self.release)
        for exercise in self.exercises:
            if exercise.name in answers:
                find(nb, exercise.solution_id).source = answers[exercise.name]
        return nb


def find(nb: NotebookNode, grade_id: str) -> NotebookNode:
    """The cell with that id."""
    return nb.cells[position(nb, grade_id)]


def position(nb: NotebookNode, grade_id: str) -> int:
    """Where the cell with that id stands."""
    ids = [cell.metadata.get("nbgrader", {}).get("grade_id") for cell in nb.cells]
    return ids.index(grade_id)


def load_lab(root: Path, name: str) -> Lab:
    """Read a lab's built source and its checks, and make its release.

    The release is made anew: somebody may be working in the one that lies in ``release/``.

    Raises:
        UserError: when the lab was not built.
    """
    path = root / "source" / name / f"{name}.ipynb"
    if not path.exists():
        raise UserError(f"{path} is not there; `python -m grader build` makes it")
    released = generate({name: path.read_bytes()}, root)[name]
    source = nbformat.read(path, as_version=4)
    release = nbformat.reads(released.decode(), as_version=4)
    checks = load_checks(root / "phases" / name)
    exercises, solution_id = [], None
    for cell in source.cells:
        grade_id = cell.metadata.get("nbgrader", {}).get("grade_id")
        if is_solution(cell):
            solution_id = grade_id
        elif is_grade(cell) and solution_id and grade_id in checks:
            reference = SOLUTION_LINES.sub("", find(source, solution_id).source).rstrip("\n")
            exercises.append(Exercise(checks[grade_id], solution_id, reference))
            solution_id = None
    if not exercises:
        raise UserError(f"the lab {name} has no exercise with a check")
    return Lab(name, release, tuple(exercises))
