"""The service is killed: after each line of what it does, and in the middle of a request.

Each line runs in a process of its own, which kills itself there. What the process has told before
that it has accepted must be whole; what it has not must be whole or absent.
"""

import hashlib
import json
import os
import re
import shutil
import signal
import socket
import sys
from datetime import UTC, datetime, timedelta
from itertools import count

import pytest

from grader.course import open_course
from grader.service import inbox as inbox_module
from grader.service.inbox import STALE, STAMP, Inbox
from grader.service.queue import Queue, State
from tests.grader.service.serving import Service, make_served
from tests.grader.tiny import LAB
from tests.patience import eventually

WHOLE = re.compile(r"\d{8}T\d{6}\.\d{6}Z\.ipynb")
CELLS = [("twice_solution", "def twice(x): return x")]


def killed_after(lines, modules, work):
    """Run ``work`` in a new process that dies as it comes to so many lines of some modules.

    Return what it wrote until then; it is given a function that writes, as a receipt is sent.
    """
    told, tell = os.pipe()
    child = os.fork()
    if child == 0:
        left = lines

        def trace(frame, event, _):
            nonlocal left
            if frame.f_code.co_filename.endswith(modules):
                if event == "line":
                    left -= 1
                    if left < 0:
                        os.kill(os.getpid(), signal.SIGKILL)
                return trace
            return None

        try:
            sys.settrace(trace)
            work(lambda text: os.write(tell, text.encode()))
        finally:
            os._exit(0)
    os.close(tell)
    with os.fdopen(told) as pipe:
        said = pipe.read()
    _, status = os.waitpid(child, 0)
    return said, os.WIFSIGNALED(status)


@pytest.fixture
def course(tmp_path):
    (tmp_path / "nbgrader_config.py").write_text("c = get_config()\n")
    return open_course(tmp_path)


def arrived(inbox, data):
    path = inbox.arriving()
    path.write_bytes(data)
    return path


def test_a_submission_is_there_with_its_own_time_wherever_the_service_was_killed(
    course, monkeypatch
):
    monkeypatch.setattr(os, "fsync", lambda _: None)  # the machine goes on, and disks are slow
    modules = ("service/inbox.py", "grader/whole_file.py", "shutil.py")
    for lines in count():
        learner = f"ana{lines}"
        old, new = b"old" * 1000, b"new" * 1000
        inbox = Inbox(course)
        before = inbox.take(None, learner, LAB, arrived(inbox, old))
        path = arrived(inbox, new)

        def work(tell, inbox=inbox, learner=learner, path=path):
            tell(json.dumps(inbox.take(None, learner, LAB, path).sha256))

        said, was_killed = killed_after(lines, modules, work)
        again = Inbox(course)  # the service starts again
        again.finish()
        kept = sorted((course.root / "received" / LAB / learner).iterdir())
        assert all(WHOLE.fullmatch(one.name) for one in kept), (lines, kept)
        assert [one.read_bytes() for one in kept] in ([old], [old, new]), lines
        target = course.folder("submitted", learner, LAB)
        names = {one.name for one in target.iterdir() if not one.name.startswith(".")}
        assert names == {"timestamp.txt", f"{LAB}.ipynb"}, lines
        data, stamp = (target / f"{LAB}.ipynb").read_bytes(), (target / "timestamp.txt").read_text()
        assert data == (new if len(kept) > 1 else old), lines
        assert stamp == time_of(kept[-1]).strftime(STAMP), lines
        assert time_of(kept[0]) == before.received
        if said:  # the receipt was sent
            assert json.loads(said) == hashlib.sha256(data).hexdigest()
            assert data == new
        if not was_killed:
            break
    assert lines > 40
    assert said


def time_of(path):
    return datetime.strptime(path.stem, inbox_module.FILE_STAMP).replace(tzinfo=UTC)


def test_what_never_arrived_as_a_whole_is_deleted_when_nothing_more_can_come(course):
    inbox = Inbox(course)
    old, fresh = arrived(inbox, b"half"), arrived(inbox, b"half")
    then = (datetime.now(UTC) - timedelta(seconds=2 * STALE)).timestamp()
    os.utime(old, (then, then))
    inbox.finish()
    assert (old.exists(), fresh.exists()) == (False, True)


@pytest.mark.parametrize("step", ["put", "take", "again", "done"])
def test_a_job_is_whole_wherever_the_service_was_killed(tmp_path, step):
    url, before = f"sqlite:///{tmp_path}/now.db", tmp_path / "before.db"
    queue = Queue(url)
    first = queue.put("ana", LAB, "twice", CELLS)
    job = queue.take() if step in ("again", "done") else None
    shutil.copy(tmp_path / "now.db", before)
    for lines in count():
        shutil.copy(before, tmp_path / "now.db")

        def work(tell):
            if step == "put":
                tell(queue.put("bo", LAB, "twice", CELLS))
            elif step == "take":
                tell(queue.take().id)
            elif step == "again":
                queue.again(job)
                tell("again")
            else:
                queue.done(job, {"earned": 2.0, "most": 2.0, "explanations": {}}, {"text": "x"})
                tell("done")

        said, was_killed = killed_after(lines, ("service/queue.py",), work)
        after = Queue(url)
        look = after.look(first, "ana")
        if step == "done" and look.state is State.DONE:
            assert look.card == {"text": "x"}
        else:
            assert look.state is State.WAITING
            assert not (step == "done" and said)
            found = after.take() or after.take(long=True)
            assert (found.id, list(found.cells)) == (first, CELLS)
        if step == "put" and said:
            assert after.look(said, "bo").state is State.WAITING
        if not was_killed:
            break
    assert lines > 3
    assert said


@pytest.mark.slow(20)
@pytest.mark.usefixtures("sandbox")
def test_half_a_notebook_is_nobodys_submission(tmp_path):
    service = Service(make_served(tmp_path / "course"), workers=1)
    try:
        assert service.ask("PUT", f"labs/{LAB}/notebook", "ana", b"{}")[0] == 201
        half = socket.create_connection(("127.0.0.1", service.port))
        head = f"PUT /labs/{LAB}/notebook HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n"
        half.sendall(f"{head}Authorization: Bearer {service.token('ana')}\r\n\r\n{{".encode())
        received = service.root / "received"
        eventually(lambda: list(received.glob(".*.part")), "the first bytes")
        service.kill()
        half.close()
        service.start()
        [kept] = (received / LAB / "ana").iterdir()
        submitted = service.root / "submitted" / "ana" / LAB / f"{LAB}.ipynb"
        assert kept.read_bytes() == submitted.read_bytes() == b"{}"
    finally:
        service.close()
