"""The whole service over HTTP: verdicts, submissions and refusals."""

import hashlib
import json
import socket
import sqlite3
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import nbformat
import pytest

from hood.classroom.service.app import MAX_BODY
from hood.classroom.service.door import BODY_SECONDS
from hood.classroom.service.queue import Queue
from hood.learner import service as client
from hood.verdict import VERDICT_MIME
from tests.hood.classroom.service.serving import ENDLESS, Service, asked, make_served
from tests.hood.tiny import ANSWERS, LAB, nbgrader, released, solved, source_notebook
from tests.patience import PATIENCE, eventually

pytestmark = [pytest.mark.slow(30), pytest.mark.usefixtures("sandbox")]
RIGHT, SQUARED = ANSWERS["twice"], "def twice(x):\n    return x * x"


@pytest.fixture(scope="module")
def started(tmp_path_factory):
    found = Service(make_served(tmp_path_factory.mktemp("service") / "course"))
    yield found
    found.close()


@pytest.fixture
def service(started):
    """The service of these tests, restarted if a test has ended it."""
    if started.process.poll() is not None:
        started.start()
    return started


def test_a_verdict_has_the_same_card_as_in_a_notebook(service):
    said = service.check("ana", RIGHT)
    assert said["state"] == "done"
    assert said["card"]["text/plain"].startswith("twice: 2 of 2 points")
    assert "<b>2 of 2 points</b>" in said["card"]["text/html"]
    assert said["card"][VERDICT_MIME] == {"status": "right", "earned": 2.0}
    said = service.check("marta", SQUARED)
    assert "You multiplied the tensor by itself." in said["card"]["text/plain"]
    assert "for example" in said["card"]["text/plain"]
    # only the service's workers run code
    assert "libtorch" not in Path(f"/proc/{service.process.pid}/maps").read_text()


def test_a_missing_answer_is_requested(service):
    body = {"exercise": "twice", "cells": [{"id": "setup", "source": "import torch"}]}
    status, said, _ = service.ask("POST", "jobs", "ana", body)
    assert (status, said["detail"]) == (
        422,
        "first run the cell with your answer, then ask for a verdict",
    )
    status, said, _ = service.ask("POST", "jobs", "ana", asked(RIGHT, "thrice"))
    assert status == 404


def test_a_too_long_answer_is_refused_and_not_called_unattempted(service):
    long = [{"id": str(k), "source": "#" * 100_000} for k in range(2)]
    body = asked(RIGHT)
    status, said, _ = service.ask("POST", "jobs", "ana", body | {"cells": long + body["cells"]})
    assert (status, "the limit is 150,000" in said["detail"]) == (422, True)


def test_a_check_belongs_to_its_sender_whatever_the_body_says(service):
    body = asked(RIGHT, learner="bo", user="bo", name="bo")
    _, said, _ = service.ask("POST", "jobs", "ana", body)
    assert service.ask("GET", f"jobs/{said['id']}", "bo")[0] == 404
    assert service.ask("GET", f"jobs/{said['id']}", "ana")[0] == 200
    assert said["id"] not in {one["id"] for one in service.ask("GET", "jobs", "bo")[1]}
    service.end_of("ana", said["id"])


@pytest.mark.parametrize(
    "path", ["jobs", "labs", "queue", "grading", "requests", f"labs/{LAB}/notebook"]
)
def test_without_a_valid_token_there_is_no_answer(service, path):
    assert service.ask("GET", path)[0] == 401
    forged = {"Authorization": f"Bearer {service.token('ana')[:-1]}0"}
    assert service.ask("GET", path, headers=forged)[0] in (403, 200)
    assert service.ask("GET", path, headers={"Authorization": "Bearer YW5h.x"})[0] == 403
    assert service.ask("GET", path, headers={"Authorization": "Basic YW5hOng="})[0] == 401


def test_a_token_may_be_pasted_with_its_name(service, monkeypatch, capsys):
    monkeypatch.setenv(client.ADDRESS, f"http://127.0.0.1:{service.port}")
    for name in ("ana", "Łukasz"):
        monkeypatch.setenv(client.TOKENS[0], f"{name},{service.token(name)}\n")
        client.requests()
        assert capsys.readouterr().out.startswith("None of your requests for a regrade")
    for token, said in [
        ("x.y", "does not belong to this course"),
        ("“x.y”", "could not be reached"),
    ]:
        monkeypatch.setenv(client.TOKENS[0], token)
        client.requests()
        assert said in capsys.readouterr().out


