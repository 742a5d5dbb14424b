"""Compare two notebooks cell by cell without outputs; list the cells changed since a build."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Any

from nbformat import NotebookNode

from grader.build.text import TextCell
from grader.metadata import CELLS, EXECUTED, KEY, OUTPUTS

# The keys of a cell's metadata that the build writes. JupyterLab writes other keys there.
METADATA = ("nbgrader", "tags", "deletable", "editable")
# Keys of a lesson's stamp: digests of the sources it was executed from, and of its outputs.


def differences(expected: NotebookNode, found: NotebookNode, outputs: bool) -> list[str]:
    """Return sentences on where `found` is not what the text builds; empty when it is.

    Args:
        outputs: whether code cells may have outputs and counts (lessons) or must not (labs).
    """
    said = list(metadata_differences(expected, found))
    wanted, got = expected.cells, found.cells
    matcher = SequenceMatcher(None, [*map(content, wanted)], [*map(content, got)], autojunk=False)
    for tag, start, end, got_start, got_end in matcher.get_opcodes():
        if tag == "equal":
            for offset in range(end - start):
                mine, theirs = wanted[start + offset], got[got_start + offset]
                if mine.id != theirs.id:
                    said.append(
                        f"{label(theirs, got_start + offset)}: its id should be {mine.id!r}"
                    )
            continue
        pairs = zip_longest(range(start, end), range(got_start, got_end))
        for index, got_index in pairs:
            if got_index is None:
                said.append(f"{label(wanted[index], index)} is missing")
            elif index is None:
                said.append(f"{label(got[got_index], got_index)} is not in the text")
            else:
                said += cell_differences(wanted[index], got[got_index], got_index)
    if not outputs:
        said += [
            f"{label(node, index)} holds outputs"
            for index, node in enumerate(got)
            if node.get("outputs") or node.get("execution_count") is not None
        ]
    return said


def content(node: NotebookNode) -> str:
    """Return type, source and the build's metadata of a cell as one comparable string."""
    return json.dumps([node.cell_type, node.source, own_metadata(node)], sort_keys=True)


def own_metadata(node: NotebookNode) -> dict[str, Any]:
    """Return the part of a cell's metadata that the build writes."""
    return {key: node.metadata[key] for key in METADATA if node.metadata.get(key) not in (None, [])}


def cell_differences(expected: NotebookNode, found: NotebookNode, index: int) -> Iterator[str]:
    """Yield what differs between the expected cell and the one found in its place."""
    where = label(found, index)
    if expected.cell_type != found.cell_type:
        yield f"{where} is {found.cell_type}, should be {expected.cell_type}"
    if expected.source != found.source:
        yield f"{where}: source, {first_difference(expected.source, found.source)}"
    wanted, got = own_metadata(expected), own_metadata(found)
    for key in METADATA:
        if wanted.get(key) != got.get(key):
            yield f"{where}: {key} is {show(got.get(key))}, should be {show(wanted.get(key))}"


def first_difference(expected: str, found: str) -> str:
    """Return the first line in which two sources differ, as a message."""
    pairs = zip_longest(expected.split("\n"), found.split("\n"))
    number, (wanted, got) = next(
        (number, pair) for number, pair in enumerate(pairs, start=1) if pair[0] != pair[1]
    )
    return f"line {number} is {show(got)}, should be {show(wanted)}"


def show(value: Any) -> str:
    """Return a value as text for a message, cut to about one line."""
    if value is None:
        return "not there"
    said = json.dumps(value, sort_keys=True, ensure_ascii=False)
    return said if len(said) <= 160 else said[:157] + "..."


def label(node: NotebookNode, index: int) -> str:
    """Return a cell's name in messages: its number from 1, and nbgrader's id if it has one."""
    name = node.metadata.get("nbgrader", {}).get("grade_id")
    return f"cell {index + 1} ({name})" if name else f"cell {index + 1}"


def metadata_differences(expected: NotebookNode, found: NotebookNode) -> Iterator[str]:
    """Yield what differs in the notebook's kernel and the course's settings."""
    for key in ("kernelspec", KEY):
        wanted, got = expected.metadata.get(key, {}), found.metadata.get(key, {})
        for name in sorted((wanted.keys() | got.keys()) - {CELLS, EXECUTED, OUTPUTS}):
            if wanted.get(name) != got.get(name):
                yield (
                    f"metadata {key}.{name} is {show(got.get(name))}, "
                    f"should be {show(wanted.get(name))}"
                )


def changed_cells(base: Sequence[str], now: Sequence[TextCell]) -> list[str]:
    """Return in a few words which cells changed since the build with the fingerprints `base`."""
    matcher = SequenceMatcher(None, base, [cell.fingerprint for cell in now], autojunk=False)
    said = []
    for tag, start, end, now_start, now_end in matcher.get_opcodes():
        cells = [describe(cell, now_start + i + 1) for i, cell in enumerate(now[now_start:now_end])]
        if tag == "replace":
            said.append(f"changed: {', '.join(cells)}")
        elif tag == "insert":
            said.append(f"new: {', '.join(cells)}")
        elif tag == "delete":
            said.append(f"removed: {end - start} cell(s) before cell {now_start + 1}")
    return said


def describe(cell: TextCell, number: int) -> str:
    """Return a cell in a list of changes: number, name, first line."""
    first = cell.source.split("\n")[0]
    first = first if len(first) <= 50 else first[:47] + "..."
    name = f" ({cell.name})" if cell.name else ""
    return f"cell {number}{name} {first!r}"
