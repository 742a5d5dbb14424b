"""Reads what learners handed in from disk: bounded, never through a link, never from a device."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Sequence
from fnmatch import fnmatch
from pathlib import Path

from grader.notes import Note, left_out, renamed
from grader.submission import MAX_BYTES, Unreadable, too_large

MAX_FILES = 1000
MAX_ENTRIES = 10_000
MAX_DEPTH = 20
# What is not an ordinary file, in a learner's words.
KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFLNK: "a symbolic link, which is not followed",
}


def read_file(path: Path, most: int = MAX_BYTES) -> bytes | Unreadable:
    """The bytes of an ordinary file, or a sentence on why there are none.

    Args:
        most: bytes; of a larger file nothing is read.
    """
    name = _printable(path.name)
    try:
        kind = stat.S_IFMT(path.lstat().st_mode)
        if kind != stat.S_IFREG:
            return Unreadable(f"`{name}` is {KINDS.get(kind, 'not an ordinary file')}.")
        # it may have been replaced in between: no link is followed, no FIFO waited for
        with open(path, "rb", opener=_opener) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                return Unreadable(f"`{name}` is not an ordinary file.")
            if status.st_nlink > 1:
                return Unreadable(f"`{name}` is a hard link; hand in a file of its own.")
            if status.st_size > most:
                return Unreadable(too_large(status.st_size, most))
            return file.read(most + 1)
    except OSError as error:
        return Unreadable(f"`{name}` could not be opened: {error.strerror}.")


def read_notebook(
    folder: Path, name: str, expected: Sequence[str]
) -> tuple[bytes | Unreadable, Note | None]:
    """A submitted notebook, or the only other one where this one alone is missing.

    Args:
        name: file name that it should have.
        expected: file names of all notebooks of the assignment.
    """
    path = folder / name
    if os.path.lexists(path):
        return read_file(path), None
    others = [p for p in sorted(folder.glob("*.ipynb")) if p.name not in expected]
    missing = [one for one in expected if not os.path.lexists(folder / one)]
    if len(others) == 1 and missing == [name]:
        return read_file(others[0]), renamed(name)
    return Unreadable(f"No notebook named `{name}` was handed in."), None


def read_beside(
    folder: Path, ignore: Sequence[str], most: int = MAX_BYTES
) -> tuple[dict[str, bytes], list[Note]]:
    """The other files of a submission by relative path, and what was left out, and why.

    Args:
        ignore: patterns of names, of files and folders, that are passed over in silence.
        most: bytes in all.
    """
    files: dict[str, bytes] = {}
    notes: list[Note] = []
    entries, left = 0, most
    waiting = [(folder, 0)]
    while waiting:
        inside, depth = waiting.pop()
        try:
            found = sorted(os.scandir(inside), key=lambda entry: entry.name)
        except OSError as error:
            notes.append(left_out(_printable(inside.name), f"it could not be opened: {error}"))
            continue
        for entry in found:
            entries += 1
            if entries > MAX_ENTRIES or len(files) >= MAX_FILES:
                notes.append(left_out("Further files", f"there are more than {MAX_FILES}"))
                return files, notes
            if any(fnmatch(entry.name, pattern) for pattern in ignore):
                continue
            path = Path(entry.path)
            name = path.relative_to(folder).as_posix()
            if entry.is_dir(follow_symlinks=False):
                if depth < MAX_DEPTH:
                    waiting.append((path, depth + 1))
                else:
                    notes.append(left_out(_printable(name)[-60:], "it lies too deep"))
                continue
            data = read_file(path, left)
            if not _is_text(name):
                data = Unreadable("its name is not UTF-8.")
            if isinstance(data, Unreadable):
                notes.append(left_out(_printable(name), str(data).rstrip(".")))
            else:
                files[name] = data
                left -= len(data)
    return files, notes


def why_no_folder(folder: Path) -> str:
    """Why a submission's folder can't be read, or empty when it can."""
    for path in (folder.parent, folder):
        try:
            kind = stat.S_IFMT(path.lstat().st_mode)
        except OSError as error:
            return f"The folder `{_printable(path.name)}` could not be read: {error.strerror}."
        if kind != stat.S_IFDIR:
            what = KINDS.get(kind, "a file, not a folder")
            return f"`{_printable(path.name)}` is {what}."
    try:
        with os.scandir(folder):
            return ""
    except OSError as error:
        return f"The folder `{_printable(folder.name)}` could not be read: {error.strerror}."


def _opener(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _printable(name: str) -> str:
    return re.sub(r"[^\w .,:+/-]", "?", name.encode("utf-8", "replace").decode())[:100]
