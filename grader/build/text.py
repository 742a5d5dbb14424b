"""The text form of a lesson or lab: jupytext's py:percent, with a YAML header in comments.

`parse` reads a text into cells that know their line numbers; `assemble` writes a text back. A cell
that did not change keeps its bytes, so text -> cells -> text is the identity.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import pairwise
from typing import Any

import jupytext
import nbformat.v4
import yaml
from jupytext.stringparser import StringParser

from grader.build.problems import Problem
from grader.metadata import KEY, fingerprint

FENCE = "# ---"
CELL_HEADER = re.compile(r"# %%(?:\s|$)")
HEADER_KEYS = ("given", "solution", "test", "task", "points", "tags")
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
# Keys that jupytext adds to a cell's metadata about the layout of the text, not its content.
LOOK = {"lines_to_next_cell", "lines_to_end_of_cell_marker", "cell_marker"}


@dataclass(frozen=True)
class TextCell:
    """A cell as a text has it, whether it was read from a text or from a notebook.

    Attributes:
        kind: "code" or "markdown" ("raw" is read, and refused by the rules).
        source: without the cell's header, and without blank lines at its end.
        header: the keys in the cell's header, such as {"test": "as_rows", "points": 2}.
        line: the header's line in the text, from 1; 0 for a cell read from a notebook.
        raw: the cell's own characters in the text, from its header to the next one.
    """

    kind: str
    source: str
    header: Mapping[str, Any] = field(default_factory=dict)
    line: int = 0
    raw: str = field(default="", compare=False)

    @property
    def name(self) -> str | None:
        """The exercise that it belongs to: the value of given, solution, test or task."""
        return next((self.header[key] for key in HEADER_KEYS[:4] if key in self.header), None)

    @property
    def fingerprint(self) -> str:
        """Eight hex digits of a hash of kind, header and source; equal for equal cells."""
        return fingerprint(self.kind, self.source, self.header)


@dataclass(frozen=True)
class Text:
    """A parsed text.

    Attributes:
        path: its path, relative to the project's root.
        prefix: everything above its first cell.
        kernelspec: the kernel in its header.
        course: the `open_the_hood` settings in its header.
        cells: its cells.
        problems: what could not be parsed.
    """

    path: str
    prefix: str
    kernelspec: Mapping[str, Any]
    course: Mapping[str, Any]
    cells: tuple[TextCell, ...]
    problems: tuple[Problem, ...] = ()


def at(text: Text, cell: TextCell, message: str, index: int | None = None) -> Problem:
    """Return a problem at a cell's header, or at line `index` (from 0) of its source."""
    # A markdown cell in triple quotes has one more line above its source.
    quoted = cell.kind == "markdown" and cell.raw.split("\n", 2)[1:2] in (['"""'], ["'''"])
    line = cell.line if index is None else cell.line + 1 + quoted + index
    return Problem(text.path, line, message)


@lru_cache(maxsize=64)  # a lab's text is read for each of its exercises
def parse(path: str, content: str) -> Text:
    """Parse a py:percent text. What cannot be read is reported in `problems`, with its line."""
    lines = content.splitlines(keepends=True)
    header, start = split_header(lines)
    metadata, problems = read_header(path, header)
    starts = cell_starts(lines, start)
    above = "".join(lines[start : starts[0] if starts else None])
    if above.strip():
        problems.append(Problem(path, start + 1, "text above the first `# %%` cell header"))
    cells = []
    for first, end in pairwise([*starts, len(lines)]):
        cell, cell_problems = read_cell(path, first + 1, "".join(lines[first:end]))
        cells.append(cell)
        problems += cell_problems
    prefix = "".join(lines[: starts[0] if starts else None])
    return Text(
        path,
        prefix,
        metadata.get("kernelspec") or KERNEL,
        metadata.get(KEY) or {},
        tuple(cells),
        tuple(problems),
    )


def split_header(lines: Sequence[str]) -> tuple[str, int]:
    """Return the YAML between the first two `# ---` lines, and the index of the next line."""
    bare = [line.rstrip("\n") for line in lines]
    if not bare or bare[0] != FENCE or FENCE not in bare[1:]:
        return "", 0
    end = bare.index(FENCE, 1)
    return "\n".join(line.removeprefix("#").removeprefix(" ") for line in bare[1:end]), end + 1


