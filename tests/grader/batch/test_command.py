"""``python -m grader grade``: what it grades, skips and prints, and its exit status."""

import argparse
import io
import json
import os
import shutil
import signal
import subprocess
import sys

import pytest
from nbgrader.api import Gradebook
from rich.console import Console

from grader import UserError
from grader.batch import canary, command, pool
from grader.batch.outcome import RunOutcome
from grader.batch.progress import RunProgress
from grader.phase_paths import ROOT
from grader.results.gradebook import read_class
from grader.submission.student_ids import id_problem
from tests.grader.batch.running import OPEN, count, graded, marks, run
from tests.grader.batch.small import HW, MACHINE, Here, enter, hand_in, make_small, source
from tests.grader.tiny import write
from tests.patience import PATIENCE, eventually


@pytest.fixture
def course(tmp_path):
    return make_small(tmp_path / "course")


def seed(course, student):
    return graded(course.root, student, HW).metadata.open_the_hood.seed


def test_a_second_run_skips_and_a_resubmission_is_graded_with_another_seed(course, here):
    hand_in(course, "ann", "score 1", why="because")
    hand_in(course, "bob", "score 2", why="because")
    status, text = run(course)
    assert (status, count(text, "graded"), count(text, "recorded before")) == (0, 2, 0)
    first = seed(course, "ann"), seed(course, "bob")
    assert first[0] == first[1]  # those of one run are asked the same
    hand_in(course, "bob", "score 0.5", why="because")
    status, text = run(course)
    assert (status, count(text, "graded"), count(text, "recorded before")) == (0, 1, 1)
    assert marks(course.root, "bob", HW) == {"test": 0.5, "why": None}
    assert seed(course, "ann") == first[0]
    assert seed(course, "bob") != first[1]


def test_runs_with_a_given_seed_ask_the_same(course, here):
    hand_in(course, "ann", "score 1", why="because")
    assert run(course, "--seed=f00d-1")[0] == 0
    hand_in(course, "ann", "score 0.5", why="because")
    assert run(course, "--seed=f00d-1")[0] == 0
    assert seed(course, "ann") == "f00d-1"
    with pytest.raises(SystemExit):
        run(course, "--seed=../f00d")


def test_regrade_asks_the_same_again_also_when_the_files_are_gone(course, here):
    hand_in(course, "ann", "score 1")
    run(course)
    before = seed(course, "ann")
    shutil.rmtree(course.root / "autograded" / "ann")
    status, text = run(course, "--regrade")
    assert (status, count(text, "graded")) == (0, 1)
    assert seed(course, "ann") == before


def test_without_being_asked_to_it_never_repeats_the_cases_of_a_submission(course, here):
    """A learner who knows the cases could hide the answers in a part that seems not to matter."""
    for student in ("ann", "bob", "cleo"):
        hand_in(course, student, "score 1")
    run(course)
    first = seed(course, "ann")
    shutil.rmtree(course.root / "autograded" / "ann")
    (course.root / "submitted" / "bob" / HW / "timestamp.txt").write_text("2026-01-02 10:00 UTC")
    (course.root / "submitted" / "cleo" / HW / "timestamp.txt").write_text("x" * 1000)
    status, text = run(course)
    assert (status, count(text, "graded")) == (0, 3)
    assert first not in {seed(course, student) for student in ("ann", "bob", "cleo")}


def test_regrade_asks_a_submission_that_has_changed_other_cases(course, here):
    for student in ("ann", "bob"):
        write(b"1", hand_in(course, student, "score 1").with_name("data.csv"))
    run(course)
    first = seed(course, "ann")
    write(b"2", course.root / "submitted" / "ann" / HW / "data.csv")
    (course.root / "submitted" / "bob" / HW / "timestamp.txt").write_text("2026-01-02 10:00 UTC")
    assert run(course, "--regrade")[0] == 0
    assert seed(course, "ann") != first
    assert seed(course, "bob") == first  # only its time is another one


def test_files_that_are_gone_or_replaced_are_graded_again_and_copied_ones_are_not(course, here):
    for student in ("ann", "bob", "cleo"):
        hand_in(course, student, "score 1")
    run(course)
    shutil.rmtree(course.root / "autograded" / "ann")
    path = course.root / "autograded" / "bob" / HW / f"{HW}.ipynb"
    path.chmod(0o644)
    path.write_text(path.read_text().replace('"key"', '"of another run"'))
    os.utime(course.root / "autograded" / "cleo" / HW / f"{HW}.ipynb", (1, 1))
    status, text = run(course)
    assert (status, count(text, "graded"), count(text, "recorded before")) == (0, 2, 1)


