"""A link to a lesson leads to the lesson wherever the lab is opened, or it is words."""

import time

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell
from nbgrader.utils import compute_checksum

from hood import UserError
from hood.authoring.site.pages import LESSONS
from hood.classroom.lesson_links import in_words, lesson_url, link_to, repository_url, settle
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
def test_a_link_leads_to_the_site_or_is_words(url, expected):
    cell = new_markdown_cell(TEXT, metadata={"nbgrader": {"checksum": "x", "grade_id": "why"}})
    for _ in range(2):
        settle(cell, url)
        assert cell.source == expected
        assert cell.metadata.nbgrader.checksum == compute_checksum(cell)
    copied = new_markdown_cell(TEXT.replace(*IN_COPY_OF))
    settle(copied, url)
    assert copied.source == expected
    assert not settle(new_code_cell(TEXT), url)


def test_all_its_forms_are_the_same_lab():
    for text in (TEXT, TEXT.replace(*IN_COPY_OF), ON_SITE, WORDS):
        assert in_words(text) == WORDS


@pytest.mark.parametrize("part", ["[", "[](https://", "[](https://x/lessons/01_", "/lessons/"])
def test_what_a_learner_wrote_takes_little_time(part):
    began = time.process_time()
    in_words("[](https://" + part * 100_000)
    assert time.process_time() - began < 2


def test_a_link_is_made_only_where_the_lesson_is(tmp_path):
    phase = PhasePaths(tmp_path, "01_tensors")
    work, elsewhere = tmp_path / "work" / phase.name, tmp_path.parent / "fetched"
    assert link_to(phase, "Keys: two", work) == ""
    phase.page.parent.mkdir()
    phase.page.touch()
    assert link_to(phase, "Keys: two", work) == "../../notebooks/01_tensors.ipynb#cell-id=keys-two"
    assert link_to(phase, "Keys: two", elsewhere) == ""
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "lesson_01_tensors.ipynb").touch()
    assert link_to(phase, "Keys: two", work) == "../lesson_01_tensors.ipynb#cell-id=keys-two"
    (tmp_path / "pyproject.toml").write_text(f'[tool.open-the-hood]\nlesson_url = "{SITE[:-1]}"')
    for folder in (work, elsewhere):
        assert link_to(phase, "Keys: two", folder) == f"{SITE}lessons/01_tensors.html#keys-two"


def test_a_classs_own_site_comes_first(tmp_path):
    (tmp_path / "pyproject.toml").write_text('[tool.open-the-hood]\nlesson_url = "https://a.org"')
    rules = tmp_path / "course.yml"
    rules.write_text("course: {title: Ours}")
    assert lesson_url(tmp_path) == "https://a.org/"
    rules.write_text(f"course: {{lesson_url: {SITE[:-1]}}}")
    assert lesson_url(tmp_path) == SITE
    rules.write_text("course: {lesson_url: /srv/site}")
    with pytest.raises(UserError, match=r"course.yml:1: course.lesson_url: expected the address"):
        lesson_url(tmp_path)


@pytest.mark.parametrize("said", ['"/srv/site"', "3", '"https://x y"'])
def test_a_setting_that_is_no_address_is_refused(said, tmp_path):
    (tmp_path / "pyproject.toml").write_text(f"[tool.open-the-hood]\nlesson_url = {said}")
    with pytest.raises(UserError, match="lesson_url should be the address"):
        lesson_url(tmp_path)


def test_the_repository_has_the_address_that_is_set_or_none(tmp_path):
    assert repository_url(tmp_path) == ""
    assert repository_url() == ""  # nobody has said where this course is kept
    settings = tmp_path / "pyproject.toml"
    settings.write_text('[tool.open-the-hood]\nrepository_url = "https://a.org/c.git"')
    assert repository_url(tmp_path) == "https://a.org/c.git"
    settings.write_text('[tool.open-the-hood]\nrepository_url = "a.org"')
    with pytest.raises(UserError, match="repository_url should be the address"):
        repository_url(tmp_path)


def test_the_course_as_it_is_links_its_notebooks():
    assert lesson_url() == ""
    release = PhasePaths(ROOT, "01_tensors").release.read_text(encoding="utf-8")
    assert "(../../notebooks/01_tensors.ipynb)" in release
