"""Keep every hand-in of a learner to a lab, in whichever way it arrives.

Hand-ins stay in ``received/LAB/LEARNER/``. The name of a hand-in is its time: a notebook from the
service becomes the file ``TIME.ipynb``, and any other hand-in becomes the folder ``TIME`` with all
its files. The newest hand-in is also in the learner's folder in ``submitted/``, where nbgrader
looks for it. :mod:`hood.classroom.rules.standing` decides which hand-in counts.

Before the service sends a receipt, it writes the notebook to the disk twice: into ``received/`` and
into ``submitted/``. Until the notebook and its time are in ``submitted/``, the file in
``received/`` has a different ending. From this ending, ``grade`` and a restarted service know which
hand-ins to finish.
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
# hand-ins that the service accepts from one learner for one lab in a day, to protect the disk
MOST_A_DAY = 20
# bytes that the service accepts from one learner in a day, in all labs together. This limit is half
# of ``MOST_BYTES``, so that the hand-ins of today are kept, and can be added up
MOST_BYTES_A_DAY = 100_000_000
# Limits. If a learner has more, hand-ins are removed; those that may count are removed last.
MOST = 50  # kept hand-ins of one learner for one lab
MOST_BYTES = 200_000_000  # bytes of the kept hand-ins of one learner for one lab
MOST_GIVEN = 10_000  # bytes of each of nbgrader's own files
STAMP = "%Y-%m-%d %H:%M:%S.%f %Z"  # nbgrader's format of a time
FILE_STAMP = "%Y%m%dT%H%M%S.%fZ"
STAMP_LENGTH = len("20260925T180000.000000Z")
NAME = re.compile(r"\d{8}T\d{6}\.\d{6}Z(-\d+)?(\.ipynb)?")  # the name of a kept hand-in
KEPT, BEGUN, PART = ".ipynb", ".begun", ".part"  # endings: stored; not yet stored; incomplete
STALE = 600.0  # seconds after which no process writes a file any more
LOG = logging.getLogger(__name__)


class TooManyError(Exception):
    """A learner has handed in too often, and may try again after ``seconds``."""

    def __init__(self, said: str, seconds: float):
        super().__init__(said)
        self.seconds = seconds


@dataclass(frozen=True)
class HandIn:
    """A kept hand-in.

    Attributes:
        path: the path of the hand-in's folder, or of its only notebook.
    """

    path: Path

    @property
    def name(self) -> str:
        """The hand-in's name: its time, or, without a known time, the time when it was stored."""
        return self.path.name.removesuffix(KEPT)

    @cached_property
    def at(self) -> datetime | None:
        """The time of the hand-in, in UTC; None if not known."""
        if self.path.is_dir():
            came, _ = read_timestamp(self.path)
            return came and came.replace(tzinfo=UTC)
        return _time_of(self.name)

    @property
    def came(self) -> HandInTime:
        """The hand-in's name and time, for the rules of a class."""
        return HandInTime(self.name, self.at)

    @property
    def size(self) -> int:
        """The size of the hand-in in bytes."""
        if not self.path.is_dir():
            return self.path.stat().st_size
        every = (Path(folder, name) for folder, _, names in os.walk(self.path) for name in names)
        return sum(one.lstat().st_size for one in every)

    @contextmanager
    def folder(self, lab: str) -> Iterator[Path]:
        """Yield a folder with the hand-in's files, as they would be in ``submitted/``."""
        if self.path.is_dir():
            yield self.path
            return
        with tempfile.TemporaryDirectory(prefix="hand-in-") as made:
            shutil.copyfile(self.path, Path(made, f"{lab}.ipynb"))
            Path(made, TIMESTAMP).write_text(_time_of(self.name).strftime(STAMP))
            yield Path(made)


@dataclass(frozen=True)
class Taken:
    """A stored notebook.

    Attributes:
        at: when the notebook came, in UTC. If the same notebook came several times, this is the
            first time.
        sha256: the hash of its bytes, in hexadecimal.
        again: whether nothing was stored, because the notebook equals the newest hand-in.
    """

    at: datetime
    bytes: int
    sha256: str
    again: bool = False


