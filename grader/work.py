"""``python -m grader work``: give the learner a copy of each lesson, each lab and the start page.

Learners read and solve in these copies, which lie in ``work/`` and which git ignores. Links between
copies lead to copies. When an original has changed, the changes are brought into its copy:

- The text of a solution cell in which the learner has written stays the learner's.
- A cell that is the same in the new original stays as it is in the copy; its outputs are the new
  ones, unless the learner has run it. Any other cell is the new original's.
- The learner's own cells stay behind the cell that they followed, and so do an answer to an
  exercise that is no longer asked and what was written into a copy of a cell.
- An answer in a released lab comes into a copy without one, and stays there.

What a copy was made from stands in its own metadata. The copy as it was before the last change lies
beside it.
"""

from __future__ import annotations

import argparse
import copy
import hashlib
import json
import os
import posixpath
import re
import sys
from collections.abc import Iterable
from functools import partial
from pathlib import Path, PurePath
from typing import Any
from uuid import uuid4

import nbformat
from nbformat.notebooknode import NotebookNode
from nbgrader.utils import compute_checksum

from grader.metadata import COPY, EXECUTED, KEY
from grader.whole_file import why_not_written, write_whole
from utils.notebook.course import ROOT, WORK, copy_of

UNREADABLE = (ValueError, AttributeError, TypeError, KeyError, nbformat.ValidationError)
# What a copy was made from, as it stands in its metadata: the hash of the original (`of`), and by
# the name of each cell the hashes of its source and of its outputs (`cells`).
Origin = dict[str, Any]
NOTHING: Origin = {"cells": {}}
HREF = re.compile(r'(?<=\]\()[^()\s]+(?=[)\s])|(?<=href=")[^"]+(?=")')
ABSOLUTE = re.compile(r"[a-z][a-z0-9+.-]*:|/")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``python -m grader work``: there are none."""


def run(args: argparse.Namespace, root: Path = ROOT) -> int:
    """Make or refresh every copy, and print what was done; return 1 if one was left as it is."""
    made = 0
    left = False
    for original in sorted([*root.glob("notebooks/*.ipynb"), *root.glob("release/*/*.ipynb")]):
        place = copy_of(original.relative_to(root))
        if place is None:
            continue
        try:
            new = not (root / place).exists()
            done = refresh(original, root / place, root)
            made += new
        except UNREADABLE as error:
            left = True
            shown = original.relative_to(root)
            done = [
                f"left as it is, for it or {shown} is not a readable notebook",
                str(error)[:200],
            ]
        if done:
            print(f"{place}: " + "\n    ".join(done))
    if made:
        print(f"{WORK}/: {made} {'copies' if made > 1 else 'copy'} made")
    return int(left)


def previous(mine: Path) -> Path:
    """Return the file that keeps a copy as it was before the last change."""
    return mine.with_name(f".previous-{mine.name}")


def refresh(original: Path, mine: Path, root: Path) -> list[str]:
    """Make a learner's copy of a notebook, or bring what has changed in the original into it.

    It returns what was done, in lines; none if a plain copy was made, or there was nothing to do.
    Raises one of UNREADABLE if one of the two is not a readable notebook. Nothing was changed then.
    """
    data = original.read_bytes()
    before = mine.read_bytes() if mine.exists() else None
    if before is not None and _made_from(before) == _hash(data):
        return []
    shown = original.relative_to(root).as_posix()
    new = _read_original(data, original.relative_to(root), mine.relative_to(root))
    if before is None:
        write_whole(mine, _content(new, new.cells, NOTHING, data))
        return []
    copied = nbformat.reads(before.decode(), as_version=4)
    origin = copied.metadata.get(KEY, {}).get(COPY) or NOTHING
    cells, told = bring_in(origin, new.cells, copied.cells)
    write_whole(previous(mine), before)
    write_whole(mine, _content(new, cells, origin, data))
    return [
        f"{shown} has changed, and this copy follows it; your answers and your own cells stay "
        f"({previous(mine).name} is the copy as it was)",
        *told,
    ]


def bring_in(
    origin: Origin, new: list[NotebookNode], mine: list[NotebookNode]
) -> tuple[list[NotebookNode], list[str]]:
    """Return the cells of an original with what a learner wrote into its older copy, `mine`.

    With them comes a line about each cell in which one text took another's place.
    """
    _give_ids(mine, origin)
    now, own = _by_name(new), _by_name(mine)
    following = _own_cells(mine, now, origin)
    cells, told = following.pop("", []), []
    for name, cell in now.items():
        kept = own.get(name)
        was, showed = origin["cells"].get(name, ("", _outputs({})))
        if kept is None:
            cells.append(cell)
        elif _source(kept) == _source(cell):
            cells.append(_kept(kept, cell) if showed != _outputs(kept) else cell)
        elif _source(kept) == was:  # nobody has touched it
            cells.append(cell)
        elif _is_solution(cell):
            parts = "source", "attachments", "outputs", "execution_count"
            cells.append(NotebookNode(cell | {part: kept[part] for part in parts if part in kept}))
        elif was in ("", _source(cell)):
            cells.append(_kept(kept, cell))
        else:
            cells.append(cell)
            told.append(f"{name}: the text is new; what you wrote into the old one is not in it")
        cells += following.pop(name, [])
    return cells, told


def _read_original(data: bytes, place: PurePath, copy_place: PurePath) -> NotebookNode:
    """Return a notebook with links as its copy needs them, and cells of different names."""
    notebook = nbformat.reads(data.decode(), as_version=4)
    notebook.cells = list(_by_name(notebook.cells).values())
    link = partial(_link, place=place, copy_place=copy_place)
    for cell in notebook.cells:
        released = _is_released(cell)
        _relink(cell, link)
        if released and "checksum" in cell.metadata.get("nbgrader", {}):
            cell.metadata.nbgrader.checksum = compute_checksum(cell)  # for nbgrader's Validate
    return notebook


def _is_solution(cell: NotebookNode) -> bool:
    return bool(cell.metadata.get("nbgrader", {}).get("solution"))


def _is_released(cell: NotebookNode) -> bool:
    """Return whether a cell's text is what nbgrader released, as far as its checksum can say."""
    said = cell.metadata.get("nbgrader", {}).get("checksum")
    return said is None or said == compute_checksum(cell)


