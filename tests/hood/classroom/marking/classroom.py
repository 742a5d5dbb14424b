"""A course folder with a lab that has a question in words, answers and a gradebook."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from nbgrader.api import Gradebook

from hood.grader.course import Course, open_course
from hood.metadata import KEY
from tests.hood.tiny import with_gradebook, write

LAB = "07_words"
POINTS = 3.0
BOXES = (
    "**The rule.** Sizes align on the right.",
    "**The mean** is of all `B²` pairs.",
    "The rest.",
)
QUESTION = f"""\
## 2 · Why did nothing complain?

A colleague asks why $x^2$ was let through. Answer in three sentences.

=== BEGIN MARK SCHEME ===

One point each:

- {BOXES[0]}
- {BOXES[1]}
- {BOXES[2]}

=== END MARK SCHEME ==="""
STUB = "*Your answer goes here.*"


def make_classroom(root: Path, answers: Mapping[str, str], config: str = "") -> Course:
    """Make the folder, with the lab's source, a gradebook, and a graded submission of each learner.

    Args:
        answers: the answers in words, by learner.
        config: the text of ``nbgrader_config.py``; by default it names only the folder.
    """
    root.mkdir(parents=True, exist_ok=True)
    if not (root / "nbgrader_config.py").exists():
        text = config or f"c = get_config()\nc.CourseDirectory.root = {str(root)!r}\n"
        (root / "nbgrader_config.py").write_text(text)
    course = open_course(root)
    write(notebook(STUB, source=True), root / "source" / LAB / f"{LAB}.ipynb")
    with_gradebook(course, ("words", *answers), lambda: _enter(course, answers))
    for student, answer in answers.items():
        hand_in(course, student, answer)
    return course


def _enter(course: Course, students: Iterable[str]) -> None:
    with Gradebook(course.directory.db_url) as gradebook:
        gradebook.add_assignment(LAB)
        gradebook.add_notebook(LAB, LAB)
        gradebook.add_grade_cell("twice", LAB, LAB, max_score=2, cell_type="code")
        gradebook.add_task_cell("why", LAB, LAB, max_score=POINTS, cell_type="markdown")
        about = {"cell_type": "markdown", "source": QUESTION, "locked": True}
        gradebook.add_source_cell("why", LAB, LAB, **about)
        for student in students:
            first, _, last = student.partition("_")
            gradebook.add_student(student, first_name=first.title(), last_name=last.title())
            gradebook.add_submission(LAB, student)
            gradebook.find_grade("twice", LAB, LAB, student).auto_score = 2.0
            gradebook.find_grade("twice", LAB, LAB, student).needs_manual_grade = False
            gradebook.db.commit()


def hand_in(course: Course, student: str, answer: str | list[NotebookNode]) -> Path:
    """Write a learner's graded notebook with an answer, or with an answer's cells."""
    path = course.folder("autograded", student, LAB) / f"{LAB}.ipynb"
    new = path.with_suffix(".new")
    write(notebook(answer), new)
    return new.replace(path)


def notebook(answer: str | list[NotebookNode], source: bool = False) -> NotebookNode:
    """Return the lab with an answer below its question."""
    if isinstance(answer, str):
        by = {} if answer == STUB else {KEY: {"by": "learner"}}
        answer = [new_markdown_cell(answer, metadata=by)]
    shown = QUESTION if source else QUESTION.partition("\n===")[0]
    return new_notebook(
        metadata={KEY: {"title": "A lab of words"}},
        cells=[
            new_markdown_cell("# A lab of words"),
            new_markdown_cell("## 1 · Twice"),
            new_code_cell(
                "assert twice(1) == 2", metadata={"nbgrader": about("twice", 2, "grade")}
            ),
            new_markdown_cell(shown, metadata={"nbgrader": about("why", POINTS, "task")}),
            *answer,
            new_markdown_cell("## 3 · The next one"),
            new_markdown_cell(
                "a note of the learner's, elsewhere", metadata={KEY: {"by": "learner"}}
            ),
        ],
    )


def about(name: str, points: float, kind: str) -> dict[str, object]:
    """Return nbgrader's metadata of a cell."""
    roles = {role: role == kind for role in ("grade", "task")}
    fixed = {"grade_id": name, "points": points, "locked": True, "solution": False}
    return {**fixed, **roles, "schema_version": 3}


def regraded(course: Course, student: str, answer: str) -> None:
    """Hand in another answer of a learner, and record it as the batch does: flagged for review."""
    hand_in(course, student, answer)
    with Gradebook(course.directory.db_url) as gradebook:
        gradebook.find_grade("why", LAB, LAB, student).needs_manual_grade = True
        gradebook.db.commit()


def recorded(course: Course, student: str) -> tuple[float | None, bool, str | None]:
    """Return nbgrader's score, flag for manual grading, and remark."""
    with Gradebook(course.directory.db_url) as gradebook:
        grade = gradebook.find_grade("why", LAB, LAB, student)
        comment = gradebook.find_comment("why", LAB, LAB, student)
        return grade.manual_score, grade.needs_manual_grade, comment.manual_comment
