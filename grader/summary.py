"""A graded class in a terminal: points, exercises, misconceptions, who needs a person."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nbformat
from nbgrader.api import Gradebook
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from grader.preprocessors.outputs import read_verdicts

BAR = 20
# Notes after which a person should have a look, and why.
TELLING = {
    "unreadable": "not readable",
    "foreign": "another notebook",
    "changed": "a graded cell was edited",
    "settings": "grading settings were changed",
    "tags": "cell tags were set",
}


@dataclass(frozen=True)
class Graded:
    """One graded submission.

    Attributes:
        scores: points by graded cell; None where nobody has marked it yet.
        most: the points that each of these cells can earn.
        verdicts: by graded cell, as ``verify`` gave them.
        notes: what was put right before grading, as :class:`grader.notes.Note` has it.
    """

    student: str
    name: str
    scores: dict[str, float | None]
    most: dict[str, float]
    verdicts: dict[str, dict[str, Any]] = field(default_factory=dict)
    notes: list[dict[str, Any]] = field(default_factory=list)

    @property
    def points(self) -> float:
        """Points earned so far."""
        return sum(score or 0.0 for score in self.scores.values())

    def reasons(self) -> list[str]:
        """Why a person should look at this submission; mostly empty."""
        said = [TELLING[note["kind"]] for note in self.notes if note["kind"] in TELLING]
        stopped = (v.get("problem", "") for v in self.verdicts.values())
        said += [
            text.removeprefix("not run, because ")
            for text in stopped
            if "kernel" in text or "did not end" in text
        ]
        return list(dict.fromkeys(said))


def read_class(course: Path, lab: str, prefix: str = "") -> list[Graded]:
    """Every graded submission of a lab whose student id starts with ``prefix``.

    Args:
        course: the folder with ``gradebook.db`` and ``autograded/``.
    """
    found = []
    with Gradebook(f"sqlite:///{course / 'gradebook.db'}") as gradebook:
        for submission in gradebook.assignment_submissions(lab):
            student = submission.student
            if not student.id.startswith(prefix):
                continue
            grades = [grade for notebook in submission.notebooks for grade in notebook.grades]
            by_hand = {g.name: g.manual_score for g in grades if g.manual_score is not None}
            scores = {g.name: by_hand.get(g.name, g.auto_score) for g in grades}
            most = {grade.name: grade.max_score for grade in grades}
            name = " ".join(filter(None, [student.first_name, student.last_name])) or student.id
            path = course / "autograded" / student.id / lab / f"{lab}.ipynb"
            verdicts, notes = {}, []
            if path.exists():
                nb = nbformat.read(path, as_version=4)
                verdicts, notes = read_verdicts(nb), nb.metadata.open_the_hood.get("notes", [])
            found.append(Graded(student.id, name, scores, most, verdicts, notes))
    return found


def print_summary(
    console: Console, title: str, graded: list[Graded], stories: dict[str, str]
) -> None:
    """All tables for one lab.

    Args:
        stories: a few words on a student, where something is known.
    """
    console.rule(f"[bold]{escape(title)}")
    console.print(_learners(graded, stories))
    console.print(_exercises(graded))
    console.print(_misconceptions(graded))
    _attention(console, graded)


def _learners(graded: list[Graded], stories: dict[str, str]) -> Table:
    table = _table("Learners")
    table.add_column("who", no_wrap=True)
    table.add_column("points", justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    table.add_column("what happened", style="dim")
    for one in sorted(graded, key=lambda g: -g.points):
        most = _automatic(one)
        table.add_row(
            escape(one.name),
            f"{one.points:g} of {most:g}",
            _bar(one.points / most if most else 0.0),
            escape(stories.get(one.student, "")),
        )
    return table


def _automatic(one: Graded) -> float:
    """The points that could be earned in the cells that have been marked."""
    return sum(one.most[name] for name, score in one.scores.items() if score is not None)


def _exercises(graded: list[Graded]) -> Table:
    table = _table("Exercises")
    table.add_column("exercise", no_wrap=True)
    table.add_column("earned on average", no_wrap=True)
    table.add_column("all", justify="right")
    table.add_column("some", justify="right")
    table.add_column("none", justify="right")
    for name in graded[0].verdicts if graded else []:
        marks = [one.scores[name] for one in graded if one.scores.get(name) is not None]
        most = graded[0].most[name]
        share = sum(marks) / (most * len(marks)) if marks else 0.0
        full, none = sum(m == most for m in marks), sum(m == 0 for m in marks)
        counts = (full, len(marks) - full - none, none)
        table.add_row(name, f"{_bar(share)} {share:4.0%}", *map(str, counts))
    return table


def _misconceptions(graded: list[Graded], most: int = 12) -> Table:
    count: Counter[tuple[str, str]] = Counter()
    reads: dict[tuple[str, str], str] = {}
    for one in graded:
        for name, verdict in one.verdicts.items():
            for misconception in verdict["explanations"]:
                count[misconception, name] += 1
                reads[misconception, name] = f"{verdict['lesson']}, “{verdict['reads']}”"
    table = _table("Most frequent misconceptions")
    table.add_column("learners", justify="right", no_wrap=True)
    table.add_column("misconception")
    table.add_column("exercise", no_wrap=True)
    table.add_column("section to revisit")
    for (misconception, name), times in count.most_common(most):
        table.add_row(str(times), escape(misconception), name, escape(reads[misconception, name]))
    if len(count) > most:
        table.caption = f"and {len(count) - most} more"
    return table


def _attention(console: Console, graded: list[Graded]) -> None:
    by_reason: dict[str, list[str]] = defaultdict(list)
    for one in graded:
        for reason in one.reasons():
            by_reason[reason].append(one.name)
    table = _table("Submissions that need a person")
    table.add_column("why")
    table.add_column("who")
    for reason, names in by_reason.items():
        table.add_row(escape(reason), escape(", ".join(names)))
    waiting = sum(score is None for one in graded for score in one.scores.values())
    if waiting:
        table.add_row("answers in words, to mark in formgrader", f"{waiting} answers")
    if table.row_count:
        console.print(table)


def _table(title: str) -> Table:
    return Table(title=title, box=box.SIMPLE_HEAD, title_justify="left", title_style="bold")


def _bar(share: float) -> str:
    """A bar of BAR characters: green for most, yellow for some, red for little."""
    filled = round(share * BAR)
    colour = "green" if share >= 0.8 else "yellow" if share >= 0.4 else "red"
    return f"[{colour}]{'█' * filled}[/{colour}][dim]{'░' * (BAR - filled)}[/dim]"
