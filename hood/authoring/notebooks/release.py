"""Make the learner's version of a lab with nbgrader's own generate_assignment step.

The step runs with the project's nbgrader_config.py, in a temporary course folder with a temporary
gradebook. So a build never changes the gradebook of a course.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping
from pathlib import Path

from nbgrader.converters import GenerateAssignment
from nbgrader.coursedir import CourseDirectory
from nbgrader.utils import capture_log, compute_checksum, is_solution
from traitlets.config import Config

from hood.authoring.notebooks.notebook import read
from hood.authoring.notebooks.text import Problem, refuse_if_any
from hood.grader.course import nbgrader_config


def generate(sources: Mapping[str, bytes], root: Path) -> dict[str, bytes]:
    """Make learners' notebooks from instructors' notebooks; the keys are names of assignments.

    Raises Refused with nbgrader's message for each notebook that it cannot generate.
    """
    released: dict[str, bytes] = {}
    problems: list[Problem] = []
    with tempfile.TemporaryDirectory(prefix="grader-build-") as folder:
        course = Path(folder)
        config = course_config(root, course)
        for name, content in sources.items():
            notebook = course / "source" / name / f"{name}.ipynb"
            notebook.parent.mkdir(parents=True)
            notebook.write_bytes(content)
            directory = CourseDirectory(config=config, assignment_id=name)
            app = GenerateAssignment(coursedir=directory, config=config, force=True)
            log = capture_log(app).get("log", "")
            made = course / "release" / name / f"{name}.ipynb"
            if made.exists():
                released[name] = made.read_bytes()
            else:
                # nbgrader logs the traceback of the error; its last line is the reason
                reason = re.findall(r"^ {4}(\w.*)", log, re.MULTILINE) or [log]
                message = f"nbgrader can't generate the release: {reason[-1]}"
                problems.append(Problem(f"source/{name}/{name}.ipynb", 0, message))
    refuse_if_any(problems)
    return released


def holds_work(path: Path) -> bool:
    """Return whether a released lab has answers: a solution cell differs from the release.

    An unreadable file counts, too, because it may be somebody's damaged notebook.
    """
    try:
        notebook = read(path)
    except ValueError:
        return True
    return notebook is not None and any(
        is_solution(cell) and cell.metadata.nbgrader.get("checksum") != compute_checksum(cell)
        for cell in notebook.cells
    )


def course_config(root: Path, course: Path) -> Config:
    config = nbgrader_config(root)
    config.CourseDirectory.root = str(course)
    config.CourseDirectory.db_url = f"sqlite:///{course / 'throw-away.db'}"
    return config
