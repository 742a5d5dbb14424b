"""Make a learner's text and outputs safe to show in another person's browser."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Mapping
from typing import Any

import nh3
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from nbconvert.preprocessors.sanitize import SanitizeHTML
from nbformat.notebooknode import NotebookNode
from nbgrader.utils import is_solution
from traitlets import Bool, Set

from hood.grader.cleaning.links import (
    has_commands,
    is_link,
    verbatim,
    without_addresses,
    without_brackets,
    without_commands,
    without_links,
)
from hood.grader.cleaning.pixels import MAX_PIXELS, MAX_PIXELS_IN_ALL, TOO_LARGE, TOO_MANY, pixels
from hood.metadata import KEY
from hood.verdict import VERDICT_MIME

TAGS = {"a", "b", "br", "code", "del", "em", "i", "kbd", "small", "span", "strong", "sub", "sup"}
TAGS |= {"blockquote", "dd", "details", "div", "dl", "dt", "figcaption", "figure", "hr", "img"}
TAGS |= {"h1", "h2", "h3", "h4", "h5", "h6", "li", "ol", "p", "pre", "summary", "ul"}
TAGS |= {"caption", "table", "tbody", "td", "tfoot", "th", "thead", "tr"}
ATTRIBUTES = {"class", "style", "title", "colspan", "rowspan", "scope", "align", "start", "open"}
STYLES = {"background-color", "clear", "color", "direction", "display", "float", "font"}
STYLES |= {"font-family", "font-size", "font-style", "font-weight", "height", "letter-spacing"}
STYLES |= {"line-height", "overflow", "text-align", "text-decoration", "text-indent"}
STYLES |= {"vertical-align", "white-space", "width"}
# Some classes of the page make an element cover the page. So an output keeps only a table's class.
CLASSES = {"dataframe"}
# Classes that the page's renderer gives to headings, tasks and code. The class of a token of code
# has at most three characters.
RENDERED = re.compile(r"anchor-link|highlight|task-list-item|language-\S+|[a-z][a-z0-9]{0,2}")
# The renderer's HTML for `- [x]`. Any other `<input` is removed from a learner's text first.
BOX = re.compile(
    r'<input class="task-list-item-checkbox" type="checkbox" disabled(?P<done> checked)?/>'
)
# Allowed values of a style: words, numbers and colours, but nothing that loads a resource.
PLAIN = re.compile(r"(?:[\w\s.,%#!+-]|\b(?:rgb|hsl)a?\([\d\s.,%/]*\))*")
# The start of a tag, a comment or a declaration; the `<` of `a < b` is not such a start.
MARKUP = re.compile(r"<[a-zA-Z/!?]")
# All names of tags, and a `<` that does not begin a tag: `if a<b`, `List<int>`. In markdown such a
# `<` is text, but a cleaner of HTML reads it as a tag that may continue to the end of the text.
NAMES = "|".join(TAGS) + "|abbr|acronym|address|applet|area|article|aside|audio|base|basefont|bdi"
NAMES += "|bdo|bgsound|big|blink|body|button|canvas|center|cite|col|colgroup|command|data|datalist"
NAMES += "|dfn|dialog|dir|embed|fieldset|font|footer|form|frame|frameset|head|header|hgroup|html"
NAMES += "|iframe|input|ins|isindex|keygen|label|legend|link|listing|main|map|mark|marquee|math"
NAMES += "|menu|menuitem|meta|meter|nav|nobr|noembed|noframes|noscript|object|optgroup|option"
NAMES += "|output|param|picture|plaintext|portal|progress|q|rb|rp|rt|rtc|ruby|s|samp|script|search"
NAMES += "|section|select|slot|source|strike|style|svg|template|textarea|time|title|track|tt|u|var"
NAMES += "|video|wbr|xmp"
LOOSE = re.compile(rf"<(?=[a-z/])(?!/?(?:{NAMES})(?:\s[^<>]*|/?)>)", re.IGNORECASE)
PICTURE = re.compile(r"data:image/(png|jpeg|gif);base64,[A-Za-z0-9+/=\s]*\Z")
# a picture in markdown; pictures in HTML are counted when the HTML is cleaned
INSIDE = re.compile(r"(?<![\"'=])data:image/[a-z]++;base64,[A-Za-z0-9+/=]++")
PICTURE_KINDS = ("image/png", "image/jpeg")
BASE64 = re.compile(r"[A-Za-z0-9+/=\s]*")
# A word, and whether it is an attribute's name. The pattern is possessive, so it takes linear time.
WORD = re.compile(r"[^\s\"'<>/=]++(?P<given>\s*+=)?")
TAG = re.compile(r"<[a-zA-Z/][^\s/>]*")
# Tags that a browser reopens in each following block if they are not closed.
REOPENED = re.compile(
    r"<(?:a|b|big|code|em|font|i|nobr|s|small|strike|strong|tt|u)[\s/>]", re.IGNORECASE
)
# Limits for one text: tags, and pairs of a tag and a reopened tag (each pair takes time to parse).
MAX_TAGS = 10_000
MAX_REOPENED = 400_000
# Limits for a whole notebook: tags, characters of markdown (also for one text), and characters of
# pasted pictures, counted each time a picture is shown.
MAX_TAGS_IN_ALL = 60_000
# Parts of a text that are checked separately if the whole text can't be shown.
MAX_BLOCKS = 64
FENCE = re.compile(r"[\s>*+-]*(`{3,}|~{3,})")
MAX_MARKDOWN, MAX_MARKDOWN_IN_ALL = 20_000, 200_000
MAX_PICTURES_IN_ALL = 1 << 25
TOO_MUCH = "... this text has too much markup to show ..."
# Messages for a left-out output, or a left-out part of HTML.
NOT_SHOWN = "(This output is not shown: its kind is {}. Pages show text, PNG and JPEG.)"
PART_NOT_SHOWN = "(A part of this output is not shown: {}.)"
KIND = re.compile(r"[a-z]+/[\w.+-]{1,80}", re.ASCII)
SEEN = re.compile(r"<(audio|canvas|embed|iframe|object|script|svg|video)[\s/>]", re.IGNORECASE)
WITH_SOURCE = re.compile(r"<img\s(?:[^<>]{0,300}?\s)??src=", re.IGNORECASE)


class Sanitize(SanitizeHTML):
    """nbconvert's SanitizeHTML with the course's own list of harmless markup.

    This class cleans every output and a learner's text cells; for links see
    :mod:`hood.grader.cleaning.links`. Pictures must be part of the page (``data:``). Markup that
    would take long to clean or to render is shown verbatim or left out.
    """

    enabled = Bool(True).tag(config=True)
    safe_output_keys = Set(
        {"text/plain", "text/latex", "image/png", "image/jpeg", VERDICT_MIME}
    ).tag(config=True)

    def preprocess(self, nb: NotebookNode, resources: Any) -> tuple[NotebookNode, Any]:
        """Sanitize every cell, and remove saved widgets, which a page would run."""
        nb.metadata.pop("widgets", None)
        self._left = {
            "tags": MAX_TAGS_IN_ALL,
            "markdown": MAX_MARKDOWN_IN_ALL,
            "pictures": MAX_PICTURES_IN_ALL,
            "pixels": MAX_PIXELS_IN_ALL,
        }
        return super().preprocess(nb, resources)

    def preprocess_cell(
        self, cell: NotebookNode, resources: Any, index: int
    ) -> tuple[NotebookNode, Any]:
        """Sanitize a cell; the lab's own text cells are not changed."""
        theirs = is_solution(cell) or cell.metadata.get(KEY, {}).get("by") == "learner"
        if cell.cell_type != "code" and theirs:
            cell.source = _as_text(without_brackets(cell.source))
        if cell.cell_type == "code" or theirs:
            super().preprocess_cell(cell, resources, index)
        if cell.cell_type == "markdown" and theirs:
            cell.source = self._harmless(cell.source, cell.get("attachments", {}))
        return cell, resources

    def sanitize_code_outputs(self, outputs: list[NotebookNode]) -> list[NotebookNode]:
        for output in outputs:
            if words := output.get("data", {}).get("text/markdown"):
                output.data["text/markdown"] = _as_text(without_brackets(_joined(words)))
        for output in outputs:
            self._without_large_pictures(output.get("data", {}))
        before = [dict(output.get("data", {})) for output in outputs]
        outputs = super().sanitize_code_outputs(outputs)
        for output, had in zip(outputs, before, strict=True):
            kind = next((kind for kind in ("text/html", "text/markdown") if kind in had), "")
            if said := _left_out(had, output.get("data", {}), kind):
                words = _joined(output.data.get(kind or "text/plain", ""))
                output.data[kind or "text/plain"] = f"{words}\n\n{said}" if words else said
        for output in outputs:
            if output.output_type == "stream":
                output.text = without_addresses(_joined(output.text))
            elif output.output_type == "error":
                output.evalue = without_addresses(output.evalue)
                output.traceback = [without_addresses(line) for line in output.traceback]
            else:
                output.metadata = _sizes(output.metadata)
                if "text/plain" in output.data:
                    words = _joined(output.data["text/plain"])
                    output.data["text/plain"] = without_addresses(words)
                if "text/latex" in output.data:
                    output.data["text/latex"] = without_commands(_joined(output.data["text/latex"]))
                if "text/markdown" in output.data:
                    words = output.data["text/markdown"]
                    output.data["text/markdown"] = self._harmless(words, {})
        return outputs

    def sanitize_html_tags(self, text: Any) -> str:
        """Return HTML with harmless markup only, or ``TOO_MUCH`` above a limit."""
        text = without_commands(_joined(text))
        if not MARKUP.search(text):
            return text
        tags = len(TAG.findall(text))
        dear = tags > MAX_TAGS or tags * len(REOPENED.findall(text)) > MAX_REOPENED
        if dear or not self._spend("tags", tags):
            return TOO_MUCH
        return without_commands(_clean(text, self._kept))

    def _kept(self, tag: str, name: str, value: str) -> str | None:
        """Return the result of :func:`kept`, within the notebook's limit on pixels."""
        found = kept(tag, name, value)
        if found and (tag, name) == ("img", "src") and not self._spend("pixels", _pixels(value)):
            return None
        return found

    def _without_large_pictures(self, data: dict[str, Any]) -> None:
        """Put a message in place of each picture that would take too much memory in a browser.

        If the output also has another form, such as HTML, pages show that form and no message.
        """
        for kind in PICTURE_KINDS:
            if kind in data:
                count = pixels(_joined(data[kind]))
                if count <= MAX_PIXELS and self._spend("pixels", count):
                    continue
                del data[kind]
                said = TOO_LARGE if count > MAX_PIXELS else TOO_MANY
                words = _joined(data.get("text/plain", ""))
                data["text/plain"] = f"{words}\n\n{said}" if words else said

    def _harmless(self, markdown: str, attachments: Mapping[str, Any]) -> str:
        """Return the result of :func:`_shown`; above a limit, return the text verbatim."""
        pictures = [data for images in attachments.values() for data in images.values()]
        shown = markdown.count("![") * max(map(len, pictures), default=0)
        counts = [pixels(_joined(data)) for data in pictures]
        within = len(markdown) <= MAX_MARKDOWN and self._spend("markdown", len(markdown))
        within = within and max(counts, default=0) <= MAX_PIXELS
        counts += map(_pixels, INSIDE.findall(markdown))
        if within and self._spend("pictures", shown) and self._spend("pixels", sum(counts)):
            return _shown(markdown, attachments)
        return verbatim(markdown)

    def _spend(self, what: str, amount: int) -> bool:
        """Take an amount from one of the notebook's limits; return False if too little is left."""
        enough = amount <= self._left[what]
        self._left[what] -= amount if enough else 0
        return enough


