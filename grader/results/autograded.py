"""Read one autograded notebook: its verdicts, notes, times and the way it was run.

A notebook may have been graded without a sandbox, where a learner's code can write anything into a
verdict. So values that do not have the expected type count as missing.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import nbformat
from nbformat.notebooknode import NotebookNode

from grader.judging.graded_cell import read_verdicts
from grader.run_record import CellRecord, RunRecord
from grader.untrusted import mapping, text
from grader.verdict import Verdict


@dataclass(frozen=True)
class GradedNotebook(RunRecord):
    """One learner's notebook after grading: the record of its run, and what else it holds.

    Attributes:
        problem: why the file could not be read, or empty.
        verdicts: verdicts by ``grade_id``.
        cell_seconds: run time of graded cells and their solution cells, by ``grade_id``.
        graded_at: when the file was written; seconds since the epoch.
    """

    problem: str = ""
    verdicts: dict[str, Verdict] = field(default_factory=dict)
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
    took = {_name(cell): CellRecord.of(cell).seconds for cell in nb.cells}
    return replace(
        GradedNotebook.of(nb.metadata),
        verdicts=read_verdicts(nb),
        cell_seconds={name: seconds for name, seconds in took.items() if name and seconds},
        graded_at=written,
    )


def _name(cell: NotebookNode) -> str:
    return text(mapping(cell.metadata.get("nbgrader")).get("grade_id"))