def test_a_mark_without_its_record_is_made_again(course, here):
    """A run was killed after writing the files and before committing the transaction."""
    hand_in(course, "ann", "score 1")
    run(course)
    with Gradebook(course.directory.db_url) as gradebook:
        gradebook.remove_submission(HW, "ann")
    status, text = run(course)
    assert (status, count(text, "graded")) == (0, 1)
    assert marks(course.root, "ann", HW)["test"] == 1.0


def test_a_learner_whom_the_grader_failed_is_tried_again_by_the_next_run(course, here):
    hand_in(course, "ann", "raise")
    hand_in(course, "bob", "score 1")
    status, text = run(course)
    assert status == 1
    assert count(text, "without a verdict") == 1
    assert "ann: it could not be run: RuntimeError: no kernel today" in text
    assert marks(course.root, "ann", HW) == {"test": None, "why": None}
    status, text = run(course)
    assert (status, count(text, "recorded before")) == (1, 1)


@pytest.mark.slow(60)
def test_when_nothing_works_it_stops_and_says_why(course, monkeypatch):
    monkeypatch.setattr(canary, "DOUBT", 2)
    monkeypatch.setattr(pool, "TRIES", 1)
    monkeypatch.setenv(MACHINE, "raise")
    for number in range(4):
        hand_in(course, f"s{number}", "score 1")
    with pytest.raises(UserError, match="own source could not be graded either.* no kernel today"):
        run(course, OPEN)
    monkeypatch.delenv(MACHINE)
    status, text = run(course, OPEN)
    assert (status, count(text, "graded")) == (0, 4)


@pytest.mark.slow(1)
@pytest.mark.parametrize("word", ["raise", "refuse", "full"])
def test_however_many_fail_alone_they_fail_alone(course, here, word):
    """Hostile learners can make many of their own submissions fail in a row, in every run."""
    for number in range(25):
        hand_in(course, f"a{number}", word)
    hand_in(course, "zoe", "score 1.5")
    status, text = run(course)
    assert status == 1
    assert (count(text, "graded"), count(text, "without a verdict")) == (1, 25)
    assert marks(course.root, "zoe", HW)["test"] == 1.5
    assert marks(course.root, "a0", HW)["test"] is None
    assert "own source" not in text
    with Gradebook(course.directory.db_url) as gradebook:
        assert len(gradebook.assignment_submissions(HW)) == 26
    assert sorted(p.name for p in (course.root / "autograded").iterdir())[-1] == "zoe"


def test_what_failed_before_is_graded_last(course, here, monkeypatch):
    for student in ("abe", "ann"):
        hand_in(course, student, "raise")
    run(course)
    for student in ("bob", "zoe"):
        hand_in(course, student, "score 1")
    order, add = [], RunOutcome.add
    monkeypatch.setattr(
        RunOutcome,
        "add",
        lambda self, job, result: order.append(job.student) or add(self, job, result),
    )
    run(course)
    assert order == ["bob", "zoe", "abe", "ann"]


def test_what_would_fail_for_everyone_stops_and_marks_nobody(course, here, monkeypatch):
    monkeypatch.setenv(MACHINE, "refuse")
    for number in range(3):
        hand_in(course, f"s{number}", "score 1")
    with pytest.raises(UserError, match="no sandbox here"):
        run(course)
    with Gradebook(course.directory.db_url) as gradebook:
        assert gradebook.assignment_submissions(HW) == []


