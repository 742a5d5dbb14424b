"""What the README and the guides say of the project: their links, and how long the README is."""

import re

import pytest

from hood.__main__ import COMMANDS
from hood.authoring.site.docs import write_docs
from hood.phase_paths import ROOT, slug

PAGES = [ROOT / name for name in ("README.md", "SECURITY.md", "CONTRIBUTING.md", "AGENTS.md")]
PAGES += sorted((ROOT / "docs").rglob("*.md"))
LINK = re.compile(r"\]\(([^)\s]+)\)|(?:src|srcset)=\"([^\"]+)\"")
FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
RUNS = re.compile(r"python -m hood ([a-z]\w*)")


def named(path):
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_each_link_leads_to_a_file_and_a_heading(page):
    text = FENCED.sub("", page.read_text(encoding="utf-8"))
    for link in map("".join, LINK.findall(text)):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, section = link.partition("#")
        target = (page.parent / path) if path else page
        assert target.exists(), link
        if section:
            words = FENCED.sub("", target.read_text(encoding="utf-8"))
            headings = re.findall(r"^#+ (.+)$", words, re.MULTILINE)
            assert section in [slug(heading) for heading in headings], link


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_each_command_is_one(page):
    assert set(RUNS.findall(page.read_text(encoding="utf-8"))) <= set(COMMANDS)


def test_the_readme_is_short():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    words = re.sub(r"<[^>]+>|[|#`*]|\]\([^)]*\)|-{3,}", " ", text).split()
    assert len(words) <= 700
    assert "make demo" in text
    assert "make test" in text


def test_guides_are_pages_of_the_site_and_a_course_without_them_has_none(tmp_path):
    assert write_docs(tmp_path, tmp_path / "sources") == []
    (tmp_path / "docs" / "a").mkdir(parents=True)
    (tmp_path / "docs" / "README.md").write_text(
        "# Guides\n\n[one](a/one.md), [top](../TOP.md#x), [no](no.md), [no](../../x.md)\n"
    )
    (tmp_path / "docs" / "a" / "one.md").write_text("# One\n")
    (tmp_path / "TOP.md").write_text("# Top\n")
    assert write_docs(tmp_path, tmp_path / "sources") == [("Guides", "docs/README")]
    sources = tmp_path / "sources"
    written = {path.relative_to(sources).as_posix() for path in sources.rglob("*.md")}
    assert written == {"TOP.md", "docs/README.md", "docs/a/one.md"}
    first = (sources / "docs" / "README.md").read_text()
    assert "```{toctree}\n:hidden:\n:titlesonly:\n\n/docs/a/one\n/TOP\n```" in first
