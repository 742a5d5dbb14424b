"""A learner's text and outputs are shown on a page, and are inert."""

import time

import pytest
from nbformat.v4 import new_output

from hood.classroom.feedback import learner_html
from hood.classroom.feedback.learner_html import (
    LEFT_OUT,
    LONGEST,
    NO_WORDS,
    OUTPUTS,
    LearnerHtml,
    inert,
)
from tests.attacks.browser import dangers, leads_away
from tests.attacks.feedback import EVIL, LINKS, PAGE

PICTURE = "iVBORw0KGgo="


def shown(*outputs):
    return "".join(LearnerHtml().outputs(outputs))


@pytest.mark.parametrize("markup", [*EVIL, *LINKS, PAGE])
def test_uncleaned_markup_is_inert_and_links_nowhere(markup):
    ways = [
        inert(markup),
        LearnerHtml().words(markup, {}),
        LearnerHtml().code(markup),
        shown(*(new_output("display_data", data={kind: markup}) for kind in ALL_KINDS)),
        shown(new_output("stream", text=markup)),
        shown(new_output("error", ename=markup, evalue=markup, traceback=[])),
    ]
    for page in ways:
        assert [found for found in dangers(page) if not found.startswith("formula")] == []
        assert leads_away(page) == []
        assert "<a" not in page
        assert "<details" not in page or "<details ontoggle" not in page


ALL_KINDS = ("text/html", "text/markdown", "text/latex", "text/plain", "image/png", "image/svg+xml")


def test_markup_loses_classes_and_ids():
    page = inert('<p class="verdict" id="exercise-x" title="t">a <a href="#top">b</a></p>')
    assert page == '<p title="t">a b</p>'


def test_harmless_markup_stays():
    table = (
        "<table><thead><tr><th>loss</th></tr></thead><tbody><tr><td>1.2</td></tr></tbody></table>"
    )
    assert inert(table) == table
    assert inert('<b style="color: red; position: fixed">x</b>') == '<b style="color: red">x</b>'
    assert "<mfrac>" in LearnerHtml().words(r"so $\frac{1}{2}$", {})
    assert (
        LearnerHtml().words("**a** `b`", {}).strip() == "<p><strong>a</strong> <code>b</code></p>"
    )


def test_a_picture_has_a_description_or_says_that_it_has_none():
    figure = new_output("display_data", data={"image/png": PICTURE, "text/plain": "<Figure>"})
    assert shown(figure) == f'<img alt="&lt;Figure&gt;" src="data:image/png;base64,{PICTURE}">'
    source = f"data:image/png;base64,{PICTURE}"
    for markup, alt in (
        (f'<img src="{source}">', NO_WORDS),
        (f'<img src="{source}" alt="a">', "a"),
    ):
        html = shown(new_output("display_data", data={"text/html": markup}))
        assert html.count("alt=") == 1
        assert f'alt="{alt}"' in html


def test_each_cell_shows_its_own_pasted_picture():
    pages = [
        LearnerHtml().words("![p](attachment:p.png)", {"p.png": {"image/png": data}})
        for data in ("AAAA", "BBBB")
    ]
    assert ["base64,AAAA" in page for page in pages] == [True, False]
    assert ["base64,BBBB" in page for page in pages] == [False, True]
    assert "attachment:q.png" in LearnerHtml().words("![p](attachment:q.png)", {})


def test_invisible_text_is_removed():
    for page in (
        LearnerHtml().code("x = 1 # \u202e2 = x"),
        shown(new_output("stream", text="\u2066a\x1b[31mb")),
        LearnerHtml().words("a \u202eb &#x202e;c **\u2066d**", {}),
        shown(new_output("display_data", data={"text/html": "<b>\u202ea&#8294;b</b>"})),
    ):
        assert not set(page) & set("\u202e\u2066\x1b")
    assert shown(new_output("stream", text="\x1b[31mred\x1b[0m < 1")) == "<pre>red &lt; 1</pre>"


def test_long_text_is_cut_and_says_so():
    page = LearnerHtml()
    texts = page.outputs([new_output("stream", text="x" * 3 * LONGEST)] * 100)
    assert sum(map(len, texts)) < learner_html.IN_ALL + 100 * (len(LEFT_OUT) + 20)
    assert LEFT_OUT in texts[0]
    assert texts[0].count("x") == LONGEST
    assert LEFT_OUT in page.code("x = 1\n" * LONGEST)
    figures = [new_output("display_data", data={"image/png": "A" * 4 * 2**20})] * 9
    assert sum(map(len, LearnerHtml().outputs(figures))) < 1.1 * learner_html.PICTURES
    large = new_output("display_data", data={"text/html": "<b>x</b>" * 2**18})
    assert shown(large) == f"<p>{LEFT_OUT}</p>"
    assert OUTPUTS < 100


def test_odd_markup_takes_no_time():
    started = time.process_time()
    for markup in ("<img " * 50_000 + ">", "<b>" * 10_000, "<img a>" * 50_000):
        inert(markup)
    assert time.process_time() - started < 5
