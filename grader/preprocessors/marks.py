"""Takes a submission's old marks away before it is graded."""

from __future__ import annotations

from typing import Any

from nbformat.notebooknode import NotebookNode
from nbgrader.api import Gradebook, TaskCell
from nbgrader.preprocessors import NbGraderPreprocessor


class ClearMarks(NbGraderPreprocessor):
    """Forget automatic marks, so that none survives a run that does not get to its end.

    A cell without a mark counts 0 and is listed as one that needs a person. Marks given by hand
    stay, as everywhere in nbgrader, but a new submission's are listed to be looked at again.
    """

    def preprocess(self, nb: NotebookNode, resources: Any) -> tuple[NotebookNode, Any]:
        """Clear the gradebook's marks of this submission; the notebook is left as it is."""
        where = resources["nbgrader"]
        again = resources.get("open_the_hood", {}).get("again", False)
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
