"""``grade --preview``: show which points a new grading would change, and record nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import nbformat
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from sqlalchemy import inspect

from hood import UserError
from hood.classroom.formats.spreadsheet import write_table
from hood.classroom.gradebook.database import engine_of
from hood.classroom.gradebook.graded import Graded, Results
from hood.classroom.recording.summary import MOST_LINES, RunSummary, in_lines
from hood.classroom.recording.writer import RECORDS, GradeRecord
from hood.classroom.results.counted_marks import CountedMarks
from hood.classroom.rules.reading import read_course_file
from hood.classroom.rules.sentences import rounded
from hood.grader.batch.job import Job, Result
from hood.grader.course import Course
from hood.grader.execution.graded_cell import read_verdicts
from hood.grader.submission.names import printable
from hood.verdict import Verdict

FILE = "preview.csv"
WHOLE = ""  # in place of the name of an exercise, for the whole lab
COLUMNS = (
    *("student", "learner", "exercise", "points", "points_after"),
    *("counts", "counts_after", "change"),
)


class Score(NamedTuple):
    """A learner's points in an exercise, or in the whole lab.

    Attributes:
        raw: the points earned; None without a mark.
        counted: the points that count according to ``course.yml``; None without a mark or without
            rules.
    """

    raw: float | None
    counted: float | None = None


@dataclass(frozen=True)
class Change:
    """A learner's points before and after grading again, in one exercise or in the whole lab."""

    student: str
    name: str
    exercise: str
    before: Score
    after: Score

    @property
    def kind(self) -> str:
        """``gains``, ``loses`` or ``same``. If the raw points are equal, counted points decide."""
        pairs = zip(self.after, self.before, strict=True)
        differences = [rounded(new or 0.0) - rounded(old or 0.0) for new, old in pairs]
        first = next(filter(None, differences), 0.0)
        return "gains" if first > 0 else "loses" if first < 0 else "same"

    def row(self) -> list[Any]:
        """Return a row for ``preview.csv``, in the order of :data:`COLUMNS`."""
        points = self.before.raw, self.after.raw, self.before.counted, self.after.counted
        found = ["" if p is None else rounded(p) for p in points]
        return [self.student, self.name, self.exercise or "the whole lab", *found, self.kind]


