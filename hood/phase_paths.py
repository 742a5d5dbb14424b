"""Paths of the project: the phases' texts, the notebooks built from them, the import path."""

from __future__ import annotations

import os
import re
import unicodedata
from dataclasses import dataclass
from pathlib import Path, PurePath

from hood import UserError
from hood.course import ENGINE, FILE, PHASE, VARIABLE, course_folder

ROOT = course_folder()  # the course of this process, fixed when the process begins
START = "start"
WORK = "work"  # the folder of the learner's copies, in a course's folder
LESSON = re.compile(r"\d\d_\w+\.ipynb")


@dataclass(frozen=True)
class PhasePaths:
    """A phase, or the start page: its texts and the notebooks that are built from them."""

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
        """The files of the module ``checks``; if there is an ``__init__.py``, it comes first."""
        return check_files(self.folder)

    @property
    def answers(self) -> Path:
        """The folder of the answers that test the checks."""
        return self.folder / "answers"

    @property
    def page(self) -> Path:
        """The built, executed notebook of the lesson."""
        return self.root / "notebooks" / f"{self.name}.ipynb"

    @property
    def source(self) -> Path:
        """The built notebook of the lab, in the instructor's version.

        ``release`` has the learner's version.
        """
        return self.root / "source" / self.name / f"{self.name}.ipynb"

    @property
    def release(self) -> Path:
        return self.root / "release" / self.name / f"{self.name}.ipynb"

    def texts(self) -> list[str]:
        """Return the file names of the texts that exist."""
        return [path.name for path in (self.lesson, self.lab) if path.exists()]

    def relative(self, path: Path) -> str:
        """Return a path relative to the root, as messages show it."""
        return path.relative_to(self.root).as_posix()


def copy_of(notebook: PurePath) -> PurePath | None:
    """Return the path of a learner's copy of a notebook; None if learners get no copy of it.

    Both paths are relative to the course's folder. A lab's copy keeps the lab's name, because a
    submission must have this name. A lesson's copy gets another name, because a tab in JupyterLab
    shows only the name. With the same name, the tabs of a lesson and its lab would look the same.
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
    """Return the file that a learner opens: their copy in ``work/``, else the built notebook."""
    place = copy_of(notebook.relative_to(root))
    return root / place if place and (root / place).is_file() else notebook


def check_files(folder: Path) -> list[Path]:
    """Return the files of a phase's module ``checks``: ``checks.py``, or a folder's files.

    The folder may have an ``__init__.py``, which then comes first.
    """
    every = (folder / "checks").glob("*.py")
    found = sorted(every, key=lambda path: (path.name != "__init__.py", path.name))
    return found or [path for path in [folder / "checks.py"] if path.exists()]


def environment_with(folder: Path) -> dict[str, str]:
    """Return the environment variables for a child process that works for a folder.

    Variables without a new value keep their value in this process.

    PYTHONPATH begins with this folder, the folder of its course, and the engine's folder.
    ``HOOD_COURSE`` names the course: the folder itself, or this process's course if the folder has
    no ``course.toml``.
    """
    course = folder if (folder / FILE).is_file() else course_folder()
    before = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    path = dict.fromkeys([str(folder), str(course), str(ENGINE), *filter(None, before)])
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path), VARIABLE: str(course)}


def phases(root: Path = ROOT) -> list[PhasePaths]:
    """Return every phase that has a text, sorted by name; an empty list without ``phases/``."""
    found = (PhasePaths(root, path.name) for path in sorted((root / "phases").glob("*")))
    return [phase for phase in found if PHASE.fullmatch(phase.name) and phase.texts()]


def pages(root: Path) -> list[PhasePaths]:
    """Return each phase, and the start page."""
    start = PhasePaths(root, START)
    return [*phases(root), *([start] if start.lesson.exists() else [])]


def choose(root: Path, wanted: list[str]) -> list[PhasePaths]:
    """Return the phases named by words such as "01_tensors", "01", "1", "tensors" or "start".

    Without words, return all phases. Raises UserError when a word names no phase.
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
            raise UserError(f"there is no phase {word!r}; the phases are: {known}")
        chosen += [phase for phase in match if phase not in chosen]
    return chosen


def lab_named(root: Path, word: str) -> str:
    """Return the folder name of the lab that is meant by a word such as "01".

    If the word's last part names a folder of ``source/``, in any Unicode normal form, return that
    folder's name. Otherwise return the word unchanged, because a course may have labs that it did
    not build.
    """
    name = Path(word).name  # "01_tensors/" and "source/01_tensors", as a shell completes them
    for folder in (root / "source" / name, *(root / "source").glob("*")):
        if name and _nfc(folder.name) == _nfc(name) and folder.is_dir():
            return folder.name
    return next((phase.name for phase in phases(root) if name in names(phase)), word)


def _nfc(name: str) -> str:
    """Return a name in NFC, the form in which names are compared; macOS writes another form."""
    return unicodedata.normalize("NFC", name)


def names(phase: PhasePaths) -> set[str]:
    """Return the words that name a phase: full name, number, and the name without the number."""
    number, _, rest = phase.name.partition("_")
    return {phase.name, number, rest, str(int(number)) if number.isdecimal() else ""} - {""}


def anchor(heading: str) -> str:
    """Return the fragment of a link that makes JupyterLab open a notebook at a heading.

    The build makes the heading's slug the id of the cell that begins with the heading. The heading
    itself as a fragment would work only in an open notebook: JupyterLab searches only the headings
    that it has drawn.
    """
    return f"cell-id={slug(heading)}"


def slug(heading: str) -> str:
    """Return a heading in lower-case ASCII with "-" between words, at most 60 characters."""
    plain = unicodedata.normalize("NFKD", heading.lower()).encode("ascii", "ignore").decode()
    return "-".join(re.findall(r"[a-z0-9_]+", plain.replace("'", "")))[:60].strip("-")
