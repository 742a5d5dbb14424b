"""An exercise as a lab of its own, a learner's cells as a submission to it, a verdict as a card."""

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
from hood.verdict import Verdict

LEAST_SECONDS, PARTS = 10, 3  # of a cell's time limit
NO_VERDICT = (
    "The service could not judge this, and that is no fault of your code. Try again; if it stays "
    "so, tell your instructor."
)


class Labs:
    """The labs of a course, by their exercises. They are read again when their files change."""

    def __init__(self, course: Course):
        self._course = course
        self._read: dict[str, tuple[tuple[int, ...], LabFiles]] = {}

    def names(self) -> list[str]:
        """Return the names of the labs that have a notebook in ``source/``, in their order."""
        folder = self._course.folder("source", ".", "")
        return sorted({path.parent.name for path in folder.glob("*/*.ipynb")})

    def lab_of(self, exercise: str) -> LabFiles | None:
        """Return the lab that has an exercise of this name; None where none has."""
        for name in self.names():
            lab = self.lab(name)
            if exercise in lab_exercises(lab):
                return lab
        return None

    def lab(self, name: str) -> LabFiles:
        """Return a lab. Raises UserError when it can't be graded as it is."""
        folder = self._course.folder("source", ".", name)
        now = tuple(path.stat().st_mtime_ns for path in sorted(folder.glob("*.ipynb")))
        known = self._read.get(name)
        if known is None or known[0] != now:
            known = self._read[name] = now, read_lab(self._course, name)
        return known[1]


def lab_exercises(lab: LabFiles) -> list[str]:
    """Return the names of a lab's exercises that are judged, in their order."""
    return [name for data in lab.notebooks.values() for name in _exercises(data)]


@lru_cache(maxsize=32)
def _exercises(source: bytes) -> tuple[str, ...]:
    cells = (cell for cell in read_source(source).cells if verified_parts(cell))
    return tuple(cell.metadata.nbgrader.grade_id for cell in cells)


@dataclass(frozen=True)
class SingleExercise:
    """An exercise as a lab of its own, and the ids of its own solution cells."""

    lab: LabFiles
    asks: frozenset[str]


def exercise_alone(lab: LabFiles, exercise: str, most_seconds: int | None = None) -> SingleExercise:
    """Return a lab with the graded cell of an exercise and what that may rest on.

    That is what learners write up to there, and the lab's locked cells; of other graded cells,
    answers in words and examples none is run. A learner's cell has a third of its time, since
    others wait. Raises KeyError when the lab has no such exercise.

    Args:
        most_seconds: that all of it may take, where that is less than the lab gives it.
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
            asks = set()  # they belong to another exercise
    nb.cells = kept
    return as_file(nb), frozenset(asks)


def handed_in(lab: LabFiles, source: bytes, cells: Sequence[tuple[str, str]]) -> Submission:
    """Return the submission that a learner's cells make.

    Args:
        lab: what :func:`exercise_alone` gives.
        source: the whole lab's notebook.
        cells: id and source of the cells that the learner's kernel has run, in the order in which
            each was run last. One that is not an answer may define what an answer calls: it stands
            below the answer that was run before it. One that is as the lab has it is left out.
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
    """Return what draws the cases of a check: the same for a learner, an exercise and a day."""
    said = f"check {learner}\0{exercise}\0{day.isoformat()}"
    return hmac.new(key, said.encode(), hashlib.sha256).hexdigest()[:32]


def verdict_of(result: Result, exercise: str) -> Verdict | None:
    """Return the verdict on an exercise in a worker's result; None where the grader failed."""
    if not result.judged:
        return None
    for notebook in result.notebooks:
        found = read_verdicts(nbformat.v4.reads(notebook.data.decode()))
        if exercise in found:
            return found[exercise]
    return None


def left_out_cells(result: Result) -> bool:
    """Return whether the time of the learner's own cells was up, which may have cost an answer."""
    notes = (
        RunRecord.of(json.loads(notebook.data)["metadata"]).notes for notebook in result.notebooks
    )
    return any(note.kind is NoteKind.OWN_TIME for found in notes for note in found)


def card_of(verdict: Verdict, root: Path, shows: Mapping[str, bool]) -> dict[str, str]:
    """Return a verdict as its learner sees it: a MIME bundle of plain text and HTML.

    Args:
        root: the course's folder, for links to lessons.
        shows: whether ``misconceptions`` and ``examples`` are shown.
    """
    shown = Verdict.from_json(json.loads(without_paths(json.dumps(verdict.to_json()), root)))
    shown = shown.shown(misconceptions=shows["misconceptions"], examples=shows["examples"])
    site = lesson_url(root)
    link = lambda reads: section_on_site(shown.lesson, reads, site, root)  # noqa: E731
    bundle = VerdictCard(shown, shown.lesson, link)._repr_mimebundle_()
    return {kind: bundle[kind] for kind in ("text/plain", "text/html")}
