"""The start-up file of a kernel of the course, set by its Jupyter server."""

import os
import runpy
import subprocess
import sys

import pytest

from hood.audience import NBGRADER
from hood.learner.contents import NOTEBOOK
from hood.phase_paths import ROOT
from tests.live_kernel import live_kernel, run_cell

CONFIG = ROOT / "hood" / "learner" / "jupyter" / "jupyter_server_config.py"
STARTUP = ROOT / "hood" / "learner" / "startup.py"


def test_a_server_of_the_course_names_the_start_up_file_unless_another_is_named(monkeypatch):
    monkeypatch.delenv("PYTHONSTARTUP", raising=False)
    runpy.run_path(str(CONFIG))
    assert os.environ["PYTHONSTARTUP"] == str(STARTUP)
    monkeypatch.setenv("PYTHONSTARTUP", "mine.py")
    runpy.run_path(str(CONFIG))
    assert os.environ["PYTHONSTARTUP"] == "mine.py"


@pytest.mark.slow(10)
def test_a_fresh_kernel_says_what_to_run(monkeypatch):
    notebook = ROOT / "release" / "02_autograd" / "02_autograd.ipynb"
    monkeypatch.setenv("PYTHONSTARTUP", str(STARTUP))
    monkeypatch.setenv(NOTEBOOK, str(notebook))
    monkeypatch.delenv(NBGRADER, raising=False)  # a test that grades may have left it there
    with live_kernel() as (_, client):
        shown, ended = run_cell(client, 'check("unbroadcast")')
        assert shown == []
        assert ended.startswith("`check` is not defined: a cell above defines it, but has not")
        assert run_cell(client, "print([name for name in dir() if 'begin' in name])")[0] == [
            {"text/plain": "[]\n"}
        ]
        _, ended = run_cell(client, "never_heard_of")
        assert "NameError" in ended


def test_a_plain_python_is_unchanged():
    code = f"exec(open({str(STARTUP)!r}).read()); import sys; print('hood' in sys.modules, dir())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("False ")
    assert "_begin" not in done.stdout
    assert done.stderr == ""
