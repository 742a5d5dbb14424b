"""Statements: what they bind and use."""

import pytest

from tests.grader.judging.flow.analysed import hidden, used


@pytest.mark.parametrize(
    "body",
    [
        "for h in [torch]: return h.sin(x)",
        "while True: return torch.sin(x)",
        "with A() as h: return h.sin(x)",
        "try: pass\n    finally: torch.sin(x)",
        "try: pass\n    except E as e: torch.sin(x)",
        "match [torch]:\n        case [h]: return h.sin(x)",
        "match x:\n        case _ if torch.sin(x): pass",
        "h = torch; h = h; return h.sin(x)",
        "h: object = torch; return h.sin(x)",
        "del x[torch.sin(x)]",
        "assert torch.sin(x)",
        "raise torch.sin(x)",
        "import torch as h; return h.sin(x)",
    ],
)
def test_a_module_is_followed_through_a_statement(body):
    code = f"class A:\n    def __enter__(self): return torch\ndef f(x):\n    {body}"
    assert "torch.sin" in used(code)


def test_a_decorator_gets_the_function_and_gives_what_stands_in_its_place():
    wraps = "def d(g): return torch.sin\n"
    assert used(f"{wraps}@d\ndef f(x): return x.solve()") >= {"torch.sin"}
    assert used("@torch.no_grad()\ndef f(x): return x.solve()") >= {"torch.no_grad", ".solve"}


def test_an_annotation_counts_only_if_it_does_something():
    assert used("def f(x: torch.Tensor) -> torch.Tensor: return x") == set()
    assert used("def f(x: torch.sin(1)): return x") == {"torch.sin"}


def test_methods_that_a_library_calls_get_foreign_values():
    code = "class A(torch.nn.Module):\n    def forward(self, y): return y.solve()\nf = A()"
    assert ".solve" in used(code)


def test_an_import_that_hides_is_told_where_it_stands():
    def hostile(path):
        return "which is far away" if path.startswith("far") else ""

    assert hidden("def f(x):\n    import far.away as near", hostile=hostile) == [
        ("import far.away as near", "which is far away")
    ]
    assert hidden("from far import away\ndef f(x): return away(x)", hostile=hostile)
