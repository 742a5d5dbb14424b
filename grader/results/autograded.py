"""Read one autograded notebook: its verdicts, notes, times and the way it was run.

A notebook may have been graded without a sandbox, where a learner's code can write anything into a
verdict. So values that do not have the expected type count as missing.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import nbformat

from grader.judging.graded_cell import read_verdicts
from grader.run_record import RunRecord
from grader.verdict import Verdict


@dataclass(frozen=True)
class GradedNotebook(RunRecord):
    """One learner's notebook after grading: the record of its run, and what else it holds.

    Attributes:
        problem: why the file could not be read, or empty.
        verdicts: verdicts by ``grade_id``.
        graded_at: when the file was written; seconds since the epoch.
    """

    problem: str = ""
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    graded_at: float | None = None


def read_graded(path: Path) -> GradedNotebook:
    """Read one notebook in ``autograded/``. nbgrader wrote it, so its format is not validated."""
    try:
        nb = nbformat.v4.reads(path.read_text(encoding="utf-8"))
        found = GradedNotebook.of(nb.metadata)
        return replace(found, verdicts=read_verdicts(nb), graded_at=path.stat().st_mtime)
    except FileNotFoundError:
        return GradedNotebook(problem="there is no graded notebook")
    except (OSError, ValueError, KeyError, AttributeError, TypeError):
        return GradedNotebook(problem="the graded notebook could not be read")
