"""Take in submissions: the bytes are on the disk, twice, before their receipt is given.

What came stays as it came in ``received/LAB/LEARNER/``, each under its time. The newest is the
learner's folder in ``submitted/``, where nbgrader and ``grade`` look for it. Until it and its time
stand there, what came has another ending: so a service that starts again after it was killed
meanwhile, and ``grade``, know what they have to finish.
"""

from __future__ import annotations

import fcntl
import hashlib
import logging
import os
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from grader.course import Course
from grader.results.coursefile.schema import CourseFile
from grader.submission.files import TIMESTAMP, read_timestamp
from grader.submission.names import nfc
from grader.whole_file import replacing

RECEIVED = "received"
MOST_A_DAY = 20  # hand-ins of one learner to one lab; they fill the disk
STAMP = "%Y-%m-%d %H:%M:%S.%f %Z"  # nbgrader's
FILE_STAMP = "%Y%m%dT%H%M%S.%fZ"
KEPT, BEGUN, PART = ".ipynb", ".begun", ".part"  # endings: taken in; not yet; not whole
STALE = 600.0  # seconds after which nothing more arrives in a file
LOG = logging.getLogger(__name__)


class TooManyError(Exception):
    """A learner hands in too often. ``seconds``: after which it is worth while to try again."""

    def __init__(self, said: str, seconds: float):
        super().__init__(said)
        self.seconds = seconds


@dataclass(frozen=True)
class Receipt:
    """What a learner gets for a submission.

    Attributes:
        sha256: of the notebook's bytes, in hexadecimal.
        late: whether the class's due date, with its grace, was over.
    """

    lab: str
    received: datetime  # in UTC
    bytes: int
    sha256: str
    late: bool


class Inbox:
    """The submissions of a course that came by way of the service."""

    def __init__(self, course: Course):
        self._course = course
        self._received = course.root / RECEIVED

    def arriving(self) -> Path:
        """Return the name of a new file in which a request's bytes are written as they arrive."""
        self._received.mkdir(mode=0o700, exist_ok=True)
        return self._received / f".{secrets.token_hex(8)}{PART}"

    @contextmanager
    def at_rest(self) -> Iterator[None]:
        """Have no process put anything into ``submitted/`` meanwhile.

        Else the time of one submission could stand beside the notebook of another. It holds nobody
        up where no service has taken anything in, or where one of another account does.
        """
        try:
            held = os.open(self._received, os.O_RDONLY | os.O_CLOEXEC)
        except (FileNotFoundError, PermissionError):
            yield
            return
        try:
            fcntl.flock(held, fcntl.LOCK_EX)  # it ends with the process
            yield
        finally:
            os.close(held)

    def finish(self) -> None:
        """Finish what a service that was killed had begun to take in; one may be running.

        The service calls it before it takes anything in, and ``grade`` before it looks for what was
        handed in. What had not arrived as a whole is deleted.
        """
        with self.at_rest():
            for begun in sorted(self._received.glob(f"*/*/*{BEGUN}")):
                LOG.warning("%s was not taken in to its end; it is now", begun)
                self._place(begun, begun.parent.name, begun.parent.parent.name)
        for part in self._received.glob(f".*{PART}"):
            with suppress(FileNotFoundError):  # a service may be taking it in
                if time.time() - part.stat().st_mtime > STALE:
                    LOG.warning("%s never arrived as a whole, and is deleted", part)
                    part.unlink()

    def take(self, rules: CourseFile | None, learner: str, lab: str, arrived: Path) -> Receipt:
        """Store a notebook, which is moved from ``arrived``, as a learner's newest submission.

        Raises TooManyError.
        """
        with self.at_rest():
            return self._take(rules, learner, lab, arrived)

    def _take(self, rules: CourseFile | None, learner: str, lab: str, arrived: Path) -> Receipt:
        now = datetime.now(UTC)
        folder = self._received / lab / nfc(learner)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        today = f"{now:%Y%m%d}T"
        if sum(one.name.startswith(today) for one in folder.iterdir()) >= MOST_A_DAY:
            said = f"you have handed in {lab} {MOST_A_DAY} times today (by UTC), which is all"
            tomorrow = now.replace(hour=0, minute=0, second=0) + timedelta(days=1)
            raise TooManyError(said, (tomorrow - now).total_seconds())
        begun = folder / f"{now.strftime(FILE_STAMP)}{BEGUN}"
        with arrived.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            os.fsync(file.fileno())
        arrived.rename(begun)
        _fsync(folder)
        self._place(begun, nfc(learner), lab)
        return Receipt(lab, now, size, digest, _is_late(rules, learner, lab, now))

    def _place(self, begun: Path, learner: str, lab: str) -> None:
        """Put what came into ``submitted/``, with the time that its name says."""
        came = datetime.strptime(begun.stem, FILE_STAMP).replace(tzinfo=UTC)
        target = self._course.folder("submitted", learner, lab)
        with replacing(target / TIMESTAMP) as fresh:
            fresh.write_text(came.strftime(STAMP))
            _fsync(fresh)
        with replacing(target / f"{lab}.ipynb") as fresh:
            shutil.copyfile(begun, fresh)
            _fsync(fresh)
        _fsync(target)
        self._course.share(target.parent, target)
        begun.rename(begun.with_suffix(KEPT))
        _fsync(begun.parent)

    def newest(self, rules: CourseFile | None, learner: str, lab: str) -> Receipt | None:
        """Return the receipt of a learner's submission, however it came; None without one."""
        folder = self._course.folder("submitted", nfc(learner), lab)
        path = folder / f"{lab}.ipynb"
        if not path.is_file():
            return None
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        came, _ = read_timestamp(folder)
        when = (came or datetime.fromtimestamp(path.stat().st_mtime, UTC)).replace(tzinfo=UTC)
        return Receipt(lab, when, size, digest, _is_late(rules, learner, lab, when))


def _is_late(rules: CourseFile | None, learner: str, lab: str, when: datetime) -> bool:
    deadline = rules.deadline(lab, learner) if rules else None
    return deadline is not None and deadline.is_late(when)


def _fsync(path: Path) -> None:
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
