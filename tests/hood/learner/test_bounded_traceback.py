"""A deep recursion fails at once in a cell, and its traceback shows the frames that matter."""

import re

import IPython
import pytest
from IPython.core.interactiveshell import InteractiveShell

from hood.learner import bounded_traceback
from hood.learner.bounded_traceback import ERRORS, FIRST, LAST
from tests.live_kernel import live_kernel, run_cell

DEEP = """
def first(n): return deeper(n)
def deeper(n): return deeper(n + 1) if n < 500 else last(n)
def last(n): return n / 0
first(0)
"""
CHAIN = """
def again(n):
    try:
        return again(n + 1) if n < 100 else 1 / 0
    except ArithmeticError:
        raise ZeroDivisionError(f"of level {n}")
again(0)
"""
ENDLESS = {
    "a function": "def f(x): return f(x) + 1\nf(1)",
    "a module": (
        "class Endless(torch.nn.Module):\n"
        "    def forward(self, x): return self(x)\n"
        "Endless()(torch.ones(2))"
    ),
}


@pytest.fixture
def shell(monkeypatch):
    made = InteractiveShell()
    monkeypatch.setattr(IPython, "get_ipython", lambda: made)
    bounded_traceback.install()
    bounded_traceback.install()  # once more changes nothing
    return made


def printed(capsys):
    return re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out)


def test_the_first_and_the_last_frames_of_a_deep_error_are_shown(shell, capsys):
    result = shell.run_cell(DEEP)
    said = printed(capsys)
    assert "ZeroDivisionError: division by zero" in said
    assert " first(" in said
    assert " last(" in said
    # one frame is IPython's own
    left_out = 504 - FIRST - LAST + 1
    assert f"[... not shown: {left_out} frames, between the first {FIRST} and the last" in said
    assert len(said) < 5000
    trace, every = result.error_in_exec.__traceback__, 0
    while trace is not None:
        trace, every = trace.tb_next, every + 1
    assert every > 500  # for %debug


def test_an_error_of_a_few_frames_is_shown_as_usual(shell, capsys):
    shell.run_cell(DEEP.replace("500", "3"))
    bounded = capsys.readouterr().out
    del shell.InteractiveTB.structured_traceback, shell.InteractiveTB.get_parts_of_chained_exception
    shell.run_cell(DEEP.replace("500", "3"))
    usual = capsys.readouterr().out
    assert bounded.partition("\n")[2] == usual.partition("\n")[2]
    assert "not shown" not in bounded


def test_the_last_of_a_long_chain_of_errors_are_shown(shell, capsys):
    shell.run_cell(CHAIN)
    said = printed(capsys)
    assert said.count("During handling of the above exception") == ERRORS - 1
    assert said.rstrip().endswith("ZeroDivisionError: of level 0")
    assert f"the errors before the last {ERRORS}" in said
    shell.run_cell("1 / 0")
    assert "not shown" not in printed(capsys)


@pytest.mark.parametrize("mode", ["Plain", "Verbose", "Minimal", "Context"])
def test_every_mode_of_ipython_is_bounded(shell, capsys, mode):
    shell.run_line_magic("xmode", mode)
    capsys.readouterr()
    shell.run_cell(DEEP)
    said = printed(capsys)
    assert "ZeroDivisionError" in said
    assert said.count("deeper(") <= 4 * (FIRST + LAST)


@pytest.fixture(scope="module")
def kernel():
    with live_kernel() as (_, client):
        run_cell(client, "import torch\nfrom hood.learner.check import check\n")
        run_cell(client, "import utils.views\nlooks = []")
        yield client


@pytest.mark.slow(6)
@pytest.mark.parametrize("code", ENDLESS.values(), ids=ENDLESS)
def test_a_recursion_in_a_learners_kernel_looks_at_few_frames(kernel, code):
    """The test counts frames and measures no time, because everything is slow on a busy machine."""
    run_cell(
        kernel,
        "import inspect\n"
        "looks.clear(); own = inspect.getmodule\n"
        "inspect.getmodule = lambda *given: looks.append(0) or own(*given)",
    )
    _, ended = run_cell(kernel, code)
    assert "RecursionError" in ended or "maximum recursion depth" in ended
    _, said = run_cell(kernel, "inspect.getmodule = own; raise ValueError(len(looks))")
    assert int(said.split()[-1]) < 20 * (FIRST + LAST)
