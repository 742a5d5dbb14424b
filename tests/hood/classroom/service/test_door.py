"""The service knows a request's sender before it reads the body, and bounds the body."""

import asyncio
import re
import resource
import socket
import time
from pathlib import Path

import pytest

from hood.classroom.service import door
from hood.classroom.service.app import MAX_BODY, MAX_NOTEBOOK, make_app
from hood.classroom.service.dispatcher import Dispatcher
from hood.classroom.service.login import MAX_FORM, TOKEN
from hood.classroom.service.people import OfFile
from hood.grader.course import open_course
from tests.hood.classroom.service.fake_hub import FORM, SCRIPT, TAB
from tests.hood.classroom.service.serving import Service, asked, make_served
from tests.hood.tiny import ANSWERS, LAB
from tests.patience import PATIENCE

PREFIX = "/services/course"
PART = b"x" * 65_536
MOST = 64 << 20  # most bytes that are sent
pytestmark = pytest.mark.slow(12)


@pytest.fixture(scope="module")
def people(root):
    return OfFile(root, ["marta"])


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return make_served(tmp_path_factory.mktemp("door") / "course")


@pytest.fixture(scope="module")
def app(root, people):
    return make_app(Dispatcher(open_course(root), workers=0), people, PREFIX)


def requests(routes):
    """All methods and paths of the application, and some others."""
    for route in routes:
        inner = getattr(route, "original_router", None)
        yield from requests(inner.routes) if inner else ()
        path = getattr(route, "path", "")
        for name, value in {"lab": LAB, "job": "0" * 32, "path:path": "notebook"}.items():
            path = path.replace(f"{{{name}}}", value)
        yield from ((method, path) for method in getattr(route, "methods", None) or ())


@pytest.fixture(scope="module")
def every(app):
    found = set(requests(app.routes))
    paths = {path for _, path in found}
    assert not [path for path in paths if "{" in path], "give the test a value for this"
    assert {f"{PREFIX}/jobs", f"{PREFIX}/marking/login", f"{PREFIX}/marking/notebook"} <= paths
    other = {f"{PREFIX}{end}" for end in ("/x/notebook", "/marking/x/notebook", "/marking/login/")}
    methods = ("GET", "POST", "PUT", "DELETE", "PATCH")
    return sorted(found | {(method, path) for path in paths | other for method in methods})


def send(app, method, path, headers, declared=None):
    """Send an endless body; return the status and how much of it was read."""
    read = 0
    statuses = []

    async def receive():
        nonlocal read
        read += len(PART)
        return {"type": "http.request", "body": PART, "more_body": read < MOST}

    async def answer(message):
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    if declared:
        headers = {**headers, "content-length": str(declared)}
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
        "client": ("x", 1),
        "server": ("x", 1),
        "state": {},
    }
    asyncio.run(app(scope, receive, answer))
    return statuses[0], read


@pytest.mark.parametrize("declared", [None, 500 << 20])
def test_nothing_is_read_from_an_unknown_sender(app, people, every, declared):
    forged = f"{people.token('ana')[:-1]}x"
    heads = [{}, {"authorization": f"Bearer {forged}"}, {"cookie": f"{TOKEN}={forged}"}]
    for method, path in every:
        logs_in = (method, path) == ("POST", f"{PREFIX}/marking/login")
        for headers in ({**SCRIPT, **head} for head in heads):
            _, read = send(app, method, path, headers, declared)
            assert read <= (MAX_FORM + len(PART) if logs_in else 0), (method, path, headers)


def test_from_a_known_sender_only_the_routes_limit_is_read(app, people, every):
    refused = set()
    for who in ("ana", "marta"):
        token = people.token(who)
        both = {**SCRIPT, "authorization": f"Bearer {token}", "cookie": f"{TOKEN}={token}"}
        for method, path in every:
            hands_in = (method, path) == ("PUT", f"{PREFIX}/labs/{LAB}/notebook")
            status, read = send(app, method, path, both)
            most = MAX_NOTEBOOK if hands_in else MAX_BODY
            assert read <= most + len(PART), (method, path)
            assert status >= 400 or read <= len(PART), (method, path)
            refused |= {(method, path)} if status == 413 else set()
    assert {("POST", f"{PREFIX}/jobs"), ("PUT", f"{PREFIX}/labs/{LAB}/notebook")} <= refused


