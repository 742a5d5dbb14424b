"""Convert a text to a notebook and back. The same notebook always gives the same bytes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import nbformat
import nbformat.v4
from nbformat import NotebookNode

from grader.build.cells import cell_ids, from_node, to_node
from grader.build.problems import Problem
from grader.build.text import Text, TextCell
from grader.metadata import KEY, as_text

LANGUAGE = {
    "name": "python",
    "file_extension": ".py",
    "mimetype": "text/x-python",
    "pygments_lexer": "ipython3",
}


def to_notebook(text: Text) -> NotebookNode:
    """Return the notebook of a text, without outputs.

    Its metadata holds under `open_the_hood` the text's settings and, as `cells`, the fingerprints
    of the cells that it was built from. With them later edits of the notebook are detected.
    """
    nodes = [
        to_node(cell, cell_id)
        for cell, cell_id in zip(text.cells, cell_ids(text.cells), strict=True)
    ]
    metadata = {
        "kernelspec": dict(text.kernelspec),
        "language_info": dict(LANGUAGE),
        KEY: dict(text.course) | {"cells": fingerprints(text.cells)},
    }
    return nbformat.v4.new_notebook(cells=nodes, metadata=metadata)


def fingerprints(cells: Sequence[TextCell]) -> str:
    """Return the cells' fingerprints in order, separated by spaces."""
    return " ".join(cell.fingerprint for cell in cells)


def stamp(notebook: NotebookNode) -> dict[str, Any]:
    """Return the metadata that the build wrote; empty for a notebook that was not built."""
    return dict(notebook.metadata.get(KEY, {}))


def to_cells(path: str, notebook: NotebookNode) -> tuple[list[TextCell], list[Problem]]:
    """Return the notebook's cells as a text has them. Empty cells are dropped.

    A cell that a text cannot hold becomes a problem with its number (from 1).
    """
    cells, problems = [], []
    for number, node in enumerate(notebook.cells, start=1):
        if not node.source.strip() and "nbgrader" not in node.metadata:
            continue
        try:
            cells.append(from_node(node))
        except ValueError as error:
            problems.append(Problem(path, 0, f"cell {number}: {error}"))
    return cells, problems


def to_bytes(notebook: NotebookNode) -> bytes:
    """Return the notebook as sorted, indented JSON with a newline at the end."""
    return (nbformat.writes(notebook, version=4).rstrip("\n") + "\n").encode()


def read(path: Path) -> NotebookNode | None:
    """Return the notebook in a file; None when there is no file.

    What the build adds to a lesson's words for JupyterLab is taken out again.

    Raises:
        ValueError: when the file is not a notebook.
    """
    try:
        notebook = nbformat.reads(path.read_text(encoding="utf-8"), as_version=4)
        for cell in notebook.cells:
            if cell.cell_type == "markdown":
                cell.source = as_text(cell.source)
        return notebook
    except FileNotFoundError:
        return None
    except (ValueError, AttributeError, KeyError, TypeError, nbformat.ValidationError) as error:
        said = str(error).split("\n")[0]
        raise ValueError(f"{path.name} is not a notebook: {said}") from None
