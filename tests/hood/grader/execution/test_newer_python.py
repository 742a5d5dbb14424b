"""Only code that needs a newer Python waits for an instructor."""

import sys

import pytest

from hood.grader.execution.newer_python import NewerPython
from hood.judge.source.learner_source import LearnerSource
from hood.verdict import Cause

OURS = ".".join(map(str, sys.version_info[:2]))
HIDDEN = 'from hood.judge.verify import verify\nverify("twice", twice)'
LACKING = {
    "syntax": ("def twice(x): return f'{'a'}{x", "SyntaxError", "invalid syntax"),
    "an import of it": ("from new import double as twice; (", "SyntaxError", ""),
    "a name": (
        "from itertools import soon\ndef twice(x): return soon(x)",
        "ImportError",
        "cannot import name 'soon' from 'itertools' (unknown location)",
    ),
    "a module": (
        "import annotationlib\nif annotationlib:\n  def twice(x): return x",
        "ModuleNotFoundError",
        "No module named 'annotationlib'",
    ),
    "a part": (
        "import string.soon\ntwice = string.soon",
        "ModuleNotFoundError",
        "No module named 'string.soon'; 'string' is not a package",
    ),
    "an attribute": (
        "import copy\ntwice = copy.soon",
        "AttributeError",
        "module 'copy' has no attribute 'soon'",
    ),
}
OWN_FAULT = {
    "a package": ("import pandas\ntwice = 1", "ModuleNotFoundError", "No module named 'pandas'"),
    "a file": (
        "from mine import soon\ntwice = soon",
        "ImportError",
        "cannot import name 'soon' from 'mine' (/home/mine.py)",
    ),
    "a value": ("twice = [].soon", "AttributeError", "'list' object has no attribute 'soon'"),
    "an error": ("twice = 1 / 0", "ZeroDivisionError", "division by zero"),
    "nothing": ("def twice(x): return x", "", ""),
    "another cell": ("def thrice(x) return x", "SyntaxError", "expected ':'"),
}


def stop(*cells, version="9.7.1", raised=(), defines=""):
    newer, code = NewerPython(version), LearnerSource()
    for source, error, message in (("import torch", "", ""), *cells, (defines, "", "")):
        given = source == "import torch"
        newer.ran(source, given, error, message)
        code.add(source, given=given, finished=not error)
    return newer.stop(HIDDEN, code, raised)


@pytest.mark.parametrize("what", LACKING)
def test_code_for_a_newer_python_waits_for_an_instructor_and_names_both_versions(what):
    found = stop(LACKING[what])
    assert found.cause is Cause.NEWER_PYTHON
    assert f"with Python 9.7, but the grading machine has Python {OURS}" in found.problem
    assert f"({LACKING[what][1]})" in found.problem


@pytest.mark.parametrize("what", OWN_FAULT)
def test_other_faults_do_not_wait(what):
    assert stop(OWN_FAULT[what]) is None


@pytest.mark.parametrize("version", ["", OURS, f"{OURS}.99", "3.2", "new", "9", "3.9999", "-9.1"])
def test_only_a_notebook_of_a_newer_python_waits(version):
    assert stop(LACKING["syntax"], version=version) is None


def test_a_helper_that_could_not_be_defined_counts_for_what_calls_it():
    helper = ("def double(x): return f'{'a'}{x", "SyntaxError", "invalid syntax")
    assert stop(helper, defines="def twice(x): return double(x)")
    assert stop(helper, defines="def twice(x): return triple(x)") is None
    mended = ("def double(x): return 2 * x", "", "")
    assert stop(helper, mended, defines="def twice(x): return double(x)") is None


def test_a_name_of_the_lab_is_never_missing():
    again = ("import torch\nfrom itertools import soon", *LACKING["a name"][1:])
    assert stop(again, defines="def twice(x): return torch.add(x, x)") is None


def test_an_exception_of_a_call_counts():
    lacks = ("ImportError", "cannot import name 'soon' from 'itertools' (unknown location)")
    assert stop(raised=[lacks], defines="def twice(x): return x")
    assert stop(raised=[("ValueError", "soon")], defines="def twice(x): return x") is None


def test_an_endless_chain_of_helpers_ends():
    chain = "\n".join(f"def f{n}(): return f{n + 1}()" for n in range(30_000))
    assert stop(LACKING["syntax"], (chain, "", ""))
