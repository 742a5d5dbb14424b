"""The site's pages: each page's notebook, and the page's place in the contents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell

from hood import UserError
from hood.addresses import LABS, docname_of
from hood.authoring.notebooks.notebook import read, stamp
from hood.phase_paths import START, PhasePaths, phases

# Pages that only the site has, in phases/.
WORDS = ("run", "glossary", "notation")


@dataclass(frozen=True)
class Page:
    docname: str  # its address on the site, without ``.html``
    phase: PhasePaths  # the phase of its lesson or lab, or the start page
    notebook: Path  # the built notebook, or a file of Markdown
    title: str
    below: tuple[tuple[str, str], ...] = ()  # titles and addresses of pages below it
    guides: Mapping[str, Sequence[str]] = field(default_factory=dict)  # the guides, by heading

    @property
    def is_words(self) -> bool:
        """Whether the page is Markdown, such as the glossary, and not a notebook."""
        return self.notebook.suffix == ".md"

    @property
    def is_lab(self) -> bool:
        return self.docname.startswith(f"{LABS}/")

    @property
    def path(self) -> str:
        """The notebook's path from the project's root; a Markdown page has a path like a lesson."""
        if self.is_words:
            return f"notebooks/{self.docname}.ipynb"
        return self.phase.relative(self.notebook)

    def cells(self) -> list[NotebookNode]:
        """Return the built notebook's cells, or a page of Markdown as one cell."""
        text = self.notebook.read_text(encoding="utf-8")
        if self.is_words:
            return [new_markdown_cell(text)]
        return list(nbformat.reads(text, as_version=4).cells)


def pages(root: Path) -> list[Page]:
    """Return the site's pages, in the order of the contents, the start page first."""
    found: list[Page] = []
    top: list[Page] = []
    for phase in phases(root):
        lab = [page_of(phase, phase.release)] if phase.lab.exists() else []
        lesson = [page_of(phase, phase.page, lab)] if phase.lesson.exists() else []
        top += lesson or lab
        found += [*lesson, *lab]
    start = PhasePaths(root, START)
    words = []
    if not start.lesson.is_file():
        raise UserError("a site needs a start page: write phases/start.py first")
    for path in words_of(root):
        title = path.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
        words.append(Page(path.stem, start, path, title))
    return [page_of(start, start.page, [*top, *words]), *found, *words]


def words_of(root: Path) -> list[Path]:
    """Return the files of the pages that only the site has. A course may lack any of them."""
    every = (root / "phases" / f"{name}.md" for name in WORDS)
    return [path for path in every if path.is_file()]


def page_of(phase: PhasePaths, notebook: Path, below: Sequence[Page] = ()) -> Page:
    shown = phase.relative(notebook)
    built = read(notebook)
    if built is None:
        raise UserError(f"{shown} does not exist: run `python -m hood build`")
    title = stamp(built).get("title", notebook.stem)
    if notebook == phase.release:
        title = "Lab"
    elif phase.name != START:
        title = f"{phase.number} {title}"
    docname = docname_of(shown)
    assert docname is not None
    return Page(docname, phase, notebook, title, tuple((p.title, p.docname) for p in below))
