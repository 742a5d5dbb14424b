"""The guides of a course, `docs/` and what it links at the top of the folder, as pages of its site.

They are Markdown that reads on its own, and go to Sphinx as they are: MyST follows their links, and
Sphinx names one that leads nowhere, with its file and line.
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


def write_docs(root: Path, sources: Path) -> list[tuple[str, str]]:
    """Write the guides below `sources`; return what stands in the contents: title and address.

    It is empty for a course without guides.
    """
    first = root / f"{CONTENTS}.md"
    if not first.is_file():
        return []
    text = first.read_text(encoding="utf-8")
    linked = dict.fromkeys(LINK.findall(text))
    found = [Path(os.path.relpath(first.parent / path, root)) for path in linked]
    # one that does not exist, or lies elsewhere, is left to MyST, which names the link
    pages = [path for path in found if path.parts[0] != ".." and (root / path).is_file()]
    every = sorted((root / FOLDER).rglob("*"))
    others = [path.relative_to(root) for path in every if path.suffix in (".md", ".svg")]
    for path in dict.fromkeys([*pages, *others]):
        write_whole(sources / path, (root / path).read_bytes())
    entries = "\n".join(f"/{path.with_suffix('').as_posix()}" for path in pages)
    contents = f"\n```{{toctree}}\n:hidden:\n:titlesonly:\n\n{entries}\n```\n"
    write_whole(sources / f"{CONTENTS}.md", (text + contents).encode())
    return [(TITLE, CONTENTS)]
