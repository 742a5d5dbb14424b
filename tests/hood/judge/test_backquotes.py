"""Backquoted words on a page."""

import pytest

from hood.judge.backquotes import in_code


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("`x < y` here", "<code>x &lt; y</code> here"),
        ("one ` alone", "one ` alone"),
        ("`a` and ` b", "<code>a</code> and ` b"),
        ("<b>", "&lt;b&gt;"),
    ],
)
def test_backquotes_become_code_and_everything_is_escaped(text, html):
    assert in_code(text) == html
