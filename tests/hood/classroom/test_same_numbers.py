"""The same numbers in formgrader, feedback, export and report, by either way of grading."""

import csv
import shutil
from types import SimpleNamespace

import nbformat
import pytest
from nbgrader.api import Gradebook
from nbgrader.apps.api import NbGraderAPI
from nbgrader.apps.exportapp import ExportApp
from nbgrader.utils import is_solution, parse_utc

from hood.classroom.recording import command as batch
from hood.classroom.report import command as report
from hood.grader.batch import grading
from hood.grader.course import open_course
from hood.grader.execution.execute import Execute
from hood.grader.execution.graded_cell import is_verified, made_output
from hood.judge.report import VerdictReport
from hood.judge.verify import shown_points
from hood.phase_paths import ROOT
from hood.verdict import Cause, PartResult, Status, Verdict
from tests.hood.classroom.feedback_pages import words
from tests.hood.classroom.recording.running import count, run
from tests.hood.classroom.recording.small import HW, Here, enter, source
from tests.hood.tiny import released, write

pytestmark = pytest.mark.slow(5)

DUE = "2026-03-02 10:00:00 UTC"
GONE = "gone@example.org"
ALL = {"perfect": (6, 6), "words": (3, 6), "late": (6, 6), "damaged": (0, 6)}
STEP = "c.Autograde.autograde_preprocessors[0] = 'tests.hood.classroom.test_same_numbers.Judged'\n"


class Judged(Execute):
    """A step in place of Execute: three points are earned, the fourth needs a GPU.

    The answer `gpu` has a GPU; the answer `stub` is unattempted.
    """

    def preprocess(self, nb, resources=None, km=None):
        """Set the outputs of the graded cell."""
        [answer] = [c.source for c in nb.cells if is_solution(c) and c.cell_type == "code"]
        [cell] = filter(is_verified, nb.cells)
        here = PartResult("here", 3.0, 3.0, Status.RIGHT)
        if answer.startswith("score 0"):  # as in a released notebook
            here = PartResult("here", 3.0, 0.0, Status.NOT_ATTEMPTED, Cause.NOT_ATTEMPTED)
        there = PartResult("on a GPU", 1.0, 0.0, Status.NOT_RUN, Cause.UNAVAILABLE, "needs a GPU")
        if answer == "gpu":
            there = PartResult("on a GPU", 1.0, 1.0, Status.RIGHT)
        verdict = Verdict("test", 4.0, Status.RIGHT_AS_FAR_AS_RUN, (here, there))
        data = VerdictReport(verdict, "05")._repr_mimebundle_()
        result = made_output("execute_result", data=shown_points(verdict.earned), execution_count=1)
        cell.outputs = [made_output("display_data", data=data), result]
        return nb, resources


def lab():
    nb = source()
    nb.cells[1].source += '\n### BEGIN HIDDEN TESTS\nverify("test", answer)\n### END HIDDEN TESTS'
    nb.cells[1].metadata.nbgrader.points = 4
    nb.cells.insert(0, nbformat.v4.new_markdown_cell("## 1 · Sums <by hand>"))
    nb.cells.insert(3, nbformat.v4.new_markdown_cell("## 2 · In words"))
    return nb


def hand_in(course, student, answer="mine", words="because", when="2026-03-01 10:00:00 UTC"):
    nb = released(lab())
    nb.cells[1].source, nb.cells[4].source = answer, words
    path = course.root / "submitted" / student / HW / f"{HW}.ipynb"
    write(nb if answer else b'{"cells": [', path)
    write(when.encode(), path.with_name("timestamp.txt"))


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    """The class after `grade`: two answers in words are marked, and one learner was removed."""
    patch = pytest.MonkeyPatch()
    patch.setattr(batch, "_executor", lambda *_: Here())
    patch.setattr(grading, "require_checks", lambda source: None)  # `Judged` needs no sandbox
    patch.setenv("OPEN_THE_HOOD_EXCHANGE", str(tmp_path_factory.mktemp("exchange")))
    root = tmp_path_factory.mktemp("numbers") / "course"
    write(lab(), root / "source" / HW / f"{HW}.ipynb")
    (root / "nbgrader_config.py").write_text((ROOT / "nbgrader_config.py").read_text() + STEP)
    course = open_course(root)
    enter(course)
    for student in ("perfect", "words", GONE):
        hand_in(course, student)
    hand_in(course, "late", when="2026-03-02 12:05:00 UTC")
    hand_in(course, "damaged", answer="", when="soon")
    with Gradebook(course.directory.db_url) as gradebook:
        gradebook.update_or_create_assignment(HW, duedate=parse_utc(DUE))
        gradebook.add_student("never", first_name="+1", last_name="Name, A")
    _, first = run(course)
    with Gradebook(course.directory.db_url) as gradebook:
        for student in ("perfect", "late"):
            grade = gradebook.find_grade("why", HW, HW, student)
            grade.manual_score, grade.needs_manual_grade = 3.0, False
        gradebook.db.commit()
    _, second = run(course)
    with Gradebook(course.directory.db_url) as gradebook:
        gradebook.remove_student(GONE)
    yield SimpleNamespace(course=course, first=first, second=second)
    patch.undo()


@pytest.fixture(params=["grade", "autograde"])
def course(request, graded, tmp_path):
    """The course, and a copy in which formgrader's button was pressed for everybody."""
    if request.param == "grade":
        return graded.course
    shutil.copytree(graded.course.root, tmp_path / "course")
    course = open_course(tmp_path / "course")
    for student in ALL:
        done = formgrader(course).autograde(HW, student)
        assert done["success"], done
        assert "has changed" not in done["log"]
    return course


