"""Additions to a lesson's notebook for JupyterLab: folded answers to predictions, and buttons.

A lesson asks for a prediction. The answer is the next output, with the paragraph below this output.
The build folds this answer. A section needs the definitions of the sections above. A reader may
come by a link into the middle of a lesson, so a button below each heading runs all cells above.
When a notebook's cell is compared with the text of the lesson, the additions are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import nbformat.v4
from markdown_it import MarkdownIt
from nbformat import NotebookNode

from hood.authoring.notebooks.text import HIDE_INPUT

# This matches only at the start of a sentence: "if a paragraph begins with **Predict**" asks
# nothing.
ASKS = re.compile(r"(?:^|[.:!?)][*_]*\s+)\*\*Predict", re.MULTILINE)
BLOCKS = MarkdownIt("commonmark").enable("table")
# OPEN and CLOSE go around the words that answer a prediction. BUTTON goes below a section's
# heading.
OPEN = '<details class="prediction"><summary>What happens, in words</summary>\n\n'
CLOSE = "\n\n</details>"
BUTTON = (
    '<button data-commandlinker-command="notebook:run-all-above" data-commandlinker-args="{}">'
    "Run all cells above</button>\n\n"
)


def as_text(markdown: str) -> str:
    """Return a cell's original markdown, without the build's additions for JupyterLab."""
    return without_button(unfolded(markdown))


def unfolded(markdown: str) -> str:
    """Return a cell's markdown without the fold around its first words."""
    if not markdown.startswith(OPEN):
        return markdown
    return markdown.removeprefix(OPEN).replace(CLOSE, "", 1)


def without_button(markdown: str) -> str:
    """Return a cell's markdown without the button below its heading."""
    return markdown.replace(BUTTON, "", 1).removesuffix(f"\n\n{BUTTON}".rstrip("\n"))


def without_blank(outputs: Iterable[NotebookNode]) -> list[NotebookNode]:
    """Return a cell's outputs without the empty output of :func:`fold_answers`."""
    return [output for output in outputs if output.get("data") != {}]


def folded(markdown: str) -> str:
    """Return a cell's markdown with its first paragraph folded.

    After a colon, the next block, such as a list or formula, is also folded. A cell that does not
    begin with a paragraph, or begins with a question, is returned unchanged.
    """
    blocks = [token for token in BLOCKS.parse(markdown) if token.map and token.level == 0]
    lines = markdown.split("\n")
    ends = [token.map[1] for token in blocks if token.map]
    paragraph = "\n".join(lines[: ends[0]]) if blocks else ""
    if not blocks or blocks[0].type != "paragraph_open" or ASKS.search(paragraph):
        return markdown
    goes_on = paragraph.rstrip().endswith(":") and len(blocks) > 1
    end = ends[1] if goes_on and blocks[1].type != "heading_open" else ends[0]
    words, rest = "\n".join(lines[:end]).rstrip("\n"), "\n".join(lines[end:]).lstrip("\n")
    return OPEN + words + CLOSE + (f"\n\n{rest}" if rest else "")


def fold_answers(notebook: NotebookNode) -> None:
    """Fold the answer to each prediction.

    The answer is the outputs before the next markdown cell, and the first paragraph of that cell.

    In place of folded outputs, JupyterLab shows three dots and the first line of the first output.
    So an output without data is put first.
    """
    asked = answered = False
    for node in notebook.cells:
        if node.cell_type == "markdown":
            words = node.source = unfolded(node.source)
            if answered:
                node.source = folded(words)
            for paragraph in words.split("\n\n"):
                # words between the question and the output are not the answer
                going_on = asked and not answered and not paragraph.startswith("#")
                asked, answered = going_on or bool(ASKS.search(paragraph)), False
        elif HIDE_INPUT in node.metadata.get("tags", []):
            asked = answered = False
        elif answers := without_blank(node.get("outputs", [])) if asked else []:
            node.metadata |= {"collapsed": True, "jupyter": {"outputs_hidden": True}}
            node.outputs = [nbformat.v4.new_output("display_data"), *answers]
            answered = True


def add_buttons(notebook: NotebookNode) -> None:
    """Add the button to each section with code, if there is code above it."""
    heading, begun = None, False
    for node in notebook.cells:
        if node.cell_type == "markdown":
            node.source = without_button(node.source)
            if node.source.startswith("## "):
                heading = node
        else:
            if heading and begun:
                title, _, words = heading.source.partition("\n\n")
                heading.source = (
                    f"{title}\n\n{BUTTON}{words}" if words else f"{title}\n\n{BUTTON}".rstrip("\n")
                )
            heading, begun = None, True
