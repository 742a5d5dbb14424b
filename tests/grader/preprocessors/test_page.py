"""Pages of feedback: those of nbconvert, within limits."""

import time
from html.parser import HTMLParser

import pytest
from nbconvert.exporters import HTMLExporter
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from grader.preprocessors import FeedbackExporter, formulas, page
from grader.verdict import VERDICT_MIME
from tests.grader.tiny import CONFIG

PICTURE = "iVBORw0KGgo="


def notebook(*more):
    outputs = [
        new_output("stream", name="stdout", text="1 < 2 & 3\n"),
        new_output("display_data", data={"image/png": PICTURE, "text/plain": "a figure"}),
        new_output("display_data", data={"text/html": '<IMG src="data:," title="a > b"><b>x</b>'}),
        new_output("error", ename="E", evalue="x", traceback=["\x1b[31mE\x1b[0m: x"]),
    ]
    text = '# Über `x < y`\n\n![a word](data:,) <img src="data:," alt=""> <img src="data:,">\n\n`a`'
    cells = [
        new_markdown_cell(text, id="text"),
        new_code_cell("%time f('<')  # é\nx: int = 1", outputs=outputs, id="code"),
        *more,
    ]
    nb = new_notebook(cells=cells)
    nb.metadata.language_info = {"name": "python", "pygments_lexer": "ipython3"}
    return nb


class Parts(HTMLParser):
    """What stands in a page, in order; attributes in theirs may stand in any."""

    def __init__(self, page):
        super().__init__(convert_charrefs=True)
        self.found = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, {name: (value or "").strip() for name, value in attrs}))

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag):
        self.found.append((f"/{tag}", {}))

    def handle_data(self, data):
        if data.strip():  # nbconvert's parser leaves out lines that are empty
            self.found.append(("text", data.strip()))

    def images(self):
        return [attributes for tag, attributes in self.found if tag == "img"]


@pytest.fixture
def exporter():
    return FeedbackExporter(template_name="classic")


def test_it_is_nbconverts_page(exporter):
    theirs = HTMLExporter(template_name="classic")
    formulas.without_script(theirs)
    theirs = theirs.from_notebook_node(notebook())[0]
    ours = exporter.from_notebook_node(notebook())[0]
    assert ours.count(page.CONTRAST) == 1
    assert Parts(ours.replace(page.CONTRAST, "")).found == Parts(theirs).found
    assert exporter.from_notebook_node(notebook())[0] == ours


def test_an_image_without_a_text_says_so_and_one_with_a_text_keeps_it(exporter):
    images = Parts(exporter.from_notebook_node(notebook())[0]).images()
    assert [image["alt"] for image in images] == ["a word", "", *[page.NO_TEXT] * 3]


def test_the_same_words_show_each_cells_own_picture(exporter):
    def cell(data):
        return new_markdown_cell(
            "![p](attachment:p.png)", attachments={"p.png": {"image/png": data}}
        )

    shown = exporter.from_notebook_node(notebook(cell("AAAA"), cell("BBBB")))[0]
    assert "base64,AAAA" in shown
    assert "base64,BBBB" in shown


def test_a_page_that_takes_too_much_work_has_the_reports_alone(exporter, monkeypatch):
    """As if a learner's code took the highlighter as long as it does to be stopped."""

    def highlight(self, source, **given):
        if "mine" in source:
            while True:
                pass
        return source

    monkeypatch.setattr(page.Highlight2HTML, "__call__", highlight)
    report = new_output(
        "display_data", data={"text/plain": "2 of 3 points", VERDICT_MIME: {"check": "twice"}}
    )
    printed = new_output("stream", name="stdout", text="printed")
    test = new_code_cell(
        "### BEGIN HIDDEN TESTS\nverify('twice', twice)\n### END HIDDEN TESTS",
        outputs=[printed, report],
    )
    about = {"grade": True, "solution": False, "locked": True, "grade_id": "twice", "points": 3}
    test.metadata.nbgrader = about | {"schema_version": 3, "task": False, "cell_type": "code"}
    mine = new_code_cell("mine = 1", outputs=[printed])
    monkeypatch.setattr(page, "SECONDS", 0.3)
    shown, _ = exporter.from_notebook_node(notebook(test, mine, new_markdown_cell("mine, too")))
    assert "2 of 3 points" in shown
    assert page.NOT_SHOWN in shown
    assert "mine" not in shown
    assert "printed" not in shown


def test_a_page_of_odd_images_takes_no_time():
    started = time.process_time()
    page.IMAGE.sub(page._described, "<img " * 200_000 + ">" + "<img a>" * 100_000)
    assert time.process_time() - started < 5


def test_nbgrader_uses_it():
    assert CONFIG.GenerateFeedback.exporter_class == "grader.preprocessors.FeedbackExporter"
