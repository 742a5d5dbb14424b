"""Where this project keeps what it writes into a notebook's own metadata, and into a cell's.

Under one key stand a lab's settings, which the header of its text holds (`authoring.text`), the
facts of a grading run (:mod:`grader.run_record`), what the build says of a notebook's cells and
outputs, and what a learner's copy was made from (:mod:`grader.work`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from nbformat import NotebookNode

from grader.additions import as_text

KEY = "open_the_hood"
# Fingerprints of the cells that a notebook was built, or a lab released, with; separated by spaces.
CELLS = "cells"
# Of an executed lesson: hashes of what its outputs depend on, and of the outputs.
EXECUTED, OUTPUTS = "executed", "outputs"
COPY = "copy"  # what a learner's copy was made from
# A cell's tag that nbconvert, nbclient and JupyterLab know: after an error the next cells run, too.
MAY_RAISE = "raises-exception"


def fingerprint(kind: str, source: str, header: Mapping[str, Any]) -> str:
    """Return eight hex digits of a hash of a cell of a text; equal for equal cells."""
    content = json.dumps([kind, source, dict(header)], sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()[:8]


def fingerprint_of(cell: NotebookNode) -> str:
    """Return the fingerprint of a cell that is none of nbgrader's, as the text has the cell."""
    header = {"tags": list(cell.metadata.tags)} if cell.metadata.get("tags") else {}
    source = as_text(cell.source) if cell.cell_type == "markdown" else cell.source
    return fingerprint(cell.cell_type, source.rstrip("\n"), header)
