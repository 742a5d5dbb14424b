"""Where texts and built notebooks lie, relative to the project's root."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

from grader import UserError

ROOT = Path(__file__).resolve().parent.parent
PHASE = re.compile(r"\d\d_[a-z0-9_]+")
START = "start"
TRANSLATION = re.compile(r"lesson\.([a-z]{2})\.py")


@dataclass(frozen=True)
class PhasePaths:
    """A phase, or the start page: which texts it has and which notebooks are built from them.

    Attributes:
        root: the project's folder.
        name: such as ``01_tensors``, or :data:`START`.
        language: of a translated lesson, such as ``es``; empty for the phase itself. A translation
            has a lesson and a page of its own, and neither lab nor checks.
    """

    root: Path
    name: str
    language: str = ""

    @property
    def number(self) -> str:
        """The two digits that a phase's name starts with."""
        return self.name.partition("_")[0]

    @property
    def folder(self) -> Path:
        """Where a phase's texts lie."""
        return self.root / "phases" / self.name

    @property
    def lesson(self) -> Path:
        if self.name == START:
            return self.root / "phases" / "start.py"
        return self.folder / f"lesson{self._suffix}.py"

    @property
    def lab(self) -> Path:
        """The lab's text. It does not exist for a translation."""
        return self.folder / f"lab{self._suffix}.py"

    @property
    def checks(self) -> list[Path]:
        """The files of the phase's module `checks`: see :func:`check_files`."""
        return check_files(self.folder)

    @property
    def page(self) -> Path:
        """The built, executed notebook of the lesson."""
        return self.root / "notebooks" / f"{self.name}{self._suffix}.ipynb"

    @property
    def source(self) -> Path:
        """The built lab, instructor's version."""
        return self.root / "source" / self.name / f"{self.name}.ipynb"

    @property
    def release(self) -> Path:
        """The built lab, learner's version."""
        return self.root / "release" / self.name / f"{self.name}.ipynb"

    @property
    def _suffix(self) -> str:
        return f".{self.language}" if self.language else ""

    def texts(self) -> list[str]:
        """Which of its texts exist, by name."""
        return [path.name for path in (self.lesson, self.lab) if path.exists()]

    def relative(self, path: Path) -> str:
        """The path as messages show it."""
        return path.relative_to(self.root).as_posix()


def check_files(folder: Path) -> list[Path]:
    """The files of a phase's module `checks`, a folder or one file; that to import comes first."""
    found = sorted((folder / "checks").glob("*.py"), key=lambda path: path.name != "__init__.py")
    return found or [path for path in [folder / "checks.py"] if path.exists()]


def find_root(start: Path | None = None) -> Path:
    """The nearest folder at or above `start` (default: the working directory) that has phases/."""
    start = (start or Path.cwd()).resolve()
    for folder in (start, *start.parents):
        if (folder / "phases").is_dir():
            return folder
    raise UserError(f"no folder phases/ in {start} or above it: run this from the project's root")


def phases(root: Path = ROOT) -> list[PhasePaths]:
    """Every phase that has a text, in order."""
    return [
        PhasePaths(root, folder.name)
        for folder in sorted((root / "phases").iterdir())
        if PHASE.fullmatch(folder.name) and PhasePaths(root, folder.name).texts()
    ]


def translations(phase: PhasePaths) -> list[PhasePaths]:
    """The translations of a phase's lesson, in the order of their languages."""
    found = (TRANSLATION.fullmatch(path.name) for path in sorted(phase.folder.glob("lesson.*.py")))
    return [replace(phase, language=match[1]) for match in found if match]


def pages(root: Path) -> list[PhasePaths]:
    """All that a page is built from: each phase and its translations, then the start page."""
    start = PhasePaths(root, START)
    found = [page for phase in phases(root) for page in (phase, *translations(phase))]
    return [*found, start] if start.lesson.exists() else found


def choose(root: Path, wanted: list[str]) -> list[PhasePaths]:
    """The phases named by "01_tensors", "01", "1", "tensors" or "start"; all when none is named."""
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


def names(phase: PhasePaths) -> set[str]:
    """What a phase answers to."""
    number, _, rest = phase.name.partition("_")
    return {phase.name, number, number.lstrip("0"), rest} - {""}
