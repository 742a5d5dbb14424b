"""What a new gradebook records of its tables."""

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from nbgrader import api
from nbgrader.dbutil import _temp_alembic_ini

from grader.nbgrader_tables import find_version_here


@pytest.mark.slow(3)
def test_it_is_what_alembic_says(monkeypatch, tmp_path):
    monkeypatch.setattr(api, "get_alembic_version", None)
    find_version_here()
    monkeypatch.setenv("PATH", "")  # it starts nothing by its name
    api.Gradebook(f"sqlite:///{tmp_path}/gradebook.db").close()
    with closing(sqlite3.connect(tmp_path / "gradebook.db")) as database:
        [(recorded,)] = database.execute("SELECT version_num FROM alembic_version")
    alembic = Path(sys.executable).with_name("alembic")
    with _temp_alembic_ini("sqlite://") as settings:
        said = subprocess.check_output([alembic, "-c", settings, "heads"], text=True)
    assert said.split()[0] == recorded
