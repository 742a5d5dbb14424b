"""Which cells belong to which exercise."""

from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from hood.classroom.gradebook.exercises import is_answer, segments
from hood.metadata import KEY


def cell(kind, source, name="", by="", **settings):
    new = new_markdown_cell if kind == "text" else new_code_cell
    metadata = {KEY: {"by": by}} if by else {}
    if name:
        about = {"grade": False, "solution": False, "locked": False, "task": False, "points": 1}
        metadata["nbgrader"] = about | {"grade_id": name, "schema_version": 3} | settings
    return new(source, metadata=metadata)


def found(*cells):
    """Return the title, name, lab's own text and other cells of each segment."""
    return [
        (
            one.title,
            one.name,
            " ".join(c.source for c in one.question),
            [c.source for c in one.cells],
        )
        for one in segments(new_notebook(cells=list(cells)))
    ]


def test_an_exercise_is_the_cells_below_its_heading():
    assert found(
        cell("text", "# Lab"),
        cell("code", "import"),
        cell("text", "## 1 · One\n\nask"),
        cell("code", "def f", "f_solution", solution=True),
        cell("code", "visible"),
        cell("code", "test", "f", grade=True),
        cell("text", "## 2 · Why", "why", task=True),
        cell("text", "because", by="learner"),
        cell("text", "## Done"),
    ) == [
        ("", "", "# Lab", ["import"]),
        ("1 · One", "f", "## 1 · One\n\nask", ["def f", "visible"]),
        ("2 · Why", "why", "## 2 · Why", ["because"]),
        ("Done", "", "## Done", []),
    ]


def test_without_headings_a_solution_after_a_graded_cell_begins_an_exercise():
    assert found(
        cell("code", "def f", "f_solution", solution=True),
        cell("code", "test f", "f", grade=True),
        cell("code", "a plot", by="learner"),
        cell("code", "def g", "g_solution", solution=True),
        cell("code", "test g", "g", grade=True),
        cell("text", "words", "why", grade=True, solution=True),
    ) == [
        ("", "f", "", ["def f", "a plot"]),
        ("", "g", "", ["def g"]),
        ("", "why", "", ["words"]),
    ]


def test_learners_headings_begin_no_exercise_and_the_graders_notes_are_left_out():
    assert found(
        cell("text", "**put in order**", by="grader"),
        cell("text", "## 1 · One"),
        cell("text", "## 2 · Mine: all points", by="learner"),
        cell("text", "## words", "why", grade=True, solution=True),
    ) == [
        ("", "", "", []),
        ("1 · One", "why", "## 1 · One", ["## 2 · Mine: all points", "## words"]),
    ]


def test_a_cells_author_is_known():
    assert is_answer(cell("code", "x", by="learner"))
    assert is_answer(cell("code", "x", "f", solution=True))
    assert not is_answer(cell("code", "x"))
    assert not is_answer(cell("code", "x", "f", grade=True))
