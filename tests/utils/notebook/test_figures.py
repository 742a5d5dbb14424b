"""Figures leave as HTML images with alternative text, and as nothing else."""

from __future__ import annotations

import base64
import io
from html.parser import HTMLParser

import pytest
from matplotlib.figure import Figure
from PIL import Image, ImageChops, ImageStat

from hood import audience
from utils.notebook import figures
from utils.notebook.figures import Link, jpeg, mime_bundle, png, show
from utils.notebook.style import CARD, STORAGE, VIEW


def drawn(width: float = 4, height: float = 2) -> Figure:
    figure = Figure(figsize=(width, height))
    figure.add_subplot().plot([1, 2], [1, 3])
    return figure


class Images(HTMLParser):
    """Collects the tags of a page, with their attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict]] = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))


def test_a_figure_is_one_html_image_with_its_text():
    bundle = mime_bundle(drawn(), alt='two points, "rising" & <straight>')
    assert set(bundle) == {"text/html", "text/plain"}
    (tag, attributes), (rule, _) = Images(bundle["text/html"]).tags
    assert (tag, rule) == ("img", "style")
    assert set(attributes) == {"alt", "width", "class", "style", "src"}
    assert attributes["alt"] == 'two points, "rising" & <straight>'
    assert attributes["width"] == "400"
    assert 'two points, "rising"' in bundle["text/plain"]
    data = attributes["src"].removeprefix("data:image/png;base64,")
    assert Image.open(io.BytesIO(base64.b64decode(data))).size == (800, 400)


@pytest.mark.parametrize(("width", "least"), [(320, 320), (560, 560), (800, 560)])
def test_a_narrow_window_does_not_shrink_a_figure_until_its_words_cannot_be_read(width, least):
    (_, attributes), *_ = Images(mime_bundle(drawn(width / 100), alt="a")["text/html"]).tags
    assert attributes["style"] == f"min-width:{least}px"


def test_a_figure_that_scrolls_has_its_title_below_it():
    figure = drawn(8)
    figure.set_label('The "loss" falls.')
    tags = Images(mime_bundle(figure, alt="a")["text/html"]).tags
    assert [attributes.get("data-title") for _, attributes in tags] == [
        None,
        'The "loss" falls.',
        None,
    ]


def test_links_lie_over_boxes_of_a_figure_and_say_where_they_lead():
    links = [Link((0.1, 0.2, 0.25, 0.5), "01_rows.ipynb", 'lesson 01, "Rows"')]
    page = mime_bundle(drawn(8), alt="a", links=links)["text/html"]
    tags = dict(Images(page).tags)
    assert tags["a"] == {
        "href": "01_rows.ipynb",
        "title": 'lesson 01, "Rows"',
        "style": "left:10.00%;top:20.00%;width:25.00%;height:50.00%",
    }
    assert ">lesson 01, &quot;Rows&quot;</a>" in page
    assert f".{tags['div']['class']} > a {{ position: absolute" in page


def test_printed_lines_break_between_words():
    page = mime_bundle(drawn(), alt="a")["text/html"]
    assert ".jp-RenderedText pre { word-break: normal; overflow-wrap: anywhere }" in page


def test_the_rule_for_jupyterlabs_dark_theme_names_the_figures_class():
    page = mime_bundle(drawn(), alt="a line")["text/html"]
    (_, attributes), *_ = Images(page).tags
    assert f'[data-jp-theme-light="false"] .{attributes["class"]} {{ filter: invert' in page


@pytest.mark.parametrize("alt", ["", "  \n", None, 3])
def test_a_figure_without_alternative_text_is_refused(alt):
    with pytest.raises(ValueError, match="alternative text"):
        mime_bundle(drawn(), alt=alt)


def test_outside_ipython_the_words_are_printed(capsys):
    show(drawn(), alt="a rising line")
    assert capsys.readouterr().out == "[figure] a rising line\n"


def test_pyplots_own_figure_is_closed_so_that_it_is_not_shown_twice(monkeypatch, capsys):
    monkeypatch.setenv("MPLBACKEND", "agg")
    import matplotlib.pyplot as plt

    figure, _ = plt.subplots()
    show(figure, alt="axes without data")
    assert not plt.fignum_exists(figure.number)


def test_a_figure_is_not_changed():
    figure = drawn()
    figure.set_facecolor("red")
    before = figure.dpi, figure.get_facecolor(), figure.canvas
    png(figure)
    assert (figure.dpi, figure.get_facecolor(), figure.canvas) == before


def test_corners_are_round_and_the_card_is_opaque():
    image = Image.open(io.BytesIO(png(drawn()))).convert("RGBA")
    right, bottom = image.width - 1, image.height - 1
    for corner in ((0, 0), (right, 0), (0, bottom), (right, bottom)):
        assert image.getpixel(corner)[3] == 0
    card = tuple(int(CARD[k : k + 2], 16) for k in (1, 3, 5))
    assert image.getpixel((image.width // 2, 2)) == (*card, 255)


def test_a_moving_figure_looks_like_a_still_one():
    made = (Image.open(io.BytesIO(form(drawn()))) for form in (jpeg, png))
    moving, still = (image.convert("RGBA").convert("RGB") for image in made)
    assert moving.size == still.size
    apart = ImageChops.difference(moving, still)
    inner = apart.crop((30, 30, apart.width - 30, apart.height - 30))
    assert max(ImageStat.Stat(inner).rms) < 2  # of 255


def test_png_keeps_flat_colours_exact():
    figure = Figure(figsize=(2, 1))
    for left, colour in ((0.1, STORAGE.tint), (0.4, VIEW.tint), (0.7, "#eef0f3")):
        figure.add_axes((left, 0.2, 0.2, 0.6), facecolor=colour)
    image = Image.open(io.BytesIO(png(figure))).convert("RGBA").convert("RGB")
    for x, colour in ((0.2, STORAGE.tint), (0.5, VIEW.tint), (0.8, "#eef0f3")):
        found = image.getpixel((round(x * image.width), image.height // 2))
        assert found == tuple(int(colour[k : k + 2], 16) for k in (1, 3, 5))


def test_more_colours_than_a_palette_holds_still_make_a_picture():
    import numpy as np

    figure = Figure(figsize=(2, 2))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.imshow(np.random.default_rng(0).random((64, 64, 3)))
    assert Image.open(io.BytesIO(png(figure))).size == (400, 400)


def test_in_ipython_the_bundle_is_published(monkeypatch):
    published = []
    monkeypatch.setattr(figures, "in_ipython", lambda: True)
    monkeypatch.setattr("IPython.display.publish_display_data", published.append)
    show(drawn(), alt="a rising line")
    assert [set(bundle) for bundle in published] == [{"text/html", "text/plain"}]


def test_without_a_viewer_only_the_words_are_shown(monkeypatch):
    monkeypatch.setenv(audience.TEXT_ONLY, "1")
    monkeypatch.setattr(figures, "png", lambda _: pytest.fail("a picture was drawn"))
    assert figures.mime_bundle(Figure(), alt="a  line") == {"text/plain": "[figure] a line"}
