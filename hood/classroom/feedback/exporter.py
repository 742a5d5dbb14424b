"""The exporter of ``nbgrader generate_feedback``."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

from nbconvert.exporters import Exporter
from nbformat.notebooknode import NotebookNode
from nbgrader.converters import GenerateFeedback
from nbgrader.utils import is_grade, is_solution
from traitlets import default

from hood.classroom.feedback.grades import CarefulFeedback
from hood.classroom.feedback.page import ABOUT, About, render
from hood.classroom.gradebook.exercises import added_by
from hood.grader.execution.graded_cell import is_verified
from hood.grader.submission.bounds import SECONDS, TooMuchWork, alarmed
from hood.verdict import VERDICT_MIME


class FeedbackExporter(Exporter):
    """Writes a learner's page (:mod:`hood.classroom.feedback`) in place of nbconvert's page.

    If a page takes more than ``SECONDS`` of CPU time, or too much memory, it is made again with
    only the verdicts. Outside the main thread there is no limit.
    """

    def __init__(self, config: Any = None, **kwargs: Any):
        super().__init__(config=config, **kwargs)
        if type(self.parent) is GenerateFeedback:
            self.parent.__class__ = CarefulFeedback

    @default("file_extension")
    def _file_extension_default(self) -> str:
        return ".html"

    def from_notebook_node(  # type: ignore[override]  # text, as of all template exporters
        self, nb: NotebookNode, resources: dict[str, Any] | None = None, **kwargs: Any
    ) -> tuple[str, dict[str, Any]]:
        given = copy.deepcopy(resources)
        try:
            with alarmed(SECONDS):
                return self._page(nb, resources, kwargs)
        except TooMuchWork:
            self.log.warning("A page took too much work, so it shows only the verdicts.")
        return self._page(_verdicts_alone(nb), given, kwargs, verdicts_alone=True)

    def _page(
        self,
        nb: NotebookNode,
        resources: dict[str, Any] | None,
        kwargs: dict[str, Any],
        verdicts_alone: bool = False,
    ) -> tuple[str, dict[str, Any]]:
        nb, resources = super().from_notebook_node(nb, resources, **kwargs)
        about: About = resources.get("nbgrader", {}).get(ABOUT, About())
        return render(nb, replace(about, verdicts_alone=verdicts_alone)), resources


def _verdicts_alone(nb: NotebookNode) -> NotebookNode:
    """Return a copy of a notebook with only the lab's text and the verdicts."""
    nb = copy.deepcopy(nb)
    for cell in nb.cells:
        judged = is_grade(cell) and is_verified(cell)
        given = cell.cell_type == "markdown" and not is_solution(cell) and not added_by(cell)
        if not judged and not given:
            cell.source = ""
            cell.pop("attachments", None)
        if cell.cell_type == "code":
            cell.outputs = [o for o in cell.outputs if judged and VERDICT_MIME in o.get("data", {})]
    return nb
