"""Make pages of the site from a course's guides: `docs/`, and the linked files beside `docs/`.

The headings of the guides' first page are groups in the site's contents.

The guides are plain Markdown and go to Sphinx unchanged. MyST follows their links, and Sphinx
reports each broken link with its file and line. The site has no other files of the course, such as
answers. A link to such a file becomes plain text.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from hood.atomic_files import write_whole

FOLDER = "docs"
CONTENTS = f"{FOLDER}/README"  # the page that links all others
TITLE = "Guides"
LINK = re.compile(r"\]\(([^)#\s:]+\.md)[)#]")
HEADING = re.compile(r"^## +(.+)\n", re.MULTILINE)
SHOWN = ".md", ".svg"
FILE_LINK = re.compile(r"\[([^]]+)\]\(([^)#\s:]+)\)")


def write_docs(root: Path, sources: Path) -> dict[str, list[str]]:
    """Write the guides' pages into `sources`, and return the entries for the contents.

    The entries are grouped by the headings of the first page.

    Pages that are linked above the first heading are entries of an empty heading. The first page is
    the first of these entries. A page that is linked several times is below the first heading that
    links to it. A course without guides has no headings.
    """
    first = root / f"{CONTENTS}.md"
    if not first.is_file():
        return {}
    text = first.read_text(encoding="utf-8")
    top, *rest = HEADING.split(text)
    linked: dict[Path, str] = {}
    for heading, links in [("", top), *zip(rest[::2], rest[1::2], strict=True)]:
        for path in LINK.findall(links):
            linked.setdefault(Path(os.path.relpath(first.parent / path, root)), heading)
    # MyST reports links to pages that do not exist or are outside the course
    pages = [path for path in linked if path.parts[0] != ".." and (root / path).is_file()]
    every = sorted((root / FOLDER).rglob("*"))
    others = [path.relative_to(root) for path in every if path.suffix in SHOWN]
    for path in dict.fromkeys([*pages, *others]):
        content = (root / path).read_text(encoding="utf-8")
        write_whole(sources / path, without_files(content, (root / path).parent).encode())
    groups = {"": [f"{TITLE} </{CONTENTS}>"]}
    for path in pages:
        groups.setdefault(linked[path], []).append(f"/{path.with_suffix('').as_posix()}")
    return groups


def without_files(content: str, folder: Path) -> str:
    """Return a page without its links to files in ``folder`` that the site does not have."""

    def shown(link: re.Match[str]) -> str:
        words, path = link.groups()
        lost = Path(path).suffix not in SHOWN and (folder / path).is_file()
        return words if lost else link[0]

    return FILE_LINK.sub(shown, content)
