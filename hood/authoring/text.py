"""Write a text, and refuse one; :mod:`hood.phase_text` reads it."""

from __future__ import annotations

from collections.abc import Iterable

import jupytext
import nbformat.v4

from hood import UserError
from hood.phase_text import FORMAT, HEADER_KEYS, Problem, Text, TextCell
from hood.phase_text import HIDE_INPUT as HIDE_INPUT
from hood.phase_text import NEEDS_KERNEL as NEEDS_KERNEL
from hood.phase_text import ROLES as ROLES
from hood.phase_text import parse as parse


class Refused(UserError):
    """The build refuses its input, for all of `problems`, which are sorted."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = sorted(set(problems))
        super().__init__("\n".join(map(str, self.problems)))


def refuse_if_any(problems: Iterable[Problem]) -> None:
    if found := list(problems):
        raise Refused(found)


def at(text: Text, cell: TextCell, message: str, index: int | None = None) -> Problem:
    """Return a problem at a cell's header, or at line `index` (from 0) of its source."""
    # A markdown cell in triple quotes has one more line above its source.
    quoted = len(cell.look.get("cell_marker", "")) == 3
    line = cell.line if index is None else cell.line + 1 + quoted + index
    return Problem(text.path, line, message)


def assemble(text: Text, cells: Iterable[TextCell]) -> str:
    """Return the text with these cells, as jupytext writes it.

    A cell that the text has already keeps its layout, so a text's own cells give the same bytes.
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
