"""Convert a text to a notebook and back. The same text always gives the same bytes."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import nbformat
import nbformat.v4
from nbformat import NotebookNode

from hood.authoring.notebooks.folds import as_text
from hood.authoring.notebooks.text import HIDE_INPUT, ROLES, Problem, Text, TextCell
from hood.grader.sandbox.limits import Limits
from hood.lab_words import BEGIN_HIDDEN
from hood.metadata import CELLS, KEY
from hood.phase_paths import slug

LANGUAGE = {
    "name": "python",
    "file_extension": ".py",
    "mimetype": "text/x-python",
    "pygments_lexer": "ipython3",
}
# nbgrader's metadata for a cell of each role.
FLAGS = {
    "given": {"grade": False, "solution": False, "locked": True, "task": False},
    "solution": {"grade": False, "solution": True, "locked": False, "task": False},
    "test": {"grade": True, "solution": False, "locked": True, "task": False},
    "task": {"grade": False, "solution": False, "locked": True, "task": True},
}
WITH_IMPORT = f"{BEGIN_HIDDEN}\nfrom hood.judge.verify import verify\n"
# A lab may be opened where the course is not installed, for example after downloading only the lab.
CHECK_IMPORT = "from hood.learner.check import check"
WITH_GUARD = f"""\
try:
    {CHECK_IMPORT}
except ModuleNotFoundError:
    raise SystemExit(
        "This lab needs the course's own packages, and this Python does not have them. Get the "
        "course's archive from the person who gave you this lab, and unpack it. Run %pip install "
        "--editable FOLDER in a cell, with that folder, and restart the kernel."
    ) from None

"""
# In an older notebook, this code may import from another module, and its words may differ.
GUARD = re.compile(
    r"try:\n    from [\w.]+ import check\nexcept ModuleNotFoundError:\n    raise SystemExit\(\n"
    r'(?:        "[^\n]*"\n)+    \) from None\n\n'
)
# A paragraph about a lab's limits, which goes before the last paragraph of its first cell.
TIME = (
    "\n\nGrading stops a cell after {} s, and the whole lab after {} s. Cells of your own that no "
    "exercise needs have another {} s, together."
)
ANY_TIME = re.compile(re.escape(TIME).replace(r"\{\}", r"\d+"))
SOLUTION_SUFFIX = "_solution"
HEADING = re.compile(r"#{1,6} +(.+)")


def nbgrader_metadata(header: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return nbgrader's metadata (schema 3) for a cell's header; None for a plain cell."""
    role = next((role for role in ROLES if role in header), None)
    if role is None:
        return None
    name = header[role] + (SOLUTION_SUFFIX if role == "solution" else "")
    points = {"points": header["points"]} if "points" in header else {}
    return {"schema_version": 3, "grade_id": name} | FLAGS[role] | points


def header_of(node: NotebookNode) -> dict[str, Any]:
    nbgrader = node.metadata.get("nbgrader", {})
    name = nbgrader.get("grade_id", "")
    flags = {key: bool(nbgrader.get(key)) for key in ("grade", "solution", "task")}
    role = next((role for role, said in FLAGS.items() if flags.items() <= said.items()), None)
    if role is None:
        raise ValueError(
            f"cell {name!r} is a manually graded answer, which a text cannot express: "
            "expected given, solution, test or task; use a manually graded task"
        )
    if role == "solution" and not name.endswith(SOLUTION_SUFFIX):
        raise ValueError(
            f"the id of a solution cell must end in {SOLUTION_SUFFIX}, got {name!r}: "
            "rename it in the Create Assignment panel"
        )
    header: dict[str, Any] = {
        role: name.removesuffix(SOLUTION_SUFFIX) if role == "solution" else name
    }
    if role == "given" and not nbgrader.get("locked"):
        header = {}
    if "points" in nbgrader and ("test" in header or "task" in header):
        points = nbgrader["points"]
        header["points"] = int(points) if float(points).is_integer() else points
    if node.metadata.get("tags"):
        header["tags"] = list(node.metadata.tags)
    return header


def to_node(cell: TextCell, cell_id: str) -> NotebookNode:
    metadata: dict[str, Any] = {}
    if nbgrader := nbgrader_metadata(cell.header):
        metadata["nbgrader"] = nbgrader
    if tags := cell.header.get("tags"):
        metadata["tags"] = list(tags)
        if HIDE_INPUT in tags:  # JupyterLab folds the code: a drill's code has the answer
            metadata["jupyter"] = {"source_hidden": True}
    source = cell.source
    if "test" in cell.header:
        source = source.replace(f"{BEGIN_HIDDEN}\n", WITH_IMPORT, 1)
    if "given" in cell.header and CHECK_IMPORT in source.split("\n"):
        source = WITH_GUARD + source
    make = nbformat.v4.new_code_cell if cell.kind == "code" else nbformat.v4.new_markdown_cell
    return make(source, id=cell_id, metadata=metadata)


