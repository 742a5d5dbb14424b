import pytest

from hood.judge.source.learner_source import LearnerSource

HELPED = ["def stride(t):\n    return t.stride()\n", "def f(t):\n    return stride(t)\n"]


def lines(name, cells):
    """The source lines of everything that a name refers to."""
    return [one.node.lineno for one, _, _ in LearnerSource(cells).behind(name)]


def test_the_last_definition_counts():
    cells = ["def f():\n    return 1\n", "x = 0\n\ndef f():\n    return 2\n"]
    assert lines("f", cells) == [3]
    assert lines("g", cells) == []


def test_helpers_are_included_once_each():
    written = LearnerSource([*HELPED, "unused = 3"])
    assert written.reads("f") == {"stride"}
    assert written.lines_behind("f") == 4


@pytest.mark.parametrize(
    "last",
    [
        "g = f",
        "import functools\ng = functools.partial(f)",
        "g = lambda t: f(t)",
        "if True:\n    def g(t):\n        return f(t)",
        "try:\n    pass\nfinally:\n    g = f",
        "for g in [f]:\n    pass",
        "%%time\ndef g(t):\n    return f(t)",
        "x = %time (g := f)",
        "class g:\n    def __call__(self, t):\n        return f(t)",
        "g = []\ng.append(f)",
        "g = {}\ng['f'] = f",
        "def later():\n    global g\n    g = f",
    ],
)
def test_any_kind_of_binding_is_found(last):
    assert {"f", "stride"} <= LearnerSource([*HELPED, last]).reads("g")


def test_cells_that_never_ran_are_skipped():
    assert lines("f", ["def f(:\n", "!ls", "x = !ls"]) == []
    assert lines("f", [*HELPED, "def f(:"]) == [1, 1]


def test_mutual_recursion_ends():
    assert lines("a", ["def a():\n    b()", "def b():\n    a()"]) == [1, 1]


def test_arguments_and_variables_of_a_function_are_its_own():
    code = """
def f(x, *, w=5):
    y = x
    from math import tau
    class Of:
        z = 3
        def g(self): return z
    return [v for v in y] + [u := w, u, tau, lambda k: k]
"""
    assert LearnerSource([code]).reads("f") == {"z"}


def test_too_deep_code_is_not_read():
    deep = "f = " + "not " * 2000 + "1"
    assert lines("f", [*HELPED, deep]) == [1, 1]
