"""The service is killed after each line of its work.

After a kill, only the files in the folder remain, so the folder is copied at each line. Everything
that the service had acknowledged by then must be whole; everything else must be whole or absent.
``test_service`` kills a real service.
"""

import hashlib
import os
import re
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import nbformat
import pytest
from nbgrader.api import Gradebook

from hood.classroom.gradebook.service_jobs import State
from hood.classroom.hand_ins import store as store_module
from hood.classroom.hand_ins.store import STALE, STAMP, HandIns
from hood.classroom.recording import command
from hood.classroom.service.inbox import Inbox
from hood.classroom.service.queue import Queue
from hood.grader.course import open_course
from tests.hood.classroom.recording.running import run
from tests.hood.classroom.recording.small import HW, Here, answered, make_small
from tests.hood.tiny import LAB
from tests.patience import PATIENCE

WHOLE = re.compile(r"\d{8}T\d{6}\.\d{6}Z\.ipynb")
CELLS = [("twice_solution", "def twice(x): return x")]


def left_by(folder, modules, work):
    """Run ``work``, and return the folder's content and the receipts at each possible kill.

    Content and receipts are copied before each line of some modules, and at the end. Equal copies
    are returned once. ``work`` gets a function that sends a receipt.
    """
    found, told = [], []

    def look():
        paths = sorted(folder.rglob("*"))
        state = {one: None if one.is_dir() else one.read_bytes() for one in paths}, list(told)
        if state not in found:
            found.append(state)

    def trace(frame, event, _):
        if not frame.f_code.co_filename.endswith(modules):
            return None
        if event == "line":
            look()
        return trace

    sys.settrace(trace)
    try:
        work(told.append)
    finally:
        sys.settrace(None)
    look()
    return found


def put_back(folder, files):
    """Restore a folder's earlier content."""
    shutil.rmtree(folder)
    folder.mkdir()
    for path, data in files.items():
        if data is None:
            path.mkdir()
        else:
            path.write_bytes(data)


@pytest.fixture
def course(tmp_path):
    (tmp_path / "nbgrader_config.py").write_text("c = get_config()\n")
    return open_course(tmp_path)


def arrived(inbox, data):
    path = inbox.arriving()
    path.write_bytes(data)
    return path


def test_after_any_kill_a_submission_is_stored_with_its_own_time(course, monkeypatch):
    monkeypatch.setattr(
        os, "fsync", lambda _: None
    )  # only the process is killed, and disks are slow
    modules = ("hand_ins/store.py", "hood/atomic_files.py", "shutil.py")
    old, new = b"old" * 1000, b"new" * 1000
    inbox = Inbox(course)
    before = inbox.take(None, "ana", LAB, arrived(inbox, old))
    path = arrived(inbox, new)
    states = left_by(
        course.root, modules, lambda tell: tell(inbox.take(None, "ana", LAB, path).sha256)
    )
    for files, told in states:
        put_back(course.root, files)
        Inbox(course).finish()  # the service starts again, or grading starts
        kept = sorted((course.root / "received" / LAB / "ana").iterdir())
        assert all(WHOLE.fullmatch(one.name) for one in kept), kept
        assert [one.read_bytes() for one in kept] in ([old], [old, new])
        target = course.folder("submitted", "ana", LAB)
        names = {one.name for one in target.iterdir() if not one.name.startswith(".")}
        assert names == {"timestamp.txt", f"{LAB}.ipynb"}
        data, stamp = (target / f"{LAB}.ipynb").read_bytes(), (target / "timestamp.txt").read_text()
        assert data == (new if len(kept) > 1 else old)
        assert stamp == time_of(kept[-1]).strftime(STAMP)
        assert time_of(kept[0]) == before.received
        if told:  # the receipt was sent
            assert told == [hashlib.sha256(data).hexdigest()]
            assert data == new
    assert len(states) > 8
    assert told


def time_of(path):
    return datetime.strptime(path.stem, store_module.FILE_STAMP).replace(tzinfo=UTC)


def test_an_incomplete_submission_is_deleted_when_no_more_can_come(course):
    inbox = Inbox(course)
    old, fresh = arrived(inbox, b"half"), arrived(inbox, b"half")
    then = (datetime.now(UTC) - timedelta(seconds=2 * STALE)).timestamp()
    os.utime(old, (then, then))
    inbox.finish()
    assert (old.exists(), fresh.exists()) == (False, True)


def test_grade_finishes_the_work_of_a_killed_service(tmp_path, monkeypatch):
    course = make_small(tmp_path)
    inbox = Inbox(course)

    def take(answer):
        inbox.take(None, "ann", HW, arrived(inbox, nbformat.writes(answered(answer)).encode()))

    take("score 1")
    with monkeypatch.context() as killed:
        killed.setattr(store_module.shutil, "copyfile", None)
        with pytest.raises(TypeError):  # the new time is beside the old notebook
            take("score 2")
    monkeypatch.setattr(command, "_executor", lambda *_: Here())
    assert run(course)[0] == 0
    second = sorted((course.root / "received" / HW / "ann").iterdir())[1]
    with Gradebook(course.directory.db_url) as gradebook:
        found = gradebook.find_submission(HW, "ann")
        assert (found.score, found.timestamp) == (2.0, time_of(second).replace(tzinfo=None))


def test_a_submission_is_not_replaced_while_it_is_read(course):
    inbox, other = Inbox(course), HandIns(course)  # as if from two processes
    path = arrived(inbox, b"{}")
    with ThreadPoolExecutor() as threads:
        with other.at_rest():
            placed = threads.submit(inbox.take, None, "ana", LAB, path)
            with pytest.raises(TimeoutError):
                placed.result(0.2)
            assert path.exists()
        assert placed.result(PATIENCE).lab == LAB


@pytest.mark.parametrize("step", ["put", "take", "again", "done"])
def test_after_any_kill_a_job_is_whole(tmp_path, step):
    url = f"sqlite:///{tmp_path}/gradebook.db"
    queue = Queue(url)
    first = queue.put("ana", LAB, "twice", CELLS)
    job = queue.take() if step in ("again", "done") else None

    def work(tell):
        if step == "put":
            tell(queue.put("bo", LAB, "twice", CELLS))
        elif step == "take":
            tell(queue.take().id)
        elif step == "again":
            tell(queue.again(job))
        else:
            verdict = {"earned": 2.0, "most": 2.0, "explanations": {}}
            tell(queue.done(job, verdict, {"text": "x"}))

    states = left_by(tmp_path, ("service/queue.py", "sqlalchemy/engine/default.py"), work)
    for files, told in states:
        put_back(tmp_path, files)
        after = Queue(url)
        look = after.progress(first, "ana")
        if step == "done" and look.state is State.DONE:
            assert look.card == {"text": "x"}
        else:
            assert look.state is State.WAITING
            assert not (step == "done" and told)
            found = after.take() or after.take(long=True)
            assert (found.id, list(found.cells)) == (first, CELLS)
        if step == "put" and told:
            assert after.progress(told[0], "bo").state is State.WAITING
    assert len(states) > 2
    assert told
