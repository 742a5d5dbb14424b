"""Progress is read from saved notebooks only: replaced stubs, runs and failures."""

import hashlib
import json
import os
import re
from html.parser import HTMLParser

import pytest

from hood import audience
from hood.judge.report import VerdictReport
from hood.learner import journal
from hood.learner.contents import PHASES
from hood.learner.lab_file import Exercise, read_lab
from hood.learner.progress import Progress, next_step, progress, show_next, show_progress
from hood.metadata import KEY, mark
from hood.verdict import FULL, Cause, PartResult, Status, Verdict

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
def test_the_saved_notebook_shows_whether_an_exercise_is_begun_and_passing(
    tmp_path, cells, begun, passing
):
    assert only_exercise(tmp_path, **cells) == Exercise("f", begun, passing, "A question")


@pytest.mark.parametrize("status", Status)
def test_a_verdict_below_the_graded_cell_decides(tmp_path, status):
    graded = (3, [OK, VERDICTS[status]])
    found = only_exercise(tmp_path, stub=ANSWER, stub_count=1, visible=(2, [OK]), graded=graded)
    assert found == Exercise("f", True, status in FULL, "A question", earned=0.0)


def verdict(*, answer=None, earned=(2.0,), at=1_700_000_000):
    """A verdict's output, with points, and with a stamp of the answer's text if there is one."""
    parts = tuple(
        PartResult(f"part {n}", 2.0, points, Status.RIGHT if points else Status.WRONG, Cause.NONE)
        for n, points in enumerate(earned)
    )
    status = Status.RIGHT if all(earned) else Status.PARTLY
    data = VerdictReport(Verdict("f", 2.0 * len(earned), status, parts), "01")._repr_mimebundle_()
    stamp = {KEY: {"at": at, "ran": sorted(map(mark, ["import torch", answer or ""]))}}
    return {
        "output_type": "display_data",
        "data": data,
        "metadata": stamp if answer is not None else {},
    }


OTHER = "def f(x):\n    return x + x\n"
FULL_MARKS = {
    "no visible check ran after the answer": {"visible": (None, ()), "graded": (9, "full")},
    "they ran before it": {"visible": (2, [OK]), "stub_count": 5, "graded": (9, "full")},
    "one of them failed": {"visible": (8, [ERROR]), "graded": (9, "full")},
    "a line below the verdict failed": {"graded": (9, "full, then an error")},
    "the kernel was restarted, and counts begin anew": {"stub_count": 12, "graded": (9, "full")},
}


@pytest.mark.parametrize("cells", FULL_MARKS.values(), ids=FULL_MARKS)
def test_a_full_verdict_on_the_answer_in_the_file_counts(tmp_path, cells):
    count, what = cells["graded"]
    outputs = [verdict(answer=ANSWER), *([ERROR] if "error" in what else [])]
    more = {"stub_count": 4, **cells, "graded": (count, outputs)}
    found = only_exercise(tmp_path, stub=ANSWER, **more)
    assert (found.passing, found.earned, found.stale) == (True, 2.0, 0.0)


def test_a_verdict_on_another_answer_no_longer_counts_and_the_page_says_so(tmp_path):
    path = saved(tmp_path, exercise("f", ANSWER, 4, graded=(5, [verdict(answer=OTHER)])))
    [found] = read_lab(TENSORS, path).exercises
    assert (found.begun, found.passing, found.earned) == (True, False, 0.0)
    assert found.stale == 1_700_000_000
    said = "changed since its verdict, so run the answer and its graded cell again: f"
    assert said in repr(progress(tmp_path))


def test_without_a_stamp_a_verdict_from_before_the_answer_no_longer_counts(tmp_path):
    cells = {"stub": ANSWER, "stub_count": 6, "graded": (5, [verdict()])}
    found = only_exercise(tmp_path, **cells)
    assert (found.passing, found.stale > 0) == (False, True)


