"""A cell of a text and the same cell in a notebook: nbgrader's metadata, ids, the verify import."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import nbformat.v4
from nbformat import NotebookNode

from grader.build.text import Cell

BEGIN_SOLUTION, END_SOLUTION = "### BEGIN SOLUTION", "### END SOLUTION"
BEGIN_HIDDEN, END_HIDDEN = "### BEGIN HIDDEN TESTS", "### END HIDDEN TESTS"
BEGIN_SCHEME, END_SCHEME = "=== BEGIN MARK SCHEME ===", "=== END MARK SCHEME ==="
VERIFY_IMPORT = "from grader.verify import verify"
SOLUTION_SUFFIX = "_solution"
HIDE_INPUT = "hide-input"


def nbgrader_metadata(header: dict[str, Any]) -> dict[str, Any] | None:
    """nbgrader's metadata (schema 3) for a cell's header; None for a plain cell.

    A `given` cell is locked, a `solution` is the learner's, a `test` is graded and locked, a `task`
    is locked and marked by hand. Only tests and tasks have points.
    """
    metadata = {
        "schema_version": 3,
        "grade": "test" in header,
        "solution": "solution" in header,
        "locked": "solution" not in header,
        "task": "task" in header,
    }
    if "solution" in header:
        return metadata | {"grade_id": header["solution"] + SOLUTION_SUFFIX}
    for key in ("given", "test", "task"):
        if key in header:
            points = {"points": header["points"]} if "points" in header else {}
            return metadata | {"grade_id": header[key]} | points
    return None


def header_of(node: NotebookNode) -> dict[str, Any]:
    """The header that a notebook's cell has in a text: the reverse of `nbgrader_metadata`.

    Raises ValueError for a kind of nbgrader cell that the text has no word for.
    """
    header: dict[str, Any] = {}
    nbgrader = node.metadata.get("nbgrader", {})
    kinds = tuple(bool(nbgrader.get(key)) for key in ("grade", "solution", "locked", "task"))
    name = nbgrader.get("grade_id", "")
    match kinds:
        case (False, False, False, False):
            pass
        case (False, False, True, False):
            header["given"] = name
        case (False, True, _, False):
            if not name.endswith(SOLUTION_SUFFIX):
                raise ValueError(
                    f"the id of a solution cell ends in {SOLUTION_SUFFIX}, this one is {name!r}: "
                    "rename it in the Create Assignment panel"
                )
            header["solution"] = name.removesuffix(SOLUTION_SUFFIX)
        case (True, False, _, False):
            header["test"] = name
        case (False, False, _, True):
            header["task"] = name
        case _:
            raise ValueError(
                f"cell {name!r} is marked as an answer that is graded by hand: the text knows "
                "given, solution, test and task; use a manually graded task"
            )
    if "points" in nbgrader and ("test" in header or "task" in header):
        points = nbgrader["points"]
        header["points"] = int(points) if float(points).is_integer() else points
    if node.metadata.get("tags"):
        header["tags"] = list(node.metadata.tags)
    return header


def insert_import(source: str) -> str:
    """Put verify's import on the line after BEGIN HIDDEN TESTS."""
    return source.replace(BEGIN_HIDDEN + "\n", f"{BEGIN_HIDDEN}\n{VERIFY_IMPORT}\n", 1)


def remove_import(source: str) -> str:
    """Take it away again."""
    return source.replace(f"{BEGIN_HIDDEN}\n{VERIFY_IMPORT}\n", BEGIN_HIDDEN + "\n", 1)


def to_node(cell: Cell, cell_id: str) -> NotebookNode:
    """The notebook's cell: metadata expanded, the verify import put in, no outputs."""
    metadata: dict[str, Any] = {}
    if nbgrader := nbgrader_metadata(dict(cell.header)):
        metadata["nbgrader"] = nbgrader
    if tags := cell.header.get("tags"):
        metadata["tags"] = list(tags)
        if HIDE_INPUT in tags:  # JupyterLab folds the code away: a drill's holds its answer
            metadata["jupyter"] = {"source_hidden": True}
    source = insert_import(cell.source) if "test" in cell.header else cell.source
    make = nbformat.v4.new_code_cell if cell.kind == "code" else nbformat.v4.new_markdown_cell
    return make(source, id=cell_id, metadata=metadata)


def from_node(node: NotebookNode) -> Cell:
    """The cell as a text says it; outputs, ids and checksums are left behind.

    Raises ValueError for what a text can't hold: raw cells, attachments, unknown nbgrader cells.
    """
    if node.cell_type not in ("code", "markdown"):
        raise ValueError(f"a {node.cell_type} cell has no form in the text: make it markdown")
    if node.get("attachments"):
        raise ValueError(
            "a pasted image can't be kept in the text: draw it with a cell, or link a file"
        )
    header = header_of(node)
    source = remove_import(node.source) if "test" in header else node.source
    return Cell(node.cell_type, source.rstrip("\n"), header)


def cell_ids(cells: Iterable[Cell]) -> list[str]:
    """An id for each cell that survives edits elsewhere: nbgrader's id, or a hash of the content.

    Equal plain cells are numbered.
    """
    ids: list[str] = []
    seen: Counter[str] = Counter()
    for cell in cells:
        nbgrader = nbgrader_metadata(dict(cell.header))
        cell_id = nbgrader["grade_id"] if nbgrader else plain_id(cell)
        seen[cell_id] += 1
        ids.append(cell_id if seen[cell_id] == 1 else f"{cell_id}-{seen[cell_id]}")
    return ids


def plain_id(cell: Cell) -> str:
    """Eight hex digits over kind and source."""
    return hashlib.sha256(f"{cell.kind}\n{cell.source}".encode()).hexdigest()[:8]


def regions(source: str, begin: str, end: str) -> list[tuple[int, int]]:
    """Pairs of line indices (of `begin`, of `end`) in the source.

    Raises ValueError when the delimiters are not balanced or not alone on their lines.
    """
    found: list[tuple[int, int]] = []
    opened: int | None = None
    for index, line in enumerate(source.split("\n")):
        # nbgrader looks for the bare words anywhere in a line, so a sloppy delimiter still counts.
        words = next((word for word in (begin, end) if word.strip("#= ") in line), None)
        if words is None:
            continue
        if line.strip() != words:
            raise ValueError(f"write the delimiter alone on its line, as {words!r}")
        if (words == begin) != (opened is None):
            raise ValueError(f"{words!r} has no partner: each BEGIN needs one END after it")
        if words == begin:
            opened = index
        else:
            assert opened is not None
            found.append((opened, index))
            opened = None
    if opened is not None:
        raise ValueError(f"{begin!r} has no {end!r} after it")
    return found


def outside(source: str, spans: Sequence[tuple[int, int]]) -> list[tuple[int, str]]:
    """The (index, line) of each line that lies in no region, delimiters left out."""
    return [
        (index, line)
        for index, line in enumerate(source.split("\n"))
        if not any(begin <= index <= end for begin, end in spans)
    ]
