"""Addresses of lessons: in a copy of the course, and on its site."""

from __future__ import annotations

import os
import posixpath
import re
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urljoin

from hood import UserError
from hood.course import FILE, course
from hood.phase_paths import ROOT, START, PhasePaths, anchor, lab_named, opened, slug

URL = re.compile(r"https?://[^\s()\[\]<>\"']+")
CLASS_FILE = "course.yml"  # the rules of a class; `hood.classroom.rules` reads all of it
OLD_TABLE = re.compile(r"^\[tool\.open-the-hood\]", re.MULTILINE)
INDEX = "index"
LESSONS, LABS = "lessons", "labs"  # folders of the site


def lesson_url(root: Path = ROOT) -> str:
    """Return the address of the folder with the site's start page; empty without the setting.

    A class's own, ``course: {lesson_url: ...}`` in its ``course.yml``, comes before the one in
    ``course.toml``. Raises UserError when the setting is not an address, or its file can't be read.
    """
    said = _of_class(root) or _of_course(
        root, "lesson_url", "the course's site, such as https://example.org/open-the-hood/"
    )
    return f"{said.rstrip('/')}/" if said else ""


def repository_url(root: Path = ROOT) -> str:
    """Return the address from which the course can be cloned; empty without the setting.

    Raises UserError when the setting is not an address, or its file can't be read.
    """
    what = "the repository, such as https://example.org/course.git"
    return _of_course(root, "repository_url", what)


def _of_course(root: Path, setting: str, what: str) -> str:
    """Return an address that course.toml gives; empty without one.

    Args:
        what: whose address it should be, for the error message.
    """
    old = root / "pyproject.toml"
    if old.exists() and OLD_TABLE.search(old.read_text(encoding="utf-8")):
        raise UserError(
            f"{old}: the table [tool.open-the-hood] is not read any more. Move its lesson_url and "
            f"repository_url to {root / FILE}, above the first table, and remove it."
        )
    said = getattr(course(root), setting)
    if said and not (isinstance(said, str) and URL.fullmatch(said)):
        raise UserError(
            f"{root / FILE}: {setting} should be the address of {what}, or empty; got {said!r}"
        )
    return str(said)


def _of_class(root: Path) -> str:
    """Return the address that a class's rules give; empty without one.

    One key is read here, since a notebook asks for it; what else is wrong in the file is said where
    all of it is read.
    """
    path = root / CLASS_FILE
    if not path.exists():
        return ""
    import yaml  # here, because a learner's copy has no such file

    try:
        # Every scalar as a text: a date that does not exist is no reason to stop here.
        said = yaml.load(path.read_text(encoding="utf-8"), yaml.BaseLoader)
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise UserError(f"{path} can't be read: {error}") from None
    table = said.get("course") if isinstance(said, dict) else None
    url = table.get("lesson_url", "") if isinstance(table, dict) else ""
    if url and not (isinstance(url, str) and URL.fullmatch(url)):
        raise UserError(
            f"{path}: course.lesson_url: expected the address of the course's site, such as "
            f"https://example.org/course/, got {url!r}"
        )
    return str(url)


def link_to(phase: PhasePaths, heading: str, folder: Path) -> str:
    """Return the address of a lesson's section for a notebook in a folder; empty if there is none.

    Raises UserError when the setting ``lesson_url`` is not an address.
    """
    section = f"#{anchor(heading)}"
    if url := lesson_url(phase.root):
        return on_site(f"{phase.page.name}{section}", url)
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
    return on_site(f"{page.name}#{anchor(heading)}", url)


def on_site(page: str, url: str) -> str:
    """Return the address on the site of a lesson's notebook, and of its section if it has one."""
    return urljoin(url, link(f"../../notebooks/{page}", "release/lab/lab.ipynb", INDEX))


def docname_of(path: str) -> str | None:
    """Return a built notebook's address on the site, without ``.html``; None if it has none."""
    match PurePosixPath(path).parts:
        case ("notebooks", name) if name.endswith(".ipynb"):
            stem = name.removesuffix(".ipynb")
            return INDEX if stem == START else f"{LESSONS}/{stem}"
        case ("release", folder, name) if name == f"{folder}.ipynb":
            return f"{LABS}/{folder}"
    return None


def link(href: str, notebook: str, docname: str | None) -> str:
    """Return where a link of a notebook leads on the site; others come back as they are.

    It is relative to a page (`docname`) or, with None, names the file that a page is made of, as
    Sphinx wants it in words, where it looks whether it is there. A fragment, the text or the id of
    a heading's cell, becomes the heading's anchor.
    """
    path, hash_sign, fragment = href.partition("#")
    if re.match(r"[a-z][a-z0-9+.-]*:|//", path):
        return href
    fragment = hash_sign + slug(unquote(fragment).removeprefix("cell-id="))
    if not path:
        return fragment
    target = docname_of(posixpath.normpath(posixpath.join(posixpath.dirname(notebook), path)))
    if target is None:
        return href
    return (f"/{target}.md" if docname is None else uri(target, docname)) + fragment


def uri(target: str, docname: str) -> str:
    """Return the relative address of one page, or file, from another page."""
    suffix = "" if PurePosixPath(target).suffix in (".png", ".js", ".ipynb") else ".html"
    return posixpath.relpath(target + suffix, posixpath.dirname(docname) or ".")
