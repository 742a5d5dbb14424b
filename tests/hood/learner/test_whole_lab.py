"""``python -m hood check``: a whole lab in a fresh kernel, a table, and an exit status."""

import argparse
import json
import signal
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell

from hood import UserError
from hood.learner import whole_lab
from hood.phase_paths import ROOT, environment_with
from tests.hood.tiny import cell, write
from tests.patience import PATIENCE, eventually

LAB = "00_hello"
RELEASE = ROOT / "release" / LAB / f"{LAB}.ipynb"
RIGHT = """def grid_size(n, block):
    return -(-n // block)
"""
WRONG = """def masked_block(program, n, block):
    return list(range(program * block, (program + 1) * block))
"""


@pytest.fixture(autouse=True)
def a_learners_environment(monkeypatch):
    for variable in ("NBGRADER_EXECUTION", "OPEN_THE_HOOD_SERVICE"):  # nbgrader sets its own
        monkeypatch.delenv(variable, raising=False)


def lab(**answers):
    nb = nbformat.read(RELEASE, as_version=4)
    for name, answer in answers.items():
        stub = next(c for c in nb.cells if f"def {name}(" in c.source and c.cell_type == "code")
        stub.source = answer
    return nb


def check(path, capsys):
    status = whole_lab.run(argparse.Namespace(notebook=path), ROOT)
    return status, capsys.readouterr().out


@pytest.mark.slow(6)
def test_for_real_in_another_process(tmp_path):
    path = write(lab(grid_size=RIGHT, masked_block=WRONG), tmp_path / "any name.ipynb")
    before = path.read_bytes()
    done = subprocess.run(
        [sys.executable, "-m", "hood", "check", str(path)],
        cwd=ROOT,
        env=environment_with(ROOT),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    rows = dict(line[41:].split(maxsplit=1) for line in done.stdout.splitlines()[:3])
    assert rows["grid_size"] == "3 of 3"
    assert rows["masked_block"] != "3 of 3"
    assert "not yet" in done.stdout
    assert "to paste into your notebook" in done.stdout
    assert done.stderr == ""
    assert path.read_bytes() == before


@pytest.mark.slow(4)
def test_unattempted_exercises_get_no_message(capsys):
    status, text = check(RELEASE, capsys)
    assert status == 0
    assert text.count("not attempted") == 2
    assert "0 of 6" in text
    assert "not yet" not in text


@pytest.fixture
def ran(monkeypatch):
    """Replace the kernel by one that leaves the notebook as it was saved."""
    monkeypatch.setattr(
        whole_lab, "run_notebook", lambda path, root: nbformat.read(path, as_version=4)
    )


def test_a_graded_cell_that_is_missing_or_checks_nothing_is_named(ran, tmp_path, capsys):
    nb = lab(grid_size=RIGHT)
    nb.cells.remove(cell(nb, "masked_block"))
    status, text = check(write(nb, tmp_path / "x.ipynb"), capsys)
    assert status == 1
    assert "No verdict on grid_size, masked_block: the graded cell is missing" in text
    assert text.count("– of 3, no verdict") == 2


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "not a readable notebook"),
        (b"{", "not a readable notebook"),
        (b"[]", "not a readable notebook"),
        (b'{"nbformat": 4, "cells": []}', "not one of the course's labs"),
    ],
)
def test_any_other_file_is_refused_in_words(tmp_path, data, says):
    path = write(data, tmp_path / "x.ipynb")
    with pytest.raises(UserError, match=says):
        whole_lab.run(argparse.Namespace(notebook=path), ROOT)


def test_a_lab_is_found_by_its_name_or_number_in_work_first(ran, tmp_path, capsys):
    (tmp_path / "phases" / LAB).mkdir(parents=True)
    (tmp_path / "phases" / LAB / "lesson.py").write_text("")
    with pytest.raises(UserError, match="could not be opened"):
        whole_lab.run(argparse.Namespace(notebook=LAB), tmp_path)
    write(lab(), tmp_path / "release" / LAB / f"{LAB}.ipynb")
    whole_lab.run(argparse.Namespace(notebook="00"), tmp_path)
    assert "not attempted" not in capsys.readouterr().out
    mine = lab()
    mine.cells.remove(cell(mine, "grid_size"))
    write(mine, tmp_path / "work" / LAB / f"{LAB}.ipynb")
    whole_lab.run(argparse.Namespace(notebook="00"), tmp_path)
    assert "grid_size" in capsys.readouterr().out.splitlines()[-1]
    with pytest.raises(UserError, match="there is no phase"):
        whole_lab.run(argparse.Namespace(notebook="98"), tmp_path)


@pytest.mark.slow(4)
def test_a_dead_kernel_is_reported(tmp_path):
    path = write(
        lab(grid_size="import os\nos._exit(3)\ndef grid_size(): ..."), tmp_path / "x.ipynb"
    )
    with pytest.raises(UserError, match="the kernel died"):
        whole_lab.run(argparse.Namespace(notebook=path), ROOT)
    assert json.loads(path.read_text())["cells"]


@pytest.mark.slow(8)
def test_a_cell_that_never_ends_is_interrupted_and_the_others_run(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(whole_lab, "CELL_SECONDS", 4)
    nb = lab(grid_size=RIGHT)
    nb.cells.insert(1, new_code_cell("while True: pass"))
    status, text = check(write(nb, tmp_path / "x.ipynb"), capsys)
    assert status == 0
    assert "3 of 3" in text


@pytest.mark.slow(8)
def test_ctrl_c_ends_it_and_its_kernel(tmp_path):
    nb = lab()
    began = tmp_path / "began"
    said = f"import os\nwith open({str(began)!r}, 'w') as file: file.write(str(os.getpid()))"
    nb.cells.insert(0, new_code_cell(f"{said}\nwhile True: pass"))
    path = write(nb, tmp_path / "x.ipynb")
    command = [sys.executable, "-m", "hood", "check", str(path)]
    running = subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment_with(ROOT),
        stderr=subprocess.PIPE,
        text=True,
    )
    kernel = Path("/proc", eventually(lambda: began.exists() and began.read_text()))
    assert kernel.exists()
    running.send_signal(signal.SIGINT)
    assert running.communicate(timeout=PATIENCE)[1].endswith("hood check: interrupted\n")
    assert running.returncode == 130
    assert not kernel.exists()
