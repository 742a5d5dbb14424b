"""``python -m hood work``: give the learner a copy of each lesson, each lab and the start page.

Learners read lessons and solve labs in these copies. The copies are in ``work/``, which git
ignores. Links between copies lead to copies. When an original has changed, the changes are brought
into its copy:

- A solution cell with the learner's text keeps that text.
- If the original of a cell is unchanged, the cell keeps the copy's text. If the learner has not run
  the cell, it gets the new outputs. If the original has changed, the cell gets the new text; lines
  that the learner had added go into a new cell below.
- A cell that the learner added still follows the same cell. If an exercise no longer exists, its
  answer counts as an added cell. Changed text in a duplicate of a cell also counts as an added
  cell.
- An answer in a released lab is copied into a copy that has no answer. The released lab also keeps
  the answer.

If a copy is missing, and another notebook in ``work/`` has most of the copy's cells, the learner
may have renamed the copy. Then a message names that notebook. Nothing is moved, and no new copy is
made.

A copy's metadata says from which original it was made. Because editors rewrite metadata,
``work/.originals`` has everything that the course has given to the copy so far. A file beside each
copy has the copy's state before the last visible change.
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
from functools import partial
from pathlib import Path, PurePath
from typing import Any

import nbformat
from nbformat.notebooknode import NotebookNode

from hood.atomic_files import why_not_written, write_whole
from hood.learner import agents
from hood.learner.bring_in import Given, bring_in
from hood.learner.cell_matching import name_of, settings
from hood.learner.renamed import looks_like, what_to_do
from hood.metadata import COPY, EXECUTED, KEY, checksum
from hood.notebook_file import to_bytes
from hood.phase_paths import ROOT, WORK, copy_of

UNREADABLE = (ValueError, AttributeError, TypeError, KeyError, nbformat.ValidationError)
RECORDS = ".originals"  # in work/, the folder with a record for each copy
HREF = re.compile(r'(?<=\]\()[^()\s]+(?=[)\s])|(?<=href=")[^"]+(?=")')
ABSOLUTE = re.compile(r"[a-z][a-z0-9+.-]*:|/")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """``python -m hood work`` has no arguments."""


def run(args: argparse.Namespace, root: Path = ROOT) -> int:
    """Make or refresh every copy, and print what was done. Return 1 if a copy was skipped."""
    made = 0
    left = False
    for original in sorted([*root.glob("notebooks/*.ipynb"), *root.glob("release/*/*.ipynb")]):
        place = copy_of(original.relative_to(root))
        if place is None:
            continue
        try:
            new = not (root / place).exists()
            alike = looks_like(original, root) if new else None
            if alike is None:
                done = refresh(original, root / place, root)
                made += new
            else:
                left = True
                done = ["no copy was made", what_to_do(original, alike, root)]
        except UNREADABLE as error:
            left = True
            shown = original.relative_to(root)
            done = [
                f"left as it is, because this copy or {shown} is not a readable notebook",
                str(error)[:200],
            ]
        if done:
            print(f"{place}: " + "\n    ".join(done))
    if (root / WORK).is_dir():
        agents.write(root)
    if made:
        print(f"{WORK}/: {made} {'copies' if made > 1 else 'copy'} made")
    return int(left)


def previous(mine: Path) -> Path:
    """Return the file with a copy's state before the last change."""
    return mine.with_name(f".previous-{mine.name}")