def formgrader(course):
    return NbGraderAPI(coursedir=course.directory, config=course.config)


def exported(course):
    path = course.root / "grades.csv"
    app = ExportApp(coursedir=course.directory, config=course.config)
    app.init_plugin()
    app.plugin_inst.to = str(path)
    with Gradebook(course.directory.db_url) as gradebook:
        app.plugin_inst.export(gradebook)
    with path.open(newline="") as file:
        return {row["student_id"]: row for row in csv.DictReader(file)}


def page(course, student):
    return words((course.root / "feedback" / student / HW / f"{HW}.html").read_text())


def test_the_numbers_are_the_same_everywhere(course):
    listed = {one["student"]: one for one in formgrader(course).get_submissions(HW)}
    assert not listed.pop(GONE)["autograded"]
    assert {s: (one["score"], one["max_score"]) for s, one in listed.items()} == ALL
    assert {"damaged", "words"} <= {s for s, one in listed.items() if one["needs_manual_grade"]}
    assert listed["late"]["display_timestamp"].endswith("(late: 2 h 5 min)")
    assert "late" not in listed["words"]["display_timestamp"]

    rows = exported(course)
    columns = ("raw_score", "score", "max_score", "seconds_late", "status")
    assert {student: tuple(row[name] for name in columns) for student, row in rows.items()} == {
        "perfect": ("6.0", "6.0", "6.0", "0", "marked"),
        "words": ("3.0", "", "6.0", "0", "not marked yet: 3 points"),
        "late": ("6.0", "6.0", "6.0", "7500", "marked"),
        "damaged": ("", "", "6.0", "", "no mark: could not be read or graded"),
        "never": ("", "", "6.0", "", "not handed in"),
        GONE: ("", "", "6.0", "", "handed in, not graded"),
    }
    assert (rows["never"]["first_name"], rows["never"]["last_name"]) == ("'+1", "Name, A")

    assert report.run(SimpleNamespace(lab=HW, out=None, hide_names=False), course.root) == 1
    with (course.root / "reports" / HW / "learners.csv").open(encoding="utf-8-sig") as file:
        found = list(csv.DictReader(file))
    for student, (points, most) in ALL.items():
        mine = [row for row in found if row["student"] == student]
        assert sum(float(row["points"] or 0) for row in mine) == points
        assert sum(float(row["max"]) for row in mine) == most
    assert {row["seconds_late"] for row in found if row["student"] == "late"} == {"7500"}
    shown = (course.root / "reports" / HW / "index.html").read_text()
    assert "1 handed in late" in shown


def test_feedback_shows_the_same_numbers_and_names_missing_marks(course):
    done = formgrader(course).generate_feedback(HW)
    assert not done["success"]
    assert "Traceback" not in done["log"]
    assert f"the gradebook has no submission of {GONE} to hw" in done["log"]
    assert "2 graded cells of 1 learner are without a mark; the feedback" in done["log"]
    assert "1 graded cell of 1 learner is not marked yet; the feedback says so" in done["log"]
    first, second = "1 · Sums <by hand>", "2 · In words"
    assert "6 of 6 points Withheld, not lost: 1 point" in page(course, "perfect")
    contents = f"{first} 3 of 3 points {second}"
    assert f"{contents} 3 of 3 points" in page(course, "perfect")
    assert "right here (3 of 3) not run on a GPU (1 withheld) Needs a GPU." in page(
        course, "perfect"
    )
    assert f"{contents} not marked yet, of 3 points" in page(course, "words")
    assert "3 of 6 points Not marked yet, so not final: 3 points" in page(course, "words")
    assert "why not marked yet, of 3 points Your answer because" in page(course, "words")
    assert "why 3 of 3 points , marked by a person Your answer because" in page(course, "perfect")
    assert "Handed in 2 h 5 min late, at no cost" in page(course, "late")
    assert "no mark of 6 points No mark: 6 points" in page(course, "damaged")
    assert "the lab as it was released; grading gave no mark" in page(course, "damaged")
    assert "0 of 3" not in page(course, "words") + page(course, "damaged")
    for student in ("perfect", "words"):
        assert "late" not in page(course, student)


def test_a_second_run_says_what_still_waits(graded):
    for text, waiting in ((graded.first, 4), (graded.second, 2)):
        assert count(text, "need a person") == count(text, "handed in late") == 1
        assert count(text, "answers to mark by hand") == waiting
        assert "damaged: the time of the submission can't be read; not readable" in text
        assert "late (2 h 5 min)" in text
    assert count(graded.second, "recorded before") == 5


@pytest.mark.parametrize("goes", ["removed", "left"])
def test_a_part_that_one_learner_can_be_asked_counts_for_all(graded, tmp_path, goes):
    shutil.copytree(graded.course.root, tmp_path / "course")
    course = open_course(tmp_path / "course")
    hand_in(course, "gpu", answer="gpu")
    _, text = run(course, "--students", "gpu")
    assert "Submissions on disk but not in the gradebook" in text
    found = {one["student"]: one for one in formgrader(course).get_submissions(HW)}
    assert (found["gpu"]["score"], found["gpu"]["max_score"]) == (4, 7)
    assert (found["perfect"]["score"], found["perfect"]["max_score"]) == (6, 7)
    if goes == "left":
        (course.root / "course.yml").write_text("left: [gpu]")
    else:
        shutil.rmtree(course.root / "submitted" / "gpu")
        with Gradebook(course.directory.db_url) as gradebook:
            gradebook.remove_student("gpu")
    run(course)
    enter(course)  # as formgrader's button does, which generates the lab again
    assert {one["max_score"] for one in formgrader(course).get_submissions(HW)} == {6}
