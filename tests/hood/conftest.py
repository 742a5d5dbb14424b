"""A class that is graded once, for every test of the results."""

from __future__ import annotations

import argparse
import io
import os
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pytest
from rich.console import Console

from hood.authoring import demo
from hood.authoring.proof.sample_class import Learner, accidents, load_lab, make_class
from hood.grader.course import Course
from hood.grader.sandbox import doctor
from tests.hood.classroom.marking.classroom import make_classroom
from tests.hood.headers import prepared_by_two
from tests.hood.tiny import (
    CELL_SECONDS,
    LAB,
    environment,
    make_course,
    released,
    solved,
    source_notebook,
    write,
)
from tests.once import made_once

REAL = "ana-real"


@dataclass(frozen=True)
class GradedCourse:
    """A course folder after ``python -m hood demo``.

    Attributes:
        status: the command's exit status.
        printed: the command's output.
        left: the temporary files that the command and all its processes left.
    """

    root: Path
    status: int
    printed: str
    left: Sequence[str] = ()

    @cached_property
    def learners(self) -> list[Learner]:
        """The learners of the class."""
        return make_class(load_lab(self.root, LAB))

    def learner(self, story: str) -> Learner:
        """Return the only learner whose story contains these words."""
        [found] = [one for one in self.learners if story in one.story]
        return found

    def page(self, learner: Learner) -> str:
        """Return the learner's feedback page."""
        return (self.root / "feedback" / learner.id / LAB / f"{LAB}.html").read_text()


@pytest.fixture(scope="session")
def problems() -> list[str]:
    return [str(problem) for problem in doctor.problems()]


def demand_sandboxes(problems: list[str]) -> None:
    """Skip a test that needs a sandbox if bubblewrap is missing; otherwise require a sandbox."""
    if problems and shutil.which("bwrap"):
        pytest.fail(f"bubblewrap is here, and there is no sandbox: {problems[0]}")
    if problems:
        pytest.skip(f"not run: {problems[0]}")


@pytest.fixture
def sandbox(problems: list[str]) -> None:
    """For a test that needs a sandbox."""
    demand_sandboxes(problems)


@pytest.fixture(scope="session")
def graded_course(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> GradedCourse:
    """The tiny lab's whole class, graded once for all workers of a test run."""
    root, outcome = made_once(tmp_path_factory, worker_id, "tiny-course", grade_tiny)
    return GradedCourse(root, **outcome)


def grade_tiny(root: Path) -> dict:
    """Run the demo in a course that also has a real learner's submission."""
    make_course(root)
    source = source_notebook()
    write(source, root / "source" / LAB / f"{LAB}.ipynb")
    write(released(source), root / "release" / LAB / f"{LAB}.ipynb")
    write(solved(released(source)), root / "submitted" / REAL / LAB / f"{LAB}.ipynb")
    with pytest.MonkeyPatch.context() as patch:
        # tests/hood/grader/execution/test_execute.py has loops that use the processor
        patch.setattr(accidents, "FOREVER", "__import__('time').sleep(3600)")
        patch.setattr(demo, "CELL_SECONDS", CELL_SECONDS)
        temporary = root / "tmp"
        temporary.mkdir()
        patch.setenv("TMPDIR", str(temporary))
        patch.setattr(tempfile, "tempdir", None)
        outcome = run_demo(root)
    left = sorted(path.name for path in temporary.iterdir())
    shutil.rmtree(temporary)
    return outcome | {"left": left}


@pytest.fixture(scope="module")
def classroom(tmp_path_factory: pytest.TempPathFactory) -> Course:
    """A course with three learners' answers in words to mark; the second is hostile."""
    hostile = "<script>alert(1)</script><img src=//evil.example/x onerror=alert(1)> </script> words"
    answers = {"ana_a": "Because.", "bo_b": hostile, "cy_c": "Shapes."}
    return make_classroom(tmp_path_factory.mktemp("marking") / "course", answers)


@pytest.fixture(scope="session")
def headers(tmp_path_factory: pytest.TempPathFactory, worker_id: str, compiler: None) -> list[Path]:
    """Compiled headers, from each of two processes that made them at the same time."""
    return [Path(p) for p in made_once(tmp_path_factory, worker_id, "headers", prepared_by_two)[1]]


def run_demo(root: Path, **options) -> dict:
    """Run ``python -m hood demo`` in a folder; return its exit status and output."""
    console = Console(file=io.StringIO(), width=140)
    arguments = argparse.Namespace(**{"lab": [LAB], "remove": False} | options)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment(root).items():
            if os.environ.get(name) != value:
                patch.setenv(name, value)
        status = demo.run(arguments, root=root, console=console)
    return {"status": status, "printed": console.file.getvalue()}


@pytest.fixture
def copied_course(graded_course: GradedCourse, tmp_path: Path) -> Path:
    """A copy of the graded course, for a test that changes it."""
    copy = tmp_path / "course"
    shutil.copytree(graded_course.root, copy)
    return copy
