"""A request for a regrade is found in the notebook, and listed until an instructor answers it."""

from types import SimpleNamespace

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from nbgrader.api import Gradebook

from hood.classroom.feedback.page import About, render
from hood.classroom.gradebook.graded import ReasonKind, read_class
from hood.classroom.gradebook.regrade import requests_of, with_earlier_verdicts
from hood.classroom.report import command as report
from hood.grader.run_record import RunRecord
from hood.judge.report import VerdictReport
from hood.metadata import KEY
from hood.verdict import PartResult, Status, Verdict
from tests.hood.classroom.feedback_pages import words
from tests.hood.classroom.rules.book import hand_in, make_book

ASKS = "**Regrade:** my strides\nare right"
MINE = {KEY: {"by": "learner"}}
LAB = "01_one"
EVIL = "<script>alert(1)</script>"


def graded(earned, *cells, name="first"):
    """A graded notebook with one exercise, and cells that a learner has added."""
    about = {"grade": True, "grade_id": name, "points": 4.0, "locked": True, "solution": False}
    about |= {"schema_version": 3, "task": False}
    verdict = Verdict(name, 4.0, Status.PARTLY, (PartResult("a", 4.0, earned, Status.WRONG),))
    output = new_output("display_data", data=VerdictReport(verdict, "01")._repr_mimebundle_())
    hidden = f"### BEGIN HIDDEN TESTS\nverify('{name}', f)\n### END HIDDEN TESTS"
    test = new_code_cell(hidden, metadata={"nbgrader": about}, outputs=[output])
    return new_notebook(cells=[new_markdown_cell("## 1 · One"), *cells, test])


def written(nb):
    return nbformat.writes(nb).encode()


@pytest.mark.parametrize(
    ("source", "asked"),
    [
        (ASKS, {"first": "my strides are right"}),
        ("REGRADE : why not", {"first": "why not"}),
        ("_Regrade_: x" + "y" * 1000, {"first": "x" + "y" * 398}),
        ("I want no regrade: all is well", {}),
        ("Regrade my work", {}),
    ],
)
def test_these_cells_ask_for_a_regrade(source, asked):
    assert requests_of(graded(1.0, new_markdown_cell(source, metadata=MINE))) == asked
    assert requests_of(graded(1.0, new_markdown_cell(source))) == {}  # the lab's own text
    assert requests_of(graded(1.0, new_code_cell(source, metadata=MINE))) == {}


@pytest.mark.parametrize("said", [ASKS, ASKS.replace("Regrade", "REGRADE")])
def test_the_earlier_verdict_stays_beside_the_new_one(tmp_path, said):
    path, asks = tmp_path / "lab.ipynb", new_markdown_cell(said, metadata=MINE)

    def grade(earned, *cells):
        path.write_bytes(with_earlier_verdicts(written(graded(earned, *cells)), path))
        nb = nbformat.read(path, as_version=4)
        return nb, RunRecord.of(nb.metadata).earlier

    assert grade(1.0)[1] == {}
    assert grade(1.0, asks)[1] == {}  # the request changed nothing else
    nb, earlier = grade(3.0, asks)
    assert earlier == {"first": "1 of 4 points"}
    page = words(render(nb, About()))
    assert "Before you asked for a regrade: 1 of 4 points." in page
    assert "my strides are right" in page
    assert grade(3.0, asks)[1] == {"first": "1 of 4 points"}  # the same again
    assert grade(4.0, asks)[1] == {"first": "3 of 4 points"}
    path.write_bytes(b"[")
    assert grade(4.0, asks)[1] == {}


def test_a_request_is_listed_until_a_mark_is_given(tmp_path):
    course = make_book(tmp_path / "course")
    hand_in(course, "ana", LAB, {"first": 2.0, "second": 6.0, "third": 5.0, "why": 5.0}, None)
    path = course.folder("autograded", "ana", LAB) / f"{LAB}.ipynb"
    asks = new_markdown_cell(ASKS, metadata=MINE)
    path.write_bytes(with_earlier_verdicts(written(graded(2.0, asks)), path))
    path.write_bytes(with_earlier_verdicts(written(graded(3.0, asks)), path))

    def reasons():
        [one] = read_class(course, LAB)
        return [reason for reason in one.reasons() if reason.kind is ReasonKind.REGRADE]

    [reason] = reasons()
    gave = "2 of 4 points before, 3 of 4 points now"
    assert (
        str(reason) == f"the learner asks for a regrade: “my strides are right”; {gave} (`first`)"
    )
    assert reason.anonymous == f"the learner asks for a regrade; {gave}"
    asks.source = f"Regrade: {EVIL}"
    path.write_bytes(written(graded(2.0, asks)))
    report.run(SimpleNamespace(lab=LAB, out=None, hide_names=False), course.root)
    page = (course.root / "reports" / LAB / "index.html").read_text()
    assert "Answer requests for a regrade One submission with a request: ana." in words(page)
    assert f"ana the learner asks for a regrade: “{EVIL}”; 2 of 4 points ( first )" in words(page)
    assert "<script" not in page
    with Gradebook(course.directory.db_url) as gradebook:
        gradebook.find_grade("first", LAB, LAB, "ana").manual_score = 3.0
        gradebook.db.commit()
    assert reasons() == []
    with Gradebook(course.directory.db_url) as gradebook:  # handed in again since
        gradebook.find_grade("first", LAB, LAB, "ana").needs_manual_grade = True
        gradebook.db.commit()
    assert len(reasons()) == 1
