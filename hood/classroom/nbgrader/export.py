"""``nbgrader export``: write nbgrader's table of grades, in which a missing mark is not a 0."""

from __future__ import annotations

import math
from datetime import UTC
from functools import cached_property
from pathlib import Path
from typing import Any

from nbgrader.api import Assignment, Gradebook, SubmittedAssignment
from nbgrader.plugins import ExportPlugin

from hood import UserError
from hood.atomic_files import why_not_written
from hood.classroom.formats.spreadsheet import write_table
from hood.classroom.gradebook.marks import Missing, missing_marks, seconds_late
from hood.classroom.results.counted_marks import counts_of
from hood.classroom.rules.class_list import ClassList, class_list, passed_over_sentence
from hood.classroom.rules.reading import deadlines, read_course_file
from hood.classroom.rules.sentences import rounded
from hood.grader.course import Course
from hood.grader.submission.names import shown_id, spelled
from hood.verdict import in_points

COLUMNS = (
    *("assignment", "duedate", "timestamp", "student_id", "last_name", "first_name", "email"),
    *("raw_score", "late_submission_penalty", "score", "max_score", "seconds_late", "status"),
)
COUNTS = ("counts", "counts_of")  # if the class has rules


class Export(ExportPlugin):
    """Writes nbgrader's columns, and two more columns: how late a submission came, and its status.

    ``duedate`` is the student's own due date, in UTC and without the grace of the class's rules.
    ``seconds_late`` is counted from this date, and is 0 within the grace. If a submission lacks a
    mark, or if one of several notebooks could not be read or graded, ``raw_score`` has the points
    so far, and ``score`` is empty. If no notebook could be read and graded, or if nothing was
    handed in, ``raw_score`` and ``score`` are empty. The status gives the reason.

    Learners who handed in but are not in the gradebook have a row too. Learners outside the class
    have no row (:mod:`hood.classroom.rules.class_list`), and a message names them. If the class has
    a ``course.yml``, two more columns have the counted points, as in ``course export``. The points
    in all other columns are raw points.
    """

    def export(self, gradebook: Gradebook) -> None:
        """Write the table; ``nbgrader export`` calls this."""
        path = Path(self.to or "grades.csv").absolute()
        try:
            self._write(gradebook, path)
        except (OSError, UserError) as error:
            why = str(error) if isinstance(error, UserError) else why_not_written(error)
            if not why:
                raise
            self.parent.fail(why)

    def _write(self, gradebook: Gradebook, path: Path) -> None:
        self.log.info("Exporting grades to %s", path)
        students, labs = set(map(str, self.student)), set(map(str, self.assignment))
        chosen = [lab for lab in gradebook.assignments if not labs or lab.name in labs]
        self._passed_over: dict[str, str] = {}
        rows = (row for lab in chosen for row in self._rows(gradebook, lab))
        columns = (*COLUMNS, *COUNTS) if read_course_file(self._course.root) else COLUMNS
        rows = (row for row in rows if not students or row["student_id"] in students)
        table = ([row.get(name, "") for name in columns] for row in rows)
        write_table(path, [columns, *table], "utf-8")
        if path.is_file():
            self._course.share(path)
        if said := passed_over_sentence(self._passed_over):
            self.log.warning("%s", said)

    def _rows(self, gradebook: Gradebook, lab: Assignment) -> list[dict[str, Any]]:
        db = gradebook.db
        deadline_of = deadlines(self._course.root, lab.name)
        late = seconds_late(db, lab.name, deadline_of)
        missing: dict[str, list[Missing]] = {}
        for mark in missing_marks(db, lab.name):
            missing.setdefault(mark.student, []).append(mark)
        submissions = {one.student_id: one for one in lab.submissions}
        students = {student.id: student for student in gradebook.students}
        known = spelled(students.keys())
        handed_in = self._course.students("submitted", lab.name)  # some may not be in the gradebook
        on_disk = {known.get(one, shown_id(one)) for one in handed_in}
        counted = counts_of(self._course, lab.name) if submissions else None
        every = [*students, *sorted(on_disk - set(students))]
        self._passed_over |= self._class.passed_over(every)
        rows = []
        for student in self._class.without_others(every):
            due = getattr(submissions.get(student), "duedate", lab.duedate)  # includes an extension
            if deadline_of:
                deadline = deadline_of(student)
                due = deadline and deadline.due.astimezone(UTC).replace(tzinfo=None)
            row = {"assignment": lab.name, "duedate": _text(due), "student_id": student}
            for name in ("last_name", "first_name", "email"):
                row[name] = getattr(students.get(student), name, None) or ""
            row["max_score"] = lab.max_score
            if submission := submissions.get(student):
                row |= _marks(submission, missing.get(student, []))
                if what := (counted or {}).get(student):
                    counts = rounded(what.counts) if what.is_final else ""
                    row |= {"counts": counts, "counts_of": rounded(what.most)}
                if student in late:
                    row["seconds_late"] = math.ceil(late[student])
            elif student in on_disk:
                row["status"] = "handed in, not graded"
            else:
                row["status"] = "not handed in"
            rows.append(row)
        return rows

    @cached_property
    def _class(self) -> ClassList:
        return class_list(self._course.root)

    @cached_property
    def _course(self) -> Course:
        directory = self.parent.coursedir
        return Course(Path(directory.root), self.config, directory)


def _marks(submission: SubmittedAssignment, missing: list[Missing]) -> dict[str, Any]:
    row: dict[str, Any] = {"timestamp": _text(submission.timestamp)}
    lost = {one.notebook for one in missing if not one.waits}
    if lost and lost == {notebook.name for notebook in submission.notebooks if notebook.grades}:
        return row | {"status": "no mark: could not be read or graded"}
    raw, penalty = submission.score, submission.late_submission_penalty
    row |= {"raw_score": raw, "late_submission_penalty": penalty}
    said = [f"no mark for {', '.join(sorted(lost))}: could not be read or graded"] if lost else []
    if waiting := sum(one.points for one in missing if one.waits):
        said.append(f"not marked yet: {in_points(waiting)}")
    if said:
        return row | {"status": "; ".join(said)}
    return row | {"score": max(0.0, raw - penalty), "status": "marked"}


def _text(moment: Any) -> str:
    return "" if moment is None else str(moment)
