"""The reference pages, each with the function that makes it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from hood.authoring.reference import top_level
from hood.authoring.reference.commands import commands
from hood.authoring.reference.http import http
from hood.authoring.reference.keys import course_toml, course_yml
from hood.authoring.reference.labs import lab
from hood.authoring.reference.layout import code, table
from hood.authoring.reference.limits import fixed_limits
from hood.authoring.reference.sentences import (
    markdown,
    summary,
)

FOLDER = Path("docs", "reference")


def top(_root: Path) -> Iterator[str]:
    yield "# Files and folders"
    yield summary(top_level)
    for heading, group in top_level.GROUPS.items():
        yield f"## {heading}"
        rows = ([code(name), markdown(said), holds(name)] for name, said in group.items())
        yield table(["name", "what it is", "contains"], rows)


def holds(name: str) -> str:
    if name in top_level.SECRET:
        return "a secret"
    return "personal data" if name in top_level.PERSONAL else ""


PAGES: Mapping[str, Callable[[Path], Iterator[str]]] = {
    "commands.md": commands,
    "course-yml.md": course_yml,
    "course-toml.md": course_toml,
    "lab.md": lab,
    "limits.md": fixed_limits,
    "http.md": http,
    "files.md": top,
}


def written(root: Path) -> dict[str, str]:
    """Return the pages by their names."""
    return {name: "\n\n".join(filter(None, page(root))) + "\n" for name, page in PAGES.items()}
