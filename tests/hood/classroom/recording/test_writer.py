"""What the writer records, and what stays after an interrupt."""

import datetime
import errno
import os
import sqlite3
import stat
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from nbgrader.api import Gradebook
from sqlalchemy import event

from hood import UserError
from hood.classroom.recording import writer as module
from hood.classroom.recording.writer import Writer
from hood.grader.batch.job import NotebookResult, Result
from hood.grader.course import open_course
from tests.hood.classroom.recording.running import OPEN, rows, run
from tests.hood.classroom.recording.small import HW, hand_in, job_of, make_small


@pytest.fixture
def course(tmp_path):
    course = make_small(tmp_path / "course")
    hand_in(course, "ann", "score 2")
    return course


def result(test=2.0, why=None, data=b"{}", **changes):
    unanswered = {"answer": False, "why": why == 0}
    notebook = NotebookResult(HW, data, "ab12", {"test": test, "why": why}, unanswered)
    return Result((notebook,), **changes)


def marks(course, student="ann"):
    """Return ``{cell: (automatic, by hand, extra, needs a person)}``."""
    found = rows(course.root, HW)[student]
    return {cell: found[f"{HW}/{cell}"] for cell in ("test", "why")}


def files(course):
    """Return the graded files with their bytes and times."""
    found = (path for path in (course.root / "autograded").rglob("*") if path.is_file())
    return {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in found}


def recorded(writer):
    return writer.records(HW, "ann").get("ann")


def mark(course, cell, **values):
    with Gradebook(course.directory.db_url) as gradebook:
        grade = gradebook.find_grade(cell, HW, HW, "ann")
        for name, value in values.items():
            setattr(grade, name, value)
        gradebook.db.commit()


def test_marks_comments_and_files_are_recorded_and_found_again(course):
    job = job_of(course, "ann")
    with Writer(course) as writer:
        assert recorded(writer) is None
        writer.record(job, result(why=0.0))
        found = recorded(writer)
    assert (found.job_id, found.digest, found.seeds) == (
        job.id,
        job.submission.digest,
        {HW: "ab12"},
    )
    assert marks(course) == {"test": (2.0, None, None, False), "why": (0.0, None, None, False)}
    assert rows(course.root, HW)["ann"][f"{HW}/answer comment"] == (None, None)
    path = course.root / "autograded" / "ann" / HW / f"{HW}.ipynb"
    assert path.read_bytes() == b"{}"
    assert path.stat().st_mode & 0o777 == 0o444


def test_in_a_shared_course_graded_files_are_writable_for_the_group(course):
    config = course.root / "nbgrader_config.py"
    config.write_text(config.read_text() + "c.CourseDirectory.groupshared = True\n")
    course = open_course(course.root)
    job = job_of(course, "ann")
    files = replace(job.submission, files={"data/a.csv": b"1"})
    before = os.umask(0o022)
    try:
        with Writer(course) as writer:
            writer.record(replace(job, submission=files), result())
    finally:
        os.umask(before)
    graded = course.root / "autograded"
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in (graded, *graded.rglob("*"))}
    assert len(modes) == 7
    assert {mode for path, mode in modes.items() if path.is_dir()} == {0o2775}
    assert {mode for path, mode in modes.items() if path.is_file()} == {0o664}


def test_a_file_beside_a_notebook_is_kept_even_with_the_longest_name(course):
    name = "data/" + "x" * 251 + ".csv"
    path = course.root / "submitted" / "ann" / HW / name
    path.parent.mkdir()
    path.write_text("1")
    (path.parent / "settings.json").write_text("{}")
    status, said = run(course, OPEN)
    assert (status, "ann" in rows(course.root, HW)) == (0, True), said
    graded = course.root / "autograded" / "ann" / HW
    assert [one.name for one in (graded / "data").iterdir()] == [path.name]
    assert (
        "data/settings.json" in (graded / f"{HW}.ipynb").read_text()
    )  # a note names the omitted files


