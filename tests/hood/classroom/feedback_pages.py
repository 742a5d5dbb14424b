"""Read the text of feedback pages."""

import re
from html import unescape


def words(page: str) -> str:
    """Return a page's text as one line."""
    body = page[page.index("<main>") :]
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", body)).split())
