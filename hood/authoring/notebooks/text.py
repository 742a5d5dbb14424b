"""The text form of a lesson or lab: jupytext's py:percent, below a YAML header in comments."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeGuard

import jupytext
import nbformat.v4
import yaml
from jupytext.cell_reader import DoublePercentScriptCellReader

from hood import UserError
from hood.metadata import KEY

FENCE = "# ---"
HIDE_INPUT = "hide-input"
NEEDS_KERNEL = "needs-kernel"  # marks a cell that makes no sense on the site, without a kernel
CELL_HEADER = re.compile(r"# %%(?:\s|$)")
ROLES = (
    "given",  # a name for the cell; learners get the cell and cannot change it
    "solution",  # the exercise whose stub and solution are in the cell
    "test",  # the exercise whose graded cell this is
    "task",  # a name for the question in words that is in the cell, with its mark scheme
)
HEADER_KEYS = (
    *ROLES,
    "points",  # the points of a cell with `test` or `task`
    # a list: "needs-kernel" for a cell that the site leaves out, and "printed 37" for a number of
    # the text that the code above it printed
    "tags",
)
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
FORMAT = {"extension": ".py", "format_name": "percent", "comment_magics": False}
# Keys that jupytext adds to a cell's metadata. They describe the layout of the text.
LOOK = {"lines_to_next_cell", "lines_to_end_of_cell_marker", "cell_marker"}


@dataclass(frozen=True, order=True)
class Problem:
    """A problem in a file of the project, and its line; line 0 means the whole file."""

    path: str
    line: int
    message: str

    def __str__(self) -> str:
        where = f"{self.path}:{self.line}" if self.line else self.path
        return f"{where}: {self.message}"


class Refused(UserError):
    """The build refuses its input because of `problems`, which is a sorted list."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = sorted(set(problems))
        super().__init__("\n".join(map(str, self.problems)))


def refuse_if_any(problems: Iterable[Problem]) -> None:
    if found := list(problems):
        raise Refused(found)


@dataclass(frozen=True)
class TextCell:
    """A cell of a text; it may also come from a notebook."""

    kind: str  # "code" or "markdown" ("raw" is parsed, and `lint` refuses it)
    source: str  # without the cell's header, and without blank lines at its end
    header: Mapping[str, Any] = field(default_factory=dict)  # {"test": "as_rows", "points": 2}
    line: int = field(default=0, compare=False)  # the header's line; 0 in a cell from a notebook
    look: Mapping[str, Any] = field(default_factory=dict, compare=False)  # layout, for jupytext

    @property
    def name(self) -> str | None:
        """The name of an exercise or given cell: the value of given, solution, test or task."""
        return next((self.header[role] for role in ROLES if role in self.header), None)

    @property
    def fingerprint(self) -> str:
        """Eight hex digits of a hash of kind, header and source; equal for equal cells."""
        content = json.dumps([self.kind, self.source, dict(self.header)], sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()[:8]


@dataclass(frozen=True)
class Text:
    path: str  # relative to the project's root
    prefix: str  # everything above its first cell
    kernelspec: Mapping[str, Any]
    course: Mapping[str, Any]  # the `open_the_hood` settings in its header
    cells: tuple[TextCell, ...]
    problems: tuple[Problem, ...] = ()  # what could not be parsed

    @property
    def points(self) -> float:
        """The points of a lab's graded cells together; 0 for a lesson."""
        points = (cell.header.get("points") for cell in self.cells)
        return sum(one for one in points if is_points(one))


def is_points(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and value > 0


def at(text: Text, cell: TextCell, message: str, index: int | None = None) -> Problem:
    """Return a problem at a cell's header, or at line `index` (from 0) of its source."""
    # A markdown cell in triple quotes has one more line above its source.
    quoted = len(cell.look.get("cell_marker", "")) == 3
    line = cell.line if index is None else cell.line + 1 + quoted + index
    return Problem(text.path, line, message)


@lru_cache(maxsize=64)  # a lab's text is read for each of its exercises
def parse(path: str, content: str) -> Text:
    """Parse a py:percent text. `problems` of the result has everything that could not be parsed."""
    lines = content.splitlines()
    metadata, start, problems = read_header(path, lines)
    while start < len(lines) and not lines[start]:
        start += 1
    prefix, cells = "".join(f"{line}\n" for line in lines[:start]), []
    while start < len(lines):
        node, size = DoublePercentScriptCellReader(FORMAT, "python").read(lines[start:])
        if not CELL_HEADER.match(lines[start]):
            problems.append(Problem(path, start + 1, "text above the first `# %%` cell header"))
        header = {key: node.metadata[key] for key in HEADER_KEYS if key in node.metadata}
        look = {key: node.metadata[key] for key in LOOK if key in node.metadata}
        for key in sorted(node.metadata.keys() - {*HEADER_KEYS, *LOOK}):
            message = f"unknown header key {key!r} ({node.metadata[key]!r}); known: "
            message += ", ".join(HEADER_KEYS)
            if key == "incorrectly_encoded_metadata":
                message = f'header {node.metadata[key]!r} is not understood: write key="value"'
            problems.append(Problem(path, start + 1, message))
        source = node.source.rstrip("\n")
        cells.append(TextCell(node.cell_type, source, header, start + 1, look))
        start += size
    kernel, course = metadata.get("kernelspec") or KERNEL, metadata.get(KEY) or {}
    return Text(path, prefix, kernel, course, tuple(cells), tuple(problems))


def read_header(path: str, lines: Sequence[str]) -> tuple[dict[str, Any], int, list[Problem]]:
    """Return the header's `jupyter:`, the index of the line below the header, and problems."""
    if FENCE not in lines[:1] or FENCE not in lines[1:]:
        return {}, 0, [Problem(path, 1, "no YAML header between two `# ---` lines at the top")]
    end = lines.index(FENCE, 1)
    header = "\n".join(line.removeprefix("#").removeprefix(" ") for line in lines[1:end])
    line, message = 1, "the YAML header needs jupyter: open_the_hood: {title: ...}"
    try:
        metadata = yaml.safe_load(header)["jupyter"]
        metadata[KEY]["title"]
    except (yaml.YAMLError, ValueError) as error:  # ValueError: an impossible date
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 2 if mark else 1
        said = getattr(error, "problem", None) or str(error).split("\n")[0]
        message = f"the YAML header can't be read: {said}"
    except (KeyError, TypeError):
        pass
    else:
        unknown = sorted(set(metadata) - {"kernelspec", KEY})
        found = [Problem(path, 1, f"unknown key {key!r} in the YAML header") for key in unknown]
        return metadata, end + 1, found
    return {}, end + 1, [Problem(path, line, message)]


def assemble(text: Text, cells: Iterable[TextCell]) -> str:
    """Return the text with these cells, written by jupytext.

    A cell that the text already has keeps its layout, so a text's own cells give the same bytes.
    """
    looks = {cell.fingerprint: cell.look for cell in text.cells}
    nodes = []
    for cell in cells:
        make = nbformat.v4.new_code_cell if cell.kind == "code" else nbformat.v4.new_markdown_cell
        header = {key: cell.header[key] for key in HEADER_KEYS if key in cell.header}
        look = looks.get(cell.fingerprint, {"lines_to_next_cell": 1})
        nodes.append(make(cell.source, metadata={**header, **look}))
    settings = {"notebook_metadata_filter": "-all", "cell_metadata_filter": "all"}
    notebook = nbformat.v4.new_notebook(cells=nodes, metadata={"jupytext": settings})
    return text.prefix + jupytext.writes(notebook, fmt=dict(FORMAT)).strip("\n") + "\n"
