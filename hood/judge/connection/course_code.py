"""The packages of the course, and their folder.

Data classes of these packages are sent by value. Functions of these packages don't count as the
learner's code. A process with access to the course reads ``course.toml``. For sandboxes,
the zygote calls :func:`tell`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

ENGINE = Path(__file__).resolve().parents[3]  # in a sandbox, also the folder of the packages

_told: tuple[tuple[str, ...], Path] | None = None


def tell(packages: Iterable[str], root: Path = ENGINE) -> None:
    """Set the course's packages and their folder."""
    global _told
    _told = tuple(packages), root


def packages() -> tuple[str, ...]:
    """Return the names of the course's packages, such as ``utils``."""
    return _known()[0]


def is_of_course(module: str) -> bool:
    """Return whether the module with this name belongs to the course."""
    return module.startswith(tuple(f"{package}." for package in packages()))


def folders() -> Iterator[Path]:
    """Yield the folders of the engine and of the course's packages."""
    names, root = _known()
    yield ENGINE / "hood"
    yield from (root / name for name in names)


def _known() -> tuple[tuple[str, ...], Path]:
    if _told is None:
        from hood.course import course, course_folder  # here, because a sandbox lacks this module

        found = course(course_folder())
        tell(found.packages, found.root)
    assert _told is not None
    return _told
