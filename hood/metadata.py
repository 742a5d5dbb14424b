"""The keys under which this project writes into the metadata of a notebook and of its cells.

One key of a notebook contains four things: the lab's settings, from the header of the lab's text
(`authoring.text`); the facts of a grading run (:mod:`hood.grader.run_record`); the build's hashes
of cells and outputs; and the origin of a learner's copy (:mod:`hood.learner.copies`). In the output
of a verdict, the same key lists the cells that were judged.
"""

import hashlib
import time
from collections.abc import Iterable
from typing import Any

KEY = "open_the_hood"
# Hashes of the cells that a notebook had when it was built, separated by spaces.
CELLS = "cells"
# In an executed lesson: a hash of everything that its outputs depend on, and a hash of the outputs.
EXECUTED, OUTPUTS = "executed", "outputs"
# In an executed lesson and in a graded notebook: the versions of the packages when the notebook
# ran.
VERSIONS = "versions"
# In an instructor's notebook, for each exercise: a hash of the version that was judged last.
JUDGED = "judged"
COPY = "copy"  # the original of a learner's copy
# The MIME type of an output with a view's pictures. The view shows them without Python.
FRAMES_MIME = "application/vnd.open-the-hood.frames+json"
# A tag of a cell. nbconvert, nbclient and JupyterLab continue after an error in such a cell.
MAY_RAISE = "raises-exception"


def checksum(cell: Any) -> str:
    """Return the checksum of a cell with nbgrader's metadata, as nbgrader 0.9 computes it.

    A learner's copy must keep the checksum up to date, and learners don't install nbgrader.
    """
    marks = cell.metadata["nbgrader"]
    graded, answered = bool(marks.get("grade")), bool(marks.get("solution"))
    locked = not answered and (graded or bool(marks.get("locked")))
    parts = [cell.source, cell.cell_type, str(graded), str(answered), str(locked)]
    parts += [marks["grade_id"], *([str(float(marks["points"]))] if graded else [])]
    return hashlib.md5("".join(parts).encode()).hexdigest()


def mark(source: str) -> str:
    """Return a short hash of a cell's text. A verdict names its judged cells by these hashes."""
    return hashlib.sha256(source.strip().encode("utf-8", "replace")).hexdigest()[:12]


def stamp(sources: Iterable[str]) -> dict[str, Any]:
    """Return the metadata of a new verdict on cells with these texts.

    The key `at` has the time in seconds since 1970, and the key `ran` has a :func:`mark` for each
    cell.
    """
    return {KEY: {"at": round(time.time()), "ran": sorted(set(map(mark, sources)))}}
