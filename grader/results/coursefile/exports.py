"""Write what counts in the form that a learning platform imports."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from grader.results.coursefile.counting import Counted, Role
from grader.results.coursefile.roster import Member
from grader.results.coursefile.schema import CourseFile
from grader.results.coursefile.sentences import counted_sentences, how, rounded
from grader.results.gradebook import Graded
from grader.results.spreadsheet import write_table
from grader.whole_file import write_whole


class Kind(StrEnum):
    """The platforms for which there is a form."""

    MOODLE = "moodle"
    CANVAS = "canvas"
    GRADESCOPE = "gradescope"
    NBGRADER = "nbgrader"


@dataclass(frozen=True)
class Entry:
    """One learner in one lab.

    Attributes:
        graded: what was graded; None, as ``counted`` is, where nothing was.
        names_misconceptions: whether the learner may see them.
    """

    member: Member
    lab: str
    graded: Graded | None = None
    counted: Counted | None = None
    names_misconceptions: bool = True

    @property
    def score(self) -> float | str:
        """The points that count; empty where a mark is missing, which is no 0."""
        done = self.counted is not None and self.counted.is_final
        return rounded(self.counted.counts) if done and self.counted else ""


def write_moodle(file: CourseFile, entries: list[Entry], path: Path) -> None:
    """Write a table for Moodle's *Import, CSV file*: who, and a column for each lab.

    Moodle asks which column identifies its users, and which grade item each other column is.
    """
    items = file.export.moodle.items
    members, labs, scores = _by_learner(entries)
    rows: list[list[Any]] = [[file.export.moodle.identify, *(items.get(lab, lab) for lab in labs)]]
    for one in members:
        rows.append([one.moodle or one.id, *(scores.get((one.id, lab), "") for lab in labs)])
    _write(path, rows)


def write_canvas(file: CourseFile, entries: list[Entry], path: Path) -> None:
    """Write a table for the import of Canvas's gradebook, with its row of possible points.

    ``items`` names a column as Canvas does, with the assignment's number: ``Lab 1 (12345)``.
    """
    items = file.export.canvas.items
    members, labs, scores = _by_learner(entries)
    most = {e.lab: rounded(e.counted.most) for e in reversed(entries) if e.counted}
    heads = ["Student", "ID", "SIS User ID", "SIS Login ID", "Section"]
    rows: list[list[Any]] = [[*heads, *(items.get(lab, lab) for lab in labs)]]
    rows.append(["Points Possible", "", "", "", "", *(most.get(lab, "") for lab in labs)])
    for one in members:
        name = ", ".join(filter(None, (one.last_name, one.first_name))) or one.id
        row = [name, one.canvas, "", one.id, one.section]
        rows.append([*row, *(scores.get((one.id, lab), "") for lab in labs)])
    _write(path, rows)


def write_nbgrader(file: CourseFile, entries: list[Entry], path: Path) -> None:
    """Write a table with the columns of ``nbgrader export`` that say what was earned and counts."""
    heads = ["assignment", "student_id", "last_name", "first_name", "email", "section"]
    rows: list[list[Any]] = [
        [*heads, "raw_score", "days_late", "free_days", "score", "max_score", "status"]
    ]
    for e in entries:
        one, counted = e.member, e.counted
        who = [e.lab, one.id, one.last_name, one.first_name, one.email, one.section]
        if counted is None or e.graded is None:
            rows.append([*who, "", "", "", "", "", "not handed in, or not graded"])
            continue
        late = counted.lateness
        about = [rounded(e.graded.points), late.days if late.known else "", late.free, e.score]
        said = " ".join(counted_sentences(counted))
        rows.append([*who, *about, rounded(counted.most), said])
    _write(path, rows)


def write_gradescope(file: CourseFile, entries: list[Entry], folder: Path) -> None:
    """Write Gradescope's results, a file ``LAB/STUDENT.json`` for each learner with a mark.

    The score is the whole one, so that Gradescope adds nothing up by itself.
    """
    for e in entries:
        if e.counted is None or e.graded is None:
            continue
        tests = []
        for mark in e.counted.marks:
            if mark.counts is None:
                continue
            verdict = e.graded.verdicts.get(mark.raw.exercise)
            named = verdict.explanations.values() if verdict and e.names_misconceptions else ()
            said = [how(mark), *named]
            bonus = {"extra_data": {"bonus": True}} if mark.role is Role.BONUS else {}
            tests.append(
                {
                    "name": mark.raw.exercise,
                    "score": rounded(mark.counts),
                    "max_score": rounded(mark.most),
                    "output": "\n".join(filter(None, said)),
                    "output_format": "text",
                    "visibility": "visible",
                    **bonus,
                }
            )
        late = e.counted.lateness
        results: dict[str, Any] = {
            "score": rounded(e.counted.counts),
            "output": "\n".join(counted_sentences(e.counted)),
            "output_format": "text",
            "visibility": "visible",
            "stdout_visibility": "hidden",
            "tests": tests,
            "extra_data": {
                "days_late": late.days if late.known else None,
                "final": e.counted.is_final,
            },
        }
        path = folder / e.lab / f"{e.member.id}.json"
        write_whole(path, json.dumps(results, ensure_ascii=False, indent=1).encode())


WRITERS: dict[Kind, Callable[[CourseFile, list[Entry], Path], None]] = {
    Kind.MOODLE: write_moodle,
    Kind.CANVAS: write_canvas,
    Kind.GRADESCOPE: write_gradescope,
    Kind.NBGRADER: write_nbgrader,
}
# What each writes by default, in the course folder.
PLACES = {
    Kind.MOODLE: "moodle.csv",
    Kind.CANVAS: "canvas.csv",
    Kind.GRADESCOPE: "gradescope",
    Kind.NBGRADER: "counted.csv",
}


def _by_learner(
    entries: list[Entry],
) -> tuple[list[Member], list[str], dict[tuple[str, str], float | str]]:
    members = {e.member.id: e.member for e in entries}
    labs = list(dict.fromkeys(e.lab for e in entries))
    return list(members.values()), labs, {(e.member.id, e.lab): e.score for e in entries}


def _write(path: Path, rows: list[list[Any]]) -> None:
    write_table(path, ([_plain(value) for value in row] for row in rows), "utf-8")


def _plain(value: Any) -> Any:
    """Return 2 for 2.0, and anything else as it is."""
    return int(value) if isinstance(value, float) and value.is_integer() else value