def _relink(cell: NotebookNode, link: Any) -> None:
    if cell.cell_type == "markdown":
        cell.source = HREF.sub(link, cell.source)
    for output in cell.get("outputs", []):
        if markup := output.get("data", {}).get("text/html"):
            output.data["text/html"] = HREF.sub(link, markup)


def _link(found: re.Match[str], place: PurePath, copy_place: PurePath) -> str:
    """Return where a link of an original leads from its copy: to a copy, where there is one."""
    path, hash_sign, section = found[0].partition("#")
    if not path or ABSOLUTE.match(path):
        return found[0]
    target = PurePath(posixpath.normpath(posixpath.join(place.parent.as_posix(), path)))
    leads = os.path.relpath(copy_of(target) or target, copy_place.parent)
    return PurePath(leads).as_posix() + hash_sign + section


def _content(
    new: NotebookNode, cells: list[NotebookNode], before: Origin, original: bytes
) -> bytes:
    # Shipped outputs are those of an executed page; any others somebody has made in it.
    ours = new.metadata.get(KEY, {})
    origin: Origin = {"of": _hash(original), "cells": {}}
    for cell in new.cells:
        name, outputs = _name(cell), _outputs(cell if EXECUTED in ours else {})
        if not _is_solution(cell) or _is_released(cell):
            origin["cells"][name] = [_source(cell), outputs]
        elif name in before["cells"]:  # the text is an answer, so the copy's is one, too
            origin["cells"][name] = before["cells"][name]
    made = copy.copy(new)
    made.cells = cells
    made.metadata = NotebookNode(made.metadata | {KEY: ours | {COPY: origin}})
    return nbformat.writes(made).encode() + b"\n"


def _made_from(data: bytes) -> str:
    """Return the hash of the original; nbformat would take longer to read the copy."""
    try:
        return str(json.loads(data)["metadata"][KEY][COPY]["of"])
    except (ValueError, TypeError, KeyError, IndexError):
        return ""


def _give_ids(mine: Iterable[NotebookNode], origin: Origin) -> None:
    """Give cells that a program saved without ids those of the same cells in the original."""
    ids = {pair[0]: name for name, pair in origin["cells"].items()}
    for cell in mine:
        if "id" not in cell:
            cell.id = ids.pop(_source(cell), None) or uuid4().hex[:8]


def _own_cells(
    mine: Iterable[NotebookNode], now: dict[str, NotebookNode], origin: Origin
) -> dict[str, list[NotebookNode]]:
    """Return the cells that are only the learner's, by the cell of the original they follow."""
    found: dict[str, list[NotebookNode]] = {}
    after, seen = "", set()
    for cell in mine:
        name = _name(cell)
        if name in now and name not in seen:
            seen.add(name)
            after = name
        elif _source(cell) not in (
            origin["cells"].get(name, ("",))[0],
            name in now and _source(now[name]),
        ):
            # The id is one that no original has, so that the cell stays the learner's.
            known = name in now or name in origin["cells"]
            found.setdefault(after, []).append(_plain(cell) if known else cell)
    return found


def _plain(cell: NotebookNode) -> NotebookNode:
    plain = copy.deepcopy(cell)
    for key in ("nbgrader", "deletable", "editable"):
        plain.metadata.pop(key, None)
    plain.id = uuid4().hex[:8]
    return plain


def _kept(kept: NotebookNode, cell: NotebookNode) -> NotebookNode:
    return NotebookNode(kept | {"metadata": cell.metadata, "id": cell.id})


def _by_name(cells: Iterable[NotebookNode]) -> dict[str, NotebookNode]:
    found: dict[str, NotebookNode] = {}
    for cell in cells:
        found.setdefault(_name(cell), cell)
    return found


def _name(cell: NotebookNode) -> str:
    """Return the name that nbgrader knows a cell by, or else its id."""
    return str(cell.metadata.get("nbgrader", {}).get("grade_id") or cell.id)


def _source(cell: NotebookNode) -> str:
    return _hash(f"{cell.cell_type} {cell.source}".encode())


def _outputs(cell: NotebookNode | dict[str, Any]) -> str:
    shown = [
        (one.get("text"), one.get("data"), one.get("ename")) for one in cell.get("outputs", [])
    ]
    return _hash(json.dumps(shown, sort_keys=True).encode())


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:12]


if __name__ == "__main__":  # in an archive without the checks, and without `python -m grader`
    try:
        sys.exit(run(argparse.Namespace()))
    except OSError as error:
        sys.exit(why_not_written(error) or str(error))
