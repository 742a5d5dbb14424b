"""Progress is read from saved notebooks only: what was replaced, what ran, what failed."""

import json
import os
import re
from html.parser import HTMLParser

import pytest

from grader.judging.report import VerdictReport
from grader.verdict import FULL, Status, Verdict
from utils.notebook import audience
from utils.notebook.course import PHASES
from utils.notebook.progress import (
    Exercise,
    Progress,
    next_step,
    progress,
    read_lab,
    show_next,
    show_progress,
)

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


MENTION = "def f(x):\n    # no more NotImplementedError\n    return x\n"
RAN = {"stub_count": 1, "visible": (2, [OK]), "graded": (3, [OK])}
SAVED = {
    "untouched": ({}, False, False),
    "the stub was run": ({**RAN, "visible": (2, [ERROR]), "graded": (3, [ERROR])}, False, False),
    "the stub in lines": ({"stub": STUB.splitlines(keepends=True)}, False, False),
    "an answer in lines": ({"stub": ANSWER.splitlines(keepends=True)}, True, False),
    "never checked": ({"stub": ANSWER, "stub_count": 1}, True, False),
    "all ran well": ({**RAN, "stub": ANSWER}, True, True),
    "a visible check failed": ({**RAN, "stub": ANSWER, "visible": (3, [OK, ERROR])}, True, False),
    "a graded check failed": ({**RAN, "stub": ANSWER, "graded": (3, [OK, ERROR])}, True, False),
    "checks ran before the answer": ({**RAN, "stub": ANSWER, "stub_count": 7}, True, False),
    "a syntax error": ({"stub": "def f(x:\n    retrun"}, True, False),
    "it mentions the stub": ({"stub": MENTION}, True, False),
}


@pytest.mark.parametrize(("cells", "begun", "passing"), SAVED.values(), ids=SAVED)
def test_what_was_saved_says_whether_an_exercise_is_begun_and_passing(
    tmp_path, cells, begun, passing
):
    assert only_exercise(tmp_path, **cells) == Exercise("f", begun, passing, "A question")


@pytest.mark.parametrize("status", Status)
def test_a_verdict_below_the_graded_cell_decides(tmp_path, status):
    graded = (3, [OK, VERDICTS[status]])
    found = only_exercise(tmp_path, stub=ANSWER, stub_count=1, visible=(2, [OK]), graded=graded)
    assert found == Exercise("f", True, status in FULL, "A question")


DONE = {"stub": ANSWER, **RAN}


def test_every_stub_of_an_exercise_must_be_filled(tmp_path):
    second = code(STUB, solution=True, grade=False, grade_id="more_solution")
    cells = exercise(stub=ANSWER)
    (found,) = read_lab(TENSORS, saved(tmp_path, [*cells[:2], second, *cells[2:]])).exercises
    assert not found.begun


def test_exercises_are_told_apart_and_scratch_cells_between_them_do_not_count(tmp_path):
    done = exercise("f", **DONE)
    scratch = [code("1/0", 4, [ERROR])]
    lab = read_lab(TENSORS, saved(tmp_path, done, scratch, exercise("g", ANSWER), exercise("h")))
    assert [e.name for e in lab.exercises] == ["f", "g", "h"]
    assert (lab.begun, lab.passing) == (2, 1)
    assert str(lab) == "1 of 3 exercises pass their checks; begun: g"


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


def test_what_is_drawn_is_also_said_in_words(tmp_path):
    assert "no lab here yet" in repr(progress(tmp_path))
    assert "no lab here yet" in progress(tmp_path)._repr_html_()
    path = saved(tmp_path, exercise("f", **DONE), exercise("<g>", ANSWER), exercise("h"))
    before = path.read_bytes(), path.stat().st_mtime_ns
    shown = progress(tmp_path)
    assert isinstance(shown, Progress)
    said = "1 of 3 exercises pass their checks; begun: <g>"
    assert repr(shown) == f"01 Tensors: storage and view: {said}"
    text = Text()
    text.feed(shown._repr_html_())
    assert said in text.words
    assert re.findall(r"transparent (\d+)%", shown._repr_html_()) == ["100", "50", "0"]
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before


def test_a_phase_is_done_when_every_exercise_of_its_lab_passes(tmp_path):
    passing = exercise("f", **DONE)
    saved(tmp_path, passing, exercise("g"))
    assert progress(tmp_path).done == ()
    saved(tmp_path, passing)
    assert progress(tmp_path).done == (1,)
    saved(tmp_path)
    assert progress(tmp_path).done == ()


