"""The same records in a PostgreSQL server that this module starts and stops."""

import contextlib
import io
import os
import pwd
import shutil
import subprocess
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nbformat
import pytest
from rich.console import Console
from sqlalchemy import create_engine, event, text
from sqlalchemy.engine import Engine
from sqlalchemy.exc import OperationalError

from hood import UserError
from hood.classroom.recording import command, writer
from hood.grader.batch.intake import read_lab
from hood.grader.submission.names import nfc
from tests.hood.classroom.recording.running import count, rows, run
from tests.hood.classroom.recording.small import HW, answered, enter, hand_in, make_small
from tests.patience import eventually

pytestmark = pytest.mark.slow(15)
FOUND = shutil.which("postgres", path=os.pathsep.join(["/usr/local/bin", os.environ["PATH"]]))


@pytest.fixture(scope="module")
def server():
    """Start a server and return its address.

    As root it is run by `nobody`, since it refuses root.
    """
    pytest.importorskip("psycopg", reason="the extra `postgres` is not installed")
    if FOUND is None:
        pytest.skip("there is no PostgreSQL server on this machine")
    user = pwd.getpwnam("nobody") if os.geteuid() == 0 else pwd.getpwuid(os.geteuid())
    as_user = {"user": user.pw_uid, "group": user.pw_gid} if os.geteuid() == 0 else {}
    folder = Path(tempfile.mkdtemp(prefix="postgresql-", dir="/tmp"))
    os.chown(folder, user.pw_uid, user.pw_gid)
    initdb = Path(FOUND).with_name("initdb")
    quiet = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "cwd": folder, **as_user}
    try:
        words = [initdb, "-D", folder / "data", "-U", "grader", "-A", "trust", "-N"]
        made = subprocess.run(words, **quiet)
        if made.returncode:
            pytest.skip(f"initdb failed: {made.stdout.decode()[-300:]}")
        words = [FOUND, "-D", folder / "data", "-k", folder, "-c", "listen_addresses=", "-F"]
        process = subprocess.Popen(words, **(quiet | {"stdout": subprocess.DEVNULL}))
        try:
            there = folder / ".s.PGSQL.5432"
            eventually(lambda: there.exists() or process.poll() is not None, "the server's start")
            assert process.poll() is None, "the server ended at once"
            yield f"postgresql+psycopg://grader@/postgres?host={folder}"
        finally:
            process.terminate()
            process.wait()
    finally:
        shutil.rmtree(folder)


def on_server(course, server):
    """Make the course with its gradebook in PostgreSQL."""
    with (course.root / "nbgrader_config.py").open("a") as config:
        config.write(f"c.CourseDirectory.db_url = {server!r}\n")
    course.directory.db_url = server
    enter(course)
    return course


HOSTILE = [
    "'; DROP TABLE grade; --",
    '"; DELETE FROM student',
    "%s %(id)s :id $1 {0}",
    "back\\slash\\",
    "new\nline\ttab\x1b[31m",
    "\U0001f600 \u202e e\u0301",
    "NULL",
    "[red]",
]


def test_names_that_are_sql_are_names_and_one_too_long_is_one_learners_failure(
    server, tmp_path, here, monkeypatch
):
    """Such names are not valid ids; the writer does not rely on that."""
    monkeypatch.setattr(command, "id_problem", lambda name: "")
    course = on_server(make_small(tmp_path / "course"), server)
    long = "x" * 200  # nbgrader's column has 128 characters; SQLite does not enforce that
    for name in [*HOSTILE, long, "zoe"]:
        text_of = nbformat.writes(answered("score 1", why="nul \x00, half of a character: HALF"))
        hand_in(course, name, text_of.replace("HALF", "\\ud800").encode())
    status, said = run(course)
    found = rows(course.root, HW, url=server)
    assert {name: found[nfc(name)][f"{HW}/test"][0] for name in [*HOSTILE, "zoe"]} == dict.fromkeys(
        [*HOSTILE, "zoe"], 1.0
    )
    assert status == 1
    assert count(said, "without a verdict") == 1
    assert long not in found
    assert long[:40] in said


def test_a_locked_row_is_waited_for_and_then_reported(server, tmp_path, here, monkeypatch):
    course = on_server(make_small(tmp_path / "course"), server)
    hand_in(course, "ann", "score 1")
    assert run(course)[0] == 0
    hand_in(course, "ann", "score 2")
    monkeypatch.setattr(writer, "PATIENCE", 1.0)
    monkeypatch.setattr(writer.Writer.__init__, "__defaults__", (1.0,))
    engine = create_engine(server)
    with engine.begin() as other:
        other.execute(text("SELECT * FROM grade FOR UPDATE"))
        with pytest.raises(UserError, match="another program has kept it locked"):
            run(course)
    engine.dispose()
    assert run(course)[0] == 0
    assert rows(course.root, HW, url=server)["ann"][f"{HW}/test"][0] == 2.0


