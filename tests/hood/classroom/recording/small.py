"""A course that is graded without kernels: an answer's text says what its grading does."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import nbformat
from nbformat.notebooknode import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from nbgrader.api import Gradebook
from nbgrader.preprocessors import SaveCells
from nbgrader.utils import is_grade, is_solution

from hood import UserError
from hood.grader.batch.grading import grade
from hood.grader.batch.intake import read_lab, read_submission_of
from hood.grader.batch.job import Job, Result
from hood.grader.course import Course, open_course, submissions
from hood.grader.execution.execute import Execute
from hood.grader.submission.rebuild import as_recorded
from tests.hood.tiny import with_gradebook, write

HW = "hw"


class Here:
    """An executor that grades each job at once in this process, without workers."""

    def __enter__(self) -> Here:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def run(self, jobs: Iterable[Job]) -> Iterator[tuple[Job, Result]]:
        """Yield each job's result, as a pool does."""
        for job in jobs:
            yield job, grade(job)


CONFIG = """
c = get_config()
c.CourseDirectory.root = {root!r}
c.ClearSolutions.code_stub = {{"python": "score 0"}}
c.Autograde.autograde_preprocessors = [
    "tests.hood.classroom.recording.small.Pretend",
    "nbgrader.preprocessors.SaveAutoGrades",
    "nbgrader.preprocessors.AssignLatePenalties",
]
"""
WORDS = re.compile(
    r"^(score|raise|refuse|sleep|kill once|kill|full|toil|hoard) ?(\S*)", re.MULTILINE
)
# An environment variable. Its value is one of these words, and applies to every submission.
MACHINE = "PRETENDED_MACHINE"


class Pretend(Execute):
    """A step in place of Execute that does what the answer says.

    Answers are `score 1.5`, `raise`, `sleep 3`, `kill` and `kill once FILE`.
    """

    def preprocess(self, nb: NotebookNode, resources: Any = None, km: Any = None):
        """Set the outputs of the graded cells."""
        [answer] = [c.source for c in nb.cells if is_solution(c) and not is_grade(c)]
        what, how = WORDS.search(os.environ.get(MACHINE, answer)).groups()
        if what == "raise":
            raise RuntimeError("no kernel today")
        if what == "refuse":
            raise UserError("no sandbox here: install one")
        if what == "full":
            raise OSError(28, "No space left on device")
        if what == "kill" or (what == "kill once" and not Path(how).exists()):
            if how:
                Path(how).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        if what == "toil":
            re.match(r"(a|aa)*b", "a" * 1000)  # endless work in C code
        if what == "hoard":
            data = [bytes(1 << 24) for _ in range(int(how))]
            nb.metadata.hoarded = len(data)
        if what == "sleep":
            time.sleep(float(how))
        score = how if what == "score" else "2"
        for cell in nb.cells:
            if is_grade(cell) and cell.cell_type == "code":
                data = {"text/plain": score}
                cell.outputs = [new_output("execute_result", data=data, execution_count=1)]
        return nb, resources


def source() -> NotebookNode:
    """Return a source notebook: an answer, a graded cell of two points, a manual task."""
    nb = new_notebook()

    def add(make, text, **settings):
        kind = {"grade": False, "solution": False, "locked": False, "task": False}
        given = {"nbgrader": kind | {"schema_version": 3} | settings}
        nb.cells.append(make(text, id=settings["grade_id"], metadata=given))

    begin, end = "### BEGIN SOLUTION", "### END SOLUTION"
    add(new_code_cell, f"{begin}\nscore 2\n{end}", solution=True, grade_id="answer")
    add(new_code_cell, "test()", grade=True, locked=True, grade_id="test", points=2)
    add(new_markdown_cell, "Why?", grade=True, solution=True, grade_id="why", points=3)
    return nb


def make_small(root: Path, names: tuple[str, ...] = (HW,)) -> Course:
    """Make a course folder with one lab that is entered in the gradebook."""
    for name in names:
        write(source(), root / "source" / HW / f"{name}.ipynb")
    (root / "nbgrader_config.py").write_text(CONFIG.format(root=str(root)))
    (root / "submitted").mkdir()
    course = open_course(root)
    with_gradebook(course, ("small", names), lambda: enter(course, names))
    return course


def enter(course: Course, names: tuple[str, ...] = (HW,), lab: str = HW) -> None:
    """Enter the lab in the gradebook as `nbgrader generate_assignment` does, in this process."""
    with Gradebook(course.directory.db_url) as gradebook:
        gradebook.update_or_create_assignment(lab)
    for name in names:
        path = course.root / "source" / lab / f"{name}.ipynb"
        nb = as_recorded(nbformat.read(path, as_version=4), course.config)
        where = {"notebook": name, "assignment": lab, "db_url": course.directory.db_url}
        SaveCells(config=course.config).preprocess(nb, {"nbgrader": where})


def answered(answer: str, why: str = "") -> NotebookNode:
    """Return a submitted notebook with this answer."""
    nb = as_recorded(source())
    nb.cells[0].source = answer
    nb.cells[2].source = why or nb.cells[2].source
    return nb


def hand_in(
    course: Course, student: str, answer: str | bytes, why: str = "", lab: str = HW
) -> Path:
    """Write a submission into the course folder."""
    path = course.root / "submitted" / student / lab / f"{lab}.ipynb"
    return write(answer if isinstance(answer, bytes) else answered(answer, why), path)


def folders(course: Course, student: str) -> list[Path]:
    """Return the folders of a learner's submission."""
    return submissions(course.directory, HW)[student]


def job_of(course: Course, student: str, **changes: Any) -> Job:
    """Return the job that the command would make for a submission."""
    lab = read_lab(course, HW)
    found = read_submission_of(course, lab, folders(course, student))
    return Job(lab, student, found, id=found.job_id(lab, True), **changes)


def answers(course: Course, *given: str) -> Iterator[Job]:
    """Hand in an answer for each learner, and yield their jobs, without sandboxes."""
    for number, answer in enumerate(given):
        hand_in(course, f"s{number}", answer)
        yield job_of(course, f"s{number}", sandbox=False)
