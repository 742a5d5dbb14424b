"""The verdict of an exercise's visible cells on a solution."""

from hood.authoring.notebooks.text import TextCell
from hood.authoring.proof.visible_cells import refusal, visible_cells, with_inner_classes

CELLS = [
    TextCell("code", "import torch", {"given": "setup"}),
    TextCell("code", "def twice(x): ...", {"solution": "twice"}),
    TextCell("markdown", "A word between."),
    TextCell("code", "assert twice(2) == 4"),
    TextCell("code", "assert twice(3) == 6\n### BEGIN HIDDEN TESTS\nverify()", {"test": "twice"}),
    TextCell("code", "print('of no exercise')"),
]


def test_they_stand_between_the_solution_and_the_hidden_part():
    assert visible_cells(CELLS) == {"twice": ("assert twice(2) == 4", "assert twice(3) == 6\n")}


def test_a_refusal_is_reported_and_a_right_answer_passes(capsys):
    cells = ("assert twice(2) == 4", "print(twice(3))\nassert twice(3) == 6, 'three'")
    assert refusal(cells, {"twice": lambda x: 2 * x}) == ""
    assert refusal(cells, {"twice": lambda x: x * x if x == 2 else 0}) == "AssertionError: three"
    assert capsys.readouterr().out == ""


def test_figures_are_not_drawn_and_each_solution_sees_the_same_random_numbers():
    drawn = []

    def figure(*_):
        drawn.append(1)

    figure.__module__ = "utils.views.tree"
    seen = []
    cells = ("import torch\nfigure(1)\nseen.append(torch.rand(1).item())",)
    for _ in range(2):
        assert refusal(cells, {"figure": figure, "seen": seen}) == ""
    assert drawn == []
    assert seen[0] == seen[1]


def test_a_class_defined_in_a_function_is_found():
    cell = "def run(x):\n    class Inner:\n        pass\n    return Inner"
    names = {}
    exec(with_inner_classes(cell), names)
    assert names["Inner"].__name__ == "Inner"
