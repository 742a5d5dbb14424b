"""Show the progress of a grading run: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
)
from rich.text import Text

SECONDS_BETWEEN_LINES = 10.0


class RunProgress:
    """The progress display of a run. Use it as a context manager.

    Args:
        console: where to print.
        title: the lab, or the number of labs.
        total: number of submissions in the run.
    """

    def __init__(self, console: Console, title: str, total: int):
        self._console, self._title, self._total = console, title, total
        self._done = self._graded = self._failures = 0
        self._started = self._said = time.monotonic()
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            _Rate(),
            _Left(),
            TextColumn("{task.fields[failures]}"),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = self._bar.add_task(title, total=total, failures="", graded=0)

    def __enter__(self) -> RunProgress:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def advance(self, *, graded: bool, failed: bool = False) -> None:
        """Count one more submission.

        Args:
            graded: False when it was skipped, which takes almost no time and does not count for the
                rate.
            failed: whether it has no verdict.
        """
        self._done += 1
        self._graded += graded
        self._failures += failed
        self._bar.update(self._task, advance=1, graded=self._graded, failures=self._failed_so_far())
        now = time.monotonic()
        if not self._console.is_terminal and now - self._said >= SECONDS_BETWEEN_LINES:
            self._said = now
            self._console.print(self._line(now), markup=False, highlight=False)

    def _line(self, now: float) -> str:
        elapsed = max(now - self._started, 1e-9)
        rate = f"{60 * self._graded / elapsed:.0f} a minute"
        left = _left(self._total - self._done, self._graded, elapsed)
        said = [f"{self._title}: {self._done} of {self._total}", rate, left, self._failed_so_far()]
        return ", ".join(filter(None, said))

    def _failed_so_far(self) -> str:
        return f"{self._failures} failed" if self._failures else ""


class _Rate(ProgressColumn):
    """A column with the number of graded submissions per minute."""

    def render(self, task: Task) -> Text:
        if not task.elapsed or not task.fields["graded"]:
            return Text("")
        return Text(f"{60 * task.fields['graded'] / task.elapsed:.0f} a minute")


class _Left(ProgressColumn):
    """A column with the time that is left."""

    def render(self, task: Task) -> Text:
        left = _left(int(task.remaining or 0), task.fields["graded"], task.elapsed or 0.0)
        return Text(left)


def _left(submissions: int, graded: int, elapsed: float) -> str:
    """Return the time left at the rate of the whole run; it grows while no submission ends.

    Args:
        submissions: how many are left.
        graded: how many were graded; as long as it is 0, the result is empty.
        elapsed: seconds since the run began.
    """
    return f"{_time(submissions * elapsed / graded)} left" if graded else ""


def _time(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
