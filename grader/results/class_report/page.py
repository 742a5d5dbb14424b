"""Render the page: compute what the template shows from the tally."""

from __future__ import annotations

import os
import statistics
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from grader.backquotes import in_code
from grader.course import Course
from grader.results.class_report.figures import LABELS, WIDTH, histogram, parts, successes
from grader.results.class_report.items import FEWEST
from grader.results.class_report.outline import lessons
from grader.results.class_report.tally import KINDS, ExerciseTally, Person, Tally
from grader.results.class_report.todo import GROUPS, as_sentence, todos, worth_a_look
from grader.results.marks import duration
from grader.results.reasons import ReasonKind
from grader.verdict import in_points
from utils.notebook import style

TEMPLATES = Path(__file__).parent / "templates"
ADVICE = {
    ReasonKind.UNGRADED: (
        "Not graded to the end",
        "They have no final mark yet. Grade them again; if they come back here, look into the log.",
    ),
    ReasonKind.UNREAD: (
        "A notebook that could not be read",
        "What could not be read has no mark. Ask for the file.",
    ),
    ReasonKind.FOREIGN: (
        "Another notebook",
        "No answer to the lab was found in it. Ask for the right file.",
    ),
    ReasonKind.COPIES: (
        "Copies of the notebook beside it",
        "Only one of them was graded. See whether the work is in another one.",
    ),
    ReasonKind.TIME: (
        "No time that can be read",
        "So nobody knows whether they came late. See when they were handed in.",
    ),
    ReasonKind.TOUCHED: (
        "Graded cells, settings or tags changed",
        "The originals were used, so nothing was gained. Mostly an accident; ask.",
    ),
    ReasonKind.STOPPED: (
        "Crashed or ran out of time",
        "What stood after the place where it stopped may be right, and earned nothing.",
    ),
    ReasonKind.UNJUDGED: (
        "No verdict",
        "The check ran, but gave no verdict. Read what their code does to it.",
    ),
    ReasonKind.UNDEFINED: (
        "An answer could not be run",
        "No cell that ran to its end defines what was asked for: it raised an error itself, often "
        "by a slip of the pen, or it uses another name.",
    ),
}
FREQUENT = 6  # misconceptions listed at the top; each exercise lists all of its own
COMMON = 0.06  # share of the class that a misconception needs to be listed at the top
TOLD = 8  # misconceptions described per exercise; the others are only named
TYPICAL = 3  # problem texts shown of unexplained answers


@dataclass(frozen=True)
class Places:
    """Makes links relative to the page.

    Attributes:
        course: whose folders are linked.
        out: the page's folder.
        lab: the assignment's name.
        notebooks: names of the lab's notebooks.
    """

    course: Course
    out: Path
    lab: str
    notebooks: tuple[str, ...]

    def link(self, path: Path) -> str:
        """Return a relative URL.

        Every part is quoted, so that a file name cannot change the URL's meaning.
        """
        relative = os.path.relpath(path, self.out)
        return "/".join(quote(part, safe="") for part in Path(relative).parts)

    def of_person(self, person: Person) -> list[tuple[str, str]]:
        """Return ``(text, URL)`` of those files about one submission that exist."""
        found = []
        for notebook in self.notebooks if person.student else ():
            for step, suffix, text in (
                ("autograded", "ipynb", "notebook"),
                ("feedback", "html", "feedback"),
            ):
                folder = self.course.folder(step, person.student, self.lab)
                path = folder / f"{notebook}.{suffix}"
                if path.is_file():
                    found.append((text, self.link(path)))
        return found


def render(tally: Tally, places: Places, now: datetime) -> str:
    """Return the whole page as HTML."""
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "code": in_code,
        "sentence": as_sentence,
        "duration": duration,
        "in_points": in_points,
    }
    environment.filters |= {"number": number, "percent": percent}
    environment.globals |= {"LABELS": LABELS, "parts": parts, "WIDTH": WIDTH, "style": style}
    template = environment.get_template("page.html.j2")
    return template.render(_context(tally, places, now))


