"""A step of ``nbgrader generate_assignment``: a release links lessons on the course's site."""

from __future__ import annotations

from typing import Any

from nbformat.notebooknode import NotebookNode
from nbgrader.preprocessors import NbGraderPreprocessor

from grader.lesson_links import lesson_url, settle


class LessonLinks(NbGraderPreprocessor):
    """Give a release's links the site's address. Without the setting ``lesson_url`` they stay."""

    def preprocess(self, nb: NotebookNode, resources: Any) -> tuple[NotebookNode, Any]:
        """Change the text cells, in place."""
        if url := lesson_url():
            for cell in nb.cells:
                settle(cell, url)
        return nb, resources
