"""A course folder with a gradebook filled by hand: labs, scores, times, verdicts."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from nbgrader.api import Gradebook

from hood.grader.course import Course, open_course
from hood.judge.report import VerdictReport
from hood.verdict import Example, PartResult, Status, Verdict
from tests.hood.tiny import with_gradebook, write

CONFIG = """
c = get_config()
c.CourseDirectory.root = {root!r}
c.ExportApp.plugin_class = "hood.classroom.nbgrader.export.Export"
c.GenerateFeedback.exporter_class = "hood.classroom.feedback.exporter.FeedbackExporter"
c.GenerateFeedback.preprocessors = [
    "hood.classroom.feedback.grades.GetGrades",
    "hood.classroom.feedback.feedback.CleanFeedback",
]
"""
LABS = {  # exercises with their points; the last one of each is marked by hand
    "01_one": {"first": 4.0, "second": 6.0, "third": 5.0, "why": 5.0},
    "02_two": {"fourth": 10.0, "fifth": 2.0, "because": 8.0},
    "03_three": {"sixth": 3.0, "seventh": 7.0, "words": 2.0},
}
FURTHER = ("second", "third", "seventh")  # exercises that the labs' texts call further
Scores = dict[str, float | None]


def make_book(root: Path) -> Course:
    """Make the folder, with the sources of all labs, and enter them in its gradebook."""
    root.mkdir()
    (root / "nbgrader_config.py").write_text(CONFIG.format(root=str(root)))
    course = open_course(root)
    for lab, exercises in LABS.items():
        *_, words = exercises
        cells = [
            cell
            for name, points in exercises.items()
            for cell in (new_markdown_cell(_asked(name)), _graded(name, points, name == words))
        ]
        write(new_notebook(cells=cells), root / "source" / lab / f"{lab}.ipynb")
        text = root / "phases" / lab / "lab.py"  # so that "01" is the lab
        text.parent.mkdir(parents=True)
        text.touch()
    with_gradebook(course, "three labs", lambda: _enter(course))
    return course


def _enter(course: Course) -> None:
    with Gradebook(course.directory.db_url) as gradebook:
        for lab, exercises in LABS.items():
            *_, words = exercises
            gradebook.add_assignment(lab)
            gradebook.add_notebook(lab, lab)
            for name, points in exercises.items():
                kind = "markdown" if name == words else "code"
                asked = {"max_score": points, "cell_type": kind}
                gradebook.add_grade_cell(name, lab, lab, **asked)
                if name == words:
                    gradebook.add_solution_cell(name, lab, lab)


def hand_in(
    course: Course,
    student: str,
    lab: str,
    scores: Scores,
    came: datetime | None,
    withheld: dict[str, float] | None = None,
    gradebook: Gradebook | None = None,
) -> None:
    """Record a graded submission.

    Args:
        scores: None for a mark that is still to be given by hand.
        came: in UTC, without a zone, as in nbgrader.
        withheld: exercise -> points of parts that the machine could not test.
        gradebook: the course's open gradebook, for many records: SQLAlchemy compiles its
            statements again for each opened one.
    """
    outputs = []
    for name, points in LABS[lab].items():
        missing = (withheld or {}).get(name, 0.0)
        earned = scores.get(name) or 0.0
        example = Example("first(1)", "2", "3")
        part = PartResult("asked", points - missing, earned, Status.WRONG, misconception="a name")
        parts = [replace(part, example=example)]
        if missing:
            parts.append(PartResult("on a GPU", missing, 0.0, Status.NOT_RUN))
        said = {"a name": "a sentence about it."}
        verdict = Verdict(name, points, Status.PARTLY, tuple(parts), explanations=said)
        cell = _graded(name, points, words=name == list(LABS[lab])[-1])
        if cell.cell_type == "code":
            data = VerdictReport(verdict, "01")._repr_mimebundle_()
            cell.outputs = [new_output("display_data", data=data)]
        outputs.append(cell)
    write(new_notebook(cells=outputs), course.folder("autograded", student, lab) / f"{lab}.ipynb")
    opened = nullcontext(gradebook) if gradebook else Gradebook(course.directory.db_url)
    with opened as gradebook:
        gradebook.update_or_create_student(student)
        gradebook.update_or_create_submission(lab, student, timestamp=came)
        for name, score in scores.items():
            mark = gradebook.find_grade(name, lab, lab, student)
            by_person = name == list(LABS[lab])[-1]
            mark.manual_score, mark.auto_score = (score, None) if by_person else (None, score)
            mark.needs_manual_grade = by_person and score is None
        gradebook.db.commit()


def _asked(name: str) -> str:
    return f"## {name}\n\n*{'Further, hard' if name in FURTHER else 'Easy'}, 5 minutes.*\n\nDo it."


def _graded(name: str, points: float, words: bool = False):
    about = {"grade": True, "grade_id": name, "points": points, "locked": not words}
    about |= {"schema_version": 3, "solution": words, "task": False}
    new = new_markdown_cell if words else new_code_cell
    hidden = f'### BEGIN HIDDEN TESTS\nverify("{name}", {name})\n### END HIDDEN TESTS'
    return new("" if words else hidden, metadata={"nbgrader": about})
