"""Where this project keeps what it writes into a notebook's own metadata, and into a cell's.

Under one key stand a lab's settings, which the header of its text holds (:mod:`grader.build.text`),
the facts of a grading run (:mod:`grader.run_record`), what the build says of a notebook's cells and
outputs, and what a learner's copy was made from (:mod:`grader.work`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from nbformat import NotebookNode

KEY = "open_the_hood"
# Fingerprints of the cells that a notebook was built, or a lab released, with; separated by spaces.
CELLS = "cells"
# Of an executed lesson: hashes of what its outputs depend on, and of the outputs.
EXECUTED, OUTPUTS = "executed", "outputs"
COPY = "copy"  # what a learner's copy was made from
# A cell's tag that nbconvert, nbclient and JupyterLab know: after an error the next cells run, too.
MAY_RAISE = "raises-exception"

# What the build puts around the words that answer a prediction, and below a section's heading.
OPEN = '<details class="prediction"><summary>What happens, in words</summary>\n\n'
CLOSE = "\n\n</details>"
BUTTON = (
    '<button data-commandlinker-command="notebook:run-all-above" data-commandlinker-args="{}">'
    "Run all cells above</button>\n\n"
)


def as_text(markdown: str) -> str:
    """Return a cell's markdown as its text has it, without what the build adds for JupyterLab."""
    return without_button(unfolded(markdown))


def unfolded(markdown: str) -> str:
    """Return a cell's markdown without the fold around its first words."""
    if not markdown.startswith(OPEN):
        return markdown
    return markdown.removeprefix(OPEN).replace(CLOSE, "", 1)


def without_button(markdown: str) -> str:
    """Return a cell's markdown without the button below its heading."""
    return markdown.replace(BUTTON, "", 1).removesuffix(f"\n\n{BUTTON}".rstrip("\n"))


def fingerprint(kind: str, source: str, header: Mapping[str, Any]) -> str:
    """Return eight hex digits of a hash of a cell of a text; equal for equal cells."""
    content = json.dumps([kind, source, dict(header)], sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()[:8]


def fingerprint_of(cell: NotebookNode) -> str:
    """Return the fingerprint of a cell that is none of nbgrader's, as the text has the cell."""
    header = {"tags": list(cell.metadata.tags)} if cell.metadata.get("tags") else {}
    source = as_text(cell.source) if cell.cell_type == "markdown" else cell.source
    return fingerprint(cell.cell_type, source.rstrip("\n"), header)