@pytest.mark.slow(60)
def test_odd_submissions_get_a_verdict_and_the_others_too(course):
    submitted = course.root / "submitted"
    hand_in(course, "empty", b"")
    hand_in(course, "broken", b'{"cells": [')
    hand_in(course, "latin", b"score 1\xff")
    hand_in(course, "late", "score 1").with_name("timestamp.txt").write_text("soon")
    (submitted / "none" / HW).mkdir(parents=True)
    (submitted / "folder" / HW / f"{HW}.ipynb").mkdir(parents=True)
    write(b"", submitted / "file" / HW)
    (submitted / "link").mkdir()
    (submitted / "link" / HW).symlink_to(submitted / "late" / HW)
    (submitted / "fifo" / HW).mkdir(parents=True)
    os.mkfifo(submitted / "fifo" / HW / f"{HW}.ipynb")
    (submitted / os.fsdecode(b"caf\xe9") / HW).mkdir(parents=True)
    hand_in(course, "right", "score 2")
    status, text = run(course, OPEN)
    assert status == 1
    assert count(text, "graded") == 10
    assert "caf?: an id has no '\\udce9': rename the student's folder" in text
    assert "late: the time of the submission can't be read" in text
    assert marks(course.root, "right", HW)["test"] == 2.0
    assert marks(course.root, "late", HW)["test"] == 1.0
    for student in ("empty", "broken", "latin", "none", "folder", "file", "link", "fifo"):
        assert marks(course.root, student, HW)["test"] is None, student
        assert "put in order" in graded(course.root, student, HW).cells[0].source


def test_companion_files_lie_beside_as_nbgrader_puts_them(course, here):
    path = hand_in(course, "ann", "score 1")
    write(b"theirs", path.with_name("data.csv"))
    write(b"theirs", path.with_name("own.csv"))
    write(b"2026-01-02 10:00:00 UTC\n", path.with_name("timestamp.txt"))
    write(b"given", course.root / "source" / HW / "data.csv")
    assert run(course)[0] == 0
    folder = course.root / "autograded" / "ann" / HW
    assert {p.name: p.read_bytes() for p in folder.iterdir() if p.suffix != ".ipynb"} == {
        "data.csv": b"given",
        "own.csv": b"theirs",
        "timestamp.txt": b"2026-01-02 10:00:00 UTC\n",
    }
    with Gradebook(course.directory.db_url) as gradebook:
        assert str(gradebook.find_submission(HW, "ann").timestamp) == "2026-01-02 10:00:00"


def test_without_a_sandbox_it_is_said_and_noted(course, here):
    hand_in(course, "ann", "score 1")
    text = run(course, "--unsafe-no-sandbox")[1]
    assert text.count("sandbox") >= 2
    assert graded(course.root, "ann", HW).metadata.open_the_hood.sandbox is False
    assert count(run(course)[1], "graded") == 1


def test_several_labs_go_through_the_same_workers(course, monkeypatch):
    made = []
    monkeypatch.setattr(command, "_executor", lambda *given: made.append(given) or Here())
    write(source(), course.root / "source" / "hw2" / "hw2.ipynb")
    enter(course, ("hw2",), "hw2")
    for lab, score in ((HW, 1), ("hw2", 2)):
        for student in ("ann", "bob"):
            hand_in(course, student, f"score {score}", lab=lab)
    status, text = run(course, labs=(HW, "hw2"))
    assert status == 0
    assert [total for _, total, _ in made] == [4]
    assert text.count("graded") == 2  # a table each
    assert [marks(course.root, "bob", lab)["test"] for lab in (HW, "hw2")] == [1.0, 2.0]
    assert seed(course, "ann") == seed(course, "bob")


def test_nobody_to_grade_is_said(course):
    with pytest.raises(UserError, match="no submission in .*submitted"):
        run(course)
    hand_in(course, "ann", "score 1")
    with pytest.raises(UserError, match=r"that matches b\* or c\*"):
        run(course, "--students", "b*", "c*")


def test_a_second_run_beside_the_first_is_refused(course, here):
    from grader.batch.lock import only_one

    hand_in(course, "ann", "score 1")
    with only_one(course), pytest.raises(UserError, match="another"):
        run(course)
    assert run(course)[0] == 0


@pytest.mark.parametrize("workers", ["0", "-1", "many"])
def test_a_number_of_workers_that_is_none_is_refused(workers):
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    with pytest.raises(SystemExit):
        parser.parse_args([HW, "--workers", workers])


# These tests need no sandbox; without one the workers start no zygote.
SCRIPT = """
import argparse, sys
from pathlib import Path
from grader.batch import command
parser = argparse.ArgumentParser()
command.add_arguments(parser)
sys.exit(command.run(parser.parse_args(sys.argv[2:]), root=Path(sys.argv[1])))
"""


