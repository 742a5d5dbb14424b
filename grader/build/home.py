"""Bring an edit made in JupyterLab home into the text, and never lose one silently.

A built notebook carries the fingerprints of the cells it was built from. So each side can be asked
whether it changed since: if only the notebook did, the text takes its cells over; if both did,
that is a conflict, nothing is written, and the changed cells of each side are listed.
"""

from __future__ import annotations

from nbformat import NotebookNode

from grader.build.compare import changed_cells
from grader.build.notebook import STAMP, fingerprints, stamp, to_cells
from grader.build.problems import Problem, Refused, refuse_if_any
from grader.build.text import Cell, Text, assemble, parse


def edited(notebook: NotebookNode, path: str, text: Text) -> bool:
    """Whether overwriting the notebook would lose something that the text doesn't have.

    A notebook that the build did not make counts as edited.
    """
    cells, problems = to_cells(path, notebook)
    if problems:
        return True
    now = fingerprints(cells)
    return now not in (stamp(notebook).get("cells"), fingerprints(text.cells))


def bring_home(text: Text, notebook: NotebookNode, path: str) -> str | None:
    """The text with the notebook's edits in it; None when there is nothing to bring home.

    `path` names the notebook in messages. Raises Refused on a conflict, for a notebook that was
    not built from this text, and for cells that a text has no form for.
    """
    cells, problems = to_cells(path, notebook)
    base = stamp(notebook).get("cells")
    if base is None:
        message = "was not built from a text, so nothing says what was edited in it"
        raise Refused([*problems, Problem(path, 0, message)])
    refuse_if_any(problems)
    now, said = fingerprints(cells), fingerprints(text.cells)
    if now in (base, said):
        return None
    if said != base:
        raise Refused([Problem(text.path, 0, conflict(text, cells, path, base.split()))])
    return rewritten(text, cells, path)


def conflict(text: Text, cells: list[Cell], path: str, base: list[str]) -> str:
    """Both sides changed: which cells, on each side, and what to do."""
    lines = [f"this text and {path} both changed since the last build; nothing was written"]
    for side, now in ((text.path, text.cells), (path, cells)):
        lines += [f"    {side}: {change}" for change in changed_cells(base, now)]
    lines.append("    put one side's changes into the other, or drop the notebook's: build --force")
    return "\n".join(lines)


def rewritten(text: Text, cells: list[Cell], path: str) -> str:
    """The text with these cells. Raises Refused when a cell would not come back the same."""
    content = assemble(text.prefix, text.cells, cells)
    again = parse(text.path, content)
    lost = changed_cells([cell.fingerprint for cell in cells], again.cells)
    if lost:
        message = f"can't be kept in the text as it is: {'; '.join(lost)}"
        raise Refused([Problem(path, 0, message)])
    return content


def restamped(notebook: NotebookNode, text: Text) -> NotebookNode:
    """The notebook, now counted as built from this text: later edits are told from these."""
    notebook.metadata[STAMP]["cells"] = fingerprints(text.cells)
    return notebook
