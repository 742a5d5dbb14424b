"""Outputs on the site: a figure becomes a file of its own."""

import io

from matplotlib.figure import Figure
from PIL import Image

from grader.site.outputs import Place, html
from utils.notebook.figures import mime_bundle


def test_a_figure_as_the_course_writes_it_becomes_a_file_without_the_notebooks_style(tmp_path):
    figure = Figure(figsize=(4, 2))
    place = Place("lessons/01_tensors", "notebooks/01_tensors.ipynb", tmp_path)
    page = html(mime_bundle(figure, alt="a <line>")["text/html"], None, place)
    (picture,) = (tmp_path / "_images").iterdir()
    assert Image.open(io.BytesIO(picture.read_bytes())).size == (800, 400)
    assert page == (
        '<div class="shown"><figure class="card"><img alt="a &lt;line&gt;" '
        f'src="../_images/{picture.name}" width="400" height="200" loading="lazy" '
        'decoding="async"></figure></div>'
    )
