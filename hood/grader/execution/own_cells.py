"""Find a learner's own cells that no exercise needs: grading may leave them out to save time.

Only names are compared, as in :mod:`hood.judge.source.learner_source`. Other effects of a cell,
such as writing a file, are not seen.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from nbformat.notebooknode import NotebookNode
from nbgrader.utils import is_grade, is_locked, is_solution

from hood.judge.source.cell_names import read_cell
from hood.metadata import KEY

# Magics and functions that may bind any name.
BINDS_UNSEEN = re.compile(
    r"^\s*%(run|load|loadpy|edit|macro|rerun|recall|store|pylab)\b|\b(exec|globals)\s*\(",
    re.MULTILINE,
)


def is_own(cell: NotebookNode) -> bool:
    """Return whether a code cell of a rebuilt notebook is a learner's own cell, not an answer."""
    return cell.cell_type == "code" and cell.metadata.get(KEY, {}).get("by") == "learner"


def unneeded(cells: Sequence[NotebookNode]) -> set[str]:
    """Return the ids of the learner's own cells that bind no name that an exercise reads.

    An exercise is assumed to get the lab's own names, such as ``torch``, from the lab's cells. If
    the names that a cell binds are not known, the cell counts as needed.
    """
    wanted, given = set[str](), set[str]()
    binding: dict[str, list[str]] = {}  # name -> the own cells that may bind it
    reads: dict[str, set[str]] = {}  # own cell -> the names that it reads
    for cell in cells:
        if cell.cell_type != "code":
            continue
        parsed = read_cell(cell.source)
        statements = parsed.statements
        certain = set[str]().union(*(one.binds for one in statements))
        bound = certain.union(*(one.may_bind for one in statements))
        read = {use.root for one in statements for use in one.uses} - certain - {""}
        if is_own(cell):
            reads[cell.id] = read
            unclear = parsed.unread or BINDS_UNSEEN.search(cell.source) or "*" in bound
            for name in {"*"} if unclear else bound:
                binding.setdefault(name, []).append(cell.id)
        elif is_solution(cell) or is_grade(cell):
            wanted |= read
        elif is_locked(cell):
            given |= bound
    waiting, needed = ["*", *(wanted - given)], set[str]()
    while waiting:
        for cell_id in binding.pop(waiting.pop(), ()):
            if cell_id not in needed:
                needed.add(cell_id)
                waiting += reads[cell_id]
    return reads.keys() - needed
