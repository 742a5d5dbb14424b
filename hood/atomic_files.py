"""Write files as a whole, so that no file is ever half written; say why a write failed."""

from __future__ import annotations

import errno
import os
import pwd
import secrets
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache, wraps
from pathlib import Path
from typing import TypeVar

from hood import UserError

# Why a file could not be written, and what to do, by errno.
RIGHTS = (
    "{user} has no right to use it, and {owner}. Run this as a user who has the right, or make "
    "{user} its owner"
)
REASONS = {
    errno.EACCES: RIGHTS,
    errno.EPERM: RIGHTS,
    errno.EROFS: "its file system is read-only: make it writable, or use a copy of the course "
    "elsewhere",
    errno.ENOSPC: "its disk is full: free some space",
    errno.EDQUOT: "the disk quota of {user} is used up: free some space",
    errno.EFBIG: "it would exceed the largest file size of {user}: raise this limit (`ulimit -f`)",
}
# SQLite's errors are less exact: either the file or its folder may lack the permission.
OF_SQLITE = {
    sqlite3.SQLITE_READONLY: errno.EACCES,
    sqlite3.SQLITE_CANTOPEN: errno.EACCES,
    sqlite3.SQLITE_PERM: errno.EACCES,
    sqlite3.SQLITE_FULL: errno.ENOSPC,
}


MOST_READ = 10_000  # at most this many results are cached
T = TypeVar("T")


def read_once(function: Callable[[Path], T]) -> Callable[[Path], T]:
    """Cache the result of a function that reads a file, until the file is replaced.

    Use it for files that are always written as a whole, for example by :func:`write_whole`.
    """

    @lru_cache(maxsize=MOST_READ)
    def found(path: Path, *_: int) -> T:
        return function(path)

    @wraps(function)
    def of(path: Path) -> T:
        about = path.stat()
        return found(path, about.st_ino, about.st_mtime_ns, about.st_size)

    return of


def write_whole(path: Path, content: bytes) -> bool:
    """Write a file if its bytes would change; return whether it was written.

    Missing folders are made. Raises OSError with the file's name if the file can't be written.
    """
    if path.exists() and path.read_bytes() == content:
        return False
    with replacing(path) as fresh:
        fresh.write_bytes(content)
    return True


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield the path of a new file, which replaces ``path`` when the block ends.

    Raises OSError with the name of ``path`` if ``path`` can't be written.
    """
    with _beside(path) as fresh:
        yield fresh
        os.replace(fresh, path)


@contextmanager
def _beside(path: Path) -> Iterator[Path]:
    """Yield the path of a new file in the folder of ``path``; at the end, remove the new file.

    If an OSError names the new file or no file, an OSError that names ``path`` is raised instead.
    """
    # The name is random, because another process may be writing the same file. The name is short,
    # because the name of ``path`` may already be as long as a file system allows.
    fresh = path.with_name(f".{secrets.token_hex(8)}.new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            yield fresh
        finally:
            fresh.unlink(missing_ok=True)
    except OSError as error:
        if error.filename in (None, fresh, str(fresh)) and error.errno:
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise


def secret(
    path: Path, fresh: bytes, *, read: Callable[[bytes], bytes] = bytes, should: str, lost: str
) -> bytes:
    """Return the secret in a file; if there is no file, make one that contains ``fresh``.

    Even if the disk is full or the process is killed, no file contains only a part of a secret. If
    several processes call this at the same time, all of them get the same secret. A file that is
    made here can be read only by its owner.

    Args:
        read: turns the file's bytes into the secret. It may raise ValueError.
        should: what the file should contain, for the error message.
        lost: what becomes invalid with a new secret, for the error message.

    Raises:
        UserError: if the secret in the file is not as long as the secret in ``fresh``.
        OSError: with the file's name, if the file can't be made or read.
    """
    if not path.exists():
        with _beside(path) as new:
            opened = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(opened, "wb") as file:
                file.write(fresh)
                file.flush()
                os.fsync(opened)  # otherwise a power cut may leave an empty file
            with suppress(FileExistsError):  # another process made the file first
                os.link(new, path)
    content = path.read_bytes()
    try:
        found = read(content)
    except ValueError:
        found = b""
    if len(found) != len(read(fresh)):
        raise UserError(
            f"{path} should contain {should}, but contains something else ({len(content)} bytes): "
            "restore the file from a backup, or remove it. If it is removed, the next run makes a "
            f"new one. {lost}"
        )
    return found


def why_not_written(error: BaseException | None, database: Path | None = None) -> str:
    """Return which file could not be written, why, and what to do; empty if no write failed.

    ``error`` comes from the system, or from SQLite through SQLAlchemy and nbgrader's API.
    ``database`` is the gradebook's file, which SQLite's errors don't name.
    """
    if error is None:
        return ""
    number, path = None, database
    for one in (error, getattr(error, "orig", None), getattr(error.__context__, "orig", None)):
        if isinstance(one, OSError):
            name = one.filename2 or one.filename
            number, path = one.errno, Path(os.fsdecode(name)) if name else None
        elif isinstance(one, sqlite3.OperationalError):
            number = OF_SQLITE.get(one.sqlite_errorcode & 0xFF)
            with suppress(OSError):  # the folder may be missing
                if number and path and os.statvfs(path.parent).f_flag & os.ST_RDONLY:
                    number = errno.EROFS
    if number not in REASONS:
        return ""
    shown = path or ("a file" if isinstance(error, OSError) else "the gradebook")
    reason = REASONS[number].format(user=_name_of(os.geteuid()), owner=_owner(path))
    said = f"{shown} can't be used: {reason}"
    return "".join(c if c.isprintable() else "?" for c in said)  # a learner may have named it


def _owner(path: Path | None) -> str:
    """Return who owns a path's nearest parent folder that this user can see."""
    for place in path.parents if path and path.is_absolute() else ():
        with suppress(OSError):
            return f"{place} belongs to {_name_of(place.stat().st_uid)}"
    return "another user may own it"


def _name_of(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"user {number}"