def test_instructors_operations_are_refused_to_learners(service):
    posts, gets = [f"labs/{LAB}/grading"], ["queue", "grading", f"labs/{LAB}/requests"]
    asks = [("POST", path) for path in posts] + [("GET", path) for path in gets]
    assert {service.ask(*ask, "ana")[0] for ask in asks} == {403}
    status, said, _ = service.ask("GET", "queue", "marta")
    assert (status, said["workers"]) == (200, 2)


def test_too_large_and_malformed_bodies_are_refused(service):
    large = asked("x" * (MAX_BODY + 1))
    assert service.ask("POST", "jobs", "ana", large)[0] == 413
    many = {"exercise": "twice", "cells": [{"id": str(k), "source": ""} for k in range(501)]}
    deep = b"[" * 100_000
    for body in (many, deep, b"\xff", {"exercise": 3}, {"exercise": "twice", "cells": [[]]}, []):
        assert service.ask("POST", "jobs", "ana", body)[0] in (400, 422), body
    surrogate = b'{"exercise": "twice", "cells": [{"id": "twice_solution", "source": "\\ud800"}]}'
    assert service.ask("POST", "jobs", "ana", surrogate)[0] in (202, 400, 422)
    assert service.check("ana", RIGHT)["state"] == "done"


def test_hostile_answers_get_verdicts_and_missing_bodies_delay_nobody(service):
    hostile = [
        ENDLESS,
        "import os; os._exit(1)",
        "import time\ndef twice(x): time.sleep(3600)",
        "print('<script>alert(1)</script>' * 10**6)",
        "raise SystemExit",
    ]
    began, slow = time.monotonic(), []
    for _ in range(40):
        connection = socket.create_connection(("127.0.0.1", service.port))
        head = (
            f"POST /jobs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {service.token('slow')}\r\n"
        )
        connection.sendall(f"{head}Content-Length: 1000\r\n\r\n{{".encode())
        slow.append(connection)
    ids = []
    for number, answer in enumerate(hostile):
        status, said, _ = service.ask("POST", "jobs", f"mallory{number}", asked(answer))
        assert status == 202
        ids.append((f"mallory{number}", said["id"]))
    assert "2 of 2" in service.check("cy", RIGHT)["card"]["text/plain"]
    for who, check in ids:
        said = service.end_of(who, check)
        assert said["state"] == "done"
        assert "0 of 2" in said["card"]["text/plain"]
        assert "<script>" not in said["card"]["text/html"]
    slow[0].settimeout(PATIENCE)
    assert b" 408 " in slow[0].recv(1000)
    assert time.monotonic() - began >= BODY_SECONDS / 2
    for connection in slow:
        connection.close()


def test_a_newer_check_replaces_a_waiting_one_and_a_flood_is_limited(service):
    ids = [service.ask("POST", "jobs", "flo", asked(RIGHT))[1]["id"] for _ in range(20)]
    states = [service.end_of("flo", check)["state"] for check in ids]
    assert states[-1] == "done"
    assert states.count("replaced") >= 10
    assert set(states) == {"done", "replaced"}


def notebook(**answers):
    return nbformat.writes(solved(released(source_notebook()), **answers)).encode()


HOLDS = """
import fcntl, os, time
held = os.open("autograded", os.O_RDONLY)
fcntl.flock(held, fcntl.LOCK_EX)
print(flush=True)
time.sleep(3600)
"""


def graded(service):
    """Start grading of the lab, and return its result."""
    status, grading, _ = service.ask("POST", f"labs/{LAB}/grading", "marta")
    assert (status, grading["status"]) == (202, None)

    def ended():
        said = service.ask("GET", "grading", "marta")[1]
        return said if said["status"] is not None else None

    return eventually(ended, "the grading's end", step=0.2)


