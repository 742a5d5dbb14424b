"""Load a lab for the sample class: its release, its exercises and their answers."""

from __future__ import annotations

import copy
import inspect
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import MappingProxyType

import nbformat
from nbformat.notebooknode import NotebookNode
from nbgrader.utils import is_grade, is_solution

from hood import UserError
from hood.authoring.notebooks.release import generate
from hood.judge.catalogue import load_checks
from hood.judge.checks.answers import Candidate
from hood.judge.checks.exercise import Check

SOLUTION_LINES = re.compile(r"^[^\n]*### (BEGIN|END) SOLUTION[^\n]*\n?", re.MULTILINE)


@dataclass(frozen=True, eq=False)
class SampleExercise:
    """A graded cell, its check, and the solution cell above it.

    ``missing`` has the parts that cannot be run on this machine, and why.
    """

    check: Check  # the check; its name is the graded cell's ``grade_id``
    solution_id: str  # the ``grade_id`` of the cell that the learner fills in
    reference: str  # the solution of the lab's own text

    @property
    def name(self) -> str:
        return self.check.name

    @cached_property
    def missing(self) -> dict[str, str]:
        return self.check.not_run()

    def functions(self) -> list[str]:
        """Return the names of the functions that a learner defines, without classes and values."""
        right = self.check.right
        things = right if isinstance(right, dict) else {self.name: right}
        return [name for name, thing in things.items() if inspect.isfunction(thing)]

    def written(self, candidate: Candidate) -> str:
        """Return the solution cell of a learner who writes this candidate."""
        return candidate.cell(self.name, self.reference)

    def expects(self, candidate: Candidate) -> float:
        """Return the points that a candidate must earn on this machine."""
        return float(self.check.expects(candidate, self.missing))


@dataclass(frozen=True)
class SampleLab:
    """A released lab."""

    name: str
    release: NotebookNode
    exercises: tuple[SampleExercise, ...]

    def full(self) -> dict[str, float]:
        """Return, for each exercise, all points that can be earned on this machine."""
        return {e.name: float(e.check.earnable(e.missing)) for e in self.exercises}

    def solved(self, answers: Mapping[str, str] = MappingProxyType({})) -> NotebookNode:
        """Return a submission that solves all exercises.

        ``answers`` has the code for some exercises; each other exercise gets its reference.
        """
        nb = copy.deepcopy(self.release)
        for exercise in self.exercises:
            answer = answers.get(exercise.name, exercise.reference)
            find(nb, exercise.solution_id).source = answer
        return nb


def find(nb: NotebookNode, grade_id: str) -> NotebookNode:
    """Return the cell with an id."""
    return nb.cells[position(nb, grade_id)]


def position(nb: NotebookNode, grade_id: str) -> int:
    """Return the index of the cell with an id.

    Raises ValueError if no cell has this id.
    """
    ids = [cell.metadata.get("nbgrader", {}).get("grade_id") for cell in nb.cells]
    return ids.index(grade_id)


def load_lab(root: Path, name: str) -> SampleLab:
    """Read a lab's built source and its checks, and make its release.

    The release is generated here, because the notebook in ``release/`` may have been edited. Raises
    UserError if the lab was not built, or has no exercise with a check.
    """
    path = root / "source" / name / f"{name}.ipynb"
    if not path.exists():
        raise UserError(f"{path} does not exist; run `python -m hood build`")
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
            exercises.append(SampleExercise(checks[grade_id], solution_id, reference))
            solution_id = None
    if not exercises:
        raise UserError(f"the lab {name} has no exercise with a check")
    return SampleLab(name, release, tuple(exercises))
