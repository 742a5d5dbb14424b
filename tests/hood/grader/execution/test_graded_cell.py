"""What nbgrader reads from a graded cell with any outputs."""

import sys

import pytest
from nbformat.v4 import new_code_cell, new_output
from nbgrader.utils import determine_grade

from hood.grader.execution.graded_cell import (
    Stop,
    as_points,
    final_outputs,
    is_verified,
    read_verdicts,
    shorten_outputs,
    split_hidden,
)
from hood.verdict import VERDICT_MIME, Cause

SOURCE = """assert twice(1) == 2
### BEGIN HIDDEN TESTS
from hood.judge.verify import verify
verify("twice", twice)
### END HIDDEN TESTS"""


def graded_cell(source=SOURCE, points=2):
    settings = {"grade": True, "solution": False, "locked": True, "task": False}
    settings |= {"grade_id": "twice", "points": points, "schema_version": 3}
    return new_code_cell(source, metadata={"nbgrader": settings})


def report(earned=2.0, check="twice", **more):
    verdict = {"check": check, "points": 2.0, "earned": earned, "status": "right", **more}
    return new_output("display_data", data={"text/plain": "a report", VERDICT_MIME: verdict})


def result(text):
    return new_output("execute_result", data={"text/plain": text}, execution_count=1)


def error(name="ValueError", value="bad", lines=("Traceback", "\x1b[31mverify(\x1b[0m")):
    return new_output("error", ename=name, evalue=value, traceback=list(lines))


def stderr(text="careful"):
    return new_output("stream", name="stderr", text=text)


def grade(visible, hidden, stop=None):
    cell = graded_cell()
    cell.outputs = final_outputs(cell, visible, hidden, stop)
    return determine_grade(cell)[0]


def test_a_cell_is_split_at_its_hidden_region():
    visible, hidden = split_hidden(SOURCE)
    assert visible == "assert twice(1) == 2"
    assert hidden.endswith('verify("twice", twice)')


@pytest.mark.parametrize(
    "source",
    [
        "assert True",
        "### BEGIN HIDDEN TESTS\nassert f(1)\n### END HIDDEN TESTS",
        '### BEGIN HIDDEN TESTS\n# verify("x", x)\n### END HIDDEN TESTS',
        'verify("x", x)\n### BEGIN HIDDEN TESTS\nassert x\n### END HIDDEN TESTS',
        '### BEGIN HIDDEN TESTS\nverify("x", x)\n### END HIDDEN TESTS\nprint(1)',
    ],
)
def test_cells_of_ordinary_assignments_are_not_split(source):
    assert split_hidden(source) is None
    assert not is_verified(graded_cell(source))


def test_a_graded_cell_written_by_a_learner_is_always_marked_by_hand():
    cell = graded_cell(SOURCE)
    assert is_verified(cell)
    cell.metadata.nbgrader.solution = True
    assert not is_verified(cell)


@pytest.mark.parametrize("earned", [0.0, 0.5, 1.0, 2.0])
def test_the_verdicts_points_are_the_grade(earned):
    assert grade([], [report(earned), result(repr(earned))]) == earned


@pytest.mark.parametrize("shown", [[], [result("[bold]2.0[/bold]")], [result("nan")], [error()]])
def test_how_a_result_is_displayed_does_not_matter(shown):
    assert grade([], [report(), *shown]) == 2.0


def test_a_report_does_not_outlive_its_kernel():
    assert grade([], [report()], Stop(Cause.KERNEL_DIED, "in this cell")) == 0.0


@pytest.mark.parametrize("noise", [error(), stderr(), result("1e9"), result("'text'")])
def test_the_visible_parts_output_does_not_decide(noise):
    assert grade([noise], [report(1.0), result("1.0")]) == 1.0


@pytest.mark.parametrize(
    "hidden",
    [
        [],
        [result("2.0")],
        [report(3.0), result("2.0")],
        [report(-1.0), result("2.0")],
        [report(float("nan")), result("2.0")],
        [report(None), result("2.0")],
        [report("all"), result("2.0")],
        [report(check="row_sums"), result("2.0")],
        [error()],
        [stderr()],
        [new_output("display_data", data={VERDICT_MIME: "2.0"}), result("2.0")],
    ],
)
def test_without_a_verdict_there_are_no_points(hidden):
    cell = graded_cell()
    cell.outputs = final_outputs(cell, [], hidden)
    assert determine_grade(cell)[0] == 0.0
    assert "0 of 2 points" in cell.outputs[0].data["text/plain"]


