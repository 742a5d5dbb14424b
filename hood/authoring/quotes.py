"""Find the prose that a stored answer may quote: the exercise's question, and the introduction."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hood.authoring.notebooks.text import Text

HINTS = re.compile(r"<details>.*?</details>", re.DOTALL)
CODE = re.compile(r"```.*?```|\$\$.*?\$\$", re.DOTALL)
BLOCKS = re.compile(r"\n\s*\n|\n(?=- )")
LABEL = re.compile(r"\*(Further|Warm-up|Easy|Medium|Hard)\b")


def questions(lab: Text) -> dict[str, str]:
    """Return each exercise's question without its hints, with one line for each paragraph."""
    found, question = {}, ""
    for cell in lab.cells:
        if cell.kind == "markdown":
            question = cell.source
        elif "solution" in cell.header:
            found[str(cell.header["solution"])] = "\n".join(_paragraphs(question))
    return found


def introduction(lab: Text) -> str:
    """Return a lab's introduction, its first cell, with one line for each paragraph."""
    return "\n".join(_paragraphs(lab.cells[0].source)) if lab.cells else ""


def _paragraphs(question: str) -> Iterator[str]:
    for block in BLOCKS.split(CODE.sub("", HINTS.sub("", question))):
        line = " ".join(block.split())
        if line and not line.startswith("#") and not LABEL.match(line):
            yield line
