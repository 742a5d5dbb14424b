"""The files beside a notebook: which of them the learner's code gets, and which others may open.

Jupyter serves what lies in ``autograded/`` and ``feedback/`` from its own origin. A learner's page,
drawing or document that a browser runs there would act as whoever is logged in, so only kinds of
files that no browser runs are put there.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path, PurePosixPath

# Data, pictures of pixels, and programs that only Python runs.
HARMLESS = {
    *(".txt", ".csv", ".tsv", ".json", ".jsonl", ".yaml", ".yml", ".toml", ".ini", ".cfg", ".log"),
    *(".npy", ".npz", ".pt", ".pth", ".safetensors", ".parquet", ".h5", ".hdf5", ".bin", ".dat"),
    *(".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp"),
    *(".zip", ".gz", ".tar"),
    ".py",
}


def is_harmless(name: str) -> bool:
    """Whether no browser runs a file of this name: each of its suffixes must be a harmless one."""
    suffixes = PurePosixPath(name.lower()).name.lstrip(".").split(".")[1:]
    return bool(suffixes) and all(f".{suffix}" in HARMLESS for suffix in suffixes)


def unshown(theirs: Mapping[str, bytes], given: Mapping[str, bytes]) -> list[str]:
    """Names of a learner's files that only their own code gets."""
    return [name for name in theirs if name not in given and not is_harmless(name)]


def merged(theirs: Mapping[str, bytes], given: Mapping[str, bytes]) -> dict[str, bytes]:
    """What lies beside a notebook that runs: the learner's files, replaced by the lab's own."""
    folders = {str(parent) for name in given for parent in PurePosixPath(name).parents}
    own = {
        name: data
        for name, data in theirs.items()
        if name not in folders and not ({name, *map(str, PurePosixPath(name).parents)} & set(given))
    }
    return own | dict(given)


def shown(beside: Mapping[str, bytes], given: Mapping[str, bytes]) -> dict[str, bytes]:
    """What of :func:`merged` others may open: the lab's own files, and harmless ones."""
    return {name: data for name, data in beside.items() if name in given or is_harmless(name)}


def place(files: Mapping[str, bytes], folder: Path) -> None:
    """Write files below a folder that is there."""
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
