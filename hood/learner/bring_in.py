"""Bring changes of the course's notebook into a learner's copy.

A record beside the copies, :class:`Given`, has everything that the course has given to a copy so
far. A copy's own metadata can't say which texts the learner wrote, because editors rewrite
metadata.
"""

from __future__ import annotations

import ast
import copy
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from uuid import uuid4

from nbformat.notebooknode import NotebookNode

from hood.learner.cell_matching import (
    added,
    is_answer,
    match,
    most_alike,
    name_of,
    normal,
    settings,
    text_of,
    written,
)

MOST_VERSIONS = 20  # how many versions of a cell's text are kept
MOST_NAMED = 12  # how many cells a sentence names


@dataclass
class Given:
    """The texts and outputs that the course has given to a copy."""

    texts: dict[str, list[str]] = field(default_factory=dict)  # by `name_of`, newest last
    outputs: set[str] = field(default_factory=set)  # hashes
    # The key is the hash of a cell's text, and the value is the cell's name. Older copies have such
    # hashes in their metadata.
    names: dict[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, data: bytes) -> Given:
        """Read the record that :meth:`content` wrote; an empty record if the file is damaged."""
        try:
            kept = json.loads(data)
            texts = {str(name): list(map(str, one)) for name, one in kept["texts"].items()}
            return cls(texts, set(map(str, kept["outputs"])))
        except (ValueError, TypeError, KeyError, AttributeError):
            return cls()

    def add_hashes(self, in_copy: Any) -> None:
        """Add to this record the hashes from the metadata of an older copy."""
        cells = in_copy.get("cells") if isinstance(in_copy, dict) else None
        for name, hashes in cells.items() if isinstance(cells, dict) else ():
            if isinstance(hashes, list) and len(hashes) == 2:
                self.names[str(hashes[0])] = name
                self.outputs.add(str(hashes[1]))

    def content(self) -> bytes:
        """Return the record as the content of a file."""
        shown = {"texts": self.texts, "outputs": sorted(self.outputs)}
        return json.dumps(shown, ensure_ascii=False, indent=1).encode() + b"\n"

    def add(self, cell: NotebookNode, outputs: bool) -> None:
        """Record a cell that the course gives, as the newest version of the cell with this name."""
        versions, text = self.texts.setdefault(name_of(cell), []), written(cell)
        if text in versions:
            versions.remove(text)
        versions.append(text)
        del versions[:-MOST_VERSIONS]
        self.outputs.add(hash_of_outputs(cell if outputs else {}))
        self.__dict__.pop("_by_text", None)

    def named(self, cell: NotebookNode) -> set[str]:
        """Return the names of the course's cells that had this cell's text, if there are any."""
        names = self._by_text.get(text_of(cell), set())
        old = self.names.get(_hash(f"{cell.cell_type} {cell.source}".encode()))
        return names | {old} if old else names

    @cached_property
    def _by_text(self) -> dict[str, set[str]]:
        by_text: dict[str, set[str]] = {}
        for name, versions in self.texts.items():
            for version in versions:
                by_text.setdefault(normal(version), set()).add(name)
        return by_text

    def has(self, name: object) -> bool:
        """Return whether the course gave a cell of that name."""
        return name in self.texts or name in self.names.values()

    def __bool__(self) -> bool:
        return bool(self.texts or self.names)


@dataclass
class Changes:
    """A report to the learner on changes in a copy.

    The report groups the cells by what was done with them.
    """

    new: list[str] = field(default_factory=list)
    back: list[str] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    marks: int = 0  # cells that got nbgrader's metadata back
    each: list[str] = field(default_factory=list)  # sentences about one cell
    at_all: list[str] = field(default_factory=list)  # sentences about the copy

    def sentences(self) -> list[str]:
        """Return the report as lines; empty if nothing changed."""
        lists = (
            ("New or changed in the original, and now in your copy", self.new),
            ("Missing in your copy, and now back", self.back),
            (
                "Removed from your copy, because it was unchanged and is no longer in the original",
                self.gone,
            ),
        )
        grouped = [f"{what}: {some(names)}." for what, names in lists if names]
        back = f"An editor had removed nbgrader's metadata from {self.marks} cells. It is back."
        return [*self.at_all, *([back] if self.marks else []), *grouped, *self.each]


def some(names: Sequence[str]) -> str:
    """Return the first names, and the number of further names."""
    names = list(dict.fromkeys(names))
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more


def bring_in(
    given: Given, new: Sequence[NotebookNode], mine: Sequence[NotebookNode]
) -> tuple[list[NotebookNode], Changes]:
    """Return the cells of an original with the learner's text from the copy `mine`."""
    now = {name_of(cell): cell for cell in new}
    matched = match(mine, now, given.texts)
    own = {name: cell for name, cell in zip(matched, mine, strict=True) if name}
    changes = Changes()
    following = _own_cells(mine, matched, now, given, changes)
    cells = following.pop("", [])
    before = None
    for name, cell in now.items():
        kept, below = own.get(name), following.pop(name, [])
        if kept is None:
            (changes.back if given.has(name) else changes.new).append(label(cell))
            cells.append(cell)
        else:
            if settings(cell) and not settings(kept):
                changes.marks += 1
            answer = is_answer(cell, before)
            chosen, more = _brought(kept, cell, answer, given, changes)
            cells += [chosen, *more]
        cells += below
        before = cell
    if not given:
        changes.at_all.append(
            "It is unknown from which version of the original this copy was made. So every "
            "difference counts as your change, and an exercise may still have an old stub."
        )
    places = [list(now).index(name) for name in matched if name]
    if places != sorted(places):
        changes.at_all.append(
            "The cells are in the original's order again. Each cell that you added still follows "
            "the same cell."
        )
    _give_ids(cells)
    return cells, changes


