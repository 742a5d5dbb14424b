"""Read one autograded notebook: its verdicts, notes, times and the way it was run.

A notebook may have been graded without a sandbox, where a learner's code can write anything into a
verdict. So values that do not have the expected type count as missing.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import nbformat
from nbformat.notebooknode import NotebookNode

from grader.judging.graded_cell import read_verdicts
from grader.run_record import CellRecord, RunRecord
from grader.submission.notes import Note
from grader.untrusted import mapping, text
from grader.verdict import Verdict


@dataclass(frozen=True)
class GradedNotebook:
    """One learner's notebook after grading.

    Attributes:
        problem: why the file could not be read, or empty.
        verdicts: verdicts by ``grade_id``.
        notes: repairs before grading, each with ``kind``, ``message`` and ``cell`` ("" for none).
        seed: the seed that the cases were drawn from, or empty.
        lab: a hash of the lab, its checks, the settings and the grader, or empty.
        sandbox: whether the code ran in a sandbox; None if that was not recorded.
        seconds: how long grading took or, if that was not recorded, how long the cells ran.
        recorded: whether ``seconds`` was recorded.
        cell_seconds: run time of graded cells and their solution cells, by ``grade_id``.
        graded_at: when the last cell ended or, if that is unknown, when the file was written;
            seconds since the epoch.
    """

    problem: str = ""
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    notes: list[Note] = field(default_factory=list)
    seed: str = ""
    lab: str = ""
    sandbox: bool | None = None
    seconds: float | None = None
    recorded: bool = False
    cell_seconds: dict[str, float] = field(default_factory=dict)
    graded_at: float | None = None


def read_graded(path: Path) -> GradedNotebook:
    """Read one notebook in ``autograded/``. nbgrader wrote it, so its format is not validated."""
    try:
        nb = nbformat.v4.reads(path.read_text(encoding="utf-8"))
        return _graded(nb, path.stat().st_mtime)
    except FileNotFoundError:
        return GradedNotebook(problem="there is no graded notebook")
    except (OSError, ValueError, KeyError, AttributeError, TypeError):
        return GradedNotebook(problem="the graded notebook could not be read")


def _graded(nb: NotebookNode, written: float) -> GradedNotebook:
    run = RunRecord.of(nb.metadata)
    spans = [span for cell in nb.cells if (span := _span(cell)) is not None]
    cells = {name: took for cell in nb.cells if (name := _name(cell)) and (took := _took(cell))}
    ran = spans[-1][1] - spans[0][0] if spans else None
    return GradedNotebook(
        verdicts=read_verdicts(nb),
        notes=list(run.notes),
        seed=run.seed,
        lab=run.lab,
        sandbox=run.sandbox,
        seconds=ran if run.seconds is None else run.seconds,
        recorded=run.seconds is not None,
        cell_seconds=cells,
        graded_at=spans[-1][1] if spans else written,
    )


def _name(cell: NotebookNode) -> str:
    return text(mapping(cell.metadata.get("nbgrader")).get("grade_id"))


def _took(cell: NotebookNode) -> float:
    """Seconds that the cell took: as recorded, or else between nbclient's stamps."""
    recorded = CellRecord.of(cell).seconds
    if recorded is not None:
        return recorded
    start, end = _span(cell) or (0.0, 0.0)
    return end - start


def _span(cell: NotebookNode) -> tuple[float, float] | None:
    """Return when a cell started and ended by nbclient's stamps, in seconds since the epoch.

    The result is None when a stamp is missing.
    """
    stamps: Any = mapping(cell.metadata.get("execution"))
    with contextlib.suppress(TypeError, ValueError):
        start = datetime.fromisoformat(stamps.get("iopub.execute_input"))
        end = datetime.fromisoformat(stamps.get("shell.execute_reply"))
        return start.timestamp(), end.timestamp()
    return None