def test_if_new_files_cannot_be_put_in_place_the_old_ones_stay(course, monkeypatch):
    job, rename = job_of(course, "ann"), Path.rename
    folder = course.root / "autograded" / "ann" / HW

    def taken(path, target):
        if target == folder and not path.name.endswith(".old"):
            raise OSError(errno.ENOTEMPTY, "somebody has made the folder")
        return rename(path, target)

    with Writer(course) as writer:
        writer.record(job, result())
        monkeypatch.setattr(Path, "rename", taken)
        replaced = module.replaced(course, "ann", HW, result(data=b"{ }").notebooks, {})
        with pytest.raises(OSError, match="somebody"), replaced:
            pass
    assert (folder / f"{HW}.ipynb").read_bytes() == b"{}"
    assert [path.name for path in folder.parent.iterdir()] == [HW]


def test_old_automatic_marks_are_replaced_and_marks_by_hand_and_extra_credit_stay(course):
    job = job_of(course, "ann")
    with Writer(course) as writer:
        writer.record(job, result())
        mark(course, "test", extra_credit=0.5)
        mark(course, "why", manual_score=3.0, needs_manual_grade=False)
        another = replace(job, submission=replace(job.submission, files={"a.csv": b"1"}))
        writer.record(another, result(test=None))
    assert marks(course) == {"test": (None, None, 0.5, True), "why": (None, 3.0, None, True)}


def test_a_failure_that_is_not_the_learners_leaves_the_submission_open(course):
    job = job_of(course, "ann")
    another = replace(job, submission=replace(job.submission, files={"a.csv": b"1"}))
    failed = result(test=None, problem="killed", retryable=True)
    broken = result(test=None, problem="its outputs could not be processed")
    with Writer(course) as writer:
        for _ in range(2):
            assert writer.record(job, failed)
            assert recorded(writer).job_id == ""
            assert marks(course)["test"] == (None, None, None, True)
        writer.record(job, result())
        before = marks(course), recorded(writer), files(course)
        for one in (job, another):  # earlier grades stay
            assert not writer.record(one, failed)
            assert not writer.record(one, broken)
        assert (marks(course), recorded(writer), files(course)) == before


@pytest.mark.parametrize("breaks", ["UPDATE grade", "INSERT INTO open_the_hood_graded"])
def test_an_error_in_the_middle_leaves_the_old_marks_and_files(course, breaks):
    def killed(connection, cursor, statement, *_):
        if statement.startswith(breaks):
            raise KeyboardInterrupt

    job = job_of(course, "ann")
    with Writer(course) as writer:
        writer.record(job, result())
        before = marks(course), recorded(writer), files(course)

        event.listen(writer.gradebook.engine, "before_cursor_execute", killed)
        with pytest.raises(KeyboardInterrupt):
            writer.record(replace(job, id="new"), result(test=1.0, data=b"{ }"))
        event.remove(writer.gradebook.engine, "before_cursor_execute", killed)
        assert (marks(course), recorded(writer), files(course)) == before
        writer.record(replace(job, id="new"), result(test=1.0))
    assert marks(course)["test"][0] == 1.0


def test_one_submission_is_one_transaction_of_few_queries(course):
    commits, queries = [], []
    with Writer(course) as writer:
        writer.record(job_of(course, "ann"), result())
        event.listen(writer.gradebook.engine, "commit", lambda *_: commits.append(1))
        event.listen(
            writer.gradebook.engine, "before_cursor_execute", lambda *a: queries.append(a[2])
        )
        writer.record(replace(job_of(course, "ann"), student="bob"), result())
        assert len(commits) == 1
        assert len(queries) < 25


def test_no_query_reads_a_whole_growing_table(course):
    """With a table scan, the ten-thousandth submission would cost more than the tenth."""
    queries = []
    job = job_of(course, "ann")
    job = replace(job, submission=replace(job.submission, timestamp="2026-01-02"))
    with Writer(course) as writer:
        event.listen(
            writer.gradebook.engine, "before_cursor_execute", lambda *a: queries.append(a[2:4])
        )
        for _ in range(2):
            recorded(writer)
            writer.record(job, result())
    with sqlite3.connect(course.root / "gradebook.db") as database:
        scans = [
            (query, step[3])
            for query, values in queries
            if query.startswith("SELECT")
            for step in database.execute(f"EXPLAIN QUERY PLAN {query}", values)
            if step[3].startswith("SCAN ")
            and step[3].split()[1] in ("grade", "comment", "student", "submitted_notebook")
            or step[3].startswith("SCAN submitted_assignment")
        ]
    assert scans == []


