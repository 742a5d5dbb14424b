"""The queue: whose turn it is, what is replaced, what a restart keeps, and how much may wait."""

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
    """Store a verdict, as if the check had taken so long."""
    queue.done(check, {"earned": 1.0, "most": 2.0}, {"text/plain": "card"})
    with create_engine(str(queue._engine.url)).begin() as db:
        moved = text("UPDATE service_job SET began = ended - :s WHERE id = :id")
        db.execute(moved, {"s": seconds, "id": check.id})


def test_first_come_first_served_among_those_who_asked_for_as_much(queue):
    asked = [put(queue, learner) for learner in ("ana", "bo", "cy")]
    assert [queue.take().id for _ in asked] == asked
    assert queue.take() is None


def test_a_newer_check_takes_the_place_of_one_that_waits(queue):
    first, second = put(queue, "ana"), put(queue, "ana", "row_sums")
    assert queue.progress(first, "ana").state is State.REPLACED
    assert queue.take().id == second
    assert queue.take() is None


def test_what_was_replaced_is_not_kept_for_long(queue, monkeypatch):
    others, first, second = put(queue, "bo"), put(queue, "ana"), put(queue, "ana")
    assert queue.progress(first, "ana").state is State.REPLACED
    now = module.time.time
    monkeypatch.setattr(module.time, "time", lambda: now() + module.LATELY + 1)
    third = put(queue, "ana")
    assert [one["id"] for one in queue.of("ana")] == [third, second]
    assert queue.progress(others, "bo").state is State.WAITING


def test_of_one_learners_checks_one_runs_at_a_time(queue):
    running = put(queue, "ana")
    check = queue.take()
    assert check.id == running
    waiting = put(queue, "ana")
    assert queue.take() is None
    end(queue, check)
    assert queue.take().id == waiting


def test_who_used_much_time_lately_comes_behind_who_did_not(queue):
    put(queue, "slow")
    end(queue, queue.take(), seconds=60.0)
    put(queue, "slow")
    later = put(queue, "ana")
    assert queue.take().id == later


def test_a_job_that_needs_more_than_a_short_turn_waits_for_a_long_one(queue):
    asked = put(queue, "slow")
    queue.again(queue.take())
    assert queue.progress(asked, "slow").state is State.WAITING
    assert queue.take() is None  # the workers of short turns are for others
    job = queue.take(long=True)
    assert (job.id, job.long, job.cells) == (asked, True, CELLS)
    end(queue, job, seconds=60.0)


def test_who_needed_a_long_turn_begins_with_one_until_a_short_one_is_enough(queue, monkeypatch):
    put(queue, "slow")
    queue.again(queue.take())
    job = queue.take(long=True)
    now = module.time.time
    monkeypatch.setattr(module.time, "time", lambda: now() + 60)  # so long it takes
    end(queue, job)
    again = put(queue, "slow")
    assert queue.take() is None
    job = queue.take(long=True)
    assert job.id == again
    end(queue, job)  # at once
    assert put(queue, "slow") == queue.take().id


def test_half_of_the_short_turns_are_for_those_who_are_at_work(queue):
    put(queue, "ana")
    end(queue, queue.take())
    for number in range(5):
        put(queue, f"new{number}")
    assert [queue.take().learner for _ in range(3)] == ["new0", "new1", "new2"]
    assert queue.take() is None
    known = put(queue, "ana")
    assert queue.take().id == known


def test_asking_again_does_not_give_another_short_turn(queue):
    put(queue, "slow")
    queue.again(queue.take())
    newer = put(queue, "slow")
    assert queue.take() is None
    assert queue.take(long=True).id == newer


def test_a_newer_job_comes_in_place_of_one_that_waits_for_a_long_turn(queue):
    first = put(queue, "slow")
    job = queue.take()
    second = put(queue, "slow")
    queue.again(job)
    assert queue.progress(first, "slow").state is State.REPLACED
    assert queue.take(long=True).id == second


def test_a_learner_sees_place_time_and_card_of_own_checks_alone(queue):
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


def test_what_ran_when_the_service_was_killed_waits_again(queue, url):
    first = put(queue, "ana")
    queue.take()
    again = Queue(url)
    assert again.progress(first, "ana").state is State.WAITING
    assert again.take().cells == CELLS


def test_however_many_wait_who_has_none_waiting_finds_a_place(queue, url):
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


def test_a_verdict_that_is_being_made_counts_as_had(queue):
    """Else a learner with five verdicts a day gets a sixth, sent while the fifth is made."""
    put(queue, "ana")
    assert queue.since("ana", "twice", 0.0) == 0  # a newer one takes its place
    running = queue.take()
    assert queue.since("ana", "twice", 0.0) == 1
    end(queue, running)
    assert queue.since("ana", "twice", 0.0) == 1


def test_a_gradebook_that_the_service_makes_is_one_of_this_nbgrader(tmp_path):
    url = f"sqlite:///{tmp_path / 'gradebook.db'}"
    Queue(url)
    Gradebook(url).close()  # as whatever grades opens it
    assert other_version(url) == ""
