"""Read submissions' marks for their feedback, and say which are missing."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jinja2.filters import FILTERS
from nbformat.notebooknode import NotebookNode
from nbgrader import preprocessors as nbgrader
from nbgrader.api import Gradebook
from nbgrader.converters import GenerateFeedback
from nbgrader.converters.base import NbGraderException
from nbgrader.utils import is_grade, is_task

from grader import UserError
from grader.backquotes import in_code
from grader.judging.graded_cell import read_verdicts
from grader.results.class_report.outline import read_outline
from grader.results.coursefile.marks import told
from grader.results.coursefile.reading import due_dates, read_course_file
from grader.results.marks import duration, missing_marks, seconds_late
from grader.submission.names import shown_id
from grader.verdict import in_points

# An entry of nbgrader's list of contents.
ENTRY = re.compile(
    r'<a href="#(?P<cell>[^"]+)">(?:Test cell|Coding free-response|Written response|Task)</a>'
)


class CarefulFeedback(GenerateFeedback):
    """nbgrader's GenerateFeedback, which says how many marks are missing.

    For a learner who is not in the gradebook there is a sentence, and the others go on. nbgrader
    has no setting for the class of a converter; the exporter sets this one.
    """

    def convert_notebooks(self) -> None:
        """Make all pages, say what is missing, and raise NbGraderException for who has no page."""
        lab = self.coursedir.assignment_id
        try:
            read_course_file(Path(self.coursedir.root))
        except UserError as error:
            raise NbGraderException(str(error)) from error
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
                cells = "1 graded cell" if len(some) == 1 else f"{len(some)} graded cells"
                whose = "1 learner" if learners == 1 else f"{learners} learners"
                are = "is" if len(some) == 1 else "are"
                self.log.warning(
                    "%s: %s of %s %s %s; the feedback says so", lab, cells, whose, are, what
                )
        if self._without:
            raise NbGraderException(f"no feedback for {', '.join(self._without)}")

    def init_destination(self, assignment_id: str, student_id: str) -> bool:
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

    Words stand in its place. What is added for :func:`name_exercises`: the ``exercises``, and
    ``remarks`` on the whole: what counts in this class, what is not marked, what was withheld, how
    late it came. What the class's rules let a learner see is there for ``CleanFeedback``.
    """

    def preprocess(self, nb: NotebookNode, resources: Any) -> tuple[NotebookNode, Any]:
        nb, resources = super().preprocess(nb, resources)
        where = resources["nbgrader"]
        name, lab, student = where["notebook"], where["assignment"], where["student"]
        with Gradebook(where["db_url"]) as gradebook:
            missing = missing_marks(gradebook.db, lab, student)
            late = seconds_late(gradebook.db, lab, due_dates(Path.cwd(), lab)).get(student, 0.0)
        unmarked = {one.cell: one for one in missing if one.notebook == name}
        verdicts = read_verdicts(nb)
        withheld = sum(verdict.points - verdict.most for verdict in verdicts.values())
        titles = read_outline(Path(), lab, (name,)).titles  # nbgrader works in the course's folder
        where["exercises"] = {}
        for cell in nb.cells:
            if is_grade(cell) or is_task(cell):
                cell_id = cell.metadata.nbgrader.grade_id
                anchor = f"comment-{cell_id}" if is_task(cell) else cell_id
                where["exercises"][cell_id] = anchor, titles.get(cell_id) or cell_id
                if cell_id in unmarked:
                    cell.metadata.nbgrader.score = unmarked[cell_id].words
        waiting = sum(one.points for one in unmarked.values() if one.waits)
        failed = sum(one.points for one in unmarked.values() if not one.waits)
        if failed:
            where["score"] = "no mark"
        cost = "" if where["late_penalty"] else ", at no cost"
        unread = "because what was handed in could not be read or graded"
        unable = "because the grading machine could not run a part"
        remarks = (
            (waiting, f"Not marked yet, so not final: {in_points(waiting)}."),
            (failed, f"No mark: {in_points(failed)}, {unread}."),
            (withheld and not failed, f"Withheld, not lost: {in_points(withheld)}, {unable}."),
            (late, f"Handed in {duration(late)} late{cost}."),
        )
        rules = told(Path.cwd(), lab, student, datetime.now(UTC))
        where["shows"] = rules.shows
        # what the rules say of lateness and of missing marks is said once
        own = [] if rules.sentences else [sentence for holds, sentence in remarks if holds]
        where["remarks"] = [*rules.sentences, *own]
        return nb, resources


def name_exercises(page: str, about: dict[str, Any]) -> str:
    """Return nbgrader's page with the exercises' names in its list of contents, and the remarks."""
    if "exercises" not in about:  # not after `GetGrades`
        return page
    contents, end, rest = page.partition("</ol>")  # above which nothing is a learner's
    contents = ENTRY.sub(
        lambda m: '<a href="#{}">{}</a>'.format(*map(in_code, about["exercises"][m["cell"]])),
        contents,
    )
    remarks = "".join(f"<p>{in_code(remark)}</p>" for remark in about["remarks"])
    return contents.replace("</h4>", f"</h4>{remarks}", 1) + end + rest


def _unless_words(kind: str) -> Callable[..., Any]:
    """Return jinja's filter, which leaves words that stand in place of a mark."""
    return lambda mark, *given: mark if isinstance(mark, str) else FILTERS[kind](mark, *given)


MARK_FILTERS = {kind: _unless_words(kind) for kind in ("float", "round")}
