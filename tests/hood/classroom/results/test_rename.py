"""``course rename`` gives a learner and all their data another id, without grading again."""

import json
import sqlite3
from types import SimpleNamespace

import pytest
from nbgrader.api import Gradebook
from sqlalchemy import create_engine, insert, select

from hood import UserError
from hood.classroom.gradebook import database
from hood.classroom.gradebook.service_jobs import JOBS, State
from hood.classroom.recording import command as grading
from hood.classroom.report.attempts import attempts_of
from hood.classroom.results import command
from hood.classroom.results import rename as module
from hood.classroom.results.rename import JOURNAL, rename
from hood.classroom.rules.reading import FILE
from tests.hood.classroom.recording.running import count, rows, run
from tests.hood.classroom.recording.small import HW, Here, hand_in, make_small

RULES = f"""\
roster: {{file: class.csv, id: id}}
labs: {{{HW}: {{due: 2026-09-25}}}}
extensions:
- {{who: ana, lab: {HW}, due: 2026-10-05}}
- {{who: ana.b, lab: {HW}, due: 2026-10-05}}
"""


@pytest.fixture
def course(tmp_path, monkeypatch):
    """A graded class of two; Ana has feedback, and submissions and verdicts in the service."""
    monkeypatch.setattr(grading, "_executor", lambda *_: Here())
    made = make_small(tmp_path / "course")
    hand_in(made, "ana", "score 1")
    hand_in(made, "ana.b", "score 2")
    assert run(made)[0] == 0
    with Gradebook(made.directory.db_url) as gradebook:
        gradebook.update_or_create_student("ana", first_name="Ana", lms_user_id="17")
    page = made.folder("feedback", "ana", HW) / f"{HW}.html"
    page.parent.mkdir(parents=True)
    page.write_text("her page")
    received = made.root / "received" / HW / "ana" / "20260925T100000.000000Z.ipynb"
    received.parent.mkdir(parents=True)
    received.write_text("{}")
    (made.root / FILE).write_text(RULES)
    (made.root / "class.csv").write_bytes("id;Name\nana.b;Bö\nana;Añá\n".encode("cp1252"))
    engine = create_engine(made.directory.db_url)
    with engine.begin() as connection:
        JOBS.metadata.create_all(connection)
        job = {"id": "1", "learner": "ana", "teaches": False, "lab": HW, "exercise": "one"}
        verdict = json.dumps({"earned": 1, "most": 1, "explanations": {}})
        ended = {"state": State.DONE, "cells": "", "long": False, "received": 1.0, "ended": 2.0}
        connection.execute(insert(JOBS).values(**job, **ended, verdict=verdict))
    return made


def records(course):
    with sqlite3.connect(course.root / "gradebook.db") as database:
        return list(database.execute("SELECT * FROM open_the_hood_graded ORDER BY 1"))


def do(course, old, new):
    return command.run(SimpleNamespace(action="rename", old=old, new=new), course.root)


def files(course):
    found = {}
    for path in course.root.rglob("*"):
        where = path.relative_to(course.root)
        if path.is_file() and where.parts[0] in {"submitted", "autograded", "feedback", "received"}:
            found[str(where)] = path.read_bytes()
    return found


