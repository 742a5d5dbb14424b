"""Attributes and elements."""

import pytest

from tests.grader.judging.flow.analysed import hidden, used


@pytest.mark.parametrize(
    "code",
    [
        "class A:\n    def __init__(self): self.h = torch\ndef f(x): return A().h.sin(x)",
        "class A:\n    @property\n    def h(self): return torch\ndef f(x): return A().h.sin(x)",
        "class A:\n    @staticmethod\n    def h(): return torch\ndef f(x): return A.h().sin(x)",
        "class A:\n    @classmethod\n    def h(cls): return torch\ndef f(x): return A.h().sin(x)",
        "class A:\n    def h(self): return torch\n"
        "class B(A):\n    def g(self): return super().h()\ndef f(x): return B().g().sin(x)",
        "class A:\n    def __getattr__(self, name): return torch\ndef f(x): return A().any.sin(x)",
        "class A:\n    def __getitem__(self, key): return torch\ndef f(x): return A()[0].sin(x)",
        "def g(): pass\ng.h = torch\ndef f(x): return g.h.sin(x)",
        "d = {'h': torch}\ndef f(x): return d['h'].sin(x)",
        "d = []\nd.append(torch)\ndef f(x): return d[0].sin(x)",
        "d = [1, (2, torch)]\ndef f(x): return d[1][1].sin(x)",
    ],
)
def test_a_module_is_found_wherever_it_was_put(code):
    assert used(code) == {"torch.sin"}


def test_elements_are_told_apart_by_their_index():
    assert used("d = (torch.sin, torch.cos)\ng = d[0]\ndef f(x): return g(x)") == {
        "torch.sin",
        "torch.cos",
    }
    code = "class A:\n    sin = 3\nd = (A(), torch)\ndef f(x): return d[0].sin"
    assert used(code) == set()
    assert used(code.replace("d[0]", "d[x]")) == {"torch.sin"}


def test_an_attribute_of_a_foreign_value_is_a_use_and_one_of_the_learners_own_is_not():
    own = "class A:\n    def solve(self): return 1\n"
    assert used(f"{own}def f(x): return A().solve()") == set()
    assert used(f"{own}def f(x): return x.solve()") == {".solve"}
    assert used("def f(x): return x.shape.solve") == {".shape", ".solve"}


def test_a_class_with_a_base_of_a_library_has_the_librarys_attributes():
    code = "class A(torch.nn.Module):\n    pass\ndef f(x): return A().register_buffer(x)"
    assert ".register_buffer" in used(code)


def test_the_inside_of_pythons_objects_hides_code():
    for code in ("f.__globals__", "f.__code__", "x.gi_frame", "().__class__.__subclasses__()"):
        assert "inside of Python's own objects" in hidden(f"def f(x): return {code}")[0][1], code
    assert hidden("def f(x): torch.sin = x")[0][1] == (
        "which changes what `torch` has for everybody"
    )
    assert hidden("class A: pass\ndef f(x): A.sin = x") == []
