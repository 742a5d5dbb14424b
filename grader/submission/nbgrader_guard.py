"""Make nbgrader read submissions as carefully as the grader does.

nbgrader has settings for the exporter of ``autograde`` and for ``collect``; ``nbgrader_config.py``
sets them to classes of this project. For the rest nbgrader has no setting, so :func:`guard`
replaces some of its functions.
"""

from __future__ import annotations

import contextlib
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

from jupyter_server.base.handlers import JupyterHandler
from nbformat.notebooknode import NotebookNode
from nbgrader.api import MissingEntry
from nbgrader.apps.api import NbGraderAPI
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import SaveCells

from grader.results.marks import duration, seconds_late
from grader.submission.files import read_timestamp

NBGRADERS = NbGraderAPI.get_submission, NbGraderAPI.get_submissions
SAVES_CELL = SaveCells._create_grade_cell
FORMGRADER = "nbgrader.server_extensions.formgrader.handlers"


def guard() -> None:
    """Replace nbgrader's functions in this process. Calling it again changes nothing.

    - A ``timestamp.txt`` that is a link, a FIFO, a device or not a date counts as missing. nbgrader
      would wait for it, or end the whole command.
    - Formgrader's list of submissions shows which came late, also where that costs nothing.
    - To generate an unchanged lab again leaves what counts as its maximum, which may be less than
      its points (:func:`grader.results.marks.set_maxima`).
    - Files of the course that formgrader serves get a sandboxed origin, as Jupyter does everywhere
      else. So no page of a learner can act as the user who opens it.
    """
    CourseDirectory.get_existing_timestamp = _existing_timestamp
    NbGraderAPI.get_submitted_timestamp = _submitted_timestamp
    SaveCells._create_grade_cell = _save_grade_cell
    NbGraderAPI.get_submission = _get_submission
    NbGraderAPI.get_submissions = _get_submissions
    if FORMGRADER in sys.modules:  # only in Jupyter's server
        handler = sys.modules[FORMGRADER].SubmissionFilesHandler
        handler.content_security_policy = property(_apart)


def _existing_timestamp(course: CourseDirectory, folder: str) -> datetime | None:
    time, notes = read_timestamp(Path(folder))
    for note in notes:
        course.log.warning("%s: %s", folder, note.message)
    return time


def _submitted_timestamp(api: NbGraderAPI, assignment: str, student: str) -> datetime | None:
    course = api.coursedir
    folder = course.format_path(course.submitted_directory, student, assignment)
    return _existing_timestamp(course, folder)


def _save_grade_cell(step: SaveCells, cell: NotebookNode) -> None:
    SAVES_CELL(step, cell)
    where = cell.metadata.nbgrader.grade_id, step.notebook_id, step.assignment_id
    with contextlib.suppress(MissingEntry):
        before = step.gradebook.find_source_cell(*where)
        if before.checksum == cell.metadata.nbgrader.get("checksum"):  # of its points, too
            most = step.gradebook.find_grade_cell(*where).max_score
            step.new_grade_cells[where[0]]["max_score"] = most


def _get_submission(api: NbGraderAPI, assignment: str, student: str, **known: Any) -> Any:
    found = NBGRADERS[0](api, assignment, student, **known)
    return found and _with_lateness(api, assignment, [found])[0]


def _get_submissions(api: NbGraderAPI, assignment: str) -> list[dict[str, Any]]:
    return _with_lateness(api, assignment, NBGRADERS[1](api, assignment))


def _with_lateness(
    api: NbGraderAPI, assignment: str, found: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Write behind the time of each graded submission by how much it came late."""
    with api.gradebook as gradebook:
        late = seconds_late(gradebook.db, assignment)
    for one in found:
        if one["autograded"] and one["student"] in late:
            one["display_timestamp"] += f" (late: {duration(late[one['student']])})"
    return found


def _apart(handler: JupyterHandler) -> str:
    whole: Any = JupyterHandler.content_security_policy  # the property, not what it gives
    policy = whole.fget(handler)
    return f"{policy}; sandbox allow-scripts"
