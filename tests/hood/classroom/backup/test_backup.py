"""A class's results are saved in one file and restored unchanged, even after a kill."""

import argparse
import io
import json
import shutil
import sqlite3
import stat
import tarfile
import threading
from pathlib import Path

import pytest
from nbgrader.api import Gradebook

from hood import UserError
from hood.classroom.backup import restore as restoring
from hood.classroom.backup import save
from hood.classroom.gradebook import database
from hood.classroom.recording import command
from hood.classroom.recording.writer import Writer
from hood.grader.course import RESTORING, open_course
from tests.hood.classroom.recording.running import everything, marks, rows, run
from tests.hood.classroom.recording.small import HW, Here, hand_in, make_small
from tests.hood.classroom.recording.test_regrade_time import ASKS, FIRST, LATER, counts
from tests.hood.classroom.recording.test_regrade_time import hand_in as hand_in_at

LEARNERS = {f"s{number:02}": f"score {number % 3}" for number in range(12)}
COURSE = "roster: {file: lists/class.csv, id: Username}\nlabs: {}\n"
CLASS = {
    "course.yml": COURSE,
    "lists/class.csv": "\n".join(["Username", "ann", "bob", "zoe", *LEARNERS]),
    ".pseudonyms": "k" * 44,
    ".service-key": "secret",
    "received/hw/ann/20260102T100000.ipynb": "{}",
    "feedback/ann/hw/hw.html": "<p>",
    "autograded/README.md": "of the project",
}


@pytest.fixture(autouse=True)
def here(monkeypatch):
    """Grade in this process, without workers."""
    monkeypatch.setattr(command, "_executor", lambda *_: Here())


@pytest.fixture
def course(tmp_path):
    """A course in which ann was graded, with all other files of a class."""
    course = make_small(tmp_path / "course")
    hand_in_at(course, FIRST)
    run(course)
    for name, text in CLASS.items():
        path = course.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (course.root / "received").chmod(0o700)
    (course.root / "submitted" / "bob" / HW).mkdir(parents=True)
    return course


@pytest.fixture
def elsewhere(tmp_path, course):
    """The same course on another machine, without the class."""
    root = tmp_path / "elsewhere"
    shutil.copytree(course.root / "source", root / "source")
    config = (course.root / "nbgrader_config.py").read_text()
    (root / "nbgrader_config.py").write_text(config.replace(str(course.root), str(root)))
    (root / "autograded").mkdir()
    (root / "autograded" / "README.md").write_text("of another version")
    return open_course(root)


def backup(course, *, without=False, name="term.tar.gz"):
    path = course.root.parent / name
    args = argparse.Namespace(file=path, without_gradebook=without)
    assert save.run(args, course.root) == 0
    return path


def restore(course, path=None, replace=False):
    return restoring.run(argparse.Namespace(file=path, replace=replace), course.root)


def content(root: Path):
    """Return all data of a class: each file's bytes, and the gradebook's content."""
    tops = ("autograded", "submitted", "received", "feedback", "lists", ".released")
    files = [path for top in tops for path in (root / top).rglob("*") if path.is_file()]
    files += [root / name for name in ("course.yml", ".pseudonyms")]
    found = {path.relative_to(root).as_posix(): path.read_bytes() for path in files}
    del found["autograded/README.md"]
    return found, everything(root)[0]


def test_a_class_is_restored_byte_for_byte_and_a_request_keeps_its_time(course, elsewhere, capsys):
    path = backup(course)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with tarfile.open(path) as archive:
        names = archive.getnames()
        assert {(one.uid, one.gid, one.uname) for one in archive} == {(0, 0, "")}
    assert not [name for name in names if "service-key" in name]
    assert restore(elsewhere, path) == 0
    assert content(elsewhere.root) == content(course.root)
    assert (elsewhere.root / "autograded/README.md").read_text() == "of another version"
    assert (elsewhere.root / "submitted" / "bob" / HW).is_dir()
    assert stat.S_IMODE((elsewhere.root / "received").stat().st_mode) == 0o700
    assert not [path for path in elsewhere.root.iterdir() if path.name.startswith(("rep", ".res"))]
    assert not list(course.root.glob(".backup*"))
    assert "Restored as of" in capsys.readouterr().out


def test_after_a_restore_a_request_for_a_regrade_keeps_its_old_time(course, elsewhere):
    restore(elsewhere, backup(course))
    hand_in_at(elsewhere, LATER, asks=ASKS)
    assert run(elsewhere)[0] == 0
    assert counts(elsewhere) == FIRST


