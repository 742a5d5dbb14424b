"""Change a lab's links to lessons when the lab leaves the course's folder or comes back to it.

A lab of ``release/`` has links to ``../../notebooks/NN_name.ipynb``. A learner who fetched the lab
through the exchange, or who reads feedback, does not have the lesson's notebook. For this learner,
the link leads to the course's site. The setting ``lesson_url`` (:mod:`hood.addresses`) has the
address of the site. Without a site, the link becomes plain text. The links are changed only in the
copy that leaves the folder, because Git tracks the files of ``release/``.
"""

from __future__ import annotations

import re

import nbformat
from nbformat.notebooknode import NotebookNode
from nbgrader.utils import compute_checksum

from hood.addresses import on_site
from hood.learner.cell_matching import LINK, in_words
from hood.notebook_file import to_bytes


def settle(cell: NotebookNode, url: str) -> bool:
    """Make the links in a lab's text cell lead to a site; without a site, make them plain text.

    nbgrader's checksum of the cell's text is updated. Return whether the cell changed.
    """

    def settled(link: re.Match[str]) -> str:
        if not link["there"]:
            return link[0]
        return f"[{link['text']}]({on_site(link['page'], url)})" if url else in_words(link[0])

    if cell.cell_type != "markdown":
        return False
    before = cell.source
    cell.source = LINK.sub(settled, before)
    if cell.source != before and "checksum" in cell.metadata.get("nbgrader", {}):
        cell.metadata.nbgrader.checksum = compute_checksum(cell)
    return cell.source != before


def settled_file(data: bytes, url: str) -> bytes:
    """Change the links in a lab's notebook; return the same bytes if there is nothing to change.

    Raises ValueError for a file that is not a notebook.
    """
    try:
        notebook = nbformat.reads(data.decode(), as_version=4)
        changed = [settle(cell, url) for cell in notebook.cells]
    except (AttributeError, KeyError, TypeError, nbformat.ValidationError) as error:
        raise ValueError(f"it is not a notebook: {error}") from None
    return to_bytes(notebook) if any(changed) else data