def read_header(path: str, header: str) -> tuple[dict[str, Any], list[Problem]]:
    """Return the mapping under `jupyter:`. Keys except kernelspec and open_the_hood are refused."""
    if not header:
        return {}, [Problem(path, 1, "no YAML header between two `# ---` lines at the top")]
    try:
        metadata = yaml.safe_load(header)["jupyter"]
        metadata[KEY]["title"]
    except (yaml.YAMLError, ValueError) as error:  # ValueError: a date that is none
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 2 if mark else 1
        said = getattr(error, "problem", None) or str(error).split("\n")[0]
        return {}, [Problem(path, line, f"the YAML header can't be read: {said}")]
    except (KeyError, TypeError):
        return {}, [Problem(path, 1, "the YAML header needs jupyter: open_the_hood: {title: ...}")]
    unknown = sorted(set(metadata) - {"kernelspec", KEY})
    return metadata, [
        Problem(path, 1, f"unknown key {key!r} in the YAML header") for key in unknown
    ]


def cell_starts(lines: Sequence[str], start: int) -> list[int]:
    """Return the indices of `# %%` lines, except those inside a multi-line string."""
    starts = []
    parser = StringParser("python")
    for index in range(start, len(lines)):
        line = lines[index].rstrip("\n")
        if not parser.is_quoted() and CELL_HEADER.match(line):
            starts.append(index)
            parser = StringParser("python")
        else:
            parser.read_line(line)
    return starts


def read_cell(path: str, line: int, raw: str) -> tuple[TextCell, list[Problem]]:
    """Parse one cell with jupytext. Its header may have only the known keys."""
    nodes = jupytext.reads(raw, fmt="py:percent").cells
    node = nodes[0]
    header = {key: value for key, value in node.metadata.items() if key not in LOOK}
    problems = []
    if len(nodes) != 1:
        problems.append(Problem(path, line, "a line in this cell looks like a cell header"))
    for key, value in header.items():
        if key == "incorrectly_encoded_metadata":
            message = f'header {value!r} is not understood: write key="value"'
        elif key not in HEADER_KEYS:
            message = f"unknown header key {key!r} ({value!r}); known: {', '.join(HEADER_KEYS)}"
        else:
            continue
        problems.append(Problem(path, line, message))
    known = {key: header[key] for key in HEADER_KEYS if key in header}
    return TextCell(node.cell_type, node.source.rstrip("\n"), known, line, raw), problems


def render_cell(cell: TextCell) -> str:
    """Return the cell as text, by jupytext, with one newline at its end."""
    make = nbformat.v4.new_code_cell if cell.kind == "code" else nbformat.v4.new_markdown_cell
    header = {key: cell.header[key] for key in HEADER_KEYS if key in cell.header}
    settings = {"notebook_metadata_filter": "-all", "cell_metadata_filter": "all"}
    notebook = nbformat.v4.new_notebook(
        cells=[make(cell.source, metadata=header)], metadata={"jupytext": settings}
    )
    return jupytext.writes(notebook, fmt="py:percent").strip("\n") + "\n"


def assemble(prefix: str, old: Sequence[TextCell], new: Iterable[TextCell]) -> str:
    """Return a text of the new cells, in which cells that are among the old ones keep their bytes.

    Blank lines after a cell belong to it; between cells that are new neighbours there is at least
    one.
    """
    new = list(new)
    origins = origins_of(old, new)
    chunks = []
    for index, (cell, origin) in enumerate(zip(new, origins, strict=True)):
        chunk = render_cell(cell) if origin is None else old[origin].raw
        last = index == len(new) - 1
        follower = len(old) if last else origins[index + 1]
        if origin is None or follower != origin + 1:
            gap = max(len(chunk) - len(chunk.rstrip("\n")), 2)
            chunk = chunk.rstrip("\n") + ("\n" if last else "\n" * gap)
        chunks.append(chunk)
    return prefix + "".join(chunks)


def origins_of(old: Sequence[TextCell], new: Sequence[TextCell]) -> list[int | None]:
    """Return for each new cell the index of the equal old cell, or None for a changed cell."""
    origins: list[int | None] = [None] * len(new)
    matcher = SequenceMatcher(
        None, [cell.fingerprint for cell in old], [cell.fingerprint for cell in new], autojunk=False
    )
    for old_start, new_start, size in matcher.get_matching_blocks():
        for offset in range(size):
            origins[new_start + offset] = old_start + offset
    return origins
