"""`nbgrader export`: a row for each student and lab."""

import csv
import os
import stat
import unicodedata
from types import SimpleNamespace

import pytest
from nbgrader.api import Gradebook

from hood.classroom.recording import command as batch
from hood.classroom.report import command as report
from tests.hood.classroom.recording.running import run
from tests.hood.classroom.recording.small import HW, Here, answered, enter, hand_in, make_small
from tests.hood.classroom.test_same_numbers import exported
from tests.hood.tiny import write


def test_one_id_in_two_unicode_forms_has_one_row(tmp_path):
    course = make_small(tmp_path / "course")
    course.config.ExportApp.plugin_class = "hood.classroom.nbgrader.export.Export"
    enter(course)
    name = unicodedata.normalize("NFD", "José")
    with Gradebook(course.directory.db_url) as gradebook:
        gradebook.add_student(name)
    hand_in(course, "José", "score 1")
    assert {who: row["status"] for who, row in exported(course).items()} == {
        name: "handed in, not graded"
    }


def test_an_unreadable_notebook_costs_no_points_of_the_labs_other_notebook(tmp_path, monkeypatch):
    monkeypatch.setattr(batch, "_executor", lambda *_: Here())
    course = make_small(tmp_path / "course", (HW, "année"))
    course.config.ExportApp.plugin_class = "hood.classroom.nbgrader.export.Export"
    hand_in(course, "half", "score 2", "because")
    hand_in(course, "none", b"{")
    other = hand_in(course, "whole", "score 1", "because").with_name("année.ipynb")
    write(answered("score 2", "because"), other)
    run(course)
    columns = ("raw_score", "score", "status")
    assert {who: tuple(row[name] for name in columns) for who, row in exported(course).items()} == {
        "half": (
            "2.0",
            "",
            "no mark for année: could not be read or graded; not marked yet: 3 points",
        ),
        "none": ("", "", "no mark: could not be read or graded"),
        "whole": ("3.0", "", "not marked yet: 6 points"),
    }
    assert report.run(SimpleNamespace(lab=HW, out=None, hide_names=False), course.root) == 0
    page = (course.root / "reports" / HW / "index.html").read_text()
    assert "2 submissions with a notebook that could not be read: half, none." in page
    assert "Answers that wait: 1 to <code>année/why</code>, 2 to <code>hw/why</code>." in page
    with (course.root / "reports" / HW / "learners.csv").open(encoding="utf-8-sig") as file:
        half = [row for row in csv.DictReader(file) if row["student"] == "half"]
    columns = ("points", "status", "problem", "manual")
    assert {row["exercise"]: tuple(row[name] for name in columns) for row in half} == {
        "hw/test": ("2.0", "right", "", ""),
        "hw/why": ("", "waiting", "", "waiting"),
        "année/test": ("", "could not be read", "", ""),
        "année/why": ("", "could not be read", "", ""),
    }
    assert [page.count(f'"links">{points}') for points in ("2 points", "no mark", "0")] == [1, 1, 0]


def test_the_table_is_replaced_as_a_whole_and_writable_for_the_group(tmp_path, monkeypatch, capsys):
    course = make_small(tmp_path / "course")
    course.config.ExportApp.plugin_class = "hood.classroom.nbgrader.export.Export"
    course.directory.groupshared = True
    enter(course)
    table = course.root / "grades.csv"
    table.write_text("of somebody else")
    table.chmod(0o444)
    inode = table.stat().st_ino
    exported(course)
    assert table.stat().st_ino != inode
    assert stat.S_IMODE(table.stat().st_mode) & 0o660 == 0o660

    def refuses(source, target):
        raise PermissionError(13, "no", str(source), None, str(target))

    monkeypatch.setattr(os, "replace", refuses)
    with pytest.raises(SystemExit):
        exported(course)
    assert f"{table} can't be used: " in capsys.readouterr().err
