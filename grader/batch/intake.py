"""Reads labs and submissions from a course folder and makes jobs of them."""

from __future__ import annotations

import glob
import hashlib
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase
from pathlib import Path

import nbformat
from nbgrader.converters import Autograde
from nbgrader.utils import find_all_files
from traitlets.config import Config

from grader import UserError
from grader.batch.job import Lab
from grader.batch.version import version
from grader.course import Course
from grader.submission.companions import unshown
from grader.submission.files import (
    TIMESTAMP,
    read_beside,
    read_notebook,
    read_timestamp,
    why_no_folder,
)
from grader.submission.fingerprint import digest, digest_of
from grader.submission.notebook import Unreadable
from grader.submission.notes import Note, not_shown

# Settings that say where things are, not how they are graded.
PLACES = ("CourseDirectory", "Exchange", "ExchangeFactory")


@dataclass(frozen=True)
class Submission:
    """What lies in one learner's folder.

    Attributes:
        notebooks: each expected one by name without ``.ipynb``, or why there is none.
        files: the others, by relative path, without nbgrader's timestamp.
        notes: what is to be said about the submission as a whole.
        renamed: what is to be said about a notebook that had another name.
        timestamp: when it was handed in, if that is known.
        time_file: the file that says so, as it came, or empty.
        digest: SHA-256 of all that a sandbox can see of it.
    """

    notebooks: Mapping[str, bytes | Unreadable]
    files: Mapping[str, bytes]
    notes: tuple[Note, ...]
    renamed: Mapping[str, Note]
    timestamp: str | None
    time_file: bytes
    digest: str

    def key(self, lab: Lab, sandbox: bool) -> str:
        """Names this submission, the lab, the grader and the way of grading."""
        said = [note.message for note in self.notes]
        return digest_of([lab.digest, self.digest, str(self.timestamp), *said, str(sandbox)])


def read_lab(course: Course, name: str) -> Lab:
    """The instructor's notebooks and files of an assignment.

    Raises:
        UserError: when there are none, or one is no notebook.
    """
    folder = course.folder("source", ".", name)
    notebooks = {path.stem: path.read_bytes() for path in sorted(folder.glob("*.ipynb"))}
    if not notebooks:
        known = sorted({path.parent.name for path in folder.parent.glob("*/*.ipynb")})
        raise UserError(
            f"there is no notebook in {folder}; the course has {', '.join(known) or 'no lab yet'}"
        )
    ignore = [*course.directory.ignore, "*.ipynb"]
    files = {
        Path(path).relative_to(folder).as_posix(): Path(path).read_bytes()
        for path in sorted(find_all_files(str(folder), ignore))
    }
    kept = tuple(Autograde(config=course.config).exclude_overwriting.get(name, ()))
    graded_by = version(name)
    config = Config({k: v for k, v in course.config.items() if k not in PLACES})
    settings = json.dumps(config, sort_keys=True, default=_name_of)
    parts = [f"{k}\0{hashlib.sha256(v).hexdigest()}" for k, v in (notebooks | files).items()]
    return Lab(
        name=name,
        notebooks=notebooks,
        files=files,
        kept=kept,
        config=config,
        version=graded_by,
        digest=digest_of([*parts, *kept, settings, graded_by]),
        gpu=any(_needs_gpu(name, data) for name, data in notebooks.items()),
    )


def find_students(course: Course, lab: str, patterns: Sequence[str] = ()) -> list[str]:
    """Everyone who has something under the lab's name in ``submitted/``, sorted.

    Args:
        patterns: of student ids; all when there are none.
    """
    directory = course.directory
    where = directory.directory_structure.format(
        nbgrader_step=directory.submitted_directory,
        student_id="*",
        assignment_id=glob.escape(lab),
    )
    form = re.compile(
        directory.format_path(
            directory.submitted_directory, "(?P<student>[^/]*)", re.escape(lab), escape=True
        )
    )
    excluded = directory.student_id_exclude.split(",")
    found = set()
    for path in glob.iglob(os.path.join(glob.escape(directory.root), where)):
        match = form.fullmatch(path)
        if match and match["student"] not in excluded:
            found.add(match["student"])
    if not patterns:
        return sorted(found)
    return sorted(s for s in found if any(fnmatchcase(s, pattern) for pattern in patterns))


def read_submission_of(course: Course, lab: Lab, student: str) -> Submission:
    """Everything that a learner handed in; whatever is wrong with it is said, never raised."""
    folder = course.folder("submitted", student, lab.name)
    names = [f"{name}.ipynb" for name in lab.notebooks]
    files: dict[str, bytes] = {}
    notes: list[Note] = []
    renamed: dict[str, Note] = {}
    timestamp: datetime | None = None
    time_file = b""
    wrong: list[Note] = []
    notebooks: dict[str, bytes | Unreadable]
    problem = why_no_folder(folder)
    if problem:
        notebooks = {name: Unreadable(problem) for name in lab.notebooks}
    else:
        notebooks = {}
        for name in lab.notebooks:
            notebooks[name], note = read_notebook(folder, f"{name}.ipynb", names)
            if note is not None:
                renamed[name] = note
        ignore = [*course.directory.ignore, "*.ipynb"]
        files, notes = read_beside(folder, ignore)
        time_file = files.pop(TIMESTAMP, b"")
        notes += not_shown(unshown(files, lab.files))
        timestamp, wrong = read_timestamp(folder)
    return Submission(
        notebooks=notebooks,
        files=files,
        notes=(*notes, *wrong),
        renamed=renamed,
        timestamp=timestamp.isoformat() if timestamp else None,
        time_file=time_file if timestamp else b"",
        digest=digest(notebooks, files, [note.message for note in (*notes, *renamed.values())]),
    )


def _needs_gpu(name: str, data: bytes) -> bool:
    try:
        nb = nbformat.reads(data.decode(), as_version=4)
    except Exception as error:
        raise UserError(f"the source {name}.ipynb is no notebook: {error}") from None
    return bool(nb.metadata.get("open_the_hood", {}).get("gpu", False))


def _name_of(thing: object) -> str:
    """A class or function in the settings; the same in every run."""
    return getattr(thing, "__qualname__", type(thing).__qualname__)