def from_node(node: NotebookNode) -> TextCell:
    """Return a notebook's cell as a text's cell. Raises ValueError if a text can't have it."""
    if node.cell_type not in ("code", "markdown"):
        raise ValueError(f"a text cannot have a {node.cell_type} cell: use markdown or code")
    if node.get("attachments"):
        raise ValueError("a text cannot have a pasted image: draw it with a cell, or link a file")
    header = header_of(node)
    source = node.source
    if "test" in header:
        source = source.replace(WITH_IMPORT, f"{BEGIN_HIDDEN}\n", 1)
    if node.cell_type == "markdown":
        source = ANY_TIME.sub("", source, count=1)
    if "given" in header:
        source = source[match.end() :] if (match := GUARD.match(source)) else source
    return TextCell(node.cell_type, source.rstrip("\n"), header)


def cell_ids(cells: Sequence[TextCell]) -> list[str]:
    """Return an id for each cell: nbgrader's id, its heading's slug, or a hash of the content.

    If nbgrader gives an id to a cell, no other cell has this id, because these ids are used to
    compare a learner's copy with the lab.
    """
    named = [nbgrader_metadata(cell.header) for cell in cells]
    seen = Counter(str(one["grade_id"]) for one in named if one)
    ids: list[str] = []
    for cell, nbgrader in zip(cells, named, strict=True):
        if nbgrader:
            ids.append(nbgrader["grade_id"])
            continue
        heading = HEADING.match(cell.source) if cell.kind == "markdown" else None
        cell_id = slug(heading[1]) if heading else ""
        if not cell_id:
            cell_id = hashlib.sha256(f"{cell.kind}\n{cell.source}".encode()).hexdigest()[:8]
        seen[cell_id] += 1
        ids.append(cell_id if seen[cell_id] == 1 else f"{cell_id}-{seen[cell_id]}")
    return ids


def to_notebook(text: Text) -> NotebookNode:
    """Return the notebook of a text, without outputs.

    Its metadata has the fingerprints of its cells, so that later edits are detected.
    """
    ids = cell_ids(text.cells)
    metadata = {
        "kernelspec": dict(text.kernelspec),
        "language_info": dict(LANGUAGE),
        KEY: dict(text.course) | {CELLS: fingerprints(text.cells)},
    }
    cells = [*map(to_node, text.cells, ids)]
    if text.points and cells[0].cell_type == "markdown":
        cells[0].source = _with_time(cells[0].source, Limits.of({KEY: text.course}))
    return nbformat.v4.new_notebook(cells=cells, metadata=metadata)


def _with_time(words: str, limits: Limits) -> str:
    total = limits.total_seconds
    before, gap, last = words.rpartition("\n\n")
    said = TIME.format(limits.cell_seconds, total, total)
    return f"{before}{said}{gap}{last}" if before else f"{words}{said}"


def fingerprints(cells: Sequence[TextCell]) -> str:
    return " ".join(cell.fingerprint for cell in cells)


def stamp(notebook: NotebookNode) -> dict[str, Any]:
    """Return the metadata that the build wrote; empty for a notebook that was not built."""
    return dict(notebook.metadata.get(KEY, {}))


def to_cells(path: str, notebook: NotebookNode) -> tuple[list[TextCell], list[Problem]]:
    """Convert a notebook's cells, except empty cells, to a text's cells; also return problems."""
    cells, problems = [], []
    for number, node in enumerate(notebook.cells, start=1):
        if not node.source.strip() and "nbgrader" not in node.metadata:
            continue
        try:
            cells.append(from_node(node))
        except ValueError as error:
            problems.append(Problem(path, 0, f"cell {number}: {error}"))
    return cells, problems


def read(path: Path) -> NotebookNode | None:
    """Return the notebook in a file, without the build's additions to markdown.

    Return None if there is no file. Raises ValueError when the file is not a notebook.
    """
    try:
        notebook = nbformat.reads(path.read_text(encoding="utf-8"), as_version=4)
        for cell in notebook.cells:
            if cell.cell_type == "markdown":
                cell.source = as_text(cell.source)
        return notebook
    except FileNotFoundError:
        return None
    except (ValueError, AttributeError, KeyError, TypeError, nbformat.ValidationError) as error:
        said = str(error).split("\n")[0]
        raise ValueError(f"{path.name} is not a notebook: {said}") from None
