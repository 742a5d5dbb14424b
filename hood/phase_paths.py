"""Paths of the project: the phases' texts, the notebooks built from them, the import path."""

from __future__ import annotations

import os
import re
import unicodedata
from dataclasses import dataclass
from pathlib import Path, PurePath

from hood import UserError
from hood.course import ENGINE, FILE, VARIABLE, course_folder

ROOT = course_folder()  # the course that this process works for, as it was when it began
PHASE = re.compile(r"\d\d_[a-z0-9_]+")
START = "start"
WORK = "work"  # in a course's folder, the one with the learner's copies
LESSON = re.compile(r"\d\d_\w+\.ipynb")


@dataclass(frozen=True)
class PhasePaths:
    """A phase, or the start page: which texts it has and which notebooks are built from them."""

    root: Path  # the project's folder
    name: str  # such as ``01_tensors``, or :data:`START`

    @property
    def number(self) -> str:
        """The two digits at the start of the name."""
        return self.name.partition("_")[0]

    @property
    def folder(self) -> Path:
        return self.root / "phases" / self.name

    @property
    def lesson(self) -> Path:
        start = self.root / "phases" / "start.py"
        return start if self.name == START else self.folder / "lesson.py"

    @property
    def lab(self) -> Path:
        return self.folder / "lab.py"

    @property
    def checks(self) -> list[Path]:
        """The files of the module ``checks``, the one to import first."""
        return check_files(self.folder)

    @property
    def answers(self) -> Path:
        """The folder of the answers that the checks are proven on."""
        return self.folder / "answers"

    @property
    def page(self) -> Path:
        """The built, executed notebook of the lesson."""
        return self.root / "notebooks" / f"{self.name}.ipynb"

    @property
    def source(self) -> Path:
        """The built notebook of the lab, instructor's version; ``release`` has the learner's."""
        return self.root / "source" / self.name / f"{self.name}.ipynb"

    @property
    def release(self) -> Path:
        return self.root / "release" / self.name / f"{self.name}.ipynb"

    def texts(self) -> list[str]:
        """Return the file names of those texts that exist."""
        return [path.name for path in (self.lesson, self.lab) if path.exists()]

    def relative(self, path: Path) -> str:
        """Return a path relative to the root, as messages show it."""
        return path.relative_to(self.root).as_posix()


def copy_of(notebook: PurePath) -> PurePath | None:
    """Return where a learner's copy of a notebook lies; None for what is not copied.

    Both paths are relative to the course's folder. A lab's copy keeps its name, by which it is
    handed in. A lesson's gets another, since the lab has the same, and a tab shows the name alone.
    """
    match notebook.parts:
        case ("notebooks", "start.ipynb" as name):
            return PurePath(WORK, name)
        case ("notebooks", name) if LESSON.fullmatch(name):
            return PurePath(WORK, f"lesson_{name}")
        case ("release", folder, name) if name.endswith(".ipynb"):
            return PurePath(WORK, folder, name)
    return None


def opened(notebook: Path, root: Path) -> Path:
    """Return what a learner opens for a built notebook: their copy in ``work/``, or itself."""
    place = copy_of(notebook.relative_to(root))
    return root / place if place and (root / place).is_file() else notebook


def check_files(folder: Path) -> list[Path]:
    """Return the files of a phase's module ``checks``, which is one file or a package.

    The file to import comes first: ``checks.py``, or the package's ``__init__.py``.
    """
    found = sorted((folder / "checks").glob("*.py"), key=lambda path: path.name != "__init__.py")
    return found or [path for path in [folder / "checks.py"] if path.exists()]


def environment_with(folder: Path) -> dict[str, str]:
    """Return this process's environment for a child process that works for a folder.

    The folder comes first on PYTHONPATH, its course's and the engine's after it. ``HOOD_COURSE``
    names the course: the folder, or where that has no ``course.toml`` this process's own.
    """
    course = folder if (folder / FILE).is_file() else course_folder()
    before = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    path = dict.fromkeys([str(folder), str(course), str(ENGINE), *filter(None, before)])
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path), VARIABLE: str(course)}


def phases(root: Path = ROOT) -> list[PhasePaths]:
    """Return every phase that has a text, sorted by name; none of a course without ``phases/``."""
    found = (PhasePaths(root, path.name) for path in sorted((root / "phases").glob("*")))
    return [phase for phase in found if PHASE.fullmatch(phase.name) and phase.texts()]


def pages(root: Path) -> list[PhasePaths]:
    """Return what pages are built from: each phase, and the start page."""
    start = PhasePaths(root, START)
    return [*phases(root), *([start] if start.lesson.exists() else [])]


def choose(root: Path, wanted: list[str]) -> list[PhasePaths]:
    """Return the phases that words such as "01_tensors", "01", "1", "tensors" or "start" name.

    Without words it is all pages. Raises UserError when a word names no phase.
    """
    every = pages(root)
    if not wanted:
        return every
    chosen = []
    for word in wanted:
        name = Path(word).name
        match = [phase for phase in every if name in names(phase)]
        if not match:
            known = ", ".join(phase.name for phase in every) or "none yet"
            raise UserError(f"there is no phase {word!r}; there are: {known}")
        chosen += [phase for phase in match if phase not in chosen]
    return chosen


def lab_named(root: Path, word: str) -> str:
    """Return the folder name of the lab that a word names, such as "01".

    A word whose last part names a folder of ``source/``, in whatever form of Unicode, gives that
    folder's name, and one that names nothing is returned as it is: a course may have labs of
    another origin.
    """
    name = Path(word).name  # "01_tensors/" and "source/01_tensors", as a shell completes them
    for folder in (root / "source" / name, *(root / "source").glob("*")):
        if name and _nfc(folder.name) == _nfc(name) and folder.is_dir():
            return folder.name
    return next((phase.name for phase in phases(root) if name in names(phase)), word)


def _nfc(name: str) -> str:
    """Return a name in the one form in which names are compared: macOS writes another one."""
    return unicodedata.normalize("NFC", name)


def names(phase: PhasePaths) -> set[str]:
    """Return the words that name a phase: full name, number, and the name without the number."""
    number, _, rest = phase.name.partition("_")
    return {phase.name, number, rest, str(int(number)) if number.isdecimal() else ""} - {""}


def anchor(heading: str) -> str:
    """Return the fragment of a link by which JupyterLab opens a notebook at a heading.

    The build gives a cell that begins with a heading the heading's slug as its id. A fragment with
    the heading itself would work only in a notebook that is open already: JupyterLab looks it up
    among what it has drawn.
    """
    return f"cell-id={slug(heading)}"


def slug(heading: str) -> str:
    """Return a heading in lower case ASCII, "-" between its words, at most 60 characters."""
    plain = unicodedata.normalize("NFKD", heading.lower()).encode("ascii", "ignore").decode()
    return "-".join(re.findall(r"[a-z0-9_]+", plain.replace("'", "")))[:60].strip("-")
