"""`nbgrader export`: a row for each student and lab."""

import unicodedata

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
