"""Scores, verdicts and reasons for the terminal's summary and the class report."""

import json

import pytest
from nbgrader.api import Gradebook
from sqlalchemy import event

from hood import UserError
from hood.classroom.gradebook import graded
from hood.classroom.gradebook.graded import Results, read_class
from hood.grader.course import open_course
from hood.verdict import Cause, Status
from tests.hood.classroom.report.made_up import LAB, TASK, Made, make_course, verdict


def one(tmp_path, learner):
    """The only submission of a class of one."""
    [found] = read_class(open_course(make_course(tmp_path / "course", [learner])), LAB)
    return found


def test_a_mark_by_hand_counts_more_than_the_automatic_one_and_extra_credit_is_added(tmp_path):
    learner = Made("ada", scores={"twice": 1.0}, manual={"twice": 1.5}, extra={"row_sums": 0.25})
    found = one(tmp_path, learner)
    assert found.scores == {"twice": 1.5, "row_sums": 3.25, "softmax": 5.0, TASK: None}
    assert found.points == 9.75
    assert found.waiting == {TASK}
    assert not found.unmarked
    assert found.reasons() == []


def test_an_answer_marked_by_hand_no_longer_waits(tmp_path):
    found = one(tmp_path, Made("ada", manual={TASK: 3.0}))
    assert not found.waiting
    assert found.scores[TASK] == 3.0


def test_an_automatic_cell_without_a_mark_means_incomplete_grading(tmp_path):
    found = one(tmp_path, Made("ada", scores={"softmax": None}))
    assert found.unmarked == {"softmax"}
    assert [reason.kind for reason in found.reasons()] == ["ungraded"]


def test_a_missing_or_broken_notebook_is_named_and_costs_nobody_else(tmp_path):
    learners = [Made("ada", notebook=False), Made("bob"), Made("eve")]
    course = make_course(tmp_path / "course", learners)
    (course / "autograded" / "bob" / LAB / f"{LAB}.ipynb").write_text('{"cells": [')
    said = {
        found.student: [r.text for r in found.reasons()]
        for found in read_class(open_course(course), LAB)
    }
    assert said == {
        "ada": ["there is no graded notebook"],
        "bob": ["the graded notebook could not be read"],
        "eve": [],
    }


@pytest.mark.parametrize("cause", Cause)
def test_an_answer_that_was_not_run_has_a_reason(tmp_path, cause):
    """The kind of reason depends on the cause, not on the sentence."""
    stopped = verdict("twice", 0.0, status="not run", cause=cause, problem="the kernel died, or so")
    kinds = {
        Cause.TIMEOUT: "stopped",
        Cause.KERNEL_DIED: "stopped",
        Cause.KERNEL_STOPPED: "stopped",
        Cause.UNDEFINED_NAME: "undefined",
        Cause.NEWER_PYTHON: "newer python",
    }
    [reason] = one(tmp_path, Made("ada", verdicts={"twice": stopped})).reasons()
    assert (reason.kind, reason.text) == (kinds.get(cause, "unjudged"), "the kernel died, or so")


def test_an_answer_for_a_newer_python_has_no_mark_and_waits_for_one(tmp_path):
    newer = verdict("twice", 0.0, status="not run", cause=Cause.NEWER_PYTHON, problem="newer")
    ada = Made("ada", scores={"twice": None}, verdicts={"twice": newer})
    found = one(tmp_path / "a", ada)
    assert (found.scores["twice"], found.lost) == (None, frozenset())
    assert [reason.kind for reason in found.reasons()] == ["newer python"]
    ada.manual = {"twice": 2.0}
    assert one(tmp_path / "b", ada).reasons() == []


@pytest.mark.parametrize(
    ("cause", "text"),
    [
        (Cause.TIMEOUT, "a call ran out of time"),
        (Cause.TOO_MUCH_OUTPUT, "its calls printed too much"),
    ],
)
def test_a_stopped_call_is_reported(tmp_path, cause, text):
    endless = verdict("twice", 0.0, cause=cause, problem="returned nothing more")
    [reason] = one(tmp_path, Made("ada", verdicts={"twice": endless})).reasons()
    assert (reason.kind, reason.cell, reason.text) == ("stopped", "twice", text)


def test_the_reason_for_a_kernels_end_is_reported_once(tmp_path):
    why = "not run, because the kernel died in the cell `twice`: SIGKILL ended it"
    every = {
        name: verdict(name, 0.0, status="not run", cause=Cause.KERNEL_STOPPED, problem=why)
        for name in ("row_sums", "softmax")
    }
    [reason] = one(tmp_path, Made("ada", verdicts=every)).reasons()
    assert reason.text == why
    assert reason.cell == "row_sums"


def test_an_untouched_lab_needs_no_manual_grading(tmp_path):
    verdicts = {n: verdict(n, 0.0, status="not attempted") for n in ("twice", "row_sums")}
    undefined = "name 'f' is not defined: no cell that ran to its end defines it"
    verdicts["softmax"] = verdict(
        "softmax", 0.0, status="not run", cause=Cause.UNDEFINED_NAME, problem=undefined
    )
    found = one(tmp_path, Made("ada", verdicts=verdicts))
    assert not found.attempted
    assert found.reasons() == []


