"""Runs a grading command and measures it: seconds by the clock, and of all processors."""

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

PATIENCE = 30.0  # seconds for what a command left behind to end


class Failed(Exception):
    """A grading command failed; its last words."""


@dataclass(frozen=True)
class Run:
    """What one command cost.

    count: submissions that it graded
    seconds: by the clock
    cpu: processor seconds, of it and of all processes that it started
    """

    count: int
    seconds: float
    cpu: float

    @property
    def per_minute(self) -> float:
        """Submissions graded in a minute."""
        return 60 * self.count / self.seconds

    def beyond(self, fewer: Run) -> Run:
        """What the further submissions cost that another run, also from a cold start, had not."""
        return Run(self.count - fewer.count, self.seconds - fewer.seconds, self.cpu - fewer.cpu)


def autograde(course: Course, count: int) -> Run:
    """`nbgrader autograde` on the `count` submissions that are not graded yet."""
    return _run(course, ["-m", "nbgrader", "autograde", course.lab], count)


def grade(course: Course, count: int, workers: int = 1) -> Run:
    """`python -m hood grade` on the same."""
    return _run(course, ["-m", "hood", "grade", course.lab, f"--workers={workers}"], count)


def _run(course: Course, words: list[str], count: int) -> Run:
    """Raises Failed when the command does, or leaves a submission out."""
    # what outlives the command, such as a warm process, becomes a child of this one and counts
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
    """Processor seconds of all children that have ended, and theirs."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _wait_for_the_rest() -> None:
    end = time.monotonic() + PATIENCE
    with contextlib.suppress(ChildProcessError):  # there is none left
        while time.monotonic() < end:
            if os.waitpid(-1, os.WNOHANG) == (0, 0):
                time.sleep(0.02)
