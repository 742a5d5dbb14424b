"""A learner's picture with too many pixels for a browser is not shown, and a note says so."""

import base64
import io
import re
import struct
import zlib

import pytest
from nbformat import from_dict
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from PIL import Image

from hood.classroom.feedback.learner_html import LEFT_OUT, LearnerHtml, inert
from hood.grader.cleaning.pixels import MAX_PIXELS, MAX_PIXELS_IN_ALL, TOO_LARGE, TOO_MANY, pixels
from hood.grader.cleaning.sanitize import Sanitize
from hood.metadata import KEY

SIDE = 23_000  # pixels


def encoded(data):
    return base64.b64encode(data).decode()


def png(width, height=None):
    """A compressed picture of white pixels, one bit each."""
    height = height or width

    def chunk(kind, data):
        check = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + check

    packer = zlib.compressobj(9)
    row = b"\0" + b"\xff" * -(-width // 8)
    rows = b"".join([packer.compress(row) for _ in range(height)]) + packer.flush()
    header = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    parts = chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")
    return encoded(b"\x89PNG\r\n\x1a\n" + parts)


def made(kind, size=(30, 20)):
    file = io.BytesIO()
    Image.new("L", size).save(file, kind)
    return file.getvalue()


def gif_of(screen, frame):
    """A GIF with a size in its header, and a first frame of another size."""
    head = b"GIF89a" + struct.pack("<HHBBB", *screen, 0, 0, 0)
    return encoded(head + b"," + struct.pack("<HHHHB", 0, 0, *frame, 0) + b"\x02\x00;")


LARGE = png(SIDE)


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF"])
def test_the_header_of_a_picture_is_read(kind):
    assert pixels(encoded(made(kind))) == 600
    text = encoded(made(kind))
    assert pixels(" ".join(text[at : at + 7] for at in range(0, len(text), 7))) == 600


def test_a_large_picture_is_known_without_being_decoded():
    assert len(LARGE) < 150_000
    assert pixels(LARGE) == SIDE**2
    assert pixels(gif_of((1, 1), (60_000, 60_000))) > MAX_PIXELS
    photo = made("JPEG").replace(struct.pack(">HH", 20, 30), struct.pack(">HH", 60_000, 60_000))
    assert pixels(encoded(photo)) > MAX_PIXELS


@pytest.mark.parametrize("kind", ["WEBP", "BMP", "ICO", "AVIF"])
def test_an_unknown_kind_of_picture_counts_as_too_large(kind):
    assert pixels(encoded(made(kind))) > MAX_PIXELS


@pytest.mark.parametrize("text", ["", "AAAA", "A", "iVBORw0KGgo=", "=", "aGVsbG8"])
def test_other_data_have_no_pixels(text):
    assert pixels(text) == 0


def learners(nb):
    for cell in nb.cells:
        cell.metadata[KEY] = {"by": "learner"}
    return Sanitize().preprocess(nb, {})[0]


def ways(data):
    """A notebook that shows a picture in every possible way."""
    pasted = new_markdown_cell("![a](attachment:a.png)")
    pasted.attachments = from_dict({"a.png": {"image/png": data}})
    address = f"data:image/png;base64,{data}"
    outputs = [
        new_output("display_data", data={"image/png": data, "text/plain": "<Figure>"}),
        new_output("display_data", data={"text/html": f'<p>b <img src="{address}"></p>'}),
        new_output("display_data", data={"text/markdown": f"c ![d]({address})"}),
    ]
    html = new_markdown_cell(f'<img src="{address}">')
    inside = new_markdown_cell(f"![e]({address})")
    return new_notebook(cells=[pasted, html, inside, new_code_cell("1", outputs=outputs)])


def pictures_on_a_page(nb):
    """The number of pictures of a notebook that feedback shows."""
    theirs = LearnerHtml()
    pages = []
    for cell in nb.cells:
        if cell.cell_type == "markdown":
            pages.append(theirs.words(cell.source, cell.get("attachments", {})))
        else:
            pages += theirs.outputs(cell.outputs)
    return len(re.findall(r"<img[^>]* src=", "".join(pages)))


def test_a_picture_too_large_for_a_browser_is_on_no_page_and_a_note_says_so():
    assert pictures_on_a_page(learners(ways(png(40)))) == 6
    nb = learners(ways(LARGE))
    assert pictures_on_a_page(nb) == 0
    figure, html, markdown = nb.cells[-1].outputs
    assert figure.data == {"text/plain": f"<Figure>\n\n{TOO_LARGE}"}
    assert "A part of this output is not shown: img" in html.data["text/html"]
    assert "![d]" in markdown.data["text/markdown"]  # unchanged
    assert "![a]" in nb.cells[0].source
    # a notebook that an earlier version graded, without this cleaning
    assert pictures_on_a_page(ways(LARGE)) == 0
    assert str(inert(f'<img src="data:image/png;base64,{LARGE}">')) == '<img alt="' + (
        "No description has been provided for this image" + '">'
    )
    assert LEFT_OUT in "".join(LearnerHtml().outputs(ways(LARGE).cells[-1].outputs[:1]))


def test_many_large_pictures_have_one_common_limit():
    side = 4000
    one, most = png(side), MAX_PIXELS_IN_ALL // side**2
    outputs = [new_output("display_data", data={"image/png": one}) for _ in range(most + 2)]
    nb = learners(new_notebook(cells=[new_code_cell("1", outputs=outputs)]))
    shown = [output.data for output in nb.cells[0].outputs]
    assert [*map(dict, shown)] == [{"image/png": one}] * most + [{"text/plain": TOO_MANY}] * 2