def test_all_data_of_the_learner_get_the_new_id_and_no_grade_is_redone(course, capsys):
    before, marks, known = files(course), rows(course.root, HW), records(course)
    assert do(course, "ana", "ana_2") == 0
    said = capsys.readouterr().out
    now = {name.replace("/ana/", "/ana_2/"): data for name, data in before.items()}
    assert files(course) == now != before
    assert rows(course.root, HW) == {"ana_2": marks["ana"], "ana.b": marks["ana.b"]}
    assert records(course) == known  # with the seeds
    with Gradebook(course.directory.db_url) as gradebook:
        assert gradebook.find_student("ana_2").lms_user_id == "17"
    with create_engine(course.directory.db_url).connect() as connection:
        assert list(connection.scalars(select(JOBS.c.learner))) == ["ana_2"]
    assert attempts_of(course.directory.db_url, HW)["one"].learners == 1
    for line in (
        "moved submitted/ana to ana_2",
        "moved autograded/ana to ana_2",
        "moved feedback/ana to ana_2",
        f"moved received/{HW}/ana to ana_2",
        "gradebook: ana is now ana_2, with 1 submission and marks",
        "gradebook: 1 verdict of the service",
        "course.yml:4 still names ana: write ana_2 there",
        "class.csv:3 still lists ana: write ana_2 there",
    ):
        assert line in said.splitlines(), line
    assert "course.yml:5" not in said  # this is ana.b
    assert not (course.root / JOURNAL).exists()
    (course.root / FILE).unlink()
    status, out = run(course)
    assert (status, count(out, "graded"), count(out, "recorded before, skipped")) == (0, 0, 2)


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("ana", "ana.b", "the id ana.b is already used: it is in autograded/ana.b, submitted"),
        ("bo", "cy", "nobody has the id bo"),
        ("ana", "ana", "expected two different ids"),
        ("ana", "../ana", "can't be an id"),
        ("ana", "=1", "can't be an id"),
    ],
)
def test_a_rename_that_would_mix_two_learners_is_refused(course, old, new, why):
    before, marks = files(course), rows(course.root, HW)
    with pytest.raises(UserError, match=why):
        do(course, old, new)
    assert (files(course), rows(course.root, HW)) == (before, marks)
    assert not (course.root / JOURNAL).exists()


def test_an_id_that_is_only_in_the_gradebook_is_taken_too(course):
    with Gradebook(course.directory.db_url) as gradebook:
        gradebook.add_student("eve")
    with pytest.raises(UserError, match="it is in the gradebook"):
        do(course, "ana", "eve")
    assert do(course, "eve", "eva") == 0  # without a submission


@pytest.mark.parametrize("moved", [0, 1, 3, 4])
def test_after_an_interrupt_the_same_command_finishes_the_rename(
    course, moved, capsys, monkeypatch
):
    marks = rows(course.root, HW)
    monkeypatch.setattr(
        module, "_in_gradebook", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt)
    )
    steps = rename(course, "ana", "ana_2")
    for _ in range(moved):
        next(steps)
    if moved == 4:
        with pytest.raises(KeyboardInterrupt):
            next(steps)
    steps.close()
    monkeypatch.undo()
    if moved:
        with pytest.raises(UserError, match="course rename ana ana_2` again"):
            run(course)
        with pytest.raises(UserError, match="renaming of ana to ana_2 was interrupted"):
            do(course, "ana.b", "bo")
    assert do(course, "ana", "ana_2") == 0
    assert rows(course.root, HW) == {"ana_2": marks["ana"], "ana.b": marks["ana.b"]}
    assert not any("/ana/" in name for name in files(course))
    assert not (course.root / JOURNAL).exists()


def test_a_locked_gradebook_is_reported_and_the_command_finishes_later(course, monkeypatch):
    monkeypatch.setattr(database, "PATIENCE", 0.1)
    with sqlite3.connect(course.root / "gradebook.db") as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(UserError, match=r"locked for 0\.1 s.*run the same command again"):
            do(course, "ana", "ana_2")
        other.rollback()
    assert do(course, "ana", "ana_2") == 0
    assert sorted(rows(course.root, HW)) == ["ana.b", "ana_2"]


def test_a_new_submission_during_the_rename_is_left_to_an_instructor(course):
    steps = rename(course, "ana", "ana_2")
    while "submitted" not in next(steps):
        pass
    steps.close()
    hand_in(course, "ana", "score 0")
    before = files(course)
    with pytest.raises(UserError, match="merge submitted/ana by hand"):
        do(course, "ana", "ana_2")
    assert files(course) == before
