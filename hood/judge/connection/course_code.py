"""The course's own code, as a process knows it: its packages, and the folder that they lie in.

Their data classes are sent by value, and their functions are no learner's. A process that works
where the course lies reads it in ``course.toml``. The first process of a sandbox is told it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

ENGINE = Path(__file__).resolve().parents[3]  # in a sandbox the course's packages lie there, too

_told: tuple[tuple[str, ...], Path] | None = None


def tell(packages: Iterable[str], root: Path = ENGINE) -> None:
    """Say which packages are the course's, and in which folder they lie."""
    global _told
    _told = tuple(packages), root


def packages() -> tuple[str, ...]:
    """Return the names of the course's packages, such as ``utils``."""
    return _known()[0]


def is_of_course(module: str) -> bool:
    """Return whether a module, by its name, is one of the course's."""
    return module.startswith(tuple(f"{package}." for package in packages()))


def folders() -> Iterator[Path]:
    """Yield the folders of the engine and of the course's packages."""
    names, root = _known()
    yield ENGINE / "hood"
    yield from (root / name for name in names)


def _known() -> tuple[tuple[str, ...], Path]:
    if _told is None:
        from hood.course import course, course_folder  # here, because a sandbox does not have it

        found = course(course_folder())
        tell(found.packages, found.root)
    assert _told is not None
    return _told
