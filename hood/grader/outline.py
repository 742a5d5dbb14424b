"""Read a lab's title, and the titles and points of its exercises, from the lab's source.

Also read which exercises the text calls "further".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import nbformat
from nbgrader.utils import is_grade, is_task

from hood.lab_words import FURTHER
from hood.metadata import KEY

HEADING = re.compile(r"^#{2,3}\s+(.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Outline:
    """A lab's title, and dicts of its graded cells, in the lab's order.

    Attributes:
        titles: the heading above each graded cell.
        points: the points of each graded cell; empty if the lab has no source.
        further: the exercises that the text calls "further".
    """

    title: str
    titles: dict[str, str] = field(default_factory=dict)
    points: dict[str, float] = field(default_factory=dict)
    further: tuple[str, ...] = ()


class _Cell(NamedTuple):
    name: str
    title: str
    points: float
    further: bool


def source_of(root: Path, lab: str) -> list[Path]:
    """Return the notebooks of a lab's source; empty if there is no source."""
    return sorted((root / "source" / lab).glob("*.ipynb"))


def read_outline(root: Path, lab: str, notebooks: Sequence[str] | None = None) -> Outline:
    """Return the outline of a lab; if the lab has no source, the title is the lab's name.

    Args:
        notebooks: the names of the notebooks; by default all notebooks of the source.
    """
    names = [path.stem for path in source_of(root, lab)] if notebooks is None else notebooks
    outline = Outline(lab)
    for name in names:
        path = root / "source" / lab / f"{name}.ipynb"
        if not path.exists():
            continue
        about = path.stat()
        title, cells = _read(path, about.st_mtime_ns, about.st_size)
        if len(names) > 1:
            cells = [one._replace(name=f"{name}/{one.name}") for one in cells]
        outline = Outline(
            title or outline.title,
            outline.titles | {one.name: one.title for one in cells},
            outline.points | {one.name: one.points for one in cells},
            (*outline.further, *(one.name for one in cells if one.further)),
        )
    return outline


@lru_cache(maxsize=200)  # formgrader needs all labs of a class for each page
def _read(path: Path, changed: int, size: int) -> tuple[str, list[_Cell]]:
    """Return one notebook's title and cells; ``changed`` and ``size`` are keys of the cache."""
    nb = nbformat.v4.reads(path.read_text(encoding="utf-8"))
    found, heading, further = [], "", False
    for cell in nb.cells:
        if cell.cell_type == "markdown" and (above := HEADING.search(cell.source)):
            heading = above[1].strip()
        if cell.cell_type == "markdown" and cell.source.startswith("## "):
            further = FURTHER.search(cell.source) is not None
        if is_grade(cell) or is_task(cell):
            about = cell.metadata.nbgrader
            found.append(_Cell(about.grade_id, heading, float(about.get("points") or 0.0), further))
    return nb.metadata.get(KEY, {}).get("title", ""), found