def _as_text(markdown: str) -> str:
    """Return markdown with a zero-width space after each `<` that does not begin a tag of HTML."""
    return LOOSE.sub("<\u200b", markdown)


def _left_out(had: Mapping[str, Any], kept: Mapping[str, Any], markup: str) -> str:
    """Return a sentence about an output's visible parts that are left out; empty if there are none.

    ``markup`` is the MIME type that a page shows of this output; empty for plain text.
    """
    if markup:
        written, shown = _joined(had[markup]), _joined(kept[markup])
        gone = {tag.lower() for tag in SEEN.findall(written)}
        if len(WITH_SOURCE.findall(written)) > len(WITH_SOURCE.findall(shown)):
            gone.add("img")
        said = PART_NOT_SHOWN.format(", ".join(sorted(gone))) if gone else ""
        return f"<p>{said}</p>" if said and markup == "text/html" else said
    lost = [kind for kind in had if kind not in kept]
    if not lost or kept.keys() - {"text/plain"}:
        return ""
    return NOT_SHOWN.format(lost[0] if KIND.fullmatch(lost[0]) else "unknown")


def _joined(text: Any) -> str:
    return text if isinstance(text, str) else "".join(map(str, text))


def _shown(markdown: str, attachments: Mapping[str, Any]) -> str:
    """Return markdown that renders to harmless HTML; any HTML in ``markdown`` is already clean.

    Markdown makes links from more spellings than :func:`without_links` can list. So the page's own
    renderer makes HTML from the text. If this HTML is not harmless, the harmful paragraphs are
    shown verbatim. If the HTML is still not harmless, the whole text is shown verbatim.
    """
    shown = without_links(markdown, attachments)
    if _renders_clean(shown, attachments):
        return shown
    parts = (one if _renders_clean(one, attachments) else verbatim(one) for one in _blocks(shown))
    mostly, written = "\n\n".join(parts), verbatim(markdown)
    if _renders_clean(mostly, attachments):
        return mostly
    return written if _renders_clean(written, {}) else "(This text could not be shown.)"


