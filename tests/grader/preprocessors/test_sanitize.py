"""Nothing that a learner writes runs in someone else's browser."""

import re

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output, new_raw_cell

from grader.preprocessors.outputs import VERDICT_MIME
from grader.preprocessors.sanitize import Sanitize

HARMFUL = [
    "<script>alert(1)</script>",
    "<iframe src='https://example.org'></iframe>",
    "<img src=x onerror=alert(1)>",
    "<a href='javascript:alert(1)'>x</a>",
    "<a href='data:text/html,<script>alert(1)</script>'>x</a>",
    "<svg onload=alert(1)></svg>",
    "<object data='x'></object><embed src='x'>",
    "<form action='https://example.org'><input name=a></form>",
    "<style>body{background:url(https://example.org)}</style>",
    "<div style='background:url(javascript:alert(1))' onclick='alert(1)'>x</div>",
    "<img src='https://example.org/seen.png'>",
    "<img src='data:image/svg+xml;base64,PHN2Zz4='>",
    "<meta http-equiv=refresh content='0;url=https://example.org'>",
    "<link rel=stylesheet href='https://example.org/x.css'>",
    "<details ontoggle=alert(1) open>x</details>",
    "<math><mtext><script>alert(1)</script></mtext></math>",
]
ACTIVE = re.compile(
    r"<\s*(script|iframe|svg|object|embed|form|input|style|meta|link|base|math)"
    r"|<[^>]*\son\w+\s*=|<[^>]*(javascript:|data:text|https://example.org)",
    re.IGNORECASE,
)


def sanitized(*cells, **metadata):
    return Sanitize().preprocess(new_notebook(cells=list(cells), metadata=metadata), {})[0]


def shows(data):
    return new_code_cell("x", outputs=[new_output("display_data", data=data)])


@pytest.mark.parametrize("html", HARMFUL)
@pytest.mark.parametrize("mime", ["text/html", "text/markdown"])
def test_harmful_output_is_taken_apart(html, mime):
    nb = sanitized(shows({mime: f"<p>before</p>{html}"}))
    assert not ACTIVE.search(nb.cells[0].outputs[0].data[mime])
    assert "before" in nb.cells[0].outputs[0].data[mime]


@pytest.mark.parametrize("html", HARMFUL)
@pytest.mark.parametrize("make", [new_markdown_cell, new_raw_cell])
def test_harmful_text_of_a_learner_is_taken_apart(html, make):
    nb = sanitized(make(f"words {html}", metadata={"open_the_hood": {"by": "learner"}}))
    assert not ACTIVE.search(nb.cells[0].source)
    assert nb.cells[0].source.startswith("words")


@pytest.mark.parametrize(
    "mime",
    ["application/javascript", "image/svg+xml", "application/vnd.jupyter.widget-view+json"],
)
def test_other_kinds_of_output_are_dropped(mime):
    nb = sanitized(shows({mime: "alert(1)", "text/plain": "words"}))
    assert nb.cells[0].outputs[0].data == {"text/plain": "words"}


def test_saved_widgets_are_dropped():
    assert "widgets" not in sanitized(widgets={"state": "</script><script>"}).metadata


def test_a_figure_with_its_text_stays():
    html = '<img alt="a grid" src="data:image/png;base64,AAAA">'
    nb = sanitized(shows({"text/html": html}))
    assert 'alt="a grid"' in nb.cells[0].outputs[0].data["text/html"]
    assert "data:image/png;base64,AAAA" in nb.cells[0].outputs[0].data["text/html"]


def test_the_verdict_stays():
    verdict = {"check": "twice", "earned": 1.0}
    nb = sanitized(shows({VERDICT_MIME: verdict, "text/plain": "a report"}))
    assert nb.cells[0].outputs[0].data[VERDICT_MIME] == verdict


@pytest.mark.parametrize(
    "text", ["`a < b` and $x < y$ & more", "# Title\n\n- one\n- two", "a > b", "x <- 3"]
)
def test_text_without_markup_is_left_alone(text):
    nb = sanitized(new_markdown_cell(text, metadata={"open_the_hood": {"by": "learner"}}))
    assert nb.cells[0].source == text


def test_the_labs_own_text_is_left_alone():
    text = "<details><summary>Hint</summary>One & only.</details><script>ours()</script>"
    assert sanitized(new_markdown_cell(text)).cells[0].source == text


@pytest.mark.parametrize(
    "text",
    [
        "[x](javascript:alert(1))",
        "[x](&#106;avascript:alert(1))",
        "[x]\n\n[x]: vbscript:x",
        "[x](data:text/html,x)",
        "![x](https://example.org/seen.png)",
        "![x](attachment:missing.png)",
        "![x][1]\n\n[1]: //example.org/seen.png",
    ],
)
def test_text_that_becomes_more_in_markdown_is_shown_as_it_was_written(text):
    ours = {"open_the_hood": {"by": "learner"}}
    nb = sanitized(new_markdown_cell(text, metadata=ours), shows({"text/markdown": text}))
    for shown in (nb.cells[0].source, nb.cells[1].outputs[0].data["text/markdown"]):
        assert shown.startswith("<pre>")
        assert shown.endswith("</pre>")


@pytest.mark.parametrize(
    "text", ["[a link](https://example.org) and <b>bold</b>", "# Title\n\n| a | b |\n|---|---|\n"]
)
def test_harmless_markdown_stays_markdown(text):
    ours = {"open_the_hood": {"by": "learner"}}
    assert sanitized(new_markdown_cell(text, metadata=ours)).cells[0].source == text


def test_of_what_is_said_about_a_picture_only_its_size_stays():
    output = shows({"image/png": "AAAA"})
    output.outputs[0].metadata = {
        "image/png": {"width": "1 onload=alert(1)", "height": 20, "unconfined": "x"},
        "filenames": {"image/png": "//example.org/x.png"},
    }
    assert sanitized(output).cells[0].outputs[0].metadata == {"image/png": {"height": 20}}