def test_a_restore_replaces_only_on_request_and_deletes_nothing(course, capsys):
    path, before = backup(course), content(course.root)
    hand_in_at(course, LATER, answer="score 2")
    run(course)
    now = content(course.root)
    assert now != before
    with pytest.raises(UserError, match=r"would replace .*(?s:.)*gradebook.db, last changed"):
        restore(course, path)
    assert content(course.root) == now
    (course.root / "gradebook.db-journal").write_bytes(b"")
    assert restore(course, path, replace=True) == 0
    assert content(course.root) == before
    [aside] = course.root.glob("replaced-*")
    assert stat.S_IMODE(aside.stat().st_mode) == 0o700
    assert (aside / "gradebook.db-journal").exists()
    assert not (course.root / "gradebook.db-journal").exists()
    kept = aside / "autograded" / "ann" / HW / f"{HW}.ipynb"
    assert kept.read_bytes() == now[0][f"autograded/ann/{HW}/{HW}.ipynb"]
    assert "replaced, and the old version moved to" in capsys.readouterr().out
    assert (course.root / ".service-key").read_text() == "secret"


def test_a_killed_restore_is_finished_by_the_next_one(course, monkeypatch):
    path, before = backup(course), content(course.root)
    move, steps = restoring._move, []
    monkeypatch.setattr(restoring, "_move", lambda *names: (steps.append(names), move(*names)))
    restore(course, path, replace=True)
    assert len(steps) > 12
    for survived in range(len(steps)):
        left = iter(range(survived))

        def die(*names, left=left):
            if next(left, None) is None:
                raise KeyboardInterrupt
            move(*names)

        with monkeypatch.context() as patched:
            patched.setattr(restoring, "_move", die)
            with pytest.raises(KeyboardInterrupt):
                restore(course, path, replace=True)
        assert (course.root / RESTORING).exists()
        with pytest.raises(UserError, match="a restore was interrupted"):
            run(course)
        assert restore(course) == 0
        assert content(course.root) == before
        assert not (course.root / RESTORING).exists()
        for aside in course.root.glob("replaced-*"):
            shutil.rmtree(aside)


