"""Read submissions from disk within limits, without following links or opening devices."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatch
from itertools import islice
from pathlib import Path

from hood.grader.submission.matching import is_notebook, match
from hood.grader.submission.names import nfc, printable
from hood.grader.submission.notebook import MAX_BYTES, OutOfReach, Unreadable, too_large
from hood.grader.submission.notes import Note, NoteKind, left_out, quoted, some
from hood.grader.submission.times import read_time

MAX_FILES = 1000  # files of a submission
MAX_NOTES = 20  # notes that name one left-out file each
MAX_ENTRIES = 10_000
MAX_DEPTH = 20  # levels of nested folders in a submission
LONGEST_PATH = 1000  # bytes below the submission's folder; far below the system's limit
LONGEST_NAME = 255  # bytes of a file's name, the limit of file systems
TIMESTAMP = "timestamp.txt"
SECRET = "submission_secret.txt"  # the exchange's file; it decides where feedback is put
MAX_TIME = 200  # bytes; a date and time is much shorter
FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
FOLDER = FILE | os.O_DIRECTORY
MAX_FOLDERS = 20  # folders that are searched for notebooks
# A folder that zip programs add.
NOT_THEIRS = "__MACOSX"
# Errors of a path itself. Any other error means that this machine or user could not read it.
WRONG_PATH = {errno.ENOENT, errno.ELOOP, errno.ENOTDIR, errno.ENAMETOOLONG}
COPY_IT = (
    " If a backup or `cp -al` made this link, replace the folder with a copy. Make the copy with "
    "`cp -r`, as the user who grades."
)
# Descriptions of other kinds of files, for messages to learners.
KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFLNK: "a symbolic link, which is not followed",
}


def read_notebooks(
    folder: Path, expected: Sequence[str]
) -> dict[str, tuple[bytes | Unreadable, Note | None]]:
    """Return the submitted notebooks by expected file name, each with a note or None.

    The note says that the notebook was found under another name, or that there are other versions.
    Raises OutOfReach if a notebook exists but can't be read for a reason that the learner did not
    cause.
    """
    none = {name: f"No notebook named `{name}` was handed in." for name in expected}
    try:
        inside = os.open(folder, FOLDER)
    except OSError:
        return {name: (Unreadable(why), None) for name, why in none.items()}
    try:
        names = _visible(inside)
        matches = match(expected, names)
        taken = {one for one, _ in matches.values()} | {TIMESTAMP, SECRET}
        left = [name for name in names if name not in taken]
        found: dict[str, tuple[bytes | Unreadable, Note | None]] = {}
        for name, (one, others) in matches.items():
            if not one:
                why = f" Found instead: {some(left)}." if left else ""
                if others:
                    why = f" Is it one of {some(others)}? Then hand it in under the expected name."
                found[name] = Unreadable(none[name] + why), None
                continue
            data = read_file(one, inside=inside)
            if isinstance(data, OutOfReach):
                raise data
            found[name] = data, _found_note(one, name, others)
        return found
    finally:
        os.close(inside)


def _found_note(taken: str, name: str, others: list[str]) -> Note | None:
    if others:
        said = f"Also handed in: {some(others)}. Only `{taken}` was graded. "
        return Note(NoteKind.ANOTHER, f"{said}Is your work in another file?")
    if nfc(taken) == nfc(name):
        return None
    said = f"{quoted(taken)} was graded as the notebook. The notebook should be named `{name}`."
    return Note(NoteKind.RENAMED, said)


def inner_folder(folder: Path) -> str:
    """If all notebooks are in one subfolder, return the subfolder's name; else an empty string."""
    try:
        names = _visible(folder)
        if any(map(is_notebook, names)):
            return ""
        below = [name for name in names if (folder / name).is_dir() and name != NOT_THEIRS]
        having = [
            name
            for name in below[:MAX_FOLDERS]
            if not (folder / name).is_symlink() and any(map(is_notebook, _visible(folder / name)))
        ]
    except OSError:
        return ""
    return having[0] if len(having) == 1 else ""


