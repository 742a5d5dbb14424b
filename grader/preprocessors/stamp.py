"""A step of ``nbgrader generate_assignment``: a release says which cells it has."""

from __future__ import annotations

from typing import Any

from nbformat.notebooknode import NotebookNode
from nbgrader.preprocessors import NbGraderPreprocessor

from grader.metadata import CELLS, KEY, fingerprint_of


class Stamp(NbGraderPreprocessor):
    """Write the fingerprints of a release's cells into its metadata, when all of them are final.

    By them :mod:`grader.work` tells what a learner has written into it.
    """

    def preprocess(self, nb: NotebookNode, resources: Any) -> tuple[NotebookNode, Any]:
        """Change the notebook's metadata, in place."""
        cells = " ".join(map(fingerprint_of, nb.cells))
        nb.metadata[KEY] = nb.metadata.get(KEY, {}) | {CELLS: cells}
        return nb, resources
