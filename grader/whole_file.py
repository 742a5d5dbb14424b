"""Write files as a whole, so that none is ever half written; say why one could not be written."""

from __future__ import annotations

import errno
import os
import pwd
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

# Why a file could not be written, and what to do, by the system's number of the error.
RIGHTS = "{user} has no right to it, and {owner}: run this as somebody who may, or give {user} one"
REASONS = {
    errno.EACCES: RIGHTS,
    errno.EPERM: RIGHTS,
    errno.EROFS: "it is on a file system that is read-only: make that writable, or use a copy of "
    "the course elsewhere",
    errno.ENOSPC: "there is no space left: make room on its disk",
    errno.EDQUOT: "the space that {user} may use is full: make room there",
}
# SQLite says less: where it can't write, it may also lack a right to the file's folder.
OF_SQLITE = {
    sqlite3.SQLITE_READONLY: errno.EACCES,
    sqlite3.SQLITE_CANTOPEN: errno.EACCES,
    sqlite3.SQLITE_PERM: errno.EACCES,
    sqlite3.SQLITE_FULL: errno.ENOSPC,
}


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
    # a name of its own: another process may be writing the same file
    fresh = path.with_name(f".{path.name}.{secrets.token_hex(4)}.new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            yield fresh
            os.replace(fresh, path)
        finally:
            fresh.unlink(missing_ok=True)
    except OSError as error:
        if error.filename in (None, str(fresh)) and error.errno:
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise


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
