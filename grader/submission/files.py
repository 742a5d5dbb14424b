"""Read submissions from disk within limits, without following links or opening devices."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatch
from itertools import islice
from pathlib import Path

from grader.submission.notebook import MAX_BYTES, Unreadable, too_large
from grader.submission.notes import Note, another, left_out, more_left_out, no_timestamp, renamed
from grader.submission.times import read_time

MAX_FILES = 1000
MAX_NOTES = 20  # on single files that were left out
MAX_ENTRIES = 10_000
MAX_DEPTH = 20
LONGEST_PATH = 1000  # bytes below the submission's folder; far below the system's limit
TIMESTAMP = "timestamp.txt"
MAX_TIME = 200  # bytes; a date and time is much shorter
FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
FOLDER = FILE | os.O_DIRECTORY
# Descriptions of other kinds of files, for messages to learners.
KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFLNK: "a symbolic link, which is not followed",
}


def read_file(path: Path, *, head: int | None = None) -> bytes | Unreadable:
    """Return the bytes of an ordinary file, or an Unreadable with the reason.

    Args:
        head: read only this many bytes from the start, however large the file is; by default
            nothing of a file above ``MAX_BYTES``.
    """
    return _read(str(path), MAX_BYTES, head=head)


def read_notebook(
    folder: Path, name: str, expected: Sequence[str]
) -> tuple[bytes | Unreadable, Note | None]:
    """Return a submitted notebook, and a note when others of its name lie beside it.

    Those are copies such as ``lab-Copy1.ipynb``. When this notebook is the only expected one that
    is missing, and exactly one other notebook was handed in, that one is read, and the note says
    so.

    Args:
        expected: the file names of all notebooks of the assignment.
    """
    path = folder / name
    others = [p for p in _notebooks_in(folder) if p.name not in expected]
    if os.path.lexists(path):
        copies = [p.name for p in others if p.name.startswith(path.stem)]
        return read_file(path), another(name, copies) if copies else None
    missing = [one for one in expected if not os.path.lexists(folder / one)]
    if len(others) == 1 and missing == [name]:
        return read_file(others[0]), renamed(name)
    return Unreadable(f"No notebook named `{name}` was handed in."), None


def _notebooks_in(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in islice(entries, MAX_ENTRIES))
    except OSError:
        return []
    return [folder / name for name in names if name.endswith(".ipynb") and name[0] != "."]


def files_in(
    folder: Path, ignore: Sequence[str], most: int = MAX_BYTES
) -> Iterator[tuple[str, bytes | Unreadable]]:
    """Yield each file below a folder: its relative path, and its bytes or an Unreadable.

    The owner of the folder may change it during the reading. So each folder is kept open while it
    is read, and its entries are opened relative to that descriptor. A link that replaces a folder
    in the meantime is not followed.

    Args:
        ignore: patterns of file and folder names that are skipped without a message.
        most: bytes in total.
    """
    budget = _Budget(most)
    try:
        inside = os.open(folder, FOLDER)
    except OSError as error:
        yield folder.name, Unreadable(f"it could not be opened: {error.strerror}")
        return
    try:
        yield from _walk(inside, "", 0, ignore, budget)
    finally:
        os.close(inside)
    if budget.exceeded:
        yield "Further files", Unreadable(f"there are more than {MAX_FILES}, or too many entries")


def read_beside(
    folder: Path, ignore: Sequence[str], most: int = MAX_BYTES
) -> tuple[dict[str, bytes], list[Note]]:
    """Return the other files of a submission by relative path, and notes on those left out.

    The arguments are those of :func:`files_in`.
    """
    files: dict[str, bytes] = {}
    notes: list[Note] = []
    unread = 0
    for name, data in files_in(folder, ignore, most):
        if not isinstance(data, Unreadable):
            files[name] = data
        elif len(notes) < MAX_NOTES:
            notes.append(left_out(printable(name), str(data).rstrip(".")))
        else:
            unread += 1
    return files, [*notes, more_left_out(unread)] if unread else notes


def read_timestamp(folder: Path) -> tuple[datetime | None, list[Note]]:
    """Return when a submission was handed in, in UTC, and a note if its file is unusable."""
    path = folder / TIMESTAMP
    if not os.path.lexists(path):
        return None, []
    data = read_file(path, head=MAX_TIME + 1)
    if isinstance(data, Unreadable):
        return None, [no_timestamp(str(data).rstrip("."))]
    try:
        return read_time(data if len(data) <= MAX_TIME else b"too long"), []
    except ValueError as problem:
        return None, [no_timestamp(str(problem))]


def why_no_folder(folder: Path) -> str:
    """Return why a submission's folder cannot be read; empty when it can."""
    for path in (folder.parent, folder):
        try:
            kind = stat.S_IFMT(path.lstat().st_mode)
        except OSError as error:
            return f"The folder `{printable(path.name)}` could not be read: {error.strerror}."
        if kind != stat.S_IFDIR:
            what = KINDS.get(kind, "a file, not a folder")
            return f"`{printable(path.name)}` is {what}."
    try:
        with os.scandir(folder):
            return ""
    except OSError as error:
        return f"The folder `{printable(folder.name)}` could not be read: {error.strerror}."


