"""The trusted end of the connection, against an honest other end and against hostile ones."""

import os
import resource
import socket
import subprocess
import sys
import threading

import pytest
import torch

from hood.judge.checks.exercise import Case, Check, case
from hood.judge.connection import codec
from hood.judge.connection.rpc_client import ConnectionLost, OverSocket
from hood.judge.verdicts.answer_key import AnswerKey
from hood.judge.verdicts.judge import ask, assess, claims_of, judge
from hood.judge.verdicts.subject import Subject, SubjectRaised
from tests.hood.one_part import one_part

pytestmark = pytest.mark.slow(12)

LEARNER = """
import torch
from hood.judge.connection import rpc_server
from hood.judge.connection.rpc_server import serve

rpc_server.connection = {connection}

def twice(x):
    return x + x

def slow(x):
    while True:
        pass

class Counter:
    def __init__(self, start):
        self.count = start
    def add(self, x):
        self.count = self.count + x
        return self.count

{extra}
serve({thing})
"""


@pytest.fixture
def start():
    """Starts a serving process; returns the connection and the process."""
    started = []

    def begin(thing, extra=""):
        ours, theirs = socket.socketpair()
        learner = LEARNER.format(thing=thing, extra=extra, connection=theirs.fileno())
        process = subprocess.Popen(
            [sys.executable, "-c", learner],
            pass_fds=[theirs.fileno()],
        )
        theirs.close()
        connection = OverSocket(ours)
        started.append((process, connection, ours))
        return connection, process

    yield begin
    for process, connection, ours in started:
        connection.close()
        ours.close()
        process.kill()
        process.wait()


def test_functions_classes_and_values_work_over_a_socket(start):
    connection, process = start("{'twice': twice, 'Counter': 3}")
    subject = Subject(connection, trace=True)
    x = torch.arange(6.0).view(2, 3).t()
    came = subject["twice"](x)
    assert torch.equal(came, x + x)
    assert came.stride() == (x + x).stride()
    assert subject.calls[0].ops == ("aten.add",)
    with pytest.raises(SubjectRaised) as raised:
        subject["Counter"](1)
    assert raised.value.kinds[0] == "TypeError"
    connection.end()
    assert process.wait(20) == 0


def test_a_class_works_over_a_socket(start):
    connection, _ = start("Counter")
    counter = Subject(connection)(2)
    assert counter.call("add", 5) == 7
    assert counter.get("count") == 7


def test_a_generator_works_over_a_socket(start):
    extra = "def doubled(x):\n    while True:\n        x = 2 * x\n        x = (yield x) or x"
    connection, process = start("doubled", extra)
    generator = Subject(connection).generator(3)
    assert [generator.resume(), generator.resume(), generator.resume(5)] == [
        ("yield", 6),
        ("yield", 12),
        ("yield", 10),
    ]
    connection.end()
    assert process.wait(20) == 0


def test_the_judge_gives_the_same_verdict_on_either_side(start):
    twice = Check("twice", parts={"p": 1}, reads="r")
    twice.reference(lambda x: 2 * x)

    def warm(subject):
        subject.claim("how warm it was")
        return subject(3)

    twice.cases(lambda draw: [case("p", draw.tensor((2, 3))), Case("p", warm)])
    connection, _ = start("twice")
    key = AnswerKey(twice, "s")
    far = assess(key, ask(key, connection), claims=claims_of(key))
    assert far.earned == judge(twice, lambda x: x + x, "s").earned == 1
    assert far.claims == ("that the inputs were left as they were", "how warm it was")


def test_an_interrupt_ends_the_call_and_not_the_conversation(start):
    connection, process = start("{'slow': slow, 'twice': twice}")
    check = one_part(
        "slow", lambda x: x, lambda draw: [case("p", 1, of="slow"), case("p", 1, of="twice")]
    )
    Subject(connection)["twice"](1)  # the process has started
    threading.Timer(0.3, lambda: process.send_signal(2)).start()
    asked = ask(AnswerKey(check, "s"), connection)
    assert all("no answer in time" in got.unusable for got in asked)
    assert Subject(connection)["twice"](2) == 4


def test_a_process_that_dies_is_lost(start):
    connection, process = start("twice")
    Subject(connection)(1)
    process.kill()
    with pytest.raises(ConnectionLost, match="gone"):
        Subject(connection)(torch.zeros(1))