def test_with_verdicts_progress_is_in_points(tmp_path):
    cells = exercise("f", ANSWER, 1, graded=(2, [verdict(answer=ANSWER, earned=(2.0, 0.0))]))
    cells[-1]["metadata"]["nbgrader"]["points"] = 4
    right = exercise("g", ANSWER, 3, graded=(4, [verdict(answer=ANSWER)]))
    right[-1]["metadata"]["nbgrader"]["points"] = 2
    saved(tmp_path, cells, right)
    [lab] = progress(tmp_path).labs
    assert str(lab) == "4 of 6 points, 1 of 2 exercises; begun: f"
    assert lab.done_share == pytest.approx(4 / 6)
    assert "4 of 6 points; about" in repr(progress(tmp_path))


def in_words(answer, name="why"):
    """The cells of a question in words."""
    marks = {"task": True, "grade": False, "solution": False, "grade_id": name, "points": 3}
    return [
        {
            "cell_type": "markdown",
            "id": "6-why",
            "source": "## 6 · Why?\n\nSay it.",
            "metadata": {"nbgrader": marks},
        },
        {"cell_type": "markdown", "id": "a1", "source": answer, "metadata": {}},
    ]


@pytest.mark.parametrize("stub", ["*Your answer goes here.*", "*Write your answer here.*\n", ""])
def test_a_question_in_words_is_open_until_it_is_answered(tmp_path, stub):
    saved(tmp_path, exercise("f", **DONE), in_words(stub))
    [lab] = progress(tmp_path).labs
    assert [one.name for one in lab.left] == ["why"]
    assert progress(tmp_path).done == ()
    assert step(tmp_path)[0] == "Continue: lab 01, 6 · Why?"
    saved(tmp_path, exercise("f", **DONE), in_words("Because."))
    assert progress(tmp_path).done == (1,)
    [lab] = progress(tmp_path).labs
    said = "1 of 1 exercises pass their checks; answered in words: why"
    assert str(lab) == said, "it is counted with nothing that a program judges"


DONE = {"stub": ANSWER, **RAN}


def test_every_stub_of_an_exercise_must_be_filled(tmp_path):
    second = code(STUB, solution=True, grade=False, grade_id="more_solution")
    cells = exercise(stub=ANSWER)
    (found,) = read_lab(TENSORS, saved(tmp_path, [*cells[:2], second, *cells[2:]])).exercises
    assert not found.begun


def test_exercises_are_separated_and_scratch_cells_between_them_do_not_count(tmp_path):
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


def test_the_drawing_has_a_text_version(tmp_path):
    assert "no lab here yet" in repr(progress(tmp_path))
    assert "no lab here yet" in progress(tmp_path)._repr_html_()
    path = saved(tmp_path, exercise("f", **DONE), exercise("<g>", ANSWER), exercise("h"))
    before = path.read_bytes(), path.stat().st_mtime_ns
    shown = progress(tmp_path)
    assert isinstance(shown, Progress)
    said = "1 of 3 exercises pass their checks; begun: <g>"
    line, total = repr(shown).splitlines()
    assert line == f"01 Tensors: storage and view: {said}"
    assert total == "1 of 3 exercises pass their checks; about 4 hours are left."
    text = Text()
    text.feed(shown._repr_html_())
    assert "1 of 3 exercises pass their checks" in text.words
    assert "begun: A question" in text.words
    assert "../release/01_tensors/01_tensors.ipynb" in text.links
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


def test_a_further_exercise_keeps_no_phase_open_and_is_not_suggested(tmp_path):
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


def test_during_a_build_no_progress_is_shown(tmp_path, monkeypatch, capsys):
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


def journal_of(root, name, **kinds):
    path = root / "work" / journal.FOLDER / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(kinds))


