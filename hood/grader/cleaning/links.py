"""Restrict a learner's links to http(s) addresses in the public net and places within the page.

A relative link would lead to files that Jupyter serves from its own origin, with the rights of the
person who clicks it, and so would an absolute one to ``localhost``. Pages make links from HTML,
from markdown and from formulas.
"""

from __future__ import annotations

import html
import re
from collections.abc import Collection

# A name in the public net and a port. The name is ASCII with a dot, and its last part starts with
# a letter, so it is no address in numbers, however they are written. The bounds keep the time to
# look for one linear.
LABEL = r"[a-z0-9-]{0,62}+"
# Last parts that no public name has: of the machine itself, of its own net, and reserved ones.
PRIVATE = r"(?:local(?:host[46]?|domain[46]?)?|internal|lan|intranet|home|corp|test|arpa)"
HOST = rf"(?:[a-z0-9]{LABEL}\.){{1,20}}(?!{PRIVATE}\b)[a-z]{LABEL}\.?+(?::\d*+)?+"
# Browsers treat `https:page.html` and `///host` as relative, so the address must have `//`. They
# skip tabs and line breaks, so in an attribute's value nothing but a path may follow the host.
ADDRESS = rf"(?:https?://{HOST}(?=[/?\#\s]|\Z|\)[^\w\s/?\#<@\\]*+(?:[\s<]|\Z))|\#)"
LINK = re.compile(rf"https?://{HOST}(?=[/?\#]|\Z)|\#", re.IGNORECASE)
PICTURE = r"data:image/(?:png|jpeg|gif);base64,|attachment:"
# The end of a link's text before an address that is not allowed, for inline links and references,
# in any dialect of markdown.
BEGINS = re.compile(
    rf"\](?=\(\s*+<?+(?!{ADDRESS}|{PICTURE})|:\s*+<?+(?!{ADDRESS}|{PICTURE})\S)", re.IGNORECASE
)
# The start of a picture that is not pasted: a page must load nothing from the net.
OUTSIDE = re.compile(rf"!(?=\[)(?!\[[^\[\]]*+\]\(\s*+<?+(?:{PICTURE}))", re.IGNORECASE)
# What may begin a formula. JupyterLab puts formulas back into HTML as they were written, where a
# quote in one can end an attribute and the next word begin another.
FORMULA = re.compile(r"\$|\\[(\[]|\\begin|@@")
ATTRIBUTE = re.compile(r"[\"'][\s/]*+[a-z][\w-]*+(?=\s*+=)", re.IGNORECASE)
# The end of a link's text before the address of a picture that was pasted into the cell.
ATTACHED = re.compile(r"\](?=[(:]\s*+<?+attachment:([^\s<>()\"']*+))", re.IGNORECASE)
# An address in angle brackets, as markdown writes one; in HTML it is a tag of no known name.
BRACKETED = re.compile(
    r"<((?:[a-z][a-z0-9+.-]{1,31}+:|[\w.+-]{1,64}+@)[^\s<>]*+)>", re.IGNORECASE | re.ASCII
)
# Commands in a formula that make links, load something, set styles, or define such commands.
COMMAND = re.compile(
    r"\\(?=(?:href|url|mmlToken|includegraphics|html[A-Za-z]+|style|class|cssId|bbox|require"
    r"|csname)(?![A-Za-z]))"
)
BROKEN = r"\\ "
# The start of an address in plain text that is not one in the public net. Programs that link it
# go on to the next space, and a browser takes most signs for a part of the name.
PUBLIC = rf"{HOST}(?:[/?\#]|[^\w\s/?\#\"<>@\\]*+(?:[\s\"<>]|\Z))"
PLAIN = re.compile(
    rf"(?<![a-z0-9+.-])(?!https?://{PUBLIC})[a-z0-9+.-]++:(?=//)|(?!www\.{PUBLIC})www(?=\.)",
    re.IGNORECASE,
)
# The same in markdown, except for the address of a link, which ends at its bracket.
BARE = re.compile(rf"(?<!\]\()(?:{PLAIN.pattern})", re.IGNORECASE)
# What stands before a carriage return in a line, and backspaces.
OVERWRITTEN = re.compile(r"^[^\n]*\r(?=[^\n\r])|\x08", re.MULTILINE)
# What JupyterLab takes out of a text before it looks for addresses, besides what moves a cursor.
UNSEEN = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|[\x00-\x07\x0b\x0c\x0e-\x1f\x7f-\x9f]")


def is_link(address: str) -> bool:
    """Return whether a learner's link may have this address, given as an attribute's value.

    A public name may still lead to the reader's machine; nothing looks names up.
    """
    return LINK.match(address) is not None


def without_commands(text: str) -> str:
    """Return text or HTML with the commands of :data:`COMMAND` made inert.

    If an entity still spells such a command, the whole text is shown as it was written.
    """
    text = COMMAND.sub(BROKEN, text)
    return verbatim(text) if has_commands(text) else text


def has_commands(page: str) -> bool:
    """Return whether a formula in HTML has one of the commands of :data:`COMMAND`."""
    return COMMAND.search(html.unescape(page)) is not None


def without_addresses(text: str) -> str:
    """Return plain text in which JupyterLab makes no link to an address that is not allowed.

    It makes links of what looks like an address once the colours are gone and the cursor has moved.
    So nothing moves it any more, and a text with an address that is not allowed loses its colours;
    a space of no width breaks it.
    """
    text = OVERWRITTEN.sub("", text)
    seen = UNSEEN.sub("", text)
    return PLAIN.sub("\\g<0>\u200b", seen) if PLAIN.search(seen) else text


def without_links(markdown: str, attached: Collection[str] = ()) -> str:
    """Return markdown in which no dialect finds a link that is not allowed.

    A space before its address makes words of a link or picture, and a space of no width of an
    address alone. ``attached`` names the cell's own pictures; any other ``attachment:`` leads
    nowhere.
    """
    text = BEGINS.sub("] ", OUTSIDE.sub("\\g<0> ", markdown))
    if FORMULA.search(text):
        text = ATTRIBUTE.sub("\\g<0>\u200b", text)
    text = ATTACHED.sub(lambda found: "]" if found[1] in attached else "] ", text)
    return BARE.sub("\\g<0>\u200b", text)


def without_brackets(markdown: str) -> str:
    """Return markdown in which an address stands without its ``<`` and ``>``.

    Whoever cleans HTML would drop it as a tag. Every dialect links a bare address of the web, too.
    """
    return BRACKETED.sub(r"\1", markdown)


def verbatim(text: str) -> str:
    """Return HTML that shows text as it was written and contains no markdown in any dialect."""
    return f"<pre>{without_links(html.escape(COMMAND.sub(BROKEN, text)))}</pre>"
