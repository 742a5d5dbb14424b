"""`check` in a lab: when it judges, and when it stays silent."""

import importlib.util

import pytest
from IPython.core.interactiveshell import InteractiveShell

from utils import one_line, verdict


@pytest.fixture
def asked(monkeypatch):
    """Names that the grader was asked to judge."""
    names = []
    monkeypatch.delenv(one_line.NBGRADER, raising=False)
    monkeypatch.setattr("grader.in_notebook.show_verdict", names.append)
    return names


@pytest.fixture
def shell(monkeypatch):
    made = InteractiveShell()
    monkeypatch.setattr(verdict, "get_ipython", lambda: made)
    monkeypatch.delenv(one_line.NBGRADER, raising=False)
    return made


def test_the_grader_is_asked(asked):
    verdict.check("byte_offset")
    assert asked == ["byte_offset"]


@pytest.mark.parametrize("by", ["autograde", "validate"])
def test_nothing_is_judged_while_nbgrader_runs_the_notebook(asked, monkeypatch, by):
    monkeypatch.setenv(one_line.NBGRADER, by)
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
