"""Detect a gradebook that is older than the graded files beside it, such as a restored copy.

The gradebook counts the recorded grades: the transaction that records a grade also increases the
count. After that, the count is written into ``autograded/.recorded``. So if the gradebook's count
is smaller than the count in this file, the gradebook is an older copy, or a different gradebook.
This is true even if a process was killed between the two steps.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import Column, Integer, MetaData, String, Table, insert, select, update
from sqlalchemy.orm import Session

from hood.grader.course import Course
from hood.grader.run_record import RunRecord
from hood.grader.submission.names import printable

FILE = ".recorded"
MOST_NAMED = 5
# One row: the gradebook's own name, and how many grades were ever recorded in it.
BOOK = Table(
    "open_the_hood_book",
    MetaData(),
    Column("id", Integer, primary_key=True),
    Column("name", String(32), nullable=False),
    Column("recorded", Integer, nullable=False),
)


class Count(NamedTuple):
    """The name of a gradebook, and how many grades were recorded in this gradebook."""

    book: str
    recorded: int

    def is_older_than(self, other: Count | None) -> bool:
        """Return whether a gradebook with this count lacks grades that ``other`` includes."""
        return other is not None and (self.book != other.book or self.recorded < other.recorded)


def count_in(session: Session, more: int = 0) -> Count:
    """Increase the gradebook's count by ``more`` in this transaction, and return the new count.

    The table of the count must exist. If the gradebook has no name yet, it gets one.
    """
    if more:
        session.execute(update(BOOK).values(recorded=BOOK.c.recorded + more))
    if row := session.execute(select(BOOK.c.name, BOOK.c.recorded)).one_or_none():
        return Count(row.name, row.recorded)
    new = Count(secrets.token_hex(16), more)
    session.execute(insert(BOOK).values(id=1, name=new.book, recorded=new.recorded))
    return new


def rename_book(session: Session) -> Count:
    """Give the gradebook a new name, so that from now on it is the current gradebook."""
    session.execute(BOOK.delete())
    return count_in(session)


def count_in_files(course: Course) -> Count | None:
    """Return the last count that was written beside the graded files; None if there is no count."""
    try:
        book, recorded = _file(course).read_text(encoding="ascii").split()
        return Count(book, int(recorded))
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        return Count("", 0)  # matches no gradebook, so the files are compared


def write_count(course: Course, count: Count) -> None:
    """Write the gradebook's count beside the graded files.

    If the write fails, the file keeps a smaller count, so the gradebook does not look too old.
    """
    # The new file always has the same name. Only one run records at a time, and it overwrites the
    # file of a killed run.
    fresh = _file(course).with_name(f"{FILE}.new")
    with suppress(OSError):
        fresh.parent.mkdir(parents=True, exist_ok=True)
        fresh.write_text(f"{count.book} {count.recorded}\n", encoding="ascii")
        fresh.replace(_file(course))
        course.share(_file(course))


def _file(course: Course) -> Path:
    return Path(course.directory.root, course.directory.autograded_directory, FILE)


def unknown(course: Course, lab: str, known: Mapping[str, str]) -> list[str]:
    """Return the learners whose graded files in a lab are unknown to the gradebook.

    Args:
        known: the id of the job that gave the recorded grades, keyed by learner.
    """
    found = []
    for student in course.students("autograded", lab):
        folder = course.folder("autograded", student, lab)
        ids = {RunRecord.read(path).job_id for path in folder.glob("*.ipynb")}
        if ids - {"", known.get(student, "")}:
            found.append(f"{printable(student)} in {lab}")
    return found


def older_book(who: Collection[str]) -> str:
    """Return the error message for a gradebook that is older than some graded files."""
    named = ", ".join(list(who)[:MOST_NAMED])
    more = f" and {len(who) - MOST_NAMED} more" if len(who) > MOST_NAMED else ""
    many = f"{len(who)} learners' files" if len(who) > 1 else "one learner's files"
    return (
        "the gradebook is older than the files in autograded/: it does not know the grades of "
        f"{many} there ({named}{more}). Is it a restored copy? Then it also lacks the marks that "
        "people gave after the copy was made. It also lacks the first hand-in time of learners "
        "who asked for a regrade, so they would count as late. Nothing was graded. Restore the "
        "newest gradebook (`python -m hood restore FILE`), or go on with `--accept-older-book`: "
        "then these learners are graded again, and the time of their newest hand-in counts"
    )
