"""Read submissions' marks for feedback, and report missing marks."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from nbformat.notebooknode import NotebookNode
from nbgrader import preprocessors as nbgrader
from nbgrader.api import Gradebook, SubmittedAssignment
from nbgrader.converters import GenerateFeedback
from nbgrader.converters.base import NbGraderException
from nbgrader.utils import is_grade, is_task

from hood import UserError
from hood.classroom.feedback.page import ABOUT, About
from hood.classroom.formats.words import duration
from hood.classroom.gradebook.marks import missing_marks, seconds_late
from hood.classroom.results.counted_marks import feedback_rules
from hood.classroom.results.term import term_words
from hood.classroom.rules.class_list import class_list, passed_over_sentence
from hood.classroom.rules.deadline import Deadline
from hood.classroom.rules.reading import deadlines, read_course_file
from hood.classroom.rules.sentences import dates_sentence
from hood.grader.course import open_course
from hood.grader.execution.graded_cell import read_verdicts
from hood.grader.submission.names import shown_id
from hood.verdict import in_points

UTC_ZONE = ZoneInfo("UTC")  # the gradebook's time zone


def _term(root: Path, lab: str, student: str, now: datetime) -> str:
    """Return a learner's total as sentences; empty if the class has no total."""
    file = read_course_file(root)
    return term_words(open_course(root), lab, student, now, file) if file else ""


class CarefulFeedback(GenerateFeedback):
    """Extends nbgrader's GenerateFeedback: it also reports how many marks are missing.

    A learner who is not in the gradebook is reported, and all other learners get their pages.
    nbgrader has no setting that replaces GenerateFeedback by this class, so the exporter replaces
    GenerateFeedback.
    """

    def convert_notebooks(self) -> None:
        """Make all pages, report missing marks, and raise NbGraderException for missing pages."""
        lab = self.coursedir.assignment_id
        try:
            self._class = class_list(Path(self.coursedir.root))
        except UserError as error:
            raise NbGraderException(str(error)) from error
        with Gradebook(self.coursedir.db_url) as gradebook:
            self._entered = {
                submission.student_id for submission in gradebook.assignment_submissions(lab)
            }
            missing = missing_marks(gradebook.db, lab)
        self._without: list[str] = []
        self._passed_over: dict[str, str] = {}
        super().convert_notebooks()
        if said := passed_over_sentence(self._passed_over):
            self.log.warning("%s: no page of feedback is made. %s", lab, said)
        made = {
            Path(assignment).parent.name for assignment in self.assignments
        } - self._passed_over.keys()
        for waits, what in ((True, "not marked yet"), (False, "without a mark")):
            some = [one for one in missing if one.waits is waits and one.student in made]
            if some:
                learners = len({one.student for one in some})
                cells = "1 graded cell" if len(some) == 1 else f"{len(some)} graded cells"
                whose = "1 learner" if learners == 1 else f"{learners} learners"
                are = "is" if len(some) == 1 else "are"
                self.log.warning(
                    "%s: %s of %s %s %s; the feedback says so", lab, cells, whose, are, what
                )
        if self._without:
            raise NbGraderException(f"no feedback for {', '.join(self._without)}")

    def init_destination(self, assignment_id: str, student_id: str) -> bool:
        if why := self._class.why_not(student_id):
            self._passed_over[student_id] = why
            return False
        if student_id in self._entered:
            return super().init_destination(assignment_id, student_id)
        self._without.append(shown_id(student_id))
        self.log.error(
            "the gradebook has no submission of %s to %s, so there is no feedback: grade the lab "
            "with `python -m hood grade %s`, or remove the learner's folder from autograded/",
            *(shown_id(student_id), assignment_id, assignment_id),
        )
        return False


def _dates(submission: SubmittedAssignment) -> str:
    """Return a sentence on a submission's times in the gradebook, for a class without rules."""
    came, due = submission.timestamp, submission.duedate  # the due date includes an extension
    own = bool(submission.extension)
    deadline = Deadline(due, UTC_ZONE, extended=own) if due else None
    return dates_sentence(deadline, came and came.replace(tzinfo=UTC), UTC_ZONE)


class GetGrades(nbgrader.GetGrades):
    """Changes nbgrader's GetGrades: a missing mark is not a 0, and the class's rules are applied.

    The page says that a mark is missing. ``ABOUT`` in the resources has everything else that the
    page needs: the points that count, and what the learner may see. For a class without rules,
    ``ABOUT`` has missing marks, withheld points and lateness.
    """

    def preprocess(self, nb: NotebookNode, resources: Any) -> tuple[NotebookNode, Any]:
        nb, resources = super().preprocess(nb, resources)
        where = resources["nbgrader"]
        name, lab, student = where["notebook"], where["assignment"], where["student"]
        with Gradebook(where["db_url"]) as gradebook:
            missing = missing_marks(gradebook.db, lab, student)
            late = seconds_late(gradebook.db, lab, deadlines(Path.cwd(), lab)).get(student, 0.0)
            dates = _dates(gradebook.find_submission(lab, student))
        unmarked = {one.cell: one for one in missing if one.notebook == name}
        withheld = sum(verdict.points - verdict.most for verdict in read_verdicts(nb).values())
        for cell in nb.cells:
            if (is_grade(cell) or is_task(cell)) and cell.metadata.nbgrader.grade_id in unmarked:
                cell.metadata.nbgrader.score = unmarked[cell.metadata.nbgrader.grade_id].words
        waiting = sum(one.points for one in unmarked.values() if one.waits)
        failed = sum(one.points for one in unmarked.values() if not one.waits)
        now = datetime.now(UTC)
        penalty = float(where["late_penalty"])
        cost = f", which costs {in_points(penalty)}" if penalty else ", at no cost"
        unread = "because the submission could not be read or graded"
        unable = "because the grading machine could not run some checks"
        remarks = (
            (waiting, f"Not marked yet, so not final: {in_points(waiting)}."),
            (failed, f"No mark: {in_points(failed)}, {unread}."),
            (withheld and not failed, f"Withheld, not lost: {in_points(withheld)}, {unable}."),
            (dates, dates),
            (late, f"Handed in {duration(late)} late{cost}."),
        )
        where[ABOUT] = About(
            student=shown_id(student),
            notebook=name,
            score="no mark" if failed else float(where["score"]),
            most=float(where["max_score"]),
            remarks=tuple(sentence for holds, sentence in remarks if holds),
            rules=feedback_rules(Path.cwd(), lab, student, now),
            term=_term(Path.cwd(), lab, student, now),
        )
        return nb, resources

    def _get_score(self, cell: NotebookNode, resources: Any) -> None:
        super()._get_score(cell, resources)
        where = (self.notebook_id, self.assignment_id, self.student_id)
        mark = self.gradebook.find_grade(cell.metadata.nbgrader.grade_id, *where)
        cell.metadata.nbgrader.by_person = mark.manual_score is not None
