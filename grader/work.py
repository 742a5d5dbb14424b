"""``python -m grader work``: give the learner a copy of each lesson, each lab and the start page.

``make lab`` runs it before JupyterLab starts. Learners read and solve in these copies, which lie in
``work/`` and which git ignores: neither ``make build`` nor nbgrader's Generate Assignment writes
over an answer, and reading changes no file that git tracks, so ``git pull`` goes on. Links between
copies lead to copies. When an original has changed, the changes are brought into its copy:

- The text of a solution cell in which the learner has written stays the learner's.
- A cell that is the same in the new original stays as it is in the copy; its outputs are the new
  ones, unless the learner has run it.
- Any other cell is the new original's.
- The learner's own cells stay behind the cell that they followed, and so do an answer to an
  exercise that is no longer asked and what was written into a copy of a cell.

What a learner has written into an original is brought into the copy, too, as an answer or as a cell
of theirs. It is told from what was released by the metadata of the original. What a copy was made
from stands in its own metadata. The copy as it was before the last change lies beside it.
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
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePath
from typing import Any
from uuid import uuid4

import nbformat
from nbformat.notebooknode import NotebookNode
from nbgrader.utils import compute_checksum

from grader.metadata import CELLS, COPY, EXECUTED, KEY, fingerprint_of
from grader.whole_file import why_not_written, write_whole
from utils.notebook.course import ROOT, WORK, copy_of

UNREADABLE = (ValueError, AttributeError, TypeError, KeyError, nbformat.ValidationError)
# What a copy was made from, as it stands in its metadata: the hash of the original (`of`), of each
# cell those of its source and of its outputs, by its name (`cells`), and those of what the learner
# wrote into the original and the copy already has (`taken`).
Given = dict[str, Any]
NOTHING: Given = {"cells": {}, "taken": []}
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

    Returns:
        What was done, in lines; none if a plain copy was made, or there was nothing to do.

    Raises:
        one of UNREADABLE: if one of the two is not a readable notebook. Nothing was changed then.
    """
    data = original.read_bytes()
    before = mine.read_bytes() if mine.exists() else None
    if before is not None and _made_from(before) == _hash(data):
        return []
    shown = original.relative_to(root).as_posix()
    new = _read_original(data, original.relative_to(root), mine.relative_to(root))
    if before is None:
        write_whole(mine, _content(new, new.notebook.cells, NOTHING))
        told = [f"what you have written in {shown} is in it:"] if new.written else []
        told += [f"{name}: now here" for name in new.written]
    else:
        copied = nbformat.reads(before.decode(), as_version=4)
        given = copied.metadata.get(KEY, {}).get(COPY) or NOTHING
        cells, told = bring_in(given, new, copied.cells, shown)
        write_whole(previous(mine), before)
        write_whole(mine, _content(new, cells, given))
        told = [
            f"{shown} has changed, and this copy follows it; your answers and your own cells stay "
            f"({previous(mine).name} is the copy as it was)",
            *told,
        ]
    if new.written and (root / ".git").exists():
        told.append(
            f"nothing of yours is in {shown} alone; for git to pull again: git restore {shown}"
        )
    return told


@dataclass
class Original:
    """A notebook of the course with links as its copy needs them, and cells of different names.

    Attributes:
        written: names of the cells in which a learner has written.
        digest: the hash of its file.
    """

    notebook: NotebookNode
    written: list[str]
    digest: str