def test_a_waiting_request_can_be_cut(start):
    connection, _ = start("slow")
    threading.Timer(0.3, lambda: connection.cut("the cell ended")).start()
    with pytest.raises(ConnectionLost, match="the cell ended"):
        Subject(connection)(1)


@pytest.fixture
def pair():
    ours, theirs = socket.socketpair()
    connection = OverSocket(ours)
    yield connection, theirs
    connection.close()
    ours.close()
    theirs.close()


def reply_with(theirs, make):
    """Read one request at the other end, and answer it with what ``make`` returns."""

    def run():
        header = theirs.recv(codec.HEADER.size, socket.MSG_WAITALL)
        request = codec.unpack(header + theirs.recv(sum(codec.sizes(header)), socket.MSG_WAITALL))
        for data in make(request):
            theirs.sendall(data)

    threading.Thread(target=run, daemon=True).start()


def test_answers_sent_before_the_request_do_not_count(pair):
    connection, theirs = pair
    for guess in ("", "0" * 16, None, 3):
        theirs.sendall(codec.pack({"id": guess, "value": "early", "after": [], "ops": []}))
    reply_with(theirs, lambda r: [codec.pack({"id": r["id"], "value": "now", "after": r["args"]})])
    assert connection.ask({"do": "call", "args": []})["value"] == "now"


@pytest.mark.parametrize(
    "make",
    [
        lambda r: [codec.HEADER.pack(1, 1 << 50)],
        lambda r: [b"garbage that is long enough for a header"],
        lambda r: [codec.pack({"id": "x"})] * 200,
    ],
    ids=["endless", "garbage", "chatter"],
)
def test_a_malformed_stream_ends_the_connection(pair, make):
    connection, theirs = pair
    reply_with(theirs, make)
    with pytest.raises(ConnectionLost):
        connection.ask({"do": "value"})


@pytest.mark.parametrize(
    "reply",
    [
        {"value": 1},
        {"value": 1, "after": [[1], {}], "ops": None},
        {"value": 1, "after": None, "ops": [3]},
        {"raised": 7},
        {"raised": {"kinds": [None, 3], "message": ["x"]}},
        {"refused": 3},
        {"made": "x"},
        {"interrupted": 1},
        {},
    ],
    ids=str,
)
def test_a_reply_of_another_form_is_only_a_wrong_answer(pair, reply):
    connection, theirs = pair
    check = one_part("one", lambda x: x * 2, lambda draw: [case("p", torch.ones(2))])
    reply_with(theirs, lambda r: [codec.pack({"id": r["id"], **reply})])
    key = AnswerKey(check, "s")
    verdict = assess(key, ask(key, connection))
    assert (verdict.status, verdict.earned) == ("wrong", 0)


def test_only_paths_and_lines_are_accepted_as_calls(pair):
    connection, theirs = pair
    called = {"torch.exp": 3, "a b": 1, "x" * 101: 1, 4: 4, "zero": 0, "late": 10**9, "yes": True}
    reply_with(theirs, lambda r: [codec.pack({"id": r["id"], "value": 1, "called": called})])
    subject = Subject(connection, listen=True)
    assert subject.value() == 1
    assert subject.called == {"torch.exp": 3}


def test_all_answers_together_are_bounded(pair, monkeypatch):
    monkeypatch.setattr("hood.judge.connection.rpc_client.MAX_TOTAL", 1000)
    connection = OverSocket(pair[0]._end)
    reply_with(pair[1], lambda r: [codec.pack({"id": r["id"], "value": "x" * 2000})])
    with pytest.raises(ConnectionLost, match="the code's replies exceed"):
        connection.ask({"do": "value"})
    connection.close()


def test_a_socket_that_its_owner_has_closed_is_lost(pair):
    """This happens if a kernel that can't be interrupted is ended during a request."""
    connection, _ = pair
    pair[0]._end.close()
    for act in (connection.end, lambda: connection.ask({"do": "value"})):
        with pytest.raises(ConnectionLost, match="gone"):
            act()


def test_a_process_with_many_open_files_can_ask():
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
    held = [os.open(os.devnull, os.O_RDONLY) for _ in range(1100)]
    try:
        ours, theirs = socket.socketpair()
        connection = OverSocket(ours)
        reply_with(theirs, lambda r: [codec.pack({"id": r["id"], "value": 3})])
        assert connection.ask({"do": "value"})["value"] == 3
        connection.close()
        ours.close()
        theirs.close()
    finally:
        for descriptor in held:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
