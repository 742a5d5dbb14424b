"""Run a grading command and measure its wall-clock seconds and processor seconds."""

from __future__ import annotations

import contextlib
import os
import resource
import subprocess
import sys
import time
from dataclasses import dataclass

from benchmarks.grading.course import Course
from hood.grader.inside import linux

PATIENCE = 30.0  # seconds for the processes that a command left behind to end


class Failed(Exception):
    """A grading command failed; the message ends with its last output."""


@dataclass(frozen=True)
class Run:
    """The cost of one command.

    count: submissions that it graded
    seconds: the wall-clock time
    cpu: the processor seconds of the command and of all processes that it started
    """

    count: int
    seconds: float
    cpu: float

    @property
    def per_minute(self) -> float:
        """Submissions graded in a minute."""
        return 60 * self.count / self.seconds

    def beyond(self, fewer: Run) -> Run:
        """Return the cost of the additional submissions: this run minus a smaller run."""
        return Run(self.count - fewer.count, self.seconds - fewer.seconds, self.cpu - fewer.cpu)


def autograde(course: Course, count: int) -> Run:
    """Run `nbgrader autograde` on the `count` ungraded submissions."""
    return _run(course, ["-m", "nbgrader", "autograde", course.lab], count)


def grade(course: Course, count: int, workers: int = 1) -> Run:
    """Run `python -m hood grade` on the `count` ungraded submissions."""
    return _run(course, ["-m", "hood", "grade", course.lab, f"--workers={workers}"], count)


def _run(course: Course, words: list[str], count: int) -> Run:
    """Run a command. Raises Failed if the command fails, or leaves a submission out."""
    # processes that outlive the command, such as the warm process, become children of this process,
    # so that their time counts
    linux.prctl(linux.PR_SET_CHILD_SUBREAPER, 1)
    before, cpu, start = _graded(course), _children(), time.perf_counter()
    done = subprocess.run(
        [sys.executable, *words],
        cwd=course.root,
        env=dict(course.environment()),
        capture_output=True,
        text=True,
        errors="replace",
    )
    seconds = time.perf_counter() - start
    _wait_for_the_rest()
    found = _graded(course) - before
    if done.returncode or found != count:
        said = (done.stdout + done.stderr)[-2000:]
        raise Failed(f"{' '.join(words)}: graded {found} of {count} submissions\n{said}")
    return Run(count, seconds, _children() - cpu)


def _graded(course: Course) -> int:
    return sum(1 for _ in (course.root / "autograded").glob(f"*/{course.lab}/*.ipynb"))


def _children() -> float:
    """Return the processor seconds of all ended children and of their children."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _wait_for_the_rest() -> None:
    end = time.monotonic() + PATIENCE
    with contextlib.suppress(ChildProcessError):  # no child is left
        while time.monotonic() < end:
            if os.waitpid(-1, os.WNOHANG) == (0, 0):
                time.sleep(0.02)