def test_a_token_is_valid_only_in_its_place(app, people):
    """Otherwise a page elsewhere could make a browser send the cookie to other routes."""
    token = people.token("marta")
    assert send(app, "GET", f"{PREFIX}/queue", {"authorization": f"Bearer {token}"})[0] == 200
    assert send(app, "GET", f"{PREFIX}/queue", {"cookie": f"{TOKEN}={token}"})[0] == 401
    page = f"{PREFIX}/marking/"
    assert send(app, "GET", page, {**TAB, "authorization": f"Bearer {token}"})[0] == 401
    assert send(app, "GET", page, {**TAB, "cookie": f"{TOKEN}={token}"})[0] == 200


def test_a_body_that_comes_too_slowly_is_not_waited_for(app, people, monkeypatch):
    monkeypatch.setattr(door, "BODY_SECONDS", 0.2)
    monkeypatch.setattr(door, "LEAST_RATE", 1e6)
    parts = iter([b"x" * 300_000, b"x" * 300_000])

    async def receive():
        await asyncio.sleep(0.1)
        if part := next(parts, None):
            return {"type": "http.request", "body": part, "more_body": True}
        return await asyncio.sleep(PATIENCE)

    async def read():
        body = door._in_time(receive)
        while True:
            await body()

    began = time.monotonic()
    with pytest.raises(door.HTTPException) as refused:
        asyncio.run(read())
    assert refused.value.status_code == 408
    assert time.monotonic() - began > 0.75  # 0.2 s, and 0.6 for the bytes that came


@pytest.mark.usefixtures("sandbox")
def test_silent_connections_block_nobody(root):
    """There are more connections than the usual soft limit of descriptors; then each is closed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, hard))
    service = Service(root, workers=1)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    silent = []
    try:
        for number in range(1100):
            connection = socket.create_connection(("127.0.0.1", service.port))
            connection.sendall([b"", b"GET /labs HTTP/1.1\r\nHost"][number % 2])
            silent.append(connection)
        began = time.monotonic()
        assert "2 of 2" in service.check("ana", ANSWERS["twice"])["card"]["text/plain"]
        for connection in (silent[0], silent[1], silent[-1]):
            connection.settimeout(PATIENCE)
            assert connection.recv(100) == b""
        assert time.monotonic() - began < door.HEAD_SECONDS + PATIENCE / 2
    finally:
        for connection in silent:
            connection.close()
        service.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("sandbox")
def test_a_client_that_keeps_sending_can_read_the_answer_and_is_disconnected(root):
    service = Service(root, workers=1)
    try:
        with socket.create_connection(("127.0.0.1", service.port)) as connection:
            connection.sendall(
                b"PUT /marking/notebook HTTP/1.1\r\nHost: x\r\nContent-Length: 500000000\r\n\r\nx"
            )
            connection.settimeout(PATIENCE)
            began = time.monotonic()
            connection.sendall(
                PART * 100
            )  # closing at once would give a broken pipe, and no answer
            said = b"".join(iter(lambda: connection.recv(1000), b""))
            assert time.monotonic() - began < door.HEAD_SECONDS + PATIENCE / 2
        assert re.match(rb"HTTP/1.1 (403|413) ", said)
        for _ in range(10):
            large = b"x" * (MAX_BODY + 1)
            assert service.ask("POST", "jobs", "ana", large)[0] == 413
        assert service.ask("POST", "jobs", "ana", asked(ANSWERS["twice"]))[0] == 202
    finally:
        service.close()


@pytest.mark.usefixtures("sandbox")
def test_many_bodies_of_strangers_take_no_memory(root):
    """Each has a mebibyte, and none ends; every second one goes to the login, which reads 4 kB."""
    service, count = Service(root, workers=1), 300
    open_ones = []
    try:
        before = rss(service.process.pid)
        for number in range(count):
            path = ("marking/login", "jobs")[number % 2]
            connection = socket.create_connection(("127.0.0.1", service.port))
            open_ones.append(connection)
            said = "".join(f"{name}: {value}\r\n" for name, value in FORM.items())
            head = f"POST /{path} HTTP/1.1\r\nHost: x\r\n{said}Content-Length: 1048577\r\n\r\n"
            connection.sendall(head.encode())
            connection.settimeout(PATIENCE)
            connection.sendall(PART * 16)
        assert service.ask("POST", "jobs", "ana", asked(ANSWERS["twice"]))[0] == 202
        grown = rss(service.process.pid) - before
        assert grown < count * (256 << 10)  # a quarter of the sent bytes
    finally:
        for connection in open_ones:
            connection.close()
        service.close()


def rss(pid):
    """The memory of a process, in bytes."""
    pages = Path(f"/proc/{pid}/statm").read_text().split()[1]
    return int(pages) * resource.getpagesize()
