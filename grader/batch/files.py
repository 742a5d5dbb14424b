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
from grader.run_record import RunRecord
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


class AutogradedFiles:
    """The folder ``autograded/`` of a course."""

    def __init__(self, course: Course):
        self.course = course
        self._file_mode = int(str(course.autograde.permissions), 8)
        self._root = Path(os.path.normpath(course.folder("autograded", ".", ".")))

    @contextmanager
    def replaced(
        self,
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
        folder = self.course.folder("autograded", student, lab)
        folder.parent.mkdir(parents=True, exist_ok=True)
        self.course.share(*(path for path in folder.parents if path.is_relative_to(self._root)))
        for left in folder.parent.glob(f".{glob.escape(lab)}.*"):  # left by a killed run
            shutil.rmtree(left, ignore_errors=True)
        new = Path(tempfile.mkdtemp(prefix=f".{lab}.", dir=folder.parent))
        old = new.with_name(f"{new.name}.old")
        try:
            for name, data in beside.items():
                self._write(new / name, data)
            for notebook in notebooks:
                self._write(new / f"{notebook.name}.ipynb", notebook.data)
            for inside, _, _ in os.walk(new):
                os.chmod(inside, 0o755)
                self.course.share(Path(inside))
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

    def run_record(self, student: str, lab: str, name: str) -> RunRecord:
        """Read what was recorded of a notebook's run; empty when there is no such notebook."""
        return RunRecord.read(self.course.folder("autograded", student, lab) / f"{name}.ipynb")

    def _write(self, path: Path, data: bytes) -> None:
        write_whole(path, data)
        path.chmod(self._file_mode)