def _context(tally: Tally, places: Places, now: datetime) -> dict[str, Any]:
    points, most = tally.counted
    to_do = todos(tally)
    known = {digits: places.link(path) for digits, path in lessons(places.course.root).items()}
    return {
        "t": tally,
        "lab": places.lab,
        "made": f"{now:%-d %B %Y, %H:%M}",
        "graded_at": _when(tally.first_graded, tally.last_graded),
        "most": most,
        "mean": statistics.fmean(points) / most if points and most else None,
        "median": statistics.median(points) / most if points and most else None,
        "people": [
            (kind, tally.needing[kind], [(p, places.of_person(p)) for p in tally.people[kind]])
            for kind in KINDS
            if tally.needing[kind]
        ],
        "needing": sum(tally.needing.values()),
        "to_do": to_do,
        "tasks": [(name, [one for one in to_do if one.group == name]) for name in GROUPS],
        "histogram": histogram(points, most),
        "successes": successes(tally.exercises),
        "frequent": _frequent(tally),
        "revisit": lambda one: _revisit(one, known),
        "told": {one.name: _told(one) for one in tally.exercises},
        "advice_on": ADVICE,
        "hidden": tally.hidden,
        "typical": {
            one.name: one.problems.most_common(TYPICAL) for one in tally.exercises if one.problems
        },
        "hints": {one.name for one in tally.exercises if worth_a_look(one)},
        "fewest": FEWEST,
        "seconds": sorted(tally.seconds),
        "slowest": sorted(tally.slowest, reverse=True),
        "slow_cells": sorted((e for e in tally.exercises if e.seconds), key=lambda e: -e.seconds),
    }


def _frequent(tally: Tally) -> list[tuple[int, str, ExerciseTally]]:
    """Return the most frequent misconceptions of the lab: ``(learners, name, exercise)``."""
    every = [
        (count, name, one)
        for one in tally.exercises
        for name, count in one.misconceptions.items()
        if count >= max(2, COMMON * tally.graded)
    ]
    return sorted(every, key=lambda entry: -entry[0])[:FREQUENT]


def _told(one: ExerciseTally) -> list[tuple[str, int]]:
    """Return the misconceptions of an exercise that are described in full.

    These are the three most frequent ones, and others that more than one learner has.
    """
    every = one.misconceptions.most_common(TOLD)
    return [entry for place, entry in enumerate(every) if place < 3 or entry[1] > 1]


def _revisit(one: ExerciseTally, known: dict[str, str]) -> Markup:
    """Return a sentence on which section of which lesson to read again."""
    if not one.reads:
        return Markup("")
    lesson = Markup("lesson {}").format(one.lesson) if one.lesson else Markup("the lesson")
    if one.lesson in known:
        lesson = Markup('<a href="{}">{}</a>').format(known[one.lesson], lesson)
    return Markup("To revisit: {}, “{}”.").format(lesson, in_code(one.reads))


def _when(first: float | None, last: float | None) -> str:
    if first is None or last is None:
        return "at an unknown time"
    start, end = datetime.fromtimestamp(first), datetime.fromtimestamp(last)
    if start.date() != end.date():
        return f"{start:%-d %B} to {end:%-d %B %Y}"
    if f"{start:%H:%M}" == f"{end:%H:%M}":
        return f"{start:%-d %B %Y, %H:%M}"
    return f"{start:%-d %B %Y, %H:%M} to {end:%H:%M}"


def number(value: float) -> str:
    """Return a number with two decimals and a true minus sign."""
    return f"{value:.2f}".replace("-", "−")


def percent(value: float) -> str:
    """Return a share as a whole percentage."""
    return f"{value:.0%}".replace("%", "\N{NO-BREAK SPACE}%")
