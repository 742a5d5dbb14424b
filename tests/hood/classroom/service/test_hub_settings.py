"""The sample hub's settings: missing variables, and the service's account and Python."""

import os
import subprocess
import sys

import pytest

from hood import UserError
from hood.classroom.service.hub import CONFIG
from hood.classroom.service.hub.__main__ import check
from hood.phase_paths import ROOT

READ = """
import os, sys
os.geteuid = lambda: int(sys.argv[2])
from traitlets.config.loader import PyFileConfigLoader
c = PyFileConfigLoader(sys.argv[1]).load_config()
[service] = c.JupyterHub.services
print(service["command"][0], service.get("user"))
"""
VARIABLES = {
    "OPEN_THE_HOOD_COURSE": "/srv/course",
    "OPEN_THE_HOOD_PYTHON": "/srv/course/.venv/bin/python",
    "OPEN_THE_HOOD_BUNDLE": "/srv/bundle",
    "OPEN_THE_HOOD_HOMES": "/srv/homes",
    "OPEN_THE_HOOD_PASSWORD": "only for this test",
}


def read(variables, user):
    """Read the settings as a user with this id."""
    return subprocess.run(
        [sys.executable, "-c", READ, str(CONFIG), str(user)],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), **variables},
        capture_output=True,
        text=True,
    )


def test_the_service_has_the_courses_python_and_the_hubs_account():
    done = read(VARIABLES, 1000)
    assert done.stdout == "/srv/course/.venv/bin/python None\n", done.stderr


def test_under_root_the_service_has_a_separate_account():
    named = read(VARIABLES | {"OPEN_THE_HOOD_USER": "daemon"}, 0)
    assert named.stdout == "/srv/course/.venv/bin/python daemon\n", named.stderr
    unnamed = read(VARIABLES, 0)
    assert unnamed.returncode == 1
    assert "OPEN_THE_HOOD_USER is not set: expected the account" in unnamed.stderr
    wrong = read(VARIABLES | {"OPEN_THE_HOOD_USER": "no-such-account"}, 0)
    assert "this machine has no such account" in wrong.stderr


@pytest.mark.parametrize("missing", VARIABLES)
def test_a_missing_variable_is_named_in_a_sentence(missing):
    for variables in (
        {name: value for name, value in VARIABLES.items() if name != missing},
        VARIABLES | {missing: " "},
    ):
        done = read(variables, 1000)
        assert (done.returncode, done.stdout) == (1, "")
        assert f"{missing} is not set: expected " in done.stderr
        assert "Traceback" not in done.stderr


SETTINGS = """
c = get_config()
c.JupyterHub.services = [{"name": "course", "url": "http://127.0.0.1:1", "command": %r}]
"""
SERVE = ["python", "-m", "hood", "serve", "--hub"]
HOST = 'c.JupyterHub.subdomain_host = "https://hub.example.org"'
OWN = ["--own-origin", "https://marking.example.org"]


@pytest.mark.parametrize(
    ("settings", "status", "said"),
    [
        (SETTINGS % SERVE, 1, "course: The pages for marking are closed here"),
        (SETTINGS % SERVE + HOST, 0, "their own host below https://hub.example.org"),
        (
            SETTINGS % (SERVE + OWN),
            1,
            "Service course: its pages for marking are open, at a separate origin",
        ),
        ("c.", 2, "can't be used as a hub's settings"),
    ],
)
def test_a_hubs_settings_are_checked_for_rights_of_learners_pages(
    settings, status, said, tmp_path, capsys
):
    path = tmp_path / "jupyterhub_config.py"
    path.write_text(settings)
    try:
        found = check(path)
    except UserError as error:
        found = 2
        print(error)
    shown = capsys.readouterr().out
    assert (found, said in shown) == (status, True), shown
    assert ("a teacher opens a learner's page" in shown) == (found == 1)
