"""Bring what is new in a notebook of the course into a learner's copy of it.

What the course has given to a copy so far is kept beside the copies, in :class:`Given`: an editor
rewrites a notebook's metadata, and then nothing in the copy says which text is the learner's.
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

MOST_VERSIONS = 20  # of a cell's text that are kept
MOST_NAMED = 12  # cells that one sentence names


@dataclass
class Given:
    """The texts and outputs that the course has given to a copy."""

    texts: dict[str, list[str]] = field(default_factory=dict)  # by name_of the cell, newest last
    outputs: set[str] = field(default_factory=set)  # hashes
    # Copies that were made before texts were kept have hashes of them in their metadata.
    names: dict[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, data: bytes) -> Given:
        """Return what :meth:`content` wrote; nothing if the file is damaged."""
        try:
            kept = json.loads(data)
            texts = {str(name): list(map(str, one)) for name, one in kept["texts"].items()}
            return cls(texts, set(map(str, kept["outputs"])))
        except (ValueError, TypeError, KeyError, AttributeError):
            return cls()

    def add_hashes(self, in_copy: Any) -> None:
        """Remember what stands in the metadata of a copy that was made before texts were kept."""
        cells = in_copy.get("cells") if isinstance(in_copy, dict) else None
        for name, hashes in cells.items() if isinstance(cells, dict) else ():
            if isinstance(hashes, list) and len(hashes) == 2:
                self.names[str(hashes[0])] = name
                self.outputs.add(str(hashes[1]))

    def content(self) -> bytes:
        """Return it as the content of a file."""
        shown = {"texts": self.texts, "outputs": sorted(self.outputs)}
        return json.dumps(shown, ensure_ascii=False, indent=1).encode() + b"\n"

    def add(self, cell: NotebookNode, outputs: bool) -> None:
        """Remember a cell that the course gives, as the newest of its name."""
        versions, text = self.texts.setdefault(name_of(cell), []), written(cell)
        if text in versions:
            versions.remove(text)
        versions.append(text)
        del versions[:-MOST_VERSIONS]
        self.outputs.add(hash_of_outputs(cell if outputs else {}))
        self.__dict__.pop("_by_text", None)

    def named(self, cell: NotebookNode) -> set[str]:
        """Return the names under which the course gave a cell's text; none if it did not."""
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
    """What a learner is told of a copy: cells by what was done with them."""

    new: list[str] = field(default_factory=list)
    back: list[str] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    marks: int = 0  # that were put back
    each: list[str] = field(default_factory=list)  # sentences on one cell
    at_all: list[str] = field(default_factory=list)  # sentences on the copy

    def sentences(self) -> list[str]:
        """Return it as lines; none if there is nothing to tell."""
        lists = (
            ("New or changed in the original, and now in your copy", self.new),
            ("Missing in your copy, and now back", self.back),
            (
                "No longer in the original, and gone from your copy, as you had not changed it",
                self.gone,
            ),
        )
        grouped = [f"{what}: {some(names)}." for what, names in lists if names]
        back = f"An editor had removed nbgrader's marks of {self.marks} cells, and they are back."
        return [*self.at_all, *([back] if self.marks else []), *grouped, *self.each]


def some(names: Sequence[str]) -> str:
    """Return the first names, and how many more there are."""
    names = list(dict.fromkeys(names))
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more


def bring_in(
    given: Given, new: Sequence[NotebookNode], mine: Sequence[NotebookNode]
) -> tuple[list[NotebookNode], Changes]:
    """Return the cells of an original with what a learner wrote into a copy of it, `mine`."""
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
            "It is not known from which version of the original this copy was made, so all that "
            "differs was taken for yours: an exercise may still start from an older text."
        )
    places = [list(now).index(name) for name in matched if name]
    if places != sorted(places):
        changes.at_all.append(
            "The cells stand in the original's order again; a cell of your own is still behind the "
            "cell that it followed."
        )
    _give_ids(cells)
    return cells, changes


def _brought(
    kept: NotebookNode, cell: NotebookNode, answer: bool, given: Given, changes: Changes
) -> tuple[NotebookNode, list[NotebookNode]]:
    """Return the cell that a copy gets for one of the original, and a cell with lines that go on.

    Args:
        kept: the copy's cell.
        cell: the original's.
        answer: whether it is for the learner to write in.
    """
    mine = _kept(kept, cell)
    if text_of(kept) == text_of(cell):
        if hash_of_outputs(kept) not in given.outputs:  # the learner ran it
            return NotebookNode(mine | {"source": cell.source}), []
        if hash_of_outputs(kept) != hash_of_outputs(cell):
            changes.new.append(label(cell))
        return cell, []
    if given.named(kept):  # nobody has touched it
        changes.new.append(label(cell))
        return cell, []
    is_new = not given.named(cell)
    if answer:
        if is_new and given:
            changes.each.append(
                f"{label(cell)}: your answer stays. The text that it starts from has changed: the "
                "original shows the new one."
            )
        retyped = kept.cell_type != cell.cell_type
        return (NotebookNode(cell | {"source": kept.source}) if retyped else mine), []
    if not is_new:  # only the learner has changed it
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
    why = "you and the original have both changed it" if given else "the two texts differ"
    changes.each.append(
        f"{label(cell)}: {why}. The original's text is in, and what only yours had stands in a "
        "cell below it."
    )
    return cell, [below]


def _own_cells(
    mine: Sequence[NotebookNode],
    matched: Sequence[str],
    now: Mapping[str, NotebookNode],
    given: Given,
    changes: Changes,
) -> dict[str, list[NotebookNode]]:
    """Return the cells that are only the learner's, by the cell of the original they follow."""
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
            continue  # an untouched copy: a stub below the answer would overwrite it
        if claimed in now:
            changes.each.append(
                f"{label(cell)}: it was there more than once. The first one counts; what you wrote "
                "into another is a cell of your own now."
            )
        elif given.has(claimed):
            changes.each.append(
                f"{label(cell)}: the original no longer has it. What you wrote is a cell of your "
                "own now."
            )
        ours = claimed in now or given.has(claimed)
        following.setdefault(after, []).append(plain(cell) if ours else cell)
    return following


def label(cell: NotebookNode) -> str:
    """Return what a learner knows a cell by: its name in nbgrader, or its first line."""
    if name := settings(cell).get("grade_id"):
        return f"`{name}`"
    first = next((line for line in cell.source.splitlines() if line.strip()), "an empty cell")
    words = first.strip("# ")
    return f"“{words[:40]}…”" if len(words) > 40 else f"“{words}”"


def plain(cell: NotebookNode) -> NotebookNode:
    """Return a cell as one of the learner's own: the marks are gone, and no original has its id."""
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
    """Give the learner's cells ids where they have none, or one that another cell has."""
    seen: set[str] = set()
    for cell in cells:
        if cell.get("id", "") in {"", *seen}:
            cell.id = uuid4().hex[:8]
        seen.add(cell.id)


def hash_of_outputs(cell: NotebookNode | dict[str, Any]) -> str:
    """Return a hash of what a cell shows."""
    shown = [
        (one.get("text"), one.get("data"), one.get("ename")) for one in cell.get("outputs", [])
    ]
    return _hash(json.dumps(shown, sort_keys=True).encode())


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:12]
