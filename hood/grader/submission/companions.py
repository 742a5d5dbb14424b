"""Choose the files that a notebook's code can read, and the files that are kept after grading.

Jupyter serves ``autograded/`` and ``feedback/`` from its own origin. A kernel that is started in
such a folder imports Python files from this folder. nbgrader and editors follow settings in files
that they find. So only files that no program runs or follows are kept. Formats for settings, such
as JSON, are not kept, because each program looks for its own file names, and nobody knows all these
names.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path, PurePosixPath

from nbgrader.utils import find_all_files

from hood.grader.submission.matching import is_notebook
from hood.grader.submission.names import nfc

NOTEBOOKS = "*.ipynb"

# Data and raster images.
HARMLESS = {
    *(".txt", ".csv", ".tsv", ".jsonl", ".log"),
    *(".npy", ".npz", ".pt", ".pth", ".safetensors", ".parquet", ".h5", ".hdf5", ".bin", ".dat"),
    *(".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp"),
    *(".zip", ".gz", ".tar"),
}


# Programs follow these files, although the format is harmless.
OBEYED = {"cmakelists.txt", "requirements.txt"}


def is_harmless(name: str) -> bool:
    """Return whether no program runs or follows the file with this relative path.

    This is true if every suffix of the file's name is in HARMLESS, and if no part of the path is
    hidden.
    """
    path = PurePosixPath(name.lower())
    suffixes = path.name.split(".")[1:]
    hidden = any(part.startswith(".") for part in path.parts)
    known = bool(suffixes) and all(f".{suffix}" in HARMLESS for suffix in suffixes)
    return known and not hidden and path.name not in OBEYED


def clashing(names: Collection[str]) -> list[str]:
    """Return the names that a file and a folder share; in NFC, different names can become equal."""
    folders = {str(folder) for name in names for folder in PurePosixPath(name).parents}
    return sorted(folders & set(names))


def given_files(folder: Path, ignore: Sequence[str]) -> dict[str, bytes]:
    """Return the files beside a lab's notebooks in ``source/``; keys are relative paths in NFC."""
    paths = map(Path, sorted(find_all_files(str(folder), [*ignore, NOTEBOOKS])))
    return {nfc(path.relative_to(folder).as_posix()): path.read_bytes() for path in paths}


def unshown(theirs: Mapping[str, bytes], given: Collection[str]) -> list[str]:
    """Return the names of the learner's files that are not kept after grading, except notebooks."""
    names = (name for name in theirs if name not in given and not is_harmless(name))
    return [name for name in names if not is_notebook(PurePosixPath(name).name)]


def merged(theirs: Mapping[str, bytes], given: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the files beside a notebook when it runs: the learner's files and the lab's files.

    A lab's file replaces a learner's file or folder with the same path. A folder above a lab's file
    also replaces a learner's file with the path of that folder.
    """
    folders = {str(parent) for name in given for parent in PurePosixPath(name).parents}
    own = {
        name: data
        for name, data in theirs.items()
        if name not in folders and not ({name, *map(str, PurePosixPath(name).parents)} & set(given))
    }
    return own | dict(given)


def shown(beside: Mapping[str, bytes], given: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the files of :func:`merged` that are kept: the lab's own files, and harmless files."""
    return {name: data for name, data in beside.items() if name in given or is_harmless(name)}


def place(files: Mapping[str, bytes], folder: Path) -> None:
    """Write files below an existing folder, with the folders that their paths need."""
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