@pytest.mark.parametrize("damage", ["cut", "changed", "foreign", "link", "above", "empty"])
def test_a_damaged_archive_changes_nothing(course, damage, tmp_path):
    path, before = backup(course), content(course.root)
    data = path.read_bytes()
    if damage in ("cut", "empty"):
        path.write_bytes(data[: len(data) // 2] if damage == "cut" else b"")
    elif damage == "changed":
        path.write_bytes(data[:2000] + bytes(50) + data[2050:])
    elif damage == "foreign":
        with tarfile.open(path, "w:gz") as archive:
            archive.add(course.root / "course.yml", "course.yml")
    else:
        folder = tmp_path / "unpacked"
        with tarfile.open(path) as archive:
            archive.extractall(folder, filter="data")
        (folder / "submitted" / "x").symlink_to("/etc/passwd")
        with tarfile.open(path, "w:gz") as archive:
            for name in ("manifest.json", *sorted(p.name for p in folder.iterdir())):
                archive.add(folder / name, f"{'../' if damage == 'above' else ''}{name}")
    with pytest.raises(UserError):
        restore(course, path, replace=True)
    assert content(course.root) == before
    assert not list(course.root.glob(".restor*"))


def test_a_backup_during_grading_matches_the_gradebook_for_each_learner(
    course, elsewhere, monkeypatch
):
    hand_in_at(course, LATER, asks=ASKS)
    made, write = [], Writer._write

    def between(*args):  # the files are replaced, but the grade is not recorded yet
        if args[1].student == "ann":
            made.append(backup(course))
        return write(*args)

    monkeypatch.setattr(Writer, "_write", between)
    run(course)
    assert counts(course) == FIRST
    monkeypatch.setattr(Writer, "_write", write)
    restore(elsewhere, *made)
    before = rows(elsewhere.root, HW)["ann"]
    assert run(elsewhere)[0] == 0  # the unrecorded submission is graded now
    assert counts(elsewhere) == FIRST
    assert rows(elsewhere.root, HW)["ann"] == before


def test_backups_during_grading_lose_and_duplicate_nothing(course, elsewhere):
    for student, answer in LEARNERS.items():
        hand_in(course, student, answer)
    running = threading.Thread(target=run, args=(course,))
    running.start()
    made = [backup(course, name=f"{number}.tar.gz") for number in range(4)]
    running.join()
    assert run(course)[0] == 0
    for path in made:
        restore(elsewhere, path, replace=True)
        assert run(elsewhere)[0] == 0
        for student, answer in LEARNERS.items():
            assert marks(elsewhere.root, student, HW)["test"] == float(answer.split()[1])
        assert rows(elsewhere.root, HW) == rows(course.root, HW)


def test_entries_other_than_files_are_left_out_and_named(course, capsys):
    (course.root / "submitted" / "ann" / HW / "link").symlink_to("/etc/passwd")
    path = backup(course)
    assert "link, which is neither a file nor a folder" in capsys.readouterr().out
    with tarfile.open(path) as archive:
        assert not [name for name in archive.getnames() if name.endswith("link")]


def test_a_backup_that_fails_says_why(course, monkeypatch):
    path = backup(course)
    with pytest.raises(UserError, match="exists already"):
        backup(course)
    path.unlink()
    with pytest.raises(UserError, match="which `backup` saves: leave out --without-gradebook"):
        backup(course, without=True)
    monkeypatch.setattr(database, "PATIENCE", 0.1)
    with sqlite3.connect(course.root / "gradebook.db", isolation_level=None) as locked:
        locked.execute("BEGIN IMMEDIATE")
        with pytest.raises(UserError, match=r"locked.*No archive was written"):
            backup(course)
        locked.execute("ROLLBACK")
    data = (course.root / "gradebook.db").read_bytes()
    (course.root / "gradebook.db").write_bytes(data[:8192] + bytes(8192) + data[16384:])
    with pytest.raises(UserError, match=r"damaged|malformed"):
        backup(course)
    assert not path.exists()
    assert not list(course.root.glob(".backup*"))


def test_with_postgresql_a_backup_has_the_rest_on_request(course, elsewhere, capsys):
    config = course.root / "nbgrader_config.py"
    config.write_text(f'{config.read_text()}c.CourseDirectory.db_url = "postgresql://x/y"\n')
    with pytest.raises(UserError, match="pg_dump"):
        backup(course)
    path = backup(course, without=True)
    assert "keep this file with the output of pg_dump" in capsys.readouterr().out
    restore(elsewhere, path)
    assert "The gradebook is not in the archive" in capsys.readouterr().out
    assert not elsewhere.database.exists()


def test_the_restored_gradebook_matches_its_graded_files(course):
    path = backup(course)
    hand_in(course, "zoe", "score 2")
    run(course)
    restore(course, path, replace=True)
    assert run(course)[0] == 0
    with Gradebook(course.directory.db_url) as gradebook:
        assert {one.id for one in gradebook.students} == {"ann", "bob"}


def forged(course, about, *members):
    """Return an archive with the description ABOUT, and empty files and folders of any name."""
    path = course.root.parent / "forged.tar.gz"
    whole = {"format": 1, "made": "today", "roster": "", "names": ["submitted"]} | about
    data = json.dumps(whole).encode()
    with tarfile.open(path, "w:gz") as archive:
        first = tarfile.TarInfo("manifest.json")
        first.size = len(data)
        archive.addfile(first, io.BytesIO(data))
        for name, kind in [("submitted", tarfile.DIRTYPE), *members]:
            member = tarfile.TarInfo(name)
            member.type, member.mode = kind, 0o777
            archive.addfile(member)
    return path


@pytest.mark.parametrize("name", ["", ".", "..", "submitted/..", 7, "roster\0"])
def test_a_forged_archive_changes_no_permission_elsewhere(elsewhere, name):
    mine = elsewhere.root.parent / "mine"
    mine.write_text("secret")
    mine.chmod(0o600)
    there = str(mine) if name == "" else f"{name}/../../../mine"
    path = forged(elsewhere, {"names": ["submitted", name]}, (there, tarfile.DIRTYPE))
    before = everything(elsewhere.root)
    with pytest.raises(UserError, match="Nothing was changed|no backup has|no course has"):
        restore(elsewhere, path)
    assert stat.S_IMODE(mine.stat().st_mode) == 0o600
    assert everything(elsewhere.root) == before


@pytest.mark.parametrize(
    "roster", ["csv.py", "nbgrader_config.py", "source/hw/hw.ipynb", "x.csv/", 7]
)
def test_a_forged_archive_with_a_false_roster_is_refused(elsewhere, roster):
    about = {"names": ["submitted", "roster"], "roster": roster}
    path = forged(elsewhere, about, ("roster", tarfile.REGTYPE))
    before = everything(elsewhere.root)
    with pytest.raises(UserError, match="Nothing was changed"):
        restore(elsewhere, path, replace=True)
    assert everything(elsewhere.root) == before
