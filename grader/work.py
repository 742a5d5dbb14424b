"""``python -m grader work``: give the learner a copy of each lab, ``work/LAB/LAB.ipynb``.

``make lab`` runs it before JupyterLab starts. Learners solve labs in these copies, which git
ignores, so that neither ``make build`` nor nbgrader's Generate Assignment ever writes over an
answer. When a release has changed since the copy was made, the changes are brought into the copy:

- The text of a solution cell in which the learner has written stays the learner's.
- A cell that is the same in the new release stays as it is in the copy, with its outputs.
- Any other cell is the new release's.
- The learner's own cells stay behind the cell that they followed, and so do an answer to an
  exercise that is no longer asked and what was written into a copy of a cell.

The release that a copy was made from lies beside it (``.released.ipynb``), and so does the copy as
it was before the last change (``.previous.ipynb``).
"""

from __future__ import annotations

import argparse
import copy
from collections.abc import Iterable
from pathlib import Path
from uuid import uuid4

import nbformat
from nbformat.notebooknode import NotebookNode

from grader.phase_paths import ROOT
from grader.whole_file import write_whole

FOLDER = "work"
RELEASED, PREVIOUS = ".released.ipynb", ".previous.ipynb"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``python -m grader work``: there are none."""


def run(args: argparse.Namespace, root: Path = ROOT) -> int:
    """Make or refresh every copy, and print what was done; return 1 if one was left as it is."""
    left = False
    for released in sorted(root.glob("release/*/*.ipynb")):
        try:
            done = refresh(released, root / FOLDER / released.parent.name / released.name)
        except (ValueError, AttributeError, TypeError, KeyError) as error:
            left = True
            done = f"left as it is, for it is not a readable notebook ({type(error).__name__})"
        if done:
            print(f"{FOLDER}/{released.parent.name}/{released.name}: {done}")
    return int(left)


def refresh(released: Path, mine: Path) -> str:
    """Make a learner's copy of a released lab, or bring a changed release into it.

    Returns:
        What was done, in words; empty if there was nothing to do.

    Raises:
        ValueError, AttributeError, TypeError, KeyError: if the copy is not a readable notebook.
            Nothing was changed then.
    """
    before = mine.with_name(RELEASED)
    new = released.read_bytes()
    if not mine.exists():
        write_whole(mine, new)
        write_whole(before, new)
        return "made"
    if not before.exists():  # nobody knows what it was made from
        write_whole(before, new)
    if before.read_bytes() == new:
        return ""
    merged = bring_in(*(nbformat.read(path, as_version=4) for path in (before, released, mine)))
    content = nbformat.writes(merged).encode() + b"\n"
    if content != mine.read_bytes():  # equal if an earlier run was killed just before its end
        write_whole(mine.with_name(PREVIOUS), mine.read_bytes())
        write_whole(mine, content)
    write_whole(before, new)
    return f"the release has changed; your answers are in the new one, and {PREVIOUS} is the old"


def bring_in(base: NotebookNode, new: NotebookNode, mine: NotebookNode) -> NotebookNode:
    """Return a new release with what a learner wrote into an older one.

    Args:
        base: the release that the learner's notebook was made from.
    """
    _give_ids(mine.cells, base.cells)
    old, now, own = _by_name(base.cells), _by_name(new.cells), _by_name(mine.cells)
    following = _own_cells(mine.cells, old, now)
    cells = following.pop("", [])
    for name, cell in now.items():
        kept = own.get(name)
        untouched = kept is not None and name in old and kept.source == old[name].source
        if kept is not None and not untouched and _is_solution(cell):
            cell = NotebookNode(cell | {part: kept[part] for part in _learners_parts(kept)})
        elif kept is not None and name in old and old[name].source == cell.source:
            cell = NotebookNode(kept | {"metadata": cell.metadata})
        cells += [cell, *following.pop(name, [])]
    merged = copy.copy(new)
    merged.cells = cells
    return merged


def _give_ids(mine: Iterable[NotebookNode], base: Iterable[NotebookNode]) -> None:
    """Give cells that an older program saved without ids those of the same cells in the release."""
    ids = {cell.source: cell.id for cell in base}
    for cell in mine:
        if "id" not in cell:
            cell.id = ids.pop(cell.source, None) or uuid4().hex[:8]


def _own_cells(
    mine: Iterable[NotebookNode], old: dict[str, NotebookNode], now: dict[str, NotebookNode]
) -> dict[str, list[NotebookNode]]:
    """Return the cells that are only the learner's, by the cell of the new release they follow."""
    found: dict[str, list[NotebookNode]] = {}
    after, seen = "", set()
    for cell in mine:
        name = _name(cell)
        if name in now and name not in seen:
            seen.add(name)
            after = name
            continue
        given = {was[name].source for was in (old, now) if name in was}
        if name not in old or (_is_solution(cell) and cell.source not in given):
            plain = copy.deepcopy(cell)
            plain.metadata.pop("nbgrader", None)
            # an id that no release has, so that the cell stays the learner's
            plain.id = uuid4().hex[:8] if name in now or name in old else cell.id
            found.setdefault(after, []).append(plain)
    return found


def _learners_parts(cell: NotebookNode) -> list[str]:
    return [
        part for part in ("source", "attachments", "outputs", "execution_count") if part in cell
    ]


def _by_name(cells: Iterable[NotebookNode]) -> dict[str, NotebookNode]:
    """Return cells by name; of cells with the same name, the first."""
    found: dict[str, NotebookNode] = {}
    for cell in cells:
        found.setdefault(_name(cell), cell)
    return found


def _name(cell: NotebookNode) -> str:
    """Return the name that nbgrader knows a cell by, or else its id."""
    return str(cell.metadata.get("nbgrader", {}).get("grade_id") or cell.id)


def _is_solution(cell: NotebookNode) -> bool:
    return bool(cell.metadata.get("nbgrader", {}).get("solution"))
