"""Grade one submission's notebooks, without a gradebook or a shared disk."""

from __future__ import annotations

import sys
import tempfile
from dataclasses import replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from nbformat.notebooknode import NotebookNode
from nbgrader.preprocessors import Execute
from nbgrader.utils import compute_checksum, determine_grade, is_grade, is_solution, is_task
from traitlets.utils.importstring import import_item

from hood import UserError
from hood.audience import NBGRADER
from hood.grader.batch.job import (
    Job,
    NotebookResult,
    Result,
    as_file,
    can_compile,
    failed,
    given_up,
    read_source,
)
from hood.grader.execution.execute import Execute as SandboxedExecute
from hood.grader.execution.execute import TurnIsOver
from hood.grader.execution.graded_cell import read_verdicts, verified_parts
from hood.grader.inside.long_lived import long_lived
from hood.grader.run_record import RunRecord, record_note
from hood.grader.submission.bounds import TOO_MUCH
from hood.grader.submission.companions import place
from hood.grader.submission.notebook import Unreadable
from hood.grader.submission.notes import Note, NoteKind, record
from hood.grader.submission.rebuild import answer_cells, is_blank, rebuild
from hood.judge.connection.settings import variable
from hood.manifest import Manifest, grader_code, of_grades
from hood.metadata import VERSIONS
from hood.verdict import Cause

# A hash of the code as it was loaded. Later changes of the files don't count.
GRADER = grader_code()


@cache
def manifest_here(lab: str) -> Manifest:
    """Return the versions that a grade by this process depends on."""
    return replace(of_grades(lab), grader=GRADER)


def prepare(job: Job) -> None:
    """Import the judging modules if the lab has a check; this takes seconds.

    Call this before the process's limits start, so that no submission is charged for the imports.
    """
    judged = any(b"verify(" in source for source in job.lab.notebooks.values())
    if judged and sys.modules.get("hood.grader.execution.examiner") is None:
        with long_lived():
            import hood.grader.execution.examiner  # noqa: F401


class GraderFailed(Exception):
    """The submission is not at fault: the grader failed. The message says why."""


def grade(job: Job, scratch: Path | None = None, in_bounds: bool = False) -> Result:
    """Grade one submission. Every outcome is returned as a result; nothing is raised.

    The run's private folder is made in ``scratch``, by default the system's temporary folder.
    ``in_bounds`` says whether this process has the limits of
    :func:`~hood.grader.submission.bounds.bounded`. If it has them, a ``MemoryError`` means that the
    submission used too much memory.
    """
    try:
        if unlike := manifest_here(job.lab.name).compared_with(job.lab.manifest):
            raise GraderFailed(
                "this worker differs from the command that sent the submission: the worker has "
                f"{' and '.join(unlike)}. Install the same versions on both machines"
            )
        if can_compile(job.lab.notebooks) != (sender := job.lab.can_compile):
            lacking = "this worker's machine" if sender else "the machine that sent the submission"
            raise GraderFailed(
                "only one machine has a C++ compiler and Python.h: either this worker's machine or "
                "the machine that sent the submission. A grade must not depend on that. Run "
                f"`python -m hood doctor --install` on {lacking}"
            )
        for source in job.lab.notebooks.values():
            require_checks(source)
        with tempfile.TemporaryDirectory(
            prefix="submission-", dir=scratch, ignore_cleanup_errors=True
        ) as folder:
            place(job.beside(), Path(folder))
            return Result(tuple(_grade_notebook(job, n, folder) for n in job.lab.notebooks))
    except TurnIsOver:
        return Result((), "its turn is over", turn_over=True)
    except UserError as reason:
        return Result((), str(reason), hopeless=True)
    except GraderFailed as reason:
        return failed(job, str(reason))
    except (OSError, MemoryError) as error:  # a full disk, no more processes
        if in_bounds and isinstance(error, MemoryError):
            return given_up(job, TOO_MUCH)
        return failed(
            job, f"the grading machine ran out of a resource: {type(error).__name__}: {error}"
        )
    except Exception as error:
        problem = f"the notebook's outputs could not be processed ({type(error).__name__})"
        return replace(failed(job, problem), retryable=False)


@lru_cache(maxsize=8)
def require_checks(source: bytes) -> None:
    """Refuse a lab with unusable checks, even if a submission would not run them.

    Raises UserError if a check can't be loaded, or if a check and its cell have different points.
    """
    verified = [
        (cell, parts) for cell in read_source(source).cells if (parts := verified_parts(cell))
    ]
    if verified:
        from hood.grader.execution.examiner import check_for  # here, because it imports torch

        for cell, (_, hidden) in verified:
            check_for(hidden, float(cell.metadata.nbgrader.points))


