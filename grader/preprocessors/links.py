"""Where a learner's links may lead: to an absolute http(s) address, or within the page.

A relative link leads to files that Jupyter serves from its own origin, with the rights of whoever
clicks. Pages make links out of HTML, out of markdown and out of formulas.
"""

from __future__ import annotations

import html
import re

# `https:page.html` and `///host` are relative to a page, whatever they look like.
ADDRESS = r"(?:https?://[\w\[]|\#)"
LINK = re.compile(ADDRESS, re.IGNORECASE)
PICTURE = r"data:image/(?:png|jpeg|gif);base64,|attachment:"
# Where any dialect of markdown begins the address of an inline link, or of a reference's.
BEGINS = re.compile(
    rf"\](?=\(\s*+<?+(?!{ADDRESS}|{PICTURE})|:\s*+<?+(?!{ADDRESS}|{PICTURE})\S)", re.IGNORECASE
)
# What in a formula makes links, loads, sets styles, or makes such commands.
COMMAND = re.compile(
    r"\\(?=(?:href|url|mmlToken|includegraphics|html[A-Za-z]+|style|class|cssId|bbox|require"
    r"|csname)(?![A-Za-z]))"
)
BROKEN = r"\\ "


def is_link(address: str) -> bool:
    """Whether a learner's link may lead there, as it stands in an attribute."""
    return LINK.match(address) is not None


def without_commands(text: str) -> str:
    """Text or HTML in whose formulas no command makes a link; it is there to be read."""
    text = COMMAND.sub(BROKEN, text)
    return verbatim(text) if has_commands(text) else text


def has_commands(page: str) -> bool:
    """Whether a formula in HTML has a command that makes a link."""
    return COMMAND.search(html.unescape(page)) is not None


def without_links(markdown: str) -> str:
    """Markdown in which no link but those that may be begins, however a page reads markdown.

    A space before the address is all that it takes, so what is code stays the same code.
    """
    return BEGINS.sub("] ", markdown)


def verbatim(text: str) -> str:
    """HTML that shows text as it was written, and is no markdown of any dialect's."""
    return f"<pre>{without_links(html.escape(COMMAND.sub(BROKEN, text)))}</pre>"