def start(course):
    words = [sys.executable, "-c", SCRIPT, str(course.root), HW, "--workers", "2", OPEN]
    return subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def recorded(course):
    """Return the number of scores; assert that each is complete and right."""
    with Gradebook(course.directory.db_url) as gradebook:
        found = gradebook.assignment_submissions(HW)
        for submission in found:
            [notebook] = submission.notebooks
            by_cell = {grade.name: grade.auto_score for grade in notebook.grades}
            assert by_cell == {"test": float(submission.student.id[-1]) / 10, "why": 0.0}
        return len(found)


def wait_for(course, number, process):
    eventually(lambda: recorded(course) >= number or process.poll() is not None)


@pytest.mark.slow(60)
def test_ctrl_c_keeps_what_is_done_and_says_how_to_go_on(course):
    for number in range(10):
        hand_in(course, f"s{number}", f"score {number / 10}")
    hand_in(course, "z0", "sleep 3600")
    process = start(course)
    wait_for(course, 10, process)
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=PATIENCE)[0]
    assert process.returncode == 130
    assert "Finished grades are recorded" in said
    assert recorded(course) == 10
    shutil.rmtree(course.root / "submitted" / "z0")
    status, text = run(course, OPEN)
    assert (status, count(text, "recorded before")) == (0, 10)


@pytest.mark.slow(60)
def test_killed_at_any_moment_and_run_again_each_has_exactly_one_right_verdict(course, full):
    for number in range(40):
        hand_in(course, f"s{number:02}", f"score {number % 10 / 10}")
    for number in (3, 17, 18, 30) if full else (3, 18):
        process = start(course)
        wait_for(course, number, process)
        process.kill()
        process.communicate()
        assert recorded(course) >= number
    status, text = run(course, OPEN, workers=2)
    assert status == 0
    assert recorded(course) == 40
    for path in course.root.glob("autograded/*"):
        assert [p.name for p in path.iterdir()] == [HW], "nothing is left lying about"
        key = json.loads((path / HW / f"{HW}.ipynb").read_bytes())["metadata"]["open_the_hood"]
        assert key["key"]
    assert count(run(course, OPEN)[1], "recorded before") == 40


def test_a_lab_that_the_gradebook_cannot_know_is_not_graded(course, monkeypatch):
    entered = []
    monkeypatch.setattr(command, "enter_lab", lambda root, lab: entered.append(lab))
    hand_in(course, "ann", "score 1")
    path = course.root / "source" / HW / f"{HW}.ipynb"
    path.write_text(path.read_text().replace("test()", "### AUTOTEST f"))
    with pytest.raises(UserError, match="does not hold hw as it is in source/"):
        run(course)
    assert entered == [HW]


def test_a_lab_is_named_as_a_shell_completes_it(course, here):
    hand_in(course, "ann", "score 2")
    assert count(run(course, labs=[f"{HW}/"])[1], "graded") == 1
    assert count(run(course, labs=[f"source/{HW}/"])[1], "recorded before") == 1
    with Gradebook(f"sqlite:///{course.root / 'gradebook.db'}") as gradebook:
        assert [one.name for one in gradebook.assignments] == [HW]


def test_who_needs_a_person_is_not_counted_as_failed(course, here, monkeypatch):
    counted = []
    monkeypatch.setattr(RunProgress, "count", lambda self, **how: counted.append(how))
    hand_in(course, "ann", "score 3")  # of 2
    run(course)
    assert counted == [{"graded": True, "failed": False}]


@pytest.mark.parametrize(
    "student", ["<img src=x onerror=alert(1)>", "=1+1", "\x1b[31mred", "a,b", "x" * 129]
)
def test_a_folder_whose_name_is_no_id_is_not_graded_and_that_is_said(course, here, student):
    hand_in(course, "ann", "score 2")
    hand_in(course, student, "score 2")
    status, said = run(course)
    assert (status, count(said, "graded"), count(said, "without a verdict")) == (1, 1, 1)
    assert "rename the student's folder" in said
    assert "<img" not in said
    assert "\x1b" not in said
    assert not (course.root / "autograded" / student).exists()


def test_it_counts_the_people_that_the_report_lists(course, here):
    hand_in(course, "ann", "score 2")
    hand_in(course, "bob", b"")
    hand_in(course, "cleo", "score 5")
    shutil.copy(hand_in(course, "dan", "score 2"), course.root / "submitted/dan/hw/hw-Copy1.ipynb")
    _, said = run(course)
    listed = {one.student: one.reasons() for one in read_class(course, HW) if one.reasons()}
    assert count(said, "need a person") == len(listed) == 3
    for student in listed:
        assert f"  {student}: " in said
    assert "dan: copies of the notebook lie beside it" in said
    assert "cleo: the result of `test` is not a score" in said


