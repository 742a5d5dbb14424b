"""Progress is read from saved notebooks only: what was replaced, what ran, what failed."""

import json
from html.parser import HTMLParser

import pytest

from grader.judging.report import VerdictReport
from grader.verdict import FULL, Status, Verdict
from utils.course import PHASES
from utils.progress import Exercise, Progress, progress, read_lab, show_progress

TENSORS = PHASES[1]
STUB = 'def f(x):\n    raise NotImplementedError("write your answer here")\n'
ANSWER = "def f(x):\n    return 2 * x\n"
ERROR = {"output_type": "error", "ename": "ExpectationFailed", "evalue": "", "traceback": []}
VERDICTS = {
    status: {
        "output_type": "display_data",
        "data": VerdictReport(Verdict("f", 2.0, status), "01")._repr_mimebundle_(),
        "metadata": {},
    }
    for status in Status
}
OK = {"output_type": "stream", "name": "stdout", "text": "ok       f\n"}


def code(source, count=None, outputs=(), **marks):
    return {
        "cell_type": "code",
        "source": source,
        "metadata": {"nbgrader": marks} if marks else {},
        "execution_count": count,
        "outputs": list(outputs),
    }


def exercise(name="f", stub=STUB, stub_count=None, visible=(None, ()), graded=(None, ())):
    """The cells of one exercise: (execution count, outputs) for the visible and graded cells."""
    return [
        {"cell_type": "markdown", "source": "## A question", "metadata": {}},
        code(stub, stub_count, solution=True, grade=False, grade_id=f"{name}_solution"),
        code("expect_equal('f', f(1), 2)", *visible),
        code("expect_equal('f', f(2), 4)", *graded, solution=False, grade=True, grade_id=name),
    ]


def saved(tmp_path, *exercises):
    path = tmp_path / "release" / TENSORS.name / f"{TENSORS.name}.ipynb"
    path.parent.mkdir(parents=True, exist_ok=True)
    cells = [code("import torch", grade=False, solution=False, grade_id="setup")]
    cells += [cell for group in exercises for cell in group]
    path.write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4}))
    return path


def only_exercise(tmp_path, **kwargs) -> Exercise:
    (found,) = read_lab(TENSORS, saved(tmp_path, exercise(**kwargs))).exercises
    return found


def test_an_untouched_exercise_is_not_begun(tmp_path):
    assert only_exercise(tmp_path) == Exercise("f", begun=False, passing=False)


@pytest.mark.parametrize("status", Status)
def test_a_verdict_below_the_graded_cell_decides(tmp_path, status):
    graded = (3, [OK, VERDICTS[status]])
    found = only_exercise(tmp_path, stub=ANSWER, stub_count=1, visible=(2, [OK]), graded=graded)
    assert found == Exercise("f", begun=True, passing=status in FULL)


def test_running_the_stub_is_not_beginning(tmp_path):
    found = only_exercise(tmp_path, stub_count=1, visible=(2, [ERROR]), graded=(3, [ERROR]))
    assert found == Exercise("f", begun=False, passing=False)


def test_an_answer_that_was_never_checked_is_begun(tmp_path):
    found = only_exercise(tmp_path, stub=ANSWER, stub_count=1)
    assert found == Exercise("f", begun=True, passing=False)


def test_an_answer_whose_checks_ran_well_is_passing(tmp_path):
    found = only_exercise(tmp_path, stub=ANSWER, stub_count=4, visible=(5, [OK]), graded=(6, [OK]))
    assert found == Exercise("f", begun=True, passing=True)


@pytest.mark.parametrize("failing", ["visible", "graded"])
def test_one_failed_check_is_enough_not_to_pass(tmp_path, failing):
    runs = {"visible": (2, [OK]), "graded": (3, [OK])}
    runs[failing] = (3, [OK, ERROR])
    assert not only_exercise(tmp_path, stub=ANSWER, stub_count=1, **runs).passing


def test_checks_that_ran_before_the_last_run_of_the_answer_are_stale(tmp_path):
    found = only_exercise(tmp_path, stub=ANSWER, stub_count=7, visible=(5, [OK]), graded=(6, [OK]))
    assert found == Exercise("f", begun=True, passing=False)


