"""What is asked of every view that is drawn on a sheet, whatever it shows."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from matplotlib.figure import Figure

from utils.notebook.figures import jpeg, mime_bundle
from utils.notebook.style import WIDTH
from utils.views._canvas import TITLE, Canvas
from utils.views._text_outlines import text_width

Draw = Callable[[], tuple[Figure, str]]
SMALLEST = 13  # CSS pixels of a letter; 6.7 where the sheet is 420 pixels wide
MARGIN = 20
# Of CPU, for a redraw that a slider asks for; it takes about 0.08 where others work, too.
SECONDS = 0.15
MAX_BYTES = 90_000  # of a picture


def check(figure: Figure, alt: str, *words: str) -> None:
    """Assert that a picture has the course's width and is small, and that its words say these."""
    for word in words:
        assert word in alt
    page = mime_bundle(figure, alt=alt)["text/html"]
    assert f'width="{WIDTH}"' in page
    assert len(page) < MAX_BYTES * 4 / 3


def assert_legible(draws: Iterable[Draw], monkeypatch: pytest.MonkeyPatch) -> None:
    """Assert that no words are cut off or lie over others, and that all sheets are equally high."""
    written: list[tuple[float, float, float, float, str, float]] = []
    original = Canvas.text

    def text(self: Canvas, x: float, y: float, words: str, **how: Any) -> None:
        size = how.get("size", 13)
        wide = text_width(words, size=size, mono=how.get("mono", False))
        left = x - {"left": 0, "center": 0.5, "right": 1}[how.get("ha", "left")] * wide
        if words:
            written.append((left, y - size * 0.4, left + wide, y + size * 0.4, words, size))
        original(self, x, y, words, **how)

    monkeypatch.setattr(Canvas, "text", text)
    heights = set()
    for draw in draws:
        written.clear()
        figure, _ = draw()
        high = figure.get_figheight() * 100
        heights.add(high)
        assert sum(size == TITLE for *_, size in written) == 1, "expected a title in one line"
        for left, top, right, bottom, words, size in written:
            assert left >= MARGIN, words
            assert right <= WIDTH - MARGIN, words
            assert 0 <= top < bottom <= high, words
            assert size >= SMALLEST, words
        for one, other in itertools.combinations(written, 2):
            beside = one[2] <= other[0] or other[2] <= one[0]
            assert beside or one[3] <= other[1] or other[3] <= one[1], (one[4], other[4])
    assert len(heights) == 1


def assert_quick(draw: Draw) -> None:
    """Assert that a redraw costs little enough for a slider."""
    jpeg(draw()[0])  # letters are outlined once
    taken = []
    for _ in range(3):
        start = time.process_time()
        jpeg(draw()[0])
        taken.append(time.process_time() - start)
    assert min(taken) < SECONDS
