"""``python -m hood grade``: which submissions it grades or skips, its output and exit status."""

import argparse
import io
import os
import shutil
import signal
import subprocess
import sys
from datetime import datetime

import pytest
from nbformat.v4 import new_code_cell, new_notebook
from nbgrader.api import Gradebook
from rich.console import Console
from sqlalchemy import text

from hood import UserError
from hood.classroom.gradebook.graded import Results, read_class
from hood.classroom.recording import command
from hood.classroom.recording.summary import RunProgress, RunSummary
from hood.classroom.recording.writer import Writer
from hood.grader.batch.grading import manifest_here
from hood.grader.run_record import RunRecord
from hood.grader.submission.names import id_problem, look_alikes
from hood.manifest import versions
from hood.phase_paths import ROOT
from tests.hood.classroom.recording.running import OPEN, count, everything, graded, marks, rows, run
from tests.hood.classroom.recording.small import (
    HW,
    MACHINE,
    Here,
    answered,
    enter,
    hand_in,
    make_small,
    source,
)
from tests.hood.other_versions import pretend
from tests.hood.tiny import write
from tests.patience import PATIENCE, eventually


@pytest.fixture
def course(tmp_path):
    return make_small(tmp_path / "course")


def seed(course, student):
    return graded(course.root, student, HW).metadata.open_the_hood.seed


def test_a_second_run_skips_graded_work_and_a_resubmission_gets_another_seed(course, here):
    hand_in(course, "ann", "score 1", why="because")
    hand_in(course, "bob", "score 2", why="because")
    status, text = run(course)
    assert (status, count(text, "graded"), count(text, "recorded before")) == (0, 2, 0)
    first = seed(course, "ann"), seed(course, "bob")
    assert first[0] == first[1]  # all submissions of a run have the same cases
    hand_in(course, "bob", "score 0.5", why="because")
    status, text = run(course)
    assert (status, count(text, "graded"), count(text, "recorded before")) == (0, 1, 1)
    assert marks(course.root, "bob", HW) == {"test": 0.5, "why": None}
    assert seed(course, "ann") == first[0]
    assert seed(course, "bob") != first[1]


def test_runs_with_a_given_seed_have_the_same_cases(course, here):
    hand_in(course, "ann", "score 1", why="because")
    assert run(course, "--seed=f00d-1")[0] == 0
    hand_in(course, "ann", "score 0.5", why="because")
    assert run(course, "--seed=f00d-1")[0] == 0
    assert seed(course, "ann") == "f00d-1"
    with pytest.raises(SystemExit):
        run(course, "--seed=../f00d")


def test_a_regraded_submission_keeps_its_cases_until_new_ones_are_requested(course, here):
    for student in ("ann", "bob", "cleo"):
        hand_in(course, student, "score 1")
    run(course)
    first = seed(course, "ann")
    shutil.rmtree(course.root / "autograded" / "ann")
    (course.root / "submitted" / "bob" / HW / "timestamp.txt").write_text("2026-01-02 10:00 UTC")
    (course.root / "submitted" / "cleo" / HW / "timestamp.txt").write_text("x" * 1000)
    status, text = run(course)
    assert (status, count(text, "graded")) == (0, 3)
    shutil.rmtree(course.root / "autograded" / "ann")
    assert count(run(course, "--regrade")[1], "graded") == 3
    assert {first} == {seed(course, student) for student in ("ann", "bob", "cleo")}
    assert run(course, "--regrade", "--seed=new", "--students=ann")[0] == 0
    assert seed(course, "ann") != first
    assert run(course, "--regrade", "--seed=f00d", "--students=ann")[0] == 0
    assert seed(course, "ann") == "f00d"


def test_regrade_gives_a_changed_submission_new_cases(course, here):
    for student in ("ann", "bob"):
        write(b"1", hand_in(course, student, "score 1").with_name("data.csv"))
    run(course)
    first = seed(course, "ann")
    write(b"2", course.root / "submitted" / "ann" / HW / "data.csv")
    (course.root / "submitted" / "bob" / HW / "timestamp.txt").write_text("2026-01-02 10:00 UTC")
    assert run(course, "--regrade")[0] == 0
    assert seed(course, "ann") != first
    assert seed(course, "bob") == first  # only its time differs


