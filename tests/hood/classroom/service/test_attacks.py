"""Attacks that delay other learners, fill the disk, or use another identity."""

import json
import os
import socket
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from hood.classroom.service.dispatcher import NICE
from tests.hood.classroom.service.serving import ENDLESS, Service, asked, make_served
from tests.hood.tiny import ANSWERS, LAB
from tests.patience import PATIENCE, eventually

pytestmark = [pytest.mark.slow(16), pytest.mark.usefixtures("sandbox")]
MANY = 300
RIGHT = ANSWERS["twice"]


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    root = make_served(tmp_path_factory.mktemp("attacks") / "course", seconds=3600)
    found = Service(root, workers=1)
    yield found
    found.close()


@pytest.fixture
def raw(service):
    """Open a connection, and send these bytes unchanged."""
    opened = []

    def send(text):
        connection = socket.create_connection(("127.0.0.1", service.port))
        opened.append(connection)
        connection.sendall(text.encode())
        return connection

    yield send
    for connection in opened:
        connection.close()


def head(service, who, method, path, *more):
    lines = [f"{method} /{path} HTTP/1.1", "Host: x", f"Authorization: Bearer {service.token(who)}"]
    return "\r\n".join([*lines, *more, "", ""])


def test_hundreds_of_waiting_or_incomplete_requests_delay_nobody(service, raw):
    _, said, _ = service.ask("POST", "jobs", "mallory", asked(ENDLESS))
    for _ in range(MANY):
        raw(head(service, "mallory", "GET", f"jobs/{said['id']}?wait=25"))
        raw("GET /labs HTTP/1.1\r\nHost: x\r\nAuthor")
    assert "2 of 2" in service.check("ana", RIGHT)["card"]["text/plain"]
    assert service.ask("GET", "labs", "ana")[0] == 200


def shares(pid):
    """The niceness of the sessions of a process's descendants, if Linux schedules by session."""
    found = set()
    for task in Path(f"/proc/{pid}/task").glob("*"):
        with suppress(OSError):  # it has ended
            for child in map(int, (task / "children").read_text().split()):
                own = Path(f"/proc/{child}/autogroup")
                said = own.read_text().split()[-1] if own.exists() else os.getpriority(0, child)
                found |= {int(said), *shares(child)}
    return found


def memory(pid):
    """The memory that a process uses, in bytes."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


def test_a_hostile_class_leaves_the_queue_and_its_workers_to_others(service):
    """There is one worker for short turns, and one for long ones."""
    hostile = {f"eve{k}": ENDLESS for k in range(5)} | {"eve5": "while True: pass"}
    accepted = {who: [] for who in hostile}

    def flood(rounds=1):
        for _ in range(rounds):
            for who, answer in hostile.items():
                body = asked(f"{answer}\n#{'x' * 100_000}")
                status, said, _ = service.ask("POST", "jobs", who, body)
                assert status == 202, said
                accepted[who].append(said["id"])

    flood(5)
    before = memory(service.process.pid)
    waiting = service.ask("GET", "queue", "marta")[1]["waiting"]
    assert len(hostile) - 2 <= waiting <= len(hostile)
    stopped = threading.Event()

    def goes_on():
        while not stopped.wait(0.3):
            flood()

    with ThreadPoolExecutor(2) as threads:
        floods = [threads.submit(goes_on), threads.submit(flood, 30)]
        try:
            for _ in range(2):  # as a new learner, and as one with a verdict
                assert "2 of 2" in service.check("ana", RIGHT)["card"]["text/plain"]
        finally:
            stopped.set()
        for one in floods:
            one.result(PATIENCE)
    assert memory(service.process.pid) - before < 12e6  # the requests have at least 18e6 bytes
    eventually(lambda: NICE in shares(service.process.pid), "a sandbox that gives way")
    with sqlite3.connect(service.root / "gradebook.db") as db:
        states = dict(db.execute("SELECT id, state FROM service_job"))
    for ids in accepted.values():  # none is lost, and none has ended, because that takes an hour
        assert {states[one] for one in ids[:-1]} <= {"replaced", "running", "waiting"}
        assert states[ids[-1]] in ("running", "waiting")
    assert service.ask("GET", "queue", "marta")[1]["waiting"] <= len(hostile) + 1


def test_one_learner_sends_two_notebooks_at_a_time(service, raw):
    upload = head(service, "mallory", "PUT", f"labs/{LAB}/notebook", "Content-Length: 9999")
    for _ in range(2):
        slow = raw(upload + "{")
    parts = service.root / "received"
    eventually(lambda: len(list(parts.glob(".*.part"))) == 2, "two files that arrive")
    status, said, headers = service.ask("PUT", f"labs/{LAB}/notebook", "mallory", b"{}")
    assert (status, "already being received" in said["detail"]) == (429, True)
    assert headers["retry-after"] == "5"
    assert service.ask("PUT", f"labs/{LAB}/notebook", "ana", b"{}")[0] == 201
    slow.close()
    eventually(
        lambda: service.ask("PUT", f"labs/{LAB}/notebook", "mallory", b"{}")[0] == 201, "room"
    )
    assert len(list(parts.glob(".*.part"))) == 1


@pytest.mark.parametrize(
    "name",
    [
        "..",
        "bo/../ana",
        "\x1b[31mana",
        "ana\u202e",
        "ana\nbo",
        "<img src=x>",
        "x" * 300,
        " ",
        "ana\0",
    ],
)
def test_an_invalid_learner_name_is_refused_everywhere(service, name):
    for method, path in [("GET", "labs"), ("GET", "requests"), ("PUT", f"labs/{LAB}/notebook")]:
        assert service.ask(method, path, name, b"{}" if method == "PUT" else None)[0] == 403


def test_a_name_beside_the_token_is_ignored(service):
    names = {"X-Forwarded-User": "bo", "Remote-User": "bo", "Cookie": "open-the-hood-marking=bo"}
    path = f"labs/{LAB}/notebook?learner=bo&user=bo"
    assert service.ask("PUT", path, "carla", b"{}", names)[0] == 201
    assert (service.root / "submitted" / "carla" / LAB).is_dir()
    assert not (service.root / "submitted" / "bo").exists()


def test_a_name_in_a_body_is_treated_as_data(service):
    name = "<script>alert(1)</script>\x1b[2J\u202e../../etc/passwd"
    body = {"exercise": name, "cells": [{"id": "twice_solution", "source": RIGHT}]}
    status, said, headers = service.ask("POST", "jobs", "ana", body)
    assert (status, headers["content-type"]) == (404, "application/json")
    assert "\x1b" not in json.dumps(said)
