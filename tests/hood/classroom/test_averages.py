"""Formgrader's averages are over existing marks, with their maximum."""

from datetime import datetime
from pathlib import Path
from types import SimpleNamespace

import pytest
from jinja2 import DictLoader, Environment
from nbgrader.api import Gradebook
from nbgrader.apps.api import NbGraderAPI
from nbgrader.server_extensions.formgrader import handlers

from hood.classroom.gradebook.marks import averages
from hood.classroom.nbgrader import guard
from tests.hood.classroom.rules.book import hand_in, make_book
from tests.hood.classroom.test_same_numbers import formgrader

LAB = "02_two"  # fourth, of 10 points; fifth, of 2; and because, of 8, marked by hand
CAME = datetime(2026, 10, 1)


@pytest.fixture
def course(tmp_path, monkeypatch):
    made = make_book(tmp_path / "course")
    monkeypatch.setattr(NbGraderAPI, "get_assignment", guard._get_assignment)
    monkeypatch.setattr(NbGraderAPI, "get_notebooks", guard._get_notebooks)
    return made


def shown(course):
    """The averages on both of formgrader's pages: earned points and their maximum."""
    api = formgrader(course)
    [lab] = [one for one in api.get_assignments() if one["name"] == LAB]
    [notebook] = api.get_notebooks(LAB)
    kinds = ("", "code_", "written_", "task_")
    both = [
        {kind: (one[f"average_{kind}score"], one[f"max_{kind}score"]) for kind in kinds}
        for one in (lab, notebook)
    ]
    assert both[0] == both[1]
    return both[0]


def test_a_missing_mark_is_no_0(course):
    [before] = formgrader(course).get_notebooks(LAB)  # nobody has handed it in
    assert (before["average_score"], before["max_score"]) == (0.0, 20.0)
    for student, fourth in (("ana", 10.0), ("ben", 6.0), ("cy", 5.0)):
        hand_in(course, student, LAB, {"fourth": fourth, "fifth": 2.0, "because": None}, CAME)
    assert shown(course) == {
        "": (9.0, 12.0),
        "code_": (9.0, 12.0),
        "written_": (0.0, 0.0),
        "task_": (0.0, 0.0),
    }
    with Gradebook(course.directory.db_url) as gradebook:
        assert gradebook.average_assignment_score(LAB) == 9.0  # nbgrader's own maximum is 20
        gradebook.find_grade("because", LAB, LAB, "ana").manual_score = 8.0
        gradebook.find_grade("because", LAB, LAB, "ben").manual_score = 0.0
        gradebook.db.commit()
    assert shown(course)["written_"] == (4.0, 8.0)  # of two marks; one of them is a 0
    assert shown(course)[""] == (13.0, 20.0)


def test_an_unreadable_notebook_does_not_lower_the_average(course):
    hand_in(course, "ana", LAB, {"fourth": 8.0, "fifth": 2.0, "because": 8.0}, CAME)
    hand_in(course, "ben", LAB, {"fourth": None, "fifth": None, "because": None}, CAME)
    assert shown(course)[""] == (18.0, 20.0)
    with Gradebook(course.directory.db_url) as gradebook:
        assert gradebook.average_assignment_score(LAB) == 9.0
        gradebook.remove_student("ana")
    assert shown(course)[""] == (0.0, 0.0)  # there is no mark left


def test_each_notebook_of_a_lab_has_an_average_without_excluded_learners(course):
    hand_in(course, "ana", LAB, {"fourth": 8.0, "fifth": 2.0, "because": 8.0}, CAME)
    hand_in(course, "left", LAB, {"fourth": 0.0, "fifth": 0.0, "because": 0.0}, CAME)
    with Gradebook(course.directory.db_url) as gradebook:
        assert averages(gradebook.db, LAB, without=["left"]) == {
            (LAB, "code"): (10.0, 12.0),
            (LAB, "written"): (8.0, 8.0),
        }


def test_the_pages_with_averages_state_the_maximum():
    folder = Path(handlers.__file__).parent / "templates"  # of the nbgrader that is installed
    assert {path.name for path in folder.iterdir()} >= guard.AVERAGING
    for name in sorted(path.name for path in folder.glob("*.tpl")):
        text = (folder / name).read_text()
        assert ("Score</th>" in text and "Avg" in text or name == "gradebook_assignments.tpl") == (
            name in guard.AVERAGING
        ), name
        loader = DictLoader({name: f'<th class="a">Score</th>{guard.TABLE}'})
        settings = {"nbgrader_jinja2_env": Environment(loader=loader)}
        handler = SimpleNamespace(settings=settings, coursedir=SimpleNamespace(root="/nowhere"))
        page = guard._render(handler, name)
        averaging = name in guard.AVERAGING
        assert (">Avg. Score</th>" in page, guard.AVERAGED in page) == (averaging,) * 2
