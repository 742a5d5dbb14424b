import ast

import pytest

from grader.judging.learner_source import Written


def written(name, cells):
    return Written(cells).behind(name)


HELPED = ["def stride(t):\n    return t.stride()\n", "def f(t):\n    return stride(t)\n"]


def test_the_last_definition_counts():
    cells = ["def f():\n    return 1\n", "def f():\n    return 2\n"]
    assert written("f", cells) == "def f():\n    return 2"
    assert written("g", cells) == ""


def test_helpers_come_along_each_once():
    text = written("f", [*HELPED, "unused = 3"])
    assert "t.stride()" in text
    assert "unused" not in text
    assert text.count("def ") == 2


@pytest.mark.parametrize(
    "last",
    [
        "g = f",
        "import functools\ng = functools.partial(f)",
        "g = lambda t: f(t)",
        "if True:\n    def g(t):\n        return f(t)",
        "try:\n    pass\nfinally:\n    g = f",
        "%%time\ndef g(t):\n    return f(t)",
        "class g:\n    def __call__(self, t):\n        return f(t)",
    ],
)
def test_however_it_is_bound(last):
    assert "t.stride()" in written("g", [*HELPED, last])


def test_cells_that_never_ran_are_passed_over():
    assert written("f", ["def f(:\n", "!ls", "x = !ls"]) == ""
    assert written("f", [*HELPED, "def f(:"]) != ""


def test_functions_that_call_each_other_come_to_an_end():
    assert written("a", ["def a():\n    b()", "def b():\n    a()"]).count("def ") == 2


def test_arguments_and_variables_of_a_function_are_its_own():
    cells = ["x = 1 .stride()\ny = x", "def f(x):\n    y = x\n    return [z for z in y]", "z = x"]
    assert written("f", cells).count("=") == 1


def test_what_stands_in_an_if_still_parses():
    cell = "if True:\n    def g(t):\n        u = t\n        return u"
    ast.parse(written("g", [cell]))


@pytest.mark.parametrize(
    "statement",
    [
        "def f(x):\n    def g():\n        nonlocal nothing",
        "def f(x):\n    x = 1\n    global x",
        "f = " + "not " * 2000 + "1",
    ],
)
def test_what_parses_and_does_not_compile_is_left_out(statement):
    assert written("f", [*HELPED, statement]) == ""
