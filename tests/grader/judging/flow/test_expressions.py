"""Expressions: each kind hands on what its parts may be."""

import pytest

from tests.grader.judging.flow.analysed import hidden, used


@pytest.mark.parametrize(
    "body",
    [
        "(torch if x else 1).sin(x)",
        "(None or torch).sin(x)",
        "[h for h in [torch]][0].sin(x)",
        "{1: h for h in [torch]}[1].sin(x)",
        "next(h for h in [torch]).sin(x)",
        "(h := torch).sin(x)",
        "(lambda h: h)(torch).sin(x)",
        "[*[torch]][0].sin(x)",
        "{**{1: torch}}[1].sin(x)",
        "([1] + [torch])[1].sin(x)",
        "f'{torch.sin(x)}'",
        "x[torch.sin(x):]",
        "x < torch.sin(x)",
        "-torch.sin(x)",
    ],
)
def test_a_module_is_followed_through_an_expression(body):
    assert "torch.sin" in used(f"def f(x): return {body}")


@pytest.mark.parametrize(
    ("method", "body"),
    [
        ("__add__", "A() + x"),
        ("__radd__", "x + A()"),
        ("__iadd__", "use(a)"),
        ("__eq__", "A() == x"),
        ("__neg__", "-A()"),
        ("__getitem__", "A()[x]"),
        ("__iter__", "[y for y in A()]"),
        ("__len__", "len(A())"),
    ],
)
def test_an_operator_of_a_learners_class_is_its_method(method, body):
    code = f"""
    class A:
        def {method}(self, *others): return torch.sin(1)
    def use(a):
        a += 1
        return a
    a = A()
    def f(x): return {body}
    """
    assert "torch.sin" in used(code)


def test_what_yield_gives_is_what_a_loop_gets():
    code = "def g():\n    yield torch\ndef f(x):\n    for h in g():\n        return h.sin(x)"
    assert used(code) == {"torch.sin"}
    assert used(code.replace("yield torch", "yield from [torch]")) == {"torch.sin"}


def test_a_starred_target_gets_the_rest():
    code = "def f(x):\n    a, *b = 1, 2, torch\n    return b[0].sin(x)"
    assert used(code) == {"torch.sin"}


def test_special_global_names_hide_code():
    assert hidden("def f(x): return __builtins__")[0][0] == "__builtins__"
    assert hidden("def f(x): return __name__") == []
