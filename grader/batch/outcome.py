"""Collect the results of a grading run and print them."""

from __future__ import annotations

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from grader.batch.job import Job, Result

MOST_LINES = 20
LONGEST = 400  # characters of one reason


class RunOutcome:
    """Counts the results of one lab's run.

    Attributes:
        graded: number of submissions that got a verdict in this run.
        skipped: number of submissions that were recorded before and have not changed.
        unsafe: whether any submission was graded without a sandbox.
        people: ``(student, reason)`` of submissions that have a verdict but need a person.
        failures: ``(student, reason)`` of submissions without a verdict, by fault of the grader.
    """

    def __init__(self, lab: str):
        self.lab = lab
        self.graded = self.skipped = 0
        self.unsafe = False
        self.people: list[tuple[str, str]] = []
        self.failures: list[tuple[str, str]] = []

    @property
    def complete(self) -> bool:
        """Whether every submission has a verdict."""
        return not self.failures

    def add(self, job: Job, result: Result) -> None:
        """Count a result that was recorded."""
        self.unsafe = self.unsafe or not job.sandbox
        if result.retryable:
            self.fail(job.student, result.problem)
            return
        self.graded += 1
        told = [str(reason) for notebook in result.notebooks for reason in notebook.reasons]
        if why := "; ".join(dict.fromkeys(told)) or result.problem:
            self.people.append((job.student, why))

    def fail(self, student: str, problem: str) -> None:
        """Count a submission without a verdict."""
        self.failures.append((student, problem))

    def show(self, console: Console) -> None:
        """Print the counts, and the submissions that need a person or have no verdict."""
        table = Table(title=self.lab, box=box.SIMPLE_HEAD, title_justify="left", show_header=False)
        table.add_column("what")
        table.add_column("how many", justify="right")
        for what, count in (
            ("graded", self.graded),
            ("recorded before, skipped", self.skipped),
            ("need a person", len(self.people)),
            ("without a verdict", len(self.failures)),
        ):
            table.add_row(what, str(count))
        console.print(table)
        if self.unsafe:
            console.print("[bold red]These grades were made without a sandbox.[/bold red]")
        _list(console, "Need a person", self.people)
        _list(console, "Without a verdict; the same command tries again", self.failures)


def shortened(why: str) -> str:
    """Return a reason for a terminal: no control characters, cut after a few lines."""
    shown = "".join(c if c.isprintable() else " " for c in why[: LONGEST + 1])
    return shown if len(shown) <= LONGEST else f"{shown[:LONGEST]} …"


def _list(console: Console, title: str, found: list[tuple[str, str]]) -> None:
    if found:
        console.print(f"[bold]{title}[/bold]")
    for student, why in found[:MOST_LINES]:
        console.print(f"  {escape(student)}: {escape(shortened(why))}", highlight=False)
    if len(found) > MOST_LINES:
        console.print(f"  and {len(found) - MOST_LINES} more")
