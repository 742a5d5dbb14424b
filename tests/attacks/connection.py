"""Misuse the socket of the grader's calls: answer early, late, wrongly, endlessly, or never."""

from __future__ import annotations

from tests.attacks.catalogue import Family
from tests.attacks.submission import Work

family = Family("connection")
attack = family.attack

CONNECTION = """
import os, socket, struct, threading, time
from hood.judge.connection import rpc_server, codec
_connection = socket.socket(fileno=os.dup(rpc_server.connection))
"""


@attack(tells="row_sums")
def answers_beforehand(work: Work) -> None:
    """Writes answers into the socket before the first request, so that they might be accepted."""
    work.before(
        "row_sums",
        CONNECTION
        + """
for number in ("", "0", None, 0):
    for claim in ({"earned": 3.0}, {"value": torch.zeros(2), "after": [[torch.zeros(2)], {}]}):
        _connection.sendall(codec.pack({"id": number, "ops": [], **claim}))
""",
    )


@attack(costs=("twice",), tells="too many replies|not be interrupted", cell_seconds=1)
def answers_a_thousand_times_beforehand(work: Work) -> None:
    """Writes so many old answers that the grader never stops reading."""
    work.first(
        CONNECTION
        + """
def flood():
    while True:
        _connection.sendall(codec.pack({"id": "guess", "value": 3.0, "after": [[], {}], "ops": []}))
threading.Thread(target=flood, daemon=True).start()
"""
    )


@attack(cell_seconds=1)
def answers_from_another_thread(work: Work) -> None:
    """Reads the grader's requests in a separate thread and answers them with zeros."""
    work.before(
        "row_sums",
        CONNECTION
        + """
def steal():
    while True:
        request = rpc_server.receive(_connection)
        if request and request["do"] == "call":
            _connection.sendall(codec.pack({"id": request["id"], "value": torch.zeros(3),
                                     "after": [request["args"], {}], "ops": []}))
threading.Thread(target=steal, daemon=True).start()
""",
    )


@attack(costs=("row_sums",), honest={"row_sums": 3.0}, tells="answered with a message of")
def sends_garbage(work: Work) -> None:
    """Writes malformed bytes, with a header that announces a huge message."""
    work.answer_all()
    work.answer("corner", "def corner(x): return x")
    work.before("row_sums", CONNECTION + "_connection.sendall(os.urandom(100) + b'\\xff' * 4000)")


@attack(costs=("row_sums",), cell_seconds=1)
def announces_a_huge_message(work: Work) -> None:
    """Answers with a header of almost the largest size, and nothing after it."""
    work.answer(
        "row_sums",
        CONNECTION
        + """
def row_sums(x):
    _connection.sendall(codec.HEADER.pack(codec.MAX_JSON, codec.MAX_BYTES))
    time.sleep(100)
""",
    )


@attack(costs=("row_sums",), seconds=12, cell_seconds=1)
def never_answers(work: Work) -> None:
    """Replaces the client by one that reads requests and never replies."""
    work.before(
        "row_sums",
        CONNECTION
        + """
def serve(thing):
    while True:
        time.sleep(0.01)
rpc_server.serve = serve
""",
    )


@attack(costs=("row_sums", "corner"), seconds=12, cell_seconds=1)
def drips(work: Work) -> None:
    """Answers one byte at a time, so slowly that no reply is ever complete."""
    work.before(
        "row_sums",
        CONNECTION
        + """
def serve(thing):
    reply = codec.HEADER.pack(1000, 0) + b" " * 1000
    for byte in reply:
        _connection.send(bytes([byte]))
        time.sleep(0.05)
rpc_server.serve = serve
""",
    )


@attack(costs=("row_sums", "corner"), cell_seconds=1)
def answers_endlessly(work: Work) -> None:
    """Answers with an endless series of large, well-formed messages."""
    work.before(
        "row_sums",
        CONNECTION
        + """
def serve(thing):
    big = codec.pack({"id": "x", "value": torch.zeros(1 << 22)})
    while True:
        _connection.sendall(big)
rpc_server.serve = serve
""",
    )


@attack(costs=("row_sums", "corner"), cell_seconds=1)
def closes_the_socket(work: Work) -> None:
    """Closes the inherited socket, and puts another socket in its place."""
    work.before(
        "row_sums",
        CONNECTION
        + """
_connection.shutdown(socket.SHUT_RDWR)
here, there = socket.socketpair()
os.dup2(here.fileno(), rpc_server.connection)
""",
    )


@attack(honest={"row_sums": 0.0})
def makes_json_that_expands(work: Work) -> None:
    """Answers with deep lists, thousands of digits, NaN literals, unknown kinds, odd shapes."""
    work.before(
        "row_sums",
        CONNECTION
        + r"""
BODIES = iter([
    b"[" * 90000, b"1" * 100000, b"NaN", b'{"id": 1e999}', b'{"tensor": [0]}', b'{"a": 1, "b": 2}',
    b'[{"tensor": [0, 0, "float32", 0, [4611686018427387904], [0], ""]}]',
    b'[{"array": [0, 0, "O", 0, [1], [1], ""]}]', b'[{"config": ["os", "system", {}]}]',
    b'[{"dict": [[{"dict": [[], []]}], [1]]}]', b'\xff\xfe', b'{"float": "nan"}', b'"\\ud800"',
])
plain = rpc_server.Answerer.answer
def lie(self, request):
    body = next(BODIES, None)
    if body is None:
        return plain(self, request)
    return codec.HEADER.pack(len(body), 0) + body
rpc_server.Answerer.answer = lie
def serve(thing):
    answerer = rpc_server.Answerer(thing)
    for body in BODIES:
        _connection.sendall(codec.HEADER.pack(len(body), 0) + body)
    while True:
        request = rpc_server.receive(_connection)
        if request is None or request["do"] == "end":
            return
        _connection.sendall(plain(answerer, request))
rpc_server.serve = serve
""",
    )


@attack(costs=("row_sums",))
def claims_other_kinds(work: Work) -> None:
    """Answers with impossible handles, exceptions and arguments."""
    work.before(
        "row_sums",
        CONNECTION
        + """
REPLIES = iter([
    {"made": 0}, {"raised": {"kinds": [3, None], "message": ["x"]}}, {"raised": 7},
    {"value": 3.0}, {"value": 3.0, "after": 7, "ops": 3}, {"interrupted": True},
    {"refused": "x" * 100000},
])
rpc_server.Answerer.answer = lambda self, request: codec.pack(
    {"id": request["id"], **next(REPLIES, {"made": 1})})
""",
    )
