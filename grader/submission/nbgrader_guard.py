"""Make nbgrader as careful as the grader with submissions and with files that it has not made.

nbgrader has settings for the exporter of ``autograde`` and for ``collect``; ``nbgrader_config.py``
sets them to classes of this project. For the rest nbgrader has no setting, so :func:`guard`
replaces some of its functions.
"""

from __future__ import annotations

import os
import sys
from datetime import datetime
from fnmatch import fnmatch
from functools import partial
from pathlib import Path
from typing import Any

from jupyter_server.base.handlers import JupyterHandler
from nbgrader.apps.api import NbGraderAPI
from nbgrader.apps.zipcollectapp import ZipCollectApp
from nbgrader.converters import GenerateAssignment, base
from nbgrader.coursedir import CourseDirectory

from grader.submission.files import printable, read_timestamp
from grader.submission.zip_collect import CarefulCollector

FORMGRADER = "nbgrader.server_extensions.formgrader.handlers"
GENERATE, REMOVE = GenerateAssignment.start, base.rmtree
COLLECT = ZipCollectApp.process_extracted_files


def guard() -> None:
    """Replace nbgrader's functions in this process. Calling it again changes nothing.

    - A ``timestamp.txt`` that is a link, a FIFO, a device or not a date counts as missing. nbgrader
      would wait for it, or end the whole command.
    - What ``generate_assignment`` has not made stays in a lab's folder of ``release/``. nbgrader
      removes the whole folder, before it generates and when that fails.
    - ``zip_collect`` ends with a list of what it has not collected.
    - Files of the course that formgrader serves get a sandboxed origin, as Jupyter does everywhere
      else. So no page of a learner can act as the user who opens it.
    """
    CourseDirectory.get_existing_timestamp = _existing_timestamp
    NbGraderAPI.get_submitted_timestamp = _submitted_timestamp
    GenerateAssignment.start = _generate
    ZipCollectApp.process_extracted_files = _collect_and_say
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


def _generate(step: GenerateAssignment) -> None:
    base.rmtree = partial(_remove_made, step)
    try:
        GENERATE(step)
    finally:
        base.rmtree = REMOVE


def _remove_made(step: GenerateAssignment, release: str) -> None:
    """Remove from a released lab the files that it has from ``source/``, and name the others."""
    source, ignore = Path(step.notebooks[0]).parent, step.coursedir.ignore
    kept = []
    for folder, _, names in os.walk(release):
        for name in names:
            inside = Path(folder, name).relative_to(release)
            if os.path.lexists(source / inside):
                Path(folder, name).unlink()
            elif not any(fnmatch(part, one) for part in inside.parts for one in ignore):
                kept.append(printable(str(inside)))
    if kept:
        named = ", ".join(sorted(kept))
        step.log.warning("%s: kept, as they don't come from source/: %s", release, named)


def _collect_and_say(app: ZipCollectApp) -> None:
    try:
        COLLECT(app)
    finally:  # nbgrader ends the command where a folder of submitted/ is not empty
        if isinstance(app.collector_plugin_inst, CarefulCollector):
            app.collector_plugin_inst.say_what_is_left()


def _apart(handler: JupyterHandler) -> str:
    whole: Any = JupyterHandler.content_security_policy  # the property, not what it gives
    policy = whole.fget(handler)
    return f"{policy}; sandbox allow-scripts"
