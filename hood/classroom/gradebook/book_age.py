"""Tell a gradebook that is older than the graded files beside it, as a copy is that was restored.

Each grade that is recorded is counted in the gradebook, in the same transaction, and the count is
then written into ``autograded/.recorded``. So the gradebook's count is never the smaller one,
whatever is killed, unless the gradebook is an older copy, or another one.
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
    """How many grades were recorded in which gradebook."""

    book: str
    recorded: int

    def is_older_than(self, other: Count | None) -> bool:
        """Return whether a gradebook with this count lacks what the other one has counted."""
        return other is not None and (self.book != other.book or self.recorded < other.recorded)


def count_in(session: Session, more: int = 0) -> Count:
    """Count more grades in this transaction, and return the gradebook's count.

    The table must be there. A gradebook that has no name yet gets one.
    """
    if more:
        session.execute(update(BOOK).values(recorded=BOOK.c.recorded + more))
    if row := session.execute(select(BOOK.c.name, BOOK.c.recorded)).one_or_none():
        return Count(row.name, row.recorded)
    new = Count(secrets.token_hex(16), more)
    session.execute(insert(BOOK).values(id=1, name=new.book, recorded=new.recorded))
    return new


def rename_book(session: Session) -> Count:
    """Give the gradebook another name: from now on it is the one that counts."""
    session.execute(BOOK.delete())
    return count_in(session)


def count_in_files(course: Course) -> Count | None:
    """Return the last count that was written beside the graded files; None where there is none."""
    try:
        book, recorded = _file(course).read_text(encoding="ascii").split()
        return Count(book, int(recorded))
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        return Count("", 0)  # no gradebook's: what is unknown is looked for


def write_count(course: Course, count: Count) -> None:
    """Write the gradebook's count beside the graded files.

    Where that fails, the file has a smaller count, which accuses no gradebook.
    """
    # always the same name, as one run records at a time: what a killed one left is overwritten
    fresh = _file(course).with_name(f"{FILE}.new")
    with suppress(OSError):
        fresh.parent.mkdir(parents=True, exist_ok=True)
        fresh.write_text(f"{count.book} {count.recorded}\n", encoding="ascii")
        fresh.replace(_file(course))
        course.share(_file(course))


def _file(course: Course) -> Path:
    return Path(course.directory.root, course.directory.autograded_directory, FILE)


def unknown(course: Course, lab: str, known: Mapping[str, str]) -> list[str]:
    """Return whose graded files of a lab are not those that the gradebook has grades for.

    Args:
        known: the id of the job whose grades it has, by learner.
    """
    found = []
    for student in course.students("autograded", lab):
        folder = course.folder("autograded", student, lab)
        ids = {RunRecord.read(path).job_id for path in folder.glob("*.ipynb")}
        if ids - {"", known.get(student, "")}:
            found.append(f"{printable(student)} in {lab}")
    return found


def older_book(who: Collection[str]) -> str:
    """Return that the gradebook is older than some graded files, and what to do."""
    named = ", ".join(list(who)[:MOST_NAMED])
    more = f" and {len(who) - MOST_NAMED} more" if len(who) > MOST_NAMED else ""
    many = f"{len(who)} learners' files" if len(who) > 1 else "one learner's files"
    return (
        f"the gradebook is older than what lies in autograded/: it does not know the grades of "
        f"{many} there ({named}{more}). Is it a copy that was put back? Then it also lacks "
        "the marks that people have given since, and the time of the first hand-in of a learner "
        "who has asked for a regrade, who would be late. Nothing was graded. Put the newest "
        "gradebook back (`python -m hood restore FILE`), or go on with `--accept-older-book`: "
        "then these learners are graded again, and the time of their newest hand-in counts"
    )
