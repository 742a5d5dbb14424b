"""Collect the results of a grading run and print them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from grader.batch.job import Job, Result
from grader.results.gradebook import Graded
from grader.results.marks import duration

MOST_LINES = 20  # above, learners with the same reason share a line
LONGEST = 400  # characters of one reason


class RunOutcome:
    """Counts the results of one lab's run.

    Attributes:
        graded: number of submissions that got a verdict in this run.
        skipped: number of submissions that were recorded before and have not changed.
        people: ``(student, reason)`` of submissions that have a verdict but need a person.
        failures: ``(student, reason)`` of submissions without a verdict, by fault of the grader.
        seen: the students whose submissions were graded, or read as they were recorded.
        most: the points that one of them could earn, by notebook and cell.
        late: how late submissions came, in seconds, by student.
        to_mark: number of answers that wait for a mark by hand.
        not_entered: students, as they are shown, on disk and not in the gradebook.
    """

    def __init__(self, lab: str):
        self.lab = lab
        self.graded = self.skipped = self.to_mark = 0
        self.unsafe = False
        self.people: list[tuple[str, str]] = []
        self.failures: list[tuple[str, str]] = []
        self.seen: set[str] = set()
        self.most: dict[tuple[str, str], float] = {}
        self.late: dict[str, float] = {}
        self.not_entered: list[str] = []

    @property
    def complete(self) -> bool:
        """Whether every submission has a verdict."""
        return not self.failures

    def add(self, job: Job, result: Result) -> None:
        """Count a result that was recorded."""
        self.unsafe = self.unsafe or not job.sandbox
        self.seen.add(job.student)
        for notebook in result.notebooks:
            self._could_earn(notebook.name, notebook.most)
        if result.retryable:
            self.fail(job.student, result.problem)
            return
        self.graded += 1
        told = [str(reason) for notebook in result.notebooks for reason in notebook.reasons]
        if why := "; ".join(dict.fromkeys(told)) or result.problem:
            self.people.append((job.student, why))

    def add_recorded(self, one: Graded, notebooks: Sequence[str]) -> None:
        """Count a submission that was recorded before, as it is recorded."""
        self.skipped += 1
        self.seen.add(one.student)
        for name, verdict in one.verdicts.items():
            notebook, _, cell = name.rpartition("/")
            if verdict.parts:
                self._could_earn(notebook or notebooks[0], {cell: verdict.most})
        if why := "; ".join(dict.fromkeys(map(str, one.reasons()))):
            self.people.append((one.student, why))

    def _could_earn(self, notebook: str, most: Mapping[str, float]) -> None:
        for cell, points in most.items():
            self.most[notebook, cell] = max(points, self.most.get((notebook, cell), 0.0))

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
            ("handed in late", len(self.late)),
            ("answers to mark by hand", self.to_mark),
        ):
            table.add_row(what, str(count))
        console.print(table)
        if self.unsafe:
            console.print("[bold red]These grades were made without a sandbox.[/bold red]")
        late = [f"{who} ({duration(seconds)})" for who, seconds in self.late.items()]
        for title, lines in (
            ("Need a person", _lines(self.people)),
            ("Without a verdict; the same command tries again", _lines(self.failures)),
            ("Handed in late", [", ".join(late)] if late else []),
            (
                f"On disk and not in the gradebook: run `python -m grader grade {self.lab}`",
                [", ".join(self.not_entered)] if self.not_entered else [],
            ),
        ):
            if lines:
                console.print(f"[bold]{title}[/bold]")
            for line in lines:
                console.print(f"  {escape(line)}", highlight=False)


def _lines(found: list[tuple[str, str]]) -> list[str]:
    """Return a line for each; those with the same reason share one where they are many."""
    found = sorted(found)
    if len(found) > MOST_LINES:
        alike: dict[str, list[str]] = {}
        for student, why in found:
            alike.setdefault(why, []).append(student)
        found = [(", ".join(students), why) for why, students in alike.items()]
    return [f"{who}: {_shortened(why)}" for who, why in found]


def _shortened(why: str) -> str:
    """Return a reason for a terminal: no control characters, cut after a few lines."""
    shown = "".join(c if c.isprintable() else " " for c in why[: LONGEST + 1])
    return shown if len(shown) <= LONGEST else f"{shown[:LONGEST]} …"
