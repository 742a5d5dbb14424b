"""Writes graded submissions into ``autograded/``: all of one, or nothing."""

from __future__ import annotations

import glob
import json
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nbgrader.converters import Autograde

from grader.batch.job import GradedNotebook
from grader.course import Course
from grader.submission.files import read_file
from grader.submission.fingerprint import digest
from grader.submission.notebook import Unreadable


class AutogradedFiles:
    """The folder ``autograded/`` of a course."""

    def __init__(self, course: Course):
        self.course = course
        shared = course.directory.groupshared
        settings = Autograde(coursedir=course.directory, config=course.config)
        self._file_mode = int(str(settings.permissions), 8)
        self._folder_mode = 0o2775 if shared else 0o755

    def write(
        self,
        student: str,
        lab: str,
        notebooks: Sequence[GradedNotebook],
        beside: Mapping[str, bytes],
    ) -> str:
        """Put a submission in the place of what was there; returns its stamp.

        It is written aside first. Killed in between, there is the old one, the new one or none.

        Raises:
            OSError: when the disk is full, for example; what was there is still there.
        """
        folder = self.course.folder("autograded", student, lab)
        folder.parent.mkdir(parents=True, exist_ok=True)
        for left in folder.parent.glob(f".{glob.escape(lab)}.*"):  # by a run that was killed
            shutil.rmtree(left, ignore_errors=True)
        new = Path(tempfile.mkdtemp(prefix=f".{lab}.", dir=folder.parent))
        try:
            for name, data in beside.items():
                self._write(new / name, data)
            for notebook in notebooks:
                self._write(new / f"{notebook.name}.ipynb", notebook.data)
            for inside, _, _ in os.walk(new):
                os.chmod(inside, self._folder_mode)
            old = new.with_name(f"{new.name}.old")
            if os.path.lexists(folder):
                folder.rename(old)
            new.rename(folder)
        except BaseException:
            shutil.rmtree(new, ignore_errors=True)
            raise
        if old.is_dir() and not old.is_symlink():
            shutil.rmtree(old, ignore_errors=True)
        elif os.path.lexists(old):
            old.unlink()
        return self.stamp(student, lab, [notebook.name for notebook in notebooks])

    def stamp(self, student: str, lab: str, names: Sequence[str]) -> str:
        """Sizes and times of the notebooks that are there, empty when one is missing."""
        folder = self.course.folder("autograded", student, lab)
        try:
            found = [(folder / f"{name}.ipynb").stat() for name in names]
        except OSError:
            return ""
        return " ".join(f"{one.st_size}:{one.st_mtime_ns}" for one in found)

    def metadata(self, student: str, lab: str, name: str) -> dict[str, Any]:
        """The grader's own metadata of a notebook, empty when there is none."""
        data = read_file(self.course.folder("autograded", student, lab) / f"{name}.ipynb")
        if isinstance(data, Unreadable):
            return {}
        try:
            found = json.loads(data)["metadata"]["open_the_hood"]
            return found if isinstance(found, dict) else {}
        except (TypeError, ValueError, KeyError):
            return {}

    def seeds_of_plain_grading(
        self,
        student: str,
        lab: str,
        notebooks: Mapping[str, bytes | Unreadable],
        files: Mapping[str, bytes],
    ) -> dict[str, str]:
        """Seeds with which ``nbgrader autograde`` graded this same submission, where it did."""
        seeds = {}
        for name, data in notebooks.items():
            ours = self.metadata(student, lab, name)
            same = ours.get("submission") == digest({name: data}, files)
            if "key" not in ours and same and ours.get("seed"):
                seeds[name] = ours["seed"]
        return seeds

    def _write(self, path: Path, data: bytes) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        path.chmod(self._file_mode)