def misplaced(submitted: Path, labs: Collection[str]) -> list[str]:
    """Return the notebooks that are not in a learner's folder for a lab, as text for a terminal.

    ``labs`` are the names of all labs of the course, in NFC.
    """
    found = []
    for folder, below, files in os.walk(submitted):
        above = Path(folder).relative_to(submitted).parts
        if ".ipynb_checkpoints" in above or (
            len(above) == 2 and nfc(above[1]) in labs and above[0][0] != "."
        ):
            below.clear()
            continue
        if len(above) == 2:
            below.clear()
        found += [printable("/".join((*above, name))) for name in files if is_notebook(name)]
    return sorted(found)


def _visible(folder: Path | int) -> list[str]:
    with os.scandir(folder) as entries:
        names = sorted(entry.name for entry in islice(entries, MAX_ENTRIES))
    return [name for name in names if name[0] != "." and is_text(name)]


def files_in(
    folder: Path, ignore: Sequence[str], most: int = MAX_BYTES, *, ours: bool = False
) -> Iterator[tuple[str, bytes | Unreadable]]:
    """Yield each file below a folder: its relative path, and its bytes or an Unreadable.

    The folder's owner may change the folder meanwhile. So each folder stays open while it is read,
    and the entries are opened relative to the open folder. If a link replaces a folder meanwhile,
    the link is not followed. ``ignore`` has patterns of file and folder names to skip without a
    message. ``most`` limits the total bytes. ``ours`` says whether to read a hard link if only this
    user can have made the link. In an exchange, for example, a learner may have linked somebody
    else's file.
    """
    budget = _Budget(most, ours)
    try:
        inside = os.open(folder, FOLDER)
    except OSError as error:
        yield folder.name, _unopened("it", error)
        return
    try:
        yield from _walk(inside, "", 0, ignore, budget)
    finally:
        os.close(inside)
    if budget.exceeded:
        why = f"there are more than {MAX_FILES} files, or more than {MAX_ENTRIES} files and folders"
        yield "At least one more file", Unreadable(why)


def read_beside(
    folder: Path, ignore: Sequence[str], most: int = MAX_BYTES
) -> tuple[dict[str, bytes], list[Note]]:
    """Return a submission's other files (keys: relative paths in NFC), and notes on left-out files.

    Raises OutOfReach if a file can't be read for a reason that the learner did not cause.
    """
    files: dict[str, bytes] = {}
    notes: list[Note] = []
    for path, data in files_in(folder, ignore, most, ours=True):
        name = nfc(path)
        if isinstance(data, OutOfReach):
            raise OutOfReach(f"{printable(name)}: {data}")
        if not isinstance(data, Unreadable) and name in files:
            twice = Unreadable("another file has the same name in different code points")
            files[name], data = (data if name == path else files[name]), twice
        if not isinstance(data, Unreadable) and too_long(name):  # NFC can make a name longer
            data = Unreadable("its path is too long")
        if isinstance(data, Unreadable):
            notes.append(left_out(printable(name), str(data).rstrip(".")))
        else:
            files[name] = data
    if unsaid := len(notes[MAX_NOTES:]):
        more = Note(NoteKind.LEFT_OUT, f"{unsaid} further files were left out.")
        notes = [*notes[:MAX_NOTES], more]
    return files, notes


def too_long(path: str) -> bool:
    """Return whether a relative path, or a name in it, is longer than file systems allow."""
    parts = [len(os.fsencode(part)) for part in path.split("/")]
    return max(parts) > LONGEST_NAME or sum(parts) + len(parts) > LONGEST_PATH


def read_timestamp(folder: Path) -> tuple[datetime | None, list[Note]]:
    """Return the UTC time of a submission, and a note if the file with that time is unusable."""
    path = folder / TIMESTAMP
    if not os.path.lexists(path):
        return None, []
    data = read_file(path, head=MAX_TIME + 1)
    try:
        if isinstance(data, Unreadable):
            raise ValueError(str(data).rstrip("."))
        return read_time(data if len(data) <= MAX_TIME else b"too long"), []
    except ValueError as problem:
        said = f"`timestamp.txt` can't be used: {problem}. A person will look at it."
        return None, [Note(NoteKind.TIMESTAMP, said)]


