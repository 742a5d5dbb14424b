"""Write the points that count into files that learning platforms import."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

from hood.atomic_files import write_whole
from hood.classroom.formats.spreadsheet import write_table
from hood.classroom.gradebook.graded import Graded
from hood.classroom.rules.counting import Counted, Role
from hood.classroom.rules.roster import Member
from hood.classroom.rules.schema import ClassRules
from hood.classroom.rules.sentences import counted_sentences, how, rounded
from hood.classroom.rules.total import Total
from hood.classroom.rules.total_words import why

NO_GRADE = "-"  # in the form that Moodle writes and reads


class Kind(StrEnum):
    """The kinds of exports."""

    MOODLE = "moodle"
    CANVAS = "canvas"
    GRADESCOPE = "gradescope"
    NBGRADER = "nbgrader"
    TOTAL = "total"


@dataclass(frozen=True)
class Entry:
    """One learner in one lab.

    Attributes:
        worth: the lab's maximum if all checks could run.
        graded: the graded submission. If no submission was graded, ``graded`` and ``counted`` are
            None.
        names_misconceptions: whether the learner may see misconceptions.
    """

    member: Member
    lab: str
    worth: float = 0.0
    graded: Graded | None = None
    counted: Counted | None = None
    names_misconceptions: bool = True

    @property
    def counts(self) -> float | str:
        """The points that count; empty, not 0, if a mark is missing."""
        done = self.counted is not None and self.counted.is_final
        return rounded(self.counted.counts) if done and self.counted else ""

    @property
    def in_proportion(self) -> float | None:
        """The points so far, scaled to the whole lab.

        Points are scaled because platforms have one maximum for all learners. For example, if
        checks for only 36 of 40 points could run, a learner with all 36 points gets 40 of 40. The
        result is None if nothing is graded, or if no check could run.
        """
        if self.counted is None:
            return None
        if not self.is_scaled:
            return self.counted.counts
        return self.counted.counts * self.worth / self.counted.most if self.counted.most else None

    @property
    def is_scaled(self) -> bool:
        """Whether this learner's maximum differs from the maximum of the lab."""
        return self.counted is not None and rounded(self.counted.most) != rounded(self.worth)

    @property
    def score(self) -> float | str:
        """The score for the platform: the points that count, scaled to the whole lab."""
        done = self.counted is not None and self.counted.is_final
        points = self.in_proportion if done else None
        return "" if points is None else rounded(points)


@dataclass(frozen=True)
class ClassMarks:
    """The marks and totals to export.

    Attributes:
        entries: one entry for every learner in every lab.
        totals: the totals, keyed by learner; empty if totals are not exported.
        moodle: the heading of the column that identifies users in Moodle, and the column's values,
            keyed by learner.
    """

    file: ClassRules
    entries: list[Entry]
    totals: Mapping[str, Total]
    moodle: tuple[str, Mapping[str, str]] = ("", MappingProxyType({}))

    @cached_property
    def members(self) -> list[Member]:
        """All learners; each occurs once."""
        return list({e.member.id: e.member for e in self.entries}.values())

    @cached_property
    def labs(self) -> list[str]:
        """All labs; each occurs once."""
        return list(dict.fromkeys(e.lab for e in self.entries))

    def scores(self, student: str) -> list[float | str]:
        """Return a learner's scores in the order of ``labs``."""
        return [self._scores[student, lab] for lab in self.labs]

    @cached_property
    def _scores(self) -> dict[tuple[str, str], float | str]:
        return {(e.member.id, e.lab): e.score for e in self.entries}

    def total(self, student: str) -> float | str:
        """Return a learner's total; empty until it is final."""
        total = self.totals[student]
        return total.rounded if total.is_final and total.rounded is not None else ""


def write_moodle(marks: ClassMarks, path: Path) -> None:
    """Write a table for Moodle's *Import, CSV file*: the learner, each lab, and the total.

    In Moodle, the instructor chooses the column that identifies users, and a grade item for each of
    the other columns. A missing grade is written as ``-``, because Moodle would read an empty cell
    as 0 when it makes a new grade item. Learners without an id for Moodle are left out, because
    Moodle would give their scores to the user of the previous line.
    """
    platform, (heading, ids) = marks.file.export.moodle, marks.moodle
    names = [platform.items.get(lab, lab) for lab in marks.labs]
    total = [platform.total or "Total"] if marks.totals else []
    rows: list[list[Any]] = [[heading, *names, *total]]
    for member in marks.members:
        if user := ids.get(member.id):
            scores = marks.scores(member.id) + ([marks.total(member.id)] if total else [])
            rows.append([user, *(NO_GRADE if score == "" else score for score in scores)])
    _write(path, rows)


