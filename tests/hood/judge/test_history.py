"""The history of a kernel's cells."""

import subprocess
import sys
import time

import pytest
from IPython.core.interactiveshell import InteractiveShell

from hood.judge import history
from hood.metadata import KEY, mark


@pytest.fixture
def run(monkeypatch):
    """Run a cell, with its id if it has one."""
    shell = InteractiveShell()
    monkeypatch.setattr(history, "_cells", {})
    monkeypatch.setattr(history, "_ids", {})
    monkeypatch.setattr(history, "get_ipython", lambda: shell)
    shell.run_cell("begun = 1", store_history=True)
    history.install(shell)

    def run_cell(text, cell_id=None):
        return shell.run_cell(text, store_history=True, cell_id=cell_id)

    return run_cell


def test_cells_are_kept_as_they_were_written(run):
    run("%matplotlib agg\nx = 1")
    run("%reset -f in")
    run("In = 5\ndel Out")
    texts = [ran.source for ran in history.cells().values()]
    assert texts == ["begun = 1", "%matplotlib agg\nx = 1", "%reset -f in", "In = 5\ndel Out"]
    assert history.running() == "In = 5\ndel Out"


def test_the_last_run_of_a_cell_counts(run):
    run("exec('f = 1')", "a")
    run("g = 2", "b")
    run("f = 3", "a")
    assert [ran.source for ran in history.cells().values()] == ["begun = 1", "g = 2", "f = 3"]


def test_a_cells_bindings_and_completion_are_known(run):
    run("x = [1]\nexec('y = [2]')")
    run("z = [3]\n1 / 0\nw = [4]")
    run("x.append(5)")
    first, second, third = list(history.cells().values())[1:]
    assert {"x", "y"} <= first.bound
    assert first.finished
    assert "z" in second.bound
    assert not {"w", "x"} & second.bound
    assert not second.finished
    assert not third.bound & {"x", "y", "z"}


def test_a_stamp_has_the_completed_texts_and_times(run):
    run("f = 1", "a")
    run("f = 2 ", "a")
    run("1 / 0", "b")
    shown = run("stamp_now = 3", "c").execution_count
    before = time.time()
    stamp = history.stamp()[KEY]
    assert before - 1 < stamp["at"] <= time.time() + 1
    assert set(stamp["ran"]) == {mark(text) for text in ("begun = 1", "f = 2", "stamp_now = 3")}
    assert history.cells()["c"].count == shown  # and not that of the next cell


def test_the_start_page_does_not_begin_a_history():
    """Graders' kernels import it before their shell exists, and each keeps its own history."""
    code = "import sys, hood.learner.progress; print('hood.judge.history' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
