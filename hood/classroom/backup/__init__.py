"""Save the results of a class in one file, and restore them: ``backup FILE``, ``restore FILE``.

The file has the gradebook, the hand-ins, graded files with their run records, feedback, the class's
rules and roster, the texts of releases and the secret key of pseudonyms. The file does not contain
labs, checks and settings, because the project has them. The file does not contain the service's key
either, because anybody with that key could make tokens. A service without a key makes a new key.
"""

from __future__ import annotations

import sqlite3
from contextlib import AbstractContextManager, closing
from pathlib import Path

from hood.classroom.gradebook.pseudonyms import KEY_FILE
from hood.classroom.gradebook.run_lock import locked
from hood.classroom.hand_ins.store import RECEIVED
from hood.classroom.rules.reading import FILE
from hood.grader.course import Course
from hood.grader.submission.released import FOLDER

FORMAT = 1
MANIFEST = "manifest.json"
BOOK, ROSTER = "gradebook.db", "roster"
STEPS = ("autograded", "submitted", "feedback")
TABLES = (".csv", ".tsv", ".txt")  # the allowed endings of a roster; no program runs such files
README = "README.md"  # the project's own file in autograded/


def archived_paths(course: Course, roster: str = "") -> dict[str, Path]:
    """Return a mapping from the name of each archive entry to the path of its file or folder.

    Args:
        roster: the path of the roster's file in the course's folder; empty if there is no roster.
    """
    found = {BOOK: course.database} if course.database else {}
    for step in STEPS:
        found[step] = Path(course.directory.root, getattr(course.directory, f"{step}_directory"))
    found |= {name: course.root / name for name in (RECEIVED, FOLDER, FILE, KEY_FILE)}
    return found | ({ROSTER: course.root / roster} if roster else {})


def is_table(roster: object) -> bool:
    """Return whether the name of a roster's file has one of the endings in ``TABLES``."""
    return isinstance(roster, str) and roster.lower().endswith(TABLES)


def damage(book: Path) -> str:
    """Return SQLite's error about a gradebook's file; empty if the file is not damaged."""
    with closing(sqlite3.connect(book)) as database:
        try:
            [said] = database.execute("PRAGMA quick_check(1)").fetchone()
        except sqlite3.DatabaseError as error:
            return str(error)
    return "" if said == "ok" else str(said)


def lock_folder(root: Path) -> AbstractContextManager[None]:
    """Lock the course's folder against other backups and restores, until this process ends.

    Raises UserError if another process has the lock.
    """
    return locked(root, f"another backup or restore is running in {root}: wait until it ends")
