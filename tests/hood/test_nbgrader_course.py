"""nbgrader's commands in a course with our settings.

These are regrading, odd submissions, the exchange and formgrader.
"""

import re
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell
from nbgrader.api import Gradebook

from hood.grader.course import open_course
from hood.grader.execution.graded_cell import read_verdicts
from tests.hood.classroom.recording.running import everything, owned, rows
from tests.hood.classroom.recording.small import enter
from tests.hood.tiny import LAB, cell, judged, nbgrader, released, solved, source_notebook, write

pytestmark = pytest.mark.slow(50)

ALL = {"twice": 2.0, "row_sums": 3.0, "boxes": 2.0}
NO_MARK = dict.fromkeys(ALL)


def grades(course, student, lab=LAB):
    """Return ``{cell: (automatic score, whether a person must look)}``."""
    with Gradebook(f"sqlite:///{course / 'gradebook.db'}") as gradebook:
        submission = gradebook.find_submission(lab, student)
        return {
            grade.name: (grade.auto_score, grade.needs_manual_grade)
            for notebook in submission.notebooks
            for grade in notebook.grades
        }


def marks(course, student, lab=LAB):
    return {name: mark for name, (mark, _) in grades(course, student, lab).items() if name != "why"}


def autograde(course, *words, lab=LAB):
    done = nbgrader(course, "autograde", lab, *words)
    return done.returncode, done.stderr


def submission(course, student):
    return course / "submitted" / student / LAB / f"{LAB}.ipynb"


def graded(course, student):
    return nbformat.read(course / "autograded" / student / LAB / f"{LAB}.ipynb", as_version=4)


@pytest.fixture
def strong(copied_course, graded_course):
    """A copy of the graded course, and a student with full points."""
    return copied_course, graded_course.learner("solved everything").id


@pytest.fixture(scope="module")
def regraded(graded_course, tmp_path_factory):
    """A part of the class, graded by nbgrader once more, with odd submissions.

    Before that a person has marked text answers, and two students have handed in something else.
    """
    course = tmp_path_factory.mktemp("regraded") / "course"
    shutil.copytree(graded_course.root, course)
    same = graded_course.learner("same mistake everywhere").id
    other = graded_course.learner("in another way").id
    strong = graded_course.learner("solved everything").id
    for folder in (course / "submitted").iterdir():
        if folder.name not in (same, other, strong):
            shutil.rmtree(folder)
    hand_in_odd_ones(course)
    with Gradebook(f"sqlite:///{course / 'gradebook.db'}") as gradebook:
        for student in (same, strong):
            grade = gradebook.find_grade("why", LAB, LAB, student)
            grade.manual_score, grade.needs_manual_grade = 2.0, False
        gradebook.db.commit()
    write(b"what the cases were", submission(course, other).with_name("answers.txt"))
    write(solved(released(source_notebook())), submission(course, strong))
    before = {student: graded(course, student) for student in (same, other)}
    status, log = autograde(course, "--force")
    assert status == 0, log
    after = {student: graded(course, student) for student in (same, other)}
    return SimpleNamespace(
        course=course, same=same, other=other, strong=strong, runs=(before, after)
    )


def hand_in_odd_ones(course):
    """Write submissions on which plain nbgrader would fail, or whose files it would show."""
    right = solved(released(source_notebook()))
    submission(course, "odd-folder").mkdir(parents=True)
    write(b"no notebook here", course / "submitted" / "odd-none" / LAB / "notes.txt")
    write(right, submission(course, "odd-extra"))
    write(b"{", course / "submitted" / "odd-extra" / LAB / "scratch.ipynb")
    hostile = solved(released(source_notebook()))
    hostile.cells.append(new_markdown_cell("hello <script>alert(1)</script>"))
    code = "from IPython.display import HTML, Javascript\nHTML('<img src=x onerror=alert(2)>')"
    hostile.cells.append(new_code_cell(code))
    hostile.cells.append(new_code_cell("Javascript('alert(3)')"))
    write(hostile, submission(course, "odd-script"))


def seed(notebook):
    return notebook.metadata.open_the_hood.seed


def test_grading_again_keeps_the_cases_and_another_submission_gets_new_ones(regraded):
    before, after = (run[regraded.same] for run in regraded.runs)
    assert seed(after) == seed(before)
    assert judged(after) == judged(before)
    # A changed submission, even if only one file differs, gets new cases.
    before, after = (run[regraded.other] for run in regraded.runs)
    assert seed(after) != seed(before)
    earned = [{n: v.earned for n, v in read_verdicts(nb).items()} for nb in (before, after)]
    assert earned[0] == earned[1]


def test_marks_comments_cells_and_files_are_those_of_the_batch(regraded, graded_course):
    one, student = graded_course.root, regraded.same
    plain, batch = (rows(course)[student] for course in (regraded.course, one))
    plain.pop(f"{LAB}/why"), batch.pop(f"{LAB}/why")  # marked by hand since
    assert len(plain) > 3
    assert plain == batch
    assert owned(graded(regraded.course, student)) == owned(graded(one, student))
    kept = [
        {
            path.name: path.stat().st_mode
            for path in (course / "autograded" / student / LAB).iterdir()
        }
        for course in (regraded.course, one)
    ]
    assert kept[0] == kept[1]


