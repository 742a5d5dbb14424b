"""What the README and the guides say about the project; their links; the length of the README."""

import re
from dataclasses import replace

import pytest

from hood.__main__ import COMMANDS
from hood.authoring.site.docs import write_docs
from hood.authoring.site.markdown import contents
from hood.authoring.site.pages import Page
from hood.phase_paths import ROOT, PhasePaths, slug

PAGES = [ROOT / name for name in ("README.md", "SECURITY.md", "CONTRIBUTING.md", "AGENTS.md")]
PAGES += sorted((ROOT / "docs").rglob("*.md"))
LINK = re.compile(r"\]\(([^)\s]+)\)|(?:src|srcset)=\"([^\"]+)\"")
FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
# A path in backquotes, and a name that is in that file: "`copy_of` in `hood/phase_paths.py`"
PATH = re.compile(
    r"(?:`(\w+)`(?: and `\w+`)? (?:in|of|to) )?`([\w./-]+/[\w.-]+|\w+\.(?:py|html|js))`"
)
AUTHORS = [ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs" / "authors").glob("*.md"))]
OF_A_PHASE = ("lab.py", "lesson.py", "checks.py", "__init__.py")
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
def test_each_named_command_exists(page):
    assert set(RUNS.findall(page.read_text(encoding="utf-8"))) <= set(COMMANDS)


@pytest.mark.parametrize(("page", "most"), [("README.md", 700), ("CONTRIBUTING.md", 900)])
def test_what_is_read_first_is_short(page, most):
    text = (ROOT / page).read_text(encoding="utf-8")
    words = re.sub(r"<[^>]+>|[|#`*]|\]\([^)]*\)|-{3,}", " ", text).split()
    assert len(words) <= most
    assert "make test" in text


@pytest.mark.parametrize("page", AUTHORS, ids=named)
def test_each_path_for_authors_exists_and_has_the_name_before_it(page):
    """A name without a folder is in the folder of the path before this name, in the same line."""
    found = 0
    for line in FENCED.sub("", page.read_text(encoding="utf-8")).splitlines():
        folder = ROOT
        for name, path in PATH.findall(line):
            if "NN" in path or path in OF_A_PHASE:
                continue
            place = ROOT / path if (ROOT / path).exists() else folder / path
            assert place.exists(), path
            assert not (name and place.is_file()) or name in place.read_text(), (name, path)
            folder = place if place.is_dir() else place.parent
            found += 1
    assert found > 100 or page.stem != "where-a-change-goes"


def test_guides_are_pages_of_the_site_by_heading_and_a_course_without_them_has_none(tmp_path):
    assert write_docs(tmp_path, tmp_path / "sources") == {}
    (tmp_path / "docs" / "a").mkdir(parents=True)
    (tmp_path / "docs" / "README.md").write_text(
        "# Guides\n\n[zero](a/zero.md)\n\n"
        "## For learners\n\n[one](a/one.md), [top](../TOP.md#x)\n\n"
        "## For teachers\n\n[one](a/one.md), [two](a/two.md), [no](no.md), [no](../../x.md)\n"
    )
    for name in ("zero", "one", "two"):
        (tmp_path / "docs" / "a" / f"{name}.md").write_text(f"# {name}\n")
    (tmp_path / "answers.toml").touch()
    links = "[an *answer*](../../answers.toml), [no](../../no.toml), [first](../README.md)"
    (tmp_path / "docs" / "a" / "one.md").write_text(f"# One\n\n{links}\n")
    (tmp_path / "TOP.md").write_text("# Top\n")
    sources = tmp_path / "sources"
    assert write_docs(tmp_path, sources) == {
        "": ["Guides </docs/README>", "/docs/a/zero"],
        "For learners": ["/docs/a/one", "/TOP"],
        "For teachers": ["/docs/a/two"],
    }
    written = {path.relative_to(sources).as_posix() for path in sources.rglob("*.md")}
    names = ("docs/README", "docs/a/zero", "docs/a/one", "docs/a/two", "TOP")
    assert written == {f"{name}.md" for name in names}
    one = (sources / "docs" / "a" / "one.md").read_text()
    assert one == "# One\n\nan *answer*, [no](../../no.toml), [first](../README.md)\n"
    page = Page("index", PhasePaths(tmp_path, "start"), tmp_path / "start.ipynb", "Start")
    page = replace(page, below=(("01 One", "one"),), guides={"For learners": ["/docs/a/one"]})
    assert contents(page) == (
        "```{toctree}\n:hidden:\n:titlesonly:\n\n01 One </one>\n```\n\n"
        "```{toctree}\n:hidden:\n:titlesonly:\n:caption: For learners\n\n/docs/a/one\n```"
    )


def test_each_guide_is_linked_from_the_contents():
    first = ROOT / "docs" / "README.md"
    text = first.read_text(encoding="utf-8")
    linked = {(first.parent / link).resolve() for link, _ in LINK.findall(text)}
    assert {*first.parent.rglob("*.md")} - {first} <= linked
