"""What feedback does not show."""

import sysconfig

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from grader.phase_paths import ROOT
from grader.preprocessors import CleanFeedback, Sanitize
from grader.preprocessors.feedback import BY, BY_GRADER, BY_THEM
from grader.preprocessors.self_judged import NOTE
from tests.grader.judging.test_graded_cell import SOURCE, error, graded_cell, report, result

ORDINARY = (
    "assert visible(1)\n### BEGIN HIDDEN TESTS\nassert hidden(2), 'two is not'\n"
    "### END HIDDEN TESTS"
)


def cleaned(*cells):
    nb = new_notebook(cells=list(cells))
    return CleanFeedback().preprocess(nb, {"nbgrader": {}})[0].cells


def test_the_hidden_part_and_its_number_are_gone_and_the_report_stays():
    cell = graded_cell(SOURCE)
    cell.outputs = [report(), result("2.0")]
    [cell] = cleaned(cell)
    assert cell.source == "assert twice(1) == 2"
    assert [str(output.data) for output in cell.outputs] == [says(BY_GRADER), str(report().data)]


def says(words):
    return str({"text/html": BY % words})


def test_what_the_learners_code_shows_is_told_from_the_report():
    cell = graded_cell(SOURCE)
    alike = new_output("display_data", data={"text/plain": report().data["text/plain"]})
    cell.outputs = [alike, report(), result("2.0")]
    [cell] = cleaned(cell)
    assert [str(output.data) for output in cell.outputs] == [
        says(BY_THEM),
        str(alike.data),
        says(BY_GRADER),
        str(report().data),
    ]
    alike = new_output("display_data", data={"text/html": BY % BY_GRADER})
    nb = new_notebook(cells=[new_code_cell("", outputs=[alike])])
    assert "shown-by" not in str(Sanitize().preprocess(nb, {})[0])


def test_a_traceback_that_quotes_hidden_code_keeps_its_last_line():
    cell = graded_cell(ORDINARY)
    cell.outputs = [error("AssertionError", "two is not", ["----> 3 assert hidden(2)"])]
    [cell] = cleaned(cell)
    assert "hidden(" not in str(cell)
    note, shown = cell.outputs
    assert note.data["text/plain"] == NOTE
    assert shown.traceback == ["AssertionError: two is not"]


def test_after_plain_hidden_tests_nothing_that_ran_is_shown():
    ran = [new_output("stream", name="stdout", text="a secret"), error("Secret", "a secret")]
    cells = [new_code_cell("x", outputs=ran), graded_cell(ORDINARY), new_code_cell("x")]
    cells[1].outputs = cells[2].outputs = ran
    cells[2].execution_count = 3
    before, test, after = cleaned(*cells)
    assert "a secret" in str(before.outputs)
    assert "ecret" not in str([test, after])
    assert test.outputs[1].traceback == ["an exception"]
    assert after.execution_count is None


def test_an_instructor_may_show_it_all_the_same():
    cell = graded_cell(ORDINARY)
    cell.outputs = [error("AssertionError", "x is y", ["----> 3 assert hidden(2)"])]
    nb = new_notebook(cells=[cell, new_code_cell("x", outputs=[result("7")])])
    nb, _ = CleanFeedback(trust_output=True).preprocess(nb, {"nbgrader": {}})
    assert [c.outputs[0].output_type for c in nb.cells] == ["error", "execute_result"]
    assert nb.cells[0].outputs[0].traceback == ["AssertionError: x is y"]


def test_a_traceback_of_the_learners_own_cell_stays():
    cell = new_code_cell("1 / 0", outputs=[error(lines=["----> 1 1 / 0"])])
    assert cleaned(cell)[0].outputs[0].traceback == ["----> 1 1 / 0"]


def test_a_rubric_is_gone():
    settings = {"grade": False, "solution": False, "locked": True, "task": True, "points": 3}
    source = "Why?\n=== BEGIN MARK SCHEME ===\nbecause\n=== END MARK SCHEME ==="
    [cell] = cleaned(new_markdown_cell(source, metadata={"nbgrader": settings}))
    assert cell.source == "Why?"


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


def test_a_large_figure_takes_no_time():
    html = '<img src="data:image/png;base64,' + "iVBOR/w0KGgo" * 200_000 + '">'
    cell = new_code_cell("x", outputs=[new_output("display_data", data={"text/html": html})])
    assert cleaned(cell)[0].outputs[0].data["text/html"] == html


@pytest.mark.parametrize(
    ("url", "shown"),
    [("", "“A"), ("https://example.org/", "[A](https://example.org/lessons/01_x.")],
)
def test_a_page_has_no_link_to_a_notebook_that_is_not_beside_it(url, shown, monkeypatch):
    monkeypatch.setattr("grader.preprocessors.feedback.lesson_url", lambda: url)
    [cell] = cleaned(new_markdown_cell("[A](../../notebooks/01_x.ipynb#cell-id=a)"))
    assert cell.source.startswith(shown)