def test_a_deadlock_costs_nothing(server, tmp_path, here):
    """PostgreSQL ends one of two transactions in a deadlock; the writer tries again."""
    course = on_server(make_small(tmp_path / "course"), server)
    hand_in(course, "deb", "score 1")
    failed = []

    def refuse_once(connection, cursor, statement, *_):
        if statement.startswith("INSERT INTO open_the_hood_graded") and not failed:
            failed.append(statement)
            cursor.execute("DO $$ BEGIN RAISE SQLSTATE '40P01'; END $$")

    event.listen(Engine, "before_cursor_execute", refuse_once)
    try:
        assert run(course)[0] == 0
    finally:
        event.remove(Engine, "before_cursor_execute", refuse_once)
    assert failed
    assert rows(course.root, HW, url=server)["deb"][f"{HW}/test"][0] == 1.0


def test_postgresql_holds_the_same_as_sqlite(server, tmp_path, here):
    found = {}
    for url in ("", server):
        course = make_small(tmp_path / (url[:8] or "sqlite"))
        if url:
            on_server(course, url)
        for number, answer in enumerate(("score 1", "score 2", "raise", b"")):
            hand_in(course, f"s{number}", answer)
        assert run(course)[0] == 1
        hand_in(course, "s0", "score 0.5", why="so")
        assert count(run(course)[1], "recorded before") == 2
        found[url] = rows(course.root, HW, url=url)
    assert {name: found[server][name] for name in found[""]} == found[""]
    assert found[server]["s0"][f"{HW}/test"][0] == 0.5


def test_two_graders_can_start_with_an_empty_gradebook_together(
    server, tmp_path, here, monkeypatch
):
    engine = create_engine(server, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text("CREATE DATABASE empty"))
    engine.dispose()
    url = server.replace("/postgres?", "/empty?")
    both, opened = threading.Barrier(2), writer.Gradebook

    def open_beside_the_other(*given):
        with contextlib.suppress(threading.BrokenBarrierError):
            both.wait(3)  # these start together, unless one has to wait for the other
        return opened(*given)

    monkeypatch.setattr(writer, "Gradebook", open_beside_the_other)
    courses = [make_small(tmp_path / student) for student in ("ann", "bob")]
    for course in courses:
        with (course.root / "nbgrader_config.py").open("a") as config:
            config.write(f"c.CourseDirectory.db_url = {url!r}\n")
            config.write("c.CourseDirectory.course_id = 'hood'\n")
        course.directory.db_url, course.directory.course_id = url, "hood"

    def begin(course):
        with writer.Writer(course) as one:
            lab = read_lab(course, HW)
            command._enter(course, one, lab, Console(file=io.StringIO()))
            return one.knows(lab)

    with ThreadPoolExecutor(2) as threads:
        assert list(threads.map(begin, courses)) == [True, True]
    for course in courses:
        hand_in(course, course.root.name, "score 1")
        assert run(course)[0] == 0
    assert set(rows(courses[0].root, HW, url=url)) == {"ann", "bob"}


@pytest.mark.parametrize(
    ("student", "when"), [("eve", "FOR UPDATE"), ("fay", "UPDATE grade SET auto_score")]
)
def test_a_mark_given_by_hand_while_a_batch_records_stays(server, tmp_path, here, student, when):
    """A mark before the batch reads the grade is flagged. A later mark waits for the batch."""
    course = on_server(make_small(tmp_path / "course"), server)
    hand_in(course, student, "score 1")
    assert run(course)[0] == 0
    hand_in(course, student, "score 2")
    other = create_engine(server)
    by_hand = text(
        "UPDATE grade SET manual_score = 0.25 FROM submitted_notebook n "
        "JOIN submitted_assignment a ON a.id = n.assignment_id "
        "WHERE grade.notebook_id = n.id AND a.student_id = :student"
    )
    given = []

    def give(connection, cursor, statement, *_):
        if when in statement and not given:
            given.append(statement)
            with contextlib.suppress(OperationalError), other.begin() as hand:
                hand.execute(text("SET LOCAL lock_timeout = 300"))
                hand.execute(by_hand, {"student": student})
                given.append("at once")

    event.listen(Engine, "before_cursor_execute", give)
    try:
        assert run(course)[0] == 0
    finally:
        event.remove(Engine, "before_cursor_execute", give)
    flagged = when == "FOR UPDATE"
    assert len(given) == 1 + flagged
    with other.begin() as hand:
        hand.execute(by_hand, {"student": student})
    other.dispose()
    assert rows(course.root, HW, url=server)[student][f"{HW}/test"] == (2.0, 0.25, None, flagged)
