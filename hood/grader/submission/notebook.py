"""Read a submitted notebook from untrusted bytes: the result is its cells, or an error message.

Only each cell's type, text, metadata and pasted images are read. Outputs are ignored.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import nbformat

from hood import untrusted

MAX_BYTES = 50_000_000  # bytes of a submitted notebook
MAX_VALUES = 2_000_000  # JSON values in a submitted notebook
MAX_CELLS = 2_000  # cells of a submitted notebook
MAX_TEXT = 150_000  # characters in all cells of a submitted notebook
MAX_START = 1_000  # the first characters, in which a web page or a pointer is recognised
CELL_TYPES = ("code", "markdown", "raw")


class Unreadable(Exception):
    """The submission is not a readable notebook. The message tells the learner why."""


class OutOfReach(Unreadable):
    """The grading machine can't read existing files, so there is no verdict.

    The message says why.
    """


@dataclass(frozen=True)
class SubmittedCell:
    """The parts of a submitted cell that the grader uses."""

    kind: str  # ``code``, ``markdown`` or ``raw``
    source: str
    metadata: dict[str, Any] = field(default_factory=dict)  # as submitted, with any content
    # Pasted images of a text cell, ``{name: {MIME type: base64}}``
    attachments: dict[str, dict[str, str]] = field(default_factory=dict)

    @property
    def settings(self) -> dict[str, Any]:
        """The cell's nbgrader metadata; empty when there is none."""
        found = self.metadata.get("nbgrader")
        return found if isinstance(found, dict) else {}

    @property
    def grade_id(self) -> str | None:
        """The ``grade_id`` in the cell's metadata. It is not verified."""
        claimed = self.settings.get("grade_id")
        return claimed if isinstance(claimed, str) else None

    @property
    def tags(self) -> list[str]:
        """The cell's tags."""
        tags = self.metadata.get("tags")
        return [t for t in tags if isinstance(t, str)] if isinstance(tags, list) else []


class SubmittedCells(list[SubmittedCell]):
    """The cells of a submitted notebook."""

    python = ""  # the version of Python that the notebook says it ran with, or empty


def read_submission(data: bytes) -> SubmittedCells:
    """Return the cells of a submitted notebook. Entries that are not cells are left out.

    Raises Unreadable if ``data`` is not a notebook of format 1 to 4, or is too large.
    """
    if len(data) > MAX_BYTES:
        raise Unreadable(too_large(len(data)))
    if not data.strip():
        raise Unreadable("The file is empty. Save the notebook and hand it in again.")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Unreadable(
            "The file is not text in UTF-8, so it is not a notebook. Hand in the .ipynb file "
            "itself."
        ) from None
    start = text[:MAX_START].lstrip().lower()
    if start.startswith(("<!doctype html", "<html")):
        raise Unreadable(
            "The file is a web page (HTML) that a browser saved, not a notebook. Download the "
            "notebook itself: in JupyterLab, File > Download."
        )
    if start.startswith("version https://git-lfs.github.com/"):
        raise Unreadable(
            "The file is a Git LFS pointer, not the notebook itself: run `git lfs pull`, and "
            "hand in the notebook."
        )
    if sum(map(text.count, ",[{")) > MAX_VALUES:
        raise Unreadable(
            f"The file has more than {MAX_VALUES:,} values. Clear large outputs and hand it in "
            "again."
        )
    try:
        tree = json.loads(text)
    except (ValueError, RecursionError):
        raise Unreadable(
            "The file is damaged: it is not valid JSON. Open it in JupyterLab, and if that fails, "
            "copy your answers into a new copy of this lab."
        ) from None
    if not isinstance(tree, dict) or not isinstance(tree.get("nbformat"), int):
        raise Unreadable("The file is JSON, but not a notebook. Hand in the .ipynb file.")
    raw_cells = _raw_cells(tree)
    if len(raw_cells) > MAX_CELLS:
        raise Unreadable(
            f"The notebook has {len(raw_cells):,} cells; at most {MAX_CELLS:,} are read. Delete "
            "cells that you do not need."
        )
    cells = SubmittedCells(cell for raw in raw_cells if (cell := _cell(raw)) is not None)
    language = untrusted.mapping(tree.get("metadata")).get("language_info")
    cells.python = untrusted.text(untrusted.mapping(language).get("version"))
    characters = sum(len(cell.source) for cell in cells)
    if characters > MAX_TEXT:
        raise Unreadable(
            f"The notebook has {characters:,} characters of code and text; at most "
            f"{MAX_TEXT:,} are read. Shorten it and hand it in again."
        )
    return cells


def too_large(size: int, most: int = MAX_BYTES) -> str:
    """Return the message about a file of ``size`` bytes if at most ``most`` are read."""
    return (
        f"The file is {size / 1e6:.0f} MB; at most {most / 1e6:.0f} MB are read. "
        "Clear large outputs and hand it in again."
    )


def _raw_cells(tree: dict[str, Any]) -> list[Any]:
    if tree["nbformat"] < 4:
        try:
            tree = nbformat.convert(nbformat.from_dict(tree), 4)
        except Exception as error:  # the converters of old formats raise many kinds of errors
            raise Unreadable(
                f"The notebook has the old format {tree['nbformat']} and could not be converted. "
                "Open it in JupyterLab and save it there."
            ) from error
    elif tree["nbformat"] > 4:
        raise Unreadable(
            f"The notebook has format {tree['nbformat']}; formats up to 4 are read. "
            "Save it with JupyterLab."
        )
    cells = tree.get("cells")
    if not isinstance(cells, list):
        raise Unreadable("The file is a notebook without a list of cells.")
    return cells


def _cell(raw: Any) -> SubmittedCell | None:
    if not isinstance(raw, dict) or raw.get("cell_type") not in CELL_TYPES:
        return None
    source = raw.get("source", "")
    if isinstance(source, list):
        source = "".join(line for line in source if isinstance(line, str))
    if not isinstance(source, str):
        return None
    metadata = raw.get("metadata")
    return SubmittedCell(
        kind=raw["cell_type"],
        source=_clean(source),
        metadata=metadata if isinstance(metadata, dict) else {},
        attachments=_images(raw.get("attachments")) if raw["cell_type"] == "markdown" else {},
    )


def _clean(text: str) -> str:
    """Replace lone surrogates with question marks: JSON allows surrogates, UTF-8 files do not."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _images(attachments: Any) -> dict[str, dict[str, str]]:
    if not isinstance(attachments, dict):
        return {}
    return {
        _clean(name): images
        for name, bundle in attachments.items()
        if isinstance(bundle, dict)
        and (
            images := {
                kind: _clean(data)
                for kind, data in bundle.items()
                if kind in ("image/png", "image/jpeg") and isinstance(data, str)
            }
        )
    }
