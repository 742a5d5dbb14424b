"""Which values the parameters of a learner's functions have."""

import pytest

from tests.grader.judging.flow.analysed import used


@pytest.mark.parametrize(
    "code",
    [
        "def g(h, x): return h.sin(x)\ndef f(x): return g(torch, x)",
        "def g(h=torch): return h.sin(1)\ndef f(x): return g()",
        "def g(*, h=torch): return h.sin(1)\ndef f(x): return g()",
        "def g(*hs): return hs[0].sin(1)\ndef f(x): return g(torch)",
        "def g(**hs): return hs['h'].sin(1)\ndef f(x): return g(h=torch)",
        "def g(h, x): return h.sin(x)\ndef f(x):\n    both = [torch, x]\n    return g(*both)",
        "def g(h, x): return h.sin(x)\ndef f(x): return g(**{'h': torch, 'x': x})",
        "g = lambda h: h.sin(1)\ndef f(x): return g(torch)",
    ],
    ids=["position", "default", "keyword default", "*", "**", "spread", "spread dict", "lambda"],
)
def test_a_module_is_followed_into_a_parameter(code):
    assert used(code) - {".sin"} == {"torch.sin"}


def test_what_the_grader_passes_is_foreign_or_plain():
    assert used("def f(x): return x.solve()") == {".solve"}
    assert used("def f(x): return x.solve()", tensors=False) == set()


def test_a_function_that_a_library_may_call_gets_foreign_values():
    assert used("def g(y): return y.solve()", "def f(x): return torch.vmap(g)(x)") == {
        "torch.vmap",
        ".solve",
    }


def test_a_function_that_the_answer_does_not_reach_is_not_read():
    assert used("def g(x): return torch.sin(x)", "def f(x): return x + 1") == set()