def _blocks(markdown: str) -> list[str]:
    """Return a text's paragraphs, merged if there are many; fenced code is one paragraph."""
    blocks: list[list[str]] = [[]]
    fence = ""
    for line in markdown.split("\n"):
        if mark := FENCE.match(line):
            fence = "" if fence and mark[1].startswith(fence) else fence or mark[1]
        if line.strip() or fence:
            blocks[-1].append(line)
        elif blocks[-1]:
            blocks.append([])
    found = ["\n".join(lines) for lines in blocks]
    size = -(-len(found) // MAX_BLOCKS)
    return ["\n\n".join(found[at : at + size]) for at in range(0, len(found), size)]


def with_signs(page: str) -> str:
    """Return the renderer's HTML with a sign in place of each task's checkbox."""
    return BOX.sub(lambda box: "\u2611 " if box["done"] else "\u2610 ", page)


def _renders_clean(markdown: str, attachments: Mapping[str, Any]) -> bool:
    pictures = {
        name: {kind: "" if BASE64.fullmatch(data) else "<" for kind, data in images.items()}
        for name, images in attachments.items()
    }
    try:
        page = MarkdownWithMath(IPythonRenderer(escape=False, attachments=pictures))
        rendered = with_signs(page.render(markdown))
    except Exception:  # any error, for example for a missing attachment or deep nesting
        return False
    tags = TAG.findall(rendered)
    if len(tags) > MAX_TAGS or len(tags) * len(REOPENED.findall(rendered)) > MAX_REOPENED:
        return False
    if {tag.lstrip("</").lower() for tag in tags} - TAGS:
        return False
    # Rename the attributes, because nh3 drops any attribute with a refused URL before it calls the
    # filter.
    mark = f"x{secrets.token_hex(8)}-"
    renamed = WORD.sub(lambda word: mark * bool(word["given"]) + word[0], rendered)
    refused = []

    def note(tag: str, name: str, value: str) -> str:
        name, value = name.removeprefix(mark), value.replace(mark, "")
        fine = name == "id" or kept(tag, name, value) == value
        if name == "style":  # for a table's column the renderer writes `text-align:right`
            fine = _style(value).replace(" ", "") == value.replace(" ", "")
        if name == "class":
            fine = all(w in CLASSES or RENDERED.fullmatch(w) for w in value.split())
        if not fine:
            refused.append((tag, name))
        return value

    _clean(renamed, note)
    return not refused and not has_commands(rendered)


def _clean(text: str, kept: Callable[[str, str, str], str | None]) -> str:
    return nh3.clean(
        text,
        tags=TAGS,
        attributes={},
        generic_attribute_prefixes={""},  # so that the filter sees all attributes
        attribute_filter=kept,
        url_schemes={"http", "https", "data"},
        link_rel=None,
    )


def _sizes(metadata: Any) -> NotebookNode:
    kept = NotebookNode()
    for kind in PICTURE_KINDS:
        about = metadata.get(kind)
        if isinstance(about, dict):
            sizes = {k: about.get(k) for k in ("width", "height")}
            kept[kind] = {k: v for k, v in sizes.items() if type(v) is int and 0 < v < 10_000}
    return kept


def kept(tag: str, name: str, value: str) -> str | None:
    """Return the harmless part of an attribute's value; None to remove the attribute."""
    if tag == "img":
        picture = name == "src" and PICTURE.match(value) and _pixels(value) <= MAX_PIXELS
        allowed = picture or name in ("alt", "width", "height")
    else:
        allowed = is_link(value) if (tag, name) == ("a", "href") else name in ATTRIBUTES
    if not allowed:
        return None
    if name == "class":
        return " ".join(word for word in value.split() if word in CLASSES) or None
    return _style(value) if name == "style" else value


def _pixels(address: str) -> int:
    """Return the number of pixels of a picture in a ``data:`` address."""
    return pixels(address.partition(",")[2])


def _style(value: str) -> str:
    said = (declaration.partition(":") for declaration in value.split(";"))
    return "; ".join(
        f"{name.strip()}: {what.strip()}"
        for name, _, what in said
        if name.strip().lower() in STYLES and PLAIN.fullmatch(what)
    )
