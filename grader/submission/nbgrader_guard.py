"""Make nbgrader read submissions as carefully as the grader does.

nbgrader has settings for the exporter of ``autograde`` and for ``collect``; ``nbgrader_config.py``
sets them to classes of this project. For the rest nbgrader has no setting, so :func:`guard`
replaces some of its functions.
"""

from __future__ import annotations

import sys
import traceback
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from jupyter_server.base.handlers import JupyterHandler
from nbgrader.apps.api import NbGraderAPI
from nbgrader.converters import base
from nbgrader.coursedir import CourseDirectory

from grader.submission.files import read_timestamp
from grader.whole_file import why_not_written

FORMGRADER = "nbgrader.server_extensions.formgrader.handlers"


def guard() -> None:
    """Replace nbgrader's functions in this process. Calling it again changes nothing.

    - A ``timestamp.txt`` that is a link, a FIFO, a device or not a date counts as missing. nbgrader
      would wait for it, or end the whole command.
    - Files of the course that formgrader serves get a sandboxed origin, as Jupyter does everywhere
      else. So no page of a learner can act as the user who opens it.
    - Where a file can't be written, its converters log that in a sentence and not in a traceback.
    """
    base.traceback = SimpleNamespace(format_exc=_format_exc)
    CourseDirectory.get_existing_timestamp = _existing_timestamp
    NbGraderAPI.get_submitted_timestamp = _submitted_timestamp
    if FORMGRADER in sys.modules:  # only in Jupyter's server
        handler = sys.modules[FORMGRADER].SubmissionFilesHandler
        handler.content_security_policy = property(_apart)


def _format_exc() -> str:
    return why_not_written(sys.exception()) or traceback.format_exc()


def _existing_timestamp(course: CourseDirectory, folder: str) -> datetime | None:
    time, notes = read_timestamp(Path(folder))
    for note in notes:
        course.log.warning("%s: %s", folder, note.message)
    return time


def _submitted_timestamp(api: NbGraderAPI, assignment: str, student: str) -> datetime | None:
    course = api.coursedir
    folder = course.format_path(course.submitted_directory, student, assignment)
    return _existing_timestamp(course, folder)


def _apart(handler: JupyterHandler) -> str:
    whole: Any = JupyterHandler.content_security_policy  # the property, not what it gives
    policy = whole.fget(handler)
    return f"{policy}; sandbox allow-scripts"
