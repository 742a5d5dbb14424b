"""Find what a browser would run or load in a page."""

from __future__ import annotations

import re
from html.parser import HTMLParser

LINK = re.compile(r"https?://(?!localhost|[\w@]*(127|0x))\w|#")
# Commands in formulas that link, load, or cover the page; MathJax reads formulas outside of code.
FORMULA = re.compile(r"\\(href|url|mmlToken|includegraphics|html\w+|style|cssId|class|bbox)\b")
# Classes of Bootstrap, the page's own style sheet, that put something over the page.
COVERS = re.compile(r"modal|navbar-(fixed|static)|carousel|affix|popover|tooltip|dropdown|sr-only")
QUIET = {"pre", "code", "script", "style", "textarea"}


class _Dangers(HTMLParser):
    """Collect what can run code, navigate, cover the page, or send a request."""

    TAGS = {"script", "iframe", "frame", "object", "embed", "form", "base", "meta", "link"}
    TAGS |= {"svg", "style", "annotation-xml", "maction", "mglyph", "semantics"}
    LOADS = {"src", "srcset", "poster", "background", "data", "action", "formaction", "xlink:href"}

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[str] = []
        self._quiet: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in QUIET:
            self._quiet.append(tag)
        if tag in self.TAGS:
            self.found.append(f"<{tag}>")
        for name, value in attrs:
            plain = re.sub(r"[\x00-\x20]", "", value or "").lower()
            if name.startswith("on"):
                self.found.append(f"{tag} {name}")
            elif name in self.LOADS and not plain.startswith("data:image/"):
                self.found.append(f"{tag} {name} loads {plain[:40]}")
            elif name in ("href", "ping", "cite") and not LINK.match(plain):
                self.found.append(f"{tag} {name} is {plain[:40]}")
            elif name == "class" and COVERS.search(plain):
                self.found.append(f"{tag} class {plain[:40]}")
            elif name == "style" and re.search(r"url\(|expression|position", plain):
                self.found.append(f"{tag} style {plain[:40]}")

    def handle_endtag(self, tag: str) -> None:
        if tag in self._quiet:
            del self._quiet[self._quiet.index(tag) :]

    def handle_data(self, data: str) -> None:
        if not self._quiet:
            self.found += [f"formula {found[0]}" for found in FORMULA.finditer(data)]


def dangers(page: str) -> list[str]:
    """Return what a browser would run or load in a page, in order."""
    parser = _Dangers()
    parser.feed(page)
    parser.close()
    return parser.found


def leads_away(page: str) -> list[str]:
    """Return the addresses outside of the page that a link on it leads to."""
    links = re.findall(r"<a\b[^>]*?\shref=[\"']?([^\"'\s>]*)", page)
    return [address for address in links if not address.startswith("#")]
