"""A course folder's settings."""

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from nbgrader import api
from nbgrader.dbutil import _temp_alembic_ini

from hood.grader.course import nbgrader_config, open_course
from hood.grader.nbgrader.patches import find_version_here
from hood.phase_paths import ROOT


def test_paths_added_by_settings_are_used_and_hide_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = list(sys.path)
    (tmp_path / "nbgrader_config.py").write_text(
        f"import sys\nsys.path.insert(0, {str(tmp_path)!r})\nget_config().Execute.timeout = 7\n"
    )
    assert nbgrader_config(tmp_path).Execute.timeout == 7
    assert sys.path == [*before, str(tmp_path)]
    nbgrader_config(tmp_path)
    assert sys.path == [*before, str(tmp_path)]


def test_a_folder_without_settings_has_nbgraders(tmp_path):
    assert nbgrader_config(tmp_path) == {}


def test_settings_of_autograde_are_read(tmp_path):
    (tmp_path / "nbgrader_config.py").write_text(
        "c = get_config()\n"
        'c.Autograde.exclude_overwriting = {"ps1": ["notes.txt"]}\n'
        "c.Autograde.create_student = False\n"
    )
    course = open_course(tmp_path)
    assert course.autograde.exclude_overwriting == {"ps1": ["notes.txt"]}
    assert course.autograde.create_student is False


@pytest.mark.slow(2)
def test_a_grading_run_imports_no_torch_of_its_own():
    """Importing torch would take a second, in every run and every test of the command."""
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "from hood.classroom.recording.command import read_lab\n"
        "from hood.classroom.recording.writer import _late_penalties\n"
        "from hood.grader.course import open_course\n"
        "course = open_course(Path(sys.argv[1]))\n"
        "assert read_lab(course, '00_hello').notebooks\n"
        "course.autograde.permissions, _late_penalties(course)\n"
        "sys.exit('torch' in sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code, str(ROOT)], check=True, cwd=ROOT)


@pytest.mark.slow(3)
def test_a_new_gradebook_records_alembics_version(monkeypatch, tmp_path):
    monkeypatch.setattr(api, "get_alembic_version", None)
    find_version_here()
    monkeypatch.setenv("PATH", "")  # it starts no program by its name
    api.Gradebook(f"sqlite:///{tmp_path}/gradebook.db").close()
    with closing(sqlite3.connect(tmp_path / "gradebook.db")) as database:
        [(recorded,)] = database.execute("SELECT version_num FROM alembic_version")
    alembic = Path(sys.executable).with_name("alembic")
    with _temp_alembic_ini("sqlite://") as settings:
        said = subprocess.check_output([alembic, "-c", settings, "heads"], text=True)
    assert said.split()[0] == recorded
