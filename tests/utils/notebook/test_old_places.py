"""Learners' copies of labs, lessons and the start page may import from older places."""

import pytest

import hood.learner.check
import hood.learner.contents
import hood.learner.progress
import hood.learner.service
import utils.notebook.course
import utils.notebook.progress
import utils.notebook.service
import utils.notebook.verdict


@pytest.mark.parametrize(
    ("old", "new", "names"),
    [
        (utils.notebook.verdict, hood.learner.check, {"check", "solution"}),
        (
            utils.notebook.course,
            hood.learner.contents,
            {"PHASES", "show_contents", "show_check_command"},
        ),
        (
            utils.notebook.progress,
            hood.learner.progress,
            {"progress", "show_next", "show_progress"},
        ),
        (
            utils.notebook.service,
            hood.learner.service,
            {"labs", "fetch", "submit", "feedback", "requests"},
        ),
    ],
)
def test_an_older_import_gives_the_same(old, new, names):
    assert set(old.__all__) == names
    assert all(getattr(old, name) is getattr(new, name) for name in names)
