"""Clear the old marks of a submission before it is graded again, and save the new ones."""

from __future__ import annotations

from typing import Any

from nbformat.notebooknode import NotebookNode
from nbgrader import preprocessors as nbgrader
from nbgrader.api import Gradebook, TaskCell

from grader.judging.graded_cell import is_verified, read_verdicts
from grader.metadata import KEY
from grader.results.marks import set_maxima
from grader.run_record import RunRecord
from grader.submission.notes import NoteKind


class OverwriteCells(nbgrader.OverwriteCells):
    """nbgrader's step, which leaves cells with a check as they were rebuilt.

    Their maximum in the gradebook is what could be earned, and may be less than their points.
    """

    def preprocess_cell(
        self, cell: NotebookNode, resources: Any, cell_index: int
    ) -> tuple[NotebookNode, Any]:
        """Overwrite one cell."""
        if is_verified(cell):
            return cell, resources
        return super().preprocess_cell(cell, resources, cell_index)


class ClearMarks(nbgrader.NbGraderPreprocessor):
    """Clear automatic marks, so that none survives if grading fails before its end.

    A cell without a mark counts 0 and is listed as needing a manual grade. Manual marks stay, as
    elsewhere in nbgrader; if the submission is new, they are listed for another look.
    """

    def preprocess(self, nb: NotebookNode, resources: Any) -> tuple[NotebookNode, Any]:
        """Clear this submission's marks in the gradebook; return the notebook unchanged."""
        where = resources["nbgrader"]
        again = resources.get(KEY, {}).get("again", False)
        with Gradebook(where["db_url"]) as gradebook:
            submitted = gradebook.find_submission_notebook(
                where["notebook"], where["assignment"], where["student"]
            )
            for grade in submitted.grades:
                grade.auto_score = None
                if not again or not isinstance(grade.cell, TaskCell):
                    grade.needs_manual_grade = True
            gradebook.db.commit()
        return nb, resources


class SaveAutoGrades(nbgrader.SaveAutoGrades):
    """nbgrader's step, which gives no mark for what could not be read.

    It also lets the lab's maximum be what could be earned.
    """

    def preprocess(self, nb: NotebookNode, resources: Any) -> tuple[NotebookNode, Any]:
        """Save the marks of one notebook; return it unchanged."""
        nb, resources = super().preprocess(nb, resources)
        where, lab = resources["nbgrader"], resources["nbgrader"]["assignment"]
        most = {
            (where["notebook"], name): verdict.most
            for name, verdict in read_verdicts(nb).items()
            if verdict.parts
        }
        with Gradebook(where["db_url"]) as gradebook:
            if any(note.kind is NoteKind.UNREADABLE for note in RunRecord.of(nb.metadata).notes):
                submitted = gradebook.find_submission_notebook(
                    where["notebook"], lab, where["student"]
                )
                for grade in submitted.grades:
                    grade.auto_score, grade.needs_manual_grade = None, True
            set_maxima(gradebook.db, lab, most, {where["student"]})
            gradebook.db.commit()
        return nb, resources
