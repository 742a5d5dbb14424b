"""What one autograded notebook says besides its marks: verdicts, notes, times, how it was run.

A notebook may have been graded without a sandbox, where a learner's code could write anything into
a verdict. So nothing here trusts its shape: what is not of the expected type counts as absent.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import nbformat
from nbformat.notebooknode import NotebookNode

from grader.judging.graded_cell import read_verdicts
from grader.verdict import MAX_TEXT, Verdict


@dataclass(frozen=True)
class GradedNotebook:
    """One learner's notebook after grading.

    Attributes:
        problem: why the file could not be read, or empty.
        verdicts: by ``grade_id``.
        notes: what was put right before grading: ``kind``, ``message``, ``cell`` ("" for none).
        seed: what the cases were drawn from, or empty.
        sandbox: whether the code ran in a sandbox; None where that was not recorded.
        seconds: how long grading took; without a record of that, how long the cells ran.
        recorded: whether ``seconds`` was recorded.
        cell_seconds: of graded cells and of the answers to them, by ``grade_id``.
        graded_at: when the last cell ended, or when the file was written; seconds since the epoch.
    """

    problem: str = ""
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    notes: list[dict[str, str]] = field(default_factory=list)
    seed: str = ""
    sandbox: bool | None = None
    seconds: float | None = None
    recorded: bool = False
    cell_seconds: dict[str, float] = field(default_factory=dict)
    graded_at: float | None = None


def read_graded(path: Path) -> GradedNotebook:
    """Read one notebook in ``autograded/``, without validating what nbgrader has written."""
    try:
        nb = nbformat.v4.reads(path.read_text(encoding="utf-8"))
        return _graded(nb, path.stat().st_mtime)
    except FileNotFoundError:
        return GradedNotebook(problem="there is no graded notebook")
    except (OSError, ValueError, KeyError, AttributeError, TypeError):
        return GradedNotebook(problem="the graded notebook could not be read")


def _graded(nb: NotebookNode, written: float) -> GradedNotebook:
    ours = _mapping(nb.metadata.get("open_the_hood"))
    spans = [span for cell in nb.cells if (span := _span(cell)) is not None]
    cells = {name: took for cell in nb.cells if (name := _name(cell)) and (took := _took(cell))}
    seconds = _number(ours.get("seconds"))
    ran = spans[-1][1] - spans[0][0] if spans else None
    return GradedNotebook(
        verdicts=read_verdicts(nb),
        notes=_notes(ours.get("notes")),
        seed=_text(ours.get("seed")),
        sandbox=ours["sandbox"] if isinstance(ours.get("sandbox"), bool) else None,
        seconds=ran if seconds is None else seconds,
        recorded=seconds is not None,
        cell_seconds=cells,
        graded_at=spans[-1][1] if spans else written,
    )


def _name(cell: NotebookNode) -> str:
    return _text(_mapping(cell.metadata.get("nbgrader")).get("grade_id"))


def _took(cell: NotebookNode) -> float:
    """Seconds that the cell took: as recorded, or else between nbclient's stamps."""
    recorded = _number(_mapping(cell.metadata.get("open_the_hood")).get("seconds"))
    if recorded is not None:
        return recorded
    start, end = _span(cell) or (0.0, 0.0)
    return end - start


def _span(cell: NotebookNode) -> tuple[float, float] | None:
    """When nbclient saw a cell start and end, in seconds since the epoch; None unless it did."""
    stamps: Any = _mapping(cell.metadata.get("execution"))
    with contextlib.suppress(TypeError, ValueError):
        start = datetime.fromisoformat(stamps.get("iopub.execute_input"))
        end = datetime.fromisoformat(stamps.get("shell.execute_reply"))
        return start.timestamp(), end.timestamp()
    return None


def _notes(raw: Any) -> list[dict[str, str]]:
    found = [_mapping(note) for note in (raw if isinstance(raw, list) else [])]
    return [{key: _text(note.get(key)) for key in ("kind", "message", "cell")} for note in found]


def _mapping(raw: Any) -> Mapping[str, Any]:
    return raw if isinstance(raw, Mapping) else {}


def _text(raw: Any) -> str:
    return raw[:MAX_TEXT] if isinstance(raw, str) else ""


def _number(raw: Any) -> float | None:
    return float(raw) if isinstance(raw, (int, float)) and abs(raw) < 1e9 else None
