"""List what to do next, the most urgent first, and each submission that needs a person."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from hood.classroom.gradebook.graded import ReasonKind
from hood.classroom.report.tally import ExerciseTally, Tally

MARKS, CLASS, LAB = GROUPS = ("Before learners see their marks", "In class", "In the lab itself")
NAMED = 3  # up to this many learners are named
FEW = 3  # a misconception of fewer learners is not discussed in class
SHARE = 0.1  # smallest share of the class with a misconception that is discussed
MOST = 3  # entries of one kind, because a week has time for no more
FEWEST = 10  # an exercise that fewer learners tried is not called hard
HARD = 0.2  # in a hard exercise, learners who tried it earned at most this share of the points


class Advice(NamedTuple):
    """The texts that the list of people and the list of tasks show for one kind of reason."""

    heading: str
    advice: str
    do: str
    what: str


SLIP = ("See whether a small mistake cost many points", "with an answer that did not run")
ADVICE = {
    ReasonKind.UNGRADED: Advice(
        "Grading not finished",
        "These submissions have no final mark yet. Grade them again; if they are listed here "
        "again, read the log.",
        "Grade these submissions again",
        "without a final mark",
    ),
    ReasonKind.UNREAD: Advice(
        "A notebook that could not be read",
        "An unreadable notebook has no mark. Ask for the file.",
        "Ask for the unreadable files",
        "with a notebook that could not be read",
    ),
    ReasonKind.FOREIGN: Advice(
        "Another notebook",
        "The notebook has no answer to the lab. Ask for the right file.",
        "Ask for the right file",
        "with another notebook",
    ),
    ReasonKind.COPIES: Advice(
        "Copies beside the notebook",
        "Only one of the files was graded. Check whether the work is in another file.",
        "Find out whether the work is in a copy",
        "with copies beside the notebook",
    ),
    ReasonKind.TIME: Advice(
        "Unreadable time",
        "These submissions may be late. Find out when they were handed in.",
        "Find out when they were handed in",
        "with a time that can't be read",
    ),
    ReasonKind.REGRADE: Advice(
        "Regrade requested",
        "Read the answer beside its verdict. Any mark that you give in formgrader answers the "
        "request, even if the points stay the same. If the check has changed, `grade --regrade` "
        "grades the answer again.",
        "Answer requests for a regrade",
        "with a request",
    ),
    ReasonKind.TOUCHED: Advice(
        "Graded cells, settings or tags changed",
        "The originals were used, so the change gained nothing. Ask the learner: the change is "
        "usually an accident.",
        "Ask about edited tests or settings",
        "with edited cells or settings, which gained nothing",
    ),
    ReasonKind.STOPPED: Advice(
        "Crashed or ran out of time",
        "The code that did not run may be right, but earned nothing.",
        *SLIP,
    ),
    ReasonKind.NEWER_PYTHON: Advice(
        "Written with a newer Python than this machine has",
        "Answers that this machine's Python could not run have no mark yet. Read them, or run "
        "them with the learner's Python, and give the mark in formgrader.",
        "Mark the answers that this machine's Python could not run",
        "written with a newer Python",
    ),
    ReasonKind.UNJUDGED: Advice(
        "No verdict",
        "The check ran, but gave no verdict. Read the learner's code to see why.",
        *SLIP,
    ),
    ReasonKind.UNDEFINED: Advice(
        "An answer could not be run",
        "No cell that ran to its end defines the name that the exercise requires. Either the "
        "learner's cell raised an error (often because of a typo), or it defines another name.",
        *SLIP,
    ),
}


class Todo(NamedTuple):
    """One task: its group, what to do, the reason in numbers, and an anchor on the page."""

    group: str
    do: str
    why: str
    link: str


def todos(tally: Tally) -> Iterator[Todo]:
    """Yield the tasks, the most urgent first."""
    yield from _marks(tally)
    yield from _class(tally)
    yield from _lab(tally)


def _marks(tally: Tally) -> Iterator[Todo]:
    if tally.not_entered:
        are = "is" if tally.not_entered == 1 else "are"
        why = f"{_submissions(tally.not_entered)} {are} on disk but not in the gradebook."
        yield Todo(MARKS, "Grade the new submissions", why, "todo")
    if tally.outdated:
        were, them = ("was", "it") if tally.outdated == 1 else ("were", "them")
        why = (
            f"{_submissions(tally.outdated)} {were} graded with another version of the lab, its "
            "checks, the settings or the grader than the last graded submission. `grade --regrade` "
            f"grades {them} again with the same cases."
        )
        yield Todo(MARKS, "Grade all submissions with one version", why, "todo")
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
        (True, "Mark the answers in words: `make teach`, then Marking", "Answers that wait"),
        (False, "Review marks given by hand", "Answers graded again after they were marked"),
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
        why = f"{one.unexplained} of {one.wrong} wrong answers match no known misconception."
        do = f"Read a few wrong answers to `{one.name}`, and add new misconceptions: `hood wrong`"
        yield Todo(LAB, do, why, tally.anchor(one))
    for exercise in tally.exercises:
        tried = exercise.marked - exercise.not_tried
        if tried >= FEWEST and exercise.earned <= HARD * (
            exercise.cell.points * tried - exercise.withheld
        ):
            why = "Hardly anyone solved it: is the question clear, and is its subject taught?"
            yield Todo(LAB, f"Look at `{exercise.name}` again", why, tally.anchor(exercise))


def worth_a_look(one: ExerciseTally) -> bool:
    """Return whether so many wrong answers are unexplained that a misconception may be missing."""
    return one.unexplained >= FEW and one.unexplained >= one.wrong / 3


def _submissions(count: int) -> str:
    return "One submission" if count == 1 else f"{count} submissions"
