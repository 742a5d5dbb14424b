"""What answers a prediction is folded in JupyterLab, and nothing else is."""

import nbformat.v4
import pytest

from grader.build.predictions import asks, fold_answers, without_blank

ASKING = "First this.\n\n**Predict.** What is printed?"


def code(source, printed="", tags=()):
    outputs = [nbformat.v4.new_output("stream", text=printed)] if printed else []
    return nbformat.v4.new_code_cell(source, outputs=outputs, metadata={"tags": list(tags)})


def folded(*cells):
    """The sources of the cells whose outputs are folded."""
    made = [nbformat.v4.new_markdown_cell(c) if isinstance(c, str) else c for c in cells]
    notebook = nbformat.v4.new_notebook(cells=made)
    fold_answers(notebook)
    hidden = [c for c in notebook.cells if c.metadata.get("jupyter", {}).get("outputs_hidden")]
    assert hidden == [c for c in notebook.cells if c.metadata.get("collapsed")]
    return [c.source for c in hidden]


@pytest.mark.parametrize(
    ("paragraph", "asked"),
    [
        ("**Predict.** What now?", True),
        ("So it is. **Predict**, before you look: what now?", True),
        ("*Really.* **Predict:** what now?", True),
        ("Where a paragraph begins with **Predict**, settle on an answer.", False),
        ("To predict is hard.", False),
    ],
)
def test_a_paragraph_asks_at_the_start_of_a_sentence(paragraph, asked):
    assert asks(paragraph) is asked


def test_the_outputs_up_to_the_next_words_are_folded():
    one, two, later = code("a", "1"), code("b", "2"), code("c", "3")
    assert folded(code("z", "0"), ASKING, one, two, "It is 1.", later) == ["a", "b"]


def test_no_line_of_a_folded_output_is_in_sight():
    """JupyterLab shows the first line of a cell's first output beside the dots."""
    cell = code("a", "the answer")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(ASKING), cell])
    for _ in range(2):  # a build keeps the outputs of the one before
        fold_answers(notebook)
        blank, answer = notebook.cells[1].outputs
        assert blank.data == {}
        assert answer.text == "the answer"
        nbformat.validate(notebook)
    assert without_blank(notebook.cells[1].outputs) == [answer]


def test_what_prints_nothing_has_nothing_to_fold():
    assert folded(ASKING, code("def f(): ..."), code("f()", "1")) == ["f()"]


def test_words_between_question_and_answer_do_not_answer():
    assert folded(f"{ASKING}\n\n(Take your time.)", code("a", "1")) == ["a"]
    assert folded(ASKING, code("def f(): ..."), "And now:", code("f()", "1")) == ["f()"]


def test_a_heading_or_a_drill_ends_what_was_asked():
    assert folded(ASKING, "## Another matter", code("a", "1")) == []
    assert folded(ASKING, code("number()", "1", ["hide-input"]), code("a", "1")) == []
