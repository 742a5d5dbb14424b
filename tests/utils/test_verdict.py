"""`check` in a lab: when it judges, when it stays silent, and what an unwritten answer says."""

import importlib.util

import pytest
from IPython.core.interactiveshell import InteractiveShell

from utils import verdict

STUB = 'def f(x):\n    raise NotImplementedError("write your answer here")'


@pytest.fixture
def asked(monkeypatch):
    """Names that the grader was asked to judge."""
    names = []
    monkeypatch.delenv(verdict.NBGRADER, raising=False)
    monkeypatch.setattr("grader.in_notebook.show_verdict", names.append)
    return names


@pytest.fixture
def shell(monkeypatch):
    made = InteractiveShell()
    monkeypatch.setattr(verdict, "get_ipython", lambda: made)
    monkeypatch.delenv(verdict.NBGRADER, raising=False)
    return made


def test_the_grader_is_asked(asked):
    verdict.check("byte_offset")
    assert asked == ["byte_offset"]


@pytest.mark.parametrize("by", ["autograde", "validate"])
def test_nothing_is_judged_while_nbgrader_runs_the_notebook(asked, monkeypatch, by):
    monkeypatch.setenv(verdict.NBGRADER, by)
    verdict.check("byte_offset")
    assert asked == []


def test_the_instructors_copy_judges_once(asked, shell):
    shell.user_ns.update(check=verdict.check, verify=lambda *_: 2.0)
    shell.run_cell('check("f")\nverify("f", 1)', store_history=True)
    assert asked == []
    shell.run_cell('check("f")', store_history=True)
    assert asked == ["f"]


def test_a_copy_without_checks_says_so(asked, monkeypatch, capsys):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    verdict.check("byte_offset")
    assert asked == []
    assert capsys.readouterr().out.strip() == verdict.ABSENT


def test_an_unwritten_answer_is_one_line(shell, capsys):
    verdict.say_not_written()
    shell.run_cell(STUB)
    capsys.readouterr()
    result = shell.run_cell("f(1)")
    assert isinstance(result.error_in_exec, NotImplementedError)  # so Run All stops
    said = capsys.readouterr().out.strip()
    assert said == "f: not written yet. Your answer takes the place of its `raise` line."


def test_an_unwritten_method_is_named_with_its_class(shell, capsys):
    verdict.say_not_written()
    shell.run_cell("class A:\n" + "\n".join(f"    {line}" for line in STUB.splitlines()))
    shell.run_cell("A.f(1)")
    assert capsys.readouterr().out.strip().startswith("A.f: not written yet.")


def test_other_errors_keep_their_traceback(shell, capsys):
    verdict.say_not_written()
    shell.run_cell('raise NotImplementedError("no kernel for this dtype")')
    said = capsys.readouterr().out
    assert "Traceback" in said
    assert "no kernel for this dtype" in said
