"""Feedback hides hidden tests, paths of the machine and forged reports."""

import dataclasses
import subprocess
import sys
import sysconfig
import tempfile

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from hood.classroom.feedback.feedback import CleanFeedback
from hood.classroom.feedback.page import ABOUT, About
from hood.classroom.results.counted_marks import FeedbackRules
from hood.course import ENGINE, VARIABLE
from hood.grader.execution.self_judged import NOTE
from hood.phase_paths import ROOT, environment_with
from hood.verdict import VERDICT_MIME, PartResult, Status, Verdict
from tests.hood.grader.execution.test_graded_cell import SOURCE, error, graded_cell, report, result

ORDINARY = (
    "assert visible(1)\n### BEGIN HIDDEN TESTS\nassert hidden(2), 'two is not'\n"
    "### END HIDDEN TESTS"
)


def cleaned(*cells):
    nb = new_notebook(cells=list(cells))
    return CleanFeedback().preprocess(nb, {"nbgrader": {}})[0].cells


def test_the_hidden_part_is_removed_and_the_page_shows_the_verdict():
    cell = graded_cell(SOURCE)
    printed = new_output("stream", text="printed")
    cell.outputs = [printed, report(), result("2.0")]
    nb = new_notebook(cells=[cell])
    nb, resources = CleanFeedback().preprocess(nb, {"nbgrader": {}})
    assert nb.cells[0].source == "assert twice(1) == 2"
    assert nb.cells[0].outputs == [printed]
    name = cell.metadata.nbgrader.grade_id
    said = Verdict.from_json(report().data[VERDICT_MIME])
    assert resources["nbgrader"][ABOUT].verdicts == {name: said}


def test_a_verdict_names_no_path_of_the_machine():
    output = report()
    said = Verdict.from_json(output.data[VERDICT_MIME])
    part = PartResult("a", 1.0, 0.0, Status.WRONG, problem=f"raised OSError: {ROOT}/utils")
    verdict = dataclasses.replace(said, parts=(part,))
    output.data[VERDICT_MIME] = verdict.to_json()
    cell = graded_cell(SOURCE)
    cell.outputs = [output]
    _, resources = CleanFeedback().preprocess(new_notebook(cells=[cell]), {"nbgrader": {}})
    [found] = resources["nbgrader"][ABOUT].verdicts.values()
    assert found.parts[0].problem == "raised OSError: course/utils"


def test_a_report_after_plain_hidden_tests_is_not_believed():
    verified = graded_cell(SOURCE)
    verified.outputs = [report(), result("2.0")]
    nb = new_notebook(cells=[graded_cell(ORDINARY), verified])
    _, resources = CleanFeedback().preprocess(nb, {"nbgrader": {}})
    assert resources["nbgrader"][ABOUT].verdicts == {}


def test_a_traceback_that_quotes_hidden_code_keeps_its_last_line():
    cell = graded_cell(ORDINARY)
    cell.outputs = [error("AssertionError", "two is not", ["----> 3 assert hidden(2)"])]
    [cell] = cleaned(cell)
    assert "hidden(" not in str(cell)
    note, shown = cell.outputs
    assert note.data["text/plain"] == NOTE
    assert shown.traceback == ["AssertionError: two is not"]


def test_output_after_plain_hidden_tests_is_not_shown():
    ran = [new_output("stream", name="stdout", text="a secret"), error("Secret", "a secret")]
    cells = [new_code_cell("x", outputs=ran), graded_cell(ORDINARY), new_code_cell("x")]
    cells[1].outputs = cells[2].outputs = ran
    cells[2].execution_count = 3
    before, test, after = cleaned(*cells)
    assert "a secret" in str(before.outputs)
    assert "ecret" not in str([test, after])
    assert test.outputs[1].traceback == ["an exception"]
    assert after.execution_count is None


def test_an_instructor_may_show_it_anyway():
    cell = graded_cell(ORDINARY)
    cell.outputs = [error("AssertionError", "x is y", ["----> 3 assert hidden(2)"])]
    nb = new_notebook(cells=[cell, new_code_cell("x", outputs=[result("7")])])
    nb, _ = CleanFeedback(trust_output=True).preprocess(nb, {"nbgrader": {}})
    assert [c.outputs[0].output_type for c in nb.cells] == ["error", "execute_result"]
    assert nb.cells[0].outputs[0].traceback == ["AssertionError: x is y"]


