"""A lab of three exercises and a course folder around it, for tests of grading."""

from __future__ import annotations

import copy
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Hashable
from pathlib import Path

import nbformat
from nbformat.notebooknode import NotebookNode
from nbgrader.preprocessors import ClearHiddenTests, ClearMarkScheme, ComputeChecksums

from hood.authoring.notebooks.notebook import to_notebook
from hood.authoring.notebooks.text import parse
from hood.grader.course import Course, nbgrader_config
from hood.grader.execution.graded_cell import read_verdicts
from hood.grader.submission.rebuild import as_recorded
from hood.verdict import Verdict

ROOT = Path(__file__).resolve().parents[2]
FIXTURE = ROOT / "tests" / "fixtures" / "tiny"
LAB = "99_tiny"
CONFIG = nbgrader_config(ROOT)
CELL_SECONDS = 3  # time limit of a cell; some cells of the class never end
CACHES = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
_GRADEBOOKS: dict[Hashable, bytes] = {}

ANSWERS = {
    "twice": "def twice(x):\n    return 2 * x",
    "row_sums": "def row_sums(x):\n    return x.sum(dim=1)",
    "boxes": "def pack(x):\n    return {'value': x + 1}\n\n\n"
    "def unpack(box):\n    return box['value'] - 1",
}


def source_notebook() -> NotebookNode:
    """Return the instructor's version."""
    text = parse("lab.py", (FIXTURE / LAB / "lab.py").read_text())
    assert not text.problems
    return to_notebook(text)


def released(source: NotebookNode) -> NotebookNode:
    """Return the learner's version."""
    nb = as_recorded(source, CONFIG)
    for step in (ClearHiddenTests, ClearMarkScheme, ComputeChecksums):
        nb, _ = step(config=CONFIG).preprocess(nb, {})
    return nb


def solved(nb: NotebookNode, **answers: str) -> NotebookNode:
    """Return a copy with every exercise solved, or answered as given."""
    nb = copy.deepcopy(nb)
    for name, answer in (ANSWERS | answers).items():
        cell(nb, f"{name}_solution").source = answer
    return nb


def judged(nb: NotebookNode) -> dict[str, Verdict]:
    """Return the verdicts of a graded notebook without the examples, which are always new."""
    return {name: verdict.with_examples({}) for name, verdict in read_verdicts(nb).items()}


def cell(nb: NotebookNode, grade_id: str) -> NotebookNode:
    """Return the cell with that id, and assert that there is only one."""
    [found] = [c for c in nb.cells if c.metadata.get("nbgrader", {}).get("grade_id") == grade_id]
    return found


def make_course(folder: Path, phases: Path = FIXTURE) -> Path:
    """Make a course folder with this project's code and the phases of another folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for package in ("hood", "utils"):
        # the files that Python has compiled are copied, too: with the copied times, they are valid
        # there
        shutil.copytree(ROOT / package, folder / package)
    shutil.copytree(ROOT / "benchmarks" / "records", folder / "benchmarks" / "records")
    for name in ("nbgrader_config.py", "course.toml"):
        shutil.copy(ROOT / name, folder)
    shutil.copytree(phases, folder / "phases", ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def with_gradebook(course: Course, what: Hashable, fill: Callable[[], None]) -> None:
    """Give a course a gradebook. ``fill`` makes it once; later calls copy it.

    Args:
        what: a name for the content, made of everything that `fill` depends on except the course's
            path.
        fill: opens the course's gradebook, enters the content, and closes it.
    """
    path = course.root / "gradebook.db"
    if what in _GRADEBOOKS:
        path.write_bytes(_GRADEBOOKS[what])
        return
    fill()
    if course.directory.db_url == f"sqlite:///{path}":
        _GRADEBOOKS[what] = path.read_bytes()


def write(nb: NotebookNode | bytes, path: Path) -> Path:
    """Write a notebook, or any bytes in its place."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(nb if isinstance(nb, bytes) else nbformat.writes(nb).encode())
    return path


def nbgrader(
    course: Path, *words: str, cwd: Path | None = None, code: Path | None = None
) -> subprocess.CompletedProcess:
    """Run an nbgrader command."""
    return subprocess.run(
        [sys.executable, "-m", "hood.grader.nbgrader", *words],
        cwd=cwd or course,
        env=environment(course, code),
        capture_output=True,
        text=True,
    )


def environment(course: Path, code: Path | None = None) -> dict[str, str]:
    """Return variables under which nbgrader uses only the course's own exchange, and its code.

    ``code`` is the folder of the code, if the course has no code. A home is made, because without a
    home each program of IPython leaves a folder in /tmp. All courses share the caches of the tests,
    so headers are compiled once.
    """
    (course / "home").mkdir(exist_ok=True)
    return {
        **os.environ,
        "PYTHONPATH": str(code or course),
        "OPEN_THE_HOOD_EXCHANGE": str(course / "exchange"),
        "HOME": str(course / "home"),
        "XDG_CACHE_HOME": CACHES,
    }