def _brought(
    kept: NotebookNode, cell: NotebookNode, answer: bool, given: Given, changes: Changes
) -> tuple[NotebookNode, list[NotebookNode]]:
    """Return the copy's new cell, and a cell for the learner's lines that the new cell lacks.

    Args:
        kept: the copy's cell.
        cell: the original's cell.
        answer: whether the cell is for the learner's answer.
    """
    mine = _kept(kept, cell)
    if text_of(kept) == text_of(cell):
        if hash_of_outputs(kept) not in given.outputs:  # the learner ran the cell
            return NotebookNode(mine | {"source": cell.source}), []
        if hash_of_outputs(kept) != hash_of_outputs(cell):
            changes.new.append(label(cell))
        return cell, []
    if given.named(kept):  # the learner has not changed the cell
        changes.new.append(label(cell))
        return cell, []
    is_new = not given.named(cell)
    if answer:
        if is_new and given:
            changes.each.append(
                f"{label(cell)}: your answer stays. The exercise's starting text has changed: "
                "see the original."
            )
        retyped = kept.cell_type != cell.cell_type
        return (NotebookNode(cell | {"source": kept.source}) if retyped else mine), []
    if not is_new:  # only the learner has changed the cell
        return mine, []
    changes.new.append(label(cell))
    versions = given.texts.get(name_of(cell), ())
    was = most_alike(written(kept), versions).partition("\n")[2] or cell.source
    lines = added(kept.source, was)
    if not lines:
        return cell, []
    below = plain(kept)
    if kept.cell_type != "code" or _is_code(lines):
        below.source = lines
    if kept.cell_type == "code":
        below.outputs, below.execution_count = [], None
    why = "you and the original have both changed this cell" if given else "the two texts differ"
    changes.each.append(
        f"{label(cell)}: {why}. The cell now has the original's text. A new cell below it has "
        "the lines that only your text had."
    )
    return cell, [below]


def _own_cells(
    mine: Sequence[NotebookNode],
    matched: Sequence[str],
    now: Mapping[str, NotebookNode],
    given: Given,
    changes: Changes,
) -> dict[str, list[NotebookNode]]:
    """Return, for each cell of the original, the learner's own cells that follow it."""
    following: dict[str, list[NotebookNode]] = {}
    after = ""
    for name, cell in zip(matched, mine, strict=True):
        if name:
            after = name
            continue
        names = given.named(cell)
        if names and not names & now.keys():
            changes.gone.append(label(cell))
            continue
        claimed = settings(cell).get("grade_id")
        if any(settings(now[one]) for one in names & now.keys()):
            continue  # an untouched copy: a stub below the answer would overwrite the answer
        if claimed in now:
            changes.each.append(
                f"{label(cell)}: your copy had this cell more than once. The first of these "
                "cells counts. Your text from another of them is now in an ordinary cell."
            )
        elif given.has(claimed):
            changes.each.append(
                f"{label(cell)}: the original no longer has this cell. Your text is now in an "
                "ordinary cell."
            )
        ours = claimed in now or given.has(claimed)
        following.setdefault(after, []).append(plain(cell) if ours else cell)
    return following


def label(cell: NotebookNode) -> str:
    """Return a cell's name for a learner: its name in nbgrader, or its first line."""
    if name := settings(cell).get("grade_id"):
        return f"`{name}`"
    first = next((line for line in cell.source.splitlines() if line.strip()), "an empty cell")
    words = first.strip("# ")
    return f"“{words[:40]}…”" if len(words) > 40 else f"“{words}”"


def plain(cell: NotebookNode) -> NotebookNode:
    """Return a cell as the learner's own cell: without nbgrader's metadata, and with a new id."""
    made = copy.deepcopy(cell)
    for key in ("nbgrader", "deletable", "editable"):
        made.metadata.pop(key, None)
    made.id = uuid4().hex[:8]
    return made


def _kept(kept: NotebookNode, cell: NotebookNode) -> NotebookNode:
    return NotebookNode(kept | {"metadata": cell.metadata, "id": cell.id})


def _is_code(lines: str) -> bool:
    try:
        ast.parse(lines)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _give_ids(cells: Sequence[NotebookNode]) -> None:
    """Give new ids to cells that have no id, or that have the id of another cell."""
    seen: set[str] = set()
    for cell in cells:
        if cell.get("id", "") in {"", *seen}:
            cell.id = uuid4().hex[:8]
        seen.add(cell.id)


def hash_of_outputs(cell: NotebookNode | dict[str, Any]) -> str:
    """Return a hash of a cell's outputs."""
    shown = [
        (one.get("text"), one.get("data"), one.get("ename")) for one in cell.get("outputs", [])
    ]
    return _hash(json.dumps(shown, sort_keys=True).encode())


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:12]
