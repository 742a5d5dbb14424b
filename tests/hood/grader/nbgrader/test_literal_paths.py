"""nbgrader finds files in a folder with a bracket in its name; no learner can hide a submission."""

from pathlib import Path

import pytest

from hood import UserError
from hood import __main__ as command
from hood.course import VARIABLE
from hood.grader.course import open_course
from hood.grader.nbgrader.literal_paths import found
from hood.grader.submission.names import lab_problem


def make(*paths: Path) -> list[str]:
    for path in paths:
        path.mkdir(parents=True)
    return sorted(map(str, paths))


def test_a_folders_name_is_literal_and_the_rest_stays_a_pattern(tmp_path):
    inside = tmp_path / "ML [2026]" / "submitted"
    made = make(inside / "ana" / "01", inside / "ben" / "01")
    make(tmp_path / "ML 2" / "submitted" / "eve" / "01")
    assert sorted(found(f"{inside}/*/01")) == made
    assert found(f"{inside}/[!a]*/01") == [made[1]]
    assert found(f"{inside}/[ab]en/./01") == [f"{inside}/ben/./01"]


def test_a_missing_folders_name_stays_a_pattern(tmp_path):
    made = make(tmp_path / "ML 2")
    assert found(f"{tmp_path}/ML [2026]") == made


def test_a_learners_folder_named_like_a_pattern_hides_no_other(tmp_path):
    names = ("*+01+*", "[*]+01+*", "ana+01+now", "?+01+now")
    made = make(*(tmp_path / "[x]" / name for name in names))
    assert sorted(found(f"{tmp_path}/[x]/*+01+*")) == made


@pytest.mark.parametrize("name", ["01_tensors", "ps 1", "_x", "pr\xe1ctica", "A.b-c@d", "\u5b9f"])
def test_most_names_are_valid_for_a_lab(name):
    assert lab_problem(name) == ""


@pytest.mark.parametrize("name", ["ps+1", "-ps", "ps [1]", "ps (1)", "ps ", "", "a/b", ".x", "a*"])
def test_a_name_that_nbgrader_misreads_is_refused_in_a_sentence(name):
    problem = lab_problem(name)
    assert problem.startswith(f"{name!a} can't be the name of a lab: it ")
    assert "Rename its folder" in problem


def test_a_lab_with_a_dash_before_its_name_is_no_option(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    (tmp_path / "source" / "-ps").mkdir(parents=True)
    assert command.main(["grade", "-ps"]) == 2
    assert "'-ps' can't be the name of a lab: it can't begin" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["a*b", "what?", "ML%20course"])
def test_a_course_whose_files_nbgrader_would_look_for_elsewhere_is_refused(tmp_path, name):
    with pytest.raises(UserError, match="nbgrader does not read this part literally: rename"):
        open_course(tmp_path / name)
