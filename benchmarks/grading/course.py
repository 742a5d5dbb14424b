"""Throw-away courses with one lab and a made-up class, for plain nbgrader and for the grader."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import nbformat

from hood.authoring.notebooks.notebook import to_notebook
from hood.authoring.notebooks.text import parse
from hood.authoring.proof.sample_class import load_lab, make_class
from hood.grader.course import enter_lab
from hood.phase_paths import ROOT

PACKAGES = ("hood", "utils", "benchmarks")
# These settings use nothing of this project. (The hidden cells call `verify` in the learner's own
# kernel.) The time limit differs from nbgrader's 30 s, because torch.compile may take longer.
STOCK = """\
c = get_config()
c.CourseDirectory.root = {root!r}
c.Execute.timeout = 600
"""


@dataclass(frozen=True)
class Course:
    """A course folder. lab: the assignment."""

    root: Path
    lab: str

    def environment(self) -> Mapping[str, str]:
        """Return the environment in which Python imports the course's copy of the project."""
        return {
            **os.environ,
            "PYTHONPATH": str(self.root),
            "OPEN_THE_HOOD_EXCHANGE": str(self.root / "exchange"),
            "HOME": str(self.root / "home"),
            "XDG_CACHE_HOME": str(self.root / "home" / "cache"),
            # the folder in which ordinary kernels share compiled code, from one learner to the next
            "TORCHINDUCTOR_CACHE_DIR": str(self.root / "inductor"),
        }


def make_course(root: Path, phase: Path) -> Course:
    """Make a course without students. Its gradebook has one lab.

    phase: the folder with the lab's text and checks
    """
    for package in PACKAGES:
        shutil.copytree(ROOT / package, root / package, ignore=_ignored)
    shutil.copytree(phase, root / "phases" / phase.name, ignore=_ignored)
    for name in ("course.toml", "nbgrader_config.py"):
        shutil.copy(ROOT / name, root)
    notebook = to_notebook(parse("lab.py", (phase / "lab.py").read_text()))
    source = root / "source" / phase.name / f"{phase.name}.ipynb"
    source.parent.mkdir(parents=True)
    nbformat.write(notebook, source)
    (root / "home").mkdir()
    (root / "submitted").mkdir()
    enter_lab(root, phase.name)
    return Course(root, phase.name)


def stock_copy(course: Course, root: Path) -> Course:
    """Copy a course, without its settings, for plain nbgrader."""
    shutil.copytree(course.root, root)
    (root / "nbgrader_config.py").write_text(STOCK.format(root=str(root)))
    return Course(root, course.lab)


def honest_work(course: Course) -> list[bytes]:
    """Return the sample class's honest submissions, with right and wrong answers."""
    learners = make_class(load_lab(course.root, course.lab), accidents=False)
    return [learner.data for learner in learners]


def hand_in(course: Course, work: Sequence[bytes], count: int, letter: str = "s") -> None:
    """Hand in `count` copies of the class's work. Earlier submissions are removed.

    letter: the first letter of the new students' ids
    """
    first = 0
    for folder in (course.root / "submitted").glob(f"{letter}*"):
        first = max(first, int(folder.name.removeprefix(letter)) + 1)
        shutil.rmtree(folder)  # otherwise the next way of grading would grade them again
    for number in range(first, first + count):
        folder = course.root / "submitted" / f"{letter}{number:06d}" / course.lab
        folder.mkdir(parents=True)
        (folder / f"{course.lab}.ipynb").write_bytes(work[number % len(work)])


def _ignored(folder: str, names: list[str]) -> list[str]:
    return [name for name in names if name in ("__pycache__", "records")]
