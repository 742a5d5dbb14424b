"""Show formulas on pages as MathML, which a browser renders by itself.

nbconvert's pages load an external script for formulas. The script's server would learn who opens a
page and when, and could run any code on the page. So the pages of feedback and formgrader do not
load this script (:func:`without_script`).
"""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jinja2 import FileSystemLoader, pass_context
from jinja2.runtime import Context
from latex2mathml.converter import convert
from nbconvert.exporters import HTMLExporter
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath

TEMPLATES = str(Path(__file__).parent / "templates")
LONGEST = 2000  # characters of a formula; a longer formula takes too much time
# With a few commands that define commands, a short formula can become a formula of any length.
DEFINES = re.compile(r"\\(?:newcommand|renewcommand|DeclareMathOperator|def|let)(?![A-Za-z])")
# The allowed MathML. A learner may have written the formula, so there are no links, no styles, no
# other markup, and no lengths that would cover the page.
NAMES = (
    "math|mrow|mi|mo|mn|mtext|mspace|mfrac|msqrt|mroot|msub|msup|msubsup|munder|mover|munderover"
    "|mtable|mtr|mtd|mstyle|mpadded|mphantom|menclose|mmultiscripts|mprescripts|none"
)
ATTRIBUTES = (
    "display|displaystyle|scriptlevel|mathvariant|mathcolor|linethickness|notation|width"
    "|stretchy|fence|form|accent|accentunder|movablelimits|separator|largeop|symmetric|lspace"
    "|rspace|minsize|maxsize|rowspacing|columnspacing|columnalign|rowlines|columnlines"
)
LENGTH = r"\d?(?:\.\d{1,4})?(?:em|ex|px|pt|mu)?"
VALUE = rf"(?:#[0-9A-Fa-f]{{3,6}}|[a-z -]{{1,40}}|{LENGTH}(?: {LENGTH}){{0,20}})"
HEADING = re.compile(r"(</?h)[1-6](?=[\s>])", re.IGNORECASE)
NAMESPACE = re.escape(' xmlns="http://www.w3.org/1998/Math/MathML"')
HARMLESS = re.compile(
    rf'(?:[^<]|</?(?:{NAMES})(?:{NAMESPACE}|\s(?:{ATTRIBUTES})="{VALUE}")*+\s?/?>)*+'
)


def mathml(tex: str, display: str) -> str:
    """Return a formula as MathML, without the backslash that the converter keeps in `\\_`."""
    return str(convert(tex, display=display)).replace(r"\_", "_")


def harmless(tex: str, display: str) -> str:
    """Return a learner's formula as MathML if the MathML is harmless; else the TeX as text."""
    if len(tex) <= LONGEST and not DEFINES.search(tex):
        try:
            made = mathml(tex, display)
        except Exception:  # the converter may raise anything, such as an IndexError
            made = "<"
        if HARMLESS.fullmatch(made):
            return made
    sign = "$$" if display == "block" else "$"
    return html.escape(f"{sign}{tex}{sign}", quote=False)


class Renderer(IPythonRenderer):
    """nbconvert's renderer of markdown, with formulas as MathML."""

    def inline_math(self, body: str) -> str:
        return harmless(body, "inline")

    def block_math(self, body: str) -> str:
        return harmless(body, "block")

    def latex_environment(self, name: str, body: str) -> str:
        return harmless(f"\\begin{{{name}}}{body}\\end{{{name}}}", "block")


def without_script(exporter: HTMLExporter) -> None:
    """Make an exporter's pages show formulas as MathML and load no script for them."""
    exporter.extra_loaders = [FileSystemLoader(TEMPLATES)]
    exporter.register_filter("markdown2html", markdown2html)


@pass_context
def markdown2html(context: Context, source: str) -> str:
    """Return the HTML of a markdown cell; a filter for the templates of nbconvert."""
    return rendered(source, context.get("cell", {}).get("attachments", {}))


def rendered(markdown: str, attachments: Mapping[str, Any], anchors: bool = True) -> str:
    """Return the HTML of markdown; HTML in the text is not changed.

    `anchors`: whether headings have an id and a link to it.
    """
    renderer = Renderer(
        escape=False, attachments=dict(attachments), exclude_anchor_links=not anchors
    )
    return str(MarkdownWithMath(renderer).render(markdown))


def below_headings(markup: str) -> str:
    """Return HTML with all headings at level 3, for a page whose parts have headings of level 2.

    Otherwise a learner's headings would change the page's outline, which screen readers list.
    """
    return HEADING.sub(r"\g<1>3", markup)
