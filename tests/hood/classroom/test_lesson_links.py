"""A link to a lesson works wherever the lab is opened, or becomes plain text."""

import time

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell
from nbgrader.utils import compute_checksum

from hood.addresses import LESSONS, lesson_url
from hood.classroom.lesson_links import settle
from hood.learner.cell_matching import in_words
from hood.phase_paths import ROOT, PhasePaths

IN_COPY_OF = ("../../notebooks/", "../lesson_")
SITE = "https://example.org/course/"
TEXT = """It follows [lesson
01](../../notebooks/01_tensors.ipynb), as [this](https://example.org/x) says.
From the lesson: [The address: `i`](../../notebooks/01_tensors.ipynb#cell-id=the-address-i)."""
ON_SITE = f"""It follows [lesson
01]({SITE}{LESSONS}/01_tensors.html), as [this](https://example.org/x) says.
From the lesson: [The address: `i`]({SITE}{LESSONS}/01_tensors.html#the-address-i)."""
WORDS = """It follows lesson
01, as [this](https://example.org/x) says.
From the lesson: “The address: `i`”."""


@pytest.mark.parametrize(("url", "expected"), [(SITE, ON_SITE), ("", WORDS)])
def test_a_link_leads_to_the_site_or_becomes_text(url, expected):
    cell = new_markdown_cell(TEXT, metadata={"nbgrader": {"checksum": "x", "grade_id": "why"}})
    for _ in range(2):
        settle(cell, url)
        assert cell.source == expected
        assert cell.metadata.nbgrader.checksum == compute_checksum(cell)
    copied = new_markdown_cell(TEXT.replace(*IN_COPY_OF))
    settle(copied, url)
    assert copied.source == expected
    assert not settle(new_code_cell(TEXT), url)


def test_all_forms_of_the_links_are_the_same_lab():
    for text in (TEXT, TEXT.replace(*IN_COPY_OF), ON_SITE, WORDS):
        assert in_words(text) == WORDS


@pytest.mark.parametrize("part", ["[", "[](https://", "[](https://x/lessons/01_", "/lessons/"])
def test_a_learners_text_takes_little_time(part):
    began = time.process_time()
    in_words("[](https://" + part * 100_000)
    assert time.process_time() - began < 2


def test_the_course_links_its_notebooks():
    assert lesson_url() == ""
    release = PhasePaths(ROOT, "01_tensors").release.read_text(encoding="utf-8")
    assert "(../../notebooks/01_tensors.ipynb)" in release
