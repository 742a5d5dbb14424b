"""A rubric's items are boxes, and the boxes of each lab's question add up to its points."""

import pytest

from hood.authoring.notebooks.text import parse
from hood.phase_paths import phases
from hood.rubric import Rubric, read_rubric

BEGIN, END = "=== BEGIN MARK SCHEME ===", "=== END MARK SCHEME ==="


def read(scheme: str) -> Rubric:
    question, rubric = read_rubric(f"## Why?\n\nSay it.\n\n{BEGIN}\n{scheme}\n{END}\n", BEGIN, END)
    assert question == "## Why?\n\nSay it."
    return rubric


QUESTIONS = [
    pytest.param(cell, id=f"{phase.number}: {cell.name}")
    for phase in phases()
    if phase.lab.exists()
    for cell in parse("lab.py", phase.lab.read_text()).cells
    if cell.header.get("task")
]


@pytest.mark.parametrize("cell", QUESTIONS)
def test_the_boxes_of_a_labs_question_add_up_to_its_points(cell):
    question, rubric = read_rubric(cell.source, BEGIN, END)
    assert question.startswith("## ")
    assert "MARK SCHEME" not in question
    assert len(rubric.boxes) >= 3
    assert rubric.most == cell.header["points"]


def test_each_item_is_a_box_with_all_of_its_lines():
    rubric = read("Half a point each.\n\n- **One.** It begins\n  and ends.\n\n- Two.")
    assert rubric == Rubric(
        "Half a point each.", ("**One.** It begins\nand ends.", "Two."), (0.5, 0.5)
    )


def test_an_item_may_say_its_own_points():
    rubric = read("1. the shape (2 points)\n2. the rule (half a point)")
    assert rubric.points == (2.0, 0.5)


def test_points_for_several_items_together_are_steps():
    rubric = read("Two points if all three are right, one if two are.\n- a\n- b\n- c")
    assert rubric.steps == (0.0, 0.0, 1.0, 2.0)
    assert rubric.points == ()


@pytest.mark.parametrize(
    "intro", ["", "Two points in all.", "One point where six are right."], ids=repr
)
def test_boxes_without_points_in_the_rubric_give_none(intro):
    rubric = read(f"{intro}\n- a\n- b")
    assert rubric.boxes == ("a", "b")
    assert rubric.most is None


def test_a_rubric_without_items_has_no_boxes():
    assert read("3 points: because of the dict.").boxes == ()
    assert read_rubric("## Why?", BEGIN, END) == ("## Why?", Rubric())
