"""Make the learner's version of a lab with nbgrader's own generate_assignment step.

It runs with the project's nbgrader_config.py, in a temporary course folder with a temporary
gradebook, so a build never changes the gradebook of a course.
"""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from nbgrader.converters import GenerateAssignment
from nbgrader.converters.base import NbGraderException
from nbgrader.coursedir import CourseDirectory
from nbgrader.utils import compute_checksum, is_solution
from traitlets.config import Config
from traitlets.log import get_logger

from grader.build.notebook import read
from grader.build.problems import Problem, Refused
from grader.course import nbgrader_config

DATABASE = "throw-away.db"


def generate(sources: Mapping[str, bytes], root: Path) -> dict[str, bytes]:
    """Make learners' notebooks from instructors' notebooks, each by assignment name.

    Each assignment has one notebook with the assignment's name.

    Raises:
        Refused: with nbgrader's own message for each assignment that nbgrader cannot generate.
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
            said = run_nbgrader(name, config)
            made = course / "release" / name / f"{name}.ipynb"
            if made.exists():
                released[name] = made.read_bytes()
            else:
                message = f"nbgrader can't generate the release: {said or 'no reason given'}"
                problems.append(Problem(f"source/{name}/{name}.ipynb", 0, message))
    if problems:
        raise Refused(problems)
    return released


def holds_work(path: Path) -> bool:
    """Return whether a released lab holds answers: a solution cell differs from the release.

    An unreadable file counts as work, because it may be somebody's damaged notebook.
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
    """Return the project's nbgrader configuration with folders and gradebook in `course`."""
    config = nbgrader_config(root)
    config.CourseDirectory.root = str(course)
    config.CourseDirectory.db_url = f"sqlite:///{course / DATABASE}"
    return config


def run_nbgrader(name: str, config: Config) -> str:
    """Generate one assignment and return the error that nbgrader logged, or an empty string."""
    course = CourseDirectory(config=config, assignment_id=name)
    log = get_logger()
    assert isinstance(log, logging.Logger)
    with errors_of(log) as said:
        try:
            GenerateAssignment(coursedir=course, config=config, force=True).start()
        except NbGraderException as error:
            said.append(str(error))
    # nbgrader logs the traceback of the error; its last line is the reason.
    reasons = [words for words in said if "Traceback" in words] or said
    return reasons[0].strip().split("\n")[-1] if reasons else ""


@contextmanager
def errors_of(log: logging.Logger) -> Iterator[list[str]]:
    """Collect the error messages of a logger, and print nothing of what it logs."""
    said: list[str] = []

    class Collect(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.levelno >= logging.ERROR:
                said.append(record.getMessage())

    handlers, propagate = log.handlers[:], log.propagate
    log.handlers, log.propagate = [Collect()], False
    try:
        yield said
    finally:
        log.handlers, log.propagate = handlers, propagate
