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


class RunProgress(Progress):
    """The progress display of a run. Use it as a context manager."""

    def __init__(self, console: Console, title: str, total: int):
        columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), _Pace()
        terminal = console.is_terminal
        super().__init__(*columns, console=console, transient=True, disable=not terminal)
        self._said = time.monotonic()
        self.add_task(title, total=total, graded=0, failed=0)

    def count(self, *, graded: bool, failed: bool = False) -> None:
        """Count one more submission.

        Args:
            graded: whether it counts for the rate; it does not if it was skipped.
            failed: whether it has no verdict.
        """
        (task,) = self.tasks
        task.fields["graded"] += graded
        task.fields["failed"] += failed
        self.advance(task.id)
        now = time.monotonic()
        if not self.console.is_terminal and now - self._said >= SECONDS_BETWEEN_LINES:
            self._said = now
            done = f"{task.description}: {task.completed:.0f} of {task.total:.0f}"
            self.console.print(", ".join([done, *_pace(task)]), markup=False, highlight=False)


class _Pace(ProgressColumn):
    """A column with what :func:`_pace` returns, without a rate before there is one."""

    def render(self, task: Task) -> Text:
        said = _pace(task)
        return Text(" ".join(said if task.fields["graded"] else said[1:]))


def _pace(task: Task) -> list[str]:
    """Return the rate of the whole run, the time left, and the number that failed, in words.

    The time left follows from the rate, so it grows while no submission ends.
    """
    graded, failed, elapsed = task.fields["graded"], task.fields["failed"], task.elapsed or 1e-9
    said = [f"{60 * graded / elapsed:.0f} a minute"]
    if graded:
        said.append(f"{_time((task.remaining or 0) * elapsed / graded)} left")
    return [*said, f"{failed} failed"] if failed else said


def _time(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