def test_late_penalties_are_those_of_nbgraders_plugin(tmp_path):
    course = make_small(tmp_path / "course")
    course.config.LateSubmissionPlugin.penalty_method = "zero"
    with Gradebook(course.directory.db_url) as gradebook:
        gradebook.update_or_create_assignment(HW, duedate=datetime.datetime(2026, 1, 1))
    for student, when in (("late", "2026-01-02 10:00 UTC"), ("early", "2025-12-31 10:00 UTC")):
        hand_in(course, student, "score 2").with_name("timestamp.txt").write_text(when)
    with Writer(course) as writer:
        for student in ("late", "early"):
            writer.record(job_of(course, student), result())
    with Gradebook(course.directory.db_url) as gradebook:
        found = {
            student: gradebook.find_submission(HW, student).notebooks[0].late_submission_penalty
            for student in ("late", "early")
        }
    assert found == {"late": 2.0, "early": None}


def test_a_locked_gradebook_is_waited_for(course):
    lock = sqlite3.connect(course.root / "gradebook.db", check_same_thread=False)
    with Writer(course, patience=10) as writer:
        lock.execute("BEGIN IMMEDIATE")
        threading.Timer(0.5, lock.rollback).start()
        writer.record(job_of(course, "ann"), result())
    lock.close()
    assert marks(course)["test"][0] == 2.0


def test_a_gradebook_that_stays_locked_is_reported_and_nothing_is_half_recorded(course):
    lock = sqlite3.connect(course.root / "gradebook.db")
    with Writer(course, patience=0.2) as writer:
        lock.execute("BEGIN IMMEDIATE")
        with pytest.raises(UserError, match="locked for 0.2 s.*same command again"):
            writer.record(job_of(course, "ann"), result())
        lock.rollback()
        assert recorded(writer) is None
        writer.record(job_of(course, "ann"), result())
    lock.close()
    assert marks(course)["test"][0] == 2.0


def test_a_full_disk_is_reported_and_the_old_files_stay(course, monkeypatch):
    job = job_of(course, "ann")
    with Writer(course) as writer:
        writer.record(job, result())
        before = files(course)

        def full(*_):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(module, "_write_file", full)
        with pytest.raises(UserError, match="its disk is full.*same command again"):
            writer.record(replace(job, id="new"), result(test=0.0))
        assert recorded(writer).job_id == job.id
        assert files(course) == before
    assert marks(course)["test"][0] == 2.0
    assert [p.name for p in (course.root / "autograded" / "ann").iterdir()] == [HW]


def test_a_full_database_is_reported(course):
    job = job_of(course, "ann")
    with Writer(course) as writer:
        with writer.gradebook.engine.connect() as connection:
            [pages] = connection.exec_driver_sql("PRAGMA page_count").one()
        event.listen(
            writer.gradebook.engine,
            "checkout",
            lambda raw, *_: raw.execute(f"PRAGMA max_page_count = {pages}"),
        )

        def fill():
            for number in range(1000):
                writer.record(replace(job, student=f"s{number}"), result())

        with pytest.raises(UserError, match="full"):
            fill()


def test_a_change_of_the_lab_is_noticed_in_the_gradebook(course):
    from hood.grader.batch.intake import read_lab

    lab = read_lab(course, HW)
    changed = lab.notebooks[HW].replace(b'"points": 2', b'"points": 4')
    assert changed != lab.notebooks[HW]
    with Writer(course) as writer:
        assert writer.knows(lab)
        assert not writer.knows(replace(lab, name="another"))
        assert not writer.knows(replace(lab, notebooks={HW: changed}))
        assert not writer.knows(replace(lab, notebooks={HW: changed, "two": changed}))