def test_a_learner_continues_at_the_last_exercise_and_not_at_the_first_unsolved_one(tmp_path):
    lessons(tmp_path, TENSORS)
    parts = {name: exercise(name, stub=ANSWER) for name in "fghi"}
    for name, cells in parts.items():
        for number, cell in enumerate(cells):
            cell |= {"id": f"{name}{number}"}
        cells[0]["source"] = f"## Title {name}"
    saved(tmp_path, *parts.values())
    assert step(tmp_path)[0] == "Continue: lab 01, Title i", "the last that is begun"
    journal_of(tmp_path, TENSORS.name, cells={"g3": 5.0, "f1": 6.0, "h2": 7.0})
    assert step(tmp_path) == (
        "Continue: lab 01, Title h",
        "../release/01_tensors/01_tensors.ipynb#cell-id=h0",
    )
    solved = exercise("h", **DONE)
    for number, cell in enumerate(solved):
        cell |= {"id": f"h{number}"}
    saved(tmp_path, parts["f"], parts["g"], solved, parts["i"])
    assert step(tmp_path)[0] == "Continue: lab 01, Title i", "the next one after what is done"
    journal_of(tmp_path, TENSORS.name, cells=["damaged"])
    assert step(tmp_path)[0] == "Continue: lab 01, Title i"


def lesson_cells():
    def drill():
        page = '<div data-drill="e30="></div>'
        return {"output_type": "display_data", "metadata": {}, "data": {"text/html": [page]}}

    folded = {"jupyter": {"outputs_hidden": True}}
    return [
        {"cell_type": "markdown", "id": "top", "source": "# Tensors", "metadata": {}},
        code("1", 1) | {"id": "c1"},
        {"cell_type": "markdown", "id": "one", "source": "## One", "metadata": {}},
        code("2", 2, [drill()]) | {"id": "c2"},
        code("3", 3) | {"id": "c3", "metadata": folded},
        {"cell_type": "markdown", "id": "two", "source": "## Two", "metadata": {}},
        code("4", 4, [drill()]) | {"id": "c4"},
        code("5", 5) | {"id": "c5", "metadata": folded},
    ]


def test_a_lesson_shows_where_reading_stopped(tmp_path):
    saved(tmp_path, exercise("f"))
    lessons(tmp_path, TENSORS)
    lesson = tmp_path / "notebooks" / f"{TENSORS.name}.ipynb"
    lesson.write_text(json.dumps({"cells": lesson_cells(), "metadata": {}, "nbformat": 4}))
    hours = sum(TENSORS.hours)
    assert progress(tmp_path).lessons == {}
    assert progress(tmp_path).hours_left(progress(tmp_path).labs[0]) == hours
    journal_of(
        tmp_path,
        f"lesson_{TENSORS.name}",
        cells={"c4": 1.0, "c1": 2.0, "c3": 3.0},
        drills={"a?": True, "b?": False},
    )
    found = progress(tmp_path)
    reading = found.lessons[1]
    assert (reading.title, reading.section) == ("One", "one"), "the cell that ran last"
    assert (reading.drills, reading.predictions) == ((1, 2), (1, 2))
    assert reading.share == pytest.approx(7 / 8), "down to the lowest cell that ran"
    assert found.hours_left(found.labs[0]) == pytest.approx(hours - TENSORS.hours[0] * 7 / 8)
    assert "lesson read as far as “One” (1 of 2 drills, 1 of 2 predictions)" in repr(found)
    text = Text()
    text.feed(found._repr_html_())
    assert "read as far as One" in text.words
    assert "01_tensors.ipynb#cell-id=one" in text.links
    assert step(tmp_path) == ("Continue: lesson 01, One", "01_tensors.ipynb#cell-id=one")
    journal_of(tmp_path, f"lesson_{TENSORS.name}", cells={"c1": 1.0, "c5": 2.0})
    assert progress(tmp_path).lessons[1].whole
    assert step(tmp_path)[0].startswith("Begin: lesson 01")


