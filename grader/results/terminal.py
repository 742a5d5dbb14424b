"""Print the results of a graded class in a terminal, counted as in the class report."""

from __future__ import annotations

from collections import defaultdict

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from grader.results.class_report.names import Names
from grader.results.class_report.tally import ExerciseTally
from grader.results.gradebook import Graded, ReasonKind

BAR = 20
MOST = 12  # misconceptions that are listed


def print_summary(
    console: Console, title: str, graded: list[Graded], stories: dict[str, str]
) -> None:
    """Print all tables for one lab, with a story about each student, by id."""
    cells = {name: one.cells[name] for one in graded for name in one.verdicts}
    tallies = [ExerciseTally(cell) for cell in cells.values()]
    for tally in tallies:
        for one in graded:
            tally.add(one, Names())
    console.rule(f"[bold]{escape(title)}")
    console.print(_learners(graded, stories))
    console.print(_exercises(tallies))
    console.print(_misconceptions(tallies))
    _attention(console, graded)


def _learners(graded: list[Graded], stories: dict[str, str]) -> Table:
    table = _table("Learners")
    table.add_column("who", no_wrap=True)
    table.add_column("points", justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    table.add_column("what happened", style="dim")
    for one in sorted(graded, key=lambda g: -g.points):
        # the points that could be earned in the cells that have a score
        most = sum(
            one.cells[name].points for name, score in one.scores.items() if score is not None
        )
        table.add_row(
            escape(one.name),
            f"{one.points:g} of {most:g}",
            _bar(one.points / most if most else 0.0),
            escape(stories.get(one.student, "")),
        )
    return table


def _exercises(tallies: list[ExerciseTally]) -> Table:
    table = _table("Exercises")
    table.add_column("exercise", no_wrap=True)
    table.add_column("earned on average", no_wrap=True)
    table.add_column("all", justify="right")
    table.add_column("some", justify="right")
    table.add_column("none", justify="right")
    for tally in tallies:
        share = tally.share
        earned = "could not be run" if share is None else f"{_bar(share)} {share:4.0%}"
        counts = (tally.full, tally.some, tally.nothing + tally.not_tried)
        table.add_row(tally.name, earned, *map(str, counts))
    return table


def _misconceptions(tallies: list[ExerciseTally]) -> Table:
    found = [(count, name, one) for one in tallies for name, count in one.misconceptions.items()]
    found.sort(key=lambda entry: -entry[0])
    table = _table("Most frequent misconceptions")
    table.add_column("learners", justify="right", no_wrap=True)
    table.add_column("misconception")
    table.add_column("exercise", no_wrap=True)
    table.add_column("section to revisit")
    for times, name, one in found[:MOST]:
        reads = f"{one.lesson}, “{one.reads}”"
        table.add_row(str(times), escape(name), one.name, escape(reads))
    if len(found) > MOST:
        table.caption = f"and {len(found) - MOST} more"
    return table


def _attention(console: Console, graded: list[Graded]) -> None:
    by_reason: dict[str, list[str]] = defaultdict(list)
    for one in graded:
        texts = [reason.text for reason in one.reasons() if reason.kind is not ReasonKind.UNDEFINED]
        for text in dict.fromkeys(texts):
            by_reason[text].append(one.name)
    table = _table("Submissions that need a person")
    table.add_column("why")
    table.add_column("who")
    for reason, names in by_reason.items():
        table.add_row(escape(reason), escape(", ".join(names)))
    if waiting := sum(len(one.waiting) for one in graded):
        table.add_row("answers in words, to mark in formgrader", f"{waiting} answers")
    if table.row_count:
        console.print(table)


def _table(title: str) -> Table:
    return Table(title=title, box=box.SIMPLE_HEAD, title_justify="left", title_style="bold")


def _bar(share: float) -> str:
    """Return a bar of BAR characters: green from 80 %, yellow from 40 %, red below."""
    filled = round(share * BAR)
    colour = "green" if share >= 0.8 else "yellow" if share >= 0.4 else "red"
    return f"[{colour}]{'█' * filled}[/{colour}][dim]{'░' * (BAR - filled)}[/dim]"
