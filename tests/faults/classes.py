"""The two classes: one needs no time to grade, the other runs in sandboxed kernels."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from nbgrader.api import Gradebook

from hood.classroom.recording.writer import Writer
from hood.grader.batch.grading import grade
from hood.grader.course import enter_lab
from tests.faults import processes
from tests.faults.state import State, look
from tests.hood.classroom.recording.small import CONFIG, HW, hand_in, job_of, make_small
from tests.hood.tiny import (
    ANSWERS,
    LAB,
    ROOT,
    environment,
    make_course,
    released,
    solved,
    source_notebook,
    write,
)


@dataclass(frozen=True)
class Class:
    """A course before grading.

    Attributes:
        root: the class's folder, never changed; each round has a copy.
        lab: the assignment.
        before: the folder's content.
        reference: the folder's content after an undisturbed run.
        same_seeds: whether the cells print the same text with other seeds.
    """

    root: Path
    lab: str
    before: State
    reference: State
    same_seeds: bool

    @property
    def students(self) -> int:
        """The number of submissions."""
        return len(self.reference.rows)

    def copy(self, root: Path) -> Path:
        """A separate copy, for a round."""
        shutil.copytree(self.root, root, dirs_exist_ok=True)
        if not (root / "phases").exists():
            (root / "nbgrader_config.py").write_text(CONFIG.format(root=str(root)))
        return root


def words(lab: str, *more: str) -> list[str]:
    """The command as an instructor types it."""
    return [sys.executable, "-m", "hood", "grade", lab, *more]


def variables(root: Path, tmp: Path) -> dict[str, str]:
    """The environment of a run: the course's own code, and a visible folder for temporary files."""
    return {
        **environment(root),
        "PYTHONPATH": f"{root}{os.pathsep}{ROOT}",
        "TMPDIR": str(tmp),
        "DASK_TEMPORARY_DIRECTORY": str(root.parent),
    }


IN_WORKERS = """
import sys

if "hood.grader.batch.worker" in sys.orig_argv:
    import tests.faults.idle
"""


def make_quick(folder: Path) -> Class:
    """Twenty-six submissions: new, resubmitted, marked by hand and damaged ones.

    Grading is simulated (:class:`tests.hood.classroom.recording.small.Pretend`) in real processes;
    the warm ones are idle (:mod:`tests.faults.idle`).
    """
    root = folder / "quick"
    root.mkdir()
    course = make_small(root)
    for package in ("hood", "utils", "benchmarks/records"):
        shutil.copytree(ROOT / package, root / package, dirs_exist_ok=True)
    shutil.copy(ROOT / "course.toml", root)
    # written beside the engine now, because earlier and later grades must come from the same code
    (root / "sitecustomize.py").write_text(IN_WORKERS)
    early = [f"early{number}" for number in range(8)]
    for number, student in enumerate(early):
        why = "because" if number != 3 else ""
        hand_in(course, student, f"score {number / 8}", why=why)
    with Writer(course) as writer:
        for student in early:
            job = job_of(course, student)
            writer.record(job, grade(job))
    _mark_by_hand(course.directory.db_url)
    for student in early[4:6]:  # one with marks by hand, one without
        hand_in(course, student, "score 1.75", why="because of that")
    shutil.rmtree(root / "autograded" / early[6])
    for number in range(15):
        answer = "sleep 0.15" if number % 4 == 1 else f"score {number / 10}"
        path = hand_in(course, f"new{number:02}", answer, why="because" if number % 3 else "")
    write(b"2026-01-02 10:00:00 UTC\n", path.with_name("timestamp.txt"))
    write(b"1,2\n" * 2000, path.with_name("data.csv"))
    hand_in(course, "new15", b"")
    hand_in(course, "new16", b'{"cells": [')
    hand_in(course, "new17", b"score 1\xff")
    return _with_reference(root, HW, folder, same_seeds=True)


def make_real(folder: Path) -> Class:
    """Five submissions that run in sandboxes; one waits a little, one kills its kernel."""
    root = make_course(folder / "real")
    source = source_notebook()
    write(source, root / "source" / LAB / f"{LAB}.ipynb")
    wait = "import time\ntime.sleep(0.5)\n"
    twice = "import os\nos.kill(os.getpid(), 9)\n" + ANSWERS["twice"]
    answers = {
        "ada": {},
        "ben": {"twice": wait + ANSWERS["twice"], "boxes": wait + ANSWERS["boxes"]},
        "cleo": {"row_sums": "def row_sums(x):\n    return x.sum(dim=0)"},
        "dan": {"row_sums": wait + "raise RuntimeError", "boxes": wait},
        "eve": {"twice": twice},
    }
    for student, given in answers.items():
        write(solved(released(source), **given), _submission(root, student))
    with _environment(root):
        enter_lab(root, LAB)
    return _with_reference(root, LAB, folder, same_seeds=False)


def _submission(root: Path, student: str) -> Path:
    return root / "submitted" / student / LAB / f"{LAB}.ipynb"


def _mark_by_hand(url: str) -> None:
    with Gradebook(url) as gradebook:
        for student in ("early0", "early4"):
            why = gradebook.find_grade("why", HW, HW, student)
            why.manual_score, why.needs_manual_grade = 2.5, False
            gradebook.find_comment("why", HW, HW, student).manual_comment = "Nearly."
        gradebook.find_grade("test", HW, HW, "early1").extra_credit = 0.5
        gradebook.db.commit()


def _with_reference(root: Path, lab: str, folder: Path, same_seeds: bool) -> Class:
    """The class, and the result of an undisturbed run."""
    before = look(root, lab)
    made = Class(root, lab, before, before, same_seeds)
    calm, tmp = made.copy(folder / f"{root.name}-calm"), folder / f"{root.name}-tmp"
    tmp.mkdir()
    command: Sequence[str] = words(lab, "--workers", "2")
    done = subprocess.run(
        command, cwd=calm, env=variables(calm, tmp), capture_output=True, text=True, timeout=600
    )
    if done.returncode:
        raise RuntimeError(f"the class can't be graded at all:\n{done.stdout}{done.stderr}")
    if left := processes.after_a_while(lambda: os.listdir(tmp)):
        raise RuntimeError(f"an undisturbed run leaves {left} in the temporary folder")
    # with the files that Python has compiled, so that rounds do not compile the code again
    for package in ("hood", "utils"):
        shutil.copytree(calm / package, root / package, dirs_exist_ok=True)
    return Class(root, lab, before, look(calm, lab), same_seeds)


@contextmanager
def _environment(root: Path) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.update(environment(root))
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
