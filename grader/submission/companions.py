"""What lies in a submission's folder: reading it, which files code gets, and which are kept.

Jupyter serves ``autograded/`` and ``feedback/`` from its own origin. An HTML page, SVG or other
document of a learner that a browser runs there could act as the logged-in user. And whoever opens a
notebook there starts a kernel in its folder, which imports Python files from it. So only kinds of
files that neither a browser nor a kernel runs are written there.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path, PurePosixPath

from nbgrader.utils import find_all_files

from grader.submission.files import (
    TIMESTAMP,
    inner_folder,
    read_beside,
    read_notebooks,
    read_timestamp,
    why_no_folder,
)
from grader.submission.matching import is_notebook
from grader.submission.names import nfc
from grader.submission.notebook import OutOfReach, Unreadable
from grader.submission.notes import Note, in_a_folder, not_shown

NOTEBOOKS = "*.ipynb"

# Data and raster images.
HARMLESS = {
    *(".txt", ".csv", ".tsv", ".json", ".jsonl", ".yaml", ".yml", ".toml", ".ini", ".cfg", ".log"),
    *(".npy", ".npz", ".pt", ".pth", ".safetensors", ".parquet", ".h5", ".hdf5", ".bin", ".dat"),
    *(".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp"),
    *(".zip", ".gz", ".tar"),
}


def is_harmless(name: str) -> bool:
    """Return whether neither browser nor kernel runs a file of this name, by its suffixes.

    Every one must be in HARMLESS.
    """
    suffixes = PurePosixPath(name.lower()).name.lstrip(".").split(".")[1:]
    return bool(suffixes) and all(f".{suffix}" in HARMLESS for suffix in suffixes)


@dataclass(frozen=True)
class Companions:
    """What lies in a submission's folder.

    Attributes:
        notebooks: by file name of each notebook of the lab, its bytes or why there are none, and a
            note where its name was another, or others lie beside it.
        files: the learner's files, by relative path, nbgrader's timestamp among them.
        notes: notes about the files.
        timestamp: when the submission was handed in; None if that is unknown.
        time_notes: why it is unknown.
    """

    notebooks: dict[str, tuple[bytes | Unreadable, Note | None]]
    files: dict[str, bytes] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()
    timestamp: datetime | None = None
    time_notes: tuple[Note, ...] = ()


def read_companions(
    folders: Sequence[Path], expected: Sequence[str], ignore: Sequence[str], given: Collection[str]
) -> Companions:
    """Read a submission's folder. A learner's mistakes become notes.

    Args:
        folders: all that have the learner's and the lab's name, if in other code points.
        expected: the file names of all notebooks of the lab.
        ignore: patterns of file and folder names that are skipped without a message.
        given: names of the lab's own files.

    Raises:
        OutOfReach: when something is there and can't be read, by no fault of the learner.
    """
    if len(folders) > 1:
        names = " and ".join(f"{str(path.relative_to(path.parents[2]))!a}" for path in folders)
        raise OutOfReach(f"{names} are the same name in other code points: keep one of them")
    [folder] = folders
    problem = why_no_folder(folder)
    if isinstance(problem, OutOfReach):
        raise problem
    if problem:
        return Companions(dict.fromkeys(expected, (problem, None)))
    files, left = read_beside(folder, [*ignore, NOTEBOOKS])
    inner = inner_folder(folder)
    for name in [name for name in files if inner and name.startswith(f"{nfc(inner)}/")]:
        beside = name.partition("/")[2]
        if beside not in {*files, TIMESTAMP}:  # as the notebook, which lies there, expects it
            files[beside] = files.pop(name)
    timestamp, wrong = read_timestamp(folder)
    found = [in_a_folder(inner)] if inner else []
    notes = (*found, *left, *not_shown(unshown(files, given)))
    notebooks = read_notebooks(folder / inner, expected)
    return Companions(notebooks, files, notes, timestamp, tuple(wrong))


def given_files(folder: Path, ignore: Sequence[str]) -> dict[str, bytes]:
    """Return the lab's own files beside its notebooks, by relative path in NFC.

    Args:
        folder: the lab's folder in ``source/``.
    """
    paths = map(Path, sorted(find_all_files(str(folder), [*ignore, NOTEBOOKS])))
    return {nfc(path.relative_to(folder).as_posix()): path.read_bytes() for path in paths}


def unshown(theirs: Mapping[str, bytes], given: Collection[str]) -> list[str]:
    """Return the names of those files of a learner that only the learner's own code gets.

    Notebooks under another name than a notebook's are not told: what is taken for one is noted.
    """
    names = (name for name in theirs if name not in given and not is_harmless(name))
    return [name for name in names if not is_notebook(PurePosixPath(name).name)]


def merged(theirs: Mapping[str, bytes], given: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the files that lie beside a notebook when it runs.

    These are the learner's files and the lab's own. A file of the lab replaces the learner's file
    of the same path, and any learner's file that is in the way of one of its folders.
    """
    folders = {str(parent) for name in given for parent in PurePosixPath(name).parents}
    own = {
        name: data
        for name, data in theirs.items()
        if name not in folders and not ({name, *map(str, PurePosixPath(name).parents)} & set(given))
    }
    return own | dict(given)


def shown(beside: Mapping[str, bytes], given: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the files of :func:`merged` that are kept: the lab's own, and harmless ones."""
    return {name: data for name, data in beside.items() if name in given or is_harmless(name)}


def place(files: Mapping[str, bytes], folder: Path) -> None:
    """Write files below an existing folder, with the folders that their paths need."""
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