def refresh(original: Path, mine: Path, root: Path) -> list[str]:
    """Make a learner's copy of a notebook, or bring changes of the original into it.

    Return lines that say what was done. There are no lines if a plain copy was made, or if there
    was nothing to do. If the original or the copy is not a readable notebook, raise an error in
    UNREADABLE and change nothing.
    """
    data = original.read_bytes()
    before = mine.read_bytes() if mine.exists() else None
    record = _record(mine, root)
    current = before is not None and _made_from(before) == _hash(data)
    if current and record.exists():
        return []
    new = _read_original(data, original.relative_to(root), mine.relative_to(root))
    content, done = _content(new, new.cells, data), []
    given = Given.read(record.read_bytes() if record.exists() else b"")
    if before is not None:
        copied = nbformat.reads(before.decode("utf-8-sig"), as_version=4)
        given.add_hashes(copied.metadata.get(KEY, {}).get(COPY, {}))
        cells, changes = bring_in(given, new.cells, copied.cells)
        content, done = _content(new, cells, data), changes.sentences()
    for cell in new.cells:
        if not _is_solution(cell) or _is_released(cell):  # otherwise the text is an answer
            given.add(cell, EXECUTED in new.metadata.get(KEY, {}))
    # Write the record first: a text of the copy that is not in the record counts as the learner's.
    write_whole(record, given.content())
    if current:
        return []
    if done and before is not None:
        write_whole(previous(mine), before)
    write_whole(mine, content)
    if before is None:
        return []
    shown = original.relative_to(root).as_posix()
    if not done:
        return [f"compared with {shown}: no cell of your copy had to change"]
    kept = f"what you wrote stays ({previous(mine).name} is the old copy)"
    return [f"brought up to date with {shown}; {kept}", *done]


def _record(mine: Path, root: Path) -> Path:
    """Return the file with everything that the course has given to a copy."""
    place = mine.relative_to(root / WORK)
    return (root / WORK / RECORDS / place).with_suffix(".json")


def _read_original(data: bytes, place: PurePath, copy_place: PurePath) -> NotebookNode:
    """Return a notebook with the links of its copy, and with only one cell for each name."""
    notebook = nbformat.reads(data.decode(), as_version=4)
    names: dict[str, NotebookNode] = {}
    for cell in notebook.cells:
        names.setdefault(name_of(cell), cell)
    notebook.cells = list(names.values())
    link = partial(_link, place=place, copy_place=copy_place)
    for cell in notebook.cells:
        released = _is_released(cell)
        _relink(cell, link)
        if released and "checksum" in cell.metadata.get("nbgrader", {}):
            cell.metadata.nbgrader.checksum = checksum(cell)  # for nbgrader's Validate
    return notebook


def _is_solution(cell: NotebookNode) -> bool:
    return bool(settings(cell).get("solution"))


def _is_released(cell: NotebookNode) -> bool:
    """Return whether a cell has the text that nbgrader released.

    If the cell has a checksum, the checksum decides.
    """
    said = cell.metadata.get("nbgrader", {}).get("checksum")
    return said is None or said == checksum(cell)


def _relink(cell: NotebookNode, link: Any) -> None:
    if cell.cell_type == "markdown":
        cell.source = HREF.sub(link, cell.source)
    for output in cell.get("outputs", []):
        if markup := output.get("data", {}).get("text/html"):
            output.data["text/html"] = HREF.sub(link, markup)


def _link(match: re.Match[str], place: PurePath, copy_place: PurePath) -> str:
    """Return an original's link as its copy needs it.

    If the link's target has a copy, the link leads to the target's copy.
    """
    path, hash_sign, section = match[0].partition("#")
    if not path or ABSOLUTE.match(path):
        return match[0]
    target = PurePath(posixpath.normpath(posixpath.join(place.parent.as_posix(), path)))
    leads = os.path.relpath(copy_of(target) or target, copy_place.parent)
    return PurePath(leads).as_posix() + hash_sign + section


def _content(new: NotebookNode, cells: list[NotebookNode], original: bytes) -> bytes:
    ours = new.metadata.get(KEY, {})
    made = copy.copy(new)
    made.cells = cells
    made.metadata = NotebookNode(made.metadata | {KEY: ours | {COPY: {"of": _hash(original)}}})
    return to_bytes(made)


def _made_from(data: bytes) -> str:
    """Return the hash of a copy's original. This is faster than reading the copy with nbformat."""
    try:
        return str(json.loads(data)["metadata"][KEY][COPY]["of"])
    except (ValueError, TypeError, KeyError, IndexError):
        return ""


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:12]


if __name__ == "__main__":  # in an archive without the checks, and without `python -m hood`
    try:
        sys.exit(run(argparse.Namespace()))
    except OSError as error:
        sys.exit(why_not_written(error) or str(error))
