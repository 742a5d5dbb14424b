"""The site's pages: which notebook each shows, where it stands, and where links between them lead.

A page is a built notebook. It is copied into a folder that Sphinx reads, with what the site adds
under the key SITE of its metadata, so that a page depends on its copy alone.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote

from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell, new_notebook

from grader import UserError
from grader.build.notebook import read, stamp, to_bytes
from grader.phase_paths import START, PhasePaths, phases, slug, translations
from grader.whole_file import write_whole

SITE = "site"
INDEX = "index"
LESSONS, LABS = "lessons", "labs"
# Pages of the site alone, in phases/.
WORDS = ("run", "glossary", "notation")


@dataclass(frozen=True)
class Page:
    """A page of the site.

    Attributes:
        docname: its address on the site, without ``.html``.
        phase: whose lesson or lab it shows, or the start page.
        notebook: the built notebook, or a file of Markdown.
        title: its name in the contents.
        below: the titles and addresses of the pages that stand below it in the contents.
    """

    docname: str
    phase: PhasePaths
    notebook: Path
    title: str
    below: tuple[tuple[str, str], ...] = ()

    @property
    def is_words(self) -> bool:
        """Whether it is no notebook but a page of words in Markdown, such as the glossary."""
        return self.notebook.suffix == ".md"

    @property
    def is_lab(self) -> bool:
        """Whether it shows a lab as released."""
        return self.docname.startswith(f"{LABS}/")

    @property
    def language(self) -> str:
        """The language of the page's text."""
        return self.phase.language or "en"


def pages(root: Path) -> list[Page]:
    """Return the site's pages, in the order of the contents, the start page first.

    Raises:
        UserError: when a notebook has not been built.
    """
    found: list[Page] = []
    top: list[Page] = []
    for phase in phases(root):
        lessons = [phase, *translations(phase)] if phase.lesson.exists() else []
        under = [page_of(lesson, lesson.page) for lesson in lessons[1:]]
        under += [page_of(phase, phase.release)] if phase.lab.exists() else []
        first = [page_of(phase, phase.page, under)] if lessons else under
        top += first
        found += [*first, *under] if lessons else first
    start = PhasePaths(root, START)
    words = [words_page(start, root / "phases" / f"{name}.md") for name in WORDS]
    return [page_of(start, start.page, [*top, *words]), *found, *words]


def words_page(start: PhasePaths, path: Path) -> Page:
    """Return the page of a file of Markdown, which begins with its title."""
    title = path.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
    return Page(path.stem, start, path, title)


def page_of(phase: PhasePaths, notebook: Path, below: Sequence[Page] = ()) -> Page:
    """Return the page that shows a notebook.

    Raises:
        UserError: when the notebook has not been built.
    """
    shown = phase.relative(notebook)
    built = read(notebook)
    if built is None:
        raise UserError(f"{shown} does not exist: run `python -m grader build`")
    title = stamp(built).get("title", notebook.stem)
    if notebook == phase.release:
        title = "Lab"
    elif phase.language:
        title = f"{title} ({phase.language})"
    elif phase.name != START:
        title = f"{phase.number} {title}"
    docname = docname_of(shown)
    assert docname is not None
    return Page(docname, phase, notebook, title, tuple((p.title, p.docname) for p in below))


def docname_of(path: str) -> str | None:
    """Return the address of the page that shows a notebook; None for any other file.

    Args:
        path: relative to the project's root, such as ``notebooks/01_tensors.ipynb``.
    """
    match PurePosixPath(path).parts:
        case ("notebooks", name) if name.endswith(".ipynb"):
            stem = name.removesuffix(".ipynb")
            return INDEX if stem == START else f"{LESSONS}/{stem}"
        case ("release", folder, name) if name == f"{folder}.ipynb":
            return f"{LABS}/{folder}"
    return None


def link(href: str, notebook: str, docname: str) -> str:
    """Return where a link of a notebook leads on the site, relative to its page.

    Links to other notebooks become links to their pages. A fragment is a heading's text with dashes
    for spaces, or the id of the cell that it begins (:func:`grader.phase_paths.anchor`). Anything
    else is returned as it is.

    Args:
        notebook: the notebook's path, relative to the project's root.
    """
    path, hash_sign, anchor = href.partition("#")
    if re.match(r"[a-z][a-z0-9+.-]*:|//", path):
        return href
    fragment = hash_sign + slug(unquote(anchor).removeprefix("cell-id="))
    if not path:
        return fragment
    target = docname_of(posixpath.normpath(posixpath.join(posixpath.dirname(notebook), path)))
    return href if target is None else uri(target, docname) + fragment


def uri(target: str, docname: str) -> str:
    """Return the relative address of one page, or file, from another page."""
    suffix = "" if PurePosixPath(target).suffix in (".png", ".js", ".ipynb") else ".html"
    return posixpath.relpath(target + suffix, posixpath.dirname(docname) or ".")


def stage(page: Page, folder: Path, more: Mapping[str, Any]) -> Path:
    """Copy a page's notebook into the folder that Sphinx reads, unless the same is there already.

    Args:
        more: what the site knows about the page and its notebook does not.
    """
    notebook: NotebookNode | None
    if page.is_words:
        text = new_markdown_cell(page.notebook.read_text(encoding="utf-8"), id=page.docname)
        notebook = new_notebook(cells=[text])
    else:
        notebook = read(page.notebook)
    assert notebook is not None
    notebook.metadata[SITE] = {
        # a page of words links as a notebook beside the lessons would
        "notebook": f"notebooks/{page.docname}.ipynb"
        if page.is_words
        else page.phase.relative(page.notebook),
        "language": page.language,
        "below": list(page.below),
        **more,
    }
    path = folder / f"{page.docname}.ipynb"
    write_whole(path, to_bytes(notebook))
    return path
