"""Write files as a whole, so that none is ever half written; say why one could not be written."""

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

# Why a file could not be written, and what to do, by the system's number of the error.
RIGHTS = "{user} has no right to it, and {owner}: run this as somebody who may, or give {user} one"
REASONS = {
    errno.EACCES: RIGHTS,
    errno.EPERM: RIGHTS,
    errno.EROFS: "it is on a file system that is read-only: make that writable, or use a copy of "
    "the course elsewhere",
    errno.ENOSPC: "there is no space left: make room on its disk",
    errno.EDQUOT: "the space that {user} may use is full: make room there",
    errno.EFBIG: "a file of {user} may not grow so large: raise that limit (`ulimit -f`)",
}
# SQLite says less: where it can't write, it may also lack a right to the file's folder.
OF_SQLITE = {
    sqlite3.SQLITE_READONLY: errno.EACCES,
    sqlite3.SQLITE_CANTOPEN: errno.EACCES,
    sqlite3.SQLITE_PERM: errno.EACCES,
    sqlite3.SQLITE_FULL: errno.ENOSPC,
}


MOST_READ = 10_000  # files of which a result is remembered
T = TypeVar("T")


def read_once(function: Callable[[Path], T]) -> Callable[[Path], T]:
    """Let a function of a file's content remember its result until another file is there.

    It fits files that are written as a whole, as this module does.
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
    """Write a file, and the folders above it, if its bytes change; return whether they did.

    Raises OSError when it can't be written, with the file's name.
    """
    if path.exists() and path.read_bytes() == content:
        return False
    with replacing(path) as fresh:
        fresh.write_bytes(content)
    return True


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield the name of a new file, which takes a file's place when it has been written.

    Raises OSError when it can't be written, with the file's name.
    """
    with _beside(path) as fresh:
        yield fresh
        os.replace(fresh, path)


@contextmanager
def _beside(path: Path) -> Iterator[Path]:
    """Yield the name of a new file in the folder of ``path``, and remove it at the end.

    An OSError that has no name, or the new file's, gets the name of the file that is meant.
    """
    # a name of its own, as another process may be writing the same file; and a short one, as the
    # file's may be as long as a name can be
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
    """Return the secret that a file holds; where there is no file, it is made and holds ``fresh``.

    A full disk or a kill leaves no file that holds a part of a secret. All processes that begin at
    the same time return the same secret. Only its owner can read a file that is made here.

    Args:
        read: turns the file's bytes into the secret. It may raise ValueError.
        should: what the file should hold, for the message to a person.
        lost: what a new secret makes invalid, for the same message.

    Raises:
        UserError: if the file's secret is not as long as that of ``fresh``.
        OSError: if the file can't be made or read, with its name.
    """
    if not path.exists():
        with _beside(path) as new:
            opened = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(opened, "wb") as file:
                file.write(fresh)
                file.flush()
                os.fsync(opened)  # else a power cut may leave the name without the content
            with suppress(FileExistsError):  # another process was first
                os.link(new, path)
    content = path.read_bytes()
    try:
        found = read(content)
    except ValueError:
        found = b""
    if len(found) != len(read(fresh)):
        raise UserError(
            f"{path} should hold {should}, and what it holds is not that ({len(content)} bytes): "
            f"restore it from a backup, or remove it, and a new one is made. {lost}"
        )
    return found


def why_not_written(error: BaseException | None, database: Path | None = None) -> str:
    """Return which file could not be written, why, and what to do; empty for any other error.

    ``error`` is of the system or, as SQLAlchemy and nbgrader's API raise it, of SQLite;
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
    """Say whose the nearest folder above a path is that this user can see."""
    for place in path.parents if path and path.is_absolute() else ():
        with suppress(OSError):
            return f"{place} belongs to {_name_of(place.stat().st_uid)}"
    return "it may belong to somebody else"


def _name_of(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"user {number}"
