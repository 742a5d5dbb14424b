"""Print a graded class's results in a terminal, with the numbers of the class report."""

from __future__ import annotations

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from hood.classroom.gradebook.graded import Graded
from hood.classroom.gradebook.pseudonyms import LearnerNames
from hood.classroom.report.tally import ExerciseTally

BAR = 20
MOST = 12  # misconceptions that are listed


def print_summary(
    console: Console, title: str, graded: list[Graded], stories: dict[str, str]
) -> None:
    """Print all tables for one lab; ``stories`` describes each student's hand-in, by student id.

    The grading has already printed which submissions need a person.
    """
    cells = {name: one.cells[name] for one in graded for name in one.verdicts}
    tallies = [ExerciseTally(cell) for cell in cells.values()]
    learners = _table("Learners", "who", ">points", "", "what happened")
    for one in sorted(graded, key=lambda g: -g.points):
        for tally in tallies:
            tally.add(one, LearnerNames())
        scored = [name for name, score in one.scores.items() if score is not None]
        most = sum(one.cells[name].points for name in scored)
        points, bar = f"{one.points:g} of {most:g}", _bar(one.points / most if most else 0.0)
        learners.add_row(escape(one.name), points, bar, escape(stories.get(one.student, "")))
    exercises = _table("Exercises", "exercise", "earned on average", ">all", ">some", ">none")
    for tally in tallies:
        share = tally.share
        earned = "could not be run" if share is None else f"{_bar(share)} {share:4.0%}"
        counts = tally.full, tally.some, tally.nothing + tally.not_tried
        exercises.add_row(tally.name, earned, *map(str, counts))
    found = [(count, name, one) for one in tallies for name, count in one.misconceptions.items()]
    found.sort(key=lambda entry: -entry[0])
    columns = ">learners", "misconception", "exercise", "section to revisit"
    mistakes = _table("Most frequent misconceptions", *columns)
    for times, name, tally in found[:MOST]:
        reads = f"{tally.lesson}, “{tally.reads}”"
        mistakes.add_row(str(times), escape(name), tally.name, escape(reads))
    if len(found) > MOST:
        mistakes.caption = f"and {len(found) - MOST} more"
    console.rule(f"[bold]{escape(title)}")
    console.print(learners, exercises, mistakes)


def _table(title: str, *columns: str) -> Table:
    """Return a table; ">" before a column's name means that it has numbers."""
    table = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left", title_style="bold")
    for name in columns:
        number = name.startswith(">")
        table.add_column(name.lstrip(">"), justify="right" if number else "left", no_wrap=number)
    return table


def _bar(share: float) -> str:
    filled = round(share * BAR)
    colour = "green" if share >= 0.8 else "yellow" if share >= 0.4 else "red"
    return f"[{colour}]{'█' * filled}[/{colour}][dim]{'░' * (BAR - filled)}[/dim]"
