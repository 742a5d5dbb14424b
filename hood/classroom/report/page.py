"""Render the report's page from the tally."""

from __future__ import annotations

import os
import shlex
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from markupsafe import Markup

from hood.classroom.formats import page_style
from hood.classroom.report.alike import ENOUGH, LEAST, MOST, Alike
from hood.classroom.report.attempts import AT_ONCE, MANY, NOT_YET, SOME, attempts_of
from hood.classroom.report.counts import ClassCounts
from hood.classroom.report.tally import KINDS, SHOWN, ExerciseTally, Person, Tally
from hood.classroom.report.todo import ADVICE, GROUPS, todos, worth_a_look
from hood.classroom.rules.class_list import class_list
from hood.grader.course import Course
from hood.judge.backquotes import in_code

TEMPLATES = Path(__file__).parent / "templates"
FREQUENT = 6  # misconceptions listed at the top of the page; each exercise lists all its own
COMMON = 0.06  # a misconception of a smaller share of the class is not listed at the top
TOLD = 8  # misconceptions described per exercise; the others are only named
TYPICAL = 3  # problem texts that are shown for unexplained answers
FILES = (("autograded", "ipynb", "notebook"), ("feedback", "html", "feedback"))


@dataclass(frozen=True)
class Links:
    """Makes links from the page in the folder ``out`` to the files of a lab."""

    course: Course
    out: Path
    lab: str
    notebooks: tuple[str, ...]

    def link(self, path: Path) -> str:
        """Return a relative URL, quoted so that no file name can change its meaning."""
        relative = os.path.relpath(path, self.out)
        return "/".join(quote(part, safe="") for part in Path(relative).parts)

    def of_person(self, person: Person) -> list[tuple[str, str]]:
        """Return ``(text, URL)`` for each existing file about a submission."""
        found = []
        for notebook in self.notebooks if person.student else ():
            for step, suffix, text in FILES:
                folder = self.course.folder(step, person.student, self.lab)
                path = folder / f"{notebook}.{suffix}"
                if path.is_file():
                    found.append((text, self.link(path)))
        return found

    def lessons(self) -> dict[str, str]:
        """Return the link to each lesson, keyed by the lesson's two-digit number."""
        found = sorted((self.course.root / "notebooks").glob("[0-9][0-9]_*.ipynb"))
        return {path.stem[:2]: self.link(path) for path in found}


SHADES = ("all", "some", "nothing", "not tried")  # the style's names for parts of bars


def render(
    tally: Tally, links: Links, now: datetime, alike: Alike, counts: ClassCounts | None = None
) -> str:
    """Return the whole page as HTML, which includes the counted points if the class has rules."""
    about = _context(tally, links, now) | _alike(alike, links) | _attempts(tally, links)
    return page_style.render(TEMPLATES, "page.html.j2", **about, counts=counts)


def _attempts(tally: Tally, links: Links) -> dict[str, Any]:
    """Return the template's values: how many verdicts learners needed in each exercise."""
    course = links.course
    found = attempts_of(course.directory.db_url, links.lab, class_list(course.root))
    some = [
        (exercise, found[exercise.name]) for exercise in tally.exercises if exercise.name in found
    ]
    return {
        "attempts": some,
        "needed": list(zip((AT_ONCE, SOME, MANY, NOT_YET), SHADES, strict=True)),
    }


def _alike(alike: Alike, links: Links) -> dict[str, Any]:
    """Return the groups of learners whose answers are alike, with links to their notebooks."""
    groups = alike.groups()
    linked = [
        (group, [(person, _notebook(links, person)) for person in group.people]) for group in groups
    ]
    told = {"groups": linked[:SHOWN], "more": len(linked) - SHOWN, "unread": alike.unread}
    return {"alike": told | {"least": LEAST, "enough": ENOUGH, "most": MOST}}


def _notebook(links: Links, person: Person) -> str:
    return next((url for text, url in links.of_person(person) if text == "notebook"), "")


