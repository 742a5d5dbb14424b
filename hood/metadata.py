"""Where this project keeps what it writes into a notebook's own metadata, and into a cell's.

Under one key stand a lab's settings, which the header of its text holds (`authoring.text`), the
facts of a grading run (:mod:`hood.grader.run_record`), what the build says of a notebook's cells
and outputs, and what a learner's copy was made from (:mod:`hood.learner.copies`). In an output that
is a verdict, the same key says which cells it is of.
"""

import hashlib
import time
from collections.abc import Iterable
from typing import Any

KEY = "open_the_hood"
# Fingerprints of the cells that a notebook was built with, separated by spaces.
CELLS = "cells"
# Of an executed lesson: hashes of what its outputs depend on, and of the outputs.
EXECUTED, OUTPUTS = "executed", "outputs"
# Of an executed lesson and of a graded notebook: by package, the versions that it was run with.
VERSIONS = "versions"
# Of an instructor's notebook: by exercise, a hash of what its answers were last judged with.
JUDGED = "judged"
COPY = "copy"  # what a learner's copy was made from
# The type of an output with the pictures of a view that moves without Python.
FRAMES_MIME = "application/vnd.open-the-hood.frames+json"
# A cell's tag that nbconvert, nbclient and JupyterLab know: after an error the next cells run, too.
MAY_RAISE = "raises-exception"


def checksum(cell: Any) -> str:
    """Return nbgrader's checksum of a cell that has its metadata, as nbgrader 0.9 computes it.

    What a learner installs has no nbgrader, and a learner's copy keeps the checksum true.
    """
    marks = cell.metadata["nbgrader"]
    graded, answered = bool(marks.get("grade")), bool(marks.get("solution"))
    locked = not answered and (graded or bool(marks.get("locked")))
    parts = [cell.source, cell.cell_type, str(graded), str(answered), str(locked)]
    parts += [marks["grade_id"], *([str(float(marks["points"]))] if graded else [])]
    return hashlib.md5("".join(parts).encode()).hexdigest()


def mark(source: str) -> str:
    """Return what stands for a cell's text in a verdict's stamp."""
    return hashlib.sha256(source.strip().encode("utf-8", "replace")).hexdigest()[:12]


def stamp(sources: Iterable[str]) -> dict[str, Any]:
    """Return the metadata of a verdict that is given now, of cells with these texts.

    `at` is the time in seconds since 1970; `ran` has the marks of the cells.
    """
    return {KEY: {"at": round(time.time()), "ran": sorted(set(map(mark, sources)))}}
