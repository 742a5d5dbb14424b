"""What a call returns: of a class, of an instance, of a container's method."""

import pytest

from tests.grader.judging.flow.analysed import used


@pytest.mark.parametrize(
    "code",
    [
        "class A:\n    def __call__(self, h): return h.sin(1)\ndef f(x): return A()(torch)",
        "class A:\n    def forward(self, h): return h.sin(1)\ndef f(x): return A()(torch)",
        "@dataclass\nclass A:\n    h: object\ndef f(x): return A(torch).h.sin(x)",
        "@dataclass\nclass A:\n    h: object\ndef f(x): return A(h=torch).h.sin(x)",
        "class A:\n    h: object\ndef f(x):\n    both = [torch]\n    return A(*both).h.sin(x)",
        "def f(x): return [v for v in {1: torch}.values()][0].sin(x)",
        "def f(x): return [k for k in {torch: 1}.keys()][0].sin(x)",
        "def f(x): return [v for k, v in {1: torch}.items()][0].sin(x)",
        "def f(x): return {}.setdefault(1, torch).sin(x)",
        "def f(x):\n    d = []\n    d.extend([torch])\n    return d.copy().pop().sin(x)",
        "def f(x):\n    d = [1]\n    d.sort(key=lambda v: torch.sin(v))\n    return d",
    ],
)
def test_a_module_is_followed_through_a_call(code):
    imports = "from dataclasses import dataclass"
    assert {path for path in used(imports, code) if path.startswith("torch")} == {"torch.sin"}


def test_what_another_cell_made_with_a_library_is_a_use_of_it():
    cells = "table = {}", "table[1] = torch.sin(torch.ones(3))", "def f(x): return table[1]"
    assert used(*cells) == {"torch.sin", "torch.ones"}
    assert used(cells[0], cells[2]) == set()
