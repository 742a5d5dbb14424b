"""Record those actions of a learner that a notebook itself does not record.

The record says which cells of a lesson or a lab ran and at what time. The record also says which
drills were answered, and which worked solutions were shown. ``work/.progress`` has a file for each
notebook. Only the course reads these files, and only on this machine. A learner who deletes the
folder begins anew. Nothing is recorded in three cases: the course is being built or graded, there
is no folder `work/`, or the notebook does not belong to the course.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from IPython import get_ipython

from hood.audience import NBGRADER, building, text_only
from hood.learner.contents import ROOT, own_notebook
from hood.phase_paths import WORK

FOLDER = ".progress"
MOST = 1_000_000  # at most this many bytes of a file are read
MOST_KEPT = 2000  # entries of a kind; older entries are deleted
MOST_KEY = 200  # this many characters of a drill's question identify the drill


@dataclass
class Journal:
    """The record of one notebook."""

    cells: dict[str, float] = field(default_factory=dict)  # id: when the cell ran, in order of time
    drills: dict[str, bool] = field(default_factory=dict)  # question: was an answer ever right?
    right: dict[str, float] = field(default_factory=dict)  # exercise: when it first got all points
    # exercise: when its solution was shown, if the answer was not right before
    shown: dict[str, float] = field(default_factory=dict)

    @property
    def last(self) -> str:
        """The id of the cell that ran last, or ""."""
        return next(reversed(self.cells), "")

    @property
    def at(self) -> float:
        """When the last cell ran, in seconds since 1970, or 0."""
        return self.cells[self.last] if self.cells else 0.0


def read(name: str, root: Path = ROOT) -> Journal:
    """Return the record of the notebook with this name (without `.ipynb`).

    If the file is missing or damaged, the record is empty.
    """
    kinds: dict[str, Any] = {}
    with suppress(OSError, ValueError), _file(name, root).open("rb") as file:
        kinds = json.loads(file.read(MOST))
    journal = Journal()
    for kind, kept in vars(journal).items():
        entries = kinds.get(kind) if isinstance(kinds, dict) else None
        for key, value in entries.items() if isinstance(entries, dict) else ():
            if isinstance(value, (int, float)):
                kept[key] = value
    return journal


def name_of(notebook: Path) -> str:
    """Return a notebook's name in the record: the name of its copy, without `.ipynb`."""
    lesson = notebook.parent.name == "notebooks"
    return f"lesson_{notebook.stem}" if lesson else notebook.stem


def ran(cell: str) -> None:
    """Record that a cell of this kernel's notebook ran."""
    _note("cells", cell, time.time())


def drill(question: str, right: bool) -> None:
    """Record that a drill was answered, and whether any answer so far was right."""
    _note("drills", question[:MOST_KEY], right)


def right(exercise: str) -> None:
    """Record that an answer got all points of an exercise."""
    _note("right", exercise, time.time())


def shown(exercise: str) -> None:
    """Record that a worked solution was shown, if the exercise was not right before."""
    _note("shown", exercise, time.time())


def _note(kind: str, key: str, value: float) -> None:
    path = own_notebook()
    if path is None or building() or text_only() or os.environ.get(NBGRADER):
        return
    if not (ROOT / WORK).is_dir():
        return
    known = read(name_of(path), ROOT)
    kept = getattr(known, kind)
    if kind == "cells":
        kept.pop(key, None)  # so that this entry becomes the last one
    elif kind == "drills":
        value = kept.get(key, False) or value
    elif key in kept or (kind == "shown" and key in known.right):
        return
    kept[key] = value
    for old in list(kept)[:-MOST_KEPT]:
        del kept[old]
    with suppress(OSError):  # a full disk or a write-protected folder must not stop a cell
        file = _file(name_of(path), ROOT)
        file.parent.mkdir(exist_ok=True)
        fresh = file.with_suffix(f".{os.getpid()}")
        fresh.write_text(json.dumps(vars(known)), encoding="utf-8")
        fresh.replace(file)


def _file(name: str, root: Path) -> Path:
    return root / WORK / FOLDER / f"{name}.json"


def end(result: Any) -> None:
    """Record the cell that has run; IPython calls this after each cell."""
    if cell := getattr(getattr(result, "info", None), "cell_id", None):
        ran(str(cell))


def install() -> None:
    """Record the cells that this kernel runs, from the current cell on."""
    shell = get_ipython()
    if shell is not None and end not in shell.events.callbacks["post_run_cell"]:
        shell.events.register("post_run_cell", end)


install()