def test_missing_or_replaced_files_are_graded_again_and_copied_ones_are_not(course, here):
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


def test_a_mark_without_its_record_is_graded_again(course, here):
    """A run was killed after writing the files and before committing the transaction."""
    hand_in(course, "ann", "score 1")
    run(course)
    with Gradebook(course.directory.db_url) as gradebook:
        gradebook.remove_submission(HW, "ann")
    status, text = run(course)
    assert (status, count(text, "graded")) == (0, 1)
    assert marks(course.root, "ann", HW)["test"] == 1.0


def test_a_submission_that_the_grader_failed_on_is_retried_by_the_next_run(course, here):
    hand_in(course, "ann", "raise")
    hand_in(course, "bob", "score 1")
    status, text = run(course)
    assert status == 1
    assert count(text, "without a verdict") == 1
    assert "ann: the notebook could not be run: RuntimeError: no kernel today" in text
    assert marks(course.root, "ann", HW) == {"test": None, "why": None}
    status, text = run(course)
    assert (status, count(text, "recorded before")) == (1, 1)


def test_a_run_in_which_nothing_works_stops_and_says_why(course, here, monkeypatch):
    monkeypatch.setattr(command, "DOUBT", 2)
    monkeypatch.setenv(MACHINE, "raise")
    for number in range(4):
        hand_in(course, f"s{number}", "score 1")
    with pytest.raises(UserError, match="own source could not be graded either.* no kernel today"):
        run(course)
    monkeypatch.delenv(MACHINE)
    status, text = run(course)
    assert (status, count(text, "graded")) == (0, 4)


@pytest.mark.slow(1)
@pytest.mark.parametrize("word", ["raise", "refuse", "full"])
def test_many_separate_failures_do_not_stop_a_run(course, here, word):
    """Hostile learners can make many of their submissions fail in a row, in every run."""
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


def test_earlier_failures_are_graded_last(course, here, monkeypatch):
    for student in ("abe", "ann"):
        hand_in(course, student, "raise")
    run(course)
    for student in ("bob", "zoe"):
        hand_in(course, student, "score 1")
    order, record = [], Writer.record
    monkeypatch.setattr(
        Writer,
        "record",
        lambda self, job, *more: order.append(job.student) or record(self, job, *more),
    )
    run(course)
    assert order == ["bob", "zoe", "abe", "ann"]


def test_a_failure_for_everyone_stops_the_run_without_marks(course, here, monkeypatch):
    monkeypatch.setenv(MACHINE, "refuse")
    for number in range(3):
        hand_in(course, f"s{number}", "score 1")
    with pytest.raises(UserError, match="no sandbox here"):
        run(course)
    with Gradebook(course.directory.db_url) as gradebook:
        assert gradebook.assignment_submissions(HW) == []


@pytest.mark.slow(10)
def test_odd_submissions_and_all_others_get_a_verdict(course):
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
    assert "caf?: an id can't have '\\udce9': rename the student's folder" in text
    assert "late: the time of the submission can't be read" in text
    assert marks(course.root, "right", HW)["test"] == 2.0
    assert marks(course.root, "late", HW)["test"] == 1.0
    for student in ("empty", "broken", "latin", "none", "folder", "file", "link", "fifo"):
        assert marks(course.root, student, HW)["test"] is None, student
        assert "Changes to this notebook" in graded(course.root, student, HW).cells[0].source


def test_other_files_lie_beside_the_notebook_as_with_nbgrader(course, here):
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


def test_a_run_without_a_sandbox_is_announced_and_noted(course, here):
    hand_in(course, "ann", "score 1")
    text = run(course, "--unsafe-no-sandbox")[1]
    assert text.count("sandbox") >= 2
    assert graded(course.root, "ann", HW).metadata.open_the_hood.sandbox is False
    with pytest.raises(UserError, match="in whether a sandbox is used. Nothing was graded"):
        run(course)
    assert count(run(course, "--regrade")[1], "graded") == 1


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
    assert text.count("graded") == 2  # one table for each lab
    assert [marks(course.root, "bob", lab)["test"] for lab in (HW, "hw2")] == [1.0, 2.0]
    assert seed(course, "ann") == seed(course, "bob")


