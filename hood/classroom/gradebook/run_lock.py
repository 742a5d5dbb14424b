"""Lock a course, so that only one run at a time changes its grades."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from hood import UserError
from hood.grader.course import Course


def lock_grades(course: Course) -> AbstractContextManager[None]:
    """Lock the course's ``autograded/`` folder; see :func:`locked`."""
    root = course.directory.root
    folder = Path(root, course.directory.autograded_directory)
    folder.mkdir(parents=True, exist_ok=True)
    return locked(
        folder,
        f"another `python -m hood grade` is running in {root}: wait for it, or stop it with "
        "Ctrl-C; recorded grades are kept",
    )


@contextmanager
def locked(folder: Path, otherwise: str) -> Iterator[None]:
    """Lock a folder while the enclosed code runs; if the process is killed, the lock ends too.

    Raises UserError with the message ``otherwise`` when another process has the lock.
    """
    held = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(otherwise) from None
        yield
    finally:
        os.close(held)
