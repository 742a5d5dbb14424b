"""The exporter of ``nbgrader generate_feedback``."""

from __future__ import annotations

import copy
import re
from typing import Any

from nbconvert.exporters import HTMLExporter
from nbconvert.exporters.templateexporter import TemplateExporter
from nbconvert.filters.highlight import Highlight2HTML
from nbconvert.filters.widgetsdatatypefilter import WidgetsDataTypeFilter
from nbformat.notebooknode import NotebookNode
from nbgrader.converters import GenerateFeedback
from nbgrader.utils import is_grade

from grader.judging.graded_cell import is_verified
from grader.preprocessors import formulas
from grader.preprocessors.grades import MARK_FILTERS, CarefulFeedback, name_exercises
from grader.submission.bounds import SECONDS, TooMuchWork, alarmed
from grader.verdict import VERDICT_MIME

# An image's tag up to the first `>`, which may stand inside an attribute. Matching takes linear
# time, because a `>` always follows: the end of the page has one.
IMAGE = re.compile(r"<img\b(?P<attributes>[^>]*)>", re.IGNORECASE)
HAS_TEXT = re.compile(r"\salt(?=[\s=/]|\Z)", re.IGNORECASE)
NO_TEXT = "No description has been provided for this image"
# nbgrader's page has links and code on grey that are harder to read than WCAG's 4.5 : 1 allows.
CONTRAST = """<style>
a { color: #265a88 }
div.nbgrader_cell .panel-heading a { color: white; text-decoration: underline }
p.shown-by { color: #265a88; font-weight: bold; margin: 0; border-top: 1px solid #265a88 }
div.input_area, .highlight, .highlight pre { background: white }
</style>
"""
NOT_SHOWN = "(This page would take too much work to make, so this is not shown.)"


class FeedbackExporter(HTMLExporter):
    """nbconvert's HTMLExporter for the pages of a class, which load no script and are never parsed.

    A page that takes more CPU than ``SECONDS``, or too much memory, is made again with nothing but
    the reports on graded cells. In other threads than the main one there is no limit.
    """

    def __init__(self, config: Any = None, **kwargs: Any):
        super().__init__(config=config, **kwargs)
        formulas.without_script(self)
        if type(self.parent) is GenerateFeedback:
            self.parent.__class__ = CarefulFeedback
        for name, filtered in MARK_FILTERS.items():
            self.register_filter(name, filtered)

    def from_notebook_node(  # type: ignore[override]  # text, as of all template exporters
        self, nb: NotebookNode, resources: dict[str, Any] | None = None, **kwargs: Any
    ) -> tuple[str, dict[str, Any]]:
        given = copy.deepcopy(resources)
        try:
            with alarmed(SECONDS):
                return self._page(nb, resources, kwargs)
        except TooMuchWork:
            self.log.warning("A page took too much work; it has the reports on graded cells alone.")
        return self._page(_reports_alone(nb), given, kwargs)

    def _page(
        self, nb: NotebookNode, resources: dict[str, Any] | None, kwargs: dict[str, Any]
    ) -> tuple[str, dict[str, Any]]:
        about = nb.metadata.get("language_info", {})
        language = about.get("pygments_lexer", about.get("name"))
        resources = self._init_resources(resources)
        data_types = WidgetsDataTypeFilter(
            notebook_metadata=self._nb_metadata, parent=self, resources=resources
        )
        highlight = Highlight2HTML(pygments_lexer=language, parent=self)
        self.register_filter("highlight_code", highlight)
        self.register_filter("filter_data_type", data_types)
        page, resources = TemplateExporter.from_notebook_node(self, nb, resources, **kwargs)
        page = page.replace("</head>", f"{CONTRAST}</head>", 1)
        page = name_exercises(page, resources.get("nbgrader", {}))
        return IMAGE.sub(_described, page), resources


def _reports_alone(nb: NotebookNode) -> NotebookNode:
    """Return a copy that has the graded cells' reports, and nothing else of its learner's."""
    nb = copy.deepcopy(nb)
    for cell in nb.cells:
        reported = is_grade(cell) and is_verified(cell)
        if not reported:
            cell.source = NOT_SHOWN
            cell.pop("attachments", None)
        if cell.cell_type == "code":
            cell.outputs = [
                o for o in cell.outputs if reported and VERDICT_MIME in o.get("data", {})
            ]
    return nb


def _described(image: re.Match[str]) -> str:
    if HAS_TEXT.search(image["attributes"]):
        return image[0]
    return f'<img alt="{NO_TEXT}"{image["attributes"]}>'
