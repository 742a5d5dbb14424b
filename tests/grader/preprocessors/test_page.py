"""Pages of feedback: those of nbconvert, made sooner."""

import time

import pytest
from bs4 import BeautifulSoup
from nbconvert.exporters import HTMLExporter
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from grader.preprocessors import FeedbackExporter, page
from tests.grader.tiny import CONFIG

PICTURE = "iVBORw0KGgo="


def notebook(*more):
    outputs = [
        new_output("stream", name="stdout", text="1 < 2 & 3\n"),
        new_output("display_data", data={"image/png": PICTURE, "text/plain": "a figure"}),
        new_output("display_data", data={"text/html": '<IMG src="data:," title="a > b"><b>x</b>'}),
        new_output("error", ename="E", evalue="x", traceback=["\x1b[31mE\x1b[0m: x"]),
    ]
    text = '# Über $x < y$\n\n![a word](data:,) <img src="data:," alt=""> <img src="data:,">\n\n`a`'
    cells = [
        new_markdown_cell(text, id="text"),
        new_code_cell("%time f('<')  # é\nx: int = 1", outputs=outputs, id="code"),
        *more,
    ]
    nb = new_notebook(cells=cells)
    nb.metadata.language_info = {"name": "python", "pygments_lexer": "ipython3"}
    return nb


def parsed(html):
    """A page as a browser takes it, whatever the order of attributes."""
    soup = BeautifulSoup(html, "html.parser")
    for element in soup.find_all(True):
        element.attrs = dict(sorted(element.attrs.items()))
    return soup


@pytest.fixture
def exporter():
    return FeedbackExporter(template_name="classic")


def test_it_is_nbconverts_page(exporter):
    theirs = HTMLExporter(template_name="classic").from_notebook_node(notebook())[0]
    ours = exporter.from_notebook_node(notebook())[0]
    assert str(parsed(ours)) == str(parsed(theirs))
    assert exporter.from_notebook_node(notebook())[0] == ours


def test_an_image_without_a_text_says_so_and_one_with_a_text_keeps_it(exporter):
    images = parsed(exporter.from_notebook_node(notebook())[0]).find_all("img")
    assert [image["alt"] for image in images] == ["a word", "", *[page.NO_TEXT] * 3]


def test_what_is_the_same_for_a_class_is_rendered_once(exporter, monkeypatch):
    made = []
    highlight, render = page.Highlight2HTML.__call__, HTMLExporter.markdown2html
    monkeypatch.setattr(
        page.Highlight2HTML, "__call__", lambda *given: made.append(given[1]) or highlight(*given)
    )
    monkeypatch.setattr(
        HTMLExporter, "markdown2html", lambda *given: made.append(given[2]) or render(*given)
    )
    for answer in ("x = 1", "x = 2"):
        exporter.from_notebook_node(notebook(new_code_cell(answer)))
    assert len(made) == len(set(made)) == 4


def test_the_same_words_show_each_cells_own_picture(exporter):
    def cell(data):
        return new_markdown_cell(
            "![p](attachment:p.png)", attachments={"p.png": {"image/png": data}}
        )

    shown = exporter.from_notebook_node(notebook(cell("AAAA"), cell("BBBB")))[0]
    assert "base64,AAAA" in shown
    assert "base64,BBBB" in shown


def test_a_page_of_odd_images_takes_no_time():
    started = time.process_time()
    page.IMAGE.sub(page._described, "<img " * 200_000 + ">" + "<img a>" * 100_000)
    assert time.process_time() - started < 5


def test_nbgrader_uses_it():
    assert CONFIG.GenerateFeedback.exporter_class == "grader.preprocessors.FeedbackExporter"
