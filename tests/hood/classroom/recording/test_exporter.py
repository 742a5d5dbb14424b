"""`nbgrader autograde` and formgrader's button run the batch, which keeps old grades to its end."""

import contextlib
import functools
import os
import signal
import sqlite3

import pytest
from nbgrader.api import Gradebook
from nbgrader.apps.api import NbGraderAPI
from sqlalchemy import Engine, event
from sqlalchemy.exc import OperationalError

from hood import UserError
from hood.classroom.gradebook.run_lock import lock_grades
from hood.classroom.recording import command
from hood.classroom.recording import writer as module
from hood.classroom.recording.writer import Writer
from hood.grader.course import open_course
from tests.hood.classroom.recording.running import everything, marks, run
from tests.hood.classroom.recording.small import HW, MACHINE, Here, hand_in, make_small


@pytest.fixture
def course(tmp_path, monkeypatch):
    """A course with one learner, who has marks, extra credit, a mark by hand and a comment."""
    monkeypatch.setattr(command, "_executor", lambda *_: Here())
    root = make_small(tmp_path / "course").root
    with (root / "nbgrader_config.py").open("a") as settings:
        settings.write(
            "c.Autograde.exporter_class = 'hood.classroom.recording.exporter.SubmissionExporter'\n"
        )
    course = open_course(root)
    hand_in(course, "ann", "score 1", why="because").with_name("timestamp.txt").write_text(
        "2026-01-02 10:00 UTC"
    )
    assert button(course)["success"]
    with Gradebook(course.directory.db_url) as gradebook:
        gradebook.find_grade("test", HW, HW, "ann").extra_credit = 0.5
        grade = gradebook.find_grade("why", HW, HW, "ann")
        grade.manual_score, grade.needs_manual_grade = 3.0, False
        gradebook.find_comment("why", HW, HW, "ann").manual_comment = "Well said."
        gradebook.db.commit()
    return course


def button(course, force=True):
    """Press formgrader's button, which is `nbgrader autograde --force`; return its result."""
    return NbGraderAPI(config=course.config).autograde(HW, "ann", force=force)


def full(*_):
    raise OSError(28, "No space left on device")


class Interrupted(Here):
    """An executor that is interrupted by Ctrl-C."""

    def run(self, jobs):
        """Yield nothing."""
        list(jobs)
        os.kill(os.getpid(), signal.SIGINT)
        yield from ()


@pytest.fixture
def fails(course, request, monkeypatch):
    """Let grading fail in one of several ways."""
    if request.param in ("raise", "refuse", "full"):
        monkeypatch.setenv(MACHINE, request.param)
    elif request.param == "disk":
        monkeypatch.setattr(module, "_write_file", full)
    elif request.param == "Ctrl-C":
        monkeypatch.setattr(command, "_executor", lambda *_: Interrupted())
    elif request.param == "another run":
        with lock_grades(course):
            yield
            return
    elif request.param == "locked":
        monkeypatch.setattr(command, "Writer", functools.partial(Writer, patience=0.2))
        lock = sqlite3.connect(course.root / "gradebook.db")
        lock.execute("BEGIN IMMEDIATE")
        yield
        lock.close()
        return
    elif request.param == "database":  # after the marks were written

        def broken(connection, cursor, statement, *_):
            if statement.startswith("INSERT INTO open_the_hood_graded"):
                raise OperationalError("", {}, sqlite3.OperationalError("disk I/O error"))

        event.listen(Engine, "before_cursor_execute", broken)
        yield
        event.remove(Engine, "before_cursor_execute", broken)
        return
    yield


FAILURES = ["raise", "refuse", "full", "disk", "Ctrl-C", "another run", "locked", "database"]


@pytest.mark.parametrize("fails", FAILURES, indirect=True)
@pytest.mark.parametrize("way", ["button", "autograde", "grade"])
def test_a_grade_stays_byte_for_byte_until_another_replaces_it(course, fails, way):
    if way == "autograde":  # without --force, a changed submission
        hand_in(course, "ann", "score 2")
    before = everything(course.root)
    if way == "grade":
        with contextlib.suppress(UserError):
            assert run(course, "--regrade")[0] in (1, 130)
    else:
        result = button(course, force=way == "button")
        assert not result["success"]
        assert "[ERROR] " in result["log"]
        assert "Traceback" not in result["log"]
    assert everything(course.root) == before


def test_the_button_grades_again_and_marks_by_hand_stay(course):
    hand_in(course, "ann", "score 2", why="because")
    assert button(course)["success"]
    assert marks(course.root, "ann", HW) == {"test": 2.0, "why": None}
    with Gradebook(course.directory.db_url) as gradebook:
        assert gradebook.find_submission(HW, "ann").score == 5.5
        assert gradebook.find_comment("why", HW, HW, "ann").comment == "Well said."


def test_a_single_notebook_is_not_graded(course):
    course.config.CourseDirectory.notebook_id = HW
    result = button(course)
    assert not result["success"]
    assert "leave out --notebook" in result["log"]


def test_grades_of_the_batch_are_redone_only_with_force(course):
    before = everything(course.root)
    assert "0 graded; 1 not graded again" in button(course, force=False)["log"]
    assert everything(course.root) == before
    course.config.Execute.timeout = 99
    assert "0 graded; 1 not graded again" in button(course, force=False)["log"]
    assert everything(course.root) == before
    assert "1 graded; 0 not graded again" in button(course)["log"]
