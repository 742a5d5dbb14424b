"""The instructor's to-do list: what to do next, in a few sentences, the most urgent first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from grader.results.class_report.tally import ExerciseTally, Tally
from grader.results.reasons import ReasonKind

MARKS, CLASS, LAB = GROUPS = ("Before the marks go out", "In class", "In the lab itself")
NAMED = 3  # up to so many learners are named
FEW = 3  # a misconception of fewer learners is not discussed in class
SHARE = 0.1  # smallest share of the class with a misconception that is discussed
MOST = 3  # entries of one kind: more cannot be done in a week


@dataclass(frozen=True)
class Todo:
    """One thing to do.

    Attributes:
        group: one of GROUPS.
        do: what to do, in the imperative.
        why: the numbers that it is based on.
        link: anchor of the place on the page with the details.
    """

    group: str
    do: str
    why: str
    link: str


def todos(tally: Tally) -> list[Todo]:
    """Return the list of things to do; empty when nothing is left to do."""
    return [
        *_by_person(tally),
        *_to_mark(tally),
        *_to_teach(tally),
        *_to_explain(tally),
        *_to_revise(tally),
    ]


def _by_person(tally: Tally) -> Iterator[Todo]:
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
    for kinds, do, what in (
        (
            (ReasonKind.UNGRADED,),
            "Grade again what was not graded to its end",
            "without a final mark",
        ),
        (
            (ReasonKind.UNREAD,),
            "Ask for what could not be read",
            "with a notebook that could not be read",
        ),
        ((ReasonKind.FOREIGN,), "Ask for the right file", "with another notebook"),
        (
            (ReasonKind.COPIES,),
            "Look for the work in the copies",
            "with copies beside the notebook",
        ),
        ((ReasonKind.TIME,), "Ask when it was handed in", "with a time that can't be read"),
        (
            (ReasonKind.TOUCHED,),
            "Ask about edited tests or settings",
            "that changed some, and gained nothing by it",
        ),
        (
            (ReasonKind.STOPPED, ReasonKind.UNJUDGED, ReasonKind.UNDEFINED),
            "See whether a slip cost many points",
            "with an answer that did not run",
        ),
    ):
        found = [kind for kind in kinds if tally.needing[kind]]
        if found:
            count = sum(tally.needing[kind] for kind in found)
            why = f"{_submissions(count)} {what}{_named(tally, found, count)}."
            yield Todo(MARKS, do, why, f"people-{found[0]}")


def _named(tally: Tally, kinds: Sequence[str], count: int) -> str:
    names = [person.name for kind in kinds for person in tally.people[kind]]
    return f": {', '.join(names)}" if count <= NAMED else ""


def _to_mark(tally: Tally) -> Iterator[Todo]:
    for manual, do, what in (
        (True, "Mark the answers in words, in formgrader", "Waiting"),
        (False, "Look again at marks by hand", "Graded anew since they were given"),
    ):
        waiting = [one for one in tally.exercises if one.waiting and one.cell.manual is manual]
        if waiting:
            names = ", ".join(f"{one.waiting} to `{one.name}`" for one in waiting)
            yield Todo(MARKS, do, f"{what}: {names}.", anchor(tally, waiting[0]))


def _to_teach(tally: Tally) -> Iterator[Todo]:
    enough = max(FEW, SHARE * tally.graded)
    common = [one for one in tally.exercises if _first(one)[1] >= enough]
    common.sort(key=lambda one: -_first(one)[1])
    for one in common[:MOST]:
        name, count = _first(one)
        where = f"lesson {one.lesson}, “{one.reads}”" if one.lesson else f"“{one.reads}”"
        said = one.explanations[name].rstrip(".")
        why = f"{count} of {tally.graded} had “{name}” in `{one.name}`: {said}."
        yield Todo(CLASS, f"Go through {where} once more", why, anchor(tally, one))


def _to_explain(tally: Tally) -> Iterator[Todo]:
    missing = sorted(filter(worth_a_look, tally.exercises), key=lambda one: -one.unexplained)
    for one in missing[:MOST]:
        why = f"{one.unexplained} of {one.wrong} that are not right match no known misconception."
        do = f"Read a few wrong answers to `{one.name}`, and name what you find"
        yield Todo(LAB, do, why, anchor(tally, one))


def _to_revise(tally: Tally) -> Iterator[Todo]:
    for one in tally.exercises:
        if one.judgement.suspect:
            why = as_sentence(one.judgement.words)
            yield Todo(LAB, f"Look at `{one.name}` again", why, "discrimination")


def worth_a_look(one: ExerciseTally) -> bool:
    """Return whether the number of unexplained wrong answers suggests an unknown misconception."""
    return one.unexplained >= FEW and one.unexplained >= one.wrong / 3


def as_sentence(text: str) -> str:
    """Return the text with a capital first letter and a full stop."""
    text = text[:1].upper() + text[1:]
    return text if text.endswith((".", "?", "!", "…")) else f"{text}."


def anchor(tally: Tally, one: ExerciseTally) -> str:
    """Return the anchor of an exercise on the page."""
    return f"exercise-{tally.exercises.index(one) + 1}"


def _first(one: ExerciseTally) -> tuple[str, int]:
    found = one.misconceptions.most_common(1)
    return found[0] if found else ("", 0)


def _submissions(count: int) -> str:
    return "One submission" if count == 1 else f"{count} submissions"
