"""Which cells belong to the code behind a name, and what is reported of them."""

import pytest

from tests.grader.judging.flow.analysed import analysed, used


def test_cells_that_fill_what_the_answer_reads_belong_to_it():
    cells = "steps = []", "steps.append(torch.sin)", "def f(x): return steps[0](x)"
    assert used(*cells) == {"torch.sin"}
    assert used(*cells, "other = []\nother.append(torch.tan)") == {"torch.sin"}


@pytest.mark.parametrize(
    "fill", ["append(torch.cos)", "extend([torch.cos])", "insert(0, torch.cos)"]
)
def test_a_container_may_be_filled_under_another_name(fill):
    answer = "def f(x): return steps[0](x)"
    assert used("steps = []", "also = steps", f"also.{fill}", answer) == {"torch.cos"}
    third = "also = steps\nthird = also"
    assert used("steps = []", third, f"third.{fill}", answer) == {"torch.cos"}
    held = "class Held:\n    pass\nheld = Held()\nheld.steps = steps"
    assert used("steps = []", held, f"held.steps.{fill}", answer) == {"torch.cos"}
    assert used("steps = []", "both = [steps]", f"both[0].{fill}", answer) == {"torch.cos"}
    assert used("steps = []", "also = steps", f"other = []\nother.{fill}", answer) == set()


def test_a_class_that_is_changed_later_is_read_with_the_change():
    own = "class A:\n    def g(self, x): return x\ndef f(x): return A().g(x)"
    assert used(own) == set()
    assert used(own, "A.g = lambda self, x: torch.sin(x)") == {"torch.sin"}


def test_uses_are_told_in_the_order_of_the_code():
    found = analysed("def f(x):\n    y = torch.sin(x)\n    return torch.cos(y)").uses
    paths = [use.path for use in found if use.path != "torch"]
    assert paths == ["torch.sin", "torch.cos"]


def test_code_that_calls_itself_ends():
    assert used("def f(x): return g(x)\ndef g(x): return [f(x), torch.sin]") == {"torch.sin"}
    assert used("def f(x):\n    x = [x, f(x)]\n    return f(x)") == set()
