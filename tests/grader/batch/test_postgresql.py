"""The same records in a real PostgreSQL server, made for this test and gone after it."""

import os
import pwd
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from tests.grader.batch.running import rows
from tests.grader.batch.small import HW, enter, hand_in, make_small
from tests.grader.batch.test_command import count, run
from tests.patience import eventually

pytestmark = pytest.mark.slow(15)
FOUND = shutil.which("postgres", path=os.pathsep.join(["/usr/local/bin", os.environ["PATH"]]))


@pytest.fixture(scope="module")
def server():
    """Its address. It refuses to run as root, and then runs as `nobody`."""
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


def test_postgresql_holds_the_same_as_sqlite(server, tmp_path, here):
    found = {}
    for url in ("", server):
        course = make_small(tmp_path / (url[:8] or "sqlite"))
        if url:
            with (course.root / "nbgrader_config.py").open("a") as config:
                config.write(f"c.CourseDirectory.db_url = {url!r}\n")
            course.directory.db_url = url
            enter(course)
        for number, answer in enumerate(("score 1", "score 2", "raise", b"")):
            hand_in(course, f"s{number}", answer)
        assert run(course)[0] == 1
        hand_in(course, "s0", "score 0.5", why="so")
        text = run(course)[1]
        assert count(text, "recorded before") == 2
        found[url] = rows(course.root, HW, url=url)
    assert found[server] == found[""]
    assert found[server]["s0"][f"{HW}/test"][0] == 0.5
