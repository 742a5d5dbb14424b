"""Make the addresses of lessons in a copy of the course and on the course's site."""

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
GITHUB = re.compile(r"https://github\.com/([\w.-]+/[\w.-]+?)(?:\.git)?/?")
CLASS_FILE = "course.yml"  # the rules of a class; `hood.classroom.rules` reads the whole file
OLD_TABLE = re.compile(r"^\[tool\.open-the-hood\]", re.MULTILINE)
INDEX = "index"
LESSONS, LABS = "lessons", "labs"  # folders of the site


def lesson_url(root: Path = ROOT) -> str:
    """Return the address of the folder with the site's start page; empty if no address is set.

    ``course: {lesson_url: ...}`` in a class's ``course.yml`` overrides the setting in
    ``course.toml``. Raises UserError when the setting is not an address, or its file can't be read.
    """
    said = _of_class(root) or _of_course(
        root, "lesson_url", "the course's site, such as https://example.org/open-the-hood/"
    )
    return f"{said.rstrip('/')}/" if said else ""


def repository_url(root: Path = ROOT) -> str:
    """Return the address from which the course can be cloned; empty if no address is set.

    Raises UserError when the setting is not an address, or its file can't be read.
    """
    what = "the repository, such as https://example.org/course.git"
    return _of_course(root, "repository_url", what)


def codespaces_url(repository: str) -> str:
    """Return a GitHub repository's address in Codespaces; empty for any other repository."""
    found = GITHUB.fullmatch(repository)
    return f"https://codespaces.new/{found[1]}?quickstart=1" if found else ""


def colab_url(repository: str, notebook: str) -> str:
    """Return the Colab address of a GitHub repository's notebook; empty for any other repository.

    Args:
        notebook: the notebook's path in the repository.
    """
    found = GITHUB.fullmatch(repository)
    main = f"{found[1]}/blob/main/{notebook}" if found else ""
    return main and f"https://colab.research.google.com/github/{main}"


def _of_course(root: Path, setting: str, what: str) -> str:
    """Return an address from course.toml; empty if the file does not have it.

    Args:
        what: what the address should lead to, for the error message.
    """
    old = root / "pyproject.toml"
    if old.exists() and OLD_TABLE.search(old.read_text(encoding="utf-8")):
        raise UserError(
            f"{old}: the table [tool.open-the-hood] is not read any more. Move its lesson_url and "
            f"repository_url to {root / FILE}, above the first table, and remove the old table."
        )
    said = getattr(course(root), setting)
    if said and not (isinstance(said, str) and URL.fullmatch(said)):
        raise UserError(
            f"{root / FILE}: {setting} should be the address of {what}, or empty; got {said!r}"
        )
    return str(said)


def _of_class(root: Path) -> str:
    """Return the address from a class's rules; empty if the rules have no address.

    A notebook needs only this key. `hood.classroom.rules` reads the whole file and checks it.
    """
    path = root / CLASS_FILE
    if not path.exists():
        return ""
    import yaml  # import here, because a learner's copy has no such file

    try:
        # Read every scalar as text, so that an impossible date in the file is no error here.
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
    """Return the link from a notebook in ``folder`` to a lesson's section; empty without a lesson.

    Raises UserError when the setting ``lesson_url`` is not an address.
    """
    section = f"#{anchor(heading)}"
    if url := lesson_url(phase.root):
        return on_site(f"{phase.page.name}{section}", url)
    page = opened(phase.page, phase.root)
    reached = folder.is_relative_to(phase.root) and page.exists()
    return f"{os.path.relpath(page, folder)}{section}" if reached else ""


def section_on_site(lesson: str, heading: str, url: str, root: Path = ROOT) -> str:
    """Return the address of a lesson's section on a site; empty if the site or lesson is missing.

    Args:
        lesson: the lesson's two digits.
        url: the site's address, from :func:`lesson_url`.
    """
    page = PhasePaths(root, lab_named(root, lesson)).page
    if not url or not lesson or not page.exists():
        return ""
    return on_site(f"{page.name}#{anchor(heading)}", url)


def on_site(page: str, url: str) -> str:
    """Return the site's address for a lesson's notebook, such as "01_tensors.ipynb#views"."""
    return urljoin(url, link(f"../../notebooks/{page}", "release/lab/lab.ipynb", INDEX))


def docname_of(path: str) -> str | None:
    """Return a built notebook's address on the site, without ``.html``; None if it has no page."""
    match PurePosixPath(path).parts:
        case ("notebooks", name) if name.endswith(".ipynb"):
            stem = name.removesuffix(".ipynb")
            return INDEX if stem == START else f"{LESSONS}/{stem}"
        case ("release", folder, name) if name == f"{folder}.ipynb":
            return f"{LABS}/{folder}"
    return None


def link(href: str, notebook: str, docname: str | None) -> str:
    """Return a notebook's link as it must be on the site.

    A link that leads to no page is unchanged.

    The link is relative to the page ``docname``. If ``docname`` is None, the link names the
    target's source file, because Sphinx resolves and checks links between source files. A fragment
    (a heading's text, or the id of its cell) becomes the heading's anchor.
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
    """Return the address of a page or file, relative to another page."""
    suffix = "" if PurePosixPath(target).suffix in (".png", ".js", ".ipynb") else ".html"
    return posixpath.relpath(target + suffix, posixpath.dirname(docname) or ".")
