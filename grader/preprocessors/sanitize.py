"""Makes what a learner wrote safe to show in someone else's browser."""

from __future__ import annotations

import re
from typing import Any

import bleach
from bleach.css_sanitizer import CSSSanitizer
from nbconvert.preprocessors.sanitize import SanitizeHTML
from nbformat.notebooknode import NotebookNode
from nbgrader.utils import is_solution
from traitlets import default

from grader.preprocessors.outputs import VERDICT_MIME

TEXT = {"a", "b", "br", "code", "del", "em", "i", "kbd", "small", "span", "strong", "sub", "sup"}
BLOCKS = {"blockquote", "dd", "details", "div", "dl", "dt", "figcaption", "figure", "hr", "img"}
BLOCKS |= {"h1", "h2", "h3", "h4", "h5", "h6", "li", "ol", "p", "pre", "summary", "ul"}
TABLES = {"caption", "table", "tbody", "td", "tfoot", "th", "thead", "tr"}
ATTRIBUTES = {"class", "style", "title", "colspan", "rowspan", "scope", "align", "start", "open"}
# The start of a tag, a comment or a declaration; `a < b` is none of them.
MARKUP = re.compile(r"<[a-zA-Z/!?]")
PICTURE = re.compile(r"data:image/(png|jpeg|gif);base64,[A-Za-z0-9+/=\s]*\Z")


class Sanitize(SanitizeHTML):
    """nbconvert's SanitizeHTML with the course's own list of what is harmless.

    Applied to every output and to text cells that a learner wrote. Pictures must be inside the
    page (``data:``), so that opening it tells nobody.
    """

    @default("enabled")
    def _enabled_default(self) -> bool:
        return True

    @default("safe_output_keys")
    def _safe_output_keys_default(self) -> set[str]:
        return {"text/plain", "text/latex", "image/png", "image/jpeg", VERDICT_MIME}

    def preprocess(self, nb: NotebookNode, resources: Any) -> tuple[NotebookNode, Any]:
        """Sanitize every cell, and drop saved widgets, which a page would bring to life."""
        nb.metadata.pop("widgets", None)
        return super().preprocess(nb, resources)

    def preprocess_cell(
        self, cell: NotebookNode, resources: Any, index: int
    ) -> tuple[NotebookNode, Any]:
        """Sanitize a cell; text that came with the lab is left as it is."""
        theirs = is_solution(cell) or cell.metadata.get("open_the_hood", {}).get("by") == "learner"
        if cell.cell_type == "code" or theirs:
            super().preprocess_cell(cell, resources, index)
        return cell, resources

    def sanitize_html_tags(self, html: Any) -> str:
        """Harmless markup only; text without any is returned as it is."""
        html = html if isinstance(html, str) else "".join(map(str, html))
        if not MARKUP.search(html):
            return html
        return bleach.clean(
            html,
            tags=TEXT | BLOCKS | TABLES,
            attributes=_allowed,
            protocols={"http", "https", "mailto", "data"},
            css_sanitizer=CSSSanitizer(),
            strip=True,
        )


def _allowed(tag: str, name: str, value: str) -> bool:
    if tag == "img":
        return name in ("alt", "width", "height") or (
            name == "src" and PICTURE.match(value) is not None
        )
    if tag == "a" and name == "href":
        return not value.lstrip().lower().startswith("data:")
    return name in ATTRIBUTES
