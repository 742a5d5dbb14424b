"""Tables and blocks of code in Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence


def table(head: Sequence[str], rows: Iterator[Sequence[str]]) -> str:
    """Return a table in Markdown; empty columns are left out."""
    every = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    kept = [place for place in range(len(head)) if any(row[place] for row in every)]
    lines = [[head[place] for place in kept], ["---"] * len(kept)]
    lines += [[row[place] for place in kept] for row in every]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def code(words: object) -> str:
    return f"`{words}`"


def fenced(language: str, content: str) -> str:
    return f"```{language}\n{content.strip()}\n```"