def test_a_run_with_nothing_to_grade_says_so(course):
    with pytest.raises(UserError, match="no submission in .*submitted"):
        run(course)
    hand_in(course, "ann", "score 1")
    with pytest.raises(UserError, match=r"that matches b\* or c\*"):
        run(course, "--students", "b*", "c*")


def test_a_second_run_beside_the_first_is_refused(course, here):
    hand_in(course, "ann", "score 1")
    with command.lock_grades(course), pytest.raises(UserError, match="another"):
        run(course)
    assert run(course)[0] == 0


@pytest.mark.parametrize("workers", ["0", "-1", "many"])
def test_an_invalid_number_of_workers_is_refused(workers):
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    with pytest.raises(SystemExit):
        parser.parse_args([HW, "--workers", workers])


# These tests need no sandbox; without one the workers start no zygote.
SCRIPT = """
import argparse, sys
from pathlib import Path
from hood.classroom.recording import command
parser = argparse.ArgumentParser()
command.add_arguments(parser)
sys.exit(command.run(parser.parse_args(sys.argv[2:]), root=Path(sys.argv[1])))
"""


def start(course):
    words = [sys.executable, "-c", SCRIPT, str(course.root), HW, "--workers", "2", OPEN]
    return subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def recorded(course):
    """Return the number of scores; assert that all are complete and right."""
    with Gradebook(course.directory.db_url) as gradebook:
        found = gradebook.assignment_submissions(HW)
        for submission in found:
            [notebook] = submission.notebooks
            by_cell = {grade.name: grade.auto_score for grade in notebook.grades}
            assert by_cell == {"test": float(submission.student.id[-1]) / 10, "why": 0.0}
        return len(found)


def wait_for(course, number, process):
    eventually(lambda: recorded(course) >= number or process.poll() is not None)


@pytest.mark.slow(10)
def test_ctrl_c_keeps_recorded_grades_and_says_how_to_go_on(course):
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


def test_a_lab_missing_in_the_gradebook_is_not_graded(course, monkeypatch):
    entered = []
    monkeypatch.setattr(command, "enter_lab", lambda root, lab, own: entered.append(lab))
    hand_in(course, "ann", "score 1")
    path = course.root / "source" / HW / f"{HW}.ipynb"
    path.write_text(path.read_text().replace("test()", "### AUTOTEST f"))
    with pytest.raises(UserError, match="gradebook's hw differs from source/"):
        run(course)
    assert entered == [HW]


def test_a_lab_may_be_named_as_a_shell_completes_it(course, here):
    hand_in(course, "ann", "score 2")
    assert count(run(course, labs=[f"{HW}/"])[1], "graded") == 1
    assert count(run(course, labs=[f"source/{HW}/"])[1], "recorded before") == 1
    with Gradebook(f"sqlite:///{course.root / 'gradebook.db'}") as gradebook:
        assert [one.name for one in gradebook.assignments] == [HW]


def test_submissions_for_manual_grading_do_not_count_as_failed(course, here, monkeypatch):
    counted = []
    monkeypatch.setattr(RunProgress, "count", lambda self, **how: counted.append(how))
    hand_in(course, "ann", "score 3")  # of 2
    run(course)
    assert counted == [{"graded": True, "failed": False}]


@pytest.mark.parametrize(
    "student", ["<img src=x onerror=alert(1)>", "=1+1", "\x1b[31mred", "a,b", "x" * 129]
)
def test_a_folder_with_an_invalid_id_is_not_graded_and_is_named(course, here, student):
    hand_in(course, "ann", "score 2")
    hand_in(course, student, "score 2")
    status, said = run(course)
    assert (status, count(said, "graded"), count(said, "without a verdict")) == (1, 1, 1)
    assert "rename the student's folder" in said
    assert "Submissions on disk but not in the gradebook" not in said
    assert "<img" not in said
    assert "\x1b" not in said
    assert not (course.root / "autograded" / student).exists()