def test_a_shown_solution_is_reported_and_its_points_are_separate(tmp_path):
    cells = exercise("f", ANSWER, 1, graded=(2, [verdict(answer=ANSWER)]))
    cells[-1]["metadata"]["nbgrader"]["points"] = 2
    saved(tmp_path, cells, exercise("g", stub=ANSWER))
    journal_of(tmp_path, TENSORS.name, shown={"f": 5.0})
    said = repr(progress(tmp_path))
    assert "solution shown: f" in said
    assert "2 of 2 points, 2 of them after the solution was shown" in said


def test_a_copy_that_was_renamed_is_named_and_counted(tmp_path):
    original = saved(tmp_path, exercise("f"), exercise("g"), exercise("h"))
    before = original.read_bytes()
    mine = saved(tmp_path, exercise("f", **DONE), exercise("g"), exercise("h"))
    renamed = tmp_path / "work" / "elsewhere" / "mine.ipynb"
    renamed.parent.mkdir(parents=True)
    mine.rename(renamed)
    original.write_bytes(before)
    found = progress(tmp_path)
    assert found.labs[0].passing == 1
    [said] = found.notes
    assert said.startswith(
        "`work/01_tensors/01_tensors.ipynb` is missing, but `work/elsewhere/mine.ipynb` looks "
        "like it."
    )
    place = tmp_path / "work" / TENSORS.name / original.name
    place.parent.mkdir()
    place.write_bytes(before)
    [said] = progress(tmp_path).notes
    assert "only `work/01_tensors/01_tensors.ipynb` counts" in said
    assert renamed.exists()
    renamed.write_bytes(b"{}")
    assert progress(tmp_path).notes == []


def test_a_copy_of_an_older_text_is_named_with_what_to_do(tmp_path):
    original = saved(tmp_path, exercise("f"))
    copied = tmp_path / "work" / TENSORS.name / original.name
    copied.parent.mkdir(parents=True)
    notebook = json.loads(original.read_text())
    made_from = hashlib.sha256(original.read_bytes()).hexdigest()[:12]
    notebook["metadata"] = {"open_the_hood": {"copy": {"of": made_from}}}
    copied.write_text(json.dumps(notebook))
    assert progress(tmp_path).notes == []
    saved(tmp_path, exercise("f"), exercise("g"))
    [said] = progress(tmp_path).notes
    assert "newer texts than `work/01_tensors/01_tensors.ipynb`" in said
    assert "`python -m hood.learner.copies`" in said


def test_without_recorded_runs_the_last_begun_exercise_is_suggested(tmp_path):
    lessons(tmp_path, TENSORS)
    asked = exercise("g", stub=ANSWER)
    asked[0] |= {"id": "2-a-question"}
    saved(tmp_path, exercise("f", **DONE), asked, exercise("h"))
    words, link = step(tmp_path)
    assert words == "Continue: lab 01, A question"
    assert link == "../release/01_tensors/01_tensors.ipynb#cell-id=2-a-question"


def test_of_two_labs_the_last_saved_one_is_suggested(tmp_path):
    earlier = saved(tmp_path, exercise("f", stub=ANSWER))
    later = tmp_path / "work" / PHASES[2].name / f"{PHASES[2].name}.ipynb"
    later.parent.mkdir(parents=True)
    later.write_bytes(earlier.read_bytes())
    os.utime(later, (2e9, 2e9))
    assert step(tmp_path)[0].startswith("Continue: lab 02")
    os.utime(earlier, (3e9, 3e9))
    assert step(tmp_path)[0].startswith("Continue: lab 01")


def test_solutions_in_the_release_and_in_the_copy_count(tmp_path):
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


def test_the_button_is_a_link_with_text(tmp_path, monkeypatch):
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
        self.words, self.links = "", []

    def handle_starttag(self, tag, attributes):
        self.links += [value for name, value in attributes if name == "href"]

    def handle_data(self, data):
        self.words += data
