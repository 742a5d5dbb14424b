"""What to do next, the most urgent first, and with each submission that needs a person."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from hood.classroom.gradebook.graded import ReasonKind
from hood.classroom.report.tally import ExerciseTally, Tally

MARKS, CLASS, LAB = GROUPS = ("Before the marks go out", "In class", "In the lab itself")
NAMED = 3  # up to so many learners are named
FEW = 3  # a misconception of fewer learners is not discussed in class
SHARE = 0.1  # smallest share of the class with a misconception that is discussed
MOST = 3  # entries of one kind: more cannot be done in a week
FEWEST = 10  # an exercise that fewer learners tried is not called hard
HARD = 0.2  # share of the points that those who tried it earned in a hard one


class Advice(NamedTuple):
    """What is said of submissions with one kind of reason: in the list of people, and of tasks."""

    heading: str
    advice: str
    do: str
    what: str


SLIP = ("See whether a slip cost many points", "with an answer that did not run")
ADVICE = {
    ReasonKind.UNGRADED: Advice(
        "Not graded to the end",
        "They have no final mark yet. Grade them again; if they come back here, look into the log.",
        "Grade again what was not graded to its end",
        "without a final mark",
    ),
    ReasonKind.UNREAD: Advice(
        "A notebook that could not be read",
        "What could not be read has no mark. Ask for the file.",
        "Ask for what could not be read",
        "with a notebook that could not be read",
    ),
    ReasonKind.FOREIGN: Advice(
        "Another notebook",
        "No answer to the lab was found in it. Ask for the right file.",
        "Ask for the right file",
        "with another notebook",
    ),
    ReasonKind.COPIES: Advice(
        "Copies of the notebook beside it",
        "Only one of them was graded. See whether the work is in another one.",
        "Look for the work in the copies",
        "with copies beside the notebook",
    ),
    ReasonKind.TIME: Advice(
        "No time that can be read",
        "So nobody knows whether they came late. See when they were handed in.",
        "Ask when it was handed in",
        "with a time that can't be read",
    ),
    ReasonKind.REGRADE: Advice(
        "A regrade is asked for",
        "Read the answer beside its verdict. A mark that you give in formgrader, the same or "
        "another, answers it; `grade --regrade` grades it anew where the check has changed.",
        "Answer requests for a regrade",
        "asking for one",
    ),
    ReasonKind.TOUCHED: Advice(
        "Graded cells, settings or tags changed",
        "The originals were used, so nothing was gained. Mostly an accident; ask.",
        "Ask about edited tests or settings",
        "that changed some, and gained nothing by it",
    ),
    ReasonKind.STOPPED: Advice(
        "Crashed or ran out of time",
        "What stood after the place where it stopped may be right, and earned nothing.",
        *SLIP,
    ),
    ReasonKind.NEWER_PYTHON: Advice(
        "Written with a newer Python than this machine has",
        "What this machine's Python could not run has no mark yet. Read it, or run it with the "
        "learner's Python, and give the mark in formgrader.",
        "Mark what this machine's Python could not run",
        "written with a newer Python",
    ),
    ReasonKind.UNJUDGED: Advice(
        "No verdict",
        "The check ran, but gave no verdict. Read what their code does to it.",
        *SLIP,
    ),
    ReasonKind.UNDEFINED: Advice(
        "An answer could not be run",
        "No cell that ran to its end defines what was asked for: it raised an error itself, often "
        "by a slip of the pen, or it uses another name.",
        *SLIP,
    ),
}


class Todo(NamedTuple):
    """One thing to do: its group, what it is, the numbers behind it, the page's anchor for it."""

    group: str
    do: str
    why: str
    link: str


def todos(tally: Tally) -> Iterator[Todo]:
    """Yield the things to do; none when nothing is left to do."""
    yield from _marks(tally)
    yield from _class(tally)
    yield from _lab(tally)


def _marks(tally: Tally) -> Iterator[Todo]:
    if tally.not_entered:
        why = f"{_submissions(tally.not_entered)} handed in that the gradebook does not know."
        yield Todo(MARKS, "Grade what has never been graded", why, "todo")
    if tally.outdated:
        had = "has" if tally.outdated == 1 else "have"
        why = (
            f"{_submissions(tally.outdated)} {had} marks of another version of the lab, its "
            "checks, the settings or the grader than the one graded last; `grade --regrade` "
            "redoes them with the same cases."
        )
        yield Todo(MARKS, "Bring all marks to one version", why, "todo")
    by_task: dict[tuple[str, str], list[ReasonKind]] = {}
    for kind, said in ADVICE.items():
        if tally.needing[kind]:
            by_task.setdefault((said.do, said.what), []).append(kind)
    for (do, what), kinds in by_task.items():
        count = sum(tally.needing[kind] for kind in kinds)
        people = [person.name for kind in kinds for person in tally.people[kind]]
        named = f": {', '.join(people)}" if count <= NAMED else ""
        yield Todo(MARKS, do, f"{_submissions(count)} {what}{named}.", f"people-{kinds[0]}")
    for manual, do, what in (
        (True, "Mark the answers in words: `make teach`, then Marking", "Waiting"),
        (False, "Look again at marks by hand", "Graded anew since they were given"),
    ):
        waiting = [
            exercise
            for exercise in tally.exercises
            if exercise.waiting and exercise.cell.manual is manual
        ]
        if waiting:
            names = ", ".join(f"{one.waiting} to `{one.name}`" for one in waiting)
            yield Todo(MARKS, do, f"{what}: {names}.", tally.anchor(waiting[0]))


def _class(tally: Tally) -> Iterator[Todo]:
    enough = max(FEW, SHARE * tally.graded)
    firsts = [
        (*top, exercise)
        for exercise in tally.exercises
        for top in exercise.misconceptions.most_common(1)
    ]
    common = [first for first in firsts if first[1] >= enough]
    for name, count, one in sorted(common, key=lambda first: -first[1])[:MOST]:
        where = f"lesson {one.lesson}, “{one.reads}”" if one.lesson else f"“{one.reads}”"
        said = one.explanations[name].rstrip(".")
        why = f"{count} of {tally.graded} had “{name}” in `{one.name}`: {said}."
        yield Todo(CLASS, f"Go through {where} once more", why, tally.anchor(one))


def _lab(tally: Tally) -> Iterator[Todo]:
    missing = sorted(filter(worth_a_look, tally.exercises), key=lambda one: -one.unexplained)
    for one in missing[:MOST]:
        why = f"{one.unexplained} of {one.wrong} that are not right match no known misconception."
        do = f"Read a few wrong answers to `{one.name}`, and name what you find"
        yield Todo(LAB, do, why, tally.anchor(one))
    for exercise in tally.exercises:
        tried = exercise.marked - exercise.not_tried
        if tried >= FEWEST and exercise.earned <= HARD * (
            exercise.cell.points * tried - exercise.withheld
        ):
            why = "Hardly anyone solved it: is it asked clearly, is it taught?"
            yield Todo(LAB, f"Look at `{exercise.name}` again", why, tally.anchor(exercise))


def worth_a_look(one: ExerciseTally) -> bool:
    """Return whether the number of unexplained wrong answers suggests an unknown misconception."""
    return one.unexplained >= FEW and one.unexplained >= one.wrong / 3


def _submissions(count: int) -> str:
    return "One submission" if count == 1 else f"{count} submissions"