def test_a_traceback_of_the_learners_own_cell_stays():
    cell = new_code_cell("1 / 0", outputs=[error(lines=["----> 1 1 / 0"])])
    assert cleaned(cell)[0].outputs[0].traceback == ["----> 1 1 / 0"]


@pytest.mark.parametrize(
    ("shown", "by_person", "rubrics"),
    [(False, True, {}), (True, False, {}), (True, True, {"why": "because"})],
)
def test_a_rubric_is_removed_unless_the_class_shows_it_beside_marks(shown, by_person, rubrics):
    settings = {"grade": False, "solution": False, "locked": True, "task": True, "points": 3}
    settings |= {"grade_id": "why", "by_person": by_person}
    source = "Why?\n=== BEGIN MARK SCHEME ===\nbecause\n=== END MARK SCHEME ==="
    nb = new_notebook(cells=[new_markdown_cell(source, metadata={"nbgrader": settings})])
    rules = FeedbackRules(shows={"misconceptions": True, "examples": True, "rubrics": shown})
    nb, resources = CleanFeedback().preprocess(nb, {"nbgrader": {ABOUT: About(rules=rules)}})
    assert nb.cells[0].source == "Why?"
    assert resources["nbgrader"][ABOUT].rubrics == rubrics


def test_a_learner_may_write_the_markers_of_a_region():
    cells = cleaned(new_code_cell("# BEGIN HIDDEN TESTS"), new_markdown_cell("BEGIN MARK SCHEME"))
    assert [c.source for c in cells] == ["# BEGIN HIDDEN TESTS", "BEGIN MARK SCHEME"]


def test_paths_of_the_machine_are_shortened():
    library = sysconfig.get_path("purelib")
    text = f"{library}/torch/x.py:1: UserWarning\n{ROOT}/utils/notebook/expect.py"
    outputs = [
        new_output("stream", name="stdout", text=text),
        new_output("display_data", data={"text/plain": text, "text/html": text}),
        error(value=text, lines=[text]),
    ]
    [cell] = cleaned(new_code_cell("x", outputs=outputs))
    assert library not in str(cell.outputs)
    assert str(ROOT) not in str(cell.outputs)
    assert "site-packages/torch/x.py" in cell.outputs[0].text


def test_a_cells_temporary_file_has_one_name_in_every_temporary_folder(monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(ROOT / "scratch"))
    told = [f"{place}/ipykernel_12/345.py:1: W" for place in ("/tmp", ROOT / "scratch")]
    outputs = [new_output("stream", name="stderr", text="\n".join(told))]
    [cell] = cleaned(new_code_cell("x", outputs=outputs))
    assert cell.outputs[0].text == "your cell:1: W\nyour cell:1: W"


def test_a_large_figure_takes_no_time():
    html = '<img src="data:image/png;base64,' + "iVBOR/w0KGgo" * 200_000 + '">'
    cell = new_code_cell("x", outputs=[new_output("display_data", data={"text/html": html})])
    assert cleaned(cell)[0].outputs[0].data["text/html"] == html


@pytest.mark.parametrize(
    ("url", "shown"),
    [("", "“A"), ("https://example.org/", "[A](https://example.org/lessons/01_x.")],
)
def test_a_page_links_no_notebook_that_is_missing_beside_it(url, shown, monkeypatch):
    monkeypatch.setattr("hood.classroom.feedback.feedback.lesson_url", lambda: url)
    [cell] = cleaned(new_markdown_cell("[A](../../notebooks/01_x.ipynb#cell-id=a)"))
    assert cell.source.startswith(shown)


def test_the_engines_path_is_shortened_in_a_course_of_another_folder(tmp_path):
    code = (
        "from hood.classroom.feedback.feedback import without_paths\n"
        f"print(without_paths('{ENGINE}/hood/judge/card.py', '{tmp_path}'))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment_with(tmp_path) | {VARIABLE: str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.stdout == "engine/hood/judge/card.py\n", done.stderr
