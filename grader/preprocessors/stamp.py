"""A step of ``nbgrader generate_assignment``: what a release says for those who solve it."""

from __future__ import annotations

from typing import Any

from nbformat.notebooknode import NotebookNode
from nbgrader.preprocessors import NbGraderPreprocessor

from grader.metadata import CELLS, KEY, MAY_RAISE, fingerprint_of


class Stamp(NbGraderPreprocessor):
    """Finish a release: Run All goes on where nothing is solved yet, and the cells are known again.

    An exercise's check and its graded cell may raise, since a stub does. Of all cells the
    fingerprints are written into the metadata, when all of them are final: by them
    :mod:`grader.work` tells what a learner has written into the release.
    """

    def preprocess(self, nb: NotebookNode, resources: Any) -> tuple[NotebookNode, Any]:
        """Change the metadata of the notebook and its cells, in place."""
        for cell in nb.cells:
            nbgrader = cell.metadata.get("nbgrader")
            if cell.cell_type == "code" and (not nbgrader or nbgrader.get("grade")):
                cell.metadata["tags"] = sorted({*cell.metadata.get("tags", []), MAY_RAISE})
        cells = " ".join(map(fingerprint_of, nb.cells))
        nb.metadata[KEY] = nb.metadata.get(KEY, {}) | {CELLS: cells}
        return nb, resources