def why_no_folder(folder: Path) -> Unreadable | None:
    """Return why a submission's folder cannot be read; None if it can be read."""
    try:
        for path in (folder.parent, folder):
            kind = stat.S_IFMT(path.lstat().st_mode)
            if kind != stat.S_IFDIR:
                what = KINDS.get(kind, "a file, not a folder")
                return Unreadable(f"`{printable(path.name)}` is {what}.")
        with os.scandir(folder):
            return None
    except OSError as error:
        return _unopened(f"The folder `{printable(path.name)}`", error)


@dataclass
class _Budget:
    """The unused part of the limits, and whether there were too many files or entries."""

    size: int
    ours: bool
    files: int = MAX_FILES
    entries: int = MAX_ENTRIES
    exceeded: bool = False


def _walk(
    inside: int, where: str, depth: int, ignore: Sequence[str], budget: _Budget
) -> Iterator[tuple[str, bytes | Unreadable]]:
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
        if _is_folder(name, inside):
            folders.append(name)
            continue
        if budget.files == 0:
            budget.exceeded = True
            return
        data = read_file(name, budget.size, inside, ours=budget.ours)
        if not is_text(name):
            data = Unreadable("its name is not UTF-8.")
        if isinstance(data, bytes):
            budget.size -= len(data)
            budget.files -= 1
        yield where + name, data
    for name in folders:
        if depth >= MAX_DEPTH:
            yield (where + name)[-60:], Unreadable("its folder is nested too deeply")
            continue
        try:
            below = os.open(name, FOLDER, dir_fd=inside)
        except OSError as error:
            yield where + name, _unopened("it", error)
            continue
        try:
            yield from _walk(below, f"{where}{name}/", depth + 1, ignore, budget)
        finally:
            os.close(below)


def read_file(
    path: str | Path,
    most: int = MAX_BYTES,
    inside: int | None = None,
    *,
    head: int | None = None,
    ours: bool = True,
) -> bytes | Unreadable:
    """Return the bytes of an ordinary file, or an Unreadable with the reason.

    A file larger than ``most`` is read only if ``head`` says how many bytes to read. ``inside`` is
    the open folder that the path is relative to. :func:`files_in` describes ``ours``.
    """
    name = printable(os.path.basename(path))
    try:
        kind = stat.S_IFMT(os.lstat(path, dir_fd=inside).st_mode)
        if kind != stat.S_IFREG:
            return Unreadable(f"`{name}` is {KINDS.get(kind, 'not an ordinary file')}.")
        # The file may have been replaced since lstat: with the flags in FILE, `open` follows no
        # link and waits for no FIFO.
        with os.fdopen(os.open(path, FILE, dir_fd=inside), "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                return Unreadable(f"`{name}` is not an ordinary file.")
            if status.st_nlink > 1:
                folder = os.stat(os.path.dirname(path) or "." if inside is None else inside)
                if not (ours and _only_we_link(status, folder)):
                    why = f"`{name}` is a hard link, perhaps to somebody else's file."
                    return OutOfReach(why + COPY_IT * ours)
            if head is not None:
                return file.read(head)
            if status.st_size > most:
                return Unreadable(too_large(status.st_size, most))
            data = file.read(most + 1)
            return data if len(data) <= most else Unreadable(too_large(len(data), most))
    except OSError as error:
        return _unopened(f"`{name}`", error)


def _unopened(what: str, error: OSError) -> Unreadable:
    kind = Unreadable if error.errno in WRONG_PATH else OutOfReach
    return kind(f"{what} could not be opened: {error.strerror}.")


def _only_we_link(file: os.stat_result, folder: os.stat_result) -> bool:
    """Return whether only this user can have made a hard link.

    This is so if this user owns the file and the link's folder, and if not every account may write
    to the folder. Backups and `cp -al` make such links. A learner may have made any other hard
    link, to read somebody else's file.
    """
    us = os.geteuid()
    return file.st_uid == folder.st_uid == us and not folder.st_mode & stat.S_IWOTH


def _is_folder(name: str, inside: int) -> bool:
    try:
        return stat.S_ISDIR(os.lstat(name, dir_fd=inside).st_mode)
    except OSError:  # deleted or not accessible: opening it also fails, with a message
        return False


def is_text(name: str) -> bool:
    """Return whether a name is UTF-8, the encoding of file names."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
