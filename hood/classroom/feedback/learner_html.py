"""Make HTML from a learner's text and outputs, without any effect on the rest of the page.

All of a learner's markup passes :func:`inert`, even if it was cleaned before. On a feedback page,
this markup has no links, no forms, no external pictures, and none of the page's own classes or ids.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

import nh3
from markupsafe import Markup
from nbconvert.filters.highlight import Highlight2HTML
from nbformat.notebooknode import NotebookNode

from hood.grader.cleaning import formulas
from hood.grader.cleaning.pixels import MAX_PIXELS, MAX_PIXELS_IN_ALL, pixels
from hood.grader.cleaning.sanitize import BASE64, PICTURE_KINDS, TAGS, kept, with_signs
from hood.grader.execution.graded_cell import plain
from hood.untrusted import seen

# Limits, in addition to the limits at grading: the characters of one text, the characters of all
# texts, the bytes of all pictures, and the number of outputs of one exercise.
LONGEST, IN_ALL, PICTURES, OUTPUTS = 10_000, 400_000, 16 << 20, 40
MARKUP = 1 << 20  # characters of one HTML output; a longer output is not shown
MATHS = set(formulas.NAMES.split("|"))
IMAGE = re.compile(r"<img(?![^>]*\salt=)", re.IGNORECASE)
NO_WORDS = "No description has been provided for this image"
LEFT_OUT = "(This is too long to show here; it is in your notebook.)"


def inert(markup: str) -> Markup:
    """Return a learner's HTML without scripts, forms, links, and anything that imitates the page.

    Invisible characters are removed, even if they are written as entities.
    """
    clean = nh3.clean(
        markup,
        tags=(TAGS - {"a"}) | MATHS,
        attributes={},
        generic_attribute_prefixes={""},  # so that the filter sees all attributes
        attribute_filter=_attribute,
        url_schemes={"data"},
        link_rel=None,
    )
    clean = formulas.below_headings(seen(clean))
    return Markup(IMAGE.sub(f'<img alt="{NO_WORDS}"', clean))


def _attribute(tag: str, name: str, value: str) -> str | None:
    if tag in MATHS:
        return value if re.fullmatch(f"(?:{formulas.ATTRIBUTES})", name) else None
    return None if name in ("class", "id", "href") else kept(tag, name, value)


class LearnerHtml:
    """Makes the HTML of one learner's cells, within the size limits of a page."""

    def __init__(self) -> None:
        self._left = {"text": IN_ALL, "pictures": PICTURES, "pixels": MAX_PIXELS_IN_ALL}

    def code(self, source: str) -> Markup:
        """Return code as HTML with syntax highlighting."""
        text, more = self._cut(seen(source))
        block = Highlight2HTML(pygments_lexer="ipython3")(text)
        inside = block.partition("<pre><span></span>")[2].rpartition("</pre>")[0]
        return Markup(inside) + more

    def words(self, markdown: str, attachments: Mapping[str, Any]) -> Markup:
        """Return the HTML of a text cell."""
        pictures = sum(
            len(data) for attachment in attachments.values() for data in attachment.values()
        )
        shown = markdown.count("![") * pictures
        if len(markdown) > LONGEST or not self._spend("text", len(markdown)):
            return self._text(markdown)
        counts = [
            pixels(_joined(data))
            for attachment in attachments.values()
            for data in attachment.values()
        ]
        large = max(counts, default=0) > MAX_PIXELS
        if large or not (self._spend("pictures", shown) and self._spend("pixels", sum(counts))):
            attachments = {}
        try:
            return inert(with_signs(formulas.rendered(markdown, attachments, anchors=False)))
        except Exception:  # the renderer may raise anything, for example for a missing attachment
            return self._text(markdown)

    def outputs(self, outputs: Iterable[NotebookNode]) -> list[Markup]:
        """Return the HTML of a cell's outputs, without empty outputs."""
        return list(filter(None, map(self._output, outputs)))

    def _output(self, output: NotebookNode) -> Markup:
        if output.output_type == "stream":
            return self._text(output.text)
        if output.output_type == "error":
            traceback = "\n".join(output.traceback)
            return self._text(traceback or f"{output.ename}: {output.evalue}")
        data = {kind: _joined(value) for kind, value in output.get("data", {}).items()}
        if "text/html" in data:
            return self._html(data["text/html"])
        for kind in ("text/markdown", "text/latex"):
            if kind in data:
                return self.words(data[kind], {})
        for kind in PICTURE_KINDS:
            if kind in data:
                words = data.get("text/plain", "")[:200]
                return self._picture(kind, data[kind], words)
        return self._text(data.get("text/plain", ""))

    def _html(self, markup: str) -> Markup:
        what = "pictures" if "<img" in markup else "text"
        if not self._spend(what, len(markup)) or (what == "text" and len(markup) > MARKUP):
            return Markup("<p>{}</p>").format(LEFT_OUT)
        return inert(markup)

    def _picture(self, kind: str, data: str, words: str) -> Markup:
        data = "".join(data.split())
        count = pixels(data)
        fits = count <= MAX_PIXELS and self._spend("pixels", count)
        if not (fits and BASE64.fullmatch(data) and self._spend("pictures", len(data))):
            return Markup("<p>{}</p>").format(LEFT_OUT)
        alt = seen(plain(words)) or NO_WORDS
        return Markup('<img alt="{}" src="data:{};base64,{}">').format(alt, kind, data)

    def _text(self, text: Any) -> Markup:
        shown, more = self._cut(seen(plain(_joined(text))))
        shown = shown.rstrip("\n") + more
        return Markup("<pre>{}</pre>").format(shown) if shown.strip() else Markup("")

    def _cut(self, text: str) -> tuple[str, str]:
        """Return the part of a text that is shown, and a note if the text was cut."""
        most = min(LONGEST, self._left["text"])
        self._left["text"] -= min(len(text), most)
        return text[:most], f"\n{LEFT_OUT}" if len(text) > most else ""

    def _spend(self, what: str, amount: int) -> bool:
        """Subtract ``amount`` from one of the page's limits; return False if too little is left."""
        enough = amount <= self._left[what]
        self._left[what] -= amount if enough else 0
        return enough


def teachers(markdown: str, attachments: Mapping[str, Any] = MappingProxyType({})) -> Markup:
    """Return the HTML of the lab's text, or of a remark on an answer, with all links."""
    try:
        shown = formulas.rendered(markdown, attachments, anchors=False)
        return Markup(formulas.below_headings(shown))
    except Exception:  # the renderer may raise anything
        return Markup("<pre>{}</pre>").format(markdown)


def _joined(text: Any) -> str:
    return text if isinstance(text, str) else "".join(map(str, text))
