"""``grade --preview`` reports what grading again would change, and records nothing."""

import argparse
import csv
import io
import sys
from dataclasses import replace
from datetime import datetime

import pytest
from nbgrader.api import Gradebook
from rich.console import Console

from hood import UserError
from hood.classroom.recording import command
from tests.hood.classroom.recording.running import everything, marks, run
from tests.hood.classroom.recording.small import HW, MACHINE, Here, hand_in, make_small, source
from tests.hood.classroom.recording.test_command import seed
from tests.hood.tiny import write

SCORES = {"ann": "1", "bob": "2", "cleo": "0.5", "dan": "1.5"}
RULES = """\
course: {time_zone: UTC}
late: {per_day: 50%}
labs:
  hw:
    due: 2026-01-02
    points: {test: 4}
"""


@pytest.fixture
def course(tmp_path):
    return make_small(tmp_path / "course")


@pytest.fixture
def changed(course, here, monkeypatch):
    """A course with four recorded grades, whose lab was changed afterwards."""
    for student, score in SCORES.items():
        path = hand_in(course, student, f"score {score}", why="because")
        path.with_name("timestamp.txt").write_text("2026-01-02 10:00 UTC")
    run(course)
    now_asks(course, monkeypatch, {"ann": 2, "bob": 1, "cleo": 0.5, "dan": 1.5})
    return course


def now_asks(course, monkeypatch, scores):
    """Change the lab so that grading again gives these points."""
    nb = source()
    nb.cells[1].source = "test(1)"
    write(nb, course.root / "source" / HW / f"{HW}.ipynb")

    class Now(Here):
        def run(self, jobs):
            for job, result in super().run(jobs):
                [one] = result.notebooks
                given = replace(one, scores={**one.scores, "test": scores.get(job.student)})
                yield job, replace(result, notebooks=(given,))

    monkeypatch.setattr(command, "_executor", lambda *_: Now())


def sheet(course):
    path = course.root / "reports" / HW / "preview.csv"
    with path.open(encoding="utf-8-sig", newline="") as file:
        return {(row["student"], row["exercise"]): row for row in csv.DictReader(file)}


def test_a_preview_shows_gains_and_losses_and_records_nothing(changed):
    before, first = everything(changed.root), seed(changed, "ann")
    status, said = run(changed, "--preview")
    assert status == 0
    assert everything(changed.root) == before
    lines = [line.split() for line in said.splitlines()]
    assert ["test", "1", "1", "2"] in lines
    assert ["in", "the", "whole", "lab", "1", "1", "2"] in lines
    assert "ann: 1 to 2 points (`test` 1 to 2)" in said
    assert "bob: 2 to 1 points (`test` 2 to 1)" in said
    assert "cleo" not in said
    assert "Nothing was recorded" in said
    assert "`python -m hood grade hw --regrade` records the new grades." in said
    rows = sheet(changed)
    assert set(rows) == {
        *((student, "the whole lab") for student in SCORES),
        *(("ann", "test"), ("bob", "test")),
    }
    assert rows["ann", "test"]["points_after"] == "2.0"
    assert rows["bob", "the whole lab"]["change"] == "loses"
    assert rows["dan", "the whole lab"]["change"] == "same"
    assert rows["ann", "test"]["counts"] == ""  # there are no rules
    assert run(changed, "--regrade")[0] == 0
    assert marks(changed.root, "ann", HW)["test"] == 2.0
    assert seed(changed, "ann") == first


def test_a_preview_applies_the_classs_rules(changed):
    (changed.root / "course.yml").write_text(RULES)
    path = changed.root / "submitted" / "ann" / HW / "timestamp.txt"
    path.write_text("2026-01-03 10:00 UTC")  # so her time differs, and she keeps her grade
    with Gradebook(changed.directory.db_url) as gradebook:
        gradebook.find_submission(HW, "ann").timestamp = datetime(2026, 1, 3, 10)
        gradebook.db.commit()
    said = run(changed, "--preview")[1]
    assert "ann: 1 to 2 points (`test` 1 to 2); 1 to 2 count" in said  # 4 for 2 points, half kept
    assert "bob: 2 to 1 points (`test` 2 to 1); 4 to 2 count" in said
    row = sheet(changed)["ann", "test"]
    assert (row["counts"], row["counts_after"]) == ("2.0", "4.0")  # before lateness


