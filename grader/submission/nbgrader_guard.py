"""Lets nbgrader read what learners handed in as carefully as the grader does.

nbgrader has settings for the exporter of ``autograde`` and for ``collect``; ``nbgrader_config.py``
names ours. For the rest it has none: :func:`guard` puts functions of ours in the place of its own.
"""

from __future__ import annotations

import sys
from datetime import datetime
from pathlib import Path
from typing import Any

from jupyter_server.base.handlers import JupyterHandler
from nbgrader.apps.api import NbGraderAPI
from nbgrader.coursedir import CourseDirectory

from grader.submission.files import read_timestamp

FORMGRADER = "nbgrader.server_extensions.formgrader.handlers"


def guard() -> None:
    """Guard the nbgrader of this process; more than once is once.

    - A ``timestamp.txt`` that is a link, a FIFO, a device or no date counts as none. nbgrader would
      wait for it, or end the whole command.
    - Where formgrader serves a file of the course, a page runs apart from Jupyter's own origin, as
      Jupyter has it everywhere else: no page can act as whoever opened it.
    """
    CourseDirectory.get_existing_timestamp = _existing_timestamp
    NbGraderAPI.get_submitted_timestamp = _submitted_timestamp
    if FORMGRADER in sys.modules:  # in Jupyter's server
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


def _apart(handler: JupyterHandler) -> str:
    whole: Any = JupyterHandler.content_security_policy  # the property, not what it gives
    policy = whole.fget(handler)
    return f"{policy}; sandbox allow-scripts"
