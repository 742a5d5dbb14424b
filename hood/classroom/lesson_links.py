"""Links to lessons in a lab that leaves the course's folder, and in one that comes back.

A lab of ``release/`` links ``../../notebooks/NN_name.ipynb``, which a learner who fetched the lab
through the exchange, or who reads feedback, does not have. There the link leads to the course's
site, the setting ``lesson_url`` (:mod:`hood.addresses`); without one it is words. The files of
``release/`` are tracked by git, and no setting changes them: links are settled in the copy that
leaves the folder.
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
    """Let a lab's text cell link the lessons on a site, or name them in words without a site.

    It returns whether the cell changed. nbgrader's checksum of its text is kept true.
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
    """Return a lab's notebook with its links settled; the same bytes where no link changes.

    Raises ValueError for a file that is not a notebook.
    """
    try:
        notebook = nbformat.reads(data.decode(), as_version=4)
        changed = [settle(cell, url) for cell in notebook.cells]
    except (AttributeError, KeyError, TypeError, nbformat.ValidationError) as error:
        raise ValueError(f"it is not a notebook: {error}") from None
    return to_bytes(notebook) if any(changed) else data