def test_the_run_counts_the_learners_that_the_report_lists(course, here):
    hand_in(course, "ann", "score 2")
    hand_in(course, "bob", b"")
    hand_in(course, "cleo", "score 5")
    shutil.copy(hand_in(course, "dan", "score 2"), course.root / "submitted/dan/hw/hw-Copy1.ipynb")
    _, said = run(course)
    listed = {one.student: one.reasons() for one in read_class(course, HW) if one.reasons()}
    assert count(said, "need a person") == len(listed) == 3
    for student in listed:
        assert f"  {student}: " in said
    assert "dan: there are copies of the notebook beside it" in said
    assert "cleo: the result of `test` is not a score" in said


def test_the_report_names_marks_from_another_version(course, here):
    hand_in(course, "ann", "score 2")
    hand_in(course, "bob", "score 2")
    run(course)

    def versions():
        return {one.student: one.run.graded_by for one in read_class(course, HW)}

    before = versions()
    assert before["ann"] == before["bob"] != ""
    run(course, "--students=bob", "--cell-seconds=5", "--regrade")
    assert versions()["ann"] == before["ann"]
    assert versions()["bob"] != before["bob"]
    run(course, "--regrade")
    assert versions() == before


@pytest.fixture
def class_of_forty(course, here):
    for number in range(40):
        hand_in(course, f"s{number:02}", "score 1")
    assert run(course)[0] == 0
    return course


def settings(course, line):
    with (course.root / "nbgrader_config.py").open("a") as file:
        file.write(f"{line}\n")


def test_a_setting_without_effect_on_verdicts_changes_no_grades_key(class_of_forty):
    before = everything(class_of_forty.root)
    settings(class_of_forty, "c.Application.log_level = 10")
    settings(class_of_forty, "c.LateSubmissionPlugin.penalty_method = 'zero'")
    settings(class_of_forty, "c.FileNameCollectorPlugin.named_regexp = r'(?P<student_id>.*)'")
    status, said = run(class_of_forty)
    assert (status, count(said, "graded"), count(said, "recorded before")) == (0, 0, 40)
    assert everything(class_of_forty.root) == before


def test_recorded_grades_are_redone_only_on_request(class_of_forty):
    course, first = class_of_forty, seed(class_of_forty, "s00")
    path = course.root / "source" / HW / f"{HW}.ipynb"
    path.write_text(path.read_text().replace("test()", "test(1)"))
    enter(course)
    settings(course, "c.Execute.timeout = 99")
    hand_in(course, "s01", "score 2")
    hand_in(course, "ann", "score 2")
    before = everything(course.root)
    why = (
        "^39 recorded grades of hw would be redone, because of a change in the lab in source/ and "
        "in nbgrader's settings for running notebooks. Nothing was graded. Add `--regrade` to "
        "grade these submissions again with the same cases, or add `--only-new`"
    )
    with pytest.raises(UserError, match=why):
        run(course)
    with pytest.raises(UserError, match=r"^2 recorded grades of hw \(s00, s02\) would be redone"):
        run(course, "--students", "s0[0-2]", "ann")
    assert everything(course.root) == before
    status, said = run(course, "--only-new")
    assert (status, count(said, "graded"), count(said, "recorded before")) == (0, 2, 39)
    assert first not in (seed(course, "s01"), seed(course, "ann"))
    status, said = run(course, "--regrade")
    assert (status, count(said, "graded")) == (0, 41)
    assert {seed(course, f"s{number:02}") for number in range(2, 40)} == {first}
    assert count(run(course)[1], "recorded before") == 41


