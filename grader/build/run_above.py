"""A button below the headings of a lesson, for whoever comes by a link into the middle of it.

A section needs what the sections above it define. In JupyterLab the button runs them.
"""

from __future__ import annotations

from nbformat import NotebookNode

from grader.metadata import BUTTON, without_button


def with_button(markdown: str) -> str:
    """Return a section's first cell with the button below its heading."""
    heading, _, words = markdown.partition("\n\n")
    return f"{heading}\n\n{BUTTON}{words}" if words else f"{heading}\n\n{BUTTON}".rstrip("\n")


def add_buttons(notebook: NotebookNode) -> None:
    """Put the button into each section that has code, and has code above it."""
    heading, begun = None, False
    for node in notebook.cells:
        if node.cell_type == "markdown":
            node.source = without_button(node.source)
            if node.source.startswith("## "):
                heading = node
        else:
            if heading and begun:
                heading.source = with_button(heading.source)
            heading, begun = None, True