class HandIns:
    """Stores and finds the hand-ins of a course."""

    def __init__(self, course: Course):
        self._course = course
        self._received = self.place = course.root / RECEIVED

    def arriving(self) -> Path:
        """Return the path of a new file, into which the bytes of a request can be written."""
        self._make(self._received)
        return self._received / f".{secrets.token_hex(8)}{PART}"

    def _make(self, folder: Path) -> None:
        for one in (*reversed(folder.parents), folder):
            if one.is_relative_to(self._received) and not one.is_dir():
                one.mkdir(mode=0o700, parents=True, exist_ok=True)
                self._course.share(one)

    @contextmanager
    def at_rest(self) -> Iterator[None]:
        """Lock ``submitted/`` against changes by other processes while the enclosed code runs.

        Otherwise the time of one submission could end up beside the notebook of another submission.
        Nothing is locked if no hand-ins are kept, or if this account can't read them.
        """
        try:
            held = os.open(self._received, os.O_RDONLY | os.O_CLOEXEC)
        except (FileNotFoundError, PermissionError):
            yield
            return
        try:
            fcntl.flock(held, fcntl.LOCK_EX)  # the lock ends with the process
            yield
        finally:
            os.close(held)

    def finish(self) -> None:
        """Finish storing the hand-ins that a killed service left unfinished.

        The service calls this before it accepts anything, and ``grade`` calls it before it looks
        for hand-ins. A service may be running at the same time. Hand-ins that arrived only in part
        are deleted.
        """
        with self.at_rest():
            for begun in sorted(self._received.glob(f"*/*/*{BEGUN}")):
                LOG.warning("%s was stored only in part; it is complete now", begun)
                self._place(begun, begun.parent.name, begun.parent.parent.name)
        for part in (*self._received.glob(f".*{PART}"), *self._received.glob(f"*/*/.*{PART}")):
            with suppress(FileNotFoundError):  # a service may be storing it
                if time.time() - part.stat().st_mtime > STALE:
                    LOG.warning("%s arrived only in part, so it is deleted", part)
                    shutil.rmtree(part) if part.is_dir() else part.unlink()

    def of(self, learner: str, lab: str) -> list[HandIn]:
        """Return a learner's kept hand-ins to a lab, the oldest first.

        Raises PermissionError if this account is not allowed to read the hand-ins.
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
        """Move a notebook from the path ``arrived``, and store it as a learner's newest hand-in.

        Raises TooManyError if the learner hands in too often.
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
            said = (
                f"you have handed in {lab} {MOST_A_DAY} times today (in UTC), and more are not "
                "accepted: hand in again tomorrow"
            )
        elif (in_all := size + sum(HandIn(one).size for one in came)) > MOST_BYTES_A_DAY:
            said = (
                f"with this notebook of {size / 1e6:.1f} MB you would have handed in "
                f"{in_all / 1e6:.1f} MB today (in UTC); the limit for one day is "
                f"{MOST_BYTES_A_DAY / 1e6:g} MB: clear the notebook's outputs to make it smaller, "
                "and hand it in again"
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
        """Return whether a learner's newest hand-in is one notebook without other files."""
        folder = self._course.folder("submitted", learner, lab)
        return {path.name for path in folder.iterdir()} <= {f"{lab}.ipynb", TIMESTAMP, SECRET}

    def _place(self, begun: Path, learner: str, lab: str) -> None:
        """Put a hand-in and its time into ``submitted/``, and remove other files there."""
        target = self._course.folder("submitted", learner, lab)
        with replacing(target / TIMESTAMP) as fresh:
            fresh.write_text(_time_of(begun.stem).strftime(STAMP))
            _fsync(fresh)
        with replacing(target / f"{lab}.ipynb") as fresh:
            shutil.copyfile(begun, fresh)
            _fsync(fresh)
        for other in target.iterdir():  # files of the previous hand-in, which are all kept
            if other.name not in (TIMESTAMP, f"{lab}.ipynb"):
                is_folder = other.is_dir() and not other.is_symlink()
                shutil.rmtree(other, ignore_errors=True) if is_folder else other.unlink()
        _fsync(target)
        self._course.share(target.parent, target)
        begun.rename(begun.with_suffix(KEPT))
        self._course.share(begun.with_suffix(KEPT))
        _fsync(begun.parent)

    def newest(self, learner: str, lab: str) -> Taken | None:
        """Return a learner's newest hand-in, from any source; None without a hand-in."""
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
        """Keep a copy of a hand-in that is in ``submitted/``, if none is kept yet; return the copy.

        Every command that replaces the hand-in in ``submitted/`` calls this first. If two hand-ins
        have the same files, and the time of one hand-in is not known, only one hand-in is kept.
        Return None if ``submitted/`` has no hand-in.

        Args:
            folder: the learner's folder, if its name is the id in another Unicode form.
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
        """Keep an older hand-in, unless a hand-in with the same time (in UTC) is kept already."""
        self._make(self._received)
        with self.at_rest():
            if not self.knows(learner, lab, came):
                at = came.replace(tzinfo=UTC)
                told = {TIMESTAMP: at.strftime(STAMP).encode()}
                self._store(nfc(learner), lab, at, {**told, **files})
                self._make_room(rules, nfc(learner), lab)

    def knows(self, learner: str, lab: str, came: datetime) -> bool:
        """Return whether a hand-in with this time (in UTC) is kept."""
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
                shutil.rmtree(one.path)  # the same work, and now its time is known
        stored = self._store(learner, lab, at, files)
        self._make_room(rules, learner, lab)
        return stored

    def _contents(self, path: Path, lab: str) -> dict[str, bytes]:
        if not path.is_dir():
            return {f"{lab}.ipynb": path.read_bytes()}
        found = files_in(path, self._course.directory.ignore, ours=True)
        # nbgrader's files have a separate limit: otherwise a learner's files could use up the
        # limit, and the file with the time would be lost.
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
        """Remove hand-ins until the rest is within the limits, and log which were removed.

        Hand-ins that can't count, because a later hand-in replaced them, are removed first.
        """
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
                    "%s is removed: at most %s hand-ins and %g MB are kept for one learner and "
                    "lab, and hand-ins that may count are removed last",
                    *(one.path, MOST, MOST_BYTES / 1e6),
                )
                shutil.rmtree(one.path) if one.path.is_dir() else one.path.unlink()


def _work(files: Mapping[str, bytes]) -> dict[str, bytes]:
    return {name: data for name, data in files.items() if name not in (TIMESTAMP, SECRET)}


def file_stamp(at: datetime) -> str:
    """Return the name of a hand-in that came at a time. Sorted names are in the order of time."""
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
