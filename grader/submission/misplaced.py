"""Find notebooks that were handed in where no submission belongs, and so would be passed over."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from itertools import islice
from pathlib import Path

from grader.submission.files import MAX_ENTRIES
from grader.submission.matching import is_notebook
from grader.submission.names import nfc, printable


def misplaced(submitted: Path, labs: Collection[str]) -> list[str]:
    """Return the notebooks below ``submitted/`` that are in no learner's folder for a lab.

    Args:
        submitted: the folder; a submission is ``LEARNER/LAB/NAME.ipynb`` in it.
        labs: the names of all labs of the course, in NFC.

    Returns:
        Their paths in ``submitted``, sorted, as text for a terminal: those in the folder itself, in
        a learner's folder, in a folder there that has no lab's name, and in hidden folders.
    """
    return sorted(
        printable(path.relative_to(submitted).as_posix()) for path in _find(submitted, labs)
    )


def _find(submitted: Path, labs: Collection[str]) -> Iterator[Path]:
    for learner in _entries(submitted):
        if learner.is_file(follow_symlinks=False):
            yield from _notebook(learner)
            continue
        for entry in _entries(learner):
            if entry.is_file(follow_symlinks=False):
                yield from _notebook(entry)
            elif nfc(entry.name) not in labs or learner.name.startswith("."):
                for inside in _entries(entry):
                    yield from _notebook(inside)


def _notebook(entry: os.DirEntry[str]) -> Iterator[Path]:
    if is_notebook(entry.name):
        yield Path(entry.path)


def _entries(folder: Path | os.DirEntry[str]) -> list[os.DirEntry[str]]:
    """Return what a folder holds; nothing for what is no folder, or is a link to one."""
    if isinstance(folder, os.DirEntry) and not folder.is_dir(follow_symlinks=False):
        return []
    try:
        with os.scandir(folder) as entries:
            return [e for e in islice(entries, MAX_ENTRIES) if e.name != ".ipynb_checkpoints"]
    except OSError:
        return []
