"""Restrict a learner's links to public http(s) addresses and places within the page.

A relative link would lead to files that Jupyter serves from Jupyter's own origin. The browser would
open these files with the rights of the person who clicks. An absolute link to ``localhost`` would
open such files, too. A notebook and a page of feedback can make a link from HTML, markdown,
a formula or plain text, so all four are cleaned here.
"""

from __future__ import annotations

import html
import re
from collections.abc import Collection

# A public host name and a port. The name is ASCII with a dot. The last part of the name starts with
# a letter, so the name is not a numeric address in any notation. The bounds keep the search time
# linear.
LABEL = r"[a-z0-9-]{0,62}+"
# Last parts of names that are not public: names of the machine itself, names in the machine's own
# network, and reserved names.
PRIVATE = r"(?:local(?:host[46]?|domain[46]?)?|internal|lan|intranet|home|corp|test|arpa)"
HOST = rf"(?:[a-z0-9]{LABEL}\.){{1,20}}(?!{PRIVATE}\b)[a-z]{LABEL}\.?+(?::\d*+)?+"
# Browsers treat `https:page.html` and `///host` as relative, so the address must have `//`.
# Browsers skip tabs and line breaks, so in an attribute's value only a path may follow the host.
ADDRESS = rf"(?:https?://{HOST}(?=[/?\#\s]|\Z|\)[^\w\s/?\#<@\\]*+(?:[\s<]|\Z))|\#)"
LINK = re.compile(rf"https?://{HOST}(?=[/?\#]|\Z)|\#", re.IGNORECASE)
PICTURE = r"data:image/(?:png|jpeg|gif);base64,|attachment:"
# The end of a link's text before a forbidden address, for inline links and references, in any
# dialect of markdown.
BEGINS = re.compile(
    rf"\](?=\(\s*+<?+(?!{ADDRESS}|{PICTURE})|:\s*+<?+(?!{ADDRESS}|{PICTURE})\S)", re.IGNORECASE
)
# The start of a picture that is not pasted. Such a picture is not shown, because a page must load
# nothing from the network.
OUTSIDE = re.compile(rf"!(?=\[)(?!\[[^\[\]]*+\]\(\s*+<?+(?:{PICTURE}))", re.IGNORECASE)
# The start of a possible formula. JupyterLab puts formulas back into HTML unchanged. There, a quote
# in a formula can end an attribute, and the next word can begin another attribute.
FORMULA = re.compile(r"\$|\\[(\[]|\\begin|@@")
ATTRIBUTE = re.compile(r"[\"'][\s/]*+[a-z][\w-]*+(?=\s*+=)", re.IGNORECASE)
# The end of a link's text before the address of a picture that was pasted into the cell.
ATTACHED = re.compile(r"\](?=[(:]\s*+<?+attachment:([^\s<>()\"']*+))", re.IGNORECASE)
# An address in angle brackets, as in markdown; in HTML it would be an unknown tag.
BRACKETED = re.compile(
    r"<((?:[a-z][a-z0-9+.-]{1,31}+:|[\w.+-]{1,64}+@)[^\s<>]*+)>", re.IGNORECASE | re.ASCII
)
# Commands in a formula that make links, load something, set styles, or define such commands.
COMMAND = re.compile(
    r"\\(?=(?:href|url|mmlToken|includegraphics|html[A-Za-z]+|style|class|cssId|bbox|require"
    r"|csname)(?![A-Za-z]))"
)
BROKEN = r"\\ "
# In plain text, the start of an address that is not public. Programs that turn an address into a
# link read up to the next space, and browsers accept most characters in a host's name.
PUBLIC = rf"{HOST}(?:[/?\#]|[^\w\s/?\#\"<>@\\]*+(?:[\s\"<>]|\Z))"
PLAIN = re.compile(
    rf"(?<![a-z0-9+.-])(?!https?://{PUBLIC})[a-z0-9+.-]++:(?=//)|(?!www\.{PUBLIC})www(?=\.)",
    re.IGNORECASE,
)
# The same pattern for markdown. It skips the address of a link, which ends at the link's bracket.
BARE = re.compile(rf"(?<!\]\()(?:{PLAIN.pattern})", re.IGNORECASE)
# Text before a carriage return in a line, and backspaces.
OVERWRITTEN = re.compile(r"^[^\n]*\r(?=[^\n\r])|\x08", re.MULTILINE)
# Characters that JupyterLab removes from a text before it looks for addresses, in addition to
# cursor movements.
UNSEEN = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|[\x00-\x07\x0b\x0c\x0e-\x1f\x7f-\x9f]")


def is_link(address: str) -> bool:
    """Return whether a learner's link may have this address, given as an attribute's value.

    Names are not looked up, so a public name may still resolve to the reader's machine.
    """
    return LINK.match(address) is not None


def without_commands(text: str) -> str:
    """Return text or HTML with the commands of :data:`COMMAND` made inert.

    If such a command remains because it is spelled with an HTML entity, the whole text is shown
    verbatim.
    """
    text = COMMAND.sub(BROKEN, text)
    return verbatim(text) if has_commands(text) else text


def has_commands(page: str) -> bool:
    """Return whether a formula in HTML has a command of :data:`COMMAND`."""
    return COMMAND.search(html.unescape(page)) is not None


def without_addresses(text: str) -> str:
    """Return plain text in which JupyterLab makes no link to a forbidden address.

    JupyterLab looks for addresses after it has applied colours and cursor movements. So cursor
    movements are removed. If the text has a forbidden address, its colours are removed, too, and a
    zero-width space is put into the address.
    """
    text = OVERWRITTEN.sub("", text)
    seen = UNSEEN.sub("", text)
    return PLAIN.sub("\\g<0>\u200b", seen) if PLAIN.search(seen) else text


def without_links(markdown: str, attached: Collection[str] = ()) -> str:
    """Return markdown in which no dialect finds a forbidden link.

    A space before the address turns a link or picture into plain text. A zero-width space breaks a
    bare address. ``attached`` names the pictures that were pasted into the cell. A link to any
    other picture of the form ``attachment:`` becomes plain text, too.
    """
    text = BEGINS.sub("] ", OUTSIDE.sub("\\g<0> ", markdown))
    if FORMULA.search(text):
        text = ATTRIBUTE.sub("\\g<0>\u200b", text)
    text = ATTACHED.sub(lambda found: "]" if found[1] in attached else "] ", text)
    return BARE.sub("\\g<0>\u200b", text)


def without_brackets(markdown: str) -> str:
    """Return markdown in which addresses have no ``<`` and ``>``.

    A cleaner of HTML would treat such an address as a tag and drop it. Without the brackets, every
    dialect still turns the address into a link.
    """
    return BRACKETED.sub(r"\1", markdown)


def verbatim(text: str) -> str:
    """Return HTML that shows text verbatim and contains no markdown in any dialect."""
    return f"<pre>{without_links(html.escape(COMMAND.sub(BROKEN, text)))}</pre>"
