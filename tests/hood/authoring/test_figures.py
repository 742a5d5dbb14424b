"""Images without alternative text are found, in markdown and in HTML."""

import pytest

from hood.authoring.lint import silent_images


@pytest.mark.parametrize(
    ("markup", "found"),
    [
        ('<img alt="A strip." src="a.png">', []),
        ('<img src="a.png">', [(1, "<img>")]),
        ('<p>\n<img alt=" "></p>', [(2, "<img>")]),
        ('<svg aria-label="A strip."><g/></svg>', []),
        ("<svg><title>A strip.</title></svg>", []),
        ('<svg aria-hidden="true"></svg>', []),
        ("<svg><path/></svg>", [(1, "<svg>")]),
    ],
)
def test_html(markup, found):
    assert list(silent_images(markup)) == found


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("![A strip.](a.png) and [a link](b)", []),
        ("x\n![](a.png)", [(2, "![](...)")]),
        ("![ ][ref]", [(1, "![](...)")]),
        ("`![](a.png)` and `<img>`", []),
        ("```html\n<img>\n```\n<img>", [(4, "<img>")]),
    ],
)
def test_markdown(source, found):
    assert list(silent_images(source, markdown=True)) == found
