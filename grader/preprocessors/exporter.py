"""The exporter of ``nbgrader autograde``: it hands on the rebuilt notebook, never the file."""

from __future__ import annotations

import os
import secrets
import tempfile
from functools import cached_property
from pathlib import Path
from typing import Any

import nbformat
from nbconvert.exporters import NotebookExporter
from nbformat.notebooknode import NotebookNode
from nbgrader.converters import Autograde
from nbgrader.converters.base import BaseConverter
from traitlets import Bool, Float

import grader.judging.examiner  # early, so that no submission's time includes it  # noqa: F401
from grader.metadata import KEY
from grader.run_record import RunRecord, record
from grader.submission.bounds import SECONDS, TOO_MUCH, TooMuchWork, alarmed
from grader.submission.companions import (
    given_files,
    merged,
    place,
    read_companions,
    shown,
)
from grader.submission.digest import digest
from grader.submission.files import read_notebook
from grader.submission.nbgrader_guard import guard
from grader.submission.notebook import Unreadable
from grader.submission.notes import Note
from grader.submission.rebuild import rebuild


class _Copying(BaseConverter):
    """Override nbgrader's copying; it comes before BaseConverter in the method resolution order."""

    def init_assignment(self, assignment_id: str, student_id: str) -> None:
        """Let the exporter read the folder; nbgrader would follow links and wait for FIFOs."""
        self.exporter.read_folder(assignment_id, student_id)


class CarefulAutograde(Autograde, _Copying):
    """nbgrader's Autograde, whose exporter reads the files beside a notebook.

    nbgrader has no setting for the class of a converter. But a converter makes its exporter before
    it reads any submission, so the exporter changes the converter's class to this one.
    """


