"""Make a lab from one exercise, a submission from a learner's cells, and a card from a verdict."""

from __future__ import annotations

import copy
import hashlib
import hmac
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import lru_cache
from pathlib import Path
from typing import Any

import nbformat
from nbformat.notebooknode import NotebookNode
from nbformat.v4 import new_code_cell, new_notebook
from nbgrader.utils import is_grade, is_solution

from hood.addresses import lesson_url, section_on_site
from hood.classroom.feedback.feedback import without_paths
from hood.grader.batch.intake import read_lab
from hood.grader.batch.job import LabFiles, Result, Submission, as_file, read_source
from hood.grader.course import Course
from hood.grader.execution.graded_cell import read_verdicts, verified_parts
from hood.grader.run_record import RunRecord
from hood.grader.sandbox.limits import Limits
from hood.grader.submission.notes import NoteKind
from hood.grader.submission.rebuild import is_owned
from hood.judge.card import VerdictCard
from hood.metadata import KEY
from hood.verdict import VERDICT_MIME, Verdict

LEAST_SECONDS, PARTS = 10, 3  # the smallest limit of a cell, and the divisor of its usual limit
NO_VERDICT = (
    "The service could not judge this answer; your code is not the cause. Try again. If there is "
    "no verdict again, tell your instructor."
)


class Labs:
    """The labs of a course, and their exercises.

    The labs are read again when their files change.
    """

    def __init__(self, course: Course):
        self._course = course
        self._read: dict[str, tuple[tuple[int, ...], LabFiles]] = {}

    def names(self) -> list[str]:
        """Return the sorted names of the labs that have a notebook in ``source/``."""
        folder = self._course.folder("source", ".", "")
        return sorted({path.parent.name for path in folder.glob("*/*.ipynb")})

    def lab_of(self, exercise: str) -> LabFiles | None:
        """Return the lab that has an exercise of this name; None if there is no such lab."""
        for name in self.names():
            lab = self.lab(name)
            if exercise in lab_exercises(lab):
                return lab
        return None

    def lab(self, name: str) -> LabFiles:
        """Return a lab. Raises UserError if the lab can't be graded in its present form."""
        folder = self._course.folder("source", ".", name)
        now = tuple(path.stat().st_mtime_ns for path in sorted(folder.glob("*.ipynb")))
        known = self._read.get(name)
        if known is None or known[0] != now:
            known = self._read[name] = now, read_lab(self._course, name)
        return known[1]


def lab_exercises(lab: LabFiles) -> list[str]:
    """Return the names of the exercises in a lab that have checks, in the lab's order."""
    return [name for data in lab.notebooks.values() for name in _exercises(data)]


@lru_cache(maxsize=32)
def _exercises(source: bytes) -> tuple[str, ...]:
    cells = (cell for cell in read_source(source).cells if verified_parts(cell))
    return tuple(cell.metadata.nbgrader.grade_id for cell in cells)


@dataclass(frozen=True)
class SingleExercise:
    """A lab with only one exercise, and the ids of the exercise's solution cells."""

    lab: LabFiles
    asks: frozenset[str]


