"""The report's tables: a row per learner and exercise, and a row per exercise."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

from hood.classroom.gradebook.graded import Graded, GradedCell
from hood.classroom.gradebook.pseudonyms import Names
from hood.classroom.report.tally import Tally
from hood.verdict import Cause, PartResult, Verdict

LEARNER_COLUMNS = (
    *("learner", "exercise", "points", "max", "status", "misconceptions", "problem", "manual"),
    "seconds_late",
)
EXERCISE_COLUMNS = (
    *("exercise", "title", "points", "learners"),
    *("all", "some", "nothing", "not_tried", "waiting", "mean_share"),
    *("most_frequent_misconception", "its_learners", "wrong", "unexplained"),
)


def learner_rows(
    learners: Iterable[Graded], cells: list[GradedCell], names: Names
) -> Iterator[Iterable[Any]]:
    """Yield the headings, then a row for each learner and exercise, one learner at a time."""
    yield LEARNER_COLUMNS if names.hidden else ("student", *LEARNER_COLUMNS)
    for one in learners:
        name, late = names.of(one), "" if one.late is None else math.ceil(one.late)
        who = [name] if names.hidden else [one.student, name]
        for cell in cells:
            score = one.scores.get(cell.name)
            points = "" if score is None else score
            found = [_status(one, cell, score), *_why(one, cell, names), _manual(one, cell)]
            yield [*who, cell.name, points, cell.points, *found, late]


def _status(one: Graded, cell: GradedCell, score: float | None) -> str:
    verdict = one.verdicts.get(cell.name)
    if score is None:
        newer = verdict is not None and verdict.cause is Cause.NEWER_PYTHON
        waits = (cell.manual or newer) and cell.name not in one.lost
        without = "could not be read" if _is_unread(one, cell) else "not graded"
        return "waiting" if waits else without
    if verdict:
        return verdict.status.value
    return "right" if score >= cell.points else "partly" if score else "wrong"


def _why(one: Graded, cell: GradedCell, names: Names) -> tuple[str, str]:
    """Return the misconceptions, and the first problem that none of them explains."""
    verdict = one.verdicts.get(cell.name)
    if verdict is None or _is_unread(one, cell):
        return "", ""
    unexplained = [part for part in verdict.parts if not part.misconception]
    said: list[Verdict | PartResult] = [verdict, *unexplained]
    problems = (names.problem(about, one) for about in said)
    return "; ".join(verdict.explanations), next(filter(None, problems), "")


def _is_unread(one: Graded, cell: GradedCell) -> bool:
    return one.unread and cell.name in one.lost


def _manual(one: Graded, cell: GradedCell) -> str:
    """Return the state of manual marking: "waiting", "marked", or "" for an automatic cell."""
    if cell.name in one.waiting:
        return "waiting"
    return "marked" if cell.manual and one.scores.get(cell.name) is not None else ""


def exercise_rows(tally: Tally) -> Iterator[Iterable[Any]]:
    """Yield the headings, then a row for each exercise."""
    yield EXERCISE_COLUMNS
    for one in tally.exercises:
        found = one.misconceptions.most_common(1)
        yield (
            *(one.name, one.title, one.cell.points, one.marked),
            *(one.full, one.some, one.nothing, one.not_tried, one.waiting),
            *("" if one.share is None else round(one.share, 3),),
            *(found[0] if found else ("", 0)),
            *(one.wrong, one.unexplained),
        )
