"""Convert a text's cell to a notebook cell and back: nbgrader's metadata, ids, verify's import."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import nbformat.v4
from nbformat import NotebookNode

from grader.build.text import TextCell
from grader.phase_paths import slug

BEGIN_SOLUTION, END_SOLUTION = "### BEGIN SOLUTION", "### END SOLUTION"
BEGIN_HIDDEN, END_HIDDEN = "### BEGIN HIDDEN TESTS", "### END HIDDEN TESTS"
BEGIN_SCHEME, END_SCHEME = "=== BEGIN MARK SCHEME ===", "=== END MARK SCHEME ==="
# The delimiters of the parts that learners do not get, by the role of the cell that may have them.
REGIONS = {
    "solution": (BEGIN_SOLUTION, END_SOLUTION),
    "test": (BEGIN_HIDDEN, END_HIDDEN),
    "task": (BEGIN_SCHEME, END_SCHEME),
}
VERIFY_IMPORT = "from grader.verify import verify"
# A lab may be opened where the course is not installed, such as in a folder that was fetched.
CHECK_IMPORT = "from utils.notebook.verdict import check"
WITHOUT_UTILS = f"""\
try:
    {CHECK_IMPORT}
except ModuleNotFoundError:
    raise SystemExit(
        "This lab needs utils, the course's own package, and this Python does not have it. "
        "Unpack the course's archive (open-the-hood.zip, from whoever gave you this lab), run "
        "%pip install --editable FOLDER in a cell, with that folder, and restart the kernel."
    ) from None

"""
SOLUTION_SUFFIX = "_solution"
HIDE_INPUT = "hide-input"
HEADING = re.compile(r"#{1,6} +(.+)")


def nbgrader_metadata(header: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return nbgrader's metadata (schema 3) for a cell's header; None for a plain cell.

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
    """Return the header that a notebook cell has in a text: the reverse of `nbgrader_metadata`.

    Raises:
        ValueError: for a kind of nbgrader cell that a text cannot express.
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
                    f"the id of a solution cell must end in {SOLUTION_SUFFIX}, got {name!r}: "
                    "rename it in the Create Assignment panel"
                )
            header["solution"] = name.removesuffix(SOLUTION_SUFFIX)
        case (True, False, _, False):
            header["test"] = name
        case (False, False, _, True):
            header["task"] = name
        case _:
            raise ValueError(
                f"cell {name!r} is a manually graded answer, which a text cannot express: "
                "expected given, solution, test or task; use a manually graded task"
            )
    if "points" in nbgrader and ("test" in header or "task" in header):
        points = nbgrader["points"]
        header["points"] = int(points) if float(points).is_integer() else points
    if node.metadata.get("tags"):
        header["tags"] = list(node.metadata.tags)
    return header


def insert_import(source: str) -> str:
    """Insert verify's import on the line after BEGIN HIDDEN TESTS."""
    return source.replace(BEGIN_HIDDEN + "\n", f"{BEGIN_HIDDEN}\n{VERIFY_IMPORT}\n", 1)


def remove_import(source: str) -> str:
    """Remove the line that `insert_import` inserted."""
    return source.replace(f"{BEGIN_HIDDEN}\n{VERIFY_IMPORT}\n", BEGIN_HIDDEN + "\n", 1)


def to_node(cell: TextCell, cell_id: str) -> NotebookNode:
    """Return the notebook cell: metadata expanded, no outputs.

    Verify's import is inserted, and what a lab's first cell says where ``utils`` is missing.
    """
    metadata: dict[str, Any] = {}
    if nbgrader := nbgrader_metadata(cell.header):
        metadata["nbgrader"] = nbgrader
    if tags := cell.header.get("tags"):
        metadata["tags"] = list(tags)
        if HIDE_INPUT in tags:  # JupyterLab folds the code, because that of a drill has the answer
            metadata["jupyter"] = {"source_hidden": True}
    source = insert_import(cell.source) if "test" in cell.header else cell.source
    if "given" in cell.header and CHECK_IMPORT in source.split("\n"):
        source = WITHOUT_UTILS + source
    make = nbformat.v4.new_code_cell if cell.kind == "code" else nbformat.v4.new_markdown_cell
    return make(source, id=cell_id, metadata=metadata)


def from_node(node: NotebookNode) -> TextCell:
    """Return the cell as a text has it; outputs, ids and checksums are dropped.

    Raises:
        ValueError: for what a text cannot hold: raw cells, attachments, unknown nbgrader cells.
    """
    if node.cell_type not in ("code", "markdown"):
        raise ValueError(f"a text cannot hold a {node.cell_type} cell: make it markdown")
    if node.get("attachments"):
        raise ValueError("a text cannot hold a pasted image: draw it with a cell, or link a file")
    header = header_of(node)
    source = remove_import(node.source) if "test" in header else node.source
    if "given" in header:
        source = source.removeprefix(WITHOUT_UTILS)
    return TextCell(node.cell_type, source.rstrip("\n"), header)


def cell_ids(cells: Iterable[TextCell]) -> list[str]:
    """Return an id for each cell: nbgrader's id, its heading's slug, or a hash of the content.

    The id does not change when other cells are edited. Equal plain cells are numbered.
    """
    ids: list[str] = []
    seen: Counter[str] = Counter()
    for cell in cells:
        nbgrader = nbgrader_metadata(cell.header)
        cell_id = nbgrader["grade_id"] if nbgrader else plain_id(cell)
        seen[cell_id] += 1
        ids.append(cell_id if seen[cell_id] == 1 else f"{cell_id}-{seen[cell_id]}")
    return ids


def plain_id(cell: TextCell) -> str:
    """Return the slug of the heading that the cell begins with, or eight hex digits of a hash."""
    heading = HEADING.match(cell.source)
    if cell.kind == "markdown" and heading and (name := slug(heading[1])):
        return name
    return hashlib.sha256(f"{cell.kind}\n{cell.source}".encode()).hexdigest()[:8]


def regions(source: str, begin: str, end: str) -> list[tuple[int, int]]:
    """Return pairs of line indices (of `begin`, of `end`) in the source.

    Raises:
        ValueError: when the delimiters are not balanced or not alone on their lines.
    """
    found: list[tuple[int, int]] = []
    opened: int | None = None
    for index, line in enumerate(source.split("\n")):
        # nbgrader looks for the words anywhere in a line, so an inexact delimiter counts for it.
        words = next((word for word in (begin, end) if word.strip("#= ") in line), None)
        if words is None:
            continue
        if line.lstrip() != words:  # the build and nbgrader look for it at the end of the line
            raise ValueError(
                f"a delimiter must be alone on its line, without a space behind: write {words!r}"
            )
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


def regions_of(cell: TextCell, role: str) -> list[tuple[int, int]]:
    """Return the regions of a cell that belong to a role; none for delimiters that are broken."""
    try:
        return regions(cell.source, *REGIONS[role])
    except ValueError:
        return []


def outside(source: str, spans: Sequence[tuple[int, int]]) -> list[tuple[int, str]]:
    """Return (index, line) of each line outside the regions and their delimiters."""
    return [
        (index, line)
        for index, line in enumerate(source.split("\n"))
        if not any(begin <= index <= end for begin, end in spans)
    ]