HOSTILE = [
    None,
    7,
    "right",
    [],
    {},
    {"status": ["right"], "parts": {"a": 1}, "explanations": [1], "reads": 3},
    {"status": "wrong", "parts": [None, 3, {"earned": "x", "problem": {}}]},
    {"status": "x" * 10_000, "explanations": {"m" * 10_000: 5}, "lesson": {}},
]


@pytest.mark.parametrize("raw", HOSTILE, ids=range(len(HOSTILE)))
def test_a_verdict_of_any_shape_is_read_without_trusting_it(tmp_path, raw):
    found = one(tmp_path, Made("ada", verdicts={"twice": raw}, scores={"twice": 0.0}))
    read = found.verdicts["twice"]
    assert read.status in Status
    assert all(isinstance(part.problem, str) for part in read.parts)
    assert all(len(text) <= 400 for entry in read.explanations.items() for text in entry)
    found.reasons()


@pytest.mark.parametrize(
    "ours",
    [{"notes": 3, "seconds": "x", "sandbox": 1}, {"notes": [None, {"kind": []}], "seed": {}}],
)
def test_metadata_of_any_shape_is_read_without_trusting_it(tmp_path, ours):
    found = one(tmp_path, Made("ada", metadata=ours))
    assert found.run.sandbox in (None, True)
    assert found.reasons() == []


def test_times_are_read_from_the_record(tmp_path):
    learners = [Made("ada", metadata={"seconds": 12.5}), Made("bob", metadata={"seconds": None})]
    ada, bob = read_class(open_course(make_course(tmp_path / "course", learners)), LAB)
    assert (ada.run.seconds, bob.run.seconds) == (12.5, None)


def test_all_or_some_learners_are_read_in_batches_in_order(tmp_path, monkeypatch):
    monkeypatch.setattr(graded, "AT_ONCE", 3)
    course = make_course(tmp_path / "course", [Made(f"s{k}") for k in range(8)] + [Made("other")])
    some = [f"s{k}" for k in range(8)]
    assert [found.student for found in read_class(open_course(course), LAB)] == ["other", *some]
    assert [found.student for found in read_class(open_course(course), LAB, some)] == some
    backwards = Results(open_course(course), LAB).read(lambda student: -int(student[1:]), some)
    assert [found.student for found in backwards] == some[::-1]


def test_more_learners_take_no_more_queries(tmp_path):
    def queries(size):
        course = make_course(tmp_path / str(size), [Made(f"s{k}") for k in range(size)])
        read, count = Results(open_course(course), LAB), []
        event.listen(read._engine, "before_cursor_execute", lambda *_: count.append(1))
        assert len(list(read.read())) == size
        return len(count)

    assert queries(2) == queries(40)


def test_reading_writes_nothing(tmp_path):
    course = make_course(tmp_path / "course", [Made("ada")])
    before = (course / "gradebook.db").read_bytes()
    read_class(open_course(course), LAB)
    assert (course / "gradebook.db").read_bytes() == before


def test_a_missing_gradebook_and_an_unknown_lab_are_reported(tmp_path):
    with pytest.raises(UserError, match="grade the lab first"):
        Results(open_course(tmp_path), LAB)
    course = make_course(tmp_path / "course", [])
    with pytest.raises(UserError, match=f"no lab '01_other' in the gradebook; it has: {LAB}"):
        Results(open_course(course), "01_other")


def test_a_lab_of_two_notebooks_is_read_as_one(tmp_path):
    course = make_course(tmp_path / "course", [Made("ada")])
    folder = course / "autograded" / "ada" / LAB
    with Gradebook(f"sqlite:///{course / 'gradebook.db'}") as gradebook:
        gradebook.add_notebook("more", LAB)
        gradebook.add_grade_cell("extra", "more", LAB, max_score=1, cell_type="code")
    nb = json.loads((folder / f"{LAB}.ipynb").read_text())
    nb["metadata"]["open_the_hood"] |= {"sandbox": False, "notes": [{"kind": "foreign"}]}
    (folder / "more.ipynb").write_text(json.dumps(nb))
    [found] = read_class(open_course(course), LAB)
    assert set(found.verdicts) >= {f"{LAB}/twice", "more/twice"}
    assert found.unmarked == {"more/extra"}
    assert found.run.sandbox is False
    assert found.run.seconds == 4.0
    assert {reason.kind for reason in found.reasons()} == {"ungraded", "foreign"}


def test_other_names_of_folders_and_gradebook_are_read(tmp_path):
    root = make_course(tmp_path / "course", [Made("ada"), Made("bob")])
    (root / "autograded").rename(root / "marked")
    (root / "gradebook.db").rename(root / "marks.db")
    for student in ("ada", "eve"):
        (root / "inbox" / student / LAB).mkdir(parents=True)
    (root / "nbgrader_config.py").write_text(
        "c = get_config()\n"
        "c.CourseDirectory.autograded_directory = 'marked'\n"
        "c.CourseDirectory.submitted_directory = 'inbox'\n"
        f"c.CourseDirectory.db_url = 'sqlite:///{root}/marks.db'\n"
    )
    found = Results(open_course(root), LAB)
    assert [one.run.problem for one in found.read()] == ["", ""]
    assert found.not_entered == ["eve"]