class Preview(RunSummary):
    """The outcome of a run that records nothing: what would change if it were recorded.

    Raises:
        UserError: when no grade of the lab is recorded, or ``course.yml`` has an error.
    """

    def __init__(self, course: Course, lab: str):
        super().__init__(lab)
        self._course, self._results = course, Results(course, lab)
        with engine_of(course.directory.db_url).connect() as connection:
            if not inspect(connection).has_table(RECORDS.name):
                raise UserError(
                    f"no grade of {lab} is recorded here, so there is nothing to compare with"
                )
        file = read_course_file(course.root)
        ruled = file is not None and lab in file.labs
        self._counted = CountedMarks(course, file) if file and ruled else None
        self._changes: list[Change] = []
        self.without = 0  # submissions without a recorded grade
        self.changed = 0  # submissions that were handed in again since grading
        self.by_hand = 0  # marks given by hand, which stay and are flagged for review
        self.path = course.root / "reports" / lab / FILE

    def leave_out(self, before: GradeRecord | None) -> None:
        """Count a submission whose current state has no recorded grade to compare with."""
        if before and before.job_id:
            self.changed += 1
        else:
            self.without += 1

    def compare(self, job: Job, result: Result) -> bool:
        """Compare a result with the recorded grade; return whether the result would be recorded."""
        if not result.judged:
            return False
        for one in self._results.read(only=[job.student]):
            after = self._after(one, result)
            changes = [
                Change(one.student, one.name, exercise, old, new)
                for (exercise, old), (_, new) in zip(
                    self._points(one), self._points(after), strict=True
                )
            ]
            self._changes += [c for c in changes if c.exercise == WHOLE or c.kind != "same"]
        return True

    def _after(self, graded: Graded, result: Result) -> Graded:
        """Return a graded submission as it would be if this result were recorded."""
        scores, verdicts = dict(graded.scores), dict[str, Verdict]()
        for notebook in result.notebooks:
            named = self._results.cell_name
            for cell, score in notebook.scores.items():
                name = named(notebook.name, cell)
                if name in graded.by_person:
                    self.by_hand += 1
                elif name in scores:
                    credit = graded.extra.get(name, 0.0)
                    scores[name] = None if score is None else score + credit
            found = read_verdicts(nbformat.v4.reads(notebook.data.decode()))
            verdicts |= {named(notebook.name, cell): verdict for cell, verdict in found.items()}
        return replace(graded, scores=scores, run=replace(graded.run, verdicts=verdicts))

    def _points(self, graded: Graded) -> Iterator[tuple[str, Score]]:
        """Yield a learner's points in each exercise, then in the whole lab."""
        counted = self._counted.of(self.lab, graded) if self._counted else None
        by_name = {mark.raw.exercise: mark.counts for mark in counted.marks} if counted else {}
        for name in graded.cells:
            yield name, Score(graded.scores.get(name), by_name.get(name))
        yield WHOLE, Score(graded.points, counted.counts if counted else None)

    def write(self) -> None:
        """Write ``preview.csv``: a row per learner, and a row per exercise with a change."""
        place = {name.name: number for number, name in enumerate(self._results.cells)}
        self._changes.sort(key=lambda one: (one.student, place.get(one.exercise, -1)))
        write_table(self.path, [COLUMNS, *(change.row() for change in self._changes)])
        self._course.share(self.path.parent, self.path)

    def show(self, console: Console) -> None:
        """Print how many learners would gain or lose points, and the learners' names."""
        whole = [change for change in self._changes if change.exercise == WHOLE]
        table = Table(box=box.SIMPLE_HEAD)
        table.add_column("learners who")
        for heading in ("gain", "lose", "stay"):
            table.add_column(heading, justify="right")
        for exercise in [*(cell.name for cell in self._results.cells), WHOLE]:
            kinds = Counter(change.kind for change in self._changes if change.exercise == exercise)
            gain, lose = kinds["gains"], kinds["loses"]
            if gain or lose or exercise == WHOLE:
                counts = (gain, lose, len(whole) - gain - lose)
                table.add_row(escape(exercise) or "in the whole lab", *map(str, counts))
        console.print(f"{escape(self.lab)}: what grading again would change", highlight=False)
        console.print(table)
        self.show_passed_over(console)
        for line in self._lines(whole):
            console.print(f"  {escape(line)}", highlight=False, soft_wrap=True)
        if self.failures:
            console.print("[bold]Without a verdict: the recorded grade would stay[/bold]")
            for line in in_lines(self.failures):
                console.print(f"  {escape(line)}", highlight=False)
        for many, what in (
            (self.by_hand, "Marks given by hand, which would stay and wait for review"),
            (self.changed, "Submissions handed in after grading, not compared"),
            (self.without, "Submissions without a recorded grade"),
        ):
            if many:
                console.print(f"{what}: {many}.", highlight=False)
        console.print(f"All learners: {self.path}", markup=False, highlight=False, soft_wrap=True)

    def _lines(self, whole: Sequence[Change]) -> Iterator[str]:
        """Yield a line for each learner whose points would change, at most ``MOST_LINES`` lines."""
        parts: dict[str, list[Change]] = {}
        for change in self._changes:
            if change.exercise != WHOLE:
                parts.setdefault(change.student, []).append(change)
        concerned = [one for one in whole if one.student in parts]
        for one in concerned[:MOST_LINES]:
            own = ", ".join(f"`{c.exercise}` {_step(c, 0)}" for c in parts[one.student])
            counts = f"; {_step(one, 1)} count" if one.after.counted is not None else ""
            yield f"{printable(one.student)}: {_step(one, 0)} points ({own}){counts}"
        if len(concerned) > MOST_LINES:
            yield f"and {len(concerned) - MOST_LINES} more"


def _step(one: Change, which: int) -> str:
    """Return points before and after as text: raw points (``which`` 0) or counted points (1)."""
    old, new = (
        "no mark" if p is None else f"{rounded(p):g}" for p in (one.before[which], one.after[which])
    )
    return new if old == new else f"{old} to {new}"
