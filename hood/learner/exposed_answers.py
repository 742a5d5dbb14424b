"""Find what gives a course's answers and marks away to an account that should not read them.

``python -m hood doctor`` asks about all other accounts of a machine. ``python -m
hood.learner.exposed_answers`` asks about the account that runs it: in a learner's install, or as a
learner on a shared machine, with the course's folder behind it. So it is in learners' archives, and
needs no other module.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

ANSWERS = ("phases", "source", "tests/phases/answers")  # in a course's folder
Reads = Callable[[Path], bool]


def i_read(path: Path) -> bool:
    """Return whether this process may read a file, or list and enter a folder."""
    return os.access(path, os.R_OK | os.X_OK if path.is_dir() else os.R_OK)


def others_read(path: Path) -> bool:
    """Return whether the mode of a file lets any account read it, or that of a folder enter it.

    Who knows the names in a folder need not list it. An access list is not looked at: whom it
    names, somebody has named.
    """
    mode = path.stat().st_mode
    return bool(mode & (stat.S_IXOTH if stat.S_ISDIR(mode) else stat.S_IROTH))


def first_read(place: Path, reads: Reads) -> Path | None:
    """Return a file at or below a place that is read; None if there is none.

    Links are not followed.

    Args:
        reads: what is asked of the file, and of each folder from the place to it.
    """
    left = [place]
    while left:
        one = left.pop()
        with suppress(OSError):  # it is not there, or hides even from whoever asks
            if one.is_symlink() or not reads(one):
                continue
            if not one.is_dir():
                return one
            left += sorted(one.iterdir(), reverse=True)
    return None


def entered(place: Path) -> bool:
    """Return whether all folders above a place, which has no link in it, let others through."""
    with suppress(OSError):
        return all(map(others_read, place.parents))
    return False


def open_to_others(place: Path) -> Path | None:
    """Return a file at or below a place that any account of this machine can read, or None."""
    place = place.resolve()
    return first_read(place, others_read) if entered(place) else None


def _places(folders: list[Path]) -> Iterator[Path]:
    for folder in folders:
        yield from (folder / name for name in ANSWERS)
    if (spec := find_spec("phases")) and spec.submodule_search_locations:
        yield from map(Path, spec.submodule_search_locations)


def main(words: list[str]) -> int:
    """Say which answers this account can read; return 1 if there are any.

    Args:
        words: folders of courses, beside the one that this module is in and Python's path.
    """
    here = Path(__file__).resolve().parents[2]
    places = {place.resolve() for place in _places([here, *map(Path, words)])}
    readable = sorted(file for place in places if (file := first_read(place, i_read)))
    for file in readable:
        print(f"answers: this account can read {file}")
    if readable:
        print(
            "  what to do: give learners the archive of `python -m hood bundle` in place of the "
            "project; on a machine that they share with the course, close its folder to them"
        )
        return 1
    print(f"answers: this account can read none in {', '.join(map(str, [here, *words]))}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
