"""Requirements on a picture and its words."""

from __future__ import annotations

from matplotlib.figure import Figure

from utils.notebook.figures import mime_bundle
from utils.notebook.style import WIDTH

MAX_BYTES = 90_000  # of a picture


def check(figure: Figure, alt: str, *words: str) -> None:
    """Assert that a picture has the course's width, is small, and has these words in its text."""
    for word in words:
        assert word in alt
    page = mime_bundle(figure, alt=alt)["text/html"]
    assert f'width="{WIDTH}"' in page
    assert len(page) < MAX_BYTES * 4 / 3
