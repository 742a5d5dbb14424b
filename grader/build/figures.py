"""Find images without alternative text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser

EMPTY_IMAGE = re.compile(r"!\[\s*\]\s*[\(\[]")
CODE = re.compile(r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)|(`+)[^`].*?\1", re.DOTALL)
SPEAKING = ("aria-label", "aria-labelledby")


class _Images(HTMLParser):
    """Collects the line (from 1) and name of each image element without alternative text."""

    def __init__(self) -> None:
        super().__init__()
        self.silent: list[tuple[int, str]] = []
        self.open_svgs: list[tuple[int, bool]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: (value or "").strip() for name, value in attrs}
        hidden = given.get("aria-hidden") == "true" or given.get("role") == "presentation"
        if tag == "img" and not given.get("alt"):
            self.silent.append((self.getpos()[0], "<img>"))
        elif tag == "svg":
            speaks = hidden or any(given.get(name) for name in SPEAKING)
            # An svg inside another one is a part of the outer one's picture.
            self.open_svgs.append((self.getpos()[0], speaks or bool(self.open_svgs)))
        elif tag == "title" and self.open_svgs:
            self.open_svgs = [(line, True) for line, _ in self.open_svgs]

    def handle_endtag(self, tag: str) -> None:
        if tag == "svg" and self.open_svgs:
            line, speaks = self.open_svgs.pop()
            if not speaks:
                self.silent.append((line, "<svg>"))


def silent_images(markup: str) -> list[tuple[int, str]]:
    """Return (line from 1, element) of each image element without alternative text.

    These are each <img> without alt and each <svg> without label or title.
    """
    parser = _Images()
    parser.feed(markup)
    parser.close()
    return parser.silent


def silent_images_in_markdown(source: str) -> Iterator[tuple[int, str]]:
    """Yield the same for markdown, where ![](...) is an image, too, and code is ignored."""
    prose = CODE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), source)
    for match in EMPTY_IMAGE.finditer(prose):
        yield prose.count("\n", 0, match.start()) + 1, "![](...)"
    yield from silent_images(prose)
