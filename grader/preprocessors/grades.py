"""Read submissions' marks for their feedback, and say which are missing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nbformat.notebooknode import NotebookNode
from nbgrader import preprocessors as nbgrader
from nbgrader.api import Gradebook
from nbgrader.converters import GenerateFeedback
from nbgrader.converters.base import NbGraderException
from nbgrader.utils import is_grade, is_task

from grader.judging.graded_cell import read_verdicts
from grader.results.class_report.outline import read_outline
from grader.results.marks import duration, missing_marks, seconds_late
from grader.submission.student_ids import shown_id


class CarefulFeedback(GenerateFeedback):
    """nbgrader's GenerateFeedback, which says how many marks are missing.

    For a learner who is not in the gradebook there is a sentence, and the others go on. nbgrader
    has no setting for the class of a converter; the exporter sets this one.
    """

    def convert_notebooks(self) -> None:
        """Make all pages, and then say what is missing.

        Raises:
            NbGraderException: when some learner gets no page.
        """
        lab = self.coursedir.assignment_id
        with Gradebook(self.coursedir.db_url) as gradebook:
            self._entered = {one.student_id for one in gradebook.assignment_submissions(lab)}
            missing = missing_marks(gradebook.db, lab)
        self._without: list[str] = []
        super().convert_notebooks()
        made = {Path(folder).parent.name for folder in self.assignments}
        for waits, what in ((True, "not marked yet"), (False, "without a mark")):
            some = [one for one in missing if one.waits is waits and one.student in made]
            if some:
                learners = len({one.student for one in some})
                self.log.warning(
                    "%s: %d graded cells of %d learners are %s; their pages say so",
                    *(lab, len(some), learners, what),
                )
        if self._without:
            raise NbGraderException(f"no feedback for {', '.join(self._without)}")

    def init_destination(self, assignment_id: str, student_id: str) -> bool:
        """Return whether a learner gets a page."""
        if student_id in self._entered:
            return super().init_destination(assignment_id, student_id)
        self._without.append(shown_id(student_id))
        self.log.error(
            "%s is not in the gradebook with %s, so there is no feedback: grade it with "
            "`python -m grader grade %s`, or remove the folder in autograded/",
            *(shown_id(student_id), assignment_id, assignment_id),
        )
        return False


class GetGrades(nbgrader.GetGrades):
    """nbgrader's step, which knows a missing mark from a 0.

    The page's template shows what it adds: ``unmarked`` and ``title`` of a graded cell, and
    ``remarks`` on the whole: what is not marked, what was withheld, how late it came.
    """

    def preprocess(self, nb: NotebookNode, resources: Any) -> tuple[NotebookNode, Any]:
        """Put the marks into the notebook's metadata."""
        nb, resources = super().preprocess(nb, resources)
        where = resources["nbgrader"]
        name, lab, student = where["notebook"], where["assignment"], where["student"]
        with Gradebook(where["db_url"]) as gradebook:
            missing = missing_marks(gradebook.db, lab, student)
            late = seconds_late(gradebook.db, lab).get(student, 0.0)
        unmarked = {one.cell: one for one in missing if one.notebook == name}
        verdicts = read_verdicts(nb)
        withheld = sum(verdict.points - verdict.most for verdict in verdicts.values())
        titles = self._titles_of(lab, name)
        for cell in nb.cells:
            if is_grade(cell) or is_task(cell):
                ours = cell.metadata.nbgrader
                ours.title = titles.get(ours.grade_id) or ours.grade_id
                if ours.grade_id in unmarked:
                    ours.unmarked = unmarked[ours.grade_id].words
        waiting = sum(one.points for one in unmarked.values() if one.waits)
        failed = sum(one.points for one in unmarked.values() if not one.waits)
        cost = "" if where["late_penalty"] else ", at no cost"
        where["remarks"] = [
            sentence
            for holds, sentence in (
                (waiting, f"Not marked yet, so not final: {_points(waiting)}."),
                (
                    failed,
                    f"No mark: {_points(failed)}, because what was handed in could not be read or "
                    "graded.",
                ),
                (
                    withheld and not failed,
                    f"Withheld, not lost: {_points(withheld)}, because the grading machine could "
                    "not run a part.",
                ),
                (late, f"Handed in {duration(late)} late{cost}."),
            )
            if holds
        ]
        return nb, resources

    def _titles_of(self, lab: str, notebook: str) -> dict[str, str]:
        """Return the heading above each graded cell of the source; nbgrader works in the course."""
        known: dict[tuple[str, str], dict[str, str]] = self.__dict__.setdefault("_titles", {})
        if (lab, notebook) not in known:
            known[lab, notebook] = read_outline(Path(), lab, (notebook,)).titles
        return known[lab, notebook]


def _points(number: float) -> str:
    return f"{number:g} point{'' if number == 1 else 's'}"
