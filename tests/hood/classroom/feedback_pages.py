"""Read pages of feedback as their readers do."""

import re
from html import unescape


def words(page: str) -> str:
    """Return what a page says, as one line."""
    body = page[page.index("<main>") :]
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", body)).split())
