"""Which files beside a notebook code gets, and which are kept.

Jupyter serves ``autograded/`` and ``feedback/`` from its own origin, a kernel that is started there
imports Python files from it, and nbgrader and editors obey the settings that they find. So only
files are kept that nothing runs or obeys. Formats in which settings are written, such as JSON, are
not: a program looks for its own by a name, and nobody knows all names.
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


OBEYED = {"cmakelists.txt", "requirements.txt"}  # what programs look for, in a harmless format


def is_harmless(name: str) -> bool:
    """Return whether nothing runs or obeys a file, by its relative path.

    Every suffix of its name is one of HARMLESS, and neither it nor a folder above it is hidden.
    """
    path = PurePosixPath(name.lower())
    suffixes = path.name.split(".")[1:]
    hidden = any(part.startswith(".") for part in path.parts)
    known = bool(suffixes) and all(f".{suffix}" in HARMLESS for suffix in suffixes)
    return known and not hidden and path.name not in OBEYED


def clashing(names: Collection[str]) -> list[str]:
    """Return those names of files that another's folder has: in NFC, names can meet."""
    folders = {str(folder) for name in names for folder in PurePosixPath(name).parents}
    return sorted(folders & set(names))


def given_files(folder: Path, ignore: Sequence[str]) -> dict[str, bytes]:
    """Return the files beside a lab's notebooks in ``source/``, by relative path in NFC."""
    paths = map(Path, sorted(find_all_files(str(folder), [*ignore, NOTEBOOKS])))
    return {nfc(path.relative_to(folder).as_posix()): path.read_bytes() for path in paths}


def unshown(theirs: Mapping[str, bytes], given: Collection[str]) -> list[str]:
    """Return the names of files that only the learner's own code gets, without notebooks."""
    names = (name for name in theirs if name not in given and not is_harmless(name))
    return [name for name in names if not is_notebook(PurePosixPath(name).name)]


def merged(theirs: Mapping[str, bytes], given: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the files that lie beside a notebook when it runs: the learner's, and the lab's own.

    The lab's replaces the learner's of the same path, and any that is in the way of its folders.
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
