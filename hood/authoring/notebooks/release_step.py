"""A step of ``nbgrader generate_assignment``: finish a release for learners."""

from __future__ import annotations

from typing import Any

from nbformat.notebooknode import NotebookNode
from nbgrader.preprocessors import NbGraderPreprocessor

from hood.metadata import JUDGED, KEY, MAY_RAISE


class Release(NbGraderPreprocessor):
    """Finish a release.

    If a check or a graded cell raises an error, for example because of a stub, Run All should go
    on. So these cells get a tag. The digests of judged answers are removed, so that a release
    changes only if the lab's text changes.
    """

    def preprocess(self, nb: NotebookNode, resources: Any) -> tuple[NotebookNode, Any]:
        nb.metadata.get(KEY, {}).pop(JUDGED, None)
        for cell in nb.cells:
            nbgrader = cell.metadata.get("nbgrader")
            if cell.cell_type == "code" and (not nbgrader or nbgrader.get("grade")):
                cell.metadata["tags"] = sorted({*cell.metadata.get("tags", []), MAY_RAISE})
        return nb, resources