class SubmissionExporter(NotebookExporter):
    """nbgrader's exporter, which rebuilds a submission before nbgrader sees it.

    ``nbgrader autograde`` makes one instance before it reads a submission. It reads each submission
    twice: from ``submitted/``, and later from ``autograded/``, into which it was written. Only
    the first is rebuilt (:func:`grader.submission.rebuild.rebuild`). Each grading draws new cases,
    also with ``--force`` and from formgrader, unless ``same_cases`` is set.

    This class also reads the files beside the notebooks, once for each submission. The notebook
    runs in a folder of its own with all of them. ``autograded/`` gets only those that are safe to
    open in a browser (:mod:`grader.submission.companions`).
    """

    parent: Any  # nbgrader's Autograde, or None

    same_cases = Bool(
        False,
        help="Draw the same hidden cases when the same submission is graded again (`--force`).",
    ).tag(config=True)

    work_seconds = Float(
        SECONDS,
        help="CPU seconds that this process may spend on one notebook's data; above, no mark.",
    ).tag(config=True)

    def __init__(self, config: Any = None, **kwargs: Any):
        super().__init__(config=config, **kwargs)
        self._graded: dict[str, RunRecord] = {}
        if self.parent is not None:
            guard()
            if type(self.parent) not in (Autograde, CarefulAutograde):
                kind = type(self.parent).__name__
                raise TypeError(f"expected nbgrader's Autograde, got {kind}")
            self.parent.__class__ = CarefulAutograde
            self._expect_every_notebook()
            self._remember_seeds()

    def from_filename(
        self, filename: str, resources: dict[str, Any] | None = None, **kwargs: Any
    ) -> tuple[NotebookNode, dict[str, Any]]:
        """Return the preprocessed notebook of a file; rebuild it first if it is a submission.

        A notebook whose data take more than ``work_seconds`` has no mark and says so.
        """
        if self.parent is None:
            return super().from_filename(filename, resources=resources, **kwargs)
        assert resources is not None
        path = Path(filename)
        source = self._source_folder(resources["nbgrader"]["assignment"]) / path.name
        source_nb = nbformat.read(source, as_version=4)
        try:
            with alarmed(self.work_seconds):
                if self.parent._sanitizing:
                    return self._rebuilt(path, source, source_nb, resources)
                return self._run(nbformat.read(path, as_version=4), source.stem, resources)
        except TooMuchWork:
            self.log.warning("%s: %s", filename, TOO_MUCH)
        nb = rebuild(Unreadable(f"{TOO_MUCH.capitalize()}."), source_nb, self.config).nb
        resources.pop(KEY, None)
        if self.parent._sanitizing:
            return self._sanitized(nb, path, resources)
        return self._run(nb, source.stem, resources)

    def _rebuilt(
        self, path: Path, source: Path, source_nb: NotebookNode, resources: dict[str, Any]
    ) -> tuple[NotebookNode, dict[str, Any]]:
        came = self._companions
        submitted, note = self._read_notebook(path.parent, source)
        notes = [*came.notes, *came.time_notes, *([note] if note else [])]
        nb = rebuild(submitted, source_nb, self.config, notes).nb
        submission = digest({path.stem: submitted}, came.files)
        before = self._graded.get(self._destination(str(path)), RunRecord())
        again = came.whole and before.submission == submission
        stored = before.seed if again and self.same_cases else ""
        record(nb, submission=submission, seed=stored or secrets.token_hex(16))
        resources[KEY] = {"again": again}
        return self._sanitized(nb, path, resources)

    def _sanitized(
        self, nb: NotebookNode, path: Path, resources: dict[str, Any]
    ) -> tuple[NotebookNode, dict[str, Any]]:
        resources["metadata"] = {"name": path.stem, "path": str(path.parent)}
        return self.from_notebook_node(nb, resources=resources)

    def read_folder(self, assignment: str, student: str) -> None:
        """Read the files beside a submission's notebooks; copy the safe ones to ``autograded/``.

        :class:`CarefulAutograde` calls this for each submission, before its notebooks are read.
        """
        converter, course = self.parent, self.parent.coursedir
        folder = Path(converter._format_source(assignment, student))
        graded = Path(converter._format_dest(assignment, student))
        came = self._companions = read_companions(folder, course.ignore, self._given)
        kept = set(converter.exclude_overwriting.get(assignment, ())) & set(came.files)
        given = {name: data for name, data in self._given.items() if name not in kept}
        self._beside = merged(came.files, given)
        graded.mkdir(parents=True, exist_ok=True)
        for left in graded.rglob("*"):  # of an earlier grading, if only some notebooks are regraded
            if left.suffix != ".ipynb" and not left.is_dir():
                left.unlink()
        place(shown(self._beside, given), graded)

    def _run(
        self, nb: NotebookNode, name: str, resources: dict[str, Any]
    ) -> tuple[NotebookNode, dict[str, Any]]:
        """Run the preprocessors on a notebook, in a temporary folder with its files."""
        with tempfile.TemporaryDirectory(prefix="submission-") as folder:
            place(self._beside, Path(folder))
            resources["metadata"] = {"name": name, "path": folder}
            return self.from_notebook_node(nb, resources=resources)

    def _read_notebook(self, folder: Path, source: Path) -> tuple[bytes | Unreadable, Note | None]:
        if self._companions.problem:
            return Unreadable(self._companions.problem), None
        return read_notebook(folder, source.name, self._names(source.parent))

    @cached_property
    def _given(self) -> dict[str, bytes]:
        """The lab's own files beside its notebooks, by relative path."""
        course = self.parent.coursedir
        return given_files(self._source_folder(course.assignment_id), course.ignore)

    def _source_folder(self, assignment: str) -> Path:
        course = self.parent.coursedir
        return Path(course.format_path(course.source_directory, ".", assignment))

    def _names(self, source_folder: Path) -> list[str]:
        return sorted(path.name for path in source_folder.glob("*.ipynb"))

    def _expect_every_notebook(self) -> None:
        """Make nbgrader also grade submissions that have no notebook of an expected name.

        By itself it would skip them and keep their old marks.
        """
        course, assignments = self.parent.coursedir, self.parent.assignments
        expected = self._names(self._source_folder(course.assignment_id))
        if course.notebook_id != "*" or not expected:
            return
        pattern = Path(self.parent._format_source(course.assignment_id, course.student_id))
        for folder in Path(pattern.anchor).glob(str(pattern.relative_to(pattern.anchor))):
            found = [Path(path).name for path in assignments.get(str(folder), [])]
            if os.path.lexists(folder) and not set(found) & set(expected):
                assignments[str(folder)] = [str(folder / name) for name in expected]

    def _remember_seeds(self) -> None:
        """Read the metadata of earlier gradings, which nbgrader deletes before it grades again."""
        for notebooks in self.parent.assignments.values():
            for filename in notebooks:
                destination = self._destination(filename)
                self._graded[destination] = RunRecord.read(Path(destination))

    def _destination(self, filename: str) -> str:
        course, path = self.parent.coursedir, Path(filename)
        student = self.parent.init_single_notebook_resources(filename)["nbgrader"]["student"]
        folder = course.format_path(course.autograded_directory, student, path.parent.name)
        return str(Path(folder) / path.name)