def test_another_torch_is_named_and_grades_are_redone_only_on_request(
    course, here, tmp_path, monkeypatch
):
    for student in ("ann", "bob"):
        hand_in(course, student, "score 1")
    run(course)
    first, before = seed(course, "ann"), everything(course.root)
    had = versions()["torch"]
    pretend(tmp_path, "torch", "9.9.9")
    monkeypatch.syspath_prepend(tmp_path)
    manifest_here.cache_clear()  # as another process
    why = (
        r"^2 recorded grades of hw \(ann, bob\) would be redone, because of a change in the "
        rf"versions of packages \(it was torch {had}, now torch 9\.9\.9\)\. Nothing was graded"
    )
    with pytest.raises(UserError, match=why):
        run(course)
    assert everything(course.root) == before
    status, said = run(course, "--regrade")
    assert (status, count(said, "graded")) == (0, 2)
    assert seed(course, "ann") == first
    path = course.root / "autograded/ann/hw/hw.ipynb"
    assert RunRecord.read(path).versions["torch"] == "9.9.9"
    manifest_here.cache_clear()


def test_no_option_is_offered_that_the_labs_checks_would_refuse(course, here):
    hand_in(course, "ann", "score 1")
    run(course)
    nb = source()
    hidden = 'verify("grid_size", grid_size)'
    nb.cells[1].source = f"### BEGIN HIDDEN TESTS\n{hidden}\n### END HIDDEN TESTS"
    write(nb, course.root / "source" / HW / f"{HW}.ipynb")
    enter(course)
    for words in ((), ("--regrade",)):
        with pytest.raises(UserError, match="^the check 'grid_size' gives 3 points, but its cell"):
            run(course, *words)


def test_another_policy_for_lateness_applies_without_running_code_and_is_reported(course, here):
    for student, day in (("early", 1), ("late", 3)):
        path = hand_in(course, student, "score 2")
        path.with_name("timestamp.txt").write_text(f"2026-01-0{day} 10:00 UTC")
    with Gradebook(course.directory.db_url) as gradebook:
        gradebook.update_or_create_assignment(HW, duedate=datetime(2026, 1, 2))
    run(course)

    def penalties():
        with Gradebook(course.directory.db_url) as gradebook:
            found = gradebook.assignment_submissions(HW)
            return {one.student.id: one.notebooks[0].late_submission_penalty for one in found}

    assert penalties() == {"early": None, "late": None}
    for line, penalty in (
        ("c.LateSubmissionPlugin.penalty_method = 'zero'", 2.0),
        ("c.LateSubmissionPlugin.penalty_method = 'none'", None),
    ):
        settings(course, line)
        said = run(course)[1]
        assert count(said, "recorded before") == 2
        assert "hw: 1 submission has a new late penalty" in said
        assert penalties() == {"early": None, "late": penalty}
        assert "late penalty" not in run(course)[1]


def test_grades_of_another_program_are_redone_only_on_request(course, here):
    hand_in(course, "ann", "score 1")
    run(course)
    with Gradebook(course.directory.db_url) as gradebook:
        gradebook.db.execute(text("DELETE FROM open_the_hood_graded"))
        gradebook.db.commit()
    with pytest.raises(UserError, match="change in the program that gave them"):
        run(course)
    assert count(run(course, "--only-new")[1], "recorded before") == 1
    assert count(run(course, "--regrade")[1], "graded") == 1
    assert count(run(course)[1], "recorded before") == 1


def test_labs_that_cannot_be_graded_are_named_first_and_the_others_are_graded(course, here):
    hand_in(course, "ann", "score 1")
    write(b"no notebook", course.root / "source" / "torn" / "torn.ipynb")
    write(source(), course.root / "source" / "nobody" / "nobody.ipynb")
    hand_in(course, "ann", "refuse", lab="odd")
    refusing = source()
    refusing.cells[0].source = refusing.cells[0].source.replace("score 2", "refuse")
    write(refusing, course.root / "source" / "odd" / "odd.ipynb")
    enter(course, ("odd",), "odd")
    status, said = run(course, labs=("torn", "odd", HW, "nobody", "hw9"))
    assert (status, count(said, "graded")) == (1, 1)
    assert "odd is not graded: no sandbox here" in said
    for why in (
        "torn is not graded: the source torn.ipynb is not a notebook",
        "nobody is not graded: no submission in",
        "hw9 is not graded: no notebook in",
    ):
        assert -1 < said.find(why) < said.find("recorded before")
    with pytest.raises(UserError, match="^hw9 is not graded: no notebook in"):
        run(course, labs=("torn", "hw9"))


