"""A course folder's settings."""

import sys

from grader.course import nbgrader_config


def test_what_settings_add_to_the_path_is_found_and_hides_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = list(sys.path)
    (tmp_path / "nbgrader_config.py").write_text(
        f"import sys\nsys.path.insert(0, {str(tmp_path)!r})\nget_config().Execute.timeout = 7\n"
    )
    assert nbgrader_config(tmp_path).Execute.timeout == 7
    assert sys.path == [*before, str(tmp_path)]
    nbgrader_config(tmp_path)
    assert sys.path == [*before, str(tmp_path)]


def test_a_folder_without_any_has_nbgraders_own(tmp_path):
    assert nbgrader_config(tmp_path) == {}
