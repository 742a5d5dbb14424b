"""What a learner did in a notebook and the notebook doesn't keep.

It is which cells of a lesson or a lab ran, and when, which drills were answered, and which worked
solutions were looked at. It lies in ``work/.progress``, a file for each notebook, and the course
alone reads it, on this machine. A learner who deletes the folder begins anew. Nothing is kept while
the course is built or graded, without a folder `work/`, or of notebooks that are not the course's.
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
MOST = 1_000_000  # bytes of a file that are read
MOST_KEPT = 2000  # entries of a kind; the oldest go
MOST_KEY = 200  # characters of a drill's question, by which it is known


@dataclass
class Journal:
    """What is known of one notebook."""

    cells: dict[str, float] = field(default_factory=dict)  # id: when it ran; the last one is last
    drills: dict[str, bool] = field(default_factory=dict)  # question: whether ever answered rightly
    right: dict[str, float] = field(default_factory=dict)  # exercise: when it first had all points
    shown: dict[str, float] = field(default_factory=dict)  # exercise: solution shown before that

    @property
    def last(self) -> str:
        """The id of the cell that ran last; empty if there is none."""
        return next(reversed(self.cells), "")

    @property
    def at(self) -> float:
        """When a cell ran last, in seconds since 1970; 0 if none did."""
        return self.cells[self.last] if self.cells else 0.0


def read(name: str, root: Path = ROOT) -> Journal:
    """Return what is known of a notebook, by its name without `.ipynb`.

    Nothing is known where the file is missing or damaged.
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
    """Return the name by which a notebook is known here: its copy's, without `.ipynb`."""
    lesson = notebook.parent.name == "notebooks"
    return f"lesson_{notebook.stem}" if lesson else notebook.stem


def ran(cell: str) -> None:
    """Remember that a cell of this kernel's notebook ran."""
    _note("cells", cell, time.time())


def drill(question: str, right: bool) -> None:
    """Remember that a drill was answered, and whether it was ever answered rightly."""
    _note("drills", question[:MOST_KEY], right)


def right(exercise: str) -> None:
    """Remember that an exercise had all of its points."""
    _note("right", exercise, time.time())


def shown(exercise: str) -> None:
    """Remember that a worked solution was shown; it counts where the exercise was not right yet."""
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
        kept.pop(key, None)  # so that it comes last
    elif kind == "drills":
        value = kept.get(key, False) or value
    elif key in kept or (kind == "shown" and key in known.right):
        return
    kept[key] = value
    for old in list(kept)[:-MOST_KEPT]:
        del kept[old]
    with suppress(OSError):  # a full disk or a closed folder is no reason to stop a cell
        file = _file(name_of(path), ROOT)
        file.parent.mkdir(exist_ok=True)
        fresh = file.with_suffix(f".{os.getpid()}")
        fresh.write_text(json.dumps(vars(known)), encoding="utf-8")
        fresh.replace(file)


def _file(name: str, root: Path) -> Path:
    return root / WORK / FOLDER / f"{name}.json"


def end(result: Any) -> None:
    """Remember the cell that has run; IPython calls this after each cell."""
    if cell := getattr(getattr(result, "info", None), "cell_id", None):
        ran(str(cell))


def install() -> None:
    """Remember the cells that this kernel runs, the present one among them."""
    shell = get_ipython()
    if shell is not None and end not in shell.events.callbacks["post_run_cell"]:
        shell.events.register("post_run_cell", end)


install()