def test_a_gradebook_of_an_older_nbgrader_is_unchanged_and_the_remedy_is_named(course, here):
    hand_in(course, "ann", "score 1")
    with Gradebook(course.directory.db_url) as gradebook:
        gradebook.db.execute(text("UPDATE alembic_version SET version_num = '724cde206c17'"))
        gradebook.db.execute(text("DROP TABLE course"))
        gradebook.db.commit()
    before = everything(course.root)
    with pytest.raises(UserError, match="run `nbgrader db upgrade`"):
        run(course)
    assert everything(course.root) == before


@pytest.mark.parametrize("content", [b"no database " * 99, b""])
def test_an_invalid_gradebook_is_named(course, here, content):
    path = course.root / "gradebook.db"
    path.write_bytes(content)
    hand_in(course, "ann", "score 1")
    said = f"{path} {'is not a gradebook: ' if content else 'has no grades yet: grade a lab first'}"
    with pytest.raises(UserError, match=said):
        read_class(course, HW)
    if content:
        with pytest.raises(UserError, match=said):
            run(course)


def test_a_reason_contains_no_terminal_control_codes():
    console = Console(file=io.StringIO(), width=200)
    outcome = RunSummary(HW)
    outcome.people = {"ann": "\x1b[2J\x1b]0;title\x07 [red]no\nbody", "bob": "x" * 1000}
    outcome.show(console)
    said = console.file.getvalue()
    assert "\x1b" not in said
    assert "\x07" not in said
    assert "[red]no body" in said
    assert len(said) < 1000


def test_every_learner_for_manual_grading_is_named():
    console = Console(file=io.StringIO(), width=2000)
    outcome = RunSummary(HW)
    outcome.people = {f"s{k:02}": "not readable" if k else "crashed" for k in range(49, -1, -1)}
    outcome.late = {"s7": 200_000.0}
    outcome.show(console)
    said = console.file.getvalue()
    assert "  s00: crashed" in said
    assert f"  {', '.join(f's{k:02}' for k in range(1, 50))}: not readable" in said
    assert "s7 (2 days 7 h)" in said


def test_ids_that_look_alike_are_reported(course, here):
    for student in ("anna", "\u0430nn\u0430", "bob", "bob ", "Anna"):
        hand_in(course, student, "score 2")
    status, said = run(course)
    assert status == 0
    assert count(said, "graded") == 5
    said = " ".join(said.split())
    assert "different learners: 'anna', '\\u0430nn\\u0430' These" in said
    assert said.count("different learners: 'bob', 'bob '") == 1
    assert "'Anna'" not in said


def test_these_ids_look_alike():
    alike = ("p\xe9p\xe9", "\u0440e\u0301\uff50\u200de\u0301")
    others = ("rn", "m", "Ann", "ann", "x y", "xy", "\u0416", "\u4e00", "\u30fc", "o", "0")
    assert look_alikes([*alike, *others]) == [list(alike)]


def test_names_of_people_are_valid_ids():
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


def test_a_later_failure_of_the_grader_keeps_the_marks(course, here, monkeypatch):
    hand_in(course, "ann", "score 1")
    run(course)
    before = everything(course.root)
    monkeypatch.setenv(MACHINE, "raise")
    for words in (["--regrade"], ["--regrade"], []):
        if not words:
            hand_in(course, "ann", "score 2")
        status, said = run(course, *words)
        assert (status, count(said, "without a verdict")) == (1, 1)
        assert "no kernel today; the earlier grade stays" in said
        assert everything(course.root) == before
    monkeypatch.delenv(MACHINE)
    assert count(run(course)[1], "graded") == 1  # a changed submission is tried again
    assert marks(course.root, "ann", HW)["test"] == 2


