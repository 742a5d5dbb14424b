"""Read pages of feedback as their readers do."""

import re
from html import unescape
from html.parser import HTMLParser


def words(page: str) -> str:
    """Return what a page says, as one line."""
    body = page[page.index("<main>") :]
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", body)).split())


class Elements(HTMLParser):
    """A page's elements: their tags, and the value of each attribute by its name."""

    def __init__(self, page: str):
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def values(self, name: str) -> list[str]:
        return [value for _, own, value in self.attributes if own == name]
