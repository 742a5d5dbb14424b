"""Copy edits made in JupyterLab into the text, without ever losing one silently.

A built notebook carries the fingerprints of the cells that it was built from. With them each side
can be tested for changes since then. If only the notebook changed, its cells are written into the
text. If both changed, this is a conflict: nothing is written, and the changed cells of each side
are listed.
"""

from __future__ import annotations

from nbformat import NotebookNode

from grader.build.compare import changed_cells
from grader.build.notebook import fingerprints, stamp, to_cells
from grader.build.problems import Problem, Refused, refuse_if_any
from grader.build.text import Text, TextCell, assemble, parse
from grader.metadata import KEY


def is_edited(notebook: NotebookNode, path: str, text: Text) -> bool:
    """Return whether overwriting the notebook would lose something that the text does not have.

    A notebook that the build did not make counts as edited.
    """
    cells, problems = to_cells(path, notebook)
    if problems:
        return True
    now = fingerprints(cells)
    return now not in (stamp(notebook).get("cells"), fingerprints(text.cells))


def bring_home(text: Text, notebook: NotebookNode, path: str) -> str | None:
    """Return the text with the notebook's edits; None when there is no edit to copy.

    Args:
        path: the notebook's name in messages.

    Raises:
        Refused: on a conflict, for a notebook that was not built from this text, and for cells that
            a text cannot hold.
    """
    cells, problems = to_cells(path, notebook)
    base = stamp(notebook).get("cells")
    if base is None:
        message = "was not built from a text, so its edits cannot be found"
        raise Refused([*problems, Problem(path, 0, message)])
    refuse_if_any(problems)
    now, said = fingerprints(cells), fingerprints(text.cells)
    if now in (base, said):
        return None
    if said != base:
        raise Refused([Problem(text.path, 0, conflict(text, cells, path, base.split()))])
    return rewritten(text, cells, path)


def conflict(text: Text, cells: list[TextCell], path: str, base: list[str]) -> str:
    """Return the message about a conflict: the changed cells on each side, and what to do."""
    lines = [f"this text and {path} both changed since the last build; nothing was written"]
    for side, now in ((text.path, text.cells), (path, cells)):
        lines += [f"    {side}: {change}" for change in changed_cells(base, now)]
    lines.append("    copy one side's changes to the other, or drop the notebook's: build --force")
    return "\n".join(lines)


def rewritten(text: Text, cells: list[TextCell], path: str) -> str:
    """Return the text with these cells.

    Raises:
        Refused: when a cell would read back differently.
    """
    content = assemble(text.prefix, text.cells, cells)
    again = parse(text.path, content)
    lost = changed_cells([cell.fingerprint for cell in cells], again.cells)
    if lost:
        message = f"can't be kept unchanged in the text: {'; '.join(lost)}"
        raise Refused([Problem(path, 0, message)])
    return content


def restamped(notebook: NotebookNode, text: Text) -> NotebookNode:
    """Return the notebook, marked as built from this text: later edits are compared with it."""
    notebook.metadata[KEY]["cells"] = fingerprints(text.cells)
    return notebook
