"""Show the progress of a grading run, and a summary of each lab at the end."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterable
from dataclasses import dataclass, field

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
)
from rich.table import Table
from rich.text import Text

from hood.classroom.formats.words import duration
from hood.classroom.rules.class_list import passed_over_sentence

SECONDS_BETWEEN_LINES = 10.0
MOST_LINES = 20  # above this number, learners with the same reason share a line
LONGEST = 400  # characters of one reason


class RunProgress(Progress):
    """A context manager that shows a run's progress: as a bar on a terminal, elsewhere as lines."""

    def __init__(self, console: Console, title: str, total: int):
        columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), _Pace()
        terminal = console.is_terminal
        super().__init__(*columns, console=console, transient=True, disable=not terminal)
        self._said = time.monotonic()
        self.add_task(title, total=total, graded=0, failed=0)

    def expect_more(self) -> None:
        """Increase the expected number of submissions by one."""
        (task,) = self.tasks
        self.update(task.id, total=(task.total or 0) + 1)

    def count(self, *, graded: bool, failed: bool = False) -> None:
        """Count one more finished submission. The rate includes only graded submissions."""
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
    def render(self, task: Task) -> Text:
        said = _pace(task)
        return Text(" ".join(said if task.fields["graded"] else said[1:]))


def _pace(task: Task) -> list[str]:
    """Return a text with the rate of the whole run, the time left, and the number of failures.

    The time left is computed from this rate, so the time left increases as long as no submission is
    finished.
    """
    graded, failed, elapsed = task.fields["graded"], task.fields["failed"], task.elapsed or 1e-9
    said = [f"{60 * graded / elapsed:.0f} a minute"]
    if graded:
        said.append(f"{duration((task.remaining or 0) * elapsed / graded)} left")
    return [*said, f"{failed} failed"] if failed else said


@dataclass
class RunSummary:
    """The counts of one lab's run."""

    lab: str
    graded: int = 0
    skipped: int = 0  # unchanged submissions with a recorded grade
    people: dict[str, str] = field(default_factory=dict)  # reasons to look at a verdict, by student
    # why the grader has no verdict, by student
    failures: dict[str, str] = field(default_factory=dict)
    # cells stopped at a limit of the lab, by student
    ended: dict[str, str] = field(default_factory=dict)
    late: dict[str, float] = field(default_factory=dict)  # how many seconds late, by student
    no_time: str = ""  # a sentence on submissions without a time
    # which hand-in counts, if not the newest, by student
    earlier: dict[str, str] = field(default_factory=dict)
    to_mark: int = 0
    not_entered: list[str] = field(default_factory=list)  # on disk, not in the gradebook
    unsafe: bool = False
    passed_over: dict[str, str] = field(default_factory=dict)  # why they were skipped, by student

    def show(self, console: Console) -> None:
        """Print the counts, and list the submissions that need a person or have no verdict."""
        table = Table(title=self.lab, box=box.SIMPLE_HEAD, title_justify="left", show_header=False)
        table.add_column("what")
        table.add_column("how many", justify="right")
        for what, count in (
            ("graded", self.graded),
            ("recorded before, skipped", self.skipped),
            ("need a person", len(self.people)),
            ("without a verdict", len(self.failures)),
            ("handed in late", len(self.late)),
            ("answers to mark by hand", self.to_mark),
        ):
            table.add_row(what, str(count))
        console.print(table)
        self.show_passed_over(console)
        if self.unsafe:
            console.print("[bold red]These grades were made without a sandbox.[/bold red]")
        late = ", ".join(f"{who} ({duration(seconds)})" for who, seconds in self.late.items())
        command = f"python -m hood grade {shlex.quote(self.lab)}"
        absent = f"Submissions on disk but not in the gradebook: run `{command}`"
        for title, lines in (
            ("Need a person", in_lines(self.people)),
            ("Without a verdict; run the same command to try again", in_lines(self.failures)),
            ("Stopped at a limit of the lab", in_lines(self.ended)),
            ("Handed in late", [late]),
            ("Without a time", [self.no_time]),
            ("Which of several hand-ins counts", in_lines(self.earlier)),
            (absent, [", ".join(self.not_entered)]),
        ):
            if any(lines):
                console.print(f"[bold]{title}[/bold]")
                for line in lines:
                    console.print(f"  {escape(line)}", highlight=False)

    def show_passed_over(self, console: Console) -> None:
        """Print which learners handed in but do not belong to the class."""
        if said := passed_over_sentence(self.passed_over):
            console.print(escape(said), highlight=False, soft_wrap=True)


def in_lines(found: dict[str, str]) -> list[str]:
    """Return one line for each student; if there are many students, one line for each reason."""
    pairs: Iterable[tuple[str, str]] = sorted(found.items())
    if len(found) > MOST_LINES:
        alike: dict[str, list[str]] = {}
        for student, why in pairs:
            alike.setdefault(why, []).append(student)
        pairs = [(", ".join(students), why) for why, students in alike.items()]
    return [f"{who}: {_shortened(why)}" for who, why in pairs]


def _shortened(why: str) -> str:
    shown = "".join(c if c.isprintable() else " " for c in why[: LONGEST + 1])
    return shown if len(shown) <= LONGEST else f"{shown[:LONGEST]} …"
