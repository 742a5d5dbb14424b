"""What a name stands for, by the cells that bind it and the scopes around it."""

import pytest

from tests.grader.judging.flow.analysed import used

F = "def f(x): return g(x)"


def test_the_last_certain_binding_counts():
    assert used("g = torch.sin", "g = torch.cos", F) == {"torch.cos"}
    assert used("g = torch.sin", "if flag:\n    g = torch.cos", F) == {"torch.sin", "torch.cos"}


def test_a_statement_at_the_outermost_level_sees_what_was_bound_before_it():
    assert used("g = torch.sin\nh = g", "g = torch.cos", "def f(x): return h(x)") == {"torch.sin"}


def test_a_name_may_be_imported_under_any_other():
    assert used("from torch import sin as g", F) == {"torch.sin"}
    assert used("from torch.nn import functional as g", "def f(x): return g.relu(x)") == {
        "torch.nn.functional",
        "torch.nn.functional.relu",
    }
    assert "torch.nn.functional.relu" in used("from torch.nn.functional import *", "f = relu")


@pytest.mark.parametrize(
    "code",
    [
        "def outer():\n    g = torch.sin\n    return lambda x: g(x)\nf = outer()",
        "def f(x):\n    global g\n    g = torch.sin\n    return g(x)",
        "def f(x):\n    g = None\n    def bind():\n        nonlocal g\n        g = torch.sin\n"
        "    bind()\n    return g(x)",
    ],
    ids=["closure", "global", "nonlocal"],
)
def test_scopes_are_those_of_python(code):
    assert used(code) == {"torch.sin"}


def test_in_a_class_a_name_may_still_be_the_notebooks():
    code = "class A:\n    g = torch.sin\n    h = g\ndef f(x): return A.h(x)"
    assert used("g = torch.cos", code) == {"torch.sin", "torch.cos"}


def test_a_name_that_nobody_binds_is_foreign_and_the_customary_ones_are_known():
    assert used("def f(x): return unknown.solve(x)") == {".solve"}
    assert "torch.nn.functional.relu" in used("def f(x): return F.relu(x)")
