"""Write graded submissions into ``autograded/``, each one completely or not at all, in one run."""

from __future__ import annotations

import fcntl
import glob
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from grader import UserError
from grader.batch.job import NotebookResult
from grader.course import Course
from grader.whole_file import write_whole


@contextmanager
def only_one(course: Course) -> Iterator[None]:
    """Lock the course's ``autograded/`` folder; the lock ends with the process, even if killed.

    Raises:
        UserError: when another run holds the lock.
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
                f"another `python -m grader grade` is running in {directory.root}: wait for it, "
                "or stop it with Ctrl-C; recorded grades are kept"
            ) from None
        yield
    finally:
        os.close(held)


@contextmanager
def replaced(
    course: Course,
    student: str,
    lab: str,
    notebooks: Sequence[NotebookResult],
    beside: Mapping[str, bytes],
) -> Iterator[None]:
    """Replace a submission's graded files.

    When that or the enclosed code fails, the old files are put back. If the process is killed
    in between, the old files, the new files or none are there.

    Args:
        beside: the other files, by relative path.
    """
    folder = course.folder("autograded", student, lab)
    root = os.path.normpath(course.folder("autograded", ".", "."))
    folder.parent.mkdir(parents=True, exist_ok=True)
    course.share(*(path for path in folder.parents if path.is_relative_to(root)))
    for left in folder.parent.glob(f".{glob.escape(lab)}.*"):  # left by a killed run
        shutil.rmtree(left, ignore_errors=True)
    new = Path(tempfile.mkdtemp(prefix=f".{lab}.", dir=folder.parent))
    old = new.with_name(f"{new.name}.old")
    try:
        for name, data in beside.items():
            _write(course, new / name, data)
        for notebook in notebooks:
            _write(course, new / f"{notebook.name}.ipynb", notebook.data)
        for inside, _, _ in os.walk(new):
            os.chmod(inside, 0o755)
            course.share(Path(inside))
        if os.path.lexists(folder):
            folder.rename(old)
        new.rename(folder)
        yield
    except BaseException:
        if not new.exists():
            folder.rename(new)
        if os.path.lexists(old):
            old.rename(folder)
        raise
    finally:
        for left in (new, old):
            shutil.rmtree(left, ignore_errors=True)
        with suppress(OSError):
            old.unlink()  # no folder


def _write(course: Course, path: Path, data: bytes) -> None:
    write_whole(path, data)
    path.chmod(int(str(course.autograde.permissions), 8))
