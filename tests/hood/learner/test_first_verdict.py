"""The time of a first `check(...)` in a notebook's kernel with torch already imported."""

import json
import os
import subprocess
import sys

import pytest

from hood.phase_paths import ROOT

RIGHT = """
def bytes_of(t):
    return t.numel() * t.element_size(), t.untyped_storage().nbytes()
"""
WRONG = "def bytes_of(t):\n    return 1"
# In IPython's own shell, as a kernel has it; the seconds are those of the processor.
MEASURED = """
import json, sys, time
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()

def seconds(cell):
    began = time.process_time()
    shell.run_cell(cell, store_history=True).raise_error()
    return time.process_time() - began

for cell in ("import torch", {answer!r}, "from hood.learner.check import check"):
    seconds(cell)
spent = seconds("check('bytes_of')")
modules = sorted(sys.modules)
measure = seconds("import nbgrader.utils")
print(json.dumps([spent, measure, modules]))
"""
HEAVY = ("nbgrader", "sqlalchemy", "jupyter_server", "nbconvert", "nbformat", "jupytext", "yaml")


@pytest.mark.parametrize("answer", [RIGHT, WRONG], ids=["right", "wrong"])
def test_a_first_verdict_is_quick_and_needs_no_server_and_no_database(answer):
    program = [sys.executable, "-c", MEASURED.format(answer=answer)]
    mine = {name: value for name, value in os.environ.items() if name != "NBGRADER_EXECUTION"}
    done = subprocess.run(program, cwd=ROOT, env=mine, capture_output=True, text=True, check=True)
    *shown, last = done.stdout.splitlines()
    spent, measure, modules = json.loads(last)
    assert any("bytes_of: " in line for line in shown), "a verdict was shown"
    assert {name.partition(".")[0] for name in modules} & set(HEAVY) == set()
    # The verdict takes 0.2 s on a machine on which this import takes 0.8 s. A busy machine makes
    # both slower.
    assert spent < 0.5 * measure, f"{spent:.2f} s, and {measure:.2f} s for nbgrader alone"
