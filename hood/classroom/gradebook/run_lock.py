"""One run at a time may change a course's grades."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager

from hood import UserError
from hood.grader.course import Course


@contextmanager
def only_one(course: Course) -> Iterator[None]:
    """Lock the course's ``autograded/`` folder; the lock ends with the process, even if killed.

    Raises UserError when another run holds the lock.
    """
    directory = course.directory
    folder = os.path.join(directory.root, directory.autograded_directory)
    os.makedirs(folder, exist_ok=True)
    held = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(
                f"another `python -m hood grade` is running in {directory.root}: wait for it, "
                "or stop it with Ctrl-C; recorded grades are kept"
            ) from None
        yield
    finally:
        os.close(held)