def write_canvas(marks: ClassMarks, path: Path) -> None:
    """Write a table for the import into Canvas's gradebook, with Canvas's row of possible points.

    ``items`` has the columns' headings as Canvas writes them, with the assignment's number, such as
    ``Lab 1 (12345)``.
    """
    platform, worth = marks.file.export.canvas, {e.lab: rounded(e.worth) for e in marks.entries}
    has_total = bool(marks.totals and platform.total)
    heads = ["Student", "ID", "SIS User ID", "SIS Login ID", "Section"]
    names = [platform.items.get(lab, lab) for lab in marks.labs]
    rows: list[list[Any]] = [[*heads, *names], ["Points Possible", "", "", "", ""]]
    rows[1] += [worth[lab] for lab in marks.labs]
    for member in marks.members:
        name = ", ".join(filter(None, (member.last_name, member.first_name))) or member.id
        row = [name, member.canvas, "", member.id, member.section]
        rows.append(
            [*row, *marks.scores(member.id), *([marks.total(member.id)] if has_total else [])]
        )
    if has_total:
        rows[0].append(platform.total)
        rows[1].append(next(iter(marks.totals.values())).out_of)
    _write(path, rows)


def write_nbgrader(marks: ClassMarks, path: Path) -> None:
    """Write the raw and the counted points, with the column names of ``nbgrader export``."""
    heads = ["assignment", "student_id", "last_name", "first_name", "email", "section"]
    rows: list[list[Any]] = [
        [*heads, "raw_score", "days_late", "free_days", "counts", "counts_of", "status"]
    ]
    for e in marks.entries:
        one, counted = e.member, e.counted
        who = [e.lab, one.id, one.last_name, one.first_name, one.email, one.section]
        if counted is None or e.graded is None:
            rows.append([*who, "", "", "", "", "", "not handed in, or not graded"])
            continue
        late = counted.lateness
        about = [rounded(e.graded.points), late.days if late.known else "", late.free, e.counts]
        said = " ".join(counted_sentences(counted))
        rows.append([*who, *about, rounded(counted.most), said])
    _write(path, rows)


def write_total(marks: ClassMarks, path: Path) -> None:
    """Write each learner's total, and how it is computed.

    A lab's column has the percentage that the learner reached. The cell is empty as long as the lab
    is not in the learner's total. ``so_far`` is the total of the labs so far, and ``total`` is
    empty until the total is final.
    """
    totals = marks.totals
    labs = [lab.lab for lab in next(iter(totals.values())).labs] if totals else []
    heads = ["student_id", "last_name", "first_name", "email", "section"]
    rows: list[list[Any]] = [
        [*heads, *labs, "dropped", "so_far", "total", "total_of", "final", "why"]
    ]
    for member in marks.members:
        total = totals[member.id]
        shares = ["" if s.share is None else rounded(float(100 * s.share)) for s in total.labs]
        dropped = ", ".join(s.lab for s in total.labs if s.dropped)
        so_far = "" if total.rounded is None else total.rounded
        who = [member.id, member.last_name, member.first_name, member.email, member.section]
        final = "yes" if total.is_final else "no"
        made = [dropped, so_far, marks.total(member.id), total.out_of, final, why(total)]
        rows.append([*who, *shares, *made])
    _write(path, rows)


def write_gradescope(marks: ClassMarks, folder: Path) -> None:
    """Write a file of results for Gradescope, ``LAB/STUDENT.json``, for each learner with a mark.

    Each file has one score for the whole lab. Without this score, Gradescope would add up the
    scores of the tests.
    """
    for e in marks.entries:
        points = e.in_proportion
        if e.counted is None or e.graded is None or points is None:
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
            "score": rounded(points),
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


WRITERS: dict[Kind, Callable[[ClassMarks, Path], None]] = {
    Kind.MOODLE: write_moodle,
    Kind.CANVAS: write_canvas,
    Kind.GRADESCOPE: write_gradescope,
    Kind.NBGRADER: write_nbgrader,
    Kind.TOTAL: write_total,
}
# Default file names, in the course folder.
PLACES = {
    Kind.MOODLE: "moodle.csv",
    Kind.CANVAS: "canvas.csv",
    Kind.GRADESCOPE: "gradescope",
    Kind.NBGRADER: "counted.csv",
    Kind.TOTAL: "total.csv",
}


def _write(path: Path, rows: list[list[Any]]) -> None:
    write_table(path, ([_plain(value) for value in row] for row in rows), "utf-8")


def _plain(value: Any) -> Any:
    """Return a whole float such as 2.0 as an int, and any other value unchanged."""
    return int(value) if isinstance(value, float) and value.is_integer() else value
