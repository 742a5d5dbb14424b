"""Clear the old marks of a submission before it is graded again."""

from __future__ import annotations

from typing import Any

from nbformat.notebooknode import NotebookNode
from nbgrader.api import Gradebook, TaskCell
from nbgrader.preprocessors import NbGraderPreprocessor

from grader.metadata import KEY


class ClearMarks(NbGraderPreprocessor):
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
