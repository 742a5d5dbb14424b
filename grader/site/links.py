"""The site's own links: each leads to a page and an anchor that exist, and no file is foreign."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

FOREIGN = re.compile(r"[a-z][a-z0-9+.-]*:|//")
STYLE_URL = re.compile(r"url\(\s*['\"]?([^'\")]+)")


@dataclass
class Found(HTMLParser):
    """What a page holds: anchors, links, and the files that a browser loads with it."""

    anchors: set[str] = field(default_factory=set)
    links: set[str] = field(default_factory=set)
    loads: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if given.get(name)}
        if tag == "a" and given.get("href"):
            self.links.add(given["href"])
        elif tag == "link" and given.get("rel") in ("stylesheet", "icon", "shortcut icon"):
            self.loads.add(given["href"])
        self.loads |= {given[name] for name in ("src", "data-src") if given.get(name)}


def faults(site: Path) -> Iterator[str]:
    """Yield what is wrong with the site's links, a line each.

    A link may lead to another site, but nothing that a browser loads by itself may come from one.
    """
    found: dict[str, Found] = {}
    for path in sorted(site.rglob("*.html")):
        page = found[path.relative_to(site).as_posix()] = Found()
        page.feed(path.read_text(encoding="utf-8"))
    for name, page in found.items():
        for address in sorted(page.loads):
            if FOREIGN.match(address) and not address.startswith("data:"):
                yield f"{name} loads {address} from another site"
            elif not (site / target(name, address)).is_file() and not FOREIGN.match(address):
                yield f"{name} loads {address}, which does not exist"
        for address in sorted(page.links):
            if FOREIGN.match(address):
                continue
            where, anchor = target(name, address), unquote(address.partition("#")[2])
            if not (site / where).is_file():
                yield f"{name} links to {address}, which does not exist"
            elif anchor and where in found and anchor not in found[where].anchors:
                yield f"{name} links to {address}, but {where} has no such anchor"
    for path in sorted(site.rglob("*.css")):
        for address in STYLE_URL.findall(path.read_text(encoding="utf-8")):
            if FOREIGN.match(address) and not address.startswith("data:"):
                yield f"{path.relative_to(site).as_posix()} loads {address} from another site"


def target(page: str, address: str) -> str:
    path = unquote(address.partition("#")[0].partition("?")[0])
    return posixpath.normpath(posixpath.join(posixpath.dirname(page), path)) if path else page
