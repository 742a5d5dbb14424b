"""What is read in an instructor's notebook of nbgrader."""

import pytest

from hood import UserError
from hood.authoring.importing.assignment import Asserts, Exercise, Graded, InWords, Other
from hood.authoring.importing.cells import read_cells
from hood.authoring.importing.nbgrader import read
from tests.hood.authoring.importing.notebooks import (
    ANSWER,
    SOLUTION,
    TASK,
    TESTS,
    code,
    of_nbgrader,
    words,
    write,
)

F = "def f(x):\n    ### BEGIN SOLUTION\n    return x\n    ### END SOLUTION"


@pytest.fixture
def assignment(tmp_path):
    """Return a function that reads a notebook with some cells."""

    def of(*cells):
        return read(read_cells(write(tmp_path / "a.ipynb", list(cells))), "A title")

    return of


def test_a_notebook_without_nbgraders_cells_is_refused(assignment):
    with pytest.raises(UserError, match="without nbgrader's cells"):
        assignment(words("Words."), code("x = 2"))


def test_each_cell_becomes_an_exercise_a_test_a_question_or_another_cell(tmp_path):
    found = read(read_cells(of_nbgrader(tmp_path / "sums.ipynb")), "Sums")
    kinds = [type(cell).__name__ for cell in found.cells]
    assert " ".join(kinds) == (
        "Other Other Other Exercise Other Graded Other Exercise Graded InWords"
    )
    twice, mean = found.exercises
    assert (twice.name, twice.points, twice.guessed) == ("twice_answer", 3, True)
    assert twice.question.startswith("## Twice")
    visible = "assert twice(2) == 4"
    hidden = "assert twice(-1) == -2\nassert twice('ab') == 'abab'"
    assert twice.tests == [Asserts(visible, False, 1), Asserts(hidden, True, 2, visible)]
    assert [(test.hidden, test.points) for test in mean.tests] == [(False, 1), (True, 1)]
    assert not mean.guessed
    assert "### BEGIN SOLUTION\n    if len(values) == 0:" in mean.solution
    assert found.cells[-1] == InWords(
        "why", "## Why?\n\nWhy is the mean of no values not 0?", "Because 0 is the sum of none.", 2
    )


def test_a_test_belongs_to_the_last_exercise_above_it_that_it_uses(assignment):
    found = assignment(
        code(F, "f", **SOLUTION),
        code(F.replace("f(x)", "g(x)"), "g", **SOLUTION),
        code("assert f(1) == 1", "of_f", points=1, **TESTS),
        code("assert True", "of_none", points=1, **TESTS),
    )
    f, g = found.exercises
    assert [test.source for test in f.tests] == ["assert f(1) == 1"]
    assert [test.source for test in g.tests] == ["assert True"]
    assert [one.exercise for one in found.cells if isinstance(one, Graded)] == [f, g]


def test_a_test_without_an_exercise_is_reported_with_its_text(assignment):
    found = assignment(code("assert f(1) == 1", "lost", points=1, **TESTS))
    assert found.exercises == []
    [said] = found.open
    assert "no exercise is above this test" in said
    assert "assert f(1) == 1" in said


def test_a_task_keeps_its_mark_scheme_and_a_manual_answer_in_code_is_code(assignment):
    found = assignment(
        words("Why?\n\n=== BEGIN MARK SCHEME ===\n\n- Because.\n\n=== END MARK SCHEME ===",
              "why", points=2, **TASK),
        words("Draw it."),
        code("plot(x)", "drawn", points=1, **ANSWER),
    )  # fmt: skip
    assert found.cells == [
        InWords("why", "Why?", "", 2, "- Because."),
        InWords("drawn", "Draw it.", "```python\nplot(x)\n```", 1),
    ]


def test_the_text_outside_of_a_solution_is_part_of_the_question(assignment):
    found = assignment(
        words("## Why?"),
        words("Name two reasons.\n\n### BEGIN SOLUTION\nBecause.\n### END SOLUTION\n\nIn words.",
              "why", points=2, **ANSWER),
        code("x = 1\n### BEGIN SOLUTION\nplot(x)\n### END SOLUTION", "drawn", points=1, **ANSWER),
    )  # fmt: skip
    assert found.cells == [
        InWords("why", "## Why?\n\nName two reasons.\n\nIn words.", "Because.", 2),
        InWords("drawn", "```python\nx = 1\n```", "```python\nplot(x)\n```", 1),
    ]


def test_an_answer_in_words_without_points_shows_no_solution(assignment):
    found = assignment(words("The solution.", "said", **SOLUTION))
    assert found.cells == [Other("markdown", "*Write your answer here.*")]
    assert "no points" in found.open[0]


def test_wrong_settings_do_not_stop_the_import(assignment):
    found = assignment(
        code(F, "f", grade="no", solution=True, locked=None),
        code("assert f(1) == 1\n### BEGIN HIDDEN TESTS\nassert f(2) == 2", "t", grade=True,
             points="many"),
        code("### AUTOTEST f(3)", "auto", points=1e400, **TESTS),
    )  # fmt: skip
    [exercise] = found.exercises
    assert isinstance(exercise, Exercise)
    assert [(test.hidden, test.points) for test in exercise.tests] == [(False, 0), (True, 0)]
    assert any("AUTOTEST" in said for said in found.open)
