"""Write the report as CSV: a row per learner and exercise, and a row per exercise.

Spreadsheets run a cell that starts with ``=`` and some other characters as a formula, so such texts
get an apostrophe in front; so does such a character behind a semicolon, which separates cells where
a comma is for decimals. The files begin with a byte order mark, because Excel misreads accented
letters without it.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterator
from typing import Any, TextIO

from grader.results.class_report.names import Names
from grader.results.class_report.tally import Tally
from grader.results.gradebook import Graded, GradedCell
from grader.verdict import PartResult, Verdict

ENCODING = "utf-8-sig"
EXERCISE_COLUMNS = (
    *("exercise", "title", "points", "learners"),
    *("all", "some", "nothing", "not_tried", "waiting", "mean_share"),
    *("item_rest_correlation", "low", "high", "judgement"),
    *("most_frequent_misconception", "its_learners", "wrong", "unexplained"),
)
FORMULA = tuple("=+-@|%＝＋－＠")
SEPARATED = re.compile(r"(;[\s\"]*)(?=[=+\-@|%＝＋－＠])")


def safe(value: Any) -> Any:
    """Return the value so that no spreadsheet takes it for a formula. Numbers stay numbers."""
    if not isinstance(value, str):
        return value
    line = " ".join(value.split())
    return SEPARATED.sub(r"\1'", f"'{line}" if line.startswith(FORMULA) else line)


class LearnerSheet:
    """Writes the learners' rows, one learner at a time."""

    def __init__(self, file: TextIO, names: Names):
        self._writer = csv.writer(file)
        self._names = names
        who = ["learner"] if names.hidden else ["student", "learner"]
        columns = ["exercise", "points", "max", "status", "misconceptions", "problem", "manual"]
        self._writer.writerow([*who, *columns, "seconds_late"])

    def write(self, one: Graded, cells: list[GradedCell]) -> None:
        """Write all rows of one learner."""
        name = self._names.of(one)
        who = [name] if self._names.hidden else [one.student, name]
        for cell in cells:
            row = [*who, cell.name, *_marks(one, cell), *self._why(one, cell), _manual(one, cell)]
            row.append("" if one.late is None else math.ceil(one.late))
            self._writer.writerow([safe(value) for value in row])

    def _why(self, one: Graded, cell: GradedCell) -> tuple[str, str]:
        verdict = one.verdicts.get(cell.name)
        if verdict is None or _is_unread(one, cell):
            return "", ""
        said: list[Verdict | PartResult] = [
            verdict,
            *(part for part in verdict.parts if not part.misconception),
        ]
        problems = (self._names.problem(about, one) for about in said)
        return "; ".join(verdict.explanations), next(filter(None, problems), "")


def _marks(one: Graded, cell: GradedCell) -> tuple[Any, float, str]:
    score = one.scores.get(cell.name)
    if score is None:
        waits = cell.manual and cell.name not in one.lost
        without = "could not be read" if _is_unread(one, cell) else "not graded"
        return "", cell.points, "waiting" if waits else without
    verdict = one.verdicts.get(cell.name)
    if verdict is not None:
        return score, cell.points, verdict.status.value
    return score, cell.points, "right" if score >= cell.points else "partly" if score else "wrong"


def _is_unread(one: Graded, cell: GradedCell) -> bool:
    return one.unread and cell.name in one.lost


def _manual(one: Graded, cell: GradedCell) -> str:
    """Return the state of manual marking: "waiting", "marked", or "" for an automatic cell."""
    if cell.name in one.waiting:
        return "waiting"
    return "marked" if cell.manual and one.scores.get(cell.name) is not None else ""


def write_exercises(file: TextIO, tally: Tally) -> None:
    """Write a row for each exercise."""
    writer = csv.writer(file)
    writer.writerow(EXERCISE_COLUMNS)
    for row in _exercise_rows(tally):
        writer.writerow([safe(value) for value in row])


def _exercise_rows(tally: Tally) -> Iterator[list[Any]]:
    for one in tally.exercises:
        found, judged = one.misconceptions.most_common(1), one.judgement
        yield [
            *(one.cell.name, one.title, one.cell.points, one.marked),
            *(one.full, one.some, one.nothing, one.not_tried, one.waiting, _round(one.share)),
            *(_round(judged.r), _round(judged.low), _round(judged.high), judged.words),
            *(found[0] if found else ("", 0)),
            *(one.wrong, one.unexplained),
        ]


def _round(value: float | None) -> float | str:
    return "" if value is None else round(value, 3)
