"""Whoever comes into the middle of a lesson can run what stands above."""

import nbformat.v4
import pytest

from grader.build.run_above import BUTTON, add_buttons, with_button, without_button


@pytest.mark.parametrize("markdown", ["## Views", "## Views\n\nA view is.\n\nMore.", "## A\n\n- b"])
def test_the_button_stands_below_the_heading_and_comes_out_again(markdown):
    came = with_button(markdown)
    assert came.startswith(f"{markdown.partition(chr(10))[0]}\n\n{BUTTON.rstrip()}")
    assert without_button(came) == markdown
    assert without_button(markdown) == markdown


def test_each_section_with_code_has_it_but_for_the_first():
    words, code = nbformat.v4.new_markdown_cell, nbformat.v4.new_code_cell
    cells = [words("# A lesson"), words("## One\n\nFirst."), code("a"), code("b")]
    cells += [words("## Two\n\nSecond."), words("More."), code("c"), words("## Sources")]
    notebook = nbformat.v4.new_notebook(cells=cells)
    for _ in range(2):  # again, as a build of what was built
        add_buttons(notebook)
        assert [BUTTON.rstrip() in c.source for c in notebook.cells] == [False] * 4 + [True] + [
            False
        ] * 3
