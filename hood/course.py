"""A course: the folder that holds ``course.toml``, and what the engine has to know of it.

The engine imports nothing of a course. What it needs, the course says here: its title, the packages
that its notebooks import, its phases.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import Any

from hood import UserError

FILE = "course.toml"
VARIABLE = "HOOD_COURSE"  # in the environment, the folder of the course
ENGINE = Path(__file__).resolve().parents[1]  # the folder that this package lies in


@dataclass(frozen=True)
class Phase:
    """One phase of a course, as its ``course.toml`` lists it."""

    name: str  # its folder in phases/ and its notebooks' name, such as "01_tensors"
    title: str
    promise: str = ""  # what a learner can do after it: "you can ..."
    needs: tuple[int, ...] = ()  # numbers of the phases that it builds on directly
    # What the lesson takes, and what the lab takes without its further exercises; what those take.
    # The build works all three out of the texts (:mod:`hood.authoring.stated`).
    hours: tuple[float, float] = (0, 0)
    further: float = 0

    @property
    def number(self) -> int:
        """Its place in the course: the two digits at the start of its name."""
        return int(self.name[:2])


@dataclass(frozen=True)
class Course:
    """What ``course.toml`` says. Every field but the folder is a key of that file."""

    root: Path
    title: str = "A course"
    id: str = "course"  # of archives and addresses: lower-case letters, digits and "-"
    about: str = ""  # what it teaches, in a sentence or two
    install: str = "-r lock/packages.txt"  # what pip takes for a learner's environment
    install_note: str = ""  # a sentence on it
    packages: tuple[str, ...] = ()  # the course's own, which notebooks and sandboxes import
    drivers: str = ""  # the package with the course's drivers, such as "utils.drivers"
    # The module that says what kernels import (:mod:`hood.grader.inside.course_sandbox`).
    sandbox: str = ""
    errors: str = ""  # the module whose `line_for` says in a line what an error of the course means
    records: tuple[str, ...] = ()  # folders of data that lessons and checks read
    # Packages whose versions decide what code computes, beside Python's: a grade or an executed
    # lesson of other versions is another one (:mod:`hood.manifest`).
    versions: tuple[str, ...] = ()
    phases: tuple[Phase, ...] = ()
    palette: Mapping[str, str] = field(default_factory=dict)  # colours of pages, by their role
    lesson_url: str = ""  # the folder with the start page of the course's site
    repository_url: str = ""


def course_folder() -> Path:
    """Return the folder of the course that this process works for.

    It is the folder that ``HOOD_COURSE`` names, else the nearest one at or above the working
    directory that has a ``course.toml``, else the folder that the engine lies in.
    """
    if named := os.environ.get(VARIABLE):
        return Path(named).resolve()
    here = Path.cwd()
    return next((one for one in (here, *here.parents) if (one / FILE).is_file()), ENGINE)


@cache
def course(root: Path) -> Course:
    """Return what the ``course.toml`` of a folder says; what it leaves out has its default.

    Raises UserError when the file can't be read, or has a key or a value that it should not have.
    """
    path = root / FILE
    if not path.is_file():
        return Course(root)
    try:
        said = tomllib.loads(path.read_text(encoding="utf-8"))
        phases = tuple(_made(Phase, row, f"{path}: [[phases]]") for row in said.pop("phases", []))
        return _made(Course, {**said, "root": root, "phases": phases}, str(path))
    except (OSError, ValueError) as error:
        raise UserError(f"{path} can't be read: {error}") from None


def _made(kind: type, said: Mapping[str, Any], where: str) -> Any:
    """Return a data class of a table; lists become tuples. Raises ValueError for a wrong key."""
    known = {one.name: one for one in fields(kind)}
    if unknown := sorted(said.keys() - known):
        expected = ", ".join(sorted(known.keys() - {"root"}))
        raise ValueError(f"{where} has {', '.join(unknown)}; expected keys are {expected}")
    table = {key: tuple(one) if isinstance(one, list) else one for key, one in said.items()}
    try:
        return kind(**table)
    except TypeError as error:
        raise ValueError(f"{where}: {error}") from None
