"""Read labs and submissions from a course folder."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

from traitlets.config import Config

from grader import UserError
from grader.batch.job import LabFiles, Submission, read_source
from grader.batch.version import version
from grader.course import Course
from grader.metadata import KEY
from grader.submission.companions import given_files, read_companions
from grader.submission.digest import digest, digest_of
from grader.submission.files import TIMESTAMP
from grader.submission.names import nfc
from grader.submission.rebuild import as_recorded

# Settings of locations. They do not affect how a submission is graded.
PLACES = ("CourseDirectory", "Exchange", "ExchangeFactory")


def read_lab(course: Course, name: str) -> LabFiles:
    """Read the instructor's notebooks and files of an assignment.

    Raises:
        UserError: when there are none, or one is not a notebook that nbgrader can release.
    """
    folder = course.folder("source", ".", name)
    notebooks = {path.stem: path.read_bytes() for path in sorted(folder.glob("*.ipynb"))}
    if not notebooks:
        known = sorted({path.parent.name for path in folder.parent.glob("*/*.ipynb")})
        raise UserError(
            f"there is no notebook in {folder}; the course has {', '.join(known) or 'no lab yet'}"
        )
    files = given_files(folder, course.directory.ignore)
    kept = tuple(map(nfc, course.autograde.exclude_overwriting.get(name, ())))
    graded_by = version(name)
    config = Config({k: v for k, v in course.config.items() if k not in PLACES})
    for stem, data in notebooks.items():
        _require_sound(stem, data, config)
    settings = json.dumps(config, sort_keys=True, default=_name_of)
    parts = [
        f"{k}\0{hashlib.sha256(v).hexdigest()}" for k, v in (*notebooks.items(), *files.items())
    ]
    return LabFiles(
        name=name,
        notebooks=notebooks,
        files=files,
        kept=kept,
        config=config,
        version=graded_by,
        digest=digest_of([*parts, *kept, settings, graded_by]),
        gpu=any(map(_needs_gpu, notebooks.values())),
    )


def read_submission_of(course: Course, lab: LabFiles, folders: Sequence[Path]) -> Submission:
    """Read everything that a learner handed in. A learner's mistakes become notes.

    Args:
        folders: what :func:`grader.course.submissions` has of the learner.

    Raises:
        OutOfReach: when that can't be read, by no fault of the learner.
    """
    expected = [f"{name}.ipynb" for name in lab.notebooks]
    beside = read_companions(folders, expected, course.directory.ignore, lab.files)
    files = beside.files
    time_file = files.pop(TIMESTAMP, b"")
    found = [(name, *beside.notebooks[f"{name}.ipynb"]) for name in lab.notebooks]
    notebooks = {name: data for name, data, _ in found}
    renamed = {name: note for name, _, note in found if note is not None}
    said = [note.message for note in (*beside.notes, *renamed.values())]
    return Submission(
        notebooks=notebooks,
        files=files,
        notes=beside.notes + beside.time_notes,
        renamed=renamed,
        timestamp=beside.timestamp.isoformat() if beside.timestamp else None,
        time_file=time_file if beside.timestamp else b"",
        digest=digest(notebooks, files, said),
    )


def _require_sound(name: str, data: bytes, config: Config) -> None:
    try:
        nb = read_source(data)
    except Exception as error:
        raise UserError(f"the source {name}.ipynb is not a notebook: {error}") from None
    try:
        as_recorded(nb, config)
    except Exception as error:  # a region without an end, metadata of an older schema
        problem = f"{type(error).__name__}: {error}"
        raise UserError(f"nbgrader can't release the source {name}.ipynb: {problem}") from None


def _needs_gpu(data: bytes) -> bool:
    return bool(read_source(data).metadata.get(KEY, {}).get("gpu", False))


def _name_of(thing: object) -> str:
    """Return the name of a class or function in the settings, which is equal in every run."""
    return getattr(thing, "__qualname__", type(thing).__qualname__)
