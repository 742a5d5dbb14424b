"""The site's pages: which notebook each shows, and where it stands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell

from hood import UserError
from hood.addresses import LABS, docname_of
from hood.authoring.notebooks.notebook import read, stamp
from hood.phase_paths import START, PhasePaths, phases

# Pages of the site alone, in phases/.
WORDS = ("run", "glossary", "notation")


@dataclass(frozen=True)
class Page:
    docname: str  # its address on the site, without ``.html``
    phase: PhasePaths  # whose lesson or lab it shows, or the start page
    notebook: Path  # the built notebook, or a file of Markdown
    title: str
    below: tuple[tuple[str, str], ...] = ()  # titles and addresses, below it in the contents

    @property
    def is_words(self) -> bool:
        """Whether it is no notebook but a page of words in Markdown, such as the glossary."""
        return self.notebook.suffix == ".md"

    @property
    def is_lab(self) -> bool:
        return self.docname.startswith(f"{LABS}/")

    @property
    def path(self) -> str:
        """The notebook's path from the project's root; words link as a notebook of lessons does."""
        if self.is_words:
            return f"notebooks/{self.docname}.ipynb"
        return self.phase.relative(self.notebook)

    def cells(self) -> list[NotebookNode]:
        """Return the notebook's cells as they are built, or the words as one cell."""
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
    for path in (root / "phases" / f"{name}.md" for name in WORDS):
        title = path.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
        words.append(Page(path.stem, start, path, title))
    return [page_of(start, start.page, [*top, *words]), *found, *words]


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
