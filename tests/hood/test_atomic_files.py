"""A file is replaced as a whole, even with other writers, and a failure says why."""

import errno
import os
import resource
import signal
import sqlite3
import stat
import subprocess
import sys
from functools import partial
from pathlib import Path

import nbformat.v4
import pytest
from nbgrader.api import Gradebook
from sqlalchemy.exc import OperationalError

from hood import UserError, atomic_files
from hood.__main__ import main
from hood.atomic_files import read_once, replacing, secret, why_not_written, write_whole
from hood.classroom.gradebook import pseudonyms
from hood.classroom.gradebook.run_lock import lock_grades
from hood.classroom.recording.writer import Writer
from hood.classroom.service import people
from hood.grader.course import open_course
from hood.learner import copies, service
from tests.patience import PATIENCE

# Each file that contains a secret, and the function that reads it.
SECRETS = {
    people.KEY_FILE: people.service_key,
    pseudonyms.KEY_FILE: lambda at: pseudonyms.pseudonyms(at).key,
}
ASK = """
import os, sys
from pathlib import Path
from hood.classroom.gradebook.pseudonyms import pseudonyms
from hood.classroom.service.people import service_key
exec(sys.argv[1])
root = Path(sys.argv[2])
print(service_key(root).hex(), pseudonyms(root).key.hex())
"""
DIES_AT = "os.{name} = lambda *_: os.kill(os.getpid(), 9)"


def test_two_writers_of_one_file_never_mix(tmp_path, monkeypatch):
    path, replace = tmp_path / "file", atomic_files.os.replace

    def second_comes_first(source, target):
        monkeypatch.setattr(atomic_files.os, "replace", replace)
        assert write_whole(path, b"second")
        assert path.read_bytes() == b"second"
        replace(source, target)

    monkeypatch.setattr(atomic_files.os, "replace", second_comes_first)
    assert write_whole(path, b"first")
    assert path.read_bytes() == b"first"
    assert list(tmp_path.iterdir()) == [path]
    assert not write_whole(path, b"first")


def test_a_name_may_be_as_long_as_the_file_system_allows(tmp_path):
    path = tmp_path / ("x" * 251 + ".csv")
    assert write_whole(path, b"1")
    assert list(tmp_path.iterdir()) == [path]


def test_a_failed_write_leaves_no_file(tmp_path, monkeypatch):
    def refuses(source, target):
        raise OSError("no space left")

    monkeypatch.setattr(atomic_files.os, "replace", refuses)
    with pytest.raises(OSError, match="no space left"):
        write_whole(tmp_path / "file", b"x")
    assert list(tmp_path.iterdir()) == []


def asks(folder, first="", **more):
    """Start a process that asks for all secrets of a folder, after running a line."""
    words = [sys.executable, "-c", ASK, first, str(folder)]
    return subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more
    )


def kept(folder):
    """Return the secrets in a folder, by name."""
    return {name: (folder / name).read_bytes() for name in SECRETS if (folder / name).exists()}


@pytest.mark.parametrize("name", SECRETS)
def test_a_secret_is_made_once_and_readable_by_its_owner_alone(name, tmp_path):
    before = os.umask(0)  # a process whose new files are readable by others
    try:
        first = SECRETS[name](tmp_path)
    finally:
        os.umask(before)
    assert SECRETS[name](tmp_path) == first
    assert len(set(first)) > 8
    assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600
    assert [one.name for one in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("size", [0, 1, 8])
def test_a_full_disk_leaves_no_part_of_a_secret(size, tmp_path):
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    asked = asks(tmp_path, preexec_fn=limit)
    said = asked.communicate(timeout=PATIENCE)[1]
    assert asked.returncode == 1
    assert f"OSError: [Errno {errno.EFBIG}] File too large: '{tmp_path}/{people.KEY_FILE}'" in said
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["open", "fdopen", "fsync", "link"])
def test_a_kill_leaves_no_part_of_a_secret(name, tmp_path):
    asked = asks(tmp_path, DIES_AT.format(name=name))
    asked.communicate(timeout=PATIENCE)
    assert asked.returncode == -signal.SIGKILL
    assert kept(tmp_path) == {}
    again = asks(tmp_path)
    of_service, of_pseudonyms = again.communicate(timeout=PATIENCE)[0].split()
    assert kept(tmp_path) == {
        people.KEY_FILE: bytes.fromhex(of_service),
        pseudonyms.KEY_FILE: of_pseudonyms.encode(),
    }


def test_processes_that_start_together_have_the_same_secrets(tmp_path):
    asked = [asks(tmp_path) for _ in range(4)]
    assert len({one.communicate(timeout=PATIENCE)[0] for one in asked}) == 1
    assert sorted(one.name for one in tmp_path.iterdir()) == sorted(SECRETS)


def test_the_first_of_two_new_secrets_holds(tmp_path, monkeypatch):
    path, link = tmp_path / "key", os.link

    def other_comes_first(source, target):
        monkeypatch.setattr(os, "link", link)
        assert secret(path, b"first", should="a key", lost="") == b"first"
        link(source, target)

    monkeypatch.setattr(os, "link", other_comes_first)
    assert secret(path, b"later", should="a key", lost="") == b"first"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("name", SECRETS)
