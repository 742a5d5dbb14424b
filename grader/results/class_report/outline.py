"""Read a lab's source: its title, and the order and titles of its exercises."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

import nbformat
from nbgrader.utils import is_grade, is_task

from grader.metadata import KEY

HEADING = re.compile(r"^#{2,3}\s+(.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Outline:
    """A lab's title, and the heading above each graded cell by its name, in the lab's order."""

    title: str
    titles: dict[str, str] = field(default_factory=dict)


def read_outline(root: Path, lab: str, notebooks: tuple[str, ...]) -> Outline:
    """Return the outline of a lab. Without a source the title is its name, without headings."""
    title, titles = lab, {}
    for name in notebooks:
        path = root / "source" / lab / f"{name}.ipynb"
        if not path.exists():
            continue
        nb = nbformat.v4.reads(path.read_text(encoding="utf-8"))
        title = nb.metadata.get(KEY, {}).get("title", title)
        heading = ""
        for cell in nb.cells:
            if cell.cell_type == "markdown" and (found := HEADING.search(cell.source)):
                heading = found[1].strip()
            if is_grade(cell) or is_task(cell):
                grade_id = cell.metadata.nbgrader.grade_id
                titles[grade_id if len(notebooks) == 1 else f"{name}/{grade_id}"] = heading
    return Outline(title, titles)