def test_a_submission_is_stored_before_its_receipt_and_instructors_can_grade_it(service):
    asking = solved(released(source_notebook()))
    place = [one.id for one in asking.cells].index("twice_solution") + 1
    why = "<b>mine</b> is right"
    asking.cells.insert(place, nbformat.v4.new_markdown_cell(f"REGRADE: {why}"))
    first, second = notebook(twice=SQUARED), nbformat.writes(asking).encode()
    for data in (first, second):
        status, said, _ = service.ask("PUT", f"labs/{LAB}/notebook", "ana", data)
        assert (status, said["sha256"]) == (201, hashlib.sha256(data).hexdigest())
    folder = service.root / "submitted" / "ana" / LAB
    assert (folder / f"{LAB}.ipynb").read_bytes() == second
    stamp = datetime.fromisoformat(said["received"]).strftime("%Y-%m-%d %H:%M:%S.%f UTC")
    assert (folder / "timestamp.txt").read_text() == stamp
    kept = sorted((service.root / "received" / LAB / "ana").iterdir())
    assert [path.read_bytes() for path in kept] == [first, second]

    [lab] = service.ask("GET", "labs", "ana")[1]
    assert (lab["received"]["sha256"], lab["points"]) == (said["sha256"], None)
    assert service.ask("GET", f"labs/{LAB}/feedback", "ana")[0] == 404
    (service.root / "autograded").mkdir()
    command = [sys.executable, "-S", "-c", HOLDS]
    other = subprocess.Popen(command, cwd=service.root, stdout=subprocess.PIPE)
    other.stdout.readline()
    grading = graded(service)
    assert (grading["status"], "is running" in grading["said"]) == (2, True)
    other.kill()  # and its lock delays nobody
    other.wait()
    grading = graded(service)
    assert grading["status"] == 0, grading["said"]
    own = {"lab": LAB, "exercise": "twice", "why": why, "answered": False}
    assert service.ask("GET", "requests", "ana")[1] == [own]
    assert service.ask("GET", "requests", "bo")[1] == []
    now = {"earlier": "", "now": "2 of 2 points", "earlier_time": False}
    shown = own | now | {"learner": "ana", "name": "ana"}
    assert service.ask("GET", f"labs/{LAB}/requests", "marta")[1] == [shown]
    assert service.ask("GET", "labs", "ana")[1][0]["points"] is None  # no feedback yet
    done = nbgrader(service.root, "generate_feedback", LAB, "--force")
    assert done.returncode == 0, done.stderr
    lab = service.ask("GET", "labs", "ana")[1][0]
    # the last exercise is marked by hand
    assert (lab["points"], lab["most"], lab["final"]) == (7.0, 10.0, False)
    status, page, headers = service.ask("GET", f"labs/{LAB}/feedback", "ana")
    assert status == 200
    assert b"<html" in page
    assert headers["content-security-policy"].startswith("sandbox;")
    assert service.ask("GET", f"labs/{LAB}/feedback", "bo")[0] == 404


def test_an_unknown_lab_has_no_operations(service):
    for name in ("98_other", "..", "%2e%2e%2fsource", f"{LAB}%00"):
        assert service.ask("PUT", f"labs/{name}/notebook", "ana", b"{}")[0] in (404, 405)
        assert service.ask("GET", f"labs/{name}/notebook", "ana")[0] in (404, 405)
    said = service.ask("GET", "labs/98/notebook", "ana")[1]["detail"]
    assert said == f"no released lab is called '98'; released: {LAB}"
    status, data, _ = service.ask("GET", f"labs/{LAB}/notebook", "ana")
    assert status == 200
    assert b"BEGIN HIDDEN" not in data
    assert json.loads(data)["nbformat"] == 4


@pytest.mark.parametrize("name", ["../bo", "a/b", ".hidden", "=1+1", "<b>x</b>"])
def test_an_invalid_id_cannot_hand_in(service, name):
    assert service.ask("PUT", f"labs/{LAB}/notebook", name, notebook())[0] == 403
    assert not (service.root / "submitted" / name).exists()


RULES = """
labs:
  99_tiny: {due: 2020-01-01, feedback: {misconceptions: never, examples: never, attempts: 2}}
"""


def test_the_class_s_rules_hold_at_once(service):
    path = service.root / "course.yml"
    path.write_text(RULES)
    try:
        said = service.check("dora", SQUARED)["card"]["text/plain"]
        assert "multiplied" not in said
        assert "for example" not in said
        service.check("dora", RIGHT)
        status, said, _ = service.ask("POST", "jobs", "dora", asked(RIGHT))
        assert status == 403
        assert "2 verdicts on twice today" in said["detail"]
        assert service.ask("PUT", f"labs/{LAB}/notebook", "dora", notebook())[1]["late"] is True
        path.write_text(RULES.replace("due: 2020-01-01", "release: 2999-01-01"))
        assert service.ask("POST", "jobs", "dora", asked(RIGHT))[0] == 404
        assert service.ask("GET", "labs", "dora")[1] == []
        assert service.ask("GET", "labs", "marta")[1] != []
    finally:
        path.unlink()


DATES = """
course: {time_zone: Pacific/Auckland}
labs:
  99_tiny: {due: 2020-04-04, grace: 30 min}
extensions:
  - {who: fay, lab: 99_tiny, due: 2020-04-05 02:30}
"""