@pytest.mark.parametrize(
    "content", [b"", b"\0", b"ab12", b"x" * 31, b"x" * 33, b"x" * 64, b"\xff" * 64]
)
def test_a_file_with_an_incomplete_secret_is_refused_and_stays(name, content, tmp_path):
    path = tmp_path / name
    path.write_bytes(content)
    path.chmod(0o600)
    with pytest.raises(UserError) as refused:
        SECRETS[name](tmp_path)
    said = str(refused.value)
    assert said.startswith(f"{path} should contain the ")
    assert f"({len(content)} bytes): restore the file from a backup, or remove it" in said
    assert path.read_bytes() == content


def test_a_fetched_notebook_is_whole_or_absent(tmp_path, monkeypatch, capsys):
    """A partial notebook would count as a learner's work."""
    path = tmp_path / "work" / "01_x" / "01_x.ipynb"
    monkeypatch.setattr(service, "ROOT", tmp_path)
    monkeypatch.setattr(service, "_ask", lambda *_: b"x" * 1000)

    def full(fresh, data):
        with fresh.open("wb") as file:
            file.write(data[:10])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as disk:
        disk.setattr(Path, "write_bytes", full)
        service.fetch("01_x")
    assert f"{path} can't be written: No space left on device." in capsys.readouterr().out
    assert list(path.parent.iterdir()) == []
    service.fetch("01_x")
    assert path.read_bytes() == b"x" * 1000


@pytest.fixture
def readonly(tmp_path):
    """A course with a gradebook and a released lab, which this process may only read."""
    if os.geteuid() == 0 and not all(at.stat().st_mode & 0o001 for at in Path(sys.prefix).parents):
        pytest.skip("not run: its packages lie in a folder that only root may enter")
    course = tmp_path / "course"
    for folder in ("release/01_x", "source/01_x", "autograded"):
        (course / folder).mkdir(parents=True)
    (course / "release/01_x/01_x.ipynb").write_text(nbformat.writes(nbformat.v4.new_notebook()))
    with Gradebook(f"sqlite:///{course}/gradebook.db"):
        pass
    for path in [course, *course.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    above = [folder for folder in tmp_path.parents if folder.stat().st_uid == os.geteuid()]
    modes = {folder: folder.stat().st_mode for folder in (tmp_path, *above)}
    for folder, mode in modes.items():
        folder.chmod(mode | 0o755)
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    yield course
    if root:
        os.seteuid(0)
    for folder, mode in modes.items():
        folder.chmod(mode)
    course.chmod(0o755)


def command(monkeypatch, capsys, run):
    """Run a command's function through the entry point; return its status and what it said."""
    monkeypatch.setattr("hood.learner.copies.run", run)
    return main(["work"]), capsys.readouterr().err


def in_place_of(run, course, args, root):
    return run(args, course)


def raising(error, args, root):
    raise error


def test_a_read_only_course_gives_a_sentence(readonly, monkeypatch, capsys):
    status, said = command(monkeypatch, capsys, partial(in_place_of, copies.run, readonly))
    assert status == 2
    assert f"hood work: {readonly}/work can't be used: " in said
    assert f"has no right to use it, and {readonly} belongs to " in said
    assert said.count("\n") == 1
    course = open_course(readonly)
    with lock_grades(course), pytest.raises(UserError) as refused, Writer(course):
        pass
    assert f"{readonly}/gradebook.db can't be used: " in str(refused.value)
    assert "Recorded grades are kept" in str(refused.value)


@pytest.mark.parametrize(
    ("number", "why"),
    [
        (errno.EROFS, "its file system is read-only"),
        (errno.ENOSPC, "its disk is full"),
        (errno.EDQUOT, "is used up"),
    ],
)
def test_an_error_of_the_disk_is_reported_with_the_files_name(
    number, why, tmp_path, monkeypatch, capsys
):
    path = tmp_path / "reports" / "index.html"

    def run(args, root):
        with replacing(path) as fresh, fresh.open("w"):
            raise OSError(number, os.strerror(number))  # like a write, whose error names no file

    status, said = command(monkeypatch, capsys, run)
    assert status == 2
    assert f"{path} can't be used: " in said
    assert why in said
    assert list(path.parent.iterdir()) == []


def test_a_full_database_is_reported_and_no_other_error_is_hidden(tmp_path, monkeypatch, capsys):
    full = sqlite3.OperationalError("database or disk is full")
    full.sqlite_errorcode = sqlite3.SQLITE_FULL
    said = why_not_written(OperationalError("INSERT", {}, full), tmp_path / "gradebook.db")
    assert said.startswith(f"{tmp_path}/gradebook.db can't be used: its disk is full")
    said = why_not_written(PermissionError(errno.EACCES, "no", "/submitted/a\x1b[2J\udcff/b"))
    assert said.startswith("/submitted/a?[2J?/b can't be used: ")
    for error in (FileNotFoundError(errno.ENOENT, "gone", "x"), ZeroDivisionError()):
        with pytest.raises(type(error)):
            command(
                monkeypatch, capsys, lambda args, root, error=error: (_ for _ in ()).throw(error)
            )


def test_a_file_is_read_again_only_after_it_was_replaced(tmp_path):
    """Otherwise forty simultaneous lists of labs hash every notebook of a learner forty times."""
    path, read = tmp_path / "file", []

    @read_once
    def size(path):
        read.append(path)
        return len(path.read_bytes())

    write_whole(path, b"one")
    assert [size(path), size(path), len(read)] == [3, 3, 1]
    write_whole(path, b"two")  # the same length, and as fast as the machine can
    assert [size(path), size(path), len(read)] == [3, 3, 2]
    path.unlink()
    with pytest.raises(FileNotFoundError):
        size(path)