def test_marks_by_hand_stay_and_are_flagged_after_a_new_submission(regraded):
    for student, looked_at_again in ((regraded.same, False), (regraded.strong, True)):
        assert grades(regraded.course, student)["why"] == (None, looked_at_again)
        with Gradebook(f"sqlite:///{regraded.course / 'gradebook.db'}") as gradebook:
            assert gradebook.find_grade("why", LAB, LAB, student).score == 2.0


def test_odd_submissions_each_get_a_verdict_and_the_class_goes_on(regraded):
    course = regraded.course
    assert marks(course, "odd-folder") == marks(course, "odd-none") == NO_MARK
    assert marks(course, "odd-extra") == marks(course, "odd-script") == ALL
    assert "is a folder" in graded(course, "odd-folder").cells[0].source
    assert "No notebook named" in graded(course, "odd-none").cells[0].source
    assert nbgrader(course, "generate_feedback", LAB, "--student=odd-*").returncode == 0
    page = (course / "feedback" / "odd-script" / LAB / f"{LAB}.html").read_text()
    assert "<script>alert(1)" not in page
    assert "onerror=alert(2)>" not in page.replace("&gt;", "").replace("&lt;", "").split("Out[")[-1]
    assert "alert(3)</" not in page


def test_without_sandboxes_nothing_is_graded_and_records_stay(strong, monkeypatch):
    course, student = strong
    before = everything(course)
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent))  # no bubblewrap
    status, log = autograde(course, f"--student={student}", "--force")
    assert status == 1, log
    assert "bubblewrap (`bwrap`) is not installed" in log
    assert "Traceback" not in log
    assert everything(course) == before


def test_a_mismatch_of_check_and_cell_is_refused_before_any_mark_changes(strong):
    course, student = strong
    with Gradebook(f"sqlite:///{course / 'gradebook.db'}") as gradebook:
        gradebook.find_grade("twice", LAB, LAB, student).extra_credit = 1.0
        gradebook.find_grade("why", LAB, LAB, student).manual_score = 2.0
        gradebook.db.commit()
    path = course / "source" / LAB / f"{LAB}.ipynb"
    nb = nbformat.read(path, as_version=4)
    cell(nb, "twice").metadata.nbgrader.points = 5
    write(nb, path)
    enter(open_course(course), (LAB,), LAB)
    before = everything(course)
    status, log = autograde(course, f"--student={student}", "--force")
    assert status == 1
    assert "the check 'twice' gives 2 points, but its cell in source/ has 5" in log
    assert "Traceback" not in log
    assert everything(course) == before


def test_release_fetch_submit_and_collect_work_through_the_exchange(copied_course, tmp_path):
    course, learner = copied_course, tmp_path / "learner"
    learner.mkdir()
    shutil.rmtree(course / "submitted")
    shutil.copy(course / "nbgrader_config.py", learner)
    release = course / "release" / LAB / f"{LAB}.ipynb"
    nb = nbformat.read(release, as_version=4)
    nb.cells[0].source = "[A heading](../../notebooks/99_tiny.ipynb#cell-id=a-heading)"
    write(nb, release)
    for words, cwd in [
        (("release_assignment", LAB), course),
        (("fetch_assignment", LAB), learner),
        (("submit", LAB), learner),
        (("collect", LAB), course),
    ]:
        done = nbgrader(course, *words, cwd=cwd)
        assert done.returncode == 0, f"{words}: {done.stderr}"
    [collected] = course.glob(f"submitted/*/{LAB}/{LAB}.ipynb")
    assert (learner / LAB / f"{LAB}.ipynb").read_bytes() == collected.read_bytes()
    assert (collected.parent / "timestamp.txt").exists()
    assert nbformat.read(collected, as_version=4).cells[0].source == "“A heading”"
    assert nbformat.read(release, as_version=4) == nb


def test_the_address_of_a_classs_site_changes_only_the_released_copy(copied_course):
    course, rules = copied_course, copied_course / "course.yml"
    source = course / "source" / LAB / f"{LAB}.ipynb"
    nb = nbformat.read(source, as_version=4)
    nb.cells[0].source = "[A heading](../../notebooks/99_tiny.ipynb#cell-id=a-heading)"
    write(nb, source)
    made = []
    for text in (f"labs: {{{LAB}: {{}}}}\n", "course: {lesson_url: 'https://a.org/'}\n"):
        rules.write_text(f"{rules.read_text() if rules.exists() else ''}{text}")
        done = nbgrader(course, "generate_assignment", LAB, "--force")
        assert done.returncode == 0, done.stderr
        made.append((course / "release" / LAB / f"{LAB}.ipynb").read_bytes())
    assert made[0] == made[1]
    done = nbgrader(course, "release_assignment", LAB)
    assert done.returncode == 0, done.stderr
    [out] = course.glob(f"exchange/*/outbound/{LAB}/{LAB}.ipynb")
    text = "[A heading](https://a.org/lessons/99_tiny.html#a-heading)"
    assert nbformat.read(out, as_version=4).cells[0].source == text
    assert "../../notebooks/99_tiny.ipynb" in (course / ".released" / f"{LAB}.json").read_text()


def test_validate_reports_failing_and_passing_cells(copied_course, tmp_path):
    course = copied_course
    todo = write(released(source_notebook()), tmp_path / "todo.ipynb")
    done = write(solved(released(source_notebook())), tmp_path / "done.ipynb")
    said = nbgrader(course, "validate", str(todo), str(done)).stdout
    assert re.search(r"(?s)NotImplementedError.*Success", said)
    assert said.count("Success") == 1
