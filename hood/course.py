"""A course: the folder with ``course.toml``, and what that file tells the engine.

The engine imports nothing from a course. ``course.toml`` says what the engine needs: the title, the
packages that notebooks import, and the phases.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import Any

from hood import UserError

FILE = "course.toml"
VARIABLE = "HOOD_COURSE"  # the environment variable with the course's folder
PHASE = re.compile(r"\d\d_[a-z0-9_]+")  # a phase's name
ENGINE = Path(__file__).resolve().parents[1]  # the folder of this package


@dataclass(frozen=True)
class Phase:
    """A phase, as the ``course.toml`` of its course lists it."""

    name: str  # the name of its folder in phases/ and of its notebooks, such as "01_tensors"
    title: str  # the phase's title on the start page and on the site
    promise: str = ""  # what a learner can do after the phase: the words after "you can"
    needs: tuple[int, ...] = ()  # the numbers of phases that a learner needs just before this one
    # the hours for the lesson, and the hours for the lab without its further exercises. If these
    # numbers are given, the build compares them and `further` with the texts
    # (:mod:`hood.authoring.stated`)
    hours: tuple[float, float] = (0, 0)
    further: float = 0  # the hours for the lab's further exercises; see `hours`

    @property
    def number(self) -> int:
        """The phase's place in the course: the two digits at the start of the phase's name."""
        return int(self.name[:2])


@dataclass(frozen=True)
class Course:
    """The content of ``course.toml``. Every field except the folder is a key of that file."""

    root: Path  # the course's folder, which is not a key of the file
    title: str = "A course"  # the course's title on the site and in a learner's notebooks
    # the course's name in archives' names and in addresses: lower-case letters, digits and "-"
    id: str = "course"
    version: str = "0.1.0"  # the course's version, in the name of its wheel
    about: str = ""  # what the course teaches, in a sentence or two
    # pip's arguments for a learner's environment; pip is called once for each text
    install: tuple[str, ...] = ("-r lock/packages.txt",)
    install_gpu: tuple[str, ...] = ()  # the same as `install`, for a machine with an NVIDIA GPU
    install_note: str = ""  # a sentence about `install`, such as how much space the packages take
    # the course's own packages, which notebooks and sandboxes import
    packages: tuple[str, ...] = ()
    drivers: str = ""  # the package with the course's drivers, such as "utils.drivers"
    # the module that says which modules kernels import
    # (:mod:`hood.grader.inside.course_sandbox`)
    sandbox: str = ""
    # a module with a function `line_for`, which explains an error of the course in one line
    errors: str = ""
    records: tuple[str, ...] = ()  # folders of data that lessons and checks read
    # packages whose versions can change what code computes (Python's version always counts, too).
    # If one of these versions changes, lessons are executed again, and submissions can be graded
    # again (:mod:`hood.manifest`)
    versions: tuple[str, ...] = ()
    phases: tuple[Phase, ...] = ()  # the phases, in their order; each has a table `[[phases]]`
    # the colours of pages and verdicts, by role
    palette: Mapping[str, str] = field(default_factory=dict)
    # the address of the folder with the start page of the course's site. Without this address,
    # links to lessons lead to the notebooks beside a lab
    lesson_url: str = ""
    # the address from which the course can be cloned; every page of the site has a link to it
    repository_url: str = ""


def course_folder() -> Path:
    """Return the folder of the course that this process works for.

    If the variable ``HOOD_COURSE`` is set, it names the folder. If not, the folder is the nearest
    folder with a ``course.toml``: the working directory, or a folder above it. If there is no such
    folder, the engine's folder is used.
    """
    if named := os.environ.get(VARIABLE):
        return Path(named).resolve()
    here = Path.cwd()
    return next((one for one in (here, *here.parents) if (one / FILE).is_file()), ENGINE)


@cache
def course(root: Path) -> Course:
    """Return what the ``course.toml`` of a folder says, with defaults for missing keys.

    Raises UserError when the file can't be read, or has a wrong key or value.
    """
    path = root / FILE
    if not path.is_file():
        return Course(root)
    try:
        said = tomllib.loads(path.read_text(encoding="utf-8"))
        phases = tuple(_made(Phase, row, f"{path}: [[phases]]") for row in said.pop("phases", []))
        found: Course = _made(Course, {**said, "root": root, "phases": phases}, str(path))
        _check(found)
    except (OSError, ValueError) as error:
        raise UserError(f"{path} can't be read: {error}") from None
    return found


def _check(about: Course) -> None:
    """Raise ValueError if a value has a wrong form."""
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", about.id):
        raise ValueError(f"expected lower-case letters, digits and '-' in `id`, got {about.id!r}")
    for phase in about.phases:
        if not PHASE.fullmatch(phase.name):
            raise ValueError(
                "expected two digits, '_', and lower-case letters, digits or '_' as a phase's "
                f"`name`, such as 01_tensors, got {phase.name!r}"
            )


def _made(kind: type, said: Mapping[str, Any], where: str) -> Any:
    """Return an instance of ``kind`` with a table's values; lists become tuples.

    Raises ValueError for a wrong key.
    """
    known = {one.name: one for one in fields(kind)}
    if unknown := sorted(said.keys() - known):
        expected = ", ".join(sorted(known.keys() - {"root"}))
        raise ValueError(f"{where}: unknown keys {', '.join(unknown)}; expected keys: {expected}")
    table = {key: tuple(one) if isinstance(one, list) else one for key, one in said.items()}
    try:
        return kind(**table)
    except TypeError as error:
        raise ValueError(f"{where}: {error}") from None