def test_the_report_knows_which_marks_another_version_gave(course, here):
    hand_in(course, "ann", "score 2")
    hand_in(course, "bob", "score 2")
    run(course)

    def versions():
        return {one.student: one.run.lab for one in read_class(course, HW)}

    before = versions()
    assert before["ann"] == before["bob"] != ""
    run(course, "--students=bob", "--cell-seconds=5")
    assert versions()["ann"] == before["ann"]
    assert versions()["bob"] != before["bob"]
    run(course)
    assert versions() == before


def test_a_reason_says_nothing_to_the_terminal():
    console = Console(file=io.StringIO(), width=200)
    outcome = RunOutcome(HW)
    outcome.people = [("ann", "\x1b[2J\x1b]0;title\x07 [red]no\nbody"), ("bob", "x" * 1000)]
    outcome.show(console)
    said = console.file.getvalue()
    assert "\x1b" not in said
    assert "\x07" not in said
    assert "[red]no body" in said
    assert len(said) < 1000


def test_everybody_who_needs_a_person_is_named():
    console = Console(file=io.StringIO(), width=2000)
    outcome = RunOutcome(HW)
    outcome.people = [(f"s{k}", "not readable" if k else "crashed") for k in range(50)]
    outcome.late = {"s7": 200_000.0}
    outcome.show(console)
    said = console.file.getvalue()
    assert "  s0: crashed" in said
    assert f"  {', '.join(f's{k}' for k in range(1, 50))}: not readable" in said
    assert "s7 (2 days 7 h)" in said


def test_names_of_people_are_ids():
    for name in (
        "ann",
        "7",
        "_",
        "o.brien@example.org",
        "Zoë Müller",
        "Zoe\u0308",
        "李",
        "a-b (2)",
    ):
        assert id_problem(name) == ""
    for name in ("", ".", "..", "a/b", 'a"b', ".hidden", "-rf", "a\nb"):
        assert id_problem(name)


def test_what_the_grader_fails_at_later_keeps_its_marks(course, here, monkeypatch):
    path = hand_in(course, "ann", "score 1")
    run(course)
    with monkeypatch.context() as patch:
        patch.setenv(MACHINE, "raise")
        status, said = run(course, "--regrade")
    assert (status, count(said, "without a verdict")) == (1, 1)
    assert marks(course.root, "ann", HW)["test"] == 1
    path.write_bytes(path.read_bytes())
    assert count(run(course)[1], "graded") == 1  # it is tried again
    assert marks(course.root, "ann", HW)["test"] == 1


def test_other_cells_in_a_lab_that_has_grades_are_said_with_a_way_on(course, monkeypatch):
    hand_in(course, "ann", "score 1")
    path = course.root / "source" / HW / f"{HW}.ipynb"
    path.write_text(path.read_text().replace("test()", "other()"))

    def refuses(root, lab):
        raise UserError("RuntimeError: Cannot add or remove cells for notebook 'hw' because")

    monkeypatch.setattr(command, "enter_lab", refuses)
    with pytest.raises(UserError, match="nbgrader db assignment remove hw --force"):
        run(course)


def test_notebooks_where_no_submission_belongs_are_named(course, here):
    hand_in(course, "ann", "score 2")
    submitted = course.root / "submitted"
    for place in ("loose.ipynb", "bob/hw.ipynb", "bob/HW/hw.ipynb", ".eve/hw/hw.ipynb"):
        write(b"{}", submitted / place)
    write(b"1", submitted / "ann" / "notes.txt")
    write(b"{}", submitted / "ann" / ".ipynb_checkpoints" / "hw.ipynb")
    write(b"{}", submitted / "ann" / HW / "scratch.ipynb")
    (submitted / "zoe").mkdir()
    (submitted / "zoe" / "link").symlink_to(submitted / "ann" / HW)
    status, said = run(course)
    assert status == 0
    assert "  .eve/hw/hw.ipynb, bob/HW/hw.ipynb, bob/hw.ipynb, loose.ipynb" in said
    assert "Not graded" not in run(course, "--students", "ann")[1]
