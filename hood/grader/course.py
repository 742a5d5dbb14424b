"""A course folder: the settings, the tables of the gradebook, and nbgrader's commands for it."""

from __future__ import annotations

import glob
import os
import re
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path

from nbgrader.converters import Autograde
from nbgrader.coursedir import CourseDirectory
from sqlalchemy import create_engine, inspect, make_url, text
from sqlalchemy.exc import DatabaseError
from traitlets.config import Config, PyFileConfigLoader

from hood import UserError
from hood.grader.nbgrader.patches import find_version_here, newest_tables
from hood.grader.submission.companions import place
from hood.grader.submission.names import nfc
from hood.phase_paths import environment_with

CONFIG = "nbgrader_config.py"
RESTORING = ".restoring"  # the folder of a restore that has begun to move files
# Parts of a path that are not read literally. `glob` reads * and ? as a pattern. In a database's
# address, ? ends the path, and %XX stands for another character.
PATTERN = re.compile(r"[*?]|%[0-9A-Fa-f]{2}")


@dataclass(frozen=True)
class Course:
    """A course folder: the settings, and nbgrader's object for the folders and the gradebook."""

    root: Path
    config: Config
    directory: CourseDirectory

    def folder(self, step: str, student: str, lab: str) -> Path:
        """Return a student's folder for a lab in ``submitted``, ``autograded`` or ``source``."""
        name = getattr(self.directory, f"{step}_directory")
        return Path(self.directory.format_path(name, student, lab))

    def students(self, step: str, lab: str) -> list[str]:
        """Return the students with a folder or file of the lab in a step such as ``submitted``."""
        name = getattr(self.directory, f"{step}_directory")
        return list(submissions(self.directory, lab, step=name))

    def share(self, *paths: Path) -> None:
        """If the course is ``groupshared``, make new files writable for the group.

        nbgrader does the same.
        """
        for path in paths if self.directory.groupshared else ():
            bits = 0o2770 if path.is_dir() else 0o660
            mode = path.stat().st_mode
            if mode & bits != bits:
                with suppress(PermissionError):
                    path.chmod((mode | bits) & 0o2777)

    @cached_property
    def autograde(self) -> Autograde:
        """nbgrader's Autograde with this course's settings; callers must not change them."""
        return Autograde(coursedir=self.directory, config=self.config)

    @property
    def has_gradebook(self) -> bool:
        """Whether there is a gradebook; a database that is not a file counts as existing."""
        return self.database is None or self.database.exists()

    @property
    def database(self) -> Path | None:
        """The gradebook's file; None if it is not a file, for example in PostgreSQL."""
        url = make_url(self.directory.db_url)
        if url.get_backend_name() != "sqlite" or not url.database:
            return None
        return self.root / url.database


def submissions(
    directory: CourseDirectory, lab: str, patterns: Sequence[str] = (), step: str = ""
) -> dict[str, list[Path]]:
    """Return each learner with a folder or file of the lab, and the learner's paths.

    Learners are sorted by their id in NFC. Names are compared in NFC. If a learner has several
    paths, the paths differ only in their code points. ``lab`` is a name, or ``*`` for all labs.
    ``patterns`` select learners by their ids; by default, all are selected. ``step`` is the
    folder's name; by default ``submitted/``.
    """
    name = step or directory.submitted_directory
    any_form = lab == "*" or not lab.isascii()  # a name in ASCII has no other form
    glob_of_lab, pattern = ("*", "[^/]*") if any_form else (glob.escape(lab), re.escape(lab))
    where = directory.directory_structure.format(
        nbgrader_step=name, student_id="*", assignment_id=glob_of_lab
    )
    form = re.compile(
        directory.format_path(name, "(?P<student>[^/]*)", f"(?P<lab>{pattern})", escape=True)
    )
    excluded = {nfc(one) for one in directory.student_id_exclude.split(",")}
    chosen = [nfc(pattern) for pattern in patterns] or ["*"]
    found: dict[str, list[Path]] = {}
    for path in sorted(glob.iglob(os.path.join(glob.escape(directory.root), where))):
        match = form.fullmatch(path)
        if match and (lab == "*" or nfc(match["lab"]) == nfc(lab)):
            student = nfc(match["student"])
            if student not in excluded and any(fnmatchcase(student, one) for one in chosen):
                found.setdefault(student, []).append(Path(path))
    return dict(sorted(found.items()))


def is_half_restored(root: Path) -> bool:
    """Return whether a restore was interrupted after it had begun to move files."""
    return (root / RESTORING / "plan.json").exists()


def refuse_half_restored(root: Path) -> None:
    """Raise UserError if a restore was interrupted."""
    if is_half_restored(root):
        raise UserError(
            "a restore was interrupted, so some files here are old and some are new: run `python "
            "-m hood restore` to finish the restore"
        )