def test_changed_cells_in_a_graded_lab_are_reported_with_a_remedy(course, monkeypatch):
    hand_in(course, "ann", "score 1")
    path = course.root / "source" / HW / f"{HW}.ipynb"
    path.write_text(path.read_text().replace("test()", "other()"))

    def refuses(root, lab, own):
        raise UserError("RuntimeError: Cannot add or remove cells for notebook 'hw' because")

    monkeypatch.setattr(command, "enter_lab", refuses)
    with pytest.raises(UserError, match="nbgrader db assignment remove hw --force"):
        run(course)


def test_misplaced_notebooks_are_named(course, here):
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


def test_a_file_that_only_the_grader_cannot_read_means_no_verdict_and_old_marks_stay(course, here):
    path = hand_in(course, "ann", "score 1")
    run(course)
    write(answered("score 2"), path)
    os.link(path, course.root / "backup")
    path.parent.chmod(0o777)
    status, said = run(course)
    assert (status, count(said, "without a verdict")) == (1, 1)
    assert f"ann: `{HW}.ipynb` is a hard link" in said
    assert marks(course.root, "ann", HW)["test"] == 1
    path.parent.chmod(0o755)  # now only this user can have made the link
    assert run(course)[0] == 0
    assert marks(course.root, "ann", HW)["test"] == 2


def test_a_learner_has_one_id_in_every_unicode_form(course, here):
    known = "Andre\u0301"  # as an instructor entered it
    with Gradebook(course.directory.db_url) as gradebook:
        gradebook.add_student(known)
    for name in (known, "Jose\u0301", "Zoe\u0308", "Zo\xeb"):
        hand_in(course, name, "score 2")
    status, said = run(course)
    assert (status, count(said, "graded"), count(said, "without a verdict")) == (1, 2, 1)
    assert "Zo\xeb: 'submitted/Zoe\\u0308/hw' and 'submitted/Zo\\xeb/hw'" in said
    assert set(rows(course.root, HW)) == {known, "Jos\xe9"}
    assert count(run(course)[1], "recorded before") == 2


def test_notebooks_that_are_not_the_labs_are_left_out_and_not_missed(tmp_path, here):
    course = make_small(tmp_path / "course")
    folder = course.root / "source" / HW
    write(new_notebook(cells=[new_code_cell("1 + 1")]), folder / "Untitled.ipynb")
    enter(course, (HW, "Untitled"))  # as nbgrader does
    hand_in(course, "ann", "score 2")
    status, said = run(course)
    assert (status, count(said, "graded"), count(said, "need a person")) == (0, 1, 0)
    assert (
        f"{folder / 'Untitled.ipynb'} is left out (and not moved): it has no nbgrader cell" in said
    )
    assert (folder / "Untitled.ipynb").exists()
    assert Results(course, HW).notebooks == (HW,)
    [graded_one] = Results(course, HW).read()
    assert graded_one.run.problem == ""


def test_an_unreleased_copy_of_the_lab_is_left_out(course, here):
    folder = course.root / "source" / HW
    shutil.copy(folder / f"{HW}.ipynb", folder / f"{HW}-Copy1.ipynb")
    write(source(), course.root / "release" / HW / f"{HW}.ipynb")
    hand_in(course, "ann", "score 2")
    (course.root / "gradebook.db").unlink()  # so nbgrader itself enters it again
    status, said = run(course)
    assert (status, count(said, "graded"), count(said, "need a person")) == (0, 1, 0)
    assert f"{HW}-Copy1.ipynb is left out" in said
    assert "If the notebook belongs to the lab, generate the lab again" in said
    assert Results(course, HW).notebooks == (HW,)


def test_two_notebooks_that_were_both_renamed_are_both_graded(tmp_path, here):
    course = make_small(tmp_path / "course", ("p1", "p2"))
    for name in ("p1 (1).ipynb", "P2.ipynb"):
        write(answered("score 2"), course.root / "submitted" / "ann" / HW / name)
    assert run(course)[0] == 0
    for name in ("p1", "p2"):
        assert rows(course.root, HW)["ann"][f"{name}/test"][0] == 2
        assert "was graded as the notebook" in graded(course.root, "ann", HW, name).cells[0].source