def _context(tally: Tally, links: Links, now: datetime) -> dict[str, Any]:
    points, most = tally.counted
    to_do = list(todos(tally))
    known = links.lessons()
    marked = [exercise for exercise in tally.exercises if exercise.marked]
    return {
        "t": tally,
        "lab": links.lab,
        "command": f"python -m hood report {shlex.quote(links.lab)}",
        "made": f"{now:%-d %B %Y, %H:%M}",
        "graded_at": _when(tally.graded_at),
        "most": most,
        "mean": statistics.fmean(points) / most if points and most else None,
        "median": statistics.median(points) / most if points and most else None,
        "people": [
            (kind, tally.needing[kind], [(p, links.of_person(p)) for p in tally.people[kind]])
            for kind in KINDS
            if tally.needing[kind]
        ],
        "needing": sum(tally.needing.values()),
        "to_do": to_do,
        "tasks": [(name, [one for one in to_do if one.group == name]) for name in GROUPS],
        "bins": bins(points, most),
        "scores_say": scores_say(points, most),
        "marked": marked,
        "hardest_say": hardest_say(marked),
        "frequent": _frequent(tally),
        "revisit": lambda one: _revisit(one, known),
        "told": _told,
        "advice_on": ADVICE,
        "typical": lambda one: one.problems.most_common(TYPICAL),
        "found": _found,
        "worth_a_look": worth_a_look,
    }


def bins(points: Sequence[float], most: float) -> dict[str, int]:
    """Return a histogram of the shares of points that learners earned, in steps of 10 percent."""
    if not points or not most:
        return {}
    counts = dict.fromkeys([*(f"{10 * k}–{10 * k + 9} %" for k in range(10)), "all"], 0)
    labels = list(counts)
    for value in points:
        counts[labels[max(0, min(10, int(value / most * 10 + 1e-9)))]] += 1
    return counts


def scores_say(points: Sequence[float], most: float) -> str:
    """Return a sentence on the scores of a class; empty without scores."""
    if not points:
        return ""
    full = sum(value >= most for value in points)
    none = sum(value <= 0 for value in points)
    if full == len(points):
        return "Everyone earned every point"
    middle = statistics.median(points)
    sentence = f"The median is {middle:g} of {most:g} points"
    ends = [f"{full} earned all points" if full else "", f"{none} earned no points" if none else ""]
    said = ", and ".join(filter(None, ends))
    return f"{sentence}; {said}" if said else sentence


def hardest_say(marked: Sequence[ExerciseTally]) -> str:
    """Return a sentence on the hardest exercise; empty without marks."""
    if not marked:
        return ""
    worst = min(marked, key=lambda one: one.share or 0.0)
    if sum((one.share or 0.0) == (worst.share or 0.0) for one in marked) > 1:
        return ""  # several exercises are equally hard
    if worst.share and worst.share >= 0.9:
        return "In every exercise, learners earned nearly all of the points"
    number, _, rest = worst.title.partition(" · ")
    title = rest if rest and number.isdigit() else worst.title or worst.name
    tried = worst.marked - worst.not_tried
    solved = f"{worst.full} of the {tried} who tried it earned all its points"
    return f"“{title}” was the hardest: {solved}"


def _frequent(tally: Tally) -> list[tuple[int, str, ExerciseTally]]:
    """Return the lab's most frequent misconceptions as ``(number of learners, name, exercise)``."""
    every = [
        (count, name, exercise)
        for exercise in tally.exercises
        for name, count in exercise.misconceptions.items()
        if count >= max(2, COMMON * tally.graded)
    ]
    return sorted(every, key=lambda entry: -entry[0])[:FREQUENT]


def _found(one: ExerciseTally) -> str:
    """Return words to introduce the shown problem texts, as precise as the counts allow."""
    counts = [count for _, count in one.problems.most_common(TYPICAL + 1)]
    if len(counts) <= TYPICAL:
        return "The check found"
    most_often = counts[TYPICAL] < counts[TYPICAL - 1]
    return "The check found most often" if most_often else "The check found, among other things"


def _told(one: ExerciseTally) -> list[tuple[str, int]]:
    """Return the misconceptions to describe: the first three, and all that several learners had."""
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


def _when(times: tuple[float, ...]) -> str:
    if not times:
        return "at an unknown time"
    start, end = map(datetime.fromtimestamp, times)
    if start.date() != end.date():
        return f"{start:%-d %B} to {end:%-d %B %Y}"
    until = "" if f"{start:%H:%M}" == f"{end:%H:%M}" else f" to {end:%H:%M}"
    return f"{start:%-d %B %Y, %H:%M}{until}"
