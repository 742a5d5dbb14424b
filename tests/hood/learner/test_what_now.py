"""The text below a verdict: its answer, and the next step."""

import json
import os
import re
from types import SimpleNamespace

import pytest

from hood.judge import history
from hood.learner import journal, service, what_now
from hood.metadata import KEY, mark
from hood.verdict import VERDICT_MIME

ANSWER = "def f(x):\n    return x"


def marked(kind, name, source, **marks):
    return {
        "cell_type": kind,
        "id": name,
        "source": source,
        "metadata": {"nbgrader": {"grade_id": name, **marks}} if marks else {},
        **({"outputs": [], "execution_count": None} if kind == "code" else {}),
    }


def lab(*, stub=ANSWER):
    return [
        marked("markdown", "one", "## 1 · First\n\nReturn `x`."),
        marked("code", "f_solution", stub, solution=True),
        marked("code", "c1", "f(1)"),
        marked("code", "f", 'check("f")', grade=True, points=2),
        marked("markdown", "why", "## 2 · Why <b>?", task=True, points=3),
        marked("markdown", "a1", "*Your answer goes here.*"),
        marked("markdown", "three", "## 3 · Third"),
        marked("code", "g_solution", "raise NotImplementedError", solution=True),
        marked("code", "g", 'check("g")', grade=True, points=2),
    ]


@pytest.fixture
def notebook(monkeypatch, tmp_path):
    """A saved lab whose answer has run, and what is displayed."""
    path = tmp_path / "work" / "01_tensors" / "01_tensors.ipynb"
    path.parent.mkdir(parents=True)
    shown = []
    monkeypatch.setattr(what_now, "own_notebook", lambda: path)
    monkeypatch.setattr(what_now, "ROOT", tmp_path)
    monkeypatch.setattr(what_now, "can_move", lambda: False)
    monkeypatch.setattr(what_now, "display", lambda data, raw: shown.append(data["text/html"]))
    monkeypatch.setattr(journal, "right", lambda name: shown.append(f"right: {name}"))
    monkeypatch.setattr(what_now, "STARTED", 4e9)
    ran = {"f_solution": history.Ran(ANSWER, count=7, at=1e9)}
    monkeypatch.setattr(history, "_cells", ran)

    def show(status, cells=None, **more):
        path.write_text(json.dumps({"cells": lab() if cells is None else cells}))
        os.utime(path, (2e9, 2e9))
        shown.clear()
        card = {VERDICT_MIME: {"status": status}, "text/plain": "f: 1 of 2 points"}
        what_now.show("f", card, **more)
        return "\n".join(shown)

    return SimpleNamespace(show=show, ran=ran, path=path)


def test_a_verdict_names_its_answer_and_time(notebook):
    said = notebook.show("partly")
    assert re.search(
        r"Judged on \d+ \w+, [\d:]{8}: your answer as it ran at [\d:]{8} in \[7\]\.", said
    )
    assert "After a change, run that cell and this cell again" in said


def test_an_answer_saved_without_a_run_is_reported(notebook):
    said = notebook.show("partly", lab(stub="def f(x):\n    return 2 * x"))
    assert "The saved notebook has another answer: run the answer's cell, then this cell." in said
    notebook.ran["f_solution"].at = 3e9  # it was saved before that
    assert "another answer" not in notebook.show("partly", lab(stub="def f(x): ..."))


def test_a_verdict_on_an_earlier_definition_of_a_failed_cell_says_so(notebook):
    notebook.ran["f_solution"].finished = False
    assert "The last run of your answer's cell in [7] ended in an error" in notebook.show("wrong")


def test_after_a_right_answer_comes_the_next_exercise_and_how_to_compare_words(notebook):
    said = notebook.show("right")
    assert "right: f" in said
    assert 'Next: <a href="01_tensors.ipynb#cell-id=why">2 · Why &lt;b&gt;?</a>' in said
    assert "solution('why')" in said
    assert "tutor" not in said
    answered = lab()
    answered[5]["source"] = "Because."
    assert '#cell-id=three">3 · Third</a>' in notebook.show("right", answered)
    assert "Next, above this one" in notebook.show("right", [*lab()[4:6], *lab()[:4]])
    done = notebook.show("right", lab()[:4])
    assert 'Every exercise of this lab is done. Continue on the <a href="../start.ipynb">' in done


def test_a_text_for_a_tutor_has_the_question_the_code_that_ran_and_the_verdict(notebook):
    fenced = 'def f(x):\n    """Three ```."""'
    notebook.ran["f_solution"].source = fenced
    said = notebook.show("partly")
    assert "Copy for a tutor" in said
    assert "## 1 · First\n\nReturn `x`." in said
    assert "````python\ndef f(x):" in said, "a fence that the code does not close"
    assert "```text\nf: 1 of 2 points\n```" in said
    assert "Next" not in said


@pytest.mark.parametrize("status", ["wrong", "partly", "not attempted"])
def test_the_solution_is_offered_where_the_copy_may_show_it(notebook, status):
    assert "solution(" not in notebook.show(status), "a class's copy"
    assert "solution('f')" in notebook.show(status, solution=print)
    assert ("tutor" in notebook.show(status)) is (status != "not attempted")


def test_the_button_shows_the_solution_once(notebook, monkeypatch):
    shown = []
    monkeypatch.setattr(what_now, "can_move", lambda: True)
    notebook.show("wrong", solution=shown.append)
    first = what_now._buttons["f"]
    first.children[0].click()
    assert shown == ["f"]
    assert first.children[0].disabled
    notebook.show("wrong", solution=shown.append)
    assert what_now._buttons["f"] is not first


def test_a_course_that_was_brought_up_to_date_asks_for_a_new_kernel(notebook, monkeypatch):
    assert "Restart" not in notebook.show("wrong")
    monkeypatch.setattr(what_now, "STARTED", 0.0)
    assert "choose Kernel → Restart Kernel" in notebook.show("wrong")


@pytest.mark.parametrize("cells", [[], [{}], [3], "text"])
def test_a_notebook_that_cannot_be_read_costs_nothing(notebook, cells):
    assert "Judged on" in notebook.show("right", cells)
    assert "f: 1 of 2 points" in notebook.show("wrong", cells)


def test_below_a_services_card_no_solution_is_offered_and_the_card_is_stamped(
    notebook, monkeypatch
):
    card = {VERDICT_MIME: {"status": "wrong"}, "text/plain": "f: 0 of 2 points"}
    shown, below = [], []
    done = {"state": "done", "card": card, "id": "1"}
    monkeypatch.setattr(service, "_json", lambda *_: done)
    monkeypatch.setattr(service, "display", lambda data, **more: shown.append((data, more)))
    monkeypatch.setattr(what_now, "show", lambda *said: below.append(said))
    service.show_verdict("f")
    [(data, more)] = shown
    assert data == card
    assert mark(ANSWER) in more["metadata"][KEY]["ran"]
    assert below == [("f", card)]