@dataclass
class _Budget:
    """What may still be read: bytes, files and directory entries.

    Attributes:
        exceeded: whether files or entries were left over.
    """

    size: int
    files: int = MAX_FILES
    entries: int = MAX_ENTRIES
    exceeded: bool = False


def _walk(
    inside: int, where: str, depth: int, ignore: Sequence[str], budget: _Budget
) -> Iterator[tuple[str, bytes | Unreadable]]:
    """Yield the files of an open folder, then those of its subfolders."""
    with os.scandir(inside) as entries:
        names = sorted(entry.name for entry in islice(entries, budget.entries + 1))
    folders = []
    for name in names:
        if budget.entries == 0:
            budget.exceeded = True
            return
        budget.entries -= 1
        if any(fnmatch(name, pattern) for pattern in ignore):
            continue
        if len(os.fsencode(where + name)) > LONGEST_PATH:
            yield (where + name)[-60:], Unreadable("its path is too long")
            continue
        if _kind(name, inside) == stat.S_IFDIR:
            folders.append(name)
            continue
        if budget.files == 0:
            budget.exceeded = True
            return
        data = _read(name, budget.size, inside)
        if not _is_text(name):
            data = Unreadable("its name is not UTF-8.")
        if isinstance(data, bytes):
            budget.size -= len(data)
            budget.files -= 1
        yield where + name, data
    for name in folders:
        if depth >= MAX_DEPTH:
            yield (where + name)[-60:], Unreadable("it lies too deep")
            continue
        try:
            below = os.open(name, FOLDER, dir_fd=inside)
        except OSError as error:
            yield where + name, Unreadable(f"it could not be opened: {error.strerror}")
            continue
        try:
            yield from _walk(below, f"{where}{name}/", depth + 1, ignore, budget)
        finally:
            os.close(below)


def _read(
    path: str, most: int, inside: int | None = None, head: int | None = None
) -> bytes | Unreadable:
    """Read a file as :func:`read_file` does, from the open folder ``inside`` if one is given."""
    name = printable(os.path.basename(path))
    try:
        kind = stat.S_IFMT(os.lstat(path, dir_fd=inside).st_mode)
        if kind != stat.S_IFREG:
            return Unreadable(f"`{name}` is {KINDS.get(kind, 'not an ordinary file')}.")
        # The file may have been replaced since lstat: FILE's flags follow no link and wait for no
        # FIFO.
        with os.fdopen(os.open(path, FILE, dir_fd=inside), "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                return Unreadable(f"`{name}` is not an ordinary file.")
            if status.st_nlink > 1:
                return Unreadable(f"`{name}` is a hard link; hand in a file of its own.")
            if head is not None:
                return file.read(head)
            if status.st_size > most:
                return Unreadable(too_large(status.st_size, most))
            data = file.read(most + 1)
            return data if len(data) <= most else Unreadable(too_large(len(data), most))
    except OSError as error:
        return Unreadable(f"`{name}` could not be opened: {error.strerror}.")


def _kind(name: str, inside: int) -> int:
    try:
        return stat.S_IFMT(os.lstat(name, dir_fd=inside).st_mode)
    except OSError:  # deleted or not accessible: opening it fails, too, and gives the message
        return 0


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def printable(name: str) -> str:
    """Return a learner's name for a file or folder as text for a page or a terminal."""
    return re.sub(r"[^\w .,:+/-]", "?", name.encode("utf-8", "replace").decode())[:100]