def open_course(root: Path, half_restored: bool = False) -> Course:
    """Read the settings of a course folder and return it as a Course.

    Raises UserError if nbgrader would look elsewhere for the course's files or gradebook, or if a
    restore was interrupted and ``half_restored`` is false.
    """
    if not half_restored:
        refuse_half_restored(root)
    if odd := PATTERN.search(str(root)):
        raise UserError(
            f"the path of this course, {root}, contains {odd[0]!r}, and nbgrader does not read "
            "this part literally: rename or move the folder"
        )
    config = nbgrader_config(root)
    if "root" not in config.CourseDirectory:
        config.CourseDirectory.root = str(root)
    return Course(root, config, CourseDirectory(config=config))


def nbgrader_config(root: Path) -> Config:
    """Return the settings in ``nbgrader_config.py``; an empty Config without that file."""
    find_version_here()  # a course may have settings different from this project's
    if not (root / CONFIG).exists():
        return Config()
    before = list(sys.path)
    try:
        return PyFileConfigLoader(CONFIG, path=str(root)).load_config()
    finally:
        # The loader puts the course folder first on sys.path, for a course's own steps. Move the
        # folder to the end, because a copy of this project in the folder must not replace the
        # running project.
        sys.path[:] = before + [path for path in sys.path if path not in before]


def other_version(db_url: str) -> str:
    """Return the error if a gradebook has the tables of another nbgrader; else an empty text.

    A file that is not a database is also an error. Call this before nbgrader opens the gradebook,
    because nbgrader adds missing tables.
    """
    engine = create_engine(db_url)
    try:
        with engine.connect() as connection:
            tables = inspect(connection).get_table_names()
            if "assignment" not in tables:
                return ""
            asked = text("SELECT version_num FROM alembic_version")
            if "alembic_version" in tables and connection.scalar(asked) == newest_tables():
                return ""
    except DatabaseError as error:
        if not (why := no_gradebook(error, db_url)):
            raise
        return why
    finally:
        engine.dispose()
    return (
        f"the gradebook {_shown(db_url)} has the tables of another version of nbgrader. If that "
        "version is older, run `nbgrader db upgrade`, which keeps a copy of a SQLite gradebook. "
        "Then run this command again"
    )


def no_gradebook(error: DatabaseError, db_url: str) -> str:
    """Return the error for a file that is no database or has no nbgrader tables; else ""."""
    said = str(error.orig)
    code = getattr(error.orig, "sqlite_errorcode", 0) & 0xFF
    if "no such table" in said:  # the file is new, or the service made it
        return (
            f"{_shown(db_url)} has no grades yet: grade a lab first. If this file had grades "
            "before, replace it with a copy of the gradebook"
        )
    if code not in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
        return ""
    return (
        f"{_shown(db_url)} is not a gradebook: {said}. Replace this file with a copy of the "
        "gradebook. If there is no copy, move this file away and grade the lab"
    )


def _shown(db_url: str) -> str:
    return make_url(db_url).set(query={}).render_as_string()


def enter_lab(root: Path, lab: str, only: Mapping[str, bytes] | None = None) -> None:
    """Make nbgrader add the lab to the gradebook, without changing the built release.

    Args:
        only: the lab's notebooks, if the lab's folder in ``source/`` also has other notebooks.
    """
    with tempfile.TemporaryDirectory() as folder:
        more = [f"--CourseDirectory.release_directory={folder}/release"]
        if only is not None:
            place({f"{lab}/{name}.ipynb": data for name, data in only.items()}, Path(folder))
            more.append(f"--CourseDirectory.source_directory={folder}")
        nbgrader(root, "generate_assignment", lab, "--force", *more)


def nbgrader(root: Path, *words: str) -> None:
    """Run an nbgrader command in the course folder.

    Raises UserError, with the end of the command's log, if the command fails.
    """
    run_module(root, "hood.grader.nbgrader", *words)


def run_module(root: Path, module: str, *words: str, shown: bool = False) -> None:
    """Run ``python -m MODULE`` in the course folder, with that folder first on PYTHONPATH.

    With ``shown``, the module writes to this process's terminal. Raises UserError if the module
    fails; without ``shown``, the error has the last 20 lines of output.
    """
    done = subprocess.run(
        [sys.executable, "-m", module, *words],
        cwd=root,
        env=environment_with(root),
        stdout=None if shown else subprocess.PIPE,
        stderr=None if shown else subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode:
        log = "" if shown else ":\n" + "\n".join(done.stdout.splitlines()[-20:])
        raise UserError(f"{module} {words[0]} failed{log}")
