"""Where links to lessons lead from a lab that lies outside of the course's own folders.

A lab of ``release/`` links ``../../notebooks/NN_name.ipynb``, which a learner who fetched the lab
through the exchange, or who reads feedback, does not have. There the link leads to the course's
site, the setting ``lesson_url``; without one it is words. The files of ``release/`` are tracked by
git, and no setting changes them: links are settled in the copy that leaves the folder.
"""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path
from urllib.parse import urljoin

import nbformat
from nbformat.notebooknode import NotebookNode
from nbgrader.utils import compute_checksum

from hood import UserError
from hood.learner.cell_matching import LINK, in_words
from hood.phase_paths import ROOT, PhasePaths, anchor, lab_named, opened

TABLE, SETTING, REPOSITORY = "open-the-hood", "lesson_url", "repository_url"
URL = re.compile(r"https?://[^\s()\[\]<>\"']+")


def lesson_url(root: Path = ROOT) -> str:
    """Return the address of the folder with the site's start page; empty without the setting.

    A class's own, ``course: {lesson_url: ...}`` in its ``course.yml``, comes first. Raises
    UserError when the setting is not an address, or its file can't be read.
    """
    if own := _of_class(root):
        return own
    said = _setting(root, SETTING, "the course's site, such as https://example.org/open-the-hood/")
    return f"{said.rstrip('/')}/" if said else ""


def repository_url(root: Path = ROOT) -> str:
    """Return the address from which the course can be cloned; empty without the setting.

    Raises UserError when the setting is not an address, or its file can't be read.
    """
    return _setting(root, REPOSITORY, "the repository, such as https://example.org/course.git")


def _setting(root: Path, name: str, what: str) -> str:
    """Return an address that pyproject.toml gives; empty without one.

    Args:
        what: whose address it should be, for the error message.
    """
    path = root / "pyproject.toml"
    if not path.exists():
        return ""
    try:
        project = tomllib.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise UserError(f"{path} can't be read: {error}") from None
    said = project.get("tool", {}).get(TABLE, {}).get(name, "")
    if said and not (isinstance(said, str) and URL.fullmatch(said)):
        raise UserError(f"{path}: {name} should be the address of {what}, or empty; got {said!r}")
    return str(said)


def _of_class(root: Path) -> str:
    if not (root / "course.yml").exists():  # as in a learner's copy: no need of what reads one
        return ""
    from hood.classroom.rules.reading import read_course_file

    file = read_course_file(root)
    said = file.course.lesson_url if file else ""
    return f"{said.rstrip('/')}/" if said else ""


def link_to(phase: PhasePaths, heading: str, folder: Path) -> str:
    """Return the address of a lesson's section for a notebook in a folder; empty if there is none.

    Raises UserError when the setting ``lesson_url`` is not an address.
    """
    section = f"#{anchor(heading)}"
    if url := lesson_url(phase.root):
        return _on_site(f"{phase.page.name}{section}", url)
    page = opened(phase.page, phase.root)
    reached = folder.is_relative_to(phase.root) and page.exists()
    return f"{os.path.relpath(page, folder)}{section}" if reached else ""


def section_on_site(lesson: str, heading: str, url: str, root: Path = ROOT) -> str:
    """Return the address of a lesson's section on a site; empty without a site or such a lesson.

    Args:
        lesson: its two digits.
        url: the site's, as :func:`lesson_url` gives it.
    """
    page = PhasePaths(root, lab_named(root, lesson)).page
    if not url or not lesson or not page.exists():
        return ""
    return _on_site(f"{page.name}#{anchor(heading)}", url)


def settle(cell: NotebookNode, url: str) -> bool:
    """Let a lab's text cell link the lessons on a site, or name them in words without a site.

    It returns whether the cell changed. nbgrader's checksum of its text is kept true.
    """

    def settled(link: re.Match[str]) -> str:
        if not link["there"]:
            return link[0]
        return f"[{link['text']}]({_on_site(link['page'], url)})" if url else in_words(link[0])

    if cell.cell_type != "markdown":
        return False
    before = cell.source
    cell.source = LINK.sub(settled, before)
    if cell.source != before and "checksum" in cell.metadata.get("nbgrader", {}):
        cell.metadata.nbgrader.checksum = compute_checksum(cell)
    return cell.source != before


def settled_file(data: bytes, url: str) -> bytes:
    """Return a lab's notebook with its links settled; the same bytes where no link changes.

    Raises ValueError for a file that is not a notebook.
    """
    from hood.authoring.notebook import to_bytes  # here, because few commands hand a lab out

    try:
        notebook = nbformat.reads(data.decode(), as_version=4)
        changed = [settle(cell, url) for cell in notebook.cells]
    except (AttributeError, KeyError, TypeError, nbformat.ValidationError) as error:
        raise ValueError(f"it is not a notebook: {error}") from None
    return to_bytes(notebook) if any(changed) else data


def _on_site(page: str, url: str) -> str:
    """Return the address on the site of a lesson's notebook, and of its section if it has one."""
    from hood.authoring.site.pages import INDEX, link  # here, because few commands make such a link

    return urljoin(url, link(f"../../notebooks/{page}", "release/lab/lab.ipynb", INDEX))