def test_a_further_exercise_keeps_no_phase_open_and_nobody_is_sent_to_it(tmp_path):
    lessons(tmp_path, TENSORS, PHASES[2])
    further = exercise("g", stub=ANSWER)
    further[0]["source"] = "## A question\n\n*Further, hard, 30 minutes, 4 points.*\nIt asks."
    last = exercise("h")
    last[0]["source"] = "## The last"
    saved(tmp_path, exercise("f", **DONE), further, last)
    assert step(tmp_path)[0] == "Continue: lab 01, The last"
    saved(tmp_path, exercise("f", **DONE), further, exercise("h", **DONE))
    assert progress(tmp_path).done == (1,)
    assert progress(tmp_path).states == {1: "2 of 3"}
    assert step(tmp_path)[0].startswith("Next: lesson 02")


def test_while_the_course_is_built_nobodys_progress_is_shown(tmp_path, monkeypatch, capsys):
    saved(tmp_path, exercise("secret", ANSWER))
    monkeypatch.setenv(audience.BUILD, "1")
    show_progress(tmp_path)
    shown = capsys.readouterr().out
    assert "Run this cell" in shown
    assert "secret" not in shown
    assert progress(tmp_path).labs == []


def lessons(root, *phases):
    for phase in phases:
        path = root / "notebooks" / f"{phase.name}.ipynb"
        path.parent.mkdir(exist_ok=True)
        path.write_text("{}")


def step(root):
    return next_step(progress(root), root)


def test_a_beginner_is_sent_to_the_first_lesson(tmp_path):
    lessons(tmp_path, PHASES[0], TENSORS)
    saved(tmp_path, exercise())
    assert step(tmp_path) == ("Begin: lesson 00, Hello", "00_hello.ipynb")


def test_who_has_begun_goes_on_with_the_first_exercise_that_does_not_pass(tmp_path):
    lessons(tmp_path, TENSORS)
    asked = exercise("g", stub=ANSWER)
    asked[0] |= {"id": "2-a-question"}
    saved(tmp_path, exercise("f", **DONE), asked, exercise("h"))
    words, link = step(tmp_path)
    assert words == "Continue: lab 01, A question"
    assert link == "../release/01_tensors/01_tensors.ipynb#cell-id=2-a-question"


def test_of_two_labs_the_one_that_was_saved_last_goes_on(tmp_path):
    earlier = saved(tmp_path, exercise("f", stub=ANSWER))
    later = tmp_path / "work" / PHASES[2].name / f"{PHASES[2].name}.ipynb"
    later.parent.mkdir(parents=True)
    later.write_bytes(earlier.read_bytes())
    os.utime(later, (2e9, 2e9))
    assert step(tmp_path)[0].startswith("Continue: lab 02")
    os.utime(earlier, (3e9, 3e9))
    assert step(tmp_path)[0].startswith("Continue: lab 01")


def test_what_is_solved_in_the_release_or_in_the_copy_counts(tmp_path):
    lessons(tmp_path, TENSORS)
    released = saved(tmp_path, exercise("f", **DONE), exercise("g", stub=ANSWER), exercise("h"))
    copied = tmp_path / "work" / TENSORS.name / released.name
    copied.parent.mkdir(parents=True)
    released.rename(copied)
    saved(tmp_path, exercise("f"), exercise("g"), exercise("h", **DONE))
    [lab] = progress(tmp_path).labs
    assert [one.passing for one in lab.exercises] == [True, False, True]
    assert step(tmp_path)[1].startswith("../work/")
    saved(tmp_path, exercise("f"), exercise("g", **DONE), exercise("h", stub=ANSWER))
    assert step(tmp_path)[1].startswith("../release/"), "the exercise is begun there alone"


def test_after_a_whole_lab_comes_the_next_lesson_and_then_nothing(tmp_path):
    lessons(tmp_path, TENSORS, PHASES[2])
    saved(tmp_path, exercise("f", **DONE))
    assert step(tmp_path) == ("Next: lesson 02, Autograd by hand", "02_autograd.ipynb")
    (tmp_path / "notebooks" / "02_autograd.ipynb").unlink()
    assert step(tmp_path)[0].startswith("Every lab passes its checks")


def test_the_button_is_a_link_and_words(tmp_path, monkeypatch):
    shown = []
    monkeypatch.setattr("IPython.display.display", lambda data, raw: shown.append(data))
    lessons(tmp_path, TENSORS)
    cells = exercise("g", stub=ANSWER)
    cells[0] |= {"source": "## 3 · a < b?"}
    saved(tmp_path, cells)
    show_next(tmp_path)
    [data] = shown
    text = Text()
    text.feed(data["text/html"])
    assert text.words == "Continue: lab 01, 3 · a < b?"
    assert "(../release/01_tensors/01_tensors.ipynb)" in data["text/plain"]


class Text(HTMLParser):
    """Collects the text of an HTML fragment."""

    def __init__(self):
        super().__init__()
        self.words = ""

    def handle_data(self, data):
        self.words += data
