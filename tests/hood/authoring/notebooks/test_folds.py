"""A lesson in JupyterLab: answers to predictions are folded, and each section has a button."""

import nbformat.v4
import pytest

from hood.authoring.notebooks.folds import (
    ASKS,
    BUTTON,
    add_buttons,
    as_text,
    fold_answers,
    folded,
    unfolded,
    without_blank,
)

ASKING = "First this.\n\n**Predict.** What is printed?"


def code(source, printed="", tags=()):
    outputs = [nbformat.v4.new_output("stream", text=printed)] if printed else []
    return nbformat.v4.new_code_cell(source, outputs=outputs, metadata={"tags": list(tags)})


def hidden_in(*cells):
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
        ("If a paragraph begins with **Predict**, decide on an answer.", False),
        ("To predict is hard.", False),
    ],
)
def test_a_prediction_is_asked_at_the_start_of_a_sentence(paragraph, asked):
    assert bool(ASKS.search(paragraph)) is asked


def test_outputs_up_to_the_next_text_are_folded():
    one, two, later = code("a", "1"), code("b", "2"), code("c", "3")
    assert hidden_in(code("z", "0"), ASKING, one, two, "It is 1.", later) == ["a", "b"]


def test_no_line_of_a_folded_output_is_visible():
    """JupyterLab shows the first line of a cell's first output beside the dots."""
    cell = code("a", "the answer")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(ASKING), cell])
    for _ in range(2):  # a build keeps the outputs of the previous build
        fold_answers(notebook)
        blank, answer = notebook.cells[1].outputs
        assert blank.data == {}
        assert answer.text == "the answer"
        nbformat.validate(notebook)
    assert without_blank(notebook.cells[1].outputs) == [answer]


def test_a_cell_without_output_is_not_folded():
    assert hidden_in(ASKING, code("def f(): ..."), code("f()", "1")) == ["f()"]


def test_text_between_question_and_answer_does_not_count_as_the_answer():
    assert hidden_in(f"{ASKING}\n\n(Take your time.)", code("a", "1")) == ["a"]
    assert hidden_in(ASKING, code("def f(): ..."), "And now:", code("f()", "1")) == ["f()"]


def test_a_heading_or_a_drill_ends_a_prediction():
    assert hidden_in(ASKING, "## Another matter", code("a", "1")) == []
    assert hidden_in(ASKING, code("number()", "1", ["hide-input"]), code("a", "1")) == []


@pytest.mark.parametrize(
    ("markdown", "hidden"),
    [
        ("It is 1.", "It is 1."),
        ("It is 1.\nSo it is.\n\nNow for two.", "It is 1.\nSo it is."),
        ("Two:\n\n- one\n- two\n\nThe end.", "Two:\n\n- one\n- two"),
        ("Two:\n\n## A heading", "Two:"),
        ("So:\n\n$$x = 1$$\n\nThe end.", "So:\n\n$$x = 1$$"),
        ("## A heading\n\nIt is 1.", ""),
        ("- a list", ""),
        ("| a | b |\n|---|---|\n| 1 | 2 |", ""),
        ("**Predict.** What next?\n\nMore.", ""),
        ("", ""),
    ],
)
def test_the_answering_text_is_folded_and_unfolds_unchanged(markdown, hidden):
    came = folded(markdown)
    assert unfolded(came) == markdown
    assert (came != markdown) == bool(hidden)
    inside = came.partition("</summary>\n\n")[2].partition("\n\n</details>")[0]
    assert inside == hidden


def test_text_is_folded_if_an_output_before_it_answers():
    cells = (ASKING, code("a", "1"), "It is 1.\n\nMore.", "And more.", code("b", "2"), "It is 2.")
    made = [nbformat.v4.new_markdown_cell(c) if isinstance(c, str) else c for c in cells]
    notebook = nbformat.v4.new_notebook(cells=made)
    for _ in range(2):  # again, as a build of what was built
        fold_answers(notebook)
        assert ["<details" in c.source for c in notebook.cells] == [0, 0, 1, 0, 0, 0]
    silent = nbformat.v4.new_notebook(cells=[made[0], code("def f(): ..."), made[3]])
    fold_answers(silent)
    assert silent.cells[2].source == "And more."


def test_each_section_with_code_except_the_first_has_a_button():
    words, code = nbformat.v4.new_markdown_cell, nbformat.v4.new_code_cell
    texts = {4: "## Two\n\nSecond.\n\nMore.", 6: "## Three", 8: "## Four\n\n- b"}
    cells = [words("# A lesson"), words("## One\n\nFirst."), code("a"), code("b"), words(texts[4])]
    cells += [code("c"), words(texts[6]), code("d"), words(texts[8]), words("More."), code("e")]
    notebook = nbformat.v4.new_notebook(cells=[*cells, words("## Sources")])
    for _ in range(2):  # again, as a build of what was built
        add_buttons(notebook)
        found = {at for at, c in enumerate(notebook.cells) if BUTTON.rstrip() in c.source}
        assert found == set(texts)
        for at, text in texts.items():
            heading = text.partition("\n")[0]
            assert notebook.cells[at].source.startswith(f"{heading}\n\n{BUTTON.rstrip()}")
            assert as_text(notebook.cells[at].source) == text
