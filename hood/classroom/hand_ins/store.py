"""Keep every hand-in of a learner to a lab, by whichever way it came.

What came stays in ``received/LAB/LEARNER/``, each hand-in under its time: a notebook from the
service as ``TIME.ipynb``, anything else as a folder ``TIME`` with all its files. The newest is also
the learner's folder in ``submitted/``, where nbgrader looks for it. Which of them counts is not
decided here, see :mod:`hood.classroom.rules.standing`.

The bytes from the service are on the disk, twice, before their receipt is given. Until they and
their time stand in ``submitted/``, they have another ending: so a service that starts again after
it was killed meanwhile, and ``grade``, know what they have to finish.
"""

from __future__ import annotations

import fcntl
import glob
import hashlib
import logging
import os
import re
import secrets
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path

from hood.atomic_files import read_once, replacing
from hood.classroom.rules.schema import ClassRules
from hood.classroom.rules.standing import HandInTime, by_weight
from hood.grader.course import Course
from hood.grader.submission.companions import place
from hood.grader.submission.files import (
    SECRET,
    TIMESTAMP,
    files_in,
    read_file,
    read_timestamp,
    why_no_folder,
)
from hood.grader.submission.names import nfc
from hood.grader.submission.notebook import Unreadable

RECEIVED = "received"
MOST_A_DAY = 20  # hand-ins of one learner to one lab by the service; they fill the disk
# What the service takes of one learner in a day, in all labs together. It is half of what is kept
# in one lab, so that what came today is counted before it has to make room.
MOST_BYTES_A_DAY = 100_000_000
# What is kept of one learner in one lab: of more hand-ins, those stay that may count.
MOST, MOST_BYTES = 50, 200_000_000
MOST_GIVEN = 10_000  # bytes of nbgrader's own files in each
STAMP = "%Y-%m-%d %H:%M:%S.%f %Z"  # nbgrader's
FILE_STAMP = "%Y%m%dT%H%M%S.%fZ"
STAMP_LENGTH = len("20260925T180000.000000Z")
NAME = re.compile(r"\d{8}T\d{6}\.\d{6}Z(-\d+)?(\.ipynb)?")  # of what is kept
KEPT, BEGUN, PART = ".ipynb", ".begun", ".part"  # endings: taken in; not yet; not whole
STALE = 600.0  # seconds after which nothing more arrives in a file
LOG = logging.getLogger(__name__)


class TooManyError(Exception):
    """A learner hands in too often. ``seconds``: after which it is worth while to try again."""

    def __init__(self, said: str, seconds: float):
        super().__init__(said)
        self.seconds = seconds


@dataclass(frozen=True)
class HandIn:
    """A hand-in that is kept.

    Attributes:
        path: of its folder, or of its notebook alone.
    """

    path: Path

    @property
    def name(self) -> str:
        """The name under which it is kept: its time, or when it was stored if it has none."""
        return self.path.name.removesuffix(KEPT)

    @cached_property
    def at(self) -> datetime | None:
        """When it was handed in, in UTC; None where that is not known."""
        if self.path.is_dir():
            came, _ = read_timestamp(self.path)
            return came and came.replace(tzinfo=UTC)
        return _time_of(self.name)

    @property
    def came(self) -> HandInTime:
        """What the rules of a class have to know of it."""
        return HandInTime(self.name, self.at)

    @property
    def size(self) -> int:
        """Its bytes."""
        if not self.path.is_dir():
            return self.path.stat().st_size
        every = (Path(folder, name) for folder, _, names in os.walk(self.path) for name in names)
        return sum(one.lstat().st_size for one in every)

    @contextmanager
    def folder(self, lab: str) -> Iterator[Path]:
        """Yield a folder that holds what was handed in, as ``submitted/`` would."""
        if self.path.is_dir():
            yield self.path
            return
        with tempfile.TemporaryDirectory(prefix="hand-in-") as made:
            shutil.copyfile(self.path, Path(made, f"{lab}.ipynb"))
            Path(made, TIMESTAMP).write_text(_time_of(self.name).strftime(STAMP))
            yield Path(made)


@dataclass(frozen=True)
class Taken:
    """A notebook that was taken in.

    Attributes:
        at: when it came, in UTC. What is the same as the newest is stored once, with its time.
        sha256: of its bytes, in hexadecimal.
        again: whether it is the same as the newest, and so nothing was stored.
    """

    at: datetime
    bytes: int
    sha256: str
    again: bool = False


