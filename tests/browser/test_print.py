"""A page of the site on paper or as a PDF: nothing is folded, cut or torn."""

import io

import pytest
from pypdf import PageObject, PdfReader

from tests.browser.course_site import LAB, LESSON

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow(20),
    pytest.mark.filterwarnings("ignore:.*Check CHANGES for Sphinx API"),
]

MARGIN = dict.fromkeys(("top", "right", "bottom", "left"), "15mm")
# What is folded on the screen, and the end of a line that is longer than the paper is wide.
HAS = {
    LESSON: (
        "Two paths lead from a to L.",  # below a prediction
        "That is one of two paths. Both factors are x.",  # a drill's answer
        '"theirs": FastNorm.apply}.items():',
    ),
    LAB: (
        "At the end: L grows by 1 when L grows by 1.",  # a hint
        'scalar_adjoints(Exact(2**70 + 1), Exact(0))["d"] == 2**71 + 2, True)',
    ),
    "docs/how-to/export.html": ("the dropped labs, the total, and why it is not final",),
}
GROUND = "getComputedStyle(document.body).backgroundColor"
# What is of no use on paper.
NEVER = ("Skip to content", "Show what happens", "On this page", "Previous", "Contents")


@pytest.mark.parametrize(
    ("path", "size", "theme"),
    [*zip(HAS, ("A4", "Letter", "A4"), ("dark", "light", "dark"), strict=True)],
)
def test_a_printed_page_has_what_is_folded_long_lines_and_whole_figures(
    profile, site, path, size, theme
):
    page = profile.browser.new_page(color_scheme=theme)
    try:
        page.goto(f"{site[0]}/{path}")
        page.emulate_media(media="print")
        assert page.evaluate(GROUND) == "rgb(255, 255, 255)"
        figures = page.locator("article img").count()
        data = page.pdf(format=size, margin=MARGIN, print_background=True)
    finally:
        page.close()
    sheets = PdfReader(io.BytesIO(data)).pages
    text = "".join("".join(sheet.extract_text().split()) for sheet in sheets)
    assert [words for words in HAS[path] if "".join(words.split()) not in text] == []
    assert [words for words in NEVER if "".join(words.split()) in text] == []
    # a torn figure would be on two pages
    assert sum(map(pictures, sheets)) == figures


def pictures(sheet: PageObject) -> int:
    """Return how many pictures a page shows."""
    found = sheet["/Resources"].get("/XObject", {}).values()
    return sum(one["/Subtype"] == "/Image" for one in found)
