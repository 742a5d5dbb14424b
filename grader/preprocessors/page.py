"""The exporter of ``nbgrader generate_feedback``: nbconvert's page, in a third of its time."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from jinja2 import pass_context
from jinja2.runtime import Context
from nbconvert.exporters import HTMLExporter
from nbconvert.exporters.templateexporter import TemplateExporter
from nbconvert.filters.highlight import Highlight2HTML
from nbconvert.filters.widgetsdatatypefilter import WidgetsDataTypeFilter
from nbformat.notebooknode import NotebookNode

# Cells as they came with the lab are most of each page, and the same in a whole class: so many
# rendered cells are kept, where their text is not longer than this.
KEPT, LONGEST = 512, 20_000
# An image's tag up to the first `>`, which one of its attributes may hold. As long as something
# follows that closes a tag, as a page's own end does, no character is looked at twice.
IMAGE = re.compile(r"<img\b(?P<attributes>[^>]*)>", re.IGNORECASE)
HAS_TEXT = re.compile(r"\salt(?=[\s=/]|\Z)", re.IGNORECASE)
NO_TEXT = "No description has been provided for this image"


class FeedbackExporter(HTMLExporter):
    """nbconvert's HTMLExporter for the pages of a class.

    It parses no finished page. nbconvert does, with a parser in Python, for what assistive
    technology needs: a text for images that have none, which is put in here all the same, and a way
    to reach the cells of templates that are not feedback's. Nor does it render a cell again that it
    has just rendered for somebody else.
    """

    def __init__(self, config: Any = None, **kwargs: Any):
        super().__init__(config=config, **kwargs)
        self._highlighted = lru_cache(KEPT)(self._highlight)
        self._rendered = lru_cache(KEPT)(lambda text: HTMLExporter.markdown2html(self, {}, text))

    def from_notebook_node(  # type: ignore[override]  # text, as of all template exporters
        self, nb: NotebookNode, resources: dict[str, Any] | None = None, **kwargs: Any
    ) -> tuple[str, dict[str, Any]]:
        """The page of a notebook."""
        about = nb.metadata.get("language_info", {})
        language = about.get("pygments_lexer", about.get("name"))

        def highlight_code(source: str, metadata: Any = None) -> str:
            short = len(source) <= LONGEST
            return (self._highlighted if short else self._highlight)(source, language)

        resources = self._init_resources(resources)
        data_types = WidgetsDataTypeFilter(
            notebook_metadata=self._nb_metadata, parent=self, resources=resources
        )
        self.register_filter("highlight_code", highlight_code)
        self.register_filter("filter_data_type", data_types)
        page, resources = TemplateExporter.from_notebook_node(self, nb, resources, **kwargs)
        return IMAGE.sub(_described, page), resources

    @pass_context
    def markdown2html(self, context: Context, source: str) -> str:
        """HTML of a markdown cell."""
        if len(source) > LONGEST or context.get("cell", {}).get("attachments"):
            return super().markdown2html(context, source)
        return self._rendered(source)

    def _highlight(self, source: str, language: str | None) -> str:
        return Highlight2HTML(pygments_lexer=language, parent=self)(source)


def _described(image: re.Match[str]) -> str:
    if HAS_TEXT.search(image["attributes"]):
        return image[0]
    return f'<img alt="{NO_TEXT}"{image["attributes"]}>'
