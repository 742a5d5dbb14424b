"""Write two tables: one has a row per learner and exercise, the other has a row per exercise."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

from hood.classroom.gradebook.graded import Graded, GradedCell
from hood.classroom.gradebook.pseudonyms import LearnerNames
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
    learners: Iterable[Graded], cells: list[GradedCell], names: LearnerNames
) -> Iterator[Iterable[Any]]:
    """Yield the headings, then a row for each learner and exercise, one learner at a time."""
    yield LEARNER_COLUMNS if names.hidden else ("student", *LEARNER_COLUMNS)
    for learner in learners:
        name, late = names.of(learner), "" if learner.late is None else math.ceil(learner.late)
        who = [name] if names.hidden else [learner.student, name]
        for cell in cells:
            score = learner.scores.get(cell.name)
            points = "" if score is None else score
            found = [
                _status(learner, cell, score),
                *_why(learner, cell, names),
                _manual(learner, cell),
            ]
            yield [*who, cell.name, points, cell.points, *found, late]


def _status(graded: Graded, cell: GradedCell, score: float | None) -> str:
    verdict = graded.verdicts.get(cell.name)
    if score is None:
        newer = verdict is not None and verdict.cause is Cause.NEWER_PYTHON
        waits = (cell.manual or newer) and cell.name not in graded.lost
        without = "could not be read" if _is_unread(graded, cell) else "not graded"
        return "waiting" if waits else without
    if verdict:
        return verdict.status.value
    return "right" if score >= cell.points else "partly" if score else "wrong"


def _why(graded: Graded, cell: GradedCell, names: LearnerNames) -> tuple[str, str]:
    """Return an answer's misconceptions, and the first problem that no misconception explains."""
    verdict = graded.verdicts.get(cell.name)
    if verdict is None or _is_unread(graded, cell):
        return "", ""
    unexplained = [part for part in verdict.parts if not part.misconception]
    said: list[Verdict | PartResult] = [verdict, *unexplained]
    problems = (names.problem(about, graded) for about in said)
    return "; ".join(verdict.explanations), next(filter(None, problems), "")


def _is_unread(graded: Graded, cell: GradedCell) -> bool:
    return graded.unread and cell.name in graded.lost


def _manual(graded: Graded, cell: GradedCell) -> str:
    """Return the state of a person's marking: "waiting", "marked", or "" for an automatic cell."""
    if cell.name in graded.waiting:
        return "waiting"
    return "marked" if cell.manual and graded.scores.get(cell.name) is not None else ""


def exercise_rows(tally: Tally) -> Iterator[Iterable[Any]]:
    """Yield the headings, then a row for each exercise."""
    yield EXERCISE_COLUMNS
    for exercise in tally.exercises:
        found = exercise.misconceptions.most_common(1)
        yield (
            *(exercise.name, exercise.title, exercise.cell.points, exercise.marked),
            *(exercise.full, exercise.some, exercise.nothing, exercise.not_tried, exercise.waiting),
            *("" if exercise.share is None else round(exercise.share, 3),),
            *(found[0] if found else ("", 0)),
            *(exercise.wrong, exercise.unexplained),
        )
