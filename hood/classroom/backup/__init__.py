"""One file with what the results of a class need, and back: ``backup FILE``, ``restore FILE``.

In it are the gradebook, what was handed in, graded files with their run records, feedback, the
class's rules and its roster, the texts of releases and the key of pseudonyms. Not in it are labs,
checks and settings, which the project has, and the service's key: who has that one can make a
token for anybody, and a service without one makes another.
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
TABLES = (".csv", ".tsv", ".txt")  # endings of a roster; nothing runs a file with one of them
README = "README.md"  # in autograded/; the project's own


def archived_paths(course: Course, roster: str = "") -> dict[str, Path]:
    """Return where what belongs into an archive is in a course, by its name in the archive.

    Args:
        roster: the path of its file in the course's folder; without one there is none.
    """
    found = {BOOK: course.database} if course.database else {}
    for step in STEPS:
        found[step] = Path(course.directory.root, getattr(course.directory, f"{step}_directory"))
    found |= {name: course.root / name for name in (RECEIVED, FOLDER, FILE, KEY_FILE)}
    return found | ({ROSTER: course.root / roster} if roster else {})


def is_table(roster: object) -> bool:
    """Return whether a roster has the name of a table, and so of no file that something runs."""
    return isinstance(roster, str) and roster.lower().endswith(TABLES)


def damage(book: Path) -> str:
    """Return what SQLite says is wrong in a gradebook's file; empty where nothing is."""
    with closing(sqlite3.connect(book)) as database:
        try:
            [said] = database.execute("PRAGMA quick_check(1)").fetchone()
        except sqlite3.DatabaseError as error:
            return str(error)
    return "" if said == "ok" else str(said)


def lock_folder(root: Path) -> AbstractContextManager[None]:
    """Lock the course's folder against another backup or restore; it ends with the process.

    Raises UserError when another one holds the lock.
    """
    return locked(root, f"another backup or restore is running in {root}: wait")
