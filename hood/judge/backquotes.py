"""Show the texts of checks and labs on a page, with `backquoted` words as code."""

from __future__ import annotations

from markupsafe import Markup, escape


def in_code(text: str) -> Markup:
    """Return a text as HTML with its `backquoted` words as code. The text is escaped."""
    pieces = str(escape(text)).split("`")
    if len(pieces) % 2 == 0:  # an odd number of backquotes: the last one is kept as text
        pieces[-2:] = ["`".join(pieces[-2:])]
    marked = [f"<code>{p}</code>" if k % 2 else p for k, p in enumerate(pieces)]
    return Markup("".join(marked))


def as_sentence(text: str) -> str:
    """Return the text with a capital first letter and a full stop."""
    text = text[:1].upper() + text[1:]
    return text if text.endswith((".", "?", "!", "…")) else f"{text}."