def exercise_alone(lab: LabFiles, exercise: str, most_seconds: int | None = None) -> SingleExercise:
    """Return a lab with the graded cell of one exercise, and the cells that this cell may need.

    The needed cells are the solution cells and locked cells above the graded cell. Other graded
    cells, written answers and examples are not run. A learner's cell gets a third of its usual
    time, because other learners wait. Raises KeyError if the lab has no such exercise.

    Args:
        most_seconds: a time limit for the whole lab, which applies if it is lower than the lab's
            own limit.
    """
    for name, data in lab.notebooks.items():
        if exercise in _exercises(data):
            alone, asks = _alone(data, exercise, most_seconds)
            config = copy.deepcopy(lab.config)
            seconds = Limits.of(read_source(data).metadata).cell_seconds
            config.Execute.max_cell_seconds = max(LEAST_SECONDS, seconds // PARTS)
            return SingleExercise(replace(lab, notebooks={name: alone}, config=config), asks)
    raise KeyError(exercise)


@lru_cache(maxsize=256)
def _alone(data: bytes, exercise: str, most_seconds: int | None) -> tuple[bytes, frozenset[str]]:
    nb = copy.copy(read_source(data))
    if most_seconds is not None:
        nb.metadata = copy.deepcopy(nb.metadata)
        limits = nb.metadata.setdefault(KEY, NotebookNode()).setdefault("limits", NotebookNode())
        limits.total_seconds = min(most_seconds, Limits.of(nb.metadata).total_seconds)
    kept: list[NotebookNode] = []
    asks: set[str] = set()
    for cell in nb.cells:
        if cell.cell_type != "code" or not is_owned(cell):
            continue
        name = cell.metadata.nbgrader.grade_id
        if not is_grade(cell):
            kept.append(cell)
            asks |= {name} if is_solution(cell) else set()
        elif name == exercise:
            kept.append(cell)
            break
        else:
            asks = set()  # these cells belong to another exercise
    nb.cells = kept
    return as_file(nb), frozenset(asks)


def handed_in(lab: LabFiles, source: bytes, cells: Sequence[tuple[str, str]]) -> Submission:
    """Return a submission made from a learner's cells.

    Args:
        lab: the lab from :func:`exercise_alone`.
        source: the whole lab's notebook.
        cells: the cells that the learner's kernel has run, each as its id and source, in the order
            of their last runs. A cell that is not an answer may define names that an answer uses.
            Such a cell is placed below the last answer that was run before this cell. An unchanged
            cell of the lab is left out.
    """
    [(name, data)] = lab.notebooks.items()
    answers = {
        cell.id: cell.metadata.nbgrader for cell in read_source(data).cells if is_solution(cell)
    }
    ours = {cell.id: cell for cell in read_source(source).cells}
    places: dict[str, list[NotebookNode]] = {answer: [] for answer in ("", *answers)}
    last = ""
    for cell_id, text in cells:
        if cell_id in answers:
            last = cell_id
            marks = {"nbgrader": dict(answers[cell_id])}
            places[cell_id].insert(0, new_code_cell(text, metadata=marks))
        elif cell_id not in ours or not (is_owned(ours[cell_id]) or ours[cell_id].source == text):
            places[last].append(new_code_cell(text))
    made = new_notebook(cells=[cell for place in places.values() for cell in place])
    return Submission({name: nbformat.writes(made).encode()})


def seed_of(key: bytes, learner: str, exercise: str, day: date) -> str:
    """Return the seed of a check's cases. It depends on the learner, the exercise and the day."""
    said = f"check {learner}\0{exercise}\0{day.isoformat()}"
    return hmac.new(key, said.encode(), hashlib.sha256).hexdigest()[:32]


def verdict_of(result: Result, exercise: str) -> Verdict | None:
    """Return the verdict on an exercise from a worker's result; None if the grader failed."""
    if not result.judged:
        return None
    for notebook in result.notebooks:
        found = read_verdicts(nbformat.v4.reads(notebook.data.decode()))
        if exercise in found:
            return found[exercise]
    return None


def left_out_cells(result: Result) -> bool:
    """Return whether the learner's added cells ran out of time. An answer may then be missing."""
    notes = (
        RunRecord.of(json.loads(notebook.data)["metadata"]).notes for notebook in result.notebooks
    )
    return any(note.kind is NoteKind.OWN_TIME for found in notes for note in found)


def card_of(verdict: Verdict, root: Path, shows: Mapping[str, bool]) -> dict[str, Any]:
    """Return the card that shows a verdict to its learner: a MIME bundle of plain text and HTML.

    The bundle also has the verdict's status and points for the learner's own page of progress. It
    does not have the whole verdict, because a verdict contains the seed of its cases.

    Args:
        root: the course's folder, which is needed for links to lessons.
        shows: whether the card shows ``misconceptions`` and ``examples``.
    """
    shown = Verdict.from_json(json.loads(without_paths(json.dumps(verdict.to_json()), root)))
    shown = shown.shown(misconceptions=shows["misconceptions"], examples=shows["examples"])
    site = lesson_url(root)
    link = lambda reads: section_on_site(shown.lesson, reads, site, root)  # noqa: E731
    bundle = VerdictCard(shown, shown.lesson, link)._repr_mimebundle_()
    known = {"status": shown.status, "earned": shown.earned}
    return {kind: bundle[kind] for kind in ("text/plain", "text/html")} | {VERDICT_MIME: known}
