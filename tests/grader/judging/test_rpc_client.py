"""The trusted end of the connection, against an honest other end and against hostile ones."""

import contextlib
import os
import resource
import socket
import subprocess
import sys
import threading

import pytest
import torch

from grader.inside import codec
from grader.inside.rpc_server import receive
from grader.judging.answer_key import AnswerKey
from grader.judging.judge import ask, assess, claims_of, judge
from grader.judging.rpc_client import (
    MAX_AHEAD,
    MAX_BYTES_AHEAD,
    ConnectionLost,
    OverSocket,
)
from grader.judging.subject import Subject, SubjectRaised
from tests.grader.one_part import one_part
from utils.checks.exercise import Case, Check, case

pytestmark = pytest.mark.slow(12)

LEARNER = """
import torch
from grader.inside import rpc_server
from grader.inside.rpc_server import serve

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
    """Starts a process that serves; gives the connection to it and the process."""
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


def test_functions_classes_and_values_over_a_socket(start):
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


def test_a_class_over_a_socket(start):
    connection, _ = start("Counter")
    counter = Subject(connection)(2)
    assert counter.call("add", 5) == 7
    assert counter.get("count") == 7


def test_a_generator_over_a_socket(start):
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
    Subject(connection)["twice"](1)  # it is there
    threading.Timer(0.3, lambda: process.send_signal(2)).start()
    asked = ask(AnswerKey(check, "s"), connection)
    assert all("time was up" in got.unusable for got in asked)
    assert Subject(connection)["twice"](2) == 4


SEEN = """
seen = []

def keep(x):
    seen.append(x)
    return x

def slow_at_first(x):
    seen.append(x)
    while not isinstance(x, float):
        pass

def told():
    return list(seen)
"""


def test_behind_an_interrupted_request_nothing_that_was_sent_ahead_is_run(start):
    connection, process = start("{'slow': slow_at_first, 'told': told}", SEEN)
    check = one_part("slow", lambda x: x, lambda draw: [case("p", k, of="slow") for k in range(20)])
    assert Subject(connection)["told"]() == []
    threading.Timer(0.3, lambda: process.send_signal(2)).start()
    asked = ask(AnswerKey(check, "s"), connection)
    assert all("time was up" in got.unusable for got in asked)
    assert Subject(connection)["told"]() == [0]


def test_cases_are_played_in_order_and_a_case_that_asks_twice_is_asked_in_its_place(start):
    connection, _ = start("{'keep': keep, 'told': told}", SEEN)
    check = Check("keep", parts={"p": 1}, reads="r")
    check.reference({"keep": lambda x: x, "told": list})

    def twice(k):
        return Case("p", lambda s: s["keep"](s["keep"](k) + 100))

    check.cases(
        lambda draw: [twice(k) if k % 5 == 4 else case("p", k, of="keep") for k in range(40)]
    )
    outcomes = ask(AnswerKey(check, "s"), connection)
    assert [got.value for got in outcomes] == [k + 100 * (k % 5 == 4) for k in range(40)]
    expected = [one for k in range(40) for one in ([k, k + 100] if k % 5 == 4 else [k])]
    assert Subject(connection)["told"]() == expected


def test_a_case_that_asks_more_of_this_code_than_of_the_reference_gets_its_own_replies(start):
    extra = "def odd(x):\n    if x % 2:\n        raise ValueError('odd')\n    return x"
    connection, _ = start("odd", extra)
    check = Check("odd", parts={"p": 1}, reads="r")
    check.reference(lambda x: x)

    def play(k):
        def with_even(s):
            try:
                return s(k)
            except SubjectRaised:
                return s(2 * k)

        return Case("p", with_even)

    check.cases(lambda draw: [play(k) for k in range(40)])
    outcomes = ask(AnswerKey(check, "s"), connection)
    assert [got.value for got in outcomes] == [2 * k if k % 2 else k for k in range(40)]


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
    """Read one request at the other end and answer it in ``make``'s way."""

    def run():
        header = theirs.recv(codec.HEADER.size, socket.MSG_WAITALL)
        request = codec.unpack(header + theirs.recv(sum(codec.sizes(header)), socket.MSG_WAITALL))
        for data in make(request):
            theirs.sendall(data)

    threading.Thread(target=run, daemon=True).start()


def test_answers_given_beforehand_do_not_count(pair):
    connection, theirs = pair
    for guess in ("", "0" * 16, None, 3):
        theirs.sendall(codec.pack({"id": guess, "value": "early", "after": [], "ops": []}))
    reply_with(theirs, lambda r: [codec.pack({"id": r["id"], "value": "now", "after": r["args"]})])
    assert connection.ask({"do": "call", "args": []})["value"] == "now"


def sent_at_once(connection, theirs, cases):
    """Play cases; return the arguments of the requests that came before the first reply."""
    key = AnswerKey(one_part("one", lambda x: x, lambda draw: cases), "s")
    found = []

    def read():
        theirs.settimeout(0.5)
        with contextlib.suppress(TimeoutError):
            while True:
                found.append(receive(theirs)["args"][0])
        connection.cut("enough")

    reading = threading.Thread(target=read)
    reading.start()
    ask(key, connection)
    reading.join()
    return found


def test_the_next_requests_are_sent_ahead_as_far_as_a_socket_surely_holds(pair):
    assert sent_at_once(*pair, [case("p", k) for k in range(50)]) == list(range(MAX_AHEAD))


def test_large_requests_wait_for_their_turn(pair):
    large, small = torch.zeros(MAX_BYTES_AHEAD), [case("p", k) for k in range(3)]
    assert sent_at_once(*pair, [*small, case("p", large), *small]) == [0, 1, 2]


def test_requests_of_some_size_are_sent_ahead_while_they_fit(pair):
    halves = [case("p", "x" * (MAX_BYTES_AHEAD // 2 - 500)) for _ in range(3)]
    assert len(sent_at_once(*pair, halves)) == 2


@pytest.mark.parametrize(
    "make",
    [
        lambda r: [codec.HEADER.pack(1, 1 << 50)],
        lambda r: [b"garbage that is long enough for a header"],
        lambda r: [codec.pack({"id": "x"})] * 200,
    ],
    ids=["endless", "garbage", "chatter"],
)
def test_a_stream_that_makes_no_sense_is_lost(pair, make):
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


def test_only_paths_and_lines_are_taken_for_calls(pair):
    connection, theirs = pair
    called = {"torch.exp": 3, "a b": 1, "x" * 101: 1, 4: 4, "zero": 0, "late": 10**9, "yes": True}
    reply_with(theirs, lambda r: [codec.pack({"id": r["id"], "value": 1, "called": called})])
    subject = Subject(connection, listen=True)
    assert subject.value() == 1
    assert subject.called == {"torch.exp": 3}


def test_all_answers_together_are_bounded(pair, monkeypatch):
    monkeypatch.setattr("grader.judging.rpc_client.MAX_TOTAL", 1000)
    connection = OverSocket(pair[0]._end)
    reply_with(pair[1], lambda r: [codec.pack({"id": r["id"], "value": "x" * 2000})])
    with pytest.raises(ConnectionLost, match="more than"):
        connection.ask({"do": "value"})
    connection.close()


def test_a_socket_that_its_owner_has_closed_is_lost(pair):
    """As when a kernel that could not be interrupted is ended while it is asked."""
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
