"""Programs, blocks and masks: the numbers in the picture's words, and what is left out of it."""

from __future__ import annotations

import importlib

import pytest

from utils.notebook.figures import mime_bundle

view = importlib.import_module("utils.views.block_mask")


@pytest.mark.parametrize(
    ("n", "block", "words"),
    [
        (10, 4, ["3 programs of 4 cover 10 elements", "elements 8 to 9, then 2 masked"]),
        (8, 4, ["exactly", "Program 1: elements 4 to 7."]),
        (1, 1, ["1 program of 1 covers 1 element exactly", "Program 0: element 0."]),
        (3, 4, ["turns off 1 place of the last"]),
        (0, 4, ["No elements, no programs"]),
        (600, 256, ["3 programs of 256", "168 places"]),
        (100_000, 1024, ["98 programs of 1,024", "Program 97: elements 99328 to 99999, then 352"]),
    ],
)
def test_the_words_describe_the_drawing(n, block, words):
    figure, alt = view.draw(n, block)
    for word in words:
        assert word in alt
    assert len(mime_bundle(figure, alt=alt)["text/html"]) < 120_000


def test_a_long_grid_shows_its_ends():
    assert view.shown_programs(700, 100) == [0, 1, 2, 3, 4, 5, 6]
    assert view.shown_programs(800, 100) == [0, 1, 2, 3, None, 6, 7]
