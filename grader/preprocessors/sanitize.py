"""Makes what a learner wrote safe to show in someone else's browser."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import bleach
from bleach.css_sanitizer import CSSSanitizer
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from nbconvert.preprocessors.sanitize import SanitizeHTML
from nbformat.notebooknode import NotebookNode
from nbgrader.utils import is_solution
from traitlets import default

from grader.preprocessors.links import (
    PROPERTIES,
    has_commands,
    is_link,
    is_style,
    verbatim,
    without_commands,
    without_links,
)
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
    page (``data:``), so that opening it tells nobody; for links see
    :mod:`grader.preprocessors.links`.
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
        if cell.cell_type == "markdown" and theirs:
            cell.source = harmless(cell.source, cell.get("attachments", {}))
        return cell, resources

    def sanitize_code_outputs(self, outputs: list[NotebookNode]) -> list[NotebookNode]:
        """Harmless data and, of what is said about it, the sizes of pictures."""
        outputs = super().sanitize_code_outputs(outputs)
        for output in outputs:
            if output.output_type in ("display_data", "execute_result"):
                output.metadata = _sizes(output.metadata)
                if "text/latex" in output.data:
                    output.data["text/latex"] = without_commands(_joined(output.data["text/latex"]))
                if "text/markdown" in output.data:
                    output.data["text/markdown"] = harmless(output.data["text/markdown"])
        return outputs

    def sanitize_html_tags(self, text: Any) -> str:
        """Harmless markup only; text without any is returned as it is."""
        text = without_commands(_joined(text))
        if not MARKUP.search(text):
            return text
        cleaned = bleach.clean(
            text,
            tags=TEXT | BLOCKS | TABLES,
            attributes=_allowed,
            protocols={"http", "https", "data"},
            css_sanitizer=CSSSanitizer(allowed_css_properties=PROPERTIES),
            strip=True,
        )
        return without_commands(cleaned)


def _joined(text: Any) -> str:
    return text if isinstance(text, str) else "".join(map(str, text))


def harmless(markdown: str, attachments: Mapping[str, Any] | None = None) -> str:
    """Text whose HTML is clean already; as it was written where markdown makes more of it.

    Links and pictures come out of markdown, too, in more spellings than can be listed: so the
    page's own renderer is asked. What it takes for no link, another page's may take for one.

    Args:
        markdown: clean of HTML.
        attachments: the cell's pictures.
    """
    if _renders_clean(markdown, attachments):
        return without_links(markdown)
    written = verbatim(markdown)
    return written if _renders_clean(written) else "(This text could not be shown.)"


def _renders_clean(markdown: str, attachments: Mapping[str, Any] | None = None) -> bool:
    try:
        page = MarkdownWithMath(IPythonRenderer(escape=False, attachments=attachments or {}))
        rendered = page.render(markdown)
    except Exception:  # a missing attachment, too deep a nesting, whatever a renderer trips over
        return False
    refused = []

    def note(tag: str, name: str, value: str) -> bool:
        fine = name in ("id", "class") or _allowed(tag, name, value)
        if not fine:
            refused.append((tag, name))
        return fine

    bleach.clean(rendered, tags=TEXT | BLOCKS | TABLES, attributes=note, strip=True)
    return not refused and not has_commands(rendered)


def _sizes(metadata: Any) -> NotebookNode:
    """Width and height of pictures, where they are numbers: pages write them into tags."""
    kept = NotebookNode()
    for kind in ("image/png", "image/jpeg"):
        about = metadata.get(kind)
        if isinstance(about, dict):
            sizes = {k: about.get(k) for k in ("width", "height")}
            kept[kind] = {k: v for k, v in sizes.items() if type(v) is int and 0 < v < 10_000}
    return kept


def _allowed(tag: str, name: str, value: str) -> bool:
    if tag == "img":
        return name in ("alt", "width", "height") or (
            name == "src" and PICTURE.match(value) is not None
        )
    if tag == "a" and name == "href":
        return is_link(value)
    return name in ATTRIBUTES and (name != "style" or is_style(value))