class HandIns:
    """The hand-ins of a course."""

    def __init__(self, course: Course):
        self._course = course
        self._received = self.place = course.root / RECEIVED

    def arriving(self) -> Path:
        """Return the name of a new file in which a request's bytes are written as they arrive."""
        self._make(self._received)
        return self._received / f".{secrets.token_hex(8)}{PART}"

    def _make(self, folder: Path) -> None:
        for one in (*reversed(folder.parents), folder):
            if one.is_relative_to(self._received) and not one.is_dir():
                one.mkdir(mode=0o700, parents=True, exist_ok=True)
                self._course.share(one)

    @contextmanager
    def at_rest(self) -> Iterator[None]:
        """Have no process put anything into ``submitted/`` meanwhile.

        Else the time of one submission could stand beside the notebook of another. It holds nobody
        up where no hand-in is kept, or where one of another account keeps them.
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
        for part in (*self._received.glob(f".*{PART}"), *self._received.glob(f"*/*/.*{PART}")):
            with suppress(FileNotFoundError):  # a service may be taking it in
                if time.time() - part.stat().st_mtime > STALE:
                    LOG.warning("%s never arrived as a whole, and is deleted", part)
                    shutil.rmtree(part) if part.is_dir() else part.unlink()

    def of(self, learner: str, lab: str) -> list[HandIn]:
        """Return what is kept of a learner in a lab, in the order of time.

        Raises PermissionError where this account may not read it.
        """
        folder = self._folder(learner, lab)
        try:
            names = sorted(os.listdir(folder))
        except (FileNotFoundError, NotADirectoryError):
            return []
        found = (HandIn(folder / name) for name in names if NAME.fullmatch(name))
        return sorted(found, key=lambda one: one.name)

    def _folder(self, learner: str, lab: str) -> Path:
        return self._received / lab / nfc(learner)

    def take(self, rules: ClassRules | None, learner: str, lab: str, arrived: Path) -> Taken:
        """Store a notebook, which is moved from ``arrived``, as a learner's newest hand-in.

        Raises TooManyError.
        """
        with self.at_rest():
            return self._take(rules, nfc(learner), lab, arrived)

    def _take(self, rules: ClassRules | None, learner: str, lab: str, arrived: Path) -> Taken:
        now = datetime.now(UTC)
        with arrived.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            os.fsync(file.fileno())
        before = self.newest(learner, lab)
        if before and before.sha256 == digest and self._alone(learner, lab):
            return Taken(before.at, size, digest, again=True)
        folder = self._folder(learner, lab)
        self._make(folder)
        today = f"{now:%Y%m%d}T"
        said, labs = "", self._received.glob(f"*/{glob.escape(learner)}")
        came = [path for each in labs for path in each.glob(f"{today}*")]
        if sum(one.parent == folder for one in came) >= MOST_A_DAY:
            said = f"you have handed in {lab} {MOST_A_DAY} times today (by UTC), which is all"
        elif (in_all := size + sum(HandIn(one).size for one in came)) > MOST_BYTES_A_DAY:
            said = (
                f"with this notebook of {size / 1e6:.1f} MB you would have handed in "
                f"{in_all / 1e6:.1f} MB today (by UTC), and {MOST_BYTES_A_DAY / 1e6:g} MB are "
                "taken in a day: clear its outputs, which makes it small, and hand it in again"
            )
        if said:
            tomorrow = now.replace(hour=0, minute=0, second=0) + timedelta(days=1)
            raise TooManyError(said, (tomorrow - now).total_seconds())
        self._keep(rules, learner, lab)
        begun = folder / f"{file_stamp(now)}{BEGUN}"
        arrived.rename(begun)
        _fsync(folder)
        self._place(begun, learner, lab)
        self._make_room(rules, learner, lab)
        return Taken(now, size, digest)

    def _alone(self, learner: str, lab: str) -> bool:
        """Return whether a learner's newest hand-in is a notebook without other files."""
        folder = self._course.folder("submitted", learner, lab)
        return {path.name for path in folder.iterdir()} <= {f"{lab}.ipynb", TIMESTAMP, SECRET}

    def _place(self, begun: Path, learner: str, lab: str) -> None:
        """Put what came into ``submitted/``, with the time that its name says, and nothing else."""
        target = self._course.folder("submitted", learner, lab)
        with replacing(target / TIMESTAMP) as fresh:
            fresh.write_text(_time_of(begun.stem).strftime(STAMP))
            _fsync(fresh)
        with replacing(target / f"{lab}.ipynb") as fresh:
            shutil.copyfile(begun, fresh)
            _fsync(fresh)
        for other in target.iterdir():  # of the hand-in before, which is kept as a whole
            if other.name not in (TIMESTAMP, f"{lab}.ipynb"):
                is_folder = other.is_dir() and not other.is_symlink()
                shutil.rmtree(other, ignore_errors=True) if is_folder else other.unlink()
        _fsync(target)
        self._course.share(target.parent, target)
        begun.rename(begun.with_suffix(KEPT))
        self._course.share(begun.with_suffix(KEPT))
        _fsync(begun.parent)

    def newest(self, learner: str, lab: str) -> Taken | None:
        """Return a learner's newest hand-in, however it came; None without one."""
        folder = self._course.folder("submitted", nfc(learner), lab)
        path = folder / f"{lab}.ipynb"
        if not path.is_file():
            return None
        size, digest = _hash(path)
        came, _ = read_timestamp(folder)
        when = (came or datetime.fromtimestamp(path.stat().st_mtime, UTC)).replace(tzinfo=UTC)
        return Taken(when, size, digest)

    def keep(
        self, rules: ClassRules | None, learner: str, lab: str, folder: Path | None = None
    ) -> HandIn | None:
        """Keep what lies in ``submitted/`` now, unless it is kept already, and return it.

        Every step that puts another hand-in in its place calls this before. Of two with the same
        work one is kept where the time of the other is not known. It returns None where nothing
        lies there.

        Args:
            folder: the learner's, where its name has other code points than the id.
        """
        self._make(self._received)
        with self.at_rest():
            return self._keep(rules, nfc(learner), lab, folder)

    def keep_other(
        self,
        rules: ClassRules | None,
        learner: str,
        lab: str,
        came: datetime,
        files: Mapping[str, bytes],
    ) -> None:
        """Keep an older hand-in, which came at a time in UTC, unless one of that time is kept."""
        self._make(self._received)
        with self.at_rest():
            if not self.knows(learner, lab, came):
                at = came.replace(tzinfo=UTC)
                told = {TIMESTAMP: at.strftime(STAMP).encode()}
                self._store(nfc(learner), lab, at, {**told, **files})
                self._make_room(rules, nfc(learner), lab)

    def knows(self, learner: str, lab: str, came: datetime) -> bool:
        """Return whether a hand-in of a time, in UTC, is kept."""
        name = file_stamp(came)
        folder = self._folder(learner, lab)
        return any(os.path.lexists(folder / one) for one in (name, f"{name}{KEPT}"))

    def _keep(
        self, rules: ClassRules | None, learner: str, lab: str, folder: Path | None = None
    ) -> HandIn | None:
        folder = folder or self._course.folder("submitted", learner, lab)
        if why_no_folder(folder):
            return None
        came, _ = read_timestamp(folder)
        files = self._contents(folder, lab)
        if not came and not files.keys() - {SECRET}:
            return None
        at = came and came.replace(tzinfo=UTC)
        for one in reversed(self.of(learner, lab)):
            if None not in (one.at, at) and one.at != at:
                continue
            if _work(self._contents(one.path, lab)) == _work(files):
                if one.at or not at:
                    return one
                shutil.rmtree(one.path)  # the same, whose time is known now
        stored = self._store(learner, lab, at, files)
        self._make_room(rules, learner, lab)
        return stored

    def _contents(self, path: Path, lab: str) -> dict[str, bytes]:
        if not path.is_dir():
            return {f"{lab}.ipynb": path.read_bytes()}
        found = files_in(path, self._course.directory.ignore, ours=True)
        # nbgrader's own have room of their own: else a learner's files could crowd the time out.
        own = ((name, read_file(path / name, MOST_GIVEN)) for name in (TIMESTAMP, SECRET))
        every = (*found, *own)
        return {name: data for name, data in every if not isinstance(data, Unreadable)}

    def _store(
        self, learner: str, lab: str, at: datetime | None, files: Mapping[str, bytes]
    ) -> HandIn:
        folder = self._folder(learner, lab)
        self._make(folder)
        part = Path(tempfile.mkdtemp(prefix=".", suffix=PART, dir=folder))
        place(files, part)
        for inside, _, names in os.walk(part):
            self._course.share(Path(inside), *(Path(inside, name) for name in names))
        name = file_stamp(at or datetime.now(UTC))
        path, number = folder / name, 1
        while any(os.path.lexists(one) for one in (path, path.with_name(f"{path.name}{KEPT}"))):
            number += 1
            path = folder / f"{name}-{number}"
        part.rename(path)
        return HandIn(path)

    def _make_room(self, rules: ClassRules | None, learner: str, lab: str) -> None:
        """Remove what is more than is kept, and log it: first what its learner replaced."""
        found = {one.name: one for one in self.of(learner, lab)}
        if len(found) <= MOST and sum(one.size for one in found.values()) <= MOST_BYTES:
            return
        left = MOST_BYTES
        for number, came in enumerate(
            by_weight(rules, lab, learner, [one.came for one in found.values()])
        ):
            one = found[came.name]
            left -= one.size
            if number and (number >= MOST or left < 0):
                LOG.warning(
                    "%s is removed: of one learner and lab %s hand-ins and %g MB are kept, and "
                    "first those that may count",
                    *(one.path, MOST, MOST_BYTES / 1e6),
                )
                shutil.rmtree(one.path) if one.path.is_dir() else one.path.unlink()


def _work(files: Mapping[str, bytes]) -> dict[str, bytes]:
    return {name: data for name, data in files.items() if name not in (TIMESTAMP, SECRET)}


def file_stamp(at: datetime) -> str:
    """Return the name under which a hand-in of a time, in UTC, is kept; in the order of time."""
    return at.strftime(FILE_STAMP).rjust(STAMP_LENGTH, "0")  # C writes the year 999 in three digits


def _time_of(name: str) -> datetime:
    return datetime.strptime(name.partition("-")[0], FILE_STAMP).replace(tzinfo=UTC)


@read_once
def _hash(path: Path) -> tuple[int, str]:
    with path.open("rb") as file:
        return os.fstat(file.fileno()).st_size, hashlib.file_digest(file, "sha256").hexdigest()


def _fsync(path: Path) -> None:
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
