"""Measure plain nbgrader and the grader in turn, on the same submissions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.grading.cells import pure_time
from benchmarks.grading.course import Course, hand_in, honest_work, make_course, stock_copy
from benchmarks.grading.memory import further_kernel
from benchmarks.grading.recording import Recording, fill, make_replaying, recording
from benchmarks.grading.runs import Run, autograde, grade

NEW = "r"  # the first letter of the ids whose execution is replayed


@dataclass(frozen=True)
class Plan:
    """The number of submissions of each run.

    Two runs with a cold start give the cost of one more submission.

    plain: nbgrader without settings; nbgrader: nbgrader with our settings; batch: `python -m hood
    grade` with one worker; two: with two workers;
    alone: the number of submissions whose cells are timed without grading; kernels: the number of
    kernels at the same time
    """

    plain: tuple[int, int]
    nbgrader: tuple[int, ...]
    batch: tuple[int, int]
    two: tuple[int, ...]
    alone: int = 12
    kernels: int = 6

    def with_count(self, count: int) -> Plan:
        """Return the plan with another number of submissions, two or more, in the larger runs."""
        return replace(self, batch=(max(1, min(self.batch[0], count // 2)), count), two=(count,))


def lab_figures(where: Path, phase: Path, plan: Plan, console: Console) -> dict[str, Any]:
    """Return all measured numbers of one lab. where: a new folder for two courses."""
    with console.status(f"{phase.name}: making two courses"):
        ours = make_course(where / "ours", phase)
        stock = stock_copy(ours, where / "stock")
        work = honest_work(ours)
    runs: dict[str, list[Run]] = {}

    def measure(
        name: str, course: Course, command: Callable[[Course, int], Run], counts: Sequence[int]
    ) -> None:
        for count in counts:
            hand_in(course, work, count)
            with console.status(f"{phase.name}: {name}, {count} submissions"):
                runs.setdefault(name, []).append(command(course, count))

    measure("plain nbgrader", stock, autograde, plan.plain)
    measure("nbgrader, our settings", ours, autograde, plan.nbgrader)
    measure("hood grade, 1 worker", ours, grade, plan.batch)
    measure("hood grade, 2 workers", ours, lambda course, n: grade(course, n, 2), plan.two)
    with console.status(f"{phase.name}: the cells alone, and memory"):
        pure = pure_time(ours, work[: plan.alone], pictures=False)
        drawn = pure_time(ours, work[: plan.alone], pictures=True)
        headers = next((ours.root / "home" / "cache").glob("open-the-hood/compiled/*/"), None)
        memory = further_kernel(work[0], headers, plan.kernels)
    return {
        "lab": phase.name,
        "compiles": headers is not None,
        "distinct": len(work),
        "runs": {name: [asdict(run) for run in found] for name, found in runs.items()},
        "cells": asdict(pure),
        "cells with pictures": asdict(drawn),
        "bytes of a further kernel": memory,
    }


def large_classes(
    where: Path, phase: Path, sizes: Sequence[int], new: int, console: Console
) -> list[Recording]:
    """Measure what recording costs as a class grows, in the courses that `lab_figures` made."""
    ours = Course(where / "ours", phase.name)
    work = honest_work(ours)
    graded = sorted((ours.root / "autograded").glob(f"*/{phase.name}/*.ipynb"))[0]
    recorded = where / "recorded.ipynb"
    recorded.write_bytes(graded.read_bytes())
    make_replaying(ours)
    found, before = [], 0
    for size in sizes:
        with console.status(f"recording in a class of {size:,}"):
            fill(ours, before, size)
            hand_in(ours, work, new, NEW)
            found.append(recording(ours, size, NEW, recorded, new))
            before = size
    return found
