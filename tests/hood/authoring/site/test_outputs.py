"""Outputs on the site: a figure becomes a separate file."""

import io

from matplotlib.figure import Figure
from PIL import Image

from hood.authoring.site.markdown import html
from hood.authoring.site.pages import page_of
from hood.phase_paths import ROOT, PhasePaths
from utils.notebook.figures import Link, mime_bundle


def test_a_figure_as_the_course_writes_it_becomes_a_file_without_the_notebooks_style(tmp_path):
    figure = Figure(figsize=(4, 2))
    phase = PhasePaths(ROOT, "01_tensors")
    bundle = mime_bundle(figure, alt="a <line>")
    page = html(bundle["text/html"], None, page_of(phase, phase.page), tmp_path)
    (picture,) = (tmp_path / "_images").iterdir()
    assert Image.open(io.BytesIO(picture.read_bytes())).size == (800, 400)
    assert page == (
        '<div class="shown"><figure class="card"><img alt="a &lt;line&gt;" '
        f'src="../_images/{picture.name}" width="400" height="200" loading="lazy" '
        'decoding="async"></figure></div>'
    )


def test_a_figures_title_stands_below_it_and_links_over_it_lead_to_the_sites_pages(tmp_path):
    figure = Figure(figsize=(8, 4))
    figure.set_label("Who needs <whom>?")
    phase = PhasePaths(ROOT, "01_tensors")
    links = [Link((0.1, 0.1, 0.2, 0.2), "02_autograd.ipynb", "lesson 02")]
    bundle = mime_bundle(figure, alt="a map", links=links)
    page = html(bundle["text/html"], None, page_of(phase, phase.page), tmp_path)
    title = '<p class="title" aria-hidden="true">Who needs &lt;whom&gt;?</p>'
    assert page.count(title) == 1
    assert '<a href="02_autograd.html"' in page
    assert "<style>" not in page
    assert 'style="left:10.00%;top:10.00%;width:20.00%;height:20.00%"' in page