def test_an_answer_with_a_syntax_error_is_begun(tmp_path):
    assert only_exercise(tmp_path, stub="def f(x:\n    retrun").begun


def test_an_answer_that_only_mentions_the_stub_is_begun(tmp_path):
    mention = "def f(x):\n    # no more NotImplementedError\n    return x\n"
    assert only_exercise(tmp_path, stub=mention).begun


def test_every_stub_of_an_exercise_must_be_filled(tmp_path):
    second = code(STUB, solution=True, grade=False, grade_id="more_solution")
    cells = exercise(stub=ANSWER)
    (found,) = read_lab(TENSORS, saved(tmp_path, [*cells[:2], second, *cells[2:]])).exercises
    assert not found.begun


def test_exercises_are_told_apart_and_scratch_cells_between_them_do_not_count(tmp_path):
    done = exercise("f", ANSWER, 1, (2, [OK]), (3, [OK]))
    scratch = [code("1/0", 4, [ERROR])]
    lab = read_lab(TENSORS, saved(tmp_path, done, scratch, exercise("g", ANSWER), exercise("h")))
    assert [e.name for e in lab.exercises] == ["f", "g", "h"]
    assert (lab.begun, lab.passing) == (2, 1)
    assert str(lab) == "1 of 3 exercises pass their checks; begun: g"


def test_sources_may_be_lists_of_lines(tmp_path):
    assert only_exercise(tmp_path, stub=ANSWER.splitlines(keepends=True)).begun
    assert not only_exercise(tmp_path, stub=STUB.splitlines(keepends=True)).begun


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", "null", '{"cells": 3}', '{"cells": [1]}', '{"cells": [{}]}', "\x00\xff"],
)
def test_a_broken_notebook_is_reported_and_costs_nothing_else(tmp_path, content):
    path = saved(tmp_path)
    path.write_text(content)
    lab = read_lab(TENSORS, path)
    assert lab.exercises == ()
    assert "not a readable notebook" in str(lab)
    assert "not a readable notebook" in progress(tmp_path)._repr_html_()


def test_a_folder_without_labs_says_so(tmp_path):
    assert "no lab here yet" in repr(progress(tmp_path))
    assert "no lab here yet" in progress(tmp_path)._repr_html_()


def test_what_is_drawn_is_also_said_in_words(tmp_path):
    saved(tmp_path, exercise("f", ANSWER, 1, (2, [OK]), (3, [OK])), exercise("<g>", ANSWER))
    shown = progress(tmp_path)
    assert isinstance(shown, Progress)
    assert repr(shown) == (
        "01 Tensors: storage and view: 1 of 2 exercises pass their checks; begun: <g>"
    )
    text = Text()
    text.feed(shown._repr_html_())
    assert "1 of 2 exercises pass their checks; begun: <g>" in text.words


def test_a_phase_is_done_when_every_exercise_of_its_lab_passes(tmp_path):
    passing = exercise("f", ANSWER, 1, (2, [OK]), (3, [OK]))
    saved(tmp_path, passing, exercise("g"))
    assert progress(tmp_path).done == ()
    saved(tmp_path, passing)
    assert progress(tmp_path).done == (1,)
    saved(tmp_path)
    assert progress(tmp_path).done == ()


def test_reading_changes_no_file(tmp_path):
    path = saved(tmp_path, exercise())
    before = path.read_bytes(), path.stat().st_mtime_ns
    progress(tmp_path)
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before


def test_while_the_course_is_built_nobodys_progress_is_shown(tmp_path, monkeypatch, capsys):
    saved(tmp_path, exercise("secret", ANSWER))
    monkeypatch.setenv("OPEN_THE_HOOD_BUILD", "1")
    show_progress(tmp_path)
    shown = capsys.readouterr().out
    assert "Run this cell" in shown
    assert "secret" not in shown
    assert progress(tmp_path).labs == []


class Text(HTMLParser):
    """Collects the text of an HTML fragment."""

    def __init__(self):
        super().__init__()
        self.words = ""

    def handle_data(self, data):
        self.words += data
