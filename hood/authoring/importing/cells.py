"""Read the cells of an assignment's notebook as data, within limits, without running their code."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nbformat

from hood import UserError
from hood.grader.submission.notebook import MAX_BYTES, MAX_CELLS, MAX_TEXT
from hood.untrusted import mapping

PYTHON = ("", "python")


@dataclass(frozen=True)
class Cell:
    kind: str  # "code", "markdown" or "raw"
    source: str
    settings: dict[str, Any] = field(default_factory=dict)  # nbgrader's metadata; may be empty
    output: str | None = None  # the text that the cell printed and returned, if it is stored
    pasted: bool = False  # whether it has a pasted image


def read_cells(path: Path) -> list[Cell]:
    """Return the cells of a notebook.

    Raises UserError if the file is missing or too large, or is not a notebook in Python.
    """
    try:
        if path.stat().st_size > MAX_BYTES:
            raise UserError(f"{path}: expected a notebook of at most {MAX_BYTES / 1e6:.0f} MB")
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise UserError(f"{path} can't be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UserError(f"{path}: expected a notebook, got a file that is not UTF-8") from None
    try:
        notebook = nbformat.reads(text, as_version=4)
        language = mapping(notebook.metadata.get("language_info")).get("name")
        language = language or mapping(notebook.metadata.get("kernelspec")).get("language") or ""
        raw = [one for one in notebook.cells if isinstance(one, dict)]
    except Exception as error:  # nbformat raises many kinds of errors for a damaged notebook
        said = str(error).split("\n")[0][:200]
        raise UserError(f"{path}: expected a notebook, got something else: {said}") from None
    if str(language).lower() not in PYTHON:
        raise UserError(f"{path}: expected a notebook in Python, got one in {language!r:.40}")
    cells = [_cell(one) for one in raw if isinstance(one.get("source"), str)]
    size = sum(len(cell.source) for cell in cells)
    if len(cells) > MAX_CELLS or size > MAX_TEXT:
        raise UserError(
            f"{path}: expected at most {MAX_CELLS:,} cells with {MAX_TEXT:,} characters, got "
            f"{len(cells):,} cells with {size:,} characters: divide the notebook"
        )
    return cells


def _cell(raw: dict[str, Any]) -> Cell:
    kind = raw.get("cell_type")
    return Cell(
        kind if kind in ("code", "markdown") else "raw",
        # JSON allows single surrogates, but a file in UTF-8 does not
        raw["source"].encode("utf-8", "replace").decode("utf-8").replace("\r\n", "\n"),
        mapping(mapping(raw.get("metadata")).get("nbgrader")),
        _output(raw.get("outputs")),
        bool(raw.get("attachments")),
    )


def _output(outputs: Any) -> str | None:
    """Return what a cell printed and returned, as text; None if no output is stored."""
    found = ""
    for one in outputs if isinstance(outputs, list) else ():
        data = mapping(mapping(one).get("data"))
        for text in (mapping(one).get("text"), data.get("text/plain")):
            found += "".join(map(str, text)) if isinstance(text, list) else str(text or "")
    return found.strip()[:MAX_TEXT] or None
