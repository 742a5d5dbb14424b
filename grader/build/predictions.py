"""Predictions: a lesson asks for one in a markdown cell, and the next output answers."""

from __future__ import annotations

import re
from collections.abc import Iterable

import nbformat.v4
from nbformat import NotebookNode

from grader.build.cells import HIDE_INPUT

# At the start of a sentence: "where a paragraph begins with **Predict**" asks nothing.
ASKS = re.compile(r"(?:^|[.:!?)][*_]*\s+)\*\*Predict", re.MULTILINE)


def asks(paragraph: str) -> bool:
    """Return whether a paragraph of markdown asks the reader for a prediction."""
    return ASKS.search(paragraph) is not None


def without_blank(outputs: Iterable[NotebookNode]) -> list[NotebookNode]:
    """Return a cell's outputs without the one that :func:`fold_answers` puts before an answer."""
    return [output for output in outputs if output.get("data") != {}]


def fold_answers(notebook: NotebookNode) -> None:
    """Fold the outputs that answer a prediction, up to the next markdown cell or drill.

    JupyterLab shows three dots in their place, and beside them the first line of the first output.
    Therefore that one has no data, which JupyterLab leaves out when it unfolds the outputs: when
    the reader runs the cell or clicks the dots. JupyterLab itself writes both keys of the metadata.
    """
    asked = answered = False
    for node in notebook.cells:
        if node.cell_type == "markdown":
            for paragraph in node.source.split("\n\n"):
                # what is said between question and answer does not answer
                going_on = asked and not answered and not paragraph.startswith("#")
                asked, answered = going_on or asks(paragraph), False
        elif HIDE_INPUT in node.metadata.get("tags", []):
            asked = False
        elif answers := without_blank(node.get("outputs", [])) if asked else []:
            node.metadata |= {"collapsed": True, "jupyter": {"outputs_hidden": True}}
            node.outputs = [nbformat.v4.new_output("display_data"), *answers]
            answered = True
