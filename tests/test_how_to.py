"""What the guides show: commands, settings and messages, compared with the code."""

import re
import shlex

import pytest

from hood.__main__ import COMMANDS, make_parser
from hood.classroom.rules.reading import read_course_file
from hood.classroom.service.hub.__main__ import check
from hood.phase_paths import ROOT

GUIDES = sorted((ROOT / "docs" / "how-to").glob("*.md"))
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"python -m hood ([^#`\n]*)")
KEYS = re.compile(
    r"^(course|sections|roster|left|late|hand_ins|labs|extensions|total|export):", re.M
)
# In sources: the characters between the two halves of a text that is written on two lines.
BREAK = re.compile(r'(?<!\\)"\s*\n\s*f?"')
# Spans of code are messages. Several backquotes in a row begin one span.
SPAN = re.compile(r"(`+)(.+?)\1")


def blocks(page, *languages):
    """Return the fenced blocks of a page that are marked as one of some languages."""
    found = BLOCK.findall(page.read_text(encoding="utf-8"))
    return [text for language, text in found if language in languages]


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.stem)
def test_the_parser_accepts_each_command(page):
    for text in blocks(page, "", "sh"):
        for words in COMMAND.findall(text):
            words = shlex.split(re.split(r" [|&;)]", words.rstrip())[0].rstrip("&) "))
            if words and words[0] in COMMANDS:
                make_parser(words[0]).parse_args(words)


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.stem)
def test_each_listing_of_course_yml_is_accepted(page, tmp_path):
    (tmp_path / "phases").symlink_to(ROOT / "phases")
    (tmp_path / "course.toml").symlink_to(ROOT / "course.toml")
    (tmp_path / "source").symlink_to(ROOT / "source")
    for text in blocks(page, "yaml"):
        if KEYS.match(text):
            (tmp_path / "course.yml").write_text(text)
            assert read_course_file(tmp_path) is not None


def test_the_hub_of_the_guide_keeps_the_pages_for_marking_open(tmp_path, capsys):
    (listing,) = blocks(ROOT / "docs/how-to/jupyterhub.md", "python")
    file = tmp_path / "jupyterhub_config.py"
    file.write_text(listing)
    assert check(file) == 0
    assert capsys.readouterr().out.strip() in (ROOT / "docs/how-to/jupyterhub.md").read_text()


def test_messages_of_the_troubleshooting_page_are_those_of_the_code():
    files = [*ROOT.glob("hood/**/*.py"), *ROOT.glob("utils/**/*.py")]
    files += [ROOT / "Makefile", ROOT / "nbgrader_config.py"]
    sources = [BREAK.sub("", file.read_text(encoding="utf-8")) for file in files]
    every = " ".join("\n".join(sources).split())
    page = (ROOT / "docs/how-to/troubleshooting.md").read_text(encoding="utf-8")
    rows = [row.split(" | ")[0] for row in page.splitlines() if row.startswith("| ")]
    messages = [message for row in rows for _, message in SPAN.findall(row)]
    assert len(messages) > 30
    assert [message for message in messages if message not in every] == []
