"""The queue: its order, replaced jobs, restarts, and its bounds."""

import time

import pytest
from nbgrader.api import Gradebook
from sqlalchemy import create_engine, text

from hood.classroom.gradebook.service_jobs import State
from hood.classroom.service import queue as module
from hood.classroom.service.queue import Queue
from hood.grader.course import other_version

CELLS = [("twice_solution", "def twice(x): return x")]


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path}/gradebook.db"


@pytest.fixture
def queue(url):
    return Queue(url, workers=6)


def put(queue, learner, exercise="twice"):
    return queue.put(learner, "99_tiny", exercise, CELLS)


def end(queue, check, seconds=0.0):
    """Store a verdict, as if the check had taken `seconds`."""
    queue.done(check, {"earned": 1.0, "most": 2.0}, {"text/plain": "card"})
    with create_engine(str(queue._engine.url)).begin() as db:
        moved = text("UPDATE service_job SET began = ended - :s WHERE id = :id")
        db.execute(moved, {"s": seconds, "id": check.id})


def test_first_come_first_served_among_learners_with_equal_use(queue):
    asked = [put(queue, learner) for learner in ("ana", "bo", "cy")]
    assert [queue.take().id for _ in asked] == asked
    assert queue.take() is None


def test_a_newer_check_replaces_a_waiting_one(queue):
    first, second = put(queue, "ana"), put(queue, "ana", "row_sums")
    assert queue.progress(first, "ana").state is State.REPLACED
    assert queue.take().id == second
    assert queue.take() is None


def test_replaced_jobs_are_soon_deleted(queue, monkeypatch):
    others, first, second = put(queue, "bo"), put(queue, "ana"), put(queue, "ana")
    assert queue.progress(first, "ana").state is State.REPLACED
    now = module.time.time
    monkeypatch.setattr(module.time, "time", lambda: now() + module.LATELY + 1)
    third = put(queue, "ana")
    assert [one["id"] for one in queue.of("ana")] == [third, second]
    assert queue.progress(others, "bo").state is State.WAITING


def test_a_learner_has_one_running_check_at_a_time(queue):
    running = put(queue, "ana")
    check = queue.take()
    assert check.id == running
    waiting = put(queue, "ana")
    assert queue.take() is None
    end(queue, check)
    assert queue.take().id == waiting


def test_a_learner_with_much_recent_use_comes_later(queue):
    put(queue, "slow")
    end(queue, queue.take(), seconds=60.0)
    put(queue, "slow")
    later = put(queue, "ana")
    assert queue.take().id == later


def test_a_job_too_long_for_a_short_turn_waits_for_a_long_one(queue):
    asked = put(queue, "slow")
    queue.again(queue.take())
    assert queue.progress(asked, "slow").state is State.WAITING
    assert queue.take() is None  # the workers of short turns serve others
    job = queue.take(long=True)
    assert (job.id, job.long, job.cells) == (asked, True, CELLS)
    end(queue, job, seconds=60.0)


def test_a_learner_who_needed_a_long_turn_keeps_one_until_a_short_one_is_enough(queue, monkeypatch):
    put(queue, "slow")
    queue.again(queue.take())
    job = queue.take(long=True)
    now = module.time.time
    monkeypatch.setattr(module.time, "time", lambda: now() + 60)  # the duration of a turn
    end(queue, job)
    again = put(queue, "slow")
    assert queue.take() is None
    job = queue.take(long=True)
    assert job.id == again
    end(queue, job)  # at once
    assert put(queue, "slow") == queue.take().id


def test_half_of_the_short_turns_are_for_active_learners(queue):
    put(queue, "ana")
    end(queue, queue.take())
    for number in range(5):
        put(queue, f"new{number}")
    assert [queue.take().learner for _ in range(3)] == ["new0", "new1", "new2"]
    assert queue.take() is None
    known = put(queue, "ana")
    assert queue.take().id == known


def test_a_repeated_request_gets_no_further_short_turn(queue):
    put(queue, "slow")
    queue.again(queue.take())
    newer = put(queue, "slow")
    assert queue.take() is None
    assert queue.take(long=True).id == newer


def test_a_newer_job_replaces_one_that_waits_for_a_long_turn(queue):
    first = put(queue, "slow")
    job = queue.take()
    second = put(queue, "slow")
    queue.again(job)
    assert queue.progress(first, "slow").state is State.REPLACED
    assert queue.take(long=True).id == second


def test_a_learner_sees_place_time_and_card_of_own_checks_only(queue):
    for learner in ("ana", "bo", "cy", "di"):
        last = put(queue, learner)
    look = queue.progress(last, "di")
    assert (look.state, look.place, look.seconds) == (State.WAITING, 3, module.USUAL)
    assert queue.progress(last, "ana") is None
    check = queue.take()
    end(queue, check)
    assert queue.progress(check.id, "ana").card == {"text/plain": "card"}
    [past] = queue.of("ana")
    assert (past["exercise"], past["earned"], past["most"]) == ("twice", 1.0, 2.0)


def test_a_job_that_ran_at_a_kill_waits_again(queue, url):
    first = put(queue, "ana")
    queue.take()
    again = Queue(url)
    assert again.progress(first, "ana").state is State.WAITING
    assert again.take().cells == CELLS


def test_a_full_queue_has_a_place_for_a_learner_without_waiting_jobs(queue, url):
    same = {"lab": "99_tiny", "exercise": "twice", "cells": "[]", "teaches": False, "long": False}
    class_of = [
        same | {"id": f"{k}", "learner": f"eve{k}", "state": State.WAITING, "received": float(k)}
        for k in range(3000)
    ]
    with create_engine(url).begin() as db:
        db.execute(module.JOBS.insert(), class_of)
    look = queue.progress(put(queue, "ana"), "ana")
    assert (look.state, look.place) == (State.WAITING, len(class_of))
    assert put(queue, "eve7")  # in place of the one that waits
    assert queue.load()["waiting"] == len(class_of) + 1


def test_code_is_not_kept_and_verdicts_are_counted(queue, url):
    put(queue, "ana")
    before = time.time() - 1
    end(queue, queue.take())
    assert queue.since("ana", "twice", before) == 1
    assert queue.since("ana", "row_sums", before) == queue.since("bo", "twice", before) == 0
    assert queue.since("ana", "twice", time.time() + 1) == 0
    with create_engine(url).connect() as db:
        assert db.scalar(text("SELECT cells FROM service_job")) == ""


def test_a_running_check_counts_towards_the_limit(queue):
    """Otherwise a learner with five verdicts a day could get a sixth during the fifth check."""
    put(queue, "ana")
    assert queue.since("ana", "twice", 0.0) == 0  # a newer one takes its place
    running = queue.take()
    assert queue.since("ana", "twice", 0.0) == 1
    end(queue, running)
    assert queue.since("ana", "twice", 0.0) == 1


def test_the_service_makes_a_gradebook_of_the_installed_nbgraders_version(tmp_path):
    url = f"sqlite:///{tmp_path / 'gradebook.db'}"
    Queue(url)
    Gradebook(url).close()  # opened as grading opens it
    assert other_version(url) == ""
