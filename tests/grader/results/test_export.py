"""`nbgrader export`: a row for each student and lab."""

import os
import stat
import unicodedata

import pytest
from nbgrader.api import Gradebook

from tests.grader.batch.small import enter, hand_in, make_small
from tests.grader.results.test_same_numbers import exported


def test_who_has_one_name_in_two_codings_has_one_row(tmp_path):
    course = make_small(tmp_path / "course")
    course.config.ExportApp.plugin_class = "grader.results.export.Export"
    enter(course)
    name = unicodedata.normalize("NFD", "José")
    with Gradebook(course.directory.db_url) as gradebook:
        gradebook.add_student(name)
    hand_in(course, "José", "score 1")
    assert {who: row["status"] for who, row in exported(course).items()} == {
        name: "handed in, not graded"
    }


def test_the_table_is_replaced_as_a_whole_by_whoever_may_and_is_the_groups(
    tmp_path, monkeypatch, capsys
):
    course = make_small(tmp_path / "course")
    course.config.ExportApp.plugin_class = "grader.results.export.Export"
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