def test_a_mark_by_hand_stays_in_a_preview_as_in_grading(changed):
    with Gradebook(changed.directory.db_url) as gradebook:
        gradebook.find_grade("test", HW, HW, "bob").manual_score = 1.75
        gradebook.find_grade("why", HW, HW, "bob").manual_score = 3
        gradebook.find_grade("test", HW, HW, "ann").extra_credit = 0.25
        gradebook.db.commit()
    said = run(changed, "--preview")[1]
    assert "ann: 1.25 to 2.25 points (`test` 1.25 to 2.25)" in said
    assert "bob" not in said
    assert "Marks given by hand, which would stay and wait for review: 2." in said


def test_a_preview_is_offered_before_grades_are_redone(changed):
    with pytest.raises(UserError, match="`--preview` shows which points would change"):
        run(changed)


def test_ungraded_and_resubmitted_work_is_counted_and_not_compared(changed):
    hand_in(changed, "eve", "score 1")
    hand_in(changed, "ann", "score 1.25")
    said = run(changed, "--preview")[1]
    assert "Submissions handed in after grading, not compared: 1." in said
    assert "Submissions without a recorded grade: 1." in said
    assert {student for student, _ in sheet(changed)} == {"bob", "cleo", "dan"}


def test_a_preview_can_be_limited_to_some_learners(changed):
    run(changed, "--preview", "--students", "b*")
    assert {student for student, _ in sheet(changed)} == {"bob"}


@pytest.mark.parametrize("word", ["raise", "full"])
def test_a_failing_grader_leaves_the_grades_and_is_reported(course, here, monkeypatch, word):
    for student in ("ann", "bob"):
        hand_in(course, student, "score 1")
    run(course)
    before = everything(course.root)
    monkeypatch.setenv(MACHINE, word)
    status, said = run(course, "--preview")
    assert status == 1
    assert everything(course.root) == before
    assert said.count("the earlier grade stays") == 2


def test_if_nobody_can_be_graded_a_preview_refuses_as_grading_does(course, here, monkeypatch):
    hand_in(course, "ann", "score 1")
    run(course)
    monkeypatch.setenv(MACHINE, "refuse")
    for word in ("--preview", "--regrade"):
        with pytest.raises(UserError, match="no sandbox here"):
            run(course, word)


def test_one_failure_is_reported_and_sets_the_status(course, here, monkeypatch):
    hand_in(course, "ann", "score 1")
    hand_in(course, "bob", "score 2")
    run(course)
    real = command.Choice.contest

    def contest(self, student, folders):
        if student == "ann":
            raise command.OutOfReach("its folder can't be read")
        return real(self, student, folders)

    monkeypatch.setattr(command.Choice, "contest", contest)
    status, said = run(course, "--preview")
    assert status == 1
    assert "ann: its folder can't be read" in said


def test_other_exercises_are_refused_as_when_grading(changed):
    nb = source()
    nb.cells[1].metadata.nbgrader.grade_id = "another"
    write(nb, changed.root / "source" / HW / f"{HW}.ipynb")
    with pytest.raises(UserError, match="has grades for hw with other exercises"):
        run(changed, "--preview")


def test_without_a_recorded_grade_nothing_can_be_compared(course, here):
    hand_in(course, "ann", "score 1")
    before = everything(course.root)
    with pytest.raises(UserError, match="no grade of hw is recorded here"):
        run(course, "--preview")
    assert everything(course.root) == before


@pytest.mark.parametrize(("typed", "points"), [("y", 2.0), ("", 1.0), ("n", 1.0)])
def test_at_a_terminal_it_asks_below_the_summary(changed, monkeypatch, typed, points):
    asked = []
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(Console, "input", lambda self, text: asked.append(text) or typed)
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    screen = Console(file=io.StringIO(), width=200, force_terminal=True)
    args = parser.parse_args([HW, "--preview"])
    assert command.run(args, root=changed.root, console=screen) == 0
    assert len(asked) == 1
    assert marks(changed.root, "ann", HW)["test"] == points


def test_many_changes_are_counted(course, here, monkeypatch):
    for number in range(30):
        hand_in(course, f"s{number:02}", "score 1")
    run(course)
    now_asks(course, monkeypatch, {f"s{number:02}": 2 for number in range(30)})
    said = run(course, "--preview")[1]
    assert said.count("1 to 2 points") == 20
    assert "and 10 more" in said
