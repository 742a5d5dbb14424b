"""What goes out to be graded and what comes back; light to import, for who only sends it."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

import nbformat
from nbformat.notebooknode import NotebookNode
from nbgrader.utils import is_grade, is_solution, is_task
from traitlets.config import Config

from grader.run_record import record
from grader.submission.companions import merged, shown
from grader.submission.notebook import Unreadable
from grader.submission.notes import Note, ungraded, unreadable
from grader.submission.rebuild import rebuild


@dataclass(frozen=True)
class Lab:
    """What is the same for every submission of an assignment.

    Attributes:
        name: the assignment.
        notebooks: the instructor's version of each notebook, by name without ``.ipynb``.
        files: what lies beside them, by relative path.
        kept: those of ``files`` that don't replace a learner's own.
        config: nbgrader's settings.
        version: of the grader and the checks, as :func:`grader.batch.version.version` gives it.
        digest: SHA-256 over all of it.
        gpu: whether a GPU is needed.
    """

    name: str
    notebooks: Mapping[str, bytes]
    files: Mapping[str, bytes]
    kept: tuple[str, ...]
    config: Config
    version: str
    digest: str
    gpu: bool = False


@dataclass(frozen=True)
class Job:
    """One submission, to be graded.

    Attributes:
        student: nbgrader's student id.
        notebooks: what was handed in for each notebook of the lab, or why there is nothing.
        files: the submission's other files, by relative path, without nbgrader's timestamp.
        notes: what is to be said about the submission as a whole.
        renamed: by notebook, what is to be said of a file that had another name.
        timestamp: what its timestamp.txt says, when it can be read.
        time_file: that file as it came, for ``autograded/``; no sandbox shows it.
        seed: draws the cases of its checks; a run asks everyone the same.
        seeds: by notebook, of an earlier grading that somebody asked to repeat.
        key: names the submission, the lab, the grader and the way of grading.
        digest: of all that a sandbox can see of the submission.
        graded_before: whether plain nbgrader graded this same submission.
        sandbox: False runs learners' code unprotected.
    """

    lab: Lab
    student: str
    notebooks: Mapping[str, bytes | Unreadable]
    files: Mapping[str, bytes]
    key: str
    digest: str
    notes: tuple[Note, ...] = ()
    renamed: Mapping[str, Note] = field(default_factory=dict)
    timestamp: str | None = None
    time_file: bytes = b""
    seed: str = field(default_factory=lambda: secrets.token_hex(16))
    seeds: Mapping[str, str] = field(default_factory=dict)
    graded_before: bool = False
    sandbox: bool = True

    def beside(self) -> dict[str, bytes]:
        """The files that lie beside the notebooks when they run."""
        return merged(self.files, self._given())

    def shown(self) -> dict[str, bytes]:
        """Those of them that lie beside the graded notebooks, for others to open."""
        return shown(self.beside(), self._given())

    def _given(self) -> dict[str, bytes]:
        kept = set(self.lab.kept) & set(self.files)
        return {name: data for name, data in self.lab.files.items() if name not in kept}


@dataclass(frozen=True)
class GradedNotebook:
    """A notebook with its outputs.

    Attributes:
        name: without ``.ipynb``.
        data: the file for ``autograded/``.
        seed: what its checks drew their cases from.
        scores: by graded cell; None where a person decides.
        unanswered: for each cell of the learner's, whether it is as released.
    """

    name: str
    data: bytes
    seed: str
    scores: Mapping[str, float | None]
    unanswered: Mapping[str, bool]


@dataclass(frozen=True)
class Result:
    """The outcome for one submission.

    Attributes:
        seconds: that it took.
        problem: why a person must look at it, or empty.
        retryable: the grader failed, not the learner; another try may work.
        hopeless: it seems that it would fail for everyone, as where no sandbox can be made.
    """

    notebooks: tuple[GradedNotebook, ...]
    seconds: float
    problem: str = ""
    retryable: bool = False
    hopeless: bool = False


def failed(job: Job, problem: str, seconds: float = 0.0) -> Result:
    """The result where there is no verdict: the lab as released, every mark open, and why."""
    return Result(_as_released(job, ungraded(problem), None), seconds, problem, retryable=True)


def given_up(job: Job, problem: str, seconds: float = 0.0) -> Result:
    """The result where it is the submission that can't be graded: no points, and why."""
    return Result(_as_released(job, unreadable(f"{problem.capitalize()}."), 0.0), seconds, problem)


def _as_released(job: Job, note: Note, score: float | None) -> tuple[GradedNotebook, ...]:
    notebooks = []
    for name, source in job.lab.notebooks.items():
        nb = rebuild(Unreadable(note.message), read_source(source), job.lab.config).nb
        nb.cells[0].source = note.message
        record(nb, notes=[note])
        scores = {
            # a person decides about what a learner wrote
            c.metadata.nbgrader.grade_id: None if is_solution(c) or is_task(c) else score
            for c in nb.cells
            if is_grade(c)
        }
        notebooks.append(GradedNotebook(name, as_file(nb), "", scores, {}))
    return tuple(notebooks)


@lru_cache(maxsize=8)
def read_source(data: bytes) -> NotebookNode:
    """The instructor's notebook. ``rebuild`` leaves it as it is, so one is enough for a class."""
    return nbformat.reads(data.decode(), as_version=4)


def as_file(nb: NotebookNode) -> bytes:
    """A notebook as it stands in ``autograded/``."""
    return (nbformat.writes(nb) + "\n").encode()
