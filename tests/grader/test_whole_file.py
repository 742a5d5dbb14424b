"""A file is replaced at once, whoever else writes it, and who can't write it hears why."""

import errno
import os
import sqlite3
import sys
from functools import partial
from pathlib import Path

import nbformat.v4
import pytest
from nbgrader.api import Gradebook
from sqlalchemy.exc import OperationalError

from grader import UserError, whole_file, work
from grader.__main__ import main
from grader.batch.command import only_one
from grader.batch.writer import Writer
from grader.course import open_course
from grader.whole_file import replacing, why_not_written, write_whole


def test_two_who_write_the_same_file_never_mix(tmp_path, monkeypatch):
    path, replace = tmp_path / "file", whole_file.os.replace

    def second_comes_first(source, target):
        monkeypatch.setattr(whole_file.os, "replace", replace)
        assert write_whole(path, b"second")
        assert path.read_bytes() == b"second"
        replace(source, target)

    monkeypatch.setattr(whole_file.os, "replace", second_comes_first)
    assert write_whole(path, b"first")
    assert path.read_bytes() == b"first"
    assert list(tmp_path.iterdir()) == [path]
    assert not write_whole(path, b"first")


def test_what_cannot_be_written_leaves_nothing(tmp_path, monkeypatch):
    def refuses(source, target):
        raise OSError("no space left")

    monkeypatch.setattr(whole_file.os, "replace", refuses)
    with pytest.raises(OSError, match="no space left"):
        write_whole(tmp_path / "file", b"x")
    assert list(tmp_path.iterdir()) == []


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
    monkeypatch.setattr("grader.work.run", run)
    return main(["work"]), capsys.readouterr().err


def test_in_a_course_that_may_not_be_written_a_sentence_says_so(readonly, monkeypatch, capsys):
    status, said = command(monkeypatch, capsys, partial(work.run, root=readonly))
    assert status == 2
    assert f"grader work: {readonly}/work can't be used: " in said
    assert f"has no right to it, and {readonly} belongs to " in said
    assert said.count("\n") == 1
    course = open_course(readonly)
    with only_one(course), pytest.raises(UserError) as refused, Writer(course):
        pass
    assert f"{readonly}/gradebook.db can't be used: " in str(refused.value)
    assert "Recorded grades are kept" in str(refused.value)


@pytest.mark.parametrize(
    ("number", "why"),
    [
        (errno.EROFS, "file system that is read-only"),
        (errno.ENOSPC, "no space left"),
        (errno.EDQUOT, "is full"),
    ],
)
def test_what_the_disk_refuses_is_said_with_the_files_name(
    number, why, tmp_path, monkeypatch, capsys
):
    path = tmp_path / "reports" / "index.html"

    def run(args):
        with replacing(path) as fresh, fresh.open("w"):
            raise OSError(number, os.strerror(number))  # as a write does, which names no file

    status, said = command(monkeypatch, capsys, run)
    assert status == 2
    assert f"{path} can't be used: " in said
    assert why in said
    assert list(path.parent.iterdir()) == []


def test_a_full_database_is_said_and_no_other_error_is_hidden(tmp_path, monkeypatch, capsys):
    full = sqlite3.OperationalError("database or disk is full")
    full.sqlite_errorcode = sqlite3.SQLITE_FULL
    said = why_not_written(OperationalError("INSERT", {}, full), tmp_path / "gradebook.db")
    assert said.startswith(f"{tmp_path}/gradebook.db can't be used: there is no space left")
    said = why_not_written(PermissionError(errno.EACCES, "no", "/submitted/a\x1b[2J\udcff/b"))
    assert said.startswith("/submitted/a?[2J?/b can't be used: ")
    for error in (FileNotFoundError(errno.ENOENT, "gone", "x"), ZeroDivisionError()):
        with pytest.raises(type(error)):
            command(monkeypatch, capsys, lambda args, error=error: (_ for _ in ()).throw(error))