def test_a_learner_sees_the_classs_times_and_hands_in_a_lab_by_its_name(
    service, tmp_path, monkeypatch, capsys
):
    shown = []
    monkeypatch.setenv(client.ADDRESS, f"http://127.0.0.1:{service.port}")
    monkeypatch.setenv(client.TOKENS[0], service.token("fay"))
    monkeypatch.setattr(client, "ROOT", tmp_path)
    monkeypatch.setattr(client, "display", lambda text: shown.append(text.data))
    (service.root / "course.yml").write_text(DATES)
    try:
        client.submit(LAB)
        assert f"work/{LAB}/{LAB}.ipynb' is not a readable notebook" in capsys.readouterr().out
        client.fetch(LAB)
        client.labs()
        client.submit(LAB)
        monkeypatch.setenv("TZ", "America/Lima")  # the time zone of the notebook's server
        time.tzset()
        client.labs()
        said = service.ask("GET", "labs", "fay")[1][0]
    finally:
        (service.root / "course.yml").unlink()
        monkeypatch.delenv("TZ")
        time.tzset()
    came = datetime.fromisoformat(said["received"]["received"])
    auckland = came.astimezone(ZoneInfo("Pacific/Auckland"))
    assert said["due"] == "2020-04-05T02:30:00+12:00"  # the second of the repeated hour
    assert came.utcoffset() == auckland.utcoffset()
    assert abs(datetime.now(UTC) - came) < timedelta(minutes=5)
    at = f"{auckland.day} {auckland:%B %Y, %H:%M:%S}"
    place, receipt = capsys.readouterr().out.split("\n", 1)
    assert place == f"It is in work/{LAB}/{LAB}.ipynb."
    assert receipt.startswith(f"{LAB} was handed in on {at} ({came.tzname()}), which is after the")
    head = ["| lab | due | handed in | points |", "|---|---|---|---|"]
    rows = [
        f"| {LAB} | 5 April 2020, 02:30:00 | {came} |  |" for came in ("not yet", f"{at}, late")
    ]
    zone = ["", "All times are in the time zone Pacific/Auckland."]
    assert [text.split("\n") for text in shown] == [[*head, row, *zone] for row in rows]


def test_the_same_answer_from_many_learners_is_judged_for_each(service):
    said = {}

    def one(name):
        said[name] = service.check(name, RIGHT if name[-1] in "02468" else SQUARED)

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(one, [f"many{k}" for k in range(8)]))
    full = {name for name, one in said.items() if "2 of 2" in one["card"]["text/plain"]}
    assert full == {f"many{k}" for k in range(0, 8, 2)}


def accepted(service, seconds):
    """Send a long check and then notebooks; return its id and the notebooks."""
    body = asked(f"import time; time.sleep({seconds})\n{RIGHT}")
    check = service.ask("POST", "jobs", "kim", body)[1]["id"]
    sent = [notebook(twice=f"twice = {k}") for k in range(5)]
    receipts = [service.ask("PUT", f"labs/{LAB}/notebook", "kim", data)[1] for data in sent]
    assert [one["sha256"] for one in receipts] == [hashlib.sha256(one).hexdigest() for one in sent]
    return check, sent


def test_accepted_work_survives_a_kill_and_half_a_notebook_does_not(service):
    check, sent = accepted(service, 0.5)
    half = socket.create_connection(("127.0.0.1", service.port))
    head = f"PUT /labs/{LAB}/notebook HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n"
    half.sendall(f"{head}Authorization: Bearer {service.token('kim')}\r\n\r\n{{".encode())
    received, submitted = service.root / "received", service.root / "submitted"
    eventually(lambda: list(received.glob(".*.part")), "the first bytes")
    service.kill()
    half.close()
    service.start()
    kept = sorted((received / LAB / "kim").iterdir())
    assert [one.read_bytes() for one in kept] == sent
    assert (submitted / "kim" / LAB / f"{LAB}.ipynb").read_bytes() == sent[-1]
    assert "2 of 2" in service.end_of("kim", check)["card"]["text/plain"]
    with sqlite3.connect(service.root / "gradebook.db") as db:
        [[left]] = db.execute("SELECT COUNT(*) FROM service_job WHERE cells <> ''")
        teach = db.execute("SELECT DISTINCT learner FROM service_job WHERE teaches").fetchall()
    assert left == 0
    assert teach == [("marta",)]


def test_accepted_work_survives_the_end_of_the_service(service):
    check, sent = accepted(service, 3600)
    service.close()
    kept = sorted((service.root / "received" / LAB / "kim").iterdir())
    assert [one.read_bytes() for one in kept][-len(sent) :] == sent
    next_start = Queue(f"sqlite:///{service.root}/gradebook.db")
    job = next_start.take() or next_start.take(long=True)
    assert (job.id, job.cells[0][1].splitlines()[0]) == (check, "import time; time.sleep(3600)")
