"""Find a course's answers and marks that the wrong account can read.

``python -m hood doctor`` tests all other accounts of a machine. ``python -m
hood.learner.exposed_answers`` tests the account that runs it. Run the second command in a learner's
install. On a shared machine, you can also run it as a learner, with the course's folder as
argument. So this module is in learners' archives, and imports no other module of the engine.
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
    """Return whether the mode of a file or folder lets any account read or enter it.

    An account that knows the names in a folder does not need to list the folder. Access lists don't
    count, because somebody has chosen the accounts in them.
    """
    mode = path.stat().st_mode
    return bool(mode & (stat.S_IXOTH if stat.S_ISDIR(mode) else stat.S_IROTH))


def first_read(place: Path, reads: Reads) -> Path | None:
    """Return a readable file at or below a place; None if there is none.

    Links are not followed.

    Args:
        reads: says whether a path is readable. The file, and each folder from the place to the
            file, must be readable.
    """
    left = [place]
    while left:
        one = left.pop()
        with suppress(OSError):  # the path does not exist, or this account may not look at it
            if one.is_symlink() or not reads(one):
                continue
            if not one.is_dir():
                return one
            left += sorted(one.iterdir(), reverse=True)
    return None


def entered(place: Path) -> bool:
    """Return whether others can enter all folders above a place (a path without links)."""
    with suppress(OSError):
        return all(map(others_read, place.parents))
    return False


def open_to_others(place: Path) -> Path | None:
    """Return a file, at or below a place, that every account here can read; None without one."""
    place = place.resolve()
    return first_read(place, others_read) if entered(place) else None


def _places(folders: list[Path]) -> Iterator[Path]:
    for folder in folders:
        yield from (folder / name for name in ANSWERS)
    if (spec := find_spec("phases")) and spec.submodule_search_locations:
        yield from map(Path, spec.submodule_search_locations)


def main(words: list[str]) -> int:
    """Print which answers this account can read; return 1 if there are any.

    Args:
        words: folders of courses, in addition to this module's folder and Python's path.
    """
    here = Path(__file__).resolve().parents[2]
    places = {place.resolve() for place in _places([here, *map(Path, words)])}
    readable = sorted(file for place in places if (file := first_read(place, i_read)))
    for file in readable:
        print(f"answers: this account can read {file}")
    if readable:
        print(
            "  what to do: give learners the archive of `python -m hood bundle` instead of the "
            "project. If learners share a machine with the course, make the course's folder "
            "unreadable for them"
        )
        return 1
    print(f"answers: this account cannot read any answers in {', '.join(map(str, [here, *words]))}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