def bring_in(
    given: Given, new: Original, mine: list[NotebookNode], shown: str
) -> tuple[list[NotebookNode], list[str]]:
    """Return the cells of an original with what a learner wrote into it and into its older copy.

    Args:
        mine: the copy's cells.
        shown: the original's name in messages.

    Returns:
        The cells, and a line about each cell in which one text took another's place.
    """
    _give_ids(mine, given)
    now, own = _by_name(new.notebook.cells), _by_name(mine)
    following = _own_cells(mine, now, given)
    here = {*given["taken"], *map(_source, mine)}
    cells, told = following.pop("", []), []
    for name, cell in now.items():
        kept = own.get(name)
        was, showed = given["cells"].get(name, ("", _outputs({})))
        untouched = kept is not None and _source(kept) == (was or _source(cell))
        if name in new.written and _source(cell) not in here:
            if kept is None or untouched:
                cells.append(cell)
                told.append(f"{name}: what you wrote in {shown} is now here")
            else:
                cells += [kept, _plain(cell)]
                told.append(f"{name}: {shown} has another text of yours; it is in a cell below")
        elif kept is None:
            # What the learner wrote into the original, brought in before and deleted since.
            if name not in new.written or "nbgrader" in cell.metadata:
                cells.append(cell)
        elif name in new.written or _source(kept) == _source(cell):
            ran = showed != _outputs(kept)
            cells.append(_kept(kept, cell) if ran or name in new.written else cell)
        elif untouched:
            cells.append(cell)
        elif cell.metadata.get("nbgrader", {}).get("solution"):
            parts = "source", "attachments", "outputs", "execution_count"
            cells.append(NotebookNode(cell | {part: kept[part] for part in parts if part in kept}))
        elif was in ("", _source(cell)):
            cells.append(_kept(kept, cell))
        else:
            cells.append(cell)
            told.append(f"{name}: the text is new; what you wrote into the old one is not in it")
        cells += following.pop(name, [])
    return cells, told


def _read_original(data: bytes, place: PurePath, copy_place: PurePath) -> Original:
    notebook = nbformat.reads(data.decode(), as_version=4)
    stamp = notebook.metadata.get(KEY, {}).get(CELLS)
    fingerprints = stamp.split() if isinstance(stamp, str) else None
    cells: dict[str, NotebookNode] = {}
    written = []
    for cell in notebook.cells:
        released = _is_released(cell, fingerprints)
        if _name(cell) in cells:  # a copy of a cell
            if released:
                continue
            cell = _plain(cell)
        if not released:
            written.append(_name(cell))
        cells[_name(cell)] = cell
    link = partial(_link, place=place, copy_place=copy_place)
    for name, cell in cells.items():
        _relink(cell, link)
        if name not in written and "checksum" in cell.metadata.get("nbgrader", {}):
            cell.metadata.nbgrader.checksum = compute_checksum(cell)  # for nbgrader's Validate
    notebook.cells = list(cells.values())
    return Original(notebook, written, _hash(data))


def _is_released(cell: NotebookNode, fingerprints: list[str] | None) -> bool:
    """Return whether a cell's text is what was released, as far as its notebook can say."""
    if "nbgrader" in cell.metadata:
        return cell.metadata.nbgrader.get("checksum") in (None, compute_checksum(cell))
    if fingerprints is None:
        return True
    return fingerprint_of(cell) in fingerprints


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


def _content(new: Original, cells: list[NotebookNode], before: Given) -> bytes:
    # Shipped outputs are those of an executed page; any others somebody has made in it.
    ours = new.notebook.metadata.get(KEY, {})
    given: Given = {"of": new.digest, "cells": {}, "taken": []}
    for cell in new.notebook.cells:
        name = _name(cell)
        if name in new.written:
            given["taken"].append(_source(cell))
            if name in before["cells"]:
                given["cells"][name] = before["cells"][name]
        else:
            given["cells"][name] = [_source(cell), _outputs(cell if EXECUTED in ours else {})]
    made = copy.copy(new.notebook)
    made.cells = cells
    made.metadata = NotebookNode(made.metadata | {KEY: ours | {COPY: given}})
    return nbformat.writes(made).encode() + b"\n"


def _made_from(data: bytes) -> str:
    """Return the hash of the original; nbformat would take longer to read the copy."""
    try:
        return str(json.loads(data)["metadata"][KEY][COPY]["of"])
    except (ValueError, TypeError, KeyError, IndexError):
        return ""


def _give_ids(mine: Iterable[NotebookNode], given: Given) -> None:
    """Give cells that a program saved without ids those of the same cells in the original."""
    ids = {pair[0]: name for name, pair in given["cells"].items()}
    for cell in mine:
        if "id" not in cell:
            cell.id = ids.pop(_source(cell), None) or uuid4().hex[:8]


def _own_cells(
    mine: Iterable[NotebookNode], now: dict[str, NotebookNode], given: Given
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
            given["cells"].get(name, ("",))[0],
            name in now and _source(now[name]),
        ):
            # The id is one that no original has, so that the cell stays the learner's.
            known = name in now or name in given["cells"]
            found.setdefault(after, []).append(_plain(cell) if known else cell)
    return found


def _plain(cell: NotebookNode) -> NotebookNode:
    """Return a cell of an original as one of the learner's own."""
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
    """Return a hash of what a cell's outputs show."""
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
