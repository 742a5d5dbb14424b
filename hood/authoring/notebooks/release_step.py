"""A step of ``nbgrader generate_assignment``: what a release has for those who solve it."""

from __future__ import annotations

from typing import Any

from nbformat.notebooknode import NotebookNode
from nbgrader.preprocessors import NbGraderPreprocessor

from hood.metadata import JUDGED, KEY, MAY_RAISE


class Release(NbGraderPreprocessor):
    """Finish a release, in which Run All goes on.

    An exercise's check and its graded cell may raise, since a stub does. What the instructor's
    answers were judged with is nothing to a learner: a release is another only where its text is.
    """

    def preprocess(self, nb: NotebookNode, resources: Any) -> tuple[NotebookNode, Any]:
        nb.metadata.get(KEY, {}).pop(JUDGED, None)
        for cell in nb.cells:
            nbgrader = cell.metadata.get("nbgrader")
            if cell.cell_type == "code" and (not nbgrader or nbgrader.get("grade")):
                cell.metadata["tags"] = sorted({*cell.metadata.get("tags", []), MAY_RAISE})
        return nb, resources