def _grade_notebook(job: Job, name: str, folder: str) -> NotebookResult:
    handed_in, source_nb = job.submission, read_source(job.lab.notebooks[name])
    submitted, renamed = handed_in.notebooks[name], handed_in.renamed.get(name)
    notes = [*handed_in.notes, *([renamed] if renamed else [])]
    lab, earlier = job.lab, job.lab.earlier.get(name)
    try:
        nb = rebuild(submitted, source_nb, lab.config, notes, earlier).nb
    except (RecursionError, ValueError, TypeError, KeyError, AttributeError) as error:
        submitted = Unreadable(f"The notebook is damaged ({type(error).__name__}).")
        nb = rebuild(submitted, source_nb, lab.config, notes, earlier).nb
    record(
        nb,
        seed=job.seeds.get(name) or job.seed,
        key=job.id,
        sandbox=job.sandbox,
        **{VERSIONS: dict(lab.manifest.versions)},
    )
    resources = {
        "metadata": {"name": name, "path": folder},
        "unique_key": name,
        "output_files_dir": f"{name}_files",
        "nbgrader": {"student": job.student, "assignment": job.lab.name, "notebook": name},
    }
    ended: tuple[str, ...] = ()
    seconds = 0.0
    for step in job.lab.config.Autograde.autograde_preprocessors:
        step = import_item(step) if isinstance(step, str) else step
        step = step(config=job.lab.config) if isinstance(step, type) else step
        if isinstance(step, Execute):
            nb, resources = _execute(step, nb, resources, job)
            if isinstance(step, SandboxedExecute):
                ended, seconds = step.ended, step.seconds
        else:
            nb, resources = step(nb, resources)
    run, scores = RunRecord.of(nb.metadata), _scores(nb)
    # An unreadable notebook gets no mark, rather than a 0.
    if any(note.kind is NoteKind.UNREADABLE for note in run.notes):
        scores = dict.fromkeys(scores)
    unanswered = {
        cell.metadata.nbgrader.grade_id: _is_unanswered(nb, cell)
        for cell in nb.cells
        if is_solution(cell) or is_task(cell)
    }
    return NotebookResult(name, as_file(nb), run.seed, scores, unanswered, ended, seconds)


def _is_unanswered(nb: NotebookNode, cell: NotebookNode) -> bool:
    if is_task(cell):
        return is_blank(answer_cells(nb, cell.metadata.nbgrader.grade_id))
    return bool(cell.metadata.nbgrader.get("checksum") == compute_checksum(cell))


def _execute(step: Execute, nb: NotebookNode, resources: Any, job: Job) -> tuple[NotebookNode, Any]:
    """Run the notebook. Errors of the learner's code become outputs; other errors are raised."""
    sandbox = job.sandbox
    if isinstance(step, SandboxedExecute):
        step.unsafe_no_sandbox, step.turn = not sandbox, job.turn
    elif sandbox:
        raise UserError(
            f"c.Autograde.autograde_preprocessors has {type(step).__name__}, which uses no "
            "sandbox: either replace it with hood.grader.execution.execute.Execute, or grade with "
            "--unsafe-no-sandbox"
        )
    try:
        # nbgrader sets this variable for code that it runs. Notebooks that this process opens later
        # must not have the variable, because `check` gives no verdict if the variable is set.
        with variable(NBGRADER, "autograde"):
            return step(nb, resources)
    except (UserError, MemoryError, TurnIsOver):
        raise
    except Exception as error:
        raise GraderFailed(
            f"the notebook could not be run: {type(error).__name__}: {error}"
        ) from error


def _scores(nb: NotebookNode) -> dict[str, float | None]:
    """Return nbgrader's score of each cell, and add notes on outputs that are not scores.

    A score is None if a person must first look at the answer, because this Python is older than the
    learner's Python.
    """
    scores: dict[str, float | None] = {}
    verdicts = read_verdicts(nb)
    for cell in nb.cells:
        if not is_grade(cell):
            continue
        name = cell.metadata.nbgrader.grade_id
        if name in verdicts and verdicts[name].cause is Cause.NEWER_PYTHON:
            scores[name] = None
            continue
        try:
            scores[name] = determine_grade(cell)[0]
        except (ValueError, KeyError) as error:
            scores[name] = None
            said = f"the result of `{name}` is not a score: {error}"
            record_note(nb, Note(NoteKind.UNGRADED, said))
    return scores