def test_a_missing_name_is_reported_without_quoting_a_hidden_line():
    cell = graded_cell()
    [message, _] = final_outputs(cell, [], [error("NameError", "name 'twice' is not defined")])
    assert "name 'twice' is not defined" in message.data["text/plain"]
    assert "verify" not in str(message)


def test_the_error_that_ended_a_cell_is_named_with_the_missing_definition():
    missing = [error("NameError", "name 'twice' is not defined")]
    for kind, said in (
        ("SyntaxError", f"ended in SyntaxError, here with Python {sys.version_info[0]}."),
        ("ValueError", "defines it, and a cell that would define it ended in ValueError"),
    ):
        [message, _] = final_outputs(graded_cell(), [], missing, ended={"twice": kind})
        assert said in message.data["text/plain"]
    [message, _] = final_outputs(graded_cell(), [], missing, ended={"thrice": "SyntaxError"})
    assert message.data["text/plain"].endswith("no cell that ran to its end defines it")


def test_an_unwritten_answer_is_not_attempted():
    cell = graded_cell()
    missing = [error("NameError", "name 'twice' is not defined")]
    [message, _] = final_outputs(cell, [], missing, untouched=True)
    assert message.data[VERDICT_MIME]["status"] == "not attempted"
    [message, _] = final_outputs(cell, [], [error("TypeError", "no")], untouched=True)
    assert message.data[VERDICT_MIME]["status"] == "not run"


def test_an_error_of_the_visible_part_stays_readable_without_colours():
    [shown, *_] = final_outputs(graded_cell(), [error()], [report(), result("2.0")])
    assert shown.data["text/plain"] == "Traceback\nverify("


def test_the_hidden_parts_output_is_not_shown():
    printed = new_output("stream", name="stdout", text="INPUT tensor([1., 2.])")
    outputs = final_outputs(graded_cell(), [], [printed, stderr("INPUT"), report(), result("2.0")])
    assert "INPUT" not in str(outputs)


def test_the_verdict_can_be_read_back():
    cell = graded_cell()
    parts = [{"name": "all", "points": 2, "earned": 1}]
    cell.outputs = final_outputs(cell, [], [report(1.0, parts=parts), result("1.0")])
    from nbformat.v4 import new_notebook

    assert read_verdicts(new_notebook(cells=[cell]))["twice"].earned == 1.0


@pytest.mark.parametrize(("text", "value"), [("1", 1.0), ("2.0", 2.0), ("x", None), (None, None)])
def test_points_are_numbers_in_range(text, value):
    assert as_points(text, 2.0) == value


def test_printed_text_is_cut_as_a_whole():
    outputs = [new_output("stream", name="stdout", text="x" * 60) for _ in range(3)]
    kept = shorten_outputs([*outputs, result("1")], most=100)
    assert sum(o.text.count("x") for o in kept[:-1]) == 100
    assert "cut" in kept[-2].text
    assert kept[-1].output_type == "execute_result"


def test_text_of_displays_and_tracebacks_is_cut():
    shown = new_output("display_data", data={"text/plain": "x" * 200, "image/png": "y" * 200})
    shown, failed = shorten_outputs([shown, error("n" * 300, "v" * 200, ["t" * 60] * 3)], most=100)
    assert shown.data["text/plain"].count("x") == 100
    assert shown.data["image/png"] == "y" * 200
    assert (failed.ename.count("n"), failed.evalue.count("v")) == (200, 100)
    assert "".join(failed.traceback).count("t") < 110


def test_markup_is_whole_or_left_out():
    shown = new_output("display_data", data={"text/html": "<b>" * 100_000, "text/latex": "$x$"})
    [shown] = shorten_outputs([shown], most=100)
    assert "<b>" not in shown.data["text/html"]
    assert shown.data["text/latex"] == "$x$"
